//! The kernels that inference launches (`examples/kernels`) as functions: shapes are checked, blocks are chosen by a small model of the
//! device, or measured on request.

use std::fmt;

use tilelift::runtime::{
    Args, Buffer, Constants, DType, Device, Element, Kernel, Program, RuntimeError, Stream,
};
use tilelift::tune::{Config, Tuner};

mod attention;
mod products;
mod weights;

pub(crate) use attention::{Cache, Sequences, Variant};
pub(crate) use products::{Routing, Scales, Weights4};
pub(crate) use weights::Few;

/// Why a call is refused, or fails.
#[derive(Debug)]
pub(crate) enum Error {
    /// A buffer that does not have as many elements as the shape says.
    Length {
        /// The argument.
        name: &'static str,
        /// What the shape says.
        expected: usize,
        /// What it has.
        found: usize,
    },
    /// A shape that the kernel does not serve, and what it serves.
    Shape(String),
    /// What the run time says.
    Runtime(RuntimeError),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Length {
                name,
                expected,
                found,
            } => write!(
                f,
                "`{name}` has {found} elements, the shape says {expected}"
            ),
            Error::Shape(problem) => f.write_str(problem),
            Error::Runtime(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

impl From<RuntimeError> for Error {
    fn from(error: RuntimeError) -> Error {
        Error::Runtime(error)
    }
}

/// How blocks are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blocks {
    /// By the model, at once.
    Chosen,
    /// By trying a few at the first call with a shape; what was found is kept in the cache of kernels.
    Measured,
}

/// The kernels, for one device.
pub(crate) struct Kernels {
    device: Device,
    blocks: Blocks,
    thin: Program,
    scaled: Program,
    packed: Program,
    experts: Program,
    decode: Program,
    varied: Program,
    weights: Program,
}

/// Multiprocessors that the model reckons with: those of an H100 or H200, and not far from other large GPUs.
const MULTIPROCESSORS: usize = 132;

impl Kernels {
    /// Reads the texts of all kernels.
    pub(crate) fn new(device: &Device, blocks: Blocks) -> Result<Kernels, Error> {
        let program = |name, text| Program::python(name, text);
        Ok(Kernels {
            device: device.clone(),
            blocks,
            thin: program("thin.py", include_str!("../../kernels/thin.py"))?,
            scaled: program("scaled.py", include_str!("../../kernels/scaled.py"))?,
            packed: program("packed.py", include_str!("../../kernels/packed.py"))?,
            experts: program("experts.py", include_str!("../../kernels/experts.py"))?,
            decode: program("decode.py", include_str!("../../kernels/decode.py"))?,
            varied: program("varied.py", include_str!("../../kernels/varied.py"))?,
            weights: program("weights.py", include_str!("../../kernels/weights.py"))?,
        })
    }

    /// Launches a kernel in the first of some configurations, or in the one that is measured to be the best for these numbers.
    fn launch(
        &self,
        stream: &Stream,
        kernel: &Kernel,
        configs: Vec<Config>,
        key: &[&str],
        grid: &dyn Fn(Constants) -> Option<[u32; 3]>,
        args: impl Args,
    ) -> Result<(), Error> {
        let grid = |constants: Constants<'_>| grid(constants);
        let kernel = match self.blocks {
            Blocks::Chosen => {
                let first = configs.first().cloned().unwrap_or_default();
                first.set_up(kernel)?
            }
            Blocks::Measured => {
                Tuner::new(configs)
                    .key(key)
                    .tune(kernel, stream, &grid, &args)?
                    .kernel
            }
        };
        Ok(kernel.launch(stream, &grid, &args)?)
    }
}

/// A configuration of blocks of a product, warps and stages.
fn product(bm: usize, bn: usize, bk: usize, warps: u32, stages: u8) -> Config {
    let constants = [("BM", bm), ("BN", bn), ("BK", bk)];
    let config = constants
        .into_iter()
        .fold(Config::new(), |c, (name, n)| c.constant(name, n as u32));
    config.warps(warps).stages(stages)
}

/// A program for each block of M x N.
fn by_blocks(m: usize, n: usize) -> impl Fn(Constants<'_>) -> Option<[u32; 3]> {
    move |constants| {
        let [rows, columns] = [(m, "BM"), (n, "BN")].map(|(size, block)| {
            let block = constants.int(block)?;
            Some((size as u32).div_ceil(block))
        });
        Some([rows? * columns?, 1, 1])
    }
}

/// Refuses a buffer whose length is not that of the shape.
fn expect<T: Element>(
    name: &'static str,
    buffer: &Buffer<T>,
    shape: &[usize],
) -> Result<(), Error> {
    let expected = shape.iter().product();
    match buffer.len() {
        found if found == expected => Ok(()),
        found => Err(Error::Length {
            name,
            expected,
            found,
        }),
    }
}

/// Refuses a number that is not a multiple of another one.
fn expect_multiple(name: &str, number: usize, of: usize) -> Result<(), Error> {
    match number.is_multiple_of(of) {
        true => Ok(()),
        false => Err(Error::Shape(format!(
            "{name} is {number}, and must be a multiple of {of}"
        ))),
    }
}

/// A size as an argument of a kernel.
fn size(name: &str, number: usize) -> Result<i32, Error> {
    i32::try_from(number).map_err(|_| Error::Shape(format!("{name} is {number}: too large")))
}

/// The type of sums of products with such operands.
fn sum_type<T: Element>() -> DType {
    match T::DTYPE {
        DType::I8 => DType::I32,
        _ => DType::F32,
    }
}
