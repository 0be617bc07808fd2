# error: f "*i32, i32"
import triton.language as tl
import triton


@triton.jit
def f(x, n):
    for i in range(n):
        tl.store(x + i, n)
    tl.store(x, i)
    tl.store(x + i, i + y)
# == error f "*i32, i32"
# warning[F22]: `i` is the counter of a loop that has ended
#   --> counters_read_often.py:10:17
#    |
# 10 |     tl.store(x, i)
#    |                 ^ what it was in the last iteration, or the loop's start if there was none; also in 2 further places
#    |
# help: Triton leaves it undefined; give the value to a name of its own in the loop
#
# error[F05]: `y` is not defined
#   --> counters_read_often.py:11:25
#    |
# 11 |     tl.store(x + i, i + y)
#    |                         ^
#    |
# help: define it, or give a constant with -c y=VALUE
