//! How many groups of copies, or of products, may be under way at each wait.
//!
//! The machine counts: a wait names how many of the groups committed last need not have arrived. So for each token we follow
//! how many groups were committed after its own, at least, on any way to the wait; waiting for more than is needed is harmless.
//! Around a loop the number is the smaller of what the entry and the end of an iteration give, found by repeating the walk
//! until nothing changes, which each time lowers a number.
//!
//! A group may be done at its wait, as a wait in front of it left fewer under way. Such a wait names as many as can be under way:
//! it waits for nothing either way, but the assembler, which goes by the numbers, keeps sums in registers of products until then.

use cranelift_entity::SecondaryMap;

use crate::ir::dfg::InstData;
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::function::TileFunction;
use crate::ir::level::Tile;
use crate::ir::ops::TileOp;
use crate::ir::types::Elem;

/// When products were done that never began.
const LONG_AGO: i64 = i64::MIN / 2;

/// Most groups that a wait leaves under way: the machine counts to 7 of products.
const MOST_PENDING: u32 = 7;

/// Groups that may be under way at each wait.
#[derive(Debug, Default)]
pub struct AsyncGroups {
    pending: SecondaryMap<Inst, u32>,
}

impl AsyncGroups {
    /// Follows the tokens of a function.
    pub fn compute(func: &TileFunction) -> AsyncGroups {
        let mut groups = AsyncGroups::default();
        for kind in [Work::Copies, Work::Products] {
            let is_started = |data: &InstData<Tile>| kind.starts(data).is_some();
            if !func.dfg.insts.values().any(is_started) {
                continue;
            }
            let mut walk = Walk {
                func,
                kind,
                born: SecondaryMap::new(),
                now: 0,
                open: 0,
                groups,
            };
            walk.block(func.entry);
            groups = walk.groups;
        }
        groups
    }

    /// Groups that may be under way after a wait.
    pub fn pending(&self, wait: Inst) -> u32 {
        self.pending[wait]
    }
}

/// What goes on asynchronously; the machine counts the groups of each kind by themselves.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Work {
    Copies,
    Products,
}

impl Work {
    /// The token of the group that the instruction makes.
    fn starts(self, data: &InstData<Tile>) -> Option<Value> {
        match (self, data.op) {
            (Work::Copies, TileOp::AsyncCommit) => data.results.first().copied(),
            (Work::Products, TileOp::DotStart) => data.results.last().copied(),
            _ => None,
        }
    }

    /// The tokens that the instruction waits for.
    fn waited(self, data: &InstData<Tile>) -> Option<&[Value]> {
        match (self, data.op) {
            (Work::Copies, TileOp::AsyncWait) | (Work::Products, TileOp::DotWait) => {
                Some(&data.args)
            }
            (Work::Products, TileOp::DotSum) => data.args.get(1..),
            _ => None,
        }
    }
}

struct Walk<'a> {
    func: &'a TileFunction,
    kind: Work,
    /// Commitments before that of each token.
    born: SecondaryMap<Value, i64>,
    /// Commitments so far on the way walked.
    now: i64,
    /// Groups that may be under way, up to one more than a wait can leave.
    open: i64,
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
            if let Some(token) = self.kind.starts(data) {
                self.now += 1;
                self.open = (self.open + 1).min(i64::from(MOST_PENDING) + 1);
                self.born[token] = self.now;
                continue;
            }
            if let Some(tokens) = self.kind.waited(data) {
                let ages = tokens.iter().map(|&token| self.age(token));
                let most = self.open.min(i64::from(MOST_PENDING));
                self.open = ages.min().unwrap_or(0).clamp(0, most);
                self.groups.pending[inst] = self.open as u32;
                continue;
            }
            match data.op {
                TileOp::DotDone => self.born[data.results[1]] = LONG_AGO,
                TileOp::For => self.loop_of(inst),
                _ => {
                    // Each region begins where the instruction stands. Behind it counts what is committed on every way.
                    let (start, before, mut after) = (self.now, self.open, self.open);
                    let mut least = None;
                    for region in func.regions(inst) {
                        (self.now, self.open) = (start, before);
                        self.block(region);
                        after = after.max(self.open);
                        least = Some(least.map_or(self.now, |least: i64| least.min(self.now)));
                    }
                    self.open = after;
                    self.now = match data.op {
                        TileOp::If => least.unwrap_or(start),
                        _ => start,
                    };
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
        let mut open = self.open;
        loop {
            let start = self.now;
            self.open = open;
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
            changed |= self.open > open;
            open = open.max(self.open);
            // Without an iteration nothing was committed: what was made before the loop counts no group of it.
            self.now = start;
            if !changed {
                break;
            }
        }
        self.open = open;
        for (&i, age) in tokens.iter().zip(&ages) {
            self.born[data.results[i]] = self.now - age;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::AsyncGroups;
    use crate::ir::ops::TileOp;
    use crate::text::parse::parse_tile;

    /// What a branch starts is no reason to leave a group under way behind it: the program may have come by the other branch.
    #[test]
    fn groups_of_a_branch_do_not_count_behind_it() {
        let text = "kernel @k(v0: i1) warps(4) {
                slot0 = 8192 bytes align 1024 holds 1 of f16[64,64]
                slot1 = 8192 bytes align 1024 holds 1 of f16[64,64]
            block0:
                v1 = const {value = 0} : i32
                v2 = shared_view v1 {slot = slot0} : f16[64,64; shared]
                v3 = shared_view v1 {slot = slot1} : f16[64,64; shared]
                v4 = const {value = 0.0} : f32[64,64]
                v5, v6 = dot_start v2, v3, v4 {precision = ieee} : f32[64,64], token
                v7 = if v0 : f32[64,64] {
                block1:
                    v8, v9 = dot_start v3, v2, v4 {precision = ieee} : f32[64,64], token
                    v10 = dot_sum v8, v9 : f32[64,64]
                    yield v10
                } {
                block2:
                    yield v4
                }
                v11, v12 = dot_start v3, v2, v7 {precision = ieee} : f32[64,64], token
                v13 = dot_sum v5, v6 : f32[64,64]
                v14 = dot_sum v11, v12 : f32[64,64]
                return
            }";
        let func = parse_tile(text).unwrap_or_else(|errors| panic!("{errors:?}"));
        let groups = AsyncGroups::compute(&func);
        let waits = func.insts_with(TileOp::DotSum);
        let pending: Vec<u32> = waits.map(|(_, wait)| groups.pending(wait)).collect();
        // In block order: behind the choice the product that was started last may go on, and in the branch none.
        assert_eq!(pending, [1, 0, 0]);
    }
}
