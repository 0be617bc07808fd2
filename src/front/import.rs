//! Statements of the module at which Python gives up importing it.

use std::cell::Cell;
use std::rc::Rc;

use indexmap::IndexMap;
use ruff_python_ast::{Expr, Stmt};
use ruff_text_size::Ranged;

use super::conditions::branches;
use super::diagnostic::{Diagnostic, Severity};
use super::lower::{Frame, Lower, Stop, with_stack};
use super::module::Index;
use super::signature::Constant;
use crate::ir::builder::TileBuilder;
use crate::settings::Target;

/// What a module is read with.
pub(crate) struct Import<'m> {
    pub(crate) index: &'m Index<'m>,
    /// Constants that the caller gives to its names.
    pub(crate) constants: &'m IndexMap<String, Constant>,
    pub(crate) target: Target,
    pub(crate) line_starts: Rc<[u32]>,
    /// Steps that statements have taken: all of them have the budget of one.
    pub(crate) steps: Cell<u64>,
}

impl<'m> Import<'m> {
    /// Why Python would not import a module of these statements, if it is certain that it does not: of those that run for
    /// certain the first that raises an exception. Statements that nothing here follows are taken to raise none.
    pub(crate) fn refusal(&self, body: &'m [Stmt]) -> Option<Diagnostic> {
        body.iter().find_map(|stmt| match stmt {
            Stmt::If(s) => {
                let (taken, certain, _) = branches(s, &self.index.decided);
                let mut taken = taken.iter().filter(|_| certain);
                taken.find_map(|body| with_stack(|| self.refusal(body)))
            }
            Stmt::Expr(_)
            | Stmt::Assign(_)
            | Stmt::AnnAssign(_)
            | Stmt::AugAssign(_)
            | Stmt::Delete(_)
            | Stmt::For(_)
            | Stmt::Assert(_)
            | Stmt::Raise(_) => self.run(stmt),
            _ => None,
        })
    }

    fn run(&self, stmt: &'m Stmt) -> Option<Diagnostic> {
        let builder = TileBuilder::new("", 1);
        let lines = self.line_starts.clone();
        let mut lower = Lower::new(self.index, self.constants, self.target, builder, lines);
        lower.steps = self.steps.get();
        lower.enter(stmt.range());
        let frame = Frame::new(self.index, None, stmt.range(), true);
        lower.frames.push(frame);
        let result = match stmt {
            // Of a name that no statement of this kind changes.
            Stmt::Delete(s) if s.targets.iter().any(Expr::is_name_expr) => Ok(()),
            stmt => lower.body(std::slice::from_ref(stmt), false).map(|_| ()),
        };
        self.steps.set(lower.steps);
        if !lower.raised {
            return None;
        }
        if let Err(Stop::Error(d)) = result {
            lower.add(*d);
        }
        let errors = lower.messages.into_iter();
        let mut errors = errors.filter(|d| d.severity == Severity::Error);
        let error = errors.next()?;
        Some(match error.help {
            Some(_) => error,
            None => error.help("Python does not import the file; mend it"),
        })
    }
}
