//! Every instruction that synchronises taken out of the PTX of the kernels of `examples/kernels`, one at a time: the emulator reports
//! it, or the result is another, or it is in a list with the reason why nobody needs it here.

use std::collections::BTreeMap;
use std::path::PathBuf;

use tilelift::filetest::run::{Left, Setup, run_edited};
use tilelift::front::Module;
use tilelift::ir::function::TileFunction;
use tilelift::settings::{Options, Target};

use crate::front::{Directive, directives};

/// Launches beside those that the files state: blocks for warpgroups, and loops that go round more often.
const MORE: &[(&str, &str)] = &[
    (
        "matmul.py",
        r#"# run: matmul "*fp16:16, *fp16:16, *fp16:16, i32, i32, i32, i32:16, i32:16, i32:1, i32:16, 64, 32, 32, 2, fp32, 'tf32'" : grid(2) a_ptr=f16[24576] normal(1) b_ptr=f16[6144] normal(2) c_ptr=f16[4096] poison M=128 N=32 K=192 stride_a=192 stride_bk=32 stride_c=32
"#,
    ),
    (
        "matmul.py",
        r#"# run: batched_matmul "*fp32, *fp32, *fp32, i32, i32, i32, 32, 32, 16, 2" : grid(1,2) out=f32[2048] poison x=f32[5120] normal(1) weight=f32[5120] normal(2) M=32 N=32 K=80
"#,
    ),
    (
        "attention.py",
        r#"# run: forward "*fp16:16, *fp32:16, *fp16:16, *fp16:16, *fp16:16, i32:16, fp32, 64, 32, 64, True" : grid(4,1) out=f16[16384] poison logs=f32[256] poison q_ptr=f16[16384] normal(1) k_ptr=f16[16384] normal(2) v_ptr=f16[16384] normal(3) N=256 scale=0.3
"#,
    ),
    (
        "attention.py",
        r#"# run: backward_keys "*fp16, *fp16, *fp16, *fp16, *fp16, *fp16, *fp32, *fp32, i32, fp32, 32, 32, 16, False" : grid(1,1) dk_ptr=f16[2560] poison dv_ptr=f16[2560] poison q_ptr=f16[2560] normal(1) k_ptr=f16[2560] normal(2) v_ptr=f16[2560] normal(3) dout_ptr=f16[2560] normal(4) logs=f32[160] uniform(5,3,4) delta=f32[160] normal(6) N=160 scale=0.3
"#,
    ),
    (
        "attention.py",
        r#"# run: backward_rows "*fp16, *fp16, *fp16, *fp16, *fp16, *fp32, *fp32, i32, fp32, 32, 32, 16, True" : grid(4,1) dq_ptr=f16[2048] poison q_ptr=f16[2048] normal(1) k_ptr=f16[2048] normal(2) v_ptr=f16[2048] normal(3) dout_ptr=f16[2048] normal(4) logs=f32[128] uniform(5,3,4) delta=f32[128] normal(6) N=128 scale=0.3
"#,
    ),
    (
        "norm.py",
        r#"# run: layer_norm_backward "*fp32, *fp32, *fp32, *i32, *fp32, *fp32, *fp32, *fp32, *fp32, i32, i32, 2, 64" : grid(6) dx=f32[270] poison dweight=f32[90] poison dbias=f32[90] poison lock=i32[4] zeros dout=f32[270] normal(1) x=f32[270] normal(2) weight=f32[45] normal(3) mean=f32[6] normal(4) scale=f32[6] uniform(5,0.5,2) stride=45 columns=45
"#,
    ),
    (
        "recurrent.py",
        r#"# run: convolve_taps "*fp16, *fp16, *fp16, i32, i32, i32, i32, i32, 3, 32, 16, 16" : grid(3,2) out=f16[1680] poison x_ptr=f16[1120] normal(1) w_ptr=f16[3456] normal(2) batch=2 height=5 width=7 channels=16 filters=24
"#,
    ),
];

/// What is taken out, by how it begins behind a guard.
const TAKEN_OUT: &[&str] = &[
    "bar.",
    "barrier.",
    "wgmma.fence",
    "wgmma.commit_group",
    "wgmma.wait_group",
    "cp.async.commit_group",
    "cp.async.wait_",
    "cp.async.bulk.commit_group",
    "cp.async.bulk.wait_group",
    "mbarrier.init",
    "mbarrier.arrive",
    "mbarrier.try_wait",
    "mbarrier.test_wait",
    "fence.",
    "membar.",
];

/// Why something may be missing: the target if it is one, the kernel, the opcode, how often.
type Harmless = (
    Option<Target>,
    &'static str,
    &'static str,
    usize,
    &'static str,
);
const HARMLESS: &[Harmless] = &[
    (None, "cross_entropy", "bar.sync", 3, ALIASES),
    (None, "cross_entropy", "bar.sync", 1, CHOSEN),
    (None, "cumulative_sum", "bar.sync", 1, ALIASES),
    (None, "dequantize_blocks", "bar.sync", 1, ALIASES),
    (None, "dequantize_rows", "bar.sync", 1, ALIASES),
    (None, "embedding", "bar.sync", 1, ALIASES),
    (None, "layer_norm_backward", "bar.sync", 1, ALIASES),
    (None, "layer_norm_backward", "bar.sync", 1, LAST),
    (None, "sum_choices", "bar.sync", 1, ALIASES),
    (None, "sum_last", "bar.sync", 1, ALIASES),
    (None, "sum_parts", "bar.sync", 1, ALIASES),
    (None, "top_k", "bar.sync", 1, ALIASES),
    (None, "vector_matrix", "bar.sync", 1, ALIASES),
    (None, "decode", "bar.warp.sync", 1, IN_FRONT),
    (None, "layer_norm_linear_gelu", "bar.warp.sync", 1, IN_FRONT),
    (None, "row_bias_silu", "bar.warp.sync", 1, IN_FRONT),
    (None, "scaled_matmul", "bar.warp.sync", 2, IN_FRONT),
    (None, "varied", "bar.warp.sync", 1, IN_FRONT),
    (None, "max_locked", "bar.sync", 1, LAST),
    (None, "sum_atomic", "bar.sync", 1, LAST),
    (None, "sum_last", "bar.sync", 1, LAST),
    (
        None,
        "sum_atomic",
        "bar.sync",
        1,
        "what its threads loaded may change behind the step, and nobody changes it",
    ),
    (
        None,
        "sum_last",
        "bar.sync",
        2,
        "the one thread that stores takes the step",
    ),
    (None, "backward", "cp.async.commit_group", 2, NO_MORE),
    (None, "backward", "cp.async.wait_group", 1, NO_MORE),
    (
        Some(Target::SM_80),
        "backward",
        "bar.sync",
        1,
        "behind what an iteration reads of its entry stands another barrier of it",
    ),
    (
        None,
        "persistent_matmul",
        "bar.sync",
        1,
        "the result is exchanged where another entry stands than the last iteration reads",
    ),
    (None, "backward_keys", "cp.async.wait_group", 1, NO_MORE),
    (None, "forward_few_bits", "cp.async.wait_group", 1, NO_MORE),
    (None, "word_weights", "cp.async.wait_group", 1, NO_MORE),
    (
        Some(Target::SM_90A),
        "word_weights",
        "fence.proxy.async.shared::cta",
        1,
        BEHIND,
    ),
    (
        Some(Target::SM_90A),
        "forward",
        "fence.mbarrier_init.release.cluster",
        5,
        BESIDE,
    ),
    (
        Some(Target::SM_90A),
        "forward",
        "fence.proxy.async.shared::cta",
        1,
        BESIDE,
    ),
    (
        Some(Target::SM_90A),
        "forward",
        "fence.proxy.async.shared::cta",
        2,
        "another one stands in front of what the engine does next",
    ),
    (
        Some(Target::SM_90A),
        "forward",
        "fence.proxy.async.shared::cta",
        4,
        "nothing was loaded before the first copies to bytes that are loaded later",
    ),
    (
        Some(Target::SM_90A),
        "forward",
        "wgmma.fence.sync.aligned",
        5,
        "one before it orders the same registers",
    ),
    (
        Some(Target::SM_90A),
        "matmul",
        "wgmma.fence.sync.aligned",
        2,
        "one in front of the loop and one in it order the same zeros",
    ),
    (
        Some(Target::SM_90A),
        "forward",
        "mbarrier.arrive.expect_tx.shared::cta.b64",
        2,
        "loops of two iterations bring no third entry",
    ),
    (
        Some(Target::SM_90A),
        "int4_matmul",
        "wgmma.commit_group.sync.aligned",
        7,
        CHAINED,
    ),
    (
        Some(Target::SM_90A),
        "int4_matmul",
        "wgmma.fence.sync.aligned",
        8,
        FENCED,
    ),
    (
        Some(Target::SM_90A),
        "int4_matmul",
        "wgmma.wait_group.sync.aligned",
        4,
        FIRST,
    ),
    (Some(Target::SM_90A), "int4_matmul", "bar.sync", 4, AHEAD),
    (
        Some(Target::SM_90A),
        "int4_matmul",
        "fence.proxy.async.shared::cta",
        4,
        AHEAD,
    ),
    (
        Some(Target::SM_90A),
        "table4_matmul",
        "wgmma.commit_group.sync.aligned",
        4,
        CHAINED,
    ),
    (
        Some(Target::SM_90A),
        "table4_matmul",
        "fence.proxy.async.shared::cta",
        2,
        STORED,
    ),
    (
        Some(Target::SM_90A),
        "table4_matmul",
        "bar.sync",
        4,
        TOGETHER,
    ),
    (
        Some(Target::SM_90A),
        "table4_matmul",
        "wgmma.fence.sync.aligned",
        6,
        FENCED,
    ),
    (
        Some(Target::SM_90A),
        "few_rows_by_last",
        "fence.proxy.async.shared::cta",
        2,
        OVER,
    ),
    (None, "few_rows_by_atomics", "bar.sync", 1, ORDERLESS),
    (None, "few_rows_by_atomics", "bar.warp.sync", 1, IN_FRONT),
    // With ROW, which is no other code on sm_80.
    (
        Some(Target::SM_90A),
        "vector_matrix",
        "bar.sync",
        1,
        ALIASES,
    ),
    (
        Some(Target::SM_90A),
        "few_rows_by_atomics",
        "bar.sync",
        1,
        ORDERLESS,
    ),
    (
        Some(Target::SM_90A),
        "few_rows_by_atomics",
        "bar.warp.sync",
        1,
        IN_FRONT,
    ),
    (
        Some(Target::SM_90A),
        "few_rows_by_atomics",
        "bar.sync",
        2,
        TOGETHER,
    ),
    (
        Some(Target::SM_90A),
        "few_rows_by_atomics",
        "fence.proxy.async.shared::cta",
        2,
        OVER,
    ),
    (None, "int4_matmul", "cp.async.wait_group", 4, NO_MORE),
    (
        Some(Target::SM_90A),
        "int4_matmul",
        "fence.proxy.async.shared::cta",
        2,
        BEHIND,
    ),
    (Some(Target::SM_90A), "forward", "bar.sync", 5, TOGETHER),
    (Some(Target::SM_90A), "matmul", "bar.sync", 2, TOGETHER),
];
const ALIASES: &str =
    "what several threads load may be stored by another parameter that is given the same pointer";
const CHOSEN: &str = "each thread stores what it has loaded; that the element which data chooses was read behind the author's barrier is not told";
const IN_FRONT: &str =
    "orders nothing: it keeps the assembler from moving loads down to what stores or reads them";
const LAST: &str = "behind the last atomic step nobody reads what it acquired";
const BESIDE: &str =
    "of the fences for barriers and for data, side by side, either covers the barrier";
const CHAINED: &str = "the next product adds to the same sum and reads other registers, and a wait behind it is for both";
const FENCED: &str = "what the product reads in registers was there at the fence before";
const STORED: &str = "a fence follows what was stored for the product, and nothing before it is";
const NO_MORE: &str = "copies of iterations that do not exist bring nothing";
const FIRST: &str = "a wait for all products stands behind it";
const AHEAD: &str = "what was stored is for the next iteration, which begins with a barrier";
const BEHIND: &str = "behind the last product the unit reads nothing";
const ORDERLESS: &str = "programs are executed one after the other here: what they add is there when the last one reads it";
const OVER: &str = "no box comes any more";
const TOGETHER: &str = "the only four warps have waited for a product that all of them compute";

/// The instruction of a line, if it is one of those.
fn taken_out(line: &str) -> Option<&str> {
    let code = line.trim();
    let code = match code.strip_prefix('@') {
        Some(guarded) => guarded.split_once(char::is_whitespace)?.1.trim_start(),
        None => code,
    };
    TAKEN_OUT
        .iter()
        .any(|name| code.starts_with(name))
        .then_some(code)
}

/// The text without a line. Where that waits for a phase, as if the phase had been over.
fn without(text: &str, at: usize) -> String {
    let lines = text.lines().enumerate().map(|(i, line)| match i == at {
        false => line.to_owned(),
        true if line.contains("_wait.parity") => {
            let operands = line.split_once("b64").map_or("", |(_, operands)| operands);
            let predicate = operands.split(',').next().unwrap_or_default();
            format!("setp.eq.u32 {},0,0;", predicate.trim())
        }
        true => String::new(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn kernels() -> Vec<(String, Vec<u8>, Directive)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("examples/kernels");
    let files = std::fs::read_dir(&folder).expect("committed files");
    let mut files: Vec<PathBuf> = files.map(|entry| entry.expect("readable").path()).collect();
    files.sort();
    let mut all = Vec::new();
    for path in files {
        let name = path
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        let bytes = std::fs::read(&path).expect("readable");
        let mut text = String::from_utf8(bytes.clone()).expect("text");
        for (_, line) in MORE.iter().filter(|(file, _)| *file == name) {
            text += line;
        }
        let found = directives(&text)
            .into_iter()
            .filter(|d| d.kind == "run" && !d.run.contains("expect error"));
        all.extend(found.map(|directive| (name.clone(), bytes.clone(), directive)));
    }
    all
}

/// A launch of a kernel.
struct Run {
    func: TileFunction,
    words: String,
    left: Left,
}

/// Instructions that no launch misses, by kernel and opcode, with how many of each; how many were tried.
fn silent(target: Target) -> (BTreeMap<(String, String), usize>, usize) {
    let setup = Setup::new(target, &Options::DEFAULT);
    let mut texts: BTreeMap<(String, String), Vec<Run>> = BTreeMap::new();
    for (name, bytes, directive) in kernels() {
        let mut spec = directive.spec.clone();
        spec.target = target;
        let module = Module::parse_bytes(&name, &bytes).expect("it is parsed");
        let lowered = module.lower(Some(&directive.kernel), &spec);
        let func = lowered.unwrap_or_else(|e| panic!("{name}: {e}")).func;
        let mut text = String::new();
        let left = run_edited(&func, &directive.run, &setup, 0, |ptx| {
            text.clone_from(&ptx);
            ptx
        });
        let left = left.unwrap_or_else(|e| panic!("{name}, {}: {e}", directive.kernel));
        let runs = texts.entry((directive.kernel, text)).or_default();
        runs.push(Run {
            func,
            words: directive.run,
            left,
        });
    }
    let (mut tried, mut silent) = (0, BTreeMap::new());
    for ((kernel, text), runs) in texts {
        for (at, line) in text.lines().enumerate() {
            let Some(code) = taken_out(line) else {
                continue;
            };
            tried += 1;
            let changed = without(&text, at);
            let is_missed = |run: &Run| {
                (0..3).any(|seed| {
                    let left = run_edited(&run.func, &run.words, &setup, seed, |_| changed.clone());
                    left.as_ref() != Ok(&run.left)
                })
            };
            if !runs.iter().any(is_missed) {
                let opcode = code.split([' ', '\t', ';']).next().unwrap_or_default();
                eprintln!("{target} {kernel} {}: {line}", at + 1);
                let key = (kernel.clone(), opcode.to_owned());
                *silent.entry(key).or_default() += 1;
            }
        }
    }
    (silent, tried)
}

/// At most what [`HARMLESS`] says is silent, and each of that is.
fn check(target: Target, least: usize) {
    let (silent, tried) = silent(target);
    assert!(tried >= least, "{tried} taken out");
    let mut wanted: BTreeMap<(String, String), usize> = BTreeMap::new();
    for (on_target, kernel, opcode, count, reason) in HARMLESS {
        assert!(!reason.is_empty());
        if on_target.is_none_or(|on| on == target) {
            let key = ((*kernel).to_owned(), (*opcode).to_owned());
            *wanted.entry(key).or_default() += count;
        }
    }
    assert_eq!(silent, wanted, "{target}: {tried} taken out");
}

#[test]
fn removals_on_sm_80() {
    check(Target::SM_80, 100);
}

#[test]
fn removals_on_sm_90a() {
    check(Target::SM_90A, 170);
}
