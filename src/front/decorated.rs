//! Functions that calls decorate behind their text: `f = triton.jit(f)`, `f = triton.heuristics({..})(f)`, and the same under
//! another name, `tuned = triton.autotune(configs=..)(f)`. To Python decorators are such calls, so these become decorators.

use ruff_python_ast::{
    Arguments, Decorator, ExceptHandler, Expr, ExprCall, ModModule, Stmt, StmtFunctionDef, Suite,
};
use ruff_text_size::Ranged;

use super::changes::bound_names;
use super::module::{decoration, last_name};

/// Gives the functions of a file the decorators that later statements of the same block call.
pub(crate) fn decorate(tree: &mut ModModule) {
    decorate_in(&mut tree.body);
}

fn decorate_in(body: &mut Suite) {
    let mut at = 0;
    while at < body.len() {
        inner(&mut body[at]).into_iter().for_each(decorate_in);
        match decorated(body, at) {
            // The function's own name: it is decorated where it stands.
            Some((of, function))
                if body[of].as_function_def_stmt().map(|f| &f.name.id)
                    == Some(&function.name.id) =>
            {
                body[of] = Stmt::FunctionDef(function);
                body.remove(at);
            }
            Some((_, function)) => {
                body[at] = Stmt::FunctionDef(function);
                at += 1;
            }
            None => at += 1,
        }
    }
}

/// The blocks of a statement.
fn inner(stmt: &mut Stmt) -> Vec<&mut Suite> {
    match stmt {
        Stmt::FunctionDef(s) => vec![&mut s.body],
        Stmt::With(s) => vec![&mut s.body],
        Stmt::If(s) => {
            let clauses = s.elif_else_clauses.iter_mut();
            std::iter::once(&mut s.body)
                .chain(clauses.map(|clause| &mut clause.body))
                .collect()
        }
        Stmt::Try(s) => {
            let handlers = s.handlers.iter_mut().map(|handler| match handler {
                ExceptHandler::ExceptHandler(handler) => &mut handler.body,
            });
            let parts = [&mut s.body, &mut s.orelse, &mut s.finalbody];
            parts.into_iter().chain(handlers).collect()
        }
        _ => Vec::new(),
    }
}

/// What a statement makes of a function before it in its block by calling decorators, and where that stands; none if it is another
/// statement, or what comes of it is no kernel.
fn decorated(body: &[Stmt], at: usize) -> Option<(usize, StmtFunctionDef)> {
    let assign = body[at].as_assign_stmt()?;
    let [Expr::Name(target)] = &assign.targets[..] else {
        return None;
    };
    let mut decorators = Vec::new();
    let name = decorators_of(&assign.value, &mut decorators)?;
    let is_bound = |stmt: &Stmt| bound_names(std::slice::from_ref(stmt)).contains(&name);
    let of = body[..at].iter().rposition(is_bound)?;
    let mut function = body[of].as_function_def_stmt()?.clone();
    decorators.extend(std::mem::take(&mut function.decorator_list));
    function.decorator_list = decorators.into();
    if target.id != function.name.id {
        function.name.id = target.id.clone();
        function.name.range = target.range;
        function.range = assign.range;
    }
    decoration(&function).jit.then_some((of, function))
}

/// The name that calls of decorators are given in the end; the decorators, the outermost first.
fn decorators_of<'e>(expr: &'e Expr, decorators: &mut Vec<Decorator>) -> Option<&'e str> {
    let call = match expr {
        Expr::Name(name) if !decorators.is_empty() => return Some(name.id.as_str()),
        Expr::Call(call) => call,
        _ => return None,
    };
    let [argument] = &call.arguments.args[..] else {
        return None;
    };
    let expression = match last_name(&call.func)? {
        "jit" | "autotune" | "heuristics"
            if call.func.is_call_expr() && call.arguments.keywords.is_empty() =>
        {
            (*call.func).clone()
        }
        // `jit(f, noinline=True)`.
        "jit" if !call.func.is_call_expr() => Expr::Call(ExprCall {
            arguments: Arguments {
                args: Box::default(),
                ..call.arguments.clone()
            },
            ..call.clone()
        }),
        _ => return None,
    };
    decorators.push(Decorator {
        range: expression.range(),
        node_index: Default::default(),
        expression,
    });
    decorators_of(argument, decorators)
}
