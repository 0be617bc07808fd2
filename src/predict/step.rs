//! One instruction of an agent.

use smallvec::SmallVec;

use super::agent::{Known, State, WARPS};
use super::reuse::Source;
use super::scalar;
use super::sm::Sm;
use crate::ir::attrs::{Attrs, SpecialReg};
use crate::ir::dfg::{BlockCall, InstData};
use crate::ir::entities::{Inst, Value};
use crate::ir::level::Thread;
use crate::ir::effects::Class;
use crate::ir::ops::{Opcode, ThreadOp};
use crate::ir::types::{AddressSpace, Elem};

/// Clocks of a branch.
const BRANCH: f64 = 2.0;
/// Bytes of a line of the cache.
const LINE: f64 = 128.0;

/// What a copy of a box moves.
pub(super) struct Moved {
    pub(super) source: Source,
    /// Bytes that barriers are told of.
    announced: i64,
    /// Those of them within the tensor; the others are filled in.
    pub(super) bytes: f64,
    /// Rows of the box.
    pub(super) rows: f64,
    /// How many times as long a row takes as one that fills lines of the cache.
    pub(super) longer: f64,
}

impl Sm<'_> {
    /// Executes the next instruction of an agent; none where the kernel does what no kernel does.
    pub(super) fn step(&mut self, at: usize) -> Option<()> {
        let kernel = self.kernel;
        let (block, index) = (self.agents[at].block, self.agents[at].at);
        let &inst = kernel.thread.order.insts(block).get(index)?;
        let data = &kernel.thread.dfg.insts[inst];
        match data.op {
            ThreadOp::Return => self.agents[at].state = State::Ended,
            ThreadOp::Jump => self.go(at, data.blocks.first()?),
            ThreadOp::Brif => {
                let cond = *data.args.first()?;
                let known = self.agents[at].number(cond);
                if known.is_none() {
                    self.guessed = true;
                }
                // What data decide is taken to be rare, and to end loops.
                let taken = known.is_some_and(|bits| bits & 1 != 0);
                let ready = self.agents[at].value(cond).ready;
                let agent = &mut self.agents[at];
                agent.time = agent.time.max(ready) + BRANCH;
                let [to, other] = [usize::from(!taken), usize::from(taken)];
                if self.ends(data.blocks.get(other)?) {
                    let with = self.agents[at].warps_with(cond);
                    let agent = &mut self.agents[at];
                    // The others have nothing to do.
                    if known.is_some() && taken && 0 < with {
                        agent.warps = with;
                    }
                }
                self.go(at, data.blocks.get(to)?);
            }
            _ => {
                if self.execute(at, inst, data)? {
                    self.agents[at].at += 1;
                }
            }
        }
        Some(())
    }

    /// Whether nothing happens in a block.
    fn ends(&self, call: &BlockCall) -> bool {
        let first = self.kernel.thread.order.insts(call.block).first();
        first.is_some_and(|&inst| self.kernel.thread.dfg.insts[inst].op == ThreadOp::Return)
    }

    /// Goes to a block.
    fn go(&mut self, at: usize, call: &BlockCall) {
        let params = &self.kernel.thread.dfg.blocks[call.block].params;
        let agent = &mut self.agents[at];
        let args: SmallVec<[Known; 8]> = call.args.iter().map(|&arg| *agent.value(arg)).collect();
        for (&param, arg) in params.iter().zip(args) {
            agent.set(param, arg);
        }
        agent.block = call.block;
        agent.at = 0;
        if 0 < self.kernel.spilled && call.block == self.kernel.busiest {
            self.spill(at);
        }
    }

    /// Executes an instruction that ends no block; whether it is over, or is to be looked at again.
    fn execute(&mut self, at: usize, inst: Inst, data: &InstData<Thread>) -> Option<bool> {
        let cost = self.kernel.costs[inst];
        let offset = data.offset().map_or(0, |&offset| i64::from(offset));
        let address = |sm: &Sm<'_>, arg: usize| -> Option<u64> {
            let base = sm.agents[at].number(*data.args.get(arg)?)?;
            Some(base.wrapping_add_signed(offset))
        };
        let (cta, wait) = (self.agents[at].cta, self.figures.wait);
        match data.op {
            ThreadOp::MbarInit => {
                let count = data.count().copied().unwrap_or(1);
                let address = address(self, 0)?;
                self.make_barrier(cta, address, count);
            }
            ThreadOp::MbarExpect | ThreadOp::MbarArrive => {
                let arrivals = self.arrivals(at, *data.args.get(1)?);
                let bytes = data.bytes().map_or(0, |&bytes| i64::from(bytes));
                let (address, time) = (address(self, 0)?, self.agents[at].time);
                if 0 < arrivals {
                    self.arrive(cta, address, arrivals, bytes, time);
                }
            }
            ThreadOp::MbarTry => {
                let parity = self.agents[at].number(*data.args.get(1)?)?;
                let address = address(self, 0)?;
                let Some(over) = self.phase_over(cta, address, parity) else {
                    self.agents[at].state = State::Waits;
                    return Some(false);
                };
                let agent = &mut self.agents[at];
                agent.time = agent.time.max(over) + wait;
                agent.set(*data.results.first()?, Known::number(1));
                return Some(true);
            }
            ThreadOp::Barrier | ThreadOp::GroupBarrier => {
                let id = match data.id() {
                    Some(&id) => u64::from(id),
                    None => self.agents[at].number(*data.args.first()?)?,
                };
                let Some(over) = self.meet(at, id, *data.threads()?) else {
                    self.agents[at].state = State::Waits;
                    return Some(false);
                };
                let agent = &mut self.agents[at];
                agent.time = agent.time.max(over) + wait;
                return Some(true);
            }
            ThreadOp::TensorCopy => {
                if 0 < self.arrivals(at, *data.args.get(3)?) {
                    let moved = self.moved_box(at, data, 1, 4)?;
                    let bar = self.agents[at].number(*data.args.get(2)?)?;
                    let start = self.agents[at].time;
                    let over = self.fetch_box(start, &moved);
                    self.arrive(cta, bar, 0, -moved.announced, over);
                }
            }
            ThreadOp::TensorStore => {
                if 0 < self.arrivals(at, *data.args.get(2)?) {
                    let moved = self.moved_box(at, data, 1, 3)?;
                    let start = self.agents[at].time;
                    let over = self.store(start, moved.bytes) + self.figures.l2_latency;
                    self.agents[at].boxes.begin(over);
                }
            }
            ThreadOp::BulkCommit => self.agents[at].boxes.commit(),
            ThreadOp::BulkWaitRead | ThreadOp::BulkWait => {
                let over = self.agents[at].boxes.wait(*data.pending()?);
                let agent = &mut self.agents[at];
                agent.time = agent.time.max(over);
            }
            ThreadOp::CpAsync => {
                let bytes = 32.0 * f64::from(self.agents[at].warps * *data.bytes()?);
                let missed = self.setting.missed(self.source(at, *data.args.get(1)?));
                let start = self.agents[at].time;
                let over = self.fetch(start, bytes, bytes / LINE, missed, 0.0);
                self.agents[at].copies.begin(over);
            }
            ThreadOp::CpAsyncCommit => self.agents[at].copies.commit(),
            ThreadOp::CpAsyncWait => {
                let over = self.agents[at].copies.wait(*data.pending()?);
                let agent = &mut self.agents[at];
                agent.time = agent.time.max(over) + wait;
            }
            ThreadOp::FenceAsync => self.agents[at].time += self.figures.fence,
            ThreadOp::SetRegisters => self.agents[at].time += self.figures.registers,
            ThreadOp::WgmmaFence => {
                self.settle(at, data);
                self.pass_on(at, data);
                return Some(true);
            }
            ThreadOp::Wgmma => {
                let agent = &mut self.agents[at];
                agent.time += cost.issued;
                let start = agent.time;
                let over = self.multiply(at, start, &cost);
                self.agents[at].products.begin(over);
                self.pass_on(at, data);
                return Some(true);
            }
            ThreadOp::WgmmaCommit => self.agents[at].products.commit(),
            ThreadOp::WgmmaWait => {
                let over = self.agents[at].products.wait(*data.pending()?);
                let agent = &mut self.agents[at];
                agent.time = agent.time.max(over);
                self.pass_on(at, data);
                return Some(true);
            }
            _ => return self.compute(at, inst, data),
        }
        self.agents[at].time += 1.0;
        Some(true)
    }

    /// What threads compute, and what they load and store themselves.
    fn compute(&mut self, at: usize, inst: Inst, data: &InstData<Thread>) -> Option<bool> {
        let cost = self.kernel.costs[inst];
        let thread = &self.kernel.thread;
        let agent = &self.agents[at];
        let (mut ready, mut done) = (agent.time, 0.0_f64);
        for &arg in &data.args {
            let known = agent.value(arg);
            ready = ready.max(known.ready);
            done = done.max(known.done);
        }
        let count = |value: &Value| thread.dfg.ty(*value).registers();
        let widest = data.args.iter().map(count).max().unwrap_or(0);
        if data.results.first().map_or(0, count) < widest && cost.issued > 0.0 {
            // All of a pack goes into what is smaller.
            ready = ready.max(done);
        }
        if data.op.info().effects.class == Class::Memory {
            ready = ready.max(done);
        }
        if agent.time < ready && 0.0 < cost.issued {
            // It stands at the front until then, and others go on.
            self.agents[at].time = ready;
            return Some(false);
        }
        let (issued, over) = match cost.issued > 0.0 {
            true => self.serve(at, ready, &cost),
            false => (self.agents[at].time, ready),
        };
        let (mut first, mut last) = match cost.issued > 0.0 {
            true => {
                let latency = cost.latency + cost.depth * self.figures.dependent;
                (ready + latency, over.max(done) + latency)
            }
            false => (ready, done),
        };
        let space = |value: Value| match thread.dfg.ty(value).elem {
            Elem::Ptr(_, space) => Some(space),
            _ => None,
        };
        let warps = f64::from(self.agents[at].warps);
        let bytes = |value: Value| {
            let ty = thread.dfg.ty(value);
            32.0 * warps * f64::from(ty.elem.bytes()) * f64::from(ty.count)
        };
        let to = data.args.first().copied();
        match (data.op, to.and_then(space)) {
            (ThreadOp::Ld, Some(AddressSpace::Global)) => {
                let result = *data.results.first()?;
                let missed = self.setting.missed(self.source(at, to?));
                let lines = (bytes(result) / LINE).max(warps);
                let there = self.fetch(issued, bytes(result), lines, missed, 0.0);
                (first, last) = (there, there);
            }
            (ThreadOp::St, Some(AddressSpace::Global)) => {
                self.store(issued, bytes(*data.args.get(1)?));
            }
            (ThreadOp::Atom | ThreadOp::AtomCas, Some(AddressSpace::Global)) => {
                // What goes to one address from everywhere waits for each other there.
                let address = self.agents[at].number(to?);
                let source = address.map_or(Source::UNKNOWN, Source::changed);
                let others = (1.0 - self.setting.missed(source)) * self.setting.active;
                let there = self.fetch(issued, bytes(*data.args.get(1)?), warps, 0.0, 0.0);
                let over = self.change(issued, others);
                (first, last) = (there.max(over), there.max(over));
            }
            (ThreadOp::Ld | ThreadOp::LdMatrix, _) => {
                let there = over + self.figures.shared_latency;
                (first, last) = (there, there);
            }
            _ => {}
        }
        self.agents[at].time = issued;
        self.leave(at, data);
        for &result in &data.results {
            let known = self.known(at, data, result).or_else(|| self.left(at, data));
            let mut known = known.unwrap_or_default();
            (known.ready, known.done) = (first, last);
            self.agents[at].set(result, known);
        }
        Some(true)
    }

    /// The number that an instruction gives, if that can be said.
    fn known(&self, at: usize, data: &InstData<Thread>, result: Value) -> Option<Known> {
        let thread = &self.kernel.thread;
        let elem = thread.dfg.ty(result).elem;
        let agent = &self.agents[at];
        match data.op {
            ThreadOp::Const => return Some(Known::number(*data.value()? & elem.mask())),
            ThreadOp::MapAddr => return Some(Known::number(u64::from(*data.index()?))),
            ThreadOp::SlotAddr => {
                let slot = thread.slots[*data.slot()?];
                return Some(Known::number(u64::from(slot.offset?)));
            }
            ThreadOp::Special => return self.special(at, *data.reg()?),
            _ => {}
        }
        if thread.dfg.ty(result).count != 1 {
            return None;
        }
        let first = *data.args.first()?;
        let bits = match data.op {
            // The result of a choice has the second one's width, and truth values have none.
            ThreadOp::Select => elem.bits(),
            _ => thread.dfg.ty(first).elem.bits(),
        };
        let mut known = Known {
            is_known: true,
            ..Known::default()
        };
        for warp in 0..agent.warps as usize {
            let mut args: SmallVec<[u64; 4]> = SmallVec::new();
            for &arg in &data.args {
                let arg = agent.value(arg);
                if !arg.is_known {
                    return None;
                }
                args.push(arg.bits[warp]);
            }
            let found = match data.op {
                ThreadOp::Addptr => {
                    let step = i64::from(elem.pointee()?.bytes().max(1));
                    let unused = 64 - thread.dfg.ty(*data.args.get(1)?).elem.bits().clamp(1, 64);
                    let index = ((args[1] << unused) as i64) >> unused;
                    args[0].wrapping_add_signed(index.wrapping_mul(step))
                }
                _ => scalar::eval(data, bits, &args)?,
            };
            known.bits[warp] = found & elem.mask();
        }
        Some(known)
    }

    /// Where a single number stands in shared memory.
    fn place(&self, at: usize, data: &InstData<Thread>, value: Value) -> Option<(usize, u64)> {
        let thread = &self.kernel.thread;
        let pointer = *data.args.first()?;
        let is_shared = matches!(thread.dfg.ty(pointer).elem, Elem::Ptr(_, AddressSpace::Shared));
        if !is_shared || thread.dfg.ty(value).count != 1 {
            return None;
        }
        let offset = data.offset().map_or(0, |&offset| i64::from(offset));
        let agent = &self.agents[at];
        let address = agent.number(pointer)?.wrapping_add_signed(offset);
        Some((agent.cta, address))
    }

    /// Leaves a number in shared memory, if that is what the instruction does.
    fn leave(&mut self, at: usize, data: &InstData<Thread>) {
        if let (ThreadOp::St, Some(&value)) = (data.op, data.args.get(1))
            && let Some(place) = self.place(at, data, value)
        {
            let pred = data.args.get(2);
            if pred.is_none_or(|&pred| 0 < self.agents[at].warps_with(pred)) {
                let known = *self.agents[at].value(value);
                self.words.insert(place, known);
            }
        }
    }

    /// The number that was left in shared memory.
    fn left(&self, at: usize, data: &InstData<Thread>) -> Option<Known> {
        if data.op != ThreadOp::Ld {
            return None;
        }
        let place = self.place(at, data, *data.results.first()?)?;
        let known = *self.words.get(&place)?;
        known.is_known.then(|| Known::number(known.bits[0]))
    }

    /// A special register.
    fn special(&self, at: usize, reg: SpecialReg) -> Option<Known> {
        let agent = &self.agents[at];
        let [x, y, _] = self.setting.ctas.map(u64::from);
        let number = agent.number;
        Some(match reg {
            SpecialReg::Tid => {
                let mut known = Known::number(0);
                for warp in 0..WARPS {
                    known.bits[warp] = 32 * (u64::from(agent.warp) + warp as u64);
                }
                known
            }
            SpecialReg::Lane => Known::number(0),
            SpecialReg::ProgramX => Known::number(number % x),
            SpecialReg::ProgramY => Known::number(number / x % y),
            SpecialReg::ProgramZ => Known::number(number / x / y),
            SpecialReg::ProgramsX => Known::number(x),
            SpecialReg::ProgramsY => Known::number(y),
            SpecialReg::ProgramsZ => Known::number(u64::from(self.setting.ctas[2])),
            SpecialReg::SmId => return None,
        })
    }

    /// How many arrivals there are under a condition: one under the constant, as one thread executes it then.
    fn arrivals(&self, at: usize, cond: Value) -> u32 {
        let def = self.kernel.thread.dfg.def_inst(cond);
        match def.map(|inst| self.kernel.thread.dfg.insts[inst].op) {
            Some(ThreadOp::Const) => 1,
            _ => self.agents[at].warps_with(cond),
        }
    }

    /// Where a pointer leads to: the first thread's address, if it is known.
    pub(super) fn source(&self, at: usize, pointer: Value) -> Source {
        match self.agents[at].number(pointer) {
            Some(address) => Source::pointer(address),
            None => Source::UNKNOWN,
        }
    }

    /// What a copy of a box moves.
    pub(super) fn moved_box(&self, at: usize, data: &InstData<Thread>, map: usize, coords: usize) -> Option<Moved> {
        let agent = &self.agents[at];
        let number = agent.number(*data.args.get(map)?)?;
        let recipe = self.kernel.thread.maps.get(number as usize)?;
        let tensor = self.setting.tensors.get(number as usize)?;
        let element = recipe.elem.bytes();
        let mut bytes = f64::from(element);
        for ((&tile, &extent), &coord) in recipe.tile.iter().zip(&tensor.extents).zip(data.args.get(coords..)?) {
            let begin = agent.number(coord).map_or(0, |bits| i64::from(bits as u32 as i32));
            let end = begin.saturating_add(i64::from(tile)).min(extent);
            bytes *= end.saturating_sub(begin.max(0)).max(0) as f64;
        }
        let (&row, outer) = recipe.tile.split_last()?;
        let rows: u32 = outer.iter().product();
        Some(Moved {
            source: Source::map(number),
            announced: i64::from(rows * row * element),
            bytes,
            rows: f64::from(rows),
            longer: tensor.longer,
        })
    }

    /// Waits for the operands of an instruction.
    fn settle(&mut self, at: usize, data: &InstData<Thread>) {
        let agent = &mut self.agents[at];
        let done = data.args.iter().map(|&arg| agent.value(arg).done);
        agent.time = done.fold(agent.time, f64::max) + 1.0;
    }

    /// The result is the first operand, as it is there now.
    fn pass_on(&mut self, at: usize, data: &InstData<Thread>) {
        let agent = &mut self.agents[at];
        let time = agent.time;
        for &result in &data.results {
            let known = Known {
                ready: time,
                done: time,
                ..Known::default()
            };
            agent.set(result, known);
        }
    }
}
