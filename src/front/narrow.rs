//! Conversions of `float8e4b15`, a format without instructions of its own: a sign, four bits of exponent with bias 15 and three
//! of fraction, neither infinities nor NaN. It is a half whose exponent's top bit and seven last bits of fraction are
//! left out, so all of it are shifts. The IR holds it as bytes.

use super::lower::{Lower, Res};
use super::types::{DType, Ty};
use super::value::{Known, PyNumber, Tensor};
use crate::ir::attrs::Rounding;

impl<'m> Lower<'m> {
    fn word(&mut self, number: i128, like: Tensor) -> Res<Tensor> {
        let known = Known {
            dtype: DType::Uint16,
            number: PyNumber::Int(number),
        };
        self.constant(known, like.shape)
    }

    /// From `float8e4b15` to a float; exact.
    pub(crate) fn widen_e4b15(&mut self, t: Tensor, to: DType) -> Res<Tensor> {
        let words = self.tile_type(Ty::Num(DType::Uint16), t.shape)?;
        let [low, sign] = [0x7f, 0x80].map(|n| self.word(n, t));
        let [seven, eight] = [7, 8].map(|n| self.word(n, t));
        let (low, sign, seven, eight) = (low?, sign?, seven?, eight?);
        let b = &mut self.b;
        let bits = b.zext(t.value, words);
        let size = b.and(bits, low.value);
        let size = b.shl(size, seven.value);
        let sign = b.and(bits, sign.value);
        let sign = b.shl(sign, eight.value);
        let value = b.or(size, sign);
        let half = Tensor { value, ..low };
        let half = self.bitcast(half, Ty::Num(DType::Float16))?;
        self.cast(half, Ty::Num(to), Rounding::Nearest)
    }

    /// To `float8e4b15`, by way of a half that is rounded to zero; halves between two numbers go away from zero, what is
    /// above 1.75, and NaN, becomes 1.75.
    pub(crate) fn narrow_e4b15(&mut self, t: Tensor) -> Res<Tensor> {
        let half = self.cast(t, Ty::Num(DType::Float16), Rounding::Zero)?;
        let bits = self.bitcast(half, Ty::Num(DType::Uint16))?;
        let [low, top, sign] = [0x7fff, 0x3f00, 0x80].map(|n| self.word(n, t));
        let [one, round, eight] = [1, 0x80, 8].map(|n| self.word(n, t));
        let (low, top, sign) = (low?, top?, sign?);
        let (one, round, eight) = (one?, round?, eight?);
        let ty = Ty::Num(DType::Float8e4b15);
        let bytes = self.tile_type(ty, t.shape)?;
        let b = &mut self.b;
        let size = b.and(bits.value, low.value);
        let size = b.umin(size, top.value);
        let size = b.shl(size, one.value);
        let size = b.iadd(size, round.value);
        let size = b.ushr(size, eight.value);
        let signs = b.ushr(bits.value, eight.value);
        let signs = b.and(signs, sign.value);
        let value = b.or(size, signs);
        let value = b.itrunc(value, bytes);
        Ok(Tensor {
            value,
            ty,
            shape: t.shape,
        })
    }
}
