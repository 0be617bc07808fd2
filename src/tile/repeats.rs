//! From a value to the one whose elements it repeats by splats, broadcasts and new dimensions, and the way back.

use smallvec::SmallVec;

use super::edit::Editor;
use crate::ir::attrs::Attrs;
use crate::ir::dfg::InstData;
use crate::ir::entities::Value;
use crate::ir::level::Tile;
use crate::ir::ops::TileOp;
use crate::ir::types::{TileType, ValueType};

/// The way from few elements to many: instructions to be repeated on something else, outermost first.
pub(super) struct Repeats(SmallVec<[(InstData<Tile>, TileType); 2]>);

impl Editor<'_> {
    /// What a value comes from through these ops, all of which keep to their first operand, and the way back.
    pub(super) fn source(&self, mut value: Value, through: &[TileOp]) -> (Value, Repeats) {
        let mut way = Repeats(SmallVec::new());
        while let Some(data) = self.def(value).filter(|data| through.contains(&data.op)) {
            way.0.push((data.clone(), self.ty(value)));
            value = data.args[0];
        }
        (value, way)
    }

    /// A value repeated as another one was; it may have elements of another type.
    pub(super) fn repeat(&mut self, mut value: Value, way: &Repeats) -> Value {
        for (data, like) in way.0.iter().rev() {
            let ty = like.with_elem(self.ty(value).elem);
            value = self.build(data.op, &[value], data.attrs(), ty);
        }
        value
    }
}
