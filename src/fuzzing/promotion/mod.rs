//! The target `promotion`: products of matrices whose loads and stores may become those of tensor maps.
//!
//! Kernels of the Triton language with many ways to write an index, its bounds, its walk along the sum and what becomes of the
//! result, and as many that must not be promoted: wraps that matter, starts in front of the tensor, odd distances, other fills.
//! Wherever the condition of the maps holds and the kernel reads what is there, the interpreter leaves the same bytes before and
//! after [`crate::tile::promote`], and so does the emulator, with every check on, for the kernel compiled with maps and without; where
//! programs write equal values to one place, without the check of races.
//! Numbers are whole and small, so that sums are exact.

mod kernel;
mod run;

use self::kernel::Kernel;
pub use self::run::Argument;
use self::run::{Races, arguments, emulate, interpret};
use super::Verdict;
use super::random::Random;
use crate::compile::{CompiledKernel, compile};
use crate::front::{Module, Specialization, parse_signature};
use crate::interp::InterpErrorKind;
use crate::ir::function::{Asked, TileFunction};
use crate::pipeline::promoted;
use crate::settings::{Asserts, Options, Policy, Promote, Target};
use crate::tile::promote::AccessOp;

/// A kernel with its arguments.
#[derive(Clone, Debug)]
struct Case {
    kernel: Kernel,
    func: TileFunction,
    options: Options,
    args: Vec<Argument>,
}

/// A kernel with tensor maps and without, and what both leave.
#[derive(Debug)]
pub struct Both {
    /// With maps. A launcher may find that the arguments allow none.
    pub mapped: CompiledKernel,
    /// The same, where waits give up.
    pub bounded: CompiledKernel,
    /// Without.
    pub plain: CompiledKernel,
    /// Whether layouts and all else were chosen by cost. Chance may hold sums in other layouts than products have: then they change
    /// places in every round, and the assembler waits for each product (C7511).
    pub is_by_cost: bool,
    /// Programs along each axis.
    pub grid: [u32; 3],
    /// What the kernel is given.
    pub args: Vec<Argument>,
    /// The buffers afterwards.
    pub after: Vec<Vec<u8>>,
}

/// Judges the kernel of a seed.
pub fn check(seed: u64) -> Verdict {
    let judged = case(seed).and_then(|case| {
        let shown = |message| format!("{message}\n{:?}\n{}", case.kernel, case.kernel.text);
        judge(&case, seed).map_err(shown)
    });
    match judged {
        Ok(Judged::Done(notes, _)) => Verdict::Passed(notes),
        Ok(Judged::Refused) => Verdict::Passed(vec!["refused"]),
        Ok(Judged::Skipped(reason)) => Verdict::Skipped(reason),
        Err(message) => Verdict::Failed(message),
    }
}

/// The kernel of a seed with what it leaves, if it has tensor maps and the emulator agrees with the interpreter.
pub fn both(seed: u64) -> Option<Both> {
    let case = case(seed).ok()?;
    let Judged::Done(_, Some(executed)) = judge(&case, seed).ok()? else {
        return None;
    };
    let Executed {
        mapped,
        plain,
        after,
    } = *executed;
    let bounded = case.compile(Promote::Auto, Asserts::Report).ok()?;
    Some(Both {
        mapped,
        bounded,
        plain,
        is_by_cost: case.options.diversity.is_none(),
        grid: case.kernel.grid,
        args: case.args,
        after,
    })
}

/// What became of a case.
enum Judged {
    /// All left the same; with what was compiled, if that was executed.
    Done(Vec<&'static str>, Option<Box<Executed>>),
    /// Nothing was promoted.
    Refused,
    Skipped(&'static str),
}

/// What was compiled and executed, and what it left.
struct Executed {
    mapped: CompiledKernel,
    plain: CompiledKernel,
    after: Vec<Vec<u8>>,
}

impl Case {
    /// The same without the promises that nobody asked for.
    fn narrowed(&self, asked: &[Asked]) -> Case {
        let mut case = self.clone();
        super::narrow(&mut case.func, asked);
        case
    }

    fn compile(&self, promote: Promote, asserts: Asserts) -> Result<CompiledKernel, String> {
        let options = Options {
            promote,
            asserts,
            ..self.options
        };
        compile(&self.func, Target::SM_90A, &options).map_err(|e| e.to_string())
    }
}

fn case(seed: u64) -> Result<Case, String> {
    let mut random = Random::new(seed);
    let kernel = Kernel::new(&mut random);
    let fail = |message: String| format!("{message}\n{}", kernel.text);
    let module = Module::parse("promotion.py", &kernel.text).map_err(|e| fail(e.to_string()))?;
    let args = parse_signature(&kernel.signature()).map_err(|e| fail(e.to_string()))?;
    let mut spec = Specialization::new(args, Target::SM_90A);
    spec.num_warps = random.pick(&[4, 4, 4, 8]);
    spec.num_stages = Some(random.pick(&[3, 3, 2, 4, 1]));
    let lowered = module.lower(None, &spec).map_err(|e| fail(e.to_string()))?;
    let policies = [Policy::Auto, Policy::Always, Policy::Never];
    let options = Options {
        verify_passes: true,
        diversity: random.chance(30).then_some(seed),
        roles: random.pick(&policies),
        persistent: random.pick(&policies),
        ..Options::DEFAULT
    };
    Ok(Case {
        args: arguments(&kernel, &mut random),
        kernel,
        func: lowered.func,
        options,
    })
}

fn judge(case: &Case, seed: u64) -> Result<Judged, String> {
    let grid = case.kernel.grid;
    let made = promoted(&case.func, Target::SM_90A, &case.options);
    let (after, all) = made.map_err(|e| e.to_string())?;
    let promoted = |stores: bool| {
        let those = all
            .iter()
            .filter(|it| stores == (it.access != AccessOp::Load));
        those.filter(|it| it.is_by_map()).count()
    };
    let (loads, stores) = (promoted(false), promoted(true));
    if loads + stores == 0 {
        return Ok(Judged::Refused);
    }
    let Ok(expected) = interpret(&case.func, grid, &case.args, Races::Ignored) else {
        return Ok(Judged::Skipped("reads or writes elsewhere"));
    };
    let mut notes = vec![match loads {
        0 => "no load promoted",
        1 => "one load promoted",
        _ => "both loads promoted",
    }];
    notes.extend((stores != 0).then_some("stores promoted"));
    match interpret(&after, grid, &case.args, Races::Ignored) {
        Ok(found) if found == expected => {}
        Ok(_) => return Err(format!("other results\n{after}")),
        Err(InterpErrorKind::NoMap) => notes = vec!["not for these arguments"],
        Err(error) => return Err(format!("{error}\n{after}")),
    }
    let races = |races| interpret(&case.func, grid, &case.args, races).is_err();
    if races(Races::Reported) {
        notes.push("races, not emulated");
        return Ok(Judged::Done(notes, None));
    }
    let check_races = !races(Races::OfEqualWrites);
    let mapped = case.compile(Promote::Auto, Asserts::Off)?;
    let plain = case.compile(Promote::Never, Asserts::Off)?;
    for (promote, kernel) in [(Promote::Auto, &mapped), (Promote::Never, &plain)] {
        if case
            .narrowed(&kernel.asked)
            .compile(promote, Asserts::Off)?
            .ptx
            != kernel.ptx
        {
            return Err(format!(
                "it depends on more than {:?}\n{}",
                kernel.asked, kernel.ptx
            ));
        }
    }
    for (kernel, may_refuse) in [(&mapped, true), (&plain, false)] {
        match emulate(kernel, grid, &case.args, check_races, seed) {
            Ok(Some(found)) if found == expected => {}
            Ok(None) if may_refuse => {}
            Ok(Some(_)) => return Err(format!("the emulator differs\n{}", kernel.ptx)),
            Ok(None) => return Err("a kernel without maps takes some".to_owned()),
            Err(error) => return Err(format!("emulator: {error}\n{}", kernel.ptx)),
        }
    }
    notes.push("emulated");
    let executed = Executed {
        mapped,
        plain,
        after: expected,
    };
    Ok(Judged::Done(notes, Some(Box::new(executed))))
}
