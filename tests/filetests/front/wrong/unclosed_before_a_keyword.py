# error: f "*fp32, i32"
import triton
import triton.language as tl


@triton.jit
def f(x, n):
    i = tl.arange(0, 64)
    v = tl.load(x + i, mask=(i < n, other=0.0)
    tl.store(x + i, v, mask=i < n)
# == error f "*fp32, i32"
# error[F02]: `(` is never closed
#  --> unclosed_before_a_keyword.py:9:29
#   |
# 9 |     v = tl.load(x + i, mask=(i < n, other=0.0)
#   |                             ^ opened here
#   |
# help: close it, or see whether a bracket before it is one too many
