//! What accesses touch whose elements are not side by side: sectors and lines of memory, by the distances between addresses.

use smallvec::SmallVec;

use super::cost::{LINE_BYTES, SECTOR_BYTES};
use super::pbqp::Cost;
use crate::analysis::strides::Strides;
use crate::linear_layout::layout::{HwDim, LinearLayout};

/// Most bits of registers whose accesses are counted together with those of the lanes.
const MOST_BITS: usize = 4;

/// Sectors and lines that one execution of an access touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Touched {
    /// Sectors: of a load those that all of its instructions touch together, as the cache keeps them in between.
    pub sectors: Cost,
    /// Lines, for each instruction those that it touches.
    pub lines: Cost,
}

/// Counts what a warp touches by `instructions` of an access, each of which takes runs of 2^`run` elements of a thread from bit `offset` of
/// the index on.
pub(super) fn touched(
    layout: &LinearLayout,
    strides: &Strides,
    (offset, run): (u32, u32),
    instructions: Cost,
    is_store: bool,
) -> Touched {
    let lanes = Moves::of(layout, HwDim::Lane, strides, 0);
    let lines = (lanes.pieces(LINE_BYTES) << lanes.far) * instructions;
    if is_store {
        let sectors = (lanes.pieces(SECTOR_BYTES) << lanes.far) * instructions;
        return Touched { sectors, lines };
    }
    let inside = ((1u32 << run) - 1) << offset;
    let mut all = Moves::of(layout, HwDim::Register, strides, inside);
    all.near.sort_unstable_by_key(|by| by.abs());
    all.far += all.near.len().saturating_sub(MOST_BITS);
    all.near.truncate(MOST_BITS);
    all.near.extend_from_slice(&lanes.near);
    let sectors = all.pieces(SECTOR_BYTES) << (all.far + lanes.far);
    Touched { sectors, lines }
}

/// By how many bytes the bits of threads or registers move an address.
struct Moves {
    /// Distances that are known.
    near: SmallVec<[i64; 10]>,
    /// How many are not, and lead to other lines.
    far: usize,
}

impl Moves {
    /// Those of lanes or registers that do not hold copies, but for bits of `inside`.
    fn of(layout: &LinearLayout, of: HwDim, strides: &Strides, inside: u32) -> Moves {
        let mut moves = Moves {
            near: SmallVec::new(),
            far: 0,
        };
        let free = layout.free_mask(of);
        for (i, &column) in layout.columns(of).iter().enumerate() {
            if free >> i & 1 == 1 || column & inside != 0 {
                continue;
            }
            let bits = strides.iter().enumerate();
            let mut bits = bits.filter(|(bit, _)| column >> bit & 1 == 1);
            match bits.try_fold(0i64, |sum, (_, by)| sum.checked_add((*by)?)) {
                Some(by) => moves.near.push(by),
                None => moves.far += 1,
            }
        }
        moves
    }

    /// How many pieces of memory of so many bytes the known distances lead to, from the start of one.
    fn pieces(&self, bytes: u32) -> Cost {
        let mut places: SmallVec<[i64; 64]> = SmallVec::from_elem(0, 1);
        for &by in &self.near {
            for i in 0..places.len() {
                places.push(places[i].saturating_add(by));
            }
        }
        for place in &mut places {
            *place = place.div_euclid(i64::from(bytes));
        }
        places.sort_unstable();
        places.dedup();
        places.len() as Cost
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linear_layout::named;
    use crate::linear_layout::shape::Shape;

    /// 1024 elements, 32 bytes from each other, by 128 threads that have 1 or 8 neighbours each.
    #[test]
    fn lines_of_strided_elements() {
        let strides: Strides = (0..10).map(|bit| Some(32i64 << bit)).collect();
        let shape = Shape::new(&[1024]).expect("a shape");
        for (held, lines, sectors) in [(1, 8 * 8, 8 * 32), (8, 8 * 32, 8 * 32)] {
            let layout = named::coalesced(shape, &[0], held, 4).expect("a layout");
            for is_store in [false, true] {
                let found = touched(&layout, &strides, (0, 0), 8, is_store);
                assert_eq!(found, Touched { sectors, lines });
            }
        }
    }

    /// Every other number of two bytes: what one instruction leaves out of a sector the next one finds in the cache.
    #[test]
    fn sectors_that_instructions_share() {
        let strides: Strides = (0..10).map(|bit| Some(4i64 << bit)).collect();
        let shape = Shape::new(&[1024]).expect("a shape");
        let layout = named::coalesced(shape, &[0], 8, 4).expect("a layout");
        let [load, store] =
            [false, true].map(|is_store| touched(&layout, &strides, (0, 0), 8, is_store));
        assert_eq!(
            load,
            Touched {
                sectors: 32,
                lines: 8 * 8
            }
        );
        assert_eq!(
            store,
            Touched {
                sectors: 8 * 32,
                lines: 8 * 8
            }
        );
    }

    /// What is not known leads to other lines.
    #[test]
    fn unknown_distances() {
        let strides: Strides = (0..10)
            .map(|bit| (bit < 2).then_some(8i64 << bit))
            .collect();
        let shape = Shape::new(&[1024]).expect("a shape");
        let layout = named::coalesced(shape, &[0], 1, 4).expect("a layout");
        let found = touched(&layout, &strides, (0, 0), 8, true);
        assert_eq!(
            found,
            Touched {
                sectors: 8 * 8,
                lines: 8 * 8
            }
        );
    }
}
