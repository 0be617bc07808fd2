//! Matrices held by a warp.
//!
//! # Products
//! An element of the result is a sum of products ([`product`](super::product)).
//! `m8n8k4` in f16 is four products, each of lanes `4j..4j + 4` and `16 + 4j..20 + 4j`.

use super::super::error::{Fault, Space};
use super::super::inst::{Address, Dst, Inst, MmaShape, Op, Src};
use super::super::race::{CheckedAccess, lanes};
use super::super::sched::{CtaState, Machine, StepResult, Trouble};
use super::super::types::Type;
use super::super::warp::Warp;
use super::access::AccessTarget;
use super::product::{number, rounded};

/// Bytes of a row of an 8x8 matrix.
const ROW_BYTES: u32 = 16;

impl Machine<'_> {
    /// Executes an instruction that a whole warp takes part in.
    pub(super) fn matrix(
        &mut self,
        cta: &mut CtaState,
        warp: &mut Warp,
        group: usize,
        inst: &Inst,
    ) -> Result<StepResult, Trouble> {
        let Some(whole) = warp.gather(group, warp.exists) else {
            return Ok(StepResult::Stop);
        };
        let active = warp.groups[whole].mask;
        if active != u32::MAX {
            let missing = format!("lanes {:#010x} are not there", !active);
            let opcode = inst.opcode.to_string();
            return Err((
                active.trailing_zeros(),
                Fault::PartialWarp { opcode, missing },
            ));
        }
        match &inst.op {
            Op::LoadMatrices {
                address,
                dsts,
                trans,
            } => {
                let rows = self.matrix_rows(cta, warp, *address, dsts.len(), inst.line, false)?;
                for (j, &dst) in dsts.iter().enumerate() {
                    for lane in 0..32 {
                        let (group, quad) = (lane / 4, lane % 4);
                        let element = |row: usize, column: usize| {
                            cta.shared.load(rows[8 * j + row] + 2 * column, 2)
                        };
                        let halves = [0, 1].map(|i| match trans {
                            false => element(group, 2 * quad + i),
                            true => element(2 * quad + i, group),
                        });
                        warp.set(dst, lane as u32, halves[0] | halves[1] << 16);
                    }
                    warp.define(dst, active, u32::MAX);
                }
            }
            Op::StoreMatrices {
                address,
                src,
                trans,
            } => {
                let rows = self.matrix_rows(cta, warp, *address, src.len(), inst.line, true)?;
                for (j, &source) in src.iter().enumerate() {
                    let defined = self.fetch(cta, warp, source, active, 0)?;
                    for lane in 0..32 {
                        let (group, quad) = (lane / 4, lane % 4);
                        for i in 0..2 {
                            let half = self.operands[0][lane] >> (16 * i) & 0xffff;
                            let (row, column) = match trans {
                                false => (group, 2 * quad + i),
                                true => (2 * quad + i, group),
                            };
                            let at = rows[8 * j + row] + 2 * column;
                            cta.shared.store(at, 2, half);
                            cta.shared.mark(at, 2, defined >> lane & 1 == 1);
                        }
                    }
                }
            }
            Op::TurnMatrix { dst, src } => {
                let defined = self.fetch(cta, warp, *src, active, 0)?;
                let word = self.operands[0];
                let element =
                    |row: usize, column: usize| word[4 * row + column / 2] >> (16 * (column % 2));
                for lane in 0..32 {
                    let (group, quad) = (lane / 4, lane % 4);
                    let halves = [0, 1].map(|i| element(2 * quad + i, group) & 0xffff);
                    warp.set(*dst, lane as u32, halves[0] | halves[1] << 16);
                }
                warp.define(*dst, active, if defined == u32::MAX { u32::MAX } else { 0 });
            }
            Op::GroupProduct(_)
            | Op::GroupFence
            | Op::GroupCommit
            | Op::GroupWait { .. }
            | Op::Registers { .. } => {
                return self.warpgroup(cta, warp, whole, inst, whole != group);
            }
            _ => self.multiply(cta, warp, inst)?,
        }
        let moved = whole != group;
        warp.groups[whole].pc += 1;
        Ok(if moved {
            StepResult::Stop
        } else {
            StepResult::Continue
        })
    }

    /// Offsets in shared memory of the rows of matrices, whose addresses lanes give.
    fn matrix_rows(
        &mut self,
        cta: &mut CtaState,
        warp: &Warp,
        address: Address,
        count: usize,
        line: u32,
        write: bool,
    ) -> Result<Vec<usize>, Trouble> {
        let used = u32::MAX >> (32 - 8 * count as u32);
        self.addresses(cta, warp, used, address)?;
        self.count_access(used, Space::Shared, ROW_BYTES);
        let mut rows = Vec::with_capacity(8 * count);
        for lane in lanes(used) {
            let at = self.operands[3][lane as usize];
            let place = self.locate(cta, warp, lane, Space::Shared, at, ROW_BYTES)?;
            if !write && self.options.check_uninit {
                self.require_written(cta, lane, place, ROW_BYTES)?;
            }
            self.note_access(cta, warp, lane, line, place, ROW_BYTES, write)?;
            rows.push(place.offset);
        }
        Ok(rows)
    }

    pub(super) fn require_written(
        &self,
        cta: &CtaState,
        lane: u32,
        place: AccessTarget,
        bytes: u32,
    ) -> Result<(), Trouble> {
        if cta.shared.is_written(place.offset, bytes as usize) {
            return Ok(());
        }
        Err(place.uninitialised(lane, bytes))
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one access")]
    pub(super) fn note_access(
        &mut self,
        cta: &mut CtaState,
        warp: &Warp,
        lane: u32,
        line: u32,
        place: AccessTarget,
        bytes: u32,
        write: bool,
    ) -> Result<(), Trouble> {
        if !self.options.check_races {
            return Ok(());
        }
        let access = CheckedAccess {
            lane,
            line,
            read: !write,
            write,
            strong: false,
            same_value: false,
        };
        self.check_race(cta, warp, place, bytes, access)
    }

    /// Reads the registers of an operand: `[register][lane]`, and whether all are defined.
    pub(super) fn registers(
        &mut self,
        cta: &CtaState,
        warp: &Warp,
        sources: &[Src],
    ) -> Result<(Vec<[u64; 32]>, bool), Trouble> {
        let mut all = Vec::with_capacity(sources.len());
        let mut is_defined = true;
        for &source in sources {
            is_defined &= self.fetch(cta, warp, source, u32::MAX, 0)? == u32::MAX;
            all.push(self.operands[0]);
        }
        Ok((all, is_defined))
    }

    fn multiply(&mut self, cta: &CtaState, warp: &mut Warp, inst: &Inst) -> Result<(), Trouble> {
        let Op::Multiply {
            product,
            dsts,
            a,
            b,
            c,
        } = &inst.op
        else {
            unreachable!("called for products only")
        };
        let (a, a_defined) = self.registers(cta, warp, a)?;
        let (b, b_defined) = self.registers(cta, warp, b)?;
        let (c, c_defined) = self.registers(cta, warp, c)?;
        let MmaShape {
            shape: [m, n, k],
            sum,
            ..
        } = *product;
        if product.products() == 4 {
            let operands = [&a[..], &b, &c];
            let defined = [a_defined, b_defined, c_defined].iter().all(|&d| d);
            multiply_quad_pairs(product, operands, warp, dsts, defined);
            return Ok(());
        }
        let left = Factor::new(product.a, m);
        let right = Factor::new(product.b, 8);
        let mut rows = vec![[0; 16]; 16];
        let mut columns = vec![[0; 16]; 16];
        let k_len = k as usize;
        let mut a_elements = vec![0; m as usize * k_len];
        let mut b_elements = vec![0; n as usize * k_len];
        for (lane, register, i, row, inner) in left.places(a.len()) {
            a_elements[row * k_len + inner] = left.element(a[register][lane], i);
        }
        for (lane, register, i, column, inner) in right.places(b.len()) {
            b_elements[column * k_len + inner] = right.element(b[register][lane], i);
        }
        let per_register = if sum.bits == 16 { 2 } else { 1 };
        let place = |lane: usize, i: usize| {
            let (group, quad) = (lane / 4, lane % 4);
            (group + 8 * (i >> 1), 2 * quad + (i & 1))
        };
        for lane in 0..32 {
            for i in 0..c.len() * per_register {
                let (row, column) = place(lane, i);
                let word = c[i / per_register][lane];
                rows[row][column] = match per_register {
                    2 => word >> (16 * (i % 2)) & 0xffff,
                    _ => word,
                };
            }
        }
        for row in 0..m as usize {
            for column in 0..n as usize {
                let terms = (0..k_len).map(|inner| {
                    (
                        a_elements[row * k_len + inner],
                        b_elements[column * k_len + inner],
                    )
                });
                columns[row][column] = add_products(product, rows[row][column], terms);
            }
        }
        let is_defined = a_defined && b_defined && c_defined;
        for (register, &dst) in dsts.iter().enumerate() {
            for lane in 0..32 {
                let bits = |i: usize| {
                    let (row, column) = place(lane, i);
                    columns[row][column]
                };
                let word = match per_register {
                    2 => bits(2 * register) | bits(2 * register + 1) << 16,
                    _ => bits(register),
                };
                warp.set(dst, lane as u32, word);
            }
            warp.define(dst, u32::MAX, if is_defined { u32::MAX } else { 0 });
        }
        Ok(())
    }
}

/// Four products of 8x4 and 4x8 matrices of f16. A lane of a quad pair holds one row of the left operand (or, transposed, half of a
/// column), one column of the right one (or half of a row), and of sums of f16 one row; of sums of f32 it holds four pairs of
/// neighbours.
fn multiply_quad_pairs(
    product: &MmaShape,
    [a, b, c]: [&[[u64; 32]]; 3],
    warp: &mut Warp,
    dsts: &[Dst],
    is_defined: bool,
) {
    let half = |registers: &[[u64; 32]], lane: usize, i: usize| {
        registers[i / 2][lane] >> (16 * (i % 2)) & 0xffff
    };
    let is_half = product.sum.bits == 16;
    // What the quad pair of `lane` holds of a row or column, at a place along it.
    let [left, right] =
        [(a, product.transposed[0]), (b, product.transposed[1])].map(|(words, transposed)| {
            move |lane: usize, index: usize, inner: usize| {
                let quarter = lane & 12 | (index & 4) << 2;
                match transposed {
                    false => half(words, quarter | index & 3, inner),
                    true => half(words, quarter | inner, index & 3),
                }
            }
        });
    // Row and column of element `i` of the sum.
    let place = |lane: usize, i: usize| match is_half {
        true => (lane & 3 | (lane & 16) >> 2, i),
        false => (
            lane & 1 | i & 2 | (lane & 16) >> 2,
            i & 4 | lane & 2 | i & 1,
        ),
    };
    for lane in 0..32 {
        let sum = |i: usize| {
            let (row, column) = place(lane, i);
            let terms = (0..4).map(|inner| (left(lane, row, inner), right(lane, column, inner)));
            let start = if is_half {
                half(c, lane, i)
            } else {
                c[i][lane]
            };
            add_products(product, start, terms)
        };
        for (register, &dst) in dsts.iter().enumerate() {
            let word = match is_half {
                true => sum(2 * register) | sum(2 * register + 1) << 16,
                false => sum(register),
            };
            warp.set(dst, lane as u32, word);
        }
    }
    for &dst in dsts {
        warp.define(dst, u32::MAX, if is_defined { u32::MAX } else { 0 });
    }
}

/// How the lanes of a warp hold an operand: the outer index (row or column) and the summed one of each element.
pub(super) struct Factor {
    ty: Type,
    /// Elements of a register.
    width: usize,
    /// Outer extent: 16, or 8.
    outer: u32,
}

impl Factor {
    pub(super) fn new(ty: Type, outer: u32) -> Factor {
        Factor {
            ty,
            width: (32 / ty.bits).max(1) as usize,
            outer,
        }
    }

    /// Lane, register, element of the register, outer and summed index of each element.
    pub(super) fn places(
        &self,
        registers: usize,
    ) -> impl Iterator<Item = (usize, usize, usize, usize, usize)> {
        let (width, is_tall) = (self.width, self.outer == 16);
        (0..32).flat_map(move |lane| {
            let (group, quad) = (lane / 4, lane % 4);
            (0..registers).flat_map(move |register| {
                let (high, half) = match is_tall {
                    true => (register & 1, register >> 1),
                    false => (0, register),
                };
                (0..width).map(move |i| {
                    let inner = width * quad + i + 4 * width * half;
                    (lane, register, i, group + 8 * high, inner)
                })
            })
        })
    }

    pub(super) fn element(&self, word: u64, i: usize) -> u64 {
        let bits = self.ty.bits;
        if bits == 64 {
            return word;
        }
        word >> (bits * i as u32) & ((1 << bits) - 1)
    }
}

/// The accumulator and the products, as bits of its type.
fn add_products(product: &MmaShape, acc: u64, terms: impl Iterator<Item = (u64, u64)>) -> u64 {
    let start = number(product.sum, acc);
    let total = terms.fold(start, |sum, (x, y)| {
        let (x, y) = (number(product.a, x), number(product.b, y));
        // Narrower products are exact as they are.
        match product.sum.bits {
            64 => x.mul_add(y, sum),
            _ => x * y + sum,
        }
    });
    rounded(product.sum, total, false)
}
