//! Values: taken from the pool, made from others, and the elementwise statements.

use super::Generator;
use crate::ir::attrs::{Attr, DotPrecision, FloatPred, IntPred, NanRule, Rounding, make};
use crate::ir::dfg::InstData;
use crate::ir::entities::Value;
use crate::ir::level::{Level, Tile};
use crate::ir::ops::rules::Operands;
use crate::ir::ops::{Opcode, TileOp, TypeRule};
use crate::ir::types::{Elem, Scalar, TileType, ValueType};
use crate::linear_layout::shape::Shape;
use crate::num::{Overflow, Rounding as NumRounding};
use crate::text::number;

use super::super::random::Random;

/// How an op is generated.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Element by element, by [`Generator::elementwise`].
    Elementwise,
    /// Like that, but the result is open within a bound.
    Approximate,
    /// By a statement of its own.
    Other,
}

/// How ops of a rule are generated. Exhaustive, so that a new rule is thought of here.
fn way(rule: TypeRule) -> Way {
    match rule {
        TypeRule::SameInt
        | TypeRule::SameBits
        | TypeRule::SameI32
        | TypeRule::SameFloat
        | TypeRule::SameWideFloat
        | TypeRule::IntCompare
        | TypeRule::FloatCompare
        | TypeRule::Select
        | TypeRule::IntWiden
        | TypeRule::IntNarrow
        | TypeRule::IntToFloat
        | TypeRule::FloatToInt
        | TypeRule::FloatWiden
        | TypeRule::FloatNarrow
        | TypeRule::Bitcast => Way::Elementwise,
        TypeRule::SameF32 | TypeRule::Function => Way::Approximate,
        TypeRule::Const
        | TypeRule::Splat
        | TypeRule::PtrCast
        | TypeRule::AddPtr
        | TypeRule::NoResult
        | TypeRule::GroupBarrier
        | TypeRule::I32Scalar
        | TypeRule::I64Scalar
        | TypeRule::Arange
        | TypeRule::Broadcast
        | TypeRule::ExpandDims
        | TypeRule::ConvertLayout
        | TypeRule::Hint
        | TypeRule::Load
        | TypeRule::Store
        | TypeRule::AtomicRmw
        | TypeRule::AtomicCas
        | TypeRule::InlinePtx
        | TypeRule::Print
        | TypeRule::Assert
        | TypeRule::LogAddr
        | TypeRule::Reduce
        | TypeRule::Reshape
        | TypeRule::Permute
        | TypeRule::Join
        | TypeRule::Split
        | TypeRule::Gather
        | TypeRule::Histogram
        | TypeRule::Dot
        | TypeRule::AsyncCopy
        | TypeRule::AsyncCommit
        | TypeRule::AsyncWait
        | TypeRule::TensorMap
        | TypeRule::TensorLoad
        | TypeRule::TensorCopy
        | TypeRule::TensorStore
        | TypeRule::ThreadTensorCopy
        | TypeRule::ThreadTensorStore
        | TypeRule::Mbar
        | TypeRule::MbarExpect
        | TypeRule::MbarTry
        | TypeRule::Elect
        | TypeRule::MbarWait
        | TypeRule::MbarWaitFor
        | TypeRule::MbarArrive
        | TypeRule::Release
        | TypeRule::Producer
        | TypeRule::SharedLoad
        | TypeRule::SharedView
        | TypeRule::DotStart
        | TypeRule::DotSum
        | TypeRule::DotDone
        | TypeRule::SameFirst
        | TypeRule::Wgmma
        | TypeRule::SharedStore
        | TypeRule::SlotPut
        | TypeRule::LdMatrix
        | TypeRule::StMatrix
        | TypeRule::Mma
        | TypeRule::CpAsync
        | TypeRule::Words
        | TypeRule::Scan
        | TypeRule::For
        | TypeRule::While
        | TypeRule::If
        | TypeRule::Rearrange
        | TypeRule::SlotAddr
        | TypeRule::Ld
        | TypeRule::St
        | TypeRule::Atom
        | TypeRule::AtomCas
        | TypeRule::Shuffle
        | TypeRule::Redux => Way::Other,
    }
}

/// How many elementwise statements of a kernel with fusion are sums of products, in percent.
const SUMS_OF_PRODUCTS: usize = 40;
/// How deep values are made from made values.
const MAX_MAKING: usize = 4;

/// The bits of a number, small or special more often than not.
pub(in crate::fuzzing) fn number(random: &mut Random, elem: Elem) -> u64 {
    let Some(scalar) = elem.scalar() else {
        return 0;
    };
    let mask = u64::MAX >> (64 - scalar.bits());
    match number::format_of(scalar) {
        Some(format) => match random.below(10) {
            0 => random.bits() & mask,
            1 => random.pick(&[
                0,
                1,
                1 << (scalar.bits() - 1),
                format.max_finite,
                format.nan,
                format.infinity.unwrap_or(0),
                1 << format.mantissa_bits,
            ]),
            2..6 => small_float(scalar, random.between(-9, 9) as f64),
            _ => small_float(
                scalar,
                random.between(-1_000_000, 1_000_000) as f64 / 123_457.0,
            ),
        },
        None => match random.below(8) {
            0 => random.bits() & mask,
            1 => {
                random.pick(&[
                    0,
                    1,
                    mask,
                    mask >> 1,
                    (mask >> 1) + 1,
                    u64::from(scalar.bits()),
                ]) & mask
            }
            _ => random.between(-70, 70) as u64 & mask,
        },
    }
}

fn small_float(scalar: Scalar, x: f64) -> u64 {
    number::format_of(scalar).map_or(0, |format| {
        format.from_f64(x, NumRounding::NearestEven, Overflow::Ieee)
    })
}

/// Whether an op works element by element, with every bit of its result defined.
pub(in crate::fuzzing) fn is_elementwise(op: TileOp) -> bool {
    way(op.info().rule) == Way::Elementwise
}

/// The attributes that an op needs.
pub(in crate::fuzzing) fn attributes(random: &mut Random, op: TileOp) -> Vec<Attr> {
    op.info()
        .required
        .iter()
        .filter_map(|&key| {
            Some(match key {
                "ipred" => make::ipred(random.pick(IntPred::ALL)),
                "fpred" => make::fpred(random.pick(FloatPred::ALL)),
                "nan" => make::nan(random.pick(NanRule::ALL)),
                "round" => make::round(random.pick(Rounding::ALL)),
                _ => return None,
            })
        })
        .collect()
}

impl Generator {
    /// Appends an instruction with one result.
    pub(super) fn one(
        &mut self,
        op: TileOp,
        args: &[Value],
        attrs: &[Attr],
        given: &[TileType],
    ) -> Value {
        let mut data = InstData::new(op, args);
        data.attrs.extend(attrs.iter().cloned());
        let inst = self.b.inst(data, given);
        self.b.func().dfg.insts[inst]
            .results
            .first()
            .copied()
            .expect("the op has a result")
    }

    pub(super) fn constant(&mut self, ty: TileType, bits: u64) -> Value {
        self.b.const_bits(bits, ty)
    }

    pub(super) fn int(&mut self, n: i64) -> Value {
        self.constant(TileType::scalar(Elem::I32), n as u32 as u64)
    }

    /// The same number everywhere.
    pub(super) fn int_like(&mut self, n: i64, like: Value) -> Value {
        let ty = self.b.ty(like);
        let bits = n as u64 & (u64::MAX >> (64 - ty.elem.bits()));
        self.constant(ty, bits)
    }

    /// A value of a type.
    pub(super) fn value(&mut self, ty: TileType) -> Value {
        self.value_from(ty, MAX_MAKING)
    }

    fn value_from(&mut self, ty: TileType, fuel: usize) -> Value {
        if self.random.chance(80) {
            let fitting: Vec<Value> = self
                .values
                .iter()
                .copied()
                .filter(|&v| self.b.ty(v) == ty)
                .collect();
            if !fitting.is_empty() {
                // Of two the later one, so that chains grow.
                let (a, b) = (
                    self.random.below(fitting.len()),
                    self.random.below(fitting.len()),
                );
                return fitting[a.max(b)];
            }
        }
        let value = self.make(ty, fuel);
        if self.random.chance(50) {
            self.values.push(value);
        }
        value
    }

    fn make(&mut self, ty: TileType, fuel: usize) -> Value {
        let scalar = ty.is_scalar();
        let can = |possible: bool, weight: usize| if possible && fuel > 0 { weight } else { 0 };
        let int = ty.elem.is_int() && ty.elem != Elem::I1;
        let weights = [
            12,
            can(!scalar, 15),
            can(true, 15),
            can(ty.elem == Elem::I32 && ty.shape.rank() == 1, 40),
            can(!scalar, 30),
            can(ty.elem == Elem::I1, 40),
            can(ty.elem == Elem::I32 && scalar, 10),
            can(int && !scalar, 10),
            can(1 < fuel && !scalar, 30),
        ];
        match self.random.weighted(&weights) {
            0 => {
                let bits = number(&mut self.random, ty.elem);
                self.constant(ty, bits)
            }
            1 => {
                let x = self.value_from(TileType::scalar(ty.elem), fuel - 1);
                self.b.splat(x, ty)
            }
            2 => self.cast_to(ty, fuel),
            3 => {
                let start = self.random.pick(&[0, 0, 0, 1, 16, -5, 1000]);
                self.b.arange(start, ty)
            }
            4 => self.grown_block(ty, fuel),
            5 => {
                let elem = if self.random.chance(70) {
                    Elem::I32
                } else {
                    self.elem()
                };
                let from = ty.with_elem(elem);
                let (a, b) = (
                    self.value_from(from, fuel - 1),
                    self.value_from(from, fuel - 1),
                );
                match elem.is_int() {
                    true => {
                        let pred = self.random.pick(IntPred::ALL);
                        self.b.icmp(a, b, pred)
                    }
                    false if elem.bits() > 8 => {
                        let pred = self.random.pick(FloatPred::ALL);
                        self.b.fcmp(a, b, pred)
                    }
                    false => self.constant(ty, 1),
                }
            }
            6 => {
                let axis = self.random.below(3) as u8;
                match self.random.chance(50) {
                    true => self.b.program_id(axis),
                    false => self.b.num_programs(axis),
                }
            }
            // Index arithmetic, which the axis analysis follows.
            7 => {
                let x = self.value_from(ty, fuel - 1);
                let factor = self.random.pick(&[1, 2, 4, 8, 16, 3, 64]);
                let factor = self.int_like(factor, x);
                match self.random.below(5) {
                    0 => self.b.imul(x, factor),
                    1 => self.b.udiv(x, factor),
                    2 => self.b.urem(x, factor),
                    3 => self.b.and(x, factor),
                    _ => self.b.iadd(x, factor),
                }
            }
            _ => {
                let scalar = ty.elem.scalar().expect("the pool of types has numbers");
                self.load_of(scalar, ty.shape)
            }
        }
    }

    /// A value of another element type, converted.
    fn cast_to(&mut self, ty: TileType, fuel: usize) -> Value {
        let casts: Vec<TileOp> = TileOp::ALL
            .iter()
            .copied()
            .filter(|op| way(op.info().rule) == Way::Elementwise && op.info().result_is_given)
            .collect();
        for _ in 0..12 {
            let from = ty.with_elem(self.elem());
            let op = self.random.pick(&casts);
            let attrs = attributes(&mut self.random, op);
            if fits(op, &[from], &attrs, &[ty]) {
                let x = self.value_from(from, fuel - 1);
                return self.build(op, &[x], &attrs, &[ty]);
            }
        }
        let bits = number(&mut self.random, ty.elem);
        self.constant(ty, bits)
    }

    /// A block made of one with fewer dimensions, repeated along the others.
    fn grown_block(&mut self, ty: TileType, fuel: usize) -> Value {
        let rank = ty.shape.rank();
        let dropped: Vec<usize> = (0..rank).filter(|_| self.random.chance(50)).collect();
        if dropped.is_empty() {
            return self.value_from(ty, fuel - 1);
        }
        let mut shape = ty.shape;
        for &dim in dropped.iter().rev() {
            shape = shape.without_dim(dim);
        }
        let mut x = self.value_from(ty.with_shape(shape), fuel - 1);
        for &dim in &dropped {
            x = self.b.expand_dims(x, dim as u8);
        }
        if self.b.ty(x) == ty {
            x
        } else {
            self.b.broadcast(x, ty)
        }
    }

    /// An op of the table on blocks of one shape.
    pub(super) fn elementwise(&mut self) {
        let shape = self.shape();
        if self.fusion && self.random.chance(SUMS_OF_PRODUCTS) {
            return self.sum_of_product(shape);
        }
        for _ in 0..60 {
            let op = self.random.pick(TileOp::ALL);
            match way(op.info().rule) {
                Way::Elementwise => {}
                Way::Approximate if self.inexact => self.exact = false,
                Way::Approximate | Way::Other => continue,
            }
            let elem = self.elem();
            let mut types = vec![TileType::block(elem, shape); op.info().operands.len()];
            if op.info().rule == TypeRule::Select {
                types[0] = types[0].with_elem(Elem::I1);
            }
            let given = match op.info().result_is_given {
                true => vec![TileType::block(self.elem(), shape)],
                false => Vec::new(),
            };
            let attrs = attributes(&mut self.random, op);
            if fits(op, &types, &attrs, &given) {
                let args: Vec<Value> = types.iter().map(|&ty| self.value(ty)).collect();
                let value = self.build(op, &args, &attrs, &given);
                return self.values.push(value);
            }
        }
    }

    /// A sum or difference with a product that nothing else uses.
    fn sum_of_product(&mut self, shape: Shape) {
        let elem = self
            .random
            .pick(&[Scalar::F16, Scalar::Bf16, Scalar::F32, Scalar::F64]);
        let ty = TileType::block(Elem::Num(elem), shape);
        let [x, y, term] = [(); 3].map(|()| self.value(ty));
        let product = self.b.fmul(x, y);
        let (a, b) = match self.random.chance(50) {
            true => (product, term),
            false => (term, product),
        };
        let sum = match self.random.chance(50) {
            true => self.b.fadd(a, b),
            false => self.b.fsub(a, b),
        };
        self.values.push(sum);
    }

    /// Appends an op, its operands changed so that its result is specified.
    fn build(&mut self, op: TileOp, args: &[Value], attrs: &[Attr], given: &[TileType]) -> Value {
        let mut args = args.to_vec();
        match op {
            TileOp::Sdiv | TileOp::Udiv | TileOp::Srem | TileOp::Urem => {
                args[1] = self.divisor(args[1]);
            }
            // The bits of a NaN are open, also its sign.
            TileOp::Bitcast
                if self.b.ty(args[0]).elem.is_float() && self.b.ty(args[0]).elem.bits() > 8 =>
            {
                args[0] = self.no_nan(args[0]);
            }
            TileOp::Copysign => args[1] = self.no_nan(args[1]),
            _ => {}
        }
        self.one(op, &args, attrs, given)
    }

    /// Floats with zeros for NaNs, where their bits would count.
    pub(super) fn no_nan(&mut self, x: Value) -> Value {
        let zero = self.constant(self.b.ty(x), 0);
        let is_number = self.b.fcmp(x, x, FloatPred::Ord);
        self.b.select(is_number, x, zero)
    }

    /// A positive number made of `x`, or a constant.
    fn divisor(&mut self, x: Value) -> Value {
        if self.random.chance(40) {
            let n = self.random.pick(&[1, 2, 3, 7, 8, 64, 100, 127]);
            return self.int_like(n, x);
        }
        let ty = self.b.ty(x);
        let (max, one) = (
            (u64::MAX >> (64 - ty.elem.bits())) >> 1,
            self.int_like(1, x),
        );
        let max = self.constant(ty, max);
        let positive = self.b.and(x, max);
        self.b.or(positive, one)
    }

    /// A block from blocks of other shapes: expanded, repeated or spread, transposed, joined and split, gathered, or counted.
    pub(super) fn reshape(&mut self) {
        let ty = TileType::block(self.elem(), self.shape());
        if ty.is_scalar() {
            return;
        }
        if self.random.chance(50) {
            let value = self.grown_block(ty, 2);
            self.values.push(value);
            return;
        }
        let x = self.value(ty);
        let transposed = match self.random.below(5) {
            0 => {
                // Cut anywhere, transposed, and put together again.
                let log2 = ty.shape.log2_elements() as usize;
                let low = self.random.below(log2 + 1);
                let cut = Shape::from_log2(&[(log2 - low) as u8, low as u8]);
                let cut = cut.expect("as many elements as before");
                let cut = self.b.reshape(x, ty.with_shape(cut));
                let transposed = self.b.permute(cut, [1, 0].into_iter().collect());
                self.b.reshape(transposed, ty)
            }
            1 => {
                let other = self.value(ty);
                let axis = self.random.below(ty.shape.rank()) as u8;
                let both = self.b.cat(x, other, axis);
                let pairs = [ty.shape.log2(), &[1]].concat();
                let pairs = Shape::from_log2(&pairs).expect("blocks are small");
                let pairs = self.b.reshape(both, ty.with_shape(pairs));
                self.b.split(pairs, self.random.below(2) as u8)
            }
            2 => self.product(),
            3 => {
                let scalar = self
                    .random
                    .pick(&[Scalar::I8, Scalar::I16, Scalar::I32, Scalar::I64]);
                let numbers = self.value(ty.with_elem(Elem::Num(scalar)));
                let bins = Shape::from_log2(&[self.random.below(10) as u8]);
                let bins = bins.expect("few bins");
                self.b.histogram(numbers, TileType::block(Elem::I32, bins))
            }
            _ => {
                let scalar = self
                    .random
                    .pick(&[Scalar::I8, Scalar::I16, Scalar::I32, Scalar::I64]);
                let index = self.value(ty.with_elem(Elem::Num(scalar)));
                let axis = self.random.below(ty.shape.rank()) as u8;
                self.b.gather(x, index, axis)
            }
        };
        self.values.push(transposed);
    }

    /// A product of matrices whose sums are exact: of bytes, or of small whole numbers in some floating-point type.
    fn product(&mut self) -> Value {
        let extent = |this: &mut Self| this.random.below(6) as u8;
        let mut extents = [extent(self), extent(self), extent(self)];
        // Units take sums of 16 and more.
        if self.random.chance(50) {
            extents[1] = 4 + self.random.below(3) as u8;
        }
        let [m, k, n] = extents;
        let batch: &[u8] = if self.random.chance(15) { &[1] } else { &[] };
        let shape = |rows: u8, columns: u8| {
            let all = [batch, &[rows, columns]].concat();
            Shape::from_log2(&all).expect("blocks are small")
        };
        let bytes = |shape| TileType::block(Elem::I8, shape);
        let factors = [shape(m, k), shape(k, n)].map(|s| self.value(bytes(s)));
        let elem = self.random.pick(&[
            Elem::I8,
            Elem::F16,
            Elem::BF16,
            Elem::F32,
            Elem::F64,
            Elem::Num(Scalar::F8E4M3),
            Elem::Num(Scalar::F8E5M2),
        ]);
        let precision = self.random.pick(DotPrecision::ALL);
        let sum = match elem {
            Elem::I8 => Elem::I32,
            Elem::F64 => Elem::F64,
            _ => Elem::F32,
        };
        let sum = TileType::block(sum, shape(m, n));
        if elem == Elem::I8 {
            let start = self.value(sum);
            return self.b.dot(factors[0], factors[1], start, precision);
        }
        let factors = factors.map(|x| {
            let ty = self.b.ty(x);
            let three = self.constant(ty, 3);
            let small = self.b.and(x, three);
            self.b.sitofp(small, ty.with_elem(elem))
        });
        let start = self.constant(sum, 0);
        self.b.dot(factors[0], factors[1], start, precision)
    }

    /// A promise about a value that keeps it.
    pub(super) fn hint(&mut self) {
        let shape = self.shape();
        let elem = self.random.pick(&[Elem::I32, Elem::I64]);
        let ty = TileType::block(elem, shape);
        let rank = shape.rank().max(1);
        let value = match self.random.below(3) {
            0 => {
                let x = self.value(ty);
                let n = 1 << self.random.below(5);
                let mask = self.int_like(-n, x);
                let x = self.b.and(x, mask);
                self.b
                    .assume_multiple(x, std::iter::repeat_n(n as u32, rank).collect())
            }
            1 if shape.rank() == 1 => {
                let range = self.b.arange(0, ty.with_elem(Elem::I32));
                let start = self.random.between(-20, 200);
                let start = self.int(start);
                let start = self.b.splat(start, ty.with_elem(Elem::I32));
                let x = self.b.iadd(range, start);
                self.b
                    .assume_contiguous(x, std::iter::once(shape.extent(0) as u32).collect())
            }
            _ => {
                let x = self.value(TileType::scalar(elem));
                let x = self.b.to_shape(x, shape);
                let extents = match shape.is_scalar() {
                    true => std::iter::once(1).collect(),
                    false => shape.extents().map(|e| e as u32).collect(),
                };
                self.b.assume_constant(x, extents)
            }
        };
        self.values.push(value);
    }

    /// A scalar of a shape-less type, for conditions.
    pub(super) fn condition_value(&mut self) -> Value {
        self.value(TileType::block(Elem::I1, Shape::SCALAR))
    }
}

/// Whether the op takes operands of these types.
pub(in crate::fuzzing) fn fits(
    op: TileOp,
    args: &[TileType],
    attrs: &[Attr],
    given: &[TileType],
) -> bool {
    let operands = Operands::<Tile> { args, attrs, given };
    Tile::result_types(op, &operands).is_ok()
}
