# error: f "*fp32, *fp32"
@triton.jit
def f(x, x):
    tl.store(x, 1.0)
# == error f "*fp32, *fp32"
# error[F02]: two parameters are called `x`
#  --> twice_named.py:3:10
#   |
# 3 | def f(x, x):
#   |          ^
