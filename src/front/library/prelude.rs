//! The part of the library that is written in the language: `prelude.py`, `libdevice.py` and `bessel.py` for functions of libdevice,
//! `inductor.py` for what PyTorch's compiler calls, and `ragged.py` for `triton.tools.ragged_tma`. Each is parsed once.

use std::sync::LazyLock;

use ruff_python_ast::{ModModule, StmtFunctionDef};

use super::Scope;
use crate::front::module::{Definition, Index};
use crate::front::source;

static LANGUAGE: LazyLock<Option<ModModule>> =
    LazyLock::new(|| source::parse(include_str!("prelude.py")).ok());

static LIBDEVICE: LazyLock<Option<ModModule>> = LazyLock::new(|| {
    source::parse(concat!(
        include_str!("libdevice.py"),
        include_str!("bessel.py")
    ))
    .ok()
});

static INDUCTOR: LazyLock<Option<ModModule>> =
    LazyLock::new(|| source::parse(include_str!("inductor.py")).ok());

static RAGGED: LazyLock<Option<ModModule>> =
    LazyLock::new(|| source::parse(include_str!("ragged.py")).ok());

static INDICES: LazyLock<[(Scope, Index<'static>); 4]> = LazyLock::new(|| {
    let index = |tree: &'static Option<ModModule>| tree.as_ref().map(Index::of_library);
    [
        (Scope::Language, index(&LANGUAGE).unwrap_or_default()),
        (Scope::Libdevice, index(&LIBDEVICE).unwrap_or_default()),
        (Scope::Inductor, index(&INDUCTOR).unwrap_or_default()),
        (Scope::Ragged, index(&RAGGED).unwrap_or_default()),
    ]
});

/// The function of this name. One that starts with `_` is the library's own affair, but for those of Triton.
pub(super) fn find(scope: Scope, name: &str) -> Option<&'static StmtFunctionDef> {
    own(scope, name).filter(|_| !name.starts_with('_') || is_of_triton(name))
}

/// Whether a name with `_` in front is one of Triton's that kernels use.
fn is_of_triton(name: &str) -> bool {
    ["_experimental_d", "_elementwise_m"]
        .iter()
        .any(|start| name.starts_with(start))
        || name.contains("_combine")
}

/// The function of this name, be it the library's own affair.
pub(super) fn own(scope: Scope, name: &str) -> Option<&'static StmtFunctionDef> {
    let (_, index) = INDICES.iter().find(|(own, _)| *own == scope)?;
    match index.names.get(name) {
        Some(Definition::Function(f)) => Some(f),
        _ => None,
    }
}

/// The names among which a function of the library stands.
pub(crate) fn index_of(f: &StmtFunctionDef) -> Option<&'static Index<'static>> {
    let own = |index: &Index<'static>| match index.names.get(f.name.as_str()) {
        Some(Definition::Function(own)) => std::ptr::eq(*own, f),
        _ => false,
    };
    let found = INDICES.iter().find(|(_, index)| own(index));
    found.map(|(_, index)| index)
}

/// The names of a scope's functions that are not its own affair.
pub(super) fn names(scope: Scope) -> impl Iterator<Item = &'static str> {
    let indices = INDICES.iter().filter(move |(own, _)| *own == scope);
    let names = indices.flat_map(|(_, index)| index.names.keys().copied());
    names.filter(|name| !name.starts_with('_'))
}

/// Whether a function is one of the library.
pub(crate) fn owns(f: &StmtFunctionDef) -> bool {
    index_of(f).is_some()
}

/// Where the names of a text of the library are looked up that it does not define.
pub(crate) fn scope_of(index: &Index<'_>) -> Option<Scope> {
    let same =
        |own: &Index<'static>| std::ptr::from_ref(own).addr() == std::ptr::from_ref(index).addr();
    INDICES
        .iter()
        .find(|(_, own)| same(own))
        .map(|(scope, _)| *scope)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_parse_and_own_their_functions() {
        assert!(LANGUAGE.is_some() && LIBDEVICE.is_some());
        assert!(INDUCTOR.is_some() && RAGGED.is_some());
        assert!(find(Scope::Language, "softmax").is_some_and(owns));
        assert!(find(Scope::Libdevice, "sinpi").is_some_and(owns));
        assert!(find(Scope::Language, "sinpi").is_none());
    }

    #[test]
    fn no_function_stands_behind_a_row() {
        for (scope, index) in INDICES.iter() {
            for name in index.names.keys() {
                assert!(super::super::find_in(*scope, name).is_none(), "{name}");
            }
        }
    }
}
