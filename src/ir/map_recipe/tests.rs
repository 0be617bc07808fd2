//! Numbers, recipes, and what both are of.

use super::*;
use crate::ir::entities::Value;
use crate::ir::function::TileFunction;
use crate::text::parse::{parse_thread, parse_tile};

/// Of `p0`, `p1`, ..
fn eval(text: &str, params: &[i64]) -> Option<i64> {
    let number: HostNumber = text.parse().expect("a number");
    assert_eq!(number.to_string(), text, "numbers read as they print");
    number.eval(
        &|index| params.get(index as usize).copied(),
        [7, 65_535, u32::MAX],
        &[],
    )
}

#[test]
fn numbers_are_exact_or_there_is_none() {
    const MIN: i64 = i64::MIN;
    for (text, params, expected) in [
        ("add(p0, mul(64, cdiv(p1, 64)))", &[3, 65][..], Some(131)),
        ("add(p0, 1)", &[i64::MAX], None),
        ("sub(p0, 1)", &[MIN], None),
        ("mul(p0, p0)", &[1 << 32], None),
        ("div(p0, 4)", &[-7], Some(-1)),
        ("div(p0, p1)", &[7, 0], None),
        ("div(p0, -1)", &[MIN], None),
        ("cdiv(p0, p1)", &[7, 0], None),
        ("cdiv(p0, -1)", &[MIN], None),
        ("cdiv(p0, 4)", &[-7], Some(-1)),
        ("cdiv(p0, 4)", &[8], Some(2)),
        ("cdiv(p0, 4)", &[9], Some(3)),
        ("cdiv(p0, -4)", &[-9], Some(3)),
        ("cdiv(p0, -4)", &[9], Some(-2)),
        ("min(p0, p1)", &[-1, 1], Some(-1)),
        ("max(p0, p1)", &[-1, 1], Some(1)),
        ("and(p0, p1)", &[2, 1], Some(1)),
        ("and(p0, p1)", &[0, 1], Some(0)),
        ("or(p0, p1)", &[0, 4], Some(1)),
        ("or(p0, p1)", &[0, 0], Some(0)),
        // What has no number has none in a truth value either.
        ("or(1, div(p0, 0))", &[1], None),
        ("eq(p0, 3)", &[3], Some(1)),
        ("ne(p0, 3)", &[3], Some(0)),
        ("lt(p0, 3)", &[3], Some(0)),
        ("le(p0, 3)", &[3], Some(1)),
        ("signed(p0, 32)", &[-1 << 31], Some(-1 << 31)),
        ("signed(p0, 32)", &[1 << 31], None),
        ("signed(p0, 64)", &[MIN], Some(MIN)),
        ("signed(p0, 0)", &[0], None),
        ("unsigned(p0, 31)", &[-1], None),
        ("unsigned(p0, 31)", &[1 << 31], None),
        ("unsigned(p0, 31)", &[(1 << 31) - 1], Some((1 << 31) - 1)),
        ("unsigned(p0, 63)", &[i64::MAX], Some(i64::MAX)),
        (
            "add(gridx, add(gridy, gridz))",
            &[],
            Some(7 + 65_535 + 0xffff_ffff),
        ),
        ("p1", &[5], None),
    ] {
        assert_eq!(eval(text, params), expected, "{text} of {params:?}");
    }
}

#[test]
fn what_is_no_number_is_refused_with_its_place() {
    let deep = format!("{}1{}", "add(1, ".repeat(70), ")".repeat(70));
    for (text, message) in [
        (
            "",
            "expected a number, as in 64, p3, gridx or add(p3, 64), at ``",
        ),
        (
            "gridw",
            "expected a number, as in 64, p3, gridx or add(p3, 64), at `gridw`",
        ),
        ("add(1)", "expected `,`, at `)`"),
        ("add(1, 2", "expected `)`, at ``"),
        ("1 2", "expected the end, at `2`"),
        (
            "9223372036854775808",
            "expected a number, as in 64, p3, gridx or add(p3, 64), at `9223372036854775808`",
        ),
        (
            &deep,
            "numbers are nested at most 64 deep, at `1, add(1, add(1, add`",
        ),
    ] {
        let error = text.parse::<HostNumber>().expect_err(text).to_string();
        assert_eq!(error, message);
    }
}

/// A recipe of a matrix of `p1` rows and `p2` columns, with `p3` elements from row to row.
const MATRIX: &str = "{base=p0, offset=mul(p4, 8), elem=f16, extents=[p1, p2], strides=[p3], box=[128, 64], swizzle=128, nan, if=le(1, p1)}";

#[test]
fn recipes_read_as_they_print() {
    let bare = "{base=p12, offset=0, elem=f8e5m2, extents=[p1], strides=[], box=[16], if=1}";
    for text in [MATRIX, bare] {
        let recipe: MapRecipe = text.parse().expect("a recipe");
        assert_eq!(recipe.to_string(), text);
        assert_eq!(recipe.check(), Ok(()));
    }
    for text in ["{base=3}", "{base=p0, offset=0, elem=f17}"] {
        assert!(text.parse::<MapRecipe>().is_err(), "{text}");
    }
}

#[test]
fn functions_with_maps_read_as_they_print() {
    let text = format!(
        "thread @k(v0 \"x\": ptr<f16>, v1 \"m\": i32, v2 \"n\": i32, v3 \"pitch\": i64, v4 \"from\": i32) warps(4) {{\n    map0 = {MATRIX}\nblock0:\n    return\n}}\n"
    );
    let func = parse_thread(&text).expect("a function");
    assert_eq!(func.maps.len(), 1);
    assert_eq!(func.to_string(), text);
    let misnumbered = parse_thread(&text.replace("map0", "map1")).expect_err("map1 comes second");
    assert_eq!(
        misnumbered[0].message,
        "maps are numbered in their order; this one is map0"
    );
    let wrong = parse_thread(&text.replace("p3]", "q3]")).expect_err("q3 is no number");
    assert_eq!(
        wrong[0].message,
        "expected a number, as in 64, p3, gridx or add(p3, 64), at `q3], box=[128, 64], `"
    );
}

#[test]
fn maps_are_resolved_where_the_driver_takes_them() {
    let recipe: MapRecipe = MATRIX.parse().expect("a recipe");
    let resolve = |base: u64, params: [i64; 4]| {
        let param = |index: u32| params.get((index as usize).wrapping_sub(1)).copied();
        let map = recipe.resolve(base, &param, [1; 3]);
        // The second of two recipes, whose numbers are those of the first.
        let list = NumberList::new(&[recipe.clone(), recipe.clone()]).expect("there are such maps");
        let mut numbers = Vec::new();
        let listed = list.eval(param, [1; 3], &mut numbers);
        let listed = listed.and_then(|()| list.resolve(1, &recipe, base, &numbers));
        assert_eq!(listed, map);
        assert_eq!(list.len(), 8, "each once");
        map
    };
    let map = resolve(0x1000, [100, 72, 80, 2]).expect("a map");
    let expected = Resolved {
        rank: 2,
        base: 0x1020,
        extents: [72, 100, 0, 0, 0],
        strides: [160, 0, 0, 0],
    };
    assert_eq!(map, expected);
    // Elsewhere: with its offset of 32 bytes at multiples of 16 that there are.
    assert_eq!(map.moved(0x1000, 0x2010), Some(0x2030));
    assert_eq!(map.moved(0x1000, 0x2008), None);
    assert_eq!(map.moved(0x1000, u64::MAX - 15), None);
    // Strides of zero, extents below the box and of 2^32 are fine.
    assert!(resolve(0x1000, [1 << 32, 1, 0, 0]).is_some());
    for (why, base, params) in [
        ("the condition fails", 0x1000, [0, 72, 80, 2]),
        ("a base of 8 bytes", 0x1008, [100, 72, 80, 2]),
        (
            "a base beyond all addresses",
            u64::MAX - 15,
            [100, 72, 80, 2],
        ),
        ("an offset that overflows", 0x1000, [100, 72, 80, i64::MAX]),
        ("rows of 162 bytes", 0x1000, [100, 72, 81, 2]),
        ("rows that go back", 0x1000, [100, 72, -80, 2]),
        ("rows of 2^40 bytes", 0x1000, [100, 72, 1 << 39, 2]),
        ("no columns", 0x1000, [100, 0, 80, 2]),
        ("too many rows", 0x1000, [(1 << 32) + 1, 72, 80, 2]),
    ] {
        assert_eq!(resolve(base, params), None, "{why}");
    }
}

#[test]
fn boxes_that_do_not_exist_are_refused() {
    let good: MapRecipe = MATRIX.parse().expect("a recipe");
    let with = |change: &dyn Fn(&mut MapRecipe)| {
        let mut recipe = good.clone();
        change(&mut recipe);
        assert_eq!(
            recipe.resolve(0x1000, &|_| Some(8), [1; 3]).is_some(),
            recipe.check().is_ok()
        );
        recipe.check().err().unwrap_or_default()
    };
    let one = HostNumber::Const(1);
    for (message, found) in [
        (
            "a map has 1 to 5 dimensions, this one 6",
            with(&|r| r.extents = vec![one.clone(); 6]),
        ),
        (
            "a map of 2 dimensions has 1 strides and a box of 2 extents, this one has 0 and 2",
            with(&|r| r.strides.clear()),
        ),
        (
            "a map is not of truth values; use i8",
            with(&|r| r.elem = Scalar::I1),
        ),
        (
            "an extent of a box is 1 to 256, not 257",
            with(&|r| r.tile[0] = 257),
        ),
        (
            "a swizzle spans 0, 32, 64 or 128 bytes, not 48",
            with(&|r| r.swizzle = 48),
        ),
        (
            "the rows of a box are a multiple of 16 bytes long, not 24",
            with(&|r| r.tile[1] = 12),
        ),
        (
            "the rows of a box are 256 bytes long, which is more than the swizzle's 128",
            with(&|r| r.tile[1] = 128),
        ),
        (
            "i16 outside of a tensor reads as zero",
            with(&|r| r.elem = Scalar::I16),
        ),
        ("", with(&|r| (r.tile[1], r.swizzle) = (128, 0))),
    ] {
        assert_eq!(found, message);
    }
}

/// What the numbers of all results of a kernel with parameters `a` and `b` (i32), `c` (i64) and `d` (i1) are.
fn numbers(body: &str) -> Vec<(String, Option<String>)> {
    let text = format!(
        "kernel @k(v0 \"a\": i32, v1 \"b\": i32, v2 \"c\": i64, v3 \"d\": i1, v4 \"x\": ptr<f16>) warps(4) {{\nblock0:\n{body}\n    return\n}}\n"
    );
    let func: TileFunction = parse_tile(&text).expect("a kernel");
    let insts = func.order.insts(func.entry);
    let results = insts.iter().flat_map(|&inst| &func.dfg.insts[inst].results);
    results
        .map(|&value: &Value| {
            let mut numbers = HostNumbers::new(&func);
            let number = numbers.of(value).map(|place| numbers.written(&[place]));
            let number = number.map(|it| it.parts.into_iter().chain(it.numbers));
            let number = number.map(|it| it.map(|n| n.to_string()).collect::<Vec<_>>().join("; "));
            (value.to_string(), number)
        })
        .collect()
}

#[test]
fn numbers_of_values_say_where_they_hold() {
    let body = "\
    v10 = const {value = -2} : i32 ; -2
    v11 = const {value = true} : i1 ; 1
    v12 = num_programs {axis = 1} : i32 ; gridy
    v13 = program_id {axis = 0} : i32 ; none
    v14 = iadd v0, v10 : i32 ; signed(add(p0, -2), 32)
    v15 = isub v2, v2 : i64 ; sub(p2, p2)
    v16 = imul v0, v1 : i32 ; signed(mul(p0, p1), 32)
    v17 = const {value = 64} : i32 ; 64
    v18 = sdiv v0, v17 : i32 ; div(p0, 64)
    v19 = sdiv v0, v1 : i32 ; signed(div(p0, p1), 32)
    v20 = udiv v0, v17 : i32 ; div(unsigned(p0, 31), 64)
    v21 = srem v0, v17 : i32 ; none
    v22 = smin v0, v1 : i32 ; min(p0, p1)
    v23 = umin v0, v1 : i32 ; none
    v24 = smax v0, v13 : i32 ; none
    v25 = sext v0 : i64 ; p0
    v26 = zext v0 : i64 ; unsigned(p0, 31)
    v27 = itrunc v2 : i32 ; signed(p2, 32)
    v28 = icmp v0, v1 {ipred = sge} : i1 ; le(p1, p0)
    v29 = icmp v0, v1 {ipred = ult} : i1 ; lt(unsigned(p0, 31), unsigned(p1, 31))
    v30 = and v3, v28 : i1 ; and(p3, le(p1, p0))
    v31 = xor v3, v11 : i1 ; ne(p3, 1)
    v32 = and v0, v1 : i32 ; none
    v33 = zext v3 : i32 ; p3
    v34 = sext v3 : i32 ; sub(0, p3)
    v35 = const {value = 3} : i32 ; 3
    v36 = shl v0, v35 : i32 ; signed(mul(p0, 8), 32)
    v37 = sshr v0, v35 : i32 ; div(unsigned(p0, 31), 8)
    v38 = shl v0, v17 : i32 ; none
    v40 = splat v0 : i32[8] ; none
    v41 = imul v17, v35 : i32 ; 192";
    let expected: Vec<&str> = body
        .lines()
        .map(|line| line.split("; ").nth(1).expect("what it is"))
        .collect();
    let found = numbers(body);
    assert_eq!(found.len(), expected.len());
    for ((value, number), (expected, line)) in found.iter().zip(expected.iter().zip(body.lines())) {
        let number = number.as_deref().unwrap_or("none");
        assert_eq!(number, *expected, "{value}: {line}");
    }
}

/// Sizes of 8 and 16 bits without sign need all of them.
#[test]
fn few_bits_without_sign_are_numbers() {
    let text = "kernel @k(v0 \"a\": i8, v1 \"b\": i16) warps(4) {
block0:
    v2 = zext v0 : i32
    v3 = zext v1 : i64
    return
}
";
    let func: TileFunction = parse_tile(text).expect("a kernel");
    let number = |value: u32| {
        let mut numbers = HostNumbers::new(&func);
        let place = numbers.of(Value::from_u32(value)).expect("it is known");
        numbers.written(&[place]).numbers[0].clone()
    };
    for (a, b) in [
        (0, 0),
        (127, 32767),
        (128, 32768),
        (200, 40000),
        (255, 65535),
    ] {
        let params = |index: u32| {
            Some([i64::from(a as u8 as i8), i64::from(b as u16 as i16)][index as usize])
        };
        assert_eq!(number(2).eval(&params, [1; 3], &[]), Some(a));
        assert_eq!(number(3).eval(&params, [1; 3], &[]), Some(b));
    }
}

#[test]
fn numbers_do_not_grow_without_bound() {
    // Each value is used twice by the next one: 2^40 nodes if written out, which they are not.
    let doubled = |count: usize| {
        let mut body = String::from("    v10 = iadd v0, v1 : i32\n");
        for i in 11..10 + count {
            let from = i - 1;
            body += &format!("    v{i} = iadd v{from}, v{from} : i32\n");
        }
        numbers(&body)
    };
    let found = doubled(40);
    let first = "signed(add(p0, p1), 32)";
    let second = format!("signed(add({first}, {first}), 32)");
    assert_eq!(found[1].1.as_deref(), Some(second.as_str()));
    assert_eq!(
        found[3].1,
        Some(format!(
            "signed(add({second}, {second}), 32); signed(add(n0, n0), 32)"
        ))
    );
    assert!(found[39].1.as_ref().is_some_and(|text| text.len() < 3000));
    // Of a row of values that is too long there is none.
    assert_eq!(doubled(140)[139].1, None);
}

/// As deep as they may be, and one more.
#[test]
fn numbers_are_read_to_a_depth() {
    let nested = |depth: usize| {
        let number = format!("{}p1{}", "add(".repeat(depth), ", 1)".repeat(depth));
        let of = |extent: &str, stride: &str, condition: &str| {
            let text = format!(
                "{{base=p0, offset=0, elem=f16, extents=[64, {extent}], strides=[{stride}], box=[8, 8], if={condition}}}"
            );
            text.parse::<MapRecipe>().is_ok()
        };
        [
            of(&number, "64", "1"),
            of("64", &number, "1"),
            of("64", "64", &number),
        ]
    };
    assert_eq!(nested(64), [true; 3]);
    assert_eq!(nested(65), [false; 3]);
}

/// A recipe whose numbers share what they are made of.
const SHARED: &str = "{base=p0, offset=n0, elem=f16, extents=[p1, n1], strides=[p3], box=[128, 64], parts=[mul(p4, 8), add(n0, p2)], if=le(n1, 100)}";

#[test]
fn parts_are_numbers_of_their_recipe() {
    let recipe: MapRecipe = SHARED.parse().expect("a recipe");
    assert_eq!(recipe.to_string(), SHARED);
    let plain: MapRecipe = SHARED
        .replace("parts=[mul(p4, 8), add(n0, p2)], ", "")
        .replace("n1", "add(mul(p4, 8), p2)")
        .replace("n0", "mul(p4, 8)")
        .parse()
        .expect("a recipe");
    let list = NumberList::new(&[plain.clone(), recipe.clone()]).expect("there are such maps");
    assert_eq!(list.len(), 9, "each once");
    for params in [
        [64, 8, 64, 2],
        [64, 80, 64, 2],
        [64, 100, 64, 2],
        [64, 8, 64, i64::MAX],
    ] {
        let param = |index: u32| params.get((index as usize).wrapping_sub(1)).copied();
        let map = plain.resolve(0x1000, &param, [1; 3]);
        assert_eq!(recipe.resolve(0x1000, &param, [1; 3]), map);
        let mut numbers = Vec::new();
        let listed = list.eval(param, [1; 3], &mut numbers);
        let listed = listed.and_then(|()| list.resolve(1, &recipe, 0x1000, &numbers));
        assert_eq!(listed, map);
        let why = |recipe: &MapRecipe| {
            recipe.why_not(&MapArguments {
                params: &param,
                names: &|index| format!("x{index}"),
                base: 0x1000,
                grid: [1; 3],
            })
        };
        assert_eq!(why(&recipe), why(&plain), "{params:?}");
        assert_eq!(why(&recipe).is_none(), map.is_some());
    }
    for (from, to, part) in [
        ("n0", "n2", "n2"),
        ("mul(p4, 8)", "mul(n0, 8)", "n0"),
        ("le(n1", "le(n9", "n9"),
    ] {
        let wrong: MapRecipe = SHARED.replacen(from, to, 1).parse().expect("a recipe");
        let message = format!("{part} is no part that stands before what is made of it");
        assert_eq!(wrong.check(), Err(message));
        assert_eq!(wrong.resolve(0x1000, &|_| Some(8), [1; 3]), None);
        assert!(NumberList::new(&[wrong]).is_err());
    }
}

/// What is long is told by the numbers that its parts are, and parts of parts do not make it longer.
#[test]
fn parts_are_told_by_what_they_are() {
    let mut parts = vec!["add(p1, p2)".to_owned()];
    for i in 0..30 {
        parts.push(format!("add(n{i}, n{i})"));
    }
    let text = format!(
        "{{base=p0, offset=0, elem=f16, extents=[64, 64], strides=[64], box=[8, 8], parts=[{}], if=lt(n30, n1)}}",
        parts.join(", ")
    );
    let recipe: MapRecipe = text.parse().expect("a recipe");
    let told = recipe.why_not(&MapArguments {
        params: &|_| Some(1),
        names: &|index| format!("x{index}"),
        base: 0x1000,
        grid: [1; 3],
    });
    let told = told.expect("a reason");
    assert!(told.starts_with("`"), "{told}");
    assert!(told.len() < 300, "{told}");
    assert!(told.ends_with("`(x1 + x2) + (x1 + x2)` is 4"), "{told}");
}
