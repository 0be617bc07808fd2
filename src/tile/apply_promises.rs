//! Lets promises that stand by themselves, as `tl.multiple_of(x, 16)` without an assignment, count for what follows.
//!
//! Invariant: in the block of such a promise, and the regions in it, what comes later uses the result of the promise. One walk.

use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::PackedOption;

use super::edit::use_counts;
use crate::analysis::program::{ProgramOrder, WalkStep};
use crate::ir::entities::{Inst, Value};
use crate::ir::function::TileFunction;
use crate::ir::ops::TileOp;

/// Puts unused results of promises in the place of their operands; gives the number of promises that got uses so.
pub fn apply_promises(func: &mut TileFunction) -> usize {
    let uses = use_counts(func);
    let order = ProgramOrder::compute(func);
    let mut names = Names::default();
    // How many names there were in front of each region around.
    let mut outer = Vec::new();
    let mut applied = 0;
    for &step in order.steps() {
        match step {
            WalkStep::Inst(inst) => {
                let promised = promised_by_itself(func, &uses, inst);
                names.rename_uses(func, inst);
                if let Some((value, result)) = promised {
                    names.add(value, result);
                    applied += 1;
                }
            }
            WalkStep::Enter(inst) => {
                names.rename_uses(func, inst);
                outer.push(names.added.len());
            }
            WalkStep::Region(_) => names.forget(outer.last().copied().unwrap_or(0)),
            WalkStep::Leave(_) => names.forget(outer.pop().unwrap_or(0)),
        }
    }
    applied
}

/// The operand and the result of a promise whose result nothing uses.
fn promised_by_itself(
    func: &TileFunction,
    uses: &SecondaryMap<Value, u32>,
    inst: Inst,
) -> Option<(Value, Value)> {
    let data = &func.dfg.insts[inst];
    let is_promise = matches!(
        data.op,
        TileOp::AssumeMultiple | TileOp::AssumeContiguous | TileOp::AssumeConstant
    );
    let result = func.dfg.single_result(inst).filter(|_| is_promise)?;
    (uses[result] == 0).then_some((data.args[0], result))
}

/// New names of values, and what they replaced, in order.
#[derive(Default)]
struct Names {
    now: SecondaryMap<Value, PackedOption<Value>>,
    added: Vec<(Value, PackedOption<Value>)>,
}

impl Names {
    fn add(&mut self, value: Value, name: Value) {
        self.added.push((value, self.now[value]));
        self.now[value] = Some(name).into();
    }

    /// Takes back all but the first `kept` names.
    fn forget(&mut self, kept: usize) {
        while self.added.len() > kept
            && let Some((value, before)) = self.added.pop()
        {
            self.now[value] = before;
        }
    }

    fn rename_uses(&self, func: &mut TileFunction, inst: Inst) {
        let name = |value| self.now[value].expand().unwrap_or(value);
        func.dfg.map_uses(inst, name);
    }
}
