//! Machine code: PTX instructions over virtual registers, selected from the thread IR and brought into order.
//!
//! What is known of the machine stands in the folder `isa/` beside `src/`, as a table of instructions and as
//! rules; here is what gives them meaning.
//!
//! ```text
//! thread IR --select--> MachineFunction --schedule, program: regalloc--> MachineFunction, Allocation --ptx--> text
//! ```

pub(crate) mod accesses;
pub(crate) mod allocator_view;
pub(crate) mod function;
pub(crate) mod inst;
pub mod listing;
pub(crate) mod print;
pub(crate) mod remake_predicates;
pub(crate) mod schedule;
pub(crate) mod select;
#[cfg(test)]
mod tests;
