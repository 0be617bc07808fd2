//! Bulk copies: what one lane asks the async proxy to move.
//!
//! Loads signal a barrier in shared memory, stores and reductions form groups of their thread. Everything that a copy will
//! touch is under way from here on (see `async_work`); `land` says when it happens.

use std::mem::take;

use super::super::async_work::{Issuer, Move, Moved, Touch, Touching, Transfer, Work};
use super::super::error::{Fault, Space};
use super::super::inst::{Bulk, BulkKind, Inst, Op};
use super::super::mem::RANK_BIT;
use super::super::race::{Agent, Observer, lanes};
use super::super::sched::{CtaState, Machine, Trouble};
use super::super::warp::Warp;

/// What sizes and addresses of plain copies are multiples of.
pub(super) const UNIT: u32 = 16;
/// What addresses of boxes in shared memory are multiples of.
const BOX_ALIGN: u32 = 128;

/// The operands of one lane; addresses of shared memory without a rank.
struct Issue<'a> {
    lane: u32,
    shared: u64,
    global: u64,
    barrier: u64,
    size: Option<u32>,
    start: &'a [i32],
    agent: Agent,
    /// The bytes that are sent, where they stand, and the rank of their CTA.
    sent: Option<(Vec<u8>, u32, Touch)>,
}

impl Machine<'_> {
    pub(super) fn start_bulk(
        &mut self,
        cta: &mut CtaState,
        warp: &mut Warp,
        active: u32,
        inst: &Inst,
        bulk: &Bulk,
    ) -> Result<(), Trouble> {
        self.addresses(cta, warp, active, bulk.shared)?;
        let shared = self.operands[3];
        self.addresses(cta, warp, active, bulk.global)?;
        let global = self.operands[3];
        let barriers = match bulk.barrier {
            None => [0; 32],
            Some(barrier) => {
                self.addresses(cta, warp, active, barrier)?;
                self.operands[3]
            }
        };
        let read = |machine: &mut Self, source| -> Result<[u64; 32], Trouble> {
            let defined = machine.fetch(cta, warp, source, active, 0)?;
            machine.require(source, active, defined)?;
            Ok(machine.operands[0])
        };
        let sizes = bulk.size.map(|size| read(self, size)).transpose()?;
        let multicast = bulk.multicast.map(|mask| read(self, mask)).transpose()?;
        let mut starts = Vec::new();
        for &coordinate in bulk.coordinates.iter().flatten() {
            starts.push(read(self, coordinate)?);
        }
        self.effects += 1;
        for lane in lanes(active) {
            let l = lane as usize;
            // Addresses of `.shared::cta` have no rank; one that has lies outside of the CTA.
            let in_cluster = bulk.shared.space == Space::Cluster;
            let place = |address: u64| match in_cluster {
                true => address & ((1 << RANK_BIT) - 1),
                false => address,
            };
            let rank_of = |address: u64| match in_cluster {
                true => (address >> RANK_BIT).checked_sub(1),
                false => None,
            };
            let start: Vec<i32> = starts.iter().map(|all| all[l] as i32).collect();
            let mut issue = Issue {
                lane,
                shared: place(shared[l]),
                global: global[l],
                barrier: place(barriers[l]),
                size: sizes.map(|sizes| sizes[l] as u32),
                start: &start,
                agent: 0,
                sent: None,
            };
            let own = u64::from(cta.rank);
            let ranks: Vec<u64> = match multicast {
                Some(mask) => (0..16).filter(|&rank| mask[l] >> rank & 1 == 1).collect(),
                None => vec![rank_of(shared[l]).unwrap_or(own)],
            };
            // An address without a rank is of the CTA itself.
            let barrier = rank_of(barriers[l]).unwrap_or(own);
            if bulk.barrier.is_some() && multicast.is_none() && barrier != ranks[0] {
                let reason =
                    format!("it signals a barrier of rank {barrier} and fills another CTA");
                return Err((lane, Fault::BulkCopy(reason)));
            }
            for rank in ranks {
                issue.agent = self.agents.start(warp.clock.warp, 1);
                if let BulkKind::Send = bulk.kind {
                    let sent = self.send(cta, warp, inst, &issue)?;
                    issue.sent = Some(sent);
                }
                if rank == own {
                    self.issue_bulk(cta, warp, inst, bulk, &issue)?;
                    continue;
                }
                let peer = self.peer(rank).map_err(|fault| (lane, fault))?;
                let mut state = take(&mut self.peers[peer]);
                let result = self.issue_bulk(&mut state, warp, inst, bulk, &issue);
                self.peers[peer] = state;
                result?;
            }
        }
        Ok(())
    }

    /// Starts the copy of one lane to or from shared memory of one CTA.
    fn issue_bulk(
        &mut self,
        cta: &mut CtaState,
        warp: &mut Warp,
        inst: &Inst,
        bulk: &Bulk,
        issue: &Issue<'_>,
    ) -> Result<(), Trouble> {
        let (lane, agent) = (issue.lane, issue.agent);
        let mut moved = match (issue.size, &issue.sent) {
            (_, Some((bytes, rank, touch))) => {
                let part = (UNIT, bytes.len() as u32);
                let place = self.locate_part(cta, warp, lane, Space::Shared, issue.shared, part)?;
                let all = (place.offset, bytes.len());
                let mut moved = Moved::new(bulk.kind, all, Vec::new(), (0, 1));
                moved.sent = Some((*rank, *touch));
                if let Some((op, ty)) = bulk.reduction {
                    moved.kind = BulkKind::Reduce(op, Some(ty));
                    moved.shared.access = Touching::Reduce;
                    if self.options.check_uninit && !cta.shared.is_written(all.0, all.1) {
                        let fault = Fault::Uninitialised {
                            space: Space::Cluster,
                            address: place.address,
                            bytes: bytes.len() as u32,
                        };
                        return Err((lane, fault));
                    }
                }
                moved.read = Some(bytes.clone());
                moved
            }
            (Some(size), None) => {
                let places = [issue.shared, issue.global];
                self.plain_move(cta, warp, lane, bulk.kind, places, size)?
            }
            (None, None) => {
                let map = self.read_map(
                    cta,
                    warp,
                    lane,
                    inst.line,
                    (Space::Generic, issue.global),
                    agent,
                )?;
                let part = (BOX_ALIGN, 1);
                let place = self.locate_part(cta, warp, lane, Space::Shared, issue.shared, part)?;
                self.box_move(cta, lane, bulk.kind, place.address, &map, issue.start)?
            }
        };
        if bulk.barrier.is_some() {
            let place = self.barrier_place(cta, warp, lane, Space::Shared, issue.barrier)?;
            self.use_barrier_async(cta, warp, lane, place)?;
            moved.barrier = Some(place.offset);
        }
        let issuer = |view| Issuer {
            clock: &warp.clock,
            lane,
            line: inst.line,
            agent,
            view: Some(view),
            sees_copies: false,
        };
        self.begin(cta, issuer(Observer::Shared), moved.shared)?;
        for &touch in &moved.global {
            self.begin(cta, issuer(Observer::Global), touch)?;
        }
        let transfer = Transfer {
            agent,
            warp: warp.index,
            lane,
            line: inst.line,
            group: warp.bulk_commits[lane as usize],
            work: Work::Move(Box::new(moved)),
        };
        match bulk.kind {
            BulkKind::Load | BulkKind::Send => cta.transfers.push(transfer),
            _ => warp.bulk.push(transfer),
        }
        Ok(())
    }

    /// Shared memory of the CTA is on its way to another: it is read from here on, until the barrier there says that it came.
    fn send(
        &mut self,
        cta: &mut CtaState,
        warp: &Warp,
        inst: &Inst,
        issue: &Issue<'_>,
    ) -> Result<(Vec<u8>, u32, Touch), Trouble> {
        let (lane, size) = (issue.lane, checked(issue.lane, issue.size.unwrap_or(0))?);
        let place = self.locate_part(cta, warp, lane, Space::Shared, issue.global, (UNIT, size))?;
        let (offset, bytes) = (place.offset, size as usize);
        let touch = Touch {
            is_shared: true,
            region: 0,
            offset,
            bytes,
            access: Touching::Read,
        };
        let issuer = Issuer {
            clock: &warp.clock,
            lane,
            line: inst.line,
            agent: issue.agent,
            view: Some(Observer::Shared),
            sees_copies: false,
        };
        self.begin(cta, issuer, touch)?;
        if self.options.check_uninit && !cta.shared.is_written(offset, bytes) {
            let fault = Fault::Uninitialised {
                space: Space::Shared,
                address: place.address,
                bytes: size,
            };
            return Err((lane, fault));
        }
        let read = cta.shared.data[offset..offset + bytes].to_vec();
        Ok((read, cta.rank, touch))
    }

    /// A copy of `size` bytes from one place to one other.
    fn plain_move(
        &mut self,
        cta: &CtaState,
        warp: &Warp,
        lane: u32,
        kind: BulkKind,
        [shared, global]: [u64; 2],
        size: u32,
    ) -> Result<Moved, Trouble> {
        let part = (UNIT, checked(lane, size)?);
        let shared = self.locate_part(cta, warp, lane, Space::Shared, shared, part)?;
        let global = self.locate_part(cta, warp, lane, Space::Global, global, part)?;
        let bytes = size as usize;
        let moves = vec![Move {
            region: global.region,
            global: global.offset,
            shared: shared.offset,
            bytes,
        }];
        Ok(Moved::new(kind, (shared.offset, bytes), moves, (0, 1)))
    }

    /// `tensormap.replace`: a field of a map that the kernel makes in memory.
    pub(super) fn replace_map(
        &mut self,
        cta: &mut CtaState,
        warp: &mut Warp,
        active: u32,
        inst: &Inst,
    ) -> Result<(), Trouble> {
        let Op::ReplaceMap {
            field,
            index,
            address,
            value,
        } = inst.op
        else {
            unreachable!("called for these only")
        };
        let defined = self.fetch(cta, warp, value, active, 0)?;
        self.require(value, active, defined)?;
        let values = self.operands[0];
        self.addresses(cta, warp, active, address)?;
        let Some((at, bytes, less)) = field.place(index) else {
            let fault = Fault::BulkCopy(format!("a tensor map has no dimension {index}"));
            return Err((active.trailing_zeros(), fault));
        };
        for lane in lanes(active) {
            let address_of = self.operands[3][lane as usize];
            let whole = (64, 128);
            let map = self.locate_part(cta, warp, lane, address.space, address_of, whole)?;
            if matches!(map.space, Space::Param | Space::Const) {
                return Err((lane, Fault::ReadOnly { space: map.space }));
            }
            let place = self.locate_part(
                cta,
                warp,
                lane,
                map.space,
                map.address + at as u64,
                (1, bytes as u32),
            )?;
            let region = self.region(cta, warp, lane, place);
            let value = values[lane as usize].wrapping_sub(less);
            region.store(place.offset, bytes, value);
            region.mark(place.offset, bytes, true);
            if self.options.check_races {
                let access = super::super::race::CheckedAccess {
                    lane,
                    line: inst.line,
                    read: false,
                    write: true,
                    strong: false,
                    same_value: false,
                };
                self.check_race(cta, warp, place, bytes as u32, access)?;
            }
        }
        Ok(())
    }
}

/// The size of a plain copy, if it can be one.
pub(super) fn checked(lane: u32, size: u32) -> Result<u32, Trouble> {
    if size == 0 || !size.is_multiple_of(UNIT) {
        let reason = format!("{size} bytes are no positive multiple of {UNIT}");
        return Err((lane, Fault::BulkCopy(reason)));
    }
    Ok(size)
}

impl Moved {
    pub(super) fn new(
        kind: BulkKind,
        (offset, bytes): (usize, usize),
        moves: Vec<Move>,
        fill: (u64, u32),
    ) -> Moved {
        let (of_shared, of_global) = match kind {
            BulkKind::Load | BulkKind::Send => (Touching::Write, Touching::Read),
            BulkKind::Store => (Touching::Read, Touching::Write),
            BulkKind::Reduce(..) => (Touching::Read, Touching::Reduce),
        };
        let mut global: Vec<Touch> = Vec::new();
        for piece in &moves {
            match global.last_mut() {
                Some(last)
                    if last.region == piece.region && last.offset + last.bytes == piece.global =>
                {
                    last.bytes += piece.bytes;
                }
                _ => global.push(Touch {
                    is_shared: false,
                    region: piece.region,
                    offset: piece.global,
                    bytes: piece.bytes,
                    access: of_global,
                }),
            }
        }
        Moved {
            kind,
            shared: Touch {
                is_shared: true,
                region: 0,
                offset,
                bytes,
                access: of_shared,
            },
            global,
            moves,
            fill,
            barrier: None,
            tx: bytes as i64,
            read: None,
            is_generic: false,
            sent: None,
        }
    }
}
