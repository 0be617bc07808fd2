//! `tilelift warm`: kernels of manifests, made before anybody launches them.

use std::process::ExitCode;
use std::time::Duration;

use super::args::{AssemblerArg, WarmArgs};
use super::progress::Progress;
use super::{Failure, Result, say, table, write_out};
use crate::runtime::cache::{Cache, Origin};
use crate::runtime::{Manifest, environment};
use crate::settings::Target;
use crate::warm::{Assembler, Warm, WarmReport, WarmedKernel};

/// Makes the kernels of manifests.
pub(super) fn warm(args: &WarmArgs) -> Result<ExitCode> {
    if let Some(ordinal) = args.worker {
        return work(ordinal);
    }
    let cache = Cache::from_env();
    let Some(settings) = cache.settings() else {
        let problem = "the cache is off, and there is no place for what would be made";
        return Err(Failure::Usage(problem.to_owned()));
    };
    insist("TILELIFT_CACHE_KEY", settings.secret.is_some())?;
    insist("TILELIFT_CACHE_SHARED", settings.shared.is_some())?;
    let targets = args.targets.iter().map(|name| Target::parse(name));
    let targets: std::result::Result<Vec<Target>, _> = targets.collect();
    let mut warm = Warm::new(cache.clone());
    warm.targets = targets.map_err(|error| Failure::Usage(error.to_string()))?;
    warm.assembler = match args.assembler {
        AssemblerArg::Auto => Assembler::Found,
        AssemblerArg::Driver => Assembler::Driver,
        AssemblerArg::Ptxas => Assembler::Ptxas,
        AssemblerArg::None => Assembler::None,
    };
    warm.worker = std::env::current_exe().ok();
    warm.limit = Duration::from_secs(args.limit);
    if let Some(jobs) = args.jobs {
        warm.jobs = jobs.get();
    }
    // All are read before the first is made: a mistake shows at once.
    let manifests = args.manifests.iter().map(|path| Manifest::read(path));
    let manifests: std::result::Result<Vec<Manifest>, _> = manifests.collect();
    let manifests = manifests.map_err(|error| Failure::Input(error.to_string()))?;
    let progress = Progress::new("looking for an assembler");
    let kernels: usize = manifests.iter().map(Manifest::len).sum();
    let all = kernels * warm.targets.len().max(1);
    let report = warm.run_all(&manifests, &|row, done| {
        progress.set(match done < all {
            true => format!("{done} of {all} kernels, {}", row.kernel),
            false => "looking whether all is kept".to_owned(),
        });
    });
    drop(progress);
    for row in &report.rows {
        if let Some(problem) = &row.problem {
            say(&format!("{}: error: {}: {problem}", row.place, row.kernel));
        }
    }
    let text = match args.json {
        true => json(&report)?,
        false => shown(&report, args.list),
    };
    write_out(None, &text)?;
    for problem in &report.kept.problems {
        say(&format!("error: {problem}"));
    }
    let is_whole = report.failed() == 0 && report.kept.problems.is_empty();
    Ok(ExitCode::from(u8::from(!is_whole)))
}

/// Who asks for a secret or a store wants no cache without.
pub(super) fn insist(name: &str, is_used: bool) -> Result<()> {
    match environment::value(name).is_some() && !is_used {
        false => Ok(()),
        true => Err(Failure::Input(format!(
            "error: {name} is of no use, as the warning above says"
        ))),
    }
}

#[cfg(feature = "cuda")]
fn work(ordinal: u32) -> Result<ExitCode> {
    let served = crate::warm::serve(ordinal);
    served.map_err(Failure::Input)?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(not(feature = "cuda"))]
fn work(_ordinal: u32) -> Result<ExitCode> {
    let problem = "--worker needs the feature `cuda`";
    Err(Failure::Usage(problem.to_owned()))
}

fn json(report: &WarmReport) -> Result<String> {
    let text = serde_json::to_string_pretty(report);
    let text = text.map_err(|error| Failure::Input(format!("error: {error}")))?;
    Ok(text + "\n")
}

/// The table of all kernels, if it is asked for, and the sum.
fn shown(report: &WarmReport, list: bool) -> String {
    let mut text = String::new();
    if list {
        let header = ["kernel", "signature", "target", "PTX", "ms", "code", "ms"];
        let rows = report.rows.iter().map(cells);
        text += &table::table(&header.map(str::to_owned), rows, |at| at == 4 || at == 6);
    }
    text + &format!("{report}\n")
}

fn cells(row: &WarmedKernel) -> Vec<String> {
    let origin = |origin: Option<Origin>| match origin {
        None => "-",
        Some(Origin::Made) => "made",
        Some(_) => "there",
    };
    let ms = |time: Duration| format!("{:.1}", 1e3 * time.as_secs_f64());
    let target = row
        .target
        .map_or("-".to_owned(), |target| target.to_string());
    let code = match row.problem {
        None => origin(row.code),
        Some(_) => "failed",
    };
    vec![
        row.kernel.clone(),
        row.signature.clone(),
        target,
        origin(row.ptx).to_owned(),
        ms(row.compile),
        code.to_owned(),
        ms(row.assemble),
    ]
}
