# error: f "*fp32, *fp32"
@triton.jit
def f(x, x):
    tl.store(x, 1.0)
# == error f "*fp32, *fp32"
# error[F05]: `tl` is not defined
#  --> twice_named.py:4:5
#   |
# 4 |     tl.store(x, 1.0)
#   |     ^^
#   |
# help: define it, or give a constant with -c tl=VALUE
