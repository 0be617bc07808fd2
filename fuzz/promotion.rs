//! Products of matrices: loads that become those of tensor maps read what they read before.
#![cfg(feature = "triton")]

use tilelift::fuzzing::{promotion, run};

#[test]
fn promotion() {
    let report = run("promotion", promotion::check);
    assert!(
        report.failures.is_empty(),
        "{} failures",
        report.failures.len()
    );
    let promoted = report.notes.get("both promoted").copied().unwrap_or(0);
    assert!(promoted > 0, "nothing was promoted");
}
