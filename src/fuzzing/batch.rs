//! Many inputs for a generated kernel, made from a number alone, and digests of what a launch leaves.
//!
//! Both are simple enough to be written twice: here, and in `fuzz/gpu.py` with numpy, so that thousands of launches
//! fit into a small package for a machine with a GPU, which returns nothing but the launches that differ.
//!
//! Element `i` of buffer `b` of a launch is entry `mix(mix(launch + b) + i) >> 56` of a table of its type. There are two
//! tables for each type: numbers as the generator draws them, and whole numbers from -1 to 1 for buffers that held such
//! small numbers before, on which exact sums rely. A digest is the sum over all elements of `mix(bits + mix(place))`, modulo 2^64, the
//! place counted through all buffers of the launch. NaNs count as one NaN, as the IR leaves their bits open.

use super::Verdict;
use super::generate::{Argument, Case, case, random_number};
use super::random::{Random, mix};
use super::tile_ir::{Judgement, emulate, judge, show};
use crate::compile::{CompiledKernel, compile};
use crate::emu;
use crate::ir::types::{Elem, Scalar};
use crate::num::{Overflow, Rounding};

/// Longest PTX of a kernel, so that none holds up the assembler.
const MAX_BYTES: usize = 150_000;
/// Most warp instructions of a launch on the emulator, as each is to be launched many times.
const MAX_STEPS: u64 = 400_000;
/// Entries of a table.
pub const ENTRIES: usize = 256;

/// The numbers that buffers are filled with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tables {
    /// For each of [`Scalar::ALL`]: any numbers, and small ones.
    pub entries: Vec<[Vec<u64>; 2]>,
}

impl Tables {
    /// The tables of a seed.
    pub fn new(seed: u64) -> Tables {
        let mut random = Random::new(seed);
        let mut both = |scalar: Scalar| {
            let mut any = || match scalar {
                Scalar::I1 => random.pick(&[0, 0, 0, 1, 1, 2, 255]),
                _ => random_number(&mut random, Elem::Num(scalar)),
            };
            let any = (0..ENTRIES).map(|_| any()).collect();
            let small = (0..ENTRIES).map(|i| small(scalar, i as i64 % 3 - 1));
            [any, small.collect()]
        };
        Tables {
            entries: Scalar::ALL.into_iter().map(&mut both).collect(),
        }
    }

    fn fill(&self, scalar: Scalar, small: bool, count: usize, seed: u64) -> Vec<u8> {
        let place = Scalar::ALL.iter().position(|&s| s == scalar).unwrap_or(0);
        let table = &self.entries[place][usize::from(small)];
        let size = scalar.bytes() as usize;
        let words = (0..count as u64).map(|i| table[(mix(seed.wrapping_add(i)) >> 56) as usize]);
        words
            .flat_map(|word| word.to_le_bytes().into_iter().take(size))
            .collect()
    }
}

/// A whole number in a type.
fn small(scalar: Scalar, number: i64) -> u64 {
    match scalar.format() {
        Some(format) => format.from_f64(number as f64, Rounding::NearestEven, Overflow::Ieee),
        None if scalar == Scalar::I1 => u64::from(number != 0),
        None => number as u64 & (u64::MAX >> (64 - scalar.bits())),
    }
}

/// Whether a buffer holds whole numbers from -2 to 2 alone.
pub fn is_small(scalar: Scalar, bytes: &[u8]) -> bool {
    let all = [-2, -1, 0, 1, 2].map(|number| small(scalar, number));
    words(scalar, bytes).all(|word| all.contains(&word))
}

/// The elements of a buffer.
fn words(scalar: Scalar, bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.chunks(scalar.bytes() as usize).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    })
}

/// The number of a launch: of the case with a seed on its input of a number.
pub fn launch_number(seed: u64, input: u64) -> u64 {
    mix(mix(seed).wrapping_add(input))
}

/// The case on another input. Buffers are filled anew, and numbers that nothing relies on (`n0`, `n1`, ..) are drawn anew.
pub fn with_input(case: &Case, tables: &Tables, launch: u64) -> Case {
    let mut random = Random::new(launch);
    let mut other = case.clone();
    let params = case.func.param_names.iter().zip(&case.func.param_hints);
    for (i, (arg, (name, hints))) in other.args.iter_mut().zip(params).enumerate() {
        match arg {
            Argument::Buffer(scalar, bytes) => {
                let count = bytes.len() / scalar.bytes() as usize;
                let seed = mix(launch.wrapping_add(i as u64));
                *bytes = tables.fill(*scalar, is_small(*scalar, bytes), count, seed);
            }
            Argument::Number(elem, bits) if name.starts_with('n') => {
                *bits = random_number(&mut random, *elem);
                if 1 < hints.promised() {
                    *bits &= !(u64::from(hints.promised()) - 1);
                }
            }
            Argument::Number(..) => {}
        }
    }
    other
}

/// The kernel, if a GPU must give the same bits: approximate functions may differ within their bounds.
pub fn exact_kernel(case: &Case) -> Option<CompiledKernel> {
    let kernel = compile(&case.func, case.target, &case.options).ok()?;
    let ptx = &kernel.ptx;
    let is_exact = !ptx.contains(".approx") && !ptx.contains(".full");
    (is_exact && ptx.len() <= MAX_BYTES).then_some(kernel)
}

/// The buffers as the emulator leaves them, and the warp instructions it took. Races it reports if it is to look for them.
///
/// # Errors
///
/// What the emulator reports, also if the launch is too long for a GPU to do it often.
pub fn emulate_launch(
    kernel: &CompiledKernel,
    case: &Case,
    check_races: bool,
) -> Result<(Vec<Vec<u8>>, u64), String> {
    let options = emu::Options {
        step_limit: MAX_STEPS,
        check_races,
        ..emu::Options::default()
    };
    emulate(kernel, case, options)
}

/// Judges the kernel of a seed on two other inputs.
pub fn check(seed: u64) -> Verdict {
    let (case, tables) = (case(seed), Tables::new(seed));
    for input in 0..2 {
        let other = with_input(&case, &tables, launch_number(seed, input));
        match judge(&other) {
            Judgement::Passed(_) => {}
            Judgement::Skipped(reason) => return Verdict::Skipped(reason),
            Judgement::Failed(failure) => {
                let (kind, details) = (failure.kind, failure.details);
                return Verdict::Failed(format!(
                    "input {input}: {kind}\n{details}\n{}",
                    show(&other)
                ));
            }
        }
    }
    Verdict::Passed(Vec::new())
}

/// What tells buffers from others.
pub fn digest<'a>(buffers: impl Iterator<Item = (Scalar, &'a [u8])>) -> u64 {
    let (mut sum, mut place) = (0u64, 0u64);
    for (scalar, bytes) in buffers {
        for word in words(scalar, bytes) {
            let word = match scalar.format() {
                Some(format) if format.to_f64(word).is_nan() => format.nan,
                _ => word,
            };
            sum = sum.wrapping_add(mix(word.wrapping_add(mix(place))));
            place += 1;
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_tell_bits_and_places_but_not_nans() {
        let of = |x: [f32; 2]| {
            let bytes = x.map(f32::to_le_bytes).concat();
            digest([(Scalar::F32, bytes.as_slice())].into_iter())
        };
        assert_ne!(of([1.0, 2.0]), of([2.0, 1.0]));
        assert_ne!(of([0.0, 0.0]), of([-0.0, 0.0]));
        assert_eq!(of([f32::NAN, 1.0]), of([-f32::NAN, 1.0]));
        // The same number is written in `gpu.py`, whose tests are runs on hardware.
        let two = [(Scalar::I8, &[1u8, 2][..])].into_iter();
        assert_eq!(
            digest(two),
            mix(1u64.wrapping_add(mix(0))).wrapping_add(mix(2u64.wrapping_add(mix(1))))
        );
    }

    #[test]
    fn small_buffers_stay_small() {
        let tables = Tables::new(1);
        for scalar in Scalar::ALL {
            let small = tables.fill(scalar, true, 100, 7);
            assert!(is_small(scalar, &small), "{scalar}");
            let any = tables.fill(scalar, false, 100, 7);
            assert_eq!(
                is_small(scalar, &any),
                scalar == Scalar::I1 && any.iter().all(|&b| b < 3),
                "{scalar}"
            );
        }
    }
}
