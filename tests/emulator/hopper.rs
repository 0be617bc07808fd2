//! Kernels for Hopper written by hand, and what is reported if one thing in them is wrong: each fence, wait, arrival and commit
//! taken out, phases turned, bytes miscounted, swizzles changed.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use tilelift::emu::{
    Arg, EmuError, Fill, Launch, Memory, Module, Options, Swizzle, TensorElement, TensorMap, run,
};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/ptx/hopper")
}

pub(crate) fn text(name: &str) -> String {
    fs::read_to_string(folder().join(name)).expect("committed test data")
}

/// Bits of an f32 that is a bf16.
pub(crate) fn bf16(value: f64) -> u16 {
    let bits = (value as f32).to_bits();
    let round = 0x7fff + (bits >> 16 & 1);
    ((bits + round) >> 16) as u16
}

/// Small numbers whose sums of products are exact.
pub(crate) fn small(seed: usize, count: usize) -> Vec<f64> {
    (0..count)
        .map(|i| ((i * 7 + seed * 3 + i / 11) % 9) as f64 - 4.0)
        .collect()
}

pub(crate) fn words(values: &[u16]) -> Vec<u8> {
    values.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// A row-major matrix of bf16 and a box of it.
pub(crate) fn matrix(
    base: u64,
    [columns, rows]: [u64; 2],
    [width, height]: [u32; 2],
    swizzle: Swizzle,
) -> TensorMap {
    TensorMap {
        element: TensorElement::BF16,
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

pub(crate) fn launch(
    text: &str,
    entry: &str,
    [ctas, threads, shared]: [u32; 3],
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
        grid: [ctas, 1, 1],
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

pub(crate) fn outcome(
    report: Option<String>,
    memory: &Memory,
    out: u64,
    expected: &[u16],
) -> Outcome {
    if let Some(report) = report {
        return Outcome::Reported(report);
    }
    match memory.read(out, 2 * expected.len()) {
        Ok(found) if found == words(expected) => Outcome::Right,
        _ => Outcome::Wrong,
    }
}

/// 128 rows of 256 sums, in the registers of two groups of warps, become bf16 in device memory.
fn epilogue(text: &str, swizzle: Swizzle, seed: u64) -> Result<Outcome, Outcome> {
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
    let args = [encoded(&map)?, Arg::pointer(input)];
    let report = launch(text, "epi", [1, 256, 65536], &args, &mut memory, seed);
    Ok(outcome(report, &memory, out, &expected))
}

/// A product of 128 x 256, over more steps than the ring has stages.
pub(crate) fn gemm(text: &str, swizzle: Swizzle, seed: u64) -> Result<Outcome, Outcome> {
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
        encoded(&map(at_a, m))?,
        encoded(&map(at_b, n))?,
        Arg::pointer(out),
        Arg::from(m as u32),
        Arg::from(n as u32),
        Arg::from(k as u32),
    ];
    let report = launch(text, "gemm_ws", [1, 384, 197_728], &args, &mut memory, seed);
    Ok(outcome(report, &memory, out, &expected))
}

/// Attention over two heads of 256 rows by two CTAs that take tiles from a counter, or causal over 384 rows by one (so that its
/// rings go round).
fn attention(text: &str, entry: &str, swizzle: Swizzle, seed: u64) -> Result<Outcome, Outcome> {
    let is_causal = entry == "attention_causal";
    let (rows, heads, width, ctas) = match is_causal {
        true => (384, 1, 128, 1),
        false => (256, 2, 128, 2),
    };
    let half = |value: f64| half::f16::from_f64(value);
    let mut memory = Memory::new();
    let count = rows * heads * width;
    let values: Vec<Vec<f64>> = (1..4)
        .map(|seed| {
            crate::uniform(seed, count)
                .iter()
                .map(|&x| half(x).to_f64())
                .collect()
        })
        .collect();
    let bytes = |values: &[f64]| -> Vec<u8> {
        values.iter().flat_map(|&x| half(x).to_le_bytes()).collect()
    };
    let inputs: Vec<u64> = values
        .iter()
        .map(|values| memory.alloc_bytes(&bytes(values)))
        .collect();
    let out = memory.alloc(2 * count);
    let counter = memory.alloc_bytes(&[0; 8]);
    let map = |base: u64, box_rows: u32| {
        let map = TensorMap {
            element: TensorElement::F16,
            base,
            extents: vec![64, rows as u64, width as u64 / 64, heads as u64],
            strides: vec![2 * width as u64, 128, 2 * (rows * width) as u64],
            box_extents: vec![64, box_rows, width as u32 / 64, 1],
            element_strides: vec![1; 4],
            swizzle,
            fill: Fill::Zeros,
        };
        encoded(&map)
    };
    let scale = 1.0 / (width as f64).sqrt();
    let args = [
        map(inputs[0], 64)?,
        map(inputs[1], 128)?,
        map(inputs[2], 128)?,
        map(out, 64)?,
        Arg::from(rows as u32),
        Arg::from(heads as u32),
        Arg::from(1_u32),
        Arg::from((scale * std::f64::consts::LOG2_E) as f32),
        Arg::pointer(counter),
    ];
    let shared = 1536 * width as u32 + 256;
    if let Some(report) = launch(text, entry, [ctas, 384, shared], &args, &mut memory, seed) {
        return Ok(Outcome::Reported(report));
    }
    let (Ok(found), [q, k, v]) = (memory.read(out, 2 * count), &values[..]) else {
        return Ok(Outcome::Wrong);
    };
    let found: Vec<f64> = found
        .as_chunks::<2>()
        .0
        .iter()
        .map(|&word| half::f16::from_le_bytes(word).to_f64())
        .collect();
    let is_right = (0..rows * heads).all(|row| {
        let head = row / rows * rows;
        let keys = if is_causal { row - head + 1 } else { rows };
        let dot = |key: usize| -> f64 {
            let (row, key) = (row * width, (head + key) * width);
            (0..width).map(|i| q[row + i] * k[key + i]).sum()
        };
        let weights: Vec<f64> = (0..keys).map(|key| (dot(key) * scale).exp()).collect();
        let total: f64 = weights.iter().sum();
        (0..width).all(|i| {
            let sum: f64 = (0..keys)
                .map(|key| weights[key] * v[(head + key) * width + i])
                .sum();
            // Weights and results, both at most 1, are rounded to f16: half of 2^-10 each.
            (found[row * width + i] - sum / total).abs() < 0.001
        })
    });
    Ok(match is_right {
        true => Outcome::Right,
        false => Outcome::Wrong,
    })
}

/// The text with one of its two entries, and with a fence that it lacks: threads load Q from where the producer brings the next one, and
/// their arrival alone does not keep a copy from overtaking loads.
fn attention_text(entry: &str) -> String {
    let text = attention_without_fences(entry);
    let arrival = text.find("mbarrier.arrive.release");
    let arrival = arrival.expect("Q has been read");
    let place = text[..arrival].rfind("// begin inline asm");
    let (before, behind) = text.split_at(place.expect("an arrival"));
    format!("{before}fence.proxy.async.shared::cta; {behind}")
}

fn attention_without_fences(entry: &str) -> String {
    let text = text("attention_ws.ptx");
    let entries = text.find(".visible .entry").expect("an entry");
    let second = text
        .find(".visible .entry attention_causal")
        .expect("two entries");
    match entry {
        "attention_causal" => format!("{}{}", &text[..entries], &text[second..]),
        _ => text[..second].to_owned(),
    }
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
pub(crate) struct Faulty {
    pub(crate) line: usize,
    pub(crate) what: String,
    pub(crate) text: String,
}

pub(crate) fn replaced(text: &str, line: usize, (at, length): (usize, usize), by: &str) -> String {
    let lines = text.lines().enumerate().map(|(i, whole)| match i == line {
        true => format!("{}{by}{}", &whole[..at], &whole[at + length..]),
        false => whole.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

const TAKEN_OUT: &[&str] = &[
    "wgmma.fence",
    "fence.",
    "bar.sync",
    "bar.arrive",
    "barrier.cluster",
    "mbarrier.init",
    "mbarrier.arrive",
    "wgmma.commit_group",
    "wgmma.wait_group",
    "cp.async.bulk.commit_group",
    "cp.async.bulk.wait_group",
];

pub(crate) fn faults(text: &str) -> Vec<Faulty> {
    let mut all = Vec::new();
    for (line, whole) in text.lines().enumerate() {
        for (at, statement) in statements(whole) {
            let end = at + statement.len();
            let of = |name: &str| {
                let found = at + statement.find(name)?;
                let guard = whole[at..found].rfind('@').map(|guard| at + guard);
                Some((guard.unwrap_or(found), found))
            };
            let mut add = |what: String, start: usize, by: &str| {
                let text = replaced(text, line, (start, end - start), by);
                all.push(Faulty {
                    line: line + 1,
                    what,
                    text,
                });
            };
            if let Some((start, _)) = TAKEN_OUT.iter().find_map(|name| of(name)) {
                let what = format!("without `{}`", whole[start..end].trim_end_matches(';'));
                add(what, start, "");
            }
            // The last operand of these.
            let last = at + statement.rfind(',').map_or(0, |comma| comma + 1);
            if let Some((start, found)) = of("mbarrier.try_wait") {
                let wait = whole[start..end].trim_end_matches(';');
                let operands = whole[found..end].split_whitespace().nth(1);
                let predicate = operands.and_then(|text| text.split(',').next());
                let holds = format!("setp.eq.u32 {},0,0;", predicate.expect("a predicate"));
                add(format!("without `{wait}`"), start, &holds);
                let (head, parity) = (&whole[start..last], &whole[last..end - 1]);
                let turned =
                    format!("{{.reg .b32 turned; xor.b32 turned,{parity},1; {head} turned;}}");
                add(format!("`{wait}` with the other parity"), start, &turned);
            }
            if let Some((start, _)) = of("mbarrier.arrive.expect_tx") {
                let (head, bytes) = (&whole[start..last], &whole[last..end - 1]);
                for change in [16, -16] {
                    let by = format!(
                        "{{.reg .b32 bytes; mov.b32 bytes,{bytes}; add.s32 bytes,bytes,{change}; {head} bytes;}}"
                    );
                    add(format!("{change:+} bytes expected"), start, &by);
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
    (
        "attention_full",
        "without `wgmma.fence.sync.aligned`",
        "behind the fence before the other product nothing but addresses is computed",
    ),
    (
        "attention_full",
        "without `mbarrier.try_wait.parity.shared::cta.b64 p,[%r821],%r984`",
        "the first wait for a fresh barrier, which it passes at once",
    ),
    (
        "attention_causal",
        "without `wgmma.fence.sync.aligned`",
        "behind the fence before the other product nothing but addresses is computed",
    ),
    (
        "attention_causal",
        "without `mbarrier.try_wait.parity.shared::cta.b64 p,[%r868],%r1031`",
        "the first wait for a fresh barrier, which it passes at once",
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

pub(crate) type Kernel = fn(&str, Swizzle, u64) -> Result<Outcome, Outcome>;

/// A map as an argument; what is reported where none can be.
pub(crate) fn encoded(map: &TensorMap) -> Result<Arg, Outcome> {
    let map = map.encode();
    map.map(|map| Arg::bytes(&map))
        .map_err(|error| Outcome::Reported(error.to_string()))
}

pub(crate) fn either(outcome: Result<Outcome, Outcome>) -> Outcome {
    outcome.unwrap_or_else(|reported| reported)
}

/// The table of faults of a kernel; panics where one is not found and no reason says why that is right.
pub(crate) fn table(name: &str, kernel: Kernel, seeds: u64) -> String {
    let text = match name {
        "attention_full" | "attention_causal" => attention_text(name),
        _ => text(name),
    };
    let mut all: Vec<(usize, String, Outcome)> = faults(&text)
        .into_iter()
        .map(|faulty| {
            let outcome = verdict(
                |seed| either(kernel(&faulty.text, Swizzle::Bytes128, seed)),
                seeds,
            );
            (faulty.line, faulty.what, outcome)
        })
        .collect();
    for (swizzle, what) in [
        (Swizzle::None, "without swizzle"),
        (Swizzle::Bytes64, "with a swizzle of 64 bytes"),
        (Swizzle::Bytes32, "with a swizzle of 32 bytes"),
    ] {
        let outcome = verdict(|seed| either(kernel(&text, swizzle, seed)), 1);
        all.push((0, format!("tensor maps {what}"), outcome));
    }
    let descriptor = "4611686293305360384";
    for (code, what) in [(0_u64, "none"), (2, "64 bytes"), (3, "32 bytes")] {
        if text.contains(descriptor) {
            let value = (4_611_686_293_305_360_384 & ((1 << 62) - 1)) | code << 62;
            let changed = text.replace(descriptor, &value.to_string());
            let outcome = verdict(|seed| either(kernel(&changed, Swizzle::Bytes128, seed)), 1);
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
        let found = either(epilogue(&text("epilogue_tma.ptx"), Swizzle::Bytes128, seed));
        assert_eq!(found, Outcome::Right, "{seed}");
    }
}

#[test]
fn the_product_agrees() {
    for seed in 0..3 {
        let found = either(gemm(&text("gemm_ws.ptx"), Swizzle::Bytes128, seed));
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

#[test]
fn attention_agrees() {
    for entry in ["attention_full", "attention_causal"] {
        for seed in 0..2 {
            let found = either(attention(
                &attention_text(entry),
                entry,
                Swizzle::Bytes128,
                seed,
            ));
            assert_eq!(found, Outcome::Right, "{entry} {seed}");
        }
    }
}

#[test]
fn faults_of_attention_are_found() {
    let full: Kernel = |text, swizzle, seed| attention(text, "attention_full", swizzle, seed);
    compare("attention_full.faults", &table("attention_full", full, 2));
    let causal: Kernel = |text, swizzle, seed| attention(text, "attention_causal", swizzle, seed);
    compare(
        "attention_causal.faults",
        &table("attention_causal", causal, 2),
    );
}
