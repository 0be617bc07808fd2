//! Library functions on blocks that are compositions of ops, for front ends and users of the builder: sorting, reversing,
//! interleaving, running sums, counting.
//!
//! Each appends to the builder's block and gives the result. What an op would refuse is an error of the builder, as for the op;
//! what only the composition refuses is a [`ComposeError`].

mod sort;

pub use sort::{SortOrder, bitonic_merge, sort, top};

use super::attrs::IntPred;
use super::builder::TileBuilder;
use super::entities::Value;
use super::types::{Elem, Scalar, TileType, ValueType};
use crate::linear_layout::shape::{Shape, ShapeError};

/// Why a composition cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ComposeError {
    /// A scalar where a block is needed.
    #[error("a block was expected, found {0}")]
    Block(String),
    /// Truth values and pointers have no order.
    #[error("elements of type {0} cannot be sorted")]
    Unordered(Elem),
    /// More elements asked for than there are, or no power of two.
    #[error(
        "{wanted} elements of {extent} cannot be kept: the number must be a power of two up to the extent"
    )]
    Count {
        /// Elements asked for.
        wanted: u64,
        /// Elements along the axis.
        extent: u64,
    },
    /// A dimension that the block does not have.
    #[error("there is no dimension {axis} in a block of {rank}")]
    Axis {
        /// The dimension asked for.
        axis: u8,
        /// Dimensions of the block.
        rank: usize,
    },
    /// Elements that cannot be counted.
    #[error("elements of type {0} cannot be counted")]
    NotInteger(Elem),
    /// Extents that make no block.
    #[error(transparent)]
    Shape(#[from] ShapeError),
}

fn line(extent: u64) -> Result<Shape, ShapeError> {
    Shape::new(&[extent])
}

fn expect_axis(ty: TileType, axis: u8) -> Result<(), ComposeError> {
    let rank = ty.shape.rank();
    match usize::from(axis) < rank {
        true => Ok(()),
        false => Err(ComposeError::Axis { axis, rank }),
    }
}

/// Numbers along dimension `axis` of a block of the given rank, the other extents being 1.
fn along(b: &mut TileBuilder, numbers: Value, axis: usize, rank: usize) -> Value {
    let ty = b.ty(numbers);
    let mut log2 = vec![0; rank];
    log2[axis] = ty.shape.log2()[0];
    let shape =
        Shape::from_log2(&log2).expect("as many elements as before, and a rank that is in use");
    b.reshape(numbers, ty.with_shape(shape))
}

/// The block with the elements along `axis` in reverse order.
///
/// # Errors
///
/// A dimension that is not there.
pub fn flip(b: &mut TileBuilder, x: Value, axis: u8) -> Result<Value, ComposeError> {
    let ty = b.ty(x);
    expect_axis(ty, axis)?;
    let extent = ty.shape.extent(usize::from(axis));
    let line = line(extent)?;
    let range = b.arange(0, TileType::block(Elem::I32, line));
    let last = b.i32(extent as i32 - 1, line);
    let index = b.isub(last, range);
    let index = along(b, index, usize::from(axis), ty.shape.rank());
    let index = b.to_shape(index, ty.shape);
    Ok(b.gather(x, index, axis))
}

/// The elements of `x` and `y` in turns along the last dimension, which becomes twice as long; of two scalars a block of two.
///
/// # Errors
///
/// Too large a block.
pub fn interleave(b: &mut TileBuilder, x: Value, y: Value) -> Result<Value, ComposeError> {
    let ty = b.ty(x);
    let joined = b.join(x, y);
    let mut log2 = ty.shape.log2().to_vec();
    match log2.last_mut() {
        None => return Ok(joined),
        Some(last) => *last += 1,
    }
    let shape = Shape::from_log2(&log2)?;
    Ok(b.reshape(joined, ty.with_shape(shape)))
}

/// Running sums along `axis`, `reverse` from the last element on, in the type of the elements.
pub fn cumsum(b: &mut TileBuilder, x: Value, axis: u8, reverse: bool) -> Value {
    let is_float = b.ty(x).elem.is_float();
    b.scan_one(x, axis, reverse, |b, l, r| match is_float {
        true => b.fadd(l, r),
        false => b.iadd(l, r),
    })
}

/// Running products along `axis`, `reverse` from the last element on, in the type of the elements.
pub fn cumprod(b: &mut TileBuilder, x: Value, axis: u8, reverse: bool) -> Value {
    let is_float = b.ty(x).elem.is_float();
    b.scan_one(x, axis, reverse, |b, l, r| match is_float {
        true => b.fmul(l, r),
        false => b.imul(l, r),
    })
}

/// How many elements of `x`, unsigned integers, are each of the numbers below `bins`, a power of two: i32 of one dimension. Larger
/// elements, and those where `mask` (of the extents of `x`) is false, are not counted.
///
/// # Errors
///
/// Elements that are no integers, a number of bins that is no extent.
pub fn histogram(
    b: &mut TileBuilder,
    x: Value,
    bins: u64,
    mask: Option<Value>,
) -> Result<Value, ComposeError> {
    let ty = b.ty(x);
    let result = TileType::block(Elem::I32, line(bins)?);
    if ty.is_scalar() {
        return Err(ComposeError::Block(ty.to_string()));
    }
    if !ty.elem.is_int() {
        return Err(ComposeError::NotInteger(ty.elem));
    }
    let bits = ty.elem.bits();
    // Masked-off elements become a number that no bin has, for which there must be one.
    let has_room = bits > 1 && (mask.is_none() || bits >= 32 || bins >> bits == 0);
    let mut x = x;
    let mut ty = ty;
    if !has_room {
        ty = ty.with_elem(Elem::I32);
        x = b.zext(x, ty);
    }
    if let Some(mask) = mask {
        let none = b.const_bits(u64::MAX, ty);
        x = b.select(mask, x, none);
    }
    Ok(b.histogram(x, result))
}

/// The integer type of the width of an element.
fn integer_of(elem: Elem) -> Option<Elem> {
    let scalar = match elem.scalar()?.bits() {
        8 => Scalar::I8,
        16 => Scalar::I16,
        32 => Scalar::I32,
        64 => Scalar::I64,
        _ => return None,
    };
    Some(Elem::Num(scalar))
}

/// Whether each element of `x` is below zero, as a signed integer.
fn is_negative(b: &mut TileBuilder, x: Value) -> Value {
    let zero = b.ty(x);
    let zero = b.const_bits(0, zero);
    b.icmp(x, zero, IntPred::Slt)
}
