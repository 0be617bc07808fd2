# error: f "*fp32"
import triton.language as tl
import triton


@triton.jit
def f(x):
    i = tl.arange(0, 64
    v = tl.load(x + i)
    tl.device_print("v, v)
    tl.store(x + i, v)
# == error f "*fp32"
# error[F02]: `(` is never closed
#  --> unclosed_and_text.py:8:18
#   |
# 8 |     i = tl.arange(0, 64
#   |                  ^ opened here
#   |
# help: close it, or see whether a bracket before it is one too many
