//! `x ** n` with a whole constant `n`, of numbers that are known at run time only. Triton has no such operator; what it
//! means is plain.

use ruff_python_ast::Operator;

use super::constant;
use super::diagnostic::Code;
use super::lower::{Lower, Res};
use super::types::{DType, Ty};
use super::value::{Known, PyNumber, Value};
use crate::ir::attrs::Rounding;

/// Largest exponent of an integer: beyond it all but a few bases wrap.
const LARGEST: i128 = 64;

impl<'m> Lower<'m> {
    pub(crate) fn power(&mut self, a: &Value<'m>, b: &Value<'m>) -> Res<Value<'m>> {
        let exponent = b.as_const().and_then(|c| constant::as_int(&c));
        let (Some(n), Value::Tensor(t), Ty::Num(dtype)) = (exponent, a, self.type_of(a)?.0) else {
            let d = self.error(Code::Constant, "`**` needs a constant whole exponent");
            return Err(d.help("use libdevice.pow, tl.exp2, or a product").into());
        };
        if !dtype.is_float() {
            return self.whole_power(a, n);
        }
        // The function of the IR is of f32 and f64; it makes products of such exponents.
        let wide = match dtype {
            DType::Float64 => DType::Float64,
            _ => DType::Float32,
        };
        let x = self.cast(*t, Ty::Num(wide), Rounding::Nearest)?;
        let number = PyNumber::Float(n as f64);
        let y = self.constant(
            Known {
                dtype: wide,
                number,
            },
            t.shape,
        )?;
        let value = self.b.pow(x.value, y.value);
        let value = self.block(value, Ty::Num(wide));
        let value = self.tensor(&value)?;
        self.cast(value, t.ty, Rounding::Nearest).map(Value::Tensor)
    }

    /// The power of an integer, which wraps as products do.
    fn whole_power(&mut self, a: &Value<'m>, n: i128) -> Res<Value<'m>> {
        if !(1..=LARGEST).contains(&n) {
            let message = format!("an integer to the power {n}: exponents are 1 to {LARGEST}");
            let d = self.error(Code::Value, message);
            return Err(d.help("cast to float32 first").into());
        }
        let mut power = a.clone();
        for bit in (0..n.ilog2()).rev() {
            power = self.binary(Operator::Mult, &power.clone(), &power)?;
            if n >> bit & 1 == 1 {
                power = self.binary(Operator::Mult, &power, a)?;
            }
        }
        Ok(power)
    }
}
