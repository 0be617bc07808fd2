//! Who touched which byte, and what orders that: the interpreter's search for races.
//!
//! Programs run one after the other, so time is one counter, the *epoch*: it grows with each barrier, each
//! scalar atomic op that orders, and each program. What a program did in epochs before `t` is known to another once
//! that one acquired `t`: releases leave what a program knows at the element of the atomic op, acquires take it from
//! there. An access races with an earlier one of another program, one of them a store, unless that is known, or
//! both are atomic. The method is that of vector clocks with one entry for each program met.

use std::mem::take;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::error::{InterpErrorKind, OtherProgram};
use crate::ir::attrs::MemOrder;

/// How an element is accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AccessKind {
    /// A plain load.
    Read,
    /// A plain store.
    Write,
    /// A volatile load.
    StrongRead,
    /// An atomic step.
    Atomic,
}

/// Stands for more than one reader.
const SEVERAL: u32 = u32::MAX;
/// Tells the producer of a program from it.
const PRODUCER: u32 = 1 << 31;

/// The program that a record names.
fn other(program: u32) -> OtherProgram {
    match program {
        SEVERAL => OtherProgram::Several,
        producer if producer & PRODUCER != 0 => OtherProgram::Producer,
        program => OtherProgram::One(program - 1),
    }
}

/// Accesses of an element.
#[derive(Clone, Copy, Debug)]
pub(super) struct ElementAccess {
    pub(super) kind: AccessKind,
    /// The first byte's place in its buffer.
    pub(super) offset: usize,
    pub(super) bytes: usize,
    /// Whether a store leaves what is there.
    pub(super) equal: bool,
}

/// Bytes whose records are made together, when one of them is touched first.
const PAGE: usize = 512;

/// The records of a buffer's bytes.
#[derive(Clone, Debug)]
struct Pages(Vec<Option<Box<[Touched; PAGE]>>>);

impl Pages {
    fn at(&mut self, offset: usize) -> &mut Touched {
        let page = &mut self.0[offset / PAGE];
        let page = page.get_or_insert_with(|| Box::new([Touched::default(); PAGE]));
        &mut page[offset % PAGE]
    }

    /// The records of some bytes, if they lie in one page that is there.
    fn range(&mut self, offset: usize, bytes: usize) -> Option<&mut [Touched]> {
        let page = self.0.get_mut(offset / PAGE)?.as_mut()?;
        page.get_mut(offset % PAGE..offset % PAGE + bytes)
    }
}

/// Whose accesses a byte has seen, as program number plus one; 0 is nobody.
#[derive(Clone, Copy, Debug, Default)]
struct Touched {
    writer: u32,
    /// The epoch of the last plain store.
    written_in: u32,
    reader: u32,
    /// The epoch of the reader's last plain load.
    read_in: u32,
    /// Whether [`AccessLog::strong`] has an entry.
    strong: bool,
}

/// The last atomic or volatile access of a program.
#[derive(Clone, Copy, Debug)]
struct Strong {
    program: u32,
    epoch: u32,
    /// The epoch as far as other programs are concerned: a release makes its own step known too.
    time: u32,
    wrote: bool,
}

/// For each program met, the epoch before which everything it did is known.
pub(super) type Known = FxHashMap<u32, u32>;

fn join(into: &mut Known, more: &Known) {
    for (&program, &time) in more {
        let known = into.entry(program).or_default();
        *known = time.max(*known);
    }
}

/// Programs that read a byte, each with the epoch of its last load.
type Readers = SmallVec<[(u32, u32); 2]>;

/// A byte: its buffer's number and its offset.
type Byte = (usize, usize);

/// The record of a launch.
#[derive(Debug)]
pub(super) struct AccessLog {
    /// One per buffer.
    touched: Vec<Pages>,
    /// Whether two stores of one value are reported as well.
    report_equal_writes: bool,
    /// All readers of bytes that several programs read, if atomic ops may order them.
    readers: Option<FxHashMap<Byte, Readers>>,
    strong: FxHashMap<Byte, SmallVec<[Strong; 2]>>,
    released: FxHashMap<Byte, Known>,
    /// Number of the running program plus one.
    program: u32,
    epoch: u32,
    known: Known,
    /// What becomes known at the next barrier.
    acquired: Known,
}

impl AccessLog {
    /// A record for buffers of these sizes; `atomics` says whether the kernel has atomic ops.
    pub(super) fn new(sizes: &[usize], atomics: bool, report_equal_writes: bool) -> AccessLog {
        let pages = |bytes: &usize| Pages(vec![None; bytes.div_ceil(PAGE)]);
        AccessLog {
            touched: sizes.iter().map(pages).collect(),
            report_equal_writes,
            readers: atomics.then(FxHashMap::default),
            strong: FxHashMap::default(),
            released: FxHashMap::default(),
            program: 0,
            epoch: 1,
            known: Known::default(),
            acquired: Known::default(),
        }
    }

    /// Says that the accesses that follow are those of program number `number`.
    pub(super) fn enter_program(&mut self, number: u32) {
        self.program = number.wrapping_add(1);
        self.epoch = self.epoch.wrapping_add(1);
        self.known.clear();
        self.acquired.clear();
    }

    /// Says that the accesses that follow are those of the program's producer, which knows nothing of it; gives what the program
    /// knows.
    pub(super) fn enter_producer(&mut self) -> Known {
        self.program |= PRODUCER;
        take(&mut self.known)
    }

    /// The program goes on.
    pub(super) fn leave_producer(&mut self, known: Known) {
        self.program &= !PRODUCER;
        self.known = known;
    }

    /// The program's accesses up to here come before those that follow.
    pub(super) fn barrier(&mut self) {
        self.epoch = self.epoch.wrapping_add(1);
        join(&mut self.known, &self.acquired);
        self.acquired.clear();
    }

    /// An atomic step on the element at `byte` orders what its op says; `is_scalar` is whether it speaks for the
    /// program as a whole.
    pub(super) fn synchronise(&mut self, byte: Byte, sem: MemOrder, is_scalar: bool) {
        if sem.acquires()
            && let Some(released) = self.released.get(&byte)
        {
            let into = if is_scalar {
                &mut self.known
            } else {
                &mut self.acquired
            };
            join(into, released);
        }
        if sem.releases() {
            let released = self.released.entry(byte).or_default();
            join(released, &self.known);
            let time = self.epoch + u32::from(is_scalar);
            released.insert(self.program, time);
            let own = self.strong.get_mut(&byte).into_iter().flatten();
            for entry in own.filter(|entry| entry.program == self.program) {
                entry.time = time - 1;
            }
        }
    }

    /// Records an access to the buffer `(number, start)`; reports another program's that it races with, and one of the
    /// same program that no barrier separates from it. Two stores of one value do each other no harm.
    pub(super) fn touch(
        &mut self,
        (buffer, start): (usize, u64),
        access: ElementAccess,
    ) -> Result<(), InterpErrorKind> {
        let kind = access.kind;
        if self.touch_own(buffer, access) {
            return Ok(());
        }
        let harmless = access.equal && !self.report_equal_writes;
        for at in access.offset..access.offset + access.bytes {
            let mut byte = *self.touched[buffer].at(at);
            if harmless {
                // As if nobody had stored it yet.
                (byte.writer, byte.written_in) = (0, 0);
            }
            let writes = matches!(kind, AccessKind::Write | AccessKind::Atomic);
            if let Some((other, other_writes)) = self.raced(byte, (buffer, at), kind) {
                return Err(InterpErrorKind::Race {
                    address: start + at as u64,
                    writes,
                    other,
                    other_writes,
                });
            }
            if self.is_unordered(byte, (buffer, at), kind) {
                return Err(InterpErrorKind::Unordered {
                    address: start + at as u64,
                    writes,
                });
            }
            self.record(byte, (buffer, at), kind);
        }
        Ok(())
    }

    /// Records a plain access to bytes that no other program touched and no atomic op; false if there is more to look at.
    fn touch_own(&mut self, buffer: usize, access: ElementAccess) -> bool {
        let me = (self.program, self.epoch);
        let is_plain = matches!(access.kind, AccessKind::Read | AccessKind::Write);
        let records = self.touched[buffer].range(access.offset, access.bytes);
        let Some(records) = records.filter(|_| is_plain) else {
            return false;
        };
        let is_own = |byte: &Touched| {
            !byte.strong
                && (byte.reader == 0 || byte.reader == me.0)
                && (byte.writer == 0 || byte.writer == me.0 && byte.written_in != me.1)
        };
        let is_own = records.iter().all(is_own);
        if is_own && access.kind == AccessKind::Read {
            records.iter_mut().for_each(|b| (b.reader, b.read_in) = me);
        } else if is_own {
            let write = |b: &mut Touched| (b.writer, b.written_in) = me;
            records.iter_mut().for_each(write);
        }
        is_own
    }

    /// Whether an access of another program races with one of this one.
    fn races(&self, program: u32, epoch: u32) -> bool {
        let is_known = |program| self.known.get(&program).is_some_and(|&t| epoch < t);
        program != 0 && program != self.program && !is_known(program)
    }

    /// Who raced with an access, and whether by a store.
    fn raced(&self, byte: Touched, place: Byte, kind: AccessKind) -> Option<(OtherProgram, bool)> {
        if self.races(byte.writer, byte.written_in) {
            return Some((other(byte.writer), true));
        }
        if matches!(kind, AccessKind::Write | AccessKind::Atomic) {
            let all = self.readers.as_ref().and_then(|all| all.get(&place));
            let raced = match (byte.reader, all) {
                (SEVERAL, Some(all)) => all.iter().any(|&(p, epoch)| self.races(p, epoch)),
                (SEVERAL, None) => true,
                (one, _) => self.races(one, byte.read_in),
            };
            if raced {
                return Some((other(byte.reader), false));
            }
        }
        if byte.strong && matches!(kind, AccessKind::Read | AccessKind::Write) {
            let entries = self.strong.get(&place).into_iter().flatten();
            let mut raced = entries.filter(|e| self.races(e.program, e.time));
            let raced = raced.find(|e| e.wrote || kind == AccessKind::Write);
            return raced.map(|e| (other(e.program), e.wrote));
        }
        None
    }

    /// Whether an earlier access of the program is not ordered with this one.
    fn is_unordered(&self, byte: Touched, place: Byte, kind: AccessKind) -> bool {
        let own_step = |e: &Strong| e.program == self.program && e.epoch == self.epoch && e.wrote;
        let is_plain = matches!(kind, AccessKind::Read | AccessKind::Write);
        byte.writer == self.program && byte.written_in == self.epoch
            || byte.strong
                && is_plain
                && self.strong.get(&place).into_iter().flatten().any(own_step)
    }

    fn record(&mut self, mut byte: Touched, place: Byte, kind: AccessKind) {
        let me = (self.program, self.epoch);
        match kind {
            AccessKind::Write => (byte.writer, byte.written_in) = me,
            AccessKind::Read => {
                let alone = byte.reader != SEVERAL && !self.races(byte.reader, byte.read_in);
                if alone {
                    (byte.reader, byte.read_in) = me;
                } else if let Some(readers) = &mut self.readers {
                    let all = readers.entry(place).or_default();
                    if byte.reader != SEVERAL {
                        all.clear();
                        all.push((byte.reader, byte.read_in));
                    }
                    all.retain(|&mut (program, _)| program != me.0);
                    all.push(me);
                    byte.reader = SEVERAL;
                } else {
                    byte.reader = SEVERAL;
                }
            }
            AccessKind::StrongRead | AccessKind::Atomic => {
                byte.strong = true;
                let entries = self.strong.entry(place).or_default();
                let wrote = entries
                    .iter()
                    .any(|e| e.program == me.0 && e.epoch == me.1 && e.wrote);
                entries.retain(|e| e.program != me.0);
                entries.push(Strong {
                    program: me.0,
                    epoch: me.1,
                    time: me.1,
                    wrote: wrote || kind == AccessKind::Atomic,
                });
            }
        }
        *self.touched[place.0].at(place.1) = byte;
    }
}
