//! The passes in their order, on the kernels that tests of layouts use.

use crate::analysis::testing::{
    self, all, column_sum, layer_norm, softmax, softmax_rows, transposed_copy, vector_add,
};
use crate::ir::function::TileFunction;
use crate::ir::ops::TileOp;
use crate::ir::types::Scalar;
use crate::layout::assign::LayoutStats;
use crate::pipeline::optimize;
use crate::settings::{Options, Target};
use crate::text::print::print;
use crate::tile::resources::ResourcePlan;

/// Optimizes with the verifier between passes.
fn optimized(func: &TileFunction, target: Target) -> (TileFunction, LayoutStats) {
    let mut func = func.clone();
    let options = Options {
        verify_passes: true,
        ..Options::DEFAULT
    };
    let stats = optimize(
        &mut func,
        target,
        &options,
        ResourcePlan::ALL,
        &mut |_, _| {},
    );
    let stats = stats.unwrap_or_else(|e| panic!("{e}"));
    testing::check(&func);
    (func, stats.layouts)
}

#[test]
fn row_kernels_are_converted_nowhere_and_transposes_once() {
    use Scalar::{Bf16, F16, F32};
    let kernels = [
        (vector_add(F32, F32, F32), 0),
        (vector_add(F16, F32, F16), 0),
        (vector_add(Bf16, Bf16, Bf16), 0),
        (softmax(1024), 0),
        (softmax(32), 0),
        (softmax_rows(16, 256), 0),
        (layer_norm(1024), 0),
        (column_sum(64, 64), 0),
        (transposed_copy(64), 1),
    ];
    for (func, conversions) in kernels {
        for target in Target::ALL {
            let (after, stats) = optimized(&func, target);
            assert_eq!(stats.conversions, conversions, "{}", print(&after));
            // The division of rows makes four values that all depend on each other.
            assert_eq!(stats.exact, func.name != "softmax_rows", "{}", func.name);
        }
    }
}

#[test]
fn softmax_divides_once() {
    let (func, _) = optimized(&softmax(1024), Target::SM_80);
    assert!(all(&func, TileOp::Fdiv).is_empty() && all(&func, TileOp::Exp).is_empty());
    let rcp = all(&func, TileOp::RcpFtz);
    assert_eq!(rcp.len(), 1);
    let argument = func.dfg.insts[rcp[0]].args[0];
    assert!(func.dfg.ty(argument).is_scalar());
}

#[test]
fn contraction_is_an_option() {
    let count = |fp_fusion| {
        let mut func = layer_norm(1024);
        let options = Options {
            fp_fusion,
            ..Options::DEFAULT
        };
        let result = optimize(
            &mut func,
            Target::SM_80,
            &options,
            ResourcePlan::ALL,
            &mut |_, _| {},
        );
        assert!(result.is_ok());
        all(&func, TileOp::Fma).len()
    };
    // The square added up, the variance, and weight and bias.
    assert_eq!((count(true), count(false)), (3, 0));
}

#[test]
fn compiling_twice_gives_the_same_text() {
    let text = |func: &TileFunction| print(&optimized(func, Target::SM_90).0);
    for func in [layer_norm(512), softmax_rows(8, 128), transposed_copy(32)] {
        assert_eq!(text(&func), text(&func));
    }
}
