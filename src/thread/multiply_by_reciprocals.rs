//! Divisions by one number for many: by its reciprocal, which is computed once.
//!
//! ```text
//!                                      m = udiv 2^w - 1, d       where d is defined
//!                                      ..
//! q = udiv n, d                 =>     q0 = umulhi n, m
//!                                      r0 = isub n, (imul q0, d)
//!                                      q = q0 + 1 if r0 >= d, else q0
//! ```
//!
//! A division by a number that is known at run time alone takes some 20 instructions of 32 bits, the first of which are slow and depend on
//! the divisor, and one of 64 bits calls a function of about 80; this takes 5 and about 20, the first `udiv` apart. (Signed numbers are
//! divided as their magnitudes, for 5 more.) Persistent kernels find the place of each program by the same numbers, and kernels that
//! find rows and columns from the number of an element divide a block by one length. So the pass looks at divisors that stay
//! the same in a loop, of 64 bits also at blocks of elements with one divisor. Where 32 bits are divided outside of loops the assembler
//! shares what depends on the divisor by itself.
//!
//! With `m = floor((2^w - 1) / d)`, `m d >= 2^w - d`, so that `n / d - n m / 2^w = n (2^w - m d) / (2^w d) <= n / 2^w < 1`: what `umulhi`
//! gives is the quotient or one less (T. Granlund and P. Montgomery, "Division by invariant integers using multiplication", 1994, compute
//! two numbers in place of the correction). What a division by zero gives nobody knows, before as after.

use rustc_hash::FxHashMap;

use crate::analysis::loops::{Loops, home};
use crate::ir::attrs::{Attr, IntPred, make};
use crate::ir::dfg::{InstData, SourceLoc, ValueDef};
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::function::ThreadFunction;
use crate::ir::ops::ThreadOp;
use crate::ir::types::{Elem, ThreadType};

/// How often a loop is taken to run.
const ITERATIONS: u32 = 8;
/// Divisions by one number from which on its reciprocal pays: it takes a division itself.
const LEAST: u32 = 3;

/// A number by which is divided, and whether as a signed one.
type Divisor = (Value, bool);

/// What quotients by a number are computed from, one element each.
#[derive(Clone, Copy)]
struct Reciprocal {
    magnitude: Value,
    /// All ones where the number is negative.
    sign: Option<Value>,
    reciprocal: Value,
}

/// A quotient that may be one too small, what is left then, and whether it is.
#[derive(Clone, Copy)]
struct Parts {
    quotient: Value,
    rest: Value,
    is_less: Value,
    divisor: Value,
}

/// Computes quotients and remainders by reciprocals where these serve several; gives their number.
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
    divisions.retain(|(_, _, divisor)| weights[divisor] >= LEAST);
    let mut reciprocals: FxHashMap<Divisor, Reciprocal> = FxHashMap::default();
    let mut parts: FxHashMap<(Block, Value, Divisor), Parts> = FxHashMap::default();
    for &(block, inst, divisor) in &divisions {
        let by = match reciprocals.get(&divisor) {
            Some(&by) => by,
            None => {
                let Some(by) = reciprocal(func, divisor) else {
                    continue;
                };
                reciprocals.insert(divisor, by);
                by
            }
        };
        divide(func, block, inst, divisor, by, &mut parts);
    }
    divisions.len()
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

    /// All ones where it is negative, else zeros.
    fn sign(&mut self, value: Value) -> Value {
        let ty = self.func.dfg.ty(value);
        let shift = self.number(u64::from(ty.elem.bits()) - 1, ty);
        self.op(ThreadOp::Sshr, &[value, shift])
    }

    fn splat(&mut self, value: Value, count: u16) -> Value {
        let elem = self.func.dfg.ty(value).elem;
        match count {
            1 => value,
            _ => self.make(
                ThreadOp::Splat,
                &[value],
                &[],
                ThreadType::pack(elem, count),
            ),
        }
    }
}

/// The reciprocal of a number, where that is defined.
fn reciprocal(func: &mut ThreadFunction, (value, is_signed): Divisor) -> Option<Reciprocal> {
    let block = home(func, value)?;
    let place = match func.dfg.values[value].def {
        ValueDef::Result(inst, _) => {
            let insts = func.order.insts(block).iter();
            insts.take_while(|&&other| other != inst).count() + 1
        }
        ValueDef::Param(..) => 0,
    };
    let def = func.dfg.def_inst(value);
    let loc = def.map_or(SourceLoc::default(), |inst| func.dfg.insts[inst].loc);
    let mut at = Before {
        func,
        block,
        place,
        loc,
    };
    let (sign, magnitude) = match is_signed {
        true => (Some(at.sign(value)), at.op(ThreadOp::Iabs, &[value])),
        false => (None, value),
    };
    let ty = at.func.dfg.ty(value);
    let most = at.number(u64::MAX >> (64 - ty.elem.bits()), ty);
    let reciprocal = at.op(ThreadOp::Udiv, &[most, magnitude]);
    Some(Reciprocal {
        magnitude,
        sign,
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
    known: &mut FxHashMap<(Block, Value, Divisor), Parts>,
) {
    let data = &func.dfg.insts[inst];
    let (op, n, loc) = (data.op, data.args[0], data.loc);
    let insts = func.order.insts(block).iter();
    let place = insts.take_while(|&&other| other != inst).count();
    let mut at = Before {
        func,
        block,
        place,
        loc,
    };
    let ty = at.func.dfg.ty(n);
    let parts = match known.get(&(block, n, divisor)) {
        Some(&parts) => parts,
        None => {
            let magnitude = match by.sign {
                Some(_) => at.op(ThreadOp::Iabs, &[n]),
                None => n,
            };
            let reciprocal = at.splat(by.reciprocal, ty.count);
            let divisor_here = at.splat(by.magnitude, ty.count);
            let quotient = at.op(ThreadOp::Umulhi, &[magnitude, reciprocal]);
            let whole = at.op(ThreadOp::Imul, &[quotient, divisor_here]);
            let rest = at.op(ThreadOp::Isub, &[magnitude, whole]);
            let truth = ThreadType::pack(Elem::I1, ty.count);
            let is_less = at.make(
                ThreadOp::Icmp,
                &[rest, divisor_here],
                &[make::ipred(IntPred::Uge)],
                truth,
            );
            let parts = Parts {
                quotient,
                rest,
                is_less,
                divisor: divisor_here,
            };
            known.insert((block, n, divisor), parts);
            parts
        }
    };
    let is_quotient = matches!(op, ThreadOp::Sdiv | ThreadOp::Udiv);
    let (less, more) = match is_quotient {
        true => {
            let one = at.number(1, ty);
            let more = at.op(ThreadOp::Iadd, &[parts.quotient, one]);
            (parts.quotient, more)
        }
        false => {
            let more = at.op(ThreadOp::Isub, &[parts.rest, parts.divisor]);
            (parts.rest, more)
        }
    };
    let args = [parts.is_less, more, less];
    let (op, args) = match by.sign {
        None => (ThreadOp::Select, args.to_vec()),
        Some(sign) => {
            let magnitude = at.make(ThreadOp::Select, &args, &[], ty);
            let mut negates = at.sign(n);
            if is_quotient {
                let sign = at.splat(sign, ty.count);
                negates = at.op(ThreadOp::Xor, &[negates, sign]);
            }
            let other = at.op(ThreadOp::Xor, &[magnitude, negates]);
            (ThreadOp::Isub, vec![other, negates])
        }
    };
    let data = &mut func.dfg.insts[inst];
    data.op = op;
    data.args.clear();
    data.args.extend(args);
}

#[cfg(test)]
mod tests {
    use super::multiply_by_reciprocals;
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
        assert_eq!(changed(&block("v1", "i32")), (0, 3));
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
