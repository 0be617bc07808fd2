//! Runs programs: blocks of instructions, and the values they define.
//!
//! ```text
//!   mod     programs, blocks, values
//!   inst    the instruction set: one match, one arm per op
//!   apply   functions of numbers applied element by element
//!   access  loads, stores and atomic accesses
//!   region  reductions and loops
//!   rings   rings of blocks in shared memory
//!   boxes   boxes of tensors, and barriers for copies of them
//!   slack   how far results of other executors may be from these
//! ```

mod access;
mod apply;
mod boxes;
mod dot;
mod inst;
mod region;
mod rings;
mod tolerance;

use cranelift_entity::{EntityRef, SecondaryMap};
use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};

use super::error::{FaultSite, InterpError, InterpErrorKind};
use super::memory::{LaunchMemory, Memory};
use super::{INST_STEPS, Options, Stats, int};
use crate::ir::dfg::{InstData, SourceLoc};
use crate::ir::effects::How;
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::function::TileFunction;
use crate::ir::level::Tile;
use crate::ir::ops::{Opcode, TileOp, TypeRule};
use crate::ir::types::{Elem, Scalar};
use boxes::Boxes;
use rings::Rings;
use tolerance::Off;
pub(super) use tolerance::Slack;

/// Bit patterns of a value's elements, in row-major order; empty while the value is not defined.
type Elems = SmallVec<[u64; 2]>;

/// A value on its way into or out of a block.
#[derive(Clone, Debug, Default)]
struct Held {
    elems: Elems,
    /// How far each element may be from what it is elsewhere; empty if nothing may.
    slack: Vec<Off>,
}

impl Held {
    /// What is the same everywhere.
    fn exact(elems: Elems) -> Held {
        let slack = Vec::new();
        Held { elems, slack }
    }

    /// Element number `i` alone.
    fn element(&self, i: usize) -> Held {
        Held {
            elems: smallvec![self.elems[i]],
            slack: self.slack.get(i).map_or(Vec::new(), |&slack| vec![slack]),
        }
    }

    /// Replaces element number `i` by a single one.
    fn replace(&mut self, i: usize, single: &Held) {
        self.elems[i] = single.elems[0];
        self.set_slack(i, single.off(0));
    }

    /// How far element number `i` may be from what it is elsewhere.
    fn off(&self, i: usize) -> Off {
        self.slack.get(i).copied().unwrap_or_default()
    }

    /// Says how far element number `i` may be from what it is elsewhere.
    fn set_slack(&mut self, i: usize, slack: Off) {
        if slack.by > 0.0 && self.slack.is_empty() {
            self.slack = vec![Off::default(); self.elems.len()];
        }
        if let Some(place) = self.slack.get_mut(i) {
            *place = slack;
        }
    }
}

/// One value per result.
type Results = SmallVec<[Held; 1]>;

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
    slack: Option<Slack>,
) -> Result<(Stats, Option<Slack>), InterpError> {
    let mut machine = Machine {
        func,
        grid,
        options,
        memory: LaunchMemory::new(memory, options, has_atomics(func)),
        values: SecondaryMap::new(),
        program: [0; 3],
        current: None,
        element: None,
        steps: 0,
        stats: Stats::default(),
        rings: Rings::default(),
        boxes: Boxes::default(),
        slack,
        is_numbered: false,
        sites: (0..)
            .zip(crate::device_print::sites(func))
            .map(|(number, (inst, _))| (inst, number))
            .collect(),
    };
    let [x_end, y_end, z_end] = match func.persistent {
        true => [machine.ctas(), 1, 1],
        false => grid,
    };
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
    [machine.stats.bytes_read, machine.stats.bytes_written] = machine.memory.touched();
    Ok((machine.stats, machine.slack))
}

/// Whether programs may order their accesses among each other.
fn has_atomics(func: &TileFunction) -> bool {
    func.all_insts().any(|(_, inst)| {
        let mut accesses = func.dfg.insts[inst].op.info().effects.accesses();
        accesses.any(|access| access.how == How::Atomic)
    })
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
    /// The element of a block that memory is accessed for.
    element: Option<usize>,
    /// What the limit is on.
    steps: u64,
    stats: Stats,
    rings: Rings,
    boxes: Boxes,
    /// How far values may be from those of other executors, if that is asked for.
    slack: Option<Slack>,
    /// Whether elements are numbers of elements, of whatever type, to see where an op takes them.
    is_numbered: bool,
    /// Numbers of the places that print.
    sites: FxHashMap<Inst, u32>,
}

/// Floating-point operations of one element.
fn flops_of(op: TileOp) -> u32 {
    match op {
        TileOp::Fma => 2,
        TileOp::Fadd | TileOp::Fsub | TileOp::Fmul | TileOp::Fdiv | TileOp::FdivRn => 1,
        TileOp::RcpFtz | TileOp::Log2Approx | TileOp::SinApprox | TileOp::CosApprox => 1,
        TileOp::SqrtRn => 1,
        op => u32::from(op.info().rule == TypeRule::Function),
    }
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
    fn place(&self) -> FaultSite {
        let insts = &self.func.dfg.insts;
        FaultSite {
            program: Some(self.program),
            inst: self.current.map(|inst| (inst, insts[inst].op)),
            element: self.element.map(|element| element as u32),
            loc: self.current.map_or(SourceLoc::default(), |i| insts[i].loc),
        }
    }

    /// CTAs that execute a persistent kernel: any number would do, and fewer than there are programs let each execute several.
    fn ctas(&self) -> u32 {
        let programs: u64 = self.grid.iter().map(|&n| u64::from(n)).product();
        programs.min(3) as u32
    }

    fn program(&mut self, args: &[u64]) -> Outcome<()> {
        // Programs are numbered as they run; the number only has to tell them apart.
        self.memory.enter_program(self.stats.programs as u32);
        self.stats.programs += 1;
        self.values.clear();
        self.rings = Rings::default();
        self.boxes = Boxes::default();
        if let Some(slack) = &mut self.slack {
            slack.values.clear();
        }
        let args = args.iter().map(|&bits| Held::exact(smallvec![bits]));
        let args = args.collect();
        match self.block(self.func.entry, args)? {
            Flow::Return => self.check_balance(|_| true),
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
            self.hold(param, arg)?;
        }
        // The verifier bounds the nesting, and so this recursion.
        for &inst in func.order.insts(block) {
            self.current = Some(inst);
            self.element = None;
            self.stats.instructions += 1;
            self.steps += self.cost(inst);
            self.stats.flops += self.flops(inst);
            if self.steps > self.options.step_limit {
                return Err(InterpErrorKind::StepLimit(self.options.step_limit));
            }
            if let Some(flow) = self.inst(inst)? {
                return Ok(flow);
            }
        }
        Err(malformed(format!("{block} has no terminator")))
    }

    /// Floating-point operations of an instruction, those of products of matrices of any type.
    fn flops(&self, inst: Inst) -> u64 {
        let dfg = &self.func.dfg;
        let data = &dfg.insts[inst];
        let Some(&result) = data.results.first() else {
            return 0;
        };
        let elements = dfg.ty(result).shape.elements() as u64;
        match (data.op, data.args.first()) {
            (TileOp::Dot | TileOp::DotStart, Some(&a)) => {
                2 * elements * dfg.ty(a).shape.extents().last().unwrap_or(1)
            }
            (op, _) => elements * u64::from(flops_of(op)),
        }
    }

    /// Steps of an instruction: a fixed number, and the elements of its first result or operand, whichever has more.
    fn cost(&self, inst: Inst) -> u64 {
        let dfg = &self.func.dfg;
        let data = &dfg.insts[inst];
        let elements = |value: Option<&Value>| value.map_or(1, |&v| dfg.ty(v).shape.elements());
        let results = elements(data.results.first());
        INST_STEPS
            + match (data.op, data.args.first()) {
                (TileOp::Dot | TileOp::DotStart, Some(&a)) => {
                    results as u64 * dfg.ty(a).shape.extents().last().unwrap_or(1)
                }
                (_, first) => results.max(elements(first)) as u64,
            }
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
        // The number of a token has no bits.
        if ty.elem != Elem::Token && !self.is_numbered {
            for elem in &mut elems {
                *elem = int::low_bits(bits, *elem);
            }
        }
        self.values[value] = elems;
        Ok(())
    }

    /// The same with what is known about its slack.
    fn hold(&mut self, value: Value, held: Held) -> Outcome<()> {
        if let Some(slack) = &mut self.slack {
            slack.values[value] = held.slack;
        }
        self.define(value, held.elems)
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
        let held = |&value: &Value| {
            let slack = self.slack.as_ref();
            Ok(Held {
                elems: self.get(value)?.clone(),
                slack: slack.map_or(Vec::new(), |slack| slack.values[value].clone()),
            })
        };
        values.iter().map(held).collect()
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

    fn result_elements(&self, data: &InstData<Tile>) -> usize {
        let result = data.results.first();
        result.map_or(1, |&r| self.func.dfg.ty(r).shape.elements())
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
