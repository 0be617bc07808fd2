//! Random kernels, valid by construction: loops, branches, packs, rearrangements and masked loads.
//!
//! Each is compiled, its allocation proved, and run on the emulator against a plain interpretation of the thread IR.
//! Then its allocation is damaged: whatever the checker lets pass must still compute the same.

use super::ops::{Random, THREADS, load_pack, store_pack};
use super::reference::eval;
use super::*;
use crate::ir::attrs::{Attrs, IntPred};
use crate::ir::entities::{Block, Value};
use crate::ir::ops::ThreadOp;
use crate::ptx::module::write;
use crate::regalloc::check::check;

/// Kernels of the smoke test.
const CASES: u64 = 60;
/// Elements of the input array for each thread.
const INPUTS: usize = 16;
/// Bytes of output for each thread.
const OUT_BYTES: usize = 512;
/// Bytes of output for each value stored.
const STORED_BYTES: usize = 64;

/// Makes a kernel.
struct Maker {
    b: ThreadBuilder,
    random: Random,
    /// Values that may be used at the current place.
    known: Vec<Value>,
    input: Value,
    tid: Value,
}

const INTS: [Scalar; 4] = [Scalar::I8, Scalar::I16, Scalar::I32, Scalar::I64];
const I32: ThreadType = ThreadType {
    elem: Elem::I32,
    count: 1,
};

impl Maker {
    fn chance(&mut self, n: u64) -> bool {
        self.random.below(n) == 0
    }

    fn any(&mut self) -> Value {
        let i = self.random.below(self.known.len() as u64);
        self.known[i as usize]
    }

    /// A value of a type: a known one, or a constant.
    fn of(&mut self, ty: ThreadType) -> Value {
        let fits: Vec<Value> = self
            .known
            .iter()
            .copied()
            .filter(|&v| self.b.ty(v) == ty)
            .collect();
        if fits.is_empty() || self.chance(5) {
            let bits = self.random.next() >> self.random.below(64);
            return self.b.const_bits(bits, ty);
        }
        fits[self.random.below(fits.len() as u64) as usize]
    }

    fn step(&mut self) {
        let x = self.any();
        let ty = self.b.ty(x);
        let is_truth = ty.elem == Elem::I1;
        let scalar = ty.elem.scalar().unwrap_or(Scalar::I32);
        let made = match self.random.below(8) {
            0..3 if !is_truth => {
                let y = self.of(ty);
                match self.random.below(8) {
                    0 => self.b.iadd(x, y),
                    1 => self.b.isub(x, y),
                    2 => self.b.imul(x, y),
                    3 => self.b.smin(x, y),
                    4 => self.b.umax(x, y),
                    5 => self.b.shl(x, y),
                    6 => self.b.sshr(x, y),
                    _ => self.b.xor(x, y),
                }
            }
            0 | 3 if !is_truth => {
                let y = self.of(ty);
                let pred = IntPred::ALL[self.random.below(10) as usize];
                self.b.icmp(x, y, pred)
            }
            0..4 => {
                let y = self.of(ty);
                self.b.and(x, y)
            }
            4 => {
                let y = self.of(ty);
                let cond = self.of(ThreadType {
                    elem: Elem::I1,
                    ..ty
                });
                self.b.select(cond, x, y)
            }
            5 => {
                let count = [1, 1, 2, 4, 8][self.random.below(5) as usize];
                let y = self.of(ty);
                let sources = u64::from(2 * ty.count);
                let first = self.random.below(sources);
                let in_row = self.chance(2);
                let map = (0..count)
                    .map(|i| {
                        (if in_row {
                            (first + i) % sources
                        } else {
                            self.random.below(sources)
                        }) as u32
                    })
                    .collect();
                self.b
                    .rearrange(&[x, y], map, ThreadType::pack(ty.elem, count as u16))
            }
            6 if ty.count == 1 => {
                let count = [2, 4][self.random.below(2) as usize];
                self.b.splat(x, ThreadType::pack(ty.elem, count))
            }
            6 if !is_truth => {
                let index = self.random.below(INPUTS as u64 / 4);
                let index = self.b.const_bits(4 * index, I32);
                let per_thread = self.b.const_bits(INPUTS as u64, I32);
                let mine = self.b.imul(self.tid, per_thread);
                let index = self.b.iadd(mine, index);
                let p = self.b.addptr(self.input, index);
                let count = [1, 2, 4][self.random.below(3) as usize];
                let result = ThreadType::pack(Elem::I32, count);
                let pred = self.of(ThreadType::scalar(Elem::I1));
                let other = if self.chance(2) {
                    Some(self.of(result))
                } else {
                    None
                };
                self.b.ld(p, Some(pred), other, result)
            }
            _ => {
                let to = INTS[self.random.below(4) as usize];
                let given = ThreadType {
                    elem: Elem::Num(to),
                    ..ty
                };
                match to.bits().cmp(&scalar.bits()) {
                    std::cmp::Ordering::Less => self.b.itrunc(x, given),
                    std::cmp::Ordering::Equal => x,
                    std::cmp::Ordering::Greater if self.chance(2) => self.b.sext(x, given),
                    std::cmp::Ordering::Greater => self.b.zext(x, given),
                }
            }
        };
        self.known.push(made);
    }

    fn steps(&mut self, n: u64) {
        for _ in 0..self.random.below(n) + 1 {
            self.step();
        }
    }

    fn enter(&mut self, block: Block, params: &[Value]) {
        self.b.append_block(block);
        self.b.switch_to(block);
        self.known.extend_from_slice(params);
    }

    fn types(&mut self, n: u64) -> Vec<ThreadType> {
        (0..self.random.below(n))
            .map(|_| {
                let v = self.any();
                self.b.ty(v)
            })
            .collect()
    }

    fn pick(&mut self, types: &[ThreadType]) -> Vec<Value> {
        types.iter().map(|&ty| self.of(ty)).collect()
    }

    fn region(&mut self, depth: u32) {
        self.steps(6);
        if depth == 0 {
            return;
        }
        let outer = self.known.len();
        let types = self.types(5);
        let (exit, results) = self.b.new_block(&types);
        if self.chance(2) {
            let cond = self.of(ThreadType::scalar(Elem::I1));
            let (then, _) = self.b.new_block(&[]);
            let (otherwise, _) = self.b.new_block(&[]);
            // One side may be empty.
            let direct = self.chance(3);
            let args = self.pick(&types);
            let second: (Block, &[Value]) = if direct {
                (exit, &args)
            } else {
                (otherwise, &[])
            };
            self.b.brif(cond, (then, &[]), second);
            for side in if direct {
                vec![then]
            } else {
                vec![then, otherwise]
            } {
                self.enter(side, &[]);
                self.region(depth - 1);
                let args = self.pick(&types);
                self.b.jump(exit, &args);
                self.known.truncate(outer);
            }
        } else {
            let counted: Vec<ThreadType> = [I32].iter().chain(&types).copied().collect();
            let (header, params) = self.b.new_block(&counted);
            let mut args = self.pick(&types);
            let zero = self.b.const_bits(0, I32);
            args.insert(0, zero);
            self.b.jump(header, &args);
            self.enter(header, &params);
            self.region(depth - 1);
            let one = self.b.const_bits(1, I32);
            let next = self.b.iadd(params[0], one);
            let limit = self.b.const_bits(3, I32);
            let again = self.b.icmp(next, limit, IntPred::Slt);
            // Parameters in another order make cycles.
            let mut args = if self.chance(2) {
                self.pick(&types)
            } else {
                params[1..].to_vec()
            };
            for i in 0..args.len() {
                let j = self.random.below(args.len() as u64) as usize;
                if types[i] == types[j] {
                    args.swap(i, j);
                }
            }
            args.insert(0, next);
            let results = self.pick(&types);
            self.b.brif(again, (header, &args), (exit, &results));
            self.known.truncate(outer);
        }
        self.enter(exit, &results);
        self.steps(3);
    }
}

pub(super) fn make(seed: u64) -> ThreadFunction {
    let mut b = ThreadBuilder::new(format!("fuzz_{seed}"), 1);
    let input = b.param_divisible("input", ThreadType::scalar(Elem::global(Scalar::I32)), 16);
    let output = b.param_divisible("output", ThreadType::scalar(Elem::global(Scalar::I8)), 16);
    let tid = b.special(SpecialReg::Tid);
    let per_thread = b.const_bits(INPUTS as u64, I32);
    let i = b.imul(tid, per_thread);
    let x = load_pack(&mut b, input, i, Scalar::I32, 8);
    let y = b.itrunc(x, ThreadType::pack(Elem::I16, 8));
    let mut maker = Maker {
        b,
        random: Random(seed),
        known: vec![tid, x, y],
        input,
        tid,
    };
    for _ in 0..2 {
        maker.region(2);
    }
    let Maker { mut b, known, .. } = maker;
    let bytes = b.const_bits(OUT_BYTES as u64, I32);
    let mine = b.imul(tid, bytes);
    let mine = b.addptr(output, mine);
    for (place, &value) in (0..OUT_BYTES / STORED_BYTES).zip(known.iter().rev()) {
        let ty = b.ty(value);
        let elem = ty.elem.scalar().unwrap_or(Scalar::I32);
        let at = b.const_bits((place * STORED_BYTES) as u64, I32);
        let p = b.addptr(mine, at);
        let p = if elem == Scalar::I8 {
            p
        } else {
            b.ptr_cast(p, ThreadType::scalar(Elem::global(elem)))
        };
        let zero = b.const_bits(0, I32);
        store_pack(&mut b, p, zero, elem, ty.count, value);
    }
    b.ret();
    b.finish().unwrap_or_else(|e| panic!("seed {seed}: {e:?}"))
}

/// Runs one thread of a kernel of the thread IR; writes into `out`. Pointers are distances from the start of the
/// array they belong to.
fn interpret(func: &ThreadFunction, thread: u64, input: &[u32], out: &mut [u8]) {
    let dfg = &func.dfg;
    let mut values: Vec<Vec<u64>> = vec![vec![0]; dfg.values.len()];
    let mut block = func.entry;
    loop {
        let mut next = None;
        for &inst in func.order.insts(block) {
            let data = &dfg.insts[inst];
            let arg = |i: usize| &values[data.args[i].as_u32() as usize];
            let ty = data.results.first().map(|&v| dfg.ty(v));
            let count = ty.map_or(0, |t| usize::from(t.count));
            let result: Vec<u64> = match data.op {
                ThreadOp::Const => {
                    let bits = ty.map_or(64, |t| t.elem.bits());
                    vec![data.value().copied().unwrap_or(0) & u64::MAX >> (64 - bits); count]
                }
                ThreadOp::Special => vec![thread],
                ThreadOp::Splat => vec![arg(0)[0]; count],
                ThreadOp::PtrCast => arg(0).clone(),
                ThreadOp::Rearrange => {
                    let all: Vec<u64> = (0..data.args.len())
                        .flat_map(|i| arg(i).iter().copied())
                        .collect();
                    data.map()
                        .map_or(vec![], |m| m.iter().map(|&i| all[i as usize]).collect())
                }
                ThreadOp::Addptr => {
                    let bytes = dfg.ty(data.args[0]).elem.pointee().map_or(1, |s| s.bytes());
                    vec![
                        arg(0)[0]
                            .wrapping_add((arg(1)[0] as i32 as u64).wrapping_mul(u64::from(bytes))),
                    ]
                }
                ThreadOp::Ld => {
                    let on = data.args.get(1).is_none_or(|_| arg(1)[0] & 1 != 0);
                    let first =
                        (arg(0)[0] as i64 + i64::from(*data.offset().unwrap_or(&0))) as usize / 4;
                    match (on, data.args.len()) {
                        (true, _) => (first..first + count)
                            .map(|i| u64::from(input[i]))
                            .collect(),
                        (false, 3) => arg(2).clone(),
                        (false, _) => vec![0; count],
                    }
                }
                ThreadOp::St => {
                    let bytes = dfg.ty(data.args[1]).elem.bytes() as usize;
                    let first = arg(0)[0] as usize + *data.offset().unwrap_or(&0) as usize;
                    for (i, x) in arg(1).iter().enumerate() {
                        out[first + i * bytes..][..bytes]
                            .copy_from_slice(&x.to_le_bytes()[..bytes]);
                    }
                    vec![]
                }
                ThreadOp::Jump => {
                    next = Some(0);
                    vec![]
                }
                ThreadOp::Brif => {
                    next = Some(usize::from(arg(0)[0] & 1 == 0));
                    vec![]
                }
                ThreadOp::Return => return,
                op => {
                    let scalar = |v: Value| dfg.ty(v).elem.scalar().unwrap_or(Scalar::I32);
                    let from = scalar(data.args[usize::from(op == ThreadOp::Select)]);
                    let to = scalar(data.results[0]);
                    (0..count)
                        .map(|i| {
                            let args: Vec<u64> = (0..data.args.len()).map(|a| arg(a)[i]).collect();
                            eval(op, &data.attrs, from, to, &args)
                                .expect("only specified ops are made")
                        })
                        .collect()
                }
            };
            if let Some(&value) = data.results.first() {
                values[value.as_u32() as usize] = result;
            }
            if let Some(way) = next {
                let call = &data.blocks[way];
                let args: Vec<Vec<u64>> = call
                    .args
                    .iter()
                    .map(|v| values[v.as_u32() as usize].clone())
                    .collect();
                for (param, arg) in dfg.blocks[call.block].params.iter().zip(args) {
                    values[param.as_u32() as usize] = arg;
                }
                block = call.block;
            }
        }
    }
}

#[test]
fn random_kernels_compute_what_they_say() {
    let mut n_damaged = 0;
    let mut n_caught = 0;
    for seed in 0..CASES {
        let func = make(seed);
        let mut random = Random(seed ^ 0xabcd);
        let input: Vec<u32> = (0..INPUTS * THREADS)
            .map(|_| (random.next() >> random.below(64)) as u32)
            .collect();
        let bytes: Vec<u8> = input.iter().flat_map(|x| x.to_le_bytes()).collect();
        let mut expected = vec![0; OUT_BYTES * THREADS];
        for thread in 0..THREADS {
            interpret(&func, thread as u64, &input, &mut expected);
        }
        // What a kernel does not write is what the test wrote before.
        let compare = |ptx: &str| -> bool {
            let out = run_over(ptx, &func.name, &bytes, expected.len());
            out == expected
        };
        for target in Target::ALL {
            let (ptx, _, _) = compile_thread(&func, target, &Options::DEFAULT)
                .unwrap_or_else(|e| panic!("seed {seed}: {e}"));
            assert!(compare(&ptx), "seed {seed} on {target}:\n{ptx}");
        }
        let code = select::select(&func, Target::SM_80).expect("compiled above");
        let program = allocator_view::CodeProgram(&code);
        let sound = regalloc::allocate(&program, Choices::none());
        for _ in 0..4 {
            let mut damaged = sound.clone();
            let a = random.below(code.regs.groups.len() as u64) as u32;
            let group = crate::regalloc::reg::Group::from_u32(a);
            let data = code.regs.groups[group];
            let names = damaged.n_names[data.class.index()];
            if names == 0 {
                continue;
            }
            let to = random.below(u64::from(names)) as u32;
            let first = data.first.as_u32() as usize;
            if damaged.names[first] == to || names < to + u32::from(data.count) {
                continue;
            }
            for i in 0..usize::from(data.count) {
                damaged.names[first + i] = to + i as u32;
            }
            n_damaged += 1;
            if check(&program, &damaged).is_err() {
                n_caught += 1;
                continue;
            }
            let (ptx, _, _) = write(&func, &code, &damaged, Target::SM_80, &Options::DEFAULT);
            assert!(
                compare(&ptx),
                "seed {seed}: the checker let a wrong allocation pass:\n{ptx}"
            );
        }
    }
    // Many groups were renamed away or fall on names that are free; of the rest all are caught.
    assert!(
        4 * n_caught > n_damaged,
        "{n_caught} of {n_damaged} damages were found"
    );
}

/// Runs a kernel whose output is zero before.
fn run_over(ptx: &str, name: &str, input: &[u8], out_bytes: usize) -> Vec<u8> {
    let module = crate::emu::Module::parse(ptx).unwrap_or_else(|e| panic!("{e}\n{ptx}"));
    let mut memory = crate::emu::Memory::new();
    let input = memory.alloc_bytes(input);
    let out = memory.alloc_bytes(&vec![0; out_bytes]);
    let args = [
        crate::emu::Arg::pointer(input),
        crate::emu::Arg::pointer(out),
    ];
    let launch = crate::emu::Launch {
        grid: [1, 1, 1],
        block: [THREADS as u32, 1, 1],
        shared_bytes: 0,
        args: &args,
        options: crate::emu::Options {
            // A damaged allocation may read what nobody wrote; then the result differs.
            check_uninit: false,
            ..crate::emu::Options::default()
        },
    };
    match crate::emu::run(&module, name, &launch, &mut memory) {
        Ok(_) => memory.read(out, out_bytes).unwrap_or_default(),
        Err(error) => error.to_string().into_bytes(),
    }
}
