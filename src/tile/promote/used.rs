//! Which memory a kernel reads and writes.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::analysis::program::ProgramOrder;
use crate::ir::attrs::{Attrs, Cache};
use crate::ir::dfg::ValueDef;
use crate::ir::effects::{AccessSpace, How, OpClass};
use crate::ir::entities::{Inst, Value};
use crate::ir::function::TileFunction;
use crate::ir::ops::{Opcode, TileOp};

/// What a kernel does to memory.
#[derive(Debug, Default)]
pub(crate) struct Used {
    /// What it writes through each parameter, or changes.
    writes: FxHashMap<Value, Vec<Inst>>,
    /// What it reads through each parameter, or changes.
    reads: FxHashMap<Value, Vec<Inst>>,
    /// Whether it writes through other pointers.
    writes_anywhere: bool,
    /// Whether it reads through other pointers.
    reads_anywhere: bool,
    /// What reads what other programs have just written.
    pub(super) acquires: Vec<Inst>,
    /// Barriers of the author, behind which all threads see what any of them wrote.
    barriers: Vec<Inst>,
}

impl Used {
    pub(crate) fn compute(func: &TileFunction) -> Used {
        let mut out = Used::default();
        for (_, inst) in func.all_insts() {
            let data = &func.dfg.insts[inst];
            let is_foreign = data.class() == OpClass::Foreign;
            out.writes_anywhere |= is_foreign;
            out.reads_anywhere |= is_foreign;
            if data.sem().is_some_and(|sem| sem.acquires()) || is_volatile(func, inst) {
                out.acquires.push(inst);
            }
            if data.op == TileOp::Barrier {
                out.barriers.push(inst);
            }
            for access in func.accesses(inst) {
                let AccessSpace::Global(pointer) = access.space else {
                    continue;
                };
                let params = origins(func, pointer);
                let (reads, writes) = (access.how != How::Write, access.how != How::Read);
                out.reads_anywhere |= reads && params.is_none();
                out.writes_anywhere |= writes && params.is_none();
                for param in params.into_iter().flatten() {
                    if reads {
                        out.reads.entry(param).or_default().push(inst);
                    }
                    if writes {
                        out.writes.entry(param).or_default().push(inst);
                    }
                }
            }
        }
        out
    }

    /// Whether what a parameter points to may be written.
    pub(crate) fn is_written(&self, param: Value) -> bool {
        self.writes_anywhere || self.writes.contains_key(&param)
    }

    /// Whether something reads what the kernel wrote, whatever parameters both start from: these may be given one buffer, and a
    /// barrier lets all threads see what is in it.
    pub(super) fn may_see_writes(
        &self,
        func: &TileFunction,
        order: &ProgramOrder,
        read: Inst,
    ) -> bool {
        let mut writes = self.writes.values().flatten();
        let comes_first = |&inst: &Inst| order.may_precede(func, inst, read);
        self.barriers.iter().any(comes_first) && writes.any(comes_first)
    }

    /// Whether a load finds the same whenever it is executed behind the kernel's waits for the one before it: it reads through
    /// parameters that nothing is written through, and nothing else in front of it waits for what others do.
    pub(crate) fn is_settled(&self, func: &TileFunction, order: &ProgramOrder, load: Inst) -> bool {
        let data = &func.dfg.insts[load];
        if !data.only_reads() || is_volatile(func, load) || self.may_see_writes(func, order, load) {
            return false;
        }
        let params = data.args.first().and_then(|&from| origins(func, from));
        let waits = |inst: Inst| {
            let data = &func.dfg.insts[inst];
            data.op != TileOp::GdcWait && data.orders_memory() || self.acquires.contains(&inst)
        };
        let mut all = func.all_insts().map(|(_, inst)| inst);
        let is_kept = params.is_some_and(|all| all.iter().all(|&param| !self.is_written(param)));
        is_kept && !all.any(|inst| waits(inst) && order.may_precede(func, inst, load))
    }

    /// Whether what a parameter points to may be read by what is not excepted, or written by what does not start from a parameter.
    pub(super) fn is_read(&self, param: Value, except: impl Fn(Inst) -> bool) -> bool {
        let reads = self.reads.get(&param).map_or(&[][..], |all| all);
        let is_read = reads.iter().any(|&read| !except(read));
        self.writes_anywhere || self.reads_anywhere || is_read
    }

    /// What writes through a parameter.
    pub(super) fn writes(&self, param: Value) -> &[Inst] {
        self.writes.get(&param).map_or(&[], |all| all)
    }
}

/// Whether a load reads what may have changed a moment ago.
pub(crate) fn is_volatile(func: &TileFunction, inst: Inst) -> bool {
    let data = &func.dfg.insts[inst];
    data.volatile().is_some() || data.op == TileOp::Load && data.cache() == Some(&Cache::Volatile)
}

/// The parameters that a pointer may come from; none if it may come from elsewhere.
fn origins(func: &TileFunction, pointer: Value) -> Option<Vec<Value>> {
    let mut found = Vec::new();
    let mut stack = vec![pointer];
    let mut seen = FxHashSet::default();
    while let Some(value) = stack.pop() {
        if !seen.insert(value) {
            continue;
        }
        let (inst, position) = match func.dfg.values[value].def {
            ValueDef::Param(block, _) if block == func.entry => {
                found.push(value);
                continue;
            }
            ValueDef::Param(block, index) => {
                let mut all = func.all_insts().map(|(_, inst)| inst);
                let inst = all.find(|&inst| func.regions(inst).any(|region| region == block))?;
                (inst, usize::from(index).checked_sub(1)?)
            }
            ValueDef::Result(inst, index) => (inst, usize::from(index)),
        };
        let data = &func.dfg.insts[inst];
        let yields = || {
            let last = data.blocks.iter().map(|call| func.order.last(call.block));
            last.map(|last| func.dfg.insts[last?].args.get(position).copied())
        };
        match data.op {
            TileOp::For => {
                stack.push(*data.args.get(3 + position)?);
                stack.extend(yields().collect::<Option<Vec<_>>>()?);
            }
            TileOp::If => stack.extend(yields().collect::<Option<Vec<_>>>()?),
            TileOp::Select => stack.extend(&data.args[1..]),
            op if op.info().keeps_elements() => stack.push(data.args[0]),
            TileOp::Addptr
            | TileOp::TensorMap
            | TileOp::Split
            | TileOp::AssumeMultiple
            | TileOp::AssumeContiguous
            | TileOp::AssumeConstant => stack.push(data.args[0]),
            TileOp::Bitcast if func.dfg.ty(data.args[0]).elem.is_ptr() => stack.push(data.args[0]),
            TileOp::Join => stack.extend(&data.args),
            _ => return None,
        }
    }
    Some(found)
}
