//! Writes the chosen layouts into the function.
//!
//! One walk in program order builds new instruction lists. A value is fetched in the layout its user asks for:
//! as it is, or through a conversion, or, if it is cheap, computed anew. What is made for one user serves all
//! later ones, so it stands in the block of the value's definition, as late as its first user allows: before
//! the loop if the value comes from outside of it. A load that is done again stands beside the first one.

use cranelift_entity::{EntitySet, PrimaryMap, SecondaryMap};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::LayoutStats;
use super::graph::{Graph, Need, Node, broadcast_of};
use super::views::{LayoutStep, Views};
use crate::analysis::program::{ProgramOrder, WalkStep};
use crate::ir::attrs::{Attr, AttrKind, Attrs, List, make};
use crate::ir::dfg::{InstData, ValueDef, ValueList};
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::function::TileFunction;
use crate::ir::ops::TileOp;
use crate::linear_layout::digits::Digit;
use crate::linear_layout::layout::{HwDim, LinearLayout};
use crate::linear_layout::pool::LayoutId;

/// What was decided.
#[derive(Clone, Copy)]
pub(super) struct Decisions<'a> {
    /// The layout of each node.
    pub chosen: &'a PrimaryMap<Node, LayoutId>,
    /// Layouts in which loads are done again.
    pub again: &'a FxHashMap<Node, SmallVec<[LayoutId; 2]>>,
}

/// The walk.
pub(super) struct Rewriter<'a> {
    func: &'a mut TileFunction,
    graph: &'a Graph,
    chosen: &'a PrimaryMap<Node, LayoutId>,
    again: &'a FxHashMap<Node, SmallVec<[LayoutId; 2]>>,
    views: Views,
    lists: SecondaryMap<Block, Vec<Inst>>,
    made: FxHashMap<(Value, LayoutId), Value>,
    /// Instructions that stand for one layout already; more are copies.
    taken: EntitySet<Inst>,
    /// For all that is made here and stands in no block until the walk ends: the value of the function that it stands for.
    origin: FxHashMap<Value, Value>,
    stats: LayoutStats,
}

impl<'a> Rewriter<'a> {
    /// Rewrites the function.
    pub(super) fn run(
        func: &'a mut TileFunction,
        order: &ProgramOrder,
        graph: &'a Graph,
        decided: Decisions<'a>,
        views: Views,
    ) -> LayoutStats {
        let mut rewriter = Rewriter {
            func,
            graph,
            chosen: decided.chosen,
            again: decided.again,
            views,
            lists: SecondaryMap::new(),
            made: FxHashMap::default(),
            taken: EntitySet::new(),
            origin: FxHashMap::default(),
            stats: LayoutStats::default(),
        };
        rewriter.set_types();
        for &step in order.steps() {
            match step {
                WalkStep::Inst(inst) => rewriter.inst(order, inst),
                WalkStep::Enter(inst) => rewriter.enter(inst),
                WalkStep::Region(_) => {}
                WalkStep::Leave(inst) => rewriter.leave(inst),
            }
        }
        rewriter.close(rewriter.func.entry);
        rewriter.stats
    }

    /// Types of the values that nodes hold; those of the cheap ones follow as they are asked for.
    fn set_types(&mut self) {
        for value in self.func.dfg.values.keys() {
            let ty = self.func.dfg.ty(value);
            if ty.is_scalar() {
                continue;
            }
            let Some(node) = self.graph.of_value(value) else {
                continue;
            };
            let mut layout = self.chosen[node];
            if let Some(axis) = self.graph.nodes[node].reduced {
                let pool = &mut self.func.layouts;
                layout = self.views.view(pool, layout, LayoutStep::Reduce(axis));
            }
            self.func.dfg.values[value].ty = ty.with_layout(layout);
        }
    }

    fn close(&mut self, block: Block) {
        let insts = std::mem::take(&mut self.lists[block]);
        self.func.order.replace(block, insts);
    }

    fn append(&mut self, inst: Inst) {
        let block = self.func.order.block_of(inst);
        let block = block.expect("the walk visits instructions that stand in blocks");
        self.lists[block].push(inst);
    }

    fn inst(&mut self, order: &ProgramOrder, inst: Inst) {
        let data = &self.func.dfg.insts[inst];
        match data.op {
            TileOp::Yield => {
                if let Some(owner) = order.parent(self.func, inst) {
                    let owner = &self.func.dfg.insts[owner];
                    let first = &self.func.dfg.blocks[owner.blocks[0].block].params[..];
                    let targets = match owner.op {
                        TileOp::For => &first[1..],
                        TileOp::While => first,
                        _ => &owner.results[..],
                    };
                    let targets = ValueList::from_slice(targets);
                    self.pass(inst, 0, &targets);
                }
            }
            TileOp::Condition => {
                if let Some(owner) = order.parent(self.func, inst) {
                    let targets = ValueList::from_slice(&self.func.dfg.insts[owner].results);
                    self.pass(inst, 1, &targets);
                }
            }
            _ => {
                let result = self.func.dfg.single_result(inst);
                if result.is_some_and(|v| self.graph.is_cheap(v)) {
                    // It comes into being when it is asked for.
                    return;
                }
                self.load_again(inst);
                self.operands(inst);
            }
        }
        self.append(inst);
    }

    /// Does a load once more for each of the other layouts in which that was decided.
    fn load_again(&mut self, inst: Inst) {
        let again = self.again;
        let Some(layouts) = self.graph.of_inst(inst).and_then(|node| again.get(&node)) else {
            return;
        };
        let result = self.func.dfg.insts[inst].results[0];
        let args = self.func.dfg.insts[inst].args.clone();
        for &layout in layouts {
            let mut data = self.func.dfg.insts[inst].clone();
            data.args = args.iter().map(|&arg| self.fetch(arg, layout)).collect();
            let ty = self.func.dfg.ty(result).with_layout(layout);
            let copy = self.func.dfg.make_inst(data, &[ty]);
            let block = self.func.order.block_of(inst);
            let block = block.expect("the walk visits instructions that stand in blocks");
            self.lists[block].push(copy);
            let made = self.func.dfg.insts[copy].results[0];
            self.made.insert((result, layout), made);
            self.origin.insert(made, result);
        }
    }

    fn enter(&mut self, inst: Inst) {
        let data = &self.func.dfg.insts[inst];
        let first = data.blocks.first().map(|call| call.block);
        let params = first.map_or(&[][..], |block| &self.func.dfg.blocks[block].params);
        match data.op {
            TileOp::For => {
                let targets = ValueList::from_slice(&params[1..]);
                self.pass(inst, 3, &targets);
            }
            TileOp::While => {
                let targets = ValueList::from_slice(params);
                self.pass(inst, 0, &targets);
            }
            TileOp::Reduce => {
                self.operands(inst);
                self.set_order(inst);
            }
            TileOp::Scan => {
                self.operands(inst);
                self.set_tree(inst);
            }
            _ => {}
        }
    }

    fn leave(&mut self, inst: Inst) {
        let regions: Vec<Block> = self.func.regions(inst).collect();
        for region in regions {
            self.close(region);
        }
        self.append(inst);
    }

    /// Fetches the operands in the layouts that the instruction's layout asks for.
    fn operands(&mut self, inst: Inst) {
        let Some(node) = self.graph.of_inst(inst) else {
            return;
        };
        for i in 0..self.func.dfg.insts[inst].args.len() {
            let arg = self.func.dfg.insts[inst].args[i];
            if self.func.dfg.ty(arg).is_shared() {
                continue;
            }
            let layout = match self.graph.need(self.func, inst, i) {
                Need::Gathered(_) | Need::Counted => self.source_layout(arg, node),
                need => {
                    let layout = self.chosen[node];
                    let need = LayoutStep::Need(need);
                    self.views.view(&mut self.func.layouts, layout, need)
                }
            };
            let fetched = self.fetch(arg, layout);
            self.func.dfg.insts[inst].args[i] = fetched;
        }
    }

    /// The layout in which a gather or histogram gets its source: the one that it has; for a cheap value the user's
    /// own, if the shape allows it.
    fn source_layout(&mut self, source: Value, node: Node) -> LayoutId {
        if self.graph.of_value(source).is_some()
            && let Some(layout) = self.func.dfg.ty(source).layout.expand()
        {
            return layout;
        }
        let shape = self.func.dfg.ty(source).shape;
        if shape == self.graph.nodes[node].shape {
            return self.chosen[node];
        }
        let num_warps = self.func.num_warps();
        super::plain(&mut self.func.layouts, shape, num_warps)
    }

    /// Fetches the operands from number `from` on in the layouts of the values they become.
    fn pass(&mut self, inst: Inst, from: usize, targets: &[Value]) {
        for (i, &target) in targets.iter().enumerate() {
            let Some(layout) = self.func.dfg.ty(target).layout.expand() else {
                continue;
            };
            let arg = self.func.dfg.insts[inst].args[from + i];
            let fetched = self.fetch(arg, layout);
            self.func.dfg.insts[inst].args[from + i] = fetched;
        }
    }

    /// The value in a layout; a scalar has none.
    fn fetch(&mut self, value: Value, layout: LayoutId) -> Value {
        let ty = self.func.dfg.ty(value);
        if ty.is_scalar() {
            return value;
        }
        // The operands of an instruction may have been replaced by copies for its first layout.
        let value = self.origin.get(&value).copied().unwrap_or(value);
        if let Some(&made) = self.made.get(&(value, layout)) {
            return made;
        }
        let cheap = self.graph.is_cheap(value);
        if !cheap && ty.layout.expand() == Some(layout) {
            return value;
        }
        let (block, definition) = match self.func.dfg.values[value].def {
            ValueDef::Param(block, _) => (Some(block), None),
            ValueDef::Result(inst, _) => (self.func.order.block_of(inst), Some(inst)),
        };
        let block = block.expect("a definition stands in a block around its uses");
        let inst = match definition {
            Some(inst) if cheap => self.compute(inst, layout),
            Some(inst) if self.is_better_before(inst, layout) => {
                // It stands where it is, for its own layout.
                self.taken.insert(inst);
                self.compute(inst, layout)
            }
            _ => {
                let mut data = InstData::new(TileOp::ConvertLayout, &[value]);
                data.loc = definition.map_or_else(Default::default, |i| self.func.dfg.insts[i].loc);
                self.stats.conversions += 1;
                self.stats.bytes += u64::from(ty.elem.bytes()) * ty.shape.elements() as u64;
                self.func.dfg.make_inst(data, &[ty.with_layout(layout)])
            }
        };
        self.lists[block].push(inst);
        let made = self.func.dfg.insts[inst].results[0];
        self.made.insert((value, layout), made);
        if !cheap {
            self.origin.insert(made, value);
        }
        made
    }

    /// Whether an instruction only repeats or names anew the elements of its operand, and that is better converted.
    fn is_better_before(&mut self, inst: Inst, layout: LayoutId) -> bool {
        // Its operand has as many elements, and may have been converted already.
        if self.func.dfg.insts[inst].op == TileOp::ExpandDims {
            return true;
        }
        let ty = self.func.dfg.ty(self.func.dfg.insts[inst].results[0]);
        let (Some(own), Some(shape)) = (ty.layout.expand(), broadcast_of(self.func, inst)) else {
            return false;
        };
        let (pool, bits) = (&mut self.func.layouts, ty.elem.bits());
        let both = [own, layout];
        self.views.broadcast_cost(pool, Some(shape), both, bits).1
    }

    /// The instruction, or a copy if it stands for another layout already, with a result in the layout.
    fn compute(&mut self, inst: Inst, layout: LayoutId) -> Inst {
        let need = LayoutStep::Need(self.graph.need(self.func, inst, 0));
        let wanted = self.views.view(&mut self.func.layouts, layout, need);
        // Operands are at most `CHEAP_LIMIT` deep.
        let original = self.func.dfg.insts[inst].args.clone();
        let args: ValueList = original
            .iter()
            .map(|&arg| self.fetch(arg, wanted))
            .collect();
        let result = self.func.dfg.insts[inst].results[0];
        let ty = self.func.dfg.ty(result).with_layout(layout);
        if self.taken.insert(inst) {
            self.func.dfg.insts[inst].args = args;
            self.func.dfg.values[result].ty = ty;
            return inst;
        }
        let mut data = self.func.dfg.insts[inst].clone();
        data.args = args;
        let copy = self.func.dfg.make_inst(data, &[ty]);
        self.origin
            .insert(self.func.dfg.insts[copy].results[0], result);
        copy
    }

    /// States the sequence in which the expansion folds the axis: registers, lanes, warps. A layout that moves
    /// along several bits of the axis at once has no such sequence, and the tree stays unspecified.
    fn set_order(&mut self, inst: Inst) {
        let Some(node) = self.graph.of_inst(inst) else {
            return;
        };
        let layout = &self.func.layouts[self.chosen[node]];
        let data = &mut self.func.dfg.insts[inst];
        let axis = usize::from(data.axis().copied().unwrap_or(0));
        data.attrs
            .retain(|attr: &mut Attr| attr.kind() != AttrKind::Order);
        if let Some(order) = fold_order(layout, axis) {
            data.attrs.push(make::order(order));
        }
    }

    /// States the digits in which the expansion scans the axis.
    fn set_tree(&mut self, inst: Inst) {
        let Some(node) = self.graph.of_inst(inst) else {
            return;
        };
        let layout = &self.func.layouts[self.chosen[node]];
        let data = &mut self.func.dfg.insts[inst];
        let axis = usize::from(data.axis().copied().unwrap_or(0));
        data.attrs
            .retain(|attr: &mut Attr| attr.kind() != AttrKind::Tree);
        let digits = layout.digits(axis).unwrap_or_default();
        let doubles = |digit: &Digit| if digit.dim == HwDim::Lane { 32 } else { 0 };
        let tree = digits.iter().map(|d| d.bits.len() as u32 + doubles(d));
        data.attrs.push(make::tree(tree.collect()));
    }
}

/// The bits of the index along `axis` in the sequence register, lane, warp bits; none if an input bit
/// moves along several of them or two along the same.
pub(super) fn fold_order(layout: &LinearLayout, axis: usize) -> Option<List> {
    let mask = layout.shape().bit_mask(axis);
    let offset = layout.shape().bit_offset(axis);
    let mut order = List::new();
    for dim in [HwDim::Register, HwDim::Lane, HwDim::Warp] {
        for column in layout.columns(dim) {
            let along = (column & mask) >> offset;
            match along.count_ones() {
                0 => {}
                1 if !order.contains(&along.trailing_zeros()) => {
                    order.push(along.trailing_zeros());
                }
                _ => return None,
            }
        }
    }
    Some(order)
}
