//! Kernels changed so that their results must not change: numbers of programs, constants, masks, sizes of blocks.

use tilelift::fuzzing::{metamorphic, run};

#[test]
fn metamorphic() {
    let report = run("metamorphic", metamorphic::check);
    assert!(
        report.failures.is_empty(),
        "{} failures",
        report.failures.len()
    );
    assert!(report.passed > 0, "nothing was judged");
}
