//! What an attribute's payload is in the text form.
//!
//! Each payload type says once how it is written and read; the table of attributes derives printing and
//! parsing from that.

use smallvec::SmallVec;

use super::attrs::{Flag, List};
use super::entities::Slot;

/// A payload as the text form states it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Literal {
    /// Nothing stands after the key.
    Absent,
    /// A word.
    Name(String),
    /// A number.
    Int(i128),
    /// Numbers in brackets.
    List(Vec<i128>),
    /// Text in quotes.
    Text(String),
}

/// A type of an attribute's payload.
pub trait Payload: Sized {
    /// How it is written.
    fn to_literal(&self) -> Literal;
    /// The payload that is written so, or what would be right ("must be ...").
    fn from_literal(literal: &Literal) -> Result<Self, String>;
}

macro_rules! int_payload {
    ($($ty:ident)*) => {
        $(impl Payload for $ty {
            fn to_literal(&self) -> Literal {
                Literal::Int(i128::from(*self))
            }

            fn from_literal(literal: &Literal) -> Result<$ty, String> {
                let number = match literal {
                    Literal::Int(number) => $ty::try_from(*number).ok(),
                    Literal::Absent | Literal::Name(_) | Literal::List(_) | Literal::Text(_) => None,
                };
                number.ok_or_else(|| format!("must be a number from {} to {}", $ty::MIN, $ty::MAX))
            }
        })*
    };
}
int_payload!(u8 u32 u64 i32);

impl Payload for Flag {
    fn to_literal(&self) -> Literal {
        Literal::Absent
    }

    fn from_literal(literal: &Literal) -> Result<Flag, String> {
        match literal {
            Literal::Absent => Ok(Flag),
            _ => Err("stands without a value".to_owned()),
        }
    }
}

impl Payload for String {
    fn to_literal(&self) -> Literal {
        Literal::Text(self.clone())
    }

    fn from_literal(literal: &Literal) -> Result<String, String> {
        match literal {
            Literal::Text(text) => Ok(text.clone()),
            _ => Err("must be a text in quotes".to_owned()),
        }
    }
}

impl Payload for List {
    fn to_literal(&self) -> Literal {
        Literal::List(self.iter().map(|&n| i128::from(n)).collect())
    }

    fn from_literal(literal: &Literal) -> Result<List, String> {
        let numbers: Option<SmallVec<_>> = match literal {
            Literal::List(list) => list.iter().map(|&n| u32::try_from(n).ok()).collect(),
            _ => None,
        };
        numbers.ok_or_else(|| "must be a list of numbers, as in [1, 2]".to_owned())
    }
}

impl Payload for Slot {
    fn to_literal(&self) -> Literal {
        Literal::Name(self.to_string())
    }

    fn from_literal(literal: &Literal) -> Result<Slot, String> {
        let number = match literal {
            Literal::Name(name) => name.strip_prefix("slot").and_then(|n| n.parse().ok()),
            _ => None,
        };
        // The reserved index stands for no slot in packed options.
        let number = number.filter(|&n| n != u32::MAX);
        number
            .map(Slot::from_u32)
            .ok_or_else(|| "must be a slot, as in slot0".to_owned())
    }
}
