//! From parsed instructions to decoded ones.
//!
//! An opcode is a name and a set of modifiers; PTX fixes an order among them that compilers keep
//! loosely, so here each decoder takes the ones it knows, in any order, and whatever is left over
//! is an error. Register widths are checked as `ptxas` does: exactly for arithmetic, at least the
//! type's width for loads, stores and conversions.

mod arith;
mod bulk;
pub(super) mod first_versions;
mod hint;
mod matrix;
mod mbarrier;
mod memory;
mod remote;
mod typed;
mod warp;
mod warpgroup;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::error::{ParseError, ParseErrorKind};
use super::inst::{AtomicOp, Dst, Inst, Op, PredSrc, Src};
use super::mem;
use super::module::{Literal, Operand, Raw, Symbol};
use super::types::{Type, TypeKind};
use crate::num::{Format, Overflow, Rounding};

type Result<T> = std::result::Result<T, ParseError>;

/// Decodes a body for a target and a version. `labels` maps a scope and a name to an instruction index.
pub(super) fn body<'a>(
    code: &[Raw<'a>],
    labels: &FxHashMap<(u32, &'a str), u32>,
    parents: &[u32],
    dynamic_start: u32,
    (target, sm, version): (&str, u32, (u32, u32)),
) -> Result<Vec<Inst>> {
    let has_products = code.iter().any(|raw| raw.opcode.starts_with("wgmma."));
    code.iter()
        .map(|raw| {
            let mut parts = raw.opcode.split('.');
            let name = parts.next().unwrap_or_default();
            let mut cx = Decoder {
                raw,
                name,
                parts: parts.collect(),
                labels,
                parents,
                dynamic_start,
            };
            let (needs_sm, needs_version) = first_versions::instruction(name, &cx.parts);
            let op = cx.decode()?;
            cx.finish()?;
            let specific = first_versions::architecture(name, target);
            if needs_sm > sm || needs_version > version || specific.is_some() {
                let (major, minor) = needs_version;
                let target = specific.map_or(format!("sm_{needs_sm}"), str::to_owned);
                return Err(ParseError {
                    line: raw.line,
                    kind: ParseErrorKind::TooEarly {
                        opcode: raw.opcode.to_owned(),
                        needs: format!("{target} and PTX {major}.{minor}"),
                    },
                });
            }
            let mut registers = Vec::new();
            if has_products {
                let operands = raw.operands.iter();
                operands.for_each(|operand| named(operand, &mut registers));
            }
            let guard = raw.guard.map(|(register, negated)| PredSrc::Reg {
                index: register.index,
                negated,
            });
            Ok(Inst {
                op,
                guard,
                line: raw.line,
                opcode: raw.opcode.into(),
                registers: registers.into(),
            })
        })
        .collect()
}

/// Collects the data registers of an operand.
fn named(operand: &Operand<'_>, registers: &mut Vec<u32>) {
    match operand {
        Operand::Register(register) if register.ty != Type::PRED => registers.push(register.index),
        Operand::Address { base, .. } => named(base, registers),
        Operand::Vector(elements) => {
            for element in elements {
                named(element, registers);
            }
        }
        Operand::Pair(first, second) => {
            named(first, registers);
            named(second, registers);
        }
        _ => {}
    }
}

/// The bits of a literal as a value of type `ty`.
pub(super) fn literal_bits(literal: Literal, ty: Type) -> Option<u64> {
    let format = match (ty.kind, ty.bits) {
        (TypeKind::Float, 16) => Some(Format::F16),
        (TypeKind::Bfloat, 16) => Some(Format::BF16),
        (TypeKind::Float, 32) => Some(Format::F32),
        (TypeKind::Float, 64) => Some(Format::F64),
        _ => None,
    };
    Some(match (literal, format) {
        (Literal::Int(value), None) => value,
        // A 16-bit float is written as its bits; for wider ones PTX has `0f` and `0d`.
        (Literal::Int(value), Some(_)) if ty.bits == 16 => value,
        (Literal::Int(_), Some(_)) => return None,
        (Literal::Single(bits), None) if ty.bits >= 32 => u64::from(bits),
        (Literal::Double(value), None) if ty.bits == 64 => value.to_bits(),
        (_, None) => return None,
        (Literal::Single(bits), Some(Format::F32)) => u64::from(bits),
        (Literal::Single(bits), Some(format)) => format.from_f64(
            f64::from(f32::from_bits(bits)),
            Rounding::NearestEven,
            Overflow::Ieee,
        ),
        (Literal::Double(value), Some(format)) => {
            format.from_f64(value, Rounding::NearestEven, Overflow::Ieee)
        }
    })
}

/// What a reduction does, by its name.
fn reduction(name: &str) -> Option<AtomicOp> {
    Some(match name {
        "add" => AtomicOp::Add,
        "min" => AtomicOp::Min,
        "max" => AtomicOp::Max,
        "inc" => AtomicOp::Increment,
        "dec" => AtomicOp::Decrement,
        "and" => AtomicOp::And,
        "or" => AtomicOp::Or,
        "xor" => AtomicOp::Xor,
        _ => return None,
    })
}

/// All ones in the low `bits`.
pub(super) fn mask(bits: u32) -> u64 {
    if bits >= 64 {
        u64::MAX
    } else {
        (1 << bits) - 1
    }
}

/// The instruction being decoded, with the modifiers not taken yet.
struct Decoder<'r, 'a> {
    raw: &'r Raw<'a>,
    name: &'a str,
    parts: SmallVec<[&'a str; 8]>,
    labels: &'r FxHashMap<(u32, &'a str), u32>,
    parents: &'r [u32],
    dynamic_start: u32,
}

impl<'a> Decoder<'_, 'a> {
    fn decode(&mut self) -> Result<Op> {
        match self.name {
            "ld" | "ldu" | "st" | "atom" | "red" | "prefetch" | "prefetchu" | "cvta"
            | "isspacep" | "createpolicy" | "discard" | "applypriority" | "fence" | "membar" => {
                self.memory()
            }
            "bar" | "barrier" | "shfl" | "vote" | "match" | "redux" | "activemask" | "elect"
            | "bra" | "brx" | "call" | "ret" | "exit" | "trap" | "brkpt" | "nanosleep"
            | "griddepcontrol" | "pmevent" => self.control(),
            "mapa" | "getctarank" => self.map(),
            "mma" | "ldmatrix" | "stmatrix" | "movmatrix" => self.matrix(),
            "cp" => self.copy(),
            "mbarrier" => self.mbarrier(),
            "tensormap" => self.tensor_map(),
            "wgmma" => self.warpgroup(),
            "setmaxnreg" => self.registers(),
            _ => self.arithmetic(),
        }
    }

    fn finish(&self) -> Result<()> {
        match self.parts.first() {
            None => Ok(()),
            Some(modifier) => Err(ParseError {
                line: self.raw.line,
                kind: ParseErrorKind::UnknownModifier {
                    opcode: self.raw.opcode.to_owned(),
                    modifier: (*modifier).to_owned(),
                },
            }),
        }
    }

    fn unsupported<T>(&self) -> Result<T> {
        Err(ParseError {
            line: self.raw.line,
            kind: ParseErrorKind::UnsupportedInstruction(self.raw.opcode.to_owned()),
        })
    }

    fn bad<T>(&self, reason: impl Into<String>) -> Result<T> {
        Err(ParseError {
            line: self.raw.line,
            kind: ParseErrorKind::Operands {
                opcode: self.raw.opcode.to_owned(),
                reason: reason.into(),
            },
        })
    }

    /// Takes a modifier if it is there.
    fn take(&mut self, modifier: &str) -> bool {
        match self.parts.iter().position(|&part| part == modifier) {
            Some(at) => {
                self.parts.remove(at);
                true
            }
            None => false,
        }
    }

    /// Takes the first modifier for which `f` gives something.
    fn take_with<T>(&mut self, f: impl Fn(&'a str) -> Option<T>) -> Option<T> {
        let (at, found) = self
            .parts
            .iter()
            .enumerate()
            .find_map(|(at, part)| Some((at, f(part)?)))?;
        self.parts.remove(at);
        Some(found)
    }

    /// Takes the first type.
    fn ty(&mut self) -> Result<Type> {
        match self.take_with(Type::parse) {
            Some(ty) => Ok(ty),
            None => self.bad("a type is missing"),
        }
    }

    fn rounding(&mut self) -> Option<Rounding> {
        self.take_with(|part| {
            Some(match part {
                "rn" => Rounding::NearestEven,
                "rna" => Rounding::NearestAway,
                "rz" => Rounding::Zero,
                "rm" => Rounding::Down,
                "rp" => Rounding::Up,
                _ => return None,
            })
        })
    }

    fn operand(&self, index: usize) -> Result<&Operand<'a>> {
        match self.raw.operands.get(index) {
            Some(operand) => Ok(operand),
            None => self.bad(format!("operand {} is missing", index + 1)),
        }
    }

    fn count(&self) -> usize {
        self.raw.operands.len()
    }

    /// Checks the number of operands.
    fn arity(&self, allowed: std::ops::RangeInclusive<usize>) -> Result<()> {
        if allowed.contains(&self.count()) {
            return Ok(());
        }
        self.bad(format!("{} operands", self.count()))
    }

    /// Whether a register of type `has` may stand where `wants` is asked for.
    fn fits(&self, has: Type, wants: Type, wider: bool) -> Result<()> {
        let (has, wants) = (has.register_bits(), wants.register_bits());
        if has == wants || (wider && has > wants) {
            return Ok(());
        }
        self.bad(format!("a register of {has} bits where {wants} are wanted"))
    }

    fn source_of(&self, operand: &Operand<'a>, ty: Type, wider: bool) -> Result<Src> {
        match *operand {
            Operand::Register(register) if register.ty == Type::PRED => {
                self.bad("a predicate where data is wanted")
            }
            Operand::Register(register) => {
                self.fits(register.ty, ty, wider)?;
                Ok(Src::Reg(register.index))
            }
            Operand::Literal(literal) => match literal_bits(literal, ty) {
                Some(bits) => Ok(Src::Imm(bits & mask(ty.register_bits()))),
                None => self.bad(format!("a literal that is not of type .{ty}")),
            },
            Operand::Special(special) => Ok(Src::Special(special)),
            Operand::Symbol(symbol, offset) => {
                let local = |start: u64| {
                    Src::Imm(start.wrapping_add_signed(offset) & mask(ty.register_bits()))
                };
                Ok(match symbol {
                    Symbol::Shared(at) => local(mem::SHARED_BASE + u64::from(at)),
                    Symbol::DynamicShared => {
                        local(mem::SHARED_BASE + u64::from(self.dynamic_start))
                    }
                    Symbol::Local(at) => local(mem::LOCAL_BASE + u64::from(at)),
                    Symbol::Param(at) => local(u64::from(at)),
                    Symbol::Variable(index) => Src::Variable(index, offset),
                    Symbol::Call => return self.bad("a name that belongs to a call"),
                })
            }
            Operand::Label(name) => Err(ParseError {
                line: self.raw.line,
                kind: ParseErrorKind::Undeclared(name.to_owned()),
            }),
            _ => self.bad("a register or a number is wanted"),
        }
    }

    /// A data operand whose register has exactly the width of `ty`.
    fn source(&self, index: usize, ty: Type) -> Result<Src> {
        self.source_of(self.operand(index)?, ty, false)
    }

    fn dest_of(&self, operand: &Operand<'a>, ty: Type, wider: bool) -> Result<Dst> {
        match *operand {
            Operand::Register(register) if register.ty == Type::PRED => {
                self.bad("a predicate where data is wanted")
            }
            Operand::Register(register) => {
                self.fits(register.ty, ty, wider)?;
                Ok(Dst {
                    reg: register.index,
                    mask: mask(register.ty.register_bits()),
                })
            }
            Operand::Sink => Ok(Dst {
                reg: Dst::SINK,
                mask: 0,
            }),
            _ => self.bad("the destination must be a register"),
        }
    }

    fn dest(&self, index: usize, ty: Type) -> Result<Dst> {
        self.dest_of(self.operand(index)?, ty, false)
    }

    fn pred_source_of(&self, operand: &Operand<'a>) -> Result<PredSrc> {
        match *operand {
            Operand::Register(register) if register.ty == Type::PRED => Ok(PredSrc::Reg {
                index: register.index,
                negated: false,
            }),
            Operand::Not(register) if register.ty == Type::PRED => Ok(PredSrc::Reg {
                index: register.index,
                negated: true,
            }),
            Operand::Literal(Literal::Int(value)) => Ok(PredSrc::Const(value != 0)),
            _ => self.bad("a predicate is wanted"),
        }
    }

    fn pred_source(&self, index: usize) -> Result<PredSrc> {
        self.pred_source_of(self.operand(index)?)
    }

    fn pred_dest_of(&self, operand: &Operand<'a>) -> Result<Option<u32>> {
        match *operand {
            Operand::Register(register) if register.ty == Type::PRED => Ok(Some(register.index)),
            Operand::Sink => Ok(None),
            _ => self.bad("the destination must be a predicate"),
        }
    }

    /// `d|p` or `d`: both parts as operands.
    fn dest_pair(&self, index: usize) -> Result<(&Operand<'a>, Option<&Operand<'a>>)> {
        Ok(match self.operand(index)? {
            Operand::Pair(first, second) => (first, Some(second)),
            single => (single, None),
        })
    }

    /// The elements of a vector operand, or the operand itself.
    fn elements<'b>(&self, operand: &'b Operand<'a>) -> &'b [Operand<'a>] {
        match operand {
            Operand::Vector(elements) => elements,
            single => std::slice::from_ref(single),
        }
    }

    /// The elements of an operand that has as many as the vector of an instruction.
    fn vector_of(&self, index: usize, count: usize, what: &str) -> Result<&[Operand<'a>]> {
        let elements = self.elements(self.operand(index)?);
        let found = elements.len();
        if found != count {
            return self.bad(format!("{found} {what} for a vector of {count}"));
        }
        Ok(elements)
    }

    /// Where a branch goes.
    fn target(&self, index: usize) -> Result<u32> {
        let Operand::Label(name) = *self.operand(index)? else {
            return self.bad("a label is wanted");
        };
        let mut scope = self.raw.scope;
        loop {
            if let Some(&target) = self.labels.get(&(scope, name)) {
                return Ok(target);
            }
            let parent = self.parents.get(scope as usize).copied().unwrap_or(scope);
            if parent == scope {
                return Err(ParseError {
                    line: self.raw.line,
                    kind: ParseErrorKind::Undeclared(name.to_owned()),
                });
            }
            scope = parent;
        }
    }
}
