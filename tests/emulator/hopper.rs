//! Kernels for Hopper written by hand, and what is reported if one thing in them is wrong: each fence, wait, arrival and commit
//! taken out, phases turned, bytes miscounted, swizzles changed.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use tilelift::emu::{
    Arg, Element, EmuError, Fill, Launch, Memory, Module, Options, Swizzle, TensorMap, run,
};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/ptx/hopper")
}

pub(crate) fn text(name: &str) -> String {
    fs::read_to_string(folder().join(name)).expect("committed test data")
}

/// Bits of an f32 that is a bf16.
fn bf16(value: f64) -> u16 {
    let bits = (value as f32).to_bits();
    let round = 0x7fff + (bits >> 16 & 1);
    ((bits + round) >> 16) as u16
}

/// Small numbers whose sums of products are exact.
fn small(seed: usize, count: usize) -> Vec<f64> {
    (0..count)
        .map(|i| ((i * 7 + seed * 3 + i / 11) % 9) as f64 - 4.0)
        .collect()
}

fn words(values: &[u16]) -> Vec<u8> {
    values.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// A row-major matrix of bf16 and a box of it.
fn matrix(
    base: u64,
    [columns, rows]: [u64; 2],
    [width, height]: [u32; 2],
    swizzle: Swizzle,
) -> TensorMap {
    TensorMap {
        element: Element::BF16,
        base,
        extents: vec![columns, rows],
        strides: vec![columns * 2],
        box_extents: vec![width, height],
        element_strides: vec![1, 1],
        swizzle,
        fill: Fill::Zeros,
    }
}

/// What a run gave: nothing wrong, a wrong result, or a report.
#[derive(Debug, PartialEq)]
pub(crate) enum Outcome {
    Right,
    Wrong,
    Reported(String),
}

fn launch(
    text: &str,
    entry: &str,
    grid: [u32; 3],
    threads: u32,
    shared: u32,
    args: &[Arg],
    memory: &mut Memory,
    seed: u64,
) -> Option<String> {
    let module = Module::parse(text).unwrap_or_else(|error| panic!("{error}"));
    let options = Options {
        seed,
        ..Options::default()
    };
    let launch = Launch {
        grid,
        block: [threads, 1, 1],
        shared_bytes: shared,
        args,
        options,
    };
    match run(&module, entry, &launch, memory) {
        Ok(_) => None,
        Err(EmuError::Fault { at, fault }) => Some(format!("line {}: {fault}", at.line)),
        Err(error) => panic!("{error}"),
    }
}

fn outcome(report: Option<String>, memory: &Memory, out: u64, expected: &[u16]) -> Outcome {
    if let Some(report) = report {
        return Outcome::Reported(report);
    }
    match memory.read(out, 2 * expected.len()) {
        Ok(found) if found == words(expected) => Outcome::Right,
        _ => Outcome::Wrong,
    }
}

/// 128 rows of 256 sums, in the registers of two groups of warps, become bf16 in device memory.
fn epilogue(text: &str, swizzle: Swizzle, seed: u64) -> Outcome {
    let (rows, columns) = (128, 256);
    let mut memory = Memory::new();
    let sums = small(5, rows * columns);
    let bytes: Vec<u8> = sums
        .iter()
        .flat_map(|&x| (x as f32).to_le_bytes())
        .collect();
    let input = memory.alloc_bytes(&bytes);
    // Rows past the 120th are outside of the tensor.
    let inside = 120;
    let out = memory.alloc_bytes(&words(&vec![7; rows * columns]));
    let mut expected = vec![7_u16; rows * columns];
    for thread in 0..256 {
        for i in 0..128 {
            let (warp, lane) = (thread / 32, thread % 32);
            let row = 16 * warp + lane / 4 + 8 * (i >> 1 & 1);
            let column = 8 * (i >> 2) + 2 * (lane % 4) + (i & 1);
            if row < inside {
                expected[row * columns + column] = bf16(sums[thread * 128 + i]);
            }
        }
    }
    let map = matrix(out, [columns as u64, inside as u64], [64, 64], swizzle);
    let args = [
        Arg::bytes(&map.encode().expect("a map that can be")),
        Arg::pointer(input),
    ];
    let report = launch(text, "epi", [1, 1, 1], 256, 65536, &args, &mut memory, seed);
    outcome(report, &memory, out, &expected)
}

/// A product of 128 x 256, over more steps than the ring has stages.
pub(crate) fn gemm(text: &str, swizzle: Swizzle, seed: u64) -> Outcome {
    let (m, n, k) = (128, 256, 64 * 6);
    let mut memory = Memory::new();
    let (a, b) = (small(1, m * k), small(2, n * k));
    let bytes = |values: &[f64]| words(&values.iter().map(|&x| bf16(x)).collect::<Vec<_>>());
    let (at_a, at_b) = (
        memory.alloc_bytes(&bytes(&a)),
        memory.alloc_bytes(&bytes(&b)),
    );
    let out = memory.alloc(2 * m * n);
    let expected: Vec<u16> = (0..m * n)
        .map(|i| {
            let (row, column) = (i / n * k, i % n * k);
            bf16((0..k).map(|j| a[row + j] * b[column + j]).sum())
        })
        .collect();
    let map = |at, rows: usize| matrix(at, [k as u64, rows as u64], [64, rows as u32], swizzle);
    let args = [
        Arg::bytes(&map(at_a, m).encode().expect("a map that can be")),
        Arg::bytes(&map(at_b, n).encode().expect("a map that can be")),
        Arg::pointer(out),
        Arg::from(m as u32),
        Arg::from(n as u32),
        Arg::from(k as u32),
    ];
    let report = launch(
        text,
        "gemm_ws",
        [1, 1, 1],
        384,
        197_728,
        &args,
        &mut memory,
        seed,
    );
    outcome(report, &memory, out, &expected)
}

/// The statements of a line without comment, each with where it starts.
fn statements(line: &str) -> Vec<(usize, &str)> {
    let code = line.split("//").next().unwrap_or_default();
    let mut start = 0;
    code.split_inclusive(';')
        .map(|part| {
            let at = start;
            start += part.len();
            (at, part)
        })
        .collect()
}

/// A text with one thing wrong: the line, what was done, the text.
struct Faulty {
    line: usize,
    what: String,
    text: String,
}

fn replaced(text: &str, line: usize, (at, length): (usize, usize), by: &str) -> String {
    let lines = text.lines().enumerate().map(|(i, whole)| match i == line {
        true => format!("{}{by}{}", &whole[..at], &whole[at + length..]),
        false => whole.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

pub(crate) const TAKEN_OUT: &[&str] = &[
    "wgmma.fence",
    "fence.",
    "bar.sync",
    "mbarrier.init",
    "mbarrier.arrive",
    "wgmma.commit_group",
    "wgmma.wait_group",
    "cp.async.bulk.commit_group",
    "cp.async.bulk.wait_group",
];

fn faults(text: &str) -> Vec<Faulty> {
    let mut all = Vec::new();
    for (line, whole) in text.lines().enumerate() {
        for (at, statement) in statements(whole) {
            let end = at + statement.len();
            let mut add = |what: String, range: (usize, usize), by: &str| {
                let text = replaced(text, line, range, by);
                all.push(Faulty {
                    line: line + 1,
                    what,
                    text,
                });
            };
            if let Some(name) = TAKEN_OUT.iter().find(|name| statement.contains(*name)) {
                let found = at + statement.find(*name).expect("it is there");
                let found = match whole[at..found].rfind('@') {
                    Some(guard) => at + guard,
                    None => found,
                };
                let what = format!("without `{}`", whole[found..end].trim_end_matches(';'));
                add(what, (found, end - found), "");
            }
            if let Some(found) = statement.find("mbarrier.try_wait") {
                let found = at + found;
                let wait = &whole[found..end];
                add(
                    format!("without `{}`", wait.trim_end_matches(';')),
                    (found, end - found),
                    "setp.eq.u32 %p5,0,0;",
                );
                let comma = end
                    - 1
                    - wait[..wait.len() - 1]
                        .chars()
                        .rev()
                        .take_while(|&c| c != ',')
                        .count();
                let parity = &whole[comma..end - 1];
                let turned = format!("xor.b32 %r63,{parity},1; {}%r63;", &whole[found..comma]);
                add(
                    format!("`{}` with the other parity", wait.trim_end_matches(';')),
                    (found, end - found),
                    &turned,
                );
            }
            if statement.contains("expect_tx") {
                let comma = at + statement.rfind(',').expect("bytes") + 1;
                let bytes: i64 = whole[comma..end - 1].parse().expect("a number");
                for change in [16, -16] {
                    let by = (bytes + change).to_string();
                    add(
                        format!("{change:+} bytes expected"),
                        (comma, end - 1 - comma),
                        &by,
                    );
                }
            }
        }
    }
    all
}

/// Why something that is not reported does no harm, by the kernel and the beginning of what was done.
const HARMLESS: &[(&str, &str, &str)] = &[
    (
        "epilogue_tma.ptx",
        "without `@%p0 cp.async.bulk.wait_group.read 0`",
        "no store is under way where the only tile begins",
    ),
    (
        "epilogue_tma.ptx",
        "without `bar.sync %r13,128`",
        "the barrier passes on that wait, which waits for nothing",
    ),
];

/// What is wrong under any of a few seeds; a report counts more than a wrong result.
pub(crate) fn verdict(run: impl Fn(u64) -> Outcome, seeds: u64) -> Outcome {
    let mut verdict = Outcome::Right;
    for seed in 0..seeds {
        match run(seed) {
            Outcome::Right => {}
            Outcome::Wrong => verdict = Outcome::Wrong,
            reported => return reported,
        }
    }
    verdict
}

type Kernel = fn(&str, Swizzle, u64) -> Outcome;

/// The table of faults of a kernel; panics where one is not found and no reason says why that is right.
fn table(name: &str, kernel: Kernel, seeds: u64) -> String {
    let text = text(name);
    let mut all: Vec<(usize, String, Outcome)> = faults(&text)
        .into_iter()
        .map(|faulty| {
            let outcome = verdict(|seed| kernel(&faulty.text, Swizzle::Bytes128, seed), seeds);
            (faulty.line, faulty.what, outcome)
        })
        .collect();
    let plain = verdict(|seed| kernel(&text, Swizzle::None, seed), 1);
    all.push((0, "tensor maps without swizzle".to_owned(), plain));
    let descriptor = "4611686293305360384";
    for (code, what) in [(0_u64, "none"), (2, "64 bytes"), (3, "32 bytes")] {
        if text.contains(descriptor) {
            let value = (4_611_686_293_305_360_384 & (1 << 62) - 1) | code << 62;
            let changed = text.replace(descriptor, &value.to_string());
            let outcome = verdict(|seed| kernel(&changed, Swizzle::Bytes128, seed), 1);
            all.push((0, format!("descriptors with a swizzle of {what}"), outcome));
        }
    }
    let mut out = String::new();
    for (line, what, outcome) in all {
        let verdict = match outcome {
            Outcome::Reported(report) => format!("reported: {report}"),
            Outcome::Wrong => "shows: the result is wrong".to_owned(),
            Outcome::Right => {
                let reason = HARMLESS
                    .iter()
                    .find(|(of, start, _)| *of == name && what.starts_with(start));
                match reason {
                    Some((_, _, reason)) => format!("harmless: {reason}"),
                    None => "MISSED".to_owned(),
                }
            }
        };
        let _ = writeln!(out, "{name} | {line} | {what} | {verdict}");
    }
    out
}

/// Compares with what is committed; with `BLESS` set writes it.
pub(crate) fn compare(name: &str, found: &str) {
    let path = folder().join(name);
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, found).expect("the folder can be written");
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert!(!found.contains("MISSED"), "{found}");
    assert_eq!(found, expected);
}

#[test]
fn the_epilogue_agrees() {
    for seed in 0..9 {
        let found = epilogue(&text("epilogue_tma.ptx"), Swizzle::Bytes128, seed);
        assert_eq!(found, Outcome::Right, "{seed}");
    }
}

#[test]
fn the_product_agrees() {
    for seed in 0..3 {
        let found = gemm(&text("gemm_ws.ptx"), Swizzle::Bytes128, seed);
        assert_eq!(found, Outcome::Right, "{seed}");
    }
}

#[test]
fn faults_of_the_epilogue_are_found() {
    compare(
        "epilogue_tma.faults",
        &table("epilogue_tma.ptx", epilogue, 6),
    );
}

#[test]
fn faults_of_the_product_are_found() {
    compare("gemm_ws.faults", &table("gemm_ws.ptx", gemm, 3));
}
