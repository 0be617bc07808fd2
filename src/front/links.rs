//! What imports lead to: of the files beside and around a file those of which its kernels use something.
//!
//! From the kernels of the first file names are followed: to what the module gives them, to the names that stand in that, and
//! through imports to other files. A file that only the host needs is not asked for. Where a module is found:
//!
//! - `from .x import f` is beside the file that says so, `from ..x import f` one folder further out, and so on;
//! - `from a.b import f` and `import a.b` begin in the folder of the file, or in the nearest around it that has them;
//! - a module is a folder with `__init__.py`, or else a file; what a module does not define may be a module within it.
//!
//! Python's own modules, Triton's and torch's are nobody's files.

use std::ops::Range;
use std::path::Path;

use ruff_python_ast::visitor::{Visitor, walk_expr, walk_parameter, walk_stmt};
use ruff_python_ast::{Expr, ExprContext, ModModule, Parameter, Stmt, StmtFunctionDef};
use ruff_text_size::TextSize;
use rustc_hash::{FxHashMap, FxHashSet};

use super::changes::bound_names;
use super::diagnostic::Diagnostic;
use super::module::{STANDARD, decoration};
use super::source;
use crate::limits::SOURCE_FILES;

/// A file that has been parsed.
#[derive(Debug)]
pub(crate) struct File {
    /// Its path from the folder that holds all of them, which is its name among modules.
    pub(crate) path: String,
    /// Where its text begins and ends in the whole.
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) tree: ModModule,
    /// Why it has no tree.
    pub(crate) broken: Option<Diagnostic>,
    pub(crate) links: Links,
}

impl File {
    /// A file at a path, at these bytes of the whole, and what became of its text.
    pub(crate) fn new(
        path: String,
        at: Range<usize>,
        tree: Result<ModModule, Vec<Diagnostic>>,
    ) -> File {
        let (tree, broken) = match tree {
            Ok(tree) => (tree, None),
            Err(list) => (source::empty(), list.into_iter().next()),
        };
        File {
            path,
            start: at.start,
            end: at.end,
            tree,
            broken,
            links: Links::default(),
        }
    }
}

/// What imports of a file lead to: by the place of the statement, and by what it names, a member, `*`, or a module.
pub(crate) type Links = FxHashMap<(TextSize, String), Link>;

/// Where an import leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    /// It is the module of this file.
    Module(String),
    /// The module of this file has it under the name that the import says.
    Member(String),
}

impl Link {
    /// The file.
    pub(crate) fn path(&self) -> &str {
        match self {
            Link::Module(path) | Link::Member(path) => path,
        }
    }
}

/// A dotted name.
type Chain = Vec<String>;

/// What gives a name of a module its value.
enum Binding {
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
struct Summary {
    bindings: FxHashMap<String, Vec<Binding>>,
    /// `from module import *`.
    stars: Vec<(TextSize, (u32, String))>,
    /// Names that kernels use.
    kernels: Vec<Chain>,
}

/// Finds files, one from the other.
pub(crate) struct Linker<'r> {
    files: Vec<(File, Summary)>,
    known: FxHashMap<String, Option<usize>>,
    /// The text of a file, and where it begins in the whole.
    read: &'r mut dyn FnMut(&str) -> Option<(String, usize)>,
    /// The outermost folder in which an absolute import began.
    outermost: Option<String>,
}

impl<'r> Linker<'r> {
    /// The files that the kernels of the first one need, itself in front, and the outermost folder from which one of them was
    /// found.
    pub(crate) fn follow(
        path: &str,
        tree: ModModule,
        end: usize,
        read: &'r mut dyn FnMut(&str) -> Option<(String, usize)>,
    ) -> (Vec<File>, Option<String>) {
        let summary = Summary::of(&tree);
        let mut todo: Vec<(usize, Chain)> = Vec::new();
        todo.extend(summary.kernels.iter().map(|chain| (0, chain.clone())));
        let first = File::new(path.to_owned(), 0..end, Ok(tree));
        let mut linker = Linker {
            files: vec![(first, summary)],
            known: FxHashMap::from_iter([(path.to_owned(), Some(0))]),
            read,
            outermost: None,
        };
        let mut seen: FxHashSet<(usize, Chain)> = FxHashSet::default();
        while let Some(next) = todo.pop() {
            if seen.insert(next.clone()) {
                linker.follow_name(next.0, &next.1, &mut todo);
            }
        }
        let files = linker.files.into_iter().map(|(file, _)| file).collect();
        (files, linker.outermost)
    }

    /// Follows a dotted name that a file uses by one step.
    fn follow_name(&mut self, file: usize, chain: &[String], todo: &mut Vec<(usize, Chain)>) {
        let Some((name, rest)) = chain.split_first() else {
            return;
        };
        let mut imports = Vec::new();
        match self.files[file].1.bindings.get(name) {
            Some(bindings) => {
                for binding in bindings {
                    match binding {
                        Binding::Uses(chains) => {
                            todo.extend(chains.iter().map(|chain| (file, chain.clone())));
                        }
                        Binding::Dotted(at) => imports.push((*at, None, None)),
                        Binding::Import { at, module, member } => {
                            imports.push((*at, Some(module.clone()), member.clone()));
                        }
                    }
                }
            }
            None => {
                for (at, module) in self.files[file].1.stars.clone() {
                    let Some(other) = self.module(file, &module) else {
                        continue;
                    };
                    let path = self.files[other].0.path.clone();
                    self.link(file, at, "*", Link::Member(path));
                    todo.push((other, chain.to_vec()));
                }
            }
        }
        for (at, module, member) in imports {
            match (module, member) {
                (Some(module), Some(member)) => {
                    self.follow_member(file, at, &module, &member, rest, todo);
                }
                (Some(module), None) => {
                    if let Some(other) = self.module(file, &module) {
                        self.link_module(file, at, &module.1, other, rest, todo);
                    }
                }
                // As much of the name as is a module.
                (None, _) => {
                    for k in (1..=chain.len()).rev() {
                        let module = (0, chain[..k].join("."));
                        if let Some(other) = self.module(file, &module) {
                            self.link_module(file, at, &module.1, other, &chain[k..], todo);
                            break;
                        }
                    }
                }
            }
        }
    }

    /// `from module import member`.
    fn follow_member(
        &mut self,
        file: usize,
        at: TextSize,
        module: &(u32, String),
        member: &str,
        rest: &[String],
        todo: &mut Vec<(usize, Chain)>,
    ) {
        let found = self.module(file, module);
        let has =
            |summary: &Summary| summary.bindings.contains_key(member) || !summary.stars.is_empty();
        if let Some(other) = found.filter(|other| has(&self.files[*other].1)) {
            let path = self.files[other].0.path.clone();
            self.link(file, at, member, Link::Member(path));
            let chain = std::iter::once(member.to_owned()).chain(rest.iter().cloned());
            todo.push((other, chain.collect()));
            return;
        }
        let gap = if module.1.is_empty() { "" } else { "." };
        let within = (module.0, format!("{}{gap}{member}", module.1));
        match (self.module(file, &within), found) {
            (Some(other), _) => self.link_module(file, at, member, other, rest, todo),
            // It says itself what is wrong.
            (None, Some(other)) if self.files[other].0.broken.is_some() => {
                let path = self.files[other].0.path.clone();
                self.link(file, at, member, Link::Member(path));
            }
            _ => {}
        }
    }

    fn link_module(
        &mut self,
        file: usize,
        at: TextSize,
        name: &str,
        other: usize,
        rest: &[String],
        todo: &mut Vec<(usize, Chain)>,
    ) {
        let path = self.files[other].0.path.clone();
        self.link(file, at, name, Link::Module(path));
        todo.push((other, rest.to_vec()));
    }

    fn link(&mut self, file: usize, at: TextSize, name: &str, link: Link) {
        let links = &mut self.files[file].0.links;
        links.insert((at, name.to_owned()), link);
    }

    /// The file that a module is, as a file calls it.
    fn module(&mut self, file: usize, (level, name): &(u32, String)) -> Option<usize> {
        let folder = |path: &str| path.rsplit_once('/').map(|(folder, _)| folder.to_owned());
        let parts = name.replace('.', "/");
        let is_absolute = Path::new(&self.files[0].0.path).is_absolute();
        let inside = |folder: &str| match (folder, &*parts) {
            // The top of the file system holds no packages.
            ("", _) if is_absolute => None,
            ("", parts) => Some(parts.to_owned()),
            (folder, "") => Some(folder.to_owned()),
            (folder, parts) => Some(format!("{folder}/{parts}")),
        };
        let own = folder(&self.files[file].0.path).unwrap_or_default();
        if *level > 0 {
            let mut from = own;
            for _ in 1..*level {
                from = folder(&from).or((!from.is_empty()).then(String::new))?;
            }
            return self.file(&inside(&from)?);
        }
        let first = name.split('.').next().unwrap_or_default();
        let is_of_others = matches!(first, "triton" | "torch" | "numpy" | "")
            || STANDARD.split_whitespace().any(|other| other == first);
        let mut from = Some(own).filter(|_| !is_of_others);
        while let Some(at) = from {
            if let Some(found) = self.file(&inside(&at)?) {
                let is_outer = |known: &String| at.len() < known.len();
                if self.outermost.as_ref().is_none_or(is_outer) {
                    self.outermost = Some(at);
                }
                return Some(found);
            }
            from = folder(&at).or((!at.is_empty()).then(String::new));
        }
        None
    }

    /// The file of a module at a path.
    fn file(&mut self, module: &str) -> Option<usize> {
        let inside = match module {
            "" => "__init__.py".to_owned(),
            module => format!("{module}/__init__.py"),
        };
        self.load(inside)
            .or_else(|| self.load(format!("{module}.py")))
    }

    fn load(&mut self, path: String) -> Option<usize> {
        if let Some(known) = self.known.get(&path) {
            return *known;
        }
        let room = self.files.len() < SOURCE_FILES;
        let found = (self.read)(&path).filter(|_| room);
        let number = found.map(|(text, start)| {
            let at = start..start + text.len();
            let file = File::new(path.clone(), at, source::parse_at(&text, start));
            let summary = Summary::of(&file.tree);
            self.files.push((file, summary));
            self.files.len() - 1
        });
        self.known.insert(path, number);
        number
    }
}

impl Summary {
    fn of(tree: &ModModule) -> Summary {
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

/// Whether a function of the host has kernels within.
fn makes_kernels(f: &StmtFunctionDef) -> bool {
    let is_kernel = |stmt: &Stmt| matches!(stmt, Stmt::FunctionDef(f) if decoration(f).jit);
    !decoration(f).jit && f.body.iter().any(is_kernel)
}

/// The dotted names that a text uses and does not bind itself.
#[derive(Default)]
struct Uses {
    chains: Vec<Chain>,
    bound: FxHashSet<String>,
}

impl Uses {
    fn of(walk: impl FnOnce(&mut Uses)) -> Vec<Chain> {
        let mut uses = Uses::default();
        walk(&mut uses);
        let Uses { mut chains, bound } = uses;
        chains.retain(|chain| !bound.contains(&chain[0]));
        chains.sort_unstable();
        chains.dedup();
        chains
    }
}

impl<'a> Visitor<'a> for Uses {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        super::lower::with_stack(|| walk_stmt(self, stmt));
    }

    fn visit_parameter(&mut self, parameter: &'a Parameter) {
        self.bound.insert(parameter.name.to_string());
        walk_parameter(self, parameter);
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
                self.chains.push(chain.collect());
            }
            Expr::Name(name) => _ = self.bound.insert(name.id.to_string()),
            _ => super::lower::with_stack(|| walk_expr(self, expr)),
        }
    }
}
