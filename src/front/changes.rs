//! Values of a scope that change after they are made: something is put into a list, an attribute is set, a function of the
//! host gives a name another value.
//!
//! Nothing is executed. A value may be known by several names; names between which it may have been handed on are a *family*.
//! Where statements of the scope itself change a value that has one name, and say how, they are steps of the name's definition.
//! Else what the value is when a kernel is launched is not known, and kernels that read a name of the family are refused.
//!
//! [`walk`] goes over the statements, [`held`] says which names a value may be known by. Of a function the whole counts: what
//! it is handed, keeps under names of its own and returns is of one family, that of its name.

mod held;
mod scopes;
mod walk;

pub(crate) use scopes::bound_names;

use ruff_python_ast::{Expr, Stmt};
use ruff_text_size::{TextRange, TextSize};
use rustc_hash::FxHashMap;

use super::module::{Definition, Index};

/// Most times that a scope is gone over until it is known how deep its values can change.
const PASSES: usize = 8;

/// What changes in a scope.
#[derive(Clone, Debug, Default)]
pub(crate) struct Changes<'m> {
    /// Names of which nobody but the host knows what they are at a launch, and what changes them.
    unknown: FxHashMap<&'m str, TextRange>,
    /// Statements that change the value of a name, in the order of the text, each with its end.
    steps: FxHashMap<&'m str, Vec<(TextSize, &'m Stmt)>>,
    /// Attributes of classes that are given other values, and by what.
    attributes: FxHashMap<(&'m str, &'m str), TextRange>,
    /// The same as `unknown` for attributes of classes.
    in_place: FxHashMap<(&'m str, &'m str), TextRange>,
    /// There may be names of which the text says nothing.
    pub(crate) open: bool,
}

impl<'m> Changes<'m> {
    /// What changes in a scope that consists of these statements, and stands in others: none if it is the top level of a file.
    pub(crate) fn new(index: &Index<'m>, around: &[&Index<'m>], body: &'m [Stmt]) -> Changes<'m> {
        let mut walk = walk::Walk::new(index, around);
        for _ in 0..PASSES {
            if !walk.pass(body) {
                return walk.finish();
            }
        }
        walk.levels.assume_deepest();
        walk.pass(body);
        walk.finish()
    }

    /// What changes a name so that its value is not known.
    pub(crate) fn unknown(&self, name: &str) -> Option<TextRange> {
        self.unknown.get(name).copied()
    }

    /// What changes an attribute of a class.
    pub(crate) fn attribute(&self, class: &str, name: &str) -> Option<TextRange> {
        // A class or a name that only the host knows may be any.
        let keys = [(class, name), (class, ""), ("", name), ("", "")];
        let set = keys.iter().find_map(|key| self.attributes.get(key));
        set.copied().or_else(|| self.in_place(class, name))
    }

    /// What changes the list or the like that is an attribute of a class, while its body runs or later.
    pub(crate) fn in_place(&self, class: &str, name: &str) -> Option<TextRange> {
        self.in_place.get(&(class, name)).copied()
    }

    /// What sets the value within a `constexpr`, of which there is no telling which it is.
    pub(crate) fn of_constexprs(&self) -> Option<TextRange> {
        self.attribute("", "value")
    }

    /// The statements that change the value of a name, each with its end.
    pub(crate) fn steps(&self, name: &str) -> &[(TextSize, &'m Stmt)] {
        self.steps.get(name).map_or(&[], |steps| steps)
    }

    /// The last statement that changes the value of a name, of those that end before a place.
    pub(crate) fn step(
        &self,
        name: &str,
        before: Option<TextSize>,
    ) -> Option<(TextSize, &'m Stmt)> {
        let steps = self.steps(name);
        let end = before.map_or(steps.len(), |place| {
            steps.partition_point(|(at, _)| *at <= place)
        });
        steps.get(end.checked_sub(1)?).copied()
    }
}

/// Names between which values may have been handed on, and what changes.
#[derive(Default)]
struct Families<'m> {
    /// The name that stands for the family of a name, by way of others.
    parents: FxHashMap<&'m str, &'m str>,
    /// Names whose value is changed, by what, and whether that is a step of the name's definition.
    events: Vec<(&'m str, TextRange, bool)>,
}

impl<'m> Families<'m> {
    fn find(&mut self, name: &'m str) -> &'m str {
        let mut at = name;
        while let Some(parent) = self.parents.get(at).copied().filter(|parent| *parent != at) {
            let above = self.parents.get(parent).copied().unwrap_or(parent);
            self.parents.insert(at, above);
            at = above;
        }
        at
    }

    fn unite(&mut self, a: &'m str, b: &'m str) {
        let (a_root, b_root) = (self.find(a), self.find(b));
        for (name, root) in [(a, a_root), (b, b_root)] {
            self.parents.entry(name).or_insert(root);
        }
        self.parents.insert(a_root, b_root);
    }

    /// The families in which something changes that no step says, each with its members and what changes it.
    fn unknown(&mut self) -> Vec<(Vec<&'m str>, TextRange)> {
        let mut members: FxHashMap<&'m str, Vec<&'m str>> = FxHashMap::default();
        let mut named: Vec<&'m str> = self.parents.keys().copied().collect();
        named.extend(self.events.iter().map(|(name, ..)| *name));
        named.sort_unstable();
        named.dedup();
        for name in named {
            members.entry(self.find(name)).or_default().push(name);
        }
        let mut found: FxHashMap<&'m str, (TextRange, bool)> = FxHashMap::default();
        for (name, at, is_step) in self.events.clone() {
            let first = found.entry(self.find(name)).or_insert((at, is_step));
            // What is no step is the better reason.
            if first.1 && !is_step {
                *first = (at, is_step);
            }
        }
        let mut unknown = Vec::new();
        for (root, (at, is_step)) in found {
            let members = members.remove(root).unwrap_or_default();
            if !is_step || members.len() > 1 {
                unknown.push((members, at));
            }
        }
        unknown
    }
}

/// Whether a value of a definition can change, or another be put in its place.
pub(crate) fn is_value(definition: Definition<'_>) -> bool {
    matches!(
        definition,
        Definition::Value(..)
            | Definition::Default(_)
            | Definition::Changed(_)
            | Definition::Ways(_)
            | Definition::Before(_)
            | Definition::Unknown(_)
    )
}

/// The name whose element a target is, if it is no more than that: `name[a][b]`.
pub(crate) fn root_of_elements(target: &Expr) -> Option<&ruff_python_ast::ExprName> {
    let mut at = target;
    while let Expr::Subscript(e) = at {
        at = &e.value;
    }
    at.as_name_expr()
}

/// The name whose value a statement changes in a way that can be followed, and where it stands.
pub(crate) fn step_of(stmt: &Stmt) -> Option<&ruff_python_ast::ExprName> {
    let element = |target: &'_ Expr| target.is_subscript_expr();
    match stmt {
        Stmt::Assign(s) => match &*s.targets {
            [target] if element(target) => root_of_elements(target),
            _ => None,
        },
        Stmt::AugAssign(s) if element(&s.target) => root_of_elements(&s.target),
        Stmt::Delete(s) => match &*s.targets {
            [target] if element(target) => root_of_elements(target),
            _ => None,
        },
        Stmt::Expr(s) => {
            let call = s.value.as_call_expr()?;
            let method = call.func.as_attribute_expr()?;
            let name = method.value.as_name_expr()?;
            super::step::METHODS
                .contains(&method.attr.as_str())
                .then_some(name)
        }
        _ => None,
    }
}
