//! Generated kernels through `ptxas`: whatever the compiler writes, the assembler accepts.

#[path = "../tests/common/ptxas.rs"]
pub(crate) mod assembler;

use std::panic::catch_unwind;

use tilelift::compile::compile;
use tilelift::fuzzing::generate::{Case, case};
use tilelift::fuzzing::reduce_case::reduce_case;
use tilelift::fuzzing::tile_ir::show;
use tilelift::fuzzing::{Verdict, run};

#[test]
fn ptxas() {
    if assembler::find().is_none() {
        return;
    }
    let report = run("ptxas", check);
    assert!(
        report.failures.is_empty(),
        "{} failures",
        report.failures.len()
    );
    assert!(report.passed > 0, "nothing was judged");
}

fn check(seed: u64) -> Verdict {
    let case = case(seed);
    match assemble(&case) {
        None => Verdict::Skipped("does not compile"),
        Some(Ok(spilled)) if spilled > 0 => Verdict::Passed(vec!["spills"]),
        Some(Ok(_)) => Verdict::Passed(Vec::new()),
        Some(Err(message)) => {
            let small = reduce_case(&case, |case| matches!(assemble(case), Some(Err(_))));
            let message = match assemble(&small) {
                Some(Err(message)) => message,
                _ => message,
            };
            Verdict::Failed(format!("{message}\n{}", show(&small)))
        }
    }
}

/// Bytes spilled, or what the assembler complains about; none if there is nothing to assemble: that is the business of
/// the target `tile_ir`.
fn assemble(case: &Case) -> Option<Result<u32, String>> {
    let kernel = compile(&case.func, case.target, &case.options).ok()?;
    let arch = case.target.to_string();
    match catch_unwind(|| assembler::assemble(&kernel.ptx, &arch)) {
        Ok(report) => report.map(|report| Ok(report.spilled)),
        Err(panic) => {
            let text = panic.downcast_ref::<String>();
            Some(Err(text.cloned().unwrap_or_default()))
        }
    }
}
