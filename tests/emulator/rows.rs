//! Instruction rows: one line of a table becomes a kernel that applies one instruction to many
//! operand sets.
//!
//! A row is an opcode and its operands, the destination first. An operand is a letter:
//! `h` f16, `g` bf16, `H` f16x2, `G` bf16x2, `f` f32, `q` f32 within 2 pi, `a` f32 within 100 pi,
//! `e` f64, `w` 16, `r` 32 and `d` 64 bits of integer, `b` 8 bits of integer in a 32-bit register,
//! `s` a small u32 such as a shift amount, `p` a predicate; small integers, whose sums of products are exact in any order:
//! `i` two of f16, `j` two of bf16, `k` an f32, `l` an f64, `m` four of e4m3, `n` four of e5m2; letters in braces are a vector, a
//! destination may be `r|p`. Letters in brackets are a cell of memory with such content, in the
//! space that the opcode names; what the instruction leaves there is a result like its destination.
//! `hint` is a cache policy, `other` a place in device memory that holds the neighbour's cell, to be copied from
//! asynchronously; anything else stands as it is.
//!
//! In the table `(a/b/c)` stands for a row with each of the alternatives.

use std::fmt::Write as _;

/// Sets of operands of each row.
pub(crate) const SETS: usize = 1024;
/// Threads of a CTA.
pub(crate) const THREADS: usize = 256;
/// Bytes of a cell of memory.
const CELL: usize = 16;
/// Number of the first register of the sources.
const FIRST_SOURCE: usize = 8;

/// A row, taken apart.
#[derive(Clone)]
pub(crate) struct Row {
    pub(crate) opcode: String,
    pub(crate) operands: Vec<String>,
}

/// The rows that a line of the table stands for.
pub(crate) fn expand(line: &str) -> Vec<String> {
    let Some((start, rest)) = line.split_once('(') else {
        return vec![line.to_owned()];
    };
    let (choices, end) = rest.split_once(')').expect("alternatives end with `)`");
    choices
        .split('/')
        .flat_map(|choice| expand(&format!("{start}{choice}{end}")))
        .collect()
}

fn letters(operand: &str) -> impl Iterator<Item = char> {
    operand.chars().filter(char::is_ascii_alphabetic)
}

/// Whether an operand consists of registers.
fn is_plain(operand: &str) -> bool {
    let first = operand.chars().next().unwrap_or(' ');
    operand.len() == 1 && first.is_ascii_alphabetic()
        || matches!(first, '{' | '!')
        || operand.contains('|')
}

impl Row {
    pub(crate) fn parse(text: &str) -> Row {
        let mut words = text.split_whitespace().map(str::to_owned);
        let opcode = words.next().expect("a row has an opcode");
        Row {
            opcode,
            operands: words.collect(),
        }
    }

    /// The row as it was parsed.
    pub(crate) fn name(&self) -> String {
        let mut name = self.opcode.clone();
        for operand in &self.operands {
            name = name + " " + operand;
        }
        name
    }

    /// The letters of the destination.
    pub(crate) fn dest(&self) -> Vec<char> {
        let first = self.operands.first().filter(|first| is_plain(first));
        first.map_or(Vec::new(), |first| letters(first).collect())
    }

    /// The letters of the cell of memory.
    pub(crate) fn cell(&self) -> Vec<char> {
        let cells = self.operands.iter().filter(|o| o.starts_with('['));
        cells.flat_map(|cell| letters(cell)).collect()
    }

    /// The letters of the registers that are read, in order.
    fn sources(&self) -> Vec<char> {
        let behind = usize::from(!self.dest().is_empty());
        let plain = self.operands.iter().skip(behind).filter(|o| is_plain(o));
        plain.flat_map(|operand| letters(operand)).collect()
    }

    /// The letters of everything that an operand set gives: the cell, then the registers.
    pub(crate) fn inputs(&self) -> Vec<char> {
        [self.cell(), self.sources()].concat()
    }

    /// The letters of the results, a word each: the destination, then the cell.
    pub(crate) fn results(&self) -> Vec<char> {
        [self.dest(), self.cell()].concat()
    }

    /// Bytes of the cell in an operand set.
    fn cell_bytes(&self) -> usize {
        if self.cell().is_empty() { 0 } else { CELL }
    }

    /// Bytes from one operand set to the next.
    pub(crate) fn input_stride(&self) -> usize {
        (self.cell_bytes() + 8 * self.sources().len())
            .next_multiple_of(16)
            .max(16)
    }

    /// Bytes from the results of one set to those of the next.
    pub(crate) fn output_stride(&self) -> usize {
        8 * self.results().len().max(1)
    }

    /// An operand set as the kernel reads it.
    pub(crate) fn encode(&self, set: &[u64]) -> Vec<u8> {
        let cell = self.cell();
        let mut bytes = Vec::new();
        for (&letter, word) in cell.iter().zip(set) {
            bytes.extend(&word.to_le_bytes()[..memory_bits(letter) as usize / 8]);
        }
        bytes.resize(self.cell_bytes(), 0);
        for word in &set[cell.len()..] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.resize(self.input_stride(), 0);
        bytes
    }
}

/// Bits of the register that a letter stands for.
fn bits(letter: char) -> u32 {
    match letter {
        'h' | 'g' | 'w' => 16,
        'e' | 'd' | 'l' => 64,
        'p' => 1,
        _ => 32,
    }
}

fn memory_bits(letter: char) -> u32 {
    if letter == 'b' { 8 } else { bits(letter) }
}

fn register(letter: char, number: usize) -> String {
    match bits(letter) {
        1 => format!("%p{number}"),
        16 => format!("%h{number}"),
        64 => format!("%d{number}"),
        _ => format!("%r{number}"),
    }
}

/// Replaces letters by registers, numbered from `next`, and cells by their address.
fn name(operand: &str, next: &mut usize) -> String {
    if operand.starts_with('[') {
        return "[%a2]".to_owned();
    }
    if operand == "hint" {
        return "%a3".to_owned();
    }
    if operand == "other" {
        return "[%a8]".to_owned();
    }
    if !is_plain(operand) {
        return operand.to_owned();
    }
    operand
        .chars()
        .map(|c| {
            if c.is_ascii_alphabetic() {
                *next += 1;
                register(c, *next - 1)
            } else {
                c.to_string()
            }
        })
        .collect()
}

/// A module with one entry `row_N` for each row. Thread `i` of the grid reads its operand set from
/// `in + i * stride`, where the cell in device memory stays, and writes its results to
/// `out + i * stride`. A cell in shared memory is filled by the neighbour, so that the assembler
/// cannot see what it holds.
pub(crate) fn module(rows: &[Row]) -> String {
    let mut text = String::from(".version 8.7\n.target sm_90\n.address_size 64\n");
    for (index, row) in rows.iter().enumerate() {
        let (from, to) = (row.input_stride(), row.output_stride());
        let _ = write!(
            text,
            ".visible .entry row_{index}(.param .u64 in, .param .u64 out)
{{
.reg .pred %p<24>; .reg .b16 %h<24>; .reg .b32 %r<24>; .reg .b64 %d<24>; .reg .b32 %t<4>; .reg .b64 %a<9>;
ld.param.u64 %a0, [in];
ld.param.u64 %a1, [out];
mov.u32 %t0, %tid.x;
mov.u32 %t1, %ctaid.x;
mov.u32 %t2, %ntid.x;
mad.lo.u32 %t0, %t1, %t2, %t0;
xor.b32 %t2, %t0, 1;
mad.wide.u32 %a4, %t2, {from}, %a0;
mov.b64 %a8, %a4;
mad.wide.u32 %a0, %t0, {from}, %a0;
mad.wide.u32 %a1, %t0, {to}, %a1;
"
        );
        let is_shared = row.opcode.contains(".shared");
        if is_shared {
            let bytes = THREADS * CELL;
            let _ = write!(
                text,
                ".shared .align 16 .b8 cells_{index}[{bytes}];
ld.global.v2.b64 {{%a5, %a6}}, [%a4];
mov.u64 %a2, cells_{index};
mov.u32 %t0, %tid.x;
xor.b32 %t2, %t0, 1;
mad.wide.u32 %a4, %t2, {CELL}, %a2;
mad.wide.u32 %a2, %t0, {CELL}, %a2;
st.shared.v2.b64 [%a4], {{%a5, %a6}};
bar.sync 0;
"
            );
        } else {
            text.push_str("mov.u64 %a2, %a0;\n");
        }
        if row.operands.iter().any(|operand| operand == "hint") {
            text.push_str("createpolicy.fractional.L2::evict_first.b64 %a3;\n");
        }
        for (slot, letter) in row.sources().into_iter().enumerate() {
            let at = register(letter, FIRST_SOURCE + slot);
            let offset = row.cell_bytes() + 8 * slot;
            let _ = match bits(letter) {
                1 => writeln!(
                    text,
                    "ld.global.u32 %t3, [%a0+{offset}]; setp.ne.u32 {at}, %t3, 0;"
                ),
                width => writeln!(text, "ld.global.b{width} {at}, [%a0+{offset}];"),
            };
        }
        let behind = usize::from(!row.dest().is_empty());
        let (dest, sources) = row.operands.split_at(behind);
        let (mut next, mut next_source) = (0, FIRST_SOURCE);
        let dest = dest.iter().map(|operand| name(operand, &mut next));
        let sources = sources
            .iter()
            .map(|operand| name(operand, &mut next_source));
        let operands: Vec<String> = dest.chain(sources).collect();
        let _ = writeln!(text, "{} {};", row.opcode, operands.join(", "));
        if row.operands.iter().any(|operand| operand == "other") {
            text.push_str("cp.async.commit_group; cp.async.wait_group 0;\n");
        }
        for (slot, letter) in row.dest().into_iter().enumerate() {
            let at = register(letter, slot);
            let _ = match bits(letter) {
                1 => writeln!(text, "selp.u64 %a7, 1, 0, {at};"),
                64 => writeln!(text, "mov.b64 %a7, {at};"),
                width => writeln!(text, "cvt.u64.u{width} %a7, {at};"),
            };
            let _ = writeln!(text, "st.global.u64 [%a1+{}], %a7;", 8 * slot);
        }
        let space = if is_shared { "shared" } else { "global" };
        let mut offset = 0;
        for (slot, letter) in row.cell().into_iter().enumerate() {
            let width = memory_bits(letter);
            let _ = writeln!(
                text,
                "ld.{space}.u{width} %a7, [%a2+{offset}]; st.global.u64 [%a1+{}], %a7;",
                8 * (row.dest().len() + slot)
            );
            offset += width / 8;
        }
        if row.results().is_empty() {
            text.push_str("mov.u64 %a7, 0; st.global.u64 [%a1], %a7;\n");
        }
        text.push_str("ret;\n}\n");
    }
    text
}
