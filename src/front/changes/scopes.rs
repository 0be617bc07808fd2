//! Whose a name is, and how deep what it stands for can change.

use ruff_python_ast::visitor::{Visitor, walk_expr, walk_pattern, walk_stmt};
use ruff_python_ast::{ExceptHandler, Expr, Parameters, Pattern, Stmt};
use rustc_hash::{FxHashMap, FxHashSet};

use super::held::{DEEPEST, Held};
use super::walk::Walk;
use crate::front::loops::target_names;
use crate::front::module::{Definition, decoration, last_name};

/// Most aliases of a module, one of the other.
const MAX_ALIASES: usize = 8;

/// How many levels of values can change: of names of the scope (owner `""`), of those of functions and classes.
#[derive(Default)]
pub(super) struct Levels<'m> {
    of: FxHashMap<(&'m str, &'m str), u8>,
    /// Nothing is known, and all is taken to change.
    deepest: bool,
    /// One has grown.
    pub(super) grown: bool,
}

impl<'m> Levels<'m> {
    pub(super) fn get(&self, owner: &'m str, name: &'m str) -> u8 {
        match self.deepest {
            true => DEEPEST,
            false => self.of.get(&(owner, name)).copied().unwrap_or(0),
        }
    }

    /// Gives a class the attributes of one that it inherits from.
    pub(super) fn inherit(&mut self, class: &'m str, base: &'m str) {
        let inherited = self.of.iter().filter(|((owner, _), _)| *owner == base);
        let inherited: Vec<_> = inherited
            .map(|((_, name), levels)| (*name, *levels))
            .collect();
        for (name, levels) in inherited {
            self.grow(class, name, levels);
        }
    }

    pub(super) fn grow(&mut self, owner: &'m str, name: &'m str, levels: u8) {
        let known = self.of.entry((owner, name)).or_insert(0);
        if *known < levels {
            *known = levels;
            self.grown = true;
        }
    }

    pub(super) fn assume_deepest(&mut self) {
        self.deepest = true;
    }

    /// The attributes of a class that can change.
    pub(super) fn of_class(&self, class: &str) -> impl Iterator<Item = &'m str> {
        let all = self.of.iter();
        all.filter(move |((owner, _), levels)| *owner == class && **levels > 0)
            .map(|((_, name), _)| *name)
    }
}

/// What the first parameter of a method is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum First {
    /// An object being made.
    Made,
    /// An object.
    Object,
    /// The class.
    Class,
}

/// Names within a function, a class or a list's `for`.
#[derive(Default)]
pub(super) struct Scope<'m> {
    /// The function or class of the outermost scope that it is part of.
    pub(super) owner: Option<&'m str>,
    names: FxHashSet<&'m str>,
    /// Names of the outermost scope by its word.
    globals: FxHashSet<&'m str>,
    /// Its names are not seen from functions within.
    pub(super) is_class: bool,
    /// The first parameter of a method.
    pub(super) first: Option<(&'m str, First)>,
    /// What is known of its names, if it is a list's `for`.
    given: Vec<(&'m str, Held<'m>)>,
}

/// Whose a name is.
pub(super) enum Place<'m> {
    /// Of the scope that is gone over.
    Own(&'m str),
    /// Of a function or class in it.
    Local(Option<&'m str>, &'m str),
    /// Of a list's `for`, with what is known of it.
    Given(Held<'m>),
    /// Of Python, or of another scope around.
    Outside,
}

impl<'m> Scope<'m> {
    /// That of a function's or a class's body.
    pub(super) fn new(
        owner: Option<&'m str>,
        parameters: Option<&'m Parameters>,
        body: &'m [Stmt],
    ) -> Scope<'m> {
        let mut bound = Bound::default();
        if let Some(parameters) = parameters {
            bound
                .names
                .extend(parameters.iter().map(|p| p.name().as_str()));
        }
        bound.visit_body(body);
        let Bound {
            mut names,
            globals,
            others,
        } = bound;
        names.retain(|name| !globals.contains(name) && !others.contains(name));
        Scope {
            owner,
            names,
            globals,
            ..Scope::default()
        }
    }

    /// That of `for target in ..` in a list, whose elements are these.
    pub(super) fn elements(target: &'m Expr, element: &Held<'m>) -> Scope<'m> {
        let mut names = Vec::new();
        target_names(target, &mut names);
        let given = names
            .into_iter()
            .map(|name| (name, element.clone()))
            .collect();
        Scope {
            given,
            ..Scope::default()
        }
    }

    /// The names that it binds.
    pub(super) fn names(&self) -> impl Iterator<Item = &'m str> {
        self.names.iter().copied()
    }

    /// Whether it is a list's `for`.
    pub(super) fn is_for(&self) -> bool {
        !self.given.is_empty()
    }
}

/// Names that statements bind, without those of functions and classes within.
#[derive(Default)]
struct Bound<'m> {
    names: FxHashSet<&'m str>,
    globals: FxHashSet<&'m str>,
    /// Names of functions around.
    others: FxHashSet<&'m str>,
}

/// The names that statements bind in their own scope, in whatever way.
pub(crate) fn bound_names<'m>(body: &'m [Stmt]) -> Vec<&'m str> {
    let mut bound = Bound::default();
    bound.visit_body(body);
    let mut names: Vec<&'m str> = bound.names.into_iter().collect();
    names.retain(|name| !bound.globals.contains(name) && !bound.others.contains(name));
    names.sort_unstable();
    names
}

impl<'m> Bound<'m> {
    fn target(&mut self, target: &'m Expr) {
        let mut names = Vec::new();
        target_names(target, &mut names);
        self.names.extend(names);
    }
}

impl<'m> Visitor<'m> for Bound<'m> {
    fn visit_stmt(&mut self, stmt: &'m Stmt) {
        match stmt {
            Stmt::FunctionDef(f) => {
                self.names.insert(f.name.as_str());
                return;
            }
            Stmt::ClassDef(c) => {
                self.names.insert(c.name.as_str());
                return;
            }
            Stmt::Assign(s) => s.targets.iter().for_each(|target| self.target(target)),
            Stmt::AugAssign(s) => self.target(&s.target),
            Stmt::AnnAssign(s) => self.target(&s.target),
            Stmt::For(s) => self.target(&s.target),
            Stmt::Delete(s) => s.targets.iter().for_each(|target| self.target(target)),
            Stmt::With(s) => {
                let targets = s
                    .items
                    .iter()
                    .filter_map(|item| item.optional_vars.as_deref());
                targets.for_each(|target| self.target(target));
            }
            Stmt::Try(s) => {
                let names = s
                    .handlers
                    .iter()
                    .filter_map(|ExceptHandler::ExceptHandler(h)| h.name.as_ref());
                self.names.extend(names.map(|name| name.as_str()));
            }
            Stmt::Import(_) | Stmt::ImportFrom(_) => self.names.extend(imported(stmt)),
            Stmt::Global(s) => self
                .globals
                .extend(s.names.iter().map(|name| name.as_str())),
            Stmt::Nonlocal(s) => self.others.extend(s.names.iter().map(|name| name.as_str())),
            _ => {}
        }
        walk_stmt(self, stmt);
    }

    fn visit_expr(&mut self, expr: &'m Expr) {
        match expr {
            Expr::Named(e) => self.target(&e.target),
            Expr::Lambda(_) => return,
            _ => {}
        }
        walk_expr(self, expr);
    }

    fn visit_pattern(&mut self, pattern: &'m Pattern) {
        self.names.extend(captured(pattern));
        walk_pattern(self, pattern);
    }
}

/// The names that an import gives.
pub(super) fn imported(stmt: &Stmt) -> Vec<&str> {
    let aliases = match stmt {
        Stmt::Import(s) => &s.names,
        Stmt::ImportFrom(s) => &s.names,
        _ => return Vec::new(),
    };
    let names = aliases.iter().map(|alias| match &alias.asname {
        Some(name) => name.as_str(),
        None => alias.name.split('.').next().unwrap_or_default(),
    });
    names.collect()
}

/// The name that a pattern of `match` gives itself.
pub(super) fn captured(pattern: &Pattern) -> Option<&str> {
    let name = match pattern {
        Pattern::MatchAs(p) => &p.name,
        Pattern::MatchStar(p) => &p.name,
        Pattern::MatchMapping(p) => &p.rest,
        _ => return None,
    };
    name.as_ref().map(|name| name.as_str())
}

impl<'m> Walk<'_, 'm> {
    pub(super) fn definition(&self, name: &str) -> Option<Definition<'m>> {
        self.index.names.get(name).copied()
    }

    /// Whose a name is at this place.
    pub(super) fn resolve(&self, name: &'m str) -> Place<'m> {
        let mut from_function = false;
        for scope in self.scopes.iter().rev() {
            if let Some((_, held)) = scope.given.iter().find(|(given, _)| *given == name) {
                return Place::Given(held.clone());
            }
            if scope.globals.contains(name) {
                return match self.around.is_empty() && self.index.names.contains_key(name) {
                    true => Place::Own(name),
                    false => Place::Outside,
                };
            }
            if scope.names.contains(name) && !(scope.is_class && from_function) {
                return Place::Local(scope.owner, name);
            }
            from_function |= !scope.is_class && !scope.is_for();
        }
        match self.index.names.contains_key(name) {
            true => Place::Own(name),
            false => Place::Outside,
        }
    }

    /// The path of what another file has, if an expression is that.
    pub(super) fn outside(&self, expr: &'m Expr) -> Option<String> {
        self.index
            .path_of(expr, MAX_ALIASES, |name| match self.resolve(name) {
                Place::Own(name) => self.definition(name),
                Place::Outside => self.definition_around(name),
                _ => None,
            })
    }

    /// What a name that is not of the scope stands for in those around it.
    fn definition_around(&self, name: &str) -> Option<Definition<'m>> {
        let mut around = self.around.iter().rev();
        around.find_map(|index| index.names.get(name).copied())
    }

    /// Whether a name is a kernel, or a function that kernels call.
    pub(super) fn is_jit(&self, name: &'m str) -> bool {
        let found = match self.resolve(name) {
            Place::Own(name) => self.definition(name),
            Place::Outside => self.definition_around(name),
            Place::Local(..) | Place::Given(_) => None,
        };
        matches!(found, Some(Definition::Function(f)) if decoration(f).jit)
    }

    /// The class of the scope that an expression is; the empty name if it may be any.
    pub(super) fn class(&self, expr: &'m Expr) -> Option<&'m str> {
        match expr {
            Expr::Name(name) => {
                let name = name.id.as_str();
                let own = self.scopes.iter().rev().find(|scope| !scope.is_for());
                match own {
                    Some(scope) if scope.first == Some((name, First::Class)) => scope.owner,
                    _ => self.class_of_name(name, MAX_ALIASES),
                }
            }
            Expr::Call(e) if last_name(&e.func) == Some("type") => Some(""),
            Expr::Attribute(e) if e.attr.as_str() == "__class__" => Some(""),
            _ => None,
        }
    }

    fn class_of_name(&self, name: &'m str, aliases: usize) -> Option<&'m str> {
        let Place::Own(name) = self.resolve(name) else {
            return None;
        };
        match self.definition(name)? {
            Definition::Class(_) => Some(name),
            Definition::Value(Expr::Name(other), None) if aliases > 0 => {
                self.class_of_name(other.id.as_str(), aliases - 1)
            }
            _ => None,
        }
    }

    /// Whether an expression is the table of the module's names, or the module.
    pub(super) fn is_module(&self, expr: &'m Expr) -> bool {
        self.is_module_within(expr, MAX_ALIASES)
    }

    fn is_module_within(&self, expr: &'m Expr, aliases: usize) -> bool {
        if !self.around.is_empty() {
            return false;
        }
        let is_own = |e: &Expr| matches!(e, Expr::Name(name) if name.id.as_str() == "__name__");
        match expr {
            Expr::Call(e) if e.arguments.args.is_empty() => match &*e.func {
                Expr::Name(f) => match f.id.as_str() {
                    "globals" => true,
                    "vars" | "locals" => self.scopes.is_empty(),
                    _ => false,
                },
                _ => false,
            },
            // `sys.modules.get(__name__)`, `importlib.import_module(__name__)`.
            Expr::Call(e) => {
                let by_name = ["get", "import_module", "__import__"];
                let finds = last_name(&e.func).is_some_and(|name| by_name.contains(&name));
                let of_module = last_name(&e.func) == Some("vars")
                    && e.arguments
                        .args
                        .iter()
                        .any(|arg| self.is_module_within(arg, aliases));
                finds && e.arguments.args.iter().any(is_own) || of_module
            }
            Expr::Subscript(e) => is_own(&e.slice) && last_name(&e.value) == Some("modules"),
            Expr::Attribute(e) if e.attr.as_str() == "__dict__" => {
                self.is_module_within(&e.value, aliases)
            }
            Expr::Name(name) if aliases > 0 => match self.resolve(name.id.as_str()) {
                Place::Own(name) => match self.definition(name) {
                    Some(Definition::Value(value, None)) => {
                        self.is_module_within(value, aliases - 1)
                    }
                    _ => false,
                },
                _ => false,
            },
            _ => false,
        }
    }

    /// The owner of what a function or class at this place has.
    pub(super) fn owner(&self, name: &'m str) -> Option<&'m str> {
        match self.scopes.iter().find(|scope| !scope.is_for()) {
            Some(scope) => scope.owner,
            None => Some(name),
        }
    }
}

/// Whether a function runs on the host.
pub(super) fn is_host(f: &ruff_python_ast::StmtFunctionDef) -> bool {
    !decoration(f).jit
}
