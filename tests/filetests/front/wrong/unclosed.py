# error: f "*fp32"
import triton.language as tl


@triton.jit
def f(x):
    tl.store(x, (1.0 + 2.0
# == error f "*fp32"
# error[F02]: unexpected EOF while parsing
#  --> unclosed.py:8:1
#   |
# 8 |
#   | ^
#   |
# help: the text must be what Python 3 accepts
