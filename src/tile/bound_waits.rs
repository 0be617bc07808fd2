//! Waits that give up, for kernels that keep their assertions: a kernel that would hang tells where, and ends.
//!
//! ```text
//! mbar_wait i, phase   =>   ok = mbar_wait_for i, phase {tries}; device_assert ok
//! ```
//!
//! Nothing traps on the way: ptxas serialises products in loops with a way out of the kernel.

use super::edit::{Fate, rewrite};
use crate::ir::attrs::make;
use crate::ir::dfg::InstData;
use crate::ir::function::TileFunction;
use crate::ir::ops::TileOp;
use crate::ir::types::{Elem, TileType};

/// Tries after which a wait gives up. The machine lets each take some time, of which the manual says only that it is limited.
const TRIES: u32 = 1 << 20;

/// What the reader of a report sees.
const TEXT: &str = "a wait for copies gave up; please report this as a bug of Tilelift";

/// Lets waits give up; gives how many.
pub fn bound_waits(func: &mut TileFunction) -> usize {
    rewrite(func, |edit, inst| {
        let data = edit.func.dfg.insts[inst].clone();
        if data.op != TileOp::MbarWait {
            return Fate::Keep;
        }
        let mut attrs = data.attrs.to_vec();
        attrs.push(make::tries(TRIES));
        let i1 = TileType::scalar(Elem::I1);
        let is_over = edit.build(TileOp::MbarWaitFor, &data.args, &attrs, i1);
        let mut check = InstData::new(TileOp::DeviceAssert, &[is_over]);
        check.attrs.push(make::text(TEXT.into()));
        edit.append(check);
        Fate::Remove
    })
}
