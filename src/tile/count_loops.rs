//! Loops that end when a number reaches a bound become counted loops.
//!
//! ```text
//! while i < n and m <= i {          for i in start .. where(m <= start, n, start) by 132 {
//!     ..                       =>       ..
//!     i = i + 132                   }
//! }
//! ```
//!
//! What is known of counted loops is not known of others: how often they run, that the counter stays below its bound, that loads of
//! the next iterations can begin early. Kernels that walk over tiles, or over the tiles of one of several products, are often
//! written with `while`.
//!
//! Conditions that hold from the first iteration on, as the counter only moves away from their bounds, are looked at once. A
//! counter that would wrap ends the loop; the loop as it was written would go on from the other end of the type, 2^15 times and more.

use rustc_hash::FxHashMap;

use super::edit::{rename_all, signed};
use crate::ir::attrs::{Attrs, IntPred, make};
use crate::ir::dfg::{BlockCall, InstData};
use crate::ir::effects::OpClass;
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::function::TileFunction;
use crate::ir::level::Tile;
use crate::ir::maker::Maker;
use crate::ir::ops::TileOp;
use crate::ir::types::{Elem, TileType};

/// The longest step of a counter.
const LONGEST_STEP: i64 = 1 << 16;

/// Makes loops counted loops; gives how many.
pub fn count_loops(func: &mut TileFunction) -> usize {
    // Regions come behind the blocks they stand in: inner loops first.
    let loops: Vec<(Block, Inst)> = func.insts_with(TileOp::While).collect();
    let mut count = 0;
    for (block, inst) in loops.into_iter().rev() {
        if let Some(counted) = Counted::of(func, inst) {
            counted.make(func, block, inst);
            count += 1;
        }
    }
    count
}

/// Where a value comes from that the first region hands on.
#[derive(Clone, Copy)]
enum Source {
    /// Its parameter of this number.
    Param(usize),
    /// The code around the loop.
    Outside(Value),
}

/// A part of the condition.
#[derive(Clone, Copy)]
enum Test {
    /// The counter beside a number of the code around the loop.
    Counter(IntPred, Value),
    /// A truth value of the code around the loop.
    Outside(Value),
}

/// What the counter moves on by.
#[derive(Clone, Copy)]
enum Step {
    /// A number, which is not zero.
    Known(i64),
    /// The number of programs that this gives.
    Programs(Inst),
}

impl Step {
    fn is_down(self) -> bool {
        matches!(self, Step::Known(..0))
    }
}

/// A loop that can be counted.
struct Counted {
    /// What the first region computes from what stands around the loop.
    invariant: Vec<Inst>,
    /// The number of the parameter that counts.
    counter: usize,
    step: Step,
    tests: Vec<Test>,
    /// What the first region hands on.
    sources: Vec<Source>,
}

impl Counted {
    fn of(func: &TileFunction, inst: Inst) -> Option<Counted> {
        let regions: Vec<Block> = func.regions(inst).collect();
        let [head, body] = regions[..] else {
            return None;
        };
        let params = &func.dfg.blocks[head].params;
        let (&end, computes) = func.order.insts(head).split_last()?;
        let mut varies: Vec<Value> = params.to_vec();
        let mut invariant = Vec::new();
        for &inst in computes {
            let data = &func.dfg.insts[inst];
            if !data.is_pure() || data.class() == OpClass::Region {
                return None;
            }
            match func.dfg.uses(inst).any(|value| varies.contains(&value)) {
                true => varies.extend(&data.results),
                false => invariant.push(inst),
            }
        }
        let (&cond, handed_on) = func.dfg.insts[end].args.split_first()?;
        let number = |value| params.iter().position(|&param| param == value);
        let (counter, tests) = tests(func, cond, |value| match number(value) {
            Some(number) => Some(Source::Param(number)),
            None => (!varies.contains(&value)).then_some(Source::Outside(value)),
        })?;
        let sources = handed_on.iter().map(|&value| match number(value) {
            Some(number) => Some(Source::Param(number)),
            None => (!varies.contains(&value)).then_some(Source::Outside(value)),
        });
        let sources: Vec<Source> = sources.collect::<Option<_>>()?;
        // The second region's names of the counter.
        let is_counter = |value: Value| {
            let mut inner = func.dfg.blocks[body].params.iter().zip(&sources);
            inner.any(|(&param, source)| {
                param == value && matches!(source, Source::Param(number) if *number == counter)
            })
        };
        let next = *func.dfg.insts[func.order.last(body)?].args.get(counter)?;
        let step = step(func, next, is_counter)?;
        let ends = |test: &Test| matches!(test, Test::Counter(pred, _) if is_end(*pred, step));
        // A bound that belongs to the loop, and is the last number of the type, has none behind it. Alone it bounds nothing.
        let is_whole = |test: &Test| match *test {
            Test::Counter(pred @ (IntPred::Sle | IntPred::Sge), limit) if is_end(pred, step) => {
                let unused = 64 - func.dfg.ty(limit).elem.bits();
                let last = [i64::MAX >> unused, i64::MIN >> unused];
                tests.len() == 1 || signed(func, limit).is_some_and(|n| !last.contains(&n))
            }
            _ => true,
        };
        if !tests.iter().all(is_whole) {
            return None;
        }
        tests.iter().any(ends).then_some(Counted {
            invariant,
            counter,
            step,
            tests,
            sources,
        })
    }

    /// Puts the counted loop in the place of the other one.
    fn make(self, func: &mut TileFunction, block: Block, inst: Inst) {
        let old = func.dfg.insts[inst].clone();
        let [head, body] = [0, 1].map(|i| old.blocks[i].block);
        let first = old.args[self.counter];
        let ty = func.dfg.ty(first);
        let mut maker = Maker::near(func, inst);
        maker.made.clone_from(&self.invariant);
        // The bound nearest to the start, and what holds throughout if it holds at first.
        let mut bound: Option<Value> = None;
        let mut holds: Option<Value> = None;
        for test in &self.tests {
            let truth = match *test {
                Test::Counter(pred, limit) if is_end(pred, self.step) => {
                    // The counter is beyond it where the loop ends.
                    let (strict, more, nearest) = match self.step.is_down() {
                        false => (IntPred::Slt, 1, TileOp::Smin),
                        true => (IntPred::Sgt, -1, TileOp::Smax),
                    };
                    let limit = match pred == strict {
                        true => limit,
                        false => {
                            let more = maker.number(more, ty);
                            maker.value(TileOp::Iadd, &[limit, more], &[], ty)
                        }
                    };
                    bound = Some(match bound {
                        Some(other) => maker.value(nearest, &[other, limit], &[], ty),
                        None => limit,
                    });
                    continue;
                }
                Test::Counter(pred, limit) => maker.compare(pred, first, limit),
                Test::Outside(truth) => truth,
            };
            let i1 = TileType::scalar(Elem::I1);
            holds = Some(match holds {
                Some(other) => maker.value(TileOp::And, &[other, truth], &[], i1),
                None => truth,
            });
        }
        let Some(mut bound) = bound else {
            return;
        };
        if let Some(holds) = holds {
            bound = maker.value(TileOp::Select, &[holds, bound, first], &[], ty);
        }
        let step = match self.step {
            Step::Known(step) => maker.number(step.abs(), ty),
            Step::Programs(inst) => {
                let axis = maker.func.dfg.insts[inst].attrs.clone();
                maker.value(TileOp::NumPrograms, &[], &axis, ty)
            }
        };
        // One that counts down runs as often as one that counts up from where it ends.
        let bounds = match self.step.is_down() {
            false => [first, bound, step],
            true => [bound, first, step],
        };
        let made = std::mem::take(&mut maker.made);

        let mut renamed: FxHashMap<Value, Value> = FxHashMap::default();
        let region = func.dfg.make_block();
        let counter = func.dfg.append_param(region, ty);
        let carried: Vec<TileType> = old.args.iter().map(|&init| func.dfg.ty(init)).collect();
        let params: Vec<Value> = carried
            .iter()
            .map(|&ty| func.dfg.append_param(region, ty))
            .collect();
        let mut data: InstData<Tile> = InstData::new(TileOp::For, &bounds);
        data.args.extend(old.args.iter().copied());
        data.loc = old.loc;
        data.attrs.extend(old.stages().copied().map(make::stages));
        data.blocks.push(BlockCall::region(region));
        let new = func.dfg.make_inst(data, &carried);
        let results = func.dfg.insts[new].results.to_vec();
        let inner = func.dfg.blocks[body].params.to_vec();
        for ((&param, &result), source) in inner.iter().zip(&old.results).zip(&self.sources) {
            let (within, behind) = match *source {
                Source::Param(number) if number == self.counter && !self.step.is_down() => {
                    (counter, results[number])
                }
                Source::Param(number) => (params[number], results[number]),
                Source::Outside(value) => (value, value),
            };
            renamed.insert(param, within);
            renamed.insert(result, behind);
        }
        let insts = func.order.insts(body).to_vec();
        func.order.replace(head, Vec::new());
        func.order.replace(body, Vec::new());
        func.order.replace(region, insts);
        let list = func.order.insts(block).to_vec();
        let others = |&at: &Inst| match at == inst {
            true => made.iter().copied().chain([new]).collect(),
            false => vec![at],
        };
        let list = list.iter().flat_map(others).collect();
        func.order.replace(block, list);
        rename_all(func, &renamed);
    }
}

/// Whether a counter that moves so comes to the end of what a comparison allows.
fn is_end(pred: IntPred, step: Step) -> bool {
    match step.is_down() {
        false => matches!(pred, IntPred::Slt | IntPred::Sle),
        true => matches!(pred, IntPred::Sgt | IntPred::Sge),
    }
}

/// The parts of a condition all of which hold while the loop runs, and the number of the parameter that they are about.
fn tests(
    func: &TileFunction,
    cond: Value,
    source: impl Fn(Value) -> Option<Source>,
) -> Option<(usize, Vec<Test>)> {
    let mut counter = None;
    let mut found = Vec::new();
    let mut parts = vec![cond];
    while let Some(part) = parts.pop() {
        match source(part) {
            Some(Source::Outside(truth)) => {
                found.push(Test::Outside(truth));
                continue;
            }
            Some(Source::Param(_)) => return None,
            None => {}
        }
        let data = &func.dfg.insts[func.dfg.def_inst(part)?];
        if data.op == TileOp::And {
            parts.extend(data.args.iter().rev());
            continue;
        }
        let (&pred, &[a, b]) = data.ipred().zip(data.args.first_chunk::<2>())?;
        let (number, pred, limit) = match (source(a)?, source(b)?) {
            (Source::Param(number), Source::Outside(limit)) => (number, pred, limit),
            (Source::Outside(limit), Source::Param(number)) => (number, pred.exchanged()?, limit),
            _ => return None,
        };
        if pred.is_signed() != Some(true) || *counter.get_or_insert(number) != number {
            return None;
        }
        let ty = func.dfg.ty(limit);
        if !ty.is_scalar() || !matches!(ty.elem, Elem::I32 | Elem::I64) {
            return None;
        }
        found.push(Test::Counter(pred, limit));
    }
    Some((counter?, found))
}

/// How the counter comes to its next number.
fn step(func: &TileFunction, next: Value, is_counter: impl Fn(Value) -> bool) -> Option<Step> {
    let data = &func.dfg.insts[func.dfg.def_inst(next)?];
    let &[a, b] = data.args.first_chunk::<2>()?;
    let by = match data.op {
        TileOp::Iadd if is_counter(a) => b,
        TileOp::Iadd if is_counter(b) => a,
        TileOp::Isub if is_counter(a) => b,
        _ => return None,
    };
    let Some(number) = signed(func, by) else {
        let inst = func.dfg.def_inst(by)?;
        let is_count = func.dfg.insts[inst].op == TileOp::NumPrograms;
        return (is_count && data.op == TileOp::Iadd).then_some(Step::Programs(inst));
    };
    let number = match data.op {
        TileOp::Isub => -number,
        _ => number,
    };
    (1..=LONGEST_STEP)
        .contains(&number.abs())
        .then_some(Step::Known(number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::parse::parse_tile;
    use crate::tile::eliminate_dead_code::eliminate_dead_code;
    use crate::tile::simplify::simplify;

    /// A loop that stores what it counts while `cond` holds of the counter `v10`, and what comes behind `v13`, its name in the second
    /// region, by `next`.
    fn after(cond: &str, next: &str) -> (usize, String) {
        let text = format!(
            "kernel @k(v0 \"x\": ptr<i32>, v1 \"n\": i32, v2 \"m\": i32, v3 \"some\": i1) warps(4) {{
block0:
    v4 = program_id {{axis = 0}} : i32
    v5 = num_programs {{axis = 0}} : i32
    v6, v7 = while v1, v4 : i32, i32 {{
    block1(v8: i32, v10: i32):
        {cond}
        condition v20, v10, v8
    }} {{
    block2(v13: i32, v14: i32):
        v15 = addptr v0, v13 : ptr<i32>
        store v15, v14
        v16 = iadd v14, v13 : i32
        v17 = const {{value = 3}} : i32
        {next} : i32
        yield v16, v18
    }}
    v19 = addptr v0, v7 : ptr<i32>
    store v19, v6
    return
}}
"
        );
        let mut func = parse_tile(&text).expect("a kernel");
        let count = count_loops(&mut func);
        simplify(&mut func);
        eliminate_dead_code(&mut func);
        (count, func.to_string())
    }

    #[test]
    fn a_number_that_grows_to_a_bound_is_a_counter() {
        let (count, text) = after(
            "v20 = icmp v10, v1 {ipred = slt} : i1",
            "v18 = iadd v13, v17",
        );
        assert_eq!(count, 1, "{text}");
        assert!(
            text.contains("= for v4, v1, v5, v1, v4 : i32, i32 {"),
            "{text}"
        );
        assert!(text.contains("v5 = const {value = 3}"), "{text}");
        // In the loop it is the counter, behind it what was reached.
        assert!(text.contains("addptr v0, v8"), "{text}");
    }

    #[test]
    fn programs_are_a_step() {
        let (count, text) = after(
            "v20 = icmp v1, v10 {ipred = sgt} : i1",
            "v18 = iadd v5, v13",
        );
        assert_eq!(count, 1, "{text}");
        assert!(text.contains("num_programs"), "{text}");
    }

    /// The bound is the nearest of several, and what holds from the start on is asked there.
    #[test]
    fn conditions_that_stay_true_are_asked_once() {
        let cond = "v21 = iadd v1, v2 : i32
        v22 = icmp v10, v21 {ipred = slt} : i1
        v23 = icmp v10, v1 {ipred = slt} : i1
        v24 = icmp v10, v2 {ipred = sge} : i1
        v25 = and v22, v23 : i1
        v26 = and v25, v24 : i1
        v20 = and v26, v3 : i1";
        let (count, text) = after(cond, "v18 = iadd v13, v17");
        assert_eq!(count, 1, "{text}");
        let [start, behind] = text.split("= for ").collect::<Vec<_>>()[..] else {
            panic!("{text}");
        };
        for part in ["smin", "ipred = sge", "select", ", v3 : i1"] {
            assert!(start.contains(part), "{part}: {text}");
            assert!(!behind.contains(part), "{part}: {text}");
        }
    }

    /// Behind the last number of the type there is none; other constants have one.
    #[test]
    fn bounds_that_belong_to_the_loop_have_a_number_behind() {
        let next = "v18 = iadd v13, v17";
        let alone = "v20 = icmp v10, v1 {ipred = sle} : i1";
        let (count, text) = after(alone, next);
        assert_eq!(count, 1, "{text}");
        for (bound, expected) in [("v1", 0), ("v24", 1), ("v25", 0)] {
            let cond = format!(
                "v24 = const {{value = 100}} : i32
        v25 = const {{value = 2147483647}} : i32
        v22 = icmp v10, {bound} {{ipred = sle}} : i1
        v23 = icmp v10, v2 {{ipred = slt}} : i1
        v20 = and v22, v23 : i1"
            );
            let (count, text) = after(&cond, next);
            assert_eq!(count, expected, "{bound}: {text}");
        }
    }

    #[test]
    fn a_number_that_falls_to_a_bound_is_counted() {
        for next in [
            "v18 = isub v13, v17",
            "v27 = const {value = -3} : i32\n v18 = iadd v27, v13",
        ] {
            let (count, text) = after("v20 = icmp v10, v1 {ipred = sgt} : i1", next);
            assert_eq!(count, 1, "{text}");
            assert!(text.contains("= for v1, v4, v5, "), "{text}");
            assert!(text.contains("value = 3"), "{text}");
        }
    }

    #[test]
    fn other_loops_stay() {
        let below = "v20 = icmp v10, v1 {ipred = slt} : i1";
        for (cond, next) in [
            // Away from the bound, not at all, or by what nobody knows.
            (below, "v18 = isub v13, v17"),
            (below, "v18 = iadd v14, v17"),
            (below, "v18 = iadd v13, v2"),
            (below, "v27 = const {value = 0} : i32\n v18 = iadd v13, v27"),
            (
                below,
                "v27 = const {value = 1000000} : i32\n v18 = iadd v13, v27",
            ),
            // A bound that moves, and conditions that end otherwise.
            (
                "v20 = icmp v10, v8 {ipred = slt} : i1",
                "v18 = iadd v13, v17",
            ),
            (
                "v20 = icmp v10, v1 {ipred = ne} : i1",
                "v18 = iadd v13, v17",
            ),
            (
                "v20 = icmp v10, v1 {ipred = ult} : i1",
                "v18 = iadd v13, v17",
            ),
            (
                "v20 = icmp v10, v1 {ipred = sge} : i1",
                "v18 = iadd v13, v17",
            ),
        ] {
            let (count, text) = after(cond, next);
            assert_eq!(count, 0, "{cond} {next}: {text}");
        }
    }
}
