# Functions that give names values, under other names.
# error: k "*i32"
import triton
import triton.language as tl

N = tl.constexpr(4)
tables = globals
tables()["N"] = tl.constexpr(9)


@triton.jit
def k(out):
    tl.store(out, N)
