//! What a file defines: functions, classes, imports and constants of its top level.
//!
//! Nothing is executed. A name stands for its last definition, also where the definitions stand in the branches of an
//! `if` whose condition only the host could tell; of a `try` the body counts, what its handlers define is taken only for
//! names that the body does not define. Constants are evaluated when a kernel uses them.

use indexmap::IndexMap;
use ruff_python_ast::{Expr, ModModule, Stmt, StmtClassDef, StmtFunctionDef};
use ruff_text_size::{Ranged, TextRange};

use super::diagnostic::{Code, Diagnostic, Severity};

/// What a name of the top level stands for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Definition<'m> {
    /// A function.
    Function(&'m StmtFunctionDef),
    /// A class.
    Class(&'m StmtClassDef),
    /// A value to be evaluated, or one element of it.
    Value(&'m Expr, Option<usize>),
    /// `import a.b` (bound to `a`), or with `as` to the whole.
    Module(&'m str),
    /// `from module import name`.
    Member(&'m str, &'m str),
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
    /// Functions that are defined more than once, with a warning for those who use them.
    pub(crate) twice: IndexMap<&'m str, Diagnostic>,
}

impl<'m> Index<'m> {
    /// Reads the top level.
    pub(crate) fn new(module: &'m ModModule) -> Index<'m> {
        let mut index = Index::default();
        index.read(&module.body, false);
        index
    }

    /// `fallback`: names that are defined already stay.
    fn read(&mut self, body: &'m [Stmt], fallback: bool) {
        for stmt in body {
            match stmt {
                Stmt::FunctionDef(f) => {
                    self.warn_twice(f, fallback);
                    self.define(f.name.as_str(), Definition::Function(f), fallback);
                    self.read_maker(f);
                }
                Stmt::ClassDef(c) => {
                    self.define(c.name.as_str(), Definition::Class(c), fallback);
                }
                Stmt::Import(import) => {
                    for alias in &import.names {
                        let path = alias.name.as_str();
                        match &alias.asname {
                            Some(name) => {
                                self.define(name.as_str(), Definition::Module(path), fallback);
                            }
                            None => {
                                let first = path.split('.').next().unwrap_or(path);
                                self.define(first, Definition::Module(first), fallback);
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
                        self.define(name, Definition::Member(module, member), fallback);
                    }
                }
                Stmt::Assign(assign) => {
                    for target in &assign.targets {
                        self.define_target(target, &assign.value, fallback);
                    }
                }
                Stmt::AnnAssign(assign) => {
                    if let Some(value) = &assign.value {
                        self.define_target(&assign.target, value, fallback);
                    }
                }
                Stmt::If(s) => {
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
                // What else stands at the top level runs on the host and defines nothing for kernels.
                _ => {}
            }
        }
    }

    /// A function of the host that has kernels within: what it defines is known to them, where nothing at the top level
    /// has the name. Of its parameters the defaults are known.
    fn read_maker(&mut self, f: &'m StmtFunctionDef) {
        let own = decoration(f);
        let makes = |stmt: &Stmt| matches!(stmt, Stmt::FunctionDef(f) if decoration(f).jit);
        if own.jit || own.host || !f.body.iter().any(makes) {
            return;
        }
        for param in params(f) {
            if let Some(default) = param.default {
                self.define(param.name, Definition::Value(default, None), true);
            }
        }
        self.read(&f.body, true);
    }

    fn define(&mut self, name: &'m str, definition: Definition<'m>, fallback: bool) {
        if !fallback || !self.names.contains_key(name) {
            self.names.insert(name, definition);
        }
    }

    fn define_target(&mut self, target: &'m Expr, value: &'m Expr, fallback: bool) {
        match target {
            Expr::Name(name) => {
                self.define(name.id.as_str(), Definition::Value(value, None), fallback);
            }
            Expr::Tuple(tuple) => {
                for (i, target) in tuple.elts.iter().enumerate() {
                    if let Expr::Name(name) = target {
                        let definition = Definition::Value(value, Some(i));
                        self.define(name.id.as_str(), definition, fallback);
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
