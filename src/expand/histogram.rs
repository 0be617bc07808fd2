//! Expansion of histograms: counters in shared memory start at zero, each thread adds one for every element that it
//! holds, and the counters are read in the result's layout. Of threads and registers that hold copies one counts.
//!
//! Barriers before and after the counting are placed like all others, by hazard analysis.

use rustc_hash::FxHashMap;

use crate::ir::attrs::{IntPred, MemOrder, RmwOp, Scope, make};
use crate::ir::dfg::InstData;
use crate::ir::entities::{Inst, Slot, Value};
use crate::ir::function::SlotData;
use crate::ir::ops::ThreadOp;
use crate::ir::types::{Elem, ThreadType};
use crate::linear_layout::layout::LinearLayout;

use super::memory::slot_attrs;
use super::regs::Expanded;
use super::{Expander, Result};

/// Bytes of a counter.
const SIZE: u32 = 4;
/// Counters in the widest access.
const WIDEST: u32 = 16 / SIZE;

impl Expander<'_> {
    pub(super) fn expand_histogram(&mut self, inst: Inst) -> Result<Expanded> {
        let (from, to) = (self.arg_type(inst, 0)?, self.result_type(inst)?);
        let bins = to.shape.elements() as u32;
        let slot = self.b.func_mut().slots.push(SlotData {
            bytes: (bins * SIZE).max(16),
            align: 16,
            offset: None,
            by_group: false,
        });
        let start = self.slot_address(slot, Elem::I32)?;
        self.clear_counters(slot, start, bins)?;

        let count = self.registers(from)?;
        let source = self.arg(inst, 0)?;
        let source = self.pack_of(&source, count)?;
        let (register_copies, thread_copies) = self.copies(from)?;
        let leader = self.leader(thread_copies)?;
        let one = self.int(Elem::I32, 1);
        for register in (0..count).filter(|r| r & register_copies == 0) {
            let x = self.rearrange(&[source], &[register as u32])?;
            let fits = self.below(x, bins)?;
            let counts = self.both(fits, leader)?;
            let index = self.as_word(x)?;
            let place = self.moved_pointer(start, index)?;
            let mut data = InstData::new(ThreadOp::Atom, &[place, one]);
            data.args.extend(counts);
            let manner = [
                make::rmw(RmwOp::Add),
                make::sem(MemOrder::Relaxed),
                make::scope(Scope::Cta),
            ];
            data.attrs.extend(manner);
            data.attrs.push(make::slot(slot));
            self.effect(data)?;
        }
        self.read_counters(slot, start, self.layout(to)?)
    }

    /// Whether an unsigned number is below `bins`; none if each of its type is.
    fn below(&mut self, x: Value, bins: u32) -> Result<Option<Value>> {
        let elem = self.ty(x).elem;
        if elem.bits() < 32 && bins >> elem.bits() != 0 {
            return Ok(None);
        }
        let bound = self.int(elem, i64::from(bins));
        let mut data = InstData::new(ThreadOp::Icmp, &[x, bound]);
        data.attrs.push(make::ipred(IntPred::Ult));
        self.op(data, &[]).map(Some)
    }

    /// The threads of the program side by side, as wide as there is work for all.
    fn clear_counters(&mut self, slot: Slot, start: Value, bins: u32) -> Result<()> {
        let threads = self.tile.num_threads();
        let width = (bins / threads).clamp(1, WIDEST);
        let bits = threads.trailing_zeros();
        let columns: Vec<u32> = (0..bits).map(|bit| width << bit).collect();
        let own = self.thread_part(&columns)?;
        let place = self.moved_pointer(start, own)?;
        let zeros = self.constant(ThreadType::pack(Elem::I32, width as u16), 0);
        // With fewer counters than threads, the first ones.
        let is_idle = bins < threads;
        let writes = if is_idle {
            let bound = self.int(Elem::I32, i64::from(bins));
            let mut data = InstData::new(ThreadOp::Icmp, &[own, bound]);
            data.attrs.push(make::ipred(IntPred::Ult));
            Some(self.op(data, &[])?)
        } else {
            None
        };
        for row in 0..(bins / (width * threads)).max(1) {
            let mut data = InstData::new(ThreadOp::St, &[place, zeros]);
            data.args.extend(writes);
            data.attrs
                .extend(slot_attrs(slot, row * width * threads * SIZE));
            self.effect(data)?;
        }
        Ok(())
    }

    fn read_counters(
        &mut self,
        slot: Slot,
        start: Value,
        layout: &LinearLayout,
    ) -> Result<Expanded> {
        let width = layout.vector_width(0, WIDEST);
        let columns = Self::thread_columns(layout);
        let mut addresses = FxHashMap::default();
        let mut loaded = Vec::new();
        for register in (0..layout.num_registers()).step_by(width as usize) {
            let own = layout.apply(register, 0, 0, 0);
            let (address, offset) = self.element_address(start, &columns, own, &mut addresses)?;
            let mut data = InstData::new(ThreadOp::Ld, &[address]);
            data.attrs.extend(slot_attrs(slot, offset * SIZE));
            loaded.push(self.op(data, &[ThreadType::pack(Elem::I32, width as u16)])?);
        }
        let map: Vec<u32> = (0..layout.num_registers()).collect();
        Ok(Expanded::Pack(self.rearrange(&loaded, &map)?))
    }
}
