//! What a multiprocessor computes in a cycle, for saying how near a kernel comes to it.

use crate::ir::types::Scalar;
use crate::settings::Target;

/// Floating-point operations that a multiprocessor does in a cycle at most, a product and a sum being two: of its units for
/// matrices of such numbers, without sparsity and with sums in f32 where there are any, or of its threads; none if there is
/// nothing of the kind.
///
/// After NVIDIA's architecture papers: 2,048 of f16 are the 312 TFLOP/s of an A100 (108 multiprocessors at 1.41 GHz).
/// Consumer boards of sm_86, sm_89 and sm_120 do half of it where f16 is summed in f32.
pub(super) fn flops_per_cycle(target: Target, elem: Scalar, matrices: bool) -> Option<u32> {
    use Scalar::{Bf16, F8E4M3, F8E5M2, F16, F32, F64, I8};
    let flops = match (target.sm, elem, matrices) {
        (70 | 75, F16, true) => 1024,
        (75, I8, true) => 2048,
        (80, F16 | Bf16, true) => 2048,
        (80, F32, true) => 1024,
        (80, I8, true) => 4096,
        (80, F64, true) => 128,
        (86 | 89 | 120, F16 | Bf16, true) => 1024,
        (86 | 89 | 120, F32, true) => 512,
        (86 | 89 | 120, I8, true) => 2048,
        (89 | 120, F8E4M3 | F8E5M2, true) => 2048,
        (90, F16 | Bf16, true) => 4096,
        (90, F32, true) => 2048,
        (90, F8E4M3 | F8E5M2 | I8, true) => 8192,
        (90, F64, true) => 256,
        (100, F16 | Bf16, true) => 8192,
        (100, F32, true) => 4096,
        (100, F8E4M3 | F8E5M2 | I8, true) => 16384,
        // The threads: narrower floats are computed as f32.
        (70 | 75 | 80, F16 | Bf16 | F32, false) => 128,
        (86 | 89 | 90 | 100 | 120, F16 | Bf16 | F32, false) => 256,
        (70 | 80, F64, false) => 64,
        (90 | 100, F64, false) => 128,
        (75 | 86 | 89 | 120, F64, _) => 4,
        _ => return None,
    };
    Some(flops)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boards_have_what_their_papers_say() {
        // Multiprocessors and GHz of the paper, TFLOP/s.
        for (target, units, ghz, elem, matrices, paper) in [
            (Target::SM_70, 80.0, 1.53, Scalar::F16, true, 125.0),
            (Target::SM_80, 108.0, 1.41, Scalar::Bf16, true, 312.0),
            (Target::SM_80, 108.0, 1.41, Scalar::F32, true, 156.0),
            (Target::SM_80, 108.0, 1.41, Scalar::F32, false, 19.5),
            (Target::SM_89, 142.0, 2.52, Scalar::F16, true, 362.0),
            (Target::SM_90, 132.0, 1.83, Scalar::F16, true, 989.0),
            (Target::SM_90, 132.0, 1.83, Scalar::F8E4M3, true, 1979.0),
            (Target::SM_90, 132.0, 1.98, Scalar::F32, false, 67.0),
        ] {
            let flops = flops_per_cycle(target, elem, matrices).expect("it has such");
            let found = f64::from(flops) * units * ghz / 1e3;
            let off = (found - paper).abs() / paper;
            // Clocks are rounded there.
            assert!(off < 0.02, "{target} {elem}: {found} of {paper}");
        }
        assert_eq!(flops_per_cycle(Target::SM_70, Scalar::I8, true), None);
    }
}
