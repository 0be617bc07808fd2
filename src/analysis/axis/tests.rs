//! Random index programs are run on numbers, and every claim about every value is checked element by element.

use cranelift_entity::SecondaryMap;

use super::*;
use crate::analysis::testing::{all, shape, softmax, vector_add};
use crate::ir::attrs::{Attrs, IntPred};
use crate::ir::builder::TileBuilder;
use crate::ir::dfg::ValueList;
use crate::ir::function::Asked;
use crate::ir::types::{Scalar, ValueType};
use crate::linear_layout::shape::Shape;

struct Rng(u64);

impl Rng {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1);
        (self.0 >> 33) % limit
    }
}

/// Elements as signed numbers; pointers as addresses.
type Numbers = SecondaryMap<Value, Vec<i64>>;

fn wrap(x: i128, elem: Elem) -> i64 {
    match elem.bits() {
        1 => (x & 1) as i64,
        32 => x as i32 as i64,
        _ => x as i64,
    }
}

fn unsigned(x: i64, elem: Elem) -> i128 {
    if elem.bits() == 32 {
        i128::from(x as u32)
    } else {
        i128::from(x as u64)
    }
}

fn compare(pred: IntPred, a: i64, b: i64, elem: Elem) -> bool {
    let (ua, ub) = (unsigned(a, elem), unsigned(b, elem));
    match pred {
        IntPred::Eq => a == b,
        IntPred::Ne => a != b,
        IntPred::Slt => a < b,
        IntPred::Sle => a <= b,
        IntPred::Sgt => a > b,
        IntPred::Sge => a >= b,
        IntPred::Ult => ua < ub,
        IntPred::Ule => ua <= ub,
        IntPred::Ugt => ua > ub,
        IntPred::Uge => ua >= ub,
    }
}

/// Runs the straight-line integer code of a function; none if a divisor is zero, or if a sum or product of numbers that are not
/// negative leaves the range, unless it `wraps`: but for what is proved the analysis takes that not to happen.
fn run(func: &TileFunction, numbers: &mut Numbers, program: i64, wraps: bool) -> Option<()> {
    for &inst in func.order.insts(func.entry) {
        let data = &func.dfg.insts[inst];
        let Some(result) = func.dfg.single_result(inst) else {
            continue;
        };
        let ty = func.dfg.ty(result);
        let arg = |i: usize, at: usize| numbers[data.args[i]][at];
        let count = ty.shape.elements();
        let mut out = Vec::with_capacity(count);
        for at in 0..count {
            let wide = |i: usize| i128::from(arg(i, at));
            let source = |i: usize| func.dfg.ty(data.args[i]);
            let exact = match data.op {
                TileOp::Const => i128::from(data.value().copied()? as i64),
                TileOp::Arange => i128::from(*data.start()?) + at as i128,
                TileOp::ProgramId => i128::from(program),
                TileOp::Splat => i128::from(arg(0, 0)),
                TileOp::ExpandDims => wide(0),
                TileOp::Broadcast => {
                    let from = source(0).shape;
                    let flat = (0..from.rank()).fold(0, |flat, dim| {
                        let at = ty.shape.coordinate(at as u32, dim);
                        let at = if from.extent(dim) == 1 { 0 } else { at };
                        flat | at << from.bit_offset(dim)
                    });
                    i128::from(arg(0, flat as usize))
                }
                TileOp::Reshape => wide(0),
                TileOp::Permute => {
                    let (from, dims) = (source(0).shape, data.dims()?);
                    let flat = dims.iter().enumerate().fold(0, |flat, (to, &dim)| {
                        let at = ty.shape.coordinate(at as u32, to);
                        flat | at << from.bit_offset(dim as usize)
                    });
                    i128::from(arg(0, flat as usize))
                }
                TileOp::Join => i128::from(arg(at & 1, at >> 1)),
                TileOp::Split => i128::from(arg(0, at << 1 | usize::from(*data.index()?))),
                TileOp::Gather => {
                    let (from, axis) = (source(0).shape, usize::from(*data.axis()?));
                    let extent = from.extent(axis) as i64;
                    let index = arg(1, at).rem_euclid(extent) as u32;
                    let rest = at as u32 & !from.bit_mask(axis);
                    let flat = rest | index << from.bit_offset(axis);
                    i128::from(arg(0, flat as usize))
                }
                TileOp::Iadd | TileOp::Imul => {
                    let (a, b) = (wide(0), wide(1));
                    let exact = if data.op == TileOp::Iadd {
                        a + b
                    } else {
                        a * b
                    };
                    if !wraps && a >= 0 && b >= 0 && exact != i128::from(wrap(exact, ty.elem)) {
                        return None;
                    }
                    exact
                }
                TileOp::Shl => {
                    let exact = wide(0) << arg(1, at);
                    if !wraps && wide(0) >= 0 && exact != i128::from(wrap(exact, ty.elem)) {
                        return None;
                    }
                    exact
                }
                TileOp::Isub => wide(0) - wide(1),
                TileOp::Sdiv if wide(1) != 0 => wide(0) / wide(1),
                TileOp::Srem if wide(1) != 0 => wide(0) % wide(1),
                TileOp::Udiv if wide(1) != 0 => {
                    unsigned(arg(0, at), ty.elem) / unsigned(arg(1, at), ty.elem)
                }
                TileOp::Urem if wide(1) != 0 => {
                    unsigned(arg(0, at), ty.elem) % unsigned(arg(1, at), ty.elem)
                }
                TileOp::Sshr => wide(0) >> arg(1, at),
                TileOp::Ushr => unsigned(arg(0, at), ty.elem) >> arg(1, at),
                TileOp::And => wide(0) & wide(1),
                TileOp::Or => wide(0) | wide(1),
                TileOp::Xor => wide(0) ^ wide(1),
                TileOp::Smin => wide(0).min(wide(1)),
                TileOp::Smax => wide(0).max(wide(1)),
                TileOp::Sext => wide(0),
                TileOp::Zext => unsigned(arg(0, at), source(0).elem),
                TileOp::Itrunc => wide(0),
                TileOp::Icmp => {
                    let elem = source(0).elem;
                    i128::from(compare(*data.ipred()?, arg(0, at), arg(1, at), elem))
                }
                TileOp::Select => {
                    if arg(0, at) != 0 {
                        wide(1)
                    } else {
                        wide(2)
                    }
                }
                TileOp::Addptr => wide(0) + (wide(1) << unit(ty.elem)),
                _ => return None,
            };
            out.push(wrap(exact, ty.elem));
        }
        numbers[result] = out;
    }
    Some(())
}

/// What is known along one dimension.
#[derive(Debug)]
struct Claim {
    contiguity: u8,
    divisibility: u8,
    constancy: u8,
}

impl Claim {
    fn of(axis: &Axis, info: &DimInfo) -> Claim {
        let number = |exponent: &Exponent| axis.capped(exponent, u8::MAX);
        Claim {
            contiguity: number(&info.contiguity),
            divisibility: number(&info.divisibility),
            constancy: number(&info.constancy),
        }
    }
}

/// Checks the claims about one value.
fn check(axis: &Axis, value: Value, ty: &TileType, numbers: &[i64], text: &str) {
    let info = axis.info(value);
    let step = 1i64 << unit(ty.elem);
    let bits = ty.elem.bits();
    // One claim for each dimension, or one for a scalar.
    assert_eq!(info.dims.len(), ty.shape.rank().max(1), "{text}");
    for dim in 0..ty.shape.rank().max(1) {
        let stride = 1usize << ty.shape.bit_offset(dim);
        let claim = Claim::of(axis, &info.dim(dim));
        for (at, &x) in numbers.iter().enumerate() {
            let index = ty.shape.coordinate(at as u32, dim);
            let first_of = |run: u8| at - (index as usize & ((1 << run) - 1)) * stride;
            let first = numbers[first_of(claim.constancy)];
            assert_eq!(x, first, "{text}: constancy of {claim:?}");
            let first = numbers[first_of(claim.contiguity)];
            let ahead = i64::from(index) & ((1 << claim.contiguity) - 1);
            let counted = wrap(i128::from(first) + i128::from(ahead * step), ty.elem);
            assert_eq!(x, counted, "{text}: contiguity of {claim:?}");
            let zeros = claim.divisibility.min(bits as u8);
            let low = i128::from(first) & ((1i128 << zeros) - 1);
            assert_eq!(low, 0, "{text}: divisibility of {claim:?} at {first}");
        }
    }
    if let Some(constant) = info.constant {
        assert!(numbers.iter().all(|&x| x == constant), "{text}: constant");
    }
    if info.non_negative {
        assert!(numbers.iter().all(|&x| x >= 0), "{text}: sign {numbers:?}");
    }
}

/// Checks that runs of a mask are true up to an element; gives whether one is not the same all over.
fn check_prefix(exponent: u8, dim: usize, ty: &TileType, mask: &[i64], text: &str) -> bool {
    let stride = 1usize << ty.shape.bit_offset(dim);
    let mut found = false;
    for (at, &x) in mask.iter().enumerate() {
        let index = ty.shape.coordinate(at as u32, dim) as usize;
        if index & ((1 << exponent) - 1) != 0 {
            let before = mask[at - stride];
            assert!(
                x == 0 || before != 0,
                "{text}: prefix of 2^{exponent} along {dim}"
            );
            found |= x != before;
        }
    }
    found
}

/// A random value of the type made of what is there.
fn grow(b: &mut TileBuilder, rng: &mut Rng, pool: &[Value]) -> Value {
    let pick = |rng: &mut Rng| pool[rng.below(pool.len() as u64) as usize];
    let (x, y) = (pick(rng), pick(rng));
    let ty = b.ty(x);
    let other = if b.ty(y) == ty { y } else { x };
    if ty.elem.is_ptr() {
        let offset = pool
            .iter()
            .copied()
            .find(|&v| b.ty(v).shape == ty.shape && matches!(b.ty(v).elem, Elem::I32 | Elem::I64));
        return offset.map_or(x, |offset| b.addptr(x, offset));
    }
    let wide = TileType::block(Elem::I64, ty.shape);
    if ty.elem == Elem::I1 {
        if rng.below(2) == 0 {
            return b.and(x, other);
        }
        let number = TileType::block(Elem::I32, ty.shape);
        return b.zext(x, number);
    }
    let power = 1 << rng.below(7);
    let constant = b.const_bits(power, ty);
    let mask = b.const_bits(power.wrapping_sub(1), ty);
    let negative = b.const_bits(power.wrapping_neg(), ty);
    let any = b.const_bits(rng.below(100), ty);
    let second = [other, other, constant, constant, any][rng.below(5) as usize];
    let shift = b.const_bits(rng.below(6), ty);
    match rng.below(22) {
        0..=3 => b.iadd(x, second),
        4 => b.isub(x, second),
        5 | 6 => b.imul(x, second),
        7 => b.sdiv(x, second),
        8 => b.udiv(x, second),
        9 => b.srem(x, second),
        10 => b.urem(x, second),
        11 => b.shl(x, shift),
        12 => b.sshr(x, shift),
        13 => b.ushr(x, shift),
        14 => b.and(x, mask),
        15 => b.and(x, negative),
        16 => b.or(x, second),
        17 => b.smin(x, second),
        18 if ty.elem == Elem::I32 => b.sext(x, wide),
        19 if ty.elem == Elem::I32 => b.zext(x, wide),
        _ => {
            let preds = IntPred::ALL;
            let pred = preds[rng.below(preds.len() as u64) as usize];
            let (left, right) = if rng.below(2) == 0 {
                (x, second)
            } else {
                (second, x)
            };
            let cond = b.icmp(left, right, pred);
            if rng.below(2) == 0 {
                b.select(cond, x, other)
            } else {
                cond
            }
        }
    }
}

/// Values of other shapes made of what is there, which only the check looks at.
fn turn(b: &mut TileBuilder, rng: &mut Rng, pool: &[Value]) {
    let mut pick = || pool[rng.below(pool.len() as u64) as usize];
    let (x, y, z) = (pick(), pick(), pick());
    let ty = b.ty(x);
    let other = if b.ty(y) == ty { y } else { x };
    let pair = b.join(x, other);
    b.split(pair, 1);
    if ty.is_scalar() {
        b.reshape(x, ty.with_shape(shape(&[1, 1])));
        return;
    }
    let index_ty = b.ty(z);
    if index_ty.shape == ty.shape && index_ty.elem == Elem::I32 {
        b.gather(x, z, rng.below(ty.shape.rank() as u64) as u8);
    }
    let rank = b.ty(pair).shape.rank() as u32;
    let transposed = b.permute(pair, (0..rank).map(|i| (i + 1) % rank).collect());
    let n = b.ty(transposed).shape.elements() as u64;
    let flat = b.reshape(transposed, ty.with_shape(shape(&[n])));
    let first = 1 << rng.below(5);
    let cut = b.reshape(x, ty.with_shape(shape(&[first, 4, n / 8 / first])));
    b.permute(cut, [0, 2, 1].into_iter().collect());
    b.reshape(flat, ty.with_shape(shape(&[n / 2, 2])));
}

/// A random index program.
struct Sample {
    func: TileFunction,
    n: Value,
    p: Value,
}

impl Sample {
    /// One whose arguments are multiples of these; perhaps with a loop.
    fn new(rng: &mut Rng, divisible: [u32; 2], has_loop: bool) -> Sample {
        let mut b = TileBuilder::new("k", 4);
        let shapes = [shape(&[64]), shape(&[8, 16]), Shape::SCALAR];
        let s = shapes[rng.below(3) as usize];
        let n = b.param_divisible("n", TileType::scalar(Elem::I32), divisible[0]);
        let pointer = TileType::scalar(Elem::global(Scalar::F32));
        let p = b.param_divisible("p", pointer, divisible[1]);
        let pid = b.program_id(0);
        let start = [0, 0, 16, 5, -8][rng.below(5) as usize];
        let mut pool = vec![];
        let scalars = [n, pid, p];
        if s.is_scalar() {
            pool.extend(scalars);
        } else {
            for scalar in scalars {
                pool.push(b.to_shape(scalar, s));
            }
            let extent = s.extent(s.rank() - 1);
            let range = b.arange(start, TileType::block(Elem::I32, shape(&[extent])));
            if s.rank() == 1 {
                pool.push(range);
            } else {
                let row = b.expand_dims(range, 0);
                pool.push(b.to_shape(row, s));
                let rows = b.arange(0, TileType::block(Elem::I32, shape(&[s.extent(0)])));
                let column = b.expand_dims(rows, 1);
                pool.push(b.to_shape(column, s));
            }
        }
        for _ in 0..12 {
            let value = grow(&mut b, rng, &pool);
            pool.push(value);
        }
        if has_loop {
            let (lo, step) = (b.i32(0, Shape::SCALAR), b.i32(32, Shape::SCALAR));
            let first: Vec<Value> = (0..3)
                .map(|_| pool[rng.below(pool.len() as u64) as usize])
                .collect();
            b.for_loop(lo, n, step, &first, |b, iv, carried| {
                let iv = b.to_shape(iv, s);
                let mut inside = pool.clone();
                inside.extend(carried);
                inside.push(iv);
                let mut next = ValueList::new();
                for &value in carried {
                    let ty = b.ty(value);
                    let same = |b: &TileBuilder, v: &Value| b.ty(*v) == ty;
                    let made = grow(b, rng, &inside);
                    inside.push(made);
                    let fits: Vec<Value> = inside.iter().copied().filter(|v| same(b, v)).collect();
                    let other = fits[fits.len() - 1 - rng.below(3.min(fits.len() as u64)) as usize];
                    let offset = inside
                        .iter()
                        .copied()
                        .find(|&v| b.ty(v).elem == Elem::I32 && b.ty(v).shape == ty.shape);
                    next.push(match (ty.elem.is_ptr(), offset) {
                        (true, Some(offset)) => b.addptr(value, offset),
                        (false, _) if ty.elem != Elem::I1 => b.iadd(value, other),
                        _ => other,
                    });
                }
                next
            });
        }
        for _ in 0..4 {
            turn(&mut b, rng, &pool);
        }
        b.ret();
        let func = b.finish().expect("random programs are well typed");
        Sample { func, n, p }
    }
}

#[test]
fn claims_hold_element_by_element() {
    let mut rng = Rng(7);
    let (mut checked, mut skipped, mut ends) = (0, 0, 0);
    for _ in 0..400 {
        let divisible = 1 << rng.below(6);
        let n_number = divisible as i64 * (rng.below(200) as i64 - 100);
        let p_number = 16 * rng.below(1 << 40) as i64;
        let Sample { func, n, p } = Sample::new(&mut rng, [divisible, 16], false);
        let mut numbers = Numbers::new();
        numbers[n] = vec![n_number];
        numbers[p] = vec![p_number];
        if run(&func, &mut numbers, rng.below(1000) as i64, false).is_none() {
            skipped += 1;
            continue;
        }
        checked += 1;
        let axis = Axis::compute(&func);
        for (value, data) in &func.dfg.values {
            let text = format!("{value}: {:?} in {:#?}", data.def, func.dfg.insts);
            check(&axis, value, &data.ty, &numbers[value], &text);
            if data.ty.elem == Elem::I1 {
                for dim in 0..data.ty.shape.rank() {
                    let exponent = axis.capped(&axis.prefix(&func, value, dim), u8::MAX);
                    let ty = &data.ty;
                    ends += usize::from(check_prefix(exponent, dim, ty, &numbers[value], &text));
                }
            }
        }
    }
    assert!(checked > 150, "checked {checked}, skipped {skipped}");
    assert!(ends > 0, "no mask comes to an end");
}

/// What is proved not to be negative is not, with arguments and programs at their ends and whatever wraps around.
#[test]
fn natural_numbers_are_proved() {
    let mut rng = Rng(13);
    let (mut ran, mut proved, mut taken) = (0, 0, 0);
    for _ in 0..150 {
        let Sample { func, n, p } = Sample::new(&mut rng, [1, 16], false);
        let axis = Axis::compute(&func);
        for argument in [0, 1, -1, 1 << 24, i32::MIN.into(), i32::MAX.into()] {
            for program in [0, 1, 65_535, i64::from(i32::MAX) - 1] {
                let mut numbers = Numbers::new();
                numbers[n] = vec![argument];
                numbers[p] = vec![1 << 40];
                if run(&func, &mut numbers, program, true).is_none() {
                    continue;
                }
                ran += 1;
                for (value, data) in &func.dfg.values {
                    let info = axis.info(value);
                    taken += usize::from(info.is_non_negative());
                    let Some(most) = info.natural else { continue };
                    proved += 1;
                    let fits = |&x: &i64| u64::try_from(x).is_ok_and(|x| x <= most);
                    assert!(
                        numbers[value].iter().all(fits),
                        "{value}: {:?}, up to {most}: {:?} in {:#?}",
                        data.def,
                        numbers[value],
                        func.dfg.insts
                    );
                }
            }
        }
    }
    assert!(ran > 1000, "{ran}");
    assert!(proved > 5_000 && taken > proved, "{proved} of {taken}");
}

#[test]
fn sums_and_products_are_natural_as_long_as_they_fit() {
    let mut b = TileBuilder::new("k", 4);
    let n = b.param("n", TileType::scalar(Elem::I32));
    let number = |b: &mut TileBuilder, x| b.i32(x, Shape::SCALAR);
    let (size, one) = (number(&mut b, 128), number(&mut b, 1));
    let [x, y] = [0, 1].map(|axis| b.program_id(axis));
    let [first_x, first_y] = [x, y].map(|id| b.imul(id, size));
    let by_size = b.sdiv(x, size);
    let first = b.imul(by_size, size);
    let [by_n, of_n] = [b.sdiv(x, n), b.srem(x, n)];
    let n_less = b.isub(n, one);
    let of_first = b.srem(first_x, n);
    let larger = b.smax(n_less, one);
    let (lo, zero) = (one, number(&mut b, 0));
    let mut seen = Vec::new();
    b.for_loop(lo, n, size, &[zero, one], |b, counter, carried| {
        seen = vec![counter, carried[0], carried[1]];
        let same = b.srem(counter, size);
        let more = b.iadd(carried[1], one);
        ValueList::from_slice(&[same, more])
    });
    let func = crate::analysis::testing::finish(b);
    let axis = Axis::compute(&func);
    let most = u64::from(i32::MAX as u32);
    for (value, expected) in [
        (x, Some(most - 1)),
        (first_x, None),
        (first_y, Some(65_534 * 128)),
        (by_size, Some((most - 1) / 128)),
        (first, Some((most - 1) / 128 * 128)),
        (by_n, None),
        (of_n, Some(most - 1)),
        (of_first, None),
        (n, None),
        (larger, Some(most)),
        (seen[0], Some(most)),
        (seen[1], None),
        (seen[2], None),
    ] {
        assert_eq!(axis.info(value).natural, expected, "{value}");
    }
}

/// What some questions are answered about a function: of which value and dimension, about what, and beyond what it does not matter.
fn answers(func: &TileFunction, questions: &[(Value, usize, u64, u8)]) -> Vec<u8> {
    let axis = Axis::compute(func);
    let answer = |&(value, dim, about, most): &(Value, usize, u64, u8)| {
        let info = axis.info(value).dim(dim);
        let exponent = match about {
            0 => info.contiguity,
            1 => info.divisibility,
            2 => info.constancy,
            _ => axis.prefix(func, value, dim),
        };
        axis.capped(&exponent, most)
    };
    questions.iter().map(answer).collect()
}

#[test]
fn between_the_promises_asked_for_every_answer_stays() {
    let mut rng = Rng(11);
    let (mut others, mut narrower) = (0, 0);
    for _ in 0..600 {
        let levels = [rng.below(5) as u8, rng.below(5) as u8];
        let has_loop = rng.below(2) == 0;
        let mut func = Sample::new(&mut rng, levels.map(|level| 1 << level), has_loop).func;
        let values = func.dfg.values.len() as u64;
        let questions: Vec<(Value, usize, u64, u8)> = (0..1 + rng.below(3))
            .map(|_| {
                let value = Value::from_u32((values - 1 - rng.below(values * 2 / 3)) as u32);
                let ty = func.dfg.ty(value);
                let dim = rng.below(ty.shape.rank().max(1) as u64) as usize;
                let is_mask = ty.elem == Elem::I1 && !ty.is_scalar();
                let about = rng.below(if is_mask { 4 } else { 3 });
                (value, dim, about, rng.below(8) as u8)
            })
            .collect();
        let expected = answers(&func, &questions);
        let asked: Vec<Asked> = func.param_hints.iter().map(ParamHints::asked).collect();
        let is_between = |level: u8, asked: Asked| (asked.least..=asked.most).contains(&level);
        assert!(levels.iter().zip(&asked).all(|(&l, &a)| is_between(l, a)));
        for other in (0..25).map(|i| [i / 5, i % 5]) {
            let holds = other.iter().zip(&asked).all(|(&l, &a)| is_between(l, a));
            for (hints, level) in func.param_hints.iter_mut().zip(other) {
                *hints = ParamHints::divisible(1 << level);
            }
            let found = answers(&func, &questions);
            if !holds {
                // What was asked for is not all there is.
                narrower += usize::from(found != expected);
                continue;
            }
            others += usize::from(other != levels);
            assert_eq!(
                found, expected,
                "{other:?} for {levels:?}, asked {asked:?}, {questions:?} of {:#?}",
                func.dfg.insts
            );
        }
    }
    assert!(others > 4000 && narrower > 500, "{others}, {narrower}");
}

/// Contiguity, divisibility and constancy along the first dimension.
fn facts(func: &TileFunction, value: Value) -> (u64, u64, u64) {
    let axis = Axis::compute(func);
    let dim = Claim::of(&axis, &axis.info(value).dim(0));
    (
        1 << dim.contiguity,
        1 << dim.divisibility,
        1 << dim.constancy,
    )
}

#[test]
fn pointers_and_masks_of_a_vector_add_allow_four_elements() {
    let func = vector_add(Scalar::F32, Scalar::F32, Scalar::F32);
    let load = all(&func, TileOp::Load)[0];
    let data = &func.dfg.insts[load];
    assert_eq!(facts(&func, data.args[0]), (1024, 16, 1));
    assert_eq!(facts(&func, data.args[1]), (1, 1, 16));
    let axis = Axis::compute(&func);
    let width = axis.vector_width(&func, data.args[0], Some(data.args[1]), 0, 16);
    assert_eq!(width, 4);
}

#[test]
fn softmax_rows_are_aligned() {
    let func = softmax(256);
    let load = all(&func, TileOp::Load)[0];
    let data = &func.dfg.insts[load];
    assert_eq!(facts(&func, data.args[0]), (256, 16, 1));
    assert_eq!(facts(&func, data.args[1]), (1, 1, 16));
}

#[test]
fn truth_values_are_0_or_1() {
    for bit in [0, 1] {
        let mut b = TileBuilder::new("k", 1);
        let truth = b.const_bits(bit, TileType::block(Elem::I1, shape(&[4])));
        let func = crate::analysis::testing::finish(b);
        let constant = Axis::compute(&func).info(truth).constant;
        assert_eq!(constant, Some(bit as i64));
    }
}

#[test]
fn remainders_of_offsets_keep_runs_of_the_divisor() {
    let mut b = TileBuilder::new("k", 4);
    let m = b.param_divisible("m", TileType::scalar(Elem::I32), 16);
    let offsets = crate::analysis::testing::program_offsets(&mut b, 128);
    let m = b.to_shape(m, shape(&[128]));
    let rem = b.srem(offsets, m);
    let func = crate::analysis::testing::finish(b);
    assert_eq!(facts(&func, rem), (16, 16, 1));
}

#[test]
fn loops_keep_what_every_round_has() {
    let mut b = TileBuilder::new("k", 4);
    let p = b.param_divisible("p", TileType::scalar(Elem::global(Scalar::F16)), 16);
    let n = b.param("n", TileType::scalar(Elem::I32));
    let s = shape(&[64]);
    let range = b.arange(0, TileType::block(Elem::I32, s));
    let base = b.to_shape(p, s);
    let start = b.addptr(base, range);
    let (lo, step) = (b.i32(0, Shape::SCALAR), b.i32(32, Shape::SCALAR));
    let odd = b.i32(1, s);
    let mut seen = None;
    b.for_loop(lo, n, step, &[start, start], |b, iv, carried| {
        seen = Some((iv, carried[0], carried[1]));
        let step = b.to_shape(step, s);
        let aligned = b.addptr(carried[0], step);
        let loose = b.addptr(carried[1], odd);
        ValueList::from_slice(&[aligned, loose])
    });
    let func = crate::analysis::testing::finish(b);
    let (iv, aligned, loose) = seen.expect("the loop was built");
    assert_eq!(facts(&func, iv), (1, 32, 1));
    assert_eq!(facts(&func, aligned), (64, 16, 1));
    assert_eq!(facts(&func, loose), (64, 2, 1));
    let axis = Axis::compute(&func);
    assert!(axis.info(iv).non_negative);
    assert_eq!(axis.capped(&axis.info(iv).known_zero_bits(0), 9), 5);
    assert!(func.dfg.ty(aligned).elem().is_ptr());
}

/// What a number rests on that goes down by an argument is another promise in every other round.
#[test]
fn rounds_end() {
    let mut b = TileBuilder::new("k", 1);
    let n = b.param_divisible("n", TileType::scalar(Elem::I32), 2);
    let m = b.param("m", TileType::scalar(Elem::I32));
    let by = b.param("by", TileType::scalar(Elem::I32));
    let start = b.and(n, m);
    let zero = b.i32(0, Shape::SCALAR);
    let mut seen = None;
    b.while_loop(
        &[start],
        |b, carried| {
            let goes_on = b.icmp(carried[0], zero, IntPred::Sgt);
            (goes_on, ValueList::from_slice(carried))
        },
        |b, carried| {
            seen = Some(carried[0]);
            ValueList::from_slice(&[b.isub(carried[0], by)])
        },
    );
    let func = crate::analysis::testing::finish(b);
    let counted = seen.expect("the loop was built");
    assert_eq!(facts(&func, counted), (1, 1, 1));
}
