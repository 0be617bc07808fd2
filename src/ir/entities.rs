//! Names of the parts of a function: small typed indices into dense tables.
//!
//! Nothing in the IR holds a reference to anything else. An index is four bytes, stays valid while
//! tables grow, and keys side tables of analyses. `Display` of an entity equals its text form.

use std::fmt;

use cranelift_entity::entity_impl;

use crate::linear_layout::pool::LayoutId;

/// An instruction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Inst(u32);
entity_impl!(Inst, "inst");

/// A value: the result of an instruction or a parameter of a block.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Value(u32);
entity_impl!(Value, "v");

/// A block: a list of instructions with parameters. At tile level an instruction owns it as a region.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Block(u32);
entity_impl!(Block, "block");

/// A buffer in shared memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slot(u32);
entity_impl!(Slot, "slot");

/// A range of warps that executes a region with a register budget of its own.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Partition(u32);
entity_impl!(Partition, "part");

/// A part of a function that a message is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AnyEntity {
    /// The function as a whole.
    Function,
    /// A block.
    Block(Block),
    /// An instruction.
    Inst(Inst),
    /// A value.
    Value(Value),
    /// A buffer in shared memory.
    Slot(Slot),
    /// A range of warps.
    Partition(Partition),
    /// The recipe of a tensor map, by its place in the function.
    Map(u32),
    /// A layout.
    Layout(LayoutId),
}

macro_rules! any_entity {
    ($($entity:ident),*) => {
        $(impl From<$entity> for AnyEntity {
            fn from(entity: $entity) -> AnyEntity {
                AnyEntity::$entity(entity)
            }
        })*
    };
}
any_entity!(Block, Inst, Value, Slot, Partition);

impl From<LayoutId> for AnyEntity {
    fn from(layout: LayoutId) -> AnyEntity {
        AnyEntity::Layout(layout)
    }
}

impl fmt::Display for AnyEntity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AnyEntity::Function => f.write_str("function"),
            AnyEntity::Block(block) => write!(f, "{block}"),
            AnyEntity::Inst(inst) => write!(f, "{inst}"),
            AnyEntity::Value(value) => write!(f, "{value}"),
            AnyEntity::Slot(slot) => write!(f, "{slot}"),
            AnyEntity::Partition(partition) => write!(f, "{partition}"),
            AnyEntity::Map(index) => write!(f, "map{index}"),
            AnyEntity::Layout(layout) => write!(f, "{layout}"),
        }
    }
}
