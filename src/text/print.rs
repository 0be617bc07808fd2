//! Writes the text form.
//!
//! Output is canonical: entities are numbered densely in order of the text, layouts that no type uses are
//! left out, and attributes stand in the order of the op table. A function that breaks rules of the
//! verifier is printed too, so that it can be looked at: what stands nowhere is printed as `?v7`, and an
//! attribute or block at an unexpected place appears where it is.

use std::fmt::{self, Write as _};

use cranelift_entity::{EntityRef, SecondaryMap};

use super::lexer::{is_word, quote};
use super::number;
use super::parse::MAX_NESTING;
use crate::ir::attrs::Attr;
use crate::ir::dfg::InstData;
use crate::ir::entities::{AnyEntity, Block, Inst, Value};
use crate::ir::function::Function;
use crate::ir::level::Level;
use crate::ir::literal::Literal;
use crate::ir::ops::Opcode;
use crate::ir::types::{Elem, ValueType};
use crate::linear_layout::pool::LayoutId;

/// Which numbers entities are printed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbering {
    /// In order of the text, from zero.
    Dense,
    /// The numbers they have in the tables, as messages name them.
    Own,
}

/// Something to be said about parts of a function, printed as comments under them.
pub trait Notes {
    /// The notes about an entity, one line each.
    fn notes(&self, at: AnyEntity) -> Vec<String>;
}

/// Nothing to be said.
#[derive(Clone, Copy, Debug)]
pub struct NoNotes;

impl Notes for NoNotes {
    fn notes(&self, _at: AnyEntity) -> Vec<String> {
        Vec::new()
    }
}

/// The text of a function.
pub fn print<L: Level>(func: &Function<L>) -> String {
    print_with(func, Numbering::Dense, &NoNotes)
}

/// The text of a function with notes in it.
pub fn print_with<L: Level>(func: &Function<L>, numbering: Numbering, notes: &dyn Notes) -> String {
    let mut printer = Printer {
        func,
        names: Names::new(func, numbering),
        notes,
        out: String::new(),
    };
    printer.function();
    printer.out
}

impl<L: Level> fmt::Display for Function<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&print(self))
    }
}

/// Text that writes an entity by its printed number.
struct Name(&'static str, Option<usize>, usize);

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Name(prefix, printed, own) = self;
        match printed {
            Some(number) => write!(f, "{prefix}{number}"),
            None => write!(f, "?{prefix}{own}"),
        }
    }
}

/// A map from entities to printed numbers.
struct Numbers<K: EntityRef> {
    /// Number plus one; zero for none.
    map: SecondaryMap<K, usize>,
    count: usize,
}

impl<K: EntityRef> Numbers<K> {
    fn new() -> Numbers<K> {
        Numbers {
            map: SecondaryMap::new(),
            count: 0,
        }
    }

    fn get(&self, key: K) -> Option<usize> {
        self.map.get(key).and_then(|n| n.checked_sub(1))
    }

    /// Numbers an entity; false if it has a number already.
    fn add(&mut self, key: K, numbering: Numbering) -> bool {
        if self.get(key).is_some() {
            return false;
        }
        self.map[key] = 1 + match numbering {
            Numbering::Dense => self.count,
            Numbering::Own => key.index(),
        };
        self.count += 1;
        true
    }
}

/// The printed numbers of a function's entities.
struct Names {
    values: Numbers<Value>,
    blocks: Numbers<Block>,
    layouts: Numbers<LayoutId>,
    /// Layouts in printed order.
    used_layouts: Vec<LayoutId>,
}

impl Names {
    fn new<L: Level>(func: &Function<L>, numbering: Numbering) -> Names {
        let mut names = Names {
            values: Numbers::new(),
            blocks: Numbers::new(),
            layouts: Numbers::new(),
            used_layouts: Vec::new(),
        };
        walk(func, |step| match step {
            Step::Block(block) => {
                names.blocks.add(block, numbering);
                if let Some(data) = func.dfg.blocks.get(block) {
                    names.add_values(func, &data.params, numbering);
                }
            }
            Step::Inst(_, data) => names.add_values(func, &data.results, numbering),
            Step::Again(_) | Step::NextRegion | Step::EndRegions => {}
        });
        names
    }

    fn add_values<L: Level>(&mut self, func: &Function<L>, values: &[Value], numbering: Numbering) {
        for &value in values {
            let Some(data) = func.dfg.values.get(value) else {
                continue;
            };
            self.values.add(value, numbering);
            let layout = data.ty.layout();
            if let Some(layout) = layout.filter(|&l| func.layouts.get(l).is_some())
                && self.layouts.add(layout, numbering)
            {
                self.used_layouts.push(layout);
            }
        }
    }

    fn value(&self, value: Value) -> Name {
        Name("v", self.values.get(value), value.index())
    }

    fn block(&self, block: Block) -> Name {
        Name("block", self.blocks.get(block), block.index())
    }
}

/// A step of [`walk`].
enum Step<'a, L: Level> {
    Block(Block),
    /// A block that was met before or is not in the table, which no valid function has.
    Again(Block),
    Inst(Inst, &'a InstData<L>),
    NextRegion,
    EndRegions,
}

/// Visits everything in order of the text. The stack is explicit because nesting has no bound until the
/// verifier has seen the function.
fn walk<'a, L: Level>(func: &'a Function<L>, mut visit: impl FnMut(Step<'a, L>)) {
    enum Work {
        Block(Block),
        Insts(Block, usize),
        NextRegion,
        EndRegions,
    }
    let mut seen: SecondaryMap<Block, bool> = SecondaryMap::new();
    let mut stack: Vec<Work> = func
        .order
        .blocks
        .iter()
        .rev()
        .map(|&b| Work::Block(b))
        .collect();
    while let Some(work) = stack.pop() {
        match work {
            Work::Block(block)
                if !func.dfg.blocks.is_valid(block)
                    || std::mem::replace(&mut seen[block], true) =>
            {
                visit(Step::Again(block));
            }
            Work::Block(block) => {
                visit(Step::Block(block));
                stack.push(Work::Insts(block, 0));
            }
            Work::Insts(block, index) => {
                let Some(&inst) = func.order.insts(block).get(index) else {
                    continue;
                };
                stack.push(Work::Insts(block, index + 1));
                let Some(data) = func.dfg.insts.get(inst) else {
                    continue;
                };
                visit(Step::Inst(inst, data));
                if data.op.info().owns_regions() && !data.blocks.is_empty() {
                    stack.push(Work::EndRegions);
                    for (i, call) in data.blocks.iter().enumerate().rev() {
                        stack.push(Work::Block(call.block));
                        if i > 0 {
                            stack.push(Work::NextRegion);
                        }
                    }
                }
            }
            Work::NextRegion => visit(Step::NextRegion),
            Work::EndRegions => visit(Step::EndRegions),
        }
    }
}

struct Printer<'a, L: Level> {
    func: &'a Function<L>,
    names: Names,
    notes: &'a dyn Notes,
    out: String,
}

impl<L: Level> Printer<'_, L> {
    /// Appends to the text. Writing to a string does not fail.
    fn put(&mut self, text: fmt::Arguments<'_>) {
        let _ = self.out.write_fmt(text);
    }

    fn indent(&mut self, depth: usize) {
        // Beyond what can be read back indentation would only make the text quadratic.
        for _ in 0..depth.min(MAX_NESTING + 1) {
            self.out.push_str("    ");
        }
    }

    fn note(&mut self, at: impl Into<AnyEntity>, depth: usize) {
        for note in self.notes.notes(at.into()) {
            for line in note.lines() {
                self.indent(depth);
                self.put(format_args!("; ^ {line}\n"));
            }
        }
    }

    fn list<T>(&mut self, items: &[T], mut item: impl FnMut(&mut Self, &T)) {
        for (i, it) in items.iter().enumerate() {
            if i > 0 {
                self.out.push_str(", ");
            }
            item(self, it);
        }
    }

    fn values(&mut self, values: &[Value]) {
        self.list(values, |p, &v| {
            let name = p.names.value(v);
            p.put(format_args!("{name}"));
        });
    }

    fn ty_of(&mut self, value: Value) {
        let Some(data) = self.func.dfg.values.get(value) else {
            return self.out.push_str("?type");
        };
        // Layouts without a number are not in the pool; their own number shows that best.
        let names = &self.names.layouts;
        let ty = data
            .ty
            .map_layout(|id| names.get(id).map_or(id, LayoutId::new));
        self.put(format_args!("{ty}"));
    }

    fn function(&mut self) {
        let func = self.func;
        let name = if is_word(&func.name) {
            func.name.clone()
        } else {
            quote(&func.name)
        };
        self.put(format_args!("{} @{name}(", L::KEYWORD));
        let params = func
            .dfg
            .blocks
            .get(func.entry)
            .map_or(&[][..], |data| &data.params);
        let numbered: Vec<(usize, Value)> = params.iter().copied().enumerate().collect();
        self.list(&numbered, |p, &(i, value)| {
            let number = p.names.value(value);
            let name = func.param_names.get(i).map_or("", |name| name);
            p.put(format_args!("{number} {}: ", quote(name)));
            p.ty_of(value);
            let divisible = func.param_hints.get(i).map_or(0, |hints| hints.promised());
            if divisible != 0 {
                p.put(format_args!(" {{divisible = {divisible}}}"));
            }
        });
        let whole = func.partitions.values().next();
        self.put(format_args!(
            ") warps({})",
            whole.map_or(0, |p| p.num_warps)
        ));
        if func.fixed_warps {
            self.out.push_str(" fixed");
        }
        if let Some(groups) = whole.map(|p| p.groups).filter(|&groups| groups != 1) {
            self.put(format_args!(" groups({groups})"));
        }
        if let Some(registers) = whole.and_then(|p| p.max_registers) {
            self.put(format_args!(" registers({registers})"));
        }
        if func.persistent {
            self.out.push_str(" persistent");
        }
        self.out.push_str(" {\n");
        self.note(AnyEntity::Function, 1);
        for &value in params {
            self.note(value, 1);
        }
        self.items();
        self.body();
        self.out.push_str("}\n");
    }

    fn items(&mut self) {
        let func = self.func;
        for id in self.names.used_layouts.clone() {
            let layout = &func.layouts[id];
            let number = Name("#", self.names.layouts.get(id), id.index());
            let shape = layout.shape();
            self.put(format_args!("    layout {number} = {layout} : [{shape}]\n"));
            self.note(id, 1);
        }
        for (slot, data) in &func.slots {
            let (bytes, align) = (data.bytes, data.align);
            self.put(format_args!("    {slot} = {bytes} bytes align {align}"));
            if let Some(offset) = data.offset {
                self.put(format_args!(" at {offset}"));
            }
            if data.by_group {
                self.out.push_str(" by_group");
            }
            if let Some(buffer) = func.buffers[slot] {
                let (stages, elem, shape) = (buffer.stages, buffer.elem, buffer.shape);
                self.put(format_args!(" holds {stages} of {elem}[{shape}]"));
            }
            self.out.push('\n');
            self.note(slot, 1);
        }
        for (part, data) in func.partitions.iter().skip(1) {
            let (warps, first) = (data.num_warps, data.first_warp);
            self.put(format_args!("    {part} = {warps} warps from {first}"));
            if let Some(registers) = data.max_registers {
                self.put(format_args!(" registers {registers}"));
            }
            self.out.push('\n');
            self.note(part, 1);
        }
        for (i, recipe) in (0..).zip(&func.maps) {
            self.put(format_args!("    map{i} = {recipe}\n"));
            self.note(AnyEntity::Map(i), 1);
        }
    }

    fn body(&mut self) {
        let func = self.func;
        let mut depth = 0;
        walk(func, |step| match step {
            Step::Block(block) => self.block(block, depth),
            Step::Again(block) => {
                let name = self.names.block(block);
                self.indent(depth);
                self.put(format_args!("; {name} is not here\n"));
            }
            Step::Inst(inst, data) => {
                let owns = self.inst(data, depth + 1);
                depth += usize::from(owns);
                self.note(inst, depth + 1);
                for &value in &data.results {
                    self.note(value, depth + 1);
                }
            }
            Step::NextRegion => {
                self.indent(depth);
                self.out.push_str("} {\n");
            }
            Step::EndRegions => {
                self.indent(depth);
                self.out.push_str("}\n");
                depth -= 1;
            }
        });
    }

    fn block(&mut self, block: Block, depth: usize) {
        let func = self.func;
        let name = self.names.block(block);
        self.indent(depth);
        self.put(format_args!("{name}"));
        let params = func
            .dfg
            .blocks
            .get(block)
            .map_or(&[][..], |data| &data.params);
        let stated = block != func.entry && !params.is_empty();
        if stated {
            self.out.push('(');
            self.list(params, |p, &v| {
                let name = p.names.value(v);
                p.put(format_args!("{name}: "));
                p.ty_of(v);
            });
            self.out.push(')');
        }
        self.out.push_str(":\n");
        self.note(block, depth + 1);
        if stated {
            for &value in params {
                self.note(value, depth + 1);
            }
        }
    }

    /// Prints an instruction up to the end of its line; true if it opens regions.
    fn inst(&mut self, data: &InstData<L>, depth: usize) -> bool {
        let info = data.op.info();
        self.indent(depth);
        if !data.results.is_empty() {
            self.values(&data.results);
            self.out.push_str(" = ");
        }
        self.out.push_str(info.name);
        if !data.args.is_empty() {
            self.out.push(' ');
            self.values(&data.args);
        }
        let owns = info.owns_regions() && !data.blocks.is_empty();
        if !owns && !data.blocks.is_empty() {
            self.out
                .push_str(if data.args.is_empty() { " " } else { ", " });
            self.list(&data.blocks, |p, call| {
                let name = p.names.block(call.block);
                p.put(format_args!("{name}"));
                if !call.args.is_empty() {
                    p.out.push('(');
                    p.values(&call.args);
                    p.out.push(')');
                }
            });
        }
        let elem = data
            .results
            .first()
            .and_then(|&v| self.func.dfg.values.get(v))
            .map_or(Elem::I64, |value| value.ty.elem());
        self.attrs(data, elem);
        if !data.results.is_empty() {
            self.out.push_str(" : ");
            self.list(&data.results, |p, &v| p.ty_of(v));
        }
        if let Some(line) = data.loc.0.expand() {
            self.put(format_args!(" @{}", line.0));
        }
        self.out.push_str(if owns { " {\n" } else { "\n" });
        owns
    }

    fn attrs(&mut self, data: &InstData<L>, elem: Elem) {
        if data.attrs.is_empty() {
            return;
        }
        let info = data.op.info();
        let mut attrs: Vec<&Attr> = data.attrs.iter().collect();
        let keys: Vec<&str> = info.required.iter().chain(info.optional).copied().collect();
        attrs.sort_by_key(|attr| {
            let position = keys.iter().position(|&key| key == attr.kind().key());
            position.unwrap_or(keys.len())
        });
        self.out.push_str(" {");
        self.list(&attrs, |p, attr| {
            p.out.push_str(attr.kind().key());
            p.payload(attr, elem);
        });
        self.out.push('}');
    }

    fn payload(&mut self, attr: &Attr, elem: Elem) {
        if let Attr::Value(bits) = attr {
            let text = number::print(*bits, elem);
            return self.put(format_args!(" = {text}"));
        }
        match attr.to_literal() {
            Literal::Absent => {}
            Literal::Name(name) => self.put(format_args!(" = {name}")),
            Literal::Int(number) => self.put(format_args!(" = {number}")),
            Literal::Text(text) => self.put(format_args!(" = {}", quote(&text))),
            Literal::List(list) => {
                self.out.push_str(" = [");
                self.list(&list, |p, number| p.put(format_args!("{number}")));
                self.out.push(']');
            }
        }
    }
}
