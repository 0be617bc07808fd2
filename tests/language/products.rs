//! The products and the attention of `examples/kernels` against NumPy (`make_products.py`), and the product of groups, whose
//! arguments are addresses.

use std::collections::BTreeSet;

use half::f16;
use tilelift::settings::Target;

use crate::cases::run_file;
use crate::run::{Given, Launch, everywhere};

#[test]
fn products_and_attention_compute_what_numpy_computes() {
    let kernels: BTreeSet<String> = run_file("products.txt", "examples/kernels")
        .into_iter()
        .collect();
    assert!(kernels.len() >= 10, "{kernels:?}");
}

/// Small integers in an order that looks random.
fn whole(count: usize, salt: usize) -> Vec<f32> {
    let number = |i: usize| ((i * 7919 + salt * 104_729) % 997 % 7) as f32 - 3.0;
    (0..count).map(number).collect()
}

fn halves(numbers: &[f32]) -> Vec<u8> {
    let half = |x: &f32| f16::from_f32(*x).to_le_bytes();
    numbers.iter().flat_map(half).collect()
}

#[test]
fn groups_are_products_of_their_own() {
    let text = include_str!("../../examples/kernels/matmul.py");
    let sizes = [[48, 16, 32], [16, 64, 48], [80, 32, 16]];
    let (mut a, mut b, mut c, mut wanted) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (i, [m, n, k]) in sizes.into_iter().enumerate() {
        let (x, y) = (whole(m * k, 2 * i), whole(k * n, 2 * i + 1));
        // Sums of few small integers are exact.
        let sum = |at: usize| (0..k).map(|l| x[at / n * k + l] * y[l * n + at % n]).sum();
        let sums: Vec<f32> = (0..m * n).map(sum).collect();
        wanted.extend(halves(&sums));
        c.push(vec![0xff; 2 * m * n]);
        a.push(halves(&x));
        b.push(halves(&y));
    }
    let flat = sizes.as_flattened().iter();
    let numbers = flat.flat_map(|&x| i32::try_from(x).expect("it is small").to_le_bytes());
    let launch = Launch {
        file: "matmul.py",
        text,
        kernel: "grouped_matmul",
        signature: "*i64:16, *i64:16, *i64:16, *i32:16, i32, 2, 32, 32, 16",
        constants: &[],
        num_warps: 4,
        target: Target::SM_80,
        grid: [2, 1, 1],
        args: &[
            Given::Addresses(a),
            Given::Addresses(b),
            Given::Addresses(c),
            Given::Bytes(numbers.collect()),
            Given::Int(3),
        ],
    };
    for (executor, buffers) in everywhere(&launch).expect("it runs") {
        let found = buffers[2].as_ref().expect("the products");
        assert!(*found == wanted, "{executor}: {found:?}");
    }
}
