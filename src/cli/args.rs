//! The command line: commands and their options, with the help of each.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};

use super::help;
use crate::settings::{Options, Policy, Target};
use crate::stages::Stage;

/// A GPU compiler for block programs: the Triton language (.py) or the text form of the IR (.tir) in, PTX out.
#[derive(Debug, Parser)]
#[command(name = "tilelift", version, arg_required_else_help = true, after_help = help::TOOL)]
pub(super) struct Args {
    #[command(subcommand)]
    pub(super) command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Compile a kernel of a .py or .tir file to PTX, or to what --emit names.
    Compile(CompileArgs),
    /// Run kernels on interpreter, emulator and GPU: the `; run:` lines of .tir files, the `# run:` lines of .py files; or PTX.
    Run(RunArgs),
    /// Run file tests, and the `# run:` lines of .py files; --bless rewrites what .tir files expect, and leaves run lines.
    Test(TestArgs),
    /// Show a kernel of a .py or .tir file after every pass.
    Explain(ExplainArgs),
    /// Draw a kernel's layouts, shared memory, schedule, bank conflicts, registers, and what its lines cost.
    Show(ShowArgs),
    /// Measure launches of a kernel over a sweep of sizes: time on a GPU, counts on the emulator.
    Bench(BenchArgs),
    /// Try the configurations that @triton.autotune of a kernel lists, and say which is the best.
    #[cfg(feature = "triton")]
    Tune(TuneArgs),
    /// Make the kernels of manifests before anybody launches them, into the cache.
    #[command(after_help = help::WARM)]
    Warm(WarmArgs),
    /// Make a failing kernel of a .py or .tir file smaller as long as it fails in the same way; the result is a .tir file.
    Reduce(ReduceArgs),
    /// Look after the cache of compiled kernels.
    #[command(after_help = help::CACHE)]
    Cache {
        #[command(subcommand)]
        action: CacheAction,
    },
    /// Show devices, driver, targets and the cache; takes nothing.
    Info,
    /// Write what a shell needs to complete this command's words.
    #[command(after_help = help::COMPLETIONS)]
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

/// What to do with the cache.
#[derive(Debug, Subcommand)]
pub(super) enum CacheAction {
    /// List the entries: kernel, signature, target, kind, bytes, time since the last use, file.
    List,
    /// Check every entry; damaged ones are named and make the command fail.
    Verify,
    /// Remove every entry, and what the autotuner knows.
    Clear,
    /// Copy every whole entry to a folder, to be shipped as a seed; damaged ones are named, and make the command fail.
    Export {
        /// The folder.
        dir: PathBuf,
    },
}

/// The language of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Lang {
    /// Triton's Python.
    Py,
    /// The text form of the IR.
    Tir,
}

/// What to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Emit {
    /// The block program.
    Tile,
    /// The block program after simplification.
    Opt,
    /// The block program with tensor maps, and why loads and stores have none.
    Maps,
    /// The block program with layouts.
    Layout,
    /// Live ranges of shared memory against offsets.
    Shared,
    /// What one thread does.
    Thread,
    /// Instructions before and after registers are allocated, with live ranges.
    Machine,
    /// PTX.
    Ptx,
    /// Conversions and their bytes, instructions, registers; with --json the occupancy, too; with --args the expected time.
    Stats,
    /// A Rust module with the PTX and a typed launch function.
    Rust,
    /// Machine code, by the driver of a GPU of the target or by ptxas.
    Cubin,
    /// The text of machine code, by nvdisasm or cuobjdump.
    Sass,
}

impl Emit {
    /// The stage whose text it is.
    pub(super) fn stage(self) -> Option<Stage> {
        match self {
            Emit::Tile => Some(Stage::Tile),
            Emit::Opt => Some(Stage::Opt),
            Emit::Maps => Some(Stage::Maps),
            Emit::Layout => Some(Stage::Layout),
            Emit::Shared => Some(Stage::Shared),
            Emit::Thread => Some(Stage::Thread),
            Emit::Machine => Some(Stage::Machine),
            Emit::Ptx => Some(Stage::Ptx),
            Emit::Stats => Some(Stage::Stats),
            Emit::Rust | Emit::Cubin | Emit::Sass => None,
        }
    }
}

/// What elements of a picture share a colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum By {
    /// Those of one thread.
    #[default]
    Thread,
    /// Those of one warp.
    Warp,
    /// Those in registers of one number.
    Register,
}

/// What is drawn of a kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Picture {
    /// Which thread holds which element of blocks in registers.
    #[default]
    Layouts,
    /// Where elements of the blocks of pipelined loops stand in shared memory.
    Rings,
    /// What pipelined loops do, step by step: copies, waits, products, and what stands in rings meanwhile.
    Schedule,
    /// How layouts become others, and the banks of shared memory in which that meets.
    Conversions,
    /// Shared memory from the first instruction to the last.
    Shared,
    /// Live registers along the code.
    Registers,
    /// What each line of the source costs, counted by the emulator; needs --args.
    Lines,
}

/// The arguments of `show`.
#[derive(Debug, ClapArgs)]
#[command(after_help = help::SHOW)]
pub(super) struct ShowArgs {
    #[command(flatten)]
    pub(super) kernel: KernelArgs,
    /// What to draw.
    #[arg(short = 'p', long, value_enum, default_value_t)]
    pub(super) picture: Picture,
    /// With --picture lines: what is launched, as a run line (`run --help`).
    #[arg(long = "args", value_name = "LINE", allow_hyphen_values = true)]
    pub(super) line: Option<String>,
    /// The layout to show by its number; else all.
    #[arg(long, value_name = "N")]
    pub(super) layout: Option<usize>,
    /// What shares a colour.
    #[arg(long, value_enum, default_value_t)]
    pub(super) by: By,
    /// Where to write a picture as SVG; else it goes to standard output as text, in colours on a terminal.
    #[arg(long, value_name = "OUT.svg")]
    pub(super) svg: Option<PathBuf>,
    #[command(flatten)]
    pub(super) limits: LimitArgs,
}

/// Whether the kernel may take tensor maps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum PromoteArg {
    /// Where that is faster.
    #[default]
    Auto,
    /// Nowhere: pointers and numbers are all that a launcher passes.
    Never,
}

/// Whether something is done that may make a kernel faster or slower.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum PolicyArg {
    /// Where that is faster.
    #[default]
    Auto,
    /// Wherever it is possible.
    Always,
    /// Nowhere.
    Never,
}

impl From<PolicyArg> for Policy {
    fn from(arg: PolicyArg) -> Policy {
        match arg {
            PolicyArg::Auto => Policy::Auto,
            PolicyArg::Always => Policy::Always,
            PolicyArg::Never => Policy::Never,
        }
    }
}

/// Which kernel of a file, and how it is compiled.
#[derive(Debug, ClapArgs)]
pub(super) struct KernelArgs {
    /// The input: a .py or .tir file, or - for standard input (.tir unless --lang py).
    pub(super) file: PathBuf,
    #[command(flatten)]
    pub(super) how: HowArgs,
    /// Write messages as JSON, one a line, and with --emit stats these too.
    #[arg(long)]
    pub(super) json: bool,
}

impl Command {
    /// Whether messages are written as JSON.
    pub(super) fn as_json(&self) -> bool {
        match self {
            Command::Compile(CompileArgs { kernel, .. })
            | Command::Explain(ExplainArgs { kernel, .. })
            | Command::Show(ShowArgs { kernel, .. })
            | Command::Reduce(ReduceArgs { kernel, .. }) => kernel.json,
            Command::Run(_)
            | Command::Test(_)
            | Command::Bench(_)
            | Command::Tune(_)
            | Command::Warm(_)
            | Command::Cache { .. }
            | Command::Info
            | Command::Completions { .. } => false,
        }
    }
}

/// How kernels are chosen and compiled.
#[derive(Clone, Debug, Default, ClapArgs)]
pub(super) struct HowArgs {
    /// The kernel, if the file has several.
    #[arg(short = 'n', long = "name", value_name = "KERNEL")]
    pub(super) name: Option<String>,
    /// Types and constants of the parameters, as in "*fp32:16, i32, 1024" (.py only); `compile --help` has all spellings.
    #[arg(
        short = 's',
        long,
        value_name = "SIGNATURE",
        allow_hyphen_values = true
    )]
    pub(super) signature: Option<String>,
    /// A constant of **META or of the module (.py only).
    #[arg(short = 'c', long = "constant", value_name = "NAME=VALUE")]
    pub(super) constants: Vec<String>,
    /// Warps of a CTA; a .tir file states them itself, this overrides. Where threads lack many registers there may
    /// be more.
    #[arg(short = 'w', long = "num-warps", value_name = "WARPS")]
    pub(super) num_warps: Option<u32>,
    /// Stages of loops of products that do not state their own.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=32))]
    pub(super) num_stages: Option<u8>,
    /// CTAs of a program; it runs in one, which has the warps of all.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(super) num_ctas: u32,
    /// Most registers of a thread.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(i64::from(*Options::REGISTERS.start())..=i64::from(*Options::REGISTERS.end())))]
    pub(super) maxnreg: Option<u16>,
    /// Keep products and sums apart.
    #[arg(long)]
    pub(super) no_fp_fusion: bool,
    /// Do not check integer arithmetic for overflow in debug builds (.py only).
    #[arg(long)]
    pub(super) no_sanitize_overflow: bool,
    /// Keep device assertions; what fails is written to the log of the module.
    #[arg(long)]
    pub(super) debug: bool,
    /// Whether loads and stores may become copies by the copy engine, for which the launcher makes tensor maps.
    #[arg(long, value_enum, default_value_t)]
    pub(super) promote: PromoteArg,
    /// Whether warps of their own may bring what the program multiplies.
    #[arg(long, value_enum, default_value_t)]
    pub(super) roles: PolicyArg,
    /// Whether a CTA may execute several programs, one after the other.
    #[arg(long, value_enum, default_value_t)]
    pub(super) persistent: PolicyArg,
    /// Keep the number of warps, whatever registers they need.
    #[arg(long)]
    pub(super) fixed_warps: bool,
    /// Let tools show the lines of the source.
    #[arg(long)]
    pub(super) line_info: bool,
    /// The target, as in sm_80 or 80; else the GPU present, else sm_80.
    #[arg(short = 't', long, value_name = "TARGET")]
    pub(super) target: Option<String>,
    /// The language of the input; else by the file's name.
    #[arg(long, value_enum)]
    pub(super) lang: Option<Lang>,
}

impl HowArgs {
    /// What files say themselves. Where they do not, the target is that of file tests: a test is the same with a GPU and without.
    pub(super) fn of_files() -> HowArgs {
        HowArgs {
            num_ctas: 1,
            target: Some(Target::SM_80.to_string()),
            ..HowArgs::default()
        }
    }
}

/// Arguments of `compile`.
#[derive(Debug, ClapArgs)]
#[command(after_help = help::KERNEL)]
pub(super) struct CompileArgs {
    #[command(flatten)]
    pub(super) kernel: KernelArgs,
    /// What to write.
    #[arg(long, value_enum, default_value_t = Emit::Ptx)]
    pub(super) emit: Emit,
    /// With --emit stats: what is launched, as a run line (`run --help`) that gives the grid and the kernel's whole numbers; then the time
    /// that the launch is expected to take is told, and what bounds it.
    #[arg(long = "args", value_name = "LINE", allow_hyphen_values = true)]
    pub(super) line: Option<String>,
    /// With --emit rust: machine code beside the PTX, by the GPU's driver or by ptxas.
    #[arg(long)]
    pub(super) cubin: bool,
    /// Where to write it; else to standard output.
    #[arg(short = 'o', long = "output", value_name = "OUT")]
    pub(super) out: Option<PathBuf>,
    /// Where to write what a launcher must know, as JSON.
    #[arg(long, value_name = "OUT.json")]
    pub(super) meta: Option<PathBuf>,
}

/// Arguments of `explain`.
#[derive(Debug, ClapArgs)]
#[command(after_help = help::KERNEL)]
pub(super) struct ExplainArgs {
    #[command(flatten)]
    pub(super) kernel: KernelArgs,
    /// Show this pass alone, each time that it runs; `read` is the kernel before all passes, `ptx` the end. May be repeated.
    #[arg(long, value_name = "PASS")]
    pub(super) only: Vec<String>,
    /// Show the lines that each pass changes in place of the whole kernel.
    #[arg(long)]
    pub(super) diff: bool,
    /// Write a page: source, IR, PTX and machine code (where ptxas and nvdisasm are found) side by side with their lines linked, layouts as
    /// pictures, and what each pass changes.
    #[arg(long, value_name = "OUT.html", conflicts_with_all = ["only", "diff"])]
    pub(super) html: Option<PathBuf>,
}

/// Arguments of `run`.
#[derive(Debug, ClapArgs)]
#[command(after_help = RUN_HELP)]
pub(super) struct RunArgs {
    /// The inputs: .py and .tir files with run lines, a .ptx file with --args, or - for standard input (.tir unless --lang py).
    #[arg(required = true, value_name = "FILE")]
    pub(super) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(super) how: HowArgs,
    /// A run line in place of those in the file (.py: the kernel by -n and -s; .ptx: the entry by -n).
    #[arg(long = "args", value_name = "LINE", allow_hyphen_values = true)]
    pub(super) line: Option<String>,
    /// Compare every bit of what no `expect` is about, and not within the bounds that the ops state.
    #[arg(long)]
    pub(super) exact: bool,
    /// Write a buffer to a file of NumPy after the run: out.npy has `out`, or NAME=FILE.
    #[arg(long, value_name = "[NAME=]FILE.npy")]
    pub(super) save: Vec<String>,
    /// Lines that are shown of what a kernel prints: 64 if nothing is said.
    #[arg(long, value_name = "N")]
    pub(super) prints: Option<usize>,
    #[command(flatten)]
    pub(super) limits: LimitArgs,
}

/// What bounds a run line.
#[derive(Clone, Copy, Debug, ClapArgs)]
pub(super) struct LimitArgs {
    /// Steps after which a run line is given up that does not say steps(N) itself.
    #[arg(long, value_name = "N")]
    pub(super) steps: Option<u64>,
    /// Programs that the grid of a run line may have that does not say programs(N) itself.
    #[arg(long, value_name = "N")]
    pub(super) programs: Option<u64>,
}

/// How a run line reads.
const RUN_HELP: &str = r#"A .py file says in comments what to run:
  # run: add "*fp32, *fp32, i32, 256" : grid(4) x=f32[1000] normal(1) out=f32[1000] poison n=1000 ; expect out within ulp 2
or the command line does:
  tilelift run add.py -n add -s "*fp32, *fp32, i32, 256" --args "grid(4) x=f32[1000] normal(1) out=f32[1000] poison n=1000"

Each parameter that is no constant gets a number, `null`, or TYPE[LENGTH] with what it holds: poison, zeros, const(1.5),
iota(0), normal(SEED), uniform(SEED,LOW,HIGH) or a list [1,2,3]; `out=x` gives it the buffer of `x`. After `;` stands what is expected: `expect out = [1,2,3]`,
`expect out within rel 1e-6`, `expect error WORDS`, `expect printed LINE`. In a .tir file the line is `; run: grid(4) ..`.
Lists, the emulator and the GPU are compared with the interpreter as `expect out within ..` says, and without it within the bounds that
the ops of the kernel state; the table counts elements that have none, and names the line. --exact compares bits. In a list `poison`
is what nobody wrote, and `any` fits all.

A parameter that the signature fixes (`i32:1`, a constant) is left out, or repeats its value. A tensor descriptor `d` of a signature is several parameters:
`d` is its buffer, `d_size0`, `d_size1`, .. are the tensor's extents, outermost first, and `d_stride0`, .. the elements from one index to the next of
all but the last:
  tilelift run tma.py -n f -s "tensordesc<fp16[64, 32]>, i32" --args "grid(1) d=f16[8192] normal(1) d_size0=64 d_size1=128 d_stride0=128 n=64"
On sm_90a the table says whether a launch has tensor maps, and if not which condition of theirs does not hold.

Buffers come from files of NumPy and go to them, and `; expect out = @other.npy` is what another program left in one:
  tilelift run add.py -n add -s "*fp32, *fp32, i32, 256" --args "grid(4) x=@x.npy out=f32[1000] zeros n=1000" --save out.npy
PTX runs on the emulator; parameters have their names in PTX, of kernel_param_0 the end will do:
  tilelift run add.ptx --args "grid(4) block(128) shared(0) param_0=f32[512] iota(0) param_1=512"
A tensor map is a buffer with the extents of tensor and box, outermost first, or one of another parameter's buffer (param_0 map(..)):
  param_1=f16[8192] normal(1) map(64,128) box(16,64)   further: strides(BYTES,..) of all but the last, swizzle(128), outside(nan)
A failed device_assert fails. A run has at most 2^20 programs (--programs N) and 2^24 steps of the emulator (--steps N)."#;

/// Where kernels are measured.
#[derive(Clone, Copy, Debug, ClapArgs)]
pub(super) struct DeviceArgs {
    /// Use the emulator, which counts and measures no time, also where there is a GPU.
    #[arg(long)]
    pub(super) emulator: bool,
    /// Take nothing from the cache on disk, of compiled kernels and of results of tuning.
    #[arg(long)]
    pub(super) fresh: bool,
}

/// Arguments of `bench`.
#[derive(Debug, ClapArgs)]
#[command(after_help = help::BENCH)]
pub(super) struct BenchArgs {
    /// The input: a .py or .tir file, or - for standard input (.tir unless --lang py).
    pub(super) file: PathBuf,
    #[command(flatten)]
    pub(super) how: HowArgs,
    /// What is launched, as a run line (`run --help`); else the run lines of the file for this kernel.
    #[arg(long = "args", value_name = "LINE", allow_hyphen_values = true)]
    pub(super) line: Option<String>,
    /// Values that `$NAME` and `$(..)` stand for in --args, -s and -c: `N=1000,2000`, `N=128..4096` by doubling, `N=128..1024+128`
    /// by steps, `N=1..81*3` by factors. Of several names all combinations are measured.
    #[arg(long, value_name = "NAME=VALUES")]
    pub(super) sweep: Vec<String>,
    /// Bytes that a launch has to move, as in 8*N; else the interpreter counts them.
    #[arg(long, value_name = "EXPRESSION")]
    pub(super) bytes: Option<String>,
    /// Floating-point operations of a launch, as in 2*M*N*K; else the interpreter counts them.
    #[arg(long, value_name = "EXPRESSION")]
    pub(super) flops: Option<String>,
    /// Milliseconds of launches before those that are timed.
    #[arg(long, value_name = "MS", default_value_t = 25)]
    pub(super) warmup: u64,
    /// Milliseconds of launches that are timed.
    #[arg(long, value_name = "MS", default_value_t = 100)]
    pub(super) rep: u64,
    /// The most that the device's memory moves in a second; else by its clocks.
    #[arg(long, value_name = "GB/S")]
    pub(super) peak_gbs: Option<f64>,
    /// The most that the device computes in a second; else by its clocks, for the types that the kernel multiplies.
    #[arg(long, value_name = "TFLOP/S")]
    pub(super) peak_tflops: Option<f64>,
    #[command(flatten)]
    pub(super) device: DeviceArgs,
    /// Write JSON in place of the table.
    #[arg(long)]
    pub(super) json: bool,
    /// Where to save the run, as JSON.
    #[arg(long, value_name = "FILE.json")]
    pub(super) save: Option<PathBuf>,
    /// A run that was saved, to be shown beside this one.
    #[arg(long, value_name = "FILE.json")]
    pub(super) compare: Option<PathBuf>,
    /// Where to draw the sweep, as SVG.
    #[arg(long, value_name = "OUT.svg")]
    pub(super) plot: Option<PathBuf>,
    #[command(flatten)]
    pub(super) limits: LimitArgs,
}

/// Arguments of `tune`.
#[cfg(feature = "triton")]
#[derive(Debug, ClapArgs)]
#[command(after_help = help::TUNE)]
pub(super) struct TuneArgs {
    /// The input: a .py file.
    pub(super) file: PathBuf,
    /// The kernel, if the file has several.
    #[arg(short = 'n', long = "name", value_name = "KERNEL")]
    pub(super) name: Option<String>,
    /// What is launched, as a run line (`run --help`) in which `$NAME` and `$(..)` mean constants, numbers of the line and --with.
    #[arg(long = "args", value_name = "LINE", allow_hyphen_values = true)]
    pub(super) line: String,
    /// A value that `$NAME` stands for in --args.
    #[arg(long, value_name = "NAME=VALUE")]
    pub(super) with: Vec<String>,
    /// A constant that configurations leave open.
    #[arg(short = 'c', long = "constant", value_name = "NAME=VALUE")]
    pub(super) constants: Vec<String>,
    /// The target, as in sm_80 or 80; else the GPU present, else sm_80.
    #[arg(short = 't', long, value_name = "TARGET")]
    pub(super) target: Option<String>,
    /// Measure no more than so many: those that the model of time expects to be the fastest.
    #[arg(long, value_name = "N")]
    pub(super) top: Option<NonZeroUsize>,
    #[command(flatten)]
    pub(super) device: DeviceArgs,
    /// Write JSON in place of the table.
    #[arg(long)]
    pub(super) json: bool,
    /// Steps after which the emulator gives a launch up.
    #[arg(long, value_name = "N")]
    pub(super) steps: Option<u64>,
}

/// Who makes machine code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum AssemblerArg {
    /// The driver where there is a GPU of the target, else ptxas where it is found.
    #[default]
    Auto,
    /// The driver: for GPUs and drivers like this one.
    Driver,
    /// `ptxas` (TILELIFT_PTXAS or the path): for every GPU that runs code for the target.
    Ptxas,
    /// Nobody: PTX alone is made.
    None,
}

/// Arguments of `warm`.
#[derive(Debug, ClapArgs)]
pub(super) struct WarmArgs {
    /// Manifests, as TILELIFT_RECORD=FILE writes them.
    #[arg(required_unless_present = "worker", value_name = "MANIFEST")]
    pub(super) manifests: Vec<PathBuf>,
    /// A target in place of what the lines say; may be repeated.
    #[arg(short = 't', long = "target", value_name = "TARGET")]
    pub(super) targets: Vec<String>,
    /// Kernels that are made at a time; as many as there are processors if nothing is said.
    #[arg(short, long, value_name = "N")]
    pub(super) jobs: Option<NonZeroUsize>,
    /// Who makes machine code.
    #[arg(short = 'a', long, value_enum, default_value_t)]
    pub(super) assembler: AssemblerArg,
    /// Seconds after which the assembler of a kernel is stopped.
    #[arg(long, value_name = "N", default_value_t = 600)]
    pub(super) limit: u64,
    /// List every kernel.
    #[arg(short, long)]
    pub(super) list: bool,
    /// Write the report as JSON.
    #[arg(long, conflicts_with = "list")]
    pub(super) json: bool,
    /// For processes of this command: assemble what comes on standard input, by the driver of the GPU of this number.
    #[arg(long, value_name = "N", hide = true)]
    pub(super) worker: Option<u32>,
}

/// Arguments of `test`.
#[derive(Debug, ClapArgs)]
pub(super) struct TestArgs {
    /// Files (.tir, and .py with `# run:` lines), and folders with such files in them; - for standard input (.tir).
    #[arg(required = true, value_name = "PATH")]
    pub(super) paths: Vec<PathBuf>,
    /// Rewrite what .tir files expect, as BLESS=1 does.
    #[arg(long)]
    pub(super) bless: bool,
    /// Files that are run at a time; as many as there are processors if nothing is said.
    #[arg(short, long, value_name = "N")]
    pub(super) jobs: Option<NonZeroUsize>,
    #[command(flatten)]
    pub(super) limits: LimitArgs,
}

/// What is wrong with a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Symptom {
    /// The compiler or an executor panics, or a pass breaks the kernel: a mistake of ours.
    Panics,
    /// It does not compile.
    Refused,
    /// Emulator or GPU leave other buffers than the interpreter, or report an error.
    Differs,
    /// The assembler refuses the PTX (ptxas by TILELIFT_PTXAS or the path).
    Ptxas,
}

/// Arguments of `reduce`.
#[derive(Debug, ClapArgs)]
#[command(after_help = REDUCE_HELP)]
pub(super) struct ReduceArgs {
    #[command(flatten)]
    pub(super) kernel: KernelArgs,
    /// What must stay wrong; else the first of these that is.
    #[arg(long, value_enum)]
    pub(super) check: Option<Symptom>,
    /// Words that the message must keep.
    #[arg(long, value_name = "TEXT")]
    pub(super) message: Option<String>,
    /// Seconds after which the smallest kernel so far is taken.
    #[arg(long, value_name = "N", default_value_t = 60)]
    pub(super) seconds: u64,
    #[command(flatten)]
    pub(super) limits: LimitArgs,
    /// Where to write it; else to standard output.
    #[arg(short = 'o', long = "output", value_name = "OUT")]
    pub(super) out: Option<PathBuf>,
}

/// How a reduction goes.
const REDUCE_HELP: &str = r#"Operations are left out, one after the other, loops and choices replaced by what they start with or by a branch, and
warps halved; each attempt is verified and judged. Parameters and run lines stay. The result is a file test:
  tilelift reduce bad.tir -t sm_90 --check differs -o tests/filetests/run/small.tir
  tilelift reduce bad.tir --check panics --message "out of bounds" > small.tir
  tilelift reduce bad.py -n add -s "*fp32, *fp32, i32, 256" > small.tir

Of a .py file it is the kernel's IR that is reduced; its `# run:` lines for the same signature and constants come along.

Only what the compiler does wrong is reduced. A run line that fails on the interpreter, because what it expects does not
hold or the kernel does something undefined, is for the author of the kernel: `tilelift run` shows it."#;
