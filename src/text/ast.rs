//! The syntax tree: what stands in the text, with the numbers of the text and without any check.

use super::parse::Pos;
use crate::ir::types::Elem;
use crate::linear_layout::shape::Shape;

/// A number or word with its place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At<T> {
    pub(crate) it: T,
    pub(crate) pos: Pos,
}

/// A type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawType {
    pub(crate) elem: Elem,
    pub(crate) extent: RawExtent,
    pub(crate) pos: Pos,
}

/// How many elements, with the layout's number in the text.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RawExtent {
    Single,
    Block(Shape, Option<u32>),
    Shared(Shape, Option<u32>),
    Pack(u16),
}

/// `v1 "x": i32 {divisible = 16}`
#[derive(Debug)]
pub(crate) struct RawParam {
    pub(crate) value: At<u32>,
    pub(crate) name: String,
    pub(crate) ty: RawType,
    pub(crate) divisible: u32,
}

/// `layout #0 = {..} : [512]`
#[derive(Debug)]
pub(crate) struct RawLayout<'a> {
    pub(crate) number: At<u32>,
    pub(crate) columns: At<&'a str>,
    pub(crate) shape: Shape,
}

/// `slot0 = 128 bytes align 16 at 0`
#[derive(Debug)]
pub(crate) struct RawSlot {
    pub(crate) number: At<u32>,
    pub(crate) bytes: u32,
    pub(crate) align: u32,
    pub(crate) offset: Option<u32>,
    /// Number and type of the blocks.
    pub(crate) by_group: bool,
    pub(crate) holds: Option<(u32, RawType)>,
}

/// `part1 = 4 warps from 4 registers 40`
#[derive(Debug)]
pub(crate) struct RawPartition {
    pub(crate) number: At<u32>,
    pub(crate) num_warps: u32,
    pub(crate) first_warp: u32,
    pub(crate) registers: Option<u16>,
}

/// `map0 = {base=p0, ..}`
#[derive(Debug)]
pub(crate) struct RawMap<'a> {
    pub(crate) number: At<u32>,
    pub(crate) recipe: At<&'a str>,
}

/// The value of an attribute.
#[derive(Debug)]
pub(crate) enum RawLiteral<'a> {
    Absent,
    Word(&'a str),
    /// A number, or `nan:0x..`.
    Number(&'a str),
    List(Vec<&'a str>),
    Text(String),
}

/// An attribute.
#[derive(Debug)]
pub(crate) struct RawAttr<'a> {
    pub(crate) key: At<&'a str>,
    pub(crate) literal: RawLiteral<'a>,
}

/// `block1(v2, v3)`
#[derive(Debug)]
pub(crate) struct RawTarget {
    pub(crate) block: At<u32>,
    pub(crate) args: Vec<At<u32>>,
}

/// An instruction.
#[derive(Debug)]
pub(crate) struct RawInst<'a> {
    pub(crate) results: Vec<At<u32>>,
    pub(crate) op: At<&'a str>,
    pub(crate) operands: Vec<At<u32>>,
    pub(crate) targets: Vec<RawTarget>,
    pub(crate) attrs: Vec<RawAttr<'a>>,
    pub(crate) types: Vec<RawType>,
    pub(crate) source_line: Option<u32>,
    pub(crate) regions: Vec<RawBlock<'a>>,
}

/// A block.
#[derive(Debug)]
pub(crate) struct RawBlock<'a> {
    pub(crate) number: At<u32>,
    pub(crate) params: Vec<(At<u32>, RawType)>,
    pub(crate) insts: Vec<RawInst<'a>>,
}

/// A function.
#[derive(Debug)]
pub(crate) struct RawFunction<'a> {
    pub(crate) keyword: String,
    pub(crate) pos: Pos,
    pub(crate) name: String,
    pub(crate) params: Vec<RawParam>,
    pub(crate) num_warps: u32,
    pub(crate) groups: u32,
    pub(crate) registers: Option<u16>,
    pub(crate) persistent: bool,
    pub(crate) fixed_warps: bool,
    pub(crate) layouts: Vec<RawLayout<'a>>,
    pub(crate) slots: Vec<RawSlot>,
    pub(crate) partitions: Vec<RawPartition>,
    pub(crate) maps: Vec<RawMap<'a>>,
    pub(crate) blocks: Vec<RawBlock<'a>>,
    pub(crate) last_line: u32,
    /// Whether something of it could not be read.
    pub(crate) broken: bool,
}
