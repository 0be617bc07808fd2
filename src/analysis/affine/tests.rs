//! Forms, ranges and demand of one kernel, held against what is written by hand.

use super::host::Hosts;
use super::reach::Reach;
use super::*;
use crate::analysis::axis::Axis;
use crate::analysis::demand::{Bound, Demand};
use crate::text::parse::parse_tile;

/// Rows of 64 elements that a loop walks by 32 columns, wrapped at `M`, are multiplied with themselves and stored below `M`.
fn product(end: &str) -> TileFunction {
    let text = format!(
        "kernel @k(v0: ptr<f16>, v1: ptr<f32>, v2 \"M\": i32, v3 \"K\": i32, v4 \"stride\": i32) warps(4) {{
        block0:
            v5 = program_id {{axis = 0}} : i32
            v6 = const {{value = 6}} : i32
            v7 = shl v5, v6 : i32
            v8 = arange {{start = 0}} : i32[64]
            v9 = splat v7 : i32[64]
            v10 = iadd v9, v8 : i32[64]
            v11 = splat v2 : i32[64]
            v12 = srem v10, v11 : i32[64]
            v13 = splat v4 : i32[64]
            v14 = imul v12, v13 : i32[64]
            v15 = splat v0 : ptr<f16>[64]
            v16 = addptr v15, v14 : ptr<f16>[64]
            v17 = expand_dims v16 {{axis = 1}} : ptr<f16>[64,1]
            v18 = broadcast v17 : ptr<f16>[64,64]
            v19 = expand_dims v8 {{axis = 0}} : i32[1,64]
            v20 = broadcast v19 : i32[64,64]
            v21 = addptr v18, v20 : ptr<f16>[64,64]
            v22 = const {{value = 0.0}} : f32[64,64]
            v23 = const {{value = 0}} : i32
            v24 = const {{value = 64}} : i32
            v25 = const {{value = 64}} : i32[64,64]
            v26, v27 = for v23, v3, v24, v22, v21 : f32[64,64], ptr<f16>[64,64] {{
            block1(v28: i32, v29: f32[64,64], v30: ptr<f16>[64,64]):
                v31 = load v30 : f16[64,64]
                v32 = permute v31 {{dims = [1, 0]}} : f16[64,64]
                v33 = dot v31, v32, v29 {{precision = tf32}} : f32[64,64]
                v34 = addptr v30, v25 : ptr<f16>[64,64]
                yield v33, v34
            }}
            v35 = icmp v10, v11 {{ipred = slt}} : i1[64]
            v36 = expand_dims v35 {{axis = 1}} : i1[64,1]
            v37 = broadcast v36 : i1[64,64]
            v38 = splat v1 : ptr<f32>[64,64]
            v39 = addptr v38, v20 : ptr<f32>[64,64]
            {end}
            return
        }}"
    );
    parse_tile(&text).unwrap_or_else(|errors| panic!("{errors:#?}"))
}

const STORED: &str = "store v39, v26, v37";

/// The value that the text names; those of a text are numbered in order.
fn value(number: u32) -> Value {
    Value::from_u32(number)
}

fn atom(number: u32) -> Poly {
    Poly::atom(Atom::Value(value(number)))
}

fn sum(terms: &[Poly]) -> Poly {
    let mut all = Poly::default();
    for term in terms {
        all = all.plus(term).expect("few terms");
    }
    all
}

#[test]
fn addresses_are_sums_of_indices_times_strides() {
    let func = product(STORED);
    let order = ProgramOrder::compute(&func);
    let mut forms = Forms::new(&func, &order);
    // What the loop carries.
    let form = forms.form(value(30)).expect("it has a form");
    let (_, walk) = func
        .insts_with(TileOp::For)
        .next()
        .expect("there is a loop");
    let trip = Poly::atom(Atom::Trip(walk));
    let row = sum(&[atom(5).scaled(64).expect("small"), Poly::index(0)]);
    let by_hand = [
        row.times(&atom(4)).expect("small"),
        Poly::index(1),
        trip.scaled(64).expect("small"),
    ];
    assert_eq!(form.poly, sum(&by_hand));
    assert_eq!(form.base, Some(value(0)));
    let [clamp] = &form.clamps[..] else {
        panic!("one remainder: {:?}", form.clamps);
    };
    assert_eq!((&clamp.x, &clamp.bound), (&row, &atom(2)));
    assert!(form.exact.contains(&value(14)), "offsets of 32 bits");
    // The counter.
    let form = forms.form(value(28)).expect("it has a form");
    assert_eq!(form.poly, trip.scaled(64).expect("small"));
    // What a product of matrices gives is no index.
    assert_eq!(forms.form(value(33)), None);
}

#[test]
fn ranges_are_those_of_all_programs() {
    let func = product(STORED);
    let order = ProgramOrder::compute(&func);
    let mut forms = Forms::new(&func, &order);
    let axis = Axis::compute(&func);
    let mut hosts = Hosts::default();
    let programs = hosts.programs(0);
    let (zero, one, minus_one) = (hosts.number(0), hosts.number(1), hosts.number(-1));
    let (sixty_four, most) = (hosts.number(64), hosts.number(i64::from(i32::MAX)));
    let (rows, terms) = (hosts.param(value(2), 32), hosts.param(value(3), 32));
    let last = hosts.add(programs, minus_one);
    let start = hosts.mul(last, sixty_four);
    let last_row = hosts.sub(rows, one);
    let last_term = hosts.sub(terms, one);
    let mut reach = Reach::new(&mut forms, &axis, &mut hosts);
    let range = reach.range(value(7)).expect("it has bounds");
    assert_eq!((range.lo, range.hi), (zero, start));
    assert_eq!(range.conds, [(start, most)], "it does not wrap");
    let range = reach.range(value(28)).expect("it has bounds");
    assert_eq!((range.lo, range.hi), (zero, last_term));
    // Where only rows below the bound matter, the last one is known.
    let row = reach.forms.form(value(10)).expect("it has a form");
    reach.limit(&row.poly, rows);
    let range = reach.range(value(12)).expect("it has bounds");
    assert_eq!((range.lo, range.hi), (zero, last_row));
}

#[test]
fn blocks_reach_to_their_last_element() {
    let func = product(STORED);
    let order = ProgramOrder::compute(&func);
    let mut forms = Forms::new(&func, &order);
    let axis = Axis::compute(&func);
    let mut hosts = Hosts::default();
    let programs = hosts.programs(0);
    let [zero, minus_one, sixty_four, last] = [0, -1, 64, 63].map(|n| hosts.number(n));
    let last_program = hosts.add(programs, minus_one);
    let start = hosts.mul(last_program, sixty_four);
    let end = hosts.add(start, last);
    let mut reach = Reach::new(&mut forms, &axis, &mut hosts);
    let range = reach.range(value(10)).expect("it has bounds");
    assert_eq!((range.lo, range.hi), (zero, end));
}

/// `a - min(a, x)` and `max(x, b) - b` are not negative.
#[test]
fn what_exceeds_a_bound_is_not_negative() {
    let text = "kernel @k(v0: i32) warps(4) {
        block0:
            v1 = program_id {axis = 0} : i32
            v2 = const {value = 8} : i32
            v3 = smin v1, v2 : i32
            v4 = isub v1, v3 : i32
            v5 = smax v2, v1 : i32
            v6 = isub v5, v1 : i32
            v7 = isub v1, v2 : i32
            return
        }";
    let func = parse_tile(text).unwrap_or_else(|errors| panic!("{errors:#?}"));
    let order = ProgramOrder::compute(&func);
    let mut forms = Forms::new(&func, &order);
    let axis = Axis::compute(&func);
    let mut hosts = Hosts::default();
    let programs = hosts.programs(0);
    let [zero, minus_one, eight] = [0, -1, 8].map(|n| hosts.number(n));
    let last = hosts.add(programs, minus_one);
    let past = hosts.sub(last, eight);
    let most = hosts.max(past, zero);
    let nearest = hosts.sub(eight, last);
    let least = hosts.max(nearest, zero);
    let mut reach = Reach::new(&mut forms, &axis, &mut hosts);
    let mut ends = |n| {
        let range = reach.range(value(n)).expect("it has bounds");
        (range.lo, range.hi)
    };
    assert_eq!(ends(4), (zero, most));
    assert_eq!(ends(6), (least, eight));
    assert_ne!(ends(7).0, zero);
}

/// What a loop carries is a sum in itself.
#[test]
fn blocks_that_loops_carry_reach_to_their_last_element() {
    let text = "kernel @k(v0: i32) warps(4) {
        block0:
            v1 = const {value = 0} : i32
            v2 = const {value = 1} : i32
            v3 = arange {start = 0} : i32[64]
            v4 = const {value = 64} : i32[64]
            v5 = for v1, v0, v2, v3 : i32[64] {
            block1(v6: i32, v7: i32[64]):
                v8 = iadd v7, v4 : i32[64]
                yield v8
            }
            return
        }";
    let func = parse_tile(text).expect("a kernel");
    let order = ProgramOrder::compute(&func);
    let mut forms = Forms::new(&func, &order);
    let axis = Axis::compute(&func);
    let mut hosts = Hosts::default();
    let [zero, sixty_four, last] = [0, 64, 63].map(|n| hosts.number(n));
    let mut reach = Reach::new(&mut forms, &axis, &mut hosts);
    let counter = reach.range(value(6)).expect("it has bounds");
    let range = reach.range(value(7)).expect("it has bounds");
    assert_eq!(range.lo, zero);
    // The last round begins 64 times the counter in front of where it ends.
    let before = reach.hosts.mul(counter.hi, sixty_four);
    let end = reach.hosts.add(before, last);
    let other = reach.hosts.add(last, before);
    assert!([end, other].contains(&range.hi), "{range:?}");
}

#[test]
fn what_nobody_knows_has_the_range_of_its_type() {
    let text = "kernel @k(v0: ptr<i8>, v1: ptr<i32>) warps(4) {
        block0:
            v2 = load v0 : i8
            v3 = load v1 : i32
            store v1, v3
            store v0, v2
            return
        }";
    let func = parse_tile(text).expect("a kernel");
    let order = ProgramOrder::compute(&func);
    let mut forms = Forms::new(&func, &order);
    let axis = Axis::compute(&func);
    let mut hosts = Hosts::default();
    let number = |hosts: &mut Hosts, bits: u32| {
        let most = 1_i64 << (bits - 1);
        (hosts.number(-most), hosts.number(most - 1))
    };
    let expected = [number(&mut hosts, 8), number(&mut hosts, 32)];
    let mut reach = Reach::new(&mut forms, &axis, &mut hosts);
    let found = [2, 3].map(|v| reach.range(value(v)).map(|range| (range.lo, range.hi)));
    assert_eq!(found, expected.map(Some));
}

#[test]
fn branches_give_from_the_least_to_the_largest_of_both() {
    let text = "kernel @k(v0: i32, v1: i1) warps(4) {
        block0:
            v2 = const {value = 3} : i32
            v3, v4 = if v1 : i32, i32 {
            block1:
                v5 = const {value = -7} : i32
                yield v5, v0
            } {
            block2:
                yield v2, v2
            }
            return
        }";
    let func = parse_tile(text).expect("a kernel");
    let order = ProgramOrder::compute(&func);
    let mut forms = Forms::new(&func, &order);
    let axis = Axis::compute(&func);
    let mut hosts = Hosts::default();
    let [least, most] = [-7, 3].map(|n| hosts.number(n));
    let given = hosts.param(value(0), 32);
    let ends = (hosts.min(given, most), hosts.max(given, most));
    let mut reach = Reach::new(&mut forms, &axis, &mut hosts);
    let found = [3, 4].map(|v| reach.range(value(v)).map(|range| (range.lo, range.hi)));
    assert_eq!(found, [Some((least, most)), Some(ends)]);
}

#[test]
fn wide_numbers_may_be_told_apart_from_what_they_are_made_of() {
    let text = "kernel @k(v0: i32, v1: i32) warps(4) {
        block0:
            v2 = imul v0, v1 : i32
            v3 = sext v2 : i64
            v4 = sext v0 : i64
            v5 = iadd v3, v4 : i64
            v6 = const {value = 5} : i32
            v7 = sext v6 : i64
            return
        }";
    let func = parse_tile(text).expect("a kernel");
    let order = ProgramOrder::compute(&func);
    let form = |forms: &mut Forms<'_>, v| (*forms.form(value(v)).expect("it has a form")).clone();
    let mut forms = Forms::new(&func, &order);
    let made = form(&mut forms, 5);
    assert_eq!(made.exact[..], [value(2), value(0)]);
    let product = atom(0).times(&atom(1)).expect("small");
    assert_eq!(made.poly, sum(&[product, atom(0)]));
    let mut forms = Forms::of_whole_numbers(&func, &order);
    let whole = form(&mut forms, 5);
    assert!(
        whole.exact.is_empty(),
        "a number as wide as it was cannot have wrapped"
    );
    assert_eq!(whole.poly, sum(&[atom(2), atom(0)]));
    assert_eq!(form(&mut forms, 7).poly.number(), Some(5));
    // Whatever it was computed from, it is a number of 32 bits.
    let axis = Axis::compute(&func);
    let mut hosts = Hosts::default();
    let mut reach = Reach::new(&mut forms, &axis, &mut hosts);
    assert!(reach.range(value(3)).is_some());
}

#[test]
fn what_a_loop_adds_counts_from_either_side() {
    let text = "kernel @k(v0: i32, v1: i32) warps(4) {
        block0:
            v2 = const {value = 0} : i32
            v3, v4 = for v2, v0, v1, v1, v1 : i32, i32 {
            block1(v5: i32, v6: i32, v7: i32):
                v8 = iadd v6, v1 : i32
                v9 = iadd v1, v7 : i32
                yield v8, v9
            }
            return
        }";
    let func = parse_tile(text).expect("a kernel");
    let order = ProgramOrder::compute(&func);
    let mut forms = Forms::new(&func, &order);
    let [one, other] = [6, 7].map(|v| forms.form(value(v)).expect("it has a form").poly.clone());
    assert!(
        one.atoms().any(|atom| matches!(atom, Atom::Trip(_))),
        "{one:?}"
    );
    assert_eq!(one, other);
}

/// Whether rows of the load that lie beyond the bound matter.
fn rows_matter(end: &str) -> bool {
    let func = product(end);
    let order = ProgramOrder::compute(&func);
    let mut forms = Forms::new(&func, &order);
    let demand = Demand::compute(&func, &order, &mut forms);
    let form = forms.form(value(30)).expect("it has a form");
    let clamp = &form.clamps[0];
    let bound = Bound::along(0, &clamp.x, &clamp.bound, clamp.bits);
    // The product alone: the load is both of its operands, one of them transposed.
    let needed = |dim: u8| demand.below(value(26), dim, &bound).is_none();
    assert!(needed(1), "columns have no bound");
    assert!(
        demand.below(value(31), 0, &bound).is_none(),
        "the right operand's columns matter"
    );
    needed(0)
}

#[test]
fn rows_matter_where_they_flow_to() {
    assert!(!rows_matter(STORED));
    assert!(!rows_matter(
        "v40 = fneg v26 : f32[64,64]\n store v39, v40, v37"
    ));
    // Each row by itself.
    let by_row = "v40 = reduce v26 {axis = 1} : f32[64] {
            block2(v41: f32, v42: f32):
                v43 = fadd v41, v42 : f32
                yield v43
            }
            v44 = expand_dims v40 {axis = 1} : f32[64,1]
            v45 = broadcast v44 : f32[64,64]
            v46 = fsub v26, v45 : f32[64,64]
            store v39, v46, v37";
    assert!(!rows_matter(by_row));
    for matters in [
        "store v39, v26",
        "store v39, v26, v37\n store v39, v26",
        &by_row
            .replace("axis = 1", "axis = 0")
            .replace("64,1]", "1,64]"),
        "v40 = fptosi v26 : i32[64,64]\n v41 = addptr v39, v40 : ptr<f32>[64,64]\n store v41, v22",
    ] {
        assert!(rows_matter(matters), "{matters}");
    }
}

/// A loop that moves `step` on in another one, from `lo` to `hi`; the form of what the inner one carries, and the loops.
fn nested(lo: i64, hi: &str, step: &str) -> (Option<Poly>, [Inst; 2]) {
    let text = format!(
        "kernel @k(v0: ptr<f16>, v1: i32, v2: i32) warps(4) {{
        block0:
            v3 = const {{value = 0}} : i32
            v4 = const {{value = 1}} : i32
            v5 = const {{value = {lo}}} : i32
            v6 = const {{value = 100}} : i32
            v7 = const {{value = 32}} : i32
            v8 = const {{value = 5}} : i32
            v9 = for v3, v1, v4, v0 : ptr<f16> {{
            block1(v10: i32, v11: ptr<f16>):
                v12 = for v5, {hi}, v7, v11 : ptr<f16> {{
                block2(v13: i32, v14: ptr<f16>):
                    v15 = addptr v14, {step} : ptr<f16>
                    yield v15
                }}
                v16 = addptr v12, v8 : ptr<f16>
                yield v16
            }}
            return
        }}"
    );
    let func = parse_tile(&text).unwrap_or_else(|errors| panic!("{errors:#?}"));
    let order = ProgramOrder::compute(&func);
    let loops: Vec<Inst> = func.insts_with(TileOp::For).map(|(_, inst)| inst).collect();
    let form = Forms::new(&func, &order).form(value(14));
    let is_of_start = |form: &Rc<AffineForm>| form.base == Some(value(0));
    let form = form.filter(is_of_start).map(|form| form.poly.clone());
    (form, [loops[0], loops[1]])
}

#[test]
fn what_loops_in_loops_move_on_is_what_all_their_iterations_do() {
    let (form, [outer, inner]) = nested(0, "v6", "v2");
    let trips = [outer, inner].map(|inst| Poly::atom(Atom::Trip(inst)));
    let step = atom(2);
    // Of 100 numbers each 32nd: four.
    let each = step.scaled(4).expect("small");
    let each = each.plus(&Poly::constant(5)).expect("few terms");
    let parts = [each.times(&trips[0]), step.times(&trips[1])].map(|part| part.expect("small"));
    assert_eq!(form, Some(sum(&parts)));
    let (form, [outer, inner]) = nested(99, "v6", "v2");
    let trips = [outer, inner].map(|inst| Poly::atom(Atom::Trip(inst)));
    let each = step.plus(&Poly::constant(5)).expect("few terms");
    let parts = [each.times(&trips[0]), step.times(&trips[1])].map(|part| part.expect("small"));
    assert_eq!(form, Some(sum(&parts)));
    // How often the inner one runs, or what it moves on, is not always the same.
    for (lo, hi, step) in [(100, "v6", "v2"), (0, "v1", "v2"), (0, "v6", "v10")] {
        assert_eq!(nested(lo, hi, step).0, None, "{lo} {hi} {step}");
    }
}
