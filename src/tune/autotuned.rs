//! Kernels that tune themselves.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError, RwLock};

use crate::runtime::{Arg, Args, Call, Grid, Kernel, RuntimeError, Stream};

use super::Tuner;
use super::config::Config;

/// A kernel that tunes itself: the first launch with new classes or key values tries all configurations, later ones use
/// the best.
pub struct Autotuned {
    kernel: Kernel,
    tuner: Tuner<'static>,
    chosen: RwLock<HashMap<String, Choice>>,
    /// What was set up for the last one that was tuned, so that the next need not compile it again.
    tried: Mutex<Vec<Kernel>>,
    /// Of the last launches that differ, so that one like them neither hashes nor allocates.
    recent: RwLock<VecDeque<Recent>>,
}

/// How many launches are remembered.
const RECENT: usize = 8;

/// A launch, and what was launched.
#[derive(Debug)]
struct Recent {
    call: Call,
    kernel: Kernel,
}

/// What was found to be the best.
#[derive(Clone, Debug)]
struct Choice {
    config: Config,
    kernel: Kernel,
}

impl Autotuned {
    /// The kernel, tuned so.
    pub fn new(kernel: Kernel, tuner: Tuner<'static>) -> Autotuned {
        Autotuned {
            kernel,
            tuner,
            chosen: RwLock::default(),
            tried: Mutex::default(),
            recent: RwLock::default(),
        }
    }

    /// The best set-up for such a launch.
    ///
    /// # Errors
    ///
    /// Those of [`Tuner::tune`].
    pub fn best<'g>(
        &self,
        stream: &Stream,
        grid: impl Into<Grid<'g>>,
        args: impl Args,
    ) -> Result<Kernel, RuntimeError> {
        let grid = grid.into();
        args.with(|args| self.best_of(stream, grid, args))
    }

    fn best_of(
        &self,
        stream: &Stream,
        grid: Grid<'_>,
        args: &[Arg<'_>],
    ) -> Result<Kernel, RuntimeError> {
        let recent = self.recent.read().unwrap_or_else(PoisonError::into_inner);
        let known = recent
            .iter()
            .find(|one| self.kernel.is_call(&one.call, args));
        if let Some(known) = known {
            return Ok(known.kernel.clone());
        }
        drop(recent);
        let key = self.tuner.results_key(&self.kernel, args)?;
        let chosen = self.chosen.read().unwrap_or_else(PoisonError::into_inner);
        let known = chosen.get(&key).cloned();
        drop(chosen);
        let choice = match known {
            Some(choice) => choice,
            None => self.choose(key, stream, grid, args)?,
        };
        let kernel = match self.tuner.heuristics {
            // They may say something else for these arguments.
            true => self.tuner.set_up(&choice.config, &self.kernel, args)?,
            false => choice.kernel,
        };
        let call = self
            .kernel
            .call(args, &self.tuner.key, self.tuner.heuristics);
        if let Some(call) = call {
            let mut recent = self.recent.write().unwrap_or_else(PoisonError::into_inner);
            recent.truncate(RECENT - 1);
            let kernel = kernel.clone();
            recent.push_front(Recent { call, kernel });
        }
        Ok(kernel)
    }

    /// Finds the best set-up, and remembers it.
    fn choose(
        &self,
        key: String,
        stream: &Stream,
        grid: Grid<'_>,
        args: &[Arg<'_>],
    ) -> Result<Choice, RuntimeError> {
        let choice = match &self.tuner.configs[..] {
            // There is nothing to measure.
            [only] => Choice {
                config: only.clone(),
                kernel: self.tuner.set_up(only, &self.kernel, args)?,
            },
            _ => {
                let tuned = self.tuner.tune_args(&self.kernel, stream, grid, args)?;
                *self.tried.lock().unwrap_or_else(PoisonError::into_inner) = tuned.tried;
                Choice {
                    config: tuned.config,
                    kernel: tuned.kernel,
                }
            }
        };
        let mut chosen = self.chosen.write().unwrap_or_else(PoisonError::into_inner);
        // Of two threads that tuned at once the first one's choice stays.
        Ok(chosen.entry(key).or_insert(choice).clone())
    }

    /// Launches the best set-up.
    ///
    /// # Errors
    ///
    /// Those of [`Tuner::tune`] and [`Kernel::launch`].
    pub fn launch<'g>(
        &self,
        stream: &Stream,
        grid: impl Into<Grid<'g>>,
        args: impl Args,
    ) -> Result<(), RuntimeError> {
        let grid = grid.into();
        args.with(|args| self.best(stream, grid, args)?.launch(stream, grid, args))
    }
}
