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
//! weights of four bits times one row: 22.8 us, not 16.7.) Else a load is taken if every value between its pointers and indices of elements has an instruction for fewer elements; what a loop carries
//! is carried for these, too.

mod quotients;
#[cfg(test)]
mod tests;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::edit::rename_uses;
use super::maker::Maker;
use crate::analysis::axis::Axis;
use crate::ir::attrs::{Attrs, make};
use crate::ir::dfg::ValueDef;
use crate::ir::effects::OpClass;
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::function::TileFunction;
use crate::ir::ops::TileOp;
use crate::ir::types::TileType;
use crate::linear_layout::shape::Shape;

/// For each dimension the exponent of the length of runs of which one element is kept.
type Runs = SmallVec<[u8; 4]>;

/// Ops whose results may be alike over runs where indices are not.
const COARSE: [TileOp; 4] = [TileOp::Sdiv, TileOp::Udiv, TileOp::Sshr, TileOp::Ushr];

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

/// The runs of an operand of a `broadcast`, which has one element where the result has many.
fn of_source(shape: Shape, runs: &Runs) -> Runs {
    let each = shape.log2().iter().zip(runs);
    each.map(|(&extent, &run)| if extent == 0 { 0 } else { run })
        .collect()
}

/// The runs of an operand of an `expand_dims`.
fn without(runs: &Runs, dim: usize) -> Runs {
    let mut inner = runs.clone();
    inner.remove(dim);
    inner
}

/// Where the parameter of a loop's body comes from: the loop, and its position among what is carried.
fn carried(func: &TileFunction, value: Value) -> Option<(Inst, usize)> {
    let ValueDef::Param(block, index) = func.dfg.values[value].def else {
        return None;
    };
    let position = usize::from(index).checked_sub(1)?;
    let (_, inst) = func
        .insts_with(TileOp::For)
        .find(|&(_, inst)| func.dfg.insts[inst].blocks[0].block == block)?;
    Some((inst, position))
}

fn yielded(func: &TileFunction, inst: Inst, position: usize) -> Option<Value> {
    let last = func.order.last(func.dfg.insts[inst].blocks[0].block)?;
    func.dfg.insts[last].args.get(position).copied()
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
    if let Some((inst, position)) = carried(func, value) {
        let first = func.dfg.insts[inst].args[3 + position];
        let next = yielded(func, inst, position);
        return is_narrowed(func, first, runs, seen)
            && next.is_some_and(|next| is_narrowed(func, next, runs, seen));
    }
    let Some(inst) = func.dfg.def_inst(value) else {
        return false;
    };
    let data = &func.dfg.insts[inst];
    match data.op {
        TileOp::Arange | TileOp::Const | TileOp::Splat => true,
        TileOp::Broadcast => {
            let source = data.args[0];
            is_narrowed(
                func,
                source,
                &of_source(func.dfg.ty(source).shape, runs),
                seen,
            )
        }
        TileOp::ExpandDims => data.axis().is_some_and(|&axis| {
            is_narrowed(func, data.args[0], &without(runs, axis as usize), seen)
        }),
        _ if data.class() == OpClass::Elementwise && data.is_pure() => data
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
        let mut maker = Maker::new(self.func);
        maker.loc = data.loc;
        let few = maker.value(TileOp::Load, &args, &data.attrs, narrowed(ty, runs));
        let many = repeated(&mut maker, few, ty, runs);
        let made = maker.made;
        rename_uses(self.func, result, many);
        self.place(load, 0, &made);
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
        if let Some((inst, position)) = carried(self.func, value) {
            return self.carry(inst, position, key);
        }
        let Some(inst) = self.func.dfg.def_inst(value) else {
            return value;
        };
        let data = self.func.dfg.insts[inst].clone();
        if let Some(new) = self.quotient(inst, runs) {
            self.made.insert(key, new);
            return new;
        }
        let args: Vec<Value> = match data.op {
            TileOp::Splat => data.args.to_vec(),
            TileOp::Broadcast => {
                let source = data.args[0];
                vec![self.narrow(source, &of_source(self.func.dfg.ty(source).shape, runs))]
            }
            TileOp::ExpandDims => {
                let axis = data.axis().map_or(0, |&axis| axis as usize);
                vec![self.narrow(data.args[0], &without(runs, axis))]
            }
            _ => data
                .args
                .iter()
                .map(|&arg| self.narrow(arg, runs))
                .collect(),
        };
        let ty = narrowed(self.func.dfg.ty(value), runs);
        let mut maker = Maker::new(self.func);
        maker.loc = data.loc;
        let new = match data.op {
            TileOp::Arange => every(&mut maker, *data.start().unwrap_or(&0), ty, runs[0]),
            _ if data.op == TileOp::Broadcast && maker.func.dfg.ty(args[0]) == ty => args[0],
            _ => maker.value(data.op, &args, &data.attrs, ty),
        };
        let made = maker.made;
        self.place(inst, 1, &made);
        self.made.insert(key, new);
        new
    }

    /// What a loop carries, carried for the first element of each run, too.
    fn carry(&mut self, inst: Inst, position: usize, key: (Value, Runs)) -> Value {
        let runs = key.1.clone();
        let data = &self.func.dfg.insts[inst];
        let (first, body) = (data.args[3 + position], data.blocks[0].block);
        let ty = narrowed(self.func.dfg.ty(key.0), &runs);
        let first = self.narrow(first, &runs);
        let param = self.func.dfg.append_param(body, ty);
        self.made.insert(key, param);
        self.func.dfg.insts[inst].args.push(first);
        self.func.dfg.append_result(inst, ty);
        let last = self.func.order.last(body);
        if let (Some(last), Some(next)) = (last, yielded(self.func, inst, position)) {
            let next = self.narrow(next, &runs);
            self.func.dfg.insts[last].args.push(next);
        }
        param
    }

    fn place(&mut self, beside: Inst, behind: usize, made: &[Inst]) {
        let Some(block) = self.func.order.block_of(beside) else {
            return;
        };
        let at = self
            .func
            .order
            .insts(block)
            .iter()
            .position(|&inst| inst == beside);
        for (i, &inst) in made.iter().enumerate() {
            self.func
                .order
                .insert(block, at.unwrap_or(0) + behind + i, inst);
        }
    }
}

/// Every 2^run-th number from `start` on.
fn every(maker: &mut Maker<'_>, start: i32, ty: TileType, run: u8) -> Value {
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
fn repeated(maker: &mut Maker<'_>, few: Value, ty: TileType, runs: &Runs) -> Value {
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
