# What a loop assigns is its own name, and not what the module calls so: it has no value before that.
# error: from_the_module "*i32, i32"
# error: under_a_condition "*i32, i32"
# error: in_a_while "*i32, i32"
# error: called "*i32, i32"
# tile: after_its_value "*i32, i32"
import triton
import triton.language as tl

START: tl.constexpr = 5


@triton.jit
def twice(x):
    return x * 2


@triton.jit
def from_the_module(x, n):
    for i in range(n):
        tl.store(x + i, START)
        START = START + i


@triton.jit
def under_a_condition(x, n):
    for i in range(n):
        if i > 0:
            START += 1
            tl.store(x + i, START)


@triton.jit
def in_a_while(x, n):
    i = 0
    while i < n:
        i += START
        START = 2
    tl.store(x, i)


@triton.jit
def called(x, n):
    for i in range(n):
        twice = twice(i)
        tl.store(x + i, twice)


@triton.jit
def after_its_value(x, n):
    for i in range(n):
        START = i * 2
        tl.store(x + i, START)
# == error from_the_module "*i32, i32"
# error[F05]: `START` has no value here
#   --> own_names_of_loops.py:21:25
#    |
# 21 |         tl.store(x + i, START)
#    |                         ^^^^^ before the loop it has none, and in it only further on
#    |
# help: define it before the loop or condition
#
# error[F05]: `START` has no value here
#   --> own_names_of_loops.py:22:17
#    |
# 22 |         START = START + i
#    |                 ^^^^^ before the loop it has none, and in it only further on
#    |
# help: define it before the loop or condition
# == error under_a_condition "*i32, i32"
# error[F05]: `START` has no value here
#   --> own_names_of_loops.py:29:13
#    |
# 29 |             START += 1
#    |             ^^^^^ before the loop it has none, and in it only further on
#    |
# help: define it before the loop or condition
# == error in_a_while "*i32, i32"
# error[F05]: `START` has no value here
#   --> own_names_of_loops.py:37:14
#    |
# 37 |         i += START
#    |              ^^^^^ before the loop it has none, and in it only further on
#    |
# help: define it before the loop or condition
# == error called "*i32, i32"
# error[F05]: `twice` has no value here
#   --> own_names_of_loops.py:45:17
#    |
# 45 |         twice = twice(i)
#    |                 ^^^^^ before the loop it has none, and in it only further on
#    |
# help: define it before the loop or condition
# == tile after_its_value "*i32, i32"
# kernel @after_its_value(v0 "x": ptr<i32>, v1 "n": i32) warps(4) {
# block0:
#     v2 = const {value = 0} : i32 @51
#     v3 = const {value = 1} : i32 @51
#     for v2, v1, v3 @51 {
#     block1(v4: i32):
#         v5 = const {value = 2} : i32 @52
#         v6 = imul v4, v5 : i32 @52
#         v7 = addptr v0, v4 : ptr<i32> @53
#         store v7, v6 @53
#         yield @51
#     }
#     return @50
# }
