//! Errors of the lowered functions in units of the last place, on the interpreter.
//!
//! f32 is compared with f64 functions of the host, whose own error is below 2^-28 of an f32's unit; f64 with
//! arbitrary-precision functions of 140 bits where the result is an ordinary number.

#[path = "ulp/functions.rs"]
mod functions;
#[path = "ulp/on_gpu.rs"]
pub(crate) mod on_gpu;

use dashu_float::FBig;
use dashu_float::round::mode::HalfEven;
use tilelift::interp::{self, Arg, Launch, Memory};
use tilelift::ir::builder::TileBuilder;
use tilelift::ir::entities::Value;
use tilelift::ir::function::TileFunction;
use tilelift::ir::types::{Elem, Scalar, TileType};
use tilelift::linear_layout::shape::Shape;
use tilelift::tile::lower_math::lower_math;

pub(crate) use functions::{functions, machine_functions};

/// A number of arbitrary precision.
pub(crate) type Big = FBig<HalfEven, 2>;

/// Bits of the exact results.
const PRECISION: usize = 140;

/// Arguments that are computed together.
pub(crate) const BATCH: usize = 1 << 12;

/// How a function is written.
#[derive(Clone, Copy)]
pub(crate) enum Build {
    /// Of one number.
    One(fn(&mut TileBuilder, Value) -> Value),
    /// Of two numbers.
    Two(fn(&mut TileBuilder, Value, Value) -> Value),
}

/// A function of the op table with its references.
#[derive(Clone, Copy)]
pub(crate) struct Function {
    /// Name of the op.
    pub(crate) name: &'static str,
    /// How it is written.
    pub(crate) build: Build,
    /// Bounds of the op table in ulp for f32 and f64; none where the op is not one of that type's accurate functions.
    pub(crate) bounds: [Option<f64>; 2],
    /// Where the function bends.
    pub(crate) range: [f64; 2],
    /// The function of the host.
    pub(crate) host: fn(f64, f64) -> f64,
    /// The exact function, where the host's result is finite and not 0.
    pub(crate) exact: fn(&Big, &Big) -> Option<Big>,
}

impl std::fmt::Debug for Function {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl Function {
    /// How many operands it has.
    pub(crate) fn operands(&self) -> usize {
        match self.build {
            Build::One(_) => 1,
            Build::Two(_) => 2,
        }
    }

    /// Its name without what tells apart ranges of arguments.
    pub(crate) fn op_name(&self) -> &'static str {
        self.name.split(" (").next().unwrap_or(self.name)
    }

    /// The kernel that applies it to [`BATCH`] arguments, lowered.
    pub(crate) fn lowered(&self, scalar: Scalar) -> TileFunction {
        let mut func = self.kernel(scalar);
        lower_math(&mut func);
        func
    }

    /// The kernel that applies it to [`BATCH`] arguments.
    pub(crate) fn kernel(&self, scalar: Scalar) -> TileFunction {
        self.build("k", scalar, BATCH, 4)
    }

    /// A kernel of which each program applies it to `block` arguments.
    pub(crate) fn build(
        &self,
        name: &str,
        scalar: Scalar,
        block: usize,
        warps: u32,
    ) -> TileFunction {
        let mut b = TileBuilder::new(name, warps);
        let shape = Shape::new(&[block as u64]).expect("a power of two");
        let mut pointers = Vec::new();
        let bases: Vec<Value> = ["x", "y", "out"]
            .iter()
            .skip(2 - self.operands())
            .map(|name| b.param(name, TileType::scalar(Elem::global(scalar))))
            .collect();
        let program = b.program_id(0);
        let size = b.i32(block as i32, Shape::SCALAR);
        let start = b.imul(program, size);
        for base in bases {
            let base = b.addptr(base, start);
            let base = b.to_shape(base, shape);
            let range = b.arange(0, TileType::block(Elem::I32, shape));
            pointers.push(b.addptr(base, range));
        }
        let x = b.load(pointers[0], None, None);
        let y = match self.build {
            Build::One(op) => op(&mut b, x),
            Build::Two(op) => {
                let y = b.load(pointers[1], None, None);
                op(&mut b, x, y)
            }
        };
        b.store(pointers[self.operands()], y, None);
        b.ret();
        b.finish().expect("the kernel is built right")
    }

    /// Whether the op table defines the result.
    fn is_defined(&self, args: [f64; 2]) -> bool {
        // More digits of a quotient than are taken off.
        self.name != "frem" || (args[0] / args[1]).abs() < 1e30 || args[1] == 0.0
    }

    /// The exact result nearby: the host's in f64, and for f64 what it is off.
    fn reference(&self, is_double: bool, args: [f64; 2]) -> Exact {
        let host = (self.host)(args[0], args[1]);
        let ordinary = host.is_normal() && args.iter().all(|x| x.is_finite());
        if is_double && ordinary {
            let [x, y] = args.map(big);
            if let Some(exact) = (self.exact)(&x, &y) {
                return Exact::Big(exact);
            }
        }
        Exact::Host(host)
    }

    /// Error in ulp of a result, given as bits.
    pub(crate) fn error(&self, scalar: Scalar, args: [f64; 2], found: u64) -> f64 {
        let is_double = scalar == Scalar::F64;
        // The numbers below 0 have a row of their own.
        let is_elsewhere = self.name == "lgamma" && args[0] < 0.0;
        if is_double && !self.is_defined(args) || is_elsewhere {
            return 0.0;
        }
        let found = if is_double {
            f64::from_bits(found)
        } else {
            f64::from(f32::from_bits(found as u32))
        };
        match self.reference(is_double, args) {
            Exact::Host(exact) => {
                let rounded = if is_double {
                    exact
                } else {
                    f64::from(exact as f32)
                };
                if found.is_nan() || rounded.is_nan() {
                    return if found.is_nan() == rounded.is_nan() {
                        0.0
                    } else {
                        f64::INFINITY
                    };
                }
                if rounded.is_infinite() || exact == 0.0 {
                    // Signs of zero count.
                    let same =
                        found == rounded && found.is_sign_negative() == rounded.is_sign_negative();
                    // The neighbour of infinity is one ulp away.
                    let largest = if is_double {
                        f64::MAX
                    } else {
                        f64::from(f32::MAX)
                    };
                    let near = exact.is_finite() && found == largest.copysign(exact);
                    return if same {
                        0.0
                    } else if near {
                        1.0
                    } else {
                        f64::INFINITY
                    };
                }
                if found.is_infinite() {
                    let near = exact.abs() > f64::from(f32::MAX) * (1.0 - 1e-7);
                    return if near && !is_double {
                        1.0
                    } else {
                        f64::INFINITY
                    };
                }
                // Zeros without end.
                let size = match self.op_name() {
                    "lgamma" if args[0] < 0.0 => exact.abs().max(1.0),
                    _ => exact,
                };
                ((found - exact) / ulp(size, is_double)).abs()
            }
            Exact::Big(exact) => {
                if !found.is_finite() {
                    return f64::INFINITY;
                }
                let size = exact.to_f64().value();
                let off = (big(found) - &exact) / big(ulp(size, true));
                off.to_f64().value().abs()
            }
        }
    }
}

enum Exact {
    Host(f64),
    Big(Big),
}

/// A number with enough digits.
fn big(x: f64) -> Big {
    let exact = Big::try_from(x).expect("a finite number");
    exact.with_precision(PRECISION).value()
}

/// Distance of the numbers beside `x`.
fn ulp(x: f64, is_double: bool) -> f64 {
    let exponent = (x.abs().to_bits() >> 52) as i32 - 1023;
    if is_double {
        2f64.powi(exponent.max(-1022)) * f64::EPSILON
    } else {
        2f64.powi(exponent.clamp(-126, 127) - 23)
    }
}

/// The results of a kernel of [`Function::lowered`] as bits; arguments as bits, filled up to whole batches.
pub(crate) fn evaluate(func: &TileFunction, scalar: Scalar, args: &[&[u64]]) -> Vec<u64> {
    let size = scalar.bytes() as usize;
    let mut out = Vec::new();
    for start in (0..args[0].len()).step_by(BATCH) {
        let count = BATCH.min(args[0].len() - start);
        let mut memory = Memory::new();
        let mut buffers = Vec::new();
        for column in args {
            let batch = (0..BATCH).map(|i| column[start + i.min(count - 1)]);
            let bytes: Vec<u8> = batch
                .flat_map(|x| x.to_le_bytes().into_iter().take(size))
                .collect();
            buffers.push(memory.alloc_bytes(&bytes));
        }
        let result = memory.alloc(BATCH * size);
        buffers.push(result);
        let launch_args: Vec<Arg> = buffers.iter().map(|&b| Arg::Ptr(b)).collect();
        let launch = Launch {
            grid: [1, 1, 1],
            args: &launch_args,
        };
        interp::run(func, &launch, &mut memory, &interp::Options::default())
            .expect("a function of numbers runs");
        let bytes = memory
            .read(result, count * size)
            .expect("the kernel stored it");
        out.extend(bytes.chunks(size).map(|chunk| {
            let mut wide = [0; 8];
            wide[..chunk.len()].copy_from_slice(chunk);
            u64::from_le_bytes(wide)
        }));
    }
    out
}

/// A number from its bits.
pub(crate) fn number(scalar: Scalar, bits: u64) -> f64 {
    if scalar == Scalar::F64 {
        f64::from_bits(bits)
    } else {
        f64::from(f32::from_bits(bits as u32))
    }
}

fn bits_of(scalar: Scalar, x: f64) -> u64 {
    if scalar == Scalar::F64 {
        x.to_bits()
    } else {
        u64::from((x as f32).to_bits())
    }
}

/// Numbers that look random, the same in every run (splitmix64).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Zeros, ends of ranges, infinities, NaN, and numbers where functions change.
pub(crate) fn edges(scalar: Scalar) -> Vec<u64> {
    let is_double = scalar == Scalar::F64;
    let (least, normal, most) = if is_double {
        (5e-324, f64::MIN_POSITIVE, f64::MAX)
    } else {
        let single = [f32::from_bits(1), f32::MIN_POSITIVE, f32::MAX].map(f64::from);
        (single[0], single[1], single[2])
    };
    let numbers = [
        0.0, least, normal, 1e-20, 0.25, 0.5, 0.6, 0.75, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 10.0, 16.0,
        100.0, 1e10, most,
    ];
    let mut out: Vec<u64> = Vec::new();
    for x in numbers {
        for x in [x, -x] {
            let bits = bits_of(scalar, x);
            out.extend([bits, bits.wrapping_add(1)]);
            if x != 0.0 {
                out.push(bits - 1);
            }
        }
    }
    out.extend([f64::INFINITY, f64::NEG_INFINITY, f64::NAN].map(|x| bits_of(scalar, x)));
    out
}

/// Arguments: the edges, all magnitudes, and `count` where the function bends.
pub(crate) fn samples(function: &Function, scalar: Scalar, count: usize) -> Vec<Vec<u64>> {
    let mut random = Random(7);
    let width = scalar.bits();
    let mut columns = vec![Vec::new(); function.operands()];
    let edges = edges(scalar);
    if let [x, y] = &mut columns[..] {
        for &a in &edges {
            for &b in &edges {
                x.push(a);
                y.push(b);
            }
        }
    } else {
        columns[0] = edges;
    }
    let [low, high] = function.range;
    for i in 0..count {
        for column in &mut columns {
            let anywhere = random.bits() >> (64 - width);
            let here = bits_of(scalar, low + (high - low) * random.unit());
            column.push(if i % 4 == 0 { anywhere } else { here });
        }
    }
    columns
}

/// The largest error on the samples, with the arguments where it is.
pub(crate) fn worst(function: &Function, scalar: Scalar, count: usize) -> (f64, Vec<u64>) {
    let func = function.lowered(scalar);
    let columns = samples(function, scalar, count);
    let slices: Vec<&[u64]> = columns.iter().map(|c| &c[..]).collect();
    let found = evaluate(&func, scalar, &slices);
    let mut worst = (0.0, vec![0; columns.len()]);
    for (i, &found) in found.iter().enumerate() {
        let args: Vec<u64> = columns.iter().map(|c| c[i]).collect();
        let x = number(scalar, args[0]);
        let y = args.get(1).map_or(0.0, |&y| number(scalar, y));
        let error = function.error(scalar, [x, y], found);
        if error > worst.0 {
            worst = (error, args);
        }
    }
    worst
}
