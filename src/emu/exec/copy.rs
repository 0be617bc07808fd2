//! Copies of a thread to shared memory that arrive later: `cp.async`.
//!
//! A copy arrives as late as it may: at the wait that asks for it. Until then the bytes it will write count as unwritten, and
//! both sides are accesses under way (see `async_work`). It reads memory when it arrives, of the bytes it writes as many as its
//! last operand says; zeros become the others. The address is a multiple of all of them. It is of the generic proxy: from the
//! wait on its accesses are those of the thread.

use super::super::async_work::{Issuer, Touch, Touching};
use super::super::error::{Fault, Space};
use super::super::inst::{Inst, Op};
use super::super::race::{Agent, lanes};
use super::super::sched::{CtaState, Machine, Trouble};
use super::super::warp::{Copy, Warp};

impl Machine<'_> {
    pub(super) fn start_copies(
        &mut self,
        cta: &mut CtaState,
        warp: &mut Warp,
        active: u32,
        inst: &Inst,
    ) -> Result<(), Trouble> {
        let Op::Copy {
            to,
            from,
            bytes,
            size,
        } = &inst.op
        else {
            unreachable!("called for copies only")
        };
        let sizes = match size {
            None => [u64::from(*bytes); 32],
            Some(size) => {
                let defined = self.fetch(cta, warp, *size, active, 0)?;
                self.require(*size, active, defined)?;
                self.operands[0]
            }
        };
        self.addresses(cta, warp, active, *from)?;
        let sources = self.operands[3];
        let reading = lanes(active)
            .filter(|&lane| sizes[lane as usize] > 0)
            .fold(0, |mask, lane| mask | 1 << lane);
        if reading != 0 {
            self.count_access(reading, Space::Global, *bytes);
        }
        self.addresses(cta, warp, active, *to)?;
        self.count_access(active, Space::Shared, *bytes);
        let agent = self.agents.start(warp.clock.warp, active.count_ones());
        self.effects += 1;
        for lane in lanes(active) {
            let at = self.operands[3][lane as usize];
            let place = self.locate(cta, warp, lane, Space::Shared, at, *bytes)?;
            let to = Touch {
                is_shared: true,
                region: 0,
                offset: place.offset,
                bytes: *bytes as usize,
                access: Touching::Write,
            };
            let read = sizes[lane as usize] as u32;
            if read > *bytes {
                let (read, bytes) = (read, *bytes);
                return Err((lane, Fault::CopySize { read, bytes }));
            }
            let from = match read {
                0 => None,
                _ => {
                    let part = (*bytes, read);
                    let address = sources[lane as usize];
                    let place = self.locate_part(cta, warp, lane, Space::Global, address, part)?;
                    Some(Touch {
                        is_shared: false,
                        region: place.region,
                        offset: place.offset,
                        bytes: read as usize,
                        access: Touching::Read,
                    })
                }
            };
            let issuer = Issuer {
                clock: &warp.clock,
                lane,
                line: inst.line,
                agent,
                view: None,
                sees_copies: false,
            };
            self.begin(cta, issuer, to)?;
            if let Some(from) = from {
                self.begin(cta, issuer, from)?;
            }
            let group = warp.commits[lane as usize];
            warp.copies.push(Copy {
                lane,
                group,
                number: warp.copies_started,
                agent,
                from,
                to,
            });
        }
        warp.copies_started += 1;
        Ok(())
    }

    /// Lets copies of the active lanes arrive until at most so many of their groups are under way; none: all copies.
    pub(super) fn finish_copies(
        &mut self,
        cta: &mut CtaState,
        warp: &mut Warp,
        active: u32,
        pending: Option<u32>,
    ) -> Result<(), Trouble> {
        let commits = warp.commits;
        let is_due = |copy: &Copy| {
            active >> copy.lane & 1 == 1
                && pending.is_none_or(|pending| {
                    copy.group.saturating_add(pending) < commits[copy.lane as usize]
                })
        };
        self.land_copies(cta, warp, None, is_due)
    }

    /// Lets copies arrive; their accesses become those of an engine, or of the thread.
    pub(super) fn land_copies(
        &mut self,
        cta: &mut CtaState,
        warp: &mut Warp,
        engine: Option<Agent>,
        is_due: impl Fn(&Copy) -> bool,
    ) -> Result<(), Trouble> {
        let as_warp = engine.unwrap_or(warp.clock.warp);
        let mut copies = std::mem::take(&mut warp.copies);
        let mut result = Ok(());
        copies.retain(|copy| {
            if result.is_err() || !is_due(copy) {
                return true;
            }
            result = self.arrive(cta, as_warp, copy);
            false
        });
        warp.copies = copies;
        result
    }

    fn arrive(&mut self, cta: &mut CtaState, as_warp: u32, copy: &Copy) -> Result<(), Trouble> {
        let mut words = [0_u8; 16];
        let part = (copy.agent, copy.lane);
        let as_who = (as_warp << 5 | copy.lane, self.now);
        if let Some(from) = copy.from {
            let check_uninit = self.options.check_uninit;
            let region = self.memory.region(from.region);
            if check_uninit && !region.is_written(from.offset, from.bytes) {
                let fault = Fault::Uninitialised {
                    space: Space::Global,
                    address: region.base + from.offset as u64,
                    bytes: from.bytes as u32,
                };
                return Err((copy.lane, fault));
            }
            words[..from.bytes]
                .copy_from_slice(&region.data[from.offset..from.offset + from.bytes]);
            self.settle(cta, from, part, as_who);
        }
        let Touch { offset, bytes, .. } = copy.to;
        cta.shared.data[offset..offset + bytes].copy_from_slice(&words[..bytes]);
        cta.shared.mark(offset, bytes, true);
        self.settle(cta, copy.to, part, as_who);
        self.agents.end(copy.agent);
        Ok(())
    }
}
