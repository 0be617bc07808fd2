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
pub(super) type Entry = (Slot, u64);

/// The rings of a program.
#[derive(Debug, Default)]
pub(super) struct Rings {
    entries: FxHashMap<Entry, Elems>,
    /// Copies under way, with the number of their group.
    copies: Vec<(u64, Entry, Elems)>,
    /// Number of groups committed.
    groups: u64,
    /// Entries that products under way read, with the numbers of the products.
    read: Vec<(u64, Entry)>,
    /// Number of products started.
    products: u64,
}

impl Rings {
    /// Closes a group and gives its number.
    pub(super) fn commit(&mut self) -> u64 {
        self.groups += 1;
        self.groups - 1
    }

    /// Whether the entry may change: no product under way reads it.
    fn check_change(&self, entry: Entry) -> Outcome<()> {
        match self.read.iter().any(|&(_, read)| read == entry) {
            false => Ok(()),
            true => Err(InterpErrorKind::EntryInUse {
                slot: entry.0,
                index: entry.1,
            }),
        }
    }

    /// The entry holds nothing until it is filled.
    pub(super) fn begin_change(&mut self, entry: Entry) -> Outcome<()> {
        self.check_change(entry)?;
        self.entries.remove(&entry);
        Ok(())
    }

    /// Whether a producer may fill the entry: the program has released it, and nothing reads it.
    pub(super) fn check_free(&self, entry: Entry) -> Outcome<()> {
        self.check_change(entry)?;
        match self.entries.contains_key(&entry) {
            false => Ok(()),
            true => Err(InterpErrorKind::EntryHeld {
                slot: entry.0,
                index: entry.1,
            }),
        }
    }

    /// The entry holds the block.
    pub(super) fn fill(&mut self, entry: Entry, elems: Elems) {
        self.entries.insert(entry, elems);
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
    pub(super) fn entry(&self, data: &InstData<Tile>, index: usize) -> Outcome<Entry> {
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
        self.rings.begin_change(entry)?;
        self.rings.copies.push((self.rings.groups, entry, elems));
        Ok(Elems::from_elem(0, 1))
    }

    /// Notes what a product reads where it stands; gives its number.
    pub(super) fn start_product(&mut self, data: &InstData<Tile>) -> u64 {
        // Zero is the null token.
        self.rings.products += 1;
        let number = self.rings.products;
        for &operand in data.args.iter().take(2) {
            let view = self.func.view_of(operand);
            let entry = view.map(|view| self.entry(&self.func.dfg.insts[view.inst], 0));
            if let Some(Ok(entry)) = entry {
                self.rings.read.push((number, entry));
            }
        }
        number
    }

    /// The product of the token at `index`, and those started before, are done.
    pub(super) fn finish_product(&mut self, data: &InstData<Tile>, index: usize) -> Outcome<()> {
        let number = self.single(data, index)?;
        self.rings.read.retain(|&(of, _)| number < of);
        Ok(())
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
        self.rings.check_change(entry)?;
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
