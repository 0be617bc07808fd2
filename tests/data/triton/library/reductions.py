# Reductions and scans.
import triton
import triton.language as tl


# case whole/sum | out=fp32[1] x=fp32[64]:iota(-3,0.25) N=64
# case whole/sum | out=i32[1] x=i8[64]:bits(1) N=64
# case whole/sum | out=u32[1] x=u16[64]:bits(1) N=64
# case whole/sum | out=i64[1] x=i64[64]:bits(1) N=64
# case whole/sum | out=u32[1] x=i1[64]:bits(1) N=64
# case whole/sum | out=fp16[1] x=fp16[64]:iota(0,0.125) N=64
# case whole/max | out=fp32[1] x=fp32[64]:rand(1,-9,9) N=64
# case whole/max | out=fp32[1] x=fp16[64]:rand(1,-9,9) N=64
# case whole/max | out=i32[1] x=u8[64]:bits(1) N=64
# case whole/max | out=u64[1] x=u64[64]:bits(1) N=64
# case whole/max | out=fp32[1] x=fp32[8]:[1,nan,3] N=8
# case whole/min | out=fp32[1] x=fp32[64]:rand(1,-9,9) N=64
# case whole/min | out=i32[1] x=i16[64]:bits(1) N=64
# case whole/min | out=fp64[1] x=fp64[64]:rand(1,-9,9) N=64
# case whole/xor_sum | out=i32[1] x=i32[64]:bits(1) N=64
# case whole/xor_sum | out=u8[1] x=u8[64]:bits(1) N=64
# covers op:tl.sum, op:tl.max, op:tl.min, op:tl.xor_sum, dtype:uint16, dtype:int16, dtype:int8, dtype:uint8
@triton.jit
def whole(out, x, N: tl.constexpr):
    tl.store(out, tl.FUNCTION(tl.load(x + tl.arange(0, N))))


# case axis/sum | rows=fp32[8] cols=fp32[16] x=fp32[128]:iota(0,0.5)
# case axis/max | rows=fp32[8] cols=fp32[16] x=fp32[128]:rand(1,-9,9)
# case axis/min | rows=i32[8] cols=i32[16] x=i32[128]:bits(3)
# case axis/xor_sum | rows=i32[8] cols=i32[16] x=i32[128]:bits(3)
# case axis/reduce_or | rows=i32[8] cols=i32[16] x=i32[128]:bits(3)
# covers op:tl.reduce_or
@triton.jit
def axis(rows, cols, x):
    v = tl.load(x + tl.arange(0, 8)[:, None] * 16 + tl.arange(0, 16)[None, :])
    tl.store(rows + tl.arange(0, 8), tl.FUNCTION(v, 1))
    tl.store(cols + tl.arange(0, 16), tl.FUNCTION(v, axis=-2))


# case kept | out=fp32[128] x=fp32[128]:iota(0,0.5)
# covers kw:reduce(keep_dims)
@triton.jit
def kept(out, x):
    at = tl.arange(0, 8)[:, None] * 16 + tl.arange(0, 16)[None, :]
    v = tl.load(x + at)
    tl.store(out + at, v - tl.max(v, 1, keep_dims=True) + tl.sum(v, 0, keep_dims=True) + v.min(keep_dims=True))


# case places/argmax | out=i32[8] x=fp32[128]:rand(1,-9,9)
# case places/argmin | out=i32[8] x=fp32[128]:rand(1,-9,9)
# case places/argmax | out=i32[8] x=i8[128]:rand(1,-3,3)
# case places/argmin | out=i32[8] x=u16[128]:rand(1,0,5)
# covers op:tl.argmax, op:tl.argmin
@triton.jit
def places(out, x):
    v = tl.load(x + tl.arange(0, 8)[:, None] * 16 + tl.arange(0, 16)[None, :])
    tl.store(out + tl.arange(0, 8), tl.FUNCTION(v, 1))


# case with_places | a=fp32[8] b=i32[8] c=fp32[16] d=i32[16] x=fp32[128]:rand(1,-9,9)
# case with_places | a=fp16[8] b=i32[8] c=fp16[16] d=i32[16] x=fp16[128]:rand(1,-9,9)
# covers kw:max/min(return_indices), kw:max/min(tie_break)
@triton.jit
def with_places(a, b, c, d, x):
    v = tl.load(x + tl.arange(0, 8)[:, None] * 16 + tl.arange(0, 16)[None, :])
    m, i = tl.max(v, 1, return_indices=True)
    n, j = tl.min(v, axis=0, return_indices=True, return_indices_tie_break_left=False)
    tl.store(a + tl.arange(0, 8), m)
    tl.store(b + tl.arange(0, 8), i)
    tl.store(c + tl.arange(0, 16), n)
    tl.store(d + tl.arange(0, 16), j)


# case leftmost | out=i32[4] x=i32[16]:[1,3,3,0]
@triton.jit
def leftmost(out, x):
    v = tl.load(x + tl.arange(0, 16))
    tl.store(out, tl.argmax(v, 0))
    tl.store(out + 1, tl.argmin(v, 0, tie_break_left=True))
    tl.store(out + 2, v.argmax(0))
    tl.store(out + 3, tl.argmax(v.reshape(2, 8), 1, keep_dims=True).sum())


# case typed | out=fp32[1] x=fp16[16]:iota(0,1)
@triton.jit
def typed(out, x):
    tl.store(out, tl.sum(tl.load(x + tl.arange(0, 16)), dtype=tl.float32))


@triton.jit
def _larger_size(a, b):
    return tl.where(tl.abs(a) > tl.abs(b), a, b)


@triton.jit
def _product(a, b):
    return a * b


# case combined | out=fp32[9] x=fp32[128]:rand(5,-1,1)
# covers op:tl.reduce, syn:jit fn as value, syn:call jit fn
@triton.jit
def combined(out, x):
    v = tl.load(x + tl.arange(0, 8)[:, None] * 16 + tl.arange(0, 16)[None, :])
    tl.store(out + tl.arange(0, 8), tl.reduce(v, 1, _larger_size))
    tl.store(out + 8, tl.reduce(v, None, _larger_size))


@triton.jit
def _welford(mean_a, m2_a, n_a, mean_b, m2_b, n_b):
    n = n_a + n_b
    delta = mean_b - mean_a
    share = n_b / n
    return mean_a + delta * share, m2_a + m2_b + delta * delta * n_a * share, n


# case several | out=fp32[24] x=fp32[128]:rand(5,-1,1) | abs 1e-5
# covers syn:return tuple, syn:tuple-unpack assign
@triton.jit
def several(out, x):
    v = tl.load(x + tl.arange(0, 8)[:, None] * 16 + tl.arange(0, 16)[None, :])
    mean, m2, n = tl.reduce((v, tl.zeros_like(v), tl.full((8, 16), 1.0, tl.float32)), 1, _welford)
    at = tl.arange(0, 8)
    tl.store(out + at, mean)
    tl.store(out + 8 + at, m2)
    tl.store(out + 16 + at, n)


# case running/cumsum | out=fp32[64] x=fp32[64]:iota(-3,0.25) R=False
# case running/cumsum | out=i32[64] x=i8[64]:bits(1) R=False
# case running/cumsum | out=u32[64] x=u8[64]:bits(1) R=True
# case running/cumsum | out=i64[64] x=i64[64]:bits(1) R=False
# case running/cumsum | out=fp32[64] x=fp32[64]:iota(-3,0.25) R=True
# case running/cumprod | out=fp32[64] x=fp32[64]:[1,2,0.5,-1] R=False
# case running/cumprod | out=i32[64] x=i32[64]:[1,2,3,-1] R=True
# covers op:tl.cumsum, kw:tl.cumsum(reverse), op:tl.cumprod
@triton.jit
def running(out, x, R: tl.constexpr):
    at = tl.arange(0, 64)
    tl.store(out + at, tl.FUNCTION(tl.load(x + at), 0, reverse=R))


# case running_axis | a=fp32[128] b=fp32[128] x=fp32[128]:iota(-3,0.25)
@triton.jit
def running_axis(a, b, x):
    at = tl.arange(0, 8)[:, None] * 16 + tl.arange(0, 16)[None, :]
    v = tl.load(x + at)
    tl.store(a + at, tl.cumsum(v, axis=1))
    tl.store(b + at, v.cumsum(axis=0, reverse=True))


# case scanned | out=fp32[64] x=fp32[64]:rand(1,-1,1)
# covers op:tl.associative_scan
@triton.jit
def scanned(out, x):
    at = tl.arange(0, 64)
    tl.store(out + at, tl.associative_scan(tl.load(x + at), 0, _larger_size))


@triton.jit
def _first_order(a1, b1, a2, b2):
    return a1 * a2, b1 * a2 + b2


# case recurrence | a=fp32[32] b=fp32[32] x=fp32[32]:rand(1,0.5,1) y=fp32[32]:rand(2,-1,1) | rel 1e-5
@triton.jit
def recurrence(a, b, x, y):
    at = tl.arange(0, 32)
    p, q = tl.associative_scan((tl.load(x + at), tl.load(y + at)), 0, _first_order)
    tl.store(a + at, p)
    tl.store(b + at, q)


# case recurrence_back | a=fp32[32] b=fp32[32] x=fp32[32]:rand(1,0.5,1) y=fp32[32]:rand(2,-1,1) | rel 1e-4
@triton.jit
def recurrence_back(a, b, x, y):
    at = tl.arange(0, 32)
    p, q = tl.associative_scan((tl.load(x + at), tl.load(y + at)), 0, _first_order, reverse=True)
    tl.store(a + at, p)
    tl.store(b + at, q)


# case methods | out=fp32[6] x=fp32[32]:iota(1,1)
@triton.jit
def methods(out, x):
    v = tl.load(x + tl.arange(0, 32))
    tl.store(out, v.sum())
    tl.store(out + 1, v.max(0))
    tl.store(out + 2, v.min(axis=0))
    tl.store(out + 3, v.to(tl.int32).xor_sum(0))
    tl.store(out + 4, v.reduce(0, _larger_size))
    tl.store(out + 5, v.associative_scan(0, _larger_size).sum(0))
