"""Launches that `# run:` lines state, on Triton's interpreter: kernels with buffers of NumPy, and what is left in them."""
import importlib.util
import pathlib
import re
import sys

import ml_dtypes
import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "tests/data/language"))

import interpreted  # noqa: E402  (sets TRITON_INTERPRET, and lets scalars be indices)
import triton.language as tl  # noqa: E402
from triton.runtime import interpreter  # noqa: E402

SHORT = {"fp16": tl.float16, "bf16": tl.bfloat16, "fp32": tl.float32, "fp64": tl.float64, "fp8e5": tl.float8e5,
         "fp8e4nv": tl.float8e4nv, "i1": tl.int1, "i8": tl.int8, "i16": tl.int16, "i32": tl.int32, "i64": tl.int64,
         "u8": tl.uint8, "u16": tl.uint16, "u32": tl.uint32, "u64": tl.uint64}
NUMPY = {"fp16": np.float16, "bf16": ml_dtypes.bfloat16, "fp32": np.float32, "fp64": np.float64, "fp8e5": ml_dtypes.float8_e5m2,
         "fp8e4nv": ml_dtypes.float8_e4m3fn, "i1": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
         "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64}
CONSTANTS = {"None": None, "True": True, "False": False}
# What is in a buffer that nobody has written.
POISON = 0x5A


class Refused(Exception):
    """The line has something that cannot be launched here."""


class Buffer:
    """A pointer that the interpreter takes: the address of an array, and the type of what it points to."""

    def __init__(self, ty, array):
        self.ty, self.array = ty, array


class Number:
    """A number of a type of the signature; the interpreter would take its type from the number, and floats as constants."""

    def __init__(self, ty, value):
        self.ty, self.value = ty, value


def _implicit(arg):
    if isinstance(arg, Buffer):
        # Of truth values the address is one of bytes, as in a launch.
        ty = tl.pointer_type(SHORT[arg.ty])
        return tl.tensor(interpreter.TensorHandle(np.array([arg.array.ctypes.data], np.uint64), ty), ty)
    if isinstance(arg, Number):
        value = np.array([arg.value]).astype(NUMPY[arg.ty])
        if arg.ty in ("fp16", "bf16"):
            # A launch passes them as 32 bits and the kernel rounds.
            value = np.array([arg.value], np.float32).astype(NUMPY[arg.ty])
        value = value.view(np.uint16) if arg.ty == "bf16" else value
        return tl.tensor(interpreter.TensorHandle(value, SHORT[arg.ty]), SHORT[arg.ty])
    return _CONVERT(arg)


_CONVERT = interpreter._implicit_cvt
interpreter._implicit_cvt = _implicit
interpreter.GridExecutor._init_args_hst = lambda self, args, kwargs: (args, kwargs)
interpreter.GridExecutor._restore_args_dev = lambda self, *args: None


def constant(text, module):
    text = text.strip()
    if text in CONSTANTS:
        return CONSTANTS[text]
    if text in SHORT:
        return SHORT[text]
    if text.startswith("@"):
        return getattr(module, text[1:])
    if text[0] in "'\"":
        return text[1:-1]
    return float(text) if re.search(r"[.e]|inf|nan", text) else int(text, 0)


class Line:
    """`# run: NAME "SIGNATURE" [CONSTANT=VALUE].. : grid(..) NAME=.. [; expect ..]`"""

    def __init__(self, text):
        self.text = text
        head, words = text.split(" : ", 1)
        found = re.match(r'\s*(\w+)\s+"([^"]*)"(.*)$', head)
        if not found:
            raise Refused("no signature in quotes")
        self.kernel, signature, rest = found.groups()
        if re.search(r"[(<]", signature):
            raise Refused("a signature with tuples or descriptors")
        self.signature = [entry.strip() for entry in signature.split(",")] if signature.strip() else []
        self.options = dict(re.findall(r"(\w+)=(\S+)", rest))
        words, *expects = words.split(";")
        self.expects = [e.strip() for e in expects]
        self.arguments, self.others = {}, []
        pattern = r"\w+\([\d,\s]*\)(?=\s|$)|\w+=(?:\w+\[\d+\]\s+(?:\[[^\]]*\]|\w+(?:\([^)]*\))?)(?:\s+special)?|\S+)"
        for word in re.findall(pattern, words):
            name, equals, value = word.partition("=")
            if equals:
                self.arguments[name] = value.strip()
            else:
                self.others.append(word)
        grid = next((w for w in self.others if w.startswith("grid(")), "grid(1)")
        self.grid = tuple(int(n) for n in grid[5:-1].split(","))

    def replaced(self, arguments, expects):
        """The line with other arguments and expectations."""
        head = self.text.split(" : ", 1)[0]
        words = self.others + [f"{name}={arguments.get(name, value)}" for name, value in self.arguments.items()]
        return f"# run: {head} : " + " ; ".join([" ".join(words), *expects])


def filled(ty, count, fill, seed):
    """What a buffer holds; of the fills that draw numbers, others than `tilelift run` draws."""
    dtype = np.dtype(NUMPY[ty])
    fill, special = fill.removesuffix("special").strip(), fill.endswith("special")
    name, _, rest = fill.partition("(")
    args = [a.strip() for a in rest.rstrip(")").split(",")] if rest else []
    if fill == "poison":
        data = np.full(count * dtype.itemsize, 1 if ty == "i1" else POISON, np.uint8).view(dtype)
    elif fill == "zeros":
        data = np.zeros(count, dtype)
    elif fill.startswith("["):
        items = [float(x) if dtype.kind not in "iub" else int(x, 0) for x in fill[1:-1].split(",") if x.strip()]
        data = np.array(items).astype(dtype)
    elif name == "const":
        data = np.full(count, float(args[0]) if dtype.kind not in "iub" else int(args[0])).astype(dtype)
    elif name == "iota":
        data = (np.arange(count) + float(args[0])).astype(dtype)
    elif name == "normal":
        data = np.random.default_rng([seed, int(args[0])]).standard_normal(count).astype(dtype)
    elif name == "uniform":
        random = np.random.default_rng([seed, int(args[0])])
        if dtype.kind in "iub":
            data = random.integers(int(args[1]), int(args[2]), count, dtype=np.int64, endpoint=True).astype(dtype)
        else:
            data = random.uniform(float(args[1]), float(args[2]), count).astype(dtype)
    else:
        raise Refused(f"a buffer filled with {fill}")
    if special and dtype.kind not in "iub":
        data[::11] = np.resize(np.array([np.inf, np.nan, 0.0, -np.inf, -0.0]), len(data[::11])).astype(dtype)
    return np.ascontiguousarray(data)


def load_module(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def bits(array):
    """As our files of NumPy hold elements: truth values and floats that NumPy lacks as they are."""
    if array.dtype == ml_dtypes.bfloat16:
        return array.view("V2")
    return array.view("V1") if array.dtype in (ml_dtypes.float8_e5m2, ml_dtypes.float8_e4m3fn) else array


def load(path):
    """What `bits` made, as numbers."""
    data = np.load(path)
    # Of the formats with 8 bits only this one is asked for.
    as_numbers = {np.dtype("V2"): ml_dtypes.bfloat16, np.dtype("V1"): ml_dtypes.float8_e5m2}
    return data.view(as_numbers.get(data.dtype, data.dtype))


def starts_with(array, text):
    """Whether these are the first elements, as far as they are written out: `[1, nan]`, `[True]`."""
    words = [word.replace("True", "1").replace("False", "0") for word in text[1:-1].split(", ")]
    stated = np.array([float(word) for word in words])
    return np.allclose(array[:len(stated)].astype(np.float64), stated, rtol=1e-6, atol=0, equal_nan=True)


def launch(line, module, folder, stem, seed=0):
    """Runs a line on Triton's interpreter. The files with its buffers, before and after, go to a folder; the result is the
    line that has them."""
    function = getattr(module, line.kernel)
    if not hasattr(function, "fn"):
        raise Refused("a kernel with decorators of its own")
    function = function.fn if not hasattr(function, "rewriter") else function
    names = function.arg_names
    args, buffers = {}, {}
    for name, entry in zip(names, line.signature):
        ty, _, promise = entry.partition(":")
        given = line.arguments.get(name)
        if ty.startswith("*"):
            ty = ty[1:].removeprefix("k")
            if given == "null":
                args[name] = None
                continue
            found = re.match(r"\w+\[(\d+)\]\s*(.*)$", given or "")
            if not found:
                raise Refused(f"`{name}` with {given}")
            array = filled(ty, int(found[1]), found[2], seed)
            # Where vectors are aligned on a GPU nobody asks here, but tensor descriptors do.
            held = np.zeros(array.nbytes + 16, np.uint8)
            start = -held.ctypes.data % 16
            held[start:start + array.nbytes] = array.view(np.uint8)
            array = held[start:start + array.nbytes].view(array.dtype)
            buffers[name] = array
            args[name] = Buffer(ty, array)
        elif given is not None:
            args[name] = Number(ty, float(given) if ty.startswith(("fp", "bf")) else int(given, 0))
        elif promise == "1" and ty in SHORT:
            args[name] = 1
        else:
            args[name] = constant(entry, module)
    for name, value in line.options.items():
        if name in names:
            args[name] = constant(value, module)
    before = {name: array.copy() for name, array in buffers.items()}
    with np.errstate(all="ignore"):
        function[line.grid](**args)
    arguments, expects = {}, []
    for name, array in buffers.items():
        np.save(folder / f"{stem}.{name}.npy", bits(before[name]))
        arguments[name] = f"@{stem}.{name}.npy"
        left = f"{stem}.{name}.npy"
        if before[name].tobytes() != array.tobytes():
            left = f"{stem}.{name}.left.npy"
            np.save(folder / left, bits(array))
        expects.append(f"expect {name} = @{left}")
    within = [e for e in line.expects if " within " in e]
    return line.replaced(arguments, expects + within)
