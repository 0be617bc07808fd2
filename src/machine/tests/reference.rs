//! What each op means for one element, in plain Rust over bits: the expected values of the tests.

use crate::ir::attrs::{Attr, Attrs, FloatPred, IntPred, NanRule, Rounding};
use crate::ir::ops::ThreadOp;
use crate::ir::types::Scalar;
use crate::num::{self, Format, Int, Overflow};

struct List<'a>(&'a [Attr]);

impl Attrs for List<'_> {
    fn attrs(&self) -> &[Attr] {
        self.0
    }
}

/// The format of a float.
fn format(s: Scalar) -> Option<Format> {
    match s {
        Scalar::F16 => Some(Format::F16),
        Scalar::Bf16 => Some(Format::BF16),
        Scalar::F32 => Some(Format::F32),
        Scalar::F64 => Some(Format::F64),
        Scalar::F8E4M3 => Some(Format::E4M3),
        Scalar::F8E5M2 => Some(Format::E5M2),
        _ => None,
    }
}

/// Whether bits are a NaN of a type.
pub(super) fn is_nan(s: Scalar, bits: u64) -> bool {
    format(s).is_some_and(|f| f.to_f64(bits).is_nan())
}

fn low(s: Scalar, bits: u64) -> u64 {
    bits & u64::MAX >> (64 - s.bits())
}

fn signed(s: Scalar, bits: u64) -> i64 {
    let unused = 64 - s.bits();
    (bits << unused) as i64 >> unused
}

fn narrow(s: Scalar, x: f64, rounding: num::Rounding) -> u64 {
    let overflow = if s.bits() == 8 {
        Overflow::Finite
    } else {
        Overflow::Ieee
    };
    format(s).map_or(0, |f| f.from_f64(x, rounding, overflow))
}

fn wide(s: Scalar, bits: u64) -> f64 {
    format(s).map_or(0.0, |f| f.to_f64(bits))
}

/// The bits of a result element; none where the result is unspecified.
pub(super) fn eval(
    op: ThreadOp,
    attrs: &[Attr],
    from: Scalar,
    to: Scalar,
    args: &[u64],
) -> Option<u64> {
    let attrs = List(attrs);
    let a = args.first().copied().unwrap_or(0);
    let b = args.get(1).copied().unwrap_or(0);
    let c = args.get(2).copied().unwrap_or(0);
    let (sa, sb) = (signed(from, a), signed(from, b));
    let bits = u64::from(from.bits());
    let rn = num::Rounding::NearestEven;
    let float = |x: f64| narrow(to, x, rn);
    let (fa, fb) = (wide(from, a), wide(from, b));
    let result = match op {
        ThreadOp::Iadd => a.wrapping_add(b),
        ThreadOp::Isub => a.wrapping_sub(b),
        ThreadOp::Imul => a.wrapping_mul(b),
        ThreadOp::Sdiv | ThreadOp::Srem
            if sb == 0 || (sb == -1 && sa == signed(from, 1 << (bits - 1))) =>
        {
            return None;
        }
        ThreadOp::Udiv | ThreadOp::Urem if b == 0 => return None,
        ThreadOp::Sdiv => (sa / sb) as u64,
        ThreadOp::Srem => (sa % sb) as u64,
        ThreadOp::Udiv => a / b,
        ThreadOp::Urem => a % b,
        ThreadOp::Smin => sa.min(sb) as u64,
        ThreadOp::Smax => sa.max(sb) as u64,
        ThreadOp::Umin => a.min(b),
        ThreadOp::Umax => a.max(b),
        ThreadOp::Smulhi => ((i128::from(sa) * i128::from(sb)) >> bits) as u64,
        ThreadOp::Umulhi => ((u128::from(a) * u128::from(b)) >> bits) as u64,
        ThreadOp::Iabs => sa.unsigned_abs(),
        ThreadOp::Popc => u64::from(a.count_ones()),
        ThreadOp::Clz => u64::from(a.leading_zeros()) + bits - 64,
        ThreadOp::Brev => a.reverse_bits() >> (64 - bits),
        ThreadOp::BytePerm => {
            let bytes = [a as u32, b as u32].map(u32::to_le_bytes).concat();
            let byte = |i: usize| match (c >> (4 * i) & 8, bytes[(c >> (4 * i) & 7) as usize]) {
                (0, byte) => byte,
                (_, byte) => 0xff * (byte >> 7),
            };
            u32::from_le_bytes(std::array::from_fn(byte)).into()
        }
        ThreadOp::And => a & b,
        ThreadOp::Or => a | b,
        ThreadOp::Xor => a ^ b,
        ThreadOp::Shl => {
            if b < bits {
                a << b
            } else {
                0
            }
        }
        ThreadOp::Ushr => {
            if b < bits {
                a >> b
            } else {
                0
            }
        }
        ThreadOp::Sshr => (sa >> b.min(bits - 1)) as u64,
        ThreadOp::Icmp => u64::from(match attrs.ipred()? {
            IntPred::Eq => a == b,
            IntPred::Ne => a != b,
            IntPred::Slt => sa < sb,
            IntPred::Sle => sa <= sb,
            IntPred::Sgt => sa > sb,
            IntPred::Sge => sa >= sb,
            IntPred::Ult => a < b,
            IntPred::Ule => a <= b,
            IntPred::Ugt => a > b,
            IntPred::Uge => a >= b,
        }),
        ThreadOp::Fcmp => u64::from(match (attrs.fpred()?, fa.partial_cmp(&fb)) {
            (FloatPred::Ord, order) => order.is_some(),
            (FloatPred::Uno, order) => order.is_none(),
            (
                FloatPred::Oeq
                | FloatPred::One
                | FloatPred::Olt
                | FloatPred::Ole
                | FloatPred::Ogt
                | FloatPred::Oge,
                None,
            ) => false,
            (_, None) => true,
            (FloatPred::Oeq | FloatPred::Ueq, Some(o)) => o.is_eq(),
            (FloatPred::One | FloatPred::Une, Some(o)) => o.is_ne(),
            (FloatPred::Olt | FloatPred::Ult, Some(o)) => o.is_lt(),
            (FloatPred::Ole | FloatPred::Ule, Some(o)) => o.is_le(),
            (FloatPred::Ogt | FloatPred::Ugt, Some(o)) => o.is_gt(),
            (FloatPred::Oge | FloatPred::Uge, Some(o)) => o.is_ge(),
        }),
        ThreadOp::Select => {
            if a & 1 != 0 {
                b
            } else {
                c
            }
        }
        ThreadOp::Fneg => a ^ 1 << (bits - 1),
        ThreadOp::Fabs => a & !(1 << (bits - 1)),
        ThreadOp::Fadd | ThreadOp::Fsub | ThreadOp::Fmul | ThreadOp::Fma => {
            arithmetic(op, from, a, b, c)
        }
        ThreadOp::Fmin | ThreadOp::Fmax => {
            let propagate = attrs.nan() == Some(&NanRule::Propagate);
            float(match (op == ThreadOp::Fmin, propagate) {
                (true, false) => num::min64(fa, fb),
                (true, true) => num::min_nan64(fa, fb),
                (false, false) => num::max64(fa, fb),
                (false, true) => num::max_nan64(fa, fb),
            })
        }
        ThreadOp::Fdiv | ThreadOp::FdivRn => match from {
            Scalar::F32 => u64::from(num::div(fa as f32, fb as f32, rn).to_bits()),
            _ => (fa / fb).to_bits(),
        },
        ThreadOp::Exp2 => float(fa.exp2()),
        ThreadOp::Log2Approx => float(fa.log2()),
        ThreadOp::SinApprox => float(fa.sin()),
        ThreadOp::CosApprox => float(fa.cos()),
        ThreadOp::SqrtRn => float(fa.sqrt()),
        ThreadOp::Trunc => float(fa.trunc()),
        ThreadOp::Copysign => a & !(1 << (bits - 1)) | b & 1 << (bits - 1),
        // Subnormal arguments count as zero.
        ThreadOp::Rsqrt => float(1.0 / f64::from(num::ftz(fa as f32)).sqrt()),
        ThreadOp::Sqrt if from == Scalar::F64 => float(fa.sqrt()),
        ThreadOp::Sqrt => float(f64::from(num::ftz(fa as f32)).sqrt()),
        ThreadOp::Rcp => float(1.0 / fa),
        ThreadOp::RcpFtz => {
            let y = (1.0 / f64::from(num::ftz(fa as f32))) as f32;
            u64::from(num::ftz(y).to_bits())
        }
        ThreadOp::Floor => float(fa.floor()),
        ThreadOp::Ceil => float(fa.ceil()),
        ThreadOp::Rint => float(fa.round_ties_even()),
        ThreadOp::Sext => sa as u64,
        ThreadOp::Zext | ThreadOp::Itrunc | ThreadOp::Bitcast => a,
        ThreadOp::Sitofp | ThreadOp::Uitofp => {
            let int = Int {
                signed: op == ThreadOp::Sitofp,
                bits: 64,
            };
            let raw = if int.signed { sa as u64 } else { a };
            num::int_to_float(raw, int, format(to)?, rn)
        }
        ThreadOp::Fptosi | ThreadOp::Fptoui => {
            let int = Int {
                signed: op == ThreadOp::Fptosi,
                bits: to.bits(),
            };
            num::float_to_saturated(fa, int, from == Scalar::F64)
        }
        ThreadOp::Fpext => float(fa),
        ThreadOp::Fptrunc => match attrs.round()? {
            Rounding::Nearest => float(fa),
            Rounding::Zero => narrow(to, fa, num::Rounding::Zero),
        },
        _ => return None,
    };
    Some(low(to, result))
}

fn arithmetic(op: ThreadOp, s: Scalar, a: u64, b: u64, c: u64) -> u64 {
    let rn = num::Rounding::NearestEven;
    match s {
        Scalar::F16 | Scalar::Bf16 => {
            let (x, y, z) = (a as u16, b as u16, c as u16);
            u64::from(match (op, s) {
                (ThreadOp::Fadd, Scalar::F16) => num::f16::add(x, y),
                (ThreadOp::Fsub, Scalar::F16) => num::f16::sub(x, y),
                (ThreadOp::Fmul, Scalar::F16) => num::f16::mul(x, y),
                (_, Scalar::F16) => num::f16::fma(x, y, z),
                (ThreadOp::Fadd, _) => num::bf16::add(x, y),
                (ThreadOp::Fsub, _) => num::bf16::sub(x, y),
                (ThreadOp::Fmul, _) => num::bf16::mul(x, y),
                _ => num::bf16::fma(x, y, z),
            })
        }
        Scalar::F32 => {
            let [x, y, z] = [a, b, c].map(|v| f32::from_bits(v as u32));
            u64::from(
                match op {
                    ThreadOp::Fadd => num::add(x, y, rn),
                    ThreadOp::Fsub => num::sub(x, y, rn),
                    ThreadOp::Fmul => num::mul(x, y, rn),
                    _ => num::fma(x, y, z, rn),
                }
                .to_bits(),
            )
        }
        _ => {
            let [x, y, z] = [a, b, c].map(f64::from_bits);
            match op {
                ThreadOp::Fadd => x + y,
                ThreadOp::Fsub => x - y,
                ThreadOp::Fmul => x * y,
                _ => x.mul_add(y, z),
            }
            .to_bits()
        }
    }
}
