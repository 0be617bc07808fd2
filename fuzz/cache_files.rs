//! Broken and strange files in the place of cache entries: no panic, no wrong contents, and what is damaged is reported.

use tilelift::fuzzing::{cache_files, run};
use tilelift::runtime::on_warning;

#[test]
fn cache_files() {
    // There is one for each damaged file.
    on_warning(|_| {});
    let report = run("cache_files", cache_files::check);
    assert!(
        report.failures.is_empty(),
        "{} failures",
        report.failures.len()
    );
    assert!(report.passed > 0, "nothing was judged");
}
