//! What warpgroups may do wrong: registers of products in flight, fences and waits left out, warps that do not go along; and how
//! they move registers between them.

use tilelift::emu::{Arg, EmuError, Fault, Memory, Module, Options, ParseErrorKind};

use crate::run_text;

/// An entry of up to eight warps with a product's operands in shared memory: zeros, 4 KiB, visible to products. The body
/// starts in line 16.
fn entry(threads: u32, body: &str) -> String {
    format!(
        ".version 8.0
.target sm_90a
.address_size 64
.extern .shared .align 1024 .b8 dyn[];
.visible .entry kernel(.param .u64 data)
.maxntid {threads}, 1, 1
{{
.reg .pred %p<8>; .reg .b32 %r<32>; .reg .b64 %d<8>; .reg .f32 %f<16>; .reg .b64 %data;
ld.param.u64 %data, [data];
mov.u32 %r0, dyn; mov.u32 %r1, %tid.x; shr.u32 %r2, %r1, 5; shl.b32 %r3, %r1, 4;
add.u32 %r4, %r0, %r3; mov.b32 %r5, 0; setp.lt.u32 %p0, %r1, 128; setp.eq.u32 %p1, %r2, 0;
@%p0 st.shared.v4.b32 [%r4], {{%r5, %r5, %r5, %r5}}; @%p0 st.shared.v4.b32 [%r4+2048], {{%r5, %r5, %r5, %r5}};
shr.u32 %r6, %r0, 4; cvt.u64.u32 %d0, %r6; or.b64 %d0, %d0, {};
mov.f32 %f0, 0f3f800000; mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0; mov.b32 %r8, 0; mov.b32 %r9, 0; mov.b32 %r10, 0; mov.b32 %r11, 0;
fence.proxy.async.shared::cta; bar.sync 0;
{body}
ret;
}}
",
        0x8_0000_u64 | 0x10 << 32
    )
}

fn run(threads: u32, body: &str, seed: u64) -> Result<(), EmuError> {
    let mut memory = Memory::new();
    let data = memory.alloc(4096);
    let options = Options {
        seed,
        ..Options::default()
    };
    let args = [Arg::pointer(data)];
    let text = entry(threads, body);
    run_text(&text, 1, threads, 4096, &mut memory, &args, options).map(drop)
}

/// The error of a body, and the line of the body where it is, from 1.
fn error(threads: u32, body: &str, seed: u64) -> (u32, Fault) {
    match run(threads, body, seed) {
        Err(EmuError::Fault { at, fault }) => (at.line - 15, fault),
        other => panic!("{body}: {other:?}"),
    }
}

const FENCE: &str = "wgmma.fence.sync.aligned;\n";
const COMMIT: &str = "wgmma.commit_group.sync.aligned;\n";
const WAIT: &str = "wgmma.wait_group.sync.aligned 0;\n";
const PRODUCT: &str = "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0, %f1, %f2, %f3}, %d0, %d0, 1, 1, 1, 0, 0;\n";
const FROM_REGISTERS: &str = "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0, %f1, %f2, %f3}, {%r8, %r9, %r10, %r11}, %d0, 1, 1, 1, 0;\n";
const WIDER: &str = "wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 {%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7}, %d0, %d0, 1, 1, 1, 0, 0;\n";

fn lines(parts: &[&str]) -> String {
    parts
        .iter()
        .map(|part| part.trim_end().to_owned() + "\n")
        .collect()
}

#[test]
fn products_in_order_are_fine() {
    let bodies = [
        lines(&[FENCE, PRODUCT, COMMIT, WAIT, "add.f32 %f4, %f0, %f1;"]),
        // Products follow each other on their accumulators without a fence, and those in registers read the same ones.
        lines(&[FENCE, PRODUCT, PRODUCT, COMMIT, PRODUCT, COMMIT, WAIT]),
        lines(&[
            FENCE,
            FROM_REGISTERS,
            FROM_REGISTERS,
            COMMIT,
            WAIT,
            "mov.b32 %r8, 1;",
        ]),
        // Other registers are free.
        lines(&[
            FENCE,
            PRODUCT,
            COMMIT,
            "add.f32 %f9, 0f00000000, 0f00000000;",
            WAIT,
        ]),
    ];
    for body in bodies {
        for seed in 0..4 {
            run(128, &body, seed).unwrap_or_else(|error| panic!("{body}: {error}"));
        }
    }
}

#[test]
fn registers_in_flight_are_not_touched() {
    let touch = ["add.f32 %f9, %f0, 0f00000000;", "mov.f32 %f3, 0f00000000;"];
    for touch in touch {
        let (line, fault) = error(128, &lines(&[FENCE, PRODUCT, COMMIT, touch]), 0);
        let name = if touch.starts_with("add") {
            "%f0"
        } else {
            "%f3"
        }
        .to_owned();
        assert_eq!((line, fault), (4, Fault::InFlight { name, line: 17 }));
    }
    // Not committed; a wait for all but one group; a product of another shape; operands in registers.
    let cases = [
        (lines(&[FENCE, PRODUCT, WAIT, touch[0]]), 4, "%f0", 17),
        (
            lines(&[
                FENCE,
                PRODUCT,
                COMMIT,
                "wgmma.wait_group.sync.aligned 1;",
                touch[0],
            ]),
            5,
            "%f0",
            17,
        ),
        (lines(&[FENCE, PRODUCT, COMMIT, FENCE, WIDER]), 5, "%f0", 17),
        (
            lines(&[FENCE, FROM_REGISTERS, COMMIT, "mov.b32 %r10, 7;"]),
            4,
            "%r10",
            17,
        ),
        (
            lines(&[FENCE, FROM_REGISTERS, COMMIT, "mov.b32 %r12, %r11;"]),
            4,
            "%r11",
            17,
        ),
    ];
    for (body, at, name, product) in cases {
        let name = name.to_owned();
        let wanted = Fault::InFlight {
            name,
            line: product,
        };
        assert_eq!(error(128, &body, 0), (at, wanted), "{body}");
    }
}

#[test]
fn products_are_waited_for_before_the_end() {
    let one = "wgmma.wait_group.sync.aligned 1;";
    for (body, line, lacks) in [
        (
            lines(&[FENCE, PRODUCT]),
            2,
            "no `wgmma.commit_group` is behind it",
        ),
        (
            lines(&[FENCE, PRODUCT, WAIT]),
            2,
            "no `wgmma.commit_group` is behind it",
        ),
        (
            lines(&[FENCE, PRODUCT, COMMIT]),
            2,
            "no `wgmma.wait_group` covers it",
        ),
        (
            lines(&[FENCE, PRODUCT, COMMIT, PRODUCT, COMMIT, one]),
            4,
            "no `wgmma.wait_group` covers it",
        ),
    ] {
        for seed in 0..3 {
            let (at, fault) = error(128, &body, seed);
            let message = format!("of a warp while this product is under way: {lacks}");
            assert_eq!((at, fault), (line, Fault::UnderWay(message)));
        }
    }
}

#[test]
fn registers_touched_before_a_product_want_a_fence() {
    let cases = [
        (lines(&[PRODUCT]), 1, "%f0", 14),
        (
            lines(&[FENCE, "mov.f32 %f2, 0f00000000;", PRODUCT]),
            3,
            "%f2",
            17,
        ),
        (
            lines(&[FENCE, "mov.b32 %r9, 5;", FROM_REGISTERS]),
            3,
            "%r9",
            17,
        ),
        (
            lines(&[
                FENCE,
                PRODUCT,
                COMMIT,
                WAIT,
                "mul.f32 %f9, %f1, %f1;",
                PRODUCT,
            ]),
            6,
            "%f1",
            20,
        ),
        // Accumulators of another shape, waited for.
        (lines(&[FENCE, PRODUCT, COMMIT, WAIT, WIDER]), 5, "%f0", 17),
    ];
    for (body, at, name, line) in cases {
        let name = name.to_owned();
        let wanted = Fault::Unfenced { name, line };
        assert_eq!(error(128, &body, 0), (at, wanted), "{body}");
    }
}

fn reason(threads: u32, body: &str, seed: u64) -> (u32, String) {
    match error(threads, body, seed) {
        (line, Fault::Warpgroup { reason, .. }) => (line, reason),
        (line, other) => panic!("{body}, line {line}: {other}"),
    }
}

#[test]
fn four_warps_issue_the_same_products() {
    let cases = [
        (
            lines(&[
                "setp.eq.u32 %p2, %r2, 1; selp.u64 %d1, 1, 0, %p2;",
                "add.u64 %d0, %d0, %d1;",
                FENCE,
                PRODUCT,
            ]),
            "differ among the warps",
        ),
        (
            lines(&[
                "and.b32 %r12, %r1, 1; cvt.u64.u32 %d1, %r12;",
                "add.u64 %d0, %d0, %d1;",
                FENCE,
                PRODUCT,
            ]),
            "differs among the lanes",
        ),
        (
            lines(&["or.b64 %d0, %d0, 0x8000;", "", FENCE, PRODUCT]),
            "bits set that mean nothing",
        ),
        (
            lines(&[
                "",
                FENCE,
                "@%p1 bra OTHER;",
                PRODUCT,
                "OTHER:",
                PRODUCT,
                COMMIT,
                WAIT,
            ]),
            "another warp of the group issued",
        ),
        (
            lines(&["", FENCE, "@%p1 ret;", PRODUCT, COMMIT]),
            "ended without executing it",
        ),
    ];
    for (body, wanted) in cases {
        for seed in 0..4 {
            let (_, reason) = reason(128, &body, seed);
            assert!(reason.contains(wanted), "{body}: {reason}");
        }
    }
    // A wait for products that others never issue.
    let body = lines(&["", FENCE, "@%p1 ret;", PRODUCT, COMMIT, WAIT]);
    match error(128, &body, 0).1 {
        Fault::Deadlock(text) => {
            assert!(text.contains("to issue the product of line 19"), "{text}")
        }
        other => panic!("{other}"),
    }
    let (line, reason) = reason(
        160,
        &lines(&[
            "@!%p0 bra LAST;",
            "bar.sync 1, 128;",
            "ret;",
            "LAST:",
            FENCE,
            PRODUCT,
        ]),
        0,
    );
    assert!(
        line == 6 && reason.contains("no whole group"),
        "{line}: {reason}"
    );
}

#[test]
fn operands_in_shared_memory_are_read_until_the_wait() {
    let store = "@%p0 st.shared.v4.b32 [%r4], {%r5, %r5, %r5, %r5};";
    for seed in 0..4 {
        let early = lines(&[
            "mov.b32 %r5, 1065369472;",
            FENCE,
            PRODUCT,
            COMMIT,
            "bar.sync 0;",
            store,
            "bar.sync 0;",
            WAIT,
        ]);
        let (line, fault) = error(128, &early, seed);
        assert!(line == 6 && matches!(fault, Fault::Race { .. }), "{fault}");
        // Who waits knows for the whole group; others hear it from them.
        let late = lines(&[
            "mov.b32 %r5, 1065369472;",
            FENCE,
            PRODUCT,
            COMMIT,
            WAIT,
            "@%p1 st.shared.v4.b32 [%r4+256], {%r5, %r5, %r5, %r5}; bar.sync 0;",
            "@!%p1 st.shared.v4.b32 [%r4+256], {%r5, %r5, %r5, %r5};",
        ]);
        run(128, &late, seed).unwrap_or_else(|error| panic!("{error}"));
        let unheard = late.replace(WAIT, "@%p1 wgmma.wait_group.sync.aligned 0;\n");
        let unheard = unheard.replace("bar.sync 0;\n", "\n");
        let fault = error(128, &unheard, seed).1;
        assert!(matches!(fault, Fault::Race { .. }), "{fault}");
    }
}

#[test]
fn operands_are_made_visible_to_products() {
    // Written again by ordinary stores, with all that it takes, with a fence only, with a barrier only.
    let body = |behind: &str| {
        let store = "@%p0 st.shared.v4.b32 [%r4], {%r5, %r5, %r5, %r5};";
        lines(&[
            "mov.b32 %r5, 1065369472;",
            store,
            behind,
            FENCE,
            PRODUCT,
            COMMIT,
            WAIT,
        ])
    };
    let fence = "fence.proxy.async.shared::cta;";
    for seed in 0..4 {
        let all = body(&format!("{fence} bar.sync 0;"));
        run(128, &all, seed).unwrap_or_else(|error| panic!("{error}"));
        let (line, fault) = error(128, &body("bar.sync 0;"), seed);
        assert!(line == 5 && matches!(fault, Fault::Proxy { .. }), "{fault}");
        // A fence of the readers is none of the writers.
        let (_, fault) = error(128, &body(&format!("bar.sync 0; @%p1 {fence}")), seed);
        assert!(matches!(fault, Fault::Proxy { .. }), "{fault}");
        let fault = error(128, &body(fence), seed).1;
        assert!(matches!(fault, Fault::Race { .. }), "{fault}");
    }
}

#[test]
fn products_are_of_one_target() {
    let text = entry(128, &lines(&[FENCE, PRODUCT])).replace("sm_90a", "sm_90");
    let error = Module::parse(&text).expect_err("the target has no products");
    assert!(
        error.to_string().contains("needs sm_90a and PTX 8.0"),
        "{error}"
    );
    let text = entry(128, "setmaxnreg.dec.sync.aligned.u32 24;").replace("sm_90a", "sm_90");
    assert!(matches!(
        Module::parse(&text).map_err(|error| error.kind),
        Err(ParseErrorKind::TooEarly { .. })
    ));
}

#[test]
fn products_that_do_not_exist() {
    let cases = [
        ("m64n12k16.f32.bf16.bf16", "there is no product"),
        ("m64n8k8.f32.bf16.bf16", "there is no product"),
        ("m128n8k16.f32.bf16.bf16", "there is no product"),
        ("m64n264k16.f32.bf16.bf16", "there is no product"),
        ("m64n8k16.f16.bf16.bf16", "unsupported"),
        ("m64n8k16.f32.bf16.f16", "unsupported"),
        ("m64n40k32.s32.s8.s8", "there is no product"),
        ("m64n8k256.s32.b1.b1", "`.and.popc` is missing"),
        ("m64n8k16.f32.bf16.bf16.satfinite", "unsupported"),
    ];
    for (shape, wanted) in cases {
        let text = entry(128, &PRODUCT.replace("m64n8k16.f32.bf16.bf16", shape));
        let error = Module::parse(&text).expect_err("there is no such product");
        assert!(error.to_string().contains(wanted), "{shape}: {error}");
    }
    let tails = [
        ("1, 1, 1, 0, 0;", "1, 1, 2, 0, 0;"),
        ("1, 1, 1, 0, 0;", "1, 1, 1, 0, 2;"),
        ("1, 1, 1, 0, 0;", "1, 1, 1;"),
        ("%f2, %f3}", "%f2}"),
        ("%f3}", "_}"),
    ];
    for (from, to) in tails {
        let text = entry(128, &PRODUCT.replace(from, to));
        let error = Module::parse(&text).expect_err("operands are wrong");
        assert_eq!(error.line, 16, "{error}");
    }
}

#[test]
fn registers_move_between_groups() {
    let dec = "setmaxnreg.dec.sync.aligned.u32";
    let inc = "setmaxnreg.inc.sync.aligned.u32";
    // 168 at the start; whichever group comes first.
    let body = lines(&[
        "@!%p0 bra OTHER;",
        &format!("{dec} 40;"),
        "ret;",
        "OTHER:",
        &format!("{inc} 232;"),
    ]);
    for seed in 0..8 {
        run(384, &body, seed).unwrap_or_else(|error| panic!("{error}"));
    }
    // What changes nothing needs no order among the warps of a group.
    for seed in 0..4 {
        let again = format!("{dec} 64;\n{dec} 64;");
        run(384, &again, seed).unwrap_or_else(|error| panic!("{error}"));
    }
    let lower = format!("{dec} 64;\n{dec} 40;");
    let wanted = "has not executed the one of line 16 before";
    let is_found = |seed| {
        let found = run(384, &lower, seed);
        matches!(found, Err(error) if error.to_string().contains(wanted))
    };
    assert!((0..16).any(is_found), "some warp is ahead of another");
    let too_many = body.replace("232", "240");
    match error(384, &too_many, 0).1 {
        Fault::Deadlock(text) => {
            assert!(
                text.contains("for 240 registers of each thread, with "),
                "{text}"
            );
        }
        other => panic!("{other}"),
    }
    let cases = [
        (format!("{dec} 176;"), "which is less already"),
        (format!("{inc} 160;"), "which is more already"),
        (
            format!("@%p1 bra SKIP;\n{dec} 64;\nSKIP:"),
            "ended without executing it",
        ),
        (format!("@%p1 {dec} 64;\n@!%p1 {dec} 72;"), "in its place"),
        (
            format!("@!%p1 bra SKIP;\n{dec} 64;\n{dec} 40;\nSKIP: {dec} 64;\n{dec} 40;"),
            "",
        ),
    ];
    for (body, wanted) in cases {
        let (_, reason) = reason(384, &body, 0);
        assert!(reason.contains(wanted), "{body}: {reason}");
    }
    for count in [16, 26, 264] {
        let text = entry(128, &format!("{dec} {count};"));
        let error = Module::parse(&text).expect_err("no such count");
        assert!(
            error.to_string().contains("multiple of 8 from 24 to 256"),
            "{error}"
        );
    }
    // A part of a warp.
    let body = format!("and.b32 %r12, %r1, 1; setp.eq.u32 %p3, %r12, 0; @%p3 {dec} 64;");
    let fault = error(384, &body, 0).1;
    assert!(
        matches!(fault, Fault::PartialWarp { .. } | Fault::Deadlock(_)),
        "{fault}"
    );
}

/// One lane of the members is elected, and warps of a group meet at a barrier whose number is in a register.
#[test]
fn lanes_are_elected_and_groups_meet() {
    let body = "elect.sync %r12|%p2, -1; setp.eq.u32 %p3, %r1, 32; mov.b32 %r13, 0;
shr.u32 %r14, %r1, 7; add.u32 %r14, %r14, 1; mul.wide.u32 %d1, %r2, 4; add.u64 %d1, %d1, %data;
@%p2 st.global.u32 [%d1], %r2; barrier.sync %r14, 128;
setp.eq.u32 %p4, %r14, 1; @%p4 ld.global.u32 %r15, [%data+12]; @!%p4 ld.global.u32 %r15, [%data+28];
shr.u32 %r16, %r15, 2; add.u32 %r16, %r16, 1; setp.ne.u32 %p5, %r16, %r14; @%p5 trap;
setp.ne.u32 %p5, %r12, 0; @%p5 trap;";
    for seed in 0..4 {
        run(256, body, seed).unwrap_or_else(|error| panic!("{error}"));
        let fault = error(256, &body.replace("barrier.sync %r14, 128;", ""), seed).1;
        assert!(
            matches!(fault, Fault::Race { .. } | Fault::Uninitialised { .. }),
            "{fault}"
        );
        // Groups that meet by two numbers do not order each other.
        let crossed = body.replace("[%data+12]", "[%data+16]");
        let fault = error(256, &crossed, seed).1;
        assert!(
            matches!(
                fault,
                Fault::Race { .. } | Fault::Uninitialised { .. } | Fault::Trap
            ),
            "{fault}"
        );
    }
}

/// Eight rows of sixteen bytes each, written by `stmatrix` as `ldmatrix` reads them.
#[test]
fn matrices_are_stored_as_they_are_loaded() {
    for (count, registers) in [
        (1, "{%r20}"),
        (2, "{%r20, %r21}"),
        (4, "{%r20, %r21, %r22, %r23}"),
    ] {
        for trans in ["", ".trans"] {
            let back = registers.replace("%r2", "%r1");
            let body = format!(
                "and.b32 %r7, %r1, 31; shl.b32 %r7, %r7, 4; add.u32 %r7, %r7, %r0; mad.lo.u32 %r20, %r1, 65539, 7;
add.u32 %r21, %r20, 77; add.u32 %r22, %r20, 991; add.u32 %r23, %r20, 12345;
mov.b32 %r10, %r20; mov.b32 %r11, %r21; mov.b32 %r12, %r22; mov.b32 %r13, %r23;
@!%p1 bra DONE; stmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 [%r7], {registers};
bar.warp.sync -1; ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 {back}, [%r7];
setp.ne.u32 %p2, %r10, %r20; @%p2 trap; setp.ne.u32 %p2, %r11, %r21; @%p2 trap;
setp.ne.u32 %p2, %r12, %r22; @%p2 trap; setp.ne.u32 %p2, %r13, %r23; @%p2 trap;
and.b32 %r14, %r1, 31; shr.u32 %r15, %r14, 2; and.b32 %r16, %r14, 3; shl.b32 %r15, %r15, 4; shl.b32 %r16, %r16, 2;
add.u32 %r15, %r15, %r16; add.u32 %r15, %r15, %r0; ld.shared.u32 %r17, [%r15]; setp.ne.u32 %p2, %r17, %r20;
{} DONE:",
                if trans.is_empty() { "@%p2 trap;" } else { "" }
            );
            run(128, &body, 0).unwrap_or_else(|error| panic!("{count}{trans}: {error}"));
        }
    }
}
