//! Programs in the Triton language: arguments and constants in the words of the front end.

use crate::front;
use crate::settings::Target;

use super::argument::{Class, DIVISIBLE, ONE};
use super::constant::Constant;
use super::error::RuntimeError;
use super::kernel::KernelOptions;
use super::program::{Made, Param};

/// The kernel for arguments of these classes.
pub(super) fn make(
    module: &front::Module,
    kernel: &str,
    options: &KernelOptions,
    target: Target,
    params: &[Param],
    classes: &[(usize, Class)],
) -> Result<Made, RuntimeError> {
    let setup = |problem: String| RuntimeError::Setup {
        kernel: kernel.to_owned(),
        problem,
    };
    // By position as far as there are arguments; what follows them is given by name or has a default.
    let positional = classes.last().map_or(0, |&(param, _)| param + 1);
    let mut args = Vec::with_capacity(positional);
    let mut named = Vec::new();
    for (index, param) in params.iter().enumerate().take(positional) {
        let class = classes.iter().find(|&&(at, _)| at == index);
        let constant = options.constant(&param.name);
        args.push(match (class, constant) {
            (Some(&(_, class)), _) => to_arg(class).ok_or_else(|| RuntimeError::Argument {
                kernel: kernel.to_owned(),
                name: param.name.clone(),
                problem: format!("{class} is not a type of the language"),
            })?,
            (None, Some(constant)) => front::Arg::Constant(constant.to_front()),
            (None, None) => {
                let name = &param.name;
                return Err(setup(format!(
                    "the constant `{name}` has no value; give it by name"
                )));
            }
        });
    }
    for (name, constant) in &options.constants {
        let taken = params.iter().take(positional).any(|p| p.name == *name);
        if !taken {
            named.push((name.clone(), constant.to_front()));
        }
    }
    let spec = front::Specialization {
        constants: named,
        num_warps: options.num_warps.unwrap_or(4),
        num_stages: options.num_stages,
        debug: options.debug,
        ..front::Specialization::new(args, target)
    };
    let lowered = module.lower(Some(kernel), &spec);
    let lowered = lowered.map_err(|errors| RuntimeError::Source(errors.to_string()))?;
    Ok(Made {
        func: lowered.func,
        constants: lowered.constants,
    })
}

/// An argument of this class in the words of the front end.
fn to_arg(class: Class) -> Option<front::Arg> {
    use front::types::Ty;
    let Some(dtype) = class.dtype() else {
        return Some(front::Arg::Constant(front::Constant::None));
    };
    if class.0 & ONE != 0 {
        return Some(front::Arg::Constant(front::Constant::Int(1)));
    }
    let to = front::types::DType::from_short_name(&dtype.to_string())?;
    let ty = if class.is_pointer() {
        Ty::ptr(to)
    } else {
        Ty::Num(to)
    };
    let divisible = if class.0 & DIVISIBLE != 0 { 16 } else { 1 };
    Some(front::Arg::Typed { ty, divisible })
}

impl Constant {
    fn to_front(&self) -> front::Constant {
        match self {
            Constant::None => front::Constant::None,
            Constant::Bool(b) => front::Constant::Bool(*b),
            Constant::Int(n) => front::Constant::Int((*n).into()),
            Constant::Float(x) => front::Constant::Float(*x),
            Constant::Text(text) => front::Constant::Str(text.clone()),
            Constant::Type(dtype) => {
                let found = front::types::DType::from_short_name(&dtype.to_string());
                found.map_or(front::Constant::None, front::Constant::Type)
            }
            Constant::Function(name) => front::Constant::Function(name.clone()),
        }
    }
}
