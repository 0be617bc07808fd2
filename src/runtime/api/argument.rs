//! Arguments: what a launch gives to a kernel, a few words each, without allocation.
//!
//! Everything that a launch takes becomes an [`Arg`] by `From`: numbers, [`Buffer`]s, [`Pointer`]s into memory of others,
//! and [`NONE`]. A tuple of them, an array or a slice is what [`Kernel::launch`](crate::runtime::Kernel::launch) takes; constants
//! are no arguments, they are given to the kernel by name. A [`Descriptor`](crate::runtime::Descriptor) and a tuple within the
//! tuple are several arguments for one parameter, see [`Argument`]; lists that are made at run time are [`ArgList`]s.
//!
//! An argument has a class (`specialize/class.rs`), by which variants of a kernel are found.

use std::fmt;
use std::marker::PhantomData;

use smallvec::SmallVec;

use crate::ir::types::Scalar;

use crate::runtime::api::buffer::{Buffer, Element, Pointer};
#[cfg(feature = "triton")]
use crate::runtime::api::constant::Constant;
use crate::runtime::api::dtype::DType;
use crate::runtime::specialize::class::{ABSENT, Class, ONE, POINTER, TUPLE, multiple};

/// The device of a mark, which is no device's number, so that a launch with marks leaves the way of those without.
const MARK: u32 = u32::MAX;

/// An argument of a launch.
#[derive(Clone, Copy)]
pub struct Arg<'a> {
    /// The number or the address, little-endian from the first byte on.
    pub(crate) bits: u64,
    /// Bytes behind a pointer.
    pub(crate) bytes: usize,
    /// Type and promises of the value.
    pub(crate) class: u8,
    /// The device that a pointer belongs to; 0 if that is not known.
    pub(crate) device: u32,
    owner: PhantomData<&'a ()>,
}

/// The value of an argument that is no pointer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::runtime) enum ArgNumber {
    Int(i128),
    Float(f64),
}

/// `None` of the language, for parameters that a kernel does not use then.
pub const NONE: Arg<'static> = Arg {
    bits: 0,
    bytes: 0,
    class: ABSENT,
    device: 0,
    owner: PhantomData,
};

impl<'a> Arg<'a> {
    /// What stands before the parts of a tuple or a descriptor.
    pub(in crate::runtime) const fn mark(class: u8, bits: u64) -> Arg<'a> {
        Arg {
            bits,
            bytes: 0,
            class,
            device: MARK,
            owner: PhantomData,
        }
    }

    /// Whether it stands before parts.
    pub(in crate::runtime) const fn is_mark(&self) -> bool {
        self.device == MARK
    }

    #[inline]
    const fn number(dtype: DType, bits: u64) -> Arg<'a> {
        let promises = match bits {
            1 => ONE,
            _ => multiple(bits),
        };
        Arg {
            bits,
            bytes: 0,
            class: dtype.code() | if dtype.is_integer() { promises } else { 0 },
            device: 0,
            owner: PhantomData,
        }
    }
}

impl fmt::Debug for Arg<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.class & POINTER {
            0 => write!(f, "{}({:#x})", Class(self.class), self.bits),
            _ => write!(f, "{}@{:#x}", Class(self.class), self.bits),
        }
    }
}

impl Arg<'_> {
    /// The number as a constant; none of a pointer and of an absent argument.
    #[cfg(feature = "triton")]
    pub(in crate::runtime) fn value(&self) -> Option<Constant> {
        let (dtype, number) = self.number_of()?;
        Some(match number {
            ArgNumber::Int(n) if dtype == DType::BOOL => Constant::Bool(n != 0),
            ArgNumber::Int(n) => Constant::Int(n),
            ArgNumber::Float(x) => Constant::Float(x),
        })
    }

    /// The number and its format; none of a pointer and of an absent argument.
    pub(in crate::runtime) fn number_of(&self) -> Option<(DType, ArgNumber)> {
        let dtype = DType::of_code(self.class).filter(|_| self.class & POINTER == 0)?;
        let bits = self.bits;
        let number = match dtype.scalar {
            Scalar::I1 => ArgNumber::Int((bits != 0).into()),
            _ if dtype.unsigned => ArgNumber::Int(bits.into()),
            Scalar::I8 => ArgNumber::Int((bits as i8).into()),
            Scalar::I16 => ArgNumber::Int((bits as i16).into()),
            Scalar::I32 => ArgNumber::Int((bits as i32).into()),
            Scalar::I64 => ArgNumber::Int((bits as i64).into()),
            Scalar::F16 => ArgNumber::Float(half::f16::from_bits(bits as u16).into()),
            Scalar::Bf16 => ArgNumber::Float(half::bf16::from_bits(bits as u16).into()),
            Scalar::F32 => ArgNumber::Float(f32::from_bits(bits as u32).into()),
            Scalar::F64 => ArgNumber::Float(f64::from_bits(bits)),
            Scalar::F8E4M3 | Scalar::F8E5M2 => return None,
        };
        Some((dtype, number))
    }

    /// The same number in a format: floats are rounded; none if the format does not hold it.
    pub(in crate::runtime) fn as_dtype(&self, dtype: DType) -> Option<Arg<'static>> {
        let (_, number) = self.number_of()?;
        let x = match number {
            ArgNumber::Int(n) => n as f64,
            ArgNumber::Float(x) => x,
        };
        let bits = match (dtype.scalar, number) {
            (Scalar::F16, _) => half::f16::from_f64(x).to_bits().into(),
            (Scalar::Bf16, _) => half::bf16::from_f64(x).to_bits().into(),
            (Scalar::F32, _) => (x as f32).to_bits().into(),
            (Scalar::F64, _) => x.to_bits(),
            (Scalar::F8E4M3 | Scalar::F8E5M2, _) | (_, ArgNumber::Float(_)) => return None,
            (scalar, ArgNumber::Int(n)) => {
                let bits = scalar.bits();
                let range = match dtype.unsigned || dtype == DType::BOOL {
                    true => 0..1_i128 << bits,
                    false => -1_i128 << (bits - 1)..1_i128 << (bits - 1),
                };
                let mask = u64::MAX >> (64 - bits);
                range.contains(&n).then_some(n as u64 & mask)?
            }
        };
        Some(Arg::number(dtype, bits))
    }

    /// Whether it is an address.
    pub(crate) fn is_pointer(&self) -> bool {
        !self.is_mark() && self.class & POINTER != 0
    }

    /// Whether it is an address of memory that nothing here owns.
    pub(crate) fn is_borrowed(&self) -> bool {
        self.is_pointer() && self.device == 0
    }

    /// The memory behind an address: where it begins, and bytes.
    pub(crate) fn range(&self) -> (u64, usize) {
        (self.bits, self.bytes)
    }

    /// The same for a launch that comes later, whose maker sees to it that the memory is still there.
    pub(crate) fn detached(&self) -> Arg<'static> {
        Arg {
            owner: PhantomData,
            ..*self
        }
    }
}

macro_rules! numbers {
    ($($ty:ty, $dtype:ident, |$value:ident| $bits:expr;)*) => {$(
        impl From<$ty> for Arg<'_> {
            #[inline]
            fn from($value: $ty) -> Self {
                Arg::number(DType::$dtype, $bits)
            }
        }
    )*};
}

numbers! {
    bool, BOOL, |x| u64::from(x);
    i8, I8, |x| u64::from(x as u8);
    i16, I16, |x| u64::from(x as u16);
    i32, I32, |x| u64::from(x as u32);
    i64, I64, |x| x as u64;
    u8, U8, |x| u64::from(x);
    u16, U16, |x| u64::from(x);
    u32, U32, |x| u64::from(x);
    u64, U64, |x| x;
    half::f16, F16, |x| u64::from(x.to_bits());
    half::bf16, BF16, |x| u64::from(x.to_bits());
    f32, F32, |x| u64::from(x.to_bits());
    f64, F64, |x| x.to_bits();
}

impl<'a> From<Pointer<'a>> for Arg<'a> {
    #[inline]
    fn from(pointer: Pointer<'a>) -> Self {
        let promises = multiple(pointer.address());
        Arg {
            bits: pointer.address(),
            bytes: pointer.bytes(),
            class: pointer.dtype().code() | POINTER | promises,
            device: pointer.device(),
            owner: PhantomData,
        }
    }
}

impl<'a, T: Element> From<&'a Buffer<T>> for Arg<'a> {
    #[inline]
    fn from(buffer: &'a Buffer<T>) -> Self {
        Arg::from(buffer.ptr())
    }
}

/// What a parameter of a kernel is given: something that becomes an [`Arg`], a [`Descriptor`](crate::runtime::Descriptor), or a
/// tuple of such, for a parameter that the kernel takes apart.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no argument of a launch",
    label = "a launch takes numbers, `&Buffer`, `Pointer`, `Descriptor`, `Arg` and tuples of these",
    note = "a buffer is given as `&buffer`; constants are given to the kernel, with `Kernel::constant`",
    note = "a `usize` becomes an `i32` or `i64` first: its type decides which variant of the kernel is launched"
)]
pub trait Argument<'a>: Copy {
    /// Whether it is more than one [`Arg`].
    const STRUCTURED: bool;

    /// The only one, or the first.
    fn arg(self) -> Arg<'a>;

    /// Appends all of them to a list, with a mark before them if there are more.
    fn push(self, list: &mut ArgList<'a>);
}

// Else the compiler's message is about `Into<Arg>` and shows nothing of the advice above.
#[diagnostic::do_not_recommend]
impl<'a, T: Copy + Into<Arg<'a>>> Argument<'a> for T {
    const STRUCTURED: bool = false;

    #[inline]
    fn arg(self) -> Arg<'a> {
        self.into()
    }

    fn push(self, list: &mut ArgList<'a>) {
        list.list.push(self.into());
    }
}

/// Arguments in order, of a number that is known at run time alone. Up to 32 take no memory of the heap.
#[derive(Clone, Debug, Default)]
pub struct ArgList<'a> {
    list: SmallVec<[Arg<'a>; 32]>,
}

impl<'a> ArgList<'a> {
    /// None.
    pub fn new() -> ArgList<'a> {
        ArgList::default()
    }

    /// Appends one.
    pub fn push(&mut self, argument: impl Argument<'a>) {
        argument.push(self);
    }

    /// The list as a slice.
    pub(crate) fn as_slice(&self) -> &[Arg<'a>] {
        &self.list
    }

    /// The list as a vector.
    pub fn into_vec(self) -> Vec<Arg<'a>> {
        self.list.into_vec()
    }
}

impl<'a> Extend<Arg<'a>> for ArgList<'a> {
    fn extend<I: IntoIterator<Item = Arg<'a>>>(&mut self, args: I) {
        self.list.extend(args);
    }
}

impl Args for ArgList<'_> {
    fn with<R>(&self, take: impl FnOnce(&[Arg<'_>]) -> R) -> R {
        take(&self.list)
    }
}

/// The arguments of a launch: a tuple of [`Argument`]s, or an array, a slice or a list of [`Arg`]s.
///
/// What is none of them does not compile, and the message says what to give:
///
/// ```compile_fail,E0277
/// # fn launch(kernel: &tilelift::runtime::Kernel, n: usize) -> Result<(), tilelift::runtime::RuntimeError> {
/// kernel.run(1, (n,))                                           // `usize` is no argument of a launch
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the arguments of a launch",
    label = "a launch takes its arguments as a tuple, as in `(&x, 3)`, and one as `(&x,)`",
    note = "more than 16, and lists made at run time, are given as an `ArgList` or a slice of `Arg`"
)]
pub trait Args {
    /// Hands them over as a slice.
    fn with<R>(&self, take: impl FnOnce(&[Arg<'_>]) -> R) -> R;
}

impl Args for [Arg<'_>] {
    fn with<R>(&self, take: impl FnOnce(&[Arg<'_>]) -> R) -> R {
        take(self)
    }
}

impl<const N: usize> Args for [Arg<'_>; N] {
    fn with<R>(&self, take: impl FnOnce(&[Arg<'_>]) -> R) -> R {
        take(self)
    }
}

impl Args for Vec<Arg<'_>> {
    fn with<R>(&self, take: impl FnOnce(&[Arg<'_>]) -> R) -> R {
        take(self)
    }
}

#[diagnostic::do_not_recommend]
impl<A: Args + ?Sized> Args for &A {
    fn with<R>(&self, take: impl FnOnce(&[Arg<'_>]) -> R) -> R {
        (**self).with(take)
    }
}

macro_rules! tuples {
    ($(($($name:ident),*))*) => {$(
        impl<'a, $($name: Argument<'a>),*> Args for ($($name,)*) {
            #[inline]
            fn with<R>(&self, take: impl FnOnce(&[Arg<'_>]) -> R) -> R {
                #[expect(non_snake_case, reason = "a name for the type and for the value")]
                let ($($name,)*) = *self;
                if const { $($name::STRUCTURED)||* } {
                    let mut list = ArgList::new();
                    $($name.push(&mut list);)*
                    return take(&list.list);
                }
                take(&[$($name.arg()),*])
            }
        }

        impl<'a, $($name: Argument<'a>),*> Argument<'a> for ($($name,)*) {
            const STRUCTURED: bool = true;

            fn arg(self) -> Arg<'a> {
                self.0.arg()
            }

            fn push(self, list: &mut ArgList<'a>) {
                #[expect(non_snake_case, reason = "a name for the type and for the value")]
                let ($($name,)*) = self;
                let count = const { [$(stringify!($name)),*].len() as u64 };
                list.list.push(Arg::mark(TUPLE, count));
                $($name.push(list);)*
            }
        }
    )*};
}

impl Args for () {
    fn with<R>(&self, take: impl FnOnce(&[Arg<'_>]) -> R) -> R {
        take(&[])
    }
}

tuples! {
    (A)
    (A, B)
    (A, B, C)
    (A, B, C, D)
    (A, B, C, D, E)
    (A, B, C, D, E, F)
    (A, B, C, D, E, F, G)
    (A, B, C, D, E, F, G, H)
    (A, B, C, D, E, F, G, H, I)
    (A, B, C, D, E, F, G, H, I, J)
    (A, B, C, D, E, F, G, H, I, J, K)
    (A, B, C, D, E, F, G, H, I, J, K, L)
    (A, B, C, D, E, F, G, H, I, J, K, L, M)
    (A, B, C, D, E, F, G, H, I, J, K, L, M, N)
    (A, B, C, D, E, F, G, H, I, J, K, L, M, N, O)
    (A, B, C, D, E, F, G, H, I, J, K, L, M, N, O, P)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tuples_and_slices_are_arguments() {
        assert_eq!(size_of::<Arg<'_>>(), 24);
        let bits = |args: &[Arg<'_>]| args.iter().map(|arg| arg.bits).collect::<Vec<_>>();
        assert_eq!((1, 2_u64, true).with(bits), [1, 2, 1]);
        assert_eq!([Arg::from(3), NONE].with(bits), [3, 0]);
        assert_eq!(().with(bits), [0_u64; 0]);
    }
}
