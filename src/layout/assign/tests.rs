//! What layouts common kernels get.

use super::*;
use crate::analysis::testing::{self, all, shape};
use crate::ir::attrs::Attrs;
use crate::ir::types::Scalar;
use crate::linear_layout::layout::HwDim;
use crate::text::parse::parse_tile;

/// Assigns, checks that every block has a layout and the types still fit.
fn assign(mut func: TileFunction) -> (TileFunction, LayoutStats) {
    let axis = Axis::compute(&func);
    let stats = assign_layouts(&mut func, &axis, Target::SM_80, Choices::none());
    testing::check(&func);
    for (_, inst) in func.all_insts() {
        let results = func.dfg.insts[inst].results.clone();
        for value in func.dfg.uses(inst).chain(results) {
            let ty = func.dfg.ty(value);
            assert_eq!(ty.layout.is_some(), !ty.is_scalar(), "{value}: {ty}");
        }
    }
    let conversions = all(&func, TileOp::ConvertLayout).len();
    assert_eq!(conversions, stats.conversions as usize);
    (func, stats)
}

/// The text of the layout of the operand or result number `i` of the only instruction with the op.
fn layout_of(func: &TileFunction, op: TileOp, i: usize) -> String {
    let inst = all(func, op)[i];
    let data = &func.dfg.insts[inst];
    let ty = func.dfg.ty(data.args[0]);
    let id = ty.layout.expand().expect("blocks have layouts");
    func.layouts[id].to_string()
}

#[test]
fn vector_add_reads_four_elements_a_thread() {
    let (func, stats) = assign(testing::vector_add(Scalar::F32, Scalar::F32, Scalar::F32));
    assert_eq!(stats.conversions, 0);
    let wanted = "{reg=[1,2,512], lane=[4,8,16,32,64], warp=[128,256]}";
    assert_eq!(layout_of(&func, TileOp::Load, 0), wanted);
    assert_eq!(layout_of(&func, TileOp::Store, 0), wanted);
}

#[test]
fn narrow_elements_decide_the_vector_where_both_are_read() {
    for elems in [
        [Scalar::F16, Scalar::F16, Scalar::F16],
        [Scalar::F16, Scalar::F32, Scalar::F16],
    ] {
        let (func, stats) = assign(testing::vector_add(elems[0], elems[1], elems[2]));
        assert_eq!(stats.conversions, 0);
        let wanted = "{reg=[1,2,4], lane=[8,16,32,64,128], warp=[256,512]}";
        assert_eq!(layout_of(&func, TileOp::Load, 0), wanted);
    }
}

#[test]
fn softmax_keeps_one_layout() {
    let (func, stats) = assign(testing::softmax(4096));
    assert_eq!(stats.conversions, 0);
    let wanted = "{reg=[1,2,512,1024,2048], lane=[4,8,16,32,64], warp=[128,256]}";
    assert_eq!(layout_of(&func, TileOp::Load, 0), wanted);
    assert_eq!(layout_of(&func, TileOp::Reduce, 1), wanted);
    assert_eq!(layout_of(&func, TileOp::Store, 0), wanted);
    let order = func.dfg.insts[all(&func, TileOp::Reduce)[0]]
        .order()
        .cloned();
    let order = order.expect("a blocked layout has an order");
    assert_eq!(order.as_slice(), [0, 1, 9, 10, 11, 2, 3, 4, 5, 6, 7, 8]);
}

#[test]
fn rows_are_reduced_within_a_warp() {
    let (func, stats) = assign(testing::softmax_rows(16, 256));
    assert_eq!(stats.conversions, 0);
    let load = all(&func, TileOp::Load)[0];
    let ty = func.dfg.ty(func.dfg.insts[load].results[0]);
    let layout = &func.layouts[ty.layout.expand().expect("a block")];
    let columns = layout.shape().bit_mask(1);
    assert!(layout.columns(HwDim::Warp).iter().all(|c| c & columns == 0));
    assert_eq!(layout.vector_width(1, 4), 4);
}

#[test]
fn layer_norm_needs_no_conversion() {
    let (func, stats) = assign(testing::layer_norm(1024));
    assert_eq!(stats.conversions, 0);
    let wanted = "{reg=[1,2,4], lane=[8,16,32,64,128], warp=[256,512]}";
    for load in 0..4 {
        assert_eq!(layout_of(&func, TileOp::Load, load), wanted);
    }
}

#[test]
fn column_sums_are_stored_as_they_fall() {
    let (func, stats) = assign(testing::column_sum(64, 64));
    assert_eq!(stats.conversions, 0);
    assert_eq!(
        layout_of(&func, TileOp::Load, 0),
        "{reg=[1,2,512,1024,2048], lane=[4,8,16,32,64], warp=[128,256]}"
    );
    assert_eq!(
        layout_of(&func, TileOp::Store, 0),
        "{reg=[1,2], lane=[4,8,16,32,0], warp=[0,0]}"
    );
}

#[test]
fn a_transposed_copy_converts_once() {
    let (func, stats) = assign(testing::transposed_copy(64));
    assert_eq!((stats.conversions, stats.bytes), (1, 64 * 64 * 4));
    assert_ne!(
        layout_of(&func, TileOp::Load, 0),
        layout_of(&func, TileOp::Store, 0)
    );
    for op in [TileOp::Load, TileOp::Store] {
        let text = layout_of(&func, op, 0);
        let dim = if op == TileOp::Load { 1 } else { 0 };
        let layout = crate::linear_layout::layout::LinearLayout::parse(&text, shape(&[64, 64]));
        let layout = layout.expect("printed by us");
        assert_eq!(layout.run_bits(dim).len(), 2, "{text}");
    }
}

#[test]
fn a_block_smaller_than_the_threads_is_replicated() {
    let (func, stats) = assign(testing::softmax(32));
    assert_eq!(stats.conversions, 0);
    assert_eq!(
        layout_of(&func, TileOp::Store, 0),
        "{reg=[], lane=[1,2,4,8,16], warp=[0,0]}"
    );
}

/// Sums and differences of numbers 1, 2, 4, .. apart: halves of pairs that lanes and warps tell apart at first.
#[test]
fn butterflies_hold_no_copies() {
    let stage = |k: u32| {
        let (near, far, at) = (1u32 << k, 512u32 >> k, 20 + 10 * k);
        let [a, b, c, d, e, f, g, h, x, before] =
            [0, 1, 2, 3, 4, 5, 6, 7, 8, -2].map(|i| at as i32 + i);
        format!(
            "v{a} = reshape v{before} : f32[{far},2,{near}]
            v{b} = permute v{a} {{dims = [0, 2, 1]}} : f32[{far},{near},2]
            v{c} = split v{b} {{index = 0}} : f32[{far},{near}]
            v{d} = split v{b} {{index = 1}} : f32[{far},{near}]
            v{e} = fadd v{c}, v{d} : f32[{far},{near}]
            v{f} = fsub v{c}, v{d} : f32[{far},{near}]
            v{g} = join v{e}, v{f} : f32[{far},{near},2]
            v{h} = permute v{g} {{dims = [0, 2, 1]}} : f32[{far},2,{near}]
            v{x} = reshape v{h} : f32[1024]
            "
        )
    };
    let stages: String = (0..10).map(stage).collect();
    let text = format!(
        "kernel @k(v0: ptr<f32> {{divisible = 16}}) warps(4) {{
        block0:
            v1 = arange {{start = 0}} : i32[1024]
            v2 = splat v0 : ptr<f32>[1024]
            v3 = addptr v2, v1 : ptr<f32>[1024]
            v18 = load v3 : f32[1024]
            {stages}store v3, v118
            return
        }}"
    );
    let func = parse_tile(&text).unwrap_or_else(|errors| panic!("{errors:#?}"));
    let (func, _) = assign(func);
    for op in [TileOp::Fadd, TileOp::Fsub, TileOp::Join] {
        for inst in all(&func, op) {
            let ty = func.dfg.ty(func.dfg.insts[inst].results[0]);
            let layout = &func.layouts[ty.layout.expand().expect("a block")];
            let most = 4 * layout.shape().elements() as u32 / 128;
            assert!(layout.num_registers() <= most, "{layout}");
        }
    }
}

#[test]
fn a_row_changes_its_layout_before_it_is_repeated() {
    // Rows that are loaded say which rows of a block are; it is read along them and written across.
    let text = "kernel @k(v0: ptr<i32> {divisible = 16}, v1: ptr<f32> {divisible = 16}, v2: ptr<f32> {divisible = 16}) warps(4) {
        block0:
            v3 = arange {start = 0} : i32[64]
            v4 = splat v0 : ptr<i32>[64]
            v5 = addptr v4, v3 : ptr<i32>[64]
            v6 = load v5 : i32[64]
            v7 = const {value = 7} : i32[64]
            v8 = icmp v6, v7 {ipred = slt} : i1[64]
            v9 = expand_dims v8 {axis = 1} : i1[64,1]
            v10 = broadcast v9 : i1[64,64]
            v11 = expand_dims v3 {axis = 1} : i32[64,1]
            v12 = broadcast v11 : i32[64,64]
            v13 = expand_dims v3 {axis = 0} : i32[1,64]
            v14 = broadcast v13 : i32[64,64]
            v15 = const {value = 64} : i32[64,64]
            v16 = imul v12, v15 : i32[64,64]
            v17 = iadd v16, v14 : i32[64,64]
            v18 = imul v14, v15 : i32[64,64]
            v19 = iadd v18, v12 : i32[64,64]
            v20 = splat v1 : ptr<f32>[64,64]
            v21 = addptr v20, v17 : ptr<f32>[64,64]
            v22 = load v21, v10 : f32[64,64]
            v23 = splat v2 : ptr<f32>[64,64]
            v24 = addptr v23, v19 : ptr<f32>[64,64]
            store v24, v22, v10
            return
        }";
    let func = parse_tile(text).unwrap_or_else(|errors| panic!("{errors:#?}"));
    let (func, stats) = assign(func);
    let shapes = all(&func, TileOp::ConvertLayout)
        .into_iter()
        .map(|inst| func.dfg.ty(func.dfg.insts[inst].results[0]).shape);
    let largest = shapes.filter(|shape| shape.elements() == 64 * 64);
    assert_eq!(largest.count(), 1, "the block alone, not its mask");
    assert!(stats.bytes < 64 * 64 * 5);
}
