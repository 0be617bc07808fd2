//! Runs tests of the planted copy, once to see which mutants they reach, then against each mutant until one fails.
//!
//! Tests run in small groups, few processes at a time, so that most mutants cost a second. A group with a mutant on may use
//! some times the processor time that it uses without: what uses more is a loop that does not end. The clock decides
//! nothing, as the machine may have other work: a process that gets nowhere leaves its mutant undecided.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::plant::Mutant;
use crate::{BY_HAND, GROUPS};

/// Tests of one program that run together, and what their first run found: a line of `tasks.jsonl`.
#[derive(Serialize, Deserialize)]
struct Task {
    /// The program, and the first two parts of the tests' names.
    name: String,
    path: PathBuf,
    tests: Vec<String>,
    /// Processor time.
    seconds: f64,
    reaches: BTreeSet<usize>,
}

/// A task with a mutant on: a line of `runs.jsonl`.
#[derive(Serialize, Deserialize)]
struct Run {
    mutant: usize,
    task: String,
    end: End,
}

#[derive(Serialize, Deserialize)]
enum End {
    Passed,
    /// This test failed.
    Failed(String),
    /// The process ended by a signal or with an error of its own.
    Died,
    /// It used up its processor time.
    OutOfTime,
    /// It neither ended nor used up its time.
    Undecided,
}

impl End {
    fn is_kill(&self) -> bool {
        matches!(self, Self::Failed(_) | Self::Died | Self::OutOfTime)
    }
}

/// What a run is given.
struct Limits {
    /// Processor time, in seconds.
    own: f64,
    /// Time of day, in seconds.
    clock: f64,
}

pub(crate) fn run(folder: &Path, most: usize, jobs: usize) -> Result<()> {
    let folder = &folder.canonicalize()?;
    let mut mutants: Vec<Mutant> = mutants(folder)?;
    mutants.sort_by_key(|mutant| (mutant.group != BY_HAND, mutant.number));
    let programs = programs(folder)?;
    let runs: Mutex<Vec<Run>> = Mutex::new(lines(&folder.join("runs.jsonl"))?);
    // Most mutants need none but the first of these.
    let near = [
        "lib ",
        "fuzz ",
        "emulator ",
        "compiler filetests::",
        "compiler times::",
        "compiler dots::",
        "compiler pipelines::",
        "runtime ",
    ];
    // Takes as long as half of the others together.
    let slow = "compiler filetests::run";
    let is_near = |task: &Task| {
        let begins = |name: &&str| task.name.starts_with(*name);
        task.name != slow && near.iter().any(begins)
    };
    let (near, far): (Vec<Task>, Vec<Task>) = programs.into_iter().partition(is_near);
    let stages = if most == usize::MAX {
        vec![near, far]
    } else {
        vec![near]
    };
    for stage in stages {
        let stage = measured(folder, stage, jobs)?;
        in_turns(jobs, &mutants, |_, mutant| {
            judge(folder, &stage, mutant, most, &runs)
        })?;
    }
    report(folder)
}

/// Does something with each of these, so many at a time; the first argument is the number of the one that does it.
fn in_turns<T: Sync>(
    jobs: usize,
    all: &[T],
    work: impl Fn(usize, &T) -> Result<()> + Sync,
) -> Result<()> {
    let next = AtomicUsize::new(0);
    let worker = |number: usize| -> Result<()> {
        while let Some(one) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
            work(number, one)?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let worker = &worker;
        let workers: Vec<_> = (0..jobs.max(1))
            .map(|number| scope.spawn(move || worker(number)))
            .collect();
        let mut ends = workers.into_iter();
        ends.try_for_each(|worker| worker.join().expect("no panic"))
    })
}

/// Runs the tasks that reach a mutant until one fails, the mutant's own module's tests first and then those that found most
/// for their time so far.
fn judge(
    folder: &Path,
    tasks: &[Task],
    mutant: &Mutant,
    most: usize,
    runs: &Mutex<Vec<Run>>,
) -> Result<()> {
    let module = mutant
        .file
        .trim_start_matches("src/")
        .trim_end_matches(".rs");
    let module: Vec<&str> = module.split('/').take(2).collect();
    let own = format!("lib {}", module.join("::"));
    let reaching = tasks
        .iter()
        .filter(|task| task.reaches.contains(&mutant.number));
    let mut tasks: Vec<(bool, f64, &Task)> = {
        let runs = lock(runs);
        let cost = |task: &Task| {
            let of_task = runs.iter().filter(|run| run.task == task.name);
            let kills = of_task.clone().filter(|run| run.end.is_kill()).count();
            (task.seconds + 0.5) * (of_task.count() + 2) as f64 / (kills + 1) as f64
        };
        reaching
            .map(|task| (!task.name.starts_with(&own), cost(task), task))
            .collect()
    };
    tasks.sort_by(|a, b| {
        (a.0, a.1)
            .partial_cmp(&(b.0, b.1))
            .expect("costs are numbers")
    });
    for (_, _, task) in tasks.into_iter().take(most) {
        let is_done = lock(runs)
            .iter()
            .filter(|run| run.mutant == mutant.number)
            .any(|run| run.end.is_kill() || run.task == task.name);
        if is_done {
            continue;
        }
        let limits = Limits {
            own: 10.0 + 4.0 * task.seconds,
            clock: 300.0 + 40.0 * task.seconds,
        };
        let number = mutant.number.to_string();
        let (end, _) = start(folder, task, ("MUTANT", &number), &limits)?;
        let run = Run {
            mutant: mutant.number,
            task: task.name.clone(),
            end,
        };
        let mut runs = lock(runs);
        append(&folder.join("runs.jsonl"), &run)?;
        if run.end.is_kill() {
            let Mutant {
                number,
                file,
                line,
                what,
                ..
            } = mutant;
            let by = match &run.end {
                End::Failed(test) => test,
                End::OutOfTime => "time",
                _ => "its end",
            };
            println!("{number} {file}:{line} {what}: {} {by}", task.name);
        }
        runs.push(run);
    }
    Ok(())
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().expect("no panic")
}

/// The tasks with what their first runs find.
fn measured(folder: &Path, tasks: Vec<Task>, jobs: usize) -> Result<Vec<Task>> {
    let kept = folder.join("tasks.jsonl");
    let mut known: BTreeMap<String, Task> = lines(&kept)?
        .into_iter()
        .map(|task: Task| (task.name.clone(), task))
        .collect();
    let (mut measured, mut new) = (Vec::new(), Vec::new());
    for task in tasks {
        match known.remove(&task.name) {
            Some(task) => measured.push(task),
            None => new.push(task),
        }
    }
    let measured = Mutex::new(measured);
    in_turns(jobs, &new, |worker, task| {
        let task = measure(folder, task, worker)?;
        let (tests, reaches) = (task.tests.len(), task.reaches.len());
        println!(
            "{}: {tests} tests, {:.1} s, {reaches} mutants",
            task.name, task.seconds
        );
        let mut measured = lock(&measured);
        append(&kept, &task)?;
        measured.push(task);
        Ok(())
    })?;
    Ok(measured.into_inner().expect("no panic"))
}

/// A task with what its first run finds.
fn measure(folder: &Path, task: &Task, worker: usize) -> Result<Task> {
    let mut task = Task {
        name: task.name.clone(),
        path: task.path.clone(),
        tests: task.tests.clone(),
        seconds: 0.0,
        reaches: BTreeSet::new(),
    };
    let trace = folder.join(format!("trace-{worker}"));
    let limits = Limits {
        own: 3600.0,
        clock: 4.0 * 3600.0,
    };
    File::create(&trace)?;
    while !task.tests.is_empty() {
        File::create(&trace)?;
        let shown = trace.display().to_string();
        let (end, seconds) = start(folder, &task, ("MUTANT_TRACE", &shown), &limits)?;
        task.seconds = seconds;
        // Figures and file lists of the sources are not for a copy that was changed.
        match end {
            End::Passed => break,
            End::Failed(test) => {
                println!("left out, as it fails without a mutant: {test}");
                task.tests.retain(|other| *other != test);
            }
            _ => {
                println!("left out, as it ends without a mutant: {}", task.name);
                task.tests.clear();
            }
        }
    }
    let text = fs::read_to_string(&trace).unwrap_or_default();
    task.reaches = text.lines().filter_map(|line| line.parse().ok()).collect();
    Ok(task)
}

/// Runs tests one after the other until one fails; gives the processor time, too.
fn start(folder: &Path, task: &Task, var: (&str, &str), limits: &Limits) -> Result<(End, f64)> {
    if task.tests.is_empty() {
        return Ok((End::Passed, 0.0));
    }
    // 16 GiB of addresses: a mutant that allocates without end must not take the machine's memory.
    let limited = "ulimit -t $1; ulimit -v 16777216; ulimit -c 0; shift; exec \"$@\"";
    let mut child = Command::new("sh")
        .args(["-c", limited, "sh", &(limits.own.ceil() as u64).to_string()])
        .arg(&task.path)
        .args(["--test-threads=1", "--exact"])
        .args(&task.tests)
        .env(var.0, var.1)
        .current_dir(folder.join("tree"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .with_context(|| task.path.display().to_string())?;
    let out = child.stdout.take().expect("it is piped");
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(out).lines().map_while(Result::ok) {
            let test = line.strip_suffix(" ... FAILED");
            if let Some(test) = test.and_then(|test| test.strip_prefix("test ")) {
                let test = test.trim_end_matches(" - should panic").to_owned();
                // Nobody waits any more for the second.
                let _ = sender.send(test);
            }
        }
    });
    let first = receiver.recv_timeout(Duration::from_secs_f64(limits.clock));
    if !matches!(first, Err(RecvTimeoutError::Disconnected)) {
        // With whatever it started itself.
        let group = format!("kill -9 -{}", child.id());
        Command::new("sh").args(["-c", &group]).status()?;
    }
    let seconds = time_of(child.id());
    let status = child.wait()?;
    // SIGXCPU is 24.
    let end = match first {
        Ok(test) => End::Failed(test),
        Err(RecvTimeoutError::Timeout) => End::Undecided,
        Err(RecvTimeoutError::Disconnected) if status.success() => End::Passed,
        Err(RecvTimeoutError::Disconnected) if status.signal() == Some(24) => End::OutOfTime,
        Err(RecvTimeoutError::Disconnected) => End::Died,
    };
    Ok((end, seconds))
}

/// Processor time of a process that has ended, and of those that it waited for, in seconds: it is known until it is waited for itself.
fn time_of(process: u32) -> f64 {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let fields = text.rsplit(") ").next().unwrap_or_default().split(' ');
    // The fields `utime`, `stime`, `cutime` and `cstime`, in hundredths.
    let ticks: u64 = fields.skip(11).take(4).flat_map(str::parse::<u64>).sum();
    ticks as f64 / 100.0
}

/// Builds the test programs and lists their tests, those of a module together.
fn programs(folder: &Path) -> Result<Vec<Task>> {
    let out = Command::new("cargo")
        .args(["test", "--no-run", "--lib", "--bins", "--tests"])
        .arg("--message-format=json")
        .env("RUSTFLAGS", "--cap-lints=warn")
        .env("CARGO_INCREMENTAL", "0")
        .env("CARGO_PROFILE_DEV_DEBUG", "0")
        .stderr(Stdio::inherit())
        .current_dir(folder.join("tree"))
        .output()?;
    ensure!(out.status.success(), "the tests of the copy do not build");
    let mut tasks = BTreeMap::new();
    for line in String::from_utf8_lossy(&out.stdout).lines() {
        let value: serde_json::Value = serde_json::from_str(line)?;
        let is_test = value["profile"]["test"] == true;
        let (Some(path), true) = (value["executable"].as_str(), is_test) else {
            continue;
        };
        let program = match value["target"]["kind"][0].as_str() {
            Some(kind @ ("lib" | "bin")) => kind,
            _ => value["target"]["name"].as_str().unwrap_or(path),
        };
        let list = Command::new(path)
            .args(["--list", "--format=terse"])
            .current_dir(folder.join("tree"))
            .output()?;
        for test in String::from_utf8_lossy(&list.stdout).lines() {
            let Some(test) = test.strip_suffix(": test") else {
                continue;
            };
            let parts: Vec<&str> = test.split("::").take(2).collect();
            let name = format!("{program} {}", parts.join("::"));
            let task = tasks.entry(name.clone()).or_insert_with(|| Task {
                name,
                path: path.into(),
                tests: Vec::new(),
                seconds: 0.0,
                reaches: BTreeSet::new(),
            });
            task.tests.push(test.to_owned());
        }
    }
    Ok(tasks.into_values().collect())
}

fn mutants(folder: &Path) -> Result<Vec<Mutant>> {
    let text = fs::read_to_string(folder.join("mutants.json")).context("first `plant`")?;
    Ok(serde_json::from_str(&text)?)
}

fn lines<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines()
        .map(|line| Ok(serde_json::from_str(line)?))
        .collect()
}

fn append<T: Serialize>(path: &Path, line: &T) -> Result<()> {
    let mut file = OpenOptions::new().append(true).create(true).open(path)?;
    file.write_all((serde_json::to_string(line)? + "\n").as_bytes())?;
    Ok(())
}

pub(crate) fn report(folder: &Path) -> Result<()> {
    let mutants = mutants(folder)?;
    let runs: Vec<Run> = lines(&folder.join("runs.jsonl"))?;
    let tasks: Vec<Task> = lines(&folder.join("tasks.jsonl"))?;
    let of = |mutant: &Mutant| {
        let number = mutant.number;
        runs.iter().filter(move |run| run.mutant == number)
    };
    let counts = |group: &dyn Fn(&Mutant) -> bool| {
        let here: Vec<&Mutant> = mutants.iter().filter(|m| group(m)).collect();
        let with = |what: fn(&End) -> bool| {
            let has = |m: &&&Mutant| of(m).any(|run| what(&run.end));
            here.iter().filter(has).count()
        };
        let (killed, late) = (
            with(End::is_kill),
            with(|end| matches!(end, End::OutOfTime)),
        );
        format!("{} | {killed} | {late}", here.len())
    };
    println!("| modules | mutants | killed | of these by time |\n|---|---|---|---|");
    for group in GROUPS.iter().map(|(group, _)| *group) {
        if mutants.iter().all(|m| m.group != group) {
            continue;
        }
        println!("| {group} | {} |", counts(&|m| m.group == group));
    }
    println!("| all sampled | {} |", counts(&|m| m.group != BY_HAND));
    println!("| {BY_HAND} | {} |", counts(&|m| m.group == BY_HAND));
    for mutant in &mutants {
        if of(mutant).any(|run| run.end.is_kill()) {
            continue;
        }
        let undecided = of(mutant).filter(|run| matches!(run.end, End::Undecided));
        let reaching = tasks.iter().filter(|t| t.reaches.contains(&mutant.number));
        println!(
            "alive: {} {}:{} {}: {} of {} groups of tests that reach it have run, {} of these undecided",
            mutant.number,
            mutant.file,
            mutant.line,
            mutant.what,
            of(mutant).count(),
            reaching.count(),
            undecided.count()
        );
    }
    Ok(())
}
