//! Products with roles as the compiler writes them, and what is reported if one thing in them is wrong: each wait, arrival, copy
//! and fence taken out, phases turned, bytes miscounted, arrivals made twice.

use std::path::PathBuf;

use tilelift::compile::compile;
use tilelift::emu::{Arg, Fill, Memory, Swizzle, TensorElement, TensorMap};
use tilelift::settings::{Options, Policy, Target};
use tilelift::text::parse::parse_file;

use crate::hopper::{Faulty, Outcome, either, encoded, faults, launch, replaced, small, verdict};

/// The length of the sums: seven boxes through a ring of three.
const LENGTH: usize = 7 * 32;
/// Elements between rows.
const PITCH: usize = 256;
const COLUMNS: usize = 8;

/// A kernel of the file test `ptx/roles.tir`, and its text.
struct Product {
    name: &'static str,
    warps: u32,
    text: String,
}

impl Product {
    fn of(name: &'static str, warps: u32) -> Product {
        Product::with(name, warps, false)
    }

    fn with(name: &'static str, warps: u32, line_info: bool) -> Product {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/filetests/ptx/roles.tir");
        let mut source = std::fs::read_to_string(path).expect("committed test data");
        if line_info {
            source = with_lines(&source);
        }
        let file = parse_file(&source).expect("a file test is well-formed");
        let mut funcs = file.functions.iter().filter_map(|f| f.func.as_tile());
        let func = funcs.find(|func| func.name == name).expect("it is there");
        let options = Options {
            roles: Policy::Always,
            persistent: Policy::Never,
            line_info,
            ..Options::DEFAULT
        };
        let kernel = compile(func, Target::SM_90A, &options).expect("it compiles");
        let text = kernel.ptx;
        Product { name, warps, text }
    }

    fn rows(&self) -> usize {
        16 * self.warps as usize
    }

    /// Runs a text in place of the kernel's own.
    fn run(&self, text: &str, seed: u64) -> Outcome {
        either(self.run_with(text, Swizzle::Bytes64, seed))
    }

    fn run_with(&self, text: &str, swizzle: Swizzle, seed: u64) -> Result<Outcome, Outcome> {
        let rows = self.rows();
        let mut memory = Memory::new();
        let (a, b) = (small(1, rows * PITCH), small(2, COLUMNS * PITCH));
        let mut map = |values: &[f64], rows: usize| -> Result<(u64, Arg), Outcome> {
            let bytes = values
                .iter()
                .flat_map(|&x| half::f16::from_f64(x).to_le_bytes());
            let map = TensorMap {
                element: TensorElement::F16,
                base: memory.alloc_bytes(&bytes.collect::<Vec<u8>>()),
                extents: vec![LENGTH as u64, rows as u64],
                strides: vec![2 * PITCH as u64],
                box_extents: vec![32, rows as u32],
                element_strides: vec![1, 1],
                swizzle,
                fill: Fill::Zeros,
            };
            Ok((map.base, encoded(&map)?))
        };
        let ((at_a, map_a), (at_b, map_b)) = (map(&a, rows)?, map(&b, COLUMNS)?);
        let out = memory.alloc(4 * rows * COLUMNS);
        let pointers = [at_a, at_b, out].map(Arg::pointer);
        let maps = [Arg::from(LENGTH as u32), map_a, map_b];
        let args: Vec<Arg> = pointers.into_iter().chain(maps).collect();
        let sizes = [1, 32 * (self.warps + 1), 1 << 16];
        if let Some(report) = launch(text, self.name, sizes, &args, &mut memory, seed) {
            return Ok(Outcome::Reported(report));
        }
        let expected = (0..rows * COLUMNS).flat_map(|i| {
            let (row, column) = (i / COLUMNS * PITCH, i % COLUMNS * PITCH);
            let sum: f64 = (0..LENGTH).map(|j| a[row + j] * b[column + j]).sum();
            (sum as f32).to_le_bytes()
        });
        Ok(match memory.read(out, 4 * rows * COLUMNS) {
            Ok(found) if found == expected.collect::<Vec<u8>>() => Outcome::Right,
            _ => Outcome::Wrong,
        })
    }
}

/// The text of functions with the line of each instruction in itself.
fn with_lines(text: &str) -> String {
    let lines = (1..).zip(text.lines()).map(|(number, line)| {
        match (
            line.contains(" = ") && line.starts_with("    v"),
            line.strip_suffix(" {"),
        ) {
            (true, Some(head)) => format!("{head} @{number} {{\n"),
            (true, None) => format!("{line} @{number}\n"),
            _ => format!("{line}\n"),
        }
    });
    lines.collect()
}

/// Faults of what only roles have, beside those of any kernel for Hopper.
fn of_roles(text: &str) -> Vec<Faulty> {
    // One of several may be enough.
    let mut all: Vec<Faulty> = ["fence.mbarrier_init", "wgmma.fence"]
        .into_iter()
        .map(|name| Faulty {
            line: 0,
            what: format!("no `{name}` at all"),
            text: text
                .lines()
                .filter(|line| !line.contains(name))
                .collect::<Vec<_>>()
                .join("\n"),
        })
        .collect();
    for (line, whole) in text.lines().enumerate() {
        let code = whole.trim();
        let mut add = |what: &str, by: &str| {
            all.push(Faulty {
                line: line + 1,
                what: format!("{what} `{}`", code.trim_end_matches(';')),
                text: replaced(text, line, (0, whole.len()), by),
            });
        };
        if code.contains("cp.async.bulk.tensor") || code.contains("bar.warp.sync") {
            add("without", "");
        }
        if code.contains("cp.async.bulk.tensor") || code.contains("mbarrier.arrive") {
            add("twice", &format!("{whole} {whole}"));
        }
        if code.contains("wgmma.wait_group.sync.aligned 0") {
            add(
                "one product less waited for:",
                &whole.replace("aligned 0", "aligned 1"),
            );
        }
        if code.contains("wgmma.wait_group.sync.aligned 1") {
            add(
                "one product less waited for:",
                &whole.replace("aligned 1", "aligned 2"),
            );
        }
    }
    all
}

/// Why something that is not reported does no harm: the kernels, how what was done begins, and how often at most.
const HARMLESS: &[(&str, &str, usize, &str)] = &[
    (
        "roles",
        "without `wgmma.fence",
        2,
        "the fences in front of the loop and in it order the same zeros",
    ),
    ("roles", "without `bar.warp.sync", 2, READERS),
    ("roles", "without `@%p0 mbarrier.arrive.shared", 1, LAST),
    ("roles", "twice `@%p0 mbarrier.arrive.shared", 1, LAST),
    ("two_warpgroups", "without `bar.warp.sync", 1, READERS),
];
const READERS: &str =
    "lanes read nothing by themselves: their warp has waited for its products as one";
const LAST: &str = "behind the loop nobody waits for empty entries any more";

/// Tries all faults of a kernel, of which these do nothing:
///
/// | what is wrong | with 4 warps | with 8 | why it does no harm |
/// |---|---|---|---|
/// | one `wgmma.fence` is missing | both of them | reported | one stands in front of the loop and one in it: either orders the zeros of the sums |
/// | a `bar.warp.sync` is missing | both of them | the only one | lanes read nothing by themselves; the warp waited for its products as one |
/// | the last arrival is missing, or made twice | behind the loop | reported | nobody waits for empty entries any more |
///
/// Without any fence of a kind that is reported. What is neither reported nor shows in the result is in [`HARMLESS`], or the test fails.
fn faults_are_found(name: &'static str, warps: u32) {
    let product = Product::of(name, warps);
    for seed in 0..6 {
        assert_eq!(product.run(&product.text, seed), Outcome::Right, "{seed}");
    }
    let mut all = faults(&product.text);
    all.extend(of_roles(&product.text));
    assert!(20 < all.len(), "{} faults", all.len());
    let mut silent: Vec<String> = Vec::new();
    for faulty in &all {
        let found = verdict(|seed| product.run(&faulty.text, seed), 4);
        eprintln!("{name} | {} | {} | {found:?}", faulty.line, faulty.what);
        if found == Outcome::Right {
            silent.push(faulty.what.clone());
        }
    }
    for swizzle in [Swizzle::None, Swizzle::Bytes32, Swizzle::Bytes128] {
        let found = verdict(
            |seed| either(product.run_with(&product.text, swizzle, seed)),
            2,
        );
        eprintln!("{name} | tensor maps with {swizzle:?} | {found:?}");
        assert_ne!(found, Outcome::Right, "{swizzle:?}");
    }
    for (_, start, most, reason) in HARMLESS.iter().filter(|(of, ..)| *of == name) {
        let before = silent.len();
        silent.retain(|what| !what.starts_with(start));
        let count = before - silent.len();
        assert!(
            (1..=*most).contains(&count),
            "{count} of `{start}`, {reason}"
        );
    }
    assert!(silent.is_empty(), "neither reported nor wrong: {silent:#?}");
}

#[test]
fn faults_of_a_product_are_found() {
    faults_are_found("roles", 4);
}

#[test]
fn faults_of_a_product_of_two_warpgroups_are_found() {
    faults_are_found("two_warpgroups", 8);
}

/// Kernels with `.loc` are told by their source, too: here by the file test.
#[test]
fn deadlocks_name_lines_of_the_source() {
    let product = Product::with("roles", 4, true);
    assert_eq!(product.run(&product.text, 0), Outcome::Right);
    let faults = faults(&product.text);
    let fault = faults
        .iter()
        .find(|fault| fault.what.contains("mbarrier.arrive.expect_tx"));
    let fault = fault.expect("the producer says how many bytes come");
    let Outcome::Reported(report) = product.run(&fault.text, 0) else {
        panic!("{} is not reported", fault.what);
    };
    let waits = report.matches(" wait at the mbarrier at ").count();
    // For each wait its line and that of the initialisation; the report's own is said by the caller.
    let named = report.matches(" (source line ").count();
    assert!(waits > 0 && named == 2 * waits, "{report}");
}
