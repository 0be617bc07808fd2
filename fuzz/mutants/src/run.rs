//! Runs the test programs of the planted copy, first to see which mutants each reaches, then against each mutant.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use wait_timeout::ChildExt as _;

use crate::GROUPS;
use crate::plant::Mutant;

/// What became of a mutant: a line of `results.jsonl`.
#[derive(Serialize, Deserialize)]
struct Verdict {
    number: usize,
    /// The test program that failed; none if all passed.
    killer: Option<String>,
    /// Whether any test program reached it.
    is_reached: bool,
}

/// A test program, and what its first run found: a line of `programs.json`.
#[derive(Serialize, Deserialize)]
struct Program {
    name: String,
    path: PathBuf,
    seconds: f64,
    reaches: BTreeSet<usize>,
}

pub(crate) fn run(folder: &Path, jobs: usize) -> Result<()> {
    let folder = &folder.canonicalize()?;
    let mutants = mutants(folder)?;
    let programs = programs(folder)?;
    let known: BTreeSet<usize> = verdicts(folder)?.iter().map(|v| v.number).collect();
    let todo: Vec<&Mutant> = mutants
        .iter()
        .filter(|m| !known.contains(&m.number))
        .collect();
    let file = OpenOptions::new()
        .append(true)
        .create(true)
        .open(folder.join("results.jsonl"))?;
    let file = Mutex::new(file);
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let work = || -> Result<()> {
            while let Some(mutant) = todo.get(next.fetch_add(1, Ordering::Relaxed)) {
                let verdict = judge(folder, &programs, mutant.number)?;
                let by = verdict.killer.as_deref().unwrap_or(if verdict.is_reached {
                    "NOBODY"
                } else {
                    "NOBODY: not reached"
                });
                let line = serde_json::to_string(&verdict)? + "\n";
                let mut file = file.lock().expect("no thread panics with the lock");
                file.write_all(line.as_bytes())?;
                println!(
                    "{} {}:{} {}: {by}",
                    mutant.number, mutant.file, mutant.line, mutant.what
                );
            }
            Ok(())
        };
        let threads: Vec<_> = (0..jobs.max(1)).map(|_| scope.spawn(work)).collect();
        threads
            .into_iter()
            .try_for_each(|t| t.join().expect("no thread panics"))
    })?;
    report(folder)
}

fn judge(folder: &Path, programs: &[Program], number: usize) -> Result<Verdict> {
    let mut is_reached = false;
    for program in programs.iter().filter(|p| p.reaches.contains(&number)) {
        is_reached = true;
        // Loops that never end are noticed, too.
        let limit = Duration::from_secs_f64(20.0 + 4.0 * program.seconds);
        if !passes(
            folder,
            &program.path,
            &[("MUTANT", &number.to_string())],
            limit,
        )? {
            return Ok(Verdict {
                number,
                killer: Some(program.name.clone()),
                is_reached,
            });
        }
    }
    Ok(Verdict {
        number,
        killer: None,
        is_reached,
    })
}

fn passes(folder: &Path, program: &Path, vars: &[(&str, &str)], limit: Duration) -> Result<bool> {
    let mut command = Command::new(program);
    command
        .current_dir(folder.join("tree"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .stdin(Stdio::null());
    command.envs(vars.iter().copied());
    let mut child = command
        .spawn()
        .with_context(|| program.display().to_string())?;
    match child.wait_timeout(limit)? {
        Some(status) => Ok(status.success()),
        None => {
            child.kill()?;
            child.wait()?;
            Ok(false)
        }
    }
}

/// Builds the test programs and runs each once, the quickest first in what comes back.
fn programs(folder: &Path) -> Result<Vec<Program>> {
    let kept = folder.join("programs.json");
    if let Ok(text) = fs::read_to_string(&kept) {
        return Ok(serde_json::from_str(&text)?);
    }
    let out = Command::new("cargo")
        .args(["test", "--no-run", "--message-format=json"])
        .env("RUSTFLAGS", "--cap-lints=warn")
        .env("CARGO_INCREMENTAL", "0")
        .stderr(Stdio::inherit())
        .current_dir(folder.join("tree"))
        .output()?;
    ensure!(out.status.success(), "the tests of the copy do not build");
    let mut programs = Vec::new();
    for line in String::from_utf8_lossy(&out.stdout).lines() {
        let value: serde_json::Value = serde_json::from_str(line)?;
        let is_test = value["profile"]["test"] == true;
        let (Some(path), true) = (value["executable"].as_str(), is_test) else {
            continue;
        };
        let name = value["target"]["name"].as_str().unwrap_or(path).to_owned();
        let trace = folder.join("trace");
        File::create(&trace)?;
        let start = Instant::now();
        let trace_path = trace.display().to_string();
        let hour = Duration::from_secs(3600);
        // Figures and file lists of the sources are not for a copy that was changed.
        if !passes(
            folder,
            Path::new(path),
            &[("MUTANT_TRACE", &trace_path)],
            hour,
        )? {
            println!("{name} fails without a mutant, and is left out");
            continue;
        }
        let seconds = start.elapsed().as_secs_f64();
        let reaches: BTreeSet<usize> = fs::read_to_string(&trace)?
            .lines()
            .filter_map(|l| l.parse().ok())
            .collect();
        println!("{name}: {seconds:.1} s, reaches {} mutants", reaches.len());
        programs.push(Program {
            name,
            path: path.into(),
            seconds,
            reaches,
        });
    }
    programs.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    fs::write(kept, serde_json::to_string(&programs)?)?;
    Ok(programs)
}

fn mutants(folder: &Path) -> Result<Vec<Mutant>> {
    let text = fs::read_to_string(folder.join("mutants.json")).context("first `plant`")?;
    Ok(serde_json::from_str(&text)?)
}

fn verdicts(folder: &Path) -> Result<Vec<Verdict>> {
    let text = fs::read_to_string(folder.join("results.jsonl")).unwrap_or_default();
    text.lines()
        .map(|line| Ok(serde_json::from_str(line)?))
        .collect()
}

pub(crate) fn report(folder: &Path) -> Result<()> {
    let mutants: BTreeMap<usize, Mutant> = mutants(folder)?
        .into_iter()
        .map(|m| (m.number, m))
        .collect();
    let verdicts = verdicts(folder)?;
    println!("| modules | mutants judged | killed |\n|---|---|---|");
    for group in GROUPS.iter().map(|(group, _)| *group).chain(["by hand"]) {
        let here: Vec<&Verdict> = verdicts
            .iter()
            .filter(|v| mutants[&v.number].group == group)
            .collect();
        let killed = here.iter().filter(|v| v.killer.is_some()).count();
        if !here.is_empty() {
            println!("| {group} | {} | {killed} |", here.len());
        }
    }
    let killed = verdicts.iter().filter(|v| v.killer.is_some()).count();
    println!(
        "| all of {} | {} | {killed} |",
        mutants.len(),
        verdicts.len()
    );
    for verdict in verdicts.iter().filter(|v| v.killer.is_none()) {
        let mutant = &mutants[&verdict.number];
        let reach = if verdict.is_reached {
            ""
        } else {
            " (not reached)"
        };
        println!(
            "survived: {} {}:{} {}{reach}",
            mutant.number, mutant.file, mutant.line, mutant.what
        );
    }
    Ok(())
}
