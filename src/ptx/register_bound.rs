//! What the assembler is told of the registers that it may use. Unless told it looks for fewer and fewer, for CTAs that find no
//! room in shared memory, of which it knows nothing if it is dynamic.
//!
//! - Where far too much is alive: one CTA is enough. Without that ptxas 12 and 13 fall back to 32 registers for some kernels, and
//!   spill ten times as much as they do with all 255.
//! - Products of matrices that need more than [`ROOMY`] registers whatever it does: the same. Most often the code stays the same,
//!   but the assembler takes a tenth to a fifth less time, as it does not look.
//! - Products that need somewhat less: as many. Of kernels with one prediction ptxas gives some 162 registers and some 128, in
//!   which it cannot load operands before the units have taken the last ones (a product of 1024^3: 13.5 and 16.0 us).
//! - Products by warpgroups: one CTA is enough. What is missing makes the assembler wait behind each product (C7512), and
//!   where nothing is it takes no more than it needs. Where what lives around the products leaves room for more CTAs than what lives
//!   elsewhere, as many as that: elsewhere the assembler orders code for fewer registers when it is told (64 x 64 x 32 with a gate: 96 registers
//!   instead of 148, five CTAs instead of three, 38.6 us instead of 62.0 on an H200).
//! - Of products of 8-bit floats nothing: for later targets it writes them as conversions, with registers that nobody predicts.
//! - Loops that load from global memory: as many CTAs as find room with what is predicted. Left alone, the assembler moves loads
//!   down to their uses until the registers would do for more CTAs, and then waits for each load by itself in every iteration (32
//!   loads of 2 bytes in each of 7 iterations: 750 us instead of 126 on an H100). Elsewhere that costs little, and the CTAs pay.
//!   Where so few CTAs leave each thread nearly all registers there are, the assembler takes that for no bound and looks for fewer
//!   all the same (128 loads in a loop: 58 under way at once in 114 registers); a number that it takes for one is said instead (126 in 146).
//! - Few registers: how many CTAs shared memory has room for, if these are few and registers would do for more.

use std::fmt;

use crate::analysis::loops::Loops;
use crate::ir::attrs::{Attrs, SpecialReg};
use crate::ir::entities::Value;
use crate::ir::function::ThreadFunction;
use crate::ir::matrix_units::When;
use crate::ir::ops::ThreadOp;
use crate::ir::types::{AddressSpace, Elem, Scalar};
use crate::settings::{Target, Usage};

/// Registers by which a prediction may be too low.
const UNSURE: u32 = 24;

/// Registers by which a prediction may be too low where the assembler would rather wait than take more.
const UNSURE_IN_LOOPS: u32 = 8;

/// Registers that are never asked to be fewer: all threads find room then. With 40 the assembler works on more iterations at a time where
/// little is alive, and fewer warps wait for memory (a row of a sparse matrix times a vector by four warps: 67.8 us instead of 56.2 on an H200).
const LEAST_IN_LOOPS: u32 = 32;

/// Registers that the assembler finds around the sums of warpgroups where it has to, for up to [`ENOUGH_WARPS`] of a multiprocessor.
const FOUND: u32 = 8;

/// Warps of a multiprocessor beyond which CTAs of warpgroups gain less than they lose by registers: with seven CTAs of four a gate's
/// derivative takes 1.1 times as long as with six.
const ENOUGH_WARPS: u32 = 20;

/// Registers that the assembler wants beside the sums of a product by a warpgroup, or it refuses the kernel (C7602). Found by telling ptxas 13.0
/// of fewer, for sums of 4 to 128 registers, of f16 and f32.
const BESIDE_SUMS: u32 = 26;

/// Registers that the assembler wants for any product of matrices by one warp (C7602).
const LEAST_OF_PRODUCTS: u32 = 28;

/// Registers that it takes at least, with a warning where fewer are asked for.
const LEAST: u32 = 24;

/// Warps of a multiprocessor beyond which CTAs of warpgroups are left to the assembler.
const MANY_WARPS: u32 = 24;

/// Warps of a multiprocessor for which warpgroups are not asked to do with fewer registers: with three CTAs of four warps, which have 168
/// registers, products and attention take 0.97 to 1.09 times as long as with two.
const FEW_WARPS: u32 = 16;

/// Registers above which the assembler seldom saves any.
const CHOICE: u32 = 144;

/// Registers with which three CTAs of four warps find room, and one of eight.
const ROOMY: u32 = 168;

/// Most registers that the assembler takes for a bound: with 208 and more it does as with 255.
const MOST_OF_A_BOUND: u32 = 200;

/// Most CTAs beside each other of which the assembler is told.
const MOST_BESIDE: u32 = 3;

/// A directive that bounds registers; its text is that of PTX.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RegisterBound {
    /// Most registers of a thread.
    Registers(u32),
    /// CTAs for which registers must do.
    Ctas(u32),
}

impl RegisterBound {
    /// The bound that was asked for, or what the assembler cannot do without. The assembler takes its word for it, and gives a
    /// kernel more registers than there are for its threads, so that no launch succeeds.
    pub(super) fn at_most(registers: u16, func: &ThreadFunction) -> Self {
        let most = Target::most_registers(func.cta_threads());
        RegisterBound::Registers(u32::from(registers).max(least(func)).min(most))
    }

    /// The bound for a kernel of which so many registers are predicted, and so many needed.
    pub(super) fn of(
        func: &ThreadFunction,
        target: Target,
        predicted: u32,
        needed: u32,
    ) -> Option<Self> {
        let threads = func.cta_threads();
        let most = Target::most_registers(threads);
        let insts = func.order.blocks.iter().flat_map(|&b| func.order.insts(b));
        let unit = insts.clone().find_map(|&inst| func.dfg.insts[inst].unit());
        let slots = func.slots.values();
        let shared = slots.filter_map(|s| Some(s.offset? + s.bytes)).max();
        if unit.is_some_and(|unit| unit.info().when == When::UntilWait) {
            // Kernels with roles are alone on their SMs, and so are those that have as many programs as there are SMs.
            let ctas = match func.producer().is_some() || walks_over_programs(func) {
                true => 1,
                false => {
                    let needed = [
                        needed.max(least(func)),
                        needed.saturating_sub(FOUND).max(least(func)),
                    ];
                    of_warpgroups(threads, shared.unwrap_or(0), target, predicted, needed)
                }
            };
            return Some(RegisterBound::Ctas(ctas));
        }
        if predicted > most {
            return Some(RegisterBound::Ctas(1));
        }
        // What is predicted may be too little.
        let registers = predicted + UNSURE;
        let by_shared = shared.and_then(|end| target.resident_by_shared(end));
        let by_registers = |registers| Target::resident_by_registers(threads, registers);
        if let Some(unit) = unit
            && registers > CHOICE
        {
            let [factor, ..] = unit.info().scalars;
            return match factor {
                Scalar::F8E4M3 | Scalar::F8E5M2 => None,
                _ if registers > ROOMY => Some(RegisterBound::Ctas(1)),
                _ => Some(RegisterBound::Registers(ROOMY.min(most))),
            };
        }
        if let Some(ctas) = by_shared
            && registers <= CHOICE
            && (1..=MOST_BESIDE).contains(&ctas)
            && ctas <= by_registers(registers)
        {
            return Some(RegisterBound::Ctas(ctas));
        }
        let waits = unit.is_none() && loads_in_loop(func);
        waits.then(|| RegisterBound::in_loops(threads, target, predicted))
    }

    /// The bound for loops that load from global memory: that of the CTAs which find room.
    fn in_loops(threads: u32, target: Target, predicted: u32) -> Self {
        let registers = (predicted + UNSURE_IN_LOOPS).max(LEAST_IN_LOOPS);
        let usage = Usage {
            threads,
            registers,
            shared: 0,
        };
        let ctas = target.resident(usage).max(1);
        match MOST_OF_A_BOUND < Target::most_registers(ctas * threads) {
            true if registers <= MOST_OF_A_BOUND => RegisterBound::Registers(registers.max(ROOMY)),
            _ => RegisterBound::Ctas(ctas),
        }
    }
}

/// Registers that the assembler wants.
fn least(func: &ThreadFunction) -> u32 {
    let insts = func.order.blocks.iter().flat_map(|&b| func.order.insts(b));
    let data = insts.map(|&inst| &func.dfg.insts[inst]);
    let wanted = data.filter_map(|data| {
        let sums = data.results.iter();
        let sums = sums
            .map(|&sum| u32::from(func.dfg.ty(sum).registers()))
            .max();
        Some(match data.unit()?.info().when {
            When::UntilWait => sums.unwrap_or(0) + BESIDE_SUMS,
            When::Now => LEAST_OF_PRODUCTS,
        })
    });
    wanted.max().unwrap_or(LEAST)
}

/// For how many CTAs products by warpgroups are to do with the registers that are `needed`, and with what the assembler may find where it
/// has to.
fn of_warpgroups(
    threads: u32,
    shared: u32,
    target: Target,
    predicted: u32,
    needed: [u32; 2],
) -> u32 {
    let resident = |registers| {
        let usage = Usage {
            threads,
            registers,
            shared,
        };
        target.resident(usage)
    };
    let ctas_of = |warps: u32| 32 * warps / threads.max(1);
    let [needed, found] = needed;
    let found = resident(found).min(ctas_of(ENOUGH_WARPS));
    let ctas = resident(needed).min(ctas_of(MANY_WARPS)).max(found);
    match ctas > resident(predicted) && ctas * threads >= 32 * FEW_WARPS {
        true => ctas,
        false => 1,
    }
}

/// Whether a loop around others goes on from the program's number: such kernels are launched with as many programs as there are SMs.
fn walks_over_programs(func: &ThreadFunction) -> bool {
    let is_number = |&value: &Value| {
        let inst = func.dfg.def_inst(value);
        let reg = inst.and_then(|inst| func.dfg.insts[inst].reg());
        matches!(
            reg,
            Some(SpecialReg::ProgramX | SpecialReg::ProgramY | SpecialReg::ProgramZ)
        )
    };
    let loops = Loops::with_function(func);
    let mut blocks = func.order.blocks.iter().copied();
    // Where that is the compiler's doing, there are as many CTAs as find room.
    !func.persistent
        && blocks.clone().any(|block| loops.depth(block) > 1)
        && blocks.any(|block| {
            let last = func.order.last(block);
            let calls = last.map_or(&[][..], |last| &func.dfg.insts[last].blocks);
            let mut enters = calls.iter().filter(|call| loops.is_in_loop(call.block));
            !loops.is_in_loop(block) && enters.any(|call| call.args.iter().any(is_number))
        })
}

/// Whether a loop loads from global memory into registers.
fn loads_in_loop(func: &ThreadFunction) -> bool {
    let blocks = &func.order.blocks;
    let place = |block| blocks.iter().position(|&b| b == block);
    (0..blocks.len()).any(|end| {
        let last = func.order.last(blocks[end]);
        let calls = last.map_or(&[][..], |last| &func.dfg.insts[last].blocks);
        // A loop stands in one piece, its head first.
        let head = calls.iter().filter_map(|call| place(call.block)).min();
        head.filter(|&head| head <= end).is_some_and(|head| {
            let mut insts = blocks[head..=end].iter().flat_map(|&b| func.order.insts(b));
            insts.any(|&inst| {
                let data = &func.dfg.insts[inst];
                let ptr = data.args.first().map(|&ptr| func.dfg.ty(ptr).elem);
                data.op == ThreadOp::Ld && matches!(ptr, Some(Elem::Ptr(_, AddressSpace::Global)))
            })
        })
    })
}

impl fmt::Display for RegisterBound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RegisterBound::Registers(most) => write!(f, ".maxnreg {most}"),
            RegisterBound::Ctas(ctas) => write!(f, ".minnctapersm {ctas}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{FOUND, RegisterBound, of_warpgroups};
    use crate::settings::Target;

    /// What was measured: products with a gate and its derivative, a product with GELU, attention of 128 rows on four warps, whose
    /// registers do for two CTAs.
    #[test]
    fn products_are_for_more_ctas_where_that_was_faster() {
        for (threads, shared, predicted, needed, ctas) in [
            (128, 24_576, 135, 102, 5),
            (128, 16_384, 208, 74, 6),
            (256, 98_832, 197, 107, 2),
            (128, 65_568, 195, 167, 1),
            (128, 24_576, 96, 96, 1),
            (128, 4_096, 140, 30, 6),
        ] {
            let needed = [needed, needed - FOUND];
            let found = of_warpgroups(threads, shared, Target::SM_90A, predicted, needed);
            assert_eq!(
                found, ctas,
                "{predicted} registers predicted, {needed:?} needed"
            );
        }
    }

    /// Four CTAs of two warps, or one of eight, leave each thread all registers there are: that binds nothing.
    #[test]
    fn loops_get_a_bound_that_is_one() {
        for (threads, predicted, bound) in [
            (64, 178, RegisterBound::Registers(186)),
            (256, 130, RegisterBound::Registers(168)),
            (128, 130, RegisterBound::Ctas(3)),
            (64, 20, RegisterBound::Ctas(32)),
            (64, 220, RegisterBound::Ctas(4)),
        ] {
            let found = RegisterBound::in_loops(threads, Target::SM_90, predicted);
            assert_eq!(found, bound, "{threads} threads, {predicted} registers");
        }
    }
}
