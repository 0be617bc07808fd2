//! Products of matrices: of one, of groups, by programs that stay, and of scaled blocks.

use tilelift::num::Format;
use tilelift::settings::Target;

use super::Case;
use super::launch::{Arg, Expected, buffer, check, integers, rounded, steps};

const BOTH: &[Target] = &[Target::SM_80, Target::SM_90];

/// The product, each element rounded to half a float's digits once: sums of such numbers are exact in f32.
fn product(
    a: &[f64],
    b: &[f64],
    [m, n, k]: [usize; 3],
    b_at: impl Fn(usize, usize) -> usize,
) -> Vec<f64> {
    let one = |i: usize, j: usize| (0..k).map(|l| a[i * k + l] * b[b_at(l, j)]).sum::<f64>();
    let all = (0..m).flat_map(|i| (0..n).map(move |j| (i, j)));
    all.map(|(i, j)| one(i, j)).collect()
}

fn halves(numbers: &[f64]) -> Vec<f64> {
    numbers.iter().map(|&x| rounded(Format::F16, x)).collect()
}

fn exact(arg: usize, numbers: &[f64]) -> Expected {
    Expected {
        arg,
        format: Format::F16,
        numbers: halves(numbers),
        relative: 0.0,
        absolute: 0.0,
    }
}

fn half(numbers: &[f64]) -> Arg {
    buffer(Format::F16, numbers)
}

fn numbers(all: &[usize]) -> Vec<Arg> {
    all.iter().map(|&n| Arg::I32(n as i32)).collect()
}

#[test]
fn a_product() {
    let size @ [m, n, k] = [40, 48, 24];
    let (a, b) = (steps(m * k, 1), steps(k * n, 2));
    let c = product(&a, &b, size, |l, j| l * n + j);
    let mut args = vec![half(&a), half(&b), half(&vec![0.0; m * n])];
    args.extend(numbers(&[m, n, k, k, n, n]));
    let signature = |activation: &str| {
        let sizes = "i32, i32:16, i32, i32, i32:1, i32:16, i32:1, i32:16, i32:1";
        format!("*fp16:16, *fp16:16, *fp16:16, {sizes}, 32, 32, 16, 2, '{activation}'")
    };
    let case = |activation| Case::new("03", "matmul_kernel", signature(activation), 4, 3);
    check(&case(""), BOTH, [4, 1, 1], &args, &[exact(2, &c)]);
    // The product with 0.01 is rounded before.
    let leaky: Vec<f64> = c
        .iter()
        .map(|&x| if x >= 0.0 { x } else { 0.01 * x })
        .collect();
    let near = Expected {
        relative: 1e-3,
        ..exact(2, &leaky)
    };
    check(&case("leaky_relu"), BOTH, [4, 1, 1], &args, &[near]);
}

#[test]
fn groups_of_products() {
    let sizes = [[32, 64, 32], [64, 32, 16]];
    let pairs: Vec<(Vec<f64>, Vec<f64>)> = sizes
        .iter()
        .zip(1..)
        .map(|(&[m, n, k], seed)| (steps(m * k, seed), steps(k * n, seed + 10)))
        .collect();
    for descriptors in [false, true] {
        let mut args = vec![
            Arg::Addresses(vec![6, 9]),
            Arg::Addresses(vec![7, 10]),
            Arg::Addresses(vec![8, 11]),
            integers(
                &sizes
                    .concat()
                    .iter()
                    .map(|&n| n as i32)
                    .collect::<Vec<i32>>(),
            ),
        ];
        // Of the transposed right factor the rows are `k` long.
        let lines = sizes.map(|[_, n, k]| [k, if descriptors { k } else { n }, n]);
        args.push(integers(
            &lines
                .concat()
                .iter()
                .map(|&n| n as i32)
                .collect::<Vec<i32>>(),
        ));
        args.push(Arg::I32(2));
        let mut expected = Vec::new();
        for (&size, (a, b)) in sizes.iter().zip(&pairs) {
            let [m, n, k] = size;
            let at = |l, j| if descriptors { j * k + l } else { l * n + j };
            let c = product(a, b, size, at);
            args.extend([half(a), half(b), half(&vec![0.0; m * n])]);
            expected.push(exact(args.len() - 1, &c));
        }
        let signature = "*i64:16, *i64:16, *i64:16, *i32:16, *i32:16, i32, 2, 32, 32, 16";
        let case = match descriptors {
            false => Case::new("08", "grouped_matmul_kernel", signature, 4, 3),
            true => Case::new(
                "08",
                "grouped_matmul_tma_kernel",
                format!("{signature}, False"),
                4,
                3,
            ),
        };
        check(&case, BOTH, [2, 1, 1], &args, &expected);
    }
}

#[test]
fn products_by_programs_that_stay() {
    let size @ [m, n, k] = [48, 64, 32];
    let (a, b) = (steps(m * k, 1), steps(k * n, 2));
    // The right factor is stored by columns.
    let c = product(&a, &b, size, |l, j| j * k + l);
    let three = [half(&a), half(&b), half(&vec![0.0; m * n])];
    let expected = exact(2, &c);
    let sizes = "i32:16, i32:16, i32:16";
    let pointers = format!("*fp16:16, *fp16:16, *fp16:16, {sizes}");
    let strides = "i32:16, i32:1, i32:1, i32:16, i32:16, i32:1";

    let args = [&three[..], &numbers(&[m, n, k, k, k, n])].concat();
    for (kernel, rest, programs) in [
        ("matmul_kernel", "32, 32, 16, 2", 4),
        ("matmul_kernel_persistent", "32, 32, 16, 2, 3", 3),
    ] {
        let case = Case::new("09", kernel, format!("{pointers}, {strides}, {rest}"), 4, 3);
        check(
            &case,
            BOTH,
            [programs, 1, 1],
            &args,
            std::slice::from_ref(&expected),
        );
    }

    let args = [&three[..], &numbers(&[m, n, k])].concat();
    for subtile in ["False", "True"] {
        let rest = format!("32, 32, 16, 2, {subtile}, 3, False, True");
        let case = Case::new(
            "09",
            "matmul_kernel_descriptor_persistent",
            format!("{pointers}, {rest}"),
            4,
            3,
        );
        check(
            &case,
            BOTH,
            [3, 1, 1],
            &args,
            std::slice::from_ref(&expected),
        );
    }

    // A descriptor of the host's is a pointer, extents and the distance of rows.
    let mut args = Vec::new();
    for (arg, [rows, columns]) in three.iter().zip([[m, k], [n, k], [m, n]]) {
        args.push(arg.clone());
        args.extend(numbers(&[rows, columns]));
        args.push(Arg::I64(columns as i64));
    }
    args.extend(numbers(&[m, n, k]));
    let described = |c: &str| {
        let ab = "tensordesc<fp16[32, 16]>, tensordesc<fp16[32, 16]>";
        format!("{ab}, tensordesc<fp16[32, {c}]>, {sizes}, 32, 32, 16, 2, False")
    };
    let expected = exact(8, &c);
    for (kernel, signature, programs) in [
        ("matmul_kernel_tma", format!("{}, True", described("32")), 4),
        (
            "matmul_kernel_tma_persistent",
            format!("{}, True, 3, False", described("16")),
            3,
        ),
    ] {
        let case = Case::new("09", kernel, signature, 4, 3);
        check(
            &case,
            BOTH,
            [programs, 1, 1],
            &args,
            std::slice::from_ref(&expected),
        );
    }
}

/// mxfp8: numbers of 8 bits, 32 of them with one power of two. Only GPUs from sm_89 on have the format.
#[test]
fn a_product_of_scaled_blocks() {
    let (m, n, k) = (128, 128, 256);
    let groups = k / 32;
    let (a, b) = (steps(m * k, 1), steps(n * k, 2));
    // Steps of 1/4 have few enough digits.
    let coarse = |v: &[f64]| {
        v.iter()
            .map(|x| (x * 4.0).round() / 4.0)
            .collect::<Vec<f64>>()
    };
    let (a, b) = (coarse(&a), coarse(&b));
    let power =
        |row: usize, group: usize, seed: usize| ((row * 3 + group * 5 + seed) % 4) as i32 - 1;
    // Of 128 rows and 4 groups the scales lie together: row modulo 32, row by 32, group.
    let scales = |rows: usize, seed: usize| {
        let mut bytes = vec![0; rows * groups];
        for row in 0..rows {
            for group in 0..groups {
                let tile = row / 128 * (groups / 4) + group / 4;
                let within = row % 32 * 16 + row % 128 / 32 * 4 + group % 4;
                bytes[tile * 512 + within] = (127 + power(row, group, seed)) as u8;
            }
        }
        Arg::Buffer(bytes)
    };
    let scaled = |v: &[f64], seed: usize| -> Vec<f64> {
        let at = |i: usize| f64::from(power(i / k, i % k / 32, seed)).exp2();
        v.iter().enumerate().map(|(i, x)| x * at(i)).collect()
    };
    let c = product(&scaled(&a, 0), &scaled(&b, 1), [m, n, k], |l, j| j * k + l);
    let scale = |arg: Arg, rows: usize| {
        let mut args = vec![arg];
        let extents = [1, rows / 128, groups / 4, 2, 256];
        args.extend(numbers(&extents));
        args.extend((1..5).map(|dim| Arg::I64(extents[dim..].iter().product::<usize>() as i64)));
        args
    };
    let matrix = |arg: Arg, rows: usize, columns: usize| {
        let mut args = vec![arg];
        args.extend(numbers(&[rows, columns]));
        args.push(Arg::I64(columns as i64));
        args
    };
    let byte = |v: &[f64]| buffer(Format::E4M3, v);
    let mut args = matrix(byte(&a), m, k);
    args.extend(scale(scales(m, 0), m));
    args.extend(matrix(byte(&b), n, k));
    args.extend(scale(scales(n, 1), n));
    let result = args.len();
    args.extend(matrix(buffer(Format::F32, &vec![0.0; m * n]), m, n));
    let operand = "tensordesc<fp8e4nv[128, 128]>, tensordesc<u8[1, 1, 1, 2, 256]>";
    let signature = format!(
        "{operand}, {operand}, tensordesc<fp32[128, 128]>, {m}, {n}, {k}, 0, 1, 1, 32, 128, 128, 128, 1, 1, 1, 2"
    );
    let case = Case::new("10", "block_scaled_matmul_kernel", signature, 8, 2);
    let expected = Expected {
        arg: result,
        format: Format::F32,
        numbers: c,
        relative: 0.0,
        absolute: 0.0,
    };
    check(&case, &[Target::SM_90], [1, 1, 1], &args, &[expected]);
}
