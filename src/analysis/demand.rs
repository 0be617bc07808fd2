//! Which elements of a block matter.
//!
//! Per value and dimension: nothing, what lies below bounds, or everything. What is stored under `x < E` matters there alone, and
//! so do the rows of the product that it was made of, and the rows of the left operand. What flows into addresses, conditions,
//! along a reduction or the sum of a product, into atomic operations, prints and foreign code matters everywhere, and so does what
//! this file knows nothing about.
//!
//! One backward walk after another until nothing changes: bounds only get fewer.

use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};

use super::affine::{Below, Forms, Poly, Values};
use super::program::{ProgramOrder, WalkStep};
use crate::ir::attrs::Attrs;
use crate::ir::effects::OpClass;
use crate::ir::entities::{Inst, Value};
use crate::ir::function::TileFunction;
use crate::ir::ops::TileOp;

/// Elements for which `x < bound`; the index of the dimension that it is about is dimension 0 of `x`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Bound {
    /// A number of one index.
    pub x: Poly,
    /// A number without indices.
    pub than: Poly,
    /// Bits of both.
    pub bits: u32,
}

/// Along each dimension the bounds below all of which elements matter: everywhere, if there are none.
type Dims = SmallVec<[SmallVec<[u32; 2]>; 4]>;

/// What of each value matters.
#[derive(Debug, Default)]
pub struct Demand {
    bounds: Vec<(Bound, Values)>,
    numbers: FxHashMap<Bound, u32>,
    /// Values of which anything matters.
    of: FxHashMap<Value, Dims>,
    changed: bool,
}

impl Bound {
    /// What a comparison says along its only dimension.
    pub fn of(below: &Below) -> Option<(u8, Bound)> {
        let dims = below.less.dims();
        let [dim] = dims[..] else {
            return None;
        };
        let is_bound = below.than.dims().is_empty();
        is_bound.then(|| (dim, Bound::along(dim, &below.less, &below.than, below.bits)))
    }

    /// The elements with `x < than`, of which `x` has the index of one dimension.
    pub fn along(dim: u8, x: &Poly, than: &Poly, bits: u32) -> Bound {
        Bound {
            x: x.map_dims(|d| (d == dim).then_some(0)),
            than: than.clone(),
            bits,
        }
    }
}

impl Demand {
    /// What of each value matters.
    pub fn compute(func: &TileFunction, order: &ProgramOrder, forms: &mut Forms<'_>) -> Demand {
        let mut demand = Demand::default();
        loop {
            demand.changed = false;
            for &step in order.steps().iter().rev() {
                if let WalkStep::Inst(inst) | WalkStep::Leave(inst) = step {
                    demand.visit(func, order, forms, inst);
                }
            }
            if !demand.changed {
                return demand;
            }
        }
    }

    /// Whether only elements below a bound matter along a dimension: then what must not have wrapped for the bound to be one.
    pub fn below(&self, value: Value, dim: u8, bound: &Bound) -> Option<Values> {
        let Some(dims) = self.of.get(&value) else {
            return Some(Values::new());
        };
        let number = self.numbers.get(bound)?;
        let bounds = dims.get(usize::from(dim))?;
        bounds
            .contains(number)
            .then(|| self.bounds[*number as usize].1.clone())
    }

    fn number(&mut self, bound: Bound, exact: &Values) -> u32 {
        let next = self.bounds.len() as u32;
        let number = *self.numbers.entry(bound.clone()).or_insert(next);
        match self.bounds.get_mut(number as usize) {
            Some((_, known)) => {
                let new = exact.iter().filter(|v| !known.contains(v));
                let new: Values = new.copied().collect();
                known.extend(new);
            }
            None => self.bounds.push((bound, exact.clone())),
        }
        number
    }

    /// These elements of a value matter, too.
    fn need(&mut self, value: Value, dims: Dims) {
        match self.of.get_mut(&value) {
            None => {
                self.of.insert(value, dims);
                self.changed = true;
            }
            Some(known) => {
                for (known, dims) in known.iter_mut().zip(&dims) {
                    let before = known.len();
                    known.retain(|bound| dims.contains(bound));
                    self.changed |= known.len() < before;
                }
            }
        }
    }

    fn need_all(&mut self, func: &TileFunction, value: Value) {
        self.need(value, everything(func, value));
    }

    fn visit(
        &mut self,
        func: &TileFunction,
        order: &ProgramOrder,
        forms: &mut Forms<'_>,
        inst: Inst,
    ) {
        let data = &func.dfg.insts[inst];
        let result = match data.results[..] {
            [result] => self.of.get(&result).cloned(),
            _ => None,
        };
        match data.op {
            TileOp::Store | TileOp::AtomicRmw => {
                // What an atomic op gives is what memory was, whatever is needed of it.
                let bounds = match data.args.get(2) {
                    Some(&mask) => {
                        self.need_all(func, mask);
                        self.masked(func, forms, mask)
                    }
                    None => everything(func, data.args[0]),
                };
                self.need(data.args[0], bounds.clone());
                self.need(data.args[1], bounds);
            }
            TileOp::For => {
                for &arg in &data.args[..3] {
                    self.need_all(func, arg);
                }
                let (inits, body) = (data.args[3..].to_vec(), data.blocks[0].block);
                let params = func.dfg.blocks[body].params[1..].to_vec();
                let yielded = func.order.last(body);
                let yielded = yielded.map_or(Vec::new(), |i| func.dfg.insts[i].args.to_vec());
                for (i, &init) in inits.iter().enumerate() {
                    let inside = self.of.get(&params[i]).cloned();
                    let inside = inside.map(|dims| self.outside(forms, inst, dims));
                    let behind = self.of.get(&data.results[i]).cloned();
                    for dims in [inside, behind].into_iter().flatten() {
                        self.need(init, dims.clone());
                        if let Some(&next) = yielded.get(i) {
                            self.need(next, dims);
                        }
                    }
                }
            }
            TileOp::If => {
                self.need_all(func, data.args[0]);
                for call in &data.blocks {
                    let last = func.order.last(call.block);
                    let yielded = last.map_or(Vec::new(), |i| func.dfg.insts[i].args.to_vec());
                    for (i, value) in yielded.into_iter().enumerate() {
                        if let Some(dims) = self.of.get(&data.results[i]).cloned() {
                            self.need(value, dims);
                        }
                    }
                }
            }
            TileOp::Yield => {
                let block = func.order.block_of(inst);
                let owner = block.and_then(|block| order.owner(block));
                let owner = owner.map(|owner| func.dfg.insts[owner].op);
                if !matches!(owner, Some(TileOp::For | TileOp::If)) {
                    self.all_operands(func, inst);
                }
            }
            TileOp::Reduce | TileOp::Scan => {
                let axis = usize::from(data.axis().copied().unwrap_or(0));
                for i in 0..data.args.len() {
                    // All results are made of all operands.
                    let needed = data.results.iter().filter_map(|r| self.of.get(r)).cloned();
                    for mut dims in needed.collect::<Vec<_>>() {
                        match data.op {
                            TileOp::Reduce => dims.insert(axis.min(dims.len()), smallvec![]),
                            _ => dims[axis].clear(),
                        }
                        self.need(data.args[i], dims);
                    }
                }
            }
            _ if data.has_effect() || !func.regions(inst).eq([]) => self.all_operands(func, inst),
            _ => {
                if let Some(dims) = result {
                    self.through(func, inst, dims);
                }
            }
        }
    }

    /// What operands matter for these elements of the only result.
    fn through(&mut self, func: &TileFunction, inst: Inst, dims: Dims) {
        let data = &func.dfg.insts[inst];
        let rank = |value: Value| func.dfg.ty(value).shape.rank();
        match data.op {
            TileOp::Dot => {
                let last = dims.len().saturating_sub(1);
                let (mut a, mut b) = (dims.clone(), dims.clone());
                if last > 0 {
                    a[last].clear();
                    b[last - 1].clear();
                }
                for (&arg, dims) in data.args.iter().zip([a, b, dims]) {
                    self.need(arg, dims);
                }
            }
            TileOp::Splat => self.need_all(func, data.args[0]),
            TileOp::Broadcast => {
                let from = func.dfg.ty(data.args[0]).shape;
                let kept = |(dim, bounds): (usize, SmallVec<[u32; 2]>)| match from.extent(dim) {
                    1 => smallvec![],
                    _ => bounds,
                };
                let dims = dims.into_iter().enumerate().map(kept).collect();
                self.need(data.args[0], dims);
            }
            TileOp::ExpandDims => {
                let mut dims = dims;
                let axis = usize::from(data.axis().copied().unwrap_or(0));
                if axis < dims.len() {
                    dims.remove(axis);
                }
                self.need(data.args[0], dims);
            }
            TileOp::Permute => {
                let mut from: Dims = smallvec![smallvec![]; dims.len()];
                for (to, &dim) in data.dims().into_iter().flatten().enumerate() {
                    from[dim as usize] = dims[to].clone();
                }
                self.need(data.args[0], from);
            }
            TileOp::Reshape => {
                let [from, to] = [data.args[0], data.results[0]].map(|v| func.dfg.ty(v).shape);
                // Indices that the other shape has, too.
                let kept = (0..from.rank()).map(|dim| {
                    let same = (0..to.rank()).find(|&other| to.place(other) == from.place(dim));
                    same.and_then(|dim| dims.get(dim).cloned())
                        .unwrap_or_default()
                });
                self.need(data.args[0], kept.collect());
            }
            TileOp::Join => {
                let mut dims = dims;
                dims.truncate(dims.len().saturating_sub(1));
                for &arg in &data.args {
                    let mut dims = dims.clone();
                    dims.resize(rank(arg), smallvec![]);
                    self.need(arg, dims);
                }
            }
            TileOp::Split => {
                let mut dims = dims;
                dims.resize(rank(data.args[0]), smallvec![]);
                self.need(data.args[0], dims);
            }
            TileOp::ConvertLayout => self.need(data.args[0], dims),
            // A promise is one about all elements.
            TileOp::AssumeMultiple | TileOp::AssumeContiguous | TileOp::AssumeConstant => {
                self.all_operands(func, inst);
            }
            TileOp::InlinePtx => self.all_operands(func, inst),
            _ if data.class() == OpClass::Elementwise => {
                for &arg in &data.args {
                    self.need(arg, dims.clone());
                }
            }
            _ => self.all_operands(func, inst),
        }
    }

    fn all_operands(&mut self, func: &TileFunction, inst: Inst) {
        for value in func.dfg.uses(inst).collect::<Vec<_>>() {
            self.need_all(func, value);
        }
    }

    /// The elements for which a mask is true, or more.
    fn masked(&mut self, func: &TileFunction, forms: &mut Forms<'_>, mask: Value) -> Dims {
        let mut dims = everything(func, mask);
        for below in forms.conjunction(mask).below {
            if let Some((dim, bound)) = Bound::of(&below)
                && let Some(dims) = dims.get_mut(usize::from(dim))
            {
                let number = self.number(bound, &below.exact);
                if !dims.contains(&number) {
                    dims.push(number);
                }
            }
        }
        dims
    }

    /// Without bounds that differ from iteration to iteration of a loop: what was carried was made in another one.
    fn outside(&self, forms: &Forms<'_>, inst: Inst, mut dims: Dims) -> Dims {
        for bounds in &mut dims {
            bounds.retain(|&mut number| {
                let (bound, _) = &self.bounds[number as usize];
                let mut atoms = bound.x.atoms().chain(bound.than.atoms());
                !atoms.any(|atom| forms.varies(atom, inst))
            });
        }
        dims
    }
}

/// All elements of a value.
fn everything(func: &TileFunction, value: Value) -> Dims {
    smallvec![smallvec![]; func.dfg.ty(value).shape.rank()]
}
