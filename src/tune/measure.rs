//! What a launch costs: time on a GPU, counts on the emulator.

use std::time::Duration;

use crate::runtime::{Arg, Grid, Kernel, Memory, RuntimeError, Stream};

use super::report::Outcome;

#[cfg(feature = "cuda")]
use crate::runtime::Event;

/// How launches are measured.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default, deny_unknown_fields)
)]
pub struct Measure {
    /// Time for launches of a configuration before those that are timed. There are a few in any case.
    pub warmup: Duration,
    /// Time for the launches of a configuration that are timed.
    pub budget: Duration,
    /// Fewest and most of them.
    pub samples: [usize; 2],
    /// A configuration that is so many times slower than the best so far is given up after a few launches.
    pub hopeless: f64,
    /// The fraction within which two costs are equal.
    pub tie: f64,
}

impl Default for Measure {
    fn default() -> Measure {
        Measure {
            warmup: Duration::ZERO,
            budget: Duration::from_millis(50),
            samples: [5, 200],
            hopeless: 1.5,
            tie: 0.01,
        }
    }
}

/// What launches of one kernel cost.
#[cfg(feature = "tool")]
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Launches {
    /// Milliseconds of each, on a GPU.
    #[cfg_attr(
        not(feature = "cuda"),
        expect(dead_code, reason = "times are taken on GPUs")
    )]
    Times(Vec<f64>),
    /// What the emulator counts of one.
    Counts(crate::emu::Stats),
}

#[cfg(feature = "tool")]
impl Measure {
    /// As `do_bench` of Triton does: 25 ms of launches that are not timed, then those of 100 ms, each by itself and with nothing of
    /// its data in the device's cache.
    pub(crate) const THOROUGH: Measure = Measure {
        warmup: Duration::from_millis(25),
        budget: Duration::from_millis(100),
        samples: [5, 10_000],
        hopeless: f64::INFINITY,
        tie: 0.01,
    };

    /// Launches a kernel again and again; memory stays as each launch leaves it.
    pub(crate) fn launches(
        &self,
        kernel: &Kernel,
        stream: &Stream,
        grid: Grid<'_>,
        args: &[Arg<'_>],
    ) -> Result<Launches, RuntimeError> {
        let bench = Bench::new(stream, self, &[], &[])?;
        bench.ready()?;
        kernel.launch(stream, grid, args)?;
        stream.synchronize()?;
        if let Some(counts) = kernel.device().emulator_counts() {
            return Ok(Launches::Counts(counts));
        }
        #[cfg(feature = "cuda")]
        {
            let (times, _) = bench.times(kernel, grid, args, f64::INFINITY)?;
            Ok(Launches::Times(times))
        }
        #[cfg(not(feature = "cuda"))]
        Ok(Launches::Counts(crate::emu::Stats::ZERO))
    }
}

/// Launches configurations and measures them.
pub(super) struct Bench<'a> {
    stream: &'a Stream,
    #[cfg_attr(
        not(feature = "cuda"),
        expect(dead_code, reason = "times are taken on GPUs")
    )]
    measure: &'a Measure,
    zeroed: Vec<Memory>,
    /// Memory that is to be as before, and a copy of it.
    restored: Vec<(Memory, Memory)>,
    /// Written between launches, so that none finds its data in the device's cache.
    #[cfg(feature = "cuda")]
    flush: Option<Memory>,
}

impl<'a> Bench<'a> {
    pub(super) fn new(
        stream: &'a Stream,
        measure: &'a Measure,
        zeroed: &[&Arg<'_>],
        restored: &[&Arg<'_>],
    ) -> Result<Bench<'a>, RuntimeError> {
        let device = stream.device();
        let copy = |arg: &&Arg<'_>| {
            let memory = Memory::of(arg);
            let copy = Memory::new(device, memory.bytes())?;
            copy.copy_from(stream, &memory)?;
            Ok((memory, copy))
        };
        Ok(Bench {
            stream,
            measure,
            zeroed: zeroed.iter().map(|arg| Memory::of(arg)).collect(),
            restored: restored
                .iter()
                .map(copy)
                .collect::<Result<_, RuntimeError>>()?,
            #[cfg(feature = "cuda")]
            flush: match device.as_driver() {
                None => None,
                Some(context) => {
                    let bytes = 2 * context.device().l2_bytes as usize;
                    Some(Memory::new(device, bytes.max(64 << 20))?)
                }
            },
        })
    }

    /// The cost of a configuration. An error of the launch is an outcome; only a device that is lost is an error.
    pub(super) fn time(
        &mut self,
        kernel: &Kernel,
        grid: Grid<'_>,
        args: &[Arg<'_>],
        best: f64,
    ) -> Result<Outcome, RuntimeError> {
        let outcome = self.try_time(kernel, grid, args, best);
        // What a configuration that failed wrote is undone too.
        let restored = self.reset();
        match outcome {
            Ok(outcome) => restored.map(|()| outcome),
            Err(error) => {
                self.stream.synchronize()?;
                restored?;
                Ok(Outcome::Failed(error.to_string()))
            }
        }
    }

    /// Restores and zeroes what is asked for: before a launch, and after the last one for the caller's own.
    fn reset(&self) -> Result<(), RuntimeError> {
        for (memory, copy) in &self.restored {
            memory.copy_from(self.stream, copy)?;
        }
        for memory in &self.zeroed {
            memory.zero(self.stream)?;
        }
        Ok(())
    }

    /// Makes memory ready for a launch.
    fn ready(&self) -> Result<(), RuntimeError> {
        self.reset()?;
        #[cfg(feature = "cuda")]
        if let Some(flush) = &self.flush {
            flush.zero(self.stream)?;
        }
        Ok(())
    }

    fn try_time(
        &self,
        kernel: &Kernel,
        grid: Grid<'_>,
        args: &[Arg<'_>],
        best: f64,
    ) -> Result<Outcome, RuntimeError> {
        self.ready()?;
        kernel.launch(self.stream, grid, args)?;
        self.stream.synchronize()?;
        if let Some(counts) = kernel.device().emulator_counts() {
            let _ = best;
            // Instructions of warps, and what moving data costs beside them: a sector of memory as much as a few, a
            // trip through shared memory as one.
            let cost =
                counts.warp_instructions + 4 * counts.global_sectors + counts.shared_wavefronts;
            return Ok(Outcome::Measured(cost as f64));
        }
        self.time_on_gpu(kernel, grid, args, best)
    }

    #[cfg(not(feature = "cuda"))]
    fn time_on_gpu(
        &self,
        _kernel: &Kernel,
        _grid: Grid<'_>,
        _args: &[Arg<'_>],
        _best: f64,
    ) -> Result<Outcome, RuntimeError> {
        Ok(Outcome::Skipped("there is no GPU".to_owned()))
    }

    #[cfg(feature = "cuda")]
    fn time_on_gpu(
        &self,
        kernel: &Kernel,
        grid: Grid<'_>,
        args: &[Arg<'_>],
        best: f64,
    ) -> Result<Outcome, RuntimeError> {
        let (mut times, is_hopeless) = self.times(kernel, grid, args, best)?;
        let cost = median(&mut times);
        Ok(match is_hopeless {
            true => Outcome::Hopeless(cost),
            false => Outcome::Measured(cost),
        })
    }

    /// Milliseconds of each launch; or of the first few alone, if these are hopeless beside the best.
    #[cfg(feature = "cuda")]
    fn times(
        &self,
        kernel: &Kernel,
        grid: Grid<'_>,
        args: &[Arg<'_>],
        best: f64,
    ) -> Result<(Vec<f64>, bool), RuntimeError> {
        /// Launches after which a configuration may be given up.
        const FEW: usize = 3;
        let device = kernel.device();
        let times = |count: usize| -> Result<Vec<f64>, RuntimeError> {
            let mut events = Vec::with_capacity(count);
            for _ in 0..count {
                let (start, end) = (Event::new(device)?, Event::new(device)?);
                self.ready()?;
                start.record(self.stream)?;
                kernel.launch(self.stream, grid, args)?;
                end.record(self.stream)?;
                events.push((start, end));
            }
            self.stream.synchronize()?;
            events
                .iter()
                .map(|(start, end)| end.elapsed_ms(start))
                .collect()
        };
        let mut few = times(FEW)?;
        let first = median(&mut few);
        if first > best * self.measure.hopeless {
            return Ok((few, true));
        }
        let warmup = self.measure.warmup.as_secs_f64() * 1e3;
        for _ in 0..((warmup / first.max(1e-3)) as usize).min(10_000) {
            self.ready()?;
            kernel.launch(self.stream, grid, args)?;
        }
        let budget = self.measure.budget.as_secs_f64() * 1e3;
        let [fewest, most] = self.measure.samples;
        let count = (budget / first.max(1e-3)) as usize;
        let fewest = fewest.max(1);
        Ok((times(count.clamp(fewest, most.max(fewest)))?, false))
    }
}

/// The middle one of several numbers.
#[cfg(feature = "cuda")]
fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(f64::INFINITY)
}
