//! Build script: compiles the ISLE rules of this folder into Rust.
//!
//! The declarations of the enums that rules match and name are written from the op table and the PTX
//! table, so that a new row is known to the rules without a second list. The result is one Rust file in
//! `OUT_DIR`, included by a private module of `src/machine/select`.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use cranelift_isle::codegen::{CodegenOptions, Prefix};

#[macro_use]
#[path = "../src/ir/ops/table.rs"]
mod ops;
#[macro_use]
#[path = "table.rs"]
mod ptx;
mod fingerprint;

/// The rule files, by instruction class.
const RULES: &[&str] = &["prelude", "int", "float", "cmp", "cvt", "exchange"];

/// An op of the thread level as the rules need it: variant, and operands in the table's words.
struct Op {
    variant: &'static str,
    operands: &'static [&'static str],
}

macro_rules! thread_ops {
    (@list $($(#[$doc:meta])+ $variant:ident $text:literal $method:ident ($($operand:ident : $oty:ty),*)
        {$($req:tt)*} {$($opt:tt)*} [$($given:ident)?] $rule:ident, $class:ident $({$($detail:tt)*})?;)*) => {
        &[$(Op { variant: stringify!($variant), operands: &[$(stringify!($oty)),*] }),*]
    };
    (both {$($both:tt)*} functions {$($function:tt)*} tile {$($tile:tt)*} thread {$($thread:tt)*}) => {
        const THREAD_OPS: &[Op] = thread_ops!(@list $($both)* $($thread)*);
    };
}
for_each_op!(thread_ops);

macro_rules! ptx_names {
    ($($(#[$doc:meta])+ $variant:ident $text:literal ($($form:ident $class:ident),*) sm $sm:tt ptx $major:literal $minor:literal, $group:ident;)*) => {
        const PTX: &[&str] = &[$(stringify!($variant)),*];
    };
}
for_each_ptx!(ptx_names);

macro_rules! ptx_types {
    ($($variant:ident $text:literal $class:ident $bits:literal;)*) => {
        const PTX_TYPES: &[&str] = &[$(stringify!($variant)),*];
    };
}
for_each_ptx_type!(ptx_types);

macro_rules! kinds {
    ($($variant:ident)*) => { const KINDS: &[&str] = &[$(stringify!($variant)),*]; };
}
for_each_kind!(kinds);

macro_rules! cmps {
    ($($variant:ident $text:literal;)*) => { const CMPS: &[&str] = &[$(stringify!($variant)),*]; };
}
for_each_cmp!(cmps);

fn main() {
    println!("cargo:rerun-if-changed=isa");
    println!("cargo:rerun-if-changed=src");
    let build = fingerprint::fingerprint(Path::new(""), &["isa", "src"]);
    println!("cargo:rustc-env=TILELIFT_BUILD={build:016x}");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let declarations = out.join("declarations.isle");
    write_file(&declarations, &declare());
    let mut files = vec![declarations];
    files.extend(
        RULES
            .iter()
            .map(|name| PathBuf::from(format!("isa/{name}.isle"))),
    );
    let options = CodegenOptions {
        exclude_global_allow_pragmas: true,
        prefixes: vec![Prefix {
            prefix: out.display().to_string(),
            name: "OUT_DIR".into(),
        }],
        // The crate supplies a `log` module: nothing in ordinary builds, the record of fired rules in tests.
        emit_logging: true,
        split_match_arms: false,
        match_arm_split_threshold: None,
    };
    match cranelift_isle::compile::from_files(&files, &options) {
        Ok(code) => write_file(&out.join("lower.rs"), &code),
        Err(errors) => {
            eprintln!("{errors}");
            std::process::exit(1);
        }
    }
    write_file(&out.join("rules.rs"), &list_rules(&files[1..]));
}

fn write_file(path: &Path, text: &str) {
    if let Err(error) = std::fs::write(path, text) {
        eprintln!("cannot write {}: {error}", path.display());
        std::process::exit(1);
    }
}

/// The enums, and one extractor for each op, named like the op.
fn declare() -> String {
    let mut text = String::from(";; Written by isa/build.rs from the tables.\n");
    let ops: Vec<&str> = THREAD_OPS.iter().map(|op| op.variant).collect();
    let enums = [
        ("ThreadOp", &ops[..]),
        ("Ptx", PTX),
        ("PtxType", PTX_TYPES),
        ("Kind", KINDS),
        ("Cmp", CMPS),
    ];
    for (name, variants) in enums {
        let _ = writeln!(text, "(type {name} extern (enum {}))", variants.join(" "));
    }
    for op in THREAD_OPS {
        if op.operands.iter().any(|ty| *ty != "Value") {
            continue;
        }
        let (form, params) = match op.operands.len() {
            0 => ("Nullary", ""),
            1 => ("Unary", "a"),
            2 => ("Binary", "a b"),
            _ => ("Ternary", "a b c"),
        };
        let types = vec!["Value"; op.operands.len()].join(" ");
        let variant = op.variant;
        let _ = writeln!(text, "(decl {variant} ({types}) InstView)");
        let _ = writeln!(
            text,
            "(extractor ({variant} {params}) (InstView.{form} (ThreadOp.{variant}) {params}))"
        );
    }
    text
}

/// Every rule: the words with which it reports that it fired (ISLE counts lines from 0), and where it stands.
fn list_rules(files: &[PathBuf]) -> String {
    let mut text = String::from("&[\n");
    for file in files {
        let source = std::fs::read_to_string(file).unwrap_or_default();
        let name = file.display();
        for (number, line) in source.lines().enumerate() {
            if line.starts_with("(rule") {
                let place = format!("{name}:{}: {line}", number + 1);
                let _ = writeln!(text, "    (\"{name} line {number}\", {place:?}),");
            }
        }
    }
    text.push_str("]\n");
    text
}
