//! Operators on numbers and blocks.
//!
//! Both operands constants: Python's arithmetic. Otherwise the types are promoted, the shapes broadcast and one op of
//! the tile IR is made; numbers that are known become constants of the block's shape, or are folded.

use ruff_python_ast::{CmpOp, Operator, UnaryOp};

use super::constant;
use super::diagnostic::Code;
use super::lower::{Lower, Res, Stop};
use super::types::{DType, PromotionError, Ty, TypedOperand, promote, promote_ints, show};
use super::value::{Const, Known, PyNumber, Tensor, Value};
use crate::ir::attrs::{FloatPred, IntPred, NanRule, Rounding};
use crate::ir::entities;
use crate::linear_layout::shape::Shape;

/// How operands are brought together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rules {
    /// The operator divides: halves are computed in f32, signs must agree.
    pub(crate) division: bool,
    /// Numbers of the source text count as tensors of their own type.
    pub(crate) strong: bool,
    /// Pointers are allowed.
    pub(crate) pointers: bool,
}

/// Two operands of one type and shape.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair {
    pub(crate) a: entities::Value,
    pub(crate) b: entities::Value,
    pub(crate) ty: Ty,
    pub(crate) shape: Shape,
}

impl<'m> Lower<'m> {
    /// An operand as promotion sees it.
    fn operand(&self, value: &Value<'m>, strong: bool) -> Res<(TypedOperand, Shape)> {
        match self.type_of(value)? {
            (Ty::Num(dtype), shape) => {
                let weak = !strong && matches!(value, Value::Const(_));
                Ok((TypedOperand { dtype, weak }, shape))
            }
            (ty @ Ty::Ptr { .. }, shape) => {
                let message = format!("a pointer ({}) cannot stand here", show(ty, shape));
                Err(self
                    .error(Code::Type, message)
                    .help("pointers can be moved by integers, compared and dereferenced")
                    .into())
            }
        }
    }

    /// The format in which an operator on two values computes.
    fn common_dtype(&self, a: &Value<'m>, b: &Value<'m>, rules: Rules) -> Res<DType> {
        let (x, _) = self.operand(a, rules.strong)?;
        let (y, _) = self.operand(b, rules.strong)?;
        let dtype = promote(x, y, rules.division).map_err(|e| self.no_promotion(e, x, y))?;
        for (value, weak) in [(a, x.weak), (b, y.weak)] {
            if let (true, Value::Const(c)) = (weak, value)
                && let (Some(number), true) = (constant::as_int(c), dtype.is_int())
                && dtype != DType::Int1
            {
                self.check_range(number, dtype)?;
            }
        }
        Ok(dtype)
    }

    /// A number of the source text must fit the integers that it meets.
    pub(crate) fn check_range(&self, number: i128, dtype: DType) -> Res<()> {
        let (low, high) = dtype.int_range();
        if (low..=high).contains(&number) {
            return Ok(());
        }
        let message = format!("the number {number} is out of range for {dtype}");
        Err(self
            .error(Code::Value, message)
            .help("cast the other operand to a type that holds it")
            .into())
    }

    fn no_promotion(&self, e: PromotionError, x: TypedOperand, y: TypedOperand) -> Stop {
        let (a, b) = (x.dtype, y.dtype);
        let d = match e {
            PromotionError::Incompatible => self
                .error(Code::Type, format!("{a} and {b} have no common type"))
                .help("cast one of them with `.to(...)`"),
            PromotionError::Signedness => self
                .error(
                    Code::Type,
                    format!("{a} and {b} differ in sign and cannot be divided"),
                )
                .help("cast one of them with `.to(...)`"),
        };
        d.into()
    }

    /// Two operands brought to one type and shape.
    pub(crate) fn pair(&mut self, a: &Value<'m>, b: &Value<'m>, rules: Rules) -> Res<Pair> {
        let ((ta, sa), (tb, sb)) = (self.type_of(a)?, self.type_of(b)?);
        if rules.pointers && (ta.is_ptr() || tb.is_ptr()) {
            return self.pointer_pair(a, b);
        }
        let dtype = self.common_dtype(a, b, rules)?;
        let shape = self.common_shape(sa, sb)?;
        let (a, b) = match rules.strong {
            true => (&self.strong(a)?, &self.strong(b)?),
            false => (a, b),
        };
        let a = self.materialize(a, dtype, shape)?;
        let b = self.materialize(b, dtype, shape)?;
        let ty = Ty::Num(dtype);
        Ok(Pair {
            a: a.value,
            b: b.value,
            ty,
            shape,
        })
    }

    /// Two pointers of one type, or a pointer and an integer that stands for an address.
    fn pointer_pair(&mut self, a: &Value<'m>, b: &Value<'m>) -> Res<Pair> {
        let (x, y) = (self.tensor(a)?, self.tensor(b)?);
        let ty = if x.ty.is_ptr() { x.ty } else { y.ty };
        let fits = |t: Tensor| t.ty == ty || t.ty.dtype().is_some_and(DType::is_int);
        if !fits(x) || !fits(y) {
            let message = format!("{} and {} do not go together", x.ty, y.ty);
            return Err(self.error(Code::Type, message).into());
        }
        let shape = self.common_shape(x.shape, y.shape)?;
        let mut address = |t: Tensor| {
            let t = match t.ty {
                Ty::Num(_) => self.cast(t, Ty::Num(DType::Int64), Rounding::Nearest)?,
                Ty::Ptr { .. } => t,
            };
            let t = self.cast(t, ty, Rounding::Nearest)?;
            self.broadcast_to(t, shape)
        };
        let (x, y) = (address(x)?, address(y)?);
        Ok(Pair {
            a: x.value,
            b: y.value,
            ty,
            shape,
        })
    }

    /// `a op b`.
    pub(crate) fn binary(&mut self, op: Operator, a: &Value<'m>, b: &Value<'m>) -> Res<Value<'m>> {
        match (a, b) {
            (Value::Poison, _) | (_, Value::Poison) => return Err(Stop::Reported),
            (Value::Const(x), Value::Const(y)) => {
                for side in [x, y] {
                    if let Const::Str(text) = side {
                        self.charge_text(text)?;
                    }
                }
                return match constant::binary(op, x, y) {
                    Ok(c) => Ok(Value::Const(c)),
                    Err(message) if message == constant::BY_ZERO => {
                        Err(self.raises(Code::Arithmetic, message).into())
                    }
                    Err(message) => Err(self.error(Code::Arithmetic, message).into()),
                };
            }
            (Value::Tuple(x), Value::Tuple(y)) if op == Operator::Add => {
                if self.frame().host && x.list != y.list {
                    let d = self.raises(Code::Type, "a list and a tuple have no sum");
                    return Err(d.help("make both a list: `x + list(y)`").into());
                }
                return Ok(x.of_kind(x.items.iter().chain(&y.items).cloned().collect()));
            }
            (Value::Tuple(x), y) | (y, Value::Tuple(x)) if op == Operator::Mult => {
                return self.repeat_tuple(x, y);
            }
            (Value::Const(Const::Str(text)), values) if op == Operator::Mod => {
                return self.percent(text, values);
            }
            _ => {}
        }
        let ((ta, _), (tb, _)) = (self.type_of(a)?, self.type_of(b)?);
        if ta.is_ptr() || tb.is_ptr() {
            return self.pointer_arithmetic(op, a, b);
        }
        match op {
            Operator::Add | Operator::Sub | Operator::Mult => self.arithmetic(op, a, b),
            Operator::Div => self.true_division(a, b),
            Operator::FloorDiv | Operator::Mod => self.int_division(op, a, b),
            Operator::BitAnd
            | Operator::BitOr
            | Operator::BitXor
            | Operator::LShift
            | Operator::RShift => self.bitwise(op, a, b),
            Operator::Pow => self.power(a, b),
            Operator::MatMult => Err(self
                .error(Code::Unsupported, "blocks have no `@`")
                .help("use tl.dot(a, b)")
                .into()),
        }
    }

    /// `text % values`, of values that are known at compile time.
    fn percent(&mut self, text: &str, values: &Value<'m>) -> Res<Value<'m>> {
        self.charge_text(text)?;
        let items = match values {
            Value::Tuple(tuple) => tuple.items.clone(),
            single => vec![single.clone()],
        };
        let items: Vec<Const> = items.iter().map(|item| self.as_shown(item)).collect();
        match super::format::percent(text, &items) {
            Ok(text) => Ok(Value::Const(Const::Str(text.into()))),
            Err(message) => Err(self.error(Code::Value, message).into()),
        }
    }

    fn repeat_tuple(&self, t: &super::value::Tuple<'m>, times: &Value<'m>) -> Res<Value<'m>> {
        let count = times.as_const().and_then(|c| constant::as_int(&c));
        let count = count.and_then(|n| usize::try_from(n.max(0)).ok());
        match count {
            Some(n) if n.saturating_mul(t.weight) <= 1 << 16 => {
                let items = std::iter::repeat_n(&t.items, n).flatten().cloned();
                Ok(t.of_kind(items.collect()))
            }
            _ => {
                let message = "a tuple is repeated a constant, small number of times";
                Err(self.error(Code::Value, message).into())
            }
        }
    }

    /// The numbers of both operands in the common format, if both are known.
    fn known_pair(
        &self,
        a: &Value<'m>,
        b: &Value<'m>,
        dtype: DType,
    ) -> Option<(PyNumber, PyNumber)> {
        let number = |v: &Value<'m>| match v {
            Value::Known(known) => constant::convert(known.number, dtype),
            Value::Const(c) => {
                let known = self.typed(c).ok()?;
                constant::convert(known.number, dtype)
            }
            _ => None,
        };
        Some((number(a)?.number, number(b)?.number))
    }

    fn fold(&self, op: Operator, a: &Value<'m>, b: &Value<'m>, dtype: DType) -> Option<Value<'m>> {
        let (x, y) = self.known_pair(a, b, dtype)?;
        constant::known_binary(op, dtype, x, y).map(Value::Known)
    }

    fn arithmetic(&mut self, op: Operator, a: &Value<'m>, b: &Value<'m>) -> Res<Value<'m>> {
        let rules = Rules::default();
        let dtype = self.common_dtype(a, b, rules)?;
        if let Some(folded) = self.fold(op, a, b, dtype) {
            return Ok(folded);
        }
        if dtype.is_fp8() {
            let message = format!("there is no arithmetic on {dtype}");
            let d = self.error(Code::Type, message);
            return Err(d.help("cast to float16 or float32 first").into());
        }
        let p = self.pair(a, b, rules)?;
        if self.sanitize_overflow && dtype.is_int() && (8..64).contains(&dtype.bits()) {
            self.assert_no_overflow(op, p, dtype)?;
        }
        let (x, y, b) = (p.a, p.b, &mut self.b);
        let value = match (op, dtype) {
            // A truth value is an integer of one bit.
            (Operator::Mult, DType::Int1) => b.and(x, y),
            (_, DType::Int1) => b.xor(x, y),
            (Operator::Add, d) if d.is_float() => b.fadd(x, y),
            (Operator::Sub, d) if d.is_float() => b.fsub(x, y),
            (_, d) if d.is_float() => b.fmul(x, y),
            (Operator::Add, _) => b.iadd(x, y),
            (Operator::Sub, _) => b.isub(x, y),
            _ => b.imul(x, y),
        };
        Ok(self.block(value, p.ty))
    }

    /// Asserts that the exact result, computed in 64 bits, is one of the type.
    fn assert_no_overflow(&mut self, op: Operator, p: Pair, dtype: DType) -> Res<()> {
        let wide = Ty::Num(DType::Int64);
        let mut widen = |value| {
            let t = Tensor {
                value,
                ty: p.ty,
                shape: p.shape,
            };
            self.cast(t, wide, Rounding::Nearest).map(|t| t.value)
        };
        let (x, y) = (widen(p.a)?, widen(p.b)?);
        let (name, exact) = match op {
            Operator::Add => ("addition", self.b.iadd(x, y)),
            Operator::Sub => ("subtraction", self.b.isub(x, y)),
            _ => ("multiplication", self.b.imul(x, y)),
        };
        let exact = Value::Tensor(Tensor {
            value: exact,
            ty: wide,
            shape: p.shape,
        });
        let (low, high) = dtype.int_range();
        let above = self.compare(CmpOp::GtE, &exact, &Value::int(low))?;
        let below = self.compare(CmpOp::LtE, &exact, &Value::int(high))?;
        let fits = self.binary(Operator::BitAnd, &above, &below)?;
        let fits = self.tensor(&fits)?;
        self.device_assertion(fits, &format!("{} overflow in {name}", dtype.name()))
    }

    fn true_division(&mut self, a: &Value<'m>, b: &Value<'m>) -> Res<Value<'m>> {
        let rules = Rules {
            division: true,
            ..Rules::default()
        };
        let mut dtype = self.common_dtype(a, b, rules)?;
        if dtype.is_int() {
            dtype = DType::Float32;
        }
        if let Some(folded) = self.fold(Operator::Div, a, b, dtype) {
            return Ok(folded);
        }
        let ((_, sa), (_, sb)) = (self.type_of(a)?, self.type_of(b)?);
        let shape = self.common_shape(sa, sb)?;
        let x = self.materialize(a, dtype, shape)?;
        let y = self.materialize(b, dtype, shape)?;
        self.divide(x, y)
    }

    /// The quotient of two floats of one type and shape.
    pub(crate) fn divide(&mut self, x: Tensor, y: Tensor) -> Res<Value<'m>> {
        let value = match x.ty {
            Ty::Num(DType::Float32) => self.b.fdiv(x.value, y.value),
            Ty::Num(DType::Float64) => self.b.fdiv_rn(x.value, y.value),
            _ => {
                let d = self.wrong_type("float32 or float64", x);
                return Err(d);
            }
        };
        Ok(self.block(value, x.ty))
    }

    fn int_division(&mut self, op: Operator, a: &Value<'m>, b: &Value<'m>) -> Res<Value<'m>> {
        let rules = Rules {
            division: true,
            ..Rules::default()
        };
        let dtype = self.common_dtype(a, b, rules)?;
        if dtype.is_float() && op != Operator::Mod {
            let symbol = constant::symbol(op);
            let message = format!("`{symbol}` is for integers, found {dtype}");
            let d = self.error(Code::Type, message);
            return Err(d.help("use tl.floor(x / y)").into());
        }
        if dtype.is_fp8() {
            let message = format!("there is no arithmetic on {dtype}");
            let d = self.error(Code::Type, message);
            return Err(d.help("cast to float16 or float32 first").into());
        }
        if let Some(folded) = self.fold(op, a, b, dtype) {
            return Ok(folded);
        }
        if dtype == DType::Int1 {
            // The only divisor is one.
            let p = self.pair(a, b, rules)?;
            return match op {
                Operator::FloorDiv => Ok(self.block(p.a, p.ty)),
                _ => self.zero(p.ty, p.shape).map(Value::Tensor),
            };
        }
        let p = self.pair(a, b, rules)?;
        let (x, y, b) = (p.a, p.b, &mut self.b);
        let value = match (op, dtype.is_signed()) {
            // With the sign of the dividend, as C has it.
            _ if dtype.is_float() => b.frem(x, y),
            (Operator::FloorDiv, true) => b.sdiv(x, y),
            (Operator::FloorDiv, false) => b.udiv(x, y),
            (_, true) => b.srem(x, y),
            (_, false) => b.urem(x, y),
        };
        Ok(self.block(value, p.ty))
    }

    fn bitwise(&mut self, op: Operator, a: &Value<'m>, b: &Value<'m>) -> Res<Value<'m>> {
        let ((ta, sa), (tb, sb)) = (self.type_of(a)?, self.type_of(b)?);
        let (Some(da), Some(db)) = (ta.dtype(), tb.dtype()) else {
            return Err(Stop::Reported);
        };
        if !da.is_int() || !db.is_int() {
            let symbol = constant::symbol(op);
            let message =
                format!("`{symbol}` is for integers and truth values, found {ta} and {tb}");
            return Err(self.error(Code::Type, message).into());
        }
        let weak = |v: &Value<'m>| matches!(v, Value::Const(_));
        let dtype = if weak(a) == weak(b) {
            promote_ints(da, db)
        } else {
            self.common_dtype(a, b, Rules::default())?
        };
        if let Some(folded) = self.fold(op, a, b, dtype) {
            return Ok(folded);
        }
        let shape = self.common_shape(sa, sb)?;
        let x = self.materialize(a, dtype, shape)?.value;
        let y = self.materialize(b, dtype, shape)?.value;
        if dtype == DType::Int1 && matches!(op, Operator::LShift | Operator::RShift) {
            // A shift by the width gives zero.
            let kept = self.constant(Known::boolean(true), shape)?;
            let kept = self.b.xor(y, kept.value);
            let value = self.b.and(x, kept);
            return Ok(self.block(value, Ty::Num(dtype)));
        }
        let value = match op {
            Operator::BitAnd => self.b.and(x, y),
            Operator::BitOr => self.b.or(x, y),
            Operator::BitXor => self.b.xor(x, y),
            Operator::LShift => self.b.shl(x, y),
            // The sign of the left operand as it was written decides.
            _ if da.is_signed() => self.b.sshr(x, y),
            _ => self.b.ushr(x, y),
        };
        Ok(self.block(value, Ty::Num(dtype)))
    }

    fn pointer_arithmetic(&mut self, op: Operator, a: &Value<'m>, b: &Value<'m>) -> Res<Value<'m>> {
        let ((ta, sa), (tb, sb)) = (self.type_of(a)?, self.type_of(b)?);
        let (pointer, offset, offset_ty) = match (op, ta.is_ptr(), tb.is_ptr()) {
            (Operator::Add, true, false) | (Operator::Sub, true, false) => (a, b, tb),
            (Operator::Add, false, true) => (b, a, ta),
            _ => {
                let symbol = constant::symbol(op);
                let message = format!("{ta} and {tb} have no `{symbol}`");
                let d = self.error(Code::Type, message);
                return Err(d
                    .help("a pointer plus or minus an integer is a pointer")
                    .into());
            }
        };
        let Some(dtype) = offset_ty.dtype().filter(|d| d.is_int()) else {
            let message = format!("a pointer is moved by integers, found {offset_ty}");
            let d = self.error(Code::Type, message);
            return Err(d.help("cast the offset with `.to(tl.int32)`").into());
        };
        // Unsigned offsets below 64 bits are not negative.
        let wide = if dtype.bits() == 64 || !dtype.is_signed() && dtype.bits() == 32 {
            DType::Int64
        } else {
            DType::Int32
        };
        let shape = self.common_shape(sa, sb)?;
        let pointer = self.tensor(pointer)?;
        let pointer = self.broadcast_to(pointer, shape)?;
        let offset = match offset {
            Value::Tensor(t) => {
                let t = self.cast(*t, Ty::Num(wide), Rounding::Nearest)?;
                self.broadcast_to(t, shape)?
            }
            number => self.materialize(number, wide, shape)?,
        };
        let offset = if op == Operator::Sub {
            let zero = self.zero(offset.ty, shape)?;
            self.b.isub(zero.value, offset.value)
        } else {
            offset.value
        };
        let moved = self.b.addptr(pointer.value, offset);
        Ok(self.block(moved, pointer.ty))
    }

    /// A unary operator; `not` is the caller's.
    pub(crate) fn unary(&mut self, op: UnaryOp, value: &Value<'m>) -> Res<Value<'m>> {
        match value {
            Value::Const(c) => match constant::unary(op, c) {
                Ok(c) => return Ok(Value::Const(c)),
                Err(message) => return Err(self.error(Code::Arithmetic, message).into()),
            },
            Value::Known(known) if op == UnaryOp::USub => {
                let number = match known.number {
                    PyNumber::Int(n) => PyNumber::Int(known.dtype.wrap(-n)),
                    PyNumber::Float(x) => PyNumber::Float(-x),
                };
                return Ok(Value::Known(Known { number, ..*known }));
            }
            _ => {}
        }
        let t = self.tensor(value)?;
        let Some(dtype) = t.ty.dtype() else {
            return Err(self.wrong_type("a number", t));
        };
        let value = match op {
            // Of one bit, each number is its own opposite.
            UnaryOp::USub if dtype == DType::Int1 => return Ok(Value::Tensor(t)),
            UnaryOp::UAdd => return Ok(Value::Tensor(t)),
            // The IR holds its bits, of which the top one is the sign.
            UnaryOp::USub if dtype == DType::Float8e4b15 => {
                let tile = self.tile_type(t.ty, t.shape)?;
                let sign = self.b.const_bits(0x80, tile);
                self.b.xor(t.value, sign)
            }
            UnaryOp::USub if dtype.is_float() => self.b.fneg(t.value),
            UnaryOp::USub => {
                let zero = self.zero(t.ty, t.shape)?;
                self.b.isub(zero.value, t.value)
            }
            UnaryOp::Invert if dtype.is_int() => {
                let ones = Known {
                    dtype,
                    number: PyNumber::Int(dtype.wrap(-1)),
                };
                let ones = self.constant(ones, t.shape)?;
                self.b.xor(t.value, ones.value)
            }
            _ => {
                let message = format!("there is no `{}` of {dtype}", op.as_str());
                return Err(self.error(Code::Type, message).into());
            }
        };
        Ok(self.block(value, t.ty))
    }

    /// A comparison of numbers or pointers. Numbers of the source text count with their own type.
    pub(crate) fn compare(&mut self, op: CmpOp, a: &Value<'m>, b: &Value<'m>) -> Res<Value<'m>> {
        if let (Value::Const(x), Value::Const(y)) = (a, b) {
            return match constant::compare(op, x, y) {
                Some(result) => Ok(Value::bool(result)),
                None => {
                    let (x, y) = (a.describe(), b.describe());
                    let message = format!("{x} and {y} have no order");
                    Err(self.error(Code::Type, message).into())
                }
            };
        }
        let rules = Rules {
            strong: true,
            pointers: true,
            ..Rules::default()
        };
        let ((ta, _), (tb, _)) = (self.type_of(a)?, self.type_of(b)?);
        if !ta.is_ptr() && !tb.is_ptr() {
            let dtype = self.common_dtype(a, b, rules)?;
            if let Some((x, y)) = self.known_pair(a, b, dtype)
                && let Some(result) = constant::known_compare(op, x, y)
            {
                return Ok(Value::Known(Known::boolean(result)));
            }
        }
        self.check_addresses(op, [(a, ta), (b, tb)])?;
        let mut p = self.pair(a, b, rules)?;
        if p.ty == Ty::Num(DType::Float8e4b15) {
            // Every number of it is one of f16.
            let wide = Ty::Num(DType::Float16);
            let mut widen = |value| {
                let t = Tensor {
                    value,
                    ty: p.ty,
                    shape: p.shape,
                };
                self.cast(t, wide, Rounding::Nearest).map(|t| t.value)
            };
            (p.a, p.b) = (widen(p.a)?, widen(p.b)?);
            p.ty = wide;
        }
        let value = match p.ty {
            Ty::Num(dtype) if dtype.is_float() => {
                let pred = match op {
                    CmpOp::Eq => FloatPred::Oeq,
                    CmpOp::NotEq => FloatPred::Une,
                    CmpOp::Lt => FloatPred::Olt,
                    CmpOp::LtE => FloatPred::Ole,
                    CmpOp::Gt => FloatPred::Ogt,
                    _ => FloatPred::Oge,
                };
                self.b.fcmp(p.a, p.b, pred)
            }
            ty => {
                let signed = ty.dtype().is_some_and(DType::is_signed);
                let pred = match (op, signed) {
                    (CmpOp::Eq, _) => IntPred::Eq,
                    (CmpOp::NotEq, _) => IntPred::Ne,
                    (CmpOp::Lt, true) => IntPred::Slt,
                    (CmpOp::Lt, false) => IntPred::Ult,
                    (CmpOp::LtE, true) => IntPred::Sle,
                    (CmpOp::LtE, false) => IntPred::Ule,
                    (CmpOp::Gt, true) => IntPred::Sgt,
                    (CmpOp::Gt, false) => IntPred::Ugt,
                    (_, true) => IntPred::Sge,
                    (_, false) => IntPred::Uge,
                };
                self.b.icmp(p.a, p.b, pred)
            }
        };
        Ok(self.block(value, Ty::Num(DType::Int1)))
    }

    /// An error for a pointer that is compared with a number, as if it were one itself. Whether it is null may be asked.
    fn check_addresses(&self, op: CmpOp, [a, b]: [(&Value<'m>, Ty); 2]) -> Res<()> {
        let (number, pointer, ty) = match (a, b) {
            ((_, x), (_, y)) if x.is_ptr() == y.is_ptr() => return Ok(()),
            ((_, x), (number, _)) if x.is_ptr() => (number, x, b.1),
            ((number, _), (_, y)) => (number, y, a.1),
        };
        let asks_for_null = matches!(op, CmpOp::Eq | CmpOp::NotEq);
        if asks_for_null && matches!(number, Value::Const(_)) {
            return Ok(());
        }
        let message = format!("`{}` compares {pointer} with {ty}", op.as_str());
        let help = "the pointer's type is that of an argument: give a number there, as in `i32` of the signature, \
                    or load what it points to; `.to(tl.int64)` makes a number of an address";
        Err(self.error(Code::Type, message).help(help).into())
    }

    /// `tl.minimum` and `tl.maximum`. Numbers count with their own type, and a bfloat16 becomes f32.
    pub(crate) fn min_max(
        &mut self,
        max: bool,
        a: &Value<'m>,
        b: &Value<'m>,
        nan: NanRule,
    ) -> Res<Value<'m>> {
        // A bfloat16 becomes f32 before anything is compared.
        let wide = |mut x: TypedOperand| {
            if x.dtype == DType::Bfloat16 {
                x.dtype = DType::Float32;
            }
            x
        };
        let x = wide(self.operand(a, true)?.0);
        let y = wide(self.operand(b, true)?.0);
        let dtype = promote(x, y, false).map_err(|e| self.no_promotion(e, x, y))?;
        let ((_, sa), (_, sb)) = (self.type_of(a)?, self.type_of(b)?);
        if let Some((x, y)) = self.known_pair(a, b, dtype)
            && let (PyNumber::Int(x), PyNumber::Int(y)) = (x, y)
        {
            let number = PyNumber::Int(if max { x.max(y) } else { x.min(y) });
            return Ok(Value::Known(Known { dtype, number }));
        }
        let shape = self.common_shape(sa, sb)?;
        let (a, b) = (self.strong(a)?, self.strong(b)?);
        let x = self.materialize(&a, dtype, shape)?;
        let y = self.materialize(&b, dtype, shape)?;
        self.extreme(max, x, y, nan)
    }

    /// The smaller or larger of two values of one type and shape.
    pub(crate) fn extreme(
        &mut self,
        max: bool,
        x: Tensor,
        y: Tensor,
        nan: NanRule,
    ) -> Res<Value<'m>> {
        let (ty, a, b) = (x.ty, x.value, y.value);
        let value = match (ty, max) {
            (Ty::Num(DType::Int1), true) => self.b.or(a, b),
            (Ty::Num(DType::Int1), false) => self.b.and(a, b),
            (Ty::Num(d), _) if d.is_fp8() => return Err(self.wrong_type("a wider float", x)),
            (Ty::Num(d), true) if d.is_float() => self.b.fmax(a, b, nan),
            (Ty::Num(d), false) if d.is_float() => self.b.fmin(a, b, nan),
            (Ty::Num(d), true) if d.is_signed() => self.b.smax(a, b),
            (Ty::Num(d), false) if d.is_signed() => self.b.smin(a, b),
            (Ty::Num(_), true) => self.b.umax(a, b),
            (Ty::Num(_), false) => self.b.umin(a, b),
            (Ty::Ptr { .. }, _) => return Err(self.wrong_type("numbers", x)),
        };
        Ok(self.block(value, ty))
    }

    /// `tl.where`.
    pub(crate) fn select(
        &mut self,
        cond: &Value<'m>,
        a: &Value<'m>,
        b: &Value<'m>,
    ) -> Res<Value<'m>> {
        let cond = self.tensor(cond)?;
        let cond = self.cast(cond, Ty::Num(DType::Int1), Rounding::Nearest)?;
        let rules = Rules {
            pointers: true,
            ..Rules::default()
        };
        let ((ta, sa), (tb, sb)) = (self.type_of(a)?, self.type_of(b)?);
        let shape = self.common_shape(sa, sb)?;
        let shape = self.common_shape(cond.shape, shape)?;
        let (x, y, ty) = if ta.is_ptr() || tb.is_ptr() {
            let p = self.pair(a, b, rules)?;
            let with = |value| Tensor {
                value,
                ty: p.ty,
                shape: p.shape,
            };
            let x = self.broadcast_to(with(p.a), shape)?;
            let y = self.broadcast_to(with(p.b), shape)?;
            (x, y, p.ty)
        } else {
            let dtype = self.common_dtype(a, b, rules)?;
            let x = self.materialize(a, dtype, shape)?;
            let y = self.materialize(b, dtype, shape)?;
            (x, y, Ty::Num(dtype))
        };
        let cond = self.broadcast_to(cond, shape)?;
        let value = self.b.select(cond.value, x.value, y.value);
        Ok(self.block(value, ty))
    }

    /// A value as one truth value: a constant, or a scalar of the IR.
    pub(crate) fn condition(&mut self, value: &Value<'m>) -> Res<Result<bool, entities::Value>> {
        match value {
            Value::Const(c @ (Const::None | Const::Bool(_) | Const::Int(_))) => {
                Ok(Ok(constant::truth(c)))
            }
            Value::Const(c) => Ok(Ok(constant::truth(c))),
            Value::Known(known) => Ok(Ok(constant::truth(&known.to_const()))),
            Value::Tuple(t) => Ok(Ok(!t.items.is_empty())),
            Value::Member(_) => Ok(Ok(true)),
            // A block of one element is that element.
            Value::Tensor(t) if t.shape.elements() == 1 => {
                let t = self.cast(*t, Ty::Num(DType::Int1), Rounding::Nearest)?;
                Ok(Err(match t.shape.is_scalar() {
                    true => t.value,
                    false => {
                        let ty = self.tile_type(t.ty, Shape::SCALAR)?;
                        self.b.reshape(t.value, ty)
                    }
                }))
            }
            Value::Poison => Err(Stop::Reported),
            Value::Tensor(t) => {
                let found = show(t.ty, t.shape);
                let d = self.error(
                    Code::Condition,
                    format!("a block ({found}) is no condition"),
                );
                Err(d
                    .label("expected a scalar")
                    .help("use tl.where to choose element by element, or reduce with tl.max")
                    .into())
            }
            other => {
                let message = format!("{} is no condition", other.describe());
                Err(self.error(Code::Condition, message).into())
            }
        }
    }
}
