import triton
import triton.language as tl

OWN = tl.constexpr(1)
_HIDDEN = 7


@triton.jit
def less_one(x):
    return x - OWN
