//! Names that somebody may have meant.

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

#[cfg(test)]
mod tests {
    use super::*;

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
