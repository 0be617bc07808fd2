//! The files that this project starts from, byte for byte as their user wrote them. They stand beside the repository and
//! not in it; where they are absent the test says so.

use std::path::{Path, PathBuf};

use tilelift::front::diagnostic::Code;
use tilelift::front::{Constant, Module, Specialization, parse_signature};
use tilelift::settings::Target;

use crate::run::{Given, Launch, everywhere};

/// The text of a seed, if it is there.
fn seed(name: &str) -> Option<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let named = std::env::var_os("TILELIFT_SEEDS").map(PathBuf::from);
    let places = [
        root.join("../shared/seeds"),
        root.join("../../shared/seeds"),
    ];
    let found = named
        .into_iter()
        .chain(places)
        .find_map(|folder| std::fs::read_to_string(folder.join(name)).ok());
    if found.is_none() {
        eprintln!("skipped: no {name} in ../shared/seeds (TILELIFT_SEEDS names another folder)");
    }
    found
}

/// Numbers that look random: multiples of 1/128 within [-4, 4).
fn numbers(count: usize, salt: usize) -> Vec<f32> {
    let number = |i: usize| ((i * 7919 + salt * 104_729) % 1024) as f32 / 128.0 - 4.0;
    (0..count).map(number).collect()
}

fn bytes(numbers: &[f32]) -> Given {
    Given::Bytes(numbers.iter().flat_map(|x| x.to_le_bytes()).collect())
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    let number = |b: &[u8]| f32::from_le_bytes([b[0], b[1], b[2], b[3]]);
    bytes.chunks_exact(4).map(number).collect()
}

#[test]
fn vector_addition_adds() {
    let Some(text) = seed("add.py") else { return };
    // The size is the module's: 512, and the last program has less.
    let n = 1200;
    let (x, y) = (numbers(n, 1), numbers(n, 2));
    let launch = Launch {
        file: "add.py",
        text: &text,
        kernel: "add",
        signature: "*fp32:16, *fp32:16, *fp32:16, i32",
        constants: &[],
        num_warps: 4,
        grid: [n.div_ceil(512) as u32, 1, 1],
        args: &[
            bytes(&x),
            bytes(&y),
            Given::Poison(4 * n),
            Given::Int(n as i64),
        ],
    };
    for (executor, buffers) in everywhere(&launch).expect("it runs") {
        let z = floats(buffers[2].as_ref().expect("a buffer"));
        for i in 0..n {
            // Sums of multiples of 1/128 are exact.
            let expected = f64::from(x[i]) + f64::from(y[i]);
            assert_eq!(f64::from(z[i]), expected, "{executor}: z[{i}]");
        }
    }
}

#[test]
fn softmax_normalises_rows() {
    let Some(text) = seed("softmax.py") else {
        return;
    };
    let (rows, columns) = (3, 931);
    let x = numbers(rows * columns, 3);
    // The last stride is one, so that the kernel has no parameter for it.
    let launch = Launch {
        file: "softmax.py",
        text: &text,
        kernel: "softmax",
        signature: "*fp32:16, i32, i32:1, *fp32:16, i32, i32:1, i32, i32",
        constants: &[],
        num_warps: 4,
        grid: [rows as u32, 1, 1],
        args: &[
            Given::Poison(4 * x.len()),
            Given::Int(columns as i64),
            bytes(&x),
            Given::Int(columns as i64),
            Given::Int(rows as i64),
            Given::Int(columns as i64),
        ],
    };
    for (executor, buffers) in everywhere(&launch).expect("it runs") {
        let y = floats(buffers[0].as_ref().expect("a buffer"));
        for (row, (x, y)) in x.chunks(columns).zip(y.chunks(columns)).enumerate() {
            let powers: Vec<f64> = x.iter().map(|&x| f64::from(x).exp()).collect();
            let sum: f64 = powers.iter().sum();
            for (i, (power, &y)) in powers.iter().zip(y).enumerate() {
                let expected = power / sum;
                let error = (f64::from(y) - expected).abs() / expected;
                // The approximate exponent errs by 2 ulp and its argument's rounding counts up to eight times.
                assert!(error < 4e-6, "{executor}: y[{row}, {i}] errs by {error:e}");
            }
        }
    }
}

/// What keeps a seed from compiling today, or nothing.
fn outcome(text: &str, kernel: &str, signature: &str, constants: &[(&str, i128)]) -> Outcome {
    let module = Module::parse("seed.py", text).expect("it parses");
    let args = parse_signature(signature).expect("a signature");
    let mut spec = Specialization::new(args, Target::SM_80);
    spec.constants = constants
        .iter()
        .map(|(name, n)| ((*name).to_owned(), Constant::Int(*n)))
        .collect();
    match module.lower(Some(kernel), &spec) {
        Ok(_) => Outcome::Compiles,
        Err(messages) => {
            let found: Vec<(Code, usize)> = messages
                .list
                .iter()
                .map(|d| (d.code, messages.position(d.span.start).0))
                .collect();
            assert_eq!(found.len(), 1, "{messages}");
            let line = text.lines().nth(found[0].1 - 1).expect("the line is there");
            Outcome::Refused(found[0].0, line.contains("tl.dot("))
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Compiles,
    /// The code of the only message, and whether its line has a product of matrices.
    Refused(Code, bool),
}

/// What the seeds with products come to: to be `Compiles` as soon as the IR multiplies.
const PRODUCTS: Outcome = Outcome::Refused(Code::NotYet, true);

#[test]
fn products_come_as_far_as_the_ir() {
    if let Some(text) = seed("matmul.py") {
        let found = outcome(
            &text,
            "matmul",
            "*fp16:16, *fp16:16, *fp32:16, i32:16, i32:16, i32:16, i32:16, i32:1, i32:16, i32:1, i32:16, i32:1",
            &[
                ("BLOCK_M", 64),
                ("BLOCK_N", 64),
                ("BLOCK_K", 32),
                ("GROUP_M", 8),
            ],
        );
        assert_eq!(found, PRODUCTS, "matmul");
    }
    if let Some(text) = seed("lola.py") {
        let sizes = "32, 32, 32, 1024, 4096";
        for (kernel, pointers) in [("lola_kernel", 4), ("lola_ws_kernel", 5)] {
            let signature = format!("{}{sizes}", "*fp16:16, ".repeat(pointers));
            let found = outcome(&text, kernel, &signature, &[]);
            assert_eq!(found, PRODUCTS, "{kernel}");
        }
    }
}
