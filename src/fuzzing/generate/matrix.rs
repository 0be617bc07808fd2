//! Products of matrices as kernels have them: blocks loaded in a loop that can be pipelined, transposed in memory or after
//! the load, converted before the product, masked along the sum and at edges, and one product as a factor of the next.
//!
//! The data are small whole numbers, so every sum is exact in any order: at most 2^7 * 2^3 products of 4 * 2^9, and in f16 at
//! most 2^10 products of 1. Units for matrices, sums of products and the interpreter must therefore agree in every bit.

use super::control::Scope;
use super::{Argument, Generator};
use crate::ir::attrs::{DotPrecision, IntPred, Rounding, make};
use crate::ir::entities::Value;
use crate::ir::ops::TileOp;
use crate::ir::types::{Elem, Scalar, TileType, ValueType};
use crate::linear_layout::shape::Shape;
use crate::num::{Overflow, Rounding as NumRounding};

/// Types of the factors and of the sum, those with units more often.
const TYPES: [([Scalar; 2], Scalar); 16] = {
    use Scalar::{Bf16, F8E4M3, F8E5M2, F16, F32, F64, I8, I32};
    [
        ([F16; 2], F32),
        ([F16; 2], F32),
        ([F16; 2], F32),
        ([F16; 2], F16),
        ([Bf16; 2], F32),
        ([Bf16; 2], F32),
        ([F32; 2], F32),
        ([F32; 2], F32),
        ([F64; 2], F64),
        ([I8; 2], I32),
        ([I8; 2], I32),
        ([F8E4M3; 2], F32),
        ([F8E5M2; 2], F32),
        ([F8E4M3, F8E5M2], F32),
        ([F8E5M2, F8E4M3], F16),
        ([I32; 2], I32),
    ]
};

/// Most products of a loop, as a power of two: interpreter and emulator take some milliseconds for them.
const MAX_LOG2_PRODUCTS: u8 = 18;
/// Most elements of a block, as a power of two.
const MAX_LOG2_BLOCK: u8 = 14;
/// Most elements of a sum, which other statements work on.
const MAX_LOG2_SUM: u8 = 13;

/// A second product, of the first one and of another matrix.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Chain {
    None,
    /// Behind the loop, the first product on the left or on the right.
    Behind {
        left: bool,
    },
    /// In the loop, as in attention: the loop carries the sums of the second product.
    Inside,
}

/// Sizes and types of a loop over products.
struct Plan {
    /// Rows and columns of the sum, and the block along the summed dimension, as powers of two.
    log2: [u8; 3],
    /// Columns of the second product, or its rows where the first stands on the right.
    second: u8,
    steps: i64,
    /// Types of the factors in memory, and the largest number in them.
    stored: [Scalar; 2],
    largest: i64,
    sum: Scalar,
    /// Type that the factors are converted to.
    operand: Option<Scalar>,
    precision: DotPrecision,
    chain: Chain,
}

/// A factor in memory.
struct Factor {
    base: Value,
    /// Shape of the loaded block, and its dimension that is summed over.
    shape: Shape,
    inner: usize,
    /// Offsets of the first block, and from a block to the next: i32.
    offsets: Value,
    /// Elements from one index along the sum to the next: scalar.
    stride: Value,
    /// Whether the block is transposed after the load.
    permuted: bool,
}

/// Two dimensions.
fn plane(rows: u8, columns: u8) -> Shape {
    Shape::from_log2(&[rows, columns]).expect("blocks are small")
}

impl Generator {
    fn plan(&mut self) -> Plan {
        let (stored, sum) = self.random.pick(&TYPES);
        let steps = self
            .random
            .pick(&[1, 2, 2, 3, 4, 5, 8])
            .min(super::MAX_TRIPS / self.trips)
            .max(1);
        let chain = match self.random.below(10) {
            // Sums of f16 would not stay exact.
            _ if sum == Scalar::F16 => Chain::None,
            0 => Chain::Behind { left: true },
            1 => Chain::Behind { left: false },
            2 => Chain::Inside,
            _ => Chain::None,
        };
        let converts = stored[0] == stored[1] && self.random.chance(15);
        let operand = match (stored[0], sum) {
            (Scalar::I8, _) if converts => Some(self.random.pick(&[Scalar::F16, Scalar::Bf16])),
            (Scalar::F8E4M3 | Scalar::F8E5M2, _) if converts => Some(Scalar::F16),
            (Scalar::F16, Scalar::F32) if converts => Some(Scalar::F32),
            _ => None,
        };
        let mut log2 = [
            self.random.below(8),
            self.random.below(8),
            4 + self.random.below(4),
        ]
        .map(|n| n as u8);
        if self.random.chance(10) {
            log2[2] = self.random.below(4) as u8;
        }
        // Some for warpgroups.
        let of_groups = self.b.func_mut().num_warps() >= 4 && self.random.chance(40);
        if of_groups {
            log2 = [6, 3 + self.random.below(4) as u8, 5];
        }
        let mut second = self.random.below(7) as u8;
        let budget = MAX_LOG2_PRODUCTS
            - self.trips.ilog2() as u8
            - self.grid.iter().product::<u32>().ilog2() as u8;
        loop {
            let [m, n, k] = log2;
            let depth = steps.ilog2() as u8;
            let products = match chain {
                Chain::None => m + n + k + depth,
                Chain::Behind { .. } => m + n + (k + depth).max(second),
                Chain::Inside => m + n + k.max(second) + depth,
            };
            let block = (m + k).max(n + k).max(n + second).max(m + second);
            if products <= budget && block <= MAX_LOG2_BLOCK && m + n <= MAX_LOG2_SUM {
                break;
            }
            // Rows last, which are what those units begin at.
            let others = log2.iter_mut().skip(usize::from(of_groups));
            let largest = others.chain([&mut second]).max();
            *largest.expect("three or four of them") -= 1;
        }
        Plan {
            log2,
            second,
            steps,
            stored,
            largest: if sum == Scalar::F16 { 1 } else { 2 },
            sum: if operand.is_some() { Scalar::F32 } else { sum },
            operand,
            precision: self.random.pick(DotPrecision::ALL),
            chain,
        }
    }

    /// A new buffer of whole numbers from -2 to 2, or from -1 to 1.
    fn small_input(&mut self, scalar: Scalar, count: i64, limit: i64) -> Value {
        let value = self.pointer_param(scalar);
        let mut bytes = Vec::new();
        for _ in 0..count {
            let number = self.random.between(-limit, limit);
            let bits = match scalar.format() {
                Some(format) => {
                    format.from_f64(number as f64, NumRounding::NearestEven, Overflow::Ieee)
                }
                None => number as u64,
            };
            bytes.extend_from_slice(&bits.to_le_bytes()[..scalar.bytes() as usize]);
        }
        self.args.push(Argument::Buffer(scalar, bytes));
        value
    }

    /// A size: a constant, or a parameter that promises what it is divisible by.
    fn size(&mut self, number: i64) -> Value {
        if self.random.chance(50) {
            return self.int(number);
        }
        let name = format!("size{}", self.args.len());
        let divisible = 1 << number.trailing_zeros().min(4);
        let ty = TileType::scalar(Elem::I32);
        self.args.push(Argument::Number(Elem::I32, number as u64));
        match divisible {
            1 => self.b.param(&name, ty),
            d => self.b.param_divisible(&name, ty, d),
        }
    }

    fn scaled(&mut self, x: Value, factor: Value) -> Value {
        let shape = self.b.ty(x).shape;
        let factor = self.b.to_shape(factor, shape);
        self.b.imul(x, factor)
    }

    /// The left or right factor.
    fn factor(&mut self, plan: &Plan, left: bool) -> Factor {
        let [m, n, inner] = plan.log2;
        let (outer, scalar) = if left {
            (m, plan.stored[0])
        } else {
            (n, plan.stored[1])
        };
        let (transposed, permuted) = (self.random.chance(40), self.random.chance(25));
        let rows_first = left != permuted;
        let (shape, inner_dim) = match rows_first {
            true => (plane(outer, inner), 1),
            false => (plane(inner, outer), 0),
        };
        let length = plan.steps << inner;
        let (along, across) = match transposed {
            true => (1 << outer, length),
            false => (length, 1 << outer),
        };
        let row = along + self.random.pick(&[0, 0, 0, 8, 16, 3]);
        let base = self.small_input(scalar, row * across, plan.largest);
        let (row, one) = (self.size(row), self.int(1));
        let (stride, other) = if transposed { (row, one) } else { (one, row) };
        let inner_index = self.along(shape, inner_dim, 1);
        let outer_index = self.along(shape, 1 - inner_dim, 1);
        let parts = [
            (inner_index, transposed, stride),
            (outer_index, !transposed, other),
        ];
        let [a, b] = parts.map(|(index, is_long, by)| {
            if is_long {
                self.scaled(index, by)
            } else {
                index
            }
        });
        Factor {
            base,
            shape,
            inner: inner_dim,
            offsets: self.b.iadd(a, b),
            stride,
            permuted,
        }
    }

    /// The block of a factor at these pointers, ready for a product.
    fn block_of(
        &mut self,
        factor: &Factor,
        pointers: Value,
        mask: Option<Value>,
        plan: &Plan,
    ) -> Value {
        let x = self.b.load(pointers, mask, None);
        let mut x = match factor.permuted {
            true => self.b.permute(x, [1, 0].into_iter().collect()),
            false => x,
        };
        if let Some(operand) = plan.operand {
            x = self.converted(x, operand);
        }
        let ty = self.b.ty(x);
        if ty.elem.is_float() && 16 <= ty.elem.bits() && self.random.chance(10) {
            // A sign keeps all sums exact.
            x = self.b.fneg(x);
        }
        x
    }

    /// The elements in another type, rounded; integers cut.
    fn converted(&mut self, x: Value, to: Scalar) -> Value {
        let ty = self.b.ty(x);
        let (from, elem) = (ty.elem, Elem::Num(to));
        let target = ty.with_elem(elem);
        match (from.is_float(), elem.is_float()) {
            _ if from == elem => x,
            (true, true) if from.bits() < elem.bits() => self.b.fpext(x, target),
            (true, true) => self.b.fptrunc(x, Rounding::Nearest, target),
            (false, true) => self.b.sitofp(x, target),
            (false, false) if from.bits() < elem.bits() => self.b.sext(x, target),
            (false, false) => self.b.itrunc(x, target),
            (true, false) => self.b.fptosi(x, target),
        }
    }

    /// What a sum starts from.
    fn start(&mut self, ty: TileType) -> Value {
        let scalar = ty.elem.scalar().expect("sums are numbers");
        match self.random.below(4) {
            0 => {
                let base = self.small_input(scalar, ty.shape.elements() as i64, 1);
                let index = self.numbering(ty.shape);
                let base = self.b.to_shape(base, ty.shape);
                let pointers = self.b.addptr(base, index);
                self.b.load(pointers, None, None)
            }
            1 if ty.elem.is_int() => self.value(ty),
            _ => self.constant(ty, 0),
        }
    }

    /// A type for a product to be the factor of another, in which its numbers stay small enough.
    fn link(&mut self, sum: Scalar) -> Scalar {
        match sum {
            Scalar::F32 => self.random.pick(&[Scalar::F16, Scalar::Bf16, Scalar::F32]),
            Scalar::I32 => self.random.pick(&[Scalar::I8, Scalar::I32]),
            other => other,
        }
    }

    /// The other factor of a second product, loaded.
    fn other_factor(&mut self, scalar: Scalar, shape: Shape) -> Value {
        let base = self.small_input(scalar, shape.elements() as i64, 1);
        let index = self.numbering(shape);
        let base = self.b.to_shape(base, shape);
        let pointers = self.b.addptr(base, index);
        self.b.load(pointers, None, None)
    }

    /// A product, or a loop that sums products; its result joins the values.
    pub(super) fn products(&mut self) {
        let plan = self.plan();
        let [m, n, _] = plan.log2;
        let factors = [self.factor(&plan, true), self.factor(&plan, false)];
        let sum = TileType::block(Elem::Num(plan.sum), plane(m, n));
        let result = match plan.steps == 1 && self.random.chance(60) {
            true => {
                let blocks = [0, 1].map(|i| {
                    let factor = &factors[i];
                    let pointers = self.b.to_shape(factor.base, factor.shape);
                    let pointers = self.b.addptr(pointers, factor.offsets);
                    self.block_of(factor, pointers, None, &plan)
                });
                let start = self.start(sum);
                self.b.dot(blocks[0], blocks[1], start, plan.precision)
            }
            false => self.product_loop(&plan, &factors),
        };
        let result = match plan.chain {
            Chain::None | Chain::Inside => result,
            Chain::Behind { left } => {
                let link = self.link(plan.sum);
                let first = self.converted(result, link);
                let (other, shape) = match left {
                    true => (plane(n, plan.second), plane(m, plan.second)),
                    false => (plane(plan.second, m), plane(plan.second, n)),
                };
                let other = self.other_factor(link, other);
                let start = self.start(sum.with_shape(shape));
                let [a, b] = if left { [first, other] } else { [other, first] };
                self.b.dot(a, b, start, plan.precision)
            }
        };
        self.values.push(result);
    }

    /// How far a round of a loop goes into the factors: as far as the counter, where the round's choice or a table's entry says
    /// so, which pipelines must know in time.
    fn place(&mut self, counter: Value, plan: &Plan) -> Value {
        let k = plan.log2[2];
        match self.random.below(6) {
            0 => {
                let bit = self.int(1 << k);
                let bit = self.b.and(counter, bit);
                let zero = self.int(0);
                let cond = self.b.icmp(bit, zero, IntPred::Eq);
                let branch = |g: &mut Generator, from: Value| {
                    let (block, _) = g.b.new_block(&[]);
                    let scope = g.enter(block, 1);
                    let value = g.b.isub(counter, from);
                    g.b.yield_values(&[value]);
                    g.leave(scope);
                    block
                };
                let blocks = [zero, bit].map(|from| branch(self, from));
                let ty = self.b.ty(counter);
                self.regions(TileOp::If, &[cond], &[], &blocks, &[ty])[0]
            }
            1 if 1 < plan.steps => {
                let table = self.small_input(Scalar::I32, plan.steps, 1);
                let shift = self.int(k.into());
                let index = self.b.ushr(counter, shift);
                let entry = self.b.addptr(table, index);
                let entry = self.b.load(entry, None, None);
                let one = self.int(1);
                let entry = self.b.and(entry, one);
                self.b.shl(entry, shift)
            }
            _ => counter,
        }
    }

    /// Which elements of a factor's block, the first of which is number `from` along `dim`, come before number `end`; said in
    /// one of the ways in which kernels say it.
    fn below(&mut self, factor: &Factor, dim: usize, from: Value, end: Value) -> Value {
        let shape = factor.shape;
        let index = self.along(shape, dim, 1);
        let way = self.random.below(6);
        if way == 0 {
            let left = self.b.isub(end, from);
            let left = self.b.to_shape(left, shape);
            return self.b.icmp(index, left, IntPred::Slt);
        }
        let from = self.b.to_shape(from, shape);
        let mut end = self.b.to_shape(end, shape);
        let mut index = self.b.iadd(index, from);
        match way {
            1 => self.b.icmp(end, index, IntPred::Sgt),
            2 => {
                let one = self.int_like(1, end);
                let last = self.b.isub(end, one);
                self.b.icmp(index, last, IntPred::Sle)
            }
            3 => {
                // As descriptors have it.
                let wide = TileType::block(Elem::I64, shape);
                index = self.b.sext(index, wide);
                end = self.b.sext(end, wide);
                let zero = self.constant(wide, 0);
                let from = self.b.icmp(index, zero, IntPred::Sge);
                let below = self.b.icmp(index, end, IntPred::Slt);
                self.b.and(from, below)
            }
            _ => self.b.icmp(index, end, IntPred::Slt),
        }
    }

    /// A mask by the place in a factor's block: up to a number or from one on, along either dimension.
    fn edge(&mut self, factor: &Factor) -> Value {
        let dim = self.random.below(2);
        let extent = factor.shape.extent(dim) as i64;
        let limit = self.random.between(0, extent);
        let (zero, limit) = (self.int(0), self.size(limit));
        let mask = self.below(factor, dim, zero, limit);
        match self.random.chance(20) {
            true => {
                let all = self.constant(self.b.ty(mask), 1);
                self.b.xor(mask, all)
            }
            false => mask,
        }
    }

    /// The loop. Addresses are carried, or computed from the counter; the end is known, or masked off.
    fn product_loop(&mut self, plan: &Plan, factors: &[Factor; 2]) -> Value {
        let [m, n, k] = plan.log2;
        let (carries, masked) = (self.random.chance(50), self.random.chance(35));
        let sum = TileType::block(Elem::Num(plan.sum), plane(m, n));
        let inside = plan.chain == Chain::Inside;
        let carried = if inside {
            sum.with_shape(plane(m, plan.second))
        } else {
            sum
        };
        let length = plan.steps << k;
        let end = match masked {
            true => self.random.between(length - (1 << k) + 1, length),
            false => length,
        };
        let (lo, hi, step) = (self.int(0), self.size(end), self.size(1 << k));
        let first = factors.each_ref().map(|factor| {
            let pointers = self.b.to_shape(factor.base, factor.shape);
            self.b.addptr(pointers, factor.offsets)
        });
        let link = self.link(plan.sum);
        // The same block in each round: it need not be loaded in the loop.
        let other = inside.then(|| self.other_factor(link, plane(n, plan.second)));
        let mut inits = vec![self.start(carried)];
        if carries {
            inits.extend(first);
        }
        let params: Vec<TileType> = [lo].iter().chain(&inits).map(|&v| self.b.ty(v)).collect();
        let (block, values) = self.b.new_block(&params);
        let scope: Scope = self.enter(block, plan.steps.max(2));
        let (counter, acc) = (values[0], values[1]);
        let at = if carries {
            counter
        } else {
            self.place(counter, plan)
        };
        let mut next_pointers = Vec::new();
        let mut blocks = Vec::new();
        for (i, factor) in factors.iter().enumerate() {
            let moved = |g: &mut Generator, from: Value, by: Value| {
                let offset = g.b.imul(by, factor.stride);
                let offset = g.b.to_shape(offset, factor.shape);
                g.b.addptr(from, offset)
            };
            let pointers = match carries {
                true => values[2 + i],
                false => moved(self, first[i], at),
            };
            let mask = masked.then(|| self.below(factor, factor.inner, counter, hi));
            let mask = match self.random.chance(20) {
                true => {
                    let edge = self.edge(factor);
                    Some(mask.map_or(edge, |mask| self.b.and(mask, edge)))
                }
                false => mask,
            };
            blocks.push(self.block_of(factor, pointers, mask, plan));
            if carries {
                next_pointers.push(moved(self, pointers, step));
            }
        }
        let mut next = match other {
            None if self.random.chance(20) => {
                // Added behind the product, which then takes it for its accumulator.
                let zero = self.constant(sum, 0);
                let product = self.b.dot(blocks[0], blocks[1], zero, plan.precision);
                match sum.elem.is_float() {
                    true => self.b.fadd(acc, product),
                    false => self.b.iadd(acc, product),
                }
            }
            None => self.b.dot(blocks[0], blocks[1], acc, plan.precision),
            Some(other) => {
                let zero = self.constant(sum, 0);
                let product = self.b.dot(blocks[0], blocks[1], zero, plan.precision);
                let product = self.converted(product, link);
                self.b.dot(product, other, acc, plan.precision)
            }
        };
        if sum.elem.is_float() && self.random.chance(10) {
            // Not `fneg`: of the order of sums only the sign of a zero could depend, and only if one began with -0.
            let zero = self.constant(carried, 0);
            next = self.b.fsub(zero, next);
        }
        let mut all = vec![next];
        all.extend(next_pointers);
        self.b.yield_values(&all);
        self.leave(scope);
        let attrs = match self.random.chance(60) {
            true => vec![make::stages(self.random.pick(&[1, 2, 3, 4, 5, 8]))],
            false => Vec::new(),
        };
        let args = [&[lo, hi, step], &inits[..]].concat();
        let results = self.regions(TileOp::For, &args, &attrs, &[block], &[]);
        results[0]
    }
}
