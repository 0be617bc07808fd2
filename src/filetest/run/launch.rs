//! What a run line gives to a kernel, as arguments of a launch of the run time; and what the interpreter counts of it.

use super::against_reference::check_programs;
use super::exec::{ArgValue, Argument, Job, by_lines};
use super::interpreter::count;
use super::parse_line::{ArgSpec, RunLine};
use super::{Setup, arguments, check_fixed, number, quoted, spec_of};
use crate::emu;
use crate::interp;
use crate::ir::function::TileFunction;
use crate::ir::types::{Elem, Scalar};
use crate::limits::BENCH_BYTES;
use crate::runtime::{ArgList, Buffer, DType, Device, Pointer, RuntimeError, bf16, f16};

/// A kernel's grid and arguments as a run line states them.
pub(crate) struct LaunchLine {
    pub(crate) grid: [u32; 3],
    pub(super) args: Vec<Argument>,
    /// For each parameter what it points to, if it is a pointer.
    pub(super) pointees: Vec<Option<Scalar>>,
    pub(super) steps: Option<u64>,
}

/// The grid of a line, and the whole numbers that it gives to a kernel's parameters; none for parameters of other types, which
/// the line may leave out.
pub(crate) fn whole_numbers(
    func: &TileFunction,
    words: &str,
    setup: &Setup<'_>,
) -> Result<([u32; 3], Vec<Option<i64>>), String> {
    let run = RunLine::parse_within(words, BENCH_BYTES)?;
    let names = &func.param_names;
    for (name, spec) in &run.args {
        if !names.contains(name) {
            check_fixed(func, name, spec, setup)?;
        }
    }
    let params = func.params().iter().zip(names);
    let numbers = params.map(|(&param, name)| {
        let elem = func.dfg.ty(param).elem;
        match (elem.is_int(), spec_of(&run, name)?) {
            (false, _) => Ok(None),
            (true, Some(ArgSpec::Number(text))) => {
                let unused = 64 - elem.bits();
                let bits = number::parse(text, elem)?;
                Ok(Some(match elem {
                    Elem::I1 => bits as i64,
                    _ => ((bits << unused) as i64) >> unused,
                }))
            }
            (true, _) => Err(format!("parameter `{}` gets no number", quoted(name))),
        }
    });
    let numbers: Result<Vec<Option<i64>>, String> = numbers.collect();
    Ok((run.grid, numbers?))
}

/// Buffers on a device, and the arguments that lead to them.
pub(crate) struct Loaded {
    args: Vec<Argument>,
    pointees: Vec<Option<Scalar>>,
    buffers: Vec<Option<Buffer<u8>>>,
}

impl LaunchLine {
    /// Reads a line for a kernel; what it expects does not count.
    pub(crate) fn read(
        func: &TileFunction,
        words: &str,
        setup: &Setup<'_>,
    ) -> Result<LaunchLine, String> {
        let run = RunLine::parse_within(words, BENCH_BYTES)?;
        check_programs(&run, setup)?;
        if run.block.is_some() || run.shared.is_some() {
            let message = "block(..) and shared(..) are for PTX; a kernel states its warps and shared memory itself";
            return Err(message.to_owned());
        }
        let params = func.params().iter();
        Ok(LaunchLine {
            grid: run.grid,
            args: arguments(func, &run, setup)?,
            pointees: params
                .map(|&value| func.dfg.ty(value).elem.pointee())
                .collect(),
            steps: run.steps.or(setup.steps),
        })
    }

    /// What the kernel does with them, by running it on the interpreter.
    pub(crate) fn count(&self, func: &TileFunction) -> Result<interp::Stats, String> {
        count(func, self.grid, &self.args, self.steps)
    }

    /// The kernel's PTX, and what each of its lines does on the emulator.
    pub(crate) fn by_lines(
        &self,
        func: &TileFunction,
        setup: &Setup<'_>,
    ) -> Result<(String, Vec<(u32, emu::Stats)>), String> {
        by_lines(&Job {
            func,
            grid: self.grid,
            args: &self.args,
            target: setup.target,
            options: setup.options,
            seed: 0,
            in_source: false,
            steps: self.steps,
        })
    }

    /// Copies the buffers to a device.
    pub(crate) fn load(self, device: &Device) -> Result<Loaded, RuntimeError> {
        let buffer = |arg: &Argument| match &arg.it {
            ArgValue::Buffer {
                bytes: Some(bytes), ..
            } => Buffer::from_slice(device, bytes).map(Some),
            ArgValue::Buffer { scalar, count, .. } => {
                Buffer::new(device, count * scalar.bytes() as usize).map(Some)
            }
            ArgValue::Scalar { .. } | ArgValue::Null | ArgValue::Same(_) => Ok(None),
        };
        let buffers = self.args.iter().map(buffer).collect::<Result<_, _>>()?;
        Ok(Loaded {
            args: self.args,
            pointees: self.pointees,
            buffers,
        })
    }
}

impl Loaded {
    /// The arguments, in order of the parameters.
    pub(crate) fn args(&self) -> Result<ArgList<'_>, String> {
        let mut list = ArgList::new();
        let args = self.args.iter().zip(&self.pointees);
        for ((arg, pointee), buffer) in args.zip(&self.buffers) {
            let buffer = match arg.it {
                ArgValue::Same(of) => &self.buffers[of],
                _ => buffer,
            };
            let dtype = |scalar| {
                DType::of_scalar(scalar, false).ok_or_else(|| {
                    format!("`{}`: {scalar} is nothing that a launch takes", arg.name)
                })
            };
            match (&arg.it, buffer) {
                (ArgValue::Buffer { scalar, .. }, Some(buffer)) => {
                    list.push(buffer.ptr().cast(dtype(*scalar)?));
                }
                (ArgValue::Scalar { scalar, bits }, _) => push(&mut list, *scalar, *bits)
                    .ok_or_else(|| format!("`{}`: a launch takes no {scalar}", arg.name))?,
                (ArgValue::Same(of), Some(buffer)) => {
                    let held = match self.args[*of].it {
                        ArgValue::Buffer { scalar, .. } => scalar,
                        _ => Scalar::I8,
                    };
                    list.push(buffer.ptr().cast(dtype(pointee.unwrap_or(held))?));
                }
                (ArgValue::Buffer { .. } | ArgValue::Null | ArgValue::Same(_), _) => {
                    list.push(Pointer::null(dtype(pointee.unwrap_or(Scalar::I8))?));
                }
            }
        }
        Ok(list)
    }
}

/// Appends a number; none if callers have no such numbers.
fn push(list: &mut ArgList<'_>, scalar: Scalar, bits: u64) -> Option<()> {
    match scalar {
        Scalar::I1 => list.push(bits != 0),
        Scalar::I8 => list.push(bits as i8),
        Scalar::I16 => list.push(bits as i16),
        Scalar::I32 => list.push(bits as i32),
        Scalar::I64 => list.push(bits as i64),
        Scalar::F16 => list.push(f16::from_bits(bits as u16)),
        Scalar::Bf16 => list.push(bf16::from_bits(bits as u16)),
        Scalar::F32 => list.push(f32::from_bits(bits as u32)),
        Scalar::F64 => list.push(f64::from_bits(bits)),
        Scalar::F8E4M3 | Scalar::F8E5M2 => return None,
    }
    Some(())
}
