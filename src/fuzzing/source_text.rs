//! The target `source_text`: texts of the Triton language.
//!
//! A third of the cases are kernels made by a grammar: each statement and expression is one that the parser takes, with
//! names that mostly mean something, so that what goes wrong goes wrong late. The rest are such kernels and those of the
//! library with bytes, words and lines changed, and noise. Nothing may panic; a refusal has a message that can be shown
//! and is not a mistake of ours; what is accepted compiles, or is refused for its size.

use std::fmt::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::Verdict;
use super::mutate::{mutate_for, noise};
use super::random::Random;
use crate::compile::compile;
use crate::error::CompileError;
use crate::front::diagnostic::Code;
use crate::front::{ArgSpec, Constant, Module, Specialization, parse_signature};
use crate::settings::{Options, Target};

/// Largest block to compile; larger ones take their time.
const MAX_ELEMENTS: usize = 1 << 12;
/// Most instructions of a kernel to compile.
const MAX_INSTRUCTIONS: usize = 2_000;

/// Functions of the library, as a text to take words and kernels from.
const LIBRARY: &str = include_str!("../front/library/prelude.py");

/// Judges the text of a seed.
pub fn check(seed: u64) -> Verdict {
    let mut random = Random::new(seed);
    let made = program(&mut random);
    let text = match random.weighted(&[6, 9, 3, 1]) {
        0 => made,
        1 => broken(&mut random, &made, LIBRARY),
        2 => broken(&mut random, LIBRARY, &made),
        _ => noise(&mut random),
    };
    let judged = AssertUnwindSafe(|| judge(&mut random, &text));
    catch_unwind(judged).unwrap_or_else(|_| Verdict::Failed(format!("panic on\n{text}")))
}

/// Judges any text; its kernels are compiled for arguments that depend on nothing else. Does not catch panics.
pub fn check_text(text: &str) -> Verdict {
    judge(&mut Random::new(0), text)
}

fn broken(random: &mut Random, text: &str, other: &str) -> String {
    // A panic of the parser shows when the text is judged.
    let reads = |text: &str| catch_unwind(|| Module::parse("", text).is_ok()).unwrap_or(true);
    mutate_for(random, text, other, reads)
}

fn judge(random: &mut Random, text: &str) -> Verdict {
    let module = match Module::parse("fuzz.py", text) {
        Ok(module) => module,
        Err(messages) if messages.to_string().is_empty() => {
            return Verdict::Failed(format!("refused in silence:\n{text}"));
        }
        Err(_) => return Verdict::Passed(vec!["does not parse"]),
    };
    let mut notes = Vec::new();
    for kernel in module.kernels() {
        let params = kernel.params.iter();
        let args: Vec<ArgSpec> = params.map(|p| argument(random, p.constexpr)).collect();
        let target = random.pick(&[Target::SM_80, Target::SM_90A]);
        let mut spec = Specialization::new(args, target);
        spec.debug = random.chance(20);
        spec.num_warps = random.pick(&[1, 4]);
        drop(module.tuning(Some(&kernel.name)));
        let lowered = match module.lower(Some(&kernel.name), &spec) {
            Ok(lowered) => lowered,
            Err(messages) => {
                let ours = messages.list.iter().any(|d| d.code == Code::Internal);
                if ours || !messages.has_errors() || messages.to_string().is_empty() {
                    return Verdict::Failed(format!("{messages}\n{text}"));
                }
                notes.push("refused");
                continue;
            }
        };
        let dfg = &lowered.func.dfg;
        let large = dfg
            .values
            .values()
            .any(|v| MAX_ELEMENTS < v.ty.shape.elements());
        if large || MAX_INSTRUCTIONS < dfg.insts.len() {
            notes.push("large");
            continue;
        }
        let options = Options {
            verify_passes: true,
            ..Options::DEFAULT
        };
        match compile(&lowered.func, target, &options) {
            Ok(_) => notes.push("compiled"),
            // Inline PTX, shared memory and threads have limits of their own.
            Err(
                CompileError::SharedMemory { .. }
                | CompileError::Unsupported { .. }
                | CompileError::Elements { .. }
                | CompileError::Operations { .. },
            ) => {
                notes.push("beyond the target");
            }
            Err(e) => return Verdict::Failed(format!("{target}: {e}\n{text}\n{}", lowered.func)),
        }
    }
    Verdict::Passed(notes)
}

/// An argument for a parameter.
fn argument(random: &mut Random, constant: bool) -> ArgSpec {
    if constant {
        let constants = [
            Constant::Int(16),
            Constant::Int(4),
            Constant::Int(1),
            Constant::Bool(true),
            Constant::Float(0.5),
            Constant::None,
        ];
        let at = random.weighted(&[6, 4, 1, 1, 1, 1]);
        return ArgSpec::Constant(constants[at].clone());
    }
    let types = [
        "*fp32:16", "*fp16", "*i32", "i32", "i32:16", "fp32", "i64", "*i1", "1", "u8",
    ];
    let text = types[random.weighted(&[8, 2, 4, 6, 2, 2, 1, 1, 1, 1])];
    let mut args = parse_signature(text).unwrap_or_default();
    args.pop().unwrap_or(ArgSpec::Constant(Constant::None))
}

/// Names that a program uses; those it has not defined are mistakes, which there shall be too.
const NAMES: [&str; 10] = ["x", "y", "n", "a", "b", "v", "at", "N", "t", "helper"];

/// A program being written.
struct Writer<'r> {
    random: &'r mut Random,
    text: String,
    /// Statements and expressions that are left to write.
    fuel: usize,
}

/// A module with a class, a function and a kernel.
fn program(random: &mut Random) -> String {
    let fuel = 20 + random.below(100);
    let mut w = Writer {
        random,
        text: String::new(),
        fuel,
    };
    w.text +=
        "import triton\nimport triton.language as tl\nfrom typing import NamedTuple\n\nN = 8\n\n";
    w.text += "class Pair(NamedTuple):\n    first: tl.tensor\n    second: tl.tensor = 0\n\n";
    w.text += "@triton.jit\ndef helper(a, b, n=2):\n";
    w.block(1);
    let value = w.expression(2);
    let _ = write!(w.text, "    return {value}\n\n");
    w.text += "@triton.jit\ndef kernel(x, y, n, N: tl.constexpr):\n";
    w.text += "    at = tl.arange(0, 16)\n    v = tl.load(x + at)\n    a = 1\n    b = 0.5\n    t = (1, 2.0)\n";
    w.block(1);
    w.text += "    tl.store(x + at, v)\n";
    w.text
}

impl Writer<'_> {
    fn line(&mut self, depth: usize, line: &str) {
        let _ = writeln!(self.text, "{}{line}", "    ".repeat(depth));
    }

    fn name(&mut self) -> &'static str {
        self.random.pick(&NAMES)
    }

    fn block(&mut self, depth: usize) {
        for _ in 0..1 + self.random.below(4) {
            self.statement(depth);
        }
    }

    fn statement(&mut self, depth: usize) {
        self.fuel = self.fuel.saturating_sub(1);
        if self.fuel == 0 || 5 < depth {
            return self.line(depth, "pass");
        }
        let name = self.name();
        let value = self.expression(3);
        match self
            .random
            .weighted(&[10, 6, 6, 4, 2, 3, 4, 2, 2, 1, 1, 1, 1])
        {
            0 => self.line(depth, &format!("{name} = {value}")),
            1 => {
                let op = self
                    .random
                    .pick(&["+=", "-=", "*=", "//=", "%=", "&=", "|=", "^=", "<<="]);
                self.line(depth, &format!("{name} {op} {value}"));
            }
            2 => {
                self.line(depth, &format!("if {value}:"));
                self.block(depth + 1);
                if self.random.chance(50) {
                    self.line(depth, "else:");
                    self.block(depth + 1);
                }
            }
            3 => {
                let end = self.expression(1);
                let ranges = ["range", "tl.range", "tl.static_range"];
                let range = self.random.pick(&ranges);
                self.line(depth, &format!("for {name} in {range}({end}):"));
                self.block(depth + 1);
            }
            4 => {
                self.line(depth, &format!("while {name} < {value}:"));
                self.block(depth + 1);
            }
            5 => self.line(depth, &format!("tl.store(x + {name}, {value})")),
            6 => self.line(
                depth,
                &format!("tl.store(x + at, {value}, mask=at < {name})"),
            ),
            7 => self.line(depth, &format!("{name}, a = {value}, {name}")),
            8 => self.line(depth, &format!("{name}: tl.constexpr = {value}")),
            9 => self.line(depth, &format!("return {value}")),
            10 => self.line(depth, "return"),
            11 => self.line(
                depth,
                &format!("tl.static_assert({value}, f\"{{{name}}}\")"),
            ),
            _ => self.line(depth, &format!("assert {value}")),
        }
    }

    fn expression(&mut self, depth: usize) -> String {
        self.fuel = self.fuel.saturating_sub(1);
        let name = self.name();
        if depth == 0 || self.fuel == 0 || self.random.chance(25) {
            let atoms = [
                name,
                name,
                name,
                "0",
                "1",
                "2",
                "-1",
                "0.5",
                "16",
                "True",
                "None",
                "\"text\"",
                "1 << 40",
                "float(\"inf\")",
                "tl.float16",
                "tl.program_id(0)",
                "at",
                "v",
            ];
            return self.random.pick(&atoms).to_owned();
        }
        let a = self.expression(depth - 1);
        match self
            .random
            .weighted(&[10, 5, 3, 2, 2, 3, 4, 4, 3, 2, 1, 1, 1, 2, 1, 1])
        {
            0 => {
                let op = self.random.pick(&[
                    "+", "-", "*", "/", "//", "%", "&", "|", "^", "<<", ">>", "**", "@",
                ]);
                let b = self.expression(depth - 1);
                format!("({a} {op} {b})")
            }
            1 => {
                let op = self
                    .random
                    .pick(&["<", "<=", ">", "==", "!=", "is", "is not", "in"]);
                let b = self.expression(depth - 1);
                format!("({a} {op} {b})")
            }
            2 => {
                let op = self.random.pick(&["and", "or"]);
                let b = self.expression(depth - 1);
                format!("({a} {op} {b})")
            }
            3 => format!("(not {a})"),
            4 => format!("({}{a})", self.random.pick(&["-", "~", "+"])),
            5 => {
                let (b, c) = (self.expression(depth - 1), self.expression(depth - 1));
                format!("({a} if {b} else {c})")
            }
            6 => {
                let unary = [
                    "tl.exp",
                    "tl.sqrt",
                    "tl.abs",
                    "tl.sum",
                    "tl.max",
                    "tl.argmax",
                    "tl.cumsum",
                    "tl.sort",
                    "tl.trans",
                    "tl.ravel",
                    "tl.flip",
                    "tl.zeros_like",
                    "tl.sigmoid",
                    "tl.to_tensor",
                    "len",
                    "int",
                    "float",
                    "min",
                    "tuple",
                    "Pair",
                    "helper",
                    "tl.split",
                ];
                format!("{}({a})", self.random.pick(&unary))
            }
            7 => {
                let b = self.expression(depth - 1);
                let binary = [
                    "tl.minimum",
                    "tl.maximum",
                    "tl.where(at < 4, {}, {})",
                    "tl.cdiv",
                    "tl.join",
                    "tl.full",
                    "helper",
                    "Pair",
                    "max",
                    "tl.fdiv",
                    "tl.reshape",
                    "tl.broadcast_to",
                    "tl.atomic_add",
                    "tl.load",
                    "tl.multiple_of",
                    "tl.gather({}, {}, 0)",
                    "isinstance",
                    "tl.dot",
                    "tl.histogram",
                    "tl.rand",
                ];
                let f = self.random.pick(&binary);
                match f.split_once("{}, {}") {
                    Some((before, after)) => format!("{before}{a}, {b}{after}"),
                    None => format!("{f}({a}, {b})"),
                }
            }
            8 => {
                let index = self.random.pick(&[
                    "[:, None]",
                    "[None, :]",
                    "[0]",
                    "[1:]",
                    "[None]",
                    "[:]",
                    "[n]",
                    "[...]",
                    "[::-1]",
                ]);
                format!("{a}{index}")
            }
            9 => {
                let attributes = [
                    ".to(tl.float32)",
                    ".to(tl.int8)",
                    ".dtype",
                    ".shape",
                    ".T",
                    ".first",
                    ".value",
                    ".sum(0)",
                    ".to(tl.int32, bitcast=True)",
                    ".type.scalar",
                    ".numel",
                    ".reshape(4, 4)",
                ];
                format!("{a}{}", self.random.pick(&attributes))
            }
            10 => format!("[{a} for {name} in (1, 2, 3)]"),
            11 => format!("f\"{{{name}}} and {{N}}\""),
            12 => format!("({a}, *t)"),
            13 => format!("tl.load(x + {a}, mask=at < n, other={name})"),
            14 => format!("helper(*({a}, {name}), n={name})"),
            _ => format!("tl.reduce({a}, 0, helper)"),
        }
    }
}
