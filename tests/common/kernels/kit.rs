//! What the kernels have in common: a thin layer over the builder.

use tilelift::ir::attrs::{IntPred, Rounding};
use tilelift::ir::builder::TileBuilder;
use tilelift::ir::dfg::ValueList;
use tilelift::ir::entities::Value;
use tilelift::ir::function::TileFunction;
use tilelift::ir::types::{Elem, Scalar, TileType};
use tilelift::linear_layout::shape::Shape;

use super::Config;

pub(super) fn shape(extents: &[u64]) -> Shape {
    Shape::new(extents).expect("block sizes are powers of two")
}

/// Builds a kernel whose body is what `body` appends.
pub(super) fn kernel(name: String, warps: u32, body: impl FnOnce(&mut Kit<'_>)) -> TileFunction {
    let mut b = TileBuilder::new(name, warps);
    body(&mut Kit { b: &mut b });
    b.ret();
    match b.finish() {
        Ok(func) => func,
        Err(errors) => panic!("{errors:#?}"),
    }
}

/// The builder with helpers.
pub(super) struct Kit<'b> {
    pub(super) b: &'b mut TileBuilder,
}

impl Kit<'_> {
    /// A parameter that points to data aligned to 16 bytes.
    pub(super) fn pointer(&mut self, name: &str, pointee: Scalar) -> Value {
        let ty = TileType::scalar(Elem::global(pointee));
        self.b.param_divisible(name, ty, 16)
    }

    pub(super) fn i32_param(&mut self, name: &str) -> Value {
        self.b.param(name, TileType::scalar(Elem::I32))
    }

    /// A size or stride with the promise of the configuration.
    pub(super) fn size_param(&mut self, name: &str, config: Config) -> Value {
        let ty = TileType::scalar(Elem::I32);
        self.b.param_divisible(name, ty, config.divisible)
    }

    pub(super) fn f32_param(&mut self, name: &str) -> Value {
        self.b.param(name, TileType::scalar(Elem::F32))
    }

    /// A scalar constant.
    pub(super) fn int(&mut self, n: i32) -> Value {
        self.b.i32(n, Shape::SCALAR)
    }

    pub(super) fn shape_of(&mut self, x: Value) -> Shape {
        self.b.ty(x).shape
    }

    /// `0, 1, ..`.
    pub(super) fn range(&mut self, count: u64) -> Value {
        self.b
            .arange(0, TileType::block(Elem::I32, shape(&[count])))
    }

    /// `start, start + 1, ..` for a scalar `start`.
    pub(super) fn range_from(&mut self, start: Value, count: u64) -> Value {
        let range = self.range(count);
        let start = self.b.to_shape(start, shape(&[count]));
        self.b.iadd(start, range)
    }

    /// The indices of the block that belongs to this program along an axis of the grid.
    pub(super) fn own_range(&mut self, axis: u8, count: u64) -> Value {
        let pid = self.b.program_id(axis);
        let count_value = self.int(count as i32);
        let start = self.b.imul(pid, count_value);
        self.range_from(start, count)
    }

    /// Whether each element is below a scalar.
    pub(super) fn below(&mut self, x: Value, bound: Value) -> Value {
        let bound = self.spread(bound, x);
        self.b.icmp(x, bound, IntPred::Slt)
    }

    /// Addresses of the elements `offsets` from a scalar pointer.
    pub(super) fn at(&mut self, pointer: Value, offsets: Value) -> Value {
        let pointers = self.spread(pointer, offsets);
        self.b.addptr(pointers, offsets)
    }

    /// The scalar pointer moved by `row * stride` elements.
    pub(super) fn row(&mut self, pointer: Value, row: Value, stride: Value) -> Value {
        let offset = self.b.imul(row, stride);
        self.b.addptr(pointer, offset)
    }

    /// A block of rank 1 as the column (`axis` 1) or the row (`axis` 0) of a matrix, repeated.
    pub(super) fn repeat(&mut self, x: Value, axis: u8, extents: Shape) -> Value {
        let x = self.b.expand_dims(x, axis);
        self.b.to_shape(x, extents)
    }

    /// Offsets of a matrix block: row numbers times a scalar plus column numbers times another.
    pub(super) fn matrix(&mut self, rows: (Value, Value), cols: (Value, Value)) -> Value {
        let extents = self.outer_shape(rows.0, cols.0);
        let mut part = |(x, stride): (Value, Value), axis| {
            let stride = self.spread(stride, x);
            let scaled = self.b.imul(x, stride);
            self.repeat(scaled, axis, extents)
        };
        let (down, across) = (part(rows, 1), part(cols, 0));
        self.b.iadd(down, across)
    }

    /// The mask of a matrix block from those of its rows and columns.
    pub(super) fn matrix_mask(&mut self, rows: Value, cols: Value) -> Value {
        let extents = self.outer_shape(rows, cols);
        let rows = self.repeat(rows, 1, extents);
        let cols = self.repeat(cols, 0, extents);
        self.b.and(rows, cols)
    }

    fn outer_shape(&mut self, rows: Value, cols: Value) -> Shape {
        let (m, n) = (self.shape_of(rows), self.shape_of(cols));
        shape(&[m.extent(0), n.extent(0)])
    }

    /// Loads and widens to f32; 0 where the mask is off.
    pub(super) fn load_f32(&mut self, pointers: Value, mask: Value) -> Value {
        let x = self.b.load(pointers, Some(mask), None);
        self.widen(x)
    }

    /// Loads and widens to f32; negative infinity where the mask is off.
    pub(super) fn load_f32_or_minus_infinity(&mut self, pointers: Value, mask: Value) -> Value {
        let ty = self.b.ty(pointers);
        let scalar = ty.elem.pointee().expect("the operand is a pointer");
        let bits = match scalar {
            Scalar::F16 => 0xfc00,
            Scalar::Bf16 => 0xff80,
            _ => u64::from(f32::NEG_INFINITY.to_bits()),
        };
        let ty = TileType::block(Elem::Num(scalar), ty.shape);
        let other = self.b.const_bits(bits, ty);
        let x = self.b.load(pointers, Some(mask), Some(other));
        self.widen(x)
    }

    fn widen(&mut self, x: Value) -> Value {
        let ty = self.b.ty(x);
        if ty.elem == Elem::F32 {
            x
        } else {
            self.b.fpext(x, TileType::block(Elem::F32, ty.shape))
        }
    }

    /// Narrows from f32 where memory is narrower, and stores.
    pub(super) fn store_f32(&mut self, pointers: Value, x: Value, mask: Value) {
        let ty = self.b.ty(pointers);
        let scalar = ty.elem.pointee().expect("the operand is a pointer");
        let x = if scalar == Scalar::F32 {
            x
        } else {
            let narrow = TileType::block(Elem::Num(scalar), ty.shape);
            self.b.fptrunc(x, Rounding::Nearest, narrow)
        };
        self.b.store(pointers, x, Some(mask));
    }

    /// An f32 constant of the shape of `like`.
    pub(super) fn constant(&mut self, number: f32, like: Value) -> Value {
        let extents = self.shape_of(like);
        self.b.f32(number, extents)
    }

    /// A scalar as a block of the shape of `like`.
    pub(super) fn spread(&mut self, scalar: Value, like: Value) -> Value {
        let extents = self.shape_of(like);
        self.b.to_shape(scalar, extents)
    }

    /// The sum along an axis, of floats or of integers.
    pub(super) fn sum(&mut self, x: Value, axis: u8) -> Value {
        let is_float = self.b.ty(x).elem.is_float();
        self.b.reduce_one(
            x,
            axis,
            |b, l, r| {
                if is_float { b.fadd(l, r) } else { b.iadd(l, r) }
            },
        )
    }

    /// The sum of a block of rank 1 over `n`, an f32.
    pub(super) fn mean(&mut self, x: Value, n: Value) -> Value {
        let sum = self.sum(x, 0);
        self.b.fdiv(sum, n)
    }

    pub(super) fn float(&mut self, n: Value) -> Value {
        self.b.sitofp(n, TileType::scalar(Elem::F32))
    }

    /// `x` where the mask is on, else 0.
    pub(super) fn or_zero(&mut self, mask: Value, x: Value) -> Value {
        let zero = self.constant(0.0, x);
        self.b.select(mask, x, zero)
    }

    /// A loop over `lo, lo + step, .. < hi` that carries values.
    pub(super) fn for_loop(
        &mut self,
        [lo, hi, step]: [Value; 3],
        inits: &[Value],
        body: impl FnOnce(&mut Kit<'_>, Value, &[Value]) -> Vec<Value>,
    ) -> Vec<Value> {
        let results = self.b.for_loop(lo, hi, step, inits, |b, iv, carried| {
            ValueList::from_vec(body(&mut Kit { b }, iv, carried))
        });
        results.to_vec()
    }
}
