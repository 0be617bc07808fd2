//! Constant folding: what an elementwise op gives for known operands, by the number formats of [`num`].
//!
//! Only ops that the IR defines to the bit are folded, not those with an error bound, and not where the
//! result is unspecified (division by zero).

use crate::ir::attrs::{Attrs, NanRule, Rounding};
use crate::ir::dfg::InstData;
use crate::ir::level::Tile;
use crate::ir::ops::TileOp;
use crate::ir::types::{Elem, Scalar};
use crate::num::{self, Int, bf16, f16};

/// A number as bits, with its element type.
pub(super) type TypedBits = (u64, Elem);

/// The bits as a signed number.
pub(super) fn signed((bits, elem): TypedBits) -> i64 {
    let unused = 64 - elem.bits().clamp(1, 64);
    ((bits << unused) as i64) >> unused
}

/// The result bits, if all operands are known and the result is certain.
pub(super) fn fold(data: &InstData<Tile>, args: &[TypedBits], to: Elem) -> Option<u64> {
    let first = *args.first()?;
    let second = args.get(1).copied().unwrap_or(first);
    let bits = match first.1.scalar()? {
        Scalar::I1 | Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::I64 => {
            integer(data, first, second, to)?
        }
        Scalar::F16 | Scalar::Bf16 | Scalar::F32 | Scalar::F64 => float(data, args, to)?,
        Scalar::F8E4M3 | Scalar::F8E5M2 => match data.op {
            TileOp::Fpext => from_f64(to_f64(first)?, to, num::Rounding::NearestEven)?,
            TileOp::Bitcast => first.0,
            _ => return None,
        },
    };
    Some(bits & to.mask())
}

fn integer(data: &InstData<Tile>, a: TypedBits, b: TypedBits, to: Elem) -> Option<u64> {
    let (x, y) = (a.0, b.0);
    let (sx, sy) = (signed(a), signed(b));
    let width = u64::from(a.1.bits());
    let lowest = -1i64 << (width - 1);
    let divides = y != 0;
    Some(match data.op {
        TileOp::Iadd => x.wrapping_add(y),
        TileOp::Isub => x.wrapping_sub(y),
        TileOp::Imul => x.wrapping_mul(y),
        TileOp::Sdiv if divides && !(sx == lowest && sy == -1) => (sx / sy) as u64,
        TileOp::Srem if divides && !(sx == lowest && sy == -1) => (sx % sy) as u64,
        TileOp::Udiv if divides => x / y,
        TileOp::Urem if divides => x % y,
        TileOp::Smin => sx.min(sy) as u64,
        TileOp::Smax => sx.max(sy) as u64,
        TileOp::Umin => x.min(y),
        TileOp::Umax => x.max(y),
        TileOp::And => x & y,
        TileOp::Or => x | y,
        TileOp::Xor => x ^ y,
        TileOp::Shl => {
            if y < width {
                x << y
            } else {
                0
            }
        }
        TileOp::Ushr => {
            if y < width {
                x >> y
            } else {
                0
            }
        }
        TileOp::Sshr => (sx >> y.min(width - 1)) as u64,
        TileOp::Smulhi => ((i128::from(sx) * i128::from(sy)) >> width) as u64,
        TileOp::Umulhi => ((u128::from(x) * u128::from(y)) >> width) as u64,
        TileOp::Iabs => sx.wrapping_abs() as u64,
        TileOp::Popc => u64::from(x.count_ones()),
        TileOp::Clz => u64::from(x.leading_zeros()) + width - 64,
        TileOp::Brev => x.reverse_bits() >> (64 - width),
        TileOp::Icmp => u64::from(data.ipred()?.compare(a.1.bits(), a.0, b.0)),
        TileOp::Sext => sx as u64,
        TileOp::Zext | TileOp::Itrunc | TileOp::Bitcast | TileOp::Rare => x,
        TileOp::Sitofp | TileOp::Uitofp => {
            let from = if data.op == TileOp::Sitofp {
                sx
            } else {
                x as i64
            };
            let signed = data.op == TileOp::Sitofp;
            let from_type = Int { signed, bits: 64 };
            let format = to.scalar()?.format()?;
            num::int_to_float(from as u64, from_type, format, num::Rounding::NearestEven)
        }
        _ => return None,
    })
}

/// The exact value.
fn to_f64((bits, elem): TypedBits) -> Option<f64> {
    elem.scalar()?.format().map(|format| format.to_f64(bits))
}

fn from_f64(x: f64, elem: Elem, rounding: num::Rounding) -> Option<u64> {
    elem.scalar()?
        .format()
        .map(|format| format.from_f64(x, rounding, format.overflow()))
}

/// A binary operation in each format.
macro_rules! per_format {
    ($elem:expr, $a:expr, $b:expr, $narrow:ident, $f32:expr, $f64:expr) => {
        match $elem.scalar()? {
            Scalar::F16 => u64::from(f16::$narrow($a as u16, $b as u16)),
            Scalar::Bf16 => u64::from(bf16::$narrow($a as u16, $b as u16)),
            Scalar::F32 => {
                let (a, b) = (f32::from_bits($a as u32), f32::from_bits($b as u32));
                u64::from($f32(a, b).to_bits())
            }
            Scalar::F64 => $f64(f64::from_bits($a), f64::from_bits($b)).to_bits(),
            _ => return None,
        }
    };
}

fn float(data: &InstData<Tile>, args: &[TypedBits], to: Elem) -> Option<u64> {
    const NEAREST: num::Rounding = num::Rounding::NearestEven;
    let (x, elem) = args[0];
    let y = args.get(1).map_or(x, |b| b.0);
    let sign = 1u64 << (elem.bits() - 1);
    let propagates = data.nan() == Some(&NanRule::Propagate);
    Some(match data.op {
        TileOp::Fadd => per_format!(
            elem,
            x,
            y,
            add,
            |a, b| num::add(a, b, NEAREST),
            |a: f64, b| num::canonical64(a + b)
        ),
        TileOp::Fsub => per_format!(
            elem,
            x,
            y,
            sub,
            |a, b| num::sub(a, b, NEAREST),
            |a: f64, b| num::canonical64(a - b)
        ),
        TileOp::Fmul => per_format!(
            elem,
            x,
            y,
            mul,
            |a, b| num::mul(a, b, NEAREST),
            |a: f64, b| num::canonical64(a * b)
        ),
        TileOp::Fdiv | TileOp::FdivRn => per_format!(
            elem,
            x,
            y,
            div,
            |a, b| num::div(a, b, NEAREST),
            |a: f64, b| num::canonical64(a / b)
        ),
        TileOp::Fmin if propagates => {
            per_format!(elem, x, y, min_nan, num::min_nan, num::min_nan64)
        }
        TileOp::Fmin => per_format!(elem, x, y, min, num::min, num::min64),
        TileOp::Fmax if propagates => {
            per_format!(elem, x, y, max_nan, num::max_nan, num::max_nan64)
        }
        TileOp::Fmax => per_format!(elem, x, y, max, num::max, num::max64),
        TileOp::Fneg => x ^ sign,
        TileOp::Fabs => x & !sign,
        TileOp::Copysign => (x & !sign) | (y & sign),
        TileOp::Trunc => integral(args[0], to, num::Rounding::Zero)?,
        TileOp::SqrtRn => match elem.scalar()? {
            Scalar::F32 => u64::from(num::sqrt(f32::from_bits(x as u32), NEAREST).to_bits()),
            _ => num::canonical64(f64::from_bits(x).sqrt()).to_bits(),
        },
        TileOp::Bitcast => x,
        TileOp::Fcmp => {
            let (a, b) = (to_f64(args[0])?, to_f64(*args.get(1)?)?);
            u64::from(data.fpred()?.holds(a.partial_cmp(&b)))
        }
        TileOp::Floor => integral(args[0], to, num::Rounding::Down)?,
        TileOp::Ceil => integral(args[0], to, num::Rounding::Up)?,
        TileOp::Rint => integral(args[0], to, NEAREST)?,
        TileOp::Fpext => from_f64(to_f64(args[0])?, to, NEAREST)?,
        TileOp::Fptrunc => {
            let rounding = match data.round()? {
                Rounding::Nearest => NEAREST,
                Rounding::Zero => num::Rounding::Zero,
            };
            from_f64(to_f64(args[0])?, to, rounding)?
        }
        TileOp::Fptosi | TileOp::Fptoui => {
            let int = Int {
                signed: data.op == TileOp::Fptosi,
                bits: to.bits(),
            };
            let wide = elem == Elem::F64;
            num::float_to_saturated(to_f64(args[0])?, int, wide)
        }
        _ => return None,
    })
}

fn integral(x: TypedBits, to: Elem, rounding: num::Rounding) -> Option<u64> {
    let rounded = num::round_to_integral(to_f64(x)?, rounding);
    from_f64(rounded, to, num::Rounding::NearestEven)
}
