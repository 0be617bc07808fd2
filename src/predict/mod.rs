//! How long a launch takes, by what the compiler knows of the kernel: nothing is launched for it.
//!
//! ```text
//!   block program --compile--> what one thread does --cost--> what each instruction takes
//!   grid, numbers, figures of the device --setting--> programs of a multiprocessor, share of the memory
//!                                                |
//!                                simulation of one multiprocessor ----> time, and what was busy for how long
//! ```
//!
//! The model executes the control flow of the compiled kernel (thread IR, after all passes) for the numbers of the launch, and
//! leaves out what programs compute: branches, indices of programs and coordinates of boxes are whole numbers of one thread, all
//! else is only an instruction that takes time. Roles, pipelines, persistent kernels and whose turn it is need no formulas of their own:
//! the simulation arrives at the barriers in shared memory, waits for their phases and passes on numbers as the kernel does. So nothing in it
//! knows what a product of matrices or an attention is.
//!
//! - **Agents** (`agent`) are four warps each; they execute instructions in order, and stand still where a result is not there
//!   yet. Costs (`cost`) count instructions by kinds of units; a product of a warpgroup of `64 x n x 16` takes the tensor
//!   cores' time, or that in which shared memory gives its operands, `(64 + n) * 32 / 128` clocks.
//! - **Servers** (`servers`) are what agents share; who asks first is served first. Bytes pass the way to the L2 cache, and the part of them that
//!   no cache has takes its share of the memory's bandwidth.
//! - **Reuse** (`reuse`): the first requests of all CTAs that run at once are compared; the part of a source that is
//!   asked for the first time comes from memory.
//! - **Residency**: CTAs of a multiprocessor by registers and shared memory ([`Usage`](crate::settings::Usage)); a CTA that ends makes
//!   room for the next one. Of many programs some are simulated, which are spread over the grid, and time grows by the
//!   same for each of the others.
//! - **Figures** ([`Figures`]) are the device as data.
//!
//! The numbers are good for choosing among configurations of one kernel (benches/README.md says how good); what data decide, and
//! how caches fare over time, it does not know. A branch that depends on memory is assumed not to be taken, and
//! [`Estimate::guessed`] says so. Every access of threads to device memory counts as if neighbours stood side by side, those to shared memory
//! as if no banks met, and shared atomics as if they were free.
//!
//! ```
//! use tilelift::predict::{Launch, Model};
//! use tilelift::prelude::*;
//!
//! let mut b = TileBuilder::new("nothing", 4);
//! b.ret();
//! let model = Model::of(&b.finish()?, Target::SM_90A, &Options::DEFAULT)?;
//! let launch = Launch { grid: [1000, 1, 1], numbers: &[] };
//! let estimate = model.and_then(|model| model.estimate(&launch)).expect("sm_90a has figures");
//! assert!(estimate.micros > 1.0);
//! println!("{estimate}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod agent;
mod compute;
mod cost;
mod figures;
mod prepared;
mod report;
mod reuse;
mod scalar;
mod servers;
mod setting;
mod sm;
mod step;
#[cfg(test)]
mod tests;
mod tracking;
mod waiting;

pub use figures::Figures;
pub use servers::Resource;

use crate::error::CompileError;
use crate::ir::function::TileFunction;
use crate::settings::{Options, Promote, Target};
use prepared::Prepared;
use reuse::ARGUMENT;

/// What is launched.
#[derive(Clone, Copy, Debug)]
pub struct Launch<'a> {
    /// Programs along the axes.
    pub grid: [u32; 3],
    /// What the kernel's parameters are, in order: whole numbers; none for pointers, floats and what is not known.
    pub numbers: &'a [Option<i64>],
}

/// What a launch is expected to take.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Estimate {
    /// Microseconds, from the moment the device could begin.
    pub micros: f64,
    /// The part of the time that each resource is busy, the busiest first.
    pub busy: Vec<(Resource, f64)>,
    /// CTAs that a multiprocessor executes at a time.
    pub resident: u32,
    /// Programs over those that the device executes at a time.
    pub waves: f64,
    /// Whether each CTA executes several programs.
    pub persistent: bool,
    /// Whether a branch depends on what is in memory, or a number of the launch is missing where it counts.
    pub guessed: bool,
}

/// A kernel whose launches can be estimated.
#[derive(Clone, Debug)]
pub struct Model {
    figures: Figures,
    /// The kernel with tensor maps, if it takes any, and what is launched where a map cannot be made.
    mapped: Prepared,
    plain: Option<Prepared>,
}

impl Model {
    /// Compiles a kernel and prepares its model; none for targets without figures.
    ///
    /// # Errors
    ///
    /// Those of [`compile`](crate::compile::compile).
    pub fn of(
        func: &TileFunction,
        target: Target,
        options: &Options,
    ) -> Result<Option<Model>, CompileError> {
        match Figures::of(target) {
            Some(figures) => Model::on(func, target, options, figures).map(Some),
            None => Ok(None),
        }
    }

    /// The same for a device with other figures.
    ///
    /// # Errors
    ///
    /// Those of [`compile`](crate::compile::compile).
    pub fn on(
        func: &TileFunction,
        target: Target,
        options: &Options,
        figures: Figures,
    ) -> Result<Model, CompileError> {
        let mapped = Prepared::of(func, target, options)?;
        let plain = match mapped.thread.maps.is_empty() {
            true => None,
            false => {
                let without = Options {
                    promote: Promote::Never,
                    ..*options
                };
                Some(Prepared::of(func, target, &without)?)
            }
        };
        Ok(Model {
            figures,
            mapped,
            plain,
        })
    }

    /// What a launch takes; none if it has no programs, or does what the model does not follow.
    #[must_use]
    pub fn estimate(&self, launch: &Launch<'_>) -> Option<Estimate> {
        let params = |index: u32| launch.numbers.get(index as usize).copied().flatten();
        let mut maps = self.mapped.thread.maps.iter();
        let resolves = maps.all(|map| map.resolve(1 << ARGUMENT, &params, launch.grid).is_some());
        match (resolves, &self.plain) {
            (false, Some(plain)) => plain.estimate(launch, &self.figures),
            _ => self.mapped.estimate(launch, &self.figures),
        }
    }
}
