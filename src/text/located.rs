//! Messages that point into a text: every command prints mistakes of its input in this form.

use super::parse::Pos;
use super::quote::{DOTS, escape};

/// Characters of a line that are shown; of a longer one, those around the place.
const SHOWN: usize = 160;
/// A message about a place of the text of `file`, with the line and a caret under the place:
///
/// ```text
/// file:2:5: error[P04]: a kernel has no op `frob`
///   |
/// 2 |     frob v0
///   |     ^
/// ```
///
/// Column 0 points at the whole line, line 0 at the whole file.
pub(crate) fn message(file: &str, text: &str, pos: Pos, code: &str, message: &str) -> String {
    let code = match code {
        "" => String::new(),
        code => format!("[{code}]"),
    };
    let (file, message) = (escape(file), escape(message));
    let place = match (pos.line, pos.column) {
        (0, _) => return format!("{file}: error{code}: {message}"),
        (line, 0) => format!("{file}:{line}"),
        (line, column) => format!("{file}:{line}:{column}"),
    };
    let line = text.lines().nth(pos.line as usize - 1);
    let (line, column) = clip(line.unwrap_or("").trim_end(), pos.column as usize);
    let number = pos.line.to_string();
    let margin = " ".repeat(number.len());
    let shown = escape(&line);
    let mut out = format!("{place}: error{code}: {message}\n{margin} |\n{number} | {shown}");
    if column > 0 {
        // Tabs stay tabs, so that the caret stands under its character.
        let before: String = line.chars().take(column - 1).collect();
        let before = escape(&before);
        let space: String = before
            .chars()
            .map(|c| if c == '\t' { c } else { ' ' })
            .collect();
        out += &format!("\n{margin} | {space}^");
    }
    out
}

/// The part of a line around a column, counted from 1, and the column in the part.
fn clip(line: &str, column: usize) -> (String, usize) {
    if line.len() <= SHOWN || line.chars().nth(SHOWN).is_none() {
        return (line.to_owned(), column);
    }
    let skipped = column.saturating_sub(SHOWN / 2);
    let mut rest = line.chars().skip(skipped);
    let mut part: String = rest.by_ref().take(SHOWN).collect();
    if rest.next().is_some() {
        part += DOTS;
    }
    match skipped {
        0 => (part, column),
        _ => (format!("{DOTS}{part}"), column - skipped + DOTS.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caret_stands_under_the_place() {
        let at = |line, column| Pos { line, column };
        assert_eq!(
            message("f", "a\n\tb c\n", at(2, 4), "P01", "no"),
            "f:2:4: error[P01]: no\n  |\n2 | \tb c\n  | \t  ^"
        );
        assert_eq!(
            message("f", "a", at(1, 0), "", "no"),
            "f:1: error: no\n  |\n1 | a"
        );
        assert_eq!(message("f", "a", at(0, 0), "", "no"), "f: error: no");
    }

    #[test]
    fn what_a_terminal_would_obey_is_escaped() {
        let line = "a\t\u{1b}[31mred\u{0}\u{202e}x";
        let column = line.chars().count() as u32;
        let text = message("f\u{7}", line, Pos { line: 1, column }, "", "no \u{9b}");
        let shown: Vec<&str> = text.lines().collect();
        assert_eq!(
            shown[0],
            format!("f\\u{{7}}:1:{column}: error: no \\u{{9b}}")
        );
        assert_eq!(shown[2], "1 | a\t\\u{1b}[31mred\\0\\u{202e}x");
        assert_eq!(shown[3].find('^'), shown[2].find('x'));
        assert!(shown[3].starts_with("  |  \t "), "{text}");
    }

    #[test]
    fn long_lines_are_clipped_around_the_place() {
        let line = format!("{}X{}", "ä".repeat(5_000), "b".repeat(5_000));
        for (column, c) in [(5_001, 'X'), (1, 'ä'), (10_001, 'b'), (10_002, ' ')] {
            let pos = Pos { line: 1, column };
            let text = message("f", &line, pos, "", "no");
            assert!(text.chars().count() < 2 * SHOWN + 60, "{column}: {text}");
            let lines: Vec<Vec<char>> = text.lines().map(|l| l.chars().collect()).collect();
            let caret = lines[3].iter().position(|&c| c == '^').expect("a caret");
            assert_eq!(*lines[2].get(caret).unwrap_or(&' '), c, "{text}");
        }
    }
}
