//! Kernels, data and references that every executor of the tests runs.
//!
//! A test file for an executor implements [`executor::Executor`] and calls `kernel_suite!`.

pub(crate) mod cases;
pub(crate) mod data;
pub(crate) mod executor;
pub(crate) mod kernels;
mod tile_cases;

/// One test per family of kernels, on the executor that the expression makes.
macro_rules! kernel_suite {
    ($executor:expr) => {
        common::kernel_suite! { $executor;
            vector_add, softmax, softmax_widths, layer_norm, layer_norm_backward, gelu, transpose, sums, sorts, scans,
            tiles
        }
    };
    ($executor:expr; $($family:ident),*) => {
        $(
            #[test]
            fn $family() {
                common::executor::run_cases(&mut $executor, &common::cases::$family());
            }
        )*
    };
}
pub(crate) use kernel_suite;
