//! Removes what nothing needs: pure instructions and loads without use, and values that loops and choices carry
//! only for themselves.
//!
//! Roots are stores, barriers, volatile loads, and `while` loops, which may not end. From them liveness spreads to
//! operands, one value at a time: a value that a loop carries is live if its parameter or its result is, and then so
//! are its initial and its next value. A cycle through the loop alone keeps nothing alive. Time is linear.

use cranelift_entity::EntitySet;

use crate::analysis::program::{ProgramOrder, WalkStep};
use crate::ir::dfg::{ValueDef, ValueList};
use crate::ir::effects::OpClass;
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::function::TileFunction;
use crate::ir::ops::{Opcode, TileOp};

/// Removes dead instructions and carried values; gives their number.
pub fn eliminate_dead_code(func: &mut TileFunction) -> usize {
    let order = ProgramOrder::compute(func);
    let mut marker = Marker {
        func,
        order: &order,
        values: EntitySet::with_capacity(func.dfg.values.len()),
        insts: EntitySet::with_capacity(func.dfg.insts.len()),
        pending: Vec::new(),
    };
    marker.mark_all();
    let (values, insts) = (marker.values, marker.insts);
    sweep(func, &order, &values, &insts)
}

struct Marker<'a> {
    func: &'a TileFunction,
    order: &'a ProgramOrder,
    values: EntitySet<Value>,
    insts: EntitySet<Inst>,
    pending: Vec<Value>,
}

impl Marker<'_> {
    fn mark_all(&mut self) {
        for &step in self.order.steps() {
            let (WalkStep::Inst(inst) | WalkStep::Enter(inst)) = step else {
                continue;
            };
            let data = &self.func.dfg.insts[inst];
            let is_root = match data.class() {
                OpClass::Region => data.op == TileOp::While,
                // Ends of regions stay with the region and keep what it needs.
                OpClass::End => data.op == TileOp::Return,
                _ => data.has_effect(),
            };
            if is_root {
                self.mark_inst(inst);
            }
        }
        while let Some(value) = self.pending.pop() {
            self.follow(value);
        }
    }

    fn mark_value(&mut self, value: Value) {
        if self.values.insert(value) {
            self.pending.push(value);
        }
    }

    fn mark_values(&mut self, values: &[Value]) {
        for &value in values {
            self.mark_value(value);
        }
    }

    /// The instruction runs, so all it stands in does; it needs what is not needed for single results alone.
    fn mark_inst(&mut self, inst: Inst) {
        let mut next = Some(inst);
        while let Some(inst) = next.filter(|&inst| self.insts.insert(inst)) {
            let data = &self.func.dfg.insts[inst];
            match data.op {
                TileOp::For => self.mark_values(&data.args[..3]),
                TileOp::While => {
                    if let Some(end) = self.end(inst, 0) {
                        self.mark_value(end[0]);
                    }
                }
                TileOp::Reduce | TileOp::Scan => {
                    self.mark_values(&data.args);
                    if let Some(end) = self.end(inst, 0) {
                        self.mark_values(&end);
                    }
                }
                _ => self.mark_values(&data.args),
            }
            next = self.order.parent(self.func, inst);
        }
    }

    /// Operands of the end of a region.
    fn end(&self, owner: Inst, region: usize) -> Option<ValueList> {
        let block = self.func.dfg.insts[owner].blocks.get(region)?.block;
        let end = self.func.order.last(block)?;
        Some(self.func.dfg.insts[end].args.clone())
    }

    fn follow(&mut self, value: Value) {
        match self.func.dfg.values[value].def {
            ValueDef::Result(inst, i) => {
                self.mark_inst(inst);
                self.passed(inst, usize::from(i), None);
            }
            ValueDef::Param(block, i) => {
                if let Some(owner) = self.order.owner(block) {
                    self.passed(owner, usize::from(i), Some(block));
                }
            }
        }
    }

    /// What is passed as result number `i` of an instruction with regions, or as parameter number `i` of `region`.
    fn passed(&mut self, owner: Inst, i: usize, region: Option<Block>) {
        let data = &self.func.dfg.insts[owner];
        let mut sources = ValueList::new();
        let mut from_end = |region: usize, i: usize| {
            let end = self.end(owner, region);
            sources.extend(end.and_then(|values| values.get(i).copied()));
        };
        match data.op {
            TileOp::For => {
                // Parameter 0 counts.
                let carried = if region.is_some() {
                    i.checked_sub(1)
                } else {
                    Some(i)
                };
                if let Some(carried) = carried {
                    from_end(0, carried);
                    sources.extend(data.args.get(3 + carried).copied());
                }
            }
            TileOp::While => {
                if region == Some(data.blocks[0].block) {
                    from_end(1, i);
                    sources.extend(data.args.get(i).copied());
                } else {
                    from_end(0, 1 + i);
                }
            }
            TileOp::If => {
                from_end(0, i);
                from_end(1, i);
            }
            _ => {}
        }
        self.mark_values(&sources);
    }
}

fn sweep(
    func: &mut TileFunction,
    order: &ProgramOrder,
    values: &EntitySet<Value>,
    insts: &EntitySet<Inst>,
) -> usize {
    let mut removed = 0;
    for &step in order.steps() {
        if let WalkStep::Enter(inst) = step
            && insts.contains(inst)
        {
            removed += drop_carried(func, values, inst);
        }
    }
    let blocks = func.all_blocks();
    for block in blocks {
        let (dfg, order) = (&func.dfg, &mut func.order);
        order.retain(block, |inst| {
            let keep = insts.contains(inst) || dfg.insts[inst].op.info().ends_block();
            removed += usize::from(!keep);
            keep
        });
    }
    removed
}

/// Takes dead carried values out of a live instruction with regions.
fn drop_carried(func: &mut TileFunction, values: &EntitySet<Value>, inst: Inst) -> usize {
    let data = &func.dfg.insts[inst];
    let regions: ValueBlocks = data.blocks.iter().map(|call| call.block).collect();
    let live = |value: &Value| values.contains(*value);
    let params = |region: usize| &func.dfg.blocks[regions[region]].params;
    match data.op {
        TileOp::For => {
            let pairs = data.results.iter().zip(&params(0)[1..]);
            let keep: Vec<bool> = pairs.map(|(a, b)| live(a) || live(b)).collect();
            retain_args(func, inst, 3, &keep);
            retain_params(func, regions[0], 1, &keep);
            retain_end(func, regions[0], 0, &keep);
            retain_results(func, inst, &keep)
        }
        TileOp::While => {
            let entering: Vec<bool> = params(0).iter().map(live).collect();
            let pairs = data.results.iter().zip(params(1));
            let passed: Vec<bool> = pairs.map(|(a, b)| live(a) || live(b)).collect();
            retain_args(func, inst, 0, &entering);
            retain_end(func, regions[1], 0, &entering);
            retain_params(func, regions[1], 0, &passed);
            retain_end(func, regions[0], 1, &passed);
            retain_params(func, regions[0], 0, &entering) + retain_results(func, inst, &passed)
        }
        TileOp::If => {
            let keep: Vec<bool> = data.results.iter().map(live).collect();
            retain_end(func, regions[0], 0, &keep);
            retain_end(func, regions[1], 0, &keep);
            retain_results(func, inst, &keep)
        }
        _ => 0,
    }
}

type ValueBlocks = smallvec::SmallVec<[Block; 2]>;

/// Keeps the entries from number `from` on for which `keep` says so.
fn retain_from(list: &mut ValueList, from: usize, keep: &[bool]) {
    let mut i = 0;
    list.retain(|_| {
        i += 1;
        i <= from || keep.get(i - 1 - from).copied().unwrap_or(true)
    });
}

fn retain_args(func: &mut TileFunction, inst: Inst, from: usize, keep: &[bool]) {
    retain_from(&mut func.dfg.insts[inst].args, from, keep);
}

fn retain_end(func: &mut TileFunction, region: Block, from: usize, keep: &[bool]) {
    if let Some(end) = func.order.last(region) {
        retain_args(func, end, from, keep);
    }
}

fn retain_params(func: &mut TileFunction, region: Block, from: usize, keep: &[bool]) -> usize {
    let params = &mut func.dfg.blocks[region].params;
    let before = params.len();
    retain_from(params, from, keep);
    for (i, &param) in params.iter().enumerate() {
        func.dfg.values[param].def = ValueDef::Param(region, i as u16);
    }
    before - params.len()
}

fn retain_results(func: &mut TileFunction, inst: Inst, keep: &[bool]) -> usize {
    let results = &mut func.dfg.insts[inst].results;
    let before = results.len();
    let mut i = 0;
    results.retain(|_| {
        i += 1;
        keep[i - 1]
    });
    for (i, &result) in results.iter().enumerate() {
        func.dfg.values[result].def = ValueDef::Result(inst, i as u16);
    }
    before - results.len()
}

#[cfg(test)]
mod tests {
    use super::eliminate_dead_code;
    use crate::tile::testing::{check_pass, fixed_point};

    #[test]
    fn a_carried_value_without_use_goes_with_its_cycle() {
        check_pass(
            eliminate_dead_code,
            "kernel @k(v0: i32, v1: ptr<i32>) warps(4) {
            block0:
                v2 = const {value = 1} : i32
                v3 = const {value = 5} : i32
                v4, v5, v6 = for v2, v0, v2, v2, v3, v3 : i32, i32, i32 {
                block1(v7: i32, v8: i32, v9: i32, v10: i32):
                    v11 = iadd v8, v7 : i32
                    v12 = imul v9, v9 : i32
                    v13 = load v1 : i32
                    yield v11, v12, v7
                }
                store v1, v4
                store v1, v6
                return
            }",
            "kernel @k(v0: i32, v1: ptr<i32>) warps(4) {
            block0:
                v2 = const {value = 1} : i32
                v3 = const {value = 5} : i32
                v4, v6 = for v2, v0, v2, v2, v3 : i32, i32 {
                block1(v7: i32, v8: i32, v10: i32):
                    v11 = iadd v8, v7 : i32
                    yield v11, v7
                }
                store v1, v4
                store v1, v6
                return
            }",
        );
    }

    #[test]
    fn choices_lose_unused_results_and_loops_without_effect_go() {
        check_pass(
            eliminate_dead_code,
            "kernel @k(v0: i32, v1: ptr<i32>, v2: i1) warps(4) {
            block0:
                v3, v4 = if v2 : i32, i32 {
                block1:
                    v5 = imul v0, v0 : i32
                    v6 = iadd v0, v0 : i32
                    yield v5, v6
                } {
                block2:
                    yield v0, v0
                }
                v7 = for v0, v0, v0, v0 : i32 {
                block3(v8: i32, v9: i32):
                    yield v8
                }
                store v1, v4
                return
            }",
            "kernel @k(v0: i32, v1: ptr<i32>, v2: i1) warps(4) {
            block0:
                v4 = if v2 : i32 {
                block1:
                    v6 = iadd v0, v0 : i32
                    yield v6
                } {
                block2:
                    yield v0
                }
                store v1, v4
                return
            }",
        );
    }

    #[test]
    fn a_while_loop_keeps_its_condition_and_what_that_needs() {
        check_pass(
            eliminate_dead_code,
            "kernel @k(v0: i32, v1: ptr<i32>) warps(4) {
            block0:
                v2, v3 = while v0, v0 : i32, i32 {
                block1(v4: i32, v5: i32):
                    v6 = icmp v4, v0 {ipred = slt} : i1
                    condition v6, v4, v5
                } {
                block2(v7: i32, v8: i32):
                    v9 = iadd v7, v7 : i32
                    v10 = imul v8, v8 : i32
                    yield v9, v10
                }
                return
            }",
            "kernel @k(v0: i32, v1: ptr<i32>) warps(4) {
            block0:
                v2 = while v0 : i32 {
                block1(v4: i32):
                    v6 = icmp v4, v0 {ipred = slt} : i1
                    condition v6, v4
                } {
                block2(v7: i32):
                    v9 = iadd v7, v7 : i32
                    yield v9
                }
                return
            }",
        );
    }

    #[test]
    fn what_is_observed_stays() {
        fixed_point(
            eliminate_dead_code,
            "kernel @k(v0: ptr<i32>) warps(4) {
            block0:
                v1 = load v0 {volatile} : i32
                barrier
                v2 = load v0 : i32
                store v0, v2
                return
            }",
        );
    }
}
