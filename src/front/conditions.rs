//! Conditions of the module's own `if` statements: which can be told at compile time, so that the branch that is not taken
//! defines nothing.
//!
//! A condition may ask for names that another one defines, so that they are gone over until no more is found out. What
//! depends on the host, be it only the name of something in another file, is left undecided.

use std::sync::Arc;

use indexmap::IndexMap;
use ruff_python_ast::{Expr, ModModule, StmtIf};
use ruff_text_size::{Ranged, TextSize};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::lower::Lower;
use super::module::Index;
use super::signature::Constant;
use crate::ir::builder::TileBuilder;
use crate::settings::Target;

/// Most times that the conditions of a file are gone over.
const ROUNDS: usize = 8;

/// Conditions that are known, by their start.
pub(crate) type Decided = Arc<FxHashMap<TextSize, bool>>;

/// The definitions of a file, given what the caller gives to its names. What changes in it is known too.
pub(crate) fn index_of<'m>(
    tree: &'m ModModule,
    constants: &IndexMap<String, Constant>,
    target: Target,
) -> Index<'m> {
    let mut decided = FxHashMap::default();
    for _ in 0..ROUNDS {
        let mut index = Index::new(tree, Arc::new(decided.clone()));
        index.find_changes();
        let mut tests = Vec::new();
        index.tests(&mut tests);
        tests.retain(|test| !decided.contains_key(&test.start()));
        let known = decided.len();
        for test in tests {
            if let Some(truth) = truth(&index, test, constants, target) {
                decided.insert(test.start(), truth);
            }
        }
        if decided.len() == known {
            return index;
        }
    }
    let mut index = Index::new(tree, Arc::new(decided));
    index.find_changes();
    index
}

/// Whether a condition holds, if that is certain.
fn truth(
    index: &Index<'_>,
    test: &Expr,
    constants: &IndexMap<String, Constant>,
    target: Target,
) -> Option<bool> {
    let mut lower = Lower::new(
        index,
        constants,
        target,
        TileBuilder::new("", 1),
        [0].into(),
    );
    lower.enter(test.range());
    lower
        .frames
        .push(super::tuning::host_frame(index, test.range()));
    let value = lower.eval(test).ok()?;
    let truth = lower.condition(&value).ok()?.ok()?;
    // A name that is another thing in another branch comes with a warning.
    (lower.messages.is_empty() && !lower.asked_host).then_some(truth)
}

/// The branches of an `if` that may be taken, and whether the first of them is for certain.
pub(crate) fn branches<'m>(
    s: &'m StmtIf,
    decided: &Decided,
) -> (SmallVec<[&'m [ruff_python_ast::Stmt]; 2]>, bool) {
    let first = (Some(&*s.test), &*s.body);
    let others = s
        .elif_else_clauses
        .iter()
        .map(|clause| (clause.test.as_ref(), &*clause.body));
    let (mut taken, mut certain): (SmallVec<[_; 2]>, bool) = (SmallVec::new(), true);
    for (test, body) in std::iter::once(first).chain(others) {
        match test.map(|test| decided.get(&test.start()).copied()) {
            Some(Some(false)) => {}
            Some(Some(true)) | None => {
                taken.push(body);
                return (taken, certain);
            }
            Some(None) => {
                taken.push(body);
                certain = false;
            }
        }
    }
    (taken, certain)
}
