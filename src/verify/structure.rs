//! V01 to V05: what everything else takes for granted.

use cranelift_entity::{SecondaryMap, packed_option::PackedOption};

use super::{Errors, Rule};
use crate::ir::attrs::Attrs;
use crate::ir::dfg::ValueDef;
use crate::ir::effects::OpClass;
use crate::ir::entities::{AnyEntity, Block, Inst, Value};
use crate::ir::function::Function;
use crate::ir::level::{Level, Tile};
use crate::ir::ops::{Opcode, TypeRule};
use crate::ir::types::ValueType;
use crate::text::parse::MAX_NESTING;

/// Where everything stands in a function of sound structure.
pub(super) struct Tree {
    /// Instruction that owns a block as a region.
    pub(super) owner: SecondaryMap<Block, PackedOption<Inst>>,
    /// Position of an instruction in its block.
    pub(super) position: SecondaryMap<Inst, u32>,
    /// Every block in use.
    pub(super) blocks: Vec<Block>,
}

/// Checks the structure; none if it is broken.
pub(super) fn check<L: Level>(func: &Function<L>, errors: &mut Errors) -> Option<Tree> {
    check_indices(func, errors);
    if !errors.0.is_empty() {
        return None;
    }
    let tree = check_places(func, errors)?;
    check_definitions(func, &tree, errors);
    for &block in &tree.blocks {
        check_terminators(func, block, errors);
    }
    errors.0.is_empty().then_some(tree)
}

/// V01. Only what can be reached is looked at: tables may hold remains.
fn check_indices<L: Level>(func: &Function<L>, errors: &mut Errors) {
    let dfg = &func.dfg;
    let mut seen: SecondaryMap<Block, bool> = SecondaryMap::new();
    let mut stack = vec![func.entry];
    stack.extend(&func.order.blocks);
    while let Some(block) = stack.pop() {
        let Some(data) = dfg.blocks.get(block) else {
            let message = format!("{block} does not exist");
            errors.report(Rule::Index, AnyEntity::Function, message);
            continue;
        };
        if std::mem::replace(&mut seen[block], true) {
            continue;
        }
        for &value in &data.params {
            check_value(func, value, block.into(), errors);
        }
        for &inst in func.order.insts(block) {
            let Some(data) = dfg.insts.get(inst) else {
                errors.report(Rule::Index, block, format!("{inst} does not exist"));
                continue;
            };
            for &value in data.results.iter().chain(&data.args) {
                check_value(func, value, inst.into(), errors);
            }
            for &value in data.blocks.iter().flat_map(|call| &call.args) {
                check_value(func, value, inst.into(), errors);
            }
            let slots = data
                .slot()
                .into_iter()
                .chain(data.left_slot())
                .chain(data.bars());
            for &slot in slots.filter(|&&slot| !func.slots.is_valid(slot)) {
                errors.report(Rule::Index, inst, format!("{slot} does not exist"));
            }
            for call in &data.blocks {
                if dfg.blocks.is_valid(call.block) {
                    stack.push(call.block);
                } else {
                    let message = format!("{} does not exist", call.block);
                    errors.report(Rule::Index, inst, message);
                }
            }
        }
    }
}

fn check_value<L: Level>(func: &Function<L>, value: Value, at: AnyEntity, errors: &mut Errors) {
    let Some(data) = func.dfg.values.get(value) else {
        return errors.report(Rule::Index, at, format!("{value} does not exist"));
    };
    if let Some(layout) = data.ty.layout()
        && func.layouts.get(layout).is_none()
    {
        let message = format!("layout {layout} of {value} does not exist");
        errors.report(Rule::Index, at, message);
    }
}

/// How many regions or targets an op has, by its type rule or its name.
fn expected_blocks<O: Opcode>(op: O) -> usize {
    let info = op.info();
    match (info.rule, info.effects.class) {
        (TypeRule::For | TypeRule::Reduce | TypeRule::Scan | TypeRule::Producer, _) => 1,
        (TypeRule::While | TypeRule::If, _) => 2,
        (_, OpClass::End) => match info.name {
            "jump" => 1,
            "brif" => 2,
            _ => 0,
        },
        _ => 0,
    }
}

/// V02, V04 and V05; none if a block stands in several places, so that walking would not end.
fn check_places<L: Level>(func: &Function<L>, errors: &mut Errors) -> Option<Tree> {
    let mut tree = Tree {
        owner: SecondaryMap::new(),
        position: SecondaryMap::new(),
        blocks: Vec::new(),
    };
    let mut block_seen: SecondaryMap<Block, bool> = SecondaryMap::new();
    let mut inst_seen: SecondaryMap<Inst, bool> = SecondaryMap::new();
    let mut sound = true;
    if func.order.blocks.first() != Some(&func.entry) {
        let message = format!(
            "the entry, {}, is not the first block of the body",
            func.entry
        );
        errors.report(Rule::Place, AnyEntity::Function, message);
        sound = false;
    }
    if L::KEYWORD == Tile::KEYWORD && func.order.blocks.len() > 1 {
        let message = "a kernel's body is one block; what branches stands in regions";
        for &block in &func.order.blocks[1..] {
            errors.report(Rule::Place, block, message);
        }
    }
    let body = func.order.blocks.iter().rev();
    let mut stack: Vec<(Block, Option<Inst>, usize)> = body.map(|&b| (b, None, 0)).collect();
    while let Some((block, owner, depth)) = stack.pop() {
        if std::mem::replace(&mut block_seen[block], true) {
            let entity = owner.map_or(AnyEntity::Block(block), AnyEntity::Inst);
            let message = format!("{block} stands in several places");
            errors.report(Rule::Place, entity, message);
            sound = false;
            continue;
        }
        tree.owner[block] = owner.into();
        tree.blocks.push(block);
        if let Some(owner) = owner
            && depth > MAX_NESTING
        {
            let message = format!("regions are nested deeper than {MAX_NESTING}");
            errors.report(Rule::Nesting, owner, message);
            sound = false;
            continue;
        }
        for (position, &inst) in (0..).zip(func.order.insts(block)) {
            if std::mem::replace(&mut inst_seen[inst], true)
                || func.order.block_of(inst) != Some(block)
            {
                errors.report(
                    Rule::Place,
                    inst,
                    format!("{inst} stands in several places"),
                );
                sound = false;
                continue;
            }
            tree.position[inst] = position;
            let data = &func.dfg.insts[inst];
            let (found, expected) = (data.blocks.len(), expected_blocks(data.op));
            if found != expected {
                let message = format!("{} has {expected} blocks, found {found}", data.op);
                errors.report(Rule::Blocks, inst, message);
            }
            if data.op.info().owns_regions() {
                if data.blocks.iter().any(|call| !call.args.is_empty()) {
                    let message = "regions get no arguments; their op says what they start with";
                    errors.report(Rule::Blocks, inst, message);
                }
                let regions = data.blocks.iter().rev();
                stack.extend(regions.map(|call| (call.block, Some(inst), depth + 1)));
            }
        }
    }
    sound.then_some(tree)
}

/// V02 for values: each is where it says it is.
fn check_definitions<L: Level>(func: &Function<L>, tree: &Tree, errors: &mut Errors) {
    let mut check = |value: Value, def: ValueDef, at: AnyEntity| {
        if func.dfg.values[value].def != def {
            errors.report(Rule::Place, at, format!("{value} is defined elsewhere too"));
        }
    };
    for &block in &tree.blocks {
        for (i, &value) in (0..).zip(&func.dfg.blocks[block].params) {
            check(value, ValueDef::Param(block, i), block.into());
        }
        for &inst in func.order.insts(block) {
            for (i, &value) in (0..).zip(&func.dfg.insts[inst].results) {
                check(value, ValueDef::Result(inst, i), inst.into());
            }
        }
    }
}

/// V03.
fn check_terminators<L: Level>(func: &Function<L>, block: Block, errors: &mut Errors) {
    let ends = |&inst: &Inst| func.dfg.insts[inst].op.info().ends_block();
    let Some((last, above)) = func.order.insts(block).split_last() else {
        return errors.report(Rule::Terminator, block, "the block is empty; end it");
    };
    if !ends(last) {
        let message = "the block ends here, but not with a terminator";
        errors.report(Rule::Terminator, *last, message);
    }
    for &inst in above.iter().filter(|inst| ends(inst)) {
        let message = "a terminator stands before the end of its block";
        errors.report(Rule::Terminator, inst, message);
    }
}
