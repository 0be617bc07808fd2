//! Rewriting a function in one walk: each instruction is kept, replaced by a value, or dropped.
//!
//! The walk is in program order, so operands are final when an instruction is visited. New instructions go in
//! front of the visited one; a replaced result is looked up at every later use. Time is linear.

use cranelift_entity::{SecondaryMap, packed_option::PackedOption};
use rustc_hash::FxHashMap;

pub(super) use crate::analysis::constants::signed;
use crate::analysis::program::{ProgramOrder, WalkStep};
use crate::ir::attrs::{Attr, Attrs, make};
use crate::ir::dfg::{InstData, SourceLoc};
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::function::TileFunction;
use crate::ir::level::Tile;
use crate::ir::ops::TileOp;
use crate::ir::types::{Elem, TileType, ValueType};

/// What becomes of a visited instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It stays.
    Keep,
    /// Its only result is this value.
    Replace(Value),
    /// It goes; nothing uses its results.
    Remove,
    /// It goes to the end of what is written so far of a block around its own.
    Move(Block),
}

/// A function that is being rewritten.
#[derive(Debug)]
pub(super) struct Editor<'a> {
    /// The function; instructions stand in their old places until the walk leaves their block.
    pub func: &'a mut TileFunction,
    order: &'a ProgramOrder,
    lists: SecondaryMap<Block, Vec<Inst>>,
    alias: SecondaryMap<Value, PackedOption<Value>>,
    block: Block,
    loc: SourceLoc,
    changes: usize,
}

/// Visits every instruction in program order; gives the number of changes. Instructions with regions are visited
/// before their regions, and only [`Fate::Keep`] is possible for them.
pub(super) fn rewrite(
    func: &mut TileFunction,
    mut visit: impl FnMut(&mut Editor<'_>, Inst) -> Fate,
) -> usize {
    let order = ProgramOrder::compute(func);
    let entry = func.entry;
    let mut editor = Editor {
        func,
        order: &order,
        lists: SecondaryMap::new(),
        alias: SecondaryMap::new(),
        block: entry,
        loc: SourceLoc::default(),
        changes: 0,
    };
    for &step in order.steps() {
        match step {
            WalkStep::Inst(inst) => {
                let fate = editor.visit(inst, &mut visit);
                match fate {
                    Fate::Keep => editor.lists[editor.block].push(inst),
                    Fate::Remove => editor.changes += 1,
                    Fate::Move(block) => {
                        editor.changes += 1;
                        editor.lists[block].push(inst);
                    }
                    Fate::Replace(value) => {
                        editor.changes += 1;
                        let result = editor.func.dfg.insts[inst].results[0];
                        editor.alias[result] = Some(value).into();
                    }
                }
            }
            WalkStep::Enter(inst) => {
                let fate = editor.visit(inst, &mut visit);
                debug_assert_eq!(fate, Fate::Keep, "regions stay");
            }
            WalkStep::Region(_) => {}
            WalkStep::Leave(inst) => {
                let regions: Vec<Block> = editor.func.regions(inst).collect();
                for region in regions {
                    editor.close(region);
                }
                let block = editor.func.order.block_of(inst);
                let block = block.expect("the walk visits instructions that stand in blocks");
                editor.lists[block].push(inst);
            }
        }
    }
    editor.close(entry);
    editor.changes
}

/// How often each value is used.
pub(super) fn use_counts(func: &TileFunction) -> SecondaryMap<Value, u32> {
    let mut uses = SecondaryMap::new();
    for (_, inst) in func.all_insts() {
        for value in func.dfg.uses(inst) {
            uses[value] += 1;
        }
    }
    uses
}

/// Makes every use of a value one of another.
pub(super) fn rename_uses(func: &mut TileFunction, old: Value, new: Value) {
    for block in func.all_blocks() {
        for inst in func.order.insts(block).to_vec() {
            func.dfg
                .map_uses(inst, |value| if value == old { new } else { value });
        }
    }
}

/// Makes every use of a value in the map one of what it is there.
pub(super) fn rename_all(func: &mut TileFunction, names: &FxHashMap<Value, Value>) {
    for block in func.all_blocks() {
        for inst in func.order.insts(block).to_vec() {
            let name = |value| names.get(&value).copied().unwrap_or(value);
            func.dfg.map_uses(inst, name);
        }
    }
}

/// Collects what an instruction and its regions read.
pub(super) fn read_by(func: &TileFunction, inst: Inst, values: &mut Vec<Value>) {
    values.extend(func.dfg.uses(inst));
    for block in func.regions(inst) {
        for &inst in func.order.insts(block) {
            read_by(func, inst, values);
        }
    }
}

/// A copy of an instruction and its regions, which stands nowhere yet. `map` says what stands for the values it reads, those that
/// it lacks for themselves, and learns what stands for its results.
pub(super) fn copy_of(
    func: &mut TileFunction,
    inst: Inst,
    map: &mut FxHashMap<Value, Value>,
) -> Inst {
    let mut data = func.dfg.insts[inst].clone();
    let old = std::mem::take(&mut data.results);
    for arg in &mut data.args {
        *arg = map.get(arg).copied().unwrap_or(*arg);
    }
    for call in &mut data.blocks {
        let region = func.dfg.make_block();
        for param in func.dfg.blocks[call.block].params.clone() {
            let copy = func.dfg.append_param(region, func.dfg.ty(param));
            map.insert(param, copy);
        }
        let inner = func.order.insts(call.block).to_vec();
        let copies = inner.iter().map(|&inst| copy_of(func, inst, map)).collect();
        func.order.replace(region, copies);
        call.block = region;
    }
    let types: Vec<TileType> = old.iter().map(|&v| func.dfg.ty(v)).collect();
    let copy = func.dfg.make_inst(data, &types);
    let new = &func.dfg.insts[copy].results;
    map.extend(old.iter().copied().zip(new.iter().copied()));
    copy
}

impl Editor<'_> {
    fn visit(&mut self, inst: Inst, visit: &mut impl FnMut(&mut Editor<'_>, Inst) -> Fate) -> Fate {
        let block = self.func.order.block_of(inst);
        self.block = block.expect("the walk visits instructions that stand in blocks");
        self.loc = self.func.dfg.insts[inst].loc;
        let alias = &self.alias;
        // What replaced a value was final then, so one look is enough.
        self.func
            .dfg
            .map_uses(inst, |value| alias[value].expand().unwrap_or(value));
        visit(self, inst)
    }

    fn close(&mut self, block: Block) {
        let insts = std::mem::take(&mut self.lists[block]);
        self.func.order.replace(block, insts);
    }

    /// The block of the visited instruction.
    pub(super) fn block(&self) -> Block {
        self.block
    }

    /// The instruction that owns a region.
    pub(super) fn owner(&self, region: Block) -> Option<Inst> {
        self.order.owner(region)
    }

    /// The block in which the owner of a region stands.
    pub(super) fn around(&self, region: Block) -> Option<Block> {
        self.func.order.block_of(self.owner(region)?)
    }

    /// Counts a change made to an instruction in place.
    pub(super) fn changed(&mut self) {
        self.changes += 1;
    }

    /// Type of a value.
    pub(super) fn ty(&self, value: Value) -> TileType {
        self.func.dfg.ty(value)
    }

    /// The instruction that makes a value.
    pub(super) fn def(&self, value: Value) -> Option<&InstData<Tile>> {
        let inst = self.func.dfg.def_inst(value)?;
        Some(&self.func.dfg.insts[inst])
    }

    /// Operand `i` of the instruction with the op that makes a value.
    pub(super) fn operand_of(&self, value: Value, op: TileOp, i: usize) -> Option<Value> {
        let data = self.def(value).filter(|data| data.op == op)?;
        data.args.get(i).copied()
    }

    /// The bits of a value that is constant.
    pub(super) fn bits(&self, value: Value) -> Option<u64> {
        let data = self.def(value).filter(|data| data.op == TileOp::Const)?;
        data.value().copied()
    }

    /// Makes an instruction with one result that stands nowhere yet.
    pub(super) fn make(
        &mut self,
        op: TileOp,
        args: &[Value],
        attrs: &[Attr],
        ty: TileType,
    ) -> Inst {
        let mut data = InstData::new(op, args);
        data.attrs.extend(attrs.iter().cloned());
        data.loc = self.loc;
        self.func.dfg.make_inst(data, &[ty])
    }

    /// Puts an instruction in front of the visited one.
    pub(super) fn place(&mut self, inst: Inst) -> Value {
        self.lists[self.block].push(inst);
        self.func.dfg.insts[inst].results[0]
    }

    /// A new instruction with one result in front of the visited one.
    pub(super) fn insert(&mut self, mut data: InstData<Tile>, ty: TileType) -> Value {
        data.loc = self.loc;
        let inst = self.func.dfg.make_inst(data, &[ty]);
        self.place(inst)
    }

    /// A new instruction without results in front of the visited one.
    pub(super) fn append(&mut self, mut data: InstData<Tile>) {
        data.loc = self.loc;
        let inst = self.func.dfg.make_inst(data, &[]);
        self.lists[self.block].push(inst);
    }

    /// A new instruction in front of the visited one.
    pub(super) fn build(
        &mut self,
        op: TileOp,
        args: &[Value],
        attrs: &[Attr],
        ty: TileType,
    ) -> Value {
        let inst = self.make(op, args, attrs, ty);
        self.place(inst)
    }

    /// An instruction whose result has the type of its first operand.
    pub(super) fn op(&mut self, op: TileOp, args: &[Value]) -> Value {
        let ty = self.ty(args[0]);
        self.build(op, args, &[], ty)
    }

    /// The number in every element.
    pub(super) fn constant(&mut self, bits: u64, ty: TileType) -> Value {
        self.build(TileOp::Const, &[], &[make::value(bits)], ty)
    }

    /// The f32 with these bits in every element of the extent of `like`.
    pub(super) fn f32_bits(&mut self, bits: u32, like: TileType) -> Value {
        self.constant(u64::from(bits), like.with_elem(Elem::F32))
    }
}
