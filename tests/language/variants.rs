//! What the run time would keep for the launches of these tests: a kernel for each list of classes of arguments, or for each list
//! of the promises that its code depends on. With fewer promises and with more, between the bounds that were asked for, the
//! compiler has to make the same code.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use tilelift::compile::compile;
use tilelift::ir::function::{ParamHints, TileFunction};
use tilelift::ir::types::ValueType;
use tilelift::settings::{Options, Target};

use crate::run::{Given, Launch};

/// The largest exponent of a power of two that a class tells.
const MOST: u8 = 4;

#[derive(Default)]
struct Counted {
    launches: usize,
    /// By the classes that tell multiples of 8 and 16.
    few: BTreeSet<(String, Vec<u8>)>,
    /// By all classes.
    all: BTreeSet<(String, Vec<u8>)>,
    /// By what was asked for.
    asked: BTreeSet<(String, Vec<u8>)>,
}

static COUNTED: Mutex<Option<Counted>> = Mutex::new(None);

/// Counts a launch, and checks the kernel of its classes.
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
    let (constants, warps) = (launch.constants, launch.num_warps);
    let types = func
        .params()
        .iter()
        .map(|&param| func.dfg.ty(param).to_string());
    let types = types.collect::<Vec<_>>().join(", ");
    let kernel = format!(
        "{} {}({types}) {constants:?} {warps} {target}",
        launch.file, launch.kernel
    );
    // What is one is a constant and has a class of its own.
    let is_one = |given: &Given| matches!(given, Given::Int(1));
    let key = |levels: &[u8]| {
        let pairs = levels.iter().zip(launch.args);
        let keys = pairs.map(|(&level, given)| if is_one(given) { u8::MAX } else { level });
        (kernel.clone(), keys.collect())
    };
    let mut counted = COUNTED.lock().unwrap_or_else(PoisonError::into_inner);
    let counted = counted.get_or_insert_default();
    let few: Vec<u8> = classes.iter().map(|&c| if c < 3 { 0 } else { c }).collect();
    counted.launches += 1;
    counted.few.insert(key(&few));
    counted.all.insert(key(&classes));
    counted.asked.insert(key(&least));
    Ok(())
}

/// Prints what the launches so far need.
pub(crate) fn print() {
    let counted = COUNTED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(counted) = &*counted {
        println!(
            "{} launches so far: {} variants by classes 1, 8, 16, {} by 1, 2, 4, 8, 16, {} by what was asked for",
            counted.launches,
            counted.few.len(),
            counted.all.len(),
            counted.asked.len()
        );
    }
}
