//! The registers of a CTA, as `setmaxnreg` moves them between groups of four warps.
//!
//! A thread starts with what `.maxnreg` says, or with the equal share that the most threads of the entry leave it, in eights.
//! What a group gives back goes into the CTA's pool, from which others take; the pool starts empty.

/// Registers of a multiprocessor, and most of a thread.
const FILE: u32 = 65536;
const MOST: u32 = 256;
/// Most threads of a CTA.
const THREADS: u64 = 1024;

/// One change that a group of warps made, or is making.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Change {
    /// Index of the instruction.
    pub(super) pc: u32,
    pub(super) line: u32,
    /// `.inc`, else `.dec`.
    pub(super) more: bool,
    /// Registers of a thread afterwards.
    pub(super) count: u32,
}

/// What became of a warp's change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Done,
    /// The pool has too few.
    Waits,
    Wrong(String),
}

/// The registers of a CTA.
#[derive(Debug, Default)]
pub(super) struct Budget {
    /// Registers that nobody holds.
    pool: u32,
    /// Registers of a thread of each warp.
    held: Vec<u32>,
    /// What each warp did, in order.
    changes: Vec<Vec<Change>>,
}

impl Budget {
    /// `most` threads are the most that a CTA may have, of which `ctas` are resident together at least.
    pub(super) fn new(warps: u32, most: u64, ctas: u32, limit: Option<u32>) -> Budget {
        let threads = most.clamp(1, THREADS).next_multiple_of(32) * u64::from(ctas);
        let share = (u64::from(FILE) / threads.max(1)) as u32;
        let start = limit.unwrap_or(share).min(MOST) / 8 * 8;
        Budget {
            pool: 0,
            held: vec![start; warps as usize],
            changes: vec![Vec::new(); warps as usize],
        }
    }

    /// Registers in the pool.
    pub(super) fn pool(&self) -> u32 {
        self.pool
    }

    /// A warp executes a change; it does so again after waiting.
    pub(super) fn change(&mut self, warp: u32, change: Change) -> Outcome {
        let warp = warp as usize;
        let group = warp / 4 * 4..warp / 4 * 4 + 4;
        if group.end > self.held.len() {
            let first = group.start;
            return Outcome::Wrong(format!("warps {first} and up are no whole group of four"));
        }
        let own = self.changes[warp].len();
        for other in group {
            let theirs = &self.changes[other];
            // One that changes nothing needs no order.
            if theirs.len() < own && change.count != self.held[warp] {
                return Outcome::Wrong(format!(
                    "warp {other} of the group has not executed the one of line {} before",
                    self.changes[warp][own - 1].line
                ));
            }
            if let Some(&they) = theirs.get(own)
                && they != change
            {
                return Outcome::Wrong(format!(
                    "warp {other} of the group executed the one of line {} in its place",
                    they.line
                ));
            }
        }
        let (held, count) = (self.held[warp], change.count);
        match change.more {
            false if count > held => {
                return Outcome::Wrong(format!("a thread has {held}, which is less already"));
            }
            true if count < held => {
                return Outcome::Wrong(format!("a thread has {held}, which is more already"));
            }
            false => self.pool += (held - count) * 32,
            true => match self.pool.checked_sub((count - held) * 32) {
                Some(rest) => self.pool = rest,
                None => return Outcome::Waits,
            },
        }
        self.held[warp] = count;
        self.changes[warp].push(change);
        Outcome::Done
    }

    /// A change that not all warps of its group executed, and the first warp that did not.
    pub(super) fn unfinished(&self) -> Option<(u32, Change)> {
        self.changes
            .chunks(4)
            .enumerate()
            .find_map(|(group, warps)| {
                let least = warps.iter().map(Vec::len).min()?;
                let missing = warps.iter().position(|changes| changes.len() == least)?;
                let change = warps.iter().find_map(|changes| changes.get(least))?;
                Some(((group * 4 + missing) as u32, *change))
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_what_assemblers_give() {
        let start = |most, ctas, limit| Budget::new(4, most, ctas, limit).held[0];
        assert_eq!(start(384, 1, None), 168);
        assert_eq!(start(640, 1, None), 96);
        assert_eq!(start(256, 2, None), 128);
        assert_eq!(start(128, 1, None), 256);
        assert_eq!(start(128, 1, Some(100)), 96);
    }
}
