//! Roles: warps of their own bring the blocks that the program multiplies.
//!
//! ```text
//! for .. {                          mbar_init full, 1; mbar_init empty, warps
//!     x = tensor_load map, i, j     producer { for .. { mbar_wait empty, e; mbar_expect full, e; tensor_copy map, i, j to x[e] } }
//!     acc = dot x, .., acc      =>  for .. {
//! }                                     mbar_wait full, e; x = shared_load x[e]; acc = dot x, .., acc
//!                                       release x[e]; mbar_arrive empty, e
//!                                   }
//! ```
//!
//! Both roles are the kernel itself. The **producer** is a copy of it that keeps the loads of boxes, the loops and choices
//! around them, and what bounds, conditions and coordinates are computed from (`slice`); the **consumers** are
//! the kernel without these loads. So both walk through the same iterations, whatever nest of loops they stand in.
//!
//! A **channel** (`channels`) is a ring of blocks with two barriers for each entry: `full`, on which the copy engine arrives, and
//! `empty`, on which the program's warps arrive when they have read it. Loads that the same products read share one. Each role
//! carries the entry that comes next and the parity of its phase through all loops and choices (`weave`); the producer waits for
//! the other parity, which passes on a fresh barrier. As an entry is filled as soon as it was read, a ring of `stages` entries is
//! as far ahead as the ring of a pipeline ([`super::pipeline_loops`]) with one more, and no thread of the program ever issues a copy or
//! waits for a barrier of all. What stands around an inner loop gets a second entry where there is room.
//!
//! A kernel gets roles if warpgroups multiply what some loop loads, if everything that its products read from memory in loops
//! comes by boxes, and if the producer's slice is of scalars and without effects. What stands in memory that the kernel does not write the
//! producer reads, too; and it waits for the kernel before this one where the program does. Boxes outside of loops stay where they are.
//! Where a CTA executes several programs ([`super::loop_over_programs`]) nothing is outside: what a program reads first comes
//! while the one before ends. Two groups of warps may then execute them in turns (`turns`).

mod channels;
mod slice;
mod turns;
mod weave;
mod worth;

use crate::ir::attrs::make;
use crate::ir::dfg::{BlockCall, InstData};
use crate::ir::function::{PartitionData, TileFunction};
use crate::ir::level::Tile;
use crate::ir::ops::TileOp;
use crate::layout::warpgroup;
use crate::settings::{LANES, MOST_WARPS, Policy, Target};
use crate::tile::resources::ResourcePlan;
use crate::tile::start_dots;
use weave::{Role, Weaver};

/// Warps that change their registers together.
const GROUP: u32 = 4;

/// Registers of a thread of the producer where it gives some away: the fewest there can be.
const PRODUCER_REGISTERS: u16 = 24;

/// Most registers that a thread can take ([PTX manual](https://docs.nvidia.com/cuda/parallel-thread-execution/), `setmaxnreg`), and
/// what is left of a file of which producers keep some.
const MOST_REGISTERS: u32 = 240;

/// Registers by which an estimate is too high at least: ptxas gave products 70 less, and attention 20 to 80.
const TOO_HIGH: u32 = 24;

/// Registers of a thread of the program where the producer's give theirs away; none if those that all warps begin with are enough
/// for a program that needs so many. One warp more takes a program of eight from 255 registers to 168; four that keep 24 each leave
/// it 240.
fn budget(warps: u32, needed: u32) -> Option<u16> {
    let threads = |warps: u32| LANES * warps;
    if needed <= Target::most_registers(threads(warps + 1)) + TOO_HIGH {
        return None;
    }
    // What all warps begin with is all there is to be given.
    let least = Target::most_registers(threads(warps + GROUP));
    let all = least * threads(warps + GROUP);
    let given = threads(GROUP) * u32::from(PRODUCER_REGISTERS);
    let left = MOST_REGISTERS.min((all - given) / threads(warps) / 8 * 8);
    (least < left).then_some(left as u16)
}

/// Whether one warpgroup alone multiplies, which leaves room for another one.
pub fn has_warpgroup_alone(func: &TileFunction, target: Target, resources: &ResourcePlan) -> bool {
    let is_for_one =
        func.num_warps() == warpgroup::group_warps() && resources.roles != Policy::Never;
    is_for_one && resources.warpgroup_units && {
        let mut insts = func.all_insts();
        insts.any(|(_, inst)| start_dots::is_for_warpgroup(func, inst, target))
    }
}

/// Lets warps of their own bring blocks if that pays; whether it does, else the function stays as it is.
pub fn form_roles(func: &mut TileFunction, target: Target, resources: &ResourcePlan) -> bool {
    let groups = match turns::can_take(func, target, resources) {
        true => &[turns::GROUPS, 1][..],
        false => &[1],
    };
    let has_room = |groups: &&u32| func.num_warps() * **groups + GROUP <= MOST_WARPS;
    let groups = groups.iter().filter(has_room);
    let mut found = groups.filter_map(|&groups| {
        let channels = channels::find(func, target, resources, groups)?;
        Some((groups, channels))
    });
    let Some((groups, channels)) = found.next() else {
        return false;
    };
    let loads: Vec<_> = channels.loads().collect();
    let Some(needed) = slice::needed(func, &loads) else {
        return false;
    };
    let before = (1 < groups).then(|| func.clone());
    let warps = func.num_warps();
    let first_warp = warps * groups;
    let registers = worth::registers_of_loops(func);
    // Within an author's bound the assembler gives no role more.
    let registers = registers.filter(|_| resources.max_registers.is_none());
    let budget = registers.and_then(|registers| budget(first_warp, registers));
    if let Some(whole) = func.partitions.values_mut().next() {
        whole.max_registers = budget;
        whole.groups = groups;
    }
    func.partitions.push(PartitionData {
        first_warp,
        num_warps: if budget.is_some() { GROUP } else { 1 },
        groups: 1,
        max_registers: budget.map(|_| PRODUCER_REGISTERS),
    });
    if channels.in_pieces {
        let stores = func.insts_with(TileOp::TensorStore);
        let stores: Vec<_> = stores.map(|(_, inst)| inst).collect();
        for inst in stores {
            let attrs = &mut func.dfg.insts[inst].attrs;
            attrs.push(make::stages(channels::PLACES));
        }
    }
    let entry = func.entry;
    let (region, copies) = slice::copy(func, &needed);
    let places = channels.make(func);
    let inits = places
        .iter()
        .flat_map(|place| [(place.full, 1), (place.empty, warps)]);
    let mut made = Vec::new();
    for (bars, count) in inits {
        let mut data: InstData<Tile> = InstData::new(TileOp::MbarInit, &[]);
        data.attrs.extend([make::slot(bars), make::count(count)]);
        made.push(func.dfg.make_inst(data, &[]));
    }
    let mut producer: InstData<Tile> = InstData::new(TileOp::Producer, &[]);
    producer.blocks.push(BlockCall::region(region));
    made.push(func.dfg.make_inst(producer, &[]));
    made.extend_from_slice(func.order.insts(entry));
    func.order.replace(entry, made);

    let copied = |inst| copies.get(&inst).copied();
    Weaver::new(func, &places, Role::Producer, &channels.renamed(copied)).run(region);
    Weaver::new(func, &places, Role::Consumer, &channels.groups).run(entry);
    match before {
        Some(before) if turns::take(func).is_none() => {
            *func = before;
            false
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::{GROUP, PRODUCER_REGISTERS, budget};
    use crate::settings::Target;

    #[test]
    fn no_warp_waits_for_registers_that_nobody_gives() {
        let mut found = Vec::new();
        for warps in [4, 8, 16] {
            let all = 32 * (warps + GROUP);
            let had = all * Target::most_registers(all);
            let Some(budget) = budget(warps, 300) else {
                continue;
            };
            let taken = 32 * warps * u32::from(budget) + 32 * GROUP * u32::from(PRODUCER_REGISTERS);
            assert!(taken <= had, "{warps} warps take {taken} of {had}");
            found.push((warps, budget));
        }
        // Four warps have all that a thread can have as it is.
        assert_eq!(found, [(8, 240), (16, 112)]);
        // Of estimates that are 24 too high the largest which nine warps have registers for.
        let enough = Target::most_registers(32 * 9) + 24;
        assert_eq!(
            [budget(8, enough), budget(8, enough + 1)],
            [None, Some(240)]
        );
    }
}
