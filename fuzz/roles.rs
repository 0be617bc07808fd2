//! Products whose boxes warps of their own bring: interpreter after each pass, and emulator.

use tilelift::fuzzing::{roles, run};

#[test]
fn roles() {
    let report = run("roles", roles::check);
    assert!(
        report.failures.is_empty(),
        "{} failures",
        report.failures.len()
    );
    let formed = report.notes.get("with roles").copied().unwrap_or(0);
    assert!(formed > 0, "no kernel got roles");
}
