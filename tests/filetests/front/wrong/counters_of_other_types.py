# error: f "*fp32, i32"
import triton.language as tl
import triton


@triton.jit
def f(x, n):
    for i in range(n):
        i = i * 0.5
        tl.store(x, i)
    tl.store(x, i)
# == error f "*fp32, i32"
# error[F05]: `i` has no value here
#   --> counters_of_other_types.py:11:17
#    |
# 11 |     tl.store(x, i)
#    |                 ^ it is the counter of a loop that has ended, which counts in i32 and leaves fp32 in it
#    |
# help: give the value to a name of its own in the loop
