//! The `tilelift` command: what its arguments mean and what it does.
//!
//! Exit codes: 0 for success, 1 if the input does not compile, a test fails or nobody reads the output, 2 if the command line is
//! wrong. What is asked for goes to standard output or to a file, everything else to standard error. A file
//! is written under another name and renamed, so it is never half there.

mod args;
mod bench;
mod cache;
mod compile;
mod cubin;
mod explain;
mod help;
mod info;
mod input;
mod messages;
mod progress;
mod python;
mod reduce;
mod run;
mod show;
mod source_lines;
mod table;
mod test;
#[cfg(feature = "triton")]
mod tune;
mod warm;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use args::{Args, Command};

use crate::runtime::SourceError;
use messages::say;

/// Why a command ends early.
#[derive(Debug, thiserror::Error)]
enum Failure {
    /// The command line asks for what cannot be.
    #[error("error: {0}")]
    Usage(String),
    /// The input is wrong.
    #[error("{0}")]
    Input(String),
    /// A text is wrong.
    #[error("{0}")]
    Source(Box<SourceError>),
    /// A Python text is wrong.
    #[cfg(feature = "triton")]
    #[error("{0}")]
    Python(Box<crate::front::Diagnostics>),
    /// A file cannot be read or written.
    #[error("error: {}: {error}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// Standard output cannot be written.
    #[error("error: standard output: {0}")]
    Stdout(io::Error),
}

impl Failure {
    fn code(&self) -> u8 {
        match self {
            Failure::Usage(_) => 2,
            Failure::Input(_) | Failure::Source(_) | Failure::Io { .. } | Failure::Stdout(_) => 1,
            #[cfg(feature = "triton")]
            Failure::Python(_) => 1,
        }
    }
}

type Result<T> = std::result::Result<T, Failure>;

/// Writes the script of a shell.
fn completions(shell: clap_complete::Shell) -> Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "tilelift", &mut script);
    write_bytes(None, &script)?;
    Ok(ExitCode::SUCCESS)
}

/// Runs the command line of the process.
pub fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            // Help and version are errors to clap, too. Nobody can be told if the terminal is gone.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    let result = match &args.command {
        Command::Compile(args) => compile::compile(args),
        Command::Run(args) => run::run(args),
        Command::Test(args) => test::test(args),
        Command::Explain(args) => explain::explain(args),
        Command::Show(args) => show::show(args),
        Command::Bench(args) => bench::bench(args),
        #[cfg(feature = "triton")]
        Command::Tune(args) => tune::tune(args),
        Command::Warm(args) => warm::warm(args),
        Command::Reduce(args) => reduce::reduce(args),
        Command::Cache { action } => cache::cache(action),
        Command::Info => info::info(),
        Command::Completions { shell } => completions(*shell),
    };
    match result {
        Ok(code) => code,
        Err(failure) => {
            // A reader that went away, as `head` does, is told by the exit code alone.
            let is_quiet =
                matches!(&failure, Failure::Stdout(e) if e.kind() == io::ErrorKind::BrokenPipe);
            if !is_quiet {
                failure.say(args.command.as_json());
            }
            ExitCode::from(failure.code())
        }
    }
}

/// Writes to a file, or to standard output.
fn write_out(path: Option<&Path>, text: &str) -> Result<()> {
    write_bytes(path, text.as_bytes())
}

fn write_bytes(path: Option<&Path>, bytes: &[u8]) -> Result<()> {
    match path {
        Some(path) if path != Path::new("-") => {
            let written = crate::filetest::write_atomically(path, bytes);
            written.map_err(|error| Failure::Io {
                path: path.to_owned(),
                error,
            })
        }
        _ => {
            let mut stdout = io::stdout().lock();
            let written = stdout.write_all(bytes);
            written
                .and_then(|()| stdout.flush())
                .map_err(Failure::Stdout)
        }
    }
}
