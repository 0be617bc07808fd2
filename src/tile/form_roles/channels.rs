//! Which loads become channels, and how many entries these have.
//!
//! Where a CTA executes several programs, what one stores stands in shared memory while the rings are filled for the next. If that costs
//! them entries, it goes to memory in pieces, of which two stand there at a time. (An H100, products of depth 512 in blocks of 128 x 128, two
//! groups in turns: six entries and not five, 4096x4096 28.8 us and not 31.2, 8192x8192 100.5 and not 111.)

use cranelift_entity::{EntitySet, SecondaryMap};

use super::worth;
use crate::analysis::constants::iterations;
use crate::analysis::program::{ProgramOrder, WalkStep};
use crate::ir::attrs::Attrs;
use crate::ir::effects::OpClass;
use crate::ir::entities::{Block, Inst, Slot, Value};
use crate::ir::function::{BufferData, TileFunction};
use crate::ir::ops::TileOp;
use crate::layout::warpgroup;
use crate::settings::{Policy, Target};
use crate::tile::pipeline_loops::{DEFAULT_STAGES, MAX_STAGES};
use crate::tile::resources::ResourcePlan;
use crate::tile::share_operands::place_for;
use crate::tile::start_dots;

/// Loads of a block that are waited for and given back together.
#[derive(Clone, Debug)]
pub(super) struct LoadGroup {
    /// The number of the channel.
    pub channel: usize,
    /// The loads, in order.
    pub loads: Vec<Inst>,
    /// What reads them last in their block, or holds what does.
    pub last: Inst,
}

/// What is known of a channel before it is made.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    buffers: Vec<BufferData>,
    entries: u32,
    /// Whether one entry is enough, as inner loops stand between its loads, and a second one is taken where there is room.
    is_outer: bool,
    /// What its loads read.
    tensors: Vec<Value>,
}

impl Draft {
    /// Bytes of an entry.
    fn entry_bytes(&self) -> u32 {
        self.buffers.iter().map(BufferData::stage_bytes).sum()
    }

    /// Bytes of all entries.
    pub(super) fn bytes(&self) -> u32 {
        self.entries * self.entry_bytes()
    }
}

/// A channel: a ring for each of the loads of its groups, and barriers for each entry.
#[derive(Clone, Debug)]
pub(super) struct Channel {
    pub slots: Vec<Slot>,
    pub full: Slot,
    pub empty: Slot,
    pub entries: u32,
    /// What arrives for an entry.
    pub bytes: u32,
}

/// All channels of a kernel.
#[derive(Clone, Debug)]
pub(super) struct Channels {
    drafts: Vec<Draft>,
    pub groups: Vec<LoadGroup>,
    /// Whether stored blocks go to memory piece by piece, which leaves rings more room.
    pub in_pieces: bool,
}

impl Channels {
    /// The loads that come through channels.
    pub(super) fn loads(&self) -> impl Iterator<Item = Inst> + '_ {
        self.groups
            .iter()
            .flat_map(|group| group.loads.iter().copied())
    }

    /// The groups in a copy of the kernel, in which only loads count.
    pub(super) fn renamed(&self, copy_of: impl Fn(Inst) -> Option<Inst>) -> Vec<LoadGroup> {
        let renamed = |group: &LoadGroup| {
            let loads: Vec<Inst> = group
                .loads
                .iter()
                .filter_map(|&load| copy_of(load))
                .collect();
            let last = *loads.last()?;
            Some(LoadGroup {
                channel: group.channel,
                loads,
                last,
            })
        };
        self.groups.iter().filter_map(renamed).collect()
    }

    /// Adds the rings and barriers to the function.
    pub(super) fn make(&self, func: &mut TileFunction) -> Vec<Channel> {
        let mut make = |draft: &Draft| {
            let slots = draft.buffers.iter().map(|&buffer| {
                func.add_buffer(BufferData {
                    stages: draft.entries,
                    ..buffer
                })
            });
            Channel {
                slots: slots.collect(),
                full: func.add_barriers(draft.entries),
                empty: func.add_barriers(draft.entries),
                entries: draft.entries,
                bytes: draft.entry_bytes(),
            }
        };
        self.drafts.iter().map(&mut make).collect()
    }
}

/// The channels of a kernel whose programs so many groups of warps execute, if it is to have roles.
pub(super) fn find(
    func: &TileFunction,
    target: Target,
    resources: &ResourcePlan,
    takers: u32,
) -> Option<Channels> {
    if resources.roles == Policy::Never || !resources.warpgroup_units || func.num_warps() < 4 {
        return None;
    }
    let order = ProgramOrder::compute(func);
    let mut groups: Vec<LoadGroup> = Vec::new();
    let mut drafts: Vec<Draft> = Vec::new();
    let mut multiplies = false;
    let mut outside = Vec::new();
    // As the producer brings them: what stands in an inner loop parts the loads in front of it from those behind it. Waited for
    // together they would wait for each other, the inner loop's boxes for their entries and these for the inner loop's.
    for (block, inst) in in_program_order(func, &order) {
        let data = &func.dfg.insts[inst];
        multiplies |= start_dots::is_for_warpgroup(func, inst, target);
        // Whatever else a loop loads for its products is a pipeline's.
        if data.op == TileOp::Load && order.owner(block).is_some() && feeds_product(func, inst) {
            return None;
        }
        if data.op != TileOp::TensorLoad {
            continue;
        }
        let Some((entries, is_outer)) = entries(func, &order, block) else {
            outside.push((block, inst));
            continue;
        };
        let (readers, last) = readers(func, &order, block, inst)?;
        let buffer = place_for(func.dfg.ty(data.results[0]))?;
        let tensor = tensor(func, *data.args.first()?)?;
        let group = groups.last_mut().filter(|group| {
            let first = group.loads[0];
            let beside = func.order.block_of(first) == Some(block);
            beside
                && self::readers(func, &order, block, first).is_some_and(|(all, _)| all == readers)
        });
        match group {
            Some(group) => {
                group.loads.push(inst);
                let draft = &mut drafts[group.channel];
                draft.buffers.push(buffer);
                draft.tensors.push(tensor);
            }
            None => {
                groups.push(LoadGroup {
                    channel: drafts.len(),
                    loads: vec![inst],
                    last,
                });
                drafts.push(Draft {
                    buffers: vec![buffer],
                    entries,
                    is_outer,
                    tensors: vec![tensor],
                });
            }
        }
    }
    if !multiplies || drafts.iter().all(|draft| draft.entries < 2) {
        return None;
    }
    share(func, &order, &mut groups, &mut drafts);
    for (block, inst) in outside {
        join(func, &order, (block, inst), &mut groups, &drafts);
    }
    let takes_turns = 1 < takers;
    if resources.roles == Policy::Auto && takes_turns && !worth::turns_pay(func, target, &drafts) {
        return None;
    }
    // Whose turn it is has the entries of all.
    let asked: Vec<u32> = drafts.iter().map(|draft| draft.entries).collect();
    for draft in drafts.iter_mut().filter(|draft| 1 < draft.entries) {
        draft.entries = MAX_STAGES.min(takers * draft.entries);
    }
    let mut in_pieces = resources.pieces;
    let room = |in_pieces| {
        let staged = takers * staged(func, in_pieces);
        room(func, target, resources)?.checked_sub(staged)
    };
    let mut pieced = drafts.clone();
    let mut left = fit(&mut drafts, room(false)?);
    let of_pieces = fit(&mut pieced, room(in_pieces)?);
    let entries = |drafts: &[Draft]| drafts.iter().map(|draft| draft.entries).sum::<u32>();
    in_pieces &= left.is_none() || entries(&drafts) < entries(&pieced);
    if in_pieces {
        (drafts, left) = (pieced, of_pieces);
    }
    let left = left?;
    let has_fewer = drafts
        .iter()
        .zip(&asked)
        .any(|(d, &asked)| d.entries < asked);
    if takes_turns && has_fewer {
        return None;
    }
    let pays = || takes_turns || worth::pays(func, &order, target, (&groups, &drafts));
    if resources.roles == Policy::Auto && !pays() {
        return None;
    }
    widen(&mut drafts, left);
    Some(Channels {
        drafts,
        groups,
        in_pieces,
    })
}

/// All instructions, those of an inner block where it stands.
fn in_program_order<'f>(
    func: &'f TileFunction,
    order: &'f ProgramOrder,
) -> impl Iterator<Item = (Block, Inst)> + 'f {
    order.steps().iter().filter_map(|&step| {
        let (WalkStep::Inst(inst) | WalkStep::Enter(inst)) = step else {
            return None;
        };
        Some((func.order.block_of(inst)?, inst))
    })
}

/// Lets groups share a channel that bring like blocks of the same tensor and are never held at the same time, as those of two loops
/// one behind the other.
fn share(
    func: &TileFunction,
    order: &ProgramOrder,
    groups: &mut [LoadGroup],
    drafts: &mut Vec<Draft>,
) {
    let mut kept: Vec<Draft> = Vec::new();
    let mut number: Vec<usize> = Vec::new();
    for (i, draft) in drafts.iter().enumerate() {
        let fits = |to: &usize| {
            let like = kept[*to].buffers == draft.buffers && kept[*to].tensors == draft.tensors;
            let others = (0..i).filter(|&j| number[j] == *to);
            let mut others = others.map(|j| &groups[j]);
            like && others.all(|other| are_apart(func, order, other, &groups[i]))
        };
        let found = (0..kept.len()).find(fits);
        match found {
            Some(to) => {
                kept[to].entries = kept[to].entries.max(draft.entries);
                kept[to].is_outer &= draft.is_outer;
                number.push(to);
            }
            None => {
                number.push(kept.len());
                kept.push(draft.clone());
            }
        }
    }
    for group in groups {
        group.channel = number[group.channel];
    }
    *drafts = kept;
}

/// Lets a load that stands in no loop come through the channel of a loop that brings like blocks of the same tensor, if there is one.
fn join(
    func: &TileFunction,
    order: &ProgramOrder,
    (block, inst): (Block, Inst),
    groups: &mut Vec<LoadGroup>,
    drafts: &[Draft],
) -> Option<()> {
    let data = &func.dfg.insts[inst];
    let (_, last) = readers(func, order, block, inst)?;
    let buffers = [place_for(func.dfg.ty(data.results[0]))?];
    let tensors = [tensor(func, *data.args.first()?)?];
    let group = |channel| LoadGroup {
        channel,
        loads: vec![inst],
        last,
    };
    let fits = |&to: &usize| {
        let like = drafts[to].buffers == buffers && drafts[to].tensors == tensors;
        let mut others = groups.iter().filter(|other| other.channel == to);
        like && others.all(|other| are_apart(func, order, other, &group(to)))
    };
    let channel = (0..drafts.len()).find(fits)?;
    groups.push(group(channel));
    Some(())
}

/// Whether the blocks of one group are given back before those of another one are waited for, or the other way round.
fn are_apart(func: &TileFunction, order: &ProgramOrder, a: &LoadGroup, b: &LoadGroup) -> bool {
    // The instructions in which a group stands, the innermost first.
    let around = |inst: Inst| {
        std::iter::successors(Some(inst), |&at| order.owner(func.order.block_of(at)?))
            .collect::<Vec<_>>()
    };
    let (of_a, of_b) = (around(a.loads[0]), around(b.loads[0]));
    for (i, &x) in of_a.iter().enumerate() {
        let block = func.order.block_of(x);
        let Some(j) = of_b.iter().position(|&y| func.order.block_of(y) == block) else {
            continue;
        };
        let list = block.map_or(&[][..], |block| func.order.insts(block));
        let place = |inst: Inst| list.iter().position(|&other| other == inst);
        // Of a group in an inner block, what holds it is the whole of its time.
        let end = |k: usize, at: Inst, group: &LoadGroup| if k == 0 { group.last } else { at };
        let (from_a, to_a) = (place(x), place(end(i, x, a)));
        let (from_b, to_b) = (place(of_b[j]), place(end(j, of_b[j], b)));
        return to_a < from_b || to_b < from_a;
    }
    // In the two regions of a choice.
    false
}

/// The parameter that a map's tensor is found by.
fn tensor(func: &TileFunction, map: Value) -> Option<Value> {
    let mut at = *func.dfg.insts[func.dfg.def_inst(map)?].args.first()?;
    while let Some(inst) = func.dfg.def_inst(at) {
        at = *func.dfg.insts[inst].args.first()?;
    }
    Some(at)
}

/// How many entries a load that stands in a block asks for, and whether inner loops stand between one and the next; none if it is in
/// no loop.
fn entries(func: &TileFunction, order: &ProgramOrder, block: Block) -> Option<(u32, bool)> {
    let mut at = block;
    loop {
        let owner = order.owner(at)?;
        let data = &func.dfg.insts[owner];
        if data.op.is_loop() {
            let stages = data.stages().copied().unwrap_or(DEFAULT_STAGES);
            let most = u32::from(stages).min(MAX_STAGES);
            // A loop that runs once, and fewer times than it has stages, fills no entry again.
            let mut around =
                std::iter::successors(order.parent(func, owner), |&it| order.parent(func, it));
            let is_repeated = around.any(|it| func.dfg.insts[it].op.is_loop());
            let count = iterations(func, owner).and_then(|count| u32::try_from(count).ok());
            let count = count.filter(|_| !is_repeated);
            return Some(match holds_loops(func, owner) {
                true => (1, true),
                false => (count.map_or(most, |count| most.min(count)), false),
            });
        }
        at = func.order.block_of(owner)?;
    }
}

/// Whether a loop stands in a loop or choice.
pub(super) fn holds_loops(func: &TileFunction, inst: Inst) -> bool {
    func.regions(inst)
        .flat_map(|region| func.order.insts(region))
        .any(|&inst| func.dfg.insts[inst].op.is_loop() || holds_loops(func, inst))
}

/// Places in which pieces of a stored block stand in turn.
pub(super) const PLACES: u8 = 2;

/// Bytes of the largest block that stands in shared memory on its way to memory while the producer fills rings for the next
/// program, or of its pieces that do. Where a CTA executes one program alone, rings are not needed any more then.
fn staged(func: &TileFunction, in_pieces: bool) -> u32 {
    let stores = func.insts_with(TileOp::TensorStore);
    let bytes = stores.filter_map(|(_, inst)| {
        let block = func.dfg.ty(func.dfg.insts[inst].args[1]);
        let place = place_for(block)?;
        let piece = warpgroup::piece(block.shape, place.elem.bytes(), func.num_warps());
        Some(match piece.filter(|_| in_pieces) {
            Some(shape) => u32::from(PLACES) * BufferData { shape, ..place }.stage_bytes(),
            None => place.stage_bytes(),
        })
    });
    bytes.max().filter(|_| func.persistent).unwrap_or(0)
}

/// Bytes that rings can have, and what is stored.
fn room(func: &TileFunction, target: Target, resources: &ResourcePlan) -> Option<u32> {
    let buffers = func.buffers.values().flatten();
    let taken: u32 = buffers.map(|b| b.stage_bytes() * b.stages).sum();
    target
        .shared_limit()
        .checked_sub(taken)?
        .checked_sub(resources.reserved)
}

/// Makes entries fewer until they find room; how many bytes are left then.
fn fit(drafts: &mut [Draft], room: u32) -> Option<u32> {
    loop {
        let needed: u32 = drafts.iter().map(Draft::bytes).sum();
        if let Some(left) = room.checked_sub(needed) {
            return Some(left);
        }
        let most = drafts.iter().map(|draft| draft.entries).max()?;
        if most <= 2 {
            return None;
        }
        for draft in drafts.iter_mut().filter(|draft| draft.entries == most) {
            draft.entries -= 1;
        }
    }
}

/// Gives what is left to second entries of outer loops, so that what a program reads first comes while the one before still
/// multiplies, and what comes behind it does not wait either. (Attention forward of 128 columns on an H100: 256 heads of 1,024 rows
/// in 233 us and not 260, 64 of 4,096 in 899 and not 913.)
fn widen(drafts: &mut [Draft], mut left: u32) {
    for draft in drafts.iter_mut().filter(|draft| draft.is_outer) {
        if let Some(rest) = left.checked_sub(draft.entry_bytes()) {
            draft.entries += 1;
            left = rest;
        }
    }
}

/// What reads a load, and what of its block does so last or holds what does; none if the value leaves the block.
fn readers(
    func: &TileFunction,
    order: &ProgramOrder,
    block: Block,
    load: Inst,
) -> Option<(Vec<Inst>, Inst)> {
    let mut values: EntitySet<Value> = EntitySet::new();
    values.extend(func.dfg.insts[load].results.iter().copied());
    let mut found = Vec::new();
    let mut places: SecondaryMap<Inst, bool> = SecondaryMap::new();
    // Uses come behind definitions.
    for (_, inst) in func.all_insts() {
        let data = &func.dfg.insts[inst];
        if !func.dfg.uses(inst).any(|value| values.contains(value)) {
            continue;
        }
        if matches!(data.class(), OpClass::End | OpClass::Region) {
            return None;
        }
        match data.class() {
            OpClass::Shape => values.extend(data.results.iter().copied()),
            _ => found.push(inst),
        }
        let mut at = inst;
        while func.order.block_of(at)? != block {
            at = order.owner(func.order.block_of(at)?)?;
        }
        places[at] = true;
    }
    let last = func
        .order
        .insts(block)
        .iter()
        .rev()
        .find(|&&inst| places[inst])?;
    Some((found, *last))
}

/// Whether a product is made of what a load brings.
fn feeds_product(func: &TileFunction, load: Inst) -> bool {
    let mut values: EntitySet<Value> = EntitySet::new();
    values.extend(func.dfg.insts[load].results.iter().copied());
    func.all_insts().any(|(_, inst)| {
        let data = &func.dfg.insts[inst];
        let uses = func.dfg.uses(inst).any(|value| values.contains(value));
        if uses && data.is_pure() && data.op != TileOp::Dot {
            values.extend(data.results.iter().copied());
        }
        uses && data.op == TileOp::Dot
    })
}
