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
# == error k "*i32"
# error[F12]: `N` of the module cannot be evaluated: line 10 sets the `value` of a `constexpr`, nobody knows of which
#   --> set_constexprs.py:18:19
#    |
# 18 |     tl.store(out, N)
#    |                   ^
#    |
# help: give its value with -c N=VALUE
