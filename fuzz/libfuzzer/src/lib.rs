//! What the fuzz targets share.
//!
//! From the top-level folder, with cargo-fuzz and the nightly toolchain that it needs:
//!
//! ```console
//! $ cargo +nightly fuzz run --fuzz-dir fuzz/libfuzzer ir_text -- -max_total_time=60
//! ```

use tilelift::fuzzing::Verdict;

/// Panics if an oracle found fault, which is how libFuzzer learns of it.
pub fn accept(verdict: Verdict) {
    if let Verdict::Failed(report) = verdict {
        panic!("{report}");
    }
}
