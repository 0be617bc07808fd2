//! Reads the text form.
//!
//! Reading is done in three steps: tokens, syntax tree, function. A mistake on a line costs that line (and
//! the regions it opens), so several independent mistakes are reported at once; a function with mistakes of
//! syntax is not looked at further, so that one does not cause a hundred.
//!
//! Nothing panics on any input, and memory is bounded by a multiple of the input's size, which is bounded
//! itself ([`MAX_BYTES`]), as are nesting ([`MAX_NESTING`]) and the number of values ([`MAX_VALUES`]).

use std::fmt;

use cranelift_entity::SecondaryMap;
use rustc_hash::{FxHashMap, FxHashSet};

use super::quote::quoted;
use super::{grammar, lexer, resolve};
use crate::ir::entities::{AnyEntity, Block, Inst, Value};
use crate::ir::function::{Function, ThreadFunction, TileFunction};
use crate::ir::level::{Level, Thread, Tile};

/// Largest text in bytes.
pub const MAX_BYTES: usize = 8 << 20;
/// Deepest nesting of regions.
pub const MAX_NESTING: usize = 64;
/// Most values of a function.
pub const MAX_VALUES: usize = 1 << 20;
/// Mistakes after which reading stops.
pub const MAX_ERRORS: usize = 100;

/// A place in a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pos {
    /// Line, first is 1.
    pub line: u32,
    /// Column in characters, first is 1.
    pub column: u32,
}

coded_enum! {
    /// Kinds of mistakes in a text.
    Code,
    /// The code as it is printed.
    name;

    /// A character or string that is no token.
    Token = "P01",
    /// A token where another was expected.
    Syntax = "P02",
    /// A bound of this reader is exceeded.
    Limit = "P03",
    /// No op of the level has the name.
    UnknownOp = "P04",
    /// An attribute that does not exist or has a wrong value.
    Attribute = "P05",
    /// A value or block that is used but not defined.
    Undefined = "P06",
    /// An entity or a function that is defined twice.
    Twice = "P07",
    /// The operands do not fit the op.
    Operands = "P08",
    /// The stated result types or their number are not those of the op.
    Results = "P09",
    /// A type that does not exist.
    Type = "P10",
    /// A layout that cannot be.
    Layout = "P11",
    /// A constant that does not fit its type.
    Number = "P12",
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A mistake in a text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}:{}: {code}: {message}", .pos.line, .pos.column)]
pub struct ParseError {
    /// Where.
    pub pos: Pos,
    /// Its kind.
    pub code: Code,
    /// What is wrong and what to do.
    pub message: String,
}

impl ParseError {
    pub(crate) fn new(code: Code, pos: Pos, message: impl Into<String>) -> ParseError {
        ParseError {
            pos,
            code,
            message: message.into(),
        }
    }
}

/// A comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comment {
    /// Where its `;` stands.
    pub pos: Pos,
    /// Whether nothing stands before it on its line.
    pub own_line: bool,
    /// Its text, without the `;` and the white space around.
    pub text: String,
}

/// A function of either level.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum AnyFunction {
    /// A block program.
    Tile(TileFunction),
    /// What one thread does.
    Thread(ThreadFunction),
}

impl AnyFunction {
    /// The kernel's name.
    pub fn name(&self) -> &str {
        match self {
            AnyFunction::Tile(func) => &func.name,
            AnyFunction::Thread(func) => &func.name,
        }
    }

    /// The block program, if it is one.
    pub fn as_tile(&self) -> Option<&TileFunction> {
        match self {
            AnyFunction::Tile(func) => Some(func),
            AnyFunction::Thread(_) => None,
        }
    }
}

impl fmt::Display for AnyFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AnyFunction::Tile(func) => func.fmt(f),
            AnyFunction::Thread(func) => func.fmt(f),
        }
    }
}

/// Where the parts of a function stand in the text.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    /// Line of the function's name.
    pub first: u32,
    /// Line of its closing brace.
    pub last: u32,
    pub(crate) name: Pos,
    pub(crate) blocks: SecondaryMap<Block, Pos>,
    pub(crate) insts: SecondaryMap<Inst, Pos>,
    pub(crate) values: SecondaryMap<Value, Pos>,
    pub(crate) items: FxHashMap<AnyEntity, Pos>,
}

impl Lines {
    /// The line of an entity; that of the function's name for what stands nowhere.
    pub fn of(&self, entity: AnyEntity) -> u32 {
        self.pos(entity).line
    }

    /// The place of an entity: an instruction's op, and where anything else is defined; the function's name for what
    /// stands nowhere.
    pub fn pos(&self, entity: AnyEntity) -> Pos {
        let pos = match entity {
            AnyEntity::Block(block) => self.blocks[block],
            AnyEntity::Inst(inst) => self.insts[inst],
            AnyEntity::Value(value) => self.values[value],
            AnyEntity::Function
            | AnyEntity::Slot(_)
            | AnyEntity::Partition(_)
            | AnyEntity::Map(_)
            | AnyEntity::Layout(_) => self.items.get(&entity).copied().unwrap_or_default(),
        };
        if pos == Pos::default() {
            self.name
        } else {
            pos
        }
    }
}

/// A function as it was read.
#[derive(Clone, Debug)]
pub struct ParsedFunction {
    /// The function.
    pub func: AnyFunction,
    /// Where its parts stand.
    pub lines: Lines,
}

/// A file as it was read.
#[derive(Clone, Debug)]
pub struct ParsedFile {
    /// Its functions, in order.
    pub functions: Vec<ParsedFunction>,
    /// Its comments, in order; [`Lines`] says what they stand beside.
    pub comments: Vec<Comment>,
}

/// What a reader checks beyond syntax.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checks {
    /// Operands, attributes and result types against the rules of the ops.
    Types,
    /// Nothing: what is read may break any rule of the verifier, and serves to test it.
    None,
}

/// Reads a file of functions.
pub fn parse_file(text: &str) -> Result<ParsedFile, Vec<ParseError>> {
    parse_file_with(text, Checks::Types)
}

/// Reads a file of functions and checks as much as `checks` says.
pub fn parse_file_with(text: &str, checks: Checks) -> Result<ParsedFile, Vec<ParseError>> {
    span!(DEBUG, "parse");
    if text.len() > MAX_BYTES {
        let pos = Pos { line: 1, column: 1 };
        let message = format!("the text is longer than {MAX_BYTES} bytes; split it");
        return Err(vec![ParseError::new(Code::Limit, pos, message)]);
    }
    let lexed = lexer::lex(text);
    let mut errors = lexed.errors;
    errors.truncate(MAX_ERRORS);
    let raw_functions = grammar::parse(text, &lexed.tokens, &mut errors);
    let mut functions = Vec::new();
    let mut names = FxHashSet::default();
    for raw in raw_functions {
        if !names.insert(raw.name.clone()) {
            let name = quoted(&raw.name);
            let message = format!("a function @{name} stands above; rename this one");
            errors.push(ParseError::new(Code::Twice, raw.pos, message));
        }
        if raw.broken || errors.len() >= MAX_ERRORS {
            continue;
        }
        let parsed = match &*raw.keyword {
            Tile::KEYWORD => {
                let resolved = resolve::resolve(&raw, checks, &mut errors);
                resolved.map(|(func, lines)| (AnyFunction::Tile(func), lines))
            }
            _ => {
                let resolved = resolve::resolve::<Thread>(&raw, checks, &mut errors);
                resolved.map(|(func, lines)| (AnyFunction::Thread(func), lines))
            }
        };
        functions.extend(parsed.map(|(func, lines)| ParsedFunction { func, lines }));
    }
    if errors.is_empty() {
        Ok(ParsedFile {
            functions,
            comments: lexed.comments,
        })
    } else {
        errors.sort_by_key(|e| e.pos);
        errors.truncate(MAX_ERRORS);
        Err(errors)
    }
}

/// Reads a text of exactly one block program.
pub fn parse_tile(text: &str) -> Result<TileFunction, Vec<ParseError>> {
    let expected = "a text of one `kernel`";
    parse_one(text, expected, |func| match func {
        AnyFunction::Tile(func) => Some(func),
        AnyFunction::Thread(_) => None,
    })
}

/// Reads a text of exactly one function of the thread IR.
pub fn parse_thread(text: &str) -> Result<ThreadFunction, Vec<ParseError>> {
    let expected = "a text of one `thread` function";
    parse_one(text, expected, |func| match func {
        AnyFunction::Tile(_) => None,
        AnyFunction::Thread(func) => Some(func),
    })
}

fn parse_one<L: Level>(
    text: &str,
    expected: &str,
    pick: impl Fn(AnyFunction) -> Option<Function<L>>,
) -> Result<Function<L>, Vec<ParseError>> {
    let mut functions = parse_file(text)?.functions.into_iter();
    let first = functions.next().and_then(|parsed| pick(parsed.func));
    match (first, functions.next()) {
        (Some(func), None) => Ok(func),
        _ => {
            let pos = Pos { line: 1, column: 1 };
            let message = format!("expected {expected}");
            Err(vec![ParseError::new(Code::Syntax, pos, message)])
        }
    }
}

/// The comments of a text, whether or not the rest of it can be read.
pub fn comments(text: &str) -> Vec<Comment> {
    lexer::lex(text).comments
}
