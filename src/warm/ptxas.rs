//! Machine code by `ptxas`, a process for each kernel.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

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

/// Whether the program can be started.
pub(super) fn is_there() -> bool {
    let mut command = Command::new(program());
    command
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// The machine code of a text for a target, with lines of the source if there are some and `lines`.
pub(crate) fn assemble(
    ptx: &str,
    target: Target,
    lines: bool,
    limit: Option<Duration>,
) -> Result<Vec<u8>, PtxasError> {
    let [from, to, log] = ["ptx", "cubin", "log"].map(Scratch::new);
    std::fs::write(&from.0, ptx).map_err(from.io())?;
    let told = File::create(&log.0).map_err(log.io())?;
    let program = program();
    let child = Command::new(&program)
        .arg(format!("-arch={target}"))
        .args(lines.then_some("-lineinfo"))
        .arg("-o")
        .args([&to.0, &from.0])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(told)
        .spawn();
    let mut child = child.map_err(|error| start(&program, error))?;
    let ended = wait(&mut child, limit).map_err(|error| start(&program, error))?;
    match ended {
        None => Err(PtxasError::Late(limit.unwrap_or_default())),
        Some(true) => std::fs::read(&to.0).map_err(to.io()),
        Some(false) => {
            let log = std::fs::read(&log.0).unwrap_or_default();
            let log = String::from_utf8_lossy(&log).trim_end().to_owned();
            Err(PtxasError::Refused(log))
        }
    }
}

fn start(program: &OsStr, error: io::Error) -> PtxasError {
    PtxasError::Start {
        program: program.to_string_lossy().into_owned(),
        error,
    }
}

/// Waits for the end of a process: whether it succeeded, or nothing if it was stopped at the limit.
fn wait(child: &mut Child, limit: Option<Duration>) -> io::Result<Option<bool>> {
    let Some(limit) = limit else {
        return Ok(Some(child.wait()?.success()));
    };
    let clock = Instant::now();
    let mut pause = Duration::from_millis(1);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status.success()));
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

/// A file of this call alone, which goes with this.
struct Scratch(PathBuf);

impl Scratch {
    fn new(ending: &str) -> Scratch {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let (process, number) = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let name = format!("tilelift-{process}-{number}.{ending}");
        Scratch(std::env::temp_dir().join(name))
    }

    fn io(&self) -> impl FnOnce(io::Error) -> PtxasError + use<> {
        let path = Path::to_owned(&self.0);
        move |error| PtxasError::Io { path, error }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // It may not have come to be.
        let _ = std::fs::remove_file(&self.0);
    }
}
