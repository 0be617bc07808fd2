# Products of matrices.
import triton
import triton.language as tl


@triton.jit
def grid(m: tl.constexpr, n: tl.constexpr):
    return tl.arange(0, m)[:, None] * n + tl.arange(0, n)[None, :]


# case product | out=fp32[256] a=fp16[256]:rand(1,-1,1) b=fp16[256]:rand(2,-1,1) M=16 N=16 K=16 | abs 1e-6
# case product | out=fp32[256] a=bf16[256]:rand(1,-1,1) b=bf16[256]:rand(2,-1,1) M=16 N=16 K=16 | abs 1e-6
# case product | out=fp64[256] a=fp64[256]:rand(1,-1,1) b=fp64[256]:rand(2,-1,1) M=16 N=16 K=16 | abs 1e-14
# case product | out=i32[256] a=i8[512]:bits(1) b=i8[512]:bits(2) M=16 N=16 K=32
# case product | out=fp32[512] a=fp16[512]:rand(1,-1,1) b=fp16[1024]:rand(2,-1,1) M=16 N=32 K=32 | abs 4e-6 | warps 4
# case product | out=fp32[256] a=fp8e5[512]:rand(1,-1,1) b=fp8e5[512]:rand(2,-1,1) M=16 N=16 K=32 | abs 4e-6 | target sm_90
# covers op:tl.dot
@triton.jit
def product(out, a, b, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    v, w = tl.load(a + grid(M, K)), tl.load(b + grid(K, N))
    tl.store(out + grid(M, N), tl.dot(v, w))


# case accumulated | out=fp32[256] a=fp32[256]:rand(1,-1,1) b=fp32[256]:rand(2,-1,1) c=fp32[256]:rand(3,-1,1) | abs 1e-5
# covers kw:tl.dot(acc), kw:tl.dot(allow_tf32), kw:tl.dot(input_precision), kw:tl.dot(out_dtype)
# covers kw:tl.dot(max_num_imprecise_acc), kw:tl.dot(trans_b), kw:tl.dot(trans_a)
@triton.jit
def accumulated(out, a, b, c):
    v, w, acc = tl.load(a + grid(16, 16)), tl.load(b + grid(16, 16)), tl.load(c + grid(16, 16))
    acc = tl.dot(v, w, acc, input_precision="ieee")
    acc = tl.dot(v, w, acc=acc, allow_tf32=False)
    acc += tl.dot(v, w, out_dtype=tl.float32, input_precision="tf32x3", max_num_imprecise_acc=0)
    acc += tl.dot(v, w, trans_b=True, allow_tf32=False)
    acc += tl.dot(v, w, trans_a=True, allow_tf32=False)
    tl.store(out + grid(16, 16), acc)


# case cut | out=fp32[256] a=fp32[256]:rand(1,-1,1) b=fp32[256]:rand(2,-1,1) | abs 1e-6
@triton.jit
def cut(out, a, b):
    tl.store(out + grid(16, 16), tl.dot(tl.load(a + grid(16, 16)), tl.load(b + grid(16, 16))))


# case in_halves | out=fp16[256] a=fp16[256]:iota(0,0.125) b=fp16[256]:[1,0,-1]
@triton.jit
def in_halves(out, a, b):
    v, w = tl.load(a + grid(16, 16)), tl.load(b + grid(16, 16))
    tl.store(out + grid(16, 16), tl.dot(v * 0.25, w, out_dtype=tl.float16))


# case batched | out=fp32[512] a=fp16[512]:rand(1,-1,1) b=fp16[512]:rand(2,-1,1) | abs 1e-6
@triton.jit
def batched(out, a, b):
    at = tl.arange(0, 2)[:, None, None] * 256 + grid(16, 16)[None, :, :]
    tl.store(out + at, tl.dot(tl.load(a + at), tl.load(b + at)))


# case tiled | out=fp32[1024] a=fp16[2048]:rand(1,-1,1) b=fp16[2048]:rand(2,-1,1) K=i32:64 | abs 1e-5 | warps 4
@triton.jit
def tiled(out, a, b, K):
    acc = tl.zeros((32, 32), dtype=tl.float32)
    for k in range(0, K, 16):
        v = tl.load(a + tl.arange(0, 32)[:, None] * K + k + tl.arange(0, 16)[None, :])
        w = tl.load(b + (k + tl.arange(0, 16))[:, None] * 32 + tl.arange(0, 32)[None, :])
        acc = tl.dot(v, w, acc)
    tl.store(out + grid(32, 32), acc)


# case scaled | out=fp32[256] a=u8[256]:bits(1) b=u8[256]:bits(2) s=u8[16]:[127,128,126,130] t=u8[16]:[127,125,129] F='e2m1' N=16 | rel 1e-6
# case scaled | out=fp32[256] a=u8[512]:[56,60,184,0,1,72,200,49] b=u8[512]:[56,57,180,2,70] s=u8[16]:[127,128,126,130] t=u8[16]:[127,125,129] F='e4m3' N=32 | abs 1e-4
# case scaled | out=fp32[256] a=u8[512]:[60,62,184,0,1,64] b=u8[512]:[60,58,184,2,56] s=u8[16]:[127,128,126,130] t=u8[16]:[127,125,129] F='e5m2' N=32 | abs 1e-4
# covers op:tl.dot_scaled, kw:tl.dot_scaled(acc), kw:tl.dot_scaled(fast_math), kw:tl.dot_scaled(out_dtype)
# covers kw:tl.dot_scaled(rhs_k_pack)
@triton.jit
def scaled(out, a, b, s, t, F: tl.constexpr, N: tl.constexpr):
    v = tl.load(a + grid(16, N))
    w = tl.load(b + grid(N, 16))
    x = tl.load(s + tl.arange(0, 16)[:, None])
    y = tl.load(t + tl.arange(0, 16)[:, None])
    acc = tl.dot_scaled(v, x, F, w, y, F)
    acc = tl.dot_scaled(v, x, F, w, y, F, acc=acc, fast_math=True, rhs_k_pack=True, out_dtype=tl.float32)
    tl.store(out + grid(16, 16), acc)


# case scaled_left | out=fp32[256] a=u8[256]:bits(1) b=bf16[512]:rand(2,-1,1) s=u8[16]:[127,128,126,130] | abs 1e-4
@triton.jit
def scaled_left(out, a, b, s):
    v = tl.load(a + grid(16, 16))
    x = tl.load(s + tl.arange(0, 16)[:, None])
    tl.store(out + grid(16, 16), tl.dot_scaled(v, x, "e2m1", tl.load(b + grid(32, 16)), None, "bf16"))


# case scaled_batches | out=fp32[512] a=u8[512]:bits(1) b=u8[512]:bits(2) s=u8[32]:[127,128,126,130] t=u8[32]:[127,125,129] | rel 1e-6
@triton.jit
def scaled_batches(out, a, b, s, t):
    # A product for each of two batches.
    i = tl.arange(0, 2)[:, None, None]
    rows = tl.arange(0, 16)[None, :, None]
    columns = tl.arange(0, 16)[None, None, :]
    at = i * 256 + rows * 16 + columns
    scale = i * 16 + rows
    c = tl.dot_scaled(tl.load(a + at), tl.load(s + scale), "e2m1", tl.load(b + at), tl.load(t + scale), "e2m1")
    tl.store(out + at, c)
