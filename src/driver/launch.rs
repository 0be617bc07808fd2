//! Launches: arguments checked against the kernel's description, then one call.
//!
//! Nothing is allocated for kernels of up to 32 parameters, as long as nothing is wrong.

use super::error::{DriverError, check};
use super::ffi::{self, Handle};
use super::memory::RawPtr;
use super::module::Function;
use super::stream::Stream;
use super::version::CudaVersion;
use core::ffi::{c_uint, c_void};
use core::fmt;
use smallvec::SmallVec;

/// What the compiler says of a kernel and a launch needs to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchSpec<'a> {
    /// The kernel's name, for messages.
    pub name: &'a str,
    /// Threads of a block by axis.
    pub block: [u32; 3],
    /// Blocks of a cluster by axis; `[1, 1, 1]` is none.
    pub cluster: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub shared: u32,
    /// The parameters of the PTX entry, in order.
    pub params: &'a [ParamSize],
}

/// What a parameter takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ParamSize {
    /// An address on the device.
    Pointer,
    /// A number, or bytes, of this size.
    Bytes(u32),
}

impl fmt::Display for ParamSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ParamSize::Pointer => f.write_str("a pointer"),
            ParamSize::Bytes(bytes) => write!(f, "a value of {bytes} bytes"),
        }
    }
}

/// An argument.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Arg<'a> {
    /// Device memory.
    Pointer(RawPtr<'a>),
    /// An integer of 8 bits, also a truth value.
    I8(i8),
    /// An integer of 16 bits.
    I16(i16),
    /// An integer of 32 bits.
    I32(i32),
    /// An integer of 64 bits.
    I64(i64),
    /// A number of 32 bits.
    F32(f32),
    /// A number of 64 bits.
    F64(f64),
    /// Anything else, as it lies in memory: a half, a tensor map.
    Bytes(&'a [u8]),
}

impl Arg<'_> {
    /// The parameter that takes this argument.
    #[must_use]
    pub fn size(&self) -> ParamSize {
        match self {
            Arg::Pointer(_) => ParamSize::Pointer,
            Arg::I8(_) => ParamSize::Bytes(1),
            Arg::I16(_) => ParamSize::Bytes(2),
            Arg::I32(_) | Arg::F32(_) => ParamSize::Bytes(4),
            Arg::I64(_) | Arg::F64(_) => ParamSize::Bytes(8),
            Arg::Bytes(bytes) => ParamSize::Bytes(u32::try_from(bytes.len()).unwrap_or(u32::MAX)),
        }
    }

    /// Where the value lies: in the argument itself, or in what it borrows.
    fn place(&self) -> *mut c_void {
        let place: *const c_void = match self {
            Arg::Pointer(value) => (&raw const value.address).cast(),
            Arg::I8(value) => (&raw const *value).cast(),
            Arg::I16(value) => (&raw const *value).cast(),
            Arg::I32(value) => (&raw const *value).cast(),
            Arg::I64(value) => (&raw const *value).cast(),
            Arg::F32(value) => (&raw const *value).cast(),
            Arg::F64(value) => (&raw const *value).cast(),
            Arg::Bytes(bytes) => bytes.as_ptr().cast(),
        };
        // The driver's signature lacks `const`; it only reads.
        place.cast_mut()
    }
}

/// Puts a launch of `function`, described by `spec`, with `grid` blocks into `stream`.
///
/// It returns at once; a fault of the kernel shows in a later call that waits. An empty grid
/// launches nothing. More than 48 KB of shared memory are asked for where needed.
///
/// # Errors
///
/// Arguments that do not match `spec`, things of another device, and launches beyond the limits
/// of device or kernel, each with the numbers; else what the driver reports.
pub fn launch(
    function: &Function,
    spec: &LaunchSpec<'_>,
    grid: [u32; 3],
    stream: &Stream,
    args: &[Arg<'_>],
) -> Result<(), DriverError> {
    let context = function.module().context();
    context.expect_same("the stream", stream.context())?;
    check_args(spec, args)?;
    for arg in args {
        if let Arg::Pointer(pointer) = arg {
            pointer.expect_device("an argument", context)?;
        }
    }
    if grid.contains(&0) {
        return Ok(());
    }
    check_grid(spec.name, grid, context.device().grid)?;
    let threads = volume(spec.block);
    let limit = function.attributes().max_threads;
    if threads == 0 || threads > u64::from(limit) {
        return Err(DriverError::Threads {
            name: spec.name.to_owned(),
            threads,
            limit,
        });
    }

    let _current = context.enter()?;
    function.allow_shared(spec.shared)?;
    let mut places: SmallVec<[*mut c_void; 32]> = args.iter().map(Arg::place).collect();
    if spec.cluster == [1, 1, 1] {
        let ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]) = (grid, spec.block);
        // SAFETY: function and stream are alive and of the current context; there is a place
        // for each parameter that the kernel has, of its size, as far as `spec` describes the
        // kernel, and all of them are read before the call returns.
        let code = unsafe {
            ffi::cuLaunchKernel(
                function.raw(),
                grid_x,
                grid_y,
                grid_z,
                block_x,
                block_y,
                block_z,
                spec.shared,
                stream.raw(),
                places.as_mut_ptr(),
                core::ptr::null_mut(),
            )
        };
        check("cuLaunchKernel", code)?;
    } else {
        launch_cluster(function, spec, grid, stream.raw(), &mut places)?;
    }
    stream.keep(function.module());
    Ok(())
}

/// The launch of a kernel with clusters, by the call that came with CUDA 11.8.
fn launch_cluster(
    function: &Function,
    spec: &LaunchSpec<'_>,
    grid: [u32; 3],
    stream: Handle,
    places: &mut [*mut c_void],
) -> Result<(), DriverError> {
    const NEEDED: CudaVersion = CudaVersion(11_080);
    let driver = function.module().context().device().driver.version();
    if driver < NEEDED {
        return Err(DriverError::Missing {
            call: "cuLaunchKernelEx",
            driver,
            needed: NEEDED,
        });
    }
    function.allow_cluster(volume(spec.cluster))?;
    let attribute = ffi::LaunchAttribute {
        id: ffi::CLUSTER_DIMENSION,
        pad: 0,
        cluster: spec.cluster,
        rest: [0; 13],
    };
    let config = ffi::LaunchConfig {
        grid,
        block: spec.block,
        shared: spec.shared,
        stream,
        attributes: &raw const attribute,
        attribute_count: 1 as c_uint,
    };
    // SAFETY: as for `cuLaunchKernel`; the configuration and its one attribute live until the
    // call has returned.
    let code = unsafe {
        ffi::cuLaunchKernelEx(
            &raw const config,
            function.raw(),
            places.as_mut_ptr(),
            core::ptr::null_mut(),
        )
    };
    check("cuLaunchKernelEx", code)
}

/// The product of the sides, or the largest number if it is larger.
pub(super) fn volume(sides: [u32; 3]) -> u64 {
    sides
        .iter()
        .fold(1, |product: u64, &side| product.saturating_mul(side.into()))
}

/// An error unless the arguments are what the parameters take.
fn check_args(spec: &LaunchSpec<'_>, args: &[Arg<'_>]) -> Result<(), DriverError> {
    if args.len() != spec.params.len() {
        return Err(DriverError::ArgumentCount {
            name: spec.name.to_owned(),
            expected: spec.params.len(),
            got: args.len(),
        });
    }
    for (index, (arg, &expected)) in args.iter().zip(spec.params).enumerate() {
        let got = arg.size();
        if got != expected {
            return Err(DriverError::Argument {
                name: spec.name.to_owned(),
                index,
                expected: expected.to_string(),
                got: got.to_string(),
            });
        }
    }
    Ok(())
}

/// An error if the grid is too large for the device.
pub(super) fn check_grid(name: &str, grid: [u32; 3], limits: [u32; 3]) -> Result<(), DriverError> {
    match (0..3).find(|&axis| grid[axis] > limits[axis]) {
        None => Ok(()),
        Some(axis) => Err(DriverError::Grid {
            name: name.to_owned(),
            axis,
            size: grid[axis],
            limit: limits[axis],
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPEC: LaunchSpec<'static> = LaunchSpec {
        name: "add",
        block: [128, 1, 1],
        cluster: [1, 1, 1],
        shared: 0,
        params: &[ParamSize::Pointer, ParamSize::Bytes(4), ParamSize::Bytes(2)],
    };

    #[test]
    fn arguments_are_checked_in_number_and_kind() {
        let pointer = Arg::Pointer(RawPtr::null());
        assert_eq!(
            check_args(&SPEC, &[pointer, Arg::F32(1.0), Arg::Bytes(&[0; 2])]),
            Ok(())
        );
        assert_eq!(
            check_args(&SPEC, &[pointer])
                .expect_err("two are missing")
                .to_string(),
            "add takes 3 arguments, 1 given"
        );
        assert_eq!(
            check_args(&SPEC, &[pointer, Arg::I64(1), Arg::I16(0)])
                .expect_err("too wide")
                .to_string(),
            "add: argument 1 is a value of 8 bytes, expected a value of 4 bytes"
        );
        assert_eq!(
            check_args(&SPEC, &[Arg::I64(0), Arg::I32(1), Arg::I16(0)])
                .expect_err("a number where a pointer belongs")
                .to_string(),
            "add: argument 0 is a value of 8 bytes, expected a pointer"
        );
    }

    #[test]
    fn places_hold_the_values() {
        // SAFETY: nothing reads or writes through the pointer.
        let pointer = Arg::Pointer(unsafe { RawPtr::from_raw(0x7f00_1234_5600, 16) });
        // SAFETY: the places lie in arguments that are alive and have these types.
        unsafe {
            assert_eq!(*pointer.place().cast::<u64>(), 0x7f00_1234_5600);
            assert_eq!(*Arg::I32(-7).place().cast::<i32>(), -7);
            assert_eq!(*Arg::F64(0.5).place().cast::<f64>(), 0.5);
            assert_eq!(*Arg::Bytes(&[9, 8]).place().cast::<[u8; 2]>(), [9, 8]);
        }
    }

    #[test]
    fn volumes_do_not_overflow() {
        assert_eq!(volume([32, 4, 2]), 256);
        assert_eq!(volume([u32::MAX; 3]), u64::MAX);
        assert_eq!(volume([u32::MAX, 0, 1]), 0);
    }

    #[test]
    fn grids_are_checked_by_axis() {
        let limits = [i32::MAX as u32, 65_535, 65_535];
        assert_eq!(check_grid(SPEC.name, [70_000, 1, 1], limits), Ok(()));
        assert_eq!(
            check_grid(SPEC.name, [1, 70_000, 1], limits)
                .expect_err("y")
                .to_string(),
            "add: grid side 1 is 70000 and can be 65535 at most"
        );
    }
}
