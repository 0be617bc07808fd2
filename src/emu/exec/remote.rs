//! `st.async` and `red.async`: words of registers go to shared memory of a cluster, and are there once a barrier beside them says so.
//!
//! They are of the generic proxy, unlike bulk copies: no fence between proxies stands before or behind them.

use std::mem::take;

use super::super::async_work::{Issuer, Moved, Touching, Transfer, Work};
use super::super::error::{Fault, Space};
use super::super::inst::{BulkKind, Inst, Remote};
use super::super::mem::RANK_BIT;
use super::super::race::lanes;
use super::super::sched::{CtaState, Machine, Trouble};
use super::super::warp::Warp;

/// What one lane sends: the bytes, and where they and the signal go, without a rank.
struct Word {
    lane: u32,
    address: u64,
    barrier: u64,
    bytes: Vec<u8>,
}

impl Machine<'_> {
    pub(super) fn start_remote(
        &mut self,
        cta: &mut CtaState,
        warp: &mut Warp,
        active: u32,
        inst: &Inst,
        remote: &Remote,
    ) -> Result<(), Trouble> {
        self.addresses(cta, warp, active, remote.address)?;
        let addresses = self.operands[3];
        self.addresses(cta, warp, active, remote.barrier)?;
        let barriers = self.operands[3];
        let size = remote.ty.bytes() as usize;
        let mut values: Vec<[u64; 32]> = Vec::new();
        for &source in &remote.src {
            let defined = self.fetch(cta, warp, source, active, 0)?;
            self.require(source, active, defined)?;
            values.push(self.operands[0]);
        }
        self.effects += 1;
        let own = u64::from(cta.rank);
        // An address without a rank is of the CTA itself.
        let rank_of = |address: u64| (address >> RANK_BIT).checked_sub(1).unwrap_or(own);
        let place = |address: u64| address & ((1 << RANK_BIT) - 1);
        for lane in lanes(active) {
            let l = lane as usize;
            let (rank, signals) = (rank_of(addresses[l]), rank_of(barriers[l]));
            if rank != signals {
                let reason =
                    format!("it signals a barrier of rank {signals} and stores to rank {rank}");
                return Err((lane, Fault::BulkCopy(reason)));
            }
            let words = values.iter().map(|value| value[l].to_le_bytes());
            let word = Word {
                lane,
                address: place(addresses[l]),
                barrier: place(barriers[l]),
                bytes: words.flat_map(|word| word.into_iter().take(size)).collect(),
            };
            if rank == own {
                self.send_word(cta, warp, inst, remote, word)?;
                continue;
            }
            let peer = self.peer(rank).map_err(|fault| (lane, fault))?;
            let mut state = take(&mut self.peers[peer]);
            let result = self.send_word(&mut state, warp, inst, remote, word);
            self.peers[peer] = state;
            result?;
        }
        Ok(())
    }

    /// Starts what one lane sends to one CTA.
    fn send_word(
        &mut self,
        cta: &mut CtaState,
        warp: &Warp,
        inst: &Inst,
        remote: &Remote,
        word: Word,
    ) -> Result<(), Trouble> {
        let Word {
            lane,
            address,
            barrier,
            bytes,
        } = word;
        let size = bytes.len() as u32;
        let place = self.locate_part(cta, warp, lane, Space::Shared, address, (size, size))?;
        let all = (place.offset, bytes.len());
        let mut moved = Moved::new(BulkKind::Send, all, Vec::new(), (0, 1));
        if let Some(op) = remote.op {
            moved.kind = BulkKind::Reduce(op, Some(remote.ty));
            moved.shared.access = Touching::Reduce;
            if self.options.check_uninit && !cta.shared.is_written(place.offset, bytes.len()) {
                let fault = Fault::Uninitialised {
                    space: Space::Cluster,
                    address: place.address,
                    bytes: size,
                };
                return Err((lane, fault));
            }
        }
        moved.read = Some(bytes);
        moved.is_generic = true;
        let place = self.barrier_place(cta, warp, lane, Space::Shared, barrier)?;
        self.use_barrier(cta, warp, lane, place)?;
        moved.barrier = Some(place.offset);
        let agent = self.agents.start(warp.clock.warp, 1);
        let issuer = Issuer {
            clock: &warp.clock,
            lane,
            line: inst.line,
            agent,
            view: None,
            sees_copies: false,
        };
        self.begin(cta, issuer, moved.shared)?;
        cta.transfers.push(Transfer {
            agent,
            warp: warp.index,
            lane,
            line: inst.line,
            group: 0,
            work: Work::Move(Box::new(moved)),
        });
        Ok(())
    }
}
