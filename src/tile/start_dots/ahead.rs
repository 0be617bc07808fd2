//! Operands that are computed while the product before is under way.
//!
//! ```text
//! s = dot_start ..                    s = dot_start ..
//! p = dot_sum s                       x = fpext (shared_load i); shared_store x
//! ..                             =>   p = dot_sum s
//! x = fpext (shared_load i)           ..
//! shared_store x                      dot_start p, (shared_view)
//! dot_start p, (shared_view)
//! ```
//!
//! What stands in a ring and is computed from there for the unit asks for nothing of the product before: threads compute it while they
//! would wait for that. (An H100, attention with values of 8 bits: 9 % less time.)

use rustc_hash::{FxHashMap, FxHashSet};

use crate::ir::effects::OpClass;
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::function::TileFunction;
use crate::ir::ops::TileOp;

/// Moves what the operand of a product is computed from behind the product that was started before, if it comes from rings that hold it
/// there already; whether it did.
pub(super) fn move_up(func: &mut TileFunction, block: Block, dot: Inst, operand: Value) -> bool {
    let list = func.order.insts(block);
    let is_start = |inst: &Inst| func.dfg.insts[*inst].op == TileOp::DotStart;
    let before = list.split(|&inst| inst == dot).next().unwrap_or(&[]);
    let Some(start) = before.iter().rposition(is_start) else {
        return false;
    };
    let (first, rest) = list.split_at(start + 1);
    let places: FxHashMap<Inst, usize> = rest.iter().copied().zip(0..).collect();
    let mut moved: FxHashSet<Inst> = FxHashSet::default();
    let (mut last, mut loads) = (0, 0);
    let mut pending = vec![operand];
    while let Some(value) = pending.pop() {
        let def = func.dfg.def_inst(value);
        let Some((inst, &place)) = def.and_then(|inst| Some((inst, places.get(&inst)?))) else {
            continue;
        };
        let data = &func.dfg.insts[inst];
        match data.class() {
            OpClass::Constant | OpClass::Elementwise | OpClass::Shape if data.is_pure() => {}
            _ if data.op == TileOp::SharedLoad => loads += 1,
            _ => return false,
        }
        if moved.insert(inst) {
            last = last.max(place);
            pending.extend(&data.args);
        }
    }
    let between = || rest[..last].iter().filter(|inst| !moved.contains(inst));
    if loads == 0 || !between().all(|&inst| leaves_rings(func, inst)) {
        return false;
    }
    let (up, stay): (Vec<Inst>, Vec<Inst>) = rest.iter().partition(|inst| moved.contains(inst));
    let list = [first, &up, &stay].concat();
    func.order.replace(block, list);
    true
}

/// Whether what is loaded from rings in front of an instruction is what is loaded behind it. What copies bring is there behind a wait, and
/// until then they write no entry that anybody reads.
fn leaves_rings(func: &TileFunction, inst: Inst) -> bool {
    let data = &func.dfg.insts[inst];
    let is_copy = matches!(
        data.op,
        TileOp::TensorCopy | TileOp::MbarExpect | TileOp::AsyncCopy | TileOp::AsyncCommit
    );
    let is_product = matches!(data.op, TileOp::SharedView | TileOp::DotSum);
    let is_sum = matches!(data.op, TileOp::Reduce | TileOp::Scan);
    is_copy || is_product || is_sum || data.is_pure() || data.only_reads()
}

#[cfg(test)]
mod tests {
    use crate::ir::ops::TileOp;
    use crate::settings::Target;
    use crate::tile::start_dots::start_dots;
    use crate::tile::testing::parse;

    /// Whether the right operand of a second product, made by `operand` as `v9`, is stored in front of the wait for the first one. The
    /// ring of the first has so many entries.
    fn is_ahead(operand: &str, entries: u32) -> bool {
        let mut func = parse(&format!(
            "kernel @k(v0: i32, v1: ptr<i8>[64,64]) warps(4) {{
                slot0 = {} bytes align 128 holds {entries} of f16[64,64]
                slot1 = 4096 bytes align 128 holds 1 of i8[64,64]
                slot2 = 8 bytes align 8
            block0:
                v2 = const {{value = 0.0}} : f32[64,64]
                v3 = shared_load v0 {{slot = slot0}} : f16[64,64]
                v4 = shared_load v0 {{slot = slot0}} : f16[64,64]
                v5 = dot v3, v4, v2 {{precision = ieee}} : f32[64,64]
                v6 = exp2 v5 : f32[64,64]
                v7 = fptrunc v6 {{round = rn}} : f16[64,64]
                {operand}
                v10 = dot v7, v9, v2 {{precision = ieee}} : f32[64,64]
                return
            }}",
            entries * 8192
        ));
        assert_eq!(start_dots(&mut func, Target::SM_90A), 2);
        let ops = func.all_insts().map(|(_, inst)| func.dfg.insts[inst].op);
        let ops: Vec<TileOp> = ops.collect();
        let place = |op| ops.iter().position(|&other| other == op);
        place(TileOp::SharedStore).expect("it is computed")
            < place(TileOp::DotSum).expect("it waits")
    }

    const LOADED: &str = "v8 = shared_load v0 {slot = slot1} : i8[64,64]
                v9 = sitofp v8 : f16[64,64]";

    #[test]
    fn what_a_ring_holds_is_computed_while_the_product_before_is_under_way() {
        assert!(is_ahead(LOADED, 1));
        assert!(is_ahead(&format!("v11 = load v1 : i8[64,64]\n{LOADED}"), 1));
    }

    #[test]
    fn what_a_wait_brings_is_not() {
        assert!(!is_ahead(
            &format!("mbar_wait v0, v0 {{slot = slot2}}\n{LOADED}"),
            1
        ));
        assert!(!is_ahead(&format!("barrier\n{LOADED}"), 1));
    }

    #[test]
    fn what_depends_on_the_product_or_on_memory_is_not() {
        let of_sum = "v9 = permute v7 {dims = [1, 0]} : f16[64,64]";
        assert!(!is_ahead(of_sum, 1));
        let of_memory = "v8 = load v1 : i8[64,64]\nv9 = sitofp v8 : f16[64,64]";
        assert!(!is_ahead(of_memory, 1));
    }

    #[test]
    fn programs_beside_it_are_worth_more() {
        // With a place of its own for the operand an SM holds a program less.
        assert!(!is_ahead(LOADED, 13));
        assert!(is_ahead(LOADED, 16));
    }
}
