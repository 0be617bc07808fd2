//! Vector addition, softmax and layer normalisation on the first GPU: GB/s of the best configuration of each shape.
//!
//! ```text
//! cargo bench --features cuda --bench gpu                      # every shape
//! cargo bench --features cuda --bench gpu -- softmax --quick   # shapes whose name has the word, shorter
//! ```
//!
//! It measures as `benches/gpu/compare.py` does, without Python: CUDA events around each call, the L2 cache flushed
//! before it, the best configuration chosen from the same list, and then five rounds, of which the table shows the
//! quartiles. Before anything is timed, the outputs are filled with NaN, the kernel runs once, and rows spread over
//! the output, the first and the last among them, are compared with references in f64, within the bounds of
//! `compare.py`. Wrong results make the bench fail. Without a driver it says so and succeeds.

use std::error::Error;
use std::process::ExitCode;

use tilelift::compile::{CompiledKernel, compile};
use tilelift::driver::{
    Arg, Buffer, Context, Device, Driver, Event, Function, LaunchSpec, Module, ParamSize, Stream,
    launch,
};
use tilelift::ir::types::Scalar;

#[path = "cases.rs"]
mod cases;
#[path = "../tests/common/kernels/mod.rs"]
#[expect(dead_code, unused_imports, reason = "the tests use the other kernels")]
mod kernels;

use cases::{Case, Kind, OPTIONS, cases};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// More than the L2 cache of any GPU so far.
const FLUSH_BYTES: usize = 256 << 20;

/// Rows of an output that are compared with the reference.
const CHECKED_ROWS: u64 = 64;

/// Vectors are checked in pieces of this many elements.
const PIECE: u64 = 4096;

const EPS: f32 = 1e-5;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    // `cargo test --benches` runs this without `--bench`, and not for the times.
    let quick = words.iter().any(|w| w == "--quick") || !words.iter().any(|w| w == "--bench");
    let filter = words.iter().find(|w| !w.starts_with("--"));
    if let Err(error) = Driver::load().and_then(|_| Device::get(0)) {
        println!("skipped: {error}");
        return ExitCode::SUCCESS;
    }
    match run(filter.map_or("", String::as_str), quick) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(wrong) => {
            println!("wrong results: {wrong}");
            ExitCode::FAILURE
        }
        Err(error) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the cases whose name has the word; gives the number of configurations with wrong results.
fn run(filter: &str, quick: bool) -> Result<usize> {
    let device = Device::get(0)?;
    println!("{}, CUDA {}", device.name, device.driver.version());
    let capability = 10 * device.capability.major + device.capability.minor;
    let context = Context::new(&device)?;
    let stream = Stream::new(&context)?;
    let clock = Clock {
        flush: Buffer::new(&context, FLUSH_BYTES)?,
        stream: &stream,
    };
    let pool = Pool::new();
    let mut wrong = 0;
    println!("case                            GB/s   us: q1   median       q3  configuration");
    for case in cases().iter().filter(|c| c.name().contains(filter)) {
        if case.target.sm > capability {
            println!("{:28} skipped: needs {}", case.name(), case.target);
            continue;
        }
        let work = Work::new(&stream, &pool, case)?;
        let mut loaded = Vec::new();
        for &(block, warps) in &case.configs {
            let kernel = Loaded::new(&context, case, block, warps)?;
            work.poison(&stream)?;
            work.launch(&stream, &kernel)?;
            if let Err(problem) = work.check(&stream, &pool)? {
                wrong += 1;
                println!("WRONG {} {}: {problem}", case.name(), kernel.name);
            }
            loaded.push(kernel);
        }
        let (tune, budget, rounds) = if quick {
            (5.0, 10.0, 2)
        } else {
            (20.0, 60.0, 5)
        };
        let mut best: Option<(f64, &Loaded)> = None;
        for kernel in &loaded {
            let times = clock.times(tune, || work.launch(&stream, kernel))?;
            let median = quartiles(times)[1];
            if best.is_none_or(|(time, _)| median < time) {
                best = Some((median, kernel));
            }
        }
        let Some((_, kernel)) = best else { continue };
        let mut sample = Vec::new();
        for _ in 0..rounds {
            sample.extend(clock.times(budget, || work.launch(&stream, kernel))?);
        }
        let [q1, median, q3] = quartiles(sample);
        println!(
            "{:28} {:7.0} {:8.2} {:8.2} {:8.2}  {}",
            case.name(),
            work.bytes as f64 / median * 1e-6,
            q1 * 1e3,
            median * 1e3,
            q3 * 1e3,
            kernel.name,
        );
    }
    Ok(wrong)
}

/// The quartiles of a sample, between neighbours as Python's `statistics.quantiles` places them.
fn quartiles(mut sample: Vec<f64>) -> [f64; 3] {
    sample.sort_by(f64::total_cmp);
    let last = sample.len() - 1;
    [1, 2, 3].map(|quarter| {
        let place = (quarter * (sample.len() + 1)) as f64 / 4.0 - 1.0;
        let place = place.clamp(0.0, last as f64);
        let below = sample[place as usize];
        let above = sample[(place as usize + 1).min(last)];
        below + (above - below) * place.fract()
    })
}

/// Times calls on the device.
struct Clock<'a> {
    flush: Buffer,
    stream: &'a Stream,
}

impl Clock<'_> {
    /// Milliseconds of single calls, each after a flush of the L2 cache; about `budget` milliseconds in all.
    fn times(&self, budget: f64, mut call: impl FnMut() -> Result<()>) -> Result<Vec<f64>> {
        let event = || Event::new(self.stream.context());
        call()?;
        self.stream.synchronize()?;
        let (start, end) = (event()?, event()?);
        start.record(self.stream)?;
        for _ in 0..5 {
            self.flush.fill(self.stream, 0)?;
            call()?;
        }
        end.record(self.stream)?;
        self.stream.synchronize()?;
        let one = f64::from(end.elapsed_ms(&start)?) / 5.0;
        let count = ((budget / one.max(1e-3)) as usize).clamp(20, 2000);
        let mut events = Vec::new();
        for _ in 0..count {
            events.push((event()?, event()?));
        }
        for (start, end) in &events {
            self.flush.fill(self.stream, 0)?;
            start.record(self.stream)?;
            call()?;
            end.record(self.stream)?;
        }
        self.stream.synchronize()?;
        let times = events
            .iter()
            .map(|(start, end)| Ok(f64::from(end.elapsed_ms(start)?)));
        times.collect()
    }
}

/// A kernel on the device.
struct Loaded {
    name: String,
    block: u64,
    kernel: CompiledKernel,
    function: Function,
    params: Vec<ParamSize>,
}

impl Loaded {
    fn new(context: &Context, case: &Case, block: u64, warps: u32) -> Result<Loaded> {
        let kernel = compile(&case.kernel(block, warps), case.target, &OPTIONS)?;
        let function = Module::load(context, &kernel.ptx)?.function(&kernel.meta.name)?;
        let params = kernel.meta.params.iter().map(ParamSize::from);
        Ok(Loaded {
            name: format!("b{block}w{warps}"),
            block,
            params: params.collect(),
            kernel,
            function,
        })
    }
}

/// Random numbers, about normal, that inputs of any size are made of: element `i` of an input is number
/// `i + 7919 * (i / SIZE)` of the pool, so that neither rows nor columns repeat within a row's length.
struct Pool {
    numbers: Vec<f64>,
}

impl Pool {
    const SIZE: u64 = 1 << 20;

    fn new() -> Pool {
        let mut state = 7u64;
        // Splitmix64; four uniform numbers of 16 bits, scaled to variance 1.
        let mut normal = || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let z = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            let z = z ^ z >> 31;
            let parts = [0, 16, 32, 48].map(|s| (z >> s & 0xffff) as f64 / 65536.0);
            (parts.iter().sum::<f64>() - 2.0) * 3f64.sqrt()
        };
        Pool {
            numbers: (0..Pool::SIZE).map(|_| normal()).collect(),
        }
    }

    /// Which number of the pool element `i` is, for an input with an offset of its own.
    fn index(i: u64, offset: u64) -> usize {
        ((i + offset + i / Pool::SIZE * 7919) % Pool::SIZE) as usize
    }

    /// Element `i` of an input in its format.
    fn at(&self, scalar: Scalar, i: u64, offset: u64) -> f64 {
        let number = self.numbers[Pool::index(i, offset)];
        decode(scalar, &encode(scalar, number))
    }

    fn elements(&self, scalar: Scalar, range: std::ops::Range<u64>, offset: u64) -> Vec<f64> {
        range.map(|i| self.at(scalar, i, offset)).collect()
    }

    /// A new buffer with `count` elements.
    fn upload(&self, stream: &Stream, scalar: Scalar, count: u64, offset: u64) -> Result<Buffer> {
        let size = u64::from(scalar.bytes());
        let bytes: Vec<u8> = self
            .numbers
            .iter()
            .flat_map(|&number| encode(scalar, number))
            .collect();
        let buffer = Buffer::new(stream.context(), (count * size) as usize)?;
        for start in (0..count).step_by(Pool::SIZE as usize) {
            let length = (count - start).min(Pool::SIZE);
            let mut rotated = bytes.clone();
            rotated.rotate_left(Pool::index(start, offset) * size as usize);
            rotated.truncate((length * size) as usize);
            let place = (start * size) as usize;
            buffer
                .slice(place..place + rotated.len())?
                .write(stream, &rotated)?;
        }
        Ok(buffer)
    }
}

fn encode(scalar: Scalar, number: f64) -> Vec<u8> {
    match scalar {
        Scalar::F16 => half::f16::from_f64(number).to_le_bytes().into(),
        Scalar::Bf16 => half::bf16::from_f64(number).to_le_bytes().into(),
        _ => (number as f32).to_le_bytes().into(),
    }
}

fn decode(scalar: Scalar, bytes: &[u8]) -> f64 {
    match (scalar, bytes) {
        (Scalar::F16, &[a, b]) => half::f16::from_le_bytes([a, b]).to_f64(),
        (Scalar::Bf16, &[a, b]) => half::bf16::from_le_bytes([a, b]).to_f64(),
        (_, &[a, b, c, d]) => f64::from(f32::from_le_bytes([a, b, c, d])),
        _ => f64::NAN,
    }
}

/// Offsets in the pool of the inputs: x and weight or y, bias.
const OFFSETS: [u64; 3] = [0, 333_333, 777_777];

/// The data of a case on the device.
struct Work<'a> {
    case: &'a Case,
    /// Bytes that a call must move.
    bytes: u64,
    inputs: Vec<Buffer>,
    out: Buffer,
    /// Mean and 1/standard deviation of rows, for layer normalisation.
    statistics: Vec<Buffer>,
}

impl<'a> Work<'a> {
    fn new(stream: &Stream, pool: &Pool, case: &'a Case) -> Result<Work<'a>> {
        let (count, cols) = (case.rows * case.cols, case.cols);
        let sizes = match case.kind {
            Kind::Add => vec![count, count],
            Kind::Softmax => vec![count],
            Kind::LayerNorm => vec![count, cols, cols],
        };
        let inputs = sizes
            .iter()
            .zip(OFFSETS)
            .map(|(&count, offset)| pool.upload(stream, case.scalar, count, offset))
            .collect::<Result<Vec<Buffer>>>()?;
        let size = u64::from(case.scalar.bytes());
        let new = |bytes: u64| Buffer::new(stream.context(), bytes as usize);
        let statistics = if case.kind == Kind::LayerNorm {
            vec![new(4 * case.rows)?, new(4 * case.rows)?]
        } else {
            Vec::new()
        };
        let accesses = if case.kind == Kind::Add { 3 } else { 2 };
        Ok(Work {
            case,
            bytes: accesses * count * size,
            inputs,
            out: new(count * size)?,
            statistics,
        })
    }

    fn poison(&self, stream: &Stream) -> Result<()> {
        for buffer in self.statistics.iter().chain([&self.out]) {
            buffer.poison(stream)?;
        }
        Ok(())
    }

    fn launch(&self, stream: &Stream, loaded: &Loaded) -> Result<()> {
        let input = |i: usize| Arg::Pointer(self.inputs[i].ptr());
        let statistic = |i: usize| Arg::Pointer(self.statistics[i].ptr());
        let (out, cols) = (
            Arg::Pointer(self.out.ptr()),
            Arg::I32(self.case.cols as i32),
        );
        let spec = LaunchSpec {
            name: &loaded.kernel.meta.name,
            block: loaded.kernel.meta.block(),
            cluster: [1, 1, 1],
            shared: loaded.kernel.meta.shared,
            params: &loaded.params,
        };
        let go = |programs: u64, args: &[Arg<'_>]| {
            launch(
                &loaded.function,
                &spec,
                [programs as u32, 1, 1],
                stream,
                args,
            )
        };
        match self.case.kind {
            Kind::Add => go(
                self.case.cols.div_ceil(loaded.block),
                &[input(0), input(1), out, cols],
            ),
            Kind::Softmax => go(self.case.rows, &[out, cols, input(0), cols, cols]),
            Kind::LayerNorm => go(
                self.case.rows,
                &[
                    input(0),
                    out,
                    input(1),
                    input(2),
                    statistic(0),
                    statistic(1),
                    cols,
                    cols,
                    Arg::F32(EPS),
                ],
            ),
        }?;
        Ok(())
    }

    /// Compares some rows; the inner error says what is wrong.
    fn check(&self, stream: &Stream, pool: &Pool) -> Result<std::result::Result<(), String>> {
        let (count, length) = (
            self.case.rows * self.case.cols,
            match self.case.kind {
                Kind::Add => PIECE,
                Kind::Softmax | Kind::LayerNorm => self.case.cols,
            },
        );
        let rows = count / length;
        let checked = rows.min(CHECKED_ROWS);
        for i in 0..checked {
            let row = i * (rows - 1) / (checked - 1).max(1);
            let range = row * length..(row + 1) * length;
            let found = read(stream, &self.out, self.case.scalar, range.clone())?;
            let x = pool.elements(self.case.scalar, range.clone(), OFFSETS[0]);
            let expected = match self.case.kind {
                Kind::Add => self.sums(pool, range, &x),
                Kind::Softmax => softmax(self.case.scalar, &x),
                Kind::LayerNorm => {
                    let (expected, mean, rstd) = self.layer_norm(pool, &x);
                    for (buffer, expected) in self.statistics.iter().zip([mean, rstd]) {
                        let found = read(stream, buffer, Scalar::F32, row..row + 1)?[0];
                        if !near(found, (expected, 1e-5 * (1.0 + expected.abs()))) {
                            return Ok(Err(format!(
                                "row {row}: statistic {found}, not {expected}"
                            )));
                        }
                    }
                    expected
                }
            };
            let differing = found
                .iter()
                .zip(&expected)
                .position(|(&found, &expected)| !near(found, expected));
            if let Some(at) = differing {
                let (found, expected) = (found[at], expected[at].0);
                return Ok(Err(format!("row {row}[{at}] is {found}, not {expected}")));
            }
        }
        Ok(Ok(()))
    }

    /// Exact sums, rounded once.
    fn sums(&self, pool: &Pool, range: std::ops::Range<u64>, x: &[f64]) -> Vec<(f64, f64)> {
        let scalar = self.case.scalar;
        let y = pool.elements(scalar, range, OFFSETS[1]);
        let sums = x
            .iter()
            .zip(y)
            .map(|(x, y)| (decode(scalar, &encode(scalar, x + y)), 0.0));
        sums.collect()
    }

    fn layer_norm(&self, pool: &Pool, x: &[f64]) -> (Vec<(f64, f64)>, f64, f64) {
        let (scalar, n) = (self.case.scalar, x.len() as f64);
        let [weight, bias] = [1, 2].map(|i| pool.elements(scalar, 0..self.case.cols, OFFSETS[i]));
        let mean = x.iter().sum::<f64>() / n;
        let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
        let rstd = 1.0 / (variance + f64::from(EPS)).sqrt();
        let bound = match scalar {
            Scalar::F16 => 4e-3,
            Scalar::Bf16 => 4e-2,
            _ => 2e-5,
        };
        let y: Vec<f64> = x
            .iter()
            .zip(weight.iter().zip(&bias))
            .map(|(x, (w, b))| (x - mean) * rstd * w + b)
            .collect();
        let largest = y.iter().fold(0.0, |a: f64, y| a.max(y.abs()));
        let expected = y.iter().map(|&y| (y, bound * (1.0 + largest))).collect();
        (expected, mean, rstd)
    }
}

/// Expected numbers with the errors they may have.
fn softmax(scalar: Scalar, x: &[f64]) -> Vec<(f64, f64)> {
    // f16 and bf16 results are rounded once more; f32 has the errors of exp2 and of the sum.
    let bound = match scalar {
        Scalar::F16 => 1e-3,
        Scalar::Bf16 => 8e-3,
        _ => 4e-6,
    };
    let largest = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = x.iter().map(|x| (x - largest).exp()).sum();
    let y = x.iter().map(|x| (x - largest).exp() / sum);
    y.map(|y| (y, bound * y + 1e-7)).collect()
}

/// Whether a number is within the error of the expected one; NaN never is.
fn near(found: f64, (expected, error): (f64, f64)) -> bool {
    (found - expected).abs() <= error
}

fn read(
    stream: &Stream,
    buffer: &Buffer,
    scalar: Scalar,
    range: std::ops::Range<u64>,
) -> Result<Vec<f64>> {
    let size = scalar.bytes() as usize;
    let (start, end) = (range.start as usize * size, range.end as usize * size);
    let mut bytes = vec![0u8; end - start];
    buffer.slice(start..end)?.read(stream, &mut bytes)?;
    Ok(bytes.chunks(size).map(|b| decode(scalar, b)).collect())
}
