//! What a name or an expression stands for while a kernel is being read.
//!
//! Numbers exist at three grades. A **constant** is a number of the source text or of a `constexpr`: it is folded by
//! Python's rules and is weak in promotion. A **known** number is a constant that was given to a variable: it has a type,
//! is strong in promotion and folded by the rules of its type, but may still give a shape. A **tensor** is a value of
//! the tile IR, a scalar or a block.

use std::rc::Rc;

use indexmap::IndexMap;
use ruff_python_ast::{StmtClassDef, StmtFunctionDef};

use super::library::Builtin;
use super::types::{DType, Ty, show};
use crate::ir::entities;
use crate::linear_layout::shape::Shape;

/// A value that Python has.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Const {
    None,
    Bool(bool),
    Int(i128),
    Float(f64),
    Str(Rc<str>),
}

/// A number with a type, known at compile time: an integer within its range, or a float that its format holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Known {
    pub(crate) dtype: DType,
    pub(crate) number: PyNumber,
}

/// A number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum PyNumber {
    Int(i128),
    Float(f64),
}

impl Known {
    pub(crate) fn boolean(value: bool) -> Known {
        Known {
            dtype: DType::Int1,
            number: PyNumber::Int(i128::from(value)),
        }
    }

    /// The number as a constant of the source text.
    pub(crate) fn to_const(self) -> Const {
        match self.number {
            PyNumber::Int(n) if self.dtype == DType::Int1 => Const::Bool(n != 0),
            PyNumber::Int(n) => Const::Int(n),
            PyNumber::Float(x) => Const::Float(x),
        }
    }
}

/// A scalar or block of the tile IR with its type in the language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tensor {
    pub(crate) value: entities::Value,
    pub(crate) ty: Ty,
    pub(crate) shape: Shape,
}

/// A type as a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TypeValue {
    pub(crate) ty: Ty,
    /// Extents of a block type.
    pub(crate) shape: Option<Shape>,
}

/// A tuple; one with names is a named tuple.
#[derive(Clone, Debug)]
pub(crate) struct Tuple<'m> {
    pub(crate) items: Vec<Value<'m>>,
    pub(crate) class: Option<&'m StmtClassDef>,
    pub(crate) names: Vec<&'m str>,
    /// Number of elements, those of tuples within counted, and of the tuples.
    pub(crate) weight: usize,
    /// What it is if it is more than a tuple, and the shape of its blocks.
    pub(crate) mark: Option<(Mark, Shape)>,
    /// It is a list of Python, which kernels have as tuples.
    pub(crate) list: bool,
}

/// A member of an enumeration of the text.
#[derive(Clone, Debug)]
pub(crate) struct Member<'m> {
    /// The class whose text has it.
    pub(crate) class: &'m StmtClassDef,
    /// Its name; of several for one value the first.
    pub(crate) name: &'m str,
    pub(crate) value: Value<'m>,
}

/// What a tuple stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// A block pointer.
    BlockPointer,
    /// A tensor descriptor.
    Descriptor {
        /// Whether NaN is read outside of the tensor, in place of zero.
        nan: bool,
    },
}

impl<'m> Tuple<'m> {
    /// Whether another one has the same parts under the same names, so that one is put in the place of the other part by part.
    pub(crate) fn is_like(&self, other: &Tuple<'m>) -> bool {
        let class = |tuple: &Tuple<'m>| tuple.class.map(std::ptr::from_ref);
        self.items.len() == other.items.len()
            && self.mark == other.mark
            && self.list == other.list
            && class(self) == class(other)
            && self.names == other.names
    }

    pub(crate) fn new(
        items: Vec<Value<'m>>,
        class: Option<&'m StmtClassDef>,
        names: Vec<&'m str>,
    ) -> Tuple<'m> {
        let weight = items.iter().fold(1, |sum: usize, item| {
            sum.saturating_add(match item {
                Value::Tuple(tuple) => tuple.weight,
                _ => 1,
            })
        });
        Tuple {
            items,
            class,
            names,
            weight,
            mark: None,
            list: false,
        }
    }

    /// Elements of this tuple or list, or others in their place, as one of the same kind.
    pub(crate) fn of_kind(&self, items: Vec<Value<'m>>) -> Value<'m> {
        match self.list {
            true => Value::list(items),
            false => Value::tuple(items),
        }
    }
}

/// A module, or a name of one that is no more than a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Path(pub(crate) Rc<str>);

/// What a name or an expression stands for.
#[derive(Clone, Debug)]
pub(crate) enum Value<'m> {
    Const(Const),
    Known(Known),
    Tensor(Tensor),
    Tuple(Rc<Tuple<'m>>),
    Type(TypeValue),
    /// The type of a constant, of which each has its own.
    ConstType(Const),
    /// A function of the text.
    Function(&'m StmtFunctionDef),
    /// A class of the text.
    Class(&'m StmtClassDef),
    /// A member of an enumeration, which is not its value.
    Member(Rc<Member<'m>>),
    /// A function of the library.
    Builtin(&'static Builtin),
    /// A function with its first argument.
    Method(Rc<Value<'m>>, Rc<Value<'m>>),
    /// A module of the outside.
    Path(Path),
    /// `**META`: constants by name.
    Dict(Rc<IndexMap<String, Value<'m>>>),
    /// What `range` and its like give to a `for`.
    Range(Rc<RangeValue<'m>>),
    /// What is left of a mistake that has been reported.
    Poison,
}

/// The arguments of `range`.
#[derive(Clone, Debug)]
pub(crate) struct RangeValue<'m> {
    pub(crate) start: Value<'m>,
    pub(crate) stop: Value<'m>,
    pub(crate) step: Value<'m>,
    /// Unrolled: the counter is a constant.
    pub(crate) unroll: bool,
    pub(crate) stages: Option<u8>,
    /// How often what the loop repeats is to be written out.
    pub(crate) copies: Option<u8>,
}

impl<'m> Value<'m> {
    pub(crate) const NONE: Value<'m> = Value::Const(Const::None);

    pub(crate) fn int(number: i128) -> Value<'m> {
        Value::Const(Const::Int(number))
    }

    pub(crate) fn bool(value: bool) -> Value<'m> {
        Value::Const(Const::Bool(value))
    }

    pub(crate) fn tuple(items: Vec<Value<'m>>) -> Value<'m> {
        Value::Tuple(Rc::new(Tuple::new(items, None, Vec::new())))
    }

    pub(crate) fn list(items: Vec<Value<'m>>) -> Value<'m> {
        let list = true;
        Value::Tuple(Rc::new(Tuple {
            list,
            ..Tuple::new(items, None, Vec::new())
        }))
    }

    pub(crate) fn ty(ty: Ty) -> Value<'m> {
        Value::Type(TypeValue { ty, shape: None })
    }

    pub(crate) fn is_none(&self) -> bool {
        matches!(self, Value::Const(Const::None))
    }

    /// The constant, of a number that is known too.
    pub(crate) fn as_const(&self) -> Option<Const> {
        match self {
            Value::Const(c) => Some(c.clone()),
            Value::Known(known) => Some(known.to_const()),
            _ => None,
        }
    }

    /// What it is, for messages.
    pub(crate) fn describe(&self) -> String {
        match self {
            Value::Const(Const::None) => "None".to_owned(),
            Value::Const(Const::Bool(b)) => if *b { "True" } else { "False" }.to_owned(),
            Value::Const(Const::Int(n)) => format!("the constant {n}"),
            Value::Const(Const::Float(x)) => format!("the constant {}", super::constant::repr(*x)),
            Value::Const(Const::Str(s)) if s.len() > 40 => "a string".to_owned(),
            Value::Const(Const::Str(s)) => format!("the string {s:?}"),
            Value::Known(known) => format!("a number of type {}", known.dtype),
            Value::Tensor(t) => match (t.shape.is_scalar(), t.ty.is_ptr()) {
                (true, true) => format!("a pointer {}", t.ty),
                (true, false) => format!("a scalar {}", t.ty),
                (false, _) => format!("a block {}", show(t.ty, t.shape)),
            },
            Value::Tuple(t) => match t.mark {
                Some((Mark::BlockPointer, _)) => "a block pointer".to_owned(),
                Some((Mark::Descriptor { .. }, _)) => "a tensor descriptor".to_owned(),
                None => match t.class {
                    Some(class) => format!("an object of `{}`", class.name),
                    None if t.list => format!("a list of {}", t.items.len()),
                    None => format!("a tuple of {}", t.items.len()),
                },
            },
            Value::Type(t) => match t.shape {
                Some(shape) => format!("the type {}", show(t.ty, shape)),
                None => format!("the type {}", t.ty),
            },
            Value::ConstType(c) => {
                format!("the type of the constant {}", super::constant::display(c))
            }
            Value::Function(f) => format!("the function `{}`", f.name),
            Value::Class(c) => format!("the class `{}`", c.name),
            Value::Member(m) => format!("`{}.{}`", m.class.name, m.name),
            Value::Builtin(b) => format!("the function `{}`", b.name),
            Value::Method(_, callee) => callee.describe(),
            Value::Path(p) => format!("`{}`", p.0),
            Value::Dict(_) => "a dictionary of constants".to_owned(),
            Value::Range(_) => "a range".to_owned(),
            Value::Poison => "something that was not understood".to_owned(),
        }
    }
}
