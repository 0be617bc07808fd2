# Nor one that puts something into a tuple.
# error: k "*i32"
import triton
import triton.language as tl

N = (1,)
N.append(2)


@triton.jit
def k(out):
    tl.store(out, N)
