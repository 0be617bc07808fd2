//! Where the elements of blocks stand in shared memory that copies fill and units of matrices read.
//!
//! Copies write 16 bytes of a row per thread, neighbouring threads side by side; `ldmatrix` reads 16 bytes of eight rows at
//! once, and other loads do much the same. Both are free of bank conflicts if the 16-byte chunks of a row are permuted by the
//! row's number: chunk `c` of row `r` stands at `c ^ (r / p mod m)`, with p the rows that 128 bytes hold and m the chunks of a
//! row, at most 8. Eight neighbouring rows then touch eight different chunks of the 128 bytes that the banks serve at once.

use crate::linear::layout::{HwDim, LinearLayout};
use crate::linear::named;
use crate::linear::shape::Shape;

/// Bytes that one thread copies at once.
const CHUNK: u32 = 16;
/// Bytes that all banks serve at once.
const LINE: u32 = 128;

/// The layout of a block whose rows run along `inner`.
pub fn layout(shape: Shape, inner: usize, elem_bytes: u32) -> LinearLayout {
    let mut order = vec![inner];
    order.extend((0..shape.rank()).rev().filter(|&dim| dim != inner));
    let row = (shape.extent(inner) as u32).saturating_mul(elem_bytes);
    let phases = (row / CHUNK).clamp(1, LINE / CHUNK);
    let per_phase = (LINE / row.max(1)).max(1);
    let vector = CHUNK / elem_bytes;
    named::shared_swizzled(shape, &order, vector, per_phase, phases)
        .unwrap_or_else(|_| named::shared_row_major(shape))
}

/// The dimension along which the threads of a layout hold neighbours, or else stand side by side.
pub fn inner_dim(layout: &LinearLayout) -> usize {
    let shape = layout.shape();
    let mut columns = [HwDim::Register, HwDim::Lane]
        .into_iter()
        .flat_map(|dim| layout.columns(dim));
    let first = columns.find_map(|&column| {
        (0..shape.rank()).find(|&dim| column == 1 << shape.bit_offset(dim) && shape.extent(dim) > 1)
    });
    first.unwrap_or(shape.rank().saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Offsets in bytes of 16 bytes of `count` rows.
    fn chunks(layout: &LinearLayout, elem_bytes: u32, rows: u32, column: u32) -> Vec<u32> {
        let shape = layout.shape();
        let inverse = layout.invert().expect("a layout of memory");
        let at = |row: u32| row << shape.bit_offset(0) | column;
        let offset = |row| inverse.locate(at(row)).offset * elem_bytes;
        (0..rows).map(offset).collect()
    }

    #[test]
    fn eight_rows_meet_in_no_bank() {
        for (row, elem_bytes) in [
            (16, 2),
            (32, 2),
            (64, 2),
            (128, 2),
            (32, 4),
            (64, 1),
            (256, 1),
        ] {
            let shape = Shape::new(&[64, row]).expect("powers of two");
            let layout = layout(shape, 1, elem_bytes);
            for column in (0..row as u32).step_by((16 / elem_bytes) as usize) {
                let mut banks: Vec<u32> = chunks(&layout, elem_bytes, 8, column)
                    .iter()
                    .map(|offset| {
                        assert_eq!(offset % 16, 0, "chunks stay whole");
                        offset / 16 % 8
                    })
                    .collect();
                banks.sort_unstable();
                banks.dedup();
                assert_eq!(
                    banks.len(),
                    8,
                    "rows of {row} elements of {elem_bytes} bytes"
                );
            }
        }
    }
}
