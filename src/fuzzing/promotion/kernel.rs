//! Texts of kernels that multiply matrices, and what they are launched with.

use std::fmt::Write;

use crate::fuzzing::random::Random;
use crate::ir::types::Scalar;

/// Elements of a tensor's buffer.
pub(super) const ELEMENTS: usize = 24576;
/// How far into it the pointer stands, and as far in front of its end where a stride is negative; kernels may read the rest as well.
const MARGIN: usize = 4096;

/// A tensor as the kernel gets it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tensor {
    pub(super) scalar: Scalar,
    /// Elements of the buffer in front of the pointer.
    pub(super) at: usize,
    /// What the signature says of the address.
    promised: u32,
}

/// A number as the kernel gets it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Number {
    pub(super) value: i32,
    /// Its type in the signature, and the bytes of that.
    ty: &'static str,
    pub(super) bytes: usize,
    /// What the signature says that it is a multiple of.
    promised: u32,
}

/// A kernel and what it is launched with: two factors and their product.
#[derive(Clone, Debug)]
pub(super) struct Kernel {
    pub(super) text: String,
    pub(super) grid: [u32; 3],
    pub(super) tensors: [Tensor; 3],
    pub(super) numbers: Vec<Number>,
}

/// What differs with the types.
struct Types {
    factor: Scalar,
    result: Scalar,
}

impl Types {
    fn is_whole(&self) -> bool {
        self.factor == Scalar::I8
    }

    /// A number in the type of the factors.
    fn number(&self, number: u8) -> String {
        match self.is_whole() {
            true => number.to_string(),
            false => format!("{number}.0"),
        }
    }
}

impl Kernel {
    pub(super) fn new(random: &mut Random) -> Kernel {
        let factors = [Scalar::F16, Scalar::Bf16, Scalar::I8, Scalar::F32];
        let factor = factors[random.weighted(&[12, 2, 3, 2])];
        let types = Types {
            factor,
            result: match factor {
                Scalar::I8 => Scalar::I32,
                _ => random.pick(&[Scalar::F32, Scalar::F32, Scalar::F16]),
            },
        };
        let block = [
            random.pick(&[64, 64, 64, 128]),
            random.pick(&[32, 32, 64, 16]),
            random.pick(&[32, 32, 64]),
        ];
        // By choices of their own, so that the kernel of a seed is otherwise what it is.
        let mut weights = Random::new(random.clone().bits());
        let mut right = types.factor;
        let text = match random.weighted(&[8, 1, 1]) {
            0 => {
                let text = by_pointers(random, &types, block);
                let mut nests = Random::new(weights.clone().bits());
                let text = match nests.chance(20) {
                    true => nested(&mut nests, &text, block[2]),
                    false => text,
                };
                let mut besides = Random::new(nests.bits());
                let text = match types.factor {
                    Scalar::F16 | Scalar::Bf16 if weights.chance(35) => {
                        right = weights.pick(&[types.factor, Scalar::I8, Scalar::I32]);
                        computed(&mut weights, &text, right)
                    }
                    _ => text,
                };
                match besides.chance(25) {
                    true => beside(&mut besides, &text),
                    false => text,
                }
            }
            1 => by_block_pointers(random, &types, block),
            _ => by_descriptors(random, &types, block),
        };
        let mut extent = |name: &str| {
            let all = [128, 128, 100, 96, 64, 64, 40, 40, 1, 8, 0];
            // A remainder by zero may be any number, and so any address.
            let divides = [format!("% {name}"), format!("% ({name} - 8)")];
            let divides = divides.iter().any(|by| text.contains(by));
            random.pick(if divides { &all[..9] } else { &all })
        };
        let (m, n) = (extent("M"), extent("N"));
        let k = random.pick(&[96, 72, 72, 64, 64, 40, 32, 8, 1, 0]);
        let usual = [128, 144, 160, 128, 144];
        let stride = |random: &mut Random, rare: &[i32]| match random.chance(88) {
            true => random.pick(&usual),
            false => random.pick(rare),
        };
        let rare = [80, 16, 0, 8, 136, 132, 130, -128, -144];
        let strides = [
            stride(random, &rare),
            stride(random, &rare),
            stride(random, &[136, 132, 129, -128, -144, 16]),
        ];
        let scalars = [types.factor, right, types.result];
        let tensors = std::array::from_fn(|i| {
            let at = match strides[i] < 0 {
                true => ELEMENTS - MARGIN,
                false => MARGIN,
            };
            let is_aligned = random.chance(97);
            Tensor {
                scalar: scalars[i],
                at: at
                    + if is_aligned {
                        0
                    } else {
                        random.pick(&[1, 3, 4])
                    },
                promised: if is_aligned { 16 } else { 1 },
            }
        });
        let mut numbers: Vec<Number> = Vec::new();
        for value in [m, n, k] {
            numbers.push(number(random, value, 40));
        }
        for value in strides {
            numbers.push(number(random, value, 97));
        }
        let batch = random.pick(&[256, 4096, 128, 16, 2048, 24]);
        numbers.push(number(random, batch, 97));
        let offset = random.pick(&[0, 8, -8, 64, 4, 1]);
        numbers.push(number(random, offset, 30));
        // By choices of their own, so that the kernel of a seed is otherwise what it is.
        let mut sizes = Random::new(random.clone().bits());
        if sizes.chance(25) {
            for (number, name) in numbers.iter_mut().zip(NUMBERS) {
                // The language divides no numbers that differ in sign.
                let divides = [format!("% {name}"), format!("% ({name} ")];
                let divides = divides.iter().any(|by| text.contains(by));
                if sizes.chance(50) {
                    let values = [number.value, block_of(&text, name)];
                    (number.ty, number.bytes) = few_bits(&mut sizes, &values, divides);
                }
            }
        }
        let programs = |extent: i32, block: i32| (extent.max(1) as u32).div_ceil(block as u32);
        Kernel {
            text,
            grid: [
                programs(m, block[0]),
                programs(n, block[1]),
                random.pick(&[1, 2]),
            ],
            tensors,
            numbers,
        }
    }

    /// The signature that the kernel is lowered for.
    pub(super) fn signature(&self) -> String {
        let promise = |number: u32| match number {
            1 => String::new(),
            number => format!(":{number}"),
        };
        let tensors = self.tensors.iter().map(|tensor| {
            let name = match tensor.scalar {
                Scalar::F16 => "fp16",
                Scalar::Bf16 => "bf16",
                Scalar::I8 => "i8",
                Scalar::I32 => "i32",
                _ => "fp32",
            };
            format!("*{name}{}", promise(tensor.promised))
        });
        let numbers = self.numbers.iter();
        let numbers = numbers.map(|number| format!("{}{}", number.ty, promise(number.promised)));
        tensors.chain(numbers).collect::<Vec<_>>().join(", ")
    }
}

/// A number with what is promised of it in so many of 100 cases.
fn number(random: &mut Random, value: i32, percent: usize) -> Number {
    let divides = |&by: &u32| value % by as i32 == 0;
    let most = [16, 8, 4].into_iter().find(divides).unwrap_or(1);
    let promised = if random.chance(percent) { most } else { 1 };
    Number {
        value,
        ty: "i32",
        bytes: 4,
        promised,
    }
}

/// The number that blocks of a number are rounded up to, which its type has to have.
fn block_of(text: &str, name: &str) -> i32 {
    let rounded = format!("tl.cdiv({name}, ");
    let blocks = text.split(&rounded).skip(1).filter_map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_digit())?;
        rest[..end].parse().ok()
    });
    blocks.max().unwrap_or(0)
}

/// A type of few bits that has the numbers, with sign or, if they need not have one, without.
fn few_bits(random: &mut Random, values: &[i32], is_signed: bool) -> (&'static str, usize) {
    let fits = [
        ("i8", 1, -128..=127),
        ("u8", 1, 0..=255),
        ("i16", 2, -32768..=32767),
        ("u16", 2, 0..=65535),
    ];
    let fits = fits.into_iter().filter(|(ty, _, range)| {
        values.iter().all(|value| range.contains(value)) && !(is_signed && ty.starts_with('u'))
    });
    let fits: Vec<(&str, usize)> = fits.map(|(ty, bytes, _)| (ty, bytes)).collect();
    random.pick(&fits)
}

fn often<'a>(random: &mut Random, usual: &'a str, others: &[&'a str]) -> &'a str {
    match random.chance(75) {
        true => usual,
        false => random.pick(others),
    }
}

/// The parameters that are numbers, in order.
const NUMBERS: [&str; 8] = ["M", "N", "K", "sa", "sb", "sc", "sz", "off"];

const HEAD: &str = "import triton\nimport triton.language as tl\n\n@triton.jit\n\
                    def k(a_ptr, b_ptr, c_ptr, M, N, K, sa, sb, sc, sz, off):\n";

/// Appends lines to a text, each behind four spaces.
struct Lines(String);

impl Lines {
    fn new() -> Lines {
        Lines(HEAD.to_owned())
    }

    fn add(&mut self, words: impl AsRef<str>) {
        _ = writeln!(self.0, "    {}", words.as_ref());
    }

    fn inside(&mut self, words: impl AsRef<str>) {
        self.add(format!("    {}", words.as_ref()));
    }

    fn zeros(&mut self, types: &Types, [bm, bn, _]: [i32; 3]) {
        let of = if types.is_whole() { "int32" } else { "float32" };
        self.add(format!("acc = tl.zeros(({bm}, {bn}), dtype=tl.{of})"));
    }

    fn product(&mut self, types: &Types) {
        self.inside(match types.is_whole() {
            true => "acc = tl.dot(ax, bx, acc, out_dtype=tl.int32)",
            false => "acc = tl.dot(ax, bx, acc)",
        });
    }
}

/// How an index is bounded along a free dimension: the statement that bounds it, and its mask.
fn bounded(random: &mut Random, index: &str, extent: &str) -> (String, Option<String>) {
    let line = match random.weighted(&[9, 2, 2, 6, 1, 1]) {
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

/// Pointers, masks and numbers by hand.
fn by_pointers(random: &mut Random, types: &Types, block: [i32; 3]) -> String {
    let [bm, bn, bk] = block;
    let mut lines = Lines::new();
    if random.chance(4) {
        lines.add(
            "tl.store(c_ptr + tl.arange(0, 16), tl.zeros((16,), dtype=c_ptr.dtype.element_ty))",
        );
        lines.add("tl.debug_barrier()");
    }
    let row = often(
        random,
        "tl.program_id(0)",
        &[
            "(tl.program_id(0) // 2)",
            "(tl.num_programs(0) - 1 - tl.program_id(0))",
        ],
    );
    let column = often(random, "tl.program_id(1)", &["(tl.program_id(1) % 2)"]);
    let start = often(random, "", &["off + ", "16 + ", "-16 + "]);
    lines.add(format!("m = {start}{row} * {bm} + tl.arange(0, {bm})"));
    let start = often(random, "", &["off + ", "8 + ", "-16 + ", "4 + "]);
    lines.add(format!("n = {start}{column} * {bn} + tl.arange(0, {bn})"));
    if random.chance(25) {
        lines.add("m = m.to(tl.int64)");
    }
    let (rows, row_mask) = bounded(random, "m", "M");
    let (columns, column_mask) = bounded(random, "n", "N");
    lines.add(rows);
    lines.add(columns);
    lines.add(format!("i = tl.arange(0, {bk})"));
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
        0 => ("i".to_owned(), format!("K - it * {bk}")),
        1 => (format!("(it * {bk} + i)"), "K".to_owned()),
        2 => ("(it + i)".to_owned(), "K".to_owned()),
        _ => ("i".to_owned(), "left".to_owned()),
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
        lines.add(format!("a = {}", a_at("i")));
        lines.add(format!("b = {}", b_at("i")));
    }
    lines.zeros(types, block);
    lines.add(match walk {
        0 | 1 => format!("for it in range(0, tl.cdiv(K, {bk})):"),
        2 => format!("for it in range(0, K, {bk}):"),
        _ => format!("for left in range(K, 0, -{bk}):"),
    });
    if !moves {
        lines.inside(format!("a = {}", a_at(&index)));
        lines.inside(format!("b = {}", b_at(&index)));
    }
    let of_sum = match random.weighted(&[10, 3, 1, 1, 1]) {
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
        let other = types.number(u8::from(random.chance(10)));
        lines.inside(match mask.is_empty() {
            true => format!("{name}x = tl.load({name})"),
            false => format!("{name}x = tl.load({name}, mask={mask}, other={other})"),
        });
    }
    lines.product(types);
    if moves {
        let distance = |is_unit: bool, stride: &str| match is_unit {
            true => bk.to_string(),
            false => format!("{bk} * {stride}"),
        };
        lines.inside(format!("a += {}", distance(a_order, "sa")));
        lines.inside(format!("b += {}", distance(!b_order, "sb")));
    }
    end(random, &mut lines, types);
    store(random, &mut lines, &base);
    lines.0
}

/// The kernel with its walk along the sum in two loops, the inner one of a few iterations, if masks bound both factors.
fn nested(random: &mut Random, text: &str, step: i32) -> String {
    let of_loop = format!("    for it in range(0, tl.cdiv(K, {step})):");
    let is_bounded = |line: &&str| line.contains("K - it");
    let loads = text.lines().filter(|line| line.contains("x = tl.load("));
    if !text.contains(&of_loop) || loads.filter(is_bounded).count() < 2 {
        return text.to_owned();
    }
    let count = random.pick(&[1, 2, 2, 3, 4, 5]);
    let mut lines = Vec::new();
    let mut is_inside = false;
    for line in text.lines() {
        if line == of_loop {
            is_inside = true;
            lines.push(format!(
                "    for io in range(0, tl.cdiv(K, {})):",
                count * step
            ));
            lines.push(match random.chance(70) {
                true => format!("        for ii in range({count}):"),
                false => format!("        for ii in tl.range(0, {count}, num_stages=3):"),
            });
            lines.push(format!("            it = io * {count} + ii"));
            continue;
        }
        is_inside &= line.starts_with("        ");
        lines.push(match is_inside {
            true => format!("    {line}"),
            false => line.to_owned(),
        });
    }
    lines.into_iter().map(|line| line + "\n").collect()
}

/// The kernel with a second product in each iteration, of a factor that stands elsewhere in the same tensor, often without bounds.
fn beside(random: &mut Random, text: &str) -> String {
    let name = random.pick(&["a", "b"]);
    let distances = [
        "64", "16", "8", "-16", "4", "sX", "3 * sX", "16 * sX", "sX + 16", "sz", "32 + off",
    ];
    let distance = random.pick(&distances).replace('X', name);
    let (loads, uses) = (format!("{name}x = tl.load({name}"), format!("{name}x"));
    let is_bounded = random.chance(40);
    let mut lines = Vec::new();
    for line in text.lines() {
        let trimmed = line.trim_start();
        if trimmed.starts_with(&loads) {
            let line = match line.split_once(", mask") {
                Some((load, _)) if !is_bounded => format!("{load})"),
                _ => line.to_owned(),
            };
            let moved = format!("{name}y = tl.load({name} + ({distance})");
            let second = line.replace(&loads, &moved);
            lines.extend([line, second]);
            continue;
        }
        lines.push(line.to_owned());
        if trimmed.starts_with("acc = tl.dot(") {
            lines.push(line.replace(&uses, &format!("{name}y")));
        }
    }
    lines.into_iter().map(|line| line + "\n").collect()
}

/// The kernel with a right factor that is computed from what is loaded: the same numbers, bytes, or words along the sum; with factors that
/// several elements share.
fn computed(random: &mut Random, text: &str, loaded: Scalar) -> String {
    let scaled = random.pick(&["{}", "({} - 3)", "{} + {}", "{} * i.to(ax.dtype)[:, None]"]);
    // By choices of their own, as above.
    let mut random = Random::new(random.clone().bits());
    let run = random.pick(&[8, 8, 4, 16]);
    let factor = match loaded {
        Scalar::I32 => format!("((bx >> (i % {run} * {})[:, None]) & 15)", 32 / run),
        _ => "bx".to_owned(),
    };
    let shares = [
        "(i // 8)[:, None]",
        "((i + 16) // 8)[:, None]",
        "(i % 16 // 4)[:, None]",
        "(i >> 2)[:, None]",
        "(i // 8 + i % 8 // 4 * 2)[:, None]",
        "(n % 64 // 8)[None, :]",
        "(na // 16)[None, :]",
    ];
    let share = match !text.contains("tl.store(a_ptr") && random.chance(40) {
        true => format!(" * tl.load(a_ptr + {})", random.pick(&shares)),
        false => String::new(),
    };
    let factor = format!("({}).to(ax.dtype){share}", scaled.replace("{}", &factor));
    let quotient = quotient(&mut random, run);
    let jumps = random.chance(30);
    let is_promised = random.chance(25);
    let mut lines = Vec::new();
    for line in text.lines() {
        let trimmed = line.trim_start();
        let indent = &line[..line.len() - trimmed.len()];
        let line = match loaded == Scalar::I32 {
            true if trimmed.starts_with("b = ") => by_words(line, &quotient),
            true if trimmed.starts_with("b += ") => match line.split_once(" * ") {
                Some((distance, stride)) => format!("{distance} // {run} * {stride}"),
                None => format!("{line} // {run}"),
            },
            _ => line.to_owned(),
        };
        let starts = |what: &str| trimmed.starts_with(what);
        if starts("bx = ") && loaded.format().is_none() {
            let line = line.replace("other=0.0", "other=0");
            lines.push(line.replace("other=1.0", "other=1"));
        } else if starts("acc = tl.dot(") {
            lines.push(line.replace("bx", &factor));
        } else if starts("i = tl.arange(") && is_promised {
            let extent = line.rsplit([' ', ')']).nth(1).unwrap_or("1").to_owned();
            lines.push(line);
            lines.push(format!(
                "{indent}i = tl.max_contiguous(tl.multiple_of(i, {extent}), {extent})"
            ));
        } else if starts("b += ") && jumps {
            // The distance is a block that the loop carries, too; the last axis has fewer than four programs.
            let (_, distance) = line.split_once("+= ").unwrap_or_default();
            let at = lines
                .iter()
                .position(|line: &String| line.trim_start().starts_with("for "));
            let jump = format!("    jump = (i // {run})[:, None] * 0 + {distance}");
            lines.insert(at.unwrap_or(0), jump);
            lines.push(format!("{indent}b += jump"));
            lines.push(format!("{indent}jump += tl.program_id(2) // 4"));
        } else {
            lines.push(line);
        }
    }
    lines.into_iter().map(|line| line + "\n").collect()
}

/// How the word of an index is written, `{}`, that shares it with those beside it.
fn quotient(random: &mut Random, run: i32) -> String {
    let quotients = [
        format!("({{}} // {run})"),
        format!("({{}} // {run})"),
        format!("({{}} >> {})", run.trailing_zeros()),
        format!("(({{}}).to(tl.uint32) // {run}).to(tl.int32)"),
        format!("(({{}}).to(tl.uint32) % 512 // {run}).to(tl.int32)"),
        format!("({{}} % 256 // {run})"),
    ];
    let at = random.below(quotients.len());
    quotients.into_iter().nth(at).unwrap_or_default()
}

/// Addresses of words that indices along the sum share.
fn by_words(line: &str, quotient: &str) -> String {
    let Some((before, behind)) = line.split_once("[:, None]") else {
        return line.to_owned();
    };
    let start = match before.ends_with(')') {
        true => before.rfind('('),
        false => before.rfind(' ').map(|space| space + 1),
    };
    let (base, index) = before.split_at(start.unwrap_or(0));
    let word = quotient.replace("{}", index);
    format!("{base}{word}[:, None]{behind}")
}

/// What becomes of the sums.
fn end(random: &mut Random, lines: &mut Lines, types: &Types) {
    let half = match types.is_whole() {
        true => "acc = tl.where(acc > 0, acc, acc - 7)",
        false => "acc = tl.where(acc > 0, acc, acc * 0.5)",
    };
    lines.add(often(
        random,
        "",
        &[
            "acc = acc - tl.max(acc, 1)[:, None]",
            "acc = acc - tl.max(acc, 0)[None, :]",
            half,
            "acc = tl.where(tl.sum(tl.sum(acc, 0), 0) > 0, acc, -acc)",
        ],
    ));
}

/// Stores of the sums, and what else is written.
fn store(random: &mut Random, lines: &mut Lines, base: &[&str; 6]) {
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
    lines.add(match random.chance(75) {
        true => format!("c = c_ptr{c_base} + {row}[:, None] * sc + {column}[None, :]"),
        false => format!("c = c_ptr{c_base} + {row}[:, None] + {column}[None, :] * sc"),
    });
    if random.chance(5) {
        lines.add("acc += tl.load(c_ptr + tl.program_id(1)).to(acc.dtype)");
    }
    lines.add("acc = acc.to(c_ptr.dtype.element_ty)");
    lines.add(format!("tl.store(c, acc{mask})"));
    match random.weighted(&[20, 1, 1]) {
        0 => {}
        1 => {
            lines.add("tl.debug_barrier()");
            lines.add(format!("tl.store(c, acc + acc{mask})"));
        }
        _ => lines.add(
            "tl.store(c_ptr + tl.arange(0, 16), tl.zeros((16,), dtype=c_ptr.dtype.element_ty))",
        ),
    }
    if random.chance(4) {
        lines.add(
            "tl.store(a_ptr + tl.arange(0, 16), tl.zeros((16,), dtype=a_ptr.dtype.element_ty))",
        );
    }
}

/// Where blocks start, by programs.
fn starts(lines: &mut Lines, random: &mut Random, [bm, bn, _]: [i32; 3]) {
    let start = often(random, "", &["off + ", "16 + ", "-16 + "]);
    lines.add(format!("row = {start}tl.program_id(0) * {bm}"));
    let start = often(random, "", &["off + ", "16 + ", "-16 + "]);
    lines.add(format!("column = {start}tl.program_id(1) * {bn}"));
}

/// Which dimensions of a block pointer are checked.
fn checked(random: &mut Random) -> &'static str {
    let some = ["(0,)", "(1,)", "()"];
    if random.chance(70) {
        "(0, 1)"
    } else {
        random.pick(&some)
    }
}

/// Block pointers that advance.
fn by_block_pointers(random: &mut Random, types: &Types, block: [i32; 3]) -> String {
    let [bm, bn, bk] = block;
    let mut lines = Lines::new();
    starts(&mut lines, random, block);
    let turned = random.chance(40);
    lines.add(format!(
        "a = tl.make_block_ptr(a_ptr, (M, K), (sa, 1), (row, 0), ({bm}, {bk}), (1, 0))"
    ));
    lines.add(match turned {
        false => format!(
            "b = tl.make_block_ptr(b_ptr, (K, N), (sb, 1), (0, column), ({bk}, {bn}), (1, 0))"
        ),
        true => format!(
            "b = tl.make_block_ptr(b_ptr, (K, N), (1, sb), (0, column), ({bk}, {bn}), (0, 1))"
        ),
    });
    lines.zeros(types, block);
    lines.add(format!("for it in range(0, K, {bk}):"));
    for name in ["a", "b"] {
        let dims = checked(random);
        lines.inside(match dims {
            "()" => format!("{name}x = tl.load({name})"),
            _ => {
                format!("{name}x = tl.load({name}, boundary_check={dims}, padding_option=\"zero\")")
            }
        });
    }
    lines.product(types);
    lines.inside(format!("a = tl.advance(a, (0, {bk}))"));
    lines.inside(format!("b = tl.advance(b, ({bk}, 0))"));
    end(random, &mut lines, types);
    lines.add(format!(
        "c = tl.make_block_ptr(c_ptr, (M, N), (sc, 1), (row, column), ({bm}, {bn}), (1, 0))"
    ));
    let dims = checked(random);
    let check = match dims {
        "()" => String::new(),
        _ => format!(", boundary_check={dims}"),
    };
    lines.add(format!(
        "tl.store(c, acc.to(c_ptr.dtype.element_ty){check})"
    ));
    lines.0
}

/// Descriptors that the kernel makes.
fn by_descriptors(random: &mut Random, types: &Types, block: [i32; 3]) -> String {
    let [bm, bn, bk] = block;
    let mut lines = Lines::new();
    starts(&mut lines, random, block);
    let turned = random.chance(40);
    lines.add(format!(
        "a = tl.make_tensor_descriptor(a_ptr, [M, K], [sa, 1], [{bm}, {bk}])"
    ));
    lines.add(match turned {
        false => format!("b = tl.make_tensor_descriptor(b_ptr, [K, N], [sb, 1], [{bk}, {bn}])"),
        true => format!("b = tl.make_tensor_descriptor(b_ptr, [N, K], [sb, 1], [{bn}, {bk}])"),
    });
    lines.add(format!(
        "c = tl.make_tensor_descriptor(c_ptr, [M, N], [sc, 1], [{bm}, {bn}])"
    ));
    lines.zeros(types, block);
    lines.add(format!("for it in range(0, K, {bk}):"));
    lines.inside("ax = a.load([row, it])");
    lines.inside(match turned {
        false => "bx = b.load([it, column])",
        true => "bx = b.load([column, it]).T",
    });
    lines.product(types);
    end(random, &mut lines, types);
    lines.add("c.store([row, column], acc.to(c_ptr.dtype.element_ty))");
    lines.0
}
