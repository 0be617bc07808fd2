//! Loops and choices that carry values and pointers.

use super::memory::Pointer;
use super::{Generator, MAX_TRIPS};
use crate::ir::attrs::{Attr, IntPred, make};
use crate::ir::dfg::{BlockCall, InstData, ValueList};
use crate::ir::entities::{Block, Value};
use crate::ir::ops::TileOp;
use crate::ir::types::{Elem, TileType};
use crate::linear_layout::shape::Shape;

/// What was in scope before a region.
pub(super) struct Scope {
    values: usize,
    pointers: usize,
    outer: Block,
    trips: i64,
}

impl Generator {
    /// Goes into a region that runs `trips` times.
    pub(super) fn enter(&mut self, block: Block, trips: i64) -> Scope {
        let scope = Scope {
            values: self.values.len(),
            pointers: self.pointers.len(),
            outer: self.b.block(),
            trips: self.trips,
        };
        self.b.switch_to(block);
        self.depth += 1;
        self.trips *= trips;
        scope
    }

    /// Comes back from a region; what was made there is out of scope.
    pub(super) fn leave(&mut self, scope: Scope) {
        self.values.truncate(scope.values);
        self.pointers.truncate(scope.pointers);
        self.b.switch_to(scope.outer);
        self.depth -= 1;
        self.trips = scope.trips;
    }

    /// Appends an instruction with regions.
    pub(super) fn regions(
        &mut self,
        op: TileOp,
        args: &[Value],
        attrs: &[Attr],
        regions: &[Block],
        given: &[TileType],
    ) -> ValueList {
        let mut data = InstData::new(op, args);
        data.attrs.extend(attrs.iter().cloned());
        data.blocks
            .extend(regions.iter().map(|&block| BlockCall::region(block)));
        let inst = self.b.inst(data, given);
        self.b.func().dfg.insts[inst]
            .results
            .iter()
            .copied()
            .collect()
    }

    /// Types of values to carry.
    fn carried_types(&mut self) -> Vec<TileType> {
        (0..self.random.below(4))
            .map(|_| TileType::block(self.elem(), self.shape()))
            .collect()
    }

    fn some_statements(&mut self) {
        let count = 1 + self.random.below(5);
        self.statements(count);
    }

    /// Lower bound, upper bound and step of a loop that runs at most `most` times.
    fn bounds(&mut self, elem: Elem, most: i64) -> (Value, Value, Value) {
        let ty = TileType::scalar(elem);
        let (min, max) = match elem {
            Elem::I64 => (i64::MIN, i64::MAX),
            _ => (i64::from(i32::MIN), i64::from(i32::MAX)),
        };
        let number = |g: &mut Generator, n: i64| {
            let mask = u64::MAX >> (64 - elem.bits());
            g.constant(ty, n as u64 & mask)
        };
        let step = self.random.pick(&[1, 1, 1, 2, 3, 64]);
        let span = self.random.between(0, most) * step;
        let lo = match self.random.below(8) {
            0 => max - span,
            1 => min,
            2 => -span / 2,
            _ => self.random.pick(&[0, 0, 0, 1, 5]),
        };
        let hi = lo + span;
        if self.random.chance(40) {
            // All constant, perhaps a little off so that the last round is incomplete, or empty.
            let hi = match self.random.below(4) {
                0 => hi - self.random.between(0, 3).min(span),
                1 => lo.saturating_sub(3).max(min),
                _ => hi,
            };
            // The counter may pass the largest number behind the last round.
            let lo = lo.saturating_add(self.random.between(0, step - 1)).min(max);
            return (number(self, lo), number(self, hi), number(self, step));
        }
        // The number of rounds is found at run time: hi = lo + (n & mask) * step.
        let n = self.value(ty);
        let bits = 1i64 << (most + 1).ilog2();
        let mask = number(self, bits - 1);
        let n = self.b.and(n, mask);
        let stepped = number(self, step);
        let span = self.b.imul(n, stepped);
        let lo = number(self, lo.min(max - bits * step));
        let hi = self.b.iadd(lo, span);
        (lo, hi, stepped)
    }

    /// A counted loop.
    pub(super) fn for_loop(&mut self) {
        let most = (MAX_TRIPS / self.trips).clamp(1, 8);
        let elem = self.random.pick(&[Elem::I32, Elem::I32, Elem::I64]);
        let (lo, hi, step) = self.bounds(elem, most);
        let types = self.carried_types();
        let mut inits: Vec<Value> = types.iter().map(|&ty| self.value(ty)).collect();
        // A pointer that moves each round.
        let moving: Vec<(Pointer, i64)> = (0..self.random.below(3))
            .filter_map(|_| {
                let from = *self
                    .pointers
                    .get(self.random.below(self.pointers.len().max(1)))?;
                let step = (from.len - from.last - 1) / most;
                let step = self.random.between(0, step.min(64));
                Some((from, step))
            })
            .collect();
        inits.extend(moving.iter().map(|(p, _)| p.value));
        let params: Vec<TileType> = [lo].iter().chain(&inits).map(|&v| self.b.ty(v)).collect();
        let (block, values) = self.b.new_block(&params);
        let scope = self.enter(block, most.max(2));
        let (counter, carried) = (values[0], values[1..].to_vec());
        let (own, pointers) = carried.split_at(types.len());
        self.values.push(counter);
        self.values.extend(own);
        let ends: Vec<Pointer> = moving
            .iter()
            .zip(pointers)
            .map(|((from, step), &value)| Pointer {
                value,
                last: from.last + step * most,
                len: from.len,
            })
            .collect();
        for (end, (_, step)) in ends.iter().zip(&moving) {
            // Before the last round has moved it.
            self.pointers.push(Pointer {
                last: end.last - step,
                ..*end
            });
        }
        self.some_statements();
        let mut next: Vec<Value> = (0..own.len()).map(|i| self.next_carried(own, i)).collect();
        for (&value, (_, step)) in pointers.iter().zip(&moving) {
            let shape = self.b.ty(value).shape;
            let step = self.constant(TileType::block(Elem::I32, shape), *step as u64);
            next.push(self.b.addptr(value, step));
        }
        self.b.yield_values(&next);
        self.leave(scope);
        let attrs = match self.random.chance(10) {
            true => vec![make::stages(self.random.pick(&[1, 2, 3]))],
            false => Vec::new(),
        };
        let args = [&[lo, hi, step], &inits[..]].concat();
        let results = self.regions(TileOp::For, &args, &attrs, &[block], &[]);
        self.values.extend(&results[..types.len()]);
        for (end, &value) in ends.iter().zip(&results[types.len()..]) {
            self.pointers.push(Pointer { value, ..*end });
        }
    }

    /// What a loop hands to its next round: anything, or what keeps or breaks the form in which a value is carried.
    fn next_carried(&mut self, own: &[Value], index: usize) -> Value {
        let param = own[index];
        let ty = self.b.ty(param);
        let is_int = ty.elem.is_int() && ty.elem != Elem::I1;
        match self.random.below(8) {
            0 => param,
            1 => {
                let same: Vec<Value> = own
                    .iter()
                    .copied()
                    .filter(|&v| self.b.ty(v) == ty)
                    .collect();
                self.random.pick(&same)
            }
            2 | 3 if is_int => {
                let n = self.random.pick(&[1, 2, 3, 4, 16, 64, -1, -8]);
                let n = self.int_like(n, param);
                self.b.iadd(param, n)
            }
            4 if is_int => {
                let other = self.value(ty);
                self.b.iadd(param, other)
            }
            _ => self.value(ty),
        }
    }

    /// A loop that counts a carried number down, among other things.
    pub(super) fn while_loop(&mut self) {
        let most = (MAX_TRIPS / self.trips).clamp(1, 7);
        let int = TileType::scalar(Elem::I32);
        let n = self.value(int);
        let bits = 1i64 << (most + 1).ilog2();
        let mask = self.int(bits - 1);
        let count = self.b.and(n, mask);
        let entered = self.carried_types();
        let passed = match self.random.chance(50) {
            true => entered.clone(),
            false => self.carried_types(),
        };
        let inits: Vec<Value> = std::iter::once(count)
            .chain(entered.iter().map(|&ty| self.value(ty)).collect::<Vec<_>>())
            .collect();
        let with_count = |types: &[TileType]| [&[int], types].concat();

        let (before, values) = self.b.new_block(&with_count(&entered));
        let scope = self.enter(before, most + 1);
        self.values.extend(&values[1..]);
        if self.random.chance(40) {
            self.some_statements();
        }
        let zero = self.int(0);
        let mut goes_on = self.b.icmp(values[0], zero, IntPred::Sgt);
        if self.random.chance(20) {
            let also = self.condition_value();
            goes_on = self.b.and(goes_on, also);
        }
        let mut out = vec![values[0]];
        out.extend(passed.iter().map(|&ty| self.value(ty)).collect::<Vec<_>>());
        self.b.condition(goes_on, &out);
        self.leave(scope);

        let (after, values) = self.b.new_block(&with_count(&passed));
        let scope = self.enter(after, most);
        self.values.extend(&values[1..]);
        self.some_statements();
        let one = self.int(1);
        let mut next = vec![self.b.isub(values[0], one)];
        next.extend(entered.iter().map(|&ty| self.value(ty)).collect::<Vec<_>>());
        self.b.yield_values(&next);
        self.leave(scope);

        let given = with_count(&passed);
        let results = self.regions(TileOp::While, &inits, &[], &[before, after], &given);
        self.values.extend(results);
    }

    /// A choice, perhaps of a pointer too.
    pub(super) fn if_else(&mut self) {
        let cond = match self.random.chance(10) {
            true => {
                let bit = u64::from(self.random.chance(50));
                self.constant(TileType::block(Elem::I1, Shape::SCALAR), bit)
            }
            false => self.condition_value(),
        };
        let mut types = self.carried_types();
        let choices: Option<(Pointer, Pointer)> = (self.random.chance(30)
            && !self.pointers.is_empty())
        .then(|| {
            let first = self.pointers[self.random.below(self.pointers.len())];
            let ty = self.b.ty(first.value);
            let same = self.pointers_like(ty);
            (first, self.random.pick(&same))
        })
        .filter(|(a, b)| a.last.max(b.last) < a.len.min(b.len));
        let numbers = types.len();
        let mut blocks = Vec::new();
        for side in 0..2 {
            let (block, _) = self.b.new_block(&[]);
            let scope = self.enter(block, 1);
            if side == 0 || self.random.chance(60) {
                self.some_statements();
            }
            let mut out: Vec<Value> = types[..numbers].iter().map(|&ty| self.value(ty)).collect();
            if let Some((a, b)) = choices {
                out.push(if side == 0 { a.value } else { b.value });
            }
            self.b.yield_values(&out);
            self.leave(scope);
            blocks.push(block);
        }
        if let Some((a, _)) = choices {
            types.push(self.b.ty(a.value));
        }
        let results = self.regions(TileOp::If, &[cond], &[], &blocks, &types);
        self.values.extend(&results[..numbers]);
        if let Some((a, b)) = choices {
            self.pointers.push(Pointer {
                value: results[numbers],
                last: a.last.max(b.last),
                len: a.len.min(b.len),
            });
        }
    }
}
