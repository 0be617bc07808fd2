//! Errors of texts and launches.

use tilelift::emu::{Arg, EmuError, Launch, Memory, Module, Options, ParseErrorKind, run};

use crate::entry;
use crate::errors::parse_error;

#[test]
fn texts_that_do_not_parse() {
    use ParseErrorKind::{Operands, Syntax, Undeclared, UnknownModifier, UnsupportedInstruction};
    assert!(
        matches!(parse_error("\n\ntcgen05.wait::ld.sync.aligned;", "tcgen05"), UnsupportedInstruction(name) if name == "tcgen05.wait::ld.sync.aligned")
    );
    assert!(
        matches!(parse_error("add.u32 %r0, %r1, %nope;", "%nope"), Undeclared(name) if name == "%nope")
    );
    assert!(
        matches!(parse_error("bra NOWHERE;", "NOWHERE"), Undeclared(name) if name == "NOWHERE")
    );
    assert!(
        matches!(parse_error("add.approx.u32 %r0, %r1, %r2;", "approx"), UnknownModifier { modifier, .. } if modifier == "approx")
    );
    assert!(matches!(
        parse_error("add.u32 %r0, %d1, %r2;", "%d1"),
        Operands { .. }
    ));
    assert!(matches!(
        parse_error("add.u32 %r0, %r1;", "%r1;"),
        Operands { .. }
    ));
    assert!(matches!(
        parse_error("mul.u32 %r0, %r1, %r2;", "mul"),
        Operands { .. }
    ));
    assert!(matches!(
        parse_error("setp.lo.s32 %p0, %r1, %r2;", "setp"),
        Operands { .. }
    ));
    assert!(matches!(
        parse_error("cvt.f16.f32 %h0, %f0;", "cvt"),
        Operands { .. }
    ));
    assert!(matches!(
        parse_error("add.u32 %r0, %r1 %r2;", "%r1 %r2"),
        Syntax(_)
    ));
    assert!(matches!(
        parse_error("X:\nmov.u32 %r0, 0;\nX: bar.sync 0;", "X: bar"),
        Syntax(_)
    ));
}

/// What `ptxas` refuses, too.
#[test]
fn what_ptx_forbids_is_refused() {
    let module = |version: &str, target: &str, directive: &str, body: &str| {
        let text = format!(
            ".version {version}\n.target {target}\n.address_size 64\n.visible .entry k()\n{directive}\n{{ .reg .b16 %h<4>; .reg .b32 %r<4>; .reg .f32 %f<2>; {body} ret; }}\n"
        );
        Module::parse(&text).map(|_| ()).map_err(|e| e.to_string())
    };
    let bf16 = "fma.rn.bf16 %h0, %h1, %h2, %h0;";
    assert_eq!(module("7.0", "sm_80", ".maxnreg 32", bf16), Ok(()));
    let cases = [
        (
            ("7.0", "sm_75", "", bf16),
            "line 6: `fma.rn.bf16` needs sm_80 and PTX 7.0",
        ),
        (
            ("7.0", "sm_75", "", "redux.sync.add.s32 %r0, %r1, -1;"),
            "needs sm_80 and PTX 7.0",
        ),
        (
            ("7.0", "sm_80", "", "cvt.f32.bf16 %f0, %h0;"),
            "needs sm_80 and PTX 7.1",
        ),
        (
            ("7.8", "sm_80", "", "add.rn.bf16 %h0, %h1, %h2;"),
            "needs sm_90 and PTX 7.8",
        ),
        (
            ("7.0", "sm_90", "", ""),
            "line 2: target `sm_90` needs PTX 7.8",
        ),
        (("7.0", "sm_81", "", ""), "line 2: unknown target `sm_81`"),
        (("99.0", "sm_80", "", ""), "line 1: there is no PTX 99.0"),
        (("7.9", "sm_80", "", ""), "line 1: there is no PTX 7.9"),
        (("7", "sm_80", "", ""), "line 1: expected a version"),
        (
            ("7.0", "sm_80", ".maxnreg 0", ""),
            "line 5: expected a number above zero",
        ),
        (
            ("7.0", "sm_80", ".maxntid 32, 0", ""),
            "line 5: expected a number above zero",
        ),
        (
            ("7.0", "sm_80", ".reqntid 0", ""),
            "line 5: expected a number above zero",
        ),
        (
            ("7.0", "sm_80", "", "\0"),
            "line 6: unexpected character '\\0'",
        ),
        (
            ("7.0", "sm_80", "", "bar.sync 16;"),
            "the number of a barrier is 0 to 15",
        ),
        (
            ("7.0", "sm_80", "", "bar.sync 0, 33;"),
            "a multiple of 32 threads",
        ),
        (
            ("7.0", "sm_80", "", "} .entry k() {"),
            "entry `k` is defined twice",
        ),
        (
            ("7.0", "sm_80", "", "mov.b32 %r0, 99999999999999999999;"),
            "is no number",
        ),
    ];
    for ((version, target, directive, body), words) in cases {
        let error = module(version, target, directive, body).expect_err(words);
        assert!(error.contains(words), "{words}: {error}");
    }
    for text in [
        "",
        ".entry k() { ret; }",
        ".version 7.0\n.entry k() { ret; }",
    ] {
        assert!(Module::parse(text).is_err(), "{text}");
    }
    // Integer literals are converted to the width of the instruction, as the manual says.
    assert_eq!(
        module("7.0", "sm_80", "", "mov.b32 %r0, 99999999999;"),
        Ok(())
    );
}

#[test]
fn hostile_texts_end_in_errors() {
    let deep = "{".repeat(10_000);
    for text in [
        "".to_owned(),
        ".version".to_owned(),
        ".visible .entry k(".to_owned(),
        ".entry k() { .reg .b32 %r<4000000000>; }".to_owned(),
        ".entry k() { .reg .b32 %r<99999999999999999999>; }".to_owned(),
        ".entry k(.param .b8 p[4294967295]) { ret; }".to_owned(),
        ".shared .b8 a[18446744073709551615];".to_owned(),
        ".shared .b8 a[268435456]; .shared .b8 b[268435456]; .shared .b8 c[4000000000];".to_owned(),
        format!(".entry k() {deep}"),
        format!(".entry k() {{ mov.b32 %r0, {deep}; }}"),
        ".entry k() { /* ".to_owned(),
        ".entry k() { @".to_owned(),
        ".entry k() { \"".to_owned(),
        ".entry k() { L: L2: é }".to_owned(),
        ".global .b8 x[4] = {1, 2, {3, ".to_owned(),
    ] {
        let text = format!(".version 8.3\n.target sm_90\n.address_size 64\n{text}");
        match Module::parse(&text) {
            Ok(module) => assert_eq!(module.entries().count(), 0, "{text:.60}"),
            Err(error) => assert!(error.line >= 1),
        }
    }
}

#[test]
fn launches_that_do_not_fit() {
    let module =
        Module::parse(&entry("mov.u32 %r0, 0;").replace(")\n{", ")\n.reqntid 64, 1, 1\n{"))
            .expect("valid");
    let mut memory = Memory::new();
    let args = [Arg::pointer(0)];
    let base = Launch {
        grid: [1; 3],
        block: [64, 1, 1],
        shared_bytes: 0,
        args: &args,
        options: Options::default(),
    };
    run(&module, "kernel", &base, &mut memory).expect("this one fits");
    let refused = |entry: &str, launch: Launch<'_>| {
        run(&module, entry, &launch, &mut Memory::new()).expect_err("it does not fit")
    };
    assert_eq!(
        refused("other", base.clone()),
        EmuError::NoEntry("other".to_owned())
    );
    assert!(matches!(
        refused(
            "kernel",
            Launch {
                args: &[],
                ..base.clone()
            }
        ),
        EmuError::Arguments(_)
    ));
    let short = [Arg::from(1_u32)];
    assert!(matches!(
        refused(
            "kernel",
            Launch {
                args: &short,
                ..base.clone()
            }
        ),
        EmuError::Arguments(_)
    ));
    for launch in [
        Launch {
            block: [32, 1, 1],
            ..base.clone()
        },
        Launch {
            block: [1024, 2, 1],
            ..base.clone()
        },
        Launch {
            grid: [0, 1, 1],
            ..base.clone()
        },
        Launch {
            shared_bytes: 1 << 20,
            ..base.clone()
        },
    ] {
        assert!(matches!(
            refused("kernel", launch),
            EmuError::Configuration(_)
        ));
    }
}

#[test]
fn registers_of_all_threads_have_bounds() {
    let text = |count| {
        format!(
            ".version 8.3\n.target sm_90\n.address_size 64\n.entry k() {{\n.reg .b32 %r<{count}>;\nmov.u32 %r0, 1;\nret;\n}}\n"
        )
    };
    let run = |count, threads| {
        let module = Module::parse(&text(count)).expect("the text is valid");
        let launch = Launch {
            grid: [1, 1, 1],
            block: [threads, 1, 1],
            shared_bytes: 0,
            args: &[],
            options: Options::default(),
        };
        tilelift::emu::run(&module, "k", &launch, &mut Memory::new()).map(drop)
    };
    assert_eq!(run(100_000, 128), Ok(()));
    assert_eq!(run(10_000, 1024), Ok(()));
    let refused = run(200_000, 1024).expect_err("that is 1.6 GB");
    let wanted = "200000 registers and 0 bytes of local memory in each of 1024 threads, which take 1638400000 bytes here of at most \
                  134217728; use fewer threads or declare fewer registers";
    assert!(refused.to_string().contains(wanted), "{refused}");
}
