//! Conversions move every element to its place, and trips through shared memory have no conflicts.

use super::banks::Wavefronts;
use super::shared::ExchangeSide;
use super::simulate::{distribute, simulate};
use super::*;
use crate::linear_layout::gf2;
use crate::linear_layout::named;
use crate::linear_layout::shape::Shape;

fn shape(extents: &[u64]) -> Shape {
    Shape::new(extents).expect("powers of two")
}

fn blocked(extents: &[u64], size: &[u32], order: &[usize], warps: u32) -> LinearLayout {
    named::blocked(shape(extents), size, order, warps).expect("a layout")
}

/// Runs `conversion` on a block of distinct values.
fn check_content(conversion: &Conversion, src: &LinearLayout, dst: &LinearLayout) {
    let tensor: Vec<u32> = (0..src.shape().elements() as u32).collect();
    let found = simulate(conversion, src, dst, &distribute(src, &tensor));
    let wanted = distribute(dst, &tensor);
    assert!(
        found.iter().copied().eq(wanted.into_iter().map(Some)),
        "{src:?} to {dst:?} by {conversion:?}"
    );
}

#[test]
fn a_shuffle_weighs_as_much_as_two_moves_or_an_access() {
    let weight = |moves, shuffles, shared_bytes, barriers| {
        ConversionCost {
            shuffles,
            shared_bytes,
            barriers,
            moves,
        }
        .weight()
    };
    assert_eq!(weight(6, 0, 0, 0), weight(0, 3, 0, 0));
    assert_eq!(weight(6, 0, 0, 0), weight(0, 0, 12, 0));
    // Accesses of less than a word take the pipe as long, and a barrier takes much longer.
    assert_eq!(weight(0, 0, 9, 0), weight(0, 0, 12, 0));
    assert!(weight(0, 8, 0, 0) < weight(0, 0, 0, 1));
}

fn extra(access: &ExchangeSide, elem_bytes: u32, layout: &LinearLayout) -> u32 {
    let (lanes, warps) = (layout.num_lanes(), layout.num_warps());
    let Wavefronts { actual, ideal } = access.wavefronts(elem_bytes, lanes, warps);
    assert!(ideal > 0, "somebody takes part");
    actual - ideal
}

/// Plans the conversion by every means, checks all plans, and returns the chosen one.
fn check(src: &LinearLayout, dst: &LinearLayout, elem_bytes: u32) -> Conversion {
    let chosen = plan(src, dst, elem_bytes);
    check_content(&chosen, src, dst);
    if let Some(plan) = shuffle::plan(src, dst, elem_bytes) {
        check_content(&Conversion::Shuffle(plan), src, dst);
    }
    let trip = check_trip(src, dst, elem_bytes);
    check_content(&Conversion::Shared(Box::new(trip)), src, dst);
    chosen
}

/// Plans a trip through shared memory and checks that it has no conflicts.
fn check_trip(src: &LinearLayout, dst: &LinearLayout, elem_bytes: u32) -> SharedPlan {
    let trip = shared::plan(src, dst, elem_bytes);
    assert!(trip.offset.is_injective() && trip.offset.is_surjective());
    assert_eq!(
        extra(&trip.store, elem_bytes, src),
        0,
        "store of {src:?} to {dst:?}, {elem_bytes} bytes: {trip:?}"
    );
    assert_eq!(
        extra(&trip.load, elem_bytes, dst),
        0,
        "load of {src:?} to {dst:?}, {elem_bytes} bytes: {trip:?}"
    );
    trip
}

/// A small generator of pseudo-random numbers (xorshift), seeded for repeatable tests.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % bound
    }
}

/// A layout of `rows` index bits in which the unit columns stand anywhere, with copies in some places;
/// if `mixed`, columns are multiplied by a random regular matrix, so that nothing is a permutation.
fn random_layout(random: &mut Random, rows: u32, warp_bits: usize, mixed: bool) -> LinearLayout {
    let shape = Shape::from_log2(&[rows as u8]).expect("small");
    let mut columns: Vec<u32> = gf2::units(rows).collect();
    if mixed {
        // Random additions of one unit column to another keep the matrix regular.
        for _ in 0..3 * rows {
            let (a, b) = (
                random.below(u64::from(rows)) as usize,
                random.below(u64::from(rows)) as usize,
            );
            if a != b {
                columns[a] ^= columns[b];
            }
        }
    }
    let copies = random.below(4);
    for _ in 0..copies {
        let copy = match random.below(3) {
            0 => columns[random.below(u64::from(rows)) as usize],
            _ => 0,
        };
        columns.push(copy);
    }
    while columns.len() < 5 + warp_bits {
        columns.push(0);
    }
    for i in (1..columns.len()).rev() {
        columns.swap(i, random.below(i as u64 + 1) as usize);
    }
    let (lanes, rest) = columns.split_at(5);
    let (warps, registers) = rest.split_at(warp_bits);
    LinearLayout::distributed(shape, registers, lanes, warps).expect("columns of the shape")
}

#[test]
fn every_pair_of_small_blocked_layouts() {
    let mut kinds = [0; 4];
    for (m, n) in [
        (0, 6),
        (1, 5),
        (2, 4),
        (3, 3),
        (5, 1),
        (2, 2),
        (0, 0),
        (1, 0),
    ] {
        let extents = [1u64 << m, 1 << n];
        for warps in [1, 2, 4] {
            let mut layouts = Vec::new();
            for order in [[0, 1], [1, 0]] {
                for size in [[1, 1], [1, 2], [2, 1], [4, 1], [1, 4], [2, 2]] {
                    layouts.push(blocked(&extents, &size, &order, warps));
                }
            }
            layouts.push(named::replicated(shape(&extents), warps).expect("a layout"));
            let acc = named::mma_accumulator(shape(&extents), &[warps, 1]);
            layouts.push(acc.expect("a layout"));
            for src in &layouts {
                for dst in &layouts {
                    for elem_bytes in [1, 2, 4, 8] {
                        let kind = match check(src, dst, elem_bytes) {
                            Conversion::Identity => 0,
                            Conversion::Registers(_) => 1,
                            Conversion::Shuffle(_) => 2,
                            Conversion::Shared(_) => 3,
                        };
                        kinds[kind] += 1;
                    }
                }
            }
        }
    }
    assert!(kinds.iter().all(|&n| n > 40), "{kinds:?} of each kind");
}

#[test]
fn random_permutation_layouts() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut shuffled = 0;
    for round in 0..1500u32 {
        let rows = 3 + random.below(8) as u32;
        let warp_bits = random.below(3) as usize;
        let src = random_layout(&mut random, rows, warp_bits, false);
        let dst = random_layout(&mut random, rows, warp_bits, false);
        let chosen = check(&src, &dst, 1 << (round % 4));
        shuffled += u32::from(matches!(chosen, Conversion::Shuffle(_)));
    }
    assert!(shuffled > 100, "{shuffled} shuffles");
}

#[test]
fn random_mixed_layouts() {
    let mut random = Random(0x1234_5678_9abc_def1);
    for round in 0..1000u32 {
        let rows = 3 + random.below(8) as u32;
        let warp_bits = random.below(3) as usize;
        let src = random_layout(&mut random, rows, warp_bits, true);
        let dst = random_layout(&mut random, rows, warp_bits, round % 2 == 0);
        check(&src, &dst, 1 << (round / 2 % 4));
    }
}

#[test]
fn a_shuffle_plan_exists_whenever_the_data_stays_in_its_warp() {
    // One warp: nothing can leave it, so the factorisation must always be found.
    let mut random = Random(0x0dd_ba11);
    for round in 0..1500u32 {
        let rows = 2 + random.below(8) as u32;
        let src = random_layout(&mut random, rows, 0, round % 2 == 0);
        let dst = random_layout(&mut random, rows, 0, round % 3 == 0);
        let found = shuffle::plan(&src, &dst, 4);
        let found = found.unwrap_or_else(|| panic!("no plan from {src:?} to {dst:?}"));
        check_content(&Conversion::Shuffle(found), &src, &dst);
    }
}

#[test]
fn moves_that_need_no_transport() {
    let a = blocked(&[64, 64], &[1, 4], &[1, 0], 4);
    assert_eq!(check(&a, &a, 4), Conversion::Identity);
    // Registers renamed.
    let b = LinearLayout::parse(
        "{reg=[2,1,512,2048,1024], lane=[4,8,16,32,64], warp=[128,256]}",
        a.shape(),
    );
    let Conversion::Registers(map) = check(&a, &b.expect("a layout"), 4) else {
        panic!("a renaming")
    };
    assert_eq!(map[..8], [0, 2, 1, 3, 4, 6, 5, 7]);
    // Registers that hold copies, appearing and going.
    let row = a.reduce(0).expand_dims(0);
    let shown = a.project_broadcast(row.shape());
    assert!(matches!(check(&row, &shown, 4), Conversion::Registers(_)));
    assert_eq!(
        check(&shown, &row, 4),
        Conversion::Registers(vec![0, 1, 2, 3])
    );
    // An accumulator pair is an operand.
    let s = shape(&[64, 32]);
    let acc = named::mma_accumulator(s, &[4, 1]).expect("a layout");
    let operand = named::mma_operand_a(s, 16, &[4, 1]).expect("a layout");
    assert_eq!(check(&acc, &operand, 2), Conversion::Identity);
}

#[test]
fn one_mixed_transposition_takes_half_the_registers() {
    // Register bit 0 and lane bit 0 change places.
    let s = shape(&[128]);
    let src = LinearLayout::parse("{reg=[1,2], lane=[4,8,16,32,64]}", s).expect("a layout");
    let dst = LinearLayout::parse("{reg=[4,2], lane=[1,8,16,32,64]}", s).expect("a layout");
    let Conversion::Shuffle(plan) = check(&src, &dst, 4) else {
        panic!("shuffles")
    };
    assert_eq!(plan.lane_map, None);
    let cost = plan.cost(4);
    assert_eq!((cost.shuffles, cost.moves), (2, 8));
    // Two 16-bit values share a word.
    let Conversion::Shuffle(plan) = check(&src, &dst, 2) else {
        panic!("shuffles")
    };
    assert_eq!(plan.cost(2).shuffles, 1);
    // An 8-byte value takes two.
    let Conversion::Shuffle(plan) = check(&src, &dst, 8) else {
        panic!("shuffles")
    };
    assert_eq!(plan.cost(8).shuffles, 4);
    // Two transpositions: three quarters.
    let dst = LinearLayout::parse("{reg=[4,8], lane=[1,2,16,32,64]}", s).expect("a layout");
    let Conversion::Shuffle(plan) = check(&src, &dst, 4) else {
        panic!("shuffles")
    };
    let cost = plan.cost(4);
    assert_eq!((cost.shuffles, cost.moves), (3, 16));
}

#[test]
fn lanes_alone_shuffle_once_and_copies_select() {
    let s = shape(&[64]);
    let src = LinearLayout::parse("{reg=[1], lane=[2,4,8,16,32]}", s).expect("a layout");
    let rotated = LinearLayout::parse("{reg=[1], lane=[4,8,16,32,2]}", s).expect("a layout");
    let Conversion::Shuffle(plan) = check(&src, &rotated, 4) else {
        panic!("shuffles")
    };
    assert_eq!((plan.cost(4).shuffles, plan.cost(4).moves), (2, 0));
    assert!(plan.lane_map.is_some());
    // Every thread holds all: it picks its own by selects alone.
    let all = named::replicated(shape(&[8]), 2).expect("a layout");
    let one = blocked(&[8], &[1], &[0], 2);
    let Conversion::Shuffle(plan) = check(&all, &one, 4) else {
        panic!("selects")
    };
    assert_eq!((plan.cost(4).shuffles, plan.cost(4).moves), (0, 7));
    // From one lane each to all lanes: a read of each element by everybody.
    let Conversion::Shuffle(plan) = check(&one, &all, 4) else {
        panic!("shuffles")
    };
    assert_eq!((plan.cost(4).shuffles, plan.cost(4).moves), (8, 0));
}

#[test]
fn transposes_have_no_conflicts() {
    for warps in [1, 4, 8] {
        for extents in [[32, 32], [64, 64], [128, 64], [16, 256], [128, 128]] {
            for elem_bytes in [1, 2, 4, 8] {
                let vector = 16 / elem_bytes;
                let rows = blocked(&extents, &[1, vector], &[1, 0], warps);
                let columns = blocked(&extents, &[vector, 1], &[0, 1], warps);
                check(&rows, &columns, elem_bytes);
                check(&columns, &rows, elem_bytes);
                let plain = blocked(&extents, &[1, 1], &[0, 1], warps);
                check(&rows, &plain, elem_bytes);
                check(&plain, &rows, elem_bytes);
            }
        }
    }
}

#[test]
fn accumulators_meet_blocked_layouts_without_conflicts() {
    for (extents, warps) in [
        ([64, 64], [2, 2]),
        ([128, 128], [4, 2]),
        ([128, 64], [4, 1]),
        ([128, 256], [2, 4]),
        ([16, 16], [1, 2]),
    ] {
        let s = shape(&extents);
        let count = warps[0] * warps[1];
        let acc = named::mma_accumulator(s, &warps).expect("a layout");
        for elem_bytes in [1, 2, 4, 8] {
            let rows = blocked(&extents, &[1, 16 / elem_bytes], &[1, 0], count);
            check(&acc, &rows, elem_bytes);
            check(&rows, &acc, elem_bytes);
            let columns = blocked(&extents, &[4, 1], &[0, 1], count);
            check(&acc, &columns, elem_bytes);
            check(&columns, &acc, elem_bytes);
        }
        for bits in [8, 16, 32] {
            let a = named::mma_operand_a(s, bits, &warps).expect("a layout");
            let b = named::mma_operand_b(s, bits, &warps).expect("a layout");
            let rows = blocked(&extents, &[1, 4], &[1, 0], count);
            for operand in [a, b] {
                check(&acc, &operand, bits / 8);
                check(&operand, &acc, bits / 8);
                check(&rows, &operand, bits / 8);
                check(&operand, &rows, bits / 8);
            }
        }
    }
}

#[test]
fn vectors_of_a_trip() {
    // Register directions of both sides are vectors of both.
    let rows = blocked(&[64, 64], &[1, 4], &[1, 0], 4);
    let moved = blocked(&[64, 64], &[4, 4], &[1, 0], 4);
    let trip = check_trip(&rows, &moved, 4);
    assert_eq!((trip.store.vector, trip.load.vector), (4, 4));
    assert_eq!((trip.store.groups.len(), trip.bytes), (8, 1 << 14));
    // An accumulator has pairs of columns, which with rows make vectors that both sides hold; one
    // side widens them to 16 bytes.
    let acc = named::mma_accumulator(shape(&[128, 128]), &[4, 2]).expect("a layout");
    let rows = blocked(&[128, 128], &[1, 8], &[1, 0], 8);
    let trip = check_trip(&acc, &rows, 2);
    println!(
        "{:?} {:?} {}",
        trip.store.vector, trip.load.vector, trip.offset
    );
    assert!(trip.load.vector * trip.store.vector >= 8);
    // Of what both sides hold in registers a vector has what stands first on both: of sums that are a factor next, a fragment.
    let s = shape(&[16, 128]);
    let sums = named::mma_accumulator(s, &[1, 2]).expect("a layout");
    let factor = named::mma_operand_a(s, 16, &[1, 2]).expect("a layout");
    let trip = check_trip(&sums, &factor, 2);
    for side in [&trip.store, &trip.load] {
        assert_eq!(side.groups[0].registers[..], [0, 1, 2, 3, 4, 5, 6, 7]);
    }
}

#[test]
fn only_one_copy_is_stored() {
    // 8 elements over 32 lanes and 2 warps: two lane bits and the warp bit are copies.
    let src = blocked(&[8], &[1], &[0], 2);
    let dst = blocked(&[8], &[2], &[0], 2);
    let trip = check_trip(&src, &dst, 4);
    assert_eq!((trip.store.idle_lanes, trip.store.idle_warps), (0b11000, 1));
    assert_eq!((trip.load.idle_lanes, trip.load.idle_warps), (0, 0));
    assert!(trip.store.is_active(7, 0) && !trip.store.is_active(8, 0));
    check_content(&Conversion::Shared(Box::new(trip)), &src, &dst);
}

#[test]
fn constants_fold_into_immediates() {
    // Of the 32 stores and 128 loads of a 128x128 transpose, 8 addresses differ by more.
    let rows = blocked(&[128, 128], &[1, 4], &[1, 0], 4);
    let columns = blocked(&[128, 128], &[4, 1], &[0, 1], 4);
    let trip = check_trip(&rows, &columns, 4);
    for access in [&trip.store, &trip.load] {
        let mut own: Vec<u32> = access.groups.iter().map(|g| g.xor).collect();
        own.sort_unstable();
        own.dedup();
        assert_eq!(own.len(), 8, "of {} groups", access.groups.len());
    }
}

#[test]
fn plans_do_not_depend_on_anything_but_their_input() {
    let rows = blocked(&[64, 64], &[1, 4], &[1, 0], 4);
    let columns = blocked(&[64, 64], &[4, 1], &[0, 1], 4);
    assert_eq!(plan(&rows, &columns, 2), plan(&rows, &columns, 2));
}
