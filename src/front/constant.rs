//! Arithmetic at compile time: of constants by Python's rules, of known numbers by those of their type.
//!
//! Python's integers have no limit; here they have 128 bits, and what exceeds them is an error, as is every result that
//! Python itself refuses (division by zero, a negative shift).

use ruff_python_ast::{CmpOp, Operator, UnaryOp};

use super::types::DType;
use super::value::{Const, Known, PyNumber};
use crate::limits::STRING_BYTES;
use crate::num::{Format, Overflow, Rounding};

/// Why an integer has no place here.
pub(crate) const WIDE: &str = "the result needs more than 128 bits";

/// Why there is no quotient.
pub(crate) const BY_ZERO: &str = "division by zero";

/// A number in Python's writing.
pub(crate) fn repr(x: f64) -> String {
    if x.is_nan() {
        "nan".to_owned()
    } else if x.is_infinite() {
        if x > 0.0 { "inf" } else { "-inf" }.to_owned()
    } else if x != 0.0 && (x.abs() >= 1e16 || x.abs() < 1e-4) {
        let text = format!("{x:e}");
        // Python writes at least two digits of exponent, with a sign.
        match text.split_once('e') {
            Some((digits, exponent)) => {
                let (sign, size) = match exponent.strip_prefix('-') {
                    Some(size) => ('-', size),
                    None => ('+', exponent),
                };
                format!("{digits}e{sign}{size:0>2}")
            }
            None => text,
        }
    } else {
        format!("{x:?}")
    }
}

/// A constant in Python's `str`.
pub(crate) fn display(c: &Const) -> String {
    match c {
        Const::None => "None".to_owned(),
        Const::Bool(b) => if *b { "True" } else { "False" }.to_owned(),
        Const::Int(n) => n.to_string(),
        Const::Float(x) => repr(*x),
        Const::Str(s) => s.to_string(),
    }
}

/// Whether Python takes the constant for true.
pub(crate) fn truth(c: &Const) -> bool {
    match c {
        Const::None => false,
        Const::Bool(b) => *b,
        Const::Int(n) => *n != 0,
        Const::Float(x) => *x != 0.0,
        Const::Str(s) => !s.is_empty(),
    }
}

/// A constant as an integer; truth values count.
pub(crate) fn as_int(c: &Const) -> Option<i128> {
    match c {
        Const::Bool(b) => Some(i128::from(*b)),
        Const::Int(n) => Some(*n),
        _ => None,
    }
}

/// A constant as a float.
pub(crate) fn as_float(c: &Const) -> Option<f64> {
    match c {
        Const::Float(x) => Some(*x),
        c => as_int(c).map(|n| n as f64),
    }
}

/// How an operator is written.
pub(crate) fn symbol(op: Operator) -> &'static str {
    op.as_str()
}

/// `a op b` as Python has it.
pub(crate) fn binary(op: Operator, a: &Const, b: &Const) -> Result<Const, String> {
    if let (Const::Str(a), Const::Str(b), Operator::Add) = (a, b, op) {
        if a.len() + b.len() > STRING_BYTES {
            return Err("the string is too long".to_owned());
        }
        return Ok(Const::Str(format!("{a}{b}").into()));
    }
    match (a, b, op) {
        (Const::Str(text), times, Operator::Mult) | (times, Const::Str(text), Operator::Mult) => {
            let times = as_int(times).ok_or("a string is repeated an integer number of times")?;
            let times = usize::try_from(times.max(0)).unwrap_or(usize::MAX);
            if text.len().saturating_mul(times) > STRING_BYTES {
                return Err("the string is too long".to_owned());
            }
            return Ok(Const::Str(text.repeat(times).into()));
        }
        (Const::Str(text), value, Operator::Mod) => {
            let text = super::format::percent(text, std::slice::from_ref(value))?;
            return Ok(Const::Str(text.into()));
        }
        _ => {}
    }
    let bools = matches!((a, b), (Const::Bool(_), Const::Bool(_)));
    match (as_int(a), as_int(b)) {
        (Some(x), Some(y)) => int_binary(op, x, y).map(|result| match result {
            Const::Int(n)
                if bools && matches!(op, Operator::BitAnd | Operator::BitOr | Operator::BitXor) =>
            {
                Const::Bool(n != 0)
            }
            result => result,
        }),
        _ => match (as_float(a), as_float(b)) {
            (Some(x), Some(y)) => float_binary(op, x, y).map(Const::Float),
            _ => Err(format!("Python has no `{}` for these", symbol(op))),
        },
    }
}

fn int_binary(op: Operator, x: i128, y: i128) -> Result<Const, String> {
    let wide = || WIDE.to_owned();
    let by_zero = || BY_ZERO.to_owned();
    let number = match op {
        Operator::Add => x.checked_add(y).ok_or_else(wide)?,
        Operator::Sub => x.checked_sub(y).ok_or_else(wide)?,
        Operator::Mult => x.checked_mul(y).ok_or_else(wide)?,
        Operator::Div if y == 0 => return Err(by_zero()),
        Operator::Div => return Ok(Const::Float(quotient(x, y))),
        Operator::FloorDiv | Operator::Mod if y == 0 => return Err(by_zero()),
        Operator::FloorDiv => floor_div(x, y).ok_or_else(wide)?,
        Operator::Mod => x.wrapping_sub(floor_div(x, y).ok_or_else(wide)?.wrapping_mul(y)),
        Operator::LShift | Operator::RShift if y < 0 => {
            return Err("negative shift count".to_owned());
        }
        Operator::LShift if y >= 127 => return Err(wide()),
        Operator::LShift => x.checked_mul(1 << y).ok_or_else(wide)?,
        Operator::RShift => x >> y.min(127),
        Operator::BitAnd => x & y,
        Operator::BitOr => x | y,
        Operator::BitXor => x ^ y,
        Operator::Pow if y < 0 => return float_binary(op, x as f64, y as f64).map(Const::Float),
        Operator::Pow => {
            let exponent = u32::try_from(y).map_err(|_| wide())?;
            x.checked_pow(exponent).ok_or_else(wide)?
        }
        Operator::MatMult => return Err("numbers have no `@`".to_owned()),
    };
    Ok(Const::Int(number))
}

/// The quotient of integers, of which the second is not zero, rounded once.
fn quotient(x: i128, y: i128) -> f64 {
    const EXACT: u128 = 1 << f64::MANTISSA_DIGITS;
    let (a, b) = (x.unsigned_abs(), y.unsigned_abs());
    if a <= EXACT && b <= EXACT {
        return x as f64 / y as f64;
    }
    // Enough digits for one rounding, the last of which says whether anything follows.
    let (mut digits, mut rest, mut scale) = (a / b, a % b, 1.0);
    while rest != 0 && digits < EXACT << 2 {
        rest <<= 1;
        digits = digits << 1 | u128::from(rest >= b);
        rest -= if rest >= b { b } else { 0 };
        scale *= 0.5;
    }
    let size = (digits | u128::from(rest != 0)) as f64 * scale;
    if (x < 0) != (y < 0) { -size } else { size }
}

/// The quotient rounded down.
fn floor_div(x: i128, y: i128) -> Option<i128> {
    let quotient = x.checked_div(y)?;
    let exact = quotient.wrapping_mul(y) == x;
    Some(if !exact && ((x < 0) != (y < 0)) {
        quotient - 1
    } else {
        quotient
    })
}

/// The quotient rounded down and the remainder, which has the sign of the divisor. Both come from the exact remainder:
/// the quotient of floats may have been rounded up to the next whole number.
fn floor_mod(x: f64, y: f64) -> (f64, f64) {
    let mut rest = x % y;
    let mut whole = (x - rest) / y;
    if rest == 0.0 {
        rest = 0f64.copysign(y);
    } else if (rest < 0.0) != (y < 0.0) {
        rest += y;
        whole -= 1.0;
    }
    let below = whole.floor();
    let floor = match whole {
        0.0 => 0f64.copysign(x / y),
        // It is whole but for its own rounding.
        whole if whole - below > 0.5 => below + 1.0,
        _ => below,
    };
    (floor, rest)
}

fn float_binary(op: Operator, x: f64, y: f64) -> Result<f64, String> {
    let by_zero = || BY_ZERO.to_owned();
    Ok(match op {
        Operator::Add => x + y,
        Operator::Sub => x - y,
        Operator::Mult => x * y,
        Operator::Div | Operator::FloorDiv | Operator::Mod if y == 0.0 => return Err(by_zero()),
        Operator::Div => x / y,
        Operator::FloorDiv => floor_mod(x, y).0,
        Operator::Mod => floor_mod(x, y).1,
        Operator::Pow if x == 0.0 && y < 0.0 => return Err(by_zero()),
        Operator::Pow if x < 0.0 && y.fract() != 0.0 => {
            return Err("the power is not a real number".to_owned());
        }
        Operator::Pow => {
            let power = x.powf(y);
            if power.is_infinite() && x.is_finite() && y.is_finite() {
                return Err("the result is too large for a float".to_owned());
            }
            power
        }
        _ => return Err(format!("Python has no `{}` for floats", symbol(op))),
    })
}

/// A unary operator as Python has it.
pub(crate) fn unary(op: UnaryOp, c: &Const) -> Result<Const, String> {
    match (op, c) {
        (UnaryOp::Not, c) => Ok(Const::Bool(!truth(c))),
        (UnaryOp::USub, Const::Float(x)) => Ok(Const::Float(-x)),
        (UnaryOp::UAdd, Const::Float(x)) => Ok(Const::Float(*x)),
        (op, c) => {
            let number = as_int(c).ok_or_else(|| format!("Python has no `{op}` for this"))?;
            let number = match op {
                UnaryOp::USub => number.checked_neg(),
                UnaryOp::Invert => Some(!number),
                UnaryOp::UAdd | UnaryOp::Not => Some(number),
            };
            number.map(Const::Int).ok_or_else(|| WIDE.to_owned())
        }
    }
}

/// How an integer compares with a float, exactly; none with NaN.
fn order(n: i128, x: f64) -> Option<std::cmp::Ordering> {
    use std::cmp::Ordering;
    let whole = x.trunc();
    if x.is_nan() || whole.abs() >= 2f64.powi(127) {
        // Larger than every integer here, or smaller.
        return 0f64.partial_cmp(&x);
    }
    Some(n.cmp(&(whole as i128)).then_with(|| {
        let fraction = x - whole;
        0f64.partial_cmp(&fraction).unwrap_or(Ordering::Equal)
    }))
}

/// A comparison of what has no order.
fn unordered(op: CmpOp, equal: bool) -> Option<bool> {
    match op {
        CmpOp::Eq => Some(equal),
        CmpOp::NotEq => Some(!equal),
        _ => None,
    }
}

/// A comparison as Python has it; none where Python refuses.
pub(crate) fn compare(op: CmpOp, a: &Const, b: &Const) -> Option<bool> {
    use std::cmp::Ordering;
    let order: Option<Ordering> = match (a, b) {
        (Const::Str(a), Const::Str(b)) => Some(a.cmp(b)),
        _ => match (as_int(a), as_int(b)) {
            (Some(x), Some(y)) => Some(x.cmp(&y)),
            (x, y) => {
                let order = match (x, y, a, b) {
                    (Some(x), _, _, Const::Float(y)) => order(x, *y),
                    (_, Some(y), Const::Float(x), _) => order(y, *x).map(Ordering::reverse),
                    (_, _, Const::Float(x), Const::Float(y)) => x.partial_cmp(y),
                    _ => return unordered(op, a == b),
                };
                match order {
                    Some(order) => Some(order),
                    // NaN.
                    None => return Some(op == CmpOp::NotEq),
                }
            }
        },
    };
    match (op, order) {
        (CmpOp::Eq, order) => Some(order == Some(Ordering::Equal)),
        (CmpOp::NotEq, order) => Some(order != Some(Ordering::Equal)),
        (CmpOp::Lt, Some(order)) => Some(order.is_lt()),
        (CmpOp::LtE, Some(order)) => Some(order.is_le()),
        (CmpOp::Gt, Some(order)) => Some(order.is_gt()),
        (CmpOp::GtE, Some(order)) => Some(order.is_ge()),
        _ => None,
    }
}

/// The IR's number format for a float; f32 for formats that it does not have.
fn format(dtype: DType) -> Format {
    match dtype {
        DType::Float16 => Format::F16,
        DType::Bfloat16 => Format::BF16,
        DType::Float64 => Format::F64,
        DType::Float8e5 => Format::E5M2,
        DType::Float8e4nv => Format::E4M3,
        _ => Format::F32,
    }
}

/// The bits of a number in a format, low bits of an integer, nearest even of a float.
pub(crate) fn bits(dtype: DType, number: PyNumber) -> u64 {
    match number {
        PyNumber::Int(n) if dtype.is_float() => float_bits(dtype, n as f64),
        PyNumber::Int(n) => (n as u64) & (u64::MAX >> (64 - dtype.bits())),
        PyNumber::Float(x) if dtype.is_float() => float_bits(dtype, x),
        PyNumber::Float(x) => (x as i128 as u64) & (u64::MAX >> (64 - dtype.bits())),
    }
}

fn float_bits(dtype: DType, x: f64) -> u64 {
    let overflow = match dtype {
        DType::Float8e4nv | DType::Float8e5 => Overflow::Finite,
        _ => Overflow::Ieee,
    };
    format(dtype).from_f64(x, Rounding::NearestEven, overflow)
}

/// The number that a format holds for `x`.
fn round(dtype: DType, x: f64) -> f64 {
    format(dtype).to_f64(float_bits(dtype, x))
}

/// A number converted to a format by the rules of a cast; none where the result is unspecified.
pub(crate) fn convert(number: PyNumber, dtype: DType) -> Option<Known> {
    let number = match (number, dtype) {
        (PyNumber::Int(n), DType::Int1) => PyNumber::Int(i128::from(n != 0)),
        (PyNumber::Float(x), DType::Int1) => PyNumber::Int(i128::from(x != 0.0)),
        // There is no such format among those of constants.
        (_, DType::Float8e4b15) if number != PyNumber::Int(0) => return None,
        (PyNumber::Int(n), d) if d.is_int() => PyNumber::Int(d.wrap(n)),
        (PyNumber::Int(n), d) => PyNumber::Float(round(d, n as f64)),
        (PyNumber::Float(x), d) if d.is_float() => PyNumber::Float(round(d, x)),
        (PyNumber::Float(x), d) => {
            let (low, high) = d.int_range();
            let whole = x.trunc();
            if !(whole >= low as f64 && whole <= high as f64) || d.bits() == 64 && x.abs() > 9e18 {
                return None;
            }
            PyNumber::Int(whole as i128)
        }
    };
    Some(Known { dtype, number })
}

/// `a op b` of numbers of one type by the rules of that type; none where the compiler leaves it to run time.
pub(crate) fn known_binary(op: Operator, dtype: DType, a: PyNumber, b: PyNumber) -> Option<Known> {
    let number = match (a, b) {
        (PyNumber::Int(x), PyNumber::Int(y)) => {
            let n = match op {
                Operator::Add => x.checked_add(y)?,
                Operator::Sub => x.checked_sub(y)?,
                Operator::Mult => x.checked_mul(y)?,
                // Rounded to zero, unlike a constant's.
                Operator::FloorDiv if y != 0 => x / y,
                Operator::Mod if y != 0 => x % y,
                Operator::BitAnd => x & y,
                Operator::BitOr => x | y,
                Operator::BitXor => x ^ y,
                Operator::LShift if (0..i128::from(dtype.bits())).contains(&y) => {
                    x.checked_mul(1 << y)?
                }
                Operator::RShift if (0..i128::from(dtype.bits())).contains(&y) => x >> y,
                _ => return None,
            };
            PyNumber::Int(dtype.wrap(n))
        }
        (PyNumber::Float(x), PyNumber::Float(y))
            if matches!(dtype, DType::Float32 | DType::Float64) =>
        {
            // Of f32 numbers, f64 holds sums, products and quotients well enough for one further rounding.
            let x = match op {
                Operator::Add => x + y,
                Operator::Sub => x - y,
                Operator::Mult => x * y,
                Operator::Div if y != 0.0 => x / y,
                _ => return None,
            };
            PyNumber::Float(round(dtype, x))
        }
        _ => return None,
    };
    Some(Known { dtype, number })
}

/// A comparison of numbers of one type.
pub(crate) fn known_compare(op: CmpOp, a: PyNumber, b: PyNumber) -> Option<bool> {
    let (a, b) = match (a, b) {
        (PyNumber::Int(x), PyNumber::Int(y)) => (Const::Int(x), Const::Int(y)),
        (PyNumber::Float(x), PyNumber::Float(y)) => (Const::Float(x), Const::Float(y)),
        _ => return None,
    };
    compare(op, &a, &b)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn int(op: Operator, x: i128, y: i128) -> Result<Const, String> {
        binary(op, &Const::Int(x), &Const::Int(y))
    }

    #[test]
    fn division_of_constants_rounds_down_and_of_known_numbers_to_zero() {
        assert_eq!(int(Operator::FloorDiv, -7, 2), Ok(Const::Int(-4)));
        assert_eq!(int(Operator::Mod, -7, 2), Ok(Const::Int(1)));
        assert_eq!(int(Operator::Mod, 7, -2), Ok(Const::Int(-1)));
        let (x, y) = (PyNumber::Int(-7), PyNumber::Int(2));
        let number = |op| known_binary(op, DType::Int32, x, y).map(|k| k.number);
        assert_eq!(number(Operator::FloorDiv), Some(PyNumber::Int(-3)));
        assert_eq!(number(Operator::Mod), Some(PyNumber::Int(-1)));
    }

    #[test]
    fn what_has_no_result_is_an_error() {
        assert!(int(Operator::FloorDiv, 1, 0).is_err());
        for op in [Operator::LShift, Operator::RShift] {
            assert_eq!(int(op, 1, -1), Err("negative shift count".into()));
        }
        for (x, count) in [(1, 127), (1, 1 << 40), (2, 126)] {
            assert_eq!(
                int(Operator::LShift, x, count),
                Err("the result needs more than 128 bits".into())
            );
        }
        for (x, shifted) in [(1, 0), (-5, -1)] {
            assert_eq!(int(Operator::RShift, x, 1 << 40), Ok(Const::Int(shifted)));
        }
        assert!(int(Operator::Pow, 2, 1000).is_err());
        assert_eq!(int(Operator::Pow, 2, -1), Ok(Const::Float(0.5)));
        assert_eq!(
            int(Operator::FloorDiv, i128::MIN, -1),
            Err("the result needs more than 128 bits".into())
        );
    }

    #[test]
    fn floats_are_written_as_python_does() {
        for (x, text) in [
            (1.0, "1.0"),
            (1e-5, "1e-05"),
            (1e16, "1e+16"),
            (0.1, "0.1"),
            (1.5e300, "1.5e+300"),
        ] {
            assert_eq!(repr(x), text);
        }
    }

    #[test]
    fn known_integers_wrap() {
        let big = PyNumber::Int(i128::from(i32::MAX));
        let sum =
            known_binary(Operator::Add, DType::Int32, big, PyNumber::Int(1)).map(|k| k.number);
        assert_eq!(sum, Some(PyNumber::Int(i128::from(i32::MIN))));
    }
}
