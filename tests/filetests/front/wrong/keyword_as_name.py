# error: f "*fp32"
@triton.jit
def f(lambda):
    tl.store(lambda, 1.0)
# == error f "*fp32"
# error[F02]: expected `)`, found `lambda`
#  --> keyword_as_name.py:3:7
#   |
# 3 | def f(lambda):
#   |       ^^^^^^
#   |
# help: the text must be what Python 3 accepts
#
# error[F02]: unexpected indentation
#  --> keyword_as_name.py:4:1
#   |
# 4 |     tl.store(lambda, 1.0)
#   | ^^^^
#   |
# help: the text must be what Python 3 accepts
