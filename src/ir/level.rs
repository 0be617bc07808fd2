//! The two levels of the IR.
//!
//! Containers, printer, parser, verifier and builder are written once, generic over the level; what
//! differs is which ops exist and what a type is.

use std::fmt;
use std::hash::Hash;

use super::ops::{Opcode, ThreadOp, TileOp, rules};
use super::types::{ThreadType, TileType, ValueType};

/// A level of the IR.
pub trait Level: Copy + fmt::Debug + 'static {
    /// The ops that exist here.
    type Op: Opcode + Hash;
    /// The type of a value.
    type Type: ValueType + Hash;
    /// The word that opens a function of this level in the text form.
    const KEYWORD: &'static str;
    /// The op of a constant.
    #[doc(hidden)]
    const CONST: Self::Op;
    /// The op that compares integers.
    #[doc(hidden)]
    const ICMP: Self::Op;

    /// The result types of an op, or why its operands do not fit. See [`rules`].
    fn result_types(
        op: Self::Op,
        operands: &rules::Operands<'_, Self>,
    ) -> Result<rules::Types<Self>, rules::TypeError>;
}

/// Block programs: values are blocks, control flow is structured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tile;

/// What one thread does: values are numbers and packs of them, control flow is a graph of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thread;

impl Level for Tile {
    type Op = TileOp;
    type Type = TileType;
    const KEYWORD: &'static str = "kernel";
    const CONST: TileOp = TileOp::Const;
    const ICMP: TileOp = TileOp::Icmp;

    fn result_types(
        op: TileOp,
        operands: &rules::Operands<'_, Tile>,
    ) -> Result<rules::Types<Tile>, rules::TypeError> {
        rules::tile::result_types(op, operands)
    }
}

impl Level for Thread {
    type Op = ThreadOp;
    type Type = ThreadType;
    const KEYWORD: &'static str = "thread";
    const CONST: ThreadOp = ThreadOp::Const;
    const ICMP: ThreadOp = ThreadOp::Icmp;

    fn result_types(
        op: ThreadOp,
        operands: &rules::Operands<'_, Thread>,
    ) -> Result<rules::Types<Thread>, rules::TypeError> {
        rules::thread::result_types(op, operands)
    }
}
