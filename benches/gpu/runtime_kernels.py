"""The kernels of `examples/launch_cost.rs`, which reads this text, and of `runtime_peers.py`, which imports it: one text for
Tilelift and Triton."""
import triton
import triton.language as tl


@triton.jit
def empty():
    pass


@triton.jit
def twelve(a, b, c, d, e, f, g, h, i, j, k, l):  # noqa: E741
    pass


@triton.jit
def product(x, y, out, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    sums = tl.zeros((BM, BN), tl.float32)
    for i in range(0, K, BK):
        a = tl.load(x + m[:, None] * K + (i + k)[None, :], (m[:, None] < M) & ((i + k)[None, :] < K), 0.0)
        b = tl.load(y + (i + k)[:, None] * N + n[None, :], ((i + k)[:, None] < K) & (n[None, :] < N), 0.0)
        sums = tl.dot(a, b, sums)
    tl.store(out + m[:, None] * N + n[None, :], sums.to(tl.float16), (m[:, None] < M) & (n[None, :] < N))


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out + i, tl.load(x + i, mask) + tl.load(y + i, mask), mask)


@triton.jit
def softmax(out, x, x_stride, out_stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    v = tl.load(x + row * x_stride + i, i < n, -float("inf"))
    v = tl.exp(v - tl.max(v, 0))
    tl.store(out + row * out_stride + i, v / tl.sum(v, 0), i < n)


@triton.jit
def layer_norm(x, out, weight, bias, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    mask = i < n
    v = tl.load(x + row * n + i, mask, 0.0).to(tl.float32)
    mean = tl.sum(v, 0) / n
    centred = tl.where(mask, v - mean, 0.0)
    scale = 1 / tl.sqrt(tl.sum(centred * centred, 0) / n + eps)
    w = tl.load(weight + i, mask)
    b = tl.load(bias + i, mask)
    tl.store(out + row * n + i, centred * scale * w + b, mask)


@triton.autotune(
    configs=[
        triton.Config({"BLOCK": block}, num_warps=warps)
        for block in (256, 512, 1024, 2048, 4096, 8192)
        for warps in (1, 2, 4, 8)
    ],
    key=["n"],
)
@triton.jit
def tuned(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out + i, tl.load(x + i, mask) + tl.load(y + i, mask), mask)
