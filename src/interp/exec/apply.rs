//! Functions of numbers applied to blocks, element by element.

use crate::interp::{Cause, Open, float, int};
use crate::ir::dfg::InstData;
use crate::ir::entities::Inst;
use crate::ir::level::Tile;
use crate::ir::ops::TileOp;
use crate::ir::types::Scalar;

use super::{Elems, Machine, Outcome};

impl Machine<'_> {
    /// The operand unchanged.
    pub(super) fn same(&self, data: &InstData<Tile>) -> Outcome<Elems> {
        self.arg(data, 0).cloned()
    }

    pub(super) fn map(&self, data: &InstData<Tile>, f: impl Fn(u64) -> u64) -> Outcome<Elems> {
        Ok(self.arg(data, 0)?.iter().map(|&x| f(x)).collect())
    }

    pub(super) fn zip(&self, data: &InstData<Tile>, f: impl Fn(u64, u64) -> u64) -> Outcome<Elems> {
        let (a, b) = (self.arg(data, 0)?, self.arg(data, 1)?);
        Ok(a.iter().zip(b).map(|(&a, &b)| f(a, b)).collect())
    }

    pub(super) fn zip3(
        &self,
        data: &InstData<Tile>,
        f: impl Fn(u64, u64, u64) -> u64,
    ) -> Outcome<Elems> {
        let (a, b, c) = (self.arg(data, 0)?, self.arg(data, 1)?, self.arg(data, 2)?);
        let pairs = a.iter().zip(b).zip(c);
        Ok(pairs.map(|((&a, &b), &c)| f(a, b, c)).collect())
    }

    pub(super) fn ints(
        &self,
        data: &InstData<Tile>,
        f: impl Fn(u32, u64, u64) -> u64,
    ) -> Outcome<Elems> {
        let bits = self.scalar(data, 0)?.bits();
        self.zip(data, |a, b| f(bits, a, b))
    }

    /// Quotients or remainders; remembers the first that is not defined.
    pub(super) fn quotients(
        &mut self,
        inst: Inst,
        data: &InstData<Tile>,
        f: impl Fn(u32, u64, u64) -> u64,
    ) -> Outcome<Elems> {
        if self.stats.undefined.is_none() {
            let why = self.undefined_quotients(data)?.flatten().next();
            self.stats.undefined = why.map(|why| Cause { inst, why });
        }
        self.ints(data, f)
    }

    /// Of each element of a quotient or remainder, why it is not defined.
    pub(super) fn undefined_quotients(
        &self,
        data: &InstData<Tile>,
    ) -> Outcome<impl Iterator<Item = Option<Open>> + '_> {
        let bits = self.scalar(data, 0)?.bits();
        let is_signed = matches!(data.op, TileOp::Sdiv | TileOp::Srem);
        let pairs = self.arg(data, 0)?.iter().zip(self.arg(data, 1)?);
        Ok(pairs.map(move |(&a, &b)| int::undefined(is_signed, bits, a, b)))
    }

    pub(super) fn float1(
        &self,
        data: &InstData<Tile>,
        f: impl Fn(Scalar, u64) -> u64,
    ) -> Outcome<Elems> {
        let scalar = self.scalar(data, 0)?;
        self.map(data, |a| f(scalar, a))
    }

    pub(super) fn floats(
        &self,
        data: &InstData<Tile>,
        f: impl Fn(Scalar, u64, u64) -> u64,
    ) -> Outcome<Elems> {
        let scalar = self.scalar(data, 0)?;
        self.zip(data, |a, b| f(scalar, a, b))
    }

    pub(super) fn int1(
        &self,
        data: &InstData<Tile>,
        f: impl Fn(u32, u64) -> u64,
    ) -> Outcome<Elems> {
        let bits = self.scalar(data, 0)?.bits();
        self.map(data, |a| f(bits, a))
    }

    /// A function with a form for each of f32 and f64.
    pub(super) fn function(
        &self,
        data: &InstData<Tile>,
        single: impl Fn(f32) -> f32,
        double: impl Fn(f64) -> f64,
    ) -> Outcome<Elems> {
        self.float1(data, float::function(single, double))
    }

    /// A function computed in f64 and, for f32, rounded once.
    pub(super) fn accurate(&self, data: &InstData<Tile>, f: impl Fn(f64) -> f64) -> Outcome<Elems> {
        self.float1(data, float::accurate(f))
    }

    /// The same with two operands.
    pub(super) fn accurate2(
        &self,
        data: &InstData<Tile>,
        f: impl Fn(f64, f64) -> f64,
    ) -> Outcome<Elems> {
        self.floats(data, float::accurate2(f))
    }

    /// A conversion from the operand's element type to the result's.
    pub(super) fn cast(
        &self,
        data: &InstData<Tile>,
        f: impl Fn(Scalar, Scalar, u64) -> u64,
    ) -> Outcome<Elems> {
        let (from, to) = (self.scalar(data, 0)?, self.result_scalar(data)?);
        self.map(data, |x| f(from, to, x))
    }
}
