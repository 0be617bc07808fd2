//! Kernels with sizes, data, references in f64 and tolerances.
//!
//! A tolerance counts roundings of f32 with unit `u` = 2^-24 on the longest way to a result, with room for any order
//! of summation that a tree over threads takes.

use half::{bf16, f16};
use tilelift::ir::types::Scalar;

use super::data::{Data, Random, U32, close, decode, encode, numbers, rounded, unit_roundoff};
use super::executor::CaseLaunch;
use super::executor::{Case, HostArg};
use super::kernels::{self, Config, Config2, Gelu};

pub(crate) use super::tile_cases::tiles;

/// Formats of the kernels that compute in f32.
const FLOATS: [Scalar; 3] = [Scalar::F32, Scalar::F16, Scalar::Bf16];

/// What may be promised of numbers: 16, as a caller of Triton does without saying so, or nothing.
fn divisible(numbers: &[usize]) -> u32 {
    if numbers.iter().all(|n| n.is_multiple_of(16)) {
        16
    } else {
        1
    }
}

fn buffer(scalar: Scalar, numbers: &[f64]) -> HostArg {
    HostArg::Buffer(encode(scalar, numbers))
}

fn output(scalar: Scalar, count: usize) -> HostArg {
    HostArg::Output(count * scalar.bytes() as usize)
}

/// Vector addition: exact, in every type.
pub(crate) fn vector_add() -> Vec<Case> {
    let mut cases = Vec::new();
    for scalar in [
        Scalar::F32,
        Scalar::F16,
        Scalar::Bf16,
        Scalar::I32,
        Scalar::I64,
    ] {
        for n in [1, 511, 512, 98_432] {
            cases.push(vector_add_case(scalar, n, 1024));
        }
    }
    cases.push(vector_add_case(Scalar::F32, (1 << 20) + 3, 1024));
    cases
}

fn vector_add_case(scalar: Scalar, n: usize, block: u64) -> Case {
    let config = Config {
        scalar,
        block,
        warps: 4,
        divisible: divisible(&[n]),
    };
    let random = |seed| -> Vec<u8> {
        if scalar.is_float() {
            encode(scalar, &numbers(Data::Wide, scalar, n, seed))
        } else {
            let mut random = Random(seed);
            let bytes = scalar.bytes() as usize;
            (0..n)
                .flat_map(|_| random.bits().to_le_bytes()[..bytes].to_vec())
                .collect()
        }
    };
    let (a, b) = (random(1), random(2));
    let expected: Vec<u8> = a
        .chunks(scalar.bytes() as usize)
        .zip(b.chunks(scalar.bytes() as usize))
        .flat_map(|(a, b)| add_bytes(scalar, a, b))
        .collect();
    let args = vec![
        HostArg::Buffer(a),
        HostArg::Buffer(b),
        output(scalar, n),
        HostArg::I32(n as i32),
    ];
    let grid = [n.div_ceil(block as usize) as u32, 1, 1];
    let name = format!("vector_add {scalar} n={n}");
    Case::single(name, kernels::vector_add(config), grid, args, move |args| {
        let wrong = args[2]
            .bytes()
            .iter()
            .zip(&expected)
            .position(|(a, b)| a != b);
        match wrong {
            Some(byte) => Err(format!("byte {byte} differs")),
            None => Ok(()),
        }
    })
}

/// The sum of two elements as bytes. Sums of the narrow formats are exact in f64.
fn add_bytes(scalar: Scalar, a: &[u8], b: &[u8]) -> Vec<u8> {
    match (scalar, a, b) {
        (Scalar::F32, &[a, b, c, d], &[e, f, g, h]) => (f32::from_le_bytes([a, b, c, d])
            + f32::from_le_bytes([e, f, g, h]))
        .to_le_bytes()
        .into(),
        (Scalar::F16, &[a, b], &[c, d]) => {
            let sum = f16::from_le_bytes([a, b]).to_f64() + f16::from_le_bytes([c, d]).to_f64();
            f16::from_f64(sum).to_le_bytes().into()
        }
        (Scalar::Bf16, &[a, b], &[c, d]) => {
            let sum = bf16::from_le_bytes([a, b]).to_f64() + bf16::from_le_bytes([c, d]).to_f64();
            bf16::from_f64(sum).to_le_bytes().into()
        }
        (Scalar::I32 | Scalar::I64, a, b) => {
            let number = |x: &[u8]| {
                let mut bytes = [0; 8];
                bytes[..x.len()].copy_from_slice(x);
                u64::from_le_bytes(bytes)
            };
            number(a).wrapping_add(number(b)).to_le_bytes()[..a.len()].into()
        }
        _ => panic!("no addition of type {scalar}"),
    }
}

/// Softmax of the shape that Triton's tutorial takes, of long rows, and of wide and masked data.
pub(crate) fn softmax() -> Vec<Case> {
    let mut cases = vec![softmax_case(Scalar::F32, Data::Normal, 583, 931)];
    for scalar in FLOATS {
        for data in [Data::Normal, Data::Wide, Data::Masked] {
            cases.push(softmax_case(scalar, data, 5, 781));
        }
        cases.push(softmax_case(scalar, Data::Normal, 3, 4096));
        // A multiple of 16 that does not fill the block.
        cases.push(softmax_case(scalar, Data::Normal, 3, 784));
        // All but one element masked off.
        cases.push(softmax_case(scalar, Data::Normal, 4, 1));
        // A row may be negative infinity throughout: the result is NaN.
        cases.push(softmax_case(scalar, Data::Masked, 8, 2));
    }
    cases
}

/// Softmax of every power of two that the issue names.
pub(crate) fn softmax_widths() -> Vec<Case> {
    (8..=15)
        .map(|log2| softmax_case(Scalar::F32, Data::Normal, 2, 1 << log2))
        .collect()
}

fn softmax_case(scalar: Scalar, data: Data, rows: usize, cols: usize) -> Case {
    // Rows lie apart, so that a wrong stride shows.
    let stride = cols + 16;
    let block = cols.next_power_of_two() as u64;
    let config = Config {
        scalar,
        block,
        warps: if block >= 4096 { 8 } else { 4 },
        divisible: divisible(&[cols, stride]),
    };
    let x = numbers(data, scalar, rows * stride, 3);
    let args = vec![
        output(scalar, rows * cols),
        HostArg::I32(cols as i32),
        buffer(scalar, &x),
        HostArg::I32(stride as i32),
        HostArg::I32(cols as i32),
    ];
    let name = format!("softmax {scalar} {rows}x{cols} {data:?}");
    let grid = [rows as u32, 1, 1];
    Case::single(name, kernels::softmax(config), grid, args, move |args| {
        let out = args[0].bytes();
        for (row, x) in x.chunks(stride).enumerate() {
            let x = &x[..cols];
            let largest = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let sum: f64 = x.iter().map(|x| (x - largest).exp()).sum();
            let bytes = cols * scalar.bytes() as usize;
            close(
                &format!("row {row}"),
                scalar,
                &out[row * bytes..][..bytes],
                x.iter().map(|x| {
                    let distance = x - largest;
                    let y = distance.exp() / sum;
                    // The exponent is rounded by the difference, the factor log2 e and the product, relative to its
                    // size; the sum's share of that is at most its entropy, 4 * ln(32768) < 50; a tree with up to 64
                    // terms per thread, 2 ulp each of power and quotient make up the rest.
                    let tolerance = if y > 0.0 {
                        y * U32 * (4.0 * distance.abs() + 150.0)
                    } else {
                        0.0
                    };
                    (y, tolerance)
                }),
            )?;
        }
        Ok(())
    })
}

/// Numbers of the rows of a matrix, without the gap between rows.
fn rows_of(matrix: &[f64], stride: usize, cols: usize) -> impl Iterator<Item = &[f64]> {
    matrix.chunks(stride).map(move |row| &row[..cols])
}

/// Mean and variance.
fn statistics(row: &[f64]) -> (f64, f64) {
    let n = row.len() as f64;
    let mean = row.iter().sum::<f64>() / n;
    let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
    (mean, variance)
}

const EPS: f32 = 1e-5;

/// Forward layer normalisation: one block over the row, and loops.
pub(crate) fn layer_norm() -> Vec<Case> {
    let mut cases = Vec::new();
    for scalar in FLOATS {
        for data in [Data::Normal, Data::Wide] {
            cases.push(layer_norm_case(scalar, data, [5, 781], None));
            cases.push(layer_norm_case(scalar, data, [5, 781], Some(256)));
        }
    }
    for scalar in FLOATS {
        cases.push(layer_norm_case(scalar, Data::Normal, [3, 1024], None));
        cases.push(layer_norm_case(scalar, Data::Normal, [2, 784], Some(256)));
    }
    cases.push(layer_norm_case(
        Scalar::F32,
        Data::Normal,
        [3, 4097],
        Some(1024),
    ));
    cases.push(layer_norm_case(
        Scalar::F32,
        Data::Normal,
        [4, 1],
        Some(128),
    ));
    cases
}

fn layer_norm_case(
    scalar: Scalar,
    data: Data,
    [rows, cols]: [usize; 2],
    loop_block: Option<u64>,
) -> Case {
    let block = loop_block.unwrap_or(cols.next_power_of_two() as u64);
    let config = Config {
        scalar,
        block,
        warps: 4,
        divisible: divisible(&[cols]),
    };
    let func = match loop_block {
        None => kernels::layer_norm(config),
        Some(_) => kernels::layer_norm_looped(config),
    };
    let stride = cols;
    let x = numbers(data, scalar, rows * stride, 4);
    let weight = numbers(Data::Normal, scalar, cols, 5);
    let bias = numbers(Data::Normal, scalar, cols, 6);
    let args = vec![
        buffer(scalar, &x),
        output(scalar, rows * cols),
        buffer(scalar, &weight),
        buffer(scalar, &bias),
        output(Scalar::F32, rows),
        output(Scalar::F32, rows),
        HostArg::I32(stride as i32),
        HostArg::I32(cols as i32),
        HostArg::F32(EPS),
    ];
    let looped = if loop_block.is_some() { " looped" } else { "" };
    let name = format!("layer_norm{looped} {scalar} {rows}x{cols} {data:?}");
    Case::single(name, func, [rows as u32, 1, 1], args, move |args| {
        let mut means = Vec::new();
        let mut rstds = Vec::new();
        let mut results = Vec::new();
        for x in rows_of(&x, stride, cols) {
            let (mean, variance) = statistics(x);
            let rstd = 1.0 / (variance + f64::from(EPS)).sqrt();
            let largest = x.iter().fold(0.0, |a: f64, b| a.max(b.abs()));
            // A sum over a tree with at most 64 terms per thread, then the quotient.
            let mean_error = 80.0 * U32 * largest;
            means.push((mean, mean_error));
            rstds.push((rstd, 100.0 * U32 * rstd));
            for ((x, w), b) in x.iter().zip(&weight).zip(&bias) {
                let normalised = (x - mean) * rstd;
                let y = normalised * w + b;
                let error = w.abs() * (rstd * mean_error + 100.0 * U32 * normalised.abs());
                results.push((y, error + 2.0 * U32 * (y.abs() + b.abs())));
            }
        }
        close("mean", Scalar::F32, args[4].bytes(), means.into_iter())?;
        close("rstd", Scalar::F32, args[5].bytes(), rstds.into_iter())?;
        close("out", scalar, args[1].bytes(), results.into_iter())
    })
}

/// Backward layer normalisation: the gradient of x, and those of weight and bias in two steps.
pub(crate) fn layer_norm_backward() -> Vec<Case> {
    FLOATS
        .into_iter()
        .flat_map(|scalar| {
            [
                layer_norm_backward_case(scalar, [37, 300], 8),
                layer_norm_backward_case(scalar, [3, 129], 4),
                layer_norm_backward_case(scalar, [5, 208], 2),
            ]
        })
        .collect()
}

/// Positions of the arguments of the backward case.
mod backward {
    pub(super) const DX: usize = 0;
    pub(super) const STRIDE: usize = 8;
    pub(super) const COLS: usize = 10;
    pub(super) const DW_SHARES: usize = 6;
    pub(super) const DB_SHARES: usize = 7;
    pub(super) const PROGRAMS: usize = 11;
    pub(super) const DW: usize = 12;
    pub(super) const DB: usize = 13;
}

fn layer_norm_backward_case(scalar: Scalar, [rows, cols]: [usize; 2], programs: usize) -> Case {
    let stride = cols;
    let x = numbers(Data::Normal, scalar, rows * stride, 7);
    let dy = numbers(Data::Normal, scalar, rows * stride, 8);
    let weight = numbers(Data::Normal, scalar, cols, 9);
    let statistics: Vec<(f64, f64)> = rows_of(&x, stride, cols)
        .map(|row| {
            let (mean, variance) = statistics(row);
            let rstd = 1.0 / (variance + f64::from(EPS)).sqrt();
            (rounded(Scalar::F32, mean), rounded(Scalar::F32, rstd))
        })
        .collect();
    let (means, rstds): (Vec<f64>, Vec<f64>) = statistics.iter().copied().unzip();
    let args = vec![
        output(scalar, rows * stride),
        buffer(scalar, &dy),
        buffer(scalar, &x),
        buffer(scalar, &weight),
        buffer(Scalar::F32, &means),
        buffer(Scalar::F32, &rstds),
        output(Scalar::F32, programs * cols),
        output(Scalar::F32, programs * cols),
        HostArg::I32(stride as i32),
        HostArg::I32(rows as i32),
        HostArg::I32(cols as i32),
        HostArg::I32(programs as i32),
        output(Scalar::F32, cols),
        output(Scalar::F32, cols),
    ];
    let config = Config {
        scalar,
        block: cols.next_power_of_two() as u64,
        warps: 4,
        divisible: divisible(&[cols]),
    };
    let sum_config = Config2 {
        scalar: Scalar::F32,
        block: [4, 128],
        warps: 4,
    };
    let shares = CaseLaunch {
        func: kernels::layer_norm_backward(config),
        grid: [programs as u32, 1, 1],
        args: (0..=backward::COLS).collect(),
    };
    let sum = |from, to| CaseLaunch {
        func: kernels::sum(sum_config, 0),
        grid: [cols.div_ceil(128) as u32, 1, 1],
        args: vec![
            from,
            to,
            backward::PROGRAMS,
            backward::COLS,
            backward::STRIDE,
        ],
    };
    let launches = vec![
        shares,
        sum(backward::DW_SHARES, backward::DW),
        sum(backward::DB_SHARES, backward::DB),
    ];
    let check = move |args: &[HostArg]| {
        let n = cols as f64;
        let mut dx = Vec::new();
        // For each column the sum, and the sum of sizes that its error is relative to.
        let mut dw = vec![(0.0, 0.0); cols];
        let mut db = vec![(0.0, 0.0); cols];
        for (row, &(mean, rstd)) in statistics.iter().enumerate() {
            let (x, dy) = (&x[row * stride..][..cols], &dy[row * stride..][..cols]);
            let normalised: Vec<f64> = x.iter().map(|x| (x - mean) * rstd).collect();
            let weighted: Vec<f64> = dy.iter().zip(&weight).map(|(a, b)| a * b).collect();
            let products: Vec<f64> = normalised
                .iter()
                .zip(&weighted)
                .map(|(a, b)| a * b)
                .collect();
            let (c1, c1_size) = (mean_of(&products), mean_of_sizes(&products));
            let (c2, c2_size) = (mean_of(&weighted), mean_of_sizes(&weighted));
            for i in 0..cols {
                let gradient = (weighted[i] - (normalised[i] * c1 + c2)) * rstd;
                let size = weighted[i].abs() + normalised[i].abs() * c1_size + c2_size;
                dx.push((gradient, 80.0 * U32 * size * rstd));
                let share = dy[i] * normalised[i];
                dw[i] = (dw[i].0 + share, dw[i].1 + share.abs());
                db[i] = (db[i].0 + dy[i], db[i].1 + dy[i].abs());
            }
        }
        let with_error =
            |(sum, size): (f64, f64)| (sum, (rows as f64 + n.log2() + 8.0) * U32 * size);
        close("dx", scalar, args[backward::DX].bytes(), dx.into_iter())?;
        close(
            "dw",
            Scalar::F32,
            args[backward::DW].bytes(),
            dw.into_iter().map(with_error),
        )?;
        close(
            "db",
            Scalar::F32,
            args[backward::DB].bytes(),
            db.into_iter().map(with_error),
        )
    };
    Case {
        name: format!("layer_norm_backward {scalar} {rows}x{cols}"),
        args,
        launches,
        check: Box::new(check),
    }
}

fn mean_of(x: &[f64]) -> f64 {
    x.iter().sum::<f64>() / x.len() as f64
}

fn mean_of_sizes(x: &[f64]) -> f64 {
    x.iter().map(|x| x.abs()).sum::<f64>() / x.len() as f64
}

/// Both formulas of GELU.
pub(crate) fn gelu() -> Vec<Case> {
    let mut cases = Vec::new();
    for scalar in FLOATS {
        for formula in [Gelu::Erf, Gelu::Tanh] {
            for data in [Data::Normal, Data::Wide] {
                cases.push(gelu_case(scalar, formula, data, 5000));
            }
        }
    }
    cases
}

fn gelu_case(scalar: Scalar, formula: Gelu, data: Data, n: usize) -> Case {
    let config = Config {
        scalar,
        block: 1024,
        warps: 4,
        divisible: divisible(&[n]),
    };
    let x = numbers(data, scalar, n, 10);
    let args = vec![
        buffer(scalar, &x),
        output(scalar, n),
        HostArg::I32(n as i32),
    ];
    let name = format!("gelu {formula:?} {scalar} n={n} {data:?}");
    let grid = [n.div_ceil(1024) as u32, 1, 1];
    Case::single(
        name,
        kernels::gelu(config, formula),
        grid,
        args,
        move |args| {
            let expected = x.iter().map(|&x| {
                let inner = match formula {
                    Gelu::Erf => erf(x / std::f64::consts::SQRT_2),
                    Gelu::Tanh => {
                        ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x.powi(3))).tanh()
                    }
                };
                // Rounded arguments move erf and tanh by a few units of 1, their own error is 2 ulp; then one sum
                // and one product.
                (0.5 * x * (1.0 + inner), 12.0 * U32 * x.abs())
            });
            close("out", scalar, args[1].bytes(), expected)
        },
    )
}

/// The error function by the midpoint rule; the error is far below a unit of f32.
fn erf(x: f64) -> f64 {
    // Beyond 6 the result is 1 to all digits.
    let end = x.abs().min(6.0);
    let steps = 4000;
    let width = end / f64::from(steps);
    let density = |i| (-((f64::from(i) + 0.5) * width).powi(2)).exp();
    let integral: f64 = (0..steps).map(density).sum::<f64>() * width;
    (integral * std::f64::consts::FRAC_2_SQRT_PI).copysign(x)
}

/// Transposing copies.
pub(crate) fn transpose() -> Vec<Case> {
    let mut cases = Vec::new();
    for scalar in [Scalar::F32, Scalar::F16, Scalar::I8, Scalar::I64] {
        cases.push(transpose_case(scalar, [100, 70], [32, 64]));
        cases.push(transpose_case(scalar, [33, 1], [64, 16]));
    }
    cases
}

fn transpose_case(scalar: Scalar, [rows, cols]: [usize; 2], block: [u64; 2]) -> Case {
    let config = Config2 {
        scalar,
        block,
        warps: 4,
    };
    let (x_stride, out_stride) = (cols + 3, rows);
    let size = scalar.bytes() as usize;
    let mut random = Random(11);
    let x: Vec<u8> = (0..rows * x_stride * size)
        .map(|_| random.bits() as u8)
        .collect();
    let args = vec![
        HostArg::Buffer(x.clone()),
        output(scalar, cols * out_stride),
        HostArg::I32(rows as i32),
        HostArg::I32(cols as i32),
        HostArg::I32(x_stride as i32),
        HostArg::I32(out_stride as i32),
    ];
    let blocks = |extent: usize, block: u64| extent.div_ceil(block as usize) as u32;
    let grid = [blocks(rows, block[0]), blocks(cols, block[1]), 1];
    let name = format!("transpose {scalar} {rows}x{cols}");
    Case::single(name, kernels::transpose(config), grid, args, move |args| {
        let out = args[1].bytes();
        for row in 0..rows {
            for col in 0..cols {
                let found = &out[(col * out_stride + row) * size..][..size];
                let expected = &x[(row * x_stride + col) * size..][..size];
                if found != expected {
                    return Err(format!(
                        "row {row}, column {col}: {found:x?}, not {expected:x?}"
                    ));
                }
            }
        }
        Ok(())
    })
}

/// Sums along both axes.
pub(crate) fn sums() -> Vec<Case> {
    let mut cases = Vec::new();
    for axis in [0, 1] {
        for scalar in [Scalar::I32, Scalar::F32, Scalar::F16, Scalar::Bf16] {
            cases.push(sum_case(scalar, axis, [70, 200], [16, 64]));
        }
        cases.push(sum_case(Scalar::F32, axis, [1, 1], [32, 32]));
        cases.push(sum_case(Scalar::I32, axis, [130, 33], [128, 8]));
    }
    cases
}

fn sum_case(scalar: Scalar, axis: u8, [rows, cols]: [usize; 2], block: [u64; 2]) -> Case {
    let config = Config2 {
        scalar,
        block,
        warps: 4,
    };
    let stride = cols + 5;
    // The sums of integers fit; wrapping is vector addition's to test.
    let data = if scalar == Scalar::I32 {
        Data::Wide
    } else {
        Data::Normal
    };
    let x = numbers(data, scalar, rows * stride, 12);
    let kept = [rows, cols][usize::from(1 - axis)];
    let args = vec![
        buffer(scalar, &x),
        output(scalar, kept),
        HostArg::I32(rows as i32),
        HostArg::I32(cols as i32),
        HostArg::I32(stride as i32),
    ];
    let grid = [
        kept.div_ceil(block[usize::from(1 - axis)] as usize) as u32,
        1,
        1,
    ];
    let name = format!("sum along {axis} {scalar} {rows}x{cols}");
    Case::single(name, kernels::sum(config, axis), grid, args, move |args| {
        // For each result the sum and the sum of sizes.
        let mut expected = vec![(0.0, 0.0); kept];
        for (row, numbers) in rows_of(&x, stride, cols).enumerate() {
            for (col, number) in numbers.iter().enumerate() {
                let at = if axis == 0 { col } else { row };
                expected[at] = (expected[at].0 + number, expected[at].1 + number.abs());
            }
        }
        if scalar == Scalar::I32 {
            let sums: Vec<f64> = expected.iter().map(|&(sum, _)| sum).collect();
            let found = decode(scalar, args[1].bytes());
            return if found == sums {
                Ok(())
            } else {
                Err(format!("{found:?}, not {sums:?}"))
            };
        }
        // Each result has at most 200 terms, in any order.
        let with_error = |(sum, size): (f64, f64)| (sum, 200.0 * U32 * size);
        close(
            "out",
            scalar,
            args[1].bytes(),
            expected.into_iter().map(with_error),
        )
    })
}

/// Sorted rows and the best of them, exact.
pub(crate) fn sorts() -> Vec<Case> {
    let mut cases = Vec::new();
    for scalar in [Scalar::I32, Scalar::F32] {
        for (n, warps) in [(64, 1), (256, 4), (1024, 4)] {
            cases.push(sort_case(scalar, [2, n], n, warps, false));
            cases.push(sort_case(scalar, [2, n], 8, warps, true));
        }
        cases.push(sort_case(scalar, [3, 2], 2, 2, true));
    }
    cases
}

fn sort_case(
    scalar: Scalar,
    [rows, cols]: [usize; 2],
    keep: usize,
    warps: u32,
    descending: bool,
) -> Case {
    let config = Config {
        scalar,
        block: cols as u64,
        warps,
        divisible: 16,
    };
    let numbers: Vec<f64> = if scalar == Scalar::F32 {
        numbers(Data::Normal, scalar, rows * cols, 13)
    } else {
        let mut random = Random(13);
        // Few enough for ties.
        let mut number = || (random.bits() % 701) as f64 - 350.0;
        (0..rows * cols).map(|_| number()).collect()
    };
    let expected: Vec<f64> = numbers
        .chunks(cols)
        .flat_map(|row| {
            let mut row = row.to_vec();
            row.sort_by(f64::total_cmp);
            if descending {
                row.reverse();
            }
            row.truncate(keep);
            row
        })
        .collect();
    let expected = encode(scalar, &expected);
    let args = vec![buffer(scalar, &numbers), output(scalar, rows * keep)];
    let name = format!("sort {scalar} {keep} of {cols} descending={descending}");
    let func = kernels::sort(config, descending, keep as u64);
    Case::single(name, func, [rows as u32, 1, 1], args, move |args| {
        let found = args[1].bytes();
        match found.iter().zip(&expected).position(|(a, b)| a != b) {
            Some(byte) => Err(format!("element {} differs", byte / 4)),
            None => Ok(()),
        }
    })
}

/// Running sums and maxima along both axes, both ways, over few and many warps.
pub(crate) fn scans() -> Vec<Case> {
    let mut cases = Vec::new();
    for scalar in [Scalar::F32, Scalar::F16, Scalar::Bf16, Scalar::F64] {
        for axis in [0, 1] {
            for reverse in [false, true] {
                cases.push(scan_case(scalar, [32, 64], 4, axis, reverse));
            }
        }
    }
    for (block, warps) in [
        ([1, 4096], 8),
        ([4096, 1], 8),
        ([1, 64], 32),
        ([128, 32], 1),
        ([2, 2], 4),
    ] {
        for axis in [0, 1] {
            cases.push(scan_case(Scalar::F32, block, warps, axis, axis == 1));
        }
    }
    cases
}

fn scan_case(scalar: Scalar, block: [usize; 2], warps: u32, axis: u8, reverse: bool) -> Case {
    let [rows, cols] = block;
    let config = Config2 {
        scalar,
        block: block.map(|n| n as u64),
        warps,
    };
    let x = numbers(Data::Normal, scalar, rows * cols, 14);
    let args = vec![
        buffer(scalar, &x),
        output(scalar, rows * cols),
        output(scalar, rows * cols),
    ];
    let name = format!("scan {scalar} {rows}x{cols} axis={axis} reverse={reverse}");
    let func = kernels::scan(config, axis, reverse);
    Case::single(name, func, [1, 1, 1], args, move |args| {
        let mut sums = vec![(0.0, 0.0); rows * cols];
        let mut maxima = vec![(f64::NEG_INFINITY, 0.0); rows * cols];
        let (lines, length) = if axis == 0 {
            (cols, rows)
        } else {
            (rows, cols)
        };
        let unit = unit_roundoff(scalar);
        for line in 0..lines {
            let (mut sum, mut size, mut largest) = (0.0, 0.0, f64::NEG_INFINITY);
            for step in 0..length {
                let place = if reverse { length - 1 - step } else { step };
                let at = if axis == 0 {
                    place * cols + line
                } else {
                    line * cols + place
                };
                sum += x[at];
                size += x[at].abs();
                largest = f64::max(largest, x[at]);
                // One rounding for each term, in whatever sequence, and in f64 as many of the expected sum.
                sums[at] = (sum, step as f64 * 2.0 * unit * size);
                maxima[at] = (largest, 0.0);
            }
        }
        close("sums", scalar, args[1].bytes(), sums.into_iter())?;
        close("maxima", scalar, args[2].bytes(), maxima.into_iter())
    })
}
