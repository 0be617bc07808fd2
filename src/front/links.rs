//! What imports lead to: of the files beside and around a file those of which its kernels use something.
//!
//! From the kernels of the first file names are followed: to what the module gives them, to the names that stand in that, and
//! through imports to other files. A file that only the host needs is not asked for. Where a module is found:
//!
//! - `from .x import f` is beside the file that says so, `from ..x import f` one folder further out, and so on;
//! - `from a.b import f` and `import a.b` begin in the folder of the file, in the nearest around it that has them, or in the first
//!   of the folders that are given;
//! - a module is a folder with `__init__.py`, or else a file; what a module does not define may be a module within it.
//!
//! Absolute imports begin there whoever says them. The first folder that has a package with `__init__.py` of the name hides later ones.
//! Python's own modules, Triton's and torch's are nobody's files. That a module is missing is for those to tell who see all files.

mod summary;

use std::ops::Range;
use std::path::Path;

use ruff_python_ast::{ModModule, Stmt};
use ruff_text_size::{TextRange, TextSize};
use rustc_hash::{FxHashMap, FxHashSet};

use self::summary::{Binding, Summary};
use super::diagnostic::Diagnostic;
use super::module::STANDARD;
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
    /// What statements of the top level change that has a name: an element, an attribute, or what a list holds.
    pub(crate) altered: Vec<(Vec<String>, TextRange)>,
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
            altered: Vec::new(),
        }
    }
}

/// What imports of a file lead to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Links {
    /// By the place of the statement, and by what it names, a member, `*`, or a module. What is at no place, [`PART`], are modules
    /// within a package.
    pub(crate) to: FxHashMap<(TextSize, String), Link>,
    /// Places of statements that raise an exception, because there is no such module.
    pub(crate) missing: FxHashSet<TextSize>,
    /// Places of those that may: a file that they lead to imports what nobody knows, raises something, or lacks the name.
    pub(crate) unsure: FxHashSet<TextSize>,
}

/// No place of a statement.
pub(crate) const PART: TextSize = TextSize::new(u32::MAX);

/// Where an import leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    /// It is the module of this file.
    Module(String),
    /// The module of this file has it under the name that the import says.
    Member(String),
    /// The module of this file has these names, which all are imported.
    All(String, Vec<String>),
}

impl Link {
    /// The file.
    pub(crate) fn path(&self) -> &str {
        match self {
            Link::Module(path) | Link::Member(path) | Link::All(path, _) => path,
        }
    }
}

/// A dotted name.
type Chain = Vec<String>;

/// The text of a file, and where it begins in the whole.
type Read<'r> = &'r mut dyn FnMut(&str) -> Option<(String, usize)>;

/// The path of a module that is missing for certain, of those that it may have in folders, searched in order; of a relative import there is
/// one folder.
type Missing<'r> = &'r mut dyn FnMut(&[String], &str, bool) -> Option<String>;

/// What there is beside the first file.
pub(crate) struct Surroundings<'r> {
    pub(crate) read: Read<'r>,
    pub(crate) missing: Missing<'r>,
}

/// Finds files, one from the other.
pub(crate) struct Linker<'r> {
    files: Vec<(File, Summary)>,
    known: FxHashMap<String, Option<usize>>,
    around: Surroundings<'r>,
    /// Imports that led nowhere: the file, the place, and the module.
    nowhere: Vec<(usize, TextSize, (u32, String))>,
    /// Folders in which absolute imports begin that do not lead to anything around.
    roots: &'r [String],
    began: Began,
}

/// Where absolute imports began.
#[derive(Default)]
pub(crate) struct Began {
    /// The outermost folder around a file.
    pub(crate) outermost: Option<String>,
    /// Those of the folders that were given.
    pub(crate) roots: Vec<String>,
    /// Modules that are missing for certain.
    pub(crate) missing: Vec<String>,
}

impl<'r> Linker<'r> {
    /// The files that the kernels of the first one need, itself in front, and the folders in which absolute imports began, for which
    /// `roots` are further ones.
    pub(crate) fn follow(
        path: &str,
        tree: ModModule,
        end: usize,
        roots: &'r [String],
        around: Surroundings<'r>,
    ) -> (Vec<File>, Began) {
        let summary = Summary::of(&tree);
        let mut todo: Vec<(usize, Chain)> = Vec::new();
        todo.extend(summary.kernels.iter().map(|chain| (0, chain.clone())));
        let mut first = File::new(path.to_owned(), 0..end, Ok(tree));
        first.altered.clone_from(&summary.altered);
        let mut linker = Linker {
            files: vec![(first, summary)],
            known: FxHashMap::from_iter([(path.to_owned(), Some(0))]),
            around,
            nowhere: Vec::new(),
            roots,
            began: Began::default(),
        };
        let mut seen: FxHashSet<(usize, Chain)> = FxHashSet::default();
        // What a file changes counts as well: it may be another one's.
        let mut read = 0;
        loop {
            for file in read..linker.files.len() {
                let altered = &linker.files[file].0.altered;
                todo.extend(altered.iter().map(|(chain, _)| (file, chain.clone())));
            }
            read = linker.files.len();
            let Some(next) = todo.pop() else { break };
            if seen.insert(next.clone()) {
                linker.follow_name(next.0, &next.1, &mut todo);
            }
        }
        linker.name_all();
        linker.name_missing();
        linker.name_unsure();
        let files = linker.files.into_iter().map(|(file, _)| file).collect();
        (files, linker.began)
    }

    /// Says which imports fail for certain.
    fn name_missing(&mut self) {
        for (file, at, (level, name)) in std::mem::take(&mut self.nowhere) {
            if level == 0 && is_of_others(&name) {
                continue;
            }
            let folders: Vec<String> = match level {
                0 => self.places().collect(),
                level => {
                    let mut around = folders_around(&self.files[file].0.path);
                    around.nth(level as usize - 1).into_iter().collect()
                }
            };
            let parts = name.replace('.', "/");
            let found = (self.around.missing)(&folders, &parts, level > 0);
            if let Some(path) = found {
                self.files[file].0.links.missing.insert(at);
                if !self.began.missing.contains(&path) {
                    self.began.missing.push(path);
                }
            }
        }
    }

    /// Says which imports may fail though their files are there.
    fn name_unsure(&mut self) {
        let harmless: Vec<bool> = (0..self.files.len())
            .map(|file| self.is_harmless(file))
            .collect();
        for file in 0..self.files.len() {
            let links = self.files[file].0.links.to.clone();
            for ((at, name), link) in links {
                let Some(other) = self.known.get(link.path()).copied().flatten() else {
                    continue;
                };
                let summary = &self.files[other].1;
                let has = summary.bindings.contains_key(&name) || !summary.stars.is_empty();
                let is_there = has || !matches!(link, Link::Member(_));
                if !is_there || !self.is_plain(other, &harmless, &mut FxHashSet::default()) {
                    self.files[file].0.links.unsure.insert(at);
                }
            }
        }
    }

    /// Whether a file is harmless, and so are those that its kernels lead to.
    fn is_plain(&self, file: usize, harmless: &[bool], seen: &mut FxHashSet<usize>) -> bool {
        if !seen.insert(file) {
            return true;
        }
        let mut next = self.files[file].0.links.to.values();
        harmless[file]
            && next.all(|link| {
                let other = self.known.get(link.path()).copied().flatten();
                other.is_none_or(|other| self.is_plain(other, harmless, seen))
            })
    }

    /// Whether a file imports at its top level what is known alone, and raises nothing.
    fn is_harmless(&self, file: usize) -> bool {
        let data = &self.files[file].0;
        let is_known = |name: &str| is_of_others(name) || self.is_own(name);
        let mut body = data.tree.body.iter();
        data.broken.is_none()
            && body.all(|stmt| match stmt {
                Stmt::Import(s) => s.names.iter().all(|alias| is_known(alias.name.as_str())),
                Stmt::ImportFrom(s) => {
                    s.level > 0
                        || s.module
                            .as_ref()
                            .is_some_and(|name| is_known(name.as_str()))
                }
                Stmt::Raise(_) => false,
                _ => true,
            })
    }

    /// Whether there are files of a module, or beside it in its package.
    fn is_own(&self, module: &str) -> bool {
        let first = module.split('.').next().unwrap_or(module);
        self.places().any(|at| {
            let place = joined(&at, first);
            self.files.iter().any(|(file, _)| {
                let rest = file.path.strip_prefix(&*place);
                rest.is_some_and(|rest| rest.starts_with('/') || rest == ".py")
            })
        })
    }

    /// Says which names come by `from module import *`.
    fn name_all(&mut self) {
        for file in 0..self.files.len() {
            let links = self.files[file].0.links.to.clone();
            for (key, link) in links {
                if let Link::All(path, _) = link {
                    let mut names = FxHashSet::default();
                    // What comes back from another file is there already.
                    let own = self.files[file].0.path.clone();
                    self.public_names(&path, &mut FxHashSet::from_iter([own]), &mut names);
                    let mut names: Vec<String> = names.into_iter().collect();
                    names.sort_unstable();
                    let links = &mut self.files[file].0.links.to;
                    links.insert(key, Link::All(path, names));
                }
            }
        }
    }

    /// The names that `from module import *` takes of a file.
    fn public_names(
        &self,
        path: &str,
        seen: &mut FxHashSet<String>,
        names: &mut FxHashSet<String>,
    ) {
        let number = self.known.get(path).copied().flatten();
        let Some((file, summary)) = number.and_then(|number| self.files.get(number)) else {
            return;
        };
        if !seen.insert(path.to_owned()) {
            return;
        }
        if let Some(all) = &summary.all {
            names.extend(all.iter().cloned());
            return;
        }
        let own = summary
            .bindings
            .keys()
            .filter(|name| !name.starts_with('_'));
        names.extend(own.cloned());
        for link in file.links.to.values() {
            if let Link::All(other, _) = link {
                self.public_names(other, seen, names);
            }
        }
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
            None => self.follow_part(file, name, rest, todo),
        }
        for (at, module) in self.files[file].1.stars.clone() {
            if let Some(other) = self.module(file, &module) {
                let path = self.files[other].0.path.clone();
                self.link(file, at, "*", Link::All(path, Vec::new()));
                todo.push((other, chain.to_vec()));
            }
        }
        for (at, module, member) in imports {
            match (module, member) {
                (Some(module), Some(member)) => {
                    self.follow_member(file, at, &module, &member, rest, todo);
                }
                (Some(module), None) => match self.module(file, &module) {
                    Some(other) => {
                        self.link_module(file, at, &module.1, other, rest, todo);
                    }
                    None => self.nowhere.push((file, at, module)),
                },
                (None, _) => self.follow_dotted(file, at, chain, todo),
            }
        }
    }

    /// `import a.b`: the package, if it is a file, or else as much of the name as is a module.
    fn follow_dotted(
        &mut self,
        file: usize,
        at: TextSize,
        chain: &[String],
        todo: &mut Vec<(usize, Chain)>,
    ) {
        for k in (1..=chain.len()).rev() {
            let name = chain[..k].join(".");
            let Some(other) = self.module(file, &(0, name.clone())) else {
                continue;
            };
            let path = &self.files[other].0.path;
            let inside = chain[..k].join("/");
            let inside = [format!("{inside}/__init__.py"), format!("{inside}.py")];
            let root = inside
                .iter()
                .find_map(|inside| path.strip_suffix(&**inside));
            let package = format!("{}{}/__init__.py", root.unwrap_or_default(), chain[0]);
            match self.load(package) {
                Some(package) => {
                    self.link_module(file, at, &chain[0], package, &chain[1..], todo);
                }
                None => self.link_module(file, at, &name, other, &chain[k..], todo),
            }
            return;
        }
    }

    /// A module within a package, which has a name of it by being imported somewhere.
    fn follow_part(
        &mut self,
        file: usize,
        name: &str,
        rest: &[String],
        todo: &mut Vec<(usize, Chain)>,
    ) {
        if self.files[file].0.path.ends_with("__init__.py")
            && let Some(other) = self.module(file, &(1, name.to_owned()))
        {
            self.link_module(file, PART, name, other, rest, todo);
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
        // `from . import x` in the package itself is a module within it.
        let is_other = |other: &usize| *other != file && has(&self.files[*other].1);
        if let Some(other) = found.filter(is_other) {
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
            (None, Some(other)) => {
                let path = self.files[other].0.path.clone();
                self.link(file, at, member, Link::Member(path));
            }
            (None, None) => self.nowhere.push((file, at, module.clone())),
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
        let links = &mut self.files[file].0.links.to;
        links.insert((at, name.to_owned()), link);
    }

    /// The file that a module is, as a file calls it.
    fn module(&mut self, file: usize, (level, name): &(u32, String)) -> Option<usize> {
        let parts = name.replace('.', "/");
        let is_absolute = Path::new(&self.files[0].0.path).is_absolute();
        let inside = |folder: &str| match (folder, &*parts) {
            ("", _) if is_absolute => None,
            (folder, "") => Some(folder.to_owned()),
            (folder, parts) => Some(joined(folder, parts)),
        };
        if *level > 0 {
            let mut around = folders_around(&self.files[file].0.path);
            let from = around.nth(*level as usize - 1)?;
            return self.file(&inside(&from)?);
        }
        if is_of_others(name) {
            return None;
        }
        let (first, is_inner) = name
            .split_once('.')
            .map_or((&**name, false), |(first, _)| (first, true));
        let places: Vec<String> = self.places().collect();
        for (i, at) in places.into_iter().enumerate() {
            // The top of the file system holds no packages.
            let Some(inside) = inside(&at) else { continue };
            let found = self.file(&inside);
            if let Some(found) = found {
                self.begin_at(i, at);
                return Some(found);
            }
            if is_inner
                && self
                    .load(joined(&joined(&at, first), "__init__.py"))
                    .is_some()
            {
                return None;
            }
        }
        None
    }

    /// The folders in which absolute imports may begin, in order.
    fn places(&self) -> impl Iterator<Item = String> + use<'r> {
        folders_around(&self.files[0].0.path).chain(self.roots.iter().cloned())
    }

    /// Notes that something was found in a folder, by its place among [`Self::places`].
    fn begin_at(&mut self, place: usize, at: String) {
        if place < folders_around(&self.files[0].0.path).count() {
            let is_outer = |known: &String| at.len() < known.len();
            if self.began.outermost.as_ref().is_none_or(is_outer) {
                self.began.outermost = Some(at);
            }
        } else if !self.began.roots.contains(&at) {
            self.began.roots.push(at);
        }
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
        let found = (self.around.read)(&path).filter(|_| room);
        let number = found.map(|(text, start)| {
            let at = start..start + text.len();
            let mut file = File::new(path.clone(), at, source::parse_at(&text, start));
            let summary = Summary::of(&file.tree);
            file.altered.clone_from(&summary.altered);
            self.files.push((file, summary));
            self.files.len() - 1
        });
        self.known.insert(path, number);
        number
    }
}

/// The folder of a file, and those around it.
fn folders_around(path: &str) -> impl Iterator<Item = String> + use<> {
    let outer = |path: &String| {
        let folder = path.rsplit_once('/').map(|(folder, _)| folder.to_owned());
        folder.or((!path.is_empty()).then(String::new))
    };
    std::iter::successors(outer(&path.to_owned()), outer)
}

/// A path within a folder.
pub(crate) fn joined(folder: &str, inside: &str) -> String {
    match folder {
        "" => inside.to_owned(),
        folder => format!("{folder}/{inside}"),
    }
}

/// Whether a module is Python's own, Triton's, or of those that it stands on, or one whose versions are known without its files.
fn is_of_others(module: &str) -> bool {
    let first = module.split('.').next().unwrap_or(module);
    matches!(first, "triton" | "torch" | "numpy" | "packaging" | "")
        || STANDARD.split_whitespace().any(|other| other == first)
}
