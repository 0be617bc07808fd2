//! What takes place between the first of two products and the wait for the second stays there.
//!
//! ```text
//! products, commit                      products, commit
//! products, commit                      products, commit
//! wait for the first                    wait for the first
//! m = its rows' maxima            =>    m = its rows' maxima
//! exponentials                          st slot, m, never
//! wait for the second                   exponentials
//!                                       wait for the second
//! ```
//!
//! ptxas moves a wait up over everything in its block that touches neither the sums nor memory: 13.0 has it in front of most of what is
//! computed from the first sums, so that the unit finishes the second product while its group does nothing. A store that is never executed, of
//! what came last from other lanes, holds the wait behind it. From behind the exponentials the wait still moves up to that store: exponentials are computed beside the
//! other group's products. (One H200, attention forward of 128 columns, PTX with and without these lines in one run: 64 heads of 4,096 rows 854 us instead of
//! 930, causal 506 instead of 515; 256 of 1,024 229 instead of 239. Held behind the first row's maximum alone it took 1,127 us, behind some exponentials 902 to 942.)
//!
//! Where exponentials take long beside products, the second product is over before the maxima are known. (Of 64 columns nothing is gained, and up to
//! 5 % lost.) Groups start in turns there, see [`super::start_in_turns`].

use super::never_executed::{Use, uses};
use super::start_in_turns::takes_long_for_special;
use crate::analysis::loops::Loops;
use crate::ir::attrs::Attrs;
use crate::ir::effects::OpClass;
use crate::ir::entities::{Block, Inst, Slot};
use crate::ir::function::ThreadFunction;
use crate::ir::ops::{Opcode, ThreadOp};

/// Holds waits; gives their number.
pub fn hold_waits(func: &mut ThreadFunction) -> usize {
    let slot = {
        let mut products = func.insts_with(ThreadOp::Wgmma);
        products.find_map(|(_, inst)| func.dfg.insts[inst].slot().copied())
    };
    let Some(slot) = slot else {
        return 0;
    };
    let loops = Loops::with_function(func);
    let pays = |&block: &Block| {
        let inside = loops.innermost(block);
        inside.is_some_and(|blocks| !takes_long_for_special(func, blocks))
    };
    let blocks: Vec<Block> = func.order.blocks.iter().copied().filter(pays).collect();
    let mut count = 0;
    for block in blocks {
        // From the end: places of those in front stay what they are.
        for (at, used) in held(func, block, slot).into_iter().rev() {
            let insts = uses(func, &[used]);
            let mut list = func.order.insts(block).to_vec();
            list.splice(at..at, insts);
            func.order.replace(block, list);
            count += 1;
        }
    }
    count
}

/// What holds the waits of a block, and in front of which of its instructions.
fn held(func: &ThreadFunction, block: Block, slot: Slot) -> Vec<(usize, Use)> {
    let list = func.order.insts(block);
    let mut found = Vec::new();
    let mut after_first = false;
    let mut from_lanes = None;
    let mut computes = false;
    for (at, &inst) in list.iter().enumerate() {
        let data = &func.dfg.insts[inst];
        match data.op {
            ThreadOp::WgmmaWait => {
                let is_last = data.pending().is_none_or(|&pending| pending == 0);
                found.extend(from_lanes.take().filter(|_| is_last && after_first));
                (after_first, computes) = (!is_last, false);
            }
            op if op.info().is_special() => computes = true,
            _ if after_first && !computes && data.class() == OpClass::Exchange => {
                from_lanes = combined(func, list, at, slot).or(from_lanes);
            }
            _ => {}
        }
    }
    found
}

/// What is made of a value of other lanes and the thread's own, and the place behind it.
fn combined(func: &ThreadFunction, list: &[Inst], at: usize, slot: Slot) -> Option<(usize, Use)> {
    let &moved = func.dfg.insts[list[at]].results.first()?;
    let is_wait = |inst: &&Inst| func.dfg.insts[**inst].op == ThreadOp::WgmmaWait;
    let mut behind = list[at + 1..].iter().take_while(|inst| !is_wait(inst));
    let user = behind.position(|&inst| func.dfg.insts[inst].args.contains(&moved))?;
    let at = at + 1 + user;
    let data = &func.dfg.insts[list[at]];
    let &value = data.results.first().filter(|_| data.is_elementwise())?;
    // The last ones are stored, if not all fit in an access: they are computed last.
    let count = u32::from(func.dfg.ty(value).count);
    Some((
        at + 1,
        Use {
            value,
            elements: (0..count).rev().collect(),
            slot,
        },
    ))
}

#[cfg(test)]
mod tests {
    use super::hold_waits;
    use crate::ir::ops::ThreadOp::{self, Exp2, Fmax, St, WgmmaWait};
    use crate::text::parse::parse_thread;
    use crate::verify::verify;

    /// A loop that starts two products and waits for all but `pending` of them first; the lines stand behind that.
    fn kernel(pending: u32, lines: &str, next: &str) -> String {
        let attrs = "unit = warpgroup_f16, slot = slot0, left_slot = slot0";
        format!(
            "thread @k(v0: i64, v1: i64, v2: i1) warps(4) {{
                slot0 = 1024 bytes align 1024
            block0:
                v3 = const {{value = 0.0}} : f32 x 64
                jump block1(v3, v3)
            block1(v4: f32 x 64, v5: f32 x 64):
                v6 = wgmma_fence v4 {{{attrs}}} : f32 x 64
                v7 = wgmma v6, v0, v1 {{columns = 128, {attrs}}} : f32 x 64
                wgmma_commit
                v8 = wgmma_fence v5 {{{attrs}}} : f32 x 64
                v9 = wgmma v8, v0, v1 {{columns = 128, {attrs}}} : f32 x 64
                wgmma_commit
                v10 = wgmma_wait v7 {{pending = {pending}}} : f32 x 64
                v11 = rearrange v10 {{map = [0, 1]}} : f32 x 2
                {lines}
                v30 = wgmma_wait v9 {{pending = 0}} : f32 x 64
                brif v2, {next}(v10, v30), block9
            block9:
                return
            }}"
        )
    }

    /// How many waits are held, and in which order some ops stand then.
    fn held(text: &str) -> (usize, Vec<ThreadOp>) {
        let mut func = parse_thread(text).unwrap_or_else(|errors| panic!("{errors:?}\n{text}"));
        let count = hold_waits(&mut func);
        assert_eq!(verify(&func), Ok(()), "{func}");
        let ops = func.all_insts().map(|(_, inst)| func.dfg.insts[inst].op);
        let shown = |op: &ThreadOp| matches!(op, Exp2 | Fmax | St | WgmmaWait);
        (count, ops.filter(shown).collect())
    }

    const MAXIMA: &str = "v12 = shfl_bfly v11 {mask = 1} : f32 x 2
        v13 = fmax v11, v12 {nan = ignore} : f32 x 2
        v14 = shfl_bfly v13 {mask = 2} : f32 x 2
        v15 = fmax v13, v14 {nan = ignore} : f32 x 2
        v16 = exp2 v15 : f32 x 2";

    #[test]
    fn a_wait_stays_behind_what_came_from_other_lanes() {
        let found = held(&kernel(1, MAXIMA, "block1"));
        let expected = [WgmmaWait, Fmax, Fmax, St, Exp2, WgmmaWait];
        assert_eq!(found, (1, expected.to_vec()));
    }

    #[test]
    fn what_exponentials_are_sent_for_holds_nothing() {
        let lines = "v12 = exp2 v11 : f32 x 2
            v13 = shfl_bfly v12 {mask = 1} : f32 x 2
            v14 = fmax v12, v13 {nan = ignore} : f32 x 2";
        let found = held(&kernel(1, lines, "block1"));
        assert_eq!(found, (0, vec![WgmmaWait, Exp2, Fmax, WgmmaWait]));
    }

    #[test]
    fn nothing_is_held_where_nothing_is_gained() {
        let long = MAXIMA.replace("v16 = exp2 v15 : f32 x 2", "v16 = exp2 v10 : f32 x 64");
        for text in [
            // Both products are waited for, no loop, exponentials that take long.
            kernel(0, MAXIMA, "block1"),
            kernel(1, MAXIMA, "block8").replace(
                "block9:",
                "block8(v40: f32 x 64, v41: f32 x 64):
                jump block9
            block9:",
            ),
            kernel(1, &long, "block1"),
        ] {
            assert_eq!(held(&text).0, 0, "{text}");
        }
    }
}
