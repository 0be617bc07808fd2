//! Constants: what a kernel is compiled for beside the classes of its arguments.

#[cfg(feature = "serde")]
mod data;

use std::fmt;

use crate::runtime::api::dtype::DType;

/// A value that is known when a kernel is compiled. Two are equal if a kernel is the same with either: floats by their
/// bits, so that 0.0 and -0.0 differ.
///
/// For `serde` a number is a number and a text a text; a type is `{"type": "fp16"}`, a function `{"function": "relu"}`.
#[derive(Clone, Debug)]
pub enum Constant {
    /// `None` of the language.
    None,
    /// A truth value.
    Bool(bool),
    /// An integer: wider than any that a kernel holds, as a constant may be what others are computed from.
    Int(i128),
    /// A float.
    Float(f64),
    /// A text.
    Text(String),
    /// A type.
    Type(DType),
    /// A function of the program, by name.
    Function(String),
}

impl PartialEq for Constant {
    fn eq(&self, other: &Constant) -> bool {
        match (self, other) {
            (Constant::None, Constant::None) => true,
            (Constant::Bool(a), Constant::Bool(b)) => a == b,
            (Constant::Int(a), Constant::Int(b)) => a == b,
            (Constant::Float(a), Constant::Float(b)) => a.to_bits() == b.to_bits(),
            (Constant::Text(a), Constant::Text(b)) => a == b,
            (Constant::Type(a), Constant::Type(b)) => a == b,
            (Constant::Function(a), Constant::Function(b)) => a == b,
            _ => false,
        }
    }
}

impl Constant {
    /// A text that no other constant has.
    pub(crate) fn identity(&self) -> String {
        match self {
            Constant::Float(x) => format!("Float({:#018x})", x.to_bits()),
            other => format!("{other:?}"),
        }
    }
}

macro_rules! constants {
    ($($ty:ty, |$value:ident| $constant:expr;)*) => {$(
        impl From<$ty> for Constant {
            fn from($value: $ty) -> Constant {
                $constant
            }
        }
    )*};
}

constants! {
    bool, |x| Constant::Bool(x);
    i32, |x| Constant::Int(x.into());
    u32, |x| Constant::Int(x.into());
    i64, |x| Constant::Int(x.into());
    u64, |x| Constant::Int(x.into());
    f32, |x| Constant::Float(x.into());
    f64, |x| Constant::Float(x);
    &str, |x| Constant::Text(x.to_owned());
    String, |x| Constant::Text(x);
    DType, |x| Constant::Type(x);
}

impl fmt::Display for Constant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Constant::None => f.write_str("None"),
            Constant::Bool(true) => f.write_str("True"),
            Constant::Bool(false) => f.write_str("False"),
            Constant::Int(n) => write!(f, "{n}"),
            Constant::Float(x) => write!(f, "{x:?}"),
            Constant::Text(text) => write!(f, "{text:?}"),
            Constant::Type(dtype) => write!(f, "{dtype}"),
            Constant::Function(name) => write!(f, "@{name}"),
        }
    }
}

/// The constants of a kernel, as a grid sees them.
#[derive(Clone, Copy, Debug)]
pub struct Constants<'a> {
    pub(crate) list: &'a [(String, Constant)],
    /// Those that were not given and have a default.
    pub(crate) defaults: &'a [(String, Constant)],
    pub(crate) num_warps: u32,
}

impl Constants<'_> {
    /// The value of a name: as it was given, else the default of a `constexpr`.
    pub fn get(&self, name: &str) -> Option<&Constant> {
        let mut all = self.list.iter().chain(self.defaults);
        all.find(|(n, _)| n == name).map(|(_, c)| c)
    }

    /// The value of a name that is a number which a grid may be divided by: a positive integer.
    pub fn int(&self, name: &str) -> Option<u32> {
        match self.get(name)? {
            Constant::Int(n) => u32::try_from(*n).ok().filter(|&n| n > 0),
            _ => None,
        }
    }

    /// Warps that a program is asked to have, of which it may get more; of a kernel that was compiled before those that it has.
    pub fn num_warps(&self) -> u32 {
        self.num_warps
    }

    /// What is to be said when a grid makes nothing of them.
    pub(in crate::runtime) fn without_grid(&self) -> String {
        let all = self.list.iter().chain(self.defaults);
        let all: Vec<String> = all
            .map(|(name, value)| format!("{name} = {value}"))
            .collect();
        let there = match all.is_empty() {
            true => "there are no constants".to_owned(),
            false => format!("there is {}", crate::runtime::api::error::list(&all)),
        };
        format!(
            "the function of the grid gave none, as for a constant that is not there or no positive integer; {there}"
        )
    }
}

/// How many programs run: numbers, or a function of the constants.
#[derive(Clone, Copy)]
pub enum Grid<'a> {
    /// Programs in x, y and z.
    Fixed([u32; 3]),
    /// What the function says; nothing if it asks for a constant that is not there.
    Of(&'a dyn Fn(Constants<'_>) -> Option<[u32; 3]>),
}

impl fmt::Debug for Grid<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Grid::Fixed(grid) => write!(f, "{grid:?}"),
            Grid::Of(_) => f.write_str("of the constants"),
        }
    }
}

impl From<u32> for Grid<'_> {
    fn from(x: u32) -> Self {
        Grid::Fixed([x, 1, 1])
    }
}

impl From<[u32; 1]> for Grid<'_> {
    fn from([x]: [u32; 1]) -> Self {
        Grid::Fixed([x, 1, 1])
    }
}

impl From<[u32; 2]> for Grid<'_> {
    fn from([x, y]: [u32; 2]) -> Self {
        Grid::Fixed([x, y, 1])
    }
}

impl From<[u32; 3]> for Grid<'_> {
    fn from(grid: [u32; 3]) -> Self {
        Grid::Fixed(grid)
    }
}

impl<'a, F: Fn(Constants<'_>) -> Option<[u32; 3]>> From<&'a F> for Grid<'a> {
    fn from(function: &'a F) -> Self {
        Grid::Of(function)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_told_apart_by_their_bits() {
        let quiet = f64::from_bits(0x7ff8_0000_0000_0001);
        for (a, b, is_same) in [
            (0.0, -0.0, false),
            (1.5, 1.5, true),
            (f64::NAN, f64::NAN, true),
            (f64::NAN, quiet, false),
        ] {
            let (a, b) = (Constant::from(a), Constant::from(b));
            assert_eq!(a == b, is_same, "{a} {b}");
            assert_eq!(a.identity() == b.identity(), is_same, "{a} {b}");
        }
        assert_ne!(Constant::from(1), Constant::from(true));
    }
}
