//! Copies by the engine that one thread starts under a condition of the program stand behind a branch.
//!
//! ```text
//! first = icmp tid, 0                   first = icmp tid, 0
//! p = and first, more              =>   brif more, block1, block2
//! tensor_copy .., p                   block1:
//! tensor_copy .., p                     tensor_copy .., first;  tensor_copy .., first;  jump block2
//! ..                                  block2:
//!                                       ..
//! ```
//!
//! The operands of a copy are registers that all threads of a warp share. Of a thread with a certain number ptxas knows that it is
//! alone, and branches to the copy. Of any other predicate it does not: it writes a loop around each copy that elects
//! a thread after the other, in which all warps of the program go and wait. (An H100, products of 128 columns and 8 warps: one pass of the
//! derivatives of attention took 3,055 us with such loops and 2,472 without, of causal attention 1,769 and 1,432.)

use crate::ir::attrs::{Attrs, SpecialReg};
use crate::ir::dfg::{BlockCall, InstData};
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::function::ThreadFunction;
use crate::ir::level::Thread;
use crate::ir::ops::ThreadOp;

/// Puts branches around copies; gives their number.
pub fn branch_around_copies(func: &mut ThreadFunction) -> usize {
    if func.insts_with(ThreadOp::TensorCopy).next().is_none() {
        return 0;
    }
    let mut count = 0;
    let mut blocks = func.order.blocks.clone();
    while let Some(block) = blocks.pop() {
        if let Some(behind) = branch(func, block) {
            count += 1;
            blocks.push(behind);
        }
    }
    count
}

/// The operand of a copy that says which threads start it.
const PREDICATE: usize = 3;

/// The thread that starts a copy, and the condition of the program under which it does.
fn split(func: &ThreadFunction, inst: Inst) -> Option<[Value; 2]> {
    let data = &func.dfg.insts[inst];
    if data.op != ThreadOp::TensorCopy {
        return None;
    }
    let def = |value: Value| func.dfg.def_inst(value).map(|def| &func.dfg.insts[def]);
    let both = def(*data.args.get(PREDICATE)?).filter(|both| both.op == ThreadOp::And)?;
    let &[first, condition] = &both.args[..] else {
        return None;
    };
    let number = def(*def(first)
        .filter(|data| data.op == ThreadOp::Icmp)?
        .args
        .first()?)?;
    (number.reg() == Some(&SpecialReg::Tid)).then_some([first, condition])
}

/// Puts a branch around the first copies of a block that can have one; gives the block behind them.
fn branch(func: &mut ThreadFunction, block: Block) -> Option<Block> {
    let insts = func.order.insts(block).to_vec();
    let begin = insts.iter().position(|&inst| split(func, inst).is_some())?;
    let [first, condition] = split(func, insts[begin])?;
    let is_ours = |inst: Inst| split(func, inst) == Some([first, condition]);
    let run = insts[begin..]
        .iter()
        .take_while(|&&inst| is_ours(inst) || func.dfg.insts[inst].is_pure());
    let run: Vec<Inst> = run.copied().collect();
    let copies: Vec<Inst> = run.iter().copied().filter(|&inst| is_ours(inst)).collect();
    let [inside, behind] = [(); 2].map(|()| func.dfg.make_block());
    let place = func.order.blocks.iter().position(|&b| b == block)? + 1;
    func.order.blocks.splice(place..place, [inside, behind]);
    // What is computed between is computed before.
    let mut front = insts[..begin].to_vec();
    front.extend(run.iter().filter(|inst| !copies.contains(inst)));
    func.order.replace(block, front);
    func.order
        .replace(behind, insts[begin + run.len()..].to_vec());
    for &copy in &copies {
        func.dfg.insts[copy].args[PREDICATE] = first;
    }
    func.order.replace(inside, copies);
    let mut end = |block: Block, op: ThreadOp, args: &[Value], targets: &[Block]| {
        let mut data: InstData<Thread> = InstData::new(op, args);
        data.blocks
            .extend(targets.iter().map(|&target| BlockCall::region(target)));
        let inst = func.dfg.make_inst(data, &[]);
        func.order.append(block, inst);
    };
    end(block, ThreadOp::Brif, &[condition], &[inside, behind]);
    end(inside, ThreadOp::Jump, &[], &[behind]);
    Some(behind)
}

#[cfg(test)]
mod tests {
    use super::branch_around_copies;
    use crate::ir::ops::ThreadOp;
    use crate::text::parse::parse_thread;
    use crate::verify::verify;

    /// Branches, blocks and copies under a condition of a kernel with these lines between two copies for the first thread if `more`
    /// holds.
    fn branches(between: &str) -> (usize, usize, usize) {
        let text = format!(
            "thread @k(v0: i64, v1: i1, v2: i1, v3: i32) warps(4) {{
                slot0 = 4096 bytes align 1024
                slot1 = 8 bytes align 8
            block0:
                v7 = special {{reg = tid}} : i32
                v8 = const {{value = 0}} : i32
                v9 = icmp v7, v8 {{ipred = eq}} : i1
                v10 = and v9, v1 : i1
                v11 = and v9, v2 : i1
                v12 = slot_addr {{slot = slot0}} : ptr<i8, shared>
                v13 = slot_addr {{slot = slot1}} : ptr<i64, shared>
                tensor_copy v12, v0, v13, v10, v8, v3 {{slot = slot0, bars = slot1}}
                {between}
                v14 = iadd v3, v8 : i32
                tensor_copy v12, v0, v13, v10, v8, v14 {{offset = 2048, slot = slot0, bars = slot1}}
                return
            }}"
        );
        let mut func = parse_thread(&text).unwrap_or_else(|errors| panic!("{errors:?}\n{text}"));
        let count = branch_around_copies(&mut func);
        assert_eq!(verify(&func), Ok(()), "{func}");
        assert_eq!(branch_around_copies(&mut func), 0, "nothing is left");
        let copies = func.insts_with(ThreadOp::TensorCopy);
        let under = copies.filter(|&(_, inst)| {
            let pred = func
                .dfg
                .def_inst(func.dfg.insts[inst].args[super::PREDICATE]);
            pred.is_some_and(|pred| func.dfg.insts[pred].op == ThreadOp::And)
        });
        (count, func.order.blocks.len(), under.count())
    }

    #[test]
    fn copies_of_one_thread_under_one_condition_share_a_branch() {
        assert_eq!(branches(""), (1, 3, 0));
        assert_eq!(branches("v15 = isub v3, v8 : i32"), (1, 3, 0));
    }

    #[test]
    fn what_has_an_effect_or_another_condition_parts_them() {
        assert_eq!(branches("bar {id = 0, threads = 128}"), (2, 5, 0));
        let other = "tensor_copy v12, v0, v13, v11, v8, v3 {slot = slot0, bars = slot1}";
        assert_eq!(branches(other), (3, 7, 0));
    }

    #[test]
    fn another_predicate_stays() {
        let of_anyone = "v16 = and v1, v2 : i1
            tensor_copy v12, v0, v13, v16, v8, v3 {slot = slot0, bars = slot1}";
        assert_eq!(branches(of_anyone), (2, 5, 1));
    }
}
