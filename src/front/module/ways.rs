//! Statements that can go several ways, and what they give a name in each: an `if`, a `try` or a `with` of which a part may run.

use indexmap::IndexMap;
use ruff_python_ast::{ExceptHandler, Expr, Stmt, StmtTry, WithItem};
use ruff_text_size::{Ranged, TextRange, TextSize};
use rustc_hash::FxHashMap;

use super::{Definition, Index, Param, Unknown, defined_twice, params};

impl<'m> Index<'m> {
    /// Reads what a statement does in each of the ways that it can go, of which one is without statements if none need be
    /// gone. With `breaks_off` all but the first are gone after a part of the first.
    pub(super) fn read_ways(
        &mut self,
        ways: &[Vec<&'m [Stmt]>],
        range: TextRange,
        breaks_off: bool,
    ) {
        let start = range.start();
        let before: IndexMap<&'m str, Definition<'m>> = self
            .names
            .iter()
            .map(|(name, definition)| (*name, definition.before(start)))
            .collect();
        let caught = self.caught;
        let mut ends: Vec<IndexMap<&'m str, Definition<'m>>> = Vec::new();
        let mut changed: Vec<&'m str> = Vec::new();
        let unknown = Definition::Unknown(Unknown::Ways(range));
        let mut torn = Vec::new();
        for way in ways {
            // What the ways read before have defined is not there.
            let start = way
                .first()
                .and_then(|body| body.first())
                .map_or(range.end(), Ranged::start);
            for name in &changed {
                let old = before.get(name).copied().filter(|_| !breaks_off);
                self.define(name, old.unwrap_or(unknown), start, false);
            }
            let counts = |index: &Self| -> FxHashMap<&'m str, usize> {
                index
                    .all
                    .iter()
                    .map(|(name, all)| (*name, all.len()))
                    .collect()
            };
            let known = counts(self);
            self.caught = caught || breaks_off && ways.len() > 1;
            way.iter().for_each(|body| self.read(body));
            self.caught = caught;
            let mut end = IndexMap::new();
            for (name, count) in counts(self) {
                let more = count - known.get(name).copied().unwrap_or(0);
                if more > 0 {
                    end.insert(name, self.names[name]);
                    if !changed.contains(&name) {
                        changed.push(name);
                    }
                    if more > 1 && ends.is_empty() && breaks_off {
                        torn.push(name);
                    }
                }
            }
            ends.push(end);
        }
        if ways.len() < 2 {
            return;
        }
        changed.sort_unstable();
        for name in changed {
            let mut given: Vec<Definition<'m>> = Vec::new();
            for end in &ends {
                // That it has no value is an error of Python for who asks for it.
                let Some(definition) = end.get(name).or_else(|| before.get(name)).copied() else {
                    continue;
                };
                if !given.iter().any(|other| other.is_same(definition)) {
                    given.push(definition);
                }
            }
            if torn.contains(&name) {
                given.push(unknown);
            }
            let kernel = given.iter().rev().copied().find(Definition::is_kernel);
            let definition = match (kernel, &*given) {
                // It can be named; who does is warned.
                (Some(kernel), many) => {
                    if let (Definition::Function(f), [_, _, ..]) = (kernel, many) {
                        self.warnings.insert(name, (kernel, defined_twice(f)));
                    }
                    kernel
                }
                (None, [one]) => *one,
                _ => {
                    self.ways.insert((name, range), given);
                    Definition::Ways(range)
                }
            };
            self.define(name, definition, range.end(), false);
        }
    }

    /// What runs of a `try` that imports something of which it is certain that it is not there: the statements before, the handler, and
    /// what comes in the end. None if another exception may come first, or no handler takes this one.
    pub(super) fn caught_import(&self, s: &'m StmtTry) -> Option<[&'m [Stmt]; 3]> {
        let missing = &self.links?.missing;
        let at = s.body.iter().position(|stmt| {
            let is_import = matches!(stmt, Stmt::Import(_) | Stmt::ImportFrom(_));
            is_import && missing.contains(&stmt.start())
        })?;
        // Whether a handler of this type takes it, if that is certain.
        let takes = |name: &Expr| {
            let name = name.as_name_expr().map(|name| name.id.as_str())?;
            let is_known = !self.names.contains_key(name);
            match name {
                "ImportError" | "ModuleNotFoundError" | "Exception" | "BaseException" => {
                    is_known.then_some(true)
                }
                "ValueError"
                | "TypeError"
                | "AttributeError"
                | "RuntimeError"
                | "KeyError"
                | "NameError"
                | "OSError"
                | "NotImplementedError"
                | "AssertionError"
                | "IndexError" => is_known.then_some(false),
                _ => None,
            }
        };
        let mut found = None;
        for ExceptHandler::ExceptHandler(handler) in &s.handlers {
            let is_taken = match handler.type_.as_deref() {
                None => true,
                Some(Expr::Tuple(names)) => {
                    let taken = names.elts.iter().map(takes);
                    taken.collect::<Option<Vec<bool>>>()?.contains(&true)
                }
                Some(name) => takes(name)?,
            };
            if is_taken {
                found = Some(&*handler.body);
                break;
            }
        }
        let handler = found?;
        let goes_on = self.is_sure(&s.body[..at]) && !self.leaves(handler);
        goes_on.then_some([&s.body[..at], handler, &s.finalbody])
    }

    /// The handlers of a `try` behind which the module goes on.
    pub(super) fn handlers(&self, s: &'m StmtTry) -> impl Iterator<Item = &'m [Stmt]> {
        let handlers = s.handlers.iter();
        let bodies = handlers.map(|ExceptHandler::ExceptHandler(handler)| &*handler.body);
        bodies.filter(|body| !self.leaves(body))
    }

    /// Whether statements end the import of the module.
    pub(super) fn leaves(&self, body: &[Stmt]) -> bool {
        !self.caught && matches!(body.last(), Some(Stmt::Raise(_)))
    }

    /// Whether the module may go on behind a `try` or a `with` of which only a part has run.
    pub(crate) fn breaks_off(&self, stmt: &'m Stmt) -> bool {
        match stmt {
            Stmt::Try(s) => self.handlers(s).next().is_some() && !self.is_sure(&s.body),
            Stmt::With(s) => {
                let through = |item: &'m WithItem| self.lets_through(&item.context_expr);
                !s.items.iter().all(through) && !self.is_sure(&s.body)
            }
            _ => false,
        }
    }

    /// Whether statements run to their end for certain.
    fn is_sure(&self, body: &'m [Stmt]) -> bool {
        body.iter().all(|stmt| match stmt {
            Stmt::Import(s) => {
                let is_linked = |name: &str| self.is_linked(s.range.start(), name);
                let mut names = s.names.iter();
                names.all(|alias| is_linked(&alias.name) || is_there(&alias.name, None))
            }
            Stmt::ImportFrom(s) => {
                let is_linked = |name: &str| self.is_linked(s.range.start(), name);
                let module = s.module.as_ref().filter(|_| s.level == 0);
                let mut names = s.names.iter();
                names.all(|alias| {
                    let found = module.is_some_and(|m| is_there(m, Some(&alias.name)));
                    found || is_linked(&alias.name)
                })
            }
            Stmt::Assign(s) => {
                s.targets.iter().all(Expr::is_name_expr) && self.is_sure_value(&s.value)
            }
            Stmt::AnnAssign(s) => {
                let value = s.value.as_deref();
                s.target.is_name_expr()
                    && s.annotation.is_name_expr()
                    && value.is_none_or(|value| self.is_sure_value(value))
            }
            Stmt::FunctionDef(f) => {
                let is_bare = |p: Param<'_>| p.default.is_none() && p.annotation.is_none();
                f.decorator_list.is_empty() && f.returns.is_none() && params(f).all(is_bare)
            }
            Stmt::Pass(_) => true,
            Stmt::Expr(s) => self.is_sure_value(&s.value),
            _ => false,
        })
    }

    /// Whether an import leads to a file that is imported without an exception.
    fn is_linked(&self, at: TextSize, name: &str) -> bool {
        let is_unsure = self.links.is_some_and(|links| links.unsure.contains(&at));
        self.link(at, name).is_some() && !is_unsure
    }

    /// Whether an expression is something that the library here has.
    fn is_of_library(&self, value: &'m Expr) -> bool {
        let path = self.path_of(value, 1, |name| self.names.get(name).copied());
        let parts = path.as_ref().and_then(|path| path.rsplit_once('.'));
        parts.is_some_and(|(module, name)| is_there(module, Some(name)))
    }

    fn is_sure_value(&self, value: &'m Expr) -> bool {
        match value {
            Expr::Name(name) => {
                let known = self.names.get(name.id.as_str());
                known.is_some_and(|d| !matches!(d, Definition::Unknown(_) | Definition::Ways(_)))
            }
            Expr::Tuple(e) => e.elts.iter().all(|e| self.is_sure_value(e)),
            Expr::List(e) => e.elts.iter().all(|e| self.is_sure_value(e)),
            Expr::Attribute(_) => self.is_of_library(value),
            // These take any function.
            Expr::Call(call) if call.arguments.keywords.is_empty() => {
                let function = call.func.as_attribute_expr().map(|e| e.attr.as_str());
                matches!(function, Some("constexpr_function" | "jit"))
                    && self.is_of_library(&call.func)
                    && call
                        .arguments
                        .args
                        .iter()
                        .all(|arg| self.is_sure_value(arg))
            }
            value => value.is_literal_expr(),
        }
    }

    /// Whether exceptions leave the `with` of this context.
    fn lets_through(&self, context: &'m Expr) -> bool {
        let function = match context {
            Expr::Call(call) => &*call.func,
            other => other,
        };
        let path = self.path_of(function, 1, |name| self.names.get(name).copied());
        let last = path.as_ref().and_then(|path| path.rsplit('.').next());
        last.is_some_and(|last| !matches!(last, "suppress" | "raises" | "ExitStack"))
    }
}

/// Modules of Python that kernels' files import.
pub(crate) const STANDARD: &str = "\
    math copy typing collections itertools functools operator os sys dataclasses enum logging warnings contextlib json re pprint \
    inspect time abc types importlib pathlib random string platform __future__";

/// Whether an import finds something for certain: a part of Python, or what the language here has.
fn is_there(module: &str, member: Option<&str>) -> bool {
    let first = module.split('.').next().unwrap_or(module);
    match (first, member) {
        ("triton", Some(member)) => crate::front::names::is_of_library(module, member),
        ("triton", None) => matches!(module, "triton" | "triton.language"),
        (first, None) => module == first && STANDARD.split_whitespace().any(|name| name == first),
        (_, Some(_)) => false,
    }
}
