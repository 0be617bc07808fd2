//! Every kernel of `common`, compiled for every target, through `ptxas`: it assembles, spills nothing, and takes about
//! the registers that the compiler predicts.

use crate::common::kernel_set;
use crate::common::ptxas;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use tilelift::compile::compile;
use tilelift::ir::function::TileFunction;
use tilelift::settings::{Options, Target};

/// How far the prediction may be off for nine kernels of ten.
const REGISTERS: u32 = 8;

/// Assemblers at a time.
const THREADS: usize = 2;

/// What became of one kernel for one target.
struct Outcome {
    what: String,
    predicted: u32,
    report: ptxas::Report,
}

/// Compiles and assembles; none without an assembler.
fn outcome(name: &str, func: &TileFunction, target: Target) -> Result<Option<Outcome>, String> {
    let what = format!("{name}, {target}");
    let kernel =
        compile(func, target, &Options::DEFAULT).map_err(|e| format!("{what}: {e}\n{func}"))?;
    let report = ptxas::assemble(&kernel.ptx, &target.to_string());
    Ok(report.map(|report| Outcome {
        what,
        predicted: kernel.stats.machine.predicted_registers,
        report,
    }))
}

#[test]
fn every_kernel_assembles_for_every_target() {
    if ptxas::find().is_none() {
        return;
    }
    let kernels = kernel_set::kernels();
    let work: Vec<(&str, &TileFunction, Target)> = kernels
        .iter()
        .flat_map(|(name, func)| Target::ALL.map(|target| (name.as_str(), func, target)))
        .filter(|(_, _, target)| ptxas::find_for(&target.to_string()).is_some())
        .collect();
    let next = AtomicUsize::new(0);
    let found = Mutex::new((Vec::new(), Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while let Some(&(name, func, target)) =
                    work.get(next.fetch_add(1, Ordering::Relaxed))
                {
                    let result = outcome(name, func, target);
                    let mut found = found.lock().expect("no thread panics under the lock");
                    match result {
                        Ok(Some(outcome)) => found.0.push(outcome),
                        Ok(None) => {}
                        Err(problem) => found.1.push(problem),
                    }
                }
            });
        }
    });
    let (mut outcomes, mut problems) = found.into_inner().expect("no thread panics under the lock");
    outcomes.sort_by(|a, b| a.what.cmp(&b.what));

    let mut off = Vec::new();
    for Outcome {
        what,
        predicted,
        report,
    } in &outcomes
    {
        if report.spilled > 0 {
            problems.push(format!("{what}: {} bytes spilled", report.spilled));
        }
        if report.registers.abs_diff(*predicted) > REGISTERS {
            off.push(format!(
                "{what}: {} registers, predicted {predicted}",
                report.registers
            ));
        }
    }
    eprintln!(
        "{} assemblies; the prediction is off by more than {REGISTERS} registers in {}:\n{}",
        outcomes.len(),
        off.len(),
        off.join("\n")
    );
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
    assert_eq!(outcomes.len(), work.len());
    assert!(
        10 * off.len() <= outcomes.len(),
        "the prediction is off in {} of {}",
        off.len(),
        outcomes.len()
    );
}
