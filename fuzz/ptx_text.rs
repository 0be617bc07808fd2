//! Broken and strange PTX: the emulator never panics and keeps its step limit.

use tilelift::fuzzing::{ptx_text, run};

#[test]
fn ptx_text() {
    let report = run("ptx_text", ptx_text::check);
    assert!(
        report.failures.is_empty(),
        "{} failures",
        report.failures.len()
    );
    assert!(report.passed > 0, "nothing was judged");
}
