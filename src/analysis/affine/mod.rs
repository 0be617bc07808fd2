//! Integers and pointers as sums of products: what an element of a block is, from the scalars it is made of and its indices.
//!
//! `(row * 128 + arange)[:, None] * stride + k[None, :]` is `128 row stride + stride i0 + i1`, with `i0` and `i1` the indices of
//! the element. What a loop moves on by the same amount in each iteration is its start plus that amount times the iterations that
//! are over ([`Atom::Trip`]), and so is the counter of the loop. Scalars of which nothing better is known stand for themselves.
//!
//! **Wrap.** Sums, differences and products are those of the ring of integers modulo 2^bits, in which the form is right in any
//! case. Numbers of 32 bits become addresses and comparisons, though, where the sum itself matters: those of which the form took
//! for granted that they did not wrap are in [`AffineForm::exact`]. Who uses a form proves that, or asks the launcher to check it
//! ([`reach`]).
//!
//! **Clamps.** `x % E`, `min(x, E - 1)` and `where(x < E, x, ..)` are `x` wherever `x < E`. A form goes on with `x` and notes that
//! ([`AffineForm::clamps`]): who uses it shows that other elements do not matter ([`super::demand`]).

pub mod host;
mod poly;
pub mod reach;
#[cfg(test)]
mod tests;

use std::rc::Rc;

use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};

use super::constants::iterations;
use super::program::ProgramOrder;
use crate::ir::attrs::{Attrs, IntPred};
use crate::ir::dfg::{InstData, ValueDef};
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::function::TileFunction;
use crate::ir::level::Tile;
use crate::ir::ops::{Opcode, TileOp};
use crate::ir::types::Elem;
use crate::linear_layout::shape::Shape;

pub use poly::{Atom, Monomial, Poly};

/// How deep expressions are followed.
const MAX_DEPTH: u32 = 200;
/// Steps in which a loop may move a number on.
const MAX_STEPS: usize = 64;

/// Values of a form.
pub type Values = SmallVec<[Value; 4]>;

/// That some elements are another number than a form says: those with `x >= bound`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clamp {
    /// A number of one index.
    pub x: Poly,
    /// A number without indices.
    pub bound: Poly,
    /// Bits of both.
    pub bits: u32,
    /// What is `x`, before its shape was changed.
    pub value: Value,
    /// Whether `x` must not be negative either.
    pub wraps: bool,
}

/// What the elements of a value are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AffineForm {
    /// Of a pointer, where it starts from.
    pub base: Option<Value>,
    /// The number; of a pointer, the elements from its base.
    pub poly: Poly,
    /// What must not have wrapped for that to be true.
    pub exact: Values,
    /// Elements for which it is not.
    pub clamps: SmallVec<[Clamp; 2]>,
}

impl AffineForm {
    fn number(poly: Poly) -> AffineForm {
        AffineForm {
            poly,
            ..AffineForm::default()
        }
    }

    fn map_dims(&self, name: impl Fn(u8) -> Option<u8>) -> AffineForm {
        let clamps = self.clamps.iter().cloned().map(|clamp| Clamp {
            x: clamp.x.map_dims(&name),
            ..clamp
        });
        AffineForm {
            poly: self.poly.map_dims(&name),
            clamps: clamps.collect(),
            ..self.clone()
        }
    }

    /// Two forms that one is made of by the sum or product `poly`.
    fn join(&self, other: &AffineForm, poly: Poly) -> AffineForm {
        let mut out = self.clone();
        out.poly = poly;
        out.exact.extend(other.exact.iter().copied());
        out.clamps.extend(other.clamps.iter().cloned());
        out
    }
}

/// A comparison that is true where `less < than`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Below {
    /// The left side.
    pub less: Poly,
    /// The right side.
    pub than: Poly,
    /// Bits of both.
    pub bits: u32,
    /// What must not have wrapped for the sides to be what is compared.
    pub exact: Values,
    /// What is compared.
    pub sides: [Value; 2],
}

/// Comparisons whose conjunction a mask is.
#[derive(Clone, Debug, Default)]
pub struct Conjunction {
    /// Those with forms.
    pub below: Vec<Below>,
    /// Whether there is nothing else.
    pub is_all: bool,
}

/// The forms of a function's values.
#[derive(Debug)]
pub struct Forms<'a> {
    /// The function.
    pub func: &'a TileFunction,
    /// Who owns its regions.
    pub order: &'a ProgramOrder,
    memo: FxHashMap<Value, Option<Rc<AffineForm>>>,
    /// Scalars by what they are; those of 32 bits, met first.
    known: FxHashMap<Poly, Vec<Value>>,
    /// Exponents of what the author promised to divide scalars.
    promised: FxHashMap<Poly, u8>,
    /// Whether scalars of 32 bits that become 64 bits wide are told apart from what they are made of.
    are_whole: bool,
    depth: u32,
}

impl<'a> Forms<'a> {
    /// Forms are computed when they are asked for.
    pub fn new(func: &'a TileFunction, order: &'a ProgramOrder) -> Forms<'a> {
        Forms {
            are_whole: false,
            func,
            order,
            memo: FxHashMap::default(),
            known: FxHashMap::default(),
            promised: FxHashMap::default(),
            depth: 0,
        }
    }

    /// Forms in which a scalar of 32 bits that becomes 64 bits wide is one number, whatever it is computed from: its sums may have wrapped.
    pub fn of_whole_numbers(func: &'a TileFunction, order: &'a ProgramOrder) -> Forms<'a> {
        Forms {
            are_whole: true,
            ..Forms::new(func, order)
        }
    }

    /// The form of an integer or pointer; none of blocks of which nothing is known.
    pub fn form(&mut self, value: Value) -> Option<Rc<AffineForm>> {
        if let Some(known) = self.memo.get(&value) {
            return known.clone();
        }
        // What stands for itself is also what those see that it is made of.
        let opaque = self.opaque(value).map(Rc::new);
        if self.depth >= MAX_DEPTH {
            return opaque;
        }
        self.memo.insert(value, opaque.clone());
        self.depth += 1;
        let found = self.compute(value).map(Rc::new).or(opaque);
        self.depth -= 1;
        let ty = self.func.dfg.ty(value);
        if let Some(form) = &found
            && ty.is_scalar()
            && ty.elem == Elem::I32
            && self.holds_modulo(form)
        {
            self.known.entry(form.poly.clone()).or_default().push(value);
        }
        self.memo.insert(value, found.clone());
        found
    }

    /// Whether a form is right modulo 2^32, though sums of 32 bits may have wrapped: nothing narrower was made wider.
    pub fn holds_modulo(&self, form: &AffineForm) -> bool {
        let bits = |value: Value| self.func.dfg.ty(value).elem.bits();
        form.clamps.is_empty() && form.exact.iter().all(|&value| 32 <= bits(value))
    }

    /// Scalars of 32 bits, among those asked for, that are this number modulo 2^32.
    pub fn known(&self, poly: &Poly) -> &[Value] {
        self.known.get(poly).map_or(&[], |values| values)
    }

    /// Exponent of a power of two that the author promised to divide a number, of what was asked for.
    pub fn promised(&self, poly: &Poly) -> u8 {
        self.promised.get(poly).copied().unwrap_or(0)
    }

    /// All promises.
    pub fn promises(&self) -> impl Iterator<Item = (&Poly, u8)> {
        self.promised.iter().map(|(poly, &log2)| (poly, log2))
    }

    fn opaque(&self, value: Value) -> Option<AffineForm> {
        let ty = self.func.dfg.ty(value);
        if !ty.is_scalar() {
            return None;
        }
        match ty.elem {
            Elem::Ptr(..) => Some(AffineForm {
                base: Some(value),
                ..AffineForm::default()
            }),
            Elem::I32 | Elem::I64 => Some(AffineForm::number(Poly::atom(Atom::Value(value)))),
            _ => None,
        }
    }

    fn compute(&mut self, value: Value) -> Option<AffineForm> {
        match self.func.dfg.values[value].def {
            ValueDef::Result(inst, _) => self.result(inst, value),
            ValueDef::Param(block, index) => {
                let owner = self.order.owner(block)?;
                let is_loop = self.func.dfg.insts[owner].op == TileOp::For;
                match (is_loop, usize::from(index).checked_sub(1)) {
                    (false, _) => None,
                    (true, None) => self.counter(owner),
                    (true, Some(position)) => self.carried(owner, position),
                }
            }
        }
    }

    fn result(&mut self, inst: Inst, value: Value) -> Option<AffineForm> {
        let func = self.func;
        let data = &func.dfg.insts[inst];
        let ty = func.dfg.ty(value);
        if data.op == TileOp::Const && ty.elem.is_int() && ty.elem != Elem::I1 {
            let unused = 64 - ty.elem.bits();
            let number = (*data.value()? << unused) as i64 >> unused;
            return Some(AffineForm::number(Poly::constant(number)));
        }
        if data.op == TileOp::Arange {
            let start = Poly::constant(i64::from(*data.start()?));
            let index = match ty.shape.extent(0) {
                1 => Poly::default(),
                _ => Poly::index(0),
            };
            return Some(AffineForm::number(start.plus(&index)?));
        }
        let arg = |i: usize| data.args.get(i).copied();
        match data.op {
            op if op.info().keeps_elements() => {
                let form = self.form(arg(0)?)?;
                let name = dims_behind(func, data)?;
                Some(form.map_dims(|dim| name[usize::from(dim)]))
            }
            TileOp::AssumeMultiple | TileOp::AssumeContiguous | TileOp::AssumeConstant => {
                let form = self.form(arg(0)?)?;
                self.promise(data, value, &form);
                match ty.elem.is_ptr() && ty.is_scalar() && form.poly.is_zero() {
                    // The promise is one about where the pointer starts from.
                    true => None,
                    false => Some((*form).clone()),
                }
            }
            TileOp::Iadd | TileOp::Isub | TileOp::Imul => {
                let (a, b) = (self.form(arg(0)?)?, self.form(arg(1)?)?);
                let poly = match data.op {
                    TileOp::Iadd => a.poly.plus(&b.poly)?,
                    TileOp::Isub => a.poly.minus(&b.poly)?,
                    _ => a.poly.times(&b.poly)?,
                };
                Some(a.join(&b, poly))
            }
            TileOp::Shl => {
                let (a, by) = (self.form(arg(0)?)?, self.form(arg(1)?)?);
                let by = u32::try_from(by.poly.number()?).ok()?;
                if by >= ty.elem.bits() - 1 {
                    return None;
                }
                let poly = a.poly.scaled(1 << by)?;
                Some(a.join(&AffineForm::default(), poly))
            }
            TileOp::Sext => {
                let mut form = (*self.form(arg(0)?)?).clone();
                if self.are_whole && ty.is_scalar() && form.poly.number().is_none() {
                    return self.opaque(arg(0)?);
                }
                form.exact.push(arg(0)?);
                Some(form)
            }
            TileOp::Itrunc => Some((*self.form(arg(0)?)?).clone()),
            TileOp::Addptr => {
                let ptr = self.form(arg(0)?)?;
                let offset = self.form(arg(1)?)?;
                let mut out = ptr.join(&offset, ptr.poly.plus(&offset.poly)?);
                if func.dfg.ty(arg(1)?).elem != Elem::I64 {
                    out.exact.push(arg(1)?);
                }
                Some(out)
            }
            TileOp::Srem | TileOp::Smin if !ty.is_scalar() => {
                let (x, bound) = (self.form(arg(0)?)?, self.form(arg(1)?)?);
                match data.op {
                    TileOp::Srem => self.clamped(arg(0)?, &x, &bound.poly, &bound, true),
                    _ => {
                        let bound_of = |form: &AffineForm| form.poly.plus(&Poly::constant(1));
                        let (value, x, bound) = match bound.poly.dims().is_empty() {
                            true => (arg(0)?, x, bound),
                            false => (arg(1)?, bound, x),
                        };
                        self.clamped(value, &x, &bound_of(&bound)?, &bound, false)
                    }
                }
            }
            TileOp::Select if !ty.is_scalar() && ty.elem.is_int() => {
                let x = self.form(arg(1)?)?;
                let cond = self.conjunction(arg(0)?);
                let [below] = &cond.below[..] else {
                    return None;
                };
                if !cond.is_all || below.less != x.poly || below.bits != ty.elem.bits() {
                    return None;
                }
                let bound = AffineForm {
                    exact: below.exact.clone(),
                    ..AffineForm::default()
                };
                self.clamped(arg(1)?, &x, &below.than, &bound, false)
            }
            _ => None,
        }
    }

    fn clamped(
        &self,
        value: Value,
        x: &AffineForm,
        bound: &Poly,
        other: &AffineForm,
        wraps: bool,
    ) -> Option<AffineForm> {
        let dims = x.poly.dims();
        let is_plain = x.clamps.is_empty() && other.clamps.is_empty();
        if dims.len() != 1 || !bound.dims().is_empty() || !is_plain {
            return None;
        }
        let mut out = x.join(other, x.poly.clone());
        out.clamps.push(Clamp {
            x: x.poly.clone(),
            bound: bound.clone(),
            bits: self.func.dfg.ty(value).elem.bits(),
            value,
            wraps,
        });
        Some(out)
    }

    fn promise(&mut self, data: &InstData<Tile>, value: Value, form: &AffineForm) {
        if data.op == TileOp::AssumeMultiple
            && self.func.dfg.ty(value).is_scalar()
            && form.base.is_none()
            && let Some(by) = data.values().and_then(|v| v.first())
        {
            let log2 = self.promised.entry(form.poly.clone()).or_default();
            *log2 = (*log2).max(by.trailing_zeros().min(62) as u8);
        }
    }

    /// The counter of a loop.
    fn counter(&mut self, inst: Inst) -> Option<AffineForm> {
        let args = self.func.dfg.insts[inst].args.clone();
        let (lo, step) = (self.form(args[0])?, self.form(args[2])?);
        let moved = step.poly.times(&Poly::atom(Atom::Trip(inst)))?;
        Some(lo.join(&step, lo.poly.plus(&moved)?))
    }

    /// What a loop carries at a position, if it moves on by the same in each iteration.
    fn carried(&mut self, inst: Inst, position: usize) -> Option<AffineForm> {
        let moved = self.moved(inst, position)?;
        let init = *self.func.dfg.insts[inst].args.get(3 + position)?;
        let init = self.form(init)?;
        let moved_so_far = moved.poly.times(&Poly::atom(Atom::Trip(inst)))?;
        Some(init.join(&moved, init.poly.plus(&moved_so_far)?))
    }

    /// By what each iteration of a loop moves on what is carried at a position, if that is always the same: by itself, or by loops in it
    /// that always run as often.
    fn moved(&mut self, inst: Inst, position: usize) -> Option<AffineForm> {
        let func = self.func;
        let body = func.regions(inst).next()?;
        let param = *func.dfg.blocks[body].params.get(1 + position)?;
        let yielded = &func.dfg.insts[func.order.last(body)?];
        let mut next = *yielded.args.get(position)?;
        let mut moved = AffineForm::default();
        for _ in 0..MAX_STEPS {
            if next == param {
                return Some(moved);
            }
            let ValueDef::Result(def, index) = func.dfg.values[next].def else {
                return None;
            };
            let step = &func.dfg.insts[def];
            let (before, form) = match step.op {
                TileOp::Iadd if step.args[1] == param => {
                    (step.args[1], (*self.form(step.args[0])?).clone())
                }
                TileOp::Iadd | TileOp::Isub | TileOp::Addptr => {
                    let mut form = (*self.form(step.args[1])?).clone();
                    if step.op == TileOp::Isub {
                        form.poly = form.poly.scaled(-1)?;
                    }
                    if step.op == TileOp::Addptr && func.dfg.ty(step.args[1]).elem != Elem::I64 {
                        form.exact.push(step.args[1]);
                    }
                    (step.args[0], form)
                }
                TileOp::AssumeMultiple | TileOp::AssumeContiguous | TileOp::AssumeConstant => {
                    next = step.args[0];
                    continue;
                }
                TileOp::For => {
                    let index = usize::from(index);
                    let mut form = self.moved(def, index)?;
                    form.poly = form.poly.scaled(iterations(func, def)?)?;
                    (*step.args.get(3 + index)?, form)
                }
                _ => return None,
            };
            if !form.clamps.is_empty() || form.poly.atoms().any(|atom| self.varies(atom, inst)) {
                return None;
            }
            let poly = moved.poly.plus(&form.poly)?;
            moved = moved.join(&form, poly);
            next = before;
        }
        None
    }

    /// Whether a number may differ from iteration to iteration of a loop.
    pub fn varies(&self, atom: Atom, inst: Inst) -> bool {
        let mut block = match atom {
            Atom::Trip(other) if other == inst => return true,
            Atom::Trip(other) => self.func.order.block_of(other),
            Atom::Value(value) => self.home(value),
        };
        while let Some(owner) = block.and_then(|block| self.order.owner(block)) {
            if owner == inst {
                return true;
            }
            block = self.func.order.block_of(owner);
        }
        false
    }

    /// The block that a value is defined in.
    pub fn home(&self, value: Value) -> Option<Block> {
        match self.func.dfg.values[value].def {
            ValueDef::Param(block, _) => Some(block),
            ValueDef::Result(inst, _) => self.func.order.block_of(inst),
        }
    }

    /// The comparisons that a mask is made of.
    pub fn conjunction(&mut self, mask: Value) -> Conjunction {
        let mut out = Conjunction {
            below: Vec::new(),
            is_all: true,
        };
        let rank = self.func.dfg.ty(mask).shape.rank();
        let same: SmallVec<[Option<u8>; 4]> = (0..rank as u8).map(Some).collect();
        let mut stack = vec![(mask, same)];
        // A mask is written once, so the number of its parts is bounded; one that is used again and again need not be.
        for _ in 0..MAX_STEPS {
            let Some((value, name)) = stack.pop() else {
                return out;
            };
            let inst = self.func.dfg.def_inst(value);
            let Some(data) = inst.map(|inst| &self.func.dfg.insts[inst]) else {
                out.is_all = false;
                continue;
            };
            match data.op {
                TileOp::And => stack.extend(data.args.iter().map(|&arg| (arg, name.clone()))),
                TileOp::Const if data.value().is_some_and(|bits| bits & 1 == 1) => {}
                op if op.info().keeps_elements() => match dims_behind(self.func, data) {
                    Some(behind) => {
                        let through = |dim: &Option<u8>| dim.and_then(|d| name[usize::from(d)]);
                        let from = behind.iter().map(through).collect();
                        stack.push((data.args[0], from));
                    }
                    None => out.is_all = false,
                },
                TileOp::Icmp => match self.below(data) {
                    Some(mut below) => {
                        let name = |dim: u8| name[usize::from(dim)];
                        below.less = below.less.map_dims(name);
                        below.than = below.than.map_dims(name);
                        out.below.push(below);
                    }
                    None => out.is_all = false,
                },
                _ => out.is_all = false,
            }
        }
        out.is_all = false;
        out
    }

    fn below(&mut self, data: &InstData<Tile>) -> Option<Below> {
        let (a, b) = (data.args[0], data.args[1]);
        let elem = self.func.dfg.ty(a).elem;
        if !matches!(elem, Elem::I32 | Elem::I64) {
            return None;
        }
        let (less, than, more) = match *data.ipred()? {
            IntPred::Slt => (a, b, 0),
            IntPred::Sgt => (b, a, 0),
            IntPred::Sle => (a, b, 1),
            IntPred::Sge => (b, a, 1),
            _ => return None,
        };
        let (x, y) = (self.form(less)?, self.form(than)?);
        if !x.clamps.is_empty() || !y.clamps.is_empty() {
            return None;
        }
        let mut exact = x.exact.clone();
        exact.extend(y.exact.iter().copied());
        Some(Below {
            less: x.poly.clone(),
            than: y.poly.plus(&Poly::constant(more))?,
            bits: elem.bits(),
            exact,
            sides: [less, than],
        })
    }
}

/// Which dimension of the result each one of the operand of a change of shape is; none for those of extent 1 that go.
fn dims_behind(func: &TileFunction, data: &InstData<Tile>) -> Option<SmallVec<[Option<u8>; 4]>> {
    let from = func.dfg.ty(*data.args.first()?).shape;
    let to = func.dfg.ty(*data.results.first()?).shape;
    let rank = from.rank();
    Some(match data.op {
        TileOp::Splat => smallvec![],
        TileOp::ExpandDims => {
            let axis = *data.axis()?;
            (0..rank as u8)
                .map(|dim| Some(dim + u8::from(dim >= axis)))
                .collect()
        }
        TileOp::Permute => {
            let dims = data.dims()?;
            let place = |dim: usize| dims.iter().position(|&d| d as usize == dim);
            (0..rank).map(|dim| place(dim).map(|d| d as u8)).collect()
        }
        TileOp::Reshape => reshaped(from, to)?,
        _ => (0..rank as u8).map(Some).collect(),
    })
}

/// The same for a reshape that only adds and drops dimensions of extent 1.
fn reshaped(from: Shape, to: Shape) -> Option<SmallVec<[Option<u8>; 4]>> {
    let mut wide = (0..to.rank()).filter(|&dim| to.extent(dim) > 1);
    let mut name = SmallVec::new();
    for dim in 0..from.rank() {
        name.push(match from.extent(dim) {
            1 => None,
            extent => {
                let place = wide.next().filter(|&place| to.extent(place) == extent)?;
                Some(place as u8)
            }
        });
    }
    wide.next().is_none().then_some(name)
}
