//! What bounds the work of each entry point, in one place.
//!
//! Nothing that a caller or a text says makes the crate panic, but for functions that say when they do. What it may cost
//! stands here: a row for each entry point.
//! *No bound* means that cost grows with the input and nothing stops it; run such work with bounds of your own. Numbers of
//! seconds and of bytes in all are no promises: what is counted is.
//!
//! | entry point | size | work | memory | stack | held by |
//! |---|---|---|---|---|---|
#![cfg_attr(
    feature = "triton",
    doc = "| source text: [`front::Module::parse`](super::front::Module::parse), [`lower`](super::front::Module::lower) | [`SOURCE_BYTES`], [`SOURCE_FILES`], \
[`SOURCE_BRACKETS`], [`SOURCE_INDENTATION`], [`SOURCE_OPERATORS`] | [`EVALUATION_STEPS`], [`EVALUATION_OPERATIONS`], \
[`EVALUATION_CALLS`], [`EVALUATION_REGIONS`], [`UNROLLED_TRIPS`] | [`STRING_BYTES`], [`TUPLE_ELEMENTS`]; else what work makes | \
2 MiB are enough; where less than 256 KiB are left it goes on on the heap | `tests/language/front_limits.rs`, `src/fuzzing/source_text.rs` |
| signatures: [`parse_signature`](super::front::parse_signature) | [`SIGNATURE_ENTRIES`], [`SIGNATURE_NESTING`]; the text has no \
bound | one pass over the text | as the text | needs little | `src/fuzzing/source_text.rs` |"
)]
//! | `.tir` text: [`text::parse`](crate::text::parse) | [`MAX_BYTES`](crate::text::parse::MAX_BYTES), [`MAX_NESTING`](crate::text::parse::MAX_NESTING), [`MAX_VALUES`](crate::text::parse::MAX_VALUES) | stops after [`MAX_ERRORS`](crate::text::parse::MAX_ERRORS) mistakes | as the text | 2 MiB are enough | `src/text/tests.rs`, `src/fuzzing/ir_text.rs` |
//! | builder: [`TileBuilder`](crate::ir::builder::TileBuilder) and [`verify`](crate::verify::verify) | blocks: [`MAX_RANK`](crate::linear_layout::shape::MAX_RANK), [`MAX_LOG2_ELEMENTS`](crate::linear_layout::shape::MAX_LOG2_ELEMENTS); nesting as in text; 32 warps | no bound on instructions | as the kernel | needs little: the verifier keeps its own | `src/verify/tests.rs` |
//! | [`compile`](crate::compile::compile) | [`THREAD_ELEMENTS`], [`THREAD_OPERATIONS`], [`PARAMETER_BYTES`], shared memory: [`Target::shared_limit`](crate::settings::Target::shared_limit) | follows from the operations, by no promise | likewise; less than 30 MiB for small kernels | 2 MiB are enough | `tests/compiler/limits.rs`, `src/fuzzing/ir_text.rs` |
//! | emulator, its texts: [`emu::Module::parse`](crate::emu::Module::parse) | [`EMULATED_REGISTERS`], [`EMULATED_VARIABLE_BYTES`], [`EMULATED_NESTING`]; the text has no bound | one pass over the text | as the text | needs little | `tests/emulator/refusals.rs`, `src/fuzzing/ptx_text.rs` |
//! | emulator, launches: [`emu::run`](crate::emu::run) | CUDA's of grids and blocks | [`step_limit`](crate::emu::Options::step_limit): warp instructions, and [`WARP_STEPS`](crate::emu::WARP_STEPS) for each warp | [`EMULATED_CTA_BYTES`] for each of [`resident_ctas`](crate::emu::Options::resident_ctas); with `check_races` up to 36 bytes for each byte touched | needs little | `tests/emulator/errors.rs`, `tests/emulator/texts.rs`, `src/fuzzing/ptx_text.rs` |
//! | interpreter: [`interp::run`](crate::interp::run) | CUDA's of grids | [`step_limit`](crate::interp::Options::step_limit): instructions of [`INST_STEPS`](crate::interp::INST_STEPS) each, and elements | 8 bytes for each element of each value of a program, so about 8 for each step; with `check_races` 20 for each byte touched | 2 MiB are enough | `src/interp/tests/control.rs` |
//! | cache on disk: [`Cache`](crate::runtime::cache::Cache) | [`CACHE_ENTRY_BYTES`] for each file, [`DEFAULT_LIMIT`](crate::runtime::cache::DEFAULT_LIMIT) in all if [`Settings::limit`](crate::runtime::cache::Settings::limit) says nothing else | waiting for another process: [`Deadline`](crate::runtime::Deadline); no bound if none is given | as the file | needs little | `src/runtime/cache/tests/mod.rs`, `src/fuzzing/cache_files.rs` |
//! | manifests: [`Manifest::parse`](crate::runtime::Manifest::parse), [`read`](crate::runtime::Manifest::read) | [`MANIFEST_BYTES`] with the files that they name, [`MANIFEST_KERNELS`] | each program is parsed once, each kernel set up | as its programs | as source text | `src/runtime/build/manifest/tests.rs` |
//! | [`Warm::run`](crate::warm::Warm::run) | as the manifest, for each target | as `compile`, and the assembler, of which [`Warm::limit`](crate::warm::Warm::limit) bounds the time, by default 600 s a kernel; **no bound** where the driver of this process assembles | [`jobs`](crate::warm::Warm::jobs) kernels and processes at a time; what ptxas or the driver takes for a kernel has no bound | as `compile` | `tests/runtime/warm.rs`, `tests/cli/warm.rs` |
#![cfg_attr(
    feature = "tool",
    doc = "| command, and file tests with `; run:` lines: [`filetest`](super::filetest) | [`FILE_BYTES`] for each file, then as its text; \
[`RUN_LINE_BYTES`] of buffers and [`RUN_LINE_PROGRAMS`] for each line; [`BENCH_BYTES`] and any grid for `bench` and `tune` | 2^28 steps of the interpreter and [`RUN_LINE_STEPS`] of the emulator, else what \
`steps(N)` or `--steps` says | as interpreter and emulator | as those | `src/filetest/run/tests.rs`, `tests/cli/run.rs` |"
)]
//! | launch: [`Kernel::launch`](crate::runtime::Kernel::launch) | [`DEFAULT_VARIANTS`](crate::runtime::DEFAULT_VARIANTS) for each kernel if [`Kernel::variant_limit`](crate::runtime::Kernel::variant_limit) says nothing else | first as source text and `compile`, of which [`Deadline`](crate::runtime::Deadline) bounds only the waiting; the kernel itself: **no bound**, on the emulator neither if [`DeviceOptions::emulator`](crate::runtime::DeviceOptions::emulator) has none | the buffers, and as the emulator | Rust's 2 MiB for threads of its own, as many as there are cores | `tests/runtime/faults.rs`, `tests/runtime/variants.rs` |
//!
//! The targets `ir_text`, `ptx_text` and `source_text` run under 512 MB of address space with `fuzz/limited.sh`.

/// Largest source text, in bytes, with the files that it imports.
pub const SOURCE_BYTES: usize = 4 << 20;
/// Most files of one source text.
pub const SOURCE_FILES: usize = 100;
/// Deepest nesting of brackets in source text.
pub const SOURCE_BRACKETS: usize = 100;
/// Deepest indentation of source text.
pub const SOURCE_INDENTATION: usize = 64;
/// Most operators of one statement of source text that stand in a row or within each other.
pub const SOURCE_OPERATORS: usize = 2_000;

/// Most expressions and statements of source text evaluated for one kernel.
pub const EVALUATION_STEPS: u64 = 2_000_000;
/// Most operations of one kernel made of source text.
pub const EVALUATION_OPERATIONS: usize = 200_000;
/// Deepest nesting of calls in source text.
pub const EVALUATION_CALLS: usize = 100;
/// Deepest nesting of run-time loops and conditions made of source text, a little below that of the IR's text form.
pub const EVALUATION_REGIONS: usize = 60;
/// Most trips of a loop that is unrolled at compile time.
pub const UNROLLED_TRIPS: i128 = 1 << 16;
/// Longest string that source text computes, in bytes.
pub const STRING_BYTES: usize = 1 << 16;
/// Most elements of a tuple in source text, those of tuples in it included.
pub const TUPLE_ELEMENTS: usize = 1 << 12;
/// Most entries of a signature, and of a tuple in it.
pub const SIGNATURE_ENTRIES: usize = 1024;
/// Deepest nesting of tuples in a signature.
pub const SIGNATURE_NESTING: usize = 16;

/// Most elements of one block that a thread holds.
///
/// What lies above waits for the assembler, whose time and memory grow faster than what spills, while this compiler takes less
/// than half a second. 1 added to 32^4 numbers of f32 for sm_80, by `ptxas` of CUDA 13.0: with 8,192 elements a thread it takes
/// 11 seconds of a processor and 0.4 GB, with 16,384 51 seconds and 1.2 GB, and with 32,768 it had not ended when it was stopped
/// after five minutes on a busy machine.
pub const THREAD_ELEMENTS: u32 = 1 << 13;
/// Most operations of a thread; one of the thread IR counts once for each element of its result.
///
/// A product of 64 x 64 x 64 in f32 without a unit on one warp is 9,000 lines of PTX, for which the same `ptxas` takes 0.7
/// seconds. Four of them in a row take it 6 seconds; eight, which spill ten times as much and are within the bound, had not
/// ended when it was stopped after 15 minutes on a busy machine; sixteen are beyond the bound.
pub const THREAD_OPERATIONS: u32 = 1 << 18;
/// Most bytes of a kernel's parameters, which is what PTX has room for from version 8.1 on.
pub const PARAMETER_BYTES: u32 = 32_764;

/// Registers that an entry of PTX may declare for the emulator; beyond it the text is taken to be nonsense.
pub const EMULATED_REGISTERS: u32 = 1 << 18;
/// Bytes that one variable of PTX, and the local or shared memory of one entry, may have for the emulator; beyond it the
/// text is taken to be nonsense.
pub const EMULATED_VARIABLE_BYTES: u64 = 1 << 28;
/// Depth to which blocks of PTX may nest for the emulator.
pub const EMULATED_NESTING: usize = 64;
/// Most bytes that the registers and the local memory of a CTA may take in the emulator. A kernel of Triton in SSA form has
/// some 50,000 names, which are 100 MB for 256 threads.
pub const EMULATED_CTA_BYTES: u64 = 128 << 20;

/// Longest contents of a file of the cache; a kernel's are below a mebibyte.
pub const CACHE_ENTRY_BYTES: u64 = 256 << 20;

/// Longest manifest, in bytes, the files that it names included.
pub const MANIFEST_BYTES: usize = 16 << 20;
/// Most kernels of a manifest.
pub const MANIFEST_KERNELS: usize = 1 << 16;

/// Most bytes that the command reads of a file.
pub const FILE_BYTES: u64 = 64 << 20;
/// Most bytes of all buffers of a `; run:` line together. Each executor has them twice or so, and the interpreter's record of
/// who touched what is up to twelve times as large.
pub const RUN_LINE_BYTES: usize = 1 << 28;
/// Most bytes of all buffers of a launch that `tilelift bench` and `tilelift tune` make; on the host they lie once more.
pub const BENCH_BYTES: usize = 1 << 34;
/// Programs of the grid of a `; run:` line that says nothing else. Steps alone would let 40 million pass that do nothing, which take
/// minutes.
pub const RUN_LINE_PROGRAMS: u64 = 1 << 20;
/// Warp instructions of the emulator for a `; run:` line that says nothing else.
pub const RUN_LINE_STEPS: u64 = 1 << 24;
/// More bytes than the memory of any GPU has.
const MOST_BYTES: u64 = 1 << 39;

/// A list with room for so many items; none where the host has no room for them, or where they take more than any GPU has: a host
/// that promises whatever it is asked for would end the process once they are written.
pub(crate) fn list_with_room<T>(len: usize) -> Option<Vec<T>> {
    let bytes = len.checked_mul(size_of::<T>())?;
    let mut list = Vec::new();
    let is_given = bytes as u64 <= MOST_BYTES && list.try_reserve_exact(len).is_ok();
    is_given.then_some(list)
}
