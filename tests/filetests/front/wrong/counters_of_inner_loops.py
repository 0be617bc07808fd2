# error: f "*i32, i32"
import triton.language as tl
import triton


@triton.jit
def f(x, n):
    i = n
    for m in range(3):
        for i in range(4):
            tl.store(x + i, m)
    tl.store(x, i)
# == error f "*i32, i32"
# error[F05]: `i` has no value here
#   --> counters_of_inner_loops.py:12:17
#    |
# 12 |     tl.store(x, i)
#    |                 ^ it is the counter of a loop that has ended
#    |
# help: give the value to a name of its own in the loop
