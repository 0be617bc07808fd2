//! A kernel with a grid and arguments, and what it is expected to write.

use std::path::Path;

use crate::runtime::{Arg, Buffer, DType, Element, Grid, Kernel, Pointer};
use crate::stages::Stage;

use super::close::{self, Tolerance};
use super::expect_file;
use super::failure::Failure;

/// A launch that is judged. Arguments are given in the order of the kernel's parameters, without those that have constants.
#[derive(Clone, Debug)]
pub struct Case {
    kernel: Kernel,
    grid: Grid<'static>,
    given: Vec<Given>,
    /// What is wrong with how the case was put together.
    problem: Option<&'static str>,
}

/// An argument.
#[derive(Clone, Debug)]
enum Given {
    Value(Arg<'static>),
    Memory(Memory),
}

/// Memory that an argument points to.
#[derive(Clone, Debug)]
struct Memory {
    dtype: DType,
    bytes: usize,
    /// What it holds at first; none of what nobody wrote.
    first: Option<Vec<u8>>,
    /// What it holds then.
    then: Vec<u8>,
    is_output: bool,
    tolerance: Tolerance,
}

impl Case {
    /// A launch of a kernel, so far without arguments. On which device it runs the kernel knows: [`super::emulator`] is made for
    /// tests, and a GPU runs the case too.
    pub fn new(kernel: &Kernel, grid: impl Into<Grid<'static>>) -> Case {
        Case {
            kernel: kernel.clone(),
            grid: grid.into(),
            given: Vec::new(),
            problem: None,
        }
    }

    /// A number, or nothing ([`NONE`](crate::runtime::NONE)).
    #[must_use]
    pub fn value(mut self, value: impl Into<Arg<'static>>) -> Case {
        let arg = value.into();
        if arg.is_pointer() {
            self.problem = Some("value() is for numbers: memory is an input() or an output()");
        }
        self.given.push(Given::Value(arg));
        self
    }

    /// Memory that the kernel reads and must leave as it is.
    #[must_use]
    pub fn input<T: Element>(self, values: &[T]) -> Case {
        let first = bytes_of(values.iter().copied());
        let then = first.clone();
        self.memory::<T>(Some(first), then, false)
    }

    /// Memory that nobody wrote, and of which the kernel must write every element: that with index `i` becomes `expected(i)`,
    /// bit by bit unless [`Case::within`] follows.
    #[must_use]
    pub fn output<T: Element>(self, len: usize, expected: impl Fn(usize) -> T) -> Case {
        self.memory::<T>(None, bytes_of((0..len).map(expected)), true)
    }

    /// Memory that the kernel may read and write: the element with index `i` becomes `expected(i)`.
    #[must_use]
    pub fn in_out<T: Element>(self, values: &[T], expected: impl Fn(usize) -> T) -> Case {
        let first = bytes_of(values.iter().copied());
        self.memory::<T>(Some(first), bytes_of((0..values.len()).map(expected)), true)
    }

    /// How far the elements of the output before may be from what is expected.
    #[must_use]
    pub fn within(mut self, tolerance: Tolerance) -> Case {
        match self.given.last_mut() {
            Some(Given::Memory(memory)) if memory.is_output => memory.tolerance = tolerance,
            _ => self.problem = Some("within() follows the output that it is about"),
        }
        self
    }

    fn memory<T: Element>(
        mut self,
        first: Option<Vec<u8>>,
        then: Vec<u8>,
        is_output: bool,
    ) -> Case {
        self.given.push(Given::Memory(Memory {
            dtype: T::DTYPE,
            bytes: then.len(),
            first,
            then,
            is_output,
            tolerance: Tolerance::EXACT,
        }));
        self
    }

    /// The kernel.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// The same with another kernel, such as one of other warps or of another device.
    #[must_use]
    pub fn with_kernel(self, kernel: &Kernel) -> Case {
        Case {
            kernel: kernel.clone(),
            ..self
        }
    }

    /// Runs the kernel and compares what it wrote.
    ///
    /// # Errors
    ///
    /// Something went wrong where it ran; an element is not what is expected, or was not written; an input was.
    pub fn check(&self) -> Result<(), Failure> {
        if !self
            .given
            .iter()
            .any(|given| matches!(given, Given::Memory(m) if m.is_output))
        {
            return Err(self.failed("the case expects nothing: give it an output() or in_out()"));
        }
        let stream = self.kernel.device().stream();
        self.with_args(|args, buffers| {
            self.kernel.launch(&stream, self.grid, args)?;
            stream.synchronize()?;
            let names = self.kernel.arguments();
            for (at, (given, buffer)) in self.given.iter().zip(buffers).enumerate() {
                let (Given::Memory(memory), Some(buffer)) = (given, buffer) else {
                    continue;
                };
                let wrong = match self.written(memory, buffer)? {
                    Ok(found) => close::wrong(memory.dtype, &found, &memory.then, memory.tolerance),
                    Err(element) => Some(format!("[{element}] was not written")),
                };
                if let Some(problem) = wrong {
                    let problem = match memory.is_output {
                        true => problem,
                        false => format!("an input was written to; {problem}"),
                    };
                    return Err(Failure::Values {
                        kernel: self.kernel.name().to_owned(),
                        argument: names
                            .get(at)
                            .map_or_else(String::new, |&name| name.to_owned()),
                        problem,
                    });
                }
            }
            Ok(())
        })
    }

    /// The text of the kernel for these arguments at a stage.
    ///
    /// # Errors
    ///
    /// The kernel does not compile; arguments do not fit.
    pub fn text(&self, stage: Stage) -> Result<String, Failure> {
        self.with_args(|args, _| Ok(self.kernel.emit(stage, args)?))
    }

    /// Compares the text of the kernel at a stage with that of a file ([`expect_file`]). A relative path is one in the folder of
    /// the crate whose test runs.
    ///
    /// # Errors
    ///
    /// They differ, and how; those of [`Case::text`].
    pub fn expect(&self, stage: Stage, path: impl AsRef<Path>) -> Result<(), Failure> {
        expect_file(path, &self.text(stage)?)
    }

    /// Does something with the arguments, and the memory that each points to.
    fn with_args<R>(
        &self,
        run: impl FnOnce(&[Arg<'_>], &[Option<Buffer<u8>>]) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        if let Some(problem) = self.problem {
            return Err(self.failed(problem));
        }
        let device = self.kernel.device();
        let mut buffers = Vec::with_capacity(self.given.len());
        for given in &self.given {
            buffers.push(match given {
                Given::Value(_) => None,
                Given::Memory(Memory {
                    first: Some(first), ..
                }) => Some(Buffer::from_slice(device, first)?),
                Given::Memory(memory) => {
                    let buffer = Buffer::new(device, memory.bytes)?;
                    if device.is_gpu() {
                        buffer.fill(&device.stream(), 0xff)?;
                    }
                    Some(buffer)
                }
            });
        }
        let args = self.given.iter().zip(&buffers);
        let args = args.filter_map(|(given, buffer)| match given {
            Given::Value(arg) => Some(*arg),
            Given::Memory(memory) => {
                let pointer = buffer.as_ref().map(Buffer::ptr);
                pointer.map(|pointer: Pointer<'_>| Arg::from(pointer.cast(memory.dtype)))
            }
        });
        let args: Vec<Arg<'_>> = args.collect();
        run(&args, &buffers)
    }

    /// What is in memory; or the first element that nobody wrote, as the emulator knows.
    fn written(
        &self,
        memory: &Memory,
        buffer: &Buffer<u8>,
    ) -> Result<Result<Vec<u8>, usize>, Failure> {
        let device = self.kernel.device();
        if let Some(unwritten) = device.first_unwritten(&buffer.ptr()) {
            return Ok(Err(unwritten / memory.dtype.bytes()));
        }
        Ok(Ok(buffer.read(&device.stream())?))
    }

    fn failed(&self, problem: &str) -> Failure {
        Failure::Case {
            kernel: self.kernel.name().to_owned(),
            problem: problem.to_owned(),
        }
    }
}

/// The bytes of numbers.
fn bytes_of<T: Element>(values: impl Iterator<Item = T>) -> Vec<u8> {
    let mut bytes = Vec::new();
    values.for_each(|value| value.put(&mut bytes));
    bytes
}
