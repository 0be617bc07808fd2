//! What a function's text says of it: its decorators and its parameters.

use ruff_python_ast::{Expr, StmtFunctionDef};
use ruff_text_size::TextRange;

/// How a function is decorated.
#[derive(Clone, Debug, Default)]
pub(crate) struct Decoration<'m> {
    /// `jit` or one of its kin.
    pub(crate) jit: bool,
    /// `constexpr_function` or `constexpr`: Python to be run at compile time.
    pub(crate) host: bool,
    /// Keywords of `jit`.
    pub(crate) options: Vec<(&'m str, &'m Expr)>,
    /// Calls of `autotune` and `heuristics`.
    pub(crate) tuning: Vec<&'m ruff_python_ast::ExprCall>,
}

/// The last component of a dotted name, called or not.
pub(crate) fn last_name(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Name(name) => Some(name.id.as_str()),
        Expr::Attribute(a) => Some(a.attr.as_str()),
        Expr::Call(call) => last_name(&call.func),
        _ => None,
    }
}

/// What the decorators of a function say.
pub(crate) fn decoration(f: &StmtFunctionDef) -> Decoration<'_> {
    let mut found = Decoration::default();
    for decorator in &f.decorator_list {
        let call = decorator.expression.as_call_expr();
        match last_name(&decorator.expression) {
            Some("jit") => {
                found.jit = true;
                let keywords = call.map_or(&[][..], |c| &c.arguments.keywords);
                found.options = keywords
                    .iter()
                    .filter_map(|k| k.arg.as_ref().map(|name| (name.as_str(), &k.value)))
                    .collect();
            }
            Some("constexpr_function" | "constexpr") => found.host = true,
            Some("autotune" | "heuristics") => found.tuning.extend(call),
            _ => {}
        }
    }
    found
}

/// A parameter of a function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Param<'m> {
    pub(crate) name: &'m str,
    pub(crate) range: TextRange,
    pub(crate) annotation: Option<&'m Expr>,
    pub(crate) default: Option<&'m Expr>,
    /// Whether it may be given by position.
    pub(crate) positional: bool,
}

impl Param<'_> {
    /// Whether it is annotated `constexpr`, as a name or as a string.
    pub(crate) fn is_constexpr(&self) -> bool {
        self.annotation.is_some_and(is_constexpr)
    }
}

/// Whether an annotation says `constexpr`.
pub(crate) fn is_constexpr(annotation: &Expr) -> bool {
    match annotation {
        Expr::StringLiteral(s) => s.value.to_str().rsplit('.').next() == Some("constexpr"),
        annotation => last_name(annotation) == Some("constexpr"),
    }
}

/// The parameters of a function in order, `*args` and `**META` left out.
pub(crate) fn params(f: &StmtFunctionDef) -> impl Iterator<Item = Param<'_>> {
    let p = &f.parameters;
    let positional = p.posonlyargs.iter().chain(&p.args).map(|p| (p, true));
    positional
        .chain(p.kwonlyargs.iter().map(|p| (p, false)))
        .map(|(p, positional)| Param {
            name: p.parameter.name.as_str(),
            range: p.parameter.range,
            annotation: p.parameter.annotation.as_deref(),
            default: p.default.as_deref(),
            positional,
        })
}
