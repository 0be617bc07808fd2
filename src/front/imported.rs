//! Names of other files of the program: what an import of one gives.
//!
//! Such a file is read as if it were imported: its names are what they are at the end of it. What is wrong in it is told with its
//! own places; instructions have the line of the call in the kernel's file.

use indexmap::IndexMap;
use ruff_text_size::{TextRange, TextSize};

use super::conditions::index_of;
use super::diagnostic::{Code, Diagnostic};
use super::links::File;
use super::lower::{Frame, Lower, Res, Stop};
use super::module::{Index, Unknown};
use super::names::is_handed_on;
use super::value::{Path, Value};
use crate::limits::EVALUATION_CALLS;
use crate::settings::Target;

/// Most times that files are read for the conditions of each other.
const ROUNDS: usize = 8;

/// A file that is imported.
#[derive(Debug)]
pub(crate) struct Imported<'m> {
    path: &'m str,
    range: TextRange,
    index: Index<'m>,
    line_starts: Vec<u32>,
    broken: Option<&'m Diagnostic>,
}

/// Where lines of a text begin that stands at a byte of a larger one.
pub(crate) fn line_starts(text: &str, at: usize) -> impl Iterator<Item = u32> + '_ {
    let starts = text.match_indices('\n').map(|(i, _)| i + 1);
    std::iter::once(0)
        .chain(starts)
        .map(move |start| (at + start) as u32)
}

impl<'m> Imported<'m> {
    /// Files of a text.
    pub(crate) fn all(files: &'m [File], text: &str, target: Target) -> Vec<Imported<'m>> {
        let all = |known: &[Imported<'m>]| -> Vec<Imported<'m>> {
            let read = |file| Imported::new(file, known, text, target);
            files.iter().map(read).collect()
        };
        // Their conditions may ask for names of each other.
        let mut known = Vec::new();
        let mut decided = None;
        for _ in 0..ROUNDS {
            let next = all(&known);
            let conditions = next.iter().map(|file| file.index.decided.len());
            let count = Some(conditions.sum::<usize>());
            known = next;
            if std::mem::replace(&mut decided, count) == count {
                break;
            }
        }
        known
    }

    fn new(file: &'m File, known: &[Imported<'m>], text: &str, target: Target) -> Imported<'m> {
        let size = |n: usize| TextSize::try_from(n).unwrap_or_default();
        Imported {
            path: &file.path,
            range: TextRange::new(size(file.start), size(file.end)),
            index: index_of(file, known, &IndexMap::new(), target),
            line_starts: line_starts(&text[file.start..file.end], file.start).collect(),
            broken: file.broken.as_ref(),
        }
    }
}

impl<'m> Lower<'m> {
    /// The file of the program that a place is in; none if it is the kernel's own, or in the library.
    fn file_at(&self, place: TextRange) -> Option<&'m Imported<'m>> {
        let mut at = self.imported.iter();
        at.find(|file| file.range.contains_range(place))
    }

    /// The names of the file that a place is in, which is not in the library.
    pub(crate) fn index_at(&self, place: TextRange) -> &'m Index<'m> {
        self.file_at(place).map_or(self.index, |file| &file.index)
    }

    /// The names of all files but the kernel's own.
    pub(crate) fn indices<'a>(files: &'a [Imported<'m>]) -> impl Iterator<Item = &'a Index<'m>> {
        files.iter().map(|file| &file.index)
    }

    /// The line of a place in its file, from 1.
    pub(crate) fn line_of(&self, place: TextRange) -> usize {
        let own = || &*self.line_starts;
        let starts = self.file_at(place);
        let starts = starts.map_or_else(own, |file| &*file.line_starts);
        starts.partition_point(|&s| s <= u32::from(place.start()))
    }

    /// The line of a place, for messages.
    pub(crate) fn place_of(&self, place: TextRange) -> String {
        let line = self.line_of(place);
        match self.file_at(place) {
            Some(file) => format!("line {line} of {}", file.path),
            None => format!("line {line}"),
        }
    }

    /// What a dotted path stands for that begins with the path of a file of the program; none if it begins with none.
    pub(crate) fn of_file(&mut self, path: &str) -> Res<Option<Value<'m>>> {
        let Some((file, name)) = path.rsplit_once('.') else {
            return Ok(None);
        };
        let Some(index) = self.index_of(file)? else {
            return Ok(None);
        };
        if self.frames.len() > EVALUATION_CALLS {
            let message = format!("`{name}` is imported by more than {EVALUATION_CALLS} steps");
            let d = self.error(Code::Budget, message);
            return self.abort(d.help("import it from the file that defines it"));
        }
        if let Some(&at) = self.altered.get(&(file.to_owned(), name.to_owned())) {
            let help = "leave it as the file has it, or define it in the kernel's own".to_owned();
            return Err(self.unknown_value(name, Unknown::Changed(at), help));
        }
        let call = self.range;
        self.frames.push(Frame::new(index, None, call, true));
        let value = self.of_index(index, name);
        self.frames.pop();
        self.enter(call);
        match value {
            Ok(None) if is_handed_on(name) => Ok(None),
            Ok(None) => {
                let message = format!("`{file}` does not define `{name}`");
                let d = self.error(Code::Name, message);
                Err(d.help("import it from the file that does").into())
            }
            // The library is what it is by another name.
            Err(Stop::Error(_)) if is_handed_on(name) => Ok(None),
            value => value,
        }
    }

    /// The names of the file at a path, if it is one of the program's. That it is no Python is an error.
    fn index_of(&self, path: &str) -> Res<Option<&'m Index<'m>>> {
        if path == self.path {
            return Ok(Some(self.index));
        }
        let Some(file) = self.imported.iter().find(|file| file.path == path) else {
            return Ok(None);
        };
        match file.broken {
            Some(broken) => Err(broken.clone().into()),
            None => Ok(Some(&file.index)),
        }
    }

    /// What a name stands for at the end of a file, the top of the frames.
    fn of_index(&mut self, index: &'m Index<'m>, name: &str) -> Res<Option<Value<'m>>> {
        if let Some((name, _)) = index.names.get_key_value(name) {
            let nowhere = TextRange::empty(TextSize::new(0));
            if let Some(definition) = index.find(name, nowhere, false, None, self.as_written) {
                return self.global(name, definition).map(Some);
            }
        }
        Ok(index.part(name).map(|path| Value::Path(Path(path.into()))))
    }

    /// Runs something with the names of the file that a place is in.
    pub(crate) fn in_file_of<T>(
        &mut self,
        place: TextRange,
        run: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let index = self.index_at(place);
        if std::ptr::eq(self.frame().index, index) {
            return run(self);
        }
        let call = self.range;
        self.frames.push(Frame::new(index, None, call, true));
        let result = run(self);
        self.frames.pop();
        self.enter(call);
        result
    }
}
