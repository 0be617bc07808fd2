//! Program order as a flat list of steps, regions included.
//!
//! Passes over structured control flow want a depth-first walk: what stands before a loop, the loop's
//! regions, then what follows. The walk is done once, with a stack of its own because nesting depth is the
//! input's to choose, and gives a list that passes read forwards or backwards. Linear in the function.

use cranelift_entity::{SecondaryMap, packed_option::PackedOption};

use crate::ir::entities::{Block, Inst};
use crate::ir::function::TileFunction;
use crate::ir::ops::Opcode;

/// A step of the walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WalkStep {
    /// An instruction without regions, terminators included.
    Inst(Inst),
    /// An instruction whose regions follow.
    Enter(Inst),
    /// The instructions of a region follow.
    Region(Block),
    /// All regions of the instruction are done; its results exist from here on.
    Leave(Inst),
}

/// The walk over a function, and who owns its regions.
#[derive(Clone, Debug, Default)]
pub struct ProgramOrder {
    steps: Vec<WalkStep>,
    owner: SecondaryMap<Block, PackedOption<Inst>>,
}

impl ProgramOrder {
    /// Walks the function.
    pub fn compute(func: &TileFunction) -> ProgramOrder {
        let mut order = ProgramOrder::default();
        // What is still to be walked; the top is next.
        enum Todo {
            Insts(Block, usize),
            Region(Inst, Block),
            Leave(Inst),
        }
        let mut todo = vec![Todo::Insts(func.entry, 0)];
        while let Some(next) = todo.pop() {
            match next {
                Todo::Insts(block, from) => {
                    let insts = func.order.insts(block);
                    for (index, &inst) in insts.iter().enumerate().skip(from) {
                        let data = &func.dfg.insts[inst];
                        if !data.op.info().owns_regions() {
                            order.steps.push(WalkStep::Inst(inst));
                            continue;
                        }
                        order.steps.push(WalkStep::Enter(inst));
                        todo.push(Todo::Insts(block, index + 1));
                        todo.push(Todo::Leave(inst));
                        let regions = data.blocks.iter().rev();
                        todo.extend(regions.map(|call| Todo::Region(inst, call.block)));
                        break;
                    }
                }
                Todo::Region(owner, block) => {
                    order.owner[block] = Some(owner).into();
                    order.steps.push(WalkStep::Region(block));
                    todo.push(Todo::Insts(block, 0));
                }
                Todo::Leave(inst) => order.steps.push(WalkStep::Leave(inst)),
            }
        }
        order
    }

    /// The steps in order.
    pub fn steps(&self) -> &[WalkStep] {
        &self.steps
    }

    /// The instruction that owns a region; none for the function's body.
    pub fn owner(&self, region: Block) -> Option<Inst> {
        self.owner[region].expand()
    }

    /// The instruction that owns the region in which `inst` stands.
    pub fn parent(&self, func: &TileFunction, inst: Inst) -> Option<Inst> {
        func.order
            .block_of(inst)
            .and_then(|block| self.owner(block))
    }

    /// Whether a program may execute an instruction, and later another one or the same again.
    pub fn may_precede(&self, func: &TileFunction, first: Inst, later: Inst) -> bool {
        let outwards = |inst| std::iter::successors(Some(inst), |&inst| self.parent(func, inst));
        let place = |inst| {
            let block = func.order.block_of(inst)?;
            let at = func.order.insts(block).iter().position(|&i| i == inst)?;
            Some((block, at))
        };
        // What holds them, or is them, in the innermost block that holds both.
        let common = outwards(later).find_map(|b| {
            let (block, at) = place(b)?;
            let a = outwards(first).find(|&a| func.order.block_of(a) == Some(block))?;
            Some((a, b, place(a)?.1 < at))
        });
        let Some((a, b, stands_before)) = common else {
            return true;
        };
        let around = if a == b {
            Some(b)
        } else {
            self.parent(func, b)
        };
        let mut around = around.into_iter().flat_map(outwards);
        let is_repeated = around.any(|inst| {
            let op = func.dfg.insts[inst].op;
            op.is_loop()
        });
        stands_before || is_repeated
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::builder::TileBuilder;
    use crate::ir::dfg::ValueList;
    use crate::linear_layout::shape::Shape;

    #[test]
    fn what_may_come_first_stands_before_or_in_a_common_loop() {
        let mut b = TileBuilder::new("k", 4);
        let lo = b.i32(0, Shape::SCALAR);
        let hi = b.i32(4, Shape::SCALAR);
        let (mut inner, mut last) = (lo, lo);
        let sum = b.for_loop(lo, hi, hi, &[lo], |b, iv, carried| {
            inner = b.iadd(iv, carried[0]);
            last = b.iadd(inner, inner);
            ValueList::from_slice(&[last])
        });
        let after = b.iadd(sum[0], hi);
        b.ret();
        let func = b.finish().expect("valid");
        let order = ProgramOrder::compute(&func);
        let def = |value| func.dfg.def_inst(value).expect("an instruction makes it");
        let [hi, inner, last, after] = [hi, inner, last, after].map(def);
        let may = |first, later| order.may_precede(&func, first, later);
        assert!(may(hi, inner) && may(hi, after) && may(inner, after));
        assert!(may(inner, last) && may(last, inner) && may(last, last));
        assert!(!may(after, inner) && !may(after, hi) && !may(hi, hi));
    }

    #[test]
    fn regions_are_walked_where_their_owner_stands() {
        let mut b = TileBuilder::new("k", 4);
        let lo = b.i32(0, Shape::SCALAR);
        let hi = b.i32(4, Shape::SCALAR);
        let sum = b.for_loop(lo, hi, hi, &[lo], |b, iv, carried| {
            ValueList::from_slice(&[b.iadd(iv, carried[0])])
        });
        b.iadd(sum[0], hi);
        b.ret();
        let func = b.finish().expect("valid");
        let order = ProgramOrder::compute(&func);
        let shape: Vec<&str> = order
            .steps()
            .iter()
            .map(|step| match step {
                WalkStep::Inst(inst) => func.dfg.insts[*inst].op.info().name,
                WalkStep::Enter(_) => "enter",
                WalkStep::Region(_) => "region",
                WalkStep::Leave(_) => "leave",
            })
            .collect();
        assert_eq!(
            shape,
            [
                "const", "const", "enter", "region", "iadd", "yield", "leave", "iadd", "return"
            ]
        );
        let WalkStep::Inst(body) = order.steps()[4] else {
            panic!("step 4 is the sum in the loop");
        };
        let owner = order.parent(&func, body).expect("stands in the loop");
        assert_eq!(func.dfg.insts[owner].op.info().name, "for");
    }
}
