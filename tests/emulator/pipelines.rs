//! A kernel for Hopper written by hand, beyond what `hopper` does to each statement: mistakes that take more than leaving
//! something out.

use tilelift::emu::Swizzle;

use crate::hopper::{Outcome, either, gemm, text, verdict};

/// What becomes of a mistake.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Verdict {
    Reported,
    /// The result is wrong.
    Wrong,
    /// Nothing happens, and why nothing can.
    Harmless(&'static str),
}

use Verdict::{Harmless, Reported, Wrong};

const EXPECT: &str = "mbarrier.arrive.expect_tx.shared::cta.b64 _,[%r12],49152;";

/// Mistakes: what stands in the text, what in its place, and what must become of that.
const MISTAKES: &[(&str, &str, Verdict)] = &[
    ("[%r6+0],1;", "[%r6+0],2;", Reported),
    ("[%r6+8],2;", "[%r6+8],1;", Reported),
    ("[%r6+8],2;", "[%r6+8],3;", Reported),
    ("setmaxnreg.dec.sync.aligned.u32 40;", "", Reported),
    ("aligned.u32 40;", "aligned.u32 48;", Reported),
    ("aligned.u32 232;", "aligned.u32 240;", Reported),
    (
        "setmaxnreg.inc.sync.aligned.u32 232;",
        "",
        Harmless("PTX has as many registers as it names; the assembler spills"),
    ),
    (
        EXPECT,
        "mbarrier.arrive.shared::cta.b64 _,[%r12];",
        Reported,
    ),
    (
        EXPECT,
        "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r12],49152;",
        Reported,
    ),
    ("{%r16,%r4}],[%r12];", "{%r16,%r4}],[%r12+8];", Reported),
    ("[%r15+65536]", "[%r15+65552]", Reported),
    (
        "wait_group.sync.aligned 1;",
        "wait_group.sync.aligned 2;",
        Reported,
    ),
    (
        "wait_group.sync.aligned 1;",
        "wait_group.sync.aligned 0;",
        Harmless("it waits for more than it must"),
    ),
    ("_,[%r23+8];", "_,[%r12+8];", Reported),
    (
        "mbarrier.arrive.release.cta",
        "mbarrier.arrive.relaxed.cta",
        Reported,
    ),
    ("mov.pred %p3,1;", "", Wrong),
    // The producer's phase, then that of the consumers.
    (
        "xor.b32 %r10,%r10,%r17;\nbra PLOOP;",
        "bra PLOOP;",
        Reported,
    ),
    (
        "xor.b32 %r10,%r10,%r17;\nbra CLOOP;",
        "bra CLOOP;",
        Reported,
    ),
    ("add.u64 %rd9,%rd5,2;", "add.u64 %rd9,%rd5,4;", Wrong),
    (
        "mul.wide.u32 %rd5,%r9,1024;",
        "mul.wide.u32 %rd5,%r9,1025;",
        Reported,
    ),
    (
        "fence.mbarrier_init.release.cluster;",
        "fence.proxy.async;",
        Harmless("the wider fence"),
    ),
];

/// Prints its table with `--nocapture`.
#[test]
fn mistakes_in_the_product_are_found() {
    let text = text("gemm_ws.ptx");
    let mut wrong = Vec::new();
    for &(from, to, wanted) in MISTAKES {
        let at = text
            .find(from)
            .unwrap_or_else(|| panic!("`{from}` is not in the text"));
        let line = 1 + text[..at].matches('\n').count();
        // Relaxed arrivals came with version 8.6.
        let changed = text
            .replacen(from, to, 1)
            .replacen(".version 8.0", ".version 8.6", 1);
        let found = verdict(|seed| either(gemm(&changed, Swizzle::Bytes128, seed)), 3);
        eprintln!("gemm_ws.ptx | {line} | {from} -> {to} | {found:?}");
        let is_wanted = match wanted {
            Reported => matches!(found, Outcome::Reported(_)),
            Wrong => found == Outcome::Wrong,
            Harmless(_) => found == Outcome::Right,
        };
        if !is_wanted {
            wrong.push(format!(
                "line {line}: {from} -> {to}: {found:?}, not {wanted:?}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
