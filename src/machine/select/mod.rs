//! Selects instructions for a kernel.
//!
//! 1. **Registers.** Values get registers in an order in which definitions precede uses ([`values`]). `splat`,
//!    `rearrange`, `bitcast` and `ptr_cast` only rename those of their operands and constants need none, so none of
//!    these is an instruction unless halves of registers move. Nor is what is one of its operands, or true or false, as
//!    another is the least or the largest number ([`identities`]).
//! 2. **Selection.** Blocks and instructions are visited from the last to the first. An instruction without effect that
//!    nobody asked for by then is dropped; what its only user folded in (an address's offset, a product in a sum) was
//!    not asked for. Only instructions without effect are ever folded, so no order of effects needs keeping.
//!    Ops over registers go through the rules ([`rules`]) by class; memory accesses ([`memory`]) and moves of halves
//!    ([`values`]) are loops over registers and are written in Rust.
//! 3. **Results.** A rule makes registers of its own. Those that end up as the result are replaced by the value's, in the
//!    operands of what was just emitted; others are copied.

use cranelift_entity::packed_option::PackedOption;
use cranelift_entity::{EntitySet, SecondaryMap};
use smallvec::SmallVec;

use super::function::{CodeBlock, Edge, MachineFunction, Terminator};
use super::inst::{Address, Guard, Kind, MInst, Modifier, Operand, Ptx, PtxType};
use crate::error::CompileError;
use crate::ir::dfg::{BlockCall, SourceLoc};
use crate::ir::effects::OpClass;
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::function::ThreadFunction;
use crate::ir::ops::{Opcode, ThreadOp};
use crate::ir::types::{AddressSpace, Elem, Scalar, ThreadType};
use crate::regalloc::reg::{Group, RegClass, RegView, Unit};
use crate::settings::Target;

mod atomic;
mod boxes;
mod bytes;
mod context;
#[cfg(test)]
pub(crate) mod coverage;
mod identities;
mod inline_ptx;
mod matrix;
pub(crate) mod memory;
mod rules;
mod values;

/// Name of this pass in messages.
const PASS: &str = "instruction selection";

/// Machine instructions of a kernel.
pub(crate) fn select(
    func: &ThreadFunction,
    target: Target,
) -> Result<MachineFunction, CompileError> {
    let mut lower = Selector::new(func, target);
    lower.run()?;
    Ok(lower.code)
}

/// State of the selection.
struct Selector<'a> {
    func: &'a ThreadFunction,
    target: Target,
    code: MachineFunction,
    /// Registers or bits of each value, once known.
    values: SecondaryMap<Value, Option<Operand>>,
    /// Register of a constant that a renaming op refers to.
    const_units: SecondaryMap<Value, PackedOption<Unit>>,
    /// Number of uses in the function.
    n_uses: SecondaryMap<Value, u32>,
    /// Values that something else than sums and products of floats reads.
    read_as_bits: EntitySet<Value>,
    needed: EntitySet<Value>,
    /// Sums of which nobody reads what they hold before products.
    unread: EntitySet<Value>,
    /// Values whose registers are those of other values, or which are numbers.
    renames: EntitySet<Value>,
    /// Words that are both floats and whole numbers.
    recast: EntitySet<Unit>,
    /// What conversions to two floats of 8 bits leave, each in 16 bits.
    converted: EntitySet<Unit>,
    /// Those of them that are half of a word.
    joined: EntitySet<Unit>,
    /// Where loads of several bytes leave them, if somebody takes them from there.
    packed: SecondaryMap<Value, Option<RegView>>,
    /// Registers of policies for the L2 cache, by [`crate::ir::attrs::Evict`].
    policies: [Option<RegView>; 2],
    /// The instruction being selected, and what was emitted for it so far.
    root: Inst,
    loc: SourceLoc,
    emitted: Vec<MInst>,
}

fn is_eight(kind: Kind) -> bool {
    matches!(kind, Kind::E4m3 | Kind::E5m2)
}

impl<'a> Selector<'a> {
    fn new(func: &'a ThreadFunction, target: Target) -> Selector<'a> {
        Selector {
            func,
            target,
            code: MachineFunction::default(),
            values: SecondaryMap::new(),
            const_units: SecondaryMap::new(),
            n_uses: SecondaryMap::new(),
            read_as_bits: EntitySet::new(),
            needed: EntitySet::new(),
            unread: EntitySet::new(),
            renames: EntitySet::new(),
            recast: EntitySet::new(),
            converted: EntitySet::new(),
            joined: EntitySet::new(),
            packed: SecondaryMap::new(),
            policies: [None; 2],
            root: Inst::from_u32(0),
            loc: SourceLoc::default(),
            emitted: Vec::new(),
        }
    }

    fn run(&mut self) -> Result<(), CompileError> {
        let post = self.post_order()?;
        for &block in post.iter().rev() {
            self.assign_values(block)?;
        }
        // Blocks keep their order in the text; those never reached are left out.
        let mut index: SecondaryMap<Block, PackedOption<Block>> = SecondaryMap::new();
        let mut reached: EntitySet<Block> = EntitySet::new();
        for &block in &post {
            reached.insert(block);
        }
        let kept: Vec<Block> = self
            .func
            .order
            .blocks
            .iter()
            .copied()
            .filter(|&b| reached.contains(b))
            .collect();
        if kept.first() != Some(&self.func.entry) {
            return Err(internal("the entry is not the first block"));
        }
        for (i, &block) in kept.iter().enumerate() {
            index[block] = Some(Block::from_u32(i as u32)).into();
        }
        let mut bodies: Vec<(Vec<MInst>, Option<Terminator>)> =
            vec![(Vec::new(), None); kept.len()];
        for &block in &post {
            let place = index[block]
                .expand()
                .ok_or_else(|| internal("a block that is jumped to is not in the order"))?;
            let (body, end) = &mut bodies[place.as_u32() as usize];
            self.select_block(block, body, end, &index)?;
        }
        for (&block, (body, end)) in kept.iter().zip(bodies) {
            let start = self.code.insts.len();
            self.code.insts.extend(body.into_iter().rev());
            let params = self.block_params(block);
            let end_loc = self
                .func
                .order
                .last(block)
                .map_or(SourceLoc::default(), |i| self.func.dfg.insts[i].loc);
            self.code.blocks.push(CodeBlock {
                insts: start..self.code.insts.len(),
                params,
                end: end.ok_or_else(|| internal("a block has no end"))?,
                end_loc,
            });
        }
        Ok(())
    }

    /// The blocks that can be reached, each after those it leads to (loops apart); counts uses on the way.
    fn post_order(&mut self) -> Result<Vec<Block>, CompileError> {
        let func = self.func;
        let mut seen: EntitySet<Block> = EntitySet::new();
        let mut post = Vec::new();
        let mut stack = vec![(func.entry, 0)];
        seen.insert(func.entry);
        while let Some((block, next)) = stack.pop() {
            let last = func
                .order
                .last(block)
                .ok_or_else(|| internal("a block is empty"))?;
            let calls = &func.dfg.insts[last].blocks;
            if next == 0 {
                for &inst in func.order.insts(block) {
                    let op = func.dfg.insts[inst].op;
                    let computes = matches!(
                        op,
                        ThreadOp::Fadd | ThreadOp::Fsub | ThreadOp::Fmul | ThreadOp::Fma
                    );
                    for value in func.dfg.uses(inst) {
                        self.n_uses[value] += 1;
                        if !computes {
                            self.read_as_bits.insert(value);
                        }
                    }
                }
            }
            match calls.get(next) {
                Some(call) => {
                    stack.push((block, next + 1));
                    if call.block == func.entry {
                        return Err(internal("the entry is jumped to"));
                    }
                    if seen.insert(call.block) {
                        stack.push((call.block, 0));
                    }
                }
                None => post.push(block),
            }
        }
        Ok(post)
    }

    fn block_params(&self, block: Block) -> Vec<RegView> {
        if block == self.func.entry {
            return Vec::new();
        }
        let params = &self.func.dfg.blocks[block].params;
        params
            .iter()
            .filter_map(|&p| match self.values[p] {
                Some(Operand::Regs(view)) => Some(view),
                _ => None,
            })
            .collect()
    }

    /// Selects a block from its end to its start into `body`, which is in reverse afterwards.
    fn select_block(
        &mut self,
        block: Block,
        body: &mut Vec<MInst>,
        end: &mut Option<Terminator>,
        index: &SecondaryMap<Block, PackedOption<Block>>,
    ) -> Result<(), CompileError> {
        let func = self.func;
        let insts = func.order.insts(block);
        body.reserve(insts.len());
        for &inst in insts.iter().rev() {
            self.root = inst;
            self.loc = func.dfg.insts[inst].loc;
            let data = &func.dfg.insts[inst];
            if data.op.info().ends_block() {
                *end = Some(self.select_end(inst, index)?);
            } else {
                self.select_inst(inst)?;
                // Rules ask for the target; this is the proof that none forgot to.
                if self
                    .emitted
                    .iter()
                    .any(|i| !i.op.info().exists.on(self.target))
                {
                    return Err(self.not_selected(data.op));
                }
            }
            body.extend(self.emitted.drain(..).rev());
        }
        if block == func.entry {
            self.load_params()?;
            self.make_policies();
            body.extend(self.emitted.drain(..).rev());
        }
        Ok(())
    }

    fn select_end(
        &mut self,
        inst: Inst,
        index: &SecondaryMap<Block, PackedOption<Block>>,
    ) -> Result<Terminator, CompileError> {
        let data = &self.func.dfg.insts[inst];
        match (data.op, &data.blocks[..]) {
            (ThreadOp::Return, _) => Ok(Terminator::Return),
            (ThreadOp::Jump, [call]) => Ok(Terminator::Jump(self.edge(call, index)?)),
            (ThreadOp::Brif, [then, otherwise]) => {
                let cond = self.use_value(data.args[0]);
                let cond = self.in_register(cond, RegClass::P);
                Ok(Terminator::Branch {
                    cond: self.code.regs.unit(cond, 0),
                    then: self.edge(then, index)?,
                    otherwise: self.edge(otherwise, index)?,
                })
            }
            (op, _) => Err(self.not_selected(op)),
        }
    }

    fn edge(
        &mut self,
        call: &BlockCall,
        index: &SecondaryMap<Block, PackedOption<Block>>,
    ) -> Result<Edge, CompileError> {
        let target = index[call.block]
            .expand()
            .ok_or_else(|| internal("a block that is jumped to is not in the order"))?;
        if call.args.len() != self.func.dfg.blocks[call.block].params.len() {
            return Err(internal("a jump has the wrong number of arguments"));
        }
        let args: SmallVec<[Operand; 8]> = call.args.iter().map(|&v| self.use_value(v)).collect();
        let start = self.code.edge_args.len();
        self.code.edge_args.extend(args);
        Ok(Edge {
            target: target.as_u32() as usize,
            args: start..self.code.edge_args.len(),
        })
    }

    /// Selects one instruction if anybody needs it.
    fn select_inst(&mut self, inst: Inst) -> Result<(), CompileError> {
        let data = &self.func.dfg.insts[inst];
        let result = data.results.first().copied();
        let mut results = data.results.iter();
        let wanted = results.any(|&v| self.needed.contains(v) || self.packed[v].is_some());
        // `ptxas` 12.8 to 13.0 must not get an exchange whose result nobody reads, for it drops that late: if the result was all
        // that read one of `or.pred p, a, b` and `and.pred q, a, b`, it has made both one instruction by then, and leaves the
        // other predicate the conjunction, whichever it is. All lanes leave it out.
        if !wanted && !data.has_effect() {
            return Ok(());
        }
        let first_group = self.code.regs.groups.next_key();
        let first_arg = self.code.args.len();
        let Some(selected) = self.select_op(inst)? else {
            return Ok(());
        };
        match result {
            Some(value) => self.finish(value, selected, first_group, first_arg),
            None => Ok(()),
        }
    }

    /// Emits an instruction and gives its result; none if it has none or it only renames.
    fn select_op(&mut self, inst: Inst) -> Result<Option<Operand>, CompileError> {
        let func = self.func;
        let data = &func.dfg.insts[inst];
        let view = self.view_inst(inst);
        if data.op == ThreadOp::Icmp
            && let Some(found) = self.test_bytes(inst)
        {
            return Ok(Some(found));
        }
        let ty = |v: Value| func.dfg.ty(v);
        let arg_kind = || data.args.first().map_or(Kind::I32, |&v| kind(ty(v)));
        let result_kind = || data.results.first().map_or(Kind::I32, |&v| kind(ty(v)));
        let selected = match data.op {
            ThreadOp::Const => return self.select_const(inst),
            ThreadOp::Splat
            | ThreadOp::Rearrange
            | ThreadOp::Bitcast
            | ThreadOp::Rare
            | ThreadOp::PtrCast => {
                return self.select_rename(inst);
            }
            _ if data
                .results
                .first()
                .is_some_and(|&v| self.renames.contains(v)) =>
            {
                return self.select_known(inst);
            }
            ThreadOp::Addptr => {
                let offset = kind(ty(data.args[1]));
                rules::constructor_lower_addptr(self, &result_kind(), &offset, &view)
            }
            // 8-bit floats have forms for their bits, and for two conversions on newer targets.
            ThreadOp::Fcmp
            | ThreadOp::Sitofp
            | ThreadOp::Uitofp
            | ThreadOp::Fptosi
            | ThreadOp::Fptoui
            | ThreadOp::Fpext
            | ThreadOp::Fptrunc
                if (is_eight(arg_kind()) || is_eight(result_kind()))
                    && !self.converts_eight(data.op, arg_kind(), result_kind()) =>
            {
                None
            }
            ThreadOp::Icmp | ThreadOp::Fcmp => {
                rules::constructor_lower_cmp(self, &arg_kind(), &view)
            }
            ThreadOp::Select => rules::constructor_lower_cmp(self, &result_kind(), &view),
            ThreadOp::Sext
            | ThreadOp::Zext
            | ThreadOp::Itrunc
            | ThreadOp::Sitofp
            | ThreadOp::Uitofp
            | ThreadOp::Fptosi
            | ThreadOp::Fptoui
            | ThreadOp::Fpext
            | ThreadOp::Fptrunc => {
                rules::constructor_lower_cvt(self, &result_kind(), &arg_kind(), &view)
            }
            ThreadOp::Special => self.select_special(inst),
            ThreadOp::SlotAddr => self.select_slot(inst),
            ThreadOp::Ld => return self.select_load(inst),
            ThreadOp::St => return self.select_store(inst).map(|()| None),
            ThreadOp::LdMatrix => return self.select_ldmatrix(inst).map(Some),
            ThreadOp::Mma => return self.select_mma(inst).map(|()| None),
            ThreadOp::Wgmma => return self.select_wgmma(inst).map(|()| None),
            ThreadOp::WgmmaFence => return self.select_held(inst, Ptx::WgmmaFence),
            ThreadOp::WgmmaCommit => return self.select_bare(Ptx::WgmmaCommit),
            ThreadOp::WgmmaWait => return self.select_held(inst, Ptx::WgmmaWait),
            ThreadOp::FenceAsync => return self.select_bare(Ptx::FenceAsync),
            ThreadOp::MapAddr => self.select_map(inst),
            ThreadOp::MbarInit
            | ThreadOp::MbarInval
            | ThreadOp::MbarExpect
            | ThreadOp::MbarArrive => {
                return self.select_mbar(inst).map(|()| None);
            }
            ThreadOp::WarpBarrier => return self.select_warp_barrier(),
            ThreadOp::GroupBarrier => return self.select_group_barrier(inst),
            ThreadOp::GroupArrive => {
                self.select_group_arrive(inst);
                return Ok(None);
            }
            ThreadOp::SetRegisters => return self.select_set_registers(inst),
            ThreadOp::FenceMbarInit => return self.select_bare(Ptx::FenceMbarInit),
            ThreadOp::MbarTry => self.select_mbar_try(inst),
            ThreadOp::Elect => Some(self.select_elect()),
            ThreadOp::TensorCopy => return self.select_box_copy(inst).map(|()| None),
            ThreadOp::TensorStore => return self.select_box_store(inst).map(|()| None),
            ThreadOp::BulkCommit => return self.select_bare(Ptx::BulkCommit),
            ThreadOp::BulkWaitRead => return self.select_pending(inst, Ptx::BulkWaitRead),
            ThreadOp::BulkWait => return self.select_pending(inst, Ptx::BulkWait),
            ThreadOp::StMatrix => return self.select_stmatrix(inst).map(|()| None),
            ThreadOp::CpAsync => return self.select_copy(inst).map(|()| None),
            ThreadOp::CpAsyncCommit => return self.select_bare(Ptx::CpAsyncCommit),
            ThreadOp::CpAsyncWait => return self.select_pending(inst, Ptx::CpAsyncWait),
            ThreadOp::Words => return self.select_words(inst),
            ThreadOp::Atom | ThreadOp::AtomCas => return self.select_atomic(inst),
            ThreadOp::GdcWait => return self.select_bare(Ptx::GdcWait),
            ThreadOp::GdcLaunchDependents => return self.select_bare(Ptx::GdcLaunch),
            ThreadOp::Trap => return self.select_trap(inst),
            ThreadOp::LogAddr => {
                let ty = PtxType::U64;
                Some(self.result_of(Ptx::LogAddr, ty, ty, Modifier::None, &[Operand::Log]))
            }
            ThreadOp::GlobalTimer => {
                let ty = PtxType::U64;
                Some(self.result_of(Ptx::Timer, ty, ty, Modifier::None, &[Operand::Timer]))
            }
            ThreadOp::InlinePtx => return self.select_inline(inst).map(|()| None),
            ThreadOp::Barrier => return self.select_barrier(inst).map(|()| None),
            // Ends of blocks.
            ThreadOp::Return | ThreadOp::Jump | ThreadOp::Brif => None,
            _ => match data.op.info().effects.class {
                OpClass::Elementwise if ty(data.results[0]).elem.is_float() => {
                    rules::constructor_lower_float(self, &result_kind(), &view)
                }
                OpClass::Elementwise => rules::constructor_lower_int(self, &result_kind(), &view),
                OpClass::Exchange => rules::constructor_lower_exchange(self, &arg_kind(), &view),
                OpClass::Constant
                | OpClass::Shape
                | OpClass::Matrix
                | OpClass::Memory
                | OpClass::Report
                | OpClass::Sync
                | OpClass::Foreign
                | OpClass::Region
                | OpClass::End => None,
            },
        };
        selected.map(Some).ok_or_else(|| self.not_selected(data.op))
    }

    /// An instruction without operands.
    fn select_bare(&mut self, op: Ptx) -> Result<Option<Operand>, CompileError> {
        let ty = PtxType::U32;
        self.push_inst(op, ty, ty, Modifier::None, 1, &[]);
        Ok(None)
    }

    fn select_trap(&mut self, inst: Inst) -> Result<Option<Operand>, CompileError> {
        let pred = self.func.dfg.insts[inst].args.first().copied();
        let when = self.when(pred);
        if !matches!(when, memory::When::Never) {
            self.select_bare(Ptx::Trap)?;
        }
        if let memory::When::If(guard) = when {
            self.guard_last(Some(guard));
        }
        Ok(None)
    }

    /// Whether the target has the conversion from or to an 8-bit float.
    fn converts_eight(&mut self, op: ThreadOp, from: Kind, to: Kind) -> bool {
        let known = match op {
            ThreadOp::Fpext => matches!(to, Kind::F16 | Kind::F16x2),
            ThreadOp::Fptrunc => from == Kind::F32 && !rules::Context::to_zero(self),
            _ => false,
        };
        known && self.target.converts_f8()
    }

    /// An instruction that no rule covers.
    fn not_selected(&self, op: ThreadOp) -> CompileError {
        let data = &self.func.dfg.insts[self.root];
        let mut what = format!("`{op}`");
        for (i, &arg) in data.args.iter().enumerate() {
            what += if i == 0 { " " } else { ", " };
            what += &self.func.dfg.ty(arg).to_string();
        }
        if let Some(&result) = data.results.first() {
            what += &format!(" -> {}", self.func.dfg.ty(result));
        }
        CompileError::Unsupported {
            what,
            target: self.target,
            line: data.loc.0.expand().map(|line| line.0),
        }
    }

    /// Makes what was selected the registers of `value`. `first_group` and `first_arg` are where the selection began.
    fn finish(
        &mut self,
        value: Value,
        selected: Operand,
        first_group: Group,
        first_arg: usize,
    ) -> Result<(), CompileError> {
        let Some(Operand::Regs(own)) = self.values[value] else {
            return Err(self.not_selected(self.func.dfg.insts[self.root].op));
        };
        let group = self.code.regs.group_of(self.code.regs.unit(own, 0));
        let dest = self.code.regs.whole(group);
        let ty = bits_type(self.code.regs.groups[group].class);
        let Operand::Regs(view) = selected else {
            self.copy(dest, selected, ty);
            return Ok(());
        };
        if view.count != dest.count {
            // Of operands that are numbers one register, or one pair, stands for all.
            let (period, one) = match view.is_uniform() {
                true => (dest.count, view.part(0, 1)),
                false => (view.count, view),
            };
            if !dest.count.is_multiple_of(period) {
                return Err(self.not_selected(self.func.dfg.insts[self.root].op));
            }
            for start in (0..dest.count).step_by(usize::from(period)) {
                self.copy(dest.part(start, period), Operand::Regs(one), ty);
            }
            return Ok(());
        }
        let first_dest = self.code.regs.unit(dest, 0);
        let mut from = 0;
        // Groups that lie in the value with others between their registers.
        let mut spread: SmallVec<[Group; 2]> = SmallVec::new();
        // Registers made for this instruction become the value's, one group after the other.
        while from < view.count {
            let unit = self.code.regs.unit(view, from);
            let fresh = self.code.regs.group_of(unit);
            if first_group <= fresh
                && let Some(step) = self.placement(view, from, fresh)
                && self.replace_units(
                    fresh,
                    Unit::from_u32(first_dest.as_u32() + u32::from(from)),
                    step,
                    first_arg,
                )
            {
                if step == 1 {
                    from += self.code.regs.groups[fresh].count;
                    continue;
                }
                spread.push(fresh);
            } else if !spread.contains(&fresh) {
                self.copy(dest.part(from, 1), Operand::Regs(view.part(from, 1)), ty);
            }
            from += 1;
        }
        Ok(())
    }

    /// If `view` holds the group `fresh` from element `from` on at an even distance: that distance.
    fn placement(&self, view: RegView, from: u16, fresh: Group) -> Option<u16> {
        let data = self.code.regs.groups[fresh];
        let at = |i: u16| (i < view.count).then(|| self.code.regs.unit(view, i));
        if at(from) != Some(data.first) {
            return None;
        }
        let unit = |j: u16| Unit::from_u32(data.first.as_u32() + u32::from(j));
        let step = match data.count {
            1 => 1,
            _ => (1..=2).find(|&s| at(from + s) == Some(unit(1)))?,
        };
        let fits = (0..data.count).all(|j| at(from + j * step) == Some(unit(j)));
        let once = self
            .code
            .regs
            .units(view)
            .filter(|&u| self.code.regs.group_of(u) == fresh)
            .count();
        (fits && once == usize::from(data.count)).then_some(step)
    }

    /// Puts the units from `new` on at distance `step` in the place of those of `old`, in what was emitted from `first_arg` on.
    /// Does nothing and gives false if a list refers to `old`.
    fn replace_units(&mut self, old: Group, new: Unit, step: u16, first_arg: usize) -> bool {
        let data = self.code.regs.groups[old];
        let moved = |view: RegView| view.moved(data.first, data.count, new, step);
        for arg in &self.code.args[first_arg..] {
            if let Operand::Regs(view) | Operand::Address(Address::Register(view, _)) = arg
                && moved(*view).is_none()
                && self
                    .code
                    .regs
                    .units(*view)
                    .any(|u| self.code.regs.group_of(u) == old)
            {
                return false;
            }
        }
        for arg in &mut self.code.args[first_arg..] {
            if let Operand::Regs(view) | Operand::Address(Address::Register(view, _)) = arg {
                *view = moved(*view).unwrap_or(*view);
            }
        }
        true
    }

    /// The registers of a value as an operand.
    fn use_value(&mut self, value: Value) -> Operand {
        self.needed.insert(value);
        // Operands are defined before their uses, so that there is a number or a register for each.
        self.values[value].unwrap_or(Operand::Imm(0))
    }

    /// Emits an instruction with all its operands.
    fn push_inst(
        &mut self,
        op: Ptx,
        ty: PtxType,
        from: PtxType,
        modifier: Modifier,
        reps: u16,
        args: &[Operand],
    ) {
        let first_arg = self.code.args.len() as u32;
        self.code.args.extend_from_slice(args);
        self.emitted.push(MInst {
            op,
            ty,
            from,
            modifier,
            reps,
            first_arg,
            guard: None,
            loc: self.loc,
        });
    }

    /// Makes the instruction emitted last depend on a predicate.
    fn guard_last(&mut self, guard: Option<Guard>) {
        if let Some(last) = self.emitted.last_mut() {
            last.guard = guard;
        }
    }

    /// New registers.
    fn fresh(&mut self, class: RegClass, count: u16) -> RegView {
        let group = self.code.regs.make_group(class, count);
        self.code.regs.whole(group)
    }

    /// Copies `from` to `to`, register by register.
    fn copy(&mut self, to: RegView, from: Operand, ty: PtxType) {
        self.push_inst(
            Ptx::Mov,
            ty,
            ty,
            Modifier::None,
            to.count,
            &[Operand::Regs(to), from],
        );
    }

    /// An operand as registers.
    fn in_register(&mut self, arg: Operand, class: RegClass) -> RegView {
        match arg {
            Operand::Regs(view) => view,
            _ => {
                let view = self.fresh(class, 1);
                self.copy(view, arg, bits_type(class));
                view
            }
        }
    }
}

/// An error of ours.
fn internal(message: impl Into<String>) -> CompileError {
    CompileError::Internal {
        pass: PASS,
        message: message.into(),
    }
}

/// The type that says nothing but the width.
pub(crate) fn bits_type(class: RegClass) -> PtxType {
    match class {
        RegClass::P => PtxType::Pred,
        RegClass::H => PtxType::B16,
        RegClass::W => PtxType::B32,
        RegClass::D => PtxType::B64,
    }
}

/// What selection tells apart of a type.
fn kind(ty: ThreadType) -> Kind {
    let paired = ty.is_paired();
    match ty.elem {
        Elem::Num(Scalar::I1) => Kind::I1,
        Elem::Num(Scalar::I8) => Kind::I8,
        Elem::Num(Scalar::I16) if paired => Kind::I16x2,
        Elem::Num(Scalar::I16) => Kind::I16,
        Elem::Num(Scalar::I32) | Elem::Ptr(_, AddressSpace::Shared) => Kind::I32,
        Elem::Num(Scalar::I64) | Elem::Ptr(_, AddressSpace::Global) | Elem::Map(_) => Kind::I64,
        Elem::Num(Scalar::F16) if paired => Kind::F16x2,
        Elem::Num(Scalar::F16) => Kind::F16,
        Elem::Num(Scalar::Bf16) if paired => Kind::Bf16x2,
        Elem::Num(Scalar::Bf16) => Kind::Bf16,
        Elem::Num(Scalar::F32) => Kind::F32,
        Elem::Num(Scalar::F64) => Kind::F64,
        Elem::Num(Scalar::F8E4M3) => Kind::E4m3,
        Elem::Num(Scalar::F8E5M2) => Kind::E5m2,
        // Tokens are gone before this level.
        Elem::Token => Kind::I32,
    }
}

/// The class of registers of a type.
fn class(ty: ThreadType) -> RegClass {
    match ty.elem.bits() {
        1 => RegClass::P,
        8 => RegClass::H,
        16 if !ty.is_paired() => RegClass::H,
        64 => RegClass::D,
        _ => RegClass::W,
    }
}
