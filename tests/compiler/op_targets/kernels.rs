//! A small kernel for each op of the tile IR and each element type that it takes.

use tilelift::ir::attrs::{
    Attr, DotPrecision, Flag, FloatPred, IntPred, List, MemOrder, NanRule, RmwOp, Rounding, Scope,
    Show, make,
};
use tilelift::ir::builder::TileBuilder;
use tilelift::ir::dfg::{InstData, ValueList};
use tilelift::ir::entities::Value;
use tilelift::ir::function::TileFunction;
use tilelift::ir::ops::{Opcode, TileOp, TypeRule};
use tilelift::ir::types::{Elem, Scalar, TileType, ValueType};
use tilelift::linear_layout::shape::Shape;

/// Elements of the blocks: two for each lane, so that there are pairs, and enough for every pair of edge cases.
const COUNT: usize = 256;
/// Extent of matrices, so that the units for matrices are used.
const SIDE: usize = 32;
const WARPS: u32 = 4;

/// How what a kernel gives is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Judge {
    /// Every bit, any NaN for any other.
    Exact,
    /// Within a few units of the last place: the op table states a bound, which is measured elsewhere.
    Near,
    /// Within 2^-20.
    Absolute,
    /// Not at all: a clock, a multiprocessor.
    Free,
    /// The output is the input; the interpreter does not know PTX.
    Copy,
}

/// What operands may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Domain {
    Any,
    /// The second is no divisor for which the quotient is undefined.
    Divisor,
    /// Numbers whose quotients are small.
    Moderate,
    /// The second is an index into the first.
    Index,
    /// Angles within 2 pi.
    Angle,
    /// Small integers, whose sums of products are exact in any order.
    Small,
}

/// A kernel of one op.
pub(crate) struct Kernel {
    pub(crate) op: TileOp,
    /// Attributes that matter, as they are written.
    pub(crate) variant: String,
    /// The attributes themselves.
    pub(crate) attrs: Vec<Attr>,
    /// `f32`, or `f32 to f16` where operand and result differ.
    pub(crate) types: String,
    pub(crate) func: TileFunction,
    /// Elements of each operand and result.
    pub(crate) count: usize,
    pub(crate) inputs: Vec<Scalar>,
    pub(crate) outputs: Vec<Scalar>,
    pub(crate) judge: Judge,
    pub(crate) domain: Domain,
    /// Whether the op computes element by element, so that a target can lack it.
    pub(crate) is_arithmetic: bool,
}

/// Why an op has no kernel: passes make it, or it ends regions of others.
pub(crate) const NO_KERNEL: [TileOp; 32] = [
    TileOp::ConvertLayout,
    TileOp::AsyncCopy,
    TileOp::AsyncCommit,
    TileOp::AsyncWait,
    TileOp::SharedLoad,
    TileOp::SharedStore,
    TileOp::SharedView,
    TileOp::DotStart,
    TileOp::DotDone,
    TileOp::DotWait,
    TileOp::DotSum,
    TileOp::TensorMap,
    TileOp::TensorLoad,
    TileOp::TensorCopy,
    TileOp::TensorStore,
    TileOp::MbarInit,
    TileOp::MbarDrop,
    TileOp::MbarExpect,
    TileOp::MbarWait,
    TileOp::MbarWaitFor,
    TileOp::MbarArrive,
    TileOp::Release,
    TileOp::Producer,
    TileOp::CtaId,
    TileOp::GroupId,
    TileOp::NumGroups,
    TileOp::SlotPut,
    TileOp::SlotGet,
    TileOp::NumCtas,
    TileOp::Return,
    TileOp::Yield,
    TileOp::Condition,
];

fn block_shape() -> Shape {
    Shape::new(&[COUNT as u64]).expect("a power of two")
}

fn block(scalar: Scalar) -> TileType {
    TileType::block(Elem::Num(scalar), block_shape())
}

/// No attributes that matter.
const NONE: (&str, &[Attr]) = ("", &[]);

/// A kernel under construction: blocks of inputs, and where results go.
struct Draft {
    b: TileBuilder,
    inputs: Vec<Value>,
    pointers: Vec<Value>,
    outs: Vec<Value>,
    shape: Shape,
}

impl Draft {
    fn new(number: usize, count: usize, inputs: &[Scalar], outputs: &[Scalar]) -> Draft {
        let shape = Shape::new(&[count as u64]).expect("a power of two");
        let mut b = TileBuilder::new(format!("k{number}"), WARPS);
        let bases: Vec<Value> = inputs
            .iter()
            .chain(outputs)
            .enumerate()
            .map(|(i, &s)| {
                let ty = TileType::scalar(Elem::global(s));
                b.param_divisible(&format!("p{i}"), ty, 16)
            })
            .collect();
        let range = b.arange(0, TileType::block(Elem::I32, shape));
        let mut pointers = Vec::new();
        for base in bases {
            let base = b.to_shape(base, shape);
            pointers.push(b.addptr(base, range));
        }
        let outs = pointers.split_off(inputs.len());
        let inputs = pointers.iter().map(|&p| b.load(p, None, None)).collect();
        Draft {
            b,
            inputs,
            pointers,
            outs,
            shape,
        }
    }

    /// Stores a result, a scalar in every element.
    fn store(&mut self, at: usize, value: Value) {
        let value = self.b.to_shape(value, self.shape);
        self.b.store(self.outs[at], value, None);
    }

    fn finish(mut self) -> Option<TileFunction> {
        self.b.ret();
        self.b.finish().ok()
    }
}

/// Collects kernels; what does not type-check is left out.
#[derive(Default)]
struct Collector {
    kernels: Vec<Kernel>,
}

impl Collector {
    fn add(
        &mut self,
        op: TileOp,
        (variant, attrs): (&str, &[Attr]),
        [inputs, outputs]: [&[Scalar]; 2],
        body: impl FnOnce(&mut Draft),
    ) {
        let count = match op {
            TileOp::Dot => SIDE * SIDE,
            _ => COUNT,
        };
        let mut draft = Draft::new(self.kernels.len(), count, inputs, outputs);
        body(&mut draft);
        let Some(func) = draft.finish() else {
            return;
        };
        let data = match op {
            TileOp::Gather => inputs.first(),
            _ => inputs.last(),
        };
        let from = data.or(outputs.first()).copied();
        let to = outputs.first().copied();
        let rule = op.info().rule;
        let is_cast = matches!(
            rule,
            TypeRule::IntWiden
                | TypeRule::IntNarrow
                | TypeRule::IntToFloat
                | TypeRule::FloatToInt
                | TypeRule::FloatWiden
                | TypeRule::FloatNarrow
                | TypeRule::Bitcast
        );
        let name = |scalar: Option<Scalar>| scalar.map_or("none", Scalar::name).to_owned();
        let types = if is_cast {
            format!("{} to {}", name(from), name(to))
        } else if rule == TypeRule::Dot {
            let names: Vec<String> = inputs.iter().map(|&s| name(Some(s))).collect();
            format!("{} x {} to {}", names[0], names[1], names[2])
        } else {
            name(from)
        };
        let is_approximate = rule == TypeRule::Function
            || matches!(
                op,
                TileOp::Fdiv
                    | TileOp::RcpFtz
                    | TileOp::Log2Approx
                    | TileOp::SinApprox
                    | TileOp::CosApprox
            );
        let judge = match op {
            TileOp::SmId | TileOp::GlobalTimer => Judge::Free,
            TileOp::InlinePtx => Judge::Copy,
            TileOp::SinApprox | TileOp::CosApprox => Judge::Absolute,
            _ if is_approximate => Judge::Near,
            _ => Judge::Exact,
        };
        let domain = match op {
            TileOp::Sdiv | TileOp::Udiv | TileOp::Srem | TileOp::Urem => Domain::Divisor,
            TileOp::Frem => Domain::Moderate,
            TileOp::Gather => Domain::Index,
            TileOp::SinApprox | TileOp::CosApprox => Domain::Angle,
            TileOp::Dot => Domain::Small,
            _ => Domain::Any,
        };
        let is_arithmetic = is_cast && rule != TypeRule::Bitcast
            || is_approximate
            || matches!(
                rule,
                TypeRule::SameInt
                    | TypeRule::SameBits
                    | TypeRule::SameI32
                    | TypeRule::SameFloat
                    | TypeRule::SameWideFloat
                    | TypeRule::IntCompare
                    | TypeRule::FloatCompare
                    | TypeRule::Select
            );
        self.kernels.push(Kernel {
            op,
            variant: variant.to_owned(),
            attrs: attrs.to_vec(),
            types,
            func,
            count,
            inputs: inputs.to_vec(),
            outputs: outputs.to_vec(),
            judge,
            domain,
            is_arithmetic,
        });
    }

    /// An op on blocks, with attributes; `to` is given where the op asks for it.
    fn elementwise(
        &mut self,
        op: TileOp,
        (variant, attrs): (&str, &[Attr]),
        args: &[Scalar],
        to: Scalar,
    ) {
        self.add(op, (variant, attrs), [args, &[to]], |d| {
            let mut data = InstData::new(op, &d.inputs);
            data.attrs.extend(attrs.iter().cloned());
            let given = [block(to)];
            let given = if op.info().result_is_given {
                &given[..]
            } else {
                &[]
            };
            let inst = d.b.inst(data, given);
            if let Some(&result) = d.b.func().dfg.insts[inst].results.first() {
                d.store(0, result);
            }
        });
    }
}

/// The kernels of every op that has any.
pub(crate) fn kernels() -> Vec<Kernel> {
    let mut all = Collector::default();
    for &op in TileOp::ALL {
        let before = all.kernels.len();
        match op.info().rule {
            TypeRule::SameInt
            | TypeRule::SameBits
            | TypeRule::SameI32
            | TypeRule::SameFloat
            | TypeRule::SameF32
            | TypeRule::SameWideFloat
            | TypeRule::Function
            | TypeRule::IntCompare
            | TypeRule::FloatCompare
            | TypeRule::Select => of_one_type(&mut all, op),
            TypeRule::IntWiden
            | TypeRule::IntNarrow
            | TypeRule::IntToFloat
            | TypeRule::FloatToInt
            | TypeRule::FloatWiden
            | TypeRule::FloatNarrow
            | TypeRule::Bitcast => conversions(&mut all, op),
            TypeRule::AtomicRmw | TypeRule::AtomicCas => atomics(&mut all, op),
            TypeRule::Dot => products(&mut all),
            _ => others(&mut all, op),
        }
        assert!(
            all.kernels.len() > before || NO_KERNEL.contains(&op),
            "{op} has no kernel"
        );
    }
    all.kernels
}

fn of_one_type(all: &mut Collector, op: TileOp) {
    let rule = op.info().rule;
    let variants: Vec<(String, Vec<Attr>)> = match op {
        TileOp::Icmp => IntPred::ALL
            .iter()
            .map(|&p| (String::new(), vec![make::ipred(p)]))
            .collect(),
        TileOp::Fcmp => FloatPred::ALL
            .iter()
            .map(|&p| (String::new(), vec![make::fpred(p)]))
            .collect(),
        TileOp::Fmin | TileOp::Fmax => NanRule::ALL
            .iter()
            .map(|&n| (n.name().to_owned(), vec![make::nan(n)]))
            .collect(),
        _ => vec![(String::new(), Vec::new())],
    };
    for (variant, attrs) in &variants {
        for s in Scalar::ALL {
            let mut args = vec![s; op.info().min_operands()];
            if rule == TypeRule::Select {
                args[0] = Scalar::I1;
            }
            let compares = matches!(rule, TypeRule::IntCompare | TypeRule::FloatCompare);
            let to = if compares { Scalar::I1 } else { s };
            all.elementwise(op, (variant, attrs), &args, to);
        }
    }
}

fn conversions(all: &mut Collector, op: TileOp) {
    let variants: Vec<(&str, Vec<Attr>)> = if op == TileOp::Fptrunc {
        let rounding = |&r: &Rounding| (r.name(), vec![make::round(r)]);
        Rounding::ALL.iter().map(rounding).collect()
    } else {
        vec![("", Vec::new())]
    };
    for (variant, attrs) in &variants {
        for from in Scalar::ALL {
            for to in Scalar::ALL {
                all.elementwise(op, (variant, attrs), &[from], to);
            }
        }
    }
}

fn atomics(all: &mut Collector, op: TileOp) {
    let order = (MemOrder::Relaxed, Scope::Gpu);
    for s in Scalar::ALL {
        if op == TileOp::AtomicCas {
            all.add(op, NONE, [&[s, s, s], &[s]], |d| {
                let (expected, value) = (d.inputs[1], d.inputs[2]);
                let old =
                    d.b.atomic_cas(d.pointers[0], expected, value, order.0, order.1);
                d.store(0, old);
            });
            continue;
        }
        for &rmw in RmwOp::ALL {
            all.add(op, (rmw.name(), &[]), [&[s, s], &[s]], |d| {
                let value = d.inputs[1];
                let old =
                    d.b.atomic_rmw(d.pointers[0], value, None, rmw, order.0, order.1);
                d.store(0, old);
            });
            // Without a use of what was there.
            all.add(
                op,
                (&format!("{}, unused", rmw.name()), &[]),
                [&[s, s], &[s]],
                |d| {
                    let value = d.inputs[1];
                    d.b.atomic_rmw(d.pointers[0], value, None, rmw, order.0, order.1);
                    d.store(0, value);
                },
            );
        }
    }
}

/// Products of square matrices.
fn products(all: &mut Collector) {
    let square = Shape::new(&[SIDE as u64; 2]).expect("powers of two");
    for a in Scalar::ALL {
        for b in Scalar::ALL {
            for acc in Scalar::ALL {
                for &precision in DotPrecision::ALL {
                    // Of other types it says nothing.
                    if a != Scalar::F32 && precision != DotPrecision::Tf32 {
                        continue;
                    }
                    let name = if a == Scalar::F32 {
                        precision.name()
                    } else {
                        ""
                    };
                    let attrs = [make::precision(precision)];
                    all.add(TileOp::Dot, (name, &attrs), [&[a, b, acc], &[acc]], |d| {
                        let [x, y, z] = [0, 1, 2].map(|i| {
                            let ty = d.b.ty(d.inputs[i]).with_shape(square);
                            d.b.reshape(d.inputs[i], ty)
                        });
                        let product = d.b.dot(x, y, z, precision);
                        let flat = d.b.ty(product).with_shape(d.shape);
                        let product = d.b.reshape(product, flat);
                        d.store(0, product);
                    });
                }
            }
        }
    }
}

fn pair(b: &mut TileBuilder, scalar: Scalar, x: Value, y: Value) -> Value {
    match scalar {
        Scalar::I1 => b.xor(x, y),
        s if s.is_int() => b.iadd(x, y),
        // A maximum is exact in any order.
        _ => b.fmax(x, y, NanRule::Ignore),
    }
}

fn others(all: &mut Collector, op: TileOp) {
    for s in Scalar::ALL {
        let one: [&[Scalar]; 2] = [&[s], &[s]];
        let wide = Shape::new(&[2, COUNT as u64 / 2]).expect("powers of two");
        match op {
            TileOp::Const => all.add(op, NONE, [&[], &[s]], |d| {
                let x = d.b.const_bits(0x41, block(s));
                d.store(0, x);
            }),
            TileOp::Splat => all.add(op, NONE, one, |d| {
                let (p, ty) = (d.b.func().params()[0], block(s));
                let x = d.b.load(p, None, None);
                let x = d.b.splat(x, ty);
                d.store(0, x);
            }),
            TileOp::Broadcast => all.add(op, NONE, one, |d| {
                let p = d.b.func().params()[0];
                let x = d.b.load(p, None, None);
                let single = Shape::new(&[1]).expect("a power of two");
                let x = d.b.splat(x, block(s).with_shape(single));
                let x = d.b.broadcast(x, block(s));
                d.store(0, x);
            }),
            TileOp::ExpandDims => all.add(op, NONE, one, |d| {
                let x = d.b.expand_dims(d.inputs[0], 0);
                let x = d.b.reshape(x, block(s));
                d.store(0, x);
            }),
            TileOp::Reshape | TileOp::Permute => all.add(op, NONE, one, |d| {
                let x = d.b.reshape(d.inputs[0], block(s).with_shape(wide));
                let x = d.b.permute(x, List::from_slice(&[1, 0]));
                let x = d.b.reshape(x, block(s));
                d.store(0, x);
            }),
            TileOp::Join => all.add(op, NONE, [&[s, s], &[s, s]], |d| {
                let x = d.b.join(d.inputs[0], d.inputs[1]);
                let half = Shape::new(&[2, COUNT as u64]).expect("powers of two");
                let x = d.b.reshape(x, block(s).with_shape(half));
                let x = d.b.permute(x, List::from_slice(&[1, 0]));
                for (at, part) in [d.b.split(x, 0), d.b.split(x, 1)].into_iter().enumerate() {
                    d.store(at, part);
                }
            }),
            TileOp::Split => all.add(op, NONE, [&[s, s], &[s, s]], |d| {
                let x = d.b.join(d.inputs[0], d.inputs[1]);
                for (at, part) in [d.b.split(x, 1), d.b.split(x, 0)].into_iter().enumerate() {
                    d.store(at, part);
                }
            }),
            TileOp::Gather => all.add(op, NONE, [&[s, Scalar::I32], &[s]], |d| {
                let x = d.b.gather(d.inputs[0], d.inputs[1], 0);
                d.store(0, x);
            }),
            TileOp::AssumeMultiple | TileOp::AssumeContiguous | TileOp::AssumeConstant => {
                all.add(op, NONE, one, |d| {
                    let (x, values) = (d.inputs[0], List::from_slice(&[1]));
                    let x = match op {
                        TileOp::AssumeMultiple => d.b.assume_multiple(x, values),
                        TileOp::AssumeContiguous => d.b.assume_contiguous(x, values),
                        _ => d.b.assume_constant(x, values),
                    };
                    d.store(0, x);
                })
            }
            TileOp::Histogram => all.add(op, NONE, [&[s], &[Scalar::I32]], |d| {
                let x = d.b.histogram(d.inputs[0], block(Scalar::I32));
                d.store(0, x);
            }),
            TileOp::Load | TileOp::Store => all.add(op, NONE, one, |d| {
                let x = d.inputs[0];
                d.store(0, x);
            }),
            TileOp::Reduce => all.add(op, NONE, one, |d| {
                let x = d.b.reduce_one(d.inputs[0], 0, |b, x, y| pair(b, s, x, y));
                d.store(0, x);
            }),
            TileOp::Scan => all.add(op, NONE, one, |d| {
                let x =
                    d.b.scan_one(d.inputs[0], 0, false, |b, x, y| pair(b, s, x, y));
                d.store(0, x);
            }),
            TileOp::For => all.add(op, NONE, one, |d| {
                let bounds = [0, 3, 1].map(|n| d.b.i32(n, Shape::SCALAR));
                let x = d.inputs[0];
                let results =
                    d.b.for_loop(bounds[0], bounds[1], bounds[2], &[x], |b, _, carried| {
                        ValueList::from_slice(&[pair(b, s, carried[0], x)])
                    });
                d.store(0, results[0]);
            }),
            TileOp::While => all.add(op, NONE, one, |d| {
                let (x, start) = (d.inputs[0], d.b.i32(3, Shape::SCALAR));
                let results = d.b.while_loop(
                    &[start, x],
                    |b, carried| {
                        let zero = b.i32(0, Shape::SCALAR);
                        let more = b.icmp(carried[0], zero, IntPred::Sgt);
                        (more, ValueList::from_slice(carried))
                    },
                    |b, carried| {
                        let one = b.i32(1, Shape::SCALAR);
                        let less = b.isub(carried[0], one);
                        ValueList::from_slice(&[less, pair(b, s, carried[1], x)])
                    },
                );
                d.store(0, results[1]);
            }),
            TileOp::If => all.add(op, NONE, [&[s, s], &[s]], |d| {
                let (x, y) = (d.inputs[0], d.inputs[1]);
                let (pid, zero) = (d.b.program_id(0), d.b.i32(0, Shape::SCALAR));
                let first = d.b.icmp(pid, zero, IntPred::Eq);
                let results = d.b.if_else(
                    first,
                    |b| ValueList::from_slice(&[pair(b, s, x, y)]),
                    |_| ValueList::from_slice(&[x]),
                );
                d.store(0, results[0]);
            }),
            TileOp::DevicePrint => all.add(op, NONE, one, |d| {
                let x = d.inputs[0];
                d.b.device_print(Some(x), "x".into());
                d.b.with(make::show(Show::Hex));
                d.store(0, x);
            }),
            TileOp::InlinePtx => inline(all, s),
            TileOp::PtrCast => all.add(op, NONE, one, |d| {
                let pointers = block(s).with_elem(Elem::global(s));
                let number = d.b.ptr_cast(d.pointers[0], block(Scalar::I64));
                let p = d.b.ptr_cast(number, pointers);
                let x = d.b.load(p, None, None);
                d.store(0, x);
            }),
            _ => {}
        }
    }
    untyped(all, op);
}

fn inline(all: &mut Collector, s: Scalar) {
    let (line, constraints) = match s.bits() {
        1 | 8 => return,
        16 => ("mov.b16 $0, $1;", "=h,h"),
        32 => ("mov.b32 $0, $1;", "=r,r"),
        _ => ("mov.b64 $0, $1;", "=l,l"),
    };
    all.add(TileOp::InlinePtx, NONE, [&[s], &[s]], |d| {
        let x = d.inputs[0];
        let results = d.b.inline_ptx(&[x], (line, constraints), 1, &[block(s)]);
        if let Some(&x) = results.first() {
            d.store(0, x);
        }
    });
}

/// Ops of one type.
fn untyped(all: &mut Collector, op: TileOp) {
    let i32s: [&[Scalar]; 2] = [&[], &[Scalar::I32]];
    match op {
        TileOp::Addptr => {
            for index in [Scalar::I32, Scalar::I64] {
                all.add(op, NONE, [&[index], &[index]], |d| {
                    let one = d.b.const_bits(1, block(index));
                    let back = d.b.const_bits(u64::MAX, block(index));
                    let p = d.b.addptr(d.pointers[0], one);
                    let p = d.b.addptr(p, back);
                    let x = d.b.load(p, None, None);
                    d.store(0, x);
                });
            }
        }
        TileOp::ProgramId => all.add(op, NONE, i32s, |d| {
            let x = d.b.program_id(0);
            d.store(0, x);
        }),
        TileOp::NumPrograms => all.add(op, NONE, i32s, |d| {
            let x = d.b.num_programs(0);
            d.store(0, x);
        }),
        TileOp::SmId => all.add(op, NONE, i32s, |d| {
            let x = d.b.sm_id();
            d.store(0, x);
        }),
        TileOp::GlobalTimer => all.add(op, NONE, [&[], &[Scalar::I64]], |d| {
            let x = d.b.global_timer();
            d.store(0, x);
        }),
        TileOp::Arange => all.add(op, NONE, i32s, |d| {
            let x = d.b.arange(-7, block(Scalar::I32));
            d.store(0, x);
        }),
        TileOp::DeviceAssert => all.add(op, NONE, [&[Scalar::I1], &[Scalar::I1]], |d| {
            let x = d.inputs[0];
            let truth = d.b.const_bits(1, block(Scalar::I1));
            let either = d.b.or(x, truth);
            d.b.device_assert(either, "x".into());
            d.b.with(make::trap(Flag));
            d.store(0, x);
        }),
        TileOp::Barrier | TileOp::GdcWait | TileOp::GdcLaunchDependents => {
            all.add(op, NONE, [&[Scalar::I32], &[Scalar::I32]], |d| {
                match op {
                    TileOp::Barrier => d.b.barrier(),
                    TileOp::GdcWait => d.b.gdc_wait(),
                    _ => d.b.gdc_launch_dependents(),
                }
                let x = d.inputs[0];
                d.store(0, x);
            })
        }
        _ => {}
    }
}
