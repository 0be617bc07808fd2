"""Runs kernels on Triton's interpreter with NumPy arrays, and writes cases for the test `language`."""
import os

os.environ["TRITON_INTERPRET"] = "1"

import ml_dtypes  # noqa: E402
import numpy as np  # noqa: E402

NAMES = {"f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64", "i1": "bool",
         "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64",
         "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64"}
DTYPES = {name: np.dtype(ml_dtypes.bfloat16 if name == "bf16" else long) for name, long in NAMES.items()}


def _patch():
    """Lets scalars be indices, which they are not where NumPy converts arrays of no dimension only (from 2.4 on)."""
    from triton.runtime import interpreter
    original = interpreter._patch_lang_tensor

    def patch(tensor, scope):
        original(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.item()))

    interpreter._patch_lang_tensor = patch


_patch()
# The types of arguments in a file of cases: by width alone.
BITS = {"u8": "i8", "u16": "i16", "u32": "i32", "u64": "i64", "i1": "i8"}


class Array:
    """An array with as much of a tensor's interface as the interpreter asks for."""

    def __init__(self, data, name):
        self.data, self.name, self.dtype = data, name, "torch." + NAMES[name]

    def data_ptr(self):
        return self.data.ctypes.data

    def untyped_storage(self):
        return self

    def cpu(self):
        return self

    def new_empty(self, *_, **__):
        return Array(self.data, self.name)

    def set_(self, storage, *_):
        self.data = storage.data

    def storage_offset(self):
        return 0

    def size(self):
        return self.data.shape

    def stride(self):
        return (1,)

    def copy_(self, other):
        assert other.data is self.data


def written(value, name):
    if name.startswith(("i", "u")):
        bits = np.asarray(value).astype(DTYPES[name])
        return str(int(bits.view(DTYPES[BITS.get(name, name)]) if name in BITS else bits))
    x = float(value)
    if name == "f64":
        return repr(x)
    if x == int(x) if abs(x) < 1e7 else False:
        return "-0" if x == 0 and np.signbit(x) else str(int(x))
    # The shortest text that the format reads back as the number.
    for digits in range(1, 18):
        text = f"{x:.{digits}g}"
        if float(np.asarray(float(text), dtype=DTYPES[name])) == x:
            return text
    return repr(x)


def values(array, name):
    return " ".join(written(v, name) for v in array.reshape(-1))


def line(name, ty, array, poison, expected, bound):
    """A line of a case for a buffer."""
    shown = BITS.get(ty, ty)
    given = f"poison {array.size}" if poison else "= " + values(array, ty)
    text = f"{name} {shown} {given}"
    return text if expected is None else f"{text} -> {bound} : {values(expected, ty)}"
