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
# == error k "*i32"
# error[F05]: `N` has no value here
#   --> names_of_functions.py:18:19
#    |
# 18 |     tl.store(out, N)
#    |                   ^ line 10 changes it, or hands it to what may
#    |
# help: give it with -c N=VALUE
