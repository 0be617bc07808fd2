//! Errors of the lowered functions in units of the last place, on the interpreter.
//!
//! f32 is compared with f64 functions of the host, whose own error is below 2^-28 of an f32's unit; f64 with
//! arbitrary-precision functions of 140 bits where the result is an ordinary number.

use dashu_float::FBig;
use dashu_float::round::mode::HalfEven;
use tilelift::interp::{self, Arg, Launch, Memory};
use tilelift::ir::builder::TileBuilder;
use tilelift::ir::entities::Value;
use tilelift::ir::function::TileFunction;
use tilelift::ir::types::{Elem, Scalar, TileType};
use tilelift::linear_layout::shape::Shape;
use tilelift::tile::lower_math::lower_math;

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

/// Every accurate function.
pub(crate) fn functions() -> Vec<Function> {
    fn one(
        name: &'static str,
        op: fn(&mut TileBuilder, Value) -> Value,
        bounds: [f64; 2],
        range: [f64; 2],
        host: fn(f64, f64) -> f64,
        exact: fn(&Big, &Big) -> Option<Big>,
    ) -> Function {
        Function {
            name,
            build: Build::One(op),
            bounds: bounds.map(Some),
            range,
            host,
            exact,
        }
    }
    fn two(
        name: &'static str,
        op: fn(&mut TileBuilder, Value, Value) -> Value,
        bounds: [f64; 2],
        range: [f64; 2],
        host: fn(f64, f64) -> f64,
        exact: fn(&Big, &Big) -> Option<Big>,
    ) -> Function {
        Function {
            build: Build::Two(op),
            ..one(name, TileBuilder::exp, bounds, range, host, exact)
        }
    }
    type B = TileBuilder;
    let double_only = |f: Function| Function {
        bounds: [None, f.bounds[1]],
        ..f
    };
    vec![
        one(
            "exp_precise",
            B::exp_precise,
            [1.0, 1.0],
            [-5.0, 5.0],
            |x, _| x.exp(),
            |x, _| Some(x.exp()),
        ),
        one(
            "exp_precise (wide)",
            B::exp_precise,
            [1.0, 1.0],
            [-110.0, 90.0],
            |x, _| x.exp(),
            |x, _| Some(x.exp()),
        ),
        double_only(one(
            "exp",
            B::exp,
            [1.0, 1.0],
            [-750.0, 712.0],
            |x, _| x.exp(),
            |x, _| Some(x.exp()),
        )),
        double_only(one(
            "exp2",
            B::exp2,
            [1.0, 1.0],
            [-20.0, 20.0],
            |x, _| x.exp2(),
            |x, _| Some(big(2.0).powf(x)),
        )),
        one(
            "exp10",
            B::exp10,
            [1.0, 1.0],
            [-46.0, 39.0],
            |x, _| libm::exp10(x),
            |x, _| Some(big(10.0).powf(x)),
        ),
        one(
            "expm1",
            B::expm1,
            [1.1, 1.0],
            [-3.0, 3.0],
            |x, _| x.exp_m1(),
            |x, _| Some(x.exp_m1()),
        ),
        one(
            "log",
            B::log,
            [1.0, 1.0],
            [0.4, 2.5],
            |x, _| x.ln(),
            |x, _| Some(x.ln()),
        ),
        one(
            "log2",
            B::log2,
            [1.1, 1.0],
            [0.4, 2.5],
            |x, _| x.log2(),
            |x, _| Some(x.log2()),
        ),
        one(
            "log10",
            B::log10,
            [2.0, 1.3],
            [0.4, 2.5],
            |x, _| x.log10(),
            |x, _| Some(x.log10()),
        ),
        one(
            "log1p",
            B::log1p,
            [1.1, 1.0],
            [-0.9, 3.0],
            |x, _| x.ln_1p(),
            |x, _| Some(x.ln_1p()),
        ),
        two("pow", B::pow, [2.0, 2.0], [0.0, 30.0], f64::powf, |x, y| {
            (*x > Big::ZERO).then(|| x.powf(y))
        }),
        one(
            "sin",
            B::sin,
            [2.0, 2.0],
            [-10.0, 10.0],
            |x, _| x.sin(),
            |x, _| Some(x.sin()),
        ),
        one(
            "cos",
            B::cos,
            [2.0, 2.0],
            [-10.0, 10.0],
            |x, _| x.cos(),
            |x, _| Some(x.cos()),
        ),
        one(
            "tan",
            B::tan,
            [4.0, 2.0],
            [-10.0, 10.0],
            |x, _| x.tan(),
            |x, _| Some(x.tan()),
        ),
        one(
            "sin (far)",
            B::sin,
            [2.0, 2.0],
            [-1e5, 1e5],
            |x, _| x.sin(),
            |x, _| Some(x.sin()),
        ),
        one(
            "cos (very far)",
            B::cos,
            [2.0, 2.0],
            [-1e12, 1e12],
            |x, _| x.cos(),
            |x, _| Some(x.cos()),
        ),
        one(
            "asin",
            B::asin,
            [2.1, 2.1],
            [-1.0, 1.0],
            |x, _| x.asin(),
            |x, _| Some(x.asin()),
        ),
        one(
            "acos",
            B::acos,
            [2.0, 2.0],
            [-1.0, 1.0],
            |x, _| x.acos(),
            |x, _| Some(x.acos()),
        ),
        one(
            "atan",
            B::atan,
            [2.0, 2.0],
            [-4.0, 4.0],
            |x, _| x.atan(),
            |x, _| Some(x.atan()),
        ),
        two(
            "atan2",
            B::atan2,
            [3.0, 2.0],
            [-3.0, 3.0],
            f64::atan2,
            |y, x| (*x != Big::ZERO).then(|| y.atan2(x)),
        ),
        one(
            "sinh",
            B::sinh,
            [3.0, 2.0],
            [-4.0, 4.0],
            |x, _| x.sinh(),
            |x, _| Some(x.sinh()),
        ),
        one(
            "cosh",
            B::cosh,
            [2.0, 1.0],
            [-4.0, 4.0],
            |x, _| x.cosh(),
            |x, _| Some(x.cosh()),
        ),
        one(
            "tanh",
            B::tanh,
            [2.0, 1.0],
            [-4.0, 4.0],
            |x, _| x.tanh(),
            |x, _| Some(x.tanh()),
        ),
        one(
            "asinh",
            B::asinh,
            [3.0, 3.0],
            [-4.0, 4.0],
            |x, _| libm::asinh(x),
            |x, _| Some(x.asinh()),
        ),
        one(
            "acosh",
            B::acosh,
            [4.0, 3.0],
            [1.0, 4.0],
            |x, _| if x < 1.0 { f64::NAN } else { libm::acosh(x) },
            |x, _| Some(x.acosh()),
        ),
        one(
            "atanh",
            B::atanh,
            [3.0, 2.0],
            [-1.0, 1.0],
            |x, _| libm::atanh(x),
            |x, _| Some(x.atanh()),
        ),
        one(
            "erf",
            B::erf,
            [2.0, 2.0],
            [-4.0, 4.0],
            |x, _| libm::erf(x),
            |x, _| (x.to_f64().value().abs() < 6.0).then(|| erf(x)),
        ),
        one(
            "erfc",
            B::erfc,
            [4.0, 5.0],
            [-4.0, 9.0],
            |x, _| libm::erfc(x),
            |_, _| None,
        ),
        one(
            "erfinv",
            B::erfinv,
            [2.0, 3.0],
            [-1.0, 1.0],
            |x, _| erfinv(x),
            |_, _| None,
        ),
        one(
            "lgamma",
            B::lgamma,
            [4.0, 4.0],
            [0.0, 12.0],
            |x, _| libm::lgamma(x),
            |_, _| None,
        ),
        one(
            "lgamma (below 0)",
            B::lgamma,
            [16.0, 16.0],
            [-12.0, 0.0],
            |x, _| libm::lgamma(x),
            |_, _| None,
        ),
        one(
            "cbrt",
            B::cbrt,
            [1.0, 1.0],
            [-4.0, 4.0],
            |x, _| x.cbrt(),
            |x, _| Some(x.nth_root(3)),
        ),
        two(
            "hypot",
            B::hypot,
            [3.0, 2.0],
            [-4.0, 4.0],
            f64::hypot,
            |x, y| Some(x.hypot(y)),
        ),
        double_only(one(
            "rsqrt",
            B::rsqrt,
            [1.0, 1.0],
            [0.0, 4.0],
            |x, _| 1.0 / x.sqrt(),
            |x, _| (*x > Big::ZERO).then(|| big(1.0) / x.sqrt()),
        )),
        double_only(one(
            "sqrt",
            B::sqrt,
            [0.5, 0.5],
            [0.0, 4.0],
            |x, _| x.sqrt(),
            |x, _| (*x > Big::ZERO).then(|| x.sqrt()),
        )),
        double_only(one(
            "rcp",
            B::rcp,
            [0.5, 0.5],
            [-4.0, 4.0],
            |x, _| 1.0 / x,
            |x, _| Some(big(1.0) / x),
        )),
        one(
            "round",
            B::round,
            [0.0, 0.0],
            [-5.0, 5.0],
            |x, _| x.round(),
            |_, _| None,
        ),
        two(
            "frem",
            B::frem,
            [0.0, 0.0],
            [-50.0, 50.0],
            |x, y| x % y,
            |_, _| None,
        ),
    ]
}

/// What `tests/ulp_gpu/gpu.py` measured of a function on a GPU.
#[derive(Debug)]
pub(crate) struct Measured {
    /// The function's name, with what tells apart ranges of arguments.
    pub(crate) label: &'static str,
    /// Its type.
    pub(crate) scalar: Scalar,
    /// How many arguments it had.
    pub(crate) total: u64,
    /// The largest error of CUDA's function of float.
    pub(crate) theirs: f64,
    /// The largest differences from CUDA's function of double: in f32 the error in units of the last place, in f64
    /// the distance; then the bits of the operands and of the result.
    pub(crate) worst: Vec<(f64, Vec<u64>, u64)>,
}

/// The GPU, and what was measured on it.
pub(crate) fn measured() -> (&'static str, Vec<Measured>) {
    let text = include_str!("../ulp_gpu/h100.txt");
    let (device, lines) = text.split_once('\n').expect("the first line names the GPU");
    let measured = lines.lines().map(|line| {
        let [label, ty, total, _, theirs, worst @ ..] = &line.split(';').collect::<Vec<_>>()[..]
        else {
            panic!("`{line}` has too few fields");
        };
        let number = |text: &str| text.parse::<f64>().expect("an error is a number");
        let worst = worst.iter().map(|field| {
            let mut words = field.split(' ');
            let error = number(words.next().unwrap_or_default());
            let bits = words.map(|word| u64::from_str_radix(word, 16).expect("bits"));
            let mut bits: Vec<u64> = bits.collect();
            let result = bits.pop().expect("the last word is the result");
            (error, bits, result)
        });
        Measured {
            label,
            scalar: Scalar::from_name(ty).expect("f32 or f64"),
            total: total.parse().expect("a number of arguments"),
            theirs: number(theirs.split(' ').next().unwrap_or_default()),
            worst: worst.collect(),
        }
    });
    (device.trim_start_matches("# "), measured.collect())
}

/// Where the table of what a GPU computes begins.
pub(crate) const GPU_TITLE: &str = "\n# Errors on a GPU";

/// The largest error of a function on a GPU.
#[derive(Debug)]
pub(crate) struct Row<'a> {
    pub(crate) function: &'a Function,
    pub(crate) scalar: Scalar,
    /// The error in units of the last place.
    pub(crate) error: f64,
    /// The arguments and results that were recorded.
    pub(crate) cases: Vec<(Vec<u64>, u64)>,
}

/// The rows of the table of what a GPU computes, with their text.
pub(crate) fn measured_rows(functions: &[Function]) -> Vec<(Row<'_>, String)> {
    let (_, measured) = measured();
    let row = |row: Measured| {
        let place = usize::from(row.scalar == Scalar::F64);
        let known = |f: &&Function| f.name == row.label && f.bounds[place].is_some();
        let function = functions.iter().find(known);
        let function = function.unwrap_or_else(|| panic!("no function is {}", row.label));
        let errors = row.worst.iter().map(|(distance, args, result)| {
            let numbers: Vec<f64> = args.iter().map(|&x| number(row.scalar, x)).collect();
            let pair = [numbers[0], numbers.get(1).copied().unwrap_or(0.0)];
            match row.scalar {
                Scalar::F64 => (function.error(row.scalar, pair, *result), numbers),
                _ => (*distance, numbers),
            }
        });
        let worst = errors.max_by(|a, b| a.0.total_cmp(&b.0));
        let (error, at) = worst.expect("the largest errors are recorded");
        let at: Vec<String> = at.iter().map(|x| format!("{x:e}")).collect();
        let at = if error == 0.0 {
            String::new()
        } else {
            at.join(", ")
        };
        let total = match row.total {
            total if total == 1 << 32 => "all".to_owned(),
            total => format!("2^{}", total.ilog2()),
        };
        let theirs = match row.scalar {
            Scalar::F64 => row.worst[0].0,
            _ => row.theirs,
        };
        let bound = function.bounds[place].unwrap_or_default();
        let text = format!(
            "| `{}` | {} | {total} | {bound} | {error:.3} | {at} | {theirs:.3} |",
            row.label, row.scalar
        );
        let cases = row.worst.into_iter();
        let row = Row {
            function,
            scalar: row.scalar,
            error,
            cases: cases.map(|(_, args, result)| (args, result)).collect(),
        };
        (row, text)
    };
    measured.into_iter().map(row).collect()
}

/// The ops that are the machine's or exact, beside [`functions`]: what a GPU computes of them is measured, too.
pub(crate) fn machine_functions() -> Vec<Function> {
    let exact = |_: &Big, _: &Big| None;
    let one = |name, op, bounds, range, host| Function {
        name,
        build: Build::One(op),
        bounds,
        range,
        host,
        exact,
    };
    let two = |name, op, bounds, range, host| Function {
        name,
        build: Build::Two(op),
        bounds,
        range,
        host,
        exact,
    };
    type B = TileBuilder;
    let single = |bound| [Some(bound), None];
    let both = |bound| [Some(bound), Some(bound)];
    let near = [-10.0, 10.0];
    vec![
        one("exp", B::exp, single(2.1), near, |x, _| x.exp()),
        one("exp2", B::exp2, single(2.1), near, |x, _| x.exp2()),
        // 2^-22.9 and 2^-23 of a number just below a power of two are 2.14 and 2 units.
        one("rsqrt", B::rsqrt, single(2.14), near, |x, _| 1.0 / x.sqrt()),
        one("sqrt", B::sqrt, single(2.0), near, |x, _| x.sqrt()),
        one("rcp", B::rcp, single(1.0), near, |x, _| 1.0 / x),
        one("rcp_ftz", B::rcp_ftz, single(1.0), near, |x, _| 1.0 / x),
        // In units of the bound's 2^-22.
        one("log2_approx", B::log2_approx, single(1.0), near, |x, _| {
            x.log2()
        }),
        // In units of 2^-23, of which 2^-20.4 are 6.06.
        one("sin_approx", B::sin_approx, single(6.06), near, |x, _| {
            x.sin()
        }),
        one("cos_approx", B::cos_approx, single(6.06), near, |x, _| {
            x.cos()
        }),
        one("sqrt_rn", B::sqrt_rn, both(0.5), near, |x, _| x.sqrt()),
        one("floor", B::floor, both(0.0), near, |x, _| x.floor()),
        one("ceil", B::ceil, both(0.0), near, |x, _| x.ceil()),
        one("rint", B::rint, both(0.0), near, |x, _| x.round_ties_even()),
        one("trunc", B::trunc, both(0.0), near, |x, _| x.trunc()),
        two("fdiv", B::fdiv, single(2.1), near, |x, y| x / y),
        two("fdiv_rn", B::fdiv_rn, both(0.5), near, |x, y| x / y),
    ]
}

/// The inverse of the error function by Newton's iteration.
fn erfinv(x: f64) -> f64 {
    let a = x.abs();
    if x.is_nan() || a >= 1.0 || a == 0.0 {
        return if a <= 1.0 { x / (1.0 - a) } else { f64::NAN };
    }
    let rate = 2.0 / std::f64::consts::PI.sqrt();
    let rest = 1.0 - a;
    let mut y = if a < 0.5 {
        a / rate
    } else {
        (-rest.ln()).sqrt() - 0.25
    };
    for _ in 0..10 {
        let slope = rate * (-y * y).exp();
        // Of the complement where it has more digits.
        y -= if a < 0.5 {
            (libm::erf(y) - a) / slope
        } else {
            libm::erfc(y) * (rest / libm::erfc(y)).ln() / slope
        };
    }
    y.copysign(x)
}

/// The error function by its series of positive terms.
fn erf(x: &Big) -> Big {
    let precision = 200;
    let x = x.clone().with_precision(precision).value();
    let square = &x * &x;
    let two = big(2.0).with_precision(precision).value();
    let (mut term, mut sum) = (x.clone(), x.clone());
    let small = sum.to_f64().value().abs() * 1e-45;
    for n in 1..2000 {
        let n = big(f64::from(2 * n + 1)).with_precision(precision).value();
        term = term * &two * &square / n;
        sum += &term;
        if term.to_f64().value().abs() < small {
            break;
        }
    }
    let pi = Big::pi(precision);
    let scale = two / pi.sqrt();
    scale * sum * (-square).exp()
}
