//! How long a launch takes, by what the compiler knows of the kernel.
use cranelift_entity::SecondaryMap;
use rustc_hash::FxHashMap;

mod agent;
mod cost;
mod figures;
mod reuse;
mod scalar;
mod sm;
mod step;

pub use figures::Figures;
pub use sm::Resource;

use crate::compile::compile_with;
use crate::error::CompileError;
use crate::ir::attrs::Attrs;
use crate::analysis::loops::Loops;
use crate::ir::entities::{Block, Inst};
use crate::ir::function::{ThreadFunction, TileFunction};
use crate::ir::ops::ThreadOp;
use crate::ir::types::{Elem};
use crate::pipeline::Snapshot;
use crate::settings::{Options, Promote, Target, Usage};
use agent::{Agent, Known};
use cost::Cost;
use reuse::{ARGUMENT, Source};
use sm::Sm;

/// A compiled kernel with what its instructions cost.
#[derive(Clone, Debug)]
pub(crate) struct Prepared {
    thread: ThreadFunction,
    costs: SecondaryMap<Inst, Cost>,
    chunks: Vec<(u32, u32)>,
    values: usize,
    resident: u32,
    persistent: bool,
    params: usize,
    spilled: u32,
    /// Where most is computed, which is where registers are short.
    busiest: Block,
}

/// A launch, as a multiprocessor sees it.
#[derive(Clone, Debug)]
pub(crate) struct Setting<'a> {
    launch: &'a Launch<'a>,
    ctas: [u32; 3],
    extents: Vec<Vec<i64>>,
    first: FxHashMap<Source, f64>,
    memory: f64,
    /// Multiprocessors at work.
    active: f64,
}

/// What is launched.
#[derive(Clone, Copy, Debug)]
pub struct Launch<'a> {
    /// Programs along the axes.
    pub grid: [u32; 3],
    /// Numbers of the kernel's parameters, none for pointers and floats.
    pub numbers: &'a [Option<i64>],
}

/// What a launch is expected to take.
#[derive(Clone, Debug)]
pub struct Estimate {
    pub micros: f64,
    pub busy: Vec<(Resource, f64)>,
    pub resident: u32,
    pub guessed: bool,
    pub persistent: bool,
}

/// A kernel whose launches can be estimated.
#[derive(Clone, Debug)]
pub struct Model {
    figures: Figures,
    mapped: Prepared,
    plain: Option<Prepared>,
}

impl Model {
    pub fn of(func: &TileFunction, target: Target, options: &Options, figures: Figures) -> Result<Model, CompileError> {
        let mapped = Prepared::of(func, target, options)?;
        let plain = match mapped.thread.maps.is_empty() {
            true => None,
            false => {
                let without = Options { promote: Promote::Never, ..options.clone() };
                Some(Prepared::of(func, target, &without)?)
            }
        };
        Ok(Model { figures, mapped, plain })
    }

    pub fn estimate(&self, launch: &Launch<'_>) -> Option<Estimate> {
        let params = |index: u32| launch.numbers.get(index as usize).copied().flatten();
        let resolves = self.mapped.thread.maps.iter().all(|map| map.resolve(1 << ARGUMENT, &params, launch.grid).is_some());
        let kernel = match (resolves, &self.plain) {
            (false, Some(plain)) => plain,
            _ => &self.mapped,
        };
        kernel.estimate(launch, &self.figures)
    }
}

impl Prepared {
    fn of(func: &TileFunction, target: Target, options: &Options) -> Result<Prepared, CompileError> {
        let mut last = None;
        let kernel = compile_with(func, target, options, &mut |_, snapshot| {
            if let Snapshot::Thread(thread) = snapshot {
                last = Some(thread.clone());
            }
        })?;
        let Some(thread) = last else {
            return Err(CompileError::Internal { pass: "predict", message: "no function of threads".into() });
        };
        let mut costs = SecondaryMap::new();
        let varying = cost::varying(&thread);
        for (_, inst) in thread.all_insts() {
            costs[inst] = cost::cost(&thread, inst, &varying);
        }
        let loops = Loops::with_function(&thread);
        let weight = |block: &Block| {
            let insts = thread.order.insts(*block).iter();
            let issued: f64 = insts.map(|&inst| costs[inst].issued).sum();
            (loops.depth(*block), issued)
        };
        let blocks = thread.order.blocks.iter().copied();
        let busiest = blocks.max_by(|a, b| {
            let (a, b) = (weight(a), weight(b));
            a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
        });
        let busiest = busiest.unwrap_or(thread.entry);
        let warps = thread.cta_warps();
        let chunks = (0..warps).step_by(agent::WARPS).map(|warp| (warp, (warps - warp).min(agent::WARPS as u32))).collect();
        let machine = &kernel.stats.machine;
        let threads = thread.cta_threads();
        let most = Target::most_registers(threads).min(options.max_registers.map_or(u32::MAX, u32::from));
        let usage = Usage { threads, registers: machine.predicted_registers.min(most), shared: kernel.meta.shared };
        Ok(Prepared {
            values: thread.dfg.values.len() + 1,
            costs, chunks, busiest,
            resident: target.resident(usage).max(1),
            persistent: kernel.meta.persistent,
            params: kernel.meta.params.len(),
            spilled: crate::settings::spilled_bytes(machine.needed_registers, most),
            thread,
        })
    }

    fn estimate(&self, launch: &Launch<'_>, figures: &Figures) -> Option<Estimate> {
        let total: u64 = launch.grid.iter().map(|&n| u64::from(n)).product();
        if total == 0 { return None; }
        let sms = u64::from(figures.sms);
        let resident = u64::from(self.resident);
        let params = |index: u32| launch.numbers.get(index as usize).copied().flatten();
        let extents = self.thread.maps.iter().map(|map| {
            map.extents.iter().map(|e| e.eval(&params, launch.grid).unwrap_or(i64::MAX)).collect()
        }).collect();
        let active = sms.min(total);
        let memory = (figures.dram / active as f64 / figures.clock).min(figures.l2);
        let per_sm = total.div_ceil(sms);
        let at_once = per_sm.min(resident);
        let mut setting = Setting { launch, ctas: launch.grid, extents, first: FxHashMap::default(), memory, active: active as f64 };
        if self.persistent {
            setting.ctas = [(sms * resident).min(total) as u32, 1, 1];
        }
        setting.first = reuse::first_time(self, &setting, figures, (sms * at_once).min(total).min(sms * 2));
        // Programs of a multiprocessor that are simulated; time grows by the same for each of the others.
        let run = |count: u64, setting: &mut Setting<'_>| {
            let stride = spread(total, count, launch.grid);
            let ctas: Vec<u64> = if self.persistent {
                let stride = if count == per_sm { sms } else { stride };
                setting.ctas = [(stride * at_once).min(total) as u32, 1, 1];
                (0..at_once).map(|at| at * stride).collect()
            } else {
                (0..count).map(|at| at * stride).filter(|&cta| cta < total).collect()
            };
            Sm::new(self, setting, figures).run(&ctas, resident as usize)
        };
        let most = (4 * at_once).max(8);
        let (clocks, outcome, scale) = if per_sm <= most + at_once {
            let outcome = run(per_sm, &mut setting)?;
            (outcome.clocks, outcome, 1.0)
        } else {
            let half = run(most / 2, &mut setting)?;
            let whole = run(most, &mut setting)?;
            let each = (whole.clocks - half.clocks) / (most - most / 2) as f64;
            let clocks = whole.clocks + (per_sm - most) as f64 * each;
            (clocks, whole, per_sm as f64 / most as f64)
        };
        let busy = Resource::ALL.into_iter().zip(outcome.busy);
        Some(Estimate {
            micros: figures.launch + clocks / figures.clock,
            busy: busy.map(|(resource, busy)| (resource, busy * scale / clocks)).collect(),
            resident: self.resident,
            guessed: outcome.guessed,
            persistent: self.persistent,
        })
    }
}

/// A distance between programs of which so many are looked at, so that they are of all kinds: it has no factor in common with the
/// grid's extents.
fn spread(total: u64, count: u64, grid: [u32; 3]) -> u64 {
    let stride = (total / count).max(1);
    let shares = |n: u64| grid.iter().any(|&extent| extent > 1 && gcd(n, u64::from(extent)) > 1);
    (1..=stride).rev().find(|&n| !shares(n)).unwrap_or(1)
}

fn gcd(a: u64, b: u64) -> u64 {
    match b {
        0 => a,
        _ => gcd(b, a % b),
    }
}

impl Setting<'_> {
    /// The part of a source's bytes that no cache has.
    fn missed(&self, source: Source) -> f64 {
        self.first.get(&source).copied().unwrap_or(1.0)
    }

    /// Gives an agent the kernel's arguments.
    fn arguments(&self, kernel: &Prepared, agent: &mut Agent) {
        for (index, &param) in kernel.thread.params().iter().enumerate() {
            let elem = kernel.thread.dfg.ty(param).elem;
            let known = match index.checked_sub(kernel.params) {
                Some(axis) if kernel.persistent => self.launch.grid.get(axis).map(|&n| u64::from(n)),
                _ => match elem {
                    Elem::Ptr(..) => Some((index as u64 + 1) << ARGUMENT),
                    _ => self.launch.numbers.get(index).copied().flatten().map(|n| n as u64 & elem.mask()),
                },
            };
            agent.set(param, known.map_or(Known::default(), Known::number));
        }
    }
}
