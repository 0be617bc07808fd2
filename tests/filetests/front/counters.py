# Counters of loops one after the other: with no iteration of the last one it is what the one before left. Expected numbers
# are Python's own.
# run: in_turn "*i32, i32, i32" : grid(1) out=i32[3] poison n=3 m=0 ; expect out = [2,2,4]
# run: in_turn "*i32, i32, i32" : grid(1) out=i32[3] poison n=3 m=12 ; expect out = [11,11,4]
# run: assigned "*i32, i32, i32" : grid(1) out=i32[1] poison n=3 m=0 ; expect out = [2]
# run: assigned "*i32, i32, i32" : grid(1) out=i32[1] poison n=3 m=12 ; expect out = [22]
# run: certain "*i32" : grid(1) out=i32[1] poison ; expect out = [3]
# run: of_a_wider_type "*i64, i32, i64" : grid(1) out=i64[1] poison n=3 m=0 ; expect out = [2]
# run: of_a_wider_type "*i64, i32, i64" : grid(1) out=i64[1] poison n=3 m=7 ; expect out = [6]
# error: of_a_narrower_type "*i32, i32, i64"
# error: of_a_float "*i32, i32"
# error: in_a_branch "*i32, i32, i32"
import triton
import triton.language as tl


@triton.jit
def in_turn(out, n, m):
    x = 0
    for i in range(n):
        x += i
    for i in range(10, m):
        x += i
    tl.store(out, i)
    for i in range(x, x):
        x += i
    tl.store(out + 1, i)
    for i in range(x, x + 5):
        n += i
    tl.store(out + 2, i - x)


@triton.jit
def assigned(out, n, m):
    x = 0
    for i in range(n):
        x += i
    for i in range(10, m):
        i = i * 2
    tl.store(out, i)


@triton.jit
def certain(out):
    i = 7.5
    x = 0
    for i in range(4):
        x += i
    tl.store(out, i)


@triton.jit
def of_a_wider_type(out, n, m):
    x = 0
    for i in range(n):
        x += i
    for i in range(m):
        x += n
    tl.store(out, i)


@triton.jit
def of_a_narrower_type(out, n, m):
    x = 0
    for i in range(m):
        x += n
    for i in range(n):
        x += i
    tl.store(out, i)


@triton.jit
def of_a_float(out, n):
    i = 7.5
    x = 0
    for i in range(n):
        x += i
    tl.store(out, i)


@triton.jit
def in_a_branch(out, n, c):
    i = 5
    x = 0
    if c > 0:
        for i in range(n):
            x += i
    tl.store(out, i)
# == error of_a_narrower_type "*i32, i32, i64"
# error[F05]: `i` has no value here
#   --> counters.py:69:19
#    |
# 69 |     tl.store(out, i)
#    |                   ^ it is the counter of a loop that has ended, and was of another type before it
#    |
# help: give the value to a name of its own in the loop
# == error of_a_float "*i32, i32"
# error[F05]: `i` has no value here
#   --> counters.py:78:19
#    |
# 78 |     tl.store(out, i)
#    |                   ^ it is the counter of a loop that has ended, and was of another type before it
#    |
# help: give the value to a name of its own in the loop
# == error in_a_branch "*i32, i32, i32"
# error[F05]: `i` has no value here
#   --> counters.py:88:19
#    |
# 88 |     tl.store(out, i)
#    |                   ^ it is the counter of a loop in one branch of an `if`
#    |
# help: give the value to a name of its own in the loop
