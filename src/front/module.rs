//! What a file defines: functions, classes, imports and constants of its top level.
//!
//! Nothing is executed. In functions a name stands for its last definition, and in what the module itself computes for the
//! last one before that place; what changes a value after it is defined is found by [`super::changes`]. So it is also where
//! the definitions stand in the branches of an `if` whose condition only the host could tell ([`super::conditions`]), of which
//! users are warned; of a `try` the body counts, what its handlers define is taken only for names that the body does not
//! define. Constants are evaluated when a kernel uses them.

use indexmap::IndexMap;
use ruff_python_ast::comparable::ComparableExpr;
use ruff_python_ast::{
    Expr, ExprDict, ExprList, ExprTuple, ModModule, Stmt, StmtClassDef, StmtFunctionDef,
};
use ruff_text_size::{Ranged, TextRange, TextSize};

use super::changes::Changes;
use super::conditions::{Decided, branches};
use super::diagnostic::{Code, Diagnostic, Severity};
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
    /// `import a.b` (bound to `a`), or with `as` to the whole.
    Module(&'m str),
    /// `from module import name`.
    Member(&'m str, &'m str),
    /// A name of which only the host knows what it is, and why.
    Unknown(Unknown),
}

impl Definition<'_> {
    /// Where it stands, if it can be one of several.
    fn place(self) -> Option<TextRange> {
        match self {
            Definition::Function(f) => Some(f.range),
            Definition::Value(value, _) | Definition::Default(value) => Some(value.range()),
            Definition::Changed(s) => Some(s.range()),
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

/// The definitions of a scope with its place.
type Placed<'m> = (TextRange, Index<'m>);

/// The definitions of a file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Index<'m> {
    pub(crate) names: IndexMap<&'m str, Definition<'m>>,
    /// Functions that are defined more than once, and values that a branch defines again, with a warning for those who use them.
    twice: IndexMap<&'m str, Diagnostic>,
    /// All definitions of a name, each with the end of its statement.
    all: IndexMap<&'m str, Vec<(TextSize, Definition<'m>)>>,
    /// What functions of the host define that have kernels within, with the place of their statements.
    makers: Vec<Placed<'m>>,
    /// The kernels of these functions, by name.
    made: IndexMap<&'m str, Vec<&'m StmtFunctionDef>>,
    /// What classes define, with their place.
    classes: Vec<Placed<'m>>,
    /// Attributes that are given a value.
    set_attributes: Vec<&'m Expr>,
    /// The statements.
    body: &'m [Stmt],
    /// Their conditions, and which are decided.
    tests: Vec<&'m Expr>,
    pub(crate) decided: Decided,
    /// What changes after it is defined.
    changes: Changes<'m>,
    /// Where `if` statements stand whose conditions are not decided, and that are in no other.
    conditions: Vec<TextRange>,
}

impl<'m> Index<'m> {
    /// Reads the top level; conditions that are decided are not read where they do not hold.
    pub(crate) fn new(module: &'m ModModule, decided: Decided) -> Index<'m> {
        Index::of_body(&module.body, decided)
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

    fn of_body(body: &'m [Stmt], decided: Decided) -> Index<'m> {
        let mut index = Index {
            body,
            decided,
            ..Index::default()
        };
        index.read(body, false);
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
                    self.classes
                        .push((c.range, Index::of_body(&c.body, self.decided.clone())));
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
                        self.define(name.id.as_str(), Definition::Changed(stmt), at, fallback);
                    }
                }
                Stmt::If(s) => {
                    let clauses = s.elif_else_clauses.iter();
                    let tests = clauses.filter_map(|clause| clause.test.as_ref());
                    self.tests.extend(std::iter::once(&*s.test).chain(tests));
                    let (branches, certain) = branches(s, &self.decided);
                    let outer = self.conditions.last();
                    let is_within = outer.is_some_and(|outer| outer.contains_range(s.range));
                    if !certain && !is_within {
                        self.conditions.push(s.range);
                    }
                    for body in branches {
                        self.read(body, fallback);
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
                        self.define(name, Definition::Unknown(Unknown::ByTheHost), at, fallback);
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
        let mut inside = Index {
            body: &f.body,
            decided: self.decided.clone(),
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
        inside.read(&f.body, false);
        inside.warn_of_branches();
        for (name, definition) in &inside.names {
            if !matches!(definition, Definition::Unknown(_)) {
                self.define(name, *definition, f.range.end(), true);
            }
        }
        for f in inside.jit_functions() {
            self.made.entry(f.name.as_str()).or_default().push(f);
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

    /// What a name stands for at a place: in a function that stands there, or else in an expression of the module. With
    /// `as_written` what changes it in ways that are not followed is passed over.
    pub(crate) fn find(
        &self,
        name: &str,
        place: TextRange,
        in_function: bool,
        as_written: bool,
    ) -> Option<Definition<'m>> {
        let maker = around(&self.makers, place);
        let inside =
            maker.and_then(|(_, inside)| inside.find(name, place, in_function, as_written));
        let before = (!in_function).then(|| place.start());
        // Functions of a class do not see its names.
        let of_class = || {
            let mut class = &around(&self.classes, place).filter(|_| !in_function)?.1;
            while let Some((_, inner)) = around(&class.classes, place) {
                class = inner;
            }
            class.defined_before(name, place.start())
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
            // Steps say nothing of what a name stood for before.
            let step = self.changes.step(name, before);
            let step = step.filter(|(at, _)| end.is_none_or(|(end, _)| end < at));
            step.map(|(_, stmt)| Definition::Changed(stmt))
                .or(found)
                .or(Some(last))
        })
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
        index.changes.attribute(class.name.as_str(), name)
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
                        false => Definition::Unknown(Unknown::ByTheHost),
                    };
                    for name in names {
                        self.define(name, definition, at, fallback);
                    }
                }
            }
            Expr::Attribute(_) => self.set_attributes.push(target),
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
                .help("only the host knows the conditions around its definitions")
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
            if differ(definitions) && around.is_some_and(|range| range.contains_range(place)) {
                let message = format!("`{name}` is defined twice; the last definition counts");
                let help = format!(
                    "only the host knows the condition around it; give the value with -c {name}=VALUE"
                );
                let d = Diagnostic::error(Code::Suspicious, place, message)
                    .help(help)
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

/// Whether a name has several definitions that are not the same text.
fn differ(definitions: &[(TextSize, Definition<'_>)]) -> bool {
    let mut pairs = definitions.windows(2);
    pairs.any(|pair| match (pair[0].1, pair[1].1) {
        (Definition::Value(a, i), Definition::Value(b, j)) => {
            i != j || ComparableExpr::from(a) != ComparableExpr::from(b)
        }
        _ => true,
    })
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
