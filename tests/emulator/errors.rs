//! One test for each kind of error, with the line it must name.

use tilelift::emu::{
    Arg, EmuError, Fault, FaultSite, Memory, Module, Options, ParseErrorKind, Space,
};

use crate::{entry, run_body, run_text};

/// The line of the text in which `needle` stands.
pub(crate) fn line_of(text: &str, needle: &str) -> u32 {
    let mut lines = text
        .lines()
        .enumerate()
        .filter(|(_, line)| line.contains(needle));
    let (index, _) = lines.next().expect("the needle is in the text");
    index as u32 + 1
}

/// Runs a body that must fail, checks that it fails where `needle` stands, and gives the fault.
pub(crate) fn fault(body: &str, needle: &str, threads: u32, bytes: usize) -> (FaultSite, Fault) {
    let text = entry(body);
    let mut memory = Memory::new();
    let data = memory.alloc_bytes(&vec![0; bytes]);
    let args = [Arg::pointer(data)];
    let error = run_text(
        &text,
        1,
        threads,
        256,
        &mut memory,
        &args,
        Options::default(),
    );
    match error.expect_err("the program is wrong") {
        EmuError::Fault { at, fault } => {
            assert_eq!(at.line, line_of(&text, needle), "{fault}");
            (at, fault)
        }
        other => panic!("{other}"),
    }
}

pub(crate) fn parse_error(body: &str, needle: &str) -> ParseErrorKind {
    let text = entry(body);
    let error = Module::parse(&text).expect_err("the text is wrong");
    assert_eq!(error.line, line_of(&text, needle), "{error}");
    error.kind
}

#[test]
fn unwritten_register_as_data_of_a_global_store() {
    let body = "setp.lt.u32 %p0, %tid, 5;\n@%p0 mov.u32 %r0, 7;\nadd.u32 %r1, %r0, 1;\nst.global.u32 [%at], %r1;";
    let (at, fault) = fault(body, "st.global", 32, 128);
    // Lanes 0 to 4 are fine.
    assert_eq!(at.thread, [5, 0, 0]);
    assert_eq!(
        fault,
        Fault::UnwrittenRegister {
            name: "%r1".to_owned()
        }
    );
}

#[test]
fn a_comparison_of_all_lanes_is_unwritten_in_all_lanes() {
    // Lanes 0 to 4 have what they give, but not what the others do.
    let body = "setp.lt.u32 %p0, %tid, 5;\n@%p0 mov.u32 %r0, 7;\nmatch.any.sync.b32 %r1, %r0, 0xffffffff;\nst.global.u32 [%at], %r1;";
    let (at, fault) = fault(body, "st.global", 32, 128);
    assert_eq!(at.thread, [0, 0, 0], "{fault}");
}

#[test]
fn unwritten_register_as_address_and_as_guard() {
    let (_, by_address) = fault("ld.global.u32 %r1, [%d3];", "ld.global.u32 %r1", 32, 128);
    assert_eq!(
        by_address,
        Fault::UnwrittenRegister {
            name: "%d3".to_owned()
        }
    );
    let (_, by_guard) = fault("@%p4 mov.u32 %r1, 1;", "@%p4", 32, 128);
    assert_eq!(
        by_guard,
        Fault::UnwrittenRegister {
            name: "%p4".to_owned()
        }
    );
}

#[test]
fn unwritten_values_that_are_dropped_are_no_error_unless_asked() {
    let body = "add.u32 %r1, %r0, 1;\nselp.u32 %r2, %tid, %r1, 1;\nst.global.u32 [%at], %tid;";
    let mut memory = Memory::new();
    let data = memory.alloc(128);
    run_body(body, 32, &mut memory, data).expect("%r1 is not used");
    let options = Options {
        strict_registers: true,
        ..Options::default()
    };
    let text = entry(body);
    let error =
        run_text(&text, 1, 32, 0, &mut memory, &[Arg::pointer(data)], options).expect_err("strict");
    assert_eq!(error.line(), Some(line_of(&text, "add.u32 %r1")));
}

#[test]
fn undefined_data_makes_shared_bytes_undefined() {
    let body = "mov.u32 %r1, dyn;\nst.shared.u32 [%r1], %r0;\nld.shared.u32 %r2, [%r1];";
    let (_, fault) = fault(body, "ld.shared", 1, 128);
    assert!(
        matches!(
            fault,
            Fault::Uninitialised {
                space: Space::Shared,
                bytes: 4,
                ..
            }
        ),
        "{fault}"
    );
}

#[test]
fn uninitialised_global_bytes() {
    let text = entry("ld.global.v2.u32 {%r1, %r2}, [%data];");
    let mut memory = Memory::new();
    let data = memory.alloc(8);
    memory.write(data, &[1, 2, 3, 4, 5, 6, 7]).expect("inside");
    let error = run_text(
        &text,
        1,
        1,
        0,
        &mut memory,
        &[Arg::pointer(data)],
        Options::default(),
    );
    let error = error.expect_err("one byte is missing");
    assert_eq!(error.line(), Some(line_of(&text, "ld.global.v2")));
    let want = Fault::Uninitialised {
        space: Space::Global,
        address: data,
        bytes: 8,
    };
    assert_eq!(error.fault(), Some(&want));
    let options = Options {
        check_uninit: false,
        ..Options::default()
    };
    run_text(&text, 1, 1, 0, &mut memory, &[Arg::pointer(data)], options).expect("not checked");
}

#[test]
fn every_way_to_read_wants_written_bytes() {
    let ways = [
        (
            "atom.global.add.u32 %r0, [%data], 1;",
            "atom",
            Space::Global,
        ),
        (
            "mov.u32 %r1, dyn;\nldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r2}, [%r1];",
            "ldmatrix",
            Space::Shared,
        ),
        (
            "mov.u32 %r1, dyn;\ncp.async.ca.shared.global [%r1], [%data], 16;\ncp.async.wait_all;",
            "cp.async.wait_all",
            Space::Global,
        ),
    ];
    for (body, needle, expected) in ways {
        let text = entry(body);
        let try_it = |check_uninit| {
            let mut memory = Memory::new();
            let data = memory.alloc(16);
            let options = Options {
                check_uninit,
                check_races: false,
                ..Options::default()
            };
            run_text(
                &text,
                1,
                32,
                256,
                &mut memory,
                &[Arg::pointer(data)],
                options,
            )
        };
        let error = try_it(true).expect_err("nobody wrote them");
        assert_eq!(error.line(), Some(line_of(&text, needle)), "{error}");
        let Some(Fault::Uninitialised { space, .. }) = error.fault() else {
            panic!("{error}");
        };
        assert_eq!(*space, expected);
        try_it(false).expect("not checked");
    }
}

#[test]
fn out_of_bounds_of_global_shared_and_null() {
    let (at, past) = fault("ld.global.u32 %r1, [%at];", "ld.global.u32", 33, 128);
    assert_eq!(at.thread, [32, 0, 0]);
    assert!(
        matches!(
            past,
            Fault::OutOfBounds {
                space: Space::Global,
                bytes: 4,
                ..
            }
        ),
        "{past}"
    );
    assert!(
        past.to_string()
            .contains("0 bytes past the allocation of 128 bytes"),
        "{past}"
    );
    let (_, shared) = fault(
        "mov.u32 %r0, dyn;\nst.shared.u32 [%r0+256], %tid;",
        "st.shared",
        1,
        4,
    );
    assert!(
        matches!(
            shared,
            Fault::OutOfBounds {
                space: Space::Shared,
                ..
            }
        ),
        "{shared}"
    );
    // The last bytes that a number can address, and past them: counting sectors must not overflow.
    for address in ["-4", "-1"] {
        let body = format!("mov.s64 %d0, {address};\nld.global.u8 %r0, [%d0];");
        let (_, last) = fault(&body, "ld.global.u8", 1, 4);
        assert!(matches!(last, Fault::OutOfBounds { .. }), "{last}");
    }
    let (_, null) = fault("mov.u64 %d0, 0;\nst.u32 [%d0], %tid;", "st.u32", 1, 4);
    assert!(
        matches!(
            null,
            Fault::OutOfBounds {
                space: Space::Global,
                address: 0,
                ..
            }
        ),
        "{null}"
    );
}

#[test]
fn misaligned_vectors() {
    let (_, fault) = fault(
        "ld.global.v4.u32 {%r0, %r1, %r2, %r3}, [%data+8];",
        "ld.global.v4",
        1,
        64,
    );
    assert!(
        matches!(
            fault,
            Fault::Misaligned {
                space: Space::Global,
                align: 16,
                ..
            }
        ),
        "{fault}"
    );
}

#[test]
fn stores_to_parameters() {
    let (_, fault) = fault(
        "mov.b64 %d0, data;\ncvta.param.u64 %d0, %d0;\nst.u64 [%d0], %d0;",
        "st.u64",
        1,
        4,
    );
    assert_eq!(
        fault,
        Fault::ReadOnly {
            space: Space::Param
        }
    );
}

#[test]
fn shuffles_from_lanes_that_are_not_there() {
    let body =
        "setp.ge.u32 %p0, %tid, 16;\n@%p0 exit;\nshfl.sync.down.b32 %r0, %tid, 8, 31, 0xffffffff;";
    let (at, inactive) = fault(body, "shfl.sync", 32, 4);
    assert_eq!(at.thread, [8, 0, 0]);
    assert_eq!(inactive, Fault::InactiveLane { lane: 16 });
    let (_, stranger) = fault(
        "shfl.sync.bfly.b32 %r0, %tid, 1, 31, 0xffff;",
        "shfl.sync",
        32,
        4,
    );
    assert_eq!(
        stranger,
        Fault::NotMember {
            lane: 16,
            mask: 0xffff
        }
    );
}

#[test]
fn lanes_that_never_come_to_a_shuffle() {
    let body = "setp.lt.u32 %p0, %tid, 16;\n@%p0 bra WAIT;\nbar.sync 0;\nWAIT:\nshfl.sync.bfly.b32 %r0, %tid, 1, 31, 0xffffffff;";
    let text = entry(body);
    let mut memory = Memory::new();
    let data = memory.alloc(4);
    let error = run_body(body, 32, &mut memory, data).expect_err("both wait");
    assert!(matches!(error.fault(), Some(Fault::Deadlock(_))), "{error}");
    let lines = [line_of(&text, "bar.sync 0"), line_of(&text, "shfl.sync")];
    assert!(lines.contains(&error.line().expect("it ran")));
}

#[test]
fn uniform_branches_must_be_uniform() {
    let (_, fault) = fault(
        "setp.lt.u32 %p0, %tid, 3;\n@%p0 bra.uni END;\nEND:\nmov.u32 %r0, 0;",
        "bra.uni",
        32,
        4,
    );
    assert_eq!(fault, Fault::DivergentUniform);
}

#[test]
fn traps_and_endless_loops() {
    let (at, trap) = fault("setp.eq.u32 %p0, %tid, 9;\n@%p0 trap;", "trap", 32, 4);
    assert_eq!((at.thread, trap), ([9, 0, 0], Fault::Trap));
    let text = entry("LOOP:\nbra LOOP;");
    let mut memory = Memory::new();
    let data = memory.alloc(4);
    let options = Options {
        step_limit: 1000,
        ..Options::default()
    };
    let error = run_text(&text, 1, 32, 0, &mut memory, &[Arg::pointer(data)], options)
        .expect_err("endless");
    assert_eq!(error.fault(), Some(&Fault::StepLimit(1000)));
    assert_eq!(error.line(), Some(line_of(&text, "bra LOOP")));
}

#[test]
fn matrices_want_the_whole_warp() {
    let body = "mov.u32 %r1, dyn;\nldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r2}, [%r1];";
    let (_, fault) = fault(body, "ldmatrix", 16, 128);
    assert!(matches!(fault, Fault::PartialWarp { .. }), "{fault}");
}
