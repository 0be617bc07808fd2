//! Copies to shared memory and what is read from there.

use super::{Memory, block, eval, finish, launch, pointer, row_major, shape};
use crate::interp::Arg;
use crate::ir::attrs::IntPred;
use crate::ir::builder::TileBuilder;
use crate::ir::function::BufferData;
use crate::ir::ops::TileOp;
use crate::ir::types::Scalar::{self, I32};
use crate::linear_layout::shape::Shape;

pub(super) const OPS: &[TileOp] = &[
    TileOp::AsyncCopy,
    TileOp::AsyncCommit,
    TileOp::AsyncWait,
    TileOp::SharedLoad,
    TileOp::SharedStore,
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
