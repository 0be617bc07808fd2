//! Makes a failing case smaller as long as it fails in the same way: its launch, and its kernel by `reduce_test_case`.

use std::time::{Duration, Instant};

use super::generate::{Argument, Case};
use crate::ir::function::TileFunction;
use crate::reduce_test_case::Round;
use crate::verify::verify;

/// Time for one failure.
const LIMIT: Duration = Duration::from_secs(60);

/// The smallest case found that `fails` as the given one does.
pub fn reduce_case(case: &Case, fails: impl Fn(&Case) -> bool) -> Case {
    let start = Instant::now();
    let mut best = case.clone();
    let fails = |case: &Case| verify(&case.func).is_ok() && fails(case);
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    loop {
        let mut changed = reduce_launch(&mut best, &fails);
        let with = |func: TileFunction| Case {
            func,
            ..best.clone()
        };
        let mut round = Round {
            start,
            limit: LIMIT,
            on_change: &mut |_| {},
        };
        let smaller = round.run(&best.func, &|func| fails(&with(func.clone())));
        if let Some(func) = smaller {
            best.func = func;
            changed = true;
        }
        if !changed {
            break;
        }
    }
    drop_parameters(&mut best);
    std::panic::set_hook(hook);
    best
}

/// Fewer programs and warps, no fusion.
fn reduce_launch(best: &mut Case, fails: &impl Fn(&Case) -> bool) -> bool {
    let mut changed = false;
    let mut attempt = |best: &mut Case, change: &dyn Fn(&mut Case)| {
        let mut candidate = best.clone();
        change(&mut candidate);
        if fails(&candidate) {
            *best = candidate;
            changed = true;
        }
    };
    if best.grid != [1, 1, 1] {
        attempt(best, &|case| case.grid = [1, 1, 1]);
    }
    for warps in [1, best.func.num_warps() / 2] {
        if warps < best.func.num_warps() && 0 < warps {
            attempt(best, &|case| case.func.set_num_warps(warps));
        }
    }
    if best.options.diversity.is_some() {
        attempt(best, &|case| case.options.diversity = None);
    }
    if best.options.fp_fusion {
        attempt(best, &|case| case.options.fp_fusion = false);
    }
    changed
}

/// Parameters that nothing uses go, with their arguments.
fn drop_parameters(case: &mut Case) {
    let func = &mut case.func;
    let mut used = std::collections::BTreeSet::new();
    for (_, inst) in func.all_insts() {
        used.extend(func.dfg.uses(inst));
    }
    let params = func.params().to_vec();
    let kept: Vec<usize> = (0..params.len())
        .filter(|&i| used.contains(&params[i]))
        .collect();
    let pick = |i: &usize| -> Argument { case.args[*i].clone() };
    case.args = kept.iter().map(pick).collect();
    func.param_names = kept.iter().map(|&i| func.param_names[i].clone()).collect();
    func.param_hints = kept.iter().map(|&i| func.param_hints[i].clone()).collect();
    let entry = func.entry;
    func.dfg.blocks[entry].params = kept.iter().map(|&i| params[i]).collect();
    for (i, &old) in kept.iter().enumerate() {
        func.dfg.values[params[old]].def = crate::ir::dfg::ValueDef::Param(entry, i as u16);
    }
}
