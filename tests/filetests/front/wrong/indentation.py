# error: f "*fp32"
@triton.jit
def f(x):
        a = 1.0
    tl.store(x, a)
# == error f "*fp32"
# error[F02]: unindent does not match any outer indentation level
#  --> indentation.py:5:1
#   |
# 5 |     tl.store(x, a)
#   | ^^^^
#   |
# help: the text must be what Python 3 accepts
