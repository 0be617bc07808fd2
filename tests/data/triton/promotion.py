"""Writes promotion.txt: the types that Triton gives to expressions, or `error` where it refuses them.

Each line reads `A B | expression | type`; x and y are blocks of the element types A and B, s and t scalars of them. The
test `front_types` makes the same kernels and compares. Made with Triton 3.6.0; needs no GPU:

    python tests/data/triton/promotion.py > tests/data/triton/promotion.txt
"""

import contextlib
import io
import itertools
import linecache

import triton
from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.backends.nvidia.compiler import CUDABackend
from triton.compiler import ASTSource

DTYPES = ["i1", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "fp16", "bf16", "fp32", "fp64"]
PAIRS = ["x + y", "x * t", "x / y", "x // y", "x % y", "x & y", "x >> y", "x < y", "tl.where(x != 0, x, y)",
         "tl.minimum(x, y)", "tl.maximum(s, y)"]
SINGLES = ["x + 1", "x * 0.5", "2 - x", "x / 2", "x // 2", "x % 3", "x & 7", "x >> 1", "x < 1.5", "x == 1", "x + half",
           "x * two", "two / x", "tl.minimum(x, 0)", "tl.maximum(x, 0.0)", "tl.where(x > 0, x, 0)",
           "tl.where(x > 0, x, 0.0)", "tl.where(x > 0, 1, 0)", "tl.sum(x, 0)", "tl.max(x, 0)", "tl.min(x, 0)",
           "tl.argmax(x, 0)", "tl.xor_sum(x, 0)", "-x", "~x", "not x", "tl.abs(x)", "tl.exp(x)", "tl.sqrt(x)",
           "tl.floor(x)", "tl.sigmoid(x)", "tl.clamp(x, 0.0, 1.0)", "tl.cdiv(x, 2)", "tl.zeros_like(x)",
           "tl.fma(x, x, x)", "x + 3000000000", "x + (-1)", "p + x", "x.to(tl.int1)", "float(s)", "int(s)", "x + True",
           "tl.full((4,), 1, x.dtype)", "x and x", "x or True", "two // two / two", "half * two"]
HEADER = """
import triton
import triton.language as tl

"""

backend = CUDABackend(GPUTarget("cuda", 90, 32))
options = backend.parse_options({})
counter = itertools.count()


def result(first, second, expression):
    name = f"<probe {next(counter)}>"
    text = HEADER + f"""@triton.jit
def probe(p, q):
    two = 2
    half = 0.5
    x = tl.load(p + tl.arange(0, 4))
    y = tl.load(q + tl.arange(0, 4))
    s = tl.load(p)
    t = tl.load(q)
    r = {expression}
    tl.static_print(r.dtype)
"""
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    scope = {}
    exec(compile(text, name, "exec"), scope)
    source = ASTSource(scope["probe"], {"p": f"*{first}", "q": f"*{second}"}, {}, {})
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
            source.make_ir(backend.target, options, backend.get_codegen_implementation(options),
                           backend.get_module_map(), context)
    except Exception:
        return "error"
    return out.getvalue().split("\n")[0].strip()


for first in DTYPES:
    for expression in SINGLES:
        print(f"{first} {first} | {expression} | {result(first, first, expression)}", flush=True)
    for second in DTYPES:
        for expression in PAIRS:
            print(f"{first} {second} | {expression} | {result(first, second, expression)}", flush=True)
