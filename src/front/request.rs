//! Lines that say what a kernel is compiled for: `NAME "SIGNATURE" [CONSTANT=VALUE]..`, behind `# run:` and `# kernel:`.

use super::kernel::Specialization;
use super::signature::{Constant, parse_signature};

/// Reads such a line: the signature, constants and numbers of warps, stages and CTAs become those of `spec`, and the kernel's
/// name, if there is one, is returned. `take` is asked first what an entry means, and whether it is done with.
pub(crate) fn read_request(
    line: &str,
    spec: &mut Specialization,
    take: &mut dyn FnMut(&str, &str) -> Result<bool, String>,
) -> Result<Option<String>, String> {
    let parts = line.split_once('"').and_then(|(kernel, rest)| {
        let (signature, constants) = signature_and_rest(rest)?;
        Some((kernel.trim(), signature, constants))
    });
    let (kernel, signature, entries) =
        parts.ok_or("the signature in quotation marks is missing")?;
    spec.args = parse_signature(signature).map_err(|error| error.to_string())?;
    for entry in entries.split_whitespace() {
        if let Some((name, value)) = entry.split_once('=')
            && take(name, value)?
        {
            continue;
        }
        let (name, value) = named_constant(entry)?;
        match (name.as_str(), &value) {
            ("num_warps", Constant::Int(n)) => spec.num_warps = u32::try_from(*n).unwrap_or(0),
            ("num_stages", Constant::Int(n)) => {
                let stages = u8::try_from(*n).ok().filter(|n| (1..=32).contains(n));
                spec.num_stages = Some(stages.ok_or("num_stages is 1 to 32")?);
            }
            ("num_ctas", Constant::Int(n)) => spec.num_ctas = u32::try_from(*n).unwrap_or(0),
            _ => spec.constants.push((name, value)),
        }
    }
    Ok((!kernel.is_empty()).then(|| kernel.to_owned()))
}

/// What stands before the mark that ends a signature, and behind it: one with a blank or nothing behind it that is not inside of
/// a quoted string. Constants behind the signature may be quoted strings, too.
fn signature_and_rest(text: &str) -> Option<(&str, &str)> {
    text.match_indices('"')
        .enumerate()
        .filter(|(before, _)| before % 2 == 0)
        .map(|(_, (at, _))| (&text[..at], &text[at + 1..]))
        .find(|(_, rest)| rest.is_empty() || rest.starts_with(char::is_whitespace))
}

/// `NAME=VALUE`.
pub(crate) fn named_constant(entry: &str) -> Result<(String, Constant), String> {
    let constant = entry
        .split_once('=')
        .and_then(|(name, value)| Some((name.trim().to_owned(), Constant::parse(value)?)));
    constant.ok_or_else(|| {
        format!(
            "{entry}: expected NAME=VALUE, where VALUE is a number of at most 127 bits, True, False, None, a quoted string, a \
             type, or @NAME for a function of the file"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_end_where_their_mark_is() {
        for (text, signature, rest) in [
            (r#"*fp32, i32" BLOCK=64"#, "*fp32, i32", " BLOCK=64"),
            (r#"*fp32" S="x" T="y""#, "*fp32", r#" S="x" T="y""#),
            (r#"*fp32, "x"" S="y""#, r#"*fp32, "x""#, r#" S="y""#),
            (r#"""#, "", ""),
        ] {
            assert_eq!(signature_and_rest(text), Some((signature, rest)), "{text}");
        }
        assert_eq!(signature_and_rest("*fp32"), None);
    }
}
