# Nor one that changes an element of a tuple.
# error: k "*i32"
import triton
import triton.language as tl

N = (1,)
N[0] = 2


@triton.jit
def k(out):
    tl.store(out, N)
# == error k "*i32"
# error[F10]: a tuple does not change
#  --> tuples_change.py:7:1
#   |
# 7 | N[0] = 2
#   | ^^^^
#   |
# help: make it a list: `[..]`
