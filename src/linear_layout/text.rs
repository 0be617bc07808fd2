//! Text form of layouts: `{reg=[1,2], lane=[4,8,16,0,0], warp=[32]}` or `{offset=[1,2,4]}`.
//!
//! The inputs register, lane and warp are always printed, CTA only if there are several, and a memory
//! layout prints its offsets alone. Parsing accepts any order and any white space, takes an absent input
//! as empty, and needs the shape, which stands elsewhere (in the type of the value).

use std::fmt;

use super::layout::{Columns, HwDim, LayoutError, LayoutKind, LinearLayout};
use super::shape::Shape;

impl fmt::Display for LinearLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let memory = self.kind() == LayoutKind::Memory;
        let mut separator = "{";
        for dim in HwDim::ALL {
            let columns = self.columns(dim);
            let shown = match dim {
                HwDim::Offset => memory,
                HwDim::Cta => !columns.is_empty(),
                HwDim::Register | HwDim::Lane | HwDim::Warp => !memory,
            };
            if !shown {
                continue;
            }
            write!(f, "{separator}{}=[", dim.name())?;
            separator = ", ";
            for (i, column) in columns.iter().enumerate() {
                let comma = if i == 0 { "" } else { "," };
                write!(f, "{comma}{column}")?;
            }
            f.write_str("]")?;
        }
        f.write_str("}")
    }
}

impl fmt::Debug for LinearLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}{self}", self.shape())
    }
}

impl LinearLayout {
    /// The layout of a block of shape `shape` with this text form.
    /// Law: `parse(&layout.to_string(), layout.shape()) == Ok(layout)`.
    pub fn parse(text: &str, shape: Shape) -> Result<LinearLayout, LayoutError> {
        let mut cursor = Cursor { text, at: 0 };
        cursor.expect("{", "`{`")?;
        let mut columns: [Columns; 5] = Default::default();
        let mut seen = [false; 5];
        loop {
            if seen == [false; 5] && cursor.accept("}") {
                break;
            }
            let at = cursor.skip_space();
            let word = cursor.word();
            let dim = HwDim::ALL.into_iter().find(|dim| dim.name() == word);
            let dim = dim.filter(|&dim| !seen[dim as usize]);
            let expected = "one of reg, lane, warp, cta and offset, each once";
            let dim = dim.ok_or(LayoutError::Syntax { at, expected })?;
            seen[dim as usize] = true;
            let offsets = seen[HwDim::Offset as usize];
            if offsets && seen.iter().filter(|&&s| s).count() > 1 {
                let expected = "offset alone or no offset";
                return Err(LayoutError::Syntax { at, expected });
            }
            cursor.expect("=", "`=`")?;
            cursor.expect("[", "`[`")?;
            columns[dim as usize] = cursor.numbers()?;
            if cursor.accept("}") {
                break;
            }
            cursor.expect(",", "`,` or `}`")?;
        }
        let at = cursor.skip_space();
        if at != text.len() {
            let expected = "the end";
            return Err(LayoutError::Syntax { at, expected });
        }
        let kind = if seen[HwDim::Offset as usize] {
            LayoutKind::Memory
        } else {
            LayoutKind::Distributed
        };
        LinearLayout::checked(shape, kind, columns)
    }
}

/// A position in a text.
struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip_space(&mut self) -> usize {
        self.at = self.text.len() - self.rest().trim_start().len();
        self.at
    }

    fn accept(&mut self, token: &str) -> bool {
        self.skip_space();
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    fn expect(&mut self, token: &str, expected: &'static str) -> Result<(), LayoutError> {
        if self.accept(token) {
            return Ok(());
        }
        let at = self.at;
        Err(LayoutError::Syntax { at, expected })
    }

    /// The longest prefix of ASCII letters and digits, possibly empty.
    fn word(&mut self) -> &'a str {
        self.skip_space();
        let rest = self.rest();
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric());
        let word = &rest[..end.unwrap_or(rest.len())];
        self.at += word.len();
        word
    }

    /// Numbers separated by commas up to and including `]`.
    fn numbers(&mut self) -> Result<Columns, LayoutError> {
        let mut numbers = Columns::new();
        if self.accept("]") {
            return Ok(numbers);
        }
        loop {
            let at = self.skip_space();
            let expected = "a number";
            let number = self.word().parse();
            numbers.push(number.map_err(|_| LayoutError::Syntax { at, expected })?);
            // The bound is the one of `LinearLayout::checked`, kept here too so that hostile text
            // costs no memory.
            if numbers.len() > 64 {
                return Err(LayoutError::TooManyBits);
            }
            if self.accept("]") {
                return Ok(numbers);
            }
            self.expect(",", "`,` or `]`")?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(extents: &[u64]) -> Shape {
        Shape::new(extents).expect("powers of two")
    }

    #[test]
    fn text_round_trips() {
        let texts = [
            "{reg=[1,2,4], lane=[8,16,32,64,128], warp=[256,512]}",
            "{reg=[], lane=[0,0,0,0,0], warp=[]}",
            "{reg=[1], lane=[], warp=[], cta=[512]}",
            "{offset=[1,2,5,10]}",
            "{offset=[]}",
        ];
        for text in texts {
            let layout = LinearLayout::parse(text, shape(&[32, 32])).expect(text);
            assert_eq!(layout.to_string(), text);
        }
        let loose = LinearLayout::parse(" { warp = [ 4 ] , reg=[1,2]} ", shape(&[8]));
        assert_eq!(
            loose.expect("any order").to_string(),
            "{reg=[1,2], lane=[], warp=[4]}"
        );
        let empty = LinearLayout::parse("{}", shape(&[8])).expect("nothing at all");
        assert_eq!(empty.to_string(), "{reg=[], lane=[], warp=[]}");
    }

    #[test]
    fn bad_text_is_refused_where_it_is_bad() {
        let cases = [
            ("", "expected `{` at byte 0 of a layout"),
            ("{reg=[1,]}", "expected a number at byte 8 of a layout"),
            ("{reg=[1 2]}", "expected `,` or `]` at byte 8 of a layout"),
            (
                "{reg=[1], reg=[2]}",
                "expected one of reg, lane, warp, cta and offset, each once at byte 10 of a layout",
            ),
            (
                "{reg=[1], offset=[2]}",
                "expected offset alone or no offset at byte 10 of a layout",
            ),
            (
                "{reg=[8]}",
                "column 8 of reg bit 0 is outside a block of 8 elements",
            ),
            (
                "{reg=[99999999999]}",
                "expected a number at byte 6 of a layout",
            ),
            ("{reg=[1]} x", "expected the end at byte 10 of a layout"),
            ("{reg=[1]", "expected `,` or `}` at byte 8 of a layout"),
            (
                "{é}",
                "expected one of reg, lane, warp, cta and offset, each once at byte 1 of a layout",
            ),
        ];
        for (text, message) in cases {
            let error = LinearLayout::parse(text, shape(&[8])).expect_err(text);
            assert_eq!(error.to_string(), message);
        }
    }
}
