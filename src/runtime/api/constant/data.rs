//! Constants for `serde`. What JSON has is itself: `null`, truth values, numbers with a point and without, texts. What it
//! has not is a map of one entry that says what it is: `{"type": "fp16"}`, `{"function": "relu"}`, and as texts integers of
//! more than 64 bits, `{"int": "18446744073709551616"}`, and by their bits floats that are no numbers,
//! `{"float": "0x7ff8000000000000"}`.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Unexpected, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};

use super::Constant;
use crate::runtime::DType;

const TYPE: &str = "type";
const FUNCTION: &str = "function";
const INT: &str = "int";
const FLOAT: &str = "float";
const TAGS: &[&str] = &[TYPE, FUNCTION, INT, FLOAT];

impl Serialize for Constant {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let (tag, text) = match self {
            Constant::None => return to.serialize_unit(),
            Constant::Bool(b) => return to.serialize_bool(*b),
            Constant::Int(n) => match (i64::try_from(*n), u64::try_from(*n)) {
                (Ok(n), _) => return to.serialize_i64(n),
                (_, Ok(n)) => return to.serialize_u64(n),
                _ => (INT, n.to_string()),
            },
            Constant::Float(x) if x.is_finite() => return to.serialize_f64(*x),
            Constant::Float(x) => (FLOAT, format!("{:#018x}", x.to_bits())),
            Constant::Text(text) => return to.serialize_str(text),
            Constant::Type(dtype) => (TYPE, dtype.to_string()),
            Constant::Function(name) => (FUNCTION, name.clone()),
        };
        let mut map = to.serialize_map(Some(1))?;
        map.serialize_entry(tag, &text)?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for Constant {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Constant, D::Error> {
        from.deserialize_any(Any)
    }
}

struct Any;

impl<'de> Visitor<'de> for Any {
    type Value = Constant;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            r#"a constant: null, a truth value, a number, a text, {"type": ..} or {"function": ..}"#,
        )
    }

    fn visit_unit<E: Error>(self) -> Result<Constant, E> {
        Ok(Constant::None)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Constant, E> {
        Ok(Constant::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Constant, E> {
        Ok(Constant::Int(value.into()))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Constant, E> {
        Ok(Constant::Int(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Constant, E> {
        Ok(Constant::Float(value))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Constant, E> {
        Ok(Constant::Text(value.to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Constant, A::Error> {
        let Some((tag, text)) = map.next_entry::<String, String>()? else {
            return Err(Error::invalid_length(0, &self));
        };
        if let Some((second, _)) = map.next_entry::<String, String>()? {
            return Err(Error::unknown_field(&second, &[]));
        }
        let wrong = || Error::invalid_value(Unexpected::Str(&text), &self);
        match tag.as_str() {
            TYPE => {
                let named = |d: &DType| d.to_string() == text;
                let found = DType::ALL.iter().copied().find(named);
                found.map(Constant::Type).ok_or_else(wrong)
            }
            FUNCTION => Ok(Constant::Function(text)),
            INT => text.parse().map(Constant::Int).map_err(|_| wrong()),
            FLOAT => {
                let bits = text.strip_prefix("0x");
                let bits = bits.and_then(|bits| u64::from_str_radix(bits, 16).ok());
                let float = bits.map(|bits| Constant::Float(f64::from_bits(bits)));
                float.ok_or_else(wrong)
            }
            _ => Err(Error::unknown_field(&tag, TAGS)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_come_back_from_json() {
        for (constant, json) in [
            (Constant::None, "null"),
            (true.into(), "true"),
            ((-3).into(), "-3"),
            (u64::MAX.into(), "18446744073709551615"),
            (Constant::Int(1 << 64), r#"{"int":"18446744073709551616"}"#),
            (1.0_f64.into(), "1.0"),
            ((-0.0_f64).into(), "-0.0"),
            // Without care for the last bit this one is read as its neighbour.
            (9.007_199_254_740_993e-300.into(), "9.007199254740993e-300"),
            (
                f64::from_bits(0x7ff8_0000_0000_0001).into(),
                r#"{"float":"0x7ff8000000000001"}"#,
            ),
            (
                f64::NEG_INFINITY.into(),
                r#"{"float":"0xfff0000000000000"}"#,
            ),
            ("a\tb".into(), r#""a\tb""#),
            (DType::F16.into(), r#"{"type":"fp16"}"#),
            (
                Constant::Function("relu".to_owned()),
                r#"{"function":"relu"}"#,
            ),
        ] {
            let written = serde_json::to_string(&constant).expect("it is data");
            assert_eq!(written, json);
            let read: Constant = serde_json::from_str(json).expect("as written");
            assert_eq!(read, constant, "{json}");
        }
        for (json, problem) in [
            (r#"{"type":"fp17"}"#, "fp17"),
            (r#"{"dtype":"fp16"}"#, "unknown field `dtype`"),
            (r#"{"type":"fp16","int":"1"}"#, "unknown field `int`"),
            (r#"{"int":"one"}"#, "one"),
            (r#"{"float":"1.5"}"#, "1.5"),
            ("{}", "length 0"),
            ("[1]", "sequence"),
        ] {
            let read: Result<Constant, _> = serde_json::from_str(json);
            let error = read.expect_err(json).to_string();
            assert!(error.contains(problem), "{json}: {error}");
        }
    }
}
