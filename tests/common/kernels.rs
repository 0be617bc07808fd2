//! Kernels made with the builder, parametrised by element type, block size and warps.

use tilelift::ir::attrs::{IntPred, NanRule, Rounding};
use tilelift::ir::builder::TileBuilder;
use tilelift::ir::dfg::ValueList;
use tilelift::ir::entities::Value;
use tilelift::ir::function::TileFunction;
use tilelift::ir::types::{Elem, Scalar, TileType};
use tilelift::linear::shape::Shape;

/// What a kernel is specialised for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Config {
    /// Element type of the data in memory; arithmetic on floats is in f32.
    pub(crate) scalar: Scalar,
    /// Elements of a block.
    pub(crate) block: u64,
    /// Warps of a program.
    pub(crate) warps: u32,
}

/// Two-dimensional blocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Config2 {
    /// Element type of the data in memory.
    pub(crate) scalar: Scalar,
    /// Extents of a block.
    pub(crate) block: [u64; 2],
    /// Warps of a program.
    pub(crate) warps: u32,
}

fn shape(extents: &[u64]) -> Shape {
    Shape::new(extents).expect("block sizes are powers of two")
}

/// Helpers that keep the kernels short.
struct Kernel {
    b: TileBuilder,
}

impl Kernel {
    fn new(name: String, warps: u32) -> Kernel {
        Kernel {
            b: TileBuilder::new(name, warps),
        }
    }

    /// A parameter that points to data aligned to 16 bytes.
    fn pointer(&mut self, name: &str, pointee: Scalar) -> Value {
        let ty = TileType::scalar(Elem::global(pointee));
        self.b.param_divisible(name, ty, 16)
    }

    fn i32_param(&mut self, name: &str) -> Value {
        self.b.param(name, TileType::scalar(Elem::I32))
    }

    fn f32_param(&mut self, name: &str) -> Value {
        self.b.param(name, TileType::scalar(Elem::F32))
    }

    fn program(&mut self, axis: u8) -> Value {
        self.b.program_id(axis)
    }

    fn number(&mut self, n: i32) -> Value {
        self.b.i32(n, Shape::SCALAR)
    }

    /// `start + 0, start + 1, ..` for a scalar `start`.
    fn range_from(&mut self, start: Value, count: u64) -> Value {
        let range = self.range(count);
        let start = self.b.to_shape(start, shape(&[count]));
        self.b.iadd(start, range)
    }

    fn range(&mut self, count: u64) -> Value {
        self.b
            .arange(0, TileType::block(Elem::I32, shape(&[count])))
    }

    fn shape_of(&mut self, x: Value) -> Shape {
        self.b.ty(x).shape
    }

    /// Whether each element is below a scalar.
    fn below(&mut self, x: Value, bound: Value) -> Value {
        let extents = self.shape_of(x);
        let bound = self.b.to_shape(bound, extents);
        self.b.icmp(x, bound, IntPred::Slt)
    }

    /// Addresses of the elements `offsets` from a scalar pointer.
    fn at(&mut self, pointer: Value, offsets: Value) -> Value {
        let extents = self.shape_of(offsets);
        let pointers = self.b.to_shape(pointer, extents);
        self.b.addptr(pointers, offsets)
    }

    /// The scalar pointer moved by `row * stride` elements.
    fn row(&mut self, pointer: Value, row: Value, stride: Value) -> Value {
        let offset = self.b.imul(row, stride);
        self.b.addptr(pointer, offset)
    }

    /// A column vector times a scalar plus a row vector: offsets of a matrix block.
    fn matrix(&mut self, rows: Value, row_stride: Value, cols: Value, col_stride: Value) -> Value {
        let extents = {
            let (m, n) = (self.shape_of(rows), self.shape_of(cols));
            shape(&[m.extent(0), n.extent(0)])
        };
        let scaled = |k: &mut Kernel, x: Value, stride: Value, axis: u8| {
            let len = k.shape_of(x);
            let stride = k.b.to_shape(stride, len);
            let x = k.b.imul(x, stride);
            let x = k.b.expand_dims(x, axis);
            k.b.to_shape(x, extents)
        };
        let down = scaled(self, rows, row_stride, 1);
        let across = scaled(self, cols, col_stride, 0);
        self.b.iadd(down, across)
    }

    /// The mask of a matrix block from those of its rows and columns.
    fn matrix_mask(&mut self, rows: Value, cols: Value) -> Value {
        let extents = {
            let (m, n) = (self.shape_of(rows), self.shape_of(cols));
            shape(&[m.extent(0), n.extent(0)])
        };
        let rows = self.b.expand_dims(rows, 1);
        let rows = self.b.to_shape(rows, extents);
        let cols = self.b.expand_dims(cols, 0);
        let cols = self.b.to_shape(cols, extents);
        self.b.and(rows, cols)
    }

    /// Loads and widens to f32. Where the mask is off the result is 0, or `-inf` if asked for.
    fn load_f32(&mut self, pointers: Value, mask: Value, minus_infinity: bool) -> Value {
        let ty = self.b.ty(pointers);
        let scalar = ty.elem.pointee().expect("the operand is a pointer");
        let other = minus_infinity.then(|| {
            let bits = match scalar {
                Scalar::F16 => 0xfc00,
                Scalar::Bf16 => 0xff80,
                _ => u64::from(f32::NEG_INFINITY.to_bits()),
            };
            self.b
                .const_bits(bits, TileType::block(Elem::Num(scalar), ty.shape))
        });
        let x = self.b.load(pointers, Some(mask), other);
        if scalar == Scalar::F32 {
            x
        } else {
            self.b.fpext(x, TileType::block(Elem::F32, ty.shape))
        }
    }

    /// Narrows from f32 and stores.
    fn store_f32(&mut self, pointers: Value, x: Value, mask: Value) {
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
    fn constant(&mut self, number: f32, like: Value) -> Value {
        let extents = self.shape_of(like);
        self.b.f32(number, extents)
    }

    /// A scalar as a block of the shape of `like`.
    fn spread(&mut self, scalar: Value, like: Value) -> Value {
        let extents = self.shape_of(like);
        self.b.to_shape(scalar, extents)
    }

    fn sum(&mut self, x: Value, axis: u8) -> Value {
        self.b.reduce_one(x, axis, |b, l, r| b.fadd(l, r))
    }

    fn to_f32(&mut self, n: Value) -> Value {
        self.b.sitofp(n, TileType::scalar(Elem::F32))
    }

    /// `x` where the mask is on, else 0.
    fn or_zero(&mut self, mask: Value, x: Value) -> Value {
        let zero = self.constant(0.0, x);
        self.b.select(mask, x, zero)
    }

    /// A loop of one carried value over `lo, lo + step, .. < hi`.
    fn accumulate(
        &mut self,
        [lo, hi, step]: [Value; 3],
        init: Value,
        body: impl FnOnce(&mut Kernel, Value, Value) -> Value,
    ) -> Value {
        self.loop_over([lo, hi, step], &[init], |k, iv, carried| {
            vec![body(k, iv, carried[0])]
        })[0]
    }

    fn loop_over(
        &mut self,
        [lo, hi, step]: [Value; 3],
        inits: &[Value],
        body: impl FnOnce(&mut Kernel, Value, &[Value]) -> Vec<Value>,
    ) -> Vec<Value> {
        let results = self.b.for_loop(lo, hi, step, inits, |b, iv, carried| {
            // The helpers own their builder, so it moves in and out.
            let inner = std::mem::replace(b, TileBuilder::new("", 1));
            let mut kernel = Kernel { b: inner };
            let next = body(&mut kernel, iv, carried);
            *b = kernel.b;
            ValueList::from_vec(next)
        });
        results.to_vec()
    }

    fn finish(mut self) -> TileFunction {
        self.b.ret();
        match self.b.finish() {
            Ok(func) => func,
            Err(errors) => panic!("{errors:#?}"),
        }
    }
}

/// `out[i] = a[i] + b[i]`, integers wrapping. Parameters: a, b, out, n.
pub(crate) fn vector_add(config: Config) -> TileFunction {
    let Config {
        scalar,
        block,
        warps,
    } = config;
    let mut k = Kernel::new(format!("vector_add_{scalar}_{block}"), warps);
    let [a, b, out] = ["a", "b", "out"].map(|name| k.pointer(name, scalar));
    let n = k.i32_param("n");
    let pid = k.program(0);
    let size = k.number(block as i32);
    let start = k.b.imul(pid, size);
    let offsets = k.range_from(start, block);
    let mask = k.below(offsets, n);
    let load = |k: &mut Kernel, pointer| {
        let pointers = k.at(pointer, offsets);
        k.b.load(pointers, Some(mask), None)
    };
    let (x, y) = (load(&mut k, a), load(&mut k, b));
    let sum = if scalar.is_float() {
        k.b.fadd(x, y)
    } else {
        k.b.iadd(x, y)
    };
    let pointers = k.at(out, offsets);
    k.b.store(pointers, sum, Some(mask));
    k.finish()
}

/// Softmax of one row per program; the block covers the row. Parameters: out, out_stride, x, x_stride, n_cols.
pub(crate) fn softmax(config: Config) -> TileFunction {
    let Config {
        scalar,
        block,
        warps,
    } = config;
    let mut k = Kernel::new(format!("softmax_{scalar}_{block}"), warps);
    let out = k.pointer("out", scalar);
    let out_stride = k.i32_param("out_stride");
    let x = k.pointer("x", scalar);
    let x_stride = k.i32_param("x_stride");
    let n_cols = k.i32_param("n_cols");
    let row = k.program(0);
    let cols = k.range(block);
    let mask = k.below(cols, n_cols);
    let x = k.row(x, row, x_stride);
    let pointers = k.at(x, cols);
    let x = k.load_f32(pointers, mask, true);
    let largest =
        k.b.reduce_one(x, 0, |b, l, r| b.fmax(l, r, NanRule::Ignore));
    let largest = k.spread(largest, x);
    let x = k.b.fsub(x, largest);
    let e = k.b.exp(x);
    let sum = k.sum(e, 0);
    let sum = k.spread(sum, e);
    let y = k.b.fdiv(e, sum);
    let out = k.row(out, row, out_stride);
    let pointers = k.at(out, cols);
    k.store_f32(pointers, y, mask);
    k.finish()
}
