# error: f "*fp32"
@triton.jit
def f(x):
    a = = 1
    b = 2 +
    tl.store(x, a b)
# == error f "*fp32"
# error[F02]: expected an expression
#  --> several_mistakes.py:4:9
#   |
# 4 |     a = = 1
#   |         ^
#   |
# help: the text must be what Python 3 accepts
#
# error[F02]: expected an expression
#  --> several_mistakes.py:5:12
#   |
# 5 |     b = 2 +
#   |            ^
#   |
# help: the text must be what Python 3 accepts
#
# error[F02]: expected `,`, found name
#  --> several_mistakes.py:6:19
#   |
# 6 |     tl.store(x, a b)
#   |                   ^
#   |
# help: the text must be what Python 3 accepts
