//! Stores of what products of warpgroups make, and sums of it with what is in memory.

use cranelift_entity::EntitySet;

use crate::analysis::program::ProgramOrder;
use crate::ir::attrs::{Attrs, MemOrder, Scope};
use crate::ir::effects::{AccessSpace, How, OpClass};
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::function::TileFunction;
use crate::ir::ops::TileOp;
use crate::ir::ops::rules::engine_adds;
use crate::settings::Target;
use crate::tile::edit::use_counts;
use crate::tile::start_dots::is_for_warpgroup;

/// Bytes of a word.
const WORD: u32 = 4;

/// The stores of blocks that are computed from products of warpgroups, and sums of these with memory; and which of them are of words
/// that stand transposed in registers: there threads have whole sectors of rows, and in shared memory such a block would take the room
/// of rings. (An H100, tf32 of 4096^3 with b as k x n: by threads 357 us, by the engine 458.)
pub(super) fn stores(
    func: &TileFunction,
    order: &ProgramOrder,
    target: Target,
) -> (Vec<Inst>, Vec<Inst>) {
    let mut made: EntitySet<Value> = EntitySet::new();
    // Values are only added, and each round goes through the program once.
    let mut changed = true;
    while changed {
        changed = false;
        for (_, inst) in func.all_insts() {
            for value in from_products(func, inst, target, &made) {
                changed |= made.insert(value);
            }
        }
    }
    let added = with_memory(func, order);
    let insts = func.all_insts().map(|(_, inst)| inst);
    let is_one = |&inst: &Inst| {
        let data = &func.dfg.insts[inst];
        (data.op == TileOp::Store || added.contains(&inst))
            && made.contains(data.args[1])
            && !func.dfg.ty(data.args[1]).is_scalar()
    };
    let all: Vec<Inst> = insts.filter(is_one).collect();
    let mut transposed = all.clone();
    transposed.retain(|&inst| {
        let stored = func.dfg.insts[inst].args[1];
        func.dfg.ty(stored).elem.bytes() == WORD && is_transposed(func, stored, &made)
    });
    (all, transposed)
}

/// Whether a block is one that was made of products, transposed, or is computed from such a one element by element.
fn is_transposed(func: &TileFunction, value: Value, made: &EntitySet<Value>) -> bool {
    let Some(data) = func.dfg.def_inst(value).map(|inst| &func.dfg.insts[inst]) else {
        return false;
    };
    match data.op {
        TileOp::Permute => data.args.iter().any(|&of| made.contains(of)),
        _ if data.class() == OpClass::Elementwise => {
            data.args.iter().any(|&arg| is_transposed(func, arg, made))
        }
        _ => false,
    }
}

/// Sums of blocks with memory that the copy engine can do: nobody asks what was there, and they order nothing. What the author lets
/// order other accesses (as `atomic_add` does unless it is told otherwise) has nothing to order if the kernel writes nothing before,
/// and accesses nothing after it.
pub(super) fn with_memory(func: &TileFunction, order: &ProgramOrder) -> Vec<Inst> {
    let atomics: Vec<Inst> = func.insts_with(TileOp::AtomicRmw).map(|(_, i)| i).collect();
    if atomics.is_empty() {
        return atomics;
    }
    let uses = use_counts(func);
    let orders = |inst: Inst| {
        let mut others = func.all_insts();
        others.any(|(_, other)| {
            let accesses = func.accesses(other);
            let mut of_memory = accesses
                .iter()
                .filter(|a| matches!(a.space, AccessSpace::Global(_)));
            let is_foreign = func.dfg.insts[other].class() == OpClass::Foreign;
            let writes = of_memory.clone().any(|access| access.how != How::Read);
            let comes_first = || order.may_precede(func, other, inst);
            let comes_later = || order.may_precede(func, inst, other);
            (writes || is_foreign) && comes_first()
                || (is_foreign || of_memory.next().is_some()) && comes_later()
        })
    };
    let can_be_done = |&inst: &Inst| {
        let data = &func.dfg.insts[inst];
        let elem = func.dfg.ty(data.args[1]).elem.scalar();
        let adds = data.rmw().zip(elem);
        let is_free = || data.sem() == Some(&MemOrder::Relaxed) || !orders(inst);
        data.results.iter().all(|&old| uses[old] == 0)
            && matches!(data.scope(), Some(Scope::Cta | Scope::Gpu))
            && adds.is_some_and(|(&rmw, elem)| engine_adds(rmw, elem))
            && !func.dfg.ty(data.args[1]).is_scalar()
            && is_free()
    };
    atomics.into_iter().filter(can_be_done).collect()
}

/// What an instruction makes of products, of which `made` is known so far.
fn from_products(
    func: &TileFunction,
    inst: Inst,
    target: Target,
    made: &EntitySet<Value>,
) -> Vec<Value> {
    let data = &func.dfg.insts[inst];
    if is_for_warpgroup(func, inst, target) {
        return data.results.to_vec();
    }
    let yielded = |block: Block, i: usize| {
        let last = func.order.last(block);
        let value = last.and_then(|last| func.dfg.insts[last].args.get(i));
        value.is_some_and(|&value| made.contains(value))
    };
    let regions = || data.blocks.iter().map(|call| call.block);
    let numbered = data.results.iter().enumerate();
    match data.op {
        TileOp::For => {
            let Some(body) = regions().next() else {
                return Vec::new();
            };
            let params = &func.dfg.blocks[body].params;
            let carried = |&(i, _): &(usize, &Value)| {
                let first = data.args.get(3 + i);
                yielded(body, i) || first.is_some_and(|&first| made.contains(first))
            };
            let both = |(i, &result): (usize, &Value)| [Some(result), params.get(1 + i).copied()];
            numbered.filter(carried).flat_map(both).flatten().collect()
        }
        TileOp::If => {
            let chosen = |&(i, _): &(usize, &Value)| regions().any(|block| yielded(block, i));
            numbered.filter(chosen).map(|(_, &result)| result).collect()
        }
        _ if data.is_pure() && data.args.iter().any(|&arg| made.contains(arg)) => {
            data.results.to_vec()
        }
        _ => Vec::new(),
    }
}
