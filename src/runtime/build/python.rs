//! Programs in the Triton language: arguments and constants in the words of the front end.

use crate::front;
use crate::settings::Target;

use crate::runtime::api::argument::Arg;
use crate::runtime::api::constant::Constant;
use crate::runtime::api::diagnostic::SourceError;
use crate::runtime::api::dtype::DType;
use crate::runtime::api::error::RuntimeError;
use crate::runtime::api::kernel_options::KernelOptions;
use crate::runtime::api::program::{LoweredProgram, Param};
use crate::runtime::specialize::arg_tree::ArgTree;
use crate::runtime::specialize::class::Class;

/// The kernel for arguments of these classes.
pub(in crate::runtime) fn make(
    module: &front::Module,
    kernel: &str,
    options: &KernelOptions,
    target: Target,
    params: &[Param],
    given: &[(usize, ArgTree)],
) -> Result<LoweredProgram, RuntimeError> {
    let setup = |problem: String| RuntimeError::Setup {
        kernel: kernel.to_owned(),
        problem,
    };
    // By position as far as there are arguments; what follows them is given by name or has a default.
    let positional = given.last().map_or(0, |&(param, _)| param + 1);
    let mut args = Vec::with_capacity(positional);
    let mut named = Vec::new();
    for (index, param) in params.iter().enumerate().take(positional) {
        let given = given.iter().find(|&&(at, _)| at == index);
        let constant = options.constant(&param.name);
        args.push(match (given, constant) {
            (Some((_, given)), _) => to_arg_tree(given).ok_or_else(|| RuntimeError::Argument {
                kernel: kernel.to_owned(),
                name: param.name.clone(),
                problem: format!("{given} is nothing that the language takes here"),
            })?,
            (None, Some(constant)) => front::ArgSpec::Constant(constant.to_front()),
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
        num_warps: options.num_warps.unwrap_or(front::DEFAULT_WARPS),
        num_ctas: options.num_ctas,
        num_stages: options.num_stages,
        debug: options.debug,
        ..front::Specialization::new(args, target)
    };
    let lowered = module.lower(Some(kernel), &spec);
    let lowered = lowered.map_err(source_error)?;
    Ok(LoweredProgram {
        func: lowered.func,
        constants: lowered.constants,
    })
}

/// The front end's errors, with advice for who calls and not for who types commands.
pub(in crate::runtime) fn source_error(mut errors: front::Diagnostics) -> RuntimeError {
    for diagnostic in &mut errors.list {
        let is_plain_tuple = diagnostic.message.starts_with("a tuple of ")
            && diagnostic.message.contains(" has no attribute ");
        match &mut diagnostic.help {
            Some(help) => *help = advice(help),
            // Launches know no classes.
            help @ None if is_plain_tuple => {
                *help = Some("a tuple of a launch has names if its parameter is annotated with the NamedTuple".to_owned());
            }
            None => {}
        }
    }
    SourceError::of_front(&errors).into()
}

/// Advice in the words of this interface: `-c NAME=VALUE` is [`Kernel::constant`](crate::runtime::Kernel::constant), and a
/// signature is what the arguments say.
fn advice(help: &str) -> String {
    if help.starts_with("there is no signature") {
        return "give it an argument, or a value with `Kernel::constant`".to_owned();
    }
    if help == front::OPTIONS {
        return "it is an option and no constant: `Kernel::warps`, `ctas`, `stages` and `max_registers` set those".to_owned();
    }
    if let Some(before) = help.strip_suffix(front::GIVEN) {
        return format!("{before}a `Descriptor`");
    }
    let (before, rest) = match help.split_once("-c ") {
        Some(found) => found,
        None => return help.to_owned(),
    };
    let Some((name, after)) = rest.split_once("=VALUE") else {
        return help.to_owned();
    };
    if before.starts_with("the signature gives") {
        return format!("`Kernel::constant(\"{name}\", value)` gives it a value");
    }
    format!("{before}`Kernel::constant(\"{name}\", value)`{after}")
}

/// The constants that a kernel's heuristics give for these arguments.
pub(in crate::runtime) fn heuristics(
    module: &front::Module,
    kernel: &str,
    options: &KernelOptions,
    args: &[(&str, &Arg<'_>)],
) -> Result<Vec<(String, Constant)>, RuntimeError> {
    let constants = options.constants.iter();
    let mut all: Vec<(String, front::ArgSpec)> = constants
        .map(|(name, value)| (name.clone(), front::ArgSpec::Constant(value.to_front())))
        .collect();
    for &(name, arg) in args {
        // Of a pointer there is only to say that it is there.
        let value = arg
            .value()
            .map(|value| front::ArgSpec::Constant(value.to_front()));
        if let Some(value) = value.or_else(|| to_arg(Class(arg.class).plain())) {
            all.push((name.to_owned(), value));
        }
    }
    let found = module.heuristics(Some(kernel), &all);
    let found = found.map_err(source_error)?;
    let constant = |(name, value): (String, front::Constant)| (name, Constant::from_front(&value));
    Ok(found.into_iter().map(constant).collect())
}

/// A number format in the words of the run time; none if callers have no such numbers.
pub(in crate::runtime) fn dtype(dtype: front::types::DType) -> Option<DType> {
    let name = dtype.to_string();
    DType::ALL.iter().copied().find(|d| d.to_string() == name)
}

/// A constant by its text.
pub(in crate::runtime) fn read_constant(text: &str) -> Option<Constant> {
    front::Constant::parse(text).map(|constant| Constant::from_front(&constant))
}

/// What a parameter is given, in the words of the front end.
fn to_arg_tree(given: &ArgTree) -> Option<front::ArgSpec> {
    match given {
        ArgTree::Plain(class) => to_arg(*class),
        ArgTree::Descriptor {
            dtype,
            block,
            divisible,
            nan,
        } => Some(front::ArgSpec::Descriptor(front::HostDescriptor {
            dtype: front::types::DType::from_short_name(&dtype.to_string())?,
            block: block.to_vec(),
            divisible: divisible.to_vec(),
            nan: *nan,
        })),
        ArgTree::Tuple(elements) => {
            let items = elements.iter().map(to_arg_tree).collect::<Option<_>>()?;
            Some(front::ArgSpec::Tuple(front::TupleArg {
                class: None,
                items,
            }))
        }
    }
}

/// An argument of this class in the words of the front end.
fn to_arg(class: Class) -> Option<front::ArgSpec> {
    use front::types::Ty;
    let Some(dtype) = class.dtype() else {
        return Some(front::ArgSpec::Constant(front::Constant::None));
    };
    if class.is_one() {
        return Some(front::ArgSpec::Constant(front::Constant::Int(1)));
    }
    let to = front::types::DType::from_short_name(&dtype.to_string())?;
    let ty = if class.is_pointer() {
        Ty::ptr(to)
    } else {
        Ty::Num(to)
    };
    let divisible = class.divisor();
    Some(front::ArgSpec::Typed { ty, divisible })
}

impl Constant {
    /// The same in the words of the run time.
    pub(crate) fn from_front(constant: &front::Constant) -> Constant {
        match constant {
            front::Constant::None => Constant::None,
            front::Constant::Bool(b) => Constant::Bool(*b),
            front::Constant::Int(n) => Constant::Int(*n),
            front::Constant::Float(x) => Constant::Float(*x),
            front::Constant::Str(text) => Constant::Text(text.clone()),
            front::Constant::Type(found) => {
                dtype(*found).map_or_else(|| Constant::Text(found.to_string()), Constant::Type)
            }
            front::Constant::Function(name) => Constant::Function(name.clone()),
        }
    }

    fn to_front(&self) -> front::Constant {
        match self {
            Constant::None => front::Constant::None,
            Constant::Bool(b) => front::Constant::Bool(*b),
            Constant::Int(n) => front::Constant::Int(*n),
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

#[cfg(test)]
mod tests {
    use super::advice;

    #[test]
    fn advice_names_functions() {
        for (help, expected) in [
            (
                "give it with -c N=VALUE",
                "give it with `Kernel::constant(\"N\", value)`",
            ),
            (
                "the signature gives 1 of 3 arguments; -c N=VALUE gives a constant",
                "`Kernel::constant(\"N\", value)` gives it a value",
            ),
            (
                crate::front::OPTIONS,
                "it is an option and no constant: `Kernel::warps`, `ctas`, `stages` and `max_registers` set those",
            ),
            ("there is `other`", "there is `other`"),
            ("write a-c and no more", "write a-c and no more"),
        ] {
            assert_eq!(advice(help), expected);
        }
    }
}
