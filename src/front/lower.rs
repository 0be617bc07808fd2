//! The state of lowering a kernel: scopes, budgets, messages.
//!
//! One [`Lower`] turns one kernel with its arguments into tile IR. It walks the tree in the order of execution; each
//! function that is called is walked anew with its own arguments, which specialises and inlines it at once. A mistake
//! costs the statement it stands in: it is reported, the names that the statement would have given are poisoned, and what
//! uses them is silent.
//!
//! Everything that the text can make large has a budget: steps of evaluation, instructions, depth of calls. Recursion
//! over the tree grows the stack as needed.

use std::rc::Rc;

use indexmap::IndexMap;
use ruff_python_ast::StmtFunctionDef;
use ruff_text_size::{TextRange, TextSize};
use rustc_hash::FxHashMap;

use super::diagnostic::{CallSite, Code, Diagnostic, MAX_MESSAGES, Severity, bytes};
use super::imported::Imported;
use super::library::prelude;
use super::module::Index;
use super::signature::Constant;
use super::types::{Ty, show};
use super::value::{Const, Value};
use crate::ir::builder::TileBuilder;
use crate::ir::dfg::{SourceLine, SourceLoc};
use crate::limits::{EVALUATION_OPERATIONS, EVALUATION_STEPS};
use crate::linear_layout::shape::Shape;
use crate::settings::Target;

/// Most warnings and notes of one kernel; later ones are left out.
const MAX_NOTES: usize = 200;

/// Why a statement was given up.
#[derive(Debug)]
pub(crate) enum Stop {
    /// A mistake that is not reported yet.
    Error(Box<Diagnostic>),
    /// It depends on something that has been reported.
    Reported,
    /// Nothing more is to be done: a budget is exhausted, or there are enough messages.
    Abort,
}

impl From<Diagnostic> for Stop {
    fn from(diagnostic: Diagnostic) -> Stop {
        Stop::Error(Box::new(diagnostic))
    }
}

pub(crate) type Res<T> = Result<T, Stop>;

/// A local name.
#[derive(Clone, Debug)]
pub(crate) enum Local<'m> {
    /// It has a value; `fixed` if it was annotated `constexpr`.
    Bound {
        /// The value.
        value: Value<'m>,
        /// Whether it must stay a constant.
        fixed: bool,
    },
    /// It had one in a place that is left now.
    Gone(Gone),
    /// It is the counter of a run-time loop that has ended.
    Counter(super::loops::Ended),
}

/// Why a local name has no value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Gone {
    /// It is defined inside of a loop only.
    InLoop,
    /// It is defined in one branch of an `if` only.
    InBranch,
    /// The body of the loop assigns it further on, and nothing does before.
    Later,
    /// It is the counter of a loop that has ended.
    Counter,
    /// It is the counter of a loop that may have no iteration, and was no number of its type before.
    Mixed,
    /// It is the counter of a loop that may have no iteration, and had no value any more before it.
    LostBefore,
    /// A loop in one branch of an `if` counts it.
    CounterInBranch,
    /// It is the counter of a loop that has ended, and the body leaves something of another type in it than it counts in.
    Retyped {
        /// What it counts in.
        counts: Ty,
        /// What the body leaves.
        left: (Ty, Shape),
    },
}

impl Gone {
    /// In words, and what to do.
    pub(crate) fn explain(self) -> (String, &'static str) {
        let before = "define it before the loop or condition";
        // What a counter was before its loop is gone, too.
        let own = "give the value to a name of its own in the loop";
        match self {
            Gone::InLoop => ("it is defined inside of a loop only".to_owned(), before),
            Gone::InBranch => {
                let why = "it is defined in one branch of an `if` only";
                (why.to_owned(), before)
            }
            Gone::Later => {
                let why = "before the loop it has none, and in it only further on";
                (why.to_owned(), before)
            }
            Gone::Counter => ("it is the counter of a loop that has ended".to_owned(), own),
            Gone::Mixed => {
                let why =
                    "it is the counter of a loop that has ended, and was of another type before it";
                (why.to_owned(), own)
            }
            Gone::LostBefore => {
                let why = "it is the counter of a loop that may have no iteration, and had no value before it";
                (why.to_owned(), own)
            }
            Gone::CounterInBranch => {
                let why = "it is the counter of a loop in one branch of an `if`";
                (why.to_owned(), own)
            }
            Gone::Retyped { counts, left } => {
                let (counts, left) = (show(counts, Shape::SCALAR), show(left.0, left.1));
                let why = format!(
                    "it is the counter of a loop that has ended, which counts in {counts} and leaves {left} in it"
                );
                (why, own)
            }
        }
    }
}

/// Local names of a function.
pub(crate) type Locals<'m> = IndexMap<&'m str, Local<'m>>;

/// A function being walked.
#[derive(Debug)]
pub(crate) struct Frame<'m> {
    /// The names that its global ones are looked up in.
    pub(crate) index: &'m Index<'m>,
    pub(crate) function: Option<&'m StmtFunctionDef>,
    /// Where it was called.
    pub(crate) call: TextRange,
    pub(crate) locals: Locals<'m>,
    /// Python at compile time: names keep constants as they are.
    pub(crate) host: bool,
    /// How many run-time loops of this function are open.
    pub(crate) loops: usize,
    /// In a loop at compile time: how many run-time regions were open at its start.
    pub(crate) host_loop: Option<usize>,
    /// A statement of it was given up.
    pub(crate) broken: bool,
    /// Names that a list's `for` gives values, which no function sees that is called.
    pub(crate) of_lists: Vec<&'m str>,
}

impl<'m> Frame<'m> {
    /// A function that has just been called, or with none an expression of the scope of these names.
    pub(crate) fn new(
        index: &'m Index<'m>,
        function: Option<&'m StmtFunctionDef>,
        call: TextRange,
        host: bool,
    ) -> Frame<'m> {
        Frame {
            index,
            function,
            call,
            locals: Locals::default(),
            host,
            loops: 0,
            host_loop: None,
            broken: false,
            of_lists: Vec::new(),
        }
    }
}

/// How a function of single elements is read: it has no regions, so that both ways of a condition are gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Combining {
    /// None is being read.
    No,
    /// One that combines elements, with scalars.
    Scalars,
    /// One that is mapped over blocks of a shape, with these blocks.
    Blocks {
        shape: Shape,
        /// It had a condition that differs between elements.
        chose: bool,
    },
}

/// The state.
pub(crate) struct Lower<'m> {
    pub(crate) index: &'m Index<'m>,
    /// The path of the kernel's file among those of the program.
    pub(crate) path: &'m str,
    /// The other files.
    pub(crate) imported: &'m [Imported<'m>],
    /// What a file changes of another one, and where: by the path of that and the name.
    pub(crate) altered: Rc<FxHashMap<(String, String), TextRange>>,
    /// Constants that the caller gives to names of the module.
    pub(crate) constants: &'m IndexMap<String, Constant>,
    /// For what kernels ask of it.
    pub(crate) target: Target,
    /// Device assertions are kept.
    pub(crate) debug: bool,
    /// Integer arithmetic asserts that it does not overflow.
    pub(crate) sanitize_overflow: bool,
    /// How a function of single elements is read.
    pub(crate) combining: Combining,
    pub(crate) b: TileBuilder,
    pub(crate) frames: Vec<Frame<'m>>,
    pub(crate) messages: Vec<Diagnostic>,
    /// Where values of the module stand that are being evaluated, to find one defined by itself.
    pub(crate) evaluating: Vec<(&'m str, TextRange)>,
    /// Lists that a function did not make: one that changes them changes them for others.
    pub(crate) kept: Vec<Value<'m>>,
    /// Lists of the module are what its statements say, whatever else changes them, and the longest of several: lists of
    /// configurations.
    pub(crate) as_written: bool,
    /// Something was asked of what only the host has, or of what it may give another value.
    pub(crate) asked_host: bool,
    /// The same of what only the host has alone.
    pub(crate) guessed: bool,
    /// The first error is one to Python too.
    pub(crate) raised: bool,
    /// A condition of the module is evaluated: variables of the environment are not set.
    pub(crate) in_condition: bool,
    /// It has asked for one.
    pub(crate) asked_environment: bool,
    /// Constants of which the module has made a `constexpr`.
    pub(crate) wrapped: Vec<Const>,
    /// Lists and dictionaries that a `for` of Python is going through.
    pub(crate) walked: Vec<Value<'m>>,
    /// Open run-time regions.
    pub(crate) regions: usize,
    /// The expression being evaluated.
    pub(crate) range: TextRange,
    pub(crate) line_starts: Rc<[u32]>,
    /// Steps that evaluation has taken.
    pub(crate) steps: u64,
}

impl<'m> Lower<'m> {
    pub(crate) fn new(
        index: &'m Index<'m>,
        constants: &'m IndexMap<String, Constant>,
        target: Target,
        b: TileBuilder,
        line_starts: Rc<[u32]>,
    ) -> Lower<'m> {
        Lower {
            index,
            path: "",
            imported: &[],
            altered: Rc::default(),
            constants,
            target,
            debug: false,
            sanitize_overflow: false,
            combining: Combining::No,
            b,
            frames: Vec::new(),
            messages: Vec::new(),
            evaluating: Vec::new(),
            kept: Vec::new(),
            as_written: false,
            asked_host: false,
            guessed: false,
            raised: false,
            in_condition: false,
            asked_environment: false,
            wrapped: Vec::new(),
            walked: Vec::new(),
            regions: 0,
            range: TextRange::empty(TextSize::new(0)),
            line_starts,
            steps: 0,
        }
    }

    /// The function being walked.
    pub(crate) fn frame(&mut self) -> &mut Frame<'m> {
        self.frames
            .last_mut()
            .expect("a frame is pushed before anything is evaluated")
    }

    /// Makes a range the one that errors and instructions are about; gives the former. Functions of the library have
    /// a text of their own: in them it stays that of the call. So it does for instructions in functions of other files.
    pub(crate) fn enter(&mut self, range: TextRange) -> TextRange {
        let index = self.frames.last().map_or(self.index, |frame| frame.index);
        if index.of_library {
            return self.range;
        }
        let outer = std::mem::replace(&mut self.range, range);
        // Lines are those of one file.
        if !std::ptr::eq(index, self.index) {
            return outer;
        }
        let start = u32::from(range.start());
        let line = self.line_starts.partition_point(|&s| s <= start);
        let begin = self.line_starts.get(line.wrapping_sub(1)).copied();
        let column = start - begin.unwrap_or(start) + 1;
        let place = SourceLine(line as u32, column);
        self.b.set_loc(SourceLoc(Some(place).into()));
        outer
    }

    /// An error about the current expression.
    pub(crate) fn error(&self, code: Code, message: impl Into<String>) -> Diagnostic {
        Diagnostic::error(code, self.range, message)
    }

    /// An error about the current expression that is one to Python too.
    pub(crate) fn raises(&mut self, code: Code, message: impl Into<String>) -> Diagnostic {
        // Behind another error nothing is certain.
        self.raised |= !self.has_errors() && !self.asked_host;
        self.error(code, message)
    }

    /// Counts a step.
    pub(crate) fn step(&mut self) -> Res<()> {
        self.charge(1)
    }

    /// Counts several steps.
    pub(crate) fn charge(&mut self, steps: usize) -> Res<()> {
        self.steps = self.steps.saturating_add(steps as u64);
        if self.steps > EVALUATION_STEPS {
            let message =
                format!("the kernel takes more than {EVALUATION_STEPS} steps to evaluate");
            let d = self.error(Code::Budget, message);
            return self.abort(d.help("unroll less, or call less deeply"));
        }
        if self.b.func().dfg.insts.len() > EVALUATION_OPERATIONS {
            let message = format!("the kernel has more than {EVALUATION_OPERATIONS} operations");
            let d = self.error(Code::Budget, message);
            return self.abort(d.help("use `range` in place of `static_range`"));
        }
        Ok(())
    }

    /// Counts the steps that something costs which looks at a whole text.
    pub(crate) fn charge_text(&mut self, text: &str) -> Res<()> {
        self.charge(text.len() / 8)
    }

    /// Reports an error after which nothing more is done.
    pub(crate) fn abort<T>(&mut self, diagnostic: Diagnostic) -> Res<T> {
        self.add(diagnostic);
        Err(Stop::Abort)
    }

    /// Adds a message with the calls that lead to it, once.
    pub(crate) fn add(&mut self, mut diagnostic: Diagnostic) {
        let inner = self.frames.iter().skip(1).rev();
        diagnostic.calls = inner
            .filter_map(|frame| {
                let f = frame.function.filter(|f| !prelude::owns(f));
                f.map(|f| CallSite {
                    function: f.name.to_string(),
                    span: bytes(frame.call),
                })
            })
            .collect();
        let seen = |d: &Diagnostic| {
            d.severity == diagnostic.severity
                && d.span == diagnostic.span
                && d.message == diagnostic.message
        };
        let room = diagnostic.severity == Severity::Error || self.messages.len() < MAX_NOTES;
        if room && !self.messages.iter().any(seen) {
            self.messages.push(diagnostic);
        }
    }

    /// Reports what stopped a statement; fails if nothing more is to be done.
    pub(crate) fn report(&mut self, stop: Stop) -> Res<()> {
        if let Some(frame) = self.frames.last_mut() {
            frame.broken = true;
        }
        match stop {
            Stop::Error(diagnostic) => self.add(*diagnostic),
            Stop::Reported => {}
            Stop::Abort => return Err(Stop::Abort),
        }
        let errors = self.messages.iter();
        let errors = errors.filter(|d| d.severity == Severity::Error).count();
        if errors >= MAX_MESSAGES {
            return Err(Stop::Abort);
        }
        Ok(())
    }

    /// Whether something is wrong.
    pub(crate) fn has_errors(&self) -> bool {
        self.messages.iter().any(|d| d.severity == Severity::Error)
    }
}

/// Runs on a larger stack if this one is nearly used up.
pub(crate) fn with_stack<T>(run: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(256 << 10, 4 << 20, run)
}
