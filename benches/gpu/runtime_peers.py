"""Triton's side of `examples/launch_cost.rs`: first launches, the cost of a launch, and autotuning.

usage: runtime_peers.py cold | warm | tune    (set TRITON_CACHE_DIR: empty for `cold` and `tune`, the one that `cold` left for `warm`)
"""
import sys
import time

start = time.perf_counter()

import torch  # noqa: E402
import triton  # noqa: E402
import triton.language as tl  # noqa: E402

imported = time.perf_counter()

CONFIGS = [triton.Config({"BLOCK": block}, num_warps=warps) for block in (256, 512, 1024, 2048, 4096, 8192) for warps in (1, 2, 4, 8)]


@triton.jit
def empty():
    pass


@triton.jit
def twelve(a, b, c, d, e, f, g, h, i, j, k, l):  # noqa: E741
    pass


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


def first(state, name, go):
    before = time.perf_counter()
    go()
    launched = time.perf_counter()
    torch.cuda.synchronize()
    done = time.perf_counter()
    print(f"{state} | {name} | until launched {1e3 * (launched - before):.3f} ms | until done {1e3 * (done - before):.3f} ms")


def bursts(go):
    """Microseconds a launch, median of 50 bursts of 500."""
    go()
    times = []
    for _ in range(50):
        torch.cuda.synchronize()
        before = time.perf_counter()
        for _ in range(500):
            go()
        times.append((time.perf_counter() - before) * 1e6 / 500)
    torch.cuda.synchronize()
    return sorted(times)[len(times) // 2]


def launches(state):
    x = torch.full((8, 1024), 1.5, device="cuda")
    out = torch.empty_like(x)
    torch.cuda.synchronize()
    first(state, "add", lambda: add[(8,)](x, x, out, 8192, BLOCK=1024))
    first(state, "softmax", lambda: softmax[(8,)](out, x, 1024, 1024, 1024, BLOCK=1024))
    first(state, "layer_norm", lambda: layer_norm[(8,)](x, out, x, x, 1024, 1e-5, BLOCK=1024))
    print(f"{state} | import {1e3 * (imported - start):.0f} ms")
    if state == "warm":
        numbers = [x, x, x, x, 7, 7, 7, 7, 1.5, 2.5, 9, x]
        print(f"launch | empty {bursts(lambda: empty[(1,)]()):.2f} us | 12 arguments {bursts(lambda: twelve[(1,)](*numbers)):.2f} us")


def tune():
    tuned = triton.autotune(configs=CONFIGS, key=["n"])(add)
    n = 1 << 24
    x, y = torch.ones(n, device="cuda"), torch.ones(n, device="cuda")
    out = torch.empty_like(x)
    torch.cuda.synchronize()
    before = time.perf_counter()
    tuned[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, out, n)
    torch.cuda.synchronize()
    print(f"tune | {len(CONFIGS)} configurations | {time.perf_counter() - before:.2f} s | best {tuned.best_config}")


if len(sys.argv) != 2 or sys.argv[1] not in ("cold", "warm", "tune"):
    sys.exit(__doc__)
tune() if sys.argv[1] == "tune" else launches(sys.argv[1])
