//! The library: what `tl.*`, `libdevice`, Python's built-in functions and a few of the host's mean.
//!
//! Each function is a row: a name, its parameters, and a function that makes it. The parameters are a text,
//! `"required ... ; optional ... *rest"`, by which arguments are bound before the row's function runs, so that the
//! latter finds every required one. What can be said in the language itself is a function of `prelude.py` or, for
//! `libdevice`, `triton_helpers` and `ragged_tma`, of `libdevice.py`, `inductor.py` and `ragged.py`. Adding to the library is adding one row or one such function.

mod args;
mod atomic;
pub(crate) mod block_ptr;
mod combine;
mod create;
pub(crate) mod descriptor;
mod device;
mod dot;
mod dtypes;
mod external;
mod hints;
mod host;
mod libdevice;
mod map_elementwise;
mod math;
mod memory;
pub(crate) mod number;
pub(crate) mod prelude;
mod python;
mod reductions;
mod rounding;
mod shape;
mod sort;
mod text;

pub(crate) use args::{Args, IS_TYPE, numbered};

/// What helps where a number depends on data and must not. Of functions that a kernel calls the annotation binds nothing.
pub(crate) const NEEDS_CONSTANT: &str =
    "what it comes from must be a constant, or a `tl.constexpr` of the kernel";

use std::sync::LazyLock;

use rustc_hash::FxHashMap;

use super::diagnostic::Code;
use super::lower::{Lower, Res};
use super::types::{DType, Ty};
use super::value::{Const, Value};
use crate::linear_layout::shape::MAX_LOG2_ELEMENTS;

/// Where a name is looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Scope {
    /// `triton.language` with its parts.
    Language,
    /// Methods of numbers and blocks that are no functions of the language.
    Method,
    /// Methods of tensor descriptors.
    Descriptor,
    /// Functions of types.
    Type,
    /// Methods of strings.
    Text,
    /// Methods of Python's numbers.
    Number,
    /// `libdevice` under all its names.
    Libdevice,
    /// What PyTorch's compiler calls in the kernels it writes: `triton_helpers`.
    Inductor,
    /// `triton.tools.ragged_tma`.
    Ragged,
    /// `triton`.
    Triton,
    /// Python's built-in functions.
    Python,
    /// Python's `math`.
    Math,
    /// `torch` and `numpy`: a few constants and types.
    Host,
    /// Versions of `packaging`.
    Packaging,
}

/// A row of the library.
pub(crate) struct Builtin {
    pub(crate) scope: Scope,
    pub(crate) name: &'static str,
    /// Parameters: required, then after `;` optional ones; `*rest` takes what is left.
    pub(crate) params: &'static str,
    pub(crate) run: for<'m> fn(&mut Lower<'m>, &Args<'m>) -> Res<Value<'m>>,
}

impl std::fmt::Debug for Builtin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// Makes rows of a scope.
macro_rules! rows {
    ($scope:ident; $($name:literal ($params:literal) $run:expr;)*) => {
        &[$($crate::front::library::Builtin {
            scope: $crate::front::library::Scope::$scope,
            name: $name,
            params: $params,
            run: $run,
        }),*]
    };
}
pub(crate) use rows;

/// Every table.
const TABLES: &[&[Builtin]] = &[
    atomic::ROWS,
    block_ptr::ROWS,
    combine::ROWS,
    create::ROWS,
    descriptor::METHODS,
    descriptor::ROWS,
    device::ROWS,
    dot::ROWS,
    dtypes::LANGUAGE,
    dtypes::TYPES,
    external::ROWS,
    hints::LANGUAGE,
    host::HOST,
    host::MATH,
    host::PACKAGING,
    host::TRITON,
    libdevice::ROWS,
    map_elementwise::ROWS,
    math::METHODS,
    math::ROWS,
    memory::ROWS,
    number::ROWS,
    sort::ROWS,
    python::LANGUAGE,
    python::PYTHON,
    reductions::ROWS,
    rounding::ROWS,
    shape::ROWS,
    text::ROWS,
];

/// Names of the language's modules for what is no value: modules, classes, functions of Python, contexts of a branch of it.
const OTHERS: &[&str] = &[
    "PropagateNan",
    "async_task",
    "async_tasks",
    "base_type",
    "base_value",
    "builtin",
    "const",
    "core",
    "extern",
    "extra",
    "get_primitive_bitwidth",
    "is_builtin",
    "jit",
    "knobs",
    "math",
    "must_use_result",
    "random",
    "semantic",
    "slice",
    "slice_type",
    "sort_impl",
    "standard",
    "str_to_ty",
    "target_info",
    "tensor_descriptor",
    "tensor_descriptor_base",
    "tensor_descriptor_base_type",
    "tensor_descriptor_type",
    "tuple_type",
    "void",
];

/// Whether a path ends in a function that the language has and this version lacks.
pub(crate) fn is_known_missing(path: &str) -> bool {
    // It needs a launch in which all programs run at once.
    path.contains("triton_helpers") && path.ends_with(".x_grid_barrier")
}

/// Whether a path is that of a module whose names are all known.
pub(crate) fn is_module(path: &str) -> bool {
    const MODULES: [&str; 4] = ["", ".core", ".math", ".standard"];
    let of_language = path.strip_prefix("triton.language");
    of_language.is_some_and(|rest| MODULES.contains(&rest) || rest.ends_with(".libdevice"))
}

/// Whether modules of the language have something of this name that is no value here: a module, a class, or what is not for
/// users.
pub(crate) fn is_other(name: &str) -> bool {
    name.starts_with('_') || OTHERS.contains(&name)
}

/// Whether this is the path of a member of an enumeration.
pub(crate) fn is_member(path: &str) -> bool {
    math::nan_rule_of(path).is_some()
}

static BY_NAME: LazyLock<FxHashMap<(Scope, &'static str), &'static Builtin>> =
    LazyLock::new(|| {
        let rows = TABLES.iter().flat_map(|table| table.iter());
        rows.map(|row| ((row.scope, row.name), row)).collect()
    });

/// The functions of a scope.
pub(crate) fn names(scope: Scope) -> impl Iterator<Item = &'static str> {
    let rows = TABLES.iter().flat_map(|table| table.iter());
    let rows = rows
        .filter(move |row| row.scope == scope)
        .map(|row| row.name);
    rows.chain(prelude::names(scope))
}

/// The row of exactly this scope.
pub(crate) fn find_in(scope: Scope, name: &str) -> Option<&'static Builtin> {
    // The key borrows for as long as the table lives; a name that is in no row finds nothing.
    BY_NAME.get(&(scope, name)).copied()
}

/// What a name stands for in a scope: a type, a constant or a function.
pub(crate) fn find<'m>(scope: Scope, name: &str) -> Option<Value<'m>> {
    if scope == Scope::Language && name == "pi32_t" {
        return Some(Value::ty(Ty::ptr(DType::Int32)));
    }
    let dtype = match scope {
        Scope::Language => DType::from_name(name),
        Scope::Host => match name {
            "half" => Some(DType::Float16),
            "float" => Some(DType::Float32),
            "bool" => Some(DType::Int1),
            name => DType::from_name(name),
        },
        _ => None,
    };
    if let Some(dtype) = dtype {
        return Some(Value::ty(Ty::Num(dtype)));
    }
    let int = match (scope, name) {
        (Scope::Language, "CONSTEXPR_0") => Some(0),
        (Scope::Language, "TRITON_MAX_TENSOR_NUMEL") => Some(1 << MAX_LOG2_ELEMENTS),
        _ => None,
    };
    if let Some(int) = int {
        return Some(Value::int(int));
    }
    let number = match (scope, name) {
        (Scope::Math | Scope::Host, "pi") => Some(std::f64::consts::PI),
        (Scope::Math | Scope::Host, "e") => Some(std::f64::consts::E),
        (Scope::Math, "tau") => Some(std::f64::consts::TAU),
        (Scope::Math | Scope::Host, "inf") => Some(f64::INFINITY),
        (Scope::Math | Scope::Host, "nan") => Some(f64::NAN),
        _ => None,
    };
    if let Some(number) = number {
        return Some(Value::Const(Const::Float(number)));
    }
    let prelude = || prelude::find(scope, name).map(Value::Function);
    find_in(scope, name).map(Value::Builtin).or_else(prelude)
}

/// Calls a function of the language.
pub(crate) fn call<'m>(
    cx: &mut Lower<'m>,
    name: &str,
    given: super::call::Given<'m>,
) -> Res<Value<'m>> {
    match find(Scope::Language, name) {
        Some(callee) => {
            let at = cx.range;
            cx.call_value(&callee, given, at)
        }
        None => Err(cx
            .error(Code::Internal, format!("the library lacks `{name}`"))
            .into()),
    }
}

/// A name of Python.
pub(crate) fn python_name<'m>(name: &str) -> Option<Value<'m>> {
    find_in(Scope::Python, name).map(Value::Builtin)
}

impl Builtin {
    /// Whether it makes what can be gone through once alone.
    pub(crate) fn is_iterator(&self) -> bool {
        matches!(
            (self.scope, self.name),
            (Scope::Python, "enumerate" | "zip" | "filter") | (Scope::Host, "product")
        )
    }
}

/// A function that can be called as a method of a number or block.
pub(crate) fn method<'m>(name: &str) -> Option<Value<'m>> {
    const NOT_METHODS: &[&str] = &[
        "load",
        "arange",
        "full",
        "zeros",
        "program_id",
        "num_programs",
        "where",
        "static_assert",
        "static_print",
        "range",
        "static_range",
        "constexpr",
        "debug_barrier",
        "device_print",
        "device_assert",
    ];
    if NOT_METHODS.contains(&name) || DType::from_name(name).is_some() {
        return None;
    }
    let own = find_in(Scope::Method, name).map(Value::Builtin);
    own.or_else(|| find(Scope::Language, name))
}

#[cfg(test)]
mod tests;
