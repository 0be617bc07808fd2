//! What is to be said of a kernel that is right, but slow: registers that spill, loops with fewer stages than asked for.

use crate::compile::CompiledKernel;
use crate::settings::{Options, Target, better_warps, is_expected_to_spill, spilled_bytes};

/// What is to be said when a thread needs more registers than there are, and what to do; the kernel is right, but slow.
pub(super) fn of_spills(kernel: &CompiledKernel, options: &Options) -> Option<(String, String)> {
    let threads = kernel.meta.threads();
    let most = Target::most_registers(threads);
    let most = options.max_registers.map_or(most, |n| most.min(n.into()));
    let needed = kernel.stats.machine.needed_registers;
    is_expected_to_spill(needed, most).then(|| {
        let (name, bytes) = (&kernel.meta.name, spilled_bytes(needed, most));
        let message = format!(
            "{name} needs about {needed} registers a thread and gets {most}; values will spill to memory, about {bytes} bytes a thread"
        );
        let remedy = match better_warps(kernel.meta.num_warps, needed) {
            Some(warps) => format!("{warps} warps, or smaller blocks"),
            None => "smaller blocks".to_owned(),
        };
        (message, format!("use {remedy}"))
    })
}

/// What is to be said when a loop has fewer stages than it asks for.
pub(super) fn of_cut_stages(kernel: &CompiledKernel) -> Option<(String, String)> {
    let cut = kernel.stats.cut_stages?;
    let message = format!(
        "{}: a loop asks for {} stages, shared memory has room for {}, which it gets",
        kernel.meta.name, cut.asked, cut.used
    );
    Some((message, "use smaller blocks for more".to_owned()))
}
