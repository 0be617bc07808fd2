//! Boxes of tensors, and the barriers on which copies of them arrive.

use super::{Memory, launch};
use crate::interp::Arg;
use crate::ir::ops::TileOp;
use crate::text::parse::parse_tile;

pub(super) const OPS: &[TileOp] = &[
    TileOp::TensorMap,
    TileOp::TensorLoad,
    TileOp::TensorStore,
    TileOp::TensorCopy,
    TileOp::MbarInit,
    TileOp::MbarDrop,
    TileOp::MbarExpect,
    TileOp::MbarWait,
    TileOp::MbarWaitFor,
];

/// Columns of the tensor in memory.
const PITCH: u64 = 12;

/// What a kernel reads as boxes of 2 by 4 of a tensor of 3 rows of 10 columns of i32, rows 12 elements apart, whose element at
/// (i, j) is 100 i + j + 1. `lines` define `v20` of 2 by 4 from the map `v9`.
fn boxed(lines: &str) -> Result<Vec<i32>, String> {
    let text = format!(
        "kernel @k(v0 \"x\": ptr<i32>, v1 \"y\": ptr<i32>, v2 \"cond\": i1) warps(1) {{
            slot0 = 64 bytes align 128 holds 2 of i32[2,4]
            slot1 = 16 bytes align 8
        block0:
            v3 = const {{value = 3}} : i64
            v4 = const {{value = 10}} : i64
            v5 = const {{value = 12}} : i64
            v9 = tensor_map v0, v2, v3, v4, v5 {{values = [2, 4]}} : map<i32>
            v10 = const {{value = 0}} : i32
            v11 = const {{value = 1}} : i32
            v12 = const {{value = 4}} : i32
            v13 = const {{value = -4}} : i32
            v14 = const {{value = 8}} : i32
            v15 = const {{value = 2}} : i32
            v16 = const {{value = true}} : i1
            v17 = const {{value = false}} : i1
            {lines}
            v30 = arange {{start = 0}} : i32[8]
            v31 = reshape v30 : i32[2,4]
            v32 = splat v1 : ptr<i32>[2,4]
            v33 = addptr v32, v31 : ptr<i32>[2,4]
            store v33, v20
            return
        }}"
    );
    let func = parse_tile(&text).map_err(|errors| format!("{errors:?}"))?;
    crate::verify::verify(&func).map_err(|errors| errors.to_string())?;
    let mut memory = Memory::new();
    let element = |i: u64| (100 * (i / PITCH) + i % PITCH + 1) as i32;
    let numbers: Vec<u8> = (0..3 * PITCH)
        .flat_map(|i| element(i).to_le_bytes())
        .collect();
    let from = memory.alloc_bytes(&numbers);
    let to = memory.alloc(32);
    let args = [Arg::Ptr(from), Arg::Ptr(to), Arg::Int(1)];
    launch(&func, &args, &mut memory).map_err(|error| error.to_string())?;
    let bytes = memory.read(to, 32).map_err(|error| error.to_string())?;
    let words = bytes.as_chunks::<4>().0.iter();
    Ok(words.map(|&word| i32::from_le_bytes(word)).collect())
}

#[test]
fn outside_of_the_tensor_are_zeros() {
    let load = |start: &str| boxed(&format!("v20 = tensor_load v9, {start} : i32[2,4]"));
    assert_eq!(load("v10, v12"), Ok(vec![5, 6, 7, 8, 105, 106, 107, 108]));
    assert_eq!(
        load("v11, v10"),
        Ok(vec![101, 102, 103, 104, 201, 202, 203, 204])
    );
    // Past the last row, and past the last column, where memory holds more.
    assert_eq!(load("v15, v14"), Ok(vec![209, 210, 0, 0, 0, 0, 0, 0]));
    // In front of the first column and the first row.
    assert_eq!(load("v10, v13"), Ok(vec![0; 8]));
    assert_eq!(load("v13, v10"), Ok(vec![0; 8]));
}

#[test]
fn a_box_starts_at_a_multiple_of_16_bytes() {
    let error = boxed("v20 = tensor_load v9, v10, v11 : i32[2,4]").expect_err("4 bytes");
    assert!(error.contains("innermost coordinate 1"), "{error}");
}

/// Announces and starts a copy of the box at (0, 4) to entry 1.
const START: &str = "mbar_init {slot = slot1, count = 1}
            mbar_expect v11, v16 {slot = slot1, bytes = 32}
            tensor_copy v9, v11, v16, v10, v12 {slot = slot0, bars = slot1}";
const LOAD: &str = "v20 = shared_load v11 {slot = slot0} : i32[2,4]";

#[test]
fn copies_arrive_at_the_wait_for_their_phase() {
    let wait = "mbar_wait v11, v10 {slot = slot1}";
    let expected = vec![5, 6, 7, 8, 105, 106, 107, 108];
    assert_eq!(boxed(&format!("{START}\n{wait}\n{LOAD}")), Ok(expected));
    let error = boxed(&format!("{START}\n{LOAD}")).expect_err("nobody waited");
    assert!(
        error.contains("entry 1 of slot0 holds nothing yet"),
        "{error}"
    );
    // The phase before the first one, of parity 1, has ended: that wait is for nothing.
    let early = "mbar_wait v11, v11 {slot = slot1}";
    let error = boxed(&format!("{START}\n{early}\n{LOAD}")).expect_err("another phase");
    assert!(
        error.contains("entry 1 of slot0 holds nothing yet"),
        "{error}"
    );
}

#[test]
fn waits_that_nobody_ends_are_errors() {
    let other = "mbar_wait v10, v10 {slot = slot1}";
    let error = boxed(&format!("{START}\n{other}\n{LOAD}")).expect_err("another barrier");
    assert!(
        error.contains("nobody ends the phase of barrier 0"),
        "{error}"
    );
    let more = START.replace("bytes = 32", "bytes = 33");
    let wait = "mbar_wait v11, v10 {slot = slot1}";
    let error = boxed(&format!("{more}\n{wait}\n{LOAD}")).expect_err("a byte is missing");
    assert!(
        error.contains("nobody ends the phase of barrier 1"),
        "{error}"
    );
    let dropped = format!("{START}\nmbar_drop {{slot = slot1}}\n{wait}\n{LOAD}");
    let error = boxed(&dropped).expect_err("there is no barrier any more");
    assert!(error.contains("there is no barrier 1 in slot1"), "{error}");
}

#[test]
fn nothing_happens_where_there_is_no_box() {
    let none = START.replace("v16", "v17");
    let wait = "mbar_wait v11, v10 {slot = slot1}";
    let error = boxed(&format!("{none}\n{wait}\n{LOAD}")).expect_err("nobody arrived");
    assert!(
        error.contains("nobody ends the phase of barrier 1"),
        "{error}"
    );
}

#[test]
fn a_wait_with_an_end_says_whether_the_phase_ended() {
    let asked = |index: &str| {
        boxed(&format!(
            "{START}
            v40 = mbar_wait_for {index}, v10 {{slot = slot1, tries = 3}} : i1
            v41 = select v40, v11, v10 : i32
            v20 = splat v41 : i32[2,4]"
        ))
    };
    assert_eq!(asked("v11"), Ok(vec![1; 8]));
    assert_eq!(asked("v10"), Ok(vec![0; 8]));
}

/// What stands in columns 6 to 9 of rows 1 and 2 of the tensor of [`boxed`], of which a map with so many columns is stored to, behind
/// a store of sevens.
fn stored(columns: u32, start: &str) -> Result<Vec<i32>, String> {
    boxed(&format!(
        "v38 = const {{value = {columns}}} : i64
        v39 = tensor_map v0, v2, v3, v38, v5 {{values = [2, 4]}} : map<i32>
        v40 = const {{value = 7}} : i32[2,4]
        tensor_store v39, v40, {start}
        barrier
        v41 = arange {{start = 1}} : i32[2]
        v42 = expand_dims v41 {{axis = 1}} : i32[2,1]
        v43 = const {{value = 12}} : i32[2,1]
        v44 = imul v42, v43 : i32[2,1]
        v45 = arange {{start = 6}} : i32[4]
        v46 = expand_dims v45 {{axis = 0}} : i32[1,4]
        v47 = broadcast v44 : i32[2,4]
        v48 = broadcast v46 : i32[2,4]
        v49 = iadd v47, v48 : i32[2,4]
        v50 = splat v0 : ptr<i32>[2,4]
        v51 = addptr v50, v49 : ptr<i32>[2,4]
        v20 = load v51 : i32[2,4]"
    ))
}

#[test]
fn nothing_is_written_outside_of_the_tensor() {
    let (first, second) = ([107, 108, 109, 110], [207, 208, 209, 210]);
    // Past the last row.
    assert_eq!(
        stored(8, "v15, v12"),
        Ok([first, [7, 7, 209, 210]].concat())
    );
    // Past the last column, where memory holds more.
    assert_eq!(stored(8, "v11, v14"), Ok([first, second].concat()));
    let both = [[7, 7, 109, 110], [7, 7, 209, 210]].concat();
    assert_eq!(stored(8, "v11, v12"), Ok(both));
    let refused = |columns, start, expected| {
        let error = stored(columns, start).expect_err(expected);
        assert!(error.contains(expected), "{error}");
    };
    refused(8, "v10, v11", "innermost coordinate 1");
    refused(
        8,
        "v13, v12",
        "starts at coordinate -4, in front of the tensor",
    );
    refused(
        10,
        "v11, v14",
        "rows of 10 elements, which are no multiple of 16 bytes",
    );
}
