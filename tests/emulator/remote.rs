//! `st.async` and `red.async`: words that go to a peer's shared memory and signal a barrier there.

use tilelift::emu::{Arg, EmuError, Launch, Memory, Module, Options, run};

use crate::ptxas;

/// Runs two CTAs of 64 threads in one cluster; the 64 words that each stored. `%s` is shared memory, behind whose first 16 bytes
/// words start, `%q` the same place of the peer, `%t` the thread; the first eight bytes are a barrier that one arrival completes.
fn launch(body: &str, seed: u64) -> Result<Vec<u32>, EmuError> {
    let text = text(body);
    let module = Module::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let mut memory = Memory::new();
    let data = memory.alloc_bytes(&[0; 512]);
    let args = [Arg::pointer(data)];
    let launch = Launch {
        grid: [2, 1, 1],
        block: [64, 1, 1],
        shared_bytes: 0,
        args: &args,
        options: Options {
            seed,
            ..Options::default()
        },
    };
    run(&module, "kernel", &launch, &mut memory)?;
    let bytes = memory.read(data, 512).expect("there from the start");
    let words = bytes.as_chunks::<4>().0.iter();
    Ok(words.map(|&word| u32::from_le_bytes(word)).collect())
}

fn text(body: &str) -> String {
    format!(
        ".version 8.1
.target sm_90
.address_size 64
.visible .entry kernel(.param .u64 data)
.reqntid 64, 1, 1
.reqnctapercluster 2, 1, 1
{{
.shared .align 16 .b8 own[2064];
.reg .pred %p<8>; .reg .b32 %r<32>, %s, %q, %t; .reg .b64 %d<8>;
ld.param.u64 %d0, [data];
mov.u32 %s, own; mov.u32 %t, %tid.x; mov.u32 %r0, %cluster_ctarank; xor.b32 %r1, %r0, 1; mapa.shared::cluster.u32 %q, %s, %r1;
setp.eq.u32 %p0, %t, 0; mad.lo.u32 %r2, %t, 4, %s; mad.lo.u32 %r3, %t, 4, %q; mad.lo.u32 %r4, %r0, 100, %t; mad.lo.u32 %r5, %r0, 64, %t;
mul.wide.u32 %d1, %r5, 4; add.u64 %d0, %d0, %d1; mul.wide.u32 %d2, %t, 3;
st.shared.u32 [%r2+16], 1000;
@%p0 mbarrier.init.shared::cta.b64 [%s], 1; @%p0 fence.mbarrier_init.release.cluster;
{MEET}
{body}
{MEET}
ret;
}}
"
    )
}

const MEET: &str = "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;";
const EXPECT: &str = "@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%s], 256;\n";
const WAIT: &str =
    "AGAIN: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%s], 0; @!%p1 bra AGAIN;\n";
const TAKE: &str = "ld.shared.u32 %r6, [%r2+16]; st.global.u32 [%d0], %r6;\n";
const STORE: &str =
    "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r3+16], %r4, [%q];\n";
const ADD: &str = "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r3+16], %r4, [%q];\n";

#[test]
fn words_arrive_behind_their_barrier() {
    let wide = "setp.lt.u32 %p2, %t, 16; mad.lo.u32 %r7, %t, 16, %q; add.u32 %r8, %r4, 1; add.u32 %r9, %r4, 2; add.u32 %r10, %r4, 3;
@%p2 st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%r7+16], {%r4, %r8, %r9, %r10}, [%q];\n";
    let double = "setp.lt.u32 %p2, %t, 32; mad.lo.u32 %r7, %t, 8, %q; mov.b64 %d3, {%r4, %r4};
@%p2 st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b64 [%r7+16], %d3, [%q];\n";
    let all_to_one = "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.max.s32 [%q+16], %r4, [%q];\n";
    type Wanted = fn(u32, u32) -> u32;
    let cases: [(&str, Wanted); 5] = [
        (STORE, |rank, t| 100 * (1 - rank) + t),
        (ADD, |rank, t| 1000 + 100 * (1 - rank) + t),
        (wide, |rank, t| 100 * (1 - rank) + t / 4 + t % 4),
        (double, |rank, t| 100 * (1 - rank) + t / 2),
        (all_to_one, |_, _| 1000),
    ];
    for (send, wanted) in cases {
        let body = format!("{EXPECT}{send}{WAIT}{TAKE}");
        ptxas::assemble_with(&text(&body), "sm_90", &[]);
        for seed in 0..9 {
            let words = launch(&body, seed).unwrap_or_else(|error| panic!("{send}{error}"));
            for (i, &word) in words.iter().enumerate() {
                let (rank, t) = (i as u32 / 64, i as u32 % 64);
                assert_eq!(word, wanted(rank, t), "{send}: {rank} {t}, seed {seed}");
            }
        }
    }
}

#[test]
fn mistakes_with_them_are_reported() {
    let right = format!("{EXPECT}{STORE}{WAIT}{TAKE}");
    let own = STORE.replace("[%r3+16]", "[%r2+16]");
    let faults = [
        // What comes is read too early, written beside it, or written twice.
        (WAIT, "", "shared"),
        (
            WAIT,
            "st.shared.u32 [%r2+16], 5; AGAIN: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%s], 0; @!%p1 bra AGAIN;\n",
            "race on shared",
        ),
        (STORE, &format!("{STORE}{STORE}"), "race on shared"),
        // Bytes that do not come, and some that are not expected.
        ("[%s], 256", "[%s], 260", "deadlock"),
        ("[%s], 256", "[%s], 252", "which it does not expect"),
        (STORE, "", "deadlock"),
        (", [%q];", ", [%s];", "it signals a barrier of rank"),
        (STORE, &own, "it signals a barrier of rank"),
        ("[%r3+16]", "[%r3+18]", "not a multiple of 4"),
        ("[%r3+16]", "[%r3+8000]", "out of bounds"),
        (", [%q];", ", [%q+8];", "none was initialised here"),
        ("%r4, [%q]", "%r20, [%q]", "`%r20`"),
    ];
    for (part, instead, expected) in faults {
        assert!(right.contains(part), "{part}");
        let body = right.replacen(part, instead, 1);
        for seed in 0..6 {
            match launch(&body, seed) {
                Err(error) => {
                    let error = error.to_string();
                    assert!(error.contains(expected), "{part} -> {instead}: {error}");
                }
                Ok(_) => panic!("{part} -> {instead}, seed {seed}: nothing is reported"),
            }
        }
    }
}

/// The assembler takes these.
#[test]
fn operands_that_are_missing_are_told() {
    let head = "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes";
    for (rest, expected) in [
        ("v2.b32 [%r3], %r4, [%q];", "1 sources for a vector of 2"),
        ("b32 [%r3], %r4;", "2 operands"),
    ] {
        let error = Module::parse(&text(&format!("{head}.{rest}"))).expect_err("one is missing");
        assert!(error.to_string().contains(expected), "{error}");
    }
}
