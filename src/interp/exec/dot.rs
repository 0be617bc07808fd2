//! Products of matrices: each element by itself, summed in f64 (f64: by fused multiply-add) and rounded once.

use super::{Elems, Machine, Outcome, malformed, operand, required};
use crate::interp::{float, int};
use crate::ir::attrs::{Attrs, DotPrecision};
use crate::ir::dfg::InstData;
use crate::ir::level::Tile;
use crate::ir::types::Scalar;

/// The bits of an f32 that a unit of tf32 looks at.
const TF32_BITS: u64 = 0xffff_e000;

/// Up to here whole numbers are exact in f32.
const WHOLE: f64 = 16_777_216.0;

impl Machine<'_> {
    pub(super) fn dot(&mut self, data: &InstData<Tile>) -> Outcome<Elems> {
        let shape = |index| operand(data, index).map(|v| self.func.dfg.ty(v).shape);
        let (left, to) = (shape(0)?, shape(2)?);
        let Some(row_dim) = to.rank().checked_sub(2) else {
            return Err(malformed("a product of matrices of rank 2 or more"));
        };
        let [a, b, acc] = [self.arg(data, 0)?, self.arg(data, 1)?, self.arg(data, 2)?];
        let scalars = [
            self.scalar(data, 0)?,
            self.scalar(data, 1)?,
            self.result_scalar(data)?,
        ];
        let is_cut = required(data.precision())? == DotPrecision::Tf32 && scalars[0] == Scalar::F32;
        let extent = |dim: usize| to.extent(dim) as usize;
        let (rows, columns) = (extent(row_dim), extent(row_dim + 1));
        let inner = left.extent(row_dim + 1) as usize;
        let split = self.options.split_dot;
        let mut rounded = 0;
        let mut element = |flat: usize| {
            let (column, row) = (flat % columns, flat / columns % rows);
            let batch = flat / columns / rows;
            let terms = (0..inner).map(|k| {
                let x = a[(batch * rows + row) * inner + k];
                let y = b[(batch * inner + k) * columns + column];
                if is_cut {
                    (x & TF32_BITS, y & TF32_BITS)
                } else {
                    (x, y)
                }
            });
            let (total, is_exact) = sum(scalars, terms, acc[flat], split);
            rounded += u64::from(!is_exact);
            total
        };
        let elements = (0..to.elements()).map(&mut element).collect();
        self.stats.rounded += rounded;
        Ok(elements)
    }
}

/// `acc` and the products of the terms, and whether the sum is the same in f32 and in any order.
fn sum(
    [a, b, to]: [Scalar; 3],
    terms: impl Iterator<Item = (u64, u64)>,
    acc: u64,
    split: bool,
) -> (u64, bool) {
    if !to.is_float() {
        let total = terms.fold(acc, |sum, (x, y)| {
            let product = int::signed(a.bits(), x).wrapping_mul(int::signed(b.bits(), y));
            sum.wrapping_add(product as u64)
        });
        return (total, true);
    }
    let acc = float::to_f64(to, acc);
    let (mut is_whole, mut size) = (acc.fract() == 0.0, acc.abs());
    // Products of all formats but f64 are exact in f64.
    let start = if split { 0.0 } else { acc };
    let mut total = terms.fold(start, |sum, (x, y)| {
        let (x, y) = (float::to_f64(a, x), float::to_f64(b, y));
        is_whole &= (x * y).fract() == 0.0;
        size += (x * y).abs();
        x.mul_add(y, sum)
    });
    if split {
        // Sums of f16 are formed in f32.
        let wide = if to == Scalar::F16 { Scalar::F32 } else { to };
        let sum = float::to_f64(wide, float::from_f64(wide, total));
        // Of a sum that rounds to -0 the sign is lost from zero, too.
        total = acc + (sum + 0.0);
    }
    (float::from_f64(to, total), is_whole && size <= WHOLE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_exact_in_any_order() {
        let of = |acc: f32, terms: &[(f32, f32)]| {
            let bits = |x: f32| u64::from(x.to_bits());
            let terms = terms.iter().map(|&(x, y)| (bits(x), bits(y)));
            let (total, is_exact) = sum([Scalar::F32; 3], terms, bits(acc), false);
            (f32::from_bits(total as u32), is_exact)
        };
        assert_eq!(of(3.0, &[(1.0, -2.0), (4.0, 5.0)]), (21.0, true));
        assert_eq!(of(0.5, &[(1.0, 2.0)]), (2.5, false));
        assert_eq!(of(1.0, &[(0.5, 0.5), (0.5, 1.5)]), (2.0, false));
        // Either term alone is one of the numbers that f32 has, their sum with the third is not.
        let large = 16_777_216.0;
        assert_eq!(of(1.0, &[(1.0, large), (-1.0, large)]), (1.0, false));
        assert!(!of(f32::INFINITY, &[]).1);
    }

    /// Whether a sum is taken into a product or formed behind it shows in rounding and in the sign of zero, and apart in neither.
    #[test]
    fn apart_a_product_and_a_sum_are_what_they_are_together() {
        let bits = |x: f32| u64::from(x.to_bits());
        let of = |acc: f32, term: (f32, f32), split| {
            let terms = [(bits(term.0), bits(1.0)), (bits(term.1), bits(1.0))].into_iter();
            f32::from_bits(sum([Scalar::F32; 3], terms, bits(acc), split).0 as u32)
        };
        // A sum, what stands beside it, and what these are together: in one, and apart.
        for (term, acc, together, apart) in [
            ((-0.0, -0.0), -0.0, -0.0, 0.0_f32),
            ((-0.0, 0.0), -0.0, 0.0, 0.0),
            ((16_777_216.0, 1.0), 1.0, 16_777_218.0, 16_777_216.0),
            ((2.0, 3.0), 5.0, 10.0, 10.0),
        ] {
            let taken = [false, true].map(|split| of(acc, term, split).to_bits());
            assert_eq!(taken, [together, apart].map(f32::to_bits), "{term:?} {acc}");
            let behind = of(0.0, term, true) + acc;
            assert_eq!(behind.to_bits(), apart.to_bits(), "{term:?} {acc}");
        }
    }
}
