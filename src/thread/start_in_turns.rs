//! Two groups of four warps that execute one program start their products in turns.
//!
//! ```text
//! loop                                loop
//!   fence, products, commit             wait for the group's turn
//!   fence, products, commit        =>   fence, products, commit
//!   wait for the first                  fence, products, commit
//!   exponentials and the like           the other group's turn
//!                                       wait for the first
//!                                       exponentials and the like
//! ```
//!
//! The unit executes what one group started while the other one computes, if they are half an iteration apart. Left to themselves they
//! drift: whether they compute at the same time, and leave the unit idle, hangs on a register more or less in front of the loop.
//! (Attention of 128 columns on an H100, by PTX with and without these lines: the same loop took 907 or 960 us for 64 heads of 4,096 rows, by what stood in front of it, and 922
//! in turns; 16 heads of 16,384 rows 3,485, 3,764 and 3,580; causal, 516 and 508, 1,845 and 1,778.) FlashAttention-3 (Shah and others, 2024) does
//! so by hand.
//!
//! What is gained is time in which exponentials are computed, at half a warp a clock; where products take much longer than these, one of the
//! groups has always some under way, and to wait for a turn costs more than it gains (`LEAST_SPECIAL`).
//!
//! Only loops that start the next product in front of the last one's results have their products in turns: two at least, with nothing
//! between them but waits for what a producer brings. That nobody waits for ever, follows from what is refused:
//!
//! - All threads of a program take the same branches, so that both groups come to each turn as often.
//! - A group that waits for its turn has behind it all that the other one had behind it in front of the same turn. In a turn nobody
//!   arrives at a barrier that a producer waits for, so what the other group waits for there does not depend on this one.
//!
//! Barriers have two numbers of their own (`group_barriers`). The second group gives the first turn of all, where the program's
//! threads are by themselves; at the end the last turn is left, which nobody takes. Where waits are bounded
//! ([`Asserts::Report`](crate::settings::Asserts::Report)), what a wait that gives up says stands between the products, and nobody takes turns.

use cranelift_entity::EntitySet;

use super::group_barriers::{OF_TURNS, at_barrier, group};
use crate::analysis::cfg::Cfg;
use crate::analysis::domtree::DomTree;
use crate::analysis::loops::Loops;
use crate::ir::attrs::{Attrs, IntPred};
use crate::ir::effects::OpClass;
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::function::ThreadFunction;
use crate::ir::maker::Maker;
use crate::ir::ops::{Opcode, ThreadOp};
use crate::ir::types::{Elem, ThreadType};
use crate::layout::warpgroup;

/// Groups that take turns.
const GROUPS: u32 = 2;
/// Products that a turn has at least: one of this iteration, and one of the next.
const PRODUCTS: usize = 2;
/// Least clocks of special functions for 16 of the products of a loop. (An H200, attention forward of 64 to 256 heads and 1,024 to
/// 16,384 rows: of 128 columns, with two of 16, groups by themselves took 1 to 6 % less; of 64 columns, with four, up to 5 % more.)
const LEAST_SPECIAL: u32 = 3;

/// The products of a loop that are started without a wait between them.
struct Turn {
    begin: (Block, Inst),
    end: (Block, Inst),
    /// The blocks behind the first one that it goes through.
    through: Vec<Block>,
}

/// Lets groups take turns; gives the number of loops in which they do.
pub fn start_in_turns(func: &mut ThreadFunction) -> usize {
    let is_for_two = func.groups() == 1 && func.num_warps() == GROUPS * warpgroup::group_warps();
    if !is_for_two || func.insts_with(ThreadOp::Wgmma).next().is_none() {
        return 0;
    }
    let cfg = Cfg::with_function(func);
    let domtree = DomTree::with_cfg(&cfg);
    let loops = Loops::with_function(func);
    // From the first block to the last: what begins in the middle of a turn is part of it.
    let mut turns: Vec<Turn> = Vec::new();
    for &block in cfg.post_order().iter().rev() {
        let is_inside = turns.iter().any(|turn| turn.through.contains(&block));
        if loops.is_in_loop(block) && !is_inside {
            turns.extend(turn_of(func, block));
        }
    }
    turns.retain(|turn| {
        let inside = loops.innermost(turn.begin.0);
        inside.is_some_and(|blocks| takes_long_for_special(func, blocks))
    });
    let first = |begin: Block| {
        let outside = |block: &Block| {
            let comes_before = |turn: &Turn| domtree.dominates(*block, turn.begin.0);
            !loops.is_in_loop(*block) && turns.iter().all(comes_before)
        };
        let blocks = cfg.post_order().iter().copied();
        // Of blocks that dominate one another the last one comes first.
        blocks
            .filter(outside)
            .find(|&block| domtree.dominates(block, begin))
    };
    let Some(entered) = turns.first().and_then(|turn| first(turn.begin.0)) else {
        return 0;
    };
    // Where a producer goes, too, are too many threads.
    let of_producer = |&(block, inst): &(Block, Inst)| {
        func.dfg.insts[inst].op == ThreadOp::MbarExpect && domtree.dominates(entered, block)
    };
    if func.cta_warps() > func.num_warps() && func.all_insts().any(|at| of_producer(&at)) {
        return 0;
    }
    let numbers = Numbers::new(func);
    let first_turn = numbers.first_turn(func);
    place(func, entered, first_turn, |list| list.len() - 1);
    let count = turns.len();
    for turn in turns {
        let waits = numbers.wait(func);
        place(func, turn.begin.0, waits, |list| {
            position(list, turn.begin.1)
        });
        let passes = numbers.pass(func);
        place(func, turn.end.0, passes, |list| {
            position(list, turn.end.1) + 1
        });
    }
    count
}

/// Whether special functions of a loop take long beside its products.
pub(super) fn takes_long_for_special(func: &ThreadFunction, blocks: &EntitySet<Block>) -> bool {
    let [special, products] = clocks(func, blocks);
    LEAST_SPECIAL * products <= 16 * special
}

/// What a warp takes for special functions in some blocks, of which half a warp is computed in a clock, and the unit for the products that a
/// group starts there: half a clock for 64 rows, a column and 32 bytes of a row.
fn clocks(func: &ThreadFunction, blocks: &EntitySet<Block>) -> [u32; 2] {
    let [mut special, mut products] = [0; 2];
    for inst in blocks.iter().flat_map(|block| func.order.insts(block)) {
        let data = &func.dfg.insts[*inst];
        match data.op {
            op if op.info().is_special() => {
                let results = data.results.iter();
                special += 2 * results
                    .map(|&v| u32::from(func.dfg.ty(v).count))
                    .sum::<u32>();
            }
            ThreadOp::Wgmma => {
                let steps = data.args.len().saturating_sub(1) / 2;
                products += steps as u32 * data.columns().map_or(0, |&columns| columns / 2);
            }
            _ => {}
        }
    }
    [special, products]
}

fn position(list: &[Inst], inst: Inst) -> usize {
    list.iter().position(|&at| at == inst).unwrap_or(0)
}

fn place(func: &mut ThreadFunction, block: Block, inst: Inst, at: impl FnOnce(&[Inst]) -> usize) {
    let mut list = func.order.insts(block).to_vec();
    list.insert(at(&list), inst);
    func.order.replace(block, list);
}

/// The turn that begins with the first product of a block.
fn turn_of(func: &ThreadFunction, first: Block) -> Option<Turn> {
    let list = func.order.insts(first);
    let is_fence = |inst: &Inst| func.dfg.insts[*inst].op == ThreadOp::WgmmaFence;
    let begin = list.iter().position(is_fence)?;
    let mut through = Vec::new();
    let mut rest = &list[begin..];
    let mut end = None;
    let mut products = 0;
    loop {
        let block = through.last().copied().unwrap_or(first);
        for &inst in rest {
            let data = &func.dfg.insts[inst];
            match data.op {
                ThreadOp::WgmmaCommit => {
                    products += 1;
                    end = Some((block, inst));
                }
                ThreadOp::WgmmaWait => {
                    let leaves_some = data.pending().is_some_and(|&pending| 0 < pending);
                    let turn = Turn {
                        begin: (first, list[begin]),
                        end: end?,
                        through,
                    };
                    return (leaves_some && PRODUCTS <= products).then_some(turn);
                }
                ThreadOp::WgmmaFence | ThreadOp::Wgmma | ThreadOp::MbarTry => {}
                _ if data.class() == OpClass::End || data.is_pure() => {}
                _ => return None,
            }
        }
        let next = next(func, block)?;
        if next == first || through.contains(&next) {
            return None;
        }
        through.push(next);
        rest = func.order.insts(next);
    }
}

/// The block behind one that ends in a jump, or in a wait that is tried again.
fn next(func: &ThreadFunction, block: Block) -> Option<Block> {
    let last = func.order.last(block)?;
    let data = &func.dfg.insts[last];
    let mut others = data
        .blocks
        .iter()
        .map(|call| call.block)
        .filter(|&to| to != block);
    let next = others.next()?;
    others.next().is_none().then_some(next)
}

/// The numbers of barriers, of the thread's own group and of the other one.
struct Numbers {
    own: Value,
    other: Value,
    /// Whether the thread is of the second group.
    is_second: Value,
    always: Value,
}

impl Numbers {
    /// Computes them at the head of the function.
    fn new(func: &mut ThreadFunction) -> Numbers {
        let [i1, i32] = [Elem::I1, Elem::I32].map(ThreadType::scalar);
        let entry = func.entry;
        let mut head = Maker::new(func);
        let own = group(&mut head, OF_TURNS);
        let [first, sum] = [OF_TURNS, 2 * OF_TURNS + 1].map(|n| head.number(n as i64, i32));
        let other = head.op(ThreadOp::Isub, &[sum, own]);
        let is_second = head.compare(IntPred::Ugt, own, first);
        let always = head.number(1, i1);
        head.put(entry, 0);
        Numbers {
            own,
            other,
            is_second,
            always,
        }
    }

    /// The second group gives the first one its first turn.
    fn first_turn(&self, func: &mut ThreadFunction) -> Inst {
        let args = [self.other, self.is_second];
        at_barrier(func, ThreadOp::GroupArrive, &args, func.num_threads())
    }

    fn wait(&self, func: &mut ThreadFunction) -> Inst {
        at_barrier(
            func,
            ThreadOp::GroupBarrier,
            &[self.own],
            func.num_threads(),
        )
    }

    fn pass(&self, func: &mut ThreadFunction) -> Inst {
        let args = [self.other, self.always];
        at_barrier(func, ThreadOp::GroupArrive, &args, func.num_threads())
    }
}

#[cfg(test)]
mod tests {
    use super::start_in_turns;
    use crate::ir::ops::ThreadOp;
    use crate::text::parse::parse_thread;
    use crate::verify::verify;

    /// A loop that starts two products, with lines between them, and waits for all but `pending` of them first.
    fn kernel(head: &str, between: &str, pending: u32) -> String {
        let attrs = "unit = warpgroup_f16, slot = slot0, left_slot = slot0";
        format!(
            "thread @k(v0: i64, v1: i64, v2: i1, v20: i32) {head} {{
                slot0 = 1024 bytes align 1024
                slot1 = 8 bytes align 8
            block0:
                v3 = const {{value = 0.0}} : f32 x 4
                v21 = slot_addr {{slot = slot1}} : ptr<i64, shared>
                jump block1(v3, v3)
            block1(v4: f32 x 4, v5: f32 x 4):
                v6 = wgmma_fence v4 {{{attrs}}} : f32 x 4
                v7 = wgmma v6, v0, v1 {{columns = 8, {attrs}}} : f32 x 4
                wgmma_commit
                {between}
                v8 = wgmma_fence v5 {{{attrs}}} : f32 x 4
                v9 = wgmma v8, v0, v1 {{columns = 8, {attrs}}} : f32 x 4
                wgmma_commit
                v10 = wgmma_wait v7 {{pending = {pending}}} : f32 x 4
                v11 = wgmma_wait v9 {{pending = 0}} : f32 x 4
                v12 = exp2 v10 : f32 x 4
                brif v2, block1(v12, v11), block9
            block9:
                return
            }}"
        )
    }

    /// In how many loops groups take turns, and what stands in front of and behind products in the first one.
    fn turns(text: &str) -> (usize, Vec<ThreadOp>) {
        let mut func = parse_thread(text).unwrap_or_else(|errors| panic!("{errors:?}\n{text}"));
        let count = start_in_turns(&mut func);
        assert_eq!(verify(&func), Ok(()), "{func}");
        let ops = func.all_insts().map(|(_, inst)| func.dfg.insts[inst].op);
        let shown = |op: &ThreadOp| {
            matches!(
                op,
                ThreadOp::GroupArrive
                    | ThreadOp::GroupBarrier
                    | ThreadOp::WgmmaCommit
                    | ThreadOp::WgmmaFence
                    | ThreadOp::WgmmaWait
                    | ThreadOp::Jump
            )
        };
        (count, ops.filter(shown).collect())
    }

    #[test]
    fn two_groups_start_products_in_turns() {
        use ThreadOp::{GroupArrive, GroupBarrier, Jump, WgmmaCommit, WgmmaFence, WgmmaWait};
        let product = [WgmmaFence, WgmmaCommit];
        let expected = [
            &[GroupArrive, Jump, GroupBarrier][..],
            &product,
            &product,
            &[GroupArrive, WgmmaWait, WgmmaWait],
        ];
        let found = turns(&kernel("warps(8)", "", 1));
        assert_eq!(found, (1, expected.concat()));
    }

    #[test]
    fn waits_for_a_producer_are_part_of_a_turn() {
        let wait = "jump block2
            block2:
                v22 = mbar_try v21, v20 {slot = slot1} : i1
                brif v22, block3, block2
            block3:";
        assert_eq!(turns(&kernel("warps(8)", wait, 1)).0, 1);
    }

    #[test]
    fn where_somebody_could_wait_for_ever_or_nothing_is_gained_nobody_takes_turns() {
        let arrives = "v22 = const {value = true} : i1
            mbar_arrive v21, v22 {slot = slot1}";
        let branches = "brif v2, block2, block3
            block2:
                jump block3
            block3:";
        for (head, between, pending) in [
            // One group, and four.
            ("warps(4)", "", 1),
            ("warps(16)", "", 1),
            // Both wait for each other, or for a producer that waits for both.
            ("warps(8)", "bar {id = 0, threads = 256}", 1),
            ("warps(8)", arrives, 1),
            ("warps(8)", branches, 1),
            // Nothing is under way while the group computes.
            ("warps(8)", "", 0),
        ] {
            let text = kernel(head, between, pending);
            assert_eq!(turns(&text).0, 0, "{text}");
        }
        let once =
            kernel("warps(8)", "", 1).replace("brif v2, block1(v12, v11), block9", "jump block9");
        assert_eq!(turns(&once).0, 0, "{once}");
        let only_products = kernel("warps(8)", "", 1).replace("exp2", "fneg");
        assert_eq!(turns(&only_products).0, 0, "{only_products}");
        let one = kernel("warps(8)", "v23 = wgmma_wait v7 {pending = 0} : f32 x 4", 1);
        assert_eq!(turns(&one).0, 0, "{one}");
    }
}
