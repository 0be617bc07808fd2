//! Infinities, NaN, zeros, the smallest and the largest numbers of every type, in factors and in what the sum starts from.
//!
//! Each row of the left factor and each other column of the right one has one of them, so that most of them meet ordinary
//! numbers and some each other; the start has them in columns where the right factor has none, so that no more than two large
//! terms meet, whose sum overflows in every order or in none.

use tilelift::ir::attrs::DotPrecision;
use tilelift::ir::types::Scalar;
use tilelift::num::{Overflow, Rounding};
use tilelift::settings::Target;

use super::case::{Case, Chain, Edge, Form, Matrix, Start, TARGETS, TYPES};
use super::{bound, kernel, numbers, run_with, unit};
use crate::common::data::Random;
use crate::common::executor::HostArg;

/// Rows of the left factor, columns of the right one.
const ROWS: u64 = 64;
const COLUMNS: u64 = 16;

/// The bits of a number, and of its absolute value.
fn bits(scalar: Scalar, number: f64) -> [u64; 2] {
    match scalar.format() {
        Some(format) => {
            let bits = format.from_f64(number, Rounding::NearestEven, Overflow::Ieee);
            [bits, bits & !(1 << (scalar.bits() - 1))]
        }
        None => [number as i64 as u64, number.abs() as u64],
    }
}

/// The numbers that are not ordinary, some with both signs.
fn special(scalar: Scalar, precision: DotPrecision) -> Vec<f64> {
    // Largest, smallest normal, smallest.
    let (most, normal, least) = match scalar {
        Scalar::F16 => (65504.0, -14, -24),
        Scalar::Bf16 => (f64::from_bits(0x47ef_e000_0000_0000), -126, -133),
        Scalar::F32 => (f64::from(f32::MAX), -126, -149),
        Scalar::F64 => (f64::MAX, -1022, -1074),
        Scalar::F8E4M3 => (448.0, -6, -9),
        Scalar::F8E5M2 => (57344.0, -14, -16),
        other => {
            let most = (1_i64 << (other.bits() - 1)) as f64;
            return vec![most - 1.0, -most, -1.0, 0.0, 1.0];
        }
    };
    // Below 2^-136 there is no part that tf32 keeps, which infinity may make NaN of.
    let least = match precision {
        DotPrecision::Tf32x3 => least.max(-136),
        _ => least,
    };
    let (normal, least) = ((normal as f64).exp2(), (least as f64).exp2());
    let subnormal = if least > 0.0 { normal - least } else { normal };
    let mut all = vec![0.0, 1.0];
    for x in [f64::INFINITY, f64::NAN, most, normal, subnormal, least] {
        all.extend([x, -x]);
    }
    all.push(-0.0);
    all
}

/// A block of `rows` x `columns` whose special numbers stand where `place` says, which gives their index.
fn block(
    scalar: Scalar,
    precision: DotPrecision,
    [rows, columns]: [u64; 2],
    seed: u64,
    place: impl Fn(u64, u64) -> Option<u64>,
    is_bare: impl Fn(u64, u64) -> bool,
) -> [Vec<u8>; 2] {
    let special = special(scalar, precision);
    let mut random = Random(seed);
    let mut both = [Vec::new(), Vec::new()];
    for row in 0..rows {
        for column in 0..columns {
            // With all digits, and at most 1.
            let ordinary = (random.bits() >> 11) as f64 / (1_u64 << 52) as f64 - 1.0;
            let number = match place(row, column) {
                Some(index) => special[index as usize % special.len()],
                None if is_bare(row, column) => 0.0,
                None if scalar.is_float() => ordinary,
                None => (ordinary * 100.0).round(),
            };
            for (bytes, bits) in both.iter_mut().zip(bits(scalar, number)) {
                bytes.extend(bits.to_le_bytes().iter().take(scalar.bytes() as usize));
            }
        }
    }
    both
}

/// The arguments of a case, and their absolute values.
fn arguments(case: &Case) -> [Vec<HostArg>; 2] {
    let length = case.extents[2];
    let [left, right] = case.factors.map(|factor| factor.stored);
    let precision = case.precision;
    // Half of the rows have nothing else, so that small numbers show.
    let left = block(
        left,
        precision,
        [ROWS, length],
        1,
        |row, k| (k == row % length).then_some(row),
        |row, _| row >= ROWS / 2,
    );
    let right = block(
        right,
        precision,
        [length, COLUMNS],
        2,
        |k, column| (column % 2 == 1 && k == (5 * column + 3) % length).then_some(column / 2 + 2),
        |_, _| false,
    );
    let start = block(
        case.sum,
        precision,
        [ROWS, COLUMNS],
        3,
        |row, column| (column % 4 == 2).then_some(row + column / 4),
        |row, _| row % 4 != 0,
    );
    let mut all = kernel::arguments(case);
    for (at, bytes) in [(0, left), (1, right), (3, start)] {
        for (args, bytes) in all.iter_mut().zip(bytes) {
            assert_eq!(args[at].bytes().len(), bytes.len(), "a buffer of {case:?}");
            args[at] = HostArg::Buffer(bytes);
        }
    }
    all
}

fn case(target: Target, factors: [Scalar; 2], sum: Scalar, precision: DotPrecision) -> Case {
    let matrix = |stored: Scalar, transposed| Matrix {
        stored,
        transposed,
        permuted: false,
    };
    // What warpgroups take: rows of 32 bytes at least, along the sum but for numbers of 16 bits.
    let of_groups = target == Target::SM_90A;
    let step = if of_groups { 32 } else { 16 };
    Case {
        number: 0,
        target,
        warps: if of_groups { 4 } else { 2 },
        stages: 2,
        batch: None,
        block: [ROWS, COLUMNS, step],
        second: 1,
        steps: 2,
        grid: 1,
        extents: [ROWS, COLUMNS, 2 * step],
        factors: [
            matrix(factors[0], false),
            matrix(factors[1], of_groups && factors[1].bytes() != 2),
        ],
        operand: None,
        scaled: false,
        sum,
        precision,
        imprecise: (of_groups && factors[0].is_float() && factors[0].bits() == 8)
            .then_some(1 << 30),
        result: sum,
        form: Form::Carried,
        edge: Edge::None,
        ones: false,
        start: Start::Loaded,
        chain: Chain::None,
        link: sum,
        align: 16,
        exact: !sum.is_float(),
    }
}

/// Both are NaN, or the same infinity, or near each other.
fn compare(case: &Case, ours: &[u8], theirs: &[u8], most: &[u8]) -> Result<usize, String> {
    if case.exact {
        return match ours == theirs {
            true => Ok(0),
            false => Err("integers differ".to_owned()),
        };
    }
    let part = match case.precision {
        // The small part of a number below 2^-113 is one that tf32 has fewer bits of, or none.
        DotPrecision::Tf32x3 => (-9_f64).exp2(),
        _ => bound(case) + 2.0 * unit(case.result),
    };
    let least = match case.result {
        Scalar::F16 => (-24_f64).exp2(),
        Scalar::F32 => (-149_f64).exp2(),
        _ => f64::from_bits(1),
    };
    let class = |x: f64| (x.is_nan(), x.is_infinite().then_some(x > 0.0));
    let pairs = numbers(case.result, ours).zip(numbers(case.result, theirs));
    let mut infinite = 0;
    for (i, ((a, b), most)) in pairs.zip(numbers(case.result, most)).enumerate() {
        // Where the sum of the sizes overflows the kind of the result says enough.
        let is_near =
            !a.is_finite() || !most.is_finite() || (a - b).abs() <= part * most + 4.0 * least;
        if class(a) != class(b) || !is_near {
            let (row, column) = (i as u64 / COLUMNS, i as u64 % COLUMNS);
            return Err(format!("{row}, {column} is {a:e} and {b:e} of {most:e}"));
        }
        infinite += usize::from(a.is_infinite());
    }
    Ok(infinite)
}

#[test]
fn special_values_are_those_of_the_interpreter() {
    let mut failures = Vec::new();
    let mut types = TYPES.to_vec();
    types.dedup();
    for target in TARGETS {
        for &(factors, sum) in &types {
            for &precision in DotPrecision::ALL {
                if factors[0] != Scalar::F32 && precision != DotPrecision::Ieee {
                    continue;
                }
                let case = case(target, factors, sum, precision);
                let result = run_with(&case, arguments(&case)).and_then(|done| {
                    let done = done.ok_or("it does not fit")?;
                    let theirs = done.emulated[super::RESULT].bytes();
                    compare(&case, &done.ours, theirs, &done.most)
                });
                let what = format!("{factors:?} to {sum}, {precision:?}, {target}");
                match result {
                    Err(problem) => failures.push(format!("{what}: {problem}")),
                    // Some of the results have to be infinite, or nothing was tried.
                    Ok(infinite) if sum.is_float() && infinite < 8 => {
                        failures.push(format!("{what}: {infinite} infinities"));
                    }
                    Ok(_) => {}
                }
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
