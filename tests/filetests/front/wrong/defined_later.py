# Nor one that asks for what is defined later.
# error: k "*i32"
import triton
import triton.language as tl

M = N
N = 1


@triton.jit
def k(out):
    tl.store(out, N)
