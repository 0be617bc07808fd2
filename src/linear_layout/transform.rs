//! Operations that make layouts from layouts.
//!
//! **Forward** operations give the result's layout from the operand's: [`reshape`], [`expand_dims`],
//! [`permute`], [`broadcast_to`], [`reduce`], [`join`], [`split`]. **Backward** operations (`before_..`)
//! give an operand's layout from the one wanted of the result. In every pair the data stays in its
//! thread: `result.project..().register_map(&operand)` exists, and is the identity wherever the text
//! below says nothing else. `x.before_f(..).f(..)` has `x`'s elements at `x`'s locations for all of
//! them, except that broadcast and reduce, which lose information, choose it anew.
//!
//! **Canonical registers.** Projecting an axis out of a layout leaves registers that hold the same
//! element. The operations that say so drop them ([`LinearLayout::without_free_registers`]), so that the
//! sum over an axis held by 16 registers is held by one.
//!
//! [`reshape`]: LinearLayout::reshape
//! [`expand_dims`]: LinearLayout::expand_dims
//! [`permute`]: LinearLayout::permute
//! [`broadcast_to`]: LinearLayout::broadcast_to
//! [`reduce`]: LinearLayout::reduce
//! [`join`]: LinearLayout::join
//! [`split`]: LinearLayout::split

use super::gf2;
use super::layout::{Columns, HwDim, LayoutKind, LinearLayout};
use super::shape::Shape;

/// Where the bits of an old flat index go in a new one; a bit without a target is dropped.
struct BitMap {
    to: [Option<u8>; 32],
}

impl BitMap {
    fn new() -> BitMap {
        BitMap { to: [None; 32] }
    }

    /// Sends dimension `from` of `old` to dimension `to` of `new`, low bits to low bits.
    fn dim(&mut self, old: &Shape, from: usize, new: &Shape, to: usize) {
        let width = old.log2()[from].min(new.log2()[to]);
        for bit in 0..u32::from(width) {
            let target = new.bit_offset(to) + bit;
            self.to[(old.bit_offset(from) + bit) as usize] = Some(target as u8);
        }
    }

    fn apply(&self, index: u32) -> u32 {
        let bits = (0..32).filter(|bit| index >> bit & 1 == 1);
        bits.filter_map(|bit| self.to[bit])
            .fold(0, |sum, bit| sum | 1 << bit)
    }
}

impl LinearLayout {
    /// The same elements under another shape with as many: `reshape` in row-major order, which leaves
    /// flat indices alone. Its own inverse with the shapes exchanged.
    pub(crate) fn reshape(&self, shape: Shape) -> LinearLayout {
        assert_eq!(
            self.shape().log2_elements(),
            shape.log2_elements(),
            "a reshape keeps the number of elements"
        );
        self.map_columns(shape, |c| c)
    }

    /// The layout after a dimension of extent 1 is put before `axis`.
    pub(crate) fn expand_dims(&self, axis: usize) -> LinearLayout {
        let shape = self.shape().with_unit_dim(axis);
        self.reshape(shape.expect("the verifier bounds the rank of results"))
    }

    /// The operand's layout of an [`expand_dims`](Self::expand_dims) at `axis` with this result.
    pub(crate) fn before_expand_dims(&self, axis: usize) -> LinearLayout {
        assert_eq!(
            self.shape().extent(axis),
            1,
            "the new dimension has extent 1"
        );
        self.reshape(self.shape().without_dim(axis))
    }

    /// The layout after dimensions are renamed so that dimension `i` of the result is dimension
    /// `order[i]` of the operand; `order` is a permutation.
    pub(crate) fn permute(&self, order: &[usize]) -> LinearLayout {
        let old = self.shape();
        assert_eq!(order.len(), old.rank(), "one entry for each dimension");
        let extents: Vec<u8> = order.iter().map(|&dim| old.log2()[dim]).collect();
        let new = Shape::from_log2(&extents).expect("a permutation keeps rank and size");
        assert_eq!(
            new.log2_elements(),
            old.log2_elements(),
            "the order is a permutation"
        );
        let mut map = BitMap::new();
        for (to, &from) in order.iter().enumerate() {
            map.dim(&old, from, &new, to);
        }
        self.map_columns(new, |c| map.apply(c))
    }

    /// The layout of an operand of a product of matrices, of the shape, that gives each thread all it needs for its elements
    /// of the result with this layout: whole rows of the left operand, whole columns of the right one. The numbers along the summed dimension are the lowest register bits.
    pub(crate) fn before_dot(&self, shape: Shape, is_left: bool) -> LinearLayout {
        let old = self.shape();
        let rows = old.rank() - 2;
        let (kept, summed) = if is_left {
            (rows, rows + 1)
        } else {
            (rows + 1, rows)
        };
        let mut map = BitMap::new();
        for dim in (0..rows).chain([kept]) {
            map.dim(&old, dim, &shape, dim);
        }
        let layout = self.map_columns(shape, |c| map.apply(c));
        let width = u32::from(shape.log2()[summed]);
        let inner = (0..width).map(|bit| 1 << (shape.bit_offset(summed) + bit));
        let columns = inner.chain(layout.columns(HwDim::Register).iter().copied());
        let columns: Columns = columns.collect();
        layout
            .with_columns(HwDim::Register, columns)
            .without_free_registers()
    }

    /// The operand's layout of a [`permute`](Self::permute) by `order` with this result.
    pub(crate) fn before_permute(&self, order: &[usize]) -> LinearLayout {
        let mut inverse = vec![0; order.len()];
        for (to, &from) in order.iter().enumerate() {
            inverse[from] = to;
        }
        self.permute(&inverse)
    }

    /// A result layout for broadcasting to `shape`, of the same rank, dimensions of extent 1 growing.
    ///
    /// The bits of the new indices go, in ascending order, to lane bits whose column is zero, then to
    /// such warp bits, and what is left to new registers above the old. So threads that held copies now
    /// hold different elements, and the slice of a blocked layout grows back into that layout. Law:
    /// `x.broadcast_to(s).before_broadcast(x.shape())` equals `x` up to the canonical registers.
    pub(crate) fn broadcast_to(&self, shape: Shape) -> LinearLayout {
        let old = self.shape();
        assert_eq!(old.rank(), shape.rank(), "a broadcast keeps the rank");
        let mut map = BitMap::new();
        let mut fresh = 0;
        for dim in 0..old.rank() {
            if old.extent(dim) == shape.extent(dim) {
                map.dim(&old, dim, &shape, dim);
            } else {
                assert_eq!(old.extent(dim), 1, "only dimensions of extent 1 grow");
                fresh |= shape.bit_mask(dim);
            }
        }
        let mut fresh = (0..32).map(|bit| 1 << bit).filter(|bit| fresh & bit != 0);
        let mut layout = self.map_columns(shape, |c| map.apply(c));
        for dim in [HwDim::Lane, HwDim::Warp] {
            let mut columns = Columns::from_slice(layout.columns(dim));
            for column in columns.iter_mut().filter(|c| **c == 0) {
                *column = fresh.next().unwrap_or(0);
            }
            layout = layout.with_columns(dim, columns);
        }
        let mut registers = Columns::from_slice(layout.columns(HwDim::Register));
        registers.extend(fresh);
        layout.with_columns(HwDim::Register, registers)
    }

    /// The layout of what remains of each element's index when the dimensions that have extent 1 in
    /// `operand` are forgotten: for each location of a broadcast's result, the operand's element that it
    /// shows. Locations stay; those that differed in forgotten dimensions alone now hold copies.
    pub(crate) fn project_broadcast(&self, operand: Shape) -> LinearLayout {
        let shape = self.shape();
        assert_eq!(operand.rank(), shape.rank(), "a broadcast keeps the rank");
        let mut map = BitMap::new();
        for dim in 0..shape.rank() {
            let extent = operand.extent(dim);
            assert!(
                extent == 1 || extent == shape.extent(dim),
                "only dimensions of extent 1 grow"
            );
            map.dim(&shape, dim, &operand, dim);
        }
        self.map_columns(operand, |c| map.apply(c))
    }

    /// The operand's layout, with canonical registers, of a broadcast from shape `operand` with this
    /// result.
    pub(crate) fn before_broadcast(&self, operand: Shape) -> LinearLayout {
        self.project_broadcast(operand).without_free_registers()
    }

    /// The layout of the index without dimension `axis`, all locations kept: each shows the element
    /// of the reduced block that its own element contributes to.
    pub(crate) fn project(&self, axis: usize) -> LinearLayout {
        let old = self.shape();
        assert!(axis < old.rank(), "the axis is a dimension");
        let new = old.without_dim(axis);
        let mut map = BitMap::new();
        for dim in (0..old.rank()).filter(|&dim| dim != axis) {
            let to = if dim < axis { dim } else { dim - 1 };
            map.dim(&old, dim, &new, to);
        }
        self.map_columns(new, |c| map.apply(c))
    }

    /// The layout, with canonical registers, of a reduction along `axis`: every location that held part
    /// of a sum holds the sum.
    pub(crate) fn reduce(&self, axis: usize) -> LinearLayout {
        self.project(axis).without_free_registers()
    }

    /// An operand layout for a reduction of a block of shape `operand` along `axis` with this result.
    /// The axis is spread as [`broadcast_to`](Self::broadcast_to) spreads new dimensions, so
    /// `x.before_reduce(axis, s).reduce(axis)` is `x` up to canonical registers.
    pub(crate) fn before_reduce(&self, axis: usize, operand: Shape) -> LinearLayout {
        assert_eq!(
            operand.without_dim(axis),
            self.shape(),
            "the result's shape is the operand's without the axis"
        );
        self.expand_dims(axis).broadcast_to(operand)
    }

    /// The layout of two blocks of this layout joined in a new last dimension of extent 2: they become
    /// register bit 0.
    pub(crate) fn join(&self) -> LinearLayout {
        let mut extents = self.shape().log2().to_vec();
        extents.push(1);
        let shape = Shape::from_log2(&extents).expect("the verifier bounds the size of results");
        let layout = self.map_columns(shape, |c| c << 1);
        let mut registers = Columns::from_slice(&[1]);
        registers.extend_from_slice(layout.columns(HwDim::Register));
        layout.with_columns(HwDim::Register, registers)
    }

    /// The layout of two blocks of this layout joined in a new last dimension of extent 2, told apart by bit `bit` of `dim`, which
    /// only made copies before.
    pub(crate) fn join_copies(&self, dim: HwDim, bit: u32) -> LinearLayout {
        let free = self.free_mask(dim);
        assert!(free >> bit & 1 == 1, "the bit makes copies");
        let mut extents = self.shape().log2().to_vec();
        extents.push(1);
        let shape = Shape::from_log2(&extents).expect("the verifier bounds the size of results");
        let layout = self.map_columns(shape, |c| c << 1);
        let mut columns = Columns::from_slice(layout.columns(dim));
        columns[bit as usize] = 1;
        layout.with_columns(dim, columns)
    }

    /// The layout of the halves of a block whose last dimension has extent 2, and the register bit that
    /// tells them apart; `None` unless both halves of each pair are in one thread, told apart by one
    /// register bit. Undoes [`join`](Self::join).
    pub(crate) fn split(&self) -> Option<(LinearLayout, u32)> {
        let old = self.shape();
        let last = old.rank().checked_sub(1)?;
        assert_eq!(old.extent(last), 2, "the last dimension has extent 2");
        let registers = self.columns(HwDim::Register);
        let bit = registers.iter().position(|&c| c == 1)?;
        let odd = self.all_columns().iter().filter(|&&c| c & 1 == 1).count();
        if odd != 1 {
            return None;
        }
        let mut rest = Columns::from_slice(registers);
        rest.remove(bit);
        let layout = self.clone().with_columns(HwDim::Register, rest);
        let shape = old.without_dim(last);
        Some((layout.map_columns(shape, |c| c >> 1), bit as u32))
    }

    /// A layout near this one in which halves come apart: a lane or warp that tells the two of a pair apart takes the highest
    /// register bit instead, or makes copies if there is none. The halves' layout; `None` where pairs are told apart otherwise.
    pub(crate) fn halves_nearby(&self) -> Option<LinearLayout> {
        let old = self.shape();
        let last = old.rank().checked_sub(1)?;
        let odd = self.all_columns().iter().filter(|&&c| c & 1 == 1).count();
        let tells = |&dim: &HwDim| self.columns(dim).contains(&1);
        let dim = [HwDim::Lane, HwDim::Warp].into_iter().find(tells)?;
        if odd != 1 {
            return None;
        }
        let mut registers = Columns::from_slice(self.columns(HwDim::Register));
        let given = registers.pop().unwrap_or(0);
        let taken = self.columns(dim).iter();
        let taken = taken.map(|&c| if c == 1 { given } else { c }).collect();
        let layout = self.clone().with_columns(HwDim::Register, registers);
        let layout = layout.with_columns(dim, taken);
        Some(layout.map_columns(old.without_dim(last), |c| c >> 1))
    }

    /// The layout of each of two blocks whose [`join`](Self::join), or another spread of it, has this layout: every
    /// location shows the element, of one of them, that it takes; with canonical registers.
    pub(crate) fn before_join(&self) -> LinearLayout {
        let last = self.shape().rank().checked_sub(1);
        self.reduce(last.expect("the result of a join has a last dimension"))
    }

    /// For each register of this layout of the half at `index` (0 or 1), the register in the same thread of `whole`, a
    /// layout with a last dimension of extent 2, that holds its element; `None` if some thread does not hold it.
    pub(crate) fn half_registers(&self, index: u8, whole: &LinearLayout) -> Option<Vec<u16>> {
        for dim in [HwDim::Lane, HwDim::Warp] {
            let lifted = self.columns(dim).iter().map(|&c| c << 1);
            if !lifted.eq(whole.columns(dim).iter().copied()) {
                return None;
            }
        }
        let span = gf2::Span::of(whole.columns(HwDim::Register));
        let registers = 0..self.num_registers();
        registers
            .map(|r| {
                let element = self.apply_dim(HwDim::Register, r) << 1 | u32::from(index);
                span.solve(element).map(|register| register as u16)
            })
            .collect()
    }

    /// The layout without the register bits that hold copies: zero columns and those that depend on
    /// lower register bits. Register `r` of the result is the register of `self` with the bits of `r`
    /// in the places of [`kept_register_bits`](Self::kept_register_bits).
    pub(crate) fn without_free_registers(&self) -> LinearLayout {
        let registers = gf2::basis(self.columns(HwDim::Register));
        self.clone()
            .with_columns(HwDim::Register, Columns::from_vec(registers))
    }

    /// The register bits that [`without_free_registers`](Self::without_free_registers) keeps, as a mask.
    pub(crate) fn kept_register_bits(&self) -> u32 {
        (self.size(HwDim::Register) - 1) & !self.free_mask(HwDim::Register)
    }

    /// The layout after this one: `outer` maps flat indices of `self` as offsets to its own elements, so
    /// the result has the inputs of `self` and the shape of `outer`. `outer` is a memory layout with as
    /// many offsets as `self` has elements; there is nothing after it else. Law: `a.compose(b)` at a location is `b` at `a`
    /// at it.
    pub fn compose(&self, outer: &LinearLayout) -> Option<LinearLayout> {
        let fits = outer.kind() == LayoutKind::Memory
            && outer.bits(HwDim::Offset) == self.shape().log2_elements();
        fits.then(|| self.map_columns(outer.shape(), |c| outer.apply_offset(c)))
    }

    /// The direct sum: `self` is a tile and `outer` says where its copies go. Both have the same rank
    /// and kind; extents multiply, input bits of `outer` stand above those of `self`, and coordinates of
    /// `outer` count tiles. Law: with `h = (inner bits, outer bits)`, coordinate `d` of the product at `h`
    /// is `tile_d(inner) + extent_d(tile) * outer_d(outer)`. There is none of different ranks or kinds, nor one larger than
    /// layouts may be.
    pub fn product(&self, outer: &LinearLayout) -> Option<LinearLayout> {
        let (low, high) = (self.shape(), outer.shape());
        if low.rank() != high.rank() || self.kind() != outer.kind() {
            return None;
        }
        let sums = low.log2().iter().zip(high.log2()).map(|(a, b)| a + b);
        let shape = Shape::from_log2(&sums.collect::<Vec<u8>>()).ok()?;
        let (mut tile, mut copies) = (BitMap::new(), BitMap::new());
        for dim in 0..shape.rank() {
            tile.dim(&low, dim, &shape, dim);
            for bit in 0..u32::from(high.log2()[dim]) {
                let target = shape.bit_offset(dim) + u32::from(low.log2()[dim]) + bit;
                copies.to[(high.bit_offset(dim) + bit) as usize] = Some(target as u8);
            }
        }
        let inner = self.map_columns(shape, |c| tile.apply(c));
        let outer = outer.map_columns(shape, |c| copies.apply(c));
        let columns = HwDim::ALL.map(|dim| {
            let mut columns = Columns::from_slice(inner.columns(dim));
            columns.extend_from_slice(outer.columns(dim));
            columns
        });
        LinearLayout::checked(shape, self.kind(), columns).ok()
    }

    /// The layout `q` with `tile.product(&q) == self`, if there is one: whether this layout starts with
    /// `tile` in every input, and what repeats the tile.
    pub fn divide_left(&self, tile: &LinearLayout) -> Option<LinearLayout> {
        let (whole, low) = (self.shape(), tile.shape());
        if self.kind() != tile.kind() || whole.rank() != low.rank() {
            return None;
        }
        let differences = whole.log2().iter().zip(low.log2());
        let differences: Option<Vec<u8>> = differences
            .map(|(all, part)| all.checked_sub(*part))
            .collect();
        let shape = Shape::from_log2(&differences?).expect("smaller than a valid shape");
        let mut map = BitMap::new();
        for dim in 0..shape.rank() {
            for bit in 0..u32::from(shape.log2()[dim]) {
                let from = whole.bit_offset(dim) + u32::from(low.log2()[dim]) + bit;
                map.to[from as usize] = Some((shape.bit_offset(dim) + bit) as u8);
            }
        }
        let mut quotient = self.map_columns(shape, |c| map.apply(c));
        for dim in HwDim::ALL {
            let rest = quotient.columns(dim).get(tile.columns(dim).len()..)?;
            let rest = Columns::from_slice(rest);
            quotient = quotient.with_columns(dim, rest);
        }
        (tile.product(&quotient).as_ref() == Some(self)).then_some(quotient)
    }
}
