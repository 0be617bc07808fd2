//! Distances of products of matrices.

use super::super::{Machine, Outcome, operand, required};
use super::{Slack, number};
use crate::interp::error_bounds::{limit, ulp, unit};
use crate::ir::attrs::{Attrs, DotPrecision};
use crate::ir::dfg::InstData;
use crate::ir::entities::Value;
use crate::ir::level::Tile;
use crate::ir::types::{Elem, Scalar};

/// Sums of so many products in a row may keep few bits.
#[derive(Clone, Copy)]
struct FewBits(usize);

impl FewBits {
    /// Products that are summed at once.
    const STEP: usize = 32;
    /// What is kept, as part of the largest term.
    const UNIT: f64 = 1.0 / 8192.0;

    /// How much is cut off of the sum of terms of these sizes and of what they are added to.
    fn cut(self, acc: f64, terms: &[f64]) -> f64 {
        let most = 1 << self.0.ilog2();
        let (every, start) = match most <= terms.len() {
            true => (most, 0.0),
            false => (terms.len().max(1), acc),
        };
        let mut cut = 0.0;
        for apart in terms.chunks(every) {
            let mut sum = start;
            for step in apart.chunks(FewBits::STEP) {
                let largest = step.iter().copied().fold(sum, f64::max);
                sum += step.iter().sum::<f64>();
                cut += FewBits::UNIT * ((FewBits::STEP + 1) as f64 * largest + sum);
            }
        }
        cut
    }
}

/// Products that units with sums of f16 add at least before they round: those of m8n8k4, the first.
const IN_HALVES: usize = 4;

/// Where a sum ends, whatever the order of its terms.
enum Range {
    /// Among the finite numbers.
    Within,
    /// At infinity.
    Beyond,
    /// At either.
    Open,
}

impl Range {
    /// Of a sum of terms of these sizes that comes to `exact` but for `error`, is made as `sum`, and rounded to `scalar`.
    fn of(sum: Scalar, scalar: Scalar, sizes: f64, exact: f64, error: f64) -> Range {
        let has_one_sign = sizes - exact <= error;
        let (least, most) = match has_one_sign {
            true => (exact - error, exact + error),
            false if sizes + error < limit(sum) => (exact - error, exact + error),
            // Partial sums may be anywhere.
            false => (0.0, f64::INFINITY),
        };
        match limit(scalar) {
            limit if most < limit => Range::Within,
            limit if least >= limit => Range::Beyond,
            _ => Range::Open,
        }
    }
}

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
        let is_split = is_wide && precision == DotPrecision::Tf32x3;
        let u = match scalar {
            _ if is_split => (2.0f64).powi(-19),
            Scalar::F64 => unit(Scalar::F64),
            Scalar::F16 => 2.0 * unit(Scalar::F16),
            _ => unit(Scalar::F32),
        };
        // An operand that moves may be cut to another number of 11 bits.
        let cut = match is_wide && precision == DotPrecision::Tf32 {
            true => (2.0f64).powi(-10),
            false => 0.0,
        };
        // The small part of a factor ends where the numbers of 11 bits do, and what is 0 times infinity is none.
        let lost = if is_split { (2.0f64).powi(-135) } else { 0.0 };
        let sum = match scalar {
            Scalar::F64 | Scalar::F16 => scalar,
            _ => Scalar::F32,
        };
        // Sums of so many products are rounded together.
        let together = if sum == Scalar::F16 { IN_HALVES } else { 1 };
        let steps = inner.div_ceil(together) as f64 + 2.0;
        let least = ulp(sum, 0.0);
        let is_short = elem(x).is_float() && elem(x).bits() == 8;
        let few = data.imprecise().map_or(0, |&n| n as usize);
        let few = (is_short && FewBits::STEP <= few).then_some(FewBits(few));
        let (xs, ys, accs) = (self.get(x)?, self.get(y)?, self.get(acc)?);
        let size = |elem, bits| number(elem, bits).abs();
        let of = |(flat, &bits): (usize, &u64)| {
            let (column, row) = (flat % columns, flat / columns % rows);
            let batch = flat / columns / rows;
            let mut sizes = size(elem(acc), accs[flat]);
            let mut moved = slack.of(acc, flat);
            let mut is_whole = sizes.fract() == 0.0;
            let first = sizes + moved;
            let mut exact = number(elem(acc), accs[flat]);
            let mut factors = 0.0;
            let mut has_special = !exact.is_finite();
            // The finite terms of either sign.
            let mut apart = [0.0, 0.0];
            let mut count = |term: f64| {
                if term.is_finite() {
                    apart[usize::from(term < 0.0)] += term.abs();
                }
            };
            count(exact);
            // Which zero the sum is shows whether `acc` was +0 or -0.
            let mut is_either_zero = scalar.is_float() && exact == 0.0;
            let mut terms = Vec::new();
            for k in 0..inner {
                let (i, j) = (
                    (batch * rows + row) * inner + k,
                    (batch * inner + k) * columns + column,
                );
                let (a, b) = (size(elem(x), xs[i]), size(elem(y), ys[j]));
                let (da, db) = (slack.of(x, i), slack.of(y, j));
                if da.is_infinite() || db.is_infinite() {
                    // Whatever the other factor is.
                    return f64::INFINITY;
                }
                sizes += a * b;
                let term = number(elem(x), xs[i]) * number(elem(y), ys[j]);
                exact += term;
                is_either_zero &= term == 0.0 && term.is_sign_negative();
                count(term);
                factors += a + b;
                let is_special = !(a.is_finite() && b.is_finite());
                has_special |= is_special;
                if is_special && a.min(b) < lost {
                    return f64::INFINITY;
                }
                is_whole &= (a * b).fract() == 0.0;
                if few.is_some() {
                    terms.push((a + da) * (b + db));
                }
                if da > 0.0 || db > 0.0 {
                    moved += a * db + b * da + da * db + cut * a * b;
                }
            }
            if scalar.is_float() && has_special && exact.is_infinite() {
                // Where the others may come to the other infinity first, the sum may be NaN.
                let against = apart[usize::from(exact > 0.0)];
                if against * (1.0 + steps * u) >= limit(sum) {
                    return f64::INFINITY;
                }
            }
            if !scalar.is_float() || has_special {
                return moved;
            }
            let whole = few.map_or(1.0 / u, |_| 1.0 / FewBits::UNIT);
            let own = match is_whole && cut == 0.0 && sizes <= whole {
                true if is_either_zero => least,
                true => 0.0,
                false => {
                    let few = few.map_or(0.0, |few| few.cut(first, &terms));
                    steps * (u * sizes + least) + few
                }
            };
            let moved = moved + own + lost * factors;
            let total = number(elem(acc), bits);
            match Range::of(sum, scalar, sizes, exact.abs(), moved) {
                Range::Beyond => 0.0,
                Range::Open => f64::INFINITY,
                Range::Within if moved > 0.0 => moved + ulp(scalar, total),
                Range::Within => 0.0,
            }
        };
        Ok(self.get(result)?.iter().enumerate().map(of).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::FewBits;

    /// What a unit does that cuts 32 products and their accumulator to 13 bits behind the first one of the largest, and their sum
    /// likewise, is within the bound; and the bound is not far beyond it where all terms have one sign.
    #[test]
    fn sums_of_few_bits_are_within_their_bound() {
        let cut = |x: f64, of: f64| {
            let unit = (of.abs().log2().floor() - 13.0).exp2();
            (x / unit).trunc() * unit
        };
        let mut state = 1_u64;
        let mut worst = 0.0_f64;
        for round in 0..2_000 {
            let mut random = || {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                (state >> 40) as f64 / f64::from(1 << 24) + 1e-9
            };
            let signs = round % 2 == 0;
            let terms: Vec<f64> = (0..128)
                .map(|_| {
                    let size = (random() * 12.0).exp2();
                    if signs && random() < 0.5 { -size } else { size }
                })
                .collect();
            let first = random() * 1000.0;
            let mut sum = first;
            for step in terms.chunks(32) {
                let largest = step.iter().fold(sum.abs(), |most, x| most.max(x.abs()));
                let total = step.iter().map(|&x| cut(x, largest)).sum::<f64>();
                let total = total + cut(sum, largest);
                sum = if total == 0.0 { 0.0 } else { cut(total, total) };
            }
            let error = (sum - terms.iter().sum::<f64>() - first).abs();
            let sizes: Vec<f64> = terms.iter().map(|x| x.abs()).collect();
            let bound = FewBits(1 << 30).cut(first, &sizes);
            assert!(error <= bound, "{error} beyond {bound}");
            worst = worst.max(error / bound);
        }
        assert!(worst > 0.1, "{worst}");
        // From zero for each 64, the sums are smaller.
        let ones = [1.0; 128];
        assert!(FewBits(64).cut(1e6, &ones) < FewBits(128).cut(0.0, &ones));
    }
}
