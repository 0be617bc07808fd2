//! Machine code by `ptxas`, a process for each kernel.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::runtime::warn_once;
use crate::settings::Target;

/// Why there is no machine code.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PtxasError {
    /// The program cannot be started.
    #[error("{program} cannot be started: {error}")]
    Start {
        /// As it was named.
        program: String,
        /// Why not.
        error: io::Error,
    },
    /// A file of ours cannot be written or read.
    #[error("{}: {error}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// It took too long, and was stopped.
    #[error("ptxas had not ended after {} s and was stopped", .0.as_secs())]
    Late(Duration),
    /// It refused the PTX.
    #[error("ptxas: {0}")]
    Refused(String),
}

/// The program: what `TILELIFT_PTXAS` names, else the path's.
fn program() -> OsString {
    std::env::var_os("TILELIFT_PTXAS").unwrap_or_else(|| "ptxas".into())
}

/// Whether the program can be started. If not, and somebody has named it, that is a warning.
pub(super) fn is_there() -> bool {
    let program = program();
    let is_there = answers(&program, Duration::from_secs(30));
    if !is_there && std::env::var_os("TILELIFT_PTXAS").is_some() {
        let program = program.to_string_lossy();
        warn_once(&format!(
            "TILELIFT_PTXAS: {program} cannot be started, or fails or hangs with --version; machine code is left to the driver of the GPU"
        ));
    }
    is_there
}

/// Whether a program says its version in time.
fn answers(program: &OsStr, limit: Duration) -> bool {
    let child = Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let ended = child.and_then(|mut child| wait(&mut child, Some(limit)));
    ended.is_ok_and(|status| status.is_some_and(|status| status.success()))
}

/// The machine code of a text for a target, with lines of the source if there are some and `lines`.
pub(crate) fn assemble(
    ptx: &str,
    target: Target,
    lines: bool,
    limit: Option<Duration>,
) -> Result<Vec<u8>, PtxasError> {
    let scratch = Scratch::new()?;
    let [from, to, log] = ["ptx", "cubin", "log"].map(|name| scratch.file(name));
    std::fs::write(&from, ptx).map_err(io(&from))?;
    let told = File::create(&log).map_err(io(&log))?;
    let program = program();
    let child = Command::new(&program)
        .arg(format!("-arch={target}"))
        .args(lines.then_some("-lineinfo"))
        .arg("-o")
        .args([&to, &from])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(told)
        .spawn();
    let mut child = child.map_err(|error| start(&program, error))?;
    let ended = wait(&mut child, limit).map_err(|error| start(&program, error))?;
    match ended {
        None => Err(PtxasError::Late(limit.unwrap_or_default())),
        Some(status) if status.success() => {
            let code = std::fs::read(&to).map_err(io(&to))?;
            match code.starts_with(b"\x7fELF") {
                true => Ok(code),
                false => Err(PtxasError::Refused(
                    "what it wrote is no machine code".to_owned(),
                )),
            }
        }
        Some(status) => {
            let log = std::fs::read(&log).unwrap_or_default();
            let log = String::from_utf8_lossy(&log).trim_end().to_owned();
            Err(PtxasError::Refused(match log.is_empty() {
                true => format!("it ended without a word ({status})"),
                false => log,
            }))
        }
    }
}

fn start(program: &OsStr, error: io::Error) -> PtxasError {
    PtxasError::Start {
        program: program.to_string_lossy().into_owned(),
        error,
    }
}

/// Waits for the end of a process: how it ended, or nothing if it was stopped at the limit.
fn wait(child: &mut Child, limit: Option<Duration>) -> io::Result<Option<ExitStatus>> {
    let Some(limit) = limit else {
        return child.wait().map(Some);
    };
    let clock = Instant::now();
    let mut pause = Duration::from_millis(1);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if clock.elapsed() > limit {
            // It may have ended by itself just now.
            let _ = child.kill();
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(pause);
        pause = (2 * pause).min(Duration::from_millis(20));
    }
}

/// A folder of this call alone, which goes with this. It is made anew and for this user: what lies in a folder that all may write, under a
/// name that can be guessed, may be somebody else's.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Scratch, PtxasError> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let mut builder = std::fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        loop {
            let (process, number) = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
            let path = std::env::temp_dir().join(format!("tilelift-{process}-{number}"));
            match builder.create(&path) {
                Ok(()) => return Ok(Scratch(path)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(PtxasError::Io { path, error }),
            }
        }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

/// Removes folders of calls whose process was killed, as far as they are this user's. Which processes there are says little, as others
/// may share the place with numbers of their own; no assembler takes a day.
pub(super) fn remove_old_scratch(place: &Path) {
    const OLD: Duration = Duration::from_secs(86_400);
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_ours = |name: &str| {
        let numbers = name.strip_prefix("tilelift-")?.split_once('-')?;
        Some(is_number(numbers.0) && is_number(numbers.1))
    };
    for entry in std::fs::read_dir(place).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if name.to_str().and_then(is_ours) != Some(true) {
            continue;
        }
        // Of a link, the link's own.
        let metadata = entry.metadata().ok().filter(std::fs::Metadata::is_dir);
        let written = metadata.and_then(|metadata| metadata.modified().ok());
        let age = written.and_then(|written| written.elapsed().ok());
        if age.is_some_and(|age| age > OLD) {
            // What belongs to another user stays.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What is left of it does nobody harm.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn io(path: &Path) -> impl FnOnce(io::Error) -> PtxasError + use<> {
    let path = path.to_owned();
    move |error| PtxasError::Io { path, error }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_program_that_hangs_is_none() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().expect("a folder for the test");
        let path = folder.path().join("program");
        for (text, expected) in [
            ("exit 0", true),
            ("exit 1", false),
            ("exec sleep 1000", false),
        ] {
            std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).expect("it can be written");
            let mode = std::fs::Permissions::from_mode(0o700);
            std::fs::set_permissions(&path, mode).expect("it is ours");
            // Long enough for the others on a machine under load.
            assert_eq!(
                answers(path.as_os_str(), Duration::from_secs(3)),
                expected,
                "{text}"
            );
        }
    }

    #[cfg(unix)]
    #[test]
    fn what_killed_processes_left_goes_when_it_is_old() {
        let place = tempfile::tempdir().expect("a folder for the test");
        let make = |name: &str, age: u64| {
            let path = place.path().join(name);
            std::fs::create_dir(&path).expect("it can be made");
            std::fs::write(path.join("k.ptx"), "text").expect("it can be written");
            let time = std::time::SystemTime::now() - Duration::from_secs(age);
            let aged = File::open(&path).and_then(|folder| folder.set_modified(time));
            aged.expect("it is ours");
        };
        const DAYS: u64 = 86_400;
        make("tilelift-7-0", 2 * DAYS);
        make("tilelift-7-1", 60);
        make("tilelift-seed-1", 2 * DAYS);
        make("tilelift-7", 2 * DAYS);
        remove_old_scratch(place.path());
        let names = [
            "tilelift-7-0",
            "tilelift-7-1",
            "tilelift-seed-1",
            "tilelift-7",
        ];
        let there = names.map(|name| place.path().join(name).exists());
        assert_eq!(there, [false, true, true, true]);
    }

    #[test]
    fn folders_that_are_there_are_left_to_others() {
        let mine = Scratch::new().expect("a folder for files");
        let name = mine.0.display().to_string();
        let (begin, number) = name.rsplit_once('-').expect("its number");
        let number: u64 = number.parse().expect("a number");
        // Whoever has made these: they are passed over. Other tests may make folders beside them.
        let taken = (1..9).map(|next| PathBuf::from(format!("{begin}-{}", number + next)));
        let taken: Vec<Scratch> = taken
            .filter(|path| std::fs::create_dir(path).is_ok())
            .map(Scratch)
            .collect();
        assert!(!taken.is_empty());
        let next = Scratch::new().expect("a folder for files");
        assert!(taken.iter().all(|other| other.0 != next.0));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = std::fs::metadata(&next.0)
                .expect("it is there")
                .permissions();
            assert_eq!(mode.mode() & 0o777, 0o700, "for this user alone");
        }
        let path = next.0.clone();
        std::fs::write(next.file("k.ptx"), "text").expect("it can be written");
        drop(next);
        assert!(!path.exists());
    }
}
