//! The driver itself and the devices it knows.

use super::error::{DriverError, check, of_cust};
use super::version::{Capability, CudaVersion, PtxVersion};
use super::{ffi, fork, loader};
use core::ffi::{c_int, c_uint};
use cust::device::Device as CustDevice;
use std::sync::OnceLock;

/// Proof that the CUDA driver was found and started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Driver {
    version: CudaVersion,
}

impl Driver {
    /// Finds and starts the driver; later calls repeat the first answer.
    ///
    /// # Errors
    ///
    /// [`DriverError::NoDriver`] or [`DriverError::NoDevice`] where there is nothing to run on.
    pub fn load() -> Result<Driver, DriverError> {
        static ANSWER: OnceLock<Result<Driver, DriverError>> = OnceLock::new();
        fork::check()?;
        ANSWER.get_or_init(Driver::start).clone()
    }

    /// Does the work of [`Driver::load`].
    fn start() -> Result<Driver, DriverError> {
        loader::load().map_err(|reason| DriverError::NoDriver {
            reason: reason.to_owned(),
        })?;
        // SAFETY: takes a number, which has to be 0, and may be called at any time.
        let code = unsafe { ffi::cuInit(0) };
        if code == ffi::NO_DEVICE {
            return Err(DriverError::NoDevice);
        }
        check("cuInit", code)?;
        fork::watch();
        let mut version = 0;
        // SAFETY: writes one integer.
        let code = unsafe { ffi::cuDriverGetVersion(&raw mut version) };
        check("cuDriverGetVersion", code)?;
        Ok(Driver {
            version: CudaVersion(u32::try_from(version).unwrap_or(0)),
        })
    }

    /// The version of CUDA that the driver implements.
    #[must_use]
    pub fn version(self) -> CudaVersion {
        self.version
    }

    /// The newest PTX that the driver takes.
    #[must_use]
    pub fn newest_ptx(self) -> PtxVersion {
        self.version.newest_ptx()
    }
}

/// A GPU and its limits, read once.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Device {
    /// The number of the device among those that this process may use.
    pub ordinal: u32,
    /// The product's name.
    pub name: String,
    /// The compute capability.
    pub capability: Capability,
    /// The driver that runs the device.
    pub driver: Driver,
    /// How many multiprocessors it has.
    pub multiprocessors: u32,
    /// Bytes of device memory.
    pub memory: usize,
    /// Bytes of the second-level cache.
    pub l2_bytes: u32,
    /// Bytes of shared memory that a block may have after asking for it.
    pub shared_per_block: u32,
    /// Bytes of shared memory of a multiprocessor.
    pub shared_per_multiprocessor: u32,
    /// Bytes of shared memory that the system keeps of each resident block's.
    pub shared_reserved: u32,
    /// 32-bit registers of a multiprocessor.
    pub registers_per_multiprocessor: u32,
    /// Threads that can be resident on a multiprocessor.
    pub threads_per_multiprocessor: u32,
    /// Its highest clock, in kHz; 0 where the driver does not say.
    pub clock_khz: u32,
    /// That of its memory.
    pub memory_clock_khz: u32,
    /// Bits that its memory moves at once; 0 where the driver does not say.
    pub memory_bus_bits: u32,
    /// The largest grid, by axis.
    pub grid: [u32; 3],
    /// The same device for `cust`.
    pub(super) cust: CustDevice,
}

impl Device {
    /// How many devices this process may use.
    ///
    /// # Errors
    ///
    /// Those of [`Driver::load`].
    pub fn count() -> Result<u32, DriverError> {
        Driver::load()?;
        CustDevice::num_devices().map_err(of_cust("cuDeviceGetCount"))
    }

    /// The device with the number `ordinal`, from 0.
    ///
    /// # Errors
    ///
    /// [`DriverError::DeviceOrdinal`] if there are fewer; those of [`Driver::load`].
    pub fn get(ordinal: u32) -> Result<Device, DriverError> {
        let driver = Driver::load()?;
        let count = Device::count()?;
        if ordinal >= count {
            return Err(DriverError::DeviceOrdinal { ordinal, count });
        }
        let cust = CustDevice::get_device(ordinal).map_err(of_cust("cuDeviceGet"))?;
        let raw = cust.as_raw();
        // The numbers are those of `CUdevice_attribute`; `cust` 0.3.2 stops at 91.
        Ok(Device {
            ordinal,
            name: cust.name().map_err(of_cust("cuDeviceGetName"))?,
            capability: Capability {
                major: attribute(raw, 75)?,
                minor: attribute(raw, 76)?,
            },
            driver,
            multiprocessors: attribute(raw, 16)?,
            memory: (cust.total_memory()).map_err(of_cust("cuDeviceTotalMem"))?,
            l2_bytes: attribute(raw, 38)?,
            shared_per_block: attribute(raw, 97)?,
            shared_per_multiprocessor: attribute(raw, 81)?,
            // Since CUDA 11; an older driver runs devices that reserve nothing.
            shared_reserved: attribute(raw, 111).unwrap_or(0),
            registers_per_multiprocessor: attribute(raw, 82)?,
            threads_per_multiprocessor: attribute(raw, 39)?,
            clock_khz: attribute(raw, 13).unwrap_or(0),
            memory_clock_khz: attribute(raw, 36).unwrap_or(0),
            memory_bus_bits: attribute(raw, 37).unwrap_or(0),
            grid: [attribute(raw, 5)?, attribute(raw, 6)?, attribute(raw, 7)?],
            cust,
        })
    }

    /// All devices.
    ///
    /// # Errors
    ///
    /// Those of [`Device::get`].
    pub fn all() -> Result<Vec<Device>, DriverError> {
        (0..Device::count()?).map(Device::get).collect()
    }
}

/// The attribute with the number `which`; none that is asked for can be negative.
fn attribute(raw: c_int, which: c_uint) -> Result<u32, DriverError> {
    let mut value = 0;
    // SAFETY: the handle came from the driver; writes one integer.
    let code = unsafe { ffi::cuDeviceGetAttribute(&raw mut value, which, raw) };
    check("cuDeviceGetAttribute", code)?;
    Ok(u32::try_from(value).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_without_a_driver_says_so() {
        match Driver::load() {
            Err(DriverError::NoDriver { reason }) => {
                assert!(reason.contains("libcuda.so.1"), "{reason}");
                assert_eq!(Device::count(), Err(DriverError::NoDriver { reason }));
                assert!(Device::get(0).is_err());
            }
            Err(DriverError::NoDevice) => assert_eq!(Device::count(), Err(DriverError::NoDevice)),
            Err(other) => panic!("{other}"),
            Ok(driver) => {
                let devices = Device::all().expect("the driver started");
                assert!(!devices.is_empty(), "otherwise the driver reports NoDevice");
                assert!(driver.newest_ptx() >= PtxVersion { major: 6, minor: 3 });
                let count = devices.len() as u32;
                assert_eq!(
                    Device::get(count),
                    Err(DriverError::DeviceOrdinal {
                        ordinal: count,
                        count
                    })
                );
            }
        }
    }
}
