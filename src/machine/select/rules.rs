//! The selection rules as ISLE's compiler wrote them, and the record of which fired.

#![expect(
    clippy::all,
    unreachable_pub,
    unused_variables,
    unused_imports,
    dead_code,
    reason = "the file is generated"
)]

use super::super::inst::{Cmp, Kind, Operand, Ptx, PtxType};
use crate::ir::entities::Value;
use crate::ir::ops::ThreadOp;
use log_of_rules as log;

extern crate alloc;

/// What the generated code calls for each rule that fires.
mod log_of_rules {
    macro_rules! debug {
        ($format:literal, $term:expr, $rule:expr) => {
            #[cfg(test)]
            super::coverage::record($rule);
        };
    }
    pub(super) use debug;
}

include!(concat!(env!("OUT_DIR"), "/lower.rs"));
