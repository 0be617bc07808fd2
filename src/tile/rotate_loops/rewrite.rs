//! The rewriting of one loop.

use rustc_hash::FxHashMap;

use super::split::Split;
use crate::ir::attrs::{IntPred, make};
use crate::ir::dfg::{BlockCall, InstData, ValueList};
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::function::TileFunction;
use crate::ir::level::Tile;
use crate::ir::maker::Maker;
use crate::ir::ops::TileOp;
use crate::ir::types::{Elem, TileType};
use crate::tile::edit::{copy_of, rename_uses, signed};

/// What stands for values of an iteration.
type Map = FxHashMap<Value, Value>;

/// Rewrites a loop that stands in `block`; gives the new body.
pub(super) fn rotate(func: &mut TileFunction, block: Block, inst: Inst, split: &Split) -> Block {
    let data = func.dfg.insts[inst].clone();
    let old = data.results.to_vec();
    let mut rewriter = Rewriter {
        maker: Maker::new(func),
        split,
        data,
    };
    rewriter.maker.loc = rewriter.data.loc;
    let (made, results, body) = rewriter.run();
    let mut list = func.order.insts(block).to_vec();
    if let Some(at) = list.iter().position(|&i| i == inst) {
        list.splice(at..=at, made);
    }
    func.order.replace(block, list);
    for (old, new) in old.into_iter().zip(results) {
        rename_uses(func, old, new);
    }
    body
}

struct Rewriter<'a> {
    maker: Maker<'a, Tile>,
    split: &'a Split,
    /// The loop as it was.
    data: InstData<Tile>,
}

impl Rewriter<'_> {
    /// What stands in the place of the loop, its results, and the new body.
    fn run(&mut self) -> (Vec<Inst>, Vec<Value>, Block) {
        let [lo, hi, step] = [0, 1, 2].map(|i| self.data.args[i]);
        let inits = self.data.args[3..].to_vec();
        let bounds = [lo, hi].map(|v| signed(self.maker.func, v));
        if let [Some(first), Some(end)] = bounds
            && first < end
        {
            let (results, body) = self.rotated([lo, hi, step], &inits);
            return (std::mem::take(&mut self.maker.made), results, body);
        }
        let runs = [make::ipred(IntPred::Slt)];
        let runs = self
            .maker
            .value(TileOp::Icmp, &[lo, hi], &runs, TileType::scalar(Elem::I1));
        let mut around = std::mem::take(&mut self.maker.made);
        let (results, body) = self.rotated([lo, hi, step], &inits);
        let mut choice: InstData<Tile> = InstData::new(TileOp::If, &[runs]);
        for values in [&results, &inits] {
            self.maker.build(TileOp::Yield, values, &[], &[]);
            let region = self.maker.func.dfg.make_block();
            let list = std::mem::take(&mut self.maker.made);
            self.maker.func.order.replace(region, list);
            choice.blocks.push(BlockCall::region(region));
        }
        choice.loc = self.data.loc;
        let types: Vec<TileType> = inits.iter().map(|&v| self.maker.func.dfg.ty(v)).collect();
        let choice = self.maker.func.dfg.make_inst(choice, &types);
        around.push(choice);
        let results = self.maker.func.dfg.insts[choice].results.to_vec();
        (around, results, body)
    }

    /// The loop with what stands around it, for at least one iteration.
    fn rotated(&mut self, [lo, hi, step]: [Value; 3], inits: &[Value]) -> (Vec<Value>, Block) {
        let split = self.split;
        let params = self.maker.func.dfg.blocks[split.body].params.to_vec();
        let (counter, carried) = (params[0], &params[1..]);

        // The first half of the first iteration.
        let mut map: Map = carried.iter().copied().zip(inits.iter().copied()).collect();
        map.insert(counter, lo);
        self.copy(&split.first, &mut map);
        self.copy(&split.rest, &mut map);

        // The loop: the second half of an iteration, and the first of the next.
        let end = self.end([lo, hi, step]);
        let alive = self.alive(counter);
        let mut args = ValueList::from_slice(&[lo, end, step]);
        args.extend(alive.iter().map(|v| now(&map, *v)));
        let before = std::mem::take(&mut self.maker.made);
        let body = self.maker.func.dfg.make_block();
        let ty = self.maker.func.dfg.ty(lo);
        let i = self.maker.func.dfg.append_param(body, ty);
        let mut this = Map::default();
        for &value in &alive {
            let ty = self.maker.func.dfg.ty(value);
            this.insert(value, self.maker.func.dfg.append_param(body, ty));
        }
        this.insert(counter, i);
        let mut next = Map::default();
        let later = self.maker.value(TileOp::Iadd, &[i, step], &[], ty);
        next.insert(counter, later);
        for (&param, &value) in carried.iter().zip(&split.yields) {
            next.insert(param, now(&this, value));
        }
        self.copy(&split.first, &mut next);
        self.copy(&split.second, &mut this);
        for (&param, &value) in carried.iter().zip(&split.yields) {
            next.insert(param, now(&this, value));
        }
        self.copy(&split.rest, &mut next);
        let yields: Vec<Value> = alive.iter().map(|&v| now(&next, v)).collect();
        self.maker.build(TileOp::Yield, &yields, &[], &[]);
        let list = std::mem::replace(&mut self.maker.made, before);
        self.maker.func.order.replace(body, list);

        let mut looped: InstData<Tile> = InstData::new(TileOp::For, &args);
        looped.attrs = self.data.attrs.clone();
        looped.loc = self.data.loc;
        looped.blocks.push(BlockCall::region(body));
        let types: Vec<TileType> = alive.iter().map(|&v| self.maker.func.dfg.ty(v)).collect();
        let looped = self.maker.func.dfg.make_inst(looped, &types);
        self.maker.made.push(looped);

        // The second half of the last iteration.
        let results = self.maker.func.dfg.insts[looped].results.iter().copied();
        let mut map: Map = alive.iter().copied().zip(results).collect();
        self.copy(&split.second, &mut map);
        let results = split.yields.iter().map(|&v| now(&map, v)).collect();
        (results, body)
    }

    /// What an iteration of the loop finds of the one whose second half it is.
    fn alive(&self, counter: Value) -> Vec<Value> {
        let counter = self.split.counter_crosses.then_some(counter);
        let values = self.split.crossing.iter().copied();
        values.chain(counter).collect()
    }

    /// The end of a loop that leaves the last iteration out, where there is one: `hi - step`, which may be less than any counter.
    fn end(&mut self, [lo, hi, step]: [Value; 3]) -> Value {
        let ty = self.maker.func.dfg.ty(lo);
        let end = self.maker.value(TileOp::Isub, &[hi, step], &[], ty);
        let least = i64::MIN >> (64 - ty.elem.bits());
        let is_less = match (signed(self.maker.func, lo), signed(self.maker.func, step)) {
            (Some(lo), Some(step)) => lo.checked_sub(step).is_none_or(|end| end < least),
            _ => true,
        };
        if !is_less {
            return end;
        }
        let distance = self.maker.value(TileOp::Isub, &[hi, lo], &[], ty);
        let attrs = [make::ipred(IntPred::Ult)];
        let truth = TileType::scalar(Elem::I1);
        let goes_on = self
            .maker
            .value(TileOp::Icmp, &[step, distance], &attrs, truth);
        self.maker
            .value(TileOp::Select, &[goes_on, end, lo], &[], ty)
    }

    fn copy(&mut self, insts: &[Inst], map: &mut Map) {
        for &inst in insts {
            let copy = copy_of(self.maker.func, inst, map);
            self.maker.made.push(copy);
        }
    }
}

/// What stands for a value; for one from outside itself.
fn now(map: &Map, value: Value) -> Value {
    map.get(&value).copied().unwrap_or(value)
}
