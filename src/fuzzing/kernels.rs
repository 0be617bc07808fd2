//! Kernels of users: cases from a seed, run as the compiler would hardly ever make them.

use crate::runtime::Device;
use crate::settings::Target;
use crate::testing::{Case, Failure, emulator_for};

use super::random::Random;
use super::{SEED, Verdict, Verdicts, run_with};

/// Runs cases of a user's kernel until the time is up, a second if [`SECONDS`](super::SECONDS) says nothing: `make` builds one
/// from random numbers, on the device that it is given, and [`Case::check`] judges it. `name` is for messages.
///
/// Each runs on an emulator for one of the targets, whose warps run in an order of the seed, and three of four are compiled
/// with layouts, stages, swizzles, order of instructions and registers chosen by the seed instead of by cost
/// ([`diversity`](crate::settings::diversity)): a kernel is right if its results depend on none of that.
///
/// # Errors
///
/// The first case that failed, its seed and how to repeat it; targets that there are none of.
pub fn check_kernel(
    name: &str,
    targets: &[Target],
    make: impl Fn(&Device, &mut Random) -> Result<Case, Failure>,
) -> Result<Verdicts, Failure> {
    let [first, ..] = targets else {
        return Err(Failure::Case {
            kernel: name.to_owned(),
            problem: "no target is given to compile for".to_owned(),
        });
    };
    let run_case = |seed: u64| {
        let mut random = Random::new(seed);
        // The first case is the plain one.
        let target = if seed == 0 {
            *first
        } else {
            random.pick(targets)
        };
        let diversity = random.chance(75).then(|| random.bits());
        let diversity = diversity.filter(|_| seed != 0);
        let device = emulator_for(target, seed);
        let case = make(&device, &mut random)?;
        let kernel = case.kernel();
        let case = match kernel.is_compiled_ahead() {
            true => case,
            false => {
                let kernel = kernel.diversity(diversity)?;
                case.with_kernel(&kernel)
            }
        };
        case.check()?;
        Ok(match diversity {
            Some(_) => "compiled by chance",
            None => "compiled by cost",
        })
    };
    let check = |seed: u64| match run_case(seed) {
        Ok(note) => Verdict::Passed(vec![note]),
        Err::<_, Failure>(failure) => Verdict::Failed(failure.to_string()),
    };
    let repeat = |seed: u64| format!("{SEED}={seed} in the environment runs this case alone");
    let report = run_with(name, check, &repeat);
    match report.failures.first() {
        None => Ok(report),
        Some((seed, failure)) => Err(Failure::Seed {
            seed: *seed,
            failure: failure.clone(),
        }),
    }
}
