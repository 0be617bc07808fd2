//! `tilelift tune`: which of a kernel's own configurations is the best for a launch, and why.

use std::process::ExitCode;

use serde_json::json;

use super::args::TuneArgs;
use super::bench::{Names, device};
use super::input::Source;
use super::table::table;
use super::{Failure, Result, write_out};
use crate::filetest::run::untyped::Untyped;
use crate::front::{named_constant, with_imports};
use crate::runtime::{Constant, Constants, Device, Grid, Program, RuntimeError};
use crate::tune::{Config, Measure, Outcome, Row, TuneReport};

/// Tries all configurations.
pub(super) fn tune(args: &TuneArgs) -> Result<ExitCode> {
    if args.file.extension().is_none_or(|ending| ending != "py") {
        let message = "only a .py file has configurations, those of @triton.autotune";
        return Err(Failure::Usage(message.to_owned()));
    }
    let source = Source::read(&args.file)?;
    let failed = |error: RuntimeError| Failure::Input(format!("{}: error: {error}", source.name));
    let wrong =
        |problem: String| Failure::Input(format!("{}: error: --args: {problem}", source.name));
    let text = with_imports(&args.file, &source.text);
    let program = Program::python(&source.name, &text).map_err(failed)?;
    let device = device(args.target.as_deref(), &args.device, args.steps)?;
    let name = args.name.as_deref();
    let mut tuner = program.tuner(name).map_err(failed)?;
    if let Some(top) = args.top {
        tuner = tuner.top(top.get());
    }
    let mut kernel = device.kernel(&program, name).map_err(failed)?;
    let mut constants = Vec::new();
    for entry in &args.constants {
        let (name, value) =
            named_constant(entry).map_err(|problem| Failure::Usage(format!("-c {problem}")))?;
        let value = Constant::from_front(&value);
        kernel = kernel.constant(&name, value.clone()).map_err(failed)?;
        constants.push((name, value));
    }
    let with = |entry: &String| {
        let pair = entry.split_once('=');
        let pair = pair.map(|(name, value)| (name.to_owned(), value.to_owned()));
        pair.ok_or_else(|| Failure::Usage(format!("--with {entry}: expected NAME=VALUE")))
    };
    let with: Vec<(String, String)> = args.with.iter().map(with).collect::<Result<_>>()?;
    // What the line says under these constants.
    let line = |constants: &[&[(String, Constant)]]| {
        let mut names = Names::new(&with);
        for (name, value) in constants.iter().copied().flatten() {
            names.add(name, &value.to_string());
        }
        names.add_numbers_of(&args.line);
        names.replace(&args.line)
    };
    let lines = tuner
        .configs()
        .iter()
        .map(|config| line(&[&config.constants, &constants]));
    let lines: std::result::Result<Vec<String>, String> = lines.collect();
    let lines = lines.map_err(wrong)?;
    // Every configuration leaves the same parameters to arguments.
    let set_up = tuner.configs().first().map(|config| config.set_up(&kernel));
    let set_up = set_up.transpose().map_err(failed)?;
    let names = set_up
        .as_ref()
        .map_or(Vec::new(), |kernel| kernel.arguments());
    let loaded = Untyped::read(&names, &lines).map_err(wrong)?;
    let loaded = loaded.load(&device).map_err(failed)?;
    let list = loaded.args().map_err(wrong)?;
    let grid = |constants: Constants<'_>| {
        let words = line(&[constants.list, constants.defaults]).ok()?;
        Untyped::grid(&words).ok()
    };
    let tuned = tuner
        .progress_bar()
        .tune(&kernel, &device.stream(), Grid::Of(&grid), list)
        .map_err(failed)?;
    let text = match args.json {
        true => json(&device, kernel.name(), &tuned.report),
        false => report(&device, kernel.name(), &tuned.report),
    };
    write_out(None, &text)?;
    Ok(ExitCode::SUCCESS)
}

/// What a configuration costs, if it was launched.
fn cost(row: &Row) -> Option<f64> {
    match row.outcome {
        Outcome::Measured(cost) | Outcome::Hopeless(cost) => Some(cost),
        _ => None,
    }
}

/// What became of a configuration, in words.
fn outcome(row: &Row, is_chosen: bool) -> String {
    match &row.outcome {
        Outcome::Measured(_) if is_chosen => "chosen".to_owned(),
        Outcome::Measured(_) => String::new(),
        Outcome::Hopeless(_) => "given up after a few launches".to_owned(),
        Outcome::Skipped(reason) => format!("not tried: {}", one_line(reason)),
        Outcome::Failed(reason) => format!("failed: {}", one_line(reason)),
    }
}

/// The first line of a reason.
fn one_line(reason: &str) -> &str {
    reason.lines().next().unwrap_or_default()
}

/// The constants and options that a configuration gives, by name.
fn settings(config: &Config) -> Vec<(String, String)> {
    let constants = config.constants.iter();
    let mut all: Vec<(String, String)> = constants
        .map(|(name, value)| (name.clone(), value.to_string()))
        .collect();
    let mut add = |name: &str, value: Option<String>| {
        all.extend(value.map(|value| (name.to_owned(), value)));
    };
    add("warps", config.num_warps.map(|n| n.to_string()));
    add("stages", config.num_stages.map(|n| n.to_string()));
    add("ctas", config.num_ctas.map(|n| n.to_string()));
    add("maxnreg", config.max_registers.map(|n| n.to_string()));
    all
}

/// The table, and by which rule the row was chosen.
fn report(device: &Device, kernel: &str, report: &TuneReport) -> String {
    let settings: Vec<Vec<(String, String)>> = report
        .rows
        .iter()
        .map(|row| settings(&row.config))
        .collect();
    let mut header: Vec<String> = Vec::new();
    for (name, _) in settings.iter().flatten() {
        if !header.contains(name) {
            header.push(name.clone());
        }
    }
    let count = header.len();
    let (unit, scale) = match device.is_gpu() {
        true => ("\u{b5}s", 1e3),
        false => ("cost", 1.0),
    };
    header.extend([unit, "of the lowest", ""].map(str::to_owned));
    let lowest = report
        .rows
        .iter()
        .filter_map(|row| match row.outcome {
            Outcome::Measured(cost) => Some(cost),
            _ => None,
        })
        .fold(f64::INFINITY, f64::min);
    let rows = report.rows.iter().zip(&settings).enumerate();
    let rows = rows.map(|(at, (row, settings))| {
        let value = |name: &String| {
            let found = settings.iter().find(|(known, _)| known == name);
            found.map_or("-".to_owned(), |(_, value)| value.clone())
        };
        let mut cells: Vec<String> = header[..count].iter().map(value).collect();
        let cost = cost(row);
        let digits = if device.is_gpu() { 1 } else { 0 };
        cells.push(cost.map_or("-".to_owned(), |cost| format!("{:.digits$}", scale * cost)));
        cells.push(cost.map_or("-".to_owned(), |cost| format!("{:.3}", cost / lowest)));
        cells.push(outcome(row, at == report.chosen));
        cells
    });
    let rows: Vec<Vec<String>> = rows.collect();
    let mut text = format!("{kernel} on {} for {}\n", device.name(), device.target());
    text += &table(&header, rows, |at| at < count + 2);
    text += &rule(device, report, lowest);
    text
}

/// Which row won, and why that one.
fn rule(device: &Device, report: &TuneReport, lowest: f64) -> String {
    let row = &report.rows[report.chosen];
    let tie = 100.0 * Measure::default().tie;
    let why = match cost(row) {
        Some(cost) if cost > lowest => {
            format!(
                "the first in the list within {tie:.0} % of the lowest cost, as such differences are noise"
            )
        }
        _ => "the lowest cost".to_owned(),
    };
    let mut text = format!("chosen: {}, {why}\n", row.config);
    if !device.is_gpu() {
        text += "no time is measured: the cost is what the emulator counts, instructions of warps, four for each sector of memory and one for \
                 each trip through shared memory\n";
    }
    text += &format!(
        "{} configurations, {} known from before, {:.2} s\n",
        report.rows.len(),
        report.reused,
        report.wall.as_secs_f64()
    );
    if report.reused > 0 {
        text += "known are costs of launches with the same kernel, device, types and key, not of this one; --fresh measures again\n";
    }
    text
}

fn json(device: &Device, kernel: &str, report: &TuneReport) -> String {
    let rows = report.rows.iter().map(|row| {
        let settings = settings(&row.config).into_iter();
        let settings: serde_json::Map<String, serde_json::Value> =
            settings.map(|(name, value)| (name, value.into())).collect();
        let (what, reason) = match &row.outcome {
            Outcome::Measured(_) => ("measured", None),
            Outcome::Hopeless(_) => ("given up", None),
            Outcome::Skipped(reason) => ("not tried", Some(reason)),
            Outcome::Failed(reason) => ("failed", Some(reason)),
        };
        json!({"config": settings, "outcome": what, "cost": cost(row), "reason": reason})
    });
    let rows: Vec<serde_json::Value> = rows.collect();
    let unit = if device.is_gpu() { "ms" } else { "count" };
    let file = json!({
        "kernel": kernel,
        "device": device.name(),
        "target": device.target().to_string(),
        "unit": unit,
        "rows": rows,
        "chosen": report.chosen,
        "reused": report.reused,
        "seconds": report.wall.as_secs_f64(),
    });
    format!("{file:#}\n")
}
