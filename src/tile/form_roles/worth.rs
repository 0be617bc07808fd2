//! Whether roles make a kernel faster.

use cranelift_entity::EntitySet;

use super::channels::{Draft, LoadGroup, holds_loops};
use crate::analysis::axis::Axis;
use crate::analysis::program::ProgramOrder;
use crate::ir::entities::{Block, Value};
use crate::ir::function::TileFunction;
use crate::ir::ops::TileOp;
use crate::layout::warpgroup;
use crate::settings::{Target, Usage};
use crate::tile::share_operands::registers_needed;

/// Registers by which what is needed of them is about too high for products by warpgroups.
const TOO_HIGH: u32 = 50;

/// Whether roles make it faster: where an SM holds one CTA, so that no other one multiplies while this one waits, and where there
/// is a loop of which no product waits for another one of the same iteration, else the program has to wait whoever brings its blocks. (An
/// H100: attention forward 1.05 to 1.2 times as fast, products 1.0 to 1.1; with two CTAs on an SM 0.6 to 1.05, as the
/// producer's registers leave room for one, and derivatives of attention by rows 0.9.)
pub(super) fn pays(
    func: &TileFunction,
    order: &ProgramOrder,
    target: Target,
    (groups, drafts): (&[LoadGroup], &[Draft]),
) -> bool {
    let block_of = |group: &LoadGroup| func.order.block_of(group.loads[0]);
    let is_loop = |block: &Block| {
        let owner = order.owner(*block);
        owner.is_some_and(|owner| func.dfg.insts[owner].op.is_loop() && !holds_loops(func, owner))
    };
    let mut bodies = groups.iter().filter_map(block_of).filter(is_loop);
    if bodies.all(|body| products_wait(func, body)) {
        return false;
    }
    walks_over_programs(func) || resident(func, target, drafts) <= 1
}

/// Whether programs walk over work by themselves: a loop around others goes on from the program's number. Such kernels are launched with
/// as many programs as there are SMs, so that each is alone on its own.
fn walks_over_programs(func: &TileFunction) -> bool {
    let is_number = |&value: &Value| {
        let inst = func.dfg.def_inst(value);
        inst.is_some_and(|inst| func.dfg.insts[inst].op == TileOp::ProgramId)
    };
    func.order.insts(func.entry).iter().any(|&inst| {
        let data = &func.dfg.insts[inst];
        data.op.is_loop() && data.args.iter().any(is_number) && holds_loops(func, inst)
    })
}

/// Sums of products that a thread has at least where groups take turns.
const LEAST_SUMS: usize = 64;

/// Whether two groups that take turns at a CTA's programs are faster than as many CTAs, of which an SM holds one or two. (An H200:
/// blocks of 128x128 sums are 1.01 to 1.2 times as fast, the more the fewer products a sum has; blocks of 128x64 0.94 to 1.25
/// times; with 64x64 the programs are too short, 0.87 to 0.97 times.) The group that multiplies is alone then, so it must not wait for
/// columns that it loads itself. (An H100, tf32 of 4096^3, 128x128x32 with b as k x n: 500 us, two CTAs 430.)
pub(super) fn turns_pay(func: &TileFunction, target: Target, drafts: &[Draft]) -> bool {
    let axis = Axis::compute(func);
    let mut products = func.insts_with(TileOp::Dot);
    if products.any(|(_, inst)| warpgroup::loads_columns(func, &axis, inst)) {
        return false;
    }
    let dots = func.insts_with(TileOp::Dot);
    let sums = dots.map(|(_, inst)| {
        func.dfg
            .ty(func.dfg.insts[inst].results[0])
            .shape
            .elements()
    });
    let most = sums.max().unwrap_or(0);
    let is_long = LEAST_SUMS * func.num_threads() as usize <= most;
    is_long && resident(func, target, drafts) <= 2
}

/// How many CTAs of a kernel without roles an SM holds.
fn resident(func: &TileFunction, target: Target, drafts: &[Draft]) -> u32 {
    let registers = registers_of_loops(func);
    let rings = func
        .buffers
        .values()
        .flatten()
        .map(|b| b.stage_bytes() * b.stages);
    let usage = Usage {
        threads: func.num_threads(),
        registers: registers.unwrap_or(0).saturating_sub(TOO_HIGH),
        shared: drafts.iter().map(Draft::bytes).sum::<u32>() + rings.sum::<u32>(),
    };
    target.resident(usage)
}

/// The most registers that a loop needs, if there is one.
pub(super) fn registers_of_loops(func: &TileFunction) -> Option<u32> {
    let loops = func
        .all_insts()
        .filter(|&(_, inst)| func.dfg.insts[inst].op.is_loop());
    loops
        .flat_map(|(_, inst)| func.regions(inst))
        .map(|body| registers_needed(func, body))
        .max()
}

/// Whether a product in a block needs what another one there gives.
fn products_wait(func: &TileFunction, body: Block) -> bool {
    let mut behind: EntitySet<Value> = EntitySet::new();
    func.order.insts(body).iter().any(|&inst| {
        let data = &func.dfg.insts[inst];
        let waits = func.dfg.uses(inst).any(|value| behind.contains(value));
        if waits || data.op == TileOp::Dot {
            behind.extend(data.results.iter().copied());
        }
        waits && data.op == TileOp::Dot
    })
}
