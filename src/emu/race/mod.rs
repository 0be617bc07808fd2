//! Detection of unordered accesses.
//!
//! Time is one counter that advances whenever some thread publishes what it did: at a barrier, a
//! fence or a releasing atomic. Each byte remembers its last write and two last reads as thread and
//! time. An access is ordered before the present one if the present thread *knows* the other
//! thread up to that time, which is what the synchronisation so far gave it (FastTrack's epochs,
//! with one clock in place of one for each thread):
//!
//! - a CTA barrier joins what all its warps know and gives it to the warps that wait;
//! - `bar.warp.sync` orders the lanes of its mask;
//! - a releasing atomic leaves what its thread knows at the address; an acquiring one that meets
//!   it takes it over, if the scope of each has the other's thread. A fence turns the relaxed accesses behind it into releasing ones and those
//!   before it into acquiring ones.
//!
//! Knowledge is kept for each warp, plus for each lane what it acquired by itself; a barrier or a
//! full `bar.warp.sync` spreads that to the warp. Approximations, all in favour of silence: only
//! two readers of a byte are remembered, and all that are under way; a barrier that a part of a warp reaches alone counts for
//! the whole warp; who acquires with a scope below the device's, what was released with that, takes over what it says
//! of threads of the own scope and of all asynchronous work.
//!
//! Asynchronous work takes part as *agents* (see `agent`). What a thread knows is known through the generic
//! proxy; a fence between proxies copies it to what is visible to another one, and that spreads by the
//! same synchronisation. Writes of the generic proxy are ordered before work of the async proxy if they are
//! visible to it where it starts; its reads, and whatever the async proxy itself did, if they are known there.

use super::inst::Scope;

mod agent;
mod chain;
mod clock;
mod knowledge;
mod release;
mod shadow;

pub(super) use agent::{Agent, Agents, FIRST_AGENT, GENERIC, PROGRESS, Starting, UNDER_WAY};
pub(super) use clock::{Joined, WarpClock};
pub(super) use knowledge::{Knowledge, Observer};
pub(super) use release::{Releases, Strong};
pub(super) use shadow::{CheckedAccess, Conflict, Settled, Shadow};

/// One access: who, when, where in the text. `time` zero means none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Record {
    /// Number of the warp in the grid, or of an agent, times 32, plus lane.
    pub(super) who: u32,
    time: u32,
    /// Line of the text, with the top bit set for strong accesses, one each for those with the scope of a CTA and of a cluster, and one for `.nc` loads.
    line: u32,
}

const STRONG: u32 = 1 << 31;
/// Beside the line of an access: its scope is the CTA, in memory that others reach.
const IN_CTA: u32 = 1 << 30;
/// The same of a cluster.
const IN_CLUSTER: u32 = 1 << 28;
/// Beside the line of a load: nobody may write these bytes while the kernel runs.
pub(super) const CONSTANT: u32 = 1 << 29;

impl Record {
    pub(super) fn line(self) -> u32 {
        self.line & !(STRONG | IN_CTA | IN_CLUSTER | CONSTANT)
    }

    pub(super) fn is_constant(self) -> bool {
        self.line & CONSTANT != 0
    }

    fn strong(self) -> bool {
        self.line & STRONG != 0
    }

    /// The scope of a strong access.
    fn scope(self) -> Scope {
        match (self.line & IN_CTA, self.line & IN_CLUSTER) {
            (0, 0) => Scope::Device,
            (0, _) => Scope::Cluster,
            _ => Scope::Cta,
        }
    }
}

/// What stands beside the line of an access with a scope.
pub(super) fn scope_bits(scope: Scope) -> u32 {
    match scope {
        Scope::Cta => IN_CTA,
        Scope::Cluster => IN_CLUSTER,
        Scope::Device => 0,
    }
}

/// The lanes of a mask.
pub(super) fn lanes(mask: u32) -> impl Iterator<Item = u32> {
    let mut rest = mask;
    std::iter::from_fn(move || {
        if rest == 0 {
            return None;
        }
        let lane = rest.trailing_zeros();
        rest &= rest - 1;
        Some(lane)
    })
}
