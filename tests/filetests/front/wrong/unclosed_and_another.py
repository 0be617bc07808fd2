# error: f "*fp32, i32"
import triton.language as tl
import triton


@triton.jit
def f(x, n):
    a = tl.load((x + n)
    b = a + 1
    c = b]
    d = tl.load(x + n]
    tl.store(x, c)
# == error f "*fp32, i32"
# error[F02]: `(` is never closed
#  --> unclosed_and_another.py:8:16
#   |
# 8 |     a = tl.load((x + n)
#   |                ^ opened here
#   |
# help: close it, or see whether a bracket before it is one too many
#
# error[F02]: `]` closes nothing
#   --> unclosed_and_another.py:10:10
#    |
# 10 |     c = b]
#    |          ^
#    |
# help: no bracket is open here
#
# error[F02]: `]` does not match `(`
#   --> unclosed_and_another.py:11:22
#    |
# 11 |     d = tl.load(x + n]
#    |                      ^
#    |
# help: `(` of line 11, column 16 is open
