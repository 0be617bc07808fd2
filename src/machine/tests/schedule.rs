//! The order of instructions: what it keeps, and what it saves.

use super::*;
use crate::ir::attrs::{Flag, make};
use crate::ir::entities::Value;
use crate::ir::function::SlotData;
use crate::ir::types::AddressSpace;
use crate::machine::function::MachineFunction;
use crate::machine::inst::{InstGroup, Ptx};
use crate::machine::schedule::schedule;
use crate::regalloc::Allocation;

/// Elements of the row, four a load.
const WIDTH: usize = 64;

/// Writes `x * scale` for each element `x` of a row, and the sum of their squares, which is needed first.
fn scaled_row() -> ThreadFunction {
    let mut b = ThreadBuilder::new("scaled_row", 1);
    let ptr = ThreadType::scalar(Elem::global(Scalar::F32));
    let f32s = ThreadType::scalar(Elem::F32);
    let pack = ThreadType::pack(Elem::F32, 4);
    let (x, out) = (
        b.param_divisible("x", ptr, 16),
        b.param_divisible("out", ptr, 16),
    );
    let scale = b.param("scale", f32s);
    let at = |b: &mut ThreadBuilder, base, k: usize| {
        let offset = b.const_bits(4 * k as u64, ThreadType::scalar(Elem::I32));
        b.addptr(base, offset)
    };
    let first = at(&mut b, x, WIDTH);
    let first = b.ld(first, None, None, f32s);
    let early = b.fmul(first, scale);
    let early_out = at(&mut b, out, WIDTH);
    b.st(early_out, early, None);
    let packs: Vec<Value> = (0..WIDTH / 4)
        .map(|k| {
            let p = at(&mut b, x, k);
            b.ld(p, None, None, pack)
        })
        .collect();
    let mut squares: Vec<Value> = packs.iter().map(|&p| b.fmul(p, p)).collect();
    while squares.len() > 1 {
        squares = squares.chunks(2).map(|s| b.fadd(s[0], s[1])).collect();
    }
    let part =
        |b: &mut ThreadBuilder, i| b.rearrange(&squares[..1], [i].into_iter().collect(), f32s);
    let mut sum = part(&mut b, 0);
    for i in 1..4 {
        let next = part(&mut b, i);
        sum = b.fadd(sum, next);
    }
    let other = b.shfl_bfly(sum, 1);
    let sum = b.fadd(sum, other);
    let factor = b.fmul(sum, scale);
    let factor = b.splat(factor, pack);
    for (k, &p) in packs.iter().enumerate() {
        let y = b.fmul(p, factor);
        let to = at(&mut b, out, k);
        b.st(to, y, None);
    }
    b.ret();
    b.finish().expect("the kernel is valid")
}

/// The kernel before and after.
fn ordered(func: &ThreadFunction) -> (MachineFunction, MachineFunction) {
    let before = select::select(func, Target::SM_80).expect("the kernel is selected");
    let mut after = before.clone();
    schedule(&mut after, 255, Choices::none());
    (before, after)
}

fn allocated(code: &MachineFunction) -> Allocation {
    let program = allocator_view::CodeProgram(code);
    let allocation = regalloc::allocate(&program, Choices::none());
    regalloc::check::check(&program, &allocation).expect("the allocation is right");
    allocation
}

/// Instructions with effects, in order.
fn effects(code: &MachineFunction) -> Vec<(Ptx, u32)> {
    let has_effect = |op: Ptx| {
        use InstGroup::{Atomic, Copy, Exchange, Load, Reduce, Store, Sync};
        let group = op.info().group;
        [Atomic, Copy, Exchange, Load, Reduce, Store, Sync].contains(&group)
    };
    let insts = code.insts.iter().filter(|inst| has_effect(inst.op));
    insts.map(|inst| (inst.op, inst.first_arg)).collect()
}

#[test]
fn effects_stay_in_order_and_nothing_is_lost() {
    for func in [vector_add(), kernels::softmax(16), scaled_row()] {
        let (before, after) = ordered(&func);
        let ops = |code| {
            effects(code)
                .into_iter()
                .map(|(op, _)| op)
                .collect::<Vec<_>>()
        };
        assert_eq!(ops(&before), ops(&after), "{}", func.name);
        let count = |code: &MachineFunction, op| -> u32 {
            let insts = code.insts.iter().filter(|inst| inst.op == op);
            insts.map(|inst| u32::from(inst.reps)).sum()
        };
        for op in [Ptx::MulRn, Ptx::AddRn, Ptx::Ex2, Ptx::Setp, Ptx::Add] {
            assert_eq!(count(&before, op), count(&after, op), "{}", func.name);
        }
        allocated(&after);
    }
}

#[test]
fn loads_are_issued_before_the_first_use() {
    let (_, after) = ordered(&scaled_row());
    let place = |op| after.insts.iter().position(|inst| inst.op == op);
    let last_load = after.insts.iter().rposition(|inst| inst.op == Ptx::Ld);
    // The early product stands before the row is loaded, sums behind it.
    assert!(place(Ptx::MulRn) < last_load);
    assert!(last_load < place(Ptx::AddRn));
}

#[test]
fn a_sum_of_values_that_are_needed_later_holds_few_more() {
    let (before, after) = ordered(&scaled_row());
    let words = |code: &MachineFunction| allocated(code).peak[2];
    // All squares at once, against one for each level of the tree.
    assert_eq!(words(&before), 2 * WIDTH as u32 + 1);
    assert!(words(&after) <= WIDTH as u32 + 10, "{}", words(&after));
}

#[test]
fn parameters_are_read_again_after_high_pressure() {
    let (before, after) = ordered(&scaled_row());
    let reads = |code: &MachineFunction| code.insts.iter().filter(|i| i.op == Ptx::LdParam).count();
    assert_eq!(reads(&before), 3);
    // Scale and the output's address are used before the row and after it.
    assert_eq!(reads(&after), 5);
    let params = after
        .params
        .keys()
        .filter(|&unit| after.params.contains(unit));
    assert_eq!(params.count(), 5);
}

/// Adds up 64 elements of a tile in shared memory, which may change after a barrier, and writes the sum and the square of a
/// number that was loaded before.
fn summed_tile() -> ThreadFunction {
    let mut b = ThreadBuilder::new("summed_tile", 1);
    let slot = b.func_mut().slots.push(SlotData {
        bytes: 32 * 4 * WIDTH as u32,
        align: 16,
        offset: Some(0),
        by_group: false,
    });
    let f32s = ThreadType::scalar(Elem::F32);
    let pack = ThreadType::pack(Elem::F32, 4);
    let global = ThreadType::scalar(Elem::global(Scalar::F32));
    let x = b.param_divisible("x", global, 16);
    let out = b.param_divisible("out", global, 16);
    let number = b.ld(x, None, None, f32s);
    let shared = ThreadType::scalar(Elem::Ptr(Scalar::F32, AddressSpace::Shared));
    let base = b.slot_addr(slot, shared);
    let i32s = ThreadType::scalar(Elem::I32);
    let tid = b.special(SpecialReg::Tid);
    let width = b.const_bits(WIDTH as u64, i32s);
    let row = b.imul(tid, width);
    let mut packs: Vec<Value> = (0..WIDTH / 4)
        .map(|k| {
            let place = b.const_bits(4 * k as u64, i32s);
            let place = b.iadd(row, place);
            let p = b.addptr(base, place);
            b.ld(p, None, None, pack)
        })
        .collect();
    let square = b.fmul(number, number);
    while packs.len() > 1 {
        packs = packs.chunks(2).map(|s| b.fadd(s[0], s[1])).collect();
    }
    b.barrier(0, 32);
    b.st(out, square, None);
    let one = b.const_bits(4, i32s);
    let behind = b.addptr(out, one);
    b.st(behind, packs[0], None);
    b.ret();
    b.finish().expect("the kernel is valid")
}

#[test]
fn before_a_barrier_only_what_shared_memory_feeds_is_computed() {
    let (before, after) = ordered(&summed_tile());
    let place = |code: &MachineFunction, op| code.insts.iter().position(|inst| inst.op == op);
    // The square stood before the barrier, but waits for its store; sums keep 4 elements of 64 alive.
    assert!(place(&before, Ptx::MulRn) < place(&before, Ptx::Bar));
    assert!(place(&after, Ptx::Bar) < place(&after, Ptx::MulRn));
    let last_sum = after.insts.iter().rposition(|inst| inst.op == Ptx::AddRn);
    assert!(last_sum < place(&after, Ptx::Bar));
    allocated(&after);
}

/// Lines of the author's over a row, a barrier, and only then what needs their results.
fn author_before_barrier(is_pure: bool) -> ThreadFunction {
    let mut b = ThreadBuilder::new("author", 1);
    let ptr = ThreadType::scalar(Elem::global(Scalar::I32));
    let pack = ThreadType::pack(Elem::I32, 4);
    let x = b.param_divisible("x", ptr, 16);
    let at = |b: &mut ThreadBuilder, k: usize| {
        let offset = b.const_bits(4 * k as u64, ThreadType::scalar(Elem::I32));
        b.addptr(x, offset)
    };
    let lines = ("add.u32 $0, $1, %clock;", "=r,r");
    let made: Vec<Value> = (0..WIDTH / 4)
        .map(|k| {
            let p = at(&mut b, k);
            let read = b.ld(p, None, None, pack);
            let made = b.inline_ptx(&[read], lines, 1, &[pack])[0];
            if is_pure {
                b.with(make::pure(Flag));
            }
            made
        })
        .collect();
    b.barrier(0, 32);
    for (k, &value) in made.iter().enumerate() {
        let to = at(&mut b, k);
        b.st(to, value, None);
    }
    b.ret();
    b.finish().expect("the kernel is valid")
}

#[test]
fn lines_of_the_author_stay_in_front_of_a_barrier_unless_they_are_pure() {
    let behind = |is_pure| {
        let (_, after) = ordered(&author_before_barrier(is_pure));
        let mut insts = after.insts.iter().skip_while(|inst| inst.op != Ptx::Bar);
        insts.any(|inst| inst.op == Ptx::Inline)
    };
    assert!(behind(true), "what is pure waits for its uses");
    assert!(!behind(false));
}
