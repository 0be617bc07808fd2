//! A kernel's parameters: what the caller gives becomes parameters of the IR, constants, or tuples of both.

use indexmap::IndexMap;
use ruff_python_ast::visitor::{Visitor, walk_expr};
use ruff_python_ast::{Expr, ExprContext, ModModule, Stmt, StmtFunctionDef};
use ruff_text_size::Ranged;

use super::diagnostic::{Code, Diagnostic};
use super::kernel::{Specialization, count};
use super::loops::assigned_names;
use super::lower::{Local, Lower, Res, with_stack};
use super::module::{Definition, Index, Param, params};
use super::names::{closest, closest_of_library, did_you_mean};
use super::signature::{ArgSpec, Constant, TupleArg};
use super::types::{DType, Ty};
use super::value::{Tensor, Value};
use crate::ir::types::TileType;
use crate::linear_layout::shape::Shape;

/// Names that expressions read.
#[derive(Default)]
struct Reads<'m>(Vec<&'m str>);

impl<'m> Visitor<'m> for Reads<'m> {
    fn visit_expr(&mut self, expr: &'m Expr) {
        match expr {
            Expr::Name(name) if name.ctx == ExprContext::Load => self.0.push(name.id.as_str()),
            expr => with_stack(|| walk_expr(self, expr)),
        }
    }
}

/// Names that functions of the file read and that are theirs neither as parameters nor as local names.
fn free_names<'m>(body: &'m [Stmt], names: &mut Vec<&'m str>) {
    for stmt in body {
        match stmt {
            Stmt::FunctionDef(f) => {
                let mut reads = Reads::default();
                with_stack(|| reads.visit_body(&f.body));
                let mut own: Vec<&str> = params(f).map(|p| p.name).collect();
                assigned_names(&f.body, &mut own);
                names.extend(reads.0.into_iter().filter(|name| !own.contains(name)));
                free_names(&f.body, names);
            }
            Stmt::ClassDef(c) => free_names(&c.body, names),
            Stmt::If(s) => {
                free_names(&s.body, names);
                for clause in &s.elif_else_clauses {
                    free_names(&clause.body, names);
                }
            }
            Stmt::Try(s) => free_names(&s.body, names),
            _ => {}
        }
    }
}

/// What to do where an option of a launch is given as a constant.
pub(crate) const OPTIONS: &str =
    "it is an option and no constant: -w, --num-stages, --num-ctas and --maxnreg give those";

/// An error for a constant that the caller gives and that nothing in the file asks for.
pub(crate) fn unknown_constant(
    tree: &ModModule,
    index: &Index<'_>,
    f: &StmtFunctionDef,
    spec: &Specialization,
) -> Option<Diagnostic> {
    if f.parameters.kwarg.is_some() {
        return None;
    }
    let all: Vec<Param<'_>> = params(f).collect();
    let is_known =
        |name: &str| all.iter().any(|p| p.name == name) || index.names.contains_key(name);
    let mut unknown = spec.constants.iter().map(|(name, _)| name);
    let name = unknown.find(|name| !is_known(name))?;
    let mut free = Vec::new();
    free_names(&tree.body, &mut free);
    let mut unknown = spec.constants.iter().map(|(name, _)| name);
    let name = match free.contains(&name.as_str()) {
        false => name,
        true => unknown.find(|name| !is_known(name) && !free.contains(&name.as_str()))?,
    };
    let message = format!("nothing in the file is called `{name}`");
    let d = Diagnostic::error(Code::Argument, f.name.range(), message);
    if matches!(
        name.as_str(),
        "num_warps" | "num_stages" | "num_ctas" | "maxnreg"
    ) {
        return Some(d.help(OPTIONS));
    }
    let of_module = index.names.iter().filter_map(|(name, definition)| {
        let is_value = matches!(
            definition,
            Definition::Value(..) | Definition::Default(_) | Definition::Changed(_)
        );
        is_value.then_some(*name)
    });
    let given: Vec<&str> = all
        .iter()
        .skip(spec.args.len())
        .map(|p| p.name)
        .chain(of_module)
        .collect();
    Some(match closest(name, given.iter().copied()) {
        Some(other) => d.help(did_you_mean(other)),
        None if given.is_empty() => d.help(format!("`{}` has no constants left to give", f.name)),
        None => {
            let shown: Vec<&str> = given.iter().take(20).copied().collect();
            d.help(format!("constants can be given to {}", shown.join(", ")))
        }
    })
}

/// Gives the kernel's parameters their values: parameters of the IR, or constants.
pub(crate) fn bind_parameters<'m>(
    lower: &mut Lower<'m>,
    f: &'m StmtFunctionDef,
    spec: &Specialization,
    folded: &mut Vec<(String, String)>,
) -> Res<()> {
    let all: Vec<Param<'m>> = params(f).collect();
    lower.check_names(f)?;
    if let Some(vararg) = &f.parameters.vararg {
        lower.enter(vararg.range);
        let d = lower.error(Code::Unsupported, "a kernel has no `*args`");
        return Err(d.help("name each parameter").into());
    }
    if spec.args.len() > all.len() {
        let (given, wanted) = (spec.args.len(), all.len());
        let (given, wanted) = (count(given, "argument"), count(wanted, "parameter"));
        let message = format!("{given} for {wanted} of `{}`", f.name);
        return Err(lower.error(Code::Argument, message).into());
    }
    let named = |name: &str| {
        spec.constants
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, c)| c)
    };
    for (i, param) in all.iter().enumerate() {
        lower.enter(param.range);
        let value = match (spec.args.get(i), named(param.name)) {
            (Some(_), Some(_)) => {
                let message = format!("`{}` is given twice: by position and by name", param.name);
                Err(lower.error(Code::Argument, message).into())
            }
            (Some(arg), None) => parameter(lower, param, param.name, arg, folded),
            (None, Some(constant)) => constant_value(lower, constant),
            (None, None) => match param.default {
                Some(default) => lower.default_value(default, lower.index),
                None => {
                    let (given, wanted) = (spec.args.len(), all.len());
                    let message = format!("`{}` has no argument", param.name);
                    let d = lower.error(Code::Argument, message);
                    let help = match given {
                        0 => "there is no signature; `-s \"*fp32, i32, 1024\"` gives the types of parameters and constants".to_owned(),
                        _ => {
                            let next = match param.is_constexpr() {
                                true => "a value behind the others, as in \".., 1024\", or",
                                false => "its type behind the others, as in \".., i32\", or a constant,",
                            };
                            format!(
                                "the signature gives {given} of {wanted} arguments: add {next} {0}=VALUE (for the command -c {0}=VALUE)",
                                param.name
                            )
                        }
                    };
                    Err(d.help(help).into())
                }
            },
        };
        let value = match value {
            Ok(value) => value,
            Err(stop) => {
                lower.report(stop)?;
                Value::Poison
            }
        };
        // What was given as several has told of its constants itself.
        let several = matches!(
            spec.args.get(i),
            Some(ArgSpec::Descriptor(_) | ArgSpec::Tuple(_))
        );
        if !several && !matches!(value, Value::Tensor(_) | Value::Poison) {
            folded.push((param.name.to_owned(), lower.display(&value)));
        }
        let fixed = param.is_constexpr();
        lower
            .frame()
            .locals
            .insert(param.name, Local::Bound { value, fixed });
    }
    if let Some(kwarg) = &f.parameters.kwarg {
        let dict: IndexMap<String, Value<'m>> = spec
            .constants
            .iter()
            .map(|(name, c)| constant_value(lower, c).map(|c| (name.clone(), c)))
            .collect::<Res<_>>()?;
        let value = Value::Dict(dict.into());
        lower.frame().locals.insert(
            kwarg.name.as_str(),
            Local::Bound {
                value,
                fixed: false,
            },
        );
    }
    Ok(())
}

/// A constant of the caller as a value.
pub(crate) fn constant_value<'m>(lower: &mut Lower<'m>, constant: &Constant) -> Res<Value<'m>> {
    match constant {
        Constant::Type(dtype) => Ok(Value::ty(Ty::Num(*dtype))),
        Constant::Function(name) => match lower.index.names.get_key_value(name.as_str()) {
            Some((_, Definition::Function(f))) => Ok(Value::Function(f)),
            // Imported, or another name of one.
            Some((name, &definition)) => match lower.global(name, definition)? {
                found @ (Value::Builtin(_) | Value::Function(_)) => Ok(found),
                // Imports are followed for what kernels name.
                Value::Path(path) => {
                    let message = format!("`{}` is not in this file", path.0);
                    let d = lower.error(Code::Argument, message);
                    let help =
                        format!("call `{name}` in a function of the file, and give that one");
                    Err(d.help(help).into())
                }
                other => {
                    let message = format!("`{name}` is no function but {}", other.describe());
                    Err(lower.error(Code::Argument, message).into())
                }
            },
            _ if name.contains('.') => library_function(lower, name),
            _ => {
                let message = format!("there is no function `{name}` in the file");
                let d = lower.error(Code::Argument, message);
                let names = lower.index.jit_functions().map(|f| f.name.as_str());
                Err(match closest(name, names) {
                    Some(other) => d.help(did_you_mean(other)).into(),
                    None => d.into(),
                })
            }
        },
        other => Ok(other.to_const().map_or(Value::NONE, Value::Const)),
    }
}

/// A function of the library by its path: one that starts with a module that the file imports, or with its usual name.
fn library_function<'m>(lower: &mut Lower<'m>, name: &str) -> Res<Value<'m>> {
    let (module, rest) = name.split_once('.').unwrap_or(("", name));
    let path = match lower.index.names.get(module) {
        Some(Definition::Module(path)) => format!("{path}.{rest}"),
        Some(Definition::Member(outer, member)) => format!("{outer}.{member}.{rest}"),
        _ => match module {
            "tl" => format!("triton.language.{rest}"),
            "libdevice" => format!("triton.language.extra.libdevice.{rest}"),
            _ => name.to_owned(),
        },
    };
    match lower.path(&path)? {
        found @ (Value::Builtin(_) | Value::Function(_)) => Ok(found),
        _ => {
            let d = lower.error(
                Code::Argument,
                format!("the library has no function `{name}`"),
            );
            Err(match closest_of_library(&path) {
                Some(other) => d.help(did_you_mean(other)).into(),
                None => d.into(),
            })
        }
    }
}

/// What a parameter, or an element of one that is a tuple, stands for; `name` is that of the IR's parameter.
fn parameter<'m>(
    lower: &mut Lower<'m>,
    param: &Param<'m>,
    name: &str,
    arg: &ArgSpec,
    folded: &mut Vec<(String, String)>,
) -> Res<Value<'m>> {
    match arg {
        ArgSpec::Constant(constant) => constant_value(lower, constant),
        ArgSpec::Tuple(tuple) => tuple_of(lower, param, name, tuple, folded),
        ArgSpec::Descriptor(_) if param.is_constexpr() => {
            let message = format!("`{name}` is a constexpr and cannot be a descriptor");
            Err(lower.error(Code::Argument, message).into())
        }
        ArgSpec::Descriptor(desc) => super::library::descriptor::from_host(lower, name, desc),
        // For a constant the name of a type is the type itself.
        ArgSpec::Typed {
            ty: Ty::Num(dtype),
            divisible: 1,
        } if param.is_constexpr() => Ok(Value::ty(Ty::Num(*dtype))),
        ArgSpec::Typed { ty, .. } if param.is_constexpr() => {
            let message = format!("`{name}` is a constexpr and cannot be {ty}");
            let d = lower.error(Code::Argument, message);
            Err(d
                .help("give a number, True, False, None, a quoted string or a type")
                .into())
        }
        ArgSpec::Typed { ty, divisible } => {
            let ty = annotated(param, *ty);
            let tile: TileType = lower.tile_type(ty, Shape::SCALAR)?;
            if *divisible > 1 && ty.dtype().is_some_and(|d| !d.is_int() || d == DType::Int1) {
                let message = format!("`{name}` is {ty}, which is a multiple of nothing");
                let d = lower.error(Code::Argument, message);
                return Err(d.help("only integers and pointers are divisible").into());
            }
            let value = if *divisible > 1 {
                lower.b.param_divisible(name, tile, *divisible)
            } else {
                lower.b.param(name, tile)
            };
            Ok(Value::Tensor(Tensor {
                value,
                ty,
                shape: Shape::SCALAR,
            }))
        }
    }
}

/// A tuple, or an object of a class of the file: each element that is no constant is a parameter of its own, called
/// after the place or the field.
fn tuple_of<'m>(
    lower: &mut Lower<'m>,
    param: &Param<'m>,
    name: &str,
    tuple: &TupleArg,
    folded: &mut Vec<(String, String)>,
) -> Res<Value<'m>> {
    // A tuple for a parameter that is annotated with a named tuple is one: launches know no classes.
    let annotation = match param.annotation {
        Some(ruff_python_ast::Expr::Name(class)) if name == param.name => {
            match lower.index.names.get(class.id.as_str()) {
                Some(Definition::Class(found)) => Some(*found).filter(|c| lower.is_named_tuple(c)),
                _ => None,
            }
        }
        _ => None,
    };
    let class = match &tuple.class {
        None => annotation,
        Some(class) => match lower.index.names.get(class.as_str()) {
            Some(Definition::Class(found)) => Some(*found),
            _ => {
                let message = format!("there is no class `{class}` in the file");
                return Err(lower.error(Code::Argument, message).into());
            }
        },
    };
    let fields = class.map_or(Vec::new(), |class| lower.field_names(class));
    let mut items = Vec::with_capacity(tuple.items.len());
    for (i, arg) in tuple.items.iter().enumerate() {
        let own = match fields.get(i) {
            Some(field) => format!("{name}_{field}"),
            None => format!("{name}_{i}"),
        };
        let item = parameter(lower, param, &own, arg, folded)?;
        if matches!(arg, ArgSpec::Constant(_))
            || param.is_constexpr() && !matches!(arg, ArgSpec::Tuple(_))
        {
            folded.push((own, lower.display(&item)));
        }
        items.push(item);
    }
    match class {
        None => Ok(Value::tuple(items)),
        Some(class) => {
            let given = items.into_iter().map(|item| lower.argument(item)).collect();
            lower.construct(class, given)
        }
    }
}

/// The type of a number that an annotation states to a caller: that of the language, or `int`, `float` and their kin, as
/// Triton reads them.
pub(crate) fn pinned(annotation: &ruff_python_ast::Expr) -> Option<DType> {
    use ruff_python_ast::Expr;
    let of_name = |name: &str| match name {
        "bool" => Some(DType::Int1),
        "int" => Some(DType::Int32),
        "half" => Some(DType::Float16),
        "float" => Some(DType::Float32),
        "double" => Some(DType::Float64),
        name => DType::from_name(name),
    };
    match annotation {
        Expr::Attribute(a) => DType::from_name(a.attr.as_str()),
        Expr::Name(name) => of_name(name.id.as_str()),
        Expr::StringLiteral(s) => {
            let name = s.value.to_str().trim();
            let name = name.strip_prefix("tl.").unwrap_or(name);
            of_name(name).or_else(|| DType::from_short_name(name))
        }
        _ => None,
    }
}

/// An annotation like `tl.int64` pins the type of a number.
fn annotated(param: &Param<'_>, ty: Ty) -> Ty {
    let pinned = param.annotation.and_then(|annotation| match annotation {
        ruff_python_ast::Expr::Attribute(a) => DType::from_name(a.attr.as_str()),
        ruff_python_ast::Expr::StringLiteral(s) => DType::from_short_name(s.value.to_str()),
        _ => None,
    });
    match (pinned, ty) {
        (Some(dtype), Ty::Num(given)) if dtype.kind() == given.kind() => Ty::Num(dtype),
        _ => ty,
    }
}
