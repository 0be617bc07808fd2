//! The files that this project starts from, byte for byte as their user wrote them. They stand beside the repository and
//! not in it; where they are absent the test says so.

use std::path::{Path, PathBuf};

use half::f16;
use tilelift::compile::{CompiledKernel, compile};
use tilelift::front::Constant;
use tilelift::ir::types::Scalar;
use tilelift::settings::{Options, Target};

use crate::built::{Config, softmax, vector_add};
use crate::run::{Given, Launch, everywhere, lower};

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
        target: Target::SM_80,
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
        target: Target::SM_80,
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

/// The instructions of a kernel; its parameters are called after their places in `order`.
fn instructions(kernel: &CompiledKernel, order: &[usize]) -> String {
    let (_, body) = kernel.ptx.split_once("\n{").expect("a body");
    let mut body = body.to_owned();
    for (place, param) in order.iter().enumerate() {
        let name = format!("{}_param_{param}]", kernel.meta.name);
        body = body.replace(&name, &format!("parameter {place}]"));
    }
    body
}

/// On a GPU the seeds are as fast as the same kernels made with the builder, because they are the same code.
#[test]
fn seeds_become_the_code_of_the_builder() {
    let target = Target::SM_90;
    let options = Options::DEFAULT;
    for warps in [4, 8] {
        for (name, signature, order) in [
            (
                "add",
                "*fp32:16, *fp32:16, *fp32:16, i32:16",
                &[0, 1, 2, 3][..],
            ),
            (
                "softmax",
                "*fp32:16, i32:16, i32:1, *fp32:16, i32:16, i32:1, i32, i32:16",
                // The number of rows is a parameter that the kernel does not use.
                &[0, 1, 2, 3, 5],
            ),
        ] {
            let file = format!("{name}.py");
            let Some(text) = seed(&file) else { return };
            let constants = [("BLOCK".to_owned(), Constant::Int(1024))];
            let launch = Launch {
                file: &file,
                text: &text,
                kernel: name,
                signature,
                constants: if name == "add" { &constants } else { &[] },
                num_warps: warps,
                grid: [1; 3],
                args: &[],
                target,
            };
            let lowered = lower(&launch, target).expect("it lowers");
            let seed = compile(&lowered.func, target, &options).expect("it compiles");
            let config = Config {
                scalar: Scalar::F32,
                block: 1024,
                warps,
                divisible: 16,
            };
            let built = match name {
                "add" => vector_add(config),
                _ => softmax(config),
            };
            let built = compile(&built, target, &options).expect("it compiles");
            let all: Vec<usize> = (0..order.len()).collect();
            assert_eq!(
                instructions(&seed, order),
                instructions(&built, &all),
                "{name} of {warps} warps"
            );
        }
    }
}

fn halves(numbers: &[f32]) -> Given {
    let half = |x: &f32| f16::from_f32(*x).to_le_bytes();
    Given::Bytes(numbers.iter().flat_map(half).collect())
}

fn from_halves(bytes: &[u8]) -> Vec<f32> {
    let number = |b: &[u8]| f16::from_le_bytes([b[0], b[1]]).to_f32();
    bytes.chunks_exact(2).map(number).collect()
}

#[test]
fn matmul_multiplies() {
    let Some(text) = seed("matmul.py") else {
        return;
    };
    let (m, n, k) = (64, 64, 32);
    let (a, b) = (numbers(m * k, 4), numbers(k * n, 5));
    let constants = [
        ("BLOCK_M", 32),
        ("BLOCK_N", 32),
        ("BLOCK_K", 16),
        ("GROUP_M", 2),
    ]
    .map(|(name, n)| (name.to_owned(), Constant::Int(n)));
    let int = |n: usize| Given::Int(n as i64);
    // The innermost strides are one. A group of programs walks two blocks of columns.
    let launch = Launch {
        file: "matmul.py",
        text: &text,
        kernel: "matmul",
        signature: "*fp16:16, *fp16:16, *fp32:16, i32:16, i32:16, i32:16, i32:16, i32:1, i32:16, i32:1, i32:16, i32:1",
        constants: &constants,
        num_warps: 4,
        target: Target::SM_80,
        grid: [2 * (m / 32) as u32, (n / 32 / 2) as u32, 1],
        args: &[
            halves(&a),
            halves(&b),
            Given::Poison(4 * m * n),
            int(m),
            int(n),
            int(k),
            int(k),
            int(n),
            int(n),
        ],
    };
    for (executor, buffers) in everywhere(&launch).expect("it runs") {
        let c = floats(buffers[2].as_ref().expect("a buffer"));
        for (i, row) in c.chunks(n).enumerate() {
            for (j, &found) in row.iter().enumerate() {
                let product = |l: usize| f64::from(a[i * k + l]) * f64::from(b[l * n + j]);
                let expected: f64 = (0..k).map(product).sum();
                // Products of multiples of 1/128 below 4, 32 of them: every sum is exact in f32.
                assert_eq!(f64::from(found), expected, "{executor}: C[{i}, {j}]");
            }
        }
    }
}

/// The layers of `lola.py` in f64; the sums of the weights are zero in the first of its kernels, as it forgets them.
fn lola(x: &[f32], w: &[f32], sums: &[f32], bias: &[f32], inputs: usize) -> Vec<f64> {
    let outputs = bias.len();
    let mut out = Vec::new();
    for row in x.chunks(inputs) {
        let mean = row.iter().map(|&v| f64::from(v)).sum::<f64>() / inputs as f64;
        let squares = row.iter().map(|&v| f64::from(v).powi(2)).sum::<f64>() / inputs as f64;
        let deviation = (squares - mean * mean + 1e-5).abs().sqrt();
        for j in 0..outputs {
            let product = |l: usize| f64::from(row[l]) * f64::from(w[l * outputs + j]);
            let product: f64 = (0..inputs).map(product).sum();
            let z = (product - mean * f64::from(sums[j]) + f64::from(bias[j])) / deviation;
            let scale = (2.0 / std::f64::consts::PI).sqrt();
            out.push(0.5 * z * (1.0 + (scale * (z + 0.044715 * z * z * z)).tanh()));
        }
    }
    out
}

#[test]
fn fused_layers_follow_their_formula() {
    let Some(text) = seed("lola.py") else { return };
    let (rows, inputs, outputs) = (32, 64, 32);
    let scaled = |count, salt, by: f32| -> Vec<f32> {
        numbers(count, salt)
            .into_iter()
            .map(|v| f16::from_f32(v * by).to_f32())
            .collect()
    };
    let (x, w) = (
        scaled(rows * inputs, 6, 0.25),
        scaled(inputs * outputs, 7, 0.0625),
    );
    let bias = scaled(outputs, 8, 0.25);
    let column = |j: usize| (0..inputs).map(|l| w[l * outputs + j]).sum::<f32>();
    let sums: Vec<f32> = (0..outputs)
        .map(|j| f16::from_f32(column(j)).to_f32())
        .collect();
    let none = vec![0.0; outputs];
    for (kernel, given, sums) in [
        ("lola_kernel", None, &none),
        ("lola_ws_kernel", Some(&sums), &sums),
    ] {
        let mut args = vec![halves(&x), halves(&w)];
        args.extend(given.map(|sums| halves(sums)));
        args.extend([halves(&bias), Given::Poison(2 * rows * outputs)]);
        let signature = format!(
            "{}32, 32, 32, {inputs}, {outputs}",
            "*fp16:16, ".repeat(args.len())
        );
        let launch = Launch {
            file: "lola.py",
            text: &text,
            kernel,
            signature: &signature,
            constants: &[],
            num_warps: 4,
            target: Target::SM_80,
            grid: [(rows / 32) as u32, (outputs / 32) as u32, 1],
            args: &args,
        };
        let expected = lola(&x, &w, sums, &bias, inputs);
        for (executor, buffers) in everywhere(&launch).expect("it runs") {
            let found = from_halves(buffers[args.len() - 1].as_ref().expect("a buffer"));
            for (i, (found, expected)) in found.iter().zip(&expected).enumerate() {
                let error = (f64::from(*found) - expected).abs();
                // The sums are halves, whose roundings near 1 are 2^-11, two of them for each of two blocks of inputs;
                // the deviation is about 0.6.
                assert!(
                    error < 8e-3 * (1.0 + expected.abs()),
                    "{executor}: {kernel}[{i}] errs by {error:e}"
                );
            }
        }
    }
}
