# Traps of the language that concern the library: what one would not expect, and kernels rely on.
import triton
import triton.language as tl


# case division | out=i32[8] a=i32:-7 b=i32:2
# covers syn:arith // %
@triton.jit
def division(out, a, b):
    tl.store(out, a // b)
    tl.store(out + 1, a % b)
    tl.store(out + 2, -7 // 2)
    tl.store(out + 3, -7 % 2)
    tl.store(out + 4, tl.cdiv(a, b))
    tl.store(out + 5, tl.cdiv(-7, 2))
    at = tl.arange(0, 2)
    tl.store(out + 6 + at, (at - 3) // 2)


# case weak_and_strong | out=i32[6] x=fp16[4]:[1]
@triton.jit
def weak_and_strong(out, x):
    v = tl.load(x + tl.arange(0, 4))
    half = 0.5
    weak: tl.constexpr = 0.5
    tl.store(out, (v * 0.5).dtype == tl.float16)
    tl.store(out + 1, (v * half).dtype == tl.float32)
    tl.store(out + 2, (v * weak).dtype == tl.float16)
    tl.store(out + 3, (v / 2).dtype == tl.float32)
    tl.store(out + 4, (v < 1.5).dtype == tl.int1)
    tl.store(out + 5, tl.maximum(v, 0.0).dtype == tl.float32)


# case mixed | out=i32[8] h=fp16[2]:[1] b=bf16[2]:[1] i=i64[2]:[3]
@triton.jit
def mixed(out, h, b, i):
    h, b, i = tl.load(h), tl.load(b), tl.load(i)
    tl.store(out, (h + b).dtype == tl.float16)
    tl.store(out + 1, (b + i).dtype == tl.float32)
    tl.store(out + 2, (h / h).dtype == tl.float32)
    tl.store(out + 3, (i / i).dtype == tl.float32)
    tl.store(out + 4, (b * b).dtype == tl.bfloat16)
    tl.store(out + 5, tl.maximum(b, b).dtype == tl.float32)
    tl.store(out + 6, (h + i).dtype == tl.float16)
    tl.store(out + 7, (b / b).dtype == tl.float32)


# case reduced_types | out=i32[10] h=fp16[4]:[1] b=bf16[4]:[1] u=u8[4]:[200]
@triton.jit
def reduced_types(out, h, b, u):
    at = tl.arange(0, 4)
    h, b, u = tl.load(h + at), tl.load(b + at), tl.load(u + at)
    tl.store(out, tl.sum(h).dtype == tl.float16)
    tl.store(out + 1, tl.sum(b).dtype == tl.bfloat16)
    tl.store(out + 2, tl.max(h).dtype == tl.float32)
    tl.store(out + 3, tl.max(u).dtype == tl.int32)
    tl.store(out + 4, tl.sum(u).dtype == tl.uint32)
    tl.store(out + 5, tl.sum(u > 0).dtype == tl.uint32)
    tl.store(out + 6, tl.cumsum(b, 0).dtype == tl.float32)
    m, i = tl.max(h, 0, return_indices=True)
    tl.store(out + 7, (m.dtype == tl.float16) & (i.dtype == tl.int32))
    m, i = tl.max(u, 0, return_indices=True)
    tl.store(out + 8, (m.dtype == tl.uint8) & (m == 200))
    m, i = tl.min(u > 250, 0, return_indices=True, return_indices_tie_break_left=False)
    tl.store(out + 9, m.dtype == tl.int1)


# case masked_off | out=fp32[8] x=fp32[4]:[1,2,3,4]
@triton.jit
def masked_off(out, x):
    at = tl.arange(0, 8)
    tl.store(out + at, tl.load(x + at, mask=at < 4))


# case offsets | out=i32[2] x=i32[8]:iota(0,1) n=u32:4294967295 m=u32:3
@triton.jit
def offsets(out, x, n, m):
    tl.store(out, tl.load(x + m))
    tl.store(out + 1, (n + 1 == 0).to(tl.int32) + 2 * (n > 5).to(tl.int32))


# case unordered | out=i32[6] x=fp32[2]:[nan,1]
@triton.jit
def unordered(out, x):
    a, b = tl.load(x), tl.load(x + 1)
    tl.store(out, a != a)
    tl.store(out + 1, a == a)
    tl.store(out + 2, (a < b) | (a > b))
    tl.store(out + 3, tl.maximum(a, b) == b)
    v = tl.load(x + tl.arange(0, 2))
    tl.store(out + 4, tl.max(v) == 1.0)
    tl.store(out + 5, tl.where(v != v, 1, 0).sum())


# case ones | out=i32[2] n=1 x=i32[8]:iota(0,1)
@triton.jit
def ones(out, n, x):
    if n == 1:
        tl.store(out, tl.load(x + 3 * n))
    tl.store(out + 1, n + 5)


# case strong_argument | out=i32[1] x=fp16[1]:[1] s=fp32:0.5
@triton.jit
def strong_argument(out, x, s):
    tl.store(out, (tl.load(x) * s).dtype == tl.float32)


# case wrapped | out=i64[2] n=i32:65536 m=i32:65537
@triton.jit
def wrapped(out, n, m):
    tl.store(out, (n * m).to(tl.int64))
    tl.store(out + 1, n.to(tl.int64) * m)


# case denormal | out=fp32[4] x=fp32[2]:{00000001,80000001}
@triton.jit
def denormal(out, x):
    at = tl.arange(0, 2)
    v = tl.load(x + at)
    tl.store(out + at, v + v)
    tl.store(out + 2 + at, v * 2.0)


# case ties | out=i32[2] x=fp32[8]:[2,7,7,1]
@triton.jit
def ties(out, x):
    v = tl.load(x + tl.arange(0, 8))
    tl.store(out, tl.argmax(v, 0))
    tl.store(out + 1, tl.argmin(v, 0))


# case flushed | out=fp32[4] x=fp32[4]:[-130,-126,-125.5,-149] | ulp 2
@triton.jit
def flushed(out, x):
    # Powers below the smallest normal number are zero.
    tl.store(out + tl.arange(0, 4), tl.exp2(tl.load(x + tl.arange(0, 4))) * 4.0)
