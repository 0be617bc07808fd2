//! What only advises: prefetches whose operands no GPU takes, and lines that are given up.

use tilelift::emu::{
    Arg, EmuError, Fault, Fill, Memory, Options, Stats, Swizzle, TensorElement, TensorMap,
};

use crate::{entry, ptxas, run_text};

/// Runs a body of one thread over a buffer of 4096 written bytes; `%data` is its address, and `map` a tensor of f16 in it.
fn run(body: &str) -> Result<Stats, EmuError> {
    let text = entry(body).replace(
        "(.param .u64 data)",
        "(.param .u64 data, .param .align 64 .b8 map[128])",
    );
    // A register may not be called like a special one.
    let text = text
        .replace("%tid", "%thread")
        .replace("%thread.x", "%tid.x");
    ptxas::assemble_with(&text, "sm_90", &[]);
    let mut memory = Memory::new();
    let data = memory.alloc_bytes(&[7; 4096]);
    let map = TensorMap {
        element: TensorElement::F16,
        base: data,
        extents: vec![64, 16],
        strides: vec![128],
        box_extents: vec![64, 8],
        element_strides: vec![1, 1],
        swizzle: Swizzle::None,
        fill: Fill::Zeros,
    };
    let map = map.encode().expect("a map that can be");
    let args = [Arg::pointer(data), Arg::bytes(&map)];
    run_text(&text, 1, 1, 64, &mut memory, &args, Options::default())
}

#[test]
fn hints_change_nothing() {
    let map = "mov.b64 %d1, map; cvta.param.u64 %d1, %d1;";
    for hint in [
        "prefetch.global.L1 [%data]; prefetch.L2 [%data+4]; prefetch.global.L2::evict_last [%data+8];",
        "prefetchu.L1 [%data]; applypriority.global.L2::evict_normal [%data], 128;",
        "mov.b64 %d0, 64; prefetch.global.L2 [%d0];",
        "cp.async.bulk.prefetch.L2.global [%data], 64;",
        "prefetch.param.tensormap [map]; prefetch.tensormap [%d1];",
        "cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%d1, {8, 3}];",
        "createpolicy.fractional.L2::evict_first.b64 %d2; cp.async.bulk.prefetch.L2.global.L2::cache_hint [%data], 64, %d2;",
    ] {
        run(&format!("{map} {hint} ld.global.u32 %r0, [%data];"))
            .unwrap_or_else(|error| panic!("{hint}: {error}"));
    }
}

/// What a hint is told to be wrong.
fn wrong(body: &str) -> String {
    match run(&format!(
        "mov.b64 %d1, map; cvta.param.u64 %d1, %d1; {body}"
    )) {
        Err(EmuError::Fault { fault, .. }) => fault.to_string(),
        other => panic!("{body}: {other:?}"),
    }
}

#[test]
fn operands_of_prefetches_are_checked() {
    for (body, expected) in [
        ("prefetch.global.L2 [%d5];", "`%d5`"),
        ("prefetchu.L1 [%d5+16];", "`%d5`"),
        ("cp.async.bulk.prefetch.L2.global [%d5], 16;", "`%d5`"),
        ("cp.async.bulk.prefetch.L2.global [%data], %r9;", "`%r9`"),
        (
            "mov.u32 %r1, 24; cp.async.bulk.prefetch.L2.global [%data], %r1;",
            "24 bytes are no positive multiple of 16",
        ),
        (
            "cp.async.bulk.prefetch.L2.global [%data+8], 16;",
            "multiple of 16",
        ),
        (
            "add.u64 %d2, %data, 64; applypriority.global.L2::evict_normal [%d2], 128;",
            "multiple of 128",
        ),
        (
            "cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%d1, {0, %r9}];",
            "`%r9`",
        ),
        (
            "cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%d1, {4, 0}];",
            "the innermost coordinate 4 is 8 bytes into the tensor",
        ),
        (
            "cp.async.bulk.prefetch.tensor.3d.L2.global.tile [%d1, {0, 0, 0}];",
            "3 coordinates for a tensor map of 2 dimensions",
        ),
        ("prefetch.tensormap [%data];", "these bytes are none"),
        (
            "cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%data, {0, 0}];",
            "these bytes are none",
        ),
    ] {
        let fault = wrong(body);
        assert!(fault.contains(expected), "{body}: {fault}");
    }
}

#[test]
fn lines_that_are_discarded_hold_nothing() {
    let gone = run(
        "discard.global.L2 [%data+128], 128; ld.global.u32 %r0, [%data+252]; st.global.u32 [%data], %r0;",
    );
    assert!(
        matches!(
            gone,
            Err(EmuError::Fault {
                fault: Fault::Uninitialised { .. },
                ..
            })
        ),
        "{gone:?}"
    );
    run("discard.global.L2 [%data+128], 128; st.global.u32 [%data+252], 1; ld.global.u32 %r0, [%data+252]; ld.global.u32 %r1, [%data+256];")
        .expect("what is written anew is there, and what is beside it");
    assert!(wrong("discard.global.L2 [%data+64], 128;").contains("multiple of 128"));
}
