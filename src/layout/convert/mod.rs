//! Plans how a block moves from one distributed layout to another.
//!
//! With layouts as matrices, the move is `C = src⁻¹ dst`: for each location of the result, a location
//! of the source with the same element. What `C` touches decides the means:
//!
//! | `C` moves | plan |
//! |---|---|
//! | nothing | [`Conversion::Identity`] |
//! | registers, alike in all threads | [`Conversion::Registers`]: a renaming |
//! | registers and lanes within each warp | [`Conversion::Shuffle`], see [`shuffle`] |
//! | warps | [`Conversion::Shared`]: a swizzled trip through shared memory, see [`shared`] |
//!
//! Where a shuffle plan exists and the trip is cheaper by [`ConversionCost::weight`], the trip is taken.
//! Replicated sources offer several places to read from, and replicated results need no more than one
//! transport: both are used.
//!
//! Plans are pure data. The expander emits them, `simulate` runs them in tests and under fuzzing; planning costs tens of
//! microseconds, so callers that ask often keep the answers by pair of layout ids.

#[cfg(any(test, feature = "fuzzing", feature = "tool"))]
pub(crate) mod banks;
pub mod shared;
pub mod shuffle;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod simulate;

use crate::linear_layout::gf2::Span;
use crate::linear_layout::layout::{HwDim, LOG2_LANES, LinearLayout};
use crate::settings::diversity::Choices;
use shared::SharedPlan;
use shuffle::ShufflePlan;

/// How to move a block from one layout to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Conversion {
    /// Every register stays.
    Identity,
    /// Register `i` of the result is register `map[i]` of the source, in the same thread.
    Registers(Vec<u16>),
    /// Selects and warp shuffles.
    Shuffle(ShufflePlan),
    /// Store to shared memory, barrier, load.
    Shared(Box<SharedPlan>),
}

/// What a conversion costs, per thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConversionCost {
    /// `shfl.sync` instructions, of 32 bits each.
    pub shuffles: u32,
    /// Bytes stored to plus bytes loaded from shared memory.
    pub shared_bytes: u32,
    /// Barriers over the group of warps.
    pub barriers: u32,
    /// Selects and packing or unpacking of narrow values, in 32-bit instructions. Renaming is free.
    pub moves: u32,
}

impl ConversionCost {
    /// One number to compare plans by, in units of one 32-bit select of one warp. A shuffle and a
    /// conflict-free shared access of four bytes a lane each take the shared-memory pipe for one clock,
    /// in which the multiprocessor could do two selects; a barrier is rated at a typical exposed latency
    /// divided by the warps that hide it.
    pub fn weight(&self) -> u32 {
        self.moves + 2 * self.shuffles + self.shared_bytes.div_ceil(4) * 2 + 24 * self.barriers
    }
}

/// Whether each warp holds all that it needs of a block.
pub(crate) fn stays_in_warps(from: &LinearLayout, to: &LinearLayout) -> bool {
    let within = |layout: &LinearLayout| {
        let columns = [HwDim::Register, HwDim::Lane].map(|dim| layout.columns(dim).to_vec());
        Span::of(&columns.concat())
    };
    let (have, want) = (within(from), to.columns(HwDim::Warp));
    let warps = from.columns(HwDim::Warp).iter().zip(want);
    let inner = [HwDim::Register, HwDim::Lane];
    let inner = inner.iter().flat_map(|&dim| to.columns(dim));
    from.bits(HwDim::Warp) == to.bits(HwDim::Warp)
        && warps.into_iter().all(|(a, b)| have.contains(a ^ b))
        && inner.into_iter().all(|&column| have.contains(column))
}

/// Plans the conversion from `src` to `dst` of elements of `elem_bytes` (1, 2, 4 or 8) bytes.
///
/// Both are surjective distributed layouts of one shape, with 32 lanes, as many warps and one CTA;
/// anything else is a bug of the caller and panics.
pub fn plan(src: &LinearLayout, dst: &LinearLayout, elem_bytes: u32) -> Conversion {
    check(src, dst, elem_bytes);
    if src == dst {
        return Conversion::Identity;
    }
    if let Some(map) = dst.register_map(src) {
        let same = map.iter().enumerate().all(|(i, &r)| i == usize::from(r));
        let whole = dst.num_registers() == src.num_registers();
        return if same && whole {
            Conversion::Identity
        } else {
            Conversion::Registers(map)
        };
    }
    let trip = shared::plan(src, dst, elem_bytes);
    match shuffle::plan(src, dst, elem_bytes) {
        Some(shuffles) if shuffles.cost(elem_bytes).weight() <= trip.cost().weight() => {
            Conversion::Shuffle(shuffles)
        }
        _ => Conversion::Shared(Box::new(trip)),
    }
}

/// The plan, or by other `choices` one that costs more.
pub fn plan_any(
    src: &LinearLayout,
    dst: &LinearLayout,
    elem_bytes: u32,
    choices: &mut Choices,
) -> Conversion {
    let best = plan(src, dst, elem_bytes);
    match &best {
        Conversion::Shuffle(_) | Conversion::Shared(_) if choices.chance(50) => {
            let shuffles = shuffle::plan(src, dst, elem_bytes).filter(|_| choices.chance(50));
            shuffles.map_or_else(
                || {
                    let skipped = choices.below(4);
                    Conversion::Shared(Box::new(shared::plan_beyond(src, dst, elem_bytes, skipped)))
                },
                Conversion::Shuffle,
            )
        }
        _ => best,
    }
}

fn check(src: &LinearLayout, dst: &LinearLayout, elem_bytes: u32) {
    assert!(
        matches!(elem_bytes, 1 | 2 | 4 | 8),
        "elements of {elem_bytes} bytes"
    );
    assert_eq!(src.shape(), dst.shape(), "a conversion keeps the shape");
    for layout in [src, dst] {
        assert!(
            layout.is_distributed() && layout.is_surjective(),
            "{layout:?} does not hold a block in registers"
        );
        assert_eq!(layout.bits(HwDim::Lane), LOG2_LANES, "{layout:?}");
        assert_eq!(layout.num_ctas(), 1, "{layout:?} spans several CTAs");
    }
    assert_eq!(
        src.num_warps(),
        dst.num_warps(),
        "{src:?} and {dst:?} differ in their warps"
    );
}

#[cfg(test)]
mod tests;
