//! What a kernel computes before and after contraction (the pass `fuse_multiply_adds`), which alone may change bits of exact kernels.
//!
//! The bits are equal if each fused multiply-add is computed as the product and the sum that it was made of
//! ([`interp::Options::split_fma`]), on whatever numbers. A factor, a sign or a term that went astray shows.

use super::generate::Case;
use super::passes::compare;
use super::tile_ir::{
    Buffers, Failure, INTERPRETER_STEPS, fail, interpret, interpret_with, is_step_limit,
};
use crate::interp;
use crate::ir::function::TileFunction;
use crate::text::print::print;

/// What it is to have been compared, for counts.
pub(super) const COMPARED: &str = "compared across fused multiply-adds";

/// Compares a kernel before contraction with what became of it; false if the one before cannot be judged: what it fuses
/// itself may decide how far it loops or which element it reads.
pub(super) fn compare_fused(
    before: &TileFunction,
    after: &TileFunction,
    case: &Case,
) -> Result<bool, Failure> {
    let options = interp::Options {
        step_limit: 20 * INTERPRETER_STEPS,
        split_fma: true,
        split_dot: true,
        ..interp::Options::default()
    };
    let Ok((expected, _)) = interpret_with(before, case, &options) else {
        return Ok(false);
    };
    let found = interpret_with(after, case, &options).map_err(|error| error.to_string());
    let same = found.and_then(|(found, _)| compare(&expected, &found));
    same.map_err(|message| {
        let (before, after) = (print(before), print(after));
        fail("fuse_multiply_adds: other result")(format!(
            "each fma as product and sum: {message}\n{before}\nbecame\n{after}"
        ))
    })?;
    Ok(true)
}

/// Follows what a kernel computes through the passes up to contraction and across it: what the passes after it must keep.
/// None if that takes too long.
pub(super) fn across_fusion(
    first: Buffers,
    [before, after]: &[TileFunction; 2],
    case: &Case,
    notes: &mut Vec<&'static str>,
) -> Result<Option<Buffers>, Failure> {
    let computed = |func: &TileFunction| match interpret(func, case, 20 * INTERPRETER_STEPS) {
        Ok(buffers) => Ok(Some(buffers)),
        Err(error) if is_step_limit(&error) => Ok(None),
        Err(error) => Err(fail("passes: undefined")(format!(
            "{error}\n{}",
            print(func)
        ))),
    };
    let Some(found) = computed(before)? else {
        return Ok(None);
    };
    compare(&first, &found)
        .map_err(|message| fail("passes: other result")(format!("{message}\n{}", print(before))))?;
    if compare_fused(before, after, case)? {
        notes.push(COMPARED);
    }
    computed(after)
}

#[cfg(test)]
mod tests {
    use super::compare_fused;
    use crate::fuzzing::generate::{Argument, Case};
    use crate::ir::types::{Elem, Scalar};
    use crate::settings::{Options, Target};
    use crate::text::parse::parse_tile;

    /// Compares kernels of three numbers that nobody can add or multiply without rounding.
    fn compared(before: &str, after: &str) -> Result<bool, &'static str> {
        let kernel = |body: &str| {
            let text = format!(
                "kernel @k(v0: f32, v1: f32, v2: f32, v3: ptr<f32>) warps(1) {{
                block0:
                    {body}
                    store v3, v9
                    return
                }}"
            );
            parse_tile(&text).expect("valid text")
        };
        let number = |x: f32| Argument::Number(Elem::F32, u64::from(x.to_bits()));
        let case = Case {
            func: kernel(before),
            grid: [1; 3],
            args: vec![
                number(0.1),
                number(-0.3),
                number(0.7),
                Argument::Buffer(Scalar::F32, vec![0; 4]),
            ],
            exact: true,
            options: Options::DEFAULT,
            target: Target::SM_80,
        };
        compare_fused(&case.func, &kernel(after), &case).map_err(|failure| failure.kind)
    }

    #[test]
    fn what_contraction_gets_wrong_shows_on_any_numbers() {
        const OTHER: Result<bool, &str> = Err("fuse_multiply_adds: other result");
        let sum = "v4 = fmul v0, v1 : f32
                   v9 = fadd v2, v4 : f32";
        assert_eq!(compared(sum, "v9 = fma v0, v1, v2 : f32"), Ok(true));
        assert_eq!(compared(sum, "v9 = fma v0, v2, v1 : f32"), OTHER);
        let difference = "v4 = fmul v0, v1 : f32
                          v9 = fsub v2, v4 : f32";
        let negated = |value: &str| {
            let names = ["v0", "v1", "v2"].map(|name| if name == value { "v5" } else { name });
            let [a, b, c] = names;
            format!("v5 = fneg {value} : f32\nv9 = fma {a}, {b}, {c} : f32")
        };
        assert_eq!(compared(difference, &negated("v0")), Ok(true));
        assert_eq!(compared(difference, &negated("v2")), OTHER);
        assert_eq!(compared(difference, "v9 = fma v0, v1, v2 : f32"), OTHER);
    }
}
