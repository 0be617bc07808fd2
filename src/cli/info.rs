//! `tilelift info`: version, targets, driver and devices, cache.

use std::fmt::Write as _;
use std::process::ExitCode;

use super::{Result, write_out};
use crate::runtime::cache::{Cache, Settings};
use crate::settings::Target;

/// Shows what there is: version, targets, driver and devices, cache.
pub(super) fn info() -> Result<ExitCode> {
    let mut out = format!("tilelift {}\n", env!("CARGO_PKG_VERSION"));
    out += "targets:";
    for target in Target::ALL {
        // Writing to a string does not fail.
        let _ = write!(out, " {target} (PTX {})", target.min_ptx());
    }
    out.push('\n');
    devices(&mut out);
    match Settings::from_env() {
        Some(settings) => {
            let (dir, limit) = (settings.dir.display().to_string(), settings.limit >> 20);
            let shared = settings.shared.as_ref().map(|shared| {
                let writes = if shared.writes {
                    ""
                } else {
                    ", which is only read"
                };
                format!("shared cache: {:?}{writes}\n", shared.store)
            });
            let cache = Cache::new(settings);
            let entries = cache.entries();
            let (tuned, tuned_bytes) = cache.tuned();
            let bytes: u64 = entries.iter().map(|entry| entry.bytes).sum();
            let (count, kib) = (entries.len(), (bytes + tuned_bytes).div_ceil(1024));
            let _ = writeln!(
                out,
                "cache: {dir}, {count} entries, {tuned} kernels tuned, {kib} KiB of {limit} MiB"
            );
            out += &shared.unwrap_or_default();
        }
        None => out += "cache: off\n",
    }
    write_out(None, &out)?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(feature = "cuda")]
fn devices(out: &mut String) {
    use crate::driver::{Device, Driver, DriverError};

    let list = |out: &mut String| -> std::result::Result<(), DriverError> {
        let driver = Driver::load()?;
        let (version, ptx) = (driver.version(), driver.newest_ptx());
        *out += &format!("driver: CUDA {version}, PTX up to {ptx}\n");
        for ordinal in 0..Device::count()? {
            let device = Device::get(ordinal)?;
            let capability = device.capability;
            let target = Target::for_device(capability.major, capability.minor);
            let target = target.map_or("no target".to_owned(), |t| t.to_string());
            *out += &format!(
                "device {ordinal}: {}, {capability} ({target}), {} multiprocessors, {} MiB\n",
                device.name,
                device.multiprocessors,
                device.memory >> 20,
            );
        }
        Ok(())
    };
    if let Err(error) = list(out) {
        *out += &format!("driver: {error}; kernels run on the emulator\n");
    }
}

#[cfg(not(feature = "cuda"))]
fn devices(out: &mut String) {
    *out += "driver: built without the feature `cuda`; kernels run on the emulator\n";
}
