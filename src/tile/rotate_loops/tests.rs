//! What rotated loops look like, and which ones are left alone.

use super::{iterations, rewrite, split::Split};
use crate::ir::function::TileFunction;
use crate::ir::ops::TileOp;
use crate::tile::eliminate_dead_code::eliminate_dead_code;
use crate::tile::testing::{check_pass, fixed_point, parse};

/// Rotates every loop that can be, whether it pays or not.
fn rotate_all(func: &mut TileFunction) -> usize {
    let loops: Vec<_> = func.insts_with(TileOp::For).collect();
    let mut count = 0;
    for (block, inst) in loops {
        if let Some(split) = Split::of(func, inst) {
            rewrite::rotate(func, block, inst, &split);
            count += 1;
        }
    }
    if count > 0 {
        eliminate_dead_code(func);
    }
    count
}

/// A loop with bounds and a body over blocks that stand in front of it.
fn with_loop(bounds: &str, carried: &str, results: &str, body: &str) -> String {
    format!(
        "kernel @k(v0: ptr<f32>, v1: i32, v2: i32, v3: i32) warps(1) {{
        block0:
            v4 = arange {{start = 0}} : i32[256]
            v5 = reshape v4 : i32[16,16]
            v6 = splat v0 : ptr<f32>[16,16]
            v7 = addptr v6, v5 : ptr<f32>[16,16]
            v8 = load v7 : f32[16,16]
            v9 = const {{value = 0.0}} : f32[16,16]
            v10 = const {{value = 8}} : i32
            v11 = const {{value = 2}} : i32
            v12 = const {{value = 100}} : i32
            {results} = for {bounds}, v9{carried} {{stages = 2}} : {body}
            store v7, v20
            return
        }}"
    )
}

/// Two products, one of which needs the other through an exponential; each loads a factor of its own.
const CHAIN: &str = "f32[16,16] {
            block1(v30: i32, v31: f32[16,16]):
                v32 = splat v30 : i32[16,16]
                v33 = addptr v7, v32 : ptr<f32>[16,16]
                v34 = load v33 : f32[16,16]
                v35 = dot v8, v34, v9 {precision = ieee} : f32[16,16]
                v36 = exp2 v35 : f32[16,16]
                v37 = addptr v33, v32 : ptr<f32>[16,16]
                v38 = load v37 : f32[16,16]
                v39 = dot v36, v38, v31 {precision = ieee} : f32[16,16]
                yield v39
            }";

#[test]
fn a_loop_that_runs_begins_its_next_iteration() {
    check_pass(
        rotate_all,
        &with_loop("v11, v12, v10", "", "v20", CHAIN),
        "kernel @k(v0: ptr<f32>, v1: i32, v2: i32, v3: i32) warps(1) {
        block0:
            v4 = arange {start = 0} : i32[256]
            v5 = reshape v4 : i32[16,16]
            v6 = splat v0 : ptr<f32>[16,16]
            v7 = addptr v6, v5 : ptr<f32>[16,16]
            v8 = load v7 : f32[16,16]
            v9 = const {value = 0.0} : f32[16,16]
            v10 = const {value = 8} : i32
            v11 = const {value = 2} : i32
            v12 = const {value = 100} : i32
            v13 = splat v11 : i32[16,16]
            v14 = addptr v7, v13 : ptr<f32>[16,16]
            v15 = load v14 : f32[16,16]
            v16 = dot v8, v15, v9 {precision = ieee} : f32[16,16]
            v17 = exp2 v16 : f32[16,16]
            v18 = isub v12, v10 : i32
            v19, v20, v21 = for v11, v18, v10, v9, v17, v11 {stages = 2} : f32[16,16], f32[16,16], i32 {
            block1(v22: i32, v23: f32[16,16], v24: f32[16,16], v25: i32):
                v26 = iadd v22, v10 : i32
                v27 = splat v26 : i32[16,16]
                v28 = addptr v7, v27 : ptr<f32>[16,16]
                v29 = load v28 : f32[16,16]
                v30 = dot v8, v29, v9 {precision = ieee} : f32[16,16]
                v31 = splat v22 : i32[16,16]
                v32 = addptr v7, v31 : ptr<f32>[16,16]
                v33 = addptr v32, v31 : ptr<f32>[16,16]
                v34 = load v33 : f32[16,16]
                v35 = dot v24, v34, v23 {precision = ieee} : f32[16,16]
                v36 = exp2 v30 : f32[16,16]
                yield v35, v36, v26
            }
            v37 = splat v21 : i32[16,16]
            v38 = addptr v7, v37 : ptr<f32>[16,16]
            v39 = addptr v38, v37 : ptr<f32>[16,16]
            v40 = load v39 : f32[16,16]
            v41 = dot v20, v40, v19 {precision = ieee} : f32[16,16]
            store v7, v41
            return
        }",
    );
}

#[test]
fn what_may_not_run_is_asked_for_and_no_end_wraps_around() {
    let mut func = parse(&with_loop("v1, v2, v3", "", "v20", CHAIN));
    assert_eq!(rotate_all(&mut func), 1);
    let ops: Vec<TileOp> = func
        .all_insts()
        .map(|(_, i)| func.dfg.insts[i].op)
        .collect();
    let at = |op: TileOp| ops.iter().position(|&o| o == op);
    assert!(at(TileOp::If) < at(TileOp::For), "{func}");
    assert!(at(TileOp::Select).is_some(), "{func}");
}

#[test]
fn a_first_product_that_needs_the_last_one_stays() {
    let needs = CHAIN.replace("dot v8, v34, v9", "dot v31, v34, v9");
    fixed_point(rotate_all, &with_loop("v1, v2, v3", "", "v20", &needs));
    // So does one that needs what depends on it, carried beside.
    let body = "f32[16,16], f32[16,16] {
            block1(v30: i32, v31: f32[16,16], v32: f32[16,16]):
                v33 = dot v8, v32, v9 {precision = ieee} : f32[16,16]
                v34 = exp2 v33 : f32[16,16]
                v35 = dot v34, v8, v31 {precision = ieee} : f32[16,16]
                v36 = fneg v35 : f32[16,16]
                yield v35, v36
            }";
    fixed_point(
        rotate_all,
        &with_loop("v1, v2, v3", ", v9", "v20, v21", body),
    );
}

#[test]
fn the_last_product_may_scale_what_comes_of_it() {
    // Of the iteration before, what the rest makes of it is no more in the way than a carried value.
    let body = "f32[16,16], f32[16,16] {
            block1(v30: i32, v31: f32[16,16], v32: f32[16,16]):
                v33 = dot v8, v8, v9 {precision = ieee} : f32[16,16]
                v34 = fadd v33, v31 : f32[16,16]
                v35 = dot v34, v8, v31 {precision = ieee} : f32[16,16]
                yield v35, v34
            }";
    let mut func = parse(&with_loop("v1, v2, v3", ", v9", "v20, v21", body));
    assert_eq!(rotate_all(&mut func), 1);
}

#[test]
fn loops_that_write_stay() {
    for effect in [
        "store v7, v36",
        "barrier",
        "v50 = load v37 {volatile} : f32[16,16]",
        "for v1, v2, v3 {
                block2(v51: i32):
                    yield
                }",
    ] {
        let place = "v38 = load v37 : f32[16,16]";
        let body = CHAIN.replace(place, &format!("{place}\n{effect}"));
        fixed_point(rotate_all, &with_loop("v1, v2, v3", "", "v20", &body));
    }
}

#[test]
fn loops_without_products_of_products_stay() {
    let alone = CHAIN.replace("dot v36, v38", "dot v8, v38");
    fixed_point(rotate_all, &with_loop("v1, v2, v3", "", "v20", &alone));
}

#[test]
fn iterations_are_told_from_numbers() {
    let count = |bounds: &str| {
        let func = parse(&with_loop(bounds, "", "v20", CHAIN));
        let (_, inst) = func.insts_with(TileOp::For).next().expect("it has a loop");
        iterations(&func, inst)
    };
    assert_eq!(count("v11, v12, v10"), Some(13));
    assert_eq!(count("v12, v11, v10"), Some(0));
    assert_eq!(count("v1, v1, v10"), Some(0));
    assert_eq!(count("v1, v2, v10"), None);
    assert_eq!(count("v11, v12, v3"), None);
}
