//! Between which numbers a value lies.
//!
//! Where a sum of 32 bits cannot wrap, a constant in it commutes with widening, so that addresses differ in a constant where indices do: counters of
//! loops with known bounds and remainders by constants are what such indices are made of. Arithmetic wraps: a result that might is taken to be any number.

use cranelift_entity::SecondaryMap;

use super::known_bits::constant;
use crate::ir::entities::Value;
use crate::ir::function::ThreadFunction;
use crate::ir::ops::ThreadOp;
use crate::ir::order::shorten;

/// The least and the largest signed number that a value can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) least: i64,
    pub(super) largest: i64,
}

impl Range {
    /// All numbers of a width.
    fn of_width(bits: u32) -> Range {
        let largest = i64::MAX >> (64 - bits.clamp(1, 64));
        Range {
            least: -largest - 1,
            largest,
        }
    }

    fn number(number: i64) -> Range {
        Range {
            least: number,
            largest: number,
        }
    }

    fn hull(self, other: Range) -> Range {
        Range {
            least: self.least.min(other.least),
            largest: self.largest.max(other.largest),
        }
    }

    fn known(self) -> Option<i64> {
        (self.least == self.largest).then_some(self.least)
    }

    /// These numbers, if all have room in a width; else they wrap.
    fn wrapped(least: i128, largest: i128, bits: u32) -> Range {
        let all = Range::of_width(bits);
        let fits = i128::from(all.least) <= least && largest <= i128::from(all.largest);
        match fits {
            true => Range {
                least: least as i64,
                largest: largest as i64,
            },
            false => all,
        }
    }

    /// Products with these numbers.
    fn times(self, other: Range, bits: u32) -> Range {
        let ends = |it: Range| [it.least, it.largest].map(i128::from);
        let all = ends(self).map(|x| ends(other).map(|y| x * y));
        let all = all.as_flattened();
        let (least, largest) = (all.iter().min(), all.iter().max());
        Range::wrapped(
            least.copied().unwrap_or(0),
            largest.copied().unwrap_or(0),
            bits,
        )
    }

    /// What each number becomes by a function that keeps their order.
    fn map(self, function: impl Fn(i64) -> i64) -> Range {
        Range {
            least: function(self.least),
            largest: function(self.largest),
        }
    }
}

/// What an op on two numbers of a width makes of such operands.
fn result(op: ThreadOp, a: Range, b: Range, bits: u32) -> Range {
    let all = Range::of_width(bits);
    let [(least, largest), (from, to)] =
        [a, b].map(|it| (i128::from(it.least), i128::from(it.largest)));
    // Divisors and distances are known, or nothing is said.
    let divisor = b.known().filter(|&by| by > 0);
    let distance = b
        .known()
        .filter(|&by| (0..i64::from(bits.min(62))).contains(&by));
    let is_natural = a.least >= 0;
    match (op, divisor, distance) {
        (ThreadOp::Iadd, ..) => Range::wrapped(least + from, largest + to, bits),
        (ThreadOp::Isub, ..) => Range::wrapped(least - to, largest - from, bits),
        (ThreadOp::Imul, ..) => a.times(b, bits),
        (ThreadOp::Shl, _, Some(by)) => a.times(Range::number(1 << by), bits),
        (ThreadOp::Sshr, _, Some(by)) => a.map(|x| x >> by),
        (ThreadOp::Ushr, _, Some(by)) if is_natural => a.map(|x| x >> by),
        (ThreadOp::Sdiv, Some(by), _) => a.map(|x| x / by),
        (ThreadOp::Udiv, Some(by), _) if is_natural => a.map(|x| x / by),
        (ThreadOp::Srem, Some(by), _) => Range {
            least: a.least.clamp(1 - by, 0),
            largest: a.largest.clamp(0, by - 1),
        },
        (ThreadOp::Urem, Some(by), _) => Range {
            least: 0,
            largest: if is_natural {
                a.largest.min(by - 1)
            } else {
                by - 1
            },
        },
        (ThreadOp::And, ..) => {
            let natural = [a, b].into_iter().filter(|it| it.least >= 0);
            let largest = natural.map(|it| it.largest).min();
            largest.map_or(all, |largest| Range { least: 0, largest })
        }
        (ThreadOp::Smin, ..) => Range {
            least: a.least.min(b.least),
            largest: a.largest.min(b.largest),
        },
        (ThreadOp::Smax, ..) => Range {
            least: a.least.max(b.least),
            largest: a.largest.max(b.largest),
        },
        _ => all,
    }
}

/// Ranges of the values of a thread function, of all elements of a pack.
#[derive(Clone, Debug, Default)]
pub(super) struct Ranges {
    /// None is any number.
    known: SecondaryMap<Value, Option<Range>>,
}

impl Ranges {
    /// The range of a value of so many bits.
    fn get(&self, value: Value, bits: u32) -> Range {
        self.known[value].unwrap_or(Range::of_width(bits))
    }

    /// States the range of a value from knowledge that its operands do not give.
    pub(super) fn set(&mut self, value: Value, range: Option<Range>) {
        self.known[value] = range;
    }

    /// Forgets the values from this number on.
    pub(super) fn forget(&mut self, values: u32) {
        shorten(&mut self.known, values);
    }

    /// Whether adding a number to a value of so many bits does not wrap, as signed numbers if `has_sign`, else as unsigned ones.
    pub(super) fn adds(&self, value: Value, number: i64, bits: u32, has_sign: bool) -> bool {
        let range = self.get(value, bits);
        let sum = Range::wrapped(
            i128::from(range.least) + i128::from(number),
            i128::from(range.largest) + i128::from(number),
            bits,
        );
        let fits = i128::from(sum.least) == i128::from(range.least) + i128::from(number)
            && i128::from(sum.largest) == i128::from(range.largest) + i128::from(number);
        fits && (has_sign || range.least >= 0 && sum.least >= 0)
    }

    /// Derives the range of a value that an instruction just made, of which these bits can be one.
    pub(super) fn derive(&mut self, func: &ThreadFunction, value: Value, possible: u64) {
        let Some(inst) = func.dfg.def_inst(value) else {
            return;
        };
        let data = &func.dfg.insts[inst];
        let bits = func.dfg.ty(value).elem.bits();
        let bits_of = |value: Value| func.dfg.ty(value).elem.bits();
        let arg = |i: usize| self.get(data.args[i], bits_of(data.args[i]));
        let found = match data.op {
            ThreadOp::Const => constant(func, value).map(Range::number),
            ThreadOp::Splat | ThreadOp::Sext => Some(arg(0)),
            ThreadOp::Rearrange => (0..data.args.len()).map(arg).reduce(Range::hull),
            ThreadOp::Select => Some(arg(1).hull(arg(2))),
            ThreadOp::Zext if arg(0).least >= 0 => Some(arg(0)),
            ThreadOp::Itrunc => {
                let whole = arg(0);
                let (least, largest) = (i128::from(whole.least), i128::from(whole.largest));
                Some(Range::wrapped(least, largest, bits))
            }
            _ if data.args.len() == 2 => Some(result(data.op, arg(0), arg(1), bits)),
            _ => None,
        };
        // Without a sign it is what its bits can make at most.
        let by_bits = possible >> (bits - 1).min(63) == 0;
        let by_bits = by_bits.then_some(Range {
            least: 0,
            largest: possible as i64,
        });
        let range = match (found, by_bits) {
            (Some(found), Some(by_bits)) => Some(Range {
                least: found.least.max(by_bits.least),
                largest: found.largest.min(by_bits.largest),
            }),
            (found, by_bits) => found.or(by_bits),
        };
        self.known[value] = range.filter(|it| bits > 1 && it.least <= it.largest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All ops on all numbers of some ranges of bytes.
    #[test]
    fn results_are_in_their_range() {
        let ends = [-128, -127, -65, -3, -1, 0, 1, 2, 5, 64, 100, 127];
        let ranges: Vec<Range> = ends
            .iter()
            .flat_map(|&least| ends.iter().map(move |&largest| Range { least, largest }))
            .filter(|it| it.least <= it.largest)
            .collect();
        let natural = |x: i64| x as u8;
        let apply = |op: ThreadOp, x: i64, y: i64| -> Option<i64> {
            let by = natural(y) & 7;
            let whole = match op {
                ThreadOp::Iadd => x + y,
                ThreadOp::Isub => x - y,
                ThreadOp::Imul => x * y,
                ThreadOp::Shl => x << by,
                ThreadOp::Sshr => x >> by,
                ThreadOp::Ushr => i64::from(natural(x) >> by),
                ThreadOp::Sdiv => x.checked_div(y)?,
                ThreadOp::Srem => x.checked_rem(y)?,
                ThreadOp::Udiv => i64::from(natural(x).checked_div(natural(y))?),
                ThreadOp::Urem => i64::from(natural(x).checked_rem(natural(y))?),
                ThreadOp::And => x & y,
                ThreadOp::Smin => x.min(y),
                ThreadOp::Smax => x.max(y),
                _ => return None,
            };
            Some(i64::from(whole as i8))
        };
        for op in [
            ThreadOp::Iadd,
            ThreadOp::Isub,
            ThreadOp::Imul,
            ThreadOp::Shl,
            ThreadOp::Sshr,
            ThreadOp::Ushr,
            ThreadOp::Sdiv,
            ThreadOp::Srem,
            ThreadOp::Udiv,
            ThreadOp::Urem,
            ThreadOp::And,
            ThreadOp::Smin,
            ThreadOp::Smax,
        ] {
            for &a in &ranges {
                for &b in &ranges {
                    let range = result(op, a, b, 8);
                    for x in [a.least, (a.least + a.largest) / 2, a.largest] {
                        for y in [b.least, (b.least + b.largest) / 2, b.largest] {
                            let Some(found) = apply(op, x, y) else {
                                continue;
                            };
                            let is_inside = range.least <= found && found <= range.largest;
                            assert!(
                                is_inside,
                                "{op} of {x} in {a:?} and {y} in {b:?}: {range:?}"
                            );
                        }
                    }
                }
            }
        }
        let narrow = |least, largest| Range { least, largest };
        assert_eq!(
            result(ThreadOp::Srem, Range::of_width(8), Range::number(10), 8),
            narrow(-9, 9)
        );
        assert_eq!(
            result(ThreadOp::Imul, narrow(0, 3), Range::number(40), 8),
            narrow(0, 120)
        );
        assert_eq!(
            result(ThreadOp::Imul, narrow(0, 4), Range::number(40), 8),
            Range::of_width(8)
        );
    }
}
