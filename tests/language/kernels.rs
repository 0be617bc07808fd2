//! The kernels of `examples/kernels` against NumPy (`make_kernels.py`).

use std::collections::BTreeSet;

use crate::cases::run_file;

#[test]
fn kernels_compute_what_numpy_computes() {
    let kernels: BTreeSet<String> = run_file("kernels.txt", "examples/kernels")
        .into_iter()
        .collect();
    assert!(kernels.len() >= 15, "{kernels:?}");
}
