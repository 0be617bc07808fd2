//! Expansion of products of matrices.
//!
//! Without a matrix unit each thread computes its elements by itself: it holds the rows and columns they take, and adds one
//! product after the other along the summed dimension, all elements at once.

use rustc_hash::FxHashMap;

use crate::ir::dfg::InstData;
use crate::ir::entities::{Inst, Value};
use crate::ir::ops::ThreadOp;
use crate::ir::types::Elem;
use crate::linear::layout::{HwDim, LinearLayout};
use crate::linear::shape::Shape;

use super::regs::Expanded;
use super::{Expander, Result, bug};

/// Which register of an operand holds an element.
type Holders = FxHashMap<u32, u32>;

impl Expander<'_> {
    pub(super) fn expand_dot(&mut self, inst: Inst) -> Result<Expanded> {
        let ty = self.result_type(inst)?;
        let layout = self.layout(ty)?;
        let count = layout.num_registers() as usize;
        let acc = self.arg(inst, 2)?;
        let mut sum = self.pack_of(&acc, count)?;
        let mut operands = Vec::new();
        for (i, is_left) in [(0, true), (1, false)] {
            let operand = self.arg_type(inst, i)?;
            let held = self.layout(operand)?;
            if held
                .register_map(&layout.before_dot(operand.shape, is_left))
                .is_none()
            {
                return bug("a thread lacks operands of its products");
            }
            let value = self.arg(inst, i)?;
            let pack = self.pack_of(&value, held.num_registers() as usize)?;
            operands.push((pack, holders(held), operand.shape));
        }
        let [a, b] = &operands[..] else {
            return bug("a product of matrices has two factors");
        };
        let rows = ty.shape.rank() - 2;
        for k in 0..a.2.extent(rows + 1) as u32 {
            let x = self.factor(layout, a, (rows, rows + 1), k)?;
            let y = self.factor(layout, b, (rows + 1, rows), k)?;
            sum = if ty.elem == Elem::I32 {
                let product = self.binary(ThreadOp::Imul, x, y)?;
                self.binary(ThreadOp::Iadd, sum, product)?
            } else {
                self.op(InstData::new(ThreadOp::Fma, &[x, y, sum]), &[])?
            };
        }
        Ok(Expanded::Pack(sum))
    }

    /// For each register of the result, the factor at `k` of the summed dimension of an operand that has dimension `kept` in
    /// common with the result.
    fn factor(
        &mut self,
        result: &LinearLayout,
        (pack, holders, shape): &(Value, Holders, Shape),
        (kept, summed): (usize, usize),
        k: u32,
    ) -> Result<Value> {
        let to = result.shape();
        let element = |flat: u32| {
            let dims = (0..to.rank() - 2).chain([kept]);
            dims.fold(k << shape.bit_offset(summed), |sum, dim| {
                sum | to.coordinate(flat, dim) << shape.bit_offset(dim)
            })
        };
        let map: Option<Vec<u32>> = (0..result.num_registers())
            .map(|r| holders.get(&element(result.apply(r, 0, 0, 0))).copied())
            .collect();
        match map {
            Some(map) => self.rearrange(&[*pack], &map),
            None => bug("a register of a factor is missing"),
        }
    }
}

/// The first register that holds each element of a thread, those of thread 0 standing for all.
fn holders(layout: &LinearLayout) -> Holders {
    let mut holders = Holders::default();
    for register in 0..layout.size(HwDim::Register) {
        holders
            .entry(layout.apply(register, 0, 0, 0))
            .or_insert(register);
    }
    holders
}
