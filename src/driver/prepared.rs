//! Prepared launches: everything checked that does not change, so that a launch is little more than the driver's call.

use super::error::{DriverError, check_launch};
use super::ffi::{self, Handle};
use super::fork;
use super::launch::{LaunchSpec, ParamSize, check_grid, volume};
use super::module::Function;
use super::stream::Stream;
use super::version::CudaVersion;
use core::ffi::{c_uint, c_void};
use core::mem::MaybeUninit;

/// Parameters for which a launch allocates nothing.
pub(super) const INLINE: usize = 64;

/// How a kernel is launched, beside its grid and arguments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct LaunchAttributes {
    /// The launch may begin before the one ahead of it in the stream has ended; the kernel itself waits for what it needs
    /// (programmatic dependent launch, from sm_90).
    pub dependent: bool,
    /// All blocks are resident at once, so that they may wait for one another.
    pub cooperative: bool,
}

/// A kernel whose parameters are numbers and pointers of up to eight bytes, ready to be launched often.
#[derive(Debug)]
pub struct Prepared {
    function: Function,
    block: [u32; 3],
    cluster: [u32; 3],
    shared: u32,
    params: usize,
    limits: [u32; 3],
    is_clustered: bool,
    attributes: Vec<ffi::LaunchAttribute>,
}

impl Prepared {
    /// Checks what `spec` says of `function` against device and kernel.
    ///
    /// # Errors
    ///
    /// Numbers of threads, sizes of shared memory and attributes that device, driver or kernel do not have; a parameter
    /// of more than eight bytes.
    pub fn new(
        function: Function,
        spec: &LaunchSpec<'_>,
        attributes: LaunchAttributes,
    ) -> Result<Prepared, DriverError> {
        Prepared::with_maps(function, spec, attributes, 0)
    }

    /// [`Prepared::new`] of a kernel that takes so many tensor maps behind the parameters that `spec` describes. It is not to
    /// be launched by words alone.
    pub(super) fn with_maps(
        function: Function,
        spec: &LaunchSpec<'_>,
        attributes: LaunchAttributes,
        maps: usize,
    ) -> Result<Prepared, DriverError> {
        let wide = |size: &ParamSize| matches!(size, ParamSize::Bytes(bytes) if *bytes > 8);
        if let Some(index) = spec.params.iter().position(wide) {
            return Err(DriverError::Argument {
                name: spec.name.to_owned(),
                index,
                expected: spec.params[index].to_string(),
                got: "a word of 8 bytes".to_owned(),
            });
        }
        let threads = volume(spec.block);
        let limit = function.attributes().max_threads;
        if threads == 0 || threads > u64::from(limit) {
            return Err(DriverError::Threads {
                name: spec.name.to_owned(),
                threads,
                limit,
            });
        }
        let list = attribute_list(spec.cluster, attributes);
        let device = function.module().context().device();
        if !list.is_empty() {
            const NEEDED: CudaVersion = CudaVersion(11_080);
            let driver = device.driver.version();
            if driver < NEEDED {
                return Err(DriverError::Missing {
                    call: "cuLaunchKernelEx",
                    driver,
                    needed: NEEDED,
                });
            }
        }
        let limits = device.grid;
        {
            let _current = function.module().context().enter()?;
            function.allow_shared(spec.shared)?;
            function.allow_cluster(volume(spec.cluster))?;
        }
        Ok(Prepared {
            function,
            block: spec.block,
            cluster: spec.cluster,
            shared: spec.shared,
            params: spec.params.len() + maps,
            limits,
            is_clustered: spec.cluster != [1, 1, 1],
            attributes: list,
        })
    }

    /// The kernel.
    #[must_use]
    pub fn function(&self) -> &Function {
        &self.function
    }

    /// Threads of a block by axis.
    #[must_use]
    pub fn block(&self) -> [u32; 3] {
        self.block
    }

    /// Bytes of dynamic shared memory.
    #[must_use]
    pub fn shared(&self) -> u32 {
        self.shared
    }

    /// Puts a launch of `grid` blocks into `stream`, with an argument in the low bytes of the word of each of `items`.
    ///
    /// An empty grid launches nothing. Nothing is allocated for up to 64 parameters.
    ///
    /// # Errors
    ///
    /// A number of arguments, a stream or a grid that does not fit; else what the driver reports.
    #[inline(always)]
    pub fn launch<'w, T>(
        &self,
        grid: [u32; 3],
        stream: &Stream,
        items: &'w [T],
        word: impl Fn(&'w T) -> &'w u64,
    ) -> Result<(), DriverError> {
        match self.try_launch(grid, stream, items, word) {
            Launched::Done => Ok(()),
            other => self.explain(other, grid, stream, items.len()),
        }
    }

    /// [`Prepared::launch`], whose result is small enough for registers: an error takes memory, and setting that aside
    /// would cost every launch.
    #[inline(always)]
    fn try_launch<'w, T>(
        &self,
        grid: [u32; 3],
        stream: &Stream,
        items: &'w [T],
        word: impl Fn(&'w T) -> &'w u64,
    ) -> Launched {
        // Addresses, of which the driver reads as many as the kernel has parameters. Those behind the last are not set, as
        // setting them would cost as much as the rest of this function.
        let mut places = [const { MaybeUninit::<*const u64>::uninit() }; INLINE];
        if items.len() <= INLINE {
            // Four at a time: one at a time costs twice as much.
            let (fours, rest) = items.as_chunks::<4>();
            let (by_four, _) = places.as_chunks_mut::<4>();
            for (places, items) in by_four.iter_mut().zip(fours) {
                for i in 0..4 {
                    places[i].write(word(&items[i]));
                }
            }
            for (place, item) in places[4 * fours.len()..].iter_mut().zip(rest) {
                place.write(word(item));
            }
            return self.start(grid, stream, places.as_ptr().cast(), items.len());
        }
        self.launch_many(grid, stream, &mut items.iter().map(word))
    }

    /// [`Prepared::launch`] with more arguments than there is room for on the stack.
    #[cold]
    fn launch_many(
        &self,
        grid: [u32; 3],
        stream: &Stream,
        words: &mut dyn Iterator<Item = &u64>,
    ) -> Launched {
        let places: Vec<*const u64> = words.map(std::ptr::from_ref).collect();
        self.start(grid, stream, places.as_ptr(), places.len())
    }

    /// Launches with `count` arguments, whose addresses begin at `places`.
    #[inline(always)]
    pub(super) fn start(
        &self,
        grid: [u32; 3],
        stream: &Stream,
        places: *const *const u64,
        count: usize,
    ) -> Launched {
        let context = self.function.module().context();
        // One less than a side, so that an empty one is beyond every limit.
        let beyond = |axis: usize| grid[axis].wrapping_sub(1) >= self.limits[axis];
        let is_odd = count != self.params
            || self.is_clustered && !self.is_whole(grid)
            || !context.same(stream.context())
            || beyond(0)
            || beyond(1)
            || beyond(2);
        if is_odd {
            return Launched::Odd;
        }
        if fork::is_child() {
            return Launched::NotEntered;
        }
        let code = self.call(grid, stream, places);
        if code != ffi::SUCCESS {
            return self.start_entered(grid, stream, places, code);
        }
        stream.keep(self.function.module());
        Launched::Done
    }

    /// Launches once more, in the kernel's context, what the driver refused because another one is current, or none.
    ///
    /// Streams with a handle of their own tell their context, so that drivers (CUDA 13.0, an H200) take launches whichever is
    /// current, and asking first which it is takes 12 ns. Default streams are those of the current context.
    #[cold]
    fn start_entered(
        &self,
        grid: [u32; 3],
        stream: &Stream,
        places: *const *const u64,
        code: ffi::Code,
    ) -> Launched {
        let is_of_context = matches!(
            code,
            ffi::INVALID_CONTEXT | ffi::INVALID_HANDLE | ffi::CONTEXT_IS_DESTROYED
        );
        if !is_of_context {
            return Launched::Refused(code);
        }
        let Ok(_current) = self.function.module().context().enter() else {
            return Launched::NotEntered;
        };
        match self.call(grid, stream, places) {
            ffi::SUCCESS => {
                stream.keep(self.function.module());
                Launched::Done
            }
            code => Launched::Refused(code),
        }
    }

    /// The driver's call.
    #[inline(always)]
    fn call(&self, grid: [u32; 3], stream: &Stream, places: *const *const u64) -> ffi::Code {
        // The driver's signature lacks `const` twice; it only reads.
        let places = places.cast::<*mut c_void>().cast_mut();
        if !self.attributes.is_empty() {
            return self.launch_with_attributes(grid, stream.raw(), places);
        }
        let ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]) = (grid, self.block);
        // SAFETY: function and stream are alive and of one context; there is a place of eight bytes, or of 128 for a tensor map,
        // for each parameter that the kernel has, as far as the specification describes it, and all of them are read before
        // the call returns.
        unsafe {
            ffi::cuLaunchKernel(
                self.function.raw(),
                grid_x,
                grid_y,
                grid_z,
                block_x,
                block_y,
                block_z,
                self.shared,
                stream.raw(),
                places,
                core::ptr::null_mut(),
            )
        }
    }

    /// What a launch comes to that was not done.
    #[cold]
    pub(super) fn explain(
        &self,
        launched: Launched,
        grid: [u32; 3],
        stream: &Stream,
        count: usize,
    ) -> Result<(), DriverError> {
        match launched {
            Launched::Done => Ok(()),
            Launched::Odd => self.odd(grid, stream, count),
            Launched::NotEntered => self.function.module().context().enter().map(drop),
            Launched::Refused(code) => Err(self.refused(grid, code)),
        }
    }

    /// Whether a grid is made of whole clusters.
    fn is_whole(&self, grid: [u32; 3]) -> bool {
        (0..3).all(|axis| grid[axis].is_multiple_of(self.cluster[axis]))
    }

    /// What a launch comes to that is empty or does not fit.
    fn odd(&self, grid: [u32; 3], stream: &Stream, count: usize) -> Result<(), DriverError> {
        let context = self.function.module().context();
        context.expect_same("the stream", stream.context())?;
        if count != self.params {
            return Err(DriverError::ArgumentCount {
                name: self.function.name().to_owned(),
                expected: self.params,
                got: count,
            });
        }
        if grid.contains(&0) {
            return Ok(());
        }
        check_grid(self.function.name(), grid, self.limits)?;
        Err(DriverError::Cluster {
            name: self.function.name().to_owned(),
            grid,
            cluster: self.cluster,
        })
    }

    fn launch_with_attributes(
        &self,
        grid: [u32; 3],
        stream: Handle,
        places: *mut *mut c_void,
    ) -> ffi::Code {
        let config = ffi::LaunchConfig {
            grid,
            block: self.block,
            shared: self.shared,
            stream,
            attributes: self.attributes.as_ptr(),
            attribute_count: self.attributes.len() as c_uint,
        };
        // SAFETY: as for `cuLaunchKernel`; the configuration and its attributes live until the call has returned.
        unsafe {
            ffi::cuLaunchKernelEx(
                &raw const config,
                self.function.raw(),
                places,
                core::ptr::null_mut(),
            )
        }
    }

    /// The error of a launch that the driver refused.
    #[cold]
    fn refused(&self, grid: [u32; 3], code: ffi::Code) -> DriverError {
        let attributes = self.function.attributes();
        let shape = format!(
            "grid {grid:?}, block {:?}, cluster {:?}, {} bytes of dynamic shared memory, {} registers a thread",
            self.block, self.cluster, self.shared, attributes.registers
        );
        check_launch(self.function.name(), &shape, code)
    }
}

/// What became of a launch.
#[derive(Clone, Copy)]
pub(super) enum Launched {
    /// The driver has it.
    Done,
    /// It is empty, or does not fit.
    Odd,
    /// The context cannot be made current.
    NotEntered,
    /// The driver refused it.
    Refused(ffi::Code),
}

/// The attributes in the driver's form; none for an ordinary launch.
fn attribute_list(cluster: [u32; 3], attributes: LaunchAttributes) -> Vec<ffi::LaunchAttribute> {
    let mut list = Vec::new();
    let attribute = |id, value| ffi::LaunchAttribute {
        id,
        pad: 0,
        cluster: value,
        rest: [0; 13],
    };
    if cluster != [1, 1, 1] {
        list.push(attribute(ffi::CLUSTER_DIMENSION, cluster));
    }
    if attributes.cooperative {
        list.push(attribute(ffi::COOPERATIVE, [1, 0, 0]));
    }
    if attributes.dependent {
        list.push(attribute(ffi::STREAM_SERIALIZATION, [1, 0, 0]));
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_launches_have_no_attributes() {
        let none = LaunchAttributes::default();
        assert!(attribute_list([1, 1, 1], none).is_empty());
        let all = LaunchAttributes {
            dependent: true,
            cooperative: true,
        };
        let list = attribute_list([2, 1, 1], all);
        let ids: Vec<_> = list.iter().map(|a| (a.id, a.cluster)).collect();
        // The numbers of `CUlaunchAttributeID`.
        assert_eq!(ids, [(4, [2, 1, 1]), (2, [1, 0, 0]), (6, [1, 0, 0])]);
    }
}
