//! Producers, and what goes wrong between them and the program.

use super::{Memory, launch};
use crate::interp::Arg;
use crate::ir::ops::TileOp;
use crate::text::parse::parse_tile;

pub(super) const OPS: &[TileOp] = &[TileOp::Producer, TileOp::Release, TileOp::MbarArrive];

/// The producer waits until an entry is empty and fills it with the box that begins at a row.
fn fill(row: u32, entry: u32, before: u32) -> String {
    let row = 20 + row;
    let (entry, before) = (10 + entry, 10 + before);
    format!(
        "mbar_wait v{entry}, v{before} {{slot = slot2}}
        mbar_expect v{entry}, v16 {{slot = slot1, bytes = 32}}
        tensor_copy v9, v{entry}, v16, v{row}, v10 {{slot = slot0, bars = slot1}}\n"
    )
}

/// The program waits until an entry is full, adds it to the sum, and gives it back.
fn take(number: u32, entry: u32, phase: u32) -> String {
    let (from, block, to) = (40 + 2 * number, 41 + 2 * number, 42 + 2 * number);
    let (entry, phase) = (10 + entry, 10 + phase);
    format!(
        "mbar_wait v{entry}, v{phase} {{slot = slot1}}
        v{block} = shared_load v{entry} {{slot = slot0}} : i32[2,4]
        v{to} = iadd v{from}, v{block} : i32[2,4]
        release v{entry}, v16 {{slot = slot0}}
        mbar_arrive v{entry}, v16 {{slot = slot2}}\n"
    )
}

/// Three boxes through a ring of two entries.
fn fills() -> String {
    [fill(0, 0, 1), fill(1, 1, 1), fill(2, 0, 0)].concat()
}

fn takes() -> String {
    [take(0, 0, 0), take(1, 1, 0), take(2, 0, 1)].concat()
}

/// The first column of the sum of boxes of 2 by 4 of a tensor of 8 rows of 4, whose element at (i, j) is 10^i + j. The last
/// sum is `v46`.
fn run(producer: &str, program: &str) -> Result<[i32; 2], String> {
    let text = format!(
        "kernel @k(v0 \"x\": ptr<i32>, v1 \"y\": ptr<i32>) warps(4) {{
            part1 = 1 warps from 4
            slot0 = 64 bytes align 128 holds 2 of i32[2,4]
            slot1 = 16 bytes align 8
            slot2 = 16 bytes align 8
        block0:
            v10 = const {{value = 0}} : i32
            v11 = const {{value = 1}} : i32
            v16 = const {{value = true}} : i1
            v20 = const {{value = 0}} : i32
            v21 = const {{value = 2}} : i32
            v22 = const {{value = 4}} : i32
            v23 = const {{value = 6}} : i32
            v5 = const {{value = 8}} : i64
            v6 = const {{value = 4}} : i64
            v9 = tensor_map v0, v16, v5, v6, v6 {{values = [2, 4]}} : map<i32>
            mbar_init {{slot = slot1, count = 1}}
            mbar_init {{slot = slot2, count = 4}}
            producer {{
            block1:
                {producer}
                yield
            }}
            v40 = const {{value = 0}} : i32[2,4]
            {program}
            v30 = arange {{start = 0}} : i32[8]
            v31 = reshape v30 : i32[2,4]
            v32 = splat v1 : ptr<i32>[2,4]
            v33 = addptr v32, v31 : ptr<i32>[2,4]
            store v33, v46
            return
        }}"
    );
    let func = parse_tile(&text).map_err(|errors| format!("{errors:?}"))?;
    crate::verify::verify(&func).map_err(|errors| errors.to_string())?;
    let mut memory = Memory::new();
    let element = |i: u32| 10_i32.pow(i / 4) + (i % 4) as i32;
    let numbers: Vec<u8> = (0..32).flat_map(|i| element(i).to_le_bytes()).collect();
    let from = memory.alloc_bytes(&numbers);
    let to = memory.alloc(32);
    let args = [Arg::Ptr(from), Arg::Ptr(to)];
    launch(&func, &args, &mut memory).map_err(|error| error.to_string())?;
    let bytes = memory.read(to, 32).map_err(|error| error.to_string())?;
    let word =
        |at: usize| i32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    Ok([word(0), word(16)])
}

fn refused(producer: &str, program: &str, expected: &str) {
    match run(producer, program) {
        Err(error) => assert!(error.contains(expected), "{error}"),
        Ok(sums) => panic!("{sums:?}, not {expected}"),
    }
}

/// The text with its last occurrence of some line changed.
fn last_replaced(text: &str, from: &str, to: &str) -> String {
    let at = text.rfind(from).expect("the text has it");
    format!("{}{to}{}", &text[..at], &text[at + from.len()..])
}

#[test]
fn boxes_come_in_turn() {
    // Rows 0, 2, 4 and rows 1, 3, 5.
    assert_eq!(run(&fills(), &takes()), Ok([10101, 101_010]));
}

#[test]
fn a_producer_that_brings_too_few_is_waited_for() {
    let few = [fill(0, 0, 1), fill(1, 1, 1)].concat();
    let expected =
        "inst31 (mbar_wait): nobody ends the phase of barrier 0 in slot1 that is waited for";
    refused(&few, &takes(), expected);
    // A box is announced and does not come.
    let last = "tensor_copy v9, v10, v16, v22, v10 {slot = slot0, bars = slot1}";
    let missing = last_replaced(&fills(), last, "");
    refused(
        &missing,
        &takes(),
        "nobody ends the phase of barrier 0 in slot1",
    );
    let bytes = last_replaced(&fills(), "bytes = 32", "bytes = 48");
    refused(
        &bytes,
        &takes(),
        "nobody ends the phase of barrier 0 in slot1",
    );
}

#[test]
fn a_producer_that_brings_too_many_is_reported_at_the_end() {
    let many = format!("{}{}", fills(), fill(3, 1, 0));
    let expected = "a producer brings boxes to barrier 1 in slot1 that nobody waits for";
    refused(&many, &takes(), expected);
    // The same when barriers are made again.
    let dropped = format!("{} mbar_drop {{slot = slot1}}", takes());
    refused(&many, &dropped, expected);
    assert_eq!(run(&fills(), &dropped), Ok([10101, 101_010]));
}

#[test]
fn phases_of_the_other_parity_are_others() {
    // The producer's third box waits for nothing, on a barrier whose second phase it must wait for.
    let producer = [fill(0, 0, 1), fill(1, 1, 1), fill(2, 0, 1)].concat();
    refused(
        &producer,
        &takes(),
        "nobody ends the phase of barrier 0 in slot2",
    );
    let producer = [fill(0, 0, 0), fill(1, 1, 1), fill(2, 0, 0)].concat();
    refused(
        &producer,
        &takes(),
        "nobody ends the phase of barrier 0 in slot2",
    );
    // The program's waits for the phases that came before.
    let program = [take(0, 0, 0), take(1, 1, 0), take(2, 0, 0)].concat();
    refused(&fills(), &program, "entry 0 of slot0 holds nothing yet");
    let program = [take(0, 0, 1), take(1, 1, 0), take(2, 0, 1)].concat();
    refused(&fills(), &program, "entry 0 of slot0 holds nothing yet");
}

#[test]
fn an_entry_is_read_between_its_wait_and_its_release() {
    let late = takes().replacen(
        "v41 = shared_load",
        "release v10, v16 {slot = slot0}\nv41 = shared_load",
        1,
    );
    refused(&fills(), &late, "entry 0 of slot0 holds nothing yet");
    let early = takes().replacen("mbar_wait v11, v10 {slot = slot1}", "", 1);
    refused(&fills(), &early, "entry 1 of slot0 holds nothing yet");
}

#[test]
fn entries_are_given_back_before_they_are_filled_again() {
    let kept = takes().replacen("release v10, v16 {slot = slot0}", "", 1);
    refused(
        &fills(),
        &kept,
        "entry 0 of slot0 is filled again before it was released",
    );
    let silent = takes().replacen("mbar_arrive v10, v16 {slot = slot2}", "", 1);
    refused(
        &fills(),
        &silent,
        "nobody ends the phase of barrier 0 in slot1",
    );
}

/// A producer does one thing after the other, so that it never gets to what stands behind a wait in vain.
#[test]
fn a_producer_that_is_stuck_brings_nothing() {
    // The fourth box is let in by what the program gives back, and the third in front of it is not.
    let producer = format!("{}{}", fills(), fill(3, 1, 0));
    let program = [take(0, 0, 0), take(1, 1, 0)].concat();
    let silent = program.replacen("mbar_arrive v10, v16 {slot = slot2}", "", 1);
    let behind = "mbar_wait v11, v11 {slot = slot1}";
    refused(
        &producer,
        &format!("{silent}{behind}\nv46 = iadd v44, v44 : i32[2,4]"),
        "nobody ends the phase of barrier 1 in slot1",
    );
    // Of two waits in front of a box the first one counts as well.
    let second = "mbar_wait v10, v10 {slot = slot2}";
    let both = fills().replacen(
        second,
        &format!("{second}\nmbar_wait v11, v10 {{slot = slot2}}"),
        1,
    );
    assert_eq!(run(&both, &takes()), Ok([10101, 101_010]));
    let swapped = fills().replacen(
        second,
        &format!("mbar_wait v11, v10 {{slot = slot2}}\n{second}"),
        1,
    );
    assert_eq!(run(&swapped, &takes()), Ok([10101, 101_010]));
    let unreturned = takes().replacen("mbar_arrive v11, v16 {slot = slot2}", "", 1);
    for producer in [&both, &swapped] {
        let expected = "nobody ends the phase of barrier 0 in slot1";
        refused(producer, &unreturned, expected);
    }
    // Behind its last box it waits for ever.
    let last = format!("{}mbar_wait v10, v11 {{slot = slot2}}\n", fills());
    assert_eq!(run(&last, &takes()), Ok([10101, 101_010]));
    let kept = last_replaced(&takes(), "mbar_arrive v10, v16 {slot = slot2}", "");
    let expected = "the producer waits for barrier 0 in slot2 for ever";
    refused(&last, &kept, expected);
}

/// Nothing orders what a producer reads with what its program writes, in front of it or behind it.
#[test]
fn memory_that_a_producer_reads_is_written_by_nobody() {
    let store = |from: &str| {
        format!(
            "v60 = arange {{start = 0}} : i32[8]
            v61 = splat {from} : ptr<i32>[8]
            v62 = addptr v61, v60 : ptr<i32>[8]
            store v62, v60\n"
        )
    };
    let behind = format!("{}{}", takes(), store("v0"));
    refused(
        &fills(),
        &behind,
        "is written here and was read by a producer",
    );
    let elsewhere = store("v1");
    let elsewhere = format!("{elsewhere}barrier\n{}", takes());
    assert_eq!(run(&fills(), &elsewhere), Ok([10101, 101_010]));
}

#[test]
fn arrivals_that_nobody_asked_for_are_reported() {
    let twice = "mbar_arrive v11, v16 {slot = slot2}";
    let twice = takes().replacen(twice, &format!("{twice}\n{twice}"), 1);
    let expected = "what arrives on barrier 1 in slot2 is more than anybody waits for";
    refused(&fills(), &twice, expected);
    // An entry of a producer that ended need not be given back, as nobody fills it again.
    let last = last_replaced(&takes(), "mbar_arrive v10, v16 {slot = slot2}", "");
    assert_eq!(run(&fills(), &last), Ok([10101, 101_010]));
}
