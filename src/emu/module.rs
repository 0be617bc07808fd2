//! What a PTX text declares: targets, variables, entries with their parameters and code.

use smallvec::SmallVec;

use super::error::{Line, ParseError, SourceLine};
use super::inst::Inst;
use super::lex::Sources;
use super::types::Type;
use crate::limits::EMULATED_REGISTERS;

/// A parsed PTX module, ready to run.
#[derive(Debug)]
pub struct Module {
    pub(super) version: (u32, u32),
    pub(super) target: String,
    /// Its number.
    pub(super) sm: u32,
    pub(super) entries: Vec<Entry>,
    pub(super) variables: Vec<Variable>,
}

impl Module {
    /// Parses PTX text and decodes every entry.
    pub fn parse(text: &str) -> Result<Module, ParseError> {
        super::parse::module(text)
    }

    /// `.version`, as major and minor.
    pub fn version(&self) -> (u32, u32) {
        self.version
    }

    /// The first name of `.target`, such as `sm_80`.
    pub fn target(&self) -> &str {
        &self.target
    }

    /// All entries in order of the text.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }

    /// The entry of that name.
    pub fn entry(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.name == name)
    }
}

/// A `.global` or `.const` variable of a module.
#[derive(Debug)]
pub(super) struct Variable {
    /// Its name.
    pub(super) name: String,
    /// Contents at launch: zeros where there is no initialiser, as PTX says.
    pub(super) bytes: Vec<u8>,
}

/// A kernel parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Param {
    /// Its name.
    pub name: String,
    /// Its type, or that of its elements.
    pub ty: Type,
    /// Bytes.
    pub size: u32,
    /// Alignment in bytes.
    pub align: u32,
    /// Byte offset in the parameter buffer.
    pub offset: u32,
}

/// A kernel.
#[derive(Debug)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// Parameters in order.
    pub params: Vec<Param>,
    /// `.reqntid`: the only block shape allowed.
    pub reqntid: Option<[u32; 3]>,
    /// `.maxntid`: the product bounds the number of threads.
    pub maxntid: Option<[u32; 3]>,
    /// `.reqnctapercluster`: the only shape of clusters allowed.
    pub cluster: Option<[u32; 3]>,
    /// `.minnctapersm`: CTAs that are resident together at least.
    pub(super) min_ctas: u32,
    /// `.maxnreg`.
    pub(super) max_registers: Option<u32>,
    /// Bytes of static shared memory.
    pub static_shared: u32,
    /// Whether it names an `extern .shared` array.
    pub uses_dynamic_shared: bool,
    /// Offset at which dynamic shared memory starts, behind the static part.
    pub(super) dynamic_start: u32,
    /// Bytes of local memory of a thread.
    pub(super) local_bytes: u32,
    pub(super) registers: Registers,
    pub(super) code: Vec<Inst>,
    /// Whether warpgroups compute products.
    pub(super) has_products: bool,
    /// Whether CTAs of a cluster wait for each other.
    pub(super) waits_for_cluster: bool,
    /// Whether warpgroups move registers.
    pub(super) moves_registers: bool,
    /// Where lines come from that follow one with `.loc`, in order.
    pub(super) sources: Sources,
}

impl Entry {
    /// Where an instruction in a line of the text comes from.
    pub(super) fn source(&self, line: u32) -> Option<SourceLine> {
        let before = self.sources.partition_point(|&(at, _)| at <= line);
        Some(self.sources[before.checked_sub(1)?].1)
    }

    /// A line of the text, in words.
    pub(super) fn line(&self, line: u32) -> Line {
        Line(line, self.source(line))
    }

    /// Bytes of the parameter buffer.
    pub(super) fn param_bytes(&self) -> u32 {
        self.params
            .last()
            .map_or(0, |param| param.offset + param.size)
    }
}

/// A register: which file it is in, where, and how wide it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Register {
    pub(super) index: u32,
    pub(super) ty: Type,
}

/// One declared name or range of numbered names.
#[derive(Debug)]
struct Range {
    prefix: String,
    first: u32,
    /// `None` for a single name.
    count: Option<u32>,
    predicate: bool,
}

/// The declared registers of an entry. Predicates and data registers are numbered apart.
#[derive(Debug, Default)]
pub(super) struct Registers {
    pub(super) data: u32,
    pub(super) predicates: u32,
    ranges: Vec<Range>,
}

impl Registers {
    /// Declares a name, or `count` numbered names, and gives the first one's index.
    pub(super) fn declare(&mut self, prefix: &str, count: Option<u32>, ty: Type) -> Option<u32> {
        let file = if ty == Type::PRED {
            &mut self.predicates
        } else {
            &mut self.data
        };
        let first = *file;
        *file = first
            .checked_add(count.unwrap_or(1))
            .filter(|&end| end <= EMULATED_REGISTERS)?;
        self.ranges.push(Range {
            prefix: prefix.to_owned(),
            first,
            count,
            predicate: ty == Type::PRED,
        });
        Some(first)
    }

    /// The name of a register.
    pub(super) fn name(&self, index: u32, predicate: bool) -> String {
        for range in &self.ranges {
            let inside = (range.first..range.first + range.count.unwrap_or(1)).contains(&index);
            if inside && range.predicate == predicate {
                return match range.count {
                    Some(_) => format!("{}{}", range.prefix, index - range.first),
                    None => range.prefix.clone(),
                };
            }
        }
        format!("#{index}")
    }
}

/// What a name outside the register files stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Symbol {
    /// Byte offset in static shared memory.
    Shared(u32),
    /// The start of dynamic shared memory.
    DynamicShared,
    /// Index of a module variable.
    Variable(u32),
    /// Byte offset in local memory.
    Local(u32),
    /// Byte offset in the parameter buffer.
    Param(u32),
    /// A parameter of a call, or a function.
    Call,
}

/// A literal operand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Literal {
    Int(u64),
    Single(u32),
    Double(f64),
}

/// An operand with names resolved, except for labels.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Operand<'a> {
    Register(Register),
    /// `!%p`.
    Not(Register),
    Literal(Literal),
    Special(super::inst::Special),
    Symbol(Symbol, i64),
    Address {
        base: Box<Operand<'a>>,
        offset: i64,
    },
    /// `[map, {x, y}]`: a place in a tensor.
    Tensor {
        map: Box<Operand<'a>>,
        coordinates: Box<Operand<'a>>,
    },
    Vector(Vec<Operand<'a>>),
    Pair(Box<Operand<'a>>, Box<Operand<'a>>),
    Sink,
    /// A name that nothing declared before: a label.
    Label(&'a str),
}

/// An instruction as parsed.
#[derive(Debug)]
pub(super) struct Raw<'a> {
    pub(super) line: u32,
    pub(super) guard: Option<(Register, bool)>,
    pub(super) opcode: &'a str,
    pub(super) operands: SmallVec<[Operand<'a>; 4]>,
    /// The block it stands in, for the scope of labels.
    pub(super) scope: u32,
}
