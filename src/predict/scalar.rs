//! What an op gives, as far as control flow and addresses need it: on whole numbers, and on the floats by whose reciprocals these
//! are divided.

use crate::ir::attrs::Attrs;
use crate::ir::dfg::InstData;
use crate::ir::level::Thread;
use crate::ir::ops::ThreadOp;

fn signed(bits: u32, x: u64) -> i64 {
    let unused = 64 - bits.clamp(1, 64);
    ((x << unused) as i64) >> unused
}

/// The bits that an op gives for operands of so many bits, those above the result's width `to` to be cut off; none for what is not
/// followed and where the result is unspecified. Reciprocals are the nearest numbers.
pub(super) fn eval(data: &InstData<Thread>, bits: u32, to: u32, args: &[u64]) -> Option<u64> {
    let x = *args.first()?;
    let y = args.get(1).copied().unwrap_or(0);
    let (sx, sy) = (signed(bits, x), signed(bits, y));
    let fits = u64::from(bits);
    let float = |bits: u64| f32::from_bits(bits as u32);
    let whole = |x: f32| u64::from(x.to_bits());
    Some(match data.op {
        ThreadOp::Iadd => x.wrapping_add(y),
        ThreadOp::Isub => x.wrapping_sub(y),
        ThreadOp::Imul => x.wrapping_mul(y),
        ThreadOp::Sdiv => sx.checked_div(sy)? as u64,
        ThreadOp::Srem => sx.checked_rem(sy)? as u64,
        ThreadOp::Udiv => x.checked_div(y)?,
        ThreadOp::Urem => x.checked_rem(y)?,
        ThreadOp::Smin => sx.min(sy) as u64,
        ThreadOp::Smax => sx.max(sy) as u64,
        ThreadOp::Umin => x.min(y),
        ThreadOp::Umax => x.max(y),
        ThreadOp::And => x & y,
        ThreadOp::Or => x | y,
        ThreadOp::Xor => x ^ y,
        ThreadOp::Shl if y < fits => x << y,
        ThreadOp::Ushr if y < fits => x >> y,
        ThreadOp::Shl | ThreadOp::Ushr => 0,
        ThreadOp::Sshr => (sx >> y.min(63)) as u64,
        ThreadOp::Smulhi => ((i128::from(sx) * i128::from(sy)) >> bits) as u64,
        ThreadOp::Umulhi => ((u128::from(x) * u128::from(y)) >> bits) as u64,
        ThreadOp::Iabs => sx.wrapping_abs() as u64,
        ThreadOp::Icmp => u64::from(data.ipred()?.compare(bits, x, y)),
        ThreadOp::Uitofp if to == 32 => whole(x as f32),
        ThreadOp::RcpFtz if bits == 32 => whole(1.0 / float(x)),
        ThreadOp::Fmul if bits == 32 => whole(float(x) * float(y)),
        ThreadOp::Fptoui if (bits, to) == (32, 32) => u64::from(float(x) as u32),
        ThreadOp::Sext => sx as u64,
        ThreadOp::Zext
        | ThreadOp::Itrunc
        | ThreadOp::Bitcast
        | ThreadOp::PtrCast
        | ThreadOp::Rare
        | ThreadOp::Splat
        | ThreadOp::ShflIdx => x,
        ThreadOp::Select => {
            if x != 0 {
                y
            } else {
                *args.get(2)?
            }
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_their_width_and_sign() {
        let of = |op, bits, args: &[u64]| eval(&InstData::new(op, &[]), bits, 32, args);
        let minus_seven = u64::from(-7_i32 as u32);
        for (op, args, expected) in [
            (ThreadOp::Sdiv, [minus_seven, 2], Some(-3_i64 as u64)),
            (ThreadOp::Udiv, [7, 2], Some(3)),
            (ThreadOp::Srem, [minus_seven, 4], Some(-3_i64 as u64)),
            (ThreadOp::Smin, [minus_seven, 2], Some(-7_i64 as u64)),
            (ThreadOp::Umin, [minus_seven, 2], Some(2)),
            (ThreadOp::Shl, [1, 32], Some(0)),
            (ThreadOp::Sshr, [minus_seven, 40], Some(u64::MAX)),
            (ThreadOp::Sext, [minus_seven, 0], Some(-7_i64 as u64)),
            (ThreadOp::Select, [1, 5], Some(5)),
            (ThreadOp::Uitofp, [7, 0], Some(u64::from(7_f32.to_bits()))),
            (
                ThreadOp::RcpFtz,
                [u64::from(8_f32.to_bits()), 0],
                Some(u64::from(0.125_f32.to_bits())),
            ),
            (ThreadOp::Fptoui, [u64::from(7.5_f32.to_bits()), 0], Some(7)),
            // What is unspecified is not known, nor are most floats.
            (ThreadOp::Sdiv, [7, 0], None),
            (ThreadOp::Fadd, [1, 1], None),
        ] {
            assert_eq!(of(op, 32, &args), expected, "{op:?} {args:?}");
        }
    }
}
