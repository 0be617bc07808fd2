//! Reductions, scans and loops.

use smallvec::smallvec;

use crate::interp::error::InterpErrorKind;
use crate::interp::int;
use crate::ir::attrs::Attrs;
use crate::ir::dfg::InstData;
use crate::ir::entities::{Block, Inst};
use crate::ir::level::Tile;

use super::tolerance::Partials;
use super::{Flow, Held, Machine, Outcome, Results, malformed, operand, owned, required};

impl Machine<'_> {
    /// Folds the bits of the index along the axis, one after the other: see [`crate::ir`].
    pub(super) fn reduce(&mut self, inst: Inst, data: &InstData<Tile>) -> Outcome<Results> {
        let axis = usize::from(required(data.axis())?);
        let shape = self.func.dfg.ty(operand(data, 0)?).shape;
        let region = owned(data, 0)?;
        let low = shape.bit_offset(axis);
        let bits = shape.log2().get(axis).map_or(0, |&b| u32::from(b));
        let order: Vec<u32> = match data.order() {
            Some(order) => order.to_vec(),
            None => (0..bits).collect(),
        };
        let mut xs = self.many(&data.args)?;
        let combination = self.combination(region, true);
        let given = self.slack.as_ref().map(|_| xs.clone());
        let mut folded = 0;
        for bit in order {
            let flag = 1 << (low + bit);
            folded |= flag;
            for left in 0..shape.elements() {
                // What still counts are the elements whose folded bits are clear.
                if left & folded != 0 {
                    continue;
                }
                let right = left | flag;
                let lefts = xs.iter().map(|x| x.element(left));
                let rights = xs.iter().map(|x| x.element(right));
                let args = lefts.chain(rights).collect();
                let combined = self.region(region, args)?;
                if combined.len() != xs.len() {
                    return Err(malformed("a region yields the wrong number of values"));
                }
                for (x, c) in xs.iter_mut().zip(&combined) {
                    x.replace(left, c);
                }
            }
        }
        if let Some(given) = given {
            for i in (0..shape.elements()).filter(|i| i & folded == 0) {
                let line = (0..1 << bits).map(|k| i | k << low);
                let line = line.map(|at| given.iter().map(|x| x.element(at)).collect());
                let line: Vec<Results> = line.collect();
                if let Some(by) = &combination {
                    let mut so_far = Partials::default();
                    for element in &line {
                        self.take_in(by, &mut so_far, element)?;
                    }
                    self.settle(by, &so_far, &mut xs, i)?;
                }
                self.try_order(inst, region, &line, &[i], &mut xs)?;
            }
        }
        let survivors = |x: &Held| {
            let kept = (0..shape.elements()).filter(|i| i & folded == 0);
            let slack = kept.clone().filter_map(|i| x.slack.get(i).copied());
            Held {
                slack: slack.collect(),
                elems: kept.map(|i| x.elems[i]).collect(),
            }
        };
        Ok(xs.iter().map(survivors).collect())
    }

    /// Combines along the axis digit by digit: see [`crate::ir`].
    pub(super) fn scan(&mut self, inst: Inst, data: &InstData<Tile>) -> Outcome<Results> {
        let axis = usize::from(required(data.axis())?);
        let shape = self.func.dfg.ty(operand(data, 0)?).shape;
        let region = owned(data, 0)?;
        let low = shape.bit_offset(axis);
        let bits = shape.log2().get(axis).map_or(0, |&b| u32::from(b));
        let tree: Vec<u32> = match data.tree() {
            Some(tree) => tree.to_vec(),
            None if bits == 0 => Vec::new(),
            None => vec![bits],
        };
        let mut xs = self.many(&data.args)?;
        let combination = self.combination(region, false);
        let along = ((1usize << bits) - 1) << low;
        for start in (0..shape.elements()).filter(|i| i & along == 0) {
            let mut places: Vec<usize> = (0..1 << bits).map(|i| start | i << low).collect();
            if data.reverse().is_some() {
                places.reverse();
            }
            let line = places
                .iter()
                .map(|&i| xs.iter().map(|x| x.element(i)).collect());
            let line: Vec<Results> = line.collect();
            let given = self.slack.as_ref().map(|_| line.clone());
            let scanned = self.scan_line(region, &tree, line)?;
            for (&i, elems) in places.iter().zip(scanned) {
                for (x, elem) in xs.iter_mut().zip(&elems) {
                    x.replace(i, elem);
                }
            }
            if let Some(given) = given {
                if let Some(by) = &combination {
                    let mut so_far = Partials::default();
                    for (&i, element) in places.iter().zip(&given) {
                        self.take_in(by, &mut so_far, element)?;
                        self.settle(by, &so_far, &mut xs, i)?;
                    }
                }
                self.try_order(inst, region, &given, &places, &mut xs)?;
            }
        }
        Ok(xs)
    }

    /// Scans a sequence of one element of each operand, given the digits of its index.
    fn scan_line(
        &mut self,
        region: Block,
        tree: &[u32],
        mut line: Vec<Results>,
    ) -> Outcome<Vec<Results>> {
        let Some((&digit, above)) = tree.split_first() else {
            return Ok(line);
        };
        let extent = self.scan_blocks(region, digit, &mut line)?;
        let mut totals: Vec<Results> = last_of_each(&line, extent);
        let prefixes = self.prefixes(region, above, &mut totals)?;
        // What the digit above gave for whole blocks is the result of their last elements.
        let kept = if digit < 32 && !above.is_empty() {
            extent - 1
        } else {
            extent
        };
        for ((block, prefix), total) in line.chunks_mut(extent).zip(&prefixes).zip(totals) {
            for x in &mut block[..kept] {
                if let Some(prefix) = prefix {
                    *x = self.combine(region, prefix, x)?;
                }
            }
            block[kept..].fill(total);
        }
        Ok(line)
    }

    /// Scans each block of a sequence by its lowest digit; gives the number of places in a block.
    fn scan_blocks(&mut self, region: Block, digit: u32, line: &mut [Results]) -> Outcome<usize> {
        let (bits, doubles) = (digit % 32, digit >= 32);
        let extent = 1usize << bits;
        for block in line.chunks_mut(extent) {
            if doubles {
                for distance in (0..bits).map(|bit| 1 << bit) {
                    let before = block.to_vec();
                    for i in distance..extent {
                        block[i] = self.combine(region, &before[i - distance], &before[i])?;
                    }
                }
            } else {
                for i in 1..extent {
                    block[i] = self.combine(region, &block[i - 1], &block[i])?;
                }
            }
        }
        Ok(extent)
    }

    /// For each element of a sequence, the combination of all before it; the element itself is combined with that.
    fn prefixes(
        &mut self,
        region: Block,
        tree: &[u32],
        line: &mut [Results],
    ) -> Outcome<Vec<Option<Results>>> {
        let Some((&digit, above)) = tree.split_first() else {
            return Ok(vec![None; line.len()]);
        };
        let extent = self.scan_blocks(region, digit, line)?;
        let handed = self.prefixes(region, above, &mut last_of_each(line, extent))?;
        let mut prefixes = Vec::with_capacity(line.len());
        for (block, handed) in line.chunks_mut(extent).zip(handed) {
            prefixes.push(handed.clone());
            for before in &block[..extent - 1] {
                prefixes.push(Some(match &handed {
                    Some(handed) => self.combine(region, handed, before)?,
                    None => before.clone(),
                }));
            }
            for x in block {
                if let Some(handed) = &handed {
                    *x = self.combine(region, handed, x)?;
                }
            }
        }
        Ok(prefixes)
    }

    /// Runs a region on one element of each operand from the left and the right.
    pub(super) fn combine(
        &mut self,
        region: Block,
        left: &Results,
        right: &Results,
    ) -> Outcome<Results> {
        let args = left.iter().chain(right).cloned().collect();
        let combined = self.region(region, args)?;
        if combined.len() != left.len() {
            return Err(malformed("a region yields the wrong number of values"));
        }
        Ok(combined)
    }

    pub(super) fn for_loop(&mut self, data: &InstData<Tile>) -> Outcome<Results> {
        let bits = self.scalar(data, 0)?.bits();
        let number =
            |m: &Self, index| -> Outcome<i64> { Ok(int::signed(bits, m.single(data, index)?)) };
        let (lo, hi, step) = (number(self, 0)?, number(self, 1)?, number(self, 2)?);
        let mut carried = self.many(&data.args[3..])?;
        if step < 1 {
            return Err(InterpErrorKind::LoopStep(step));
        }
        // Wider than any counter, so that the sum past the last value does not wrap around.
        let mut iv = i128::from(lo);
        while iv < i128::from(hi) {
            let counter = Held::exact(smallvec![iv as u64]);
            let args = std::iter::once(counter).chain(carried).collect();
            carried = self.region(owned(data, 0)?, args)?;
            iv += i128::from(step);
        }
        Ok(carried)
    }

    pub(super) fn while_loop(&mut self, data: &InstData<Tile>) -> Outcome<Results> {
        let mut carried = self.many(&data.args)?;
        loop {
            match self.block(owned(data, 0)?, carried)? {
                Flow::Condition(true, passed) => carried = self.region(owned(data, 1)?, passed)?,
                Flow::Condition(false, passed) => return Ok(passed),
                Flow::Yield(_) | Flow::Return => {
                    return Err(malformed("the first region does not end in `condition`"));
                }
            }
        }
    }
}

/// The last element of each block of `extent` places.
fn last_of_each(line: &[Results], extent: usize) -> Vec<Results> {
    let blocks = line.chunks(extent);
    blocks.map(|block| block[extent - 1].clone()).collect()
}
