//! Who knows of whose accesses: messages through warp barriers of some lanes, flags that are written twice; and barriers used
//! wrongly.

use tilelift::emu::{Arg, EmuError, Fault, Memory, Options};

use crate::{entry, run_text};

/// Runs a body of one CTA, its first word of shared memory a flag that is 0; the first word of the buffer afterwards.
fn run(body: &str, threads: u32, seed: u64) -> Result<u32, EmuError> {
    let text = entry(&format!(
        "mov.u32 %r0, dyn; and.b32 %r1, %tid, 31; shr.u32 %r2, %tid, 5; setp.eq.u32 %p0, %tid, 0;
@%p0 st.shared.u32 [%r0], 0; bar.sync 0;
{body}"
    ));
    let mut memory = Memory::new();
    let data = memory.alloc_bytes(&[0; 4]);
    let options = Options {
        seed,
        check_uninit: false,
        ..Options::default()
    };
    let args = [Arg::pointer(data)];
    run_text(&text, 1, threads, 64, &mut memory, &args, options)?;
    let bytes = memory.read(data, 4).expect("it was written");
    Ok(u32::from_le_bytes(bytes.try_into().expect("four bytes")))
}

fn barrier_reason(body: &str, threads: u32) -> String {
    match run(body, threads, 0).expect_err("the barrier is used wrongly") {
        EmuError::Fault {
            fault: Fault::Barrier { reason, .. },
            ..
        } => reason,
        other => panic!("{other}"),
    }
}

/// Lane 1 of the first warp writes and lane 0 sends; lane 0 of the second warp receives and lane 1 reads.
#[test]
fn a_message_carries_what_a_barrier_of_some_lanes_told() {
    let body = |before: &str, after: &str| {
        format!(
            "setp.eq.u32 %p1, %r1, 0; setp.eq.u32 %p2, %r1, 1; setp.lt.u32 %p3, %r1, 2; setp.ne.u32 %p4, %r2, 0; @%p4 bra RECEIVE;
@%p2 st.shared.u32 [%r0+4], 42;
{before}
@%p1 st.release.cta.shared.u32 [%r0], 1;
bra DONE;
RECEIVE: @!%p1 bra MET;
AGAIN: ld.acquire.cta.shared.u32 %r4, [%r0]; setp.eq.u32 %p5, %r4, 0; @%p5 bra AGAIN;
MET: {after}
@%p2 ld.shared.u32 %r5, [%r0+4]; @%p2 st.global.u32 [%data], %r5;
DONE: mov.u32 %r6, 0;"
        )
    };
    let some = "@%p3 bar.warp.sync 3;";
    let all = "bar.warp.sync -1;";
    for seed in 0..8 {
        for (before, after) in [(some, some), (some, all), (all, some)] {
            let found = run(&body(before, after), 64, seed);
            assert_eq!(found, Ok(42), "{before} {after}");
        }
        for (before, after) in [("", some), (some, ""), ("@!%p1 bar.warp.sync -2;", some)] {
            let error = run(&body(before, after), 64, seed).expect_err("not ordered");
            assert!(matches!(error.fault(), Some(Fault::Race { .. })), "{error}");
        }
    }
}

/// The second warp passes on that the flag was set, by adding to it or by writing it anew.
#[test]
fn a_flag_that_is_written_anew_releases_nothing() {
    let body = |pass_on: &str| {
        format!(
            "setp.ne.u32 %p1, %r1, 0; @%p1 bra DONE;
setp.eq.u32 %p2, %r2, 1; @%p2 bra SECOND; setp.eq.u32 %p3, %r2, 2; @%p3 bra THIRD;
st.shared.u32 [%r0+4], 42; st.release.cta.shared.u32 [%r0], 1; bra DONE;
SECOND: ld.relaxed.cta.shared.u32 %r3, [%r0]; setp.ne.u32 %p4, %r3, 1; @%p4 bra SECOND;
{pass_on} bra DONE;
THIRD: ld.relaxed.cta.shared.u32 %r4, [%r0]; setp.ne.u32 %p5, %r4, 2; @%p5 bra THIRD;
ld.acquire.cta.shared.u32 %r4, [%r0];
ld.shared.u32 %r5, [%r0+4]; st.global.u32 [%data], %r5;
DONE: mov.u32 %r6, 0;"
        )
    };
    for seed in 0..8 {
        let added = "atom.relaxed.cta.shared.add.u32 %r7, [%r0], 1;";
        assert_eq!(run(&body(added), 96, seed), Ok(42));
        let anew = "st.relaxed.cta.shared.u32 [%r0], 2;";
        let error = run(&body(anew), 96, seed).expect_err("not ordered");
        assert!(matches!(error.fault(), Some(Fault::Race { .. })), "{error}");
    }
}

#[test]
fn barriers_of_which_threads_do_not_agree() {
    let cases = [
        ("mov.u32 %r3, 16; bar.sync %r3;", "there are 16 barriers"),
        (
            "barrier.sync %r1, 64;",
            "the number differs among the lanes",
        ),
        (
            "and.b32 %r3, %r1, 1; shl.b32 %r3, %r3, 5; add.u32 %r3, %r3, 32; barrier.sync 1, %r3;",
            "the thread count differs among the lanes",
        ),
        (
            "and.b32 %r3, %r2, 1; add.u32 %r3, %r3, 1; shl.b32 %r3, %r3, 6; bar.sync 1, %r3;",
            "before",
        ),
    ];
    for (body, expected) in cases {
        let reason = barrier_reason(body, 128);
        assert!(reason.contains(expected), "{body}: {reason}");
    }
}

#[test]
fn generic_addresses_tell_their_space() {
    // Bits 0 to 2: whether the address is one of shared, local, device memory.
    let body = |address: &str| {
        format!(
            ".local .align 8 .b8 own[8]; {address}
isspacep.shared %p1, %d0; isspacep.local %p2, %d0; isspacep.global %p3, %d0;
selp.u32 %r3, 1, 0, %p1; selp.u32 %r4, 2, 0, %p2; selp.u32 %r5, 4, 0, %p3;
or.b32 %r3, %r3, %r4; or.b32 %r3, %r3, %r5; @%p0 st.global.u32 [%data], %r3;"
        )
    };
    let cases = [
        ("mov.u64 %d0, dyn; cvta.shared.u64 %d0, %d0;", 1),
        ("mov.u64 %d0, own; cvta.local.u64 %d0, %d0;", 2),
        ("mov.u64 %d0, %data;", 4),
        ("mov.b64 %d0, data; cvta.param.u64 %d0, %d0;", 0),
    ];
    for (address, expected) in cases {
        assert_eq!(run(&body(address), 1, 0), Ok(expected), "{address}");
    }
}

#[test]
fn prefetches_change_nothing() {
    let body = "griddepcontrol.wait; griddepcontrol.launch_dependents; st.global.u32 [%data], 3; prefetch.global.L2 [%data]; prefetchu.L1 [%data]; prefetch.L1 [%data];
applypriority.global.L2::evict_normal [%data], 128; fence.proxy.async;";
    assert_eq!(run(body, 1, 0), Ok(3));
}

/// Runs two CTAs of one warp over a buffer of zeros.
fn run_two(body: &str, seed: u64) -> Result<u32, EmuError> {
    let mut memory = Memory::new();
    let data = memory.alloc_bytes(&[0; 4096]);
    let options = Options {
        seed,
        ..Options::default()
    };
    let args = [Arg::pointer(data)];
    run_text(&entry(body), 2, 32, 64, &mut memory, &args, options)?;
    let bytes = memory.read(data + 64, 4).expect("it was written");
    Ok(u32::from_le_bytes(bytes.try_into().expect("four bytes")))
}

/// A message between CTAs needs the scope of the device on both sides, and on the fences; inside of a CTA its own is enough.
#[test]
fn scopes_order_nothing_outside_of_them() {
    let body = |send: &str, receive: &str| {
        format!(
            "mov.u32 %r0, %ctaid.x; setp.ne.u32 %p0, %r0, 0; setp.ne.u32 %p1, %tid, 0; @%p1 bra DONE; @%p0 bra RECEIVE;
st.global.u32 [%data+64], 42; {send} bra DONE;
RECEIVE: {receive} setp.eq.u32 %p2, %r1, 0; @%p2 bra RECEIVE;
FENCE ld.global.u32 %r2, [%data+64]; DONE: mov.u32 %r3, 0;"
        )
    };
    let wide = "fence.acq_rel.gpu;";
    let narrow = "fence.acq_rel.cta;";
    let relaxed = (
        "st.relaxed.gpu.global.u32 [%data], 1;",
        "ld.relaxed.gpu.global.u32 %r1, [%data];",
    );
    let cases = [
        (
            body(
                "st.release.gpu.global.u32 [%data], 1;",
                "ld.acquire.gpu.global.u32 %r1, [%data];",
            )
            .replace("FENCE", ""),
            true,
        ),
        (
            body(
                "st.release.cta.global.u32 [%data], 1;",
                "ld.acquire.gpu.global.u32 %r1, [%data];",
            )
            .replace("FENCE", ""),
            false,
        ),
        (
            body(
                "st.release.cluster.global.u32 [%data], 1;",
                "ld.acquire.gpu.global.u32 %r1, [%data];",
            )
            .replace("FENCE", ""),
            false,
        ),
        (
            body(
                "st.release.gpu.global.u32 [%data], 1;",
                "ld.acquire.cta.global.u32 %r1, [%data];",
            )
            .replace("FENCE", ""),
            false,
        ),
        (
            body(&format!("{wide} {}", relaxed.0), relaxed.1).replace("FENCE", wide),
            true,
        ),
        (
            body(&format!("{narrow} {}", relaxed.0), relaxed.1).replace("FENCE", wide),
            false,
        ),
        (
            body(&format!("{wide} {}", relaxed.0), relaxed.1).replace("FENCE", narrow),
            false,
        ),
        (
            body(
                "red.release.gpu.global.add.u32 [%data], 1;",
                "atom.acquire.gpu.global.add.u32 %r1, [%data], 0;",
            )
            .replace("FENCE", ""),
            true,
        ),
        (
            body(
                "red.release.cta.global.add.u32 [%data], 1;",
                "atom.acquire.gpu.global.add.u32 %r1, [%data], 0;",
            )
            .replace("FENCE", ""),
            false,
        ),
    ];
    for (text, is_ordered) in cases {
        for seed in 0..6 {
            match run_two(&text, seed) {
                Ok(found) => assert!(is_ordered && found == 42, "{seed}: {text}"),
                Err(error) => {
                    let is_race = matches!(error.fault(), Some(Fault::Race { .. }));
                    assert!(!is_ordered && is_race, "{seed}: {error}\n{text}");
                }
            }
        }
    }
    // Inside of a CTA.
    let own = "setp.ne.u32 %p0, %tid, 0; setp.gt.u32 %p1, %tid, 1; @%p1 bra DONE; @%p0 bra RECEIVE; mov.u32 %r4, %ctaid.x; mad.wide.u32 %data, %r4, 128, %data;
st.global.u32 [%data+64], 42; st.release.cta.global.u32 [%data], 1; bra DONE;
RECEIVE: mov.u32 %r4, %ctaid.x; mad.wide.u32 %data, %r4, 128, %data;
AGAIN: ld.acquire.cta.global.u32 %r1, [%data]; setp.eq.u32 %p2, %r1, 0; @%p2 bra AGAIN;
ld.global.u32 %r2, [%data+64]; DONE: mov.u32 %r3, 0;";
    for seed in 0..6 {
        assert_eq!(run_two(own, seed), Ok(42));
    }
}

/// What `.nc` loads nobody writes, before or after, ordered or not.
#[test]
fn constant_loads_read_what_the_kernel_does_not_write() {
    let load = "ld.global.nc.L1::no_allocate.L2::128B.u32 %r1, [%at];";
    let store = "st.global.u32 [%at], %tid;";
    assert_eq!(
        run_two(
            &format!("{load} {}", "st.global.u32 [%data+64], %r1;").replace("%data+64", "%at+1024"),
            0
        ),
        Ok(0)
    );
    let add = "red.relaxed.gpu.global.add.u32 [%at], 1;";
    for (body, is_first) in [
        (format!("{load} {store}"), true),
        (format!("{load} bar.sync 0; {store}"), true),
        (format!("{load} bar.sync 0; {add}"), true),
        (format!("{load} {load} bar.sync 0; {store}"), true),
        (format!("{store} {load}"), false),
        (format!("{store} bar.sync 0; {load}"), false),
        (format!("{add} bar.sync 0; {load}"), false),
    ] {
        let error = run_two(&body, 0).expect_err("the kernel writes it");
        let is_named = match error.fault() {
            Some(Fault::ConstantWritten { .. }) => is_first,
            Some(Fault::Constant { .. }) => !is_first,
            _ => false,
        };
        assert!(is_named, "{body}: {error}");
    }
}
