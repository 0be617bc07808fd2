# error: f "*fp32"
import triton


@triton.jit
def f(x):
    tl.store(x + (tl.arange(0, 4)[None, :], 1.0)
    tl.store(x, {1: 2.0, 3: 4.0)
# == error f "*fp32"
# error[F02]: `(` is never closed
#  --> unclosed_inside.py:7:13
#   |
# 7 |     tl.store(x + (tl.arange(0, 4)[None, :], 1.0)
#   |             ^ opened here
#   |
# help: close it, or see whether a bracket before it is one too many
#
# error[F02]: `{` is never closed
#  --> unclosed_inside.py:8:17
#   |
# 8 |     tl.store(x, {1: 2.0, 3: 4.0)
#   |                 ^ opened here
#   |
# help: close it, or see whether a bracket before it is one too many
