//! How far results of others may be from the interpreter's.

use crate::interp::{
    Arg, Cause, Distance, InterpErrorKind, Launch, Memory, Open, Options, run_bounded,
};
use crate::ir::function::TileFunction;
use crate::ir::ops::TileOp;
use crate::ir::types::Scalar;
use crate::text::parse::parse_tile;

/// Runs `body` with `x: f32[8]` in v4 and stores v9 as the type of the buffer; gives the function and what is known of the elements.
fn bounded(
    body: &str,
    ty: &str,
    xs: &[f32; 8],
) -> Result<(TileFunction, [Option<Distance>; 8]), InterpErrorKind> {
    let text = format!(
        "kernel @k(v0 \"x\": ptr<f32>, v1 \"out\": ptr<{ty}>) warps(1) {{
block0:
    v2 = arange {{start = 0}} : i32[8]
    v3 = splat v0 : ptr<f32>[8]
    v5 = addptr v3, v2 : ptr<f32>[8]
    v4 = load v5 : f32[8]
    {body}
    v6 = splat v1 : ptr<{ty}>[8]
    v7 = addptr v6, v2 : ptr<{ty}>[8]
    store v7, v9
    return
}}
"
    );
    let func = parse_tile(&text).expect("a kernel");
    let mut memory = Memory::new();
    let bytes: Vec<u8> = xs.iter().flat_map(|x| x.to_le_bytes()).collect();
    let x = memory.alloc_bytes(&bytes);
    let out = memory.alloc(64);
    let launch = Launch {
        grid: [1; 3],
        args: &[Arg::Ptr(x), Arg::Ptr(out)],
    };
    let bounded = run_bounded(&func, &launch, &mut memory, &Options::default(), true);
    let found = bounded.map_err(|error| error.kind)?.elements;
    let size = Scalar::from_name(ty).expect("a type").bytes();
    let of = |i: u64| found.get(&(out + i * u64::from(size))).copied();
    Ok((func, [0, 1, 2, 3, 4, 5, 6, 7].map(of)))
}

/// What the elements may differ by.
pub(super) fn distances(body: &str, ty: &str, xs: &[f32; 8]) -> Result<[f64; 8], InterpErrorKind> {
    let (_, found) = bounded(body, ty, xs)?;
    Ok(found.map(|distance| distance.map_or(0.0, |distance| distance.by)))
}

/// What the elements come from that no bound follows for.
fn causes(body: &str, ty: &str, xs: &[f32; 8]) -> [Option<(TileOp, Open)>; 8] {
    let (func, found) = bounded(body, ty, xs).expect("it runs");
    found.map(|distance| {
        let Cause { inst, why } = distance?.cause?;
        Some((func.dfg.insts[inst].op, why))
    })
}

const XS: [f32; 8] = [0.5, -1.25, 2.0, 3.5, -4.0, 0.1, 1.0, 7.75];

#[test]
fn what_is_rounded_correctly_is_exact() {
    for body in [
        "v9 = fadd v4, v4 : f32[8]",
        "v9 = fdiv_rn v4, v4 : f32[8]",
        "v8 = fadd v4, v4 : f32[8]\n v9 = fma v4, v4, v8 : f32[8]",
        "v9 = reduce v4 {axis = 0} : f32 {\nblock1(v10: f32, v11: f32):\n v12 = fmax v10, v11 {nan = ignore} : f32\n yield v12\n}"
            .replace("v9", "v8")
            .as_str(),
    ] {
        let body = match body.contains("v9") {
            true => body.to_owned(),
            false => format!("{body}\n v9 = splat v8 : f32[8]"),
        };
        assert_eq!(distances(&body, "f32", &XS), Ok([0.0; 8]), "{body}");
    }
}

#[test]
fn functions_err_by_what_they_state() {
    let found = distances("v9 = exp2 v4 : f32[8]", "f32", &XS).expect("it runs");
    // 2.1 ulp of the result, and half of one for the interpreter's own rounding.
    let ulp = f64::from(f32::EPSILON);
    assert_eq!(found[2], 2.6 * 4.0 * ulp);
    assert_eq!(found[6], 2.6 * 2.0 * ulp);
    // A sum carries it on: that of a number in [4, 8) with one in [2, 4) rounds to a unit of the former.
    let body = "v8 = exp2 v4 : f32[8]\n v9 = fadd v8, v4 : f32[8]";
    let found = distances(body, "f32", &XS).expect("it runs");
    assert!(
        found[2] >= 2.6 * 4.0 * ulp && found[2] <= 4.0 * 4.0 * ulp,
        "{found:?}"
    );
}

#[test]
fn one_value_moves_as_one() {
    let body = "v8 = exp2 v4 : f32[8]\n v9 = fsub v8, v8 : f32[8]";
    assert_eq!(distances(body, "f32", &XS), Ok([0.0; 8]));
}

/// A product that is stored has its bits; one that a sum takes up may be exact.
#[test]
fn products_may_be_contracted() {
    let found = distances("v9 = fmul v4, v4 : f32[8]", "f32", &XS).expect("it runs");
    let ulp = f64::from(f32::EPSILON);
    // Less than the distance of two neighbours.
    assert!(found[6] < ulp, "{found:?}");
    let body = "v8 = fmul v4, v4 : f32[8]\n v9 = fadd v8, v4 : f32[8]";
    let found = distances(body, "f32", &XS).expect("it runs");
    // 1.5625 - 1.25 is so much smaller that the unit of the product shows.
    assert!(found[1] > 0.0, "{found:?}");
}

/// Narrow formats take a small error in when a boundary is near, and else not at all.
#[test]
fn narrower_numbers_move_at_boundaries() {
    let body = "v8 = exp2 v4 : f32[8]\n v9 = fptrunc v8 {round = rn} : f16[8]";
    let mut xs = [0.3; 8];
    // 2^x is 1 + 2^-11, half way between two numbers of f16.
    xs[3] = (1.0f64 + 2.0f64.powi(-11)).log2() as f32;
    let found = distances(body, "f16", &xs).expect("it runs");
    assert_eq!((found[0], found[3]), (0.0, 2.0f64.powi(-10)));
}

/// The bound of a sum is tight enough to see that one of many terms is missing.
#[test]
fn a_missing_term_of_a_sum_shows() {
    let body = "v20 = arange {start = 0} : i32[4096]
    v21 = sitofp v20 : f32[4096]
    v22 = exp2 v4 : f32[8]
    v23 = const {value = 0.1} : f32[4096]
    v24 = fma v21, v23, v23 : f32[4096]
    v8 = reduce v24 {axis = 0} : f32 {
    block1(v10: f32, v11: f32):
        v12 = fadd v10, v11 : f32
        yield v12
    }
    v9 = splat v8 : f32[8]";
    let found = distances(body, "f32", &XS).expect("it runs");
    let sum: f64 = (0..4096).map(|i| 0.1 * f64::from(i + 1)).sum();
    assert!(found[0] > 0.0 && found[0] < 0.1 * 4096.0 / 4.0, "{found:?}");
    // Between the errors of trees (12 levels) and of one term after the other (4095).
    let u = f64::from(f32::EPSILON) / 2.0;
    assert!(
        found[0] > 12.0 * u * sum && found[0] < 60.0 * u * sum,
        "{found:?}"
    );
}

#[test]
fn comparisons_are_open_where_operands_meet() {
    let body = "v8 = exp2 v4 : f32[8]
    v10 = const {value = 4.0} : f32[8]
    v11 = fcmp v8, v10 {fpred = olt} : i1[8]
    v12 = const {value = 1.0} : f32[8]
    v13 = const {value = 3.0} : f32[8]
    v9 = select v11, v12, v13 : f32[8]";
    let found = distances(body, "f32", &XS).expect("it runs");
    // 2^2 is 4 within its bound; the others are far.
    assert_eq!(found, [0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
}

#[test]
fn what_decides_has_no_bound() {
    for body in [
        "v8 = exp2 v4 : f32[8]\n v10 = fptosi v8 : i32[8]\n v11 = addptr v5, v10 : ptr<f32>[8]\n v13 = const {value = false} : i1[8]\n v9 = load v11, v13 : f32[8]",
        "v8 = exp2 v4 : f32[8]
    v10 = reduce v8 {axis = 0} : f32 {
    block1(v11: f32, v12: f32):
        v13 = fadd v11, v12 : f32
        yield v13
    }
    v14 = fcmp v10, v10 {fpred = olt} : i1
    v15 = fadd v10, v10 : f32
    v16 = fsub v15, v10 : f32
    v17 = fcmp v16, v10 {fpred = oge} : i1
    v18 = if v17 : f32 {
    block2:
        yield v10
    } {
    block3:
        yield v10
    }
    v9 = splat v18 : f32[8]",
    ] {
        let mut xs = XS;
        xs[4] = -40.0;
        assert_eq!(
            distances(body, "f32", &xs),
            Err(InterpErrorKind::Undecided(None)),
            "{body}"
        );
    }
}

#[test]
fn poles_and_bits_have_no_bound() {
    for body in [
        "v8 = exp2 v4 : f32[8]\n v10 = fsub v8, v4 : f32[8]\n v11 = fadd v10, v4 : f32[8]\n v12 = fsub v11, v8 : f32[8]\n v9 = fdiv_rn v4, v12 : f32[8]",
        "v8 = exp2 v4 : f32[8]\n v10 = bitcast v8 : i32[8]\n v11 = const {value = -8192} : i32[8]\n v12 = and v10, v11 : i32[8]\n v9 = bitcast v12 : f32[8]",
    ] {
        let found = distances(body, "f32", &XS).expect("it runs");
        assert!(found[0].is_infinite(), "{body}: {found:?}");
    }
}

/// Of terms of both signs a sum may be infinite on the way; of one sign it is in any order, or in none.
#[test]
fn sums_that_overflow_by_their_order_have_no_bound() {
    let reduce = "v8 = reduce v4 {axis = 0} : f32 {
    block1(v10: f32, v11: f32):
        v12 = fadd v10, v11 : f32
        yield v12
    }
    v9 = splat v8 : f32[8]";
    let big = 3.0e38;
    let both = [big, big, -big, -big, 1.0, 1.0, 1.0, 1.0];
    let apart = [big, -big, big, -big, 1.0, 1.0, 1.0, 1.0];
    for xs in [both, apart] {
        let found = distances(reduce, "f32", &xs).expect("it runs");
        assert!(found[0].is_infinite(), "{xs:?}: {found:?}");
    }
    assert_eq!(distances(reduce, "f32", &[big; 8]), Ok([0.0; 8]));
    let found = distances(reduce, "f32", &[big / 8.0; 8]).expect("it runs");
    assert!(found[0] > 0.0 && found[0] < big.into(), "{found:?}");
    let scan = reduce
        .replace("reduce", "scan")
        .replace("v8", "v9")
        .replace(": f32 {", ": f32[8] {");
    let scan = scan.split("    v9 = splat").next().expect("the scan");
    let found = distances(scan, "f32", &both).expect("it runs");
    assert_eq!((found[0], found[1]), (0.0, 0.0), "{found:?}");
    assert!(found[2..].iter().all(|x| x.is_infinite()), "{found:?}");
}

/// A sum within a region that does more than that.
#[test]
fn overflow_in_a_region_has_no_bound() {
    let body = "v8 = reduce v4 {axis = 0} : f32 {
    block1(v10: f32, v11: f32):
        v12 = fadd v10, v11 : f32
        v13 = fmax v12, v10 {nan = ignore} : f32
        yield v13
    }
    v9 = splat v8 : f32[8]";
    let found = distances(body, "f32", &[3.0e38; 8]).expect("it runs");
    assert!(found[0].is_infinite(), "{found:?}");
}

/// What the first of eight equal rows times a constant of 8 x 1 may differ by, by `precision`.
fn product(precision: &str, factor: f32, xs: &[f32; 8]) -> f64 {
    let bits = factor.to_bits();
    let body = format!(
        "v20 = const {{value = {bits}}} : i32[8,8]
    v21 = bitcast v20 : f32[8,8]
    v22 = expand_dims v4 {{axis = 0}} : f32[1,8]
    v23 = broadcast v22 : f32[8,8]
    v24 = const {{value = 0.0}} : f32[8,8]
    v25 = dot v23, v21, v24 {{precision = {precision}}} : f32[8,8]
    v9 = reduce v25 {{axis = 0}} : f32[8] {{
    block1(v10: f32, v11: f32):
        v12 = fmax v10, v11 {{nan = ignore}} : f32
        yield v12
    }}"
    );
    distances(&body, "f32", xs).expect("it runs")[0]
}

/// The small parts of `tf32x3` end at 2^-136, and sums of the least numbers round to the least of all.
#[test]
fn products_of_the_least_numbers_have_bounds() {
    let found = product("tf32x3", 1.0, &[1e-39; 8]);
    assert!(
        found > 8.0 * (2.0f64).powi(-136) && found < 1e-39,
        "{found:e}"
    );
    let found = product("ieee", 1.0, &[1e-39; 8]);
    assert!(found < 20.0 * (2.0f64).powi(-149), "{found:e}");
    let found = product("ieee", 0.3, &[1e-44; 8]);
    assert!(found >= 4.0 * (2.0f64).powi(-149), "{found:e}");
    // A factor that may be seen as 0, times infinity.
    assert!(product("tf32x3", f32::INFINITY, &[1e-41; 8]).is_infinite());
    assert_eq!(product("ieee", f32::INFINITY, &[1e-41; 8]), 0.0);
}

#[test]
fn products_that_overflow_by_their_order_have_no_bound() {
    let (big, small) = (3.0e38, 1.0);
    let both = [big, big, -big, -big, small, small, small, small];
    assert!(product("ieee", 1.0, &both).is_infinite());
    assert_eq!(product("ieee", 1.0, &[big; 8]), 0.0);
    let found = product("ieee", 1.0, &[big / 16.0; 8]);
    assert!(found > 0.0 && found < big.into(), "{found:e}");
    // Where partial sums may come to the other infinity the sum may be NaN.
    let inf = f32::INFINITY;
    let one = |others: f32| product("ieee", 1.0, &[1.0, inf, others, others, 1.0, 1.0, 1.0, 1.0]);
    assert_eq!([one(-big), one(big), one(-1.0)], [f64::INFINITY, 0.0, 0.0]);
    let undone = [big, big, inf, -inf, big, big, big, big];
    assert_eq!(product("ieee", 1.0, &undone), 0.0);
}

/// Quotients of integers by zero, and the one that overflows, may be anything; others are exact, and so is what does not need them.
#[test]
fn quotients_by_zero_have_no_bound() {
    let least = "v20 = fptosi v4 : i32[8]
    v21 = const {value = -2147483648} : i32[8]
    v22 = const {value = 1} : i32[8]
    v23 = isub v20, v22 : i32[8]";
    let xs = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0];
    for (op, open) in [
        ("sdiv v21, v20", vec![0]),
        ("urem v21, v20", vec![0]),
        ("srem v21, v23", vec![0, 1]),
        ("udiv v21, v23", vec![1]),
    ] {
        let body = format!("{least}\n    v9 = {op} : i32[8]");
        let found = distances(&body, "i32", &xs).expect("it runs");
        let found: Vec<usize> = (0..8).filter(|&i| found[i].is_infinite()).collect();
        assert_eq!(found, open, "{op}");
    }
    let body = format!(
        "{least}
    v24 = sdiv v21, v20 : i32[8]
    v25 = const {{value = 0}} : i32[8]
    v26 = icmp v20, v25 {{ipred = ne}} : i1[8]
    v9 = select v26, v24, v25 : i32[8]"
    );
    assert_eq!(distances(&body, "i32", &xs), Ok([0.0; 8]));
}

/// What is gathered brings its bound along; where the index is open, as where the values of a histogram are, so is all.
#[test]
fn gathers_bring_bounds_along() {
    let mixed = "v8 = exp2 v4 : f32[8]
    v20 = const {value = 4} : i32[8]
    v21 = icmp v2, v20 {ipred = slt} : i1[8]
    v22 = select v21, v8, v4 : f32[8]
    v23 = const {value = 7} : i32[8]
    v24 = isub v23, v2 : i32[8]
    v9 = gather v22, v24 {axis = 0} : f32[8]";
    let found = distances(mixed, "f32", &XS).expect("it runs");
    assert_eq!(
        found.map(|d| d > 0.0),
        [false, false, false, false, true, true, true, true]
    );
    // Of 4, which stood in the third place.
    let ulp = 4.0 * f64::from(f32::EPSILON);
    assert!((2.6 * ulp..=3.0 * ulp).contains(&found[5]), "{found:?}");
    // 2^1 is a little less or more than 2, or 2, for whoever rounds otherwise.
    let index = "v8 = exp2 v4 : f32[8]
    v20 = fptosi v8 : i32[8]
    v21 = const {value = 7} : i32[8]
    v22 = and v20, v21 : i32[8]";
    let xs = [1.0, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5];
    for (op, ty) in [
        ("v9 = gather v4, v22 {axis = 0} : f32[8]", "f32"),
        ("v9 = histogram v20 : i32[8]", "i32"),
    ] {
        let found = distances(&format!("{index}\n    {op}"), ty, &xs);
        assert_eq!(found, Ok([f64::INFINITY; 8]), "{op}");
    }
}

/// Quotients by zero where x is 1 and 2, in v12.
const UNDEFINED: &str = "v10 = fptosi v4 : i32[8]
    v11 = const {value = 2} : i32[8]
    v14 = const {value = 1} : i32[8]
    v15 = isub v10, v14 : i32[8]
    v16 = ushr v15, v14 : i32[8]
    v12 = sdiv v11, v16 : i32[8]
";

#[test]
fn what_is_not_defined_goes_on_with_its_cause() {
    let xs = [1.0, 8.0, 2.0, 16.0, 4.0, 8.0, 16.0, 4.0];
    let by_zero = Some((TileOp::Sdiv, Open::ByZero));
    let in_place = [by_zero, None, by_zero, None, None, None, None, None];
    for (more, marked) in [
        ("v9 = iadd v12, v14 : i32[8]", in_place),
        // All bits but the lowest one are lost, and none of an unknown number.
        ("v9 = imul v12, v11 : i32[8]", in_place),
        ("v9 = and v12, v14 : i32[8]", in_place),
        (
            "v20 = icmp v12, v14 {ipred = sgt} : i1[8]\n v9 = select v20, v14, v11 : i32[8]",
            in_place,
        ),
        (
            "v20 = sitofp v12 : f32[8]\n v9 = fptosi v20 : i32[8]",
            in_place,
        ),
        // Element i goes to 4 (i % 2) + i / 2.
        (
            "v20 = reshape v12 : i32[4, 2]\n v21 = permute v20 {dims = [1, 0]} : i32[2, 4]\n v9 = reshape v21 : i32[8]",
            [by_zero, by_zero, None, None, None, None, None, None],
        ),
        (
            "v20 = reshape v12 : i32[4, 2]\n v21 = split v20 {index = 0} : i32[4]\n v22 = join v21, v21 : i32[4, 2]\n v9 = reshape v22 : i32[8]",
            [by_zero, by_zero, by_zero, by_zero, None, None, None, None],
        ),
        ("v9 = gather v12, v11 {axis = 0} : i32[8]", [by_zero; 8]),
        ("v9 = gather v12, v14 {axis = 0} : i32[8]", [None; 8]),
        ("v9 = isub v12, v12 : i32[8]", [None; 8]),
        (
            "v20 = icmp v16, v14 {ipred = sge} : i1[8]\n v9 = select v20, v12, v11 : i32[8]",
            [None; 8],
        ),
        (
            "v20 = reduce v12 {axis = 0} : i32 {\nblock1(v21: i32, v22: i32):\n v23 = iadd v21, v22 : i32\n yield v23\n}\n v9 = splat v20 : i32[8]",
            [by_zero; 8],
        ),
    ] {
        let found = causes(&format!("{UNDEFINED}{more}"), "i32", &xs);
        assert_eq!(found, marked, "{more}");
    }
}

#[test]
fn regions_that_are_not_associative_are_blamed() {
    let scan = |combine: &str| {
        format!(
            "v9 = scan v4 {{axis = 0}} : f32[8] {{\nblock1(v10: f32, v11: f32):\n {combine}\n yield v12\n}}"
        )
    };
    let order = |op| Some((op, Open::Order));
    let of_two = [None, None];
    let minus = causes(&scan("v12 = fsub v10, v11 : f32"), "f32", &XS);
    assert_eq!(minus[..2], of_two);
    assert_eq!(minus[2..], [order(TileOp::Scan); 6]);
    // A mean of means, from where it differs on.
    let mean =
        "v13 = fadd v10, v11 : f32\n v14 = const {value = 0.5} : f32\n v12 = fmul v13, v14 : f32";
    let found = causes(
        &scan(mean),
        "f32",
        &[1.0, 1.0, 1.0, 2.0, 1.0, 1.0, 1.0, 1.0],
    );
    assert_eq!(found[..3], [None; 3]);
    assert_eq!(found[3..], [order(TileOp::Scan); 5]);
    // What comes to the same but for roundings is right; so is the larger of two by a comparison.
    let larger = "v13 = fcmp v10, v11 {fpred = ogt} : i1\n v12 = select v13, v10, v11 : f32";
    let halves = "v14 = const {value = 0.3} : f32\n v13 = fmul v10, v14 : f32\n v15 = fmul v11, v13 : f32\n v16 = fdiv v15, v14 : f32\n v12 = fadd v16, v16 : f32";
    for combine in ["v12 = fadd v10, v11 : f32", larger, halves] {
        assert_eq!(causes(&scan(combine), "f32", &XS), [None; 8], "{combine}");
    }
    let reduce = |combine: &str| {
        let scan = scan(combine).replace("v9 = scan v4", "v8 = reduce v4");
        scan.replacen("f32[8]", "f32", 1) + "\n v9 = splat v8 : f32[8]"
    };
    // The first of two is associative and does not commute.
    let first = "v14 = const {value = 0.0} : f32\n v12 = fadd v10, v14 : f32";
    assert_eq!(causes(&scan(first), "f32", &XS), [None; 8]);
    assert_eq!(
        causes(&reduce(first), "f32", &XS),
        [order(TileOp::Reduce); 8]
    );
    assert_eq!(causes(&reduce(larger), "f32", &XS), [None; 8]);
}

#[test]
fn other_causes_are_named() {
    let product = "v9 = scan v4 {axis = 0} : f32[8] {\nblock1(v10: f32, v11: f32):\n v12 = fmul v10, v11 : f32\n yield v12\n}";
    let xs = [1e30, 1e30, 1e-30, 1e-30, 1.0, 1.0, 1.0, 1.0];
    let found = causes(product, "f32", &xs);
    assert_eq!(found[7], Some((TileOp::Scan, Open::Extremes)));
    let remainder = "v8 = exp2 v4 : f32[8]\n v9 = frem v4, v8 : f32[8]";
    let found = causes(remainder, "f32", &XS);
    assert_eq!(found, [Some((TileOp::Frem, Open::Unfollowed)); 8]);
}
