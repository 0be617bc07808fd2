//! What the allocator is told of instructions, against the order in which they read and write.

use super::*;
use crate::ir::attrs::MmaUnit;
use crate::ir::entities::Value;
use crate::machine::inst::InstGroup;
use crate::regalloc::AllocFunction as _;
use crate::regalloc::reg::{Touch, Unit};

/// A product of tiles of f16, so many in a column of the left factor and in a row of the right one, that adds to loaded sums.
fn product(rows: u16, columns: u16) -> ThreadFunction {
    let mut b = ThreadBuilder::new("product", 1);
    let [halves, floats] = [Scalar::F16, Scalar::F32]
        .map(|scalar| b.param_divisible("p", ThreadType::scalar(Elem::global(scalar)), 16));
    let block = |b: &mut ThreadBuilder, p: Value, elem: Elem, [each, count]: [u16; 2]| {
        let parts: Vec<Value> = (0..count)
            .map(|_| b.ld(p, None, None, ThreadType::pack(elem, each)))
            .collect();
        let all = (0..u32::from(each * count)).collect();
        let parts = b.rearrange(&parts, all, ThreadType::pack(elem, each * count));
        // In registers of its own.
        b.fadd(parts, parts)
    };
    let left = block(&mut b, halves, Elem::F16, [8, rows]);
    let right = block(&mut b, halves, Elem::F16, [4, columns]);
    let sums = block(&mut b, floats, Elem::F32, [4, rows * columns]);
    let product = b.mma(left, right, sums, MmaUnit::F16);
    for i in 0..u32::from(rows * columns) {
        let tile = (4 * i..4 * i + 4).collect();
        let tile = b.rearrange(&[product], tile, ThreadType::pack(Elem::F32, 4));
        b.st(floats, tile, None);
    }
    b.ret();
    b.finish().expect("the kernel is valid")
}

#[test]
fn what_is_read_in_step_is_read_before_its_place_is_written() {
    for (rows, columns) in [(1, 1), (1, 2), (2, 1), (2, 2), (1, 4), (4, 1)] {
        let func = product(rows, columns);
        let code = select::select(&func, Target::SM_80).expect("the kernel is selected");
        let program = allocator_view::CodeProgram(&code);
        let regs = &code.regs;
        let place = |unit: Unit| {
            let group = regs.group_of(unit);
            (group, unit.as_u32() - regs.groups[group].first.as_u32())
        };
        let mut in_place = 0;
        for inst in 0..code.insts.len() {
            let mut events = Vec::new();
            program.replay(inst, |_, unit, writes| events.push((unit, writes)));
            let mut in_step = Vec::new();
            program.visit(inst, |unit, touch| {
                if touch == Touch::AlignedUse {
                    in_step.push(unit);
                }
            });
            if code.insts[inst].op.info().group == InstGroup::Matrix {
                in_place += in_step.len();
            }
            for unit in in_step {
                let last = events.iter().rposition(|&event| event == (unit, false));
                let written = events
                    .iter()
                    .position(|&(to, writes)| writes && place(to).1 == place(unit).1);
                assert!(
                    written.is_none() || last < written,
                    "{rows} x {columns}: {unit} of {:?}",
                    code.insts[inst].op
                );
            }
        }
        // The sums at least, of more than one tile.
        let sums = usize::from(4 * rows * columns);
        assert!(
            rows * columns == 1 || sums <= in_place,
            "{rows} x {columns}"
        );
    }
}
