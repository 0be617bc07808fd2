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
//! - **32 bits, signed or natural** (without a sign that would be negative): the reciprocal comes from that of floats, in seven
//!   instructions (`reciprocal_by_floats`). The assembler writes the same and more, a second correction and what a division by zero
//!   gives, and takes a third of a millisecond for each division besides (`benches/assembler.py`). So there is none left.
//! - **Others of 32 bits**: where a loop repeats them by one divisor.
//! - **64 bits**: a division calls a function of about 80 instructions; this takes about 20, the first `udiv` apart. That pays where a
//!   divisor stays the same in a loop, and for blocks of elements with one divisor.
//!
//! Signed numbers are divided as their magnitudes, those with `natural` as they are. What stays the same in loops, where programs find
//! their places again and again, is computed where the divisor is defined; else the reciprocal stands in front of the block's first
//! division. What is multiplied by quotients is the divisor's negative, which the machine adds in the same instruction.
//!
//! With `m = floor((2^w - 1) / d)`, `m d >= 2^w - d`, so that `n / d - n m / 2^w = n (2^w - m d) / (2^w d) <= n / 2^w < 1`: what `umulhi`
//! gives is the quotient or one less (T. Granlund and P. Montgomery, "Division by invariant integers using multiplication", 1994, compute
//! two numbers in place of the correction). What a division by zero gives nobody knows, before as after.
//!
//! Rows that wrap around are remainders of `n + c` for many constants `c`, and those are the remainders of `n % d + c` where `n` is not
//! negative and no sum overflows: known of natural numbers, else asked once for all of them. A kernel that compares the same
//! rows with a bound behind its loop then has `n` alone in a register all the while: of equal sums in front and behind the
//! assembler keeps all 16, and products of 128x128x128 spill.

use std::ops::{Deref, DerefMut};

use rustc_hash::FxHashMap;

use crate::analysis::loops::{Loops, home};
use crate::ir::attrs::{Attrs, IntPred};
use crate::ir::dfg::ValueDef;
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::function::ThreadFunction;
use crate::ir::level::Thread;
use crate::ir::maker::Maker;
use crate::ir::ops::ThreadOp;
use crate::ir::types::{Elem, ThreadType};

/// How often a loop is taken to run.
const ITERATIONS: u32 = 8;
/// Divisions by one number from which on its reciprocal pays in front of them: of 64 bits it takes a division itself.
const LEAST: u32 = 3;

/// `2^32 (1 - 2^-21)` as a float: times the float reciprocal of a number it is less than the true one times 2^32, by 2^-22 at least and
/// 2^-20 at most, whatever conversion (2^-24), reciprocal (2^-23) and product (2^-24) are off.
const BELOW_TWO_TO_32: i64 = 0x4F7F_FFF8;

/// As what numbers are divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Numbers {
    Signed,
    Unsigned,
    /// Without a sign, and it is known that none would be negative with one.
    Natural,
}

/// A number by which is divided.
type Divisor = (Value, Numbers);

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
    /// Whether the dividend is negative, where it is not natural.
    is_negative: Option<Value>,
    quotient: Value,
    rest: Value,
    magnitude: Value,
    negative: Value,
}

/// What has been computed: by block, dividend and divisor.
#[derive(Default)]
struct Known {
    /// And whether the dividend is natural.
    parts: FxHashMap<(Block, Value, Divisor, bool), Parts>,
    /// Remainders, and whether of natural numbers.
    remainders: FxHashMap<(Block, Value, Divisor), (Value, bool)>,
    /// What stands for a number in sums of which there are remainders.
    instead: FxHashMap<(Block, Value, Divisor), Value>,
    /// The largest constants of such sums, and how many there are.
    sums: FxHashMap<(Block, Value, Divisor), (u64, u32)>,
}

/// A sum with a constant that is not negative.
fn sum_with_constant(func: &ThreadFunction, n: Value) -> Option<(Value, Value, u64)> {
    let def = |value: Value| func.dfg.def_inst(value).map(|inst| &func.dfg.insts[inst]);
    let sum = def(n).filter(|data| data.op == ThreadOp::Iadd)?;
    let (&base, &more) = sum.args.first().zip(sum.args.get(1))?;
    let number = def(more).filter(|data| data.op == ThreadOp::Const)?;
    let number = *number.value()?;
    let highest = func.dfg.ty(more).elem.bits() - 1;
    (number >> highest == 0).then_some((base, more, number))
}

/// Computes quotients and remainders by reciprocals: of 32 bits with a sign or natural, and others where one serves several. Gives
/// their number.
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
    for &(block, inst, divisor) in &divisions {
        let data = &func.dfg.insts[inst];
        if matches!(data.op, ThreadOp::Srem | ThreadOp::Urem)
            && let Some((base, _, number)) = sum_with_constant(func, data.args[0])
        {
            let (most, count) = known.sums.entry((block, base, divisor)).or_default();
            *most = number.max(*most);
            *count += 1;
        }
    }
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
fn by_floats(ty: ThreadType, numbers: Numbers) -> bool {
    numbers != Numbers::Unsigned && ty.elem.bits() == 32
}

/// By what an instruction divides, if it is one number for all elements and not known.
fn divisor(func: &ThreadFunction, inst: Inst) -> Option<Divisor> {
    let data = &func.dfg.insts[inst];
    let numbers = match data.op {
        ThreadOp::Sdiv | ThreadOp::Srem => Numbers::Signed,
        ThreadOp::Udiv | ThreadOp::Urem if data.natural().is_some() => Numbers::Natural,
        ThreadOp::Udiv | ThreadOp::Urem => Numbers::Unsigned,
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
    (fits && !is_known).then_some((value, numbers))
}

/// Makes what stands in front of a division, or behind its divisor.
struct Arithmetic<'a>(Maker<'a, Thread>);

impl<'a> Deref for Arithmetic<'a> {
    type Target = Maker<'a, Thread>;

    fn deref(&self) -> &Maker<'a, Thread> {
        &self.0
    }
}

impl<'a> DerefMut for Arithmetic<'a> {
    fn deref_mut(&mut self) -> &mut Maker<'a, Thread> {
        &mut self.0
    }
}

impl Arithmetic<'_> {
    /// Whether it is negative, and the number with the other sign if it is. (`iabs` takes two instructions of the machine more: the
    /// assembler lets one be skipped here, and at the end the same condition gives the sign back.)
    fn magnitude(&mut self, n: Value) -> (Value, Value) {
        let is_negative = self.is_negative(n);
        let magnitude = self.negated_if(is_negative, n);
        (is_negative, magnitude)
    }

    fn is_negative(&mut self, n: Value) -> Value {
        let ty = self.func.dfg.ty(n);
        let zero = self.number(0, ty);
        self.compare(IntPred::Slt, n, zero)
    }

    fn negated_if(&mut self, condition: Value, n: Value) -> Value {
        let ty = self.func.dfg.ty(n);
        let zero = self.number(0, ty);
        let negative = self.op(ThreadOp::Isub, &[zero, n]);
        self.value(ThreadOp::Select, &[condition, negative, n], &[], ty)
    }

    /// The reciprocal of a magnitude of at most 2^31, as `umulhi` takes it.
    ///
    /// With `x = 2^32 / d`, floats give `z < x` with `1 - z / x` at most 2^-20 and one rounding, and a step of Newton's
    /// `floor(z (2 - z / x))`, which is less than `x` and more than `x - 1 - 1 / x - 2^-8`. Of a dividend of at most 2^31 too, `n / d` is
    /// then less than 1 + (1 + 1 / 2 + 2^-8) / 2 more than what `umulhi` gives: one correction will do.
    fn reciprocal_by_floats(&mut self, divisor: Value, negative: Value) -> Value {
        let int = self.func.dfg.ty(divisor);
        let float = ThreadType::pack(Elem::F32, 1);
        let number = self.value(ThreadOp::Uitofp, &[divisor], &[], float);
        let inverse = self.op(ThreadOp::RcpFtz, &[number]);
        let scale = self.number(BELOW_TWO_TO_32, float);
        let scaled = self.op(ThreadOp::Fmul, &[inverse, scale]);
        let first = self.value(ThreadOp::Fptoui, &[scaled], &[], int);
        let missing = self.op(ThreadOp::Imul, &[first, negative]);
        let step = self.op(ThreadOp::Umulhi, &[first, missing]);
        self.op(ThreadOp::Iadd, &[first, step])
    }

    /// A dividend with the same remainder: of the sum of a number and a constant, the number's remainder in its place.
    fn reduced(
        &mut self,
        block: Block,
        n: Value,
        divisor: Divisor,
        is_natural: bool,
        known: &mut Known,
    ) -> Value {
        let Some((base, more, _)) = sum_with_constant(self.func, n) else {
            return n;
        };
        let key = (block, base, divisor);
        let Some(&(remainder, is_base_natural)) = known.remainders.get(&key) else {
            return n;
        };
        // A sum of natural numbers that is natural did not wrap around, and that with the remainder is no longer.
        if is_natural && is_base_natural {
            return self.op(ThreadOp::Iadd, &[remainder, more]);
        }
        let Some(&(most, count)) = known.sums.get(&key) else {
            return n;
        };
        if count < LEAST {
            return n;
        }
        let instead = match known.instead.get(&key) {
            Some(&instead) => instead,
            None => {
                let instead = self.remainder_or_itself(base, remainder, most);
                known.instead.insert(key, instead);
                instead
            }
        };
        self.op(ThreadOp::Iadd, &[instead, more])
    }

    /// What a number has to be instead of itself, so that sums with it have the same remainder: its own remainder, if no sum
    /// with up to `most` overflows. That is asked here, as nobody knows.
    fn remainder_or_itself(&mut self, n: Value, remainder: Value, most: u64) -> Value {
        let ty = self.func.dfg.ty(n);
        let limit = (1 << (ty.elem.bits() - 1)) - most;
        let limit = self.number(limit as i64, ty);
        let fits = self.compare(IntPred::Ult, n, limit);
        self.value(ThreadOp::Select, &[fits, remainder, n], &[], ty)
    }

    fn splat(&mut self, value: Value, count: u16) -> Value {
        let ty = self.func.dfg.ty(value);
        let elem = ty.elem;
        match count {
            _ if ty.count == count => value,
            _ => self.value(
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
    (value, numbers): Divisor,
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
    let mut at = Arithmetic(match from {
        Some(inst) => Maker::near(func, inst),
        None => Maker::new(func),
    });
    let magnitude = match numbers {
        Numbers::Signed => at.magnitude(value).1,
        Numbers::Unsigned | Numbers::Natural => value,
    };
    let ty = at.func.dfg.ty(value);
    let zero = at.number(0, ty);
    let negative = at.op(ThreadOp::Isub, &[zero, magnitude]);
    let reciprocal = match by_floats(ty, numbers) {
        true => at.reciprocal_by_floats(magnitude, negative),
        false => {
            let most = at.number(-1, ty);
            at.op(ThreadOp::Udiv, &[most, magnitude])
        }
    };
    at.put(block, place);
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
    let (op, n, result) = (data.op, data.args[0], data.results[0]);
    let is_natural = data.natural().is_some();
    let (value, numbers) = divisor;
    let is_signed = numbers == Numbers::Signed;
    let insts = func.order.insts(block).iter();
    let place = insts.take_while(|&&other| other != inst).count();
    let mut at = Arithmetic(Maker::near(func, inst));
    let ty = at.func.dfg.ty(n);
    let is_quotient = matches!(op, ThreadOp::Sdiv | ThreadOp::Udiv);
    let n = match numbers != Numbers::Unsigned && !is_quotient {
        true => {
            let less = at.reduced(block, n, divisor, is_natural, known);
            let remainder = (result, is_natural);
            known.remainders.insert((block, n, divisor), remainder);
            less
        }
        false => n,
    };
    let parts = match known.parts.get(&(block, n, divisor, is_natural)) {
        Some(&parts) => parts,
        None => {
            let (is_negative, dividend) = match is_signed && !is_natural {
                true => {
                    let (is_negative, magnitude) = at.magnitude(n);
                    (Some(is_negative), magnitude)
                }
                false => (None, n),
            };
            let reciprocal = at.splat(by.reciprocal, ty.count);
            let magnitude = at.splat(by.magnitude, ty.count);
            let negative = at.splat(by.negative, ty.count);
            let quotient = at.op(ThreadOp::Umulhi, &[dividend, reciprocal]);
            let whole = at.op(ThreadOp::Imul, &[quotient, negative]);
            let rest = at.op(ThreadOp::Iadd, &[whole, dividend]);
            let parts = Parts {
                is_negative,
                quotient,
                rest,
                magnitude,
                negative,
            };
            known.parts.insert((block, n, divisor, is_natural), parts);
            parts
        }
    };
    // The last of these: it becomes the instruction itself.
    let (last, args) = match is_quotient {
        true => {
            let is_less = at.compare(IntPred::Uge, parts.rest, parts.magnitude);
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
    let is_negative = match (is_quotient, parts.is_negative) {
        (true, None) if is_signed => {
            let is_negative = at.is_negative(value);
            Some(at.splat(is_negative, ty.count))
        }
        (true, Some(_)) => {
            let value = at.splat(value, ty.count);
            let signs = at.op(ThreadOp::Xor, &[n, value]);
            Some(at.is_negative(signs))
        }
        (_, is_negative) => is_negative,
    };
    let (last, args) = match is_negative {
        None => (last, args),
        Some(is_negative) => {
            let magnitude = at.value(last, &args, &[], ty);
            let zero = at.number(0, ty);
            let negative = at.op(ThreadOp::Isub, &[zero, magnitude]);
            (ThreadOp::Select, vec![is_negative, negative, magnitude])
        }
    };
    at.put(block, place);
    let data = &mut func.dfg.insts[inst];
    data.op = last;
    data.attrs.clear();
    data.args.clear();
    data.args.extend(args);
}

#[cfg(test)]
mod tests {
    use super::{BELOW_TWO_TO_32, multiply_by_reciprocals};
    use crate::ir::attrs::{Attrs, IntPred};
    use crate::ir::entities::Value;
    use crate::ir::function::ThreadFunction;
    use crate::ir::ops::ThreadOp;
    use crate::text::parse::parse_thread;
    use crate::verify::verify;

    /// How many instructions the pass changes in a kernel with these lines, and the divisions that are left.
    fn changed(lines: &str) -> (usize, usize) {
        let func = after(lines);
        (func.0, count_of(&func.1, &DIVISIONS))
    }

    const DIVISIONS: [ThreadOp; 4] = [
        ThreadOp::Sdiv,
        ThreadOp::Udiv,
        ThreadOp::Srem,
        ThreadOp::Urem,
    ];

    fn count_of(func: &ThreadFunction, ops: &[ThreadOp]) -> usize {
        let insts = func.all_insts();
        insts
            .filter(|&(_, inst)| ops.contains(&func.dfg.insts[inst].op))
            .count()
    }

    /// How many instructions the pass changes in a kernel with these lines, and the kernel then.
    fn after(lines: &str) -> (usize, ThreadFunction) {
        let text = format!("thread @k(v0: i32, v1: i32, v2: i64) warps(4) {{\n{lines}\n}}");
        let mut func = parse_thread(&text).unwrap_or_else(|errors| panic!("{errors:?}\n{text}"));
        let count = multiply_by_reciprocals(&mut func);
        assert_eq!(verify(&func), Ok(()), "{func}");
        (count, func)
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

    /// Near what the reciprocal is worst at: the least and largest divisors, those that floats round, dividends about multiples.
    #[test]
    fn floats_are_right_where_they_are_worst() {
        let near = |x: u32, by: u32| x.saturating_sub(by).max(1)..=(x + by).min(1 << 31);
        let divisors = near(1, 40)
            .chain(near(1 << 12, 3))
            .chain(near(1 << 16, 3))
            .chain(near(1 << 24, 12))
            .chain(near(3 << 23, 6))
            .chain(near(1 << 30, 12))
            .chain(near(1 << 31, 40));
        for d in divisors {
            let whole = (1_u32 << 31) / d;
            let multiples = (0..40).chain(whole.saturating_sub(40)..=whole);
            let about = multiples.flat_map(|m| {
                let n = m.saturating_mul(d);
                n.saturating_sub(2)..=n.saturating_add(2).min(1 << 31)
            });
            for n in about
                .chain((1 << 31) - 40..=1 << 31)
                .filter(|&n| n <= 1 << 31)
            {
                for off in [-1, 0, 1] {
                    let (quotient, rest) = by_floats(n, d, off);
                    assert_eq!((quotient, rest), (n / d, n % d), "{n} / {d}, {off}");
                }
            }
        }
    }

    /// Sums of a number and constants, by whose remainders the pass adds: the sums with a remainder, and whether it asks if they fit.
    fn rows(base: &str, sums: &[(i32, &str)]) -> (usize, usize) {
        let mut lines = format!("block0:\nv3 = srem v0, v1 {base}: i32\n");
        for (i, (more, flag)) in sums.iter().enumerate() {
            let v = 4 + 3 * i;
            lines += &format!(
                "v{v} = const {{value = {more}}} : i32\n\
                 v{} = iadd v0, v{v} : i32\n\
                 v{} = srem v{}, v1 {flag}: i32\n",
                v + 1,
                v + 2,
                v + 1
            );
        }
        let (count, func) = after(&format!("{lines}return"));
        assert_eq!(count, 1 + sums.len());
        let guards = func.all_insts().filter(|&(_, inst)| {
            let data = &func.dfg.insts[inst];
            data.op == ThreadOp::Icmp && data.ipred() == Some(&IntPred::Ult)
        });
        let plain = func.all_insts().filter(|&(_, inst)| {
            let data = &func.dfg.insts[inst];
            data.op == ThreadOp::Iadd && data.args[0] == Value::from_u32(0)
        });
        let plain = plain.count();
        (plain, guards.count())
    }

    #[test]
    fn remainders_of_sums_are_computed_from_that_of_the_number() {
        let natural = "{natural} ";
        // The old sums stay until what is dead is dropped; none more is made of the number itself.
        assert_eq!(rows(natural, &[(8, natural)]), (1, 0));
        let four = [(8, ""), (16, ""), (24, ""), (32, "")];
        assert_eq!(rows("", &four), (4, 1));
        // Few sums stay as they are, and so do those with what is negative.
        assert_eq!(rows("", &four[..2]), (2, 0));
        assert_eq!(rows("", &[(-8, ""), (-16, ""), (-24, "")]), (3, 0));
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
    fn quotient_and_remainder_of_two_numbers_share_a_product() {
        let lines = "block0:
            v3 = splat v2 : i64 x 4
            v4 = splat v2 : i64 x 4
            v5 = udiv v3, v4 : i64 x 4
            v6 = urem v3, v4 : i64 x 4
            v7 = udiv v4, v4 : i64 x 4
            return";
        let (count, func) = after(lines);
        assert_eq!(count, 3);
        // Of v3 and of v4; one more makes the reciprocal.
        assert_eq!(count_of(&func, &[ThreadOp::Umulhi]), 2, "{func}");
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
