//! Conversions between random layouts, simulated.

use tilelift::fuzzing::{layouts, run};

#[test]
fn layouts() {
    let report = run("layouts", layouts::check);
    assert!(
        report.failures.is_empty(),
        "{} failures",
        report.failures.len()
    );
    assert!(report.passed > 0, "nothing was judged");
}
