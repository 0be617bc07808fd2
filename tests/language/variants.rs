//! What the code of these tests' launches depends on: with fewer promises of arguments and with more, between the bounds that were
//! asked for, the compiler has to make the same code.
//!
//! `TILELIFT_VARIANTS=N` counts, too, what the run time would keep of each kernel for N launches with sizes at random: a variant for each list of
//! classes, or for each list of the promises that the code depends on.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use tilelift::compile::compile;
use tilelift::ir::function::{Asked, ParamHints, TileFunction};
use tilelift::ir::types::ValueType;
use tilelift::settings::{Options, Target};
use tilelift::text::print::print as print_function;

use crate::run::{Given, Launch};

/// The largest exponent of a power of two that a class tells.
const MOST: u8 = 4;

/// Variants of all kernels together.
#[derive(Default)]
struct Counted {
    kernels: BTreeSet<String>,
    /// By the classes that tell multiples of 8 and 16.
    few: usize,
    /// By all classes.
    all: usize,
    /// By what was asked for.
    asked: usize,
}

static COUNTED: Mutex<Option<Counted>> = Mutex::new(None);

/// Checks the kernel of a launch's classes, and counts the variants of others.
pub(crate) fn count(
    func: &TileFunction,
    target: Target,
    options: &Options,
    launch: &Launch<'_>,
) -> Result<(), String> {
    let elem = |param: usize| func.dfg.ty(func.params()[param]).elem();
    let of_arg = |(param, given): (usize, &Given)| match given {
        Given::Int(n) if elem(param).is_int() => (n.trailing_zeros() as u8).min(MOST),
        _ if elem(param).is_ptr() => MOST,
        _ => 0,
    };
    let given = launch.args.iter().take(func.params().len());
    let classes: Vec<u8> = given.enumerate().map(of_arg).collect();
    let with = |levels: &[u8]| {
        let mut func = func.clone();
        let hints = func.param_hints.iter_mut().enumerate().zip(levels);
        for ((param, hints), level) in hints {
            if elem(param).is_int() || elem(param).is_ptr() {
                *hints = ParamHints::divisible(1 << level);
            }
        }
        compile(&func, target, options).map_err(|e| e.to_string())
    };
    let whole = with(&classes)?;
    let least: Vec<u8> = whole.asked.iter().map(|asked| asked.least).collect();
    let most: Vec<u8> = whole
        .asked
        .iter()
        .map(|asked| asked.most.min(MOST))
        .collect();
    for levels in [&least, &most] {
        let other = with(levels)?;
        if other.ptx != whole.ptx {
            return Err(format!(
                "other code for {levels:?} than for {classes:?}, of which {:?} was asked for:\n{}\n{}",
                whole.asked, whole.ptx, other.ptx
            ));
        }
    }
    let draws = std::env::var("TILELIFT_VARIANTS").map_or(Ok(0), |draws| draws.parse());
    let draws: u32 = draws.map_err(|e| format!("TILELIFT_VARIANTS: {e}"))?;
    let mut counted = COUNTED.lock().unwrap_or_else(PoisonError::into_inner);
    let counted = counted.get_or_insert_default();
    // One kernel with whatever promises.
    let mut bare = func.clone();
    bare.param_hints.fill(ParamHints::default());
    if draws == 0
        || !counted
            .kernels
            .insert(format!("{target} {}", print_function(&bare)))
    {
        return Ok(());
    }
    let mut state = counted.kernels.len() as u64;
    let (mut few, mut all) = (BTreeSet::new(), BTreeSet::new());
    let mut asked: Vec<(Vec<u8>, Vec<Asked>)> = Vec::new();
    for _ in 0..draws {
        let given = launch.args.iter().zip(&classes).enumerate();
        let drawn = given.map(|(param, (given, &class))| match given {
            Given::Int(_) if elem(param).is_int() => {
                (size(&mut state).trailing_zeros() as u8).min(MOST)
            }
            _ => class,
        });
        let drawn: Vec<u8> = drawn.collect();
        few.insert(
            drawn
                .iter()
                .map(|&c| if c < 3 { 0 } else { c })
                .collect::<Vec<u8>>(),
        );
        let serves = |(by, asked): &(Vec<u8>, Vec<Asked>)| {
            let of_param = drawn.iter().zip(by).zip(asked);
            of_param.into_iter().all(|((class, by), asked)| {
                class == by || (asked.least..=asked.most).contains(class)
            })
        };
        if all.insert(drawn.clone()) && !asked.iter().any(serves) {
            let made = with(&drawn)?;
            asked.push((drawn, made.asked));
        }
    }
    counted.few += few.len();
    counted.all += all.len();
    counted.asked += asked.len();
    Ok(())
}

/// A size as applications have them: any to 4096, or a multiple of a power of two.
fn size(state: &mut u64) -> u64 {
    // Xorshift, "Xorshift RNGs", Marsaglia 2003.
    for shift in [13_i32, -7, 17] {
        *state ^= match shift > 0 {
            true => *state << shift,
            false => *state >> -shift,
        };
    }
    let unit = 1 << ((*state >> 32) % 8);
    (1 + *state % 4096).div_ceil(unit) * unit
}

/// Prints what the kernels so far need.
pub(crate) fn print() {
    let counted = COUNTED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(counted) = counted.as_ref().filter(|counted| counted.all > 0) {
        println!(
            "{} kernels so far: {} variants by classes 1, 8, 16, {} by 1, 2, 4, 8, 16, {} by what was asked for",
            counted.kernels.len(),
            counted.few,
            counted.all,
            counted.asked
        );
    }
}
