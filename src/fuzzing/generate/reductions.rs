//! Reductions with regions that are associative and commutative, scans with such that are associative, and sorting networks.

use super::Generator;
use crate::ir::attrs::{FloatPred, IntPred, NanRule};
use crate::ir::builder::TileBuilder;
use crate::ir::compose::{SortOrder, sort, top};
use crate::ir::dfg::ValueList;
use crate::ir::entities::Value;
use crate::ir::ops::TileOp;
use crate::ir::types::{Elem, TileType, ValueType};

/// How two elements are combined.
#[derive(Clone, Copy)]
enum Combine {
    Op(TileOp),
    /// The larger of two pairs, first by value, then by the smaller index.
    Best,
    /// The last of two integers that is not zero: scans need not commute.
    Last,
    /// Of two functions `x -> a x + b`, modulo 2^n, the second behind the first.
    Affine,
}

/// Most elements that are sorted, as a power of two.
const MAX_LOG2_SORTED: u8 = 7;

impl Generator {
    /// Folds or scans one or several blocks along a dimension.
    pub(super) fn reduce(&mut self) {
        let shape = self.shape();
        if shape.is_scalar() {
            return;
        }
        let axis = self.random.below(shape.rank()) as u8;
        let scans = self.random.chance(40);
        let mut blocks: Vec<Value> = Vec::new();
        let mut ways: Vec<(Combine, NanRule)> = Vec::new();
        for _ in 0..1 + self.random.weighted(&[70, 20, 10]) {
            let elem = self.elem();
            let ty = TileType::block(elem, shape);
            let nan = self.random.pick(NanRule::ALL);
            if self.random.chance(15) && elem.bits() > 8 {
                let mut x = self.value(ty);
                if elem.is_float() {
                    // With NaN the order is not total, and two zeros are equal but not the same.
                    let zero = self.constant(ty, 0);
                    let other = self.b.fcmp(x, zero, FloatPred::One);
                    x = self.b.select(other, x, zero);
                }
                blocks.push(x);
                blocks.push(self.value(ty.with_elem(Elem::I32)));
                ways.push((Combine::Best, nan));
                continue;
            }
            if scans && elem.is_int() && elem != Elem::I1 && self.random.chance(25) {
                blocks.push(self.value(ty));
                let way = match self.random.chance(50) {
                    true => Combine::Last,
                    false => {
                        blocks.push(self.value(ty));
                        Combine::Affine
                    }
                };
                ways.push((way, nan));
                continue;
            }
            let op = match elem {
                Elem::I1 => self.random.pick(&[TileOp::And, TileOp::Or, TileOp::Xor]),
                _ if elem.is_int() => self.random.pick(&[
                    TileOp::Iadd,
                    TileOp::Imul,
                    TileOp::And,
                    TileOp::Or,
                    TileOp::Xor,
                    TileOp::Smin,
                    TileOp::Smax,
                    TileOp::Umin,
                    TileOp::Umax,
                ]),
                _ if elem.bits() <= 8 => continue,
                _ if self.inexact && self.random.chance(60) => {
                    self.exact = false;
                    self.random
                        .pick(&[TileOp::Fadd, TileOp::Fadd, TileOp::Fmul])
                }
                _ => self.random.pick(&[TileOp::Fmin, TileOp::Fmax]),
            };
            blocks.push(self.value(ty));
            ways.push((Combine::Op(op), nan));
        }
        if blocks.is_empty() {
            return;
        }
        let reverse = self.random.chance(50);
        let combine = |b: &mut TileBuilder, left: &[Value], right: &[Value]| {
            let mut out = ValueList::new();
            for &(way, nan) in &ways {
                let i = out.len();
                let (x, y) = (left[i], right[i]);
                match way {
                    Combine::Op(TileOp::Fmin) => out.push(b.fmin(x, y, nan)),
                    Combine::Op(TileOp::Fmax) => out.push(b.fmax(x, y, nan)),
                    Combine::Op(op) => {
                        let data = crate::ir::dfg::InstData::new(op, &[x, y]);
                        let inst = b.inst(data, &[]);
                        out.extend(b.func().dfg.insts[inst].results.iter().copied());
                    }
                    Combine::Last => {
                        let zero = b.const_bits(0, b.ty(x));
                        let goes_on = b.icmp(y, zero, IntPred::Eq);
                        out.push(b.select(goes_on, x, y));
                    }
                    Combine::Affine => {
                        let (m, n) = (left[i + 1], right[i + 1]);
                        out.push(b.imul(x, y));
                        let moved = b.imul(y, m);
                        out.push(b.iadd(moved, n));
                    }
                    Combine::Best => {
                        let (m, n) = (left[i + 1], right[i + 1]);
                        let (above, equal) = if b.ty(x).elem().is_float() {
                            (b.fcmp(x, y, FloatPred::Ogt), b.fcmp(x, y, FloatPred::Oeq))
                        } else {
                            (b.icmp(x, y, IntPred::Sgt), b.icmp(x, y, IntPred::Eq))
                        };
                        let first = b.icmp(m, n, IntPred::Slt);
                        let tie = b.and(equal, first);
                        let left_wins = b.or(above, tie);
                        out.push(b.select(left_wins, x, y));
                        out.push(b.select(left_wins, m, n));
                    }
                }
            }
            out
        };
        let results = if scans {
            self.b.scan(&blocks, axis, reverse, combine)
        } else {
            self.b.reduce(&blocks, axis, combine)
        };
        self.values.extend(results);
    }

    /// Sorts a block along its last dimension, or keeps the first few in order.
    pub(super) fn sort(&mut self) {
        let shape = self.shape();
        let elem = self.elem();
        let Some(&last) = shape.log2().last() else {
            return;
        };
        if elem == Elem::I1 || MAX_LOG2_SORTED < last {
            return;
        }
        let ty = TileType::block(elem, shape);
        let mut x = self.value(ty);
        if elem.is_float() {
            // The bits of NaNs are open, and with them their order.
            let zero = self.constant(ty, 0);
            x = match elem.bits() {
                8 => return,
                _ => {
                    let is_number = self.b.fcmp(x, x, FloatPred::Ord);
                    self.b.select(is_number, x, zero)
                }
            };
        }
        let order = SortOrder {
            descending: self.random.chance(50),
            unsigned: elem.is_int() && self.random.chance(30),
        };
        let sorted = match self.random.chance(60) {
            true => sort(&mut self.b, x, order),
            false => {
                let count = 1 << self.random.below(usize::from(last) + 1);
                top(&mut self.b, x, count, order)
            }
        };
        self.values.push(sorted.expect("a block of numbers"));
    }
}
