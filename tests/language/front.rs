//! The Triton language: files in `tests/filetests/front` say in comments what is made of them.
//!
//! ```text
//! # tile: NAME "SIGNATURE" [CONSTANT=VALUE]..             the tile IR is as stated
//! # error: NAME "SIGNATURE" [CONSTANT=VALUE]..            the messages are as stated
//! # run: NAME "SIGNATURE" [CONSTANT=VALUE].. : RUN LINE   on interpreter, emulator and GPU, as `; run:` lines of .tir files
//! ```
//!
//! What is stated stands in comments at the end of the file, one section for each line, headed by its words:
//! `# == tile NAME ..`. `BLESS=1` rewrites them. The files of `wrong` are programs that do not compile, some of them no
//! Python at all.
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use tilelift::filetest::TestConfig;
use tilelift::filetest::run::{Setup, run_lines};
use tilelift::front::diagnostic::Code;
use tilelift::front::{Constant, Diagnostics, Lowered, Module, Specialization, parse_signature};
use tilelift::settings::{Options, Target};

/// A comment that asks for something.
pub(crate) struct Directive {
    line: usize,
    pub(crate) kind: String,
    /// Everything after the kind, up to the run line.
    pub(crate) words: String,
    pub(crate) kernel: String,
    pub(crate) spec: Specialization,
    pub(crate) run: String,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/filetests/front")
}

fn files() -> Vec<PathBuf> {
    let folders = [folder(), folder().join("wrong")];
    let entries = folders
        .iter()
        .flat_map(|folder| std::fs::read_dir(folder).expect("the folder is there"));
    let paths = entries.map(|entry| entry.expect("readable").path());
    let mut files: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|e| e == "py"))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "no files");
    files
}

pub(crate) fn directives(text: &str) -> Vec<Directive> {
    let mut found = Vec::new();
    for (i, line) in text.lines().enumerate() {
        let kinds = ["tile", "error", "run"];
        let Some((kind, rest)) = kinds.iter().find_map(|kind| {
            let rest = line.strip_prefix(&format!("# {kind}: "))?;
            Some((*kind, rest))
        }) else {
            continue;
        };
        let (words, run) = match kind {
            "run" => rest.split_once(" : ").expect("` : ` before the run line"),
            _ => (rest, ""),
        };
        let (kernel, rest) = words.split_once(" \"").expect("a signature in quotes");
        let (signature, constants) = rest.rsplit_once('"').expect("the end of the signature");
        let args = parse_signature(signature).unwrap_or_else(|e| panic!("line {}: {e}", i + 1));
        let mut spec = Specialization::new(args, Target::SM_80);
        for constant in constants.split_whitespace() {
            let (name, value) = constant.split_once('=').expect("NAME=VALUE");
            let value = Constant::parse(value).expect("a constant");
            match (name, &value) {
                ("num_warps", Constant::Int(n)) => {
                    spec.num_warps = u32::try_from(*n).expect("a number of warps");
                }
                ("debug", Constant::Bool(debug)) => spec.debug = *debug,
                _ => spec.constants.push((name.to_owned(), value)),
            }
        }
        found.push(Directive {
            line: i + 1,
            kind: kind.to_owned(),
            words: words.to_owned(),
            kernel: kernel.to_owned(),
            spec,
            run: run.to_owned(),
        });
    }
    found
}

/// The stack that Rust gives to threads: no program may need more.
const STACK: usize = 2 << 20;

fn lower(name: &str, bytes: &[u8], directive: &Directive) -> Result<Lowered, Diagnostics> {
    let run = || Module::parse_bytes(name, bytes)?.lower(Some(&directive.kernel), &directive.spec);
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK);
        let thread = thread.spawn_scoped(scope, run).expect("a thread");
        thread.join().expect("no panic")
    })
}

/// The text that a directive states, or none for one that runs; failures are collected.
fn perform(
    name: &str,
    bytes: &[u8],
    directive: &Directive,
    failures: &mut Vec<String>,
    skipped: &mut BTreeSet<String>,
) -> Option<String> {
    let at = format!("{name}:{}", directive.line);
    let lowered = lower(name, bytes, directive);
    match (directive.kind.as_str(), lowered) {
        ("error", Ok(_)) => failures.push(format!("{at}: it compiles")),
        ("error", Err(messages)) => return Some(messages.to_string()),
        (_, Err(messages)) => failures.push(format!("{at}:\n{messages}")),
        ("tile", Ok(lowered)) => {
            let mut shown = lowered.func.to_string();
            if !lowered.notes.list.is_empty() {
                shown += &format!("\n{}\n", lowered.notes);
            }
            return Some(shown);
        }
        (_, Ok(lowered)) => {
            let program = format!("{}; run: {}\n", lowered.func, directive.run);
            let options = Options {
                verify_passes: true,
                ..Options::DEFAULT
            };
            let setup = Setup::new(directive.spec.target, &options);
            let report = run_lines(&program, &setup);
            skipped.extend(report.skipped);
            for failure in report.failures {
                failures.push(format!("{at}: {failure}"));
            }
        }
    }
    None
}

#[test]
fn files_become_what_they_state() {
    let mut failures = Vec::new();
    let mut skipped = BTreeSet::new();
    let bless = TestConfig::from_env().bless;
    for path in files() {
        let name = path
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        let bytes = std::fs::read(&path).expect("readable");
        let end = bytes.windows(5).position(|w| w == b"# == ");
        let code = &bytes[..end.unwrap_or(bytes.len())];
        let mut stated = String::new();
        let directives = directives(&String::from_utf8_lossy(code));
        assert!(!directives.is_empty(), "{name} asks for nothing");
        for directive in &directives {
            let shown = perform(&name, code, directive, &mut failures, &mut skipped);
            if let Some(shown) = shown {
                stated += &format!("# == {} {}\n", directive.kind, directive.words);
                for line in shown.lines() {
                    stated += format!("# {line}").trim_end();
                    stated.push('\n');
                }
            }
        }
        let expected = [code, stated.as_bytes()].concat();
        if expected != bytes {
            if bless {
                std::fs::write(&path, &expected).expect("writable");
            } else {
                let [text, expected] =
                    [&bytes, &expected].map(|b| String::from_utf8_lossy(b).into_owned());
                let difference = pretty_assertions::StrComparison::new(&text, &expected);
                failures.push(format!("{name} (BLESS=1 rewrites it):\n{difference}"));
            }
        }
    }
    for reason in skipped {
        eprintln!("skipped: {reason}");
    }
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

/// Every code of a message is stated by a file, but for the one that means a mistake of ours.
#[test]
fn every_code_is_stated() {
    let texts: String = files()
        .iter()
        .map(|path| std::fs::read(path).expect("readable"))
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .collect();
    for code in Code::ALL {
        let shown = format!("[{}]: ", code.name());
        // A text that cannot be read has no place for comments: `front_limits.rs` has those.
        let elsewhere = [Code::Internal, Code::Limit];
        assert!(
            texts.contains(&shown) || elsewhere.contains(code),
            "no file states {shown}"
        );
    }
}
