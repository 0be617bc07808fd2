//! Formulas over blocks, written with operators.
//!
//! A [`Formula`] records operations on one element; [`Formula::place`] then writes them for blocks of any extent. One
//! formula serves f32 and f64 where only its constants differ: [`FloatBits`] and [`Table`] hold both.
//!
//! Every product that goes into a sum is written as [`X::fma`] or is used twice, so that contraction changes nothing.

use std::cell::RefCell;
use std::ops::{Add, BitAnd, BitOr, BitXor, Mul, Neg, Shl, Shr, Sub};

use smallvec::SmallVec;

use crate::ir::attrs::{Attr, FloatPred, IntPred, NanRule, Rounding, make};
use crate::ir::entities::Value;
use crate::ir::ops::TileOp;
use crate::ir::types::{Elem, TileType, ValueType};
use crate::tile::edit::Editor;

/// Bits of a constant in f32 and in f64.
#[derive(Clone, Copy, Debug)]
pub(super) struct FloatBits(pub(super) u32, pub(super) u64);

/// Coefficients of a polynomial in f32 and in f64, constant term first, as bits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Table {
    pub(super) single: &'static [u32],
    pub(super) double: &'static [u64],
}

/// What computes a node.
#[derive(Clone, Debug)]
enum Node {
    /// An operand of the formula.
    Operand(Elem),
    /// A number.
    Const(u64, Elem),
    /// An op on earlier nodes.
    Op(TileOp, SmallVec<[u32; 3]>, Option<Attr>, Elem),
}

impl Node {
    fn elem(&self) -> Elem {
        match self {
            Node::Operand(elem) | Node::Const(_, elem) | Node::Op(_, _, _, elem) => *elem,
        }
    }
}

/// A recorded formula over operands of one floating-point format.
#[derive(Debug)]
pub(super) struct Formula {
    nodes: RefCell<Vec<Node>>,
    /// The format, f32 or f64.
    elem: Elem,
}

/// A number within a formula.
#[derive(Clone, Copy, Debug)]
pub(super) struct X<'f> {
    formula: &'f Formula,
    node: u32,
}

/// Something that stands for a number of the format of another.
pub(super) trait Operand<'f> {
    /// The number.
    fn like(self, other: X<'f>) -> X<'f>;
}

impl<'f> Operand<'f> for X<'f> {
    fn like(self, _: X<'f>) -> X<'f> {
        self
    }
}

impl<'f> Operand<'f> for f64 {
    fn like(self, other: X<'f>) -> X<'f> {
        other.formula.number(self)
    }
}

impl<'f> Operand<'f> for FloatBits {
    fn like(self, other: X<'f>) -> X<'f> {
        other.formula.constant(self)
    }
}

impl<'f> Operand<'f> for i64 {
    fn like(self, other: X<'f>) -> X<'f> {
        other.formula.push(Node::Const(self as u64, other.elem()))
    }
}

impl Formula {
    /// A formula over numbers of a format.
    pub(super) fn new(elem: Elem) -> Formula {
        Formula {
            nodes: RefCell::default(),
            elem,
        }
    }

    /// Whether the format is f64.
    pub(super) fn is_double(&self) -> bool {
        self.elem == Elem::F64
    }

    /// The first argument in f32, the second in f64.
    pub(super) fn pick<T>(&self, single: T, double: T) -> T {
        if self.is_double() { double } else { single }
    }

    /// Stored bits of the significand.
    pub(super) fn mantissa_bits(&self) -> u32 {
        self.pick(23, 52)
    }

    /// What is added to exponents.
    pub(super) fn bias(&self) -> i64 {
        self.pick(127, 1023)
    }

    fn push(&self, node: Node) -> X<'_> {
        let mut nodes = self.nodes.borrow_mut();
        if let Node::Const(bits, elem) = node {
            let same = |n: &Node| matches!(n, Node::Const(b, e) if *b == bits && *e == elem);
            if let Some(known) = nodes.iter().position(same) {
                return X {
                    formula: self,
                    node: known as u32,
                };
            }
        }
        nodes.push(node);
        X {
            formula: self,
            node: nodes.len() as u32 - 1,
        }
    }

    /// The next operand.
    pub(super) fn operand(&self) -> X<'_> {
        self.push(Node::Operand(self.elem))
    }

    /// A number of the format.
    pub(super) fn number(&self, x: f64) -> X<'_> {
        let bits = if self.is_double() {
            x.to_bits()
        } else {
            u64::from((x as f32).to_bits())
        };
        self.push(Node::Const(bits, self.elem))
    }

    /// A constant of the format.
    pub(super) fn constant(&self, x: FloatBits) -> X<'_> {
        let bits = self.pick(u64::from(x.0), x.1);
        self.push(Node::Const(bits, self.elem))
    }

    /// An integer of the format's width.
    pub(super) fn int(&self, bits: i64) -> X<'_> {
        let elem = self.pick(Elem::I32, Elem::I64);
        self.push(Node::Const(bits as u64, elem))
    }

    /// NaN.
    pub(super) fn nan(&self) -> X<'_> {
        self.constant(FloatBits(0x7fff_ffff, 0x7fff_ffff_ffff_ffff))
    }

    /// Writes the operations that `result` needs in front of the visited instruction.
    pub(super) fn place(
        &self,
        edit: &mut Editor<'_>,
        operands: &[Value],
        ty: TileType,
        result: u32,
    ) -> Value {
        let nodes = self.nodes.borrow();
        let mut needed = vec![false; nodes.len()];
        needed[result as usize] = true;
        for (i, node) in nodes.iter().enumerate().rev() {
            if let (Node::Op(_, args, ..), true) = (node, needed[i]) {
                args.iter().for_each(|&arg| needed[arg as usize] = true);
            }
        }
        let mut operands = operands.iter().copied();
        let mut values: Vec<Option<Value>> = Vec::with_capacity(nodes.len());
        for (node, needed) in nodes.iter().zip(needed) {
            let value = match node {
                Node::Operand(_) => operands.next(),
                _ if !needed => None,
                Node::Const(bits, elem) => Some(edit.constant(*bits, ty.with_elem(*elem))),
                Node::Op(op, args, attr, elem) => {
                    let args: SmallVec<[Value; 3]> = args
                        .iter()
                        .map(|&arg| values[arg as usize].expect("operands come first"))
                        .collect();
                    let attrs: SmallVec<[Attr; 1]> = attr.iter().cloned().collect();
                    Some(edit.build(*op, &args, &attrs, ty.with_elem(*elem)))
                }
            };
            values.push(value);
        }
        values[result as usize].expect("the result is needed")
    }
}

impl<'f> X<'f> {
    /// Its place in the formula.
    pub(super) fn node(self) -> u32 {
        self.node
    }

    /// The formula.
    pub(super) fn formula(self) -> &'f Formula {
        self.formula
    }

    fn elem(self) -> Elem {
        self.formula.nodes.borrow()[self.node as usize].elem()
    }

    fn make(self, op: TileOp, rest: &[X<'f>], attr: Option<Attr>, elem: Elem) -> X<'f> {
        let args = [self]
            .iter()
            .chain(rest)
            .map(|x| x.node)
            .collect::<SmallVec<_>>();
        self.formula.push(Node::Op(op, args, attr, elem))
    }

    /// An op whose result is of the number's type.
    pub(super) fn op(self, op: TileOp) -> X<'f> {
        self.make(op, &[], None, self.elem())
    }

    /// An op of two operands whose result is of the first's type.
    pub(super) fn op2(self, op: TileOp, other: impl Operand<'f>) -> X<'f> {
        let other = other.like(self);
        self.make(op, &[other], None, self.elem())
    }

    /// `self * b + c`, rounded once.
    pub(super) fn fma(self, b: impl Operand<'f>, c: impl Operand<'f>) -> X<'f> {
        let (b, c) = (b.like(self), c.like(self));
        self.make(TileOp::Fma, &[b, c], None, self.elem())
    }

    /// The size.
    pub(super) fn abs(self) -> X<'f> {
        self.op(TileOp::Fabs)
    }

    /// With the sign of another.
    pub(super) fn with_sign_of(self, other: X<'f>) -> X<'f> {
        self.op2(TileOp::Copysign, other)
    }

    /// The smaller of two, neither NaN.
    pub(super) fn min(self, other: impl Operand<'f>) -> X<'f> {
        let other = other.like(self);
        self.make(
            TileOp::Fmin,
            &[other],
            Some(make::nan(NanRule::Ignore)),
            self.elem(),
        )
    }

    /// The larger of two, neither NaN.
    pub(super) fn max(self, other: impl Operand<'f>) -> X<'f> {
        let other = other.like(self);
        self.make(
            TileOp::Fmax,
            &[other],
            Some(make::nan(NanRule::Ignore)),
            self.elem(),
        )
    }

    /// The larger of two, NaN if one is.
    pub(super) fn larger_or_nan(self, other: X<'f>) -> X<'f> {
        let keep = Some(make::nan(NanRule::Propagate));
        self.make(TileOp::Fmax, &[other], keep, self.elem())
    }

    /// Not below nor above two numbers; NaN stays.
    pub(super) fn clamped(self, least: f64, most: f64) -> X<'f> {
        let keep = || Some(make::nan(NanRule::Propagate));
        let least = least.like(self);
        let most = most.like(self);
        let below = self.make(TileOp::Fmin, &[most], keep(), self.elem());
        below.make(TileOp::Fmax, &[least], keep(), self.elem())
    }

    /// The quotient, rounded to nearest.
    pub(super) fn over(self, other: impl Operand<'f>) -> X<'f> {
        self.op2(TileOp::FdivRn, other)
    }

    /// The square root, rounded to nearest.
    pub(super) fn root(self) -> X<'f> {
        self.op(TileOp::SqrtRn)
    }

    /// The reciprocal to a little more than half an ulp, of a number whose reciprocal is no extreme. In f32 the unit's
    /// error is gone after one step of Newton's.
    pub(super) fn reciprocal(self) -> X<'f> {
        if self.formula.is_double() {
            return self.formula.number(1.0).over(self);
        }
        let guess = self.op(TileOp::RcpFtz);
        let error = (-self).fma(guess, 1.0);
        guess.fma(error, guess)
    }

    /// The quotient, rounded to nearest where the divisor, its reciprocal and the quotient are no extremes, else near it
    /// (P. Markstein, "Computation of elementary functions on the IBM RISC System/6000 processor", 1990). A division that is
    /// right everywhere takes twice as much, and a branch.
    pub(super) fn quotient(self, other: impl Operand<'f>) -> X<'f> {
        let other = other.like(self);
        if self.formula.is_double() {
            return self.over(other);
        }
        let inverse = other.reciprocal();
        let quotient = self * inverse;
        (-quotient).fma(other, self).fma(inverse, quotient)
    }

    /// The square root of a number far from 0 and infinity, rounded to nearest, from that of the reciprocal.
    pub(super) fn ordinary_root(self) -> X<'f> {
        if self.formula.is_double() {
            return self.root();
        }
        self.root_by(self.op(TileOp::Rsqrt))
    }

    /// The square root from the machine's reciprocal of it, in f32.
    pub(super) fn root_by(self, inverse: X<'f>) -> X<'f> {
        let root = self * inverse;
        (-root).fma(root, self).fma(inverse * 0.5, root)
    }

    /// Whether it is no number from `least` to `most`, which is hardly ever so.
    pub(super) fn is_outside(self, least: f64, most: f64) -> X<'f> {
        (self.compare(FloatPred::Ult, least) | self.compare(FloatPred::Ugt, most)).rare()
    }

    /// Whether it is larger, or no number, which is hardly ever so.
    pub(super) fn is_beyond(self, most: f64) -> X<'f> {
        self.compare(FloatPred::Ugt, most).rare()
    }

    /// Whether the comparison holds.
    pub(super) fn compare(self, pred: FloatPred, other: impl Operand<'f>) -> X<'f> {
        let other = other.like(self);
        self.make(TileOp::Fcmp, &[other], Some(make::fpred(pred)), Elem::I1)
    }

    /// Whether it is smaller; not if one is NaN.
    pub(super) fn lt(self, other: impl Operand<'f>) -> X<'f> {
        self.compare(FloatPred::Olt, other)
    }

    /// Whether it is larger; not if one is NaN.
    pub(super) fn gt(self, other: impl Operand<'f>) -> X<'f> {
        self.compare(FloatPred::Ogt, other)
    }

    /// Whether the numbers are equal.
    pub(super) fn equals(self, other: impl Operand<'f>) -> X<'f> {
        self.compare(FloatPred::Oeq, other)
    }

    /// Whether it is NaN.
    pub(super) fn is_nan(self) -> X<'f> {
        self.compare(FloatPred::Uno, self)
    }

    /// Whether the comparison of integers holds.
    pub(super) fn int_compare(self, pred: IntPred, other: impl Operand<'f>) -> X<'f> {
        let other = other.like(self);
        self.make(TileOp::Icmp, &[other], Some(make::ipred(pred)), Elem::I1)
    }

    /// This truth value, which hardly ever holds: what `select` by it needs for where it does costs no time elsewhere.
    pub(super) fn rare(self) -> X<'f> {
        self.op(TileOp::Rare)
    }

    /// `yes` where this truth value holds, else `no`.
    pub(super) fn select(self, yes: X<'f>, no: impl Operand<'f>) -> X<'f> {
        let no = no.like(yes);
        self.make(TileOp::Select, &[yes, no], None, yes.elem())
    }

    /// The bits as an integer.
    pub(super) fn bits(self) -> X<'f> {
        let elem = self.formula.pick(Elem::I32, Elem::I64);
        self.make(TileOp::Bitcast, &[], None, elem)
    }

    /// The number with these bits.
    pub(super) fn float(self) -> X<'f> {
        self.make(TileOp::Bitcast, &[], None, self.formula.elem)
    }

    /// A conversion to a type.
    pub(super) fn cast(self, op: TileOp, elem: Elem) -> X<'f> {
        let attr = (op == TileOp::Fptrunc).then(|| make::round(Rounding::Nearest));
        self.make(op, &[], attr, elem)
    }

    /// A signed integer as a number of the formula's format.
    pub(super) fn to_float(self) -> X<'f> {
        self.cast(TileOp::Sitofp, self.formula.elem)
    }

    /// Shift right with sign.
    pub(super) fn signed_shift(self, by: i64) -> X<'f> {
        self.op2(TileOp::Sshr, by)
    }

    /// The polynomial at this number, by Horner's rule.
    pub(super) fn polynomial(self, table: &Table) -> X<'f> {
        let formula = self.formula;
        let bits: Vec<u64> = if formula.is_double() {
            table.double.to_vec()
        } else {
            table.single.iter().map(|&bits| u64::from(bits)).collect()
        };
        let mut terms = bits.iter().rev().map(|&bits| {
            let elem = formula.elem;
            formula.push(Node::Const(bits, elem))
        });
        let last = terms.next().expect("a polynomial has terms");
        terms.fold(last, |sum, term| sum.fma(self, term))
    }

    /// Twice, half, .. of it: the number times 2^k, in two steps so that every exponent of the result is reached and rounding
    /// happens once. Of k, an integer of the format's width, only the low 9 bits count (f64: 12).
    pub(super) fn times_power(self, k: X<'f>) -> X<'f> {
        let half = k.signed_shift(1);
        // The neutral sum keeps contraction from taking the product into another.
        (self * half.power_of_two()).fma((k - half).power_of_two(), -0.0)
    }

    /// 2^k as a number, for an integer k of the format's width of which only the low 9 bits count (f64: 12).
    pub(super) fn power_of_two(self) -> X<'f> {
        let formula = self.formula;
        let shift = i64::from(formula.mantissa_bits());
        ((self << shift) + (formula.bias() << shift)).float()
    }

    /// [`times_power`](X::times_power) of a normal number whose product is normal.
    pub(super) fn times_ordinary_power(self, k: X<'f>) -> X<'f> {
        let shift = i64::from(self.formula.mantissa_bits());
        (self.bits() + (k << shift)).float()
    }

    /// The nearest integral number as a float, and an integer whose low 9 bits (f64: 12) are those of that number; for sizes below
    /// 2^21 (f64: 2^50) only.
    pub(super) fn nearest(self, factor: impl Operand<'f>) -> (X<'f>, X<'f>) {
        // Its last bit is 1, so that the sum is rounded there; the bits of that are 0.
        let magic = self.formula.pick(12_582_912.0, 6_755_399_441_055_744.0);
        let sum = self.fma(factor, magic);
        (sum - magic, sum.bits())
    }

    /// The nearest integral number of a product in f32 and two to its power, for sizes up to 126.
    pub(super) fn nearest_power(self, factor: impl Operand<'f>) -> (X<'f>, X<'f>) {
        // Its low bits are the exponent with the bias.
        let magic = 12_582_912.0 + 127.0;
        let sum = self.fma(factor, magic);
        (sum - magic, (sum.bits() << 23).float())
    }
}

macro_rules! operators {
    ($($trait:ident $method:ident $int:ident $float:ident;)*) => {$(
        impl<'f, T: Operand<'f>> $trait<T> for X<'f> {
            type Output = X<'f>;
            fn $method(self, other: T) -> X<'f> {
                let op = if self.elem().is_float() { TileOp::$float } else { TileOp::$int };
                self.op2(op, other)
            }
        }
    )*};
}

operators! {
    Add add Iadd Fadd;
    Sub sub Isub Fsub;
    Mul mul Imul Fmul;
    BitAnd bitand And And;
    BitOr bitor Or Or;
    BitXor bitxor Xor Xor;
    Shl shl Shl Shl;
    Shr shr Ushr Ushr;
}

impl<'f> Neg for X<'f> {
    type Output = X<'f>;
    fn neg(self) -> X<'f> {
        self.op(TileOp::Fneg)
    }
}
