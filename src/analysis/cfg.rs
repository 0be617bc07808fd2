//! The control-flow graph of a function's body: predecessors, successors and a post-order.
//!
//! Only the blocks of the body are nodes; regions belong to the instruction that owns them. A function
//! of the tile level has one block in its body, so its graph is a single node.
//!
//! The graph is valid until a terminator or the list of blocks changes; recompute it then.

use cranelift_entity::SecondaryMap;
use smallvec::SmallVec;

use crate::ir::entities::Block;
use crate::ir::function::Function;
use crate::ir::level::Level;
use crate::ir::ops::Opcode;

/// Edges of one block.
#[derive(Clone, Debug, Default)]
struct Node {
    predecessors: SmallVec<[Block; 2]>,
    successors: SmallVec<[Block; 2]>,
}

/// The control-flow graph of a function.
#[derive(Clone, Debug, Default)]
pub struct Cfg {
    nodes: SecondaryMap<Block, Node>,
    post_order: Vec<Block>,
    valid: bool,
}

impl Cfg {
    /// The graph of a function whose terminators name blocks of its body.
    pub fn with_function<L: Level>(func: &Function<L>) -> Cfg {
        let mut cfg = Cfg::default();
        cfg.compute(func);
        cfg
    }

    /// Forgets everything and keeps the memory.
    pub fn clear(&mut self) {
        self.nodes.clear();
        self.post_order.clear();
        self.valid = false;
    }

    /// Whether the graph was computed since it was cleared.
    pub fn is_valid(&self) -> bool {
        self.valid
    }

    /// Computes the graph.
    pub fn compute<L: Level>(&mut self, func: &Function<L>) {
        self.clear();
        for &block in &func.order.blocks {
            let Some(last) = func.order.last(block) else {
                continue;
            };
            let data = &func.dfg.insts[last];
            if !data.op.info().ends_block() {
                continue;
            }
            for call in &data.blocks {
                self.nodes[block].successors.push(call.block);
                self.nodes[call.block].predecessors.push(block);
            }
        }
        self.compute_post_order(func.entry);
        self.valid = true;
    }

    fn compute_post_order(&mut self, entry: Block) {
        let mut seen: SecondaryMap<Block, bool> = SecondaryMap::new();
        seen[entry] = true;
        // A block with the number of its successors that were visited.
        let mut stack = vec![(entry, 0)];
        while let Some((block, visited)) = stack.pop() {
            match self.nodes[block].successors.get(visited) {
                Some(&next) => {
                    stack.push((block, visited + 1));
                    if !std::mem::replace(&mut seen[next], true) {
                        stack.push((next, 0));
                    }
                }
                None => self.post_order.push(block),
            }
        }
    }

    /// Blocks that go to `block`, one entry per edge.
    pub fn predecessors(&self, block: Block) -> &[Block] {
        debug_assert!(self.is_valid());
        &self.nodes[block].predecessors
    }

    /// Where the terminator of `block` goes, one entry per edge.
    pub fn successors(&self, block: Block) -> &[Block] {
        debug_assert!(self.is_valid());
        &self.nodes[block].successors
    }

    /// The blocks that can be reached, each after those it goes to except along back edges; the entry is last.
    pub fn post_order(&self) -> &[Block] {
        debug_assert!(self.is_valid());
        &self.post_order
    }
}
