//! Barriers in shared memory: what they order, what they count, and how they are used wrongly.

use tilelift::emu::{Arg, EmuError, Fault, Memory, Options};

use crate::run_text;

/// An entry with `%s` dynamic shared memory, `%b` a barrier there that starts with `count` arrivals (none for 0), `%t` and `%w`
/// the numbers of thread and warp, `%first` whether it is thread 0, `%data` the buffer. The body starts in line 14.
pub(crate) fn kernel(count: u32, body: &str) -> String {
    let init = match count {
        0 => String::new(),
        _ => format!(
            "@%first mbarrier.init.shared::cta.b64 [%b], {count}; @%first fence.mbarrier_init.release.cluster;"
        ),
    };
    format!(
        ".version 8.6
.target sm_90a
.address_size 64
.extern .shared .align 1024 .b8 dyn[];
.visible .entry kernel(.param .align 64 .b8 map[128], .param .u64 data)
{{
.reg .pred %p<16>, %first; .reg .b16 %h<8>; .reg .b32 %r<64>, %s, %b, %t, %w; .reg .b64 %d<32>, %data, %map; .reg .f32 %f<8>;
ld.param.u64 %data, [data]; mov.u64 %map, map; cvta.param.u64 %map, %map; mov.u32 %b, dyn; add.u32 %s, %b, 1024;
mov.u32 %t, %tid.x; shr.u32 %w, %t, 5; setp.eq.u32 %first, %t, 0;
{{
{init}
bar.sync 0;
{{
{body}
}}
}}
ret;
}}
"
    )
}

/// Runs a kernel on 64 threads under a seed; the first word of the buffer afterwards.
pub(crate) fn run(text: &str, seed: u64) -> Result<u32, EmuError> {
    let mut memory = Memory::new();
    let data = memory.alloc_bytes(&[0; 4096]);
    let options = Options {
        seed,
        ..Options::default()
    };
    let args = [Arg::bytes(&[0; 128]), Arg::pointer(data)];
    run_text(text, 1, 64, 8192, &mut memory, &args, options)?;
    let bytes = memory.read(data, 4).expect("it was written");
    Ok(u32::from_le_bytes(bytes.try_into().expect("four bytes")))
}

/// What the run of a body under a seed says is wrong, in words.
pub(crate) fn report(text: &str, seed: u64) -> String {
    match run(text, seed) {
        Err(error @ EmuError::Fault { .. }) => error.to_string(),
        other => panic!("{other:?}\n{text}"),
    }
}

/// Checks that a body is reported under all of a few seeds, in these words.
pub(crate) fn reported(count: u32, body: &str, words: &str) {
    for seed in 0..6 {
        let text = report(&kernel(count, body), seed);
        assert!(text.contains(words), "{body}\nseed {seed}: {text}");
    }
}

/// Warp 0 writes and arrives, warp 1 waits and reads.
fn message(write: &str, arrive: &str, wait: &str) -> String {
    format!(
        "mad.lo.u32 %r1, %t, 4, %s; setp.ne.u32 %p1, %w, 0; @%p1 bra READ;
{write}
{arrive}
bra DONE;
READ: {wait}
ld.shared.u32 %r2, [%r1-128]; setp.eq.u32 %p3, %t, 32; @%p3 st.global.u32 [%data], %r2;
DONE: mov.u32 %r3, 0;"
    )
}

const WAIT: &str = "AGAIN: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%b], 0; @!%p2 bra AGAIN;";
const ARRIVE: &str = "mbarrier.arrive.shared::cta.b64 %d1, [%b];";
const WRITE: &str = "add.u32 %r4, %t, 42; st.shared.u32 [%r1], %r4;";

#[test]
fn arrivals_and_waits_carry_messages() {
    let polls = WAIT.replace("try_wait", "test_wait");
    let generic =
        "cvt.u64.u32 %d2, %b; cvta.shared.u64 %d2, %d2; mbarrier.arrive.release.cta.b64 _, [%d2];";
    for seed in 0..12 {
        for (count, arrive, wait) in [
            (32, ARRIVE, WAIT),
            (32, ARRIVE, &polls[..]),
            (32, generic, WAIT),
            (64, "mbarrier.arrive.shared.b64 _, [%b], 2;", WAIT),
            (
                1,
                "bar.warp.sync -1; @%first mbarrier.arrive.shared.b64 _, [%b];",
                WAIT,
            ),
        ] {
            let text = kernel(count, &message(WRITE, arrive, wait));
            assert_eq!(run(&text, seed), Ok(42), "{text}");
        }
    }
}

#[test]
fn what_carries_no_message_is_a_race() {
    let relaxed_wait = WAIT.replace("parity", "parity.relaxed.cta");
    for (count, arrive, wait) in [
        (32, "mbarrier.arrive.relaxed.cta.shared.b64 _, [%b];", WAIT),
        (32, ARRIVE, &relaxed_wait[..]),
        (1, "@%first mbarrier.arrive.shared.b64 _, [%b];", WAIT),
    ] {
        let late = format!("{wait}\nbar.warp.sync -1;");
        reported(count, &message(WRITE, arrive, &late), "race on shared");
    }
    // Who does not look, or looks and goes on, reads too early.
    for seed in 0..6 {
        let hasty = "mbarrier.try_wait.parity.shared::cta.b64 %p2, [%b], 0;";
        for wait in ["", hasty] {
            let text = kernel(32, &message(WRITE, "", wait));
            let is_found = matches!(
                run(&text, seed),
                Err(EmuError::Fault {
                    fault: Fault::Race { .. } | Fault::Uninitialised { .. },
                    ..
                })
            );
            assert!(is_found, "{wait}");
        }
    }
}

#[test]
fn states_tell_phases_and_arrivals() {
    let body = "mbarrier.arrive.noComplete.shared.b64 %d1, [%b], 1;
mbarrier.pending_count.b64 %r1, %d1;
@%first st.global.u32 [%data], %r1; bar.sync 0;
mbarrier.arrive.shared.b64 %d2, [%b];
W: mbarrier.try_wait.shared.b64 %p1, [%b], %d2; @!%p1 bra W;
mbarrier.test_wait.shared.b64 %p2, [%b], %d1; @%p2 bra OK; trap; OK: mov.u32 %r2, 0;";
    for seed in 0..6 {
        let found = run(&kernel(128, body), seed).expect("it runs");
        assert!((64..=128).contains(&found), "{found}");
    }
    let old = "@!%first bra DONE; mbarrier.arrive.shared.b64 %d1, [%b]; mbarrier.arrive.shared.b64 %d2, [%b];
mbarrier.test_wait.shared.b64 %p1, [%b], %d1; DONE: mov.u32 %r2, 0;";
    reported(
        1,
        old,
        "the state is of phase 0, and phase 2 is the one that is not complete",
    );
}

#[test]
fn bytes_and_arrivals_are_counted() {
    let expect = "@!%first bra DONE; mbarrier.arrive.expect_tx.shared::cta.b64 _, [%b], 64; mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%b], 32;
mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%b], 64; mbarrier.test_wait.parity.shared.b64 %p1, [%b], 0; @%p1 trap;
mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%b], 32;
mbarrier.test_wait.parity.shared.b64 %p1, [%b], 0; @!%p1 trap; st.global.u32 [%data], 7; DONE: mov.u32 %r1, 0;";
    assert_eq!(run(&kernel(1, expect), 0), Ok(7));
    let drop = "@!%first bra DONE; mbarrier.arrive_drop.shared.b64 _, [%b]; mbarrier.arrive.shared.b64 _, [%b];
mbarrier.arrive.shared.b64 _, [%b]; mbarrier.test_wait.parity.shared.b64 %p1, [%b], 1; @!%p1 trap; st.global.u32 [%data], 7; DONE: mov.u32 %r1, 0;";
    assert_eq!(run(&kernel(2, drop), 0), Ok(7));
    for (count, body, words) in [
        (
            1,
            "mbarrier.arrive.shared.b64 _, [%b], 2;",
            "2 arrivals in phase 0, which wants 1 more of 1",
        ),
        (
            1,
            "mbarrier.arrive.shared.b64 _, [%b], 0;",
            "an arrival of none",
        ),
        (
            1,
            "mbarrier.arrive.noComplete.shared.b64 _, [%b], 1;",
            "`.noComplete` completes phase 0",
        ),
        (
            1,
            "mbarrier.expect_tx.relaxed.cta.shared.b64 [%b], 1048576;",
            "1048576 bytes are under way",
        ),
        (
            2,
            "mbarrier.complete_tx.relaxed.cta.shared.b64 [%b], 16; mbarrier.arrive.shared.b64 _, [%b], 2;",
            "got 16 bytes more than it expects",
        ),
        (
            1,
            "mbarrier.arrive.expect_tx.shared.b64 _, [%b], 48; mbarrier.complete_tx.relaxed.cta.shared.b64 [%b], 32;",
            "lacks 0 arrivals and 16 bytes, which were expected and never arrived",
        ),
        (
            1,
            "mbarrier.test_wait.parity.shared.b64 %p1, [%b], 2;",
            "a parity of 2",
        ),
        (
            1,
            "mbarrier.init.shared.b64 [%b], 1;",
            "initialised again without `mbarrier.inval`",
        ),
        (
            1,
            "mbarrier.inval.shared.b64 [%b]; mbarrier.arrive.shared.b64 _, [%b];",
            "none was initialised here, or it is invalidated",
        ),
        (
            0,
            "mbarrier.arrive.shared.b64 _, [%b];",
            "none was initialised here",
        ),
        (0, "mbarrier.init.shared.b64 [%b], 0;", "a count of 0"),
        (
            1,
            "st.shared.u32 [%b+4], 0; mbarrier.arrive.shared.b64 _, [%b];",
            "its bytes were overwritten",
        ),
        (
            1,
            "ld.shared.u32 %r1, [%b]; st.global.u32 [%data], %r1;",
            "not all of them written",
        ),
        (1, "mbarrier.arrive.shared.b64 _, [%b+4];", "misaligned"),
        (
            1,
            "mbarrier.arrive.b64 _, [%data];",
            "one of the global space",
        ),
    ] {
        reported(
            count,
            &format!("@!%first bra DONE; {body} DONE: mov.u32 %r40, 0;"),
            words,
        );
    }
    let again = "@!%first bra DONE; mbarrier.inval.shared.b64 [%b]; mbarrier.init.shared.b64 [%b], 3; mbarrier.arrive.shared.b64 %d1, [%b];
mbarrier.pending_count.b64 %r1, %d1; st.global.u32 [%data], %r1; DONE: mov.u32 %r2, 0;";
    assert_eq!(run(&kernel(1, again), 0), Ok(3));
}

#[test]
fn initialisations_are_ordered_before_uses() {
    let body = "@%first mbarrier.init.shared::cta.b64 [%b], 32; {sync} setp.eq.u32 %p1, %w, 1; @%p1 mbarrier.arrive.shared.b64 _, [%b];";
    let whole = kernel(0, &body.replace("{sync}", "bar.sync 0;"));
    for seed in 0..6 {
        assert_eq!(run(&whole, seed), Ok(0));
        let text = report(&kernel(0, &body.replace("{sync}", "")), seed);
        let is_named = text.contains("nothing orders its initialisation in line 14")
            || text.contains("none was initialised here");
        assert!(is_named, "{text}");
    }
}

/// The bytes of a barrier are written where it begins.
#[test]
fn barriers_begin_behind_other_accesses_of_their_bytes() {
    let body = |sync: &str| {
        format!(
            "setp.eq.u32 %p1, %t, 32; @%first st.shared.u32 [%b], 1; {sync} @%p1 mbarrier.init.shared::cta.b64 [%b], 1;"
        )
    };
    for seed in 0..6 {
        assert_eq!(run(&kernel(0, &body("bar.sync 0;")), seed), Ok(0));
        let error = run(&kernel(0, &body("")), seed).expect_err("nothing orders them");
        assert!(matches!(error.fault(), Some(Fault::Race { .. })), "{error}");
    }
}

#[test]
fn deadlocks_name_barriers_and_what_they_lack() {
    let missing = message(
        WRITE,
        "setp.ne.u32 %p4, %t, 5; @%p4 mbarrier.arrive.shared.b64 _, [%b];",
        WAIT,
    );
    let words = "lanes 0xffffffff of warp 1 wait at the mbarrier at 0x400, initialised in line 11, of which phase 0 lacks 1 arrivals in line 18";
    reported(32, &missing, words);
    let polls = missing.replace("try_wait", "test_wait");
    reported(32, &polls, words);
    let bytes = "@%first mbarrier.arrive.expect_tx.shared::cta.b64 _, [%b], 16;\nW: mbarrier.try_wait.parity.shared.b64 %p1, [%b], 0; @!%p1 bra W;";
    reported(1, bytes, "phase 0 lacks 0 arrivals and 16 bytes");
    // A wait that gives up after a few times, as bounded ones do, may go on.
    let bounded = "mov.u32 %r1, 0; W: mbarrier.try_wait.parity.shared.b64 %p1, [%b], 0; add.u32 %r1, %r1, 1; setp.lt.u32 %p2, %r1, 8; @%p1 trap; @%p2 bra W;
@%first st.global.u32 [%data], %r1;";
    for seed in 0..6 {
        assert_eq!(run(&kernel(1, bounded), seed), Ok(8));
    }
}

/// The first warp completes three phases; the second one looks at the first of them only when all are over.
#[test]
fn phases_that_can_no_longer_be_told_are_reported() {
    let body = |turn: &str| {
        format!(
            "setp.ne.u32 %p1, %w, 0; @%p1 bra SECOND;
@%first mbarrier.arrive.shared.b64 _, [%b]; {turn} @%first mbarrier.arrive.shared.b64 _, [%b]; bar.sync 2, 64; bra DONE;
SECOND: {turn} bar.sync 2, 64;
W: mbarrier.try_wait.parity.shared.b64 %p2, [%b], 0; @!%p2 bra W;
DONE: mov.u32 %r1, 0;"
        )
    };
    // Who knows through a CTA barrier that two phases are over asks for the third one.
    reported(1, &body(""), "deadlock");
    let relaxed = body("")
        .replace("arrive.shared", "arrive.relaxed.cta.shared")
        .replace("bar.sync 2, 64; bra", "bra")
        .replace(
            "SECOND:  bar.sync 2, 64;",
            "SECOND: mov.u32 %r9, 0; nanosleep.u32 100;",
        );
    let mut found = 0;
    for seed in 0..24 {
        if let Err(error) = run(&kernel(1, &relaxed), seed) {
            let text = error.to_string();
            found += usize::from(text.contains("parity 0 no longer tells the phase"));
        }
    }
    assert!(found > 0, "some seed lets the second warp come late");
}

#[test]
fn copies_of_threads_arrive_at_barriers() {
    let body = |count: &str, wait: &str| {
        format!(
            "mad.lo.u32 %r1, %t, 16, %s; mad.wide.u32 %d1, %t, 16, %data;
cp.async.cg.shared.global [%r1], [%d1], 16; cp.async.mbarrier.arrive{count}.shared::cta.b64 [%b]; {wait}
xor.b32 %r2, %t, 63; mad.lo.u32 %r2, %r2, 16, %s; ld.shared.u32 %r3, [%r2]; add.u32 %r3, %r3, 9; @%first st.global.u32 [%data+2048], %r3; st.global.u32 [%data], 5;"
        )
    };
    let wait = "W: mbarrier.try_wait.parity.shared.b64 %p1, [%b], 0; @!%p1 bra W; bar.sync 0;";
    for seed in 0..6 {
        assert_eq!(run(&kernel(64, &body(".noinc", wait)), seed), Ok(5));
        // Without `.noinc` each counts for itself, and somebody else completes the phase.
        let arrives = format!("mbarrier.arrive.shared.b64 _, [%b]; {wait}");
        assert_eq!(run(&kernel(64, &body("", &arrives)), seed), Ok(5));
        let text = report(&kernel(64, &body(".noinc", "bar.sync 0;")), seed);
        assert!(
            text.contains("race") || text.contains("not all of them written"),
            "{text}"
        );
    }
    reported(128, &body(".noinc", wait), "phase 0 lacks 64 arrivals");
}

/// Where the text has `.loc`, every line that a report names is named beside that of the source.
#[test]
fn deadlocks_name_lines_of_the_source() {
    let body = ".loc 1 7 3
@%first mbarrier.arrive.shared::cta.b64 _, [%b];
.loc 1 9 1, function_name $L__info_string0, inlined_at 1 5 2
bar.sync 0;
.loc 2 30 5
W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%b], 0; @!%p2 bra W;";
    let text = kernel(2, body).replace("mov.u32 %t, %tid.x;", "mov.u32 %t, %tid.x;\n.loc 1 4 1\n");
    let found = report(&text, 0);
    for words in [
        "ptx line 21 (source line 30 of file 2), cta (0, 0, 0)",
        "initialised in line 13 (source line 4), of which phase 0 lacks 1 arrivals",
        "of warps 0, 1 wait at the mbarrier at 0x400, initialised in line 13 (source line 4)",
        "in line 21 (source line 30 of file 2)",
    ] {
        assert!(found.contains(words), "{words}: {found}");
    }
    // So does the other side of a race, and a text without directives is as it was.
    let race = ".loc 1 7 3\nst.shared.u32 [%s], %t;\n.loc 1 8 3\nld.shared.u32 %r1, [%s];";
    let found = report(&kernel(0, race), 0);
    assert!(found.contains("ptx line 15 (source line 7)"), "{found}");
    let found = report(
        &kernel(0, "st.shared.u32 [%s], %t;\nld.shared.u32 %r1, [%s];"),
        0,
    );
    assert!(!found.contains("source"), "{found}");
}

/// Relaxed arrivals and waits carry what fences before and behind them say; without one of the fences they carry nothing.
#[test]
fn relaxed_arrivals_and_waits_go_with_fences() {
    let fence = "fence.acq_rel.cta;";
    let arrive = "mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [%b];";
    let wait = WAIT.replace("parity", "parity.relaxed.cta");
    let before = format!("{fence} {arrive}");
    let behind = format!("{wait} {fence}");
    for seed in 0..8 {
        let text = kernel(32, &message(WRITE, &before, &behind));
        assert_eq!(run(&text, seed), Ok(42), "{text}");
    }
    for (arrive, wait) in [(arrive, &behind), (&before, &wait)] {
        let late = format!("{wait}\nbar.warp.sync -1;");
        reported(32, &message(WRITE, arrive, &late), "race on shared");
    }
    // A fence behind the arrival is too late.
    let behind_it = format!("{arrive} {fence}");
    reported(32, &message(WRITE, &behind_it, &behind), "race on shared");
}

/// A relaxed wait orders nothing, and yet tells which phase is complete.
#[test]
fn relaxed_waits_tell_phases() {
    let body = "@%first mbarrier.init.shared::cta.b64 [%b+8], 1; bar.sync 1;
mov.u32 %r1, 0; setp.eq.u32 %p4, %t, 32; @%p4 bra ANSWER; @!%first bra DONE;
ASK: and.b32 %r2, %r1, 1; mbarrier.arrive.shared::cta.b64 _, [%b];
W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%b+8], %r2; @!%p2 bra W;
add.u32 %r1, %r1, 1; setp.lt.u32 %p3, %r1, 5; @%p3 bra ASK;
st.global.u32 [%data], %r1; bra DONE;
ANSWER: and.b32 %r2, %r1, 1;
V: mbarrier.try_wait.parity.relaxed.cta.shared::cta.b64 %p2, [%b], %r2; @!%p2 bra V;
mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [%b+8];
add.u32 %r1, %r1, 1; setp.lt.u32 %p3, %r1, 5; @%p3 bra ANSWER;
DONE: mov.u32 %r3, 0;";
    for seed in 0..8 {
        assert_eq!(run(&kernel(1, body), seed), Ok(5));
    }
}
