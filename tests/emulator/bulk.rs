//! Bulk copies: what they move, what they need before and behind them, and copies of threads under way.

use tilelift::emu::{Arg, EmuError, Fault, Memory, Module, Options};

use crate::phases::{kernel, report, reported, run};
use crate::run_text;

/// Runs a kernel on 64 threads; what the buffer, of bytes that count up, holds afterwards.
fn bytes_after(text: &str, seed: u64) -> Vec<u8> {
    let mut memory = Memory::new();
    let start: Vec<u8> = (0..4096).map(|i| (i % 251) as u8).collect();
    let data = memory.alloc_bytes(&start);
    let options = Options {
        seed,
        ..Options::default()
    };
    let args = [Arg::bytes(&[0; 128]), Arg::pointer(data)];
    if let Err(error) = run_text(text, 1, 64, 8192, &mut memory, &args, options) {
        panic!("{error}\n{text}");
    }
    memory.read(data, 4096).expect("it was written")
}

const LOAD: &str = "@%first mbarrier.arrive.expect_tx.shared::cta.b64 _, [%b], 256;
@%first cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%s], [%data], 256, [%b];";
const WAIT: &str = "W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%b], 0; @!%p2 bra W;";
/// Each thread reads its word and writes it, plus one, further up.
const USE: &str = "mad.lo.u32 %r1, %t, 4, %s; ld.shared.u32 %r2, [%r1]; add.u32 %r2, %r2, 1; mad.wide.u32 %d1, %t, 4, %data; st.global.u32 [%d1+1024], %r2;";
const FENCE: &str = "fence.proxy.async.shared::cta;";
const STORE: &str = "@%first cp.async.bulk.global.shared::cta.bulk_group [%data], [%s], 256; @%first cp.async.bulk.commit_group;";
const FILL: &str = "mad.lo.u32 %r1, %t, 4, %s; st.shared.u32 [%r1], %t;";

fn load(load: &str, wait: &str, then: &str) -> String {
    kernel(1, &format!("{load}\n{wait}\n{then}"))
}

#[test]
fn loads_signal_barriers() {
    for seed in 0..12 {
        let bytes = bytes_after(&load(LOAD, WAIT, USE), seed);
        for i in 0..64 {
            let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four"));
            assert_eq!(word(1024 + 4 * i), word(4 * i) + 1, "{i}");
        }
    }
    for seed in 0..6 {
        let text = report(&load(LOAD, "", USE), seed);
        assert!(
            text.contains("race") || text.contains("not all of them written"),
            "{text}"
        );
        // Only the thread that waited knows.
        let text = report(
            &load(LOAD, &format!("@!%first bra PAST; {WAIT} PAST:"), USE),
            seed,
        );
        assert!(
            text.contains("race") || text.contains("not all of them written"),
            "{text}"
        );
    }
    for seed in 0..6 {
        let text = load(
            LOAD,
            &format!("@!%first bra PAST; {WAIT} PAST: bar.sync 1;"),
            USE,
        );
        assert_eq!(bytes_after(&text, seed)[1024], 1);
    }
}

#[test]
fn bytes_of_loads_are_exact() {
    let more = LOAD.replace("[%b], 256", "[%b], 272");
    reported(
        1,
        &format!("{more}\n{WAIT}\n{USE}"),
        "phase 0 lacks 0 arrivals and 16 bytes",
    );
    let less = LOAD.replace("[%b], 256", "[%b], 240");
    reported(
        1,
        &format!("{less}\n{WAIT}\n{USE}"),
        "phase 0 got 16 bytes more than it expects",
    );
    // Of bytes that nobody expects the phase does not wait.
    let none = LOAD
        .replace("arrive.expect_tx", "arrive")
        .replace("[%b], 256", "[%b]");
    reported(
        1,
        &format!("{none}\n{WAIT}\n{USE}"),
        "not all of them written",
    );
    let behind: Vec<&str> = none.lines().rev().collect();
    let words =
        "phase 0 completes while 256 bytes of line 14, which it does not expect, are under way";
    let late = report(&load(&behind.join("\n"), WAIT, USE), 0);
    assert!(late.contains(words), "{late}");
    // Nobody waits.
    let unused = "mov.u32 %r9, 0;";
    let early = report(&load(LOAD, "", unused), 0);
    assert!(
        early.contains("the end is reached of a CTA while this is under way"),
        "{early}"
    );
    for (from, to, words) in [
        (
            "[%data], 256",
            "[%data], 248",
            "248 bytes are no positive multiple of 16",
        ),
        (
            "[%data], 256",
            "[%data], 0",
            "0 bytes are no positive multiple of 16",
        ),
        ("[%data]", "[%data+8]", "not a multiple of 16"),
        ("[%s]", "[%s+8]", "not a multiple of 16"),
        ("[%data]", "[%data+4000]", "out of bounds"),
        ("[%s]", "[%s+6992]", "out of bounds"),
    ] {
        reported(1, &LOAD.replace(from, to), words);
    }
}

#[test]
fn barriers_are_visible_to_the_async_proxy() {
    let init = "@%first mbarrier.init.shared::cta.b64 [%b], 1; FENCE bar.sync 0;";
    let text = |fence: &str| {
        let init = init.replace("FENCE", fence);
        kernel(0, &format!("{init}\n{LOAD}\n{WAIT}\n{USE}"))
    };
    for fence in [
        "@%first fence.mbarrier_init.release.cluster;",
        FENCE,
        "fence.proxy.async;",
    ] {
        assert_eq!(bytes_after(&text(fence), 0)[1024], 1, "{fence}");
    }
    for fence in ["", "fence.acq_rel.gpu;", "fence.proxy.async.global;"] {
        let found = report(&text(fence), 0);
        assert!(
            found.contains("is not visible to the async proxy"),
            "{found}"
        );
    }
}

#[test]
fn shared_memory_is_free_before_loads_and_stores_fill_it() {
    // What the generic proxy read and wrote needs a barrier and a fence: loads may be under way at a barrier.
    let reads = "mad.lo.u32 %r1, %t, 4, %s; ld.shared.u32 %r3, [%r1];";
    let fill = format!("{FILL} FENCE bar.sync 1;");
    let with = fill.replace("FENCE", FENCE);
    // Of the readers, or of the thread that copies.
    for order in [
        format!("{FENCE} bar.sync 1;"),
        format!("bar.sync 1; {FENCE}"),
        format!("bar.sync 1; @%first {FENCE}"),
    ] {
        let text = load(&format!("{with}\n{reads} {order}\n{LOAD}"), WAIT, USE);
        assert_eq!(bytes_after(&text, 0)[1024], 1, "{order}");
    }
    reported(
        1,
        &format!("{with}\n{reads} bar.sync 1;\n{LOAD}\n{WAIT}\n{USE}"),
        "no fence makes the read",
    );
    let without = fill.replace("FENCE", "");
    reported(
        1,
        &format!("{without}\n{LOAD}\n{WAIT}\n{USE}"),
        "no fence makes the write",
    );
    let unordered = format!("{with}\n{reads} {LOAD}\n{WAIT}\n{USE}");
    reported(1, &unordered, "no fence makes the read");
}

#[test]
fn stores_need_fences_before_and_waits_behind_them() {
    let text = |fence: &str, sync: &str, wait: &str| {
        kernel(0, &format!("{FILL}\n{fence}\n{sync}\n{STORE}\n{wait}"))
    };
    for seed in 0..6 {
        for wait in [
            "@%first cp.async.bulk.wait_group 0;",
            "@%first cp.async.bulk.wait_group.read 0;",
        ] {
            let bytes = bytes_after(&text(FENCE, "bar.sync 1;", wait), seed);
            assert!((0..64).all(|i| bytes[4 * i] == i as u8), "{wait}");
        }
        let wait = "@%first cp.async.bulk.wait_group 0;";
        let found = report(&text("", "bar.sync 1;", wait), seed);
        assert!(found.contains("no fence makes the write"), "{found}");
        let found = report(&text(FENCE, "", wait), seed);
        let is_named =
            found.contains("race on shared") || found.contains("not all of them written");
        assert!(is_named, "{found}");
        // Only the issuing thread's fence: the others' writes are not visible.
        let found = report(
            &text("@%first fence.proxy.async;", "bar.sync 1;", wait),
            seed,
        );
        assert!(found.contains("no fence makes the write"), "{found}");
        for wait in ["", "@%first cp.async.bulk.wait_group 1;"] {
            let found = report(&text(FENCE, "bar.sync 1;", wait), seed);
            assert!(
                found.contains("before a wait says that this has read its shared memory"),
                "{found}"
            );
        }
        let found = report(
            &text(FENCE, "bar.sync 1;", "@%first cp.async.bulk.wait_group 0;")
                .replace("@%first cp.async.bulk.commit_group;", ""),
            seed,
        );
        assert!(found.contains("before a wait"), "{found}");
    }
}

#[test]
fn sources_of_stores_stay_until_their_wait() {
    let body = |wait: &str, again: &str| {
        format!("{FILL}\n{FENCE}\nbar.sync 1;\n{STORE}\n{wait} bar.sync 1;\n{again}")
    };
    let again = format!("st.shared.u32 [%r1], 9;\n{FENCE}\nbar.sync 1; @%first cp.async.bulk.global.shared::cta.bulk_group [%data+512], [%s], 256;
@%first cp.async.bulk.commit_group; @%first cp.async.bulk.wait_group 0;");
    for seed in 0..6 {
        let bytes = bytes_after(
            &kernel(0, &body("@%first cp.async.bulk.wait_group.read 0;", &again)),
            seed,
        );
        assert_eq!((bytes[4], bytes[516]), (1, 9));
    }
    reported(0, &body("", &again), "race on shared");
    // Reading what a store writes needs the whole wait; so does a second store to the same place.
    let read = "@%first ld.global.u32 %r5, [%data+4]; @%first st.global.u32 [%data], %r5;";
    assert_eq!(
        run(
            &kernel(0, &body("@%first cp.async.bulk.wait_group 0;", read)),
            0
        ),
        Ok(1)
    );
    let early = report(
        &kernel(0, &body("@%first cp.async.bulk.wait_group.read 0;", read)),
        0,
    );
    assert!(
        early.contains("race on global") || early.contains("not all of them written"),
        "{early}"
    );
    let twice = again.replace("+512", "");
    reported(
        0,
        &body("@%first cp.async.bulk.wait_group.read 0;", &twice),
        "race on global",
    );
}

#[test]
fn what_the_kernel_wrote_to_device_memory_needs_a_fence() {
    let write = "mad.wide.u32 %d1, %t, 4, %data; st.global.u32 [%d1], %t; FENCE bar.sync 1;";
    let text = |fence: &str| format!("{}\n{LOAD}\n{WAIT}\n{USE}", write.replace("FENCE", fence));
    for fence in ["fence.proxy.async.global;", "fence.proxy.async;"] {
        assert_eq!(bytes_after(&kernel(1, &text(fence)), 0)[1028], 2, "{fence}");
    }
    for fence in ["", FENCE] {
        reported(1, &text(fence), "no fence makes the write");
    }
}

#[test]
fn reductions_combine_elements() {
    let text = |op: &str| {
        kernel(0, &format!("{FILL}\n{FENCE}\nbar.sync 1;
@%first cp.reduce.async.bulk.global.shared::cta.bulk_group.{op} [%data], [%s], 256; @%first cp.reduce.async.bulk.global.shared::cta.bulk_group.{op} [%data], [%s], 256;
@%first cp.async.bulk.commit_group; @%first cp.async.bulk.wait_group 0;"))
    };
    let start = |i: usize| u32::from_le_bytes([0, 1, 2, 3].map(|b| ((4 * i + b) % 251) as u8));
    type Combine = fn(u32, u32) -> u32;
    let cases: [(&str, Combine); 5] = [
        ("add.u32", |a, b| a.wrapping_add(b).wrapping_add(b)),
        ("max.s32", |a, b| (a as i32).max(b as i32) as u32),
        ("min.u32", u32::min),
        ("and.b32", |a, b| a & b),
        ("xor.b32", |a, _| a),
    ];
    for (op, expected) in cases {
        let bytes = bytes_after(&text(op), 1);
        for i in 0..64 {
            let found = u32::from_le_bytes(bytes[4 * i..4 * i + 4].try_into().expect("four"));
            assert_eq!(found, expected(start(i), i as u32), "{op} {i}");
        }
    }
}

/// Operations that the assembler does not take.
#[test]
fn reductions_that_do_not_exist_are_refused() {
    for op in [
        "add.s64", "add.b32", "min.f32", "inc.s32", "and.u32", "xor.b16", "max.b64",
    ] {
        let body =
            format!("cp.reduce.async.bulk.global.shared::cta.bulk_group.{op} [%data], [%s], 256;");
        assert!(Module::parse(&kernel(0, &body)).is_err(), "{op}");
    }
}

/// Copies of a thread (`cp.async`) under way.
#[test]
fn copies_under_way_are_accesses_of_their_own() {
    let copy = "mad.lo.u32 %r1, %t, 16, %s; mad.wide.u32 %d1, %t, 16, %data; cp.async.cg.shared.global [%r1], [%d1], 16;";
    let wait = "cp.async.wait_all;";
    for (between, words) in [
        // The source is overwritten before the wait.
        ("st.global.u32 [%d1+4], 7;", "race on global"),
        // A plain store to bytes that the copy still writes.
        ("st.shared.u32 [%r1+4], 7;", "race on shared"),
        // Two copies to the same bytes.
        (
            "cp.async.cg.shared.global [%r1], [%d1+1024], 16;",
            "race on shared",
        ),
        (
            "cp.async.commit_group; cp.async.ca.shared.global [%r1+8], [%d1+1024], 4;",
            "race on shared",
        ),
    ] {
        reported(0, &format!("{copy}\n{between}\n{wait}"), words);
        let behind = format!(
            "{copy}\n{wait}\n{between}\n{wait} st.global.u32 [%data+2048], 5; @%first st.global.u32 [%data], 5;"
        );
        assert_eq!(run(&kernel(0, &behind), 0), Ok(5), "{behind}");
    }
    // Copies that read the same bytes are no race.
    let same = format!(
        "{copy}\ncp.async.cg.shared.global [%r1+2048], [%d1], 16; {wait} @%first st.global.u32 [%data+2048], 5; st.global.u32 [%data+3000], 5;"
    );
    assert_eq!(run(&kernel(0, &same), 0), Ok(0));
}

#[test]
fn multicast_to_others_and_im2col_are_refused() {
    let multicast = LOAD
        .replace("bytes [%s]", "bytes.multicast::cluster [%s]")
        .replace("256, [%b];", "256, [%b], %h0;");
    let body = format!("mov.b16 %h0, 3;\n{multicast}");
    match run(&kernel(1, &body), 0) {
        Err(EmuError::Fault {
            fault: Fault::Cluster(what),
            ..
        }) => assert!(what.contains("no CTA of rank 1 among 1"), "{what}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(
        bytes_after(&load(&body.replace("%h0, 3", "%h0, 1"), WAIT, USE), 0)[1024],
        1
    );
    let im2col = "cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%s], [%map, {%r0, %r1, %r2}], [%b], {%h0};";
    let error = Module::parse(&kernel(1, im2col)).expect_err("it is refused");
    assert!(
        error
            .to_string()
            .contains("copies by im2col are not emulated"),
        "{error}"
    );
}

/// Runs a body in both CTAs of a cluster; the 512 bytes from 1024 of the buffer.
fn pair(body: &str, seed: u64) -> Result<Vec<u8>, EmuError> {
    let text = kernel(1, body).replacen(")\n{", ")\n.reqnctapercluster 2, 1, 1\n{", 1);
    let mut memory = Memory::new();
    let start: Vec<u8> = (0..4096).map(|i| (i % 251) as u8).collect();
    let data = memory.alloc_bytes(&start);
    let options = Options {
        seed,
        ..Options::default()
    };
    let args = [Arg::bytes(&[0; 128]), Arg::pointer(data)];
    run_text(&text, 2, 64, 8192, &mut memory, &args, options)?;
    Ok(memory.read(data + 1024, 512).expect("it was written"))
}

/// A load that two CTAs of a cluster get, or one the other's; each waits at its own barrier. Arrivals reach the other CTA.
#[test]
fn loads_and_arrivals_reach_other_ctas() {
    let meet = "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;";
    let both = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%s], [%data], 256, [%b], %h0;";
    let each = "mapa.shared::cluster.u32 %r10, %s, %r9; mapa.shared::cluster.u32 %r11, %b, %r9;
@%p5 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r10], [%data], 256, [%r11];";
    let body = |loads: &str, meet_before: &str| {
        format!(
            "mov.b16 %h0, 3; mov.u32 %r9, %cluster_ctarank; setp.eq.u32 %p4, %r9, 0; and.pred %p4, %p4, %first; xor.b32 %r9, %r9, 1; and.pred %p5, %first, %first;
@%first mbarrier.arrive.expect_tx.shared::cta.b64 _, [%b], 256; {meet_before}
{loads}
{WAIT}
mov.u32 %r9, %cluster_ctarank; mul.lo.u32 %r9, %r9, 256; cvt.u64.u32 %d5, %r9; add.u64 %d5, %data, %d5;
mad.lo.u32 %r1, %t, 4, %s; ld.shared.u32 %r2, [%r1]; add.u32 %r2, %r2, 1; mad.wide.u32 %d1, %t, 4, %d5; st.global.u32 [%d1+1024], %r2; {meet}"
        )
    };
    for loads in [&format!("@%p4 {both}")[..], each] {
        for seed in 0..6 {
            let bytes = pair(&body(loads, meet), seed).unwrap_or_else(|e| panic!("{e}"));
            for i in 0..128 {
                assert_eq!(bytes[4 * i], (4 * (i % 64)) as u8 % 251 + 1, "{loads} {i}");
            }
        }
        // The barrier of the other CTA, and its memory, must be there and known.
        for seed in 0..6 {
            assert!(pair(&body(loads, ""), seed).is_err(), "{loads}");
        }
    }
    let arrive = |meet_before: &str| {
        format!(
            "{meet_before} mov.u32 %r9, %cluster_ctarank; xor.b32 %r9, %r9, 1; mapa.shared::cluster.u32 %r11, %b, %r9;
@%first mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r11];
{WAIT}
mad.wide.u32 %d1, %t, 4, %data; st.global.u32 [%d1+1024], 7; st.global.u32 [%d1+1280], 7; {meet}"
        )
    };
    for seed in 0..6 {
        let bytes = pair(&arrive(meet), seed).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(bytes[0..4], [7, 0, 0, 0]);
        assert!(pair(&arrive(""), seed).is_err());
    }
}

/// Each of two CTAs sends what it wrote to the other, whose barrier counts the bytes.
#[test]
fn shared_memory_is_sent_to_other_ctas() {
    const MEET: &str =
        "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;";
    const SEND: &str = "@%first cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r10], [%s], 256, [%r11];";
    let text = format!(
        "mov.u32 %r9, %cluster_ctarank; mad.lo.u32 %r1, %t, 4, %s; mad.lo.u32 %r2, %t, 8, %r9; st.shared.u32 [%r1], %r2;
fence.proxy.async.shared::cta;
@%first mbarrier.arrive.expect_tx.shared::cta.b64 _, [%b], 256;
{MEET}
xor.b32 %r9, %r9, 1; add.u32 %r10, %s, 1024; mapa.shared::cluster.u32 %r10, %r10, %r9; mapa.shared::cluster.u32 %r11, %b, %r9;
{SEND}
{WAIT}
ld.shared.u32 %r2, [%r1+1024]; xor.b32 %r9, %r9, 1; mad.lo.u32 %r9, %r9, 64, %t; mad.wide.u32 %d1, %r9, 4, %data; st.global.u32 [%d1+1024], %r2;
{MEET} st.shared.u32 [%r1], 5;"
    );
    for seed in 0..9 {
        let bytes = pair(&text, seed).unwrap_or_else(|error| panic!("{seed}: {error}"));
        for (i, word) in bytes.as_chunks::<4>().0.iter().enumerate() {
            let wanted = 8 * (i as u32 % 64) + (1 - i as u32 / 64);
            assert_eq!(u32::from_le_bytes(*word), wanted, "{seed}: {i}");
        }
    }
    let faults = [
        (
            "fence.proxy.async.shared::cta;",
            "",
            "no fence makes the write",
        ),
        ("[%b], 256;", "[%b], 240;", "16 bytes more than it expects"),
        ("[%b], 256;", "[%b], 272;", "deadlock"),
        (SEND, "", "deadlock"),
        (SEND, &format!("{SEND}\n{SEND}"), "race on shared"),
        // The source is written while it is sent, or where nothing tells that it came.
        (
            SEND,
            &format!("{SEND}\nst.shared.u32 [%r1], 5;"),
            "race on shared",
        ),
        (
            WAIT,
            &format!("{WAIT}\nst.shared.u32 [%r1], 5;"),
            "race on shared",
        ),
        // What comes is read too early.
        (WAIT, "", "shared"),
        (
            "[%r10], [%s], 256",
            "[%r10], [%s], 248",
            "no positive multiple of 16",
        ),
        (
            "[%r10], [%s], 256",
            "[%r10+8], [%s], 256",
            "not a multiple of 16",
        ),
        ("[%r11];", "[%b];", "it signals a barrier of rank"),
        ("[%s], 256, [", "[%s+7008], 256, [", "out of bounds"),
        (
            "[%s], 256, [",
            "[%s+4096], 256, [",
            "not all of them written",
        ),
    ];
    for (from, to, words) in faults {
        assert_eq!(text.matches(from).count(), 1, "{from}");
        for seed in 0..6 {
            match pair(&text.replace(from, to), seed) {
                Err(error) => assert!(error.to_string().contains(words), "{from} {seed}: {error}"),
                Ok(_) => panic!("`{from}` as `{to}` is not reported under seed {seed}"),
            }
        }
    }
    // Without meeting before, barrier and memory of the other need not be there; without meeting behind, it may end.
    let (before, behind) = text.rsplit_once(MEET).expect("it is there");
    for seed in 0..6 {
        assert!(pair(&format!("{before}{behind}"), seed).is_err());
        assert!(pair(&text.replacen(MEET, "", 1), seed).is_err());
    }
    let error = Module::parse(&kernel(1, &SEND.replace("[%r11];", "[%r11], %h0;")));
    let error = error.expect_err("there is no such operand");
    assert!(error.to_string().contains("operands"), "{error}");
    let reduction = |op: &str| {
        let reduce = format!("bytes.{op} [");
        text.replace(
            SEND,
            &SEND
                .replace("cp.async", "cp.reduce.async")
                .replace("bytes [", &reduce),
        )
        .replacen(
            "fence.proxy",
            "st.shared.u32 [%r1+1024], 77; fence.proxy",
            1,
        )
    };
    type Combined = fn(u32) -> u32;
    let cases: [(&str, Combined); 5] = [
        ("add.u32", |x| 77 + x),
        ("min.s32", |x| x.min(77)),
        ("xor.b32", |x| x ^ 77),
        ("inc.u32", |x| if 77 >= x { 0 } else { 78 }),
        ("add.u64", |x| 77 + x),
    ];
    for (op, wanted) in cases {
        for seed in 0..6 {
            let bytes = pair(&reduction(op), seed).unwrap_or_else(|error| panic!("{op}: {error}"));
            for (i, word) in bytes.as_chunks::<4>().0.iter().enumerate() {
                let sent = 8 * (i as u32 % 64) + (1 - i as u32 / 64);
                assert_eq!(u32::from_le_bytes(*word), wanted(sent), "{op}, {seed}: {i}");
            }
        }
    }
    // What they are added to must be there, and be visible to the async proxy.
    let add = reduction("add.u32");
    for (from, to, words) in [
        (
            "st.shared.u32 [%r1+1024], 77;",
            "",
            "not all of them written",
        ),
        (
            "fence.proxy.async.shared::cta;",
            "",
            "no fence makes the write",
        ),
        (WAIT, "", "race on shared"),
    ] {
        let error = pair(&add.replacen(from, to, 1), 1).expect_err("it is reported");
        assert!(error.to_string().contains(words), "{from}: {error}");
    }
    for op in ["add.f16", "min.u64", "and.b64", "add.f32"] {
        let statement = SEND
            .replace("cp.async", "cp.reduce.async")
            .replace("bytes [", &format!("bytes.{op} ["));
        assert!(Module::parse(&kernel(1, &statement)).is_err(), "{op}");
    }
}

/// More reads under way of the same bytes than two: none is forgotten before its wait.
#[test]
fn all_stores_of_one_source_are_remembered() {
    let store = "cp.async.bulk.global.shared::cta.bulk_group [%data+AT], [%s], 256; cp.async.bulk.commit_group;";
    for count in 2..6 {
        let stores: Vec<String> = (0..count)
            .map(|i| store.replace("AT", &(256 * i).to_string()))
            .collect();
        let body = |wait: &str| {
            let stores = stores.join("\n");
            format!(
                "{FILL}\n{FENCE}\nbar.sync 1; @!%first bra DONE;\n{stores}\n{wait}\nst.shared.u32 [%s+4], 99; cp.async.bulk.wait_group 0;\nDONE: mov.u32 %r9, 0;"
            )
        };
        for left in 1..count {
            let wait = format!("cp.async.bulk.wait_group.read {left};");
            reported(0, &body(&wait), "race on shared");
        }
        let bytes = bytes_after(&kernel(0, &body("cp.async.bulk.wait_group.read 0;")), 1);
        assert!((0..count).all(|i| bytes[256 * i + 4] == 1), "{count}");
    }
}

/// Addresses of `.shared::cta` reach the own CTA alone, whether copies read there or write.
#[test]
fn copies_of_the_own_cta_reach_no_peer() {
    let head = "mov.u32 %r9, %cluster_ctarank; xor.b32 %r9, %r9, 1; mapa.shared::cluster.u32 %r10, %s, %r9; mapa.shared::cluster.u32 %r11, %b, %r9;
barrier.cluster.arrive; barrier.cluster.wait;";
    for copy in [
        "@%first cp.async.bulk.global.shared::cta.bulk_group [%data], [%r10], 256;",
        "@%first cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r10], [%data], 256, [%r11];",
        "@%first cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r10], [%r10], 256, [%r11];",
    ] {
        for seed in 0..4 {
            let error = pair(&format!("{head}\n{copy}"), seed).expect_err("it reaches a peer");
            let text = error.to_string();
            assert!(
                text.contains("this is memory of the CTA of rank")
                    && text.contains("only `.shared::cluster` reaches"),
                "{copy}: {text}"
            );
        }
    }
}
