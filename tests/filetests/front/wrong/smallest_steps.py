# A step whose amount is no number of the counter's type.
# error: of_32_bits "*i64"
# error: of_64_bits "*i64, i64"
# tile: less_by_one "*i64"
import triton
import triton.language as tl


@triton.jit
def of_32_bits(x):
    for i in range(10, 0, -2147483648):
        tl.store(x, i)


@triton.jit
def of_64_bits(x, n):
    for i in range(n, 0, -9223372036854775808):
        tl.store(x, i)


@triton.jit
def less_by_one(x):
    for i in range(10, 0, -2147483647):
        tl.store(x, i)
# == error of_32_bits "*i64"
# error[F20]: a loop over int32 has no step of -2^31
#   --> smallest_steps.py:11:14
#    |
# 11 |     for i in range(10, 0, -2147483648):
#    |              ^^^^^^^^^^^^^^^^^^^^^^^^^
#    |
# help: a smaller one ends it as soon
# == error of_64_bits "*i64, i64"
# error[F20]: a loop over int64 has no step of -2^63
#   --> smallest_steps.py:17:14
#    |
# 17 |     for i in range(n, 0, -9223372036854775808):
#    |              ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    |
# help: a smaller one ends it as soon
# == tile less_by_one "*i64"
# kernel @less_by_one(v0 "x": ptr<i64>) warps(4) {
# block0:
#     v1 = const {value = 0} : i32 @23
#     v2 = const {value = 10} : i32 @23
#     v3 = const {value = 2147483647} : i32 @23
#     for v1, v2, v3 @23 {
#     block1(v4: i32):
#         v5 = iadd v1, v2 : i32 @23
#         v6 = isub v5, v4 : i32 @23
#         v7 = sext v6 : i64 @24
#         store v0, v7 @24
#         yield @23
#     }
#     return @22
# }
