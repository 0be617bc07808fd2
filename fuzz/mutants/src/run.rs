//! Runs tests of the planted copy, once to see which mutants they reach, then against each mutant until one fails.
//!
//! Tests run in small groups, few processes at a time, so that most mutants cost a second. A group with a mutant on may use
//! some times the processor time that it uses without: what uses more is a loop that does not end. The clock decides
//! nothing, as the machine may have other work: a process that gets nowhere leaves its mutant undecided. A group that fails
//! for the first time runs once more without a mutant, as it may do so for another reason: on another machine, say.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use anyhow::{Context, Result};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::plant::Mutant;
use crate::{BY_HAND, GROUPS, programs};

/// Tests of one program that run together, and what their first run found: a line of `tasks.jsonl`.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Task {
    /// The program, and the first two parts of the tests' names; or a file test.
    pub(crate) name: String,
    /// In `FOLDER/programs`.
    pub(crate) program: String,
    /// What it is called with, where that is no list of tests.
    pub(crate) args: Vec<String>,
    pub(crate) tests: Vec<String>,
    /// Processor time.
    pub(crate) seconds: f64,
    pub(crate) reaches: BTreeSet<usize>,
}

/// A task with a mutant on: a line of `runs.jsonl`.
#[derive(Serialize, Deserialize)]
struct Run {
    mutant: usize,
    task: String,
    end: End,
    /// Processor time.
    seconds: f64,
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

/// Where a process runs.
struct Place<'a> {
    folder: &'a Path,
    /// Which of those that run at a time: each has a folder of its own for what it leaves.
    worker: usize,
}

/// Tests that fail without a mutant, for each task that has run without one; all, where it cannot run.
type Faulty = BTreeMap<String, Option<BTreeSet<String>>>;

/// Runs the tests against each mutant, for so many seconds of processor time each at most, so many processes at a time.
pub(crate) fn run(folder: &Path, most: f64, jobs: usize) -> Result<()> {
    let folder = &folder.canonicalize()?;
    let mut mutants: Vec<Mutant> = mutants(folder)?;
    mutants.sort_by_key(|mutant| (mutant.group != BY_HAND, mutant.number));
    let programs = programs(folder)?;
    let runs: Mutex<Vec<Run>> = Mutex::new(lines(&folder.join("runs.jsonl"))?);
    let tasks = measured(folder, programs, jobs)?;
    let faulty = Mutex::new(BTreeMap::new());
    in_turns(jobs, &mutants, |worker, mutant| {
        let place = Place { folder, worker };
        judge(&place, &tasks, mutant, most, &runs, &faulty)
    })?;
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
    place: &Place,
    tasks: &[Task],
    mutant: &Mutant,
    most: f64,
    runs: &Mutex<Vec<Run>>,
    faulty: &Mutex<Faulty>,
) -> Result<()> {
    let module = mutant
        .file
        .trim_start_matches("src/")
        .trim_end_matches(".rs");
    let module: Vec<&str> = module.split('/').take(2).collect();
    let own = format!("lib {}", module.join("::"));
    let mut spent = 0.0;
    let mut tasks: Vec<(bool, f64, &Task)> = {
        let runs = lock(runs);
        // How often each task has run, and has found something.
        let mut counts: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        let mut done = BTreeSet::new();
        for run in runs.iter() {
            let (all, kills) = counts.entry(&run.task).or_default();
            *all += 1;
            *kills += usize::from(run.end.is_kill());
            if run.mutant == mutant.number {
                if run.end.is_kill() {
                    return Ok(());
                }
                spent += run.seconds;
                done.insert(&*run.task);
            }
        }
        let cost = |task: &Task| {
            let (all, kills) = counts.get(&*task.name).copied().unwrap_or_default();
            (task.seconds + 0.1) * (all + 2) as f64 / (kills + 1) as f64
        };
        tasks
            .iter()
            .filter(|task| task.reaches.contains(&mutant.number) && !done.contains(&*task.name))
            .map(|task| (!task.name.starts_with(&own), cost(task), task))
            .collect()
    };
    tasks.sort_by(|a, b| {
        (a.0, a.1)
            .partial_cmp(&(b.0, b.1))
            .expect("costs are numbers")
    });
    for (_, _, task) in tasks {
        if spent >= most {
            return Ok(());
        }
        let (end, seconds) = against(place, task, mutant, faulty)?;
        spent += seconds;
        let run = Run {
            mutant: mutant.number,
            task: task.name.clone(),
            end,
            seconds,
        };
        let mut runs = lock(runs);
        append(&place.folder.join("runs.jsonl"), &run)?;
        let is_kill = run.end.is_kill();
        if is_kill {
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
        if is_kill {
            return Ok(());
        }
    }
    Ok(())
}

/// Runs a task with a mutant on, without the tests that fail here anyhow.
fn against(
    place: &Place,
    task: &Task,
    mutant: &Mutant,
    faulty: &Mutex<Faulty>,
) -> Result<(End, f64)> {
    let limits = Limits {
        own: 10.0 + 4.0 * task.seconds,
        clock: 60.0 + 20.0 * task.seconds,
    };
    let number = mutant.number.to_string();
    let mut spent = 0.0;
    loop {
        let known = lock(faulty).get(&task.name).cloned();
        let without = match &known {
            Some(None) => return Ok((End::Passed, spent)),
            Some(Some(tests)) => tests.clone(),
            None => BTreeSet::new(),
        };
        let (end, seconds) = start(place, task, &without, ("MUTANT", &number), &limits)?;
        spent += seconds;
        if !end.is_kill() || known.is_some() {
            return Ok((end, spent));
        }
        let mut without = BTreeSet::new();
        let without = loop {
            match start(place, task, &without, ("MUTANT", "0"), &limits)?.0 {
                End::Passed => break Some(without),
                End::Failed(test) => {
                    println!("left out, as it fails here: {test}");
                    without.insert(test);
                }
                _ => {
                    println!("left out, as it ends here: {}", task.name);
                    break None;
                }
            }
        };
        let is_usual = without.as_ref().is_some_and(BTreeSet::is_empty);
        lock(faulty).insert(task.name.clone(), without);
        if is_usual {
            return Ok((end, spent));
        }
    }
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
        let task = measure(&Place { folder, worker }, task)?;
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
fn measure(place: &Place, task: &Task) -> Result<Task> {
    let mut task = task.clone();
    let trace = place.folder.join(format!("trace-{}", place.worker));
    let limits = Limits {
        own: 3600.0,
        clock: 4.0 * 3600.0,
    };
    loop {
        File::create(&trace)?;
        let shown = trace.display().to_string();
        let none = BTreeSet::new();
        let (end, seconds) = start(place, &task, &none, ("MUTANT_TRACE", &shown), &limits)?;
        task.seconds = seconds;
        // Figures and file lists of the sources are not for a copy that was changed.
        match end {
            End::Passed => break,
            End::Failed(test) if task.tests.len() > 1 => {
                println!("left out, as it fails without a mutant: {test}");
                task.tests.retain(|other| *other != test);
            }
            _ => {
                println!("left out, as it fails without a mutant: {}", task.name);
                File::create(&trace)?;
                break;
            }
        }
    }
    let text = fs::read_to_string(&trace).unwrap_or_default();
    task.reaches = text.lines().filter_map(|line| line.parse().ok()).collect();
    Ok(task)
}

/// Runs tests one after the other until one fails; gives the processor time, too.
fn start(
    place: &Place,
    task: &Task,
    without: &BTreeSet<String>,
    var: (&str, &str),
    limits: &Limits,
) -> Result<(End, f64)> {
    let mut args = task.args.clone();
    if args.is_empty() {
        let tests = task.tests.iter().filter(|test| !without.contains(*test));
        args = tests.cloned().collect();
        if args.is_empty() {
            return Ok((End::Passed, 0.0));
        }
        args.extend(["--test-threads=1", "--exact"].map(str::to_owned));
    }
    let scratch = place.folder.join(format!("scratch-{}", place.worker));
    // What a process that was killed left there, or a mutant, must not meet the next.
    let _ = fs::remove_dir_all(&scratch);
    fs::create_dir_all(&scratch)?;
    // 16 GiB of addresses: a mutant that allocates without end must not take the machine's memory.
    let limited = "ulimit -t $1; ulimit -v 16777216; ulimit -c 0; shift; exec \"$@\"";
    let programs = place.folder.join("programs");
    let mut child = Command::new("sh")
        .args(["-c", limited, "sh", &(limits.own.ceil() as u64).to_string()])
        .arg(programs.join(&task.program))
        .args(&args)
        .env(var.0, var.1)
        .env("TMPDIR", &scratch)
        .env("TILELIFT_CACHE_DIR", scratch.join("cache"))
        .env("RUSTC", programs.join("rustc"))
        .env_remove("RUST_BACKTRACE")
        // The stand-in for the driver is all the GPU that there is.
        .env("CUDA_VISIBLE_DEVICES", "")
        .current_dir(place.folder.join("tree"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .with_context(|| task.name.clone())?;
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

/// What `build` listed; it is asked for where nothing is listed yet.
fn programs(folder: &Path) -> Result<Vec<Task>> {
    let list = folder.join("programs.json");
    if !list.exists() {
        programs::build(folder)?;
    }
    Ok(serde_json::from_str(&fs::read_to_string(list)?)?)
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
