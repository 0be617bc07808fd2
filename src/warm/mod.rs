//! Kernels made before anybody launches them, many at once, into the cache: an application that starts then compiles and assembles nothing.
//!
//! A [`Manifest`] says which kernels, and for what. An application writes it while it runs ([`LaunchRecord`](crate::runtime::LaunchRecord), or
//! `TILELIFT_RECORD=FILE`), or somebody writes it; `tilelift warm FILE` makes its kernels, and so does [`Warm::run`]:
//!
//! ```
//! # #[cfg(feature = "triton")] {
//! use tilelift::runtime::Manifest;
//! use tilelift::runtime::cache::{Cache, Settings};
//! use tilelift::warm::{Assembler, Warm};
//!
//! let manifest = Manifest::parse("kernels.manifest", r#"
//! program fills python fill.py
//! | import triton, triton.language as tl
//! |
//! | @triton.jit
//! | def fill(x, n, value, BLOCK: tl.constexpr):
//! |     i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
//! |     tl.store(x + i, value, i < n)
//! kernel fills fill "*fp32:16, i32, fp32" BLOCK=1024 target=sm_90a
//! kernel fills fill "*fp32:16, i32:16, fp32" BLOCK=1024 target=sm_90a
//! "#)?;
//! # let folder = tempfile::tempdir()?;
//! # let folder = folder.path();
//! let warm = Warm { assembler: Assembler::None, ..Warm::new(Cache::new(Settings::new(folder))) };
//! let report = warm.run(&manifest, &|row, done| println!("{done} of 2: {}", row.kernel));
//! assert_eq!((report.rows.len(), report.failed()), (2, 0));
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # How
//!
//! [`Warm::jobs`] threads take a kernel each, compile it, have it assembled, and write both to the cache; so memory is that of
//! as many kernels, however long the manifest is. What the cache has already is left alone. One driver assembles one kernel at
//! a time in a process, so each thread has a process for that: [`Assembler`].

mod ptxas;
#[cfg(feature = "cuda")]
mod worker;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::runtime::cache::{Cache, EntryKind, Kept, Origin};
use crate::runtime::{Device, DeviceOptions, Manifest, ManifestEntry, Stopped, key_by_ptxas};
use crate::settings::Target;

#[cfg(feature = "cuda")]
use crate::driver;
#[cfg(feature = "cuda")]
use crate::runtime::{jit_options, key_by_driver};

#[cfg(feature = "tool")]
pub(crate) use self::ptxas::{PtxasError, assemble as assemble_by_ptxas};
#[cfg(all(feature = "tool", feature = "cuda"))]
pub(crate) use self::worker::serve;

/// How long a store that machines share may take nothing before it is given up.
const SHARING: Duration = Duration::from_secs(60);

/// Who makes machine code of PTX.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Assembler {
    /// The driver where there is a GPU of the target, else `ptxas` where it is found, else nobody.
    #[default]
    Found,
    /// The driver of a GPU of the target. What it makes is for GPUs of that name and for drivers of that version.
    Driver,
    /// The program `ptxas`: the path's, or the one that `TILELIFT_PTXAS` names. What it makes is for every GPU of the target's
    /// generation that runs code for it, and such a GPU takes it in place of what its own driver would make.
    Ptxas,
    /// Nobody: PTX alone is made, and the first launch waits for the driver.
    None,
}

/// How kernels of a manifest are made.
#[derive(Clone, Debug)]
pub struct Warm {
    /// Where they go. A cache that is off keeps nothing.
    pub cache: Cache,
    /// What each is compiled for. If empty: what its line says, else the first GPU.
    pub targets: Vec<Target>,
    /// How many are made at once.
    pub jobs: usize,
    /// Who makes machine code.
    pub assembler: Assembler,
    /// The command `tilelift`, built with the feature `cuda`, of which each thread starts a process that has the driver assemble. Without it this
    /// process's driver does, one kernel at a time. A process takes some hundred MB of memory on the host and on the GPU.
    pub worker: Option<PathBuf>,
    /// How long a kernel may be with its assembler, which is stopped then; the driver of this process cannot be.
    pub limit: Duration,
}

/// What became of a kernel of a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct WarmedKernel {
    /// Where the manifest asks for it.
    pub place: String,
    /// Its name.
    pub kernel: String,
    /// What it is compiled for, as the manifest says it.
    pub signature: String,
    /// The target.
    pub target: Option<Target>,
    /// Where its PTX came from.
    pub ptx: Option<Origin>,
    /// Where its machine code came from; none if nobody makes it.
    pub code: Option<Origin>,
    /// Why it is not there.
    pub problem: Option<String>,
    /// How long the compiler took.
    pub compile: Duration,
    /// How long the assembler took.
    pub assemble: Duration,
}

/// What became of a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct WarmReport {
    /// Its kernels, each for each target, in order.
    pub rows: Vec<WarmedKernel>,
    /// Whether what was made, or was there, is where others find it.
    pub kept: Kept,
    /// How long it took.
    pub wall: Duration,
}

impl WarmReport {
    /// How many kernels are not there.
    pub fn failed(&self) -> usize {
        self.rows.iter().filter(|row| row.problem.is_some()).count()
    }
}

impl fmt::Display for WarmReport {
    /// In a line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count =
            |is: &dyn Fn(&WarmedKernel) -> bool| self.rows.iter().filter(|row| is(row)).count();
        let compiled = count(&|row| row.ptx == Some(Origin::Made));
        let assembled = count(&|row| row.code == Some(Origin::Made));
        let without = count(&|row| row.problem.is_none() && row.code.is_none());
        write!(
            f,
            "{} kernel{} in {:.1} s: {compiled} compiled, {assembled} assembled",
            self.rows.len(),
            if self.rows.len() == 1 { "" } else { "s" },
            self.wall.as_secs_f64()
        )?;
        if without > 0 {
            write!(f, ", {without} left to the driver of the GPU")?;
        }
        if self.failed() > 0 {
            write!(f, ", {} failed", self.failed())?;
        }
        match self.kept.shared {
            None => Ok(()),
            Some(there) => {
                let all = self.kept.entries;
                write!(f, "; {there} of {all} entries in the shared cache")
            }
        }
    }
}

/// Who assembles for a target.
enum ChosenAssembler {
    Ptxas,
    #[cfg(feature = "cuda")]
    Driver(Box<driver::Device>),
    Nobody,
}

/// A target: what compiles for it, and what assembles.
struct TargetSetup {
    device: Device,
    assembler: Result<ChosenAssembler, String>,
}

/// What a thread keeps from one kernel to the next.
#[derive(Default)]
struct ThreadState {
    #[cfg(feature = "cuda")]
    worker: Option<(u32, worker::Worker)>,
}

/// What goes wrong while machine code is made.
struct Trouble(String);

impl From<Stopped> for Trouble {
    fn from(stopped: Stopped) -> Trouble {
        Trouble(stopped.to_string())
    }
}

impl Warm {
    /// On all cores, for what the manifest says, and ten minutes for each kernel.
    pub fn new(cache: Cache) -> Warm {
        Warm {
            cache,
            targets: Vec::new(),
            jobs: std::thread::available_parallelism().map_or(1, usize::from),
            assembler: Assembler::Found,
            worker: None,
            limit: Duration::from_secs(600),
        }
    }

    /// Makes every kernel. `on_done` is called as each is done, with their number so far, by the thread that made it. Then a store that
    /// machines share is given what it lacks of them; one that fails is tried for a minute.
    pub fn run(
        &self,
        manifest: &Manifest,
        on_done: &(dyn Fn(&WarmedKernel, usize) + Sync),
    ) -> WarmReport {
        self.run_all(std::slice::from_ref(manifest), on_done)
    }

    /// [`Warm::run`] of several manifests, one behind the other.
    pub(crate) fn run_all(
        &self,
        manifests: &[Manifest],
        on_done: &(dyn Fn(&WarmedKernel, usize) + Sync),
    ) -> WarmReport {
        let clock = Instant::now();
        ptxas::remove_old_scratch(&std::env::temp_dir());
        let tracked = Warm {
            cache: self.cache.tracked(),
            ..self.clone()
        };
        let done = AtomicUsize::new(0);
        let rows = manifests
            .iter()
            .flat_map(|manifest| tracked.make_all(manifest, &done, on_done))
            .collect();
        let kept = tracked.cache.settle(SHARING);
        WarmReport {
            rows,
            kept,
            wall: clock.elapsed(),
        }
    }

    fn make_all(
        &self,
        manifest: &Manifest,
        done: &AtomicUsize,
        on_done: &(dyn Fn(&WarmedKernel, usize) + Sync),
    ) -> Vec<WarmedKernel> {
        let mut setups: Vec<(Target, TargetSetup)> = Vec::new();
        let mut jobs: Vec<(&ManifestEntry, Option<usize>)> = Vec::new();
        for entry in manifest.entries() {
            let asked: Vec<Option<Target>> = match self.targets.is_empty() {
                true => vec![entry.target.or_else(first_gpu)],
                false => self.targets.iter().copied().map(Some).collect(),
            };
            for target in asked {
                let at = target.map(|target| {
                    let known = setups.iter().position(|(known, _)| *known == target);
                    known.unwrap_or_else(|| {
                        setups.push((target, self.set_up(target)));
                        setups.len() - 1
                    })
                });
                jobs.push((entry, at));
            }
        }
        let next = AtomicUsize::new(0);
        let rows: Mutex<Vec<Option<WarmedKernel>>> = Mutex::new(vec![None; jobs.len()]);
        let work = || {
            let mut state = ThreadState::default();
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(&(entry, setup)) = jobs.get(at) else {
                    return;
                };
                let row = self.make(entry, setup.map(|at| &setups[at].1), &mut state);
                on_done(&row, 1 + done.fetch_add(1, Ordering::Relaxed));
                rows.lock().unwrap_or_else(PoisonError::into_inner)[at] = Some(row);
            }
        };
        std::thread::scope(|scope| {
            // The last is this one, so that it works where there can be no more threads.
            for _ in 1..self.jobs.clamp(1, jobs.len().max(1)) {
                let _ = std::thread::Builder::new().spawn_scoped(scope, work);
            }
            work();
        });
        let rows = rows.into_inner().unwrap_or_else(PoisonError::into_inner);
        rows.into_iter().flatten().collect()
    }

    fn set_up(&self, target: Target) -> TargetSetup {
        let device = Device::emulator_with(DeviceOptions {
            cache: self.cache.clone(),
            target: Some(target),
            ..DeviceOptions::plain()
        });
        TargetSetup {
            device,
            assembler: self.choose_assembler(target),
        }
    }

    /// Who assembles for a target.
    fn choose_assembler(&self, target: Target) -> Result<ChosenAssembler, String> {
        match self.assembler {
            Assembler::None => Ok(ChosenAssembler::Nobody),
            Assembler::Ptxas => Ok(ChosenAssembler::Ptxas),
            Assembler::Driver => driver_of(target),
            Assembler::Found => match driver_of(target) {
                Ok(driver) => Ok(driver),
                Err(_) if ptxas::is_there() => Ok(ChosenAssembler::Ptxas),
                Err(_) => Ok(ChosenAssembler::Nobody),
            },
        }
    }

    /// Makes a kernel for a target; none if nothing says for which.
    fn make(
        &self,
        entry: &ManifestEntry,
        setup: Option<&TargetSetup>,
        state: &mut ThreadState,
    ) -> WarmedKernel {
        let mut row = WarmedKernel {
            place: entry.place.clone(),
            kernel: entry.kernel().to_owned(),
            signature: entry.signature(),
            target: setup.map(|setup| setup.device.target()),
            ptx: None,
            code: None,
            problem: None,
            compile: Duration::ZERO,
            assemble: Duration::ZERO,
        };
        // The compiler's own panics are errors already; this is for the rest of the way.
        let fill = || self.fill(entry, setup, state, &mut row);
        let filled = catch_unwind(AssertUnwindSafe(fill));
        row.problem = filled
            .unwrap_or_else(|_| Err("a panic while the kernel was made".to_owned()))
            .err();
        row
    }

    fn fill(
        &self,
        entry: &ManifestEntry,
        setup: Option<&TargetSetup>,
        state: &mut ThreadState,
        row: &mut WarmedKernel,
    ) -> Result<(), String> {
        let setup = setup
            .ok_or("nothing says what it is compiled for: there is no GPU, and neither the line nor the caller names a target")?;
        let made = entry.make(&setup.device)?;
        row.ptx = Some(made.origin);
        row.compile = made.timing.lower + made.timing.compile;
        let (ptx, lines) = (made.stored.ptx.as_str(), made.lines);
        let key = match setup.assembler.as_ref().map_err(String::clone)? {
            ChosenAssembler::Nobody => return Ok(()),
            ChosenAssembler::Ptxas => key_by_ptxas(ptx, lines),
            #[cfg(feature = "cuda")]
            ChosenAssembler::Driver(device) => key_by_driver(ptx, device, lines),
        };
        let mut took = Duration::ZERO;
        let found = self
            .cache
            .get_or_make(EntryKind::Cubin, &key, &Default::default(), || {
                let clock = Instant::now();
                let code = self.assemble(setup, ptx, made.stored.meta.target, lines, state);
                took = clock.elapsed();
                code.map_err(Trouble)
            });
        row.assemble = took;
        let (_, origin) = found.map_err(|Trouble(problem)| problem)?;
        row.code = Some(origin);
        Ok(())
    }

    #[cfg_attr(
        not(feature = "cuda"),
        expect(unused_variables, reason = "only drivers have workers")
    )]
    fn assemble(
        &self,
        setup: &TargetSetup,
        ptx: &str,
        target: Target,
        lines: bool,
        state: &mut ThreadState,
    ) -> Result<Vec<u8>, String> {
        match &setup.assembler {
            #[cfg(feature = "cuda")]
            Ok(ChosenAssembler::Driver(device)) => {
                self.assemble_by_driver(device, ptx, lines, state)
            }
            _ => ptxas::assemble(ptx, target, lines, Some(self.limit))
                .map_err(|error| error.to_string()),
        }
    }

    #[cfg(feature = "cuda")]
    fn assemble_by_driver(
        &self,
        device: &driver::Device,
        ptx: &str,
        lines: bool,
        state: &mut ThreadState,
    ) -> Result<Vec<u8>, String> {
        let Some(program) = &self.worker else {
            let context = driver::Context::new(device);
            let code = context.and_then(|c| driver::assemble(&c, ptx, &jit_options(lines)));
            return code
                .map(|code| code.bytes)
                .map_err(|error| error.to_string());
        };
        let (_, worker) = match &mut state.worker {
            Some(known) if known.0 == device.ordinal => known,
            other => {
                let started = worker::Worker::start(program, device.ordinal);
                let started = started.map_err(|error| format!("{}: {error}", program.display()))?;
                other.insert((device.ordinal, started))
            }
        };
        match worker.assemble(ptx, lines, self.limit) {
            Ok(code) => code,
            Err(problem) => {
                // The next kernel has another one.
                state.worker = None;
                Err(problem)
            }
        }
    }
}

/// What the first GPU takes.
#[cfg(feature = "cuda")]
fn first_gpu() -> Option<Target> {
    let is = driver::Device::get(0).ok()?.capability;
    Target::for_device(is.major, is.minor)
}

#[cfg(not(feature = "cuda"))]
fn first_gpu() -> Option<Target> {
    None
}

/// The driver of a GPU which kernels for this target are compiled for.
#[cfg(feature = "cuda")]
fn driver_of(target: Target) -> Result<ChosenAssembler, String> {
    let devices = driver::Device::all().map_err(|error| error.to_string())?;
    let is_it = |device: &driver::Device| {
        Target::for_device(device.capability.major, device.capability.minor) == Some(target)
    };
    match devices.into_iter().find(is_it) {
        Some(device) => Ok(ChosenAssembler::Driver(Box::new(device))),
        None => Err(format!("no GPU here is one that {target} is the target of")),
    }
}

#[cfg(not(feature = "cuda"))]
fn driver_of(_target: Target) -> Result<ChosenAssembler, String> {
    Err("the driver needs the feature `cuda`".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::cache::{Folder, Secret, Settings, Shared};

    #[test]
    fn reports_count_what_was_made_left_and_missed() {
        let row = |ptx, code, problem: Option<&str>| WarmedKernel {
            place: String::new(),
            kernel: String::new(),
            signature: String::new(),
            target: None,
            ptx,
            code,
            problem: problem.map(str::to_owned),
            compile: Duration::ZERO,
            assemble: Duration::ZERO,
        };
        let (made, disk) = (Some(Origin::Made), Some(Origin::Disk));
        let mut report = WarmReport {
            rows: vec![
                row(made, made, None),
                row(made, made, None),
                row(made, disk, None),
                row(disk, made, None),
            ],
            kept: Kept::default(),
            wall: Duration::from_millis(1250),
        };
        assert_eq!(
            report.to_string(),
            "4 kernels in 1.2 s: 3 compiled, 3 assembled"
        );
        report.rows.push(row(disk, None, None));
        let left = "5 kernels in 1.2 s: 3 compiled, 3 assembled, 1 left to the driver of the GPU";
        assert_eq!(report.to_string(), left);
        // What was not compiled is left to nobody.
        report.rows.push(row(None, None, Some("refused")));
        let failed = left.replacen('5', "6", 1) + ", 1 failed";
        assert_eq!(report.to_string(), failed);
        assert_eq!(report.failed(), 1);
        (report.kept.entries, report.kept.shared) = (18, Some(17));
        let shared = failed + "; 17 of 18 entries in the shared cache";
        assert_eq!(report.to_string(), shared);
    }

    #[test]
    fn a_shared_store_has_all_that_is_warmed() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let (local, mounted) = (folder.path().join("local"), folder.path().join("mounted"));
        let text = "program k tir k.tir
| kernel @put(v0 \"x\": ptr<f32>) warps(4) {
| block0:
|     v1 = const {value = 1.0} : f32
|     store v0, v1
|     return
| }
kernel k put \"*fp32:16\" target=sm_80
kernel k put \"*fp32:16\" target=sm_90
";
        let manifest = Manifest::parse("m", text).expect("it can be read");
        let run = || {
            let shared = Shared::new(Folder::new(&mounted), Secret::new([1; 32]));
            let warm = Warm {
                assembler: Assembler::None,
                ..Warm::new(Cache::new(Settings {
                    shared: Some(shared),
                    ..Settings::new(&local)
                }))
            };
            warm.run(&manifest, &|_, _| {})
        };
        let first = run();
        assert_eq!(first.failed(), 0, "{first:?}");
        let entries = first.kept.entries;
        assert!(entries >= 2, "{first:?}");
        let whole = (entries, entries, Some(entries));
        let of = |report: &WarmReport| (report.kept.entries, report.kept.local, report.kept.shared);
        assert_eq!(of(&first), whole);
        let in_store = || Cache::new(Settings::new(&mounted)).entries().len();
        assert_eq!(in_store(), entries);
        // What is here already and is not there is brought.
        std::fs::remove_dir_all(&mounted).expect("it was made");
        assert_eq!(of(&run()), whole);
        assert_eq!(in_store(), entries);
    }
}
