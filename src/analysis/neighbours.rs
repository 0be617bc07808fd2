//! Which elements of a block stand side by side where it comes from.

use cranelift_entity::EntitySet;
use smallvec::{SmallVec, smallvec};

use super::axis::Axis;
use crate::ir::attrs::Attrs;
use crate::ir::dfg::ValueDef;
use crate::ir::effects::OpClass;
use crate::ir::entities::{Inst, Slot, Value};
use crate::ir::function::TileFunction;
use crate::ir::ops::TileOp;

/// Exponent of the shortest run of addresses from which a load tells how its block stands in memory: shorter ones may be chance.
const SHORTEST: u8 = 2;

/// Exponent of the length of runs of neighbours along `dim`. An i32 offset may wrap, so the analysis cuts its runs
/// where they cross a multiple that it does not know; as a hint where neighbours are, they count whole.
pub fn runs(func: &TileFunction, axis: &Axis, ptr: Value, dim: usize) -> u8 {
    let run = axis.info(ptr).dim(dim).contiguity;
    let inst = func.dfg.def_inst(ptr);
    let data = inst.map(|inst| &func.dfg.insts[inst]);
    let offset = data
        .filter(|data| data.op == TileOp::Addptr)
        .and_then(|data| {
            let &[base, offset] = &data.args[..] else {
                return None;
            };
            let extent = func.dfg.ty(ptr).shape.log2().get(dim).copied().unwrap_or(0);
            let is_same = axis.at_least(&axis.info(base).dim(dim).constancy, extent);
            is_same.then(|| axis.info(offset).dim(dim).contiguity)
        });
    let whole = offset.map_or(run.clone(), |offset| run.max(&offset));
    axis.capped(&whole, u8::MAX)
}

/// How deep expressions are followed.
const MAX_DEPTH: u32 = 100;

/// Exponent of the largest power of two that is looked for in distances, as launches look at arguments.
const MOST_DIVISIBLE: u8 = 4;

/// For each dimension of a block of addresses the exponent of a power of two, up to 16, that divides the numbers of elements by which
/// addresses move along it, where these are parts of sums of their own (`pixel * s + channel * t`).
///
/// Of two strides that nobody knows the one that is a multiple of less is likely the nearer: strides of a tensor without gaps are multiples
/// of those within.
pub fn divisors_of_strides(func: &TileFunction, axis: &Axis, ptr: Value) -> SmallVec<[u8; 4]> {
    let rank = func.dfg.ty(ptr).shape.rank();
    let mut strides = DivisorsOfStrides {
        func,
        axis,
        found: smallvec![MOST_DIVISIBLE; rank],
        seen: EntitySet::new(),
    };
    let dims: SmallVec<[usize; 4]> = (0..rank).collect();
    strides.follow(ptr, &dims, MAX_DEPTH);
    strides.found
}

struct DivisorsOfStrides<'a> {
    func: &'a TileFunction,
    axis: &'a Axis,
    found: SmallVec<[u8; 4]>,
    seen: EntitySet<Value>,
}

impl DivisorsOfStrides<'_> {
    /// Looks at a part of a sum, of which the dimensions are those of the addresses.
    fn follow(&mut self, value: Value, dims: &[usize], depth: u32) {
        let func = self.func;
        let Some(depth) = depth.checked_sub(1) else {
            return;
        };
        if !self.seen.insert(value) {
            return;
        }
        let ValueDef::Result(inst, _) = func.dfg.values[value].def else {
            if let Some(first) = carried_first(func, value) {
                self.follow(first, dims, depth);
            }
            return;
        };
        let data = &func.dfg.insts[inst];
        match data.op {
            TileOp::Splat | TileOp::Const => {}
            TileOp::Addptr | TileOp::Iadd | TileOp::Isub => {
                data.args
                    .iter()
                    .for_each(|&arg| self.follow(arg, dims, depth));
            }
            TileOp::Sext | TileOp::Zext | TileOp::Itrunc | TileOp::Broadcast => {
                self.follow(data.args[0], dims, depth);
            }
            TileOp::Select => self.follow(data.args[1], dims, depth),
            TileOp::ExpandDims => {
                let added = data.axis().map_or(0, |&axis| usize::from(axis));
                let left = dims.iter().enumerate().filter(|&(at, _)| at != added);
                let left: SmallVec<[usize; 4]> = left.map(|(_, &dim)| dim).collect();
                self.follow(data.args[0], &left, depth);
            }
            _ => {
                let shape = func.dfg.ty(value).shape;
                let mut moving = (0..shape.rank()).filter(|&dim| shape.extent(dim) > 1);
                if let (Some(dim), None) = (moving.next(), moving.next()) {
                    let mut all = (1..=MOST_DIVISIBLE).rev();
                    let divisor = all.find(|&exponent| self.axis.divides(value, exponent));
                    let found = &mut self.found[dims[dim]];
                    *found = divisor.unwrap_or(0).min(*found);
                }
            }
        }
    }
}

/// What a loop carries at its beginning, of a parameter of its body.
pub(crate) fn carried_first(func: &TileFunction, value: Value) -> Option<Value> {
    let ValueDef::Param(block, index) = func.dfg.values[value].def else {
        return None;
    };
    let mut loops = func.insts_with(TileOp::For);
    let (_, inst) = loops.find(|&(_, inst)| func.regions(inst).any(|body| body == block))?;
    func.dfg.insts[inst]
        .args
        .get(usize::from(index) + 2)
        .copied()
}

/// The dimension along which neighbours of a block stand side by side in memory, or in the ring that it is loaded from, through changes of
/// its elements and of its shape; none if that is not known.
pub fn neighbours(func: &TileFunction, axis: &Axis, value: Value) -> Option<usize> {
    let data = &func.dfg.insts[func.dfg.def_inst(value)?];
    let source = || neighbours(func, axis, *data.args.first()?);
    let shape = |value| func.dfg.ty(value).shape;
    match data.op {
        TileOp::Load => along(func, axis, *data.args.first()?, SHORTEST),
        // Boxes come row by row.
        TileOp::TensorLoad => shape(value).rank().checked_sub(1),
        TileOp::SharedLoad => neighbours_in_ring(func, axis, *data.slot()?),
        TileOp::Permute => {
            let dim = source()?;
            data.dims()?.iter().position(|&from| from as usize == dim)
        }
        TileOp::Join => source(),
        TileOp::Broadcast => {
            let extent = |value, dim| shape(value).log2().get(dim).copied();
            source().filter(|&dim| extent(data.args[0], dim) == extent(value, dim))
        }
        // An index that the other shape has, too.
        TileOp::Reshape => {
            let dim = source()?;
            let (from, to) = (shape(data.args[0]), shape(value));
            (0..to.rank()).find(|&other| to.place(other) == from.place(dim))
        }
        _ if data.class() == OpClass::Elementwise => data
            .args
            .iter()
            .find_map(|&arg| neighbours(func, axis, arg)),
        _ => None,
    }
}

/// The dimension along which neighbours stand in a ring that copies fill; none if nothing is copied there.
pub fn neighbours_in_ring(func: &TileFunction, axis: &Axis, slot: Slot) -> Option<usize> {
    let is_filled = |&(_, inst): &(_, Inst)| func.dfg.insts[inst].slot() == Some(&slot);
    if func
        .insts_with(TileOp::TensorCopy)
        .any(|copy| is_filled(&copy))
    {
        return func.buffers[slot]?.shape.rank().checked_sub(1);
    }
    let (_, copy) = func.insts_with(TileOp::AsyncCopy).find(is_filled)?;
    along(func, axis, *func.dfg.insts[copy].args.first()?, 0)
}

/// The dimension with the longest runs of addresses, of equal ones the last, if they are at least so long.
fn along(func: &TileFunction, axis: &Axis, pointer: Value, least: u8) -> Option<usize> {
    let dims = 0..func.dfg.ty(pointer).shape.rank();
    let longest = dims
        .map(|dim| (runs(func, axis, pointer, dim), dim))
        .max()?;
    (least <= longest.0).then_some(longest.1)
}

#[cfg(test)]
mod tests {
    use super::divisors_of_strides;
    use crate::analysis::axis::Axis;
    use crate::ir::ops::TileOp;
    use crate::text::parse::parse_tile;

    /// Weights by channels in and out, with a stride of which nothing is known and one that is a multiple of 16: which dimension is which
    /// is kept through sums, shapes and a loop that moves the pointers on.
    #[test]
    fn strides_that_are_multiples_of_less_are_told_apart() {
        let of = |[rows, columns]: [&str; 2]| {
            let text = format!(
                "kernel @k(v0: ptr<f16>, v1: i32, v2: i32 {{divisible = 16}}) warps(1) {{
                block0:
                    v3 = arange {{start = 0}} : i32[32]
                    v4 = splat {rows} : i32[32]
                    v5 = imul v3, v4 : i32[32]
                    v6 = expand_dims v5 {{axis = 1}} : i32[32,1]
                    v7 = broadcast v6 : i32[32,32]
                    v8 = splat {columns} : i32[32]
                    v9 = imul v3, v8 : i32[32]
                    v10 = splat v0 : ptr<f16>[32]
                    v11 = addptr v10, v9 : ptr<f16>[32]
                    v12 = expand_dims v11 {{axis = 0}} : ptr<f16>[1,32]
                    v13 = broadcast v12 : ptr<f16>[32,32]
                    v14 = addptr v13, v7 : ptr<f16>[32,32]
                    v15 = const {{value = 0}} : i32
                    v16 = const {{value = 1}} : i32
                    v17 = const {{value = 64}} : i32[32,32]
                    v18 = for v15, v1, v16, v14 : ptr<f16>[32,32] {{
                    block1(v19: i32, v20: ptr<f16>[32,32]):
                        v21 = load v20 : f16[32,32]
                        store v20, v21
                        v22 = addptr v20, v17 : ptr<f16>[32,32]
                        yield v22
                    }}
                    return
                }}"
            );
            let func = parse_tile(&text).expect("the text is right");
            let (_, load) = func.insts_with(TileOp::Load).next().expect("a load");
            let ptr = func.dfg.insts[load].args[0];
            divisors_of_strides(&func, &Axis::compute(&func), ptr).to_vec()
        };
        assert_eq!(of(["v1", "v2"]), [0, 4]);
        assert_eq!(of(["v2", "v1"]), [4, 0]);
        assert_eq!(of(["v1", "v1"]), [0, 0]);
    }
}
