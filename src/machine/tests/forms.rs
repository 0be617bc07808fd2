//! Forms beyond single elementwise ops: addresses, masks, exchange, rearrangement, fused and folded instructions.

use super::ops::{Batch, Random, THREADS, fold, from_bytes, load_pack, run, store_pack, to_bytes};
use super::*;
use crate::ir::attrs::{Cache, Evict, Flag, IntPred, RedOp, make};
use crate::ir::entities::Value;
use crate::ir::function::SlotData;
use crate::ir::types::AddressSpace;

fn one(s: Scalar) -> ThreadType {
    ThreadType::scalar(Elem::Num(s))
}

fn pack(s: Scalar, count: u16) -> ThreadType {
    ThreadType::pack(Elem::Num(s), count)
}

/// What a kernel is made with.
struct Parts {
    /// Pointers to the inputs, and last to the output.
    pointers: Vec<Value>,
    tid: Value,
}

/// A test: inputs and output as arrays, and how the kernel is made.
struct Form<'a> {
    name: String,
    inputs: Vec<(Scalar, Vec<u64>)>,
    out: Scalar,
    expected: Vec<u64>,
    build: &'a dyn Fn(&mut ThreadBuilder, &Parts),
}

impl Form<'_> {
    fn check(&self, batch: &mut Batch) {
        let mut b = ThreadBuilder::new(self.name.clone(), 1);
        let scalars = self.inputs.iter().map(|(s, _)| *s).chain([self.out]);
        let pointers = (0..)
            .zip(scalars)
            .map(|(i, s)| {
                b.param_divisible(&format!("p{i}"), ThreadType::scalar(Elem::global(s)), 16)
            })
            .collect();
        let tid = b.special(SpecialReg::Tid);
        (self.build)(&mut b, &Parts { pointers, tid });
        b.ret();
        let func = b
            .finish()
            .unwrap_or_else(|e| panic!("{}: {e:?}", self.name));
        let inputs: Vec<Vec<u8>> = self.inputs.iter().map(|(s, e)| to_bytes(*s, e)).collect();
        for target in Target::ALL {
            let (ptx, version, _) = compile_thread(&func, target, &Options::DEFAULT)
                .unwrap_or_else(|e| panic!("{}: {e}", self.name));
            batch.add(target, version, &ptx);
            let out = run(
                &ptx,
                &self.name,
                &inputs,
                self.expected.len() * self.out.bytes() as usize,
            );
            assert_eq!(
                from_bytes(self.out, &out),
                self.expected,
                "{} on {target}\n{ptx}",
                self.name
            );
        }
    }
}

fn mask(s: Scalar) -> u64 {
    u64::MAX >> (64 - s.bits())
}

fn numbers(s: Scalar, n: usize, random: &mut Random) -> Vec<u64> {
    (0..n).map(|_| random.next() & mask(s)).collect()
}

/// Compiles, runs and compares them.
pub(super) fn check_all(batch: &mut Batch, random: &mut Random) {
    fused(batch, random);
    negated(batch, random);
    addresses(batch, random);
    masked(batch, random);
    exchange(batch, random);
    rearranged(batch, random);
    uniform(batch, random);
    recast(batch, random);
    joined_bits(batch, random);
    shifted_bits(batch, random);
    shared_memory(batch, random);
}

/// Bits that are taken out by one number and joined by those of another.
fn joined_bits(batch: &mut Batch, random: &mut Random) {
    for (s, count) in [(Scalar::I32, 1), (Scalar::I16, 2)] {
        let [kept, set] = [0x0f0f_0f0f, 0x6440_6440].map(|bits| bits & mask(s));
        let data = numbers(s, usize::from(count) * THREADS, random);
        Form {
            name: format!("joined_bits_{count}"),
            inputs: vec![(s, data.clone())],
            out: s,
            expected: data.iter().map(|x| x & kept | set).collect(),
            build: &|k, parts| {
                let each = k.const_bits(u64::from(count), one(Scalar::I32));
                let i = k.imul(parts.tid, each);
                let x = load_pack(k, parts.pointers[0], i, s, count);
                let [kept, set] = [kept, set].map(|bits| k.const_bits(bits, pack(s, count)));
                let left = k.and(x, kept);
                let joined = k.or(left, set);
                store_pack(k, parts.pointers[1], i, s, count, joined);
            },
        }
        .check(batch);
    }
}

/// Bits of two halves that were shifted together: of each half alone, and such that the other half has shifted in.
fn shifted_bits(batch: &mut Batch, random: &mut Random) {
    let s = Scalar::I16;
    let data = numbers(s, 2 * THREADS, random);
    for (is_left, kept) in [
        (true, 0x1f0),
        (true, 0x1f8),
        (false, 0xfff),
        (false, 0x1fff),
    ] {
        for set in [None, Some(0x2004)] {
            let moved = |x: u64| if is_left { x << 4 } else { x >> 4 };
            let expected = data.iter().map(|&x| moved(x) & kept | set.unwrap_or(0));
            Form {
                name: format!("shifted_bits_{is_left}_{kept}_{}", set.is_some()),
                inputs: vec![(s, data.clone())],
                out: s,
                expected: expected.collect(),
                build: &|k, parts| {
                    let each = k.const_bits(2, one(Scalar::I32));
                    let i = k.imul(parts.tid, each);
                    let x = load_pack(k, parts.pointers[0], i, s, 2);
                    let [amount, kept] = [4, kept].map(|bits| k.const_bits(bits, pack(s, 2)));
                    let moved = match is_left {
                        true => k.shl(x, amount),
                        false => k.ushr(x, amount),
                    };
                    let mut found = k.and(moved, kept);
                    if let Some(set) = set {
                        let set = k.const_bits(set, pack(s, 2));
                        found = k.or(found, set);
                    }
                    store_pack(k, parts.pointers[1], i, s, 2, found);
                },
            }
            .check(batch);
        }
    }
}

/// A sign that sums and products alone read is theirs; one that is stored changes a bit, of NaN too.
fn negated(batch: &mut Batch, random: &mut Random) {
    let [mut a, b, c] = [0; 3].map(|_| numbers(Scalar::F32, 64, random));
    a[5] = 0x7f80_0001;
    for stored in [false, true] {
        let number = |x: u64| f32::from_bits(x as u32);
        let result = |i: usize| {
            let sum = (-number(a[i])).mul_add(number(b[i]), number(c[i]));
            let bits = if sum.is_nan() {
                0x7fff_ffff
            } else {
                sum.to_bits()
            };
            match stored {
                true => [u64::from(bits), a[i] ^ 0x8000_0000],
                false => [u64::from(bits); 2],
            }
        };
        Form {
            name: format!("negated_{stored}"),
            inputs: [&a, &b, &c].map(|x| (Scalar::F32, x.clone())).to_vec(),
            out: Scalar::F32,
            expected: (0..THREADS).flat_map(result).collect(),
            build: &|k, parts| {
                let [x, y, z] =
                    [0, 1, 2].map(|p| load_pack(k, parts.pointers[p], parts.tid, Scalar::F32, 1));
                let negated = k.fneg(x);
                let sum = k.fma(negated, y, z);
                let two = k.const_bits(2, one(Scalar::I32));
                let one = k.const_bits(1, one(Scalar::I32));
                let at = k.imul(parts.tid, two);
                store_pack(k, parts.pointers[3], at, Scalar::F32, 1, sum);
                let at = k.iadd(at, one);
                let second = if stored { negated } else { sum };
                store_pack(k, parts.pointers[3], at, Scalar::F32, 1, second);
            },
        }
        .check(batch);
    }
}

fn fused(batch: &mut Batch, random: &mut Random) {
    let (a, b, c) = (
        numbers(Scalar::I32, 64, random),
        numbers(Scalar::I32, 64, random),
        numbers(Scalar::I32, 64, random),
    );
    for product_first in [true, false] {
        let expected = (0..64)
            .map(|i| a[i].wrapping_mul(b[i]).wrapping_add(c[i]) & mask(Scalar::I32))
            .collect();
        Form {
            name: format!("mad_{product_first}"),
            inputs: [&a, &b, &c].map(|x| (Scalar::I32, x.clone())).to_vec(),
            out: Scalar::I32,
            expected,
            build: &|k, parts| {
                let two = k.const_bits(2, one(Scalar::I32));
                let i = k.imul(parts.tid, two);
                let [x, y, z] =
                    [0, 1, 2].map(|p| load_pack(k, parts.pointers[p], i, Scalar::I32, 2));
                let product = k.imul(x, y);
                let sum = if product_first {
                    k.iadd(product, z)
                } else {
                    k.iadd(z, product)
                };
                store_pack(k, parts.pointers[3], i, Scalar::I32, 2, sum);
            },
        }
        .check(batch);
    }
    let signed = |x: u64| i64::from(x as u32 as i32);
    Form {
        name: "mul_wide".into(),
        inputs: [&a, &b].map(|x| (Scalar::I32, x.clone())).to_vec(),
        out: Scalar::I64,
        expected: (0..THREADS)
            .map(|i| (signed(a[i]) * signed(b[i])) as u64)
            .collect(),
        build: &|k, parts| {
            let [x, y] = [0, 1].map(|p| load_pack(k, parts.pointers[p], parts.tid, Scalar::I32, 1));
            let (x, y) = (k.sext(x, one(Scalar::I64)), k.sext(y, one(Scalar::I64)));
            let product = k.imul(x, y);
            store_pack(k, parts.pointers[2], parts.tid, Scalar::I64, 1, product);
        },
    }
    .check(batch);
    let negated = |x: u64| (x as u32 as i32).wrapping_neg();
    for (name, product) in [("max_negated", false), ("max_times_minus_one", true)] {
        Form {
            name: name.into(),
            inputs: [&a, &b].map(|x| (Scalar::I32, x.clone())).to_vec(),
            out: Scalar::I32,
            expected: (0..THREADS)
                .map(|i| u64::from((a[i] as u32 as i32).max(negated(b[i])) as u32))
                .collect(),
            build: &|k, parts| {
                let [x, y] =
                    [0, 1].map(|p| load_pack(k, parts.pointers[p], parts.tid, Scalar::I32, 1));
                let y = if product {
                    let minus_one = k.const_bits(0xffff_ffff, one(Scalar::I32));
                    k.imul(y, minus_one)
                } else {
                    let zero = k.const_bits(0, one(Scalar::I32));
                    k.isub(zero, y)
                };
                let greater = k.smax(x, y);
                store_pack(k, parts.pointers[2], parts.tid, Scalar::I32, 1, greater);
            },
        }
        .check(batch);
    }
}

/// Pointers moved by indices of every kind; element `i` of the output is element `i + 3` of the input.
fn addresses(batch: &mut Batch, random: &mut Random) {
    for s in [Scalar::I8, Scalar::I32] {
        let data = numbers(s, THREADS + 8, random);
        for how in ["i32", "i64", "sext", "const32", "const64", "offset"] {
            Form {
                name: format!("addptr_{s}_{how}"),
                inputs: vec![(s, data.clone())],
                out: s,
                expected: data[3..3 + THREADS].to_vec(),
                build: &|k, parts| {
                    let i32s = one(Scalar::I32);
                    let i64s = one(Scalar::I64);
                    let base = parts.pointers[0];
                    let mut offset = 0;
                    let p = match how {
                        "i32" => {
                            let three = k.const_bits(3, i32s);
                            let i = k.iadd(parts.tid, three);
                            k.addptr(base, i)
                        }
                        "i64" => {
                            let wide = k.zext(parts.tid, i64s);
                            let three = k.const_bits(3, i64s);
                            let i = k.iadd(wide, three);
                            k.addptr(base, i)
                        }
                        "sext" => {
                            let three = k.const_bits(3, i32s);
                            let i = k.iadd(parts.tid, three);
                            let wide = k.sext(i, i64s);
                            k.addptr(base, wide)
                        }
                        "const32" | "const64" => {
                            let p = k.addptr(base, parts.tid);
                            let ty = if how == "const32" { i32s } else { i64s };
                            let far = k.const_bits(7, ty);
                            let back = k.const_bits(-4_i64 as u64, ty);
                            let p = k.addptr(p, far);
                            k.addptr(p, back)
                        }
                        _ => {
                            offset = 3 * s.bytes() as i32;
                            k.addptr(base, parts.tid)
                        }
                    };
                    let x = k.ld(p, None, None, one(s));
                    if offset != 0 {
                        k.with(make::offset(offset));
                    }
                    // The pointer itself is an operand too, so that its own instruction is made.
                    let moved = k.ptr_cast(p, i64s);
                    let again = k.ptr_cast(moved, ThreadType::scalar(Elem::global(s)));
                    let y = k.ld(again, None, None, one(s));
                    if offset != 0 {
                        k.with(make::offset(offset));
                    }
                    let both = k.and(x, y);
                    store_pack(k, parts.pointers[1], parts.tid, s, 1, both);
                },
            }
            .check(batch);
        }
    }
}

/// Loads and stores under a mask, with every kind of `other`. Masked-off lanes have bad addresses.
fn masked(batch: &mut Batch, random: &mut Random) {
    let types = [
        (Scalar::I32, 4),
        (Scalar::I32, 1),
        (Scalar::F16, 1),
        (Scalar::F16, 2),
        (Scalar::Bf16, 8),
        (Scalar::I64, 2),
        (Scalar::I8, 1),
        (Scalar::I8, 2),
        (Scalar::I8, 4),
        (Scalar::I8, 16),
        (Scalar::I1, 1),
        (Scalar::I1, 4),
    ];
    for (s, count) in types {
        let n = THREADS * usize::from(count);
        let (data, others) = (numbers(s, n, random), numbers(s, n, random));
        for other in ["none", "const", "value", "all", "nothing"] {
            let bits = 0x5a5a_5a5b_5a5a_5a5b & mask(s);
            let expected = (0..n)
                .map(|i| {
                    let on = (i / usize::from(count)) % 3 != 0;
                    match other {
                        "all" => data[i],
                        "none" | "nothing" if !on || other == "nothing" => 0,
                        "const" if !on => bits,
                        "value" if !on => others[i],
                        _ => data[i],
                    }
                })
                .collect();
            Form {
                name: format!("masked_{s}_{count}_{other}"),
                inputs: vec![(s, data.clone()), (s, others.clone())],
                out: s,
                expected,
                build: &|k, parts| {
                    let i32s = one(Scalar::I32);
                    let per_thread = k.const_bits(u64::from(count), i32s);
                    let i = k.imul(parts.tid, per_thread);
                    let three = k.const_bits(3, i32s);
                    let rest = k.urem(parts.tid, three);
                    let zero = k.const_bits(0, i32s);
                    let on = k.icmp(rest, zero, IntPred::Ne);
                    let far = k.const_bits(1 << 28, i32s);
                    let index = if other == "all" {
                        i
                    } else {
                        k.select(on, i, far)
                    };
                    let pred = match other {
                        "all" => k.const_bits(1, one(Scalar::I1)),
                        "nothing" => k.const_bits(0, one(Scalar::I1)),
                        _ => on,
                    };
                    let fallback = match other {
                        "const" => Some(k.const_bits(bits, pack(s, count))),
                        "value" => Some(load_pack(k, parts.pointers[1], i, s, count)),
                        _ => None,
                    };
                    let p = k.addptr(parts.pointers[0], index);
                    let x = k.ld(p, Some(pred), fallback, pack(s, count));
                    let p = k.addptr(parts.pointers[2], i);
                    // What is on and what is off are written apart.
                    let truth = k.const_bits(1, one(Scalar::I1));
                    let off = k.xor(on, truth);
                    k.st(p, x, Some(on));
                    k.st(p, x, Some(off));
                    let never = k.const_bits(0, one(Scalar::I1));
                    k.st(p, x, Some(never));
                },
            }
            .check(batch);
        }
    }
}

fn exchange(batch: &mut Batch, random: &mut Random) {
    let all = [
        (Scalar::I8, 4),
        (Scalar::F16, 1),
        (Scalar::F16, 4),
        (Scalar::F32, 2),
        (Scalar::I64, 1),
        (Scalar::F64, 2),
    ];
    for (s, count) in all {
        let each = usize::from(count);
        let data = numbers(s, THREADS * each, random);
        for how in ["bfly", "idx", "up", "down"] {
            let source = |lane: usize| match how {
                "idx" => (5 * lane + 3) % 32,
                "up" => lane.checked_sub(3).unwrap_or(lane),
                "down" if lane + 9 > 31 => lane,
                "down" => lane + 9,
                _ => lane ^ 11,
            };
            Form {
                name: format!("shfl_{how}_{s}_{count}"),
                inputs: vec![(s, data.clone())],
                out: s,
                expected: (0..THREADS * each)
                    .map(|i| data[source(i / each) * each + i % each])
                    .collect(),
                build: &|k, parts| {
                    let i32s = one(Scalar::I32);
                    let per_thread = k.const_bits(u64::from(count), i32s);
                    let i = k.imul(parts.tid, per_thread);
                    let x = load_pack(k, parts.pointers[0], i, s, count);
                    let y = match how {
                        "idx" => {
                            let (five, three) = (k.const_bits(5, i32s), k.const_bits(3, i32s));
                            let lane = k.special(SpecialReg::Lane);
                            let lane = k.imul(lane, five);
                            let lane = k.iadd(lane, three);
                            k.shfl_idx(x, lane)
                        }
                        "up" => k.shfl_up(x, 3),
                        "down" => k.shfl_down(x, 9),
                        _ => k.shfl_bfly(x, 11),
                    };
                    store_pack(k, parts.pointers[1], i, s, count, y);
                },
            }
            .check(batch);
        }
    }
    let data = numbers(Scalar::I32, 2 * THREADS, random);
    for &op in RedOp::ALL {
        let lane_numbers = |j: usize| {
            (0..THREADS)
                .map(|i| data[2 * i + j] as u32)
                .collect::<Vec<u32>>()
        };
        let expected = [0, 1].map(|j| u64::from(fold(op, &lane_numbers(j))));
        Form {
            name: format!("redux_{}", op.name()),
            inputs: vec![(Scalar::I32, data.clone())],
            out: Scalar::I32,
            expected: expected.repeat(THREADS),
            build: &|k, parts| {
                let two = k.const_bits(2, one(Scalar::I32));
                let i = k.imul(parts.tid, two);
                let x = load_pack(k, parts.pointers[0], i, Scalar::I32, 2);
                let y = k.redux(x, op);
                store_pack(k, parts.pointers[1], i, Scalar::I32, 2, y);
            },
        }
        .check(batch);
    }
}

fn rearranged(batch: &mut Batch, random: &mut Random) {
    let maps: [&[u32]; 8] = [
        &[7, 6, 5, 4, 3, 2, 1, 0],
        &[0, 2, 4, 6],
        &[4, 5, 6, 7],
        &[3],
        &[1, 1, 1, 1, 6, 6, 6, 6],
        &[2, 3, 0, 1, 6, 7, 4, 5],
        // From the second operand, a constant, too.
        &[0, 8, 9, 1],
        &[8, 9],
    ];
    for s in [Scalar::I8, Scalar::F16, Scalar::I32, Scalar::F64] {
        let data = numbers(s, 8 * THREADS, random);
        let constant = 0x1234_5678_9abc_def0 & mask(s);
        for (number, map) in maps.iter().enumerate() {
            let count = map.len() as u16;
            let expected = (0..THREADS)
                .flat_map(|t| map.iter().map(move |&m| (t, m as usize)))
                .map(|(t, m)| if m < 8 { data[8 * t + m] } else { constant })
                .collect();
            Form {
                name: format!("rearrange_{s}_{number}"),
                inputs: vec![(s, data.clone())],
                out: s,
                expected,
                build: &|k, parts| {
                    let i32s = one(Scalar::I32);
                    let (eight, n) = (k.const_bits(8, i32s), k.const_bits(u64::from(count), i32s));
                    let i = k.imul(parts.tid, eight);
                    let x = load_pack(k, parts.pointers[0], i, s, 8);
                    let c = k.const_bits(constant, pack(s, 2));
                    let y = k.rearrange(&[x, c], map.iter().copied().collect(), pack(s, count));
                    let i = k.imul(parts.tid, n);
                    store_pack(k, parts.pointers[1], i, s, count, y);
                },
            }
            .check(batch);
        }
        // Scalars put together, and a scalar taken as it is.
        let expected = (0..THREADS)
            .flat_map(|t| [data[8 * t], data[8 * t + 5], data[8 * t + 5], data[8 * t]])
            .collect();
        Form {
            name: format!("rearrange_scalars_{s}"),
            inputs: vec![(s, data.clone())],
            out: s,
            expected,
            build: &|k, parts| {
                let i32s = one(Scalar::I32);
                let (eight, four) = (k.const_bits(8, i32s), k.const_bits(4, i32s));
                let i = k.imul(parts.tid, eight);
                let x = load_pack(k, parts.pointers[0], i, s, 8);
                let first = k.rearrange(&[x], [0].into_iter().collect(), one(s));
                let other = k.rearrange(&[x], [5].into_iter().collect(), one(s));
                let y = k.rearrange(
                    &[first, other],
                    [0, 1, 1, 0].into_iter().collect(),
                    pack(s, 4),
                );
                let i = k.imul(parts.tid, four);
                store_pack(k, parts.pointers[1], i, s, 4, y);
            },
        }
        .check(batch);
    }
}

/// One register for all elements of a pack.
fn uniform(batch: &mut Batch, random: &mut Random) {
    for s in [Scalar::I8, Scalar::I16, Scalar::I32] {
        let data = numbers(s, 4 * THREADS, random);
        let expected = (0..4 * THREADS)
            .map(|i| {
                let t = i / 4;
                let first = data[4 * t];
                if t % 2 == 1 { data[i] ^ first } else { first }
            })
            .collect();
        Form {
            name: format!("uniform_{s}"),
            inputs: vec![(s, data.clone())],
            out: s,
            expected,
            build: &|k, parts| {
                let i32s = one(Scalar::I32);
                let four = k.const_bits(4, i32s);
                let i = k.imul(parts.tid, four);
                let x = load_pack(k, parts.pointers[0], i, s, 4);
                let first = k.rearrange(&[x], [0].into_iter().collect(), one(s));
                let first = k.splat(first, pack(s, 4));
                let odd = k.itrunc(parts.tid, one(Scalar::I1));
                let odd = k.splat(odd, pack(Scalar::I1, 4));
                let changed = k.xor(x, first);
                let y = k.select(odd, changed, first);
                store_pack(k, parts.pointers[1], i, s, 4, y);
            },
        }
        .check(batch);
    }
}

/// Floats whose bits are compared as whole numbers.
fn recast(batch: &mut Batch, random: &mut Random) {
    let mut data = numbers(Scalar::F32, 2 * THREADS, random);
    for t in (0..THREADS).step_by(3) {
        data[2 * t] = data[2 * t + 1];
    }
    let signed = |bits: u64| bits as u32 as i32;
    type Holds = fn(u64, u64) -> bool;
    let preds: [(IntPred, Holds); 6] = [
        (IntPred::Eq, |x, y| x == y),
        (IntPred::Ne, |x, y| x != y),
        (IntPred::Ule, |x, y| x <= y),
        (IntPred::Ugt, |x, y| x > y),
        (IntPred::Slt, |x, y| (x as i32) < y as i32),
        (IntPred::Sge, |x, y| x as i32 >= y as i32),
    ];
    for (pred, holds) in preds {
        let expected = (0..THREADS)
            .map(|t| {
                let (x, y) = (data[2 * t], data[2 * t + 1]);
                u64::from(holds(x, y)) + 2 * u64::from(signed(x) < 3)
            })
            .collect();
        Form {
            name: format!("recast_{pred:?}"),
            inputs: vec![(Scalar::F32, data.clone())],
            out: Scalar::I32,
            expected,
            build: &|k, parts| {
                let i32s = one(Scalar::I32);
                let two = k.const_bits(2, i32s);
                let i = k.imul(parts.tid, two);
                let x = load_pack(k, parts.pointers[0], i, Scalar::F32, 2);
                let bits = k.bitcast(x, pack(Scalar::I32, 2));
                let [x, y] =
                    [0, 1].map(|at| k.rearrange(&[bits], [at].into_iter().collect(), i32s));
                let three = k.const_bits(3, i32s);
                let (first, second) = (k.icmp(x, y, pred), k.icmp(x, three, IntPred::Slt));
                let (first, second) = (k.zext(first, i32s), k.zext(second, i32s));
                let second = k.imul(second, two);
                let both = k.iadd(first, second);
                store_pack(k, parts.pointers[1], parts.tid, Scalar::I32, 1, both);
            },
        }
        .check(batch);
    }
}

/// Shared memory: each thread writes its element and reads that of another.
fn shared_memory(batch: &mut Batch, random: &mut Random) {
    let s = Scalar::I32;
    let data = numbers(s, THREADS, random);
    for wide in [false, true] {
        Form {
            name: format!("shared_{wide}"),
            inputs: vec![(s, data.clone())],
            out: s,
            expected: (0..THREADS)
                .map(|t| data[31 - t].wrapping_add(data[0]).wrapping_add(data[2]) & mask(s))
                .collect(),
            build: &|k, parts| {
                let slots = &mut k.func_mut().slots;
                slots.push(SlotData {
                    bytes: 64,
                    align: 16,
                    offset: Some(0),
                    by_group: false,
                });
                let slot = slots.push(SlotData {
                    bytes: 128,
                    align: 16,
                    offset: Some(64),
                    by_group: false,
                });
                let i32s = one(Scalar::I32);
                let shared = ThreadType::scalar(Elem::Ptr(s, AddressSpace::Shared));
                let x = load_pack(k, parts.pointers[0], parts.tid, s, 1);
                let base = k.slot_addr(slot, shared);
                let p = k.addptr(base, parts.tid);
                k.st(p, x, None);
                k.barrier(0, 32);
                let last = k.const_bits(31, i32s);
                let mut other = k.isub(last, parts.tid);
                if wide {
                    other = k.sext(other, one(Scalar::I64));
                }
                let p = k.addptr(base, other);
                let y = k.ld(p, None, None, one(s));
                // Known places, through the buffer's own address.
                let first = k.ld(base, None, None, one(s));
                let two = k.const_bits(2, i32s);
                let third = k.addptr(base, two);
                let third_value = k.ld(third, None, None, one(s));
                k.barrier(1, 32);
                let sum = k.iadd(y, first);
                let sum = k.iadd(sum, third_value);
                let unfolded = k.ptr_cast(
                    third,
                    ThreadType::scalar(Elem::Ptr(Scalar::F32, AddressSpace::Shared)),
                );
                let again = k.ld(unfolded, None, None, one(Scalar::F32));
                let again = k.bitcast(again, i32s);
                let zero = k.isub(third_value, again);
                let sum = k.iadd(sum, zero);
                store_pack(k, parts.pointers[1], parts.tid, s, 1, sum);
            },
        }
        .check(batch);
    }
}

#[test]
fn modifiers_of_accesses() {
    let mut b = ThreadBuilder::new("hints", 2);
    let ptr = ThreadType::scalar(Elem::global(Scalar::F32));
    let p = b.param_divisible("p", ptr, 16);
    let ty = pack(Scalar::F32, 4);
    let mut sum = b.const_bits(0, ty);
    for attr in [
        make::cache(Cache::All),
        make::cache(Cache::Global),
        make::cache(Cache::Streaming),
        make::cache(Cache::Volatile),
        make::evict(Evict::First),
        make::evict(Evict::Last),
        make::volatile(Flag),
    ] {
        let x = b.ld(p, None, None, ty);
        b.with(attr);
        sum = b.fadd(sum, x);
    }
    for attr in [
        make::cache(Cache::WriteBack),
        make::cache(Cache::WriteThrough),
        make::cache(Cache::Streaming),
        make::evict(Evict::First),
    ] {
        b.st(p, sum, None);
        b.with(attr);
    }
    b.barrier(3, 32);
    b.ret();
    let func = b.finish().expect("the kernel is valid");
    for target in Target::ALL {
        let ptx = compile(&func, target);
        // Eviction priorities came with PTX 7.4; a newer target brings its own version.
        let version = target.min_ptx().max(PtxVersion { major: 7, minor: 4 });
        assert!(ptx.starts_with(&format!(".version {version}\n")), "{ptx}");
        // From sm_80 on the L2 cache hears of priorities as well.
        let hint = if target.sm < 80 {
            ""
        } else {
            ".L2::cache_hint"
        };
        let priorities = [
            format!("ld.global.L1::evict_first{hint}.v4.b32"),
            format!("ld.global.L1::evict_last{hint}.v4.b32"),
            format!("st.global.L1::evict_first{hint}.v4.b32"),
        ];
        for text in &priorities {
            assert!(ptx.contains(text), "{text} is missing:\n{ptx}");
        }
        for text in [
            "ld.global.ca.v4.b32",
            "ld.global.cg.v4.b32",
            "ld.global.cs.v4.b32",
            "ld.global.cv.v4.b32",
            "ld.volatile.global.v4.b32",
            "st.global.wb.v4.b32",
            "st.global.wt.v4.b32",
            "st.global.cs.v4.b32",
            "bar.sync 3, 32;",
        ] {
            assert!(ptx.contains(text), "{text} is missing:\n{ptx}");
        }
    }
}
