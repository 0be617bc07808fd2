//! Messages about a source text: what is wrong, where, what was expected and what to do.
//!
//! A message points at a range of bytes of the text. One that arises in a function called by the kernel carries the
//! calls that lead there, innermost first. Rendering is `annotate-snippets`'; of the text only the lines concerned
//! are handed to it, cut to a window where they are very long, so that a message costs little whatever the text is.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use ruff_text_size::TextRange;

use super::files::Parts;

pub use crate::error_codes::Severity;

/// Most messages of one run; what is wrong beyond them shows when they are gone.
pub const MAX_MESSAGES: usize = 20;

/// Longest part of a line that is shown, in bytes.
const MAX_SHOWN: usize = 240;

/// Most calls that are shown of a chain.
const MAX_CALLS: usize = 8;

coded_enum! {
    /// Kinds of messages.
    Code,
    /// The code as it is printed.
    name;

    /// The text is too large, or nested too deeply, to be read.
    Limit = "F01",
    /// The text is not Python.
    Syntax = "F02",
    /// There is no kernel of the name.
    NoKernel = "F03",
    /// The arguments do not fit the kernel's parameters.
    Argument = "F04",
    /// A name that is not defined.
    Name = "F05",
    /// Something has no such attribute.
    Attribute = "F06",
    /// Python that kernels cannot use.
    Unsupported = "F07",
    /// Part of the language, but not of this version.
    NotYet = "F08",
    /// A call whose arguments do not fit the function.
    Call = "F09",
    /// Operands of types that do not go together.
    Type = "F10",
    /// Shapes that do not go together, or that no block can have.
    Shape = "F11",
    /// Something must be known at compile time and is not.
    Constant = "F12",
    /// Compile-time arithmetic that has no result.
    Arithmetic = "F13",
    /// A condition that is not a single truth value.
    Condition = "F14",
    /// The ways through an `if` disagree.
    Branch = "F15",
    /// A variable changes its type in a loop.
    Loop = "F16",
    /// The returns of a function disagree.
    Return = "F17",
    /// `static_assert` failed.
    Assertion = "F18",
    /// Unrolling, recursion or evaluation exceeds its budget.
    Budget = "F19",
    /// A value out of range, or not one of those allowed.
    Value = "F20",
    /// A bug of this compiler.
    Internal = "F21",
    /// Something that is allowed but likely not meant.
    Suspicious = "F22",
    /// What `static_print` prints.
    Print = "F23",
}

/// A call on the way to the place of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallSite {
    /// The function called.
    pub function: String,
    /// Bytes of the call.
    pub span: Range<usize>,
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// What kind it is.
    pub code: Code,
    /// What is wrong, without a full stop.
    pub message: String,
    /// Bytes of the text it is about.
    pub span: Range<usize>,
    /// What stands beside the caret; may be empty.
    pub label: String,
    /// What to do.
    pub help: Option<String>,
    /// Calls that lead there, innermost first.
    pub calls: Vec<CallSite>,
}

/// Bytes of a range of the parser.
pub(crate) fn bytes(range: TextRange) -> Range<usize> {
    usize::from(range.start())..usize::from(range.end())
}

impl Diagnostic {
    /// An error.
    pub(crate) fn error(code: Code, range: TextRange, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            severity: Severity::Error,
            code,
            message: message.into(),
            span: bytes(range),
            label: String::new(),
            help: None,
            calls: Vec::new(),
        }
    }

    /// Text beside the caret.
    pub(crate) fn label(mut self, label: impl Into<String>) -> Diagnostic {
        self.label = label.into();
        self
    }

    /// What to do.
    pub(crate) fn help(mut self, help: impl Into<String>) -> Diagnostic {
        self.help = Some(help.into());
        self
    }

    /// The same as a warning or note.
    pub(crate) fn with_severity(mut self, severity: Severity) -> Diagnostic {
        self.severity = severity;
        self
    }
}

/// Messages about one text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostics {
    /// Name of the text, which is that of the first of its files.
    pub name: String,
    /// The text, with the files that it imports behind it.
    pub text: Arc<str>,
    /// The messages, in the order in which they arose.
    pub list: Vec<Diagnostic>,
}

impl Diagnostics {
    /// Whether any is an error.
    pub fn has_errors(&self) -> bool {
        self.list.iter().any(|d| d.severity == Severity::Error)
    }

    /// The name of the file that holds a byte, and the line and column there, first are 1.
    pub fn position(&self, byte: usize) -> (String, usize, usize) {
        let (name, range) = Parts::of(&self.text).at(&self.name, byte);
        let byte = byte.min(range.end) - range.start;
        let (line, column) = position(&self.text[range], byte);
        (name, line, column)
    }

    /// The name of the file that holds a place, and what of it is shown.
    fn window(&self, parts: &Parts<'_>, span: &Range<usize>) -> (String, Window<'_>) {
        let (name, range) = parts.at(&self.name, span.start);
        let own = |byte: usize| byte.clamp(range.start, range.end) - range.start;
        let span = own(span.start)..own(span.end);
        (name, Window::new(&self.text[range.clone()], &span))
    }

    /// The message as it is shown on a terminal without colours.
    pub fn render(&self, diagnostic: &Diagnostic) -> String {
        self.render_by(diagnostic, &Renderer::plain())
    }

    /// All messages with the colours of a terminal. What of text and names a terminal would obey is replaced.
    pub fn styled(&self) -> String {
        let renderer = Renderer::styled();
        let plain = |text: &str| {
            text.replace(
                |c: char| c.is_control() && c != '\n' && c != '\t',
                "\u{fffd}",
            )
        };
        let shown = Diagnostics {
            name: plain(&self.name),
            ..self.clone()
        };
        let all = self.list.iter().map(|diagnostic| {
            let mut diagnostic = diagnostic.clone();
            diagnostic.message = plain(&diagnostic.message);
            diagnostic.label = plain(&diagnostic.label);
            diagnostic.help = diagnostic.help.as_deref().map(plain);
            shown.render_by(&diagnostic, &renderer)
        });
        all.collect::<Vec<_>>().join("\n\n")
    }

    fn render_by(&self, diagnostic: &Diagnostic, renderer: &Renderer) -> String {
        let level = match diagnostic.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
            Severity::Note => Level::NOTE,
        };
        let parts = Parts::of(&self.text);
        let (file, main) = self.window(&parts, &diagnostic.span);
        let mark = AnnotationKind::Primary.span(main.span.clone());
        let mark = if diagnostic.label.is_empty() {
            mark
        } else {
            mark.label(diagnostic.label.as_str())
        };
        let title = level
            .primary_title(diagnostic.message.as_str())
            .id(diagnostic.code.name());
        let mut groups: Vec<Group<'_>> = vec![title.element(main.snippet(&file).annotation(mark))];
        // Calls of a function by itself are shown once.
        let chains: Vec<&[CallSite]> = diagnostic.calls.chunk_by(|a, b| a == b).collect();
        let calls: Vec<(String, String, Window<'_>)> = chains
            .iter()
            .take(MAX_CALLS)
            .map(|chain| {
                let call = &chain[0];
                let times = match chain.len() {
                    1 => String::new(),
                    n => format!(" ({n} times)"),
                };
                let title = format!("in `{}`, called here{times}", call.function);
                let (file, window) = self.window(&parts, &call.span);
                (title, file, window)
            })
            .collect();
        for (title, file, window) in &calls {
            let mark = AnnotationKind::Primary.span(window.span.clone());
            let snippet = window.snippet(file).annotation(mark);
            groups.push(Level::NOTE.secondary_title(title.as_str()).element(snippet));
        }
        if chains.len() > MAX_CALLS {
            let more: usize = chains[MAX_CALLS..].iter().map(|chain| chain.len()).sum();
            let more = format!("and {more} calls more");
            groups.push(Group::with_title(Level::NOTE.secondary_title(more)));
        }
        if let Some(help) = &diagnostic.help {
            groups.push(Group::with_title(
                Level::HELP.secondary_title(help.as_str()),
            ));
        }
        renderer.render(&groups)
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, diagnostic) in self.list.iter().enumerate() {
            let gap = if i == 0 { "" } else { "\n\n" };
            write!(f, "{gap}{}", self.render(diagnostic))?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostics {}

/// Line and column in characters, first are 1.
pub(crate) fn position(text: &str, byte: usize) -> (usize, usize) {
    let byte = floor_boundary(text, byte);
    let before = &text[..byte];
    let line = before.bytes().filter(|&b| b == b'\n').count() + 1;
    let start = before.rfind('\n').map_or(0, |i| i + 1);
    (line, before[start..].chars().count() + 1)
}

/// The part of a text that a message shows.
struct Window<'a> {
    source: &'a str,
    line: usize,
    /// The range within `source`.
    span: Range<usize>,
}

impl<'a> Window<'a> {
    fn new(text: &'a str, span: &Range<usize>) -> Window<'a> {
        let at = floor_boundary(text, span.start);
        let line_start = text[..at].rfind('\n').map_or(0, |i| i + 1);
        let line_end = text[at..].find('\n').map_or(text.len(), |i| at + i);
        let line_end = if text[..line_end].ends_with('\r') && line_end > at {
            line_end - 1
        } else {
            line_end
        };
        let (mut from, mut to) = (line_start, line_end);
        if to - from > MAX_SHOWN {
            from = floor_boundary(text, at.saturating_sub(MAX_SHOWN / 2).max(line_start));
            to = floor_boundary(text, (at + MAX_SHOWN / 2).min(line_end));
        }
        // A range over several lines is shown by its first.
        let end = floor_boundary(text, span.end).clamp(at, to.max(at));
        Window {
            source: &text[from..to.max(at)],
            line: text[..line_start].bytes().filter(|&b| b == b'\n').count() + 1,
            span: at - from..end - from,
        }
    }

    fn snippet<T: Clone>(&self, name: &'a str) -> Snippet<'a, T> {
        Snippet::source(self.source)
            .line_start(self.line)
            .path(name)
            .fold(false)
    }
}

/// The last boundary of a character at or before `byte`.
fn floor_boundary(text: &str, byte: usize) -> usize {
    let mut byte = byte.min(text.len());
    while !text.is_char_boundary(byte) {
        byte -= 1;
    }
    byte
}
