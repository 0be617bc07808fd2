//! How rows of few numbers come to the products of a loop, on Hopper.

use crate::pipelines::on_hopper;

/// A column of scales, of which no two lie side by side.
const SCALED: &str = "\
import triton
import triton.language as tl

@triton.jit
def scaled(out, x, weight, scales, K):
    n = tl.arange(0, 64)
    k = tl.arange(0, 64)
    acc = tl.zeros((64, 64), dtype=tl.float32)
    for start in range(0, K, 64):
        w = tl.load(weight + n[:, None] * K + start + k[None, :])
        scale = tl.load(scales + n * (K // 64) + start // 64)
        acc = tl.dot(w * scale[:, None], tl.load(x + (start + k)[:, None] * 64 + n[None, :]), acc)
    tl.store(out + n[:, None] * 64 + n[None, :], acc)
";

/// A few numbers that copies cannot move: where a ring has an entry for it, an iteration stores what the one before loaded.
#[test]
fn a_few_numbers_have_an_iteration_more_to_arrive() {
    for (stages, is_held) in [(2, false), (3, true)] {
        let signature = "*fp32:16, *fp16:16, *fp16:16, *fp16:16, i32:16";
        let ptx = on_hopper(("scaled.py", SCALED), "scaled", signature, (4, stages));
        let first = ptx.find("wgmma.mma_async").expect("as was seen");
        let at = |op: &str| ptx[first..].find(op).expect("scales come by registers");
        let (load, store) = (at("ld.global.b16"), at("st.shared.b16"));
        assert_eq!(store < load, is_held, "{stages} stages");
    }
}

/// Fewer numbers than threads, of which one thread each copies its own: where they have several iterations to arrive, and not where
/// they have one, which is enough for registers.
#[test]
fn a_few_numbers_are_copied_where_they_have_iterations_to_arrive() {
    let text = SCALED.replace("w * scale[:, None]", "(w * scale[:, None]).to(tl.float16)");
    for (stages, is_copied) in [(2, false), (3, true)] {
        let signature = "*fp32:16, *fp16:16, *fp16:16, *fp32:16, i32:16";
        let ptx = on_hopper(("scaled.py", &text), "scaled", signature, (4, stages));
        let copies = ptx.lines().filter(|line| {
            line.trim_start().starts_with("@%p") && line.contains("cp.async.ca.shared.global")
        });
        let expected = if is_copied { usize::from(stages) } else { 0 };
        assert_eq!(copies.count(), expected, "{stages} stages\n{ptx}");
        assert_eq!(ptx.contains("ld.global"), !is_copied, "{stages} stages");
    }
}
