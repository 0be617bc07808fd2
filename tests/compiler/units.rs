//! What products by warpgroups ask of operands and registers.

use crate::common::ptxas;
use crate::pipelines::on_hopper;
use tilelift::compile::compile;
use tilelift::front::{Lowered, Module, Specialization, parse_signature};
use tilelift::settings::{Options, Policy, Target};

/// A product of the examples for sm_90a: b as k x n, matrices of these types, sums of type `total`.
fn product(matrices: [&str; 3], blocks: &str, total: &str, num_warps: u32) -> Lowered {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/kernels/matmul.py");
    let text = std::fs::read_to_string(path).expect("the examples are there");
    let module = Module::parse(path, &text).expect("the file parses");
    let matrices = matrices.map(|elem| format!("*{elem}:16")).join(", ");
    let sizes = "i32:16, i32:16, i32:16, i32:16, i32:16, i32:1, i32:16";
    let signature = format!("{matrices}, {sizes}, {blocks}, 8, {total}, 'tf32'");
    let args = parse_signature(&signature).expect("the signature parses");
    let mut spec = Specialization::new(args, Target::SM_90A);
    (spec.num_warps, spec.num_stages) = (num_warps, Some(3));
    module.lower(Some("matmul"), &spec).expect("it is right")
}

/// Matrices whose rows run across the summed dimension, in types that the unit reads along it alone: they are turned on their way by
/// wide accesses and permutations of bytes, where nothing meets in a bank.
#[test]
fn what_is_turned_for_units_goes_by_words() {
    for (elem, total, blocks, permutations) in [
        ("i8", "i32", "128, 128, 128", 64),
        ("fp8e4nv", "fp32", "64, 128, 64", 32),
    ] {
        let kernel = product([elem, elem, "fp32"], blocks, total, 4);
        let kernel = compile(&kernel.func, Target::SM_90A, &Options::DEFAULT).expect("it compiles");
        ptxas::assemble(&kernel.ptx, "sm_90a");
        let count = |op: &str| kernel.ptx.matches(op).count();
        let single = ["ld.shared.u8", "st.shared.u8", "ld.shared.b32 "].map(count);
        assert_eq!(single, [0, 0, 0], "{elem}");
        assert!(
            count("ld.shared.v4.b32") > 0 && count("st.shared.b32 ") > 0,
            "{elem}"
        );
        assert_eq!(count("prmt.b32"), permutations, "{elem}");
    }
}

/// Keys and values of bytes become operands by wide accesses, along whichever dimension they stand, with and without a producer.
#[test]
fn bytes_become_operands_several_at_a_time() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/kernels/attention.py");
    let text = std::fs::read_to_string(path).expect("the examples are there");
    for (elem, blocks, num_warps) in [
        ("i8", "128, 64, 128", 4),
        ("fp8e4nv", "128, 128, 128", 8),
        ("fp8e5", "64, 64, 64", 4),
    ] {
        let matrices = format!("*fp16:16, *fp16:16, *{elem}:16, *{elem}:16, *fp32:16, *fp32:16");
        let signature = format!("{matrices}, i32:16, fp32, {blocks}");
        let kernel = "forward_few_bits";
        let ptx = on_hopper((path, &text), kernel, &signature, (num_warps, 2));
        let narrow = ["ld.shared.u8", "ld.shared.b8", "st.shared.b16"];
        let count = narrow.map(|op| ptx.matches(op).count());
        assert_eq!(count, [0; 3], "{elem}");
    }
}

/// Rows of keys and values that a list names.
const LISTED: &str = "\
import triton
import triton.language as tl

@triton.jit
def listed(out, q, k, v, rows, S):
    m = tl.arange(0, 64)
    d = tl.arange(0, 64)
    a = tl.load(q + m[:, None] * 64 + d[None, :])
    acc = tl.zeros((64, 64), dtype=tl.float32)
    largest = tl.full((64,), -1e30, dtype=tl.float32)
    for start in range(0, S, 64):
        n = tl.load(rows + start + tl.arange(0, 64))
        scores = tl.dot(a, tl.load(k + n[None, :] * 64 + d[:, None]))
        now = tl.maximum(largest, tl.max(scores, 1))
        p = tl.exp2(scores - now[:, None])
        acc = tl.dot(p.to(a.dtype), tl.load(v + n[:, None] * 64 + d[None, :]), acc * tl.exp2(largest - now)[:, None])
        largest = now
    tl.store(out + m[:, None] * 64 + d[None, :], acc)
";

/// Places in memory that a loop carries from iteration to iteration are known to be multiples of a row, so that copies are wide.
#[test]
fn places_that_a_loop_carries_are_aligned() {
    let signature = "*fp32:16, *fp16:16, *fp16:16, *fp16:16, *i32:16, i32:16";
    let ptx = on_hopper(("listed.py", LISTED), "listed", signature, (4, 3));
    assert!(ptx.contains("cp.async"));
    let narrow = ["ld.global.b16", "ld.global.u16", "st.shared.b16"];
    assert_eq!(narrow.map(|op| ptx.matches(op).count()), [0; 3]);
}

/// A right operand of words that stands the wrong way around becomes a left one, in registers, of the transposed product: nothing goes
/// through a second block, and no access is of a single word.
#[test]
fn words_that_stand_across_are_multiplied_transposed() {
    for (blocks, num_warps, wide) in [("128, 64, 32", 4, "v2"), ("128, 256, 32", 8, "v4")] {
        let kernel = product(["fp32"; 3], blocks, "fp32", num_warps);
        let kernel = compile(&kernel.func, Target::SM_90A, &Options::DEFAULT).expect("it compiles");
        ptxas::assemble(&kernel.ptx, "sm_90a");
        let count = |op: &str| kernel.ptx.matches(op).count();
        assert_eq!(count("st.shared"), 0, "{blocks}");
        assert_eq!(
            count("ld.shared"),
            count(&format!("ld.shared.{wide}.b32")),
            "{blocks}"
        );
        assert!(count("ld.shared") > 0, "{blocks}");
        let products = kernel
            .ptx
            .lines()
            .filter(|line| line.contains("wgmma.mma_async"));
        let in_registers = products.clone().filter(|line| line.contains("}, {"));
        assert_eq!(in_registers.count(), products.count(), "{blocks}");
    }
}

/// What an author bounds, and what there is for many warps, is enough for whoever multiplies: roles ask for no more, and products whose sums
/// find no room go to units that can spill.
#[test]
fn roles_and_units_keep_to_the_registers_there_are() {
    for (blocks, num_warps, max_registers, by_groups) in [
        ("128, 128, 64", 4, Some(128), true),
        ("128, 128, 64", 4, Some(64), false),
        ("64, 256, 64", 4, Some(128), false),
        ("128, 256, 64", 8, Some(152), false),
        ("256, 256, 64", 8, Some(168), true),
        ("256, 256, 64", 16, None, false),
        ("64, 64, 64", 32, None, true),
        ("256, 256, 64", 32, None, false),
    ] {
        let kernel = product(["fp16"; 3], blocks, "fp32", num_warps);
        for roles in [Policy::Auto, Policy::Always] {
            let options = Options {
                max_registers,
                roles,
                ..Options::DEFAULT
            };
            let what = format!("{blocks}, {num_warps} warps, {max_registers:?}, {roles:?}");
            let kernel = compile(&kernel.func, Target::SM_90A, &options);
            let kernel = kernel.unwrap_or_else(|error| panic!("{what}: {error}"));
            // Within a bound the assembler may wait for each product, which is what was asked for.
            let flags = max_registers.map(|_| "-O0");
            ptxas::assemble_with(&kernel.ptx, "sm_90a", flags.as_slice());
            let takes = kernel.ptx.contains("setmaxnreg");
            assert!(!takes || max_registers.is_none(), "{what}");
            assert_eq!(kernel.ptx.contains("wgmma.mma_async"), by_groups, "{what}");
        }
    }
}
