//! Every op on every type and several pack sizes: assembled for every target, run on the emulator, and compared
//! with the meaning of the op for each element. At the end every selection rule must have fired.

use super::reference::{eval, is_nan};
use super::*;
use crate::emu;
use crate::ir::attrs::{Attr, FloatPred, IntPred, NanRule, RedOp, Rounding, make};
use crate::ir::dfg::InstData;
use crate::ir::entities::Value;
use crate::ir::ops::{Opcode, ThreadOp};
use crate::machine::select::coverage;

/// Threads of the kernels.
pub(super) const THREADS: usize = 32;

/// Numbers that look random, the same in every run (splitmix64).
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    pub(super) fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

/// What an element of an operand may be.
fn sample(s: Scalar, is_amount: bool, random: &mut Random) -> u64 {
    let edges: &[u64] = match s {
        Scalar::I1 => &[0, 1],
        Scalar::F16 => &[
            0, 0x8000, 0x3c00, 0xbc00, 0x7c00, 0xfc00, 0x7e00, 0x7bff, 1, 0x3800, 0x4248, 0xd640,
        ],
        Scalar::Bf16 => &[
            0, 0x8000, 0x3f80, 0xbf80, 0x7f80, 0xff80, 0x7fc0, 0x7f7f, 1, 0x3f00, 0x4049, 0xc2c8,
        ],
        Scalar::F32 => &[
            0,
            0x8000_0000,
            0x3f80_0000,
            0xbf80_0000,
            0x7f80_0000,
            0xff80_0000,
            0x7fc0_0000,
            0x7f7f_ffff,
            1,
            0x3f00_0000,
            0x4049_0fdb,
            0xc2c8_0000,
            0x4f00_0000,
            0xcf00_0000,
            0x3f80_8000,
            0x3f80_8001,
        ],
        Scalar::F64 => &[
            0,
            1 << 63,
            0x3ff0_0000_0000_0000,
            0xbff0_0000_0000_0000,
            0x7ff0_0000_0000_0000,
            0xfff0_0000_0000_0000,
            0x7ff8_0000_0000_0000,
            0x41e0_0000_0000_0000,
            0xc1e0_0000_0020_0000,
            0x3ff0_1000_0000_0000,
            0x3ff0_1000_0000_0001,
            0x47f0_0000_0000_0000,
        ],
        _ => &[
            0,
            1,
            2,
            0x7f,
            0x80,
            0xff,
            0x7fff,
            0x8000,
            0xffff,
            0x7fff_ffff,
            0x8000_0000,
            u64::MAX,
            1 << 63,
            (1 << 63) - 1,
        ],
    };
    let mask = u64::MAX >> (64 - s.bits());
    if is_amount {
        return random.below(u64::from(2 * s.bits()) + 1) & mask;
    }
    match random.below(3) {
        0 => edges[random.below(edges.len() as u64) as usize] & mask,
        // Floats of ordinary size, small integers.
        1 if s.is_float() => {
            let number = (random.below(20_000) as f64 - 10_000.0) / 64.0;
            match s {
                Scalar::F16 => u64::from(crate::num::f16::from_f32(number as f32)),
                Scalar::Bf16 => u64::from(crate::num::bf16::from_f32(number as f32)),
                Scalar::F32 => u64::from((number as f32).to_bits()),
                _ => number.to_bits(),
            }
        }
        1 => random.below(100).wrapping_sub(50) & mask,
        _ => random.next() & mask,
    }
}

/// An op on given types.
struct Case {
    op: ThreadOp,
    attrs: Vec<Attr>,
    args: Vec<Scalar>,
    to: Scalar,
    /// Position and bits of an operand that is a constant.
    constant: Option<(usize, u64)>,
    /// Allowed difference in units of the last place.
    ulps: u64,
}

impl Case {
    fn new(op: ThreadOp, attrs: &[Attr], args: &[Scalar], to: Scalar) -> Case {
        Case {
            op,
            attrs: attrs.to_vec(),
            args: args.to_vec(),
            to,
            constant: None,
            ulps: 0,
        }
    }

    /// Whether the target has no form of it, so that the pipeline must have removed it before.
    fn is_left_out(&self, target: Target) -> bool {
        use ThreadOp::{Fadd, Fma, Fmax, Fmin, Fmul, Fpext, Fptrunc, Fsub, Sitofp, Uitofp};
        let from = self.args[0];
        let old = target.sm < 80;
        match self.op {
            Fptrunc | Fpext if from.bits() == 8 || self.to.bits() == 8 => !target.converts_f8(),
            Fadd | Fsub | Fmul | Fma => old && from == Scalar::Bf16,
            Fmin | Fmax => old && from.bits() == 16,
            Fptrunc | Sitofp | Uitofp => old && self.to == Scalar::Bf16,
            _ => false,
        }
    }

    fn name(&self, number: usize, count: u16) -> String {
        let types: Vec<&str> = self.args.iter().map(|s| s.name()).collect();
        format!(
            "k{number}_{}_{}_{}_{count}",
            self.op,
            types.join("_"),
            self.to
        )
    }
}

/// Reads `count` elements from `base`, as few accesses as possible.
pub(super) fn load_pack(
    b: &mut ThreadBuilder,
    base: Value,
    index: Value,
    elem: Scalar,
    count: u16,
) -> Value {
    let each = count.min((16 / elem.bytes()) as u16);
    let p = b.addptr(base, index);
    let parts: Vec<Value> = (0..count / each)
        .map(|i| {
            let part = b.ld(p, None, None, ThreadType::pack(Elem::Num(elem), each));
            b.with(make::offset(i32::from(i * each) * elem.bytes() as i32));
            part
        })
        .collect();
    if parts.len() == 1 {
        return parts[0];
    }
    let map = (0..u32::from(count)).collect();
    b.rearrange(&parts, map, ThreadType::pack(Elem::Num(elem), count))
}

/// Writes a pack.
pub(super) fn store_pack(
    b: &mut ThreadBuilder,
    base: Value,
    index: Value,
    elem: Scalar,
    count: u16,
    value: Value,
) {
    let each = count.min((16 / elem.bytes()) as u16);
    let p = b.addptr(base, index);
    for i in 0..count / each {
        let part = if each == count {
            value
        } else {
            let map = (0..u32::from(each))
                .map(|j| u32::from(i * each) + j)
                .collect();
            b.rearrange(&[value], map, ThreadType::pack(Elem::Num(elem), each))
        };
        b.st(p, part, None);
        b.with(make::offset(i32::from(i * each) * elem.bytes() as i32));
    }
}

fn kernel(case: &Case, number: usize, count: u16) -> ThreadFunction {
    let mut b = ThreadBuilder::new(case.name(number, count), 1);
    let pointers: Vec<Value> = (0..)
        .zip(case.args.iter().chain([&case.to]))
        .map(|(i, &s)| b.param_divisible(&format!("p{i}"), ThreadType::scalar(Elem::global(s)), 16))
        .collect();
    let i32s = ThreadType::scalar(Elem::I32);
    let tid = b.special(SpecialReg::Tid);
    let per_thread = b.const_bits(u64::from(count), i32s);
    let index = b.imul(tid, per_thread);
    let operands: Vec<Value> = case
        .args
        .iter()
        .enumerate()
        .map(|(i, &s)| match case.constant {
            Some((at, bits)) if at == i => {
                b.const_bits(bits, ThreadType::pack(Elem::Num(s), count))
            }
            _ => load_pack(&mut b, pointers[i], index, s, count),
        })
        .collect();
    let mut data = InstData::new(case.op, &operands);
    data.attrs.extend(case.attrs.iter().cloned());
    let given = ThreadType::pack(Elem::Num(case.to), count);
    let given: &[ThreadType] = if case.op.info().result_is_given {
        &[given]
    } else {
        &[]
    };
    let inst = b.inst(data, given);
    let result = b.func().dfg.insts[inst].results[0];
    store_pack(
        &mut b,
        pointers[case.args.len()],
        index,
        case.to,
        count,
        result,
    );
    b.ret();
    b.finish()
        .unwrap_or_else(|e| panic!("{}: {e:?}", case.name(number, count)))
}

/// Bits as an array in memory.
pub(super) fn to_bytes(s: Scalar, elements: &[u64]) -> Vec<u8> {
    elements
        .iter()
        .flat_map(|e| e.to_le_bytes().into_iter().take(s.bytes() as usize))
        .collect()
}

pub(super) fn from_bytes(s: Scalar, bytes: &[u8]) -> Vec<u64> {
    bytes
        .chunks(s.bytes() as usize)
        .map(|chunk| {
            chunk
                .iter()
                .rev()
                .fold(0, |n, &byte| n << 8 | u64::from(byte))
        })
        .collect()
}

/// Runs a kernel of one warp whose parameters are pointers; gives what the last one points to.
pub(super) fn run(ptx: &str, name: &str, inputs: &[Vec<u8>], out_bytes: usize) -> Vec<u8> {
    let module = emu::Module::parse(ptx).unwrap_or_else(|e| panic!("{e}\n{ptx}"));
    let mut memory = emu::Memory::new();
    let mut args: Vec<emu::Arg> = inputs
        .iter()
        .map(|bytes| emu::Arg::pointer(memory.alloc_bytes(bytes)))
        .collect();
    let out = memory.alloc(out_bytes);
    args.push(emu::Arg::pointer(out));
    let launch = emu::Launch {
        grid: [1, 1, 1],
        block: [THREADS as u32, 1, 1],
        shared_bytes: 4096,
        args: &args,
        options: emu::Options::default(),
    };
    emu::run(&module, name, &launch, &mut memory).unwrap_or_else(|e| panic!("{e}\n{ptx}"));
    memory
        .read(out, out_bytes)
        .unwrap_or_else(|e| panic!("{e}\n{ptx}"))
}

fn close(case: &Case, found: u64, expected: u64) -> bool {
    // Signs of NaN and payloads are free, but not where bits are only moved.
    let moves_bits = matches!(
        case.op,
        ThreadOp::Fneg | ThreadOp::Fabs | ThreadOp::Copysign | ThreadOp::Select | ThreadOp::Bitcast
    );
    if found == expected || (!moves_bits && is_nan(case.to, found) && is_nan(case.to, expected)) {
        return true;
    }
    if case.ulps == 0 {
        return false;
    }
    let (x, y) = (
        f32::from_bits(found as u32),
        f32::from_bits(expected as u32),
    );
    // Functions that take subnormal numbers for zero.
    let tiny = |v: f32| v.abs() < f32::MIN_POSITIVE;
    (tiny(x) && tiny(y))
        || (x.is_sign_negative() == y.is_sign_negative() && found.abs_diff(expected) <= case.ulps)
}

fn check(case: &Case, number: usize, batch: &mut Batch, random: &mut Random) {
    for count in [1, 2, 4, 8] {
        let func = kernel(case, number, count);
        let n = THREADS * usize::from(count);
        let inputs: Vec<Vec<u64>> = case
            .args
            .iter()
            .enumerate()
            .map(|(i, &s)| {
                let is_amount =
                    i == 1 && matches!(case.op, ThreadOp::Shl | ThreadOp::Ushr | ThreadOp::Sshr);
                (0..n)
                    .map(|_| match case.constant {
                        Some((at, bits)) if at == i => bits,
                        _ => sample(s, is_amount && random.below(8) != 0, random),
                    })
                    .collect()
            })
            .collect();
        let bytes: Vec<Vec<u8>> = inputs
            .iter()
            .zip(&case.args)
            .map(|(e, &s)| to_bytes(s, e))
            .collect();
        for target in Target::ALL {
            let emitted = compile_thread(&func, target, &Options::DEFAULT);
            if case.is_left_out(target) {
                assert!(emitted.is_err(), "{} has a form on {target}", func.name);
                continue;
            }
            let (ptx, version, _) = emitted.unwrap_or_else(|e| panic!("{target}: {e}"));
            // The text of other counts repeats the same lines.
            if count == 1 || count == 4 {
                batch.add(target, version, &ptx);
            }
            let out = run(&ptx, &func.name, &bytes, n * case.to.bytes() as usize);
            for (i, found) in from_bytes(case.to, &out).into_iter().enumerate() {
                let args: Vec<u64> = inputs.iter().map(|e| e[i]).collect();
                // A selection's type is that of what is selected.
                let from = case.args[usize::from(case.op == ThreadOp::Select)];
                if let Some(expected) = eval(case.op, &case.attrs, from, case.to, &args) {
                    assert!(
                        close(case, found, expected),
                        "{} on {target}, element {i}: {args:x?} gives {found:#x}, expected {expected:#x}\n{ptx}",
                        func.name
                    );
                }
            }
        }
    }
}

/// Kernels to be assembled together: starting the assembler costs more than a kernel.
#[derive(Default)]
pub(super) struct Batch {
    texts: [(Option<PtxVersion>, String); Target::ALL.len()],
}

impl Batch {
    pub(super) fn add(&mut self, target: Target, version: PtxVersion, ptx: &str) {
        let place = Target::ALL
            .iter()
            .position(|&t| t == target)
            .expect("a known target");
        let (newest, text) = &mut self.texts[place];
        *newest = (*newest).max(Some(version));
        let shared = ptx.lines().find(|line| line.starts_with(".extern"));
        if let Some(line) = shared.filter(|line| !text.contains(*line)) {
            text.push_str(line);
            text.push('\n');
        }
        // `isa/cmp.isle` says what ptxas makes of it.
        assert!(!ptx.contains("selp.b16"), "{ptx}");
        let start = ptx.find(".visible").expect("every kernel has an entry");
        text.push_str(&ptx[start..]);
    }

    /// Assembles what was added. Only whether it is accepted matters, so nothing is optimised.
    pub(super) fn assemble(self) {
        std::thread::scope(|scope| {
            for (target, (version, text)) in Target::ALL.into_iter().zip(self.texts) {
                scope.spawn(move || {
                    if let Some(version) = version {
                        let module = format!(
                            ".version {version}\n.target {target}\n.address_size 64\n{text}"
                        );
                        ptxas::assemble_with(&module, &target.to_string(), &["-O0"]);
                    }
                });
            }
        });
    }
}

fn cases() -> Vec<Case> {
    use Scalar::{Bf16, F16, F32, F64, I1, I8, I16, I32, I64};
    use ThreadOp as Op;
    let mut cases = Vec::new();
    let ints = [I8, I16, I32, I64];
    let floats = [F16, Bf16, F32, F64];
    for s in ints {
        for op in [
            Op::Iadd,
            Op::Isub,
            Op::Imul,
            Op::Sdiv,
            Op::Udiv,
            Op::Srem,
            Op::Urem,
            Op::Smin,
            Op::Smax,
            Op::Umin,
            Op::Umax,
            Op::Smulhi,
            Op::Umulhi,
            Op::And,
            Op::Or,
            Op::Xor,
            Op::Shl,
            Op::Sshr,
            Op::Ushr,
        ] {
            cases.push(Case::new(op, &[], &[s, s], s));
            // As immediates, and for shifts within and beyond the width.
            for bits in [3, u64::MAX >> (64 - s.bits())] {
                cases.push(Case {
                    constant: Some((1, bits)),
                    ..Case::new(op, &[], &[s, s], s)
                });
            }
            cases.push(Case {
                constant: Some((0, 5)),
                ..Case::new(op, &[], &[s, s], s)
            });
        }
        // Powers of two, up to the largest that is positive and the one that is not.
        for op in [Op::Sdiv, Op::Srem] {
            for exponent in [1, 4, s.bits() - 2, s.bits() - 1] {
                cases.push(Case {
                    constant: Some((1, 1 << exponent)),
                    ..Case::new(op, &[], &[s, s], s)
                });
            }
        }
    }
    for s in ints {
        for op in [Op::Iabs, Op::Popc, Op::Clz, Op::Brev] {
            cases.push(Case::new(op, &[], &[s], s));
        }
    }
    cases.push(Case::new(Op::BytePerm, &[], &[I32, I32, I32], I32));
    for op in [Op::And, Op::Or, Op::Xor] {
        cases.push(Case::new(op, &[], &[I1, I1], I1));
        cases.push(Case {
            constant: Some((1, 1)),
            ..Case::new(op, &[], &[I1, I1], I1)
        });
    }
    for s in [I1, I8, I16, I32, I64] {
        for &pred in IntPred::ALL {
            cases.push(Case::new(Op::Icmp, &[make::ipred(pred)], &[s, s], I1));
        }
        cases.push(Case {
            constant: Some((1, 1)),
            ..Case::new(Op::Icmp, &[make::ipred(IntPred::Slt)], &[s, s], I1)
        });
    }
    for s in floats {
        for op in [Op::Fadd, Op::Fsub, Op::Fmul] {
            cases.push(Case::new(op, &[], &[s, s], s));
            let one = match s {
                F16 => 0x3c00,
                Bf16 => 0x3f80,
                F32 => 0x3f80_0000,
                _ => 0x3ff0_0000_0000_0000,
            };
            cases.push(Case {
                constant: Some((1, one)),
                ..Case::new(op, &[], &[s, s], s)
            });
        }
        cases.push(Case::new(Op::Fma, &[], &[s, s, s], s));
        for op in [Op::Fneg, Op::Fabs] {
            cases.push(Case::new(op, &[], &[s], s));
        }
        cases.push(Case::new(Op::Copysign, &[], &[s, s], s));
        for &rule in NanRule::ALL {
            for op in [Op::Fmin, Op::Fmax] {
                cases.push(Case::new(op, &[make::nan(rule)], &[s, s], s));
            }
        }
        for &pred in FloatPred::ALL {
            cases.push(Case::new(Op::Fcmp, &[make::fpred(pred)], &[s, s], I1));
        }
        for to in ints {
            cases.push(Case::new(Op::Fptosi, &[], &[s], to));
            cases.push(Case::new(Op::Fptoui, &[], &[s], to));
        }
        for from in [I1, I8, I16, I32, I64] {
            cases.push(Case::new(Op::Sitofp, &[], &[from], s));
            cases.push(Case::new(Op::Uitofp, &[], &[from], s));
        }
        for to in floats {
            if s.bits() < to.bits() {
                cases.push(Case::new(Op::Fpext, &[], &[s], to));
                for &round in Rounding::ALL {
                    cases.push(Case::new(Op::Fptrunc, &[make::round(round)], &[to], s));
                }
            }
        }
    }
    for s in [F32, F64] {
        for op in [Op::Floor, Op::Ceil, Op::Rint, Op::Trunc, Op::SqrtRn] {
            cases.push(Case::new(op, &[], &[s], s));
        }
        cases.push(Case::new(Op::FdivRn, &[], &[s, s], s));
    }
    // The bounds of the op table; the emulator rounds correctly, so one unit is for the reference's own rounding.
    for op in [Op::Exp2, Op::Rsqrt, Op::Sqrt, Op::Rcp, Op::RcpFtz] {
        cases.push(Case {
            ulps: 2,
            ..Case::new(op, &[], &[F32], F32)
        });
    }
    cases.push(Case::new(Op::Sqrt, &[], &[F64], F64));
    for op in [Op::Log2Approx, Op::SinApprox, Op::CosApprox] {
        cases.push(Case {
            ulps: 4,
            ..Case::new(op, &[], &[F32], F32)
        });
    }
    for eight in [Scalar::F8E4M3, Scalar::F8E5M2] {
        for op in [Op::Fneg, Op::Fabs] {
            cases.push(Case::new(op, &[], &[eight], eight));
        }
        cases.push(Case::new(Op::Copysign, &[], &[eight, eight], eight));
        let nearest = [make::round(Rounding::Nearest)];
        cases.push(Case::new(Op::Fptrunc, &nearest, &[F32], eight));
        cases.push(Case::new(Op::Fpext, &[], &[eight], F16));
    }
    cases.push(Case {
        ulps: 2,
        ..Case::new(Op::Fdiv, &[], &[F32, F32], F32)
    });
    for from in [I1, I8, I16, I32, I64] {
        for to in [I1, I8, I16, I32, I64] {
            if from.bits() < to.bits() {
                cases.push(Case::new(Op::Sext, &[], &[from], to));
                cases.push(Case::new(Op::Zext, &[], &[from], to));
                cases.push(Case::new(Op::Itrunc, &[], &[to], from));
            }
        }
    }
    for s in [I1, I8, I16, I32, I64, F16, Bf16, F32, F64] {
        cases.push(Case::new(Op::Select, &[], &[I1, s, s], s));
        cases.push(Case {
            constant: Some((2, 1)),
            ..Case::new(Op::Select, &[], &[I1, s, s], s)
        });
    }
    for (from, to) in [
        (I32, F32),
        (F32, I32),
        (I64, F64),
        (I16, F16),
        (F16, Bf16),
        (Bf16, I16),
        (I8, Scalar::F8E4M3),
    ] {
        cases.push(Case::new(Op::Bitcast, &[], &[from], to));
    }
    cases
}

#[test]
fn every_op_on_every_type() {
    let mut random = Random(1);
    let mut batch = Batch::default();
    for (number, case) in cases().iter().enumerate() {
        check(case, number, &mut batch, &mut random);
    }
    super::forms::check_all(&mut batch, &mut random);
    batch.assemble();
    let silent = coverage::never_fired();
    assert!(silent.is_empty(), "rules that no test reaches: {silent:#?}");
}

/// The combination of the lanes' numbers.
pub(super) fn fold(op: RedOp, numbers: &[u32]) -> u32 {
    let combine = |a: u32, b: u32| match op {
        RedOp::Add => a.wrapping_add(b),
        RedOp::Smin => (a as i32).min(b as i32) as u32,
        RedOp::Smax => (a as i32).max(b as i32) as u32,
        RedOp::Umin => a.min(b),
        RedOp::Umax => a.max(b),
        RedOp::And => a & b,
        RedOp::Or => a | b,
        RedOp::Xor => a ^ b,
    };
    numbers.iter().copied().reduce(combine).unwrap_or(0)
}
