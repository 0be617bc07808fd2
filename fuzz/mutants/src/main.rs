//! Mutation check of Tilelift's tests: planted faults, and which of them the tests notice.
//!
//! A mutant is a small change of one expression: a comparison turned round, an operator exchanged, a condition negated, a number
//! one larger, a function that returns at once. All of them go into one build, each behind a test of its number
//! ([`plant`]; "mutant schemata", Untch, Offutt and Harrold 1993), so 200 mutants cost one compilation and the time of the
//! tests. [`run`] finds which tests reach which mutant, and runs these with the mutant on until one fails. It may be
//! interrupted at any time: what is known stays known.
//!
//! ```console
//! $ cargo run --release --manifest-path fuzz/mutants/Cargo.toml -- plant FOLDER --seed 1 --faults fuzz/mutants/faults.txt
//! $ cargo run --release --manifest-path fuzz/mutants/Cargo.toml -- run FOLDER
//! $ cargo run --release --manifest-path fuzz/mutants/Cargo.toml -- report FOLDER
//! ```

mod plant;
mod run;
mod sites;

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Copies the project to a folder and plants mutants there.
    Plant {
        /// Where the copy goes.
        folder: PathBuf,
        /// What the choice of mutants depends on.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// How many mutants, the same number in each group of modules.
        #[arg(long, default_value_t = 200)]
        count: usize,
        /// Plants the faults that this file describes as well.
        #[arg(long)]
        faults: Option<PathBuf>,
    },
    /// Runs the tests against each mutant that has no result yet, and writes each result as it comes.
    Run {
        /// The folder given to `plant`.
        folder: PathBuf,
        /// Groups of tests for each mutant at most, the most promising ones: a first sitting with few shows soon where tests
        /// are missing.
        #[arg(long)]
        most: Option<usize>,
    },
    /// The results: numbers for each group, and each survivor.
    Report {
        /// The folder given to `plant`.
        folder: PathBuf,
    },
}

/// The group of the faults of `faults.txt`.
const BY_HAND: &str = "by hand";

/// Modules that are sampled together: a name, and files or folders under `src`.
const GROUPS: &[(&str, &[&str])] = &[
    (
        "layouts",
        &["src/layout", "src/linear_layout", "src/thread/place_shared.rs"],
    ),
    ("selection", &["src/machine"]),
    ("expansion", &["src/expand", "src/tile/legalize"]),
    ("allocator", &["src/regalloc"]),
    (
        "barriers",
        &["src/thread/insert_barriers.rs", "src/analysis"],
    ),
    ("pipelining", &["src/tile/pipeline_loops"]),
    ("emulator", &["src/emu"]),
    ("cache", &["src/runtime/cache", "src/runtime/build/stored.rs"]),
];

fn main() -> Result<()> {
    let project = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()?;
    match Cli::parse().command {
        Command::Plant {
            folder,
            seed,
            count,
            faults,
        } => plant::plant(&project, &folder, seed, count, faults.as_deref()),
        Command::Run { folder, most } => run::run(&folder, most.unwrap_or(usize::MAX)),
        Command::Report { folder } => run::report(&folder),
    }
}
