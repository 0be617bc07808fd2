//! The file tests, one test for each folder.
#![cfg(feature = "tool")]

use std::path::Path;

use tilelift::filetest::{Config, find_files, run_file};

fn check(folder: &str) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/filetests");
    let files = find_files(&root.join(folder)).expect("the folder can be read");
    assert!(!files.is_empty(), "no file tests in {folder}");
    let mut messages = String::new();
    let mut skipped = Vec::new();
    for file in files {
        let report = run_file(&file, Config::from_env()).expect("the file can be read");
        for reason in report.skipped {
            if !skipped.contains(&reason) {
                skipped.push(reason);
            }
        }
        let name = file.strip_prefix(&root).unwrap_or(&file);
        for failure in report.failures {
            messages += &format!("{}: {failure}\n", name.display());
        }
    }
    for reason in skipped {
        eprintln!("skipped: {reason}");
    }
    assert!(messages.is_empty(), "\n{messages}");
}

#[test]
fn parse() {
    check("parse");
}

#[test]
fn verify() {
    check("verify");
}

#[test]
fn opt() {
    check("opt");
}

#[test]
fn layout() {
    check("layout");
}

#[test]
fn lower() {
    check("lower");
}

#[test]
fn ptx() {
    check("ptx");
}

#[test]
fn run() {
    check("run");
}

/// Every code of the reader and every rule of the verifier that a text can break has a file that breaks it.
#[test]
fn every_code_is_tested() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/filetests");
    let text_of = |folder: &str| {
        let files = find_files(&root.join(folder)).expect("the folder can be read");
        let texts = files
            .iter()
            .map(|f| std::fs::read_to_string(f).expect("readable"));
        texts.collect::<String>()
    };
    let parse = text_of("parse");
    for code in tilelift::text::parse::Code::ALL {
        let note = format!("; error: {code} ");
        assert!(parse.contains(&note), "no file has `{note}`");
    }
    let verify = text_of("verify");
    // What no text can express is tested beside the verifier.
    let unit = ["V01", "V02", "V05"];
    for rule in tilelift::verify::Rule::ALL {
        let note = format!("; error: {rule} ");
        let tested = verify.contains(&note) || unit.contains(&rule.code());
        assert!(tested, "no file has `{note}`");
    }
}
