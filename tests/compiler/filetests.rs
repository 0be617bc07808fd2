//! The file tests, one test for each folder.
use std::collections::BTreeSet;
use std::path::Path;

use tilelift::filetest::{TestConfig, find_files, run_file, variants};
use tilelift::ir::function::TileFunction;
use tilelift::ir::ops::{Opcode, TileOp, TypeRule};
use tilelift::ir::types::Elem;
use tilelift::text::parse::parse_file;

fn check(folder: &str) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/filetests");
    let files = find_files(&root.join(folder)).expect("the folder can be read");
    assert!(!files.is_empty(), "no file tests in {folder}");
    let mut messages = String::new();
    let mut skipped = Vec::new();
    for file in files {
        let report = run_file(&file, TestConfig::from_env()).expect("the file can be read");
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
fn maps() {
    check("maps");
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
    // What no text can express, and what is asked of a pass alone, is tested beside the verifier.
    let unit = ["V01", "V02", "V05", "V26"];
    for rule in tilelift::verify::Rule::ALL {
        let note = format!("; error: {rule} ");
        let tested = verify.contains(&note) || unit.contains(&rule.code());
        assert!(tested, "no file has `{note}`");
    }
}

/// Ops that passes make, and ends of regions, which have no types of their own.
const WITHOUT_TYPES: [TileOp; 32] = [
    TileOp::CtaId,
    TileOp::GroupId,
    TileOp::NumGroups,
    TileOp::SlotPut,
    TileOp::SlotGet,
    TileOp::NumCtas,
    TileOp::ConvertLayout,
    TileOp::AsyncCopy,
    TileOp::AsyncCommit,
    TileOp::AsyncWait,
    TileOp::SharedLoad,
    TileOp::SharedStore,
    TileOp::SharedView,
    TileOp::DotStart,
    TileOp::DotDone,
    TileOp::DotWait,
    TileOp::DotSum,
    TileOp::TensorCopy,
    TileOp::MbarInit,
    TileOp::MbarDrop,
    TileOp::MbarExpect,
    TileOp::MbarWait,
    TileOp::MbarWaitFor,
    TileOp::MbarArrive,
    TileOp::Release,
    TileOp::Producer,
    TileOp::Barrier,
    TileOp::GdcWait,
    TileOp::GdcLaunchDependents,
    TileOp::Return,
    TileOp::Yield,
    TileOp::Condition,
];

/// A type, and for a conversion the type that it makes.
type Use = (Option<Place>, Option<Place>);
/// An element type's place in the order, and its name.
type Place = (usize, &'static str);

/// Element types in the order of the table; pointers are one.
fn place(elem: Elem) -> Place {
    const NAMES: [&str; 11] = [
        "i1", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64", "f8e4m3", "f8e5m2",
    ];
    let name = elem.scalar().map_or("ptr", |scalar| scalar.name());
    let at = NAMES.iter().position(|&n| n == name);
    (at.unwrap_or(NAMES.len()), name)
}

/// What an op is used with: operand and result where they differ, else the type of the data.
fn add_uses(func: &TileFunction, op: TileOp, found: &mut BTreeSet<Use>) {
    for inst in func.dfg.insts.values().filter(|inst| inst.op == op) {
        let arg = |i: usize| inst.args.get(i).map(|&arg| place(func.dfg.ty(arg).elem));
        let result = inst.results.first().map(|&r| place(func.dfg.ty(r).elem));
        let is_inline = op.info().rule == TypeRule::InlinePtx;
        let is_cast = op.info().result_is_given && (op.info().is_pure() || is_inline);
        match (op.info().rule, arg(0), result) {
            (
                TypeRule::Store
                | TypeRule::AtomicRmw
                | TypeRule::AtomicCas
                | TypeRule::Select
                | TypeRule::AddPtr,
                ..,
            ) => found.insert((arg(1), None)),
            (TypeRule::Load | TypeRule::For | TypeRule::While | TypeRule::If, ..) => {
                found.insert((result, None))
            }
            (_, Some(from), Some(to)) if is_cast && from != to => {
                found.insert((Some(from), Some(to)))
            }
            (_, Some(from), _) => found.insert((Some(from), None)),
            (_, None, to) => found.insert((to, None)),
        };
    }
}

/// `OPS.md` lists what the files of `run` execute on interpreter, emulator and GPU, for every target; every op of
/// the tile IR is among it.
#[test]
fn every_op_is_run_and_listed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/filetests");
    let mut functions = Vec::new();
    for path in find_files(&root.join("run")).expect("the folder can be read") {
        let text = std::fs::read_to_string(&path).expect("readable");
        for variant in variants(&text).expect("other tests run it") {
            let file = parse_file(&variant.text).unwrap_or_else(|errors| panic!("{errors:?}"));
            functions.extend(
                file.functions
                    .iter()
                    .filter_map(|f| f.func.as_tile().cloned()),
            );
        }
    }
    let mut table = String::from(
        "# Ops and the types they are tested with\n\n\
         Every op of the tile IR, and the element types with which the files in `run` execute it on interpreter, emulator and,\n\
         where there is one, GPU. `tests/compiler/filetests.rs` compares this list with the files; `BLESS=1` rewrites it.\n\n\
         | op | element types |\n|---|---|\n",
    );
    for &op in TileOp::ALL {
        if WITHOUT_TYPES.contains(&op) {
            continue;
        }
        let mut found = BTreeSet::new();
        for func in &functions {
            add_uses(func, op, &mut found);
        }
        assert!(!found.is_empty(), "no file in run/ has `{op}`");
        let types: Vec<String> = found
            .into_iter()
            .map(|(from, to)| {
                let from = from.map_or("none", |(_, name)| name);
                to.map_or(from.to_owned(), |(_, to)| format!("{from} to {to}"))
            })
            .collect();
        table += &format!("| `{op}` | {} |\n", types.join(", "));
    }
    let path = root.join("OPS.md");
    if TestConfig::from_env().bless {
        std::fs::write(&path, &table).expect("writable");
    }
    let listed = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(listed, table, "BLESS=1 rewrites OPS.md");
}
