# error: f "*fp32"
import triton.language as tl
import triton


@triton.jit
def f(x)
    i = tl.arange(0, 64
    v = tl.load(x + i)
    w = (v + 1
    tl.store(x + i, w)
# == error f "*fp32"
# error[F02]: expected `:`, found newline
#  --> unclosed_and_others.py:7:9
#   |
# 7 | def f(x)
#   |         ^
#   |
# help: the text must be what Python 3 accepts
#
# error[F02]: `(` is never closed
#  --> unclosed_and_others.py:8:18
#   |
# 8 |     i = tl.arange(0, 64
#   |                  ^ opened here
#   |
# help: close it, or see whether a bracket before it is one too many
#
# error[F02]: `(` is never closed
#   --> unclosed_and_others.py:10:9
#    |
# 10 |     w = (v + 1
#    |         ^ opened here
#    |
# help: close it, or see whether a bracket before it is one too many
