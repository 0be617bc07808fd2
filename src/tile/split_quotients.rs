//! Quotients and remainders of places in an aligned block are those of the block's start.
//!
//! ```text
//! x = iadd (splat s), arange              s a multiple of 512, arange below 512
//! q = sdiv x, 2048                  =>    q = sdiv (splat s), 2048
//! r = srem x, 2048                  =>    r = iadd (srem (splat s), 2048), arange
//! ```
//!
//! Kernels that walk over a matrix by one index have the row and the column of each element so. No sum of a multiple of 2^j and of a
//! number below 2^j carries, so a divisor that is a multiple of 2^j takes no notice of the latter. What was a division for each
//! element is one for the program, and the columns count up by one, so that accesses are wide.
//!
//! With a sign the start must not be negative, which sums and products of indices of programs are taken to be, by what quotients and
//! remainders promise.

use crate::analysis::axis::Axis;
use crate::ir::attrs::Attr;
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::function::TileFunction;
use crate::ir::maker::Maker;
use crate::ir::ops::TileOp;
use crate::ir::types::TileType;

/// Times that what was split is looked at again: rows and columns of what is a column in turn.
const ROUNDS: usize = 4;

/// Takes places in aligned blocks out of quotients and remainders; gives how many.
pub fn split_quotients(func: &mut TileFunction) -> usize {
    let mut count = 0;
    for _ in 0..ROUNDS {
        let candidates = divisions(func);
        if candidates.is_empty() {
            break;
        }
        let axis = Axis::compute(func);
        let mut splits = Vec::new();
        for inst in candidates {
            splits.extend(Split::find(func, &axis, inst).map(|split| (inst, split)));
        }
        if splits.is_empty() {
            break;
        }
        count += splits.len();
        for (inst, split) in splits {
            split.write(func, inst);
        }
    }
    count
}

/// Divisions of blocks that are sums.
fn divisions(func: &TileFunction) -> Vec<Inst> {
    let is_of_sum = |&(_, inst): &(Block, Inst)| {
        let data = &func.dfg.insts[inst];
        matches!(
            data.op,
            TileOp::Sdiv | TileOp::Udiv | TileOp::Srem | TileOp::Urem
        ) && !func.dfg.ty(data.args[0]).is_scalar()
            && sum(func, data.args[0]).is_some()
    };
    let found = func.all_insts().filter(is_of_sum);
    found.map(|(_, inst)| inst).collect()
}

/// What the parts of a sum become one after the other, outermost first.
type Steps = Vec<(TileOp, Vec<Attr>, TileType)>;

/// The parts of a sum, and what became of it.
fn sum(func: &TileFunction, value: Value) -> Option<([Value; 2], Steps)> {
    let (mut value, mut steps) = (value, Steps::new());
    loop {
        let data = &func.dfg.insts[func.dfg.def_inst(value)?];
        match data.op {
            TileOp::Iadd => return Some(([data.args[0], data.args[1]], steps)),
            TileOp::Sext
            | TileOp::Zext
            | TileOp::ExpandDims
            | TileOp::Broadcast
            | TileOp::Reshape => {
                steps.push((data.op, data.attrs.to_vec(), func.dfg.ty(value)));
                value = data.args[0];
            }
            _ => return None,
        }
    }
}

/// A division of which a part of the sum is taken out.
struct Split {
    start: Value,
    place: Value,
    steps: Steps,
}

impl Split {
    fn find(func: &TileFunction, axis: &Axis, inst: Inst) -> Option<Split> {
        let data = &func.dfg.insts[inst];
        let has_sign = matches!(data.op, TileOp::Sdiv | TileOp::Srem);
        let ([a, b], steps) = sum(func, data.args[0])?;
        let divisor = axis.info(data.args[1]);
        // Without a constant nothing says that it is a multiple for each launch, and that it is not zero.
        divisor.constant().filter(|&n| n > 0)?;
        let fits = |start: Value, place: Value| {
            let below = axis.info(place).natural()?;
            let bits = (u64::BITS - below.leading_zeros()) as u8;
            let whole = axis.divides(start, bits) && axis.divides(data.args[1], bits);
            // What is widened without a sign has none.
            let is_natural = !has_sign
                || axis.info(start).is_non_negative()
                || steps.iter().any(|(op, ..)| *op == TileOp::Zext);
            (whole && is_natural).then_some(())
        };
        let split = |start, place| Split {
            start,
            place,
            steps: steps.clone(),
        };
        fits(a, b)
            .map(|()| split(a, b))
            .or_else(|| fits(b, a).map(|()| split(b, a)))
    }

    /// Makes the instruction, which stays where it is, a sum.
    fn write(self, func: &mut TileFunction, inst: Inst) {
        let data = func.dfg.insts[inst].clone();
        let ty = func.dfg.ty(data.results[0]);
        let mut maker = Maker::near(func, inst);
        let mut again = |value: Value| {
            let steps = self.steps.iter().rev();
            steps.fold(value, |value, (op, attrs, ty)| {
                maker.value(*op, &[value], attrs, *ty)
            })
        };
        let start = again(self.start);
        let place = again(self.place);
        let whole = maker.value(data.op, &[start, data.args[1]], &data.attrs, ty);
        let args = match data.op {
            TileOp::Sdiv | TileOp::Udiv => [whole, maker.number(0, ty)],
            _ => [whole, place],
        };
        let made = maker.made;
        func.order.insert_before(inst, &made);
        let data = &mut func.dfg.insts[inst];
        data.op = TileOp::Iadd;
        data.attrs.clear();
        data.args = args.into_iter().collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tile::eliminate_dead_code::eliminate_dead_code;
    use crate::tile::simplify::simplify;
    use crate::tile::testing::{parse, run, verified};

    /// A kernel that stores quotient and remainder of a sum, and how many divisions are of blocks behind the pass.
    fn split(
        start: &str,
        place: &str,
        divisor: i64,
        [quotient, remainder]: [&str; 2],
    ) -> (usize, usize) {
        let text = format!(
            "kernel @k(v0 \"x\": ptr<i32>) warps(1) {{
block0:
    v1 = load v0 : i32
    v2 = program_id {{axis = 0}} : i32
    v3 = const {{value = 512}} : i32
    v4 = imul v2, v3 : i32
    v5 = imul v1, v3 : i32
    v6 = splat {start} : i32[512]
    v7 = arange {{start = {place}}} : i32[512]
    v8 = iadd v6, v7 : i32[512]
    v9 = const {{value = {divisor}}} : i32[512]
    v10 = {quotient} v8, v9 : i32[512]
    v11 = {remainder} v8, v9 : i32[512]
    v12 = splat v0 : ptr<i32>[512]
    v13 = addptr v12, v7 : ptr<i32>[512]
    v14 = const {{value = 10000}} : i32[512]
    v15 = imul v10, v14 : i32[512]
    v16 = iadd v15, v11 : i32[512]
    store v13, v16
    return
}}
"
        );
        let mut func = parse(&text);
        let buffer = vec![vec![0; 4096 + 64]];
        let before = run(&func, &buffer);
        let count = split_quotients(&mut func);
        verified(&func);
        assert_eq!(run(&func, &buffer), before, "{text}");
        simplify(&mut func);
        eliminate_dead_code(&mut func);
        let text = func.to_string();
        let of_blocks = text.lines().filter(|line| {
            let divides = [
                " sdiv ", " srem ", " udiv ", " urem ", " sshr ", " ushr ", " and ",
            ];
            divides.iter().any(|op| line.contains(op)) && line.ends_with("[512]")
        });
        (count, of_blocks.count())
    }

    const SIGNED: [&str; 2] = ["sdiv", "srem"];
    const UNSIGNED: [&str; 2] = ["udiv", "urem"];

    #[test]
    fn places_in_aligned_blocks_are_divided_once() {
        for ops in [SIGNED, UNSIGNED] {
            for divisor in [512, 2048, 1536] {
                assert_eq!(
                    split("v4", "0", divisor, ops),
                    (2, 0),
                    "{ops:?} by {divisor}"
                );
            }
        }
        // Without a sign nothing needs to be known of the start.
        assert_eq!(split("v5", "0", 2048, UNSIGNED), (2, 0));
    }

    #[test]
    fn what_carries_or_may_be_negative_stays() {
        // Blocks that are larger than what divides, or not aligned, and starts that may be negative.
        for (start, place, divisor) in [
            ("v4", "0", 256),
            ("v4", "0", 1000),
            ("v4", "1", 2048),
            ("v2", "0", 2048),
            ("v5", "0", 2048),
        ] {
            let (count, of_blocks) = split(start, place, divisor, SIGNED);
            assert_eq!(count, 0, "{start} {place} {divisor}");
            assert!(of_blocks > 0, "{start} {place} {divisor}");
        }
    }

    /// The row of a column in turn, of places that were widened and have another shape.
    #[test]
    fn it_is_done_again_and_behind_changes_of_shape() {
        let mut func = parse(
            "kernel @k(v0 \"x\": ptr<i64>) warps(1) {
block0:
    v1 = program_id {axis = 0} : i32
    v2 = const {value = 64} : i32
    v3 = imul v1, v2 : i32
    v4 = splat v3 : i32[64]
    v5 = arange {start = 0} : i32[64]
    v6 = iadd v4, v5 : i32[64]
    v7 = sext v6 : i64[64]
    v8 = expand_dims v7 {axis = 1} : i64[64,1]
    v9 = const {value = 4096} : i64[64,1]
    v10 = srem v8, v9 : i64[64,1]
    v11 = const {value = 128} : i64[64,1]
    v12 = sdiv v10, v11 : i64[64,1]
    v13 = expand_dims v5 {axis = 1} : i32[64,1]
    v14 = splat v0 : ptr<i64>[64,1]
    v15 = addptr v14, v13 : ptr<i64>[64,1]
    store v15, v12
    return
}
",
        );
        let buffer = vec![vec![0; 512]];
        let before = run(&func, &buffer);
        assert_eq!(split_quotients(&mut func), 2);
        verified(&func);
        assert_eq!(run(&func, &buffer), before);
    }
}
