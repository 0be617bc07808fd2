//! Kernels for sm_90a that were written by hand (`tests/ptx/hand`): a product of matrices and attention, with groups of warps that
//! load and others that multiply. They run, and mistakes made in them on purpose are reported.

use std::fs;
use std::path::Path;

use tilelift::emu::{
    Arg, Element, EmuError, Fault, Fill, Launch, Memory, Module, Options, Swizzle, TensorMap, run,
};
use tilelift::num::{Rounding, bf16};

use crate::triton::{close, f16_bytes, read_f16, rounded_f16};
use crate::uniform;

fn text(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ptx/hand");
    fs::read_to_string(folder.join(name)).expect("committed test data")
}

/// A matrix of 16-bit elements by rows, as boxes of so many rows and 64 columns.
fn map(element: Element, base: u64, rows: usize, columns: usize, box_rows: u32) -> TensorMap {
    TensorMap {
        element,
        base,
        extents: vec![columns as u64, rows as u64],
        strides: vec![2 * columns as u64],
        box_extents: vec![64, box_rows],
        element_strides: vec![1, 1],
        swizzle: Swizzle::Bytes128,
        fill: Fill::Zeros,
    }
}

fn parameter(map: &TensorMap) -> Arg {
    Arg::bytes(&map.encode().expect("a map that hardware takes"))
}

/// Extents of the product: steps of 64 in the summed dimension, and rows and columns of tiles.
#[derive(Clone, Copy)]
struct Extents {
    steps: usize,
    rows: usize,
    columns: usize,
}

/// Runs the product on small whole numbers; whether the result is right.
fn gemm(text: &str, extents: Extents, swizzle: Swizzle, seed: u64) -> Result<bool, EmuError> {
    let module = Module::parse(text).unwrap_or_else(|error| panic!("{error}"));
    let (m, n, k) = (
        128 * extents.rows,
        256 * extents.columns,
        64 * extents.steps,
    );
    let whole = |seed, count| -> Vec<f64> {
        let numbers = uniform(seed, count);
        numbers.iter().map(|x| (x * 2.0).round()).collect()
    };
    let (a, b) = (whole(51, m * k), whole(52, n * k));
    let bytes = |values: &[f64]| -> Vec<u8> {
        let halves = values
            .iter()
            .map(|&x| bf16::from_f64(x, Rounding::NearestEven));
        halves.flat_map(u16::to_le_bytes).collect()
    };
    let mut memory = Memory::new();
    let (x, y) = (
        memory.alloc_bytes(&bytes(&a)),
        memory.alloc_bytes(&bytes(&b)),
    );
    let out = memory.alloc(2 * m * n);
    let left = TensorMap {
        swizzle,
        ..map(Element::BF16, x, m, k, 128)
    };
    let mut args = [left, map(Element::BF16, y, n, k, 256)]
        .each_ref()
        .map(parameter)
        .to_vec();
    args.push(Arg::pointer(out));
    args.extend([m, n, k].map(|extent| Arg::from(extent as u32)));
    let launch = Launch {
        grid: [extents.rows as u32, extents.columns as u32, 1],
        block: [384, 1, 1],
        shared_bytes: 197_728,
        args: &args,
        options: Options {
            seed,
            ..Options::default()
        },
    };
    run(&module, "gemm_ws", &launch, &mut memory)?;
    let Ok(found) = memory.read(out, 2 * m * n) else {
        return Ok(false);
    };
    // The summed dimension innermost of both; sums of whole numbers are exact.
    let is_right = found
        .as_chunks::<2>()
        .0
        .iter()
        .enumerate()
        .all(|(i, &half)| {
            let (row, column) = (i / n, i % n);
            let terms = a[row * k..][..k].iter().zip(&b[column * k..][..k]);
            let sum: f64 = terms.map(|(x, y)| x * y).sum();
            u16::from_le_bytes(half) == bf16::from_f64(sum, Rounding::NearestEven)
        });
    Ok(is_right)
}

const SMALL: Extents = Extents {
    steps: 10,
    rows: 1,
    columns: 1,
};

#[test]
fn the_product_is_right() {
    let text = text("gemm_ws.ptx");
    for seed in 0..6 {
        let found = gemm(&text, SMALL, Swizzle::Bytes128, seed);
        assert_eq!(found, Ok(true), "seed {seed}");
    }
    let several = Extents {
        steps: 2,
        rows: 2,
        columns: 2,
    };
    assert_eq!(gemm(&text, several, Swizzle::Bytes128, 1), Ok(true));
}

/// What becomes of a mistake.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Verdict {
    /// The emulator reports it, under every seed.
    Reported,
    /// The result is wrong.
    Wrong,
    /// Nothing happens, and why nothing can.
    Harmless(&'static str),
}

use Verdict::{Harmless, Reported, Wrong};

/// Mistakes: what stands in the text, what in its place, and what must become of that.
const MISTAKES: &[(&str, &str, Verdict)] = &[
    ("fence.mbarrier_init.release.cluster;", "", Reported),
    ("INITDONE: bar.sync 0;", "INITDONE:", Reported),
    ("[%r6+0],1;", "[%r6+0],2;", Reported),
    ("[%r6+8],2;", "[%r6+8],1;", Reported),
    ("[%r6+8],2;", "[%r6+8],3;", Reported),
    ("setmaxnreg.dec.sync.aligned.u32 40;", "", Reported),
    (
        "setmaxnreg.dec.sync.aligned.u32 40;",
        "setmaxnreg.dec.sync.aligned.u32 48;",
        Reported,
    ),
    (
        "setmaxnreg.inc.sync.aligned.u32 232;",
        "setmaxnreg.inc.sync.aligned.u32 240;",
        Reported,
    ),
    (
        "setmaxnreg.inc.sync.aligned.u32 232;",
        "",
        Harmless("PTX has as many registers as it names; the assembler spills"),
    ),
    ("@!%p5 bra PW;", "", Reported),
    ("xor.b32 %r13,%r10,1;", "mov.b32 %r13,%r10;", Reported),
    (
        "mbarrier.arrive.expect_tx.shared::cta.b64 _,[%r12],49152;",
        "",
        Reported,
    ),
    ("[%r12],49152;", "[%r12],49168;", Reported),
    ("[%r12],49152;", "[%r12],49136;", Reported),
    (
        "mbarrier.arrive.expect_tx.shared::cta.b64 _,[%r12],49152;",
        "mbarrier.arrive.shared::cta.b64 _,[%r12];",
        Reported,
    ),
    (
        "mbarrier.arrive.expect_tx.shared::cta.b64 _,[%r12],49152;",
        "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r12],49152;",
        Reported,
    ),
    (
        "[%r14],[%rd0,{%r16,%r4}],[%r12];",
        "[%r14],[%rd0,{%r16,%r4}],[%r12+8];",
        Reported,
    ),
    (
        "[%r15+65536],[%rd1,{%r16,%r5}],[%r12];",
        "[%r15+65552],[%rd1,{%r16,%r5}],[%r12];",
        Reported,
    ),
    ("@!%p5 bra CW;", "", Reported),
    (
        "[%r12],%r10; @!%p5 bra CW;",
        "[%r12],%r13; @!%p5 bra CW;",
        Reported,
    ),
    ("wgmma.fence.sync.aligned;", "", Reported),
    ("wgmma.commit_group.sync.aligned;", "", Reported),
    ("wgmma.wait_group.sync.aligned 1;", "", Reported),
    (
        "wgmma.wait_group.sync.aligned 1;",
        "wgmma.wait_group.sync.aligned 2;",
        Reported,
    ),
    (
        "wgmma.wait_group.sync.aligned 1;",
        "wgmma.wait_group.sync.aligned 0;",
        Harmless("it waits for more than it must"),
    ),
    (
        "@%p6 mbarrier.arrive.release.cta.shared::cta.b64 _,[%r23+8];",
        "",
        Reported,
    ),
    ("_,[%r23+8];", "_,[%r12+8];", Reported),
    (
        "mbarrier.arrive.release.cta.shared::cta.b64 _,[%r23+8];",
        "mbarrier.arrive.relaxed.cta.shared::cta.b64 _,[%r23+8];",
        Reported,
    ),
    ("EPI: wgmma.wait_group.sync.aligned 0;", "EPI:", Reported),
    ("mov.pred %p3,1;", "", Wrong),
    // The first phase bit that flips is the producer's, the second one the consumers'.
    (
        "xor.b32 %r10,%r10,%r17;\nbra PLOOP;",
        "bra PLOOP;",
        Reported,
    ),
    (
        "xor.b32 %r10,%r10,%r17;\nbra CLOOP;",
        "bra CLOOP;",
        Reported,
    ),
    // 64-byte and no exchange of chunks, in the descriptors of both operands.
    ("4611686293305360384;", "9223372311732748288;", Reported),
    ("4611686293305360384;", "274877972480;", Reported),
    ("add.u64 %rd9,%rd5,2;", "add.u64 %rd9,%rd5,4;", Wrong),
    (
        "mul.wide.u32 %rd5,%r9,1024;",
        "mul.wide.u32 %rd5,%r9,1025;",
        Reported,
    ),
    (
        "fence.mbarrier_init.release.cluster;",
        "fence.proxy.async;",
        Harmless("the wider fence"),
    ),
];

/// The table of mistakes: text, line, mistake, verdict; printed with `--nocapture`.
#[test]
fn mistakes_in_the_product_are_reported() {
    let text = text("gemm_ws.ptx");
    let mut wrong = Vec::new();
    for &(from, to, wanted) in MISTAKES {
        let at = text
            .find(from)
            .unwrap_or_else(|| panic!("`{from}` is not in the text"));
        let line = text[..at].lines().count() + usize::from(text[..at].ends_with('\n'));
        let changed = text.replacen(from, to, 1);
        let mut verdicts = Vec::new();
        let mut words = String::new();
        for seed in 0..4 {
            let found = gemm(&changed, SMALL, Swizzle::Bytes128, seed);
            verdicts.push(match (found, wanted) {
                (Err(error), _) => {
                    words = error.to_string();
                    Reported
                }
                (Ok(false), _) => Wrong,
                (Ok(true), Harmless(_)) => wanted,
                (Ok(true), _) => Harmless("nothing was noticed"),
            });
        }
        words.truncate(
            words
                .char_indices()
                .nth(150)
                .map_or(words.len(), |(at, _)| at),
        );
        let change = if to.is_empty() {
            "taken out".to_owned()
        } else {
            format!("-> {to}")
        };
        eprintln!(
            "gemm_ws.ptx | {line} | {from} {change} | {:?} {words}",
            verdicts[0]
        );
        if verdicts.iter().any(|verdict| *verdict != wanted) {
            wrong.push(format!(
                "line {line}: {from} {change}: {verdicts:?}, not {wanted:?} {words}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A map whose exchange is not that of the descriptor.
#[test]
fn operands_exchanged_otherwise_are_wrong() {
    let text = text("gemm_ws.ptx");
    // Without an exchange a box is as wide as it likes; the result shows it.
    let found = gemm(&text, SMALL, Swizzle::None, 0);
    assert_eq!(found, Ok(false));
}

#[test]
fn attention_is_right() {
    let module = Module::parse(&text("attention_ws.ptx")).unwrap_or_else(|error| panic!("{error}"));
    let (heads, length, depth) = (2, 256, 128);
    let count = heads * length * depth;
    let inputs = [61, 62, 63].map(|seed| rounded_f16(&uniform(seed, count)));
    let scale = 0.125;
    for (entry, is_causal, seed) in [
        ("attention_full", false, 0),
        ("attention_full", false, 1),
        ("attention_causal", true, 0),
        ("attention_causal", true, 2),
    ] {
        let mut memory = Memory::new();
        let mut places = inputs
            .each_ref()
            .map(|x| memory.alloc_bytes(&f16_bytes(x)))
            .to_vec();
        places.push(memory.alloc(2 * count));
        let maps = places
            .iter()
            .zip([64, 128, 128, 64])
            .map(|(&base, rows)| TensorMap {
                element: Element::F16,
                base,
                extents: vec![64, length as u64, depth as u64 / 64, heads as u64],
                strides: vec![2 * depth as u64, 128, 2 * (length * depth) as u64],
                box_extents: vec![64, rows, depth as u32 / 64, 1],
                element_strides: vec![1; 4],
                swizzle: Swizzle::Bytes128,
                fill: Fill::Zeros,
            });
        let mut args: Vec<Arg> = maps.map(|map| parameter(&map)).collect();
        args.extend([length, heads, 1].map(|x| Arg::from(x as u32)));
        args.extend([Arg::from(scale as f32), Arg::pointer(0)]);
        let launch = Launch {
            grid: [3, 1, 1],
            block: [384, 1, 1],
            shared_bytes: 1536 * depth as u32 + 256,
            args: &args,
            options: Options {
                seed,
                ..Options::default()
            },
        };
        run(&module, entry, &launch, &mut memory)
            .unwrap_or_else(|error| panic!("{entry}: {error}"));
        let found = read_f16(&memory, places[3], count);
        let [q, k, v] = &inputs;
        let mut wanted = vec![0.0; count];
        for head in 0..heads {
            let at = head * length * depth;
            for row in 0..length {
                let row_at = at + row * depth;
                let keys = if is_causal { row + 1 } else { length };
                let scores: Vec<f64> = (0..keys)
                    .map(|key| {
                        let pairs = q[row_at..][..depth]
                            .iter()
                            .zip(&k[at + key * depth..][..depth]);
                        (scale * pairs.map(|(x, y)| x * y).sum::<f64>()).exp2()
                    })
                    .collect();
                let total: f64 = scores.iter().sum();
                for (key, score) in scores.iter().enumerate() {
                    for d in 0..depth {
                        wanted[row_at + d] += score / total * v[at + key * depth + d];
                    }
                }
            }
        }
        // Weights are at most 1 and rounded to f16, as results are; values are below 1.
        close(&found, &wanted, 0.0, (-10f64).exp2());
    }
}

/// The time that the emulator takes is no part of the test; `benches/emulator.rs` measures.
#[test]
fn a_fault_names_its_line() {
    let text = text("gemm_ws.ptx").replacen("EPI: wgmma.wait_group.sync.aligned 0;", "EPI:", 1);
    let error = gemm(&text, SMALL, Swizzle::Bytes128, 0).expect_err("the wait is missing");
    assert!(
        matches!(error.fault(), Some(Fault::InFlight { name, .. }) if name == "%d1"),
        "{error}"
    );
}
