//! Names of the parts of a function: small typed indices into dense tables.
//!
//! Nothing in the IR holds a reference to anything else. An index is four bytes, stays valid while
//! tables grow, and keys side tables of analyses. `Display` of an entity equals its text form.

use cranelift_entity::entity_impl;

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
