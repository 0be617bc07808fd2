# Order: sorting, the largest, turning around, counting.
import triton
import triton.language as tl


# case sorted_row | out=fp32[64] x=fp32[64]:rand(1,-9,9) D=False
# case sorted_row | out=fp32[64] x=fp32[64]:rand(1,-9,9) D=True
# case sorted_row | out=i32[64] x=i32[64]:bits(1) D=False
# case sorted_row | out=u32[64] x=u32[64]:bits(1) D=True
# case sorted_row | out=i8[64] x=i8[64]:bits(1) D=False
# case sorted_row | out=fp16[64] x=fp16[64]:rand(1,-9,9) D=False
# case sorted_row | out=i64[64] x=i64[64]:bits(1) D=True
# case sorted_row | out=i32[64] x=i32[64]:rand(1,0,5) D=False
# case sorted_row | out=fp32[64] x=fp32[64]:rand(1,-9,9) D=True | warps 4
# covers op:tl.sort, kw:tl.sort(descending)
@triton.jit
def sorted_row(out, x, D: tl.constexpr):
    at = tl.arange(0, 64)
    tl.store(out + at, tl.sort(tl.load(x + at), descending=D))


# case sorted_rows | out=fp32[128] x=fp32[128]:rand(1,-9,9)
@triton.jit
def sorted_rows(out, x):
    at = tl.arange(0, 8)[:, None] * 16 + tl.arange(0, 16)[None, :]
    tl.store(out + at, tl.load(x + at).sort(1))


# case best | out=fp32[8] x=fp32[64]:rand(1,-9,9) K=8
# case best | out=fp32[1] x=fp32[64]:rand(1,-9,9) K=1
# case best | out=fp32[64] x=fp32[64]:rand(1,-9,9) K=64
# case best | out=i32[4] x=i32[64]:bits(1) K=4
# case best | out=fp32[4] x=fp16[64]:rand(1,-9,9) K=4
# covers op:tl.topk
@triton.jit
def best(out, x, K: tl.constexpr):
    tl.store(out + tl.arange(0, K), tl.topk(tl.load(x + tl.arange(0, 64)), K))


# case best_of_rows | out=fp32[16] x=fp32[128]:rand(1,-9,9)
@triton.jit
def best_of_rows(out, x):
    v = tl.load(x + tl.arange(0, 8)[:, None] * 16 + tl.arange(0, 16)[None, :])
    tl.store(out + tl.arange(0, 8)[:, None] * 2 + tl.arange(0, 2)[None, :], tl.topk(v, 2, dim=1))


# case merged | out=fp32[16] x=fp32[16]:[1,3,5,7,9,11,13,15,14,12,10,8,6,4,2,0] D=False
# case merged | out=fp32[16] x=fp32[16]:[1,3,5,7,9,11,13,15,14,12,10,8,6,4,2,0] D=True
# covers op:tl.bitonic_merge
@triton.jit
def merged(out, x, D: tl.constexpr):
    at = tl.arange(0, 16)
    tl.store(out + at, tl.bitonic_merge(tl.load(x + at), descending=D))


# case turned | a=fp32[64] b=fp32[64] c=fp32[64] x=fp32[64]:rand(1,-9,9)
# case turned | a=i8[64] b=i8[64] c=i8[64] x=i8[64]:bits(1)
# covers op:tl.flip
@triton.jit
def turned(a, b, c, x):
    at = tl.arange(0, 4)[:, None] * 16 + tl.arange(0, 16)[None, :]
    v = tl.load(x + at)
    tl.store(a + at, tl.flip(v, 1))
    tl.store(b + at, v.flip(0))
    tl.store(c + at, tl.flip(tl.flip(v, -1), -2))


# case counted | out=i32[8] x=i32[64]:rand(1,0,8)
# case counted | out=i32[8] x=u8[64]:rand(1,0,8)
# case counted | out=i32[8] x=i64[64]:rand(1,0,8)
# covers op:tl.histogram
@triton.jit
def counted(out, x):
    tl.store(out + tl.arange(0, 8), tl.histogram(tl.load(x + tl.arange(0, 64)), 8))


# case counted_within | out=i32[8] x=i32[64]:rand(1,0,8)
# covers kw:tl.histogram(mask)
@triton.jit
def counted_within(out, x):
    at = tl.arange(0, 64)
    v = tl.load(x + at)
    tl.store(out + tl.arange(0, 8), tl.histogram(v, 8, mask=at < 40))
