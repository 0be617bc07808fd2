//! Distances of products of matrices.

use super::super::{Machine, Outcome, operand, required};
use super::{Slack, number};
use crate::interp::stated::{ulp, unit};
use crate::ir::attrs::{Attrs, DotPrecision};
use crate::ir::dfg::InstData;
use crate::ir::entities::Value;
use crate::ir::level::Tile;
use crate::ir::types::{Elem, Scalar};

impl Machine<'_> {
    /// See the section on products of matrices in [`crate::ir`].
    pub(super) fn dot_slack(
        &self,
        slack: &Slack,
        data: &InstData<Tile>,
        result: Value,
    ) -> Outcome<Vec<f64>> {
        let [x, y, acc] = [operand(data, 0)?, operand(data, 1)?, operand(data, 2)?];
        let shape = |value| self.func.dfg.ty(value).shape;
        let (left, to) = (shape(x), shape(result));
        let rank = to.rank();
        let extent = |dim: usize| to.extent(dim) as usize;
        let (rows, columns) = (extent(rank - 2), extent(rank - 1));
        let inner = left.extent(rank - 1) as usize;
        let scalar = self.result_scalar(data)?;
        let elem = |value| self.func.dfg.ty(value).elem;
        let precision: DotPrecision = required(data.precision())?;
        let is_wide = elem(x) == Elem::Num(Scalar::F32);
        let u = match scalar {
            _ if is_wide && precision == DotPrecision::Tf32x3 => (2.0f64).powi(-19),
            Scalar::F64 => unit(Scalar::F64),
            _ => unit(Scalar::F32),
        };
        // An operand that moves may be cut to another number of 11 bits.
        let cut = match is_wide && precision == DotPrecision::Tf32 {
            true => (2.0f64).powi(-10),
            false => 0.0,
        };
        let (xs, ys, accs) = (self.get(x)?, self.get(y)?, self.get(acc)?);
        let size = |elem, bits| number(elem, bits).abs();
        let of = |(flat, &bits): (usize, &u64)| {
            let (column, row) = (flat % columns, flat / columns % rows);
            let batch = flat / columns / rows;
            let mut sizes = size(elem(acc), accs[flat]);
            let mut moved = slack.of(acc, flat);
            let mut is_whole = sizes.fract() == 0.0;
            for k in 0..inner {
                let (i, j) = (
                    (batch * rows + row) * inner + k,
                    (batch * inner + k) * columns + column,
                );
                let (a, b) = (size(elem(x), xs[i]), size(elem(y), ys[j]));
                let (da, db) = (slack.of(x, i), slack.of(y, j));
                sizes += a * b;
                is_whole &= (a * b).fract() == 0.0;
                if da > 0.0 || db > 0.0 {
                    moved += a * db + b * da + da * db + cut * a * b;
                }
            }
            let total = number(elem(acc), bits);
            if !scalar.is_float() || !total.is_finite() {
                return moved;
            }
            let is_exact = is_whole && cut == 0.0 && sizes <= 1.0 / u;
            let own = match is_exact {
                true => 0.0,
                false => (inner as f64 + 2.0) * u * sizes,
            };
            moved
                + own
                + if moved + own > 0.0 {
                    ulp(scalar, total)
                } else {
                    0.0
                }
        };
        Ok(self.get(result)?.iter().enumerate().map(of).collect())
    }
}
