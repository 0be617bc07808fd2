//! The state of a warp: registers, groups of lanes that run together, and how groups split and
//! meet again.
//!
//! Lanes that have the same program counter and run together form a group. A branch that differs
//! among them splits it. Groups merge where a `.sync` instruction wants several, and wherever a
//! running group comes to where another one stands.

use smallvec::SmallVec;

use super::async_work::{Touch, Transfer};
use super::mem::{LOCAL_BASE, Region};
use super::module::Entry;
use super::race::{Agent, WarpClock};
use super::wgmma_in_flight::Flight;

/// What registers hold before anybody writes them.
const POISON: u64 = 0xbad0_bad0_bad0_bad0;

/// What a group of lanes is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Ready,
    /// Waits at a `.sync` instruction for the lanes of this mask.
    Sync(u32),
    /// Waits at a CTA barrier.
    Barrier(u8),
    /// Waits for a phase of the barrier at this offset in shared memory.
    Phase(u32),
    /// Waits for the other warps of its group to issue the product of this line.
    Products(u32),
    /// Waits for so many registers of each thread.
    Registers(u32),
    /// Waits for the other threads of the cluster.
    Cluster,
}

/// Lanes that run together.
#[derive(Clone, Copy, Debug)]
pub(super) struct LaneGroup {
    pub(super) pc: u32,
    pub(super) mask: u32,
    pub(super) state: State,
}

/// A copy to shared memory that is under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Copy {
    pub(super) lane: u32,
    /// Groups that its lane had committed before.
    pub(super) group: u32,
    pub(super) number: u64,
    /// What its accesses are recorded as.
    pub(super) agent: Agent,
    /// What is read, if anything is; the other bytes become zero.
    pub(super) from: Option<Touch>,
    pub(super) to: Touch,
}

#[derive(Debug)]
pub(super) struct Warp {
    /// Number in the CTA.
    pub(super) index: u32,
    /// Lanes that stand for threads of the block.
    pub(super) exists: u32,
    pub(super) exited: u32,
    pub(super) groups: SmallVec<[LaneGroup; 4]>,
    pub(super) registers: Vec<[u64; 32]>,
    /// For each register, the lanes in which it holds a defined value.
    pub(super) defined: Vec<u32>,
    pub(super) predicates: Vec<u32>,
    pub(super) predicates_defined: Vec<u32>,
    /// The carry flag of the lanes.
    pub(super) carry: u32,
    pub(super) clock: WarpClock,
    /// Copies under way, in the order in which they started.
    pub(super) copies: Vec<Copy>,
    /// Groups of copies that each lane has committed.
    pub(super) commits: [u32; 32],
    /// Copies started so far, each of which has the number that this was then.
    pub(super) copies_started: u64,
    /// Bulk stores under way, and groups of them that each lane has committed.
    pub(super) bulk: Vec<Transfer>,
    pub(super) bulk_commits: [u32; 32],
    /// Stands for bulk stores that were waited for.
    pub(super) bulk_engine: Option<Agent>,
    /// Stands for loads by `.nc`.
    pub(super) constants: Option<Agent>,
    /// Local memory of each lane, if the entry has any.
    pub(super) local: Vec<Region>,
    /// Lanes that arrived at the cluster's barrier, and those that may go on behind it.
    pub(super) arrived: u32,
    pub(super) passed: u32,
    /// Products under way, if the entry has any.
    pub(super) flight: Option<Box<Flight>>,
}

impl Warp {
    pub(super) fn new(entry: &Entry, index: u32, threads: u32, clock: WarpClock) -> Warp {
        let lanes = (threads - index * 32).min(32);
        let exists = u32::MAX >> (32 - lanes);
        let locals = if entry.local_bytes == 0 { 0 } else { lanes };
        let (data, predicates) = (
            entry.registers.data as usize,
            entry.registers.predicates as usize,
        );
        Warp {
            index,
            exists,
            exited: 0,
            groups: SmallVec::from_slice(&[LaneGroup {
                pc: 0,
                mask: exists,
                state: State::Ready,
            }]),
            registers: vec![[POISON; 32]; data],
            defined: vec![0; data],
            predicates: vec![0; predicates],
            predicates_defined: vec![0; predicates],
            carry: 0,
            clock,
            copies: Vec::new(),
            commits: [0; 32],
            copies_started: 0,
            bulk: Vec::new(),
            bulk_commits: [0; 32],
            bulk_engine: None,
            constants: None,
            local: (0..locals)
                .map(|_| Region::new(LOCAL_BASE, entry.local_bytes as usize))
                .collect(),
            arrived: 0,
            passed: 0,
            flight: entry
                .has_products
                .then(|| Box::new(Flight::new(entry.registers.data))),
        }
    }

    /// Splits `mask` off a group; the new group's index.
    pub(super) fn split(&mut self, group: usize, mask: u32) -> usize {
        let old = self.groups[group];
        self.groups[group].mask &= !mask;
        self.groups.push(LaneGroup { mask, ..old });
        self.groups.len() - 1
    }

    /// Brings together the lanes of `mask` that wait at the same instruction as `group`. Gives the
    /// group that holds all of them, or makes `group` wait.
    pub(super) fn gather(&mut self, group: usize, mask: u32) -> Option<usize> {
        let needed = mask & self.exists & !self.exited;
        let here = self.groups[group];
        if here.mask == needed {
            return Some(group);
        }
        let meets = |other: &LaneGroup| other.pc == here.pc && other.state == State::Sync(mask);
        let others = self
            .groups
            .iter()
            .filter(|other| meets(other))
            .fold(0, |all, other| all | other.mask);
        if here.mask | others != needed {
            self.groups[group].state = State::Sync(mask);
            return None;
        }
        // `group` goes first so that it survives at a known place.
        self.groups.swap(0, group);
        self.groups[0] = LaneGroup {
            mask: needed,
            state: State::Ready,
            ..here
        };
        let mut index = 0;
        self.groups.retain(|other| {
            index += 1;
            index == 1 || !meets(other)
        });
        Some(0)
    }

    /// Ends the lanes of `mask`, which belong to `group`, and frees those that waited for them.
    pub(super) fn exit(&mut self, group: usize, mask: u32) {
        self.exited |= mask;
        self.groups[group].mask &= !mask;
        if self.groups[group].mask == 0 {
            self.groups.swap_remove(group);
        }
        for index in 0..self.groups.len() {
            if let Some(&LaneGroup {
                pc,
                state: State::Sync(wanted),
                ..
            }) = self.groups.get(index)
            {
                let waiting = self
                    .groups
                    .iter()
                    .filter(|other| other.pc == pc && other.state == State::Sync(wanted))
                    .fold(0, |all, other| all | other.mask);
                // They run the instruction again, and this time they are all there.
                if waiting == wanted & self.exists & !self.exited {
                    self.groups[index].state = State::Ready;
                }
            }
        }
    }

    /// Merges the ready groups that stand where `group` stands; its index afterwards.
    pub(super) fn merge_equal(&mut self, group: usize) -> usize {
        if self.groups.len() == 1 {
            return group;
        }
        let pc = self.groups[group].pc;
        let mut kept = group;
        let mut index = 0;
        while index < self.groups.len() {
            let other = self.groups[index];
            if index != kept && other.pc == pc && other.state == State::Ready {
                self.groups[kept].mask |= other.mask;
                let last = self.groups.len() - 1;
                self.groups.swap_remove(index);
                if kept == last {
                    kept = index;
                }
            } else {
                index += 1;
            }
        }
        kept
    }

    pub(super) fn is_ready(&self) -> bool {
        self.groups.iter().any(|group| group.state == State::Ready)
    }
}
