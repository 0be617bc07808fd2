//! The part of the library that is written in the language: `prelude.py`, parsed once.

use std::sync::LazyLock;

use ruff_python_ast::{ModModule, StmtFunctionDef};

use crate::front::module::{Definition, Index};
use crate::front::source;

static TREE: LazyLock<Option<ModModule>> =
    LazyLock::new(|| source::parse(include_str!("prelude.py")).ok());

static INDEX: LazyLock<Index<'static>> =
    LazyLock::new(|| TREE.as_ref().map(Index::new).unwrap_or_default());

/// Its names.
pub(crate) fn index() -> &'static Index<'static> {
    &INDEX
}

/// The function of this name.
pub(super) fn find(name: &str) -> Option<&'static StmtFunctionDef> {
    match INDEX.names.get(name) {
        // A name that starts with `_` is its own affair.
        Some(Definition::Function(f)) if !name.starts_with('_') => Some(f),
        _ => None,
    }
}

/// Whether a function is one of it.
pub(crate) fn owns(f: &StmtFunctionDef) -> bool {
    let found = INDEX.names.get(f.name.as_str());
    matches!(found, Some(Definition::Function(own)) if std::ptr::eq(*own, f))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_parses() {
        assert!(TREE.is_some());
        assert!(find("softmax").is_some_and(owns));
    }
}
