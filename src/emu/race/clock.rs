//! Who knows whom up to when, and how synchronisation spreads it.

use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::super::inst::Scope;
use super::agent::FIRST_AGENT;
use super::knowledge::{Knowledge, Known, Observer};
use super::{Record, lanes};

/// What a lane acquired or is about to release by itself.
#[derive(Clone, Debug, Default)]
pub(super) struct LaneClock {
    /// Taken over by acquiring accesses of this lane.
    acquired: Option<Rc<Knowledge>>,
    /// What was acquired last: a lane that spins meets the same again and again.
    last: Option<Rc<Knowledge>>,
    /// Met by relaxed accesses: acquired at the next fence.
    pub(super) met: Option<Rc<Knowledge>>,
    /// What later relaxed writes release, since the last fence, and its scope.
    pub(super) fenced: Option<(Rc<Knowledge>, Scope)>,
    /// Initialisations of barriers that later relaxed arrivals at the cluster's barrier release.
    pub(super) initialised: Option<Box<Knowledge>>,
}

/// What a warp knows.
#[derive(Clone, Debug)]
pub(in crate::emu) struct WarpClock {
    /// Number of the warp in the grid.
    pub(in crate::emu) warp: u32,
    /// Number of the CTA's first warp.
    pub(super) first: u32,
    /// The same of all CTAs of the cluster.
    cluster: Rc<[u32]>,
    /// For each warp of the CTA: the time up to which its accesses are known. The own entry is
    /// the last time that the lanes were ordered among each other.
    cta: Vec<u32>,
    others: Knowledge,
    /// Pairs of lanes ordered by a partial `bar.warp.sync`, as `[later][earlier]`.
    pairs: Option<Box<[[u32; 32]; 32]>>,
    pub(super) lanes: FxHashMap<u32, LaneClock>,
}

/// What the warps that arrived at a barrier know together.
#[derive(Clone, Debug, Default)]
pub(in crate::emu) struct Joined {
    cta: Vec<u32>,
    others: Knowledge,
}

impl WarpClock {
    /// A warp of a CTA with so many, by the number of its first; `cluster` has these numbers of the CTAs of the cluster.
    pub(in crate::emu) fn new(first: u32, index: u32, warps: u32, cluster: Rc<[u32]>) -> WarpClock {
        WarpClock {
            warp: first + index,
            first,
            cluster,
            cta: vec![0; warps as usize],
            others: Knowledge::default(),
            pairs: None,
            lanes: FxHashMap::default(),
        }
    }

    #[inline]
    pub(super) fn knows_record(&self, lane: u32, record: Record) -> bool {
        if record.time == 0 || record.who == self.warp << 5 | lane {
            return true;
        }
        let warp = record.who >> 5;
        let index = warp.wrapping_sub(self.first) as usize;
        match self.cta.get(index) {
            Some(&time) if record.time <= time => return true,
            _ => {}
        }
        self.knows_by_more(lane, record)
    }

    /// The uncommon ways to know: partial warp barriers and atomics.
    #[cold]
    fn knows_by_more(&self, lane: u32, record: Record) -> bool {
        if record.who >> 5 == self.warp
            && let Some(pairs) = &self.pairs
            && record.time <= pairs[lane as usize][(record.who & 31) as usize]
        {
            return true;
        }
        if self.others.knows(record) {
            return true;
        }
        self.lanes
            .get(&lane)
            .and_then(|clock| clock.acquired.as_ref())
            .is_some_and(|acquired| acquired.knows(record))
    }

    /// Whether a warp is one of the own CTA, or of what else a scope has.
    pub(super) fn is_within(&self, warp: u32, scope: Scope) -> bool {
        let is_of = |first: u32| (warp.wrapping_sub(first) as usize) < self.cta.len();
        match scope {
            Scope::Cta => is_of(self.first),
            Scope::Cluster => self.cluster.iter().any(|&first| is_of(first)),
            Scope::Device => true,
        }
    }

    /// Whether a lane knows other things than its warp.
    pub(super) fn knows_apart(&self, lane: u32) -> bool {
        self.pairs.is_some() || self.lanes.contains_key(&lane)
    }

    /// Whether a fence made a write known to the lane visible to another proxy.
    pub(in crate::emu) fn sees(&self, lane: u32, view: Observer, record: Record) -> bool {
        let acquired = self
            .lanes
            .get(&lane)
            .and_then(|clock| clock.acquired.as_ref());
        let fenced = |knowledge: &Knowledge| knowledge.fenced[view as usize].knows(record);
        fenced(&self.others) || acquired.is_some_and(|acquired| fenced(acquired))
    }

    /// The lanes of `mask` make what they know visible to other proxies; `all` are those that the warp still has.
    pub(in crate::emu) fn fence_views(
        &mut self,
        mask: u32,
        all: u32,
        views: &[Observer],
        now: &mut u32,
    ) {
        if mask == all {
            let seen = self.release(mask, now).seen;
            for &view in views {
                self.others.fenced[view as usize].join(&seen);
            }
            return;
        }
        for lane in lanes(mask) {
            let seen = self.snapshot(lane, *now).seen;
            let acquired = self
                .lanes
                .entry(lane)
                .or_default()
                .acquired
                .get_or_insert_default();
            for &view in views {
                Rc::make_mut(acquired).fenced[view as usize].join(&seen);
            }
        }
        *now += 1;
    }

    /// The lanes of `mask` take over what was released.
    pub(in crate::emu) fn acquire_all(&mut self, mask: u32, all: u32, more: &Rc<Knowledge>) {
        if mask != all {
            for lane in lanes(mask) {
                self.acquire(lane, more);
            }
            return;
        }
        for (index, time) in self.cta.iter_mut().enumerate() {
            *time = more.seen.warp_time(self.first + index as u32).max(*time);
        }
        self.others.join(more);
    }

    /// The lanes of `mask` know an agent up to a time.
    pub(in crate::emu) fn learn(&mut self, mask: u32, all: u32, agent: u32, time: u32) {
        let raise = |knowledge: &mut Knowledge| {
            let known = knowledge.seen.warps.entry(agent).or_default();
            *known = time.max(*known);
        };
        if mask == all {
            return raise(&mut self.others);
        }
        for lane in lanes(mask) {
            let acquired = self
                .lanes
                .entry(lane)
                .or_default()
                .acquired
                .get_or_insert_default();
            raise(Rc::make_mut(acquired));
        }
    }

    /// Up to when a lane knows an agent; zero: not at all.
    pub(in crate::emu) fn known_time(&self, lane: u32, agent: u32) -> u32 {
        let of = |knowledge: &Knowledge| knowledge.seen.warp_time(agent);
        let acquired = self
            .lanes
            .get(&lane)
            .and_then(|clock| clock.acquired.as_ref());
        let acquired = acquired.map_or(0, |acquired| of(acquired));
        of(&self.others).max(acquired)
    }

    /// Everything that a lane knows, its own accesses up to `now` included, in terms of the grid.
    pub(super) fn snapshot(&self, lane: u32, now: u32) -> Knowledge {
        let mut all = self.others.clone();
        for (index, &time) in self.cta.iter().enumerate() {
            let known = all.seen.warps.entry(self.first + index as u32).or_default();
            *known = time.max(*known);
        }
        if let Some(pairs) = &self.pairs {
            for (other, &time) in pairs[lane as usize].iter().enumerate() {
                let known = all
                    .seen
                    .threads
                    .entry(self.warp << 5 | other as u32)
                    .or_default();
                *known = time.max(*known);
            }
        }
        if let Some(acquired) = self
            .lanes
            .get(&lane)
            .and_then(|clock| clock.acquired.as_ref())
        {
            all.join(acquired);
        }
        all.seen.threads.insert(self.warp << 5 | lane, now);
        all
    }

    /// `bar.warp.sync`: the lanes of `mask` know each other, and what each acquired.
    pub(in crate::emu) fn sync_lanes(&mut self, mask: u32, all: u32, now: &mut u32) {
        if mask == all {
            self.sync_warp(*now);
        } else {
            let pairs = self.pairs.get_or_insert_with(|| Box::new([[0; 32]; 32]));
            for later in lanes(mask) {
                for earlier in lanes(mask) {
                    pairs[later as usize][earlier as usize] = *now;
                }
            }
            let mut acquired = Knowledge::default();
            let mut any = false;
            for lane in lanes(mask) {
                if let Some(more) = self
                    .lanes
                    .get(&lane)
                    .and_then(|clock| clock.acquired.as_ref())
                {
                    acquired.join(more);
                    any = true;
                }
            }
            if any {
                let acquired = Rc::new(acquired);
                for lane in lanes(mask) {
                    self.lanes.entry(lane).or_default().acquired = Some(Rc::clone(&acquired));
                }
            }
        }
        *now += 1;
    }

    fn sync_warp(&mut self, now: u32) {
        let own = (self.warp - self.first) as usize;
        self.cta[own] = now;
        self.pairs = None;
        for (_, clock) in self.lanes.iter_mut() {
            if let Some(acquired) = clock.acquired.take() {
                self.others.join(&acquired);
            }
        }
    }

    /// Arrives at a CTA barrier.
    pub(in crate::emu) fn arrive(&mut self, joined: &mut Joined, now: &mut u32) {
        self.sync_warp(*now);
        *now += 1;
        joined.cta.resize(self.cta.len(), 0);
        for (all, &own) in joined.cta.iter_mut().zip(&self.cta) {
            *all = own.max(*all);
        }
        joined.others.join(&self.others);
    }

    /// Leaves a CTA barrier that is complete.
    pub(in crate::emu) fn leave(&mut self, joined: &Joined) {
        for (own, &all) in self.cta.iter_mut().zip(&joined.cta) {
            *own = all.max(*own);
        }
        if !joined.others.is_empty() {
            self.others.join(&joined.others);
        }
    }

    /// A fence of one lane, which orders with threads of its scope alone.
    pub(in crate::emu) fn fence(&mut self, lane: u32, scope: Scope, now: &mut u32) {
        let met = self.lanes.get_mut(&lane);
        if let Some(met) = met.and_then(|clock| match scope {
            Scope::Device => clock.met.take(),
            _ => clock.met.clone(),
        }) {
            match scope {
                Scope::Device => self.acquire(lane, &met),
                _ => self.acquire(lane, &Rc::new(self.within(&met, scope))),
            }
        }
        let snapshot = self.snapshot(lane, *now);
        self.lanes.entry(lane).or_default().fenced = Some((Rc::new(snapshot), scope));
        *now += 1;
    }

    /// What knowledge says of warps within a scope, and of agents.
    pub(super) fn within(&self, all: &Knowledge, scope: Scope) -> Knowledge {
        let is_own = |warp: u32| warp >= FIRST_AGENT || self.is_within(warp, scope);
        let part = |known: &Known| {
            let mut known = known.copied();
            known.warps.retain(|warp, _| is_own(*warp));
            known.threads.retain(|who, _| is_own(*who >> 5));
            known
        };
        Knowledge {
            seen: part(&all.seen),
            fenced: [0, 1, 2, 3, 4].map(|view| part(&all.fenced[view])),
        }
    }

    pub(super) fn acquire(&mut self, lane: u32, more: &Rc<Knowledge>) {
        let clock = self.lanes.entry(lane).or_default();
        if clock
            .last
            .as_ref()
            .is_some_and(|last| Rc::ptr_eq(last, more))
        {
            return;
        }
        clock.last = Some(Rc::clone(more));
        match &mut clock.acquired {
            Some(acquired) => Rc::make_mut(acquired).join(more),
            none => *none = Some(Rc::clone(more)),
        }
    }
}
