//! Plain loads and stores whose lanes all stay in one region: nearly all that kernels execute.
//!
//! Bounds and alignment are checked once for the whole group, and data moves register by register. Whatever
//! else such an access meets (an unwritten byte, an undefined value, an address that is wrong in one lane) is
//! left to the general path, which goes lane by lane and says what is wrong; a group that comes to the end
//! here did what it would have done there.

use super::super::error::Space;
use super::super::inst::Dst;
use super::super::lane::integer::signed;
use super::super::race::{CheckedAccess, Shadow, lanes};
use super::super::sched::{CtaState, Machine, Trouble};
use super::super::types::Type;
use super::super::warp::Warp;

/// The bytes that a group accesses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    space: Space,
    /// Index of the allocation, for global memory.
    region: usize,
    /// Offset of the lowest lane's first byte, and what to subtract from an address to have an offset.
    start: usize,
    origin: u64,
    /// Bytes between the lowest and the highest one, which are all accessed if the lanes stand in a row.
    bytes: usize,
    in_a_row: bool,
}

/// The instruction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plain {
    pub(super) active: u32,
    pub(super) line: u32,
    pub(super) ty: Type,
    /// What one lane accesses.
    pub(super) bytes: u32,
}

impl Plain {
    fn access(self, lane: u32, write: bool, same_value: bool) -> CheckedAccess {
        CheckedAccess {
            lane,
            line: self.line,
            read: !write,
            write,
            strong: false,
            same_value,
        }
    }
}

impl Machine<'_> {
    /// The span of the addresses in slot 3, if they are aligned and lie in one region of global or shared
    /// memory.
    pub(super) fn span(
        &mut self,
        cta: &CtaState,
        plain: Plain,
        space: Space,
        in_a_row: bool,
    ) -> Option<Span> {
        let addresses = &self.operands[3];
        let first = addresses[plain.active.trailing_zeros() as usize];
        let (mut low, mut high, mut all) = (first, first, first);
        if in_a_row {
            high += u64::from(plain.bytes * (plain.active.count_ones() - 1));
        } else {
            for lane in lanes(plain.active) {
                let address = addresses[lane as usize];
                low = low.min(address);
                high = high.max(address);
                all |= address;
            }
        }
        let each = u64::from(plain.bytes);
        if !each.is_power_of_two() || all & (each - 1) != 0 {
            return None;
        }
        let (space, start) = match space {
            Space::Generic => Machine::generic_space(low),
            _ => (space, low),
        };
        let bytes = usize::try_from((high - low).checked_add(each)?).ok()?;
        let (region, start) = match space {
            Space::Shared => (0, cta.shared.offset(start, bytes)?),
            Space::Global => self.memory.find(start, bytes, self.hint)?,
            _ => return None,
        };
        if space == Space::Global {
            self.hint = region;
        }
        Some(Span {
            space,
            region,
            start,
            origin: low.wrapping_sub(start as u64),
            bytes,
            in_a_row,
        })
    }

    /// Offsets of the lanes.
    fn offsets(&self, span: Span) -> [usize; 32] {
        self.operands[3].map(|address| address.wrapping_sub(span.origin) as usize)
    }

    /// A load; false if the general path must do it.
    pub(super) fn load_span(
        &mut self,
        cta: &mut CtaState,
        warp: &mut Warp,
        span: Span,
        plain: Plain,
        dsts: &[Dst],
    ) -> Result<bool, Trouble> {
        let offsets = self.offsets(span);
        let Plain { active, ty, .. } = plain;
        let each = plain.bytes as usize;
        let region = match span.space {
            Space::Shared => &cta.shared,
            _ => &*self.memory.region(span.region),
        };
        if self.options.check_uninit {
            let written = if span.in_a_row {
                region.is_written(span.start, span.bytes)
            } else {
                lanes(active).all(|lane| region.is_written(offsets[lane as usize], each))
            };
            if !written {
                return Ok(false);
            }
        }
        for (index, &dst) in dsts.iter().enumerate() {
            if dst.reg == Dst::SINK {
                continue;
            }
            let out = &mut warp.registers[dst.reg as usize];
            let at = index * ty.bytes() as usize;
            let finish = |value: u64| {
                let extended = if ty.is_signed() {
                    signed(value, ty.bits) as u64
                } else {
                    value
                };
                extended & dst.mask
            };
            match ty.bytes() {
                1 => read::<1>(&region.data, &offsets, at, active, out, finish),
                2 => read::<2>(&region.data, &offsets, at, active, out, finish),
                4 => read::<4>(&region.data, &offsets, at, active, out, finish),
                _ => read::<8>(&region.data, &offsets, at, active, out, finish),
            }
            warp.define(dst, active, u32::MAX);
        }
        if self.options.check_races {
            let base = region.base;
            let size = region.data.len();
            let shadow = match span.space {
                Space::Shared => &mut cta.shadow,
                _ => self.shadows[span.region].get_or_insert_with(|| Shadow::new(size)),
            };
            for lane in lanes(active) {
                let access = plain.access(lane, false, false);
                let offset = offsets[lane as usize];
                if let Some(conflict) = shadow.access(&warp.clock, self.now, offset, each, access) {
                    return Err((lane, self.race(span.space, base, conflict)));
                }
            }
        }
        Ok(true)
    }

    /// A store of values that are defined in every lane.
    pub(super) fn store_span(
        &mut self,
        cta: &mut CtaState,
        warp: &Warp,
        span: Span,
        plain: Plain,
        values: &[[u64; 32]],
    ) -> Result<(), Trouble> {
        match plain.ty.bytes() {
            1 => self.store_elements::<1>(cta, warp, span, plain, values),
            2 => self.store_elements::<2>(cta, warp, span, plain, values),
            4 => self.store_elements::<4>(cta, warp, span, plain, values),
            _ => self.store_elements::<8>(cta, warp, span, plain, values),
        }
    }

    fn store_elements<const N: usize>(
        &mut self,
        cta: &mut CtaState,
        warp: &Warp,
        span: Span,
        plain: Plain,
        values: &[[u64; 32]],
    ) -> Result<(), Trouble> {
        let offsets = self.offsets(span);
        let each = plain.bytes as usize;
        let (region, shadow) = match span.space {
            Space::Shared => (&mut cta.shared, &mut cta.shadow),
            _ => {
                let region = self.memory.region(span.region);
                let size = region.data.len();
                let shadow = &mut self.shadows[span.region];
                (region, shadow.get_or_insert_with(|| Shadow::new(size)))
            }
        };
        let all_written = region.is_written(span.start, span.bytes);
        for lane in lanes(plain.active) {
            let offset = offsets[lane as usize];
            let mut same_value = all_written || region.is_written(offset, each);
            let (chunks, _) = region.data[offset..offset + each].as_chunks_mut::<N>();
            for (chunk, value) in chunks.iter_mut().zip(values) {
                let mut new = [0; N];
                new.copy_from_slice(&value[lane as usize].to_le_bytes()[..N]);
                same_value &= *chunk == new;
                *chunk = new;
            }
            if !all_written && !span.in_a_row {
                region.mark(offset, each, true);
            }
            if self.options.check_races {
                let same_value = same_value && !self.options.report_equal_writes;
                let access = plain.access(lane, true, same_value);
                if let Some(conflict) = shadow.access(&warp.clock, self.now, offset, each, access) {
                    let base = region.base;
                    return Err((lane, self.race(span.space, base, conflict)));
                }
            }
        }
        if !all_written && span.in_a_row {
            region.mark(span.start, span.bytes, true);
        }
        Ok(())
    }
}

/// Reads an element of `N` bytes for each lane, `at` bytes behind its offset.
#[inline]
fn read<const N: usize>(
    data: &[u8],
    offsets: &[usize; 32],
    at: usize,
    active: u32,
    out: &mut [u64; 32],
    finish: impl Fn(u64) -> u64,
) {
    let element = |lane: usize| {
        let start = offsets[lane] + at;
        let mut word = [0; 8];
        word[..N].copy_from_slice(&data[start..start + N]);
        finish(u64::from_le_bytes(word))
    };
    if active == u32::MAX {
        for (lane, out) in out.iter_mut().enumerate() {
            *out = element(lane);
        }
    } else {
        for lane in lanes(active) {
            out[lane as usize] = element(lane as usize);
        }
    }
}
