//! Errors of order: barriers that not all reach, races, messages, copies that are read too early.

use tilelift::emu::{AccessKind, Arg, EmuError, Fault, Memory, Options, Space};

use crate::errors::{fault, line_of};
use crate::{entry, run_body, run_text};

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
