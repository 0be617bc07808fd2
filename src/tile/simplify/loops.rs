//! Loops that never run.

use crate::ir::entities::{Block, Inst};
use crate::ir::function::TileFunction;
use crate::ir::ops::TileOp;
use crate::tile::edit::{rename_uses, signed};

/// Replaces loops that are known not to run by what they carry; gives their number. It saves little, but ptxas forgets the zeros that
/// sums begin with if it finds by itself that no product by warpgroups adds to them: 12 of 2,007 generated kernels left on an H200
/// what was in their registers.
pub(super) fn drop_idle(func: &mut TileFunction) -> usize {
    let loops: Vec<(Block, Inst)> = func.insts_with(TileOp::For).collect();
    let mut count = 0;
    for (block, inst) in loops {
        let data = &func.dfg.insts[inst];
        let (lo, hi) = (data.args[0], data.args[1]);
        let is_idle = lo == hi
            || signed(func, lo)
                .zip(signed(func, hi))
                .is_some_and(|(lo, hi)| hi <= lo);
        if !is_idle {
            continue;
        }
        let (carried, results) = (data.args[3..].to_vec(), data.results.to_vec());
        for (result, first) in results.into_iter().zip(carried) {
            rename_uses(func, result, first);
        }
        let mut list = func.order.insts(block).to_vec();
        list.retain(|&other| other != inst);
        func.order.replace(block, list);
        count += 1;
    }
    count
}
