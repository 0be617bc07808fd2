//! Decides what becomes of assertions: they go, they report, or they end the program.

use super::edit::{self, Fate};
use crate::ir::attrs::{AttrKind, Flag, make};
use crate::ir::function::TileFunction;
use crate::ir::ops::TileOp;
use crate::settings::Asserts;

/// Removes assertions, or makes them all report or trap; gives the number of changes.
pub fn settle_asserts(func: &mut TileFunction, asserts: Asserts) -> usize {
    edit::rewrite(func, |edit, inst| {
        let data = &mut edit.func.dfg.insts[inst];
        if data.op != TileOp::DeviceAssert {
            return Fate::Keep;
        }
        let before = data.attrs.len();
        data.attrs.retain(|attr| attr.kind() != AttrKind::Trap);
        match asserts {
            Asserts::Off => return Fate::Remove,
            Asserts::Report => {}
            Asserts::Trap => data.attrs.push(make::trap(Flag)),
        }
        if edit.func.dfg.insts[inst].attrs.len() != before {
            edit.changed();
        }
        Fate::Keep
    })
}
