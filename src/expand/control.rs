//! Expansion of structured control flow to a graph of blocks.
//!
//! A counted loop is tested once before it is entered and then at its end. What a loop carries becomes
//! block parameters: data a pack, indices and pointers only their bases, as long as each iteration leaves
//! their structure and alignment as it found them. That is assumed first and checked when the body is
//! there; where it fails, the body is taken back and expanded again with less assumed, which
//! ends because every attempt gives up an assumption. A loop inside another one is expanded once more for each
//! attempt at the outer one, and starts with the assumptions that it was left with before.

use smallvec::SmallVec;

use crate::ir::attrs::IntPred;
use crate::ir::dfg::{InstData, ValueList};
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::level::Tile;
use crate::ir::ops::{ThreadOp, TileOp};
use crate::ir::types::{Elem, ThreadType, TileType};

use super::regs::{Expanded, Parts};
use super::value_ranges::Range;
use super::{Expander, Result, bug};

/// The form in which a loop carries a tile value.
#[derive(Clone, Debug)]
pub(super) enum CarriedForm {
    /// One value, with this many low bits zero. Of a block it is the same in every thread, which a pack of one element is
    /// not: conversions leave it as it is.
    Uniform { zeros: u32 },
    /// Bases, with this many low bits zero each, and fixed constants.
    Parts {
        parts: Parts,
        zeros: SmallVec<[u32; 4]>,
    },
    /// A pack with one element per register, with this many low bits zero in each.
    Pack { count: usize, zeros: u32 },
}

/// The test at the end of a counted loop: whether the next number is one of it. The next number may wrap; the assembler unrolls
/// loops whose trips it can count, which are those that compare it by itself.
#[derive(Clone, Copy, Debug)]
enum LastTest {
    /// It lies below the bound, where it cannot wrap.
    Below,
    /// It is not yet this one, to which the steps lead, modulo 2^bits.
    At(Value),
    /// A step is less than what was left before it, as unsigned numbers.
    Left,
}

/// How many operations are followed from a number to what it is computed from.
const DEPTH: u32 = 8;

/// The largest number of an index with a sign.
fn largest_index(elem: Elem) -> i64 {
    match elem.bits() {
        64 => i64::MAX,
        _ => i64::from(i32::MAX),
    }
}

impl CarriedForm {
    /// Assumes no more than `known`, which an earlier attempt was left with.
    fn limit(&mut self, known: &CarriedForm) {
        match (&mut *self, known) {
            (CarriedForm::Uniform { zeros }, CarriedForm::Uniform { zeros: known }) => {
                *zeros = (*zeros).min(*known);
            }
            (
                CarriedForm::Parts { parts, zeros },
                CarriedForm::Parts {
                    parts: known_parts,
                    zeros: known,
                },
            ) if parts.same_structure(known_parts) => {
                for (zeros, known) in zeros.iter_mut().zip(known) {
                    *zeros = (*zeros).min(*known);
                }
            }
            (CarriedForm::Pack { zeros, .. }, CarriedForm::Pack { zeros: known, .. }) => {
                *zeros = (*zeros).min(*known);
            }
            (_, &CarriedForm::Pack { count, .. }) => {
                *self = CarriedForm::Pack { count, zeros: 0 };
            }
            _ => {}
        }
    }
}

/// Of the values that travel for tile values in these forms, those for the tile values with these numbers.
fn those_of(chosen: &[usize], forms: &[CarriedForm], values: &[Value]) -> ValueList {
    let mut found = ValueList::new();
    let mut rest = values;
    for (i, form) in forms.iter().enumerate() {
        let count = match form {
            CarriedForm::Uniform { .. } | CarriedForm::Pack { .. } => 1,
            CarriedForm::Parts { parts, .. } => parts.bases.len(),
        };
        let (own, later) = rest.split_at(count.min(rest.len()));
        rest = later;
        if chosen.contains(&i) {
            found.extend_from_slice(own);
        }
    }
    found
}

impl Expander<'_> {
    /// Goes on in a block, behind those that there are.
    pub(super) fn enter(&mut self, block: Block) {
        self.b.append_block(block);
        self.b.switch_to(block);
    }

    /// The values that travel for `expanded` in this form, or none if it has another structure.
    fn travelling(&mut self, form: &CarriedForm, expanded: &Expanded) -> Result<Option<ValueList>> {
        Ok(match (form, expanded) {
            (CarriedForm::Uniform { .. }, Expanded::Uniform(value)) => {
                Some(ValueList::from_slice(&[*value]))
            }
            (CarriedForm::Parts { parts, .. }, Expanded::Parts(found))
                if parts.same_structure(found) =>
            {
                Some(found.bases.iter().copied().collect())
            }
            (CarriedForm::Pack { count, .. }, _) => {
                Some(ValueList::from_slice(&[self.pack_of(expanded, *count)?]))
            }
            _ => None,
        })
    }

    /// What a form assumes of the value that enters.
    fn first_form(&self, ty: TileType, init: &Expanded) -> Result<CarriedForm> {
        let is_token = ty.elem == Elem::Token;
        let indexes = ty.elem.is_ptr() || ty.elem.is_int() && ty.elem.bits() > 1 || is_token;
        Ok(match init {
            Expanded::Uniform(value) if ty.is_scalar() || indexes => CarriedForm::Uniform {
                zeros: self.bits.trailing_zeros(*value),
            },
            Expanded::Parts(parts) if indexes => {
                let zeros = parts
                    .bases
                    .iter()
                    .map(|&b| self.bits.trailing_zeros(b))
                    .collect();
                CarriedForm::Parts {
                    parts: parts.clone(),
                    zeros,
                }
            }
            _ => CarriedForm::Pack {
                count: self.registers(ty)?,
                zeros: match init {
                    // A zero tells nothing of what follows: sums begin with it.
                    Expanded::Pack(value) if indexes => {
                        let zeros = self.bits.trailing_zeros(*value);
                        if zeros < ty.elem.bits() { zeros } else { 0 }
                    }
                    _ => 0,
                },
            },
        })
    }

    /// Weakens a form by what the value at the end of an iteration shows; gives whether anything changed.
    fn weaken(&mut self, form: &mut CarriedForm, ty: TileType, next: &Expanded) -> Result<bool> {
        let Some(values) = self.travelling(form, next)? else {
            *form = CarriedForm::Pack {
                count: self.registers(ty)?,
                zeros: 0,
            };
            return Ok(true);
        };
        let mut changed = false;
        let mut lower = |zeros: &mut u32, value: Value, bits: &super::known_bits::PossibleBits| {
            let found = bits.trailing_zeros(value);
            if found < *zeros {
                *zeros = found;
                changed = true;
            }
        };
        match form {
            CarriedForm::Uniform { zeros } | CarriedForm::Pack { zeros, .. } => {
                lower(zeros, values[0], &self.bits);
            }
            CarriedForm::Parts { zeros, .. } => {
                for (zeros, &value) in zeros.iter_mut().zip(&values) {
                    lower(zeros, value, &self.bits);
                }
            }
        }
        Ok(changed)
    }

    /// Types of the block parameters for a form.
    fn form_types(&self, form: &CarriedForm, ty: TileType) -> SmallVec<[ThreadType; 4]> {
        match form {
            CarriedForm::Uniform { .. } => [ThreadType::scalar(ty.elem)].into_iter().collect(),
            CarriedForm::Parts { parts, .. } => parts
                .bases
                .iter()
                .map(|_| ThreadType::scalar(ty.elem))
                .collect(),
            CarriedForm::Pack { count, .. } => [ThreadType::pack(ty.elem, *count as u16)]
                .into_iter()
                .collect(),
        }
    }

    /// The tile value that parameters stand for; takes them off the front of `params`.
    fn take_params(&mut self, form: &CarriedForm, params: &mut &[Value]) -> Expanded {
        let mut take = |bits: &mut super::known_bits::PossibleBits, zeros: u32| {
            let (&first, rest) = params
                .split_first()
                .expect("one parameter per travelling value was made");
            *params = rest;
            bits.set(first, u64::MAX.checked_shl(zeros).unwrap_or(0));
            first
        };
        match form {
            CarriedForm::Uniform { zeros } => Expanded::Uniform(take(&mut self.bits, *zeros)),
            CarriedForm::Parts { parts, zeros } => {
                let bases = zeros.iter().map(|&z| take(&mut self.bits, z)).collect();
                Expanded::Parts(Parts {
                    bases,
                    regs: parts.regs.clone(),
                })
            }
            CarriedForm::Pack { zeros, .. } => Expanded::Pack(take(&mut self.bits, *zeros)),
        }
    }

    fn travelling_all(&mut self, forms: &[CarriedForm], values: &[Expanded]) -> Result<ValueList> {
        let mut list = ValueList::new();
        for (form, value) in forms.iter().zip(values) {
            match self.travelling(form, value)? {
                Some(values) => list.extend(values),
                None => return bug("a carried value changed its structure"),
            }
        }
        Ok(list)
    }

    /// A new block whose parameters carry tile values in the given forms, after `extra` ones.
    fn block_for(
        &mut self,
        extra: &[ThreadType],
        forms: &[CarriedForm],
        types: &[TileType],
    ) -> (Block, ValueList) {
        let mut params: Vec<ThreadType> = extra.to_vec();
        for (form, &ty) in forms.iter().zip(types) {
            params.extend(self.form_types(form, ty));
        }
        self.b.new_block(&params)
    }

    /// Gives tile values what the parameters of the current block stand for.
    fn bind(&mut self, forms: &[CarriedForm], params: &[Value], to: &[Value]) {
        let mut rest = params;
        for (form, &value) in forms.iter().zip(to) {
            let expanded = self.take_params(form, &mut rest);
            self.values[value] = Some(expanded);
        }
    }

    /// What a region hands on at its end.
    fn terminator_args(&self, block: Block, skip: usize) -> Result<Vec<Expanded>> {
        match self.tile.order.last(block) {
            Some(last) => self.tile.dfg.insts[last]
                .args
                .iter()
                .skip(skip)
                .map(|&v| self.expanded(v))
                .collect(),
            None => bug("an empty region"),
        }
    }

    pub(super) fn expand_for(&mut self, inst: Inst) -> Result<()> {
        let tile = self.tile;
        let data = &tile.dfg.insts[inst];
        let Some(region) = data.blocks.first().map(|call| call.block) else {
            return bug("a loop without region");
        };
        let bounds: Vec<Value> = (0..3)
            .map(|i| self.arg(inst, i).and_then(|e| self.pack_of(&e, 1)))
            .collect::<Result<_>>()?;
        let types: Vec<TileType> = data.args[3..].iter().map(|&v| tile.dfg.ty(v)).collect();
        let mut inits: Vec<Expanded> = data.args[3..]
            .iter()
            .map(|&v| self.expanded(v))
            .collect::<Result<_>>()?;
        for (i, init) in inits.iter_mut().enumerate() {
            let sum = data.results[i];
            let param = tile.dfg.blocks[region].params[i + 1];
            if self.is_added_to_in_flight(sum) && self.is_added_to_in_flight(param) {
                *init = self.in_registers_of_products(init, types[i])?;
            }
        }
        let mut forms = self.first_forms(inst, &types, &inits)?;
        self.attempt(inst, &mut forms, |this, forms| {
            this.try_for(region, &bounds, &types, &inits, forms, &data.results)
        })
    }

    /// How a counted loop that has been entered finds its end. What that takes is computed in front of it.
    fn last_test(&mut self, region: Block, lo: Value, hi: Value, step: Value) -> Result<LastTest> {
        let elem = self.ty(lo).elem;
        let Some(by) = self.known(step).filter(|&by| by > 0) else {
            return Ok(LastTest::Left);
        };
        let most = largest_index(elem);
        let zeros = by.trailing_zeros();
        let ends_at = |value| self.zeros_as_computed(value, DEPTH) >= zeros;
        // Below `hi` there is room for a step of one, and for the last one if steps lead to `hi` itself.
        let whole = by == 1 << zeros && ends_at(lo) && ends_at(hi);
        if by == 1 || whole || self.known(hi).is_some_and(|hi| hi <= most - by) {
            return Ok(LastTest::Below);
        }
        // Nobody unrolls products or what brings blocks for them, and the end would take one more register beside sums.
        let is_kept = |data: &InstData<Tile>| data.is_product() || data.op == TileOp::MbarExpect;
        if by != 1 << zeros || self.tile.any_inside(region, &is_kept) {
            return Ok(LastTest::Left);
        }
        let span = match self.known(lo) {
            Some(0) => hi,
            _ => self.binary(ThreadOp::Isub, hi, lo)?,
        };
        let all = self.add_offset(span, -1)?;
        let mask = self.int(elem, -by);
        let whole = self.binary(ThreadOp::And, all, mask)?;
        let above = self.add_offset(whole, by)?;
        Ok(LastTest::At(match self.known(lo) {
            Some(0) => above,
            _ => self.binary(ThreadOp::Iadd, lo, above)?,
        }))
    }

    /// Zeros that a number ends in by how it is computed. What is promised of parameters does not count: how much of that is left here depends
    /// on what was asked for, and may be more for launches that promise more and share the kernel.
    fn zeros_as_computed(&self, value: Value, depth: u32) -> u32 {
        if let Some(number) = self.known(value) {
            return number.trailing_zeros();
        }
        let dfg = &self.b.func().dfg;
        let Some((inst, depth)) = dfg.def_inst(value).zip(depth.checked_sub(1)) else {
            return 0;
        };
        let data = &dfg.insts[inst];
        let of = |at: usize| self.zeros_as_computed(data.args[at], depth);
        match data.op {
            ThreadOp::Iadd | ThreadOp::Isub | ThreadOp::Smin | ThreadOp::Smax => of(0).min(of(1)),
            ThreadOp::And => of(0).max(of(1)),
            ThreadOp::Imul => of(0) + of(1),
            ThreadOp::Shl => match self.known(data.args[1]) {
                Some(by @ 0..64) => of(0) + by as u32,
                _ => 0,
            },
            ThreadOp::Sext => of(0),
            _ => 0,
        }
    }

    /// Expands a loop with the given forms; gives false, with weaker forms, if they did not hold.
    fn try_for(
        &mut self,
        region: Block,
        bounds: &[Value],
        types: &[TileType],
        inits: &[Expanded],
        forms: &mut [CarriedForm],
        results: &[Value],
    ) -> Result<bool> {
        let &[lo, hi, step] = bounds else {
            return bug("a loop without bounds");
        };
        let counter = self.ty(lo);
        let (body, params) = self.block_for(&[counter], forms, types);
        // What nothing uses behind the loop stays in it.
        let leaves: Vec<usize> = (0..results.len())
            .filter(|&i| self.used.contains(results[i]))
            .collect();
        let exit_forms: Vec<CarriedForm> = leaves.iter().map(|&i| forms[i].clone()).collect();
        let exit_types: Vec<TileType> = leaves.iter().map(|&i| types[i]).collect();
        let (exit, exit_params) = self.block_for(&[], &exit_forms, &exit_types);
        let entering = self.travelling_all(forms, inits)?;
        let first = [&[lo][..], &entering].concat();
        let passing = those_of(&leaves, forms, &entering);
        let constants = (self.known(lo), self.known(hi), self.known(step));
        let last = self.last_test(region, lo, hi, step)?;
        match constants {
            (Some(l), Some(h), _) if l < h => self.b.jump(body, &first),
            (Some(_), Some(_), _) => self.b.jump(exit, &passing),
            _ => {
                let enters = self.b.icmp(lo, hi, IntPred::Slt);
                self.b.brif(enters, (body, &first), (exit, &passing));
            }
        }
        self.enter(body);
        let zeros = self
            .bits
            .trailing_zeros(lo)
            .min(self.bits.trailing_zeros(step));
        let counted = params[0];
        self.bits
            .set(counted, u64::MAX.checked_shl(zeros).unwrap_or(0));
        if let (Some(least), Some(end), Some(1..)) = constants
            && least < end
        {
            let largest = end - 1;
            self.bits.set_range(counted, Range { least, largest });
        }
        let region_params = &self.tile.dfg.blocks[region].params;
        self.values[region_params[0]] = Some(Expanded::Uniform(counted));
        self.bind(forms, &params[1..], &region_params[1..]);
        self.block(region)?;

        let yielded = self.terminator_args(region, 0)?;
        if !self.held_up(forms, types, &yielded)? {
            return Ok(false);
        }
        let leaving = self.travelling_all(forms, &yielded)?;
        let next = self.binary(ThreadOp::Iadd, counted, step)?;
        let again = match last {
            LastTest::Below => self.b.icmp(next, hi, IntPred::Slt),
            LastTest::At(end) => self.b.icmp(next, end, IntPred::Ne),
            LastTest::Left => {
                let left = self.binary(ThreadOp::Isub, hi, counted)?;
                self.b.icmp(step, left, IntPred::Ult)
            }
        };
        let back = [&[next][..], &leaving].concat();
        let on = those_of(&leaves, forms, &leaving);
        self.b.brif(again, (body, &back), (exit, &on));
        self.enter(exit);
        let used: Vec<Value> = leaves.iter().map(|&i| results[i]).collect();
        self.bind(&exit_forms, &exit_params, &used);
        Ok(true)
    }

    pub(super) fn expand_while(&mut self, inst: Inst) -> Result<()> {
        let tile = self.tile;
        let data = &tile.dfg.insts[inst];
        let [before, after] = &data.blocks[..] else {
            return bug("a while loop without its two regions");
        };
        let regions = [before.block, after.block];
        let types: Vec<TileType> = data.args.iter().map(|&v| tile.dfg.ty(v)).collect();
        let inits: Vec<Expanded> = data
            .args
            .iter()
            .map(|&v| self.expanded(v))
            .collect::<Result<_>>()?;
        let mut forms = self.first_forms(inst, &types, &inits)?;
        self.attempt(inst, &mut forms, |this, forms| {
            this.try_while(regions, &types, &inits, forms, &data.results)
        })
    }

    /// Expands a while loop with the given forms; gives false, with weaker forms, if they did not hold. What the condition's
    /// region passes on is there before the blocks that take it, so its forms are no assumptions.
    fn try_while(
        &mut self,
        [before, after]: [Block; 2],
        types: &[TileType],
        inits: &[Expanded],
        forms: &mut [CarriedForm],
        results: &[Value],
    ) -> Result<bool> {
        let tile = self.tile;
        let (head, head_params) = self.block_for(&[], forms, types);
        let entering = self.travelling_all(forms, inits)?;
        self.b.jump(head, &entering);

        self.enter(head);
        self.bind(forms, &head_params, &tile.dfg.blocks[before].params);
        self.block(before)?;
        let cond = match self.terminator_args(before, 0)?.first() {
            Some(cond) => self.pack_of(cond, 1)?,
            None => return bug("a while loop without condition"),
        };
        let passed = self.terminator_args(before, 1)?;
        let passed_types: Vec<TileType> = results.iter().map(|&v| tile.dfg.ty(v)).collect();
        let passed_forms = self.forms_of(&passed_types, &passed)?;
        let (body, body_params) = self.block_for(&[], &passed_forms, &passed_types);
        let (exit, exit_params) = self.block_for(&[], &passed_forms, &passed_types);
        let passed = self.travelling_all(&passed_forms, &passed)?;
        self.b.brif(cond, (body, &passed), (exit, &passed));

        self.enter(body);
        self.bind(&passed_forms, &body_params, &tile.dfg.blocks[after].params);
        self.block(after)?;
        let yielded = self.terminator_args(after, 0)?;
        if !self.held_up(forms, types, &yielded)? {
            return Ok(false);
        }
        let back = self.travelling_all(forms, &yielded)?;
        self.b.jump(head, &back);

        self.enter(exit);
        self.bind(&passed_forms, &exit_params, results);
        Ok(true)
    }

    pub(super) fn expand_if(&mut self, inst: Inst) -> Result<()> {
        let tile = self.tile;
        let data = &tile.dfg.insts[inst];
        let [then, otherwise] = &data.blocks[..] else {
            return bug("an if without its two regions");
        };
        let cond = self.arg(inst, 0)?;
        let cond = self.pack_of(&cond, 1)?;
        let types: Vec<TileType> = data.results.iter().map(|&v| tile.dfg.ty(v)).collect();
        let (first, _) = self.b.new_block(&[]);
        let (second, _) = self.b.new_block(&[]);
        self.b.brif(cond, (first, &[]), (second, &[]));
        // Both ways first: what the block behind them takes depends on what they have in common.
        let mut ends = Vec::new();
        for (block, region) in [(first, then.block), (second, otherwise.block)] {
            self.enter(block);
            self.block(region)?;
            ends.push((self.b.block(), self.terminator_args(region, 0)?));
        }
        let mut forms = self.forms_of(&types, &ends[0].1)?;
        self.held_up(&mut forms, &types, &ends[1].1)?;
        let (exit, params) = self.block_for(&[], &forms, &types);
        for (end, yielded) in ends {
            self.b.switch_to(end);
            let leaving = self.travelling_all(&forms, &yielded)?;
            self.b.jump(exit, &leaving);
        }
        self.enter(exit);
        self.bind(&forms, &params, &data.results);
        Ok(())
    }

    /// What the forms of values are if all that they show holds.
    fn forms_of(&self, types: &[TileType], values: &[Expanded]) -> Result<Vec<CarriedForm>> {
        let both = types.iter().zip(values);
        both.map(|(&ty, value)| self.first_form(ty, value))
            .collect()
    }

    /// The forms that a loop is tried with first.
    fn first_forms(
        &self,
        inst: Inst,
        types: &[TileType],
        inits: &[Expanded],
    ) -> Result<Vec<CarriedForm>> {
        let mut forms = self.forms_of(types, inits)?;
        // Without this, each of k nested loops would double the attempts.
        if let Some(known) = self.weakened.get(&inst) {
            for (form, known) in forms.iter_mut().zip(known) {
                form.limit(known);
            }
        }
        Ok(forms)
    }

    /// Expands a loop again and again, with weaker forms each time, until they hold.
    fn attempt(
        &mut self,
        inst: Inst,
        forms: &mut [CarriedForm],
        mut expand: impl FnMut(&mut Self, &mut [CarriedForm]) -> Result<bool>,
    ) -> Result<()> {
        let (mark, loc) = (self.mark(), self.tile.dfg.insts[inst].loc);
        while !expand(self, forms)? {
            self.take_back(&mark);
            self.b.set_loc(loc);
            self.weakened.insert(inst, forms.to_vec());
        }
        Ok(())
    }

    /// Weakens forms by further values; gives whether all held.
    fn held_up(
        &mut self,
        forms: &mut [CarriedForm],
        types: &[TileType],
        values: &[Expanded],
    ) -> Result<bool> {
        let mut held = true;
        for ((form, &ty), value) in forms.iter_mut().zip(types).zip(values) {
            held &= !self.weaken(form, ty, value)?;
        }
        Ok(held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expand::regs::PartsBuilder;

    #[test]
    fn assumptions_that_failed_are_not_made_again() {
        // Two registers of one base and one of another.
        let parts = |bases: [u32; 2]| {
            let mut parts = PartsBuilder::default();
            let [a, b] = bases.map(Value::from_u32);
            for (base, offset) in [(a, 0), (b, 0), (a, 32)] {
                parts.push(base, offset);
            }
            parts.finish()
        };
        let form = |bases, zeros: [u32; 2]| CarriedForm::Parts {
            parts: parts(bases),
            zeros: SmallVec::from_slice(&zeros),
        };
        let mut first = form([7, 8], [4, 2]);
        first.limit(&form([5, 6], [0, 3]));
        let CarriedForm::Parts { zeros, .. } = &first else {
            panic!("a form of the same structure is kept");
        };
        assert_eq!(zeros[..], [0, 2]);

        let mut first = CarriedForm::Uniform { zeros: 4 };
        first.limit(&CarriedForm::Uniform { zeros: 1 });
        assert!(
            matches!(first, CarriedForm::Uniform { zeros: 1 }),
            "{first:?}"
        );
        first.limit(&CarriedForm::Pack { count: 2, zeros: 3 });
        assert!(
            matches!(first, CarriedForm::Pack { count: 2, zeros: 0 }),
            "{first:?}"
        );
        let mut first = CarriedForm::Pack { count: 2, zeros: 3 };
        for (known, least) in [(7, 3), (2, 2)] {
            first.limit(&CarriedForm::Pack {
                count: 2,
                zeros: known,
            });
            assert!(
                matches!(first, CarriedForm::Pack { count: 2, zeros } if zeros == least),
                "{first:?}"
            );
        }
    }
}
