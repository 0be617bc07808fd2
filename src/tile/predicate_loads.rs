//! Loads under a condition of the program are loads with that condition as a mask.
//!
//! ```text
//! y = if c {                                   x = load p, (splat c), 0
//!     x = load p                          =>   y = select (splat c), x, z
//!     yield x
//! } else { yield z }
//! ```
//!
//! What stands in front of a branch and behind it is not moved across it: loads in a region are asked for when those in front have been
//! used, and no pipeline fetches them ahead. A masked load that is off costs an instruction. Regions of a few instructions per thread
//! that do nothing but load and compute become such code; longer ones stay, because it pays to pass over them.

use rustc_hash::FxHashMap;

use crate::ir::attrs::{Attrs, make};
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::function::TileFunction;
use crate::ir::level::Tile;
use crate::ir::maker::Maker;
use crate::ir::ops::TileOp;
use crate::ir::types::{Elem, TileType};
use crate::linear_layout::shape::Shape;

/// Most instructions of a thread that both regions have together.
const MOST_INSTRUCTIONS: usize = 32;

/// Masks loads that conditions of the program guard; gives how many conditions.
pub fn predicate_loads(func: &mut TileFunction) -> usize {
    let choices: Vec<(Block, Inst)> = func.insts_with(TileOp::If).collect();
    let mut count = 0;
    // Regions come behind the blocks they stand in: inner choices first, whose place then stays as it was found.
    for (block, inst) in choices.into_iter().rev() {
        if is_worth(func, inst) {
            predicate(func, block, inst);
            count += 1;
        }
    }
    count
}

/// Whether the regions of a choice load and compute, and little of it.
fn is_worth(func: &TileFunction, inst: Inst) -> bool {
    let data = &func.dfg.insts[inst];
    let threads = func.num_threads() as usize;
    let (mut loads, mut instructions) = (0, 0);
    for region in func.regions(inst) {
        let Some((_, body)) = func.order.insts(region).split_last() else {
            return false;
        };
        for &inst in body {
            let data = &func.dfg.insts[inst];
            let is_number = |&result: &Value| func.dfg.ty(result).elem.pointee().is_none();
            let is_load = data.op == TileOp::Load
                && data.volatile().is_none()
                && data.results.iter().all(is_number);
            if !is_load && (!data.is_pure() || data.is_product() || !data.blocks.is_empty()) {
                return false;
            }
            loads += usize::from(is_load);
            let is_free = matches!(
                data.op,
                TileOp::Const
                    | TileOp::Arange
                    | TileOp::Splat
                    | TileOp::ExpandDims
                    | TileOp::Broadcast
            );
            let elements = data.results.iter().map(|&result| {
                let ty = func.dfg.ty(result);
                ty.shape.elements().div_ceil(threads)
            });
            instructions += elements.max().unwrap_or(1) * usize::from(!is_free);
        }
    }
    let is_known = func.dfg.ty(data.args[0]).is_scalar();
    is_known && loads > 0 && instructions <= MOST_INSTRUCTIONS
}

/// Puts the regions of a choice into its place.
fn predicate(func: &mut TileFunction, block: Block, inst: Inst) {
    let data = func.dfg.insts[inst].clone();
    let cond = data.args[0];
    let regions: Vec<Block> = func.regions(inst).collect();
    let mut maker = Maker::near(func, inst);
    let bit = TileType::scalar(Elem::I1);
    let one = maker.number(1, bit);
    let not = maker.value(TileOp::Xor, &[cond, one], &[], bit);
    let mut masks = Masks::default();
    let mut yields: Vec<Vec<Value>> = Vec::new();
    for (region, side) in regions.iter().zip([cond, not]) {
        let list = maker.func.order.insts(*region).to_vec();
        let Some((&end, body)) = list.split_last() else {
            continue;
        };
        for &inst in body {
            if maker.func.dfg.insts[inst].op == TileOp::Load {
                mask(&mut maker, inst, side, &mut masks);
            }
            maker.made.push(inst);
        }
        yields.push(maker.func.dfg.insts[end].args.to_vec());
        maker.func.order.replace(*region, vec![end]);
    }
    if let [then, other] = &yields[..] {
        for ((&result, &a), &b) in data.results.iter().zip(then).zip(other) {
            let ty = maker.func.dfg.ty(result);
            let chosen = match a == b {
                true => a,
                false => {
                    let cond = masks.of(&mut maker, cond, ty.shape);
                    maker.value(TileOp::Select, &[cond, a, b], &[], ty)
                }
            };
            super::edit::rename_uses(maker.func, result, chosen);
        }
    }
    let made = maker.made;
    let mut outer = func.order.insts(block).to_vec();
    if let Some(at) = outer.iter().position(|&other| other == inst) {
        outer.splice(at..=at, made);
        func.order.replace(block, outer);
    }
}

/// Conditions as blocks, by shape.
#[derive(Default)]
struct Masks(FxHashMap<(Value, Shape), Value>);

impl Masks {
    fn of(&mut self, maker: &mut Maker<'_, Tile>, cond: Value, shape: Shape) -> Value {
        if shape.is_scalar() {
            return cond;
        }
        *self.0.entry((cond, shape)).or_insert_with(|| {
            let ty = TileType {
                shape,
                ..TileType::scalar(Elem::I1)
            };
            maker.value(TileOp::Splat, &[cond], &[], ty)
        })
    }
}

/// Makes a load one that loads where the condition holds.
fn mask(maker: &mut Maker<'_, Tile>, inst: Inst, cond: Value, masks: &mut Masks) {
    let args = maker.func.dfg.insts[inst].args.to_vec();
    let ty = maker.func.dfg.ty(maker.func.dfg.insts[inst].results[0]);
    let cond = masks.of(maker, cond, ty.shape);
    let mask = match args.get(1) {
        Some(&mask) => {
            let bits = maker.func.dfg.ty(mask);
            maker.value(TileOp::And, &[mask, cond], &[], bits)
        }
        None => cond,
    };
    let other = match args.get(2) {
        Some(&other) => other,
        None => maker.value(TileOp::Const, &[], &[make::value(0)], ty),
    };
    maker.func.dfg.insts[inst].args = [args[0], mask, other].into_iter().collect();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tile::testing::{check_pass, fixed_point, parse, run, verified};

    const HEAD: &str = "kernel @k(v0 \"x\": ptr<f32>, v1 \"y\": ptr<f32>) warps(1) {
block0:
    v2 = load v1 : f32
    v3 = const {value = 0.5} : f32
    v4 = fcmp v2, v3 {fpred = ogt} : i1
    v5 = arange {start = 0} : i32[32]
    v6 = splat v0 : ptr<f32>[32]
    v7 = addptr v6, v5 : ptr<f32>[32]
    v8 = const {value = 3.0} : f32[32]
";

    fn choice(then: &str, other: &str) -> String {
        format!(
            "{HEAD}    v9 = if v4 : f32[32] {{
    block1:
{then}    }} {{
    block2:
{other}    }}
    v20 = splat v1 : ptr<f32>[32]
    v21 = addptr v20, v5 : ptr<f32>[32]
    store v21, v9
    return
}}
"
        )
    }

    #[test]
    fn a_load_in_a_region_has_its_condition_as_mask() {
        let before = choice(
            "        v10 = load v7 : f32[32]\n        yield v10\n",
            "        yield v8\n",
        );
        let after = format!(
            "{HEAD}    v9 = const {{value = true}} : i1
    v10 = xor v4, v9 : i1
    v11 = splat v4 : i1[32]
    v12 = const {{value = 0.0}} : f32[32]
    v13 = load v7, v11, v12 : f32[32]
    v14 = select v11, v13, v8 : f32[32]
    v20 = splat v1 : ptr<f32>[32]
    v21 = addptr v20, v5 : ptr<f32>[32]
    store v21, v14
    return
}}
"
        );
        check_pass(predicate_loads, &before, &after);
    }

    /// Masks and fills of its own, loads on both sides, and numbers that are computed.
    #[test]
    fn both_sides_give_what_they_gave() {
        let then = "        v10 = const {value = 20} : i32[32]
        v11 = icmp v5, v10 {ipred = slt} : i1[32]
        v12 = load v7, v11, v8 : f32[32]
        v13 = fadd v12, v12 : f32[32]
        yield v13
";
        let other =
            "        v14 = load v0 : f32\n        v15 = splat v14 : f32[32]\n        yield v15\n";
        for number in [1.0f32, 0.25] {
            let mut func = parse(&choice(then, other));
            let x: Vec<u8> = (0..32).flat_map(|i| (i as f32).to_le_bytes()).collect();
            let y: Vec<u8> = [number; 32].iter().flat_map(|y| y.to_le_bytes()).collect();
            let before = run(&func, &[x.clone(), y.clone()]);
            assert_eq!(predicate_loads(&mut func), 1);
            verified(&func);
            assert_eq!(run(&func, &[x, y]), before);
            assert!(!func.to_string().contains(" = if "), "{func}");
        }
    }

    #[test]
    fn regions_that_write_or_are_long_stay() {
        let store = "        v10 = load v7 : f32[32]\n        store v7, v8\n        yield v10\n";
        let volatile = "        v10 = load v7 {volatile} : f32[32]\n        yield v10\n";
        let sums = (11..44).map(|v| format!("        v{v} = fadd v{}, v8 : f32[32]\n", v - 1));
        let sums: String = sums.collect();
        let long = format!("        v10 = load v7 : f32[32]\n{sums}        yield v43\n");
        let long = long.replace("v20 ", "v60 ").replace("v20,", "v60,");
        let long = long.replace("v21 ", "v61 ").replace("v21,", "v61,");
        let computed = "        v10 = fadd v8, v8 : f32[32]\n        yield v10\n";
        for then in [store, volatile, &long, computed] {
            fixed_point(predicate_loads, &choice(then, "        yield v8\n"));
        }
    }
}
