//! Adds first what fewest registers of a thread differ in.
//!
//! ```text
//! rows = addptr (splat a), r * stride        =>      columns = addptr (splat a), c
//! p = addptr (broadcast rows), c                     p = addptr (broadcast columns), r * stride
//! ```
//!
//! where a thread has many rows and one column: each row takes one sum in place of two. Likewise for indices, and for masks, where a comparison
//! takes in one `and`: `r < n & x > 0 & c < m` is two instructions for each row once `c < m` stands on the inside. Sums are exact modulo the width
//! of pointers or integers, so that their order does not matter.
//!
//! Ranges that differ between registers by numbers alone count once, as these become offsets of addresses. A sum that is used elsewhere, too, or
//! made in another block, is left as it is.

use smallvec::SmallVec;

use super::edit::{self, Editor, Fate};
use crate::ir::attrs::Attrs;
use crate::ir::dfg::InstData;
use crate::ir::entities::{Inst, Value};
use crate::ir::function::TileFunction;
use crate::ir::level::Tile;
use crate::ir::ops::TileOp;
use crate::ir::types::{TileType, ValueType};
use crate::linear_layout::layout::{HwDim, LinearLayout};
use crate::linear_layout::shape::Shape;

/// Most terms of a sum that is looked at, and most steps from a term to what it is made of.
const MOST_TERMS: usize = 8;
const MOST_STEPS: u32 = 6;

/// Orders sums of blocks that have layouts; gives how many it changed.
pub fn order_sums(func: &mut TileFunction) -> usize {
    let uses = edit::use_counts(func);
    edit::rewrite(func, |edit, inst| {
        match ordered(edit, inst, &|value| uses[value]) {
            Some(value) => Fate::Replace(value),
            None => Fate::Keep,
        }
    })
}

/// A term, and how it is repeated for the sum, outermost first.
struct Term {
    value: Value,
    way: SmallVec<[(InstData<Tile>, TileType); 2]>,
    /// Bits of the sum's index that its registers differ in.
    bits: u32,
}

/// What a sum takes.
#[derive(Default)]
struct Sum {
    terms: Vec<Term>,
    /// Additions of a thread.
    cost: u32,
}

fn ordered(edit: &mut Editor<'_>, inst: Inst, uses: &dyn Fn(Value) -> u32) -> Option<Value> {
    let data = &edit.func.dfg.insts[inst];
    let op = data.op;
    matches!(op, TileOp::Addptr | TileOp::Iadd | TileOp::And).then_some(())?;
    let ty = edit.ty(data.results[0]);
    let layout = edit.func.layouts.get(ty.layout.expand()?)?.clone();
    let mut sum = Sum::default();
    let args = data.args.clone();
    let way = SmallVec::new();
    let bits =
        [args[0], args[1]].map(|arg| collect(edit, (op, &layout), arg, &way, uses, &mut sum));
    let [Some(a), Some(b)] = bits else {
        return None;
    };
    sum.cost += cost(op, &layout, a, b);
    if sum.terms.len() < 3 {
        return None;
    }
    // A pointer stays in front of what is added to it.
    let first = usize::from(op == TileOp::Addptr);
    sum.terms[first..].sort_by_key(|term| registers(&layout, term.bits));
    let mut terms = sum.terms.iter();
    let mut so_far = (terms.next()?.bits, true);
    let mut new_cost = 0;
    for term in terms {
        new_cost += cost(op, &layout, so_far, (term.bits, true));
        so_far = (so_far.0 | term.bits, false);
    }
    (new_cost < sum.cost).then_some(())?;
    let mut result: Option<Value> = None;
    for term in sum.terms {
        let mut value = term.value;
        for (data, like) in term.way.iter().rev() {
            let ty = like.with_elem(edit.ty(value).elem);
            value = edit.build(data.op, &[value], data.attrs(), ty);
        }
        result = Some(match result {
            Some(rest) => edit.build(op, &[rest, value], &[], ty),
            None => value,
        });
    }
    result
}

/// Registers of a thread that differ in these bits of the index.
fn registers(layout: &LinearLayout, bits: u32) -> u32 {
    let columns = layout.columns(HwDim::Register).iter();
    1 << columns.filter(|&column| column & bits != 0).count()
}

/// What it takes to add two values, each given by its bits and by whether it is a term. A comparison takes in an `and` with what is there already.
fn cost(op: TileOp, layout: &LinearLayout, a: (u32, bool), b: (u32, bool)) -> u32 {
    let both = registers(layout, a.0 | b.0);
    let takes_in = |(bits, is_term): (u32, bool)| is_term && registers(layout, bits) == both;
    match op {
        TileOp::And if takes_in(a) || takes_in(b) => 0,
        _ => both,
    }
}

/// Collects the terms of a value; gives the bits that its registers differ in, and whether it is a term.
fn collect(
    edit: &Editor<'_>,
    (op, layout): (TileOp, &LinearLayout),
    value: Value,
    way: &SmallVec<[(InstData<Tile>, TileType); 2]>,
    uses: &dyn Fn(Value) -> u32,
    sum: &mut Sum,
) -> Option<(u32, bool)> {
    let mut inner = value;
    let mut further = way.clone();
    let is_own = |value: Value, data: &InstData<Tile>| {
        let inst = edit.func.dfg.def_inst(value);
        let block = inst.and_then(|inst| edit.func.order.block_of(inst));
        uses(value) == 1 && block == Some(edit.block()) && data.results.first() == Some(&value)
    };
    while let Some(data) = edit.def(inner).filter(|data| is_own(inner, data)) {
        match data.op {
            TileOp::Broadcast | TileOp::ExpandDims => {
                further.push((data.clone(), edit.ty(inner)));
                inner = data.args[0];
            }
            // The index of a pointer is a sum of its own, which may wrap.
            _ if data.op == op => {
                let at = |i: usize, sum: &mut Sum| {
                    collect(edit, (op, layout), data.args[i], &further, uses, sum)
                };
                let a = at(0, sum)?;
                let b = match op {
                    TileOp::Addptr => term(edit, data.args[1], &further, sum)?,
                    _ => at(1, sum)?,
                };
                sum.cost += cost(op, layout, a, b);
                return Some((a.0 | b.0, false));
            }
            _ => break,
        }
    }
    term(edit, value, way, sum)
}

/// Takes a value as a term.
fn term(
    edit: &Editor<'_>,
    value: Value,
    way: &SmallVec<[(InstData<Tile>, TileType); 2]>,
    sum: &mut Sum,
) -> Option<(u32, bool)> {
    (sum.terms.len() < MOST_TERMS).then_some(())?;
    let mut bits = differing(edit, value, MOST_STEPS).0;
    for (data, ty) in way.iter().rev() {
        if data.op == TileOp::Broadcast {
            bits = grown(edit.ty(data.args[0]).shape, ty.shape, bits);
        }
    }
    sum.terms.push(Term {
        value,
        way: way.clone(),
        bits,
    });
    Some((bits, true))
}

/// Bits of the index in the big shape, given those in the small one of which dimensions of extent 1 grew.
fn grown(small: Shape, big: Shape, bits: u32) -> u32 {
    let kept = (0..big.rank()).filter(|&dim| small.extent(dim) == big.extent(dim));
    kept.fold(0, |all, dim| {
        let own = (bits & small.bit_mask(dim)) >> small.bit_offset(dim);
        all | own << big.bit_offset(dim)
    })
}

/// The bits of the index that elements differ in: by more than numbers that are known, and at all.
fn differing(edit: &Editor<'_>, value: Value, steps: u32) -> (u32, u32) {
    let shape = edit.ty(value).shape;
    let every = (0..shape.rank()).fold(0, |all, dim| all | shape.bit_mask(dim));
    let Some(data) = edit.def(value).filter(|_| steps > 0) else {
        return (every, every);
    };
    let of = |arg: Value| differing(edit, arg, steps - 1);
    let any = |all: (u32, u32), arg: &Value| {
        let (by_more, at_all) = of(*arg);
        (all.0 | by_more, all.1 | at_all)
    };
    let is_number = |arg: &Value| edit.bits(*arg).is_some();
    match data.op {
        TileOp::Const | TileOp::Splat => (0, 0),
        TileOp::Arange => (0, every),
        TileOp::ExpandDims | TileOp::ConvertLayout => of(data.args[0]),
        TileOp::Broadcast => {
            let small = edit.ty(data.args[0]).shape;
            let (by_more, at_all) = of(data.args[0]);
            (grown(small, shape, by_more), grown(small, shape, at_all))
        }
        TileOp::Iadd | TileOp::Isub | TileOp::Addptr => data.args.iter().fold((0, 0), any),
        TileOp::Imul | TileOp::Shl if data.args.iter().any(is_number) => {
            data.args.iter().fold((0, 0), any)
        }
        TileOp::Imul | TileOp::Shl | TileOp::Icmp | TileOp::Fcmp | TileOp::And | TileOp::Or => {
            let (_, at_all) = data.args.iter().fold((0, 0), any);
            (at_all, at_all)
        }
        _ => (every, every),
    }
}

#[cfg(test)]
mod tests {
    use super::order_sums;
    use crate::tile::testing::{check_pass, fixed_point};

    /// Each thread has four rows of one column.
    const LAYOUTS: &str = "layout #0 = {reg=[8,16], lane=[1,2,4,0,0], warp=[]} : [4,8]
            layout #1 = {reg=[1,2], lane=[0,0,0,0,0], warp=[]} : [4]
            layout #2 = {reg=[1,2], lane=[0,0,0,0,0], warp=[]} : [4,1]
            layout #3 = {reg=[], lane=[1,2,4,0,0], warp=[]} : [8]
            layout #4 = {reg=[], lane=[1,2,4,0,0], warp=[]} : [1,8]";

    fn kernel(body: &str) -> String {
        format!(
            "kernel @k(v0: i32, v1: ptr<i32>) warps(1) {{
            {LAYOUTS}
            block0:
                v2 = arange {{start = 0}} : i32[4; #1]
                v3 = splat v0 : i32[4; #1]
                v4 = imul v2, v3 : i32[4; #1]
                v5 = splat v1 : ptr<i32>[4; #1]
                v6 = arange {{start = 0}} : i32[8; #3]
                v7 = expand_dims v6 {{axis = 0}} : i32[1,8; #4]
                v8 = broadcast v7 : i32[4,8; #0]
                {body}
                return
            }}"
        )
    }

    #[test]
    fn the_column_comes_before_the_rows() {
        let rows = "v9 = addptr v5, v4 : ptr<i32>[4; #1]
                v10 = expand_dims v9 {axis = 1} : ptr<i32>[4,1; #2]
                v11 = broadcast v10 : ptr<i32>[4,8; #0]";
        check_pass(
            order_sums,
            &kernel(&format!(
                "{rows}
                v12 = addptr v11, v8 : ptr<i32>[4,8; #0]
                store v12, v8"
            )),
            &kernel(&format!(
                "{rows}
                v12 = expand_dims v5 {{axis = 1}} : ptr<i32>[4,1; #2]
                v13 = broadcast v12 : ptr<i32>[4,8; #0]
                v14 = addptr v13, v8 : ptr<i32>[4,8; #0]
                v15 = expand_dims v4 {{axis = 1}} : i32[4,1; #2]
                v16 = broadcast v15 : i32[4,8; #0]
                v17 = addptr v14, v16 : ptr<i32>[4,8; #0]
                store v17, v8"
            )),
        );
    }

    /// The comparison of columns is one, and those of rows take in what is there.
    #[test]
    fn the_mask_of_the_column_comes_first() {
        let masks = "v9 = icmp v2, v3 {ipred = slt} : i1[4; #1]
                v10 = icmp v4, v3 {ipred = ne} : i1[4; #1]
                v11 = and v9, v10 : i1[4; #1]
                v12 = expand_dims v11 {axis = 1} : i1[4,1; #2]
                v13 = broadcast v12 : i1[4,8; #0]
                v14 = splat v0 : i32[8; #3]
                v15 = icmp v6, v14 {ipred = slt} : i1[8; #3]
                v16 = expand_dims v15 {axis = 0} : i1[1,8; #4]
                v17 = broadcast v16 : i1[4,8; #0]
                v18 = splat v1 : ptr<i32>[4,8; #0]";
        check_pass(
            order_sums,
            &kernel(&format!(
                "{masks}
                v19 = and v13, v17 : i1[4,8; #0]
                store v18, v8, v19"
            )),
            &kernel(&format!(
                "{masks}
                v19 = expand_dims v9 {{axis = 1}} : i1[4,1; #2]
                v20 = broadcast v19 : i1[4,8; #0]
                v21 = and v17, v20 : i1[4,8; #0]
                v22 = expand_dims v10 {{axis = 1}} : i1[4,1; #2]
                v23 = broadcast v22 : i1[4,8; #0]
                v24 = and v21, v23 : i1[4,8; #0]
                store v18, v8, v24"
            )),
        );
    }

    /// A sum that something else needs as well is there anyway.
    #[test]
    fn shared_sums_and_cheap_orders_stay() {
        for body in [
            "v9 = addptr v5, v4 : ptr<i32>[4; #1]
                v10 = expand_dims v9 {axis = 1} : ptr<i32>[4,1; #2]
                v11 = broadcast v10 : ptr<i32>[4,8; #0]
                v12 = addptr v11, v8 : ptr<i32>[4,8; #0]
                store v12, v8
                store v9, v2",
            "v9 = addptr v5, v2 : ptr<i32>[4; #1]
                v10 = expand_dims v9 {axis = 1} : ptr<i32>[4,1; #2]
                v11 = broadcast v10 : ptr<i32>[4,8; #0]
                v12 = addptr v11, v8 : ptr<i32>[4,8; #0]
                store v12, v8",
        ] {
            fixed_point(order_sums, &kernel(body));
        }
    }
}
