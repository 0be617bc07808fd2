//! Every kernel of the cases, each once.

use std::collections::BTreeMap;

use tilelift::ir::function::TileFunction;

use crate::common::cases;

/// The kernels with the name of the first case that has them, in the order of their text.
pub(crate) fn kernels() -> Vec<(String, TileFunction)> {
    let families = [
        cases::vector_add,
        cases::softmax,
        cases::softmax_widths,
        cases::layer_norm,
        cases::layer_norm_backward,
        cases::gelu,
        cases::transpose,
        cases::sums,
        cases::sorts,
        cases::scans,
        cases::tiles,
    ];
    let mut by_text = BTreeMap::new();
    for case in families.into_iter().flat_map(|family| family()) {
        for launch in case.launches {
            let text = launch.func.to_string();
            by_text
                .entry(text)
                .or_insert_with(|| (case.name.clone(), launch.func));
        }
    }
    by_text.into_values().collect()
}
