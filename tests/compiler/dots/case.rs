//! Random products of matrices: shapes, types, memory, loops, and what stands before and behind them.

use tilelift::ir::attrs::DotPrecision;
use tilelift::ir::types::Scalar;
use tilelift::num::{Overflow, Rounding};
use tilelift::settings::Target;

use crate::common::data::Random;

/// Most products that a case computes: interpreter and emulator take some milliseconds for them.
const MAX_PRODUCTS: u64 = 1 << 19;
/// The same for warpgroups, which begin at 64 rows.
const MAX_GROUP_PRODUCTS: u64 = 3 << 20;

/// From this number on cases have as many rows and warps as warpgroups ask for.
pub(crate) const GROUPS: u64 = 1_000_000;

/// How the blocks along the summed dimension follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// There is one.
    Once,
    /// Addresses are carried and advance; no mask along the dimension.
    Carried,
    /// Addresses are carried, and what lies behind the end is masked off.
    Masked,
    /// Addresses are computed from the counter.
    Indexed,
}

/// What happens where a block of the result is larger than what is left of the matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edge {
    /// Blocks fit.
    None,
    /// Loads are masked off.
    Masked,
    /// Rows and columns begin again.
    Wrapped,
}

/// What the sum starts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    Zero,
    /// A block from memory.
    Loaded,
    /// Zero; a block from memory is added to each product.
    Added,
}

/// A second product, of the first one and of another matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chain {
    None,
    /// Behind the loop, the first product on the left.
    Left,
    /// Behind the loop, the first product on the right.
    Right,
    /// In the loop, as in attention: the sums of the loop are those of the second product.
    Inside,
}

/// One factor as it stands in memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Matrix {
    /// Type in memory.
    pub(crate) stored: Scalar,
    /// Whether neighbours in memory lie in one column.
    pub(crate) transposed: bool,
    /// Whether it is loaded as the transposed block.
    pub(crate) permuted: bool,
}

/// A random case.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) number: u64,
    pub(crate) target: Target,
    pub(crate) warps: u32,
    pub(crate) stages: u8,
    /// Extent of the batch, if there is one.
    pub(crate) batch: Option<u64>,
    /// Rows and columns of a block of the (first) result, and the block along the summed dimension.
    pub(crate) block: [u64; 3],
    /// Columns (rows, where the first product stands on the right) of the second product.
    pub(crate) second: u64,
    /// Blocks along the summed dimension.
    pub(crate) steps: u64,
    /// Programs along the rows.
    pub(crate) grid: u32,
    /// Rows, columns and length of the sums, all told.
    pub(crate) extents: [u64; 3],
    pub(crate) factors: [Matrix; 2],
    /// Type that both factors are converted to.
    pub(crate) operand: Option<Scalar>,
    /// Whether the left factor is multiplied by a constant before it is used.
    pub(crate) scaled: bool,
    pub(crate) sum: Scalar,
    pub(crate) precision: DotPrecision,
    /// Of 8-bit floats: how many products in a row may be summed with few bits.
    pub(crate) imprecise: Option<u32>,
    /// What the result is stored as.
    pub(crate) result: Scalar,
    pub(crate) form: Form,
    pub(crate) edge: Edge,
    /// Whether masked elements of the left factor count as ones instead of zeros.
    pub(crate) ones: bool,
    pub(crate) start: Start,
    pub(crate) chain: Chain,
    /// Type of the factors of the second product.
    pub(crate) link: Scalar,
    /// What row strides and extents are promised to be multiples of.
    pub(crate) align: u64,
    /// Whether data are small integers, so that all sums are exact in any order.
    pub(crate) exact: bool,
}

fn pick<T: Copy>(random: &mut Random, from: &[T]) -> T {
    from[(random.bits() % from.len() as u64) as usize]
}

fn chance(random: &mut Random, percent: u64) -> bool {
    random.bits() % 100 < percent
}

const E4M3: Scalar = Scalar::F8E4M3;
const E5M2: Scalar = Scalar::F8E5M2;

/// Types of the factors and of the sum, those with units more often.
pub(crate) const TYPES: [([Scalar; 2], Scalar); 16] = [
    ([Scalar::F16; 2], Scalar::F32),
    ([Scalar::F16; 2], Scalar::F32),
    ([Scalar::F16; 2], Scalar::F32),
    ([Scalar::F16; 2], Scalar::F16),
    ([Scalar::Bf16; 2], Scalar::F32),
    ([Scalar::Bf16; 2], Scalar::F32),
    ([Scalar::F32; 2], Scalar::F32),
    ([Scalar::F32; 2], Scalar::F32),
    ([Scalar::F64; 2], Scalar::F64),
    ([Scalar::I8; 2], Scalar::I32),
    ([Scalar::I8; 2], Scalar::I32),
    ([E4M3; 2], Scalar::F32),
    ([E5M2; 2], Scalar::F32),
    ([E4M3, E5M2], Scalar::F32),
    ([E5M2, E4M3], Scalar::F16),
    ([Scalar::I32; 2], Scalar::I32),
];

pub(crate) const TARGETS: [Target; 9] = [
    Target::SM_80,
    Target::SM_70,
    Target::SM_75,
    Target::SM_86,
    Target::SM_89,
    Target::SM_90,
    Target::SM_90A,
    Target::SM_100,
    Target::SM_120,
];

impl Case {
    /// The case with a number.
    pub(crate) fn new(number: u64) -> Case {
        let of_groups = GROUPS <= number;
        let mut random = Random(number.wrapping_mul(0x1_0000_0001));
        let random = &mut random;
        let (stored, sum) = pick(random, &TYPES);
        let form = pick(
            random,
            &[Form::Once, Form::Carried, Form::Masked, Form::Indexed],
        );
        let chain = match random.bits() % 8 {
            0 => Chain::Left,
            1 => Chain::Right,
            2 | 3 if form != Form::Once => Chain::Inside,
            _ => Chain::None,
        };
        let batch = (!of_groups && chance(random, 15)).then(|| pick(random, &[1, 2, 4]));
        let steps = match form {
            Form::Once => 1,
            _ => 1 + random.bits() % 5,
        };
        // Mostly sums that units take.
        let inner = match chance(random, 90) {
            true => 4 + random.bits() % 4,
            false => random.bits() % 4,
        };
        let grid = match of_groups {
            true => 1,
            false => 1 + (random.bits() % 2) as u32,
        };
        let mut block = match of_groups {
            true => [
                64 << (random.bits() % 2),
                8 << (random.bits() % 5),
                32 << (random.bits() % 3),
            ],
            false => [
                1 << (random.bits() % 8),
                1 << (random.bits() % 8),
                1 << inner,
            ],
        };
        let mut second = 1 << (random.bits() % 7);
        let limit = match of_groups {
            true => MAX_GROUP_PRODUCTS,
            false => MAX_PRODUCTS,
        };
        loop {
            let [m, n, k] = block;
            let outer = match chain {
                Chain::None => 0,
                Chain::Left => m * n * second,
                Chain::Right => n * m * second,
                Chain::Inside => steps * m * n * second,
            };
            let all = (m * n * k * steps + outer) * u64::from(grid) * batch.unwrap_or(1);
            if all <= limit {
                break;
            }
            let largest = block.iter_mut().chain([&mut second]).max();
            *largest.expect("four of them") /= 2;
        }
        let converts = stored[0] == stored[1] && chance(random, 12);
        let operand = match (stored[0], sum) {
            (Scalar::I8, _) if converts => Some(pick(random, &[Scalar::F16, Scalar::Bf16])),
            (E4M3 | E5M2, _) if converts => Some(Scalar::F16),
            (Scalar::F16, Scalar::F32) if converts => Some(Scalar::F32),
            _ => None,
        };
        let sum = if operand.is_some() { Scalar::F32 } else { sum };
        let edge = pick(
            random,
            &[Edge::None, Edge::Masked, Edge::Masked, Edge::Wrapped],
        );
        let align = pick(random, &[1, 2, 4, 8, 16, 16, 16, 16]);
        // Edges are multiples of the promise, as long as a block is larger than that.
        let mut cut = |whole: u64, block: u64, is_cut: bool| match is_cut {
            true => whole - random.bits() % block.div_ceil(align) * align.min(block - 1),
            false => whole,
        };
        let is_cut = edge != Edge::None;
        let extents = [
            cut(block[0] * u64::from(grid), block[0], is_cut),
            cut(block[1], block[1], is_cut),
            cut(block[2] * steps, block[2], form == Form::Masked),
        ];
        let link = match sum {
            Scalar::F32 => pick(random, &[Scalar::F16, Scalar::Bf16, Scalar::F32]),
            Scalar::I32 => pick(random, &[Scalar::I8, Scalar::I32]),
            other => other,
        };
        let used = operand.unwrap_or(stored[0]);
        let is_float = used.is_float() && used.bits() > 8;
        let matrix = |random: &mut Random, stored| Matrix {
            stored,
            transposed: chance(random, 40),
            permuted: chance(random, 20),
        };
        Case {
            number,
            target: match of_groups {
                true => Target::SM_90A,
                false => pick(random, &TARGETS),
            },
            warps: match of_groups {
                true => pick(random, &[4, 4, 8]),
                false => pick(random, &[1, 2, 4, 4, 4, 8, 16]),
            },
            stages: pick(random, &[1, 2, 3, 3, 4, 5]),
            batch,
            block,
            second,
            steps,
            grid,
            extents,
            factors: stored.map(|scalar| matrix(random, scalar)),
            operand,
            scaled: is_float && chance(random, 15),
            sum,
            precision: pick(random, DotPrecision::ALL),
            // By the number, which leaves the other choices as they are.
            imprecise: match of_groups && used.is_float() && used.bits() == 8 {
                true => [None, Some(32), Some(64), Some(1 << 30)][(number % 4) as usize],
                false => None,
            },
            result: match sum {
                Scalar::F32 => pick(random, &[Scalar::F32, Scalar::F32, Scalar::F16]),
                other => other,
            },
            form,
            edge,
            ones: chance(random, 10),
            start: pick(
                random,
                &[Start::Zero, Start::Zero, Start::Loaded, Start::Added],
            ),
            chain,
            link,
            align,
            exact: chance(random, 50) || !sum.is_float(),
        }
    }

    /// The same for another target.
    pub(crate) fn on(self, target: Target) -> Case {
        Case { target, ..self }
    }

    /// Extent of the batch, 1 without one.
    pub(crate) fn batches(&self) -> u64 {
        self.batch.unwrap_or(1)
    }

    /// Rows and columns of the result, all told.
    pub(crate) fn result_extents(&self) -> [u64; 2] {
        let [m, n, _] = self.extents;
        match self.chain {
            Chain::None => [m, n],
            Chain::Left | Chain::Inside => [m, self.second],
            Chain::Right => [self.second * u64::from(self.grid), self.block[1]],
        }
    }

    /// Rows and columns of the other factor of the second product.
    pub(crate) fn second_extents(&self) -> [u64; 2] {
        let [m, n, _] = self.block;
        match self.chain {
            Chain::Right => [self.second, m],
            _ => [n, self.second],
        }
    }

    /// Rows and columns of what the sum starts from: a block.
    pub(crate) fn start_extents(&self) -> [u64; 2] {
        let [m, n, _] = self.block;
        match self.chain {
            Chain::Inside => [m, self.second],
            _ => [m, n],
        }
    }

    /// Elements in a row of memory of a factor: more than it has, as multiples of the promise.
    pub(crate) fn row(&self, factor: usize) -> u64 {
        let [m, n, k] = self.extents;
        let along = match (factor, self.factors[factor].transposed) {
            (0, false) | (1, true) => k,
            (0, true) => m,
            _ => n,
        };
        along.next_multiple_of(self.align) + self.align * (self.number % 3)
    }

    /// Elements of a factor in memory.
    pub(crate) fn elements(&self, factor: usize) -> u64 {
        let [m, n, k] = self.extents;
        let rows = match (factor, self.factors[factor].transposed) {
            (0, false) => m,
            (1, true) => n,
            _ => k,
        };
        self.batches() * rows * self.row(factor)
    }

    /// The bytes of `count` numbers for a buffer, and those of their absolute values.
    pub(crate) fn data(&self, scalar: Scalar, count: u64, seed: u64) -> [Vec<u8>; 2] {
        let mut random = Random(self.number << 8 | seed);
        let limit = if self.sum == Scalar::F16 { 1 } else { 2 };
        let mut all = [Vec::new(), Vec::new()];
        for _ in 0..count {
            let small = (random.bits() >> 33) as i64 % (2 * limit + 1) - limit;
            // About normal, of variance 1 / 16.
            let fraction = |bits: u64| (bits >> 11) as f64 / (1u64 << 53) as f64 - 0.5;
            let real = (0..3).map(|_| fraction(random.bits())).sum::<f64>() / 2.0;
            let bits = match scalar.format() {
                Some(format) => {
                    let number = if self.exact { small as f64 } else { real };
                    let rounded = format.from_f64(number, Rounding::NearestEven, Overflow::Ieee);
                    let sign = 1 << (scalar.bits() - 1);
                    [rounded, rounded & !sign]
                }
                None => [small as u64, small.unsigned_abs()],
            };
            for (bytes, bits) in all.iter_mut().zip(bits) {
                bytes.extend(bits.to_le_bytes().iter().take(scalar.bytes() as usize));
            }
        }
        all
    }
}
