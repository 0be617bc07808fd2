//! When asynchronous work happens: at its wait, by seed before it, or where nobody can do anything else.
//!
//! What copies and reductions move is compared with an H100 byte for byte (`tests/data/ptx/hardware/transfers.py`).

use super::super::async_work::{Moved, Sent, Transfer, Work};
use super::super::error::{EmuError, Fault, Space};
use super::super::inst::{BulkKind, Op};
use super::super::mem::SHARED_BASE;
use super::super::race::GENERIC;
use super::super::sched::{Cta, CtaState, Machine, Trouble};
use super::super::warp::{State, Warp};
use super::atomic::modify;

/// How often all who wait for a phase may give up with nothing happening between before that is a deadlock.
const STALLS: u32 = 32;

impl Machine<'_> {
    /// Lets transfers land that may, and those look again who wait for a phase.
    pub(in crate::emu) fn wake(&mut self, cta: &mut Cta) -> Result<(), EmuError> {
        if !cta.state.transfers.is_empty() {
            // Seeds divide into late ones, and early ones of two kinds.
            let odds = match self.options.seed % 3 {
                0 => 0,
                1 => 16,
                _ => 2,
            };
            let is_early = odds != 0 && self.random.below(odds) == 0;
            if is_early || cta.state.nudged && self.random.below(8) == 0 {
                self.land_one(cta)?;
            }
        }
        cta.state.nudged = false;
        if std::mem::take(&mut cta.state.woken) {
            for group in cta.warps.iter_mut().flat_map(|warp| &mut warp.groups) {
                if let State::Phase(_) = group.state {
                    group.state = State::Ready;
                }
            }
        }
        Ok(())
    }

    /// Nobody of a cluster can run: something lands, or those who wait for a phase give up for once. False: there is no use.
    pub(in crate::emu) fn unblock(&mut self, cluster: &mut [Cta]) -> Result<bool, EmuError> {
        let flying = cluster
            .iter_mut()
            .find(|cta| !cta.state.transfers.is_empty());
        if let Some(cta) = flying {
            self.land_one(cta)?;
            return Ok(true);
        }
        let (stalls, before) = cluster[0].state.stalls;
        let stalls = if before == self.effects {
            stalls + 1
        } else {
            1
        };
        cluster[0].state.stalls = (stalls, self.effects);
        let mut any = cluster.iter().any(|cta| cta.state.woken);
        if any || stalls > STALLS {
            return Ok(any);
        }
        for warp in cluster.iter_mut().flat_map(|cta| &mut cta.warps) {
            for index in 0..warp.groups.len() {
                let group = warp.groups[index];
                let State::Phase(_) = group.state else {
                    continue;
                };
                any = true;
                warp.groups[index].state = State::Ready;
                warp.groups[index].pc += 1;
                if let Op::Phase {
                    pred: Some(pred), ..
                } = self.entry.code[group.pc as usize].op
                {
                    warp.set_predicate(pred, group.mask, 0, u32::MAX);
                }
            }
        }
        Ok(any)
    }

    fn land_one(&mut self, cta: &mut Cta) -> Result<(), EmuError> {
        let index = self.random.below(cta.state.transfers.len());
        let transfer = cta.state.transfers.swap_remove(index);
        let (warp, line, lane) = (transfer.warp, transfer.line, transfer.lane);
        self.effects += 1;
        let owner = &mut cta.warps[warp as usize];
        self.land(&mut cta.state, owner, transfer)
            .map_err(|(_, fault)| self.fault(&cta.state, warp, line, (lane, fault)))
    }

    fn land(
        &mut self,
        cta: &mut CtaState,
        warp: &mut Warp,
        transfer: Transfer,
    ) -> Result<(), Trouble> {
        let (agent, lane) = (transfer.agent, transfer.lane);
        match transfer.work {
            Work::Move(moved) => {
                self.land_load(cta, lane, &moved)?;
                let Some(offset) = moved.barrier else {
                    return Ok(());
                };
                if let Some(barrier) = cta.mbarriers.get_mut(&offset) {
                    let engine = match moved.is_generic {
                        true => barrier.engine | GENERIC,
                        false => barrier.engine,
                    };
                    let as_who = (engine << 5 | lane, self.now);
                    self.settle(cta, moved.shared, (agent, lane), as_who);
                    for &touch in &moved.global {
                        self.settle(cta, touch, (agent, lane), as_who);
                    }
                    if let Some((rank, touch)) = moved.sent {
                        cta.received.push(Sent {
                            rank,
                            touch,
                            agent,
                            lane,
                            as_who,
                        });
                    }
                    self.now += 1;
                }
                if moved.sent.is_none() {
                    self.agents.end(agent);
                }
                let Some(barrier) = cta.mbarriers.get_mut(&offset) else {
                    let reason = "it is gone where a copy signals it".to_owned();
                    let address = SHARED_BASE + offset as u64;
                    return Err((lane, Fault::MBarrier { address, reason }));
                };
                barrier.expect(-moved.tx).map_err(|reason| {
                    let address = SHARED_BASE + offset as u64;
                    (lane, Fault::MBarrier { address, reason })
                })?;
                self.complete_phase(cta, lane, offset, true)
            }
            Work::Arrival {
                copies,
                barrier: offset,
                left,
            } => {
                self.land_copies(cta, warp, Some(agent), |copy| {
                    copy.lane == lane && copy.number < copies
                })?;
                self.now += 1;
                let Some(barrier) = cta.mbarriers.get_mut(&offset) else {
                    let reason = "it is gone where copies arrive at it".to_owned();
                    let address = SHARED_BASE + offset as u64;
                    return Err((lane, Fault::MBarrier { address, reason }));
                };
                barrier.arriving.join(&left);
                barrier.arrive(1, false).map_err(|reason| {
                    let address = SHARED_BASE + offset as u64;
                    (lane, Fault::MBarrier { address, reason })
                })?;
                self.complete_phase(cta, lane, offset, true)
            }
        }
    }

    fn land_load(&mut self, cta: &mut CtaState, lane: u32, moved: &Moved) -> Result<(), Trouble> {
        let (start, bytes) = (moved.shared.offset, moved.shared.bytes);
        if let (Some(sent), BulkKind::Reduce(op, Some(ty))) = (&moved.read, moved.kind) {
            let size = ty.bytes() as usize;
            for (index, element) in sent.chunks_exact(size).enumerate() {
                let mut word = [0; 8];
                word[..size].copy_from_slice(element);
                let at = start + index * size;
                let old = cta.shared.load(at, size);
                let new = modify(op, ty, false, old, u64::from_le_bytes(word), 0);
                cta.shared.store(at, size, new);
            }
            return Ok(());
        }
        if let Some(sent) = &moved.read {
            cta.shared.data[start..start + bytes].copy_from_slice(sent);
            cta.shared.mark(start, bytes, true);
            return Ok(());
        }
        let (pattern, size) = (moved.fill.0.to_le_bytes(), moved.fill.1 as usize);
        for element in cta.shared.data[start..start + bytes].chunks_exact_mut(size) {
            element.copy_from_slice(&pattern[..size]);
        }
        for piece in &moved.moves {
            let region = self.memory.region(piece.region);
            if self.options.check_uninit && !region.is_written(piece.global, piece.bytes) {
                let fault = Fault::Uninitialised {
                    space: Space::Global,
                    address: region.base + piece.global as u64,
                    bytes: piece.bytes as u32,
                };
                return Err((lane, fault));
            }
            cta.shared.data[piece.shared..piece.shared + piece.bytes]
                .copy_from_slice(&region.data[piece.global..piece.global + piece.bytes]);
        }
        cta.shared.mark(start, bytes, true);
        Ok(())
    }

    /// What CTAs of a cluster got from each other is over where it came from.
    pub(in crate::emu) fn settle_sent(&mut self, cluster: &mut [Cta]) {
        for index in 0..cluster.len() {
            for sent in std::mem::take(&mut cluster[index].state.received) {
                let state = &mut cluster[sent.rank as usize].state;
                self.settle(state, sent.touch, (sent.agent, sent.lane), sent.as_who);
                self.agents.end(sent.agent);
            }
        }
    }

    /// Waits for bulk stores of the active lanes until at most so many of their groups are under way.
    pub(super) fn finish_bulk(
        &mut self,
        cta: &mut CtaState,
        warp: &mut Warp,
        active: u32,
        pending: u32,
        only_reads: bool,
    ) -> Result<(), Trouble> {
        if warp.bulk.is_empty() {
            return Ok(());
        }
        let warp_number = warp.clock.warp;
        let engine = match warp.bulk_engine {
            Some(engine) => engine,
            None => self.agents.start(warp_number, 1),
        };
        warp.bulk_engine = Some(engine);
        let mut seen = 0;
        for mut transfer in std::mem::take(&mut warp.bulk) {
            let (agent, lane) = (transfer.agent, transfer.lane);
            let is_due = active >> lane & 1 == 1
                && transfer.group.saturating_add(pending) < warp.bulk_commits[lane as usize];
            let Work::Move(moved) = &mut transfer.work else {
                continue;
            };
            if !is_due {
                warp.bulk.push(transfer);
                continue;
            }
            seen |= 1 << lane;
            let as_who = (engine << 5 | lane, self.now);
            if moved.read.is_none() {
                moved.read = Some(self.read_source(cta, lane, moved)?);
                self.settle(cta, moved.shared, (agent, lane), as_who);
            }
            if only_reads {
                warp.bulk.push(transfer);
                continue;
            }
            self.land_store(moved);
            for &touch in &moved.global {
                self.settle(cta, touch, (agent, lane), as_who);
            }
            self.agents.end(agent);
        }
        if seen != 0 {
            let all = warp.exists & !warp.exited;
            warp.clock.learn(seen, all, engine, self.now);
            self.now += 1;
        }
        Ok(())
    }

    /// The bytes that a store reads, move after move.
    fn read_source(&self, cta: &CtaState, lane: u32, moved: &Moved) -> Result<Vec<u8>, Trouble> {
        let mut read = Vec::with_capacity(moved.shared.bytes);
        for piece in &moved.moves {
            if self.options.check_uninit && !cta.shared.is_written(piece.shared, piece.bytes) {
                let fault = Fault::Uninitialised {
                    space: Space::Shared,
                    address: SHARED_BASE + piece.shared as u64,
                    bytes: piece.bytes as u32,
                };
                return Err((lane, fault));
            }
            read.extend_from_slice(&cta.shared.data[piece.shared..piece.shared + piece.bytes]);
        }
        Ok(read)
    }

    fn land_store(&mut self, moved: &Moved) {
        let Some(read) = &moved.read else {
            return;
        };
        let mut rest = &read[..];
        for piece in &moved.moves {
            let (bytes, more) = rest.split_at(piece.bytes);
            rest = more;
            let region = self.memory.region(piece.region);
            match moved.kind {
                BulkKind::Reduce(op, Some(ty)) => {
                    let size = ty.bytes() as usize;
                    for (i, element) in bytes.chunks_exact(size).enumerate() {
                        let mut word = [0; 8];
                        word[..size].copy_from_slice(element);
                        let at = piece.global + i * size;
                        let old = region.load(at, size);
                        // Sums of f32 keep subnormals, unlike those of atomic operations.
                        let new = modify(op, ty, false, old, u64::from_le_bytes(word), 0);
                        region.store(at, size, new);
                    }
                }
                _ => {
                    region.data[piece.global..piece.global + piece.bytes].copy_from_slice(bytes);
                    region.mark(piece.global, piece.bytes, true);
                }
            }
        }
    }

    /// A CTA ends: nothing may need its shared memory any more; stores that only wait for device memory arrive.
    pub(in crate::emu) fn end_transfers(&mut self, cta: &Cta) -> Result<(), EmuError> {
        let state = &cta.state;
        if let Some(transfer) = state.transfers.first() {
            let message = "of a CTA while this is under way, and nothing waited for it".to_owned();
            let trouble = (transfer.lane, Fault::UnderWay(message));
            return Err(self.fault(state, transfer.warp, transfer.line, trouble));
        }
        for (&offset, barrier) in &state.mbarriers {
            if barrier.tx != 0 {
                let address = SHARED_BASE + offset as u64;
                let reason = format!(
                    "at the end of its CTA {}, which were expected and never arrived",
                    barrier.lacks()
                );
                let trouble = (barrier.init.who & 31, Fault::MBarrier { address, reason });
                let warp = barrier.init.who >> 5;
                let line = barrier.init.line();
                return Err(self.fault(state, warp % self.warps(), line, trouble));
            }
        }
        for warp in &cta.warps {
            if let Some(flight) = &warp.flight
                && let Some(issued) = flight.queue.front()
            {
                let lacks = match issued.group < flight.commits {
                    true => "no `wgmma.wait_group` covers it",
                    false => "no `wgmma.commit_group` is behind it",
                };
                let message = format!("of a warp while this product is under way: {lacks}");
                let line = self.entry.code[issued.pc as usize].line;
                return Err(self.fault(state, warp.index, line, (0, Fault::UnderWay(message))));
            }
            for transfer in &warp.bulk {
                let Work::Move(moved) = &transfer.work else {
                    continue;
                };
                if moved.read.is_none() {
                    let message =
                        "of a CTA before a wait says that this has read its shared memory"
                            .to_owned();
                    let trouble = (transfer.lane, Fault::UnderWay(message));
                    return Err(self.fault(state, transfer.warp, transfer.line, trouble));
                }
                self.land_store(moved);
            }
        }
        Ok(())
    }

    /// Says what somebody waits for at a barrier in shared memory.
    pub(in crate::emu) fn waits_for(&self, cta: &CtaState, offset: u32) -> String {
        let address = SHARED_BASE + u64::from(offset);
        match cta.mbarriers.get(&(offset as usize)) {
            Some(barrier) => format!(
                "at the mbarrier at {address:#x}, initialised in {}, of which {}",
                self.entry.line(barrier.init.line()),
                barrier.lacks()
            ),
            None => format!("at the mbarrier at {address:#x}, which is gone"),
        }
    }
}
