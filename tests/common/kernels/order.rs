//! Sorting by comparison and exchange, as a composition of changes of shape, reductions and selections: a row of 2^n
//! elements is a cube of n dimensions of extent 2, in which the partner of an element along a dimension is the
//! exclusive or of both with itself.

use tilelift::ir::attrs::{FloatPred, IntPred, NanRule};
use tilelift::ir::entities::Value;
use tilelift::ir::function::TileFunction;
use tilelift::ir::types::{Elem, Scalar, TileType};

use super::kit::{Kit, kernel, shape};
use super::{Config, Config2};

/// Sorts rows of `config.block` elements, one a program, ascending or descending, and keeps the first `keep`.
/// Parameters: x, out.
pub(crate) fn sort(config: Config, descending: bool, keep: u64) -> TileFunction {
    let name = format!("sort_{}", config.scalar);
    kernel(name, config.warps, |k| {
        let x = k.pointer("x", config.scalar);
        let out = k.pointer("out", config.scalar);
        let row = k.own_range(0, config.block);
        let pointers = k.at(x, row);
        let x = k.b.load(pointers, None, None);
        let sorted = top(k, x, keep.ilog2(), descending);
        let row = k.own_range(0, keep);
        let pointers = k.at(out, row);
        k.b.store(pointers, sorted, None);
    })
}

/// The first `2^keep` elements in order: runs of that length are merged until one is left.
fn top(k: &mut Kit<'_>, x: Value, keep: u32, descending: bool) -> Value {
    let ty = k.b.ty(x);
    let n = ty.shape.log2_elements();
    let mut cube = Cube {
        x: k.b
            .reshape(x, TileType::block(ty.elem, shape(&vec![2; n as usize]))),
        dims: n,
    };
    for stage in 1..=keep {
        let flip = if stage < n {
            Flip::Dim(stage)
        } else {
            Flip::All(descending)
        };
        cube.merge(k, stage, flip);
    }
    for _ in keep..n {
        // Of two runs, one up and one down, the better element of each pair: they are the best of both.
        let is_float = ty.elem.is_float();
        let axis = (cube.dims - 1 - keep) as u8;
        cube.x = k.b.reduce_one(cube.x, axis, |b, l, r| {
            let take_left = match (is_float, descending) {
                (true, true) => b.fcmp(l, r, FloatPred::Ogt),
                (true, false) => b.fcmp(l, r, FloatPred::Olt),
                (false, true) => b.icmp(l, r, IntPred::Sgt),
                (false, false) => b.icmp(l, r, IntPred::Slt),
            };
            b.select(take_left, l, r)
        });
        cube.dims -= 1;
        let flip = if cube.dims > keep {
            Flip::Dim(keep)
        } else {
            Flip::All(descending)
        };
        cube.merge(k, keep, flip);
    }
    let ty = TileType::block(ty.elem, shape(&[1 << keep]));
    k.b.reshape(cube.x, ty)
}

/// Which way a comparison sorts.
#[derive(Clone, Copy)]
enum Flip {
    /// Down where the index has this bit.
    Dim(u32),
    /// The same everywhere.
    All(bool),
}

/// A block whose dimensions all have extent 2; dimension `dims - 1 - b` is bit `b` of the index.
struct Cube {
    x: Value,
    dims: u32,
}

impl Cube {
    /// Sorts runs of `2^stage` elements that go up and then down.
    fn merge(&mut self, k: &mut Kit<'_>, stage: u32, flip: Flip) {
        let flip = match flip {
            Flip::Dim(bit) => self.bit(k, bit),
            Flip::All(down) => {
                let extents = k.shape_of(self.x);
                k.b.const_bits(u64::from(down), TileType::block(Elem::I1, extents))
            }
        };
        for bit in (0..stage).rev() {
            self.compare_and_swap(k, bit, flip);
        }
    }

    /// Whether each element's index has the bit.
    fn bit(&self, k: &mut Kit<'_>, bit: u32) -> Value {
        let mut extents = vec![1; self.dims as usize];
        extents[(self.dims - 1 - bit) as usize] = 2;
        let range = k.range(2);
        let one = k.int(1);
        let one = k.spread(one, range);
        let is_one = k.b.icmp(range, one, IntPred::Eq);
        let along = TileType::block(Elem::I1, shape(&extents));
        let along = k.b.reshape(is_one, along);
        let whole = k.shape_of(self.x);
        k.b.to_shape(along, whole)
    }

    fn compare_and_swap(&mut self, k: &mut Kit<'_>, bit: u32, flip: Value) {
        let ty = k.b.ty(self.x);
        let axis = (self.dims - 1 - bit) as u8;
        let word = match ty.elem {
            Elem::Num(Scalar::F32) => Elem::I32,
            other => other,
        };
        let bits = if word == ty.elem {
            self.x
        } else {
            k.b.bitcast(self.x, TileType::block(word, ty.shape))
        };
        let both = k.b.reduce_one(bits, axis, |b, l, r| b.xor(l, r));
        let both = if ty.shape.rank() == 1 {
            k.b.splat(both, TileType::block(word, ty.shape))
        } else {
            let both = k.b.expand_dims(both, axis);
            k.b.to_shape(both, ty.shape)
        };
        let partner = k.b.xor(bits, both);
        let partner = if word == ty.elem {
            partner
        } else {
            k.b.bitcast(partner, ty)
        };
        let above = if ty.elem.is_float() {
            k.b.fcmp(self.x, partner, FloatPred::Ogt)
        } else {
            k.b.icmp(self.x, partner, IntPred::Sgt)
        };
        let is_right = self.bit(k, bit);
        let wanted = k.b.xor(flip, is_right);
        let swaps = k.b.xor(above, wanted);
        self.x = k.b.select(swaps, partner, self.x);
    }
}

/// Running sums and running maxima along `axis`, in the type of the data. Parameters: x, sums, maxima: one block each.
pub(crate) fn scan(config: Config2, axis: u8, reverse: bool) -> TileFunction {
    let direction = if reverse { "up" } else { "down" };
    let name = format!("scan_{axis}_{direction}_{}", config.scalar);
    kernel(name, config.warps, |k| {
        let pointers = ["x", "sums", "maxima"].map(|name| k.pointer(name, config.scalar));
        let rows = k.range(config.block[0]);
        let cols = k.range(config.block[1]);
        let (width, one) = (k.int(config.block[1] as i32), k.int(1));
        let offsets = k.matrix((rows, width), (cols, one));
        let [x, sums, maxima] = pointers.map(|pointer| k.at(pointer, offsets));
        let x = k.b.load(x, None, None);
        let scanned = k.b.scan(&[x, x], axis, reverse, |b, before, own| {
            let sum = b.fadd(before[0], own[0]);
            let largest = b.fmax(before[1], own[1], NanRule::Ignore);
            [sum, largest].into_iter().collect()
        });
        k.b.store(sums, scanned[0], None);
        k.b.store(maxima, scanned[1], None);
    })
}
