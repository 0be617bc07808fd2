//! Random problems for the register allocator: checker and execution.

use tilelift::fuzzing::{allocation, run};

#[test]
fn allocation() {
    let report = run("allocation", allocation::check);
    assert!(
        report.failures.is_empty(),
        "{} failures",
        report.failures.len()
    );
    assert!(report.passed > 0, "nothing was judged");
}
