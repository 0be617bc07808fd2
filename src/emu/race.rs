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
//!   it takes it over. A fence turns the relaxed accesses behind it into releasing ones and those
//!   before it into acquiring ones.
//!
//! Knowledge is kept for each warp, plus for each lane what it acquired by itself; a barrier or a
//! full `bar.warp.sync` spreads that to the warp. Approximations, all in favour of silence: only
//! two readers of a byte are remembered; a barrier that a part of a warp reaches alone counts for
//! the whole warp; scopes of atomics are ignored, and so are proxies.

use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::error::AccessKind;

/// One access: who, when, where in the text. `time` zero means none.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Record {
    /// Warp number in the grid, times 32, plus lane.
    pub(super) who: u32,
    time: u32,
    /// Line of the text, with the top bit set for strong accesses.
    line: u32,
}

const STRONG: u32 = 1 << 31;

impl Record {
    pub(super) fn line(self) -> u32 {
        self.line & !STRONG
    }

    fn strong(self) -> bool {
        self.line & STRONG != 0
    }
}

/// The memory of one granule.
#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    write: Record,
    reads: [Record; 2],
}

/// Bytes of a page of the shadow.
const PAGE: usize = 512;

/// The accesses to one page, by granules of four bytes until a smaller access comes.
#[derive(Clone, Debug)]
struct Page {
    granule_log2: u32,
    cells: Vec<Cell>,
}

/// The accesses to one region.
#[derive(Clone, Debug, Default)]
pub(super) struct Shadow {
    pages: Vec<Option<Box<Page>>>,
}

/// What a thread knows beyond its own CTA.
#[derive(Clone, Debug, Default)]
pub(super) struct Knowledge {
    warps: FxHashMap<u32, u32>,
    threads: FxHashMap<u32, u32>,
}

impl Knowledge {
    fn join(&mut self, other: &Knowledge) {
        for (map, more) in [
            (&mut self.warps, &other.warps),
            (&mut self.threads, &other.threads),
        ] {
            for (&key, &time) in more {
                let known = map.entry(key).or_default();
                *known = time.max(*known);
            }
        }
    }

    fn knows(&self, record: Record) -> bool {
        self.warps
            .get(&(record.who >> 5))
            .is_some_and(|&time| record.time <= time)
            || self
                .threads
                .get(&record.who)
                .is_some_and(|&time| record.time <= time)
    }
}

/// What a lane acquired or is about to release by itself.
#[derive(Clone, Debug, Default)]
struct LaneClock {
    /// Taken over by acquiring accesses of this lane.
    acquired: Option<Rc<Knowledge>>,
    /// Met by relaxed accesses: acquired at the next fence.
    met: Option<Rc<Knowledge>>,
    /// What later relaxed writes release, since the last fence.
    fenced: Option<Rc<Knowledge>>,
}

/// What a warp knows.
#[derive(Clone, Debug)]
pub(super) struct WarpClock {
    /// Number of the warp in the grid.
    pub(super) warp: u32,
    /// Number of the CTA's first warp.
    first: u32,
    /// For each warp of the CTA: the time up to which its accesses are known. The own entry is
    /// the last time that the lanes were ordered among each other.
    cta: Vec<u32>,
    others: Knowledge,
    /// Pairs of lanes ordered by a partial `bar.warp.sync`, as `[later][earlier]`.
    pairs: Option<Box<[[u32; 32]; 32]>>,
    lanes: FxHashMap<u32, LaneClock>,
}

/// What the warps that arrived at a barrier know together.
#[derive(Clone, Debug, Default)]
pub(super) struct Joined {
    cta: Vec<u32>,
    others: Knowledge,
}

impl WarpClock {
    pub(super) fn new(first: u32, index: u32, warps: u32) -> WarpClock {
        WarpClock {
            warp: first + index,
            first,
            cta: vec![0; warps as usize],
            others: Knowledge::default(),
            pairs: None,
            lanes: FxHashMap::default(),
        }
    }

    #[inline]
    fn knows(&self, lane: u32, record: Record) -> bool {
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

    /// Everything that a lane knows, its own accesses up to `now` included, in terms of the grid.
    fn snapshot(&self, lane: u32, now: u32) -> Knowledge {
        let mut all = self.others.clone();
        for (index, &time) in self.cta.iter().enumerate() {
            let known = all.warps.entry(self.first + index as u32).or_default();
            *known = time.max(*known);
        }
        if let Some(pairs) = &self.pairs {
            for (other, &time) in pairs[lane as usize].iter().enumerate() {
                let known = all
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
        all.threads.insert(self.warp << 5 | lane, now);
        all
    }

    /// `bar.warp.sync`: the lanes of `mask` know each other, and what each acquired.
    pub(super) fn sync_lanes(&mut self, mask: u32, all: u32, now: &mut u32) {
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
    pub(super) fn arrive(&mut self, joined: &mut Joined, now: &mut u32) {
        self.sync_warp(*now);
        *now += 1;
        joined.cta.resize(self.cta.len(), 0);
        for (all, &own) in joined.cta.iter_mut().zip(&self.cta) {
            *all = own.max(*all);
        }
        joined.others.join(&self.others);
    }

    /// Leaves a CTA barrier that is complete.
    pub(super) fn leave(&mut self, joined: &Joined) {
        for (own, &all) in self.cta.iter_mut().zip(&joined.cta) {
            *own = all.max(*own);
        }
        if !joined.others.warps.is_empty() || !joined.others.threads.is_empty() {
            self.others.join(&joined.others);
        }
    }

    /// A fence of one lane.
    pub(super) fn fence(&mut self, lane: u32, now: &mut u32) {
        if let Some(met) = self.lanes.get_mut(&lane).and_then(|clock| clock.met.take()) {
            self.acquire(lane, &met);
        }
        let snapshot = self.snapshot(lane, *now);
        self.lanes.entry(lane).or_default().fenced = Some(Rc::new(snapshot));
        *now += 1;
    }

    fn acquire(&mut self, lane: u32, more: &Rc<Knowledge>) {
        let clock = self.lanes.entry(lane).or_default();
        match &mut clock.acquired {
            Some(acquired) => Rc::make_mut(acquired).join(more),
            none => *none = Some(Rc::clone(more)),
        }
    }
}

/// What releasing accesses left at addresses.
#[derive(Clone, Debug, Default)]
pub(super) struct Releases {
    at: FxHashMap<u64, Rc<Knowledge>>,
}

/// How a strong access takes part in synchronisation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Strong {
    pub(super) read: bool,
    pub(super) write: bool,
    pub(super) acquire: bool,
    pub(super) release: bool,
}

impl Releases {
    /// A strong access of one lane to `address`.
    pub(super) fn access(
        &mut self,
        clock: &mut WarpClock,
        lane: u32,
        address: u64,
        strong: Strong,
        now: &mut u32,
    ) {
        if strong.read
            && let Some(left) = self.at.get(&address)
        {
            let left = Rc::clone(left);
            if strong.acquire {
                clock.acquire(lane, &left);
            } else {
                let met = &mut clock.lanes.entry(lane).or_default().met;
                match met {
                    Some(met) => Rc::make_mut(met).join(&left),
                    none => *none = Some(left),
                }
            }
        }
        if !strong.write {
            return;
        }
        let released = if strong.release {
            let snapshot = clock.snapshot(lane, *now);
            *now += 1;
            Some(Rc::new(snapshot))
        } else {
            clock
                .lanes
                .get(&lane)
                .and_then(|clock| clock.fenced.clone())
        };
        match (released, self.at.get_mut(&address)) {
            // A read-modify-write continues what was released before it.
            (Some(released), Some(left)) if strong.read => Rc::make_mut(left).join(&released),
            (Some(released), _) => {
                self.at.insert(address, released);
            }
            (None, Some(_)) if !strong.read => {
                self.at.remove(&address);
            }
            (None, _) => {}
        }
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

/// One access to be checked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Access {
    pub(super) lane: u32,
    pub(super) line: u32,
    pub(super) read: bool,
    pub(super) write: bool,
    pub(super) strong: bool,
    /// A write that leaves the bytes as they are, which no other write can tell.
    pub(super) same_value: bool,
}

/// An earlier access that is not ordered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Conflict {
    pub(super) other: Record,
    pub(super) kind: AccessKind,
    pub(super) other_kind: AccessKind,
    /// Offset of the byte.
    pub(super) offset: usize,
}

impl Shadow {
    pub(super) fn new(bytes: usize) -> Shadow {
        Shadow {
            pages: vec![None; bytes.div_ceil(PAGE)],
        }
    }

    /// Checks an access to `bytes` bytes, aligned to their number, and remembers it.
    #[inline]
    pub(super) fn access(
        &mut self,
        clock: &WarpClock,
        now: u32,
        offset: usize,
        bytes: usize,
        access: Access,
    ) -> Option<Conflict> {
        let page = self.pages[offset / PAGE].get_or_insert_with(|| {
            let small = bytes.trailing_zeros().min(2);
            Box::new(Page {
                granule_log2: small,
                cells: vec![Cell::default(); PAGE >> small],
            })
        });
        if bytes < 1 << page.granule_log2 {
            page.refine(bytes.trailing_zeros());
        }
        let in_page = offset % PAGE;
        let log2 = page.granule_log2;
        let me = Record {
            who: clock.warp << 5 | access.lane,
            time: now,
            line: access.line | if access.strong { STRONG } else { 0 },
        };
        let range = in_page >> log2..(in_page + bytes).min(PAGE) >> log2;
        for (index, cell) in page.cells[range.clone()].iter_mut().enumerate() {
            if let Some((other, other_kind)) = cell.access(clock, me, access) {
                let kind = if access.strong {
                    AccessKind::Atomic
                } else if access.write {
                    AccessKind::Write
                } else {
                    AccessKind::Read
                };
                let offset = offset - in_page + ((range.start + index) << log2);
                return Some(Conflict {
                    other,
                    kind,
                    other_kind,
                    offset,
                });
            }
        }
        None
    }
}

impl Page {
    /// Goes over to smaller granules.
    fn refine(&mut self, log2: u32) {
        let copies = 1 << (self.granule_log2 - log2);
        self.cells = self
            .cells
            .iter()
            .flat_map(|&cell| std::iter::repeat_n(cell, copies))
            .collect();
        self.granule_log2 = log2;
    }
}

fn kind(record: Record, plain: AccessKind) -> AccessKind {
    if record.strong() {
        AccessKind::Atomic
    } else {
        plain
    }
}

impl Cell {
    #[inline]
    fn access(
        &mut self,
        clock: &WarpClock,
        me: Record,
        access: Access,
    ) -> Option<(Record, AccessKind)> {
        let lane = access.lane;
        let harmless = |other: Record| other.strong() && access.strong;
        if (access.read || !access.same_value)
            && !harmless(self.write)
            && !clock.knows(lane, self.write)
        {
            return Some((self.write, kind(self.write, AccessKind::Write)));
        }
        if access.write {
            for read in self.reads {
                if !clock.knows(lane, read) && !harmless(read) {
                    return Some((read, kind(read, AccessKind::Read)));
                }
            }
            self.write = me;
            self.reads = [Record::default(); 2];
        } else {
            let [first, second] = self.reads;
            // A reader that is ordered before this one adds nothing: who is ordered behind this
            // one is ordered behind it too.
            if first.time == 0 || clock.knows(lane, first) {
                self.reads[0] = me;
            } else if second.time == 0 || clock.knows(lane, second) {
                self.reads[1] = me;
            } else {
                self.reads = [me, first];
            }
        }
        None
    }
}
