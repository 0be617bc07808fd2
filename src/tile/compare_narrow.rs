//! Comparisons of numbers that were widened, of the narrow ones.
//!
//! ```text
//! y = fpext x : f32                 y = fpext x : f32
//! m = fcmp y, 0.0            =>     m = fcmp x, 0.0
//! z = fmul y, load p, m             z = fmul y, load p, m
//! ```
//!
//! where a mask decides about loads: what was widened for it would be held until they have come, in twice as many registers, and now it is
//! widened when it is used (a kernel of gates took 238 registers, now 168 and a fifth less time). Widening keeps the order, and what is no number. Layouts are there
//! already, so that `x` and `y` stand in the same. Elsewhere the narrow number would be held beside the wide one.

use cranelift_entity::EntitySet;

use super::edit::{self, Editor, Fate};
use crate::ir::attrs::Attrs;
use crate::ir::effects::OpClass;
use crate::ir::entities::{Inst, Value};
use crate::ir::function::TileFunction;
use crate::ir::ops::TileOp;
use crate::ir::types::Elem;
use crate::num::Rounding;
use crate::settings::Target;

/// Compares numbers before they are widened, where that decides about loads and the target can; gives how often.
pub fn compare_narrow(func: &mut TileFunction, target: Target) -> usize {
    let deciding = deciding(func);
    if deciding.is_empty() {
        return 0;
    }
    edit::rewrite(func, |edit, inst| {
        let result = edit.func.dfg.single_result(inst);
        let decides = result.is_some_and(|result| deciding.contains(result));
        match decides.then(|| narrowed(edit, inst, target)).flatten() {
            Some(value) => Fate::Replace(value),
            None => Fate::Keep,
        }
    })
}

/// Comparisons of floats that masks of loads are made of, element by element.
fn deciding(func: &TileFunction) -> EntitySet<Value> {
    let mut found = EntitySet::new();
    let mut seen: EntitySet<Value> = EntitySet::new();
    let masks = func.insts_with(TileOp::Load);
    let masks = masks.filter_map(|(_, load)| func.dfg.insts[load].args.get(1));
    let mut left: Vec<Value> = masks.copied().collect();
    while let Some(value) = left.pop() {
        let Some(inst) = func.dfg.def_inst(value) else {
            continue;
        };
        if !seen.insert(value) {
            continue;
        }
        let data = &func.dfg.insts[inst];
        let is_made = matches!(data.class(), OpClass::Elementwise | OpClass::Shape);
        if data.op == TileOp::Fcmp {
            found.insert(value);
        } else if is_made || data.op == TileOp::ConvertLayout {
            let masks = data.args.iter();
            left.extend(masks.filter(|&&arg| func.dfg.ty(arg).elem == Elem::I1));
        }
    }
    found
}

fn narrowed(edit: &mut Editor<'_>, inst: Inst, target: Target) -> Option<Value> {
    let data = edit.func.dfg.insts[inst].clone();
    (data.op == TileOp::Fcmp).then_some(())?;
    let sources = [0, 1].map(|i| edit.operand_of(data.args[i], TileOp::Fpext, 0));
    let ty = edit.ty(sources.into_iter().flatten().next()?);
    let compares = match ty.elem {
        Elem::F16 | Elem::F32 => true,
        Elem::BF16 => target.sm >= 90,
        _ => false,
    };
    compares.then_some(())?;
    let mut args = [data.args[0]; 2];
    for (i, source) in sources.into_iter().enumerate() {
        args[i] = match source {
            Some(source) => Some(source).filter(|&source| edit.ty(source) == ty)?,
            None => {
                let bits = narrow_bits(edit, data.args[i], ty.elem)?;
                edit.constant(bits, ty)
            }
        };
    }
    let result = edit.ty(data.results[0]);
    Some(edit.build(TileOp::Fcmp, &args, data.attrs(), result))
}

/// The bits of a constant in a narrower format that has the same number.
fn narrow_bits(edit: &Editor<'_>, value: Value, to: Elem) -> Option<u64> {
    let from = edit.ty(value).elem.scalar()?.format()?;
    let to = to.scalar()?.format()?;
    let number = from.to_f64(edit.bits(value)?);
    let bits = to.from_f64(number, Rounding::NearestEven, to.overflow());
    (to.to_f64(bits).to_bits() == number.to_bits()).then_some(bits)
}

#[cfg(test)]
mod tests {
    use super::compare_narrow;
    use crate::settings::Target;
    use crate::tile::testing::{check_pass, fixed_point};

    /// A kernel with `body`, where `v3` is a block of `narrow` and `v4` the same as `wide`; `v9` decides about a load.
    fn kernel(narrow: &str, wide: &str, body: &str) -> String {
        format!(
            "kernel @k(v0: ptr<{narrow}>) warps(1) {{
                layout #0 = {{reg=[], lane=[1,2,4,8,16], warp=[]}} : [32]
            block0:
                v2 = splat v0 : ptr<{narrow}>[32; #0]
                v3 = load v2 : {narrow}[32; #0]
                v4 = fpext v3 : {wide}[32; #0]
                {body}
                v11 = and v9, v9 : i1[32; #0]
                v12 = load v2, v11 : {narrow}[32; #0]
                store v2, v12
                return
            }}"
        )
    }

    #[test]
    fn what_was_widened_is_compared_narrow() {
        for (narrow, wide, target) in [
            ("f16", "f32", Target::SM_70),
            ("f32", "f64", Target::SM_70),
            ("bf16", "f32", Target::SM_90),
        ] {
            for number in ["0.0", "-0.0", "1.5", "-inf"] {
                check_pass(
                    |func| compare_narrow(func, target),
                    &kernel(
                        narrow,
                        wide,
                        &format!(
                            "v8 = const {{value = {number}}} : {wide}[32; #0]
                            v9 = fcmp v4, v8 {{fpred = ogt}} : i1[32; #0]"
                        ),
                    ),
                    &kernel(
                        narrow,
                        wide,
                        &format!(
                            "v8 = const {{value = {number}}} : {wide}[32; #0]
                            v10 = const {{value = {number}}} : {narrow}[32; #0]
                            v9 = fcmp v3, v10 {{fpred = ogt}} : i1[32; #0]"
                        ),
                    ),
                );
            }
        }
    }

    #[test]
    fn two_widened_numbers_are_compared_narrow() {
        let body = |a, b| {
            format!(
                "v6 = load v2 : f16[32; #0]
                v7 = fpext v6 : f32[32; #0]
                v9 = fcmp {a}, {b} {{fpred = une}} : i1[32; #0]"
            )
        };
        check_pass(
            |func| compare_narrow(func, Target::SM_90),
            &kernel("f16", "f32", &body("v7", "v4")),
            &kernel("f16", "f32", &body("v6", "v3")),
        );
    }

    /// A number that the format lacks, a format without comparisons, another operand, and what decides about no load.
    #[test]
    fn what_has_no_narrow_counterpart_stays() {
        let number = |number| {
            format!(
                "v8 = const {{value = {number}}} : f32[32; #0]
                v9 = fcmp v4, v8 {{fpred = olt}} : i1[32; #0]"
            )
        };
        for (narrow, body, target) in [
            ("f16", number("65536.0"), Target::SM_90),
            ("f16", number("0.1"), Target::SM_90),
            ("bf16", number("1.001953125"), Target::SM_90),
            ("bf16", number("0.0"), Target::SM_80),
            (
                "f16",
                "v8 = fmul v4, v4 : f32[32; #0]
                v9 = fcmp v4, v8 {fpred = olt} : i1[32; #0]"
                    .into(),
                Target::SM_90,
            ),
            // No load waits for this one.
            (
                "f16",
                "v6 = const {value = 0.0} : f32[32; #0]
                v7 = fcmp v4, v6 {fpred = olt} : i1[32; #0]
                v8 = select v7, v4, v6 : f32[32; #0]
                v9 = fcmp v8, v6 {fpred = olt} : i1[32; #0]"
                    .into(),
                Target::SM_90,
            ),
        ] {
            fixed_point(
                |func| compare_narrow(func, target),
                &kernel(narrow, "f32", &body),
            );
        }
    }
}
