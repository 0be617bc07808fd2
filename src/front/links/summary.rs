//! What of a file matters to those who follow names: what gives each name its value, and what kernels use.

use ruff_python_ast::visitor::{Visitor, walk_expr, walk_stmt};
use ruff_python_ast::{Expr, ExprContext, ModModule, Stmt, StmtFunctionDef};
use ruff_text_size::{Ranged, TextRange, TextSize};
use rustc_hash::FxHashMap;

use super::Chain;
use crate::front::changes::bound_names;
use crate::front::lower::with_stack;
use crate::front::module::decoration;
use crate::front::step::METHODS;

/// What gives a name of a module its value.
pub(super) enum Binding {
    /// `from module import member`, or with no member `import module as ..`.
    Import {
        at: TextSize,
        module: (u32, String),
        member: Option<String>,
    },
    /// `import module`, by its first part.
    Dotted(TextSize),
    /// What these names stand for.
    Uses(Vec<Chain>),
}

/// What matters of a file.
#[derive(Default)]
pub(super) struct Summary {
    pub(super) bindings: FxHashMap<String, Vec<Binding>>,
    /// `from module import *`.
    pub(super) stars: Vec<(TextSize, (u32, String))>,
    /// Names that kernels use.
    pub(super) kernels: Vec<Chain>,
    /// `__all__`, if it is a list of texts.
    pub(super) all: Option<Vec<String>>,
    /// What statements of the top level change that has a name.
    pub(super) altered: Vec<(Chain, TextRange)>,
}

impl Summary {
    pub(super) fn of(tree: &ModModule) -> Summary {
        let mut summary = Summary::default();
        summary.read(&tree.body);
        summary
    }

    fn read(&mut self, body: &[Stmt]) {
        for stmt in body {
            match stmt {
                Stmt::Import(s) => {
                    for alias in &s.names {
                        let module = alias.name.as_str();
                        let (name, binding) = match &alias.asname {
                            Some(name) => {
                                let module = (0, module.to_owned());
                                let at = s.range.start();
                                let member = None;
                                (name.as_str(), Binding::Import { at, module, member })
                            }
                            None => {
                                let first = module.split('.').next().unwrap_or(module);
                                (first, Binding::Dotted(s.range.start()))
                            }
                        };
                        self.bind(name, binding);
                    }
                }
                Stmt::ImportFrom(s) => {
                    let module = s.module.as_ref().map_or("", |module| module.as_str());
                    let module = (s.level, module.to_owned());
                    let at = s.range.start();
                    for alias in &s.names {
                        if alias.name.as_str() == "*" {
                            self.stars.push((at, module.clone()));
                            continue;
                        }
                        let name = alias.asname.as_ref().unwrap_or(&alias.name);
                        let binding = Binding::Import {
                            at,
                            module: module.clone(),
                            member: Some(alias.name.to_string()),
                        };
                        self.bind(name.as_str(), binding);
                    }
                }
                Stmt::FunctionDef(f) => {
                    let uses = Uses::of(|uses| uses.visit_stmt(stmt));
                    if decoration(f).jit {
                        self.kernels.extend(uses.iter().cloned());
                    }
                    self.bind(f.name.as_str(), Binding::Uses(uses));
                    if makes_kernels(f) {
                        self.read(&f.body);
                    }
                }
                Stmt::ClassDef(c) => {
                    let uses = Uses::of(|uses| uses.visit_stmt(stmt));
                    self.bind(c.name.as_str(), Binding::Uses(uses));
                    self.read_kernels(&c.body);
                }
                Stmt::If(s) => {
                    self.read(&s.body);
                    let clauses = s.elif_else_clauses.iter();
                    clauses.for_each(|clause| self.read(&clause.body));
                    self.bind_all(stmt, &[&s.test]);
                }
                Stmt::Try(s) => {
                    self.read(&s.body);
                    for handler in &s.handlers {
                        let ruff_python_ast::ExceptHandler::ExceptHandler(handler) = handler;
                        self.read(&handler.body);
                    }
                    self.read(&s.orelse);
                    self.read(&s.finalbody);
                }
                Stmt::With(s) => self.read(&s.body),
                other => {
                    if let Some(all) = names_of_all(other) {
                        self.all = Some(all);
                    }
                    let mut altered = Vec::new();
                    alterations(other, &mut altered);
                    let range = other.range();
                    self.altered
                        .extend(altered.into_iter().map(|chain| (chain, range)));
                    let uses = Uses::of(|uses| uses.visit_stmt(other));
                    for name in bound_names(std::slice::from_ref(other)) {
                        self.bind(name, Binding::Uses(uses.clone()));
                    }
                }
            }
        }
    }

    /// What the functions with `@jit` in a class use.
    fn read_kernels(&mut self, body: &[Stmt]) {
        for stmt in body {
            if let Stmt::FunctionDef(f) = stmt
                && decoration(f).jit
            {
                self.kernels.extend(Uses::of(|uses| uses.visit_stmt(stmt)));
            }
        }
    }

    /// Names of a statement, which depend on these expressions too.
    fn bind_all(&mut self, stmt: &Stmt, tests: &[&Expr]) {
        let uses = Uses::of(|uses| tests.iter().for_each(|test| uses.visit_expr(test)));
        if uses.is_empty() {
            return;
        }
        for name in bound_names(std::slice::from_ref(stmt)) {
            self.bind(name, Binding::Uses(uses.clone()));
        }
    }

    fn bind(&mut self, name: &str, binding: Binding) {
        let bindings = self.bindings.entry(name.to_owned()).or_default();
        bindings.push(binding);
    }
}

/// Methods that change what they are called of, beside those that are followed ([`METHODS`]).
const OTHERS: [&str; 5] = ["add", "discard", "remove", "reverse", "sort"];

/// What a statement changes that has a name: an element, an attribute, or what a list holds.
fn alterations(stmt: &Stmt, altered: &mut Vec<Chain>) {
    let mut place = |target: &Expr| {
        let base = match target {
            Expr::Subscript(e) => Some(&*e.value),
            Expr::Attribute(_) => Some(target),
            _ => None,
        };
        altered.extend(base.and_then(dotted));
    };
    match stmt {
        Stmt::Assign(s) => s.targets.iter().for_each(place),
        Stmt::AugAssign(s) => {
            place(&s.target);
            // A list under the name is changed in place.
            altered.extend(dotted(&s.target));
        }
        Stmt::Delete(s) => s.targets.iter().for_each(place),
        Stmt::Expr(s) => {
            if let Expr::Call(call) = &*s.value
                && let Expr::Attribute(method) = &*call.func
                && METHODS
                    .iter()
                    .chain(&OTHERS)
                    .any(|name| *name == method.attr.as_str())
            {
                altered.extend(dotted(&method.value));
            }
        }
        Stmt::For(s) => s.body.iter().for_each(|stmt| alterations(stmt, altered)),
        Stmt::While(s) => s.body.iter().for_each(|stmt| alterations(stmt, altered)),
        _ => {}
    }
}

/// A dotted name.
fn dotted(expr: &Expr) -> Option<Chain> {
    match expr {
        Expr::Name(name) => Some(vec![name.id.to_string()]),
        Expr::Attribute(e) => {
            let mut chain = dotted(&e.value)?;
            chain.push(e.attr.to_string());
            Some(chain)
        }
        _ => None,
    }
}

/// The names of `__all__ = [..]`.
fn names_of_all(stmt: &Stmt) -> Option<Vec<String>> {
    let assign = stmt.as_assign_stmt()?;
    let target = assign.targets.first()?.as_name_expr()?;
    let list = match &*assign.value {
        Expr::List(list) => &list.elts,
        Expr::Tuple(list) => &list.elts,
        _ => return None,
    };
    let names = list
        .iter()
        .map(|e| Some(e.as_string_literal_expr()?.value.to_str().to_owned()));
    (target.id.as_str() == "__all__").then(|| names.collect())?
}

/// Whether a function of the host has kernels within.
fn makes_kernels(f: &StmtFunctionDef) -> bool {
    let is_kernel = |stmt: &Stmt| matches!(stmt, Stmt::FunctionDef(f) if decoration(f).jit);
    !decoration(f).jit && f.body.iter().any(is_kernel)
}

/// The dotted names that a text uses, be it that some are its own.
#[derive(Default)]
struct Uses(Vec<Chain>);

impl Uses {
    fn of(walk: impl FnOnce(&mut Uses)) -> Vec<Chain> {
        let mut uses = Uses::default();
        walk(&mut uses);
        let Uses(mut chains) = uses;
        chains.sort_unstable();
        chains.dedup();
        chains
    }
}

impl<'a> Visitor<'a> for Uses {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        with_stack(|| walk_stmt(self, stmt));
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        let mut chain: Vec<&str> = Vec::new();
        let mut base = expr;
        while let Expr::Attribute(e) = base {
            chain.push(e.attr.as_str());
            base = &e.value;
        }
        match base {
            Expr::Name(name) if name.ctx == ExprContext::Load || !chain.is_empty() => {
                chain.push(name.id.as_str());
                let chain = chain.into_iter().rev().map(str::to_owned);
                self.0.push(chain.collect());
            }
            Expr::Name(_) => {}
            _ => with_stack(|| walk_expr(self, expr)),
        }
    }
}
