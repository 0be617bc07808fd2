//! Loads that meet each element of memory several times beside each other, as loads of fewer elements that are repeated.
//!
//! ```text
//! x = load p : [64,128]        =>        y = load p' : [8,128]
//!                                        x = reshape (broadcast (reshape y : [8,1,128]) : [8,8,128]) : [64,128]
//! ```
//!
//! Eight weights of four bits share a word, and a kernel asks for the word of each (`words + k // 8 * stride`), or groups of rows share
//! a scale. The pointers are then alike over runs, and p' are the first ones of all runs: the same sums and quotients of every eighth
//! index. What is left is a block like others, which copies and tensor maps bring, and of which a thread loads what it needs once.
//!
//! What goes to a product as it is stays: units read it where copies brought it, and would wait for threads that repeat it. (An H100,
//! weights of four bits times one row: 22.8 us, not 16.7.) Any other load is taken if every value between its pointers and indices of
//! elements can be computed for fewer; what a loop carries is carried for these, too. What is promised of a block is not so of the first
//! elements of its runs, and is left out.

mod quotients;
#[cfg(test)]
mod tests;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::carried::Carried;
use super::edit::rename_uses;
use crate::analysis::axis::Axis;
use crate::ir::attrs::{Attrs, make};
use crate::ir::dfg::InstData;
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::function::TileFunction;
use crate::ir::level::Tile;
use crate::ir::maker::Maker;
use crate::ir::ops::TileOp;
use crate::ir::types::TileType;
use crate::linear_layout::shape::Shape;

/// For each dimension the exponent of the length of runs of which one element is kept.
type Runs = SmallVec<[u8; 4]>;

/// Ops whose results may be alike over runs where indices are not.
const COARSE: [TileOp; 4] = [TileOp::Sdiv, TileOp::Udiv, TileOp::Sshr, TileOp::Ushr];

/// What is promised of a block.
const PROMISES: [TileOp; 3] = [
    TileOp::AssumeMultiple,
    TileOp::AssumeContiguous,
    TileOp::AssumeConstant,
];

/// Narrows loads; gives how many.
pub fn narrow_loads(func: &mut TileFunction) -> usize {
    // Quotients, or one pointer for many elements, tell that there may be something to do.
    let may_repeat = |(_, inst): (Block, Inst)| {
        let data = &func.dfg.insts[inst];
        match data.op {
            TileOp::Load => func
                .dfg
                .def_inst(data.args[0])
                .is_some_and(|def| func.dfg.insts[def].op == TileOp::Broadcast),
            op => COARSE.contains(&op) && func.dfg.ty(data.results[0]).shape.rank() > 0,
        }
    };
    if !func.all_insts().any(may_repeat) {
        return 0;
    }
    let axis = Axis::compute(func);
    let loads: Vec<(Block, Inst)> = func.insts_with(TileOp::Load).collect();
    let mut count = 0;
    for (_, load) in loads {
        let Some(runs) = runs(func, &axis, load) else {
            continue;
        };
        if is_factor(func, func.dfg.insts[load].results[0]) {
            continue;
        }
        let args = func.dfg.insts[load].args.clone();
        let mut seen = Vec::new();
        if args
            .iter()
            .all(|&arg| is_narrowed(func, arg, &runs, &mut seen))
        {
            Narrower::new(func, &axis).load(load, &runs);
            count += 1;
        }
    }
    count
}

/// Whether a block is the operand of products and nothing else.
fn is_factor(func: &TileFunction, value: Value) -> bool {
    let mut insts = func.all_insts().map(|(_, inst)| inst);
    let mut is_read = false;
    let only = insts.all(|inst| {
        let data = &func.dfg.insts[inst];
        let reads = func.dfg.uses(inst).any(|arg| arg == value);
        is_read |= reads;
        let is_moved = || data.op == TileOp::Permute && is_factor(func, data.results[0]);
        !reads || data.op == TileOp::Dot || is_moved()
    });
    is_read && only
}

/// How long the runs are over which a load's pointers and mask are alike; none if there are none.
fn runs(func: &TileFunction, axis: &Axis, load: Inst) -> Option<Runs> {
    let data = &func.dfg.insts[load];
    let shape = func.dfg.ty(data.results[0]).shape;
    if data.volatile().is_some() {
        return None;
    }
    let of = |dim: usize, &extent: &u8| {
        let alike = data.args.iter().map(|&arg| {
            let constancy = axis.info(arg).dim(dim).constancy;
            axis.capped(&constancy, extent)
        });
        alike.min().unwrap_or(0).min(extent)
    };
    let found: Runs = shape
        .log2()
        .iter()
        .enumerate()
        .map(|(dim, extent)| of(dim, extent))
        .collect();
    found.iter().any(|&run| run > 0).then_some(found)
}

/// The operand of an op that repeats it, or gives it a dimension more, and the runs of that; none of other ops.
fn of_fewer(func: &TileFunction, data: &InstData<Tile>, runs: &Runs) -> Option<(Value, Runs)> {
    let &source = data.args.first()?;
    match data.op {
        TileOp::Broadcast => {
            let extents = func.dfg.ty(source).shape;
            let each = extents.log2().iter().zip(runs);
            let kept = each.map(|(&extent, &run)| if extent == 0 { 0 } else { run });
            Some((source, kept.collect()))
        }
        TileOp::ExpandDims => {
            let mut inner = runs.clone();
            inner.remove(usize::from(*data.axis()?));
            Some((source, inner))
        }
        _ => None,
    }
}

/// Whether a value can be computed for the first element of each run.
fn is_narrowed(
    func: &TileFunction,
    value: Value,
    runs: &Runs,
    seen: &mut Vec<(Value, Runs)>,
) -> bool {
    if runs.iter().all(|&run| run == 0) {
        return true;
    }
    let key = (value, runs.clone());
    if seen.contains(&key) {
        return true;
    }
    seen.push(key);
    if let Some(carried) = Carried::of(func, value) {
        return is_narrowed(func, carried.first(func), runs, seen)
            && carried
                .yielded(func)
                .is_some_and(|next| is_narrowed(func, next, runs, seen));
    }
    let Some(inst) = func.dfg.def_inst(value) else {
        return false;
    };
    let data = &func.dfg.insts[inst];
    if let Some((source, runs)) = of_fewer(func, data, runs) {
        return is_narrowed(func, source, &runs, seen);
    }
    match data.op {
        TileOp::Arange | TileOp::Const | TileOp::Splat => true,
        _ if data.is_elementwise() && data.is_pure() => data
            .args
            .iter()
            .all(|&arg| is_narrowed(func, arg, runs, seen)),
        _ => false,
    }
}

/// Computes values for the first element of each run.
struct Narrower<'a> {
    func: &'a mut TileFunction,
    /// Facts of the values that were there before.
    axis: &'a Axis,
    made: FxHashMap<(Value, Runs), Value>,
}

impl<'a> Narrower<'a> {
    fn new(func: &'a mut TileFunction, axis: &'a Axis) -> Self {
        Narrower {
            func,
            axis,
            made: FxHashMap::default(),
        }
    }

    fn load(&mut self, load: Inst, runs: &Runs) {
        let data = self.func.dfg.insts[load].clone();
        let args: Vec<Value> = data
            .args
            .iter()
            .map(|&arg| self.narrow(arg, runs))
            .collect();
        let result = data.results[0];
        let ty = self.func.dfg.ty(result);
        let mut maker = Maker::near(self.func, load);
        let few = maker.value(TileOp::Load, &args, &data.attrs, narrowed(ty, runs));
        let many = repeated(&mut maker, few, ty, runs);
        let made = maker.made;
        rename_uses(self.func, result, many);
        self.func.order.insert_before(load, &made);
        if let Some(block) = self.func.order.block_of(load) {
            self.func.order.retain(block, |inst| inst != load);
        }
    }

    /// A value for the first element of each run.
    fn narrow(&mut self, value: Value, runs: &Runs) -> Value {
        if runs.iter().all(|&run| run == 0) {
            return value;
        }
        let key = (value, runs.clone());
        if let Some(&made) = self.made.get(&key) {
            return made;
        }
        if let Some(carried) = Carried::of(self.func, value) {
            return self.carry(carried, key);
        }
        let Some(inst) = self.func.dfg.def_inst(value) else {
            return value;
        };
        let data = self.func.dfg.insts[inst].clone();
        if PROMISES.contains(&data.op) {
            return self.narrow(data.args[0], runs);
        }
        if let Some(new) = self.quotient(inst, runs) {
            self.made.insert(key, new);
            return new;
        }
        let fewer = of_fewer(self.func, &data, runs);
        let args: Vec<Value> = match (data.op, fewer) {
            (_, Some((source, runs))) => vec![self.narrow(source, &runs)],
            (TileOp::Splat, _) => data.args.to_vec(),
            _ => data
                .args
                .iter()
                .map(|&arg| self.narrow(arg, runs))
                .collect(),
        };
        let new = self.near(inst, |maker| {
            let ty = narrowed(maker.func.dfg.ty(value), runs);
            match data.op {
                TileOp::Arange => every(maker, *data.start().unwrap_or(&0), ty, runs[0]),
                _ => again(maker, &data, &args, ty),
            }
        });
        self.made.insert(key, new);
        new
    }

    /// What a loop carries, carried for the first element of each run, too.
    fn carry(&mut self, carried: Carried, key: (Value, Runs)) -> Value {
        let runs = key.1.clone();
        let ty = narrowed(self.func.dfg.ty(key.0), &runs);
        let first = self.narrow(carried.first(self.func), &runs);
        let body = carried.body(self.func);
        let param = self.func.dfg.append_param(body, ty);
        self.made.insert(key, param);
        self.func.dfg.insts[carried.inst].args.push(first);
        self.func.dfg.append_result(carried.inst, ty);
        let last = self.func.order.last(body);
        if let (Some(last), Some(next)) = (last, carried.yielded(self.func)) {
            // It keeps its place where the next one needs more values to be carried.
            let place = self.func.dfg.insts[last].args.len();
            self.func.dfg.insts[last].args.push(next);
            self.func.dfg.insts[last].args[place] = self.narrow(next, &runs);
        }
        param
    }

    /// A value that is made behind an instruction.
    fn near(&mut self, inst: Inst, make: impl FnOnce(&mut Maker<'_, Tile>) -> Value) -> Value {
        let mut maker = Maker::near(self.func, inst);
        let value = make(&mut maker);
        let made = maker.made;
        self.func.order.insert_after(inst, &made);
        value
    }
}

/// An op on other operands, with a result of the type.
fn again(
    maker: &mut Maker<'_, Tile>,
    data: &InstData<Tile>,
    args: &[Value],
    ty: TileType,
) -> Value {
    match data.op {
        TileOp::Broadcast if maker.func.dfg.ty(args[0]) == ty => args[0],
        _ => maker.value(data.op, args, &data.attrs, ty),
    }
}

/// Every 2^run-th number from `start` on.
fn every(maker: &mut Maker<'_, Tile>, start: i32, ty: TileType, run: u8) -> Value {
    if run == 0 {
        return maker.value(TileOp::Arange, &[], &[make::start(start)], ty);
    }
    let index = maker.value(TileOp::Arange, &[], &[make::start(0)], ty);
    let distance = maker.number(1 << run, ty);
    let places = maker.value(TileOp::Imul, &[index, distance], &[], ty);
    match start {
        0 => places,
        _ => {
            let start = maker.number(i64::from(start), ty);
            maker.value(TileOp::Iadd, &[places, start], &[], ty)
        }
    }
}

fn shape_of(extents: &[u64], or: Shape) -> Shape {
    // Extents of parts of a shape, so nothing is refused.
    Shape::new(extents).unwrap_or(or)
}

/// The type of a block with one element for each run.
fn narrowed(ty: TileType, runs: &Runs) -> TileType {
    let extents: SmallVec<[u64; 4]> = runs
        .iter()
        .enumerate()
        .map(|(dim, run)| ty.shape.extent(dim) >> run)
        .collect();
    ty.with_shape(shape_of(&extents, ty.shape))
}

/// A block of the type that repeats each element of another one over a run.
fn repeated(maker: &mut Maker<'_, Tile>, few: Value, ty: TileType, runs: &Runs) -> Value {
    let from = maker.func.dfg.ty(few);
    let (mut apart, mut spread): (SmallVec<[u64; 8]>, SmallVec<[u64; 8]>) = Default::default();
    for (dim, &run) in runs.iter().enumerate() {
        let extent = from.shape.extent(dim);
        // Of a run as long as the dimension one element is left, which is repeated in its place.
        if run == 0 || extent == 1 {
            apart.push(extent);
            spread.push(extent << run);
        } else {
            apart.extend([extent, 1]);
            spread.extend([extent, 1 << run]);
        }
    }
    let mut value = few;
    if apart.len() > runs.len() {
        value = maker.value(
            TileOp::Reshape,
            &[value],
            &[],
            from.with_shape(shape_of(&apart, from.shape)),
        );
    }
    value = maker.value(
        TileOp::Broadcast,
        &[value],
        &[],
        ty.with_shape(shape_of(&spread, ty.shape)),
    );
    if apart.len() > runs.len() {
        value = maker.value(TileOp::Reshape, &[value], &[], ty);
    }
    value
}
