//! Tests of `simplify_divisions`: what becomes of divisions, and the products themselves.

use super::{Product, simplify_divisions};
use crate::ir::dfg::{SourceLine, SourceLoc};
use crate::ir::function::ThreadFunction;
use crate::ir::ops::ThreadOp;
use crate::text::parse::parse_thread;
use crate::verify::verify;

/// A function of some numbers with these lines.
fn parsed(lines: &str) -> ThreadFunction {
    let text = format!(
        "thread @k(v0: i32, v10: i64, v20: i32, v21: i16) warps(4) {{\nblock0:\n
            v1 = const {{value = 113}} : i32
            v2 = const {{value = 64}} : i32
            v3 = const {{value = 64}} : i64
            v4 = const {{value = 7}} : i64
            v5 = splat v0 : i32 x 4
            v6 = const {{value = 113}} : i32 x 4
            v11 = const {{value = 3}} : i32
            v12 = const {{value = -7}} : i32
            v13 = const {{value = 7}} : i32
            v14 = const {{value = 7}} : i16
            v15 = splat v20 : i32 x 4
            {lines}\n    return\n}}"
    );
    parse_thread(&text).unwrap_or_else(|errors| panic!("{errors:?}\n{text}"))
}

/// The ops of the first block after the pass, without constants.
fn becomes(lines: &str) -> (usize, Vec<String>) {
    let mut func = parsed(lines);
    let count = simplify_divisions(&mut func);
    assert_eq!(verify(&func), Ok(()), "{func}");
    let text = func.to_string();
    let body = text.lines().filter_map(|line| line.split(" = ").nth(1));
    let ops = body.map(|line| line.split(' ').next().unwrap_or("").to_owned());
    let ops = ops.filter(|op| !["const", "splat"].contains(&op.as_str()));
    (count, ops.collect())
}

/// What becomes of some lines, with the number of divisions that are taken apart, those that a remainder needs among them.
type Case<'a> = (&'a str, usize, &'a [&'a str]);

fn check(cases: &[Case<'_>]) {
    for &(lines, count, ops) in cases {
        let found = becomes(lines);
        let ops: Vec<_> = ops.iter().map(|&s| s.to_owned()).collect();
        assert_eq!(found, (count, ops), "{lines}");
    }
}

/// Divisors below `2^bits` that are no powers of two: small ones, and those around powers.
fn divisors(bits: u32) -> impl Iterator<Item = u64> {
    let around = (1..bits).flat_map(move |bit| {
        let power = 1_u64 << bit;
        [
            power + 1,
            power + power / 2 + 1,
            power - 1 + power,
            power.wrapping_mul(0x9E37_79B9) >> 3,
        ]
    });
    let most = u64::MAX >> (64 - bits);
    let all = (2..2000).chain(around).chain([most, most - 1]);
    all.filter(move |&by| by > 2 && by <= most && !by.is_power_of_two())
}

#[test]
fn products_give_the_quotients_of_all_dividends() {
    for (bits, dividend_bits) in [(32, 31), (32, 32), (64, 63), (64, 64)] {
        let largest = u64::MAX >> (64 - dividend_bits);
        for by in divisors(dividend_bits) {
            let Product { factor, shift } = Product::of(by, bits, dividend_bits);
            let has_room = dividend_bits < bits;
            assert!(factor >> (bits + u32::from(!has_room)) == 0, "{by}");
            // At multiples, where the whole part changes, and some between.
            let last = largest / by * by;
            let multiples = [0, by, by.saturating_mul(2), last, last.saturating_sub(by)];
            let around = multiples
                .iter()
                .flat_map(|&m| [m.saturating_sub(1), m, m.saturating_add(1)]);
            let mixed =
                (0..16).map(|i: u64| i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - dividend_bits));
            for a in around
                .chain(mixed)
                .chain([largest])
                .filter(|&a| a <= largest)
            {
                // The product has up to 129 bits.
                let (high, low) = (
                    u128::from(a) * (factor >> 64),
                    u128::from(a) * (factor & u128::from(u64::MAX)),
                );
                let found = match bits {
                    64 => (high + (low >> 64)) >> shift,
                    _ => low >> (bits + shift),
                };
                assert_eq!(found, u128::from(a / by), "{a} / {by} in {bits} bits");
            }
        }
    }
}

#[test]
fn natural_numbers_are_divided_by_products_shifts_and_masks() {
    check(&[
        ("v7 = sdiv v0, v1 {natural} : i32", 1, &["umulhi", "ushr"]),
        ("v7 = udiv v0, v1 {natural} : i32", 1, &["umulhi", "ushr"]),
        ("v7 = udiv v0, v11 {natural} : i32", 1, &["umulhi"]),
        (
            "v7 = sdiv v5, v6 {natural} : i32 x 4",
            1,
            &["umulhi", "ushr"],
        ),
        ("v7 = sdiv v10, v4 {natural} : i64", 1, &["umulhi", "ushr"]),
        (
            "v7 = urem v0, v1 {natural} : i32",
            2,
            &["umulhi", "ushr", "imul", "isub"],
        ),
        ("v7 = sdiv v0, v2 {natural} : i32", 1, &["ushr"]),
        ("v7 = srem v0, v2 {natural} : i32", 1, &["and"]),
        ("v7 = sdiv v10, v3 {natural} : i64", 1, &["ushr"]),
    ]);
}

#[test]
fn numbers_with_a_sign_are_divided_by_products_and_stay_over_powers_of_two() {
    check(&[
        (
            "v7 = sdiv v0, v1 : i32",
            1,
            &["smulhi", "sshr", "ushr", "iadd"],
        ),
        ("v7 = sdiv v0, v11 : i32", 1, &["smulhi", "ushr", "iadd"]),
        (
            "v7 = sdiv v0, v13 : i32",
            1,
            &["smulhi", "iadd", "sshr", "ushr", "iadd"],
        ),
        (
            "v7 = sdiv v10, v4 : i64",
            1,
            &["smulhi", "sshr", "ushr", "iadd"],
        ),
        (
            "v7 = srem v0, v11 : i32",
            2,
            &["smulhi", "ushr", "iadd", "imul", "isub"],
        ),
        ("v7 = sdiv v0, v2 : i32", 0, &["sdiv"]),
        ("v7 = srem v0, v2 : i32", 0, &["srem"]),
        ("v7 = sdiv v0, v12 : i32", 0, &["sdiv"]),
        ("v7 = srem v0, v12 : i32", 0, &["srem"]),
        ("v7 = sdiv v21, v14 : i16", 0, &["sdiv"]),
    ]);
}

#[test]
fn numbers_without_a_sign_are_divided_by_products_shifts_and_masks() {
    check(&[
        ("v7 = udiv v0, v11 : i32", 1, &["umulhi", "ushr"]),
        (
            "v7 = udiv v0, v13 : i32",
            1,
            &["umulhi", "isub", "ushr", "iadd", "ushr"],
        ),
        ("v7 = udiv v0, v12 : i32", 1, &["umulhi", "ushr"]),
        ("v7 = udiv v0, v2 : i32", 1, &["ushr"]),
        ("v7 = urem v0, v2 : i32", 1, &["and"]),
    ]);
}

#[test]
fn a_remainder_comes_of_the_quotient_whichever_is_first() {
    let quotient = "v7 = sdiv v0, v20 : i32\n";
    let packed = "v7 = sdiv v5, v15 : i32 x 4\n";
    check(&[
        (
            &format!("{quotient} v8 = srem v0, v20 : i32"),
            1,
            &["sdiv", "imul", "isub"],
        ),
        (
            &format!("v8 = srem v0, v20 : i32\n {quotient}"),
            1,
            &["sdiv", "imul", "isub"],
        ),
        (
            &format!("{quotient} v8 = srem v0, v20 {{natural}} : i32"),
            1,
            &["sdiv", "imul", "isub"],
        ),
        // Two of one quotient by a constant, whose product stands in front of the first.
        (
            "v7 = srem v0, v11 : i32
            v8 = sdiv v0, v11 : i32
            v9 = srem v0, v11 : i32",
            3,
            &["smulhi", "ushr", "iadd", "imul", "isub", "imul", "isub"],
        ),
        // The quotient's divisor is the same number, which stands behind the remainder.
        (
            "v7 = srem v0, v2 : i32
            v16 = const {value = 64} : i32
            v8 = sdiv v0, v16 : i32",
            1,
            &["sdiv", "imul", "isub"],
        ),
        // Alone, with another sign, and packed.
        ("v8 = srem v0, v20 : i32", 0, &["srem"]),
        (
            &format!("{quotient} v8 = urem v0, v20 : i32"),
            0,
            &["sdiv", "urem"],
        ),
        (
            &format!("{packed} v8 = srem v5, v15 : i32 x 4"),
            0,
            &["sdiv", "srem"],
        ),
    ]);
}

#[test]
fn what_is_said_of_one_division_says_nothing_of_another() {
    check(&[
        (
            "v7 = udiv v0, v11 {natural} : i32
            v8 = urem v0, v11 : i32",
            3,
            &["umulhi", "umulhi", "ushr", "imul", "isub"],
        ),
        (
            "v7 = udiv v0, v20 {natural} : i32
            v8 = urem v0, v20 : i32",
            0,
            &["udiv", "urem"],
        ),
    ]);
}

/// The quotient of a later line comes in front of the remainder that it serves.
#[test]
fn what_a_division_becomes_has_its_line() {
    let mut func = parsed("v30 = srem v0, v1 : i32\nv31 = sdiv v0, v1 : i32");
    let line = |line| SourceLoc(Some(SourceLine(line, 1)).into());
    let insts = func.order.insts(func.entry).to_vec();
    for &inst in &insts {
        let data = &mut func.dfg.insts[inst];
        match data.op {
            ThreadOp::Srem => data.loc = line(3),
            ThreadOp::Sdiv => data.loc = line(5),
            _ => {}
        }
    }
    assert_eq!(simplify_divisions(&mut func), 2);
    let after = func.order.insts(func.entry).iter();
    let after = after.map(|&inst| &func.dfg.insts[inst]);
    let of = |wanted: u32| {
        let of = after.clone().filter(move |data| data.loc == line(wanted));
        let ops = of.filter(|data| data.op != ThreadOp::Const);
        ops.map(|data| data.op).collect::<Vec<_>>()
    };
    let quotient = [
        ThreadOp::Smulhi,
        ThreadOp::Sshr,
        ThreadOp::Ushr,
        ThreadOp::Iadd,
    ];
    assert_eq!(of(5), quotient);
    assert_eq!(of(3), [ThreadOp::Imul, ThreadOp::Isub]);
    // All others are those that were there.
    let others = after.filter(|data| ![line(3), line(5)].contains(&data.loc));
    assert_eq!(others.count(), insts.len() - 2);
}
