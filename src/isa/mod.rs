//! Instruction selection: from the thread IR to PTX instructions over virtual registers.
//!
//! What is known of the machine stands in the folder `isa/` beside `src/`, as a table of instructions and as
//! rules; here is what gives them meaning.

pub(crate) mod code;
pub(crate) mod inst;
pub(crate) mod lower;
pub(crate) mod order;
pub(crate) mod reg;
