//! `tilelift cache`: the entries of the cache on disk listed, checked, copied and removed.

use std::io::ErrorKind;
use std::path::Path;
use std::process::ExitCode;
use std::time::SystemTime;

use super::args::CacheAction;
use super::progress::Progress;
use super::warm::insist;
use super::{Failure, Result, say, table, write_out};
use crate::compile::ParamMeta;
use crate::runtime::cache::{Cache, EntryInfo, EntryKind};
use crate::runtime::stored::{Stored, decode_asked};
use crate::text::quote::quoted_within;

/// Looks after the cache that the environment names.
pub(super) fn cache(action: &CacheAction) -> Result<ExitCode> {
    let cache = Cache::from_env();
    let Some(settings) = cache.settings() else {
        return Err(Failure::Usage("the cache is off".to_owned()));
    };
    // What is removed needs no secret.
    if !matches!(action, CacheAction::Clear) {
        insist("TILELIFT_CACHE_KEY", settings.secret.is_some())?;
    }
    let dir = settings.dir.clone();
    // A folder that is not there is an empty cache, unless somebody counts on what is in it; one that cannot be read is none.
    let may_miss = matches!(action, CacheAction::List | CacheAction::Clear);
    if let Err(error) = std::fs::read_dir(&dir)
        && !(may_miss && error.kind() == ErrorKind::NotFound)
    {
        return Err(Failure::Io { path: dir, error });
    }
    // It names its file.
    let failed = |error: std::io::Error| Failure::Input(format!("error: {error}"));
    match action {
        CacheAction::List => {
            let entries = cache.entries();
            let mut text = listed(&cache, &entries);
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
            let count = cache.entries().len();
            let progress = Progress::new(format!("checking {count} entries"));
            let damaged = cache.verify();
            drop(progress);
            for (path, damage) in &damaged {
                say(&format!("{}: {damage}", shown(path)));
            }
            write_out(
                None,
                &format!("{count} entries, {} damaged\n", damaged.len()),
            )?;
            Ok(ExitCode::from(u8::from(!damaged.is_empty())))
        }
        CacheAction::Clear => {
            let (count, bytes) = cache.clear().map_err(failed)?;
            write_out(None, &format!("{count} entries removed, {bytes} bytes\n"))?;
            Ok(ExitCode::SUCCESS)
        }
        CacheAction::Export { dir: to } => {
            if is_same(to, &dir) {
                return Err(Failure::Usage(format!(
                    "{} is the cache itself; name another folder",
                    to.display()
                )));
            }
            let count = cache.entries().len();
            let progress = Progress::new(format!("checking {count} entries"));
            let damaged = cache.verify();
            progress.set(format!("copying {count} entries"));
            let exported = cache.export(to).map_err(failed)?;
            drop(progress);
            for (path, damage) in &damaged {
                say(&format!("{}: left out: {damage}", shown(path)));
            }
            if cache.tuned().0 > 0 && cache.tune_dir().is_none() {
                say(
                    "the autotuner's results are left out: others may write to the cache, and these are not authenticated",
                );
            }
            write_out(
                None,
                &format!("{exported} entries copied to {}\n", to.display()),
            )?;
            Ok(ExitCode::from(u8::from(!damaged.is_empty())))
        }
    }
}

/// A path in one line, with nothing in it that a terminal would obey: in a cache that others write to, they name files.
fn shown(path: &Path) -> String {
    quoted_within(&path.display().to_string(), usize::MAX)
}

/// Whether two paths lead to one folder.
fn is_same(a: &Path, b: &Path) -> bool {
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

/// What there is, and of which kernels it is.
fn listed(cache: &Cache, entries: &[EntryInfo]) -> String {
    if entries.is_empty() {
        return String::new();
    }
    let header = [
        "kernel",
        "signature",
        "target",
        "kind",
        "bytes",
        "used",
        "file",
    ];
    let mut about: Vec<[String; 3]> = entries.iter().map(|entry| about(cache, entry)).collect();
    let kernels: Vec<[String; 3]> = entries
        .iter()
        .zip(&about)
        .filter(|(entry, _)| entry.kind == EntryKind::Kernel)
        .map(|(_, about)| about.clone())
        .collect();
    for (entry, about) in entries.iter().zip(&mut about) {
        if entry.kind == EntryKind::Cubin {
            about[1] = signature_of(about, &kernels);
        }
    }
    let rows = entries.iter().zip(about).map(|(entry, about)| {
        let (kind, bytes) = (entry.kind.name().to_owned(), entry.bytes.to_string());
        let file = shown(&entry.path);
        let mut row = about.to_vec();
        row.extend([kind, bytes, age(entry), file]);
        row
    });
    table::table(&header.map(str::to_owned), rows, |at| at == 4)
}

/// The kernel that an entry is of, its signature and target, as far as the entry says so.
fn about(cache: &Cache, entry: &EntryInfo) -> [String; 3] {
    let Ok(contents) = cache.read(entry) else {
        return ["(damaged)".to_owned(), unknown(), unknown()];
    };
    match entry.kind {
        EntryKind::Cubin => {
            let name = entry_point(&contents).map(str::to_owned);
            let target = architecture(&contents).map(|sm| format!("sm_{sm}"));
            [
                name.unwrap_or_else(unknown),
                unknown(),
                target.unwrap_or_else(unknown),
            ]
        }
        EntryKind::Asked => match decode_asked(&contents) {
            Some((kernel, _)) => [kernel, unknown(), unknown()],
            None => [unknown(), unknown(), unknown()],
        },
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

fn unknown() -> String {
    "-".to_owned()
}

/// The signature of machine code, which does not say it itself: that of the kernels of its name, if they agree.
fn signature_of([name, _, _]: &[String; 3], kernels: &[[String; 3]]) -> String {
    let mut signatures: Vec<&str> = kernels
        .iter()
        .filter(|[other, ..]| other == name)
        .map(|[_, signature, _]| signature.as_str())
        .collect();
    signatures.sort_unstable();
    signatures.dedup();
    match signatures[..] {
        [] => unknown(),
        [signature] => signature.to_owned(),
        _ => format!("one of {} of the kernel", signatures.len()),
    }
}

/// The architecture that machine code is for: of the flags of its ELF file, whose place in them the version of the ABI decides.
fn architecture(code: &[u8]) -> Option<u8> {
    const FLAGS: usize = 48;
    let flags = code.get(FLAGS..FLAGS + 2)?;
    match code.get(8)? {
        7 => Some(flags[0]),
        8 => Some(flags[1]),
        _ => None,
    }
    .filter(|_| code.starts_with(b"\x7fELF"))
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
    use super::{architecture, entry_point, signature_of};

    #[test]
    fn machine_code_names_its_architecture() {
        // As ptxas of CUDA 12 and of CUDA 13 write it for sm_90.
        for (abi, flags, expected) in [
            (7, [0x5a, 0x05], Some(90)),
            (8, [0x04, 0x5a], Some(90)),
            (9, [0x04, 0x5a], None),
        ] {
            let mut code = vec![0; 64];
            code[..4].copy_from_slice(b"\x7fELF");
            code[8] = abi;
            code[48..50].copy_from_slice(&flags);
            assert_eq!(architecture(&code), expected);
        }
        assert_eq!(architecture(b"\x7fELF"), None);
    }

    #[test]
    fn kernels_of_one_name_agree_or_are_counted() {
        let text = |name: &str, signature: &str| [name, signature, "sm_80"].map(str::to_owned);
        let kernels = [
            text("a", "n: i32"),
            text("a", "n: i32"),
            text("b", "x"),
            text("b", "y"),
        ];
        let of = |name: &str| signature_of(&text(name, "-"), &kernels);
        assert_eq!(
            [of("a"), of("b"), of("c")],
            ["n: i32", "one of 2 of the kernel", "-"]
        );
    }

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
