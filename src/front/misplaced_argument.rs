//! What a kernel takes its parameters for, by its text: for an error whose cause is an argument in another's place.
//!
//! A number where a pointer is meant becomes an offset of others, and what is wrong shows lines later, at a comparison or a
//! store. So after an error of types the text is read once more: a parameter that an address is made of, and no other
//! that is a pointer, was given the wrong argument.

use indexmap::{IndexMap, IndexSet};
use ruff_python_ast::visitor::{Visitor, walk_expr, walk_stmt};
use ruff_python_ast::{Expr, ExprCall, Operator, Stmt, StmtFunctionDef};
use ruff_text_size::TextRange;

use super::diagnostic::{Code, Diagnostic, Severity};
use super::kernel::Specialization;
use super::lower::with_stack;
use super::module::{last_name, params};
use super::signature::{ArgSpec, Constant};

/// Functions whose first argument is an address, named `pointer`.
const ACCESSES: &[&str] = &[
    "load",
    "store",
    "atomic_add",
    "atomic_and",
    "atomic_cas",
    "atomic_max",
    "atomic_min",
    "atomic_or",
    "atomic_xchg",
    "atomic_xor",
];

/// Functions and methods that give the address they take.
const SAME: &[&str] = &[
    "advance",
    "broadcast_to",
    "cast",
    "expand_dims",
    "max_constancy",
    "max_contiguous",
    "multiple_of",
    "reshape",
    "to",
];

/// What is assigned to local names, and the addresses of a kernel.
#[derive(Default)]
struct Uses<'m> {
    assigned: IndexMap<&'m str, Vec<&'m Expr>>,
    addresses: Vec<&'m Expr>,
}

impl<'m> Visitor<'m> for Uses<'m> {
    fn visit_stmt(&mut self, stmt: &'m Stmt) {
        if let Stmt::Assign(assign) = stmt {
            for name in assign.targets.iter().filter_map(Expr::as_name_expr) {
                let values = self.assigned.entry(name.id.as_str()).or_default();
                values.push(&assign.value);
            }
        }
        walk_stmt(self, stmt);
    }

    fn visit_expr(&mut self, expr: &'m Expr) {
        if let Expr::Call(call) = expr
            && last_name(&call.func).is_some_and(|name| ACCESSES.contains(&name))
            && let Some(address) = call.arguments.find_argument_value("pointer", 0)
        {
            self.addresses.push(address);
        }
        with_stack(|| walk_expr(self, expr));
    }
}

impl<'m> Uses<'m> {
    /// The names that an address is a sum of, from the left.
    fn terms(&self, address: &'m Expr, found: &mut IndexSet<&'m str>) {
        with_stack(|| match address {
            Expr::Name(name) if found.insert(name.id.as_str()) => {
                for value in self.assigned.get(name.id.as_str()).into_iter().flatten() {
                    self.terms(value, found);
                }
            }
            Expr::BinOp(e) if matches!(e.op, Operator::Add | Operator::Sub) => {
                self.terms(&e.left, found);
                self.terms(&e.right, found);
            }
            Expr::Subscript(e) => self.terms(&e.value, found),
            Expr::If(e) => {
                self.terms(&e.body, found);
                self.terms(&e.orelse, found);
            }
            Expr::Call(ExprCall {
                func, arguments, ..
            }) if last_name(func).is_some_and(|name| SAME.contains(&name)) => {
                if let Expr::Attribute(method) = &**func {
                    self.terms(&method.value, found);
                }
                if let Some(first) = arguments.args.first() {
                    self.terms(first, found);
                }
            }
            _ => {}
        });
    }
}

/// A message about the first argument that is no pointer where the kernel takes one, if there was an error of types.
pub(crate) fn misplaced(
    f: &StmtFunctionDef,
    spec: &Specialization,
    messages: &[Diagnostic],
) -> Option<Diagnostic> {
    let is_of_type = |d: &Diagnostic| d.severity == Severity::Error && d.code == Code::Type;
    if !messages.iter().any(is_of_type) {
        return None;
    }
    let mut uses = Uses::default();
    uses.visit_body(&f.body);
    // Those that an argument of one type, or a number, is given for.
    let given: IndexMap<&str, (TextRange, &ArgSpec)> = params(f)
        .zip(&spec.args)
        .filter(|(param, _)| !param.is_constexpr())
        .map(|(param, arg)| (param.name, (param.range, arg)))
        .collect();
    let mut wrong = None;
    let mut in_addresses = IndexSet::new();
    for address in &uses.addresses {
        let mut terms = IndexSet::new();
        uses.terms(address, &mut terms);
        let of_params: Vec<(&str, TextRange, &ArgSpec)> = terms
            .iter()
            .filter_map(|name| given.get(name).map(|&(at, arg)| (*name, at, arg)))
            .collect();
        // A name may be assigned anew; what else it may be is not known here.
        if let Some(&(name, at, arg)) = of_params.first()
            && of_params.iter().all(|(.., arg)| number(arg).is_some())
            && let Some(ty) = number(arg)
        {
            wrong.get_or_insert((name, at, ty));
        }
        in_addresses.extend(of_params.iter().map(|(name, ..)| *name));
    }
    let (name, at, ty) = wrong?;
    let exchanged = given.iter().find_map(|(other, (_, arg))| match arg {
        ArgSpec::Typed { ty, .. } if ty.is_ptr() && !in_addresses.contains(other) => {
            Some((other, ty))
        }
        _ => None,
    });
    let message = format!("`{name}` is given {ty}, and the kernel takes a pointer for it");
    let d = Diagnostic::error(Code::Argument, at, message);
    Some(d.help(match exchanged {
        Some((other, ty)) => {
            format!("`{other}` is given {ty} and makes no address: are the two exchanged?")
        }
        None => format!("give a pointer for `{name}`"),
    }))
}

/// What an argument is that is certainly no pointer.
fn number(arg: &ArgSpec) -> Option<String> {
    match arg {
        ArgSpec::Typed { ty, .. } if !ty.is_ptr() => Some(ty.to_string()),
        ArgSpec::Constant(Constant::Int(n)) => Some(format!("the number {n}")),
        ArgSpec::Constant(Constant::Float(x)) => Some(format!("the number {x}")),
        _ => None,
    }
}
