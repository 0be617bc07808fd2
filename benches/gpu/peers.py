"""The same kernels in Triton, as its users write them."""
import triton
import triton.language as tl


@triton.jit
def add(X, Y, Z, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < N
    tl.store(Z + i, tl.load(X + i, mask=m) + tl.load(Y + i, mask=m), mask=m)


@triton.jit
def softmax(Y, stride_y, X, stride_x, N, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    x = tl.load(X + r * stride_x + c, mask=c < N, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(Y + r * stride_y + c, e / tl.sum(e, axis=0), mask=c < N)


@triton.jit
def layer_norm(Y, X, W, B, Mean, Rstd, stride, N, eps, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    m = c < N
    x = tl.load(X + r * stride + c, mask=m, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / N
    d = tl.where(m, x - mean, 0.0)
    rstd = tl.rsqrt(tl.sum(d * d, axis=0) / N + eps)
    tl.store(Mean + r, mean)
    tl.store(Rstd + r, rstd)
    w = tl.load(W + c, mask=m).to(tl.float32)
    b = tl.load(B + c, mask=m).to(tl.float32)
    tl.store(Y + r * stride + c, d * rstd * w + b, mask=m)
