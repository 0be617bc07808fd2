//! What the compiler predicts of registers, against what ptxas uses, for the kernels of the comparison on GPUs.

use tilelift::compile::compile;
#[cfg(feature = "triton")]
use tilelift::ir::function::TileFunction;
use tilelift::ir::types::Scalar;
use tilelift::settings::{Options, Target};

#[path = "common/kernels/mod.rs"]
#[expect(
    dead_code,
    unused_imports,
    reason = "other tests use the other kernels"
)]
mod kernels;
#[path = "common/ptxas.rs"]
mod ptxas;

use kernels::Config;

/// Nine of ten, as for the kernels of `tests/ptxas.rs`. With ptxas 12.8 and 13.0 these are 63 of 68: what is missed are
/// softmaxes and layer norms of 32 and 64 elements a thread, which ptxas spreads further.
#[test]
fn nine_of_ten_predictions_are_within_eight() {
    let mut found = Vec::new();
    for (block, warps) in [(512, 4), (1024, 4), (2048, 8), (2048, 4)] {
        found.push(("add", block, warps));
    }
    for block in [1024_u64, 4096, 8192] {
        for warps in [1_u32, 2, 4, 8, 16, 32] {
            // As the benchmark has them: 1 to 64 elements for each thread.
            if (1..=64).contains(&(block / (32 * u64::from(warps)))) {
                found.push(("softmax", block, warps));
                found.push(("layer_norm", block, warps));
            }
        }
    }
    let mut n_close = 0;
    let mut report = String::new();
    let n_all = 2 * found.len();
    for (kind, block, warps) in found {
        let config = Config {
            scalar: Scalar::F32,
            block,
            warps,
            divisible: 16,
        };
        let func = match kind {
            "add" => kernels::vector_add(config),
            "softmax" => kernels::softmax(config),
            _ => kernels::layer_norm(config),
        };
        for target in [Target::SM_80, Target::SM_90] {
            let options = Options {
                verify_passes: false,
                ..Options::DEFAULT
            };
            let kernel = compile(&func, target, &options).expect("the kernel compiles");
            let Some(used) = ptxas::assemble(&kernel.ptx, &target.to_string()) else {
                return;
            };
            let predicted = kernel.stats.machine.predicted_registers;
            n_close += usize::from(predicted.abs_diff(used.registers) <= 8);
            report += &format!(
                "{kind} {block} {warps} {target}: predicted {predicted}, used {}\n",
                used.registers
            );
        }
    }
    assert!(
        n_all * 9 <= n_close * 10,
        "{n_close} of {n_all} are close:\n{report}"
    );
}

/// A kernel of `examples/kernels`: file, name, signature, warps and stages.
#[cfg(feature = "triton")]
type Example = (&'static str, &'static str, &'static str, u32, u8);

/// Products and attention that use all registers, or nearly: half of them spill.
#[cfg(feature = "triton")]
const EXAMPLES: [Example; 12] = [
    (
        "matmul",
        "matmul",
        "*fp32:16, *fp32:16, *fp32:16, i32:16, i32:16, i32:16, i32:16, i32:16, i32:1, i32:16, 128, 128, 32, 8, fp32, 'tf32'",
        4,
        3,
    ),
    (
        "linear",
        "linear_gelu",
        "*fp16:16, *fp16:16, *fp16:16, *fp16:16, i32:16, i32:16, i32:16, 32, 128, 256, 8",
        8,
        3,
    ),
    (
        "linear",
        "row_bias_silu",
        "*fp16:16, *fp16:16, *fp16:16, *fp16:16, i32:16, i32:16, i32:16, 8, 256, 64, 32",
        4,
        4,
    ),
    (
        "linear",
        "layer_norm_linear_gelu",
        "*fp16:16, *fp16:16, *fp16:16, *fp16:16, *fp16:16, fp32, 128, 128, 64, 1024, 4096, fp32",
        4,
        3,
    ),
    (
        "linear",
        "layer_norm_linear_gelu",
        "*fp16:16, *fp16:16, *fp16:16, *fp16:16, *fp16:16, fp32, 128, 128, 32, 1024, 4096, fp32",
        4,
        4,
    ),
    (
        "attention",
        "backward_rows",
        "*fp16:16, *fp16:16, *fp16:16, *fp16:16, *fp16:16, *fp32:16, *fp32:16, i32:16, fp32, 128, 64, 64, False",
        4,
        2,
    ),
    (
        "attention",
        "backward_rows",
        "*fp16:16, *fp16:16, *fp16:16, *fp16:16, *fp16:16, *fp32:16, *fp32:16, i32:16, fp32, 64, 64, 128, False",
        4,
        2,
    ),
    (
        "attention",
        "backward_rows",
        "*fp16:16, *fp16:16, *fp16:16, *fp16:16, *fp16:16, *fp32:16, *fp32:16, i32:16, fp32, 128, 64, 128, True",
        8,
        2,
    ),
    (
        "attention",
        "backward_keys",
        "*fp16:16, *fp16:16, *fp16:16, *fp16:16, *fp16:16, *fp16:16, *fp32:16, *fp32:16, i32:16, fp32, 32, 64, 128, False",
        4,
        2,
    ),
    (
        "attention",
        "backward_keys",
        "*fp16:16, *fp16:16, *fp16:16, *fp16:16, *fp16:16, *fp16:16, *fp32:16, *fp32:16, i32:16, fp32, 64, 128, 128, True",
        8,
        2,
    ),
    (
        "attention",
        "forward",
        "*fp16:16, *fp32:16, *fp16:16, *fp16:16, *fp16:16, i32:16, fp32, 128, 64, 64, True",
        4,
        3,
    ),
    (
        "attention",
        "forward",
        "*fp16:16, *fp32:16, *fp16:16, *fp16:16, *fp16:16, i32:16, fp32, 128, 64, 128, True",
        4,
        3,
    ),
];

#[cfg(feature = "triton")]
fn example((file, name, signature, warps, stages): Example) -> TileFunction {
    use tilelift::front::{Module, Specialization, parse_signature};
    let path = format!("{}/examples/kernels/{file}.py", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).expect("the examples are there");
    let module = Module::parse(&path, &text).expect("it is Python");
    let signature = parse_signature(signature).expect("a signature");
    let spec = Specialization {
        num_warps: warps,
        num_stages: Some(stages),
        ..Specialization::new(signature, Target::SM_80)
    };
    module.lower(Some(name), &spec).expect("it is right").func
}

/// What spills more than 128 bytes of a thread, stores and loads, is said to need more registers than there are, and nothing else is, but for one
/// kernel in ten.
#[test]
#[cfg(feature = "triton")]
fn nine_of_ten_spills_are_foretold() {
    const FEW: u32 = 128;
    let mut all: Vec<(String, TileFunction)> = Vec::new();
    for (block, warps) in [(8192, 2), (16384, 2), (16384, 4), (32768, 4), (32768, 16)] {
        let config = Config {
            scalar: Scalar::F32,
            block,
            warps,
            divisible: 16,
        };
        all.push((format!("softmax {block} {warps}"), kernels::softmax(config)));
        all.push((
            format!("layer_norm {block} {warps}"),
            kernels::layer_norm(config),
        ));
    }
    all.extend(EXAMPLES.map(|one| (format!("{one:?}"), example(one))));
    let (mut n_right, mut n_spill) = (0, 0);
    let mut report = String::new();
    for (name, func) in &all {
        let options = Options {
            verify_passes: false,
            ..Options::DEFAULT
        };
        let kernel = compile(func, Target::SM_80, &options).expect("the kernel compiles");
        let Some(used) = ptxas::assemble(&kernel.ptx, "sm_80") else {
            return;
        };
        let needed = kernel.stats.machine.needed_registers;
        let is_foretold = needed > Target::most_registers(32 * kernel.meta.num_warps);
        n_right += usize::from(is_foretold == (used.spilled > FEW));
        n_spill += usize::from(used.spilled > FEW);
        report += &format!("{name}: needs {needed}, {} bytes spilled\n", used.spilled);
    }
    assert!(
        all.len() * 9 <= n_right * 10 && n_spill >= 5 && n_spill + 5 <= all.len(),
        "{n_right} of {} are foretold, {n_spill} spill:\n{report}",
        all.len()
    );
}
