//! Programs as people bring them from Triton (`programs.py`): ways of writing that real files have, one or two a kernel.
//! What is expected was computed by Triton's interpreter (`make_programs.py`), or stated there with the reason.

use crate::cases::run_file;

#[test]
fn programs_store_what_triton_computes() {
    let kernels = run_file("programs.txt", "tests/data/language");
    assert!(kernels.len() >= 97, "{} cases", kernels.len());
}
