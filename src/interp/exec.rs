//! Runs programs: instructions, control flow, memory and reductions.
//!
//! The match in [`Machine::inst`] is the whole instruction set, one arm per op.

use cranelift_entity::{EntityRef, SecondaryMap};
use smallvec::{SmallVec, smallvec};

use super::error::{InterpError, InterpErrorKind, Place};
use super::memory::{LaunchMemory, Memory};
use super::promise::{self, Promise};
use super::{Options, Stats, float, int};
use crate::ir::attrs::Attrs;
use crate::ir::dfg::{InstData, SourceLoc};
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::function::TileFunction;
use crate::ir::level::Tile;
use crate::ir::ops::TileOp;
use crate::ir::types::Scalar;
use crate::num::Rounding;

/// Regions nested deeper than this are refused: the interpreter recurses into them.
const MAX_DEPTH: u32 = 100;

/// Bit patterns of a value's elements, in row-major order; empty while the value is not defined.
type Elems = SmallVec<[u64; 2]>;

/// One list of elements per result.
type Results = SmallVec<[Elems; 1]>;

type Outcome<T> = Result<T, InterpErrorKind>;

/// How a block ended.
enum Flow {
    /// With these results.
    Yield(Results),
    /// With these values to go on with if true, or to end the loop with.
    Condition(bool, Results),
    /// The program ended.
    Return,
}

/// Runs every program of the grid.
pub(super) fn run(
    func: &TileFunction,
    grid: [u32; 3],
    args: &[u64],
    memory: &mut Memory,
    options: &Options,
) -> Result<Stats, InterpError> {
    let mut machine = Machine {
        func,
        grid,
        options,
        memory: LaunchMemory::new(memory, options.check_races),
        values: SecondaryMap::new(),
        program: [0; 3],
        current: None,
        depth: 0,
        stats: Stats::default(),
    };
    let [x_end, y_end, z_end] = grid;
    for z in 0..z_end {
        for y in 0..y_end {
            for x in 0..x_end {
                machine.program = [x, y, z];
                machine.current = None;
                machine.program(args).map_err(|kind| InterpError {
                    place: machine.place(),
                    kind,
                })?;
            }
        }
    }
    Ok(machine.stats)
}

struct Machine<'a> {
    func: &'a TileFunction,
    grid: [u32; 3],
    options: &'a Options,
    memory: LaunchMemory<'a>,
    values: SecondaryMap<Value, Elems>,
    program: [u32; 3],
    /// The instruction being executed.
    current: Option<Inst>,
    /// How many blocks enclose it.
    depth: u32,
    stats: Stats,
}

fn malformed(what: impl Into<String>) -> InterpErrorKind {
    InterpErrorKind::Malformed(what.into())
}

/// An attribute that the op table requires.
fn required<T: Clone>(attr: Option<&T>) -> Outcome<T> {
    attr.cloned()
        .ok_or_else(|| malformed("a required attribute is missing"))
}

impl<'a> Machine<'a> {
    fn place(&self) -> Place {
        let insts = &self.func.dfg.insts;
        Place {
            program: Some(self.program),
            inst: self.current.map(|inst| (inst, insts[inst].op)),
            loc: self.current.map_or(SourceLoc::default(), |i| insts[i].loc),
        }
    }

    fn program(&mut self, args: &[u64]) -> Outcome<()> {
        // Programs are numbered as they run; the number only has to tell them apart.
        self.memory.enter_program(self.stats.programs as u32);
        self.stats.programs += 1;
        self.values.clear();
        let args = args.iter().map(|&bits| smallvec![bits]).collect();
        match self.block(self.func.entry, args)? {
            Flow::Return => Ok(()),
            Flow::Yield(_) | Flow::Condition(..) => {
                Err(malformed("the kernel does not end in `return`"))
            }
        }
    }

    /// Runs a block with these values of its parameters.
    fn block(&mut self, block: Block, args: Results) -> Outcome<Flow> {
        let func = self.func;
        let params = &func.dfg.blocks[block].params;
        if params.len() != args.len() {
            return Err(malformed(format!(
                "{block} has {} parameters and gets {} values",
                params.len(),
                args.len()
            )));
        }
        for (&param, arg) in params.iter().zip(args) {
            self.define(param, arg)?;
        }
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(InterpErrorKind::Nesting(MAX_DEPTH));
        }
        for &inst in func.order.insts(block) {
            self.current = Some(inst);
            self.stats.instructions += 1;
            if self.stats.instructions > self.options.step_limit {
                return Err(InterpErrorKind::StepLimit(self.options.step_limit));
            }
            if let Some(flow) = self.inst(inst)? {
                self.depth -= 1;
                return Ok(flow);
            }
        }
        Err(malformed(format!("{block} has no terminator")))
    }

    /// Runs a region that ends in `yield`.
    fn region(&mut self, block: Block, args: Results) -> Outcome<Results> {
        match self.block(block, args)? {
            Flow::Yield(results) => Ok(results),
            Flow::Condition(..) | Flow::Return => {
                Err(malformed(format!("{block} does not end in `yield`")))
            }
        }
    }

    /// Gives a value its elements; bits above the element's width are cut off.
    fn define(&mut self, value: Value, mut elems: Elems) -> Outcome<()> {
        let ty = self.func.dfg.ty(value);
        if elems.len() != ty.shape.elements() {
            return Err(malformed(format!(
                "{value} of type {ty} gets {} elements",
                elems.len()
            )));
        }
        let bits = ty.elem.bits();
        for elem in &mut elems {
            *elem = int::low_bits(bits, *elem);
        }
        self.values[value] = elems;
        Ok(())
    }

    fn get(&self, value: Value) -> Outcome<&Elems> {
        defined(&self.values, value)
    }

    /// Operand number `index`.
    fn arg(&self, data: &InstData<Tile>, index: usize) -> Outcome<&Elems> {
        self.get(operand(data, index)?)
    }

    /// The single element of operand number `index`.
    fn single(&self, data: &InstData<Tile>, index: usize) -> Outcome<u64> {
        match self.arg(data, index)?[..] {
            [elem] => Ok(elem),
            _ => Err(malformed("an operand is no scalar")),
        }
    }

    fn many(&self, values: &[Value]) -> Outcome<Results> {
        values.iter().map(|&v| self.get(v).cloned()).collect()
    }

    /// Element type of operand number `index`, which is a number.
    fn scalar(&self, data: &InstData<Tile>, index: usize) -> Outcome<Scalar> {
        let elem = self.func.dfg.ty(operand(data, index)?).elem;
        elem.scalar()
            .ok_or_else(|| malformed("an operand is no number"))
    }

    /// Element type of the result, which is a number.
    fn result_scalar(&self, data: &InstData<Tile>) -> Outcome<Scalar> {
        let result = data.results.first();
        result
            .and_then(|&r| self.func.dfg.ty(r).elem.scalar())
            .ok_or_else(|| malformed("the result is no number"))
    }

    /// The operand unchanged.
    fn same(&self, data: &InstData<Tile>) -> Outcome<Elems> {
        self.arg(data, 0).cloned()
    }

    fn map(&self, data: &InstData<Tile>, f: impl Fn(u64) -> u64) -> Outcome<Elems> {
        Ok(self.arg(data, 0)?.iter().map(|&x| f(x)).collect())
    }

    fn zip(&self, data: &InstData<Tile>, f: impl Fn(u64, u64) -> u64) -> Outcome<Elems> {
        let (a, b) = (self.arg(data, 0)?, self.arg(data, 1)?);
        Ok(a.iter().zip(b).map(|(&a, &b)| f(a, b)).collect())
    }

    fn zip3(&self, data: &InstData<Tile>, f: impl Fn(u64, u64, u64) -> u64) -> Outcome<Elems> {
        let (a, b, c) = (self.arg(data, 0)?, self.arg(data, 1)?, self.arg(data, 2)?);
        let pairs = a.iter().zip(b).zip(c);
        Ok(pairs.map(|((&a, &b), &c)| f(a, b, c)).collect())
    }

    fn ints(&self, data: &InstData<Tile>, f: impl Fn(u32, u64, u64) -> u64) -> Outcome<Elems> {
        let bits = self.scalar(data, 0)?.bits();
        self.zip(data, |a, b| f(bits, a, b))
    }

    fn float1(&self, data: &InstData<Tile>, f: impl Fn(Scalar, u64) -> u64) -> Outcome<Elems> {
        let scalar = self.scalar(data, 0)?;
        self.map(data, |a| f(scalar, a))
    }

    fn floats(&self, data: &InstData<Tile>, f: impl Fn(Scalar, u64, u64) -> u64) -> Outcome<Elems> {
        let scalar = self.scalar(data, 0)?;
        self.zip(data, |a, b| f(scalar, a, b))
    }

    fn approx(&self, data: &InstData<Tile>, f: impl Fn(f32) -> f32) -> Outcome<Elems> {
        self.float1(data, float::f32_function(f))
    }

    /// A conversion from the operand's element type to the result's.
    fn cast(
        &self,
        data: &InstData<Tile>,
        f: impl Fn(Scalar, Scalar, u64) -> u64,
    ) -> Outcome<Elems> {
        let (from, to) = (self.scalar(data, 0)?, self.result_scalar(data)?);
        self.map(data, |x| f(from, to, x))
    }

    /// Executes an instruction; gives how the block ends if it ends here.
    fn inst(&mut self, inst: Inst) -> Outcome<Option<Flow>> {
        let func = self.func;
        let data = &func.dfg.insts[inst];
        let elems = match data.op {
            TileOp::Const => self.fill(data, required(data.value())?)?,
            TileOp::Splat => self.fill(data, self.single(data, 0)?)?,

            TileOp::Iadd => self.ints(data, int::add)?,
            TileOp::Isub => self.ints(data, int::sub)?,
            TileOp::Imul => self.ints(data, int::mul)?,
            TileOp::Sdiv => self.ints(data, int::sdiv)?,
            TileOp::Udiv => self.ints(data, int::udiv)?,
            TileOp::Srem => self.ints(data, int::srem)?,
            TileOp::Urem => self.ints(data, int::urem)?,
            TileOp::Smin => self.ints(data, int::smin)?,
            TileOp::Smax => self.ints(data, int::smax)?,
            TileOp::Umin => self.ints(data, int::umin)?,
            TileOp::Umax => self.ints(data, int::umax)?,
            TileOp::And => self.ints(data, int::and)?,
            TileOp::Or => self.ints(data, int::or)?,
            TileOp::Xor => self.ints(data, int::xor)?,
            TileOp::Shl => self.ints(data, int::shl)?,
            TileOp::Sshr => self.ints(data, int::sshr)?,
            TileOp::Ushr => self.ints(data, int::ushr)?,
            TileOp::Icmp => {
                let pred = required(data.ipred())?;
                let bits = func.dfg.ty(operand(data, 0)?).elem.bits();
                self.zip(data, |a, b| u64::from(int::compare(pred, bits, a, b)))?
            }

            TileOp::Fadd => self.floats(data, float::add)?,
            TileOp::Fsub => self.floats(data, float::sub)?,
            TileOp::Fmul => self.floats(data, float::mul)?,
            TileOp::Fma => {
                let scalar = self.scalar(data, 0)?;
                self.zip3(data, |a, b, c| float::fma(scalar, a, b, c))?
            }
            TileOp::Fdiv | TileOp::FdivRn => self.floats(data, float::div)?,
            TileOp::Fneg => self.float1(data, float::neg)?,
            TileOp::Fabs => self.float1(data, float::abs)?,
            TileOp::Fmin => {
                let rule = required(data.nan())?;
                self.floats(data, |s, a, b| float::min(rule, s, a, b))?
            }
            TileOp::Fmax => {
                let rule = required(data.nan())?;
                self.floats(data, |s, a, b| float::max(rule, s, a, b))?
            }
            TileOp::Fcmp => {
                let pred = required(data.fpred())?;
                self.floats(data, |s, a, b| u64::from(float::compare(pred, s, a, b)))?
            }
            TileOp::Select => self.zip3(data, |cond, a, b| if cond == 1 { a } else { b })?,

            TileOp::Exp => self.approx(data, float::exp)?,
            TileOp::Exp2 => self.approx(data, float::exp2)?,
            TileOp::Log => self.approx(data, float::log)?,
            TileOp::Rsqrt => self.approx(data, float::rsqrt)?,
            TileOp::Sqrt => self.approx(data, float::sqrt)?,
            TileOp::Tanh => self.approx(data, float::tanh)?,
            TileOp::Erf => self.approx(data, float::erf32)?,
            TileOp::Rcp => self.approx(data, float::rcp)?,
            TileOp::Log2 => self.approx(data, float::log2)?,
            TileOp::Floor => self.float1(data, float::integral(Rounding::Down))?,
            TileOp::Ceil => self.float1(data, float::integral(Rounding::Up))?,
            TileOp::Rint => self.float1(data, float::integral(Rounding::NearestEven))?,

            TileOp::Sext => self.cast(data, |from, _, x| int::signed(from.bits(), x) as u64)?,
            TileOp::Zext | TileOp::Itrunc => self.same(data)?,
            TileOp::Sitofp => self.cast(data, |from, to, x| float::from_int(true, from, to, x))?,
            TileOp::Uitofp => self.cast(data, |from, to, x| float::from_int(false, from, to, x))?,
            TileOp::Fptosi => self.cast(data, |from, to, x| float::to_int(true, from, to, x))?,
            TileOp::Fptoui => self.cast(data, |from, to, x| float::to_int(false, from, to, x))?,
            TileOp::Fpext => self.cast(data, |from, to, x| {
                float::convert(crate::ir::attrs::Rounding::Nearest, from, to, x)
            })?,
            TileOp::Fptrunc => {
                let rounding = required(data.round())?;
                self.cast(data, |from, to, x| float::convert(rounding, from, to, x))?
            }
            TileOp::Bitcast | TileOp::PtrCast => self.same(data)?,
            TileOp::Addptr => {
                let pointee = self.pointee(data)?;
                let bits = self.scalar(data, 1)?.bits();
                self.zip(data, |pointer, offset| {
                    let bytes = int::signed(bits, offset).wrapping_mul(i64::from(pointee.bytes()));
                    pointer.wrapping_add(bytes as u64)
                })?
            }

            TileOp::Return => return Ok(Some(Flow::Return)),

            TileOp::ProgramId => self.fill(data, axis_of(self.program, data)?)?,
            TileOp::NumPrograms => self.fill(data, axis_of(self.grid, data)?)?,
            TileOp::Arange => {
                let start = required(data.start())?;
                let count = self.result_elements(data) as i64;
                (0..count).map(|i| (i64::from(start) + i) as u64).collect()
            }
            TileOp::Broadcast => self.broadcast(data)?,
            // The element numbered i stays number i when a dimension of extent 1 comes in.
            TileOp::ExpandDims => self.same(data)?,
            TileOp::ConvertLayout => self.same(data)?,
            TileOp::AssumeMultiple => self.assume(data, Promise::Multiple)?,
            TileOp::AssumeContiguous => self.assume(data, Promise::Contiguous)?,
            TileOp::AssumeConstant => self.assume(data, Promise::Constant)?,

            TileOp::Load => self.load(data)?,
            TileOp::Store => {
                self.store(data)?;
                return Ok(None);
            }
            TileOp::Barrier => {
                self.memory.barrier();
                return Ok(None);
            }
            TileOp::Reduce => return self.finish(inst, |m| m.reduce(data)),

            TileOp::For => return self.finish(inst, |m| m.for_loop(data)),
            TileOp::While => return self.finish(inst, |m| m.while_loop(data)),
            TileOp::If => {
                return self.finish(inst, |m| {
                    let index = usize::from(m.single(data, 0)? == 0);
                    m.region(owned(data, index)?, Results::new())
                });
            }
            TileOp::Yield => return Ok(Some(Flow::Yield(self.many(&data.args)?))),
            TileOp::Condition => {
                let goes_on = self.single(data, 0)? == 1;
                let passed = self.many(&data.args[1..])?;
                return Ok(Some(Flow::Condition(goes_on, passed)));
            }
        };
        match data.results[..] {
            [result] => self.define(result, elems)?,
            _ => return Err(malformed("the op has one result")),
        }
        Ok(None)
    }

    /// Runs an op with regions and defines its results.
    fn finish(
        &mut self,
        inst: Inst,
        run: impl FnOnce(&mut Machine<'a>) -> Outcome<Results>,
    ) -> Outcome<Option<Flow>> {
        let results = run(self)?;
        // The regions' instructions are done: what goes wrong from here on is this one's fault.
        self.current = Some(inst);
        let defined = &self.func.dfg.insts[inst].results;
        if defined.len() != results.len() {
            return Err(malformed("a region yields the wrong number of values"));
        }
        for (&value, elems) in defined.iter().zip(results) {
            self.define(value, elems)?;
        }
        Ok(None)
    }

    fn result_elements(&self, data: &InstData<Tile>) -> usize {
        let result = data.results.first();
        result.map_or(1, |&r| self.func.dfg.ty(r).shape.elements())
    }

    fn fill(&self, data: &InstData<Tile>, elem: u64) -> Outcome<Elems> {
        Ok(SmallVec::from_elem(elem, self.result_elements(data)))
    }

    fn pointee(&self, data: &InstData<Tile>) -> Outcome<Scalar> {
        let elem = self.func.dfg.ty(operand(data, 0)?).elem;
        elem.pointee()
            .ok_or_else(|| malformed("an operand is no pointer"))
    }

    fn broadcast(&self, data: &InstData<Tile>) -> Outcome<Elems> {
        let Some(&result) = data.results.first() else {
            return Err(malformed("the op has one result"));
        };
        let from = self.func.dfg.ty(operand(data, 0)?).shape;
        let to = self.func.dfg.ty(result).shape;
        let elems = self.arg(data, 0)?;
        let source = |flat: u32| {
            let part = |dim| {
                // An extent of 1 has the coordinate 0 only.
                let last = from.extent(dim) as u32 - 1;
                to.coordinate(flat, dim).min(last) << from.bit_offset(dim)
            };
            (0..to.rank()).map(part).sum::<u32>()
        };
        let count = to.elements() as u32;
        Ok((0..count)
            .map(|flat| elems[source(flat) as usize])
            .collect())
    }

    fn assume(&self, data: &InstData<Tile>, promise: Promise) -> Outcome<Elems> {
        let elems = self.same(data)?;
        if self.options.check_promises {
            let ty = self.func.dfg.ty(operand(data, 0)?);
            let values = required(data.values())?;
            promise::check(promise, ty, &elems, &values).map_err(InterpErrorKind::BrokenPromise)?;
        }
        Ok(elems)
    }

    fn load(&mut self, data: &InstData<Tile>) -> Outcome<Elems> {
        let pointee = self.pointee(data)?;
        let pointers = defined(&self.values, operand(data, 0)?)?;
        let optional = |i: usize| data.args.get(i).map(|&v| defined(&self.values, v));
        let (mask, other) = (optional(1).transpose()?, optional(2).transpose()?);
        let mut elems = Elems::with_capacity(pointers.len());
        for (i, &address) in pointers.iter().enumerate() {
            let elem = if mask.is_none_or(|m| m[i] == 1) {
                self.stats.loaded += 1;
                let elem = self.memory.load(address, pointee.bytes())?;
                if pointee == Scalar::I1 {
                    u64::from(elem != 0)
                } else {
                    elem
                }
            } else {
                other.map_or(0, |o| o[i])
            };
            elems.push(elem);
        }
        Ok(elems)
    }

    fn store(&mut self, data: &InstData<Tile>) -> Outcome<()> {
        let pointee = self.pointee(data)?;
        let pointers = defined(&self.values, operand(data, 0)?)?;
        let elems = defined(&self.values, operand(data, 1)?)?;
        let mask = data.args.get(2).map(|&v| defined(&self.values, v));
        let mask = mask.transpose()?;
        let mut writes: Vec<(u64, u64)> = (0..pointers.len())
            .filter(|&i| mask.is_none_or(|m| m[i] == 1))
            .map(|i| (pointers[i], elems[i]))
            .collect();
        // Equal addresses become neighbours.
        writes.sort_unstable();
        for pair in writes.windows(2) {
            let [(address, first), (same, second)] = [pair[0], pair[1]];
            if address == same && first != second {
                return Err(InterpErrorKind::StoreConflict {
                    address,
                    first,
                    second,
                });
            }
        }
        self.stats.stored += writes.len() as u64;
        // What is left of equal addresses has equal values: written once, it is no second store.
        writes.dedup();
        for (address, elem) in writes {
            self.memory.store(address, pointee.bytes(), elem)?;
        }
        Ok(())
    }

    /// Folds the bits of the index along the axis, one after the other: see [`crate::ir`].
    fn reduce(&mut self, data: &InstData<Tile>) -> Outcome<Results> {
        let axis = usize::from(required(data.axis())?);
        let shape = self.func.dfg.ty(operand(data, 0)?).shape;
        let region = owned(data, 0)?;
        let low = shape.bit_offset(axis);
        let bits = shape.log2().get(axis).map_or(0, |&b| u32::from(b));
        let order: Vec<u32> = match data.order() {
            Some(order) => order.to_vec(),
            None => (0..bits).collect(),
        };
        let mut xs = self.many(&data.args)?;
        let mut folded = 0;
        for bit in order {
            let flag = 1 << (low + bit);
            folded |= flag;
            for left in 0..shape.elements() {
                // What still counts are the elements whose folded bits are clear.
                if left & folded != 0 {
                    continue;
                }
                let right = left | flag;
                let pick = |x: &Elems, i: usize| -> Elems { smallvec![x[i]] };
                let lefts = xs.iter().map(|x| pick(x, left));
                let rights = xs.iter().map(|x| pick(x, right));
                let args = lefts.chain(rights).collect();
                let combined = self.region(region, args)?;
                if combined.len() != xs.len() {
                    return Err(malformed("a region yields the wrong number of values"));
                }
                for (x, c) in xs.iter_mut().zip(combined) {
                    x[left] = c[0];
                }
            }
        }
        let survivors = |x: &Elems| -> Elems {
            let kept = (0..shape.elements()).filter(|i| i & folded == 0);
            kept.map(|i| x[i]).collect()
        };
        Ok(xs.iter().map(survivors).collect())
    }

    fn for_loop(&mut self, data: &InstData<Tile>) -> Outcome<Results> {
        let bits = self.scalar(data, 0)?.bits();
        let number =
            |m: &Self, index| -> Outcome<i64> { Ok(int::signed(bits, m.single(data, index)?)) };
        let (lo, hi, step) = (number(self, 0)?, number(self, 1)?, number(self, 2)?);
        let mut carried = self.many(&data.args[3..])?;
        if step < 1 {
            return Err(InterpErrorKind::LoopStep(step));
        }
        // Wider than any counter, so that the sum past the last value does not wrap around.
        let mut iv = i128::from(lo);
        while iv < i128::from(hi) {
            let counter: Elems = smallvec![iv as u64];
            let args = std::iter::once(counter).chain(carried).collect();
            carried = self.region(owned(data, 0)?, args)?;
            iv += i128::from(step);
        }
        Ok(carried)
    }

    fn while_loop(&mut self, data: &InstData<Tile>) -> Outcome<Results> {
        let mut carried = self.many(&data.args)?;
        loop {
            match self.block(owned(data, 0)?, carried)? {
                Flow::Condition(true, passed) => carried = self.region(owned(data, 1)?, passed)?,
                Flow::Condition(false, passed) => return Ok(passed),
                Flow::Yield(_) | Flow::Return => {
                    return Err(malformed("the first region does not end in `condition`"));
                }
            }
        }
    }
}

fn defined(values: &SecondaryMap<Value, Elems>, value: Value) -> Outcome<&Elems> {
    match &values[value] {
        elems if elems.is_empty() => Err(malformed(format!(
            "v{} is used before it is defined",
            value.index()
        ))),
        elems => Ok(elems),
    }
}

fn operand(data: &InstData<Tile>, index: usize) -> Outcome<Value> {
    let value = data.args.get(index);
    value
        .copied()
        .ok_or_else(|| malformed("an operand is missing"))
}

/// Region number `index` of an instruction.
fn owned(data: &InstData<Tile>, index: usize) -> Outcome<Block> {
    let call = data.blocks.get(index);
    call.map(|c| c.block)
        .ok_or_else(|| malformed("a region is missing"))
}

/// The entry of `triple` that the attribute `axis` names.
fn axis_of(triple: [u32; 3], data: &InstData<Tile>) -> Outcome<u64> {
    let axis = required(data.axis())?;
    let entry = triple.get(usize::from(axis));
    entry
        .map(|&n| u64::from(n))
        .ok_or_else(|| malformed("a grid has three axes"))
}
