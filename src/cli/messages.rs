//! What is said on standard error: text for people, or with `--json` a line for each message, as the library serialises
//! [`Diagnostic`].

use std::io::{self, Write};

use super::Failure;
use super::input::Source;
use crate::runtime::{Diagnostic, Severity, SourceError};
use crate::text::parse::Pos;
use crate::text::quote::escape;

/// Writes a line to standard error, with nothing of an input or a file's name that a terminal would obey; if it is closed,
/// there is nobody to tell.
pub(super) fn say(text: &str) {
    let _ = writeln!(io::stderr(), "{}", escape(text));
}

/// Says messages about a text.
pub(super) fn say_source(error: &SourceError, as_json: bool) {
    match as_json {
        true => say_json(&error.diagnostics),
        false => say(&error.to_string()),
    }
}

/// Says what is no error.
pub(super) fn say_remark(remark: &Diagnostic, as_json: bool) {
    if as_json {
        return say_json(std::slice::from_ref(remark));
    }
    let severity = match remark.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    };
    let help = remark.help.iter().map(|help| format!(": {help}"));
    let help: String = help.collect();
    say(&format!("{severity}: {}{help}", remark.message));
}

/// Says messages about a Python text: in colours where standard error is a terminal, or where the environment asks for them
/// (`NO_COLOR`, `CLICOLOR`, `CLICOLOR_FORCE`).
#[cfg(feature = "triton")]
pub(super) fn say_python(diagnostics: &crate::front::Diagnostics, as_json: bool) {
    use anstream::{AutoStream, ColorChoice};
    match AutoStream::choice(&io::stderr()) {
        _ if as_json => say_json(&SourceError::of_front(diagnostics).diagnostics),
        ColorChoice::Never => say(&diagnostics.to_string()),
        _ => _ = writeln!(anstream::stderr(), "{}", diagnostics.styled()),
    }
}

fn say_json(diagnostics: &[Diagnostic]) {
    for diagnostic in diagnostics {
        // Only maps with keys that are no texts cannot be written.
        if let Ok(line) = serde_json::to_string(diagnostic) {
            let _ = writeln!(io::stderr(), "{line}");
        }
    }
}

impl Source {
    /// A message about a place of the text. Column 0 is the whole line, line 0 the whole text.
    pub(super) fn diagnostic(&self, pos: Pos, code: &'static str, message: &str) -> Diagnostic {
        let known = |n: u32| (n > 0).then_some(n);
        Diagnostic {
            line: known(pos.line),
            column: known(pos.column),
            ..Diagnostic::error(&self.name, code, message.to_owned())
        }
    }

    /// Mistakes at places of the text.
    pub(super) fn mistakes<'m>(
        &self,
        list: impl IntoIterator<Item = (Pos, &'static str, &'m str)>,
    ) -> Failure {
        let list = list.into_iter().map(|(pos, code, message)| {
            (
                self.diagnostic(pos, code, message),
                self.message(pos, code, message),
            )
        });
        let (diagnostics, texts): (Vec<_>, Vec<_>) = list.unzip();
        Failure::Source(Box::new(SourceError::new(diagnostics, texts.join("\n"))))
    }

    /// A mistake at a place of the text.
    pub(super) fn mistake(&self, pos: Pos, code: &'static str, message: &str) -> Failure {
        self.mistakes([(pos, code, message)])
    }
}

impl Failure {
    /// A mistake in a file that has no text, or of the whole of it.
    pub(super) fn of_file(name: &str, line: Option<u32>, message: &str) -> Failure {
        let diagnostic = Diagnostic {
            line,
            ..Diagnostic::error(name, "", message.to_owned())
        };
        let line = line.map_or(String::new(), |line| format!(":{line}"));
        let text = format!("{name}{line}: error: {message}");
        Failure::Source(Box::new(SourceError::new(vec![diagnostic], text)))
    }

    pub(super) fn say(&self, as_json: bool) {
        match self {
            #[cfg(feature = "triton")]
            Failure::Python(diagnostics) => say_python(diagnostics, as_json),
            Failure::Source(error) => say_source(error, as_json),
            other if as_json => {
                let (file, text) = match other {
                    Failure::Io { path, error } => (path.display().to_string(), error.to_string()),
                    other => (String::new(), other.to_string()),
                };
                let message = text.strip_prefix("error: ").unwrap_or(&text);
                say_json(&[Diagnostic::error(&file, "", message.to_owned())]);
            }
            other => say(&other.to_string()),
        }
    }
}
