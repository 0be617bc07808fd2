# error: f "*fp32"
import triton


@triton.jit
def f(x):
    a = = 1
    tl.store(x, (1.0 + 2.0)))
# == error f "*fp32"
# error[F02]: expected an expression
#  --> closes_nothing.py:7:9
#   |
# 7 |     a = = 1
#   |         ^
#   |
# help: the text must be what Python 3 accepts
#
# error[F02]: `)` closes nothing
#  --> closes_nothing.py:8:29
#   |
# 8 |     tl.store(x, (1.0 + 2.0)))
#   |                             ^
#   |
# help: no bracket is open here
