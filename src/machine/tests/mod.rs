//! Tests of the whole back end: kernels made by hand, assembled by `ptxas` for every target.

use super::{allocator_view, select};
use crate::ir::attrs::SpecialReg;
use crate::ir::builder::ThreadBuilder;
use crate::ir::function::ThreadFunction;
use crate::ir::types::{Elem, Scalar, ThreadType};
use crate::pipeline::compile_thread;
use crate::ptx::Stats;
use crate::regalloc;
use crate::settings::diversity::Choices;
use crate::settings::{Options, PtxVersion, Target};

mod flow;
mod forms;
mod fuzz;
mod kernels;
mod ops;
#[path = "../../../tests/common/ptxas.rs"]
mod ptxas;
mod reference;
mod scarce;
mod schedule;
mod touches;
mod warpgroups;

/// PTX for a target, assembled.
fn compile(func: &ThreadFunction, target: Target) -> String {
    let (ptx, _, _) = compile_thread(func, target, &Options::DEFAULT).expect("the kernel compiles");
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
    let (_, body) = ptx
        .split_once("\n\n\t")
        .expect("declarations end with an empty line");
    let expected = "ld.param.u64 %rd0, [add_kernel_param_0];
\tld.param.u64 %rd1, [add_kernel_param_1];
\tld.param.u64 %rd2, [add_kernel_param_2];
\tld.param.u32 %r0, [add_kernel_param_3];
\tmov.u32 %r1, %ctaid.x;
\tmov.u32 %r2, %tid.x;
\tmul.lo.s32 %r1, %r1, 512;
\tmul.lo.s32 %r2, %r2, 4;
\tadd.s32 %r1, %r1, %r2;
\tsetp.lt.s32 %p0, %r1, %r0;
\tmul.wide.s32 %rd3, %r1, 4;
\tadd.s64 %rd0, %rd0, %rd3;
\tmov.b32 %r2, 0;
\tmov.b32 %r3, 0;
\tmov.b32 %r4, 0;
\tmov.b32 %r5, 0;
\t@%p0 ld.global.v4.b32 {%r2, %r3, %r4, %r5}, [%rd0];
\tmul.wide.s32 %rd0, %r1, 4;
\tadd.s64 %rd0, %rd1, %rd0;
\tmov.b32 %r6, 0;
\tmov.b32 %r7, 0;
\tmov.b32 %r8, 0;
\tmov.b32 %r9, 0;
\t@%p0 ld.global.v4.b32 {%r6, %r7, %r8, %r9}, [%rd0];
\tadd.rn.f32 %r10, %r2, %r6;
\tadd.rn.f32 %r11, %r3, %r7;
\tadd.rn.f32 %r12, %r4, %r8;
\tadd.rn.f32 %r13, %r5, %r9;
\tmul.wide.s32 %rd0, %r1, 4;
\tadd.s64 %rd0, %rd2, %rd0;
\t@%p0 st.global.v4.b32 [%rd0], {%r10, %r11, %r12, %r13};
\tret;
}
";
    pretty_assertions::assert_eq!(body, expected);
}
