//! Whether a gather stays within warps: which lane and register holds the element that an index names.
//!
//! The gather's result has the layout of the index. If the axis of the source lies in registers and lanes alone, and
//! source and index agree on where the other dimensions are, then a thread's element is in its own warp: in the lane
//! whose axis bits are those of the index, its other bits being the thread's own. A shuffle by index fetches it; where
//! registers hold bits of the axis too, each of them is fetched and the right one selected, as long as that costs less
//! than a trip through shared memory.

use crate::linear_layout::layout::{HwDim, LinearLayout};

/// How the elements are found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WarpGather {
    /// Bits of the index that name a lane: bit of the index, bit of the lane.
    pub lanes: Vec<(u8, u8)>,
    /// Bits of the index that name a register: bit of the index, bit of the register.
    pub registers: Vec<(u8, u8)>,
    /// For each register of the result, the register of the source in which the axis bits are clear.
    pub base: Vec<u16>,
}

impl WarpGather {
    /// Cost for each 32-bit word of an element, in the units of layout assignment: shuffles and selections.
    pub(crate) fn cost(&self) -> u64 {
        let choices = 1u64 << self.registers.len();
        self.base.len() as u64 * (choices * SHUFFLE + (choices - 1) * SELECTION)
    }
}

/// A shuffle of a 32-bit register.
const SHUFFLE: u64 = 6;
/// A selection among two registers, and what it takes to know which.
const SELECTION: u64 = 2;
/// A barrier and the latency around it.
const BARRIER: u64 = 120;
/// An access to shared memory.
const ACCESS: u64 = 4;

/// Cost of a trip through shared memory for each word of an element. Threads that read anywhere meet in banks, about
/// two to a bank.
pub(crate) fn trip_cost(source: &LinearLayout, index: &LinearLayout) -> u64 {
    let (written, read) = (source.num_registers(), index.num_registers());
    BARRIER + (u64::from(written) + 2 * u64::from(read)) * ACCESS
}

/// The plan for a gather within warps, if there is one and it costs no more than a trip through shared memory.
pub(crate) fn cheap_within_warps(
    source: &LinearLayout,
    index: &LinearLayout,
    axis: usize,
) -> Option<WarpGather> {
    let plan = within_warps(source, index, axis)?;
    (plan.cost() <= trip_cost(source, index)).then_some(plan)
}

/// Largest number of registers among which a selection is made.
const MAX_SELECTED_BITS: usize = 3;

/// The plan for a gather within warps; `None` if data must cross warps or too many registers are in question.
fn within_warps(source: &LinearLayout, index: &LinearLayout, axis: usize) -> Option<WarpGather> {
    let mut plan = WarpGather {
        lanes: Vec::new(),
        registers: Vec::new(),
        base: Vec::new(),
    };
    let mut bit = 0;
    for digit in source.digits(axis)? {
        for place in digit.bits {
            match digit.dim {
                HwDim::Lane => plan.lanes.push((bit, place)),
                HwDim::Register => plan.registers.push((bit, place)),
                _ => return None,
            }
            bit += 1;
        }
    }
    if plan.registers.len() > MAX_SELECTED_BITS {
        return None;
    }
    // Where the other dimensions are. Lanes that name a place along the axis name nothing else.
    let (from, to) = (source.project(axis), index.project(axis));
    let is_axis_lane = |lane: usize| plan.lanes.iter().any(|&(_, l)| usize::from(l) == lane);
    let lanes = from
        .columns(HwDim::Lane)
        .iter()
        .zip(to.columns(HwDim::Lane));
    for (lane, (&a, &b)) in lanes.enumerate() {
        let expected = if is_axis_lane(lane) { 0 } else { a };
        if b != expected {
            return None;
        }
    }
    if from.columns(HwDim::Warp) != to.columns(HwDim::Warp) {
        return None;
    }
    let axis_registers = plan.registers.iter().fold(0, |m, &(_, r)| m | 1u32 << r);
    let mut holders = rustc_hash::FxHashMap::default();
    for register in (0..from.num_registers()).filter(|r| r & axis_registers == 0) {
        let element = from.apply_dim(HwDim::Register, register);
        holders.entry(element).or_insert(register as u16);
    }
    let registers = 0..to.num_registers();
    let base: Option<Vec<u16>> = registers
        .map(|r| holders.get(&to.apply_dim(HwDim::Register, r)).copied())
        .collect();
    plan.base = base?;
    Some(plan)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linear_layout::shape::Shape;

    fn plan(source: &str, index: &str, axis: usize) -> Option<WarpGather> {
        let shape = Shape::new(&[4, 8]).expect("powers of two");
        let parse = |text| LinearLayout::parse(text, shape).expect("a layout");
        within_warps(&parse(source), &parse(index), axis)
    }

    #[test]
    fn the_axis_may_lie_in_lanes_and_registers() {
        // Rows in registers and the warp, columns in lanes.
        let same = "{reg=[8], lane=[1,2,4], warp=[16]}";
        let found = plan(same, same, 1).expect("rows stay in their warps");
        assert_eq!(found.lanes, [(0, 0), (1, 1), (2, 2)]);
        assert!(found.registers.is_empty());
        assert_eq!(found.base, [0, 1]);
        assert_eq!(plan(same, same, 0), None, "rows are in other warps");
        // Half of the columns in registers.
        let split = "{reg=[1,8], lane=[2,4,0], warp=[16]}";
        let found = plan(split, split, 1).expect("rows stay in their warps");
        assert_eq!(found.registers, [(0, 0)]);
        assert_eq!(found.base, [0, 0, 2, 2]);
    }

    #[test]
    fn other_dimensions_must_agree() {
        let source = "{reg=[8], lane=[1,2,4], warp=[16]}";
        assert_eq!(plan(source, "{reg=[16], lane=[1,2,4], warp=[8]}", 1), None);
        assert_eq!(
            plan(source, "{reg=[1,2], lane=[4,8,0], warp=[16]}", 1),
            None
        );
        let found = plan(source, "{reg=[8,1,2,4], lane=[0,0,0], warp=[16]}", 1);
        let found = found.expect("a thread may ask for all columns");
        assert_eq!(found.base, [0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1]);
    }
}
