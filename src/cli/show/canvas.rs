//! Rectangles and words as SVG.

use std::fmt::Write as _;

use crate::cli::explain::html::plain;
use crate::text::quote::escape;

/// Red, green and blue.
pub(super) type Colour = [u8; 3];

/// A picture that grows to the right and downwards with what is drawn.
#[derive(Default)]
pub(super) struct Canvas {
    body: String,
    right: usize,
    bottom: usize,
}

/// Space around everything.
const MARGIN: usize = 10;

/// Left, top, width and height.
pub(super) type Rect = [usize; 4];

impl Canvas {
    /// Words that begin at `x` and stand on `y`.
    pub(super) fn text(&mut self, x: usize, y: usize, words: &str) {
        // A letter of 11 pixels is 6.6 wide.
        self.grow(x + words.chars().count() * 7, y + 4);
        let words = plain(&escape(words));
        let _ = writeln!(self.body, "<text x=\"{x}\" y=\"{y}\">{words}</text>");
    }

    /// Words in the middle of a place.
    pub(super) fn label(&mut self, [x, y, width, height]: Rect, words: &str) {
        let (x, y) = (x + width / 2, y + height / 2 + 4);
        let words = plain(&escape(words));
        let _ = writeln!(
            self.body,
            "<text x=\"{x}\" y=\"{y}\" text-anchor=\"middle\">{words}</text>"
        );
    }

    /// A rectangle; the title appears under the pointer.
    pub(super) fn rect(&mut self, place: Rect, colour: Colour, title: &str) {
        let [x, y, width, height] = place;
        self.grow(x + width, y + height);
        let [r, g, b] = colour;
        let title = match title {
            "" => String::new(),
            title => format!("<title>{}</title>", plain(&escape(title))),
        };
        let _ = writeln!(
            self.body,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" fill=\"rgb({r},{g},{b})\" stroke=\"white\">{title}</rect>"
        );
    }

    fn grow(&mut self, right: usize, bottom: usize) {
        self.right = self.right.max(right);
        self.bottom = self.bottom.max(bottom);
    }

    /// The first free line below everything.
    pub(super) fn below(&self) -> usize {
        self.bottom + MARGIN
    }

    /// The file.
    pub(super) fn finish(self) -> String {
        let (width, height) = (self.right + MARGIN, self.bottom + MARGIN);
        let body = self.body;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
             font-family=\"monospace\" font-size=\"11\">\n<rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>\n{body}</svg>\n"
        )
    }
}

/// Words in a colour, for a terminal that has some.
pub(super) fn painted(words: &str, [r, g, b]: Colour, colours: bool) -> String {
    match colours {
        true => format!("\u{1b}[38;2;0;0;0;48;2;{r};{g};{b}m{words}\u{1b}[0m"),
        false => words.to_owned(),
    }
}
