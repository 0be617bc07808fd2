# Functions of single elements.
import triton
import triton.language as tl
from triton.language import math as tl_math


# case unary/exp | out=fp32[64] x=fp32[64]:rand(1,-20,20) N=64 | ulp 20
# case unary/exp | out=fp64[32] x=fp64[32]:rand(1,-20,20) N=32 | ulp 1
# case unary/exp2 | out=fp32[64] x=fp32[64]:rand(2,-20,20) N=64 | ulp 2
# case unary/exp2 | out=fp64[32] x=fp64[32]:rand(2,-20,20) N=32 | ulp 1
# case unary/log | out=fp32[64] x=fp32[64]:rand(3,0,9) N=64 | ulp 1
# case unary/log | out=fp64[32] x=fp64[32]:rand(3,0,9) N=32 | ulp 1
# case unary/log2 | out=fp32[64] x=fp32[64]:rand(4,0,9) N=64 | ulp 1
# case unary/log2 | out=fp64[32] x=fp64[32]:rand(4,0,9) N=32 | ulp 1
# case unary/sqrt | out=fp32[64] x=fp32[64]:rand(5,0,90) N=64 | ulp 1
# case unary/sqrt | out=fp64[32] x=fp64[32]:rand(5,0,90) N=32
# case unary/sqrt_rn | out=fp32[64] x=fp32[64]:rand(6,0,90) N=64
# case unary/rsqrt | out=fp32[64] x=fp32[64]:rand(7,0,90) N=64 | ulp 2
# case unary/rsqrt | out=fp64[32] x=fp64[32]:rand(7,0,90) N=32 | ulp 1
# case unary/sin | out=fp32[64] x=fp32[64]:rand(8,-1000,1000) N=64 | ulp 2
# case unary/sin | out=fp64[32] x=fp64[32]:rand(8,-1000,1000) N=32 | ulp 2
# case unary/cos | out=fp32[64] x=fp32[64]:rand(9,-1000,1000) N=64 | ulp 2
# case unary/cos | out=fp64[32] x=fp64[32]:rand(9,-1000,1000) N=32 | ulp 2
# case unary/erf | out=fp32[64] x=fp32[64]:rand(10,-4,4) N=64 | ulp 2
# case unary/erf | out=fp64[32] x=fp64[32]:rand(10,-4,4) N=32 | ulp 2
# case unary/floor | out=fp32[16] x=fp32[16]:[-2.5,-2,-0.5,0,0.5,1.75,3,1e9] N=16
# case unary/floor | out=fp64[16] x=fp64[16]:[-2.5,-2,-0.5,0,0.5,1.75,3,1e9] N=16
# case unary/ceil | out=fp32[16] x=fp32[16]:[-2.5,-2,-0.5,0,0.5,1.75,3,1e9] N=16
# case unary/ceil | out=fp64[16] x=fp64[16]:[-2.5,-2,-0.5,0,0.5,1.75,3,1e9] N=16
# case unary/sigmoid | out=fp32[64] x=fp32[64]:rand(11,-20,20) N=64 | ulp 20
# case unary/sigmoid | out=fp64[32] x=fp64[32]:rand(11,-20,20) N=32 | ulp 4
# case unary/abs | out=fp32[16] x=fp32[16]:[-2.5,-0.0,0,nan,-inf,3] N=16
# case unary/abs | out=fp16[16] x=fp16[16]:[-2.5,-0.0,0,nan,-inf,3] N=16
# case unary/abs | out=fp64[16] x=fp64[16]:[-2.5,-0.0,0,nan,-inf,3] N=16
# case unary/abs | out=i32[16] x=i32[16]:[-5,5,0,-2147483648,2147483647] N=16
# case unary/abs | out=i8[16] x=i8[16]:[-5,5,0,-128,127] N=16
# case unary/abs | out=u8[16] x=u8[16]:[5,0,255,128] N=16
# covers op:tl.exp, op:tl.exp2, op:tl.log, op:tl.log2, op:tl.sqrt, op:tl.sqrt_rn, op:tl.rsqrt, op:tl.sin, op:tl.cos
# covers op:tl.erf, op:tl.floor, op:tl.ceil, op:tl.sigmoid, op:tl.abs, dtype:float64
@triton.jit
def unary(out, x, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out + at, tl.FUNCTION(tl.load(x + at)))


# case method/exp | out=fp32[16] x=fp32[16]:rand(1,-2,2) N=16 | ulp 4
# case method/log | out=fp32[16] x=fp32[16]:rand(1,1,2) N=16 | ulp 2
# case method/sqrt | out=fp32[16] x=fp32[16]:rand(1,1,2) N=16 | ulp 1
# case method/rsqrt | out=fp32[16] x=fp32[16]:rand(1,1,2) N=16 | ulp 2
# case method/sin | out=fp32[16] x=fp32[16]:rand(1,1,2) N=16 | ulp 2
# case method/cos | out=fp32[16] x=fp32[16]:rand(1,1,2) N=16 | ulp 2
# case method/sigmoid | out=fp32[16] x=fp32[16]:rand(1,-2,2) N=16 | ulp 4
# case method/abs | out=fp32[16] x=fp32[16]:rand(1,-2,2) N=16
# covers syn:tensor-method call
@triton.jit
def method(out, x, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out + at, tl.load(x + at).FUNCTION())


# case aliased/exp | out=fp32[16] x=fp32[16]:rand(1,-2,2) N=16 | ulp 4
# case aliased/abs | out=fp32[16] x=fp32[16]:rand(1,-2,2) N=16
# case aliased/log2 | out=fp32[16] x=fp32[16]:rand(1,1,2) N=16 | ulp 2
@triton.jit
def aliased(out, x, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out + at, tl.math.FUNCTION(tl_math.abs(tl.load(x + at))))


# case binary/maximum | out=fp32[16] x=fp32[16]:[1,-1,nan,inf] y=fp32[16]:[2,-3,1,nan,-inf] N=16
# case binary/maximum | out=i32[16] x=i32[16]:bits(1) y=i32[16]:bits(2) N=16
# case binary/maximum | out=u32[16] x=u32[16]:bits(1) y=u32[16]:bits(2) N=16
# case binary/maximum | out=fp16[16] x=fp16[16]:rand(1,-1,1) y=fp16[16]:rand(2,-1,1) N=16
# case binary/minimum | out=fp32[16] x=fp32[16]:[1,-1,nan,inf] y=fp32[16]:[2,-3,1,nan,-inf] N=16
# case binary/minimum | out=i8[16] x=i8[16]:bits(1) y=i8[16]:bits(2) N=16
# case binary/fdiv | out=fp32[64] x=fp32[64]:rand(1,-9,9) y=fp32[64]:rand(2,1,9) N=64 | ulp 2
# case binary/div_rn | out=fp32[64] x=fp32[64]:rand(1,-9,9) y=fp32[64]:rand(2,1,9) N=64
# case binary/add | out=i32[16] x=i32[16]:iota(1,1) y=i32[16]:iota(5,-1) N=16
# case binary/sub | out=i32[16] x=i32[16]:iota(1,1) y=i32[16]:iota(5,-1) N=16
# case binary/mul | out=fp32[16] x=fp32[16]:rand(1,-1,1) y=fp32[16]:rand(2,-1,1) N=16
# case binary/cdiv | out=i32[16] x=i32[16]:[7,8,9,-7,-8,0] y=i32[16]:[4,4,4,2,3] N=16
# case binary/umulhi | out=u32[16] x=u32[16]:bits(1) y=u32[16]:bits(2) N=16
# case binary/umulhi | out=u64[16] x=u64[16]:bits(1) y=u64[16]:bits(2) N=16
# covers op:tl.maximum, op:tl.minimum, op:tl.fdiv, op:tl.div_rn, op:tl.sub, op:tl.mul, op:tl.cdiv, op:tl.umulhi
# covers dtype:uint64, dtype:uint32
@triton.jit
def binary(out, x, y, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out + at, tl.FUNCTION(tl.load(x + at), tl.load(y + at)))


# case nan_rules | a=fp32[8] b=fp32[8] c=fp32[8] x=fp32[8]:[1,nan,3,-4] y=fp32[8]:[2,1,nan,nan,5]
# covers kw:tl.maximum(propagate_nan), kw:tl.minimum(propagate_nan), op:tl.clamp
@triton.jit
def nan_rules(a, b, c, x, y):
    at = tl.arange(0, 8)
    v, w = tl.load(x + at), tl.load(y + at)
    tl.store(a + at, tl.maximum(v, w, propagate_nan=tl.PropagateNan.ALL))
    tl.store(b + at, tl.minimum(v, w, propagate_nan=getattr(tl.PropagateNan, "NONE")))
    tl.store(c + at, tl.clamp(v, -2.0, 2.0, tl.PropagateNan.ALL))


# case clamps | a=fp32[16] b=fp32[16] x=fp32[16]:rand(3,-3,3)
@triton.jit
def clamps(a, b, x):
    at = tl.arange(0, 16)
    v = tl.load(x + at)
    tl.store(a + at, tl.clamp(v, -1.0, 1.5))
    tl.store(b + at, tl.clamp(v, min=-0.5, max=v * 0.0 + 0.5))


# case fused | out=fp32[32] x=fp32[32]:rand(1,-1,1) y=fp32[32]:rand(2,-1,1) z=fp32[32]:rand(3,-1,1)
# case fused | out=fp64[32] x=fp64[32]:rand(1,-1,1) y=fp64[32]:rand(2,-1,1) z=fp64[32]:rand(3,-1,1)
# covers op:tl.fma
@triton.jit
def fused(out, x, y, z):
    at = tl.arange(0, 32)
    tl.store(out + at, tl.fma(tl.load(x + at), tl.load(y + at), tl.load(z + at)))


# case rounded_division | out=fp32[32] x=fp32[32]:rand(1,-1,1) y=fp32[32]:rand(2,1,2)
# covers kw:tl.fdiv(ieee_rounding)
@triton.jit
def rounded_division(out, x, y):
    at = tl.arange(0, 32)
    tl.store(out + at, tl.fdiv(tl.load(x + at), tl.load(y + at), ieee_rounding=True))


# case sanitized | out=i32[8] x=i32[8]:[2147483647,-5] y=i32[8]:[1,2]
# covers kw:tl.sub(sanitize_overflow), kw:tl.mul(sanitize_overflow)
@triton.jit
def sanitized(out, x, y):
    at = tl.arange(0, 8)
    v, w = tl.load(x + at), tl.load(y + at)
    s = tl.add(v, w, sanitize_overflow=False)
    d = tl.sub(v, w, sanitize_overflow=False)
    tl.store(out + at, tl.mul(s, d, sanitize_overflow=False))


# case choice | out=fp32[16] x=fp32[16]:rand(1,-1,1) y=fp32[16]:rand(2,-1,1)
# covers op:tl.where
@triton.jit
def choice(out, x, y):
    at = tl.arange(0, 16)
    v, w = tl.load(x + at), tl.load(y + at)
    tl.store(out + at, tl.where(v > w, v, 0.0) + tl.where(at % 2 == 0, 1, 2))


# case of_scalars | out=fp32[4] x=fp32:2.25 n=i32:7 | ulp 2
@triton.jit
def of_scalars(out, x, n):
    tl.store(out, tl.sqrt(x))
    tl.store(out + 1, tl.exp2(x))
    tl.store(out + 2, tl.cdiv(n, 2))
    tl.store(out + 3, tl.maximum(n, x))


# case mapped | out=fp32[16] x=fp32[16]:rand(1,-1,1) y=fp32[16]:rand(2,-1,1)
@triton.jit
def _mix(a, b):
    return tl.where(a > 0, a * b, a + b)


@triton.jit
def mapped(out, x, y):
    at = tl.arange(0, 16)
    tl.store(out + at, tl.map_elementwise(_mix, tl.load(x + at), tl.load(y + at)))


# case logical | out=i32[8] x=i1[8]:[0,1,1,0] y=i1[8]:[0,0,1,1]
@triton.jit
def logical(out, x, y):
    at = tl.arange(0, 8)
    v, w = tl.load(x + at) != 0, tl.load(y + at) != 0
    tl.store(out + at, v.logical_and(w).to(tl.int32) + 2 * v.logical_or(w).to(tl.int32))


# case swizzled | a=i32[16] b=i32[16] I=4 J=4 G=2
# case swizzled | a=i32[16] b=i32[16] I=8 J=2 G=3
# covers op:tl.swizzle2d
@triton.jit
def swizzled(a, b, I: tl.constexpr, J: tl.constexpr, G: tl.constexpr):
    at = tl.arange(0, 16)
    i, j = tl.swizzle2d(at // J, at % J, I, J, G)
    tl.store(a + at, i)
    tl.store(b + at, j)


# case normalised | out=fp32[32] x=fp32[32]:rand(1,-3,3) | ulp 20
# case normalised_rows | out=fp32[32] x=fp32[32]:rand(1,-3,3) | ulp 20
# covers op:tl.softmax
@triton.jit
def normalised(out, x):
    at = tl.arange(0, 32)
    tl.store(out + at, tl.softmax(tl.load(x + at), 0))


@triton.jit
def normalised_rows(out, x):
    at = tl.arange(0, 8)[:, None] * 4 + tl.arange(0, 4)[None, :]
    tl.store(out + at, tl.softmax(tl.load(x + at), 1, keep_dims=True))
