//! `tilelift cache`.

use std::io::ErrorKind;
use std::path::Path;
use std::process::ExitCode;
use std::time::SystemTime;

use super::args::CacheAction;
use super::{Failure, Result, say, write_out};
use crate::runtime::cache::{Cache, EntryInfo};

/// Looks after the cache that the environment names.
pub(super) fn cache(action: &CacheAction) -> Result<ExitCode> {
    let cache = Cache::from_env();
    let Some(settings) = cache.settings() else {
        return Err(Failure::Usage("the cache is off".to_owned()));
    };
    let dir = settings.dir.clone();
    // A folder that is not there is an empty cache; one that cannot be read is none.
    if let Err(error) = std::fs::read_dir(&dir)
        && error.kind() != ErrorKind::NotFound
    {
        return Err(Failure::Io { path: dir, error });
    }
    match action {
        CacheAction::List => {
            let entries = cache.entries();
            let mut text: String = entries.iter().map(line).collect();
            let bytes: u64 = entries.iter().map(|entry| entry.bytes).sum();
            text += &format!(
                "{} entries, {bytes} bytes, in {}\n",
                entries.len(),
                dir.display()
            );
            if let (count @ 1.., bytes) = cache.tuned() {
                text += &format!("{count} kernels tuned, {bytes} bytes\n");
            }
            write_out(None, &text)?;
            Ok(ExitCode::SUCCESS)
        }
        CacheAction::Verify => {
            let (count, damaged) = (cache.entries().len(), cache.verify());
            for (entry, damage) in &damaged {
                say(&format!("{}: {damage}", entry.path.display()));
            }
            write_out(
                None,
                &format!("{count} entries, {} damaged\n", damaged.len()),
            )?;
            Ok(ExitCode::from(u8::from(!damaged.is_empty())))
        }
        CacheAction::Clear => {
            let cleared = cache.clear();
            let (count, bytes) =
                cleared.map_err(|error| Failure::Input(format!("error: {error}")))?;
            write_out(None, &format!("{count} entries removed, {bytes} bytes\n"))?;
            Ok(ExitCode::SUCCESS)
        }
        CacheAction::Export { dir: to } => {
            let failed = |error| Failure::Io {
                path: to.clone(),
                error,
            };
            std::fs::create_dir_all(to).map_err(failed)?;
            if is_same(to, &dir) {
                return Err(Failure::Usage(format!(
                    "{} is the cache itself; name another folder",
                    to.display()
                )));
            }
            let damaged = cache.verify();
            let exported = cache.export(to).map_err(failed)?;
            for (entry, damage) in &damaged {
                say(&format!("{}: left out: {damage}", entry.path.display()));
            }
            write_out(
                None,
                &format!("{exported} entries copied to {}\n", to.display()),
            )?;
            Ok(ExitCode::from(u8::from(!damaged.is_empty())))
        }
    }
}

/// Whether two paths lead to one folder.
fn is_same(a: &Path, b: &Path) -> bool {
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

/// A line of the list.
fn line(entry: &EntryInfo) -> String {
    let age = SystemTime::now()
        .duration_since(entry.used)
        .unwrap_or_default();
    let minutes = age.as_secs() / 60;
    let age = match minutes {
        0..=119 => format!("{minutes} min"),
        120..=2879 => format!("{} h", minutes / 60),
        _ => format!("{} d", minutes / 1440),
    };
    let (kind, bytes) = (entry.kind.name(), entry.bytes);
    format!("{kind:6} {bytes:>9} {age:>8} {}\n", entry.path.display())
}
