//! Reductions with regions that are associative and commutative.

use super::Generator;
use crate::ir::attrs::{FloatPred, IntPred, NanRule};
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
}

impl Generator {
    /// Folds one or several blocks along a dimension.
    pub(super) fn reduce(&mut self) {
        let shape = self.shape();
        if shape.is_scalar() {
            return;
        }
        let axis = self.random.below(shape.rank()) as u8;
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
        let results = self.b.reduce(&blocks, axis, |b, left, right| {
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
        });
        self.values.extend(results);
    }
}
