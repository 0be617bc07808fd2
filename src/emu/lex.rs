//! Splits PTX text into tokens.
//!
//! Dots and `::` belong to words, so that an opcode with all modifiers is one token, as is
//! `%tid.x`. Line-shaped directives (`.loc`, `.file`) are no tokens, since nothing but the end of
//! their line ends them: what `.loc` says is kept beside the tokens.

use super::error::{ParseError, ParseErrorKind, SourceLine};

/// A number as written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum NumberToken {
    /// An integer literal.
    Int(u64),
    /// `0f...`: the bits of an f32.
    Single(u32),
    /// `0d...` or a decimal fraction: an f64.
    Double(f64),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Token<'a> {
    Word(&'a str),
    Number(NumberToken),
    Text(&'a str),
    Punct(u8),
    End,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Located<'a> {
    pub(super) token: Token<'a>,
    pub(super) line: u32,
}

fn error(line: u32, message: impl Into<String>) -> ParseError {
    ParseError {
        line,
        kind: ParseErrorKind::Syntax(message.into()),
    }
}

fn starts_word(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'$' | b'%' | b'.')
}

fn continues_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'.' | b'%')
}

/// The lines of `.loc` in order, and the place in the source that the text behind each comes from.
pub(super) type Sources = Vec<(u32, SourceLine)>;

/// All tokens of `text`, ending with [`Token::End`], and where they come from.
pub(super) fn tokens(text: &str) -> Result<(Vec<Located<'_>>, Sources), ParseError> {
    let bytes = text.as_bytes();
    let at = |i: usize| bytes.get(i).copied().unwrap_or(0);
    let mut out = Vec::with_capacity(text.len() / 4);
    let mut sources = Sources::new();
    let (mut i, mut line) = (0, 1);
    while i < bytes.len() {
        let byte = bytes[i];
        let start = i;
        match byte {
            b'\n' => {
                line += 1;
                i += 1;
            }
            b' ' | b'\t' | b'\r' => i += 1,
            b'/' if at(i + 1) == b'/' => i = end_of_line(bytes, i),
            b'/' if at(i + 1) == b'*' => {
                let opened = line;
                i += 2;
                while !(at(i) == b'*' && at(i + 1) == b'/') {
                    if i >= bytes.len() {
                        return Err(error(opened, "comment is not closed"));
                    }
                    line += u32::from(bytes[i] == b'\n');
                    i += 1;
                }
                i += 2;
            }
            b'"' => {
                i += 1;
                while at(i) != b'"' {
                    if i >= bytes.len() || bytes[i] == b'\n' {
                        return Err(error(line, "string is not closed"));
                    }
                    i += 1;
                }
                out.push(Located {
                    token: Token::Text(&text[start + 1..i]),
                    line,
                });
                i += 1;
            }
            b'0'..=b'9' => {
                while continues_word(at(i))
                    || (matches!(at(i), b'+' | b'-')
                        && matches!(at(i - 1), b'e' | b'E')
                        && !text[start..i].starts_with("0x"))
                {
                    i += 1;
                }
                let word = &text[start..i];
                let number =
                    number(word).ok_or_else(|| error(line, format!("`{word}` is no number")))?;
                out.push(Located {
                    token: Token::Number(number),
                    line,
                });
            }
            _ if starts_word(byte) => {
                i += 1;
                while continues_word(at(i)) || (at(i) == b':' && at(i + 1) == b':') {
                    i += if at(i) == b':' { 2 } else { 1 };
                }
                let word = &text[start..i];
                if matches!(word, ".loc" | ".file") {
                    let end = end_of_line(bytes, i);
                    if word == ".loc"
                        && let Some(source) = location(&text[i..end])
                    {
                        sources.push((line, source));
                    }
                    i = end;
                } else {
                    out.push(Located {
                        token: Token::Word(word),
                        line,
                    });
                }
            }
            b',' | b';' | b'[' | b']' | b'{' | b'}' | b'(' | b')' | b'<' | b'>' | b'@' | b'!'
            | b'|' | b'=' | b'+' | b'-' | b':' => {
                out.push(Located {
                    token: Token::Punct(byte),
                    line,
                });
                i += 1;
            }
            _ => {
                let character = text[start..].chars().next().unwrap_or('?');
                return Err(error(line, format!("unexpected character {character:?}")));
            }
        }
    }
    out.push(Located {
        token: Token::End,
        line,
    });
    Ok((out, sources))
}

/// What `.loc` says: a file and a line of it, from 1, and a column.
fn location(rest: &str) -> Option<SourceLine> {
    let mut numbers = rest.split_whitespace().map(|word| word.parse().ok());
    let mut next = || numbers.next()?;
    let (file, line) = (next()?, next()?);
    (line > 0).then_some(SourceLine { file, line })
}

fn end_of_line(bytes: &[u8], from: usize) -> usize {
    bytes[from..]
        .iter()
        .position(|&byte| byte == b'\n')
        .map_or(bytes.len(), |at| from + at)
}

fn number(word: &str) -> Option<NumberToken> {
    if let Some(hex) = word.strip_prefix("0f").or(word.strip_prefix("0F")) {
        return (hex.len() == 8)
            .then(|| u32::from_str_radix(hex, 16).ok())
            .flatten()
            .map(NumberToken::Single);
    }
    if let Some(hex) = word.strip_prefix("0d").or(word.strip_prefix("0D")) {
        let bits = (hex.len() == 16)
            .then(|| u64::from_str_radix(hex, 16).ok())
            .flatten()?;
        return Some(NumberToken::Double(f64::from_bits(bits)));
    }
    let plain = word.strip_suffix('U').unwrap_or(word);
    if let Some(hex) = plain.strip_prefix("0x").or(plain.strip_prefix("0X")) {
        return u64::from_str_radix(hex, 16).ok().map(NumberToken::Int);
    }
    if let Some(binary) = plain.strip_prefix("0b").or(plain.strip_prefix("0B")) {
        return u64::from_str_radix(binary, 2).ok().map(NumberToken::Int);
    }
    if plain.bytes().all(|byte| byte.is_ascii_digit()) {
        let octal = plain.len() > 1 && plain.starts_with('0');
        return u64::from_str_radix(plain, if octal { 8 } else { 10 })
            .ok()
            .map(NumberToken::Int);
    }
    plain.parse().ok().map(NumberToken::Double)
}
