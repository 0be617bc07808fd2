//! Sets of accesses that somebody knows.

use rustc_hash::FxHashMap;

use super::Record;
use super::chain::Prefix;

/// Chains that are known in part and not copied.
const MOST_PREFIXES: usize = 8;

/// Accesses by who made them and up to when.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    pub(super) warps: FxHashMap<u32, u32>,
    pub(super) threads: FxHashMap<u32, u32>,
    /// And what was released at addresses with many releases.
    pub(super) prefixes: Vec<Prefix>,
}

/// What a thread knows beyond its own CTA, and of what it knows, what a fence made visible to other proxies.
#[derive(Clone, Debug, Default)]
pub(in crate::emu) struct Knowledge {
    pub(super) seen: Known,
    pub(super) fenced: [Known; Observer::COUNT],
}

/// Who else looks at memory than the generic proxy, and needs a fence to see its writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::emu) enum Observer {
    /// The async proxy, shared memory.
    Shared,
    /// The async proxy, device memory.
    Global,
    /// The async proxy, as barriers in shared memory; `fence.mbarrier_init` is enough for these.
    Barriers,
    /// Tensor maps.
    Maps,
    /// Loads by `.nc`, which no fence makes see what the kernel writes.
    Constant,
}

impl Observer {
    pub(super) const COUNT: usize = 5;
}

/// The sets of which [`Knowledge`] consists.
pub(super) const PARTS: usize = 1 + Observer::COUNT;

impl Knowledge {
    pub(in crate::emu) fn join(&mut self, other: &Knowledge) {
        self.seen.join(&other.seen);
        for (own, more) in self.fenced.iter_mut().zip(&other.fenced) {
            own.join(more);
        }
    }

    pub(super) fn part(&self, part: usize) -> &Known {
        match part {
            0 => &self.seen,
            part => &self.fenced[part - 1],
        }
    }

    pub(super) fn part_mut(&mut self, part: usize) -> &mut Known {
        match part {
            0 => &mut self.seen,
            part => &mut self.fenced[part - 1],
        }
    }

    pub(super) fn knows(&self, record: Record) -> bool {
        self.seen.knows(record)
    }

    pub(super) fn know_thread(&mut self, who: u32, time: u32) {
        self.seen.threads.insert(who, time);
    }

    pub(in crate::emu) fn know_warp(&mut self, warp: u32, time: u32) {
        self.seen.warps.insert(warp, time);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.seen.is_empty() && self.fenced.iter().all(Known::is_empty)
    }
}

impl Known {
    pub(super) fn is_empty(&self) -> bool {
        self.warps.is_empty() && self.threads.is_empty() && self.prefixes.is_empty()
    }

    /// Up to when a warp or an agent is known; zero: not at all.
    pub(super) fn warp_time(&self, warp: u32) -> u32 {
        let known = self.warps.get(&warp).copied().unwrap_or(0);
        let prefixes = self.prefixes.iter().map(|prefix| prefix.warp_time(warp));
        prefixes.fold(known, u32::max)
    }

    /// The same without chains.
    pub(super) fn copied(&self) -> Known {
        let mut all = Known {
            warps: self.warps.clone(),
            threads: self.threads.clone(),
            prefixes: Vec::new(),
        };
        self.prefixes
            .iter()
            .for_each(|prefix| prefix.copy(&mut all));
        all
    }

    pub(super) fn join(&mut self, other: &Known) {
        for (map, more) in [
            (&mut self.warps, &other.warps),
            (&mut self.threads, &other.threads),
        ] {
            for (&key, &time) in more {
                let known = map.entry(key).or_default();
                *known = time.max(*known);
            }
        }
        for prefix in &other.prefixes {
            if !self.prefixes.iter_mut().any(|own| own.extend(prefix)) {
                self.prefixes.push(prefix.clone());
            }
        }
        if self.prefixes.len() > MOST_PREFIXES {
            *self = self.copied();
        }
    }

    pub(super) fn knows(&self, record: Record) -> bool {
        self.warps
            .get(&(record.who >> 5))
            .is_some_and(|&time| record.time <= time)
            || self
                .threads
                .get(&record.who)
                .is_some_and(|&time| record.time <= time)
            || self.prefixes.iter().any(|prefix| prefix.knows(record))
    }
}
