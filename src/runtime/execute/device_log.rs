//! What kernels print and assert on a GPU, and the assertions that failed: they are found when something waits.
//!
//! A kernel with a log is launched as any other, and nobody looks into its log then. A device knows the logs of kernels that
//! assert; what waits for a stream, or reads a buffer, asks each for the word that a failed assertion leaves, which later
//! launches and runs of graphs do not take back.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::device_print::{self, Log, Site, What};
use crate::driver::{DriverError, Module, RawPtr, Stream};

use crate::runtime::api::device::Device;
use crate::runtime::api::error::RuntimeError;

/// The log of a loaded kernel, which stays loaded as long as this is there.
#[derive(Debug)]
pub(in crate::runtime) struct DeviceLog {
    kernel: String,
    /// The file that the sites' lines are lines of.
    file: Option<String>,
    sites: Vec<Site>,
    asserts: bool,
    address: u64,
    bytes: usize,
    _module: Module,
}

/// The logs of a device's kernels that assert.
#[derive(Debug, Default)]
pub(in crate::runtime) struct Asserting {
    logs: Mutex<Vec<Watched>>,
}

#[derive(Debug)]
struct Watched {
    log: Weak<DeviceLog>,
    /// The same, from a launch until somebody waits: the kernel may be dropped in between.
    launched: Option<Arc<DeviceLog>>,
}

impl DeviceLog {
    /// The log of a module; none if it has none.
    pub(in crate::runtime) fn new(
        module: &Module,
        kernel: &str,
        file: Option<&str>,
        sites: &[Site],
    ) -> Result<Option<Arc<DeviceLog>>, DriverError> {
        Ok(module.global(device_print::SYMBOL)?.map(|place| {
            Arc::new(DeviceLog {
                kernel: kernel.to_owned(),
                file: file.map(str::to_owned),
                sites: sites.to_vec(),
                asserts: sites.iter().any(|site| site.what == What::Assert),
                address: place.address(),
                bytes: place.bytes(),
                _module: module.clone(),
            })
        }))
    }

    /// Makes room for what a launch prints, and remembers that there was one.
    #[cold]
    pub(in crate::runtime) fn begin(
        self: &Arc<Self>,
        device: &Device,
        stream: &Stream,
    ) -> Result<(), RuntimeError> {
        let counter = RawPtr::from_parts(self.address, device_print::COUNTER_BYTES as usize);
        let cleared = counter.fill(stream, 0);
        cleared.map_err(|error| device.failed(Some(&self.kernel), error))?;
        if let Some(gpu) = device.as_gpu().filter(|_| self.asserts) {
            gpu.asserting.launched(self);
        }
        Ok(())
    }

    /// All of it.
    pub(in crate::runtime) fn read(&self, stream: &Stream) -> Result<Vec<u8>, DriverError> {
        let mut log = vec![0; self.bytes];
        RawPtr::from_parts(self.address, self.bytes).read(stream, &mut log)?;
        Ok(log)
    }

    /// The assertions that failed since this was last asked.
    fn failed(&self, stream: &Stream) -> Result<Option<Vec<String>>, DriverError> {
        let mut header = [0_u8; device_print::HEADER_BYTES as usize];
        RawPtr::from_parts(self.address, header.len()).read(stream, &mut header)?;
        if device_print::failed_site(&header).is_none() {
            return Ok(None);
        }
        let log = self.read(stream)?;
        let at = self.address + u64::from(device_print::COUNTER_BYTES);
        RawPtr::from_parts(at, 4).fill(stream, 0)?;
        stream.synchronize()?;
        Ok(Log::failed(&log, &self.sites, self.file.as_deref()))
    }
}

impl Asserting {
    fn launched(&self, log: &Arc<DeviceLog>) {
        let mut logs = self.logs.lock().unwrap_or_else(PoisonError::into_inner);
        match logs
            .iter_mut()
            .find(|one| one.log.as_ptr() == Arc::as_ptr(log))
        {
            Some(watched) => watched.launched = Some(log.clone()),
            None => logs.push(Watched {
                log: Arc::downgrade(log),
                launched: Some(log.clone()),
            }),
        }
    }
}

impl Device {
    /// An error if an assertion failed in what ran by now.
    pub(in crate::runtime) fn check_asserts(&self) -> Result<(), RuntimeError> {
        let Some(gpu) = self.as_gpu() else {
            return Ok(());
        };
        let mut logs = gpu
            .asserting
            .logs
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        for watched in logs.iter_mut() {
            let Some(log) = watched.launched.take().or_else(|| watched.log.upgrade()) else {
                continue;
            };
            // A stream that no graph records.
            let failed = gpu.copies().and_then(|stream| log.failed(stream));
            let failed = failed.map_err(|error| self.failed(Some(&log.kernel), error))?;
            if let Some(failures) = failed {
                return Err(RuntimeError::Assertion {
                    kernel: log.kernel.clone(),
                    failures,
                });
            }
        }
        // Those that are gone cannot fail any more.
        logs.retain(|watched| watched.log.strong_count() > 0);
        Ok(())
    }
}
