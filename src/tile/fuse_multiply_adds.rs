//! Contraction: a sum or difference with a product becomes a fused multiply-add, which rounds once.
//!
//! This is the one place where results change because operations are fused; see the IR's semantics. The product stands in
//! the same block as its use, so no product moves into a loop. Where both terms are such products the first is fused.
//! bf16 is contracted only where the machine has the fused form.
//!
//! Of f32 and f64 nothing else uses the product, which is gone then. Of 16 bits others may use it: there are as many instructions
//! as before, and of what rounds to 8 or 11 bits each rounding counts. (A derivative in bf16 of three terms, a product among them
//! stored, is off by 3 percent less, computed for random numbers. Triton contracts whatever else uses a product.)
//!
//! With each `fma` computed in two roundings ([`crate::interp::Options::split_fma`]) a kernel computes before and after the
//! pass the same bits, zeros' signs among them: `a - p` is `a + -p` by definition, and rounding to nearest knows no sign,
//! so that `-x * y` is `-(x * y)` also once rounded. Only signs of NaNs may differ, which the IR leaves open. That is how
//! the fuzz targets judge this pass.

use cranelift_entity::SecondaryMap;

use super::edit::{self, Editor, Fate};
use crate::ir::entities::{Inst, Value};
use crate::ir::function::TileFunction;
use crate::ir::ops::TileOp;
use crate::ir::types::{Elem, ValueType};
use crate::settings::Target;

/// Fuses products into sums; gives the number of fused pairs. Dead products stay behind.
pub fn fuse_multiply_adds(func: &mut TileFunction, target: Target) -> usize {
    let uses = edit::use_counts(func);
    edit::rewrite(func, |edit, inst| {
        let data = &edit.func.dfg.insts[inst];
        let is_difference = match data.op {
            TileOp::Fadd => false,
            TileOp::Fsub => true,
            _ => return Fate::Keep,
        };
        let (a, b) = (data.args[0], data.args[1]);
        // Twice the same is exact.
        if a == b || edit.ty(a).elem() == Elem::BF16 && target.sm < 80 {
            return Fate::Keep;
        }
        if let Some((x, y)) = contracted(edit, &uses, a, inst) {
            let c = if is_difference {
                edit.op(TileOp::Fneg, &[b])
            } else {
                b
            };
            return Fate::Replace(edit.op(TileOp::Fma, &[x, y, c]));
        }
        if let Some((x, y)) = contracted(edit, &uses, b, inst) {
            let x = if is_difference {
                edit.op(TileOp::Fneg, &[x])
            } else {
                x
            };
            return Fate::Replace(edit.op(TileOp::Fma, &[x, y, a]));
        }
        Fate::Keep
    })
}

/// The factors of a product that its user takes in.
fn contracted(
    edit: &Editor<'_>,
    uses: &SecondaryMap<Value, u32>,
    value: Value,
    user: Inst,
) -> Option<(Value, Value)> {
    let inst = edit.func.dfg.def_inst(value)?;
    let data = &edit.func.dfg.insts[inst];
    let together = edit.func.order.block_of(inst) == edit.func.order.block_of(user);
    let is_narrow = edit.ty(value).elem().bits() == 16;
    let is_taken = data.op == TileOp::Fmul && together && (is_narrow || uses[value] == 1);
    is_taken.then(|| (data.args[0], data.args[1]))
}

#[cfg(test)]
mod tests {
    use super::fuse_multiply_adds;
    use crate::settings::Target;
    use crate::tile::eliminate_dead_code::eliminate_dead_code;
    use crate::tile::testing::{check_pass, fixed_point};

    #[test]
    fn sums_and_differences_take_a_product_in() {
        check_pass(
            |func| fuse_multiply_adds(func, Target::SM_80) + eliminate_dead_code(func),
            "kernel @k(v0: f32, v1: f32, v2: f32, v3: ptr<f32>) warps(4) {
            block0:
                v4 = fmul v0, v1 : f32
                v5 = fadd v2, v4 : f32
                v6 = fmul v0, v1 : f32
                v7 = fsub v6, v5 : f32
                v8 = fmul v7, v1 : f32
                v9 = fsub v2, v8 : f32
                store v3, v9
                return
            }",
            "kernel @k(v0: f32, v1: f32, v2: f32, v3: ptr<f32>) warps(4) {
            block0:
                v5 = fma v0, v1, v2 : f32
                v6 = fneg v5 : f32
                v7 = fma v0, v1, v6 : f32
                v8 = fneg v7 : f32
                v9 = fma v8, v1, v2 : f32
                store v3, v9
                return
            }",
        );
    }

    #[test]
    fn products_used_twice_or_from_outside_stay() {
        fixed_point(
            |func| fuse_multiply_adds(func, Target::SM_80),
            "kernel @k(v0: f32, v1: f32, v2: i1, v3: ptr<f32>) warps(4) {
            block0:
                v4 = fmul v0, v1 : f32
                v5 = fadd v4, v4 : f32
                store v3, v5
                v6 = fmul v0, v1 : f32
                if v2 {
                block1:
                    v7 = fadd v6, v0 : f32
                    store v3, v7
                    yield
                } {
                block2:
                    yield
                }
                return
            }",
        );
    }

    #[test]
    fn narrow_products_that_others_use_are_fused_too() {
        for elem in ["f16", "bf16"] {
            let of = |body: &str| {
                format!(
                    "kernel @k(v0: {elem}, v1: {elem}, v2: ptr<{elem}>) warps(4) {{
                    block0:
                        v3 = fmul v0, v1 : {elem}
                        {body}
                        store v2, v4
                        store v2, v3
                        v6 = fadd v3, v3 : {elem}
                        store v2, v6
                        return
                    }}"
                )
            };
            check_pass(
                |func| fuse_multiply_adds(func, Target::SM_80),
                &of(&format!("v4 = fsub v0, v3 : {elem}")),
                &of(&format!(
                    "v5 = fneg v0 : {elem}\n v4 = fma v5, v1, v0 : {elem}"
                )),
            );
        }
    }

    #[test]
    fn bf16_is_fused_where_the_machine_can() {
        let text = "kernel @k(v0: bf16, v1: bf16, v2: ptr<bf16>) warps(4) {
            block0:
                v3 = fmul v0, v1 : bf16
                v4 = fadd v3, v0 : bf16
                store v2, v4
                return
            }";
        fixed_point(|func| fuse_multiply_adds(func, Target::SM_75), text);
        let mut func = crate::text::parse::parse_tile(text).expect("valid text");
        assert_eq!(fuse_multiply_adds(&mut func, Target::SM_80), 1);
    }
}
