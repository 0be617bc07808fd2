//! The driver's functions as this crate calls them: declared anew, returning plain integers.
//!
//! `cust_raw` declares the result as a Rust enum of the codes that CUDA 11.4 knew. A newer
//! driver returns others, and an enum without that value would be undefined behaviour, so each
//! call that can meet one (all that wait for work, load code or launch) goes through here. The
//! symbols are the trampolines of `loader`. Handles are opaque addresses, declared as [`Handle`]:
//! same convention as a pointer, and free to move among threads, as the driver allows.

use core::ffi::{c_char, c_int, c_uint, c_void};

/// An opaque handle: context, module, function, stream, event, graph, link state.
pub(super) type Handle = usize;

/// The result of every function.
pub(super) type Code = c_int;

/// `CUDA_SUCCESS`.
pub(super) const SUCCESS: Code = 0;
/// `CUDA_ERROR_OUT_OF_MEMORY`.
pub(super) const OUT_OF_MEMORY: Code = 2;
/// `CUDA_ERROR_NO_DEVICE`.
pub(super) const NO_DEVICE: Code = 100;
/// `CUDA_ERROR_INVALID_CONTEXT`.
pub(super) const INVALID_CONTEXT: Code = 201;
/// `CUDA_ERROR_INVALID_HANDLE`.
pub(super) const INVALID_HANDLE: Code = 400;
/// `CUDA_ERROR_NO_BINARY_FOR_GPU`.
pub(super) const NO_BINARY_FOR_GPU: Code = 209;
/// `CUDA_ERROR_UNSUPPORTED_PTX_VERSION`.
pub(super) const UNSUPPORTED_PTX_VERSION: Code = 222;
/// `CUDA_ERROR_NOT_FOUND`.
pub(super) const NOT_FOUND: Code = 500;
/// `CUDA_ERROR_CONTEXT_IS_DESTROYED`.
pub(super) const CONTEXT_IS_DESTROYED: Code = 709;
/// `CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED`.
pub(super) const PEER_ACCESS_ALREADY_ENABLED: Code = 704;
/// `CUDA_ERROR_NOT_READY`.
pub(super) const NOT_READY: Code = 600;

/// `CUlaunchAttribute`: an id, and a union of 64 bytes of which the cluster is the first 12, a number the first 4.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct LaunchAttribute {
    pub(super) id: c_uint,
    pub(super) pad: c_uint,
    pub(super) cluster: [c_uint; 3],
    pub(super) rest: [c_uint; 13],
}

/// `CU_LAUNCH_ATTRIBUTE_COOPERATIVE`.
pub(super) const COOPERATIVE: c_uint = 2;
/// `CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION`.
pub(super) const STREAM_SERIALIZATION: c_uint = 6;
/// `CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION`.
pub(super) const CLUSTER_DIMENSION: c_uint = 4;

/// `CUlaunchConfig`.
#[repr(C)]
pub(super) struct LaunchConfig {
    pub(super) grid: [c_uint; 3],
    pub(super) block: [c_uint; 3],
    pub(super) shared: c_uint,
    pub(super) stream: Handle,
    pub(super) attributes: *const LaunchAttribute,
    pub(super) attribute_count: c_uint,
}

/// `CUtensorMap`.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug)]
pub(super) struct TensorMapBytes(pub(super) [u8; 128]);

#[rustfmt::skip] // one declaration a line reads as the table that it is
unsafe extern "C" {
    pub(super) fn cuInit(flags: c_uint) -> Code;
    pub(super) fn cuDriverGetVersion(version: *mut c_int) -> Code;
    pub(super) fn cuGetErrorName(code: Code, name: *mut *const c_char) -> Code;
    pub(super) fn cuGetErrorString(code: Code, text: *mut *const c_char) -> Code;

    pub(super) fn cuDeviceGetAttribute(value: *mut c_int, attribute: c_uint, device: c_int) -> Code;

    pub(super) fn cuDevicePrimaryCtxRetain(context: *mut Handle, device: c_int) -> Code;
    pub(super) fn cuDevicePrimaryCtxRelease_v2(device: c_int) -> Code;
    pub(super) fn cuCtxGetCurrent(context: *mut Handle) -> Code;
    pub(super) fn cuCtxSetCurrent(context: Handle) -> Code;
    pub(super) fn cuCtxGetDevice(device: *mut c_int) -> Code;
    pub(super) fn cuCtxSynchronize() -> Code;
    pub(super) fn cuDeviceCanAccessPeer(can: *mut c_int, device: c_int, peer: c_int) -> Code;
    pub(super) fn cuCtxEnablePeerAccess(peer: Handle, flags: c_uint) -> Code;

    pub(super) fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) -> Code;
    pub(super) fn cuMemAlloc_v2(address: *mut u64, bytes: usize) -> Code;
    pub(super) fn cuMemFree_v2(address: u64) -> Code;
    pub(super) fn cuMemAllocHost_v2(address: *mut *mut c_void, bytes: usize) -> Code;
    pub(super) fn cuMemFreeHost(address: *mut c_void) -> Code;
    pub(super) fn cuMemcpyHtoDAsync_v2(to: u64, from: *const c_void, bytes: usize, stream: Handle) -> Code;
    pub(super) fn cuMemcpyDtoHAsync_v2(to: *mut c_void, from: u64, bytes: usize, stream: Handle) -> Code;
    pub(super) fn cuMemcpyDtoDAsync_v2(to: u64, from: u64, bytes: usize, stream: Handle) -> Code;
    pub(super) fn cuMemcpyPeerAsync(to: u64, to_context: Handle, from: u64, from_context: Handle, bytes: usize, stream: Handle) -> Code;
    pub(super) fn cuMemsetD8Async(address: u64, value: u8, bytes: usize, stream: Handle) -> Code;

    pub(super) fn cuModuleLoadDataEx(module: *mut Handle, image: *const c_void, count: c_uint, options: *const c_uint, values: *mut *mut c_void) -> Code;
    pub(super) fn cuModuleUnload(module: Handle) -> Code;
    pub(super) fn cuModuleGetFunction(function: *mut Handle, module: Handle, name: *const c_char) -> Code;
    pub(super) fn cuModuleGetGlobal_v2(address: *mut u64, bytes: *mut usize, module: Handle, name: *const c_char) -> Code;
    pub(super) fn cuLinkCreate_v2(count: c_uint, options: *const c_uint, values: *mut *mut c_void, state: *mut Handle) -> Code;
    pub(super) fn cuLinkAddData_v2(state: Handle, kind: c_uint, data: *const c_void, bytes: usize, name: *const c_char, count: c_uint, options: *const c_uint, values: *mut *mut c_void) -> Code;
    pub(super) fn cuLinkComplete(state: Handle, cubin: *mut *const u8, bytes: *mut usize) -> Code;
    pub(super) fn cuLinkDestroy(state: Handle) -> Code;

    pub(super) fn cuFuncGetAttribute(value: *mut c_int, attribute: c_uint, function: Handle) -> Code;
    pub(super) fn cuFuncSetAttribute(function: Handle, attribute: c_uint, value: c_int) -> Code;
    pub(super) fn cuFuncSetCacheConfig(function: Handle, config: c_uint) -> Code;
    pub(super) fn cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks: *mut c_int, function: Handle, threads: c_int, shared: usize) -> Code;

    pub(super) fn cuStreamCreate(stream: *mut Handle, flags: c_uint) -> Code;
    pub(super) fn cuStreamDestroy_v2(stream: Handle) -> Code;
    pub(super) fn cuStreamGetCtx(stream: Handle, context: *mut Handle) -> Code;
    pub(super) fn cuStreamSynchronize(stream: Handle) -> Code;
    pub(super) fn cuStreamQuery(stream: Handle) -> Code;
    pub(super) fn cuStreamAddCallback(stream: Handle, callback: extern "C" fn(Handle, Code, *mut c_void), data: *mut c_void, flags: c_uint) -> Code;
    pub(super) fn cuStreamWaitEvent(stream: Handle, event: Handle, flags: c_uint) -> Code;
    pub(super) fn cuStreamIsCapturing(stream: Handle, status: *mut c_uint) -> Code;
    pub(super) fn cuStreamBeginCapture_v2(stream: Handle, mode: c_uint) -> Code;
    pub(super) fn cuThreadExchangeStreamCaptureMode(mode: *mut c_uint) -> Code;
    pub(super) fn cuStreamEndCapture(stream: Handle, graph: *mut Handle) -> Code;

    pub(super) fn cuGraphInstantiateWithFlags(executable: *mut Handle, graph: Handle, flags: u64) -> Code;
    pub(super) fn cuGraphLaunch(executable: Handle, stream: Handle) -> Code;
    pub(super) fn cuGraphExecDestroy(executable: Handle) -> Code;
    pub(super) fn cuGraphDestroy(graph: Handle) -> Code;

    pub(super) fn cuEventCreate(event: *mut Handle, flags: c_uint) -> Code;
    pub(super) fn cuEventDestroy_v2(event: Handle) -> Code;
    pub(super) fn cuEventRecord(event: Handle, stream: Handle) -> Code;
    pub(super) fn cuEventSynchronize(event: Handle) -> Code;
    pub(super) fn cuEventQuery(event: Handle) -> Code;
    pub(super) fn cuEventElapsedTime(milliseconds: *mut f32, start: Handle, end: Handle) -> Code;

    pub(super) fn cuLaunchKernel(
        function: Handle, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint, block_x: c_uint, block_y: c_uint, block_z: c_uint,
        shared: c_uint, stream: Handle, parameters: *mut *mut c_void, extra: *mut *mut c_void,
    ) -> Code;
    pub(super) fn cuLaunchKernelEx(config: *const LaunchConfig, function: Handle, parameters: *mut *mut c_void, extra: *mut *mut c_void) -> Code;
    pub(super) fn cuTensorMapEncodeTiled(
        map: *mut TensorMapBytes, element: c_uint, rank: c_uint, address: u64, dims: *const u64, strides: *const u64, tile: *const u32,
        steps: *const u32, interleave: c_uint, swizzle: c_uint, promotion: c_uint, fill: c_uint,
    ) -> Code;
    pub(super) fn cuTensorMapReplaceAddress(map: *mut TensorMapBytes, address: u64) -> Code;
}

#[cfg(test)]
mod tests {
    use super::{LaunchAttribute, LaunchConfig, TensorMapBytes};
    use core::mem::{offset_of, size_of};

    #[test]
    fn structures_have_the_layout_of_the_header() {
        // cuda.h: the attribute is { int id; char pad[4]; char value[64] }; the configuration is
        // seven unsigned, a hole of 4, two pointers, an unsigned and a hole.
        assert_eq!(size_of::<LaunchAttribute>(), 72);
        assert_eq!(offset_of!(LaunchAttribute, cluster), 8);
        assert_eq!(size_of::<LaunchConfig>(), 56);
        assert_eq!(offset_of!(LaunchConfig, shared), 24);
        assert_eq!(offset_of!(LaunchConfig, stream), 32);
        assert_eq!(offset_of!(LaunchConfig, attributes), 40);
        assert_eq!(offset_of!(LaunchConfig, attribute_count), 48);
        assert_eq!(size_of::<TensorMapBytes>(), 128);
    }
}
