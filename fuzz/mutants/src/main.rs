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
//! $ cargo run --release --manifest-path fuzz/mutants/Cargo.toml -- build FOLDER
//! $ cargo run --release --manifest-path fuzz/mutants/Cargo.toml -- run FOLDER
//! $ cargo run --release --manifest-path fuzz/mutants/Cargo.toml -- report FOLDER
//! ```

mod plant;
mod programs;
mod run;
mod sites;

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::plant::Sample;

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
        /// Only modules of this group, as named in a report; may be given several times.
        #[arg(long)]
        group: Vec<String>,
        /// Plants the faults that this file describes as well.
        #[arg(long)]
        faults: Option<PathBuf>,
    },
    /// Builds the test programs into the folder. It then holds all that `run` needs, and may be run on another machine, at
    /// the same path.
    Build {
        /// The folder given to `plant`.
        folder: PathBuf,
    },
    /// Runs the tests against each mutant that has no result yet, and writes each result as it comes.
    Run {
        /// The folder given to `plant`.
        folder: PathBuf,
        /// Seconds of processor time for each mutant at most: a first sitting with few shows soon where tests are missing.
        #[arg(long)]
        seconds: Option<f64>,
        /// How many processes run at a time.
        #[arg(long, default_value_t = 1)]
        jobs: usize,
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
        &[
            "src/layout",
            "src/linear_layout",
            "src/thread/place_shared.rs",
        ],
    ),
    ("selection", &["src/machine"]),
    (
        "expansion",
        &["src/expand", "src/tile/legalize.rs", "src/tile/legalize"],
    ),
    ("allocator", &["src/regalloc"]),
    (
        "barriers",
        &[
            "src/thread/insert_barriers.rs",
            "src/thread/insert_barriers",
            "src/thread/fence_copies.rs",
            "src/analysis",
        ],
    ),
    (
        "pipelining",
        &["src/tile/pipeline_loops", "src/tile/rotate_loops"],
    ),
    ("emulator", &["src/emu"]),
    (
        "cache",
        &["src/runtime/cache", "src/runtime/build/stored.rs"],
    ),
    (
        "warpgroup products",
        &[
            "src/tile/start_dots.rs",
            "src/tile/start_dots",
            "src/tile/lower_dots.rs",
            "src/layout/warpgroup.rs",
            "src/expand/warpgroup.rs",
            "src/machine/select/matrix.rs",
            "src/thread/start_sums.rs",
            "src/analysis/async_groups.rs",
        ],
    ),
    (
        "roles",
        &[
            "src/tile/form_roles",
            "src/thread/delay_copies.rs",
            "src/thread/branch_around_copies.rs",
            "src/verify/rings",
            "src/verify/roles.rs",
        ],
    ),
    (
        "promotion",
        &[
            "src/tile/promote",
            "src/analysis/affine",
            "src/analysis/demand.rs",
        ],
    ),
    (
        "persistence",
        &[
            "src/tile/loop_over_programs.rs",
            "src/tile/order_programs.rs",
            "src/analysis/program.rs",
            "src/settings/ctas.rs",
        ],
    ),
    (
        "tensor maps",
        &[
            "src/ir/map_recipe",
            "src/ir/tensor_ptr.rs",
            "src/layout/swizzle.rs",
            "src/expand/boxes.rs",
            "src/machine/select/boxes.rs",
            "src/interp/exec/boxes.rs",
            "src/runtime/api/descriptor.rs",
            "src/runtime/execute/kept_tensor_maps.rs",
            "src/runtime/execute/tensor_maps.rs",
        ],
    ),
    (
        "emulated engines",
        &[
            "src/emu/async_work.rs",
            "src/emu/mbarrier.rs",
            "src/emu/tensor_map.rs",
            "src/emu/wgmma_in_flight.rs",
            "src/emu/exec/bulk.rs",
            "src/emu/exec/completion.rs",
            "src/emu/exec/descriptor.rs",
            "src/emu/exec/mbarrier.rs",
            "src/emu/exec/mbarrier_arrival.rs",
            "src/emu/exec/product.rs",
            "src/emu/exec/tensor.rs",
            "src/emu/exec/warpgroup.rs",
        ],
    ),
    (
        "small passes",
        &[
            "src/thread/multiply_by_reciprocals.rs",
            "src/thread/slice_operands.rs",
            "src/thread/group_barriers.rs",
            "src/thread/start_in_turns.rs",
            "src/analysis/computed.rs",
            "src/ir/maker.rs",
            "src/tile/compare_narrow.rs",
            "src/tile/lift_integers.rs",
            "src/tile/load_ahead.rs",
            "src/tile/narrow_loads",
            "src/tile/order_sums.rs",
            "src/tile/start_dots/ahead.rs",
            "src/tile/transpose_products.rs",
            "src/tile/load_early.rs",
            "src/tile/flatten_loops.rs",
            "src/tile/share_counters.rs",
            "src/tile/unroll_loops.rs",
            "src/analysis/loops.rs",
            "src/analysis/neighbours.rs",
            "src/analysis/strides.rs",
            "src/machine/select/bytes.rs",
        ],
    ),
    (
        "divisions",
        &[
            "src/thread/simplify_divisions.rs",
            "src/thread/multiply_by_reciprocals.rs",
            "src/tile/split_quotients.rs",
        ],
    ),
    (
        "loops and branches",
        &[
            "src/thread/unmask_loops.rs",
            "src/thread/hold_waits.rs",
            "src/thread/never_executed.rs",
            "src/thread/keep_operands.rs",
            "src/thread/wait_before_joins.rs",
            "src/tile/count_loops.rs",
            "src/tile/join_branches.rs",
            "src/tile/nest_loops.rs",
            "src/tile/nest_loops",
            "src/tile/predicate_loads.rs",
            "src/tile/settle_comparisons.rs",
        ],
    ),
    (
        "what is kept where",
        &[
            "src/expand/hold_loads.rs",
            "src/expand/own_elements.rs",
            "src/expand/staged.rs",
            "src/expand/value_ranges.rs",
            "src/layout/assign/strided.rs",
            "src/machine/remake_predicates.rs",
            "src/tile/compute_again.rs",
            "src/tile/orient_packs.rs",
            "src/tile/share_operands",
        ],
    ),
    ("schedule", &["src/machine/schedule"]),
    ("prediction", &["src/predict"]),
    ("warming", &["src/warm", "src/runtime/build/manifest.rs"]),
];

fn main() -> Result<()> {
    match Cli::parse().command {
        Command::Plant {
            folder,
            seed,
            count,
            group,
            faults,
        } => {
            let project = Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("../..")
                .canonicalize()?;
            let sample = Sample {
                seed,
                count,
                groups: plant::groups(&group)?,
            };
            plant::plant(&project, &folder, &sample, faults.as_deref())
        }
        Command::Build { folder } => programs::build(&folder),
        Command::Run {
            folder,
            seconds,
            jobs,
        } => run::run(&folder, seconds.unwrap_or(f64::INFINITY), jobs),
        Command::Report { folder } => run::report(&folder),
    }
}
