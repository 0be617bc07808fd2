//! Expansion of inline PTX.

use crate::ir::attrs::{AttrKind, Attrs};
use crate::ir::dfg::InstData;
use crate::ir::entities::{Inst, Value};
use crate::ir::ops::ThreadOp;
use crate::ir::types::{ThreadType, TileType};

use super::regs::Expanded;
use super::{Expander, Result, bug};

impl Expander<'_> {
    /// Runs of `pack` registers; where a thread holds fewer, the last run computes some twice.
    pub(super) fn expand_inline_ptx(&mut self, inst: Inst) -> Result<()> {
        let tile = self.tile;
        let data = &tile.dfg.insts[inst];
        let types: Vec<TileType> = data.results.iter().map(|&v| tile.dfg.ty(v)).collect();
        let Some(&first) = types.first() else {
            return bug("inline PTX without results");
        };
        let count = self.registers(first)?;
        let results = self.inline_ptx(inst, count)?;
        for ((&result, &ty), value) in data.results.iter().zip(&types).zip(results) {
            self.values[result] = Some(if ty.is_scalar() {
                Expanded::Uniform(value)
            } else {
                Expanded::Pack(value)
            });
        }
        Ok(())
    }

    /// The results of the lines for so many registers.
    pub(super) fn inline_ptx(&mut self, inst: Inst, count: usize) -> Result<Vec<Value>> {
        let tile = self.tile;
        let data = &tile.dfg.insts[inst];
        let pack = usize::from(data.pack().copied().unwrap_or(1));
        let padded = count.next_multiple_of(pack);
        let map: Vec<u32> = (0..padded).map(|i| (i % count) as u32).collect();
        let args: Vec<Value> = (0..data.args.len())
            .map(|i| {
                let arg = self.arg(inst, i)?;
                let held = self.pack_of(&arg, count)?;
                self.rearrange(&[held], &map)
            })
            .collect::<Result<_>>()?;
        let given: Vec<ThreadType> = data
            .results
            .iter()
            .map(|&v| ThreadType::pack(tile.dfg.ty(v).elem, padded as u16))
            .collect();
        let mut new = InstData::new(ThreadOp::InlinePtx, &args);
        // Which elements these are is settled by layouts.
        let attrs = data
            .attrs
            .iter()
            .filter(|attr| attr.kind() != AttrKind::Axis);
        new.attrs.extend(attrs.cloned());
        let new = self.b.inst(new, &given);
        let results = self.b.func().dfg.insts[new].results.clone();
        let kept: Vec<u32> = (0..count as u32).collect();
        let results = results.iter().map(|&value| self.rearrange(&[value], &kept));
        results.collect()
    }
}
