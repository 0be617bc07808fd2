# Nor one that adds a list to a tuple.
# error: k "*i32"
import triton
import triton.language as tl

N = (1,)
N += [2]


@triton.jit
def k(out):
    tl.store(out, N)
