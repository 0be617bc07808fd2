//! Files that stand for several: `; with:` lines give values to `$` names.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::Failure;
use super::expression::{name_length, replace};
use crate::text::quote::quoted;

/// A text as one of its `; with:` lines makes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileVariant<'a> {
    /// The words of that line; empty if the text has none.
    pub label: String,
    /// The text, line for line that of the file.
    pub text: Cow<'a, str>,
}

/// The texts that a file stands for: for each `; with: NAME=VALUE ..` line one, in which `$NAME` is `VALUE` everywhere, and
/// `$(2*NAME/OTHER-1)` what it comes to. A text without such lines stands for itself, and a `$` in it is a `$`.
///
/// # Errors
///
/// A line that gives no value, one name twice, or other names than the first; a `$` in front of no name, or of one that no line has;
/// parentheses with something else than sums, differences, products and quotients of whole numbers, `cdiv(a, b)`,
/// `next_power_of_2(a)`, `min(a, b)` and `max(a, b)`.
pub fn variants(text: &str) -> Result<Vec<FileVariant<'_>>, Failure> {
    let mut with: Vec<(String, BTreeMap<&str, &str>)> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let Some(words) = line.trim_start().strip_prefix("; with:") else {
            continue;
        };
        let values = values(words).map_err(|message| Failure::new(number, message))?;
        if let Some((_, first)) = with.first()
            && !first.keys().eq(values.keys())
        {
            let message = "every `; with:` line has the names of the first";
            return Err(Failure::new(number, message));
        }
        with.push((words.trim().to_owned(), values));
    }
    if with.is_empty() {
        return Ok(vec![FileVariant {
            label: String::new(),
            text: Cow::Borrowed(text),
        }]);
    }
    let variant = |(label, values)| {
        let text = Cow::Owned(replaced(text, &values)?);
        Ok(FileVariant { label, text })
    };
    with.into_iter().map(variant).collect()
}

fn values(words: &str) -> Result<BTreeMap<&str, &str>, String> {
    let mut values = BTreeMap::new();
    for word in words.split_whitespace() {
        let (name, value) = word
            .split_once('=')
            .filter(|(name, _)| !name.is_empty() && name_length(name) == name.len())
            .ok_or_else(|| format!("`{}` is no NAME=VALUE", quoted(word)))?;
        if values.insert(name, value).is_some() {
            return Err(format!("`{}` has two values", quoted(name)));
        }
    }
    if values.is_empty() {
        return Err("expected NAME=VALUE ..".to_owned());
    }
    Ok(values)
}

fn replaced(text: &str, values: &BTreeMap<&str, &str>) -> Result<String, Failure> {
    let lines = (1..).zip(text.split_inclusive('\n'));
    lines
        .map(|(number, line)| {
            replace(line, values).map_err(|message| Failure::new(number, message))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_stands_for_itself_or_for_several() {
        let plain = "kernel @k() { $N }\n";
        let itself = variants(plain).expect("a text");
        assert_eq!(itself.len(), 1);
        assert_eq!((&*itself[0].label, &*itself[0].text), ("", plain));

        let text = "; with: N=16 type=f32\n  ; with: type=i8  N=4\nx$type[$N,$N] ;$N\n";
        let both = variants(text).expect("a text");
        let last = |variant: &FileVariant<'_>| variant.text.lines().last().map(str::to_owned);
        assert_eq!(
            both.iter().map(|v| &*v.label).collect::<Vec<_>>(),
            ["N=16 type=f32", "type=i8  N=4"]
        );
        assert_eq!(last(&both[0]).as_deref(), Some("xf32[16,16] ;16"));
        assert_eq!(last(&both[1]).as_deref(), Some("xi8[4,4] ;4"));
        assert_eq!(both[0].text.lines().count(), text.lines().count());
    }

    #[test]
    fn mistakes_are_told_with_their_line() {
        for (text, line, part) in [
            ("\n; with:\n", 2, "expected NAME=VALUE"),
            ("; with: N\n", 1, "is no NAME=VALUE"),
            ("; with: =3\n", 1, "is no NAME=VALUE"),
            ("; with: a-b=3\n", 1, "is no NAME=VALUE"),
            ("; with: N=1 N=2\n", 1, "has two values"),
            ("; with: N=1\n; with: M=2\n", 2, "names of the first"),
            ("; with: N=1\nx$M\n", 2, "there is N"),
            ("; with: N=1\nx$\n", 2, "a name or a number is missing"),
        ] {
            let failure = variants(text).expect_err(text);
            assert_eq!(failure.pos.line, line, "{text}");
            assert!(failure.message.contains(part), "{text}: {failure}");
        }
    }
}
