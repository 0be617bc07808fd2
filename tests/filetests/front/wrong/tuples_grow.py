# Nor one that puts something into a tuple.
# error: k "*i32"
import triton
import triton.language as tl

N = (1,)
N.append(2)


@triton.jit
def k(out):
    tl.store(out, N)
# == error k "*i32"
# error[F10]: a tuple does not change
#  --> tuples_grow.py:7:1
#   |
# 7 | N.append(2)
#   | ^^^^^^^^^^^
#   |
# help: make it a list: `[..]`
