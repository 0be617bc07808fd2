//! Where the language is not what it looks like: each kernel of `traps.py` shows one such place. What is expected was
//! computed by Triton's interpreter (`make_traps.py`), or where that differs from its compiler, stated there by hand.

use crate::cases::run_file;

#[test]
fn traps_are_as_triton_has_them() {
    let kernels = run_file("traps.txt", "tests/data/language");
    assert!(kernels.len() >= 28, "{} cases", kernels.len());
}
