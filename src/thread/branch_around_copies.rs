//! Copies by the engine that one thread starts stand behind branches: several together behind one to a lane that is elected.
//!
//! ```text
//! first = icmp eq tid, 0                          here = icmp slt tid, 32
//! p = and first, more                  =>         go = and more, here
//! tensor_copy .., p                               brif go, block1, block3
//! tensor_copy .., p                       block1: one = elect
//!                                                 brif one, block2, block3
//!                                         block2: tensor_copy ..;  tensor_copy ..;  jump block3
//!                                         block3: ..
//! ```
//!
//! The operands of a copy are registers that all threads of a warp share. Of a lane that was elected ptxas knows that it is alone, and lets
//! one copy follow the other. Of a thread with a certain number it knows that, too, but puts a branch around each copy, where the warp waits
//! until the operands were read. (An H200, int4 weights with words of one group an iteration, seven copies: a seventh of all samples fell
//! there, on one warp of four, and as many on the barrier at which the others waited for it; 57344 x 8192 took 93.7 us, with one branch around
//! all copies 86.5. With words of two groups an election saves 2 percent, of attention's derivatives of 64 columns 2.8.) A single copy
//! gains nothing by it (products of bytes with one copy an iteration take 2 percent longer), and stays with its thread.
//!
//! Where the condition of the program were part of the predicate, ptxas would not see one thread in it. It would write a loop around each
//! copy that elects a thread after the other, in which all warps of the program go and wait. (An H100, products of 128 columns and 8 warps:
//! one pass of the derivatives of attention took 3,055 us with such loops and 2,472 without, of causal attention 1,769 and 1,432.) So a single
//! copy has a branch for its condition.
//!
//! Conditions are those of the whole program: all lanes of the first warp come to the election or none.

use super::branch_around_rare::end;
use crate::ir::attrs::{Attrs, IntPred, SpecialReg, make};
use crate::ir::dfg::{BlockCall, InstData};
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::function::ThreadFunction;
use crate::ir::maker::Maker;
use crate::ir::ops::ThreadOp;
use crate::ir::types::{Elem, ThreadType};
use crate::settings::LANES;

/// Puts branches around copies; gives their number.
pub fn branch_around_copies(func: &mut ThreadFunction) -> usize {
    let is_one = |(_, copy)| start(func, copy).is_some();
    if !func.insts_with(ThreadOp::TensorCopy).any(is_one) {
        return 0;
    }
    let mut known = None;
    let mut count = 0;
    let mut blocks = func.order.blocks.clone();
    while let Some(block) = blocks.pop() {
        if let Some(behind) = branch(func, block, &mut known) {
            count += 1;
            blocks.push(behind);
        }
    }
    count
}

/// The operand of a copy that says which threads start it.
const PREDICATE: usize = 3;

/// Of a copy that the first thread starts, whether the thread is that one, and the condition of the program under which it does, if any.
fn start(func: &ThreadFunction, inst: Inst) -> Option<(Value, Option<Value>)> {
    let data = &func.dfg.insts[inst];
    if data.op != ThreadOp::TensorCopy {
        return None;
    }
    let def = |value: Value| func.dfg.def_inst(value).map(|def| &func.dfg.insts[def]);
    let predicate = *data.args.get(PREDICATE)?;
    let (first, condition) = match def(predicate)? {
        both if both.op == ThreadOp::And => (*both.args.first()?, Some(*both.args.get(1)?)),
        _ => (predicate, None),
    };
    let equal = def(first).filter(|data| data.op == ThreadOp::Icmp)?;
    let is_first = equal.ipred() == Some(&IntPred::Eq)
        && def(*equal.args.first()?)?.reg() == Some(&SpecialReg::Tid)
        && def(*equal.args.get(1)?)?.value() == Some(&0);
    is_first.then_some((first, condition))
}

/// What is known at the head of a function.
struct Known {
    /// Whether the thread is one of the first warp.
    is_here: Value,
    always: Value,
}

impl Known {
    fn new(func: &mut ThreadFunction) -> Known {
        let [i1, i32] = [Elem::I1, Elem::I32].map(ThreadType::scalar);
        let entry = func.entry;
        let mut head = Maker::new(func);
        let tid = head.value(ThreadOp::Special, &[], &[make::reg(SpecialReg::Tid)], i32);
        let lanes = head.number(LANES.into(), i32);
        let is_here = head.compare(IntPred::Slt, tid, lanes);
        let always = head.number(1, i1);
        head.put(entry, 0);
        Known { is_here, always }
    }
}

/// Puts branches around the first copies of a block that can have them; gives the block behind them.
fn branch(func: &mut ThreadFunction, block: Block, known: &mut Option<Known>) -> Option<Block> {
    let insts = func.order.insts(block).to_vec();
    let mut runs = (0..insts.len()).filter_map(|at| Run::at(func, &insts, at));
    let run = runs.find(|run| run.is_shared() || run.condition.is_some())?;
    drop(runs);
    let [inside, behind] = [(); 2].map(|()| func.dfg.make_block());
    let mut places = vec![inside, behind];
    // What stands between is computed before.
    func.order
        .replace(block, [&insts[..run.begin], &run.between].concat());
    func.order.replace(behind, insts[run.end..].to_vec());
    let mut starts = run.first;
    if run.is_shared() {
        let known = known.get_or_insert_with(|| Known::new(func));
        starts = known.always;
        let choosing = func.dfg.make_block();
        places.insert(0, choosing);
        let goes = match run.condition {
            Some(more) => truth(func, block, ThreadOp::And, &[more, known.is_here]),
            None => known.is_here,
        };
        part(func, block, goes, [choosing, behind]);
        let is_chosen = truth(func, choosing, ThreadOp::Elect, &[]);
        part(func, choosing, is_chosen, [inside, behind]);
    } else if let Some(more) = run.condition {
        part(func, block, more, [inside, behind]);
    }
    for &copy in &run.copies {
        func.dfg.insts[copy].args[PREDICATE] = starts;
    }
    func.order.replace(inside, run.copies);
    let jump = InstData::new(ThreadOp::Jump, &[]);
    end(func, inside, jump, &[BlockCall::region(behind)]);
    let place = func.order.blocks.iter().position(|&b| b == block)? + 1;
    func.order.blocks.splice(place..place, places);
    Some(behind)
}

/// Copies of a block that start under one condition. What stands between may as well stand in front of them.
struct Run {
    first: Value,
    condition: Option<Value>,
    begin: usize,
    end: usize,
    copies: Vec<Inst>,
    between: Vec<Inst>,
}

impl Run {
    /// The copies from this place on; none if none stands there.
    fn at(func: &ThreadFunction, insts: &[Inst], begin: usize) -> Option<Run> {
        let (first, condition) = start(func, *insts.get(begin)?)?;
        let is_ours = |inst: Inst| start(func, inst) == Some((first, condition));
        let passes = |&inst: &Inst| {
            let data = &func.dfg.insts[inst];
            is_ours(inst) || data.is_pure() || data.op == ThreadOp::FenceAsync
        };
        let passed = insts[begin..].iter().position(|inst| !passes(inst));
        let most = passed.map_or(insts.len(), |count| begin + count);
        let last = insts[begin..most].iter().rposition(|&inst| is_ours(inst))?;
        let end = begin + last + 1;
        let (copies, between) = insts[begin..end].iter().partition(|&&inst| is_ours(inst));
        Some(Run {
            first,
            condition,
            begin,
            end,
            copies,
            between,
        })
    }

    /// Whether a lane is elected for them.
    fn is_shared(&self) -> bool {
        1 < self.copies.len()
    }
}

/// Appends an instruction that makes a truth value.
fn truth(func: &mut ThreadFunction, block: Block, op: ThreadOp, args: &[Value]) -> Value {
    let ty = ThreadType::scalar(Elem::I1);
    let inst = func.dfg.make_inst(InstData::new(op, args), &[ty]);
    func.order.append(block, inst);
    func.dfg.insts[inst].results[0]
}

/// Ends a block with a branch.
fn part(func: &mut ThreadFunction, block: Block, condition: Value, to: [Block; 2]) {
    let branch = InstData::new(ThreadOp::Brif, &[condition]);
    end(func, block, branch, &to.map(BlockCall::region));
}

#[cfg(test)]
mod tests {
    use super::branch_around_copies;
    use crate::ir::ops::ThreadOp;
    use crate::text::parse::parse_thread;
    use crate::verify::verify;

    /// What becomes of two copies for the first thread, the first one if `more` holds and the second one under `second`, with a line
    /// between: branches, elections, and copies that the first thread starts still.
    fn branches(between: &str, second: &str) -> (usize, usize, usize) {
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
                v16 = icmp v7, v3 {{ipred = eq}} : i1
                v12 = slot_addr {{slot = slot0}} : ptr<i8, shared>
                v13 = slot_addr {{slot = slot1}} : ptr<i64, shared>
                tensor_copy v12, v0, v13, v10, v8, v3 {{slot = slot0, bars = slot1}}
                {between}
                v14 = iadd v3, v8 : i32
                tensor_copy v12, v0, v13, {second}, v8, v14 {{offset = 2048, slot = slot0, bars = slot1}}
                return
            }}"
        );
        let mut func = parse_thread(&text).unwrap_or_else(|errors| panic!("{errors:?}\n{text}"));
        let count = branch_around_copies(&mut func);
        assert_eq!(verify(&func), Ok(()), "{func}");
        assert_eq!(branch_around_copies(&mut func), 0, "nothing is left");
        let elections = func.insts_with(ThreadOp::Elect).count();
        let copies = func.insts_with(ThreadOp::TensorCopy);
        let by_first = copies.filter(|&(_, inst)| super::start(&func, inst).is_some());
        (count, elections, by_first.count())
    }

    #[test]
    fn copies_of_one_thread_under_one_condition_share_a_branch() {
        assert_eq!(branches("", "v10"), (1, 1, 0));
        assert_eq!(branches("v15 = isub v3, v8 : i32", "v10"), (1, 1, 0));
    }

    #[test]
    fn what_has_an_effect_or_another_condition_parts_them() {
        assert_eq!(
            branches("bar {id = 0, threads = 128}", "v10"),
            (2, 0, 2),
            "each has a branch for the condition, and its thread"
        );
        assert_eq!(branches("", "v11"), (2, 0, 2));
        assert_eq!(branches("", "v9"), (1, 0, 2), "without a condition");
    }

    #[test]
    fn a_fence_stands_in_front_of_all() {
        assert_eq!(branches("fence_async", "v10"), (1, 1, 0));
    }

    #[test]
    fn copies_without_a_condition_share_an_election() {
        let more = "tensor_copy v12, v0, v13, v9, v8, v3 {slot = slot0, bars = slot1}";
        assert_eq!(branches(more, "v9"), (2, 1, 1));
    }

    #[test]
    fn another_predicate_stays() {
        assert_eq!(
            branches("", "v16"),
            (1, 0, 1),
            "of a thread that is not known"
        );
        let of_anyone = "v17 = and v1, v2 : i1
            tensor_copy v12, v0, v13, v17, v8, v3 {slot = slot0, bars = slot1}";
        assert_eq!(branches(of_anyone, "v10"), (2, 0, 2));
    }
}
