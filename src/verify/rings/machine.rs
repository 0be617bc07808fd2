//! Executes a kernel without its blocks.
//!
//! A producer does what it does apart from its program: what it brings and what it waits for is a list, of which as much has happened as
//! the program let happen.

use std::collections::VecDeque;
use std::hash::{Hash, Hasher};

use cranelift_entity::SecondaryMap;
use rustc_hash::{FxHashSet, FxHasher};
use smallvec::SmallVec;

use super::scalar::{Held, chosen, evaluate, low, mix, signed};
use super::state::{Entry, State};
use super::{Fault, MOST_STEPS};
use crate::ir::attrs::Attrs;
use crate::ir::dfg::InstData;
use crate::ir::entities::{Block, Inst, Slot, Value};
use crate::ir::function::{MBAR_BYTES, ParamHints, TileFunction};
use crate::ir::level::Tile;
use crate::ir::ops::{Opcode, TileOp};
use crate::ir::types::{Elem, Extent, ValueType};

/// Why an execution does not go on.
enum Stop {
    /// It takes too long, or comes to what it does not know.
    Undecided,
    Fault(Fault),
}

type Done<T> = Result<T, Stop>;
type Helds = SmallVec<[Held; 4]>;

/// How a block ended.
enum Flow {
    Yield(Helds),
    Condition(bool, Helds),
}

/// What a producer does.
#[derive(Clone, Copy, Debug)]
enum Action {
    Wait(Entry, u64),
    Expect(Entry, u32),
    Copy(Entry, Entry, u32),
}

pub(super) struct Machine<'a> {
    func: &'a TileFunction,
    sample: u64,
    steps: u32,
    values: SecondaryMap<Value, Held>,
    state: State,
    /// What the producer has still to do.
    ahead: VecDeque<(Inst, Action)>,
    produces: bool,
    /// Numbers that were left in slots.
    numbers: SecondaryMap<Slot, u64>,
    /// Told of each step, if somebody watches.
    watch: Option<Watch<'a>>,
}

/// What is told of a step: the instruction, whether a producer takes it, and what stands in rings behind it.
pub(super) type Watch<'a> = &'a mut dyn FnMut(Inst, bool, &State);

impl<'a> Machine<'a> {
    pub(super) fn new(func: &'a TileFunction, sample: u64) -> Machine<'a> {
        Machine {
            func,
            sample: mix(sample + 1),
            steps: 0,
            values: SecondaryMap::new(),
            state: State::new(sometimes_read(func)),
            ahead: VecDeque::new(),
            produces: false,
            numbers: SecondaryMap::new(),
            watch: None,
        }
    }

    /// The same, watched.
    #[cfg(feature = "tool")]
    pub(super) fn watched(func: &'a TileFunction, sample: u64, watch: Watch<'a>) -> Machine<'a> {
        Machine {
            watch: Some(watch),
            ..Machine::new(func, sample)
        }
    }

    fn tell(&mut self, inst: Inst, is_ahead: bool) {
        if let Some(watch) = &mut self.watch {
            watch(inst, is_ahead, &self.state);
        }
    }

    pub(super) fn run(mut self) -> Result<(), Fault> {
        let params = &self.func.dfg.blocks[self.func.entry].params;
        for (index, &param) in params.iter().enumerate() {
            let name = mix(self.sample ^ (index as u64 + 1));
            let hints = self.func.param_hints.get(index);
            let divisible = hints.map_or(0, ParamHints::promised);
            self.values[param] = self.given(param, name, divisible);
        }
        match self.block(self.func.entry) {
            Ok(_) => {
                let message = match self.ahead.front() {
                    Some(&(inst, Action::Wait((slot, index), _))) => {
                        let message =
                            format!("a producer waits for barrier {index} of {slot} for ever");
                        return Err(Fault {
                            inst: Some(inst),
                            message,
                        });
                    }
                    _ => self.state.end(),
                };
                message.map_err(|message| Fault {
                    inst: None,
                    message,
                })
            }
            Err(Stop::Undecided) => Ok(()),
            Err(Stop::Fault(fault)) => Err(fault),
        }
    }

    /// What a value is that is not computed from others: a scalar some number.
    fn given(&self, value: Value, name: u64, divisible: u32) -> Held {
        let ty = self.func.dfg.ty(value);
        if !ty.is_single() {
            return Held::name(name);
        }
        match ty.elem() {
            Elem::Num(scalar) if scalar.is_int() => {
                Held::number(low(scalar.bits(), chosen(name, divisible)))
            }
            // An address is one number, which nothing else is.
            _ => Held::number(name << 8),
        }
    }

    fn width(&self, value: Value) -> u32 {
        match self.func.dfg.ty(value).elem() {
            Elem::Num(scalar) => scalar.bits(),
            _ => 64,
        }
    }

    fn scalar(&self, data: &InstData<Tile>, index: usize) -> Done<u64> {
        let held = data.args.get(index).map(|&value| self.values[value]);
        match held {
            Some(held) if held.is_known => Ok(held.bits),
            _ => Err(Stop::Undecided),
        }
    }

    fn entry(&self, data: &InstData<Tile>, index: usize) -> Done<Result<Entry, String>> {
        let slot = *data.slot().ok_or(Stop::Undecided)?;
        let index = self.scalar(data, index)?;
        let entries = self.func.buffers[slot].map_or(0, |ring| u64::from(ring.stages));
        Ok(match index < entries {
            true => Ok((slot, index)),
            false => Err(format!("{slot} has {entries} entries, not number {index}")),
        })
    }

    fn block(&mut self, block: Block) -> Done<Flow> {
        for &inst in self.func.order.insts(block) {
            self.steps += 1;
            if MOST_STEPS < self.steps {
                return Err(Stop::Undecided);
            }
            let data = &self.func.dfg.insts[inst];
            match data.op {
                TileOp::Yield | TileOp::Return => {
                    let helds = data.args.iter().map(|&value| self.values[value]);
                    return Ok(Flow::Yield(helds.collect()));
                }
                TileOp::Condition => {
                    let cond = self.scalar(data, 0)? == 1;
                    let helds = data.args.iter().skip(1).map(|&value| self.values[value]);
                    return Ok(Flow::Condition(cond, helds.collect()));
                }
                TileOp::For | TileOp::While | TileOp::If | TileOp::Producer => {
                    let results = self.regions(data)?;
                    for (&value, held) in data.results.iter().zip(results) {
                        self.values[value] = held;
                    }
                }
                _ => self.inst(inst, data)?,
            }
        }
        Err(Stop::Undecided)
    }

    fn region(&mut self, data: &InstData<Tile>, index: usize, args: &[Held]) -> Done<Flow> {
        let call = data.blocks.get(index).ok_or(Stop::Undecided)?;
        let params = &self.func.dfg.blocks[call.block].params;
        for (&param, &held) in params.iter().zip(args) {
            self.values[param] = held;
        }
        self.block(call.block)
    }

    fn regions(&mut self, data: &InstData<Tile>) -> Done<Helds> {
        let given = |machine: &Self, skip: usize| -> Helds {
            let args = data.args.iter().skip(skip);
            args.map(|&value| machine.values[value]).collect()
        };
        match data.op {
            TileOp::For => {
                let width = self.width(data.args[0]);
                let [lo, hi, step] = [0, 1, 2].map(|i| self.scalar(data, i));
                let (mut at, hi) = (signed(width, lo?), signed(width, hi?));
                let step = signed(width, step?);
                let mut carried = given(self, 3);
                if step < 1 {
                    return Err(Stop::Undecided);
                }
                while at < hi {
                    let mut args: Helds = SmallVec::new();
                    args.push(Held::number(low(width, at as u64)));
                    args.extend(carried);
                    carried = match self.region(data, 0, &args)? {
                        Flow::Yield(helds) => helds,
                        Flow::Condition(..) => return Err(Stop::Undecided),
                    };
                    at = at.checked_add(step).ok_or(Stop::Undecided)?;
                }
                Ok(carried)
            }
            TileOp::While => {
                let mut carried = given(self, 0);
                loop {
                    carried = match self.region(data, 0, &carried)? {
                        Flow::Condition(true, passed) => match self.region(data, 1, &passed)? {
                            Flow::Yield(helds) => helds,
                            Flow::Condition(..) => return Err(Stop::Undecided),
                        },
                        Flow::Condition(false, passed) => return Ok(passed),
                        Flow::Yield(_) => return Err(Stop::Undecided),
                    }
                }
            }
            TileOp::If => {
                let index = usize::from(self.scalar(data, 0)? != 1);
                match self.region(data, index, &[])? {
                    Flow::Yield(helds) => Ok(helds),
                    Flow::Condition(..) => Err(Stop::Undecided),
                }
            }
            _ => {
                self.produces = true;
                self.region(data, 0, &[])?;
                self.produces = false;
                self.advance()?;
                Ok(SmallVec::new())
            }
        }
    }

    /// Lets the producer go on as far as it can.
    fn advance(&mut self) -> Done<()> {
        while let Some(&(inst, action)) = self.ahead.front() {
            let done = match action {
                Action::Wait(barrier, parity) => match self.state.pass(barrier, parity) {
                    Ok(false) => return Ok(()),
                    passed => passed.map(drop),
                },
                Action::Expect(barrier, bytes) => self.state.arrive(barrier, 1, bytes),
                Action::Copy(entry, barrier, bytes) => self.state.produce(entry, barrier, bytes),
            };
            at(inst, done)?;
            self.tell(inst, true);
            self.ahead.pop_front();
        }
        Ok(())
    }

    fn inst(&mut self, inst: Inst, data: &InstData<Tile>) -> Done<()> {
        let held = at(inst, self.shared(inst, data)?)?;
        if !self.produces && self.happens(data)? {
            self.tell(inst, false);
        }
        if let Some(held) = held {
            if let Some(&value) = data.results.first() {
                self.values[value] = held;
            }
            return Ok(());
        }
        self.compute(data)
    }

    /// Whether the program does it: some ops have a condition.
    fn happens(&self, data: &InstData<Tile>) -> Done<bool> {
        let condition = match data.op {
            TileOp::MbarExpect | TileOp::MbarArrive | TileOp::Release => 1,
            TileOp::TensorCopy => 2,
            _ => return Ok(true),
        };
        Ok(self.scalar(data, condition)? == 1)
    }

    /// What is about rings, barriers and products; gives the first result, or none if the op is about something else.
    fn shared(&mut self, inst: Inst, data: &InstData<Tile>) -> Done<Result<Option<Held>, String>> {
        macro_rules! known {
            ($result:expr) => {
                match $result {
                    Ok(value) => value,
                    Err(message) => return Ok(Err(message)),
                }
            };
        }
        let barrier_slot = data.bars().or(data.slot()).copied();
        let mut bits = 0;
        match data.op {
            TileOp::AsyncCopy => {
                let entry = known!(self.entry(data, 1)?);
                let mask = data.args.get(2).map(|&value| self.values[value]);
                known!(self.state.copy(entry, mask == Some(Held::number(0))));
            }
            TileOp::AsyncCommit => {
                bits = self.state.group;
                self.state.group += 1;
            }
            TileOp::AsyncWait => {
                for index in 0..data.args.len() {
                    let group = self.scalar(data, index)?;
                    self.state.wait_group(group);
                }
            }
            TileOp::SharedStore => {
                let entry = known!(self.entry(data, 1)?);
                known!(self.state.store(entry));
            }
            TileOp::SharedLoad => {
                let entry = known!(self.entry(data, 0)?);
                let fill = known!(self.state.read(entry));
                return Ok(Ok(Some(Held::name(mix(fill)))));
            }
            TileOp::SharedView => {
                let entry = known!(self.entry(data, 0)?);
                bits = known!(self.state.read(entry));
            }
            TileOp::Permute if is_shared(self.func, data.args[0]) => {
                bits = self.values[data.args[0]].bits;
            }
            TileOp::DotStart => {
                let mut fills: SmallVec<[(Slot, u64); 2]> = SmallVec::new();
                for &operand in data.args.iter().take(2) {
                    if let Some(view) = self.func.view_of(operand) {
                        let slot = self.func.dfg.insts[view.inst].slot().copied();
                        fills.push((slot.ok_or(Stop::Undecided)?, self.values[operand].bits));
                    }
                }
                bits = known!(self.state.start(&fills));
                if let Some(&token) = data.results.get(1) {
                    self.values[token] = Held::number(bits);
                }
            }
            // The product 0 is done.
            TileOp::DotDone => {
                if let Some(&token) = data.results.get(1) {
                    self.values[token] = Held::number(0);
                }
            }
            TileOp::DotWait => {
                for index in 0..data.args.len() {
                    let product = self.scalar(data, index)?;
                    self.state.finish(product);
                }
            }
            TileOp::DotSum => {
                let [sum, product] = [self.scalar(data, 0)?, self.scalar(data, 1)?];
                if product < sum {
                    return Ok(Err(
                        "the sum is of a product that is started behind the one waited for"
                            .to_owned(),
                    ));
                }
                self.state.finish(product);
                return Ok(Ok(Some(Held::name(mix(sum)))));
            }
            TileOp::MbarInit => {
                let slot = barrier_slot.ok_or(Stop::Undecided)?;
                let barriers = self.func.slots[slot].bytes / MBAR_BYTES;
                let count = *data.count().ok_or(Stop::Undecided)?;
                known!(self.state.init(slot, barriers, count));
            }
            TileOp::MbarDrop => {
                let slot = barrier_slot.ok_or(Stop::Undecided)?;
                known!(self.state.drop_barriers(slot));
            }
            TileOp::MbarExpect | TileOp::MbarArrive | TileOp::Release => {
                if self.scalar(data, 1)? != 1 {
                    return Ok(Ok(Some(Held::default())));
                }
                if data.op == TileOp::Release {
                    let entry = known!(self.entry(data, 0)?);
                    known!(self.state.release(entry));
                } else {
                    let slot = barrier_slot.ok_or(Stop::Undecided)?;
                    let barrier = (slot, self.scalar(data, 0)?);
                    let bytes = data.bytes().copied().unwrap_or(0);
                    if self.produces {
                        self.ahead.push_back((inst, Action::Expect(barrier, bytes)));
                    } else if data.op == TileOp::MbarExpect {
                        known!(self.state.arrive(barrier, 1, bytes));
                    } else {
                        let warps = u64::from(self.func.num_warps());
                        known!(self.state.arrive(barrier, warps, 0));
                        self.advance()?;
                    }
                }
            }
            TileOp::TensorCopy => {
                if self.scalar(data, 2)? != 1 {
                    return Ok(Ok(Some(Held::default())));
                }
                let entry = known!(self.entry(data, 1)?);
                let barrier = (barrier_slot.ok_or(Stop::Undecided)?, entry.1);
                let bytes = self.func.buffers[entry.0].map_or(0, |ring| ring.stage_bytes());
                if self.produces {
                    let action = Action::Copy(entry, barrier, bytes);
                    self.ahead.push_back((inst, action));
                } else {
                    known!(self.state.copy_box(entry, barrier, bytes));
                }
            }
            TileOp::MbarWait | TileOp::MbarWaitFor => {
                bits = 1;
                let slot = barrier_slot.ok_or(Stop::Undecided)?;
                let (index, parity) = (self.scalar(data, 0)?, self.scalar(data, 1)?);
                if self.produces {
                    let action = Action::Wait((slot, index), parity);
                    self.ahead.push_back((inst, action));
                } else {
                    if !known!(self.state.pass((slot, index), parity)) {
                        let message = format!(
                            "nobody ends the phase of barrier {index} of {slot} that is waited for"
                        );
                        return Ok(Err(message));
                    }
                    // Who was let in by what the program did may have gone on.
                    self.advance()?;
                }
            }
            TileOp::SlotPut => {
                let slot = barrier_slot.ok_or(Stop::Undecided)?;
                self.numbers[slot] = self.scalar(data, 0)?;
            }
            TileOp::SlotGet => bits = self.numbers[barrier_slot.ok_or(Stop::Undecided)?],
            _ => return Ok(Ok(None)),
        }
        Ok(Ok(Some(Held::number(bits))))
    }

    fn compute(&mut self, data: &InstData<Tile>) -> Done<()> {
        let args: Helds = data.args.iter().map(|&value| self.values[value]).collect();
        let Some(&first) = data.results.first() else {
            return Ok(());
        };
        let single = match data.op {
            TileOp::Const => data.value().copied(),
            // Few programs, of which this is one; one group executes them all.
            TileOp::NumPrograms => Some(1 + self.sample % 3),
            TileOp::ProgramId | TileOp::CtaId | TileOp::GroupId => Some(0),
            TileOp::NumCtas => Some(1 + self.sample % 2),
            TileOp::NumGroups => Some(1),
            _ => evaluate(
                data,
                self.width(*data.args.first().unwrap_or(&first)),
                &args,
            ),
        };
        if let Some(bits) = single {
            self.values[first] = Held::number(low(self.width(first), bits));
            return Ok(());
        }
        let mut hasher = FxHasher::default();
        (self.sample, data.op).hash(&mut hasher);
        data.attrs.hash(&mut hasher);
        args.iter().for_each(|held| held.bits.hash(&mut hasher));
        let is_pure = data.op == TileOp::Load && data.volatile().is_none();
        if !is_pure && !data.op.info().is_pure() {
            self.steps.hash(&mut hasher);
        }
        for (index, &value) in data.results.iter().enumerate() {
            let name = mix(hasher.finish() ^ index as u64);
            self.values[value] = self.given(value, name, 1);
        }
        Ok(())
    }
}

/// Rings with a read that stands in another block than what fills or frees their entries: in a branch, or a loop inside of the loop, which
/// the program may come past.
fn sometimes_read(func: &TileFunction) -> FxHashSet<Slot> {
    let mut reads: SmallVec<[(Slot, Block); 8]> = SmallVec::new();
    let mut beside: FxHashSet<(Slot, Block)> = FxHashSet::default();
    for block in func.dfg.blocks.keys() {
        for &inst in func.order.insts(block) {
            let data = &func.dfg.insts[inst];
            let Some(&slot) = data.slot() else { continue };
            match data.op {
                TileOp::SharedLoad | TileOp::SharedView => reads.push((slot, block)),
                _ => drop(beside.insert((slot, block))),
            }
        }
    }
    let is_apart = |read: &&(Slot, Block)| !beside.contains(*read);
    reads
        .iter()
        .filter(is_apart)
        .map(|&(slot, _)| slot)
        .collect()
}

fn is_shared(func: &TileFunction, value: Value) -> bool {
    matches!(func.dfg.ty(value).extent(), Extent::Shared(..))
}

/// A fault of the instruction.
fn at<T>(inst: Inst, done: Result<T, String>) -> Done<T> {
    done.map_err(|message| {
        Stop::Fault(Fault {
            inst: Some(inst),
            message,
        })
    })
}
