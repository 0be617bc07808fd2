# Nor one that raises.
# error: k "*i32"
import triton
import triton.language as tl

N = 1
if N == 1:
    raise ValueError("no kernels")


@triton.jit
def k(out):
    tl.store(out, N)
