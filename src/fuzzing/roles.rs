//! The target `roles`: products of boxes of tensors in loops and choices, whose blocks warps of their own may bring.
//!
//! Loops in loops and one behind the other, with bounds that are known or not, in which boxes are loaded for products at once or
//! for those of inner loops, at coordinates that count, are carried, or stand in memory, and which run no time or more often.
//! Every pass leaves what the interpreter computes, and the emulator finds no race, no deadlock and the same bytes. Numbers are
//! small and whole, so that sums are exact.

use std::fmt::Write;

use super::Verdict;
use super::generate::{Argument, Case};
use super::passes;
use super::random::Random;
use super::tile_ir::{Judgement, judge, verdict};
use crate::compile::compile;
use crate::ir::types::{Elem, Scalar};
use crate::num::{Format, Overflow, Rounding};
use crate::settings::{Asserts, Options, Policy, Target};
use crate::text::parse::parse_tile;

/// Grids of launches: more programs than a persistent kernel has CTAs, along one axis or several.
const GRIDS: [[u32; 3]; 5] = [[5, 1, 1], [5, 1, 1], [3, 2, 1], [1, 3, 2], [2, 1, 4]];
/// The most programs of these.
const MAX_PROGRAMS: usize = 8;
/// Elements of a row of a tensor.
const PITCH: usize = 128;
/// Coordinates are multiples of this.
const UNIT: i64 = 16;
/// Deepest nesting of loops and choices.
const MAX_DEPTH: usize = 3;
/// Most products in the text.
const MAX_PRODUCTS: usize = 4;

/// Judges the kernel of a seed; a failure is shrunk.
pub fn check(seed: u64) -> Verdict {
    let case = match case(seed) {
        Ok(case) => case,
        Err(message) => return Verdict::Failed(message),
    };
    let both = |case: &Case| match judge(case) {
        Judgement::Passed(_) => passes::judge(case),
        other => other,
    };
    match verdict(&case, both) {
        Verdict::Passed(_) => {
            let kernel = compile(&case.func, case.target, &case.options);
            let has_roles =
                kernel.is_ok_and(|kernel| kernel.ptx.contains("mbarrier.arrive.shared"));
            Verdict::Passed(vec![if has_roles { "with roles" } else { "without" }])
        }
        other => other,
    }
}

/// The kernel of a seed with its arguments.
///
/// # Errors
///
/// What its text is refused for, which is a mistake of the generator.
pub fn case(seed: u64) -> Result<Case, String> {
    let mut random = Random::new(seed);
    let grid = random.pick(&GRIDS);
    let text = Generator::new(&mut random, grid).text();
    let func = parse_tile(&text).map_err(|errors| format!("{errors:?}\n{text}"))?;
    Ok(Case {
        args: arguments(&mut random, &text),
        func,
        grid,
        exact: true,
        options: Options {
            verify_passes: true,
            diversity: random.chance(50).then_some(seed),
            roles: Policy::Always,
            persistent: random.pick(&[Policy::Always, Policy::Auto, Policy::Never]),
            // Waits give up then.
            asserts: match random.chance(20) {
                true => Asserts::Report,
                false => Asserts::Off,
            },
            ..Options::DEFAULT
        },
        target: Target::SM_90A,
    })
}

/// What the kernel is given: factors, room for the sums, a table of coordinates, bounds, a choice.
fn arguments(random: &mut Random, text: &str) -> Vec<Argument> {
    let elem = ["i8", "bf16", "f16"]
        .into_iter()
        .find(|name| text.contains(&format!("\"a\": ptr<{name}>")));
    let (scalar, format) = match elem {
        Some("i8") => (Scalar::I8, None),
        Some("bf16") => (Scalar::Bf16, Some(Format::BF16)),
        _ => (Scalar::F16, Some(Format::F16)),
    };
    let mut factors = |rows: usize| {
        let number = |_| {
            let number = random.between(-2, 2);
            let bits = match format {
                Some(format) => {
                    format.from_f64(number as f64, Rounding::NearestEven, Overflow::Ieee)
                }
                None => number as u64,
            };
            bits.to_le_bytes()[..scalar.bytes() as usize].to_vec()
        };
        Argument::Buffer(scalar, (0..rows * PITCH).flat_map(number).collect())
    };
    let (a, b) = (factors(128), factors(128));
    let sums = match scalar {
        Scalar::I8 => Scalar::I32,
        _ => Scalar::F32,
    };
    let table = (0..8_i32).flat_map(|i| (i * 3 % 8 * UNIT as i32).to_le_bytes());
    let mut number = |least, most| {
        Argument::Number(
            Elem::Num(Scalar::I32),
            random.between(least, most) as u32 as u64,
        )
    };
    let (n, m) = (number(-1, 5), number(0, 3));
    vec![
        a,
        b,
        Argument::Buffer(sums, vec![0; MAX_PROGRAMS * 128 * 16 * 4]),
        Argument::Buffer(Scalar::I32, table.collect()),
        n,
        m,
        Argument::Number(Elem::I1, random.below(2) as u64),
    ]
}

/// What is in scope where a statement stands.
#[derive(Clone)]
struct Scope {
    /// The sum so far.
    sum: String,
    /// A coordinate that loops carry.
    position: String,
    /// The counter of the innermost loop.
    counter: String,
    /// A left factor that was loaded further out.
    held: Option<String>,
}

struct Generator<'a> {
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
}

impl Generator<'_> {
    fn new(random: &mut Random, grid: [u32; 3]) -> Generator<'_> {
        let elem = random.pick(&["f16", "f16", "bf16", "i8"]);
        let is_turned = elem == "i8" || random.chance(50);
        Generator {
            text: String::new(),
            values: 7,
            blocks: 1,
            depth: 1,
            products: 0,
            warps: random.pick(&[4, 4, 8]),
            columns: if is_turned { random.pick(&[8, 16]) } else { 16 },
            length: if elem == "i8" {
                32
            } else {
                random.pick(&[16, 32])
            },
            elem,
            sum: if elem == "i8" { "i32" } else { "f32" },
            is_turned,
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

    /// Opens a region.
    fn enter(&mut self, params: &str) {
        let number = self.blocks;
        self.blocks += 1;
        self.line(&format!("block{number}{params}:"));
        self.depth += 1;
    }

    fn leave(&mut self, handed_on: &[&str], end: &str) {
        self.line(&format!("yield {}", handed_on.join(", ")));
        self.depth -= 1;
        self.line(end);
    }

    fn text(mut self) -> String {
        let (elem, sum, rows, columns) = (self.elem, self.sum, self.rows(), self.columns);
        let length = self.length;
        let warps = self.warps;
        let hint = "{divisible = 16}";
        self.text = format!(
            "kernel @k(v0 \"a\": ptr<{elem}> {hint}, v1 \"b\": ptr<{elem}> {hint}, v2 \"c\": ptr<{sum}> {hint}, v3 \"table\": ptr<i32>, \
             v4 \"n\": i32, v5 \"m\": i32, v6 \"some\": i1) warps({warps}) {{\nblock0:\n"
        );
        let yes = self.value("const {value = true}", "i1");
        let [pitch, high, wide] =
            [PITCH, rows, columns].map(|n| self.value(&format!("const {{value = {n}}}"), "i64"));
        // Boxes may end in front of the rows.
        let inside = PITCH - self.random.pick(&[0, 0, 16, 24]);
        let inside = self.value(&format!("const {{value = {inside}}}"), "i64");
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
        let program = programs[axis].clone();
        let none = if sum == "i32" { "0" } else { "0.0" };
        let start = self.value(
            &format!("const {{value = {none}}}"),
            &format!("{sum}[{rows},{columns}]"),
        );
        let mut scope = Scope {
            sum: start,
            position: zero.clone(),
            counter: program.clone(),
            held: None,
        };
        self.statements(&mut scope, [&a, &b, &zero]);
        let count = self.number((rows * columns) as i64);
        let first = self.value(&format!("imul {number}, {count}"), "i32");
        let c = self.value(&format!("addptr v2, {first}"), &format!("ptr<{sum}>"));
        let at = self.value("arange {start = 0}", &format!("i32[{}]", rows * columns));
        let at = self.value(&format!("reshape {at}"), &format!("i32[{rows},{columns}]"));
        let pointers = format!("ptr<{sum}>[{rows},{columns}]");
        let c = self.value(&format!("splat {c}"), &pointers);
        let c = self.value(&format!("addptr {c}, {at}"), &pointers);
        self.line(&format!("store {c}, {}", scope.sum));
        self.line("return");
        self.text.push_str("}\n");
        self.text
    }

    fn statements(&mut self, scope: &mut Scope, tensors: [&str; 3]) {
        let is_outside = self.depth == 1;
        for _ in 0..self.random.pick(&[1, 1, 2, 3]) {
            let may_nest = self.depth <= MAX_DEPTH;
            let kind = match is_outside {
                true => self.random.weighted(&[1, 12, 1, 2]),
                false => self.random.weighted(&[8, 4, 3, 3]),
            };
            match kind {
                1 if may_nest => self.count(scope, tensors),
                2 if may_nest => self.choose(scope, tensors),
                3 => {
                    let at = self.coordinate(scope, tensors);
                    scope.held = Some(self.left(&at, tensors));
                }
                _ => self.product(scope, tensors),
            }
        }
    }

    /// A coordinate along the sum.
    fn coordinate(&mut self, scope: &Scope, tensors: [&str; 3]) -> String {
        match self.random.weighted(&[10, 6, 2, 1, 1]) {
            0 => {
                let unit = self.number(UNIT);
                self.value(&format!("imul {}, {unit}", scope.counter), "i32")
            }
            1 => scope.position.clone(),
            2 => tensors[2].to_owned(),
            3 => {
                let unit = self.number(-UNIT);
                self.value(&format!("imul v5, {unit}"), "i32")
            }
            // Stands in memory: only the program reads that.
            _ if self.random.chance(80) => scope.position.clone(),
            _ => {
                let seven = self.number(7);
                let at = self.value(&format!("and {}, {seven}", scope.counter), "i32");
                let pointer = self.value(&format!("addptr v3, {at}"), "ptr<i32>");
                self.value(&format!("load {pointer}"), "i32")
            }
        }
    }

    fn left(&mut self, at: &str, [a, _, zero]: [&str; 3]) -> String {
        let ty = format!("{}[{},{}]", self.elem, self.rows(), self.length);
        self.value(&format!("tensor_load {a}, {zero}, {at}"), &ty)
    }

    fn right(&mut self, at: &str, [_, b, zero]: [&str; 3]) -> String {
        let (elem, columns, length) = (self.elem, self.columns, self.length);
        let ty = format!("{elem}[{length},{columns}]");
        if !self.is_turned {
            return self.value(&format!("tensor_load {b}, {at}, {zero}"), &ty);
        }
        let rows = self.value(
            &format!("tensor_load {b}, {zero}, {at}"),
            &format!("{elem}[{columns},{length}]"),
        );
        self.value(&format!("permute {rows} {{dims = [1, 0]}}"), &ty)
    }

    fn product(&mut self, scope: &mut Scope, tensors: [&str; 3]) {
        if self.products == MAX_PRODUCTS {
            return;
        }
        self.products += 1;
        let at = self.coordinate(scope, tensors);
        let left = match &scope.held {
            Some(held) if self.random.chance(60) => held.clone(),
            _ => self.left(&at, tensors),
        };
        let at = match self.random.chance(80) {
            true => at,
            false => self.coordinate(scope, tensors),
        };
        let right = self.right(&at, tensors);
        let ty = format!("{}[{},{}]", self.sum, self.rows(), self.columns);
        scope.sum = self.value(
            &format!("dot {left}, {right}, {} {{precision = ieee}}", scope.sum),
            &ty,
        );
        // What becomes of the sum before it is added to again.
        if self.random.chance(15) {
            let op = if self.sum == "i32" { "iadd" } else { "fadd" };
            scope.sum = self.value(&format!("{op} {0}, {0}", scope.sum), &ty);
        }
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

    fn count(&mut self, scope: &mut Scope, tensors: [&str; 3]) {
        let low = match self.random.chance(70) {
            true => tensors[2].to_owned(),
            false => self.bound(scope),
        };
        let high = self.bound(scope);
        let step = self.random.pick(&[1, 1, 1, 2]);
        let step = self.number(step);
        let stages = self.random.pick(&[1, 2, 2, 3, 3, 3, 4]);
        let ty = format!("{}[{},{}]", self.sum, self.rows(), self.columns);
        let [sum, position, counter, inner_sum, inner_position] = [(); 5].map(|()| self.name());
        self.line(&format!(
            "{sum}, {position} = for {low}, {high}, {step}, {}, {} {{stages = {stages}}} : {ty}, i32 {{",
            scope.sum, scope.position
        ));
        self.enter(&format!(
            "({counter}: i32, {inner_sum}: {ty}, {inner_position}: i32)"
        ));
        let mut inner = Scope {
            sum: inner_sum,
            position: inner_position,
            counter,
            held: scope.held.clone(),
        };
        self.statements(&mut inner, tensors);
        if self.random.chance(60) {
            let unit = self.number(UNIT);
            inner.position = self.value(&format!("iadd {}, {unit}", inner.position), "i32");
        }
        self.leave(&[&inner.sum, &inner.position], "}");
        (scope.sum, scope.position) = (sum, position);
    }

    fn choose(&mut self, scope: &mut Scope, tensors: [&str; 3]) {
        let cond = match self.random.below(3) {
            0 => "v6".to_owned(),
            1 => {
                let one = self.number(1);
                let bit = self.value(&format!("and {}, {one}", scope.counter), "i32");
                self.value(&format!("icmp {bit}, {} {{ipred = eq}}", tensors[2]), "i1")
            }
            _ => self.value(&format!("icmp {}, v5 {{ipred = slt}}", scope.counter), "i1"),
        };
        let ty = format!("{}[{},{}]", self.sum, self.rows(), self.columns);
        let [sum, position] = [(); 2].map(|()| self.name());
        self.line(&format!("{sum}, {position} = if {cond} : {ty}, i32 {{"));
        for end in ["} {", "}"] {
            self.enter("");
            let mut inner = scope.clone();
            if end == "} {" || self.random.chance(40) {
                self.statements(&mut inner, tensors);
            }
            self.leave(&[&inner.sum, &inner.position], end);
        }
        (scope.sum, scope.position) = (sum, position);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzzing::tile_ir::interpret;
    use crate::ir::ops::TileOp;
    use crate::pipeline::optimize;
    use crate::tile::form_roles::form_roles;
    use crate::tile::order_programs::uneven;
    use crate::tile::resources::ResourcePlan;
    use crate::verify::verify;

    /// Policy wherever they can be.
    const RESOURCES: ResourcePlan = ResourcePlan {
        roles: Policy::Always,
        ..ResourcePlan::ALL
    };
    /// Steps of the interpreter for one kernel.
    const STEPS: u64 = 1 << 26;

    /// Policy alone, and all passes behind them, leave the same bytes for all numbers of iterations.
    #[test]
    fn roles_change_no_result() {
        let mut random = Random::new(1);
        let mut formed = 0;
        for seed in 0..24 {
            let mut case = case(seed).expect("a kernel");
            let mut alone = case.func.clone();
            if !form_roles(&mut alone, case.target, &RESOURCES) {
                continue;
            }
            formed += 1;
            verify(&alone).unwrap_or_else(|errors| panic!("{errors}\n{alone}"));
            let mut all = case.func.clone();
            let done = optimize(
                &mut all,
                case.target,
                &case.options,
                RESOURCES,
                &mut |_, _| {},
            );
            done.expect("the passes take it");
            for _ in 0..3 {
                let mut number = |least, most| random.between(least, most) as u32;
                for (at, bits) in [(4, number(-1, 4)), (5, number(0, 3)), (6, number(0, 1))] {
                    let Argument::Number(_, held) = &mut case.args[at] else {
                        panic!("parameter {at} is a number");
                    };
                    *held = u64::from(bits);
                }
                let expected = interpret(&case.func, &case, STEPS).expect("it can run");
                for func in [&alone, &all] {
                    let found = interpret(func, &case, STEPS);
                    let found = found.unwrap_or_else(|error| panic!("{error}\n{func}"));
                    assert!(found == expected, "other results in seed {seed}\n{func}");
                }
            }
        }
        assert!(8 < formed, "{formed} kernels got roles");
    }

    /// The kernels with roles are of all kinds that there are.
    #[test]
    fn kinds_of_roles_occur() {
        let mut kinds = [0; 6];
        for seed in 0..400 {
            let mut func = case(seed).expect("a kernel").func;
            // Programs differ in work, and are put in order.
            kinds[5] += usize::from(uneven(&func).is_some());
            let loads = func.insts_with(TileOp::TensorLoad).count();
            if !form_roles(&mut func, Target::SM_90A, &RESOURCES) {
                kinds[0] += 1;
                continue;
            }
            let channels = func.insts_with(TileOp::MbarInit).count() / 2;
            let producer = func.insts_with(TileOp::Producer).next();
            let (_, producer) = producer.expect("roles have one");
            let region = func.regions(producer).next().expect("its region");
            let holds = |op| {
                func.order
                    .insts(region)
                    .iter()
                    .filter(|&&inst| func.dfg.insts[inst].op == op)
                    .count()
            };
            kinds[1] += usize::from(1 < channels);
            kinds[2] += usize::from(1 < holds(TileOp::For));
            kinds[3] +=
                usize::from(func.all_insts().any(|(block, inst)| {
                    block != func.entry && func.dfg.insts[inst].op == TileOp::If
                }));
            // Loads share rings.
            kinds[4] += usize::from(func.slots.len() - 2 * channels < loads);
        }
        assert!(kinds.iter().all(|&count| 5 < count), "{kinds:?}");
    }
}
