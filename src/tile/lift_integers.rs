//! Small whole numbers become floats of 16 bits as mantissas, without a conversion.
//!
//! ```text
//! d = isub a, b : i32                  x = bitcast (itrunc (or a, 0x6400) : i16) : f16
//! y = sitofp d : f16           =>      y = fsub x, bitcast (itrunc (or b, 0x6400) : i16)
//! ```
//!
//! where a and b are proved to be at most 1023 (weights of four bits and their zeros): the mantissa of 1024 counts in ones, so x is 1024 + a,
//! and the difference is exact. A single number has 1024 taken away, also where it is converted without a sign; a difference below zero
//! would be a large number there. In bf16 the base is 128, and numbers are at most 127. The difference is of two numbers at once, and
//! the `or` joins the mask that made a number small. What is repeated is lifted before it is.

use super::edit::{self, Editor, Fate};
use crate::analysis::axis::Axis;
use crate::ir::entities::{Inst, Value};
use crate::ir::function::TileFunction;
use crate::ir::ops::TileOp;
use crate::ir::types::{Elem, ValueType};
use crate::settings::Target;

/// A float whose mantissa counts in ones.
#[derive(Clone, Copy)]
struct Base {
    elem: Elem,
    bits: u64,
    /// The largest number that fits beside it.
    most: u64,
}

const BASES: [Base; 2] = [
    Base {
        elem: Elem::F16,
        bits: 0x6400,
        most: (1 << 10) - 1,
    },
    Base {
        elem: Elem::BF16,
        bits: 0x4300,
        most: (1 << 7) - 1,
    },
];

/// The first target that computes with bf16.
const COMPUTES_BF16: u32 = 80;

/// Lifts small integers; gives how many conversions are gone.
pub fn lift_integers(func: &mut TileFunction, target: Target) -> usize {
    let is_lifted = |func: &TileFunction, inst: Inst| {
        let data = &func.dfg.insts[inst];
        let is_conversion = matches!(data.op, TileOp::Sitofp | TileOp::Uitofp);
        let base = is_conversion
            .then(|| base(func, data.results[0], target))
            .flatten()?;
        let from = func.dfg.ty(data.args[0]).elem;
        // Bytes are converted by what the machine has for them.
        (16 <= from.bits()).then_some((data.args[0], data.op, base))
    };
    if !func
        .all_insts()
        .any(|(_, inst)| is_lifted(func, inst).is_some())
    {
        return 0;
    }
    let axis = Axis::compute(func);
    edit::rewrite(func, |edit, inst| {
        let lifted = is_lifted(edit.func, inst)
            .and_then(|(number, op, base)| lifted(edit, &axis, (op, number), base));
        lifted.map_or(Fate::Keep, Fate::Replace)
    })
}

fn base(func: &TileFunction, result: Value, target: Target) -> Option<Base> {
    let elem = func.dfg.ty(result).elem;
    let found = BASES.into_iter().find(|base| base.elem == elem)?;
    (elem != Elem::BF16 || COMPUTES_BF16 <= target.sm).then_some(found)
}

fn lifted(
    edit: &mut Editor<'_>,
    axis: &Axis,
    (op, number): (TileOp, Value),
    base: Base,
) -> Option<Value> {
    let is_small = |value: Value| {
        axis.info(value)
            .natural()
            .is_some_and(|most| most <= base.most)
    };
    let difference = [0, 1].map(|i| edit.operand_of(number, TileOp::Isub, i));
    let (a, b) = match difference {
        _ if is_small(number) => (number, None),
        // Without a sign a difference below zero is a large number.
        [Some(a), Some(b)] if op == TileOp::Sitofp && is_small(a) && is_small(b) => (a, Some(b)),
        _ => return None,
    };
    let a = beside(edit, a, base);
    let b = match b {
        Some(b) => beside(edit, b, base),
        None => {
            let ty = edit.ty(a);
            edit.constant(base.bits, ty)
        }
    };
    Some(edit.op(TileOp::Fsub, &[a, b]))
}

/// The base and a number.
fn beside(edit: &mut Editor<'_>, number: Value, base: Base) -> Value {
    let (source, way) = edit.source(
        number,
        &[TileOp::Splat, TileOp::Broadcast, TileOp::ExpandDims],
    );
    let ty = edit.ty(source);
    let bits = edit.constant(base.bits, ty);
    let mut both = edit.op(TileOp::Or, &[source, bits]);
    let half = ty.with_elem(Elem::I16);
    if ty.elem.bits() > 16 {
        both = edit.build(TileOp::Itrunc, &[both], &[], half);
    }
    let float = edit.build(TileOp::Bitcast, &[both], &[], half.with_elem(base.elem));
    edit.repeat(float, &way)
}

#[cfg(test)]
mod tests {
    use super::lift_integers;
    use crate::ir::function::TileFunction;
    use crate::ir::ops::TileOp;
    use crate::settings::Target;
    use crate::tile::testing::{fixed_point, parse, run, verified};

    /// Floats of what `number` makes of `v3` (0 to 63) and `v4` (from memory).
    fn text(number: &str, float: &str) -> String {
        format!(
            "kernel @k(v0: ptr<{float}>, v1: ptr<i32>) warps(1) {{
            block0:
                v2 = load v1 : i32
                v4 = splat v2 : i32[64]
                v3 = arange {{start = 0}} : i32[64]
                {number}
                v20 = sitofp v10 : {float}[64]
                v21 = splat v0 : ptr<{float}>[64]
                v22 = addptr v21, v3 : ptr<{float}>[64]
                store v22, v20
                return
            }}"
        )
    }

    fn pass(func: &mut TileFunction) -> usize {
        lift_integers(func, Target::SM_90A)
    }

    fn left(func: &TileFunction) -> usize {
        func.insts_with(TileOp::Sitofp).count()
    }

    #[test]
    fn small_numbers_and_their_differences_are_what_conversions_give() {
        let masked = |by: u32| {
            format!(
                "v5 = const {{value = {by}}} : i32[64]
                v10 = and v3, v5 : i32[64]"
            )
        };
        let difference = "v5 = const {value = 15} : i32[64]
            v6 = and v3, v5 : i32[64]
            v7 = and v4, v5 : i32[64]
            v10 = isub v6, v7 : i32[64]";
        for float in ["f16", "bf16"] {
            for number in [&masked(15), &masked(127), difference] {
                let before = parse(&text(number, float));
                let mut func = before.clone();
                assert_eq!(pass(&mut func), 1, "{number}");
                verified(&func);
                assert_eq!(left(&func), 0);
                assert_eq!(pass(&mut func), 0);
                let buffers = [vec![0; 128], 9_i32.to_le_bytes().to_vec()];
                assert_eq!(run(&func, &buffers), run(&before, &buffers), "{number}");
            }
        }
    }

    #[test]
    fn what_is_not_known_to_be_small_is_converted() {
        fixed_point(pass, &text("v10 = iadd v3, v4 : i32[64]", "f16"));
        fixed_point(pass, &text("v10 = isub v3, v4 : i32[64]", "f16"));
        let unsigned = text(
            "v5 = const {value = 63} : i32[64]
            v6 = and v4, v5 : i32[64]
            v10 = isub v3, v6 : i32[64]",
            "f16",
        );
        assert_eq!(pass(&mut parse(&unsigned)), 1);
        fixed_point(pass, &unsigned.replace("sitofp", "uitofp"));
        let shifted = "v5 = const {value = 4} : i32[64]\nv10 = shl v3, v5 : i32[64]";
        // 1008 fits beside 1024, and not beside 128.
        fixed_point(pass, &text(shifted, "bf16"));
        assert_eq!(pass(&mut parse(&text(shifted, "f16"))), 1);
        // One bit more than fits.
        let by =
            |by: u32| format!("v5 = const {{value = {by}}} : i32[64]\nv10 = shl v3, v5 : i32[64]");
        fixed_point(pass, &text(&by(5), "f16"));
        fixed_point(pass, &text(&by(2), "bf16"));
        assert_eq!(pass(&mut parse(&text(&by(1), "bf16"))), 1);
        let sm_75 = |func: &mut TileFunction| lift_integers(func, Target::SM_75);
        fixed_point(sm_75, &text("v10 = iadd v3, v3 : i32[64]", "bf16"));
    }
}
