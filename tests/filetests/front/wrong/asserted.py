# Nor one with an assertion that fails.
# error: k "*i32"
import triton
import triton.language as tl

N = tl.constexpr(1)
assert N.value == 2


@triton.jit
def k(out):
    tl.store(out, N)
# == error k "*i32"
# error[F18]: assertion failed
#  --> asserted.py:7:1
#   |
# 7 | assert N.value == 2
#   | ^^^^^^^^^^^^^^^^^^^
#   |
# help: Python does not import the file; mend it
