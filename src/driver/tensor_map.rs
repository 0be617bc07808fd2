//! Tensor maps: descriptions of a tensor for the copy engine of Hopper and later devices (TMA).

use super::error::{DriverError, check};
use super::ffi::{self, TensorMapBytes};
use super::launch::Arg;
use super::memory::RawPtr;
use super::{Driver, version::CudaVersion};
use core::ffi::c_uint;

/// The first driver that knows tensor maps.
const NEEDED: CudaVersion = CudaVersion(12_000);

/// An encoded map, passed to a kernel by value.
#[derive(Clone, Copy, Debug)]
pub struct TensorMap {
    bytes: TensorMapBytes,
}

/// The type of a tensor's elements, as the copy engine knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names say it")]
pub enum TensorElement {
    U8 = 0,
    U16 = 1,
    U32 = 2,
    I32 = 3,
    U64 = 4,
    I64 = 5,
    F16 = 6,
    F32 = 7,
    F64 = 8,
    Bf16 = 9,
}

impl TensorElement {
    /// Every one, in the order of the driver's numbers.
    pub const ALL: [TensorElement; 10] = [
        TensorElement::U8,
        TensorElement::U16,
        TensorElement::U32,
        TensorElement::I32,
        TensorElement::U64,
        TensorElement::I64,
        TensorElement::F16,
        TensorElement::F32,
        TensorElement::F64,
        TensorElement::Bf16,
    ];
}

/// How a tile lies in shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TensorSwizzle {
    /// Row after row.
    None = 0,
    /// Chunks of 16 bytes exchanged within 32 bytes.
    B32 = 1,
    /// Within 64 bytes.
    B64 = 2,
    /// Within 128 bytes.
    B128 = 3,
}

impl TensorSwizzle {
    /// Every one, in the order of the driver's numbers.
    pub const ALL: [TensorSwizzle; 4] = [
        TensorSwizzle::None,
        TensorSwizzle::B32,
        TensorSwizzle::B64,
        TensorSwizzle::B128,
    ];
}

/// The plain description of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorShape<'a> {
    /// The type of the elements.
    pub element: TensorElement,
    /// Elements by dimension, innermost first; one to five dimensions.
    pub dims: &'a [u64],
    /// Bytes from one element to the next in each dimension but the first.
    pub strides: &'a [u64],
    /// Elements of a tile by dimension.
    pub tile: &'a [u32],
    /// How a tile lies in shared memory.
    pub swizzle: TensorSwizzle,
    /// Whether elements outside of the tensor read as NaN, which there is of floating-point numbers alone.
    pub nan: bool,
}

impl TensorMap {
    /// Encodes the description of the tensor at `pointer`. Elements outside read as zero, or as NaN.
    ///
    /// # Errors
    ///
    /// [`DriverError::Size`] if the slices do not fit one another; a [`DriverError::Call`] for
    /// sizes, strides or addresses that the copy engine cannot take; [`DriverError::Missing`]
    /// before CUDA 12.0.
    pub fn new(pointer: RawPtr<'_>, shape: &TensorShape<'_>) -> Result<TensorMap, DriverError> {
        /// `CU_TENSOR_MAP_L2_PROMOTION_L2_128B`.
        const PROMOTION: c_uint = 2;
        let rank = shape.dims.len();
        let lengths = [
            ("the rank of a tensor map", rank, rank.clamp(1, 5)),
            ("the strides of a tensor map", shape.strides.len() + 1, rank),
            ("the tile of a tensor map", shape.tile.len(), rank),
        ];
        for (what, got, expected) in lengths {
            if got != expected {
                return Err(DriverError::Size {
                    what,
                    got,
                    expected,
                });
            }
        }
        let driver = Driver::load()?.version();
        if driver < NEEDED {
            return Err(DriverError::Missing {
                call: "cuTensorMapEncodeTiled",
                driver,
                needed: NEEDED,
            });
        }
        let mut bytes = TensorMapBytes([0; 128]);
        let steps = [1; 5];
        // SAFETY: the slices have `rank` entries, and one less for the strides, as checked; the
        // map has size and alignment of the driver's; the address is only encoded.
        let code = unsafe {
            ffi::cuTensorMapEncodeTiled(
                &raw mut bytes,
                shape.element as c_uint,
                rank as c_uint,
                pointer.address(),
                shape.dims.as_ptr(),
                shape.strides.as_ptr(),
                shape.tile.as_ptr(),
                steps.as_ptr(),
                0,
                shape.swizzle as c_uint,
                PROMOTION,
                c_uint::from(shape.nan),
            )
        };
        check("cuTensorMapEncodeTiled", code)?;
        Ok(TensorMap { bytes })
    }

    /// Makes it the map of the same kind of tensor at another address, which takes a third of the time of encoding one.
    ///
    /// # Errors
    ///
    /// What the driver reports of an address that is no multiple of 16 bytes. The map is what it was then.
    pub fn set_address(&mut self, pointer: RawPtr<'_>) -> Result<(), DriverError> {
        let mut bytes = self.bytes;
        // SAFETY: the map is one that the driver encoded; the address is only encoded.
        let code = unsafe { ffi::cuTensorMapReplaceAddress(&raw mut bytes, pointer.address()) };
        check("cuTensorMapReplaceAddress", code)?;
        self.bytes = bytes;
        Ok(())
    }

    /// Where the map lies.
    pub(super) fn place(&self) -> *const [u8; 128] {
        &raw const self.bytes.0
    }

    /// The argument for a kernel's parameter of 128 bytes.
    #[must_use]
    pub fn arg(&self) -> Arg<'_> {
        Arg::Bytes(&self.bytes.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ill_fitting_slices_are_refused() {
        let shape = TensorShape {
            element: TensorElement::F16,
            dims: &[64, 64],
            strides: &[],
            tile: &[64, 8],
            swizzle: TensorSwizzle::B128,
            nan: false,
        };
        let error = TensorMap::new(RawPtr::null(), &shape).err();
        assert_eq!(
            error,
            Some(DriverError::Size {
                what: "the strides of a tensor map",
                got: 1,
                expected: 2
            })
        );
    }
}
