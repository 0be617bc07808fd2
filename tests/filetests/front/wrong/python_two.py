# error: f "*fp32"
@triton.jit
def f(x):
    print "value", x
# == error f "*fp32"
# error[F02]: simple statements must be separated by newlines or semicolons
#  --> python_two.py:4:11
#   |
# 4 |     print "value", x
#   |           ^^^^^^^
#   |
# help: the text must be what Python 3 accepts
