//! Tests of narrower loads.

use super::narrow_loads;
use crate::ir::function::TileFunction;
use crate::ir::ops::TileOp;
use crate::tile::testing::{fixed_point, parse, run, verified};

/// Stores what `v20`, a block of 32 x 8 pointers from `v1`, points to.
fn text(pointers: &str) -> String {
    format!(
        "kernel @k(v0: ptr<i32>, v1: ptr<i32>) warps(1) {{
        block0:
            v3 = arange {{start = 0}} : i32[32]
            v4 = arange {{start = 0}} : i32[8]
            v5 = expand_dims v3 {{axis = 1}} : i32[32,1]
            v6 = expand_dims v4 {{axis = 0}} : i32[1,8]
            v7 = broadcast v5 : i32[32,8]
            v8 = broadcast v6 : i32[32,8]
            v9 = const {{value = 8}} : i32[32,8]
            v10 = splat v1 : ptr<i32>[32,8]
            v11 = imul v7, v9 : i32[32,8]
            v12 = iadd v11, v8 : i32[32,8]
            v13 = splat v0 : ptr<i32>[32,8]
            v14 = addptr v13, v12 : ptr<i32>[32,8]
            {pointers}
            store v14, v40
            return
        }}"
    )
}

/// Rows that share a row of memory by eight.
const ROWS: &str = "v15 = sdiv v7, v9 : i32[32,8]
    v16 = imul v15, v9 : i32[32,8]
    v17 = iadd v16, v8 : i32[32,8]
    v20 = addptr v10, v17 : ptr<i32>[32,8]";

fn loaded(func: &TileFunction) -> Vec<String> {
    let loads = func.insts_with(TileOp::Load);
    let types = loads.map(|(_, load)| func.dfg.ty(func.dfg.insts[load].results[0]));
    types.map(|ty| ty.to_string()).collect()
}

/// Narrows loads of a kernel, which does the same then; gives what is loaded.
fn narrowed(text: &str) -> Vec<String> {
    let before = parse(text);
    let mut func = before.clone();
    assert!(narrow_loads(&mut func) > 0, "{text}");
    verified(&func);
    assert_eq!(narrow_loads(&mut func), 0, "{func}");
    let table: Vec<u8> = (0..4096_i32).flat_map(|i| (i * 7).to_le_bytes()).collect();
    let buffers = [vec![0; 1024], table];
    assert_eq!(run(&func, &buffers), run(&before, &buffers), "{func}");
    loaded(&func)
}

#[test]
fn each_element_of_memory_is_loaded_once() {
    let load = format!("{ROWS}\nv40 = load v20 : i32[32,8]");
    assert_eq!(narrowed(&text(&load)), ["i32[4,8]"]);
    // All rows alike, and groups of columns.
    let alike = "v15 = sshr v8, v18 : i32[32,8]
        v20 = addptr v10, v15 : ptr<i32>[32,8]
        v40 = load v20 : i32[32,8]";
    let alike = format!("v18 = const {{value = 2}} : i32[32,8]\n{alike}");
    assert_eq!(narrowed(&text(&alike)), ["i32[1,2]"]);
}

#[test]
fn masks_are_narrowed_where_they_are_alike_too() {
    let masked = |bound: u32| {
        text(&format!(
            "{ROWS}
            v30 = const {{value = {bound}}} : i32[32,8]
            v31 = icmp v7, v30 {{ipred = slt}} : i1[32,8]
            v32 = const {{value = 5}} : i32[32,8]
            v40 = load v20, v31, v32 : i32[32,8]"
        ))
    };
    assert_eq!(narrowed(&masked(16)), ["i32[4,8]"]);
    assert_eq!(narrowed(&masked(12)), ["i32[8,8]"]);
    fixed_point(narrow_loads, &masked(13));
}

#[test]
fn loops_carry_the_pointers_of_few() {
    let text = text(&format!(
        "{ROWS}
        v30 = const {{value = 0}} : i32
        v31 = const {{value = 3}} : i32
        v32 = const {{value = 1}} : i32
        v33 = const {{value = 0}} : i32[32,8]
        v34, v40 = for v30, v31, v32, v20, v33 : ptr<i32>[32,8], i32[32,8] {{
        block1(v35: i32, v36: ptr<i32>[32,8], v37: i32[32,8]):
            v38 = load v36 : i32[32,8]
            v39 = iadd v37, v38 : i32[32,8]
            v41 = addptr v36, v9 : ptr<i32>[32,8]
            yield v41, v39
        }}"
    ));
    assert_eq!(narrowed(&text), ["i32[4,8]"]);
}

#[test]
fn what_a_loop_carries_for_what_it_carries_keeps_its_place() {
    let text = text(&format!(
        "{ROWS}
        v30 = const {{value = 0}} : i32
        v31 = const {{value = 4}} : i32
        v32 = const {{value = 1}} : i32
        v33 = const {{value = 0}} : i32[32,8]
        v34, v42, v40 = for v30, v31, v32, v20, v9, v33 : ptr<i32>[32,8], i32[32,8], i32[32,8] {{
        block1(v35: i32, v36: ptr<i32>[32,8], v43: i32[32,8], v37: i32[32,8]):
            v38 = load v36 : i32[32,8]
            v39 = iadd v37, v38 : i32[32,8]
            v41 = addptr v36, v43 : ptr<i32>[32,8]
            v44 = iadd v43, v9 : i32[32,8]
            yield v41, v44, v39
        }}"
    ));
    assert_eq!(narrowed(&text), ["i32[4,8]"]);
}

#[test]
fn quotients_of_sums_and_remainders_are_those_of_their_parts() {
    // (8 p + i) % 64 / 8
    let text = text(
        "v21 = program_id {axis = 0} : i32
        v22 = const {value = 8} : i32
        v23 = imul v21, v22 : i32
        v24 = splat v23 : i32[32,8]
        v25 = iadd v24, v7 : i32[32,8]
        v26 = const {value = 64} : i32[32,8]
        v27 = srem v25, v26 : i32[32,8]
        v28 = sdiv v27, v9 : i32[32,8]
        v29 = iadd v28, v8 : i32[32,8]
        v20 = addptr v10, v29 : ptr<i32>[32,8]
        v40 = load v20 : i32[32,8]",
    );
    assert_eq!(narrowed(&text), ["i32[4,8]"]);
    let mut func = parse(&text);
    narrow_loads(&mut func);
    let quotients = func.insts_with(TileOp::Sdiv);
    let of_blocks = quotients.filter(|&(_, inst)| {
        let ty = func.dfg.ty(func.dfg.insts[inst].results[0]);
        ty.to_string().starts_with("i32[4")
    });
    assert_eq!(of_blocks.count(), 0, "{func}");
}

#[test]
fn promises_of_all_elements_are_none_of_the_first_of_runs() {
    let promised = text(
        "v21 = assume_multiple v7 {values = [32, 1]} : i32[32,8]
        v22 = assume_contiguous v21 {values = [32, 1]} : i32[32,8]
        v28 = sdiv v22, v9 : i32[32,8]
        v23 = assume_constant v28 {values = [8, 1]} : i32[32,8]
        v29 = iadd v23, v8 : i32[32,8]
        v20 = addptr v10, v29 : ptr<i32>[32,8]
        v40 = load v20 : i32[32,8]",
    );
    assert_eq!(narrowed(&promised), ["i32[4,8]"]);
    let mut func = parse(&promised);
    narrow_loads(&mut func);
    let few = |op| {
        let hints = func.insts_with(op);
        let types = hints.map(|(_, inst)| func.dfg.ty(func.dfg.insts[inst].results[0]));
        types.filter(|ty| ty.to_string() == "i32[4,8]").count()
    };
    let hints = [
        TileOp::AssumeMultiple,
        TileOp::AssumeContiguous,
        TileOp::AssumeConstant,
    ];
    assert_eq!(hints.map(few), [0; 3], "{func}");
}

#[test]
fn quotients_without_sign_are_those_without_sign() {
    let unsigned = |remainder: &str| {
        text(&format!(
            "v26 = const {{value = 64}} : i32[32,8]
            v27 = {remainder} v7, v26 : i32[32,8]
            v28 = udiv v27, v9 : i32[32,8]
            v29 = iadd v28, v8 : i32[32,8]
            v20 = addptr v10, v29 : ptr<i32>[32,8]
            v40 = load v20 : i32[32,8]"
        ))
    };
    let left = |text: &str| {
        let mut func = parse(text);
        narrow_loads(&mut func);
        let quotients = func.insts_with(TileOp::Udiv);
        let types = quotients.map(|(_, inst)| func.dfg.ty(func.dfg.insts[inst].results[0]));
        types.filter(|ty| ty.to_string() == "i32[4,8]").count()
    };
    for (remainder, expected) in [("urem", 0), ("srem", 1)] {
        let text = unsigned(remainder);
        assert_eq!(narrowed(&text), ["i32[4,8]"], "{remainder}");
        assert_eq!(left(&text), expected, "{remainder}");
    }
}

#[test]
fn others_stay() {
    let each = "v15 = sdiv v7, v9 : i32[32,8]
        v20 = addptr v10, v12 : ptr<i32>[32,8]
        v40 = load v20 : i32[32,8]";
    fixed_point(narrow_loads, &text(each));
    // Addresses from memory may be alike or not.
    let from_memory = "v15 = sdiv v7, v9 : i32[32,8]
        v18 = addptr v10, v12 : ptr<i32>[32,8]
        v19 = load v18 : i32[32,8]
        v20 = addptr v10, v19 : ptr<i32>[32,8]
        v40 = load v20 : i32[32,8]";
    fixed_point(narrow_loads, &text(from_memory));
    let volatile = format!("{ROWS}\nv40 = load v20 {{volatile}} : i32[32,8]");
    fixed_point(narrow_loads, &text(&volatile));
    // A factor is read where it is.
    let factor = format!(
        "{ROWS}
        v41 = load v20 : i32[32,8]
        v42 = itrunc v41 : i8[32,8]
        v43 = ptr_cast v20 : ptr<i8>[32,8]
        v44 = load v43 : i8[32,8]
        v45 = permute v44 {{dims = [1, 0]}} : i8[8,32]
        v46 = const {{value = 0}} : i32[8,8]
        v47 = dot v45, v42, v46 {{precision = ieee}} : i32[8,8]
        v48 = const {{value = 0}} : i32[32,8]
        v40 = iadd v48, v48 : i32[32,8]"
    );
    let mut func = parse(&text(&factor));
    assert_eq!(narrow_loads(&mut func), 1);
    assert_eq!(loaded(&func), ["i32[4,8]", "i8[32,8]"]);
}
