# error: f "*fp32, i32"
import triton.language as tl
import triton


@triton.jit
def f(x, n):
    a = tl.load(x + n
    b = a + 1
    c = min(
        b,
        2,
    )
    tl.store(x, c))
    tl.store(x, a)
# == error f "*fp32, i32"
# error[F02]: `(` is never closed
#  --> unclosed_and_too_many.py:8:16
#   |
# 8 |     a = tl.load(x + n
#   |                ^ opened here
#   |
# help: close it, or see whether a bracket before it is one too many
#
# error[F02]: `)` closes nothing
#   --> unclosed_and_too_many.py:14:19
#    |
# 14 |     tl.store(x, c))
#    |                   ^
#    |
# help: no bracket is open here
