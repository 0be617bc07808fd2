//! What a file defines: functions, classes, imports and constants of its top level.
//!
//! Nothing is executed until a kernel asks for it. What a statement of the module computes finds the names as they are when it
//! runs, and so do the functions that it calls; a kernel finds them as they are at the end. Of the statements that give a name
//! a value the last one before that place counts; what changes a value after it is defined is found by [`super::changes`].
//!
//! A statement can go several ways: an `if` whose condition only the host could tell ([`super::conditions`]), a `try` or a `with`
//! of which a part may run. What they give a name is known behind it if it is the same in all; else it is an error to read it.
//! Of several kernels of one name the last counts, of which users are warned.

mod functions;
mod ways;

use indexmap::IndexMap;
use ruff_python_ast::comparable::ComparableExpr;
use ruff_python_ast::{
    Expr, ExprDict, ExprList, ExprTuple, ModModule, Stmt, StmtClassDef, StmtFunctionDef, StmtIf,
};
use ruff_text_size::{Ranged, TextRange, TextSize};

use rustc_hash::FxHashMap;

pub(crate) use functions::{Param, decoration, is_constexpr, last_name, params};
pub(crate) use ways::STANDARD;

use super::changes::{Changes, bound_names};
use super::conditions::{Decided, branches};
use super::diagnostic::{Code, Diagnostic, Severity};
use super::links::{File, Link, Links, PART};
use super::loops::{assigned_names, target_names};

/// Why nobody but the host knows a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unknown {
    /// It is assigned in a loop, or in another way that is not followed.
    ByTheHost,
    /// It is a parameter of a function of the host.
    Parameter,
    /// What stands here changes it, or gives it to what may change it.
    Changed(TextRange),
    /// This statement may give it several values, and only the host knows which.
    Ways(TextRange),
}

/// What a name of the top level stands for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Definition<'m> {
    /// A function.
    Function(&'m StmtFunctionDef),
    /// A class.
    Class(&'m StmtClassDef),
    /// A value to be evaluated, or one element of it.
    Value(&'m Expr, Option<usize>),
    /// What a parameter of a function of the host is if nothing is given.
    Default(&'m Expr),
    /// A value made of the one that the name had before, by this statement.
    Changed(&'m Stmt),
    /// What it stands for where a statement begins.
    Before(TextSize),
    /// What it stands for behind a statement that can go several ways ([`Index::ways`]): known if all give it the same.
    Ways(TextRange),
    /// `import a.b` (bound to `a`), or with `as` to the whole; of a file of the program its path.
    Module(&'m str),
    /// `from module import name`; the module of a file of the program by its path.
    Member(&'m str, &'m str),
    /// A name of which only the host knows what it is, and why.
    Unknown(Unknown),
}

impl Definition<'_> {
    /// Whether it is a kernel, or a function that kernels call.
    fn is_kernel(&self) -> bool {
        matches!(self, Definition::Function(f) if decoration(f).jit)
    }

    /// The same as it is at a place, if it can change up to there.
    fn before(self, at: TextSize) -> Self {
        match super::changes::is_value(self) && !matches!(self, Definition::Unknown(_)) {
            true => Definition::Before(at),
            false => self,
        }
    }

    fn is_import(&self) -> bool {
        matches!(self, Definition::Module(_) | Definition::Member(..))
    }

    /// Whether another one is the same, or has the same literal text.
    fn is_same(self, other: Definition<'_>) -> bool {
        match (self, other) {
            (Definition::Value(a, i), Definition::Value(b, j)) => {
                let is_literal =
                    a.is_literal_expr() && ComparableExpr::from(a) == ComparableExpr::from(b);
                i == j && (is_literal || a.range() == b.range())
            }
            (Definition::Module(a), Definition::Module(b)) => a == b,
            (Definition::Member(a, x), Definition::Member(b, y)) => a == b && x == y,
            (a, b) => {
                let is_one = std::mem::discriminant(&a) == std::mem::discriminant(&b);
                is_one && a.place().is_some() && a.place() == b.place()
            }
        }
    }

    /// Where it stands, if it can be one of several.
    fn place(self) -> Option<TextRange> {
        match self {
            Definition::Function(f) => Some(f.range),
            Definition::Value(value, _) | Definition::Default(value) => Some(value.range()),
            Definition::Changed(s) => Some(s.range()),
            Definition::Ways(at) => Some(at),
            Definition::Before(at) => Some(TextRange::empty(at)),
            _ => None,
        }
    }
}

/// The definitions of a scope with its place.
type Placed<'m> = (TextRange, Index<'m>);

/// The definitions of a file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Index<'m> {
    pub(crate) names: IndexMap<&'m str, Definition<'m>>,
    /// Definitions of whose users are warned: kernels that are defined more than once, what the environment chooses.
    warnings: IndexMap<&'m str, (Definition<'m>, Diagnostic)>,
    /// All definitions of a name, each with the end of its statement.
    all: IndexMap<&'m str, Vec<(TextSize, Definition<'m>)>>,
    /// What functions of the host define that have kernels within, with the place of their statements.
    makers: Vec<Placed<'m>>,
    /// The kernels of these functions, by name.
    made: IndexMap<&'m str, Vec<&'m StmtFunctionDef>>,
    /// What classes define, with their place.
    classes: Vec<Placed<'m>>,
    /// The class whose scope it is.
    of: Option<&'m StmtClassDef>,
    /// Attributes that are given a value.
    set_attributes: Vec<&'m Expr>,
    /// The statements.
    body: &'m [Stmt],
    /// Their conditions, and which are decided.
    tests: Vec<&'m Expr>,
    pub(crate) decided: Decided,
    /// What changes after it is defined.
    changes: Changes<'m>,
    /// There is an `import *`.
    starred: bool,
    /// What imports lead to that are followed.
    links: Option<&'m Links>,
    /// What its statements change.
    altered: &'m [(Vec<String>, TextRange)],
    /// It is a part of the library.
    pub(crate) of_library: bool,
    /// What is read stands in a `try` or a `with` that may end exceptions.
    caught: bool,
    /// What the ways of a statement give a name that is not the same text in all.
    ways: FxHashMap<(&'m str, TextRange), Vec<Definition<'m>>>,
}

impl<'m> Index<'m> {
    /// Reads the top level of a file; conditions that are decided are not read where they do not hold.
    pub(crate) fn new(file: &'m File, decided: Decided) -> Index<'m> {
        Index {
            altered: &file.altered,
            ..Index::of_body(&file.tree.body, decided, Some(&file.links))
        }
    }

    /// Reads a text of the library.
    pub(crate) fn of_library(module: &'m ModModule) -> Index<'m> {
        Index {
            of_library: true,
            ..Index::of_body(&module.body, Decided::default(), None)
        }
    }

    /// The conditions of the statements that are read, whether they are decided or not.
    pub(crate) fn tests(&self, tests: &mut Vec<&'m Expr>) {
        tests.extend(&self.tests);
        let inner = self.makers.iter().chain(&self.classes);
        inner.for_each(|(_, inside)| inside.tests(tests));
    }

    /// Looks for what changes after it is defined, which those who evaluate anything need to know.
    pub(crate) fn find_changes(&mut self) {
        self.find_changes_in(&[]);
    }

    /// The same, within these scopes, outermost first.
    fn find_changes_in(&mut self, around: &[&Index<'m>]) {
        self.changes = Changes::new(self, around, self.body);
        let mut makers = std::mem::take(&mut self.makers);
        let around: Vec<&Index<'m>> = around.iter().copied().chain([&*self]).collect();
        for (_, inside) in &mut makers {
            inside.find_changes_in(&around);
        }
        self.makers = makers;
    }

    fn of_body(body: &'m [Stmt], decided: Decided, links: Option<&'m Links>) -> Index<'m> {
        let mut index = Index {
            body,
            decided,
            links,
            ..Index::default()
        };
        index.read_scope(body);
        index
    }

    /// Reads the statements of a scope. What they bind in a way that is not followed is of the host.
    fn read_scope(&mut self, body: &'m [Stmt]) {
        self.read(body);
        for name in bound_names(body) {
            self.define(
                name,
                Definition::Unknown(Unknown::ByTheHost),
                TextSize::new(0),
                true,
            );
        }
    }

    fn read(&mut self, body: &'m [Stmt]) {
        for stmt in body {
            let at = stmt.range().end();
            match stmt {
                Stmt::FunctionDef(f) => {
                    self.warn_twice(f);
                    self.define(f.name.as_str(), Definition::Function(f), at, false);
                    self.read_maker(f);
                }
                Stmt::ClassDef(c) => {
                    self.define(c.name.as_str(), Definition::Class(c), at, false);
                    self.classes.push((
                        c.range,
                        Index {
                            of: Some(c),
                            ..Index::of_body(&c.body, self.decided.clone(), self.links)
                        },
                    ));
                }
                Stmt::Import(import) => {
                    for alias in &import.names {
                        let path = alias.name.as_str();
                        match &alias.asname {
                            Some(name) => {
                                let linked = self.link(import.range.start(), path);
                                let path = linked.map_or(path, Link::path);
                                self.define(name.as_str(), Definition::Module(path), at, false);
                            }
                            None => {
                                let first = path.split('.').next().unwrap_or(path);
                                let linked = self.link(import.range.start(), first);
                                let module = linked.map_or(first, Link::path);
                                self.define(first, Definition::Module(module), at, false);
                            }
                        }
                    }
                }
                Stmt::ImportFrom(import) => {
                    let module = import.module.as_ref().map_or("", |m| m.as_str());
                    for alias in &import.names {
                        let member = alias.name.as_str();
                        let link = self.link(import.range.start(), member);
                        if member == "*" {
                            match link {
                                Some(Link::All(path, names)) => {
                                    for name in names {
                                        let definition = Definition::Member(path, name);
                                        self.define(name, definition, at, false);
                                    }
                                }
                                _ => self.cover(import.range),
                            }
                            continue;
                        }
                        let name = alias.asname.as_ref().map_or(member, |n| n.as_str());
                        if let Some(link) = link {
                            let definition = match link {
                                Link::Module(path) => Definition::Module(path),
                                link => Definition::Member(link.path(), member),
                            };
                            self.define(name, definition, at, false);
                            continue;
                        }
                        // The library's own files name each other so.
                        let own = matches!(member, "core" | "math" | "standard" | "random");
                        let module = match (import.level, module) {
                            (1.., "") if own => "triton.language",
                            (_, module) => module,
                        };
                        self.define(name, Definition::Member(module, member), at, false);
                    }
                }
                Stmt::Assign(assign) => {
                    for target in &assign.targets {
                        self.define_target(target, &assign.value, at);
                    }
                }
                Stmt::AnnAssign(assign) => {
                    if let Some(value) = &assign.value {
                        self.define_target(&assign.target, value, at);
                    }
                }
                Stmt::AugAssign(s) => {
                    if let Expr::Name(name) = &*s.target {
                        self.define(name.id.as_str(), Definition::Changed(stmt), at, false);
                    }
                }
                Stmt::If(s) => {
                    let clauses = s.elif_else_clauses.iter();
                    let tests = clauses.filter_map(|clause| clause.test.as_ref());
                    self.tests.extend(std::iter::once(&*s.test).chain(tests));
                    let (branches, certain, all) = branches(s, &self.decided);
                    if certain {
                        branches.iter().for_each(|body| self.read(body));
                        self.warn_of_environment(stmt, s);
                        continue;
                    }
                    let mut ways: Vec<Vec<&'m [Stmt]>> = Vec::new();
                    ways.extend(branches.iter().map(|body| vec![*body]));
                    ways.resize(ways.len() + usize::from(!all), Vec::new());
                    ways.retain(|way| !way.first().is_some_and(|body| self.leaves(body)));
                    self.read_ways(&ways, s.range, false);
                }
                Stmt::Try(s) => {
                    if let Some(bodies) = self.caught_import(s) {
                        bodies.into_iter().for_each(|body| self.read(body));
                        continue;
                    }
                    let mut ways = vec![vec![&*s.body, &*s.orelse]];
                    if self.breaks_off(stmt) {
                        ways.extend(self.handlers(s).map(|body| vec![body]));
                    }
                    let end = s.finalbody.first().map_or(at, Ranged::start);
                    self.read_ways(&ways, TextRange::new(s.start(), end), true);
                    self.read(&s.finalbody);
                }
                Stmt::With(s) => {
                    let mut ways = vec![vec![&*s.body]];
                    if self.breaks_off(stmt) {
                        ways.push(Vec::new());
                    }
                    self.read_ways(&ways, s.range, true);
                }
                // These are run when one of their names is asked for.
                Stmt::For(_) | Stmt::While(_) => {
                    let mut names = Vec::new();
                    assigned_names(std::slice::from_ref(stmt), &mut names);
                    for name in names {
                        self.define(name, Definition::Changed(stmt), at, false);
                    }
                }
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
                        self.define(name, Definition::Unknown(Unknown::ByTheHost), at, false);
                    }
                }
            }
        }
    }

    /// What an import leads to, if that is a file of the program.
    fn link(&self, at: TextSize, name: &str) -> Option<&'m Link> {
        self.links?.to.get(&(at, name.to_owned()))
    }

    /// The file that a module within the package is.
    pub(crate) fn part(&self, name: &str) -> Option<&'m str> {
        self.link(PART, name).map(Link::path)
    }

    /// What of other files statements of this one change: by the path of the file and the name.
    pub(crate) fn alterations(&self) -> impl Iterator<Item = ((String, String), TextRange)> + '_ {
        self.altered.iter().filter_map(|(chain, at)| {
            let (first, rest) = chain.split_first()?;
            let (file, name) = match self.names.get(&**first)? {
                Definition::Member(file, name) => (file, *name),
                Definition::Module(file) => (file, &**rest.first()?),
                _ => return None,
            };
            Some((((*file).to_owned(), name.to_owned()), *at))
        })
    }

    /// The file that a dotted name is which a plain `import` of it has bound.
    pub(crate) fn module(&self, path: &str) -> Option<&'m str> {
        let links = self.links?;
        let mut found = links.to.iter().filter(|((_, name), _)| name == path);
        found.find_map(|(_, link)| match link {
            Link::Module(file) if path.contains('.') => Some(&**file),
            _ => None,
        })
    }

    /// Notes that an import may give the values of the scope others.
    fn cover(&mut self, import: TextRange) {
        self.starred = true;
        let values = self.names.iter().filter(|(_, definition)| {
            let kinds = [Definition::is_kernel, Definition::is_import];
            !kinds.iter().any(|is| is(definition))
        });
        let names: Vec<&'m str> = values.map(|(name, _)| *name).collect();
        for name in names {
            let unknown = Definition::Unknown(Unknown::Changed(import));
            self.define(name, unknown, import.end(), false);
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
        let mut inside = Index {
            body: &f.body,
            decided: self.decided.clone(),
            links: self.links,
            ..Index::default()
        };
        let start = f.body.first().map_or(f.range.end(), Ranged::start);
        for param in params(f) {
            let definition = match param.default {
                Some(default) => Definition::Default(default),
                None => Definition::Unknown(Unknown::Parameter),
            };
            inside.define(param.name, definition, start, false);
        }
        inside.read_scope(&f.body);
        for (name, definition) in &inside.names {
            if !matches!(definition, Definition::Unknown(_)) {
                self.define(name, *definition, f.range.end(), true);
            }
        }
        for f in inside.jit_functions() {
            self.made.entry(f.name.as_str()).or_default().push(f);
        }
        for (name, warning) in &inside.warnings {
            self.warnings.entry(name).or_insert_with(|| warning.clone());
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

    /// What a name stands for at a place: in a function that stands there, or else in an expression of the module, when the
    /// text has run up to `before`, or all of it has. With `as_written` what changes it in ways that are not followed is passed
    /// over.
    pub(crate) fn find(
        &self,
        name: &str,
        place: TextRange,
        in_function: bool,
        before: Option<TextSize>,
        as_written: bool,
    ) -> Option<Definition<'m>> {
        let maker = around(&self.makers, place);
        let inside =
            maker.and_then(|(_, inside)| inside.find(name, place, in_function, before, as_written));
        // Functions of a class do not see its names.
        let of_class = || {
            let outermost = &around(&self.classes, place).filter(|_| !in_function)?.1;
            let mut class = outermost;
            while let Some((_, inner)) = around(&class.classes, place) {
                class = inner;
            }
            let found = class.defined_before(name, place.start())?;
            let owner = outermost.of.map_or("", |c| c.name.as_str());
            Some(match self.changes.in_place(owner, name) {
                Some(at) => Definition::Unknown(Unknown::Changed(at)),
                None => found,
            })
        };
        inside.or_else(of_class).or_else(|| {
            let last = self.names.get(name).copied()?;
            if !as_written && let Some(at) = self.changes.unknown(name) {
                return Some(Definition::Unknown(Unknown::Changed(at)));
            }
            let found = before.and_then(|before| self.defined_before(name, before));
            let all = self.all.get(name).map_or(&[][..], |all| all);
            let end = match (before, found) {
                (Some(before), Some(_)) => {
                    all[..all.partition_point(|(end, _)| *end <= before)].last()
                }
                _ => all.last(),
            };
            // A function of the host runs at a time that nobody knows.
            let by_maker =
                before.filter(|at| around(&self.makers, TextRange::empty(*at)).is_some());
            if let Some(at) = by_maker
                && !as_written
                && (all.last().is_some_and(|(end, _)| *end > at) && all.len() > 1
                    || self.changes.step(name, None).map(|(end, _)| end)
                        != self.changes.step(name, before).map(|(end, _)| end))
            {
                let at = last.place().unwrap_or(place);
                return Some(Definition::Unknown(Unknown::Changed(at)));
            }
            // Steps say nothing of what a name stood for before.
            let step = self.changes.step(name, before);
            let step = step.filter(|(at, _)| end.is_none_or(|(end, _)| end < at));
            // What is not there yet may be a name of Python.
            let last = Some(last).filter(|_| before.is_none() || by_maker.is_some());
            step.map(|(_, stmt)| Definition::Changed(stmt))
                .or(found)
                .or(last)
        })
    }

    /// What gives a name of the scope another value than its first.
    pub(crate) fn changes(&self, name: &str) -> Option<TextRange> {
        let all = self.all.get(name).filter(|all| all.len() > 1);
        let again = all.and_then(|all| all.last()?.1.place());
        let step = self.changes.step(name, None).map(|(_, stmt)| stmt.range());
        again.or(step)
    }

    /// What the ways of a statement of this scope, or of one in it, give a name.
    pub(crate) fn ways(&self, name: &'m str, at: TextRange) -> Option<&[Definition<'m>]> {
        let inner = self.makers.iter().chain(&self.classes);
        let mut inner = inner.filter(|(range, _)| range.contains_range(at));
        let own = self.ways.get(&(name, at)).map(|ways| &**ways);
        own.or_else(|| inner.find_map(|(_, inside)| inside.ways(name, at)))
    }

    /// The last definition of a name that ends before a place.
    fn defined_before(&self, name: &str, place: TextSize) -> Option<Definition<'m>> {
        let all = self.all.get(name)?;
        let before = all.partition_point(|(end, _)| *end <= place);
        let (_, definition) = all.get(before.checked_sub(1)?)?;
        Some(*definition)
    }

    /// A table that a name stands for, with the entries that later statements give it; none where these are not known.
    pub(crate) fn table(&self, name: &str) -> Option<(&'m ExprDict, Vec<(&'m str, &'m Expr)>)> {
        let Definition::Value(Expr::Dict(dict), None) = self.names.get(name)? else {
            return None;
        };
        if self.changes.unknown(name).is_some() {
            return None;
        }
        let entry = |(_, stmt): &(TextSize, &'m Stmt)| {
            let Stmt::Assign(s) = stmt else { return None };
            let target = s.targets.first()?.as_subscript_expr()?;
            let key = target.slice.as_string_literal_expr()?;
            target
                .value
                .is_name_expr()
                .then_some((key.value.to_str(), &*s.value))
        };
        let steps = self.changes.steps(name).iter();
        let added = steps
            .filter(|(end, _)| *end > dict.range().end())
            .map(entry);
        Some((dict, added.collect::<Option<_>>()?))
    }

    /// What a class of the scope, or of a function or class in it, defines.
    pub(crate) fn class(&self, class: &StmtClassDef) -> Option<&Index<'m>> {
        let made = around(&self.makers, class.range).and_then(|(_, inside)| inside.class(class));
        made.or_else(|| {
            let (range, inside) = around(&self.classes, class.range)?;
            match *range == class.range {
                true => Some(inside),
                false => inside.class(class),
            }
        })
    }

    /// What gives an attribute of a class another value.
    pub(crate) fn changed_attribute(&self, class: &StmtClassDef, name: &str) -> Option<TextRange> {
        let made = around(&self.makers, class.range);
        let made = made.filter(|(_, inside)| inside.class(class).is_some());
        let index = made.map_or(self, |(_, inside)| inside);
        // What stands in a class changes under the name of that.
        let outermost = around(&index.classes, class.range).and_then(|(_, scope)| scope.of);
        let owners = outermost.into_iter().chain([class]);
        let mut owners = owners.map(|owner| owner.name.as_str());
        owners.find_map(|owner| index.changes.attribute(owner, name))
    }

    /// What sets the value within a `constexpr` of the module.
    pub(crate) fn changed_constexprs(&self) -> Option<TextRange> {
        self.changes.of_constexprs()
    }

    /// What gives a name of another file's module another value.
    pub(crate) fn patched(&self, path: &str) -> Option<TextRange> {
        let set = self.set_attributes.iter().find(|target| {
            let found = self.path_of(target, 1, |name| self.names.get(name).copied());
            found.is_some_and(|found| {
                found == path || in_language(&found).is_some_and(|f| f == path)
            })
        });
        set.map(|target| target.range())
    }

    /// The path of what another file has, if an expression is that; through as many aliases. `define` says what a name
    /// stands for.
    pub(crate) fn path_of(
        &self,
        expr: &'m Expr,
        aliases: usize,
        define: impl Fn(&'m str) -> Option<Definition<'m>> + Copy,
    ) -> Option<String> {
        match expr {
            Expr::Attribute(e) => {
                let module = self.path_of(&e.value, aliases, define)?;
                Some(format!("{module}.{}", e.attr))
            }
            Expr::Name(name) => match define(name.id.as_str())? {
                Definition::Module(path) => Some(path.to_owned()),
                Definition::Member("", member) => Some(member.to_owned()),
                Definition::Member(module, member) => Some(format!("{module}.{member}")),
                Definition::Value(value @ (Expr::Name(_) | Expr::Attribute(_)), None)
                    if aliases > 0 =>
                {
                    self.path_of(value, aliases - 1, define)
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// The functions of the host, by place, that each have a kernel of this name, if there are several.
    pub(crate) fn made_by_several(&self, f: &StmtFunctionDef) -> Option<&[&'m StmtFunctionDef]> {
        let made = self.made.get(f.name.as_str())?;
        let is_one = made.iter().any(|other| std::ptr::eq(*other, f));
        (is_one && made.len() > 1).then_some(made)
    }

    /// What users of a definition are warned of.
    pub(crate) fn warning(&self, name: &str, definition: Definition<'m>) -> Option<&Diagnostic> {
        let (of, warning) = self.warnings.get(name)?;
        of.is_same(definition).then_some(warning)
    }

    /// Whether all names that are defined are known: none comes by `import *`, or by tables of names.
    pub(crate) fn is_closed(&self) -> bool {
        !self.starred && !self.changes.open
    }

    fn define_target(&mut self, target: &'m Expr, value: &'m Expr, at: TextSize) {
        match target {
            Expr::Name(name) => {
                self.define(name.id.as_str(), Definition::Value(value, None), at, false);
            }
            Expr::Tuple(ExprTuple { elts, .. }) | Expr::List(ExprList { elts, .. }) => {
                let is_plain = elts.iter().all(Expr::is_name_expr);
                for (i, target) in elts.iter().enumerate() {
                    let mut names = Vec::new();
                    target_names(target, &mut names);
                    let definition = match is_plain {
                        true => Definition::Value(value, Some(i)),
                        false => Definition::Unknown(Unknown::ByTheHost),
                    };
                    for name in names {
                        self.define(name, definition, at, false);
                    }
                }
            }
            Expr::Attribute(_) => self.set_attributes.push(target),
            _ => {}
        }
    }

    /// Notes whom to warn that a condition asks for the environment.
    fn warn_of_environment(&mut self, stmt: &'m Stmt, s: &'m StmtIf) {
        let clauses = s.elif_else_clauses.iter();
        let tests = clauses.filter_map(|clause| clause.test.as_ref());
        let mut tests = std::iter::once(&*s.test).chain(tests);
        let asks = |test: &&Expr| {
            let decision = self.decided.get(&test.start());
            decision.is_some_and(|decision| decision.environment)
        };
        let Some(test) = tests.find(asks) else { return };
        for name in bound_names(std::slice::from_ref(stmt)) {
            if let Some(definition) = self.names.get(name) {
                let warning = without_environment(test.range());
                self.warnings.insert(name, (*definition, warning));
            }
        }
    }

    fn warn_twice(&mut self, f: &'m StmtFunctionDef) {
        let first = self.names.get(f.name.as_str());
        if decoration(f).jit && first.is_some_and(Definition::is_kernel) {
            let warned = (Definition::Function(f), defined_twice(f));
            self.warnings.insert(f.name.as_str(), warned);
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

    /// The kernels of its classes, which are static methods, with the names that these give them: `Class.kernel`.
    pub(crate) fn kernels_of_classes(&self) -> Vec<(String, &'m StmtFunctionDef)> {
        let mut found = Vec::new();
        for (_, inside) in &self.classes {
            let class = inside.of.map_or("", |class| class.name.as_str());
            let own = inside.jit_functions().map(|f| (f.name.to_string(), f));
            let all = own.chain(inside.kernels_of_classes());
            found.extend(all.map(|(name, f)| (format!("{class}.{name}"), f)));
        }
        found
    }
}

/// The warning that the last of several definitions counts.
fn defined_twice(f: &StmtFunctionDef) -> Diagnostic {
    let message = format!("`{}` is defined twice; the last definition counts", f.name);
    Diagnostic::error(Code::Suspicious, f.name.range(), message)
        .help("only the host knows the conditions around its definitions")
        .with_severity(Severity::Warning)
}

/// The warning that a condition takes the environment for empty.
pub(crate) fn without_environment(test: TextRange) -> Diagnostic {
    let message = "no variable of the environment is taken to be set, which this asks for";
    Diagnostic::error(Code::Suspicious, test, message)
        .help("write the condition's value where another one is meant")
        .with_severity(Severity::Warning)
}

/// The scope around a place, of those that stand one behind the other.
fn around<'a, 'm>(scopes: &'a [Placed<'m>], place: TextRange) -> Option<&'a Placed<'m>> {
    let at = scopes.partition_point(|(range, _)| range.start() <= place.start());
    let found = scopes.get(at.checked_sub(1)?)?;
    found.0.contains_range(place).then_some(found)
}

/// A path of the language under the name that the language itself has.
fn in_language(path: &str) -> Option<String> {
    let parts: Vec<&str> = path.split('.').collect();
    let (_, module) = parts.split_last()?;
    let at = module
        .iter()
        .rposition(|part| matches!(*part, "tl" | "language"))?;
    Some(format!("triton.language.{}", parts[at + 1..].join(".")))
}
