//! Copies to shared memory and what is read from there.

use super::{Memory, block, eval, finish, launch, pointer, row_major, shape};
use crate::interp::Arg;
use crate::ir::attrs::IntPred;
use crate::ir::builder::TileBuilder;
use crate::ir::function::BufferData;
use crate::ir::ops::TileOp;
use crate::ir::types::Scalar::{self, I32};
use crate::linear_layout::shape::Shape;
use crate::text::parse::parse_tile;

pub(super) const OPS: &[TileOp] = &[
    TileOp::AsyncCopy,
    TileOp::AsyncCommit,
    TileOp::AsyncWait,
    TileOp::SharedLoad,
    TileOp::SharedStore,
    TileOp::SharedView,
    TileOp::DotStart,
    TileOp::DotDone,
    TileOp::DotWait,
    TileOp::DotSum,
];

/// Copies four numbers to entry 1 of a ring of two, and reads entry `read` after a wait if `waits`; gives what was read.
fn copied(read: i32, waits: bool, entries: u32) -> Result<Vec<u64>, String> {
    let mut b = TileBuilder::new("k", 1);
    let extents = shape(&[4]);
    let [from, to] = ["x", "y"].map(|name| b.param(name, pointer(I32)));
    let slot = b.func_mut().add_buffer(BufferData {
        elem: Scalar::I32,
        shape: extents,
        stages: entries,
    });
    let pointers = row_major(&mut b, from, extents);
    let [one, place] = [1, read].map(|i| b.i32(i, Shape::SCALAR));
    let first = b.arange(0, block(I32, &[4]));
    let three = b.i32(3, extents);
    let mask = b.icmp(first, three, IntPred::Slt);
    let copy = b.async_copy(pointers, one, Some(mask), slot);
    let group = b.async_commit(&[copy]);
    if waits {
        b.async_wait(&[group]);
    }
    let found = b.shared_load(place, slot, block(I32, &[4]));
    let pointers = row_major(&mut b, to, extents);
    b.store(pointers, found, None);
    let func = finish(b);
    let mut memory = Memory::new();
    let numbers: Vec<u8> = [5_u32, 6, 7, 8]
        .iter()
        .flat_map(|n| n.to_le_bytes())
        .collect();
    let from = memory.alloc_bytes(&numbers);
    let to = memory.alloc(16);
    let args = [Arg::Ptr(from), Arg::Ptr(to)];
    launch(&func, &args, &mut memory).map_err(|error| error.to_string())?;
    let bytes = memory.read(to, 16).map_err(|error| error.to_string())?;
    let words = bytes.as_chunks::<4>().0.iter();
    Ok(words
        .map(|&word| u64::from(u32::from_le_bytes(word)))
        .collect())
}

#[test]
fn a_stored_block_is_there_at_once() {
    let numbers: Vec<u64> = vec![5, 6, 7, 8];
    let found = eval(&[(I32, &numbers)], |b, xs| {
        let slot = b.func_mut().add_buffer(BufferData {
            elem: Scalar::I32,
            shape: shape(&[4]),
            stages: 1,
        });
        let zero = b.i32(0, Shape::SCALAR);
        b.shared_store(xs[0], zero, slot);
        b.shared_load(zero, slot, block(I32, &[4]))
    });
    assert_eq!(found, numbers);
}

#[test]
fn copies_arrive_at_the_wait() {
    assert_eq!(copied(1, true, 2), Ok(vec![5, 6, 7, 0]));
    let error = copied(1, false, 2).expect_err("nothing was waited for");
    assert!(
        error.contains("entry 1 of slot0 holds nothing yet"),
        "{error}"
    );
    let error = copied(0, true, 2).expect_err("nothing was copied there");
    assert!(
        error.contains("entry 0 of slot0 holds nothing yet"),
        "{error}"
    );
    let error = copied(1, true, 1).expect_err("there is one entry");
    assert!(
        error.contains("slot0 has 1 entries, not number 1"),
        "{error}"
    );
}

/// The square of 1, 2, 3, 4 and the matrix itself added, by a product that reads its right operand, transposed if `crossed`, where
/// it stands. What `under_way` says is done before a wait for it, `behind` after.
fn started(crossed: bool, under_way: &str, behind: &str) -> Result<Vec<f32>, String> {
    let operand = if crossed { "v9" } else { "v8" };
    let text = format!(
        "kernel @k(v0 \"x\": ptr<f32>, v1 \"y\": ptr<f32>) warps(4) {{
            slot0 = 32 bytes align 16 holds 2 of f32[2,2]
        block0:
            v2 = arange {{start = 0}} : i32[4]
            v3 = reshape v2 : i32[2,2]
            v4 = splat v0 : ptr<f32>[2,2]
            v5 = addptr v4, v3 : ptr<f32>[2,2]
            v6 = load v5 : f32[2,2]
            v7 = const {{value = 1}} : i32
            shared_store v6, v7 {{slot = slot0}}
            v8 = shared_view v7 {{slot = slot0}} : f32[2,2; shared]
            v9 = permute v8 {{dims = [1, 0]}} : f32[2,2; shared]
            v10, v11 = dot_done v6 : f32[2,2], token
            v12, v13 = dot_start v6, {operand}, v10 {{precision = ieee}} : f32[2,2], token
            dot_wait v11
            v20 = const {{value = 0}} : i32
            {under_way}
            dot_wait v13
            {behind}
            v14 = dot_sum v12, v13 : f32[2,2]
            v15 = splat v1 : ptr<f32>[2,2]
            v16 = addptr v15, v3 : ptr<f32>[2,2]
            store v16, v14
            return
        }}"
    );
    let func = parse_tile(&text).map_err(|errors| format!("{errors:?}"))?;
    let mut memory = Memory::new();
    let numbers = [1_f32, 2.0, 3.0, 4.0];
    let bytes: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
    let from = memory.alloc_bytes(&bytes);
    let to = memory.alloc(16);
    let args = [Arg::Ptr(from), Arg::Ptr(to)];
    launch(&func, &args, &mut memory).map_err(|error| error.to_string())?;
    let bytes = memory.read(to, 16).map_err(|error| error.to_string())?;
    let words = bytes.as_chunks::<4>().0.iter();
    Ok(words.map(|&word| f32::from_le_bytes(word)).collect())
}

#[test]
fn a_product_reads_where_its_operand_stands() {
    assert_eq!(started(false, "", ""), Ok(vec![8.0, 12.0, 18.0, 26.0]));
    assert_eq!(started(true, "", ""), Ok(vec![6.0, 13.0, 14.0, 29.0]));
}

#[test]
fn what_a_product_reads_stays_until_a_wait() {
    let store = "shared_store v6, v7 {slot = slot0}";
    let copy = "v21 = async_copy v5, v7 {slot = slot0} : token";
    for change in [store, copy] {
        for crossed in [false, true] {
            let error = started(crossed, change, "").expect_err("the product is under way");
            let expected =
                "entry 1 of slot0 changes while a product that was not waited for reads it";
            assert!(error.contains(expected), "{change}: {error}");
        }
        assert!(started(false, "", change).is_ok(), "{change}");
    }
    let other = "shared_store v6, v20 {slot = slot0}";
    assert!(started(false, other, "").is_ok());
}
