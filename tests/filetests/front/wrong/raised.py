# Nor one that raises.
# error: k "*i32"
import triton
import triton.language as tl

N = 1
if N == 1:
    raise ValueError("no kernels")


@triton.jit
def k(out):
    tl.store(out, N)
# == error k "*i32"
# error[F18]: the module raises ValueError: no kernels
#  --> raised.py:8:5
#   |
# 8 |     raise ValueError("no kernels")
#   |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   |
# help: Python does not import the file; mend it
