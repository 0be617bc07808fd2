//! Products of matrices: each element by itself, summed in f64 (f64: by fused multiply-add) and rounded once.

use super::{Elems, Machine, Outcome, malformed, operand, required};
use crate::interp::{float, int};
use crate::ir::attrs::{Attrs, DotPrecision};
use crate::ir::dfg::InstData;
use crate::ir::level::Tile;
use crate::ir::types::Scalar;

/// The bits of an f32 that a unit of tf32 looks at.
const TF32_BITS: u64 = 0xffff_e000;

impl Machine<'_> {
    pub(super) fn dot(&self, data: &InstData<Tile>) -> Outcome<Elems> {
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
        let element = |flat: usize| {
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
            sum(scalars, terms, acc[flat])
        };
        Ok((0..to.elements()).map(element).collect())
    }
}

/// `acc` and the products of the terms.
fn sum([a, b, to]: [Scalar; 3], terms: impl Iterator<Item = (u64, u64)>, acc: u64) -> u64 {
    if !to.is_float() {
        return terms.fold(acc, |sum, (x, y)| {
            let product = int::signed(a.bits(), x).wrapping_mul(int::signed(b.bits(), y));
            sum.wrapping_add(product as u64)
        });
    }
    // Products of all formats but f64 are exact in f64.
    let total = terms.fold(float::to_f64(to, acc), |sum, (x, y)| {
        float::to_f64(a, x).mul_add(float::to_f64(b, y), sum)
    });
    float::from_f64(to, total)
}
