//! Named layouts against the formulas that define them, element by element.

use super::*;
use crate::linear_layout::layout::HwDim;

fn shape(extents: &[u64]) -> Shape {
    Shape::new(extents).expect("powers of two")
}

fn text(layout: Result<LinearLayout, LayoutError>) -> String {
    layout.expect("a layout").to_string()
}

/// Checks `(row, column)` of register `i` of each lane of warp 0 against `formula(g, q, i)`.
fn check_fragment(layout: &LinearLayout, formula: impl Fn(u32, u32, u32) -> (u32, u32)) {
    let shape = layout.shape();
    for lane in 0..32 {
        for i in 0..layout.num_registers() {
            let flat = layout.apply(i, lane, 0, 0);
            let found = (shape.coordinate(flat, 0), shape.coordinate(flat, 1));
            assert_eq!(found, formula(lane >> 2, lane & 3, i), "lane {lane} i {i}");
        }
    }
}

#[test]
fn accumulator_fragment() {
    let layout = mma_accumulator(shape(&[16, 8]), &[1, 1]).expect("one tile");
    assert_eq!(layout.num_registers(), 4);
    check_fragment(&layout, |g, q, i| (g + 8 * (i >> 1), 2 * q + (i & 1)));
    assert!(layout.is_surjective() && layout.is_injective());
}

#[test]
fn operand_fragments() {
    // The rows of PTX_FACTS 1.2: bits, inner extent, A, B.
    let a = |bits, k| mma_operand_a(shape(&[16, k]), bits, &[1, 1]).expect("one tile");
    let b = |bits, k| mma_operand_b(shape(&[k, 8]), bits, &[1, 1]).expect("one tile");

    check_fragment(&a(16, 16), |g, q, i| {
        (g + 8 * ((i >> 1) & 1), 2 * q + (i & 1) + 8 * (i >> 2))
    });
    check_fragment(&b(16, 16), |g, q, i| (2 * q + (i & 1) + 8 * (i >> 1), g));
    check_fragment(&a(16, 8), |g, q, i| (g + 8 * (i >> 1), 2 * q + (i & 1)));
    check_fragment(&b(16, 8), |g, q, i| (2 * q + i, g));
    check_fragment(&a(32, 8), |g, q, i| (g + 8 * (i & 1), q + 4 * (i >> 1)));
    check_fragment(&b(32, 8), |g, q, i| (q + 4 * i, g));
    check_fragment(&a(32, 4), |g, q, i| (g + 8 * i, q));
    check_fragment(&a(8, 32), |g, q, i| {
        (g + 8 * ((i >> 2) & 1), 4 * q + (i & 3) + 16 * (i >> 3))
    });
    check_fragment(&b(8, 32), |g, q, i| (4 * q + (i & 3) + 16 * (i >> 2), g));
    check_fragment(&a(8, 16), |g, q, i| (g + 8 * (i >> 2), 4 * q + (i & 3)));
    check_fragment(&b(8, 16), |g, q, i| (4 * q + i, g));
    let registers = |l: LinearLayout| l.num_registers();
    assert_eq!(registers(a(16, 16)), 8);
    assert_eq!(registers(b(16, 16)), 4);
    assert_eq!(registers(a(8, 32)), 16);
    assert_eq!(registers(b(8, 32)), 8);
    assert_eq!(
        mma_operand_a(shape(&[16, 16]), 4, &[1, 1]),
        Err(LayoutError::BadElementBits(4))
    );
}

/// The rows of PTX_FACTS 1.2 for m8n8k4 of f16, with the rows of quad pairs interleaved as [`quad_pairs`] says.
#[test]
fn fragments_of_quad_pairs() {
    let check = |layout: LinearLayout, formula: &dyn Fn(u32, u32) -> (u32, u32)| {
        let shape = layout.shape();
        for lane in 0..32 {
            for i in 0..layout.num_registers() {
                let flat = layout.apply(i, lane, 0, 0);
                let found = (shape.coordinate(flat, 0), shape.coordinate(flat, 1));
                assert_eq!(found, formula(lane, i), "lane {lane} i {i}");
            }
        }
    };
    // What the instruction calls row `r` of quad pair `j` is row `r % 4 + 4 (j & 1) + 8 (r / 4)` of the block.
    let row = |lane: u32, r: u32| r % 4 + 4 * (lane >> 2 & 1) + 8 * (r / 4);
    let column = |lane: u32, c: u32| c % 4 + 4 * (lane >> 3 & 1) + 8 * (c / 4);
    let outer = |lane: u32| lane % 4 + 4 * (lane >> 4);
    let one = [1, 1];
    let sum = quad_pairs::accumulator(shape(&[16, 16]), &one).expect("one tile");
    assert!(sum.is_surjective() && sum.is_injective());
    check(sum, &|lane, i| {
        let r = (lane & 1) + (i & 2) + 4 * (lane >> 4);
        (row(lane, r), column(lane, (i & 4) + (lane & 2) + (i & 1)))
    });
    let a = quad_pairs::operand_a(shape(&[16, 8]), &one).expect("one tile");
    check(a.clone(), &|lane, i| (row(lane, outer(lane)), i));
    let b = quad_pairs::operand_b(shape(&[8, 16]), &one).expect("one tile");
    check(b.clone(), &|lane, i| (i, column(lane, outer(lane))));
    // By columns: element `i` of lane `l` is row `i`, 4 more from lane 16 on, and column `l % 4`.
    let [a, b] = [a, b].map(|layout| quad_pairs::transposed(&layout).expect("sixteen rows"));
    let across = |lane: u32, i: u32| (i % 4 + 4 * (lane >> 4), lane % 4 + 4 * (i / 4));
    check(a, &|lane, i| {
        let (r, k) = across(lane, i);
        (row(lane, r), k)
    });
    check(b, &|lane, i| {
        let (c, k) = across(lane, i);
        (k, column(lane, c))
    });
    let narrow = quad_pairs::operand_a(shape(&[2, 8]), &one).expect("part of a tile");
    assert_eq!(
        quad_pairs::transposed(&narrow),
        None,
        "two rows are no run of four"
    );
}

#[test]
fn two_accumulator_tiles_are_an_operand() {
    // P of attention needs no move: [M, N] accumulators are [M, K] operands.
    for extents in [[16, 16], [64, 64], [128, 32]] {
        let acc = mma_accumulator(shape(&extents), &[4, 1]).expect("a layout");
        let operand = mma_operand_a(shape(&extents), 16, &[4, 1]).expect("a layout");
        assert_eq!(acc, operand);
    }
    let acc = wgmma_accumulator(shape(&[128, 64]), &[4, 1]).expect("a layout");
    assert_eq!(Ok(acc), wgmma_operand_a(shape(&[128, 64]), 16, &[4, 1]));
}

#[test]
fn warps_and_repetitions_of_tensor_core_layouts() {
    // 2x2 warps over 64x32: rows 1..8 lanes, 8 register, 16 register, 32 warp; columns 1 register,
    // 2 and 4 lanes, 8 register, 16 warp.
    let layout = mma_accumulator(shape(&[64, 32]), &[2, 2]);
    assert_eq!(
        text(layout),
        "{reg=[1,256,8,512], lane=[2,4,32,64,128], warp=[1024,16]}"
    );
    // Operand A of the same: warps along N hold copies.
    let layout = mma_operand_a(shape(&[64, 16]), 16, &[2, 2]);
    assert_eq!(
        text(layout),
        "{reg=[1,128,8,256], lane=[2,4,16,32,64], warp=[512,0]}"
    );
    let layout = mma_operand_b(shape(&[16, 32]), 16, &[2, 2]);
    assert_eq!(
        text(layout),
        "{reg=[32,256,8], lane=[64,128,1,2,4], warp=[0,16]}"
    );
    // Eight warps on a block of four tiles: one warp bit has nothing to do.
    let layout = mma_accumulator(shape(&[32, 16]), &[4, 2]);
    assert_eq!(
        text(layout),
        "{reg=[1,128], lane=[2,4,16,32,64], warp=[256,0,8]}"
    );
    // wgmma: warp w owns rows 16w of each 64.
    let layout = wgmma_accumulator(shape(&[128, 16]), &[4, 1]);
    assert_eq!(
        text(layout),
        "{reg=[1,128,8,1024], lane=[2,4,16,32,64], warp=[256,512]}"
    );
    assert_eq!(
        wgmma_accumulator(shape(&[128, 16]), &[2, 2]),
        Err(LayoutError::NotWarpgroups(2))
    );
    // A batch dimension is dealt to warps, then registers.
    let layout = mma_accumulator(shape(&[4, 16, 8]), &[2, 1, 1]);
    assert_eq!(
        text(layout),
        "{reg=[1,64,256], lane=[2,4,8,16,32], warp=[128]}"
    );
}

#[test]
fn blocked_by_the_builder_rule() {
    // 16 lanes take the columns, the other lane bit and the warps the rows.
    let layout = blocked(shape(&[64, 64]), &[1, 4], &[1, 0], 4);
    assert_eq!(
        text(layout),
        "{reg=[1,2,512,1024,2048], lane=[4,8,16,32,64], warp=[128,256]}"
    );
    // Columns first.
    let layout = blocked(shape(&[64, 64]), &[4, 1], &[0, 1], 4);
    assert_eq!(
        text(layout),
        "{reg=[64,128,8,16,32], lane=[256,512,1024,2048,1], warp=[2,4]}"
    );
    // Too small a block: surplus lanes and warps hold copies, surplus registers are not there.
    let layout = blocked(shape(&[16]), &[4], &[0], 2);
    assert_eq!(text(layout), "{reg=[1,2], lane=[4,8,0,0,0], warp=[0]}");
    let layout = blocked(shape(&[2]), &[4], &[0], 2);
    assert_eq!(text(layout), "{reg=[1], lane=[0,0,0,0,0], warp=[0]}");
    // Scalars.
    assert_eq!(
        text(blocked(Shape::SCALAR, &[], &[], 4)),
        "{reg=[], lane=[0,0,0,0,0], warp=[0,0]}"
    );
    assert_eq!(
        text(coalesced(shape(&[1024]), &[0], 4, 4)),
        "{reg=[1,2,512], lane=[4,8,16,32,64], warp=[128,256]}"
    );
}

#[test]
fn blocked_covers_every_shape() {
    let mut count = 0;
    for log2 in small_shapes() {
        let shape = Shape::from_log2(&log2).expect("small");
        for order in orders(shape.rank()) {
            for per_thread in [1, 2, 8] {
                for warps in [1, 4] {
                    let layout = coalesced(shape, &order, per_thread, warps).expect("a layout");
                    assert!(layout.is_surjective(), "{layout:?}");
                    assert_eq!((layout.num_lanes(), layout.num_warps()), (32, warps));
                    assert_eq!(layout.free_mask(HwDim::Register), 0, "{layout:?}");
                    let run = per_thread.min(shape.extent(order[0]) as u32);
                    assert!(layout.vector_width(order[0], 16) >= run, "{layout:?}");
                    count += 1;
                }
            }
        }
    }
    assert!(count > 1000, "{count} layouts");
}

/// All shapes of up to 64 elements in one to three dimensions.
fn small_shapes() -> Vec<Vec<u8>> {
    let mut shapes = Vec::new();
    for a in 0..=6u8 {
        shapes.push(vec![a]);
        for b in 0..=6 - a {
            shapes.push(vec![a, b]);
            for c in 0..=6 - a - b {
                shapes.push(vec![a, b, c]);
            }
        }
    }
    shapes
}

fn orders(rank: usize) -> Vec<Vec<usize>> {
    match rank {
        1 => vec![vec![0]],
        2 => vec![vec![0, 1], vec![1, 0]],
        _ => vec![
            vec![0, 1, 2],
            vec![0, 2, 1],
            vec![1, 0, 2],
            vec![1, 2, 0],
            vec![2, 0, 1],
            vec![2, 1, 0],
        ],
    }
}

#[test]
fn bad_parameters_are_refused() {
    let s = shape(&[16, 16]);
    assert_eq!(blocked(s, &[1, 4], &[0, 0], 4), Err(LayoutError::BadOrder));
    assert_eq!(blocked(s, &[1, 4], &[0], 4), Err(LayoutError::BadOrder));
    let error = blocked(s, &[4], &[0, 1], 4).expect_err("one entry");
    assert_eq!(
        error.to_string(),
        "size per thread has 1 entries for a block of 2 dimensions"
    );
    let error = blocked(s, &[3, 1], &[0, 1], 4).expect_err("three");
    assert_eq!(error.to_string(), "size per thread 3 is not a power of two");
    let error = replicated(s, 0).expect_err("no warps");
    assert_eq!(error.to_string(), "number of warps 0 is not a power of two");
    let error = mma_accumulator(shape(&[16]), &[1]).expect_err("one dimension");
    assert_eq!(
        error.to_string(),
        "a tensor-core tile has 2 entries for a block of 1 dimensions"
    );
}

#[test]
fn swizzles_follow_their_formula() {
    for (order, vec, per_phase, max_phase) in [
        ([1, 0], 8, 1, 8),
        ([1, 0], 4, 2, 4),
        ([0, 1], 8, 4, 2),
        ([1, 0], 1, 1, 1),
        ([1, 0], 16, 1, 8),
    ] {
        let s = shape(&[32, 64]);
        let layout = shared_swizzled(s, &order, vec, per_phase, max_phase).expect("a layout");
        assert!(layout.is_surjective() && layout.is_injective());
        let row_length = s.extent(order[0]) as u32;
        for flat in 0..s.elements() as u32 {
            let (c, r) = (s.coordinate(flat, order[0]), s.coordinate(flat, order[1]));
            let vectors = row_length / vec;
            let chunk = (c / vec) ^ ((r / per_phase) % max_phase % vectors);
            let offset = r * row_length + chunk * vec + c % vec;
            assert_eq!(layout.apply_offset(offset), flat, "{layout}");
        }
    }
}

#[test]
fn tma_swizzles_follow_their_formula() {
    for (elem, swizzle, order) in [
        (2, 128, [1, 0]),
        (2, 64, [1, 0]),
        (2, 32, [0, 1]),
        (1, 128, [1, 0]),
        (4, 128, [0, 1]),
        (2, 16, [1, 0]),
    ] {
        let s = shape(&[128, 128]);
        let layout = shared_tma(s, &order, elem, swizzle).expect("a layout");
        let (rows, piece) = (s.extent(order[1]) as u32, swizzle / elem);
        for flat in 0..s.elements() as u32 {
            let (c, r) = (s.coordinate(flat, order[0]), s.coordinate(flat, order[1]));
            let address = ((c / piece * rows + r) * piece + c % piece) * elem;
            let chunks = swizzle / 16 - 1;
            let address = address ^ (address >> 7 & chunks) << 4;
            assert_eq!(layout.apply_offset(address / elem), flat, "{layout}");
        }
    }
    assert!(matches!(
        shared_tma(shape(&[64, 32]), &[1, 0], 2, 128),
        Err(LayoutError::SwizzleTooWide { row: 64, .. })
    ));
}

#[test]
fn warps_of_a_dot() {
    let warps = |m, n, w| mma_warps(shape(&[m, n]), w).expect("two dimensions");
    assert_eq!(warps(128, 128, 4), [2, 2]);
    assert_eq!(warps(16, 128, 4), [1, 4]);
    assert_eq!(warps(128, 64, 4), [2, 2]);
    assert_eq!(warps(16, 16, 8), [4, 2]);
}
