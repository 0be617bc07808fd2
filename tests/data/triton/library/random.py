# Random numbers.
import triton
import triton.language as tl


# case bits/randint | out=i32[64] seed=i32:42
# case bits/randint | out=i32[64] seed=i64:1234567890123
# case bits/rand | out=fp32[64] seed=i32:42
# case bits/randn | out=fp32[64] seed=i32:42 | abs 1e-5
# covers op:tl.rand, op:tl.randint
@triton.jit
def bits(out, seed):
    at = tl.arange(0, 64)
    tl.store(out + at, tl.FUNCTION(seed, at))


# case rounds/randint | out=i32[64] seed=i32:42
# case rounds/rand | out=fp32[64] seed=i32:42
# covers kw:tl.rand(n_rounds), kw:tl.randint(n_rounds)
@triton.jit
def rounds(out, seed):
    at = tl.arange(0, 64)
    tl.store(out + at, tl.FUNCTION(seed, at + 5, n_rounds=7))


# case four/randint4x | out=i32[64] seed=i32:7
# case four/rand4x | out=fp32[64] seed=i32:7
# case four/randn4x | out=fp32[64] seed=i32:7 | abs 1e-5
@triton.jit
def four(out, seed):
    at = tl.arange(0, 16)
    a, b, c, d = tl.FUNCTION(seed, at)
    tl.store(out + at, a)
    tl.store(out + 16 + at, b)
    tl.store(out + 32 + at, c)
    tl.store(out + 48 + at, d)


# case made | a=u32[16] b=fp32[16] c=fp32[16] seed=i32:3 | abs 1e-5
# covers op:tl.philox, op:tl.uint_to_uniform_float, op:tl.pair_uniform_to_normal
@triton.jit
def made(a, b, c, seed):
    at = tl.arange(0, 16)
    zero = at * 0
    p, q, r, s = tl.philox(seed, at, zero, zero + 1, zero)
    u, v = tl.uint_to_uniform_float(p), tl.uint_to_uniform_float(q)
    n, _ = tl.pair_uniform_to_normal(u, v)
    tl.store(a + at, p)
    tl.store(b + at, u)
    tl.store(c + at, n)


# case wide | out=fp32[16] seed=i64:-5
@triton.jit
def wide(out, seed):
    at = tl.arange(0, 16)
    tl.store(out + at, tl.rand(seed, at.to(tl.int64) + 0x123456789A))
