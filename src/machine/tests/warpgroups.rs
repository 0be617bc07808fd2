//! Every instruction of warpgroups: each unit, with the left operand by descriptor and from registers, rows along the sum and
//! across it.

use std::collections::BTreeSet;

use super::*;
use crate::ir::attrs::{Attr, Flag, MmaUnit, make};
use crate::ir::dfg::InstData;
use crate::ir::entities::Value;
use crate::ir::function::SlotData;
use crate::ir::level::Thread;
use crate::ir::matrix_units::When;
use crate::ir::ops::ThreadOp;
use crate::ir::types::AddressSpace;

/// What a descriptor holds beside the start of a block of rows of 32 bytes: eight rows further on, and the permutation.
const ROWS_OF_32_BYTES: u64 = 1 << 16 | 16 << 32 | 3 << 62;

/// How a product is asked for.
#[derive(Clone, Copy, Debug)]
struct Form {
    unit: MmaUnit,
    columns: u32,
    left_in_registers: bool,
    transposed: [bool; 2],
}

impl Form {
    /// Every form that the machine has, of so many columns.
    fn all(columns: &[u32]) -> Vec<Form> {
        let units = MmaUnit::ALL.iter().copied();
        let mut found = Vec::new();
        for unit in units.filter(|unit| unit.info().when == When::UntilWait) {
            // Only of 16 bits can what is next to each other belong to different terms.
            let can_cross = unit.info().scalars[0].bits() == 16;
            for &columns in columns {
                for left_in_registers in [false, true] {
                    for crossed in 0..4 {
                        let transposed = [1, 2].map(|bit| crossed & bit != 0);
                        let [left, right] = transposed;
                        let is_there =
                            !(left && left_in_registers) && (can_cross || !(left || right));
                        found.extend(is_there.then_some(Form {
                            unit,
                            columns,
                            left_in_registers,
                            transposed,
                        }));
                    }
                }
            }
        }
        found
    }

    /// A product of two rounds that adds to loaded sums.
    fn kernel(self) -> ThreadFunction {
        let info = self.unit.info();
        let [left, ..] = info.scalars;
        let (held, added) = self.unit.elems();
        let mut b = ThreadBuilder::new("product", info.warps);
        let one = |elem| ThreadType::scalar(elem);
        let [a, c] = [held, added].map(|elem| {
            let number = elem.scalar().expect("units take numbers");
            b.param_divisible("p", one(Elem::global(number)), 16)
        });
        let slot = b.func_mut().slots.push(SlotData {
            bytes: 32 * (info.rows + self.columns),
            align: 256,
            offset: Some(0),
            by_group: false,
        });
        let tid = b.special(SpecialReg::Tid);
        let memory = Elem::Ptr(left, AddressSpace::Shared);
        let address = b.slot_addr(slot, one(memory));
        let address = b.ptr_cast(address, one(Elem::I32));
        let address = b.zext(address, one(Elem::I64));
        let four = b.const_bits(4, one(Elem::I64));
        let start = b.ushr(address, four);
        let bits = b.const_bits(ROWS_OF_32_BYTES, one(Elem::I64));
        let matrix = b.or(start, bits);

        let count = info.rows * self.columns / (32 * info.warps);
        let each = ThreadType::pack(added, 4);
        let quads = count / 4;
        let stride = b.const_bits(u64::from(count), one(Elem::I32));
        let first = b.imul(tid, stride);
        let places: Vec<Value> = (0..quads)
            .map(|i| {
                let by = b.const_bits(u64::from(4 * i), one(Elem::I32));
                let at = b.iadd(first, by);
                b.addptr(c, at)
            })
            .collect();
        let parts: Vec<Value> = places.iter().map(|&p| b.ld(p, None, None, each)).collect();
        let sums = ThreadType::pack(added, count as u16);
        let mut sum = b.rearrange(&parts, (0..count).collect(), sums);
        let fragment = ThreadType::pack(held, (16 / held.bytes()) as u16);
        let operands = match self.left_in_registers {
            true => {
                let number = b.const_bits(u64::from(fragment.count), one(Elem::I32));
                let at = b.imul(tid, number);
                let from = b.addptr(a, at);
                vec![b.ld(from, None, None, fragment)]
            }
            false => Vec::new(),
        };
        let left = operands.first().copied().unwrap_or(matrix);
        let mut attrs = vec![make::unit(self.unit), make::slot(slot)];
        attrs.extend((!self.left_in_registers).then_some(make::left_slot(slot)));
        let held: Vec<Value> = [&[sum][..], &operands].concat();
        sum = op(&mut b, ThreadOp::WgmmaFence, &held, &attrs).expect("the sums");
        attrs.push(make::columns(self.columns));
        let [left_flag, right_flag] = self.transposed;
        attrs.extend(left_flag.then_some(make::trans_a(Flag)));
        attrs.extend(right_flag.then_some(make::trans_b(Flag)));
        let rounds = [sum, left, matrix, left, matrix];
        sum = op(&mut b, ThreadOp::Wgmma, &rounds, &attrs).expect("the sums");
        b.wgmma_commit();
        let held: Vec<Value> = [&[sum][..], &operands].concat();
        sum = op(&mut b, ThreadOp::WgmmaWait, &held, &[make::pending(0)]).expect("the sums");
        for (i, &place) in (0..quads).zip(&places) {
            let part = b.rearrange(&[sum], (4 * i..4 * i + 4).collect(), each);
            b.st(place, part, None);
        }
        b.ret();
        b.finish().unwrap_or_else(|e| panic!("{self:?}: {e:?}"))
    }
}

/// Appends an instruction and gives its result.
fn op(b: &mut ThreadBuilder, op: ThreadOp, args: &[Value], attrs: &[Attr]) -> Option<Value> {
    let mut data: InstData<Thread> = InstData::new(op, args);
    data.attrs.extend(attrs.iter().cloned());
    let inst = b.inst(data, &[]);
    b.func().dfg.insts[inst].results.first().copied()
}

#[test]
fn every_form_is_assembled() {
    let forms = Form::all(&[8, 32, 256]);
    let mut texts = BTreeSet::new();
    for form in &forms {
        let ptx = compile(&form.kernel(), Target::SM_90A);
        let lines = ptx.lines().filter_map(|line| line.trim().split_once(' '));
        let names = lines.filter(|(name, _)| name.starts_with("wgmma.mma_async"));
        let names: Vec<&str> = names.map(|(name, _)| name).collect();
        let [first, second] = names[..] else {
            panic!("{form:?}: {} products\n{ptx}", names.len());
        };
        assert_eq!(first, second, "{form:?}");
        let columns = format!(
            ".m{}n{}k{}.",
            form.unit.info().rows,
            form.columns,
            form.unit.info().inner
        );
        assert!(first.contains(&columns), "{form:?}: {first}");
        texts.insert(first.to_owned());
    }
    // Units by columns; the place of the left operand and transposition are operands.
    assert_eq!(texts.len(), 13 * 3);
    // Three units of 16 bits with four forms by descriptor and two from registers, the others with one and one.
    assert_eq!(forms.len(), 3 * (3 * (4 + 2) + 10 * 2));
}
