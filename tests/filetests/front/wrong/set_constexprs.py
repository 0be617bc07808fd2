# What is in a `constexpr` is given another value by another name.
# error: k "*i32"
import triton
import triton.language as tl

N = tl.constexpr(4)


def give(to):
    to.value = 9


give([N][0])


@triton.jit
def k(out):
    tl.store(out, N)
