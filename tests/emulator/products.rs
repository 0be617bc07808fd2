//! Products of warpgroups: every type, both sources of the left operand, every layout of shared memory; small integers, whose
//! sums are exact in any order.

use std::fmt::Write as _;

use tilelift::emu::{Arg, Launch, Memory, Module, Options, run};

/// A type of factors: how PTX calls it, its bits, what -4 to 3 are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TensorElement {
    pub(crate) name: &'static str,
    pub(crate) bits: usize,
    pub(crate) codes: [u64; 8],
    pub(crate) values: [i64; 8],
}

const SIGNED: [i64; 8] = [-4, -3, -2, -1, 0, 1, 2, 3];
const HALVES: [u64; 8] = [0xc400, 0xc200, 0xc000, 0xbc00, 0, 0x3c00, 0x4000, 0x4200];
const BRAINS: [u64; 8] = [0xc080, 0xc040, 0xc000, 0xbf80, 0, 0x3f80, 0x4000, 0x4040];
const EIGHTS: [u64; 8] = [0xc8, 0xc4, 0xc0, 0xb8, 0, 0x38, 0x40, 0x44];
const BYTES: [u64; 8] = [0xfc, 0xfd, 0xfe, 0xff, 0, 1, 2, 3];

const fn element(
    name: &'static str,
    bits: usize,
    codes: [u64; 8],
    values: [i64; 8],
) -> TensorElement {
    TensorElement {
        name,
        bits,
        codes,
        values,
    }
}

const fn shifted(codes: [u64; 8], left: u32) -> [u64; 8] {
    let mut codes = codes;
    let mut i = 0;
    while i < 8 {
        codes[i] = codes[i] << left;
        i += 1;
    }
    codes
}

pub(crate) const F16: TensorElement = element("f16", 16, HALVES, SIGNED);
pub(crate) const BF16: TensorElement = element("bf16", 16, BRAINS, SIGNED);
pub(crate) const TF32: TensorElement = element("tf32", 32, shifted(BRAINS, 16), SIGNED);
pub(crate) const E4M3: TensorElement = element("e4m3", 8, EIGHTS, SIGNED);
const E5M2_CODES: [u64; 8] = [0xc4, 0xc2, 0xc0, 0xbc, 0, 0x3c, 0x40, 0x42];
pub(crate) const E5M2: TensorElement = element("e5m2", 8, E5M2_CODES, SIGNED);
pub(crate) const S8: TensorElement = element("s8", 8, BYTES, SIGNED);
// The same bytes, as they are without a sign.
const UNSIGNED: [i64; 8] = [252, 253, 254, 255, 0, 1, 2, 3];
pub(crate) const U8: TensorElement = element("u8", 8, BYTES, UNSIGNED);
const ODD: [i64; 8] = [0, 1, 0, 1, 0, 1, 0, 1];
const BIT_CODES: [u64; 8] = [0, 1, 0, 1, 0, 1, 0, 1];
pub(crate) const B1: TensorElement = element("b1", 1, BIT_CODES, ODD);

/// How an operand lies in shared memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    /// Bytes of a row whose chunks are exchanged: 128, 64, 32; 16: none are.
    pub(crate) row: usize,
    /// Given across the summed dimension.
    pub(crate) across: bool,
    /// Which step of 32 bytes (or of 16 indices) of the block is multiplied.
    pub(crate) step: usize,
}

/// Steps of the summed dimension that a block has.
const STEPS: usize = 2;

impl Layout {
    /// The descriptor without its address, the offset of the step, and the bytes of a block of so many rows.
    fn descriptor(self, rows: usize) -> (u64, usize, usize) {
        let row = self.row;
        let swizzle = [(16, 0), (128, 1), (64, 2), (32, 3)];
        let code = swizzle.iter().find(|s| s.0 == row).expect("a row").1;
        // Where parts are farther apart than the packed block has them, strides are told apart.
        let (leading, stride, step, bytes) = match (row, self.across) {
            (16, false) => (128, 128 * 2 * STEPS, 256, rows * 32 * STEPS),
            (16, true) => (rows * 16, 128, rows * 32, rows * 32 * STEPS),
            (_, false) => (16, 8 * row, 32, rows * row),
            (_, true) => (16 * STEPS * row, 8 * row, 16 * row, 0),
        };
        let bytes = match bytes {
            0 => (2 * rows).div_ceil(row) * leading,
            bytes => bytes,
        };
        let bits = (leading as u64 >> 4) << 16 | (stride as u64 >> 4) << 32 | code << 62;
        (bits, self.step * step, bytes)
    }

    /// Steps that a block has.
    pub(crate) fn steps(self) -> usize {
        match (self.row, self.across) {
            (16, _) | (_, true) => STEPS,
            (row, false) => row / 32,
        }
    }

    /// The byte of an element of the step in the block: `inner` counts bytes if the block is given along the summed
    /// dimension, else indices.
    pub(crate) fn byte(self, rows: usize, outer: usize, inner: usize) -> usize {
        let exchange = |line: usize, byte: usize| {
            // A line of 128 bytes exchanges by its number; shorter ones by that of the 128 bytes that they are in.
            let by = line * self.row / 128 % (self.row / 16);
            line * self.row + ((byte / 16) ^ by) * 16 + byte % 16
        };
        match (self.row, self.across) {
            (16, false) => {
                let inner = 32 * self.step + inner;
                let core = outer / 8 * 2 * STEPS + inner / 16;
                core * 128 + outer % 8 * 16 + inner % 16
            }
            (16, true) => {
                let inner = 16 * self.step + inner;
                let core = inner / 8 * (rows / 8) + outer / 8;
                core * 128 + inner % 8 * 16 + outer % 8 * 2
            }
            (_, false) => exchange(outer, 32 * self.step + inner),
            (row, true) => {
                let (panel, byte) = (2 * outer / row, 2 * outer % row);
                exchange(panel * 16 * STEPS + 16 * self.step + inner, byte)
            }
        }
    }
}

/// A product to be tried.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    pub(crate) a: TensorElement,
    pub(crate) b: TensorElement,
    pub(crate) sum: &'static str,
    pub(crate) n: usize,
    /// None: the left operand is in registers.
    pub(crate) left: Option<Layout>,
    pub(crate) right: Layout,
    pub(crate) adds: bool,
    pub(crate) negated: [bool; 2],
    pub(crate) saturates: bool,
}

impl Case {
    pub(crate) fn k(&self) -> usize {
        256 / self.a.bits
    }

    /// -4 to 3 as accumulators.
    pub(crate) fn start_codes(&self) -> [u64; 8] {
        std::array::from_fn(|i| code(self.sum, i as i64 - 4))
    }

    fn is_integer(&self) -> bool {
        self.sum == "s32"
    }

    /// Accumulator registers of a thread.
    pub(crate) fn registers(&self) -> usize {
        if self.sum == "f16" {
            self.n / 4
        } else {
            self.n / 2
        }
    }

    fn layouts(&self) -> [Option<Layout>; 2] {
        [self.left, Some(self.right)]
    }

    /// Where the right operand starts in shared memory, and the bytes of both.
    pub(crate) fn image(&self) -> (usize, usize) {
        let left = self.left.map_or(0, |left| left.descriptor(64).2);
        let start = left.next_multiple_of(1024);
        (start, start + self.right.descriptor(self.n).2)
    }

    /// Bytes of an operand set: the image, the accumulators and the left operand's registers of 128 threads.
    pub(crate) fn stride(&self) -> usize {
        self.image().1 + 128 * 4 * (self.registers() + 4)
    }

    pub(crate) fn opcode(&self) -> String {
        let saturates = if self.saturates { ".satfinite" } else { "" };
        let bits = if self.a.bits == 1 { ".and.popc" } else { "" };
        format!(
            "wgmma.mma_async.sync.aligned.m64n{}k{}{saturates}.{}.{}.{}{bits}",
            self.n,
            self.k(),
            self.sum,
            self.a.name,
            self.b.name
        )
    }

    /// A module whose entry `product` multiplies one operand set a CTA.
    pub(crate) fn text(&self) -> String {
        let (start, bytes) = self.image();
        let registers = self.registers();
        let list = |count: usize, letter: char| {
            let all: Vec<String> = (0..count).map(|i| format!("%{letter}{i}")).collect();
            all.join(",")
        };
        let mut text = format!(
            ".version 8.4
.target sm_90a
.address_size 64
.extern .shared .align 1024 .b8 dyn[];
.visible .entry product(.param .u64 in, .param .u64 out) .maxntid 128, 1, 1
{{
.reg .pred %p<4>; .reg .b32 %r<16>; .reg .b64 %d<16>; .reg .b32 %c<{registers}>; .reg .b32 %a<4>;
mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mov.u32 %r2, dyn;
ld.param.u64 %d0, [in]; ld.param.u64 %d1, [out];
mul.wide.u32 %d2, %r1, {}; add.u64 %d0, %d0, %d2;
mul.wide.u32 %d2, %r1, {}; add.u64 %d1, %d1, %d2;
shl.b32 %r3, %r0, 2;
COPY: cvt.u64.u32 %d3, %r3; add.u64 %d3, %d3, %d0; ld.global.b32 %r4, [%d3];
add.u32 %r5, %r2, %r3; st.shared.b32 [%r5], %r4;
add.u32 %r3, %r3, 512; setp.lt.u32 %p0, %r3, {bytes}; @%p0 bra COPY;
fence.proxy.async.shared::cta; bar.sync 0;
mad.wide.u32 %d4, %r0, {}, %d0;
",
            self.stride(),
            512 * registers,
            4 * (registers + 4)
        );
        for i in 0..registers {
            let _ = writeln!(text, "ld.global.b32 %c{i}, [%d4+{}];", bytes + 4 * i);
        }
        for i in 0..4 {
            let at = bytes + 4 * (registers + i);
            let _ = writeln!(text, "ld.global.b32 %a{i}, [%d4+{at}];");
        }
        for (slot, (layout, rows)) in self.layouts().into_iter().zip([64, self.n]).enumerate() {
            let Some(layout) = layout else { continue };
            let (bits, step, _) = layout.descriptor(rows);
            let at = step + slot * start;
            let _ = writeln!(
                text,
                "add.u32 %r6, %r2, {at}; shr.u32 %r6, %r6, 4; cvt.u64.u32 %d{0}, %r6; or.b64 %d{0}, %d{0}, {bits};",
                5 + slot
            );
        }
        let left = match self.left {
            Some(_) => "%d5".to_owned(),
            None => format!("{{{}}}", list(4, 'a')),
        };
        let mut tail = format!("{}", u32::from(self.adds));
        if !self.is_integer() {
            for negated in self.negated {
                tail += if negated { ", -1" } else { ", 1" };
            }
        }
        if self.a.bits == 16 {
            for layout in self.layouts().into_iter().flatten() {
                let _ = write!(tail, ", {}", u32::from(layout.across));
            }
        }
        let _ = writeln!(
            text,
            "wgmma.fence.sync.aligned;
{} {{{}}}, {left}, %d6, {tail};
wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;
mad.wide.u32 %d7, %r0, {}, %d1;",
            self.opcode(),
            list(registers, 'c'),
            4 * registers
        );
        for i in 0..registers {
            let _ = writeln!(text, "st.global.b32 [%d7+{}], %c{i};", 4 * i);
        }
        text + "ret;\n}\n"
    }

    /// An operand set of elements given by their codes: the left operand by rows, the right one by columns, and accumulators.
    pub(crate) fn encode(&self, a: &[u64], b: &[u64], sums: &[u64]) -> Vec<u8> {
        let (start, bytes) = self.image();
        let mut image = vec![0_u8; bytes];
        let k = self.k();
        let sides = [
            (self.left, a, self.a, 64, 0),
            (Some(self.right), b, self.b, self.n, start),
        ];
        for (layout, codes, element, rows, start) in sides {
            let Some(layout) = layout else { continue };
            for (i, &code) in codes.iter().enumerate() {
                let (outer, inner) = (i / k, i % k);
                let bit = inner * element.bits;
                let at = match layout.across {
                    true => layout.byte(rows, outer, inner),
                    false => layout.byte(rows, outer, bit / 8),
                };
                let bytes = element.bits.div_ceil(8);
                let low = if element.bits == 1 { bit % 8 } else { 0 };
                for (byte, part) in image[start + at..][..bytes]
                    .iter_mut()
                    .zip((code << low).to_le_bytes())
                {
                    *byte |= part;
                }
            }
        }
        let mut registers = vec![0_u32; 128 * (self.registers() + 4)];
        let each = self.registers() + 4;
        for (thread, words) in registers.chunks_exact_mut(each).enumerate() {
            for i in 0..self.n / 2 {
                let (row, column) = sum_place(thread, i);
                let code = sums[row * self.n + column] as u32;
                match self.sum {
                    "f16" => words[i / 2] |= code << (16 * (i % 2)),
                    _ => words[i] = code,
                }
            }
            if self.left.is_none() {
                let (warp, group, quad) = (thread / 32, thread % 32 / 4, thread % 4);
                let width = 32 / self.a.bits;
                for (register, word) in words[self.registers()..].iter_mut().enumerate() {
                    for i in 0..width {
                        let row = 16 * warp + group + 8 * (register & 1);
                        let inner = width * quad + i + 4 * width * (register >> 1);
                        *word |= (a[row * k + inner] as u32) << (i * self.a.bits);
                    }
                }
            }
        }
        image.extend(registers.iter().flat_map(|word| word.to_le_bytes()));
        image
    }

    /// The sums of one operand set by rows, from the accumulators of 128 threads.
    pub(crate) fn decode(&self, bytes: &[u8]) -> Vec<u64> {
        let words = bytes.as_chunks::<4>().0;
        let mut sums = vec![0; 64 * self.n];
        for thread in 0..128 {
            for i in 0..self.n / 2 {
                let (row, column) = sum_place(thread, i);
                let word = |i: usize| u32::from_le_bytes(words[thread * self.registers() + i]);
                sums[row * self.n + column] = u64::from(match self.sum {
                    "f16" => word(i / 2) >> (16 * (i % 2)) & 0xffff,
                    _ => word(i),
                });
            }
        }
        sums
    }
}

/// Row and column of accumulator element `i` of a thread.
pub(crate) fn sum_place(thread: usize, i: usize) -> (usize, usize) {
    let (warp, group, quad) = (thread / 32, thread % 32 / 4, thread % 4);
    (
        16 * warp + group + 8 * (i >> 1 & 1),
        8 * (i >> 2) + 2 * quad + (i & 1),
    )
}

/// Random numbers.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 ^ self.0 >> 29) >> 16
    }
}

/// Runs operand sets on the emulator.
pub(crate) fn emulate(case: &Case, sets: &[Vec<u8>], seed: u64) -> Vec<Vec<u64>> {
    let text = case.text();
    let module = Module::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let mut memory = Memory::new();
    let input = memory.alloc_bytes(&sets.concat());
    let each = 512 * case.registers();
    let out = memory.alloc(each * sets.len());
    let args = [input, out].map(Arg::pointer);
    let launch = Launch {
        grid: [sets.len() as u32, 1, 1],
        block: [128, 1, 1],
        shared_bytes: case.image().1 as u32,
        args: &args,
        options: Options {
            seed,
            ..Options::default()
        },
    };
    run(&module, "product", &launch, &mut memory)
        .unwrap_or_else(|error| panic!("{case:?}: {error}"));
    let bytes = memory.read(out, each * sets.len()).expect("written");
    bytes
        .chunks_exact(each)
        .map(|set| case.decode(set))
        .collect()
}

/// The number that an accumulator's bits are.
pub(crate) fn value(sum: &str, bits: u64) -> f64 {
    match sum {
        "f16" => tilelift::num::f16::to_f64(bits as u16),
        "f32" => f64::from(f32::from_bits(bits as u32)),
        _ => f64::from(bits as u32 as i32),
    }
}

/// Bits of a small whole number as an accumulator.
fn code(sum: &str, value: i64) -> u64 {
    match sum {
        "f16" => HALVES[(value + 4) as usize],
        "f32" => BRAINS[(value + 4) as usize] << 16,
        _ => u64::from(value as i32 as u32),
    }
}

/// Runs a case on small whole numbers and compares with sums of integers.
fn check(case: Case, seed: u64) {
    let mut random = Random(seed);
    let mut pick =
        |count: usize| -> Vec<usize> { (0..count).map(|_| (random.next() & 7) as usize).collect() };
    let (k, n) = (case.k(), case.n);
    let (a, b, c) = (pick(64 * k), pick(n * k), pick(64 * n));
    let codes = |picks: &[usize], codes: &[u64; 8]| -> Vec<u64> {
        picks.iter().map(|&pick| codes[pick]).collect()
    };
    let starts: Vec<u64> = c.iter().map(|&x| code(case.sum, x as i64 - 4)).collect();
    let set = case.encode(
        &codes(&a, &case.a.codes),
        &codes(&b, &case.b.codes),
        &starts,
    );
    let found = &emulate(&case, &[set], seed)[0];
    let sign = if case.negated[0] != case.negated[1] {
        -1
    } else {
        1
    };
    for row in 0..64 {
        for column in 0..n {
            let terms =
                (0..k).map(|i| case.a.values[a[row * k + i]] * case.b.values[b[column * k + i]]);
            let start = if case.adds {
                c[row * n + column] as i64 - 4
            } else {
                0
            };
            let wanted = start + sign * terms.sum::<i64>();
            let found = value(case.sum, found[row * n + column]);
            assert_eq!(found, wanted as f64, "{case:?}: row {row}, column {column}");
        }
    }
}

const fn along(row: usize) -> Layout {
    Layout {
        row,
        across: false,
        step: 0,
    }
}

/// A product of blocks without exchanges, the left operand in registers if it says so.
pub(crate) fn plain(
    a: TensorElement,
    b: TensorElement,
    sum: &'static str,
    n: usize,
    shared: bool,
) -> Case {
    Case {
        a,
        b,
        sum,
        n,
        left: shared.then_some(along(16)),
        right: along(16),
        adds: true,
        negated: [false; 2],
        saturates: false,
    }
}

/// The combinations of types.
pub(crate) const TYPES: [(TensorElement, TensorElement, &str); 14] = [
    (F16, F16, "f32"),
    (F16, F16, "f16"),
    (BF16, BF16, "f32"),
    (TF32, TF32, "f32"),
    (E4M3, E4M3, "f32"),
    (E4M3, E5M2, "f32"),
    (E5M2, E4M3, "f16"),
    (E5M2, E5M2, "f32"),
    (S8, S8, "s32"),
    (S8, U8, "s32"),
    (U8, S8, "s32"),
    (U8, U8, "s32"),
    (B1, B1, "s32"),
    (E4M3, E4M3, "f16"),
];

#[test]
fn every_type_and_extent_is_multiplied() {
    for (index, (a, b, sum)) in TYPES.into_iter().enumerate() {
        for n in [8, 24, 64, 144, 256] {
            for shared in [true, false] {
                let case = plain(a, b, sum, n, shared);
                check(case, 7 + index as u64);
                let other = Case {
                    adds: false,
                    negated: [sum != "s32", index % 2 == 0 && sum != "s32"],
                    ..case
                };
                check(other, 8 + index as u64);
            }
        }
    }
    for n in [136, 248] {
        check(plain(BF16, BF16, "f32", n, true), 5);
    }
}

#[test]
fn every_layout_of_shared_memory_is_read() {
    for row in [16, 32, 64, 128] {
        for element in [BF16, F16, TF32, E4M3, S8] {
            let sum = if element.name == "s8" { "s32" } else { "f32" };
            for (across, other) in [(false, false), (false, true), (true, false), (true, true)] {
                if element.bits != 16 && (across || other) {
                    continue;
                }
                let layout = |across, step| Layout { row, across, step };
                for step in 0..4 {
                    let left = layout(across, step.min(layout(across, 0).steps() - 1));
                    let right = layout(other, step.min(layout(other, 0).steps() - 1));
                    for n in [16, 64, 256] {
                        let case = Case {
                            left: Some(left),
                            right,
                            ..plain(element, element, sum, n, true)
                        };
                        check(case, step as u64);
                    }
                    let in_registers = Case {
                        left: None,
                        right,
                        ..plain(element, element, sum, 32, false)
                    };
                    check(in_registers, step as u64);
                }
            }
        }
    }
}

#[test]
fn sums_of_integers_are_cut_or_wrap() {
    for (saturates, wanted) in [(true, i32::MAX), (false, i32::MIN + 32 * 9 - 1)] {
        let case = Case {
            saturates,
            ..plain(S8, S8, "s32", 8, true)
        };
        // 32 products of 3 and 3 on the largest number.
        let set = case.encode(&[3; 64 * 32], &[3; 8 * 32], &[i32::MAX as u64; 64 * 8]);
        let found = &emulate(&case, &[set], 0)[0];
        assert!(
            found.iter().all(|&x| x as u32 as i32 == wanted),
            "{found:?}"
        );
    }
}
