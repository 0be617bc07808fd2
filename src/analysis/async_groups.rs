//! How many groups of copies may be under way at each wait.
//!
//! The machine counts: a wait names how many of the groups committed last need not have arrived. So for each token we follow
//! how many groups were committed after its own, at least, on any way to the wait; waiting for more than is needed is harmless.
//! Around a loop the number is the smaller of what the entry and the end of an iteration give, found by repeating the walk
//! until nothing changes, which each time lowers a number.

use cranelift_entity::SecondaryMap;

use crate::ir::entities::{Block, Inst, Value};
use crate::ir::function::TileFunction;
use crate::ir::ops::TileOp;
use crate::ir::types::Elem;

/// Groups that may be under way at each wait.
#[derive(Debug, Default)]
pub struct AsyncGroups {
    pending: SecondaryMap<Inst, u32>,
}

impl AsyncGroups {
    /// Follows the tokens of a function.
    pub fn compute(func: &TileFunction) -> AsyncGroups {
        let mut walk = Walk {
            func,
            born: SecondaryMap::new(),
            now: 0,
            groups: AsyncGroups::default(),
        };
        let is_async = |data: &crate::ir::dfg::InstData<_>| data.op == TileOp::AsyncCommit;
        if func.dfg.insts.values().any(is_async) {
            walk.block(func.entry);
        }
        walk.groups
    }

    /// Groups that may be under way after a wait.
    pub fn pending(&self, wait: Inst) -> u32 {
        self.pending[wait]
    }
}

struct Walk<'a> {
    func: &'a TileFunction,
    /// Commitments before that of each token.
    born: SecondaryMap<Value, i64>,
    /// Commitments so far on the way walked.
    now: i64,
    groups: AsyncGroups,
}

impl Walk<'_> {
    fn age(&self, token: Value) -> i64 {
        self.now - self.born[token]
    }

    fn is_token(&self, value: Value) -> bool {
        self.func.dfg.ty(value).elem == Elem::Token
    }

    fn block(&mut self, block: Block) {
        let func = self.func;
        for &inst in func.order.insts(block) {
            let data = &func.dfg.insts[inst];
            match data.op {
                TileOp::AsyncCommit => {
                    self.now += 1;
                    self.born[data.results[0]] = self.now;
                }
                TileOp::AsyncWait => {
                    let ages = data.args.iter().map(|&token| self.age(token));
                    self.groups.pending[inst] = ages.min().unwrap_or(0).max(0) as u32;
                }
                TileOp::For => self.loop_of(inst),
                _ => {
                    for region in func.regions(inst) {
                        self.block(region);
                    }
                    for &result in &data.results {
                        self.born[result] = self.now;
                    }
                }
            }
        }
    }

    fn loop_of(&mut self, inst: Inst) {
        let func = self.func;
        let data = &func.dfg.insts[inst];
        let body = data.blocks[0].block;
        let params = &func.dfg.blocks[body].params[1..];
        let tokens: Vec<usize> = (0..params.len())
            .filter(|&i| self.is_token(params[i]))
            .collect();
        let mut ages: Vec<i64> = tokens.iter().map(|&i| self.age(data.args[3 + i])).collect();
        loop {
            let start = self.now;
            for (&i, age) in tokens.iter().zip(&ages) {
                self.born[params[i]] = start - age;
            }
            self.block(body);
            let mut changed = false;
            if let Some(last) = func.order.last(body) {
                let yielded = &func.dfg.insts[last].args;
                for (&i, age) in tokens.iter().zip(&mut ages) {
                    let next = self.age(yielded[i]);
                    changed |= next < *age;
                    *age = next.min(*age);
                }
            }
            // Without an iteration nothing was committed: what was made before the loop counts no group of it.
            self.now = start;
            if !changed {
                break;
            }
        }
        for (&i, age) in tokens.iter().zip(&ages) {
            self.born[data.results[i]] = self.now - age;
        }
    }
}
