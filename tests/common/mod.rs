//! Kernels, data and references that every executor of the tests runs.
//!
//! A file of tests for an executor implements [`executor::Executor`] and calls `kernel_suite!`.

pub(crate) mod cases;
pub(crate) mod data;
pub(crate) mod edges;
pub(crate) mod executor;
pub(crate) mod kernel_set;
pub(crate) mod kernels;
#[cfg(feature = "serde")]
pub(crate) mod launches;
pub(crate) mod on_emu;
pub(crate) mod on_interp;
pub(crate) mod package;
pub(crate) mod ptxas;
mod tile_cases;
pub(crate) mod ulp;

/// One test per family of kernels, on the executor that the expression makes.
macro_rules! kernel_suite {
    ($executor:expr) => {
        $crate::common::kernel_suite! { $executor;
            vector_add, softmax, softmax_widths, layer_norm, layer_norm_backward, gelu, transpose, sums, sorts, scans,
            tiles
        }
    };
    ($executor:expr; $($family:ident),*) => {
        $(
            #[test]
            fn $family() {
                $crate::common::executor::run_cases(&mut $executor, &$crate::common::cases::$family());
            }
        )*
    };
}
pub(crate) use kernel_suite;
