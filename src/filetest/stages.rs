//! Tests of a stage's text: compared as a whole with the comments after the function, or searched for
//! lines.

use super::directive::{Check, Directives, Test, TestKind};
use super::expect::diff;
use super::{TestConfig, TestReport, report_violations};
use crate::stages::{Stage, emit};
use crate::text::parse::{ParsedFile, ParsedFunction};
use crate::verify::verify;

/// What a stage test works with.
pub(super) struct Context<'a> {
    pub(super) text: &'a str,
    pub(super) directives: &'a Directives,
    pub(super) test: &'a Test,
    pub(super) stage: Stage,
    pub(super) config: TestConfig<'a>,
}

pub(super) fn check(file: &ParsedFile, context: &Context<'_>, report: &mut TestReport) {
    for (i, parsed) in file.functions.iter().enumerate() {
        let belongs = |line: u32| function_of(file, line) == i;
        check_function(parsed, &belongs, context, report);
    }
}

/// The function a line belongs to: the last that starts at or above it, or the first.
pub(super) fn function_of(file: &ParsedFile, line: u32) -> usize {
    let after = file.functions.iter().position(|f| f.lines.first > line);
    after.unwrap_or(file.functions.len()).saturating_sub(1)
}

fn check_function(
    parsed: &ParsedFunction,
    belongs: &dyn Fn(u32) -> bool,
    context: &Context<'_>,
    report: &mut TestReport,
) {
    let line = parsed.lines.first;
    let Some(func) = parsed.func.as_tile() else {
        return report.fail(line, "only a `kernel` is compiled");
    };
    if let Err(errors) = verify(func) {
        return report_violations(&errors, &parsed.lines, report);
    }
    let result = emit(
        func,
        context.test.target,
        &context.test.options,
        context.stage,
    );
    let refused = context.directives.errors.iter().find(|e| belongs(e.line));
    let found = match (result, refused) {
        (Ok(_), Some(note)) => {
            return report.fail(
                note.line,
                format!("compiled, but should not: {}", note.words),
            );
        }
        (Err(error), Some(note)) => {
            if !error.to_string().contains(&note.words) {
                let message = format!("refused with `{error}`, not with `{}`", note.words);
                report.fail(note.line, message);
            }
            return;
        }
        (Err(error), None) => {
            let message = format!("{} {}: {error}", context.stage.name(), context.test.target);
            return report.fail(line, message);
        }
        (Ok(found), None) => found,
    };
    let checks = context.directives.checks.iter();
    let checks: Vec<&Check> = checks.filter(|c| belongs(c.note.line)).collect();
    if checks.is_empty() {
        compare_block(parsed, &found, context, report);
    } else {
        search(&checks, &found, report);
    }
}

/// Searches for `check` lines in order; `not` lines must not occur between their neighbours.
fn search(checks: &[&Check], text: &str, report: &mut TestReport) {
    let mut at = 0;
    let mut forbidden: Vec<&Check> = Vec::new();
    for check in checks {
        if !check.must_occur {
            forbidden.push(check);
            continue;
        }
        let words = &check.note.words;
        let Some(found) = text[at..].find(words.as_str()) else {
            let message = format!("`{words}` does not follow in:\n{text}");
            return report.fail(check.note.line, message);
        };
        fail_forbidden(&forbidden, &text[at..at + found], text, report);
        forbidden.clear();
        at += found + words.len();
    }
    fail_forbidden(&forbidden, &text[at..], text, report);
}

fn fail_forbidden(forbidden: &[&Check], part: &str, text: &str, report: &mut TestReport) {
    for check in forbidden {
        let words = &check.note.words;
        if part.contains(words.as_str()) {
            let message = format!("`{words}` occurs, but should not, in:\n{text}");
            report.fail(check.note.line, message);
        }
    }
}

/// Starts the part of a block that belongs to one of several tests: `; == ptx sm_80`.
const SECTION: &str = "; == ";

/// Compares the block of comments right after the function, or rewrites it. In a file with several such tests, each has
/// the section under its own words.
fn compare_block(
    parsed: &ParsedFunction,
    found: &str,
    context: &Context<'_>,
    report: &mut TestReport,
) {
    let lines: Vec<&str> = context.text.lines().collect();
    let block_start = (parsed.lines.last as usize).min(lines.len());
    let block = lines[block_start..]
        .iter()
        .take_while(|line| line.starts_with(';'));
    let block_end = block_start + block.count();
    let is_stage = |test: &&Test| matches!(test.kind, TestKind::Stage(_));
    let heading = (context.directives.tests.iter().filter(is_stage).count() > 1)
        .then(|| format!("{SECTION}{}", context.test.words));
    let (start, end, is_new) = match &heading {
        None => (block_start, block_end, false),
        Some(heading) => section(&lines, block_start, block_end, heading),
    };
    let expected: String = lines[start..end]
        .iter()
        .map(|line| {
            let line = line.strip_prefix("; ").unwrap_or(&line[1..]);
            format!("{line}\n")
        })
        .collect();
    if !is_new && expected.trim_end() == found.trim_end() {
        return;
    }
    if !context.config.bless {
        let message = format!(
            "{} {} differs; BLESS=1 rewrites the expectation\n{}",
            context.stage.name(),
            context.test.target,
            diff(expected.trim_end(), found.trim_end())
        );
        return report.fail(parsed.lines.first, message);
    }
    let comment = |line: &str| format!("; {line}").trim_end().to_owned() + "\n";
    let heading = heading.filter(|_| is_new).map(|line| line + "\n");
    let mut new = heading.unwrap_or_default();
    new.extend(found.trim_end().lines().map(comment));
    report.edits.push((start..end, new));
}

/// First and last line of the section under a heading, and whether it is still to be made, at the end of the block.
fn section(lines: &[&str], start: usize, end: usize, heading: &str) -> (usize, usize, bool) {
    match lines[start..end].iter().position(|&line| line == heading) {
        None => (end, end, true),
        Some(at) => {
            let first = start + at + 1;
            let next = lines[first..end]
                .iter()
                .position(|line| line.starts_with(SECTION));
            (first, next.map_or(end, |n| first + n), false)
        }
    }
}
