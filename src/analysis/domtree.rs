//! Dominators of the blocks of a function's body.
//!
//! The algorithm is the iterative one of Cooper, Harvey and Kennedy ("A Simple, Fast Dominance
//! Algorithm", 2001): immediate dominators are intersected in reverse post-order until nothing changes,
//! an intersection walking up the tree built so far. A walk over the finished tree then numbers
//! subtrees, so that a query is two comparisons.

use cranelift_entity::{SecondaryMap, packed_option::PackedOption};

use super::cfg::Cfg;
use crate::ir::entities::Block;

#[derive(Clone, Copy, Debug, Default)]
struct Node {
    parent: PackedOption<Block>,
    /// Position in post-order plus one; zero if the block cannot be reached.
    rank: u32,
    /// Position of the block and of the last block of its subtree in a pre-order of the tree.
    first: u32,
    last: u32,
}

/// The dominator tree of a function's body.
#[derive(Clone, Debug, Default)]
pub struct DomTree {
    nodes: SecondaryMap<Block, Node>,
    valid: bool,
}

impl DomTree {
    /// The dominators of a graph.
    pub fn with_cfg(cfg: &Cfg) -> DomTree {
        let mut tree = DomTree::default();
        tree.compute(cfg);
        tree
    }

    /// Forgets everything and keeps the memory.
    pub fn clear(&mut self) {
        self.nodes.clear();
        self.valid = false;
    }

    /// Whether the tree was computed since it was cleared.
    pub fn is_valid(&self) -> bool {
        self.valid
    }

    /// Computes the tree.
    pub fn compute(&mut self, cfg: &Cfg) {
        self.clear();
        self.valid = true;
        let post_order = cfg.post_order();
        for (rank, &block) in (1..).zip(post_order) {
            self.nodes[block].rank = rank;
        }
        let Some((_, below)) = post_order.split_last() else {
            return;
        };
        loop {
            let mut changed = false;
            for &block in below.iter().rev() {
                let mut parent = None;
                for &pred in cfg.predecessors(block) {
                    // The entry and what has a parent already are known; others come later in this round or the next.
                    let known = self.nodes[pred].rank as usize == post_order.len()
                        || self.nodes[pred].parent.is_some();
                    if known {
                        parent = Some(match parent {
                            None => pred,
                            Some(other) => self.intersect(other, pred),
                        });
                    }
                }
                if self.nodes[block].parent != parent.into() {
                    self.nodes[block].parent = parent.into();
                    changed = true;
                }
            }
            if !changed {
                break;
            }
        }
        self.number_subtrees(post_order);
    }

    /// The closest block that dominates both, in the tree so far.
    fn intersect(&self, mut a: Block, mut b: Block) -> Block {
        while a != b {
            let lower = if self.nodes[a].rank < self.nodes[b].rank {
                &mut a
            } else {
                &mut b
            };
            match self.nodes[*lower].parent.expand() {
                Some(parent) => *lower = parent,
                // The entry has the highest rank, so it is never the lower of two.
                None => return *lower,
            }
        }
        a
    }

    fn number_subtrees(&mut self, post_order: &[Block]) {
        let mut sizes: SecondaryMap<Block, u32> = SecondaryMap::new();
        // Parents stand after their children in post-order.
        for &block in post_order {
            sizes[block] += 1;
            if let Some(parent) = self.nodes[block].parent.expand() {
                sizes[parent] += sizes[block];
            }
        }
        let mut next: SecondaryMap<Block, u32> = SecondaryMap::new();
        for &block in post_order.iter().rev() {
            let first = match self.nodes[block].parent.expand() {
                None => 0,
                Some(parent) => {
                    let first = next[parent];
                    next[parent] += sizes[block];
                    first
                }
            };
            self.nodes[block].first = first;
            self.nodes[block].last = first + sizes[block] - 1;
            next[block] = first + 1;
        }
    }

    /// Whether a block can be reached from the entry.
    pub fn is_reachable(&self, block: Block) -> bool {
        debug_assert!(self.is_valid());
        self.nodes[block].rank != 0
    }

    /// Whether every path from the entry to `b` goes through `a`; a block dominates itself. Of blocks that cannot
    /// be reached each dominates itself alone.
    pub fn dominates(&self, a: Block, b: Block) -> bool {
        if !self.is_reachable(a) || !self.is_reachable(b) {
            return a == b;
        }
        let (a, b) = (&self.nodes[a], &self.nodes[b]);
        a.first <= b.first && b.first <= a.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::builder::ThreadBuilder;
    use crate::ir::function::ThreadFunction;
    use crate::ir::types::{Elem, ThreadType};

    /// Whether `b` cannot be reached without going through `a`: the definition, by search.
    fn naive_dominates(cfg: &Cfg, entry: Block, a: Block, b: Block) -> bool {
        let mut seen: SecondaryMap<Block, bool> = SecondaryMap::new();
        let mut stack = vec![entry];
        while let Some(block) = stack.pop() {
            if block == a || std::mem::replace(&mut seen[block], true) {
                continue;
            }
            if block == b {
                return false;
            }
            stack.extend(cfg.successors(block));
        }
        true
    }

    /// A graph of `count` blocks; bits of `edges` choose the targets of each terminator.
    fn graph(count: usize, mut choose: impl FnMut(usize) -> usize) -> (ThreadFunction, Vec<Block>) {
        let mut b = ThreadBuilder::new("k", 1);
        let cond = b.param("c", ThreadType::scalar(Elem::I1));
        let mut blocks = vec![b.block()];
        for _ in 1..count {
            let (block, _) = b.new_block(&[]);
            b.append_block(block);
            blocks.push(block);
        }
        for &block in &blocks {
            b.switch_to(block);
            match choose(3) {
                0 => b.ret(),
                1 => b.jump(blocks[1 + choose(count - 1)], &[]),
                _ => {
                    let (x, y) = (1 + choose(count - 1), 1 + choose(count - 1));
                    b.brif(cond, (blocks[x], &[]), (blocks[y], &[]));
                }
            }
        }
        (b.finish().expect("every terminator fits"), blocks)
    }

    #[test]
    fn random_graphs_agree_with_the_definition() {
        let mut state = 1u64;
        let mut random = |below: usize| {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (state >> 33) as usize % below
        };
        // Both keep nothing of the graph before but its memory.
        let (mut cfg, mut tree) = (Cfg::default(), DomTree::default());
        let mut pairs = 0;
        for round in 0..300 {
            let (func, blocks) = graph(2 + round % 9, &mut random);
            cfg.compute(&func);
            assert_eq!(
                format!("{cfg:?}"),
                format!("{:?}", Cfg::with_function(&func))
            );
            tree.compute(&cfg);
            let reachable = cfg.post_order();
            for &a in &blocks {
                assert_eq!(tree.is_reachable(a), reachable.contains(&a));
                for &b in reachable {
                    let expected = reachable.contains(&a) && naive_dominates(&cfg, blocks[0], a, b);
                    assert_eq!(tree.dominates(a, b), expected, "{a} {b} in {cfg:?}");
                    pairs += usize::from(expected && a != b);
                }
            }
            for &b in reachable {
                let parent = tree.nodes[b].parent.expand();
                assert_eq!(parent.is_none(), b == blocks[0]);
                let strict = reachable
                    .iter()
                    .filter(|&&a| a != b && tree.dominates(a, b));
                for &a in strict {
                    assert!(tree.dominates(a, parent.expect("not the entry")));
                }
            }
        }
        assert!(pairs > 500, "the graphs are too poor: {pairs}");
    }
}
