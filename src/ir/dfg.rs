//! Data flow: instructions, values and blocks as tables, without program order.
//!
//! An instruction that stands in no block still exists here; moving code never touches operands.

use cranelift_entity::{PrimaryMap, packed_option::PackedOption};
use smallvec::SmallVec;

use super::attrs::{Attr, Attrs};
use super::entities::{Block, Inst, Value};
use super::level::Level;
use super::types::ValueType;

/// A short list of values.
pub type ValueList = SmallVec<[Value; 4]>;

/// A place in the source the function was made from; the index means something to the front end alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SourceLoc(pub PackedOption<SourceLine>);

/// Line and column of the source text, first is 1; column 0 is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SourceLine(pub u32, pub u32);

impl cranelift_entity::packed_option::ReservedValue for SourceLine {
    fn reserved_value() -> SourceLine {
        SourceLine(u32::MAX, 0)
    }

    fn is_reserved_value(&self) -> bool {
        self.0 == u32::MAX
    }
}

/// A block an instruction refers to: a region it owns (then without arguments), or where it may go
/// with the arguments for the block's parameters.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BlockCall {
    /// The block.
    pub block: Block,
    /// Values of its parameters.
    pub args: ValueList,
}

impl BlockCall {
    /// A region.
    pub fn region(block: Block) -> BlockCall {
        BlockCall {
            block,
            args: ValueList::new(),
        }
    }
}

/// An instruction.
#[derive(Clone, Debug)]
pub struct InstData<L: Level> {
    /// What it does.
    pub op: L::Op,
    /// Operands.
    pub args: ValueList,
    /// Attributes.
    pub attrs: SmallVec<[Attr; 2]>,
    /// Regions or targets.
    pub blocks: SmallVec<[BlockCall; 2]>,
    /// Results.
    pub results: SmallVec<[Value; 2]>,
    /// Where it comes from.
    pub loc: SourceLoc,
}

impl<L: Level> InstData<L> {
    /// An instruction without attributes, blocks and results.
    pub fn new(op: L::Op, args: &[Value]) -> InstData<L> {
        InstData {
            op,
            args: ValueList::from_slice(args),
            attrs: SmallVec::new(),
            blocks: SmallVec::new(),
            results: SmallVec::new(),
            loc: SourceLoc::default(),
        }
    }
}

impl<L: Level> Attrs for InstData<L> {
    fn attrs(&self) -> &[Attr] {
        &self.attrs
    }
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueDef {
    /// Result number `.1` of an instruction.
    Result(Inst, u16),
    /// Parameter number `.1` of a block.
    Param(Block, u16),
}

/// A value.
#[derive(Clone, Copy, Debug)]
pub struct ValueData<L: Level> {
    /// Its type.
    pub ty: L::Type,
    /// Its definition.
    pub def: ValueDef,
}

/// A block's parameters.
#[derive(Clone, Debug, Default)]
pub struct BlockData {
    /// Parameters, in order.
    pub params: SmallVec<[Value; 4]>,
}

/// The tables.
#[derive(Clone, Debug)]
pub struct Dfg<L: Level> {
    /// Instructions.
    pub insts: PrimaryMap<Inst, InstData<L>>,
    /// Values.
    pub values: PrimaryMap<Value, ValueData<L>>,
    /// Blocks.
    pub blocks: PrimaryMap<Block, BlockData>,
}

impl<L: Level> Default for Dfg<L> {
    fn default() -> Self {
        Dfg {
            insts: PrimaryMap::new(),
            values: PrimaryMap::new(),
            blocks: PrimaryMap::new(),
        }
    }
}

impl<L: Level> Dfg<L> {
    /// Adds a block without parameters.
    pub fn make_block(&mut self) -> Block {
        self.blocks.push(BlockData::default())
    }

    /// Adds a parameter to a block.
    pub fn append_param(&mut self, block: Block, ty: L::Type) -> Value {
        let index = self.blocks[block].params.len() as u16;
        let value = self.values.push(ValueData {
            ty,
            def: ValueDef::Param(block, index),
        });
        self.blocks[block].params.push(value);
        value
    }

    /// Adds an instruction with results of the given types; what `data.results` held is replaced. A number keeps the bits of its
    /// type alone, so that equal constants are equal.
    pub fn make_inst(&mut self, mut data: InstData<L>, result_types: &[L::Type]) -> Inst {
        let inst = self.insts.next_key();
        if let [ty] = result_types {
            for attr in &mut data.attrs {
                if let Attr::Value(bits) = attr {
                    *bits &= ty.elem().mask();
                }
            }
        }
        data.results = (0..result_types.len())
            .map(|i| {
                let def = ValueDef::Result(inst, i as u16);
                self.values.push(ValueData {
                    ty: result_types[i],
                    def,
                })
            })
            .collect();
        self.insts.push(data)
    }

    /// Adds a result to an instruction, behind those that it has.
    pub fn append_result(&mut self, inst: Inst, ty: L::Type) -> Value {
        let index = self.insts[inst].results.len() as u16;
        let value = self.values.push(ValueData {
            ty,
            def: ValueDef::Result(inst, index),
        });
        self.insts[inst].results.push(value);
        value
    }

    /// The type of a value.
    pub fn ty(&self, value: Value) -> L::Type {
        self.values[value].ty
    }

    /// The instruction a value is a result of.
    pub fn def_inst(&self, value: Value) -> Option<Inst> {
        match self.values[value].def {
            ValueDef::Result(inst, _) => Some(inst),
            ValueDef::Param(..) => None,
        }
    }

    /// The only result of an instruction; none if there are more or fewer.
    pub fn single_result(&self, inst: Inst) -> Option<Value> {
        match self.insts[inst].results[..] {
            [value] => Some(value),
            _ => None,
        }
    }

    /// Operands of an instruction and the arguments it gives to blocks.
    pub fn uses(&self, inst: Inst) -> impl Iterator<Item = Value> + '_ {
        let data = &self.insts[inst];
        data.args
            .iter()
            .chain(data.blocks.iter().flat_map(|call| &call.args))
            .copied()
    }

    /// Changes every operand and block argument of an instruction.
    pub fn map_uses(&mut self, inst: Inst, mut change: impl FnMut(Value) -> Value) {
        let data = &mut self.insts[inst];
        let block_args = data.blocks.iter_mut().flat_map(|call| &mut call.args);
        for value in data.args.iter_mut().chain(block_args) {
            *value = change(*value);
        }
    }
}
