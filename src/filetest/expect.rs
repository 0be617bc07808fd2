//! Tests of reader, printer and verifier: mistakes at their places, and text that stays the same.

use super::directive::{Directives, Note};
use super::{Failure, TestReport};
use crate::ir::function::Function;
use crate::ir::level::Level;
use crate::testing::difference;
use crate::text::parse::{AnyFunction, Lines, ParseError, ParsedFile, parse_file};
use crate::verify::{show, verify};

/// A mistake that was found, to be matched with the comments.
struct Found {
    line: u32,
    code: &'static str,
    message: String,
}

/// Compares mistakes with `; error:` comments: each has a partner, on its line.
fn compare(mut found: Vec<Found>, expected: &[Note], report: &mut TestReport) {
    for note in expected {
        let (code, words) = note.words.split_once(' ').unwrap_or((&note.words, ""));
        let matches =
            |f: &Found| f.line == note.line && f.code == code && f.message.contains(words);
        match found.iter().position(matches) {
            Some(i) => {
                found.remove(i);
            }
            None => report.fail(
                note.line,
                format!("no mistake `{}` was found here", note.words),
            ),
        }
    }
    for f in found {
        report.fail(
            f.line,
            format!("unexpected mistake: {} {}", f.code, f.message),
        );
    }
}

pub(super) fn check_parse(
    result: Result<ParsedFile, Vec<ParseError>>,
    directives: &Directives,
    report: &mut TestReport,
) {
    let errors = result.err().unwrap_or_default();
    let found = errors.into_iter().map(|e| Found {
        line: e.pos.line,
        code: e.code.name(),
        message: e.message,
    });
    compare(found.collect(), &directives.errors, report);
}

pub(super) fn check_verify(file: &ParsedFile, directives: &Directives, report: &mut TestReport) {
    let mut found = Vec::new();
    let mut shown = String::new();
    for parsed in &file.functions {
        match &parsed.func {
            AnyFunction::Tile(func) => find_errors(func, &parsed.lines, &mut found, &mut shown),
            AnyFunction::Thread(func) => find_errors(func, &parsed.lines, &mut found, &mut shown),
        }
    }
    let failures = report.failures.len();
    compare(found, &directives.errors, report);
    if report.failures.len() > failures && !shown.is_empty() {
        report.fail(0, format!("the functions with all mistakes:\n{shown}"));
    }
}

fn find_errors<L: Level>(
    func: &Function<L>,
    lines: &Lines,
    found: &mut Vec<Found>,
    shown: &mut String,
) {
    let Err(errors) = verify(func) else {
        return;
    };
    shown.push_str(&show(func, &errors));
    found.extend(errors.0.into_iter().map(|e| Found {
        line: lines.of(e.entity),
        code: e.rule.code(),
        message: e.message,
    }));
}

pub(super) fn check_round_trip(text: &str, file: &ParsedFile, report: &mut TestReport) {
    let lines: Vec<&str> = text.lines().collect();
    for parsed in &file.functions {
        let printed = parsed.func.to_string();
        let own = parse_file(&printed).map(|again| {
            let texts: Vec<String> = again.functions.iter().map(|f| f.func.to_string()).collect();
            texts.concat()
        });
        match own {
            Ok(again) if again == printed => {}
            Ok(again) => {
                let message = format!("printing twice differs\n{}", diff(&printed, &again));
                report.fail(parsed.lines.first, message);
            }
            Err(errors) => {
                let message = format!("what was printed cannot be read: {}\n{printed}", errors[0]);
                report.fail(parsed.lines.first, message);
            }
        }
        let (first, last) = (parsed.lines.first as usize, parsed.lines.last as usize);
        let stated: String = lines[first - 1..last.min(lines.len())]
            .iter()
            .map(|line| without_comment(line))
            .filter(|line| !line.is_empty())
            .map(|line| format!("{line}\n"))
            .collect();
        if stated != printed {
            let message = format!(
                "the text is not as it is printed\n{}",
                diff(&stated, &printed)
            );
            report
                .failures
                .push(Failure::new(parsed.lines.first, message));
        }
    }
}

/// A line without its comment; `; #` separates a layout and is none.
fn without_comment(line: &str) -> &str {
    let comment = line
        .char_indices()
        .find(|&(i, c)| c == ';' && !line[i..].starts_with("; #"));
    line[..comment.map_or(line.len(), |(i, _)| i)].trim_end()
}

/// The lines that two texts differ in, for messages.
pub(super) fn diff(expected: &str, found: &str) -> String {
    let lines = difference(expected, found).unwrap_or_default();
    format!("(-: expected, +: found)\n{lines}")
}
