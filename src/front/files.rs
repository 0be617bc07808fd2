//! Several files in one text, as programs have them that import functions of files of their own.
//!
//! ```text
//! from .special import erf_like           the file itself
//! ..
//! #--- in ops                             its folder, if it is not the one that the paths begin in
//! #--- from vendor                        a folder in which imports begin, if it is not around the file (PYTHONPATH)
//! #--- without ops/fast                   a module that is missing, which somebody imports all the same
//! #--- ops/special.py                     what follows is this file
//! @triton.jit
//! def erf_like(x): ..
//! ```
//!
//! A file's line is `#--- ` and a path that ends in `.py`, without blanks; the others stand directly before the first of these. One text is what a cache needs to tell programs apart,
//! and what a manifest or an application holds. Places are bytes of the whole.

use std::fs::File as FsFile;
use std::io::Read;
use std::ops::Range;
use std::path::Path;

use super::links::{Linker, Surroundings};
use super::source;
use crate::limits::SOURCE_BYTES;

/// What begins a line that says which file follows.
const MARK: &str = "#--- ";

/// What names the folder of the text in front.
const FOLDER: &str = "in ";

/// What names a folder in which imports begin.
const ROOT: &str = "from ";

/// What names a module that is missing.
const WITHOUT: &str = "without ";

/// The folder that paths begin in, where it has to be named.
const HERE: &str = ".";

/// A file in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part<'t> {
    pub(crate) path: &'t str,
    pub(crate) range: Range<usize>,
}

/// The files of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Parts<'t> {
    /// Bytes of the first.
    pub(crate) first: Range<usize>,
    /// Its folder, or nothing.
    folder: &'t str,
    /// Folders in which imports begin, but for those around a file.
    pub(crate) roots: Vec<String>,
    /// Modules that are missing.
    pub(crate) without: Vec<&'t str>,
    pub(crate) others: Vec<Part<'t>>,
}

impl<'t> Parts<'t> {
    /// Finds the files of a text.
    pub(crate) fn of(text: &'t str) -> Parts<'t> {
        let mut parts = Parts {
            first: 0..text.len(),
            folder: "",
            roots: Vec::new(),
            without: Vec::new(),
            others: Vec::new(),
        };
        // The lines that stand directly before the next.
        let mut ahead = 0..0;
        for (at, _) in text.match_indices(MARK) {
            if at > 0 && text.as_bytes()[at - 1] != b'\n' {
                continue;
            }
            let line = text[at..].split('\n').next().unwrap_or_default();
            let end = (at + line.len() + 1).min(text.len());
            let name = line[MARK.len()..].trim_end();
            let is_first = parts.others.is_empty();
            if is_first && ahead.end != at {
                ahead = at..at;
                parts.forget_folders();
            }
            if name.ends_with(".py") && !name.contains(char::is_whitespace) {
                match parts.others.last_mut() {
                    Some(last) => last.range.end = at,
                    None => parts.first.end = ahead.start,
                }
                let range = end..text.len();
                parts.others.push(Part { path: name, range });
            } else if is_first && let Some(folder) = name.strip_prefix(FOLDER) {
                parts.folder = folder;
                ahead.end = end;
            } else if is_first && let Some(root) = name.strip_prefix(ROOT) {
                let root = if root == HERE { "" } else { root };
                parts.roots.push(root.to_owned());
                ahead.end = end;
            } else if is_first && let Some(module) = name.strip_prefix(WITHOUT) {
                parts.without.push(module);
                ahead.end = end;
            }
        }
        if parts.others.is_empty() {
            parts.forget_folders();
        }
        parts
    }

    fn forget_folders(&mut self) {
        self.folder = "";
        self.roots.clear();
        self.without.clear();
    }

    /// The path of the first file, of which `name` is what users call it.
    pub(crate) fn first_path(&self, name: &str) -> String {
        let file = name.rsplit(['/', '\\']).next().unwrap_or(name);
        match self.folder {
            "" => file.to_owned(),
            folder => format!("{folder}/{file}"),
        }
    }

    /// The file that holds a byte: what users call it, and where it begins and ends.
    pub(crate) fn at(&self, name: &str, byte: usize) -> (String, Range<usize>) {
        let holds = |part: &&Part<'t>| part.range.start <= byte;
        let Some(part) = self.others.iter().rev().find(holds) else {
            return (name.to_owned(), self.first.clone());
        };
        let path = self.first_path(name);
        let before = name.strip_suffix(&*path).unwrap_or_default();
        (format!("{before}{}", part.path), part.range.clone())
    }

    /// The text of the file at a path.
    pub(crate) fn find(&self, path: &str) -> Option<&Part<'t>> {
        self.others.iter().find(|part| part.path == path)
    }
}

/// The text of a Python file with those that its kernels use something of, by its imports: one text that
/// [`Module::parse`](super::Module::parse) takes, and `Program::python`. `path` is where it stands; what it imports is looked for
/// there, in the folders around it, and then in those that the variable `PYTHONPATH` of the environment names. The text comes back as it is
/// if it needs no other file, is no Python, or has others in it already.
///
/// ```text
/// from .special import erf_like           the file itself
/// ..
/// #--- in ops                             its folder, if it is not the one that the paths begin in
/// #--- from vendor                        a folder in which imports begin, if it is not around the file (PYTHONPATH)
/// #--- without ops/fast                   a module that is missing, which somebody imports all the same
/// #--- ops/special.py                     what follows is this file
/// @triton.jit
/// def erf_like(x): ..
/// ```
pub fn with_imports(path: &Path, text: &str) -> String {
    collect(path, text).0
}

/// The same, and the paths of the other files.
pub(crate) fn collect(path: &Path, text: &str) -> (String, Vec<String>) {
    let alone = || (text.to_owned(), Vec::new());
    let whole = |path: &Path| {
        let path = std::path::absolute(path).ok()?;
        Some(path.to_str()?.replace('\\', "/"))
    };
    let roots = std::env::var_os("PYTHONPATH").unwrap_or_default();
    let roots = std::env::split_paths(&roots).filter(|_| !roots.is_empty());
    let roots = roots.filter_map(|root| {
        let here = Path::new(HERE);
        let root = if root.as_os_str().is_empty() {
            here
        } else {
            &root
        };
        Some(whole(root)?.trim_end_matches('/').to_owned())
    });
    let roots: Vec<String> = roots.collect();
    let (Some(place), true) = (whole(path), Parts::of(text).others.is_empty()) else {
        return alone();
    };
    let Ok(tree) = source::parse(text) else {
        return alone();
    };
    let mut room = SOURCE_BYTES.saturating_sub(text.len());
    let mut texts: Vec<(String, String)> = Vec::new();
    let mut read = |path: &str| {
        let found = read_file(path, room)?;
        room -= found.len();
        texts.push((path.to_owned(), found.clone()));
        Some((found, 0))
    };
    let around = Surroundings {
        read: &mut read,
        missing: &mut missing_on_disk,
    };
    let (files, began) = Linker::follow(&place, tree, text.len(), &roots, around);
    let needed = |path: &String| {
        let mut links = files.iter().flat_map(|file| file.links.to.values());
        links.any(|link| link.path() == path)
    };
    texts.retain(|(path, _)| needed(path));
    let began_in = began.roots.iter().map(|at| format!("{at}/"));
    let began_in: Vec<String> = began_in.chain(began.missing.iter().cloned()).collect();
    let paths = texts.iter().map(|(path, _)| &**path);
    let paths = paths
        .chain(began_in.iter().map(|at| &**at))
        .chain([&*place]);
    let folder = |path: &str| {
        path.rsplit_once('/')
            .map_or(0, |(folder, _)| folder.len() + 1)
    };
    let mut root = folder(&place);
    for path in paths {
        let same = path.bytes().zip(place.bytes());
        let common = same.take_while(|(a, b)| a == b).enumerate();
        let slashes = common.filter(|(_, (byte, _))| *byte == b'/');
        root = root.min(slashes.last().map_or(0, |(at, _)| at + 1));
    }
    if let Some(outer) = &began.outermost {
        root = root.min(outer.len() + 1);
    }
    let mut whole = text.to_owned();
    let mut line = |line: &str| {
        if !whole.is_empty() && !whole.ends_with('\n') {
            whole.push('\n');
        }
        whole += line;
    };
    // What a line cannot name stays away.
    texts.retain(|(path, _)| !path[root..].contains(char::is_whitespace));
    if texts.is_empty() {
        return alone();
    }
    let own = &place[root..folder(&place).max(root)];
    if let Some(own) = own.strip_suffix('/') {
        line(&format!("{MARK}{FOLDER}{own}\n"));
    }
    for folder in began.roots {
        let folder = folder.get(root..).filter(|folder| !folder.is_empty());
        line(&format!("{MARK}{ROOT}{}\n", folder.unwrap_or(HERE)));
    }
    for module in began.missing {
        line(&format!("{MARK}{WITHOUT}{}\n", &module[root..]));
    }
    for (path, text) in &texts {
        line(&format!("{MARK}{}\n", &path[root..]));
        line(text);
    }
    let paths = texts.into_iter().map(|(path, _)| path).collect();
    (whole, paths)
}

/// The path of a module that Python would look for in these folders, in order, and not find: the first that has its package has
/// `__init__.py` there, and nothing of the name. What is spread over folders, or changes where it is looked for, may be anywhere.
fn missing_on_disk(folders: &[String], module: &str, is_relative: bool) -> Option<String> {
    let (first, _) = module.split_once('/').unwrap_or((module, ""));
    let exists = |path: &str| Path::new(path).exists();
    let init = |folder: &str| format!("{folder}/__init__.py");
    let (folder, package) = match is_relative {
        true => {
            let folder = folders.first()?;
            let mut around = Path::new(folder).ancestors().filter_map(Path::to_str);
            (folder, around.find(|at| exists(&init(at)))?.to_owned())
        }
        false => {
            let mut packages = folders.iter().map(|at| (at, format!("{at}/{first}")));
            packages.find(|(_, at)| exists(at) || exists(&format!("{at}.py")))?
        }
    };
    let text = std::fs::read_to_string(init(&package)).ok()?;
    if text.contains("__path__") || text.contains("sys.modules") {
        return None;
    }
    let path = format!("{folder}/{module}");
    // The first part of the path that is not there: as a folder, a file, or a library.
    let mut place = package;
    for part in path
        .strip_prefix(&*place)?
        .split('/')
        .filter(|part| !part.is_empty())
    {
        let mut entries = std::fs::read_dir(&place).ok()?;
        let is_there = entries.any(|entry| {
            let name = entry.map(|entry| entry.file_name());
            let name = name.ok().and_then(|name| name.into_string().ok());
            name.is_none_or(|name| name.split('.').next() == Some(part))
        });
        if !is_there {
            return Some(path);
        }
        place = format!("{place}/{part}");
    }
    None
}

/// The text of a file of at most so many bytes that holds no others.
fn read_file(path: &str, room: usize) -> Option<String> {
    let mut text = String::new();
    // Opening what is no file may wait for somebody to write it.
    let is_file = std::fs::metadata(path).is_ok_and(|data| data.is_file());
    let file = is_file.then(|| FsFile::open(path))?.ok()?;
    file.take(room as u64 + 1).read_to_string(&mut text).ok()?;
    let fits = text.len() <= room && Parts::of(&text).others.is_empty();
    fits.then(|| text.trim_start_matches('\u{feff}').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_name_files_divide_a_text() {
        let text = "a\n#--- in ops\n#--- ops/b.py\nb\n#--- ../c.py \nc\n";
        let parts = Parts::of(text);
        assert_eq!(&text[parts.first.clone()], "a\n");
        let others = parts.others.iter();
        let others: Vec<_> = others.map(|p| (p.path, &text[p.range.clone()])).collect();
        assert_eq!(others, [("ops/b.py", "b\n"), ("../c.py", "c\n")]);
        assert_eq!(parts.first_path("src/ops/a.py"), "ops/a.py");
        assert_eq!(parts.at("src/ops/a.py", 0).0, "src/ops/a.py");
        assert_eq!(parts.at("src/ops/a.py", text.len()).0, "src/../c.py");
        assert_eq!(parts.at("a.py", 30).0, "ops/b.py");
    }

    #[test]
    fn comments_are_no_files() {
        for text in [
            "#--- helpers ---\nx\n",
            "x #--- a.py\n",
            "#---- a.py\n",
            "#--- in ops\nx\n",
            "#--- a file.py\n",
        ] {
            let parts = Parts::of(text);
            assert_eq!(
                (parts.first, parts.others.len()),
                (0..text.len(), 0),
                "{text}"
            );
        }
    }
}
