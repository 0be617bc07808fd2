//! Small loads of an iteration that multiplies matrices, or sums up, when it begins.
//!
//! ```text
//! for i in 0..n {                     for i in 0..n {
//!     y = dot a, b, c                     x = load p(i)
//!     x = load p(i)             =>        y = dot a, b, c
//!     z = mul y, splat x                  z = mul y, splat x
//! }                                   }
//! ```
//!
//! Products, sums over warps, and what is exchanged for them wait for barriers, and the assembler moves no load over these: as the program
//! is written, `x` is asked for when `y` is there, and an iteration takes as long as both. Scales and decays are such loads, of a number or
//! of one for each row. A load moves if it finds the same whenever it is executed (`Used::is_settled`), takes a register or two of each thread,
//! and is computed from nothing but the counter, what the loop carries and other such loads. (An H100, us: the causal pass of attention
//! for dK and dV with 128 columns 1049 and 981, attention within documents 100 and 92.)

use cranelift_entity::EntitySet;

use super::promote::used::Used;
use crate::analysis::program::ProgramOrder;
use crate::ir::entities::{Block, Inst};
use crate::ir::function::TileFunction;
use crate::ir::ops::TileOp;

/// Most bytes of each thread that a load takes.
const MOST_BYTES: u32 = 8;

/// Moves loads to the beginning of iterations; gives how many.
pub fn load_early(func: &mut TileFunction) -> usize {
    let regions = func.insts_with(TileOp::For).map(|(_, inst)| inst);
    let bodies = regions.filter_map(|inst| func.regions(inst).next());
    // With the loads behind what waits.
    let loads = |body: Block| {
        let insts = func.order.insts(body);
        let waits = |&inst: &Inst| match func.dfg.insts[inst].op {
            TileOp::Dot => true,
            TileOp::Reduce | TileOp::Scan => func.num_warps() > 1,
            _ => false,
        };
        let first = insts.iter().position(waits).unwrap_or(insts.len());
        let small = insts[first..].iter().filter(|&&inst| is_small(func, inst));
        (body, small.copied().collect::<Vec<Inst>>())
    };
    let mut loops: Vec<(Block, Vec<Inst>)> = bodies.map(loads).collect();
    loops.retain(|(_, loads)| !loads.is_empty());
    if loops.is_empty() {
        return 0;
    }
    let order = ProgramOrder::compute(func);
    let used = Used::compute(func);
    let mut count = 0;
    for (body, loads) in loops {
        let insts = func.order.insts(body).to_vec();
        let is_late = |inst: Inst| loads.contains(&inst) && used.is_settled(func, &order, inst);
        let mut early: EntitySet<Inst> = EntitySet::new();
        let before = count;
        for &inst in &insts {
            if !is_late(inst) {
                continue;
            }
            if let Some(needed) = needed(func, body, inst, &early, &is_late) {
                early.extend(needed);
                count += 1;
            }
        }
        if count > before {
            let (mut first, rest): (Vec<Inst>, Vec<Inst>) =
                insts.iter().partition(|&&inst| early.contains(inst));
            first.extend(rest);
            func.order.replace(body, first);
        }
    }
    count
}

/// Whether each thread has few bytes of what is loaded.
fn is_small(func: &TileFunction, inst: Inst) -> bool {
    let data = &func.dfg.insts[inst];
    data.op == TileOp::Load
        && data.results.iter().all(|&value| {
            let ty = func.dfg.ty(value);
            let bytes = ty.bytes();
            bytes <= MOST_BYTES * func.num_threads()
        })
}

/// An instruction of a loop's body and what must come before it there, if all of that only computes or may move, too.
fn needed(
    func: &TileFunction,
    body: Block,
    inst: Inst,
    early: &EntitySet<Inst>,
    may_move: &dyn Fn(Inst) -> bool,
) -> Option<Vec<Inst>> {
    let mut found = vec![inst];
    let mut next = 0;
    while let Some(&inst) = found.get(next) {
        next += 1;
        for &arg in &func.dfg.insts[inst].args {
            let Some(def) = func.dfg.def_inst(arg) else {
                continue;
            };
            let is_inside = func.order.block_of(def) == Some(body);
            if !is_inside || early.contains(def) || found.contains(&def) {
                continue;
            }
            let data = &func.dfg.insts[def];
            if !data.is_pure() && !may_move(def) || !data.blocks.is_empty() || data.is_product() {
                return None;
            }
            found.push(def);
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::ops::Opcode as _;
    use crate::text::parse::parse_tile;

    /// How many loads move, and then the ops of a loop whose body has these lines behind a product, `v20`, and yields `v40`.
    fn order(behind: &str) -> (usize, Vec<String>) {
        let text = format!(
            "kernel @k(v0 \"x\": ptr<f32>, v1 \"out\": ptr<f32>, v2 \"n\": i32) warps(4) {{
block0:
    v3 = const {{value = 0}} : i32
    v4 = const {{value = 1}} : i32
    v5 = const {{value = 0.0}} : f32[16,16]
    v6 = const {{value = 1.0}} : f16[16,16]
    v7 = for v3, v2, v4, v5 : f32[16,16] {{
    block1(v10: i32, v11: f32[16,16]):
        v20 = dot v6, v6, v11 {{precision = tf32}} : f32[16,16]
{behind}
        yield v40
    }}
    return
}}
"
        );
        let mut func = parse_tile(&text).expect("a kernel");
        let count = load_early(&mut func);
        let (_, inst) = func.insts_with(TileOp::For).next().expect("a loop");
        let body = func.regions(inst).next().expect("what it repeats");
        let insts = func.order.insts(body).iter();
        let ops = insts.map(|&inst| func.dfg.insts[inst].op.info().name.to_owned());
        (count, ops.collect())
    }

    #[test]
    fn a_scale_is_asked_for_first() {
        let (count, ops) = order(
            "        v30 = addptr v0, v10 : ptr<f32>
        v31 = load v30 : f32
        v32 = splat v31 : f32[16,16]
        v40 = fmul v20, v32 : f32[16,16]",
        );
        assert_eq!(count, 1);
        assert_eq!(ops, ["addptr", "load", "dot", "splat", "fmul", "yield"]);
    }

    #[test]
    fn what_stands_behind_a_sum_is_asked_for_first() {
        for (warps, first) in [("warps(4)", "addptr"), ("warps(1)", "reduce")] {
            let text = format!(
                "kernel @k(v0 \"x\": ptr<f32>, v1 \"out\": ptr<f32>, v2 \"n\": i32) {warps} {{
block0:
    v3 = const {{value = 0}} : i32
    v4 = const {{value = 1}} : i32
    v5 = const {{value = 0.0}} : f32[256]
    v7 = for v3, v2, v4, v5 : f32[256] {{
    block1(v10: i32, v11: f32[256]):
        v20 = reduce v11 {{axis = 0}} : f32 {{
        block2(v21: f32, v22: f32):
            v23 = fadd v21, v22 : f32
            yield v23
        }}
        v30 = addptr v0, v10 : ptr<f32>
        v31 = load v30 : f32
        v32 = fadd v20, v31 : f32
        v40 = splat v32 : f32[256]
        yield v40
    }}
    return
}}
"
            );
            let mut func = parse_tile(&text).expect("a kernel");
            let count = load_early(&mut func);
            assert_eq!(count, usize::from(first == "addptr"));
            let (_, inst) = func.insts_with(TileOp::For).next().expect("a loop");
            let body = func.regions(inst).next().expect("what it repeats");
            let op = func.dfg.insts[func.order.insts(body)[0]].op;
            assert_eq!(op.info().name, first);
        }
    }

    #[test]
    fn a_scale_that_a_table_names_is_asked_for_behind_it() {
        let (count, ops) = order(
            "        v30 = addptr v0, v10 : ptr<f32>
        v31 = load v30 : f32
        v32 = fptosi v31 : i32
        v33 = addptr v0, v32 : ptr<f32>
        v34 = load v33 : f32
        v35 = splat v34 : f32[16,16]
        v40 = fmul v20, v35 : f32[16,16]",
        );
        assert_eq!(count, 2);
        let expected = [
            "addptr", "load", "fptosi", "addptr", "load", "dot", "splat", "fmul", "yield",
        ];
        assert_eq!(ops, expected);
    }

    /// Of what the kernel writes, and of what is made of a product.
    #[test]
    fn other_loads_stay() {
        let written = "        v30 = addptr v1, v10 : ptr<f32>
        v31 = load v30 : f32
        store v30, v31
        v32 = splat v31 : f32[16,16]
        v40 = fmul v20, v32 : f32[16,16]";
        let made = "        v28 = fptosi v20 : i32[16,16]
        v29 = splat v0 : ptr<f32>[16,16]
        v30 = addptr v29, v28 : ptr<f32>[16,16]
        v31 = load v30 : f32[16,16]
        v40 = fmul v20, v31 : f32[16,16]";
        for behind in [written, made] {
            let (count, ops) = order(behind);
            assert_eq!((count, ops[0].as_str()), (0, "dot"), "{behind}");
        }
    }
}
