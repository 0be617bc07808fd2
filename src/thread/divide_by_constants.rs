//! Divisions by numbers that are known: of numbers that are not negative by a product and a shift.
//!
//! ```text
//!                                      h = umulhi a, m
//! q = sdiv a, b {natural}       =>     q = ushr h, s
//! r = srem a, b {natural}              r = isub a, (imul q, b)
//! ```
//!
//! - **Natural numbers**, which are not negative as signed ones, by a power of two: a shift, and a mask. With a sign the assembler
//!   takes three instructions, two of them for what rounds to zero.
//! - **Natural numbers of 32 bits** by others: with `l` the bits of `b - 1` and `s = l - 1`, `m = floor(2^(31 + l) / b) + 1` has 32 bits, and
//!   `m b = 2^(31 + l) + e` with `0 < e <= b <= 2^l`. So `a m / 2^(31 + l)` is above `a / b` by `a e / (b 2^(31 + l)) < 1 / b`, as `a < 2^31`, and has the same
//!   whole part (T. Granlund and P. Montgomery, "Division by invariant integers using multiplication", 1994). ptxas 13.0 takes seven
//!   instructions for a reciprocal at run time, and then eleven for a signed quotient by 113 and nine for a remainder.
//! - **Remainders of others**: from quotients, as magnitudes are not needed then. By powers of two they stay.

use rustc_hash::FxHashMap;

use crate::ir::attrs::{Attr, Attrs, make};
use crate::ir::dfg::{InstData, SourceLoc, ValueList};
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::function::ThreadFunction;
use crate::ir::ops::ThreadOp;
use crate::ir::types::ThreadType;

/// Takes divisions by constants apart; gives how many.
pub fn divide_by_constants(func: &mut ThreadFunction) -> usize {
    let blocks = func.order.blocks.clone();
    blocks.into_iter().map(|block| in_block(func, block)).sum()
}

/// A division by a number that is known, above one.
#[derive(Clone, Copy)]
struct Division {
    op: ThreadOp,
    a: Value,
    b: Value,
    by: u64,
    is_natural: bool,
}

impl Division {
    fn of(func: &ThreadFunction, inst: Inst) -> Option<Division> {
        let data = &func.dfg.insts[inst];
        if !matches!(
            data.op,
            ThreadOp::Sdiv | ThreadOp::Srem | ThreadOp::Udiv | ThreadOp::Urem
        ) {
            return None;
        }
        let &[a, b] = data.args.as_slice() else {
            return None;
        };
        let bits = func.dfg.ty(b).elem.bits();
        let by = constant(func, b)?;
        // As a signed number it would be negative with the highest bit.
        let is_above_one = 1 < by && by >> (bits - 1) == 0;
        is_above_one.then_some(Division {
            op: data.op,
            a,
            b,
            by,
            is_natural: data.natural().is_some(),
        })
    }

    fn is_remainder(self) -> bool {
        matches!(self.op, ThreadOp::Srem | ThreadOp::Urem)
    }

    /// By what its quotient is known.
    fn key(self) -> (ThreadOp, Value, u64, bool) {
        (self.quotient_op(), self.a, self.by, self.is_natural)
    }

    /// The op of the quotient.
    fn quotient_op(self) -> ThreadOp {
        match self.op {
            ThreadOp::Srem => ThreadOp::Sdiv,
            ThreadOp::Urem => ThreadOp::Udiv,
            op => op,
        }
    }
}

fn constant(func: &ThreadFunction, mut value: Value) -> Option<u64> {
    loop {
        let data = &func.dfg.insts[func.dfg.def_inst(value)?];
        match data.op {
            ThreadOp::Const => return data.value().map(|&v| v & func.dfg.ty(value).elem.mask()),
            ThreadOp::Splat => value = data.args[0],
            _ => return None,
        }
    }
}

fn in_block(func: &mut ThreadFunction, block: Block) -> usize {
    let list = func.order.insts(block).to_vec();
    let mut made = Vec::with_capacity(list.len());
    let mut quotients = FxHashMap::default();
    let mut count = 0;
    for inst in list {
        let division = Division::of(func, inst);
        let loc = func.dfg.insts[inst].loc;
        let mut before = Before {
            func,
            made: &mut made,
            loc,
        };
        let becomes = division.and_then(|it| becomes(&mut before, it, &mut quotients));
        if let Some((op, args)) = becomes {
            let data = &mut func.dfg.insts[inst];
            data.op = op;
            data.attrs.clear();
            data.args = args;
            count += 1;
        }
        if let Some(division) = division.filter(|it| !it.is_remainder()) {
            let result = func.dfg.insts[inst].results[0];
            quotients.insert(division.key(), result);
        }
        made.push(inst);
    }
    if count > 0 {
        func.order.replace(block, made);
    }
    count
}

/// Quotients of a block: by op, dividend, divisor, and whether the dividend is said to be natural. What is said of one division says nothing
/// of another.
type Quotients = FxHashMap<(ThreadOp, Value, u64, bool), Value>;

/// What a division becomes, if it does.
fn becomes(
    before: &mut Before<'_>,
    division: Division,
    quotients: &mut Quotients,
) -> Option<(ThreadOp, ValueList)> {
    let Division {
        a,
        b,
        by,
        is_natural,
        ..
    } = division;
    let ty = before.func.dfg.ty(b);
    if by.is_power_of_two() {
        let (op, number) = match division.is_remainder() {
            true => (ThreadOp::And, by - 1),
            false => (ThreadOp::Ushr, u64::from(by.ilog2())),
        };
        let number = is_natural.then(|| before.number(number, ty))?;
        return Some((op, ValueList::from_slice(&[a, number])));
    }
    let by_product = is_natural && ty.elem.bits() == 32;
    if !division.is_remainder() {
        return by_product.then(|| before.shifted_product(a, by, ty));
    }
    let op = division.quotient_op();
    let quotient = match quotients.get(&division.key()) {
        Some(&quotient) => quotient,
        None => {
            let (op, args) = match by_product {
                true => before.shifted_product(a, by, ty),
                false => (op, ValueList::from_slice(&[a, b])),
            };
            before.value(op, args, &[], ty)
        }
    };
    quotients.insert(division.key(), quotient);
    let whole = ValueList::from_slice(&[quotient, b]);
    let whole = before.value(ThreadOp::Imul, whole, &[], ty);
    Some((ThreadOp::Isub, ValueList::from_slice(&[a, whole])))
}

/// Makes instructions in front of others.
struct Before<'a> {
    func: &'a mut ThreadFunction,
    made: &'a mut Vec<Inst>,
    loc: SourceLoc,
}

impl Before<'_> {
    fn value(&mut self, op: ThreadOp, args: ValueList, attrs: &[Attr], ty: ThreadType) -> Value {
        let mut data = InstData::new(op, args.as_slice());
        data.attrs.extend(attrs.iter().cloned());
        data.loc = self.loc;
        let inst = self.func.dfg.make_inst(data, &[ty]);
        self.made.push(inst);
        self.func.dfg.insts[inst].results[0]
    }

    fn number(&mut self, number: u64, ty: ThreadType) -> Value {
        self.value(
            ThreadOp::Const,
            ValueList::new(),
            &[make::value(number)],
            ty,
        )
    }

    /// The quotient of a natural number of 32 bits by one that is no power of two.
    fn shifted_product(&mut self, a: Value, by: u64, ty: ThreadType) -> (ThreadOp, ValueList) {
        let (factor, shift) = factor_and_shift(by);
        let factor = self.number(factor, ty);
        let high = ValueList::from_slice(&[a, factor]);
        let high = self.value(ThreadOp::Umulhi, high, &[], ty);
        let shift = self.number(shift, ty);
        (ThreadOp::Ushr, ValueList::from_slice(&[high, shift]))
    }
}

/// By what natural numbers of 32 bits are multiplied, and by how many bits the high half of the product is shifted, for the quotient by a
/// number above one.
fn factor_and_shift(by: u64) -> (u64, u64) {
    let bits = u64::from((by - 1).ilog2() + 1);
    ((1 << (31 + bits)) / by + 1, bits - 1)
}

#[cfg(test)]
mod tests {
    use super::{divide_by_constants, factor_and_shift};
    use crate::text::parse::parse_thread;
    use crate::verify::verify;

    /// The ops of the first block after the pass, without constants.
    fn becomes(lines: &str) -> (usize, Vec<String>) {
        let text = format!(
            "thread @k(v0: i32, v10: i64) warps(4) {{\nblock0:\n
                v1 = const {{value = 113}} : i32
                v2 = const {{value = 64}} : i32
                v3 = const {{value = 64}} : i64
                v4 = const {{value = 7}} : i64
                v5 = splat v0 : i32 x 4
                v6 = const {{value = 113}} : i32 x 4
                {lines}\n    return\n}}"
        );
        let mut func = parse_thread(&text).unwrap_or_else(|errors| panic!("{errors:?}\n{text}"));
        let count = divide_by_constants(&mut func);
        assert_eq!(verify(&func), Ok(()), "{func}");
        let text = func.to_string();
        let body = text.lines().filter_map(|line| line.split(" = ").nth(1));
        let ops = body.map(|line| line.split(' ').next().unwrap_or("").to_owned());
        let ops = ops.filter(|op| !["const", "splat"].contains(&op.as_str()));
        (count, ops.collect())
    }

    #[test]
    fn products_give_the_quotients_of_natural_numbers() {
        let mut divisors: Vec<u64> = (2..2000).collect();
        for bits in 1..31 {
            divisors.extend([
                (1 << bits) + 1,
                (1 << bits) * 3 / 2 + 1,
                (1 << (bits + 1)) - 1,
            ]);
        }
        divisors.extend([0x7FFF_FFFF, 0x7FFF_FFFE, 0x4000_0001]);
        let largest = (1 << 31) - 1;
        for by in divisors {
            let (factor, shift) = factor_and_shift(by);
            assert!(factor < 1 << 32, "{by}");
            let last = largest / by * by;
            let multiples = [0, by, 2 * by, 1000 * by, last, last.saturating_sub(by)];
            let around = multiples
                .iter()
                .flat_map(|&m| [m.saturating_sub(1), m, m + 1]);
            let mixed = (0..64).map(|i: u64| i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 33);
            for a in around
                .chain(mixed)
                .chain([largest])
                .filter(|&a| a <= largest)
            {
                assert_eq!(((a * factor) >> 32) >> shift, a / by, "{a} / {by}");
            }
        }
    }

    #[test]
    fn natural_numbers_are_divided_by_products_shifts_and_masks() {
        for (lines, expected) in [
            ("v7 = sdiv v0, v1 {natural} : i32", &["umulhi", "ushr"][..]),
            ("v7 = udiv v0, v1 {natural} : i32", &["umulhi", "ushr"]),
            ("v7 = sdiv v5, v6 {natural} : i32 x 4", &["umulhi", "ushr"]),
            (
                "v7 = urem v0, v1 {natural} : i32",
                &["umulhi", "ushr", "imul", "isub"],
            ),
            ("v7 = sdiv v0, v2 {natural} : i32", &["ushr"]),
            ("v7 = srem v0, v2 {natural} : i32", &["and"]),
            ("v7 = sdiv v10, v3 {natural} : i64", &["ushr"]),
        ] {
            let (count, ops) = becomes(lines);
            assert_eq!(
                (count, &ops[..]),
                (
                    1,
                    &expected.iter().map(|&s| s.to_owned()).collect::<Vec<_>>()[..]
                ),
                "{lines}"
            );
        }
    }

    #[test]
    fn remainders_come_of_quotients() {
        let (count, ops) = becomes(
            "v7 = sdiv v0, v1 {natural} : i32
            v8 = srem v0, v1 {natural} : i32
            v9 = srem v10, v4 : i64",
        );
        let expected = ["umulhi", "ushr", "imul", "isub", "sdiv", "imul", "isub"];
        assert_eq!((count, ops), (3, expected.map(str::to_owned).to_vec()));
    }

    #[test]
    fn what_is_said_of_one_division_says_nothing_of_another() {
        let (count, ops) = becomes(
            "v7 = udiv v0, v1 {natural} : i32
            v8 = urem v0, v1 : i32",
        );
        let expected = ["umulhi", "ushr", "udiv", "imul", "isub"];
        assert_eq!((count, ops), (2, expected.map(str::to_owned).to_vec()));
    }

    #[test]
    fn what_may_be_negative_is_divided_as_it_was() {
        for line in [
            "v7 = sdiv v0, v1 : i32",
            "v7 = sdiv v0, v2 : i32",
            "v7 = srem v0, v2 : i32",
            "v7 = sdiv v10, v4 {natural} : i64",
        ] {
            assert_eq!(becomes(line).0, 0, "{line}");
        }
    }
}
