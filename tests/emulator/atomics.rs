//! Many atomic operations on one address: what each tells, in time that grows as their number.

use tilelift::emu::{Arg, EmuError, Launch, Memory, Module, Options, run};

use crate::entry;

/// Threads of a CTA.
const THREADS: u32 = 256;

/// Runs a body on CTAs of 256 threads; `%data` points to 64 counters of 32 bits, behind which each thread of the grid has a word.
fn launch(body: &str, ctas: u32) -> Result<u32, EmuError> {
    let module = Module::parse(&entry(body)).unwrap_or_else(|error| panic!("{error}\n{body}"));
    let mut memory = Memory::new();
    let words = 64 + ctas * THREADS;
    let data = memory.alloc_bytes(&vec![0; 4 * words as usize]);
    let args = [Arg::pointer(data)];
    let launch = Launch {
        grid: [ctas, 1, 1],
        block: [THREADS, 1, 1],
        shared_bytes: 0,
        args: &args,
        options: Options::default(),
    };
    run(&module, "kernel", &launch, &mut memory)?;
    let bytes = memory.read(data, 4).expect("it was written");
    Ok(u32::from_le_bytes(bytes.try_into().expect("four bytes")))
}

/// The thread's number in the grid to `%r1`; it stores that to its word.
const OWN: &str = "mov.u32 %r1, %ctaid.x; mad.lo.u32 %r1, %r1, 256, %tid;
mad.wide.u32 %d0, %r1, 4, %data; st.global.u32 [%d0+256], %r1;";

/// The thread whose `%r2` is the first number reads as many words as the second says.
fn reads(turn: u32, words: u32) -> String {
    format!(
        "setp.ne.u32 %p0, %r2, {turn}; @%p0 bra END; mov.u32 %r3, 0;
EACH: mad.wide.u32 %d0, %r3, 4, %data; ld.global.u32 %r4, [%d0+256];
add.u32 %r3, %r3, 1; setp.lt.u32 %p0, %r3, {words}; @%p0 bra EACH;
END:"
    )
}

#[test]
fn the_last_of_many_knows_all() {
    let (ctas, all) = (4, 4 * THREADS);
    for adds in [
        "atom.global.gpu.acq_rel.add.u32 %r2, [%data], 1;",
        "fence.acq_rel.gpu; atom.global.gpu.relaxed.add.u32 %r2, [%data], 1; fence.acq_rel.gpu;",
        "red.global.gpu.release.add.u32 [%data], 1; atom.global.gpu.acquire.add.u32 %r2, [%data+4], 1;
WAIT: ld.global.gpu.acquire.u32 %r5, [%data]; setp.ne.u32 %p1, %r5, 1024; @%p1 bra WAIT;",
        "atom.global.gpu.acq_rel.add.u32 %r2, [%data], 1; bar.sync 0;",
    ] {
        let body = format!("{OWN}\n{adds}\n{}", reads(all - 1, all));
        assert_eq!(launch(&body, ctas).unwrap_or_else(|error| panic!("{error}\n{adds}")), all);
    }
}

#[test]
fn one_in_front_of_the_last_does_not() {
    let (ctas, all) = (4, 4 * THREADS);
    for adds in [
        "atom.global.gpu.acq_rel.add.u32 %r2, [%data], 1;",
        "fence.acq_rel.gpu; atom.global.gpu.relaxed.add.u32 %r2, [%data], 1; fence.acq_rel.gpu;",
    ] {
        for turn in [all - 2, 100, 17, 3] {
            let body = format!("{OWN}\n{adds}\n{}", reads(turn, all));
            let error = launch(&body, ctas).expect_err("a word is not ordered before the reads");
            assert!(error.to_string().contains("race"), "{error}");
        }
    }
    // Nothing is released, or nothing acquired.
    for adds in [
        "atom.global.gpu.acquire.add.u32 %r2, [%data], 1;",
        "atom.global.gpu.release.add.u32 %r2, [%data], 1;",
        "atom.global.cta.acq_rel.add.u32 %r2, [%data], 1;",
    ] {
        let body = format!("{OWN}\n{adds}\n{}", reads(all - 1, all));
        launch(&body, ctas).expect_err("a word is not ordered before the reads");
    }
}

/// Counters in a row, each of which every thread adds to: the last at the last one knows all that were at the first.
#[test]
fn what_one_counter_tells_goes_on_by_others() {
    let (ctas, all) = (2, 2 * THREADS);
    for counters in [2, 7, 12] {
        let adds: String = (0..counters)
            .map(|i| {
                format!(
                    "atom.global.gpu.acq_rel.add.u32 %r2, [%data+{}], 1;\n",
                    4 * i
                )
            })
            .collect();
        let body = format!("{OWN}\n{adds}\n{}", reads(all - 1, all));
        launch(&body, ctas).unwrap_or_else(|error| panic!("{error}"));
        let body = format!("{adds}\n{OWN}\n{}", reads(all - 1, all));
        launch(&body, ctas).expect_err("what comes behind is not told");
    }
}

/// 65,536 of them: a time that grew with the square took a quarter of an hour.
#[test]
fn the_time_grows_with_their_number() {
    let adds = "atom.global.gpu.acq_rel.add.u32 %r2, [%data], 1;";
    assert_eq!(launch(adds, 256).expect("atomics do not race"), 65_536);
}
