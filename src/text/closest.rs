//! Names that somebody may have meant.

use std::borrow::Cow;

use crate::ir::types::Scalar;

/// What to do where a name is not known and another resembles it.
pub(crate) fn did_you_mean(name: impl std::fmt::Display) -> String {
    format!("did you mean `{name}`?")
}

/// The name that differs least, if it is close: letters left out, added, replaced, or two beside each other exchanged.
pub(crate) fn closest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // Long names are not worth a quadratic comparison.
    if name.len() > 64 {
        return None;
    }
    names
        .filter(|other| other.len() <= 64)
        .map(|other| (strsim::osa_distance(name, other), other))
        // A name of one letter resembles every other.
        .filter(|&(d, other)| d < name.len() && d <= 1 + other.len().min(name.len()) / 5)
        // Among equals one of the same letters, as `to` for `ot`, which is as near to `dot`.
        .min_by_key(|&(d, other)| (d, other.len().abs_diff(name.len())))
        .map(|(_, other)| other)
}

/// For the end of a message: which number format was meant by a name of another language, of a signature, or one that is misspelled;
/// nothing where none was.
pub(crate) fn did_you_mean_format(name: &str) -> String {
    let Some(meant) = meant_format(name) else {
        return String::new();
    };
    let why = match name.starts_with(['u', 'U']) {
        true => " Integers have no sign of their own.",
        false => "",
    };
    format!("; {}{why}", did_you_mean(meant.name()))
}

fn meant_format(name: &str) -> Option<Scalar> {
    let name = name.to_ascii_lowercase();
    let (kind, width) = name.split_at(
        name.find(|c: char| c.is_ascii_digit())
            .unwrap_or(name.len()),
    );
    let meant: Cow<'_, str> = match (kind, width) {
        ("bool", "") => "i1".into(),
        ("char" | "byte", "") => "i8".into(),
        ("short", "") => "i16".into(),
        ("int", "") => "i32".into(),
        ("long", "") => "i64".into(),
        ("half", "") => "f16".into(),
        ("bfloat", "") => "bf16".into(),
        ("float", "") => "f32".into(),
        ("double", "") => "f64".into(),
        ("u" | "uint" | "int", width) => format!("i{width}").into(),
        ("fp" | "float", width) => format!("f{width}").into(),
        ("bfloat", width) => format!("bf{width}").into(),
        _ => name.as_str().into(),
    };
    let names = Scalar::ALL.iter().map(|scalar| scalar.name());
    // Short names are near to several.
    let near = || closest(&meant, names).filter(|_| meant.len() > 3);
    Scalar::from_name(&meant).or_else(|| Scalar::from_name(near()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_meant_by_names_of_others() {
        for (name, meant) in [
            (
                "u8",
                "; did you mean `i8`? Integers have no sign of their own.",
            ),
            (
                "uint32",
                "; did you mean `i32`? Integers have no sign of their own.",
            ),
            ("int64", "; did you mean `i64`?"),
            ("fp32", "; did you mean `f32`?"),
            ("float16", "; did you mean `f16`?"),
            ("bfloat16", "; did you mean `bf16`?"),
            ("double", "; did you mean `f64`?"),
            ("fp8e4nv", "; did you mean `f8e4m3`?"),
            ("f8e4m2", "; did you mean `f8e4m3`?"),
            ("zzz", ""),
            ("u7", ""),
            ("", ""),
        ] {
            assert_eq!(did_you_mean_format(name), meant, "{name}");
        }
    }

    #[test]
    fn names_that_are_close_are_meant() {
        for (name, names, meant) in [
            ("BLOK", &["BLOCK", "x"][..], Some("BLOCK")),
            ("num_warp", &["num_ctas", "num_warps"], Some("num_warps")),
            ("ot", &["to", "dot"], Some("to")),
            ("x", &["y"], None),
            ("stride", &["BLOCK"], None),
        ] {
            assert_eq!(closest(name, names.iter().copied()), meant, "{name}");
        }
    }
}
