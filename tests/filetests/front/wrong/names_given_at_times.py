# Names that are given a value by `:=` where that happens only at times.
# error: in_one_side "*i32, i32"
# error: behind_and "*i32, i32"
# error: in_the_condition "*i32, i32"
# tile: decided_before "*i32, 4"
import triton
import triton.language as tl


@triton.jit
def in_one_side(x, n):
    y = 1
    z = 3 if n > 2 else (y := 4)
    tl.store(x, y + z)


@triton.jit
def behind_and(x, n):
    y = 1
    if n > 2 and (y := n * 2) < 9:
        tl.store(x, y)


@triton.jit
def in_the_condition(x, n):
    i = 0
    while (i := i + 1) < n:
        i += 1
    tl.store(x, i)


@triton.jit
def decided_before(x, N: tl.constexpr):
    y = 1
    if N > 2 and (y := N * 2) < 9:
        tl.store(x, y)
    tl.store(x + 1, 3 if N > 2 else (y := 4))
# == error in_one_side "*i32, i32"
# error[F07]: `:=` in one side of a choice at run time
#   --> names_given_at_times.py:13:26
#    |
# 13 |     z = 3 if n > 2 else (y := 4)
#    |                          ^^^^^^
#    |
# help: give the name its value in a statement before
# == error behind_and "*i32, i32"
# error[F07]: `:=` in what stands behind a condition of run time
#   --> names_given_at_times.py:20:19
#    |
# 20 |     if n > 2 and (y := n * 2) < 9:
#    |                   ^^^^^^^^^^
#    |
# help: give the name its value in a statement before
# == error in_the_condition "*i32, i32"
# error[F07]: `:=` in the condition of a loop
#   --> names_given_at_times.py:27:12
#    |
# 27 |     while (i := i + 1) < n:
#    |            ^^^^^^^^^^
#    |
# help: give the name its value in a statement before
# == tile decided_before "*i32, 4"
# kernel @decided_before(v0 "x": ptr<i32>) warps(4) {
# block0:
#     v1 = const {value = 8} : i32 @36
#     store v0, v1 @36
#     v2 = const {value = 1} : i32 @37
#     v3 = addptr v0, v2 : ptr<i32> @37
#     v4 = const {value = 3} : i32 @37
#     store v3, v4 @37
#     return @33
# }
