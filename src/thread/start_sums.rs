//! The first products of a loop do not add, so that no zeros are written before it.
//!
//! ```text
//! z = wgmma_fence 0                       z = wgmma_fence 0 {unread}
//! brif c, loop(z), end(z)                 brif c, loop(z, 0), end(z)
//! loop(s):                                loop(s, adds):
//!     f = wgmma_fence s                       f = wgmma_fence s
//!     t = wgmma f, ..                =>       t = wgmma f, .., adds
//!     brif d, loop(t), end(t)                 brif d, loop(t, 1), end(t)
//! end(e):                                 end(e):
//!     r = wgmma_wait e                        w = wgmma_wait e
//!                                             brif c, after(w), zeros
//!                                         zeros:
//!                                             jump after(0)
//!                                         after(r):
//! ```
//!
//! Sums of 128 x 128 in 128 threads are 128 registers each, and a persistent kernel with short sums writes zeros to them for each program
//! while the units of its group have nothing to do. (An H200: 0.3 to 0.6 of 30 us of a product of 4096x4096x512.) A loop that
//! is known to run has no edge to its end, and needs no zeros at all.
//!
//! Zeros stand behind the wait and not on the edge to it: ptxas serialises products if sums get numbers between the first product of a loop
//! and its wait (C7515), or before other sums of the loop have theirs. Looks at sums that nothing else reads or writes on the way, and that begin several times: elsewhere zeros are written
//! while the first operands are on their way.

use rustc_hash::FxHashMap;

use crate::analysis::cfg::Cfg;
use crate::analysis::domtree::DomTree;
use crate::analysis::loops::Loops;
use crate::ir::attrs::{Attrs, Flag, IntPred, make};
use crate::ir::dfg::{BlockCall, InstData, ValueDef};
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::function::ThreadFunction;
use crate::ir::ops::ThreadOp;
use crate::ir::types::{Elem, ThreadType};

/// With fewer registers zeros take no longer than what stands in for them.
const LEAST: u16 = 16;

/// Sums that are zero when a loop begins.
struct Start {
    /// What the loop gets: zeros behind a fence.
    zeros: Inst,
    /// Where it is entered from.
    from: Block,
    /// Its first block.
    head: Block,
    /// The first products, which add to the sums of the last iteration.
    products: Inst,
    /// What waits for the sums, if the loop may not run at all.
    end: Option<Inst>,
}

/// Lets the first products of loops overwrite sums; gives the number of loops.
pub fn start_sums(func: &mut ThreadFunction) -> usize {
    let mut fences: Vec<(Block, Inst)> = func.insts_with(ThreadOp::WgmmaFence).collect();
    if fences.is_empty() {
        return 0;
    }
    let loops = Loops::with_function(func);
    fences.retain(|&(block, _)| loops.is_in_loop(block));
    let uses = Readers::of(func);
    let found = fences.into_iter();
    let found: Vec<Start> = found
        .filter_map(|(block, fence)| uses.start(func, block, fence))
        .collect();
    for start in &found {
        change(func, start);
    }
    found.len()
}

/// Who reads values.
struct Readers {
    /// Instructions that read a value, once for each operand, and edges that hand it on.
    readers: FxHashMap<Value, Vec<Reader>>,
    blocks: FxHashMap<Inst, Block>,
    domtree: DomTree,
}

#[derive(Clone, Copy)]
enum Reader {
    Operand(Inst, usize),
    /// Of an edge from this block to that one, which makes it a parameter.
    Edge(Block, Value),
}

impl Readers {
    fn of(func: &ThreadFunction) -> Readers {
        let mut readers: FxHashMap<Value, Vec<Reader>> = FxHashMap::default();
        let mut blocks = FxHashMap::default();
        for (block, inst) in func.all_insts() {
            let data = &func.dfg.insts[inst];
            blocks.insert(inst, block);
            for (place, &arg) in data.args.iter().enumerate() {
                let reader = Reader::Operand(inst, place);
                readers.entry(arg).or_default().push(reader);
            }
            for call in &data.blocks {
                let params = &func.dfg.blocks[call.block].params;
                for (&arg, &param) in call.args.iter().zip(params) {
                    let reader = Reader::Edge(block, param);
                    readers.entry(arg).or_default().push(reader);
                }
            }
        }
        Readers {
            readers,
            blocks,
            domtree: DomTree::with_cfg(&Cfg::with_function(func)),
        }
    }

    fn readers(&self, value: Value) -> &[Reader] {
        self.readers.get(&value).map_or(&[], |list| list)
    }

    /// The instruction that alone reads a value, as its first operand.
    fn only(&self, func: &ThreadFunction, value: Value, op: ThreadOp) -> Option<Inst> {
        match self.readers(value) {
            &[Reader::Operand(inst, 0)] if func.dfg.insts[inst].op == op => Some(inst),
            _ => None,
        }
    }

    /// The loop that gets the fenced zeros, if there is nothing in its way.
    fn start(&self, func: &ThreadFunction, from: Block, zeros: Inst) -> Option<Start> {
        let data = &func.dfg.insts[zeros];
        let &first = data.args.first()?;
        let number = &func.dfg.insts[func.dfg.def_inst(first)?];
        let is_short = func.dfg.ty(first).registers() < LEAST;
        if number.op != ThreadOp::Const || number.value() != Some(&0) || is_short {
            return None;
        }
        let (mut entered, mut end) = (None, None);
        for &reader in self.readers(data.results[0]) {
            let Reader::Edge(before, param) = reader else {
                return None;
            };
            let ValueDef::Param(block, _) = func.dfg.values[param].def else {
                return None;
            };
            let products = self.first_products(func, param);
            match (before == from, products, end) {
                (true, Some(products), _) if entered.is_none() => {
                    entered = Some((block, products));
                }
                (true, None, None) => {
                    let wait = self.only(func, param, ThreadOp::WgmmaWait)?;
                    let waits_here = self.blocks.get(&wait) == Some(&block);
                    if !waits_here || !self.domtree.dominates(from, block) {
                        return None;
                    }
                    end = Some(wait);
                }
                _ => return None,
            }
        }
        let (head, products) = entered?;
        // What is no loop needs no flag: the sums of its products are found to be zero without it.
        let is_loop = self.domtree.dominates(head, *self.blocks.get(&products)?)
            && self.domtree.dominates(from, head);
        is_loop.then_some(Start {
            zeros,
            from,
            head,
            products,
            end,
        })
    }

    /// The products that alone read a parameter, behind a fence that may hold fragments, too.
    fn first_products(&self, func: &ThreadFunction, param: Value) -> Option<Inst> {
        let fence = self.only(func, param, ThreadOp::WgmmaFence)?;
        let fenced = func.dfg.insts[fence].results[0];
        let products = self.only(func, fenced, ThreadOp::Wgmma)?;
        let &last = func.dfg.insts[products].args.last()?;
        (func.dfg.ty(last).elem != Elem::I1).then_some(products)
    }
}

fn change(func: &mut ThreadFunction, start: &Start) {
    let condition = func
        .order
        .last(start.from)
        .and_then(|last| func.dfg.insts[last].args.first().copied());
    let zeros = func.dfg.insts[start.zeros].args[0];
    // Whether it is an iteration behind the first.
    let number = ThreadType::scalar(Elem::I32);
    let later = func.dfg.append_param(start.head, number);
    let mut zero = Value::from_u32(0);
    for block in func.order.blocks.clone() {
        let Some(last) = func.order.last(block) else {
            continue;
        };
        let enters = |call: &BlockCall| call.block == start.head;
        if !func.dfg.insts[last].blocks.iter().any(enters) {
            continue;
        }
        let mut flag = InstData::new(ThreadOp::Const, &[]);
        flag.attrs.push(make::value(u64::from(block != start.from)));
        let flag = func.dfg.make_inst(flag, &[number]);
        let place = func.order.insts(block).len() - 1;
        func.order.insert(block, place, flag);
        let flag = func.dfg.insts[flag].results[0];
        if block == start.from {
            zero = flag;
        }
        let calls = &mut func.dfg.insts[last].blocks;
        for call in calls.iter_mut().filter(|call| enters(call)) {
            call.args.push(flag);
        }
    }
    let Some(block) = func.order.block_of(start.products) else {
        return;
    };
    let mut adds = InstData::new(ThreadOp::Icmp, &[later, zero]);
    adds.attrs.push(make::ipred(IntPred::Ne));
    let adds = func.dfg.make_inst(adds, &[ThreadType::scalar(Elem::I1)]);
    let insts = func.order.insts(block).iter();
    let place = insts.take_while(|&&inst| inst != start.products).count();
    func.order.insert(block, place, adds);
    let adds = func.dfg.insts[adds].results[0];
    func.dfg.insts[start.products].args.push(adds);
    func.dfg.insts[start.zeros].attrs.push(make::unread(Flag));
    if let (Some(wait), Some(condition)) = (start.end, condition) {
        zeros_after(func, wait, condition, start, zeros);
    }
}

/// Splits the block after a wait: where the loop has not run, sums are zero.
fn zeros_after(
    func: &mut ThreadFunction,
    wait: Inst,
    condition: Value,
    start: &Start,
    zeros: Value,
) {
    let Some(block) = func.order.block_of(wait) else {
        return;
    };
    let mut front = func.order.insts(block).to_vec();
    let sums = func.dfg.insts[wait].results[0];
    let mut place = front.iter().take_while(|&&inst| inst != wait).count() + 1;
    // Other sums of the loop are waited for first, or theirs would get numbers while these are under way.
    let behind = front.iter().enumerate().skip(place);
    let unread = behind.take_while(|&(_, &inst)| func.dfg.uses(inst).all(|value| value != sums));
    let waits = unread.filter(|&(_, &inst)| func.dfg.insts[inst].op == ThreadOp::WgmmaWait);
    place = waits.last().map_or(place, |(last, _)| last + 1);
    let rest = front.split_off(place.min(front.len()));
    let [zeros_block, after] = [(); 2].map(|()| func.dfg.make_block());
    let ty = func.dfg.ty(sums);
    let either = func.dfg.append_param(after, ty);
    for (_, inst) in func.all_insts().collect::<Vec<_>>() {
        let change = |value| if value == sums { either } else { value };
        func.dfg.map_uses(inst, change);
    }
    let call = |block, args: &[Value]| {
        let mut call = BlockCall::region(block);
        call.args.extend(args.iter().copied());
        call
    };
    // The loop ran where its branch was taken to it.
    let last = func.order.last(start.from);
    let runs_first = last.is_some_and(|last| {
        let first = func.dfg.insts[last].blocks.first();
        first.is_some_and(|call| call.block == start.head)
    });
    let mut branch = InstData::new(ThreadOp::Brif, &[condition]);
    branch.loc = func.dfg.insts[wait].loc;
    let (ran, did_not) = (call(after, &[sums]), call(zeros_block, &[]));
    match runs_first {
        true => branch.blocks.extend([ran, did_not]),
        false => branch.blocks.extend([did_not, ran]),
    }
    front.push(func.dfg.make_inst(branch, &[]));
    let mut jump = InstData::new(ThreadOp::Jump, &[]);
    jump.blocks.push(call(after, &[zeros]));
    let jump = func.dfg.make_inst(jump, &[]);
    let place = func.order.blocks.iter().position(|&b| b == block);
    let place = place.map_or(func.order.blocks.len(), |place| place + 1);
    func.order.blocks.splice(place..place, [zeros_block, after]);
    func.order.replace(block, front);
    func.order.replace(zeros_block, vec![jump]);
    func.order.replace(after, rest);
}
