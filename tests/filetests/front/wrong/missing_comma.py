# error: f "*fp32, i32"
import triton.language as tl
import triton


@triton.jit
def f(x, n):
    a = max(
        1
        n,
    )
    tl.store(x, a)
# == error f "*fp32, i32"
# error[F02]: expected `,`, found name
#   --> missing_comma.py:10:9
#    |
# 10 |         n,
#    |         ^
#    |
# help: the text must be what Python 3 accepts
