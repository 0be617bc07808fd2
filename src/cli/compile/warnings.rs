//! What is to be said of a kernel that is right, but slow: registers that spill, loops with fewer stages than asked for.

use crate::compile::CompiledKernel;
use crate::settings::{Options, Target, spilled_bytes};

/// What is to be said when a thread needs more registers than there are, and what to do; the kernel is right, but slow.
pub(super) fn of_spills(kernel: &CompiledKernel, options: &Options) -> Option<(String, String)> {
    let threads = 32 * kernel.meta.num_warps;
    let most = Target::most_registers(threads);
    let most = options.max_registers.map_or(most, |n| most.min(n.into()));
    let needed = kernel.stats.machine.needed_registers;
    (needed > most).then(|| {
        let (name, bytes) = (&kernel.meta.name, spilled_bytes(needed, most));
        let message = format!(
            "{name} needs about {needed} registers a thread and gets {most}; values will spill to memory, about {bytes} bytes a thread"
        );
        let remedy = remedy(kernel.meta.num_warps, needed);
        (message, format!("use {remedy}"))
    })
}

/// What to change where a thread needs too many registers: the fewest warps with which there are enough, if what a thread
/// holds is dealt to more threads.
fn remedy(num_warps: u32, needed: u32) -> String {
    let more = (1..).map(|bits| num_warps << bits);
    let mut more = more.take_while(|&warps| warps <= 32);
    let enough = |warps: &u32| needed / (warps / num_warps) <= Target::most_registers(32 * warps);
    match more.find(enough) {
        Some(warps) => format!("{warps} warps, or smaller blocks"),
        None => "smaller blocks, or more warps".to_owned(),
    }
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

#[cfg(test)]
mod tests {
    use super::remedy;

    #[test]
    fn the_fewest_warps_that_are_enough_are_named() {
        for (num_warps, needed, expected) in [
            // With 8 warps 165 of 255; with 8, 16 and 32 warps 320 of 255, 160 of 128 and 80 of 64.
            (4, 330, "8 warps, or smaller blocks"),
            (1, 320, "2 warps, or smaller blocks"),
            (4, 640, "smaller blocks, or more warps"),
            (16, 140, "smaller blocks, or more warps"),
            (32, 100, "smaller blocks, or more warps"),
        ] {
            assert_eq!(remedy(num_warps, needed), expected, "{num_warps} {needed}");
        }
    }
}
