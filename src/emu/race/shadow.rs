//! The last accesses to every byte.

use std::ops::Range;

use super::agent::{Party, UNDER_WAY};
use super::clock::WarpClock;
use super::{Record, STRONG};
use crate::emu::error::AccessKind;

/// The memory of one granule.
#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    write: Record,
    reads: [Record; 2],
}

/// Bytes of a page of the shadow.
const PAGE: usize = 512;

/// Largest granule: the widest access of a lane.
const LARGEST_LOG2: u32 = 4;

/// The accesses to one page, by granules as large as the first access until a smaller one comes.
#[derive(Clone, Debug)]
struct Page {
    granule_log2: u32,
    cells: Vec<Cell>,
}

/// The accesses to one region.
#[derive(Clone, Debug, Default)]
pub(in crate::emu) struct Shadow {
    pages: Vec<Option<Box<Page>>>,
    /// Reads under way of bytes of which two others are, that no cell has room for: none may be forgotten before its wait.
    crowd: Vec<(Range<usize>, Record)>,
}

/// One access to be checked.
#[derive(Clone, Copy, Debug)]
pub(in crate::emu) struct CheckedAccess {
    pub(in crate::emu) lane: u32,
    pub(in crate::emu) line: u32,
    pub(in crate::emu) read: bool,
    pub(in crate::emu) write: bool,
    pub(in crate::emu) strong: bool,
    /// A write that leaves the bytes as they are, which no other write can tell.
    pub(in crate::emu) same_value: bool,
}

/// An earlier access that is not ordered.
#[derive(Clone, Copy, Debug)]
pub(in crate::emu) struct Conflict {
    pub(in crate::emu) other: Record,
    pub(in crate::emu) kind: AccessKind,
    pub(in crate::emu) other_kind: AccessKind,
    /// Offset of the byte.
    pub(in crate::emu) offset: usize,
}

impl Shadow {
    pub(in crate::emu) fn new(bytes: usize) -> Shadow {
        Shadow {
            pages: vec![None; bytes.div_ceil(PAGE)],
            crowd: Vec::new(),
        }
    }

    /// Checks an access to `bytes` bytes, aligned to their number, and remembers it.
    #[inline]
    pub(in crate::emu) fn access(
        &mut self,
        clock: &impl Party,
        now: u32,
        offset: usize,
        bytes: usize,
        access: CheckedAccess,
    ) -> Option<Conflict> {
        let page = self.pages[offset / PAGE].get_or_insert_with(|| {
            let small = bytes.trailing_zeros().min(LARGEST_LOG2);
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
            who: clock.who(access.lane),
            time: now,
            line: access.line | if access.strong { STRONG } else { 0 },
        };
        let range = in_page >> log2..(in_page + bytes).min(PAGE) >> log2;
        let first = range.start;
        // Mostly one granule.
        let met = match &mut page.cells[range] {
            [cell] => cell.access(clock, me, access).map(|met| (first, met)),
            cells => {
                let mut cells = (first..).zip(cells);
                cells.find_map(|(at, cell)| Some((at, cell.access(clock, me, access)?)))
            }
        };
        if let Some(met) = met {
            return self.meets(clock, me, access, offset..offset + bytes, met);
        }
        if access.write && !self.crowd.is_empty() {
            return overwritten(&self.crowd, me, access, offset..offset + bytes);
        }
        None
    }

    /// The rest of an access that met somebody in a cell of its page, which is rare: kept out of what each access does.
    #[cold]
    #[inline(never)]
    fn meets(
        &mut self,
        clock: &impl Party,
        me: Record,
        access: CheckedAccess,
        place: Range<usize>,
        (mut index, mut met): (usize, (Record, AccessKind)),
    ) -> Option<Conflict> {
        let page = self.pages[place.start / PAGE].as_mut()?;
        let log2 = page.granule_log2;
        let start = place.start - place.start % PAGE;
        let end = (place.end - start).min(PAGE) >> log2;
        loop {
            let at = start + (index << log2);
            let found = meet(&mut self.crowd, met, me, access, at..at + (1 << log2));
            if found.is_some() {
                return found;
            }
            let rest = page.cells[index + 1..end].iter_mut().enumerate();
            let next = rest.map(|(more, cell)| (index + 1 + more, cell.access(clock, me, access)));
            match next.filter_map(|(at, met)| Some((at, met?))).next() {
                Some(next) => (index, met) = next,
                None => break,
            }
        }
        match access.write {
            true => overwritten(&self.crowd, me, access, place),
            false => None,
        }
    }

    /// As [`Shadow::access`], of any number of bytes at any place.
    pub(in crate::emu) fn access_range(
        &mut self,
        clock: &impl Party,
        now: u32,
        offset: usize,
        bytes: usize,
        access: CheckedAccess,
    ) -> Option<Conflict> {
        pieces(offset, bytes).find_map(|(at, size)| self.access(clock, now, at, size, access))
    }

    /// An access that none of these warps knows.
    pub(in crate::emu) fn unknown(&self, clocks: &[&WarpClock]) -> Option<Record> {
        let knows = |record: Record| {
            let mut all = clocks.iter();
            all.any(|clock| (0..32).any(|lane| clock.knows_record(lane, record)))
        };
        let pages = self.pages.iter().flatten();
        let cells = pages.flat_map(|page| &page.cells);
        let mut last = Record::default();
        let mut records = cells.flat_map(|cell| [cell.write, cell.reads[0], cell.reads[1]]);
        records.find(|&record| {
            let is_new = (record.who, record.time) != (last.who, last.time);
            last = record;
            record.time != 0 && is_new && !knows(record)
        })
    }

    /// The accesses under way of one lane of an agent to a range happened.
    pub(in crate::emu) fn settle(&mut self, offset: usize, bytes: usize, settled: Settled) {
        let settle = |record: &mut Record| {
            if record.who == settled.who && record.time == UNDER_WAY {
                record.who = settled.as_who;
                record.time = settled.time;
            }
        };
        self.each_cell(offset, bytes, |cell| {
            settle(&mut cell.write);
            cell.reads.iter_mut().for_each(settle);
        });
        if self.crowd.is_empty() {
            return;
        }
        // What is over finds a place among the readers like any other read.
        let is_own = |(range, read): &(Range<usize>, Record)| {
            read.who == settled.who && offset <= range.start
        };
        let (over, rest) = std::mem::take(&mut self.crowd)
            .into_iter()
            .partition(is_own);
        self.crowd = rest;
        for (range, mut read) in over {
            settle(&mut read);
            self.each_cell(range.start, range.len(), |cell| {
                let [first, second] = cell.reads;
                if !second.is_under_way() {
                    cell.reads = [read, first];
                } else if !first.is_under_way() {
                    cell.reads[0] = read;
                }
            });
        }
    }

    /// Does something to what is remembered of each byte of a range.
    fn each_cell(&mut self, offset: usize, bytes: usize, mut then: impl FnMut(&mut Cell)) {
        for (at, size) in pieces(offset, bytes) {
            let Some(page) = &mut self.pages[at / PAGE] else {
                continue;
            };
            let log2 = page.granule_log2;
            let first = (at % PAGE) >> log2;
            let last = (at % PAGE + size - 1) >> log2;
            page.cells[first..=last].iter_mut().for_each(&mut then);
        }
    }
}

/// Accesses under way that happened: whose they were, whose they are now, and when that was.
#[derive(Clone, Copy, Debug)]
pub(in crate::emu) struct Settled {
    pub(in crate::emu) who: u32,
    pub(in crate::emu) as_who: u32,
    pub(in crate::emu) time: u32,
}

/// A range in pieces inside of pages, each aligned to the largest power of two that divides its size, up to a granule.
fn pieces(offset: usize, bytes: usize) -> impl Iterator<Item = (usize, usize)> {
    let end = offset + bytes;
    let mut at = offset;
    std::iter::from_fn(move || {
        let rest = (end - at).min(PAGE - at % PAGE);
        if rest == 0 {
            return None;
        }
        let largest = 1 << LARGEST_LOG2;
        let aligned = 1 << at.trailing_zeros().min(LARGEST_LOG2);
        let size = if aligned == largest && rest >= largest {
            rest / largest * largest
        } else {
            aligned.min(1 << rest.ilog2())
        };
        let piece = (at, size);
        at += size;
        Some(piece)
    })
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

/// What comes of meeting somebody.
fn meet(
    crowd: &mut Vec<(Range<usize>, Record)>,
    (other, kind): (Record, AccessKind),
    me: Record,
    access: CheckedAccess,
    place: Range<usize>,
) -> Option<Conflict> {
    if other != me {
        return Some(conflict(access, other, kind, place.start));
    }
    // The warps of a group each begin the reads of their product.
    let is_own = |(range, read): &&mut (Range<usize>, Record)| {
        read.who == me.who && range.start <= place.start && place.start <= range.end
    };
    match crowd.iter_mut().find(is_own) {
        Some((range, _)) => range.end = range.end.max(place.end),
        None => crowd.push((place, me)),
    }
    None
}

/// The read under way, of somebody else, of bytes that are written.
#[cold]
#[inline(never)]
fn overwritten(
    crowd: &[(Range<usize>, Record)],
    me: Record,
    access: CheckedAccess,
    place: Range<usize>,
) -> Option<Conflict> {
    let mut crowd = crowd.iter();
    let (range, read) = crowd.find(|(range, read)| {
        range.start < place.end && place.start < range.end && read.who != me.who
    })?;
    let offset = place.start.max(range.start);
    Some(conflict(access, *read, AccessKind::Read, offset))
}

fn conflict(
    access: CheckedAccess,
    other: Record,
    other_kind: AccessKind,
    offset: usize,
) -> Conflict {
    let kind = if access.strong {
        AccessKind::Atomic
    } else if access.write {
        AccessKind::Write
    } else {
        AccessKind::Read
    };
    Conflict {
        other,
        kind,
        other_kind,
        offset,
    }
}

impl Cell {
    /// An access that nothing orders before this one; this one itself if two reads under way leave no room for it.
    #[inline]
    fn access(
        &mut self,
        clock: &impl Party,
        me: Record,
        access: CheckedAccess,
    ) -> Option<(Record, AccessKind)> {
        let lane = access.lane;
        let harmless = |other: Record| {
            let both = || other.scope().min(me.scope());
            other.strong() && access.strong && clock.shares(other, both())
        };
        if (access.read || !access.same_value)
            && !harmless(self.write)
            && !clock.knows(lane, self.write, true)
        {
            return Some((self.write, kind(self.write, AccessKind::Write)));
        }
        if access.write {
            for read in self.reads {
                if !clock.knows(lane, read, false) && !harmless(read) {
                    return Some((read, kind(read, AccessKind::Read)));
                }
            }
            self.write = me;
            self.reads = [Record::default(); 2];
        } else {
            let [first, second] = self.reads;
            // A reader that is ordered before this one adds nothing: who is ordered behind this
            // one is ordered behind it too.
            if first.time == 0 || clock.knows(lane, first, false) {
                self.reads[0] = me;
            } else if second.time == 0 || clock.knows(lane, second, false) {
                self.reads[1] = me;
            } else if !second.is_under_way() {
                self.reads = [me, first];
            } else if !first.is_under_way() {
                self.reads[0] = me;
            } else if me.is_under_way() && !me.is_constant() {
                // Loads by `.nc` never end: two of them are as good as all.
                return Some((me, AccessKind::Read));
            }
        }
        None
    }
}
