//! What a program's own decorators say about tuning: `autotune` and `heuristics`.
//!
//! Configurations, `key`, `reset_to_zero`, `restore_value` and `rep` become a [`Tuner`]. Heuristics are functions of the
//! arguments; they are called for each configuration, after its constants are known, and once more for launches whose
//! numbers differ. What is a function of the host that nothing here can call (`prune_configs_by`, hooks) is told by a
//! warning with its line; [`Tuner::prune`] is the place for the same in Rust.

use std::time::Duration;

use crate::front;
use crate::runtime::{Constant, Device, Program, RuntimeError, warn};

use super::config::Config;
use super::measure::Measure;
use super::{Autotuned, Tuner};

/// Arguments of the decorators that are functions.
const FUNCTIONS: [&str; 4] = ["pre_hook", "post_hook", "prune_configs_by", "do_bench"];

impl Program {
    /// The tuner that the decorators of a kernel describe; the name may be left out if there is only one kernel. Without
    /// `autotune` it has one configuration, the kernel as it is.
    ///
    /// # Errors
    ///
    /// There is no such kernel; configurations that are no data, with their place.
    pub fn tuner<'n>(
        &self,
        kernel: impl Into<Option<&'n str>>,
    ) -> Result<Tuner<'static>, RuntimeError> {
        let (name, tuning) = self.tuning(kernel.into())?;
        for (what, line) in &tuning.ignored {
            let file = self.name();
            let why = match FUNCTIONS.contains(&what.as_str()) {
                true => "is a function of Python and not called; say it to the tuner in Rust",
                false => "is nothing that the tuner knows, and is not used",
            };
            warn(&format!("{file}:{line}: `{what}` of `{name}` {why}"));
        }
        let mut configs: Vec<Config> = tuning.configs.iter().map(config).collect();
        if configs.is_empty() {
            configs.push(Config::new());
        }
        let mut measure = Measure::default();
        let time = |ms: f64| Duration::try_from_secs_f64(ms / 1e3).ok();
        if let Some(budget) = tuning.rep.and_then(time) {
            measure.budget = budget;
        }
        if let Some(warmup) = tuning.warmup.and_then(time) {
            measure.warmup = warmup;
        }
        let names = |list: &[String]| list.to_vec();
        let (key, unknown) = self.split_key(&name, &tuning.key);
        if let Some(first) = unknown.first() {
            let file = self.name();
            warn(&format!(
                "{file}: `{first}` of the key of `{name}` is none of its parameters, and decides nothing"
            ));
        }
        Ok(Tuner {
            configs,
            key,
            reset_to_zero: names(&tuning.reset_to_zero),
            restore_value: names(&tuning.restore_value),
            heuristics: !tuning.heuristics.is_empty(),
            measure,
            ..Tuner::default()
        })
    }
}

impl Device {
    /// A kernel of a program with the tuner that its decorators describe, [`Program::tuner`].
    ///
    /// # Errors
    ///
    /// Those of [`Program::tuner`].
    pub fn autotuned<'n>(
        &self,
        program: &Program,
        kernel: impl Into<Option<&'n str>>,
    ) -> Result<Autotuned, RuntimeError> {
        let name = kernel.into();
        let tuner = program.tuner(name)?;
        Ok(Autotuned::new(self.kernel(program, name)?, tuner))
    }
}

fn config(config: &front::TuneConfig) -> Config {
    let constant =
        |(name, value): &(String, front::Constant)| (name.clone(), Constant::from_front(value));
    let narrow = |n: Option<u32>| n.map(|n| n.try_into().unwrap_or(u8::MAX));
    Config {
        constants: config.constants.iter().map(constant).collect(),
        num_warps: config.num_warps,
        num_stages: narrow(config.num_stages),
        num_ctas: config.num_ctas.filter(|&n| n != 1),
        max_registers: config.maxnreg.map(|n| n.try_into().unwrap_or(u16::MAX)),
    }
}
