"""Triton's own compile times for the kernels of benches/gpu/peers.py, stage by stage, without a GPU.

usage: compile_peers.py   (median of several compilations in a warm process; ptxas apart)
"""
import os
import statistics
import sys
import time

os.environ["TRITON_ALWAYS_COMPILE"] = "1"
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "gpu"))

import triton  # noqa: E402
from triton.backends.compiler import GPUTarget  # noqa: E402
from triton.compiler import ASTSource  # noqa: E402

import peers  # noqa: E402


def once(kernel, signature, block, warps):
    """Milliseconds of one compilation, and of its last stage, which runs ptxas."""
    names = kernel.arg_names
    types = dict(zip(names, signature + ["constexpr"]))
    source = ASTSource(kernel, types, {"BLOCK": block}, {})
    ptxas = []
    original = None
    from triton.backends.nvidia import compiler as nvidia
    original = nvidia.CUDABackend.make_cubin

    def timed(*args, **kwargs):
        start = time.perf_counter()
        result = original(*args, **kwargs)
        ptxas.append((time.perf_counter() - start) * 1e3)
        return result
    nvidia.CUDABackend.make_cubin = timed
    try:
        start = time.perf_counter()
        triton.compile(source, target=GPUTarget("cuda", 80, 32), options={"num_warps": warps})
        return (time.perf_counter() - start) * 1e3, sum(ptxas)
    finally:
        nvidia.CUDABackend.make_cubin = original


CASES = {
    "vector_add": (peers.add, ["*fp32", "*fp32", "*fp32", "i32"], 1024, 4),
    "softmax": (peers.softmax, ["*fp32", "i32", "*fp32", "i32", "i32"], 1024, 4),
    "softmax_32768": (peers.softmax, ["*fp32", "i32", "*fp32", "i32", "i32"], 32768, 32),
    "layer_norm": (peers.layer_norm, ["*fp32"] * 6 + ["i32", "i32", "fp32"], 1024, 4),
}

if __name__ == "__main__":
    print("triton", triton.__version__)
    for name, case in CASES.items():
        runs = [once(*case) for _ in range(9)][2:]
        total = statistics.median(r[0] for r in runs)
        front = statistics.median(r[0] - r[1] for r in runs)
        print(f"{name:16} source to PTX {front:7.1f} ms   with ptxas {total:7.1f} ms")
