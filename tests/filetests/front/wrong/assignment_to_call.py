# error: f "*fp32"
@triton.jit
def f(x):
    tl.load(x) = 1.0
# == error f "*fp32"
# error[F02]: invalid assignment target
#  --> assignment_to_call.py:4:5
#   |
# 4 |     tl.load(x) = 1.0
#   |     ^^^^^^^^^^
#   |
# help: the text must be what Python 3 accepts
