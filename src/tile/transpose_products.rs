//! Products whose right operand no unit reads as it stands, computed as their transposes.
//!
//! ```text
//! for .. carrying p {                for .. carrying q = transpose p {
//!     r = dot a, b, p          =>        s = dot (transpose b), (transpose a), q
//!     yield r                            yield s
//! }                                  }; r = transpose s
//! ```
//!
//! Units of warpgroups read their right operand from shared memory alone, and where its elements have four bytes along the summed dimension
//! alone ([`crate::layout::warpgroup`]). A matrix b as k x n, with its neighbours along n, then goes through registers to a second
//! block that stands the other way, which takes more of the bandwidth of shared memory than the products. Their left operand the units
//! take from registers, too, and of a word each thread can hold whichever it likes: so b becomes the left operand, and a, whose neighbours
//! stand along k, the right one. (An H100, tf32 of 4096^3: 510 us before, 355 now, as with b as n x k.) Bytes do not gain from this: a
//! register holds four of them along the summed dimension, and each would be loaded by itself.
//!
//! The sums stay transposed while loops carry them, so this is for sums that nothing but such products adds to in their loops. Outside,
//! a transposed block is another name for the same registers.

use cranelift_entity::SecondaryMap;

use super::edit::{rename_uses, use_counts};
use super::start_dots::is_for_warpgroup;
use crate::analysis::axis::Axis;
use crate::analysis::neighbours::neighbours;
use crate::ir::attrs::make;
use crate::ir::dfg::{InstData, ValueDef};
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::function::TileFunction;
use crate::ir::ops::TileOp;
use crate::ir::types::TileType;
use crate::layout::warpgroup;
use crate::linear_layout::shape::Shape;
use crate::settings::Target;

/// Bytes of the elements that products by transposes are for.
const WORD: u32 = 4;

/// Transposes products; gives how many.
pub fn transpose_products(func: &mut TileFunction, target: Target) -> usize {
    let loops: Vec<Inst> = func.insts_with(TileOp::For).map(|(_, inst)| inst).collect();
    if loops.is_empty() {
        return 0;
    }
    let axis = Axis::compute(func);
    let uses = use_counts(func);
    let mut count = 0;
    for inst in loops {
        for position in 0..func.dfg.insts[inst].results.len() {
            let sum = Carried { inst, position };
            let Some(products) = added(func, &uses, sum) else {
                continue;
            };
            let pays = |&product: &Inst| pays(func, &axis, product, target);
            if products.is_empty() || !products.iter().all(pays) {
                continue;
            }
            if let Some(carried) = outwards(func, &uses, sum) {
                count += products.len();
                transpose(func, &products, &carried);
            }
        }
    }
    count
}

/// What a loop carries from one iteration to the next at a position.
#[derive(Clone, Copy)]
struct Carried {
    inst: Inst,
    position: usize,
}

impl Carried {
    fn body(self, func: &TileFunction) -> Block {
        func.dfg.insts[self.inst].blocks[0].block
    }

    fn param(self, func: &TileFunction) -> Value {
        func.dfg.blocks[self.body(func)].params[1 + self.position]
    }

    fn yielded(self, func: &TileFunction) -> Option<Value> {
        let last = func.order.last(self.body(func))?;
        func.dfg.insts[last].args.get(self.position).copied()
    }

    fn first(self, func: &TileFunction) -> Value {
        func.dfg.insts[self.inst].args[3 + self.position]
    }

    fn result(self, func: &TileFunction) -> Value {
        func.dfg.insts[self.inst].results[self.position]
    }
}

/// The products that are all that happens to a sum in its loop, in order.
fn added(func: &TileFunction, uses: &SecondaryMap<Value, u32>, sum: Carried) -> Option<Vec<Inst>> {
    let last = sum.yielded(func)?;
    let mut value = sum.param(func);
    let mut products = Vec::new();
    for &inst in func.order.insts(sum.body(func)) {
        let data = &func.dfg.insts[inst];
        if data.op == TileOp::Dot && data.args[2] == value && uses[value] == 1 {
            value = data.results[0];
            products.push(inst);
        }
    }
    (value == last && uses[value] == 1).then_some(products)
}

/// The loop's sum, and that of each loop around it which carries nothing else at some position; none if a sum comes from elsewhere in a
/// loop around, which would transpose it in each iteration.
fn outwards(
    func: &TileFunction,
    uses: &SecondaryMap<Value, u32>,
    mut sum: Carried,
) -> Option<Vec<Carried>> {
    let mut found = vec![sum];
    while let ValueDef::Param(block, index) = func.dfg.values[sum.first(func)].def {
        let (first, result) = (sum.first(func), sum.result(func));
        let (_, inst) = func
            .insts_with(TileOp::For)
            .find(|&(_, inst)| func.dfg.insts[inst].blocks[0].block == block)?;
        let outer = Carried {
            inst,
            position: usize::try_from(index).ok()?.checked_sub(1)?,
        };
        let is_alone = uses[first] == 1 && uses[result] == 1;
        if !is_alone || outer.yielded(func) != Some(result) {
            return None;
        }
        found.push(outer);
        sum = outer;
    }
    Some(found)
}

/// Whether a unit reads the operands of a product's transpose better than its own.
fn pays(func: &TileFunction, axis: &Axis, product: Inst, target: Target) -> bool {
    let data = &func.dfg.insts[product];
    let [left, right] = [data.args[0], data.args[1]];
    if func.dfg.ty(right).elem.bytes() != WORD || !is_for_warpgroup(func, product, target) {
        return false;
    }
    // Its rows are the columns of the product.
    let sums = transposed(func.dfg.ty(data.results[0])).shape;
    warpgroup::accumulator(sums, func.num_warps()).is_some()
        && [left, right]
            .iter()
            .all(|&value| neighbours(func, axis, value) == Some(1))
}

/// The type of a matrix the other way around.
fn transposed(ty: TileType) -> TileType {
    let extents = [1, 0].map(|dim| ty.shape.extent(dim));
    // Extents of a shape, so nothing is refused.
    Shape::new(&extents).map_or(ty, |shape| ty.with_shape(shape))
}

/// A matrix the other way around.
fn transpose_of(func: &mut TileFunction, value: Value) -> Inst {
    let mut data = InstData::new(TileOp::Permute, &[value]);
    data.attrs.push(make::dims([1, 0].into_iter().collect()));
    let ty = transposed(func.dfg.ty(value));
    func.dfg.make_inst(data, &[ty])
}

fn set_transposed(func: &mut TileFunction, value: Value) {
    func.dfg.values[value].ty = transposed(func.dfg.ty(value));
}

/// Makes a product that of the transposes; gives these, which have no place yet.
fn transpose_one(func: &mut TileFunction, product: Inst) -> [Inst; 2] {
    let data = &func.dfg.insts[product];
    let (left, right, result) = (data.args[0], data.args[1], data.results[0]);
    let made = [right, left].map(|value| transpose_of(func, value));
    for (i, inst) in made.into_iter().enumerate() {
        func.dfg.insts[product].args[i] = func.dfg.insts[inst].results[0];
    }
    set_transposed(func, result);
    made
}

fn transpose(func: &mut TileFunction, products: &[Inst], carried: &[Carried]) {
    for &product in products {
        let made = transpose_one(func, product);
        place(func, product, 0, &made);
    }
    for &sum in carried {
        for value in [sum.param(func), sum.result(func)] {
            set_transposed(func, value);
        }
    }
    let Some(&outermost) = carried.last() else {
        return;
    };
    let (first, result) = (outermost.first(func), outermost.result(func));
    let begins = transpose_of(func, first);
    func.dfg.insts[outermost.inst].args[3 + outermost.position] = func.dfg.insts[begins].results[0];
    let ends = transpose_of(func, result);
    rename_uses(func, result, func.dfg.insts[ends].results[0]);
    place(func, outermost.inst, 0, &[begins]);
    place(func, outermost.inst, 1, &[ends]);
}

/// Puts instructions into the block of another one, so far behind it.
fn place(func: &mut TileFunction, beside: Inst, behind: usize, made: &[Inst]) {
    let Some(block) = func.order.block_of(beside) else {
        return;
    };
    let at = func.order.insts(block).iter().position(|&i| i == beside);
    for (i, &inst) in made.iter().enumerate() {
        func.dfg.insts[inst].loc = func.dfg.insts[beside].loc;
        func.order.insert(block, at.unwrap_or(0) + behind + i, inst);
    }
}
