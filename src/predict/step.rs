//! One instruction of an agent.

use smallvec::SmallVec;

use super::agent::{Known, State};
use super::sm::Sm;
use crate::ir::attrs::Attrs;
use crate::ir::dfg::{BlockCall, InstData};
use crate::ir::entities::Inst;
use crate::ir::level::Thread;
use crate::ir::ops::ThreadOp;

/// Clocks of a branch.
const BRANCH: f64 = 2.0;
/// Bytes of a line of the cache.
pub(super) const LINE: f64 = 128.0;

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
        if 0 < self.kernel.needs.spilled && call.block == self.kernel.busiest {
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
            ThreadOp::GroupArrive => {
                let id = self.agents[at].number(*data.args.first()?)?;
                if 0 < self.arrivals(at, *data.args.get(1)?) {
                    self.come(at, id, *data.threads()?);
                }
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
