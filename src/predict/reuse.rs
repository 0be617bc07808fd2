//! How much of what programs read is in no cache: of what the CTAs that run at the same time ask for at the beginning, the part that
//! is asked for the first time.

use rustc_hash::{FxHashMap, FxHashSet};

use super::agent::State;
use super::figures::Figures;
use super::prepared::Prepared;
use super::setting::Setting;
use super::sm::Sm;
use crate::ir::attrs::Attrs;
use crate::ir::ops::ThreadOp;
use crate::ir::types::{AddressSpace, Elem};

/// Where bytes come from: a map, or what a pointer argument leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Source(u64);

/// Bits of addresses below those that say which argument a pointer comes from.
pub(super) const ARGUMENT: u32 = 44;

impl Source {
    pub(super) const UNKNOWN: Source = Source(u64::MAX);

    pub(super) fn map(number: u64) -> Source {
        Source(number)
    }

    /// Where atomic accesses go.
    pub(super) fn changed(address: u64) -> Source {
        Source(2 << 32 | address >> ARGUMENT)
    }

    pub(super) fn pointer(address: u64) -> Source {
        Source(1 << 32 | address >> ARGUMENT)
    }
}

/// Most requests of an agent that are looked at, and most instructions.
const REQUESTS: usize = 32;
const STEPS: usize = 3000;
/// Instructions after which an agent that has asked for nothing is one that does not.
const SILENT: usize = 400;

/// For each source the part of its bytes that is asked for the first time.
pub(super) fn first_time(
    kernel: &Prepared,
    setting: &Setting<'_>,
    figures: &Figures,
    ctas: u64,
) -> FxHashMap<Source, f64> {
    let mut found: FxHashMap<Source, (u64, FxHashSet<(u64, u64)>)> = FxHashMap::default();
    for cta in 0..ctas {
        let mut sm = Sm::new(kernel, setting, figures);
        sm.looks_only = true;
        sm.begin(0, cta, 0.0);
        for agent in 0..sm.agents.len() {
            let mut requests = 0;
            for step in 0..STEPS {
                let is_silent = requests == 0 && step == SILENT;
                if sm.agents[agent].state == State::Ended || requests == REQUESTS || is_silent {
                    break;
                }
                let request = sm.request(agent);
                let place = sm.agents[agent].place();
                sm.agents[agent].state = State::Runs;
                if sm.step(agent).is_none() {
                    break;
                }
                // What stands still until its operands are there is looked at again.
                if let Some((source, key)) = request
                    && sm.agents[agent].place() != place
                {
                    requests += 1;
                    let entry = found.entry(source).or_default();
                    entry.0 += 1;
                    entry.1.insert(key);
                }
            }
        }
    }
    let parts = found.into_iter();
    parts
        .map(|(source, (all, different))| (source, different.len() as f64 / all as f64))
        .collect()
}

impl Sm<'_> {
    /// What the next instruction of an agent asks device memory for.
    fn request(&self, at: usize) -> Option<(Source, (u64, u64))> {
        let agent = &self.agents[at];
        let thread = &self.kernel.thread;
        let &inst = thread.order.insts(agent.block).get(agent.at)?;
        let data = &thread.dfg.insts[inst];
        let offset = data.offset().map_or(0, |&offset| i64::from(offset));
        match data.op {
            ThreadOp::TensorCopy => {
                let source = self.moved_box(at, data, 1, 4)?.source;
                let coords = data.args.get(4..)?.iter();
                let key = coords.fold(0_u64, |key, &coord| {
                    key.wrapping_mul(1 << 24)
                        .wrapping_add(agent.number(coord).unwrap_or(0))
                });
                Some((source, (0, key)))
            }
            ThreadOp::Ld | ThreadOp::CpAsync => {
                let is_copy = data.op == ThreadOp::CpAsync;
                let pointer = *data.args.get(usize::from(is_copy))?;
                if !matches!(
                    thread.dfg.ty(pointer).elem,
                    Elem::Ptr(_, AddressSpace::Global)
                ) {
                    return None;
                }
                let offset = match is_copy {
                    true => data.read_offset().map_or(0, |&offset| i64::from(offset)),
                    false => offset,
                };
                let address = agent.number(pointer)?.wrapping_add_signed(offset);
                Some((Source::pointer(address), (1, address)))
            }
            ThreadOp::Atom => {
                let address = agent
                    .number(*data.args.first()?)?
                    .wrapping_add_signed(offset);
                Some((Source::changed(address), (2, address)))
            }
            _ => None,
        }
    }
}
