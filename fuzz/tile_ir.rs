//! Generated kernels: verifier, interpreter before and after the passes, emulator, text.

use tilelift::fuzzing::{run, tile_ir};

#[test]
fn tile_ir() {
    let report = run("tile_ir", tile_ir::check);
    assert!(
        report.failures.is_empty(),
        "{} failures",
        report.failures.len()
    );
    assert!(report.passed > 0, "nothing was judged");
}
