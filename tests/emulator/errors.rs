//! One test for each kind of error, with the line it must name.

use tilelift::emu::{
    AccessKind, Arg, EmuError, Fault, Launch, Location, Memory, Module, Options, ParseErrorKind,
    Space, run,
};

use crate::{entry, run_body, run_text};

/// The line of the text in which `needle` stands.
fn line_of(text: &str, needle: &str) -> u32 {
    let mut lines = text
        .lines()
        .enumerate()
        .filter(|(_, line)| line.contains(needle));
    let (index, _) = lines.next().expect("the needle is in the text");
    index as u32 + 1
}

/// Runs a body that must fail, checks that it fails where `needle` stands, and gives the fault.
fn fault(body: &str, needle: &str, threads: u32, bytes: usize) -> (Location, Fault) {
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

fn parse_error(body: &str, needle: &str) -> ParseErrorKind {
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
fn a_barrier_that_half_a_warp_skips() {
    let body = "setp.lt.u32 %p0, %tid, 16;\n@%p0 bra SKIP;\nbar.sync 0;\nSKIP:\nmov.u32 %r0, 0;";
    let (_, partial) = fault(body, "bar.sync 0", 32, 4);
    assert!(
        matches!(&partial, Fault::PartialWarp { opcode, .. } if opcode == "bar.sync"),
        "{partial}"
    );
}

#[test]
fn a_barrier_that_another_warp_skips() {
    let body = "setp.lt.u32 %p0, %tid, 32;\n@%p0 bra SKIP;\nbar.sync 0;\nSKIP:\nmov.u32 %r0, 0;";
    let (at, fault) = fault(body, "bar.sync 0", 64, 4);
    let Fault::Deadlock(message) = fault else {
        panic!("{fault}");
    };
    assert_eq!(at.thread, [32, 0, 0]);
    assert!(
        message.contains("barrier 0 waits for 64 threads and 32 have arrived"),
        "{message}"
    );
    assert!(message.contains("warp 0 have exited"), "{message}");
}

#[test]
fn warps_at_different_barriers() {
    let body = "setp.lt.u32 %p0, %tid, 32;\n@%p0 bra OTHER;\nbar.sync 1;\nbra DONE;\nOTHER:\nbar.sync 2;\nDONE:\nmov.u32 %r0, 0;";
    let text = entry(body);
    let mut memory = Memory::new();
    let data = memory.alloc(4);
    let error = run_body(body, 64, &mut memory, data).expect_err("neither completes");
    assert!(matches!(error.fault(), Some(Fault::Deadlock(_))), "{error}");
    let lines = [line_of(&text, "bar.sync 1"), line_of(&text, "bar.sync 2")];
    assert!(lines.contains(&error.line().expect("it ran")));
}

#[test]
fn barriers_with_impossible_counts() {
    let (_, odd) = fault("mov.u32 %r0, 33; bar.sync 0, %r0;", "bar.sync", 64, 4);
    assert!(
        matches!(&odd, Fault::Barrier { id: 0, reason } if reason.contains("multiple of 32")),
        "{odd}"
    );
    let (_, many) = fault("bar.sync 3, 128;", "bar.sync", 64, 4);
    assert!(matches!(&many, Fault::Barrier { id: 3, .. }), "{many}");
}

#[test]
fn a_race_on_shared_memory() {
    let body = "mov.u32 %r0, dyn;\nmad.lo.u32 %r1, %tid, 4, %r0;\nst.shared.u32 [%r1], %tid;\nxor.b32 %r2, %r1, 128;\nld.shared.u32 %r3, [%r2];";
    let text = entry(body);
    for seed in 0..4 {
        let mut memory = Memory::new();
        let data = memory.alloc(4);
        let options = Options {
            seed,
            check_uninit: false,
            ..Options::default()
        };
        let error = run_text(
            &text,
            1,
            64,
            256,
            &mut memory,
            &[Arg::pointer(data)],
            options,
        )
        .expect_err("no barrier");
        let Some(Fault::Race {
            space,
            kind,
            other_kind,
            other,
            ..
        }) = error.fault()
        else {
            panic!("{error}");
        };
        assert_eq!(*space, Space::Shared);
        // Either may come first, depending on the order of the warps.
        let (store, load) = (line_of(&text, "st.shared"), line_of(&text, "ld.shared"));
        let pair = (
            error.line().expect("it ran"),
            *kind,
            other.line,
            *other_kind,
        );
        let write_first = (load, AccessKind::Read, store, AccessKind::Write);
        let read_first = (store, AccessKind::Write, load, AccessKind::Read);
        assert!(pair == write_first || pair == read_first, "{error}");
    }
    let fixed = body.replace("xor", "bar.sync 0;\nxor");
    let mut memory = Memory::new();
    let data = memory.alloc(4);
    let args = [Arg::pointer(data)];
    run_text(
        &entry(&fixed),
        1,
        64,
        256,
        &mut memory,
        &args,
        Options::default(),
    )
    .expect("ordered by the barrier");
}

#[test]
fn a_race_between_accesses_of_different_width() {
    // One word of the four that the other warp writes at once.
    let body = "mov.u32 %r0, dyn;\nsetp.eq.u32 %p0, %tid, 0;\nsetp.eq.u32 %p1, %tid, 33;\n@%p0 st.shared.v4.u32 [%r0+16], {%tid, %tid, %tid, %tid};\n@%p1 st.shared.u32 [%r0+28], %tid;";
    let text = entry(body);
    let mut lines = Vec::new();
    for seed in 0..8 {
        let mut memory = Memory::new();
        let data = memory.alloc(4);
        let options = Options {
            seed,
            ..Options::default()
        };
        let args = [Arg::pointer(data)];
        let error = run_text(&text, 1, 64, 64, &mut memory, &args, options).expect_err("a race");
        let Some(Fault::Race { address, other, .. }) = error.fault() else {
            panic!("{error}");
        };
        // Shared memory starts at 1024.
        assert_eq!(*address, 1024 + 28, "{error}");
        let first = if other.line == line_of(&text, "@%p0 st") {
            0
        } else {
            33
        };
        assert_eq!(other.thread, [first, 0, 0], "{error}");
        lines.push((error.line().expect("it ran"), other.line));
    }
    let (wide, narrow) = (line_of(&text, "@%p0 st"), line_of(&text, "@%p1 st"));
    assert!(lines.contains(&(wide, narrow)) && lines.contains(&(narrow, wide)));
    // The words beside it are nobody else's.
    let apart = entry(&body.replace("%r0+28", "%r0+32"));
    let mut memory = Memory::new();
    let data = memory.alloc(4);
    let args = [Arg::pointer(data)];
    run_text(&apart, 1, 64, 64, &mut memory, &args, Options::default()).expect("no race");
}

#[test]
fn a_race_between_the_lanes_of_one_store() {
    let body = "shr.u32 %r0, %tid, 1;\nmad.wide.u32 %d0, %r0, 16, %data;\nst.global.v4.u32 [%d0], {%r0, %r0, %r0, %r0};";
    let mut memory = Memory::new();
    let data = memory.alloc(256);
    run_body(body, 32, &mut memory, data).expect("pairs of lanes store the same");
    let different = body.replace("%r0, %r0}", "%r0, %tid}");
    let (at, race) = fault(&different, "st.global.v4", 32, 256);
    assert_eq!(at.thread, [1, 0, 0]);
    assert!(
        matches!(race, Fault::Race { kind: AccessKind::Write, other_kind: AccessKind::Write, other, .. } if other.thread == [0, 0, 0])
    );
}

#[test]
fn a_race_inside_a_warp_needs_a_warp_barrier() {
    let body = "mov.u32 %r0, dyn;\nmad.lo.u32 %r1, %tid, 4, %r0;\nst.shared.u32 [%r1], %tid;\nxor.b32 %r2, %r1, 4;\nld.shared.u32 %r3, [%r2];\nst.global.u32 [%at], %r3;";
    let (_, racy) = fault(body, "ld.shared", 32, 128);
    assert!(
        matches!(
            racy,
            Fault::Race {
                space: Space::Shared,
                ..
            }
        ),
        "{racy}"
    );
    for barrier in ["bar.warp.sync 0xffffffff;", "bar.warp.sync %r9;"] {
        // The second form orders neighbours only, which is enough here.
        let pairs = "shr.u32 %r8, %tid, 1;\nshl.b32 %r8, %r8, 1;\nmov.u32 %r7, 3;\nshl.b32 %r9, %r7, %r8;\n";
        let fixed = body.replace("xor.b32", &format!("{pairs}{barrier}\nxor.b32"));
        let mut memory = Memory::new();
        let data = memory.alloc(128);
        let args = [Arg::pointer(data)];
        run_text(
            &entry(&fixed),
            1,
            32,
            128,
            &mut memory,
            &args,
            Options::default(),
        )
        .expect("ordered");
        assert_eq!(
            memory.read(data, 8).expect("written"),
            [1, 0, 0, 0, 0, 0, 0, 0]
        );
    }
}

#[test]
fn races_between_ctas_and_equal_writes() {
    let different = entry("mov.u32 %r0, %ctaid.x;\nst.global.u32 [%data], %r0;");
    let equal = entry("st.global.u32 [%data], 5;");
    let reading = entry("ld.global.u32 %r0, [%data];\nst.global.u32 [%data], 5;");
    let try_it = |text: &str, report_equal_writes| {
        let mut memory = Memory::new();
        let data = memory.alloc_bytes(&[5, 0, 0, 0]);
        let options = Options {
            report_equal_writes,
            ..Options::default()
        };
        run_text(text, 2, 1, 0, &mut memory, &[Arg::pointer(data)], options)
    };
    let error = try_it(&different, false).expect_err("two values");
    assert_eq!(error.line(), Some(line_of(&different, "st.global")));
    let Some(Fault::Race { other, .. }) = error.fault() else {
        panic!("{error}")
    };
    assert_ne!(
        Some(other.cta),
        match &error {
            EmuError::Fault { at, .. } => Some(at.cta),
            _ => None,
        }
    );
    try_it(&equal, false).expect("nobody can tell");
    assert!(matches!(
        try_it(&equal, true).expect_err("asked for").fault(),
        Some(Fault::Race { .. })
    ));
    assert!(matches!(
        try_it(&reading, false).expect_err("a read").fault(),
        Some(Fault::Race { .. })
    ));
}

/// A message passed from one CTA to another, with and without release and acquire.
#[test]
fn messages_between_ctas_need_release_and_acquire() {
    let body = |send: &str, receive: &str| {
        entry(&format!(
            "mov.u32 %r0, %ctaid.x;\nsetp.eq.u32 %p0, %r0, 1;\n@%p0 bra RECEIVE;\nst.global.u32 [%data], 42;\n{send}\nbra DONE;\nRECEIVE:\n{receive}\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 bra RECEIVE;\nld.global.u32 %r2, [%data];\nst.global.u32 [%data+8], %r2;\nDONE:\nmov.u32 %r3, 0;"
        ))
    };
    let try_it = |text: &str, seed| {
        let mut memory = Memory::new();
        let data = memory.alloc_bytes(&[0; 12]);
        let options = Options {
            seed,
            ..Options::default()
        };
        run_text(text, 2, 1, 0, &mut memory, &[Arg::pointer(data)], options)?;
        Ok::<_, EmuError>(memory.read(data + 8, 1).expect("written")[0])
    };
    let ordered = [
        (
            "st.release.gpu.global.u32 [%data+4], 1;",
            "ld.acquire.gpu.global.u32 %r1, [%data+4];",
        ),
        (
            "fence.acq_rel.gpu;\nst.relaxed.gpu.global.u32 [%data+4], 1;",
            "ld.relaxed.gpu.global.u32 %r1, [%data+4];\nfence.acq_rel.gpu;",
        ),
        (
            "membar.gl;\nred.global.add.u32 [%data+4], 1;",
            "atom.global.or.b32 %r1, [%data+4], 0;\nmembar.gl;",
        ),
        (
            "atom.release.gpu.global.exch.b32 %r9, [%data+4], 1;",
            "atom.acquire.gpu.global.cas.b32 %r1, [%data+4], 7, 8;",
        ),
    ];
    for (send, receive) in ordered {
        for seed in 0..3 {
            assert_eq!(
                try_it(&body(send, receive), seed),
                Ok(42),
                "{send} {receive}"
            );
        }
    }
    let unordered = [
        (
            "st.relaxed.gpu.global.u32 [%data+4], 1;",
            "ld.acquire.gpu.global.u32 %r1, [%data+4];",
        ),
        (
            "st.release.gpu.global.u32 [%data+4], 1;",
            "ld.relaxed.gpu.global.u32 %r1, [%data+4];",
        ),
        (
            "st.volatile.global.u32 [%data+4], 1;",
            "ld.volatile.global.u32 %r1, [%data+4];",
        ),
    ];
    for (send, receive) in unordered {
        let text = body(send, receive);
        let error = try_it(&text, 1).expect_err("not ordered");
        assert!(matches!(error.fault(), Some(Fault::Race { .. })), "{error}");
        assert_eq!(error.line(), Some(line_of(&text, "ld.global.u32 %r2")));
    }
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

/// Half a warp that copies 16 bytes a lane to shared memory and reads what the next lane copied, with something in between.
fn copies_then_reads(between: &str) -> String {
    format!(
        "mov.u32 %r1, dyn;\nshl.b32 %r2, %tid, 4;\nadd.u32 %r3, %r1, %r2;\nmul.wide.u32 %d3, %tid, 16;\n\
         add.u64 %d3, %data, %d3;\ncp.async.cg.shared.global [%r3], [%d3], 16;\ncp.async.commit_group;\n{between}\n\
         xor.b32 %r2, %r2, 16;\nadd.u32 %r3, %r1, %r2;\nld.shared.u32 %r4, [%r3];\nst.global.u32 [%at], %r4;"
    )
}

#[test]
fn copies_are_not_there_before_a_wait() {
    for between in ["", "bar.sync 0;", "cp.async.wait_group 1;\nbar.sync 0;"] {
        let (_, fault) = fault(&copies_then_reads(between), "ld.shared", 16, 1024);
        assert!(
            matches!(
                fault,
                Fault::Uninitialised {
                    space: Space::Shared,
                    ..
                }
            ),
            "{between}: {fault}"
        );
    }
}

#[test]
fn copies_of_other_lanes_need_a_barrier() {
    let (_, fault) = fault(
        &copies_then_reads("cp.async.wait_group 0;"),
        "ld.shared",
        16,
        1024,
    );
    assert!(matches!(fault, Fault::Race { .. }), "{fault}");
    let text = entry(&copies_then_reads("cp.async.wait_all;\nbar.sync 0;"));
    let mut memory = Memory::new();
    let data = memory.alloc_bytes(&[7; 1024]);
    let args = [Arg::pointer(data)];
    let options = Options::default();
    run_text(&text, 1, 16, 256, &mut memory, &args, options).expect("the copies arrived");
}

#[test]
fn matrices_want_the_whole_warp() {
    let body = "mov.u32 %r1, dyn;\nldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r2}, [%r1];";
    let (_, fault) = fault(body, "ldmatrix", 16, 128);
    assert!(matches!(fault, Fault::PartialWarp { .. }), "{fault}");
}
