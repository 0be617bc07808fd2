//! Loops of few iterations as what they repeat, and others as an author asks.
//!
//! ```text
//! for g in 0..n {                         for g in 0..n {
//!     for i in 0..2 {                         x = load p(g, 0); s0 = dot x, .., s
//!         x = load p(g, i)           =>       y = load p(g, 1); s1 = dot y, .., s0
//!         s = dot x, .., s                }
//!     }
//! }
//! ```
//!
//! A loop of one iteration is what it would repeat. One that multiplies matrices in another loop and has few iterations (a group that
//! shares scales, a block of a table) would fill and drain a pipeline for each of these: with copies of it the loop around it is the
//! one that is pipelined, if shared memory has room for three of its iterations.
//!
//! Where an author asks for it (`loop_unroll_factor`), a loop repeats so many copies, and what is left of its iterations follows:
//!
//! ```text
//! for i in lo..hi by s {         t = for i in lo..hi - 3 s by 4 s carrying lo { f(i); f(i + s); f(i + 2 s); f(i + 3 s); yield i + 4 s }
//!     f(i)                =>     for i in t..hi by s { f(i) }
//! }
//! ```

use rustc_hash::{FxHashMap, FxHashSet};

use super::edit::{copy_of, rename_uses, signed};
use crate::analysis::constants::iterations;
use crate::analysis::program::ProgramOrder;
use crate::ir::attrs::{Attr, AttrKind, Attrs, make};
use crate::ir::dfg::BlockCall;
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::function::TileFunction;
use crate::ir::level::Tile;
use crate::ir::maker::Maker;
use crate::ir::ops::TileOp;
use crate::ir::types::TileType;
use crate::settings::Target;

/// Most copies of what a loop repeats.
const MOST_COPIES: i64 = 4;

/// Most products that a loop of several iterations becomes.
const MOST_PRODUCTS: usize = 8;

/// Most instructions that a loop has with the copies that its author asks for; else compiling would take long.
const MOST_INSTRUCTIONS: usize = 50_000;

/// Iterations of the loop around it that shared memory must have room for.
const STAGES: u64 = 3;

/// Writes loops of few iterations out; gives how many.
pub fn unroll_loops(func: &mut TileFunction, target: Target) -> usize {
    let mut count = 0;
    // Regions come behind the blocks they stand in: inner loops first.
    let mut loops: Vec<(Block, Inst)> = func.insts_with(TileOp::For).collect();
    loops.reverse();
    for (_, inst) in loops {
        let asked = func.dfg.insts[inst].unroll().copied();
        let is_hint = |attr: &Attr| attr.kind() == AttrKind::Unroll;
        func.dfg.insts[inst].attrs.retain(|attr| !is_hint(attr));
        let asked = asked.filter(|&copies| 1 < copies);
        let fits = |&copies: &u8| usize::from(copies) * size(func, inst) <= MOST_INSTRUCTIONS;
        let asked = asked.filter(fits).map(i64::from);
        let all = iterations(func, inst);
        let is_whole = |&copies: &i64| {
            copies == 1
                || asked.is_some_and(|asked| (1..=asked).contains(&copies))
                || copies <= MOST_COPIES && pays(func, inst, copies as u64, target)
        };
        if let Some(copies) = all.filter(is_whole) {
            unroll(func, inst, copies);
            count += 1;
        } else if let Some(asked) = asked {
            count += usize::from(repeat_copies(func, inst, asked, all));
        }
    }
    count
}

/// The number of instructions in an instruction's regions, and it.
fn size(func: &TileFunction, inst: Inst) -> usize {
    let inside = func.regions(inst).flat_map(|body| func.order.insts(body));
    1 + inside.map(|&inner| size(func, inner)).sum::<usize>()
}

/// Makes a loop repeat so many copies, and what is left one more, unless its step is not known or numbers would not fit; whether it does.
fn repeat_copies(func: &mut TileFunction, inst: Inst, copies: i64, all: Option<i64>) -> bool {
    let data = func.dfg.insts[inst].clone();
    let ty = func.dfg.ty(data.args[0]);
    let most = i64::MAX >> (64 - ty.elem.bits());
    let step = signed(func, data.args[2]).filter(|&step| 0 < step);
    let (Some(block), Some(body), Some(step)) =
        (func.order.block_of(inst), func.regions(inst).next(), step)
    else {
        return false;
    };
    let (Some(wide), Some(behind)) = (step.checked_mul(copies), step.checked_mul(copies - 1))
    else {
        return false;
    };
    let list = func.order.insts(body).to_vec();
    let Some((&end, list)) = list.split_last().filter(|_| wide <= most) else {
        return false;
    };
    let params = func.dfg.blocks[body].params.clone();
    let mut maker = Maker::near(func, inst);
    // As long as the last copy is in front of the end. Where nothing is that far in front of it the first number of all ends the loop.
    let lowest = maker.number(behind - most - 1, ty);
    let hi = maker.value(TileOp::Smax, &[data.args[1], lowest], &[], ty);
    let by = maker.number(behind, ty);
    let hi = maker.value(TileOp::Isub, &[hi, by], &[], ty);
    let wide = maker.number(wide, ty);
    let mut args = vec![data.args[0], hi, wide];
    args.extend(&data.args[3..]);
    args.push(data.args[0]);
    let types: Vec<TileType> = args[3..].iter().map(|&v| maker.func.dfg.ty(v)).collect();
    let region = maker.func.dfg.make_block();
    let counter = maker.func.dfg.append_param(region, ty);
    let mut carried: Vec<Value> = types
        .iter()
        .map(|&ty| maker.func.dfg.append_param(region, ty))
        .collect();
    carried.pop();
    let main = maker.build(TileOp::For, &args, data.attrs(), &types);
    maker.func.dfg.insts[main]
        .blocks
        .push(BlockCall::region(region));
    let outside = std::mem::take(&mut maker.made);
    for i in 0..copies {
        let by = maker.number(i * step, ty);
        let number = maker.value(TileOp::Iadd, &[counter, by], &[], ty);
        let starts = std::iter::once(number).chain(carried);
        carried = copy_body(&mut maker, list, end, &params, starts);
    }
    carried.push(maker.value(TileOp::Iadd, &[counter, wide], &[], ty));
    maker.build(TileOp::Yield, &carried, &[], &[]);
    let made = std::mem::take(&mut maker.made);
    maker.func.order.replace(region, made);

    let results = func.dfg.insts[main].results.clone();
    let rest = &mut func.dfg.insts[inst];
    let Some((&next, carried)) = results.split_last() else {
        return false;
    };
    rest.args = [next, data.args[1], data.args[2]]
        .iter()
        .chain(carried)
        .copied()
        .collect();
    rest.attrs.retain(|attr| attr.kind() != AttrKind::Stages);
    rest.attrs.push(make::stages(1));
    func.order.insert_before(inst, &outside);
    if all.is_some_and(|all| all % copies == 0) {
        for (&result, &value) in data.results.iter().zip(carried) {
            rename_uses(func, result, value);
        }
        let mut outer = func.order.insts(block).to_vec();
        outer.retain(|&other| other != inst);
        func.order.replace(block, outer);
    }
    true
}

/// What a loop's body yields of a copy of it with these values for its parameters.
fn copy_body(
    maker: &mut Maker<'_, Tile>,
    list: &[Inst],
    end: Inst,
    params: &[Value],
    starts: impl Iterator<Item = Value>,
) -> Vec<Value> {
    let mut map: FxHashMap<Value, Value> = params.iter().copied().zip(starts).collect();
    for &inst in list {
        let copy = copy_of(maker.func, inst, &mut map);
        maker.made.push(copy);
    }
    let next = maker.func.dfg.insts[end].args.iter();
    next.map(|value| *map.get(value).unwrap_or(value)).collect()
}

/// Whether a loop multiplies what it loads in another one that is then better pipelined.
fn pays(func: &TileFunction, inst: Inst, copies: u64, target: Target) -> bool {
    let order = ProgramOrder::compute(func);
    let (Some(block), Some(body)) = (func.order.block_of(inst), func.regions(inst).next()) else {
        return false;
    };
    let is_loop = |owner: Inst| func.dfg.insts[owner].op.is_loop();
    // What is pipelined is the loop in it; copies would fill a pipeline each ([`super::flatten_loops`]).
    let mut list = func.order.insts(body).iter();
    if list.any(|&inst| is_loop(inst)) {
        return false;
    }
    let mut inside = Matrices::default();
    inside.look(func, body);
    let mut around = Matrices::default();
    let others = func.order.insts(block).iter();
    others
        .filter(|&&other| other != inst)
        .for_each(|&other| around.look_at(func, other));
    let bytes = copies * inside.bytes(func) + around.bytes(func);
    order.owner(block).is_some_and(is_loop)
        && inside.loads > 0
        && (1..=MOST_PRODUCTS).contains(&(inside.products * copies as usize))
        && STAGES * bytes <= u64::from(target.shared_limit())
}

/// What products and loads ask of shared memory at most: each matrix that is loaded or multiplied may stand there.
#[derive(Default)]
struct Matrices {
    values: FxHashSet<Value>,
    loads: usize,
    products: usize,
}

impl Matrices {
    /// What is in a block and in regions in it.
    fn look(&mut self, func: &TileFunction, block: Block) {
        for &inst in func.order.insts(block) {
            self.look_at(func, inst);
        }
    }

    fn look_at(&mut self, func: &TileFunction, inst: Inst) {
        let data = &func.dfg.insts[inst];
        match data.op {
            TileOp::Load | TileOp::TensorLoad if func.dfg.ty(data.results[0]).shape.rank() > 1 => {
                self.loads += 1;
                self.values.insert(data.results[0]);
            }
            _ if data.is_product() => {
                self.products += 1;
                let operands = data.args.iter().take(2);
                self.values
                    .extend(operands.map(|&operand| unturned(func, operand)));
            }
            _ => {}
        }
        for region in func.regions(inst) {
            self.look(func, region);
        }
    }

    fn bytes(&self, func: &TileFunction) -> u64 {
        let types = self.values.iter().map(|&value| func.dfg.ty(value));
        types
            .map(|ty| ty.shape.elements() as u64 * u64::from(ty.elem.bytes()))
            .sum()
    }
}

/// What a matrix is before its dimensions are exchanged.
fn unturned(func: &TileFunction, mut value: Value) -> Value {
    while let Some(inst) = func.dfg.def_inst(value)
        && func.dfg.insts[inst].op == TileOp::Permute
    {
        value = func.dfg.insts[inst].args[0];
    }
    value
}

/// Puts copies of what a loop repeats in its place.
fn unroll(func: &mut TileFunction, inst: Inst, copies: i64) {
    let data = func.dfg.insts[inst].clone();
    let (Some(block), Some(body)) = (func.order.block_of(inst), func.regions(inst).next()) else {
        return;
    };
    let list = func.order.insts(body).to_vec();
    let Some((&end, list)) = list.split_last() else {
        return;
    };
    let params = func.dfg.blocks[body].params.clone();
    let (first, step) = (signed(func, data.args[0]), signed(func, data.args[2]));
    let mut carried: Vec<Value> = data.args[3..].to_vec();
    let mut maker = Maker::near(func, inst);
    for i in 0..copies {
        let number = first.unwrap_or(0) + i * step.unwrap_or(0);
        let number = maker.number(number, maker.func.dfg.ty(params[0]));
        let starts = std::iter::once(number).chain(carried);
        carried = copy_body(&mut maker, list, end, &params, starts);
    }
    let made = maker.made;
    for (&result, value) in data.results.iter().zip(carried) {
        rename_uses(func, result, value);
    }
    func.order.insert_before(inst, &made);
    let mut outer = func.order.insts(block).to_vec();
    outer.retain(|&other| other != inst);
    func.order.replace(block, outer);
}

#[cfg(test)]
mod tests {
    use super::unroll_loops;
    use crate::ir::attrs::Attrs;
    use crate::ir::function::TileFunction;
    use crate::ir::ops::TileOp;
    use crate::settings::Target;
    use crate::tile::testing::parse;

    /// What becomes of the loop from `lo` to `hi` in steps of 64 in another one, with blocks of so many rows: loops and products.
    fn left(lo: i32, hi: i32, rows: u32, target: Target) -> [usize; 2] {
        let mut func = parse(&format!(
            "kernel @k(v0: i32, v1: ptr<f16>[{rows},64], v2: ptr<f16>[64,{rows}]) warps(4) {{
            block0:
                v3 = const {{value = 0}} : i32
                v4 = const {{value = 1}} : i32
                v5 = const {{value = {lo}}} : i32
                v6 = const {{value = {hi}}} : i32
                v7 = const {{value = 64}} : i32
                v8 = const {{value = 0.0}} : f32[{rows},{rows}]
                v9 = for v3, v0, v4, v8 : f32[{rows},{rows}] {{
                block1(v10: i32, v11: f32[{rows},{rows}]):
                    v12 = for v5, v6, v7, v11 : f32[{rows},{rows}] {{
                    block2(v13: i32, v14: f32[{rows},{rows}]):
                        v20 = splat v13 : i32[{rows},64]
                        v15 = addptr v1, v20 : ptr<f16>[{rows},64]
                        v16 = load v15 : f16[{rows},64]
                        v21 = splat v13 : i32[64,{rows}]
                        v17 = addptr v2, v21 : ptr<f16>[64,{rows}]
                        v18 = load v17 : f16[64,{rows}]
                        v19 = dot v16, v18, v14 {{precision = ieee}} : f32[{rows},{rows}]
                        yield v19
                    }}
                    yield v12
                }}
                return
            }}"
        ));
        unroll_loops(&mut func, target);
        [TileOp::For, TileOp::Dot].map(|op| func.insts_with(op).count())
    }

    #[test]
    fn loops_of_few_iterations_are_written_out_in_others() {
        let of = |hi| left(0, hi, 64, Target::SM_90A);
        assert_eq!(of(64), [1, 1]);
        assert_eq!(of(65), [1, 2]);
        assert_eq!(of(256), [1, 4]);
        assert_eq!(of(257), [2, 1]);
        assert_eq!(left(-64, 64, 64, Target::SM_90A), [1, 2]);
        // None is dropped elsewhere.
        assert_eq!(of(0), [2, 1]);
    }

    #[test]
    fn there_is_room_for_three_iterations_of_the_loop_around() {
        assert_eq!(left(0, 128, 128, Target::SM_90A), [1, 2]);
        assert_eq!(left(0, 192, 128, Target::SM_90A), [2, 1]);
        assert_eq!(left(0, 128, 128, Target::SM_80), [2, 1]);
    }

    #[test]
    fn what_products_ask_for_counts_wherever_it_comes_from() {
        // Of two loops of four iterations in another one, the inner one alone.
        let depths = |loaded: &str, args: &str, inner: &str| {
            let mut func = parse(&format!(
                "kernel @k(v0: i32, v1: ptr<f16>[64,64], v2: i1) warps(4) {{
                block0:
                    v3 = const {{value = 0}} : i32
                    v4 = const {{value = 1}} : i32
                    v5 = const {{value = 4}} : i32
                    v6 = const {{value = 0.0}} : f32[64,64]
                    v7 = const {{value = 0.0}} : f16[64,64]
                    v20 = load v1 : f16[64,64]
                    v8 = for v3, v0, v4, v6 : f32[64,64] {{
                    block1(v9: i32, v10: f32[64,64]):
                        v11 = for v3, v5, v4, v10 : f32[64,64] {{
                        block2(v12: i32, v13: f32[64,64]):
                            v14 = for v3, {inner}, v4, v13 : f32[64,64] {{
                            block3(v15: i32, v16: f32[64,64]):
                                {loaded}
                                v18 = dot {args}, v16 {{precision = ieee}} : f32[64,64]
                                yield v18
                            }}
                            yield v14
                        }}
                        yield v11
                    }}
                    return
                }}"
            ));
            unroll_loops(&mut func, Target::SM_90A);
            [TileOp::For, TileOp::Dot].map(|op| func.insts_with(op).count())
        };
        let plain = "v17 = load v1 : f16[64,64]";
        assert_eq!(depths(plain, "v17, v17", "v5"), [2, 4]);
        assert_eq!(depths(plain, "v17, v17", "v4"), [1, 4]);
        // In a branch, with a sum of it besides: 24 KB, of which there is no room for twelve.
        let in_branch = "v17 = if v2 : f16[64,64] {
                block4:
                    v19 = load v1 : f16[64,64]
                    yield v19
                } {
                block5:
                    yield v7
                }
                v21 = fadd v17, v17 : f16[64,64]";
        assert_eq!(depths(in_branch, "v17, v21", "v5"), [3, 1]);
        // Nothing is loaded, and no pipeline filled.
        assert_eq!(depths("", "v20, v20", "v5"), [3, 1]);
    }

    #[test]
    fn counters_are_constants_and_sums_go_from_copy_to_copy() {
        let mut func = parse(
            "kernel @k(v0: i32, v1: ptr<i32>) warps(1) {
            block0:
                v2 = const {value = -3} : i32
                v3 = const {value = 2} : i32
                v4 = const {value = 5} : i32
                v5, v6 = for v2, v3, v4, v0, v4 : i32, i32 {
                block1(v7: i32, v8: i32, v9: i32):
                    v10 = iadd v8, v7 : i32
                    yield v9, v10
                }
                store v1, v6
                return
            }",
        );
        assert_eq!(unroll_loops(&mut func, Target::SM_80), 1);
        assert_eq!(func.insts_with(TileOp::For).count(), 0);
        let (_, store) = func.insts_with(TileOp::Store).next().expect("it stays");
        let sum = func.dfg.def_inst(func.dfg.insts[store].args[1]);
        let sum = &func.dfg.insts[sum.expect("a sum")];
        let added = func.dfg.def_inst(sum.args[1]).expect("a constant");
        assert_eq!((sum.op, sum.args[0]), (TileOp::Iadd, func.params()[0]));
        assert_eq!(func.dfg.insts[added].value(), Some(&0xFFFF_FFFD));
    }

    /// Loops that carry what depends on the order of all numbers give the same with as many copies as are asked for, wherever they
    /// begin and end.
    #[test]
    fn copies_that_are_asked_for_count_the_same_numbers() {
        use crate::tile::testing::{run, verified};
        let bounds = [
            (0, 0),
            (0, 1),
            (0, 7),
            (0, 8),
            (-3, 10),
            (5, 2),
            (i32::MIN, i32::MIN + 1),
            (i32::MIN, i32::MIN + 9),
            (i32::MIN + 1, i32::MIN),
            (i32::MAX - 20, i32::MAX - 7),
        ];
        for (copies, step) in [(2, 1), (4, 1), (3, 2), (4, 3)] {
            for (lo, hi) in bounds {
                for (first, end) in [("v2", "v3"), ("v4", "v3"), ("v2", "v5"), ("v4", "v5")] {
                    let text = |hint: &str| {
                        format!(
                            "kernel @k(v0: ptr<i32>) warps(1) {{
                            block0:
                                v1 = const {{value = 1}} : i32
                                v2 = load v0 : i32
                                v10 = addptr v0, v1 : ptr<i32>
                                v3 = load v10 : i32
                                v4 = const {{value = {lo}}} : i32
                                v5 = const {{value = {hi}}} : i32
                                v6 = const {{value = {step}}} : i32
                                v7 = const {{value = 31}} : i32
                                v8, v9 = for {first}, {end}, v6, v7, v1{hint} : i32, i32 {{
                                block1(v11: i32, v12: i32, v13: i32):
                                    v14 = imul v12, v7 : i32
                                    v15 = iadd v14, v11 : i32
                                    yield v15, v12
                                }}
                                store v0, v8
                                store v10, v9
                                return
                            }}"
                        )
                    };
                    let buffer: Vec<u8> = [lo, hi].iter().flat_map(|x| x.to_le_bytes()).collect();
                    let plain = parse(&text(""));
                    let mut func = parse(&text(&format!(" {{unroll = {copies}}}")));
                    unroll_loops(&mut func, Target::SM_80);
                    verified(&func);
                    let buffers = [buffer];
                    assert_eq!(
                        run(&func, &buffers),
                        run(&plain, &buffers),
                        "{copies} {step} {lo} {hi} {first} {end}"
                    );
                    let hints = |func: &TileFunction| {
                        let mut all = func.all_insts();
                        all.any(|(_, inst)| func.dfg.insts[inst].unroll().is_some())
                    };
                    assert!(!hints(&func));
                }
            }
        }
    }

    #[test]
    fn what_is_left_of_a_loop_stays_where_there_is_something_left() {
        let made = |hi: i32, copies: u32, step: &str| {
            let mut func = parse(&format!(
                "kernel @k(v0: ptr<i32>, v1: i32) warps(1) {{
                block0:
                    v2 = const {{value = 0}} : i32
                    v3 = const {{value = {hi}}} : i32
                    v4 = const {{value = 2}} : i32
                    for v2, v3, {step} {{unroll = {copies}}} {{
                    block1(v5: i32):
                        store v0, v5
                        yield
                    }}
                    return
                }}"
            ));
            unroll_loops(&mut func, Target::SM_80);
            [TileOp::For, TileOp::Store].map(|op| func.insts_with(op).count())
        };
        assert_eq!(made(20, 4, "v4"), [2, 5]);
        assert_eq!(made(16, 4, "v4"), [1, 4]);
        assert_eq!(made(16, 8, "v4"), [0, 8]);
        for copies in [0, 1] {
            assert_eq!(made(16, copies, "v4"), [1, 1]);
        }
        // By a step that is not known nothing is.
        assert_eq!(made(16, 4, "v1"), [1, 1]);
    }
}
