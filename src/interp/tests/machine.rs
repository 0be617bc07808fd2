//! Ops that ask the machine for something: the interpreter answers within what the IR leaves open, or names the op.

use super::{Memory, finish, launch, pointer};
use crate::interp::{Arg, InterpErrorKind};
use crate::ir::attrs::{Flag, make};
use crate::ir::builder::TileBuilder;
use crate::ir::ops::TileOp;
use crate::ir::types::Scalar::{I32, I64};
use crate::ir::types::{Elem, TileType};

pub(super) const OPS: &[TileOp] = &[
    TileOp::InlinePtx,
    TileOp::SmId,
    TileOp::CtaId,
    TileOp::NumCtas,
    TileOp::GroupId,
    TileOp::NumGroups,
    TileOp::SlotPut,
    TileOp::SlotGet,
    TileOp::GlobalTimer,
    TileOp::GdcWait,
    TileOp::GdcLaunchDependents,
];

#[test]
fn inline_ptx_is_named() {
    let mut b = TileBuilder::new("k", 1);
    let texts = ("mov.u32 $0, 1;", "=r");
    b.inline_ptx(&[], texts, 1, &[TileType::scalar(Elem::I32)]);
    b.with(make::pure(Flag));
    let func = finish(b);
    let result = launch(&func, &[], &mut Memory::new()).map_err(|error| error.to_string());
    let message = "program (0, 0, 0), inst0 (inline_ptx): `inline_ptx` cannot be interpreted";
    assert_eq!(result, Err(message.to_owned()));
    let kind = InterpErrorKind::NotExecutable("inline_ptx");
    assert!(message.ends_with(&kind.to_string()));
}

/// Programs that are dealt out to CTAs write their numbers, each once.
#[test]
fn ctas_share_out_programs() {
    let text = "kernel @k(v0: ptr<i32>) warps(1) persistent {
        block0:
            v1 = num_programs {axis = 0} : i32
            v2 = num_programs {axis = 1} : i32
            v3 = imul v1, v2 : i32
            v4 = cta_id : i32
            v5 = num_ctas : i32
            for v4, v3, v5 {
            block1(v6: i32):
                v7 = addptr v0, v6 : ptr<i32>
                store v7, v4
                yield
            }
            return
        }";
    let func = crate::text::parse::parse_tile(text).expect("a kernel");
    for (grid, owners) in [
        ([1, 1, 1], &[0][..]),
        ([2, 2, 1], &[0, 1, 2, 0]),
        ([7, 1, 1], &[0, 1, 2, 0, 1, 2, 0]),
    ] {
        let mut memory = Memory::new();
        let to = memory.alloc(4 * owners.len());
        let args = [Arg::Ptr(to)];
        let launch = crate::interp::Launch { grid, args: &args };
        let stats = crate::interp::run(
            &func,
            &launch,
            &mut memory,
            &crate::interp::Options::default(),
        );
        assert_eq!(
            stats.map(|stats| stats.programs),
            Ok(owners.len().min(3) as u64)
        );
        let written: Vec<u8> = owners
            .iter()
            .flat_map(|owner: &i32| owner.to_le_bytes())
            .collect();
        assert_eq!(memory.read(to, written.len()), Ok(&written[..]));
    }
}

#[test]
fn time_goes_on_and_the_processor_exists() {
    let mut b = TileBuilder::new("k", 1);
    let sm = b.param("sm", pointer(I32));
    let times = b.param("times", pointer(I64));
    b.gdc_wait();
    let id = b.sm_id();
    b.store(sm, id, None);
    let one = b.const_bits(1, TileType::scalar(Elem::I64));
    let second = b.addptr(times, one);
    for place in [times, second] {
        let time = b.global_timer();
        b.store(place, time, None);
    }
    b.gdc_launch_dependents();
    let func = finish(b);
    let mut memory = Memory::new();
    let (sm, times) = (memory.alloc(4), memory.alloc(16));
    launch(&func, &[Arg::Ptr(sm), Arg::Ptr(times)], &mut memory).expect("nothing is undefined");
    assert_eq!(memory.read(sm, 4), Ok(&[0; 4][..]));
    let read = |at| memory.read(at, 8).expect("stored").to_vec();
    assert!(read(times) < read(times + 8));
}

/// One group has every turn, and finds what it left.
#[test]
fn a_group_takes_turns_with_itself() {
    let text = |put: &str| {
        format!(
            "kernel @k(v0: ptr<i32>) warps(4) groups(2) persistent {{
                slot0 = 4 bytes align 4
            block0:
                v1 = group_id : i32
                v2 = num_groups : i32
                v3 = iadd v1, v2 : i32
                {put}
                v4 = slot_get {{slot = slot0}} : i32
                store v0, v4
                return
            }}"
        )
    };
    let run = |put: &str| {
        let func = crate::text::parse::parse_tile(&text(put)).expect("a kernel");
        let mut memory = Memory::new();
        let to = memory.alloc(4);
        let outcome = launch(&func, &[Arg::Ptr(to)], &mut memory);
        let written = memory.read(to, 4).map(<[u8]>::to_vec);
        outcome.map(|_| written).map_err(|error| error.to_string())
    };
    assert_eq!(run("slot_put v3 {slot = slot0}"), Ok(Ok(vec![1, 0, 0, 0])));
    let error = run("").expect_err("nothing was left");
    assert!(
        error.contains("slot_get") && error.contains("slot0"),
        "{error}"
    );
}
