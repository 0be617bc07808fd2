//! PTX text of machine code.

pub(crate) mod module;
mod params;
mod register_bound;

pub(crate) use params::check_params;

/// What was emitted, in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Stats {
    /// Integer arithmetic and bits.
    pub int: u32,
    /// Floating-point arithmetic.
    pub float: u32,
    /// Comparisons and selections.
    pub compare: u32,
    /// Conversions.
    pub convert: u32,
    /// Accesses to memory and parameters.
    pub memory: u32,
    /// Exchange between lanes and barriers.
    pub sync: u32,
    /// Copies, joining and splitting of registers.
    pub moves: u32,
    /// Branches.
    pub branches: u32,
    /// Registers of a thread that the assembler is expected to use: those that warps begin with.
    pub predicted_registers: u32,
    /// Registers of a thread with fewer than which the assembler is expected to spill, less those that the program takes from a producer.
    pub needed_registers: u32,
    /// Most registers that are live at one place: predicates, 16, 32 and 64 bits.
    pub peak: [u32; 4],
}
