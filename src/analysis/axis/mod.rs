//! Contiguity, divisibility and constancy of integers and pointers along each dimension.
//!
//! Of a block and one of its dimensions [`DimInfo`] states three powers of two. Indices along the dimension
//! are cut into aligned runs:
//! - in each run of `contiguity` elements, each element is the one before plus one (for pointers: plus one
//!   element), modulo 2^bits;
//! - the *first* element of each such run is a multiple of `divisibility` (of pointers: the address in bytes);
//! - in each run of `constancy` elements all are equal.
//!
//! A scalar counts as one dimension of extent 1, so that `divisibility` alone says something.
//!
//! From the three follow the width of vector accesses and how many neighbours share a mask. Numbers are had by asking for them
//! ([`Axis::at_least`], [`Axis::capped`]), which records the promises that the answer rests on; see `exponent`. The transfer
//! rules stand in `transfer`; where Triton's rules (its `AxisInfo`) are unsound because of wrap-around or
//! negative numbers, these are stricter, with one exception: see `AxisInfo::non_negative`.
//!
//! # Loops
//! Parameters of loop regions start with what is known of their initial values and are met with what is
//! carried back until nothing changes. Facts only get weaker; after `MAX_ROUNDS` walks over the function whatever still
//! changes is taken to be unknown. What facts rest on may change to and fro, though, while they stay the same: after
//! `MOST_ROUNDS` walks such facts are given up, too, and only gather more to rest on, so this ends. A walk costs time
//! linear in the function.

use cranelift_entity::SecondaryMap;
use smallvec::SmallVec;

pub use exponent::Exponent;

use super::program::{ProgramOrder, WalkStep};
use crate::ir::entities::{Inst, Value};
use crate::ir::function::{ParamHints, TileFunction};
use crate::ir::ops::TileOp;
use crate::ir::types::{Elem, TileType};

mod exponent;
mod natural;
mod prefix;
mod transfer;

#[cfg(test)]
mod tests;

/// Walks over the function before loop-carried facts that still change are given up.
const MAX_ROUNDS: usize = 12;
/// Walks before those are given up that rest on something else each time.
const MOST_ROUNDS: usize = 4 * MAX_ROUNDS;

/// Exponent that stands for "divisible by every power of two", as zero is.
const ALL_BITS: u8 = 62;

/// What is known along one dimension, as exponents of two.
#[derive(Clone, Debug, Default)]
pub struct DimInfo {
    /// Aligned runs of this many elements count up by one.
    pub contiguity: Exponent,
    /// The first element of each run is a multiple of this (bytes for pointers).
    pub divisibility: Exponent,
    /// Aligned runs of this many elements are equal.
    pub constancy: Exponent,
}

impl DimInfo {
    /// Divisibility of the elements whose index is a multiple of 2^`run`; `unit` is the exponent of the
    /// distance between neighbours (0 for integers, of the element's bytes for pointers).
    fn divisibility_at(&self, run: &Exponent, unit: u8) -> Exponent {
        let inside = run.plus(&Exponent::constant(unit));
        let is_whole = self.contiguity.at_most(run);
        Exponent::upper_or_lower(
            is_whole,
            &self.divisibility,
            &self.divisibility.min(&inside),
        )
    }

    /// Divisibility of every element.
    fn divisibility_of_each(&self, unit: u8) -> Exponent {
        self.divisibility_at(&Exponent::default(), unit)
    }
}

/// What is known of a value.
#[derive(Clone, Debug, Default)]
pub struct AxisInfo {
    dims: SmallVec<[DimInfo; 2]>,
    /// The number that every element is, sign-extended, if it is known.
    constant: Option<i64>,
    /// Whether no element is negative as a signed number.
    ///
    /// Sums and products of non-negative numbers are *taken* to be non-negative, so program indices times
    /// block sizes are, and quotients and remainders of such numbers keep their alignment. Where such sums overflow,
    /// quotients and remainders are unspecified (see the ops). Beyond that, layouts are chosen by this analysis, and which elements of a
    /// mask are read and compared as one, by constancy, which takes nothing of a sign but in quotients and remainders.
    non_negative: bool,
    /// Whether it is an index of programs, or was made of one by sums and products with what is not negative, quotients and
    /// remainders. These are taken not to be negative either: what divides an index is taken to be positive.
    is_index: bool,
    /// That every element is between zero and this number: proved, whatever wraps around and whatever arguments are.
    natural: Option<u64>,
}

impl AxisInfo {
    /// Nothing but what follows from the type: runs of one element.
    fn unknown(ty: &TileType) -> AxisInfo {
        AxisInfo {
            dims: SmallVec::from_elem(DimInfo::default(), ty.shape.rank().max(1)),
            constant: None,
            non_negative: false,
            is_index: false,
            natural: None,
        }
    }

    /// What is known along dimension `dim`, as exponents.
    pub fn dim(&self, dim: usize) -> DimInfo {
        self.dims.get(dim).cloned().unwrap_or_default()
    }

    /// Whether no element is taken to be negative.
    pub fn is_non_negative(&self) -> bool {
        self.non_negative || self.is_index
    }

    /// Whether every element was made of an index of programs, and what divides it is taken to be positive.
    pub fn is_index(&self) -> bool {
        self.is_index
    }

    /// The number that every element is, if it is known.
    pub fn constant(&self) -> Option<i64> {
        self.constant
    }

    /// Whether it is proved that no element is negative. What was divided by zero counts as any number here.
    pub fn is_natural(&self) -> bool {
        self.natural.is_some()
    }

    /// A number that no element is above, where it is proved that none is negative.
    pub fn natural(&self) -> Option<u64> {
        self.natural
    }

    /// Exponent of a power of two that divides every element.
    fn known_zero_bits(&self, unit: u8) -> Exponent {
        let each = self.dims.iter().map(|d| d.divisibility_of_each(unit));
        each.fold(Exponent::default(), |most, x| most.max(&x))
    }

    /// Nothing, because rounds are over that ended with both of these.
    fn given_up(&self, now: &AxisInfo) -> AxisInfo {
        let dims = self.dims.iter().zip(&now.dims).map(|(a, b)| DimInfo {
            contiguity: Exponent::given_up(&a.contiguity, &b.contiguity),
            divisibility: Exponent::given_up(&a.divisibility, &b.divisibility),
            constancy: Exponent::given_up(&a.constancy, &b.constancy),
        });
        AxisInfo {
            dims: dims.collect(),
            ..AxisInfo::default()
        }
    }

    /// Whether the same is known, by a comparison of exponents.
    fn agrees(&self, other: &AxisInfo, is_same: impl Fn(&Exponent, &Exponent) -> bool) -> bool {
        let agree = |(a, b): (&DimInfo, &DimInfo)| {
            is_same(&a.contiguity, &b.contiguity)
                && is_same(&a.divisibility, &b.divisibility)
                && is_same(&a.constancy, &b.constancy)
        };
        self.dims.iter().zip(&other.dims).all(agree)
            && (self.constant, self.natural) == (other.constant, other.natural)
            && (self.non_negative, self.is_index) == (other.non_negative, other.is_index)
    }

    /// Facts that hold for both: what is known of a value that is one or the other.
    fn meet(&self, other: &AxisInfo, unit: u8) -> AxisInfo {
        let dims = self.dims.iter().zip(&other.dims).map(|(a, b)| {
            let contiguity = a.contiguity.min(&b.contiguity);
            let at = |d: &DimInfo| d.divisibility_at(&contiguity, unit);
            DimInfo {
                divisibility: at(a).min(&at(b)),
                contiguity,
                constancy: a.constancy.min(&b.constancy),
            }
        });
        AxisInfo {
            dims: dims.collect(),
            constant: self.constant.filter(|_| self.constant == other.constant),
            non_negative: self.non_negative && other.non_negative,
            is_index: self.is_index && other.is_index,
            natural: natural::either(self.natural, other.natural),
        }
    }
}

/// Exponent of the distance in bytes between neighbouring pointers, 0 for numbers.
fn unit(elem: Elem) -> u8 {
    elem.pointee()
        .map_or(0, |pointee| pointee.bytes().trailing_zeros() as u8)
}

/// The facts for every value of a function.
#[derive(Clone, Debug)]
pub struct Axis {
    infos: SecondaryMap<Value, AxisInfo>,
    /// Where it is recorded what was asked for.
    hints: Vec<ParamHints>,
}

impl Axis {
    /// Computes the facts.
    pub fn compute(func: &TileFunction) -> Axis {
        let order = &ProgramOrder::compute(func);
        let mut solver = Solver {
            func,
            order,
            infos: SecondaryMap::new(),
            round: 0,
            changed: false,
        };
        solver.infos.resize(func.dfg.values.len());
        solver.parameters();
        loop {
            solver.walk();
            solver.round += 1;
            if !solver.changed {
                return Axis {
                    infos: solver.infos,
                    hints: func.param_hints.clone(),
                };
            }
        }
    }

    /// What is known of a value.
    pub fn info(&self, value: Value) -> &AxisInfo {
        &self.infos[value]
    }

    /// Whether an exponent is at least this.
    pub fn at_least(&self, exponent: &Exponent, least: u8) -> bool {
        exponent.asked(least, &self.hints) >= least
    }

    /// Whether every element is a multiple of 2^`exponent`.
    pub fn divides(&self, value: Value, exponent: u8) -> bool {
        self.at_least(&self.infos[value].known_zero_bits(0), exponent)
    }

    /// An exponent, but for what is beyond `most`.
    pub fn capped(&self, exponent: &Exponent, most: u8) -> u8 {
        exponent.asked(most, &self.hints)
    }

    /// Exponent of the runs along `dim` that count up by one.
    pub fn contiguity(&self, value: Value, dim: usize) -> u8 {
        self.capped(&self.infos[value].dim(dim).contiguity, u8::MAX)
    }

    /// Elements that one access may take at once from consecutive addresses along `dim` of the pointers `ptr`:
    /// bounded by contiguity, alignment, `max_bytes`, and runs over which the mask is constant.
    pub fn vector_width(
        &self,
        func: &TileFunction,
        ptr: Value,
        mask: Option<Value>,
        dim: usize,
        max_bytes: u32,
    ) -> u64 {
        let masked = mask.map(|mask| self.infos[mask].dim(dim).constancy);
        self.width(func, ptr, masked, dim, max_bytes)
    }

    /// Elements that one copy to shared memory may take at once, which fills what the mask turns off at the end of a run with
    /// zeros.
    pub fn copy_width(
        &self,
        func: &TileFunction,
        ptr: Value,
        mask: Option<Value>,
        dim: usize,
        max_bytes: u32,
    ) -> u64 {
        let masked = mask.map(|mask| self.prefix(func, mask, dim));
        self.width(func, ptr, masked, dim, max_bytes)
    }

    /// The same, for a mask with runs of `masked`.
    fn width(
        &self,
        func: &TileFunction,
        ptr: Value,
        masked: Option<Exponent>,
        dim: usize,
        max_bytes: u32,
    ) -> u64 {
        let bytes = func.dfg.ty(ptr).elem.pointee().map_or(1, |s| s.bytes());
        let pointer = self.infos[ptr].dim(dim);
        let aligned = pointer.divisibility.less(bytes.trailing_zeros() as u8);
        let limit = (max_bytes / bytes).max(1).trailing_zeros() as u8;
        let mut width = pointer.contiguity.min(&aligned);
        if let Some(masked) = masked {
            width = width.min(&masked);
        }
        1 << self.capped(&width, limit)
    }
}

/// The fixpoint iteration.
struct Solver<'a> {
    func: &'a TileFunction,
    order: &'a ProgramOrder,
    infos: SecondaryMap<Value, AxisInfo>,
    round: usize,
    changed: bool,
}

impl Solver<'_> {
    fn ty(&self, value: Value) -> TileType {
        self.func.dfg.ty(value)
    }

    fn parameters(&mut self) {
        for (index, &value) in self.func.params().iter().enumerate() {
            let mut info = AxisInfo::unknown(&self.ty(value));
            if let Some(hints) = self.func.param_hints.get(index) {
                info.dims[0].divisibility = Exponent::promised(index, hints);
            }
            self.infos[value] = info;
        }
    }

    fn walk(&mut self) {
        self.changed = false;
        for &step in self.order.steps() {
            match step {
                WalkStep::Inst(inst) => self.inst(inst),
                WalkStep::Enter(inst) => self.enter(inst),
                WalkStep::Region(_) => {}
                WalkStep::Leave(inst) => self.leave(inst),
            }
        }
    }

    /// Facts of the first region's parameters before anything was carried back.
    fn enter(&mut self, inst: Inst) {
        let data = &self.func.dfg.insts[inst];
        let region = |i: usize| &self.func.dfg.blocks[data.blocks[i].block].params;
        match data.op {
            TileOp::For => {
                let params = region(0);
                let (lo, step) = (data.args[0], data.args[2]);
                let mut counter = self.infos[lo].meet(&self.infos[step], 0);
                counter.constant = None;
                // A step is at least 1, and the counter stays below `hi`.
                counter.non_negative = self.infos[lo].non_negative;
                let bounds = [lo, data.args[1], step].map(|bound| &self.infos[bound]);
                counter.natural = natural::counter(bounds, self.ty(params[0]).elem);
                self.infos[params[0]] = counter;
                for (&param, &init) in params[1..].iter().zip(&data.args[3..]) {
                    self.initial(param, init);
                }
            }
            TileOp::While => {
                for (&param, &init) in region(0).iter().zip(&data.args) {
                    self.initial(param, init);
                }
            }
            TileOp::Reduce | TileOp::Scan => {
                for &param in region(0) {
                    self.infos[param] = AxisInfo::unknown(&self.ty(param));
                }
            }
            _ => {}
        }
    }

    fn leave(&mut self, inst: Inst) {
        let data = &self.func.dfg.insts[inst];
        match data.op {
            // A parameter holds the facts of the initial and of every carried value.
            TileOp::For => {
                let params = &self.func.dfg.blocks[data.blocks[0].block].params;
                for (&result, &param) in data.results.iter().zip(&params[1..]) {
                    self.infos[result] = self.infos[param].clone();
                }
            }
            TileOp::Reduce | TileOp::Scan => {
                for &result in &data.results {
                    self.infos[result] = AxisInfo::unknown(&self.ty(result));
                }
            }
            _ => {}
        }
    }

    fn initial(&mut self, param: Value, init: Value) {
        self.infos[param] = if self.round == 0 {
            self.infos[init].clone()
        } else {
            let met = self.infos[param].meet(&self.infos[init], unit(self.ty(param).elem));
            self.known(param, met, MOST_ROUNDS)
        };
    }

    fn carry_back(&mut self, param: Value, next: Value) {
        let ty = self.ty(param);
        let mut met = self.infos[param].meet(&self.infos[next], unit(ty.elem));
        // What grows from round to round is not counted up to its end.
        met.natural = met
            .natural
            .filter(|_| met.natural == self.infos[param].natural);
        // What something rests on can grow a while longer.
        let most = match met.agrees(&self.infos[param], Exponent::is_same_number) {
            true => MOST_ROUNDS,
            false => MAX_ROUNDS,
        };
        let met = self.known(param, met, most);
        if !met.agrees(&self.infos[param], Exponent::is_same) {
            self.changed = true;
            self.infos[param] = met;
        }
    }

    /// What is known of a parameter that was met with a value; nothing, where that is not what was known before and so many rounds
    /// are over.
    fn known(&self, param: Value, met: AxisInfo, rounds: usize) -> AxisInfo {
        let before = &self.infos[param];
        match self.round >= rounds && !met.agrees(before, Exponent::is_same) {
            true => before.given_up(&met),
            false => met,
        }
    }

    fn inst(&mut self, inst: Inst) {
        let data = &self.func.dfg.insts[inst];
        match data.op {
            TileOp::Yield => self.yielded(inst),
            TileOp::Condition => {
                let Some(owner) = self.order.parent(self.func, inst) else {
                    return;
                };
                let owner = &self.func.dfg.insts[owner];
                let params = &self.func.dfg.blocks[owner.blocks[1].block].params;
                for (i, &value) in data.args[1..].iter().enumerate() {
                    for target in [params[i], owner.results[i]] {
                        self.infos[target] = self.infos[value].clone();
                    }
                }
            }
            _ => {
                if let Some(result) = self.func.dfg.single_result(inst) {
                    self.infos[result] = transfer::transfer(self.func, &self.infos, inst);
                }
            }
        }
    }

    fn yielded(&mut self, inst: Inst) {
        let Some(owner) = self.order.parent(self.func, inst) else {
            return;
        };
        let values = &self.func.dfg.insts[inst].args;
        let owner = &self.func.dfg.insts[owner];
        let first = &self.func.dfg.blocks[owner.blocks[0].block].params;
        match owner.op {
            TileOp::For => {
                for (&param, &value) in first[1..].iter().zip(values) {
                    self.carry_back(param, value);
                }
            }
            TileOp::While => {
                for (&param, &value) in first.iter().zip(values) {
                    self.carry_back(param, value);
                }
            }
            TileOp::If => {
                let is_first = self.func.order.block_of(inst) == Some(owner.blocks[0].block);
                for (&result, &value) in owner.results.iter().zip(values) {
                    self.infos[result] = if is_first {
                        self.infos[value].clone()
                    } else {
                        self.infos[result].meet(&self.infos[value], unit(self.ty(result).elem))
                    };
                }
            }
            _ => {}
        }
    }
}
