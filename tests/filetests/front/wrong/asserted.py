# Nor one with an assertion that fails.
# error: k "*i32"
import triton
import triton.language as tl

N = tl.constexpr(1)
assert N.value == 2


@triton.jit
def k(out):
    tl.store(out, N)
