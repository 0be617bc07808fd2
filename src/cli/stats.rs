//! `tilelift compile --emit stats --json`: what the compiler counted, as the library serialises it, and how many programs a
//! multiprocessor holds.

use serde_json::json;

use crate::compile::CompiledKernel;
use crate::settings::{Options, Target, Usage, spilled_bytes};

/// The file.
pub(super) fn json(kernel: &CompiledKernel, options: &Options) -> String {
    let meta = &kernel.meta;
    let threads = 32 * meta.num_warps;
    let machine = &kernel.stats.machine;
    let bound = options.max_registers.map_or(u32::MAX, u32::from);
    let most = Target::most_registers(threads).min(bound);
    let usage = Usage {
        threads,
        registers: machine.predicted_registers.min(most),
        shared: meta.shared,
    };
    let resident = meta.target.resident(usage);
    let file = json!({
        "kernel": meta.name,
        "target": meta.target.to_string(),
        "num_warps": meta.num_warps,
        "stats": kernel.stats,
        "predicted": {
            "registers": usage.registers,
            "needed_registers": machine.needed_registers,
            "most_registers": most,
            "spilled_bytes": spilled_bytes(machine.needed_registers, most),
            "resident_programs": resident,
            "occupancy_percent": meta.target.occupancy_percent(resident, threads),
            "limited_by": limited_by(meta.target, usage, resident),
        },
    });
    format!("{file:#}\n")
}

/// What keeps more programs from being resident.
fn limited_by(target: Target, usage: Usage, resident: u32) -> &'static str {
    let with = |registers, shared| {
        target.resident(Usage {
            registers,
            shared,
            ..usage
        })
    };
    let (by_registers, by_shared) = (with(usage.registers, 0), with(1, usage.shared));
    match () {
        () if with(1, 0) == resident => "warps",
        () if by_registers <= by_shared => "registers",
        () => "shared memory",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scarcest_resource_is_named() {
        for (threads, registers, shared, expected) in [
            (1024, 32, 0, "warps"),
            (128, 255, 0, "registers"),
            (128, 32, 48 << 10, "shared memory"),
            (128, 168, 100 << 10, "shared memory"),
        ] {
            let usage = Usage {
                threads,
                registers,
                shared,
            };
            let resident = Target::SM_80.resident(usage);
            assert_eq!(
                limited_by(Target::SM_80, usage, resident),
                expected,
                "{usage:?}"
            );
        }
    }
}
