"""Writes tests/data/triton/library/*.txt: what the programs beside them give.

Programs run in Triton's interpreter; functions that it lacks, or computes otherwise than compiled code, have a reference
in references.py, made with NumPy and mpmath. Data is made from the words of the cases as in tests/language/library/data.rs. Made with
Triton 3.6.0, NumPy 2.4 and mpmath 1.3; needs no GPU:

    python tests/data/triton/library.py [FILE..]

With --gpu the programs are compiled by Triton and run on a GPU (PyTorch is needed then), and what the files state is
compared with what comes out; nothing is written.
"""

import importlib.util
import math
import os
import pathlib
import re
import struct
import sys
import tempfile

GPU = "--gpu" in sys.argv
if not GPU:
    os.environ["TRITON_INTERPRET"] = "1"

import numpy as np  # noqa: E402
import triton  # noqa: E402
import triton.language as tl  # noqa: E402
from triton.runtime import interpreter  # noqa: E402
from triton.tools.tensor_descriptor import TensorDescriptor  # noqa: E402

HERE = pathlib.Path(__file__).parent / "library"
sys.path.insert(0, str(HERE.parent))

sys.path.insert(0, str(HERE.parent.parent / "library"))

import gpu  # noqa: E402

if not GPU:
    import references

MASK = (1 << 64) - 1
NUMPY = {"i1": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "u8": np.uint8,
         "u16": np.uint16, "u32": np.uint32, "u64": np.uint64, "fp16": np.float16, "fp32": np.float32,
         "fp64": np.float64, "bf16": np.uint16, "fp8e5": np.uint8, "fp8e4nv": np.uint8}
# Exponent bits, fraction bits, largest number of the formats that NumPy lacks and that saturate.
NARROW = {"fp8e5": (5, 2, 57344.0), "fp8e4nv": (4, 3, 448.0)}


def splitmix(seed):
    state = seed
    while True:
        state = (state + 0x9E3779B97F4A7C15) & MASK
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        yield z ^ (z >> 31)


def narrow_value(dtype, bits):
    exponent_bits, fraction_bits, largest = NARROW[dtype]
    sign = -1.0 if bits & 0x80 else 1.0
    exponent = (bits & 0x7F) >> fraction_bits
    fraction = bits & ((1 << fraction_bits) - 1)
    bias = (1 << (exponent_bits - 1)) - 1
    if exponent == 0:
        size = fraction * 2.0 ** (1 - bias - fraction_bits)
    else:
        size = (1 + fraction / (1 << fraction_bits)) * 2.0 ** (exponent - bias)
    if size > largest:
        return math.nan
    return sign * size


def narrow_bits(dtype, x):
    if math.isnan(x):
        return 0x7F
    sign = 0x80 if math.copysign(1.0, x) < 0 else 0
    best = None
    for bits in range(0x80):
        size = narrow_value(dtype, bits)
        if not math.isnan(size):
            key = (abs(abs(x) - size) if abs(x) != math.inf else -size, bits & 1)
            if best is None or key < best[0]:
                best = (key, bits)
    return sign | best[1]


def bfloat_bits(x):
    word = int(np.float32(x).view(np.uint32))
    if math.isnan(x):
        return 0x7FFF
    return ((word + 0x7FFF + ((word >> 16) & 1)) >> 16) & 0xFFFF


def encode(dtype, x):
    """The number as NumPy holds it; formats that it lacks as their bits."""
    with np.errstate(over="ignore"):
        if dtype == "fp64":
            return np.float64(x)
        if dtype == "fp32":
            return np.float32(x)
        if dtype == "fp16":
            return np.float16(np.float32(x))
    if dtype == "bf16":
        return np.uint16(bfloat_bits(x))
    if dtype in NARROW:
        return np.uint8(narrow_bits(dtype, float(np.float32(x))))
    return wrap(dtype, math.floor(x))


def wrap(dtype, n):
    numpy = np.dtype(NUMPY[dtype])
    if dtype == "i1":
        return np.bool_(n & 1)
    bits = 8 * numpy.itemsize
    return np.frombuffer(int(n & ((1 << bits) - 1)).to_bytes(numpy.itemsize, "little"), numpy)[0]


def number(dtype, text):
    if dtype.startswith(("fp", "bf")):
        return encode(dtype, float(text))
    return wrap(dtype, int(text))


def make(dtype, count, words):
    numpy = NUMPY[dtype]
    if words == "zeros":
        return np.zeros(count, numpy)
    name, _, rest = words.partition("(")
    args = rest.rstrip(")").split(",")
    if name == "iota":
        start, step = float(args[0]), float(args[1])
        return np.array([encode(dtype, start + step * i) for i in range(count)], numpy)
    if name == "rand":
        source, low, high = splitmix(int(args[0])), float(args[1]), float(args[2])
        units = [(next(source) >> 11) / (1 << 53) for _ in range(count)]
        return np.array([encode(dtype, low + (high - low) * unit) for unit in units], numpy)
    items = words[1:-1].split(",")
    width = np.dtype(numpy).itemsize
    if name == "bits":
        source = splitmix(int(args[0]))
        items = [f"{next(source):x}" for _ in range(count)]
    if name == "bits" or words[0] == "{":
        if dtype == "i1":
            return np.array([int(items[i % len(items)], 16) & 1 for i in range(count)], numpy)
        limit = (1 << (8 * width)) - 1
        data = b"".join((int(items[i % len(items)], 16) & limit).to_bytes(width, "little") for i in range(count))
        return np.frombuffer(data, numpy).copy()
    return np.array([number(dtype, items[i % len(items)]) for i in range(count)], numpy)


class Buffer:
    """What the interpreter takes for a tensor in memory."""

    def __init__(self, dtype, array):
        self.name = dtype
        self.dtype = array.dtype
        self.array = array
        self.shape = array.shape
        self.ndim = array.ndim

    def data_ptr(self):
        return self.array.ctypes.data

    def stride(self, dim=None):
        strides = tuple(s // self.array.itemsize for s in self.array.strides)
        return strides if dim is None else strides[dim]


interpreter.GridExecutor._init_args_hst = lambda self, args, kwargs: (args, kwargs)
interpreter.GridExecutor._restore_args_dev = lambda self, *args: None
convert = interpreter._implicit_cvt


def implicit(arg):
    if isinstance(arg, Buffer):
        ty = tl.str_to_ty("*" + arg.name, None)
        return tl.tensor(interpreter.TensorHandle(np.array([arg.data_ptr()], dtype=np.uint64), ty), ty)
    if isinstance(arg, tuple) and len(arg) == 2 and arg[0] in NUMPY:
        dtype, value = arg
        ty = tl.str_to_ty({"i1": "u1"}.get(dtype, dtype), None)
        return tl.tensor(interpreter.TensorHandle(np.array([value], dtype=NUMPY[dtype]), ty), ty)
    return convert(arg)


interpreter._implicit_cvt = implicit

CONSTANTS = {"None": None, "True": True, "False": False}
SHORT = {"fp16": tl.float16, "bf16": tl.bfloat16, "fp32": tl.float32, "fp64": tl.float64, "i8": tl.int8,
         "i16": tl.int16, "i32": tl.int32, "i64": tl.int64, "u8": tl.uint8, "u16": tl.uint16, "u32": tl.uint32,
         "u64": tl.uint64, "i1": tl.int1, "fp8e5": tl.float8e5, "fp8e4nv": tl.float8e4nv}


def constant(text):
    if text in CONSTANTS:
        return CONSTANTS[text]
    if text in SHORT:
        return SHORT[text]
    if text[0] in "'\"":
        return text[1:-1]
    try:
        return int(text)
    except ValueError:
        return float(text)


def argument(what):
    """The argument, and the array to be compared."""
    found = re.fullmatch(r"desc\[([0-9x]+)\]:(\w+)\[([0-9x]+)\](?::(.*))?", what)
    if found:
        block, extents = ([int(e) for e in found[i].split("x")] for i in (1, 3))
        array = fresh(found[2], math.prod(extents), found[4]).reshape(extents)
        base = Buffer(found[2], array)
        return TensorDescriptor(base, list(extents), list(base.stride()), block), found[2], array
    found = re.fullmatch(r"(\w+)\[(\d+)\](?::(.*))?", what)
    if found and found[1] in NUMPY:
        array = fresh(found[1], int(found[2]), found[3])
        return Buffer(found[1], array), found[1], array
    found = re.fullmatch(r"(\w+):(.*)", what)
    if found and found[1] in NUMPY:
        return (found[1], number(found[1], found[2])), None, None
    return constant(what), None, None


def fresh(dtype, count, words):
    if words is None:
        return np.frombuffer(b"\xff" * (count * np.dtype(NUMPY[dtype]).itemsize), NUMPY[dtype]).copy()
    return make(dtype, count, words)


loaded = {}


def load(path, word):
    key = (path, word)
    if key not in loaded:
        text = path.read_text()
        if word:
            text = text.replace("FUNCTION", word)
        with tempfile.NamedTemporaryFile("w", suffix=".py", delete=False) as file:
            file.write(text)
        spec = importlib.util.spec_from_file_location(f"cases_{len(loaded)}", file.name)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        loaded[key] = module
    return loaded[key]


def hexadecimal(array):
    width = 2 * array.itemsize
    data = array.tobytes()
    words = [data[i:i + array.itemsize][::-1].hex() for i in range(0, len(data), array.itemsize)]
    assert all(len(w) == width for w in words)
    return "".join(words)


def run(path, stated):
    fields = [field.strip() for field in stated.split(" | ")]
    name, (kernel, _, word) = fields[0], fields[0].partition("/")
    options = dict((field.split(" ", 1) + [""])[:2] for field in fields[2:])
    params = [param.split("=", 1) for param in fields[1].split()]
    args, compared = {}, []
    for param, what in params:
        args[param], dtype, array = argument(what)
        if dtype is not None:
            compared.append((param, dtype, array, ("]:" in what)))
    reference = references.find(path.stem, name, compared[0][1])
    if reference is not None:
        before = {param: array.copy() for param, _, array, _ in compared}
        numbers = {p: v[1] if isinstance(v, tuple) else v for p, v in args.items()
                   if not isinstance(v, (Buffer, TensorDescriptor))}
        inputs = {p: references.decode(d, before[p]) for p, d, _, given in compared if given}
        results = reference(**inputs, **numbers)
        if isinstance(results, dict):
            return [(p, references.encode(d, results[p], encode, NUMPY[d], array.size))
                    for p, d, array, _ in compared if p in results]
        results = results if isinstance(results, tuple) else (results, )
        outputs = [c for c in compared if not c[3]] or [compared[0]]
        assert len(results) == len(outputs), (name, len(results))
        return [(p, references.encode(d, result, encode, NUMPY[d], array.size))
                for (p, d, array, _), result in zip(outputs, results)]
    grid = tuple(int(x) for x in options.get("grid", "1").split(","))
    function = getattr(load(path, word), kernel)
    before = [array.copy() for _, _, array, _ in compared]
    with np.errstate(all="ignore"):
        function[grid](**args)
    return [(p, array) for (p, _, array, given), old in zip(compared, before)
            if not given or array.tobytes() != old.tobytes()]


TORCH = {"i1": "bool", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "u8": "uint8", "u16": "uint16",
         "u32": "uint32", "u64": "uint64", "fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "fp64": "float64",
         "fp8e5": "float8_e5m2", "fp8e4nv": "float8_e4m3fn"}


def compiled(task):
    """What compiled code gives differently from what is stated."""
    path, stated, expected = task
    import torch
    fields = [field.strip() for field in stated.split(" | ")]
    name, (kernel, _, word) = fields[0], fields[0].partition("/")
    options = dict((field.split(" ", 1) + [""])[:2] for field in fields[2:])
    args, tensors = {}, {}

    def tensor(param, dtype, array):
        data = torch.from_numpy(np.ascontiguousarray(array).view(np.uint8).reshape(-1)).cuda()
        tensors[param] = (dtype, data)
        return data.view(getattr(torch, TORCH[dtype]))

    for param, what in (param.split("=", 1) for param in fields[1].split()):
        value, dtype, array = argument(what)
        if isinstance(value, TensorDescriptor):
            base = tensor(param, dtype, array).view(array.shape)
            value = TensorDescriptor(base, value.shape, value.strides, value.block_shape)
        elif dtype is not None:
            value = tensor(param, dtype, array)
        elif isinstance(value, tuple):
            value = float(value[1]) if value[0].startswith("fp") else int(value[1])
        args[param] = value
    try:
        triton.set_allocator(lambda size, align, stream: torch.empty(size, dtype=torch.int8, device="cuda"))
        grid = tuple(int(x) for x in options.get("grid", "1").split(","))
        getattr(load(path, word), kernel)[grid](**args, num_warps=int(options.get("warps", "1")))
        torch.cuda.synchronize()
        wrong = []
        for param, digits in expected:
            dtype, data = tensors[param]
            wrong += gpu.differences(param, dtype, gpu.tolerance_of(stated), data.cpu().numpy().tobytes(), digits)
    except Exception as e:
        wrong = [f"{type(e).__name__}: {str(e)[-160:]}".replace("\n", " ")]
    return f"{path.stem}: {stated}: {'; '.join(wrong[:2])}" if wrong else None


def compare():
    import multiprocessing
    tasks = []
    for path in sorted(HERE.glob("*.py")):
        for line in path.with_suffix(".txt").read_text().splitlines():
            if line.startswith("== "):
                tasks.append((path, line[3:], []))
            elif line.startswith("  "):
                param, digits = tasks[-1][2][-1]
                tasks[-1][2][-1] = (param, digits + line[2:])
            else:
                tasks[-1][2].append(tuple(line.split(" ", 1)))
    with multiprocessing.get_context("spawn").Pool(min(16, os.cpu_count())) as pool:
        found = pool.map(compiled, tasks, chunksize=1)
    wrong = [line for line in found if line]
    print("\n".join(wrong))
    print(f"library by Triton's compiler: {len(tasks) - len(wrong)} right, {len(wrong)} different or refused")


def main():
    if GPU:
        compare()
        return
    names = sys.argv[1:]
    for path in sorted(HERE.glob("*.py")):
        if names and path.stem not in names:
            continue
        lines = []
        for line in path.read_text().splitlines():
            if not line.startswith("# case "):
                continue
            stated = line.removeprefix("# case ")
            try:
                results = run(path, stated)
            except Exception as e:
                print(f"{path.name}: {stated}: {type(e).__name__}: {str(e)[-300:]}", file=sys.stderr)
                continue
            lines.append(f"== {stated}")
            for param, array in results:
                text = f"{param} {hexadecimal(array)}"
                lines.append(text[:120])
                rest = text[120:]
                while rest:
                    lines.append("  " + rest[:118])
                    rest = rest[118:]
        path.with_suffix(".txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
