//! [`LinearLayout`]: the map from hardware locations to the elements of a block.
//!
//! # Definition
//!
//! A block is spread over the registers of the lanes of the warps of a program, or over the offsets of
//! a piece of shared memory. A *layout* says, for each hardware location, which element lives there.
//! The location is a few small numbers (register 3, lane 17, warp 2), the element is its flat row-major
//! index, and since every extent is a power of two both are strings of bits. A *linear* layout is one
//! where each input bit contributes a fixed pattern to the index and the patterns are added bit by bit
//! without carry:
//!
//! ```text
//! index(register, lane, warp, cta) = XOR of the columns of all input bits that are set
//! ```
//!
//! So a layout is a matrix over GF(2), and we store its columns: one `u32` per input bit, grouped by
//! [`HwDim`]. Location zero always holds element zero.
//!
//! # A worked example
//!
//! Take a 4x4 block, two registers a lane, four lanes and two warps. Flat indices are `8 4 2 1` =
//! (row bits, column bits). The layout `{reg=[1], lane=[2,4], warp=[8]}` reads: register bit 0 moves by
//! one column, lane bit 0 by two columns, lane bit 1 by one row, warp bit 0 by two rows. In the table
//! `w:l:r` stands for the warp, lane and register that hold the element:
//!
//! ```text
//!          column 0   1      2      3
//! row 0     0:0:0  0:0:1  0:1:0  0:1:1
//! row 1     0:2:0  0:2:1  0:3:0  0:3:1
//! row 2     1:0:0  1:0:1  1:1:0  1:1:1
//! row 3     1:2:0  1:2:1  1:3:0  1:3:1
//! ```
//!
//! Warp 1, lane 3, register 1 holds `8 ^ (2 ^ 4) ^ 1 = 15`: the last element. The shared-memory layout
//! `{offset=[1,2,4^1,8^2]}`, printed `{offset=[1,2,5,10]}`, stores row `r` at offsets `4r..4r+4` with
//! its columns permuted by `c ^ r`: a swizzle is nothing but a column of more than one bit.
//!
//! # Two kinds
//!
//! A **distributed** layout has the inputs register, lane, warp and CTA. It is *surjective* (every
//! element is somewhere) and need not be *injective*: an input bit whose column is zero, or depends on
//! the columns before it, makes copies. `lane=[1,2,4,8,0]` on 16 elements says that lanes 0 to 15 and 16
//! to 31 hold the same. Such bits are called *free* ([`LinearLayout::free_mask`]). Broadcasting and
//! replication need no other notion than the zero column: the slice of a layout is the layout with the
//! bits of the removed axis cleared from its columns, and whatever moved along that axis alone becomes
//! zero.
//!
//! A **memory** layout has the one input offset, counted in elements, and is a bijection when it is
//! used as storage. Padding and the index of a ring of buffers are not linear; they stand beside the
//! layout, not in it.
//!
//! # Why from hardware to tensor
//!
//! With replication an element is in several places, so the other direction is not a function. The
//! inverse, where it is wanted, is a choice of one place for each element
//! ([`LinearLayout::invert`], free bits zero).
//!
//! # What the algebra gives
//!
//! Composition is the matrix product; building a big layout from a small tile is the direct sum
//! ([`LinearLayout::product`]), and [`LinearLayout::divide_left`] undoes it; reshaping changes no column
//! because the flat index is row-major; transposing renames bits. To convert a layout `A` to a layout
//! `B` is to compute `A⁻¹ B`: see `layout::convert`. The theory is in Zhou et al., *Linear Layouts*,
//! arXiv 2505.23819; flat indices in place of per-dimension coordinates are our own and make each
//! column one machine word.

use smallvec::SmallVec;

use super::gf2::{self, Span};
use super::shape::{Shape, ShapeError};
use crate::settings::LANES;

/// Number of lanes of a warp, as a power of two.
pub const LOG2_LANES: u32 = LANES.ilog2();

/// An input of a layout: what a location is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum HwDim {
    /// Index among the registers of one thread that hold the block.
    Register,
    /// Lane of the warp.
    Lane,
    /// Warp of the group of warps that holds the block.
    Warp,
    /// CTA of the cluster.
    Cta,
    /// Offset in shared memory, in elements.
    Offset,
}

impl HwDim {
    /// All inputs, in the order in which free bits are determined and text is printed.
    pub const ALL: [HwDim; 5] = [
        HwDim::Register,
        HwDim::Lane,
        HwDim::Warp,
        HwDim::Cta,
        HwDim::Offset,
    ];

    /// Name in the text form.
    pub fn name(self) -> &'static str {
        match self {
            HwDim::Register => "reg",
            HwDim::Lane => "lane",
            HwDim::Warp => "warp",
            HwDim::Cta => "cta",
            HwDim::Offset => "offset",
        }
    }
}

/// Columns of one input, the one of bit 0 first.
pub type Columns = SmallVec<[u32; 8]>;

/// Whether a block lives in registers or in shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LayoutKind {
    /// Inputs register, lane, warp and CTA.
    Distributed,
    /// Input offset.
    Memory,
}

/// Why a layout cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// A column names an element the block does not have.
    #[error("column {column} of {} bit {bit} is outside a block of {elements} elements", .dim.name())]
    ColumnOutOfRange {
        /// Input of the column.
        dim: HwDim,
        /// Its bit.
        bit: usize,
        /// The column.
        column: u32,
        /// Number of elements of the block.
        elements: usize,
    },
    /// More than 64 input bits in all, or more than 20 of one input.
    #[error("a layout has at most 20 bits of each input and 64 in all")]
    TooManyBits,
    /// Text that is not a layout.
    #[error("expected {expected} at byte {at} of a layout")]
    Syntax {
        /// Byte offset in the text.
        at: usize,
        /// What would have been right there.
        expected: &'static str,
    },
    /// A parameter that must be a power of two is not.
    #[error("{what} {value} is not a power of two")]
    NotPowerOfTwo {
        /// The parameter.
        what: &'static str,
        /// Its value.
        value: u32,
    },
    /// A parameter with one entry per dimension has another number of them.
    #[error("{what} has {found} entries for a block of {rank} dimensions")]
    RankMismatch {
        /// The parameter.
        what: &'static str,
        /// Its number of entries.
        found: usize,
        /// Rank of the block.
        rank: usize,
    },
    /// An order that is not a permutation of the dimensions.
    #[error("the order of dimensions is not a permutation")]
    BadOrder,
    /// An element width the layout does not exist for.
    #[error("no such layout for elements of {0} bits")]
    BadElementBits(u32),
    /// Warpgroups do not fit the warps along the rows.
    #[error("a warpgroup is four warps along the rows, which {0} is not a multiple of")]
    NotWarpgroups(u32),
    /// The rows of the block are shorter than the span of its swizzle.
    #[error("rows of {row} bytes are shorter than a swizzle of {swizzle} bytes")]
    SwizzleTooWide {
        /// Bytes of a row.
        row: u64,
        /// Bytes of the swizzle.
        swizzle: u32,
    },
    /// The shape is not valid.
    #[error(transparent)]
    Shape(#[from] ShapeError),
}

/// A linear map from hardware locations to the flat index of a block: see the [module](self).
///
/// Values are immutable; operations return new layouts. Two layouts are equal if shape, kind and all
/// columns are. Operations that combine layouts state what they require; handing them something else
/// is a bug of the caller and panics.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct LinearLayout {
    pub(super) shape: Shape,
    pub(super) kind: LayoutKind,
    pub(super) columns: [Columns; 5],
}

/// A location, as one number per input. Inputs that a layout does not have are zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Location {
    /// Register of the thread.
    pub register: u32,
    /// Lane of the warp.
    pub lane: u32,
    /// Warp of the group.
    pub warp: u32,
    /// CTA of the cluster.
    pub cta: u32,
    /// Offset in shared memory, in elements.
    pub offset: u32,
}

impl Location {
    /// The part of the location that belongs to `dim`.
    pub fn get(&self, dim: HwDim) -> u32 {
        match dim {
            HwDim::Register => self.register,
            HwDim::Lane => self.lane,
            HwDim::Warp => self.warp,
            HwDim::Cta => self.cta,
            HwDim::Offset => self.offset,
        }
    }

    fn get_mut(&mut self, dim: HwDim) -> &mut u32 {
        match dim {
            HwDim::Register => &mut self.register,
            HwDim::Lane => &mut self.lane,
            HwDim::Warp => &mut self.warp,
            HwDim::Cta => &mut self.cta,
            HwDim::Offset => &mut self.offset,
        }
    }

    fn xor(mut self, other: &Location) -> Location {
        for dim in HwDim::ALL {
            *self.get_mut(dim) ^= other.get(dim);
        }
        self
    }
}

/// The inverse of a layout: one location for each element, linear in the element's index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inverse {
    columns: SmallVec<[Location; 16]>,
}

impl Inverse {
    /// Location of the element with flat index `flat`.
    pub fn locate(&self, flat: u32) -> Location {
        let set = |bit: usize| flat >> bit & 1 == 1;
        let columns = self.columns.iter().enumerate();
        columns
            .filter(|&(bit, _)| set(bit))
            .fold(Location::default(), |sum, (_, c)| sum.xor(c))
    }

    /// Locations of the elements `1, 2, 4, ..`.
    pub fn columns(&self) -> &[Location] {
        &self.columns
    }
}

/// Largest number of bits of one input: that of the largest block's index.
const MAX_BITS: usize = 20;

impl LinearLayout {
    pub(super) fn checked(
        shape: Shape,
        kind: LayoutKind,
        columns: [Columns; 5],
    ) -> Result<LinearLayout, LayoutError> {
        if columns.iter().any(|c| c.len() > MAX_BITS)
            || columns.iter().map(|c| c.len()).sum::<usize>() > 64
        {
            return Err(LayoutError::TooManyBits);
        }
        for dim in HwDim::ALL {
            for (bit, &column) in columns[dim as usize].iter().enumerate() {
                if column as usize >= shape.elements() {
                    return Err(LayoutError::ColumnOutOfRange {
                        dim,
                        bit,
                        column,
                        elements: shape.elements(),
                    });
                }
            }
        }
        Ok(LinearLayout {
            shape,
            kind,
            columns,
        })
    }

    /// A layout of registers, lanes and warps of one CTA from its columns.
    pub fn distributed(
        shape: Shape,
        registers: &[u32],
        lanes: &[u32],
        warps: &[u32],
    ) -> Result<LinearLayout, LayoutError> {
        LinearLayout::distributed_in_cluster(shape, registers, lanes, warps, &[])
    }

    /// A layout of registers, lanes, warps and CTAs from its columns.
    pub fn distributed_in_cluster(
        shape: Shape,
        registers: &[u32],
        lanes: &[u32],
        warps: &[u32],
        ctas: &[u32],
    ) -> Result<LinearLayout, LayoutError> {
        let columns = [registers, lanes, warps, ctas, &[]].map(Columns::from_slice);
        LinearLayout::checked(shape, LayoutKind::Distributed, columns)
    }

    /// A layout of shared memory from its columns.
    pub fn memory(shape: Shape, offsets: &[u32]) -> Result<LinearLayout, LayoutError> {
        let columns = [&[], &[], &[], &[], offsets].map(Columns::from_slice);
        LinearLayout::checked(shape, LayoutKind::Memory, columns)
    }

    /// A layout with the columns of this one, `shape` for its shape and each column replaced by its
    /// image under `map`. The images must be elements of `shape`.
    pub(super) fn map_columns(&self, shape: Shape, map: impl Fn(u32) -> u32) -> LinearLayout {
        let columns = self.columns.each_ref().map(|columns| {
            let images = columns.iter().map(|&c| map(c));
            images.collect::<Columns>()
        });
        debug_assert!(
            columns
                .iter()
                .flatten()
                .all(|&c| (c as usize) < shape.elements())
        );
        LinearLayout {
            shape,
            kind: self.kind,
            columns,
        }
    }

    /// A layout with the columns of one input replaced.
    pub(super) fn with_columns(mut self, dim: HwDim, columns: Columns) -> LinearLayout {
        self.columns[dim as usize] = columns;
        self
    }

    /// Shape of the block.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Whether the block is in registers or in shared memory.
    pub fn kind(&self) -> LayoutKind {
        self.kind
    }

    /// Whether the block is in registers.
    pub fn is_distributed(&self) -> bool {
        self.kind == LayoutKind::Distributed
    }

    /// The columns of one input: entry `i` is the flat index that bit `i` contributes.
    pub fn columns(&self, dim: HwDim) -> &[u32] {
        &self.columns[dim as usize]
    }

    /// Number of bits of one input.
    pub fn bits(&self, dim: HwDim) -> u32 {
        self.columns(dim).len() as u32
    }

    /// Number of values of one input.
    pub fn size(&self, dim: HwDim) -> u32 {
        1 << self.bits(dim)
    }

    /// Registers of one thread that hold the block.
    pub fn num_registers(&self) -> u32 {
        self.size(HwDim::Register)
    }

    /// Lanes of a warp.
    pub fn num_lanes(&self) -> u32 {
        self.size(HwDim::Lane)
    }

    /// Warps that hold the block.
    pub fn num_warps(&self) -> u32 {
        self.size(HwDim::Warp)
    }

    /// CTAs that hold the block.
    pub fn num_ctas(&self) -> u32 {
        self.size(HwDim::Cta)
    }

    /// All columns in the order of [`HwDim::ALL`].
    pub fn all_columns(&self) -> Vec<u32> {
        self.columns.iter().flatten().copied().collect()
    }

    /// Flat index contributed by the value `index` of one input, modulo the input's size: bits that the layout does not
    /// have contribute nothing.
    pub fn apply_dim(&self, dim: HwDim, index: u32) -> u32 {
        let mask = (1u64 << self.bits(dim)) - 1;
        gf2::apply(self.columns(dim), u64::from(index) & mask)
    }

    /// Flat index of the element in a register of a lane of a warp of a CTA.
    pub fn apply(&self, register: u32, lane: u32, warp: u32, cta: u32) -> u32 {
        self.apply_dim(HwDim::Register, register)
            ^ self.apply_dim(HwDim::Lane, lane)
            ^ self.apply_dim(HwDim::Warp, warp)
            ^ self.apply_dim(HwDim::Cta, cta)
    }

    /// Flat index of the element at an offset of shared memory.
    pub fn apply_offset(&self, offset: u32) -> u32 {
        self.apply_dim(HwDim::Offset, offset)
    }

    /// Flat index of the element at `location`.
    pub fn apply_location(&self, location: &Location) -> u32 {
        HwDim::ALL
            .into_iter()
            .fold(0, |sum, dim| sum ^ self.apply_dim(dim, location.get(dim)))
    }

    /// Whether every element is somewhere.
    pub fn is_surjective(&self) -> bool {
        gf2::rank(&self.all_columns()) == self.shape.log2_elements()
    }

    /// Whether no two locations hold the same element.
    pub fn is_injective(&self) -> bool {
        let all = self.all_columns();
        gf2::rank(&all) as usize == all.len()
    }

    /// The bits of input `dim` that make copies: those whose column is zero or the sum of columns
    /// before it, in the order of [`HwDim::ALL`] and from the low bit up.
    ///
    /// The locations whose free bits are all zero hold each element that the layout reaches exactly
    /// once. They are the ones that write when a block is stored.
    pub fn free_mask(&self, dim: HwDim) -> u32 {
        let before: usize = HwDim::ALL[..dim as usize]
            .iter()
            .map(|&d| self.columns(d).len())
            .sum();
        let mask = gf2::dependent(&self.all_columns()) >> before;
        mask as u32 & (self.size(dim) - 1)
    }

    /// One location for each element, linear, with free bits zero; `None` if the layout is not
    /// surjective. Law: `self.apply_location(&inverse.locate(x)) == x`.
    pub fn invert(&self) -> Option<Inverse> {
        let rows = self.shape.log2_elements();
        let inputs = gf2::right_inverse(&self.all_columns(), rows)?;
        let columns = inputs.into_iter().map(|mut input| {
            let mut location = Location::default();
            for dim in HwDim::ALL {
                *location.get_mut(dim) = input as u32 & (self.size(dim) - 1);
                input >>= self.bits(dim);
            }
            location
        });
        Some(Inverse {
            columns: columns.collect(),
        })
    }

    /// For each register of `self`, the register of `source` in the same thread that holds the same
    /// element, if there is one that serves all threads. There is none for layouts of different shapes,
    /// lanes, warps or CTAs, nor for registers whose numbers take more than 16 bits.
    ///
    /// This is what an operation on blocks needs whose operand layout follows from the result's:
    /// `result.project(axis).register_map(&operand)` says which operand register each result register
    /// reads.
    pub fn register_map(&self, source: &LinearLayout) -> Option<Vec<u16>> {
        if self.shape != source.shape || 16 < source.bits(HwDim::Register) {
            return None;
        }
        for dim in [HwDim::Lane, HwDim::Warp, HwDim::Cta] {
            if self.columns(dim) != source.columns(dim) {
                return None;
            }
        }
        let span = Span::of(source.columns(HwDim::Register));
        let columns: Option<Vec<u64>> = self
            .columns(HwDim::Register)
            .iter()
            .map(|&c| span.solve(c))
            .collect();
        let columns: Vec<u32> = columns?.into_iter().map(|x| x as u32).collect();
        let registers = 0..self.num_registers();
        Some(
            registers
                .map(|r| gf2::apply(&columns, u64::from(r)) as u16)
                .collect(),
        )
    }

    /// Whether the layouts differ in the numbering of registers alone: each is then a renaming of the
    /// other.
    pub fn same_up_to_registers(&self, other: &LinearLayout) -> bool {
        self.shape == other.shape
            && self.kind == other.kind
            && self.bits(HwDim::Register) == other.bits(HwDim::Register)
            && self.columns(HwDim::Offset) == other.columns(HwDim::Offset)
            && self.register_map(other).is_some()
            && other.register_map(self).is_some()
    }

    /// The register bits that walk along dimension `dim` one element at a time: entry `i` is the
    /// register bit that adds `2^i` to the coordinate. The walk ends at the first step that is no
    /// register bit, or that another input bit also touches, so each thread holds aligned runs of
    /// `2^len` neighbours.
    pub fn run_bits(&self, dim: usize) -> SmallVec<[u8; 8]> {
        let width = self.shape.log2().get(dim).copied().unwrap_or(0);
        let offset = self.shape.bit_offset(dim);
        let all = self.all_columns();
        let steps = (0..u32::from(width)).map_while(|bit| {
            let step = 1 << (offset + bit);
            let alone = all.iter().filter(|&&c| c & step != 0).count() == 1;
            let registers = self.columns(HwDim::Register);
            let found = registers.iter().position(|&c| c == step)?;
            alone.then_some(found as u8)
        });
        steps.collect()
    }

    /// The same with the registers in another order, in which runs of neighbours along `dim` come first; none if they do, or if there
    /// are none.
    pub fn with_runs_first(&self, dim: usize) -> Option<LinearLayout> {
        let bits = self.run_bits(dim);
        if bits
            .iter()
            .enumerate()
            .all(|(i, &bit)| i == usize::from(bit))
        {
            return None;
        }
        let registers = self.columns(HwDim::Register);
        let others = (0..registers.len()).filter(|&bit| !bits.contains(&(bit as u8)));
        let order = bits.iter().map(|&bit| usize::from(bit)).chain(others);
        let columns = order.map(|bit| registers[bit]).collect();
        Some(self.clone().with_columns(HwDim::Register, columns))
    }

    /// Length of the aligned runs of neighbours along `dim` that consecutive registers hold, at most
    /// `limit` elements: `registers r..r+n`, with `n` dividing `r`, hold `n` neighbours. The widest
    /// vector load or store along a contiguous dimension.
    pub fn vector_width(&self, dim: usize, limit: u32) -> u32 {
        let bits = self.run_bits(dim);
        let run = bits.iter().enumerate();
        let run = run.take_while(|&(i, &bit)| i == usize::from(bit)).count();
        (1 << run).min(1 << limit.max(1).ilog2())
    }
}

#[cfg(test)]
mod tests;
