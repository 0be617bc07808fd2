//! What is done where registers of threads are few: loads that wait, and predicates that are made again.

use super::*;
use crate::ir::attrs::IntPred;
use crate::ir::entities::Value;
use crate::machine::accesses::{RegisterAccess, Reps, visit_registers};
use crate::machine::function::MachineFunction;
use crate::machine::inst::{InstGroup, MInst, Ptx};
use crate::machine::remake_predicates::remake_predicates;
use crate::machine::schedule::schedule;

/// Numbers of a row, each loaded and stored under a mask of its own.
const WIDTH: u64 = 48;

/// `out[i] = i < n ? x[i] - scale : 0`, times `y[i]`, for numbers of a row that lie 32 apart, and for the rows behind it.
fn masked_rows() -> ThreadFunction {
    let mut b = ThreadBuilder::new("masked_rows", 1);
    let ptr = ThreadType::scalar(Elem::global(Scalar::F32));
    let (i32s, f32s) = (ThreadType::scalar(Elem::I32), ThreadType::scalar(Elem::F32));
    let (x, y, out) = (b.param("x", ptr), b.param("y", ptr), b.param("out", ptr));
    let (n, scale) = (b.param("n", i32s), b.param("scale", f32s));
    let first = b.special(SpecialReg::Tid);
    let zero = b.const_bits(0, f32s);
    let (header, params) = b.new_block(&[i32s]);
    let (exit, _) = b.new_block(&[]);
    b.jump(header, &[first]);
    b.append_block(header);
    b.switch_to(header);
    let load = |b: &mut ThreadBuilder, base, i, mask| {
        let p = b.addptr(base, i);
        b.ld(p, Some(mask), Some(zero), f32s)
    };
    let items: Vec<[Value; 4]> = (0..WIDTH)
        .map(|k| {
            let apart = b.const_bits(32 * k, i32s);
            let i = b.iadd(params[0], apart);
            let mask = b.icmp(i, n, IntPred::Slt);
            [i, mask, load(&mut b, x, i, mask), load(&mut b, y, i, mask)]
        })
        .collect();
    // Operation after operation, as those of blocks are.
    let products: Vec<Value> = items
        .iter()
        .map(|&[_, mask, x, y]| {
            let moved = b.fsub(x, scale);
            let moved = b.select(mask, moved, zero);
            b.fmul(moved, y)
        })
        .collect();
    for ([i, mask, ..], product) in items.into_iter().zip(products) {
        let p = b.addptr(out, i);
        b.st(p, product, Some(mask));
    }
    let row = b.const_bits(32 * WIDTH, i32s);
    let next = b.iadd(params[0], row);
    let again = b.icmp(next, n, IntPred::Slt);
    b.brif(again, (header, &[next]), (exit, &[]));
    b.append_block(exit);
    b.switch_to(exit);
    b.ret();
    b.finish().expect("the kernel is valid")
}

/// It as instructions, ordered for a thread that has so many registers.
fn ordered(most: u32) -> MachineFunction {
    let mut code = select::select(&masked_rows(), Target::SM_80).expect("the kernel is selected");
    schedule(&mut code, most, Choices::none());
    code
}

/// Registers of 32 bits that are live at once, and predicates.
fn peaks(code: &MachineFunction) -> (u32, u32) {
    let program = allocator_view::CodeProgram(code);
    let allocation = regalloc::allocate(&program, Choices::none());
    regalloc::check::check(&program, &allocation).expect("the allocation is right");
    let peak = |class: regalloc::reg::RegClass| allocation.peak[class.index()];
    (
        peak(regalloc::reg::RegClass::W),
        peak(regalloc::reg::RegClass::P),
    )
}

fn count(code: &MachineFunction, is_one: impl Fn(&MInst) -> bool) -> usize {
    code.insts.iter().filter(|inst| is_one(inst)).count()
}

#[test]
fn loads_wait_where_a_thread_has_too_few_registers() {
    let (many, few) = (ordered(255), ordered(64));
    let is_load = |inst: &MInst| inst.op == Ptx::Ld;
    let is_store = |inst: &MInst| inst.op == Ptx::St;
    for code in [&many, &few] {
        assert_eq!(count(code, is_load), 2 * WIDTH as usize);
        assert_eq!(count(code, is_store), WIDTH as usize);
        // What is stored may be what is loaded later.
        let last_load = code.insts.iter().rposition(is_load);
        assert!(last_load < code.insts.iter().position(is_store));
    }
    let early = |code: &MachineFunction| {
        let first = code.insts.iter().position(|inst| inst.op == Ptx::SubRn);
        let last = code.insts.iter().rposition(is_load);
        (first < last).then_some(())
    };
    assert_eq!([early(&many), early(&few)], [None, Some(())]);
    // Products and indices are kept, and no longer what products are made of.
    let (many, few) = (peaks(&many).0, peaks(&few).0);
    assert!(few + WIDTH as u32 / 2 <= many, "{many} {few}");
}

#[test]
fn predicates_are_made_again_behind_loads() {
    let before = ordered(255);
    let mut after = before.clone();
    let made = remake_predicates(&mut after, 255);
    assert!(2 * WIDTH as usize <= made, "{made}");
    let compares = |code: &MachineFunction| count(code, |inst| inst.op == Ptx::Setp);
    assert!(compares(&after) >= compares(&before) + WIDTH as usize);
    let (before, after) = (peaks(&before), peaks(&after));
    assert!(
        before.1 as u64 >= WIDTH && after.1 <= 8,
        "{before:?} {after:?}"
    );
    // Of numbers that are there anyway, and a few more.
    assert!(after.0 <= before.0 + 4, "{before:?} {after:?}");
    compile(&masked_rows(), Target::SM_80);
}

#[test]
fn what_was_loaded_is_not_computed_again() {
    let mut code = ordered(255);
    remake_predicates(&mut code, 255);
    let params = code.blocks.iter().flat_map(|block| &block.params);
    let mut written: std::collections::HashSet<_> =
        params.flat_map(|&param| code.regs.units(param)).collect();
    for inst in &code.insts {
        visit_registers(&code, inst, Reps::all(inst), |unit, access| {
            let is_fill = inst.op.info().group == InstGroup::Load;
            match access {
                RegisterAccess::Write => {
                    written.insert(unit);
                }
                RegisterAccess::Read | RegisterAccess::FixedRead => {
                    assert!(written.contains(&unit), "{inst:?}");
                }
                RegisterAccess::Keep => assert!(is_fill && written.contains(&unit)),
            }
        });
    }
    assert_eq!(count(&code, |inst| inst.op == Ptx::Ld), 2 * WIDTH as usize);
}
