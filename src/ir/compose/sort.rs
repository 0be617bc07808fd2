//! Sorting networks: bitonic merges of runs, after K. E. Batcher, "Sorting networks and their applications" (1968).
//!
//! The 2^n elements along the last dimension are seen as a cube of n dimensions of extent 2, one for each bit of the index. A
//! comparison along a dimension is a reduction to the smaller and the larger of each pair, joined again in this order: no
//! element finds out where its partner is, so the step costs the same two operations wherever layouts put the bit, with a
//! shuffle for a bit of the lane and nothing for one of the register.
//!
//! All comparisons put the smaller element first. Where a run must go down, its elements are complemented, which turns the
//! order of integers around; so floats are sorted as integers: the bits of a negative number below its sign are flipped. That
//! orders -0 before +0 and NaNs behind the infinity of their sign, and loses nothing.

use super::{ComposeError, along, integer_of, is_negative};
use crate::ir::attrs::List;
use crate::ir::builder::TileBuilder;
use crate::ir::dfg::ValueList;
use crate::ir::entities::Value;
use crate::ir::types::{Elem, TileType, ValueType};
use crate::linear_layout::shape::Shape;

/// What comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SortOrder {
    /// The largest first.
    pub descending: bool,
    /// Integers have no sign.
    pub unsigned: bool,
}

/// The elements along the last dimension in order.
///
/// Floats have the total order of IEEE 754: -0 before +0, NaNs outside of the infinities by their sign.
///
/// # Errors
///
/// A scalar, elements without order.
pub fn sort(b: &mut TileBuilder, x: Value, order: SortOrder) -> Result<Value, ComposeError> {
    let extent = last_extent(b.ty(x))?;
    top(b, x, extent, order)
}

/// The first `count` of the elements along the last dimension in order, a power of two.
///
/// # Errors
///
/// A scalar, elements without order, a count that is no power of two or more than there are.
pub fn top(
    b: &mut TileBuilder,
    x: Value,
    count: u64,
    order: SortOrder,
) -> Result<Value, ComposeError> {
    let extent = last_extent(b.ty(x))?;
    if !count.is_power_of_two() || count > extent {
        let wanted = count;
        return Err(ComposeError::Count { wanted, extent });
    }
    let mut cube = Cube::of(b, x, order)?;
    let keep = count.trailing_zeros();
    for stage in 1..=keep {
        cube.merge(b, stage);
    }
    while cube.dims > keep {
        // Of a run that goes up and one that goes down, the smaller element of each pair: they are the smallest of both.
        cube.complement_where(b, None);
        let axis = cube.axis(keep);
        let unsigned = order.unsigned;
        cube.x = b.reduce_one(cube.x, axis, |b, l, r| smaller(b, unsigned, l, r));
        cube.dims -= 1;
        cube.merge(b, keep);
    }
    Ok(cube.finish(b, count))
}

/// The elements along the last dimension, which go up and then down or down and then up, in order.
///
/// # Errors
///
/// A scalar, elements without order.
pub fn bitonic_merge(
    b: &mut TileBuilder,
    x: Value,
    order: SortOrder,
) -> Result<Value, ComposeError> {
    let extent = last_extent(b.ty(x))?;
    let mut cube = Cube::of(b, x, order)?;
    cube.merge(b, cube.dims);
    Ok(cube.finish(b, extent))
}

fn last_extent(ty: TileType) -> Result<u64, ComposeError> {
    match ty.shape.rank().checked_sub(1) {
        Some(last) => Ok(ty.shape.extent(last)),
        None => Err(ComposeError::Block(ty.to_string())),
    }
}

fn smaller(b: &mut TileBuilder, unsigned: bool, l: Value, r: Value) -> Value {
    match unsigned {
        true => b.umin(l, r),
        false => b.smin(l, r),
    }
}

fn larger(b: &mut TileBuilder, unsigned: bool, l: Value, r: Value) -> Value {
    match unsigned {
        true => b.umax(l, r),
        false => b.smax(l, r),
    }
}

/// Keys as a block whose last `dims` dimensions have extent 2, one for each bit of the index, the lowest last.
struct Cube {
    x: Value,
    dims: u32,
    /// Number of dimensions before those.
    lead: u32,
    /// The bit of the index where it is set the keys are complemented.
    complemented: Option<u32>,
    /// Type and order of the elements.
    ty: TileType,
    order: SortOrder,
}

impl Cube {
    fn of(b: &mut TileBuilder, x: Value, order: SortOrder) -> Result<Cube, ComposeError> {
        let ty = b.ty(x);
        let unordered = ComposeError::Unordered(ty.elem);
        if ty.elem.is_ptr() {
            return Err(unordered);
        }
        let word = integer_of(ty.elem).ok_or(unordered)?;
        let dims = ty.shape.log2().last().map_or(0, |&e| u32::from(e));
        let others = (ty.shape.log2_elements() - dims) as u8;
        let lead = u32::from(others > 0);
        let mut keys = x;
        let key_ty = ty.with_elem(word);
        if ty.elem.is_float() {
            let bits = b.bitcast(x, key_ty);
            keys = fold_sign(b, bits);
        }
        if order.descending {
            let ones = b.const_bits(u64::MAX, key_ty);
            keys = b.xor(keys, ones);
        }
        let mut log2 = vec![others; lead as usize];
        log2.resize((lead + dims) as usize, 1);
        let shape = Shape::from_log2(&log2)?;
        let x = match shape == ty.shape || shape.is_scalar() {
            true => keys,
            false => b.reshape(keys, key_ty.with_shape(shape)),
        };
        Ok(Cube {
            x,
            dims,
            lead,
            complemented: None,
            ty,
            order: SortOrder {
                unsigned: order.unsigned && !ty.elem.is_float(),
                ..order
            },
        })
    }

    /// The dimension of a bit of the index.
    fn axis(&self, bit: u32) -> u8 {
        (self.lead + self.dims - 1 - bit) as u8
    }

    /// Sorts runs of `2^stage` elements that go up and then down: up, and down where the index has the bit above.
    fn merge(&mut self, b: &mut TileBuilder, stage: u32) {
        let down = Some(stage).filter(|&bit| bit < self.dims);
        self.complement_where(b, down);
        for bit in (0..stage).rev() {
            self.compare(b, bit);
        }
    }

    /// Complements the keys so that they are where the index has the bit, and nowhere else.
    fn complement_where(&mut self, b: &mut TileBuilder, bit: Option<u32>) {
        let changed = [self.complemented, bit];
        self.complemented = bit;
        if changed[0] == changed[1] {
            return;
        }
        let ty = b.ty(self.x);
        let mut flips: Option<Value> = None;
        for bit in changed.into_iter().flatten() {
            let pair = Shape::from_log2(&[1]).expect("two elements are a block");
            let range = b.arange(0, TileType::block(Elem::I32, pair));
            let zero = b.i32(0, pair);
            let mask = b.isub(zero, range);
            let mask = match ty.elem.bits() {
                32 => mask,
                64 => b.sext(mask, TileType::block(ty.elem, pair)),
                _ => b.itrunc(mask, TileType::block(ty.elem, pair)),
            };
            let axis = usize::from(self.axis(bit));
            let mask = along(b, mask, axis, ty.shape.rank());
            let mask = b.to_shape(mask, ty.shape);
            flips = Some(match flips {
                None => mask,
                Some(other) => b.xor(other, mask),
            });
        }
        if let Some(flips) = flips {
            self.x = b.xor(self.x, flips);
        }
    }

    /// Puts the smaller of the two elements that differ in the bit of the index first.
    fn compare(&mut self, b: &mut TileBuilder, bit: u32) {
        let axis = self.axis(bit);
        let rank = self.lead + self.dims;
        let unsigned = self.order.unsigned;
        let both = b.reduce(&[self.x, self.x], axis, |b, l, r| {
            let pair = [
                smaller(b, unsigned, l[0], r[0]),
                larger(b, unsigned, l[1], r[1]),
            ];
            ValueList::from_slice(&pair)
        });
        let joined = b.join(both[0], both[1]);
        let mut dims: List = (0..rank - 1).collect();
        dims.insert(usize::from(axis), rank - 1);
        self.x = b.permute(joined, dims);
    }

    /// The elements, `count` along the last dimension.
    fn finish(mut self, b: &mut TileBuilder, count: u64) -> Value {
        self.complement_where(b, None);
        let mut log2 = self.ty.shape.log2().to_vec();
        if let Some(last) = log2.last_mut() {
            *last = count.trailing_zeros() as u8;
        }
        let shape = Shape::from_log2(&log2).expect("no more elements than before");
        let ty = b.ty(self.x).with_shape(shape);
        let mut keys = match b.ty(self.x).shape == shape {
            true => self.x,
            false => b.reshape(self.x, ty),
        };
        if self.order.descending {
            let ones = b.const_bits(u64::MAX, ty);
            keys = b.xor(keys, ones);
        }
        if !self.ty.elem.is_float() {
            return keys;
        }
        let bits = fold_sign(b, keys);
        b.bitcast(bits, self.ty.with_shape(shape))
    }
}

/// Flips the bits below the sign where it is set: floats as signed integers of the same order, and back.
fn fold_sign(b: &mut TileBuilder, bits: Value) -> Value {
    let ty = b.ty(bits);
    let below = b.const_bits((1 << (ty.elem.bits() - 1)) - 1, ty);
    let flipped = b.xor(bits, below);
    let negative = is_negative(b, bits);
    b.select(negative, flipped, bits)
}
