//! `tilelift cache`.

use std::io::ErrorKind;
use std::path::Path;
use std::process::ExitCode;
use std::time::SystemTime;

use comfy_table::{CellAlignment, Table, presets};

use super::args::CacheAction;
use super::{Failure, Result, say, write_out};
use crate::compile::ParamMeta;
use crate::runtime::cache::{Cache, EntryInfo, Kind};
use crate::runtime::stored::Stored;

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
            let mut text = table(&cache, &entries);
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

/// What there is, and of which kernels it is.
fn table(cache: &Cache, entries: &[EntryInfo]) -> String {
    if entries.is_empty() {
        return String::new();
    }
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header([
        "kernel",
        "signature",
        "target",
        "kind",
        "bytes",
        "used",
        "file",
    ]);
    for entry in entries {
        let [kernel, signature, target] = about(cache, entry);
        let (kind, bytes) = (entry.kind.name().to_owned(), entry.bytes.to_string());
        let file = entry.path.display().to_string();
        table.add_row([kernel, signature, target, kind, bytes, age(entry), file]);
    }
    if let Some(bytes) = table.column_mut(4) {
        bytes.set_cell_alignment(CellAlignment::Right);
    }
    // Cells have a space on both sides.
    let line = |line: String| format!("{}\n", line.strip_prefix(' ').unwrap_or(&line).trim_end());
    table.lines().map(line).collect()
}

/// The kernel that an entry is of, its signature and target, as far as the entry says so.
fn about(cache: &Cache, entry: &EntryInfo) -> [String; 3] {
    let unknown = || "-".to_owned();
    let Ok(contents) = cache.read(entry) else {
        return ["(damaged)".to_owned(), unknown(), unknown()];
    };
    match entry.kind {
        Kind::Cubin => {
            let name = entry_point(&contents).map(str::to_owned);
            [name.unwrap_or_else(unknown), unknown(), unknown()]
        }
        _ => match Stored::decode(&contents) {
            Some(stored) => {
                let meta = &stored.meta;
                let param = |param: &ParamMeta| format!("{}: {}", param.name, param.ty);
                let constant = |(name, value): &(String, String)| format!("{name}={value}");
                let params = meta.params.iter().map(param);
                let all = params.chain(stored.constants.iter().map(constant));
                let signature = all.collect::<Vec<_>>().join(", ");
                [meta.name.clone(), signature, meta.target.to_string()]
            }
            None => [unknown(), unknown(), unknown()],
        },
    }
}

/// The name of a kernel in machine code: that of its section in the ELF file.
fn entry_point(code: &[u8]) -> Option<&str> {
    const SECTION: &[u8] = b"\0.text.";
    let at = code
        .windows(SECTION.len())
        .position(|part| part == SECTION)?;
    let name = code.get(at + SECTION.len()..)?;
    let end = name.iter().position(|&byte| byte == 0)?;
    std::str::from_utf8(&name[..end]).ok()
}

/// The time since an entry was used.
fn age(entry: &EntryInfo) -> String {
    let age = SystemTime::now()
        .duration_since(entry.used)
        .unwrap_or_default();
    let minutes = age.as_secs() / 60;
    match minutes {
        0..=119 => format!("{minutes} min"),
        120..=2879 => format!("{} h", minutes / 60),
        _ => format!("{} d", minutes / 1440),
    }
}

#[cfg(test)]
mod tests {
    use super::entry_point;

    #[test]
    fn machine_code_names_its_kernel() {
        let strings = b"\x7fELF..\0.shstrtab\0.text.softmax\0.nv.info\0";
        assert_eq!(entry_point(strings), Some("softmax"));
        for none in [
            &b""[..],
            b"\0.text.",
            b"\0.text.abc",
            b".text.abc\0",
            b"\0.text.\xff\0",
        ] {
            assert_eq!(entry_point(none), None);
        }
    }
}
