//! Type rules: which operands an op takes and what its results are.
//!
//! A rule is a function from operand types, attributes and, where they are given, result types to
//! result types. The builder and the parser call it to find result types, the verifier to compare them;
//! so what can be built is what is valid.

use smallvec::{SmallVec, smallvec};

use super::{Opcode, TypeRule};
use crate::ir::attrs::{Attr, AttrKind, Attrs, RmwOp};
use crate::ir::entities::Value;
use crate::ir::inline_ptx::{self, Constraints};
use crate::ir::level::Level;
use crate::ir::types::{Elem, Extent, Scalar, ValueType};

pub(crate) mod thread;
pub(crate) mod tile;

/// Result types of an instruction.
pub type Types<L> = SmallVec<[<L as Level>::Type; 2]>;

/// What a rule looks at.
#[derive(Clone, Copy, Debug)]
pub struct Operands<'a, L: Level> {
    /// Types of the operands.
    pub args: &'a [L::Type],
    /// Attributes.
    pub attrs: &'a [Attr],
    /// Types that are stated for the results; empty where they are to be derived.
    pub given: &'a [L::Type],
}

impl<L: Level> Attrs for Operands<'_, L> {
    fn attrs(&self) -> &[Attr] {
        self.attrs
    }
}

/// Why operands do not fit an op.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TypeError {
    /// Too few or too many operands.
    #[error("takes {expected} operands, found {found}")]
    OperandCount {
        /// How many there may be.
        expected: String,
        /// How many there are.
        found: usize,
    },
    /// An operand has the wrong type.
    #[error("operand {index} must be {expected}, found {found}")]
    Operand {
        /// Position of the operand, first is 1.
        index: usize,
        /// What fits.
        expected: String,
        /// What is there.
        found: String,
    },
    /// An operand is no value of the function.
    #[error("operand {index} is {value}, which this function does not have")]
    ForeignValue {
        /// Position of the operand, first is 1.
        index: usize,
        /// The value.
        value: Value,
    },
    /// The result type does not follow from the operands.
    #[error("the result must be {expected}, found {found}")]
    Result {
        /// What fits.
        expected: String,
        /// What is stated.
        found: String,
    },
    /// An attribute is missing.
    #[error("needs the attribute `{0}`")]
    MissingAttribute(&'static str),
    /// An attribute that the op does not have.
    #[error("has no attribute `{0}`")]
    UnknownAttribute(&'static str),
    /// An attribute has a value out of its range.
    #[error("attribute `{key}` {problem}")]
    BadAttribute {
        /// Its key.
        key: &'static str,
        /// What is wrong.
        problem: String,
    },
}

/// Checks what holds for every op, before its own rule: the number of operands and the set of attributes.
pub(crate) fn check_shape<L: Level>(
    op: L::Op,
    operands: &Operands<'_, L>,
) -> Result<(), TypeError> {
    let info = op.info();
    let found = operands.args.len();
    let min = info.min_operands();
    let fits = found >= min && info.max_operands().is_none_or(|max| found <= max);
    if !fits {
        let expected = match info.max_operands() {
            None => format!("{min} or more"),
            Some(max) if max == min => min.to_string(),
            Some(max) => format!("{min} to {max}"),
        };
        return Err(TypeError::OperandCount { expected, found });
    }
    for &key in info.required {
        if !operands.attrs.iter().any(|a| a.kind().key() == key) {
            return Err(TypeError::MissingAttribute(key));
        }
    }
    for (i, attr) in operands.attrs.iter().enumerate() {
        if !info.allows(attr.kind()) {
            return Err(TypeError::UnknownAttribute(attr.kind().key()));
        }
        if operands.attrs[..i].iter().any(|a| a.kind() == attr.kind()) {
            return Err(bad_attribute(attr.kind(), "stands twice"));
        }
    }
    Ok(())
}

pub(crate) fn bad_attribute(kind: AttrKind, problem: impl Into<String>) -> TypeError {
    TypeError::BadAttribute {
        key: kind.key(),
        problem: problem.into(),
    }
}

/// The operand at `index` (first is 0) does not fit.
pub(crate) fn bad_operand<L: Level>(
    operands: &Operands<'_, L>,
    index: usize,
    expected: impl Into<String>,
) -> TypeError {
    let found = operands
        .args
        .get(index)
        .map_or("nothing".to_owned(), ToString::to_string);
    TypeError::Operand {
        index: index + 1,
        expected: expected.into(),
        found,
    }
}

/// The stated result does not fit.
pub(crate) fn bad_result<L: Level>(
    operands: &Operands<'_, L>,
    expected: impl Into<String>,
) -> TypeError {
    let found: Vec<String> = operands.given.iter().map(ToString::to_string).collect();
    let found = if found.is_empty() {
        "nothing".to_owned()
    } else {
        found.join(", ")
    };
    TypeError::Result {
        expected: expected.into(),
        found,
    }
}

/// The one result type that is stated.
pub(crate) fn given_one<L: Level>(operands: &Operands<'_, L>) -> Result<L::Type, TypeError> {
    match operands.given {
        [ty] => Ok(*ty),
        _ => Err(bad_result(operands, "one stated type")),
    }
}

/// All operands have the type of the first, whose elements satisfy `fits`; so has the result.
fn same<L: Level>(
    operands: &Operands<'_, L>,
    expected: &str,
    fits: impl Fn(Elem) -> bool,
) -> Result<Types<L>, TypeError> {
    let first = operands.args[0];
    if !fits(first.elem()) {
        return Err(bad_operand(operands, 0, expected));
    }
    all_like_first(operands, 0)?;
    Ok(smallvec![first])
}

/// The operands after number `first` have its type.
fn all_like_first<L: Level>(operands: &Operands<'_, L>, first: usize) -> Result<(), TypeError> {
    let ty = operands.args[first];
    match operands.args.iter().skip(first).position(|&t| t != ty) {
        Some(i) => Err(bad_operand(operands, first + i, ty.to_string())),
        None => Ok(()),
    }
}

/// A conversion element by element, from and to what the predicate allows.
fn cast<L: Level>(
    operands: &Operands<'_, L>,
    expected: &str,
    fits: impl Fn(Scalar, Scalar) -> bool,
) -> Result<Types<L>, TypeError> {
    let (from, to) = (operands.args[0], given_one(operands)?);
    if !from.same_extent(&to) {
        return Err(bad_result(
            operands,
            format!("{expected} of the operand's extent ({from})"),
        ));
    }
    match (from.elem().scalar(), to.elem().scalar()) {
        (Some(a), Some(b)) if fits(a, b) => Ok(smallvec![to]),
        _ => Err(bad_result(
            operands,
            format!("{expected} than the operand's {}", from.elem()),
        )),
    }
}

fn is_wide_int(s: Scalar) -> bool {
    s.is_int() && s != Scalar::I1
}

/// Operands and stated results of one extent, and texts that fit them.
fn inline_ptx<L: Level>(operands: &Operands<'_, L>) -> Result<Types<L>, TypeError> {
    let (args, given) = (operands.args, operands.given);
    let Some(&first) = given.first() else {
        return Err(bad_result(operands, "one or more stated types"));
    };
    let fits = |t: &L::Type| {
        !matches!(t.elem(), Elem::I1 | Elem::Token | Elem::Map(_)) && t.same_extent(&first)
    };
    let expected = format!("numbers of 8 bits or more, or pointers, of the extent of {first}");
    if let Some(i) = args.iter().position(|t| !fits(t)) {
        return Err(bad_operand(operands, i, expected));
    }
    if !given.iter().all(fits) {
        return Err(bad_result(operands, expected));
    }
    let pack = u32::from(operands.pack().copied().unwrap_or(1));
    if !pack.is_power_of_two() || pack > 32 || !first.is_multiple_of(pack) {
        let problem = "must be a power of two up to 32 that divides the elements of a thread";
        return Err(bad_attribute(AttrKind::Pack, problem));
    }
    // What else is of one element, or dealt out already.
    if let (Extent::Block(shape, _), Some(&axis)) = (first.extent(), operands.axis())
        && usize::from(axis) >= shape.rank()
    {
        return Err(bad_attribute(
            AttrKind::Axis,
            "is no dimension of the result",
        ));
    }
    let text = operands.constraints().map_or("", |text| text);
    let constraints =
        Constraints::parse(text).map_err(|e| bad_attribute(AttrKind::Constraints, e))?;
    let check = |what: &str, types: &[L::Type], registers: &[u32]| {
        let takes = |t: &L::Type| {
            let (count, bits) = inline_ptx::registers(t.elem().bits(), pack);
            std::iter::repeat_n(bits, count as usize)
        };
        let wanted: Vec<u32> = types.iter().flat_map(takes).collect();
        if wanted.len() != registers.len() {
            let (wanted, found) = (wanted.len(), registers.len());
            let problem = format!("names {found} registers of {what}, there are {wanted}");
            return Err(bad_attribute(AttrKind::Constraints, problem));
        }
        match wanted.iter().zip(registers).position(|(w, r)| w > r) {
            Some(i) => Err(bad_attribute(
                AttrKind::Constraints,
                format!("gives {what} {i} fewer bits than the {} it has", wanted[i]),
            )),
            None => Ok(()),
        }
    };
    check("results", given, &constraints.outputs)?;
    check("operands", args, &constraints.inputs)?;
    let count = constraints.outputs.len() + constraints.inputs.len();
    let template = operands.ptx().map_or("", |text| text);
    inline_ptx::pieces(template, count).map_err(|e| bad_attribute(AttrKind::Ptx, e))?;
    Ok(given.into())
}

/// Whether elements of the type can be combined in one step; else what `rmw` takes.
pub(crate) fn rmw_takes(rmw: RmwOp, elem: Elem) -> Result<(), &'static str> {
    let (fits, expected) = match rmw {
        RmwOp::Fadd => (
            elem.is_float() && elem.bits() > 8,
            "f16, bf16, f32 or f64 for `rmw = fadd`",
        ),
        RmwOp::Xchg => (
            elem.scalar().is_some() && elem.bits() >= 32,
            "i32, i64, f32 or f64 for `rmw = xchg`",
        ),
        RmwOp::Add
        | RmwOp::Smax
        | RmwOp::Smin
        | RmwOp::Umax
        | RmwOp::Umin
        | RmwOp::And
        | RmwOp::Or
        | RmwOp::Xor => (
            matches!(elem, Elem::I32 | Elem::I64),
            "i32 or i64 for this `rmw`",
        ),
    };
    if fits { Ok(()) } else { Err(expected) }
}

/// Whether blocks of such elements can be combined, also by comparison and exchange; else what `rmw` takes.
pub(crate) fn block_rmw_takes(rmw: RmwOp, elem: Elem) -> Result<(), &'static str> {
    if rmw.is_extreme() {
        return match elem {
            Elem::I16 | Elem::I32 | Elem::I64 => Ok(()),
            _ => Err("i16, i32 or i64 for this `rmw`"),
        };
    }
    rmw_takes(rmw, elem)
}

/// Whether the copy engine combines elements so with those in memory, on the way there.
pub(crate) fn engine_adds(rmw: RmwOp, scalar: Scalar) -> bool {
    match rmw {
        RmwOp::Fadd => matches!(scalar, Scalar::F16 | Scalar::Bf16 | Scalar::F32),
        RmwOp::Add => scalar == Scalar::I32,
        _ => false,
    }
}

/// Whether elements of the type can be compared and exchanged in one step; else what can be.
pub(crate) fn cas_takes(elem: Elem) -> Result<(), &'static str> {
    if elem.scalar().is_some() && elem.bits() >= 16 {
        Ok(())
    } else {
        Err("numbers of 16, 32 or 64 bits")
    }
}

/// The rules that hold at both levels; none for a rule of one level alone.
pub(crate) fn shared<L: Level>(
    rule: TypeRule,
    operands: &Operands<'_, L>,
) -> Option<Result<Types<L>, TypeError>> {
    let args = operands.args;
    Some(match rule {
        // The stated type is anything but a token.
        TypeRule::Const => given_one(operands).and_then(|ty| match ty.elem() {
            Elem::Token | Elem::Map(_) => Err(bad_result(operands, "numbers or pointers")),
            Elem::Num(_) | Elem::Ptr(..) => Ok(smallvec![ty]),
        }),
        // A single element to any extent of the same element.
        TypeRule::Splat => given_one(operands).and_then(|ty| {
            if !args[0].is_single() {
                Err(bad_operand(operands, 0, "a single element"))
            } else if ty.elem() != args[0].elem() {
                Err(bad_result(operands, format!("of {}", args[0].elem())))
            } else {
                Ok(smallvec![ty])
            }
        }),
        // Integers of more than one bit, all alike.
        TypeRule::SameInt => same(operands, "an integer of 8 bits or more", |e| {
            e.scalar().is_some_and(is_wide_int)
        }),
        // Integers, truth values included, all alike.
        TypeRule::SameBits => same(operands, "an integer", Elem::is_int),
        // i32, all alike.
        TypeRule::SameI32 => same(operands, "i32", |e| e == Elem::I32),
        // Floating-point numbers, all alike.
        TypeRule::SameFloat => same(operands, "a floating-point number", Elem::is_float),
        // f32, all alike.
        TypeRule::SameF32 => same(operands, "f32", |e| e == Elem::F32),
        // f32 or f64, all alike.
        TypeRule::SameWideFloat | TypeRule::Function => {
            same(operands, "f32 or f64", |e| e == Elem::F32 || e == Elem::F64)
        }
        // Two integers or pointers of one type; truth values result.
        TypeRule::IntCompare => same(operands, "an integer or a pointer", |e| {
            e.is_int() || e.is_ptr()
        })
        .map(|t| smallvec![t[0].with_elem(Elem::I1)]),
        // Two floats of one type; truth values result.
        TypeRule::FloatCompare => same(operands, "a floating-point number", Elem::is_float)
            .map(|t| smallvec![t[0].with_elem(Elem::I1)]),
        // Truth values of the extent of two values of one type.
        TypeRule::Select => {
            if args[0] != args[1].with_elem(Elem::I1) {
                Err(bad_operand(
                    operands,
                    0,
                    args[1].with_elem(Elem::I1).to_string(),
                ))
            } else if matches!(args[1].elem(), Elem::Token | Elem::Map(_)) {
                Err(bad_operand(operands, 1, "a number or a pointer"))
            } else {
                all_like_first(operands, 1).map(|()| smallvec![args[1]])
            }
        }
        TypeRule::IntWiden => cast(operands, "a wider integer", |a, b| {
            a.is_int() && b.is_int() && b.bits() > a.bits()
        }),
        TypeRule::IntNarrow => cast(operands, "a narrower integer", |a, b| {
            a.is_int() && b.is_int() && b.bits() < a.bits()
        }),
        TypeRule::IntToFloat => cast(operands, "a float from an integer", |a, b| {
            a.is_int() && b.is_float()
        }),
        TypeRule::FloatToInt => cast(operands, "an integer from a float", |a, b| {
            a.is_float() && is_wide_int(b)
        }),
        TypeRule::FloatWiden => cast(operands, "a wider float", |a, b| {
            a.is_float() && b.is_float() && b.bits() > a.bits()
        }),
        TypeRule::FloatNarrow => cast(operands, "a narrower float", |a, b| {
            a.is_float() && b.is_float() && b.bits() < a.bits()
        }),
        // Numbers of equal width and different kind.
        TypeRule::Bitcast => cast(operands, "another type of the width", |a, b| {
            a.bits() == b.bits() && a != b
        }),
        // Between a pointer and i64, or between pointers, of one space; a pointer to shared memory may become an i32.
        TypeRule::PtrCast => given_one(operands).and_then(|to| {
            let from = args[0];
            let fits = match (from.elem(), to.elem()) {
                (Elem::Ptr(_, a), Elem::Ptr(_, b)) => a == b && from != to,
                (Elem::Ptr(..), Elem::I64 | Elem::I32) | (Elem::I64, Elem::Ptr(..)) => {
                    from.elem().bits() == to.elem().bits()
                }
                _ => false,
            };
            if fits && from.same_extent(&to) {
                Ok(smallvec![to])
            } else {
                Err(bad_result(
                    operands,
                    format!("a pointer or i64 of the extent of {from}"),
                ))
            }
        }),
        // A pointer and an i32 or i64 of the same extent.
        TypeRule::AddPtr => {
            if !args[0].elem().is_ptr() {
                Err(bad_operand(operands, 0, "a pointer"))
            } else if !matches!(args[1].elem(), Elem::I32 | Elem::I64)
                || !args[0].same_extent(&args[1])
            {
                Err(bad_operand(
                    operands,
                    1,
                    format!("i32 or i64 of the extent of {}", args[0]),
                ))
            } else {
                Ok(smallvec![args[0]])
            }
        }
        TypeRule::InlinePtx => inline_ptx(operands),
        TypeRule::I64Scalar => Ok(smallvec![L::Type::from_elem(Elem::I64)]),
        // Numbers or pointers, or nothing.
        TypeRule::Print => match args.first() {
            Some(ty) if matches!(ty.elem(), Elem::Token | Elem::Map(_)) => {
                Err(bad_operand(operands, 0, "numbers or pointers"))
            }
            _ => Ok(smallvec![]),
        },
        // Truth values.
        TypeRule::Assert => match args[0].elem() {
            Elem::I1 => Ok(smallvec![]),
            _ => Err(bad_operand(operands, 0, "i1")),
        },
        TypeRule::NoResult => Ok(smallvec![]),
        _ => return None,
    })
}
