//! What the emulator does not take for an instruction, which `ptxas` refuses as well, and what it does not take for a declaration.

use std::process::Command;

use tilelift::emu::{Arg, Memory, Module, Options, ParseErrorKind};

use crate::{ptxas, run_text};

/// Statements, and what is said of the last of them.
const MALFORMED: &[(&str, &str)] = &[
    (
        "griddepcontrol",
        "`.launch_dependents` or `.wait` is missing",
    ),
    ("griddepcontrol.wait %r0", "1 operands"),
    (
        "st.async.weak.shared::cluster.u32 [%r3], %r4, [%r5]",
        "`.mbarrier::complete_tx::bytes` is missing",
    ),
    (
        "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b16 [%r3], %h0, [%r5]",
        "",
    ),
    (
        "red.async.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r3], %r4, [%r5]",
        "`.relaxed.cluster` is missing",
    ),
    (
        "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.f32 [%r3], %f0, [%r5]",
        "",
    ),
    (
        "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.exch.b32 [%r3], %r4, [%r5]",
        "an operation is missing",
    ),
    (
        "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.min.u64 [%r3], %d1, [%r5]",
        "",
    ),
    (
        "prefetch.global [%d0]",
        "`.L1` or `.L2` or `.L2::evict_last` or `.L2::evict_normal` is missing",
    ),
    ("prefetch.global.L2 %d0", "an address in brackets is wanted"),
    ("prefetch.global.L2 [%d0], 128", "2 operands"),
    (
        "prefetch.shared.L1 [%d0]",
        "`prefetch.shared.L1` does not take `.shared`",
    ),
    (
        "prefetch.global.tensormap [%d0]",
        "the global space is none that it takes",
    ),
    (
        "prefetchu.global.L1 [%d0]",
        "the global space is none that it takes",
    ),
    ("prefetchu.L2 [%d0]", "`.L1` is missing"),
    ("discard.global.L2 [%d0], 64", "the size must be 128"),
    ("applypriority.global.L2::evict_normal [%d0]", "1 operands"),
    (
        "cp.async.bulk.prefetch.global [%d0], 16",
        "`.L2.global` is missing",
    ),
    (
        "cp.async.bulk.prefetch.L2.global [%d0]",
        "operand 2 is missing",
    ),
    (
        "cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%d0, {%r0}]",
        "1 coordinates of 2 dimensions",
    ),
    (
        "cp.async.bulk.prefetch.tensor.1d.L2.global.tile [%d0]",
        "a tensor map with coordinates in brackets is wanted",
    ),
    ("@%r0 mov.u32 %r1, 1", "`%r0` is not a predicate"),
    ("@%x mov.u32 %r1, 1", "`%x` is not declared"),
    ("mov.b64 %d0, {{{{{{%r1}}}}}}", "operands nest too deeply"),
    (
        "lop3.b32 %r0, %r1, %r2, %r3, %r4",
        "the table must be a number",
    ),
    ("shf.wrap.b32 %r0, %r1, %r2, %r3", "a direction is missing"),
    (
        "shf.l.b32 %r0, %r1, %r2, %r3",
        "`.wrap` or `.clamp` is missing",
    ),
    ("mov.b32 {%h0, %h1, %h2}, %r0", "a vector of 3 elements"),
    ("mov.b32 %r0, %p0", "a predicate where data is wanted"),
    ("mov.b32 %p0, %r0", "a predicate where data is wanted"),
    ("mov.pred %r0, %p0", "the destination must be a predicate"),
    ("mov.pred %p0, %r0", "a predicate is wanted"),
    (
        "add.u32 %r0, [%d0], %r1",
        "a register or a number is wanted",
    ),
    (
        "setp.s32 %p0, %r0, %r1",
        "a comparison of type .s32 is missing",
    ),
    (
        "setp.lt.pred %p0, %p1, %p2",
        "a comparison of type .pred is missing",
    ),
    ("set.lt.f64.f32 %e0, %f0, %f1", ""),
    (
        "cvt.s32.f32 %r0, %f0",
        "`.rni`, `.rzi`, `.rmi` or `.rpi` is missing",
    ),
    ("cvt.u32.pred %r0, %p0", ""),
    ("cvt.f16x2.s32 %r0, %r1", "a rounding modifier is missing"),
    ("add.sat.u32 %r0, %r1, %r2", "`.sat` wants .s32"),
    ("mul.wide.u64 %d0, %d1, %d2", "`.wide` wants 16 or 32 bits"),
    ("shl.u32 %r0, %r1, %r2", ""),
    ("sad.f32 %f0, %f1, %f2, %f3", ""),
    ("div.f16 %h0, %h1, %h2", ""),
    ("sin.approx.f64 %e0, %e1", ""),
    ("sin.s32 %r0, %r1", ""),
    ("min.xorsign.f32 %f0, %f1, %f2", "`.xorsign` wants `.abs`"),
    ("min.f32x2 %d0, %d1, %d2", ""),
    ("add.pred %p0, %p1, %p2", ""),
    ("bra %r0", "a label is wanted"),
    ("movmatrix.sync.aligned.m8n8.b16 %r0, %r1", ""),
    (
        "ldmatrix.m8n8.x1.shared.b16 {%r0}, [%d0]",
        "`.sync.aligned` is missing",
    ),
    (
        "ldmatrix.sync.aligned.m8n8.shared.b16 {%r0}, [%d0]",
        "`.x1`, `.x2` or `.x4` is missing",
    ),
    (
        "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r0}, [%d0]",
        "1 registers for 2 matrices",
    ),
    ("ldmatrix.sync.aligned.m8n8.x1.shared.b32 {%r0}, [%d0]", ""),
    (
        "mma.sync.aligned.row.col.f32.f16.f16.f32 {%f0, %f1, %f2, %f3}, {%r0, %r1}, {%r2}, {%f0, %f1, %f2, %f3}",
        "a shape is missing",
    ),
    (
        "mma.sync.aligned.m16n8k8.f32.f16.f16.f32 {%f0, %f1, %f2, %f3}, {%r0, %r1}, {%r2}, {%f0, %f1, %f2, %f3}",
        "",
    ),
    (
        "mma.sync.aligned.m16n8k8.row.col.f32.f16.bf16.f32 {%f0, %f1, %f2, %f3}, {%r0, %r1}, {%r2}, {%f0, %f1, %f2, %f3}",
        "",
    ),
    (
        "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f0, %f1, %f2, %f3}, {%r0}, {%r2}, {%f0, %f1, %f2, %f3}",
        "operand 2 has 1 registers, not 2",
    ),
    (
        "cp.async.wait_group %r0",
        "the number of groups must be a number",
    ),
    ("cp.async.shared.global [%d0], [%d1], 16", ""),
    (
        "cp.async.ca.shared.global [%d0], [%d1], %r0",
        "the size must be a number",
    ),
    (
        "cp.async.ca.shared.global [%d0], [%d1], 2",
        "copies of 2 bytes do not exist here",
    ),
    (
        "cp.async.cg.shared.global [%d0], [%d1], 4",
        "copies of 4 bytes do not exist here",
    ),
    ("ld.global.u32 %r0, %d0", "an address in brackets is wanted"),
    ("ld.global.pred %p0, [%d0]", ""),
    (
        "ld.shared.v8.b32 {%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7}, [%d0]",
        "there is no vector of 8 elements of 32 bits in the shared space",
    ),
    (
        "ld.global.v4.b64 {%d0, %d1, %d2, %d3}, [data]",
        "the name belongs to the param space",
    ),
    (
        "st.global.v2.u32 [%d0], {%r0, %r1, %r2}",
        "3 sources for a vector of 2",
    ),
    ("atom.global.u32 %r0, [%d0], %r1", "an operation is missing"),
    ("atom.global.add.b32 %r0, [%d0], %r1", ""),
    ("atom.global.min.f32 %f0, [%d0], %f1", ""),
    ("atom.global.and.b16 %h0, [%d0], %h1", ""),
    ("atom.global.inc.u64 %d0, [%d1], %d2", ""),
    ("red.global.exch.b32 [%d0], %r0", ""),
    (
        "atom.global.v2.f32.add {%f0, %f1}, [%d0], {%f2}",
        "the vectors do not have 2 elements",
    ),
    ("cvta.u64 %d0, %d1", "a state space is missing"),
    ("isspacep.u32 %p0, %d0", ""),
    (
        "elect.sync %r0|%r1, -1",
        "the destination must be a predicate",
    ),
    ("elect.sync %r0, -1", "a predicate destination is wanted"),
    ("bar.aligned 0", "`.sync`, `.arrive` or `.red` is missing"),
    (
        "bar.red.xor.pred %p0, 0, %p1",
        "`.popc`, `.and` or `.or` is missing",
    ),
    (
        "bar.red.and.pred %r0, 0, %p1",
        "the destination must be a predicate",
    ),
    ("bar.red.popc.u32 %r0, 0, %r1", "a predicate is wanted"),
    ("bar.warp.sync", "0 operands"),
    ("shfl.idx.b32 %r0, %r1, 0, 31", ""),
    ("shfl.sync.b32 %r0, %r1, 0, 31, -1", "a mode is missing"),
    ("vote.sync.pred %p0, %p1, -1", "a mode is missing"),
    ("match.sync.b32 %r0, %r1, -1", "`.any` or `.all` is missing"),
    ("redux.sync.s32 %r0, %r1, -1", "an operation is missing"),
    ("redux.sync.and.s64 %d0, %d1, -1", ""),
    ("redux.sync.add.NaN.s32 %r0, %r1, -1", ""),
];

/// A module with the statement alone, whose registers have the names of their types.
fn module(statement: &str) -> String {
    format!(
        ".version 8.3
.target sm_90
.address_size 64
.visible .entry k(.param .u64 data)
{{
.reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %r<8>; .reg .b64 %d<4>; .reg .f32 %f<4>; .reg .f64 %e<4>;
{statement};
ret;
}}
"
    )
}

fn message(statement: &str) -> Result<(), String> {
    Module::parse(&module(statement))
        .map(|_| ())
        .map_err(|error| match error.kind {
            ParseErrorKind::Operands { reason, .. } => reason,
            ParseErrorKind::UnsupportedInstruction(_) => String::new(),
            other => other.to_string(),
        })
}

/// Whether the assembler takes a text.
fn assembles(assembler: &std::path::Path, text: &str, file: &std::path::Path) -> bool {
    std::fs::write(file, text).expect("the temporary directory can be written");
    let output = Command::new(assembler)
        .args([
            "-arch",
            "sm_90",
            "-o",
            if cfg!(windows) { "NUL" } else { "/dev/null" },
        ])
        .arg(file)
        .output();
    output.expect("ptxas answered before").status.success()
}

#[test]
fn malformed_instructions_are_refused_for_what_is_wrong() {
    let mut wrong = Vec::new();
    for &(statement, expected) in MALFORMED {
        match message(statement) {
            Ok(()) => wrong.push(format!("{statement}: taken")),
            Err(found) if found != expected => wrong.push(format!("{statement}: {found}")),
            Err(_) => {}
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn ptxas_refuses_them_too() {
    let Some(assembler) = ptxas::find() else {
        return;
    };
    let folder = tempfile::tempdir().expect("a temporary directory can be made");
    let file = folder.path().join("refused.ptx");
    assert!(assembles(
        assembler,
        &module("add.u32 %r0, %r1, %r2"),
        &file
    ));
    let taken: Vec<&str> = MALFORMED
        .iter()
        .map(|(statement, _)| *statement)
        .filter(|statement| assembles(assembler, &module(statement), &file))
        .collect();
    assert!(taken.is_empty(), "{}", taken.join("\n"));
}

#[test]
fn declarations_that_cannot_be_are_refused() {
    let head = ".version 8.3\n.target sm_90\n.address_size 64\n";
    let cases = [
        (
            ".version 8.3\n.target 90\n",
            "expected a target such as sm_80",
        ),
        (
            ".version 8.3\n.target sm_90\n.address_size 32\n",
            "only 64-bit addresses",
        ),
        (".func f(.param .b32 x)", "unfinished function"),
        (".func f() { { ret; }", "`{` is not closed"),
        (".global .u32 x[];", "`x` has no size, or one too large"),
        (
            ".global .u32 x[1073741824][1073741824][1073741824];",
            "`x` has no size",
        ),
        (".global .word x;", "`.word` is not a type"),
        (".global .u64x2 x;", "is not a type"),
        (".global .f8 x;", "is not a type"),
        (".global .s128 x;", "is not a type"),
        (
            ".global .u32 x[1] = {1, 2};",
            "too many initial values for `x`",
        ),
        (".global .u32 x = };", "unexpected `}`"),
        (
            ".global .u32 x = \"a\";",
            "expected a number, found a string",
        ),
        (
            ".global .u32 x = 0d3FF0000000000000;",
            "this value is not of type .u32",
        ),
        (".global .f32 x = 1;", "this value is not of type .f32"),
        (".global .align 3 .u32 x;", "3 is not an alignment"),
        (
            ".global .align 131072 .u32 x;",
            "131072 is not an alignment",
        ),
        (".local .u32 x[4];", "unsupported directive `.local`"),
        (
            ".entry k() .maxthreads 2 { ret; }",
            "unsupported directive `.maxthreads`",
        ),
        (
            ".entry k(.b32 x) { ret; }",
            "expected `.param`, found `.b32`",
        ),
        (
            ".entry k(.param .b32 x .param .b32 y) { ret; }",
            "expected `,` or `)`",
        ),
        (
            ".entry k(.param .b8 x[40000]) { ret; }",
            "parameter `x` is too large",
        ),
        (
            ".entry k() { .local .b8 x[268435456]; .local .b8 y[268435456]; ret; }",
            "too much local memory",
        ),
        (
            ".entry k() { .shared .b8 x[268435456]; .shared .b8 y[268435456]; ret; }",
            "too much shared memory",
        ),
    ];
    for (text, words) in cases {
        let whole = if text.starts_with(".version") {
            text.to_owned()
        } else {
            format!("{head}{text}")
        };
        let error = Module::parse(&whole).err().map(|error| error.to_string());
        assert!(
            error.as_ref().is_some_and(|error| error.contains(words)),
            "{text}: {error:?}"
        );
    }
}

#[test]
fn declarations_that_change_nothing_here_are_passed_over() {
    let text = ".version 8.3
.target sm_90, debug
.address_size 64
.extern .func (.param .b32 result) helper (.param .b64 a);
.func other () { { ret; } }
.global .align 8 .v2 .u32 pairs[2] = {{1, 2}, {3}};
.global .attribute(.managed) .v4 .u8 bytes[] = {5, 6, 7, -1};
.global .f64 half = 0d3FE0000000000000;
.visible .entry kernel(.param .align 16 .b8 data[8]) .minnctapersm 1 .reqnctapercluster 1 .noreturn
{
.reg .b32 %r<8>; .reg .b64 %d<4>;
ld.param.u64 %d0, [data];
ld.global.v4.u32 {%r0, %r1, %r2, %r3}, [pairs];
ld.global.u32 %r4, [bytes];
mov.b64 %d1, 0d3FE0000000000000; ld.global.b64 %d2, [half]; sub.s64 %d1, %d1, %d2; cvt.u32.u64 %r5, %d1;
st.global.v4.u32 [%d0], {%r0, %r1, %r2, %r3};
st.global.v2.u32 [%d0+16], {%r4, %r5};
ret;
}
.section .debug_info { .b8 1, 2 { .b8 3 } }
.pragma \"nounroll\";
";
    let mut memory = Memory::new();
    let data = memory.alloc(24);
    let args = [Arg::pointer(data)];
    run_text(text, 1, 1, 0, &mut memory, &args, Options::default()).expect("it is right");
    let words = [1_u32, 2, 3, 0, 0xff07_0605, 0].map(u32::to_le_bytes);
    assert_eq!(
        memory.read(data, 24).expect("written"),
        words.as_flattened()
    );
}
