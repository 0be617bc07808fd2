//! Tensor descriptors as arguments: memory with shape, strides, and the blocks that a kernel reads and writes of it.

use smallvec::SmallVec;

use crate::runtime::api::argument::{Arg, ArgList, Argument};
use crate::runtime::api::buffer::Pointer;
use crate::runtime::api::error::RuntimeError;
use crate::runtime::specialize::class::DESCRIPTOR;

/// Most dimensions.
const MAX_RANK: usize = 5;

/// A tensor in device memory, for a parameter that a kernel uses as a tensor descriptor (`desc.load([i, j])`), as
/// Triton's `TensorDescriptor` on the host. The extents of the blocks are part of what a kernel is compiled for, and which
/// extents of the tensor are multiples of 16, as of integers; address and strides are not.
///
/// ```
/// # use tilelift::runtime::{Buffer, Descriptor, Device, RuntimeError};
/// # let device = Device::emulator();
/// let matrix = Buffer::from_slice(&device, &[1.0_f32; 64 * 48])?;
/// let tiles = Descriptor::new(matrix.ptr(), &[64, 48], &[48, 1], &[16, 16])?;
/// # let _ = tiles;
/// # Ok::<(), RuntimeError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Descriptor<'a> {
    base: Pointer<'a>,
    rank: usize,
    shape: [i32; MAX_RANK],
    strides: [i64; MAX_RANK],
    /// Binary logarithms of the blocks' extents.
    block: [u8; MAX_RANK],
    nan: bool,
}

impl<'a> Descriptor<'a> {
    /// The tensor of `shape` at `base`, whose neighbours along each dimension lie `strides` elements apart, read and
    /// written in blocks of `block` elements. What lies outside of the tensor reads as zero.
    ///
    /// # Errors
    ///
    /// One to five dimensions, as many strides and extents; extents that are powers of two; an address at a multiple of
    /// 16 bytes and rows that many bytes apart; stride 1 in the last dimension; memory as large as the tensor. The error
    /// names what does not hold.
    pub fn new(
        base: Pointer<'a>,
        shape: &[u64],
        strides: &[u64],
        block: &[u64],
    ) -> Result<Descriptor<'a>, RuntimeError> {
        let wrong = |problem: String| Err(RuntimeError::Descriptor { problem });
        let rank = shape.len();
        if !(1..=MAX_RANK).contains(&rank) {
            return wrong(format!("{rank} dimensions; 1 to {MAX_RANK} are possible"));
        }
        if strides.len() != rank || block.len() != rank {
            let (strides, extents) = (strides.len(), block.len());
            return wrong(format!(
                "{strides} strides and {extents} extents of blocks for {rank} dimensions"
            ));
        }
        if strides[rank - 1] != 1 {
            return wrong(format!(
                "stride {} in the last dimension; it has to be 1",
                strides[rank - 1]
            ));
        }
        if !base.address().is_multiple_of(16) {
            return wrong(format!(
                "address {:#x} is not a multiple of 16",
                base.address()
            ));
        }
        let bytes = base.dtype().bytes() as u64;
        let mut descriptor = Descriptor {
            base,
            rank,
            shape: [1; MAX_RANK],
            strides: [1; MAX_RANK],
            block: [0; MAX_RANK],
            nan: false,
        };
        let mut last = 0_u64;
        let mut is_empty = false;
        for dim in 0..rank {
            let (size, stride, extent) = (shape[dim], strides[dim], block[dim]);
            let row = stride.checked_mul(bytes);
            if dim + 1 < rank && !row.is_some_and(|row| row.is_multiple_of(16)) {
                return wrong(format!(
                    "stride {stride} of dimension {dim} is not a multiple of 16 bytes"
                ));
            }
            let (Ok(size), Ok(wide)) = (i32::try_from(size), i64::try_from(stride)) else {
                return wrong(format!("dimension {dim} is too large"));
            };
            if !extent.is_power_of_two() {
                return wrong(format!(
                    "blocks of {extent} along dimension {dim}; a power of two is possible"
                ));
            }
            descriptor.shape[dim] = size;
            descriptor.strides[dim] = wide;
            descriptor.block[dim] = extent.ilog2() as u8;
            is_empty |= size == 0;
            let steps = u64::from(size.max(1).unsigned_abs()) - 1;
            last = last.saturating_add(steps.saturating_mul(stride));
        }
        let needed = last.saturating_add(1).saturating_mul(bytes);
        if !is_empty && needed > base.bytes() as u64 {
            return wrong(format!(
                "the tensor has {needed} bytes, its memory {}",
                base.bytes()
            ));
        }
        Ok(descriptor)
    }

    /// A tensor of rows without gaps between them.
    ///
    /// # Errors
    ///
    /// Those of [`Descriptor::new`].
    pub fn contiguous(
        base: Pointer<'a>,
        shape: &[u64],
        block: &[u64],
    ) -> Result<Descriptor<'a>, RuntimeError> {
        let mut strides: SmallVec<[u64; MAX_RANK]> = SmallVec::from_elem(1, shape.len());
        for dim in (1..shape.len()).rev() {
            strides[dim - 1] = strides[dim].saturating_mul(shape[dim]);
        }
        Descriptor::new(base, shape, &strides, block)
    }

    /// What lies outside of the tensor reads as NaN.
    #[must_use]
    pub fn pad_with_nan(self) -> Descriptor<'a> {
        Descriptor { nan: true, ..self }
    }

    /// What a launch is given in its place: for lists of arguments that are made at run time.
    pub fn parts(&self) -> Vec<Arg<'a>> {
        let mut list = ArgList::new();
        self.push(&mut list);
        list.into_vec()
    }
}

impl<'a> Argument<'a> for &Descriptor<'a> {
    const STRUCTURED: bool = true;

    fn arg(self) -> Arg<'a> {
        (*self).arg()
    }

    fn push(self, list: &mut ArgList<'a>) {
        (*self).push(list);
    }
}

impl<'a> Argument<'a> for Descriptor<'a> {
    const STRUCTURED: bool = true;

    fn arg(self) -> Arg<'a> {
        self.base.into()
    }

    /// A mark that tells rank and blocks, then the address, the sizes, and the strides of all dimensions but the last.
    fn push(self, list: &mut ArgList<'a>) {
        let extents = self
            .block
            .iter()
            .rev()
            .fold(0, |all, &log| all << 8 | u64::from(log));
        let bits = extents << 16 | u64::from(self.nan) << 8 | self.rank as u64;
        list.push(Arg::mark(DESCRIPTOR, bits));
        list.push(self.base);
        list.extend(self.shape[..self.rank].iter().map(|&size| Arg::from(size)));
        let strides = self.strides[..self.rank - 1].iter();
        list.extend(strides.map(|&stride| Arg::from(stride)));
    }
}
