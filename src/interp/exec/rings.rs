//! Rings of blocks in shared memory, and copies that arrive as late as they may.
//!
//! A copy reads memory at once, but what it brings stands in the ring only after a wait for its group or a later one; until
//! then the entry holds nothing.

use rustc_hash::FxHashMap;

use super::{Elems, Machine, Outcome, operand, required};
use crate::interp::error::InterpErrorKind;
use crate::ir::attrs::Attrs;
use crate::ir::dfg::InstData;
use crate::ir::entities::Slot;
use crate::ir::level::Tile;
use crate::ir::ops::TileOp;

/// An entry of a ring.
type Entry = (Slot, u64);

/// The rings of a program.
#[derive(Debug, Default)]
pub(super) struct Rings {
    entries: FxHashMap<Entry, Elems>,
    /// Copies under way, with the number of their group.
    copies: Vec<(u64, Entry, Elems)>,
    /// Number of groups committed.
    groups: u64,
}

impl Rings {
    /// Closes a group and gives its number.
    pub(super) fn commit(&mut self) -> u64 {
        self.groups += 1;
        self.groups - 1
    }

    fn arrive(&mut self, group: u64) {
        let entries = &mut self.entries;
        self.copies.retain(|(of, entry, elems)| {
            let is_late = group < *of;
            if !is_late {
                entries.insert(*entry, elems.clone());
            }
            is_late
        });
    }
}

impl Machine<'_> {
    fn entry(&self, data: &InstData<Tile>, index: usize) -> Outcome<Entry> {
        let slot = required(data.slot())?;
        let index = self.single(data, index)?;
        let stages = self.func.buffers[slot].map_or(0, |b| u64::from(b.stages));
        if stages <= index {
            return Err(InterpErrorKind::RingIndex {
                slot,
                index,
                stages,
            });
        }
        Ok((slot, index))
    }

    /// Gives the copy's token, which stands for nothing until it is committed.
    pub(super) fn async_copy(&mut self, data: &InstData<Tile>) -> Outcome<Elems> {
        let entry = self.entry(data, 1)?;
        let mut load: InstData<Tile> = InstData::new(TileOp::Load, &[operand(data, 0)?]);
        load.args.extend(data.args.get(2).copied());
        let elems = self.load(&load)?;
        self.rings.entries.remove(&entry);
        self.rings.copies.push((self.rings.groups, entry, elems));
        Ok(Elems::from_elem(0, 1))
    }

    pub(super) fn async_wait(&mut self, data: &InstData<Tile>) -> Outcome<()> {
        for i in 0..data.args.len() {
            let group = self.single(data, i)?;
            self.rings.arrive(group);
        }
        Ok(())
    }

    pub(super) fn shared_store(&mut self, data: &InstData<Tile>) -> Outcome<()> {
        let entry = self.entry(data, 1)?;
        let elems = self.arg(data, 0)?.clone();
        self.rings.entries.insert(entry, elems);
        Ok(())
    }

    pub(super) fn shared_load(&mut self, data: &InstData<Tile>) -> Outcome<Elems> {
        let entry = self.entry(data, 0)?;
        let found = self.rings.entries.get(&entry).cloned();
        found.ok_or(InterpErrorKind::EmptyEntry {
            slot: entry.0,
            index: entry.1,
        })
    }
}
