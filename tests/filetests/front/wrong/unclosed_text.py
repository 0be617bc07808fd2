# error: f "*fp32"
@triton.jit
def f(x):
    tl.static_print("no end)
# == error f "*fp32"
# error[F02]: missing closing quote in string literal
#  --> unclosed_text.py:4:21
#   |
# 4 |     tl.static_print("no end)
#   |                     ^^^^^^^^
#   |
# help: the text must be what Python 3 accepts
