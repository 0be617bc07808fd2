//! Block pointers and tensor descriptors as pointers and masks.
//!
//! A tensor in device memory has a base, extents and strides; a block of it has an offset per dimension. Element `i`
//! along dimension `d` of the block has the coordinate `offset[d] + i` and the address
//! `base + sum of coordinate[d] * stride[d]`, all in 64 bits. The part of the sum that is the same for the whole block is
//! added to the base as a scalar, so that what is left are ranges times strides, in which the axis analysis sees
//! contiguity. A dimension is checked on request: its coordinates must not be negative and be below the extent.
//!
//! Front ends for the Triton language use it for `make_block_ptr`, `advance` and descriptors. The order of dimensions
//! that those state says nothing that strides do not, so it is validated and dropped.

use super::attrs::{Attr, IntPred};
use super::builder::TileBuilder;
use super::dfg::{InstData, ValueList};
use super::entities::Value;
use super::ops::TileOp;
use super::types::{Elem, Scalar, TileType};
use crate::linear_layout::shape::Shape;

/// Why a block pointer or descriptor cannot be made or used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TensorPtrError {
    /// A list is too short or too long.
    #[error("the block has {rank} dimensions, {found} {what} are given")]
    Rank {
        /// What the list holds.
        what: &'static str,
        /// Dimensions of the block.
        rank: usize,
        /// Length of the list.
        found: usize,
    },
    /// The order is no permutation of the dimensions.
    #[error("the order {0:?} does not name each dimension once")]
    Order(Vec<usize>),
    /// A checked dimension that is not there.
    #[error("there is no dimension {0} to check")]
    Dimension(usize),
    /// Integers have no NaN.
    #[error("elements of type {0} cannot be padded with NaN")]
    Padding(Scalar),
    /// The base is no pointer to device memory.
    #[error("the base is {0}, not a pointer")]
    Base(String),
}

/// What elements outside of the tensor read as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Padding {
    /// Zero.
    #[default]
    Zero,
    /// Not a number.
    Nan,
}

/// A block of a tensor in device memory.
#[derive(Clone, Debug)]
pub struct BlockPtr {
    base: Value,
    /// Extents of the tensor, i64.
    extents: ValueList,
    /// Elements from one to the next along each dimension, i64.
    strides: ValueList,
    /// Coordinates of the block's first element, i64.
    offsets: ValueList,
    block: Shape,
}

/// An i32 or i64 as i64.
fn wide(b: &mut TileBuilder, x: Value) -> Value {
    match b.ty(x).elem {
        Elem::I64 => x,
        _ => b.sext(x, TileType::scalar(Elem::I64)),
    }
}

fn all_wide(b: &mut TileBuilder, list: &[Value]) -> ValueList {
    list.iter().map(|&x| wide(b, x)).collect()
}

impl BlockPtr {
    /// A block of the tensor at `base`. Extents, strides and offsets are scalars, i32 (signed) or i64, one per dimension;
    /// `order` lists the dimensions, the one that runs fastest first.
    ///
    /// # Errors
    ///
    /// Lists of wrong length, an order that is no permutation, a base that is no pointer.
    pub fn new(
        b: &mut TileBuilder,
        base: Value,
        (extents, strides): (&[Value], &[Value]),
        offsets: &[Value],
        block: Shape,
        order: &[usize],
    ) -> Result<BlockPtr, TensorPtrError> {
        let ty = b.ty(base);
        if !ty.is_scalar() || !ty.elem.is_ptr() {
            return Err(TensorPtrError::Base(ty.to_string()));
        }
        let rank = block.rank();
        for (what, found) in [
            ("extents", extents.len()),
            ("strides", strides.len()),
            ("offsets", offsets.len()),
            ("dimensions of the order", order.len()),
        ] {
            if found != rank {
                return Err(TensorPtrError::Rank { what, rank, found });
            }
        }
        let mut sorted = order.to_vec();
        sorted.sort_unstable();
        if !sorted.iter().copied().eq(0..rank) {
            return Err(TensorPtrError::Order(order.to_vec()));
        }
        Ok(BlockPtr {
            base,
            extents: all_wide(b, extents),
            strides: all_wide(b, strides),
            offsets: all_wide(b, offsets),
            block,
        })
    }

    /// The block moved by a number of elements along each dimension.
    ///
    /// # Errors
    ///
    /// A list of wrong length.
    pub fn advance(&self, b: &mut TileBuilder, by: &[Value]) -> Result<BlockPtr, TensorPtrError> {
        self.expect_rank("distances", by.len())?;
        let by = all_wide(b, by);
        let pairs = self.offsets.iter().zip(&by);
        let moved: ValueList = pairs.map(|(&offset, &by)| b.iadd(offset, by)).collect();
        Ok(self.with_offsets(&moved))
    }

    /// Coordinates of the block's first element, i64: what loops carry of a block pointer.
    pub fn offsets(&self) -> &[Value] {
        &self.offsets
    }

    /// The block of the same tensor at other coordinates, i64: inside of a loop, or after it.
    pub fn with_offsets(&self, offsets: &[Value]) -> BlockPtr {
        BlockPtr {
            offsets: ValueList::from_slice(offsets),
            ..self.clone()
        }
    }

    /// Extents of the block.
    pub fn block(&self) -> Shape {
        self.block
    }

    fn expect_rank(&self, what: &'static str, found: usize) -> Result<(), TensorPtrError> {
        let rank = self.block.rank();
        if found == rank {
            Ok(())
        } else {
            Err(TensorPtrError::Rank { what, rank, found })
        }
    }

    /// `0, 1, ..` along a dimension, as i64 with extents of 1 elsewhere.
    fn numbers(&self, b: &mut TileBuilder, dim: usize) -> Value {
        let count = self.block.extent(dim);
        let line = Shape::new(&[count]).expect("an extent of a shape is one of a line");
        let mut x = b.arange(0, TileType::block(Elem::I32, line));
        x = b.sext(x, TileType::block(Elem::I64, line));
        for other in 0..self.block.rank() {
            if other != dim {
                x = b.expand_dims(x, other as u8);
            }
        }
        x
    }

    /// Addresses of the block's elements.
    pub fn pointers(&self, b: &mut TileBuilder) -> Value {
        let elem = b.ty(self.base).elem;
        let mut start = self.base;
        for (&offset, &stride) in self.offsets.iter().zip(&self.strides) {
            let distance = b.imul(offset, stride);
            start = b.addptr(start, distance);
        }
        let ty = TileType::block(elem, self.block);
        let mut pointers = b.splat(start, ty);
        for dim in 0..self.block.rank() {
            let numbers = self.numbers(b, dim);
            let shape = b.ty(numbers).shape;
            let stride = b.to_shape(self.strides[dim], shape);
            let distance = b.imul(numbers, stride);
            let distance = b.to_shape(distance, self.block);
            pointers = b.addptr(pointers, distance);
        }
        pointers
    }

    /// Which elements lie inside of the tensor in the given dimensions; none stands for all.
    ///
    /// # Errors
    ///
    /// A dimension that is not there.
    pub fn inside(
        &self,
        b: &mut TileBuilder,
        checked: &[usize],
    ) -> Result<Option<Value>, TensorPtrError> {
        if let Some(&dim) = checked.iter().find(|&&dim| dim >= self.block.rank()) {
            return Err(TensorPtrError::Dimension(dim));
        }
        let mut mask = None;
        for dim in (0..self.block.rank()).filter(|dim| checked.contains(dim)) {
            let numbers = self.numbers(b, dim);
            let shape = b.ty(numbers).shape;
            let offset = b.to_shape(self.offsets[dim], shape);
            let coordinate = b.iadd(offset, numbers);
            let zero = b.const_bits(0, TileType::block(Elem::I64, shape));
            let extent = b.to_shape(self.extents[dim], shape);
            let from = b.icmp(coordinate, zero, IntPred::Sge);
            let below = b.icmp(coordinate, extent, IntPred::Slt);
            let both = b.and(from, below);
            let both = b.to_shape(both, self.block);
            mask = Some(match mask {
                None => both,
                Some(mask) => b.and(mask, both),
            });
        }
        Ok(mask)
    }

    /// The block's elements; those outside of the tensor in a checked dimension are padded. `attrs` are those of the load.
    ///
    /// # Errors
    ///
    /// A dimension that is not there, NaN for integers.
    pub fn load(
        &self,
        b: &mut TileBuilder,
        checked: &[usize],
        padding: Padding,
        attrs: &[Attr],
    ) -> Result<Value, TensorPtrError> {
        let scalar = b.ty(self.base).elem.pointee().unwrap_or(Scalar::I8);
        let pad = match padding {
            Padding::Zero => None,
            Padding::Nan => Some(nan(scalar).ok_or(TensorPtrError::Padding(scalar))?),
        };
        let mask = self.inside(b, checked)?;
        let pointers = self.pointers(b);
        let mut data = InstData::new(TileOp::Load, &[pointers]);
        if let Some(mask) = mask {
            data.args.push(mask);
            let ty = TileType::block(Elem::Num(scalar), self.block);
            data.args.extend(pad.map(|bits| b.const_bits(bits, ty)));
        }
        data.attrs.extend(attrs.iter().cloned());
        let inst = b.inst(data, &[]);
        Ok(b.func().dfg.insts[inst].results[0])
    }

    /// Writes `value`, of the block's extents, where the tensor is in the checked dimensions. `attrs` are those of the store.
    ///
    /// # Errors
    ///
    /// A dimension that is not there.
    pub fn store(
        &self,
        b: &mut TileBuilder,
        value: Value,
        checked: &[usize],
        attrs: &[Attr],
    ) -> Result<(), TensorPtrError> {
        let mask = self.inside(b, checked)?;
        let pointers = self.pointers(b);
        let mut data = InstData::new(TileOp::Store, &[pointers, value]);
        data.args.extend(mask);
        data.attrs.extend(attrs.iter().cloned());
        b.inst(data, &[]);
        Ok(())
    }
}

/// The bits of a NaN.
fn nan(scalar: Scalar) -> Option<u64> {
    Some(match scalar {
        Scalar::F16 | Scalar::Bf16 => 0x7fff,
        Scalar::F32 => 0x7fff_ffff,
        Scalar::F64 => 0x7fff_ffff_ffff_ffff,
        Scalar::F8E4M3 | Scalar::F8E5M2 => 0x7f,
        _ => return None,
    })
}

/// A tensor in device memory and the blocks that are taken from it: what tensor descriptors are on targets without
/// bulk transfers. Every dimension is checked.
#[derive(Clone, Debug)]
pub struct TensorDesc {
    whole: BlockPtr,
    padding: Padding,
}

impl TensorDesc {
    /// Blocks of the tensor at `base`, whose last dimension has stride 1: `strides` are those of the others and may be
    /// i32 or i64, as extents may.
    ///
    /// # Errors
    ///
    /// Lists of wrong length, a base that is no pointer, NaN for integers.
    pub fn new(
        b: &mut TileBuilder,
        base: Value,
        (extents, strides): (&[Value], &[Value]),
        block: Shape,
        padding: Padding,
    ) -> Result<TensorDesc, TensorPtrError> {
        let scalar = b.ty(base).elem.pointee();
        if padding == Padding::Nan
            && let Some(scalar) = scalar.filter(|&s| nan(s).is_none())
        {
            return Err(TensorPtrError::Padding(scalar));
        }
        let word = TileType::scalar(Elem::I64);
        let one = b.const_bits(1, word);
        let zero = b.const_bits(0, word);
        let strides = [strides, &[one]].concat();
        let rank = block.rank();
        let order: Vec<usize> = (0..rank).rev().collect();
        let offsets = vec![zero; rank];
        let whole = BlockPtr::new(b, base, (extents, &strides), &offsets, block, &order)?;
        // What the analysis of axes makes use of: rows of descriptors are aligned to 16 bytes, so the promise below
        // holds for every descriptor that bulk transfers would take.
        let bytes = scalar.map_or(1, Scalar::bytes);
        let mut whole = whole;
        for stride in whole.strides.iter_mut().take(rank.saturating_sub(1)) {
            *stride = b.assume_multiple(*stride, [16 / bytes.min(16)].into_iter().collect());
        }
        Ok(TensorDesc { whole, padding })
    }

    fn at(&self, b: &mut TileBuilder, offsets: &[Value]) -> Result<BlockPtr, TensorPtrError> {
        self.whole.expect_rank("offsets", offsets.len())?;
        let offsets = all_wide(b, offsets);
        Ok(self.whole.with_offsets(&offsets))
    }

    fn all(&self) -> Vec<usize> {
        (0..self.whole.block.rank()).collect()
    }

    /// The block at these coordinates; what lies outside of the tensor is padded.
    ///
    /// # Errors
    ///
    /// A list of wrong length.
    pub fn load(&self, b: &mut TileBuilder, offsets: &[Value]) -> Result<Value, TensorPtrError> {
        let block = self.at(b, offsets)?;
        block.load(b, &self.all(), self.padding, &[])
    }

    /// Writes the block at these coordinates; what lies outside of the tensor is dropped.
    ///
    /// # Errors
    ///
    /// A list of wrong length.
    pub fn store(
        &self,
        b: &mut TileBuilder,
        offsets: &[Value],
        value: Value,
    ) -> Result<(), TensorPtrError> {
        let block = self.at(b, offsets)?;
        block.store(b, value, &self.all(), &[])
    }
}
