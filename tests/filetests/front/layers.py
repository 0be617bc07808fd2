# Kernels in the style of real ones, and the traps of types and numbers.
# run: layer_norm "*fp32:16, *fp32:16, *fp32:16, *fp32:16, i32, i32, 1e-5, 256" : grid(3) out=f32[900] poison x=f32[900] normal(5) weight=f32[300] normal(6) bias=f32[300] normal(7) stride=300 n=300 ; expect out within abs 1e-5
# run: layer_norm "*fp32, *fp32, *fp32, *fp32, i32, i32, 0.0, 4" : grid(1) out=f32[4] poison x=f32[4] [1,3,1,3] weight=f32[4] [1,1,2,2] bias=f32[4] [0,0,0,10] stride=4 n=4 ; expect out = [-1,1,-2,12]
# run: gelu "*fp16:16, *fp16:16, i32, 256" : grid(4) out=f16[1000] poison x=f16[1000] uniform(8,-4,4) n=1000 ; expect out within ulp 2
# run: rms_norm "*bf16:16, *bf16:16, *bf16:16, i32, fp32, 512" : grid(2) out=bf16[1000] poison x=bf16[1000] normal(9) weight=bf16[500] normal(10) n=500 eps=1e-6 ; expect out within ulp 2
# run: swiglu "*fp32, *fp32, *fp32, i32, 128" : grid(2) out=f32[200] poison a=f32[200] normal(11) b=f32[200] normal(12) n=200 ; expect out within rel 1e-5
# run: rotary "*fp32, *fp32, *fp32, 8" : grid(1) x=f32[16] iota(0) cos=f32[8] zeros sin=f32[8] const(1) ; expect x = [-8,-9,-10,-11,-12,-13,-14,-15,0,1,2,3,4,5,6,7]
# run: gather_rows "*fp32, *fp32, *i64, 4" : grid(3) out=f32[12] poison table=f32[20] iota(0) index=i64[3] [4,0,2] ; expect out = [16,17,18,19,0,1,2,3,8,9,10,11]
# run: quantize "*i8, *fp32, *fp32, 8" : grid(1) out=i8[8] poison scale=f32[1] poison x=f32[8] [1,-2,3,-4,127,-127,0.4,0.6] ; expect out = [1,-2,3,-4,127,-127,0,1] ; expect scale = [1]
# run: cross_entropy "*fp32, *fp32, *i64, i32, 8" : grid(2) loss=f32[2] poison logits=f32[10] [0,0,0,0,0,1,2,3,4,5] target=i64[2] [3,-100] n=5 ; expect loss within abs 1e-5
# run: mean_variance "*fp32, *fp32, 16" : grid(1) out=f32[3] poison x=f32[16] iota(0) ; expect out = [7.5,340,16]
# run: extremes "*i32, *fp32" : grid(1) out=i32[8] poison x=f32[8] [3,9,-4,9,-4,0,1,2] ; expect out = [1,3,2,4,9,-4,9,1]
# run: division "*i32, i32, i32" : grid(1) out=i32[8] poison a=-7 b=2 ; expect out = [-3,-1,-4,1,-3,-1,-4,1]
# run: conversions "*i32, *fp32, *i8, *u8" : grid(1) out=i32[8] poison x=f32[2] [2.75,-2.75] s=i8[1] [-1] u=i8[1] [-1] ; expect out = [2,-2,-1,255,1,-1,-1,65535]
# run: offsets "*i32, *i32, u32" : grid(1) out=i32[2] poison x=i32[4] [1,2,3,4] n=3 ; expect out = [4,1]
# run: comparisons "*i32, *fp16, u32" : grid(1) out=i32[4] poison x=f16[1] [0.1] n=5 ; expect out = [1,0,0,1]
# run: nans "*i32, *fp32" : grid(1) out=i32[6] poison x=f32[2] [nan,1] ; expect out = [1,0,0,0,1,1]
# run: logic "*i32, i32, i32" : grid(1) out=i32[8] poison a=5 b=0 ; expect out = [1,0,0,1,1,0,7,1]
# run: three_dims "*i32" : grid(1) out=i32[3] poison ; expect out = [276,552,3]
# tile: strength "*fp16, *fp16"
import math

import triton
import triton.language as tl
from triton.language.extra import libdevice

INV_SQRT2 = 1 / math.sqrt(2.0)
LOG2E: tl.constexpr = tl.constexpr(1.4426950408889634)


@triton.jit
def layer_norm(out, x, weight, bias, stride, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    out += row * stride
    x += row * stride
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(x + at, mask=at < n, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / n
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        v = tl.load(x + at, mask=at < n, other=0.0).to(tl.float32)
        v = tl.where(at < n, v - mean, 0.0)
        total += v * v
    scale = 1 / tl.sqrt(tl.sum(total, axis=0) / n + eps)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        mask = at < n
        w = tl.load(weight + at, mask=mask)
        b = tl.load(bias + at, mask=mask)
        v = tl.load(x + at, mask=mask, other=0.0).to(tl.float32)
        tl.store(out + at, (v - mean) * scale * w + b, mask=mask)


@triton.jit
def gelu_exact(v):
    return 0.5 * v * (1.0 + tl.erf(v * INV_SQRT2))


@triton.jit
def gelu(out, x, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n).to(tl.float32)
    tl.store(out + at, gelu_exact(v), mask=at < n)


@triton.jit
def rms_norm(out, x, weight, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    mask = at < n
    v = tl.load(x + row * n + at, mask=mask, other=0).to(tl.float32)
    w = tl.load(weight + at, mask=mask)
    scale = tl.rsqrt(tl.sum(v * v) / n + eps)
    tl.store(out + row * n + at, v * scale * w, mask=mask)


@triton.jit
def silu(v):
    return v * tl.sigmoid(v)


@triton.jit
def swiglu(out, a, b, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out + at, silu(tl.load(a + at, mask)) * tl.load(b + at, mask), mask)


@triton.jit
def rotary(x, cos, sin, HALF: tl.constexpr):
    at = tl.arange(0, HALF)
    c, s = tl.load(cos + at), tl.load(sin + at)
    first, second = tl.load(x + at), tl.load(x + HALF + at)
    tl.store(x + at, first * c - second * s)
    tl.store(x + HALF + at, second * c + first * s)


@triton.jit
def gather_rows(out, table, index, N: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, N)
    tl.store(out + row * N + at, tl.load(table + tl.load(index + row) * N + at))


@triton.jit
def quantize(out, scale, x, N: tl.constexpr):
    at = tl.arange(0, N)
    v = tl.load(x + at)
    s = tl.max(tl.abs(v), 0) / 127.0
    tl.store(scale, s)
    tl.store(out + at, libdevice.rint(v / s).to(tl.int8))


@triton.jit
def cross_entropy(loss, logits, target, n, BLOCK: tl.constexpr, IGNORE: tl.constexpr = -100):
    row = tl.program_id(0)
    label = tl.load(target + row)
    if label == IGNORE:
        tl.store(loss + row, 0.0)
        return
    at = tl.arange(0, BLOCK)
    v = tl.load(logits + row * n + at, mask=at < n, other=-float("inf"))
    largest = tl.max(v, 0)
    total = tl.sum(tl.exp2((v - largest) * LOG2E), 0)
    tl.store(loss + row, tl.log(total) + largest - tl.load(logits + row * n + label))


@triton.jit
def welford(mean_a, m2_a, weight_a, mean_b, m2_b, weight_b):
    delta = mean_b - mean_a
    weight = weight_a + weight_b
    ratio = weight_b / weight
    return mean_a + delta * ratio, m2_a + m2_b + delta * delta * weight_a * ratio, weight


@triton.jit
def mean_variance(out, x, N: tl.constexpr):
    v = tl.load(x + tl.arange(0, N))
    mean, m2, weight = tl.reduce((v, tl.zeros_like(v), tl.full((N,), 1.0, tl.float32)), 0, welford)
    tl.store(out, mean)
    tl.store(out + 1, m2)
    tl.store(out + 2, weight)


@triton.jit
def extremes(out, x):
    v = tl.load(x + tl.arange(0, 8))
    tl.store(out, tl.argmax(v, 0))
    tl.store(out + 1, tl.argmax(v[None, :], 1, tie_break_left=True).sum() + 2)
    tl.store(out + 2, tl.argmin(v, axis=0))
    tl.store(out + 3, tl.max(tl.where(v == tl.min(v, 0), tl.arange(0, 8), 0), 0))
    value, index = tl.max(v, 0, return_indices=True)
    tl.store(out + 4, value)
    tl.store(out + 5, v.min())
    tl.store(out + 6, max(v.max(0), 2.0))
    tl.store(out + 7, index)


@triton.jit
def division(out, a, b):
    tl.store(out, a // b)
    tl.store(out + 1, a % b)
    tl.store(out + 2, -7 // 2)
    tl.store(out + 3, -7 % 2)
    c = -7
    tl.store(out + 4, c // 2)
    tl.store(out + 5, c % 2)
    d: tl.constexpr = -7
    tl.store(out + 6, d // 2)
    tl.store(out + 7, d % 2)


@triton.jit
def conversions(out, x, s, u):
    tl.store(out, tl.load(x).to(tl.int32))
    tl.store(out + 1, tl.load(x + 1))
    tl.store(out + 2, tl.load(s))
    tl.store(out + 3, tl.load(u).to(tl.int32))
    tl.store(out + 4, tl.load(u).to(tl.int1))
    tl.store(out + 5, tl.load(s).to(tl.int16).to(tl.uint16, bitcast=True).to(tl.int16))
    tl.store(out + 6, tl.load(u).to(tl.int8, bitcast=True))
    tl.store(out + 7, tl.load(s).to(tl.uint16))


@triton.jit
def offsets(out, x, n):
    tl.store(out, tl.load(x + n))
    pointer = x + 1
    tl.store(out + 1, tl.load(pointer - 1))


@triton.jit
def comparisons(out, x, n):
    v = tl.load(x)
    # 0.1 is not the same number in 16 and in 32 bits.
    tl.store(out, v < 0.1)
    tl.store(out + 1, v == 0.1)
    tl.store(out + 2, n > -1)
    tl.store(out + 3, n != -1)


@triton.jit
def nans(out, x):
    nan, one = tl.load(x), tl.load(x + 1)
    tl.store(out, nan != nan)
    tl.store(out + 1, nan == nan)
    tl.store(out + 2, nan < one)
    tl.store(out + 3, nan >= one)
    tl.store(out + 4, tl.maximum(nan, one) == 1)
    largest = tl.maximum(nan, one, propagate_nan=tl.PropagateNan.ALL)
    tl.store(out + 5, largest != largest)


@triton.jit
def logic(out, a, b):
    tl.store(out, a > 1 and b < 1)
    tl.store(out + 1, a > 1 and b > 1)
    tl.store(out + 2, not a > 1)
    tl.store(out + 3, a > 9 or b < 9)
    tl.store(out + 4, a is not None and a != 0)
    tl.store(out + 5, ~(a > 1))
    tl.store(out + 6, (a ^ 2) | b)
    tl.store(out + 7, True if a > 1 else False)


@triton.jit
def three_dims(out):
    cube = (tl.arange(0, 2)[:, None, None] * 12 + tl.arange(0, 4)[None, :, None] * 3
            + tl.arange(0, 4)[None, None, :] % 3)
    real = tl.where(tl.arange(0, 4)[None, None, :] < 3, cube, 0)
    tl.store(out, tl.sum(real))
    wide = tl.broadcast_to(tl.expand_dims(tl.sum(tl.sum(real, 2), 1), 1), (2, 2))
    tl.store(out + 1, tl.sum(wide))
    tl.store(out + 2, len(cube.shape))


@triton.jit
def strength(out, x):
    # What promotes: a literal does not, a variable does, a constexpr does not, a comparison does.
    at = tl.arange(0, 4)
    v = tl.load(x + at)
    half = 0.5
    weak: tl.constexpr = 0.5
    tl.static_print((v * 0.5).dtype, (v * half).dtype, (v * weak).dtype, tl.minimum(v, 1.0).dtype)
    tl.store(out + at, v * half)
# == tile strength "*fp16, *fp16"
# kernel @strength(v0 "out": ptr<f16>, v1 "x": ptr<f16>) warps(4) {
# block0:
#     v2 = arange {start = 0} : i32[4] @243
#     v3 = splat v1 : ptr<f16>[4] @244
#     v4 = addptr v3, v2 : ptr<f16>[4] @244
#     v5 = load v4 : f16[4] @244
#     v6 = const {value = 0.5} : f16[4] @247
#     v7 = fmul v5, v6 : f16[4] @247
#     v8 = fpext v5 : f32[4] @247
#     v9 = const {value = 0.5} : f32[4] @247
#     v10 = fmul v8, v9 : f32[4] @247
#     v11 = const {value = 0.5} : f16[4] @247
#     v12 = fmul v5, v11 : f16[4] @247
#     v13 = fpext v5 : f32[4] @247
#     v14 = const {value = 1.0} : f32[4] @247
#     v15 = fmin v13, v14 {nan = ignore} : f32[4] @247
#     v16 = splat v0 : ptr<f16>[4] @248
#     v17 = addptr v16, v2 : ptr<f16>[4] @248
#     v18 = fpext v5 : f32[4] @248
#     v19 = const {value = 0.5} : f32[4] @248
#     v20 = fmul v18, v19 : f32[4] @248
#     v21 = fptrunc v20 {round = rn} : f16[4] @248
#     store v17, v21 @248
#     return @241
# }
#
# note[F23]: fp16 fp32 fp16 fp32
#    --> layers.py:247:5
#     |
# 247 |     tl.static_print((v * 0.5).dtype, (v * half).dtype, (v * weak).dtype, tl.minimum(v, 1.0).dtype)
#     |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
