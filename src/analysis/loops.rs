//! Loops of a graph of blocks: what can be reached again, by the edges back to blocks that dominate where they come from.
//!
//! Blocks that several such edges lead to have a loop for each. Time is linear for each edge.

use cranelift_entity::EntitySet;

use super::cfg::Cfg;
use super::domtree::DomTree;
use crate::ir::dfg::ValueDef;
use crate::ir::entities::{Block, Value};
use crate::ir::function::ThreadFunction;

/// The blocks of each loop.
pub(crate) struct Loops(Vec<EntitySet<Block>>);

impl Loops {
    /// The loops of a function.
    pub(crate) fn with_function(func: &ThreadFunction) -> Loops {
        let cfg = Cfg::with_function(func);
        let domtree = DomTree::with_cfg(&cfg);
        let mut loops = Vec::new();
        for &end in cfg.post_order() {
            for &head in cfg.successors(end) {
                if !domtree.dominates(head, end) {
                    continue;
                }
                let mut inside = EntitySet::new();
                inside.insert(head);
                let mut stack = vec![end];
                while let Some(block) = stack.pop() {
                    if inside.insert(block) {
                        stack.extend(cfg.predecessors(block));
                    }
                }
                loops.push(inside);
            }
        }
        Loops(loops)
    }

    /// Whether a block is in a loop.
    pub(crate) fn is_in_loop(&self, block: Block) -> bool {
        self.0.iter().any(|inside| inside.contains(block))
    }

    /// The blocks of the smallest loop that a block is in.
    pub(crate) fn innermost(&self, block: Block) -> Option<&EntitySet<Block>> {
        let inside = self.0.iter().filter(|inside| inside.contains(block));
        inside.min_by_key(|inside| inside.iter().count())
    }

    /// How many loops a block is in.
    pub(crate) fn depth(&self, block: Block) -> usize {
        self.0
            .iter()
            .filter(|inside| inside.contains(block))
            .count()
    }

    /// The outermost loop around a block that does not hold another one.
    pub(crate) fn around(&self, block: Block, without: Block) -> Option<&EntitySet<Block>> {
        let inside = self.0.iter();
        let around = inside.filter(|inside| inside.contains(block) && !inside.contains(without));
        around.max_by_key(|inside| inside.iter().count())
    }

    /// Whether a block is executed several times for one value: it is in a loop that the value comes from outside of.
    pub(crate) fn repeat(&self, func: &ThreadFunction, block: Block, value: Value) -> bool {
        let Some(home) = home(func, value) else {
            return false;
        };
        let repeats = |inside: &EntitySet<Block>| inside.contains(block) && !inside.contains(home);
        self.0.iter().any(repeats)
    }
}

/// Where a value is defined.
pub(crate) fn home(func: &ThreadFunction, value: Value) -> Option<Block> {
    match func.dfg.values[value].def {
        ValueDef::Result(inst, _) => func.order.block_of(inst),
        ValueDef::Param(block, _) => Some(block),
    }
}

#[cfg(test)]
mod tests {
    use super::{Loops, home};
    use crate::text::parse::parse_thread;

    #[test]
    fn loops_have_their_blocks() {
        let text = "thread @k(v0: i32) warps(1) {
        block0:
            v1 = const {value = 0} : i32
            jump block1(v1)
        block1(v2: i32):
            jump block2(v2)
        block2(v3: i32):
            v4 = iadd v3, v0 : i32
            v5 = icmp v4, v0 {ipred = slt} : i1
            brif v5, block2(v4), block3
        block3:
            v6 = icmp v4, v1 {ipred = slt} : i1
            brif v6, block1(v4), block4
        block4:
            return
        }";
        let func = parse_thread(text).unwrap_or_else(|errors| panic!("{errors:?}"));
        let loops = Loops::with_function(&func);
        let blocks = func.all_blocks();
        let inside: Vec<bool> = blocks
            .iter()
            .map(|&block| loops.is_in_loop(block))
            .collect();
        assert_eq!(inside, [false, true, true, true, false]);
        let params = func.params();
        // A value of the outer loop stays the same in the inner one, and one of the inner loop nowhere.
        let outer = func.dfg.blocks[blocks[1]].params[0];
        let inner = func.dfg.blocks[blocks[2]].params[0];
        assert_eq!(home(&func, outer), Some(blocks[1]));
        let repeats = |value| [1, 2, 3].map(|block| loops.repeat(&func, blocks[block], value));
        assert_eq!(repeats(params[0]), [true, true, true]);
        assert_eq!(repeats(outer), [false, true, false]);
        assert_eq!(repeats(inner), [false, false, false]);
    }
}
