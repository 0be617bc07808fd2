//! Sums over an axis that a loop adds up are taken behind it: inside, whole blocks are added.
//!
//! ```text
//! s' = for .. carrying s {              b' = for .. carrying b, from -0.0 or 0 {
//!     r = reduce x by +             =>      yield b + x
//!     yield s + r                       }
//! }                                     s' = s + reduce b' by +
//! ```
//!
//! Combining threads costs shuffles, and shared memory and barriers where warps take part, in each iteration; an addition of
//! blocks takes as many additions as the part of the reduction within a thread, of halves in pairs. The terms are the same and
//! added in another order, as the order within `reduce` is nobody's promise either: each element gets sums of its own, which
//! are shorter and no less exact. Triton does the same for what is loaded. Sums of floats stay in place where the options
//! want products and sums apart (`fp_fusion` is off).
//!
//! A sum is deferred if the loop's body uses the carried value in that one addition alone, and the reduction in nothing else
//! than new axes on its way to it. The block may take `MOST_BYTES` of each thread's registers. Inner loops come first, so
//! that a sum leaves as many loops as carry it. Time is linear in the function for each sum.

use super::edit::{rename_uses, use_counts};
use crate::ir::dfg::ValueDef;
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::function::TileFunction;
use crate::ir::maker::Maker;
use crate::ir::ops::TileOp;
use crate::ir::types::TileType;

/// Most bytes of a deferred block that each thread holds. With 128 in place of a reduction in each of 17 iterations a vector times a thin
/// matrix takes 3 to 10 % less time, though 96 registers leave room for five CTAs and 64 for eight.
const MOST_BYTES: u32 = 128;

/// The same for more than four warps: CTAs of eight leave less to choose, and with 86 registers in place of 56 there is room for two
/// instead of four, which takes 7 % longer. And beside products, whose sums need the registers.
const LESS_BYTES: u32 = 64;

/// The sign bit of -0.0, from which a sum of floats keeps even zeros' signs.
fn neutral(ty: TileType) -> u64 {
    match ty.elem.is_float() {
        true => 1 << (ty.elem.bits() - 1),
        false => 0,
    }
}

/// Moves sums behind loops, those of floats if `floats`; gives how many.
pub fn defer_sums(func: &mut TileFunction, floats: bool) -> usize {
    let loops: Vec<(Block, Inst)> = func.insts_with(TileOp::For).collect();
    let mut count = 0;
    // Blocks come in program order with those of an instruction behind its own.
    for &(_, inst) in loops.iter().rev() {
        let carried = func.dfg.insts[inst].results.len();
        for position in 0..carried {
            if let Some(sum) = find(func, inst, position, floats) {
                defer(func, inst, position, sum);
                count += 1;
            }
        }
    }
    count
}

/// What a loop adds to a carried value.
struct Sum {
    body: Block,
    /// The addition.
    add: Inst,
    /// The reduction, and the new axes that its result gets.
    way: Vec<Inst>,
    /// What is reduced.
    block: Value,
}

fn find(func: &TileFunction, inst: Inst, position: usize, floats: bool) -> Option<Sum> {
    let dfg = &func.dfg;
    let body = dfg.insts[inst].blocks.first()?.block;
    let carried = *dfg.blocks[body].params.get(1 + position)?;
    let last = func.order.last(body)?;
    let next = *dfg.insts[last].args.get(position)?;
    let here = |value: Value| {
        let inst = dfg.def_inst(value)?;
        (func.order.block_of(inst) == Some(body)).then_some(inst)
    };
    let add = here(next)?;
    let op = dfg.insts[add].op;
    let &[a, b] = &dfg.insts[add].args[..] else {
        return None;
    };
    let mut value = match (op, a == carried, b == carried) {
        (TileOp::Iadd | TileOp::Fadd, true, false) => b,
        (TileOp::Iadd | TileOp::Fadd, false, true) => a,
        _ => return None,
    };
    if op == TileOp::Fadd && !floats {
        return None;
    }
    let mut way = Vec::new();
    let block = loop {
        let inst = here(value)?;
        way.push(inst);
        let data = &dfg.insts[inst];
        value = *data.args.first()?;
        match data.op {
            TileOp::ExpandDims => {}
            TileOp::Reduce if is_sum(func, inst, op) => break value,
            _ => return None,
        }
    };
    way.reverse();
    let ty = dfg.ty(block);
    let bytes = u64::from(ty.elem.bytes()) << ty.shape.log2_elements();
    let mut insts = func.all_insts();
    let multiplies = insts.any(|(_, inst)| func.dfg.insts[inst].is_product());
    let most = match func.num_warps() {
        ..=4 if !multiplies => MOST_BYTES,
        _ => LESS_BYTES,
    };
    if u64::from(most) * u64::from(func.num_threads()) < bytes {
        return None;
    }
    let uses = use_counts(func);
    let results = way.iter().map(|&inst| dfg.insts[inst].results[0]);
    let is_only = |value: Value| uses[value] == 1;
    let only = results.chain([carried, next]).all(is_only);
    only.then_some(Sum {
        body,
        add,
        way,
        block,
    })
}

/// Whether a reduction of one operand combines elements with an op alone.
pub(super) fn is_sum(func: &TileFunction, inst: Inst, op: TileOp) -> bool {
    let data = &func.dfg.insts[inst];
    let [call] = &data.blocks[..] else {
        return false;
    };
    let params = &func.dfg.blocks[call.block].params;
    let &[combine, end] = func.order.insts(call.block) else {
        return false;
    };
    let (combine, end) = (&func.dfg.insts[combine], &func.dfg.insts[end]);
    let is_param = |&value: &Value| {
        let def = func.dfg.values[value].def;
        matches!(def, ValueDef::Param(block, _) if block == call.block)
    };
    data.args.len() == 1
        && params.len() == 2
        && combine.op == op
        && combine.args[0] != combine.args[1]
        && combine.args.iter().all(is_param)
        && end.args[..] == combine.results[..]
}

fn defer(func: &mut TileFunction, inst: Inst, position: usize, sum: Sum) {
    let ty = func.dfg.ty(sum.block);
    let data = &func.dfg.insts[inst];
    let (result, start) = (data.results[position], data.args[3 + position]);

    // Inside: whole blocks.
    let carried = func.dfg.blocks[sum.body].params[1 + position];
    let add = &mut func.dfg.insts[sum.add];
    let op = add.op;
    add.args = [carried, sum.block].into_iter().collect();
    let next = add.results[0];
    let total_ty = func.dfg.ty(next);
    for value in [carried, next, result] {
        func.dfg.values[value].ty = ty;
    }
    func.order.retain(sum.body, |inst| !sum.way.contains(&inst));

    // In front: nothing yet. Behind: what was taken out, and where the sum had started.
    let mut maker = Maker::near(func, inst);
    let nothing = maker.number(neutral(ty) as i64, ty);
    let zero = maker.made;
    func.dfg.insts[inst].args[3 + position] = nothing;
    let &outermost = sum.way.last().expect("a reduction is on the way");
    let total = func.dfg.insts[outermost].results[0];
    let mut maker = Maker::near(func, inst);
    let ended = maker.value(op, &[start, total], &[], total_ty);
    let end = maker.made;
    rename_uses(func, result, ended);
    func.dfg.insts[sum.way[0]].args[0] = result;

    let block = func.order.block_of(inst).expect("loops stand in blocks");
    let mut list = Vec::new();
    for &other in func.order.insts(block) {
        if other == inst {
            list.extend(&zero);
            list.push(inst);
            list.extend(&sum.way);
            list.extend(&end);
        } else {
            list.push(other);
        }
    }
    func.order.replace(block, list);
}

#[cfg(test)]
mod tests {
    use super::defer_sums;
    use crate::ir::function::TileFunction;
    use crate::tile::testing::{check_pass, fixed_point, parse, run, verified};

    /// Adds up the sums of `rows` blocks of 8 x 32 along an axis; `more` stands behind the sum.
    fn sums(elem: &str, op: &str, zero: &str, more: &str) -> String {
        format!(
            "kernel @k(v0: ptr<{elem}>, v1: ptr<{elem}>) warps(1) {{
            block0:
                v2 = const {{value = 0}} : i32
                v3 = const {{value = 5}} : i32
                v4 = const {{value = 1}} : i32
                v5 = arange {{start = 0}} : i32[256]
                v6 = reshape v5 : i32[8,32]
                v7 = splat v0 : ptr<{elem}>[8,32]
                v8 = const {{value = {zero}}} : {elem}[8,1]
                v9 = const {{value = 256}} : i32
                v10 = for v2, v3, v4, v8 {{stages = 1}} : {elem}[8,1] {{
                block1(v11: i32, v12: {elem}[8,1]):
                    v13 = imul v11, v9 : i32
                    v14 = splat v13 : i32[8,32]
                    v15 = iadd v14, v6 : i32[8,32]
                    v16 = addptr v7, v15 : ptr<{elem}>[8,32]
                    v17 = load v16 : {elem}[8,32]
                    v18 = reduce v17 {{axis = 1}} : {elem}[8] {{
                    block2(v19: {elem}, v20: {elem}):
                        v21 = {op} v19, v20 : {elem}
                        yield v21
                    }}
                    v22 = expand_dims v18 {{axis = 1}} : {elem}[8,1]
                    {more}
                    v23 = {op} v22, v12 : {elem}[8,1]
                    yield v23
                }}
                v24 = splat v1 : ptr<{elem}>[8,1]
                v25 = arange {{start = 0}} : i32[8]
                v26 = expand_dims v25 {{axis = 1}} : i32[8,1]
                v27 = addptr v24, v26 : ptr<{elem}>[8,1]
                store v27, v10
                return
            }}"
        )
    }

    #[test]
    fn blocks_are_added_instead() {
        check_pass(
            |func| defer_sums(func, true),
            &sums("f16", "fadd", "0.5", ""),
            "kernel @k(v0: ptr<f16>, v1: ptr<f16>) warps(1) {
            block0:
                v2 = const {value = 0} : i32
                v3 = const {value = 5} : i32
                v4 = const {value = 1} : i32
                v5 = arange {start = 0} : i32[256]
                v6 = reshape v5 : i32[8,32]
                v7 = splat v0 : ptr<f16>[8,32]
                v8 = const {value = 0.5} : f16[8,1]
                v9 = const {value = 256} : i32
                v28 = const {value = -0.0} : f16[8,32]
                v10 = for v2, v3, v4, v28 {stages = 1} : f16[8,32] {
                block1(v11: i32, v12: f16[8,32]):
                    v13 = imul v11, v9 : i32
                    v14 = splat v13 : i32[8,32]
                    v15 = iadd v14, v6 : i32[8,32]
                    v16 = addptr v7, v15 : ptr<f16>[8,32]
                    v17 = load v16 : f16[8,32]
                    v23 = fadd v12, v17 : f16[8,32]
                    yield v23
                }
                v18 = reduce v10 {axis = 1} : f16[8] {
                block2(v19: f16, v20: f16):
                    v21 = fadd v19, v20 : f16
                    yield v21
                }
                v22 = expand_dims v18 {axis = 1} : f16[8,1]
                v29 = fadd v8, v22 : f16[8,1]
                v24 = splat v1 : ptr<f16>[8,1]
                v25 = arange {start = 0} : i32[8]
                v26 = expand_dims v25 {axis = 1} : i32[8,1]
                v27 = addptr v24, v26 : ptr<f16>[8,1]
                store v27, v29
                return
            }",
        );
    }

    #[test]
    fn the_sum_is_the_same() {
        for (elem, op) in [("i32", "iadd"), ("f32", "fadd")] {
            let before = parse(&sums(elem, op, if elem == "i32" { "3" } else { "3.0" }, ""));
            let mut after: TileFunction = before.clone();
            assert_eq!(defer_sums(&mut after, true), 1);
            verified(&after);
            // Small integers, whose sums are exact in both types.
            let number = |i: i32| (i * 37) % 101 - 50;
            let bytes = (0..5 * 256).flat_map(|i| match elem {
                "i32" => number(i).to_le_bytes(),
                _ => (number(i) as f32).to_le_bytes(),
            });
            let buffers = [bytes.collect(), vec![0; 32]];
            assert_eq!(run(&after, &buffers), run(&before, &buffers), "{elem}");
        }
    }

    #[test]
    fn other_sums_stay() {
        let stays = |floats: bool, text: &str| fixed_point(|func| defer_sums(func, floats), text);
        // The user wants floats added as they stand.
        stays(false, &sums("f32", "fadd", "0.0", ""));
        // Another use of the sum so far, and of the iteration's sum.
        for more in ["v40 = fneg v12 : f32[8,1]", "v40 = fneg v18 : f32[8]"] {
            stays(true, &sums("f32", "fadd", "0.0", more));
        }
        // Products have no such form.
        stays(true, &sums("f32", "fmul", "1.0", ""));
    }

    #[test]
    fn integers_move_whatever_the_options() {
        let mut func = parse(&sums("i32", "iadd", "0", ""));
        assert_eq!(defer_sums(&mut func, false), 1);
    }

    /// What a thread adds up instead has room in its registers: 32 numbers of 1024 in 32 threads, and not 64 of 2048; of eight warps 16.
    #[test]
    fn blocks_that_take_many_registers_stay() {
        for (columns, warps, moves) in [(128, 1, 1), (256, 1, 0), (512, 8, 1), (1024, 8, 0)] {
            let text = sums("f32", "fadd", "0.0", "");
            let text = text.replace("warps(1)", &format!("warps({warps})"));
            let text = text.replace("256", &(8 * columns).to_string());
            let text = text.replace("8,32]", &format!("8,{columns}]"));
            assert_eq!(
                defer_sums(&mut parse(&text), true),
                moves,
                "{columns} {warps}"
            );
        }
    }

    /// Beside a product, whose sum takes registers, a thread adds up 16 numbers and not 32.
    #[test]
    fn products_leave_less_room() {
        let product = "v90 = const {value = 0.0} : f32[16,16]
                v91 = const {value = 0.0} : f16[16,16]
                v92 = dot v91, v91, v90 {precision = ieee} : f32[16,16]
                v2 = const";
        for (columns, moves) in [(64, 1), (128, 0)] {
            let text = sums("f32", "fadd", "0.0", "");
            let text = text.replace("256", &(8 * columns).to_string());
            let text = text.replace("8,32]", &format!("8,{columns}]"));
            let text = text.replacen("v2 = const", product, 1);
            assert_eq!(defer_sums(&mut parse(&text), true), moves, "{columns}");
        }
    }
}
