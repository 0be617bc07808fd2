//! Comparisons that come out the same for all elements of all programs, as the ranges of what they compare do not overlap.
//!
//! ```text
//! for t in 0..64 {                          for t in 0..64 {
//!     i = iadd (splat 16 t), arange             i = iadd (splat 16 t), arange        arange below 16
//!     m = icmp slt i, 1024             =>       m = const true
//!     x = load p(i), m                          x = load p(i), m
//! }                                         }
//! ```
//!
//! Masks against sizes that are constants of the kernel are often such: of the columns of a head, of a loop over whole blocks, of block
//! pointers. A load without a mask is wider, is copied by the engines that take no mask, and is one instruction.
//!
//! What [`Axis`] proves counts, whatever the arguments are. What was divided by a number that could be zero is not counted, as a mask
//! may stand there for that case.

use rustc_hash::FxHashMap;

use super::edit::{self, Fate};
use crate::analysis::axis::Axis;
use crate::ir::attrs::{Attrs, IntPred};
use crate::ir::dfg::ValueDef;
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::function::TileFunction;
use crate::ir::ops::TileOp;
use crate::ir::predicates::Outcomes;
use crate::ir::types::Elem;

/// How deep expressions are followed.
const MAX_DEPTH: u32 = 100;

/// Replaces comparisons that are settled by constants; gives how many.
pub fn settle_comparisons(func: &mut TileFunction) -> usize {
    let mut comparisons = func.insts_with(TileOp::Icmp).peekable();
    if comparisons.peek().is_none() {
        return 0;
    }
    let axis = Axis::compute(func);
    let mut ranges = Ranges {
        func,
        axis: &axis,
        owners: func
            .insts_with(TileOp::For)
            .flat_map(|(_, inst)| func.regions(inst).map(move |body| (body, inst)))
            .collect(),
        sound: FxHashMap::default(),
    };
    let mut settled = FxHashMap::default();
    for (_, inst) in comparisons {
        let data = &func.dfg.insts[inst];
        // One bit has a sign for some and none for others.
        if func.dfg.ty(data.args[0]).elem == Elem::I1 {
            continue;
        }
        let sides = [0, 1].map(|i| ranges.of(data.args[i]));
        if let ([Some(a), Some(b)], Some(&pred)) = (sides, data.ipred())
            && let Some(holds) = holds(pred, a, b)
        {
            settled.insert(inst, holds);
        }
    }
    if settled.is_empty() {
        return 0;
    }
    edit::rewrite(func, |edit, inst| match settled.get(&inst) {
        Some(&holds) => {
            let ty = edit.ty(edit.func.dfg.insts[inst].results[0]);
            Fate::Replace(edit.constant(u64::from(holds), ty))
        }
        None => Fate::Keep,
    })
}

/// The lowest and the highest number that a value can be, as a signed number.
type Range = (i64, i64);

/// Whether a comparison holds for all numbers of two ranges, or for none.
fn holds(pred: IntPred, a: Range, b: Range) -> Option<bool> {
    let has_sign = a.0 < 0 || b.0 < 0;
    if has_sign && pred.is_signed() == Some(false) {
        return None;
    }
    let mut possible = Outcomes::empty();
    possible.set(Outcomes::LESS, a.0 < b.1);
    possible.set(Outcomes::EQUAL, a.0 <= b.1 && b.0 <= a.1);
    possible.set(Outcomes::GREATER, b.0 < a.1);
    match pred.outcomes() {
        fits if fits.contains(possible) => Some(true),
        fits if !fits.intersects(possible) => Some(false),
        _ => None,
    }
}

/// The ranges of values of a function.
struct Ranges<'a> {
    func: &'a TileFunction,
    axis: &'a Axis,
    /// The loop of each body.
    owners: FxHashMap<Block, Inst>,
    /// Which values rest on no division by what could be zero.
    sound: FxHashMap<Value, bool>,
}

impl Ranges<'_> {
    /// The range of all elements of a value, if it is known.
    fn of(&mut self, value: Value) -> Option<Range> {
        let info = self.axis.info(value);
        let range = match info.constant() {
            Some(number) => (number, number),
            None => (0, i64::try_from(info.natural()?).ok()?),
        };
        self.is_sound(value, MAX_DEPTH).then_some(range)
    }

    /// Whether a value is computed without divisions by what could be zero. What a loop carries is not followed.
    fn is_sound(&mut self, value: Value, depth: u32) -> bool {
        if let Some(&known) = self.sound.get(&value) {
            return known;
        }
        let Some(depth) = depth.checked_sub(1) else {
            return false;
        };
        let func = self.func;
        let is_sound = match func.dfg.values[value].def {
            ValueDef::Param(block, index) => {
                let owner = self.owners.get(&block).copied();
                owner.is_some_and(|inst| {
                    let bounds = &func.dfg.insts[inst].args[..2];
                    index == 0 && bounds.iter().all(|&bound| self.is_sound(bound, depth))
                })
            }
            ValueDef::Result(inst, _) => {
                let data = &func.dfg.insts[inst];
                let divides = matches!(
                    data.op,
                    TileOp::Sdiv | TileOp::Udiv | TileOp::Srem | TileOp::Urem
                );
                let is_zero =
                    |divisor: Value| self.axis.info(divisor).constant().is_none_or(|n| n == 0);
                let mut args = data.args.iter();
                !(divides && is_zero(data.args[1]))
                    && func.regions(inst).next().is_none()
                    && args.all(|&arg| self.is_sound(arg, depth))
            }
        };
        self.sound.insert(value, is_sound);
        is_sound
    }
}

#[cfg(test)]
mod tests {
    use super::{holds, settle_comparisons};
    use crate::ir::attrs::IntPred;
    use crate::ir::function::TileFunction;
    use crate::ir::ops::TileOp;
    use crate::tile::testing::{parse, verified};

    #[test]
    fn ranges_settle_what_holds_for_all_their_numbers_or_for_none() {
        let ranges = [(0, 0), (-1, -1), (5, 5), (0, 3), (0, 5), (6, 9), (-3, 4)];
        for &pred in IntPred::ALL {
            for a in ranges {
                for b in ranges {
                    let pairs = (a.0..=a.1).flat_map(|x| (b.0..=b.1).map(move |y| (x, y)));
                    let found: Vec<bool> = pairs
                        .map(|(x, y): (i64, i64)| pred.compare(64, x as u64, y as u64))
                        .collect();
                    let all = found.iter().all(|&x| x == found[0]).then_some(found[0]);
                    match holds(pred, a, b) {
                        Some(settled) => assert_eq!(all, Some(settled), "{pred:?} {a:?} {b:?}"),
                        None if a.0 < 0 || b.0 < 0 => {}
                        None => assert_eq!(all, None, "{pred:?} {a:?} {b:?}"),
                    }
                }
            }
        }
    }

    /// The masks that are left of a load in a loop over `count`, of blocks of 16 numbers each.
    fn left(count: &str, number: &str, compared: &str) -> usize {
        let mut func: TileFunction = parse(&format!(
            "kernel @k(v0: i32, v1: ptr<i32>) warps(1) {{
            block0:
                v2 = const {{value = 0}} : i32
                v3 = const {{value = 1}} : i32
                v4 = const {{value = 64}} : i32
                v5 = const {{value = 16}} : i32
                v6 = splat v1 : ptr<i32>[16]
                v7 = arange {{start = 0}} : i32[16]
                v8 = program_id {{axis = 0}} : i32
                for v2, {count}, v3 {{
                block1(v9: i32):
                    v10 = {number}
                    v11 = imul v10, v5 : i32
                    v12 = splat v11 : i32[16]
                    v13 = iadd v12, v7 : i32[16]
                    v14 = sext v13 : i64[16]
                    {compared}
                    v17 = load v6, v16 : i32[16]
                    store v6, v17
                    yield
                }}
                return
            }}"
        ));
        settle_comparisons(&mut func);
        verified(&func);
        func.insts_with(TileOp::Icmp).count()
    }

    #[test]
    fn masks_of_whole_blocks_go() {
        let below = |most: i64| {
            format!(
                "v15 = const {{value = {most}}} : i64[16]
                v16 = icmp v14, v15 {{ipred = slt}} : i1[16]"
            )
        };
        let counter = "iadd v9, v2 : i32";
        assert_eq!(left("v4", counter, &below(1024)), 0);
        assert_eq!(left("v4", counter, &below(1023)), 1);
        // Nobody knows how many iterations there are, nor how many programs.
        assert_eq!(left("v0", counter, &below(1024)), 1);
        assert_eq!(left("v4", "iadd v8, v2 : i32", &below(1024)), 1);
        // One bit as a number with a sign is not what its constant is.
        let truth = "v15 = const {value = 1} : i1[16]
            v18 = const {value = 0} : i1[16]
            v16 = icmp v15, v18 {ipred = slt} : i1[16]";
        assert_eq!(left("v0", counter, truth), 1);
        // Divided by a constant, and by what could be zero.
        assert_eq!(left("v4", "sdiv v9, v5 : i32", &below(1024)), 0);
        assert_eq!(left("v4", "sdiv v9, v0 : i32", &below(1024)), 1);
        assert_eq!(left("v4", "sdiv v9, v2 : i32", &below(1024)), 1);
    }
}
