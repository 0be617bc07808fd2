//! Sums of rows that a loop scales and adds up, as those of a softmax, stay spread over the threads that hold a row.
//!
//! ```text
//! s' = for .. carrying s {             b' = for .. carrying b = [s, -0.0, -0.0, -0.0] {
//!     r = reduce x by +           =>       y = reduce x by +, but for its columns modulo 8 / 2
//!     yield s * f + r                      yield b * f + y
//! }                                    }
//!                                      s' = reduce b' by +
//! ```
//!
//! Four threads hold a row of what a unit for matrices leaves, each of them two columns of eight. What they add up alone takes no
//! shuffles; with four columns in place of one each of them carries its own sum in the register in which all carried the same one. Of
//! attention with 64 columns that takes 8 instructions of 450 in an iteration, and the wait between them: on an H100 2 to 5 % of the time.
//!
//! The terms are the same, scaled by the same factors, and added in another order, as with [`super::defer_sums`]. An infinite factor
//! would make something else of a part that is zero than of the sum, so the factor must be known to be at most one: `exp(a - max(a, b))`,
//! or a positive multiple of that difference. It may be no number where all of the sum is none then.
//!
//! It is done of products by warpgroups whose rows are enough for all warps, so that all columns of a row are in one warp. With other units
//! it was not measured, and ptxas spills 12 bytes of one kernel of 858 that it did not spill before.

use super::defer_sums::is_sum;
use super::edit::{rename_uses, use_counts};
use super::start_dots::is_for_warpgroup;
use crate::ir::attrs::{Attrs, IntPred, make};
use crate::ir::dfg::BlockCall;
use crate::ir::effects::OpClass;
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::function::TileFunction;
use crate::ir::level::Tile;
use crate::ir::maker::Maker;
use crate::ir::ops::TileOp;
use crate::ir::types::{Elem, Scalar, TileType};
use crate::linear_layout::shape::Shape;
use crate::settings::Target;

/// Threads of a row, columns of each that are neighbours, and rows of a warp, in what the unit leaves.
const THREADS: u64 = 4;
const NEIGHBOURS: u64 = 2;
const ROWS: u64 = 16;

/// The bits of -0.0, from which a sum of floats keeps even zeros' signs.
const NOTHING: i64 = 1 << 31;

/// Instructions that are looked at for the product that a block is made from.
const MOST_LOOKED_AT: usize = 64;

/// A sum that a loop scales and adds to.
struct Sum {
    body: Block,
    /// `s * f`, the reduction, and their sum.
    scaled: Inst,
    reduce: Inst,
    add: Inst,
    factor: Value,
    /// What is reduced.
    block: Value,
}

/// Spreads sums, if floats may be added in another order; gives how many.
pub fn spread_sums(func: &mut TileFunction, target: Target, floats: bool) -> usize {
    if !floats {
        return 0;
    }
    let loops: Vec<(Block, Inst)> = func.insts_with(TileOp::For).collect();
    let mut count = 0;
    for (around, inst) in loops {
        for position in 0..func.dfg.insts[inst].results.len() {
            if let Some(sum) = find(func, target, inst, position) {
                spread(func, around, inst, position, &sum);
                count += 1;
            }
        }
    }
    count
}

fn find(func: &TileFunction, target: Target, inst: Inst, position: usize) -> Option<Sum> {
    let dfg = &func.dfg;
    let body = dfg.insts[inst].blocks.first()?.block;
    let carried = *dfg.blocks[body].params.get(1 + position)?;
    let next = *dfg.insts[func.order.last(body)?].args.get(position)?;
    let here = |value: Value, op: TileOp| {
        let inst = dfg.def_inst(value)?;
        let is_it = dfg.insts[inst].op == op && func.order.block_of(inst) == Some(body);
        is_it.then_some(inst)
    };
    let add = here(next, TileOp::Fadd)?;
    let &[a, b] = &dfg.insts[add].args[..] else {
        return None;
    };
    let (scaled, reduce) = [(a, b), (b, a)]
        .into_iter()
        .find_map(|(x, y)| Some((here(x, TileOp::Fmul)?, here(y, TileOp::Reduce)?)))?;
    let factor = match dfg.insts[scaled].args[..] {
        [s, factor] | [factor, s] if s == carried && factor != carried => factor,
        _ => return None,
    };
    let block = *dfg.insts[reduce].args.first()?;
    let ty = dfg.ty(block);
    let rows = ROWS * u64::from(func.num_warps());
    let fits = ty.elem == Elem::Num(Scalar::F32)
        && ty.shape.rank() == 2
        && dfg.insts[reduce].axis() == Some(&1)
        && THREADS * NEIGHBOURS < ty.shape.extent(1)
        && rows <= ty.shape.extent(0);
    let uses = use_counts(func);
    let results = [scaled, reduce, add].map(|inst| dfg.insts[inst].results[0]);
    let is_only = |value: Value| uses[value] == 1;
    let holds = fits
        && results.into_iter().chain([carried]).all(is_only)
        && is_sum(func, reduce, TileOp::Fadd)
        && is_at_most_one(func, factor)
        && is_of_unit(func, target, block);
    holds.then_some(Sum {
        body,
        scaled,
        reduce,
        add,
        factor,
        block,
    })
}

/// Whether a factor is an exponential of something that is not above zero: at most one, or no number.
fn is_at_most_one(func: &TileFunction, factor: Value) -> bool {
    let made = |value: Value, ops: &[TileOp]| {
        let data = &func.dfg.insts[func.dfg.def_inst(value)?];
        ops.contains(&data.op).then_some(&data.args[..])
    };
    let is_positive = |value: Value| {
        let mut inst = func.dfg.def_inst(value);
        if let Some(splat) = inst.filter(|&inst| func.dfg.insts[inst].op == TileOp::Splat) {
            inst = func.dfg.def_inst(func.dfg.insts[splat].args[0]);
        }
        let bits = inst.and_then(|inst| func.dfg.insts[inst].value().copied());
        bits.is_some_and(|bits| {
            let number = f32::from_bits(bits as u32);
            0.0 < number && number.is_finite()
        })
    };
    let Some(&[exponent]) = made(factor, &[TileOp::Exp, TileOp::Exp2]) else {
        return false;
    };
    let difference = match made(exponent, &[TileOp::Fmul]) {
        Some(&[x, y]) if is_positive(y) => x,
        Some(&[x, y]) if is_positive(x) => y,
        Some(_) => return false,
        None => exponent,
    };
    let Some(&[a, largest]) = made(difference, &[TileOp::Fsub]) else {
        return false;
    };
    made(largest, &[TileOp::Fmax]).is_some_and(|of| of.contains(&a))
}

/// Whether a block is made, element by element, from what warpgroups multiply.
fn is_of_unit(func: &TileFunction, target: Target, block: Value) -> bool {
    let ty = func.dfg.ty(block);
    let mut todo = vec![block];
    for _ in 0..MOST_LOOKED_AT {
        let Some(inst) = todo.pop().map(|value| func.dfg.def_inst(value)) else {
            return false;
        };
        let Some(inst) = inst else { continue };
        let data = &func.dfg.insts[inst];
        if data.op == TileOp::Dot {
            return is_for_warpgroup(func, inst, target);
        }
        if data.class() == OpClass::Elementwise {
            let args = data.args.iter().copied();
            todo.extend(args.filter(|&arg| func.dfg.ty(arg).shape == ty.shape));
        }
    }
    false
}

fn spread(func: &mut TileFunction, around: Block, inst: Inst, position: usize, sum: &Sum) {
    let ty = func.dfg.ty(sum.block);
    let [rows, columns] = [0, 1].map(|dim| ty.shape.extent(dim));
    let of = |extents: &[u64]| Shape::new(extents).map(|shape| ty.with_shape(shape));
    let runs = columns / (THREADS * NEIGHBOURS);
    let (Ok(row), Ok(spread), Ok(run), Ok(whole)) = (
        of(&[rows, 1]),
        of(&[rows, THREADS]),
        of(&[rows, runs, THREADS]),
        of(&[rows, runs, THREADS, NEIGHBOURS]),
    ) else {
        return;
    };
    let total = func.dfg.ty(func.dfg.insts[inst].results[position]);
    let result = func.dfg.insts[inst].results[position];
    let start = func.dfg.insts[inst].args[3 + position];
    let carried = func.dfg.blocks[sum.body].params[1 + position];
    let next = func.dfg.insts[sum.add].results[0];
    for value in [carried, next, result] {
        func.dfg.values[value].ty = spread;
    }

    // Inside: each thread's part.
    let mut maker = Maker::near(func, sum.add);
    let shaped = maker.value(TileOp::Reshape, &[sum.block], &[], whole);
    let pairs = self::sum(&mut maker, shaped, 3, run);
    let parts = self::sum(&mut maker, pairs, 1, spread);
    let factor = maker.value(TileOp::ExpandDims, &[sum.factor], &[make::axis(1)], row);
    let factor = maker.value(TileOp::Broadcast, &[factor], &[], spread);
    let scaled = maker.value(TileOp::Fmul, &[carried, factor], &[], spread);
    let inside = std::mem::take(&mut maker.made);
    maker.func.dfg.insts[sum.add].args = [scaled, parts].into_iter().collect();

    // In front: what the sum starts from is the first thread's part.
    let start = started(&mut maker, start, row, spread);
    let front = std::mem::take(&mut maker.made);
    maker.func.dfg.insts[inst].args[3 + position] = start;

    // Behind: the sum.
    let whole_sum = self::sum(&mut maker, carried, 1, total);
    let behind = std::mem::take(&mut maker.made);
    rename_uses(func, result, whole_sum);
    let reduce = func.dfg.def_inst(whole_sum).expect("it was just made");
    func.dfg.insts[reduce].args[0] = result;

    let placed = |list: &[Inst], at: Inst, front: &[Inst], behind: &[Inst], gone: &[Inst]| {
        let mut placed = Vec::new();
        for &other in list {
            if gone.contains(&other) {
                continue;
            }
            if other == at {
                placed.extend(front);
                placed.push(other);
                placed.extend(behind);
            } else {
                placed.push(other);
            }
        }
        placed
    };
    let gone = [sum.scaled, sum.reduce];
    let body = placed(func.order.insts(sum.body), sum.add, &inside, &[], &gone);
    func.order.replace(sum.body, body);
    let list = placed(func.order.insts(around), inst, &front, &behind, &[]);
    func.order.replace(around, list);
}

/// What a spread sum starts from.
fn started(maker: &mut Maker<'_, Tile>, start: Value, row: TileType, spread: TileType) -> Value {
    if let Some(inst) = maker.func.dfg.def_inst(start) {
        let made = &maker.func.dfg.insts[inst];
        // Parts of a loop in front of this one go on.
        let is_reduced = made.op == TileOp::Reduce && maker.func.dfg.ty(made.args[0]) == spread;
        if is_reduced && is_sum(maker.func, inst, TileOp::Fadd) {
            return made.args[0];
        }
        // Zeros of either sign stay what they are.
        if let Some(&bits) = made.value()
            && bits & !(NOTHING as u64) == 0
        {
            return maker.number(bits as i64, spread);
        }
    }
    let whole = maker.value(TileOp::ExpandDims, &[start], &[make::axis(1)], row);
    let whole = maker.value(TileOp::Broadcast, &[whole], &[], spread);
    let nothing = maker.number(NOTHING, spread);
    let index = Elem::Num(Scalar::I32);
    let at = |shape| TileType::block(index, shape);
    let (Ok(line), Ok(lines)) = (Shape::new(&[THREADS]), Shape::new(&[1, THREADS])) else {
        return whole;
    };
    let column = maker.value(TileOp::Arange, &[], &[make::start(0)], at(line));
    let column = maker.value(TileOp::ExpandDims, &[column], &[make::axis(0)], at(lines));
    let column = maker.value(TileOp::Broadcast, &[column], &[], at(spread.shape));
    let zero = maker.number(0, at(spread.shape));
    let truth = TileType::block(Elem::I1, spread.shape);
    let is_first = maker.value(
        TileOp::Icmp,
        &[column, zero],
        &[make::ipred(IntPred::Eq)],
        truth,
    );
    maker.value(TileOp::Select, &[is_first, whole, nothing], &[], spread)
}

/// The sum along an axis.
fn sum(maker: &mut Maker<'_, Tile>, block: Value, axis: u8, ty: TileType) -> Value {
    let elem = TileType::scalar(ty.elem);
    let region = maker.func.dfg.make_block();
    let terms = [(); 2].map(|()| maker.func.dfg.append_param(region, elem));
    let before = std::mem::take(&mut maker.made);
    let both = maker.value(TileOp::Fadd, &terms, &[], elem);
    maker.build(TileOp::Yield, &[both], &[], &[]);
    let inner = std::mem::replace(&mut maker.made, before);
    maker.func.order.replace(region, inner);
    let inst = maker.build(TileOp::Reduce, &[block], &[make::axis(axis)], &[ty]);
    let data = &mut maker.func.dfg.insts[inst];
    data.blocks.push(BlockCall::region(region));
    data.results[0]
}

#[cfg(test)]
mod tests {
    use super::spread_sums;
    use crate::ir::ops::TileOp;
    use crate::settings::Target;
    use crate::tile::testing::{fixed_point, parse, run, verified};

    /// A loop over products, the exponentials of whose rows are added up, as those of a softmax. Its values are named from `v` on; `start`
    /// is what the sum starts from, `known` the largest of a row so far, and `more` stands behind the sum.
    fn looped(v: u32, start: &str, known: &str, more: &str) -> String {
        let n = |i: u32| format!("v{}", v + i);
        let block = |i: u32| format!("block{}", v + i);
        let text = "
                @0, @1 = for v2, v3, v4, START, v13 : f32[64], f32[64] {
                #1(@2: i32, @3: f32[64], @4: f32[64]):
                    @5 = imul @2, v14 : i32
                    @6 = splat @5 : i32[16,64]
                    @7 = iadd @6, v10 : i32[16,64]
                    @8 = addptr v11, @7 : ptr<f16>[16,64]
                    @9 = load @8 : f16[16,64]
                    @10 = dot v9, @9, v12 {precision = ieee} : f32[64,64]
                    @11 = reduce @10 {axis = 1} : f32[64] {
                    #2(@12: f32, @13: f32):
                        @14 = fmax @12, @13 {nan = ignore} : f32
                        yield @14
                    }
                    @15 = fmax KNOWN, @11 {nan = ignore} : f32[64]
                    @16 = expand_dims @15 {axis = 1} : f32[64,1]
                    @17 = broadcast @16 : f32[64,64]
                    @18 = fsub @10, @17 : f32[64,64]
                    @19 = exp2 @18 : f32[64,64]
                    @20 = fsub @4, @15 : f32[64]
                    @21 = exp2 @20 : f32[64]
                    @22 = fmul @3, @21 : f32[64]
                    @23 = reduce @19 {axis = 1} : f32[64] {
                    #3(@24: f32, @25: f32):
                        @26 = fadd @24, @25 : f32
                        yield @26
                    }
                    MORE
                    @27 = fadd @22, @23 : f32[64]
                    yield @27, @15
                }";
        let text = text
            .replace("START", start)
            .replace("KNOWN", known)
            .replace("MORE", more);
        // The longest names first, of which shorter ones are the beginning.
        let text = (0..28)
            .rev()
            .fold(text, |text, i| text.replace(&format!("@{i}"), &n(i)));
        (1..4).fold(text, |text, i| text.replace(&format!("#{i}"), &block(i)))
    }

    /// A kernel with these loops, that stores `sum`.
    fn kernel(loops: &str, sum: &str) -> String {
        format!(
            "kernel @k(v0: ptr<f32>, v1: ptr<f16>) warps(4) {{
            block0:
                v2 = const {{value = 0}} : i32
                v3 = const {{value = 3}} : i32
                v4 = const {{value = 1}} : i32
                v5 = arange {{start = 0}} : i32[1024]
                v6 = reshape v5 : i32[64,16]
                v7 = splat v1 : ptr<f16>[64,16]
                v8 = addptr v7, v6 : ptr<f16>[64,16]
                v9 = load v8 : f16[64,16]
                v10 = reshape v5 : i32[16,64]
                v11 = splat v1 : ptr<f16>[16,64]
                v12 = const {{value = 0.0}} : f32[64,64]
                v13 = const {{value = -9.0}} : f32[64]
                v14 = const {{value = 1024}} : i32
                v15 = arange {{start = 0}} : i32[64]
                v16 = sitofp v15 : f32[64]
                v17 = const {{value = -0.0}} : f32[64]
                {loops}
                v18 = splat v0 : ptr<f32>[64]
                v19 = addptr v18, v15 : ptr<f32>[64]
                store v19, {sum}
                return
            }}"
        )
    }

    /// A kernel with one such loop.
    fn rows(start: &str, known: &str, more: &str) -> String {
        kernel(&looped(20, start, known, more), "v20")
    }

    /// Factors that are small whole numbers: powers of two are exact, and so are their sums.
    fn factors() -> Vec<u8> {
        let factors = (0..4096).map(|i: u32| half::f16::from_f32((i * 7 % 3) as f32 - 1.0));
        factors.flat_map(half::f16::to_le_bytes).collect()
    }

    #[test]
    fn the_sum_is_the_same() {
        for start in ["v16", "v17"] {
            let before = parse(&rows(start, "v24", ""));
            let mut after = before.clone();
            assert_eq!(spread_sums(&mut after, Target::SM_90A, true), 1);
            verified(&after);
            let buffers = [vec![0; 256], factors()];
            let found = run(&after, &buffers);
            assert_eq!(found, run(&before, &buffers), "{start}");
            assert!(found[0].iter().any(|&byte| byte != 0), "nothing was added");
        }
    }

    /// What the second loop starts from are the parts that the first one leaves.
    #[test]
    fn parts_go_on_into_the_next_loop() {
        let loops = looped(20, "v17", "v24", "") + &looped(60, "v20", "v64", "");
        let before = parse(&kernel(&loops, "v60"));
        let mut after = before.clone();
        assert_eq!(spread_sums(&mut after, Target::SM_90A, true), 2);
        verified(&after);
        assert!(
            !after
                .dfg
                .insts
                .values()
                .any(|data| data.op == TileOp::Select)
        );
        let buffers = [vec![0; 256], factors()];
        assert_eq!(run(&after, &buffers), run(&before, &buffers));
    }

    #[test]
    fn other_sums_stay() {
        let stays = |target: Target, floats: bool, text: &str| {
            fixed_point(|func| spread_sums(func, target, floats), text);
        };
        let text = rows("v17", "v24", "");
        // The user wants floats added as they stand.
        stays(Target::SM_90A, false, &text);
        // Another unit, whose products were not measured.
        stays(Target::SM_80, true, &text);
        // A factor that may be infinite; another use of the sum so far, and of the iteration's sum.
        stays(Target::SM_90A, true, &rows("v17", "v16", ""));
        for more in ["v50 = fneg v23 : f32[64]", "v50 = fneg v43 : f32[64]"] {
            stays(Target::SM_90A, true, &rows("v17", "v24", more));
        }
        // Warps that share rows.
        stays(Target::SM_90A, true, &text.replace("warps(4)", "warps(8)"));
        // No unit's rows.
        let product = "dot v9, v29, v12 {precision = ieee}";
        assert!(text.contains(product));
        let plain = text.replace(product, "fneg v12");
        stays(Target::SM_90A, true, &plain);
    }
}
