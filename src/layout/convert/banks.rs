//! Which banks of shared memory the accesses of a trip meet in.
//!
//! A request is served in phases of 32 lanes up to 4 bytes each, 16 of 8 and 8 of 16; in a phase, each bank serves one 4-byte
//! word a wavefront, to any number of lanes.

use super::shared::ExchangeSide;
use crate::linear_layout::layout::HwDim;

/// Lanes that are served at once, and what they ask of the banks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Phase {
    /// The first lane, and the one behind the last.
    pub(crate) first: u32,
    pub(crate) end: u32,
    /// Distinct words of each bank.
    pub(crate) banks: [u32; 32],
}

impl Phase {
    /// Trips that it takes.
    pub(crate) fn worst(&self) -> u32 {
        self.banks.into_iter().max().unwrap_or(0)
    }
}

/// Wavefronts of all accesses of one side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wavefronts {
    /// As the banks serve them.
    pub(crate) actual: u32,
    /// One for each phase.
    pub(crate) ideal: u32,
}

impl ExchangeSide {
    /// The thread's part of the byte offset.
    pub(crate) fn thread_offset(&self, lane: u32, warp: u32) -> u32 {
        self.columns.iter().fold(0, |sum, column| {
            let index = if column.dim == HwDim::Lane {
                lane
            } else {
                warp
            };
            sum ^ ((index >> column.bit & 1) * column.xor)
        })
    }

    /// Whether this thread takes part.
    pub(crate) fn is_active(&self, lane: u32, warp: u32) -> bool {
        lane & self.idle_lanes == 0 && warp & self.idle_warps == 0
    }

    /// The phases of all accesses of a warp.
    pub(crate) fn phases(&self, elem_bytes: u32, lanes: u32, warp: u32) -> Vec<Phase> {
        let bytes = self.vector * elem_bytes;
        let at_once = lanes / (bytes / 4).max(1);
        let mut phases = Vec::new();
        for group in &self.groups {
            for first in (0..lanes).step_by(at_once.max(1) as usize) {
                let end = first + at_once;
                let active = (first..end).filter(|&lane| self.is_active(lane, warp));
                let mut words: Vec<u32> = active
                    .flat_map(|lane| {
                        let start = (self.thread_offset(lane, warp) ^ group.xor) + group.add;
                        start / 4..(start + bytes).div_ceil(4)
                    })
                    .collect();
                words.sort_unstable();
                words.dedup();
                let mut banks = [0; 32];
                for word in words {
                    banks[word as usize % 32] += 1;
                }
                phases.push(Phase { first, end, banks });
            }
        }
        phases
    }

    /// The wavefronts of all threads.
    pub(crate) fn wavefronts(&self, elem_bytes: u32, lanes: u32, warps: u32) -> Wavefronts {
        let mut sum = Wavefronts::default();
        for phase in (0..warps).flat_map(|warp| self.phases(elem_bytes, lanes, warp)) {
            sum.actual += phase.worst();
            sum.ideal += phase.worst().min(1);
        }
        sum
    }
}
