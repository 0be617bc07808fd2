//! Divisions by numbers that are known at run time alone: by reciprocals.
//!
//! ```text
//!                                      m = udiv 2^64 - 1, d      where d is defined
//!                                      ..
//! q = udiv n, d                 =>     q0 = umulhi n, m
//!                                      r0 = isub n, (imul q0, d)
//!                                      q = q0 + 1 if r0 >= d, else q0
//! r = urem n, d                 =>     r = umin r0, (isub r0, d)
//! ```
//!
//! - **Signed numbers of 32 bits**: the reciprocal comes from that of floats, in seven instructions (`signed_reciprocal`). The
//!   assembler writes the same and more, a second correction and what a division by zero gives, and takes a third of a millisecond
//!   for each division besides (`benches/assembler.py`). So there is none left.
//! - **Others of 32 bits**: where a loop repeats them by one divisor. Elsewhere the assembler may know that numbers are small, as the
//!   places of programs are, and divides them in fewer instructions.
//! - **64 bits**: a division calls a function of about 80 instructions; this takes about 20, the first `udiv` apart. That pays where a
//!   divisor stays the same in a loop, and for blocks of elements with one divisor.
//!
//! Signed numbers are divided as their magnitudes, natural ones as they are. What stays the same in loops, where programs find their
//! places again and again, is computed where the divisor is defined; else the reciprocal stands in front of the block's first division.
//! What is multiplied by quotients is the divisor's negative, which the machine adds in the same instruction.
//!
//! With `m = floor((2^w - 1) / d)`, `m d >= 2^w - d`, so that `n / d - n m / 2^w = n (2^w - m d) / (2^w d) <= n / 2^w < 1`: what `umulhi`
//! gives is the quotient or one less (T. Granlund and P. Montgomery, "Division by invariant integers using multiplication", 1994, compute
//! two numbers in place of the correction). What a division by zero gives nobody knows, before as after.
//!
//! Rows that wrap around are remainders of `n + c` for many constants `c`. Where `n` is natural and has a remainder itself, theirs are those
//! of that plus `c`. A kernel that compares the same rows with a bound behind its loop then has `n` alone in a register all the while:
//! of equal sums in front and behind the assembler keeps all 16.

use rustc_hash::FxHashMap;

use crate::analysis::loops::{Loops, home};
use crate::ir::attrs::{Attr, Attrs, IntPred, make};
use crate::ir::dfg::{InstData, SourceLoc, ValueDef};
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::function::ThreadFunction;
use crate::ir::ops::ThreadOp;
use crate::ir::types::{Elem, ThreadType};

/// How often a loop is taken to run.
const ITERATIONS: u32 = 8;
/// Divisions by one number from which on its reciprocal pays in front of them: of 64 bits it takes a division itself.
const LEAST: u32 = 3;

/// `2^32 (1 - 2^-21)` as a float: times the float reciprocal of a number it is less than the true one times 2^32, by 2^-22 at least and
/// 2^-20 at most, whatever conversion (2^-24), reciprocal (2^-23) and product (2^-24) are off.
const BELOW_TWO_TO_32: u64 = 0x4F7F_FFF8;

/// A number by which is divided, and whether as a signed one.
type Divisor = (Value, bool);

/// What quotients by a number are computed from, one element each: its magnitude, the negative of that, and the reciprocal.
#[derive(Clone, Copy)]
struct Reciprocal {
    magnitude: Value,
    negative: Value,
    reciprocal: Value,
}

/// A quotient that may be one too small, and what is left then.
#[derive(Clone, Copy)]
struct Parts {
    quotient: Value,
    rest: Value,
    magnitude: Value,
    negative: Value,
}

/// What has been computed: by block, dividend and divisor.
#[derive(Default)]
struct Known {
    parts: FxHashMap<(Block, Value, Divisor), Parts>,
    /// Remainders of natural numbers.
    remainders: FxHashMap<(Block, Value, Divisor), Value>,
}

/// Computes quotients and remainders by reciprocals: signed ones of 32 bits, and others where one serves several. Gives their number.
pub fn multiply_by_reciprocals(func: &mut ThreadFunction) -> usize {
    let mut divisions: Vec<(Block, Inst, Divisor)> = Vec::new();
    for (block, inst) in func.all_insts() {
        let found = divisor(func, inst).map(|divisor| (block, inst, divisor));
        divisions.extend(found);
    }
    if divisions.is_empty() {
        return 0;
    }
    let loops = Loops::with_function(func);
    let mut weights: FxHashMap<Divisor, u32> = FxHashMap::default();
    for &(block, inst, divisor) in &divisions {
        let ty = func.dfg.ty(func.dfg.insts[inst].args[0]);
        let times = match (loops.repeat(func, block, divisor.0), ty.elem.bits()) {
            (true, _) => ITERATIONS,
            (false, 64) => 1,
            _ => 0,
        };
        *weights.entry(divisor).or_default() += u32::from(ty.count) * times;
    }
    let is_hoisted = |divisor: &Divisor| weights[divisor] >= LEAST;
    divisions.retain(|(_, _, divisor)| {
        is_hoisted(divisor) || by_floats(func.dfg.ty(divisor.0), divisor.1)
    });
    let mut reciprocals: FxHashMap<(Option<Block>, Divisor), Reciprocal> = FxHashMap::default();
    let mut known = Known::default();
    let mut count = 0;
    for &(block, inst, divisor) in &divisions {
        let here = (!is_hoisted(&divisor)).then_some((block, inst));
        let key = (here.map(|(block, _)| block), divisor);
        let by = match reciprocals.get(&key) {
            Some(&by) => by,
            None => {
                let Some(by) = reciprocal(func, divisor, here) else {
                    continue;
                };
                reciprocals.insert(key, by);
                by
            }
        };
        divide(func, block, inst, divisor, by, &mut known);
        count += 1;
    }
    count
}

/// Whether a reciprocal comes from that of floats.
fn by_floats(ty: ThreadType, is_signed: bool) -> bool {
    is_signed && ty.elem.bits() == 32
}

/// By what an instruction divides, if it is one number for all elements and not known.
fn divisor(func: &ThreadFunction, inst: Inst) -> Option<Divisor> {
    let data = &func.dfg.insts[inst];
    let is_signed = match data.op {
        ThreadOp::Sdiv | ThreadOp::Srem => true,
        ThreadOp::Udiv | ThreadOp::Urem => false,
        _ => return None,
    };
    let mut value = data.args[1];
    let def = |value: Value| func.dfg.def_inst(value).map(|inst| &func.dfg.insts[inst]);
    while let Some(data) = def(value)
        && data.op == ThreadOp::Splat
    {
        value = data.args[0];
    }
    let ty = func.dfg.ty(value);
    let is_known = def(value).is_some_and(|data| data.op == ThreadOp::Const);
    let fits = matches!(ty.elem, Elem::I32 | Elem::I64) && ty.count == 1;
    (fits && !is_known).then_some((value, is_signed))
}

/// Makes instructions in front of a place.
struct Before<'a> {
    func: &'a mut ThreadFunction,
    block: Block,
    place: usize,
    loc: SourceLoc,
}

impl Before<'_> {
    fn make(&mut self, op: ThreadOp, args: &[Value], attrs: &[Attr], ty: ThreadType) -> Value {
        let mut data = InstData::new(op, args);
        data.attrs.extend(attrs.iter().cloned());
        data.loc = self.loc;
        let inst = self.func.dfg.make_inst(data, &[ty]);
        self.func.order.insert(self.block, self.place, inst);
        self.place += 1;
        self.func.dfg.insts[inst].results[0]
    }

    /// An operation with a result like its first operand.
    fn op(&mut self, op: ThreadOp, args: &[Value]) -> Value {
        let ty = self.func.dfg.ty(args[0]);
        self.make(op, args, &[], ty)
    }

    fn number(&mut self, number: u64, ty: ThreadType) -> Value {
        self.make(ThreadOp::Const, &[], &[make::value(number)], ty)
    }

    /// Whether one number is to another as `pred` says.
    fn compare(&mut self, a: Value, b: Value, pred: IntPred) -> Value {
        let truth = ThreadType::pack(Elem::I1, self.func.dfg.ty(a).count);
        self.make(ThreadOp::Icmp, &[a, b], &[make::ipred(pred)], truth)
    }

    /// The reciprocal of a magnitude of at most 2^31, as `umulhi` takes it.
    ///
    /// With `x = 2^32 / d`, floats give `z < x` with `1 - z / x` at most 2^-20 and one rounding, and a step of Newton's
    /// `floor(z (2 - z / x))`, which is less than `x` and more than `x - 1 - 1 / x - 2^-8`. Of a dividend of at most 2^31 too, `n / d` is
    /// then less than 1 + (1 + 1 / 2 + 2^-8) / 2 more than what `umulhi` gives: one correction will do.
    fn signed_reciprocal(&mut self, divisor: Value, negative: Value) -> Value {
        let int = self.func.dfg.ty(divisor);
        let float = ThreadType::pack(Elem::F32, 1);
        let number = self.make(ThreadOp::Uitofp, &[divisor], &[], float);
        let inverse = self.op(ThreadOp::RcpFtz, &[number]);
        let scale = self.number(BELOW_TWO_TO_32, float);
        let scaled = self.op(ThreadOp::Fmul, &[inverse, scale]);
        let first = self.make(ThreadOp::Fptoui, &[scaled], &[], int);
        let missing = self.op(ThreadOp::Imul, &[first, negative]);
        let step = self.op(ThreadOp::Umulhi, &[first, missing]);
        self.op(ThreadOp::Iadd, &[first, step])
    }

    /// A dividend with the same remainder: of the sum of a natural number and a constant, the number's remainder in its place. That
    /// is no longer sum, so it overflows no sooner.
    fn reduced<'r>(&mut self, n: Value, remainder: impl Fn(Value) -> Option<&'r Value>) -> Value {
        let dfg = &self.func.dfg;
        let def = |value: Value| dfg.def_inst(value).map(|inst| &dfg.insts[inst]);
        let sum = def(n).filter(|data| data.op == ThreadOp::Iadd);
        let Some((&base, &more)) = sum.and_then(|data| data.args.first().zip(data.args.get(1)))
        else {
            return n;
        };
        let number = def(more).filter(|data| data.op == ThreadOp::Const);
        let highest = dfg.ty(more).elem.bits() - 1;
        let is_natural = number
            .and_then(Attrs::value)
            .is_some_and(|&x| x >> highest == 0);
        match remainder(base) {
            Some(&rest) if is_natural => self.op(ThreadOp::Iadd, &[rest, more]),
            _ => n,
        }
    }

    fn splat(&mut self, value: Value, count: u16) -> Value {
        let ty = self.func.dfg.ty(value);
        let elem = ty.elem;
        match count {
            _ if ty.count == count => value,
            _ => self.make(
                ThreadOp::Splat,
                &[value],
                &[],
                ThreadType::pack(elem, count),
            ),
        }
    }
}

/// The reciprocal of a number, in front of an instruction or else where the number is defined.
fn reciprocal(
    func: &mut ThreadFunction,
    (value, is_signed): Divisor,
    here: Option<(Block, Inst)>,
) -> Option<Reciprocal> {
    let place_of = |func: &ThreadFunction, block, inst: Inst| {
        let insts = func.order.insts(block).iter();
        insts.take_while(|&&other| other != inst).count()
    };
    let (block, place, from) = match (here, func.dfg.values[value].def) {
        (Some((block, inst)), _) => (block, place_of(func, block, inst), Some(inst)),
        (None, ValueDef::Result(inst, _)) => {
            let block = home(func, value)?;
            (block, place_of(func, block, inst) + 1, Some(inst))
        }
        (None, ValueDef::Param(..)) => (home(func, value)?, 0, None),
    };
    let loc = from.map_or(SourceLoc::default(), |inst| func.dfg.insts[inst].loc);
    let mut at = Before {
        func,
        block,
        place,
        loc,
    };
    let magnitude = match is_signed {
        true => at.op(ThreadOp::Iabs, &[value]),
        false => value,
    };
    let ty = at.func.dfg.ty(value);
    let zero = at.number(0, ty);
    let negative = at.op(ThreadOp::Isub, &[zero, magnitude]);
    let reciprocal = match by_floats(ty, is_signed) {
        true => at.signed_reciprocal(magnitude, negative),
        false => {
            let most = at.number(u64::MAX >> (64 - ty.elem.bits()), ty);
            at.op(ThreadOp::Udiv, &[most, magnitude])
        }
    };
    Some(Reciprocal {
        magnitude,
        negative,
        reciprocal,
    })
}

/// Makes an instruction the last one of those that compute its result by a reciprocal.
fn divide(
    func: &mut ThreadFunction,
    block: Block,
    inst: Inst,
    divisor: Divisor,
    by: Reciprocal,
    known: &mut Known,
) {
    let data = &func.dfg.insts[inst];
    let (op, n, loc, result) = (data.op, data.args[0], data.loc, data.results[0]);
    let is_natural = data.natural().is_some();
    let (value, is_signed) = divisor;
    let insts = func.order.insts(block).iter();
    let place = insts.take_while(|&&other| other != inst).count();
    let mut at = Before {
        func,
        block,
        place,
        loc,
    };
    let ty = at.func.dfg.ty(n);
    let is_quotient = matches!(op, ThreadOp::Sdiv | ThreadOp::Udiv);
    let n = match is_natural && !is_quotient {
        true => {
            let less = at.reduced(n, |base| known.remainders.get(&(block, base, divisor)));
            known.remainders.insert((block, n, divisor), result);
            less
        }
        false => n,
    };
    let parts = match known.parts.get(&(block, n, divisor)) {
        Some(&parts) => parts,
        None => {
            let dividend = match is_signed && !is_natural {
                true => at.op(ThreadOp::Iabs, &[n]),
                false => n,
            };
            let reciprocal = at.splat(by.reciprocal, ty.count);
            let magnitude = at.splat(by.magnitude, ty.count);
            let negative = at.splat(by.negative, ty.count);
            let quotient = at.op(ThreadOp::Umulhi, &[dividend, reciprocal]);
            let whole = at.op(ThreadOp::Imul, &[quotient, negative]);
            let rest = at.op(ThreadOp::Iadd, &[whole, dividend]);
            let parts = Parts {
                quotient,
                rest,
                magnitude,
                negative,
            };
            known.parts.insert((block, n, divisor), parts);
            parts
        }
    };
    // The last of these: it becomes the instruction itself.
    let (last, args) = match is_quotient {
        true => {
            let is_less = at.compare(parts.rest, parts.magnitude, IntPred::Uge);
            let one = at.number(1, ty);
            let more = at.op(ThreadOp::Iadd, &[parts.quotient, one]);
            (ThreadOp::Select, vec![is_less, more, parts.quotient])
        }
        // What is below the divisor is less than the difference, which wraps around.
        false => {
            let more = at.op(ThreadOp::Iadd, &[parts.rest, parts.negative]);
            (ThreadOp::Umin, vec![parts.rest, more])
        }
    };
    let signs = match (is_signed, is_quotient, is_natural) {
        (true, true, true) => Some(value),
        (true, true, false) => {
            let value = at.splat(value, ty.count);
            Some(at.op(ThreadOp::Xor, &[n, value]))
        }
        (true, false, false) => Some(n),
        _ => None,
    };
    let (last, args) = match signs {
        None => (last, args),
        Some(signs) => {
            let magnitude = at.make(last, &args, &[], ty);
            let signs_type = at.func.dfg.ty(signs);
            let zero = at.number(0, signs_type);
            let is_negative = at.compare(signs, zero, IntPred::Slt);
            let is_negative = at.splat(is_negative, ty.count);
            let zero = at.number(0, ty);
            let negative = at.op(ThreadOp::Isub, &[zero, magnitude]);
            (ThreadOp::Select, vec![is_negative, negative, magnitude])
        }
    };
    let data = &mut func.dfg.insts[inst];
    data.op = last;
    data.attrs.clear();
    data.args.clear();
    data.args.extend(args);
}

#[cfg(test)]
mod tests {
    use super::{BELOW_TWO_TO_32, multiply_by_reciprocals};
    use crate::ir::entities::Value;
    use crate::ir::ops::ThreadOp;
    use crate::text::parse::parse_thread;
    use crate::verify::verify;

    /// How many instructions the pass changes in a kernel with these lines, and the divisions that are left.
    fn changed(lines: &str) -> (usize, usize) {
        let text = format!("thread @k(v0: i32, v1: i32, v2: i64) warps(4) {{\n{lines}\n}}");
        let mut func = parse_thread(&text).unwrap_or_else(|errors| panic!("{errors:?}\n{text}"));
        let count = multiply_by_reciprocals(&mut func);
        assert_eq!(verify(&func), Ok(()), "{func}");
        let divides = |op: ThreadOp| {
            let ops = [
                ThreadOp::Sdiv,
                ThreadOp::Udiv,
                ThreadOp::Srem,
                ThreadOp::Urem,
            ];
            ops.contains(&op)
        };
        let left = func.all_insts();
        let left = left.filter(|&(_, inst)| divides(func.dfg.insts[inst].op));
        (count, left.count())
    }

    /// Quotient and remainder of numbers of 8 bits by the formula.
    fn by_formula(n: u8, d: u8) -> (u8, u8) {
        let reciprocal = 255 / d;
        let quotient = ((u16::from(n) * u16::from(reciprocal)) >> 8) as u8;
        let rest = n - quotient * d;
        match rest >= d {
            true => (quotient + 1, rest - d),
            false => (quotient, rest),
        }
    }

    #[test]
    fn the_formula_is_right_for_all_numbers_of_8_bits() {
        for d in 1..=255 {
            for n in 0..=255 {
                assert_eq!(by_formula(n, d), (n / d, n % d), "{n} / {d}");
            }
        }
    }

    /// What is divided by magnitudes of 32 bits by the formula, where the reciprocal of floats is some units in the last place off.
    fn by_floats(n: u32, d: u32, off: i32) -> (u32, u32) {
        let inverse = 1.0 / d as f32;
        let inverse = f32::from_bits(inverse.to_bits().wrapping_add_signed(off));
        let first = (inverse * f32::from_bits(BELOW_TWO_TO_32 as u32)) as u32;
        let high = |a: u32, b: u32| ((u64::from(a) * u64::from(b)) >> 32) as u32;
        let reciprocal = first + high(first, first.wrapping_mul(d).wrapping_neg());
        let quotient = high(n, reciprocal);
        let rest = n - quotient * d;
        match rest >= d {
            true => (quotient + 1, rest - d),
            false => (quotient, rest),
        }
    }

    #[test]
    fn floats_give_quotients_of_signed_numbers() {
        let mut state = 1_u32;
        let mut random = || {
            state = state.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
            (state >> (state >> 28) ^ state).wrapping_mul(277_803_737)
        };
        let mut numbers: Vec<u32> = Vec::new();
        for bit in 0..32 {
            numbers.extend([(1 << bit) - 1, 1 << bit, (1_u32 << bit) + 1]);
        }
        numbers.extend((0..400).map(|i| random() >> (1 + i % 31)));
        numbers.retain(|&n| n <= 1 << 31);
        for &d in numbers.iter().filter(|&&d| d != 0) {
            let last = (1 << 31) / d * d;
            for n in numbers.iter().copied().chain([last, last - 1, last - d]) {
                for off in [-1, 0, 1] {
                    let (quotient, rest) = by_floats(n, d, off);
                    assert_eq!((quotient, rest), (n / d, n % d), "{n} / {d}, {off}");
                }
            }
        }
    }

    #[test]
    fn remainders_of_natural_sums_are_computed_from_that_of_the_number() {
        let sums = |more: &str, first: &str| {
            let text = format!(
                "thread @k(v0: i32, v1: i32) warps(4) {{
                block0:
                    v2 = const {{value = {more}}} : i32
                    v3 = iadd v0, v2 : i32
                    v4 = srem v0, v1 {first}: i32
                    v5 = srem v3, v1 {{natural}} : i32
                    return
                }}"
            );
            let mut func = parse_thread(&text).unwrap();
            assert_eq!(multiply_by_reciprocals(&mut func), 2);
            assert_eq!(verify(&func), Ok(()), "{func}");
            let sums = func.all_insts().filter(|&(_, inst)| {
                let data = &func.dfg.insts[inst];
                let is_less = |&value: &Value| {
                    func.dfg
                        .def_inst(value)
                        .is_some_and(|inst| func.dfg.insts[inst].op == ThreadOp::Umin)
                };
                data.op == ThreadOp::Iadd && data.args.iter().any(is_less)
            });
            sums.count()
        };
        assert_eq!(sums("8", "{natural} "), 1);
        // What is added may be what takes a number below zero, and another number may be negative.
        assert_eq!(sums("-8", "{natural} "), 0);
        assert_eq!(sums("8", ""), 0);
    }

    #[test]
    fn several_elements_by_one_number_share_its_reciprocal() {
        let block = |scalar: &str, ty: &str| {
            format!(
                "block0:
                v3 = splat {scalar} : {ty} x 4
                v4 = splat {scalar} : {ty} x 4
                v5 = sdiv v3, v4 : {ty} x 4
                v6 = srem v3, v4 : {ty} x 4
                v7 = udiv v3, v4 : {ty} x 4
                return"
            )
        };
        assert_eq!(changed(&block("v2", "i64")), (3, 2));
        assert_eq!(changed(&block("v1", "i32")), (2, 1));
        let few = "block0:\nv3 = sdiv v2, v2 : i64\nv4 = srem v2, v2 : i64\nreturn";
        assert_eq!(changed(few), (0, 2));
    }

    #[test]
    fn divisors_that_stay_the_same_in_a_loop_are_divided_by_once() {
        let looped = |divisor: &str| {
            format!(
                "block0:
                v3 = const {{value = 0}} : i32
                jump block1(v3)
            block1(v4: i32):
                v5 = const {{value = 1}} : i32
                v6 = iadd v4, v5 : i32
                v7 = udiv v6, {divisor} : i32
                v8 = icmp v7, v0 {{ipred = slt}} : i1
                brif v8, block1(v6), block2
            block2:
                return"
            )
        };
        assert_eq!(changed(&looped("v1")), (1, 1));
        assert_eq!(changed(&looped("v6")), (0, 1));
        assert_eq!(changed(&looped("v5")), (0, 1));
    }
}
