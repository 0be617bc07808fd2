//! Conditions of the module's own `if` statements: which can be told at compile time, so that the branch that is not taken
//! defines nothing.
//!
//! Kernels are of a module that is imported, for NVIDIA's GPUs, by Triton 3.6: that decides `__name__ == "__main__"`,
//! `TYPE_CHECKING` and what asks the driver for its target.
//!
//! A condition may ask for names that another one defines, so that they are gone over until no more is found out. What
//! depends on the host, be it only the name of something in a file that is not there, is left undecided. Only the environment is taken to be
//! empty, of which users of what a condition gives are warned.

use std::sync::Arc;

use indexmap::IndexMap;
use ruff_python_ast::{CmpOp, Expr, StmtIf};
use ruff_text_size::{Ranged, TextSize};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::imported::Imported;
use super::links::File;
use super::lower::Lower;
use super::module::Index;
use super::signature::Constant;
use crate::ir::builder::TileBuilder;
use crate::settings::Target;

/// Most times that the conditions of a file are gone over.
const ROUNDS: usize = 8;

/// Conditions that are known, by their start.
pub(crate) type Decided = Arc<FxHashMap<TextSize, Decision>>;

/// What is known of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Decision {
    holds: bool,
    /// If no variable of the environment is set.
    pub(crate) environment: bool,
}

/// The definitions of a file, given what the caller gives to its names, and other files. What changes in it is known too.
pub(crate) fn index_of<'m>(
    file: &'m File,
    imported: &[Imported<'m>],
    constants: &IndexMap<String, Constant>,
    target: Target,
) -> Index<'m> {
    let mut decided = FxHashMap::default();
    for _ in 0..ROUNDS {
        let mut index = Index::new(file, Arc::new(decided.clone()));
        index.find_changes();
        let mut tests = Vec::new();
        index.tests(&mut tests);
        tests.retain(|test| !decided.contains_key(&test.start()));
        let known = decided.len();
        for test in tests {
            if let Some(decision) = decide(&index, imported, test, constants, target) {
                decided.insert(test.start(), decision);
            }
        }
        if decided.len() == known {
            return index;
        }
    }
    let mut index = Index::new(file, Arc::new(decided));
    index.find_changes();
    index
}

/// What a condition finds that asks if the file is run: it is imported.
fn is_main(test: &Expr) -> Option<bool> {
    let e = test.as_compare_expr()?;
    let is_name = |e: &Expr| {
        e.as_name_expr()
            .is_some_and(|name| name.id.as_str() == "__name__")
    };
    let is_text = |e: &Expr| {
        e.as_string_literal_expr()
            .is_some_and(|e| e.value.to_str() == "__main__")
    };
    let ([op @ (CmpOp::Eq | CmpOp::NotEq)], [right]) = (&*e.ops, &*e.comparators) else {
        return None;
    };
    let (a, b) = (&*e.left, right);
    let asks = is_name(a) && is_text(b) || is_text(a) && is_name(b);
    asks.then_some(*op == CmpOp::NotEq)
}

/// Whether a condition holds, if that is certain.
fn decide<'m>(
    index: &Index<'m>,
    imported: &[Imported<'m>],
    test: &'m Expr,
    constants: &IndexMap<String, Constant>,
    target: Target,
) -> Option<Decision> {
    let decision = |holds, environment| Decision { holds, environment };
    if let Some(holds) = is_main(test) {
        return Some(decision(holds, false));
    }
    let mut lower = Lower::new(
        index,
        constants,
        target,
        TileBuilder::new("", 1),
        [0].into(),
    );
    lower.imported = imported;
    lower.enter(test.range());
    lower
        .frames
        .push(super::lower::Frame::new(index, None, test.range(), true));
    lower.in_condition = true;
    let value = lower.eval(test).ok()?;
    let holds = lower.condition(&value).ok()?.ok()?;
    // A name that is another thing in another branch comes with a warning.
    let is_certain = lower.messages.is_empty() && !lower.asked_host;
    is_certain.then_some(decision(holds, lower.asked_environment))
}

/// The branches of an `if` that may be taken, whether the first of them is for certain, and whether one of them is.
pub(crate) fn branches<'m>(
    s: &'m StmtIf,
    decided: &Decided,
) -> (SmallVec<[&'m [ruff_python_ast::Stmt]; 2]>, bool, bool) {
    let first = (Some(&*s.test), &*s.body);
    let others = s
        .elif_else_clauses
        .iter()
        .map(|clause| (clause.test.as_ref(), &*clause.body));
    let (mut taken, mut certain): (SmallVec<[_; 2]>, bool) = (SmallVec::new(), true);
    for (test, body) in std::iter::once(first).chain(others) {
        let decision = |test: &Expr| Some(decided.get(&test.start())?.holds);
        match test.map(decision) {
            Some(Some(false)) => {}
            Some(Some(true)) | None => {
                taken.push(body);
                return (taken, certain, true);
            }
            Some(None) => {
                taken.push(body);
                certain = false;
            }
        }
    }
    (taken, certain, false)
}
