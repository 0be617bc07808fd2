"""The source of a kernel of Triton's as a file of its own: the kernel, and what it names of its module and of functions around it."""
import ast
import inspect
import re
import textwrap
import types

import torch
import triton
import triton.language as tl
from triton.runtime import jit as runtime


def literal(value):
    """A constant as signatures spell it; None where they have no spelling."""
    if isinstance(value, tl.constexpr):
        return literal(value.value)
    if value is None or isinstance(value, (bool, int)):
        return str(value)
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, str) and "'" not in value:
        return f"'{value}'"
    if isinstance(value, tl.dtype):
        return value.name.replace("uint", "u").replace("int", "i")
    if isinstance(value, tuple) and not any(literal(x) is None for x in value):
        return f"({', '.join(map(literal, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, torch.dtype):
        return literal(getattr(tl, str(value).removeprefix("torch."), object()))
    if path := of_library(value):
        return "@" + path
    if isinstance(value, runtime.JITFunction):
        return f"@{name_of(value)}"
    return None


def of_library(value):
    """The path of a function of the language's library; None for all else."""
    name = getattr(value, "__name__", "")
    modules = {"tl": tl, "tl.math": tl.math, "tl.extra.cuda": tl.extra.cuda}
    return next((f"{path}.{name}" for path, module in modules.items() if name and getattr(module, name, None) is value), None)


def name_of(function):
    """The name under which a function stands in its own text; programs may have given the object another one."""
    is_jit = isinstance(function, runtime.JITFunction)
    return re.search(r"^def\s+(\w+)", function.src, re.MULTILINE)[1] if is_jit else function.fn.__name__


def source(kernel, passed=()):
    """The text of a file with a kernel and all that it names, and with functions and classes that are passed to it."""
    written = {}
    for value in passed:
        write_value(value.__name__ if isinstance(value, type) else name_of(value), value, written)
    write_function(kernel, name_of(kernel), written)
    return "import triton\nimport triton.language as tl\n" + "".join(written.values())


def write_function(function, name, written):
    """Adds a function under this name, behind what it names."""
    own = name_of(function)
    if own not in written:
        written[own] = ""
        is_jit = isinstance(function, runtime.JITFunction)
        text = function.src if is_jit else textwrap.dedent(inspect.getsource(function.fn))
        write_named(text, {**function.fn.__globals__, **inspect.getclosurevars(function.fn).nonlocals}, written)
        text = f"\n\n{'@triton.jit' if is_jit else ''}\n{text}"
        # What it names stands in front of it.
        del written[own]
        written[own] = text
    if name != own:
        written[name] = f"\n{name} = {own}\n"


def write_named(text, scope, written):
    """Adds what a text names and this scope has, but for what has the name of a parameter."""
    nodes = list(ast.walk(ast.parse(text)))
    skipped = {"tl", "triton", *(node.arg for node in nodes if isinstance(node, ast.arg))}
    for node in nodes:
        if isinstance(node, ast.Name) and node.id in scope and node.id not in written and node.id not in skipped:
            write_value(node.id, scope[node.id], written)


def spelled_type(dtype):
    """A type as kernels spell it."""
    return next(f"tl.{name}" for name, value in vars(tl).items() if isinstance(value, tl.dtype) and value == dtype)


def of_program(value):
    """Whether it is defined in what is run, and not in a library that kernels name."""
    return getattr(value, "__module__", "triton").split(".")[0] not in ("triton", "torch", "builtins")


def write_value(name, value, written):
    if isinstance(value, types.ModuleType):
        written[name] = f"\nimport {value.__name__} as {name}\n"
    elif isinstance(value, (runtime.JITFunction, getattr(runtime, "ConstexprFunction", ()))):
        write_function(value, name, written)
    elif isinstance(value, type) and of_program(value):
        text = textwrap.dedent(inspect.getsource(value))
        write_named(text, vars(inspect.getmodule(value)), written)
        written[name] = "\n\n" + text
    elif isinstance(value, tl.dtype):
        written[name] = f"\n{name} = {spelled_type(value)}\n"
    elif isinstance(plain := getattr(value, "value", value), types.FunctionType) and of_program(plain):
        # Of Python, for constants; a decorator stands in its text.
        text = textwrap.dedent(inspect.getsource(plain))
        written[name] = ""
        write_named(text, plain.__globals__, written)
        del written[name]
        written[name] = f"\n\n{text}" + (f"\n{name} = {plain.__name__}\n" if name != plain.__name__ else "")
    elif isinstance(value, tl.constexpr) and isinstance(value.value, tl.dtype):
        written[name] = f"\n{name} = tl.constexpr({spelled_type(value.value)})\n"
    elif (spelled := literal(value)) is not None and not spelled.startswith("@"):
        written[name] = f"\n{name} = {f'tl.constexpr({spelled})' if isinstance(value, tl.constexpr) else spelled}\n"
    elif callable(value) and getattr(value, "__module__", "").split(".")[0] == "triton":
        written[name] = f"\nfrom {value.__module__} import {value.__name__} as {name}\n"
