//! Texts of kernels: products in loops, choices and loops that end early.
//!
//! A kernel carries a sum, in some kernels a second one, and in some a left factor in registers, which is read again where it
//! changes while a product of it may be under way, and which sums become. Factors are boxes of tensors or masked blocks behind pointers.

use std::fmt::Write;

use super::{PITCH, UNIT};
use crate::fuzzing::random::Random;

/// Deepest nesting of loops and choices.
const MAX_DEPTH: usize = 3;
/// Most products in the text.
const MAX_PRODUCTS: usize = 4;

/// What is in scope where a statement stands.
#[derive(Clone)]
struct Scope {
    /// The sum so far.
    sum: String,
    /// Another one, in some kernels.
    other: Option<String>,
    /// A coordinate that loops carry.
    position: String,
    /// The counter of the innermost loop.
    counter: String,
    /// A left factor that was loaded further out.
    held: Option<String>,
    /// A left factor in registers that loops carry, in some kernels.
    kept: Option<String>,
}

impl Scope {
    /// What loops and choices carry, and its places.
    fn carried(&mut self) -> Vec<&mut String> {
        let (other, kept) = (self.other.as_mut(), self.kept.as_mut());
        let all = [Some(&mut self.sum), other, Some(&mut self.position), kept];
        all.into_iter().flatten().collect()
    }

    fn words(&self) -> String {
        let mut scope = self.clone();
        let words: Vec<String> = scope.carried().into_iter().map(|it| it.clone()).collect();
        words.join(", ")
    }
}

/// Tensors, and what every address is made of.
#[derive(Clone, Default)]
struct Given {
    /// Tensor maps of the factors.
    maps: [String; 2],
    zero: String,
    /// Elements of a row that there are: an i32.
    inside: String,
}

pub(super) struct Generator<'a> {
    random: &'a mut Random,
    grid: [u32; 3],
    text: String,
    values: usize,
    blocks: usize,
    depth: usize,
    products: usize,
    warps: usize,
    /// Columns of the result, and the length of a box.
    columns: usize,
    length: usize,
    elem: &'static str,
    sum: &'static str,
    is_turned: bool,
    /// Whether factors are boxes that warps of their own can bring, and there is nothing beside a sum.
    of_boxes: bool,
    /// How many factors in a hundred are behind pointers.
    behind_pointers: usize,
    given: Given,
}

impl Generator<'_> {
    pub(super) fn new(random: &mut Random, grid: [u32; 3], of_boxes: bool) -> Generator<'_> {
        let elem = random.pick(&["f16", "f16", "bf16", "i8", "f32"]);
        let is_turned = elem == "i8" || random.chance(50);
        // Products of words are computed transposed where these are rows of a unit.
        let columns: &[usize] = match (is_turned, elem) {
            (true, _) => &[8, 16],
            (false, "f32") => &[64],
            (false, _) => &[16],
        };
        Generator {
            text: String::new(),
            values: 8,
            blocks: 1,
            depth: 1,
            products: 0,
            warps: random.pick(&[4, 4, 8]),
            columns: random.pick(columns),
            length: if elem == "i8" {
                32
            } else {
                random.pick(&[16, 32])
            },
            elem,
            sum: if elem == "i8" { "i32" } else { "f32" },
            is_turned,
            of_boxes,
            behind_pointers: match of_boxes {
                true => 0,
                false => random.pick(&[0, 0, 30, 100]),
            },
            given: Given::default(),
            grid,
            random,
        }
    }

    fn rows(&self) -> usize {
        16 * self.warps
    }

    fn line(&mut self, words: &str) {
        _ = writeln!(self.text, "{}{words}", "    ".repeat(self.depth));
    }

    fn name(&mut self) -> String {
        self.values += 1;
        format!("v{}", self.values - 1)
    }

    fn value(&mut self, op: &str, ty: &str) -> String {
        let name = self.name();
        self.line(&format!("{name} = {op} : {ty}"));
        name
    }

    fn number(&mut self, number: i64) -> String {
        self.value(&format!("const {{value = {number}}}"), "i32")
    }

    /// A constant of the type of factors or sums, in a shape.
    fn constant(&mut self, number: i64, ty: &str) -> String {
        let point = if ty.starts_with('i') { "" } else { ".0" };
        self.value(&format!("const {{value = {number}{point}}}"), ty)
    }

    /// Opens a region.
    fn enter(&mut self, params: &str) {
        let number = self.blocks;
        self.blocks += 1;
        self.line(&format!("block{number}{params}:"));
        self.depth += 1;
    }

    fn leave(&mut self, last: &str, end: &str) {
        self.line(last);
        self.depth -= 1;
        self.line(end);
    }

    fn sum_type(&self) -> String {
        format!("{}[{},{}]", self.sum, self.rows(), self.columns)
    }

    fn left_type(&self) -> String {
        format!("{}[{},{}]", self.elem, self.rows(), self.length)
    }

    /// Types of what a scope carries.
    fn types(&self, scope: &Scope) -> String {
        let sums = 1 + usize::from(scope.other.is_some());
        let mut types = vec![self.sum_type(); sums];
        types.push("i32".to_owned());
        types.extend(scope.kept.is_some().then(|| self.left_type()));
        types.join(", ")
    }

    /// The scope with new names for all that it carries, and these with their types, for a region that takes them.
    fn renamed(&mut self, scope: &Scope) -> (Scope, String) {
        let mut inner = scope.clone();
        let types = self.types(scope);
        let mut types = types.split(", ");
        let mut params = Vec::new();
        for place in inner.carried() {
            *place = self.name();
            params.push(format!("{place}: {}", types.next().unwrap_or_default()));
        }
        (inner, params.join(", "))
    }

    pub(super) fn text(mut self) -> String {
        let (elem, sum, rows, columns) = (self.elem, self.sum, self.rows(), self.columns);
        let length = self.length;
        let warps = self.warps;
        let hint = "{divisible = 16}";
        self.text = format!(
            "kernel @k(v0 \"a\": ptr<{elem}> {hint}, v1 \"b\": ptr<{elem}> {hint}, v2 \"c\": ptr<{sum}> {hint}, v3 \"table\": ptr<i32>, \
             v4 \"n\": i32, v5 \"m\": i32, v6 \"some\": i1, v7 \"d\": ptr<{elem}> {hint}) warps({warps}) {{\nblock0:\n"
        );
        let yes = self.value("const {value = true}", "i1");
        let [pitch, high, wide] =
            [PITCH, rows, columns].map(|n| self.value(&format!("const {{value = {n}}}"), "i64"));
        // Boxes may end in front of the rows.
        let ends = PITCH - self.random.pick(&[0, 0, 16, 24]);
        let inside = self.value(&format!("const {{value = {ends}}}"), "i64");
        let map = format!("map<{elem}>");
        let a = self.value(
            &format!(
                "tensor_map v0, {yes}, {high}, {inside}, {pitch} {{values = [{rows}, {length}]}}"
            ),
            &map,
        );
        let b = match self.is_turned {
            true => format!(
                "tensor_map v1, {yes}, {wide}, {inside}, {pitch} {{values = [{columns}, {length}]}}"
            ),
            false => format!(
                "tensor_map v1, {yes}, {inside}, {wide}, {wide} {{values = [{length}, {columns}]}}"
            ),
        };
        let b = self.value(&b, &map);
        let zero = self.number(0);
        self.given = Given {
            maps: [a, b],
            zero: zero.clone(),
            inside: self.number(ends as i64),
        };
        let programs = [0, 1, 2].map(|axis| {
            let id = format!("program_id {{axis = {axis}}}");
            self.value(&id, "i32")
        });
        // Which program this is, counted along all axes.
        let mut number = programs[2].clone();
        for axis in [1, 0] {
            let count = self.number(i64::from(self.grid[axis]));
            let row = self.value(&format!("imul {number}, {count}"), "i32");
            number = self.value(&format!("iadd {row}, {}", programs[axis]), "i32");
        }
        // What loops may depend on.
        let busiest = (0..3).max_by_key(|&axis| self.grid[axis]).unwrap_or(0);
        let axis = self.random.pick(&[busiest, busiest, 0, 1, 2]);
        let ty = self.sum_type();
        let start = self.constant(0, &ty);
        let has_other = !self.of_boxes && self.random.chance(40);
        let mut scope = Scope {
            other: has_other.then(|| start.clone()),
            sum: start,
            position: zero.clone(),
            counter: programs[axis].clone(),
            held: None,
            kept: None,
        };
        if !self.of_boxes && self.random.chance(60) {
            scope.kept = Some(self.left(&zero));
        }
        self.statements(&mut scope);
        if let Some(other) = &scope.other {
            let other = other.clone();
            scope.sum = self.added(&scope.sum, &other);
        }
        self.leave_block(&number, "v2", sum, [rows, columns], &scope.sum);
        if let Some(kept) = &scope.kept {
            self.leave_block(&number, "v7", elem, [rows, length], kept);
        }
        self.line("return");
        self.text.push_str("}\n");
        self.text
    }

    /// Stores a block to where the results of a program are.
    fn leave_block(&mut self, program: &str, to: &str, elem: &str, shape: [usize; 2], block: &str) {
        let [rows, columns] = shape;
        let count = self.number((rows * columns) as i64);
        let first = self.value(&format!("imul {program}, {count}"), "i32");
        let to = self.value(&format!("addptr {to}, {first}"), &format!("ptr<{elem}>"));
        let at = self.value("arange {start = 0}", &format!("i32[{}]", rows * columns));
        let at = self.value(&format!("reshape {at}"), &format!("i32[{rows},{columns}]"));
        let pointers = format!("ptr<{elem}>[{rows},{columns}]");
        let to = self.value(&format!("splat {to}"), &pointers);
        let to = self.value(&format!("addptr {to}, {at}"), &pointers);
        self.line(&format!("store {to}, {block}"));
    }

    fn statements(&mut self, scope: &mut Scope) {
        let is_outside = self.depth == 1;
        let [keeps, exchanges] = [scope.kept.is_some(), scope.other.is_some()].map(usize::from);
        for _ in 0..self.random.pick(&[1, 1, 2, 3]) {
            let may_nest = self.depth <= MAX_DEPTH;
            let kind = match is_outside {
                true => self
                    .random
                    .weighted(&[1, 12, 1, 2, keeps, exchanges, 3, keeps]),
                false => self
                    .random
                    .weighted(&[8, 4, 3, 3, 2 * keeps, 2 * exchanges, 1, keeps]),
            };
            match kind {
                1 if may_nest => self.count(scope),
                2 if may_nest => self.choose(scope),
                3 => {
                    let at = self.coordinate(scope);
                    scope.held = Some(self.left(&at));
                }
                4 => self.change(scope),
                5 => {
                    if let Some(other) = &mut scope.other {
                        std::mem::swap(other, &mut scope.sum);
                    }
                }
                6 if may_nest => self.while_it_goes(scope),
                7 => self.link(scope),
                _ => self.product(scope),
            }
        }
    }

    /// A coordinate along the sum.
    fn coordinate(&mut self, scope: &Scope) -> String {
        match self.random.weighted(&[10, 6, 2, 1, 1]) {
            0 => {
                let unit = self.number(UNIT);
                self.value(&format!("imul {}, {unit}", scope.counter), "i32")
            }
            1 => scope.position.clone(),
            2 => self.given.zero.clone(),
            3 => {
                let unit = self.number(-UNIT);
                self.value(&format!("imul v5, {unit}"), "i32")
            }
            // Stands in memory: only the program reads that.
            _ if self.random.chance(80) => scope.position.clone(),
            _ => self.of_table(&scope.counter),
        }
    }

    /// A coordinate in memory.
    fn of_table(&mut self, counter: &str) -> String {
        let seven = self.number(7);
        let at = self.value(&format!("and {counter}, {seven}"), "i32");
        let pointer = self.value(&format!("addptr v3, {at}"), "ptr<i32>");
        self.value(&format!("load {pointer}"), "i32")
    }

    fn left(&mut self, at: &str) -> String {
        let shape = [self.rows(), self.length];
        if self.random.chance(self.behind_pointers) {
            return self.behind("v0", shape, at, PITCH, 1);
        }
        let ty = self.left_type();
        let Given { maps, zero, .. } = &self.given;
        let load = format!("tensor_load {}, {zero}, {at}", maps[0]);
        self.value(&load, &ty)
    }

    fn right(&mut self, at: &str) -> String {
        let (elem, columns, length) = (self.elem, self.columns, self.length);
        let ty = format!("{elem}[{length},{columns}]");
        let is_behind = self.random.chance(self.behind_pointers);
        let Given { maps, zero, .. } = self.given.clone();
        if !self.is_turned {
            if is_behind {
                return self.behind("v1", [length, columns], at, columns, 0);
            }
            return self.value(&format!("tensor_load {}, {at}, {zero}", maps[1]), &ty);
        }
        let rows = match is_behind {
            true => self.behind("v1", [columns, length], at, PITCH, 1),
            false => self.value(
                &format!("tensor_load {}, {zero}, {at}", maps[1]),
                &format!("{elem}[{columns},{length}]"),
            ),
        };
        self.value(&format!("permute {rows} {{dims = [1, 0]}}"), &ty)
    }

    /// What a box holds that begins at a coordinate of a dimension, loaded by pointers and a mask.
    fn behind(
        &mut self,
        base: &str,
        shape: [usize; 2],
        at: &str,
        pitch: usize,
        dim: usize,
    ) -> String {
        let elem = self.elem;
        let block = format!("[{},{}]", shape[0], shape[1]);
        let ints = format!("i32{block}");
        let mut index = [0, 1].map(|dim| {
            let flat = self.value("arange {start = 0}", &format!("i32[{}]", shape[dim]));
            let mut long = [1, 1];
            long[dim] = shape[dim];
            let ty = format!("i32[{},{}]", long[0], long[1]);
            let other = 1 - dim;
            let expanded = self.value(&format!("expand_dims {flat} {{axis = {other}}}"), &ty);
            self.value(&format!("broadcast {expanded}"), &ints)
        });
        let at = self.value(&format!("splat {at}"), &ints);
        index[dim] = self.value(&format!("iadd {}, {at}", index[dim]), &ints);
        let inside = self.given.inside.clone();
        let inside = self.value(&format!("splat {inside}"), &ints);
        // Unsigned, so that nothing in front of it is inside.
        let mask = self.value(
            &format!("icmp {}, {inside} {{ipred = ult}}", index[dim]),
            &format!("i1{block}"),
        );
        let pitch = self.value(&format!("const {{value = {pitch}}}"), &ints);
        let row = self.value(&format!("imul {}, {pitch}", index[0]), &ints);
        let place = self.value(&format!("iadd {row}, {}", index[1]), &ints);
        let pointers = format!("ptr<{elem}>{block}");
        let base = self.value(&format!("splat {base}"), &pointers);
        let from = self.value(&format!("addptr {base}, {place}"), &pointers);
        let ty = format!("{elem}{block}");
        let none = self.constant(0, &ty);
        self.value(&format!("load {from}, {mask}, {none}"), &ty)
    }

    fn added(&mut self, x: &str, y: &str) -> String {
        let op = if self.sum == "i32" { "iadd" } else { "fadd" };
        let ty = self.sum_type();
        self.value(&format!("{op} {x}, {y}"), &ty)
    }

    fn product(&mut self, scope: &mut Scope) {
        if self.products == MAX_PRODUCTS {
            return;
        }
        self.products += 1;
        let at = self.coordinate(scope);
        let left = match (&scope.kept, &scope.held) {
            (Some(kept), _) if self.random.chance(60) => kept.clone(),
            (_, Some(held)) if self.random.chance(60) => held.clone(),
            _ => self.left(&at),
        };
        let at = match self.random.chance(80) {
            true => at,
            false => self.coordinate(scope),
        };
        let right = self.right(&at);
        let ty = self.sum_type();
        // Of two sums either; or one that begins anew and is added.
        let begins = self.random.chance(10);
        let exchanged = scope.other.is_some() && self.random.chance(30);
        let place = match &mut scope.other {
            Some(other) if exchanged => other,
            _ => &mut scope.sum,
        };
        let mut sum = std::mem::take(place);
        let start = match begins {
            true => self.constant(0, &ty),
            false => sum.clone(),
        };
        let precision = if self.elem == "f32" { "tf32" } else { "ieee" };
        let product = self.value(
            &format!("dot {left}, {right}, {start} {{precision = {precision}}}"),
            &ty,
        );
        sum = match begins {
            true => self.added(&sum, &product),
            false => product,
        };
        // What becomes of the sum before it is added to again.
        if self.random.chance(15) {
            sum = self.added(&sum, &sum.clone());
        }
        let place = match &mut scope.other {
            Some(other) if exchanged => other,
            _ => &mut scope.sum,
        };
        *place = sum;
        if self.random.chance(30) {
            self.change(scope);
        }
    }

    /// The left factor that is kept becomes another one: of small whole numbers again.
    fn change(&mut self, scope: &mut Scope) {
        let Some(kept) = scope.kept.clone() else {
            return;
        };
        let ty = self.left_type();
        let is_int = self.elem == "i8";
        scope.kept = Some(match self.random.below(4) {
            0 => self.negative(&kept),
            // At times.
            1 => {
                let one = self.number(1);
                let bit = self.value(&format!("and {}, {one}", scope.counter), "i32");
                let odd = self.value(&format!("icmp {bit}, {one} {{ipred = eq}}"), "i1");
                let truths = ty.replacen(self.elem, "i1", 1);
                let odd = self.value(&format!("splat {odd}"), &truths);
                let negative = self.negative(&kept);
                self.value(&format!("select {odd}, {negative}, {kept}"), &ty)
            }
            2 => {
                let at = self.coordinate(scope);
                self.left(&at)
            }
            _ => {
                let at = self.coordinate(scope);
                let fresh = self.left(&at);
                let op = if is_int { "iadd" } else { "fadd" };
                let both = self.value(&format!("{op} {kept}, {fresh}"), &ty);
                self.small(&both, &ty)
            }
        });
    }

    fn negative(&mut self, kept: &str) -> String {
        let ty = self.left_type();
        if self.elem != "i8" {
            return self.value(&format!("fneg {kept}"), &ty);
        }
        let zero = self.constant(0, &ty);
        self.value(&format!("isub {zero}, {kept}"), &ty)
    }

    /// The numbers cut to -2 and 2.
    fn small(&mut self, x: &str, ty: &str) -> String {
        let (low, high) = match ty.starts_with('i') {
            true => ("smax", "smin"),
            false => ("fmax", "fmin"),
        };
        let nan = if ty.starts_with('i') {
            ""
        } else {
            " {nan = ignore}"
        };
        let least = self.constant(-2, ty);
        let cut = self.value(&format!("{low} {x}, {least}{nan}"), ty);
        let most = self.constant(2, ty);
        self.value(&format!("{high} {cut}, {most}{nan}"), ty)
    }

    /// A sum becomes the left factor, where it has its shape.
    fn link(&mut self, scope: &mut Scope) {
        if scope.kept.is_none() || self.columns != self.length || self.elem == "i8" {
            return self.product(scope);
        }
        let ty = self.sum_type();
        let small = self.small(&scope.sum, &ty);
        let ty = self.left_type();
        scope.kept = Some(match self.elem {
            "f32" => small,
            _ => self.value(&format!("fptrunc {small} {{round = rn}}"), &ty),
        });
    }

    /// The bound of a loop.
    fn bound(&mut self, scope: &Scope) -> String {
        match self.random.below(7) {
            0 => self.random.pick(&["v4", "v5"]).to_owned(),
            1 => scope.counter.clone(),
            2 => "v4".to_owned(),
            // Longer or shorter from one program or iteration to the next, by one or more, or bounded.
            3 => {
                let number = self.random.between(1, 3);
                let number = self.number(number);
                let op = self.random.pick(&["iadd", "isub", "imul", "smin", "sdiv"]);
                let args = match op == "isub" {
                    true => [&number, &scope.counter],
                    false => [&scope.counter, &number],
                };
                self.value(&format!("{op} {}, {}", args[0], args[1]), "i32")
            }
            _ => {
                let number = self.random.between(0, 4);
                self.number(number)
            }
        }
    }

    fn count(&mut self, scope: &mut Scope) {
        let low = match self.random.chance(70) {
            true => self.given.zero.clone(),
            false => self.bound(scope),
        };
        let high = self.bound(scope);
        let step = self.random.pick(&[1, 1, 1, 2]);
        let step = self.number(step);
        let stages = self.random.pick(&[1, 2, 2, 3, 3, 3, 4]);
        let (behind, _) = self.renamed(scope);
        let counter = self.name();
        let (mut inner, params) = self.renamed(scope);
        self.line(&format!(
            "{} = for {low}, {high}, {step}, {} {{stages = {stages}}} : {} {{",
            behind.words(),
            scope.words(),
            self.types(scope)
        ));
        self.enter(&format!("({counter}: i32, {params})"));
        inner.counter = counter;
        self.statements(&mut inner);
        self.advance(&mut inner);
        self.leave(&format!("yield {}", inner.words()), "}");
        *scope = Scope {
            held: scope.held.take(),
            ..behind
        };
    }

    fn advance(&mut self, scope: &mut Scope) {
        if self.random.chance(60) {
            let unit = self.number(UNIT);
            scope.position = self.value(&format!("iadd {}, {unit}", scope.position), "i32");
        }
    }

    /// A loop that ends early: by what it counts, what stands in memory, or what products come to.
    fn while_it_goes(&mut self, scope: &mut Scope) {
        let bound = self.bound(scope);
        let (behind, _) = self.renamed(scope);
        let last = self.name();
        let counter = self.name();
        let (mut head, params) = self.renamed(scope);
        let types = self.types(scope);
        self.line(&format!(
            "{last}, {} = while {}, {} : i32, {types} {{",
            behind.words(),
            self.given.zero.clone(),
            scope.words(),
        ));
        self.enter(&format!("({counter}: i32, {params})"));
        head.counter.clone_from(&counter);
        if self.random.chance(25) {
            self.product(&mut head);
        }
        let goes = self.goes_on(&head, &bound);
        self.leave(
            &format!("condition {goes}, {counter}, {}", head.words()),
            "} {",
        );
        let counter = self.name();
        let (mut inner, params) = self.renamed(scope);
        self.enter(&format!("({counter}: i32, {params})"));
        inner.counter.clone_from(&counter);
        self.statements(&mut inner);
        self.advance(&mut inner);
        let one = self.number(1);
        let next = self.value(&format!("iadd {counter}, {one}"), "i32");
        self.leave(&format!("yield {next}, {}", inner.words()), "}");
        *scope = Scope {
            held: scope.held.take(),
            ..behind
        };
    }

    /// Whether another iteration follows.
    fn goes_on(&mut self, scope: &Scope, bound: &str) -> String {
        // However often a bound asks for it, it ends soon.
        let most = self.number(4);
        let bound = self.value(&format!("smin {bound}, {most}"), "i32");
        let below = self.value(
            &format!("icmp {}, {bound} {{ipred = slt}}", scope.counter),
            "i1",
        );
        // A producer does not know what products come to.
        let kinds = if self.of_boxes { 2 } else { 3 };
        let other = match self.random.below(kinds) {
            0 => return below,
            1 => {
                let number = self.of_table(&scope.counter);
                let limit = self.random.between(2, 7) * UNIT;
                let limit = self.number(limit);
                self.value(&format!("icmp {number}, {limit} {{ipred = slt}}"), "i1")
            }
            _ => {
                let largest = self.largest(&scope.sum);
                let limit = self.random.pick(&[1, 10, 40]);
                let sum = self.sum;
                let limit = self.constant(limit, sum);
                let compare = match sum {
                    "i32" => format!("icmp {largest}, {limit} {{ipred = slt}}"),
                    _ => format!("fcmp {largest}, {limit} {{fpred = olt}}"),
                };
                self.value(&compare, "i1")
            }
        };
        self.value(&format!("and {below}, {other}"), "i1")
    }

    /// The largest element of a sum.
    fn largest(&mut self, sum: &str) -> String {
        let elem = self.sum;
        let op = if elem == "i32" { "smax" } else { "fmax" };
        let nan = if elem == "i32" { "" } else { " {nan = ignore}" };
        let mut held = sum.to_owned();
        for ty in [format!("{elem}[{}]", self.rows()), elem.to_owned()] {
            let axis = usize::from(ty.contains('['));
            let [reduced, x, y] = [(); 3].map(|()| self.name());
            self.line(&format!(
                "{reduced} = reduce {held} {{axis = {axis}}} : {ty} {{"
            ));
            self.enter(&format!("({x}: {elem}, {y}: {elem})"));
            let both = self.value(&format!("{op} {x}, {y}{nan}"), elem);
            self.leave(&format!("yield {both}"), "}");
            held = reduced;
        }
        held
    }

    fn choose(&mut self, scope: &mut Scope) {
        let cond = match self.random.below(4) {
            0 => "v6".to_owned(),
            1 => {
                let one = self.number(1);
                let bit = self.value(&format!("and {}, {one}", scope.counter), "i32");
                let zero = self.given.zero.clone();
                self.value(&format!("icmp {bit}, {zero} {{ipred = eq}}"), "i1")
            }
            2 if self.random.chance(30) => self.goes_on(scope, "v4"),
            _ => self.value(&format!("icmp {}, v5 {{ipred = slt}}", scope.counter), "i1"),
        };
        let (behind, _) = self.renamed(scope);
        self.line(&format!(
            "{} = if {cond} : {} {{",
            behind.words(),
            self.types(scope)
        ));
        for end in ["} {", "}"] {
            self.enter("");
            let mut inner = scope.clone();
            if end == "} {" || self.random.chance(40) {
                self.statements(&mut inner);
            }
            self.leave(&format!("yield {}", inner.words()), end);
        }
        *scope = Scope {
            held: scope.held.take(),
            ..behind
        };
    }
}
