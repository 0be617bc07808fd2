//! What results come from that no bound follows for.

use super::super::{Elems, Machine, Outcome, operand};
use super::{Off, Slack};
use crate::interp::Cause;
use crate::ir::dfg::InstData;
use crate::ir::effects::OpClass;
use crate::ir::entities::{Inst, Value};
use crate::ir::level::Tile;
use crate::ir::ops::{Opcode, TileOp};

impl Machine<'_> {
    /// Distances of a result with what they come from: of ops that work element by element, that of the operands there, and of
    /// others that of any operand, where no bound follows.
    pub(super) fn caused(&self, slack: &Slack, data: &InstData<Tile>, found: Vec<f64>) -> Vec<Off> {
        let of_any = |&value: &Value| slack.values[value].iter().find_map(|off| off.cause);
        let any = data.args.iter().find_map(of_any);
        let is_elementwise = data.op.info().effects.class == OpClass::Elementwise;
        let cause = |i: usize, by: f64| -> Option<Cause> {
            match is_elementwise {
                true => data.args.iter().find_map(|&v| slack.off(v, i).cause),
                false => any.filter(|_| by.is_infinite()),
            }
        };
        let off = |(i, by): (usize, f64)| Off {
            by,
            cause: any.and_then(|_| cause(i, by)).filter(|_| by > 0.0),
        };
        found.into_iter().enumerate().map(off).collect()
    }

    /// Distances of what an op only takes to other places: those of the elements that it takes there, which it is executed on their
    /// numbers for.
    pub(super) fn moved(
        &mut self,
        slack: &Slack,
        inst: Inst,
        data: &InstData<Tile>,
        result: Value,
    ) -> Outcome<Vec<Off>> {
        // The second operand of a gather is where the elements are.
        let sources = match data.op {
            TileOp::Gather => vec![operand(data, 0)?],
            _ => data.args.to_vec(),
        };
        let mut offs: Vec<Off> = Vec::new();
        let mut kept: Vec<(Value, Elems)> = Vec::new();
        for value in sources {
            if kept.iter().any(|&(other, _)| other == value) {
                continue;
            }
            let elems = self.get(value)?.clone();
            let first = offs.len();
            offs.extend((0..elems.len()).map(|i| slack.off(value, i)));
            self.values[value] = (first..offs.len()).map(|number| number as u64).collect();
            kept.push((value, elems));
        }
        let exact = self.values[result].clone();
        self.is_numbered = true;
        let done = self.inst(inst);
        self.is_numbered = false;
        let numbers = std::mem::replace(&mut self.values[result], exact);
        for (value, elems) in kept {
            self.values[value] = elems;
        }
        done.map_err(|_| slack.undecided(&data.args))?;
        let of = |&number: &u64| offs.get(number as usize).copied().unwrap_or_default();
        Ok(numbers.iter().map(of).collect())
    }
}
