//! The autotuner: the best of several set-ups of a kernel, found by trying them.
//!
//! ```text
//!   configurations --prune, predicted resources--> compiled in the background --> timed --> the best
//!                                                                                  |
//!                                             results on disk, a line each <-------+
//! ```
//!
//! - **Skipped**: what a pruning hook refuses, what does not compile, what cannot fit the device by what the compiler
//!   predicts. Each with its reason, none stops the others.
//! - **Left out** on request ([`Tuner::top`]): what the model of time expects to be slower than so many others.
//! - **Timed** on a GPU by events, after the cache of the device was flushed, until the time for a configuration is used
//!   up. One that is slower than the best so far by [`Measure::hopeless`] after a few launches is not timed further.
//! - **Without a GPU** the cost is what the emulator counts (instructions and memory sectors), or what a function of the
//!   caller says.
//! - **Kept**: each result is written to the kernel cache's folder when it is known. A process that is stopped and started
//!   again goes on where it was, and a second one with the same kernel, device, classes and key measures nothing.
//! - **From the file**: `Program::tuner` makes a tuner of a kernel's `@triton.autotune`
//!   and `@triton.heuristics`, and `Device::autotuned` a kernel that tunes itself.
//! - **Chosen**: the lowest cost; all within [`Measure::tie`] of it count as equal, and of these the first in the list is
//!   taken, so that noise does not decide between equals.
//!
//! ```
//! # #[cfg(feature = "triton")] {
//! use tilelift::runtime::{Buffer, Constants, Device, Program};
//! use tilelift::tune::{Config, Tuner};
//!
//! let program = Program::python("scale.py", r#"
//! import triton.language as tl
//!
//! @triton.jit
//! def scale(x, n, BLOCK: tl.constexpr):
//!     i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
//!     tl.store(x + i, tl.load(x + i, i < n) * 1.0, i < n)
//! "#)?;
//! let device = Device::best();
//! let kernel = device.kernel(&program, "scale")?;
//! let x = Buffer::from_slice(&device, &[1.0_f32; 1000])?;
//! let tuner = Tuner::new([256, 512, 1024].map(|block| Config::new().constant("BLOCK", block)));
//! let grid = |c: Constants| Some([1000_u32.div_ceil(c.int("BLOCK")?), 1, 1]);
//! let tuned = tuner.tune(&kernel, &device.stream(), &grid, (&x, 1000))?;
//! println!("{}", tuned.report);
//! tuned.kernel.run(&grid, (&x, 1000))?;
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The same with what the file says:
//!
//! ```
//! # #[cfg(feature = "triton")] {
//! use tilelift::runtime::{Buffer, Constants, Device, Program};
//!
//! let program = Program::python("scale.py", r#"
//! import triton
//! import triton.language as tl
//!
//! @triton.autotune([triton.Config({"BLOCK": b}) for b in (256, 512, 1024)], key=["n"])
//! @triton.jit
//! def scale(x, n, BLOCK: tl.constexpr):
//!     i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
//!     tl.store(x + i, tl.load(x + i, i < n) * 1.0, i < n)
//! "#)?;
//! let device = Device::best();
//! let scale = device.autotuned(&program, "scale")?;
//! let x = Buffer::from_slice(&device, &[1.0_f32; 1000])?;
//! let grid = |c: Constants| Some([1000_u32.div_ceil(c.int("BLOCK")?), 1, 1]);
//! scale.launch(&device.stream(), &grid, (&x, 1000))?;      // tries all, the first time
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod autotuned;
mod config;
#[cfg(feature = "triton")]
mod decorators;
mod measure;
mod report;
mod saved_results;

use std::time::Instant;

pub use autotuned::Autotuned;
pub use config::Config;
#[cfg(feature = "tool")]
pub(crate) use measure::Launches;
pub use measure::Measure;
pub use report::{Outcome, Row, TuneReport};

use crate::runtime::{Arg, Args, Deadline, Grid, Kernel, Prediction, RuntimeError, Stream};

use crate::settings::Target;

use measure::Bench;
use saved_results::Results;

/// What tells of the way: how many configurations are done, how many there are, and the one that comes next.
pub type Progress<'a> = &'a (dyn Fn(usize, usize, &str) + Sync + 'a);

/// A [`Progress`] that knows how many there are, and the bar.
type Reporter<'a> = Box<dyn Fn(usize, &str) + 'a>;

/// A cost where there is no GPU, or in place of time: of a configuration and what it is expected to use. None skips it.
pub type Cost<'a> = &'a (dyn Fn(&Config, &Prediction) -> Option<f64> + Sync + 'a);

/// Why a configuration is not to be tried.
pub type Prune<'a> = &'a (dyn Fn(&Config) -> Option<String> + Sync + 'a);

/// What to try, and how.
#[derive(Clone, Default)]
pub struct Tuner<'a> {
    configs: Vec<Config>,
    key: Vec<String>,
    reset_to_zero: Vec<String>,
    restore_value: Vec<String>,
    prune: Option<Prune<'a>>,
    cost: Option<Cost<'a>>,
    /// Whether the program's heuristics give constants.
    heuristics: bool,
    progress: Option<Progress<'a>>,
    measure: Measure,
    /// How many are measured, if not all.
    top: Option<usize>,
    bar: bool,
}

/// The best set-up of a kernel.
#[derive(Clone, Debug)]
pub struct Tuned {
    /// The kernel, set up so.
    pub kernel: Kernel,
    /// How.
    pub config: Config,
    /// All that was tried.
    pub report: TuneReport,
    /// The others that were set up, which stay loaded as long as this does: for a launch that is tuned next.
    tried: Vec<Kernel>,
}

impl<'a> Tuner<'a> {
    /// Tries these.
    pub fn new(configs: impl IntoIterator<Item = Config>) -> Tuner<'a> {
        Tuner {
            configs: configs.into_iter().collect(),
            ..Tuner::default()
        }
    }

    /// What is tried.
    #[cfg(all(feature = "tool", feature = "triton"))]
    pub(crate) fn configs(&self) -> &[Config] {
        &self.configs
    }

    /// Arguments whose values decide anew which configuration is the best: sizes, usually. Of a `constexpr` the value is
    /// part of what is tuned in any case, and naming it changes nothing.
    #[must_use]
    pub fn key(mut self, names: &[&str]) -> Tuner<'a> {
        self.key = names.iter().map(|&name| name.to_owned()).collect();
        self
    }

    /// Arguments whose memory is zeroed before every launch that tries a configuration, and after the last of them: the
    /// caller's own launch then starts from zero. Launches that find their configuration known, from before or from the
    /// cache on disk, zero nothing, as in Triton.
    #[must_use]
    pub fn reset_to_zero(mut self, names: &[&str]) -> Tuner<'a> {
        self.reset_to_zero = names.iter().map(|&name| name.to_owned()).collect();
        self
    }

    /// Arguments whose memory is put back after every launch that tries a configuration, so that only the caller's own
    /// launch changes it.
    #[must_use]
    pub fn restore_value(mut self, names: &[&str]) -> Tuner<'a> {
        self.restore_value = names.iter().map(|&name| name.to_owned()).collect();
        self
    }

    /// Skips what the function gives a reason for.
    #[must_use]
    pub fn prune(mut self, prune: Prune<'a>) -> Tuner<'a> {
        self.prune = Some(prune);
        self
    }

    /// Chooses by the function and not by time. Nothing is launched then.
    #[must_use]
    pub fn cost(mut self, cost: Cost<'a>) -> Tuner<'a> {
        self.cost = Some(cost);
        self
    }

    /// Measures no more than so many configurations: those that the model of time ([`predict`](crate::predict)) expects to be the
    /// fastest, in that order, after those that it says nothing of. Those that turn out not to work do not count. Where the model is wrong,
    /// the best may be left out. Without this all are measured. It changes nothing where a cost function chooses ([`Tuner::cost`]).
    #[must_use]
    pub fn top(mut self, count: usize) -> Tuner<'a> {
        self.top = Some(count.max(1));
        self
    }

    /// Tells the function of the way.
    #[must_use]
    pub fn progress(mut self, progress: Progress<'a>) -> Tuner<'a> {
        self.progress = Some(progress);
        self
    }

    /// Shows a bar on standard error, if that is a terminal. Without the feature `tool` there is none.
    #[must_use]
    pub fn progress_bar(mut self) -> Tuner<'a> {
        self.bar = true;
        self
    }

    /// Measures in this way.
    #[must_use]
    pub fn measure(mut self, measure: Measure) -> Tuner<'a> {
        self.measure = measure;
        self
    }

    /// Finds the best configuration for such a launch. The kernel runs many times, as the arguments and grid say.
    ///
    /// # Errors
    ///
    /// No configuration works, each for its reason; a name that is no argument; a device that is lost.
    pub fn tune<'g>(
        &self,
        kernel: &Kernel,
        stream: &Stream,
        grid: impl Into<Grid<'g>>,
        args: impl Args,
    ) -> Result<Tuned, RuntimeError> {
        let grid = grid.into();
        args.with(|args| self.tune_args(kernel, stream, grid, args))
    }

    fn tune_args(
        &self,
        kernel: &Kernel,
        stream: &Stream,
        grid: Grid<'_>,
        args: &[Arg<'_>],
    ) -> Result<Tuned, RuntimeError> {
        let tuned = self.tune_unless_empty(kernel, stream, grid, args)?;
        tuned.ok_or_else(|| RuntimeError::Setup {
            kernel: kernel.name().to_owned(),
            problem: "the grid is empty: there is nothing to measure".to_owned(),
        })
    }

    /// The same; none if the launch has no programs, which says nothing of any configuration.
    fn tune_unless_empty(
        &self,
        kernel: &Kernel,
        stream: &Stream,
        grid: Grid<'_>,
        args: &[Arg<'_>],
    ) -> Result<Option<Tuned>, RuntimeError> {
        span!(
            DEBUG,
            "tune",
            kernel = kernel.name(),
            configurations = self.configs.len()
        );
        let clock = Instant::now();
        // Trials reset memory in the stream before the first launch could refuse it.
        stream.expect_device(kernel.device())?;
        if self.configs.is_empty() {
            return Err(RuntimeError::Setup {
                kernel: kernel.name().to_owned(),
                problem: "the tuner has no configurations to choose from".to_owned(),
            });
        }
        // What one cost function said is nothing to another, and asking again costs little. Times of edited PTX say nothing of
        // the kernel.
        let results = match self.cost.is_some() || kernel.device().dump().replace.is_some() {
            true => Results::none(),
            false => Results::open(kernel, &self.results_key(kernel, args)?),
        };
        let total = self.configs.len();
        let report = self.reporter(total);
        let candidates: Vec<Result<Kernel, RuntimeError>> = self
            .configs
            .iter()
            .map(|config| self.set_up(config, kernel, args))
            .collect();
        // Those that are not the application's own already.
        let tried: Vec<Kernel> = candidates.iter().flatten().cloned().collect();
        let tried: Vec<Kernel> = tried
            .into_iter()
            .filter(|kernel| !kernel.is_kept())
            .collect();
        let mut filtered: Vec<Option<Outcome>> = Vec::with_capacity(total);
        let mut has_empty = false;
        for (config, candidate) in self.configs.iter().zip(&candidates) {
            let pruned = self.prune.and_then(|prune| prune(config));
            let outcome = pruned
                .map(Outcome::Skipped)
                .or_else(|| results.get(config))
                .or_else(|| self.filter(candidate, config, args));
            let outcome = outcome.or_else(|| {
                // A launch of nothing costs nothing.
                let is_empty = candidate.as_ref().is_ok_and(|candidate| {
                    self.cost.is_none() && candidate.is_empty(grid, args).unwrap_or(false)
                });
                has_empty |= is_empty;
                is_empty.then(|| Outcome::Skipped("its grid is empty".to_owned()))
            });
            filtered.push(outcome);
        }
        let order = self.order(&candidates, &filtered, grid, args);
        if self.cost.is_none() {
            let open = order.iter().filter(|(at, _)| filtered[*at].is_none());
            let open = open.filter_map(|&(at, _)| candidates[at].as_ref().ok());
            for candidate in open.take(self.top.unwrap_or(total)) {
                // While the first are timed the others are compiled.
                candidate.prepare_in_background(args)?;
            }
        }
        let places = |names: &[String]| -> Result<Vec<&Arg<'_>>, RuntimeError> {
            let found = names.iter().map(|name| self.memories(kernel, args, name));
            Ok(found.collect::<Result<Vec<_>, _>>()?.concat())
        };
        let (zeroed, restored) = (places(&self.reset_to_zero)?, places(&self.restore_value)?);
        let may_win = |(outcome, candidate): (&Option<Outcome>, &Result<Kernel, _>)| match outcome {
            Some(outcome) => matches!(outcome, Outcome::Measured(_)),
            None => candidate.is_ok(),
        };
        if has_empty && !filtered.iter().zip(&candidates).any(may_win) {
            return Ok(None);
        }
        let mut bench = None;
        let mut best = f64::INFINITY;
        let mut reused = 0;
        let mut measured = 0;
        let mut rows: Vec<(usize, Row)> = Vec::with_capacity(total);
        for (done, &(i, expected)) in order.iter().enumerate() {
            let (config, candidate) = (&self.configs[i], &candidates[i]);
            report(done, &config.to_string());
            let (outcome, is_new) = match (filtered[i].take(), candidate) {
                (Some(outcome), _) => {
                    let is_new = results.get(config).is_none();
                    (outcome, is_new)
                }
                (None, Ok(_)) if self.top.is_some_and(|top| top <= measured) => {
                    // It says something of this run alone, and is not kept.
                    let reason = match expected {
                        Some(_) => {
                            format!("the model of time expects {measured} others to be faster")
                        }
                        None => format!(
                            "{measured} others are measured, and the model of time says nothing of it"
                        ),
                    };
                    rows.push((
                        i,
                        Row {
                            config: config.clone(),
                            outcome: Outcome::Skipped(reason),
                        },
                    ));
                    continue;
                }
                (None, Err(error)) => (Outcome::Failed(error.to_string()), true),
                (None, Ok(candidate)) => {
                    if bench.is_none() {
                        bench = Some(Bench::new(stream, &self.measure, &zeroed, &restored)?);
                    }
                    let timed = bench.as_mut().map(|b| b.time(candidate, grid, args, best));
                    let outcome =
                        timed.unwrap_or_else(|| Ok(Outcome::Skipped("not tried".to_owned())));
                    (outcome?, true)
                }
            };
            if is_new {
                results.put(config, &outcome);
            } else {
                reused += 1;
            }
            if let Outcome::Measured(cost) = outcome {
                best = best.min(cost);
            }
            measured += usize::from(matches!(
                outcome,
                Outcome::Measured(_) | Outcome::Hopeless(_)
            ));
            rows.push((
                i,
                Row {
                    config: config.clone(),
                    outcome,
                },
            ));
        }
        report(total, "done");
        rows.sort_by_key(|(at, _)| *at);
        let rows: Vec<Row> = rows.into_iter().map(|(_, row)| row).collect();
        // A fraction that is none makes no two costs equal.
        let tie = self.measure.tie;
        let chosen = report::choose(&rows, if tie >= 0.0 { tie } else { 0.0 });
        let best = chosen.map(|at| self.set_up(&rows[at].config, kernel, args));
        let best = best.transpose()?;
        // What was tried in vain is not kept for as long as the program is.
        for kernel in tried
            .iter()
            .filter(|kernel| !best.as_ref().is_some_and(|best| best.is(kernel)))
        {
            kernel.release();
        }
        let (Some(chosen), Some(best)) = (chosen, best) else {
            let reasons = report::lines(&rows).map(|(_, line)| line);
            return Err(RuntimeError::Untunable {
                kernel: kernel.name().to_owned(),
                reasons: reasons.collect::<Vec<_>>().join("\n"),
            });
        };
        let config = rows[chosen].config.clone();
        Ok(Some(Tuned {
            kernel: best,
            config,
            report: TuneReport {
                rows,
                chosen,
                reused,
                wall: clock.elapsed(),
            },
            tried,
        }))
    }

    /// The order in which configurations are looked at, with the microseconds that the model of time expects: as they stand, or, if not all
    /// are measured, what is known already, what the model says nothing of, and the others by what it expects.
    fn order(
        &self,
        candidates: &[Result<Kernel, RuntimeError>],
        known: &[Option<Outcome>],
        grid: Grid<'_>,
        args: &[Arg<'_>],
    ) -> Vec<(usize, Option<f64>)> {
        if self.top.is_none() || self.cost.is_some() {
            return (0..candidates.len()).map(|at| (at, None)).collect();
        }
        let expected = candidates.iter().zip(known).map(|pair| match pair {
            (Ok(candidate), None) => candidate.estimate(grid, args).ok().flatten(),
            _ => None,
        });
        let expected = expected.map(|estimate| Some(estimate?.micros));
        let mut order: Vec<(usize, Option<f64>)> = expected.enumerate().collect();
        // Stable: of equal ones the first comes first.
        order.sort_by(|(_, a), (_, b)| a.unwrap_or(0.0).total_cmp(&b.unwrap_or(0.0)));
        order
    }

    /// What can be said of a configuration without launching it; none if it is to be launched.
    fn filter(
        &self,
        candidate: &Result<Kernel, RuntimeError>,
        config: &Config,
        args: &[Arg<'_>],
    ) -> Option<Outcome> {
        let kernel = candidate.as_ref().ok()?;
        let prediction = match kernel.predict(args, &Deadline::default()) {
            Ok(prediction) => prediction,
            Err(error) => return Some(Outcome::Failed(error.to_string())),
        };
        if let Some(reason) = too_large(&prediction) {
            return Some(Outcome::Skipped(reason));
        }
        let cost = self.cost?;
        Some(match cost(config, &prediction) {
            Some(cost) if cost.is_finite() => Outcome::Measured(cost),
            Some(cost) => Outcome::Skipped(format!("the cost function gives {cost}")),
            None => Outcome::Skipped("the cost function refuses it".to_owned()),
        })
    }

    /// The kernel of a configuration, with the constants that heuristics give for these arguments.
    fn set_up(
        &self,
        config: &Config,
        kernel: &Kernel,
        args: &[Arg<'_>],
    ) -> Result<Kernel, RuntimeError> {
        let kernel = config.set_up(kernel)?;
        if self.heuristics {
            return kernel.with_heuristics(args);
        }
        Ok(kernel)
    }

    /// Everything that results depend on beside the configuration.
    fn results_key(&self, kernel: &Kernel, args: &[Arg<'_>]) -> Result<String, RuntimeError> {
        let mut key = kernel
            .identity(args)?
            .part("device", kernel.device().name());
        for name in &self.key {
            match kernel.arguments_of(args, name) {
                Some(found) => {
                    // Of a descriptor it is the address, behind the mark.
                    let arg = found.get(1).or(found.first());
                    let bits = arg.map_or(0, |arg| arg.bits);
                    key = key.part(name, bits.to_le_bytes());
                }
                // Constants are part of the identity, and what is left out has its default.
                None if kernel.has_parameter(name) || kernel.has_constant(name) => {}
                None => return Err(no_argument(kernel, name)),
            }
        }
        Ok(key.part("how", "time").finish().to_string())
    }

    /// The memory that an argument leads to: a buffer's, a descriptor's, or all of a tuple's.
    fn memories<'b>(
        &self,
        kernel: &Kernel,
        args: &'b [Arg<'b>],
        name: &str,
    ) -> Result<Vec<&'b Arg<'b>>, RuntimeError> {
        let Some(found) = kernel.arguments_of(args, name) else {
            return Err(no_argument(kernel, name));
        };
        let pointers: Vec<&Arg<'_>> = found.iter().filter(|a| a.is_pointer()).collect();
        if pointers.is_empty() {
            return Err(RuntimeError::Setup {
                kernel: kernel.name().to_owned(),
                problem: format!("`{name}` has no memory that could be reset or restored"),
            });
        }
        Ok(pointers)
    }

    /// What tells of the way.
    fn reporter(&self, total: usize) -> Reporter<'a> {
        let progress = self.progress;
        #[cfg(feature = "tool")]
        let bar = self.bar.then(|| {
            let bar = indicatif::ProgressBar::new(total as u64);
            let style = indicatif::ProgressStyle::with_template("{bar:30} {pos}/{len} {wide_msg}");
            style.map_or(bar.clone(), |style| bar.with_style(style))
        });
        Box::new(move |done, what| {
            if let Some(progress) = progress {
                progress(done, total, what);
            }
            #[cfg(feature = "tool")]
            if let Some(bar) = &bar {
                bar.set_position(done as u64);
                bar.set_message(what.to_owned());
                if done == total {
                    bar.finish_and_clear();
                }
            }
        })
    }
}

/// The error of a name that the tuner was given and the kernel does not have.
fn no_argument(kernel: &Kernel, name: &str) -> RuntimeError {
    RuntimeError::Setup {
        kernel: kernel.name().to_owned(),
        problem: format!(
            "the tuner names an argument `{name}` that there is not; there is {}",
            kernel.arguments().join(", ")
        ),
    }
}

/// Why a kernel cannot run well on any device that there is code for.
fn too_large(prediction: &Prediction) -> Option<String> {
    /// How far the prediction may be off.
    const SLACK: u32 = 16;
    let Prediction {
        needed_registers,
        threads,
        ..
    } = *prediction;
    // Every device has as many registers; a configuration that bounds them itself is tried.
    let most = Target::most_registers(threads);
    if needed_registers > most + SLACK {
        return Some(format!(
            "about {needed_registers} registers a thread, {threads} threads can have {most}"
        ));
    }
    None
}
