//! Loads, stores and atomics: addresses, checks, data, and what they cost.

use super::super::error::{Fault, Space};
use super::super::inst::{Address, AtomicOp, Dst, Inst, Op, Order, Src};
use super::super::lane::integer::{signed, unsigned};
use super::super::mem::Region;
use super::super::race::{Access, Conflict, Shadow, Strong, lanes};
use super::super::sched::{CtaState, Machine, Trouble};
use super::super::types::{Kind, Type};
use super::super::warp::Warp;
use crate::num::{self, Rounding, bf16, f16};

/// Where an access goes.
#[derive(Clone, Copy, Debug)]
struct Place {
    space: Space,
    address: u64,
    /// Index of the allocation, for global memory.
    region: usize,
    offset: usize,
}

impl Machine<'_> {
    /// Reads the addresses of a group into operand slot 3.
    fn addresses(
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

    fn locate(
        &mut self,
        cta: &CtaState,
        warp: &Warp,
        lane: u32,
        space: Space,
        address: u64,
        bytes: u32,
    ) -> Result<Place, Trouble> {
        let (space, address) = match space {
            Space::Generic => Machine::generic_space(address),
            _ => (space, address),
        };
        if !address.is_multiple_of(u64::from(bytes)) {
            return Err((
                lane,
                Fault::Misaligned {
                    space,
                    address,
                    align: bytes,
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
            Space::Param => self.params.offset(address, size).map(|offset| (0, offset)),
            Space::Local => warp
                .local
                .get(lane as usize)
                .and_then(|local| local.offset(address, size))
                .map(|at| (0, at)),
        };
        match found {
            Some((region, offset)) => Ok(Place {
                space,
                address,
                region,
                offset,
            }),
            None => {
                let nearest = match space {
                    Space::Global | Space::Const | Space::Generic => self.memory.nearest(address),
                    Space::Shared => format!(
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

    fn region<'b>(
        &'b mut self,
        cta: &'b mut CtaState,
        warp: &'b mut Warp,
        lane: u32,
        place: Place,
    ) -> &'b mut Region {
        match place.space {
            Space::Shared => &mut cta.shared,
            Space::Param => &mut self.params,
            Space::Local => &mut warp.local[lane as usize],
            Space::Global | Space::Const | Space::Generic => self.memory.region(place.region),
        }
    }

    fn check_race(
        &mut self,
        cta: &mut CtaState,
        warp: &Warp,
        place: Place,
        bytes: u32,
        access: Access,
    ) -> Result<(), Trouble> {
        let shadow = match place.space {
            Space::Shared => &mut cta.shadow,
            Space::Global => {
                let bytes = self.memory.region(place.region).data.len();
                self.shadows[place.region].get_or_insert_with(|| Shadow::new(bytes))
            }
            _ => return Ok(()),
        };
        match shadow.access(&warp.clock, self.now, place.offset, bytes as usize, access) {
            None => Ok(()),
            Some(Conflict {
                other,
                kind,
                other_kind,
                offset,
            }) => {
                let address = place.address - place.offset as u64 + offset as u64;
                let other = self.place(other);
                Err((
                    access.lane,
                    Fault::Race {
                        space: place.space,
                        address,
                        kind,
                        other_kind,
                        other,
                    },
                ))
            }
        }
    }

    /// Takes part in the synchronisation that a strong access makes.
    fn synchronise(
        &mut self,
        cta: &mut CtaState,
        warp: &mut Warp,
        lane: u32,
        place: Place,
        strong: Strong,
    ) {
        let releases = match place.space {
            Space::Shared => &mut cta.releases,
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
        order: Order,
    ) -> Result<(), Trouble> {
        self.addresses(cta, warp, active, address)?;
        let element = ty.bytes() as usize;
        let bytes = ty.bytes() * dsts.len() as u32;
        self.count_access(active, address.space, bytes);
        for lane in lanes(active) {
            let place = self.locate(
                cta,
                warp,
                lane,
                address.space,
                self.operands[3][lane as usize],
                bytes,
            )?;
            if order.strong && self.options.check_races {
                let strong = Strong {
                    read: true,
                    write: false,
                    acquire: order.acquire,
                    release: false,
                };
                self.synchronise(cta, warp, lane, place, strong);
            }
            let check_uninit = self.options.check_uninit;
            let region = self.region(cta, warp, lane, place);
            if check_uninit && !region.is_written(place.offset, bytes as usize) {
                let fault = Fault::Uninitialised {
                    space: place.space,
                    address: place.address,
                    bytes,
                };
                return Err((lane, fault));
            }
            let mut values = [0; 8];
            for (index, value) in values[..dsts.len()].iter_mut().enumerate() {
                *value = region.load(place.offset + index * element, element);
            }
            if self.options.check_races {
                let access = Access {
                    lane,
                    line,
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
        order: Order,
    ) -> Result<(), Trouble> {
        let element = ty.bytes() as usize;
        let bytes = ty.bytes() * sources.len() as u32;
        let mut values = [[0_u64; 32]; 8];
        let mut defined = [0_u32; 8];
        for (index, &source) in sources.iter().enumerate() {
            defined[index] = self.fetch(cta, warp, source, active, 0)?;
            values[index] = self.operands[0];
        }
        self.addresses(cta, warp, active, address)?;
        self.count_access(active, address.space, bytes);
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
                let access = Access {
                    lane,
                    line,
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
                    };
                    self.synchronise(cta, warp, lane, place, strong);
                }
            }
        }
        Ok(())
    }

    pub(super) fn atomic(
        &mut self,
        cta: &mut CtaState,
        warp: &mut Warp,
        active: u32,
        inst: &Inst,
    ) -> Result<(), Trouble> {
        let Op::Atomic {
            address,
            op,
            ty,
            dsts,
            src,
            compare,
            order,
        } = &inst.op
        else {
            unreachable!("called for atomics only")
        };
        let element = ty.bytes() as usize;
        let bytes = ty.bytes() * src.len() as u32;
        let mut values = [[0_u64; 32]; 8];
        for (index, &source) in src.iter().enumerate() {
            let defined = self.fetch(cta, warp, source, active, 0)?;
            self.require(source, active, defined)?;
            values[index] = self.operands[0];
        }
        let defined = self.fetch(cta, warp, *compare, active, 0)?;
        self.require(*compare, active, defined)?;
        let wanted = self.operands[0];
        self.addresses(cta, warp, active, *address)?;
        self.count_access(active, address.space, bytes);
        for lane in lanes(active) {
            let place = self.locate(
                cta,
                warp,
                lane,
                address.space,
                self.operands[3][lane as usize],
                bytes,
            )?;
            if !matches!(place.space, Space::Global | Space::Shared) {
                return Err((lane, Fault::ReadOnly { space: place.space }));
            }
            let check_uninit = self.options.check_uninit;
            let region = self.region(cta, warp, lane, place);
            if check_uninit && !region.is_written(place.offset, bytes as usize) {
                let fault = Fault::Uninitialised {
                    space: place.space,
                    address: place.address,
                    bytes,
                };
                return Err((lane, fault));
            }
            let mut old = [0; 8];
            for (index, values) in values[..src.len()].iter().enumerate() {
                let offset = place.offset + index * element;
                old[index] = region.load(offset, element);
                // f32 sums in global memory flush subnormals, those in shared memory do not.
                let ftz = place.space == Space::Global && ty.is_f32();
                let new = modify(
                    *op,
                    *ty,
                    ftz,
                    old[index],
                    values[lane as usize],
                    wanted[lane as usize],
                );
                region.store(offset, element, new);
            }
            region.mark(place.offset, bytes as usize, true);
            if self.options.check_races {
                let access = Access {
                    lane,
                    line: inst.line,
                    read: true,
                    write: true,
                    strong: true,
                    same_value: false,
                };
                let strong = Strong {
                    read: true,
                    write: true,
                    acquire: order.acquire,
                    release: order.release,
                };
                self.synchronise(cta, warp, lane, place, strong);
                self.check_race(cta, warp, place, bytes, access)?;
            }
            for (&dst, &value) in dsts.iter().zip(&old) {
                warp.set(dst, lane, value);
            }
        }
        for &dst in dsts {
            warp.define(dst, active, u32::MAX);
        }
        Ok(())
    }

    /// Counts sectors of global and wavefronts of shared accesses at the addresses in slot 3.
    fn count_access(&mut self, active: u32, space: Space, bytes: u32) {
        let first = self.operands[3][active.trailing_zeros() as usize];
        let space = match space {
            Space::Generic => Machine::generic_space(first).0,
            _ => space,
        };
        match space {
            Space::Global => {
                self.stats.global_requests += 1;
                self.stats.global_sectors += self.sectors(active, bytes);
            }
            Space::Shared => {
                // The hardware serves 128 bytes at a time: lanes in groups by access size.
                let lanes_at_once = (128 / bytes.max(4)).clamp(1, 32);
                let mut start = 0;
                while start < 32 {
                    let phase = active & (u32::MAX >> (32 - lanes_at_once)) << start;
                    start += lanes_at_once;
                    if phase != 0 {
                        self.stats.shared_ideal_wavefronts += 1;
                        self.stats.shared_wavefronts += self.wavefronts(phase, bytes);
                    }
                }
            }
            _ => {}
        }
    }

    /// Distinct sectors of 32 bytes.
    fn sectors(&self, active: u32, bytes: u32) -> u64 {
        let mut seen = [0_u64; 64];
        let mut count = 0;
        let mut ordered = true;
        for lane in lanes(active) {
            let address = self.operands[3][lane as usize];
            for sector in address / 32..=(address + u64::from(bytes) - 1) / 32 {
                if count == 0 || seen[count - 1] != sector {
                    ordered &= count == 0 || seen[count - 1] < sector;
                    if count < seen.len() {
                        seen[count] = sector;
                        count += 1;
                    }
                }
            }
        }
        if ordered {
            return count as u64;
        }
        let seen = &mut seen[..count];
        seen.sort_unstable();
        1 + seen.windows(2).filter(|pair| pair[0] != pair[1]).count() as u64
    }

    /// Trips through the 32 banks of four bytes: the most distinct words that one bank must serve.
    fn wavefronts(&self, phase: u32, bytes: u32) -> u64 {
        let words_each = bytes.div_ceil(4);
        let mut words = [0_u64; 64];
        let mut count = 0;
        for lane in lanes(phase) {
            let first = self.operands[3][lane as usize] / 4;
            for word in first..first + u64::from(words_each) {
                if count < words.len() && (count == 0 || words[count - 1] != word) {
                    words[count] = word;
                    count += 1;
                }
            }
        }
        let words = &mut words[..count];
        if words.windows(2).all(|pair| pair[0] < pair[1]) && words[count - 1] - words[0] < 32 {
            return 1;
        }
        words.sort_unstable();
        let mut load = [0_u64; 32];
        let mut last = None;
        for &word in words.iter() {
            if last != Some(word) {
                load[word as usize % 32] += 1;
                last = Some(word);
            }
        }
        load.into_iter().max().unwrap_or(1)
    }
}

/// The value that an atomic operation leaves.
fn modify(op: AtomicOp, ty: Type, ftz: bool, old: u64, value: u64, compare: u64) -> u64 {
    if ty.packed {
        let half = Type {
            packed: false,
            ..ty
        };
        let part = |shift: u32| {
            modify(
                op,
                half,
                ftz,
                old >> shift & 0xffff,
                value >> shift & 0xffff,
                0,
            ) & 0xffff
        };
        return part(16) << 16 | part(0);
    }
    let bits = ty.bits;
    match op {
        AtomicOp::Add if ty.is_f32() => {
            let flush = |x: f32| if ftz { num::ftz(x) } else { x };
            let (a, b) = (
                flush(f32::from_bits(old as u32)),
                flush(f32::from_bits(value as u32)),
            );
            u64::from(flush(num::add(a, b, Rounding::NearestEven)).to_bits())
        }
        AtomicOp::Add if ty.is_f64() => {
            num::canonical64(f64::from_bits(old) + f64::from_bits(value)).to_bits()
        }
        AtomicOp::Add | AtomicOp::Min | AtomicOp::Max if ty.is_half() => {
            let (a, b) = (old as u16, value as u16);
            u64::from(match (ty.kind, op) {
                (Kind::Bfloat, AtomicOp::Add) => bf16::add(a, b),
                (Kind::Bfloat, AtomicOp::Min) => bf16::min(a, b),
                (Kind::Bfloat, _) => bf16::max(a, b),
                (_, AtomicOp::Add) => f16::add(a, b),
                (_, AtomicOp::Min) => f16::min(a, b),
                _ => f16::max(a, b),
            })
        }
        AtomicOp::Add => old.wrapping_add(value),
        AtomicOp::Min if ty.is_signed() => signed(old, bits).min(signed(value, bits)) as u64,
        AtomicOp::Max if ty.is_signed() => signed(old, bits).max(signed(value, bits)) as u64,
        AtomicOp::Min => old.min(unsigned(value, bits)),
        AtomicOp::Max => old.max(unsigned(value, bits)),
        AtomicOp::And => old & value,
        AtomicOp::Or => old | value,
        AtomicOp::Xor => old ^ value,
        AtomicOp::Exchange => value,
        AtomicOp::CompareSwap => {
            if unsigned(old, bits) == unsigned(compare, bits) {
                value
            } else {
                old
            }
        }
        AtomicOp::Increment => {
            if old >= unsigned(value, bits) {
                0
            } else {
                old + 1
            }
        }
        AtomicOp::Decrement => {
            let limit = unsigned(value, bits);
            if old == 0 || old > limit {
                limit
            } else {
                old - 1
            }
        }
    }
}
