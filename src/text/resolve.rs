//! Syntax tree to function.
//!
//! First every definition gets its entity, in order of the text, with the type it states; then operands,
//! targets and the rules of the ops are looked at. So uses may stand above their definitions, as they do
//! in a graph of blocks.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::ast::{At, RawAttr, RawBlock, RawExtent, RawFunction, RawInst, RawLiteral, RawType};
use super::number;
use super::parse::{Checks, Code, Lines, MAX_ERRORS, MAX_VALUES, ParseError, Pos};
use super::quote::{listed, quoted};
use crate::ir::attrs::{Attr, AttrKind};
use crate::ir::dfg::{BlockCall, InstData, SourceLine, SourceLoc, ValueList};
use crate::ir::entities::{AnyEntity, Block, Inst, Slot, Value};
use crate::ir::function::{BufferData, Function, ParamHints, PartitionData, SlotData};
use crate::ir::level::Level;
use crate::ir::literal::Literal;
use crate::ir::map_recipe::RecipeError;
use crate::ir::ops::{Opcode, rules};
use crate::ir::types::{Elem, Extent, ValueType};
use crate::linear_layout::layout::LinearLayout;
use crate::linear_layout::pool::LayoutId;

/// The function that `raw` states, or none after mistakes, which go to `errors`.
pub(crate) fn resolve<L: Level>(
    raw: &RawFunction<'_>,
    checks: Checks,
    errors: &mut Vec<ParseError>,
) -> Option<(Function<L>, Lines)> {
    let errors_before = errors.len();
    let mut resolver = Resolver {
        func: Function::<L>::new(raw.name.clone(), raw.num_warps),
        lines: Lines {
            first: raw.pos.line,
            name: raw.pos,
            last: raw.last_line,
            ..Lines::default()
        },
        layouts: FxHashMap::default(),
        slots: FxHashMap::default(),
        values: FxHashMap::default(),
        blocks: FxHashMap::default(),
        pending: Vec::new(),
        checks,
        errors,
    };
    resolver.items(raw);
    resolver.params(raw);
    for (i, block) in raw.blocks.iter().enumerate() {
        let entity = if i == 0 {
            resolver.func.entry
        } else {
            let entity = resolver.func.dfg.make_block();
            resolver.func.order.blocks.push(entity);
            entity
        };
        resolver.define_block(entity, block);
    }
    for (inst, raw_inst, is_complete) in std::mem::take(&mut resolver.pending) {
        resolver.finish_inst(inst, raw_inst, is_complete);
    }
    let (func, lines) = (resolver.func, resolver.lines);
    (errors.len() == errors_before).then_some((func, lines))
}

struct Resolver<'r, 'a, L: Level> {
    func: Function<L>,
    lines: Lines,
    /// From numbers of the text.
    layouts: FxHashMap<u32, LayoutId>,
    slots: FxHashMap<u32, Slot>,
    values: FxHashMap<u32, Value>,
    blocks: FxHashMap<u32, Block>,
    /// Instructions whose operands are still missing, and whether their attributes could be read.
    pending: Vec<(Inst, &'r RawInst<'a>, bool)>,
    checks: Checks,
    errors: &'r mut Vec<ParseError>,
}

impl<'r, 'a, L: Level> Resolver<'r, 'a, L> {
    fn error(&mut self, code: Code, pos: Pos, message: impl Into<String>) {
        if self.errors.len() < MAX_ERRORS {
            self.errors.push(ParseError::new(code, pos, message));
        }
    }

    fn twice(&mut self, what: impl std::fmt::Display, pos: Pos) {
        let message = format!("{what} is defined twice; rename one of the two");
        self.error(Code::Twice, pos, message);
    }

    fn items(&mut self, raw: &RawFunction<'_>) {
        for layout in &raw.layouts {
            match LinearLayout::parse(layout.columns.it, layout.shape) {
                Ok(it) => {
                    let id = self.func.layouts.intern(it);
                    self.lines.items.insert(id.into(), layout.number.pos);
                    if self.layouts.insert(layout.number.it, id).is_some() {
                        self.twice(format_args!("#{}", layout.number.it), layout.number.pos);
                    }
                }
                Err(e) => self.error(Code::Layout, layout.columns.pos, e.to_string()),
            }
        }
        for raw_slot in &raw.slots {
            let slot = self.func.slots.push(SlotData {
                bytes: raw_slot.bytes,
                align: raw_slot.align,
                offset: raw_slot.offset,
                by_group: raw_slot.by_group,
            });
            if let Some((stages, ty)) = &raw_slot.holds {
                self.buffer(slot, *stages, ty);
            }
            self.lines.items.insert(slot.into(), raw_slot.number.pos);
            if self.slots.insert(raw_slot.number.it, slot).is_some() {
                self.twice(
                    format_args!("slot{}", raw_slot.number.it),
                    raw_slot.number.pos,
                );
            }
        }
        if let Some(whole) = self.func.partitions.values_mut().next() {
            whole.max_registers = raw.registers;
            whole.groups = raw.groups;
        }
        self.func.persistent = raw.persistent;
        self.func.fixed_warps = raw.fixed_warps;
        for (i, raw_part) in raw.partitions.iter().enumerate() {
            // The first partition is the whole, which the function's header states.
            let above = &raw.partitions[..i];
            if above.iter().any(|p| p.number.it == raw_part.number.it) || raw_part.number.it == 0 {
                self.twice(
                    format_args!("part{}", raw_part.number.it),
                    raw_part.number.pos,
                );
            }
            let part = self.func.partitions.push(PartitionData {
                first_warp: raw_part.first_warp,
                num_warps: raw_part.num_warps,
                groups: 1,
                max_registers: raw_part.registers,
            });
            self.lines.items.insert(part.into(), raw_part.number.pos);
        }
        for (i, map) in (0..).zip(&raw.maps) {
            // Ops name maps by their place.
            if map.number.it != i {
                let message = format!("maps are numbered in their order; this one is map{i}");
                self.error(Code::Syntax, map.number.pos, message);
            }
            self.lines.items.insert(AnyEntity::Map(i), map.number.pos);
            match map.recipe.it.parse() {
                Ok(recipe) => self.func.maps.push(recipe),
                Err(error) => {
                    let error: RecipeError = error;
                    self.error(Code::Syntax, map.recipe.pos, error.to_string());
                }
            }
        }
    }

    fn params(&mut self, raw: &RawFunction<'_>) {
        for param in &raw.params {
            let ty = self.ty(&param.ty);
            let hints = ParamHints::divisible(param.divisible);
            let value = self.func.append_param(param.name.clone(), ty, hints);
            self.define_value(param.value, value);
        }
    }

    fn define_value(&mut self, name: At<u32>, value: Value) {
        self.lines.values[value] = name.pos;
        if self.values.insert(name.it, value).is_some() {
            self.twice(format_args!("v{}", name.it), name.pos);
        }
        if self.func.dfg.values.len() == MAX_VALUES + 1 {
            let message = format!("a function has at most {MAX_VALUES} values; split it");
            self.error(Code::Limit, name.pos, message);
        }
    }

    fn define_block(&mut self, block: Block, raw: &'r RawBlock<'a>) {
        self.lines.blocks[block] = raw.number.pos;
        if self.blocks.insert(raw.number.it, block).is_some() {
            self.twice(format_args!("block{}", raw.number.it), raw.number.pos);
        }
        if block == self.func.entry && !raw.params.is_empty() {
            let message = "the entry block's parameters are the function's; state none here";
            self.error(Code::Syntax, raw.number.pos, message);
        }
        for (name, ty) in &raw.params {
            let ty = self.ty(ty);
            let value = self.func.dfg.append_param(block, ty);
            self.define_value(*name, value);
        }
        for inst in &raw.insts {
            self.define_inst(block, inst);
        }
    }

    fn define_inst(&mut self, block: Block, raw: &'r RawInst<'a>) {
        let types: SmallVec<[L::Type; 2]> = raw.types.iter().map(|ty| self.ty(ty)).collect();
        let Some(op) = L::Op::from_name(raw.op.it) else {
            let message = format!("a {} has no op `{}`", L::KEYWORD, quoted(raw.op.it));
            self.error(Code::UnknownOp, raw.op.pos, message);
            // The results stay defined, so that their uses are no mistakes of their own.
            for (i, &name) in raw.results.iter().enumerate() {
                let ty = types.get(i).copied().unwrap_or(L::Type::stand_in());
                let value = self.func.dfg.append_param(self.func.entry, ty);
                self.define_value(name, value);
            }
            self.regions(raw);
            return;
        };
        if types.len() != raw.results.len() {
            let count = |n: usize, what: &str| match n {
                0 => format!("no {what}s"),
                1 => format!("1 {what}"),
                _ => format!("{n} {what}s"),
            };
            let message = format!(
                "{} but {}; state one type for each result after `:`",
                count(raw.results.len(), "result"),
                count(types.len(), "type"),
            );
            self.error(Code::Results, raw.op.pos, message);
        }
        let mut data = InstData::new(op, &[]);
        let errors_before = self.errors.len();
        data.attrs = self.attrs(op, raw, types.first().map_or(Elem::I64, ValueType::elem));
        data.loc = SourceLoc(raw.source_line.map(|line| SourceLine(line, 0)).into());
        // An attribute that could not be read would be reported as missing.
        let attrs_are_complete = self.errors.len() == errors_before;
        let inst = self.func.dfg.make_inst(data, &types);
        self.func.order.append(block, inst);
        self.lines.insts[inst] = raw.op.pos;
        let results = self.func.dfg.insts[inst].results.clone();
        for (&name, value) in raw.results.iter().zip(results) {
            self.define_value(name, value);
        }
        let regions = self.regions(raw);
        self.func.dfg.insts[inst].blocks = regions.into_iter().map(BlockCall::region).collect();
        self.pending.push((inst, raw, attrs_are_complete));
    }

    fn regions(&mut self, raw: &'r RawInst<'a>) -> Vec<Block> {
        let mut blocks = Vec::new();
        for region in &raw.regions {
            let block = self.func.dfg.make_block();
            self.define_block(block, region);
            blocks.push(block);
        }
        blocks
    }

    /// What a slot holds; the verifier looks at numbers and sizes.
    fn buffer(&mut self, slot: Slot, stages: u32, ty: &RawType) {
        match (ty.elem.scalar(), ty.extent) {
            (Some(elem), RawExtent::Block(shape, None)) => {
                self.func.buffers[slot] = Some(BufferData {
                    elem,
                    shape,
                    stages,
                });
            }
            _ => {
                let message = "a slot holds blocks of numbers without layout, as in f16[64,32]";
                self.error(Code::Type, ty.pos, message);
            }
        }
    }

    /// The layout that a type names by its number, if it names one that is there.
    fn layout(&mut self, number: Option<u32>, raw: &RawType) -> Option<LayoutId> {
        let number = number?;
        let layout = self.layouts.get(&number).copied();
        if layout.is_none() {
            let message = format!("layout #{number} is not defined");
            self.error(Code::Undefined, raw.pos, message);
        }
        layout
    }

    fn ty(&mut self, raw: &RawType) -> L::Type {
        let extent = match raw.extent {
            RawExtent::Single => Extent::Single,
            RawExtent::Pack(count) => Extent::Pack(count),
            RawExtent::Block(shape, number) => Extent::Block(shape, self.layout(number, raw)),
            RawExtent::Shared(shape, number) => Extent::Shared(shape, self.layout(number, raw)),
        };
        L::Type::from_extent(raw.elem, extent).unwrap_or_else(|| {
            let message = match extent {
                Extent::Pack(_) => {
                    "packs exist in a `thread` alone; a kernel has blocks, as in f32[16]"
                }
                _ => "blocks exist in a `kernel` alone; a thread has packs, as in f32 x 8",
            };
            self.error(Code::Type, raw.pos, message);
            L::Type::stand_in()
        })
    }

    fn attrs(&mut self, op: L::Op, raw: &RawInst<'_>, elem: Elem) -> SmallVec<[Attr; 2]> {
        let mut attrs = SmallVec::new();
        for raw_attr in &raw.attrs {
            let key = raw_attr.key.it;
            let Some(kind) = AttrKind::from_key(key) else {
                let info = op.info();
                let known = [info.required, info.optional].concat().join(", ");
                let known = if known.is_empty() { "none" } else { &known };
                let message = format!("no attribute `{}`; `{op}` takes {known}", quoted(key));
                self.error(Code::Attribute, raw_attr.key.pos, message);
                continue;
            };
            match self.attr(kind, raw_attr, elem) {
                Ok(attr) => attrs.push(attr),
                Err((code, problem)) => self.error(code, raw_attr.key.pos, problem),
            }
        }
        attrs
    }

    fn attr(&self, kind: AttrKind, raw: &RawAttr<'_>, elem: Elem) -> Result<Attr, (Code, String)> {
        let bad = |problem: String| {
            (
                Code::Attribute,
                format!("attribute `{}` {problem}", kind.key()),
            )
        };
        let int = |text: &str| {
            let number = match text.strip_prefix("0x") {
                Some(hex) => i128::from_str_radix(hex, 16),
                None => text.parse(),
            };
            number.map_err(|_| bad(format!("has no number in `{}`", quoted(text))))
        };
        let literal = match (&raw.literal, kind) {
            (RawLiteral::Word(text) | RawLiteral::Number(text), AttrKind::Value) => {
                let bits = number::parse(text, elem).map_err(|e| (Code::Number, e))?;
                return Ok(Attr::Value(bits));
            }
            (RawLiteral::Absent, _) => Literal::Absent,
            (RawLiteral::Word(word), _) => Literal::Name((*word).to_owned()),
            (RawLiteral::Number(text), _) => Literal::Int(int(text)?),
            (RawLiteral::Text(text), _) => Literal::Text(text.clone()),
            (RawLiteral::List(list), _) => Literal::List(
                list.iter()
                    .map(|text| int(text))
                    .collect::<Result<_, _>>()?,
            ),
        };
        match kind.attr(&literal).map_err(bad)? {
            // What stands there is the slot's number in the text.
            Attr::Slot(slot) => match self.slots.get(&slot.as_u32()) {
                Some(&slot) => Ok(Attr::Slot(slot)),
                None => Err((Code::Undefined, format!("{slot} is not defined"))),
            },
            Attr::LeftSlot(slot) => match self.slots.get(&slot.as_u32()) {
                Some(&slot) => Ok(Attr::LeftSlot(slot)),
                None => Err((Code::Undefined, format!("{slot} is not defined"))),
            },
            Attr::Bars(slot) => match self.slots.get(&slot.as_u32()) {
                Some(&slot) => Ok(Attr::Bars(slot)),
                None => Err((Code::Undefined, format!("{slot} is not defined"))),
            },
            attr => Ok(attr),
        }
    }

    fn use_values(&mut self, names: &[At<u32>]) -> ValueList {
        let mut values = ValueList::new();
        for name in names {
            match self.values.get(&name.it) {
                Some(&value) => values.push(value),
                None => {
                    let message = format!("v{} is not defined", name.it);
                    self.error(Code::Undefined, name.pos, message);
                }
            }
        }
        values
    }

    /// Adds operands and targets, and checks the whole.
    fn finish_inst(&mut self, inst: Inst, raw: &RawInst<'_>, attrs_are_complete: bool) {
        let errors_before = self.errors.len();
        let args = self.use_values(&raw.operands);
        let mut calls: SmallVec<[BlockCall; 2]> = SmallVec::new();
        for target in &raw.targets {
            let args = self.use_values(&target.args);
            match self.blocks.get(&target.block.it) {
                Some(&block) => calls.push(BlockCall { block, args }),
                None => {
                    let message = format!("block{} is not defined", target.block.it);
                    self.error(Code::Undefined, target.block.pos, message);
                }
            }
        }
        let data = &mut self.func.dfg.insts[inst];
        data.args = args;
        data.blocks.extend(calls);
        // Results that the text lacks types for were reported where they stand.
        let complete = raw.types.len() == raw.results.len() && self.errors.len() == errors_before;
        if complete && attrs_are_complete && self.checks == Checks::Types {
            self.check_types(inst, raw);
        }
    }

    fn check_types(&mut self, inst: Inst, raw: &RawInst<'_>) {
        let dfg = &self.func.dfg;
        let data = &dfg.insts[inst];
        let args: SmallVec<[L::Type; 4]> = data.args.iter().map(|&v| dfg.ty(v)).collect();
        let given: SmallVec<[L::Type; 2]> = data.results.iter().map(|&v| dfg.ty(v)).collect();
        let operands = rules::Operands {
            args: &args,
            attrs: &data.attrs,
            given: &given,
        };
        let op = data.op;
        match L::result_types(op, &operands) {
            Ok(types) if types[..] == given[..] => {}
            Ok(types) => {
                let list = |types: &[L::Type]| match types {
                    [] => "no result".to_owned(),
                    _ => listed(types.iter().map(ToString::to_string)),
                };
                let message = format!("{op} gives {}, found {}", list(&types), list(&given));
                self.error(Code::Results, raw.op.pos, message);
            }
            Err(problem @ rules::TypeError::Result { .. }) => {
                self.error(Code::Results, raw.op.pos, format!("{op}: {problem}"));
            }
            Err(
                problem @ (rules::TypeError::MissingAttribute(_)
                | rules::TypeError::UnknownAttribute(_)
                | rules::TypeError::BadAttribute { .. }),
            ) => self.error(Code::Attribute, raw.op.pos, format!("{op}: {problem}")),
            Err(
                problem @ (rules::TypeError::OperandCount { .. }
                | rules::TypeError::Operand { .. }
                | rules::TypeError::ForeignValue { .. }),
            ) => self.error(Code::Operands, raw.op.pos, format!("{op}: {problem}")),
        }
    }
}
