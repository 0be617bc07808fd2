//! What an instruction of the thread level takes of a multiprocessor.

use cranelift_entity::EntitySet;

use crate::ir::attrs::{Attrs, MmaUnit, SpecialReg};
use crate::ir::effects::OpClass;
use crate::ir::entities::{Inst, Value};
use crate::ir::function::ThreadFunction;
use crate::ir::ops::{Opcode, ThreadOp};
use crate::ir::types::{AddressSpace, Elem, ThreadType};

/// What one warp takes for an instruction on packs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Cost {
    /// Instructions of the machine.
    pub(super) issued: f64,
    /// Those on integers, comparisons and conversions.
    pub(super) simple: f64,
    /// Those on special functions.
    pub(super) special: f64,
    /// Bytes to and from shared memory.
    pub(super) shared: f64,
    /// Products of numbers of 16 bits, or as many as take as long.
    pub(super) products: f64,
    /// Instructions of which each needs the one before.
    pub(super) depth: f64,
    /// More clocks until the result is there.
    pub(super) latency: f64,
}

/// What a number takes that is the same in all threads of a warp: it is computed by another unit, and often not anew.
const UNIFORM: f64 = 0.5;
/// How many times as long an access through the L1 cache takes as one of shared memory.
const CACHE: f64 = 2.0;
/// Clocks of an exchange within a warp.
const EXCHANGE: f64 = 24.0;

/// Costs of one instruction, without what memory outside of the multiprocessor adds.
pub(super) fn cost(func: &ThreadFunction, inst: Inst, varying: &EntitySet<Value>) -> Cost {
    let data = &func.dfg.insts[inst];
    let class = data.op.info().effects.class;
    if class == OpClass::Elementwise && data.results.iter().all(|&value| !varying.contains(value)) {
        return Cost {
            issued: UNIFORM,
            depth: 1.0,
            ..Cost::default()
        };
    }
    let ty = |value| func.dfg.ty(value);
    let registers =
        |ty: ThreadType| f64::from(ty.registers()) * f64::from(ty.elem.bits().div_ceil(32).max(1));
    let first = data.args.first().map(|&value| ty(value));
    let result = data.results.first().map(|&value| ty(value));
    let count = result.or(first).map_or(0.0, registers);
    let simple = |each: f64| Cost {
        issued: each * count,
        simple: each * count,
        depth: each.max(1.0),
        ..Cost::default()
    };
    let issued = |each: f64| Cost {
        issued: each * count,
        depth: each.max(1.0),
        ..Cost::default()
    };
    let special = |each: f64| Cost {
        issued: each * count,
        special: count,
        latency: 20.0 + each,
        ..Cost::default()
    };
    // Bytes of a warp's access; what is in shared memory moves at once for 32 lanes.
    let bytes = |ty: ThreadType| 32.0 * f64::from(ty.elem.bytes()) * f64::from(ty.count);
    let shared = |bytes: f64, instructions: f64| Cost {
        issued: instructions,
        shared: bytes.max(128.0 * instructions),
        ..Cost::default()
    };
    let is_shared = first.is_some_and(|ty| matches!(ty.elem, Elem::Ptr(_, AddressSpace::Shared)));
    // What comes through the L1 cache takes the way of shared memory, for longer.
    let through_cache = |cost: Cost| Cost {
        shared: if is_shared {
            cost.shared
        } else {
            CACHE * cost.shared
        },
        ..cost
    };
    match data.op {
        ThreadOp::Sdiv | ThreadOp::Udiv | ThreadOp::Srem | ThreadOp::Urem => simple(20.0),
        ThreadOp::Fdiv => special(6.0),
        ThreadOp::FdivRn | ThreadOp::SqrtRn => special(12.0),
        op if op.info().is_special() => special(2.0),
        ThreadOp::Sqrt => special(4.0),
        // Products of integers run where those of floats do.
        ThreadOp::Imul | ThreadOp::Smulhi | ThreadOp::Umulhi => issued(1.0),
        ThreadOp::Fadd | ThreadOp::Fsub | ThreadOp::Fmul | ThreadOp::Fma => issued(1.0),
        ThreadOp::Mma => mma(func, inst),
        ThreadOp::Wgmma => wgmma(func, inst),
        ThreadOp::Ld => {
            let cost = result.map_or(Cost::default(), |ty| shared(bytes(ty), 1.0));
            through_cache(cost)
        }
        ThreadOp::St => through_cache(shared(
            data.args.get(1).map_or(0.0, |&value| bytes(ty(value))),
            1.0,
        )),
        ThreadOp::LdMatrix => shared(128.0 * count, 1.0),
        ThreadOp::StMatrix => {
            let words = data.args.get(1).map_or(0.0, |&value| registers(ty(value)));
            shared(128.0 * words, 1.0)
        }
        ThreadOp::ShflBfly
        | ThreadOp::ShflIdx
        | ThreadOp::ShflUp
        | ThreadOp::ShflDown
        | ThreadOp::Redux => Cost {
            issued: count,
            shared: 128.0 * count,
            latency: EXCHANGE,
            ..Cost::default()
        },
        _ => match class {
            OpClass::Elementwise
                if data.op == ThreadOp::Bitcast || data.op == ThreadOp::PtrCast =>
            {
                Cost::default()
            }
            OpClass::Elementwise => simple(1.0),
            OpClass::Constant | OpClass::Shape => Cost::default(),
            _ => Cost {
                issued: 1.0,
                depth: 1.0,
                ..Cost::default()
            },
        },
    }
}

/// By how much a unit's products take longer than those of 16-bit numbers.
fn slowness(unit: MmaUnit) -> f64 {
    match unit.info().scalars[0].bits() {
        8 => 0.5,
        16 => 1.0,
        32 => 2.0,
        _ => 16.0,
    }
}

/// Products of tiles by one warp.
fn mma(func: &ThreadFunction, inst: Inst) -> Cost {
    let data = &func.dfg.insts[inst];
    let Some(&unit) = data.unit() else {
        return Cost::default();
    };
    let info = unit.info();
    let [_, _, of_sum] = unit.tile_registers();
    let sums = data
        .args
        .get(2)
        .map_or(0, |&c| u32::from(func.dfg.ty(c).count));
    let tiles = f64::from(sums / of_sum.max(1));
    let [rows, inner] = unit.steps();
    Cost {
        issued: tiles * f64::from(rows * inner),
        products: tiles * f64::from(info.tile.iter().product::<u32>()) * slowness(unit),
        latency: 33.0,
        ..Cost::default()
    }
}

/// Products by four warps, of which this is one.
fn wgmma(func: &ThreadFunction, inst: Inst) -> Cost {
    let data = &func.dfg.insts[inst];
    let (Some(&unit), Some(&columns)) = (data.unit(), data.columns()) else {
        return Cost::default();
    };
    let info = unit.info();
    let pairs = data.args[1..].chunks_exact(2);
    let steps = pairs.len() as f64;
    // What stands in shared memory is read for each product: 64 rows, and all columns.
    let bytes = f64::from(info.inner * info.scalars[0].bits() / 8);
    let described = data
        .args
        .get(1)
        .is_some_and(|&a| func.dfg.ty(a).elem == Elem::I64);
    let rows = if described { 64.0 } else { 0.0 };
    let products = f64::from(64 * columns * info.inner) * slowness(unit);
    Cost {
        issued: steps,
        shared: steps * (rows + f64::from(columns)) * bytes / 4.0,
        products: steps * products / 4.0,
        ..Cost::default()
    }
}

/// The values that may differ between the threads of a warp; what is the same in all is computed beside them.
pub(super) fn varying(func: &ThreadFunction) -> EntitySet<Value> {
    let mut varying = EntitySet::new();
    loop {
        let mut changed = false;
        for (_, inst) in func.all_insts() {
            let data = &func.dfg.insts[inst];
            for call in &data.blocks {
                let params = &func.dfg.blocks[call.block].params;
                for (&param, &arg) in params.iter().zip(&call.args) {
                    changed |= varying.contains(arg) && varying.insert(param);
                }
            }
            let own = match data.op {
                ThreadOp::Special => matches!(data.reg(), Some(SpecialReg::Tid | SpecialReg::Lane)),
                // One lane's number for all.
                ThreadOp::ShflIdx => false,
                ThreadOp::Ld => data.args.first().is_some_and(|&at| varying.contains(at)),
                _ => {
                    let class = data.op.info().effects.class;
                    let is_computed = matches!(
                        class,
                        OpClass::Constant | OpClass::Elementwise | OpClass::Shape
                    );
                    !is_computed || data.args.iter().any(|&arg| varying.contains(arg))
                }
            };
            for &result in &data.results {
                // Packs hold what belongs to a thread.
                let own = own || func.dfg.ty(result).count > 1;
                changed |= own && varying.insert(result);
            }
        }
        if !changed {
            return varying;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::parse::parse_thread;

    const TEXT: &str = r#"thread @k(v0 "x": ptr<f32> {divisible = 16}, v1 "n": i32) warps(1) {
    slot0 = 512 bytes align 16 at 0
block0:
    v3 = special {reg = tid} : i32
    v4 = const {value = 2} : i32
    v5 = iadd v1, v4 : i32
    v6 = iadd v3, v4 : i32
    v7 = sext v6 : i64
    v8 = imul v6, v6 : i32
    v9 = sdiv v6, v4 : i32
    v10 = addptr v0, v6 : ptr<f32>
    v11 = ld v10 : f32 x 4
    v12 = exp2 v11 : f32 x 4
    v13 = fdiv v12, v11 : f32 x 4
    v14 = fdiv_rn v13, v11 : f32 x 4
    v15 = sqrt v14 : f32 x 4
    v16 = fadd v15, v11 : f32 x 4
    v17 = bitcast v16 : i32 x 4
    v18 = rearrange v16 {map = [0]} : f32
    v19 = shfl_bfly v18 {mask = 1} : f32
    v20 = slot_addr {slot = slot0} : ptr<f32, shared>
    v21 = addptr v20, v3 : ptr<f32, shared>
    st v21, v19 {slot = slot0}
    bar {id = 0, threads = 32}
    v22 = ld v21 {slot = slot0} : f32
    st v10, v16
    return
}
"#;

    #[test]
    fn instructions_take_what_their_units_do() {
        let func = parse_thread(TEXT).unwrap_or_else(|errors| panic!("{errors:?}"));
        let varying = varying(&func);
        let insts = func.all_insts().map(|(_, inst)| inst);
        let found = insts.map(|inst| {
            let cost = cost(&func, inst, &varying);
            let units = [cost.issued, cost.simple, cost.special, cost.shared];
            assert_eq!(cost.products, 0.0);
            (
                func.dfg.insts[inst].op.info().name,
                units,
                cost.depth,
                cost.latency,
            )
        });
        // Instructions issued, on integers, on special functions; bytes; which depend on each other; clocks.
        let expected = [
            ("special", [0.0, 0.0, 0.0, 0.0], 0.0, 0.0),
            ("const", [0.0, 0.0, 0.0, 0.0], 0.0, 0.0),
            ("iadd", [0.5, 0.0, 0.0, 0.0], 1.0, 0.0),
            ("iadd", [1.0, 1.0, 0.0, 0.0], 1.0, 0.0),
            ("sext", [2.0, 2.0, 0.0, 0.0], 1.0, 0.0),
            ("imul", [1.0, 0.0, 0.0, 0.0], 1.0, 0.0),
            ("sdiv", [20.0, 20.0, 0.0, 0.0], 20.0, 0.0),
            ("addptr", [2.0, 2.0, 0.0, 0.0], 1.0, 0.0),
            ("ld", [1.0, 0.0, 0.0, 1024.0], 0.0, 0.0),
            ("exp2", [8.0, 0.0, 4.0, 0.0], 0.0, 22.0),
            ("fdiv", [24.0, 0.0, 4.0, 0.0], 0.0, 26.0),
            ("fdiv_rn", [48.0, 0.0, 4.0, 0.0], 0.0, 32.0),
            ("sqrt", [16.0, 0.0, 4.0, 0.0], 0.0, 24.0),
            ("fadd", [4.0, 0.0, 0.0, 0.0], 1.0, 0.0),
            ("bitcast", [0.0, 0.0, 0.0, 0.0], 0.0, 0.0),
            ("rearrange", [0.0, 0.0, 0.0, 0.0], 0.0, 0.0),
            ("shfl_bfly", [1.0, 0.0, 0.0, 128.0], 0.0, 24.0),
            ("slot_addr", [0.0, 0.0, 0.0, 0.0], 0.0, 0.0),
            ("addptr", [1.0, 1.0, 0.0, 0.0], 1.0, 0.0),
            ("st", [1.0, 0.0, 0.0, 128.0], 0.0, 0.0),
            ("bar", [1.0, 0.0, 0.0, 0.0], 1.0, 0.0),
            ("ld", [1.0, 0.0, 0.0, 128.0], 0.0, 0.0),
            ("st", [1.0, 0.0, 0.0, 1024.0], 0.0, 0.0),
            ("return", [1.0, 0.0, 0.0, 0.0], 1.0, 0.0),
        ];
        assert_eq!(found.collect::<Vec<_>>(), expected);
    }
}
