//! Expansion of layout conversions.
use super::regs::Expanded;
use super::{Expander, Result, bug};
use crate::ir::entities::Inst;
impl Expander<'_> {
    pub(super) fn expand_convert(&mut self, inst: Inst) -> Result<Expanded> {
        let _ = inst;
        bug("conversion")
    }
}
