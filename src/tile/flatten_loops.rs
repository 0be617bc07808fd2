//! Nests of loops around products of matrices as one loop.
//!
//! ```text
//! for q in 0..9 {                                  for t in 0..9 n carrying q, j {
//!     p = f(q)                                         p = f(q)
//!     for c in 0..C by 64 {                            c = 64 j
//!         s = dot load a(p, c), load b(q, c), s   =>   s = dot load a(p, c), load b(q, c), s
//!     }                                                is_last = j + 1 == n
//! }                                                    yield where(is_last, q + 1, q), where(is_last, 0, j + 1), s
//!                                                  }
//! ```
//!
//! A pipeline of the inner loop would be filled and drained for each iteration of the outer one, and wait for memory each time: a
//! convolution of 3 x 3 of 64 channels takes 1.4 times as long so. As one loop it is filled once. What the outer loop computes is computed in
//! each iteration, which is little: it must be numbers, rows of offsets and masks, and of memory numbers alone (the entries of a table)
//! where the loops write nothing. What the nest leaves must be what goes through both loops, as sums do. The iterations of all must be known
//! to fit into 31 bits. Pointers that the inner loop moves on by the same each time are computed from where they start.

use rustc_hash::FxHashMap;

use super::edit::{copy_of, read_by, rename_uses, signed};
use crate::analysis::axis::Axis;
use crate::ir::attrs::{Attrs, IntPred};
use crate::ir::dfg::{BlockCall, InstData, ValueDef};
use crate::ir::effects::OpClass;
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::function::TileFunction;
use crate::ir::level::Tile;
use crate::ir::maker::Maker;
use crate::ir::ops::TileOp;
use crate::ir::types::{Elem, TileType};
use crate::tile::promote::used::is_volatile;

/// Iterations of an inner loop from which on it is worth a pipeline of its own.
const MANY: u64 = 16;

/// Most iterations of a loop.
const MOST: u64 = i32::MAX as u64;

/// Makes nests of loops that multiply one loop each, from the inside; gives how many loops are gone.
pub fn flatten_loops(func: &mut TileFunction) -> usize {
    // Regions come behind the blocks they stand in: inner loops first.
    let mut loops: Vec<Inst> = func.insts_with(TileOp::For).map(|(_, inst)| inst).collect();
    loops.reverse();
    let mut count = 0;
    for outer in loops {
        if let Some(nest) = Nest::of(func, outer) {
            nest.flatten(func);
            count += 1;
        }
    }
    count
}

/// How often a loop runs.
#[derive(Clone, Copy)]
struct Trips {
    lo: i64,
    step: i64,
    /// Where it ends.
    hi: Value,
    /// If that is known.
    known: Option<u64>,
    /// At most.
    most: u64,
}

impl Trips {
    /// Those of a loop that counts from a number that is not negative in steps that are known.
    fn of(func: &TileFunction, axis: &Axis, data: &InstData<Tile>) -> Option<Trips> {
        let (lo, hi, step) = (
            signed(func, data.args[0])?,
            data.args[1],
            signed(func, data.args[2])?,
        );
        if func.dfg.ty(hi) != TileType::scalar(Elem::I32) || lo < 0 || step < 1 {
            return None;
        }
        let count = |hi: i64| ((hi - lo).max(0) as u64).div_ceil(step as u64);
        let known = signed(func, hi).map(count);
        let most = axis.info(hi).natural().map_or(MOST, |most| most.min(MOST));
        Some(Trips {
            lo,
            step,
            hi,
            known,
            most: known.unwrap_or_else(|| count(most as i64)),
        })
    }

    /// The number of iterations.
    fn count(&self, maker: &mut Maker<'_, Tile>) -> Value {
        let i32 = TileType::scalar(Elem::I32);
        if let Some(known) = self.known {
            return maker.number(known as i64, i32);
        }
        let lo = maker.number(self.lo, i32);
        let hi = maker.value(TileOp::Smax, &[self.hi, lo], &[], i32);
        // Unsigned, so that rounding up does not wrap.
        let length = maker.value(TileOp::Isub, &[hi, lo], &[], i32);
        let rest = maker.number(self.step - 1, i32);
        let padded = maker.value(TileOp::Iadd, &[length, rest], &[], i32);
        let step = maker.number(self.step, i32);
        maker.value(TileOp::Udiv, &[padded, step], &[], i32)
    }

    /// What the loop counts, of the iterations that are over.
    fn counter(&self, maker: &mut Maker<'_, Tile>, over: Value) -> Value {
        let i32 = TileType::scalar(Elem::I32);
        let step = maker.number(self.step, i32);
        let moved = maker.value(TileOp::Imul, &[over, step], &[], i32);
        let lo = maker.number(self.lo, i32);
        maker.value(TileOp::Iadd, &[moved, lo], &[], i32)
    }
}

/// A loop with a loop in it.
struct Nest {
    outer: Inst,
    inner: Inst,
    /// What stands in front of the inner loop.
    before: Vec<Inst>,
    /// And behind it.
    after: Vec<Inst>,
    trips: [Trips; 2],
    /// What each value is that the inner loop carries.
    carried: Vec<Carried>,
}

/// What a value is that the inner loop carries.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Carried {
    /// The one of the outer loop at this position.
    Through(usize),
    /// A number that begins again with each iteration of the outer loop.
    Number,
    /// Pointers that do, and move on by so many elements with each iteration of the inner loop.
    Moved(Step),
}

/// A number of elements.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Known(i64),
    Of(Value),
}

impl Nest {
    /// The nest that begins with a loop, if it can be one loop and that pays.
    fn of(func: &TileFunction, outer: Inst) -> Option<Nest> {
        let data = &func.dfg.insts[outer];
        let body = func.regions(outer).next()?;
        let list = func.order.insts(body);
        let is_loop = |inst: &Inst| func.dfg.insts[*inst].op.is_loop();
        let place = list.iter().position(is_loop)?;
        let inner = list[place];
        let before = list[..place].to_vec();
        let mut after = list[place + 1..].to_vec();
        let end = after.pop()?;
        let inside = &func.dfg.insts[inner];
        let inner_body = func.regions(inner).next()?;
        let multiplies = func.any_inside(inner_body, &InstData::is_product);
        let has_loop = func.any_inside(inner_body, &|data| data.op.is_loop());
        let is_pipelined = inside.stages().is_none_or(|&stages| stages > 1);
        if inside.op != TileOp::For || !multiplies || has_loop || !is_pipelined {
            return None;
        }
        let writes = func.any_inside(body, &|data| data.writes() || data.orders_memory());
        // Computed again in each iteration: what costs each thread a few instructions.
        let is_little = |&inst: &Inst| {
            let data = &func.dfg.insts[inst];
            let class = data.class();
            let is_entry = data.op == TileOp::Load
                && !is_volatile(func, inst)
                && func.dfg.ty(data.results[0]).is_scalar();
            matches!(
                class,
                OpClass::Constant | OpClass::Elementwise | OpClass::Shape
            ) && data.is_pure()
                || !writes && is_entry
        };
        if !before.iter().chain(&after).all(is_little) {
            return None;
        }
        let axis = Axis::compute(func);
        let trips = [
            Trips::of(func, &axis, data)?,
            Trips::of(func, &axis, inside)?,
        ];
        let [outer_trips, inner_trips] = &trips;
        if is_inside(func, inner_trips.hi, body)
            || outer_trips.most.checked_mul(inner_trips.most)? > MOST
            || inner_trips
                .known
                .is_some_and(|known| known == 0 || MANY < known)
        {
            return None;
        }
        let nest = Nest {
            outer,
            inner,
            carried: carried(func, [body, inner_body], inside, end, &before, &after)?,
            before,
            after,
            trips,
        };
        // Where the inner loop never runs, what the outer one alone moves on is not known.
        let goes_through = |at: usize| nest.carried.contains(&Carried::Through(at));
        let is_used = |value: Value| {
            let mut all = func.all_insts().map(|(_, inst)| inst);
            all.any(|inst| func.dfg.uses(inst).any(|used| used == value))
        };
        let results = data.results.iter().enumerate();
        let mut others = results.filter(|&(at, _)| !goes_through(at));
        let is_whole = inner_trips.known.is_some() || !others.any(|(_, &result)| is_used(result));
        is_whole.then_some(nest)
    }

    /// Puts one loop in the place of both.
    fn flatten(self, func: &mut TileFunction) {
        let (outer, inner) = (
            func.dfg.insts[self.outer].clone(),
            func.dfg.insts[self.inner].clone(),
        );
        let regions = [self.outer, self.inner].map(|inst| func.regions(inst).next());
        let (Some(block), [Some(body), Some(inner_body)]) =
            (func.order.block_of(self.outer), regions)
        else {
            return;
        };
        let i32 = TileType::scalar(Elem::I32);
        let [outer_params, inner_params] =
            [body, inner_body].map(|block| func.dfg.blocks[block].params.clone());
        let mut inner_list = func.order.insts(inner_body).to_vec();
        let (Some(inner_end), Some(outer_end)) = (inner_list.pop(), func.order.last(body)) else {
            return;
        };
        let mut maker = Maker::near(func, self.outer);
        let counts = self.trips.map(|trips| trips.count(&mut maker));
        let zero = maker.number(0, i32);
        let one = maker.number(1, i32);
        let total = maker.value(TileOp::Imul, &counts, &[], i32);
        let mut args = vec![zero, total, one, zero, zero];
        args.extend(&outer.args[3..]);
        // What only the inner loop carries begins again with each iteration of the outer one.
        let own: Vec<usize> = (0..self.carried.len())
            .filter(|&k| self.carried[k] == Carried::Number)
            .collect();
        for &k in &own {
            let ty = maker.func.dfg.ty(inner_params[k + 1]);
            args.push(maker.number(0, ty));
        }
        let types: Vec<TileType> = args[3..].iter().map(|&v| maker.func.dfg.ty(v)).collect();
        let region = maker.func.dfg.make_block();
        maker.func.dfg.append_param(region, i32);
        let carried: Vec<Value> = types
            .iter()
            .map(|&ty| maker.func.dfg.append_param(region, ty))
            .collect();
        let flat = maker.build(TileOp::For, &args, &[], &types);
        let data = &mut maker.func.dfg.insts[flat];
        data.attrs.clone_from(&inner.attrs);
        data.blocks.push(BlockCall::region(region));
        let outside = std::mem::take(&mut maker.made);

        let [over_outer, over_inner] = [carried[0], carried[1]];
        let held = &carried[2..];
        let (around, restarted) = held.split_at(outer.results.len());
        let mut map: FxHashMap<Value, Value> = FxHashMap::default();
        map.insert(
            outer_params[0],
            self.trips[0].counter(&mut maker, over_outer),
        );
        map.extend(
            outer_params[1..]
                .iter()
                .copied()
                .zip(around.iter().copied()),
        );
        copies(&mut maker, &self.before, &mut map);
        map.insert(
            inner_params[0],
            self.trips[1].counter(&mut maker, over_inner),
        );
        for (k, carried) in self.carried.iter().enumerate() {
            let value = match *carried {
                Carried::Through(at) => around[at],
                Carried::Number => continue,
                Carried::Moved(by) => {
                    let known = |value: Value| map.get(&value).copied().unwrap_or(value);
                    let first = known(inner.args[3 + k]);
                    let by = match by {
                        Step::Known(_) => by,
                        Step::Of(value) => Step::Of(known(value)),
                    };
                    moved(&mut maker, first, by, over_inner)
                }
            };
            map.insert(inner_params[k + 1], value);
        }
        let is_first = maker.compare(IntPred::Eq, over_inner, zero);
        for (&k, &now) in own.iter().zip(restarted) {
            let first = inner.args[3 + k];
            let first = map.get(&first).copied().unwrap_or(first);
            let value = choose(&mut maker, is_first, first, now);
            map.insert(inner_params[k + 1], value);
        }
        copies(&mut maker, &inner_list, &mut map);
        let next: Vec<Value> = maker.func.dfg.insts[inner_end].args.to_vec();
        let next: Vec<Value> = next
            .iter()
            .map(|v| map.get(v).copied().unwrap_or(*v))
            .collect();
        map.extend(inner.results.iter().copied().zip(next.iter().copied()));
        copies(&mut maker, &self.after, &mut map);

        let advanced = maker.value(TileOp::Iadd, &[over_inner, one], &[], i32);
        let is_last = maker.compare(IntPred::Eq, advanced, counts[1]);
        let outer_advanced = maker.value(TileOp::Iadd, &[over_outer, one], &[], i32);
        let mut yields = vec![
            choose(&mut maker, is_last, outer_advanced, over_outer),
            choose(&mut maker, is_last, zero, advanced),
        ];
        let ends: Vec<Value> = maker.func.dfg.insts[outer_end].args.to_vec();
        for (at, (&end, &now)) in ends.iter().zip(around).enumerate() {
            let value = map.get(&end).copied().unwrap_or(end);
            yields.push(match self.carried.contains(&Carried::Through(at)) {
                true => value,
                false => choose(&mut maker, is_last, value, now),
            });
        }
        yields.extend(own.iter().map(|&k| next[k]));
        maker.build(TileOp::Yield, &yields, &[], &[]);
        let made = std::mem::take(&mut maker.made);
        maker.func.order.replace(region, made);

        let results = func.dfg.insts[flat].results.clone();
        for (&old, &new) in outer.results.iter().zip(&results[2..]) {
            rename_uses(func, old, new);
        }
        let mut list = func.order.insts(block).to_vec();
        if let Some(at) = list.iter().position(|&inst| inst == self.outer) {
            list.splice(at..=at, outside);
        }
        func.order.replace(block, list);
    }
}

/// What the inner loop carries. What goes through both loops begins with a value of the outer loop, ends as it and is used nowhere else.
/// None if a value is neither that nor a number nor a pointer that moves on.
fn carried(
    func: &TileFunction,
    [body, inner_body]: [Block; 2],
    inner: &InstData<Tile>,
    end: Inst,
    before: &[Inst],
    after: &[Inst],
) -> Option<Vec<Carried>> {
    let outer_params = &func.dfg.blocks[body].params[1..];
    let inner_params = &func.dfg.blocks[inner_body].params[1..];
    let ends = &func.dfg.insts[end].args;
    let next = &func.dfg.insts[func.order.last(inner_body)?].args;
    let inside = func.order.insts(inner_body).iter();
    let mut read = Vec::new();
    for &inst in before.iter().chain(after).chain(inside) {
        read_by(func, inst, &mut read);
    }
    let once = |values: &[Value], value| values.iter().filter(|&&v| v == value).count() == 1;
    let is_number = |value: Value| {
        let ty = func.dfg.ty(value);
        ty.is_scalar() && (ty.elem.is_int() || ty.elem.is_float())
    };
    let mut found = Vec::new();
    for (k, (&first, &result)) in inner.args[3..].iter().zip(&inner.results).enumerate() {
        let at = outer_params.iter().position(|&param| param == first);
        let at = at.filter(|&at| {
            ends[at] == result
                && once(&inner.args[3..], first)
                && once(ends, result)
                && !read.contains(&first)
                && !read.contains(&result)
        });
        found.push(match at {
            Some(at) => Carried::Through(at),
            None if is_number(inner_params[k]) => Carried::Number,
            None if read.contains(&result) || ends.contains(&result) => return None,
            None => Carried::Moved(step_of(func, inner_params[k], next[k], inner_body)?),
        });
    }
    let mut others = outer_params.iter().enumerate();
    let is_simple =
        |(at, &param): (usize, &Value)| found.contains(&Carried::Through(at)) || is_number(param);
    others.all(is_simple).then_some(found)
}

/// The elements by which an iteration moves pointers on, if that is a number of which all move by the same.
fn step_of(func: &TileFunction, param: Value, next: Value, body: Block) -> Option<Step> {
    let data = &func.dfg.insts[func.dfg.def_inst(next)?];
    if data.op != TileOp::Addptr || data.args[0] != param {
        return None;
    }
    let mut by = data.args[1];
    if let Some(known) = signed(func, by) {
        return Some(Step::Known(known));
    }
    while !func.dfg.ty(by).is_scalar() {
        let spread = &func.dfg.insts[func.dfg.def_inst(by)?];
        if !matches!(spread.op, TileOp::Splat | TileOp::Broadcast) {
            return None;
        }
        by = spread.args[0];
    }
    (!is_inside(func, by, body)).then_some(Step::Of(by))
}

/// Pointers after so many moves by so many elements, in 64 bits: each move alone need not wrap where the distance of all would.
fn moved(maker: &mut Maker<'_, Tile>, first: Value, by: Step, over: Value) -> Value {
    let i64 = TileType::scalar(Elem::I64);
    let over = maker.value(TileOp::Sext, &[over], &[], i64);
    let by = match by {
        Step::Known(by) => maker.number(by, i64),
        Step::Of(by) if maker.func.dfg.ty(by) == i64 => by,
        Step::Of(by) => maker.value(TileOp::Sext, &[by], &[], i64),
    };
    let mut distance = maker.value(TileOp::Imul, &[by, over], &[], i64);
    let ty = maker.func.dfg.ty(first);
    if !ty.is_scalar() {
        let block = TileType::block(Elem::I64, ty.shape);
        distance = maker.value(TileOp::Splat, &[distance], &[], block);
    }
    maker.value(TileOp::Addptr, &[first, distance], &[], ty)
}

/// Whether a value is made in a block, or is its parameter.
fn is_inside(func: &TileFunction, value: Value, block: Block) -> bool {
    match func.dfg.values[value].def {
        ValueDef::Param(of, _) => of == block,
        ValueDef::Result(inst, _) => func.order.block_of(inst) == Some(block),
    }
}

/// Copies of instructions, of what they are made of here.
fn copies(maker: &mut Maker<'_, Tile>, list: &[Inst], map: &mut FxHashMap<Value, Value>) {
    for &inst in list {
        let copy = copy_of(maker.func, inst, map);
        maker.made.push(copy);
    }
}

fn choose(maker: &mut Maker<'_, Tile>, condition: Value, a: Value, b: Value) -> Value {
    let ty = maker.func.dfg.ty(a);
    maker.value(TileOp::Select, &[condition, a, b], &[], ty)
}

#[cfg(test)]
mod tests {
    use super::flatten_loops;
    use crate::ir::function::TileFunction;
    use crate::ir::ops::TileOp;
    use crate::tile::testing::{parse, run, verified};

    /// Sums of products over three taps of channels in steps of four; the outer loop counts `v15` besides. `before` stands in front of the
    /// inner loop, and `behind` makes `v30` of `v15`.
    fn nest(channels: &str, before: &str, behind: &str, left: &str) -> TileFunction {
        parse(&format!(
            "kernel @k(v0: ptr<f32>, v1: ptr<i32>, v2: ptr<f32>) warps(1) {{
            block0:
                v4 = const {{value = 0}} : i32
                v5 = const {{value = 1}} : i32
                v6 = const {{value = 3}} : i32
                v7 = const {{value = 4}} : i32
                v8 = {channels} : i32
                v9 = const {{value = 0.0}} : f32[4,4]
                v10 = arange {{start = 0}} : i32[16]
                v11 = reshape v10 : i32[4,4]
                v12, v13 = for v4, v6, v5, v9, v5 : f32[4,4], i32 {{
                block1(v14: i32, v16: f32[4,4], v15: i32):
                    {before}
                    v17 = imul v14, v7 : i32
                    v18 = for v4, v8, v7, v16 {{stages = 3}} : f32[4,4] {{
                    block2(v19: i32, v20: f32[4,4]):
                        v21 = iadd v17, v19 : i32
                        v22 = iadd v21, v15 : i32
                        v23 = splat v22 : i32[4,4]
                        v24 = iadd v23, v11 : i32[4,4]
                        v25 = splat v0 : ptr<f32>[4,4]
                        v26 = addptr v25, v24 : ptr<f32>[4,4]
                        v27 = load v26 : f32[4,4]
                        v28 = dot v27, v27, v20 {{precision = ieee}} : f32[4,4]
                        yield v28
                    }}
                    {behind}
                    yield v18, v30
                }}
                v31 = splat v2 : ptr<f32>[4,4]
                v32 = addptr v31, v11 : ptr<f32>[4,4]
                store v32, v12
                {left}
                return
            }}"
        ))
    }

    /// Small numbers, of which sums of products are exact.
    fn numbers() -> Vec<u8> {
        let number = |i: u32| ((i * 7) % 5) as f32 - 2.0;
        (0..256).flat_map(|i| number(i).to_le_bytes()).collect()
    }

    fn loops(func: &TileFunction) -> usize {
        func.insts_with(TileOp::For).count()
    }

    const MOVED: &str = "v30 = iadd v15, v5 : i32";

    #[test]
    fn one_loop_computes_what_the_nest_did() {
        for channels in [-3i32, 0, 1, 4, 5, 8, 64] {
            let buffers = [numbers(), channels.to_le_bytes().to_vec(), vec![0; 64]];
            let known = format!("const {{value = {channels}}}");
            let ways = if channels > 0 {
                &["load v1", &known][..]
            } else {
                &["load v1"]
            };
            for way in ways {
                let before = nest(way, "", MOVED, "");
                let mut after = before.clone();
                assert_eq!(flatten_loops(&mut after), 1);
                verified(&after);
                assert_eq!(loops(&after), 1);
                assert_eq!(run(&after, &buffers), run(&before, &buffers), "{channels}");
            }
        }
    }

    /// Pointers that begin again with each tap, which an entry of a table says, and move on with each block of channels.
    fn moving(by: &str, looked_up: &str, written: &str) -> TileFunction {
        parse(&format!(
            "kernel @k(v0: ptr<f32>, v1: ptr<i32>, v2: ptr<f32>) warps(1) {{
            block0:
                v4 = const {{value = 0}} : i32
                v5 = const {{value = 1}} : i32
                v6 = const {{value = 3}} : i32
                v7 = const {{value = 4}} : i32
                v8 = load v1 : i32
                v9 = const {{value = 0.0}} : f32[4,4]
                v10 = arange {{start = 0}} : i32[16]
                v11 = reshape v10 : i32[4,4]
                v13 = {by} : i32[4,4]
                v12 = for v4, v6, v5, v9 : f32[4,4] {{
                block1(v14: i32, v16: f32[4,4]):
                    v17 = addptr v1, v14 : ptr<i32>
                    v29 = load v17{looked_up} : i32
                    v30 = splat v29 : i32[4,4]
                    v31 = iadd v30, v11 : i32[4,4]
                    v32 = splat v0 : ptr<f32>[4,4]
                    v33 = addptr v32, v31 : ptr<f32>[4,4]
                    v18, v19 = for v4, v8, v7, v16, v33 : f32[4,4], ptr<f32>[4,4] {{
                    block2(v20: i32, v21: f32[4,4], v22: ptr<f32>[4,4]):
                        v27 = load v22 : f32[4,4]
                        v28 = dot v27, v27, v21 {{precision = ieee}} : f32[4,4]
                        v26 = addptr v22, v13 : ptr<f32>[4,4]
                        {written}
                        yield v28, v26
                    }}
                    yield v18
                }}
                v34 = splat v2 : ptr<f32>[4,4]
                v35 = addptr v34, v11 : ptr<f32>[4,4]
                store v35, v12
                return
            }}"
        ))
    }

    #[test]
    fn pointers_are_moved_from_where_they_start() {
        let table: Vec<u8> = [9i32, 5, 70].iter().flat_map(|i| i.to_le_bytes()).collect();
        let buffers = [numbers(), table, vec![0; 64]];
        for by in [
            "const {value = 16}",
            "splat v6",
            "splat v8",
            "const {value = -1}",
        ] {
            let before = moving(by, "", "");
            let mut after = before.clone();
            assert_eq!(flatten_loops(&mut after), 1, "{by}");
            verified(&after);
            assert_eq!(loops(&after), 1);
            assert_eq!(run(&after, &buffers), run(&before, &buffers), "{by}");
        }
        // By other distances for each element, and where the table could be written meanwhile.
        assert_eq!(flatten_loops(&mut moving("iadd v11, v11", "", "")), 0);
        assert_eq!(
            flatten_loops(&mut moving("splat v6", "", "store v22, v27")),
            0
        );
        // An entry that others may change is looked up once for each tap.
        let volatile = moving("splat v6", " {volatile}", "");
        assert_eq!(flatten_loops(&mut volatile.clone()), 0);
    }

    #[test]
    fn what_cannot_be_repeated_stays() {
        let is_left = |mut func: TileFunction| flatten_loops(&mut func) == 0;
        // A block is loaded once for each iteration of the outer loop; a pipeline of its own pays; the inner loop never runs.
        let eight = "const {value = 8}";
        let block = "v40 = splat v0 : ptr<f32>[4,4]\nv41 = load v40 : f32[4,4]";
        assert!(is_left(nest(eight, block, MOVED, "")));
        assert!(is_left(nest("const {value = 68}", "", MOVED, "")));
        assert!(is_left(nest("const {value = 0}", "", MOVED, "")));
        // Sums that are looked at between the loops.
        let seen = format!("{MOVED}\nv41 = fadd v18, v18 : f32[4,4]");
        assert!(is_left(nest(eight, "", &seen, "")));
        // What the outer loop alone moves on, where the inner one may never run.
        assert!(is_left(nest("load v1", "", MOVED, "store v1, v13")));
        assert!(!is_left(nest(eight, "", MOVED, "store v1, v13")));
    }
}
