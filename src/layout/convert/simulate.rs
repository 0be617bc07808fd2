//! Runs conversion plans on the CPU: the oracle of their tests.
//!
//! A block in registers is a list of values by location: register fastest, then lane, then warp. The
//! simulator follows the plan as the expander emits it and knows nothing of how it was found.

use super::Conversion;
use super::shared::{ExchangeSide, SharedPlan};
use super::shuffle::{ShufflePlan, ShuffleStep};
use crate::linear_layout::layout::{HwDim, LinearLayout};

/// The block `tensor`, indexed by flat index, as threads of `layout` hold it.
pub(crate) fn distribute<T: Copy>(layout: &LinearLayout, tensor: &[T]) -> Vec<T> {
    let mut values = Vec::new();
    for warp in 0..layout.num_warps() {
        for lane in 0..layout.num_lanes() {
            for register in 0..layout.num_registers() {
                values.push(tensor[layout.apply(register, lane, warp, 0) as usize]);
            }
        }
    }
    values
}

/// What the threads hold after `conversion` from `src` to `dst` if they hold `values` before it;
/// `None` for a location that reads what nobody wrote. Values must agree where `src` holds copies.
pub(crate) fn simulate<T: Copy>(
    conversion: &Conversion,
    src: &LinearLayout,
    dst: &LinearLayout,
    values: &[T],
) -> Vec<Option<T>> {
    let threads = src.num_lanes() * src.num_warps();
    let held = src.num_registers() as usize;
    assert_eq!(values.len(), threads as usize * held, "one value each");
    let thread = |t: u32| &values[t as usize * held..][..held];
    match conversion {
        Conversion::Identity => values.iter().copied().map(Some).collect(),
        Conversion::Registers(map) => {
            let all = (0..threads).flat_map(|t| map.iter().map(move |&r| (t, r)));
            all.map(|(t, r)| thread(t).get(usize::from(r)).copied())
                .collect()
        }
        Conversion::Shuffle(plan) => {
            let lanes = src.num_lanes();
            let warps = (0..src.num_warps()).flat_map(|warp| {
                let start = (warp * lanes) as usize * held;
                let part = &values[start..][..lanes as usize * held];
                shuffle(plan, lanes, warp, part)
            });
            warps.collect()
        }
        Conversion::Shared(plan) => trip(plan, src, dst, values),
    }
}

fn parity(bits: u32) -> bool {
    bits.count_ones() % 2 == 1
}

/// Runs a shuffle plan on one warp.
fn shuffle<T: Copy>(plan: &ShufflePlan, lanes: u32, warp: u32, values: &[T]) -> Vec<Option<T>> {
    let held = plan.sources as usize;
    let mut threads: Vec<Vec<T>> = values.chunks(held).map(<[T]>::to_vec).collect();
    for step in &plan.steps {
        match step {
            ShuffleStep::Select {
                predicate,
                set,
                clear,
            } => {
                let predicate = plan.predicates[usize::from(*predicate)];
                for (lane, values) in threads.iter_mut().enumerate() {
                    let holds = parity(lane as u32 & predicate.lane_mask)
                        != parity(warp & predicate.warp_mask);
                    let chosen = if holds { *set } else { *clear };
                    values.push(values[usize::from(chosen)]);
                }
            }
            ShuffleStep::Shuffle { values: sent, xor } => {
                let before = threads.clone();
                for (lane, values) in threads.iter_mut().enumerate() {
                    let base = match &plan.lane_map {
                        None => lane as u32,
                        Some(map) => {
                            let own = map.lanes.iter().enumerate();
                            let own = own.filter(|&(bit, _)| lane >> bit & 1 == 1);
                            let warps = map.warps.iter().enumerate();
                            let warps = warps.filter(|&(bit, _)| warp >> bit & 1 == 1);
                            own.chain(warps).fold(0, |sum, (_, &c)| sum ^ u32::from(c))
                        }
                    };
                    let from = base ^ u32::from(*xor);
                    assert!(from < lanes, "a lane of the warp");
                    let from = &before[from as usize];
                    values.extend(sent.iter().map(|&v| from[usize::from(v)]));
                }
            }
        }
    }
    let results = threads
        .iter()
        .flat_map(|values| plan.results.iter().map(|&v| Some(values[usize::from(v)])));
    results.collect()
}

/// Runs a trip through shared memory. Panics if two threads write one element: values are only
/// `Copy`, so that copies agree cannot be seen here, but none may be written twice.
fn trip<T: Copy>(
    plan: &SharedPlan,
    src: &LinearLayout,
    dst: &LinearLayout,
    values: &[T],
) -> Vec<Option<T>> {
    let (lanes, warps) = (src.num_lanes(), src.num_warps());
    let held = src.num_registers() as usize;
    let mut memory: Vec<Option<T>> = vec![None; plan.offset.size(HwDim::Offset) as usize];
    let at = |access: &ExchangeSide, lane, warp, xor: u32, add: u32| {
        let address = (access.thread_offset(lane, warp) ^ xor) + add;
        let bytes = access.vector * plan.elem_bytes;
        assert_eq!(address % bytes, 0, "accesses are aligned");
        (address / plan.elem_bytes) as usize
    };
    for warp in 0..warps {
        for lane in 0..lanes {
            if !plan.store.is_active(lane, warp) {
                continue;
            }
            let own = &values[(warp * lanes + lane) as usize * held..][..held];
            for group in &plan.store.groups {
                let start = at(&plan.store, lane, warp, group.xor, group.add);
                for (slot, &register) in memory[start..].iter_mut().zip(&group.registers) {
                    assert!(slot.is_none(), "each element is written once");
                    *slot = Some(own[usize::from(register)]);
                }
            }
        }
    }
    let mut results = Vec::new();
    for warp in 0..warps {
        for lane in 0..lanes {
            let mut own = vec![None; dst.num_registers() as usize];
            for group in &plan.load.groups {
                let start = at(&plan.load, lane, warp, group.xor, group.add);
                for (slot, &register) in memory[start..].iter().zip(&group.registers) {
                    own[usize::from(register)] = *slot;
                }
            }
            results.extend(plan.copies.iter().map(|&r| own[usize::from(r)]));
        }
    }
    results
}
