//! Each pass alone: what it leaves computes what it was given; texts of the middle of the pipeline come back the same.

use tilelift::fuzzing::{passes, run};

#[test]
fn passes() {
    let report = run("passes", passes::check);
    assert!(
        report.failures.is_empty(),
        "{} failures",
        report.failures.len()
    );
    assert!(report.passed > 0, "nothing was judged");
}
