# Nor one that asks for what nothing defines.
# error: k "*i32"
import triton
import triton.language as tl

N = 1
no_such_name


@triton.jit
def k(out):
    tl.store(out, N)
