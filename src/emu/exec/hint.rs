//! What only advises: prefetches change nothing, but their operands must be defined, and sizes, places and maps such as hardware
//! takes; `discard` gives up what 128 bytes held.

use super::super::error::{Fault, Space};
use super::super::inst::{Hint, HintKind, Inst, Src};
use super::super::race::{CheckedAccess, lanes};
use super::super::sched::{CtaState, Machine, Trouble};
use super::super::warp::Warp;
use super::bulk::{UNIT, checked};
use super::tensor::check_place;

/// Bytes of a line of the cache.
const LINE: u32 = 128;

impl Machine<'_> {
    pub(super) fn hint(
        &mut self,
        cta: &mut CtaState,
        warp: &mut Warp,
        active: u32,
        inst: &Inst,
        hint: &Hint,
    ) -> Result<(), Trouble> {
        self.addresses(cta, warp, active, hint.address)?;
        let addresses = self.operands[3];
        let read = |machine: &mut Self, source: Src| -> Result<[u64; 32], Trouble> {
            let defined = machine.fetch(cta, warp, source, active, 0)?;
            machine.require(source, active, defined)?;
            Ok(machine.operands[0])
        };
        let mut numbers = Vec::new();
        match &hint.kind {
            HintKind::Bytes(size) => numbers.push(read(self, *size)?),
            HintKind::Box(start) => {
                for &coordinate in start {
                    numbers.push(read(self, coordinate)?);
                }
            }
            _ => {}
        }
        for lane in lanes(active) {
            let address = addresses[lane as usize];
            let misaligned = |align: u32| match address.is_multiple_of(u64::from(align)) {
                true => Ok(()),
                false => {
                    let space = Space::Global;
                    let fault = Fault::Misaligned {
                        space,
                        address,
                        align,
                    };
                    Err((lane, fault))
                }
            };
            match &hint.kind {
                HintKind::Any => {}
                HintKind::Line => misaligned(LINE)?,
                HintKind::Discard => self.discard(cta, warp, lane, inst.line, address)?,
                HintKind::Bytes(_) => {
                    checked(lane, numbers[0][lane as usize] as u32)?;
                    misaligned(UNIT)?;
                }
                HintKind::Map | HintKind::Box(_) => {
                    let agent = self.agents.start(warp.clock.warp, 1);
                    let place = (hint.address.space, address);
                    let map = self.read_map(cta, warp, lane, inst.line, place, agent);
                    self.agents.end(agent);
                    let map = map?;
                    if let HintKind::Box(_) = hint.kind {
                        let start: Vec<i32> = numbers
                            .iter()
                            .map(|all| all[lane as usize] as i32)
                            .collect();
                        check_place(&map, &start)
                            .map_err(|reason| (lane, Fault::BulkCopy(reason)))?;
                    }
                }
            }
        }
        Ok(())
    }

    /// What stood there is gone; nothing is written in its place.
    fn discard(
        &mut self,
        cta: &mut CtaState,
        warp: &mut Warp,
        lane: u32,
        line: u32,
        address: u64,
    ) -> Result<(), Trouble> {
        let place = self.locate_part(cta, warp, lane, Space::Generic, address, (LINE, LINE))?;
        if place.space != Space::Global {
            return Err((lane, Fault::ReadOnly { space: place.space }));
        }
        self.effects += 1;
        self.region(cta, warp, lane, place)
            .mark(place.offset, LINE as usize, false);
        if self.options.check_races {
            let access = CheckedAccess {
                lane,
                line,
                read: false,
                write: true,
                strong: false,
                same_value: false,
            };
            self.check_race(cta, warp, place, LINE, access)?;
        }
        Ok(())
    }
}
