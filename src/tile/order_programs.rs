//! Which program a CTA executes: those that take longest begin first.
//!
//! A GPU starts CTAs in the order of their numbers. Programs of causal attention differ in how many blocks of keys they go through,
//! and if the longest of them begin last, most SMs have nothing to do in the end. So programs are counted anew: along the axis on
//! which the work depends, from the longest to the shortest, and in sections of eight along the other axes, which read the
//! same matrices (the heads of attention), so that these are still in the L2 cache:
//!
//! ```text
//! section 0:  (longest, head 0) .. (longest, head 7) (second, head 0) .. (shortest, head 7)
//! section 1:  (longest, head 8) ..
//! ```
//!
//! An H100 of 132 SMs that executes 64 heads of 32 blocks of rows is busy for 1.07 of the least time if each head is done by
//! itself, and for 1.00 of it in this order (counted, not measured).
//!
//! The order of programs is nobody's to rely on, except of those that wait for each other; kernels with `while` loops are left alone.

use cranelift_entity::EntitySet;

use crate::analysis::affine::{Atom, Forms, Poly};
use crate::analysis::depends::dependents;
use crate::analysis::program::ProgramOrder;
use crate::ir::attrs::{Attrs, Flag, IntPred, make};
use crate::ir::dfg::InstData;
use crate::ir::effects::OpClass;
use crate::ir::entities::{Inst, Value};
use crate::ir::function::TileFunction;
use crate::ir::level::Tile;
use crate::ir::maker::Maker;
use crate::ir::ops::TileOp;
use crate::ir::types::{Elem, TileType};

/// Numbers along the other axes that are executed together. (Causal attention of 64 heads with 128 columns on an H100, of cuDNN: 8 to
/// 16 heads 1.12 to 1.15, one head 1.08, all 64 1.10.)
const SECTION: i64 = 8;
/// Where programs are dealt out, a section has two rounds for heads of so many programs, four for twice as many, and so on: CTAs are then at a
/// quarter as many heads at a time. Longer sections share less of what their programs read, shorter ones end unevenly more often. (Causal attention of 128
/// columns and 262,144 rows in all on an H100, us, sections of 2, 4, 6 and 8 rounds: heads of 8 programs 172, 180, 190, 209; of 16 281,
/// 284, 288, 301; of 32 526, 523, 516, 516; of 64 988, 968, 957, 959; of 128 1880, 1827, 1807, 1756.)
const PROGRAMS_FOR_TWO_ROUNDS: u8 = 8;
/// Iterations by which one program must have more than the one before it. (A product whose programs share the sum, each from a block of
/// its own on, differs by one iteration in all.)
const LEAST: f64 = 0.5;
/// How deep divisions and minima in a bound are followed.
const MAX_DEPTH: u32 = 8;

/// How programs differ in work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uneven {
    /// The axis along which they do.
    pub axis: u8,
    /// Whether a higher number is more work.
    pub grows: bool,
}

/// How programs differ in what they multiply, if they do along one axis and in one direction.
pub fn uneven(func: &TileFunction) -> Option<Uneven> {
    if !can_follow_each_other(func) {
        return None;
    }
    let order = ProgramOrder::compute(func);
    let mut forms = Forms::new(func, &order);
    let own: Vec<EntitySet<Value>> = (0..3)
        .map(|axis| dependents(func, &order, |inst| is_number(func, inst, axis)))
        .collect();
    let mut found: Option<Uneven> = None;
    for (_, inst) in func.insts_with(TileOp::For) {
        let mut regions = func.regions(inst);
        if !regions.any(|region| func.any_inside(region, &InstData::is_product)) {
            continue;
        }
        let bounds = &func.dfg.insts[inst].args[..3];
        for (axis, own) in own.iter().enumerate() {
            if !bounds.iter().any(|&bound| own.contains(bound)) {
                continue;
            }
            let mut slopes = Slopes {
                forms: &mut forms,
                own,
                axis: axis as u8,
            };
            let slope = slopes.between(bounds)?;
            if slope.abs() < LEAST {
                continue;
            }
            let grows = slope > 0.0;
            let this = Uneven {
                axis: axis as u8,
                grows,
            };
            if *found.get_or_insert(this) != this {
                return None;
            }
        }
    }
    found
}

/// Whether programs may be executed one after the other by the same threads, in any number of CTAs.
pub(super) fn can_follow_each_other(func: &TileFunction) -> bool {
    func.all_insts().all(|(_, inst)| {
        let data = &func.dfg.insts[inst];
        match data.class() {
            OpClass::Region => data.op != TileOp::While,
            OpClass::Report | OpClass::Sync => false,
            OpClass::Foreign => data.is_pure(),
            _ => true,
        }
    })
}

fn is_number(func: &TileFunction, inst: Inst, axis: u8) -> bool {
    let data = &func.dfg.insts[inst];
    data.op == TileOp::ProgramId && data.axis() == Some(&axis)
}

/// By how much numbers grow with the program's number on an axis.
struct Slopes<'a, 'f> {
    forms: &'a mut Forms<'f>,
    /// What depends on that number.
    own: &'a EntitySet<Value>,
    axis: u8,
}

impl Slopes<'_, '_> {
    /// The iterations of a loop, whose step is a constant.
    fn between(&mut self, bounds: &[Value]) -> Option<f64> {
        let &[from, to, step] = bounds else {
            return None;
        };
        let [from, to] = [from, to].map(|bound| self.forms.form(bound));
        let length = to?.poly.minus(&from?.poly)?;
        let slope = self.sum(&length, MAX_DEPTH)?;
        let step = self.forms.form(step)?.poly.number()?;
        (step != 0).then(|| slope / step as f64)
    }

    fn of(&mut self, value: Value, depth: u32) -> Option<f64> {
        let form = self.forms.form(value)?;
        self.sum(&form.poly, depth)
    }

    fn sum(&mut self, poly: &Poly, depth: u32) -> Option<f64> {
        let mut slope = 0.0;
        for (monomial, factor) in poly.terms() {
            let depends = |atom: &Atom| match atom {
                Atom::Value(value) => self.own.contains(*value),
                Atom::Trip(_) => false,
            };
            if !monomial.atoms().iter().any(depends) {
                continue;
            }
            let &[Atom::Value(value)] = monomial.atoms() else {
                return None;
            };
            slope = agree(slope, self.atom(value, depth)? * factor as f64)?;
        }
        Some(slope)
    }

    /// Of a number that is no sum.
    fn atom(&mut self, value: Value, depth: u32) -> Option<f64> {
        let depth = depth.checked_sub(1)?;
        let func = self.forms.func;
        let inst = func.dfg.def_inst(value)?;
        let data = &func.dfg.insts[inst];
        match data.op {
            TileOp::ProgramId => Some(f64::from(u8::from(data.axis() == Some(&self.axis)))),
            TileOp::Smin | TileOp::Smax | TileOp::Umin | TileOp::Umax => {
                agree(self.of(data.args[0], depth)?, self.of(data.args[1], depth)?)
            }
            TileOp::Sdiv | TileOp::Udiv | TileOp::Sshr | TileOp::Ushr => {
                let by = self.forms.form(data.args[1])?.poly.number()?;
                let by = match data.op {
                    TileOp::Sdiv | TileOp::Udiv => by as f64,
                    _ => 2_f64.powi(i32::try_from(by).ok()?),
                };
                let slope = self.of(data.args[0], depth)?;
                (by > 0.0).then_some(slope / by)
            }
            _ => None,
        }
    }
}

/// The sum of two slopes that do not go against each other.
fn agree(a: f64, b: f64) -> Option<f64> {
    (a * b >= 0.0).then_some(a + b)
}

/// The numbers of the programs that are launched, along the axes.
pub(super) fn counts(maker: &mut Maker<'_, Tile>) -> [Value; 3] {
    [0, 1, 2].map(|axis| maker.value(TileOp::NumPrograms, &[], &[make::axis(axis)], number_type()))
}

pub(super) fn number_type() -> TileType {
    TileType::scalar(Elem::I32)
}

/// A number made of two.
pub(super) fn number_of(maker: &mut Maker<'_, Tile>, op: TileOp, args: [Value; 2]) -> Value {
    maker.value(op, &args, &[], number_type())
}

/// The program of which `index` is the number, counted along x, then y, then z.
pub(super) fn program(maker: &mut Maker<'_, Tile>, index: Value, counts: [Value; 3]) -> [Value; 3] {
    let [row, x] = divide(maker, index, counts[0]);
    let [z, y] = divide(maker, row, counts[1]);
    [x, y, z]
}

/// Quotient and remainder of numbers below 2^31.
pub(super) fn divide(maker: &mut Maker<'_, Tile>, a: Value, b: Value) -> [Value; 2] {
    let natural = [make::natural(Flag)];
    let quotient = maker.value(TileOp::Udiv, &[a, b], &natural, number_type());
    let whole = number_of(maker, TileOp::Imul, [quotient, b]);
    let rest = number_of(maker, TileOp::Isub, [a, whole]);
    [quotient, rest]
}

/// Who executes programs that are ordered by their work.
#[derive(Clone, Copy)]
pub(super) enum Executed {
    /// CTAs that begin in the order of their numbers, one for each.
    AsTheyBegin,
    /// So many CTAs, each of which executes every so-many-th.
    DealtOut {
        /// How many CTAs there are.
        ctas: Value,
        /// How many programs.
        all: Value,
    },
}

/// The program that is executed as number `index`, and there is none with more work behind it in its section; if they are dealt
/// out, none in a later round of it. Right as long as the number of programs has 31 bits.
pub(super) fn ordered_program(
    maker: &mut Maker<'_, Tile>,
    index: Value,
    counts: [Value; 3],
    uneven: Uneven,
    executed: Executed,
) -> [Value; 3] {
    let axis = usize::from(uneven.axis);
    let [b, c] = [[1, 2], [0, 2], [0, 1]][axis];
    let heads = number_of(maker, TileOp::Imul, [counts[b], counts[c]]);
    let one = maker.number(1, number_type());
    let section = match executed {
        Executed::AsTheyBegin => {
            let section = maker.number(SECTION, number_type());
            number_of(maker, TileOp::Umin, [heads, section])
        }
        Executed::DealtOut { ctas, all } => {
            // So many sections, all alike, that one is two rounds, about, or as many as bring four programs of a head to CTAs at once.
            let short = maker.number(PROGRAMS_FOR_TWO_ROUNDS.into(), number_type());
            let pairs = number_of(maker, TileOp::Udiv, [counts[axis], short]);
            let pairs = number_of(maker, TileOp::Umax, [pairs, one]);
            let half = number_of(maker, TileOp::Imul, [ctas, pairs]);
            let rounded = number_of(maker, TileOp::Iadd, [all, half]);
            let whole = number_of(maker, TileOp::Iadd, [half, half]);
            let sections = number_of(maker, TileOp::Udiv, [rounded, whole]);
            let sections = number_of(maker, TileOp::Umax, [sections, one]);
            let before = number_of(maker, TileOp::Isub, [heads, one]);
            let section = number_of(maker, TileOp::Udiv, [before, sections]);
            number_of(maker, TileOp::Iadd, [section, one])
        }
    };
    let whole = number_of(maker, TileOp::Imul, [section, counts[axis]]);
    let [number, mut rest] = divide(maker, index, whole);
    let first = number_of(maker, TileOp::Imul, [number, section]);
    // The last section may have fewer.
    let left = number_of(maker, TileOp::Isub, [heads, first]);
    let here = number_of(maker, TileOp::Umin, [left, section]);
    if let Executed::DealtOut { ctas, .. } = executed {
        let programs = number_of(maker, TileOp::Imul, [here, counts[axis]]);
        rest = back_and_forth(maker, rest, [ctas, programs]);
    }
    let [rank, head] = divide(maker, rest, here);
    let head = number_of(maker, TileOp::Iadd, [first, head]);
    let [outer, inner] = divide(maker, head, counts[b]);
    let mut program = [rank; 3];
    program[b] = inner;
    program[c] = outer;
    if uneven.grows {
        let last = number_of(maker, TileOp::Isub, [counts[axis], one]);
        program[axis] = number_of(maker, TileOp::Isub, [last, rank]);
    }
    program
}

/// The number that is dealt out instead of `index` if every second round goes backwards, so that nobody always gets the longest. A last
/// round that is not for all goes backwards, too, among those that it is for.
fn back_and_forth(maker: &mut Maker<'_, Tile>, index: Value, [ctas, all]: [Value; 2]) -> Value {
    let [round, at] = divide(maker, index, ctas);
    let one = maker.number(1, number_type());
    let zero = maker.number(0, number_type());
    let first = number_of(maker, TileOp::Isub, [index, at]);
    let left = number_of(maker, TileOp::Isub, [all, first]);
    let here = number_of(maker, TileOp::Umin, [ctas, left]);
    let last = number_of(maker, TileOp::Isub, [here, one]);
    let opposite = number_of(maker, TileOp::Isub, [last, at]);
    let backwards = number_of(maker, TileOp::Iadd, [first, opposite]);
    let odd = number_of(maker, TileOp::And, [round, one]);
    let goes_on = maker.compare(IntPred::Eq, odd, zero);
    let args = [goes_on, index, backwards];
    maker.value(TileOp::Select, &args, &[], number_type())
}

/// Lets the programs with most work begin first.
pub fn order_programs(func: &mut TileFunction, uneven: Uneven) {
    let entry = func.entry;
    let mut maker = Maker::new(func);
    let counts = counts(&mut maker);
    let own = [0, 1, 2]
        .map(|axis| maker.value(TileOp::ProgramId, &[], &[make::axis(axis)], number_type()));
    let below = number_of(&mut maker, TileOp::Imul, [counts[1], own[2]]);
    let below = number_of(&mut maker, TileOp::Iadd, [below, own[1]]);
    let below = number_of(&mut maker, TileOp::Imul, [counts[0], below]);
    let index = number_of(&mut maker, TileOp::Iadd, [below, own[0]]);
    // More programs than 31 bits can count stay as they are.
    let rows = number_of(&mut maker, TileOp::Imul, [counts[1], counts[2]]);
    let twice = number_of(&mut maker, TileOp::Iadd, [counts[0], counts[0]]);
    let beyond = number_of(&mut maker, TileOp::Umulhi, [twice, rows]);
    let ordered = ordered_program(&mut maker, index, counts, uneven, Executed::AsTheyBegin);
    let zero = maker.number(0, number_type());
    let fits = maker.compare(IntPred::Eq, beyond, zero);
    let program = [0, 1, 2].map(|axis| {
        let args = [fits, ordered[axis], own[axis]];
        maker.value(TileOp::Select, &args, &[], number_type())
    });
    let mut body = std::mem::take(&mut maker.made);
    let made = body.len();
    body.extend_from_slice(func.order.insts(entry));
    func.order.replace(entry, body);
    name_programs(func, program, made);
}

/// Replaces what says which program runs, except in the first instructions of the function, which number them.
pub(super) fn name_programs(func: &mut TileFunction, index: [Value; 3], except: usize) {
    let number = |func: &TileFunction, value: Value| {
        let data = &func.dfg.insts[func.dfg.def_inst(value)?];
        let is_index = data.op == TileOp::ProgramId;
        let axis = data.axis().filter(|_| is_index)?;
        index.get(usize::from(*axis)).copied()
    };
    for block in func.all_blocks() {
        let kept = if block == func.entry { except } else { 0 };
        let mut list = func.order.insts(block).to_vec();
        for inst in list.split_off(kept) {
            if func.dfg.insts[inst].op == TileOp::ProgramId {
                continue;
            }
            for i in 0..func.dfg.insts[inst].args.len() {
                let old = func.dfg.insts[inst].args[i];
                if let Some(new) = number(func, old) {
                    func.dfg.insts[inst].args[i] = new;
                }
            }
            list.push(inst);
        }
        func.order.replace(block, list);
    }
}

#[cfg(test)]
mod tests {
    use super::{Uneven, order_programs, uneven};
    use crate::interp::{Arg, Launch, Memory, Options, run};
    use crate::ir::function::TileFunction;
    use crate::text::parse::parse_tile;
    use crate::tile::loop_over_programs::loop_over_programs;
    use crate::tile::testing::verified;

    /// A kernel that multiplies in a loop with these bounds, and stores when it was executed at its program's place: the interpreter
    /// executes programs in the order of their numbers.
    fn kernel(before: &str, bounds: &str) -> TileFunction {
        let text = format!(
            "kernel @k(v0: ptr<i32>, v1: i32, v2: ptr<i32>) warps(1) {{
            block0:
                v3 = program_id {{axis = 0}} : i32
                v4 = program_id {{axis = 1}} : i32
                v5 = program_id {{axis = 2}} : i32
                v6 = num_programs {{axis = 0}} : i32
                v7 = num_programs {{axis = 1}} : i32
                v8 = const {{value = 1}} : i32
                v9 = const {{value = 0}} : i32
                v10 = const {{value = 64}} : i32
                v11 = const {{value = 0}} : f32[16,16]
                v12 = const {{value = 0x3c00}} : f16[16,16]
                {before}
                for {bounds} {{
                block1(v30: i32):
                    v31 = dot v12, v12, v11 {{precision = ieee}} : f32[16,16]
                    yield
                }}
                v40 = imul v5, v7 : i32
                v41 = iadd v40, v4 : i32
                v42 = imul v41, v6 : i32
                v43 = iadd v42, v3 : i32
                v44 = addptr v0, v43 : ptr<i32>
                v45 = atomic_rmw v2, v8 {{rmw = add, sem = relaxed, scope = gpu}} : i32
                store v44, v45
                return
            }}"
        );
        parse_tile(&text).unwrap_or_else(|errors| panic!("{errors:?}"))
    }

    /// When each program of a grid was executed.
    fn turns(func: &TileFunction, grid: [u32; 3]) -> Vec<i32> {
        let programs = grid.iter().product::<u32>() as usize;
        let mut memory = Memory::new();
        let [to, counter] = [4 * programs, 4].map(|bytes| memory.alloc(bytes));
        memory.write(counter, &[0; 4]).expect("it is there");
        let args = [Arg::Ptr(to), Arg::Int(3), Arg::Ptr(counter)];
        run(
            func,
            &Launch { grid, args: &args },
            &mut memory,
            &Options::default(),
        )
        .expect("nothing is undefined");
        let bytes = memory.read(to, 4 * programs).expect("every program runs");
        bytes
            .chunks_exact(4)
            .map(|number| i32::from_le_bytes(number.try_into().expect("four bytes")))
            .collect()
    }

    #[test]
    fn programs_are_dealt_out_evenly_and_head_by_head() {
        let mut func = kernel("", "v9, v3, v8");
        let found = uneven(&func).expect("the loop depends on the program");
        loop_over_programs(&mut func, Some(found));
        verified(&func);
        let [length, heads, ctas] = [8, 9, 3];
        let turns = turns(&func, [length, heads, 1]);
        // The interpreter executes one CTA after the other, each as many programs.
        let each = (length * heads / ctas) as usize;
        let mut programs: Vec<u32> = (0..length * heads).collect();
        programs.sort_by_key(|&program| turns[program as usize]);
        // The first round goes forwards: the first CTA begins with the longest of the first head.
        assert_eq!(programs[0], length - 1);
        for own in programs.chunks(each) {
            let work: u32 = own.iter().map(|program| program % length).sum();
            let mean = heads * length * (length - 1) / 2 / ctas;
            assert!(work.abs_diff(mean) * 20 <= mean, "{work} of {mean}");
            // What a head's programs read is read by all CTAs at about the same time.
            assert!(own.is_sorted_by_key(|program| program / length), "{own:?}");
        }
    }

    #[test]
    fn every_program_runs_once_and_the_longest_first() {
        let bounds = [
            ("v9, v3, v8", [0, 1, 2]),
            ("v3, v6, v8", [0, 1, 2]),
            ("v9, v4, v8", [1, 0, 2]),
            ("v9, v5, v8", [2, 0, 1]),
        ];
        for (bounds, [axis, b, c]) in bounds {
            let mut func = kernel("", bounds);
            let found = uneven(&func).expect("the loop depends on the program");
            assert_eq!(usize::from(found.axis), axis);
            assert_eq!(found.grows, !bounds.ends_with("v6, v8"));
            order_programs(&mut func, found);
            verified(&func);
            for grid in [
                [1, 1, 1],
                [7, 1, 1],
                [5, 9, 2],
                [3, 20, 1],
                [2, 3, 19],
                [1, 8, 3],
            ] {
                let turns = turns(&func, grid);
                let n = grid.map(|count| count as usize);
                let mut expected = Vec::new();
                let heads = n[b] * n[c];
                for first in (0..heads).step_by(8) {
                    for rank in 0..n[axis] {
                        for head in first..heads.min(first + 8) {
                            let mut at = [0; 3];
                            at[axis] = if found.grows {
                                n[axis] - 1 - rank
                            } else {
                                rank
                            };
                            at[b] = head % n[b];
                            at[c] = head / n[b];
                            expected.push(at[0] + n[0] * (at[1] + n[1] * at[2]));
                        }
                    }
                }
                for (turn, program) in expected.into_iter().enumerate() {
                    assert_eq!(turns[program], turn as i32, "{bounds} {grid:?}");
                }
            }
        }
    }

    #[test]
    fn work_is_compared_by_the_forms_of_bounds() {
        let grows = |axis, grows| Some(Uneven { axis, grows });
        let cases = [
            ("", "v9, v10, v8", None),
            ("", "v9, v1, v8", None),
            // As many iterations for each program, elsewhere.
            ("v20 = iadd v3, v10 : i32", "v3, v20, v8", None),
            ("v20 = imul v3, v10 : i32", "v9, v20, v10", grows(0, true)),
            ("v20 = isub v6, v4 : i32", "v9, v20, v8", grows(1, false)),
            (
                "v20 = iadd v3, v8 : i32\nv21 = imul v20, v10 : i32\nv22 = smin v21, v1 : i32",
                "v9, v22, v10",
                grows(0, true),
            ),
            (
                "v20 = imul v3, v10 : i32\nv21 = sdiv v20, v10 : i32",
                "v9, v21, v8",
                grows(0, true),
            ),
            // Each has its part of a sum, in turns.
            ("v20 = imul v3, v8 : i32", "v20, v10, v10", None),
            (
                "v20 = shl v3, v8 : i32\nv21 = sshr v20, v8 : i32",
                "v9, v21, v8",
                grows(0, true),
            ),
            // Half an iteration more for each program counts, less does not, nor does what nobody may divide by.
            ("v20 = sshr v3, v8 : i32", "v9, v20, v8", grows(0, true)),
            ("v20 = sdiv v3, v10 : i32", "v9, v20, v8", None),
            ("v20 = sdiv v3, v9 : i32", "v9, v20, v8", None),
            // Of a number whose sign nobody knows, in two directions, and of two axes.
            ("v20 = imul v3, v1 : i32", "v9, v20, v10", None),
            ("v20 = smin v3, v10 : i32", "v20, v3, v8", None),
            ("v20 = iadd v3, v4 : i32", "v9, v20, v8", None),
            ("", "v9, v10, v3", None),
            // Not in order: from memory.
            (
                "v20 = addptr v2, v3 : ptr<i32>\nv21 = load v20 : i32",
                "v9, v21, v8",
                None,
            ),
        ];
        for (before, bounds, expected) in cases {
            assert_eq!(
                uneven(&kernel(before, bounds)),
                expected,
                "{before} {bounds}"
            );
        }
    }
}
