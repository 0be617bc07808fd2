# error: f "*fp32"
@triton.jit
def f(x)
    tl.store(x, 1.0)
# == error f "*fp32"
# error[F02]: expected `:`, found newline
#  --> missing_colon.py:3:9
#   |
# 3 | def f(x)
#   |         ^
#   |
# help: the text must be what Python 3 accepts
