# Nor one that adds a list to a tuple.
# error: k "*i32"
import triton
import triton.language as tl

N = (1,)
N += [2]


@triton.jit
def k(out):
    tl.store(out, N)
# == error k "*i32"
# error[F10]: a list and a tuple have no sum
#  --> tuple_with_list.py:7:1
#   |
# 7 | N += [2]
#   | ^^^^^^^^
#   |
# help: make both a list: `x + list(y)`
