//! Text to tokens and comments.
//!
//! A `;` opens a comment, except inside of square brackets before a `#`, where it separates the extents of a type
//! from its layout.

use super::parse::{Code, Comment, ParseError, Pos};

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// Letters, digits, `_` and `$`, not starting with a digit.
    Word,
    /// A number: starts with a digit or `-`.
    Number,
    /// A quoted string, quotes included.
    String,
    /// One character of punctuation.
    Punct(char),
    /// The end of the text.
    End,
}

/// A token.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token<'a> {
    /// What it is.
    pub(crate) kind: TokenKind,
    /// Its text.
    pub(crate) text: &'a str,
    /// Byte offset of its start.
    pub(crate) start: usize,
    /// Where it starts.
    pub(crate) pos: Pos,
}

/// The tokens of a text, ended by [`TokenKind::End`].
#[derive(Debug, Default)]
pub(crate) struct Lexed<'a> {
    pub(crate) tokens: Vec<Token<'a>>,
    pub(crate) comments: Vec<Comment>,
    pub(crate) errors: Vec<ParseError>,
}

/// What a byte begins.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CharClass {
    Space,
    Word,
    Digit,
    Quote,
    Punct,
    /// Anything else, also a character that is not ASCII.
    Other,
}

/// What each byte begins.
static CLASSES: [CharClass; 256] = {
    let mut classes = [CharClass::Other; 256];
    let mut byte = 0;
    while byte < 256 {
        classes[byte] = match byte as u8 {
            b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c => CharClass::Space,
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$' => CharClass::Word,
            b'0'..=b'9' | b'-' => CharClass::Digit,
            b'"' => CharClass::Quote,
            b'(' | b')' | b'{' | b'}' | b'[' | b']' | b'<' | b'>' => CharClass::Punct,
            b',' | b':' | b'=' | b'@' | b'#' | b';' => CharClass::Punct,
            _ => CharClass::Other,
        };
        byte += 1;
    }
    classes
};

/// Splits a text. Characters that fit nowhere are errors and left out.
pub(crate) fn lex(text: &str) -> Lexed<'_> {
    let mut out = Lexed::default();
    // As printed a token is four bytes long with the space behind it, or longer.
    out.tokens.reserve(text.len() / 4);
    let mut line_number = 0;
    for line in text.split_inclusive('\n') {
        line_number += 1;
        let start = line.as_ptr() as usize - text.as_ptr() as usize;
        lex_line(line.trim_end(), start, line_number, &mut out);
    }
    let last = text.lines().next_back().unwrap_or("");
    out.tokens.push(Token {
        kind: TokenKind::End,
        text: "",
        start: text.len(),
        pos: Pos {
            line: line_number.max(1),
            column: last.chars().count() as u32 + 1,
        },
    });
    out
}

fn lex_line<'a>(line: &'a str, line_start: usize, number: u32, out: &mut Lexed<'a>) {
    let bytes = line.as_bytes();
    let mut at = 0;
    let mut brackets = 0u32;
    // Columns count characters: bytes, less those that go on with a character.
    let mut continued = 0;
    let mut tokens_here = false;
    while let Some(&byte) = bytes.get(at) {
        let rest = &line[at..];
        let pos = Pos {
            line: number,
            column: (at - continued) as u32 + 1,
        };
        let (kind, length) = match CLASSES[usize::from(byte)] {
            CharClass::Space => {
                at += 1;
                continue;
            }
            CharClass::Word => {
                let is_word = |&&b: &&u8| is_word_byte(b);
                let more = bytes[at + 1..].iter().take_while(is_word).count();
                (TokenKind::Word, 1 + more)
            }
            CharClass::Digit => (TokenKind::Number, number_length(rest)),
            CharClass::Quote => match string_length(rest) {
                Some(length) => (TokenKind::String, length),
                None => {
                    let message = "the string does not end on its line; add `\"`";
                    out.errors
                        .push(ParseError::new(Code::Token, pos, message.to_owned()));
                    return;
                }
            },
            CharClass::Punct => {
                // `[16; #0]`, `[16; shared]` and `[16; shared #0]` are types.
                let is_place = || {
                    let behind = rest[1..].trim_start();
                    let place = behind.strip_prefix("shared").unwrap_or("").trim_start();
                    behind.starts_with('#') || place.starts_with(['#', ']'])
                };
                match byte {
                    b'[' => brackets += 1,
                    b']' => brackets = brackets.saturating_sub(1),
                    b';' if brackets == 0 || !is_place() => {
                        out.comments.push(Comment {
                            pos,
                            own_line: !tokens_here,
                            text: rest[1..].trim().to_owned(),
                        });
                        return;
                    }
                    _ => {}
                }
                (TokenKind::Punct(char::from(byte)), 1)
            }
            CharClass::Other => {
                let c = rest.chars().next().unwrap_or_default();
                if !c.is_whitespace() {
                    let message = format!("unexpected character {c:?}; remove it");
                    out.errors.push(ParseError::new(Code::Token, pos, message));
                }
                at += c.len_utf8();
                continued += c.len_utf8() - 1;
                continue;
            }
        };
        let token = &rest[..length];
        if kind == TokenKind::String {
            continued += token.len() - token.chars().count();
        }
        tokens_here = true;
        out.tokens.push(Token {
            kind,
            text: token,
            start: line_start + at,
            pos,
        });
        at += length;
    }
}

fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$'
}

/// Length of a number: digits, letters and dots, with a sign after an exponent's `e`. A range `4..8` is not a number.
fn number_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let hex = text.starts_with("0x");
    let mut length = 1;
    while let Some(&byte) = bytes.get(length) {
        let exponent = !hex && matches!(bytes[length - 1], b'e' | b'E');
        let sign = exponent && matches!(byte, b'-' | b'+');
        if !(byte.is_ascii_alphanumeric() || byte == b'.' || sign) {
            break;
        }
        length += 1;
    }
    length
}

/// Length of a string with its quotes; none if it does not end.
fn string_length(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (i, c) in text.char_indices().skip(1) {
        match c {
            '"' if !escaped => return Some(i + 1),
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    None
}

/// The contents of a string token; none if an escape is unknown.
pub(crate) fn unquote(token: &str) -> Option<String> {
    let inner = token.strip_prefix('"')?.strip_suffix('"')?;
    let mut out = String::new();
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next()? {
            c @ ('"' | '\\') => out.push(c),
            'u' => {
                let hex = chars.as_str().strip_prefix('{')?;
                let (hex, rest) = hex.split_once('}')?;
                out.push(char::from_u32(u32::from_str_radix(hex, 16).ok()?)?);
                chars = rest.chars();
            }
            _ => return None,
        }
    }
    Some(out)
}

/// A string token with these contents, in ASCII.
pub(crate) fn quote(contents: &str) -> String {
    let mut out = String::from("\"");
    for c in contents.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            ' '..='~' => out.push(c),
            _ => out.push_str(&format!("\\u{{{:x}}}", u32::from(c))),
        }
    }
    out.push('"');
    out
}

/// Whether a name may stand without quotes.
pub(crate) fn is_word(name: &str) -> bool {
    name.bytes().all(is_word_byte)
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && !name.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_semicolon_before_a_layout_is_no_comment() {
        let lexed = lex("v1 : f32[16; #0] ; note\n; own");
        let texts: Vec<&str> = lexed.tokens.iter().map(|t| t.text).collect();
        assert_eq!(texts, ["v1", ":", "f32", "[", "16", ";", "#", "0", "]", ""]);
        let comments: Vec<(&str, bool)> = lexed
            .comments
            .iter()
            .map(|c| (&*c.text, c.own_line))
            .collect();
        assert_eq!(comments, [("note", false), ("own", true)]);
        assert!(lexed.errors.is_empty());
        // A bracket that is never closed does not make a comment code.
        let lexed = lex("v1 : f32[16 ; `note`");
        assert_eq!((lexed.comments.len(), lexed.errors.len()), (1, 0));
    }

    #[test]
    fn columns_count_characters() {
        let lexed = lex("\"gr\u{f6}\u{df}e\" \u{e9}\u{3000}x -1 y");
        let columns: Vec<(&str, u32)> = lexed
            .tokens
            .iter()
            .map(|t| (t.text, t.pos.column))
            .collect();
        let wanted = [
            ("\"gr\u{f6}\u{df}e\"", 1),
            ("x", 11),
            ("-1", 13),
            ("y", 16),
            ("", 17),
        ];
        assert_eq!(columns, wanted);
        // White space of any kind is none, a letter outside of strings is a mistake.
        let errors: Vec<u32> = lexed.errors.iter().map(|e| e.pos.column).collect();
        assert_eq!(errors, [9]);
    }

    #[test]
    fn strings_round_trip() {
        for text in ["", "x", "a\"b\\c", "tab\tnew\nline", "größe", "\\u{41}"] {
            let quoted = quote(text);
            assert!(quoted.is_ascii());
            assert_eq!(string_length(&quoted), Some(quoted.len()), "{quoted}");
            assert_eq!(unquote(&quoted).as_deref(), Some(text));
        }
        assert_eq!(unquote("\"\\q\""), None);
        assert_eq!(unquote("\"\\u{110000}\""), None);
    }

    #[test]
    fn numbers_carry_signs_and_exponents() {
        let texts: Vec<&str> = lex("-1.5e-7,0x7fe-inf 1e+3")
            .tokens
            .iter()
            .map(|t| t.text)
            .collect();
        assert_eq!(texts, ["-1.5e-7", ",", "0x7fe", "-inf", "1e+3", ""]);
    }
}
