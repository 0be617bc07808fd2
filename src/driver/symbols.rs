//! The table of driver symbols that this crate defines (`loader` says why and how).
//!
//! [`for_each_symbol!`] lists, in this order, the functions that `cust_raw` 0.11.3 declares,
//! made from its source by
//!
//! ```text
//! grep -o 'pub fn cu[A-Za-z0-9_]*' cust_raw-0.11.3/src/cuda.rs | cut -d' ' -f3 | fmt -w 96
//! ```
//!
//! and then the few newer ones that this crate calls and `cust_raw`, at the state of CUDA 11.4,
//! lacks. Names are the exported ones, suffix `_v2` included: each suffix is another ABI, so
//! a name is looked up in the driver exactly as it was declared.

/// Calls the macro `$then` with the names of `cust_raw`, a semicolon, and the newer names.
macro_rules! for_each_symbol {
    ($then:ident) => {
        $then! {
            cuGetErrorString cuGetErrorName cuInit cuDriverGetVersion cuDeviceGet
            cuDeviceGetCount cuDeviceGetName cuDeviceGetUuid cuDeviceGetUuid_v2 cuDeviceGetLuid
            cuDeviceTotalMem_v2 cuDeviceGetTexture1DLinearMaxWidth cuDeviceGetAttribute
            cuDeviceGetNvSciSyncAttributes cuDeviceSetMemPool cuDeviceGetMemPool
            cuDeviceGetDefaultMemPool cuFlushGPUDirectRDMAWrites cuDeviceGetProperties
            cuDeviceComputeCapability cuDevicePrimaryCtxRetain cuDevicePrimaryCtxRelease_v2
            cuDevicePrimaryCtxSetFlags_v2 cuDevicePrimaryCtxGetState cuDevicePrimaryCtxReset_v2
            cuDeviceGetExecAffinitySupport cuCtxCreate_v2 cuCtxCreate_v3 cuCtxDestroy_v2
            cuCtxPushCurrent_v2 cuCtxPopCurrent_v2 cuCtxSetCurrent cuCtxGetCurrent
            cuCtxGetDevice cuCtxGetFlags cuCtxSynchronize cuCtxSetLimit cuCtxGetLimit
            cuCtxGetCacheConfig cuCtxSetCacheConfig cuCtxGetSharedMemConfig
            cuCtxSetSharedMemConfig cuCtxGetApiVersion cuCtxGetStreamPriorityRange
            cuCtxResetPersistingL2Cache cuCtxGetExecAffinity cuCtxAttach cuCtxDetach
            cuModuleLoad cuModuleLoadData cuModuleLoadDataEx cuModuleLoadFatBinary
            cuModuleUnload cuModuleGetFunction cuModuleGetGlobal_v2 cuModuleGetTexRef
            cuModuleGetSurfRef cuLinkCreate_v2 cuLinkAddData_v2 cuLinkAddFile_v2
            cuLinkComplete cuLinkDestroy cuMemGetInfo_v2 cuMemAlloc_v2 cuMemAllocPitch_v2
            cuMemFree_v2 cuMemGetAddressRange_v2 cuMemAllocHost_v2 cuMemFreeHost
            cuMemHostAlloc cuMemHostGetDevicePointer_v2 cuMemHostGetFlags cuMemAllocManaged
            cuDeviceGetByPCIBusId cuDeviceGetPCIBusId cuIpcGetEventHandle cuIpcOpenEventHandle
            cuIpcGetMemHandle cuIpcOpenMemHandle_v2 cuIpcCloseMemHandle cuMemHostRegister_v2
            cuMemHostUnregister cuMemcpy cuMemcpyPeer cuMemcpyHtoD_v2 cuMemcpyDtoH_v2
            cuMemcpyDtoD_v2 cuMemcpyDtoA_v2 cuMemcpyAtoD_v2 cuMemcpyHtoA_v2 cuMemcpyAtoH_v2
            cuMemcpyAtoA_v2 cuMemcpy2D_v2 cuMemcpy2DUnaligned_v2 cuMemcpy3D_v2 cuMemcpy3DPeer
            cuMemcpyAsync cuMemcpyPeerAsync cuMemcpyHtoDAsync_v2 cuMemcpyDtoHAsync_v2
            cuMemcpyDtoDAsync_v2 cuMemcpyHtoAAsync_v2 cuMemcpyAtoHAsync_v2 cuMemcpy2DAsync_v2
            cuMemcpy3DAsync_v2 cuMemcpy3DPeerAsync cuMemsetD8_v2 cuMemsetD16_v2 cuMemsetD32_v2
            cuMemsetD2D8_v2 cuMemsetD2D16_v2 cuMemsetD2D32_v2 cuMemsetD8Async cuMemsetD16Async
            cuMemsetD32Async cuMemsetD2D8Async cuMemsetD2D16Async cuMemsetD2D32Async
            cuArrayCreate_v2 cuArrayGetDescriptor_v2 cuArrayGetSparseProperties
            cuMipmappedArrayGetSparseProperties cuArrayGetPlane cuArrayDestroy
            cuArray3DCreate_v2 cuArray3DGetDescriptor_v2 cuMipmappedArrayCreate
            cuMipmappedArrayGetLevel cuMipmappedArrayDestroy cuMemAddressReserve
            cuMemAddressFree cuMemCreate cuMemRelease cuMemMap cuMemMapArrayAsync
            cuMemUnmap cuMemSetAccess cuMemGetAccess cuMemExportToShareableHandle
            cuMemImportFromShareableHandle cuMemGetAllocationGranularity
            cuMemGetAllocationPropertiesFromHandle cuMemRetainAllocationHandle
            cuMemFreeAsync cuMemAllocAsync cuMemPoolTrimTo cuMemPoolSetAttribute
            cuMemPoolGetAttribute cuMemPoolSetAccess cuMemPoolGetAccess cuMemPoolCreate
            cuMemPoolDestroy cuMemAllocFromPoolAsync cuMemPoolExportToShareableHandle
            cuMemPoolImportFromShareableHandle cuMemPoolExportPointer cuMemPoolImportPointer
            cuPointerGetAttribute cuMemPrefetchAsync cuMemAdvise cuMemRangeGetAttribute
            cuMemRangeGetAttributes cuPointerSetAttribute cuPointerGetAttributes
            cuStreamCreate cuStreamCreateWithPriority cuStreamGetPriority cuStreamGetFlags
            cuStreamGetCtx cuStreamWaitEvent cuStreamAddCallback cuStreamBeginCapture_v2
            cuThreadExchangeStreamCaptureMode cuStreamEndCapture cuStreamIsCapturing
            cuStreamGetCaptureInfo cuStreamGetCaptureInfo_v2 cuStreamUpdateCaptureDependencies
            cuStreamAttachMemAsync cuStreamQuery cuStreamSynchronize cuStreamDestroy_v2
            cuStreamCopyAttributes cuStreamGetAttribute cuStreamSetAttribute
            cuEventCreate cuEventRecord cuEventRecordWithFlags cuEventQuery
            cuEventSynchronize cuEventDestroy_v2 cuEventElapsedTime cuImportExternalMemory
            cuExternalMemoryGetMappedBuffer cuExternalMemoryGetMappedMipmappedArray
            cuDestroyExternalMemory cuImportExternalSemaphore cuSignalExternalSemaphoresAsync
            cuWaitExternalSemaphoresAsync cuDestroyExternalSemaphore cuStreamWaitValue32
            cuStreamWaitValue64 cuStreamWriteValue32 cuStreamWriteValue64
            cuStreamBatchMemOp cuFuncGetAttribute cuFuncSetAttribute cuFuncSetCacheConfig
            cuFuncSetSharedMemConfig cuFuncGetModule cuLaunchKernel cuLaunchCooperativeKernel
            cuLaunchCooperativeKernelMultiDevice cuLaunchHostFunc cuFuncSetBlockShape
            cuFuncSetSharedSize cuParamSetSize cuParamSeti cuParamSetf cuParamSetv cuLaunch
            cuLaunchGrid cuLaunchGridAsync cuParamSetTexRef cuGraphCreate cuGraphAddKernelNode
            cuGraphKernelNodeGetParams cuGraphKernelNodeSetParams cuGraphAddMemcpyNode
            cuGraphMemcpyNodeGetParams cuGraphMemcpyNodeSetParams cuGraphAddMemsetNode
            cuGraphMemsetNodeGetParams cuGraphMemsetNodeSetParams cuGraphAddHostNode
            cuGraphHostNodeGetParams cuGraphHostNodeSetParams cuGraphAddChildGraphNode
            cuGraphChildGraphNodeGetGraph cuGraphAddEmptyNode cuGraphAddEventRecordNode
            cuGraphEventRecordNodeGetEvent cuGraphEventRecordNodeSetEvent
            cuGraphAddEventWaitNode cuGraphEventWaitNodeGetEvent cuGraphEventWaitNodeSetEvent
            cuGraphAddExternalSemaphoresSignalNode cuGraphExternalSemaphoresSignalNodeGetParams
            cuGraphExternalSemaphoresSignalNodeSetParams
            cuGraphAddExternalSemaphoresWaitNode cuGraphExternalSemaphoresWaitNodeGetParams
            cuGraphExternalSemaphoresWaitNodeSetParams cuGraphAddMemAllocNode
            cuGraphMemAllocNodeGetParams cuGraphAddMemFreeNode cuGraphMemFreeNodeGetParams
            cuDeviceGraphMemTrim cuDeviceGetGraphMemAttribute cuDeviceSetGraphMemAttribute
            cuGraphClone cuGraphNodeFindInClone cuGraphNodeGetType cuGraphGetNodes
            cuGraphGetRootNodes cuGraphGetEdges cuGraphNodeGetDependencies
            cuGraphNodeGetDependentNodes cuGraphAddDependencies cuGraphRemoveDependencies
            cuGraphDestroyNode cuGraphInstantiate_v2 cuGraphInstantiateWithFlags
            cuGraphExecKernelNodeSetParams cuGraphExecMemcpyNodeSetParams
            cuGraphExecMemsetNodeSetParams cuGraphExecHostNodeSetParams
            cuGraphExecChildGraphNodeSetParams cuGraphExecEventRecordNodeSetEvent
            cuGraphExecEventWaitNodeSetEvent cuGraphExecExternalSemaphoresSignalNodeSetParams
            cuGraphExecExternalSemaphoresWaitNodeSetParams cuGraphUpload cuGraphLaunch
            cuGraphExecDestroy cuGraphDestroy cuGraphExecUpdate cuGraphKernelNodeCopyAttributes
            cuGraphKernelNodeGetAttribute cuGraphKernelNodeSetAttribute cuGraphDebugDotPrint
            cuUserObjectCreate cuUserObjectRetain cuUserObjectRelease cuGraphRetainUserObject
            cuGraphReleaseUserObject cuOccupancyMaxActiveBlocksPerMultiprocessor
            cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags
            cuOccupancyMaxPotentialBlockSize cuOccupancyMaxPotentialBlockSizeWithFlags
            cuOccupancyAvailableDynamicSMemPerBlock cuTexRefSetArray cuTexRefSetMipmappedArray
            cuTexRefSetAddress_v2 cuTexRefSetAddress2D_v3 cuTexRefSetFormat
            cuTexRefSetAddressMode cuTexRefSetFilterMode cuTexRefSetMipmapFilterMode
            cuTexRefSetMipmapLevelBias cuTexRefSetMipmapLevelClamp cuTexRefSetMaxAnisotropy
            cuTexRefSetBorderColor cuTexRefSetFlags cuTexRefGetAddress_v2 cuTexRefGetArray
            cuTexRefGetMipmappedArray cuTexRefGetAddressMode cuTexRefGetFilterMode
            cuTexRefGetFormat cuTexRefGetMipmapFilterMode cuTexRefGetMipmapLevelBias
            cuTexRefGetMipmapLevelClamp cuTexRefGetMaxAnisotropy cuTexRefGetBorderColor
            cuTexRefGetFlags cuTexRefCreate cuTexRefDestroy cuSurfRefSetArray
            cuSurfRefGetArray cuTexObjectCreate cuTexObjectDestroy cuTexObjectGetResourceDesc
            cuTexObjectGetTextureDesc cuTexObjectGetResourceViewDesc cuSurfObjectCreate
            cuSurfObjectDestroy cuSurfObjectGetResourceDesc cuDeviceCanAccessPeer
            cuCtxEnablePeerAccess cuCtxDisablePeerAccess cuDeviceGetP2PAttribute
            cuGraphicsUnregisterResource cuGraphicsSubResourceGetMappedArray
            cuGraphicsResourceGetMappedMipmappedArray cuGraphicsResourceGetMappedPointer_v2
            cuGraphicsResourceSetMapFlags_v2 cuGraphicsMapResources cuGraphicsUnmapResources
            cuGetProcAddress cuGetExportTable cuProfilerInitialize cuProfilerStart
            cuProfilerStop
            ;
            cuLaunchKernelEx cuOccupancyMaxActiveClusters cuTensorMapEncodeTiled
            cuTensorMapReplaceAddress
        }
    };
}
pub(super) use for_each_symbol;

/// Makes the array of names.
macro_rules! names {
    ($($declared:ident)* ; $($newer:ident)*) => {
        /// Every symbol of the table; the index is that of its slot and of its trampoline.
        pub(super) const NAMES: &[&core::ffi::CStr] = &[
            $(name(concat!(stringify!($declared), "\0")),)*
            $(name(concat!(stringify!($newer), "\0")),)*
        ];
    };
}

/// A C string from a literal that ends in NUL.
const fn name(text: &'static str) -> &'static core::ffi::CStr {
    match core::ffi::CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(name) => name,
        Err(_) => panic!("the caller ends the literal with its only NUL"),
    }
}

for_each_symbol!(names);

#[cfg(test)]
mod tests {
    use super::NAMES;
    use std::collections::BTreeSet;

    /// The source of `cust_raw`'s bindings, found by asking cargo.
    fn bindings() -> String {
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let version = std::process::Command::new(rustc).arg("-vV").output();
        let version = version.expect("rustc runs, for it compiled this test");
        let version = String::from_utf8_lossy(&version.stdout);
        let host = version.lines().find_map(|line| line.strip_prefix("host: "));
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let output = std::process::Command::new(cargo)
            .args([
                "metadata",
                "--format-version",
                "1",
                "--offline",
                "--manifest-path",
            ])
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))
            .args(["--features", "cuda"])
            // What other systems need has perhaps never been fetched.
            .args(["--filter-platform", host.expect("rustc names its host")])
            .output()
            .expect("cargo runs, for it runs this test");
        let text = String::from_utf8_lossy(&output.stdout);
        let end = text.find("cust_raw-0.11.3/Cargo.toml").unwrap_or_else(|| {
            panic!("no cust_raw in {}", String::from_utf8_lossy(&output.stderr))
        });
        let start = text[..end]
            .rfind('"')
            .expect("a JSON string starts with a quote")
            + 1;
        let path = format!("{}cust_raw-0.11.3/src/cuda.rs", &text[start..end]);
        std::fs::read_to_string(path).expect("the bindings were compiled, so they are there")
    }

    #[test]
    fn table_holds_every_function_that_cust_raw_declares() {
        let source = bindings();
        let declared: BTreeSet<&str> = source
            .match_indices("pub fn cu")
            .map(|(at, _)| {
                let rest = &source[at + "pub fn ".len()..];
                &rest[..rest.find('(').expect("a function has parameters")]
            })
            .collect();
        let table: BTreeSet<&str> = NAMES
            .iter()
            .map(|name| name.to_str().expect("identifiers are ASCII"))
            .collect();
        assert_eq!(
            declared.len(),
            353,
            "another version of cust_raw: make the table anew"
        );
        assert_eq!(
            declared.difference(&table).collect::<Vec<_>>(),
            Vec::<&&str>::new()
        );
        assert_eq!(
            table.difference(&declared).copied().collect::<Vec<_>>(),
            [
                "cuLaunchKernelEx",
                "cuOccupancyMaxActiveClusters",
                "cuTensorMapEncodeTiled",
                "cuTensorMapReplaceAddress"
            ]
        );
        assert_eq!(table.len(), NAMES.len(), "a name stands twice");
    }
}
