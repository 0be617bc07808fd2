"""Writes kernels.txt: small inputs for the kernels of examples/kernels and what NumPy computes of them in f64.

    python tests/data/language/make_kernels.py > tests/data/language/kernels.txt
"""
import math

import ml_dtypes
import numpy as np

from cases import ROUNDED, Case, wide
from interpreted import DTYPES

random = np.random.default_rng(20)


def normal(shape, ty="f32"):
    # Few digits, so that the file can be read.
    return np.round(random.normal(size=shape), 3).astype(DTYPES[ty])


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


for ty in ("f32", "f16"):
    x = normal((3, 37), ty)
    (Case("softmax.py", "softmax", [3]).out("out", ty, softmax(wide(x))).data("x", ty, x)
     .number("stride", "i32", 37).number("columns", "i32", 37).constant(64).print())

rows, columns, eps = 4, 45, 1e-5
for ty in ("f32", "bf16"):
    x, w, b = normal((rows, columns), ty), normal(columns, ty), normal(columns, ty)
    v = wide(x)
    mean = v.mean(axis=1)
    scale = 1 / np.sqrt(v.var(axis=1) + eps)
    hat = (v - mean[:, None]) * scale[:, None]
    (Case("norm.py", "layer_norm", [rows], 2).out("out", ty, hat * wide(w) + wide(b), "rel 5e-3 abs 1e-2" if ty == "bf16" else "rel 4e-6 abs 4e-6")
     .out("mean_out", "f32", mean).out("scale_out", "f32", scale).data("x", ty, x).data("weight", ty, w).data("bias", ty, b)
     .number("stride", "i32", columns).number("columns", "i32", columns).number("eps", "f32", eps).constant(64).print())

x, d, w = normal((rows, columns)), normal((rows, columns)), normal(columns)
v, dv, wv = wide(x), wide(d), wide(w)
mean = v.mean(axis=1).astype(np.float32)
scale = (1 / np.sqrt(v.var(axis=1) + eps)).astype(np.float32)
hat = (v - wide(mean)[:, None]) * wide(scale)[:, None]
wd = wv * dv
dx = (wd - (hat * (hat * wd).mean(axis=1, keepdims=True) + wd.mean(axis=1, keepdims=True))) * wide(scale)[:, None]
groups = 2
dw = np.stack([(dv * hat)[g::groups].sum(axis=0) for g in range(groups)])
db = np.stack([dv[g::groups].sum(axis=0) for g in range(groups)])
(Case("norm.py", "layer_norm_backward", [rows], 2).out("dx", "f32", dx, "rel 1e-5 abs 1e-5")
 .data("dweight", "f32", np.zeros((groups, columns)), dw, "rel 1e-5 abs 1e-5")
 .data("dbias", "f32", np.zeros((groups, columns)), db, "rel 1e-5 abs 1e-5")
 .data("lock", "i32", np.zeros(2 * groups)).data("dout", "f32", d).data("x", "f32", x).data("weight", "f32", w)
 .data("mean", "f32", mean).data("scale", "f32", scale).number("stride", "i32", columns).number("columns", "i32", columns)
 .constant(groups).constant(64).print())
x = normal((5, 20))
(Case("norm.py", "sum_groups", [2]).out("out", "f32", wide(x).sum(axis=0)).data("x", "f32", x).number("groups", "i32", 5)
 .number("columns", "i32", 20).constant(4).constant(16).print())

for ty in ("f32", "f16", "bf16"):
    x, w = normal((3, 50), ty), normal(50, ty)
    v = wide(x)
    y = v / np.sqrt((v * v).mean(axis=1, keepdims=True) + 1e-6) * wide(w)
    (Case("norm.py", "rms_norm", [3]).out("out", ty, y).data("x", ty, x).data("weight", ty, w).number("stride", "i32", 50)
     .number("columns", "i32", 50).number("eps", "f32", 1e-6).constant(64).print())

images, groups, per, pixels = 2, 2, 3, 14
x, w, b = normal((images, groups, per, pixels)), normal(groups * per), normal(groups * per)
v = wide(x)
mean, var = v.mean(axis=(2, 3), keepdims=True), v.var(axis=(2, 3), keepdims=True)
y = (v - mean) / np.sqrt(var + eps) * wide(w).reshape(1, groups, per, 1) + wide(b).reshape(1, groups, per, 1)
(Case("norm.py", "group_norm", [images, groups]).out("out", "f32", y, "rel 1e-5 abs 1e-5").data("x", "f32", x)
 .data("weight", "f32", w).data("bias", "f32", b).number("groups", "i32", groups).number("group_channels", "i32", per)
 .number("pixels", "i32", pixels).number("eps", "f32", eps).constant(32).print())

tokens, heads, half = 3, 2, 8
x = normal((tokens, heads, 2, half))
angle = np.arange(tokens)[:, None] / 10 ** (np.arange(half) / half)
c, s = np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)
v = wide(x)
a, b2 = v[:, :, 0], v[:, :, 1]
cw, sw = wide(c)[:, None], wide(s)[:, None]
y = np.stack([a * cw - b2 * sw, b2 * cw + a * sw], axis=2)
(Case("transformer.py", "rotary", [tokens], 1).data("x", "f32", x, y, ROUNDED["f32"]).data("cos", "f32", c).data("sin", "f32", s)
 .number("heads", "i32", heads).constant(half).print())

for ty in ("f32", "f16"):
    g, u = normal((2, 40), ty), normal((2, 40), ty)
    silu = wide(g) / (1 + np.exp(-wide(g)))
    (Case("transformer.py", "swiglu", [2, 2]).out("out", ty, silu * wide(u), "rel 1.5e-3 abs 1e-6" if ty == "f16" else None)
     .data("gate", ty, g).data("up", ty, u).number("columns", "i32", 40).constant(32).print())

table, index = normal((6, 20), "f16"), np.array([4, 0, 5, 4])
(Case("transformer.py", "embedding", [4]).out("out", "f16", table[index], "exact").data("table", "f16", table)
 .data("index", "i64", index).number("rows", "i32", 6).number("columns", "i32", 20).constant(16).print())


def philox(seed, counter):
    """The first word of ten rounds of Philox 4x32 for a 32-bit seed and counter."""
    c, k = [counter, 0, 0, 0], [seed, 0]
    for _ in range(10):
        low, high = c[0] * 0xD2511F53, c[2] * 0xCD9E8D57
        c = [(high >> 32) ^ c[1] ^ k[0], high & 0xFFFFFFFF, (low >> 32) ^ c[3] ^ k[1], low & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c[0]


def uniform(word):
    number = word - (1 << 32) if word >= 1 << 31 else word
    number = -number - 1 if number < 0 else number
    return float(np.float32(number) * np.float32(4.6566127342e-10))


n, p = 50, 0.4
x = normal(n)
keep = np.array([uniform(philox(99, i)) > np.float32(p) for i in range(n)])
assert 20 < keep.sum() < 40
(Case("transformer.py", "dropout", [2]).out("out", "f32", np.where(keep, wide(x) / (1 - wide(np.float32(p))), 0.0), "rel 3e-7 abs 0")
 .data("x", "f32", x).number("n", "i32", n).number("p", "f32", p).number("seed", "i32", 99).constant(32).print())

x, target = 3 * normal((4, 45)), np.array([3, -100, 44, 0])
x = np.round(x, 3)
v = wide(x)
probability = softmax(v)
loss = np.log(np.exp(v).sum(axis=1)) - v[np.arange(4), np.maximum(target, 0)]
gradient = probability - np.eye(45)[np.maximum(target, 0)]
loss[1], gradient[1] = 0, 0
(Case("transformer.py", "cross_entropy", [4]).out("loss", "f32", loss, "rel 4e-6 abs 4e-6")
 .data("logits", "f32", x, gradient, "rel 4e-6 abs 4e-7").data("target", "i64", target).number("stride", "i32", 45)
 .number("columns", "i32", 45).number("ignored", "i32", -100).constant(16).print())

x = normal((2, 30))
scale = np.abs(x).max(axis=1) / np.float32(127.0)
q = np.rint(x / scale[:, None]).astype(np.int8)
(Case("quantize.py", "quantize_rows", [2], 1).out("out", "i8", q, "exact").out("scales", "f32", scale, "rel 2e-7 abs 0")
 .data("x", "f32", x).number("columns", "i32", 30).constant(32).print())
(Case("quantize.py", "dequantize_rows", [2], 1).out("out", "f32", q * scale[:, None], "exact").data("x", "i8", q)
 .data("scales", "f32", scale).number("columns", "i32", 30).constant(32).print())

n, block, largest = 50, 32, 57344.0
x = normal(n)
padded = np.zeros(64, np.float32)
padded[:n] = x
scale = np.abs(padded.reshape(2, block)).max(axis=1) / np.float32(largest)
q = (padded.reshape(2, block) / scale[:, None]).astype(ml_dtypes.float8_e5m2).reshape(-1)[:n]
(Case("quantize.py", "quantize_blocks", [2], 1).out("out", "i8", q.view(np.int8), "exact", "*fp8e5")
 .out("scales", "f32", scale, "rel 2e-7 abs 0").data("x", "f32", x).number("n", "i32", n).constant(largest).constant(block).print())
y = wide(q) * np.repeat(wide(scale), block)[:n]
(Case("quantize.py", "dequantize_blocks", [2], 1).out("out", "f32", y, "rel 1e-7 abs 0").data("x", "i8", q.view(np.int8), pointer="*fp8e5")
 .data("scales", "f32", scale).number("n", "i32", n).constant(block).print())

x = normal((2, 27))
order = np.argsort(-x, axis=1, kind="stable")[:, :4]
(Case("order.py", "top_k", [2], 1).out("values", "f32", np.take_along_axis(x, order, axis=1), "exact").out("indices", "i32", order, "exact")
 .data("x", "f32", x).number("columns", "i32", 27).constant(4).constant(32).print())

x = normal((2, 45))
(Case("order.py", "cumulative_sum", [2], 1).out("out", "f32", np.cumsum(wide(x), axis=1), "rel 4e-6 abs 1e-5").data("x", "f32", x)
 .number("columns", "i32", 45).constant(16).print())

x = random.integers(0, 16, 90)
count = np.bincount(x, minlength=16)
(Case("order.py", "histogram", [2]).data("out", "i32", np.zeros(16), count, "exact").data("x", "i32", x).number("n", "i32", 90)
 .constant(16).constant(64).print())
(Case("order.py", "bincount", [2]).data("out", "i32", np.zeros(16), count, "exact").data("x", "i32", x).number("n", "i32", 90)
 .constant(64).print())

n, rate, b1, b2, decay, step = 40, 1e-2, 0.9, 0.999, 0.1, 3
p, g, m, v = normal(n), normal(n), normal(n), np.abs(normal(n))
c1, c2 = np.float32(1 - b1 ** step), np.float32(1 - b2 ** step)
f = lambda number: float(np.float32(number))
p1 = wide(p) * (1 - f(rate) * f(decay))
m1 = f(b1) * wide(m) + (1 - f(b1)) * wide(g)
v1 = f(b2) * wide(v) + (1 - f(b2)) * wide(g) ** 2
p1 -= f(rate) * (m1 / float(c1)) / (np.sqrt(v1 / float(c2)) + f(1e-8))
(Case("optimize.py", "adam", [2]).data("param", "f32", p, p1, "rel 2e-6 abs 1e-6").data("grad", "f32", g).data("m", "f32", m, m1, "rel 1e-6 abs 1e-6")
 .data("v", "f32", v, v1, "rel 1e-6 abs 1e-6").number("n", "i32", n).number("rate", "f32", rate).number("beta1", "f32", b1)
 .number("beta2", "f32", b2).number("eps", "f32", 1e-8).number("decay", "f32", decay).number("correction1", "f32", c1)
 .number("correction2", "f32", c2).constant(32).print())

x = normal(150)
total = wide(x).sum()
(Case("optimize.py", "sum_atomic", [5]).data("out", "f32", [0], np.array([total]), "rel 1e-5 abs 1e-5").data("x", "f32", x)
 .number("n", "i32", 150).constant(32).print())
(Case("optimize.py", "sum_last", [5]).out("out", "f32", np.array([total]), "rel 1e-5 abs 1e-5").data("partial", "f32", np.zeros(5))
 .data("count", "i32", [0], np.array([0]), "exact").data("x", "f32", x).number("n", "i32", 150).constant(32).constant(8).print())
x = normal((4, 20))
(Case("optimize.py", "max_locked", [4], 1).data("out", "f32", np.full(20, -math.inf), x.max(axis=0), "exact").data("lock", "i32", [0], np.array([0]), "exact")
 .data("x", "f32", x).number("columns", "i32", 20).constant(32).print())
