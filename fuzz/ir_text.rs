//! Broken and strange texts of kernels: no panic, and what verifies compiles.

use tilelift::fuzzing::{ir_text, run};

#[test]
fn ir_text() {
    let report = run("ir_text", ir_text::check);
    assert!(
        report.failures.is_empty(),
        "{} failures",
        report.failures.len()
    );
    assert!(report.passed > 0, "nothing was judged");
}
