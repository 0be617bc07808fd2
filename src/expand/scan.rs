//! Expansion of scans: digit by digit of the index along the axis, as [`crate::linear_layout::digits`] reads it from the layout
//! and the attribute `tree` of the op states it.
//!
//! - **Registers**: each thread combines its run, one register after the other.
//! - **Lanes**: by doubling, with shuffles by index and selection: each lane takes in what stands 1, 2, 4, .. places
//!   before it.
//! - **Warps**: the last lane of each warp writes its total to shared memory; after one barrier every thread reads the
//!   totals of all warps and combines those before its own, so that one trip serves the digits above, too.
//!
//! A digit scans the totals of the one below. On the way back each digit hands down, to every block of the digit below,
//! the combination of all blocks before it (`Prefix`); the first block has none, which is known for some registers
//! when compiling and for the rest by a truth value of the thread. A prefix is combined with what follows, and the
//! combination selected where there is one: of a single op and the selection the assembler makes one predicated
//! instruction, which is why no neutral element is looked for. The last element of each run that a thread combines needs no
//! prefix: the scan of the digit above is its result.

use crate::ir::attrs::{Attrs, IntPred, SpecialReg, make};
use crate::ir::dfg::InstData;
use crate::ir::entities::{Block, Inst, Slot, Value};
use crate::ir::function::SlotData;
use crate::ir::ops::ThreadOp;
use crate::ir::types::{Elem, ThreadType};
use crate::linear_layout::digits::Digit;
use crate::linear_layout::layout::{HwDim, LinearLayout};

use super::memory::slot_attrs;
use super::regs::Expanded;
use super::{Expander, Result, bug};

/// What is known of a scan.
struct Scan<'a> {
    region: Block,
    layout: &'a LinearLayout,
    digits: Vec<Digit>,
    reverse: bool,
}

/// A block scanned along one digit.
enum Local {
    /// One list of packs for each place of the digit, over the registers left.
    Registers(Vec<Vec<Value>>),
    /// The scanned packs, and the thread's place.
    Lanes(Vec<Value>, Value),
    /// What comes before the thread's warp, garbage in the first one; the thread's place.
    Warps(Vec<Value>, Value),
}

/// Whether an element has something before it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Valid {
    Never,
    Always,
    /// Where the thread's truth value holds.
    When(Value),
}

/// The combination of all that comes before, for each register; where there is nothing, any value.
struct Prefix {
    values: Vec<Value>,
    valid: Vec<Valid>,
}

/// What the digits above make of totals.
struct Above {
    /// What comes before each.
    before: Prefix,
    /// Each with what comes before it, if asked for.
    inclusive: Vec<Value>,
}

impl Expander<'_> {
    pub(super) fn expand_scan(&mut self, inst: Inst) -> Result<()> {
        let tile = self.tile;
        let data = &tile.dfg.insts[inst];
        let Some(region) = data.blocks.first().map(|call| call.block) else {
            return bug("a scan without region");
        };
        let axis = usize::from(data.axis().copied().unwrap_or(0));
        let layout = self.layout(self.arg_type(inst, 0)?)?;
        let Some(digits) = layout.digits(axis) else {
            return bug("a scan in a layout without digits");
        };
        let scan = Scan {
            region,
            layout,
            digits,
            reverse: data.reverse().is_some(),
        };
        let free = layout.free_mask(HwDim::Register);
        let registers = 0..layout.num_registers();
        let held: Vec<u32> = registers.filter(|r| r & free == 0).collect();
        let map: Vec<u16> = held.iter().map(|&r| r as u16).collect();
        let mut values = Vec::new();
        for i in 0..data.args.len() {
            let arg = self.arg(inst, i)?;
            let picked = self.pick(&arg, &map)?;
            values.push(self.pack_of(&picked, map.len())?);
        }
        let results = self.scan_inclusive(&scan, &held, values)?;
        let mut places = rustc_hash::FxHashMap::default();
        for (place, &register) in held.iter().enumerate() {
            places.insert(layout.apply(register, 0, 0, 0), place as u16);
        }
        let registers = 0..layout.num_registers();
        let map: Option<Vec<u16>> = registers
            .map(|r| places.get(&layout.apply(r, 0, 0, 0)).copied())
            .collect();
        let Some(map) = map else {
            return bug("a scan's registers do not cover its block");
        };
        for (&result, &value) in data.results.iter().zip(&results) {
            self.values[result] = Some(self.pick(&Expanded::Pack(value), &map)?);
        }
        Ok(())
    }

    /// The scan of the whole block.
    fn scan_inclusive(
        &mut self,
        scan: &Scan<'_>,
        held: &[u32],
        values: Vec<Value>,
    ) -> Result<Vec<Value>> {
        if scan.digits.is_empty() {
            return Ok(values);
        }
        let (local, groups, totals) = self.scan_digit(scan, 0, held, &values)?;
        let by_doubling = matches!(local, Local::Lanes(..));
        let above = self.scan_above(scan, 1, &groups, &totals, !by_doubling)?;
        let after = |this: &mut Self, x: Vec<Value>| match &above {
            Some(above) => this.take_in(scan, &above.before, &x),
            None => Ok(x),
        };
        match local {
            Local::Registers(places) => {
                let mut done = Vec::new();
                let last = places.len() - 1;
                for (i, x) in places.into_iter().enumerate() {
                    done.push(match &above {
                        Some(above) if i == last => above.inclusive.clone(),
                        _ => after(self, x)?,
                    });
                }
                self.interleave(scan, 0, held, &groups, &done)
            }
            Local::Lanes(scanned, _) => after(self, scanned),
            Local::Warps(before, place) => {
                let is_later = self.at_least(place, 1)?;
                let valid = vec![Valid::When(is_later); held.len()];
                let prefix = Prefix {
                    values: before,
                    valid,
                };
                let scanned = self.take_in(scan, &prefix, &values)?;
                let mut whole = after(self, scanned)?;
                if let Some(above) = &above {
                    let last = (1 << scan.digits[0].bits.len()) - 1;
                    let is_last = self.at_least(place, last)?;
                    for (x, &inclusive) in whole.iter_mut().zip(&above.inclusive) {
                        *x = self.select_all(is_last, inclusive, *x)?;
                    }
                }
                Ok(whole)
            }
        }
    }

    /// For each element of `totals`, over the registers `held`, the combination of all before it.
    fn scan_above(
        &mut self,
        scan: &Scan<'_>,
        level: usize,
        held: &[u32],
        totals: &[Value],
        wants_inclusive: bool,
    ) -> Result<Option<Above>> {
        if level == scan.digits.len() {
            return Ok(None);
        }
        let (local, groups, above) = self.scan_digit(scan, level, held, totals)?;
        let above = self.scan_above(scan, level + 1, &groups, &above, false)?;
        let above = above.map(|above| above.before);
        let mut inclusive = Vec::new();
        // What comes before within the digit; and, if it is there already, together with what the digits above hand down.
        let mut whole = None;
        let (before, place) = match local {
            Local::Registers(places) => {
                if wants_inclusive {
                    let mut lists = places.clone();
                    if let Some(above) = &above {
                        for x in &mut lists {
                            *x = self.take_in(scan, above, x)?;
                        }
                    }
                    inclusive = self.interleave(scan, level, held, &groups, &lists)?;
                }
                // Any values would do; the second place has these as well, so nothing is computed.
                let never = Prefix {
                    values: places[0].clone(),
                    valid: vec![Valid::Never; groups.len()],
                };
                let above = above.unwrap_or(never);
                let mut lists = vec![above.values.clone()];
                for x in &places[..places.len() - 1] {
                    lists.push(self.take_in(scan, &above, x)?);
                }
                let values = self.interleave(scan, level, held, &groups, &lists)?;
                let (mask, _) = register_mask(scan, level);
                let first = self.first_place(scan, level);
                let valid = held.iter().map(|&r| {
                    let group = groups.iter().position(|&g| g == r & !mask);
                    if r & mask == first {
                        group.map_or(Valid::Never, |g| above.valid[g])
                    } else {
                        Valid::Always
                    }
                });
                let valid = valid.collect();
                let before = Prefix { values, valid };
                return Ok(Some(Above { before, inclusive }));
            }
            Local::Lanes(scanned, place) => {
                let by = 1 << scan.digits[level].bits[0];
                match &above {
                    Some(above) if wants_inclusive => {
                        inclusive = self.take_in(scan, above, &scanned)?;
                        whole = Some(self.lanes_before(scan, &inclusive, by)?);
                        (Vec::new(), place)
                    }
                    _ => {
                        inclusive = scanned;
                        (self.lanes_before(scan, &inclusive, by)?, place)
                    }
                }
            }
            Local::Warps(before, place) => {
                if wants_inclusive {
                    let is_later = self.at_least(place, 1)?;
                    let prefix = Prefix {
                        values: before.clone(),
                        valid: vec![Valid::When(is_later); held.len()],
                    };
                    inclusive = self.take_in(scan, &prefix, totals)?;
                    if let Some(above) = &above {
                        inclusive = self.take_in(scan, above, &inclusive)?;
                    }
                }
                (before, place)
            }
        };
        let is_later = self.at_least(place, 1)?;
        let Some(above) = above else {
            let before = Prefix {
                values: before,
                valid: vec![Valid::When(is_later); held.len()],
            };
            return Ok(Some(Above { before, inclusive }));
        };
        let whole = match whole {
            Some(whole) => whole,
            None => self.take_in(scan, &above, &before)?,
        };
        let mut values = Vec::new();
        for (&later, &first) in whole.iter().zip(&above.values) {
            values.push(self.select_all(is_later, later, first)?);
        }
        let mut valid = Vec::new();
        for &v in &above.valid {
            valid.push(match v {
                Valid::Never => Valid::When(is_later),
                Valid::Always => Valid::Always,
                Valid::When(cond) => Valid::When(self.binary(ThreadOp::Or, is_later, cond)?),
            });
        }
        let before = Prefix { values, valid };
        Ok(Some(Above { before, inclusive }))
    }

    /// Scans one digit; gives the registers that tell apart what is left, and its totals.
    fn scan_digit(
        &mut self,
        scan: &Scan<'_>,
        level: usize,
        held: &[u32],
        values: &[Value],
    ) -> Result<(Local, Vec<u32>, Vec<Value>)> {
        let digit = &scan.digits[level];
        match digit.dim {
            HwDim::Register => {
                let (mask, places) = register_mask(scan, level);
                let groups: Vec<u32> = held.iter().copied().filter(|r| r & mask == 0).collect();
                let mut scanned: Vec<Vec<Value>> = Vec::new();
                for place in places {
                    let from: Option<Vec<u32>> = groups
                        .iter()
                        .map(|g| held.iter().position(|&r| r == g | place).map(|p| p as u32))
                        .collect();
                    let Some(from) = from else {
                        return bug("registers of a scan do not line up");
                    };
                    let mut next = Vec::new();
                    for &value in values {
                        next.push(self.rearrange(&[value], &from)?);
                    }
                    if let Some(last) = scanned.last() {
                        next = self.combine_region(scan.region, last, &next, None)?;
                    }
                    scanned.push(next);
                }
                let totals = scanned.last().cloned().unwrap_or_default();
                Ok((Local::Registers(scanned), groups, totals))
            }
            HwDim::Lane => {
                let place = self.place_of(scan, level)?;
                let mut scanned = values.to_vec();
                for step in 0..digit.bits.len() {
                    let by = 1u32 << (usize::from(digit.bits[0]) + step);
                    let before = self.lanes_before(scan, &scanned, by)?;
                    let combined = self.combine_region(scan.region, &before, &scanned, None)?;
                    let reaches = self.at_least(place, 1 << step)?;
                    for (x, &combined) in scanned.iter_mut().zip(&combined) {
                        *x = self.select_all(reaches, combined, *x)?;
                    }
                }
                let next = scan.digits.get(level + 1).map(|d| d.dim);
                // Warps take the totals from the last lane; other digits want them in all lanes.
                let totals = match next {
                    None | Some(HwDim::Warp) => scanned.clone(),
                    Some(_) => self.last_lane(scan, level, &scanned)?,
                };
                Ok((Local::Lanes(scanned, place), held.to_vec(), totals))
            }
            _ => {
                let place = self.place_of(scan, level)?;
                let mut all = self.totals_of_warps(scan, level, values)?;
                if level + 1 == scan.digits.len() {
                    // Nothing comes after the last warp.
                    all.pop();
                }
                let mut scanned: Vec<Vec<Value>> = Vec::new();
                for next in all {
                    scanned.push(match scanned.last() {
                        Some(last) => self.combine_region(scan.region, last, &next, None)?,
                        None => next,
                    });
                }
                let mut before = scanned[0].clone();
                let warps = 1usize << digit.bits.len();
                for at in 2..warps {
                    let reaches = self.at_least(place, at as i64)?;
                    for (x, &later) in before.iter_mut().zip(&scanned[at - 1]) {
                        *x = self.select_all(reaches, later, *x)?;
                    }
                }
                let totals = scanned.pop().unwrap_or_default();
                Ok((Local::Warps(before, place), held.to_vec(), totals))
            }
        }
    }

    /// Combines prefixes with what follows them.
    fn take_in(&mut self, scan: &Scan<'_>, prefix: &Prefix, x: &[Value]) -> Result<Vec<Value>> {
        if prefix.valid.iter().all(|&v| v == Valid::Never) {
            return Ok(x.to_vec());
        }
        let combined = self.combine_region(scan.region, &prefix.values, x, None)?;
        if prefix.valid.iter().all(|&v| v == Valid::Always) {
            return Ok(combined);
        }
        let mut results = Vec::new();
        for (&with, &without) in combined.iter().zip(x) {
            results.push(self.choose(&prefix.valid, with, without)?);
        }
        Ok(results)
    }

    /// Element by element, `a` where it is valid, else `b`.
    fn choose(&mut self, valid: &[Valid], a: Value, b: Value) -> Result<Value> {
        let count = valid.len() as u32;
        let mut conds = Vec::new();
        let mut asked = Vec::new();
        for (i, &v) in valid.iter().enumerate() {
            if let Valid::When(cond) = v {
                conds.push(cond);
                asked.push(i as u32);
            }
        }
        let mut sources = vec![a, b];
        if !conds.is_empty() {
            let map: Vec<u32> = (0..conds.len() as u32).collect();
            let cond = self.rearrange(&conds, &map)?;
            let a = self.rearrange(&[a], &asked)?;
            let b = self.rearrange(&[b], &asked)?;
            sources.push(self.op(InstData::new(ThreadOp::Select, &[cond, a, b]), &[])?);
        }
        let mut next = 2 * count;
        let map: Vec<u32> = (0..count)
            .map(|i| match valid[i as usize] {
                Valid::Always => i,
                Valid::Never => count + i,
                Valid::When(_) => {
                    next += 1;
                    next - 1
                }
            })
            .collect();
        self.rearrange(&sources, &map)
    }

    /// Lists by place of a register digit, over the groups, as packs over the registers held.
    fn interleave(
        &mut self,
        scan: &Scan<'_>,
        level: usize,
        held: &[u32],
        groups: &[u32],
        lists: &[Vec<Value>],
    ) -> Result<Vec<Value>> {
        let (mask, places) = register_mask(scan, level);
        let from: Option<Vec<u32>> = held
            .iter()
            .map(|r| {
                let place = places.iter().position(|p| *p == r & mask)?;
                let group = groups.iter().position(|g| *g == r & !mask)?;
                Some((place * groups.len() + group) as u32)
            })
            .collect();
        let Some(from) = from else {
            return bug("registers of a scan do not line up");
        };
        let operands = lists.first().map_or(0, Vec::len);
        (0..operands)
            .map(|i| {
                let sources: Vec<Value> = lists.iter().map(|list| list[i]).collect();
                self.rearrange(&sources, &from)
            })
            .collect()
    }

    /// The register bits of the first place of a register digit.
    fn first_place(&self, scan: &Scan<'_>, level: usize) -> u32 {
        register_mask(scan, level).1[0]
    }

    /// The thread's place in a digit of lanes or warps, counted in the direction of the scan.
    fn place_of(&mut self, scan: &Scan<'_>, level: usize) -> Result<Value> {
        let digit = &scan.digits[level];
        let mut columns = vec![0u32; Self::thread_columns(scan.layout).len()];
        for (i, bit) in thread_bits(scan, level).enumerate() {
            columns[bit] = 1 << i;
        }
        let place = self.thread_part(&columns)?;
        if !scan.reverse {
            return Ok(place);
        }
        let last = self.int(Elem::I32, (1 << digit.bits.len()) - 1);
        self.binary(ThreadOp::Xor, place, last)
    }

    fn at_least(&mut self, place: Value, bound: i64) -> Result<Value> {
        let bound = self.int(Elem::I32, bound);
        let mut data = InstData::new(ThreadOp::Icmp, &[place, bound]);
        data.attrs.push(make::ipred(IntPred::Uge));
        self.op(data, &[])
    }

    /// The values of the lane `distance` before the own one in the direction of the scan; any where there is none.
    fn lanes_before(
        &mut self,
        scan: &Scan<'_>,
        values: &[Value],
        distance: u32,
    ) -> Result<Vec<Value>> {
        let op = if scan.reverse {
            ThreadOp::ShflDown
        } else {
            ThreadOp::ShflUp
        };
        let mut moved = Vec::new();
        for &value in values {
            let ty = self.ty(value);
            let carried = self.carrier_of(value)?;
            let mut data = InstData::new(op, &[carried]);
            data.attrs.push(make::delta(distance));
            let got = self.op(data, &[])?;
            moved.push(self.carried_as(got, ty)?);
        }
        Ok(moved)
    }

    /// The values of the last lane of a digit, in all its lanes.
    fn last_lane(&mut self, scan: &Scan<'_>, level: usize, values: &[Value]) -> Result<Vec<Value>> {
        let mask = thread_bits(scan, level).fold(0i64, |m, bit| m | 1 << bit);
        let tid = self.special(SpecialReg::Tid);
        let lane = if scan.reverse {
            let others = self.int(Elem::I32, 31 & !mask);
            self.binary(ThreadOp::And, tid, others)?
        } else {
            let mask = self.int(Elem::I32, mask);
            self.binary(ThreadOp::Or, tid, mask)?
        };
        let mut results = Vec::new();
        for &value in values {
            let ty = self.ty(value);
            let carried = self.carrier_of(value)?;
            let got = self.op(InstData::new(ThreadOp::ShflIdx, &[carried, lane]), &[])?;
            results.push(self.carried_as(got, ty)?);
        }
        Ok(results)
    }

    /// The totals of every warp of a digit in the direction of the scan, read by every thread.
    fn totals_of_warps(
        &mut self,
        scan: &Scan<'_>,
        level: usize,
        values: &[Value],
    ) -> Result<Vec<Vec<Value>>> {
        let layout = scan.layout;
        let columns = Self::thread_columns(layout).len();
        let lanes = layout.bits(HwDim::Lane);
        let free = layout.free_mask(HwDim::Lane) | layout.free_mask(HwDim::Warp) << lanes;
        let below = (0..level).flat_map(|l| thread_bits(scan, l));
        let below = below.fold(0u32, |m, bit| m | 1 << bit);
        // Index of a total: the digit, then what tells apart other sequences, then the register.
        let (mut writer, mut reader) = (vec![0u32; columns], vec![0u32; columns]);
        let mut next = 0;
        for bit in thread_bits(scan, level) {
            writer[bit] = 1 << next;
            next += 1;
        }
        let warps = 1u32 << next;
        for bit in 0..columns {
            if (free | below) >> bit & 1 == 0 && writer[bit] == 0 {
                writer[bit] = 1 << next;
                reader[bit] = 1 << next;
                next += 1;
            }
        }
        let last = if scan.reverse { 0 } else { below };
        let writes = self.thread_is(free | below, last)?;
        let (write_at, read_at) = (self.thread_part(&writer)?, self.thread_part(&reader)?);

        let mut stored: Vec<(Slot, Value, ThreadType)> = Vec::new();
        for &value in values {
            let carried = self.carrier_of(value)?;
            let ty = self.ty(carried);
            let size = ty.elem.bytes();
            let slot = self.b.func_mut().slots.push(SlotData {
                bytes: (u32::from(ty.count) << next) * size,
                align: 16,
                offset: None,
                by_group: false,
            });
            let address = self.slot_address(slot, ty.elem)?;
            let place = self.moved_pointer(address, write_at)?;
            for reg in 0..u32::from(ty.count) {
                let single = self.rearrange(&[carried], &[reg])?;
                let mut data = InstData::new(ThreadOp::St, &[place, single]);
                data.args.extend(writes);
                data.attrs.extend(slot_attrs(slot, (reg << next) * size));
                self.effect(data)?;
            }
            stored.push((slot, address, ty));
        }
        let mut totals = vec![Vec::new(); warps as usize];
        for (&value, (slot, address, ty)) in values.iter().zip(stored) {
            let place = self.moved_pointer(address, read_at)?;
            let size = ty.elem.bytes();
            let width = warps.min(16 / size);
            let mut loaded = Vec::new();
            for reg in 0..u32::from(ty.count) {
                for chunk in 0..warps / width {
                    let mut data = InstData::new(ThreadOp::Ld, &[place]);
                    let offset = ((reg << next) + chunk * width) * size;
                    data.attrs.extend(slot_attrs(slot, offset));
                    loaded.push(self.op(data, &[ThreadType::pack(ty.elem, width as u16)])?);
                }
            }
            let elem = self.ty(value).elem;
            for (warp, list) in totals.iter_mut().enumerate() {
                let map: Vec<u32> = (0..u32::from(ty.count))
                    .map(|reg| reg * warps + warp as u32)
                    .collect();
                let of_warp = self.rearrange(&loaded, &map)?;
                list.push(self.carried_as(of_warp, ThreadType::pack(elem, ty.count))?);
            }
        }
        if scan.reverse {
            totals.reverse();
        }
        Ok(totals)
    }

    /// Whether the bits `mask` of the thread index are `bits`; none if there are no such bits.
    fn thread_is(&mut self, mask: u32, bits: u32) -> Result<Option<Value>> {
        if bits == 0 || mask == 0 {
            return self.leader(mask);
        }
        let tid = self.special(SpecialReg::Tid);
        let mask = self.int(Elem::I32, i64::from(mask));
        let kept = self.binary(ThreadOp::And, tid, mask)?;
        let bits = self.int(Elem::I32, i64::from(bits));
        let mut data = InstData::new(ThreadOp::Icmp, &[kept, bits]);
        data.attrs.push(make::ipred(IntPred::Eq));
        self.op(data, &[]).map(Some)
    }
}

/// The register bits of a digit, and what they are at each place, in the direction of the scan.
fn register_mask(scan: &Scan<'_>, level: usize) -> (u32, Vec<u32>) {
    let bits = &scan.digits[level].bits;
    let mask = bits.iter().fold(0, |m, bit| m | 1 << bit);
    let spread = |place: u32| {
        let set = bits
            .iter()
            .enumerate()
            .filter(|&(i, _)| place >> i & 1 == 1);
        set.fold(0, |m, (_, bit)| m | 1 << bit)
    };
    let mut places: Vec<u32> = (0..1 << bits.len()).map(spread).collect();
    if scan.reverse {
        places.reverse();
    }
    (mask, places)
}

/// The bits of the thread index that make a digit; none for one of registers.
fn thread_bits(scan: &Scan<'_>, level: usize) -> impl Iterator<Item = usize> {
    let digit = &scan.digits[level];
    let first = match digit.dim {
        HwDim::Lane => Some(0),
        HwDim::Warp => Some(scan.layout.bits(HwDim::Lane) as usize),
        _ => None,
    };
    let bits = digit.bits.clone();
    bits.into_iter()
        .filter_map(move |bit| Some(first? + usize::from(bit)))
}
