//! Instruction rows: one line of a table becomes a kernel that applies one instruction to many
//! operand sets.
//!
//! A row is an opcode and one letter for each operand, the destination first:
//! `h` f16, `g` bf16, `H` f16x2, `G` bf16x2, `f` f32, `e` f64, `w` 16, `r` 32 and `d` 64 bits of
//! integer, `b` 8 bits of integer in a 32-bit register, `s` a small u32 such as a shift amount,
//! `p` a predicate. Anything else stands as it is; a destination may be `r|p`, a source `{w,w}`.

use std::fmt::Write as _;

/// A row, taken apart.
pub(crate) struct Row {
    pub(crate) opcode: String,
    pub(crate) operands: Vec<String>,
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
        format!("{} {}", self.opcode, self.operands.join(" "))
    }

    /// The letters of the sources, in order.
    pub(crate) fn sources(&self) -> Vec<char> {
        self.operands[1..]
            .iter()
            .flat_map(|operand| {
                let plain =
                    operand.starts_with('{') || operand.starts_with('!') || operand.len() == 1;
                operand
                    .chars()
                    .filter(move |c| plain && c.is_ascii_alphabetic())
            })
            .collect()
    }

    /// The letter of the destination.
    pub(crate) fn dest(&self) -> char {
        self.operands[0]
            .chars()
            .find(char::is_ascii_alphabetic)
            .expect("a destination")
    }
}

fn bits(letter: char) -> u32 {
    match letter {
        'h' | 'g' | 'w' => 16,
        'e' | 'd' => 64,
        'p' => 1,
        _ => 32,
    }
}

fn register(letter: char, number: usize) -> String {
    match bits(letter) {
        1 => format!("%p{number}"),
        16 => format!("%h{number}"),
        64 => format!("%d{number}"),
        _ => format!("%r{number}"),
    }
}

/// Replaces letters by registers, numbered from `next`.
fn name(operand: &str, next: &mut usize) -> String {
    if operand.len() > 1
        && !operand.starts_with('{')
        && !operand.starts_with('!')
        && !operand.contains('|')
    {
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

/// A module with one entry `row_N` for each row. Thread `i` of the grid reads four 64-bit words
/// from `in + 32 i` and writes two to `out + 16 i`: the result, and the predicate if there is one.
pub(crate) fn module(rows: &[Row]) -> String {
    let mut text = String::from(".version 8.3\n.target sm_90\n.address_size 64\n");
    for (index, row) in rows.iter().enumerate() {
        let _ = write!(
            text,
            ".visible .entry row_{index}(.param .u64 in, .param .u64 out)
{{
.reg .pred %p<8>; .reg .b16 %h<8>; .reg .b32 %r<8>; .reg .b64 %d<8>; .reg .b32 %t<4>; .reg .b64 %a<4>;
ld.param.u64 %a0, [in];
ld.param.u64 %a1, [out];
mov.u32 %t0, %tid.x;
mov.u32 %t1, %ctaid.x;
mov.u32 %t2, %ntid.x;
mad.lo.u32 %t0, %t1, %t2, %t0;
mad.wide.u32 %a0, %t0, 32, %a0;
mad.wide.u32 %a1, %t0, 16, %a1;
mov.u32 %r0, 0; mov.u16 %h0, 0; mov.u64 %d0, 0; setp.ne.u32 %p0, %r0, 0; setp.ne.u32 %p1, %r0, 0;
"
        );
        let mut next = 0;
        let dest = name(&row.operands[0], &mut next);
        // Sources start behind the two registers that a destination may take.
        next = 2;
        for (slot, letter) in row.sources().into_iter().enumerate() {
            let at = register(letter, 2 + slot);
            let _ = match bits(letter) {
                1 => writeln!(
                    text,
                    "ld.global.u32 %t3, [%a0+{}]; setp.ne.u32 {at}, %t3, 0;",
                    8 * slot
                ),
                width => writeln!(text, "ld.global.b{width} {at}, [%a0+{}];", 8 * slot),
            };
        }
        let sources: Vec<String> = row.operands[1..]
            .iter()
            .map(|operand| name(operand, &mut next))
            .collect();
        let mut all = vec![dest];
        all.extend(sources);
        let _ = writeln!(text, "{} {};", row.opcode, all.join(", "));
        // The result, zero-extended, and the predicate.
        let _ = match bits(row.dest()) {
            1 => writeln!(text, "selp.u64 %d0, 1, 0, %p0;"),
            16 => writeln!(text, "cvt.u64.u16 %d0, %h0;"),
            32 => writeln!(text, "cvt.u64.u32 %d0, %r0;"),
            _ => Ok(()),
        };
        text.push_str("st.global.u64 [%a1], %d0;\nselp.u64 %d1, 1, 0, %p1;\nst.global.u64 [%a1+8], %d1;\nret;\n}\n");
    }
    text
}
