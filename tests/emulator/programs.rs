//! Small programs: memory spaces, atomics, barriers, divergence, counters, and texts that are not
//! quite PTX.

use tilelift::emu::{Arg, EmuError, Fault, Launch, Memory, Module, Options, Stats, run};

use crate::{entry, run_body, run_text};

/// Runs a body of one CTA over a zeroed buffer of `words`; the buffer afterwards.
fn words(body: &str, threads: u32, count: usize) -> Vec<u32> {
    words_and_stats(body, threads, count).0
}

fn words_and_stats(body: &str, threads: u32, count: usize) -> (Vec<u32>, Stats) {
    let mut memory = Memory::new();
    let data = memory.alloc_bytes(&vec![0; count * 4]);
    let args = [Arg::pointer(data)];
    match run_text(
        &entry(body),
        1,
        threads,
        4096,
        &mut memory,
        &args,
        Options::default(),
    ) {
        Ok(stats) => (read(&memory, data, count), stats),
        Err(error) => panic!("{error}\n{body}"),
    }
}

fn read(memory: &Memory, data: u64, count: usize) -> Vec<u32> {
    let bytes = memory.read(data, count * 4).expect("written");
    bytes
        .as_chunks::<4>()
        .0
        .iter()
        .map(|&word| u32::from_le_bytes(word))
        .collect()
}

#[test]
fn loads_extend_and_stores_cut() {
    let body = "st.global.u32 [%data], 0x8001ff80;
ld.global.s8 %r0, [%data]; st.global.u32 [%data+4], %r0;
ld.global.u8 %r0, [%data]; st.global.u32 [%data+8], %r0;
ld.global.s16 %r0, [%data+2]; st.global.u32 [%data+12], %r0;
ld.global.u16 %h0, [%data+2]; cvt.u32.u16 %r0, %h0; st.global.u32 [%data+16], %r0;
ld.global.L1::no_allocate.L2::128B.v2.b16 {%h0, %h1}, [%data]; mov.b32 %r0, {%h1, %h0}; st.global.u32 [%data+20], %r0;
ld.global.s32 %d0, [%data]; st.global.cs.u64 [%data+24], %d0;
mov.u32 %r1, 0x12345678; st.global.u8 [%data+32], %r1; st.global.b16 [%data+34], %h1;
createpolicy.fractional.L2::evict_first.b64 %d1, 1.0;
st.global.L1::evict_first.L2::cache_hint.b32 [%data+36], %r1, %d1;
ld.global.L2::cache_hint.b32 %r2, [%data+36], %d1;";
    let got = words(body, 1, 10);
    let want = [
        0x8001_ff80,
        0xffff_ff80,
        0x80,
        0xffff_8001,
        0x8001,
        0xff80_8001,
        0x8001_ff80,
        0xffff_ffff,
        0x8001_0078,
        0x1234_5678,
    ];
    assert_eq!(got, want);
}

#[test]
fn state_spaces_and_generic_addresses() {
    let text = ".version 8.0
.target sm_90
.address_size 64
.global .align 4 .u32 table[4] = {10, 20, 30};
.const .align 4 .f32 half = 0f3F000000;
.shared .align 8 .b8 fixed[64];
.extern .shared .align 16 .b8 dyn[];
.visible .entry kernel(.param .u64 .ptr .global .align 16 data, .param .align 8 .b8 pair[16], .param .u8 small)
.maxntid 64, 1, 1
{
.local .align 8 .b8 stack[16];
.shared .align 4 .u32 more[4];
.reg .b32 %r<20>; .reg .b64 %d<20>; .reg .f32 %f<2>;
ld.param.u64 %d0, [data];
cvta.to.global.u64 %d0, %d0;
ld.param.u32 %r0, [pair+8]; st.global.u32 [%d0], %r0;
ld.param.u8 %r1, [small]; st.global.u32 [%d0+4], %r1;
mov.u64 %d1, table; ld.global.u32 %r2, [%d1+8]; st.global.u32 [%d0+8], %r2;
ld.global.u32 %r2, [table+12]; st.global.u32 [%d0+12], %r2;
ld.const.f32 %f0, [half]; st.global.f32 [%d0+16], %f0;
// A local address as a generic one.
mov.u64 %d2, stack; cvta.local.u64 %d3, %d2; st.local.u32 [stack+4], 77; ld.u32 %r3, [%d3+4]; st.global.u32 [%d0+20], %r3;
// Static and dynamic shared memory do not overlap, and a generic store reaches them.
mov.u64 %d4, fixed; cvta.shared.u64 %d5, %d4; st.u32 [%d5+60], 88; ld.shared.u32 %r4, [fixed+60]; st.global.u32 [%d0+24], %r4;
st.shared.u32 [more], 1; st.shared.u32 [dyn], 2; ld.shared.u32 %r5, [more]; st.global.u32 [%d0+28], %r5;
cvta.to.shared.u64 %d6, %d5; sub.u64 %d6, %d6, %d4; cvt.u32.u64 %r6, %d6; st.global.u32 [%d0+32], %r6;
mov.u32 %r7, %dynamic_smem_size; st.global.u32 [%d0+36], %r7;
ret;
}";
    let module = Module::parse(text).expect("valid");
    let kernel = module.entry("kernel").expect("declared");
    assert_eq!((module.version(), module.target()), ((8, 0), "sm_90"));
    assert_eq!(kernel.static_shared, 64 + 16);
    assert!(kernel.uses_dynamic_shared);
    assert_eq!(kernel.maxntid, Some([64, 1, 1]));
    let offsets: Vec<(u32, u32)> = kernel
        .params
        .iter()
        .map(|param| (param.offset, param.size))
        .collect();
    assert_eq!(offsets, [(0, 8), (8, 16), (24, 1)]);
    let mut memory = Memory::new();
    let data = memory.alloc(40);
    let pair = [0, 0, 0, 0, 0, 0, 0, 0, 9, 1, 0, 0, 0, 0, 0, 0];
    let args = [Arg::pointer(data), Arg::bytes(&pair), Arg::from(5_u8)];
    let launch = Launch {
        grid: [1; 3],
        block: [1; 3],
        shared_bytes: 16,
        args: &args,
        options: Options::default(),
    };
    run(&module, "kernel", &launch, &mut memory).expect("a correct kernel");
    assert_eq!(
        read(&memory, data, 10),
        [265, 5, 30, 0, 0x3f00_0000, 77, 88, 1, 0, 16]
    );
    // Module variables are given back.
    let next = memory.alloc(1);
    assert!(memory.read_raw(data, 40).is_ok() && next > data);
}

#[test]
fn special_registers_of_a_three_dimensional_launch() {
    let text = entry(
        "mov.u32 %r0, %tid.y; mov.u32 %r1, %tid.z; mov.u32 %r2, %ctaid.y; mov.u32 %r3, %nctaid.x; mov.u32 %r4, %ntid.z;
mov.u32 %r5, %laneid; mov.u32 %r6, %warpid; mov.u32 %r7, %lanemask_lt; mov.u32 %r8, %ctaid.x;
// Linear numbers of CTA and thread.
mad.lo.u32 %r9, %r2, %r3, %r8; mad.lo.u32 %r10, %r1, 3, %r0; mad.lo.u32 %r10, %r10, 4, %tid; mad.lo.u32 %r11, %r9, 48, %r10;
mad.wide.u32 %d0, %r11, 16, %data;
shl.b32 %r12, %r6, 5; or.b32 %r12, %r12, %r5; sub.u32 %r12, %r12, %r10;
st.global.v4.u32 [%d0], {%r12, %r4, %r7, %r3};",
    );
    let module = Module::parse(&text).expect("valid");
    let mut memory = Memory::new();
    let data = memory.alloc(6 * 48 * 16);
    let args = [Arg::pointer(data)];
    let launch = Launch {
        grid: [2, 3, 1],
        block: [4, 3, 4],
        shared_bytes: 0,
        args: &args,
        options: Options::default(),
    };
    run(&module, "kernel", &launch, &mut memory).expect("a correct kernel");
    for (index, quad) in read(&memory, data, 6 * 48 * 4)
        .as_chunks::<4>()
        .0
        .iter()
        .enumerate()
    {
        let lane = index as u32 % 48 % 32;
        assert_eq!(*quad, [0, 4, (1 << lane) - 1, 2]);
    }
}

#[test]
fn special_registers_of_lanes_and_shared_memory() {
    let body = "mov.u32 %r0, %lanemask_eq; mov.u32 %r1, %lanemask_le; mov.u32 %r2, %lanemask_lt; mov.u32 %r3, %lanemask_ge; mov.u32 %r4, %lanemask_gt;
or.b32 %r5, %r1, %r4; and.b32 %r5, %r5, %r3; xor.b32 %r5, %r5, %r4; setp.ne.u32 %p0, %r5, %r0; or.b32 %r6, %r2, %r3; setp.ne.or.u32 %p0, %r6, -1, %p0;
selp.u32 %r6, 1, 0, %p0; vote.sync.any.pred %p1, %p0, -1; selp.u32 %r6, 1, 0, %p1;
mov.u32 %r7, %nwarpid; mov.u32 %r8, %total_smem_size; mov.u32 %r9, %dynamic_smem_size; setp.ne.u32 %p2, %tid, 37; @%p2 bra DONE;
st.global.v4.u32 [%data], {%r0, %r1, %r2, %r3}; st.global.v4.u32 [%data+16], {%r4, %r6, %r7, %r8}; st.global.u32 [%data+32], %r9;
DONE: mov.u32 %r6, 0;";
    // Lane 5 of the second of three warps; the shared memory is all dynamic.
    let expected = [0x20, 0x3f, 0x1f, !0x1f, !0x3f, 0, 3, 4096, 4096];
    assert_eq!(words(body, 96, 9), expected);
}

#[test]
fn atomics_of_every_operation() {
    let cases: [(&str, &str, u32, u32); 17] = [
        ("add.u32", "%tid", 5, 5 + 496),
        ("add.s32", "-1", 5, 5_u32.wrapping_sub(32)),
        ("min.s32", "%r9", 100, (-16_i32) as u32),
        ("max.u32", "%tid", 7, 31),
        ("max.s32", "%r9", 7, 15),
        ("and.b32", "0x0f", 0xff, 0x0f),
        ("or.b32", "%r8", 0, u32::MAX),
        ("xor.b32", "%r8", 0, u32::MAX),
        ("exch.b32", "9", 5, 9),
        ("inc.u32", "6", 0, 32 % 7),
        ("dec.u32", "6", 0, 3),
        ("add.f32", "0f3F000000", 0x3f80_0000, 0x4188_0000),
        ("add.noftz.f16x2", "0x3c003c00", 0, 0x5000_5000),
        ("add.noftz.bf16x2", "0x3f803f80", 0, 0x4200_4200),
        ("min.noftz.f16x2", "0x3c00bc00", 0, 0xbc00),
        ("max.bf16x2", "0x3f80bf80", 0, 0x3f80_0000),
        ("cas.b32", "0, 3", 0, 3),
    ];
    for space in ["global", "shared"] {
        for (op, operand, start, want) in cases {
            let at = if space == "global" { "%data" } else { "%r0" };
            let body = format!(
                "sub.s32 %r9, %tid, 16; mov.u32 %r8, 1; shl.b32 %r8, %r8, %tid; mov.u32 %r0, dyn; setp.eq.u32 %p0, %tid, 0;
@%p0 st.{space}.u32 [{at}], {start};
bar.sync 0;
atom.{space}.{op} %r1, [{at}], {operand};
bar.sync 0;
ld.{space}.u32 %r2, [{at}]; st.global.u32 [%data+4], %r2;"
            );
            assert_eq!(words(&body, 32, 2)[1], want, "{space} {op}");
        }
    }
    // The old value comes back: each lane draws a number of its own.
    let drawn = words(
        "atom.relaxed.gpu.global.add.u32 %r1, [%data], 1; mad.wide.u32 %d1, %r1, 4, %data; st.global.u32 [%d1+4], %tid;",
        32,
        33,
    );
    let mut seen = drawn[1..].to_vec();
    seen.sort_unstable();
    assert_eq!((drawn[0], seen), (32, (0..32).collect()));
    let wide = "mov.u64 %d0, 3; red.global.add.u64 [%data], %d0; red.relaxed.gpu.global.add.v2.f32 [%data+8], {0f3F800000, 0f40000000};
atom.global.exch.b64 %d1, [%data+16], %d0; red.global.add.f64 [%data+24], 0d3FF0000000000000;";
    assert_eq!(
        words(wide, 2, 8),
        [6, 0, 0x4000_0000, 0x4080_0000, 3, 0, 0, 0x4000_0000]
    );
}

#[test]
fn named_barriers_pass_data_from_producers_to_consumers() {
    // Warp 0 produces and goes on; warp 1 waits for it alone; warp 2 takes no part.
    let body = "mov.u32 %r0, dyn; and.b32 %r1, %tid, 31; mad.lo.u32 %r2, %r1, 4, %r0;
setp.lt.u32 %p0, %tid, 32; setp.ge.u32 %p1, %tid, 64;
@%p1 bra DONE; @!%p0 bra CONSUME;
st.shared.u32 [%r2], %tid; bar.arrive 3, 64; bra DONE;
CONSUME: bar.sync 3, 64; xor.b32 %r2, %r2, 124; ld.shared.u32 %r3, [%r2]; mad.wide.u32 %d0, %r1, 4, %data; st.global.u32 [%d0], %r3;
DONE: bar.sync 0;";
    let (got, stats) = words_and_stats(body, 96, 32);
    assert_eq!(got, (0..32).rev().collect::<Vec<u32>>());
    assert_eq!(stats.barriers, 2);
}

#[test]
fn barriers_that_reduce_and_do_not_need_alignment() {
    let body = "setp.lt.u32 %p0, %tid, 10; setp.lt.u32 %p1, %tid, 100;
bar.red.popc.u32 %r0, 0, %p0; bar.red.and.pred %p2, 1, %p0; bar.red.or.pred %p3, 2, %p0; barrier.cta.red.aligned.and.pred %p4, 1, 64, %p1;
selp.u32 %r1, 1, 0, %p2; selp.u32 %r2, 1, 0, %p3; selp.u32 %r3, 1, 0, %p4;
@!%p0 bra OTHER; barrier.sync 4; bra DONE;
OTHER: barrier.sync 4;
DONE: st.global.v4.u32 [%data], {%r0, %r1, %r2, %r3};";
    assert_eq!(words(body, 64, 4), [10, 0, 1, 1]);
}

#[test]
fn barriers_of_a_block_that_is_no_multiple_of_a_warp() {
    let body = "mov.u32 %r0, dyn; mad.lo.u32 %r1, %tid, 4, %r0; st.shared.u32 [%r1], %tid; bar.sync 0;
sub.u32 %r2, 39, %tid; mad.lo.u32 %r1, %r2, 4, %r0; ld.shared.u32 %r3, [%r1]; barrier.sync 1; st.global.u32 [%at], %r3;";
    assert_eq!(words(body, 40, 40), (0..40).rev().collect::<Vec<u32>>());
}

#[test]
fn diverged_lanes_meet_again_under_every_seed() {
    // Each lane loops as often as its number says, then all shuffle. The lanes that go on are those that jump, or
    // those that do not.
    let loops = [
        "@%p0 bra OUT; add.u32 %r0, %r0, 1; mad.lo.u32 %r1, %r0, %r0, %r1; bra LOOP;",
        "@!%p0 bra NEXT; bra OUT; NEXT: add.u32 %r0, %r0, 1; mad.lo.u32 %r1, %r0, %r0, %r1; bra LOOP;",
    ];
    for (rounds, seed) in loops
        .iter()
        .flat_map(|rounds| (0..10).map(move |seed| (rounds, seed)))
    {
        let body = format!(
            "mov.u32 %r0, 0; mov.u32 %r1, 0; LOOP: setp.ge.u32 %p0, %r0, %tid; {rounds}
OUT: shfl.sync.bfly.b32 %r2, %r1, 31, 31, 0xffffffff; vote.sync.ballot.b32 %r3, 1, -1; st.global.u32 [%at], %r2;"
        );
        let mut memory = Memory::new();
        let data = memory.alloc(128);
        let options = Options {
            seed,
            ..Options::default()
        };
        run_text(
            &entry(&body),
            1,
            32,
            0,
            &mut memory,
            &[Arg::pointer(data)],
            options,
        )
        .expect("a correct kernel");
        let squares = |n: u32| (1..=n).map(|i| i * i).sum::<u32>();
        assert_eq!(
            read(&memory, data, 32),
            (0..32).map(|lane| squares(31 - lane)).collect::<Vec<_>>()
        );
    }
}

#[test]
fn a_lock_inside_a_warp_makes_progress() {
    // Lanes of one warp take a lock in turns: the holder must run although others spin.
    let body = "SPIN: atom.acquire.gpu.global.cas.b32 %r0, [%data], 0, 1; setp.ne.u32 %p0, %r0, 0; @%p0 bra SPIN;
ld.global.u32 %r1, [%data+4]; add.u32 %r1, %r1, 1; st.global.u32 [%data+4], %r1;
atom.release.gpu.global.exch.b32 %r2, [%data], 0;";
    for seed in 0..5 {
        let mut memory = Memory::new();
        let data = memory.alloc_bytes(&[0; 8]);
        let options = Options {
            seed,
            step_limit: 1_000_000,
            ..Options::default()
        };
        run_text(
            &entry(body),
            3,
            64,
            0,
            &mut memory,
            &[Arg::pointer(data)],
            options,
        )
        .expect("a correct lock");
        assert_eq!(read(&memory, data, 2), [0, 192]);
    }
}

#[test]
fn partial_masks_and_early_exits() {
    let body = "setp.ge.u32 %p0, %tid, 20; @%p0 exit;
setp.lt.u32 %p1, %tid, 8; @!%p1 bra HIGH;
redux.sync.add.u32 %r0, %tid, 0x000000ff; bra DONE;
HIGH: redux.sync.add.u32 %r0, %tid, 0x000fff00;
DONE: bar.warp.sync 0x000fffff; activemask.b32 %r1; @%p1 shfl.sync.idx.b32 %r0, %r0, 3, 31, 0xff; st.global.u32 [%at], %r0;";
    let got = words(body, 32, 32);
    assert_eq!(got[..8], [28; 8]);
    assert_eq!(got[8..20], [162; 12]);
    assert_eq!(got[20..], [0; 12]);
}

#[test]
fn carries_run_through_128_bits() {
    let body = "mov.u32 %r0, -1; mov.u32 %r1, 1; add.cc.u32 %r2, %r0, %r1; addc.cc.u32 %r3, %r0, 0; addc.u32 %r4, %r1, 5;
sub.cc.u32 %r5, %r1, %r0; subc.u32 %r6, %r1, 0;
st.global.v4.u32 [%data], {%r2, %r3, %r4, %r5}; st.global.u32 [%data+16], %r6;";
    assert_eq!(words(body, 1, 5), [0, 0, 7, 2, 0]);
}

#[test]
fn inner_blocks_hide_names() {
    let body = "mov.u32 %r0, 1; .reg .b32 x; mov.u32 x, 5;
{ .reg .b32 x, %r<2>; .reg .pred %p<1>; mov.u32 x, 7; mov.u32 %r1, 9; st.global.u32 [%data], x; bra SKIP; st.global.u32 [%data], 0; SKIP: st.global.u32 [%data+4], %r1; }
{ bra SKIP; SKIP: st.global.u32 [%data+8], x; }
/* a comment
over lines */ .pragma \"nounroll\"; .loc 1 2 3
st.global.u32 [%data+12], %r0;";
    assert_eq!(words(body, 1, 4), [7, 9, 5, 1]);
}

#[test]
fn bank_conflicts_and_sectors_are_counted() {
    let conflicts = |stride: u32, store: &str| {
        let body = format!("mov.u32 %r0, dyn; mad.lo.u32 %r1, %tid, {stride}, %r0; {store}");
        let (_, stats) = words_and_stats(&body, 32, 1);
        (stats.shared_wavefronts, stats.shared_ideal_wavefronts)
    };
    assert_eq!(conflicts(4, "st.shared.u32 [%r1], %tid;"), (1, 1));
    assert_eq!(conflicts(8, "st.shared.u32 [%r1], %tid;"), (2, 1));
    assert_eq!(conflicts(128, "st.shared.u32 [%r1], %tid;"), (32, 1));
    assert_eq!(conflicts(68, "st.shared.u32 [%r1], %tid;"), (1, 1));
    assert_eq!(
        conflicts(16, "st.shared.v4.u32 [%r1], {%tid, %tid, %tid, %tid};"),
        (4, 4)
    );
    assert_eq!(
        conflicts(128, "st.shared.v4.u32 [%r1], {%tid, %tid, %tid, %tid};"),
        (32, 4)
    );
    // One word for everybody is a broadcast.
    assert_eq!(
        conflicts(
            0,
            "setp.eq.u32 %p0, %tid, 0; @%p0 st.shared.u32 [%r1], %tid; bar.sync 0; ld.shared.u32 %r2, [%r1];"
        ),
        (2, 2)
    );
    let (_, stats) = words_and_stats("st.global.u32 [%at], %tid;", 32, 32);
    assert_eq!((stats.global_requests, stats.global_sectors), (1, 4));
    let (_, stats) = words_and_stats(
        "mad.wide.u32 %d0, %tid, 32, %data; st.global.u32 [%d0], %tid;",
        32,
        256,
    );
    assert_eq!((stats.global_requests, stats.global_sectors), (1, 32));
}

#[test]
fn runs_repeat_exactly_for_a_seed() {
    let body = "mov.u32 %r1, %laneid; setp.lt.u32 %p0, %r1, 16; @%p0 bra A; bar.warp.sync 0xffff0000; A: atom.global.add.u32 %r0, [%data], 1; st.global.u32 [%at+4], %r0;";
    let once = |seed| {
        let mut memory = Memory::new();
        let data = memory.alloc_bytes(&[0; 4 + 64 * 4]);
        let options = Options {
            seed,
            ..Options::default()
        };
        let stats = run_text(
            &entry(body),
            1,
            64,
            0,
            &mut memory,
            &[Arg::pointer(data)],
            options,
        )
        .expect("valid");
        (read(&memory, data, 65), stats)
    };
    assert_eq!(once(1), once(1));
    assert!(
        (2..20).any(|seed| once(seed).0 != once(1).0),
        "the seed has no effect"
    );
}

/// Damaged texts must end in errors or run to some end, never panic.
#[test]
fn damaged_texts_do_no_harm() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/ptx/triton");
    let mut state = 1_u64;
    let mut random = |end: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) as usize) % end.max(1)
    };
    let names = [
        "softmax_fp32_w8_sm90",
        "layer_norm_backward_dx_sm80",
        "gelu_fp16_sm80",
        "vector_add_bf16_sm90",
    ];
    let (mut parsed, mut refused) = (0, 0);
    for round in 0..600 {
        let name = names[round % names.len()];
        let text =
            std::fs::read_to_string(format!("{folder}/{name}.ptx")).expect("committed test data");
        let mut tokens: Vec<&str> = text.split_inclusive([' ', ',', '\n', '\t', '.']).collect();
        for _ in 0..1 + random(3) {
            let (a, b) = (random(tokens.len()), random(tokens.len()));
            match random(4) {
                0 => drop(tokens.remove(a)),
                1 => tokens.insert(a, tokens[b]),
                2 => tokens[a] = tokens[b],
                _ => tokens.swap(a, b),
            }
        }
        let text = tokens.concat();
        let Ok(module) = Module::parse(&text) else {
            refused += 1;
            continue;
        };
        parsed += 1;
        let Some(entry) = module.entries().next() else {
            continue;
        };
        let mut memory = Memory::new();
        let args: Vec<Arg> = entry
            .params
            .iter()
            .map(|param| {
                if param.size == 8 {
                    Arg::pointer(memory.alloc_bytes(&[0; 8192]))
                } else {
                    Arg::bytes(&vec![3; param.size as usize])
                }
            })
            .collect();
        let options = Options {
            step_limit: 20_000,
            ..Options::default()
        };
        let block = entry.reqntid.unwrap_or([64, 1, 1]);
        let launch = Launch {
            grid: [2, 1, 1],
            block,
            shared_bytes: 64,
            args: &args,
            options,
        };
        // Any result will do; most of them run into a wild address.
        let _ = run(&module, &entry.name, &launch, &mut memory);
    }
    assert!(
        parsed > 20 && refused > 20,
        "{parsed} parsed, {refused} refused"
    );
}

#[test]
fn calls_are_reported_where_they_are_reached() {
    let text = entry("setp.eq.u32 %p0, %tid, 3; @%p0 bra CALL; bra DONE; CALL: { .param .b32 p0; st.param.b32 [p0], %tid; call.uni fail, (p0); } DONE: mov.u32 %r0, 0;")
        .replace(".visible .entry", ".extern .func fail(.param .b32 a);\n.visible .entry");
    let mut memory = Memory::new();
    let data = memory.alloc(4);
    let error = run_text(
        &text,
        1,
        32,
        0,
        &mut memory,
        &[Arg::pointer(data)],
        Options::default(),
    );
    let error: EmuError = error.expect_err("thread 3 calls");
    assert!(
        matches!(error.fault(), Some(Fault::Unsupported(_))),
        "{error}"
    );
    run_text(
        &text,
        1,
        3,
        0,
        &mut memory,
        &[Arg::pointer(data)],
        Options::default(),
    )
    .expect("nobody calls");
    run_body("mov.u32 %r0, 0;", 32, &mut memory, data).expect("nothing happens");
}
