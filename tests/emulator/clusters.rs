//! CTAs of a cluster: where they are, how they reach each other's shared memory, wait for each other, and end.

use tilelift::emu::{Arg, EmuError, Fault, Launch, Memory, Module, Options, run};

/// Runs four CTAs of 64 threads in clusters of two; the words that thread 0 of each stored, and with which error it ended.
fn launch(body: &str, seed: u64) -> Result<Vec<u32>, EmuError> {
    let text = format!(
        ".version 8.6
.target sm_90
.address_size 64
.visible .entry kernel(.param .u64 data)
.reqntid 64, 1, 1
.reqnctapercluster 2, 1, 1
{{
.shared .align 16 .b8 own[64];
.reg .pred %p<8>; .reg .b32 %r<32>; .reg .b64 %d<8>;
ld.param.u64 %d0, [data];
mov.u32 %r0, own; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mul.wide.u32 %d1, %r2, 4; add.u64 %d0, %d0, %d1;
mov.u32 %r3, %cluster_ctarank; xor.b32 %r4, %r3, 1; setp.eq.u32 %p0, %r1, 0; setp.eq.u32 %p1, %r3, 0;
add.u32 %r5, %r2, 100;
{body}
ret;
}}
"
    );
    let module = Module::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let mut memory = Memory::new();
    let data = memory.alloc_bytes(&[0; 16]);
    let args = [Arg::pointer(data)];
    let launch = Launch {
        grid: [4, 1, 1],
        block: [64, 1, 1],
        shared_bytes: 0,
        args: &args,
        options: Options {
            seed,
            ..Options::default()
        },
    };
    run(&module, "kernel", &launch, &mut memory)?;
    let bytes = memory.read(data, 16).expect("there from the start");
    let words = bytes.as_chunks::<4>().0.iter();
    Ok(words.map(|&word| u32::from_le_bytes(word)).collect())
}

/// The fault of a body, and its line in the body, from 1.
fn fault(body: &str, seed: u64) -> (u32, Fault) {
    match launch(body, seed) {
        Err(EmuError::Fault { at, fault }) => (at.line.wrapping_sub(13), fault),
        other => panic!("{body}: {other:?}"),
    }
}

const MEET: &str =
    "barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;\n";

/// Each writes a word, meets the other, and reads its word.
const EXCHANGE: &str = "@%p0 st.shared.u32 [%r0], %r5;
barrier.cluster.arrive.release.aligned;
barrier.cluster.wait.acquire.aligned;
mapa.shared::cluster.u32 %r6, %r0, %r4; @%p0 ld.shared::cluster.u32 %r7, [%r6]; @%p0 st.global.u32 [%d0], %r7;
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;";

#[test]
fn peers_read_what_was_written_before_they_met() {
    let generic = EXCHANGE.replace(
        "mapa.shared::cluster.u32 %r6, %r0, %r4; @%p0 ld.shared::cluster.u32 %r7, [%r6];",
        "cvt.u64.u32 %d2, %r0; cvta.shared.u64 %d2, %d2; mapa.u64 %d2, %d2, %r4; @%p0 ld.u32 %r7, [%d2];",
    );
    for seed in 0..8 {
        for body in [EXCHANGE, &generic] {
            assert_eq!(launch(body, seed), Ok(vec![101, 100, 103, 102]), "{body}");
        }
        // Not met, or met by an arrival that tells nothing.
        let relaxed = EXCHANGE.replacen(".release", ".relaxed", 1);
        let (line, found) = fault(&relaxed, seed);
        assert!(line == 4 && matches!(found, Fault::Race { .. }), "{found}");
        let alone = EXCHANGE.replacen(MEET, "", 1);
        let found = fault(&alone, seed).1;
        assert!(
            matches!(found, Fault::Race { .. } | Fault::Uninitialised { .. }),
            "{found}"
        );
    }
}

#[test]
fn a_cta_does_not_end_while_a_peer_reaches_into_it() {
    let body = EXCHANGE
        .replace("barrier.cluster.arrive.aligned;\n", "")
        .replace("barrier.cluster.wait.aligned;", "");
    let mut both = [false; 2];
    for seed in 0..16 {
        let text = match fault(&body, seed).1 {
            Fault::Cluster(text) => text,
            other => panic!("{other}"),
        };
        let kinds = ["nothing tells it that the access at", "has ended"];
        let kind = kinds.iter().position(|kind| text.contains(kind));
        both[kind.unwrap_or_else(|| panic!("{text}"))] = true;
    }
    assert_eq!(both, [true; 2], "before the end and behind it");
    // Who arrives and does not wait may end too early, too.
    let arrival = EXCHANGE.replace(
        "barrier.cluster.wait.aligned;",
        "@%p1 barrier.cluster.wait;",
    );
    for seed in 0..8 {
        let found = launch(&arrival, seed);
        assert!(
            matches!(
                &found,
                Err(EmuError::Fault {
                    fault: Fault::Cluster(_),
                    ..
                })
            ),
            "{found:?}"
        );
    }
}

#[test]
fn peers_store_and_add() {
    let body = format!(
        "@%p0 st.shared.u32 [%r0], 0; @%p0 st.shared.u32 [%r0+8], 7;
{MEET}mov.b32 %r8, 0; mapa.shared::cluster.u32 %r6, %r0, %r8;
red.relaxed.cluster.shared::cluster.add.u32 [%r6], 1;
mapa.shared::cluster.u32 %r9, %r0, %r4; @%p0 st.shared::cluster.u32 [%r9+4], %r5;
{MEET}@%p0 ld.shared.u32 %r10, [%r0]; @%p0 ld.shared::cluster.u32 %r11, [own+4]; @%p0 ld.shared::cluster.u32 %r12, [%r0+8];
mad.lo.u32 %r10, %r10, 1000, %r11; mad.lo.u32 %r10, %r12, 1000000, %r10; @%p0 st.global.u32 [%d0], %r10;"
    );
    for seed in 0..4 {
        let wanted = vec![7_128_101, 7_000_100, 7_128_103, 7_000_102];
        assert_eq!(launch(&body, seed), Ok(wanted));
    }
}

#[test]
fn places_in_the_cluster() {
    let body = "mov.u32 %r6, %clusterid.x; mov.u32 %r7, %nclusterid.x; mov.u32 %r8, %cluster_ctaid.x; mov.u32 %r9, %cluster_nctaid.x;
mov.u32 %r10, %cluster_nctarank; mad.lo.u32 %r11, %r6, 10, %r7; mad.lo.u32 %r11, %r11, 10, %r8; mad.lo.u32 %r11, %r11, 10, %r9;
mad.lo.u32 %r11, %r11, 10, %r10; mapa.shared::cluster.u32 %r12, %r0, %r4; getctarank.shared::cluster.u32 %r13, %r12;
mad.lo.u32 %r11, %r11, 10, %r13; getctarank.shared::cluster.u32 %r13, %r0; mad.lo.u32 %r11, %r11, 10, %r13; @%p0 st.global.u32 [%d0], %r11;";
    let wanted = vec![202_210, 212_201, 1_202_210, 1_212_201];
    assert_eq!(launch(body, 0), Ok(wanted));
}

#[test]
fn what_clusters_do_wrong() {
    let cases = [
        ("barrier.cluster.wait.aligned;", 1, "has not arrived"),
        (
            "barrier.cluster.arrive.aligned;\nbarrier.cluster.arrive.aligned;",
            2,
            "arrived before",
        ),
        (
            "mov.b32 %r8, 2;\nmapa.shared::cluster.u32 %r6, %r0, %r8;",
            2,
            "no CTA of rank 2 among 2",
        ),
    ];
    for (body, line, wanted) in cases {
        match fault(body, 0) {
            (at, Fault::Cluster(text)) => {
                assert!(at == line && text.contains(wanted), "{at}: {text}")
            }
            (at, other) => panic!("{at}: {other}"),
        }
    }
    let stuck = format!(
        "@!%p1 bra MEET;\nsetp.ne.u32 %p2, %r1, 0; @%p2 barrier.sync 1, 64;\nMEET:\n{MEET}"
    )
    .replace(".aligned", "");
    for seed in 0..4 {
        match fault(&stuck, seed).1 {
            Fault::Deadlock(text) => {
                assert!(
                    text.contains("for the other threads of the cluster")
                        || text.contains("at barrier 1"),
                    "{text}"
                );
            }
            other => panic!("{other}"),
        }
    }
    // A CTA's own address space holds no others.
    let (line, found) = fault(
        "mapa.shared::cluster.u32 %r6, %r0, %r4;\n@%p0 st.shared.u32 [%r6], %r5;",
        0,
    );
    assert!(
        line == 2 && matches!(found, Fault::OutOfBounds { .. }),
        "{found}"
    );
}

#[test]
fn clusters_divide_the_grid() {
    let text = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry kernel() { ret; }";
    let module = Module::parse(text).expect("it is right");
    let with = |cluster: [u32; 3], grid: [u32; 3]| {
        let launch = Launch {
            grid,
            block: [32, 1, 1],
            shared_bytes: 0,
            args: &[],
            options: Options {
                cluster,
                ..Options::default()
            },
        };
        run(&module, "kernel", &launch, &mut Memory::new())
    };
    assert!(with([2, 2, 1], [4, 2, 3]).is_ok());
    for (cluster, grid) in [
        ([2, 1, 1], [3, 1, 1]),
        ([0, 1, 1], [3, 1, 1]),
        ([17, 1, 1], [17, 1, 1]),
    ] {
        let error = with(cluster, grid).expect_err("no such cluster");
        assert!(matches!(error, EmuError::Configuration(_)), "{error}");
    }
}

/// Barriers are initialised, fenced, and told of by a relaxed arrival, as the PTX manual has it; the fence tells of nothing else.
#[test]
fn initialised_barriers_go_with_relaxed_arrivals() {
    let body = "@%p0 mbarrier.init.shared::cta.b64 [%r0], 1; @%p0 st.shared.u32 [%r0+8], 7;
@%p0 fence.mbarrier_init.release.cluster;
barrier.cluster.arrive.relaxed.aligned;
barrier.cluster.wait.acquire.aligned;
mapa.shared::cluster.u32 %r6, %r0, %r4; @%p0 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r6];
AGAIN: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [%r0], 0; @!%p2 bra AGAIN;
@%p0 st.global.u32 [%d0], %r5;"
        .to_owned()
        + "\n"
        + MEET;
    let fence = "@%p0 fence.mbarrier_init.release.cluster;";
    for seed in 0..8 {
        assert_eq!(launch(&body, seed), Ok(vec![100, 101, 102, 103]));
        let wider = body.replace(fence, "@%p0 fence.acq_rel.cluster;");
        assert_eq!(launch(&wider, seed), Ok(vec![100, 101, 102, 103]));
        for less in ["", "@%p0 fence.acq_rel.cta;"] {
            let (line, found) = fault(&body.replace(fence, less), seed);
            let Fault::MBarrier { reason, .. } = &found else {
                panic!("{found}");
            };
            let words = "nothing orders its initialisation in line 14";
            assert!(
                [5, 6].contains(&line) && reason.contains(words),
                "{line}: {found}"
            );
        }
        // The word beside the barrier is no barrier.
        let reads = body.replace("AGAIN:", "ld.shared::cluster.u32 %r7, [%r6+8];\nAGAIN:");
        let (line, found) = fault(&reads, seed);
        assert!(line == 6 && matches!(found, Fault::Race { .. }), "{found}");
    }
}

/// What fences say goes with relaxed arrivals at the barrier of the cluster.
#[test]
fn fences_go_with_relaxed_arrivals() {
    let with = |fence: &str| {
        let relaxed = EXCHANGE.replacen(".release", ".relaxed", 1);
        relaxed.replacen("barrier", &format!("{fence} barrier"), 1)
    };
    for seed in 0..8 {
        let ordered = launch(&with("fence.acq_rel.cluster;"), seed);
        assert_eq!(ordered, Ok(vec![101, 100, 103, 102]));
        let found = fault(&with("fence.acq_rel.cta;"), seed).1;
        assert!(matches!(found, Fault::Race { .. }), "{found}");
    }
}

/// The report names those of all CTAs, also where the first one only waits for the others.
#[test]
fn deadlocks_name_who_waits_in_other_ctas() {
    let body = format!(
        "@%p0 mbarrier.init.shared::cta.b64 [%r0], 3; bar.sync 0; @%p1 bra THERE;
AGAIN: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r0], 0; @!%p2 bra AGAIN;
THERE: {MEET}"
    );
    for seed in 0..4 {
        let Fault::Deadlock(text) = fault(&body, seed).1 else {
            panic!("nobody arrives");
        };
        for words in [
            "in the CTA of rank 0: lanes 0xffffffff of warps 0, 1 wait for the other threads of the cluster in line 17",
            "in the CTA of rank 1: lanes 0xffffffff of warps 0, 1 wait at the mbarrier at 0x400, initialised in line 14, of which phase 0 lacks 3 arrivals in line 15",
        ] {
            assert!(text.contains(words), "{text}");
        }
    }
}

/// An arrival at the barrier of a peer reaches into its memory: who ends without waiting for it may be gone by then.
#[test]
fn a_cta_does_not_end_while_a_peer_arrives() {
    let body = |fence: &str, op: &str, wait: &str| {
        format!(
            "@%p0 mbarrier.init.shared::cta.b64 [%r0], 1; @%p0 fence.mbarrier_init.release.cluster;
{MEET}@!%p1 bra THERE;
mov.u32 %r8, 1; mapa.shared::cluster.u32 %r6, %r0, %r8; @%p0 mbarrier.{op} _, [%r6]; bra DONE;
THERE: {wait}
DONE: {fence}"
        )
    };
    let wait =
        "AGAIN: mbarrier.try_wait.parity.SEM.shared::cta.b64 %p2, [%r0], 0; @!%p2 bra AGAIN;";
    let acquire = wait.replace("SEM", "acquire.cluster");
    let relaxed = wait.replace("SEM", "relaxed.cluster");
    for seed in 0..12 {
        for op in [
            "arrive.release.cluster.shared::cluster.b64",
            "arrive.relaxed.cluster.shared::cluster.b64",
        ] {
            for right in [
                body("", op, &acquire),
                body("", op, &relaxed),
                body(&MEET.replace(".aligned", ""), op, ""),
            ] {
                assert!(launch(&right, seed).is_ok(), "{right}");
            }
            let found = fault(&body("", op, ""), seed).1;
            let Fault::Cluster(text) = &found else {
                panic!("{found}");
            };
            let is_told =
                text.contains("nothing tells it that the access at") || text.contains("has ended");
            assert!(is_told, "{text}");
        }
    }
}

/// A peer writes into the other's memory and arrives at its barrier: arrival and wait both need the scope of the cluster, and
/// what they name comes before what fences say.
#[test]
fn arrivals_at_peers_need_the_scope_of_the_cluster() {
    let body = |arrive: &str, wait: &str, fence: &str| {
        format!(
            "@%p0 mbarrier.init.shared::cta.b64 [%r0], 1; @%p0 fence.mbarrier_init.release.cluster;
{MEET}mapa.shared::cluster.u32 %r6, %r0, %r4;
@%p0 st.shared::cluster.u32 [%r6+8], %r5; {fence} @%p0 mbarrier.arrive{arrive}.shared::cluster.b64 _, [%r6];
AGAIN: mbarrier.try_wait.parity{wait}.shared::cta.b64 %p2, [%r0], 0; @!%p2 bra AGAIN;
{fence} @%p0 ld.shared.u32 %r7, [%r0+8]; @%p0 st.global.u32 [%d0], %r7;
{MEET}"
        )
    };
    let (wide, narrow) = ("fence.acq_rel.cluster;", "fence.acq_rel.cta;");
    let cases = [
        (".release.cluster", ".acquire.cluster", "", true),
        (".release.cta", ".acquire.cluster", "", false),
        (".release.cluster", ".acquire.cta", "", false),
        (".release.cluster", "", "", false),
        (".relaxed.cluster", ".relaxed.cluster", wide, true),
        (".relaxed.cluster", ".relaxed.cluster", narrow, false),
        (".relaxed.cluster", ".relaxed.cta", wide, false),
        (".relaxed.cta", ".relaxed.cluster", wide, false),
    ];
    for (arrive, wait, fence, is_ordered) in cases {
        let body = body(arrive, wait, fence);
        for seed in 0..8 {
            if is_ordered {
                assert_eq!(launch(&body, seed), Ok(vec![101, 100, 103, 102]), "{body}");
                continue;
            }
            let (line, found) = fault(&body, seed);
            let is_race = line == 7 && matches!(found, Fault::Race { .. });
            assert!(is_race, "{found}\n{body}");
        }
    }
}

/// CTA 0 sends a word to another one, 1 of its cluster or 2 of the next.
#[test]
fn the_scope_of_the_cluster_ends_with_it() {
    let body = |receiver: u32, send: &str, receive: &str, fence: &str| {
        format!(
            "ld.param.u64 %d2, [data]; @!%p0 bra DONE; setp.eq.u32 %p2, %r2, 0; @%p2 bra SEND;
setp.ne.u32 %p3, %r2, {receiver}; @%p3 bra DONE;
RECEIVE: {receive}; setp.eq.u32 %p4, %r7, 0; @%p4 bra RECEIVE;
{fence} ld.global.u32 %r8, [%d2]; st.global.u32 [%d2+8], %r8; bra DONE;
SEND: st.global.u32 [%d2], 42; {fence} {send};
DONE:"
        )
    };
    let store = |kind: &str| format!("st.{kind}.global.u32 [%d2+4], 1");
    let load = |kind: &str| format!("ld.{kind}.global.u32 %r7, [%d2+4]");
    let red = "red.release.cluster.global.add.u32 [%d2+4], 1".to_owned();
    let atom = |kind: &str| format!("atom.{kind}.global.add.u32 %r7, [%d2+4], 0");
    let fence = "fence.acq_rel.cluster;";
    // Whether they order CTAs of a cluster, and others.
    let cases = [
        (store("release.gpu"), load("acquire.gpu"), "", [true, true]),
        (
            store("release.cluster"),
            load("acquire.cluster"),
            "",
            [true, false],
        ),
        (
            store("release.cluster"),
            load("acquire.gpu"),
            "",
            [true, false],
        ),
        (
            store("release.gpu"),
            load("acquire.cluster"),
            "",
            [true, false],
        ),
        (
            store("release.cta"),
            load("acquire.cluster"),
            "",
            [false, false],
        ),
        (
            store("release.cluster"),
            load("acquire.cta"),
            "",
            [false, false],
        ),
        (
            store("relaxed.gpu"),
            load("relaxed.gpu"),
            fence,
            [true, false],
        ),
        (
            store("relaxed.gpu"),
            load("relaxed.cluster"),
            "fence.acq_rel.gpu;",
            [true, false],
        ),
        (red.clone(), atom("acquire.cluster"), "", [true, false]),
        (red, atom("acquire.gpu"), "", [true, false]),
    ];
    for (send, receive, fence, are_ordered) in cases {
        for (receiver, is_ordered) in [(1, are_ordered[0]), (2, are_ordered[1])] {
            let body = body(receiver, &send, &receive, fence);
            for seed in 0..6 {
                let found = launch(&body, seed);
                if is_ordered {
                    assert_eq!(found.map(|words| words[2]), Ok(42), "{body}");
                    continue;
                }
                let is_race = matches!(
                    &found,
                    Err(EmuError::Fault {
                        fault: Fault::Race { .. },
                        ..
                    })
                );
                assert!(is_race, "{found:?}\n{body}");
            }
        }
    }
}

/// Atomics of one address do not exclude those of whom their scope leaves out.
#[test]
fn atomics_of_narrow_scope_race_outside_of_it() {
    let body = |scope: &str, ctas: u32| {
        format!(
            "ld.param.u64 %d2, [data]; setp.lt.u32 %p2, %r2, {ctas}; @%p2 red.relaxed.{scope}.global.add.u32 [%d2], 1;"
        )
    };
    for seed in 0..4 {
        for (scope, ctas, is_right) in [
            ("gpu", 4, true),
            ("cluster", 2, true),
            ("cluster", 4, false),
            ("cta", 1, true),
            ("cta", 2, false),
        ] {
            let found = launch(&body(scope, ctas), seed);
            match is_right {
                true => assert_eq!(found.map(|words| words[0]), Ok(64 * ctas), "{scope}"),
                false => assert!(found.is_err(), "{scope}, {ctas}"),
            }
        }
    }
}

/// Shared memory that peers reach wants the scope of the cluster, too.
#[test]
fn scopes_count_in_the_shared_memory_of_clusters() {
    let body = |send: &str, receive: &str| {
        format!(
            "@%p0 st.shared.u32 [%r0], 0;
{MEET}mapa.shared::cluster.u32 %r6, %r0, %r4; @!%p0 bra DONE; @%p1 bra SEND;
AGAIN: ld.{receive}.shared::cluster.u32 %r7, [%r6]; setp.eq.u32 %p4, %r7, 0; @%p4 bra AGAIN;
ld.shared::cluster.u32 %r8, [%r6+4]; st.global.u32 [%d0], %r8; bra DONE;
SEND: st.shared.u32 [%r0+4], %r5; st.{send}.shared.u32 [%r0], 1;
DONE: {}",
            MEET.replace(".aligned", "")
        )
    };
    for seed in 0..8 {
        let right = body("release.cluster", "acquire.cluster");
        assert_eq!(launch(&right, seed), Ok(vec![0, 100, 0, 102]));
        for (send, receive) in [
            ("release.cta", "acquire.cluster"),
            ("release.cluster", "acquire.cta"),
        ] {
            let found = fault(&body(send, receive), seed).1;
            assert!(matches!(found, Fault::Race { .. }), "{send}: {found}");
        }
    }
}
