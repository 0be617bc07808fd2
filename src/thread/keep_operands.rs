//! Operands of products that a loop repeats are used behind it by something else, too.
//!
//! ```text
//! x = ..                               x = ..
//! loop:                                loop:
//!     s = wgmma s, x, ..          =>       s = wgmma s, x, ..
//!     ..                                   ..
//!     brif c, loop, end                    brif c, loop, out
//!                                      out:
//!                                          never = icmp programs_x, 0
//!                                          st slot, x, never
//!                                          jump end
//! ```
//!
//! ptxas 12.9 and 13.0 take registers of a left operand for free behind the wait for the product, where that is followed by a branch, if
//! nothing but products of warpgroups reads them: later operands of the same loop are loaded over them, and the next iteration multiplies
//! those. (Found by a generated kernel, `run/operand_of_a_loop.tir`: wrong in every launch, at all levels of optimisation but -O0.) A
//! store that is never executed is a use like any other, and stands where it costs nothing.

use cranelift_entity::EntitySet;

use crate::analysis::cfg::Cfg;
use crate::analysis::domtree::DomTree;
use crate::analysis::loops::{Loops, home};
use crate::ir::attrs::Attrs;
use crate::ir::dfg::{BlockCall, InstData, ValueDef};
use crate::ir::entities::{Block, Inst, Slot, Value};
use crate::ir::function::ThreadFunction;
use crate::ir::ops::ThreadOp;

use super::never_executed::{Use, uses};
use super::wait_before_joins::handed_on;

/// Adds uses of what loops multiply again and again; gives their number.
pub fn keep_operands(func: &mut ThreadFunction) -> usize {
    let products: Vec<(Block, Inst)> = func.insts_with(ThreadOp::Wgmma).collect();
    if products.is_empty() {
        return 0;
    }
    let loops = Loops::with_function(func);
    let mut kept: Vec<(EntitySet<Block>, Vec<Use>)> = Vec::new();
    let mut carried: Vec<Use> = Vec::new();
    for (block, inst) in products {
        let data = &func.dfg.insts[inst];
        let Some(&slot) = data.slot() else {
            continue;
        };
        let lefts = data.args[1..].iter().step_by(2);
        let in_registers = lefts.filter(|&&left| 1 < func.dfg.ty(left).count);
        let operands = in_registers.flat_map(|&left| operands(func, left, slot));
        for operand in operands.collect::<Vec<_>>() {
            let Some(home) = home(func, operand.value) else {
                continue;
            };
            let Some(around) = loops.around(block, home) else {
                if !carried.contains(&operand) {
                    carried.push(operand);
                }
                continue;
            };
            match kept.iter_mut().find(|(inside, _)| inside == around) {
                Some((_, operands)) if operands.contains(&operand) => {}
                Some((_, operands)) => operands.push(operand),
                None => kept.push((around.clone(), vec![operand])),
            }
        }
    }
    let mut count = use_carried(func, &carried);
    for (inside, operands) in kept {
        let cfg = Cfg::with_function(func);
        for from in cfg.post_order().iter().copied() {
            if inside.contains(from) {
                count += use_on_exits(func, from, &inside, &operands);
            }
        }
    }
    count
}

/// What an operand is made of: elements of values that are nothing but other ones in another order.
fn operands(func: &ThreadFunction, value: Value, slot: Slot) -> Vec<Use> {
    let count = u32::from(func.dfg.ty(value).count);
    let mut found: Vec<Use> = Vec::new();
    for element in 0..count {
        let (mut value, mut element) = (value, element);
        while let Some(def) = func.dfg.def_inst(value) {
            let data = &func.dfg.insts[def];
            let place = data.map().and_then(|map| map.get(element as usize));
            let (ThreadOp::Rearrange, Some(&place)) = (data.op, place) else {
                break;
            };
            let mut place = place;
            let source = data.args.iter().find(|&&arg| {
                let count = u32::from(func.dfg.ty(arg).count);
                let is_here = place < count;
                place -= if is_here { 0 } else { count };
                is_here
            });
            let Some(&source) = source else {
                break;
            };
            (value, element) = (source, place);
        }
        match found.iter_mut().find(|operand| operand.value == value) {
            Some(operand) => operand.elements.push(element),
            None => found.push(Use {
                value,
                elements: vec![element],
                slot,
            }),
        }
    }
    found
}

/// Uses operands that loops carry and hand on as they are, at times or always, where they hand them on; gives their number.
fn use_carried(func: &mut ThreadFunction, operands: &[Use]) -> usize {
    let cfg = Cfg::with_function(func);
    let domtree = DomTree::with_cfg(&cfg);
    let mut count = 0;
    for operand in operands {
        let ValueDef::Param(head, _) = func.dfg.values[operand.value].def else {
            continue;
        };
        for &end in cfg.predecessors(head) {
            let Some(last) = func
                .order
                .last(end)
                .filter(|_| domtree.dominates(head, end))
            else {
                continue;
            };
            for value in handed_on(func, end, head, operand.value) {
                if !may_be(func, &cfg, value, operand.value) {
                    continue;
                }
                let used = Use {
                    value,
                    ..operand.clone()
                };
                let insts = uses(func, &[used]);
                func.order.insert_before(last, &insts);
                count += 1;
            }
        }
    }
    count
}

/// Whether a value is another one that blocks hand on to each other.
fn may_be(func: &ThreadFunction, cfg: &Cfg, value: Value, wanted: Value) -> bool {
    let mut seen: EntitySet<Value> = EntitySet::new();
    let mut stack = vec![value];
    while let Some(value) = stack.pop() {
        if value == wanted {
            return true;
        }
        if let ValueDef::Param(block, _) = func.dfg.values[value].def
            && seen.insert(value)
        {
            let from = cfg.predecessors(block).iter();
            stack.extend(from.flat_map(|&from| handed_on(func, from, block, value)));
        }
    }
    false
}

/// Puts uses on the edges that leave a loop from a block; gives their number.
fn use_on_exits(
    func: &mut ThreadFunction,
    from: Block,
    inside: &EntitySet<Block>,
    operands: &[Use],
) -> usize {
    let Some(last) = func.order.last(from) else {
        return 0;
    };
    let loc = func.dfg.insts[last].loc;
    let mut count = 0;
    for edge in 0..func.dfg.insts[last].blocks.len() {
        let call = func.dfg.insts[last].blocks[edge].clone();
        if inside.contains(call.block) {
            continue;
        }
        let mut insts = uses(func, operands);
        count += operands.len();
        let mut jump = InstData::new(ThreadOp::Jump, &[]);
        jump.blocks.push(call);
        insts.push(func.dfg.make_inst(jump, &[]));
        for &inst in &insts {
            func.dfg.insts[inst].loc = loc;
        }
        let out = func.dfg.make_block();
        func.order.replace(out, insts);
        func.dfg.insts[last].blocks[edge] = BlockCall::region(out);
        let at = func.order.blocks.iter().position(|&b| b == from);
        let at = at.map_or(func.order.blocks.len(), |at| at + 1);
        func.order.blocks.insert(at, out);
    }
    count
}

#[cfg(test)]
mod tests {
    use super::keep_operands;
    use crate::ir::ops::ThreadOp;
    use crate::text::parse::parse_thread;
    use crate::verify::verify;

    /// Uses that are added to a kernel with a product in a loop, whose left operand is `operand`, which hands `next` on as `v31`, and the
    /// blocks then.
    fn uses(operand: &str, next: &str) -> (usize, usize, usize) {
        let text = format!(
            "thread @k(v0: i32, v1: i64) warps(4) {{
                slot0 = 4096 bytes align 1024
            block0:
                v2 = const {{value = 0.0}} : f32 x 32
                v6 = slot_addr {{slot = slot0}} : ptr<f32, shared>
                v3 = ld v6 {{slot = slot0}} : f32 x 4
                v4 = const {{value = 1}} : i32
                v5 = const {{value = 0}} : i32
                jump block1(v5, v2, v3)
            block1(v10: i32, v11: f32 x 32, v31: f32 x 4):
                v12 = rearrange v3 {{map = [1, 0, 3, 2]}} : f32 x 4
                v13 = iadd v10, v4 : i32
                v14 = fadd v31, v31 : f32 x 4
                v15 = wgmma_fence v11, {operand} {{unit = warpgroup_tf32, slot = slot0}} : f32 x 32
                v16 = wgmma v15, {operand}, v1 {{unit = warpgroup_tf32, columns = 64, slot = slot0}} : f32 x 32
                wgmma_commit
                v17 = wgmma_wait v16, {operand} {{pending = 0}} : f32 x 32
                v18 = icmp v13, v0 {{ipred = slt}} : i1
                brif v18, block1(v13, v17, {next}), block2(v17)
            block2(v20: f32 x 32):
                return
            }}"
        );
        let mut func = parse_thread(&text).unwrap_or_else(|errors| panic!("{errors:#?}"));
        let count = keep_operands(&mut func);
        verify(&func).unwrap_or_else(|errors| panic!("{errors}\n{func}"));
        let stores = func.insts_with(ThreadOp::St).count();
        (count, stores, func.order.blocks.len())
    }

    #[test]
    fn operands_from_outside_are_used_behind_the_loop() {
        assert_eq!(uses("v3", "v31"), (1, 1, 4));
        // In another order they are the same registers.
        assert_eq!(uses("v12", "v31"), (1, 1, 4));
        assert_eq!(uses("v14", "v31"), (0, 0, 3));
    }

    #[test]
    fn operands_that_are_handed_on_are_used_where_they_are() {
        assert_eq!(uses("v31", "v31"), (1, 1, 3));
        assert_eq!(uses("v31", "v14"), (0, 0, 3));
    }
}
