//! What pipelines look like, and that they compute what their loops did.

use super::pipeline_loops;
use crate::analysis::async_groups::AsyncGroups;
use crate::analysis::axis::Axis;
use crate::ir::attrs::Attrs;
use crate::ir::dfg::{SourceLine, SourceLoc};
use crate::ir::entities::{Block, Inst};
use crate::ir::function::TileFunction;
use crate::ir::ops::TileOp;
use crate::settings::Target;
use crate::settings::diversity::Choices;
use crate::tile::resources::ResourcePlan;
use crate::tile::testing::{parse, run, verified};

/// Sums up the products of blocks of 16 columns with blocks of 16 rows, `count` of them.
fn sum_of_products(count: u32, attrs: &str, body: &str) -> TileFunction {
    parse(&text(count, attrs, body))
}

fn text(count: u32, attrs: &str, body: &str) -> String {
    format!(
        "kernel @k(v0: ptr<f32> {{divisible = 16}}, v1: ptr<f32> {{divisible = 16}}, v2: ptr<f32>) warps(1) {{
        block0:
            v3 = const {{value = 0}} : i32
            v4 = const {{value = {count}}} : i32
            v5 = const {{value = 1}} : i32
            v6 = arange {{start = 0}} : i32[256]
            v7 = reshape v6 : i32[16,16]
            v8 = splat v0 : ptr<f32>[16,16]
            v9 = addptr v8, v7 : ptr<f32>[16,16]
            v10 = splat v1 : ptr<f32>[16,16]
            v11 = const {{value = 0.0}} : f32[16,16]
            v12 = const {{value = 256}} : i32
            v13 = const {{value = 256}} : i32[16,16]
            v30, v31 = for v3, v4, v5, v11, v9 {{{attrs}}} : f32[16,16], ptr<f32>[16,16] {{
            block1(v14: i32, v15: f32[16,16], v16: ptr<f32>[16,16]):
                v17 = load v16 : f32[16,16]
                v18 = imul v14, v12 : i32
                v19 = splat v18 : i32[16,16]
                v20 = iadd v19, v7 : i32[16,16]
                v21 = addptr v10, v20 : ptr<f32>[16,16]
                v22 = load v21 : f32[16,16]
                {body}
                v23 = dot v17, v22, v15 {{precision = ieee}} : f32[16,16]
                v24 = addptr v16, v13 : ptr<f32>[16,16]
                yield v23, v24
            }}
            v40 = splat v2 : ptr<f32>[16,16]
            v41 = addptr v40, v7 : ptr<f32>[16,16]
            store v41, v30
            return
        }}"
    )
}

fn pipelined(func: &TileFunction, target: Target) -> (usize, TileFunction) {
    let mut func = func.clone();
    let axis = Axis::compute(&func);
    let found = pipeline_loops(
        &mut func,
        &axis,
        target,
        &ResourcePlan::ALL,
        Choices::none(),
    );
    verified(&func);
    (found.loops, func)
}

fn count(func: &TileFunction, op: TileOp) -> usize {
    func.insts_with(op).count()
}

#[test]
fn sums_stay_what_they_are() {
    for iterations in [0, 1, 2, 3, 7] {
        let func = sum_of_products(iterations, "stages = 4", "");
        let numbers = |seed: u32| -> Vec<u8> {
            let number = |i: u32| ((i * seed) % 13) as f32 - 6.0;
            let count = 256 * iterations.max(1);
            (0..count).flat_map(|i| number(i).to_le_bytes()).collect()
        };
        let buffers = [numbers(7), numbers(11), vec![0; 1024]];
        let expected = run(&func, &buffers);
        for target in [Target::SM_75, Target::SM_80] {
            let (changes, func) = pipelined(&func, target);
            assert_eq!(changes, 1);
            assert_eq!(run(&func, &buffers), expected, "{iterations} on {target}");
        }
    }
}

#[test]
fn stages_run_ahead() {
    let (_, func) = pipelined(&sum_of_products(9, "stages = 4", ""), Target::SM_80);
    // Three iterations ahead, and one copy of each load in the loop.
    assert_eq!(count(&func, TileOp::AsyncCopy), 2 * 4);
    assert_eq!(count(&func, TileOp::AsyncCommit), 4);
    assert_eq!(count(&func, TileOp::SharedLoad), 2);
    assert_eq!(count(&func, TileOp::Load), 0);
    let groups = AsyncGroups::compute(&func);
    let waits = func.dfg.insts.keys();
    let waits = waits.filter(|&i| func.dfg.insts[i].op == TileOp::AsyncWait);
    let pending: Vec<u32> = waits.map(|i| groups.pending(i)).collect();
    assert_eq!(pending, [2, 0], "in the loop, and behind it");
}

/// Of fewer iterations than stages all copies start in front of the loop, each to an entry of its own.
#[test]
fn a_short_loop_has_an_entry_for_each_iteration() {
    let (_, func) = pipelined(&sum_of_products(2, "stages = 4", ""), Target::SM_80);
    assert_eq!(count(&func, TileOp::AsyncCopy), 2 * 2);
    let rings = func.buffers.values().flatten();
    assert_eq!(rings.map(|ring| ring.stages).collect::<Vec<_>>(), [2, 2]);
    let (body, _) = func.insts_with(TileOp::SharedLoad).next().expect("a load");
    let in_body = func.order.insts(body).iter();
    let copies = in_body.filter(|&&inst| func.dfg.insts[inst].op == TileOp::AsyncCopy);
    assert_eq!(copies.count(), 0);
    let groups = AsyncGroups::compute(&func);
    let pending = |inst: Inst| groups.pending(inst);
    let waits = func.insts_with(TileOp::AsyncWait);
    let (inside, behind): (Vec<_>, Vec<_>) = waits.partition(|&(block, _)| block == body);
    let inside: Vec<u32> = inside.iter().map(|&(_, inst)| pending(inst)).collect();
    let behind: Vec<u32> = behind.iter().map(|&(_, inst)| pending(inst)).collect();
    assert_eq!((&inside[..], &behind[..]), (&[1][..], &[0][..]));
}

/// Loops that follow each other have all shared memory one after the other; in a loop around both they share it.
#[test]
fn loops_that_follow_each_other_share_their_room() {
    let one = text(9, "stages = 4", "");
    let [(begin, _), (end, _)] = ["v30, v31 = for", "v40 = splat"].map(|it| {
        let mut found = one.match_indices(it);
        found.next().expect("the text has it")
    });
    // The same again, under other names.
    let again = one[begin..end]
        .replace(" v1", " v51")
        .replace(" v2", " v52");
    let again = again
        .replace("(v1", "(v51")
        .replace("v30, v31 =", "v70, v71 =");
    let again = again.replace("block1", "block2");
    let outside = ["v510", "v511", "v512", "v513"]
        .iter()
        .zip(["v10", "v11", "v12", "v13"]);
    let again = outside.fold(again, |text, (new, old)| text.replace(new, old));
    let behind = one[end..].replace("v30", "v70");
    let one_after_the_other = parse(&(one[..end].to_owned() + &again + &behind));
    let (before, loops) = one[..end].split_at(begin);
    let outer = "for v3, v4, v5 {\nblock9(v82: i32):\n";
    let behind = behind.replace("return", "yield\n}\nreturn");
    let in_a_loop = parse(&[before, outer, loops, &again, &behind].concat());
    let stages = |func: &TileFunction, entries: u32| {
        let mut func = func.clone();
        let axis = Axis::compute(&func);
        let resources = ResourcePlan {
            reserved: Target::SM_80.shared_limit() - entries * 2048,
            ..ResourcePlan::ALL
        };
        let none = Choices::none();
        let found = pipeline_loops(&mut func, &axis, Target::SM_80, &resources, none);
        verified(&func);
        let rings = func.buffers.values().flatten();
        (
            found.cut.is_some(),
            rings.map(|ring| ring.stages).collect::<Vec<u32>>(),
        )
    };
    assert_eq!(stages(&one_after_the_other, 4), (false, vec![4; 4]));
    assert_eq!(stages(&one_after_the_other, 3), (true, vec![3; 4]));
    assert_eq!(stages(&in_a_loop, 8), (false, vec![4; 4]));
    assert_eq!(stages(&in_a_loop, 6), (true, vec![4, 4, 2, 2]));
}

/// A product whose sums are an operand in the next iteration, as of a loop that was turned: what it begins them with is copied ahead, too.
#[test]
fn what_the_next_iteration_multiplies_is_made_of() {
    let func = parse(
        "kernel @k(v0: ptr<f32> {divisible = 16}, v1: ptr<f32> {divisible = 16}, v2: ptr<f32>) warps(1) {
        block0:
            v3 = const {value = 0} : i32
            v4 = const {value = 5} : i32
            v5 = const {value = 1} : i32
            v6 = arange {start = 0} : i32[256]
            v7 = reshape v6 : i32[16,16]
            v8 = splat v0 : ptr<f32>[16,16]
            v9 = addptr v8, v7 : ptr<f32>[16,16]
            v10 = splat v1 : ptr<f32>[16,16]
            v11 = const {value = 0.0} : f32[16,16]
            v12 = const {value = 256} : i32
            v13 = load v9 : f32[16,16]
            v30, v31 = for v3, v4, v5, v11, v11 {stages = 3} : f32[16,16], f32[16,16] {
            block1(v14: i32, v15: f32[16,16], v16: f32[16,16]):
                v18 = imul v14, v12 : i32
                v19 = splat v18 : i32[16,16]
                v20 = iadd v19, v7 : i32[16,16]
                v21 = addptr v10, v20 : ptr<f32>[16,16]
                v22 = load v21 : f32[16,16]
                v23 = addptr v8, v20 : ptr<f32>[16,16]
                v24 = load v23 : f32[16,16]
                v25 = dot v16, v22, v15 {precision = ieee} : f32[16,16]
                v26 = dot v13, v22, v24 {precision = ieee} : f32[16,16]
                yield v25, v26
            }
            v40 = splat v2 : ptr<f32>[16,16]
            v41 = addptr v40, v7 : ptr<f32>[16,16]
            store v41, v30
            return
        }",
    );
    let numbers = |seed: u32| -> Vec<u8> {
        let number = |i: u32| ((i * seed) % 5) as f32 - 2.0;
        (0..1280).flat_map(|i| number(i).to_le_bytes()).collect()
    };
    let buffers = [numbers(7), numbers(11), vec![0; 1024]];
    let (_, ahead) = pipelined(&func, Target::SM_80);
    assert_eq!(count(&ahead, TileOp::AsyncCopy), 2 * 3, "of both loads");
    assert_eq!(run(&ahead, &buffers), run(&func, &buffers));
}

/// An SM has shared memory for 18 such warps with four entries, 23 with three, and 32 with two.
#[test]
fn rings_have_an_entry_less_where_many_more_warps_fit() {
    for (stages, entries) in [(2, 2), (3, 2), (4, 4)] {
        let attrs = format!("stages = {stages}");
        let (_, func) = pipelined(&sum_of_products(9, &attrs, ""), Target::SM_80);
        let mut rings = func.buffers.values().flatten();
        assert!(rings.all(|ring| ring.stages == entries), "{stages} stages");
        let copies = count(&func, TileOp::AsyncCopy);
        assert_eq!(copies, 2 * stages, "as many are under way");
        let is_body =
            |&&block: &&Block| block != func.entry && !func.dfg.blocks[block].params.is_empty();
        let blocks = func.all_blocks();
        let body = blocks.iter().find(is_body).expect("the loop has a body");
        let at = |op: TileOp| {
            let mut insts = func.order.insts(*body).iter();
            insts.position(|&i| func.dfg.insts[i].op == op)
        };
        let is_behind = at(TileOp::Dot) < at(TileOp::AsyncCopy);
        assert_eq!(is_behind, entries < stages as u32, "{stages} stages");
    }
}

/// Copies of a loop of warpgroups stand behind as many products as start one after the other.
#[test]
fn copies_start_behind_the_first_products_of_warpgroups() {
    let computed = "v25 = fptrunc v24 {round = rn} : f16[64,64]\n v26 = dot v25, v22, v24 {precision = ieee} : f32[64,64]";
    for (stages, second, products) in [
        (
            3,
            "v26 = dot v17, v22, v24 {precision = ieee} : f32[64,64]",
            2,
        ),
        (
            2,
            "v26 = dot v17, v22, v24 {precision = ieee} : f32[64,64]",
            1,
        ),
        (3, computed, 1),
    ] {
        let attrs = format!("stages = {stages}");
        let body = format!("v24 = dot v17, v22, v15 {{precision = ieee}} : f32[64,64]\n {second}");
        let text = text(9, &attrs, &body).replace("16,16", "64,64");
        let text = text.replace("256", "4096").replace("warps(1)", "warps(4)");
        let text = text
            .replace("ptr<f32>", "ptr<f16>")
            .replace("v2: ptr<f16>", "v2: ptr<f32>");
        let text = text.replace("splat v2 : ptr<f16>", "splat v2 : ptr<f32>");
        let text = text.replace("v40, v7 : ptr<f16>", "v40, v7 : ptr<f32>");
        let text = text
            .replace("v16 : f32", "v16 : f16")
            .replace("v21 : f32", "v21 : f16");
        let text = text.replace(
            "v23 = dot v17, v22, v15 {precision = ieee}",
            "v23 = fadd v26, v26",
        );
        let text = text
            .replace("v24 = addptr", "v27 = addptr")
            .replace("v23, v24", "v23, v27");
        let (changes, func) = pipelined(&parse(&text), Target::SM_90A);
        assert_eq!(changes, 1, "{func}");
        let looped = func.insts_with(TileOp::For).next().expect("a loop").1;
        let body = func.regions(looped).next().expect("a body");
        let ops = func
            .order
            .insts(body)
            .iter()
            .map(|&inst| func.dfg.insts[inst].op);
        let before = ops.take_while(|&op| op != TileOp::AsyncCopy);
        let found = before.filter(|&op| op == TileOp::Dot).count();
        assert_eq!(found, products, "{stages} stages, {second}: {func}");
    }
}

#[test]
fn without_copies_blocks_go_through_registers() {
    let (_, func) = pipelined(&sum_of_products(9, "stages = 4", ""), Target::SM_75);
    assert_eq!(count(&func, TileOp::AsyncCopy), 0);
    assert_eq!(count(&func, TileOp::Load), 2 * 2);
    assert_eq!(count(&func, TileOp::SharedStore), 2 * 2);
    assert_eq!(count(&func, TileOp::SharedLoad), 2);
}

#[test]
fn some_loops_stay() {
    for (attrs, body) in [
        ("stages = 1", ""),
        // What the barrier orders may not move across it.
        ("stages = 3", "barrier"),
    ] {
        let func = sum_of_products(9, attrs, body);
        let (changes, after) = pipelined(&func, Target::SM_80);
        assert_eq!(changes, 0, "{attrs} {body}");
        assert_eq!(after.to_string(), func.to_string());
    }
}

#[test]
fn factors_of_computed_numbers_and_of_four_bytes_are_copied() {
    let computed = text(9, "stages = 4", "v50 = fneg v17 : f32[16,16]");
    let computed = computed.replace("dot v17", "dot v50");
    // One element of the second factor at a time.
    let narrow = text(9, "stages = 4", "");
    let narrow = narrow.replace("v1: ptr<f32> {divisible = 16}", "v1: ptr<f32>");
    for text in [computed, narrow] {
        let (changes, func) = pipelined(&parse(&text), Target::SM_80);
        assert_eq!((changes, count(&func, TileOp::AsyncCopy)), (1, 2 * 4));
    }
}

/// Loads that stand in the loop's body.
fn loads_left(func: &TileFunction) -> usize {
    let bodies = func
        .insts_with(TileOp::For)
        .flat_map(|(_, inst)| func.regions(inst));
    let insts = bodies.flat_map(|body| func.order.insts(body));
    insts
        .filter(|&&inst| func.dfg.insts[inst].op == TileOp::Load)
        .count()
}

#[test]
fn rows_that_meet_sums_are_copied_with_operands() {
    let scaled = |stages: u32, to: &str, columns: u32| {
        let spread = match columns {
            16 => {
                "v56 = expand_dims v55 {axis = 1} : f32[16,1]
                v57 = broadcast v56 : f32[16,16]"
            }
            _ => "v57 = reshape v55 : f32[16,16]",
        };
        let scales = format!(
            "v50 = arange {{start = 0}} : i32[{columns}]
                v51 = splat v1 : ptr<f32>[{columns}]
                v52 = splat v18 : i32[{columns}]
                v53 = addptr v51, v52 : ptr<f32>[{columns}]
                v54 = addptr v53, v50 : ptr<f32>[{columns}]
                v55 = load v54 : f32[{columns}]
                {spread}
                v58 = fmul v23, v57 : f32[16,16]
                yield v58, v24"
        );
        let text = text(9, &format!("stages = {stages}"), "")
            .replacen("yield v23, v24", &scales, 1)
            .replacen("splat v2", &format!("splat {to}"), 1);
        let func = parse(&text);
        let (loops, func) = pipelined(&func, Target::SM_80);
        assert_eq!(loops, 1);
        loads_left(&func)
    };
    assert_eq!(scaled(3, "v2", 16), 0);
    // Where nothing is under way for long, where the memory is written, and where they are many, they are loaded where they are used.
    assert_eq!(scaled(2, "v2", 16), 1);
    assert_eq!(scaled(3, "v1", 16), 1);
    assert_eq!(scaled(3, "v2", 256), 1);
}

#[test]
fn the_loop_keeps_its_line() {
    let mut func = sum_of_products(9, "stages = 3", "");
    let is_loop = |func: &TileFunction, inst: Inst| func.dfg.insts[inst].op == TileOp::For;
    let of = |func: &TileFunction| {
        let mut insts = func.order.insts(func.entry).iter().copied();
        insts.find(|&inst| is_loop(func, inst))
    };
    let line = SourceLoc(Some(SourceLine(7, 0)).into());
    let before = of(&func).expect("there is one");
    func.dfg.insts[before].loc = line;
    let (_, func) = pipelined(&func, Target::SM_80);
    let after = of(&func).expect("it stays one");
    assert_eq!(func.dfg.insts[after].loc, line);
}

#[test]
fn a_volatile_load_stays_in_its_iteration() {
    let func = sum_of_products(9, "stages = 3", "v50 = load v16 {volatile} : f32[16,16]");
    let (changes, func) = pipelined(&func, Target::SM_80);
    assert_eq!((changes, count(&func, TileOp::Load)), (1, 1));
}

/// What comes into the loop is older than what an iteration leaves.
#[test]
fn a_wait_in_a_loop_counts_for_every_iteration() {
    let func = parse(
        "kernel @k() warps(1) {
        block0:
            v1 = const {value = 0} : i32
            v2 = const {value = 9} : i32
            v3 = const {value = 1} : i32
            v4 = async_commit : token
            v5 = async_commit : token
            v6 = async_commit : token
            v7 = for v1, v2, v3, v4 : token {
            block1(v8: i32, v9: token):
                async_wait v9
                v10 = async_commit : token
                yield v10
            }
            async_wait v7
            return
        }",
    );
    let groups = AsyncGroups::compute(&func);
    let waits = func.dfg.insts.keys();
    let waits = waits.filter(|&i| func.dfg.insts[i].op == TileOp::AsyncWait);
    assert_eq!(waits.map(|i| groups.pending(i)).collect::<Vec<_>>(), [0, 0]);
}

/// Maxima of rows of negative numbers, to which what is masked off must not add a zero.
fn maxima_of_rows(attrs: &str, warps: u32, written: &str) -> TileFunction {
    parse(&format!(
        "kernel @k(v0: ptr<f32> {{divisible = 16}}, v1: ptr<f32> {{divisible = 16}}) warps({warps}) {{
        block0:
            v2 = const {{value = 0}} : i32
            v3 = const {{value = 5}} : i32
            v4 = const {{value = 1}} : i32
            v5 = arange {{start = 0}} : i32[256]
            v6 = const {{value = 200}} : i32[256]
            v7 = icmp v5, v6 {{ipred = slt}} : i1[256]
            v8 = const {{value = -inf}} : f32[256]
            v9 = const {{value = 200}} : i32
            for v2, v3, v4 {attrs} {{
            block1(v10: i32):
                v11 = imul v10, v9 : i32
                v12 = addptr v0, v11 : ptr<f32>
                v13 = splat v12 : ptr<f32>[256]
                v14 = addptr v13, v5 : ptr<f32>[256]
                v15 = load v14, v7, v8 : f32[256]
                v16 = reduce v15 {{axis = 0}} : f32 {{
                block2(v18: f32, v19: f32):
                    v20 = fmax v18, v19 {{nan = ignore}} : f32
                    yield v20
                }}
                v17 = addptr v1, v10 : ptr<f32>
                store v17, v16
                {written}
                yield
            }}
            return
        }}"
    ))
}

#[test]
fn a_loop_without_products_asks_for_its_pipeline() {
    let func = maxima_of_rows("{stages = 3}", 1, "");
    let (changes, after) = pipelined(&func, Target::SM_80);
    assert_eq!((changes, count(&after, TileOp::AsyncCopy)), (1, 3));
    assert_eq!(count(&after, TileOp::Load), 0);
    let numbers = (0..1000u32).flat_map(|i| (-1.0 - (i % 37) as f32).to_le_bytes());
    let buffers = [numbers.collect(), vec![0; 20]];
    assert_eq!(run(&after, &buffers), run(&func, &buffers));

    let others = [
        (
            "no stages of its own",
            maxima_of_rows("", 1, ""),
            Target::SM_80,
        ),
        (
            "one stage",
            maxima_of_rows("{stages = 1}", 1, ""),
            Target::SM_80,
        ),
        ("no copies", func, Target::SM_75),
        (
            "too little for each thread",
            maxima_of_rows("{stages = 3}", 16, ""),
            Target::SM_80,
        ),
        (
            "written",
            maxima_of_rows("{stages = 3}", 1, "store v14, v15, v7"),
            Target::SM_80,
        ),
    ];
    for (why, func, target) in others {
        let (changes, after) = pipelined(&func, target);
        assert_eq!(changes, 0, "{why}");
        assert_eq!(after.to_string(), func.to_string(), "{why}");
    }
}

#[test]
fn stages_of_the_launch_are_for_products() {
    let stages = |func: &TileFunction| {
        let loops = func.insts_with(TileOp::For);
        let stages = loops.map(|(_, inst)| func.dfg.insts[inst].stages().copied());
        stages.collect::<Vec<_>>()
    };
    let mut rows = maxima_of_rows("", 1, "");
    let mut products = sum_of_products(9, "", "");
    let mut asks = sum_of_products(9, "stages = 2", "");
    for func in [&mut rows, &mut products, &mut asks] {
        super::set_stages(func, 4);
    }
    assert_eq!(stages(&rows), [None]);
    assert_eq!(stages(&products), [Some(4)]);
    assert_eq!(stages(&asks), [Some(2)]);
}
