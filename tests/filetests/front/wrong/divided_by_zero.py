# Python does not import a module that divides by zero, whatever a kernel reads.
# error: k "*i32"
import triton
import triton.language as tl

N = 1
IF_ANY = 0
M = N // IF_ANY


@triton.jit
def k(out):
    tl.store(out, N)
# == error k "*i32"
# error[F13]: division by zero
#  --> divided_by_zero.py:8:5
#   |
# 8 | M = N // IF_ANY
#   |     ^^^^^^^^^^^
#   |
# help: Python does not import the file; mend it
