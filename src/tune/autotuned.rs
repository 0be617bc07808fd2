//! Kernels that tune themselves.

use std::collections::{HashMap, VecDeque};
use std::sync::{Condvar, Mutex, PoisonError, RwLock};
use std::thread::ThreadId;

use crate::runtime::{Arg, ArgList, Args, Call, Constant, Grid, Kernel, RuntimeError, Stream};

use super::{Config, Tuner};

/// A kernel that tunes itself: the first launch with new classes or key values tries all configurations, later ones use
/// the best.
pub struct Autotuned {
    kernel: Kernel,
    tuner: Tuner<'static>,
    /// By key the configuration that was found to be the best. No kernel: what is launched its program keeps.
    chosen: RwLock<HashMap<String, usize>>,
    /// What was set up for the last one that was tuned, so that the next need not compile it again.
    tried: Mutex<Vec<Kernel>>,
    /// Of the last launches that differ, so that one like them neither hashes nor allocates.
    recent: RwLock<VecDeque<Recent>>,
    /// Whose turn it is to tune.
    turn: Turn,
}

/// A lock that the thread which has it may take again: what tuning calls may launch the same kernel.
#[derive(Debug, Default)]
struct Turn {
    /// With its process: a child has the lock of its parent, and not the thread that would let it go.
    owner: Mutex<Option<(u32, ThreadId)>>,
    free: Condvar,
}

/// A turn taken, until dropped.
struct Taken<'a>(Option<&'a Turn>);

impl Turn {
    fn take(&self) -> Taken<'_> {
        let process = std::process::id();
        let own = (process, std::thread::current().id());
        let mut owner = self.owner.lock().unwrap_or_else(PoisonError::into_inner);
        if *owner == Some(own) {
            return Taken(None);
        }
        while owner.is_some_and(|(of, _)| of == process) {
            owner = self
                .free
                .wait(owner)
                .unwrap_or_else(PoisonError::into_inner);
        }
        *owner = Some(own);
        Taken(Some(self))
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        if let Some(turn) = self.0 {
            *turn.owner.lock().unwrap_or_else(PoisonError::into_inner) = None;
            turn.free.notify_one();
        }
    }
}

/// How many launches are remembered.
const RECENT: usize = 8;

/// How many keys are remembered. What a key that had to go led to is in the cache on disk, if there is one.
const REMEMBERED: usize = 1 << 14;

/// Notes what a key leads to, or finds it noted. Of too many any other goes.
fn remember(chosen: &mut HashMap<String, usize>, key: String, choice: usize, most: usize) -> usize {
    if chosen.len() >= most
        && !chosen.contains_key(&key)
        && let Some(other) = chosen.keys().next().cloned()
    {
        chosen.remove(&other);
    }
    *chosen.entry(key).or_insert(choice)
}

/// A launch, and what was launched.
#[derive(Debug)]
struct Recent {
    call: Call,
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
            turn: Turn::default(),
        }
    }

    /// The same with a constant that the configurations do not choose. What was found for other constants is not asked.
    ///
    /// # Errors
    ///
    /// Those of [`Kernel::constant`]; a constant that a configuration gives.
    pub fn constant(
        self,
        name: &str,
        value: impl Into<Constant>,
    ) -> Result<Autotuned, RuntimeError> {
        let chooses = |config: &Config| config.constants.iter().any(|(own, _)| own == name);
        if self.tuner.configs.iter().any(chooses) {
            return Err(RuntimeError::Setup {
                kernel: self.kernel.name().to_owned(),
                problem: format!(
                    "the tuner's configurations give `{name}`, which is theirs to choose"
                ),
            });
        }
        Ok(Autotuned::new(
            self.kernel.constant(name, value)?,
            self.tuner,
        ))
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
        args.with(|args| {
            let typed = self.kernel.typed(args)?;
            let args = typed.as_ref().map_or(args, ArgList::as_slice);
            self.best_of(stream, grid, args)
        })
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
        let known = chosen.get(&key).copied();
        drop(chosen);
        let choice = match known {
            Some(choice) => choice,
            None => match self.choose(key, stream, grid, args)? {
                Some(choice) => choice,
                // Of an empty grid nothing can be learned, and every configuration is as good.
                None => {
                    return self
                        .tuner
                        .set_up(&self.tuner.configs[0], &self.kernel, args);
                }
            },
        };
        let config = &self.tuner.configs[choice];
        let kernel = self.tuner.set_up(config, &self.kernel, args)?;
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

    /// Finds the best configuration, and remembers it; none if the launch has no programs. One thread at a time: what another
    /// would restore or zero may be the same memory.
    fn choose(
        &self,
        key: String,
        stream: &Stream,
        grid: Grid<'_>,
        args: &[Arg<'_>],
    ) -> Result<Option<usize>, RuntimeError> {
        let _turn = self.turn.take();
        let chosen = self.chosen.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(&choice) = chosen.get(&key) {
            return Ok(Some(choice));
        }
        drop(chosen);
        // Of one alone there is nothing to measure.
        let choice = if self.tuner.configs.len() == 1 {
            0
        } else {
            let tuned = self
                .tuner
                .tune_unless_empty(&self.kernel, stream, grid, args)?;
            let Some(tuned) = tuned else {
                return Ok(None);
            };
            *self.tried.lock().unwrap_or_else(PoisonError::into_inner) = tuned.tried;
            tuned.report.chosen
        };
        let mut chosen = self.chosen.write().unwrap_or_else(PoisonError::into_inner);
        Ok(Some(remember(&mut chosen, key, choice, REMEMBERED)))
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
        args.with(|args| {
            let typed = self.kernel.typed(args)?;
            let args = typed.as_ref().map_or(args, ArgList::as_slice);
            self.best_of(stream, grid, args)?.launch(stream, grid, args)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_without_end_take_bounded_memory() {
        let mut chosen = HashMap::new();
        for key in 0..100 {
            assert_eq!(remember(&mut chosen, key.to_string(), key, 10), key);
            // The latest is there, and what it leads to stays.
            assert_eq!(remember(&mut chosen, key.to_string(), 7, 10), key);
        }
        assert_eq!(chosen.len(), 10);
    }
}
