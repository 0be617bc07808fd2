//! What a file defines: functions, classes, imports and constants of its top level.
//!
//! Nothing is executed. In functions a name stands for its last definition, and in what the module itself computes for the
//! last one before that place. So it is also where the definitions stand in the branches of an `if` whose condition only the
//! host could tell, of which users are warned; of a `try` the body counts, what its handlers define is taken only for names that
//! the body does not define. Constants are evaluated when a kernel uses them.

use indexmap::IndexMap;
use ruff_python_ast::{
    Expr, ExprList, ExprTuple, ModModule, Stmt, StmtAugAssign, StmtClassDef, StmtFunctionDef,
};
use ruff_text_size::{Ranged, TextRange, TextSize};

use super::diagnostic::{Code, Diagnostic, Severity};
use super::loops::{assigned_names, target_names};

/// Why nobody but the host knows a name.
const BY_THE_HOST: &str = "it is assigned where only the host knows what";

/// What a name of the top level stands for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Definition<'m> {
    /// A function.
    Function(&'m StmtFunctionDef),
    /// A class.
    Class(&'m StmtClassDef),
    /// A value to be evaluated, or one element of it.
    Value(&'m Expr, Option<usize>),
    /// A value made of the one that the name had before.
    Changed(&'m StmtAugAssign),
    /// `import a.b` (bound to `a`), or with `as` to the whole.
    Module(&'m str),
    /// `from module import name`.
    Member(&'m str, &'m str),
    /// A name of which only the host knows what it is, and why.
    Unknown(&'static str),
}

impl Definition<'_> {
    /// Where it stands, if it can be one of several.
    fn place(self) -> Option<TextRange> {
        match self {
            Definition::Function(f) => Some(f.range),
            Definition::Value(value, _) => Some(value.range()),
            Definition::Changed(s) => Some(s.range),
            _ => None,
        }
    }
}

/// How a function is decorated.
#[derive(Clone, Debug, Default)]
pub(crate) struct Decoration<'m> {
    /// `jit` or one of its kin.
    pub(crate) jit: bool,
    /// `constexpr_function`: Python to be run at compile time.
    pub(crate) host: bool,
    /// Keywords of `jit`.
    pub(crate) options: Vec<(&'m str, &'m Expr)>,
    /// Calls of `autotune` and `heuristics`.
    pub(crate) tuning: Vec<&'m ruff_python_ast::ExprCall>,
}

/// The definitions of a file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Index<'m> {
    pub(crate) names: IndexMap<&'m str, Definition<'m>>,
    /// Functions that are defined more than once, and values that a branch defines again, with a warning for those who use them.
    twice: IndexMap<&'m str, Diagnostic>,
    /// All definitions of a name, each with the end of its statement.
    all: IndexMap<&'m str, Vec<(TextSize, Definition<'m>)>>,
    /// What functions of the host define that have kernels within, with the place of their statements.
    makers: Vec<(TextRange, Index<'m>)>,
    /// Where `if` statements stand that are in no other.
    conditions: Vec<TextRange>,
}

impl<'m> Index<'m> {
    /// Reads the top level.
    pub(crate) fn new(module: &'m ModModule) -> Index<'m> {
        let mut index = Index::default();
        index.read(&module.body, false);
        index.warn_of_branches();
        index
    }

    /// `fallback`: names that are defined already stay.
    fn read(&mut self, body: &'m [Stmt], fallback: bool) {
        for stmt in body {
            let at = stmt.range().end();
            match stmt {
                Stmt::FunctionDef(f) => {
                    self.warn_twice(f, fallback);
                    self.define(f.name.as_str(), Definition::Function(f), at, fallback);
                    self.read_maker(f);
                }
                Stmt::ClassDef(c) => {
                    self.define(c.name.as_str(), Definition::Class(c), at, fallback);
                }
                Stmt::Import(import) => {
                    for alias in &import.names {
                        let path = alias.name.as_str();
                        match &alias.asname {
                            Some(name) => {
                                self.define(name.as_str(), Definition::Module(path), at, fallback);
                            }
                            None => {
                                let first = path.split('.').next().unwrap_or(path);
                                self.define(first, Definition::Module(first), at, fallback);
                            }
                        }
                    }
                }
                Stmt::ImportFrom(import) => {
                    let module = import.module.as_ref().map_or("", |m| m.as_str());
                    for alias in &import.names {
                        let member = alias.name.as_str();
                        let name = alias.asname.as_ref().map_or(member, |n| n.as_str());
                        // The library's own files name each other so.
                        let own = matches!(member, "core" | "math" | "standard" | "random");
                        let module = match (import.level, module) {
                            (1.., "") if own => "triton.language",
                            (_, module) => module,
                        };
                        self.define(name, Definition::Member(module, member), at, fallback);
                    }
                }
                Stmt::Assign(assign) => {
                    for target in &assign.targets {
                        self.define_target(target, &assign.value, at, fallback);
                    }
                }
                Stmt::AnnAssign(assign) => {
                    if let Some(value) = &assign.value {
                        self.define_target(&assign.target, value, at, fallback);
                    }
                }
                Stmt::AugAssign(s) => {
                    if let Expr::Name(name) = &*s.target {
                        self.define(name.id.as_str(), Definition::Changed(s), at, fallback);
                    }
                }
                Stmt::If(s) => {
                    let outer = self.conditions.last();
                    if outer.is_none_or(|outer| !outer.contains_range(s.range)) {
                        self.conditions.push(s.range);
                    }
                    self.read(&s.body, fallback);
                    for clause in &s.elif_else_clauses {
                        self.read(&clause.body, fallback);
                    }
                }
                Stmt::Try(s) => {
                    self.read(&s.body, fallback);
                    for handler in &s.handlers {
                        let ruff_python_ast::ExceptHandler::ExceptHandler(handler) = handler;
                        self.read(&handler.body, true);
                    }
                    self.read(&s.orelse, fallback);
                    self.read(&s.finalbody, fallback);
                }
                Stmt::With(s) => self.read(&s.body, fallback),
                // What else stands at the top level runs on the host; what it calls something is not known.
                other => {
                    let mut names = Vec::new();
                    assigned_names(std::slice::from_ref(other), &mut names);
                    if let Stmt::Delete(s) = other {
                        s.targets
                            .iter()
                            .for_each(|target| target_names(target, &mut names));
                    }
                    for name in names {
                        self.define(name, Definition::Unknown(BY_THE_HOST), at, fallback);
                    }
                }
            }
        }
    }

    /// A function of the host that has kernels within, to which its names come before those of the top level; to others they are
    /// known where nothing at the top level has them. Of its parameters the defaults are known.
    fn read_maker(&mut self, f: &'m StmtFunctionDef) {
        let own = decoration(f);
        let makes = |stmt: &Stmt| matches!(stmt, Stmt::FunctionDef(f) if decoration(f).jit);
        if own.jit || own.host || !f.body.iter().any(makes) {
            return;
        }
        let mut inside = Index::default();
        let start = f.body.first().map_or(f.range.end(), Ranged::start);
        for param in params(f) {
            let definition = match param.default {
                Some(default) => Definition::Value(default, None),
                None => Definition::Unknown("it is a parameter of a function of the host"),
            };
            inside.define(param.name, definition, start, false);
        }
        inside.read(&f.body, false);
        inside.warn_of_branches();
        for (name, definition) in &inside.names {
            if !matches!(definition, Definition::Unknown(_)) {
                self.define(name, *definition, f.range.end(), true);
            }
        }
        for (name, warning) in &inside.twice {
            self.twice.entry(name).or_insert_with(|| warning.clone());
        }
        let range = TextRange::new(start, f.range.end().max(start));
        self.makers.push((range, inside));
    }

    fn define(&mut self, name: &'m str, definition: Definition<'m>, at: TextSize, fallback: bool) {
        if !fallback || !self.names.contains_key(name) {
            self.names.insert(name, definition);
            self.all.entry(name).or_default().push((at, definition));
        }
    }

    /// What a name stands for at a place: in a function that stands there, or else in an expression of the module.
    pub(crate) fn find(
        &self,
        name: &str,
        place: TextRange,
        in_function: bool,
    ) -> Option<Definition<'m>> {
        // Makers stand one behind the other, and so do the definitions of a name.
        let at = self
            .makers
            .partition_point(|(range, _)| range.start() <= place.start());
        let around = at.checked_sub(1).and_then(|at| self.makers.get(at));
        let around = around.filter(|(range, _)| range.contains_range(place));
        let inside = around.and_then(|(_, inside)| inside.find(name, place, in_function));
        inside.or_else(|| {
            let last = self.names.get(name).copied();
            let all = self.all.get(name).filter(|_| !in_function);
            let earlier = all.and_then(|all| {
                let before = all.partition_point(|(end, _)| *end <= place.start());
                all.get(before.checked_sub(1)?)
            });
            earlier.map(|(_, definition)| *definition).or(last)
        })
    }

    /// What users of a definition are warned of.
    pub(crate) fn warning(&self, name: &str, definition: Definition<'m>) -> Option<&Diagnostic> {
        let last = self.names.get(name).and_then(|last| last.place());
        self.twice.get(name).filter(|_| definition.place() == last)
    }

    fn define_target(&mut self, target: &'m Expr, value: &'m Expr, at: TextSize, fallback: bool) {
        match target {
            Expr::Name(name) => {
                self.define(
                    name.id.as_str(),
                    Definition::Value(value, None),
                    at,
                    fallback,
                );
            }
            Expr::Tuple(ExprTuple { elts, .. }) | Expr::List(ExprList { elts, .. }) => {
                let is_plain = elts.iter().all(Expr::is_name_expr);
                for (i, target) in elts.iter().enumerate() {
                    let mut names = Vec::new();
                    target_names(target, &mut names);
                    let definition = match is_plain {
                        true => Definition::Value(value, Some(i)),
                        false => Definition::Unknown(BY_THE_HOST),
                    };
                    for name in names {
                        self.define(name, definition, at, fallback);
                    }
                }
            }
            _ => {}
        }
    }

    fn warn_twice(&mut self, f: &'m StmtFunctionDef, fallback: bool) {
        if fallback || !decoration(f).jit {
            return;
        }
        if let Some(Definition::Function(first)) = self.names.get(f.name.as_str())
            && decoration(first).jit
        {
            let message = format!("`{}` is defined twice; the last definition counts", f.name);
            let d = Diagnostic::error(Code::Suspicious, f.name.range(), message)
                .help("conditions of the host around definitions are not evaluated")
                .with_severity(Severity::Warning);
            self.twice.insert(f.name.as_str(), d);
        }
    }

    /// Values that are defined in an `if`, and elsewhere too.
    fn warn_of_branches(&mut self) {
        for (name, definitions) in &self.all {
            let (_, last) = definitions[definitions.len() - 1];
            let (Definition::Value(..) | Definition::Changed(_), Some(place)) =
                (last, last.place())
            else {
                continue;
            };
            let at = self
                .conditions
                .partition_point(|range| range.start() <= place.start());
            let around = at.checked_sub(1).and_then(|at| self.conditions.get(at));
            if definitions.len() > 1 && around.is_some_and(|range| range.contains_range(place)) {
                let message = format!("`{name}` is defined twice; the last definition counts");
                let d = Diagnostic::error(Code::Suspicious, place, message)
                    .help("conditions of the host around definitions are not evaluated")
                    .with_severity(Severity::Warning);
                self.twice.insert(name, d);
            }
        }
    }

    /// The functions that are kernels or can be called by them, in the order of the file.
    pub(crate) fn jit_functions(&self) -> impl Iterator<Item = &'m StmtFunctionDef> + '_ {
        self.names
            .values()
            .filter_map(|definition| match definition {
                Definition::Function(f) if decoration(f).jit => Some(*f),
                _ => None,
            })
    }
}

/// The last component of a dotted name, called or not.
pub(crate) fn last_name(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Name(name) => Some(name.id.as_str()),
        Expr::Attribute(a) => Some(a.attr.as_str()),
        Expr::Call(call) => last_name(&call.func),
        _ => None,
    }
}

/// What the decorators of a function say.
pub(crate) fn decoration(f: &StmtFunctionDef) -> Decoration<'_> {
    let mut found = Decoration::default();
    for decorator in &f.decorator_list {
        let call = decorator.expression.as_call_expr();
        match last_name(&decorator.expression) {
            Some("jit") => {
                found.jit = true;
                let keywords = call.map_or(&[][..], |c| &c.arguments.keywords);
                found.options = keywords
                    .iter()
                    .filter_map(|k| k.arg.as_ref().map(|name| (name.as_str(), &k.value)))
                    .collect();
            }
            Some("constexpr_function") => found.host = true,
            Some("autotune" | "heuristics") => found.tuning.extend(call),
            _ => {}
        }
    }
    found
}

/// A parameter of a function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Param<'m> {
    pub(crate) name: &'m str,
    pub(crate) range: TextRange,
    pub(crate) annotation: Option<&'m Expr>,
    pub(crate) default: Option<&'m Expr>,
    /// Whether it may be given by position.
    pub(crate) positional: bool,
}

impl Param<'_> {
    /// Whether it is annotated `constexpr`, as a name or as a string.
    pub(crate) fn is_constexpr(&self) -> bool {
        self.annotation.is_some_and(is_constexpr)
    }
}

/// Whether an annotation says `constexpr`.
pub(crate) fn is_constexpr(annotation: &Expr) -> bool {
    match annotation {
        Expr::StringLiteral(s) => s.value.to_str().rsplit('.').next() == Some("constexpr"),
        annotation => last_name(annotation) == Some("constexpr"),
    }
}

/// The parameters of a function in order, `*args` and `**META` left out.
pub(crate) fn params(f: &StmtFunctionDef) -> impl Iterator<Item = Param<'_>> {
    let p = &f.parameters;
    let positional = p.posonlyargs.iter().chain(&p.args).map(|p| (p, true));
    positional
        .chain(p.kwonlyargs.iter().map(|p| (p, false)))
        .map(|(p, positional)| Param {
            name: p.parameter.name.as_str(),
            range: p.parameter.range,
            annotation: p.parameter.annotation.as_deref(),
            default: p.default.as_deref(),
            positional,
        })
}
