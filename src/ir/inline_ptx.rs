//! Inline PTX: what its two texts say.
//!
//! The template is lines of PTX in which `$0`, `$1`, ... (or `${0}`) stand for registers and `$$` for a dollar: first those
//! of the results, then those of the operands. The constraints name one register each, separated by commas: `=` and
//! a letter for results (`=&` is the same, since results never share registers with operands), a letter for operands.
//! `h` is a register of 16 bits, `r` and `f` of 32, `l` and `d` of 64; what begins with `~` says what the lines
//! overwrite besides and is ignored. The lines run in a scope of their own.
//!
//! One run takes `pack` elements of each value. Of elements narrower than 32 bits as many as fit and no more than
//! `pack` share a register, the first in the low bits; a register may be wider than what it holds.

use std::borrow::Cow;

/// Widths in bits of the registers of results and operands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Constraints {
    pub(crate) outputs: Vec<u32>,
    pub(crate) inputs: Vec<u32>,
}

impl Constraints {
    /// Reads a list of constraints.
    pub(crate) fn parse(text: &str) -> Result<Constraints, String> {
        let mut constraints = Constraints::default();
        for part in text.split(',').map(str::trim) {
            if part.is_empty() || part.starts_with('~') {
                continue;
            }
            let (is_output, letter) = match part.strip_prefix('=') {
                Some(rest) => (true, rest.strip_prefix('&').unwrap_or(rest)),
                None => (false, part),
            };
            let bits = match letter {
                "h" => 16,
                "r" | "f" => 32,
                "l" | "d" => 64,
                _ => return Err(format!("has `{part}`; known are h, r, f, l and d")),
            };
            if !is_output {
                constraints.inputs.push(bits);
            } else if constraints.inputs.is_empty() {
                constraints.outputs.push(bits);
            } else {
                return Err(format!("has `{part}` behind an operand's"));
            }
        }
        Ok(constraints)
    }
}

/// How many registers `pack` elements take, and the bits that each holds.
pub(crate) fn registers(elem_bits: u32, pack: u32) -> (u32, u32) {
    let shared = if elem_bits < 32 {
        pack.min(32 / elem_bits.max(1))
    } else {
        1
    };
    (pack / shared, elem_bits * shared)
}

/// A part of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    Text(&'a str),
    /// The register with this number.
    Register(usize),
}

/// The parts of a template whose registers are numbered below `count`.
pub(crate) fn pieces(template: &str, count: usize) -> Result<Vec<Piece<'_>>, Cow<'static, str>> {
    let printable = |c: char| matches!(c, ' '..='~' | '\t' | '\n' | '\r');
    if !template.chars().all(printable) {
        return Err("has characters that PTX does not".into());
    }
    let mut depth = 0i32;
    for c in template.chars() {
        depth += i32::from(c == '{') - i32::from(c == '}');
        if depth < 0 {
            break;
        }
    }
    if depth != 0 {
        return Err("has braces that do not match".into());
    }
    let mut pieces = Vec::new();
    let mut rest = template;
    while let Some(at) = rest.find('$') {
        pieces.push(Piece::Text(&rest[..at]));
        let tail = &rest[at + 1..];
        if let Some(tail) = tail.strip_prefix('$') {
            pieces.push(Piece::Text("$"));
            rest = tail;
            continue;
        }
        let (braces, tail) = match tail.strip_prefix('{') {
            Some(tail) => (true, tail),
            None => (false, tail),
        };
        let digits = tail.bytes().take_while(u8::is_ascii_digit).count();
        let number = tail[..digits].parse::<usize>();
        let number = number.map_err(|_| "has a `$` without a number; `$$` stands for a dollar")?;
        if number >= count {
            return Err(format!("names ${number} of {count} registers").into());
        }
        pieces.push(Piece::Register(number));
        rest = &tail[digits..];
        if braces {
            rest = rest
                .strip_prefix('}')
                .ok_or("has a `${` without its brace")?;
        }
    }
    pieces.push(Piece::Text(rest));
    Ok(pieces)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constraints_name_registers() {
        let both = Constraints::parse("=r, =&h,f,l,d,~{memory}").expect("known letters");
        assert_eq!(
            (both.outputs, both.inputs),
            (vec![32, 16], vec![32, 64, 64])
        );
        assert!(Constraints::parse("").is_ok());
        for wrong in ["=q", "r,=r", "0", "+r"] {
            assert!(Constraints::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn elements_share_registers_of_32_bits() {
        let cases = [
            ((32, 1), (1, 32)),
            ((32, 4), (4, 32)),
            ((64, 2), (2, 64)),
            ((16, 1), (1, 16)),
            ((16, 2), (1, 32)),
            ((16, 4), (2, 32)),
            ((8, 1), (1, 8)),
            ((8, 2), (1, 16)),
            ((8, 8), (2, 32)),
        ];
        for ((bits, pack), expected) in cases {
            assert_eq!(registers(bits, pack), expected);
        }
    }

    #[test]
    fn templates_come_apart() {
        use Piece::{Register, Text};
        let found = pieces("add.u32 $0, ${1}0, $$L;", 2).expect("two registers");
        let expected = [
            Text("add.u32 "),
            Register(0),
            Text(", "),
            Register(1),
            Text("0, "),
            Text("$"),
            Text("L;"),
        ];
        assert_eq!(found, expected);
        for wrong in ["$2", "$x", "${1", "}", "{", "} {", "\u{e4}", "$"] {
            assert!(pieces(wrong, 2).is_err(), "{wrong}");
        }
    }
}
