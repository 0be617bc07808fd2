# error: f "*fp32"
import triton.language as tl
import triton


@triton.jit
def f(x):
    i = tl.arange(0, 64
    v = tl.load(x + i)
    tl.store(x + i, v)


@triton.jit
def g(x):
    tl.store(x, [1.0, 2.0][0])
# == error f "*fp32"
# error[F02]: `(` is never closed
#  --> unclosed_before_statements.py:8:18
#   |
# 8 |     i = tl.arange(0, 64
#   |                  ^ opened here
#   |
# help: close it, or see whether a bracket before it is one too many
