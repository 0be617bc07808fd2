//! Products that four warps compute together, asynchronously.
//!
//! A product runs as soon as all four warps have issued it and as late as the first wait that covers it, as the seed decides:
//! then its operands in shared memory are read, once for the whole group. The rows of a warp are computed at that warp's own
//! wait; until then its registers belong to the product ([`flight`](super::super::flight)), so that nobody can tell.

use std::rc::Rc;

use super::super::async_work::{Issuer, Touch, Touching};
use super::super::error::{Fault, Space};
use super::super::inst::{GroupProduct, Inst, Left, MmaShape, Op, Src};
use super::super::race::Observer;
use super::super::sched::{CtaState, Machine, StepResult, Trouble};
use super::super::setmaxnreg::{Change, Outcome};
use super::super::warp::{State, Warp};
use super::super::wgmma_in_flight::{Factors, Issued, Read, Refusal, Shared};
use super::descriptor::Descriptor;
use super::matrix::Factor;
use super::product::{number, rounded};

/// Bytes of a chunk.
const CHUNK: u32 = 16;
/// Rows of a product that one warp computes.
const WARP_ROWS: usize = 16;

impl Machine<'_> {
    pub(super) fn refusal(&self, active: u32, (register, why): (u32, Refusal)) -> Trouble {
        let name = self.entry.registers.name(register, false);
        let fault = match why {
            Refusal::InFlight(line) => Fault::InFlight { name, line },
            Refusal::Unfenced(line) => Fault::Unfenced { name, line },
        };
        (active.trailing_zeros(), fault)
    }

    /// Executes an instruction of a warpgroup for one whole warp.
    pub(super) fn warpgroup(
        &mut self,
        cta: &mut CtaState,
        warp: &mut Warp,
        group: usize,
        inst: &Inst,
        moved: bool,
    ) -> Result<StepResult, Trouble> {
        let mut step = if moved {
            StepResult::Stop
        } else {
            StepResult::Continue
        };
        match &inst.op {
            Op::GroupProduct(product) => {
                self.issue(cta, warp, group, inst, product)?;
                step = StepResult::Wake;
            }
            Op::GroupFence => {
                if let Some(flight) = &mut warp.flight {
                    flight.fence();
                }
            }
            Op::GroupCommit => {
                if let Some(flight) = &mut warp.flight {
                    flight.commits += 1;
                }
            }
            Op::GroupWait { pending } => {
                if let Some(line) = self.finish(cta, warp, *pending)? {
                    warp.groups[group].state = State::Products(line);
                    return Ok(StepResult::Stop);
                }
            }
            Op::Registers { more, count } => {
                let change = Change {
                    pc: warp.groups[group].pc,
                    line: inst.line,
                    more: *more,
                    count: *count,
                };
                let Some(budget) = &mut cta.budget else {
                    unreachable!("the entry moves registers")
                };
                match budget.change(warp.index, change) {
                    Outcome::Done => step = StepResult::Wake,
                    Outcome::Waits => {
                        warp.groups[group].state = State::Registers(*count);
                        return Ok(StepResult::Stop);
                    }
                    Outcome::Wrong(reason) => {
                        let opcode = inst.opcode.to_string();
                        return Err((0, Fault::Warpgroup { opcode, reason }));
                    }
                }
            }
            _ => unreachable!("called for instructions of warpgroups only"),
        }
        warp.groups[group].pc += 1;
        Ok(step)
    }

    /// Issues the part of one warp in a product.
    fn issue(
        &mut self,
        cta: &mut CtaState,
        warp: &mut Warp,
        group: usize,
        inst: &Inst,
        op: &GroupProduct,
    ) -> Result<(), Trouble> {
        let fail = |reason: String| {
            let opcode = inst.opcode.to_string();
            Err((0, Fault::Warpgroup { opcode, reason }))
        };
        if warp.index / 4 * 4 + 4 > self.warps() {
            return fail(format!(
                "warps {} and up are no whole group of four",
                warp.index / 4 * 4
            ));
        }
        let (holds, known) = warp.predicate(op.adds);
        self.require_predicate(op.adds, u32::MAX, known)?;
        let adds = match holds {
            0 => false,
            u32::MAX => true,
            _ => return fail("`scale-d` differs among the lanes".to_owned()),
        };
        let left = match &op.a {
            Left::Shared(descriptor) => Some(*descriptor),
            Left::Registers(_) => None,
        };
        let mut descriptors = [0; 2];
        for (slot, source) in [(0, left), (1, Some(op.b))] {
            let Some(source) = source else { continue };
            let defined = self.fetch(cta, warp, source, u32::MAX, 0)?;
            self.require(source, u32::MAX, defined)?;
            descriptors[slot] = self.operands[0][0];
            if self.operands[0].iter().any(|&d| d != descriptors[slot]) {
                let side = ["left", "right"][slot];
                return fail(format!(
                    "the descriptor of the {side} operand differs among the lanes"
                ));
            }
        }
        let Some(flight) = &mut warp.flight else {
            unreachable!("the entry has products")
        };
        let accumulators: Vec<u32> = op.sum.iter().map(|dst| dst.reg).collect();
        let factors = factors(op);
        let taken = flight.take(&accumulators, &factors, op.shape(), inst.line);
        taken.map_err(|refused| self.refusal(u32::MAX, refused))?;
        let Some(flight) = &mut warp.flight else {
            unreachable!("the entry has products")
        };
        let pc = warp.groups[group].pc;
        let number = flight.issued;
        flight.issued += 1;
        flight.queue.push_back(Issued {
            pc,
            group: flight.commits,
            number,
            adds,
        });
        let member = warp.index as usize % 4;
        let own = &mut cta.warpgroups[warp.index as usize / 4];
        own.issued[member] = number + 1;
        let operands = (descriptors, adds);
        let (read, agent) = match own.get(number) {
            Some(other) if other.pc == pc && other.operands == operands => {
                (Rc::clone(&other.read), other.agent)
            }
            Some(other) if other.pc == pc => {
                return fail(
                    "descriptors or `scale-d` differ among the warps of the group".to_owned(),
                );
            }
            Some(other) => {
                let line = other.line;
                return fail(format!(
                    "another warp of the group issued the product of line {line} in its place"
                ));
            }
            None => {
                let chunks = self.chunks(cta, warp, inst, op, descriptors)?;
                let read = Rc::new(Read::new(chunks, CHUNK as usize));
                let agent = self.agents.start(warp.clock.warp, 1);
                cta.warpgroups[warp.index as usize / 4]
                    .queue
                    .push_back(Shared {
                        pc,
                        line: inst.line,
                        operands,
                        read: Rc::clone(&read),
                        agent,
                        settled: None,
                        factors: None,
                        taken: 0,
                    });
                (read, agent)
            }
        };
        // Each warp must know of what was written; the reads themselves are those of the whole group.
        let issuer = Issuer {
            clock: &warp.clock,
            lane: 0,
            line: inst.line,
            agent,
            view: Some(Observer::Shared),
            sees_copies: true,
        };
        for touch in touches(&read) {
            self.begin(cta, issuer, touch)?;
            let (offset, bytes) = (touch.offset, touch.bytes);
            if self.options.check_uninit && !cta.shared.is_written(offset, bytes) {
                let fault = Fault::Uninitialised {
                    space: Space::Shared,
                    address: cta.shared.base + offset as u64,
                    bytes: bytes as u32,
                };
                return Err((0, fault));
            }
        }
        let all_issued = cta.warpgroups[warp.index as usize / 4].complete() == number + 1;
        if all_issued && self.is_hasty() {
            self.read_factors(cta, warp.index as usize / 4, number);
        }
        Ok(())
    }

    /// Whether something that may happen now does not wait until it must: never with a seed that 3 divides.
    fn is_hasty(&mut self) -> bool {
        !self.options.seed.is_multiple_of(3) && self.random.below(4) == 0
    }

    /// Offsets in shared memory of the chunks of both operands.
    fn chunks(
        &mut self,
        cta: &CtaState,
        warp: &Warp,
        inst: &Inst,
        op: &GroupProduct,
        descriptors: [u64; 2],
    ) -> Result<[Vec<usize>; 2], Trouble> {
        let MmaShape {
            shape: [m, n, _],
            transposed,
            ..
        } = op.product;
        let mut all = [Vec::new(), Vec::new()];
        for (slot, extent) in [m, n].into_iter().enumerate() {
            if slot == 0 && matches!(op.a, Left::Registers(_)) {
                continue;
            }
            let Some(descriptor) = Descriptor::new(descriptors[slot]) else {
                let (opcode, side) = (inst.opcode.to_string(), ["left", "right"][slot]);
                let reason = format!(
                    "the descriptor {:#018x} of the {side} operand has bits set that mean nothing",
                    descriptors[slot]
                );
                return Err((0, Fault::Warpgroup { opcode, reason }));
            };
            let (outer, inner) = match transposed[slot] {
                false => (u64::from(extent), 2),
                true => (u64::from(extent) / 8, 16),
            };
            for i in 0..outer {
                for j in 0..inner {
                    let address = match transposed[slot] {
                        false => descriptor.along(i, j),
                        true => descriptor.across(i, j),
                    };
                    let place = self.locate(cta, warp, 0, Space::Shared, address, CHUNK)?;
                    all[slot].push(place.offset);
                }
            }
        }
        Ok(all)
    }

    /// Finishes what a wait covers; the line of a product that other warps have yet to issue.
    fn finish(
        &mut self,
        cta: &mut CtaState,
        warp: &mut Warp,
        pending: u32,
    ) -> Result<Option<u32>, Trouble> {
        let entry = self.entry;
        let Some(flight) = &warp.flight else {
            return Ok(None);
        };
        let is_due = |issued: &&Issued| issued.group.saturating_add(pending) < flight.commits;
        let due: Vec<Issued> = flight.queue.iter().take_while(is_due).copied().collect();
        let own = warp.index as usize / 4;
        let complete = cta.warpgroups.get(own).map_or(0, |group| group.complete());
        if let Some(missing) = due.iter().find(|issued| issued.number >= complete) {
            return Ok(Some(entry.code[missing.pc as usize].line));
        }
        for issued in due {
            let Op::GroupProduct(op) = &entry.code[issued.pc as usize].op else {
                unreachable!("products only are issued")
            };
            self.read_factors(cta, own, issued.number);
            let Some(shared) = cta.warpgroups[own].get(issued.number) else {
                unreachable!("it stays until all four warps have it")
            };
            shared.taken += 1;
            let Some(factors) = shared.factors.clone() else {
                unreachable!("read above")
            };
            self.settle_reads(cta, warp, own, issued.number);
            self.compute_rows(cta, warp, op, &factors, issued.adds)?;
            cta.warpgroups[own].trim();
            if let Some(flight) = &mut warp.flight {
                flight.queue.pop_front();
                let accumulators = op.sum.iter().map(|dst| dst.reg);
                flight.give_back(accumulators.chain(self::factors(op)));
            }
        }
        Ok(None)
    }

    /// The reads of a product are over, and a warp knows that.
    fn settle_reads(&mut self, cta: &mut CtaState, warp: &mut Warp, group: usize, number: u64) {
        if !self.options.check_races {
            return;
        }
        let number_of_warp = warp.clock.warp;
        let own = &mut cta.warpgroups[group];
        let engine = match own.engine {
            Some(engine) => engine,
            None => {
                let engine = self.agents.start(number_of_warp, 1);
                own.engine = Some(engine);
                engine
            }
        };
        let Some(shared) = own.get(number) else {
            unreachable!("it stays until all four warps have it")
        };
        let time = match shared.settled {
            Some(time) => time,
            None => {
                let time = self.now;
                shared.settled = Some(time);
                let (read, agent) = (Rc::clone(&shared.read), shared.agent);
                for touch in touches(&read) {
                    self.settle(cta, touch, (agent, 0), (engine << 5, time));
                }
                self.agents.end(agent);
                self.now += 1;
                time
            }
        };
        warp.clock.learn(u32::MAX, u32::MAX, engine, time);
    }

    /// Reads the operands of all products of a group up to this one.
    fn read_factors(&mut self, cta: &mut CtaState, group: usize, last: u64) {
        let own = &mut cta.warpgroups[group];
        let first = own.first;
        for shared in own.queue.iter_mut().take((last + 1 - first) as usize) {
            if shared.factors.is_some() {
                continue;
            }
            let Op::GroupProduct(op) = &self.entry.code[shared.pc as usize].op else {
                unreachable!("products only are issued")
            };
            let [m, n, k] = op.product.shape.map(|extent| extent as usize);
            let bits = op.product.a.bits;
            let chunk = |offset: usize| {
                let mut bytes = [0; CHUNK as usize];
                bytes.copy_from_slice(&cta.shared.data[offset..offset + CHUNK as usize]);
                u128::from_le_bytes(bytes)
            };
            let elements = 128 / bits;
            let read = |slot: usize, place: &dyn Fn(usize, usize) -> usize, out: &mut [f64]| {
                let ty = [op.product.a, op.product.b][slot];
                let sign = if op.negated[slot] { -1.0 } else { 1.0 };
                let chunks = shared.read.chunks[slot].iter();
                for (index, &offset) in chunks.enumerate() {
                    let bytes = chunk(offset);
                    for i in 0..elements {
                        let word = (bytes >> (i * bits)) as u64 & super::super::decode::mask(bits);
                        let i = i as usize;
                        let (outer, inner) = match op.product.transposed[slot] {
                            false => (index / 2, index % 2 * elements as usize + i),
                            true => (index / 16 * 8 + i, index % 16),
                        };
                        out[place(outer, inner)] = sign * number(ty, word);
                    }
                }
            };
            let mut a = Vec::new();
            if matches!(op.a, Left::Shared(_)) {
                a.resize(m * k, 0.0);
                read(0, &|row, inner| row * k + inner, &mut a);
            }
            let mut b = vec![0.0; k * n];
            read(1, &|column, inner| inner * n + column, &mut b);
            let mut ranges = shared.read.ranges.iter();
            let is_defined = ranges.all(|&(at, bytes)| cta.shared.is_written(at, bytes));
            shared.factors = Some(Rc::new(Factors { a, b, is_defined }));
        }
    }

    /// Computes the rows of one warp.
    fn compute_rows(
        &mut self,
        cta: &CtaState,
        warp: &mut Warp,
        op: &GroupProduct,
        factors: &Factors,
        adds: bool,
    ) -> Result<(), Trouble> {
        let MmaShape {
            shape: [_, n, k],
            a: ty,
            sum,
            ..
        } = op.product;
        let (n, k) = (n as usize, k as usize);
        let mut is_defined = factors.is_defined;
        let mut own = Vec::new();
        let a = match &op.a {
            Left::Shared(_) => {
                let first = warp.index as usize % 4 * WARP_ROWS;
                &factors.a[first * k..(first + WARP_ROWS) * k]
            }
            Left::Registers(sources) => {
                let (words, defined) = self.registers(cta, warp, sources)?;
                is_defined &= defined;
                own.resize(WARP_ROWS * k, 0.0);
                let sign = if op.negated[0] { -1.0 } else { 1.0 };
                let factor = Factor::new(ty, WARP_ROWS as u32);
                for (lane, register, i, row, inner) in factor.places(words.len()) {
                    let bits = factor.element(words[register][lane], i);
                    own[row * k + inner] = sign * number(ty, bits);
                }
                &own
            }
        };
        let per_register = 32 / sum.bits as usize;
        let place = |lane: usize, i: usize| {
            let (group, quad) = (lane / 4, lane % 4);
            (group + 8 * (i >> 1 & 1), 8 * (i >> 2) + 2 * quad + (i & 1))
        };
        let mut sums = vec![0.0; WARP_ROWS * n];
        if adds {
            for (index, dst) in op.sum.iter().enumerate() {
                is_defined &= self.fetch(cta, warp, Src::Reg(dst.reg), u32::MAX, 0)? == u32::MAX;
                for lane in 0..32 {
                    for half in 0..per_register {
                        let (row, column) = place(lane, index * per_register + half);
                        let bits = self.operands[0][lane] >> (sum.bits * half as u32)
                            & super::super::decode::mask(sum.bits);
                        sums[row * n + column] = number(sum, bits);
                    }
                }
            }
        }
        for (sums, a) in sums.chunks_exact_mut(n).zip(a.chunks_exact(k)) {
            for (&x, b) in a.iter().zip(factors.b.chunks_exact(n)) {
                for (sum, &y) in sums.iter_mut().zip(b) {
                    *sum += x * y;
                }
            }
        }
        for (index, &dst) in op.sum.iter().enumerate() {
            for lane in 0..32 {
                let mut word = 0;
                for half in 0..per_register {
                    let (row, column) = place(lane, index * per_register + half);
                    let bits = rounded(sum, sums[row * n + column], op.saturates);
                    word |= bits << (sum.bits * half as u32);
                }
                warp.set(dst, lane as u32, word);
            }
            warp.define(dst, u32::MAX, if is_defined { u32::MAX } else { 0 });
        }
        Ok(())
    }
}

/// What a product reads, as accesses.
fn touches(read: &Read) -> impl Iterator<Item = Touch> {
    read.ranges.iter().map(|&(offset, bytes)| Touch {
        is_shared: true,
        region: 0,
        offset,
        bytes,
        access: Touching::Read,
    })
}

/// Registers that a product reads as its left operand.
fn factors(op: &GroupProduct) -> Vec<u32> {
    let Left::Registers(sources) = &op.a else {
        return Vec::new();
    };
    let registers = sources.iter().filter_map(|source| match source {
        Src::Reg(register) => Some(*register),
        _ => None,
    });
    registers.collect()
}
