//! The `tilelift` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    tilelift::cli::main()
}
