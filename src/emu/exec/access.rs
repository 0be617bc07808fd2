//! Loads and stores: addresses, checks and data.

use super::super::async_work::{Issuer, Touch, Touching};
use super::super::error::{Fault, Space};
use super::super::inst::{Address, Dst, MemoryOrder, Scope, Src};
use super::super::lane::integer::{signed, unsigned};
use super::super::mem::{RANK_BIT, Region};
use super::super::race::{
    CONSTANT, CheckedAccess, Conflict, Observer, Shadow, Strong, lanes, scope_bits,
};
use super::super::sched::{CtaState, Machine, Trouble};
use super::super::types::Type;
use super::super::warp::Warp;
use super::plain_access::Plain;

/// Where an access goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct AccessTarget {
    pub(super) space: Space,
    pub(super) address: u64,
    /// Index of the allocation, for global memory; the CTA's rank, for another one of the cluster.
    pub(super) region: usize,
    pub(super) offset: usize,
}

impl AccessTarget {
    /// That nobody wrote what is read there.
    pub(super) fn uninitialised(self, lane: u32, bytes: u32) -> Trouble {
        let AccessTarget { space, address, .. } = self;
        let fault = Fault::Uninitialised {
            space,
            address,
            bytes,
        };
        (lane, fault)
    }
}

impl Machine<'_> {
    /// Reads the addresses of a group into operand slot 3.
    pub(super) fn addresses(
        &mut self,
        cta: &CtaState,
        warp: &Warp,
        active: u32,
        address: Address,
    ) -> Result<(), Trouble> {
        let defined = self.fetch(cta, warp, address.base, active, 3)?;
        self.require(address.base, active, defined)?;
        if address.offset != 0 {
            for base in self.operands[3].iter_mut() {
                *base = base.wrapping_add_signed(address.offset);
            }
        }
        Ok(())
    }

    pub(super) fn locate(
        &mut self,
        cta: &CtaState,
        warp: &Warp,
        lane: u32,
        space: Space,
        address: u64,
        bytes: u32,
    ) -> Result<AccessTarget, Trouble> {
        self.locate_part(cta, warp, lane, space, address, (bytes, bytes))
    }

    /// The same of the first bytes of an access that is aligned as a larger one.
    pub(super) fn locate_part(
        &mut self,
        cta: &CtaState,
        warp: &Warp,
        lane: u32,
        space: Space,
        address: u64,
        (align, bytes): (u32, u32),
    ) -> Result<AccessTarget, Trouble> {
        let (space, address) = match space {
            Space::Generic => match Machine::generic_space(address) {
                (Space::Shared, address) => (Space::Cluster, address),
                other => other,
            },
            _ => (space, address),
        };
        // A CTA's own memory may be meant by rank, too.
        let rank = match space {
            Space::Cluster => (address >> RANK_BIT).checked_sub(1),
            _ => None,
        };
        let rank = rank.filter(|&rank| rank != u64::from(cta.rank));
        let (space, address) = match (space, rank) {
            (Space::Cluster, None) => (Space::Shared, address & ((1 << RANK_BIT) - 1)),
            (Space::Cluster, Some(_)) => (space, address & ((1 << RANK_BIT) - 1)),
            other => (other.0, address),
        };
        if !address.is_multiple_of(u64::from(align)) {
            return Err((
                lane,
                Fault::Misaligned {
                    space,
                    address,
                    align,
                },
            ));
        }
        let size = bytes as usize;
        let found = match space {
            Space::Global | Space::Const | Space::Generic => {
                let found = self.memory.find(address, size, self.hint);
                if let Some((region, _)) = found {
                    self.hint = region;
                }
                found
            }
            Space::Shared => cta.shared.offset(address, size).map(|offset| (0, offset)),
            Space::Cluster => {
                let rank = rank.unwrap_or(u64::MAX);
                let peer = self.peer(rank).map_err(|fault| (lane, fault))?;
                let found = self.peers[peer].shared.offset(address, size);
                found.map(|offset| (peer, offset))
            }
            Space::Param => self.params.offset(address, size).map(|offset| (0, offset)),
            Space::Local => warp
                .local
                .get(lane as usize)
                .and_then(|local| local.offset(address, size))
                .map(|at| (0, at)),
        };
        match found {
            Some((region, offset)) => Ok(AccessTarget {
                space,
                address,
                region,
                offset,
            }),
            None => {
                let nearest = match space {
                    Space::Global | Space::Const | Space::Generic => self.memory.nearest(address),
                    Space::Shared if address >> RANK_BIT != 0 => format!(
                        "this is memory of the CTA of rank {}, which only `.shared::cluster` reaches",
                        (address >> RANK_BIT) - 1
                    ),
                    Space::Shared | Space::Cluster => format!(
                        "the CTA has {} bytes from {:#x}",
                        cta.shared.data.len(),
                        cta.shared.base
                    ),
                    Space::Param => {
                        format!("there are {} bytes of parameters", self.params.data.len())
                    }
                    Space::Local => format!("a thread has {} bytes", self.entry.local_bytes),
                };
                Err((
                    lane,
                    Fault::OutOfBounds {
                        space,
                        address,
                        bytes,
                        nearest,
                    },
                ))
            }
        }
    }

    pub(super) fn region<'b>(
        &'b mut self,
        cta: &'b mut CtaState,
        warp: &'b mut Warp,
        lane: u32,
        place: AccessTarget,
    ) -> &'b mut Region {
        match place.space {
            Space::Shared => &mut cta.shared,
            Space::Cluster => &mut self.peers[place.region].shared,
            Space::Param => &mut self.params,
            Space::Local => &mut warp.local[lane as usize],
            Space::Global | Space::Const | Space::Generic => self.memory.region(place.region),
        }
    }

    pub(super) fn check_race(
        &mut self,
        cta: &mut CtaState,
        warp: &Warp,
        place: AccessTarget,
        bytes: u32,
        access: CheckedAccess,
    ) -> Result<(), Trouble> {
        let shadow = match place.space {
            Space::Shared => &mut cta.shadow,
            Space::Cluster => &mut self.peers[place.region].shadow,
            Space::Global => {
                let bytes = self.memory.region(place.region).data.len();
                self.shadows[place.region].get_or_insert_with(|| Shadow::new(bytes))
            }
            _ => return Ok(()),
        };
        match shadow.access(&warp.clock, self.now, place.offset, bytes as usize, access) {
            None => Ok(()),
            Some(conflict) => {
                let base = place.address - place.offset as u64;
                Err((access.lane, self.race(place.space, base, conflict)))
            }
        }
    }

    /// What is wrong where two accesses are not ordered.
    pub(in crate::emu) fn race(&self, space: Space, base: u64, conflict: Conflict) -> Fault {
        let address = base + conflict.offset as u64;
        let other = self.place(conflict.other);
        if conflict.other.is_constant() {
            return Fault::ConstantWritten { address, other };
        }
        Fault::Race {
            space,
            address,
            kind: conflict.kind,
            other_kind: conflict.other_kind,
            other,
        }
    }

    /// The scope of an access; only that of a strong one counts.
    fn scope_of(&self, order: MemoryOrder, space: Space) -> Scope {
        match order.strong {
            true => self.scope(order.scope, space),
            false => Scope::Device,
        }
    }

    /// What a scope means for memory of a space: a cluster of one CTA is that CTA, and where nobody else reaches there is no
    /// difference.
    pub(super) fn scope(&self, scope: Scope, space: Space) -> Scope {
        let is_alone = self.cluster == [1, 1, 1];
        match (space, scope) {
            (Space::Shared | Space::Cluster, _) if is_alone => Scope::Device,
            (Space::Global | Space::Shared | Space::Cluster, Scope::Cluster) if is_alone => {
                Scope::Cta
            }
            (Space::Global | Space::Shared | Space::Cluster, _) => scope,
            _ => Scope::Device,
        }
    }

    /// A load by `.nc` of a lane: an access under way to the end of the kernel.
    fn note_constant(
        &mut self,
        cta: &mut CtaState,
        warp: &mut Warp,
        (lane, line): (u32, u32),
        place: AccessTarget,
        bytes: u32,
    ) -> Result<(), Trouble> {
        let agent = match warp.constants {
            Some(agent) => agent,
            None => self.agents.start(warp.clock.warp, 1),
        };
        warp.constants = Some(agent);
        let issuer = Issuer {
            clock: &warp.clock,
            lane,
            line: line | CONSTANT,
            agent,
            view: Some(Observer::Constant),
            sees_copies: false,
        };
        let touch = Touch {
            is_shared: false,
            region: place.region,
            offset: place.offset,
            bytes: bytes as usize,
            access: Touching::Read,
        };
        match self.begin(cta, issuer, touch) {
            Err((
                lane,
                Fault::Race { address, other, .. } | Fault::Proxy { address, other, .. },
            )) => Err((lane, Fault::Constant { address, other })),
            result => result,
        }
    }

    /// Takes part in the synchronisation that a strong access makes.
    pub(super) fn synchronise(
        &mut self,
        cta: &mut CtaState,
        warp: &mut Warp,
        lane: u32,
        place: AccessTarget,
        strong: Strong,
    ) {
        let releases = match place.space {
            Space::Shared => &mut cta.releases,
            Space::Cluster => &mut self.peers[place.region].releases,
            _ => &mut self.releases,
        };
        releases.access(&mut warp.clock, lane, place.address, strong, &mut self.now);
    }

    #[expect(clippy::too_many_arguments, reason = "the fields of one instruction")]
    pub(super) fn load(
        &mut self,
        cta: &mut CtaState,
        warp: &mut Warp,
        active: u32,
        line: u32,
        address: Address,
        ty: Type,
        dsts: &[Dst],
        order: MemoryOrder,
    ) -> Result<(), Trouble> {
        self.addresses(cta, warp, active, address)?;
        let element = ty.bytes() as usize;
        let bytes = ty.bytes() * dsts.len() as u32;
        let in_a_row = self.count_access(active, address.space, bytes);
        let notes_constant = order.constant && self.options.check_races;
        if !order.strong && !notes_constant {
            let plain = Plain {
                active,
                line,
                ty,
                bytes,
            };
            if let Some(span) = self.span(cta, plain, address.space, in_a_row)
                && self.load_span(cta, warp, span, plain, dsts)?
            {
                return Ok(());
            }
        }
        for lane in lanes(active) {
            let place = self.locate(
                cta,
                warp,
                lane,
                address.space,
                self.operands[3][lane as usize],
                bytes,
            )?;
            let scope = self.scope_of(order, place.space);
            if order.strong && self.options.check_races {
                let strong = Strong {
                    read: true,
                    write: false,
                    acquire: order.acquire,
                    release: false,
                    scope,
                };
                self.synchronise(cta, warp, lane, place, strong);
            }
            let check_uninit = self.options.check_uninit;
            let region = self.region(cta, warp, lane, place);
            if check_uninit && !region.is_written(place.offset, bytes as usize) {
                return Err(place.uninitialised(lane, bytes));
            }
            let mut values = [0; 8];
            for (index, value) in values[..dsts.len()].iter_mut().enumerate() {
                *value = region.load(place.offset + index * element, element);
            }
            if notes_constant && place.space == Space::Global {
                self.note_constant(cta, warp, (lane, line), place, bytes)?;
            } else if self.options.check_races {
                let access = CheckedAccess {
                    lane,
                    line: line | scope_bits(scope),
                    read: true,
                    write: false,
                    strong: order.strong,
                    same_value: false,
                };
                self.check_race(cta, warp, place, bytes, access)?;
            }
            for (&dst, &value) in dsts.iter().zip(&values) {
                let value = if ty.is_signed() {
                    signed(value, ty.bits) as u64
                } else {
                    value
                };
                warp.set(dst, lane, value);
            }
        }
        for &dst in dsts {
            warp.define(dst, active, u32::MAX);
        }
        Ok(())
    }

    #[expect(clippy::too_many_arguments, reason = "the fields of one instruction")]
    pub(super) fn store(
        &mut self,
        cta: &mut CtaState,
        warp: &mut Warp,
        active: u32,
        line: u32,
        address: Address,
        ty: Type,
        sources: &[Src],
        order: MemoryOrder,
    ) -> Result<(), Trouble> {
        let element = ty.bytes() as usize;
        let bytes = ty.bytes() * sources.len() as u32;
        self.effects += 1;
        let mut values = [[0_u64; 32]; 8];
        let mut defined = [0_u32; 8];
        for (index, &source) in sources.iter().enumerate() {
            defined[index] = self.fetch(cta, warp, source, active, 0)?;
            values[index] = self.operands[0];
        }
        self.addresses(cta, warp, active, address)?;
        let in_a_row = self.count_access(active, address.space, bytes);
        let all_defined = defined[..sources.len()]
            .iter()
            .all(|defined| defined & active == active);
        if !order.strong && all_defined {
            let plain = Plain {
                active,
                line,
                ty,
                bytes,
            };
            if let Some(span) = self.span(cta, plain, address.space, in_a_row) {
                return self.store_span(cta, warp, span, plain, &values[..sources.len()]);
            }
        }
        for lane in lanes(active) {
            let place = self.locate(
                cta,
                warp,
                lane,
                address.space,
                self.operands[3][lane as usize],
                bytes,
            )?;
            if matches!(place.space, Space::Param | Space::Const) {
                return Err((lane, Fault::ReadOnly { space: place.space }));
            }
            if place.space == Space::Global {
                for (&source, &defined) in sources.iter().zip(&defined) {
                    self.require(source, 1 << lane, defined)?;
                }
            }
            let scope = self.scope_of(order, place.space);
            let region = self.region(cta, warp, lane, place);
            let mut same_value = region.is_written(place.offset, bytes as usize);
            for (index, values) in values[..sources.len()].iter().enumerate() {
                let offset = place.offset + index * element;
                let value = unsigned(values[lane as usize], ty.register_bits());
                same_value &= region.load(offset, element) == value;
                region.store(offset, element, value);
                // An undefined value makes shared and local bytes undefined again.
                region.mark(offset, element, defined[index] >> lane & 1 == 1);
            }
            if self.options.check_races {
                let same_value = same_value && !self.options.report_equal_writes && !order.strong;
                let access = CheckedAccess {
                    lane,
                    line: line | scope_bits(scope),
                    read: false,
                    write: true,
                    strong: order.strong,
                    same_value,
                };
                self.check_race(cta, warp, place, bytes, access)?;
                if order.strong {
                    let strong = Strong {
                        read: false,
                        write: true,
                        acquire: false,
                        release: order.release,
                        scope,
                    };
                    self.synchronise(cta, warp, lane, place, strong);
                }
            }
        }
        Ok(())
    }
}
