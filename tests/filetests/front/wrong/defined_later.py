# Nor one that asks for what is defined later.
# error: k "*i32"
import triton
import triton.language as tl

M = N
N = 1


@triton.jit
def k(out):
    tl.store(out, N)
# == error k "*i32"
# error[F05]: `N` is not defined yet
#  --> defined_later.py:6:5
#   |
# 6 | M = N
#   |     ^
#   |
# help: define it in front of what needs it
