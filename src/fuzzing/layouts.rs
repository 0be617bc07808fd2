//! The target `layouts`: conversions between random layouts.
//!
//! However an element is to move, the simulated plan brings each to every place that wants it; trips through shared
//! memory have no bank conflicts.

use super::Verdict;
use super::random::Random;
use crate::layout::convert::shared::ExchangeSide;
use crate::layout::convert::simulate::{distribute, simulate};
use crate::layout::convert::{Conversion, plan, shared, shuffle};
use crate::linear_layout::gf2;
use crate::linear_layout::layout::LinearLayout;
use crate::linear_layout::shape::Shape;

/// Judges the conversion of a seed.
pub fn check(seed: u64) -> Verdict {
    let mut random = Random::new(seed);
    let rows = 1 + random.below(10) as u32;
    let warp_bits = random.below(4);
    let (src, dst) = (
        layout(&mut random, rows, warp_bits),
        layout(&mut random, rows, warp_bits),
    );
    let bytes = 1 << random.below(4);
    let chosen = plan(&src, &dst, bytes);
    let mut notes = vec![match chosen {
        Conversion::Identity => "nothing",
        Conversion::Registers(_) => "registers",
        Conversion::Shuffle(_) => "shuffles",
        Conversion::Shared(_) => "shared memory",
    }];
    let trip = shared::plan(&src, &dst, bytes);
    for (access, layout) in [(&trip.store, &src), (&trip.load, &dst)] {
        if has_conflicts(access, bytes, layout) {
            return Verdict::Failed(format!("conflicts, {bytes} bytes: {src:?} to {dst:?}"));
        }
    }
    let mut plans = vec![chosen, Conversion::Shared(Box::new(trip))];
    if let Some(plan) = shuffle::plan(&src, &dst, bytes) {
        notes.push("could shuffle");
        plans.push(Conversion::Shuffle(plan));
    }
    let block: Vec<u32> = (0..src.shape().elements() as u32).collect();
    let (before, after) = (distribute(&src, &block), distribute(&dst, &block));
    for plan in plans {
        let found = simulate(&plan, &src, &dst, &before);
        if !found.into_iter().eq(after.iter().copied().map(Some)) {
            return Verdict::Failed(format!("{bytes} bytes: {src:?} to {dst:?} by {plan:?}"));
        }
    }
    Verdict::Passed(notes)
}

fn has_conflicts(access: &ExchangeSide, bytes: u32, layout: &LinearLayout) -> bool {
    let count = access.wavefronts(bytes, layout.num_lanes(), layout.num_warps());
    count.ideal < count.actual
}

/// A layout of `rows` index bits whose columns stand anywhere, some twice, perhaps mixed by a regular matrix.
fn layout(random: &mut Random, rows: u32, warp_bits: usize) -> LinearLayout {
    let shape = Shape::from_log2(&[rows as u8]).expect("few bits");
    let mut columns: Vec<u32> = gf2::units(rows).collect();
    if random.chance(50) {
        // Adding one column to another keeps the matrix regular.
        for _ in 0..3 * rows {
            let (a, b) = (random.below(columns.len()), random.below(columns.len()));
            if a != b {
                columns[a] ^= columns[b];
            }
        }
    }
    for _ in 0..random.below(4) {
        let copy = match random.below(3) {
            0 => columns[random.below(rows as usize)],
            _ => 0,
        };
        columns.push(copy);
    }
    while columns.len() < 5 + warp_bits {
        columns.push(0);
    }
    for i in (1..columns.len()).rev() {
        columns.swap(i, random.below(i + 1));
    }
    let (lanes, rest) = columns.split_at(5);
    let (warps, registers) = rest.split_at(warp_bits);
    LinearLayout::distributed(shape, registers, lanes, warps).expect("columns of the shape")
}
