"""Writes products.txt: small inputs for the products and the attention of examples/kernels, and what NumPy computes of them.

    python tests/data/language/make_products.py > tests/data/language/products.txt

Factors of products are small integers, so that sums are exact in every type and order.
"""
import math

import numpy as np

from cases import Case, wide
from interpreted import DTYPES

random = np.random.default_rng(21)
BLOCKS = (32, 32, 16)


def whole(shape, ty="f16", least=-3, most=3):
    return random.integers(least, most + 1, shape).astype(DTYPES[ty])


def normal(*shape, ty="f16"):
    return np.round(random.normal(size=shape), 2).astype(DTYPES[ty])


def gelu(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def few(x):
    # Fewer digits than the bounds.
    return np.vectorize(lambda v: float(f"{v:.6g}"))(x)


def matmul(m, n, k, ty, out, blocks=BLOCKS, transposed=False, total="fp32", precision="tf32", pointer=None, warps=4):
    a, b = whole((m, k), ty), whole((k, n), ty)
    c = wide(a) @ wide(b)
    stored = [x.astype(np.float32) for x in (a, b)]
    if pointer:  # numbers of eight bits whose integers up to 3 have these bytes
        code = {0: 0, 1: 0x38, 2: 0x40, 3: 0x44}
        stored = [np.vectorize(lambda x: code[abs(int(x))] - (128 if x < 0 else 0))(x) for x in stored]
        ty = "i8"
    case = Case("matmul.py", "matmul", [-(-m // blocks[0]) * -(-n // blocks[1])], warps, "sm_89" if pointer else None)
    case.data("a", ty, stored[0], pointer=pointer)
    case.data("b", ty, stored[1].T if transposed else stored[1], pointer=pointer).out("c", out, c, "exact")
    for name, x in (("M", m), ("N", n), ("K", k), ("stride_a", k), ("stride_bk", 1 if transposed else n), ("stride_bn", k if transposed else 1),
                    ("stride_c", n)):
        case.one() if name in ("stride_bk", "stride_bn") and x == 1 else case.number(name, "i32", x)
    for x in (*blocks, 2, total, f"'{precision}'"):
        case.constant(x)
    case.print()


matmul(40, 24, 40, "f16", "f16")
matmul(33, 48, 24, "bf16", "f32", transposed=True)
matmul(32, 32, 32, "f32", "f32")
matmul(32, 16, 24, "f32", "f32", precision="ieee", warps=2)
matmul(32, 40, 48, "i8", "i32", blocks=(32, 32, 32), total="i32", transposed=True)
matmul(32, 24, 64, "i8", "i32", blocks=(32, 32, 32), total="i32")
matmul(32, 32, 48, "f16", "f16", blocks=(32, 32, 32), transposed=True, pointer="*fp8e4nv")
matmul(32, 16, 32, "f16", "f16", blocks=(32, 32, 32), pointer="*fp8e4nv")

x, w = whole((2, 40, 24)), whole((2, 24, 24))
(Case("matmul.py", "batched_matmul", [2, 2]).out("out", "f16", wide(x) @ wide(w).transpose(0, 2, 1), "exact").data("x", "f16", x)
 .data("weight", "f16", w).number("M", "i32", 40).number("N", "i32", 24).number("K", "i32", 24).constant(32).constant(32).constant(16)
 .constant(2).print())

a, b = whole((5, 80)), whole((80, 40))
(Case("matmul.py", "thin_matmul", [2, 2]).data("a", "f16", a).data("b", "f16", b).data("c", "f32", np.zeros((5, 40)), wide(a) @ wide(b), "exact")
 .number("M", "i32", 5).number("N", "i32", 40).number("K", "i32", 80).constant(16).constant(32).constant(16).constant(2).print())

x, w, bias = whole((40, 32)), whole((32, 24)), whole(24)
y = wide(x) @ wide(w) + wide(bias)
(Case("linear.py", "linear_gelu", [2]).data("weight", "f16", w).data("bias", "f16", bias).data("x", "f16", x)
 .out("out", "f16", few(gelu(y)), "rel 6e-4 abs 1e-6").number("features", "i32", 32).number("outputs", "i32", 24).number("tokens", "i32", 40)
 .constant(16).constant(32).constant(32).constant(2).print())

a, w = whole((64, 32)), whole((32, 32))
y = 0.5 * (wide(a) @ wide(w))
(Case("linear.py", "scaled_leaky_relu", [2]).out("y", "f16", np.where(y >= 0, y, 0.25 * y), "exact").number("scale", "f32", 0.5)
 .number("slope", "f32", 0.25).data("w", "f16", w).data("a", "f16", a).number("J", "i32", 32).number("I", "i32", 64).number("L", "i32", 32)
 .constant(32).constant(32).constant(16).constant(2).print())

f, p, shift = whole((40, 24)), whole((24, 24)), whole(40)
y = wide(f) @ wide(p) + wide(shift)[:, None]
(Case("linear.py", "row_bias_silu", [2]).data("filters", "f16", f).data("pixels", "f16", p).out("planes", "f16", few(y / (1 + np.exp(-y))), "rel 6e-4 abs 1e-6")
 .data("shift", "f16", shift).number("channels", "i32", 40).number("positions", "i32", 24).number("taps", "i32", 24).constant(2)
 .constant(32).constant(32).constant(16).print())

rows, features, outputs = 32, 64, 32
x, w, bias = normal(rows, features), normal(features, outputs), normal(outputs)
sums = wide(w).sum(0).astype(np.float16)
v = wide(x)
y = (v @ wide(w) - v.mean(1, keepdims=True) * wide(sums)) / np.sqrt(v.var(1, keepdims=True) + 1e-5) + wide(bias)
# What is expected is rounded to f16, too, and may be the other neighbour. Sums in f16 are rounded after each step, by up to
# 2^-7 at their size of up to 32.
for total, bound in (("fp32", "rel 1e-3 abs 2e-4"), ("fp16", "rel 2e-3 abs 6e-2")):
    case = Case("linear.py", "layer_norm_linear_gelu", [2, 2]).out("out", "f16", few(gelu(y)), bound).data("x", "f16", x).data("weight", "f16", w)
    case.data("sums", "f16", sums).data("bias", "f16", bias).number("eps", "f32", 1e-5)
    for constant in (16, 16, 32, features, outputs, total):
        case.constant(constant)
    case.print()

length, d = 64, 16
q, k, v, dout = (normal(1, length, d) for _ in range(4))
for causal in (False, True):
    scores = wide(q) @ wide(k).transpose(0, 2, 1) / math.sqrt(d)
    if causal:
        scores = np.where(np.tri(length, dtype=bool), scores, -np.inf)
    logs = np.log(np.exp(scores).sum(-1))
    p = np.exp(scores - logs[..., None])
    out = p @ wide(v)
    scale, base = math.log2(math.e) / math.sqrt(d), math.log2(math.e)

    def numbers(case, *blocks):
        case.number("N", "i32", length).number("scale", "f32", scale)
        for constant in (*blocks, d, causal):
            case.constant(constant)
        case.print()
    # Probabilities, or their derivatives, are rounded to f16 and summed up over 64 columns or rows.
    case = Case("attention.py", "forward", [2, 1]).out("out", "f16", few(out), "rel 1e-3 abs 1e-3").out("logs", "f32", few(logs * base), "rel 1e-5 abs 1e-5")
    for name, x in zip("qkv", (q, k, v)):
        case.data(name, "f16", x)
    numbers(case, 32, 16)
    delta = (out * wide(dout)).sum(-1)
    if not causal:
        (Case("attention.py", "preprocess", [2]).out("delta", "f32", few((wide(out.astype(np.float16)) * wide(dout)).sum(-1)), "rel 1e-5 abs 1e-5")
         .data("out", "f16", out.astype(np.float16)).data("dout", "f16", dout).constant(32).constant(d).print())
    dp = wide(dout) @ wide(v).transpose(0, 2, 1)
    ds = p * (dp - delta[..., None])
    case = Case("attention.py", "backward_keys", [2, 1])
    case.out("dk", "f16", few(ds.transpose(0, 2, 1) @ wide(q) / math.sqrt(d)), "rel 1e-3 abs 2e-3")
    case.out("dv", "f16", few(p.transpose(0, 2, 1) @ wide(dout)), "rel 1e-3 abs 2e-3")
    rest = (("q", "f16", q), ("k", "f16", k), ("v", "f16", v), ("dout", "f16", dout), ("logs", "f32", few(logs * base)), ("delta", "f32", few(delta)))
    for name, ty, x in rest:
        case.data(name, ty, x)
    numbers(case, 16, 32)
    case = Case("attention.py", "backward_rows", [2, 1]).out("dq", "f16", few(ds @ wide(k) / math.sqrt(d)), "rel 1e-3 abs 2e-3")
    for name, ty, x in rest:
        case.data(name, ty, x)
    numbers(case, 32, 16)

for m, n, k, ty, turned in ((40, 24, 40, "f16", False), (33, 48, 24, "bf16", True)):
    a, b = whole((m, k), ty), whole((k, n), ty)
    case = Case("matmul.py", "matmul_descriptors", [-(-m // BLOCKS[0]) * -(-n // BLOCKS[1])]).data("a", ty, a)
    case.data("b", ty, b.T if turned else b).out("c", "f32", wide(a) @ wide(b), "exact")
    for name, number in (("M", m), ("N", n), ("K", k), ("stride_a", k), ("stride_b", k if turned else n), ("stride_c", n)):
        case.number(name, "i32", number)
    for constant in (*BLOCKS, 2, turned, "fp32", "'tf32'"):
        case.constant(constant)
    case.print()

heads, length, d, e = 2, 64, 16, 32
q, k, v = normal(heads, length, d), normal(heads, length, d), normal(heads, length, e)
decays = np.array([0.0, -0.125], np.float32)
gates = np.round(-random.random((heads, length)), 3).astype(np.float32)
for kernel, logs in (("retention", np.arange(1, length + 1) * decays[:, None]), ("gated", gates.cumsum(1))):
    decay = np.exp2(np.where(np.tri(length, dtype=bool), logs[:, :, None] - logs[:, None, :], -np.inf))
    out = (wide(q) @ wide(k).transpose(0, 2, 1) * decay) @ wide(v)
    # Scores, the state and what is added to it are rounded to f16: of 64 terms of size 4 by parts of 2^-11 each.
    case = Case("recurrent.py", kernel, [2, heads]).out("out", "f32", few(out), "rel 2e-3 abs 6e-2").data("q", "f16", q).data("k", "f16", k).data("v", "f16", v)
    case.data("decays", "f32", decays) if kernel == "retention" else case.data("gates", "f32", gates)
    case.number("length", "i32", length)
    for constant in (d, e, 16, 16):
        case.constant(constant)
    case.print()

batch, height, width, channels, filters, side = 2, 5, 7, 32, 24, 3
x, w = whole((batch, height, width, channels)), whole((filters, side, side, channels))
padded = np.pad(wide(x), ((0, 0), (1, 1), (1, 1), (0, 0)))
out = sum(padded[:, i : i + height, j : j + width] @ wide(w)[:, i, j].T for i in range(side) for j in range(side))
case = Case("recurrent.py", "convolve", [3, 2]).out("out", "f32", out, "exact").data("x", "f16", x).data("w", "f16", w)
for name, number in (("batch", batch), ("height", height), ("width", width), ("channels", channels), ("filters", filters)):
    case.number(name, "i32", number)
for constant in (side, 32, 16, 16):
    case.constant(constant)
case.print()
