//! A compiled kernel with what its instructions cost.

use cranelift_entity::SecondaryMap;

use super::agent::WARPS;
use super::cost::{Cost, cost, varying};
use crate::analysis::loops::Loops;
use crate::compile::compile_with;
use crate::error::CompileError;
use crate::ir::entities::{Block, Inst};
use crate::ir::function::{ThreadFunction, TileFunction};
use crate::pipeline::Snapshot;
use crate::settings::{Options, Target, Usage, spilled_bytes};

/// What a launch must know of a kernel beside its instructions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Needs {
    /// Parameters that the caller gives.
    pub(super) params: usize,
    pub(super) persistent: bool,
    /// CTAs that a multiprocessor executes at a time.
    pub(super) resident: u32,
    /// Bytes of registers of a thread that the assembler is expected to spill.
    pub(super) spilled: u32,
}

/// A compiled kernel.
#[derive(Clone, Debug)]
pub(super) struct Prepared {
    pub(super) thread: ThreadFunction,
    pub(super) costs: SecondaryMap<Inst, Cost>,
    /// First warp and number of warps of each agent of a CTA.
    pub(super) chunks: Vec<(u32, u32)>,
    pub(super) needs: Needs,
    /// Where most is computed, which is where registers are short.
    pub(super) busiest: Block,
}

impl Prepared {
    pub(super) fn of(
        func: &TileFunction,
        target: Target,
        options: &Options,
    ) -> Result<Prepared, CompileError> {
        let mut last = None;
        let kernel = compile_with(func, target, options, &mut |_, snapshot| {
            if let Snapshot::Thread(thread) = snapshot {
                last = Some(thread.clone());
            }
        })?;
        let Some(thread) = last else {
            return Err(CompileError::Internal {
                pass: "predict",
                message: "no pass showed what a thread does".to_owned(),
            });
        };
        let threads = thread.cta_threads();
        let bound = options.max_registers.map_or(u32::MAX, u32::from);
        let most = Target::most_registers(threads).min(bound);
        let machine = &kernel.stats.machine;
        let usage = Usage {
            threads,
            registers: machine.predicted_registers.min(most),
            shared: kernel.meta.shared,
        };
        let needs = Needs {
            params: kernel.meta.params.len(),
            persistent: kernel.meta.persistent,
            resident: target.resident(usage).max(1),
            spilled: spilled_bytes(machine.needed_registers, most),
        };
        Ok(Prepared::with(thread, needs))
    }

    /// What a thread does, with what it costs.
    pub(super) fn with(thread: ThreadFunction, needs: Needs) -> Prepared {
        let varying = varying(&thread);
        let mut costs = SecondaryMap::new();
        for (_, inst) in thread.all_insts() {
            costs[inst] = cost(&thread, inst, &varying);
        }
        let warps = thread.cta_warps();
        let chunk = |warp: u32| (warp, (warps - warp).min(WARPS as u32));
        Prepared {
            busiest: busiest(&thread, &costs),
            costs,
            chunks: (0..warps).step_by(WARPS).map(chunk).collect(),
            needs,
            thread,
        }
    }
}

/// The block in most loops; of those the one with most instructions.
fn busiest(thread: &ThreadFunction, costs: &SecondaryMap<Inst, Cost>) -> Block {
    let loops = Loops::with_function(thread);
    let weight = |block: Block| {
        let insts = thread.order.insts(block).iter();
        let issued: f64 = insts.map(|&inst| costs[inst].issued).sum();
        (loops.depth(block), issued)
    };
    let blocks = thread.order.blocks.iter().copied();
    let weighed = blocks.map(|block| (weight(block), block));
    let most = weighed.max_by(|((depth, issued), _), ((other, more), _)| {
        depth.cmp(other).then(issued.total_cmp(more))
    });
    most.map_or(thread.entry, |(_, block)| block)
}
