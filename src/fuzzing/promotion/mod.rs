//! The target `promotion`: products of matrices whose loads and stores may become those of tensor maps.
//!
//! Kernels of the Triton language with many ways to write an index, its bounds, its walk along the sum and what becomes of the
//! result, and as many that must not be promoted: wraps that matter, starts in front of the tensor, odd distances, other fills.
//! The interpreter computes the same before and after [`crate::tile::promote`], wherever the condition of the maps holds and the
//! kernel reads what is there. Numbers are whole, so that sums are exact.

use std::fmt::Write;

use super::Verdict;
use super::random::Random;
use crate::front::{Module, Specialization, parse_signature};
use crate::interp::{self, Arg, InterpErrorKind, Launch, Memory};
use crate::ir::function::TileFunction;
use crate::num::{Format, Overflow, Rounding};
use crate::pipeline::promoted;
use crate::settings::{Options, Target};

/// Elements in front of each tensor and behind it, which kernels may read as well.
const MARGIN: usize = 4096;
/// Elements of a tensor.
const ELEMENTS: usize = 1 << 16;
/// Extents of the blocks.
const BLOCK: [i64; 3] = [64, 32, 32];

/// A kernel and its arguments.
#[derive(Clone, Debug)]
struct Case {
    text: String,
    signature: String,
    grid: [u32; 3],
    /// Of the integers.
    numbers: Vec<i64>,
}

/// Judges the kernel of a seed.
pub fn check(seed: u64) -> Verdict {
    let case = case(&mut Random::new(seed));
    match judge(&case, seed) {
        Ok(verdict) => verdict,
        Err(message) => Verdict::Failed(format!("{message}\n{case:?}\n{}", case.text)),
    }
}

fn judge(case: &Case, seed: u64) -> Result<Verdict, String> {
    let module = Module::parse("promotion.py", &case.text).map_err(|e| e.to_string())?;
    let args = parse_signature(&case.signature).map_err(|e| e.to_string())?;
    let mut spec = Specialization::new(args, Target::SM_90A);
    spec.num_warps = 4;
    let lowered = module.lower(None, &spec).map_err(|e| e.to_string())?;
    let options = Options {
        verify_passes: true,
        ..Options::DEFAULT
    };
    let made = promoted(&lowered.func, Target::SM_90A, &options);
    let (after, all) = made.map_err(|e| e.to_string())?;
    let promoted = |stores: bool| {
        let those = all.iter().filter(|access| access.is_store == stores);
        those.filter(|access| access.refusal.is_none()).count()
    };
    let (loads, stores) = (promoted(false), promoted(true));
    if loads + stores == 0 {
        return Ok(Verdict::Passed(vec!["refused"]));
    }
    let Ok(expected) = run(&lowered.func, case, seed) else {
        return Ok(Verdict::Skipped("reads or writes elsewhere"));
    };
    match run(&after, case, seed) {
        Ok(found) if found == expected => {
            let of_loads = match loads {
                0 => "no load promoted",
                1 => "one load promoted",
                _ => "both loads promoted",
            };
            let of_stores = (stores != 0).then_some("stores promoted");
            Ok(Verdict::Passed(
                [Some(of_loads), of_stores].into_iter().flatten().collect(),
            ))
        }
        Ok(_) => Err(format!("other results\n{after}")),
        Err(InterpErrorKind::NoMap) => Ok(Verdict::Passed(vec!["not for these arguments"])),
        Err(error) => Err(format!("{error}\n{after}")),
    }
}

/// What the kernel leaves in its result, margins included.
fn run(func: &TileFunction, case: &Case, seed: u64) -> Result<Vec<u8>, InterpErrorKind> {
    let mut random = Random::new(seed ^ 1);
    let mut memory = Memory::new();
    let mut args = Vec::new();
    let mut pointers = Vec::new();
    let result = if case.signature.contains("*fp32") {
        4
    } else {
        2
    };
    for bytes in [2, 2, result] {
        let numbers = (0..ELEMENTS + 2 * MARGIN).flat_map(|_| {
            let number = random.between(-4, 4) as f64;
            let format = if bytes == 2 { Format::F16 } else { Format::F32 };
            let bits = format.from_f64(number, Rounding::NearestEven, Overflow::Ieee);
            bits.to_le_bytes()[..bytes].to_vec()
        });
        let buffer: Vec<u8> = numbers.collect();
        let address = memory.alloc_bytes(&buffer);
        pointers.push((address, buffer.len()));
        args.push(Arg::Ptr(address + (MARGIN * bytes) as u64));
    }
    args.extend(case.numbers.iter().map(|&number| Arg::Int(number)));
    let launch = Launch {
        grid: case.grid,
        args: &args,
    };
    let options = interp::Options {
        check_races: false,
        ..interp::Options::default()
    };
    interp::run(func, &launch, &mut memory, &options).map_err(|error| error.kind)?;
    let (address, bytes) = pointers[2];
    let left = memory.read(address, bytes);
    Ok(left.expect("every byte was written").to_vec())
}

fn often<'a>(random: &mut Random, usual: &'a str, others: &[&'a str]) -> &'a str {
    match random.chance(65) {
        true => usual,
        false => random.pick(others),
    }
}

/// How an index is bounded along a free dimension: the statement that bounds it, and its mask.
fn bounded(random: &mut Random, index: &str, extent: &str) -> (String, Option<String>) {
    let line = match random.weighted(&[8, 2, 2, 5, 1, 1]) {
        0 => format!("{index}a = {index} % {extent}"),
        1 => format!("{index}a = tl.where({index} < {extent}, {index}, 0)"),
        2 => format!("{index}a = tl.minimum({index}, {extent} - 1)"),
        3 => format!("{index}a = {index}"),
        4 => format!("{index}a = {index} % ({extent} - 8)"),
        _ => format!("{index}a = ({index} + 8) % {extent}"),
    };
    let masks = [
        format!("({index} < {extent})"),
        format!("({index} >= 0) & ({index} < {extent})"),
        format!("({extent} > {index}a)"),
        format!("({index}a <= {extent} - 1)"),
        format!("({index}a < {extent}) & ({index}a >= 8)"),
    ];
    let mask = match random.weighted(&[10, 3, 2, 1, 1, 1]) {
        0 => None,
        i => Some(masks[i - 1].clone()),
    };
    (line, mask)
}

/// A kernel of a seed.
fn case(random: &mut Random) -> Case {
    let [bm, bn, bk] = BLOCK;
    let mut text = String::from(
        "import triton\nimport triton.language as tl\n\n@triton.jit\n\
         def k(a_ptr, b_ptr, c_ptr, M, N, K, sa, sb, sc, sz, off):\n",
    );
    let mut line = |words: String| {
        _ = writeln!(text, "    {words}");
    };
    let row = often(
        random,
        "tl.program_id(0)",
        &[
            "tl.program_id(0) // 2",
            "(tl.num_programs(0) - 1 - tl.program_id(0))",
        ],
    );
    let column = often(random, "tl.program_id(1)", &["tl.program_id(1) % 2"]);
    let start = often(random, "", &["off + ", "16 + ", "-16 + "]);
    line(format!("m = {start}{row} * {bm} + tl.arange(0, {bm})"));
    let start = often(random, "", &["off + ", "8 + ", "-16 + ", "4 + "]);
    line(format!("n = {start}{column} * {bn} + tl.arange(0, {bn})"));
    let wide = random.chance(25);
    if wide {
        line("m = m.to(tl.int64)".into());
    }
    let (rows, row_mask) = bounded(random, "m", "M");
    let (columns, column_mask) = bounded(random, "n", "N");
    line(rows);
    line(columns);
    line(format!("i = tl.arange(0, {bk})"));
    let base = [
        "",
        " + tl.program_id(2) * sz",
        " + 64",
        " + 3 * sa",
        " + 4",
        " - sz",
    ];
    let (a_base, b_base) = (
        base[random.weighted(&[6, 3, 1, 1, 1, 1])],
        base[random.weighted(&[6, 3, 1, 1, 1, 1])],
    );
    // The walk along the sum: what moves, and how the index is written.
    let walk = random.below(4);
    let (index, left) = match walk {
        0 => ("i", "K - it * 32"),
        1 => ("(it * 32 + i)", "K"),
        2 => ("(it + i)", "K"),
        _ => ("i", "left"),
    };
    let moves = matches!(walk, 0 | 3);
    let (a_order, b_order) = (random.chance(75), random.chance(50));
    let a_at = |k: &str| match a_order {
        true => format!("a_ptr{a_base} + ma[:, None] * sa + {k}[None, :]"),
        false => format!("a_ptr{a_base} + ma[:, None] + {k}[None, :] * sa"),
    };
    let b_at = |k: &str| match b_order {
        true => format!("b_ptr{b_base} + {k}[:, None] * sb + na[None, :]"),
        false => format!("b_ptr{b_base} + {k}[:, None] + na[None, :] * sb"),
    };
    if moves {
        line(format!("a = {}", a_at("i")));
        line(format!("b = {}", b_at("i")));
    }
    line(format!("acc = tl.zeros(({bm}, {bn}), dtype=tl.float32)"));
    line(match walk {
        0 | 1 => "for it in range(0, tl.cdiv(K, 32)):".into(),
        2 => "for it in range(0, K, 32):".into(),
        _ => "for left in range(K, 0, -32):".to_owned(),
    });
    let mut inside = |words: String| line(format!("    {words}"));
    if !moves {
        inside(format!("a = {}", a_at(index)));
        inside(format!("b = {}", b_at(index)));
    }
    let of_sum = match random.weighted(&[8, 3, 1, 1, 1]) {
        0 => Some(format!("({index} < {left})")),
        1 => None,
        2 => Some(format!("({index} >= 0) & ({index} < {left})")),
        3 => Some(format!("({index} >= 8) & ({index} < {left})")),
        _ => Some(format!("({index} != 5) & ({index} < {left})")),
    };
    let both = |free: &Option<String>, (free_at, sum_at): (&str, &str)| {
        let free = free.as_ref().map(|mask| format!("({mask}){free_at}"));
        let sum = of_sum.as_ref().map(|mask| format!("({mask}){sum_at}"));
        let parts: Vec<String> = free.into_iter().chain(sum).collect();
        parts.join(" & ")
    };
    for (name, mask) in [
        ("a", both(&row_mask, ("[:, None]", "[None, :]"))),
        ("b", both(&column_mask, ("[None, :]", "[:, None]"))),
    ] {
        let other = often(random, "0.0", &["0.0", "1.0"]);
        inside(match mask.is_empty() {
            true => format!("{name}x = tl.load({name})"),
            false => format!("{name}x = tl.load({name}, mask={mask}, other={other})"),
        });
    }
    inside("acc = tl.dot(ax, bx, acc)".into());
    if moves {
        inside(format!("a += {}", if a_order { "32" } else { "32 * sa" }));
        inside(format!("b += {}", if b_order { "32 * sb" } else { "32" }));
    }
    let ending = often(
        random,
        "",
        &[
            "acc = acc - tl.max(acc, 1)[:, None]",
            "acc = acc - tl.max(acc, 0)[None, :]",
            "acc = tl.where(acc > 0, acc, acc * 0.5)",
            "acc = tl.where(tl.sum(tl.sum(acc, 0), 0) > 0, acc, -acc)",
        ],
    );
    line(ending.to_owned());
    let row_bound = often(
        random,
        "m < M",
        &["m <= M - 1", "m < M + 1", "m + 1 < M", "ma < M"],
    );
    let mut mask = match random.weighted(&[10, 1, 1]) {
        0 => format!("({row_bound})[:, None] & (n < N)[None, :]"),
        1 => format!("({row_bound})[:, None]"),
        _ => String::new(),
    };
    let more = often(
        random,
        "",
        &[
            "(m >= 0)[:, None]",
            "(n >= 0)[None, :]",
            "(m >= 8)[:, None]",
            "(m < M - 8)[:, None]",
            "(n < 24)[None, :]",
            "(n != 5)[None, :]",
            "(m[:, None] >= n[None, :])",
            "(acc > 0)",
            "(tl.program_id(0) < 1)",
        ],
    );
    if !more.is_empty() {
        mask = match mask.is_empty() {
            true => format!("{more} & (m == m)[:, None] & (n == n)[None, :]"),
            false => format!("{mask} & {more}"),
        };
    }
    let mask = match mask.is_empty() {
        true => mask,
        false => format!(", mask={mask}"),
    };
    let c_base = base[random.weighted(&[10, 3, 1, 1, 1, 1])].replace("sa", "sc");
    let row = often(random, "m", &["m", "m", "ma", "(m // 2)"]);
    let column = often(random, "n", &["n", "n", "na", "(n + 4)"]);
    line(match random.chance(75) {
        true => format!("c = c_ptr{c_base} + {row}[:, None] * sc + {column}[None, :]"),
        false => format!("c = c_ptr{c_base} + {row}[:, None] + {column}[None, :] * sc"),
    });
    if random.chance(5) {
        line("acc += tl.load(c_ptr + tl.program_id(1))".into());
    }
    let result = often(random, "*fp32", &["*fp16"]);
    line("acc = acc.to(c_ptr.dtype.element_ty)".into());
    line(format!("tl.store(c, acc{mask})"));
    match random.weighted(&[20, 1, 1]) {
        0 => {}
        1 => line(format!("tl.store(c, acc + acc{mask})")),
        _ => line(
            "tl.store(c_ptr + tl.arange(0, 16), tl.zeros((16,), dtype=c_ptr.dtype.element_ty))"
                .into(),
        ),
    }
    if random.chance(4) {
        line("tl.store(a_ptr + tl.arange(0, 16), tl.zeros((16,), dtype=tl.float16))".into());
    }
    let stride = often(random, "i32:16", &["i32", "i32:16"]);
    let last = often(random, "i32:16", &["i32", "i32:16"]);
    let signature = format!(
        "*fp16:16, *fp16:16, {result}:16, i32, i32, i32, {stride}, i32:16, {last}, i32:16, i32"
    );
    let extent = |random: &mut Random| random.pick(&[1, 8, 40, 64, 96, 100, 128]);
    let (m, n) = (extent(random), extent(random));
    let k = random.pick(&[8, 32, 40, 64, 72]);
    let strides = [128, 144, 160];
    let numbers = vec![
        m,
        n,
        k,
        random.pick(&strides),
        random.pick(&strides),
        random.pick(&[256, 256, 128, 16]),
        random.pick(&[0, 16, 1024, 4096]),
        random.pick(&[0, 8, -8, 64, 4]),
    ];
    let grid = [
        (m as u32).div_ceil(bm as u32),
        (n as u32).div_ceil(bn as u32),
        random.pick(&[1, 2]),
    ];
    Case {
        text,
        signature,
        grid,
        numbers,
    }
}
