# The names of a module by one of its functions.
# error: k "*i32"
import triton
import triton.language as tl

N = tl.constexpr(4)


def give():
    give.__globals__["N"] = tl.constexpr(9)


give()


@triton.jit
def k(out):
    tl.store(out, N)
