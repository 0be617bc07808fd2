//! Loops with products of products: they compute what they did when they begin the next iteration early.
#![cfg(feature = "triton")]

use tilelift::fuzzing::{rotation, run};

#[test]
fn rotation() {
    let report = run("rotation", rotation::check);
    assert!(
        report.failures.is_empty(),
        "{} failures",
        report.failures.len()
    );
    let rotated = report.notes.get("rotated").copied().unwrap_or(0);
    assert!(rotated > 0, "nothing was rotated");
}
