//! What the compiler predicts of registers, against what ptxas uses, for the kernels of the comparison on GPUs.

use crate::common::kernels;
use crate::common::ptxas;
use tilelift::compile::compile;
use tilelift::ir::types::Scalar;
use tilelift::settings::{Options, Target};

use crate::common::kernels::Config;

/// Nine of ten, as for the kernels of `tests/compiler/ptxas.rs`. With ptxas 12.8 and 13.0 these are 63 of 68: what is missed are
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
