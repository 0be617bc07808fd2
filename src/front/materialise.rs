//! Values of the tile IR from values of the language: constants, casts, broadcasts.

use super::constant;
use super::diagnostic::Code;
use super::lower::{Lower, Res, Stop};
use super::names::{did_you_mean, meant_of};
use super::types::{DType, Ty, float_dtype, int_dtype, show};
use super::value::{Const, Known, PyNumber, Tensor, Value};
use crate::ir::attrs::{FloatPred, IntPred, Rounding};
use crate::ir::types::TileType;
use crate::linear_layout::shape::Shape;

/// How the message begins that something is no number.
pub(crate) const NO_NUMBER: &str = "expected a number or a block, found";

impl<'m> Lower<'m> {
    /// The IR's type; an error for formats that the IR lacks.
    pub(crate) fn tile_type(&self, ty: Ty, shape: Shape) -> Res<TileType> {
        // As in Triton such numbers are not even pointed to, so that no operation has to ask.
        let held = ty.pointee().or(ty.dtype());
        if held == Some(DType::Float8e4nv) && self.target.sm < 89 {
            let message = format!(
                "float8e4nv needs sm_89 or later, the target is {}",
                self.target
            );
            let d = self.error(Code::Type, message);
            let help = "use float8e5 there, or pass the bytes as uint8";
            return Err(d.help(help).into());
        }
        match ty.elem() {
            Some(elem) => Ok(TileType::block(elem, shape)),
            None => Err(self
                .error(
                    Code::NotYet,
                    format!("values of type {ty} are not supported yet"),
                )
                .help("float8e5 and float8e4nv are the 8-bit formats there are")
                .into()),
        }
    }

    /// A shape from extents.
    pub(crate) fn shape(&self, extents: &[i128]) -> Res<Shape> {
        let extents: Vec<u64> = extents
            .iter()
            .map(|&e| {
                u64::try_from(e).map_err(|_| {
                    Stop::from(
                        self.error(Code::Shape, format!("a block cannot have the extent {e}")),
                    )
                })
            })
            .collect::<Res<_>>()?;
        Shape::new(&extents).map_err(|e| {
            let help = match extents.iter().all(|extent| extent.is_power_of_two()) {
                true => "let each program compute a smaller block",
                false => "extents are powers of two; mask what is too much",
            };
            self.error(Code::Shape, e.to_string()).help(help).into()
        })
    }

    /// The typed form of a number of the source text.
    pub(crate) fn typed(&self, c: &Const) -> Res<Known> {
        let known = |dtype, number| Known { dtype, number };
        match c {
            Const::Bool(b) => Ok(Known::boolean(*b)),
            Const::Int(n) => match int_dtype(*n) {
                Some(dtype) => Ok(known(dtype, PyNumber::Int(*n))),
                None => Err(self
                    .error(
                        Code::Value,
                        format!("the number {n} does not fit into 64 bits"),
                    )
                    .into()),
            },
            Const::Float(x) => {
                let dtype = float_dtype(*x);
                Ok(constant::convert(PyNumber::Float(*x), dtype)
                    .unwrap_or(known(dtype, PyNumber::Float(*x))))
            }
            Const::None | Const::Str(_) => {
                let what = Value::Const(c.clone()).describe();
                Err(self
                    .error(Code::Type, format!("expected a number, found {what}"))
                    .into())
            }
        }
    }

    /// A number of the source text as a tensor of its own type: 0.1 is the nearest float32, also where it becomes a float64.
    pub(crate) fn strong(&self, value: &Value<'m>) -> Res<Value<'m>> {
        match value {
            Value::Const(c @ (Const::Bool(_) | Const::Int(_) | Const::Float(_))) => {
                self.typed(c).map(Value::Known)
            }
            other => Ok(other.clone()),
        }
    }

    /// A constant of the IR.
    pub(crate) fn constant(&mut self, known: Known, shape: Shape) -> Res<Tensor> {
        let ty = Ty::Num(known.dtype);
        let tile = self.tile_type(ty, shape)?;
        let value = self
            .b
            .const_bits(constant::bits(known.dtype, known.number), tile);
        Ok(Tensor { value, ty, shape })
    }

    /// Zero of any type, pointers included.
    pub(crate) fn zero(&mut self, ty: Ty, shape: Shape) -> Res<Tensor> {
        let tile = self.tile_type(ty, shape)?;
        let value = self.b.const_bits(0, tile);
        Ok(Tensor { value, ty, shape })
    }

    /// The error of a value that is neither.
    fn no_number(&self, value: &Value<'m>) -> Stop {
        let message = format!("{NO_NUMBER} {}", value.describe());
        let d = self.error(Code::Type, message);
        match (value, meant_of(value)) {
            (_, Some(meant)) => d.help(did_you_mean(meant)).into(),
            (Value::Type(_), None) => d.help(super::library::IS_TYPE).into(),
            _ => d.into(),
        }
    }

    /// A number or tensor as a tensor.
    pub(crate) fn tensor(&mut self, value: &Value<'m>) -> Res<Tensor> {
        match value {
            Value::Tensor(t) => Ok(*t),
            Value::Known(known) => self.constant(*known, Shape::SCALAR),
            Value::Const(c @ (Const::Bool(_) | Const::Int(_) | Const::Float(_))) => {
                let known = self.typed(c)?;
                self.constant(known, Shape::SCALAR)
            }
            Value::Poison => Err(Stop::Reported),
            other => Err(self.no_number(other)),
        }
    }

    /// A number or tensor with its type and shape, without an instruction for it.
    pub(crate) fn type_of(&self, value: &Value<'m>) -> Res<(Ty, Shape)> {
        match value {
            Value::Tensor(t) => Ok((t.ty, t.shape)),
            Value::Known(known) => Ok((Ty::Num(known.dtype), Shape::SCALAR)),
            Value::Const(c @ (Const::Bool(_) | Const::Int(_) | Const::Float(_))) => {
                Ok((Ty::Num(self.typed(c)?.dtype), Shape::SCALAR))
            }
            Value::Poison => Err(Stop::Reported),
            other => Err(self.no_number(other)),
        }
    }

    /// A number or tensor cast to a number format and brought to a shape.
    pub(crate) fn materialize(
        &mut self,
        value: &Value<'m>,
        dtype: DType,
        shape: Shape,
    ) -> Res<Tensor> {
        let number = match value {
            Value::Known(known) => Some(known.number),
            Value::Const(c @ (Const::Bool(_) | Const::Int(_) | Const::Float(_))) => match c {
                Const::Float(x) => Some(PyNumber::Float(*x)),
                c => constant::as_int(c).map(PyNumber::Int),
            },
            _ => None,
        };
        if let Some(known) = number.and_then(|n| constant::convert(n, dtype)) {
            return self.constant(known, shape);
        }
        let tensor = self.tensor(value)?;
        let tensor = self.cast(tensor, Ty::Num(dtype), Rounding::Nearest)?;
        self.broadcast_to(tensor, shape)
    }

    /// The shape that two operands are brought to: ranks filled up with ones on the left, extents equal or one.
    pub(crate) fn common_shape(&self, a: Shape, b: Shape) -> Res<Shape> {
        if a == b {
            return Ok(a);
        }
        let rank = a.rank().max(b.rank());
        let exponent = |s: Shape, dim: usize| {
            let missing = rank - s.rank();
            if dim < missing {
                0
            } else {
                s.log2()[dim - missing]
            }
        };
        let mut log2 = Vec::with_capacity(rank);
        for dim in 0..rank {
            match (exponent(a, dim), exponent(b, dim)) {
                (x, y) if x == y => log2.push(x),
                (0, x) | (x, 0) => log2.push(x),
                _ => {
                    let message = format!("shapes {a:?} and {b:?} do not go together");
                    let d = self.error(Code::Shape, message);
                    let label = format!("extents of dimension {dim} differ and neither is 1");
                    return Err(d
                        .label(label)
                        .help("add dimensions with [:, None] or [None, :]")
                        .into());
                }
            }
        }
        Shape::from_log2(&log2).map_err(|e| self.error(Code::Shape, e.to_string()).into())
    }

    /// A scalar or block repeated to a shape it broadcasts to.
    pub(crate) fn broadcast_to(&mut self, t: Tensor, shape: Shape) -> Res<Tensor> {
        if t.shape == shape {
            return Ok(t);
        }
        if self.common_shape(t.shape, shape)? != shape {
            let message = format!(
                "a block of shape {:?} cannot be brought to {shape:?}",
                t.shape
            );
            return Err(self.error(Code::Shape, message).into());
        }
        let mut value = t.value;
        if t.shape.is_scalar() {
            value = self.b.splat(value, self.tile_type(t.ty, shape)?);
        } else {
            for _ in t.shape.rank()..shape.rank() {
                value = self.b.expand_dims(value, 0);
            }
            if self.b.ty(value).shape != shape {
                value = self.b.broadcast(value, self.tile_type(t.ty, shape)?);
            }
        }
        Ok(Tensor {
            value,
            ty: t.ty,
            shape,
        })
    }

    /// A value converted as `x.to(ty)` does.
    pub(crate) fn cast(&mut self, t: Tensor, ty: Ty, rounding: Rounding) -> Res<Tensor> {
        if t.ty == ty {
            return Ok(t);
        }
        let tile = self.tile_type(ty, t.shape)?;
        let with = |value| Tensor {
            value,
            ty,
            shape: t.shape,
        };
        // Types of one format differ in sign or constness alone, but for the one that the IR holds as bytes.
        let as_bytes = [t.ty, ty].contains(&Ty::Num(DType::Float8e4b15));
        if self.b.ty(t.value) == tile && !as_bytes {
            return Ok(with(t.value));
        }
        match (t.ty, ty) {
            (Ty::Num(from), Ty::Num(to)) => self.cast_number(t, from, to, rounding),
            (Ty::Ptr { .. }, Ty::Num(DType::Int1)) => {
                let address = self.cast(t, Ty::Num(DType::Int64), rounding)?;
                self.cast(address, ty, rounding)
            }
            (Ty::Ptr { .. }, Ty::Ptr { .. }) => Ok(with(self.b.ptr_cast(t.value, tile))),
            (Ty::Ptr { .. }, Ty::Num(to)) | (Ty::Num(to), Ty::Ptr { .. })
                if to.is_int() && to.bits() == 64 =>
            {
                Ok(with(self.b.ptr_cast(t.value, tile)))
            }
            (from, to) => {
                let message = format!("{from} cannot be cast to {to}");
                Err(self
                    .error(Code::Type, message)
                    .help("between pointers and numbers, only 64-bit integers are cast")
                    .into())
            }
        }
    }

    fn cast_number(
        &mut self,
        t: Tensor,
        from: DType,
        to: DType,
        rounding: Rounding,
    ) -> Res<Tensor> {
        if from == DType::Float8e4b15 {
            return self.widen_e4b15(t, to);
        }
        if to == DType::Float8e4b15 {
            return self.narrow_e4b15(t);
        }
        let ty = Ty::Num(to);
        let tile = self.tile_type(ty, t.shape)?;
        let with = |value| Tensor {
            value,
            ty,
            shape: t.shape,
        };
        let x = t.value;
        let b = &mut self.b;
        // Between 16-bit floats and everything but f32 the way is through f32, as it is from the 8-bit ones. It may not be
        // from f64 to 8 bits, where it would round twice; Triton has no such cast for NVIDIA.
        let narrow = from.is_float() && from.bits() <= 16;
        let is_wide = matches!(from, DType::Float32 | DType::Float64);
        if narrow && to != DType::Float32 || to.is_fp8() && !is_wide {
            let wide = self.cast_number(t, from, DType::Float32, rounding)?;
            return self.cast_number(wide, DType::Float32, to, rounding);
        }
        Ok(match (from.is_float(), to.is_float()) {
            (true, true) if from.bits() < to.bits() => with(b.fpext(x, tile)),
            (true, true) => with(b.fptrunc(x, rounding, tile)),
            (_, false) if to == DType::Int1 => self.is_nonzero(t)?,
            (false, false) if from.bits() > to.bits() => with(b.itrunc(x, tile)),
            (false, false) if from.is_signed() => with(b.sext(x, tile)),
            (false, false) => with(b.zext(x, tile)),
            (true, false) if to.is_signed() => with(b.fptosi(x, tile)),
            (true, false) => with(b.fptoui(x, tile)),
            (false, true) if from.is_signed() => with(b.sitofp(x, tile)),
            (false, true) => with(b.uitofp(x, tile)),
        })
    }

    /// The truth of each element.
    pub(crate) fn cast_to_bool(&mut self, t: Tensor) -> Res<Tensor> {
        self.cast(t, Ty::Num(DType::Int1), Rounding::Nearest)
    }

    /// Whether each element differs from zero.
    pub(crate) fn is_nonzero(&mut self, t: Tensor) -> Res<Tensor> {
        let zero = self.zero(t.ty, t.shape)?;
        let value = match t.ty {
            Ty::Num(dtype) if dtype.is_float() => self.b.fcmp(t.value, zero.value, FloatPred::Une),
            _ => self.b.icmp(t.value, zero.value, IntPred::Ne),
        };
        Ok(Tensor {
            value,
            ty: Ty::Num(DType::Int1),
            shape: t.shape,
        })
    }

    /// The same bits as another type of equal width.
    pub(crate) fn bitcast(&mut self, t: Tensor, ty: Ty) -> Res<Tensor> {
        if t.ty.is_ptr() || ty.is_ptr() {
            return self.cast(t, ty, Rounding::Nearest);
        }
        if t.ty.bits() != ty.bits() {
            let (from, to) = (t.ty.bits(), ty.bits());
            let message = format!("{} has {from} bits, {ty} has {to}", t.ty);
            return Err(self
                .error(Code::Type, message)
                .help("a bitcast is between types of equal width")
                .into());
        }
        let tile = self.tile_type(ty, t.shape)?;
        let value = if self.b.ty(t.value) == tile {
            t.value
        } else {
            self.b.bitcast(t.value, tile)
        };
        Ok(Tensor {
            value,
            ty,
            shape: t.shape,
        })
    }

    /// A tensor as a value of the language.
    pub(crate) fn block(&self, value: crate::ir::entities::Value, ty: Ty) -> Value<'m> {
        let shape = self.b.ty(value).shape;
        Value::Tensor(Tensor { value, ty, shape })
    }

    /// The error for an operand of a wrong type.
    pub(crate) fn wrong_type(&self, expected: &str, t: Tensor) -> Stop {
        let found = show(t.ty, t.shape);
        self.error(Code::Type, format!("expected {expected}, found {found}"))
            .into()
    }
}
