//! Products of matrices: loads and stores that become those of tensor maps do what they did before.
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
    for note in ["both loads promoted", "stores promoted"] {
        assert!(report.notes.contains_key(note), "none had {note}");
    }
}
