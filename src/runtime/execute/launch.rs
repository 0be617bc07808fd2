//! A launch: from arguments to the variant, the grid, and the stream.

use std::borrow::Cow;
use std::sync::Arc;

use crate::grid;

use crate::runtime::api::argument::Arg;
use crate::runtime::api::constant::{Constant, Constants, Grid};
use crate::runtime::api::deadline::{Deadline, FOREVER};
use crate::runtime::api::error::RuntimeError;
use crate::runtime::api::kernel::KernelInner;
use crate::runtime::api::program::LoweredProgram;
use crate::runtime::api::stream::Stream;
use crate::runtime::build::{build_variant, pool};
use crate::runtime::execute::executable::Executable;
use crate::runtime::execute::graph_capture;
use crate::runtime::specialize::arg_tree;
use crate::runtime::specialize::class_key::Classes;
use crate::runtime::specialize::served_classes::Served;
use crate::runtime::specialize::variant::Variant;
use crate::runtime::specialize::variant_table::Keyed;

impl KernelInner {
    /// The variant for these classes, ready to be launched.
    #[inline(always)]
    pub(in crate::runtime) fn ready(
        self: &Arc<Self>,
        classes: &Classes,
        deadline: &Deadline,
    ) -> Result<&Executable, RuntimeError> {
        let variant = match self.table.get(classes) {
            Some(variant) => variant,
            None => self.insert(classes)?,
        };
        match variant.ready.get() {
            Some(ready) => Ok(ready),
            None => Variant::obtain(self, variant, deadline),
        }
    }

    /// Makes the variant of these classes on a thread of the pool, unless it is there or being made. Its place is made at once, and with
    /// it the kernel is kept: who lets it go later is not undone by a thread that comes late. An error waits for the launch that needs
    /// the variant.
    pub(in crate::runtime) fn prepare_in_background(self: &Arc<Self>, classes: &Classes) {
        if let Ok(variant) = self.insert(classes) {
            let (kernel, variant) = (self.clone(), variant.clone());
            pool::spawn(move || variant.make_if_idle(&kernel));
        }
    }

    /// A place for the variant of these classes; beyond the bound, that of the types alone.
    #[cold]
    fn insert(self: &Arc<Self>, classes: &Classes) -> Result<&Arc<Variant>, RuntimeError> {
        if self.is_crowded()
            && let Some(found) = self.table.get(&self.in_use(classes))
        {
            return Ok(found);
        }
        if let Some(setups) = self.setups.upgrade() {
            setups.keep(self);
        }
        let insert = |classes: &Classes, bound| {
            let make = || Variant::new(classes.clone());
            self.table.get_or_insert(classes, bound, make)
        };
        if let Some(found) = insert(classes, self.room_for_values()) {
            return Ok(found);
        }
        let plain = arg_tree::plain(classes);
        insert(&plain, self.table.limit()).ok_or_else(|| RuntimeError::TooManyVariants {
            kernel: self.name.clone(),
            limit: self.table.limit(),
            signature: self.signature(&plain),
        })
    }

    /// How many variants there are before only those of the types alone are added. A quarter of the room is kept for these,
    /// which serve all that are too many: room for one at least.
    fn room_for_values(&self) -> usize {
        let limit = self.table.limit();
        limit - (limit / 4).max(1)
    }

    fn is_crowded(&self) -> bool {
        self.table.len() >= self.room_for_values()
    }

    /// What is made already for classes that it serves.
    pub(in crate::runtime) fn serving(
        &self,
        is_it: impl Fn(&Served) -> bool,
    ) -> Option<&Arc<Executable>> {
        let mut ready = self.table.iter().filter_map(|v| v.ready.get());
        ready.find(|ready| is_it(&ready.served))
    }

    /// The classes of the variant that serves these: themselves, those of another one, or beyond the bound those of the types alone.
    pub(in crate::runtime) fn in_use<'c>(&self, classes: &'c Classes) -> Cow<'c, Classes> {
        if self.table.get(classes).is_some() {
            return Cow::Borrowed(classes);
        }
        let kept = self.kept(classes);
        let serves = |v: &&Arc<Variant>| v.ready.get().is_some_and(|r| r.served.holds(&kept));
        match self.table.iter().find(serves) {
            Some(variant) => Cow::Owned(variant.classes().clone()),
            None if self.is_crowded() => Cow::Owned(arg_tree::plain(classes)),
            None => Cow::Borrowed(classes),
        }
    }

    pub(in crate::runtime) fn launch(
        self: &Arc<Self>,
        stream: &Stream,
        grid: Grid<'_>,
        args: &[Arg<'_>],
        deadline: &Deadline,
    ) -> Result<(), RuntimeError> {
        let mut classes = Classes::none();
        if !self.classify(args, &mut classes) {
            return self.launch_marked(stream, grid, args, deadline);
        }
        self.launch_classes(&classes, stream, grid, args, deadline)
    }

    /// [`KernelInner::launch`] with tuples or descriptors among the arguments, or numbers that become another type.
    #[cold]
    fn launch_marked(
        self: &Arc<Self>,
        stream: &Stream,
        grid: Grid<'_>,
        args: &[Arg<'_>],
        deadline: &Deadline,
    ) -> Result<(), RuntimeError> {
        if let Some(typed) = self.typed(args)? {
            return self.launch(stream, grid, typed.as_slice(), deadline);
        }
        let classes = self.marked(args)?;
        self.launch_classes(&classes, stream, grid, args, deadline)
    }

    /// The grid of such a launch; nothing is assembled for it.
    pub(in crate::runtime) fn grid_of_launch(
        self: &Arc<Self>,
        grid: Grid<'_>,
        args: &[Arg<'_>],
    ) -> Result<[u32; 3], RuntimeError> {
        let function = match grid {
            Grid::Fixed(grid) => return Ok(grid),
            Grid::Of(function) => function,
        };
        let classes = self.classes(args)?;
        let variant = self.table.get(&classes);
        if self.source.is_compiled() || variant.is_some_and(|v| v.ready.get().is_some()) {
            return self.grid_of(function, self.ready(&classes, &Deadline::default())?);
        }
        self.grid_of_made(grid, &build_variant::lower(self, &self.in_use(&classes))?)
    }

    /// The same for a kernel that was lowered.
    pub(in crate::runtime) fn grid_of_made(
        &self,
        grid: Grid<'_>,
        made: &LoweredProgram,
    ) -> Result<[u32; 3], RuntimeError> {
        match grid {
            Grid::Fixed(grid) => Ok(grid),
            Grid::Of(function) => {
                let defaults = build_variant::defaults(self, &made.constants);
                self.grid_with(function, &defaults)
            }
        }
    }

    #[inline(always)]
    fn launch_classes(
        self: &Arc<Self>,
        classes: &Classes,
        stream: &Stream,
        grid: Grid<'_>,
        args: &[Arg<'_>],
        deadline: &Deadline,
    ) -> Result<(), RuntimeError> {
        let ready = self.ready(classes, deadline)?;
        let grid = match grid {
            Grid::Fixed(grid) => grid,
            Grid::Of(function) => self.grid_of(function, ready)?,
        };
        stream.expect_device(&self.device)?;
        ready.launch(self, classes, grid, stream, args, deadline)?;
        if self.device.is_blocking() {
            return self.wait(stream);
        }
        Ok(())
    }

    /// Waits for a launch.
    #[cold]
    fn wait(&self, stream: &Stream) -> Result<(), RuntimeError> {
        // A launch that a graph records does not run yet.
        if stream.is_recording() {
            return Ok(());
        }
        stream.synchronize().map_err(|error| self.at_fault(error))
    }

    /// Runs a launch that was recorded.
    pub(crate) fn replay(
        self: &Arc<Self>,
        recorded: &graph_capture::Launch,
        stream: &Stream,
    ) -> Result<(), RuntimeError> {
        let graph_capture::Launch {
            classes,
            grid,
            args,
            ..
        } = recorded;
        let ready = self.ready(classes, &FOREVER)?;
        ready.launch(self, classes, *grid, stream, args, &FOREVER)
    }

    /// Launches the kernel that takes no tensor maps, for arguments that allow none.
    #[cold]
    pub(in crate::runtime) fn launch_plain(
        self: &Arc<Self>,
        classes: &Classes,
        grid: [u32; 3],
        stream: &Stream,
        args: &[Arg<'_>],
        deadline: &Deadline,
    ) -> Result<(), RuntimeError> {
        let plain = self.plain()?;
        let ready = plain.ready(classes, deadline)?;
        ready.launch(plain, classes, grid, stream, args, deadline)
    }

    /// The error of waiting for a launch of this kernel alone.
    #[cold]
    fn at_fault(&self, error: RuntimeError) -> RuntimeError {
        match error {
            #[cfg(feature = "cuda")]
            RuntimeError::Driver {
                kernel: None,
                line,
                error,
            } => RuntimeError::Driver {
                kernel: Some(self.name.clone()),
                line,
                error,
            },
            other => other,
        }
    }

    fn grid_of(
        &self,
        function: &dyn Fn(Constants<'_>) -> Option<[u32; 3]>,
        ready: &Executable,
    ) -> Result<[u32; 3], RuntimeError> {
        self.grid_with(function, &ready.defaults)
    }

    fn grid_with(
        &self,
        function: &dyn Fn(Constants<'_>) -> Option<[u32; 3]>,
        defaults: &[(String, Constant)],
    ) -> Result<[u32; 3], RuntimeError> {
        let constants = Constants {
            list: &self.options.constants,
            defaults,
            num_warps: self.source.asked_warps(&self.name, &self.options),
        };
        let grid = function(constants).ok_or_else(|| RuntimeError::Grid {
            kernel: self.name.clone(),
            problem: constants.without_grid(),
        })?;
        Ok(grid)
    }

    /// An error for a grid that nothing launches.
    pub(crate) fn check_grid(&self, programs: [u32; 3]) -> Result<(), RuntimeError> {
        grid::check(programs).map_err(|error| RuntimeError::Grid {
            kernel: self.name.clone(),
            problem: error.to_string(),
        })?;
        self.check_clusters(programs)
    }

    /// An error for a grid that is not made of whole clusters.
    fn check_clusters(&self, programs: [u32; 3]) -> Result<(), RuntimeError> {
        let cluster = self.options.cluster;
        let Some(axis) = (0..3).find(|&axis| !programs[axis].is_multiple_of(cluster[axis])) else {
            return Ok(());
        };
        Err(RuntimeError::Grid {
            kernel: self.name.clone(),
            problem: format!(
                "{} programs along axis {axis} are not clusters of {}",
                programs[axis], cluster[axis]
            ),
        })
    }
}
