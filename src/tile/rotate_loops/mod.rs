//! Loops that begin the products of their next iteration before they end those of this one.
//!
//! ```text
//! for i in lo..hi carrying o {              s = dot a, load k(lo); p = f s
//!     s = dot a, load k(i)                  for i in lo..hi - step carrying o, p {
//!     p = f s                        =>         s' = dot a, load k(i + step)
//!     o = dot p, load v(i), o                   o' = dot p, load v(i), o
//! }                                             p' = f s'; yield o', p'
//!                                           }
//!                                           o = dot p, load v(last), o
//! ```
//!
//! Units that multiply while the threads do something else ([`super::start_dots`]) had nothing to do while `f` was computed, which
//! waits for the one product and is waited for by the other. Now both are started together, and the second goes on meanwhile.
//!
//! **What becomes of a body** (`split`). Its first products depend on no other of the iteration; they and what they are computed
//! from begin. The second half holds the products that depend on others, what depends on these, and what nobody else needs. The
//! rest, what stands between the two and whatever else there is, ends. A loop is left alone if the first products need what the
//! second half made one iteration before. What the second half needs is carried, or computed again if that takes no more than
//! the counter and cheap ops.
//!
//! Loads change places with others, so nothing in the loop may do anything but compute and read. They run as often as they did:
//! the first iteration stands in front of the loop, the last one's second half behind it, and a loop that does not run is
//! asked for.
//!
//! **Where.** Where warpgroups do all products, what stands between them is worth a wait (`LEAST_WORK`), and the registers are
//! enough for the sums of both and what is between at once (`registers_needed`, `MOST_TILES`); and not where the loop is known to run less than
//! `FEWEST` times.

mod rewrite;
mod split;
#[cfg(test)]
mod tests;

use crate::ir::entities::{Block, Inst, Value};
use crate::ir::function::TileFunction;
use crate::ir::ops::TileOp;
use crate::layout::warpgroup;
use crate::settings::Target;
use crate::settings::diversity::Choices;
use crate::tile::edit::signed;
use crate::tile::resources::ResourcePlan;
use crate::tile::share_operands::registers_needed;
use crate::tile::start_dots::is_for_warpgroup;
use split::Split;

/// Fewest instructions between the products of an iteration, for each element of the first ones: about those of an exponential.
/// What converts or scales a sum is done before the next product could be started.
const LEAST_WORK: u64 = 8;

/// Fewest iterations, where their number is known: the first and the last half of one stand outside of the loop.
const FEWEST: i64 = 2;

/// Most tiles of rows that a warpgroup has of a product. With two of them attention over 128 rows by 4 warps spilled 0 to 3,328
/// bytes of a thread where it spilled 0 to 184 before, and ptxas serialised its products (C7511).
const MOST_TILES: u32 = 1;

/// Rotates loops; gives how many. Other `choices` rotate what can be, whether it pays or not.
pub fn rotate_loops(
    func: &mut TileFunction,
    target: Target,
    resources: &ResourcePlan,
    mut choices: Choices,
) -> usize {
    let loops: Vec<(Block, Inst)> = func.insts_with(TileOp::For).collect();
    let mut count = 0;
    for (block, inst) in loops {
        let Some(split) = Split::of(func, inst) else {
            continue;
        };
        let pays = resources.warpgroup_units
            && split.work >= LEAST_WORK
            && split
                .products
                .iter()
                .all(|&i| is_for_warpgroup(func, i, target) && has_few_tiles(func, i));
        let by_chance = choices.chance(50);
        let is_short = iterations(func, inst).is_some_and(|count| count < FEWEST);
        if !by_chance && (!pays || is_short) {
            continue;
        }
        // What it needs is known when it is there.
        let mut rotated = func.clone();
        let body = rewrite::rotate(&mut rotated, block, inst, &split);
        let needed = registers_needed(&rotated, body);
        if by_chance || needed <= Target::most_registers(func.num_threads()) {
            *func = rotated;
            count += 1;
        }
    }
    count
}

/// Whether a group has no more tiles of a product than it can be in the middle of.
fn has_few_tiles(func: &TileFunction, product: Inst) -> bool {
    let sums = func.dfg.ty(func.dfg.insts[product].results[0]).shape;
    warpgroup::tiles_down(sums, func.num_warps()).is_some_and(|tiles| tiles <= MOST_TILES)
}

/// Iterations of a loop, if that can be told: its bounds differ by a number. Counters that wrap around tell another number, and
/// the loop is rotated all the same or is not.
fn iterations(func: &TileFunction, inst: Inst) -> Option<i64> {
    let args = &func.dfg.insts[inst].args;
    let step = signed(func, args[2]).filter(|&step| 0 < step)?;
    let [(from, lo), (to, hi)] = [0, 1].map(|i| number_behind(func, args[i]));
    let distance = hi.checked_sub(lo)?.max(0);
    (from == to).then(|| distance / step + i64::from(distance % step != 0))
}

/// What a scalar is the sum of: a value, if it is not a number alone, and a number.
fn number_behind(func: &TileFunction, value: Value) -> (Option<Value>, i64) {
    if let Some(number) = signed(func, value) {
        return (None, number);
    }
    let def = func.dfg.def_inst(value).map(|def| &func.dfg.insts[def]);
    let sum = def.filter(|data| data.op == TileOp::Iadd);
    let of = sum.and_then(|data| Some((data.args[0], signed(func, data.args[1])?)));
    match of {
        Some((value, number)) => (Some(value), number),
        None => (Some(value), 0),
    }
}
