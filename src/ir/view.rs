//! Blocks that stand in shared memory and are read there.

use smallvec::SmallVec;

use super::attrs::Attrs;
use super::entities::{Inst, Value};
use super::function::TileFunction;
use super::ops::TileOp;

/// What a block in shared memory is a view of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedView {
    /// The `shared_view` that names the ring and its entry.
    pub inst: Inst,
    /// Which dimension of the ring each one of the block is.
    pub dims: SmallVec<[usize; 4]>,
}

impl TileFunction {
    /// The view that a block comes from, through changes of shape; none if it stands in registers.
    pub fn view_of(&self, mut value: Value) -> Option<SharedView> {
        let mut dims: SmallVec<[usize; 4]> = (0..self.dfg.ty(value).shape.rank()).collect();
        loop {
            let inst = self.dfg.def_inst(value)?;
            let data = &self.dfg.insts[inst];
            match data.op {
                TileOp::SharedView => return Some(SharedView { inst, dims }),
                TileOp::Permute => {
                    let moved = data.dims()?;
                    for dim in &mut dims {
                        *dim = *moved.get(*dim)? as usize;
                    }
                    value = *data.args.first()?;
                }
                _ => return None,
            }
        }
    }
}
