//! What a GPU computes.

use tilelift::ir::types::Scalar;

use super::{Function, number};

/// What `tests/data/ulp_gpu/gpu.py` measured of a function on a GPU.
#[derive(Debug)]
pub(crate) struct Measured {
    /// The function's name, with what tells apart ranges of arguments.
    pub(crate) label: &'static str,
    /// Its type.
    pub(crate) scalar: Scalar,
    /// How many arguments it had.
    pub(crate) total: u64,
    /// The largest error of CUDA's function of float.
    pub(crate) theirs: f64,
    /// The largest differences from CUDA's function of double: in f32 the error in units of the last place, in f64
    /// the distance; then the bits of the operands and of the result.
    pub(crate) worst: Vec<(f64, Vec<u64>, u64)>,
}

/// The GPU, and what was measured on it.
pub(crate) fn measured() -> (&'static str, Vec<Measured>) {
    let text = include_str!("../../data/ulp_gpu/measured.txt");
    let (device, lines) = text.split_once('\n').expect("the first line names the GPU");
    let measured = lines.lines().map(|line| {
        let [label, ty, total, _, theirs, worst @ ..] = &line.split(';').collect::<Vec<_>>()[..]
        else {
            panic!("`{line}` has too few fields");
        };
        let number = |text: &str| text.parse::<f64>().expect("an error is a number");
        let worst = worst.iter().map(|field| {
            let mut words = field.split(' ');
            let error = number(words.next().unwrap_or_default());
            let bits = words.map(|word| u64::from_str_radix(word, 16).expect("bits"));
            let mut bits: Vec<u64> = bits.collect();
            let result = bits.pop().expect("the last word is the result");
            (error, bits, result)
        });
        Measured {
            label,
            scalar: Scalar::from_name(ty).expect("f32 or f64"),
            total: total.parse().expect("a number of arguments"),
            theirs: number(theirs.split(' ').next().unwrap_or_default()),
            worst: worst.collect(),
        }
    });
    (device.trim_start_matches("# "), measured.collect())
}

/// Where the table of what a GPU computes begins.
pub(crate) const GPU_TITLE: &str = "\n# Errors on a GPU";

/// The largest error of a function on a GPU.
#[derive(Debug)]
pub(crate) struct Row<'a> {
    pub(crate) function: &'a Function,
    pub(crate) scalar: Scalar,
    /// The error in units of the last place.
    pub(crate) error: f64,
    /// The arguments and results that were recorded.
    pub(crate) cases: Vec<(Vec<u64>, u64)>,
}

/// The rows of the table of what a GPU computes, with their text.
pub(crate) fn measured_rows(functions: &[Function]) -> Vec<(Row<'_>, String)> {
    let (_, measured) = measured();
    let row = |row: Measured| {
        let place = usize::from(row.scalar == Scalar::F64);
        let known = |f: &&Function| f.name == row.label && f.bounds[place].is_some();
        let function = functions.iter().find(known);
        let function = function.unwrap_or_else(|| panic!("no function is {}", row.label));
        let errors = row.worst.iter().map(|(distance, args, result)| {
            let numbers: Vec<f64> = args.iter().map(|&x| number(row.scalar, x)).collect();
            let pair = [numbers[0], numbers.get(1).copied().unwrap_or(0.0)];
            match row.scalar {
                Scalar::F64 => (function.error(row.scalar, pair, *result), numbers),
                _ => (*distance, numbers),
            }
        });
        let worst = errors.max_by(|a, b| a.0.total_cmp(&b.0));
        let (error, at) = worst.expect("the largest errors are recorded");
        let at: Vec<String> = at.iter().map(|x| format!("{x:e}")).collect();
        let at = if error == 0.0 {
            String::new()
        } else {
            at.join(", ")
        };
        let total = match row.total {
            total if total == 1 << 32 => "all".to_owned(),
            total => format!("2^{}", total.ilog2()),
        };
        let theirs = match row.scalar {
            Scalar::F64 => row.worst[0].0,
            _ => row.theirs,
        };
        let bound = function.bounds[place].unwrap_or_default();
        let text = format!(
            "| `{}` | {} | {total} | {bound} | {error:.3} | {at} | {theirs:.3} |",
            row.label, row.scalar
        );
        let cases = row.worst.into_iter();
        let row = Row {
            function,
            scalar: row.scalar,
            error,
            cases: cases.map(|(_, args, result)| (args, result)).collect(),
        };
        (row, text)
    };
    measured.into_iter().map(row).collect()
}
