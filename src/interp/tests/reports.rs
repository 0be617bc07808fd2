//! Prints and assertions.

use super::{Memory, block, finish, launch, shape};
use crate::device_print::sites;
use crate::interp::{Arg, InterpErrorKind};
use crate::ir::attrs::{IntPred, Show, make};
use crate::ir::builder::TileBuilder;
use crate::ir::ops::TileOp;
use crate::ir::types::Scalar::I32;
use crate::ir::types::{Elem, TileType};

pub(super) const OPS: &[TileOp] = &[TileOp::DevicePrint, TileOp::DeviceAssert];

#[test]
fn prints_are_collected_in_memory() {
    let mut b = TileBuilder::new("k", 1);
    b.device_print(None, "here".into());
    let x = b.arange(-1, block(I32, &[2]));
    b.device_print(Some(x), "x".into());
    b.device_print(Some(x), "bits".into());
    b.with(make::show(Show::Hex));
    let func = finish(b);
    let mut memory = Memory::new();
    launch(&func, &[], &mut memory).expect("nothing is undefined");
    let sites: Vec<_> = sites(&func).into_iter().map(|(_, site)| site).collect();
    let lines = memory.take_log().lines(&sites);
    let expected = [
        "pid (0, 0, 0) here",
        "pid (0, 0, 0) idx (0) x: -1",
        "pid (0, 0, 0) idx (1) x: 0",
        "pid (0, 0, 0) idx (0) bits: 0xffffffff",
        "pid (0, 0, 0) idx (1) bits: 0x00000000",
    ];
    assert_eq!(lines, expected);
    assert!(memory.take_log().records.is_empty());
}

#[test]
fn the_first_element_that_fails_is_named() {
    let mut b = TileBuilder::new("k", 1);
    let n = b.param("n", TileType::scalar(Elem::I32));
    let x = b.arange(0, block(I32, &[4]));
    let n_block = b.to_shape(n, shape(&[4]));
    let below = b.icmp(x, n_block, IntPred::Slt);
    b.device_assert(below, "below n".into());
    let zero = b.i32(0, crate::linear_layout::shape::Shape::SCALAR);
    let positive = b.icmp(n, zero, IntPred::Sgt);
    b.device_assert(positive, "positive".into());
    let func = finish(b);
    for (n, failed) in [(4, None), (2, Some((Some(2), "below n"))), (5, None)] {
        let result = launch(&func, &[Arg::Int(n)], &mut Memory::new());
        let expected = failed.map(|(element, text)| InterpErrorKind::AssertFailed {
            text: text.into(),
            element,
        });
        assert_eq!(result.err().map(|error| error.kind), expected);
    }
}
