//! Nests compute what the loops did, and what is none stays.

use super::nest_loops;
use crate::ir::function::TileFunction;
use crate::ir::ops::TileOp;
use crate::tile::testing::{parse, run, verified};

/// Before each iteration: the part is -1, or the last one's.
const BEFORE: &str = "v24 = isub v6, v5 : i32
    v25 = icmp v19, v24 {ipred = eq} : i1
    v26 = iadd v19, v5 : i32
    v27 = select v25, v4, v26 : i32";

/// The same by a branch.
const BRANCH: &str = "v24 = isub v6, v5 : i32
    v25 = icmp v19, v24 {ipred = eq} : i1
    v27 = if v25 : i32 {
    block20:
        yield v4
    } {
    block21:
        v26 = iadd v19, v5 : i32
        yield v26
    }";

/// Behind each iteration: the part is the number of parts.
const BEHIND: &str = "v24 = iadd v19, v5 : i32
    v25 = icmp v6, v24 {ipred = ne} : i1
    v26 = select v25, v24, v4 : i32
    v27 = iadd v19, v4 : i32";

/// The same by a branch, as it would stand at the end.
const BRANCH_BEHIND: &str = "v24 = iadd v19, v5 : i32
    v25 = icmp v24, v6 {ipred = eq} : i1
    v26 = if v25 : i32 {
    block20:
        yield v4
    } {
    block21:
        yield v24
    }
    v27 = iadd v19, v4 : i32";

/// Products of blocks of `v0` at a tile and its parts, of which `v1` says how many there are, and how many iterations. Sums go to `v2`,
/// and behind them what is left. `between` stands between head and sum, `end` behind the tail.
fn flat(start: i32, count: &str, between: &str, end: &str) -> TileFunction {
    parse(&text(start, count, between, end))
}

fn text(start: i32, count: &str, between: &str, end: &str) -> String {
    let [index, next] = match [BEHIND, BRANCH_BEHIND].contains(&count) {
        true => ["v19", "v26"],
        false => ["v27", "v27"],
    };
    format!(
        "kernel @k(v0: ptr<f32>, v1: ptr<i32>, v2: ptr<f32>) warps(1) {{
        block0:
            v4 = const {{value = 0}} : i32
            v5 = const {{value = 1}} : i32
            v6 = load v1 : i32
            v7 = addptr v1, v5 : ptr<i32>
            v8 = load v7 : i32
            v9 = const {{value = 0.0}} : f32[4,4]
            v10 = arange {{start = 0}} : i32[16]
            v11 = reshape v10 : i32[4,4]
            v12 = const {{value = -1}} : i32
            v13 = const {{value = {start}}} : i32
            v14, v15, v16, v17 = for v4, v8, v5, v13, v12, v11, v9 {{stages = 3}} : i32, i32, i32[4,4], f32[4,4] {{
            block1(v18: i32, v19: i32, v20: i32, v21: i32[4,4], v22: f32[4,4]):
                {count}
                v30 = icmp v4, {index} {{ipred = eq}} : i1
                v31, v32 = if v30 : i32, i32[4,4] {{
                block2:
                    v33 = iadd v20, v5 : i32
                    v34 = splat v33 : i32[4,4]
                    v35 = iadd v34, v11 : i32[4,4]
                    yield v33, v35
                }} {{
                block3:
                    yield v20, v21
                }}
                {between}
                v40 = splat {index} : i32[4,4]
                v41 = iadd v32, v40 : i32[4,4]
                v42 = splat v0 : ptr<f32>[4,4]
                v43 = addptr v42, v41 : ptr<f32>[4,4]
                v44 = load v43 : f32[4,4]
                v45 = dot v44, v44, v22 {{precision = ieee}} : f32[4,4]
                v46 = isub v6, v5 : i32
                v47 = icmp {index}, v46 {{ipred = eq}} : i1
                v48 = if v47 : f32[4,4] {{
                block4:
                    v49 = const {{value = 16}} : i32
                    v50 = imul v31, v49 : i32
                    v51 = splat v50 : i32[4,4]
                    v52 = iadd v51, v11 : i32[4,4]
                    v53 = splat v2 : ptr<f32>[4,4]
                    v54 = addptr v53, v52 : ptr<f32>[4,4]
                    store v54, v45
                    yield v9
                }} {{
                block5:
                    yield v45
                }}
                {end}
                yield {next}, v31, v32, v48
            }}
            v60 = sitofp v16 : f32[4,4]
            v61 = fadd v17, v60 : f32[4,4]
            v62 = const {{value = 192}} : i32[4,4]
            v63 = iadd v62, v11 : i32[4,4]
            v64 = splat v2 : ptr<f32>[4,4]
            v65 = addptr v64, v63 : ptr<f32>[4,4]
            store v65, v61
            return
        }}"
    )
}

/// Small numbers, of which sums of products are exact.
fn numbers() -> Vec<u8> {
    let number = |i: u32| ((i * 7) % 5) as f32 - 2.0;
    (0..64).flat_map(|i| number(i).to_le_bytes()).collect()
}

/// What memory holds behind the loop.
fn written(func: &TileFunction, parts: i32, all: i32) -> Vec<Vec<u8>> {
    let told = [parts, all].iter().flat_map(|n| n.to_le_bytes()).collect();
    run(func, &[numbers(), told, vec![0xA5; 4 * 16 * 13]])
}

#[test]
fn a_nest_computes_what_one_loop_did() {
    let counts = [(-1, BEFORE), (-1, BRANCH), (0, BEHIND), (0, BRANCH_BEHIND)];
    for (start, count) in counts {
        let before = flat(start, count, "", "");
        let mut after = before.clone();
        assert_eq!(nest_loops(&mut after), 1);
        verified(&after);
        assert_eq!(after.insts_with(TileOp::For).count(), 2);
        // Whole tiles, one that is not, none, and numbers of parts that no iteration meets.
        for (parts, all) in [
            (3, 6),
            (1, 4),
            (12, 12),
            (3, 7),
            (5, 4),
            (3, 0),
            (3, -6),
            (0, 5),
            (-2, 5),
            (i32::MIN, 5),
            (i32::MAX, 5),
        ] {
            let [old, new] = [&before, &after].map(|func| written(func, parts, all));
            assert_eq!(new, old, "{parts} parts, {all} iterations from {start}");
        }
    }
}

#[test]
fn a_tile_begins_and_ends_only_where_numbers_are_equal() {
    let text = text(-1, BEFORE, "", "");
    for (equal, other) in [
        (
            "v30 = icmp v4, v27 {ipred = eq}",
            "v30 = icmp v4, v27 {ipred = sle}",
        ),
        (
            "v47 = icmp v27, v46 {ipred = eq}",
            "v47 = icmp v27, v46 {ipred = sle}",
        ),
    ] {
        assert!(text.contains(equal), "{equal}");
        let before = parse(&text.replace(equal, other));
        let mut after = before.clone();
        nest_loops(&mut after);
        verified(&after);
        let [old, new] = [&before, &after].map(|func| written(func, 3, 6));
        assert_eq!(new, old, "{other}");
    }
}

#[test]
fn what_belongs_to_a_tile_is_no_longer_carried_with_its_parts() {
    let mut func = flat(-1, BEFORE, "", "");
    nest_loops(&mut func);
    let carried: Vec<usize> = func
        .insts_with(TileOp::For)
        .map(|(_, inst)| func.dfg.insts[inst].results.len())
        .collect();
    assert_eq!(carried, [3, 1]);
}

/// Whether the loop stays as it is.
fn stays(start: i32, count: &str, between: &str, end: &str) -> bool {
    let mut func = flat(start, count, between, end);
    let before = func.to_string();
    let nests = nest_loops(&mut func);
    nests == 0 && func.to_string() == before
}

#[test]
fn other_loops_stay() {
    // What is written stays behind what the tail writes.
    assert!(stays(-1, BEFORE, "", "store v43, v44"));
    assert!(!stays(-1, BEFORE, "store v43, v44", ""));
    // A part that is counted from elsewhere, by other steps, or to a number that changes.
    assert!(stays(1, BEFORE, "", ""));
    assert!(stays(-1, BEHIND, "", ""));
    assert!(stays(
        -1,
        &BEFORE.replace("iadd v19, v5", "isub v19, v5"),
        "",
        ""
    ));
    assert!(stays(
        -1,
        &BEFORE.replace("isub v6, v5", "isub v20, v5"),
        "",
        ""
    ));
    // A number of parts that was narrowed.
    let narrowed = "v70 = itrunc v6 : i8
        v71 = sext v70 : i32
        v24 = isub v71, v5 : i32";
    assert!(stays(
        -1,
        &BEFORE.replace("v24 = isub v6, v5 : i32", narrowed),
        "",
        ""
    ));
    // The part before, or the tile before.
    assert!(stays(-1, BEFORE, "store v1, v19", ""));
    assert!(stays(-1, BEFORE, "store v1, v20", ""));
}
