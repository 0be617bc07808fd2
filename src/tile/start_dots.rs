//! Products by warpgroups: operands where the unit reads them, and products that go on while others are started.
//!
//! ```text
//! x = shared_load i                    x = shared_view i
//! acc2 = dot a, x, acc          =>     s, t = dot_start a', x, acc
//! ..                                   ..
//! y = fmul acc2, ..                    acc2 = dot_sum s, t; y = fmul acc2, ..
//! ```
//!
//! The right operand is read from shared memory, and so is the left one if it stands there; else it stays in registers. What a
//! pipeline brought is read in its ring, everything else is stored first. A product that finds no room, or whose ring no form of
//! the unit fits ([`crate::layout::warpgroup`]), stays a `dot`.
//!
//! The sum is waited for where it is needed first, or where what the product reads is written again. **Over the back edge of a
//! loop** a product goes on if nothing but the next one adds to its sum, and if the rings it reads are filled behind the start of
//! the next one, as pipelines do ([`super::pipeline_loops`]). The wait for the product of the iteration before then stands behind
//! the start of this one's, so that the unit always has work.
//!
//! ```text
//! for .. carrying p = acc {            for .. carrying p, t0 = dot_done acc {
//!     acc2 = dot a, x, p        =>         s, t = dot_start a, x, p; dot_wait t0
//!     yield acc2                           yield s, t
//! }                                    }; acc2 = dot_sum s', t'
//! ```
//!
//! ptxas serialises products of which a sum is touched in flight, or one that is in flight over a back edge is touched before a
//! wait for all groups of earlier iterations (C7514); both are excluded here.

mod ahead;
mod carry;

use cranelift_entity::EntitySet;
use rustc_hash::{FxHashMap, FxHashSet};

use super::share_operands::{chain, first_entry, place_for, registers_needed, store};
use crate::analysis::axis::Axis;
use crate::analysis::neighbours::neighbours_in_ring;
use crate::analysis::program::ProgramOrder;
use crate::ir::attrs::{Attrs, make};
use crate::ir::dfg::{InstData, ValueList};
use crate::ir::effects::{AccessSpace, How, OpClass};
use crate::ir::entities::{Block, Inst, Slot, Value};
use crate::ir::function::TileFunction;
use crate::ir::level::Tile;
use crate::ir::ops::TileOp;
use crate::ir::types::{Elem, Place, TileType};
use crate::layout::convert::stays_in_warps;
use crate::layout::warpgroup;
use crate::layout::warpgroup::Reader;
use crate::settings::{Target, Usage};

/// Whether a product is one for a warpgroup.
pub fn is_for_warpgroup(func: &TileFunction, inst: Inst, target: Target) -> bool {
    let is_dot = func.dfg.insts[inst].op == TileOp::Dot;
    is_dot && warpgroup::unit_of(func, inst, target).is_some()
}

/// Whether any product was given to a warpgroup.
pub fn has_started_dots(func: &TileFunction) -> bool {
    let mut insts = func.dfg.insts.values();
    insts.any(|data| data.op == TileOp::DotStart)
}

/// Registers that an instruction of a warpgroup takes beside its sums, and a left operand in registers.
const BESIDE_SUMS: u32 = 30;

/// Registers without which no assembler makes code of the products that were started: a unit has all sums of an instruction in registers,
/// and they cannot be spilled meanwhile.
pub fn least_registers(func: &TileFunction) -> u32 {
    let starts = func.insts_with(TileOp::DotStart);
    let sums = starts.filter_map(|(_, inst)| {
        let sums = func.dfg.ty(func.dfg.insts[inst].results[0]);
        let layout = warpgroup::accumulator(sums.shape, func.num_warps())?;
        let columns = warpgroup::columns_at_once(&layout)?;
        // 64 rows of 128 threads.
        Some((columns / 2 * sums.elem.bytes()).div_ceil(4))
    });
    sums.max().map_or(0, |sums| sums + BESIDE_SUMS)
}

/// Gives products to warpgroups; gives how many.
pub fn start_dots(func: &mut TileFunction, target: Target) -> usize {
    let dots: Vec<(Block, Inst)> = func
        .all_insts()
        .filter(|&(_, inst)| is_for_warpgroup(func, inst, target))
        .collect();
    if dots.is_empty() {
        return 0;
    }
    let rings = func.slots.keys().filter_map(|slot| func.buffers[slot]);
    let taken: u32 = rings.map(|ring| ring.stages * ring.stage_bytes()).sum();
    let mut starter = Starter {
        axis: Axis::compute(func),
        order: ProgramOrder::compute(func),
        readers: FxHashMap::default(),
        stored: FxHashMap::default(),
        room: target.shared_limit().saturating_sub(taken),
        with_room: with_room(func, &dots),
        ahead: EntitySet::new(),
        target,
        func,
    };
    let mut started = Vec::new();
    for (block, inst) in dots {
        started.extend(starter.start(block, inst));
    }
    let count = started.len();
    carry::settle(func, &started);
    count
}

/// Where a value is made, if that is outside of a block: a loop would hold it in registers all the time, and can store it once.
fn made_outside(func: &TileFunction, block: Block, value: Value) -> Option<Inst> {
    let def = func.dfg.def_inst(value)?;
    let home = func.order.block_of(def)?;
    (home != block).then_some(def)
}

/// Left operands that are loaded in front of the blocks in which products read them, and have room in registers in all of these: the
/// unit has less to read then. (An H100, attention forward of 64 columns in blocks of 128 x 128: 2 to 12 % less time.)
fn with_room(func: &TileFunction, dots: &[(Block, Inst)]) -> EntitySet<Value> {
    let whole = func.partitions.values().next();
    let own = whole.and_then(|whole| whole.max_registers).map(u32::from);
    let most = own.unwrap_or_else(|| Target::most_registers(func.cta_threads()));
    let mut fits: FxHashMap<Value, bool> = FxHashMap::default();
    for &(block, inst) in dots {
        let left = func.dfg.insts[inst].args[0];
        let is_outside = made_outside(func, block, left).is_some();
        *fits.entry(left).or_insert(true) &= is_outside && registers_needed(func, block) <= most;
    }
    let mut found = EntitySet::new();
    found.extend(
        fits.into_iter()
            .filter(|(_, fits)| *fits)
            .map(|(value, _)| value),
    );
    found
}

/// A product that was started.
#[derive(Clone, Debug)]
struct Started {
    block: Block,
    inst: Inst,
    /// The `dot_sum` that gives its sum.
    sum: Inst,
    /// Rings it reads.
    reads: Vec<Slot>,
    /// Whether the left operand is in registers.
    reads_registers: bool,
}

/// The walk over products.
struct Starter<'a> {
    func: &'a mut TileFunction,
    axis: Axis,
    /// Who owns which region; products own none, so this stays true.
    order: ProgramOrder,
    /// How units read each ring.
    readers: FxHashMap<Slot, Vec<Reader>>,
    /// Where a value was stored to be read: where it is made, or in front of a product of a block.
    stored: FxHashMap<Value, (Slot, Option<Block>)>,
    /// Bytes of shared memory that are left.
    room: u32,
    /// Left operands that have room in registers.
    with_room: EntitySet<Value>,
    /// Operands that are computed while the product before is under way.
    ahead: EntitySet<Value>,
    target: Target,
}

/// An operand as the unit reads it.
struct Taken {
    value: Value,
    /// The ring that it stands in.
    reads: Option<Slot>,
    /// What must stand in front of the product.
    made: Vec<Inst>,
}

/// How an operand comes to the unit.
enum Way {
    /// It stands in shared memory: the changes of shape through which it comes from a load of a ring, the load last.
    Ring(Vec<Inst>),
    /// It is stored first, or was in a ring.
    Stored(Option<Slot>),
    /// It stays in registers.
    Registers,
}

impl Starter<'_> {
    fn start(&mut self, block: Block, inst: Inst) -> Option<Started> {
        let data = self.func.dfg.insts[inst].clone();
        let sums = self.func.dfg.ty(data.results[0]);
        let [rows, columns] = warpgroup::readers(sums.shape, self.func.num_warps())?;
        // The right operand is settled first, as the left one can always stay in registers: both may want one ring in forms that
        // do not agree, or the room that is left.
        let way = self.way(block, data.args[1], columns)?;
        if matches!(way, Way::Stored(None))
            && self.is_roomy(block, data.args[1])
            && ahead::move_up(self.func, block, inst, data.args[1])
        {
            self.ahead.insert(data.args[1]);
        }
        let right = self.take(block, data.args[1], &way, columns)?;
        let way = self
            .way(block, data.args[0], rows)
            .filter(|way| match way {
                Way::Ring(_) => !self.with_room.contains(data.args[0]),
                _ => {
                    made_outside(self.func, block, data.args[0]).is_some()
                        || self.is_summed_by_other_warps(data.args[0], inst)
                }
            })
            .unwrap_or(Way::Registers);
        let left = self.take(block, data.args[0], &way, rows)?;
        let reads_registers = matches!(way, Way::Registers);
        let (a, b) = (left.value, right.value);
        let reads = left.reads.into_iter().chain(right.reads).collect();
        let mut made = [left.made, right.made].concat();

        let mut start: InstData<Tile> = InstData::new(TileOp::DotStart, &[a, b, data.args[2]]);
        start.attrs = data.attrs.clone();
        start.loc = data.loc;
        let token = TileType::scalar(Elem::Token);
        let start = self.func.dfg.make_inst(start, &[sums, token]);
        let results = self.func.dfg.insts[start].results.clone();
        made.push(start);
        // The product itself becomes what gives its sum.
        let sum = &mut self.func.dfg.insts[inst];
        sum.op = TileOp::DotSum;
        sum.args = ValueList::from_slice(&results);
        sum.attrs.clear();
        self.func.order.insert_before(inst, &made);
        Some(Started {
            block,
            inst: start,
            sum: inst,
            reads,
            reads_registers,
        })
    }

    /// Whether a left operand is computed from sums that lie in other warps than those that multiply it (dS in the derivatives of
    /// attention, which is transposed): on its way to registers it would cross shared memory, where the unit can read it.
    fn is_summed_by_other_warps(&self, value: Value, inst: Inst) -> bool {
        let func = &*self.func;
        let num_warps = func.num_warps();
        let sums = func.dfg.ty(func.dfg.insts[inst].results[0]).shape;
        let shape = func.dfg.ty(value).shape;
        let unit = warpgroup::unit_of(func, inst, self.target);
        let wanted = unit.and_then(|unit| {
            warpgroup::left_operand(&warpgroup::accumulator(sums, num_warps)?, unit, shape)
        });
        let Some(wanted) = wanted else {
            return false;
        };
        // What an element is computed from, and whether that is transposed.
        let mut stack = vec![(value, false)];
        let mut seen = FxHashSet::default();
        while let Some((value, is_transposed)) = stack.pop() {
            let Some(def) = func.dfg.def_inst(value) else {
                continue;
            };
            if func.dfg.ty(value).shape.rank() != 2 || !seen.insert((value, is_transposed)) {
                continue;
            }
            let data = &func.dfg.insts[def];
            match data.op {
                TileOp::DotSum => {
                    let held = warpgroup::accumulator(func.dfg.ty(value).shape, num_warps);
                    let held = held.map(|held| match is_transposed {
                        true => held.permute(&[1, 0]),
                        false => held,
                    });
                    if held.is_some_and(|held| !stays_in_warps(&held, &wanted)) {
                        return true;
                    }
                }
                TileOp::Permute => {
                    let swaps = data.dims().is_some_and(|dims| dims.first() == Some(&1));
                    stack.push((data.args[0], is_transposed != swaps));
                }
                _ if data.class() == OpClass::Elementwise => {
                    stack.extend(data.args.iter().map(|&arg| (arg, is_transposed)));
                }
                _ => {}
            }
        }
        false
    }

    /// Whether an SM holds as many programs if an operand has a place of its own, and does not stand where that of the product before was.
    fn is_roomy(&self, block: Block, value: Value) -> bool {
        let Some(buffer) = place_for(self.func.dfg.ty(value)) else {
            return false;
        };
        let threads = self.func.cta_threads();
        let registers = registers_needed(self.func, block).min(Target::most_registers(threads));
        let resident = |shared| {
            self.target.resident(Usage {
                threads,
                registers,
                shared,
            })
        };
        let taken = self.target.shared_limit().saturating_sub(self.room);
        resident(taken + buffer.stage_bytes()) == resident(taken)
    }

    /// How an operand can come to a unit that reads it so; none if it cannot.
    fn way(&self, block: Block, value: Value, (summed, kept): Reader) -> Option<Way> {
        let ty = self.func.dfg.ty(value);
        if let Some(chain) = self.chain(block, value) {
            let (slot, summed) = self.in_ring(&chain, summed)?;
            if self.fits(slot, (summed, kept)) {
                return Some(Way::Ring(chain));
            }
        }
        if let Some(&(slot, home)) = self.stored.get(&value)
            && home.is_none_or(|home| home == block)
            && self.fits(slot, (summed, kept))
        {
            return Some(Way::Stored(Some(slot)));
        }
        let has_room = place_for(ty).is_some_and(|buffer| buffer.stage_bytes() <= self.room);
        let forms = warpgroup::forms(ty.shape, ty.elem.bytes(), &[(summed, kept)]);
        (has_room && !forms.is_empty()).then_some(Way::Stored(None))
    }

    /// The changes of shape through which an operand comes from a ring that holds it when the product reads it, the load last.
    fn chain(&self, block: Block, value: Value) -> Option<Vec<Inst>> {
        let func = &self.func;
        if let Some(def) = made_outside(self.func, block, value) {
            let home = func.order.block_of(def)?;
            let found = chain(func, home, value)?;
            let load = *found.last()?;
            return self.is_kept(home, load, block).then_some(found);
        }
        chain(func, block, value)
    }

    /// Whether an entry of a ring stays what a load in the block `home` reads until the products in `block`, which is inside of
    /// it, are over. Who writes entries does so in front of the load, or waits until they are given back, as producers do; and they are
    /// given back behind the products.
    fn is_kept(&self, home: Block, load: Inst, block: Block) -> bool {
        let func = &self.func;
        let slot = func.dfg.insts[load].slot();
        let places = (self.place(home, home, load), self.region_place(home, block));
        let (Some(_), (Some(load), Some(products))) = (slot, places) else {
            return false;
        };
        let writes = |inst: Inst| {
            let mut accesses = func.accesses(inst).into_iter();
            accesses.any(|access| match access.space {
                AccessSpace::Shared(at) => {
                    access.how != How::Read && at.is_none_or(|at| Some(&at) == slot)
                }
                _ => false,
            })
        };
        let mut insts = func.all_insts().filter(|&(_, inst)| writes(inst));
        insts.all(|(at, inst)| {
            let place = self.place(home, at, inst);
            if place.is_some_and(|place| place < load) {
                return true;
            }
            match func.dfg.insts[inst].op {
                TileOp::Release => place.is_none_or(|place| place > products),
                _ => self.is_producers(at),
            }
        })
    }

    /// Where in the block `home` an instruction of the block `at` stands, or what it is inside of; none if it is not in `home`.
    fn place(&self, home: Block, at: Block, inst: Inst) -> Option<usize> {
        if at == home {
            return self
                .func
                .order
                .insts(home)
                .iter()
                .position(|&other| other == inst);
        }
        self.region_place(home, at)
    }

    /// Where in the block `home` the instruction stands that the block `at` is inside of.
    fn region_place(&self, home: Block, mut at: Block) -> Option<usize> {
        loop {
            let owner = self.order.owner(at)?;
            at = self.func.order.block_of(owner)?;
            if at == home {
                return self.place(home, at, owner);
            }
        }
    }

    /// Whether a block is inside of a producer.
    fn is_producers(&self, mut block: Block) -> bool {
        while let Some(owner) = self.order.owner(block) {
            if self.func.dfg.insts[owner].op == TileOp::Producer {
                return true;
            }
            let Some(outer) = self.func.order.block_of(owner) else {
                break;
            };
            block = outer;
        }
        false
    }

    /// The ring that a chain of changes of shape starts from, and which of its dimensions is the operand's `dim`.
    fn in_ring(&self, chain: &[Inst], mut dim: usize) -> Option<(Slot, usize)> {
        let (&load, changes) = chain.split_last()?;
        for &change in changes {
            dim = *self.func.dfg.insts[change].dims()?.get(dim)? as usize;
        }
        let slot = *self.func.dfg.insts[load].slot()?;
        Some((slot, dim))
    }

    /// Whether there is a form of the ring that serves one more reader.
    fn fits(&self, slot: Slot, reader: Reader) -> bool {
        let Some(buffer) = self.func.buffers[slot] else {
            return false;
        };
        if buffer.shape.rank() != 2 {
            return false;
        }
        let known = self.readers.get(&slot).into_iter().flatten().copied();
        let readers: Vec<Reader> = known.chain([reader]).collect();
        let forms = warpgroup::forms(buffer.shape, buffer.elem.bytes(), &readers);
        let inner = neighbours_in_ring(self.func, &self.axis, slot);
        forms
            .iter()
            .any(|form| inner.is_none_or(|d| d == form.inner))
    }

    /// The operand as the unit reads it.
    fn take(
        &mut self,
        block: Block,
        value: Value,
        way: &Way,
        (summed, kept): Reader,
    ) -> Option<Taken> {
        let ty = self.func.dfg.ty(value);
        match way {
            Way::Registers => Some(Taken {
                value,
                reads: None,
                made: Vec::new(),
            }),
            Way::Ring(chain) => {
                let (slot, dim) = self.in_ring(chain, summed)?;
                self.readers.entry(slot).or_default().push((dim, kept));
                let mut made = Vec::new();
                let mut last = value;
                for &old in chain.iter().rev() {
                    let mut data = self.func.dfg.insts[old].clone();
                    let ty = self.func.dfg.ty(data.results[0]).at(Place::Shared);
                    data.results.clear();
                    match made.is_empty() {
                        true => data.op = TileOp::SharedView,
                        false => data.args[0] = last,
                    }
                    let copy = self.func.dfg.make_inst(data, &[ty]);
                    made.push(copy);
                    last = self.func.dfg.insts[copy].results[0];
                }
                Some(Taken {
                    value: last,
                    reads: Some(slot),
                    made,
                })
            }
            Way::Stored(known) => {
                let mut made = Vec::new();
                let slot = match known {
                    Some(slot) => *slot,
                    None => self.store(block, value, &mut made)?,
                };
                self.readers.entry(slot).or_default().push((summed, kept));
                let (entry, number) = first_entry();
                let entry = self.func.dfg.make_inst(entry, &[number]);
                let mut view: InstData<Tile> =
                    InstData::new(TileOp::SharedView, &[self.func.dfg.insts[entry].results[0]]);
                view.attrs.push(make::slot(slot));
                let view = self.func.dfg.make_inst(view, &[ty.at(Place::Shared)]);
                made.extend([entry, view]);
                Some(Taken {
                    value: self.func.dfg.insts[view].results[0],
                    reads: Some(slot),
                    made,
                })
            }
        }
    }

    /// Stores a value to a ring of one entry: where it is made if that is outside of the block, so that a loop does it once, and
    /// else in front of the product.
    fn store(&mut self, block: Block, value: Value, made: &mut Vec<Inst>) -> Option<Slot> {
        let buffer = place_for(self.func.dfg.ty(value))?;
        self.room = self.room.checked_sub(buffer.stage_bytes())?;
        let slot = self.func.add_buffer(buffer);
        let (entry, number) = first_entry();
        let entry = self.func.dfg.make_inst(entry, &[number]);
        let data = store(value, self.func.dfg.insts[entry].results[0], slot);
        let stored = self.func.dfg.make_inst(data, &[]);
        match made_outside(self.func, block, value) {
            Some(def) => {
                self.func.order.insert_after(def, &[entry, stored]);
                self.stored.insert(value, (slot, None));
            }
            None => {
                self.stored.insert(value, (slot, Some(block)));
                match self.func.dfg.def_inst(value) {
                    Some(def) if self.ahead.contains(value) => {
                        self.func.order.insert_after(def, &[entry, stored])
                    }
                    _ => made.extend([entry, stored]),
                }
            }
        }
        Some(slot)
    }
}

#[cfg(test)]
mod tests {
    use super::start_dots;
    use crate::ir::ops::TileOp;
    use crate::settings::Target;
    use crate::tile::testing::parse;

    /// Whether a product in a loop reads an operand where the ring of one entry holds it, which was loaded in front of the loop. The
    /// entry is given back in front of the loop, in it, or behind it.
    fn reads_in_place(releases: [bool; 3]) -> bool {
        let release = |i: usize| match releases[i] {
            true => "release v0, v1 {slot = slot0}",
            false => "",
        };
        let mut func = parse(&format!(
            "kernel @k(v0: i32, v1: i1) warps(4) {{
                slot0 = 4096 bytes align 128 holds 1 of f16[64,32]
                slot1 = 4096 bytes align 128 holds 1 of f16[32,64]
            block0:
                v2 = const {{value = 0.0}} : f32[64,64]
                v3 = shared_load v0 {{slot = slot0}} : f16[64,32]
                {}
                v4 = for v0, v0, v0, v2 : f32[64,64] {{
                block1(v5: i32, v6: f32[64,64]):
                    v7 = shared_load v5 {{slot = slot1}} : f16[32,64]
                    v8 = dot v3, v7, v6 {{precision = ieee}} : f32[64,64]
                    {}
                    yield v8
                }}
                {}
                return
            }}",
            release(0),
            release(1),
            release(2),
        ));
        let target = Target::parse("sm_90a").expect("a target");
        assert_eq!(start_dots(&mut func.clone(), Target::SM_80), 0);
        assert_eq!(start_dots(&mut func, target), 1);
        let mut insts = func.all_insts();
        !insts.any(|(_, inst)| func.dfg.insts[inst].op == TileOp::SharedStore)
    }

    #[test]
    fn what_is_given_back_in_front_of_its_product_is_not_read_in_place() {
        assert!(reads_in_place([false, false, false]));
        assert!(reads_in_place([false, false, true]));
        assert!(!reads_in_place([true, false, false]));
        assert!(!reads_in_place([false, true, false]));
    }

    /// How many blocks are stored for the units of two products, of which the second has a left operand made by `operand` from the sum
    /// `v4` of the first, of the shape.
    fn stored(operand: &str, shape: &str, right: &str) -> usize {
        let mut func = parse(&format!(
            "kernel @k(v0: i32) warps(8) {{
                slot0 = 32768 bytes align 128 holds 1 of f16[128,128]
                slot1 = 16384 bytes align 128 holds 1 of f16[128,64]
                slot2 = 8192 bytes align 128 holds 1 of f16[64,64]
            block0:
                v1 = shared_load v0 {{slot = slot0}} : f16[128,128]
                v2 = shared_load v0 {{slot = slot1}} : f16[128,64]
                v3 = const {{value = 0.0}} : f32[128,64]
                v4 = dot v1, v2, v3 {{precision = ieee}} : f32[128,64]
                v5 = fptrunc v4 {{round = rn}} : f16[128,64]
                {operand}
                v7 = shared_load v0 {{slot = {right}}} : f16{}
                v8 = const {{value = 0.0}} : f32{shape}
                v9 = dot v6, v7, v8 {{precision = ieee}} : f32{shape}
                return
            }}",
            if right == "slot0" {
                "[128,128]"
            } else {
                "[64,64]"
            },
        ));
        let target = Target::parse("sm_90a").expect("a target");
        assert_eq!(start_dots(&mut func, target), 2);
        func.insts_with(TileOp::SharedStore).count()
    }

    #[test]
    fn what_other_warps_summed_is_stored_for_the_unit() {
        let transposed = "v6 = permute v5 {dims = [1, 0]} : f16[64,128]";
        assert_eq!(stored(transposed, "[64,128]", "slot0"), 1);
        // Rows of a sum are rows of the operand in the same warps.
        let same = "v6 = fmul v5, v5 : f16[128,64]";
        assert_eq!(stored(same, "[128,64]", "slot2"), 0);
        let twice = "v10 = permute v5 {dims = [1, 0]} : f16[64,128]
                v6 = permute v10 {dims = [1, 0]} : f16[128,64]";
        assert_eq!(stored(twice, "[128,64]", "slot2"), 0);
    }
}
