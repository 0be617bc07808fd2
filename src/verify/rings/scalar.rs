//! Numbers of an execution without blocks: those that follow from others, and those that are chosen.

use crate::ir::attrs::Attrs;
use crate::ir::dfg::InstData;
use crate::ir::level::Tile;
use crate::ir::ops::TileOp;

/// A value of an execution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Held {
    /// A number, an address, the number of a group, a product or a fill; of a block that is not known, a name that depends on what it
    /// is computed from alone.
    pub(super) bits: u64,
    /// Whether it is the number, which all elements of a block are.
    pub(super) is_known: bool,
}

impl Held {
    pub(super) fn number(bits: u64) -> Held {
        Held {
            bits,
            is_known: true,
        }
    }

    pub(super) fn name(bits: u64) -> Held {
        Held {
            bits,
            is_known: false,
        }
    }
}

/// `x` without the bits above the width.
pub(super) fn low(bits: u32, x: u64) -> u64 {
    x & (u64::MAX >> (64 - bits))
}

/// `x` as a signed number.
pub(super) fn signed(bits: u32, x: u64) -> i64 {
    (x << (64 - bits)) as i64 >> (64 - bits)
}

/// What an op makes of numbers of so many bits, if it is one of those that indices, phases and conditions are computed with.
pub(super) fn evaluate(data: &InstData<Tile>, width: u32, args: &[Held]) -> Option<u64> {
    let known = |i: usize| args.get(i).filter(|held| held.is_known);
    // These need not know all they are given.
    match (data.op, known(0), known(1)) {
        (TileOp::And, Some(Held { bits: 0, .. }), _)
        | (TileOp::And, _, Some(Held { bits: 0, .. })) => return Some(0),
        (TileOp::Select, Some(cond), _) => {
            let chosen = args.get(if cond.bits == 1 { 1 } else { 2 })?;
            return chosen.is_known.then_some(chosen.bits);
        }
        _ => {}
    }
    let a = known(0)?.bits;
    let unary = match data.op {
        TileOp::Splat
        | TileOp::Broadcast
        | TileOp::ExpandDims
        | TileOp::Reshape
        | TileOp::Permute
        | TileOp::Zext
        | TileOp::Itrunc
        | TileOp::AssumeMultiple
        | TileOp::AssumeContiguous
        | TileOp::AssumeConstant
        | TileOp::Rare => Some(a),
        TileOp::Sext => Some(signed(width, a) as u64),
        TileOp::Iabs => Some(signed(width, a).unsigned_abs()),
        _ => None,
    };
    if unary.is_some() {
        return unary;
    }
    let b = known(1)?.bits;
    let (sa, sb) = (signed(width, a), signed(width, b));
    let shift = b < u64::from(width);
    Some(match data.op {
        TileOp::Iadd => a.wrapping_add(b),
        TileOp::Isub => a.wrapping_sub(b),
        TileOp::Imul => a.wrapping_mul(b),
        TileOp::Sdiv => sa.checked_div(sb)? as u64,
        TileOp::Udiv => a.checked_div(b)?,
        TileOp::Srem => sa.checked_rem(sb)? as u64,
        TileOp::Urem => a.checked_rem(b)?,
        TileOp::Smin => sa.min(sb) as u64,
        TileOp::Smax => sa.max(sb) as u64,
        TileOp::Umin => a.min(b),
        TileOp::Umax => a.max(b),
        TileOp::And => a & b,
        TileOp::Or => a | b,
        TileOp::Xor => a ^ b,
        TileOp::Shl if shift => a << b,
        TileOp::Ushr if shift => a >> b,
        TileOp::Sshr if shift => (sa >> b) as u64,
        TileOp::Umulhi => ((u128::from(a) * u128::from(b)) >> width) as u64,
        TileOp::Smulhi => ((i128::from(sa) * i128::from(sb)) >> width) as u64,
        TileOp::Icmp => u64::from(data.ipred()?.compare(width, a, b)),
        _ => return None,
    })
}

/// The next number of a sequence, by its last one.
pub(super) fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// The number of a name: below ten times a power of two that extents of blocks are, so that loops over them run that often.
pub(super) fn chosen(name: u64, divisible: u32) -> u64 {
    const UNITS: [u32; 8] = [0, 0, 3, 4, 5, 5, 6, 7];
    let bits = mix(name);
    let unit = UNITS[(bits >> 32) as usize % UNITS.len()];
    ((bits % 10) << unit).next_multiple_of(u64::from(divisible.max(1)))
}
