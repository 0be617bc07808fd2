//! Devices: a GPU, or the emulator in its place.

use std::cell::Cell;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use crate::emu;
use crate::settings::Target;

use crate::runtime::api::buffer::Pointer;
use crate::runtime::api::environment;
use crate::runtime::api::error::RuntimeError;
use crate::runtime::api::kernel::Kernel;
use crate::runtime::api::program::Program;
use crate::runtime::api::stream::Stream;
use crate::runtime::build::dump::Dump;
use crate::runtime::build::record::LaunchRecord;
use crate::runtime::cache::Cache;
use crate::runtime::execute::graph_capture::Recording;
use crate::runtime::specialize::interned_kernels::InternedKernels;

#[cfg(feature = "cuda")]
use crate::driver::{self, DriverError};
#[cfg(feature = "cuda")]
use crate::runtime::execute::device_log::Asserting;

/// A device that kernels run on. Clones are the same device, and so are all that stand for one GPU: their memory and
/// streams mix. Every method may be called from any thread.
///
/// # The emulator
///
/// A launch on the emulator runs on the thread that asks for it: [`Kernel::launch`] returns when the kernel has ended, and
/// other launches on that device wait for it. It takes as long as the kernel does, without end if the kernel has none,
/// unless [`DeviceOptions::emulator`] bounds it.
///
/// # Errors that stay
///
/// A kernel that goes wrong on a GPU, by an address outside of all memory for instance, leaves the device unusable for
/// the whole process: CUDA knows no way back but a new process. The first call that meets such an error returns it, all
/// later ones [`RuntimeError::DeviceLost`] with its text. The emulator stays usable.
///
/// # Several devices and contexts
///
/// Memory, streams and kernels belong to a context: the primary one of a GPU, which the CUDA runtime and most libraries
/// use, unless `Device::from_context` was given another. What belongs to different ones does not mix in a launch, whose error
/// names the argument. Copies go from one device to another ([`Buffer::copy_from`](crate::runtime::Buffer::copy_from)), and a
/// [`Stream`] waits for events of all. A [`Program`] serves them all; what is compiled for one GPU those of its kind find in the
/// cache on disk, and each loads it for itself. Whichever context is current in a thread, it is so again after every call.
///
/// # Unloading
///
/// Code stays loaded as long as there is its [`Program`] or a clone, or a [`Kernel`] of that program, and a handle of its
/// device: a value of this type, a kernel, a buffer, a stream; and as long as there is a [`Graph`](crate::runtime::Graph) that
/// launches it. Of the set-ups of a kernel that nobody holds, those with the latest [`Kernel::variant_limit`] variants stay.
///
/// # Fork
///
/// A child made by `fork` after a GPU was used gets `driver::DriverError::Forked` from every
/// call. The emulator works in children.
#[derive(Clone)]
pub struct Device {
    inner: Arc<Inner>,
    /// None in what a program keeps of it.
    _handles: Option<Arc<Handles>>,
}

/// What all handles of a device share; it goes with the last of them.
pub(in crate::runtime) struct Handles {
    instance: u32,
    /// Programs that keep kernels of it.
    all_setups: Mutex<Vec<Weak<InternedKernels>>>,
}

impl Handles {
    /// Notes a program that keeps kernels of the device.
    pub(in crate::runtime) fn note(&self, setups: &Arc<InternedKernels>) {
        let mut all_setups = self
            .all_setups
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if !all_setups.iter().any(|f| f.as_ptr() == Arc::as_ptr(setups)) {
            // In place of those that are gone.
            all_setups.retain(|setups| setups.strong_count() > 0);
            all_setups.push(Arc::downgrade(setups));
        }
    }
}

impl Drop for Handles {
    fn drop(&mut self) {
        let all_setups = self
            .all_setups
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        for setups in all_setups.iter().filter_map(Weak::upgrade) {
            setups.release_device(self.instance);
        }
    }
}

struct Inner {
    /// Tells devices apart; not 0.
    id: u32,
    /// Tells values of one device apart, whose options may differ.
    instance: u32,
    name: String,
    target: Target,
    /// Whether the target is that of a GPU, or was asked for.
    has_own_target: bool,
    cache: Cache,
    dump: Dump,
    record: LaunchRecord,
    /// Whether each launch waits, so that an error names the kernel at fault.
    blocking: AtomicBool,
    /// The error after which nothing works any more.
    lost: OnceLock<String>,
    handles: Weak<Handles>,
    backend: Backend,
}

/// What is behind a device.
pub(crate) enum Backend {
    /// The emulator.
    Emulated(Emulated),
    /// A GPU.
    #[cfg(feature = "cuda")]
    Gpu(Gpu),
}

/// The emulator as a device.
pub(crate) struct Emulated {
    memory: Mutex<emu::Memory>,
    /// What a graph records of the stream that the device begins with.
    pub(crate) recording: Arc<Recording>,
    pub(crate) options: emu::Options,
}

impl Emulated {
    /// Its memory. Launches hold it for as long as they run.
    pub(crate) fn memory(&self) -> MutexGuard<'_, emu::Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

thread_local! {
    /// What the last launch of this thread on an emulator did.
    static COUNTS: Cell<emu::Stats> = const { Cell::new(emu::Stats::ZERO) };
}

/// A GPU.
#[cfg(feature = "cuda")]
pub(crate) struct Gpu {
    pub(crate) context: driver::Context,
    pub(crate) stream: Arc<driver::Stream>,
    /// For copies to memory that nothing else knows yet, made when there is one: no graph records it.
    copies: OnceLock<driver::Stream>,
    /// Kernels whose assertions may have failed.
    pub(in crate::runtime) asserting: Asserting,
}

#[cfg(feature = "cuda")]
impl Gpu {
    /// The stream for copies to new memory.
    pub(in crate::runtime) fn copies(&self) -> Result<&driver::Stream, DriverError> {
        if let Some(stream) = self.copies.get() {
            return Ok(stream);
        }
        let stream = driver::Stream::new(&self.context)?;
        Ok(self.copies.get_or_init(|| stream))
    }
}

/// How a device is set up.
#[derive(Clone, Debug)]
pub struct DeviceOptions {
    /// The cache on disk.
    pub cache: Cache,
    /// What kernels are compiled for; else what the GPU is, or sm_80 on the emulator.
    pub target: Option<Target>,
    /// How the emulator runs kernels. Its [`step_limit`](emu::Options::step_limit) bounds the instructions of each launch;
    /// here it is `u64::MAX` if nothing else is said, as a device is to run whole workloads, so that a launch of a kernel
    /// that does not end never returns. A launch that reaches the bound is a [`RuntimeError::Emulator`] which names the
    /// kernel and the line; what it wrote up to there stays, and the device can be used on. A million steps take a
    /// tenth of a second, more or less.
    ///
    /// ```
    /// use tilelift::runtime::{Device, DeviceOptions};
    ///
    /// let mut options = DeviceOptions::from_env();
    /// options.emulator.step_limit = 1_000_000_000;
    /// let device = Device::emulator_with(options);
    /// # assert_eq!(device.name(), "emulator");
    /// ```
    pub emulator: emu::Options,
    /// Whether each launch waits for its end.
    pub blocking: bool,
    /// Where to write what the compiler makes, and where to take edited PTX from.
    pub dump: Dump,
    /// The manifest that every kernel is added to which is made, for [`warm`](crate::warm).
    pub record: LaunchRecord,
}

impl DeviceOptions {
    /// What the environment says: the cache ([`crate::runtime::cache`]), `TILELIFT_LAUNCH_BLOCKING=1`, `TILELIFT_DUMP`,
    /// `TILELIFT_OVERRIDE` and `TILELIFT_RECORD`.
    pub fn from_env() -> DeviceOptions {
        DeviceOptions {
            cache: Cache::from_env(),
            target: None,
            emulator: emulator_options(),
            blocking: environment::switch("TILELIFT_LAUNCH_BLOCKING").unwrap_or(false),
            dump: Dump::from_env(),
            record: LaunchRecord::from_env(),
        }
    }

    /// Nothing of the environment, and no cache on disk.
    pub fn plain() -> DeviceOptions {
        DeviceOptions {
            cache: Cache::off(),
            target: None,
            emulator: emulator_options(),
            blocking: false,
            dump: Dump::default(),
            record: LaunchRecord::off(),
        }
    }
}

/// A device is to run whole workloads, not only tests; [`DeviceOptions::emulator`] says so.
fn emulator_options() -> emu::Options {
    emu::Options {
        step_limit: u64::MAX,
        ..emu::Options::default()
    }
}

impl Device {
    /// The first GPU, or the emulator if there is none. A program with the feature `cuda` that gets the emulator is warned
    /// why by a warning, once.
    pub fn best() -> Device {
        Device::best_with(DeviceOptions::from_env())
    }

    /// [`Device::best`] with options.
    pub fn best_with(options: DeviceOptions) -> Device {
        #[cfg(feature = "cuda")]
        match Device::gpu_with(0, options.clone()) {
            Ok(device) => return device,
            Err(error) => {
                static WARNED: AtomicBool = AtomicBool::new(false);
                if !WARNED.swap(true, Ordering::Relaxed) {
                    crate::runtime::api::warning::warn(&format!(
                        "kernels run on the emulator: {error}"
                    ));
                }
            }
        }
        Device::emulator_with(options)
    }

    /// The emulator, on which a launch may take any time: see [`DeviceOptions::emulator`] for a bound.
    pub fn emulator() -> Device {
        Device::emulator_with(DeviceOptions::from_env())
    }

    /// [`Device::emulator`] with options.
    pub fn emulator_with(options: DeviceOptions) -> Device {
        let backend = Backend::Emulated(Emulated {
            memory: Mutex::new(emu::Memory::new()),
            recording: Arc::default(),
            options: options.emulator.clone(),
        });
        let target = options.target.unwrap_or(Target::SM_80);
        Device::with("emulator".to_owned(), target, options, backend)
    }

    /// The GPU of this number, from 0.
    ///
    /// # Errors
    ///
    /// No driver, no such device, or one that is too old.
    #[cfg(feature = "cuda")]
    pub fn gpu(ordinal: u32) -> Result<Device, RuntimeError> {
        Device::gpu_with(ordinal, DeviceOptions::from_env())
    }

    /// [`Device::gpu`] with options.
    ///
    /// # Errors
    ///
    /// Those of [`Device::gpu`].
    #[cfg(feature = "cuda")]
    pub fn gpu_with(ordinal: u32, options: DeviceOptions) -> Result<Device, RuntimeError> {
        let failed = |error| RuntimeError::Driver {
            kernel: None,
            line: None,
            error: Box::new(error),
        };
        let device = driver::Device::get(ordinal).map_err(failed)?;
        let context = driver::Context::new(&device).map_err(failed)?;
        Device::from_context(context, options)
    }

    /// The GPU of a context that the application made through the driver layer. Keep the value: a kernel is set up for it,
    /// and what another value of the same GPU sets up is loaded anew.
    ///
    /// # Errors
    ///
    /// A device that is too old.
    #[cfg(feature = "cuda")]
    pub fn from_context(
        context: driver::Context,
        options: DeviceOptions,
    ) -> Result<Device, RuntimeError> {
        let failed = |error| RuntimeError::Driver {
            kernel: None,
            line: None,
            error: Box::new(error),
        };
        let (name, capability) = (context.device().name.clone(), context.device().capability);
        let target = options
            .target
            .or_else(|| Target::for_device(capability.major, capability.minor));
        let target = target.ok_or_else(|| RuntimeError::TooOld {
            name: name.clone(),
            capability: capability.to_string(),
        })?;
        let stream = driver::Stream::new(&context).map_err(failed)?;
        let backend = Backend::Gpu(Gpu {
            context,
            stream: Arc::new(stream),
            copies: OnceLock::new(),
            asserting: Asserting::default(),
        });
        Ok(Device::with(name, target, options, backend))
    }

    fn with(name: String, target: Target, options: DeviceOptions, backend: Backend) -> Device {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let instance = NEXT.fetch_add(1, Ordering::Relaxed);
        // All that share a context are one device, as those of one GPU do, unless the application made another context;
        // each emulator is its own.
        let number = match &backend {
            Backend::Emulated(_) => 0x1000 + instance % 0xe000,
            #[cfg(feature = "cuda")]
            Backend::Gpu(gpu) => 1 + gpu.context.number() % 0xfff,
        };
        let handles = Arc::new(Handles {
            instance,
            all_setups: Mutex::default(),
        });
        let device = Device {
            inner: Arc::new(Inner {
                // The complement in the lower half: no number has all the bits of another.
                id: number << 16 | !number & 0xffff,
                instance,
                name,
                has_own_target: options.target.is_some()
                    || !matches!(backend, Backend::Emulated(_)),
                target,
                cache: options.cache,
                dump: options.dump,
                record: options.record,
                blocking: AtomicBool::new(options.blocking),
                lost: OnceLock::new(),
                handles: Arc::downgrade(&handles),
                backend,
            }),
            _handles: Some(handles),
        };
        let mut all = Device::all_alive();
        all.retain(|other| other.strong_count() > 0);
        all.push(Arc::downgrade(&device.inner));
        drop(all);
        device
    }

    /// What there is of all devices.
    fn all_alive() -> MutexGuard<'static, Vec<Weak<Inner>>> {
        static ALL: Mutex<Vec<Weak<Inner>>> = Mutex::new(Vec::new());
        ALL.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The device of a number that memory has which is alive.
    pub(in crate::runtime) fn of_memory(id: u32) -> Option<Device> {
        let all = Device::all_alive();
        let inner = all
            .iter()
            .filter_map(Weak::upgrade)
            .find(|inner| inner.id == id)?;
        Some(Device {
            inner,
            _handles: None,
        })
    }

    /// Lets copies between this GPU and `other` go from one to the other without the host between, and kernels of this one reach the
    /// other's memory; false where the machine has no such way, or one is no GPU. It stays so for the process.
    ///
    /// # Errors
    ///
    /// What the driver reports.
    pub fn enable_peer_access(&self, other: &Device) -> Result<bool, RuntimeError> {
        self.usable()?;
        other.usable()?;
        match (self.backend(), other.backend()) {
            #[cfg(feature = "cuda")]
            (Backend::Gpu(own), Backend::Gpu(other)) if !own.context.same(&other.context) => {
                let enabled = own.context.enable_peer_access(&other.context);
                enabled.map_err(|error| self.failed(None, error))
            }
            _ => Ok(false),
        }
    }

    /// The same for what a program keeps, which is no handle of the device.
    pub(in crate::runtime) fn quiet(&self) -> Device {
        Device {
            inner: self.inner.clone(),
            _handles: None,
        }
    }

    /// What its handles share, if there are any left.
    pub(in crate::runtime) fn handles(&self) -> Option<Arc<Handles>> {
        self.inner.handles.upgrade()
    }

    /// Tells whether there is anything left of it.
    #[cfg(test)]
    pub(in crate::runtime) fn watch(&self) -> impl Fn() -> bool + use<> {
        let inner = Arc::downgrade(&self.inner);
        move || inner.strong_count() > 0
    }

    /// Its name: the product's, or `emulator`.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Whether it is a GPU.
    pub fn is_gpu(&self) -> bool {
        !matches!(self.inner.backend, Backend::Emulated(_))
    }

    /// What kernels are compiled for.
    pub fn target(&self) -> Target {
        self.inner.target
    }

    /// Whether its target is that of a GPU, or was asked for.
    pub(in crate::runtime) fn has_own_target(&self) -> bool {
        self.inner.has_own_target
    }

    /// Whether it runs code for a target.
    pub(in crate::runtime) fn runs(&self, target: Target) -> bool {
        let (major, minor) = match self.backend() {
            Backend::Emulated(_) => (self.target().sm / 10, self.target().sm % 10),
            #[cfg(feature = "cuda")]
            Backend::Gpu(gpu) => {
                let capability = gpu.context.device().capability;
                (capability.major, capability.minor)
            }
        };
        target.runs_on(major, minor)
    }

    /// Its cache on disk.
    pub fn cache(&self) -> &Cache {
        &self.inner.cache
    }

    /// Has each launch wait for its end, or not: then an error names the kernel at fault.
    pub fn set_blocking(&self, blocking: bool) {
        self.inner.blocking.store(blocking, Ordering::Relaxed);
    }

    /// The stream that the device begins with. All who call this share it: record a graph in a stream of your own
    /// ([`Stream::new`]), else what other threads do in this one meanwhile fails, or becomes part of the graph.
    pub fn stream(&self) -> Stream {
        Stream::of_device(self)
    }

    /// A kernel of a program; the name may be left out if there is only one. What its `@triton.autotune` and
    /// `@triton.heuristics` say is left to the caller: `Device::autotuned` gives a kernel that follows them.
    ///
    /// # Errors
    ///
    /// There is no such kernel.
    pub fn kernel<'n>(
        &self,
        program: &Program,
        name: impl Into<Option<&'n str>>,
    ) -> Result<Kernel, RuntimeError> {
        Kernel::new(self, program, name.into())
    }

    /// The driver's context; none of the emulator.
    #[cfg(feature = "cuda")]
    pub fn as_driver(&self) -> Option<&driver::Context> {
        self.as_gpu().map(|gpu| &gpu.context)
    }

    /// The GPU; none of the emulator.
    #[cfg(feature = "cuda")]
    pub(in crate::runtime) fn as_gpu(&self) -> Option<&Gpu> {
        match &self.inner.backend {
            Backend::Emulated(_) => None,
            Backend::Gpu(gpu) => Some(gpu),
        }
    }

    /// Tells values of one device apart.
    pub(crate) fn instance(&self) -> u32 {
        self.inner.instance
    }

    /// Tells devices apart.
    #[inline]
    pub(crate) fn id(&self) -> u32 {
        self.inner.id
    }

    #[inline]
    pub(crate) fn backend(&self) -> &Backend {
        &self.inner.backend
    }

    /// The emulator behind it; none of a GPU.
    pub(crate) fn as_emulated(&self) -> Option<&Emulated> {
        match &self.inner.backend {
            Backend::Emulated(emulated) => Some(emulated),
            #[cfg(feature = "cuda")]
            Backend::Gpu(_) => None,
        }
    }

    /// The first byte of memory that nobody wrote, as the emulator knows; none on a GPU.
    pub(crate) fn first_unwritten(&self, memory: &Pointer<'_>) -> Option<usize> {
        let read = self
            .as_emulated()?
            .memory()
            .read(memory.address(), memory.bytes());
        match read {
            Err(emu::MemoryError::Uninitialised { address }) => {
                usize::try_from(address - memory.address()).ok()
            }
            _ => None,
        }
    }

    /// What the last launch from this thread did on the emulator: instructions, and sectors of memory touched. None on a GPU.
    ///
    /// The numbers say what a kernel asks for, not how long a GPU takes for it; the guide's page "my kernel is slow" has an example.
    pub fn emulator_counts(&self) -> Option<emu::Stats> {
        self.as_emulated()?;
        Some(COUNTS.get())
    }

    /// Notes what a launch of this thread did.
    pub(crate) fn note_counts(stats: emu::Stats) {
        COUNTS.set(stats);
    }

    pub(in crate::runtime) fn record(&self) -> &LaunchRecord {
        &self.inner.record
    }

    pub(crate) fn dump(&self) -> &Dump {
        &self.inner.dump
    }

    #[inline]
    pub(crate) fn is_blocking(&self) -> bool {
        self.inner.blocking.load(Ordering::Relaxed)
    }

    /// An error if nothing works on it any more.
    #[inline]
    pub(crate) fn usable(&self) -> Result<(), RuntimeError> {
        match self.inner.lost.get() {
            None => Ok(()),
            Some(first) => Err(RuntimeError::DeviceLost {
                first: first.clone(),
            }),
        }
    }

    /// The error of a call of the driver; one that stays is remembered.
    #[cfg(feature = "cuda")]
    #[cold]
    pub(crate) fn failed(&self, kernel: Option<&str>, error: DriverError) -> RuntimeError {
        let sticky = error.is_sticky();
        let error = RuntimeError::Driver {
            kernel: kernel.map(str::to_owned),
            line: None,
            error: Box::new(error),
        };
        if sticky {
            let _ = self.inner.lost.set(error.to_string());
        }
        error
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Device({}, {})", self.name(), self.target())
    }
}
