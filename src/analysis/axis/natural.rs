//! Which numbers are not negative, proved: how far they reach, whatever wraps around.
//!
//! Indices of programs, ranges and counters of loops are natural, and so are their sums and products as long as these fit; nothing is
//! promised of arguments. That arguments are not negative would not prove more of most: `tl.cdiv(n, 128)` of the largest number is
//! negative, as the sum in it wraps around.

use cranelift_entity::SecondaryMap;

use super::AxisInfo;
use super::transfer::signed;
use crate::grid::LIMITS;
use crate::ir::attrs::Attrs;
use crate::ir::dfg::InstData;
use crate::ir::entities::Value;
use crate::ir::function::TileFunction;
use crate::ir::level::Tile;
use crate::ir::ops::TileOp;
use crate::ir::types::{Elem, TileType};

/// How far what is one or the other reaches.
pub(super) fn either(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    Some(a?.max(b?))
}

/// How far the counter of a loop reaches, of its bounds and its step: of steps that are known it takes no more than fit below the end.
pub(super) fn counter([lo, hi, step]: [&AxisInfo; 3], elem: Elem) -> Option<u64> {
    lo.natural?;
    let Some(hi) = hi.natural else {
        return largest(elem);
    };
    let last = hi.saturating_sub(1);
    let steps = || {
        let [lo, step] = [lo.constant?, step.constant?].map(u64::try_from);
        let (lo, step) = (lo.ok()?, step.ok()?);
        Some(lo + last.checked_sub(lo)?.checked_div(step)? * step)
    };
    Some(steps().unwrap_or(last))
}

/// The largest signed number.
fn largest(elem: Elem) -> Option<u64> {
    let has_sign = elem.is_int() && elem != Elem::I1;
    has_sign.then(|| u64::MAX >> (65 - elem.bits()))
}

/// The largest number with no more bits.
fn with_all_bits(a: u64) -> u64 {
    u64::MAX.checked_shr(a.leading_zeros()).unwrap_or(0)
}

/// How far a result reaches if it is not negative.
pub(super) fn of_result(
    func: &TileFunction,
    infos: &SecondaryMap<Value, AxisInfo>,
    data: &InstData<Tile>,
    ty: &TileType,
) -> Option<u64> {
    let largest = largest(ty.elem)?;
    let arg = |i: usize| infos[data.args[i]].natural;
    // What is shifted or divided by, if it is known.
    let by = |i: usize| u64::try_from(infos[data.args[i]].constant?).ok();
    let all_bits = |i: usize| u64::MAX >> (64 - func.dfg.ty(data.args[i]).elem.bits().max(1));
    let less = |a: Option<u64>, b: Option<u64>| match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    };
    // A remainder is below what is divided by.
    let below = |i: usize| Some(arg(i)?.saturating_sub(1));
    let axis = || LIMITS.get(usize::from(data.axis().copied()?)).copied();
    let reach = match data.op {
        TileOp::Srem | TileOp::Udiv | TileOp::Urem if data.natural().is_some() => {
            Some(arg(0).unwrap_or(largest))
        }
        TileOp::Const => u64::try_from(signed(data.value().copied()?, ty.elem)).ok(),
        TileOp::Arange => {
            let first = u64::try_from(data.start().copied()?).ok()?;
            Some(first + ty.shape.elements() as u64 - 1)
        }
        TileOp::ProgramId => Some(u64::from(axis()?) - 1),
        TileOp::NumPrograms => Some(u64::from(axis()?)),
        TileOp::CtaId | TileOp::NumCtas => Some(largest),
        TileOp::Splat
        | TileOp::ExpandDims
        | TileOp::Broadcast
        | TileOp::Reshape
        | TileOp::Permute
        | TileOp::Split
        | TileOp::Gather
        | TileOp::ConvertLayout
        | TileOp::AssumeMultiple
        | TileOp::AssumeContiguous
        | TileOp::AssumeConstant
        | TileOp::Sext
        | TileOp::Itrunc => arg(0),
        TileOp::Zext => arg(0).or(Some(all_bits(0))),
        TileOp::Join | TileOp::Umax => either(arg(0), arg(1)),
        TileOp::Select => either(arg(1), arg(2)),
        TileOp::Smax => match (arg(0), arg(1)) {
            (None, None) => None,
            both => either(both.0, both.1).or(Some(largest)),
        },
        TileOp::Smin => Some(arg(0)?.min(arg(1)?)),
        TileOp::Umin | TileOp::And => less(arg(0), arg(1)),
        TileOp::Or | TileOp::Xor => either(arg(0), arg(1)).map(with_all_bits),
        TileOp::Iadd => arg(0)?.checked_add(arg(1)?),
        TileOp::Imul => arg(0)?.checked_mul(arg(1)?),
        TileOp::Shl => {
            let by = u32::try_from(by(1)?).ok()?;
            arg(0)?.checked_mul(1_u64.checked_shl(by)?)
        }
        TileOp::Sshr => Some(arg(0)?.checked_shr(by(1).unwrap_or(0) as u32).unwrap_or(0)),
        TileOp::Ushr => {
            let by = u32::try_from(by(1).unwrap_or(0)).ok()?;
            let number = arg(0).unwrap_or(all_bits(0));
            Some(number.checked_shr(by).unwrap_or(0))
        }
        TileOp::Sdiv => {
            arg(1)?;
            Some(arg(0)? / by(1).unwrap_or(1).max(1))
        }
        TileOp::Udiv => {
            let number = arg(0).unwrap_or(all_bits(0));
            Some(number / by(1).unwrap_or(1).max(1))
        }
        TileOp::Srem => {
            let number = arg(0)?;
            less(Some(number), below(1))
        }
        TileOp::Urem => less(arg(0), below(1)),
        _ => None,
    };
    reach.filter(|&reach| reach <= largest)
}
