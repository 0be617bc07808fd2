//! Kernels for Hopper written by hand, beyond what `hopper` does to each statement: mistakes in the product that take more than
//! leaving something out, and attention, whose groups of warps have three rings between them.

use tilelift::emu::{Arg, Element, Fill, Launch, Memory, Module, Options, Swizzle, TensorMap, run};

use crate::hopper::{Outcome, TAKEN_OUT, compare, gemm, text, verdict};
use crate::triton::{f16_bytes, read_f16, rounded_f16};
use crate::uniform;

/// What becomes of a mistake.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Verdict {
    Reported,
    /// The result is wrong.
    Wrong,
    /// Nothing happens, and why nothing can.
    Harmless(&'static str),
}

use Verdict::{Harmless, Reported, Wrong};

const EXPECT: &str = "mbarrier.arrive.expect_tx.shared::cta.b64 _,[%r12],49152;";

/// Mistakes: what stands in the text, what in its place, and what must become of that.
const MISTAKES: &[(&str, &str, Verdict)] = &[
    ("[%r6+0],1;", "[%r6+0],2;", Reported),
    ("[%r6+8],2;", "[%r6+8],1;", Reported),
    ("[%r6+8],2;", "[%r6+8],3;", Reported),
    ("setmaxnreg.dec.sync.aligned.u32 40;", "", Reported),
    ("aligned.u32 40;", "aligned.u32 48;", Reported),
    ("aligned.u32 232;", "aligned.u32 240;", Reported),
    (
        "setmaxnreg.inc.sync.aligned.u32 232;",
        "",
        Harmless("PTX has as many registers as it names; the assembler spills"),
    ),
    (
        EXPECT,
        "mbarrier.arrive.shared::cta.b64 _,[%r12];",
        Reported,
    ),
    (
        EXPECT,
        "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r12],49152;",
        Reported,
    ),
    ("{%r16,%r4}],[%r12];", "{%r16,%r4}],[%r12+8];", Reported),
    ("[%r15+65536]", "[%r15+65552]", Reported),
    (
        "wait_group.sync.aligned 1;",
        "wait_group.sync.aligned 2;",
        Reported,
    ),
    (
        "wait_group.sync.aligned 1;",
        "wait_group.sync.aligned 0;",
        Harmless("it waits for more than it must"),
    ),
    ("_,[%r23+8];", "_,[%r12+8];", Reported),
    (
        "mbarrier.arrive.release.cta",
        "mbarrier.arrive.relaxed.cta",
        Reported,
    ),
    ("mov.pred %p3,1;", "", Wrong),
    // The producer's phase, then that of the consumers.
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

/// Prints its table with `--nocapture`.
#[test]
fn mistakes_in_the_product_are_found() {
    let text = text("gemm_ws.ptx");
    let mut wrong = Vec::new();
    for &(from, to, wanted) in MISTAKES {
        let at = text
            .find(from)
            .unwrap_or_else(|| panic!("`{from}` is not in the text"));
        let line = 1 + text[..at].matches('\n').count();
        let changed = text.replacen(from, to, 1);
        let found = verdict(|seed| gemm(&changed, Swizzle::Bytes128, seed), 3);
        eprintln!("gemm_ws.ptx | {line} | {from} -> {to} | {found:?}");
        let is_wanted = match wanted {
            Reported => matches!(found, Outcome::Reported(_)),
            Wrong => found == Outcome::Wrong,
            Harmless(_) => found == Outcome::Right,
        };
        if !is_wanted {
            wrong.push(format!(
                "line {line}: {from} -> {to}: {found:?}, not {wanted:?}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Attention of so many heads over 256 rows of 128 numbers, by one CTA or more that take tiles in turn.
fn attention(text: &str, entry: &str, heads: usize, ctas: u32, seed: u64) -> Outcome {
    let (length, depth, scale) = (256, 128, 0.125);
    let is_causal = entry == "attention_causal";
    let module = Module::parse(text).unwrap_or_else(|error| panic!("{error}"));
    let count = heads * length * depth;
    let inputs = [61, 62, 63].map(|seed| rounded_f16(&uniform(seed, count)));
    let mut memory = Memory::new();
    let mut places = inputs
        .each_ref()
        .map(|x| memory.alloc_bytes(&f16_bytes(x)))
        .to_vec();
    places.push(memory.alloc(2 * count));
    let maps = places.iter().zip([64, 128, 128, 64]);
    let maps = maps.map(|(&base, rows)| TensorMap {
        element: Element::F16,
        base,
        extents: vec![64, length as u64, depth as u64 / 64, heads as u64],
        strides: vec![2 * depth as u64, 128, 2 * (length * depth) as u64],
        box_extents: vec![64, rows, depth as u32 / 64, 1],
        element_strides: vec![1; 4],
        swizzle: Swizzle::Bytes128,
        fill: Fill::Zeros,
    });
    let mut args: Vec<Arg> = maps
        .map(|map| Arg::bytes(&map.encode().expect("a map that can be")))
        .collect();
    args.extend([length, heads, 1].map(|x| Arg::from(x as u32)));
    args.extend([Arg::from(scale as f32), Arg::pointer(0)]);
    let launch = Launch {
        grid: [ctas, 1, 1],
        block: [384, 1, 1],
        shared_bytes: 1536 * depth as u32 + 256,
        args: &args,
        options: Options {
            seed,
            ..Options::default()
        },
    };
    if let Err(error) = run(&module, entry, &launch, &mut memory) {
        let line = error.line().unwrap_or_default();
        let fault = error
            .fault()
            .map_or_else(|| error.to_string(), ToString::to_string);
        return Outcome::Reported(format!("line {line}: {fault}"));
    }
    if memory.read(places[3], 2 * count).is_err() {
        return Outcome::Wrong;
    }
    let found = read_f16(&memory, places[3], count);
    let [q, k, v] = &inputs;
    let is_right = (0..heads * length).all(|row| {
        let at = row / length * length * depth;
        let keys = if is_causal { row % length + 1 } else { length };
        let query = &q[row * depth..][..depth];
        let weights: Vec<f64> = (0..keys)
            .map(|key| {
                let pairs = query.iter().zip(&k[at + key * depth..][..depth]);
                (scale * pairs.map(|(x, y)| x * y).sum::<f64>()).exp2()
            })
            .collect();
        let total: f64 = weights.iter().sum();
        (0..depth).all(|d| {
            let terms = weights.iter().enumerate();
            let sum: f64 = terms.map(|(key, w)| w * v[at + key * depth + d]).sum();
            // Weights are at most 1 and rounded to f16, as results are; values are below 1.
            (found[row * depth + d] - sum / total).abs() <= (-10f64).exp2()
        })
    });
    match is_right {
        true => Outcome::Right,
        false => Outcome::Wrong,
    }
}

#[test]
fn attention_agrees() {
    let text = text("attention_ws.ptx");
    for (entry, heads, ctas, seed) in [
        ("attention_full", 2, 3, 0),
        ("attention_full", 2, 1, 1),
        ("attention_causal", 2, 3, 0),
        ("attention_causal", 2, 1, 2),
    ] {
        let found = attention(&text, entry, heads, ctas, seed);
        assert_eq!(found, Outcome::Right, "{entry} {seed}");
    }
}

/// Why a statement that is taken out of attention does no harm.
const HARMLESS: &[(&str, &str)] = &[];

/// The statements of the first entry that fence, wait, arrive or commit, taken out one at a time; and each wait for a phase, with
/// the other parity, and given up.
#[test]
fn faults_of_attention_are_found() {
    let text = text("attention_ws.ptx");
    let lines: Vec<&str> = text.lines().collect();
    let entries = lines
        .iter()
        .position(|line| line.contains(".entry attention_causal"));
    let mut faulty: Vec<(usize, String, String)> = Vec::new();
    for (at, line) in lines[..entries.expect("the second entry")]
        .iter()
        .enumerate()
    {
        let mut add = |what: String, by: String| {
            let mut changed = lines.clone();
            changed[at] = &by;
            faulty.push((at + 1, what, changed.join("\n")));
        };
        if let Some(name) = TAKEN_OUT.iter().find(|name| line.contains(*name)) {
            let start = line.find(name).expect("it is there");
            let end = start + line[start..].find(';').expect("a statement ends") + 1;
            let statement = &line[start..end - 1];
            add(
                format!("without `{statement}`"),
                format!("{}{}", &line[..start], &line[end..]),
            );
        }
        if let Some(start) = line.find("mbarrier.try_wait") {
            let end = start + line[start..].find(';').expect("a statement ends");
            let statement = &line[start..end];
            let parity = statement.rfind(',').expect("a parity") + 1;
            add(
                format!("without `{statement}`"),
                line.replace(statement, "setp.eq.u32 p,0,0"),
            );
            let turned = format!(
                "{{.reg .b32 turned; xor.b32 turned,{},1; {}turned; }}",
                &statement[parity..],
                &statement[..parity]
            );
            add(
                format!("`{statement}` with the other parity"),
                line.replace(&format!("{statement};"), &turned),
            );
        }
    }
    let mut table = String::new();
    for (line, what, text) in faulty {
        let outcome = verdict(|seed| attention(&text, "attention_full", 2, 1, seed), 2);
        let words = match outcome {
            Outcome::Reported(report) => format!("reported: {report}"),
            Outcome::Wrong => "shows: the result is wrong".to_owned(),
            Outcome::Right => {
                let reason = HARMLESS.iter().find(|(start, _)| what.starts_with(start));
                reason.map_or("MISSED".to_owned(), |(_, reason)| {
                    format!("harmless: {reason}")
                })
            }
        };
        table += &format!("attention_ws.ptx | {line} | {what} | {words}\n");
    }
    compare("attention_ws.faults", &table);
}
