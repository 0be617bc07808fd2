//! What threads compute, and what they load and store themselves.

use super::reuse::Source;
use super::sm::Sm;
use super::step::LINE;
use crate::ir::dfg::InstData;
use crate::ir::effects::OpClass;
use crate::ir::entities::{Inst, Value};
use crate::ir::level::Thread;
use crate::ir::ops::{Opcode, ThreadOp};
use crate::ir::types::{AddressSpace, Elem};

impl Sm<'_> {
    /// What threads compute, and what they load and store themselves.
    pub(super) fn compute(
        &mut self,
        at: usize,
        inst: Inst,
        data: &InstData<Thread>,
    ) -> Option<bool> {
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
        if data.op.info().effects.class == OpClass::Memory {
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
}
