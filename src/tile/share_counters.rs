//! What a loop carries and moves on as its counter moves is computed from the counter.
//!
//! ```text
//! for t in start..tiles by 132 carrying c = start - 132 {      for t in start..tiles by 132 {
//!     c' = c + 132                                        =>       .. t ..
//!     .. c' ..                                                 }
//! }
//! ```
//!
//! Kernels that walk over tiles count them a second time for their stores. As one number, what is computed from it is computed once,
//! and it ends where the counter does, which the launcher asks of what bounds a tensor map. Numbers that are the counter and a constant
//! are found by their forms ([`crate::analysis::affine`]); these are right modulo 2^32, as the numbers are.

use super::edit::rename_uses;
use crate::analysis::affine::{Atom, Forms, Poly};
use crate::analysis::program::ProgramOrder;
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::function::TileFunction;
use crate::ir::maker::Maker;
use crate::ir::ops::TileOp;
use crate::ir::types::{Elem, TileType};

/// Computes what loops count twice from their counters; gives how many values.
pub fn share_counters(func: &mut TileFunction) -> usize {
    if !carries_counters(func) {
        return 0;
    }
    let mut found: Vec<(Block, Value, Value, i64)> = Vec::new();
    let order = ProgramOrder::compute(func);
    let mut forms = Forms::new(func, &order);
    for (_, inst) in func.insts_with(TileOp::For) {
        let Some(body) = func.regions(inst).next() else {
            continue;
        };
        if let [counter, carried @ ..] = &func.dfg.blocks[body].params[..]
            && let Some(count) = number(&mut forms, *counter)
            && carried
                .iter()
                .any(|&it| is_beside(&mut forms, it, &count, inst))
        {
            for value in sums(func, body) {
                let form = number(&mut forms, value);
                let more = form.and_then(|form| form.minus(&count)?.number());
                found.extend(more.map(|more| (body, *counter, value, more)));
            }
        }
    }
    let count = found.len();
    for (body, counter, value, more) in found {
        let mut new = counter;
        if more != 0 {
            let ty = func.dfg.ty(counter);
            let mut maker = Maker::new(func);
            let number = maker.number(more, ty);
            new = maker.value(TileOp::Iadd, &[counter, number], &[], ty);
            maker.put(body, 0);
        }
        rename_uses(func, value, new);
    }
    count
}

/// Whether some loop carries what may be one.
fn carries_counters(func: &TileFunction) -> bool {
    let loops = func.insts_with(TileOp::For);
    let mut carried = loops.flat_map(|(_, inst)| &func.dfg.insts[inst].results);
    carried.any(|&value| func.dfg.ty(value) == TileType::scalar(Elem::I32))
}

/// What a scalar of 32 bits is.
fn number(forms: &mut Forms<'_>, value: Value) -> Option<Poly> {
    if forms.func.dfg.ty(value) != TileType::scalar(Elem::I32) {
        return None;
    }
    let form = forms.form(value)?;
    forms.holds_modulo(&form).then(|| form.poly.clone())
}

/// Whether the iterations that are over say as much of a number as of the counter.
fn is_beside(forms: &mut Forms<'_>, value: Value, counter: &Poly, inst: Inst) -> bool {
    let form = number(forms, value);
    let beside = form.and_then(|form| form.minus(counter));
    beside.is_some_and(|rest| rest.atoms().all(|atom| atom != Atom::Trip(inst)))
}

/// What a loop carries, and the sums in it.
fn sums(func: &TileFunction, body: Block) -> Vec<Value> {
    let mut found = func.dfg.blocks[body].params[1..].to_vec();
    let mut todo = vec![body];
    while let Some(block) = todo.pop() {
        for &inst in func.order.insts(block) {
            let data = &func.dfg.insts[inst];
            if matches!(data.op, TileOp::Iadd | TileOp::Isub) {
                found.extend(&data.results);
            }
            todo.extend(func.regions(inst));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::parse::parse_tile;
    use crate::tile::eliminate_dead_code::eliminate_dead_code;
    use crate::tile::merge_equal_values::merge_equal_values;
    use crate::tile::simplify::simplify;

    /// A loop whose body, behind `v12 = c + step`, stores `v12` and multiples of it.
    fn after(first: &str, step: &str) -> (usize, String) {
        let text = format!(
            "kernel @k(v0 \"x\": ptr<i32>, v1 \"n\": i32, v2 \"s\": i32) warps(4) {{
block0:
    v3 = program_id {{axis = 0}} : i32
    v4 = num_programs {{axis = 0}} : i32
    v5 = const {{value = 132}} : i32
    v6 = const {{value = 7}} : i32
    v7 = isub v3, {first} : i32
    v8 = for v3, v1, {step}, v7 : i32 {{
    block1(v10: i32, v11: i32):
        v12 = iadd v11, {step} : i32
        v13 = imul v12, v6 : i32
        v14 = addptr v0, v10 : ptr<i32>
        store v14, v13
        yield v12
    }}
    return
}}
"
        );
        let mut func = parse_tile(&text).expect("a kernel");
        let count = share_counters(&mut func);
        simplify(&mut func);
        merge_equal_values(&mut func);
        eliminate_dead_code(&mut func);
        (count, func.to_string())
    }

    #[test]
    fn a_second_counter_is_the_first() {
        for step in ["v4", "v5"] {
            let (count, text) = after(step, step);
            assert!(count > 0, "{text}");
            assert!(!text.contains(" = for "), "{text}");
            assert!(text.contains("(v6: i32):\n        v7 = imul v6,"), "{text}");
        }
    }

    #[test]
    fn a_second_counter_is_the_first_and_a_constant() {
        let (_, text) = after("v6", "v5");
        assert!(text.contains("const {value = 125}"), "{text}");
        assert!(!text.contains(" = for "), "{text}");
    }

    /// Where they are apart by what is known at launch only, or move on otherwise.
    #[test]
    fn other_numbers_stay() {
        for (first, step) in [("v2", "v5"), ("v4", "v5")] {
            let (count, text) = after(first, step);
            assert_eq!(count, 0, "{text}");
            assert!(text.contains(" = for "), "{text}");
        }
    }
}
