//! Whether every instruction that the compiler writes is among those compared with hardware.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use tilelift::compile::compile;
use tilelift::filetest::variants;
use tilelift::settings::{Options, Target};
use tilelift::text::parse::parse_file;

use crate::hardware::table;

#[expect(unused_macros, reason = "the kinds and comparisons are not needed")]
#[macro_use]
#[path = "../../isa/table.rs"]
mod instructions;

/// The first target of a column like `80` or `(90 only)`.
macro_rules! first_target {
    ($sm:literal) => {
        $sm
    };
    (($sm:literal $word:ident)) => {
        $sm
    };
}

macro_rules! mnemonics {
    ($($(#[$doc:meta])+ $variant:ident $text:literal ($($form:ident $class:ident),*) sm $sm:tt ptx $major:literal $minor:literal, $group:ident;)*) => {
        /// Name, mnemonic and least target of each row of the PTX table.
        const ROWS: &[(&str, &str, u32)] = &[$((stringify!($variant), $text, first_target!($sm))),*];
    };
}
for_each_ptx!(mnemonics);

macro_rules! types {
    ($($variant:ident $text:literal $class:ident $bits:literal;)*) => { const TYPES: &[&str] = &[$($text),*]; };
}
for_each_ptx_type!(types);

/// Rows whose result is not a function of operands, and why they are left out.
const NOT_COMPARED: &[(&str, &str)] = &[
    ("BarArrive", PRODUCTS),
    ("BarGroup", BOXES),
    ("BoxAdd", BOXES),
    ("BoxCopy", BOXES),
    ("BoxStore", BOXES),
    ("BulkCommit", BOXES),
    ("BulkWait", BOXES),
    ("BulkWaitRead", BOXES),
    ("FenceAsync", PRODUCTS),
    ("FenceMbarInit", BOXES),
    ("Inline", "the text is the author's"),
    ("LdParam", "every row reads its own parameters so"),
    ("FewerRegisters", ROLES),
    ("MbarArrive", ROLES),
    ("Elect", BOXES),
    ("MbarExpect", BOXES),
    ("MbarInit", BOXES),
    ("MbarInval", BOXES),
    ("MbarTry", BOXES),
    ("MoreRegisters", ROLES),
    ("ParamAddr", BOXES),
    ("ParamToGeneric", BOXES),
    ("StMatrix", BOXES),
    ("Undefined", "nothing is written"),
    ("LogAddr", "an address that the driver chooses"),
    (
        "PolicyFirst",
        "an opaque number, which rows with `hint` use",
    ),
    ("PolicyLast", "an opaque number like that of PolicyFirst"),
    ("Symbol", "an address that the assembler chooses"),
    ("Timer", "a clock"),
    ("Trap", "the launch ends with an error"),
    ("Wgmma16", PRODUCTS),
    ("Wgmma16Regs", PRODUCTS),
    ("WgmmaTf32", PRODUCTS),
    ("WgmmaTf32Regs", PRODUCTS),
    ("WgmmaF8", PRODUCTS),
    ("WgmmaF8Regs", PRODUCTS),
    ("WgmmaF8Halves", PRODUCTS),
    ("WgmmaF8HalvesRegs", PRODUCTS),
    ("WgmmaS8", PRODUCTS),
    ("WgmmaS8Regs", PRODUCTS),
    ("WgmmaFence", PRODUCTS),
    ("WgmmaCommit", PRODUCTS),
    ("WgmmaWait", PRODUCTS),
    ("WarpBarrier", ROLES),
];
const BOXES: &str = "a tensor map and barriers: rows of `transfers.txt`, see `transfers.rs`; the file tests `run/boxes.tir`, `run/stored_boxes.tir` and `run/added_boxes.tir` compare whole kernels";
const ROLES: &str =
    "warps that wait for each other: the file test `run/roles.tir` compares whole kernels";
const PRODUCTS: &str =
    "four warps and shared memory: rows of `products.txt`, see `product_rows.rs`";

/// Rows that an H100 does not run, and what looks at them instead.
const LATER: &[(&str, &str)] = &[
    ("AddTwo", PAIRS_OF_F32),
    ("SubTwo", PAIRS_OF_F32),
    ("MulTwo", PAIRS_OF_F32),
    ("FmaTwo", PAIRS_OF_F32),
    ("LdWide", WIDE),
    ("StWide", WIDE),
    ("LdWideHint", WIDE),
    ("StWideHint", WIDE),
];
const PAIRS_OF_F32: &str = "the emulator agrees with the reference, `ptxas` takes them for sm_100";
const WIDE: &str =
    "`ptx/wide_32.tir`: emulator and interpreter agree, `ptxas` takes them for sm_100 and sm_120";

/// Each row of the PTX table that an H100 runs: its name and mnemonic.
fn rows() -> Vec<(&'static str, &'static str)> {
    let runs = ROWS.iter().filter(|(.., sm)| *sm <= 90);
    runs.map(|&(name, mnemonic, _)| (name, mnemonic)).collect()
}

/// Whether an opcode is an instance of a mnemonic.
fn matches(mnemonic: &str, opcode: &str) -> bool {
    // A result that nobody wants may stand behind.
    let mnemonic = mnemonic.split(' ').next().unwrap_or(mnemonic);
    let Some((start, rest)) = mnemonic.split_once('{') else {
        return mnemonic == opcode;
    };
    let Some(tail) = opcode.strip_prefix(start) else {
        return false;
    };
    let (place, rest) = rest.split_at(1);
    let rest = &rest[1..];
    match place {
        "t" | "u" => TYPES
            .iter()
            .filter_map(|ty| tail.strip_prefix(ty))
            .any(|tail| matches(rest, tail)),
        "v" => ["", ".v2", ".v4"]
            .iter()
            .filter_map(|vector| tail.strip_prefix(vector))
            .any(|tail| matches(rest, tail)),
        _ => (0..=tail.len()).any(|end| tail.is_char_boundary(end) && matches(rest, &tail[end..])),
    }
}

fn compared() -> BTreeSet<String> {
    table().into_iter().map(|(_, row)| row.opcode).collect()
}

#[test]
fn every_row_of_the_instruction_table_is_compared() {
    let opcodes = compared();
    for (name, mnemonic) in rows() {
        let is_compared = opcodes.iter().any(|opcode| matches(mnemonic, opcode));
        let is_left_out = NOT_COMPARED.iter().any(|&(left_out, _)| left_out == name);
        assert!(
            is_compared || is_left_out,
            "no row of `rows.txt` is `{mnemonic}` ({name}), and no reason is given here"
        );
    }
    let later = ROWS.iter().filter(|(.., sm)| 90 < *sm);
    assert_eq!(
        later.map(|row| row.0).collect::<BTreeSet<_>>(),
        LATER.iter().map(|row| row.0).collect(),
        "rows that an H100 does not run"
    );
    for &(name, _) in NOT_COMPARED {
        assert!(
            rows().iter().any(|&(row, _)| row == name),
            "no row is {name}"
        );
    }
}

/// The opcodes of a kernel, without the lines that its author wrote.
fn opcodes(ptx: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut is_inline = false;
    for line in ptx.lines().filter_map(|line| line.strip_prefix('\t')) {
        match line {
            "{" => is_inline = true,
            "}" => is_inline = false,
            _ if is_inline || line.starts_with('.') => {}
            _ => {
                let words = line.trim_end_matches(';').split(' ');
                found.extend(words.map(str::to_owned).find(|word| !word.starts_with('@')));
            }
        }
    }
    found
}

/// What the kernels of the file tests are compiled to, for each generation of targets.
#[test]
fn every_instruction_that_is_written_is_compared() {
    let compared = compared();
    let allowed = ["bra", "ret"];
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/filetests/run");
    let mut missing = BTreeSet::new();
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(folder).expect("the folder can be read") {
        let path = entry.expect("the folder can be read").path();
        let text = fs::read_to_string(&path).expect("readable");
        let functions = variants(&text)
            .unwrap_or_else(|error| panic!("{error}"))
            .iter()
            .flat_map(|variant| {
                let file = parse_file(&variant.text);
                file.unwrap_or_else(|errors| panic!("{errors:?}")).functions
            })
            .collect::<Vec<_>>();
        for func in functions.iter().filter_map(|f| f.func.as_tile()) {
            for target in [Target::SM_75, Target::SM_80, Target::SM_90A] {
                // Not every target has every op.
                if let Ok(kernel) = compile(func, target, &Options::DEFAULT) {
                    found.extend(opcodes(&kernel.ptx));
                }
            }
        }
    }
    assert!(found.len() > 400, "{} opcodes", found.len());
    for opcode in found {
        let is_left_out = rows().iter().any(|(name, mnemonic)| {
            matches(mnemonic, &opcode) && NOT_COMPARED.iter().any(|(row, _)| row == name)
        });
        if !compared.contains(&opcode) && !allowed.contains(&opcode.as_str()) && !is_left_out {
            missing.insert(opcode);
        }
    }
    assert!(missing.is_empty(), "not in `rows.txt`: {missing:#?}");
}
