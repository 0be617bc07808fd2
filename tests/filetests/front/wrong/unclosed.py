# error: f "*fp32"
import triton.language as tl


@triton.jit
def f(x):
    tl.store(x, (1.0 + 2.0
# == error f "*fp32"
# error[F02]: `(` is never closed
#  --> unclosed.py:7:17
#   |
# 7 |     tl.store(x, (1.0 + 2.0
#   |                 ^ opened here
#   |
# help: close it, or see whether a bracket before it is one too many
