//! Which bits of a value can be one.
//!
//! Two facts follow: how far an address is aligned (its low bits are zero), and that adding a constant
//! only sets bits that are zero, so that it cannot carry and commutes with widening. Both hold for
//! wrapping arithmetic, so no promise of the program is needed.

use cranelift_entity::SecondaryMap;

use super::value_ranges::{Range, Ranges};
use crate::ir::attrs::{Attrs, SpecialReg};
use crate::ir::entities::Value;
use crate::ir::function::ThreadFunction;
use crate::ir::ops::ThreadOp;
use crate::ir::order::shorten;

/// Bits that can be one, for each value of a thread function, in any element of a pack; unknown values can have any.
#[derive(Clone, Debug, Default)]
pub(super) struct PossibleBits {
    masks: SecondaryMap<Value, Mask>,
    ranges: Ranges,
}

#[derive(Clone, Copy, Debug)]
struct Mask(u64);

impl Default for Mask {
    fn default() -> Self {
        Mask(u64::MAX)
    }
}

/// Bits a sum can have, given those of its operands: without a common bit nothing carries.
fn sum(a: u64, b: u64) -> u64 {
    if a & b == 0 {
        a | b
    } else {
        u64::MAX << (a | b).trailing_zeros().min(63)
    }
}

/// Bits a difference can have: what borrows starts at the lowest of either.
fn difference(a: u64, b: u64) -> u64 {
    if b == 0 {
        return a;
    }
    u64::MAX << (a | b).trailing_zeros().min(63)
}

/// Bits a product can have: its trailing zeros add up.
fn product(a: u64, b: u64) -> u64 {
    if a == 0 || b == 0 {
        return 0;
    }
    let zeros = a.trailing_zeros() + b.trailing_zeros();
    u64::MAX.checked_shl(zeros).unwrap_or(0)
}

/// Bits that the quotient of a signed number by 2^`by` can have: where nothing is left over, the zeros below move down. Which way
/// others are rounded is not asked.
fn exact_quotient(a: u64, by: u32) -> u64 {
    match a {
        0 => 0,
        _ => u64::MAX << a.trailing_zeros().saturating_sub(by),
    }
}

/// The mask of a width of `bits`.
fn width(bits: u32) -> u64 {
    if bits >= 64 {
        u64::MAX
    } else {
        (1 << bits) - 1
    }
}

impl PossibleBits {
    /// The bits of `value` that can be one.
    pub(super) fn get(&self, value: Value) -> u64 {
        self.masks[value].0
    }

    /// States the bits of a value from knowledge that its operands do not give.
    pub(super) fn set(&mut self, value: Value, mask: u64) {
        self.masks[value] = Mask(mask);
        self.ranges.set(value, None);
    }

    /// States the numbers that a value can be, of which the bits are known already.
    pub(super) fn set_range(&mut self, value: Value, range: Range) {
        self.ranges.set(value, Some(range));
    }

    /// Forgets the values from this number on.
    pub(super) fn forget(&mut self, values: u32) {
        shorten(&mut self.masks, values);
        self.ranges.forget(values);
    }

    /// Number of low bits that are zero.
    pub(super) fn trailing_zeros(&self, value: Value) -> u32 {
        self.get(value).trailing_zeros()
    }

    /// `offset` in two summands. The second can be added behind a widening of `value`, which is `bits` wide, as well as in front of it: it only
    /// sets bits that are zero, the sign apart, or the sum does not wrap, as signed numbers if `has_sign`, else as unsigned ones. It is all of the
    /// offset where that is so, else what lies below the lowest bit that the value can have.
    pub(super) fn without_carry(
        &self,
        value: Value,
        offset: i64,
        bits: u32,
        has_sign: bool,
    ) -> (i64, i64) {
        if self.ranges.adds(value, offset, bits, has_sign) {
            return (0, offset);
        }
        let possible = self.get(value);
        if offset >= 0 && offset < (1 << (bits - 1).min(62)) && possible & offset as u64 == 0 {
            return (0, offset);
        }
        let free = possible.trailing_zeros().min(bits - 1).min(62);
        let low = offset & ((1 << free) - 1);
        (offset.wrapping_sub(low), low)
    }

    /// Derives the mask of a value that an instruction just made.
    pub(super) fn derive(&mut self, func: &ThreadFunction, value: Value, num_threads: u32) {
        let dfg = &func.dfg;
        let Some(inst) = dfg.def_inst(value) else {
            return;
        };
        let data = &dfg.insts[inst];
        let ty = dfg.ty(value);
        if !(ty.elem.is_int() || ty.elem.is_ptr()) {
            return;
        }
        let arg = |i: usize| self.get(data.args[i]);
        let arg_width = |i: usize| width(dfg.ty(data.args[i]).elem.bits());
        let shift = || constant(func, data.args[1]).and_then(|c| u32::try_from(c).ok());
        let mask = match data.op {
            ThreadOp::Const => data.value().copied().unwrap_or(u64::MAX),
            ThreadOp::Splat => arg(0),
            ThreadOp::Rearrange => (0..data.args.len()).fold(0, |all, i| all | arg(i)),
            ThreadOp::Iadd => sum(arg(0), arg(1)),
            ThreadOp::Isub => difference(arg(0), arg(1)),
            // A multiple of what divides both.
            ThreadOp::Urem | ThreadOp::Srem => {
                u64::MAX << (arg(0) | arg(1)).trailing_zeros().min(63)
            }
            ThreadOp::Imul => product(arg(0), arg(1)),
            ThreadOp::And => arg(0) & arg(1),
            ThreadOp::Or | ThreadOp::Xor => arg(0) | arg(1),
            ThreadOp::Select => arg(1) | arg(2),
            ThreadOp::Smin | ThreadOp::Smax | ThreadOp::Umin | ThreadOp::Umax => arg(0) | arg(1),
            ThreadOp::Sdiv => match power_of_two(func, data.args[1]) {
                Some(by) => exact_quotient(arg(0), by),
                None => u64::MAX,
            },
            ThreadOp::Udiv => match power_of_two(func, data.args[1]) {
                Some(by) => (arg(0) & arg_width(0)).checked_shr(by).unwrap_or(0),
                None => u64::MAX,
            },
            ThreadOp::Shl => match shift() {
                Some(by) => arg(0).checked_shl(by).unwrap_or(0),
                None => u64::MAX << arg(0).trailing_zeros().min(63),
            },
            ThreadOp::Ushr => match shift() {
                Some(by) => (arg(0) & arg_width(0)).checked_shr(by).unwrap_or(0),
                None => u64::MAX,
            },
            ThreadOp::Sshr => match shift() {
                Some(by) => exact_quotient(arg(0), by),
                None => u64::MAX,
            },
            ThreadOp::Zext | ThreadOp::Itrunc | ThreadOp::PtrCast => arg(0) & arg_width(0),
            ThreadOp::Sext => sign_extended(arg(0), dfg.ty(data.args[0]).elem.bits()),
            ThreadOp::Addptr => {
                let scale = ty.elem.pointee().map_or(1, |p| p.bytes());
                let index = sign_extended(arg(1), dfg.ty(data.args[1]).elem.bits());
                sum(arg(0), index << scale.trailing_zeros())
            }
            ThreadOp::Special => match data.reg() {
                Some(SpecialReg::Tid) => u64::from(num_threads.next_power_of_two() - 1),
                Some(SpecialReg::Lane) => 31,
                // A grid has fewer than 2^31 programs along x and 2^16 along the others.
                Some(SpecialReg::ProgramX | SpecialReg::ProgramsX) => width(31),
                Some(_) => width(16),
                None => u64::MAX,
            },
            _ => u64::MAX,
        };
        let mask = mask & width(ty.elem.bits());
        self.set(value, mask);
        if ty.elem.is_int() {
            self.ranges.derive(func, value, mask);
        }
    }
}

/// The exponent of a constant that is a power of two, and positive as a signed number.
fn power_of_two(func: &ThreadFunction, value: Value) -> Option<u32> {
    let number = constant(func, value).filter(|&number| number > 0)?;
    let power = number.unsigned_abs();
    power.is_power_of_two().then(|| power.trailing_zeros())
}

/// Bits of a number of `bits` bits after sign extension.
fn sign_extended(mask: u64, bits: u32) -> u64 {
    let mask = mask & width(bits);
    if bits < 64 && mask >> (bits - 1) & 1 == 1 {
        mask | !width(bits)
    } else {
        mask
    }
}

/// The number a value is, if it is constant; sign-extended from its width.
pub(super) fn constant(func: &ThreadFunction, value: Value) -> Option<i64> {
    let inst = func.dfg.def_inst(value)?;
    let data = &func.dfg.insts[inst];
    if data.op != ThreadOp::Const {
        return None;
    }
    let bits = func.dfg.ty(value).elem.bits();
    let raw = *data.value()?;
    Some(sign_extend(raw, bits))
}

/// The number whose low `bits` bits are those of `raw`.
pub(super) fn sign_extend(raw: u64, bits: u32) -> i64 {
    let unused = 64 - bits.clamp(1, 64);
    ((raw << unused) as i64) >> unused
}

#[cfg(test)]
mod tests {
    use cranelift_entity::EntityRef;

    use super::*;

    #[test]
    fn sums_without_common_bits_do_not_carry() {
        assert_eq!(sum(0b1100, 0b0011), 0b1111);
        assert_eq!(sum(0b1100, 0b0110), u64::MAX << 1);
        for a in 0..16u64 {
            for b in 0..16u64 {
                assert_eq!((a + b) & !sum(a, b), 0, "{a} + {b}");
                assert_eq!((a * b) & !product(a, b), 0, "{a} * {b}");
                assert_eq!(a.wrapping_sub(b) & !difference(a, b), 0, "{a} - {b}");
            }
        }
    }

    #[test]
    fn quotients_keep_the_zeros_of_multiples() {
        for by in 0..4 {
            for zeros in 0..6 {
                let mask = exact_quotient(u64::MAX << zeros, by);
                for i in -40i64..40 {
                    let number = i << zeros;
                    let [down, to_zero] = [number >> by, number / (1 << by)];
                    assert_eq!(down as u64 & !mask, 0, "{number} >> {by}");
                    assert_eq!(to_zero as u64 & !mask, 0, "{number} / 2^{by}");
                }
            }
        }
        assert_eq!(exact_quotient(0, 3), 0);
    }

    #[test]
    fn offsets_come_apart_where_nothing_carries() {
        let mut bits = PossibleBits::default();
        let value = Value::new(0);
        bits.set(value, u64::MAX << 4);
        for (offset, expected) in [
            (3, (0, 3)),
            (16, (16, 0)),
            (65_539, (65_536, 3)),
            (-1, (-16, 15)),
            (i64::from(i32::MAX), (i64::from(i32::MAX) - 15, 15)),
        ] {
            let (kept, free) = bits.without_carry(value, offset, 32, true);
            assert_eq!((kept, free), expected, "{offset}");
            // Whatever the value is, the sum wraps before the second part comes in.
            for x in [0i32, 16, -16, i32::MAX - 15, i32::MIN] {
                let whole = x.wrapping_add(offset as i32);
                let first = x.wrapping_add(kept as i32);
                assert_eq!(i64::from(whole), i64::from(first) + free, "{x} + {offset}");
            }
        }
        bits.set(value, 0b1100);
        for width in [32, 64] {
            assert_eq!(
                bits.without_carry(value, 0b10011, width, true),
                (0, 0b10011)
            );
        }
    }

    #[test]
    fn extension_keeps_the_sign_possible() {
        assert_eq!(sign_extended(0x8000_0000, 32), 0xffff_ffff_8000_0000);
        assert_eq!(sign_extended(0x7fff_fff0, 32), 0x7fff_fff0);
        assert_eq!(sign_extend(0xff, 8), -1);
    }
}
