//! The interpreter as an executor, and what follows from the bounds of ops.

use super::compare::Distances;
use super::exec::{
    ArgValue, Argument, At, Contents, Executor, Finished, Job, Outcome, Printed, STEPS_ADVICE,
    allocated, failed,
};
use super::named::named_address;
use crate::device_print::{self, Log, Site};
use crate::interp::{self, Cause};
use crate::ir::function::TileFunction;

/// Memory of the interpreter that holds the buffers, and the address for each argument.
fn interpreted(args: &[Argument]) -> Result<(interp::Memory, Vec<u64>), String> {
    let mut memory = interp::Memory::new();
    let addresses = allocated(args, |size, bytes| {
        let address = memory.try_alloc(size)?;
        bytes.map_or(Ok(()), |bytes| memory.write(address, bytes))?;
        Ok::<_, interp::MemoryError>(address)
    })?;
    Ok((memory, addresses))
}

/// The arguments in the interpreter's words.
fn passed(args: &[Argument], addresses: &[u64]) -> Vec<interp::Arg> {
    let args = args.iter().zip(addresses);
    let args = args.map(|(arg, &address)| match &arg.it {
        ArgValue::Scalar { bits, .. } => interp::Arg::Bits(*bits),
        ArgValue::Null | ArgValue::Same(_) | ArgValue::Buffer { .. } => interp::Arg::Ptr(address),
    });
    args.collect()
}

/// What the interpreter counts of a launch. Races are not looked for, so that large ones are counted in time.
pub(super) fn count(
    func: &TileFunction,
    grid: [u32; 3],
    args: &[Argument],
    steps: Option<u64>,
) -> Result<interp::Stats, String> {
    let (mut memory, addresses) = interpreted(args)?;
    let launch = interp::Launch {
        grid,
        args: &passed(args, &addresses),
    };
    let usual = interp::Options::default();
    let options = interp::Options {
        step_limit: steps.unwrap_or(usual.step_limit),
        check_races: false,
        count_bytes: true,
        ..usual
    };
    interp::run(func, &launch, &mut memory, &options).map_err(|error| error.kind.to_string())
}

/// Launches on the interpreter in one of its ways.
fn interpret<T>(
    job: &Job<'_>,
    addresses: &[u64],
    run: impl FnOnce(&interp::Launch<'_>, &interp::Options) -> Result<T, interp::InterpError>,
) -> Result<T, interp::InterpError> {
    let args = passed(job.args, addresses);
    let launch = interp::Launch {
        grid: job.grid,
        args: &args,
    };
    let mut options = interp::Options::default();
    options.step_limit = job.steps.unwrap_or(options.step_limit);
    run(&launch, &options)
}

/// Program and element, for the start of a message.
fn who(job: &Job<'_>, place: &interp::FaultSite) -> String {
    let Some([x, y, z]) = place.program else {
        return String::new();
    };
    let element = place.element.zip(place.inst).map(|(element, (inst, _))| {
        let dfg = &job.func.dfg;
        let shape = dfg.insts[inst].args.first().map(|&v| dfg.ty(v).shape);
        let index = shape.map_or(Vec::new(), |shape| {
            let dims = 0..shape.rank();
            dims.map(|dim| shape.coordinate(element, dim).to_string())
                .collect()
        });
        format!(", element ({})", index.join(", "))
    });
    format!("program ({x}, {y}, {z}){}: ", element.unwrap_or_default())
}

/// What the address of a failure is in terms of arguments.
fn named_place(job: &Job<'_>, addresses: &[u64], kind: &interp::InterpErrorKind) -> String {
    use interp::{InterpErrorKind, MemoryError};
    match kind {
        InterpErrorKind::Memory(
            MemoryError::OutOfBounds { address, .. } | MemoryError::Uninitialised { address, .. },
        )
        | InterpErrorKind::Misaligned { address, .. }
        | InterpErrorKind::StoreConflict { address, .. }
        | InterpErrorKind::Race { address, .. }
        | InterpErrorKind::Unordered { address, .. } => {
            named_address(job.args, addresses, *address)
        }
        _ => String::new(),
    }
}

/// How far other executors may be from the interpreter, by what the ops of the kernel state.
pub(super) struct Stated {
    /// For each argument.
    pub(super) distances: Vec<Distances>,
    /// Whether lines that are printed may differ as well.
    pub(super) is_printed: bool,
    /// Lines that are printed of values that are not defined, and what these come from.
    pub(super) undefined_lines: Vec<(String, Cause)>,
}

/// The bounds of a job that the interpreter has run to its end, or why there are none.
pub(super) fn stated(job: &Job<'_>) -> Result<Stated, interp::InterpError> {
    let mut distances: Vec<Distances> = vec![Distances::default(); job.args.len()];
    let Ok((mut memory, addresses)) = interpreted(job.args) else {
        // It ran before; without memory nothing is known, and everything exact.
        return Ok(Stated {
            distances,
            is_printed: false,
            undefined_lines: Vec::new(),
        });
    };
    let bounded = interpret(job, &addresses, |launch, options| {
        interp::run_bounded(
            job.func,
            launch,
            &mut memory,
            options,
            job.options.fp_fusion,
        )
    })?;
    let buffers = job.args.iter().zip(&addresses).zip(&mut distances);
    for ((arg, &start), distances) in buffers {
        let ArgValue::Buffer { scalar, count, .. } = &arg.it else {
            continue;
        };
        let size = u64::from(scalar.bytes());
        let inside = start..start + size * *count as u64;
        let own = bounded.elements.iter().filter(|(a, _)| inside.contains(*a));
        distances.extend(own.map(|(&address, &it)| (((address - start) / size) as usize, it)));
    }
    let sites = device_print::sites(job.func);
    let sites: Vec<Site> = sites.into_iter().map(|(_, site)| site).collect();
    let (records, causes) = bounded.undefined_records.into_iter().unzip();
    let lines = Printed::of(&Log { records, lost: 0 }, &sites).lines;
    Ok(Stated {
        distances,
        is_printed: bounded.is_printed,
        undefined_lines: lines.into_iter().zip::<Vec<Cause>>(causes).collect(),
    })
}

/// The reference.
pub(super) struct Interpreter;

impl Executor for Interpreter {
    fn name(&self) -> &'static str {
        "interpreter"
    }

    fn is_seeded(&self) -> bool {
        false
    }

    fn run(&self, job: &Job<'_>) -> Outcome {
        let (mut memory, addresses) = match interpreted(job.args) {
            Ok(memory) => memory,
            Err(message) => return failed(message),
        };
        let ran = interpret(job, &addresses, |launch, options| {
            interp::run(job.func, launch, &mut memory, options)
        });
        let sites: Vec<Site> = device_print::sites(job.func)
            .into_iter()
            .map(|(_, s)| s)
            .collect();
        let stats = match ran {
            Ok(stats) => stats,
            Err(error) => {
                if let interp::InterpErrorKind::NotExecutable(_) = error.kind {
                    return Outcome::NotExecutable(error.to_string());
                }
                let advice = match error.kind {
                    interp::InterpErrorKind::StepLimit(_) => STEPS_ADVICE.to_owned(),
                    _ => named_place(job, &addresses, &error.kind),
                };
                return Outcome::Failed {
                    message: format!("{}{}{advice}", who(job, &error.place), error.kind),
                    at: error.place.inst.map(|(inst, _)| At::Inst(inst)),
                    printed: Printed::of(&memory.take_log(), &sites),
                };
            }
        };
        let outputs = job
            .args
            .iter()
            .zip(&addresses)
            .map(|(arg, &address)| match &arg.it {
                ArgValue::Buffer { scalar, count, .. } => {
                    let size = scalar.bytes() as usize;
                    let held = memory.snapshot(address, count * size, size).ok();
                    held.map(|held| Contents::of_memory(*scalar, held))
                }
                ArgValue::Scalar { .. } | ArgValue::Null | ArgValue::Same(_) => None,
            });
        let buffers = outputs.collect();
        let mut outcome = Finished::outcome(buffers, Some(&memory.take_log()), &sites);
        if let Outcome::Done(finished) = &mut outcome {
            finished.undefined = stats.undefined;
        }
        outcome
    }
}
