//! The laws of layouts on all small cases, and the operations against plain index arithmetic.

use super::*;
use crate::linear_layout::named;

fn shape(extents: &[u64]) -> Shape {
    Shape::new(extents).expect("powers of two")
}

fn parse(text: &str, extents: &[u64]) -> LinearLayout {
    LinearLayout::parse(text, shape(extents)).expect("a layout")
}

/// All shapes of up to 64 elements in one to three dimensions.
fn small_shapes() -> Vec<Shape> {
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
    let shapes = shapes.iter().map(|s| Shape::from_log2(s).expect("small"));
    shapes.collect()
}

fn orders(rank: usize) -> Vec<Vec<usize>> {
    match rank {
        0 => vec![vec![]],
        _ => {
            let mut all = Vec::new();
            for rest in orders(rank - 1) {
                for at in 0..rank {
                    let mut order = rest.clone();
                    order.insert(at, rank - 1);
                    all.push(order);
                }
            }
            all
        }
    }
}

/// Blocked layouts of a shape, in all orders, with one and two warps.
fn blocked_layouts(shape: Shape) -> Vec<LinearLayout> {
    let mut layouts = Vec::new();
    for order in orders(shape.rank()) {
        for per_thread in [1, 2, 4] {
            for warps in [1, 2] {
                let layout = named::coalesced(shape, &order, per_thread, warps);
                layouts.push(layout.expect("a layout"));
            }
        }
    }
    layouts
}

/// All locations of a distributed layout of one CTA.
fn locations(layout: &LinearLayout) -> impl Iterator<Item = (u32, u32, u32)> {
    let (r, l, w) = (
        layout.num_registers(),
        layout.num_lanes(),
        layout.num_warps(),
    );
    (0..w).flat_map(move |w| (0..l).flat_map(move |l| (0..r).map(move |r| (r, l, w))))
}

fn coordinates(shape: &Shape, flat: u32) -> Vec<u32> {
    (0..shape.rank())
        .map(|dim| shape.coordinate(flat, dim))
        .collect()
}

fn flat(shape: &Shape, coordinates: &[u32]) -> u32 {
    let dims = coordinates.iter().enumerate();
    dims.fold(0, |sum, (dim, c)| sum | c << shape.bit_offset(dim))
}

#[test]
fn the_worked_example_of_the_module() {
    let layout = parse("{reg=[1], lane=[2,4], warp=[8]}", &[4, 4]);
    assert_eq!(layout.apply(1, 3, 1, 0), 15);
    assert_eq!(layout.apply(0, 2, 0, 0), 4);
    let memory = parse("{offset=[1,2,5,10]}", &[4, 4]);
    for row in 0..4 {
        for column in 0..4 {
            assert_eq!(
                memory.apply_offset(4 * row + (column ^ row)),
                4 * row + column
            );
        }
    }
}

#[test]
fn inverses_and_free_bits_on_all_small_layouts() {
    for shape in small_shapes() {
        for layout in blocked_layouts(shape) {
            assert!(layout.is_surjective(), "{layout:?}");
            let inverse = layout.invert().expect("surjective");
            let mut places = vec![0; shape.elements()];
            for flat in 0..shape.elements() as u32 {
                let location = inverse.locate(flat);
                assert_eq!(layout.apply_location(&location), flat, "{layout:?}");
            }
            let free = [HwDim::Register, HwDim::Lane, HwDim::Warp].map(|d| layout.free_mask(d));
            let mut injective = true;
            for (r, l, w) in locations(&layout) {
                if r & free[0] == 0 && l & free[1] == 0 && w & free[2] == 0 {
                    places[layout.apply(r, l, w, 0) as usize] += 1;
                } else {
                    injective = false;
                }
            }
            assert!(places.iter().all(|&n| n == 1), "{layout:?}");
            assert_eq!(layout.is_injective(), injective, "{layout:?}");
            let text = layout.to_string();
            assert_eq!(LinearLayout::parse(&text, shape), Ok(layout));
        }
    }
}

#[test]
fn permutations_move_coordinates() {
    for shape in small_shapes() {
        for layout in blocked_layouts(shape) {
            for order in orders(shape.rank()) {
                let result = layout.permute(&order);
                for (r, l, w) in locations(&layout) {
                    let from = coordinates(&shape, layout.apply(r, l, w, 0));
                    let to = coordinates(&result.shape(), result.apply(r, l, w, 0));
                    let moved: Vec<u32> = order.iter().map(|&d| from[d]).collect();
                    assert_eq!(to, moved);
                }
                assert_eq!(result.before_permute(&order), layout);
            }
        }
    }
}

#[test]
fn unit_dimensions_come_and_go() {
    let layout = parse("{reg=[1], lane=[2,4], warp=[8]}", &[4, 4]);
    let wider = layout.expand_dims(1);
    assert_eq!(wider.shape(), shape(&[4, 1, 4]));
    assert_eq!(wider.before_expand_dims(1), layout);
    let flat = layout.reshape(shape(&[2, 8]));
    assert_eq!(flat.to_string(), layout.to_string());
    assert_eq!(flat.reshape(layout.shape()), layout);
}

#[test]
fn projections_forget_one_coordinate() {
    for shape in small_shapes() {
        for layout in blocked_layouts(shape) {
            for axis in 0..shape.rank() {
                let shown = layout.project(axis);
                let reduced = layout.reduce(axis);
                let map = shown.register_map(&reduced).expect("same threads");
                for (r, l, w) in locations(&layout) {
                    let mut rest = coordinates(&shape, layout.apply(r, l, w, 0));
                    rest.remove(axis);
                    let flat = flat(&shown.shape(), &rest);
                    assert_eq!(shown.apply(r, l, w, 0), flat);
                    let held = u32::from(map[r as usize]);
                    assert_eq!(reduced.apply(held, l, w, 0), flat);
                }
                assert_eq!(reduced.free_mask(HwDim::Register), 0);
                assert!(reduced.is_surjective());

                let operand = reduced.before_reduce(axis, shape);
                assert!(operand.is_surjective());
                assert_eq!(operand.reduce(axis), reduced);
            }
        }
    }
}

#[test]
fn broadcasts_keep_the_data_in_its_thread() {
    for wide in small_shapes() {
        for dim in 0..wide.rank() {
            let narrow = wide.without_dim(dim).with_unit_dim(dim).expect("as before");
            // The operand's layout that a wanted result asks for.
            for result in blocked_layouts(wide) {
                let operand = result.before_broadcast(narrow);
                let shown = result.project_broadcast(narrow);
                let map = shown.register_map(&operand).expect("same threads");
                for (r, l, w) in locations(&result) {
                    let mut at = coordinates(&wide, result.apply(r, l, w, 0));
                    at[dim] = 0;
                    let held = operand.apply(u32::from(map[r as usize]), l, w, 0);
                    assert_eq!(held, flat(&narrow, &at));
                }
            }
            // The result's layout that an operand offers.
            for operand in blocked_layouts(narrow) {
                let result = operand.broadcast_to(wide);
                assert!(result.is_surjective(), "{operand:?} {result:?}");
                assert_eq!(result.before_broadcast(narrow), operand);
            }
        }
    }
}

#[test]
fn a_slice_grows_back_into_its_parent() {
    let parent = named::blocked(shape(&[64, 64]), &[1, 1], &[1, 0], 4).expect("a layout");
    let row = parent.reduce(0).expand_dims(0);
    assert_eq!(row.to_string(), "{reg=[], lane=[1,2,4,8,16], warp=[32,0]}");
    assert_eq!(row.broadcast_to(parent.shape()), parent);
    assert_eq!(
        parent.to_string(),
        "{reg=[128,256,512,1024,2048], lane=[1,2,4,8,16], warp=[32,64]}"
    );
}

#[test]
fn join_and_split() {
    let layout = parse("{reg=[1,8], lane=[2,4], warp=[0]}", &[4, 4]);
    let joined = layout.join();
    assert_eq!(joined.shape(), shape(&[4, 4, 2]));
    assert_eq!(joined.to_string(), "{reg=[1,2,16], lane=[4,8], warp=[0]}");
    assert_eq!(joined.split(), Some((layout.clone(), 0)));
    let other = parse("{reg=[4,1], lane=[2]}", &[4, 2]);
    let halves = parse("{reg=[2], lane=[1]}", &[4]);
    assert_eq!(other.split(), Some((halves, 1)));
    assert_eq!(parse("{reg=[4,2], lane=[1]}", &[4, 2]).split(), None);
    assert_eq!(parse("{reg=[1,2], lane=[5]}", &[4, 2]).split(), None);
}

#[test]
fn lanes_that_tell_pairs_apart_take_a_register_bit() {
    for (whole, halves) in [
        ("{reg=[4,2], lane=[1]}", Some("{reg=[2], lane=[1]}")),
        (
            "{reg=[4], lane=[2], warp=[1]}",
            Some("{reg=[], lane=[1], warp=[2]}"),
        ),
        (
            "{reg=[], lane=[2,4], warp=[1]}",
            Some("{reg=[], lane=[1,2], warp=[0]}"),
        ),
        ("{reg=[1,2], lane=[5]}", None),
        ("{reg=[1,2], lane=[4]}", None),
    ] {
        let found = parse(whole, &[4, 2]).halves_nearby();
        assert_eq!(found, halves.map(|text| parse(text, &[4])), "{whole}");
    }
}

#[test]
fn what_is_joined_and_split_stays_in_its_thread() {
    for text in [
        "{reg=[1,2], lane=[4,8], warp=[16]}",
        "{reg=[4,16], lane=[1,2], warp=[8]}",
        "{reg=[2,8], lane=[16,5], warp=[0]}",
    ] {
        let whole = parse(text, &[16, 2]);
        let half = whole.before_join();
        let map = whole.project(1).register_map(&half);
        let map = map.expect("each thread holds the elements that it shows");
        for (register, lane, warp) in locations(&whole) {
            let shown = whole.apply(register, lane, warp, 0) >> 1;
            let source = u32::from(map[register as usize]);
            assert_eq!(half.apply(source, lane, warp, 0), shown, "{text}");
        }
    }
    let half = parse("{reg=[1,8], lane=[2,4], warp=[0]}", &[16]);
    let whole = parse("{reg=[2,16,1], lane=[4,8], warp=[0]}", &[16, 2]);
    for index in 0..2 {
        let map = half.half_registers(index, &whole);
        let map = map.expect("pairs are held by threads");
        for (register, lane, warp) in locations(&half) {
            let element = half.apply(register, lane, warp, 0) << 1 | u32::from(index);
            let source = u32::from(map[register as usize]);
            assert_eq!(whole.apply(source, lane, warp, 0), element);
        }
    }
    let apart = parse("{reg=[2,16], lane=[4,8], warp=[1]}", &[16, 2]);
    assert_eq!(half.half_registers(0, &apart), None);
}

#[test]
fn products_and_quotients() {
    let tile = parse("{reg=[1], lane=[2,4], warp=[]}", &[2, 4]);
    let outer = parse("{reg=[2], lane=[1], warp=[4]}", &[2, 4]);
    let product = tile.product(&outer).expect("a small layout");
    assert_eq!(product.shape(), shape(&[4, 16]));
    // Coordinates of the law: tile + extent * outer.
    for (r, l, w) in locations(&product) {
        let inner = coordinates(&tile.shape(), tile.apply(r & 1, l & 3, 0, 0));
        let copy = coordinates(&outer.shape(), outer.apply(r >> 1, l >> 2, w, 0));
        let sum = [inner[0] + 2 * copy[0], inner[1] + 4 * copy[1]];
        assert_eq!(
            coordinates(&product.shape(), product.apply(r, l, w, 0)),
            sum
        );
    }
    assert_eq!(product.divide_left(&tile), Some(outer.clone()));
    assert_eq!(product.divide_left(&outer), None);
    // The tile of ldmatrix: 16-bit operand A starts with an 8x8 matrix.
    let matrix = parse("{reg=[1], lane=[2,4,8,16,32], warp=[]}", &[8, 8]);
    let operand = named::mma_operand_a(shape(&[64, 32]), 16, &[2, 1]).expect("a layout");
    let rest = operand.divide_left(&matrix).expect("whole matrices");
    assert_eq!(rest.to_string(), "{reg=[4,1,2,8], lane=[], warp=[16]}");
    assert_eq!(matrix.product(&rest).as_ref(), Some(&operand));
    let transposed = operand.permute(&[1, 0]);
    assert_eq!(transposed.divide_left(&matrix), None);
}

#[test]
fn composition_is_application_twice() {
    let layout = named::coalesced(shape(&[8, 8]), &[0, 1], 2, 2).expect("a layout");
    let outer = named::shared_swizzled(shape(&[8, 8]), &[1, 0], 2, 1, 4).expect("a layout");
    let both = layout.compose(&outer).expect("as many offsets as elements");
    for (r, l, w) in locations(&layout) {
        let inner = layout.apply(r, l, w, 0);
        assert_eq!(both.apply(r, l, w, 0), outer.apply_offset(inner));
    }
}

#[test]
fn runs_and_vectors() {
    let layout = parse("{reg=[1,2,16], lane=[4,8], warp=[]}", &[2, 16]);
    assert_eq!(layout.run_bits(1).as_slice(), &[0, 1]);
    assert_eq!(layout.run_bits(0).as_slice(), &[2]);
    assert_eq!(
        (layout.vector_width(1, 8), layout.vector_width(1, 2)),
        (4, 2)
    );
    assert_eq!(layout.vector_width(0, 8), 1, "not the low register");
    // Register order does not matter to runs, but does to vectors.
    let layout = parse("{reg=[2,1,16], lane=[4,8]}", &[2, 16]);
    assert_eq!(layout.run_bits(1).as_slice(), &[1, 0]);
    assert_eq!(layout.vector_width(1, 8), 1);
    let moved = layout.with_runs_first(1).expect("another order");
    assert_eq!(moved, parse("{reg=[1,2,16], lane=[4,8]}", &[2, 16]));
    assert_eq!(moved.with_runs_first(1), None);
    let down = layout.with_runs_first(0).expect("another order");
    assert_eq!(down, parse("{reg=[16,2,1], lane=[4,8]}", &[2, 16]));
    // A lane that also moves by one element would see its run reversed.
    let layout = parse("{reg=[1,2,16], lane=[5,8]}", &[2, 16]);
    assert_eq!(layout.vector_width(1, 8), 1);
    assert_eq!(parse("{reg=[]}", &[]).vector_width(0, 8), 1);
}

#[test]
fn layouts_that_do_not_fit_have_no_register_map_product_or_composition() {
    let square = parse("{reg=[1,2], lane=[4], warp=[8]}", &[4, 4]);
    let row = parse("{reg=[1,2], lane=[4], warp=[8]}", &[16]);
    assert_eq!(square.register_map(&row), None);
    // Nor a product, nor one put after the other.
    assert_eq!((square.product(&row), square.compose(&row)), (None, None));
    let large = named::replicated(shape(&[1 << 20]), 1).expect("a layout");
    assert_eq!(large.product(&large), None);
    assert!(!square.same_up_to_registers(&row));
    assert_eq!(
        square.reshape(row.shape()).register_map(&row),
        Some(vec![0, 1, 2, 3])
    );
}

#[test]
fn bits_that_a_layout_does_not_have_contribute_nothing() {
    let layout = parse("{reg=[1,2], lane=[4], warp=[8]}", &[16]);
    assert_eq!(
        layout.apply(4 + 3, 2, 3, u32::MAX),
        layout.apply(3, 0, 1, 0)
    );
    assert_eq!(layout.apply_offset(5), 0);
    let memory = LinearLayout::memory(layout.shape(), &[1, 2, 4, 8]).expect("columns of the shape");
    assert_eq!(memory.apply_offset(16 + 5), 5);
}

#[test]
fn equality_up_to_registers() {
    let a = parse("{reg=[1,2], lane=[4], warp=[8]}", &[16]);
    let b = parse("{reg=[2,3], lane=[4], warp=[8]}", &[16]);
    let c = parse("{reg=[1,4], lane=[2], warp=[8]}", &[16]);
    assert!(a.same_up_to_registers(&b));
    assert!(!a.same_up_to_registers(&c));
    assert_eq!(a.register_map(&b), Some(vec![0, 3, 1, 2]));
    let copies = parse("{reg=[1,0,2], lane=[4], warp=[8]}", &[16]);
    assert!(!a.same_up_to_registers(&copies));
    assert_eq!(a.register_map(&copies), Some(vec![0, 1, 4, 5]));
    assert_eq!(copies.without_free_registers(), a);
    assert_eq!(copies.kept_register_bits(), 0b101);
}
