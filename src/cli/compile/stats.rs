//! `tilelift compile --emit stats`: with `--json` what the compiler counted, as the library serialises it, and how many programs a
//! multiprocessor holds; with `--args` what the model of time says of a launch.

use serde_json::{Value, json};

use crate::cli::input::Kernel;
use crate::cli::{Failure, Result};
use crate::compile::CompiledKernel;
use crate::filetest::run::Setup;
use crate::filetest::run::launch::whole_numbers;
use crate::predict::{Estimate, Launch, Model};
use crate::settings::{Options, Target, Usage, spilled_bytes};

/// What the launch of a run line is expected to take.
pub(super) fn expected(kernel: &Kernel, words: &str) -> Result<Estimate> {
    let wrong = |problem: String| Failure::Input(format!("--args: {problem}"));
    let setup = Setup {
        fixed: &kernel.constants,
        ..Setup::new(kernel.target, &kernel.options)
    };
    let (grid, numbers) = whole_numbers(&kernel.func, words, &setup).map_err(wrong)?;
    let model = Model::of(&kernel.func, kernel.target, &kernel.options);
    let model = model.map_err(|error| kernel.refused(&error))?;
    let model = model.ok_or_else(|| {
        let target = kernel.target;
        wrong(format!(
            "too little is known of devices of {target} to expect a time"
        ))
    })?;
    let launch = Launch {
        grid,
        numbers: &numbers,
    };
    let estimate = model.estimate(&launch);
    estimate.ok_or_else(|| wrong("the model of time does not follow this launch".to_owned()))
}

/// An estimate in the file.
fn expected_json(estimate: &Estimate) -> Value {
    let busy = estimate.busy.iter();
    let busy: serde_json::Map<String, Value> = busy
        .map(|(resource, busy)| (resource.name().to_owned(), json!(busy)))
        .collect();
    json!({
        "microseconds": estimate.micros,
        "bound_by": estimate.bound().map(|resource| resource.name()),
        "busy": busy,
        "resident_ctas": estimate.resident,
        "waves": estimate.waves,
        "persistent": estimate.persistent,
        "depends_on_data": estimate.guessed,
    })
}

/// The file.
pub(super) fn json(
    kernel: &CompiledKernel,
    options: &Options,
    expected: Option<&Estimate>,
) -> String {
    let meta = &kernel.meta;
    let threads = meta.threads();
    let machine = &kernel.stats.machine;
    let bound = options.max_registers.map_or(u32::MAX, u32::from);
    let most = Target::most_registers(threads).min(bound);
    let usage = Usage {
        threads,
        registers: machine.predicted_registers.min(most),
        shared: meta.shared,
    };
    let resident = meta.target.resident(usage);
    let mut file = json!({
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
    if let Some(estimate) = expected {
        file["expected"] = expected_json(estimate);
    }
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
