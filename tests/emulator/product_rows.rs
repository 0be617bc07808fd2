//! Products of warpgroups on 1,000 operand sets each: what an H200 gave, kept as checksums.
//!
//! Operands are a function of row, set and place, which the kernel [`FILL`] computes on hardware and [`fill`] here, so that
//! nothing but checksums is kept: `products.txt` names each row with that of the first sets, which every run of these tests
//! emulates, and that of all, which one that is asked for emulates.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use tilelift::emu::{Arg, Launch, Memory, Module, Options, run};

use crate::product_sums::{codes, hardware, stored};
use crate::products::{
    B1, BF16, Case, E4M3, E5M2, F16, Layout, S8, TF32, TensorElement, U8, emulate, plain, value,
};

/// Operand sets of a row on hardware.
const SETS: u32 = 1000;
/// Words that describe how the elements of a part of an operand set are made.
const KIND: usize = 20;

/// Fills operand sets: a thread makes a word of four bytes. Each of the three parts of a set (left operand, right operand,
/// accumulators) has its kind in `kinds`, see [`kind`].
const FILL: &str = ".version 8.4
.target sm_90a
.address_size 64
.visible .entry fill(.param .u64 out, .param .u64 kinds, .param .u32 words, .param .u32 left, .param .u32 image,
    .param .u32 each, .param .u32 sums, .param .u32 seed)
{
.reg .pred %p<4>; .reg .b32 %r<24>; .reg .b64 %d<8>;
ld.param.u64 %d0, [out]; ld.param.u64 %d1, [kinds]; ld.param.u32 %r0, [words]; ld.param.u32 %r1, [left];
ld.param.u32 %r2, [image]; ld.param.u32 %r3, [each]; ld.param.u32 %r4, [sums]; ld.param.u32 %r5, [seed];
mov.u32 %r6, %ctaid.x; mov.u32 %r7, %tid.x; mad.lo.u32 %r6, %r6, 256, %r7; mov.u32 %r7, %ctaid.y;
setp.ge.u32 %p0, %r6, %r0; @%p0 bra END;
mad.lo.u32 %r8, %r7, %r0, %r6; mul.wide.u32 %d2, %r8, 4; add.u64 %d0, %d0, %d2;
mov.u32 %r8, 0; setp.lt.u32 %p0, %r6, %r1; @%p0 bra KIND;
mov.u32 %r8, 1; setp.lt.u32 %p0, %r6, %r2; @%p0 bra KIND;
sub.u32 %r9, %r6, %r2; rem.u32 %r9, %r9, %r3; setp.lt.u32 %p0, %r9, %r4; selp.u32 %r8, 2, 0, %p0;
KIND: mad.wide.u32 %d1, %r8, 80, %d1; and.b32 %r8, %r7, 3; mad.wide.u32 %d2, %r8, 4, %d1;
add.u32 %r5, %r5, %r7; mov.u32 %r10, 0; mov.u32 %r11, 0; mov.u32 %r17, 0;
EACH: shl.b32 %r12, %r6, 6; shl.b32 %r13, %r10, 1; add.u32 %r12, %r12, %r13; add.u32 %r13, %r12, 1;
shr.u32 %r14, %r12, 16; xor.b32 %r12, %r12, %r14; mul.lo.u32 %r12, %r12, 0x85ebca6b;
shr.u32 %r14, %r12, 13; xor.b32 %r12, %r12, %r14; mul.lo.u32 %r12, %r12, 0xc2b2ae35;
shr.u32 %r14, %r12, 16; xor.b32 %r12, %r12, %r14; xor.b32 %r12, %r12, %r5;
shr.u32 %r14, %r12, 16; xor.b32 %r12, %r12, %r14; mul.lo.u32 %r12, %r12, 0x85ebca6b;
shr.u32 %r14, %r12, 13; xor.b32 %r12, %r12, %r14; mul.lo.u32 %r12, %r12, 0xc2b2ae35;
shr.u32 %r14, %r12, 16; xor.b32 %r12, %r12, %r14;
shr.u32 %r14, %r13, 16; xor.b32 %r13, %r13, %r14; mul.lo.u32 %r13, %r13, 0x85ebca6b;
shr.u32 %r14, %r13, 13; xor.b32 %r13, %r13, %r14; mul.lo.u32 %r13, %r13, 0xc2b2ae35;
shr.u32 %r14, %r13, 16; xor.b32 %r13, %r13, %r14; xor.b32 %r13, %r13, %r5;
shr.u32 %r14, %r13, 16; xor.b32 %r13, %r13, %r14; mul.lo.u32 %r13, %r13, 0x85ebca6b;
shr.u32 %r14, %r13, 13; xor.b32 %r13, %r13, %r14; mul.lo.u32 %r13, %r13, 0xc2b2ae35;
shr.u32 %r14, %r13, 16; xor.b32 %r13, %r13, %r14;
ld.global.u32 %r15, [%d1]; ld.global.u32 %r16, [%d1+12]; setp.ne.u32 %p0, %r16, 0; @%p0 bra WHOLE;
ld.global.u32 %r16, [%d1+4]; and.b32 %r12, %r12, %r16; ld.global.u32 %r16, [%d2+32]; rem.u32 %r13, %r13, %r16;
ld.global.u32 %r16, [%d2+16]; add.u32 %r13, %r13, %r16; ld.global.u32 %r16, [%d1+8]; shl.b32 %r13, %r13, %r16;
or.b32 %r12, %r12, %r13; bra PUT;
WHOLE: shr.u32 %r12, %r12, 29; mad.wide.u32 %d3, %r12, 4, %d1; ld.global.u32 %r12, [%d3+48];
PUT: shl.b32 %r12, %r12, %r11; or.b32 %r17, %r17, %r12;
add.u32 %r10, %r10, 1; add.u32 %r11, %r11, %r15; setp.lt.u32 %p0, %r11, 32; @%p0 bra EACH;
st.global.u32 [%d0], %r17;
END: ret;
}
";

/// A row of the table.
struct Row {
    name: String,
    case: Case,
    /// Whole numbers, whose sums are exact in any order.
    whole: bool,
}

/// How the elements of a part are made: bits of one; the bits that are random, where the exponent stands; whether a table is
/// used; for each set modulo 4 the least exponent and how many there are; the table.
fn kind(name: &str, bits: usize, whole: Option<[u32; 8]>) -> [u32; KIND] {
    let mut words = [0; KIND];
    words[0] = bits as u32;
    let all = u32::MAX >> (32 - bits);
    let (exponent, significand) = match name {
        "f16" => (5, 10),
        "bf16" => (8, 7),
        "tf32" | "f32" => (8, 23),
        "e4m3" => (4, 3),
        "e5m2" => (5, 2),
        _ => (0, 0),
    };
    let field = ((1_u32 << exponent) - 1) << significand;
    words[1] = all & !field;
    words[2] = significand;
    words[8..12].fill(1);
    if exponent > 0 {
        let bias = (1_u32 << (exponent - 1)) - 1;
        // Never infinite nor NaN.
        for (set, spread) in [0, 2, 6, 30].into_iter().enumerate() {
            let most = bias.min(spread);
            words[4 + set] = bias - most;
            words[8 + set] = 2 * most + 1;
        }
    }
    if let Some(table) = whole {
        words[3] = 1;
        words[12..].copy_from_slice(&table);
    }
    words
}

fn mix(mut x: u32) -> u32 {
    x = (x ^ x >> 16).wrapping_mul(0x85eb_ca6b);
    x = (x ^ x >> 13).wrapping_mul(0xc2b2_ae35);
    x ^ x >> 16
}

/// An operand set, as the kernel makes it.
fn fill(row: &Row, seed: u32, set: u32) -> Vec<u8> {
    let plan = Plan::of(row);
    let words = (0..plan.words).map(|at| {
        let kind = match at {
            at if at < plan.left => 0,
            at if at < plan.image => 1,
            at if (at - plan.image) % plan.each < plan.sums => 2,
            _ => 0,
        };
        let kind = &plan.kinds[kind];
        let slot = set as usize & 3;
        let elements = (0..32 / kind[0]).map(|i| {
            let random = |place: u32| mix(mix(place) ^ seed.wrapping_add(set));
            let place = at * 64 + 2 * i;
            let bits = match kind[3] {
                0 => {
                    let exponent = kind[4 + slot] + random(place + 1) % kind[8 + slot];
                    random(place) & kind[1] | exponent << kind[2]
                }
                _ => kind[12 + (random(place) >> 29) as usize],
            };
            bits << (i * kind[0])
        });
        elements.fold(0, |word, element| word | element)
    });
    words.flat_map(u32::to_le_bytes).collect()
}

/// The parts of an operand set, in words, and how they are made.
struct Plan {
    words: u32,
    left: u32,
    image: u32,
    each: u32,
    sums: u32,
    kinds: [[u32; KIND]; 3],
}

impl Plan {
    fn of(row: &Row) -> Plan {
        let case = &row.case;
        let (left, image) = case.image();
        let narrow = |codes: [u64; 8]| row.whole.then_some(codes.map(|code| code as u32));
        let side = |element: TensorElement| kind(element.name, element.bits, narrow(element.codes));
        let bits = if case.sum == "f16" { 16 } else { 32 };
        Plan {
            words: (case.stride() / 4) as u32,
            left: (left / 4) as u32,
            image: (image / 4) as u32,
            each: case.registers() as u32 + 4,
            sums: case.registers() as u32,
            kinds: [
                side(case.a),
                side(case.b),
                kind(case.sum, bits, narrow(case.start_codes())),
            ],
        }
    }
}

/// The combinations of types that PTX has.
fn types() -> Vec<(TensorElement, TensorElement, &'static str)> {
    let mut types = vec![(F16, F16, "f32"), (F16, F16, "f16"), (BF16, BF16, "f32")];
    types.push((TF32, TF32, "f32"));
    for sum in ["f32", "f16"] {
        for a in [E4M3, E5M2] {
            types.extend([E4M3, E5M2].map(|b| (a, b, sum)));
        }
    }
    for a in [S8, U8] {
        types.extend([S8, U8].map(|b| (a, b, "s32")));
    }
    types.push((B1, B1, "s32"));
    types
}

fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    let mut row = |case: Case, whole: bool, about: &str| {
        let left = match (case.left, whole) {
            (Some(_), true) => "shared",
            (None, true) => "registers",
            (Some(_), false) => "shared, random",
            (None, false) => "registers, random",
        };
        let opcode = case.opcode();
        let (_, opcode) = opcode.split_once("aligned.").expect("an opcode");
        rows.push(Row {
            name: format!("{opcode} {left}{about}"),
            case,
            whole,
        });
    };
    for (a, b, sum) in types() {
        let is_float = sum != "s32";
        for n in [8, 24, 64, if is_float { 136 } else { 144 }, 256] {
            row(plain(a, b, sum, n, true), true, "");
            row(plain(a, b, sum, n, false), true, "");
        }
        row(plain(a, b, sum, 8, true), false, "");
        row(plain(a, b, sum, 64, false), false, "");
        let with = |negated: [bool; 2], adds: bool| Case {
            negated,
            adds,
            ..plain(a, b, sum, 16, true)
        };
        row(with([false; 2], false), true, ", replaces");
        if is_float {
            row(with([true, false], true), true, ", -a");
            row(with([false, true], true), true, ", -b");
            row(with([true, true], false), true, ", -a, -b, replaces");
            row(with([true, false], true), false, ", -a");
        } else if a.bits == 8 {
            let cut = Case {
                saturates: true,
                ..plain(a, b, sum, 16, true)
            };
            row(cut, false, "");
        }
    }
    let placed = |row, across, step: usize| {
        let layout = Layout { row, across, step };
        Layout {
            step: step.min(layout.steps() - 1),
            ..layout
        }
    };
    for lines in [16, 32, 64, 128] {
        for element in [F16, BF16] {
            for (across, other) in [(false, false), (false, true), (true, false), (true, true)] {
                let case = Case {
                    left: Some(placed(lines, across, 1)),
                    right: placed(lines, other, 1),
                    ..plain(element, element, "f32", 64, true)
                };
                let about = format!(
                    ", {lines} bytes, {}{}",
                    ["k", "m"][usize::from(across)],
                    ["k", "n"][usize::from(other)]
                );
                row(case, true, &about);
            }
            let case = Case {
                right: placed(lines, true, 1),
                ..plain(element, element, "f32", 64, false)
            };
            row(case, true, &format!(", {lines} bytes, n"));
        }
        for element in [TF32, E4M3, S8] {
            let sum = if element.name == "s8" { "s32" } else { "f32" };
            let case = Case {
                left: Some(placed(lines, false, 1)),
                right: placed(lines, false, 1),
                ..plain(element, element, sum, 64, true)
            };
            row(case, true, &format!(", {lines} bytes"));
        }
    }
    rows
}

/// Sets that every run emulates: few where a product is large.
fn standing(row: &Row) -> u32 {
    if row.case.n <= 24 { 8 } else { 2 }
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/ptx/hardware")
}

fn write(folder: &Path, name: &str, bytes: &[u8]) {
    fs::write(folder.join(name), bytes).expect("the folder can be written");
}

/// CRC-32, as Python's `zlib` has it, of what has the checksum `crc`, and these bytes.
pub(crate) fn crc32(crc: u32, bytes: &[u8]) -> u32 {
    let step = |crc: u32| crc >> 1 ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 };
    let table: [u32; 256] = std::array::from_fn(|i| (0..8).fold(i as u32, |crc, _| step(crc)));
    !bytes.iter().fold(!crc, |crc, &byte| {
        crc >> 8 ^ table[(crc as u8 ^ byte) as usize]
    })
}

/// Everything that `products.py` needs: the texts, and a line for each row.
fn write_plan(folder: &Path, rows: &[Row]) {
    let mut plan = String::new();
    write(folder, "fill.ptx", FILL.as_bytes());
    for (index, row) in rows.iter().enumerate() {
        write(
            folder,
            &format!("product_{index}.ptx"),
            row.case.text().as_bytes(),
        );
        let parts = Plan::of(row);
        let _ = writeln!(
            plan,
            r#"{{"name":"{}","words":{},"left":{},"image":{},"each":{},"sums":{},"seed":{},"standing":{},"sets":{SETS},"shared":{},"keeps":{},"kinds":{:?}}}"#,
            row.name,
            parts.words,
            parts.left,
            parts.image,
            parts.each,
            parts.sums,
            seed(index),
            standing(row),
            row.case.image().1,
            !row.whole && row.case.n == 8 && row.case.sum != "s32",
            parts.kinds.concat()
        );
    }
    write(folder, "products.plan", plan.as_bytes());
}

/// Where the numbers of a row start.
fn seed(index: usize) -> u32 {
    (index as u32 + 1) << 12
}

/// What the kernel that fills makes on the emulator.
fn fill_emulated(row: &Row, seed: u32, sets: u32) -> Vec<u8> {
    let plan = Plan::of(row);
    let module = Module::parse(FILL).unwrap_or_else(|error| panic!("{error}"));
    let mut memory = Memory::new();
    let words = plan
        .kinds
        .iter()
        .flatten()
        .flat_map(|word| word.to_le_bytes());
    let kinds = memory.alloc_bytes(&words.collect::<Vec<u8>>());
    let size = (4 * plan.words * sets) as usize;
    let out = memory.alloc(size);
    let mut args = vec![Arg::pointer(out), Arg::pointer(kinds)];
    let numbers = [
        plan.words, plan.left, plan.image, plan.each, plan.sums, seed,
    ];
    args.extend(numbers.map(Arg::from));
    let launch = Launch {
        grid: [plan.words.div_ceil(256), sets, 1],
        block: [256, 1, 1],
        shared_bytes: 0,
        args: &args,
        options: Options::default(),
    };
    run(&module, "fill", &launch, &mut memory).unwrap_or_else(|error| panic!("{error}"));
    memory.read(out, size).expect("every word is written")
}

#[test]
fn operands_are_filled_alike() {
    for (index, row) in rows().iter().enumerate().filter(|(_, row)| row.case.n == 8) {
        let seed = seed(index);
        let sets: Vec<u8> = (0..4).flat_map(|set| fill(row, seed, set)).collect();
        assert!(fill_emulated(row, seed, 4) == sets, "{}", row.name);
    }
}

/// Compares some sets of a row with the checksum of what hardware gave: the sums that [`hardware`] says must be these to the bit, and
/// those of the emulator, which adds exactly and rounds once, must be the same of whole numbers and lie within its bounds of others.
fn compare(row: &Row, index: usize, sets: u32, emulated: u32, recorded: u32) {
    let case = &row.case;
    let mut crc = 0;
    for set in 0..sets {
        let bytes = fill(row, seed(index), set);
        let theirs = hardware(case, &codes(case, &bytes));
        let bits: Vec<u64> = theirs.iter().map(|&(bits, _)| bits).collect();
        crc = crc32(crc, &stored(case, &bits));
        if set >= emulated {
            continue;
        }
        let ours = &emulate(case, &[bytes], u64::from(set))[0];
        for (place, (&our, &(their, bound))) in ours.iter().zip(&theirs).enumerate() {
            // An infinity stands for what is just too large for the type: the other one may be just below.
            let limit = if case.sum == "f16" {
                65_536.0
            } else {
                f64::MAX
            };
            let [our, their] = [our, their].map(|bits| value(case.sum, bits).clamp(-limit, limit));
            let agrees = match row.whole {
                true => our == their,
                false => our == their || (our - their).abs() <= bound,
            };
            assert!(
                agrees,
                "{}, set {set}, element {place}: the emulator gives {our:e}, hardware {their:e}, and {bound:e} is possible",
                row.name
            );
        }
    }
    assert_eq!(crc, recorded, "{}: {crc:08x} is computed", row.name);
}

/// The names, the checksums of the standing sets, and of all.
fn recorded() -> BTreeMap<String, [u32; 2]> {
    let text = fs::read_to_string(folder().join("products.txt")).expect("committed test data");
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let row = |line: &str| {
        let (name, sums) = line.split_once(": ").expect("a name and checksums");
        let (first, all) = sums.split_once(' ').expect("two checksums");
        let number = |hex: &str| u32::from_str_radix(hex, 16).expect("a checksum");
        (name.to_owned(), [number(first), number(all)])
    };
    lines.map(row).collect()
}

/// To record: `TILELIFT_HARDWARE_PRODUCTS=DIR cargo test --test emulator product_rows` writes texts and a plan there, and
/// `python tests/data/ptx/hardware/products.py DIR OUT` on a machine with a GPU of compute capability 9.0 the checksums.
#[test]
fn products_agree_with_hardware() {
    let rows = rows();
    if let Some(folder) = std::env::var_os("TILELIFT_HARDWARE_PRODUCTS") {
        return write_plan(Path::new(&folder), &rows);
    }
    let recorded = recorded();
    assert_eq!(recorded.len(), rows.len(), "rows of another table");
    for (index, row) in rows.iter().enumerate() {
        let [first, _] = recorded[&row.name];
        // Of these the emulator computes a part, that of large products takes a while without optimisation.
        compare(row, index, standing(row), standing(row).div_ceil(4), first);
    }
}

/// All 1,000 sets of each row, which takes minutes: `TILELIFT_ALL_SETS=1 cargo test --release --test emulator all_sets`.
#[test]
fn all_sets_agree_with_hardware() {
    if std::env::var_os("TILELIFT_ALL_SETS").is_none() {
        eprintln!("skipped: TILELIFT_ALL_SETS is not set");
        return;
    }
    let (rows, recorded) = (rows(), recorded());
    let next = std::sync::atomic::AtomicUsize::new(0);
    let work = || {
        loop {
            let index = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let Some(row) = rows.get(index) else { return };
            compare(row, index, SETS, SETS, recorded[&row.name][1]);
        }
    };
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        (0..threads).for_each(|_| drop(scope.spawn(work)));
    });
}
