//! Typed handles on a builder: operators in place of calls, so that a kernel in Rust reads as one in Triton does.
//!
//! A [`Num`] is a number or a block of numbers, a [`Ptr`] a pointer or a block of pointers; both are copied freely and know their
//! type, so that what does not fit does not compile. Scalars, and extents of 1, are spread to the other operand's shape.
//! Numbers of Rust are operands too. What else can go wrong, such as shapes that do not fit, is remembered with its place and
//! returned by [`KernelBuilder::finish`], as [`TileBuilder`] has it.
//!
//! ```
//! use tilelift::ir::typed::KernelBuilder;
//! use tilelift::runtime::Program;
//! use tilelift::testing::{Case, emulator};
//!
//! let k = KernelBuilder::new("axpy", 4);
//! let (a, n) = (k.number::<f32>("a"), k.number::<i32>("n"));
//! let (x, y) = (k.pointer::<f32>("x", 16), k.pointer::<f32>("y", 16));
//! let i = k.program_id(0) * 256 + k.range(256);
//! (y + i).store_if(i.lt(n), a * (x + i).load_if(i.lt(n)) + (y + i).load_if(i.lt(n)));
//! let axpy = Program::function(k.finish()?)?;
//!
//! let (from, to): (Vec<f32>, Vec<f32>) = (0..300).map(|i| (i as f32, 0.5)).unzip();
//! Case::new(&emulator().kernel(&axpy, None)?, 2)
//!     .value(3.0_f32)
//!     .value(300)
//!     .input(&from)
//!     .in_out(&to, |i| 3.0 * from[i] + 0.5)
//!     .check()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Ops without a method here, and loops, are reached through [`KernelBuilder::with`]:
//!
//! ```
//! # use tilelift::ir::typed::KernelBuilder;
//! # let k = KernelBuilder::new("erf", 4);
//! let x = k.number::<f32>("x") * 2.0;
//! let y = k.with(|b| b.erf(x.value()));
//! let y = k.num::<f32>(y) + 1.0;
//! # let _ = y;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::cell::RefCell;
use std::marker::PhantomData;
use std::ops::{Add, BitAnd, BitOr, Div, Mul, Neg, Not, Rem, Sub};

use super::attrs::{FloatPred, IntPred, NanRule};
use super::builder::{BuildErrors, TileBuilder};
use super::entities::Value;
use super::function::TileFunction;
use super::types::{Elem, Scalar, TileType};
use crate::linear_layout::shape::Shape;

/// Makes a kernel through typed handles.
#[derive(Debug)]
pub struct KernelBuilder {
    builder: RefCell<TileBuilder>,
}

/// A number of the kernel, or a block of numbers.
#[derive(Debug)]
pub struct Num<'k, T> {
    kernel: &'k KernelBuilder,
    value: Value,
    number: PhantomData<T>,
}

/// A pointer to numbers in device memory, or a block of pointers.
#[derive(Debug)]
pub struct Ptr<'k, T> {
    kernel: &'k KernelBuilder,
    value: Value,
    number: PhantomData<T>,
}

impl<T> Clone for Num<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Num<'_, T> {}

impl<T> Clone for Ptr<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Ptr<'_, T> {}

/// A type of numbers that kernels compute with.
pub trait Number: Copy + 'static {
    /// Its format.
    const SCALAR: Scalar;

    /// Whether it is a float.
    const FLOAT: bool;

    /// A constant of a shape.
    #[track_caller]
    fn constant(self, b: &mut TileBuilder, shape: Shape) -> Value;

    /// The quotient: of integers rounded to zero, of floats as fast as the format has it.
    #[track_caller]
    fn quotient(b: &mut TileBuilder, x: Value, y: Value) -> Value;
}

macro_rules! numbers {
    ($($ty:ty, $scalar:ident, $float:literal, |$b:ident, $number:ident, $shape:ident| $constant:expr, $quotient:ident;)*) => {$(
        impl Number for $ty {
            const SCALAR: Scalar = Scalar::$scalar;
            const FLOAT: bool = $float;

            #[track_caller]
            fn constant(self, $b: &mut TileBuilder, $shape: Shape) -> Value {
                let $number = self;
                $constant
            }

            #[track_caller]
            fn quotient(b: &mut TileBuilder, x: Value, y: Value) -> Value {
                b.$quotient(x, y)
            }
        }

        impl<'k> IntoNum<'k, $ty> for $ty {
            #[track_caller]
            fn num(self, kernel: &'k KernelBuilder) -> Num<'k, $ty> {
                let mut b = kernel.builder.borrow_mut();
                kernel.num(self.constant(&mut b, Shape::SCALAR))
            }
        }

        numbers! { left $ty, Add add, Sub sub, Mul mul, Div div }
    )*};
    (left $ty:ty, $($op:ident $method:ident),*) => {$(
        impl<'k> $op<Num<'k, $ty>> for $ty {
            type Output = Num<'k, $ty>;

            #[track_caller]
            fn $method(self, other: Num<'k, $ty>) -> Num<'k, $ty> {
                self.num(other.kernel).$method(other)
            }
        }
    )*};
}

numbers! {
    i32, I32, false, |b, n, shape| b.i32(n, shape), sdiv;
    i64, I64, false, |b, n, shape| b.i64(n, shape), sdiv;
    f32, F32, true, |b, n, shape| b.f32(n, shape), fdiv;
    f64, F64, true, |b, n, shape| b.float(n, Elem::F64, shape), fdiv_rn;
    half::f16, F16, true, |b, n, shape| b.float(n.into(), Elem::F16, shape), fdiv_rn;
    half::bf16, Bf16, true, |b, n, shape| b.float(n.into(), Elem::BF16, shape), fdiv_rn;
}

/// What stands beside a [`Num`]: another of the same type, or a number of Rust.
pub trait IntoNum<'k, T> {
    /// As a number of the kernel.
    #[track_caller]
    fn num(self, kernel: &'k KernelBuilder) -> Num<'k, T>;
}

impl<'k, T> IntoNum<'k, T> for Num<'k, T> {
    fn num(self, _: &'k KernelBuilder) -> Num<'k, T> {
        self
    }
}

impl KernelBuilder {
    /// Begins a kernel with so many warps: a power of two, 1 to 32.
    pub fn new(name: &str, num_warps: u32) -> KernelBuilder {
        KernelBuilder {
            builder: RefCell::new(TileBuilder::new(name, num_warps)),
        }
    }

    /// A parameter that is a number.
    pub fn number<T: Number>(&self, name: &str) -> Num<'_, T> {
        let ty = TileType::scalar(Elem::Num(T::SCALAR));
        self.num(self.with(|b| b.param(name, ty)))
    }

    /// A parameter that points to numbers, at an address that is a multiple of `divisible` bytes: with 16, what memory allocators
    /// give, accesses are wide.
    pub fn pointer<T: Number>(&self, name: &str, divisible: u32) -> Ptr<'_, T> {
        let ty = TileType::scalar(Elem::global(T::SCALAR));
        self.ptr(self.with(|b| b.param_divisible(name, ty, divisible)))
    }

    /// The number of the program along an axis of the grid.
    #[track_caller]
    pub fn program_id(&self, axis: u8) -> Num<'_, i32> {
        let value = self.builder.borrow_mut().program_id(axis);
        self.num(value)
    }

    /// The block of the numbers from 0 on, of so many, a power of two.
    #[track_caller]
    pub fn range(&self, len: u64) -> Num<'_, i32> {
        let mut b = self.builder.borrow_mut();
        // An extent that is none becomes a block of one, which does not fit: the operand beside it says so.
        let shape = Shape::new(&[len]).unwrap_or(Shape::SCALAR);
        self.num(b.arange(0, TileType::block(Elem::I32, shape)))
    }

    /// The builder behind the handles.
    pub fn with<R>(&self, build: impl FnOnce(&mut TileBuilder) -> R) -> R {
        build(&mut self.builder.borrow_mut())
    }

    /// A handle on a value, which is of that type.
    pub fn num<T>(&self, value: Value) -> Num<'_, T> {
        Num {
            kernel: self,
            value,
            number: PhantomData,
        }
    }

    /// A handle on a pointer, which is one to that type.
    pub fn ptr<T>(&self, value: Value) -> Ptr<'_, T> {
        Ptr {
            kernel: self,
            value,
            number: PhantomData,
        }
    }

    /// Ends the kernel.
    ///
    /// # Errors
    ///
    /// Everything that went wrong, each with its place.
    #[track_caller]
    pub fn finish(self) -> Result<TileFunction, BuildErrors> {
        let mut b = self.builder.into_inner();
        b.ret();
        b.finish()
    }
}

/// Two values in one shape, if there is one that both can be spread to.
#[track_caller]
fn together(b: &mut TileBuilder, x: Value, y: Value) -> (Value, Value) {
    let (left, right) = (b.ty(x).shape, b.ty(y).shape);
    let shape = match (left.is_scalar(), right.is_scalar()) {
        (true, _) => right,
        (_, true) => left,
        _ if left.rank() != right.rank() => return (x, y),
        _ => {
            let extents = left.log2().iter().zip(right.log2());
            let extents: Vec<u8> = extents.map(|(&a, &b)| a.max(b)).collect();
            Shape::from_log2(&extents).unwrap_or(left)
        }
    };
    (b.to_shape(x, shape), b.to_shape(y, shape))
}

macro_rules! operators {
    ($($op:ident $method:ident $int:ident $float:ident;)*) => {$(
        impl<'k, T: Number, R: IntoNum<'k, T>> $op<R> for Num<'k, T> {
            type Output = Num<'k, T>;

            #[track_caller]
            fn $method(self, other: R) -> Num<'k, T> {
                let other = other.num(self.kernel);
                let mut b = self.kernel.builder.borrow_mut();
                let (x, y) = together(&mut b, self.value, other.value);
                let value = if T::FLOAT { b.$float(x, y) } else { b.$int(x, y) };
                self.kernel.num(value)
            }
        }
    )*};
}

operators! {
    Add add iadd fadd;
    Sub sub isub fsub;
    Mul mul imul fmul;
}

impl<'k, T: Number, R: IntoNum<'k, T>> Div<R> for Num<'k, T> {
    type Output = Num<'k, T>;

    #[track_caller]
    fn div(self, other: R) -> Num<'k, T> {
        let other = other.num(self.kernel);
        let mut b = self.kernel.builder.borrow_mut();
        let (x, y) = together(&mut b, self.value, other.value);
        let value = T::quotient(&mut b, x, y);
        self.kernel.num(value)
    }
}

macro_rules! remainders {
    ($($ty:ty)*) => {$(
        impl<'k, R: IntoNum<'k, $ty>> Rem<R> for Num<'k, $ty> {
            type Output = Num<'k, $ty>;

            #[track_caller]
            fn rem(self, other: R) -> Num<'k, $ty> {
                let other = other.num(self.kernel);
                let mut b = self.kernel.builder.borrow_mut();
                let (x, y) = together(&mut b, self.value, other.value);
                self.kernel.num(b.srem(x, y))
            }
        }
    )*};
}

remainders! { i32 i64 }

impl<'k, T: Number> Neg for Num<'k, T> {
    type Output = Num<'k, T>;

    #[track_caller]
    fn neg(self) -> Num<'k, T> {
        let mut b = self.kernel.builder.borrow_mut();
        if T::FLOAT {
            return self.kernel.num(b.fneg(self.value));
        }
        let ty = b.ty(self.value);
        let zero = b.const_bits(0, ty);
        self.kernel.num(b.isub(zero, self.value))
    }
}

macro_rules! truths {
    ($($op:ident $method:ident $call:ident;)*) => {$(
        impl<'k> $op for Num<'k, bool> {
            type Output = Num<'k, bool>;

            #[track_caller]
            fn $method(self, other: Num<'k, bool>) -> Num<'k, bool> {
                let mut b = self.kernel.builder.borrow_mut();
                let (x, y) = together(&mut b, self.value, other.value);
                self.kernel.num(b.$call(x, y))
            }
        }
    )*};
}

truths! {
    BitAnd bitand and;
    BitOr bitor or;
}

impl<'k> Not for Num<'k, bool> {
    type Output = Num<'k, bool>;

    #[track_caller]
    fn not(self) -> Num<'k, bool> {
        let mut b = self.kernel.builder.borrow_mut();
        let shape = b.ty(self.value).shape;
        let truth = b.bool(true, shape);
        self.kernel.num(b.xor(self.value, truth))
    }
}

impl<'k> Num<'k, bool> {
    /// `yes` where it is true, `no` elsewhere.
    #[track_caller]
    pub fn select<T: Number>(
        self,
        yes: impl IntoNum<'k, T>,
        no: impl IntoNum<'k, T>,
    ) -> Num<'k, T> {
        let (yes, no) = (yes.num(self.kernel), no.num(self.kernel));
        let mut b = self.kernel.builder.borrow_mut();
        let (yes, no) = together(&mut b, yes.value, no.value);
        let (cond, yes) = together(&mut b, self.value, yes);
        let (cond, no) = together(&mut b, cond, no);
        self.kernel.num(b.select(cond, yes, no))
    }
}

macro_rules! comparisons {
    ($($(#[doc = $doc:literal])+ $method:ident $int:ident $float:ident;)*) => {$(
        $(#[doc = $doc])+
        #[track_caller]
        pub fn $method(self, other: impl IntoNum<'k, T>) -> Num<'k, bool> {
            let other = other.num(self.kernel);
            let mut b = self.kernel.builder.borrow_mut();
            let (x, y) = together(&mut b, self.value, other.value);
            self.kernel.num(match T::FLOAT {
                true => b.fcmp(x, y, FloatPred::$float),
                false => b.icmp(x, y, IntPred::$int),
            })
        }
    )*};
}

macro_rules! functions {
    ($($(#[doc = $doc:literal])+ $method:ident;)*) => {$(
        $(#[doc = $doc])+
        #[track_caller]
        pub fn $method(self) -> Num<'k, T> {
            let value = self.kernel.builder.borrow_mut().$method(self.value);
            self.kernel.num(value)
        }
    )*};
}

impl<T> Num<'_, T> {
    /// The value in the builder.
    pub fn value(self) -> Value {
        self.value
    }
}

impl<'k, T: Number> Num<'k, T> {
    comparisons! {
        /// Whether it is less.
        lt Slt Olt;
        /// Whether it is less or the same.
        le Sle Ole;
        /// Whether it is greater.
        gt Sgt Ogt;
        /// Whether it is greater or the same.
        ge Sge Oge;
        /// Whether it is the same.
        eq Eq Oeq;
        /// Whether it is another; NaN is.
        ne Ne Une;
    }

    functions! {
        /// e to its power, of floats.
        exp;
        /// Its natural logarithm, of floats.
        log;
        /// Its square root, of floats.
        sqrt;
        /// 1 over its square root, of floats.
        rsqrt;
    }

    /// The larger of two; of floats the number, where one is NaN.
    #[track_caller]
    pub fn max(self, other: impl IntoNum<'k, T>) -> Num<'k, T> {
        let other = other.num(self.kernel);
        let mut b = self.kernel.builder.borrow_mut();
        let (x, y) = together(&mut b, self.value, other.value);
        self.kernel.num(match T::FLOAT {
            true => b.fmax(x, y, NanRule::Ignore),
            false => b.smax(x, y),
        })
    }

    /// The smaller of two; of floats the number, where one is NaN.
    #[track_caller]
    pub fn min(self, other: impl IntoNum<'k, T>) -> Num<'k, T> {
        let other = other.num(self.kernel);
        let mut b = self.kernel.builder.borrow_mut();
        let (x, y) = together(&mut b, self.value, other.value);
        self.kernel.num(match T::FLOAT {
            true => b.fmin(x, y, NanRule::Ignore),
            false => b.smin(x, y),
        })
    }

    /// The sum along an axis, which goes.
    #[track_caller]
    pub fn sum(self, axis: u8) -> Num<'k, T> {
        let mut b = self.kernel.builder.borrow_mut();
        let sum = b.reduce_one(self.value, axis, |b, x, y| match T::FLOAT {
            true => b.fadd(x, y),
            false => b.iadd(x, y),
        });
        self.kernel.num(sum)
    }

    /// The largest along an axis, which goes.
    #[track_caller]
    pub fn largest(self, axis: u8) -> Num<'k, T> {
        let mut b = self.kernel.builder.borrow_mut();
        let largest = b.reduce_one(self.value, axis, |b, x, y| match T::FLOAT {
            true => b.fmax(x, y, NanRule::Ignore),
            false => b.smax(x, y),
        });
        self.kernel.num(largest)
    }

    /// The same with an axis of extent 1 more, there.
    #[track_caller]
    pub fn expand(self, axis: u8) -> Num<'k, T> {
        let value = self
            .kernel
            .builder
            .borrow_mut()
            .expand_dims(self.value, axis);
        self.kernel.num(value)
    }
}

impl<'k, T: Number> Add<Num<'k, i32>> for Ptr<'k, T> {
    type Output = Ptr<'k, T>;

    #[track_caller]
    fn add(self, offset: Num<'k, i32>) -> Ptr<'k, T> {
        let mut b = self.kernel.builder.borrow_mut();
        let (pointer, offset) = together(&mut b, self.value, offset.value);
        self.kernel.ptr(b.addptr(pointer, offset))
    }
}

impl<'k, T: Number> Ptr<'k, T> {
    /// The pointer in the builder.
    pub fn value(self) -> Value {
        self.value
    }

    /// What lies there.
    #[track_caller]
    pub fn load(self) -> Num<'k, T> {
        let value = self
            .kernel
            .builder
            .borrow_mut()
            .load(self.value, None, None);
        self.kernel.num(value)
    }

    /// What lies there where `mask` is true; elsewhere nothing is read, and the numbers are unspecified.
    #[track_caller]
    pub fn load_if(self, mask: Num<'k, bool>) -> Num<'k, T> {
        let mut b = self.kernel.builder.borrow_mut();
        let (pointer, mask) = together(&mut b, self.value, mask.value);
        self.kernel.num(b.load(pointer, Some(mask), None))
    }

    /// What lies there where `mask` is true, `other` elsewhere.
    #[track_caller]
    pub fn load_or(self, mask: Num<'k, bool>, other: impl IntoNum<'k, T>) -> Num<'k, T> {
        let other = other.num(self.kernel);
        let mut b = self.kernel.builder.borrow_mut();
        let (pointer, mask) = together(&mut b, self.value, mask.value);
        let shape = b.ty(pointer).shape;
        let other = b.to_shape(other.value, shape);
        self.kernel.num(b.load(pointer, Some(mask), Some(other)))
    }

    /// Writes there.
    #[track_caller]
    pub fn store(self, number: impl IntoNum<'k, T>) {
        let number = number.num(self.kernel);
        let mut b = self.kernel.builder.borrow_mut();
        let (pointer, number) = together(&mut b, self.value, number.value);
        b.store(pointer, number, None);
    }

    /// Writes there where `mask` is true.
    #[track_caller]
    pub fn store_if(self, mask: Num<'k, bool>, number: impl IntoNum<'k, T>) {
        let number = number.num(self.kernel);
        let mut b = self.kernel.builder.borrow_mut();
        let (pointer, mask) = together(&mut b, self.value, mask.value);
        let shape = b.ty(pointer).shape;
        let number = b.to_shape(number.value, shape);
        b.store(pointer, number, Some(mask));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_are_told_with_the_callers_place() {
        let k = KernelBuilder::new("k", 4);
        let x = k.pointer::<f32>("x", 16);
        let (four, eight) = (k.range(4), k.range(8));
        let at = line!();
        let sum = (four + four).expand(0) + eight;
        (x + four).store((x + eight).load() * 2.0);
        let _ = sum;
        let errors = k.finish().expect_err("shapes do not fit");
        let places: Vec<(&str, u32)> = errors
            .0
            .iter()
            .map(|e| (e.at.file(), e.at.line() - at))
            .collect();
        assert!(
            !places.is_empty() && places.iter().all(|place| place.0 == file!()),
            "{errors}"
        );
        let lines: Vec<u32> = places.iter().map(|place| place.1).collect();
        assert!(lines.contains(&1) && lines.contains(&2), "{errors}");
    }

    /// A number of Rust takes the shape of the pointers.
    #[test]
    fn a_load_gives_another_number_where_the_mask_is_false() {
        let k = KernelBuilder::new("k", 4);
        let x = k.pointer::<f32>("x", 16);
        let at = k.range(8);
        (x + at).store((x + at).load_or(at.lt(4), 1.5));
        let text = k.finish().expect("it is a kernel").to_string();
        let load = text.lines().find(|line| line.contains(" = load "));
        let operands = load.and_then(|line| line.split_once("load ")?.1.split_once(" : "));
        let Some((operands, "f32[8]")) = operands else {
            panic!("{text}");
        };
        let other = operands
            .split(", ")
            .nth(2)
            .expect("pointer, mask and other");
        assert!(text.contains(&format!("{other} = splat")), "{text}");
        assert!(text.contains("const {value = 1.5} : f32"), "{text}");
    }
}
