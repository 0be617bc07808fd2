//! The errors that the op table states, as numbers.

use crate::ir::ops::TileOp;
use crate::ir::types::Scalar;
use crate::num::Format;

/// How far a result may be from the exact one; the parts add up.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Stated {
    /// In units of the last place of the result.
    ulp: f64,
    /// As part of the result's size.
    relative: f64,
    /// Of whatever result.
    absolute: f64,
    /// As part of the argument's size.
    argument: f64,
    /// In ulp of 1, for arguments below 0.
    below_zero: f64,
    /// Whether results below the normal numbers may be 0.
    flushes: bool,
    /// Whether the interpreter rounds what others do not.
    is_rounded: bool,
}

impl Stated {
    /// So many ulp, and the interpreter's rounding.
    pub(super) fn ulps(ulp: f64) -> Stated {
        Stated {
            ulp,
            is_rounded: true,
            ..Stated::default()
        }
    }

    /// The distance of another executor's result from the interpreter's, which is `y` for the argument `x`.
    pub(super) fn at(self, scalar: Scalar, x: f64, y: f64) -> f64 {
        let last = ulp(scalar, y);
        let mut error = (self.ulp + if self.is_rounded { 0.5 } else { 0.0 }) * last
            + self.relative * y.abs()
            + self.absolute
            + self.argument * x.abs();
        if x < 0.0 {
            error += self.below_zero * last.max(ulp(scalar, 1.0));
        }
        if self.flushes && y.abs() < 2.0 * f64::from(f32::MIN_POSITIVE) {
            error += f64::from(f32::MIN_POSITIVE);
        }
        error
    }
}

/// What a product that becomes part of a fused multiply-add differs by.
pub(super) fn contracted() -> Stated {
    Stated {
        ulp: 0.5,
        ..Stated::default()
    }
}

/// What the op table states about a function; none for ops that are exact or rounded correctly.
pub(super) fn stated(op: TileOp, scalar: Scalar) -> Option<Stated> {
    let ulps = |single: f64, double: f64| {
        let ulp = if scalar == Scalar::F64 {
            double
        } else {
            single
        };
        (ulp > 0.0).then(|| Stated::ulps(ulp))
    };
    let relative = |relative: f64| Stated {
        relative,
        ..Stated::ulps(0.0)
    };
    let single = scalar != Scalar::F64;
    let flushed = |stated: Stated| Stated {
        flushes: single,
        ..stated
    };
    match op {
        TileOp::Fdiv => ulps(2.1, 2.1),
        TileOp::Exp2 | TileOp::Exp => ulps(2.1, 1.0).map(flushed),
        TileOp::Rsqrt if single => Some(flushed(relative(2.0f64.powf(-22.9)))),
        TileOp::Rsqrt => ulps(1.0, 1.0),
        TileOp::Sqrt if single => Some(flushed(relative(2.0f64.powi(-23)))),
        TileOp::Rcp => ulps(1.0, 0.0),
        TileOp::RcpFtz => ulps(1.0, 1.0).map(flushed),
        TileOp::Log2Approx => Some(Stated {
            absolute: 2.0f64.powi(-22),
            ..relative(2.0f64.powi(-22))
        }),
        // Beyond two pi the error grows with the argument.
        TileOp::SinApprox | TileOp::CosApprox => Some(Stated {
            absolute: 2.0f64.powf(-20.4),
            argument: 2.0f64.powf(-20.4),
            ..relative(0.0)
        }),
        TileOp::ExpPrecise | TileOp::Exp10 => ulps(2.1, 1.0),
        TileOp::Log | TileOp::Cbrt => ulps(1.0, 1.0),
        TileOp::Log2 | TileOp::Log1p => ulps(1.1, 1.0),
        TileOp::Expm1 => ulps(1.5, 1.0),
        TileOp::Log10 => ulps(2.0, 1.3),
        TileOp::Tan => ulps(4.0, 2.0),
        TileOp::Asin => ulps(2.1, 2.1),
        TileOp::Pow | TileOp::Sin | TileOp::Cos | TileOp::Acos | TileOp::Atan | TileOp::Erf => {
            ulps(2.0, 2.0)
        }
        TileOp::Cosh | TileOp::Tanh => ulps(2.0, 1.0),
        TileOp::Atan2 | TileOp::Sinh | TileOp::Atanh | TileOp::Hypot => ulps(3.0, 2.0),
        TileOp::Asinh => ulps(3.0, 3.0),
        TileOp::Acosh => ulps(4.0, 3.0),
        TileOp::Erfc => ulps(4.0, 5.0),
        TileOp::Erfinv => ulps(2.0, 3.0),
        TileOp::Lgamma => Some(Stated {
            below_zero: 16.0,
            ..Stated::ulps(4.0)
        }),
        _ => None,
    }
}

/// The format of a type of numbers with a point.
pub(super) fn format(scalar: Scalar) -> Format {
    scalar.format().unwrap_or(Format::F32)
}

/// The unit of the last place of a number.
pub(super) fn ulp(scalar: Scalar, x: f64) -> f64 {
    let format = format(scalar);
    let least = 2 - (1 << (format.exponent_bits - 1));
    let exponent = match x.abs() {
        x if !x.is_finite() => return 0.0,
        x if x < f64::MIN_POSITIVE => least,
        x => (((x.to_bits() >> 52) as i32) - 1023).max(least),
    };
    // `powi` may come by way of the reciprocal, which is infinite for the least numbers of f64.
    f64::from(exponent - format.mantissa_bits as i32).exp2()
}

/// The least number that has all its bits.
pub(super) fn least_normal(scalar: Scalar) -> f64 {
    ulp(scalar, 0.0) / (2.0 * unit(scalar))
}

/// The unit of rounding: the largest relative error of rounding once.
pub(super) fn unit(scalar: Scalar) -> f64 {
    2.0f64.powi(-1 - format(scalar).mantissa_bits as i32)
}

/// What rounds to infinity, or would to numbers beyond the largest one.
pub(super) fn limit(scalar: Scalar) -> f64 {
    let most = format(scalar).to_f64(format(scalar).max_finite);
    most + ulp(scalar, most) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::ops::Opcode;

    /// The prose of the op table is what users read; the numbers here are what runs are held against.
    #[test]
    fn numbers_are_those_of_the_op_table() {
        let table = include_str!("../ir/ops/table.rs");
        let (_, functions) = table.split_once("functions {").expect("the functions");
        let (functions, _) = functions
            .split_once("\n            tile {")
            .expect("their end");
        let mut prose = String::new();
        let mut seen = 0;
        for line in functions.lines().map(str::trim) {
            if let Some(text) = line.strip_prefix("/// ") {
                prose += text;
                prose += " ";
                continue;
            }
            let Some(name) = line.split('"').nth(1) else {
                continue;
            };
            let op = TileOp::from_name(name).expect("a row of the table");
            let bounds = std::mem::take(&mut prose);
            let Some((_, bounds)) = bounds.split_once("within ") else {
                assert_eq!(stated(op, Scalar::F32), None, "{name}");
                continue;
            };
            let mut numbers = bounds
                .split([' ', ','])
                .filter_map(|w| w.trim_end_matches('.').parse::<f64>().ok());
            let (single, double) = (numbers.next().expect("a bound"), numbers.next());
            if op == TileOp::Exp {
                // Its bound in f32 is that of `exp2`.
                assert_eq!(stated(op, Scalar::F32), stated(TileOp::Exp2, Scalar::F32));
                assert_eq!(stated(op, Scalar::F64).expect("one").ulp, single);
                continue;
            }
            let found = |scalar| stated(op, scalar).map_or(0.0, |stated| stated.ulp);
            assert_eq!(found(Scalar::F32), single, "{name}");
            assert_eq!(found(Scalar::F64), double.expect("two bounds"), "{name}");
            seen += 1;
        }
        assert!(seen >= 25, "{seen}");
    }

    #[test]
    fn the_unit_of_the_last_place() {
        for x in [1.0f32, 1.5, 3.0e38, 1e-40, 0.0, f32::MIN_POSITIVE] {
            let next = f64::from(x.next_up()) - f64::from(x);
            assert_eq!(ulp(Scalar::F32, f64::from(x)), next, "{x}");
        }
        assert_eq!(ulp(Scalar::F16, 1.0), 1.0 / 1024.0);
        assert_eq!(ulp(Scalar::F64, f64::INFINITY), 0.0);
        assert_eq!(unit(Scalar::F32), f64::from(f32::EPSILON) / 2.0);
        assert_eq!(least_normal(Scalar::F32), f64::from(f32::MIN_POSITIVE));
        assert_eq!(least_normal(Scalar::F64), f64::MIN_POSITIVE);
    }
}
