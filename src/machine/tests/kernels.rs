//! Kernels as the pipeline makes them, written by hand, and what the assembler says of them.

use super::*;
use crate::ir::attrs::{IntPred, NanRule, SpecialReg};
use crate::ir::dfg::{SourceLine, SourceLoc};
use crate::ir::entities::Value;
use crate::ir::function::SlotData;
use crate::ir::types::AddressSpace;

/// Softmax of a row of up to `128 * per` numbers by four warps.
pub(super) fn softmax(per: u16) -> ThreadFunction {
    let mut b = ThreadBuilder::new("softmax", 4);
    let ptr = ThreadType::scalar(Elem::global(Scalar::F32));
    let i32s = ThreadType::scalar(Elem::I32);
    let f32s = ThreadType::scalar(Elem::F32);
    let (x, out) = (
        b.param_divisible("x", ptr, 16),
        b.param_divisible("out", ptr, 16),
    );
    let n = b.param("n", i32s);
    let pid = b.special(SpecialReg::ProgramX);
    let tid = b.special(SpecialReg::Tid);
    let lane = b.special(SpecialReg::Lane);
    let stride = b.imul(pid, n);
    let row = b.addptr(x, stride);
    let four = b.const_bits(4, i32s);
    let within = b.imul(tid, four);
    let mut packs = vec![];
    let mut masks = vec![];
    let mut idx = vec![];
    let pack = ThreadType::pack(Elem::F32, 4);
    let ninf = b.const_bits(0xff800000, pack);
    for k in 0..per / 4 {
        let c = b.const_bits(512 * u64::from(k), i32s);
        let i = b.iadd(within, c);
        let mask = b.icmp(i, n, IntPred::Slt);
        let p = b.addptr(row, i);
        packs.push(b.ld(p, Some(mask), Some(ninf), pack));
        masks.push(mask);
        idx.push(i);
    }
    let slot = b.func_mut().slots.push(SlotData {
        bytes: 64,
        align: 16,
        offset: Some(0),
        by_group: false,
    });
    let shared = ThreadType::scalar(Elem::Ptr(Scalar::F32, AddressSpace::Shared));
    let reduce = |b: &mut ThreadBuilder, packs: &[Value], max: bool, id: u8| {
        let comb = |b: &mut ThreadBuilder, x, y| {
            if max {
                b.fmax(x, y, NanRule::Ignore)
            } else {
                b.fadd(x, y)
            }
        };
        let mut acc = packs[0];
        for &p in &packs[1..] {
            acc = comb(b, acc, p);
        }
        let h = ThreadType::pack(Elem::F32, 2);
        let lo = b.rearrange(&[acc], [0, 1].into_iter().collect(), h);
        let hi = b.rearrange(&[acc], [2, 3].into_iter().collect(), h);
        let a = comb(b, lo, hi);
        let lo = b.rearrange(&[a], [0].into_iter().collect(), f32s);
        let hi = b.rearrange(&[a], [1].into_iter().collect(), f32s);
        let mut a = comb(b, lo, hi);
        for m in [16, 8, 4, 2, 1] {
            let o = b.shfl_bfly(a, m);
            a = comb(b, a, o);
        }
        let base = b.slot_addr(slot, shared);
        let c32 = b.const_bits(32, i32s);
        let w = b.udiv(tid, c32);
        let p = b.addptr(base, w);
        let z = b.const_bits(0, i32s);
        let first = b.icmp(lane, z, IntPred::Eq);
        b.st(p, a, Some(first));
        b.barrier(id, 128);
        let q = b.ld(base, None, None, pack);
        let lo = b.rearrange(&[q], [0, 1].into_iter().collect(), h);
        let hi = b.rearrange(&[q], [2, 3].into_iter().collect(), h);
        let a = comb(b, lo, hi);
        let lo = b.rearrange(&[a], [0].into_iter().collect(), f32s);
        let hi = b.rearrange(&[a], [1].into_iter().collect(), f32s);
        let r = comb(b, lo, hi);
        b.barrier(id, 128);
        r
    };
    let m = reduce(&mut b, &packs, true, 0);
    let m4 = b.splat(m, pack);
    let l2e = b.const_bits(0x3fb8aa3b, pack);
    let es: Vec<_> = packs
        .iter()
        .map(|&p| {
            let d = b.fsub(p, m4);
            let t = b.fmul(d, l2e);
            b.exp2(t)
        })
        .collect();
    let s = reduce(&mut b, &es, false, 0);
    let s4 = b.splat(s, pack);
    let orow = b.addptr(out, stride);
    for k in 0..packs.len() {
        let y = b.fdiv(es[k], s4);
        let p = b.addptr(orow, idx[k]);
        b.st(p, y, Some(masks[k]));
    }
    b.ret();
    b.finish().expect("the kernel is valid")
}

#[test]
fn a_softmax_without_reuse_of_memory_is_all_wide() {
    let (ptx, _, stats) =
        compile_thread(&softmax(8), Target::SM_90, &Options::DEFAULT).expect("the kernel compiles");
    assert_eq!(ptx.matches("ld.global.v4.b32").count(), 2, "{ptx}");
    assert_eq!(ptx.matches("st.global.v4.b32").count(), 2, "{ptx}");
    // Ten shuffles and four barriers.
    assert_eq!(stats.sync, 14, "{ptx}");
    assert_eq!(stats.branches, 1, "{ptx}");
}

#[test]
fn what_has_no_form_is_an_error_that_says_where() {
    let bf16s = ThreadType::scalar(Elem::BF16);
    let mut b = ThreadBuilder::new("k", 1);
    let ptr = b.param("p", ThreadType::scalar(Elem::global(Scalar::Bf16)));
    let x = b.ld(ptr, None, None, bf16s);
    b.set_loc(SourceLoc(Some(SourceLine(7, 0)).into()));
    let y = b.fma(x, x, x);
    b.st(ptr, y, None);
    b.ret();
    let func = b.finish().expect("the kernel is valid");
    let error =
        compile_thread(&func, Target::SM_75, &Options::DEFAULT).expect_err("legalized before");
    let text = error.to_string();
    assert!(
        text.contains("`fma` bf16, bf16, bf16 -> bf16 has no form on sm_75 (line 7)"),
        "{text}"
    );
}

#[test]
fn what_nobody_needs_is_not_written() {
    let f32s = ThreadType::scalar(Elem::F32);
    let mut b = ThreadBuilder::new("k", 1);
    let ptr = b.param("p", ThreadType::scalar(Elem::global(Scalar::F32)));
    let x = b.ld(ptr, None, None, f32s);
    let y = b.fadd(x, x);
    b.rcp(y);
    b.ret();
    let func = b.finish().expect("the kernel is valid");
    let ptx = compile(&func, Target::SM_80);
    let (_, body) = ptx.split_once("{\n").expect("there is a body");
    assert_eq!(body, "\n\tret;\n}\n");
}
