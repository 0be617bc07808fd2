//! Program order: which instructions stand in which block, and the order of the blocks.
//!
//! At tile level `blocks` holds the entry alone; every other block is a region of an instruction.

use cranelift_entity::{EntityRef, SecondaryMap, packed_option::PackedOption};

use super::entities::{Block, Inst};

/// Order of instructions and blocks.
#[derive(Clone, Debug, Default)]
pub struct Order {
    /// Blocks of the function body, entry first.
    pub blocks: Vec<Block>,
    insts: SecondaryMap<Block, Vec<Inst>>,
    parent: SecondaryMap<Inst, PackedOption<Block>>,
}

impl Order {
    /// The instructions of a block, in order.
    pub fn insts(&self, block: Block) -> &[Inst] {
        &self.insts[block]
    }

    /// The block an instruction stands in.
    pub fn block_of(&self, inst: Inst) -> Option<Block> {
        self.parent[inst].expand()
    }

    /// Last instruction of a block.
    pub fn last(&self, block: Block) -> Option<Inst> {
        self.insts[block].last().copied()
    }

    /// Puts an instruction at the end of a block.
    pub fn append(&mut self, block: Block, inst: Inst) {
        self.insts[block].push(inst);
        self.parent[inst] = Some(block).into();
    }

    /// Puts an instruction at position `index` of a block (at the end if there are fewer).
    pub fn insert(&mut self, block: Block, index: usize, inst: Inst) {
        let list = &mut self.insts[block];
        list.insert(index.min(list.len()), inst);
        self.parent[inst] = Some(block).into();
    }

    /// Puts instructions in front of another one; they stand nowhere if that one does.
    pub fn insert_before(&mut self, before: Inst, made: &[Inst]) {
        self.insert_at(before, 0, made);
    }

    /// Puts instructions behind another one; they stand nowhere if that one does.
    pub fn insert_after(&mut self, after: Inst, made: &[Inst]) {
        self.insert_at(after, 1, made);
    }

    fn insert_at(&mut self, beside: Inst, behind: usize, made: &[Inst]) {
        let Some(block) = self.block_of(beside) else {
            return;
        };
        let list = &mut self.insts[block];
        if let Some(at) = list.iter().position(|&inst| inst == beside) {
            list.splice(at + behind..at + behind, made.iter().copied());
            for &inst in made {
                self.parent[inst] = Some(block).into();
            }
        }
    }

    /// Gives a block a new list of instructions; those not in it are out of order from now on.
    pub fn replace(&mut self, block: Block, insts: Vec<Inst>) {
        for &inst in &self.insts[block] {
            self.parent[inst] = None.into();
        }
        for &inst in &insts {
            self.parent[inst] = Some(block).into();
        }
        self.insts[block] = insts;
    }

    /// Takes out the instructions from number `insts` on, which stand at the ends of blocks, and the blocks from number `blocks`
    /// on; `placed` is how many blocks have a place.
    pub(super) fn truncate(&mut self, insts: u32, blocks: u32, placed: usize) {
        let end = self.parent.keys().len() as u32;
        for inst in (insts..end).map(Inst::from_u32) {
            if let Some(block) = self.block_of(inst)
                && block.as_u32() < blocks
            {
                let list = &mut self.insts[block];
                while list.last().is_some_and(|last| insts <= last.as_u32()) {
                    list.pop();
                }
            }
        }
        shorten(&mut self.parent, insts);
        shorten(&mut self.insts, blocks);
        self.blocks.truncate(placed);
    }

    /// Takes out the instructions of a block for which `keep` is false.
    pub fn retain(&mut self, block: Block, mut keep: impl FnMut(Inst) -> bool) {
        let parent = &mut self.parent;
        self.insts[block].retain(|&inst| {
            let kept = keep(inst);
            if !kept {
                parent[inst] = None.into();
            }
            kept
        });
    }
}

/// Forgets what a map holds for entities from this number on.
pub(crate) fn shorten<K: EntityRef, V: Clone>(map: &mut SecondaryMap<K, V>, len: u32) {
    if (len as usize) < map.keys().len() {
        map.resize(len as usize);
    }
}
