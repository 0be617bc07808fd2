//! Texts of the Triton language: no panic, no mistake of ours, and what is accepted compiles.
#![cfg(feature = "triton")]

use tilelift::fuzzing::{run, source_text};

#[test]
fn source_text() {
    let report = run("source_text", source_text::check);
    assert!(
        report.failures.is_empty(),
        "{} failures",
        report.failures.len()
    );
    assert!(report.passed > 0, "nothing was judged");
}
