# error: f "*fp32"
@triton.jit
def f(x):
    if x is not None:
	tl.store(x, 1.0)
# == error f "*fp32"
# error[F02]: unindent does not match any outer indentation level
#  --> tabs.py:5:1
#   |
# 5 |     tl.store(x, 1.0)
#   | ^^^^
#   |
# help: the text must be what Python 3 accepts
