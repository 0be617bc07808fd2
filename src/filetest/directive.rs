//! What the comments of a file test ask for.

use super::Failure;
use crate::settings::{Asserts, Options, Policy, Promote, Target};
use crate::stages::Stage;
use crate::text::parse::{Comment, Pos, comments};
use crate::text::quote::quoted;

/// What a `; test:` line asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TestKind {
    Parse,
    RoundTrip,
    Verify,
    Stage(Stage),
    Run,
}

/// A `; test:` line.
#[derive(Clone, Debug)]
pub(crate) struct Test {
    pub(crate) line: u32,
    /// Everything after `test:`.
    pub(crate) words: String,
    pub(crate) kind: TestKind,
    pub(crate) target: Target,
    pub(crate) options: Options,
}

/// An annotation: its words and its line.
#[derive(Clone, Debug)]
pub(crate) struct Note {
    pub(crate) line: u32,
    /// Where its comment starts.
    pub(crate) pos: Pos,
    /// Column of the first of the words, if they stand behind one space as usual.
    pub(crate) words_column: u32,
    pub(crate) words: String,
}

/// A `; check:` or `; not:` line.
#[derive(Clone, Debug)]
pub(crate) struct Check {
    pub(crate) note: Note,
    pub(crate) must_occur: bool,
}

/// The comments of a file that mean something.
#[derive(Clone, Debug, Default)]
pub(crate) struct Directives {
    pub(crate) tests: Vec<Test>,
    pub(crate) errors: Vec<Note>,
    pub(crate) checks: Vec<Check>,
    pub(crate) runs: Vec<Note>,
}

impl Directives {
    pub(crate) fn parse(text: &str) -> Result<Directives, Vec<Failure>> {
        let mut directives = Directives::default();
        let mut failures = Vec::new();
        for comment in comments(text) {
            let Some((key, words)) = comment.text.split_once(':') else {
                continue;
            };
            let note = note(&comment, words);
            match key {
                "test" => match parse_test(&note) {
                    Ok(test) => directives.tests.push(test),
                    Err(message) => failures.push(Failure::new(note.line, message)),
                },
                "error" => directives.errors.push(note),
                "check" | "not" => directives.checks.push(Check {
                    note,
                    must_occur: key == "check",
                }),
                "run" => directives.runs.push(note),
                _ => {}
            }
        }
        if failures.is_empty() {
            Ok(directives)
        } else {
            Err(failures)
        }
    }
}

fn note(comment: &Comment, words: &str) -> Note {
    Note {
        line: comment.pos.line,
        pos: comment.pos,
        words_column: comment.pos.column
            + 2
            + (comment.text.len() - words.trim_start().len()) as u32,
        words: words.trim().to_owned(),
    }
}

fn parse_test(note: &Note) -> Result<Test, String> {
    let mut words = note.words.split_whitespace();
    let name = words.next().unwrap_or("");
    let kind = match name {
        "parse" => TestKind::Parse,
        "roundtrip" => TestKind::RoundTrip,
        "verify" => TestKind::Verify,
        "run" => TestKind::Run,
        _ => match Stage::from_name(name) {
            Some(stage) => TestKind::Stage(stage),
            None => {
                let known = "parse, roundtrip, verify, run and the stages";
                let name = quoted(name);
                return Err(format!("unknown test `{name}`; known are {known}"));
            }
        },
    };
    let mut test = Test {
        line: note.line,
        words: note.words.clone(),
        kind,
        target: Target::SM_80,
        options: Options {
            verify_passes: true,
            ..Options::DEFAULT
        },
    };
    for word in words {
        match word.split_once('=') {
            None if word.starts_with("sm_") => {
                test.target = Target::parse(word).map_err(|e| e.to_string())?;
            }
            None if word == "no-fp-fusion" => test.options.fp_fusion = false,
            None if word == "debug" => test.options.asserts = Asserts::Report,
            None if word == "trap" => test.options.asserts = Asserts::Trap,
            None if word == "line-info" => test.options.line_info = true,
            None if word == "no-promotion" => test.options.promote = Promote::Never,
            None if word == "roles" => test.options.roles = Policy::Always,
            None if word == "no-roles" => test.options.roles = Policy::Never,
            None if word == "persistent" => test.options.persistent = Policy::Always,
            None if word == "not-persistent" => test.options.persistent = Policy::Never,
            Some(("maxnreg", number)) => {
                let number = number.parse().map_err(|_| "maxnreg= needs a number")?;
                test.options.max_registers = Some(number);
            }
            Some(("diversity", seed)) => {
                let seed = seed.parse().map_err(|_| "diversity= needs a number")?;
                test.options.diversity = Some(seed);
            }
            _ => return Err(format!("unknown flag `{}`", quoted(word))),
        }
    }
    Ok(test)
}
