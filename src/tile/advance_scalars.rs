//! Blocks of pointers that a loop moves on, all elements by the same, come from one pointer that it carries.
//!
//! ```text
//! p = addptr (addptr (splat a), rows), columns
//! for .. carrying p {                                  for .. carrying a {
//!     x = load p                               =>          p = addptr (addptr (splat a), columns), rows; x = load p
//!     p' = addptr p, splat step                            a' = addptr a, step
//! }                                                    }
//! ```
//!
//! Neighbours differ by constants where accesses are wide, and share a register. But where nothing is known of the strides each
//! element has a pointer of its own, in two registers that the loop carries and adds to. Now it carries one pointer; the offsets,
//! which it leaves alone, take one register each, and one multiply-add makes an address of both. A product of 128 x 128 x 32 in
//! f16 without alignment spilled 690 bytes of each thread for its pointers, and spills none.
//!
//! Addresses are exact modulo 2^64, so the order of the sums does not matter: what was added last, as a rule the columns, comes
//! first, since a thread has fewer of these. A block is taken if its elements are accessed one by one, and it has 8 or more runs of
//! neighbours, and a thread as many elements. Time is linear in the function for each block that is changed.

use super::edit::{rename_uses, use_counts};
use crate::analysis::axis::Axis;
use crate::ir::attrs::Attrs;
use crate::ir::dfg::ValueDef;
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::function::TileFunction;
use crate::ir::level::Tile;
use crate::ir::maker::Maker;
use crate::ir::ops::TileOp;
use crate::ir::types::{TileType, ValueType};

/// Fewest pointers of a thread.
const FEWEST: usize = 8;

/// Lets loops carry one pointer where they carry a block of them; gives how often. `axis` was computed for the function as it
/// is.
pub fn advance_scalars(func: &mut TileFunction, axis: &Axis) -> usize {
    let loops: Vec<(Block, Inst)> = func.insts_with(TileOp::For).collect();
    let mut count = 0;
    for (_, inst) in loops {
        for position in 0..func.dfg.insts[inst].results.len() {
            if let Some(walk) = find(func, axis, inst, position) {
                Rewriter::new(func, inst).run(position, walk);
                count += 1;
            }
        }
    }
    count
}

/// A block of pointers that a loop moves on.
struct Walk {
    body: Block,
    /// What moves it on.
    advance: Inst,
    /// By how much: a scalar, or a number.
    step: Step,
    /// The pointer that the block starts from.
    base: Value,
    offsets: Offsets,
}

/// What is added to a pointer, what was added last first, and the changes of shape that follow, the last one first.
type Offsets = Vec<(Value, Vec<Inst>)>;

enum Step {
    Scalar(Value),
    Number(u64),
}

fn find(func: &TileFunction, axis: &Axis, inst: Inst, position: usize) -> Option<Walk> {
    let data = &func.dfg.insts[inst];
    let body = data.blocks.first()?.block;
    let carried = *func.dfg.blocks[body].params.get(1 + position)?;
    let ty = func.dfg.ty(carried);
    let threads = func.num_threads() as usize;
    if !ty.elem.is_ptr() || ty.shape.elements() < FEWEST * threads {
        return None;
    }
    let width = |dim: usize| axis.vector_width(func, carried, None, dim, 16);
    // Neighbours without alignment share a register, too.
    let run = |dim: usize| 1_usize << axis.contiguity(carried, dim);
    let runs = |dim: usize| ty.shape.elements() / run(dim).max(1);
    if (0..ty.shape.rank()).any(|dim| width(dim) > 1 || runs(dim) < FEWEST) {
        return None;
    }
    let last = func.order.last(body)?;
    let next = *func.dfg.insts[last].args.get(position)?;
    let advance = func.dfg.def_inst(next)?;
    let moved = &func.dfg.insts[advance];
    let is_here = func.order.block_of(advance) == Some(body);
    if !is_here || moved.op != TileOp::Addptr || moved.args[0] != carried {
        return None;
    }
    if use_counts(func)[next] != 1 {
        return None;
    }
    let step = step(func, moved.args[1])?;
    let (base, offsets) = parts(func, data.args[3 + position])?;
    Some(Walk {
        body,
        advance,
        step,
        base,
        offsets,
    })
}

/// What all elements of a block are.
fn step(func: &TileFunction, mut value: Value) -> Option<Step> {
    loop {
        let data = &func.dfg.insts[func.dfg.def_inst(value)?];
        match data.op {
            TileOp::Const => return Some(Step::Number(*data.value()?)),
            TileOp::Splat => return Some(Step::Scalar(data.args[0])),
            TileOp::Broadcast | TileOp::ExpandDims => value = data.args[0],
            _ => return None,
        }
    }
}

/// The scalar that a block of pointers is made from, and what is added to it.
fn parts(func: &TileFunction, mut value: Value) -> Option<(Value, Offsets)> {
    let mut shaped = Vec::new();
    let mut offsets = Vec::new();
    loop {
        let ValueDef::Result(inst, _) = func.dfg.values[value].def else {
            return None;
        };
        let data = &func.dfg.insts[inst];
        match data.op {
            TileOp::Splat => return Some((data.args[0], offsets)),
            TileOp::Addptr => offsets.push((data.args[1], shaped.clone())),
            TileOp::Broadcast | TileOp::ExpandDims => shaped.push(inst),
            _ => return None,
        }
        value = data.args[0];
    }
}

/// Rewrites one block of pointers of a loop.
struct Rewriter<'a> {
    maker: Maker<'a, Tile>,
    inst: Inst,
}

impl<'a> Rewriter<'a> {
    fn new(func: &'a mut TileFunction, inst: Inst) -> Rewriter<'a> {
        let maker = Maker::near(func, inst);
        Rewriter { maker, inst }
    }

    fn run(mut self, position: usize, walk: Walk) {
        let carried = self.maker.func.dfg.blocks[walk.body].params[1 + position];
        let result = self.maker.func.dfg.insts[self.inst].results[position];
        let ty = self.maker.func.dfg.ty(carried);
        let scalar = self.maker.func.dfg.ty(walk.base);

        // In front: the offsets in the shape of the block.
        let mut offsets = Vec::new();
        for (offset, shaped) in &walk.offsets {
            let mut value = *offset;
            for &inst in shaped.iter().rev() {
                let mut data = self.maker.func.dfg.insts[inst].clone();
                let to = self.maker.func.dfg.ty(data.results[0]);
                data.results.clear();
                data.args[0] = value;
                let elem = self.maker.func.dfg.ty(value).elem;
                value = self.maker.value_from(data, to.with_elem(elem));
            }
            offsets.push(value);
        }
        let before = std::mem::take(&mut self.maker.made);

        // Inside: the block, and the pointer of the next iteration.
        let pointers = self.pointers(carried, ty, &offsets);
        rename_uses(self.maker.func, carried, pointers);
        self.maker.func.dfg.insts[self.maker.made[0]].args[0] = carried;
        let mut inside = std::mem::take(&mut self.maker.made);
        let step = match walk.step {
            Step::Scalar(value) => value,
            Step::Number(number) => {
                let step = self.maker.func.dfg.insts[walk.advance].args[1];
                let ty = TileType::scalar(self.maker.func.dfg.ty(step).elem);
                self.maker.number(number as i64, ty)
            }
        };
        inside.append(&mut self.maker.made);
        inside.extend_from_slice(self.maker.func.order.insts(walk.body));
        self.maker.func.order.replace(walk.body, inside);
        let advance = &mut self.maker.func.dfg.insts[walk.advance];
        advance.args = [carried, step].into_iter().collect();
        let next = advance.results[0];
        for value in [carried, next, result] {
            self.maker.func.dfg.values[value].ty = scalar;
        }

        // Behind: the block again, for those who go on with it.
        self.maker.func.dfg.insts[self.inst].args[3 + position] = walk.base;
        if use_counts(self.maker.func)[result] > 0 {
            let pointers = self.pointers(result, ty, &offsets);
            rename_uses(self.maker.func, result, pointers);
            self.maker.func.dfg.insts[self.maker.made[0]].args[0] = result;
        }
        let after = std::mem::take(&mut self.maker.made);
        let block = self.maker.func.order.block_of(self.inst);
        let block = block.expect("loops stand in blocks");
        let mut list = Vec::new();
        for &other in self.maker.func.order.insts(block) {
            if other == self.inst {
                list.extend_from_slice(&before);
                list.push(other);
                list.extend_from_slice(&after);
            } else {
                list.push(other);
            }
        }
        self.maker.func.order.replace(block, list);
    }

    /// The block of pointers from a pointer on; the first instruction made takes it.
    fn pointers(&mut self, from: Value, ty: TileType, offsets: &[Value]) -> Value {
        let mut block = self.maker.value(TileOp::Splat, &[from], &[], ty);
        for &offset in offsets {
            block = self.maker.op(TileOp::Addptr, &[block, offset]);
        }
        block
    }
}

#[cfg(test)]
mod tests {
    use super::advance_scalars;
    use crate::analysis::axis::Axis;
    use crate::ir::function::TileFunction;
    use crate::tile::testing::{check_pass, fixed_point, parse, run, verified};

    /// Copies 4 times 16 x 16 elements from rows at some distance; `after` stands behind the loop.
    fn copies(distance: &str, body: &str, after: &str) -> String {
        format!(
            "kernel @k(v0: ptr<f32> {{divisible = 16}}, v1: ptr<i32>, v2: ptr<f32>) warps(1) {{
            block0:
                v18 = {distance} : i32
                v3 = const {{value = 0}} : i32
                v4 = const {{value = 4}} : i32
                v5 = const {{value = 1}} : i32
                v6 = arange {{start = 0}} : i32[16]
                v7 = splat v18 : i32[16]
                v8 = imul v6, v7 : i32[16]
                v9 = splat v0 : ptr<f32>[16]
                v10 = addptr v9, v8 : ptr<f32>[16]
                v11 = expand_dims v10 {{axis = 1}} : ptr<f32>[16,1]
                v12 = broadcast v11 : ptr<f32>[16,16]
                v13 = expand_dims v6 {{axis = 0}} : i32[1,16]
                v14 = broadcast v13 : i32[16,16]
                v15 = addptr v12, v14 : ptr<f32>[16,16]
                v16 = const {{value = 16}} : i32[16,16]
                v17 = const {{value = 256}} : i32
                {body}
                {after}
                return
            }}"
        )
    }

    const UNKNOWN: &str = "load v1";

    const CARRIED: &str = "v20 = for v3, v4, v5, v15 : ptr<f32>[16,16] {
                block1(v21: i32, v22: ptr<f32>[16,16]):
                    v23 = load v22 : f32[16,16]
                    v24 = imul v21, v17 : i32
                    v25 = addptr v2, v24 : ptr<f32>
                    v26 = splat v25 : ptr<f32>[16,16]
                    v27 = arange {start = 0} : i32[256]
                    v28 = reshape v27 : i32[16,16]
                    v29 = addptr v26, v28 : ptr<f32>[16,16]
                    store v29, v23
                    v30 = addptr v22, v16 : ptr<f32>[16,16]
                    yield v30
                }";

    const USED: &str = "v40 = load v20 : f32[16,16]
                v41 = addptr v2, v17 : ptr<f32>
                v42 = splat v41 : ptr<f32>[16,16]
                v43 = const {value = 768} : i32[16,16]
                v44 = addptr v42, v43 : ptr<f32>[16,16]
                v45 = arange {start = 0} : i32[256]
                v46 = reshape v45 : i32[16,16]
                v47 = addptr v44, v46 : ptr<f32>[16,16]
                store v47, v40";

    fn pass(func: &mut TileFunction) -> usize {
        let axis = Axis::compute(func);
        advance_scalars(func, &axis)
    }

    #[test]
    fn one_pointer_is_carried() {
        check_pass(
            pass,
            &copies(UNKNOWN, CARRIED, ""),
            &copies(
                UNKNOWN,
                "v50 = expand_dims v8 {axis = 1} : i32[16,1]
                v51 = broadcast v50 : i32[16,16]
                v20 = for v3, v4, v5, v0 : ptr<f32> {
                block1(v21: i32, v22: ptr<f32>):
                    v52 = splat v22 : ptr<f32>[16,16]
                    v53 = addptr v52, v14 : ptr<f32>[16,16]
                    v54 = addptr v53, v51 : ptr<f32>[16,16]
                    v55 = const {value = 16} : i32
                    v23 = load v54 : f32[16,16]
                    v24 = imul v21, v17 : i32
                    v25 = addptr v2, v24 : ptr<f32>
                    v26 = splat v25 : ptr<f32>[16,16]
                    v27 = arange {start = 0} : i32[256]
                    v28 = reshape v27 : i32[16,16]
                    v29 = addptr v26, v28 : ptr<f32>[16,16]
                    store v29, v23
                    v30 = addptr v22, v55 : ptr<f32>
                    yield v30
                }",
                "",
            ),
        );
    }

    #[test]
    fn who_goes_on_with_the_block_gets_it_again() {
        let before = parse(&copies(UNKNOWN, CARRIED, USED));
        let mut func = before.clone();
        assert_eq!(pass(&mut func), 1);
        verified(&func);
        assert_eq!(pass(&mut func), 0);
        let numbers = (0..16 * 80).flat_map(|i| (i as f32).to_le_bytes());
        let table: Vec<u8> = numbers.collect();
        let distance = 77_i32.to_le_bytes().to_vec();
        let buffers = [table, distance, vec![0; 5 * 1024]];
        let result = |func: &TileFunction| run(func, &buffers);
        assert_eq!(result(&func), result(&before));
    }

    #[test]
    fn wide_accesses_keep_their_pointers() {
        fixed_point(pass, &copies("const {value = 64}", CARRIED, ""));
    }
}
