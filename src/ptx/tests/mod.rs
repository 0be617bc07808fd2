//! Tests of the whole back end: kernels made by hand, assembled by `ptxas` for every target.

use super::*;
use crate::ir::attrs::SpecialReg;
use crate::ir::builder::ThreadBuilder;
use crate::ir::types::{Elem, Scalar, ThreadType};

mod flow;
mod forms;
mod fuzz;
mod ops;
#[path = "../../../tests/common/ptxas.rs"]
mod ptxas;
mod reference;

/// PTX for a target, assembled.
fn compile(func: &ThreadFunction, target: Target) -> String {
    let (ptx, _, _) = emit(func, target, &Options::DEFAULT).expect("the kernel compiles");
    ptxas::assemble(&ptx, &target.to_string());
    ptx
}

/// `out[i] = a[i] + b[i]` for four elements a thread, as the pipeline makes it of the vector-add kernel.
fn vector_add() -> ThreadFunction {
    let mut b = ThreadBuilder::new("add_kernel", 4);
    let ptr = ThreadType::scalar(Elem::global(Scalar::F32));
    let i32s = ThreadType::scalar(Elem::I32);
    let (x, y, out) = (
        b.param_divisible("x", ptr, 16),
        b.param_divisible("y", ptr, 16),
        b.param_divisible("out", ptr, 16),
    );
    let n = b.param("n", i32s);
    let pid = b.special(SpecialReg::ProgramX);
    let tid = b.special(SpecialReg::Tid);
    let block = b.const_bits(512, i32s);
    let four = b.const_bits(4, i32s);
    let first = b.imul(pid, block);
    let within = b.imul(tid, four);
    let i = b.iadd(first, within);
    let mask = b.icmp(i, n, crate::ir::attrs::IntPred::Slt);
    let pack = ThreadType::pack(Elem::F32, 4);
    let load = |b: &mut ThreadBuilder, base| {
        let p = b.addptr(base, i);
        b.ld(p, Some(mask), None, pack)
    };
    let left = load(&mut b, x);
    let right = load(&mut b, y);
    let sum = b.fadd(left, right);
    let p = b.addptr(out, i);
    b.st(p, sum, Some(mask));
    b.ret();
    b.finish().expect("the kernel is valid")
}

#[test]
fn vector_add_is_what_one_would_write() {
    let func = vector_add();
    for target in Target::ALL {
        compile(&func, target);
    }
    let ptx = compile(&func, Target::SM_80);
    println!("{ptx}");
}
