//! What is wrong with a program's text, as data.

use std::fmt;

use crate::text::parse::{Lines, ParseError};
use crate::verify::VerifierErrors;

pub use crate::error_codes::Severity;

/// Why a program's text is not accepted. Shown, it is the text that a terminal gets, with the places.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct SourceError {
    /// The messages, in the order in which they arose; at least one.
    pub diagnostics: Vec<Diagnostic>,
    text: String,
}

/// A message about a program's text.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Diagnostic {
    /// The name that the program was given, or of a file that it imports the path.
    pub file: String,
    /// Line, the first is 1; none of what has no place in a text.
    pub line: Option<u32>,
    /// Column in characters, the first is 1.
    pub column: Option<u32>,
    /// What kind of message it is, as documentation lists them: `F..` of the Triton language
    /// (`tilelift::front::diagnostic::Code`), `P..` of the text form ([`Code`](crate::text::parse::Code)), `V..` of what breaks
    /// rules of the IR ([`Rule`](crate::verify::Rule)). Empty of what has no kind.
    pub code: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong, without a full stop.
    pub message: String,
    /// What else is to be said: about the place, and each call that leads there with its own, innermost first.
    pub notes: Vec<String>,
    /// What to do.
    pub help: Option<String>,
}

impl fmt::Display for Diagnostic {
    /// In one line, without notes and help.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.file)?;
        for number in [self.line, self.column].into_iter().flatten() {
            write!(f, "{number}:")?;
        }
        write!(f, " {}", self.message)
    }
}

impl fmt::Display for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for SourceError {}

impl SourceError {
    /// Of a Python text.
    #[cfg(feature = "triton")]
    pub(crate) fn of_front(errors: &crate::front::Diagnostics) -> SourceError {
        let position = |byte: usize| {
            let (file, line, column) = errors.position(byte);
            let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
            (file, number(line), number(column))
        };
        let diagnostic = |d: &crate::front::Diagnostic| {
            let (file, line, column) = position(d.span.start);
            let label = (!d.label.is_empty()).then(|| d.label.clone());
            let calls = d.calls.iter().map(|call| {
                let (file, line, column) = position(call.span.start);
                format!("in `{}`, called at {file}:{line}:{column}", call.function)
            });
            Diagnostic {
                file,
                line: Some(line),
                column: Some(column),
                code: d.code.name(),
                severity: d.severity,
                message: d.message.clone(),
                notes: label.into_iter().chain(calls).collect(),
                help: d.help.clone(),
            }
        };
        SourceError {
            diagnostics: errors.list.iter().map(diagnostic).collect(),
            text: errors.to_string(),
        }
    }

    /// Of a text of the IR that cannot be read.
    pub(in crate::runtime) fn of_text(name: &str, errors: &[ParseError]) -> SourceError {
        let diagnostics = errors.iter().map(|e| Diagnostic {
            line: Some(e.pos.line),
            column: Some(e.pos.column),
            ..Diagnostic::error(name, e.code.name(), e.message.clone())
        });
        SourceError::shown(diagnostics.collect())
    }

    /// Of a function that breaks rules of the IR; `lines` are those of its text, if it has one.
    pub(in crate::runtime) fn of_function(
        name: &str,
        errors: &VerifierErrors,
        lines: Option<&Lines>,
    ) -> SourceError {
        let diagnostics = errors.0.iter().map(|e| {
            let Some(lines) = lines else {
                let message = format!("{}: {}", e.entity, e.message);
                return Diagnostic::error(name, e.rule.code(), message);
            };
            let pos = lines.pos(e.entity);
            Diagnostic {
                line: Some(pos.line),
                column: (pos.column > 0).then_some(pos.column),
                ..Diagnostic::error(name, e.rule.code(), e.message.clone())
            }
        });
        SourceError {
            diagnostics: diagnostics.collect(),
            text: format!("{name}: {errors}"),
        }
    }

    /// Messages as data, and as text.
    #[cfg(feature = "tool")]
    pub(crate) fn new(diagnostics: Vec<Diagnostic>, text: String) -> SourceError {
        SourceError { diagnostics, text }
    }

    /// Of a file that cannot be read.
    #[cfg(feature = "triton")]
    pub(in crate::runtime) fn unread(name: &str, problem: &str) -> SourceError {
        let message = format!("the file cannot be read: {problem}");
        SourceError::shown(vec![Diagnostic::error(name, "", message)])
    }

    fn shown(diagnostics: Vec<Diagnostic>) -> SourceError {
        let lines: Vec<String> = diagnostics.iter().map(Diagnostic::to_string).collect();
        SourceError {
            text: lines.join("\n"),
            diagnostics,
        }
    }
}

impl Diagnostic {
    pub(crate) fn error(file: &str, code: &'static str, message: String) -> Diagnostic {
        Diagnostic {
            file: file.to_owned(),
            line: None,
            column: None,
            code,
            severity: Severity::Error,
            message,
            notes: Vec::new(),
            help: None,
        }
    }
}
