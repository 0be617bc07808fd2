# error: f "*fp32"
import triton


@triton.jit
def f(x):
    a = (1.0 +
         2.0]
    tl.store(x, a)
# == error f "*fp32"
# error[F02]: `]` does not match `(`
#  --> closes_another.py:8:13
#   |
# 8 |          2.0]
#   |             ^
#   |
# help: `(` of line 7, column 9 is open
