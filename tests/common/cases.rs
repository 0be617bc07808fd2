//! Kernels with sizes, data, references in f64 and tolerances.
//!
//! A tolerance counts roundings of f32 with unit `u` = 2^-24 on the longest way to a result, with room for any order
//! of summation that a tree over threads takes.

use half::{bf16, f16};
use tilelift::ir::types::Scalar;

use super::data::{Data, Random, U32, close, encode, numbers};
use super::executor::{Case, HostArg};
use super::kernels::{self, Config};

/// Formats of the kernels that compute in f32.
const FLOATS: [Scalar; 3] = [Scalar::F32, Scalar::F16, Scalar::Bf16];

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
    let block = cols.next_power_of_two() as u64;
    let config = Config {
        scalar,
        block,
        warps: if block >= 4096 { 8 } else { 4 },
    };
    // Rows lie apart, so that a wrong stride shows.
    let stride = cols + 16;
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
