//! The target `rotation`: loops with products of products, which begin the next iteration before they end this one.
//!
//! Kernels of the Triton language whose loops have two to four products, chained in many ways, with carried values and pointers,
//! tables, masks and choices around them; they run no time, once or more often, in steps that do not meet the end, close to the
//! least and the greatest counter. Some must not be rotated: their first product needs the last one, or they store. The interpreter
//! computes the same before and after [`crate::tile::rotate_loops`]. Numbers are whole and small, so that sums are exact.

use std::fmt::Write;

use super::Verdict;
use super::random::Random;
use crate::front::{Module, Specialization, parse_signature};
use crate::interp::{self, Arg, Launch, Memory};
use crate::ir::function::TileFunction;
use crate::num::{Format, Overflow, Rounding};
use crate::settings::Target;
use crate::settings::diversity::{ChoiceSite, Choices};
use crate::tile::eliminate_dead_code::eliminate_dead_code;
use crate::tile::hoist_invariants::hoist_invariants;
use crate::tile::resources::ResourcePlan;
use crate::tile::rotate_loops::rotate_loops;
use crate::tile::simplify::simplify;
use crate::verify::verify;

/// Elements of each buffer of factors, for ten iterations of a pointer that moves.
const ELEMENTS: usize = 12 * 256;

/// Judges the kernel of a seed.
pub fn check(seed: u64) -> Verdict {
    let mut random = Random::new(seed);
    let bounds = bounds(&mut random);
    let text = text(&mut random, bounds);
    match judge(&mut random, &text, bounds, seed) {
        Ok(verdict) => verdict,
        Err(message) => Verdict::Failed(format!("{message}\n{bounds:?}\n{text}")),
    }
}

fn judge(random: &mut Random, text: &str, bounds: [i64; 3], seed: u64) -> Result<Verdict, String> {
    let module = Module::parse("rotation.py", text).map_err(|e| e.to_string())?;
    let signature = "*fp16:16, *fp16:16, *fp16:16, *i32:16, *fp32:16, *i32:16, i32, i32, i32";
    let args = parse_signature(signature).map_err(|e| e.to_string())?;
    let spec = Specialization::new(args, Target::SM_90A);
    let before = module.lower(None, &spec).map_err(|e| e.to_string())?.func;
    let mut after = before.clone();
    if random.chance(70) {
        simplify(&mut after);
        hoist_invariants(&mut after);
        eliminate_dead_code(&mut after);
    }
    let choices = Choices::new(Some(seed), ChoiceSite::Rotation);
    let count = rotate_loops(&mut after, Target::SM_90A, &ResourcePlan::ALL, choices);
    verify(&after).map_err(|e| format!("{e}\n{after}"))?;
    if count == 0 {
        return Ok(Verdict::Passed(vec!["left alone"]));
    }
    let expected = run(&before, bounds, seed)?;
    let found = run(&after, bounds, seed).map_err(|e| format!("{e}\n{after}"))?;
    match found == expected {
        true => Ok(Verdict::Passed(vec!["rotated"])),
        false => Err(format!("other results\n{before}\nbecame\n{after}")),
    }
}

/// What the kernel leaves in its results.
fn run(func: &TileFunction, bounds: [i64; 3], seed: u64) -> Result<Vec<Vec<u8>>, String> {
    let mut random = Random::new(seed ^ 1);
    let mut memory = Memory::new();
    let mut half = |_| {
        let number = random.between(-2, 2) as f64;
        let bits = Format::F16.from_f64(number, Rounding::NearestEven, Overflow::Ieee);
        bits.to_le_bytes()[..2].to_vec()
    };
    let mut buffers: Vec<Vec<u8>> = Vec::new();
    for _ in 0..3 {
        buffers.push((0..ELEMENTS).flat_map(&mut half).collect());
    }
    let entry = |i: i32| (i * 5 % 8 * 256).to_le_bytes();
    buffers.push((0..8).flat_map(entry).collect());
    buffers.extend([vec![0; 3 * 256 * 4], vec![0; 4 * 4]]);
    let addresses: Vec<u64> = buffers.iter().map(|b| memory.alloc_bytes(b)).collect();
    let pointers = addresses.iter().map(|&address| Arg::Ptr(address));
    let args: Vec<Arg> = pointers.chain(bounds.map(Arg::Int)).collect();
    let launch = Launch {
        grid: [1, 1, 1],
        args: &args,
    };
    interp::run(func, &launch, &mut memory, &interp::Options::default())
        .map_err(|error| error.to_string())?;
    let read = |i: usize| memory.read(addresses[i], buffers[i].len());
    let left = [4, 5].map(|i| read(i).expect("every byte was written").to_vec());
    Ok(left.to_vec())
}

/// Where the loop starts, where it ends, and its step.
fn bounds(random: &mut Random) -> [i64; 3] {
    let step = random.pick(&[1, 1, 2, 3, 7, 64, 1000, i64::from(i32::MAX)]);
    let trips = random.pick(&[0, 1, 1, 2, 2, 3, 5, 8]);
    let (least, most) = (i64::from(i32::MIN), i64::from(i32::MAX));
    // As many iterations, the last of which the end cuts short somewhere.
    let length = |random: &mut Random| match trips {
        0 => random.between(-3, 0),
        _ => (trips - 1) * step + random.between(1, step),
    };
    let length = length(random);
    let lo = match random.below(6) {
        0 => least,
        1 => most - length,
        2 => least + random.between(0, 2 * step),
        3 => random.between(-20, 20),
        _ => 0,
    };
    let lo = lo.clamp(least, most);
    [lo, (lo + length).clamp(least, most), step]
}

/// A kernel.
fn text(random: &mut Random, bounds: [i64; 3]) -> String {
    let mut text = String::from(
        "import triton\nimport triton.language as tl\n\n@triton.jit\n\
         def k(q_ptr, k_ptr, v_ptr, table, out, ends, lo, hi, step):\n",
    );
    let mut depth = 1;
    let mut line = |depth: usize, words: &str| {
        _ = writeln!(text, "{}{words}", "    ".repeat(depth));
    };
    for words in [
        "r = tl.arange(0, 16)",
        "at = r[:, None] * 16 + r[None, :]",
        "q = tl.load(q_ptr + at)",
        "acc = tl.zeros((16, 16), dtype=tl.float32)",
        "more = tl.zeros((16, 16), dtype=tl.float32)",
        "before = tl.zeros((16, 16), dtype=tl.float32)",
        "row = tl.zeros((16,), dtype=tl.float32)",
        "kp = k_ptr + at",
        "vp = v_ptr + at",
        "last = -1",
        "count = 0",
        "x = 3",
        "y = 5",
    ] {
        line(depth, words);
    }
    // Some bounds are numbers, and the compiler knows whether the loop runs.
    let names = ["lo", "hi", "step"];
    let known = [random.chance(40), random.chance(25), random.chance(50)];
    let small = bounds.iter().all(|b| b.abs() < 1 << 30);
    let [lo, hi, step] = [0, 1, 2].map(|i| match known[i] && small {
        true => bounds[i].to_string(),
        false => names[i].to_owned(),
    });
    line(
        depth,
        &match random.chance(30) {
            true => format!("for i in tl.range({lo}, {hi}, {step}, num_stages=2):"),
            false => format!("for i in range({lo}, {hi}, {step}):"),
        },
    );
    depth += 1;
    let block = |random: &mut Random, name: &str| {
        let words = [
            format!("tl.load({name}p)"),
            format!("tl.load({name}_ptr + at + (i & 7) * 256)"),
            format!("tl.load({name}_ptr + at + (count & 7) * 256)"),
            format!("tl.load({name}_ptr + at + tl.load(table + (i & 7)))"),
            format!("tl.load({name}_ptr + at, mask=at < (i & 255), other=0.0)"),
            "tl.load(kp)".to_owned(),
            format!("tl.trans(tl.load({name}p))"),
        ];
        words[random.weighted(&[6, 3, 1, 1, 2, 1, 1])].clone()
    };
    let k = block(random, "k");
    line(depth, &format!("k = {k}"));
    let first = random.pick(&[
        "s = tl.dot(q, k)",
        "s = tl.dot(q, k)",
        "s = tl.dot(q, k) + tl.dot(k, q)",
        "s = tl.dot(q, k, before)",
        "s = tl.dot(q, tl.dot(q, k).to(tl.float16))",
    ]);
    line(depth, first);
    for _ in 0..random.below(4) {
        line(
            depth,
            random.pick(&[
                "s = tl.maximum(s, 0)",
                "s = s + (i & 3)",
                "s = s + (count & 1)",
                "s = s - tl.max(s, 1)[:, None]",
                "row = tl.maximum(row, tl.max(s, 1))",
                "row = row * 0.5 + 1\n        s = tl.where(row[:, None] > 1.5, s, -s)",
                "s = s - before",
                "s = tl.where(at < (i & 127), s, 1)",
                "if (i & 1) == 0:\n            s = -s",
                "s = s + x",
                "s = tl.where(acc > 0, s, -s)",
                "s = s + tl.trans(k)",
            ]),
        );
    }
    line(depth, "p = tl.minimum(tl.maximum(s, -2), 2)");
    if random.chance(40) {
        line(depth, "row = tl.minimum(row + tl.sum(p, 1), 60)");
    }
    let v = block(random, "v");
    line(depth, &format!("v = {v}"));
    let sum = random.pick(&[
        "acc",
        "acc",
        "tl.where(row[:, None] > 3, acc, -acc)",
        "acc + before",
        "acc + more",
        "acc + (i & 1)",
    ]);
    let factors = random.pick(&["p.to(tl.float16), v", "v, p.to(tl.float16)"]);
    line(depth, &format!("acc = tl.dot({factors}, {sum})"));
    line(depth, "acc = tl.minimum(tl.maximum(acc, -900), 900)");
    for _ in 0..random.below(3) {
        line(
            depth,
            random.pick(&[
                "acc = tl.where(acc > 100, acc - 50, acc)",
                "acc = acc + y",
                "more = tl.dot((acc * 0).to(tl.float16), v) + (count & 3)",
                "more = tl.dot(k, p.to(tl.float16)) + more * 0.5",
                "row = tl.minimum(tl.maximum(row + tl.max(acc, 0), -60), 60)",
                "before = p",
                "before = tl.minimum(tl.maximum(acc, -2), 2)",
            ]),
        );
    }
    if random.chance(8) {
        line(
            depth,
            "q = tl.minimum(tl.maximum(acc, -2), 2).to(tl.float16)",
        );
    }
    if random.chance(4) {
        line(depth, "tl.store(ends + 3, i)");
    }
    for (percent, words) in [
        (80, "kp += 256"),
        (80, "vp += 256"),
        (70, "last = i"),
        (90, "count += 1"),
        (30, "x, y = y, x"),
        (20, "before = p"),
    ] {
        if random.chance(percent) {
            line(depth, words);
        }
    }
    depth -= 1;
    for words in [
        "tl.store(out + at, acc)",
        "tl.store(out + 256 + at, more + row[:, None])",
        "tl.store(out + 512 + at, before + x)",
        "tl.store(ends, last)",
        "tl.store(ends + 1, count)",
        "tl.store(ends + 2, y)",
    ] {
        line(depth, words);
    }
    text
}
