//! The target `metamorphic`: kernels changed so that what they compute must not change (after Chen, Cheung and Yiu,
//! "Metamorphic Testing", 1998). Unlike the other oracles this one needs no second implementation: the emulator must
//! leave the same bits for both, and so must the interpreter.
//!
//! - `Change::Programs`: programs trade places, each does the work of the one with the opposite number;
//! - `Change::Folded`: numbers that were arguments become constants;
//! - `Change::Unfolded`: constants become arguments, so that nothing is known of them;
//! - `Change::Masks`: each load and store is done in two parts, under the mask and a condition, and under the mask and its
//!   opposite;
//! - `Change::Halves`: kernels of elementwise ops do the same work with half the block and twice the programs.

use super::Verdict;
use super::generate::{Argument, Case, attributes, case, fits, is_elementwise, random_number};
use super::passes::compare;
use super::random::Random;
use super::tile_ir::{
    Buffers, Failure, INTERPRETER_STEPS, Judgement, checked, emulate, fail, guarded, has_products,
    interpret, interpret_with, is_step_limit, refused, show, verdict,
};
use crate::compile::compile_with;
use crate::interp;
use crate::ir::attrs::{Attr, Attrs, IntPred};
use crate::ir::builder::TileBuilder;
use crate::ir::dfg::InstData;
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::function::TileFunction;
use crate::ir::level::{Level, Tile};
use crate::ir::ops::rules::Operands;
use crate::ir::ops::{Opcode, TileOp};
use crate::ir::types::{Elem, Scalar, TileType};
use crate::linear_layout::shape::Shape;
use crate::pipeline::Snapshot;
use crate::settings::{Asserts, Options, Policy, Promote, Target};

/// How a kernel is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Programs,
    Folded,
    Unfolded,
    Masks,
    Halves,
}

const ALL: [Change; 5] = [
    Change::Programs,
    Change::Folded,
    Change::Unfolded,
    Change::Masks,
    Change::Halves,
];

impl Change {
    fn name(self) -> &'static str {
        match self {
            Change::Programs => "programs trade places",
            Change::Folded => "arguments become constants",
            Change::Unfolded => "constants become arguments",
            Change::Masks => "accesses in two parts",
            Change::Halves => "blocks halved",
        }
    }
}

/// Judges the change of a seed; a failure is shrunk.
pub fn check(seed: u64) -> Verdict {
    let mut random = Random::new(seed);
    let change = ALL[(seed % ALL.len() as u64) as usize];
    if change == Change::Halves {
        let [whole, halved] = halves(&mut random);
        return match guarded(|| same(&whole, &halved)) {
            Judgement::Passed(_) => Verdict::Passed(vec![change.name()]),
            Judgement::Skipped(reason) => Verdict::Skipped(reason),
            Judgement::Failed(failure) => {
                let (kind, details) = (failure.kind, failure.details);
                Verdict::Failed(format!(
                    "{kind}\n{details}\n{}\n{}",
                    show(&whole),
                    show(&halved)
                ))
            }
        };
    }
    let mut case = case(random.bits() >> 32);
    if matches!(change, Change::Folded | Change::Unfolded | Change::Masks) {
        // A product of constants is rounded before it could become one with a sum; two products of the same numbers are one, of
        // which there may be no other use then, and are two where these are loaded in other ways.
        case.options.fp_fusion = false;
    }
    if !case.exact {
        return Verdict::Skipped("leaves bits open");
    }
    // What a case became stands beside what is wrong with it.
    let judge = |case: &Case| {
        guarded(|| {
            let other = changed(case, change, seed)?;
            Ok(match guarded(|| same(case, &other)) {
                Judgement::Failed(failure) => Judgement::Failed(Failure {
                    details: format!("{}\nbecame\n{}", failure.details, show(&other)),
                    ..failure
                }),
                judgement => judgement,
            })
        })
    };
    match verdict(&case, judge) {
        Verdict::Passed(_) => Verdict::Passed(vec![change.name()]),
        Verdict::Failed(text) => Verdict::Failed(format!("{}: {text}", change.name())),
        skipped => skipped,
    }
}

/// Whether two cases leave the same, buffer by buffer as far as both have them.
fn same(one: &Case, other: &Case) -> Result<Judgement, Failure> {
    let interpreted = |case: &Case| match interpret(&case.func, case, 2 * INTERPRETER_STEPS) {
        Ok(buffers) => Ok(Some(buffers)),
        Err(e) if is_step_limit(&e) => Ok(None),
        Err(e) => Err(fail("interpreter: undefined")(e.to_string())),
    };
    let (Some(ours), Some(theirs)) = (interpreted(one)?, interpreted(other)?) else {
        return Ok(Judgement::Skipped("interpreter's step limit"));
    };
    compare(&ours, &theirs).map_err(fail("interpreter: other result"))?;
    let emulated = |case: &Case| -> Result<Option<Buffers>, Failure> {
        let mut last = None;
        let compiled = compile_with(
            &case.func,
            case.target,
            &case.options,
            &mut |_, snapshot| {
                if let Snapshot::Tile(tile) = snapshot {
                    last = Some(tile.clone());
                }
            },
        );
        let kernel = match compiled {
            Ok(kernel) => kernel,
            Err(error) => return refused(case, &error).map(|_| None),
        };
        // Which sums are taken into products depends on what is known; where that shows, bits are open.
        if last.is_some_and(|tile| has_products(&tile) && !is_closed(&tile, case)) {
            return Ok(None);
        }
        match emulate(&kernel, case, checked(0)) {
            Ok((buffers, _)) => Ok(Some(ours.iter().map(|(s, _)| *s).zip(buffers).collect())),
            Err(e) if e.contains("step limit") => Ok(None),
            Err(e) => Err(fail("emulator: fault")(e)),
        }
    };
    let (Some(ours), Some(theirs)) = (emulated(one)?, emulated(other)?) else {
        return Ok(Judgement::Skipped(
            "emulator's step limit, too large, or sums that are open",
        ));
    };
    compare(&ours, &theirs).map_err(fail("emulator: other result"))?;
    Ok(Judgement::Passed(Vec::new()))
}

/// Whether a kernel leaves the same with each product apart from its accumulator.
fn is_closed(func: &TileFunction, case: &Case) -> bool {
    let options = interp::Options {
        step_limit: 20 * INTERPRETER_STEPS,
        ..interp::Options::default()
    };
    let together = interpret_with(func, case, &options);
    let apart = interpret(func, case, options.step_limit);
    match (together, apart) {
        (Ok((together, _)), Ok(apart)) => compare(&together, &apart).is_ok(),
        _ => false,
    }
}

/// The case with a change.
fn changed(case: &Case, change: Change, seed: u64) -> Result<Case, Failure> {
    let mut rewriter = Rewriter {
        b: TileBuilder::on(case.func.clone()),
        random: Random::new(seed),
        replaced: Vec::new(),
        args: case.args.clone(),
    };
    match change {
        Change::Folded => rewriter.fold(),
        Change::Programs => rewriter.each(Rewriter::trade_places),
        Change::Unfolded => rewriter.each(Rewriter::unfold),
        Change::Masks => rewriter.each(Rewriter::split_access),
        Change::Halves => {}
    }
    let args = rewriter.args.clone();
    let func = rewriter.finish().map_err(fail("change: invalid"))?;
    Ok(Case {
        func,
        args,
        ..case.clone()
    })
}

/// Writes a function anew, instruction by instruction.
struct Rewriter {
    b: TileBuilder,
    random: Random,
    /// Values, what takes their place, and the instruction that still uses them.
    replaced: Vec<(Value, Value, Option<Inst>)>,
    args: Vec<Argument>,
}

impl Rewriter {
    /// Goes over all instructions. `change` is called behind each; what it appends comes there.
    fn each(&mut self, change: impl Fn(&mut Rewriter, Inst)) {
        let combining = self.combining_regions();
        for block in self.b.func().all_blocks() {
            if combining.contains(&block) {
                continue;
            }
            let insts = self.b.func().order.insts(block).to_vec();
            self.b.func_mut().order.replace(block, Vec::new());
            self.b.switch_to(block);
            for inst in insts {
                self.b.func_mut().order.append(block, inst);
                change(self, inst);
            }
        }
    }

    /// Regions of reductions and scans, which must stay as they are.
    fn combining_regions(&self) -> Vec<Block> {
        let func = self.b.func();
        let insts = func.all_insts().map(|(_, inst)| inst);
        insts
            .filter(|&i| matches!(func.dfg.insts[i].op, TileOp::Reduce | TileOp::Scan))
            .flat_map(|i| func.regions(i))
            .collect()
    }

    fn def(&self, value: Value) -> Option<Inst> {
        self.b.func().dfg.def_inst(value)
    }

    fn finish(self) -> Result<TileFunction, String> {
        let replaced = self.replaced;
        let mut func = self.b.finish().map_err(|e| e.to_string())?;
        for block in func.all_blocks() {
            for inst in func.order.insts(block).to_vec() {
                func.dfg.map_uses(inst, |value| {
                    let mut found = replaced.iter();
                    let found =
                        found.find(|(from, _, except)| *from == value && *except != Some(inst));
                    found.map_or(value, |&(_, to, _)| to)
                });
            }
        }
        Ok(func)
    }

    /// `program_id` becomes `num_programs - 1 - program_id`.
    fn trade_places(&mut self, inst: Inst) {
        let data = &self.b.func().dfg.insts[inst];
        if data.op != TileOp::ProgramId {
            return;
        }
        let (Some(&axis), Some(number)) = (data.axis(), self.b.func().dfg.single_result(inst))
        else {
            return;
        };
        let count = self.b.num_programs(axis);
        let one = self.b.i32(1, Shape::SCALAR);
        let last = self.b.isub(count, one);
        let opposite = self.b.isub(last, number);
        let except = self.def(opposite);
        self.replaced.push((number, opposite, except));
    }

    /// Arguments become constants.
    fn fold(&mut self) {
        let entry = self.b.func().entry;
        let insts = self.b.func().order.insts(entry).to_vec();
        self.b.func_mut().order.replace(entry, Vec::new());
        self.b.switch_to(entry);
        let params = self.b.func().params().to_vec();
        for (&param, arg) in params.iter().zip(&self.args.clone()) {
            if let Argument::Number(_, bits) = arg {
                let constant = self.b.const_bits(*bits, self.b.ty(param));
                self.replaced.push((param, constant, None));
            }
        }
        for inst in insts {
            self.b.func_mut().order.append(entry, inst);
        }
    }

    /// A constant becomes an argument, which a block repeats.
    fn unfold(&mut self, inst: Inst) {
        let data = &self.b.func().dfg.insts[inst];
        let (Some(&bits), Some(constant)) = (data.value(), self.b.func().dfg.single_result(inst))
        else {
            return;
        };
        let ty = self.b.ty(constant);
        if data.op != TileOp::Const || !matches!(ty.elem, Elem::Num(_)) || self.random.chance(50) {
            return;
        }
        let name = format!("folded{}", self.args.len());
        let param = self.b.param(&name, TileType::scalar(ty.elem));
        let mask = u64::MAX >> (64 - ty.elem.bits());
        self.args.push(Argument::Number(ty.elem, bits & mask));
        let value = self.b.to_shape(param, ty.shape);
        self.replaced.push((constant, value, None));
    }

    /// A condition and its opposite for the elements of a shape: those before some place in row-major order.
    fn halves_of(&mut self, shape: Shape) -> [Value; 2] {
        let count = shape.elements() as i64;
        let line = Shape::from_log2(&[shape.log2_elements() as u8]).expect("as many elements");
        let ty = TileType::block(Elem::I32, line);
        let numbers = self.b.arange(0, ty);
        let numbers = self.b.reshape(numbers, ty.with_shape(shape));
        let place = self.random.between(0, count) as i32;
        let place = self.b.i32(place, shape);
        let first = self.b.icmp(numbers, place, IntPred::Slt);
        let rest = self.b.icmp(numbers, place, IntPred::Sge);
        [first, rest]
    }

    /// A load or store becomes two; the one there was stays for its attributes.
    fn split_access(&mut self, inst: Inst) {
        let data = self.b.func().dfg.insts[inst].clone();
        let masks_at = match data.op {
            TileOp::Load => 1,
            TileOp::Store => 2,
            _ => return,
        };
        let shape = self.b.ty(data.args[0]).shape;
        if shape.is_scalar() || self.random.chance(50) {
            return;
        }
        // What the halves are made of comes before the access.
        let block = self.b.block();
        let mut insts = self.b.func().order.insts(block).to_vec();
        insts.pop();
        self.b.func_mut().order.replace(block, insts);
        let old = data.args.get(masks_at).copied();
        let halves = self.halves_of(shape).map(|half| match old {
            Some(mask) => self.b.and(mask, half),
            None => half,
        });
        let parts = halves.map(|mask| {
            let mut part = data.clone();
            part.results.clear();
            match part.args.get_mut(masks_at) {
                Some(place) => *place = mask,
                None => part.args.push(mask),
            }
            self.b.inst(part, &[])
        });
        let results = parts.map(|part| self.b.func().dfg.single_result(part));
        if let ([Some(first), Some(rest)], Some(&whole)) = (results, data.results.first()) {
            let value = self.b.select(halves[0], first, rest);
            // Where neither part reads, the second gives what the load would.
            self.replaced.push((whole, value, None));
        }
    }
}

/// Steps of a kernel of elementwise ops.
const STEPS: usize = 14;

/// An elementwise op on values by number.
struct Step {
    op: TileOp,
    args: Vec<usize>,
    attrs: Vec<Attr>,
    given: Option<Elem>,
}

/// A kernel of elementwise ops on a line of elements, and the same with half the block and twice the programs.
fn halves(random: &mut Random) -> [Case; 2] {
    let log2 = 1 + random.below(10) as u8;
    let programs = random.pick(&[1u32, 2, 3]);
    let elem = |random: &mut Random| Elem::Num(random.pick(&Scalar::ALL));
    let inputs: Vec<Elem> = (0..2 + random.below(3)).map(|_| elem(random)).collect();
    let mut types = inputs.clone();
    let mut steps = Vec::new();
    for _ in 0..400 {
        let op = random.pick(TileOp::ALL);
        // Quotients by zero are unspecified, and so are the bits of NaNs.
        let is_open = matches!(
            op,
            TileOp::Sdiv
                | TileOp::Udiv
                | TileOp::Srem
                | TileOp::Urem
                | TileOp::Bitcast
                | TileOp::Copysign
        );
        if !is_elementwise(op) || is_open {
            continue;
        }
        let args: Vec<usize> = op
            .info()
            .operands
            .iter()
            .map(|_| random.below(types.len()))
            .collect();
        let given = op.info().result_is_given.then(|| elem(random));
        let attrs = attributes(random, op);
        let tile = |elem: Elem| TileType::scalar(elem);
        let arg_types: Vec<TileType> = args.iter().map(|&i| tile(types[i])).collect();
        let given_types: Vec<TileType> = given.into_iter().map(tile).collect();
        if !fits(op, &arg_types, &attrs, &given_types) {
            continue;
        }
        let operands = Operands::<Tile> {
            args: &arg_types,
            attrs: &attrs,
            given: &given_types,
        };
        let Ok(results) = Tile::result_types(op, &operands) else {
            continue;
        };
        types.push(results[0].elem);
        steps.push(Step {
            op,
            args,
            attrs,
            given,
        });
        if steps.len() == STEPS {
            break;
        }
    }
    let count = i64::from(programs) << log2;
    let length = if random.chance(50) {
        count
    } else {
        random.between(1, count)
    };
    let kept: Vec<usize> = (0..4).map(|_| random.below(types.len())).collect();
    let mut args: Vec<Argument> = Vec::new();
    let all = inputs
        .iter()
        .map(|&e| (e, true))
        .chain(kept.iter().map(|&i| (types[i], false)));
    for (elem, is_input) in all {
        let scalar = elem.scalar().expect("the pool has numbers");
        let mut bytes = Vec::new();
        for _ in 0..count {
            let bits = match scalar {
                Scalar::I1 => u64::from(random.chance(50)),
                _ if is_input => random_number(random, elem),
                _ => 0,
            };
            bytes.extend_from_slice(&bits.to_le_bytes()[..scalar.bytes() as usize]);
        }
        args.push(Argument::Buffer(scalar, bytes));
    }
    let target = random.pick(&Target::ALL);
    let warps = 1 << random.below(4);
    let options = Options {
        fp_fusion: false,
        max_registers: None,
        verify_passes: true,
        line_info: false,
        asserts: Asserts::Off,
        promote: Promote::Auto,
        roles: Policy::Auto,
        persistent: Policy::Auto,
        fixed_warps: false,
        diversity: random.chance(50).then(|| random.bits()),
    };
    [(log2, programs), (log2 - 1, 2 * programs)].map(|(log2, programs)| {
        let func = elementwise_kernel(&inputs, &steps, &kept, &types, (log2, length), warps);
        Case {
            func,
            grid: [programs, 1, 1],
            args: args.clone(),
            exact: true,
            options,
            target,
        }
    })
}

fn elementwise_kernel(
    inputs: &[Elem],
    steps: &[Step],
    kept: &[usize],
    types: &[Elem],
    (log2, length): (u8, i64),
    warps: u32,
) -> TileFunction {
    let mut b = TileBuilder::new("halves", warps);
    let shape = Shape::from_log2(&[log2]).expect("one dimension");
    let pointer = |b: &mut TileBuilder, name: String, elem: Elem| {
        let scalar = elem.scalar().expect("the pool has numbers");
        b.param_divisible(&name, TileType::scalar(Elem::global(scalar)), 16)
    };
    let from: Vec<Value> = inputs
        .iter()
        .enumerate()
        .map(|(i, &e)| pointer(&mut b, format!("p{i}"), e))
        .collect();
    let to: Vec<Value> = kept
        .iter()
        .enumerate()
        .map(|(i, &k)| pointer(&mut b, format!("q{i}"), types[k]))
        .collect();
    let pid = b.program_id(0);
    let size = b.i32(1 << log2, Shape::SCALAR);
    let start = b.imul(pid, size);
    let start = b.to_shape(start, shape);
    let numbers = b.arange(0, TileType::block(Elem::I32, shape));
    let index = b.iadd(start, numbers);
    let end = b.i32(length as i32, shape);
    let mask = b.icmp(index, end, IntPred::Slt);
    let mut values: Vec<Value> = Vec::new();
    for base in from {
        let base = b.to_shape(base, shape);
        let pointers = b.addptr(base, index);
        values.push(b.load(pointers, Some(mask), None));
    }
    for step in steps {
        let args: Vec<Value> = step.args.iter().map(|&i| values[i]).collect();
        let mut data = InstData::new(step.op, &args);
        data.attrs.extend(step.attrs.iter().cloned());
        let given: Vec<TileType> = step
            .given
            .iter()
            .map(|&e| TileType::block(e, shape))
            .collect();
        let inst = b.inst(data, &given);
        values.extend(b.func().dfg.insts[inst].results.iter().copied());
    }
    for (base, &k) in to.into_iter().zip(kept) {
        let base = b.to_shape(base, shape);
        let pointers = b.addptr(base, index);
        b.store(pointers, values[k], Some(mask));
    }
    b.ret();
    b.finish().expect("the table accepted every step")
}
