//! The error function in f64, which the standard library lacks.
//!
//! Source: Abramowitz and Stegun, "Handbook of Mathematical Functions", formulas 7.1.6 (a series of
//! positive terms, hence without cancellation) and 7.1.14 (a continued fraction for the complement).

/// Up to here the series, from here on the continued fraction.
const SERIES_END: f64 = 1.5;

/// The complement is below half an ulp of 1 from here on.
const ONE_FROM: f64 = 6.0;

/// Levels of the continued fraction; at [`SERIES_END`], where it is slowest, 60 give all bits of f64.
const LEVELS: u32 = 100;

/// erf(x), with a relative error below 1e-15.
pub(super) fn erf(x: f64) -> f64 {
    let size = x.abs();
    let result = if size.is_nan() {
        return x;
    } else if size < SERIES_END {
        series(size)
    } else if size < ONE_FROM {
        1.0 - complement(size)
    } else {
        1.0
    };
    result.copysign(x)
}

/// `2/sqrt(pi) * exp(-x^2) * sum of 2^n x^(2n+1) / (1 * 3 * .. * (2n+1))`.
fn series(x: f64) -> f64 {
    let square = x * x;
    let mut term = x;
    let mut sum = x;
    let mut n = 0.0;
    while term > sum * f64::EPSILON / 8.0 {
        n += 1.0;
        term *= 2.0 * square / (2.0 * n + 1.0);
        sum += term;
    }
    std::f64::consts::FRAC_2_SQRT_PI * (-square).exp() * sum
}

/// `exp(-x^2)/sqrt(pi) * 1/(x + (1/2)/(x + (2/2)/(x + (3/2)/(x + ..))))`.
fn complement(x: f64) -> f64 {
    let fraction = (1..=LEVELS)
        .rev()
        .fold(x, |below, level| x + f64::from(level) / 2.0 / below);
    std::f64::consts::FRAC_2_SQRT_PI / 2.0 * (-x * x).exp() / fraction
}

#[cfg(test)]
mod tests {
    use super::erf;

    /// Values computed with 50 digits in decimal arithmetic by 7.1.5, which nothing here uses.
    const KNOWN: &[(f64, f64)] = &[
        (1e-09, 1.1283791670955127e-09),
        (0.001953125, 0.002203862758376654),
        (0.1, 0.1124629160182849),
        (0.25, 0.27632639016823696),
        (0.5, 0.5204998778130465),
        (0.84375, 0.7672256612323416),
        (1.0, 0.8427007929497149),
        (1.25, 0.9229001282564583),
        (1.4999, 0.9660932516622953),
        (1.5, 0.9661051464753108),
        (1.75, 0.9866716712191824),
        (2.0, 0.9953222650189527),
        (2.5, 0.999593047982555),
        (3.0, 0.9999779095030014),
        (4.0, 0.9999999845827421),
        (5.0, 0.9999999999984626),
        (5.875, 0.9999999999999999),
    ];

    #[test]
    fn known_values_are_met() {
        for &(x, expected) in KNOWN {
            let error = ((erf(x) - expected) / expected).abs();
            assert!(error < 1e-15, "erf({x}): relative error {error:e}");
            assert_eq!(erf(-x).to_bits(), (-erf(x)).to_bits());
        }
    }

    #[test]
    fn special_values_are_kept() {
        assert_eq!(erf(-0.0).to_bits(), (-0.0f64).to_bits());
        assert_eq!(erf(f64::INFINITY), 1.0);
        assert_eq!(erf(f64::NEG_INFINITY), -1.0);
        assert!(erf(f64::NAN).is_nan());
        assert_eq!(erf(1e-310), 1e-310 * std::f64::consts::FRAC_2_SQRT_PI);
    }
}
