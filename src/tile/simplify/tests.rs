//! Each rule on a small text, and random programs before and after on the interpreter.

use super::simplify;
use crate::ir::attrs::{Attrs, FloatPred, IntPred, NanRule};
use crate::ir::builder::TileBuilder;
use crate::ir::entities::Value;
use crate::ir::function::TileFunction;
use crate::ir::ops::TileOp;
use crate::ir::types::{Elem, Scalar, TileType};
use crate::linear_layout::shape::Shape;
use crate::text::print::print;
use crate::tile::eliminate_dead_code::eliminate_dead_code;
use crate::tile::testing::{check_pass, fixed_point, parse, run, verified};

fn pass(func: &mut TileFunction) -> usize {
    simplify(func) + eliminate_dead_code(func)
}

/// Wraps instructions over i32 scalars `v0`, `v1`, f32 scalars `v2`, `v3`, pointers `v4` to i32 and `v5` to f32, an i64
/// `v6` and an i1 `v7`.
fn kernel(body: &str) -> String {
    format!(
        "kernel @k(v0: i32, v1: i32, v2: f32, v3: f32, v4: ptr<i32>, v5: ptr<f32>, v6: i64, v7: i1) \
         warps(4) {{ block0:\n{body}\nreturn }}"
    )
}

#[track_caller]
fn becomes(before: &str, after: &str) {
    check_pass(pass, &kernel(before), &kernel(after));
}

#[track_caller]
fn stays(body: &str) {
    fixed_point(pass, &kernel(body));
}

#[test]
fn changes_of_shape_cancel() {
    let kernel = |body: &str, last: &str| {
        format!(
            "kernel @k(v0: i32, v1: ptr<i32>) warps(4) {{ block0:\n v2 = arange {{start = 0}} : i32[16]\n {body}\n \
             v90 = splat v1 : ptr<i32>[16]\n v91 = addptr v90, {last} : ptr<i32>[16]\n store v91, v2\n return }}"
        )
    };
    for (before, last, after, result) in [
        (
            "v3 = reshape v2 : i32[4,4]\n v4 = reshape v3 : i32[2,8]\n v5 = reshape v4 : i32[16]",
            "v5",
            "",
            "v2",
        ),
        (
            "v3 = reshape v2 : i32[4,4]\n v4 = permute v3 {dims = [1,0]} : i32[4,4]\n \
             v5 = permute v4 {dims = [1,0]} : i32[4,4]\n v6 = reshape v5 : i32[16]",
            "v6",
            "",
            "v2",
        ),
        (
            "v3 = reshape v2 : i32[1,4,4]\n v4 = permute v3 {dims = [1,0,2]} : i32[4,1,4]\n v5 = reshape v4 : i32[16]",
            "v5",
            "",
            "v2",
        ),
        (
            "v3 = splat v0 : i32[16]\n v4 = join v2, v3 : i32[16,2]\n v5 = split v4 {index = 0} : i32[16]",
            "v5",
            "",
            "v2",
        ),
        (
            "v3 = reshape v2 : i32[8,2]\n v4 = split v3 {index = 0} : i32[8]\n v5 = split v3 {index = 1} : i32[8]\n \
             v6 = join v4, v5 : i32[8,2]\n v7 = reshape v6 : i32[16]",
            "v7",
            "",
            "v2",
        ),
    ] {
        check_pass(pass, &kernel(before, last), &kernel(after, result));
    }
    fixed_point(
        pass,
        &kernel(
            "v3 = reshape v2 : i32[8,2]\n v4 = split v3 {index = 1} : i32[8]\n v5 = join v4, v4 : i32[8,2]\n \
             v6 = permute v5 {dims = [1,0]} : i32[2,8]\n v7 = reshape v6 : i32[16]",
            "v7",
        ),
    );
}

#[test]
fn integer_identities() {
    for (before, after) in [
        (
            "v8 = const {value = 0} : i32\n v9 = iadd v8, v0 : i32",
            "v0",
        ),
        (
            "v8 = const {value = 1} : i32\n v9 = imul v0, v8 : i32",
            "v0",
        ),
        (
            "v8 = const {value = 1} : i32\n v9 = sdiv v0, v8 : i32",
            "v0",
        ),
        (
            "v8 = const {value = -1} : i32\n v9 = and v0, v8 : i32",
            "v0",
        ),
        (
            "v8 = const {value = 0} : i32\n v9 = sshr v0, v8 : i32",
            "v0",
        ),
        ("v9 = smin v0, v0 : i32", "v0"),
        ("v9 = or v0, v0 : i32", "v0"),
        ("v8 = zext v0 : i64\n v9 = itrunc v8 : i32", "v0"),
        ("v9 = select v7, v0, v0 : i32", "v0"),
    ] {
        becomes(
            &format!("{before}\n store v4, v9"),
            &format!("store v4, {after}"),
        );
    }
    for (before, after) in [
        ("v9 = isub v0, v0 : i32", "0"),
        ("v9 = xor v0, v0 : i32", "0"),
        ("v8 = const {value = 0} : i32\n v9 = imul v0, v8 : i32", "0"),
        ("v8 = const {value = 1} : i32\n v9 = srem v0, v8 : i32", "0"),
        ("v8 = const {value = 32} : i32\n v9 = shl v0, v8 : i32", "0"),
        ("v8 = const {value = -1} : i32\n v9 = or v0, v8 : i32", "-1"),
        (
            "v8 = const {value = -7} : i32\n v10 = const {value = 2} : i32\n v9 = sdiv v8, v10 : i32",
            "-3",
        ),
        (
            "v8 = const {value = -7} : i32\n v10 = const {value = 40} : i32\n v9 = sshr v8, v10 : i32",
            "-1",
        ),
    ] {
        becomes(
            &format!("{before}\n store v4, v9"),
            &format!("v9 = const {{value = {after}}} : i32\n store v4, v9"),
        );
    }
    becomes(
        "v8 = const {value = 8} : i32\n v9 = imul v8, v0 : i32\n v10 = udiv v1, v8 : i32\n v11 = urem v1, v8 : i32
         store v4, v9\n store v4, v10\n store v4, v11",
        "v8 = const {value = 3} : i32\n v9 = shl v0, v8 : i32\n v12 = const {value = 3} : i32\n v10 = ushr v1, v12 : i32
         v13 = const {value = 7} : i32\n v11 = and v1, v13 : i32\n store v4, v9\n store v4, v10\n store v4, v11",
    );
    becomes(
        "v8 = const {value = 8} : i32\n v9 = iadd v0, v8 : i32\n v10 = isub v9, v8 : i32\n v11 = isub v9, v1 : i32
         store v4, v10\n store v4, v11",
        "v8 = const {value = 8} : i32\n v9 = iadd v0, v8 : i32\n v11 = isub v9, v1 : i32
         store v4, v0\n store v4, v11",
    );
}

#[test]
fn numbers_that_end_in_zeros_are_divided_exactly() {
    // A row of blocks of 128, in blocks of 64; the product may wrap around.
    becomes(
        "v8 = const {value = 7} : i32\n v9 = shl v0, v8 : i32\n v10 = const {value = 64} : i32\n v11 = sdiv v9, v10 : i32
         v12 = srem v9, v10 : i32\n v13 = const {value = 6} : i32\n v14 = shl v11, v13 : i32
         store v4, v11\n store v4, v12\n store v4, v14",
        "v8 = const {value = 7} : i32\n v9 = shl v0, v8 : i32\n v13 = const {value = 6} : i32\n v11 = sshr v9, v13 : i32
         v12 = const {value = 0} : i32\n store v4, v11\n store v4, v12\n store v4, v9",
    );
    // Sums and products of such numbers.
    becomes(
        "v8 = const {value = 96} : i32\n v9 = imul v0, v8 : i32\n v10 = const {value = 32} : i32\n v11 = iadd v9, v10 : i32
         v12 = srem v11, v10 : i32\n store v4, v12",
        "v12 = const {value = 0} : i32\n store v4, v12",
    );
    for (zeros, divisor) in [("5", "64"), ("7", "96"), ("31", "-2147483648")] {
        stays(&format!(
            "v8 = const {{value = {zeros}}} : i32\n v9 = shl v0, v8 : i32\n v10 = const {{value = {divisor}}} : i32
             v11 = sdiv v9, v10 : i32\n v12 = srem v9, v10 : i32\n store v4, v11\n store v4, v12"
        ));
    }
}

#[test]
fn loops_that_never_run_become_what_asks() {
    // What the condition needs is computed once, whatever else it asks of.
    let looped = |first: &str| {
        format!(
            "v8 = const {{value = {first}}} : i32\n v9 = const {{value = 4}} : i32
             v10, v11 = while v8, v0 : i32, i32 {{ block9(v12: i32, v13: i32):
             v14 = icmp v12, v9 {{ipred = slt}} : i1\n v15 = load v4 : i32\n v16 = icmp v15, v9 {{ipred = slt}} : i1
             v17 = and v14, v16 : i1\n v18 = iadd v15, v13 : i32\n condition v17, v12, v18 }} {{ block10(v19: i32, v20: i32):
             v21 = iadd v19, v9 : i32\n yield v21, v20 }}
             store v4, v11"
        )
    };
    becomes(
        &looped("4"),
        "v15 = load v4 : i32\n v18 = iadd v15, v0 : i32\n store v4, v18",
    );
    stays(&looped("3"));
    // A loop in what computes the condition of another one.
    becomes(
        "v8 = const {value = 4} : i32
         v10 = while v8 : i32 { block9(v12: i32):
             v13 = while v12 : i32 { block11(v14: i32):
                 v15 = icmp v14, v8 {ipred = slt} : i1\n condition v15, v14 } { block12(v16: i32):
                 v17 = iadd v16, v8 : i32\n yield v17 }
             v18 = icmp v12, v8 {ipred = slt} : i1\n v19 = iadd v13, v0 : i32\n condition v18, v19 } { block10(v20: i32):
             yield v20 }
         store v4, v10",
        "v8 = const {value = 4} : i32\n v19 = iadd v8, v0 : i32\n store v4, v19",
    );
}

#[test]
fn a_known_choice_is_what_it_chooses() {
    let choice = |cond: &str| {
        format!(
            "v8 = const {{value = {cond}}} : i1\n v9 = const {{value = 4}} : i32
             v10 = if v8 : i32 {{ block9:
                 v11 = if v8 : i32 {{ block10: v12 = iadd v0, v9 : i32\n yield v12 }} {{ block11: yield v1 }}
                 store v4, v11\n yield v11 }} {{ block12: yield v0 }}
             store v4, v10"
        )
    };
    becomes(
        &choice("true"),
        "v9 = const {value = 4} : i32\n v12 = iadd v0, v9 : i32\n store v4, v12\n store v4, v12",
    );
    becomes(&choice("false"), "store v4, v0");
}

#[test]
fn unspecified_quotients_are_not_folded() {
    stays(
        "v8 = const {value = 0} : i32\n v9 = const {value = 5} : i32\n v10 = sdiv v9, v8 : i32\n store v4, v10",
    );
    stays(
        "v8 = const {value = -2147483648} : i32\n v9 = const {value = -1} : i32\n v10 = sdiv v8, v9 : i32\n store v4, v10",
    );
}

#[test]
fn comparisons_and_choices() {
    becomes(
        "v8 = const {value = 5} : i32\n v9 = icmp v8, v0 {ipred = slt} : i1\n v10 = select v9, v0, v1 : i32\n store v4, v10",
        "v8 = const {value = 5} : i32\n v9 = icmp v0, v8 {ipred = sgt} : i1\n v10 = select v9, v0, v1 : i32\n store v4, v10",
    );
    becomes(
        "v8 = const {value = true} : i1\n v9 = xor v7, v8 : i1\n v10 = select v9, v0, v1 : i32\n store v4, v10",
        "v10 = select v7, v1, v0 : i32\n store v4, v10",
    );
    becomes(
        "v8 = const {value = true} : i1\n v9 = icmp v0, v1 {ipred = ult} : i1\n v11 = xor v9, v8 : i1
         v10 = select v11, v0, v1 : i32\n store v4, v10",
        "v9 = icmp v0, v1 {ipred = uge} : i1\n v10 = select v9, v0, v1 : i32\n store v4, v10",
    );
    becomes(
        "v8 = const {value = 3} : i32\n v9 = iadd v0, v8 : i32\n v10 = icmp v9, v8 {ipred = eq} : i1
         v11 = select v10, v0, v1 : i32\n store v4, v11",
        "v12 = const {value = 0} : i32\n v10 = icmp v0, v12 {ipred = eq} : i1
         v11 = select v10, v0, v1 : i32\n store v4, v11",
    );
    becomes(
        "v8 = icmp v0, v0 {ipred = sle} : i1\n v9 = select v8, v0, v1 : i32\n store v4, v9",
        "store v4, v0",
    );
}

#[test]
fn choices_by_one_condition_are_one() {
    becomes(
        "v8 = select v7, v0, v1 : i32\n v9 = select v7, v1, v8 : i32\n store v4, v9",
        "store v4, v1",
    );
    becomes(
        "v8 = const {value = 5} : i32\n v9 = select v7, v0, v8 : i32\n v10 = select v7, v9, v1 : i32\n store v4, v10",
        "v10 = select v7, v0, v1 : i32\n store v4, v10",
    );
    becomes(
        "v10 = if v7 : i32 { block9: yield v0 } { block10: yield v1 }\n store v4, v10",
        "v10 = select v7, v0, v1 : i32\n store v4, v10",
    );
}

#[test]
fn comparisons_of_truths_are_logic() {
    for &pred in IntPred::ALL {
        for [x, y] in [[false, false], [false, true], [true, false], [true, true]] {
            let text = |a: &str, b: &str| {
                kernel(&format!(
                    "v20 = const {{value = {x}}} : i1\n v21 = const {{value = {y}}} : i1
                     v10 = icmp {a}, {b} {{ipred = {}}} : i1\n v11 = select v10, v0, v1 : i32\n store v4, v11",
                    pred.name(),
                ))
            };
            let holds = pred.compare(1, u64::from(x), u64::from(y));
            let stored = format!("store v4, {}", if holds { "v0" } else { "v1" });
            check_pass(pass, &text("v20", "v21"), &kernel(&stored));
            // With one of them unknown the comparison is gone as well.
            for (a, b) in [("v7", "v21"), ("v20", "v7"), ("v7", "v7")] {
                let mut func = parse(&text(a, b));
                pass(&mut func);
                verified(&func);
                assert_eq!(func.insts_with(TileOp::Icmp).count(), 0);
            }
        }
    }
}

#[test]
fn what_was_widened_is_compared_before() {
    let compared = |widen: &str, pred: IntPred, number: i64| {
        let text = format!(
            "v8 = {widen} v0 : i64\n v9 = const {{value = {number}}} : i64\n v10 = icmp v8, v9 {{ipred = {}}} : i1
             v11 = select v10, v0, v1 : i32\n store v4, v11",
            pred.name(),
        );
        let mut func = parse(&kernel(&text));
        pass(&mut func);
        verified(&func);
        func
    };
    let numbers = [
        0,
        5,
        -1,
        -7,
        1 << 31,
        -(1 << 31),
        i64::from(u32::MAX),
        1 << 32,
        -(1 << 40),
    ];
    let sources = [0, 1, 4, 5, 6, i32::MAX, -1, -2, -7, -8, i32::MIN];
    let mut narrowed = 0;
    for &pred in IntPred::ALL {
        for number in numbers {
            for is_signed in [true, false] {
                let func = compared(if is_signed { "sext" } else { "zext" }, pred, number);
                let wide = |x: i32| {
                    if is_signed {
                        i64::from(x)
                    } else {
                        i64::from(x as u32)
                    }
                };
                let meant = |x: i32| pred.compare(64, wide(x) as u64, number as u64);
                let mut found = func.insts_with(TileOp::Icmp);
                match found.next() {
                    Some((_, inst))
                        if func.dfg.ty(func.dfg.insts[inst].args[0]).elem == Elem::I32 =>
                    {
                        let data = &func.dfg.insts[inst];
                        let constant = func.dfg.def_inst(data.args[1]).expect("a constant");
                        let bits = *func.dfg.insts[constant].value().expect("its bits");
                        let pred = *data.ipred().expect("a predicate");
                        for x in sources {
                            assert_eq!(pred.compare(32, u64::from(x as u32), bits), meant(x));
                        }
                        narrowed += 1;
                    }
                    Some(_) => assert_eq!(pred.is_signed(), Some(false)),
                    None => assert!(sources.iter().all(|&x| meant(x) == meant(0))),
                }
            }
        }
    }
    assert!(narrowed > 70, "{narrowed}");
    becomes(
        "v8 = sext v0 : i64\n v9 = sext v1 : i64\n v10 = icmp v8, v9 {ipred = ult} : i1
         v11 = select v10, v0, v1 : i32\n store v4, v11",
        "v10 = icmp v0, v1 {ipred = ult} : i1\n v11 = select v10, v0, v1 : i32\n store v4, v11",
    );
    stays(
        "v8 = sext v0 : i64\n v9 = zext v1 : i64\n v10 = icmp v8, v9 {ipred = slt} : i1
         v11 = select v10, v0, v1 : i32\n store v4, v11",
    );
}

#[test]
fn floating_point_keeps_signed_zeros_and_rounding() {
    for (before, after) in [
        (
            "v8 = const {value = -0.0} : f32\n v9 = fadd v8, v2 : f32",
            "v2",
        ),
        (
            "v8 = const {value = 0.0} : f32\n v9 = fsub v2, v8 : f32",
            "v2",
        ),
        (
            "v8 = const {value = 1.0} : f32\n v9 = fmul v8, v2 : f32",
            "v2",
        ),
        (
            "v8 = const {value = 1.0} : f32\n v9 = fdiv v2, v8 : f32",
            "v2",
        ),
        ("v8 = fneg v2 : f32\n v9 = fneg v8 : f32", "v2"),
        (
            "v8 = fpext v2 : f64\n v9 = fptrunc v8 {round = rn} : f32",
            "v2",
        ),
        ("v9 = fmax v2, v2 {nan = ignore} : f32", "v2"),
    ] {
        becomes(
            &format!("{before}\n store v5, v9"),
            &format!("store v5, {after}"),
        );
    }
    for (before, after) in [
        (
            "v8 = fneg v3 : f32\n v9 = fadd v2, v8 : f32",
            "v9 = fsub v2, v3 : f32",
        ),
        (
            "v8 = fneg v3 : f32\n v9 = fsub v2, v8 : f32",
            "v9 = fadd v2, v3 : f32",
        ),
        (
            "v8 = const {value = -1.0} : f32\n v9 = fmul v2, v8 : f32",
            "v9 = fneg v2 : f32",
        ),
        (
            "v8 = fneg v2 : f32\n v9 = fabs v8 : f32",
            "v9 = fabs v2 : f32",
        ),
        (
            "v8 = fneg v2 : f32\n v10 = fneg v3 : f32\n v9 = fmul v8, v10 : f32",
            "v9 = fmul v2, v3 : f32",
        ),
        (
            "v8 = fneg v2 : f32\n v10 = const {value = 3.0} : f32\n v9 = fmul v8, v10 : f32",
            "v8 = const {value = -3.0} : f32\n v9 = fmul v2, v8 : f32",
        ),
        (
            "v8 = const {value = 4.0} : f32\n v9 = fdiv_rn v2, v8 : f32",
            "v8 = const {value = 0.25} : f32\n v9 = fmul v2, v8 : f32",
        ),
        (
            "v8 = const {value = 10.0} : f32\n v9 = fdiv v2, v8 : f32",
            "v8 = const {value = 0.1} : f32\n v9 = fmul v2, v8 : f32",
        ),
    ] {
        becomes(
            &format!("{before}\n store v5, v9"),
            &format!("{after}\n store v5, v9"),
        );
    }
    stays("v8 = const {value = 0.0} : f32\n v9 = fadd v2, v8 : f32\n store v5, v9");
    stays("v8 = const {value = -0.0} : f32\n v9 = fsub v2, v8 : f32\n store v5, v9");
    stays("v8 = const {value = 0.0} : f32\n v9 = fmul v2, v8 : f32\n store v5, v9");
    stays("v8 = const {value = 10.0} : f32\n v9 = fdiv_rn v2, v8 : f32\n store v5, v9");
    stays("v8 = const {value = 0x00000001} : f32\n v9 = fdiv v2, v8 : f32\n store v5, v9");
}

#[test]
fn uniform_work_is_done_on_scalars() {
    becomes(
        "v8 = splat v0 : i32[64]\n v9 = splat v1 : i32[64]\n v10 = imul v8, v9 : i32[64]
         v11 = arange {start = 0} : i32[64]\n v12 = iadd v10, v11 : i32[64]\n v13 = iadd v12, v8 : i32[64]
         v14 = splat v4 : ptr<i32>[64]\n store v14, v13",
        "v10 = imul v0, v1 : i32\n v11 = arange {start = 0} : i32[64]\n v15 = iadd v10, v0 : i32
         v16 = splat v15 : i32[64]\n v13 = iadd v11, v16 : i32[64]
         v14 = splat v4 : ptr<i32>[64]\n store v14, v13",
    );
    becomes(
        "v8 = arange {start = 0} : i32[8]\n v9 = expand_dims v8 {axis = 1} : i32[8,1]
         v10 = broadcast v9 : i32[8,16]\n v11 = splat v0 : i32[8,16]\n v12 = imul v10, v11 : i32[8,16]
         v14 = splat v4 : ptr<i32>[8,16]\n store v14, v12",
        "v8 = arange {start = 0} : i32[8]\n v9 = splat v0 : i32[8]\n v10 = imul v8, v9 : i32[8]
         v11 = expand_dims v10 {axis = 1} : i32[8,1]\n v12 = broadcast v11 : i32[8,16]
         v14 = splat v4 : ptr<i32>[8,16]\n store v14, v12",
    );
    becomes(
        "v8 = const {value = 2.0} : f32\n v9 = splat v8 : f32[8]\n v10 = splat v2 : f32[8]\n v11 = fmul v9, v10 : f32[8]
         v14 = splat v5 : ptr<f32>[8]\n store v14, v11",
        "v8 = const {value = 2.0} : f32\n v9 = fmul v2, v8 : f32\n v10 = splat v9 : f32[8]
         v14 = splat v5 : ptr<f32>[8]\n store v14, v10",
    );
}

#[test]
fn wide_offsets_are_split() {
    // A multiple of 64 and numbers below 64 share no bit, but the sum is one product for all its pointers.
    stays(
        "v8 = const {value = 6} : i32\n v9 = shl v0, v8 : i32\n v10 = splat v9 : i32[64]
         v11 = arange {start = 0} : i32[64]\n v12 = iadd v10, v11 : i32[64]
         v13 = splat v4 : ptr<i32>[64]\n v14 = addptr v13, v12 : ptr<i32>[64]\n store v14, v11",
    );
    stays(
        "v10 = splat v0 : i32[64]\n v11 = arange {start = 0} : i32[64]\n v12 = iadd v10, v11 : i32[64]
         v13 = splat v4 : ptr<i32>[64]\n v14 = addptr v13, v12 : ptr<i32>[64]\n store v14, v11",
    );
    becomes(
        "v10 = splat v6 : i64[64]\n v11 = arange {start = 0} : i32[64]\n v15 = sext v11 : i64[64]
         v12 = iadd v15, v10 : i64[64]\n v13 = splat v4 : ptr<i32>[64]
         v14 = addptr v13, v12 : ptr<i32>[64]\n store v14, v11",
        "v11 = arange {start = 0} : i32[64]\n v15 = sext v11 : i64[64]\n v12 = addptr v4, v6 : ptr<i32>
         v13 = splat v12 : ptr<i32>[64]\n v14 = addptr v13, v15 : ptr<i32>[64]\n store v14, v11",
    );
    becomes(
        "v10 = splat v0 : i32[64]\n v11 = arange {start = 0} : i32[64]\n v13 = splat v4 : ptr<i32>[64]
         v14 = addptr v13, v11 : ptr<i32>[64]\n v15 = addptr v14, v10 : ptr<i32>[64]\n store v15, v11",
        "v11 = arange {start = 0} : i32[64]\n v12 = addptr v4, v0 : ptr<i32>\n v13 = splat v12 : ptr<i32>[64]
         v14 = addptr v13, v11 : ptr<i32>[64]\n store v14, v11",
    );
}

#[test]
fn known_masks_go() {
    becomes(
        "v8 = const {value = true} : i1\n v9 = load v4, v8, v0 : i32\n store v4, v9, v8",
        "v9 = load v4 : i32\n store v4, v9",
    );
    becomes(
        "v8 = const {value = false} : i1\n v9 = load v4, v8, v0 : i32\n store v4, v9\n store v4, v0, v8",
        "store v4, v0",
    );
    becomes(
        "v8 = const {value = 0} : i32\n v9 = load v4, v7, v8 : i32\n store v4, v9",
        "v9 = load v4, v7 : i32\n store v4, v9",
    );
}

struct Rng(u64);

impl Rng {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1);
        (self.0 >> 33) % limit
    }

    fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len() as u64) as usize]
    }
}

const NUMBERS: [i64; 9] = [0, 1, -1, 2, 8, 31, 64, i32::MIN as i64, 7];
const FLOATS: [f32; 10] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    3.0,
    f32::INFINITY,
    f32::NAN,
    1e-40,
    3e38,
];

/// A value made of some of the pool, so that the rules find something to do.
fn grow(b: &mut TileBuilder, rng: &mut Rng, pool: &[Value]) -> Value {
    let x = rng.pick(pool);
    let ty = b.ty(x);
    let alike: Vec<Value> = pool.iter().copied().filter(|&v| b.ty(v) == ty).collect();
    let mut y = rng.pick(&alike);
    match ty.elem {
        Elem::I1 => {
            let z = b.const_bits(rng.below(2), ty);
            let y = rng.pick(&[y, z]);
            match rng.below(4) {
                0 => b.and(x, y),
                1 => b.or(y, x),
                2 => b.xor(x, y),
                _ => b.select(x, y, z),
            }
        }
        Elem::I32 => {
            if rng.below(2) == 0 {
                y = b.const_bits(rng.pick(&NUMBERS) as u32 as u64, ty);
            }
            let (x, y) = if rng.below(2) == 0 { (x, y) } else { (y, x) };
            match rng.below(15) {
                0 | 1 => b.iadd(x, y),
                2 => b.isub(x, y),
                3 => b.imul(x, y),
                4 => b.and(x, y),
                5 => b.or(x, y),
                6 => b.xor(x, y),
                7 => b.shl(x, y),
                8 => b.sshr(x, y),
                9 => b.ushr(x, y),
                10 => b.smin(x, y),
                11 => {
                    let wide = b.sext(x, TileType::block(Elem::I64, ty.shape));
                    b.itrunc(wide, ty)
                }
                12 => {
                    let divisor = b.const_bits(1 << rng.below(6), ty);
                    let quotient = b.udiv(x, divisor);
                    let rest = b.urem(x, divisor);
                    b.iadd(quotient, rest)
                }
                13 => b.icmp(x, y, rng.pick(IntPred::ALL)),
                _ => {
                    let cond = b.icmp(x, y, rng.pick(IntPred::ALL));
                    b.select(cond, x, y)
                }
            }
        }
        _ => {
            if rng.below(2) == 0 {
                y = b.const_bits(u64::from(rng.pick(&FLOATS).to_bits()), ty);
            }
            let (x, y) = if rng.below(2) == 0 { (x, y) } else { (y, x) };
            match rng.below(11) {
                0 | 1 => b.fadd(x, y),
                2 => b.fsub(x, y),
                3 | 4 => b.fmul(x, y),
                5 => b.fneg(x),
                6 => b.fabs(x),
                7 => b.fmax(x, y, rng.pick(NanRule::ALL)),
                8 => b.fdiv_rn(x, y),
                9 => b.floor(x),
                _ => {
                    let cond = b.fcmp(x, y, rng.pick(FloatPred::ALL));
                    b.select(cond, x, y)
                }
            }
        }
    }
}

#[test]
fn random_programs_give_the_same_bits() {
    let mut rng = Rng(11);
    let n = 16;
    let mut changed = 0;
    for _ in 0..300 {
        let mut b = TileBuilder::new("k", 4);
        let ints = b.param("ints", TileType::scalar(Elem::global(Scalar::I32)));
        let floats = b.param("floats", TileType::scalar(Elem::global(Scalar::F32)));
        let shapes = [&[n][..], &[2, 8], &[]];
        let shape = Shape::new(shapes[rng.below(3) as usize]).expect("powers of two");
        let line = Shape::new(&[n]).expect("a power of two");
        let range = b.arange(0, TileType::block(Elem::I32, line));
        let mut pool = Vec::new();
        for base in [ints, floats] {
            let one = b.load(base, None, None);
            pool.push(b.to_shape(one, shape));
            if shape.rank() == 1 {
                let pointers = b.to_shape(base, line);
                let pointers = b.addptr(pointers, range);
                pool.push(b.load(pointers, None, None));
            }
        }
        match shape.rank() {
            1 => pool.push(range),
            2 => {
                for (axis, extent) in [(1, 2), (0, 8)] {
                    let line = Shape::new(&[extent]).expect("a power of two");
                    let range = b.arange(0, TileType::block(Elem::I32, line));
                    let wide = b.expand_dims(range, axis);
                    pool.push(b.to_shape(wide, shape));
                }
            }
            _ => {}
        }
        for _ in 0..10 {
            let value = grow(&mut b, &mut rng, &pool);
            pool.push(value);
        }
        // Everything is written somewhere.
        for (at, &value) in pool.iter().enumerate() {
            let ty = b.ty(value);
            let value = match ty.elem {
                Elem::I1 => b.zext(value, TileType::block(Elem::I32, shape)),
                _ => value,
            };
            let base = if b.ty(value).elem == Elem::F32 {
                floats
            } else {
                ints
            };
            let start = b.i32(n as i32 * (1 + at as i32), Shape::SCALAR);
            let start = b.addptr(base, start);
            let mut pointers = b.to_shape(start, shape);
            if shape.rank() == 1 {
                pointers = b.addptr(pointers, range);
            } else if shape.rank() == 2 {
                let columns =
                    b.arange(0, TileType::block(Elem::I32, Shape::new(&[8]).expect("ok")));
                let rows = b.arange(0, TileType::block(Elem::I32, Shape::new(&[2]).expect("ok")));
                let rows = b.expand_dims(rows, 1);
                let eight = b.i32(8, Shape::new(&[2, 1]).expect("ok"));
                let rows = b.imul(rows, eight);
                let columns = b.expand_dims(columns, 0);
                let (rows, columns) = (b.to_shape(rows, shape), b.to_shape(columns, shape));
                let flat = b.iadd(rows, columns);
                pointers = b.addptr(pointers, flat);
            }
            b.store(pointers, value, None);
        }
        b.ret();
        let before = b.finish().expect("random programs are well typed");
        let mut after = before.clone();
        changed += pass(&mut after).min(1);
        verified(&after);
        let bytes = (4 * n * 40) as usize;
        let mut buffers = [vec![0; bytes], vec![0; bytes]];
        for i in 0..n as usize {
            let number = rng.pick(&NUMBERS) as i32;
            let float = rng.pick(&FLOATS);
            buffers[0][4 * i..4 * i + 4].copy_from_slice(&number.to_le_bytes());
            buffers[1][4 * i..4 * i + 4].copy_from_slice(&float.to_le_bytes());
        }
        let (a, b) = (run(&before, &buffers), run(&after, &buffers));
        assert_eq!(a[0], b[0], "{}\n{}", print(&before), print(&after));
        // NaN may have any pattern.
        let floats = |bytes: &[u8]| -> Vec<u32> {
            let words = bytes
                .chunks(4)
                .map(|w| f32::from_le_bytes([w[0], w[1], w[2], w[3]]));
            words
                .map(|x| if x.is_nan() { 1 } else { x.to_bits() })
                .collect()
        };
        assert_eq!(
            floats(&a[1]),
            floats(&b[1]),
            "{}\n{}",
            print(&before),
            print(&after)
        );
    }
    assert!(changed > 250, "only {changed} programs changed");
}

#[test]
fn one_of_two_floats_is_converted_to_one_of_two_numbers() {
    becomes(
        "v8 = const {value = 2.5} : f32\n v9 = const {value = -0.5} : f32\n v10 = select v7, v8, v9 : f32\n \
         v11 = fptosi v10 : i32\n store v4, v11",
        "v8 = const {value = 2} : i32\n v9 = const {value = 0} : i32\n v10 = select v7, v8, v9 : i32\n store v4, v10",
    );
    // The bits of a truth value are the least number or zero.
    becomes(
        "v8 = zext v7 : i32\n v9 = bitcast v8 : f32\n v10 = fptosi v9 : i32\n store v4, v10",
        "v8 = const {value = 0} : i32\n store v4, v8",
    );
    stays("v8 = select v7, v2, v3 : f32\n v9 = fptosi v8 : i32\n store v4, v9");
}

#[test]
fn loops_that_never_run_leave_what_they_carry() {
    check_pass(
        simplify,
        "kernel @k(v0: i32, v1: ptr<i32>) warps(4) {
        block0:
            v2 = const {value = 3} : i32
            v3 = const {value = 2} : i32
            v4 = for v0, v0, v2, v0 : i32 {
            block1(v5: i32, v6: i32):
                v7 = iadd v6, v5 : i32
                yield v7
            }
            v8 = for v2, v3, v2, v4 : i32 {
            block2(v9: i32, v10: i32):
                v11 = iadd v10, v9 : i32
                yield v11
            }
            store v1, v8
            v12 = for v3, v2, v2, v8 : i32 {
            block3(v13: i32, v14: i32):
                v15 = iadd v14, v13 : i32
                yield v15
            }
            store v1, v12
            return
        }",
        "kernel @k(v0: i32, v1: ptr<i32>) warps(4) {
        block0:
            v2 = const {value = 3} : i32
            v3 = const {value = 2} : i32
            store v1, v0
            v12 = for v3, v2, v2, v0 : i32 {
            block3(v13: i32, v14: i32):
                v15 = iadd v14, v13 : i32
                yield v15
            }
            store v1, v12
            return
        }",
    );
}
