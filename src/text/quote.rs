//! What messages quote of an input: bounded, and with escapes for characters that a terminal would obey.

use std::fmt::Write as _;

/// What stands for the characters that are not shown.
pub(super) const DOTS: &str = "...";
/// Characters that a message quotes of a name or a number.
const QUOTED: usize = 40;
/// Names that a message lists.
const LISTED: usize = 8;

/// Whether a terminal may do something else than show a character: controls, and marks that change the direction of writing.
fn is_obeyed(c: char) -> bool {
    let turns = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || turns
}

/// A text whose characters are all shown and not obeyed, but for tabs and ends of lines.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\t' | '\n' => out.push(c),
            '\0' => out.push_str("\\0"),
            _ if is_obeyed(c) => out.extend(c.escape_default()),
            _ => out.push(c),
        }
    }
    out
}

/// A name, a number or a token as messages quote it.
pub(crate) fn quoted(text: &str) -> String {
    quoted_within(text, QUOTED)
}

/// A text of at most this many characters, or the first of them, as messages quote it.
pub(crate) fn quoted_within(text: &str, most: usize) -> String {
    let (shown, dots) = match text.char_indices().nth(most) {
        Some((end, _)) => (&text[..end], DOTS),
        None => (text, ""),
    };
    let shown = shown.replace('\n', "\\n").replace('\t', "\\t");
    escape(&shown) + dots
}

/// The first few of several names, and how many more there are.
pub(crate) fn listed(names: impl ExactSizeIterator<Item = impl AsRef<str>>) -> String {
    let more = names.len().saturating_sub(LISTED);
    let shown: Vec<String> = names
        .take(LISTED)
        .map(|name| quoted(name.as_ref()))
        .collect();
    let mut out = shown.join(", ");
    if more > 0 {
        let _ = write!(out, " and {more} more");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_quoted_is_bounded() {
        assert_eq!(quoted(&"ä".repeat(QUOTED)), "ä".repeat(QUOTED));
        let long = quoted(&"ä".repeat(100_000));
        assert_eq!(long, "ä".repeat(QUOTED) + DOTS);
        assert_eq!(listed(["a", "b"].iter()), "a, b");
        let names = ["x"; 100];
        assert_eq!(listed(names[..8].iter()), "x, x, x, x, x, x, x, x");
        assert_eq!(listed(names.iter()), "x, x, x, x, x, x, x, x and 92 more");
    }

    #[test]
    fn controls_are_escaped() {
        assert_eq!(quoted("a\tb\n\u{1b}"), "a\\tb\\n\\u{1b}");
    }
}
