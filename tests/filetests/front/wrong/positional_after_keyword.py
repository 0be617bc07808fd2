# error: f "*fp32"
@triton.jit
def f(x):
    tl.store(pointer=x, 1.0)
# == error f "*fp32"
# error[F02]: positional argument cannot follow keyword argument
#  --> positional_after_keyword.py:4:25
#   |
# 4 |     tl.store(pointer=x, 1.0)
#   |                         ^^^
#   |
# help: the text must be what Python 3 accepts
