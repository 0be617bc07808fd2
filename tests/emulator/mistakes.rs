//! Mistakes with barriers in shared memory and bulk copies that are easily made, each of which is reported under every seed.

use crate::phases::{kernel, reported, run};

const LOAD: &str = "@%first mbarrier.arrive.expect_tx.shared::cta.b64 _, [%b], 256;
@%first cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%s], [%data], 256, [%b];";
const WAIT: &str = "W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%b], 0; @!%p2 bra W;";
const USE: &str = "mad.lo.u32 %r1, %t, 4, %s; ld.shared.u32 %r2, [%r1];";
const FILL: &str = "mad.lo.u32 %r1, %t, 4, %s; st.shared.u32 [%r1], %t; fence.proxy.async.shared::cta; bar.sync 1;";
const STORE: &str = "@%first cp.async.bulk.global.shared::cta.bulk_group [%data], [%s], 256; @%first cp.async.bulk.commit_group;";

#[test]
fn of_loads() {
    assert_eq!(run(&kernel(1, &format!("{LOAD}\n{WAIT}\n{USE}")), 1), Ok(0));
    let cases = [
        // The phase before the first one is over at once.
        (format!("{LOAD}\n{}\n{USE}", WAIT.replace(", 0;", ", 1;")), "not all of them written"),
        // A barrier is initialised again, or gone, while something is to arrive at it.
        (format!("{LOAD}\n@%first mbarrier.init.shared::cta.b64 [%b], 1;\n{WAIT}\n{USE}"), "mbarrier at shared address"),
        (format!("{LOAD}\n@%first mbarrier.inval.shared::cta.b64 [%b];"), "ptx line"),
        // Its bytes are no data.
        (format!("{LOAD}\n{WAIT}\nld.shared.u32 %r2, [%b];"), "shared"),
        (format!("{LOAD}\n@%first st.shared.u32 [%b], 0;\n{WAIT}"), "shared"),
        (format!("{}\n{WAIT}", LOAD.replace("[%s], [%data], 256", "[%b], [%data], 256")), "shared address"),
        // Two copies to the same bytes.
        (
            format!("{}\n{WAIT}", LOAD.replace("[%b];", "[%b];\n@%first cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%s+128], [%data], 256, [%b];").replace(", 256;\n", ", 512;\n")),
            "race on shared",
        ),
        // Another barrier tells nothing of this one.
        (
            format!("@%first mbarrier.init.shared::cta.b64 [%b+8], 64; bar.sync 2;\n{LOAD}\nmbarrier.arrive.shared::cta.b64 _, [%b+8];\n{}\n{USE}\n{}", WAIT.replace("[%b]", "[%b+8]"), WAIT.replace("W", "V")),
            "shared address",
        ),
    ];
    for (body, words) in cases {
        reported(1, &body, words);
    }
}

#[test]
fn of_stores() {
    let wait = "@%first cp.async.bulk.wait_group 0;";
    let read = "bar.sync 2; mad.wide.u32 %d1, %t, 4, %data; ld.global.u32 %r2, [%d1];";
    assert_eq!(
        run(&kernel(0, &format!("{FILL}\n{STORE}\n{wait}\n{read}")), 1),
        Ok(0)
    );
    let cases = [
        // Its source is free, and its target is not yet written.
        (
            format!(
                "{FILL}\n{STORE}\n{}\n{read}",
                wait.replace("group 0", "group.read 0")
            ),
            "global address",
        ),
        // Others cannot wait for what a thread started.
        (
            format!("{FILL}\n{STORE}\n{}", wait.replace("@%first", "@!%first")),
            "the end is reached",
        ),
        // The fence stands in front of what it should make visible.
        (
            format!(
                "fence.proxy.async.shared::cta; {}\n{STORE}\n{wait}",
                FILL.replace("fence.proxy.async.shared::cta; ", "")
            ),
            "no fence makes the write",
        ),
        // Two stores to the same bytes.
        (
            format!(
                "{FILL}\n{STORE}\n{STORE}\n{}",
                wait.replace("group 0", "group.read 1")
            ),
            "race on global",
        ),
        // The target is read while it is written, the source written while it is read.
        (format!("{FILL}\n{STORE}\n{read}\n{wait}"), "global address"),
        (
            format!("{FILL}\n{STORE}\n@%first st.shared.u32 [%s], 1;\n{wait}"),
            "race on shared",
        ),
    ];
    for (body, words) in cases {
        reported(0, &body, words);
    }
}
