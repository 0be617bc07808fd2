"""Triton's side of `examples/launch_cost.rs`, with the same kernels (`runtime_kernels.py`): first launches, the cost of a
launch, and autotuning.

usage: runtime_peers.py cold | warm | tune    (set TRITON_CACHE_DIR: empty for `cold` and `tune`, the one that `cold` left for `warm`)
"""
import sys
import time

start = time.perf_counter()

import torch  # noqa: E402
import triton  # noqa: E402
from runtime_kernels import add, empty, layer_norm, softmax, tuned, twelve  # noqa: E402

imported = time.perf_counter()


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
    n = 1 << 24
    x, y = torch.ones(n, device="cuda"), torch.ones(n, device="cuda")
    out = torch.empty_like(x)
    torch.cuda.synchronize()
    before = time.perf_counter()
    tuned[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, out, n)
    torch.cuda.synchronize()
    print(f"tune | {len(tuned.configs)} configurations | {time.perf_counter() - before:.2f} s | best {tuned.best_config}")


if len(sys.argv) != 2 or sys.argv[1] not in ("cold", "warm", "tune"):
    sys.exit(__doc__)
tune() if sys.argv[1] == "tune" else launches(sys.argv[1])
