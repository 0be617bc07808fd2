# What must be known, counted or bounded at compile time.
# error: from_data "*fp32, i32"
# error: argument_from_data "*fp32, i32"
# error: static_range_of_data "*fp32, i32"
# error: assert_of_data "*fp32, i32"
# error: by_zero "*fp32"
# error: modulo_zero "*fp32, 0"
# error: shift "*fp32"
# error: huge_power "*fp32"
# error: root_of_negative "*fp32"
# error: module_constant_by_zero "*fp32"
# error: defined_by_itself "*fp32"
# error: assertion "*fp32, 48"
# error: python_assertion "*fp32, 48"
# error: unknown_mode "*fp32, 'tanh'"
# error: changed_constant "*fp32, i32, 4"
# error: unroll "*fp32"
# error: unroll_nested "*fp32"
# error: endless_recursion "*fp32, i32"
# error: mutual_recursion "*fp32, i32"
# error: recursion_without_end "*fp32, 3"
# error: host_loop "*fp32"
# error: growing_tuple "*fp32"
# error: growing_text "*fp32"
# error: large_list "*fp32"
# error: repeated_tuple "*fp32"
# error: tuple_index "*fp32, i32"
# error: tuple_range "*fp32"
# error: axis_of_grid "*fp32"
# error: cache "*fp32"
# error: eviction "*fp32"
# error: rounding "*fp32"
# error: stages "*fp32, i32"
# error: hint_count "*fp32"
# error: hint_value "*fp32, i32"
# error: reduce_result "*fp32"
# error: missing_argument "*fp32, 16"
# error: too_many_arguments "*fp32, 16, 16, 16"
# error: given_twice "*fp32, 16, 4" N=8
# error: constexpr_pointer "*fp32, *fp32, 4"
# error: many_warps "*fp32" num_warps=64
# error: odd_warps "*fp32" num_warps=3
import math

import triton
import triton.language as tl

if math.unheard_of(): RATIO = 1 / 0
if math.unheard_of(): LOOP = LOOP * 2


@triton.jit
def from_data(x, n):
    SIZE: tl.constexpr = n * 2
    tl.store(x + tl.arange(0, SIZE), 1.0)


@triton.jit
def fill(x, SIZE: tl.constexpr):
    tl.store(x + tl.arange(0, SIZE), 1.0)


@triton.jit
def argument_from_data(x, n):
    fill(x, n)


@triton.jit
def static_range_of_data(x, n):
    for i in tl.static_range(n):
        tl.store(x + i, 1.0)


@triton.jit
def assert_of_data(x, n):
    tl.static_assert(n > 0, "must be positive")


@triton.jit
def by_zero(x):
    tl.store(x, 1 / 0)


@triton.jit
def modulo_zero(x, N: tl.constexpr):
    tl.store(x, 7 % N)


@triton.jit
def shift(x):
    tl.store(x, 1 << -1)


@triton.jit
def huge_power(x):
    tl.store(x, 10 ** 100)


@triton.jit
def root_of_negative(x):
    tl.store(x, math.sqrt(-2.0))


@triton.jit
def module_constant_by_zero(x):
    tl.store(x, RATIO)


@triton.jit
def defined_by_itself(x):
    tl.store(x, LOOP)


@triton.jit
def assertion(x, N: tl.constexpr):
    tl.static_assert(N & (N - 1) == 0, f"{N} is no power of two")


@triton.jit
def python_assertion(x, N: tl.constexpr):
    assert N % 32 == 0, "N counts whole warps"


@triton.jit
def unknown_mode(x, MODE: tl.constexpr):
    if MODE == "relu":
        tl.store(x, 1.0)
    else:
        tl.static_assert(False, "unknown mode " + MODE)


@triton.jit
def changed_constant(x, n, SIZE: tl.constexpr):
    for i in range(n):
        SIZE = SIZE * 2
    tl.store(x, SIZE)


@triton.jit
def unroll(x):
    for i in tl.static_range(1 << 50):
        tl.store(x + i, 1.0)


@triton.jit
def unroll_nested(x):
    for i in tl.static_range(60000):
        for j in tl.static_range(60000):
            tl.store(x + i * j, 1.0)


@triton.jit
def down(n):
    return down(n - 1)


@triton.jit
def endless_recursion(x, n):
    tl.store(x, down(n))


@triton.jit
def ping(n):
    return pong(n)


@triton.jit
def pong(n):
    return ping(n)


@triton.jit
def mutual_recursion(x, n):
    tl.store(x, ping(n))


@triton.jit
def factorial(N: tl.constexpr):
    return N * factorial(N - 1)


@triton.jit
def recursion_without_end(x, N: tl.constexpr):
    tl.store(x, factorial(N))


def spin(n):
    while n > 0:
        n = n + 1
    return n


@triton.jit
def host_loop(x):
    tl.store(x, spin(1))


@triton.jit
def growing_tuple(x):
    t = (1.0, 2.0)
    for i in tl.static_range(100):
        t = t + t


@triton.jit
def growing_text(x):
    S: tl.constexpr = "ab"
    for i in tl.static_range(100):
        S: tl.constexpr = S + S


@triton.jit
def large_list(x):
    t = [i for i in range(1 << 40)]


@triton.jit
def repeated_tuple(x):
    t = (1, 2) * (1 << 40)


@triton.jit
def tuple_index(x, n):
    t = (1.0, 2.0)
    tl.store(x, t[n])


@triton.jit
def tuple_range(x):
    t = (1.0, 2.0)
    tl.store(x, t[2])


@triton.jit
def axis_of_grid(x):
    tl.store(x, tl.program_id(3))


@triton.jit
def cache(x):
    tl.store(x, tl.load(x, cache_modifier=".L2"))


@triton.jit
def eviction(x):
    tl.store(x, tl.load(x, eviction_policy="never"))


@triton.jit
def rounding(x):
    tl.store(x, tl.load(x).to(tl.float16, fp_downcast_rounding="up"))


@triton.jit
def stages(x, n):
    for i in tl.range(0, n, num_stages=100):
        tl.store(x + i, 1.0)


@triton.jit
def hint_count(x):
    at = tl.multiple_of(tl.arange(0, 8), (4, 4))
    tl.store(x + at, 1.0)


@triton.jit
def hint_value(x, n):
    tl.store(x + tl.multiple_of(n, n), 1.0)


@triton.jit
def three(a, b):
    return a, b, a


@triton.jit
def reduce_result(x):
    tl.store(x, tl.reduce(tl.zeros((4,), tl.float32), 0, three))


@triton.jit
def missing_argument(x, N: tl.constexpr, BLOCK: tl.constexpr):
    tl.store(x, N)


@triton.jit
def too_many_arguments(x, N: tl.constexpr):
    tl.store(x, N)


@triton.jit
def given_twice(x, N: tl.constexpr, M: tl.constexpr):
    tl.store(x, N)


@triton.jit
def constexpr_pointer(x, Y: tl.constexpr, N: tl.constexpr):
    tl.store(x, N)


@triton.jit
def many_warps(x):
    tl.store(x, 1.0)


@triton.jit
def odd_warps(x):
    tl.store(x, 1.0)
# == error from_data "*fp32, i32"
# warning[F22]: this is no compile-time constant but a scalar i32
#   --> constants.py:54:5
#    |
# 54 |     SIZE: tl.constexpr = n * 2
#    |     ^^^^^^^^^^^^^^^^^^^^^^^^^^
#    |
# help: only what does not depend on data is one; the annotation changes nothing
#
# error[F12]: `end` of `arange` must be a constant integer, found a scalar i32
#   --> constants.py:55:31
#    |
# 55 |     tl.store(x + tl.arange(0, SIZE), 1.0)
#    |                               ^^^^
#    |
# help: what it comes from must be a constant, or a `tl.constexpr` of the kernel
# == error argument_from_data "*fp32, i32"
# error[F12]: `end` of `arange` must be a constant integer, found a scalar i32
#   --> constants.py:60:31
#    |
# 60 |     tl.store(x + tl.arange(0, SIZE), 1.0)
#    |                               ^^^^
#    |
# note: in `fill`, called here
#   --> constants.py:65:5
#    |
# 65 |     fill(x, n)
#    |     ^^^^^^^^^^
# help: what it comes from must be a constant, or a `tl.constexpr` of the kernel
# == error static_range_of_data "*fp32, i32"
# error[F12]: the end of an unrolled loop must be a constant
#   --> constants.py:70:14
#    |
# 70 |     for i in tl.static_range(n):
#    |              ^^^^^^^^^^^^^^^^^^ found a scalar i32
#    |
# help: use tl.range
# == error assert_of_data "*fp32, i32"
# error[F12]: the condition is not known at compile time
#   --> constants.py:76:5
#    |
# 76 |     tl.static_assert(n > 0, "must be positive")
#    |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    |
# help: use tl.device_assert for what depends on data
# == error by_zero "*fp32"
# error[F13]: division by zero
#   --> constants.py:81:17
#    |
# 81 |     tl.store(x, 1 / 0)
#    |                 ^^^^^
# == error modulo_zero "*fp32, 0"
# error[F13]: division by zero
#   --> constants.py:86:17
#    |
# 86 |     tl.store(x, 7 % N)
#    |                 ^^^^^
# == error shift "*fp32"
# error[F13]: negative shift count
#   --> constants.py:91:17
#    |
# 91 |     tl.store(x, 1 << -1)
#    |                 ^^^^^^^
# == error huge_power "*fp32"
# error[F13]: the result needs more than 128 bits
#   --> constants.py:96:17
#    |
# 96 |     tl.store(x, 10 ** 100)
#    |                 ^^^^^^^^^
# == error root_of_negative "*fp32"
# error[F13]: `math.sqrt` of -2.0 is not a number
#    --> constants.py:101:17
#     |
# 101 |     tl.store(x, math.sqrt(-2.0))
#     |                 ^^^^^^^^^^^^^^^
# == error module_constant_by_zero "*fp32"
# error[F12]: `RATIO` of the module cannot be evaluated: division by zero
#    --> constants.py:106:17
#     |
# 106 |     tl.store(x, RATIO)
#     |                 ^^^^^
#     |
# help: give its value with -c RATIO=VALUE
# == error defined_by_itself "*fp32"
# error[F12]: `LOOP` of the module cannot be evaluated: `LOOP` is not defined yet
#    --> constants.py:111:17
#     |
# 111 |     tl.store(x, LOOP)
#     |                 ^^^^
#     |
# help: give its value with -c LOOP=VALUE
# == error assertion "*fp32, 48"
# error[F18]: static assertion failed: 48 is no power of two
#    --> constants.py:116:5
#     |
# 116 |     tl.static_assert(N & (N - 1) == 0, f"{N} is no power of two")
#     |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
# == error python_assertion "*fp32, 48"
# error[F18]: assertion failed: N counts whole warps
#    --> constants.py:121:5
#     |
# 121 |     assert N % 32 == 0, "N counts whole warps"
#     |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
# == error unknown_mode "*fp32, 'tanh'"
# error[F18]: static assertion failed: unknown mode tanh
#    --> constants.py:129:9
#     |
# 129 |         tl.static_assert(False, "unknown mode " + MODE)
#     |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
# == error changed_constant "*fp32, i32, 4"
# error[F16]: `SIZE` is the constant 4 before the loop and a number of type i32 after an iteration
#    --> constants.py:134:5
#     |
# 134 |     for i in range(n):
#     |     ^^^^^^^^^^^^^^^^^^
#     |
# help: give it a value of the final type before the loop
# == error unroll "*fp32"
# error[F19]: a loop of 1125899906842624 iterations cannot be unrolled
#    --> constants.py:141:14
#     |
# 141 |     for i in tl.static_range(1 << 50):
#     |              ^^^^^^^^^^^^^^^^^^^^^^^^
#     |
# help: at most 65536 are; use tl.range
# == error unroll_nested "*fp32"
# error[F19]: the kernel has more than 200000 operations
#    --> constants.py:149:33
#     |
# 149 |             tl.store(x + i * j, 1.0)
#     |                                 ^^^
#     |
# help: use `range` in place of `static_range`
# == error endless_recursion "*fp32, i32"
# error[F19]: calls are nested more than 100 deep
#    --> constants.py:154:12
#     |
# 154 |     return down(n - 1)
#     |            ^^^^^^^^^^^
#     |
# note: in `down`, called here (99 times)
#    --> constants.py:154:12
#     |
# 154 |     return down(n - 1)
#     |            ^^^^^^^^^^^
# note: in `down`, called here
#    --> constants.py:159:17
#     |
# 159 |     tl.store(x, down(n))
#     |                 ^^^^^^^
# help: recursion must end at compile time, by constants
# == error mutual_recursion "*fp32, i32"
# error[F19]: calls are nested more than 100 deep
#    --> constants.py:169:12
#     |
# 169 |     return ping(n)
#     |            ^^^^^^^
#     |
# note: in `pong`, called here
#    --> constants.py:164:12
#     |
# 164 |     return pong(n)
#     |            ^^^^^^^
# note: in `ping`, called here
#    --> constants.py:169:12
#     |
# 169 |     return ping(n)
#     |            ^^^^^^^
# note: in `pong`, called here
#    --> constants.py:164:12
#     |
# 164 |     return pong(n)
#     |            ^^^^^^^
# note: in `ping`, called here
#    --> constants.py:169:12
#     |
# 169 |     return ping(n)
#     |            ^^^^^^^
# note: in `pong`, called here
#    --> constants.py:164:12
#     |
# 164 |     return pong(n)
#     |            ^^^^^^^
# note: in `ping`, called here
#    --> constants.py:169:12
#     |
# 169 |     return ping(n)
#     |            ^^^^^^^
# note: in `pong`, called here
#    --> constants.py:164:12
#     |
# 164 |     return pong(n)
#     |            ^^^^^^^
# note: in `ping`, called here
#    --> constants.py:169:12
#     |
# 169 |     return ping(n)
#     |            ^^^^^^^
# note: and 92 calls more
# help: recursion must end at compile time, by constants
# == error recursion_without_end "*fp32, 3"
# error[F19]: calls are nested more than 100 deep
#    --> constants.py:179:16
#     |
# 179 |     return N * factorial(N - 1)
#     |                ^^^^^^^^^^^^^^^^
#     |
# note: in `factorial`, called here (99 times)
#    --> constants.py:179:16
#     |
# 179 |     return N * factorial(N - 1)
#     |                ^^^^^^^^^^^^^^^^
# note: in `factorial`, called here
#    --> constants.py:184:17
#     |
# 184 |     tl.store(x, factorial(N))
#     |                 ^^^^^^^^^^^^
# help: recursion must end at compile time, by constants
# == error host_loop "*fp32"
# error[F19]: the kernel takes more than 2000000 steps to evaluate
#    --> constants.py:188:15
#     |
# 188 |     while n > 0:
#     |               ^
#     |
# note: in `spin`, called here
#    --> constants.py:195:17
#     |
# 195 |     tl.store(x, spin(1))
#     |                 ^^^^^^^
# help: unroll less, or call less deeply
# == error growing_tuple "*fp32"
# error[F19]: a tuple has more than 4096 elements
#    --> constants.py:202:9
#     |
# 202 |         t = t + t
#     |         ^^^^^^^^^
# == error growing_text "*fp32"
# error[F13]: the string is too long
#    --> constants.py:209:27
#     |
# 209 |         S: tl.constexpr = S + S
#     |                           ^^^^^
# == error large_list "*fp32"
# error[F19]: a loop of 1099511627776 iterations cannot be unrolled
#    --> constants.py:214:9
#     |
# 214 |     t = [i for i in range(1 << 40)]
#     |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^
#     |
# help: at most 65536 are; use tl.range
# == error repeated_tuple "*fp32"
# error[F20]: a tuple is repeated a constant, small number of times
#    --> constants.py:219:9
#     |
# 219 |     t = (1, 2) * (1 << 40)
#     |         ^^^^^^^^^^^^^^^^^^
# == error tuple_index "*fp32, i32"
# error[F12]: a tuple is indexed by a constant, found a scalar i32
#    --> constants.py:225:17
#     |
# 225 |     tl.store(x, t[n])
#     |                 ^^^^
#     |
# help: loop with tl.static_range to have a constant
# == error tuple_range "*fp32"
# error[F20]: index 2 of a tuple of 2
#    --> constants.py:231:17
#     |
# 231 |     tl.store(x, t[2])
#     |                 ^^^^
# == error axis_of_grid "*fp32"
# error[F20]: a grid has the axes 0, 1 and 2, not 3
#    --> constants.py:236:17
#     |
# 236 |     tl.store(x, tl.program_id(3))
#     |                 ^^^^^^^^^^^^^^^^
# == error cache "*fp32"
# error[F20]: unknown cache modifier ".L2"
#    --> constants.py:241:17
#     |
# 241 |     tl.store(x, tl.load(x, cache_modifier=".L2"))
#     |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#     |
# help: known are "", ".ca", ".cg", ".cs", ".cv"
# == error eviction "*fp32"
# error[F20]: unknown eviction policy "never"
#    --> constants.py:246:17
#     |
# 246 |     tl.store(x, tl.load(x, eviction_policy="never"))
#     |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#     |
# help: known are "evict_first" and "evict_last"
# == error rounding "*fp32"
# error[F20]: unknown rounding "up"
#    --> constants.py:251:17
#     |
# 251 |     tl.store(x, tl.load(x).to(tl.float16, fp_downcast_rounding="up"))
#     |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#     |
# help: it is "rtne" or "rtz"
# == error stages "*fp32, i32"
# error[F20]: a loop has 1 to 32 stages, not 100
#    --> constants.py:256:14
#     |
# 256 |     for i in tl.range(0, n, num_stages=100):
#     |              ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
# == error hint_count "*fp32"
# error[F20]: 2 numbers for a value of 1 dimensions
#    --> constants.py:262:10
#     |
# 262 |     at = tl.multiple_of(tl.arange(0, 8), (4, 4))
#     |          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#     |
# help: give one for each dimension
# == error hint_value "*fp32, i32"
# error[F12]: expected constants above zero, found a scalar i32
#    --> constants.py:268:18
#     |
# 268 |     tl.store(x + tl.multiple_of(n, n), 1.0)
#     |                  ^^^^^^^^^^^^^^^^^^^^
# == error reduce_result "*fp32"
# error[F10]: the function must give 1 values, it gives 3
#    --> constants.py:278:17
#     |
# 278 |     tl.store(x, tl.reduce(tl.zeros((4,), tl.float32), 0, three))
#     |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
# == error missing_argument "*fp32, 16"
# error[F04]: `BLOCK` has no argument
#    --> constants.py:282:42
#     |
# 282 | def missing_argument(x, N: tl.constexpr, BLOCK: tl.constexpr):
#     |                                          ^^^^^^^^^^^^^^^^^^^
#     |
# help: the signature gives 2 of 3 arguments: add a value behind the others, as in ".., 1024", or BLOCK=VALUE (for the command -c BLOCK=VALUE)
# == error too_many_arguments "*fp32, 16, 16, 16"
# error[F04]: 4 arguments for 2 parameters of `too_many_arguments`
#    --> constants.py:287:5
#     |
# 287 | def too_many_arguments(x, N: tl.constexpr):
#     |     ^^^^^^^^^^^^^^^^^^
# == error given_twice "*fp32, 16, 4" N=8
# error[F04]: `N` is given twice: by position and by name
#    --> constants.py:292:20
#     |
# 292 | def given_twice(x, N: tl.constexpr, M: tl.constexpr):
#     |                    ^^^^^^^^^^^^^^^
# == error constexpr_pointer "*fp32, *fp32, 4"
# error[F04]: `Y` is a constexpr and cannot be *fp32
#    --> constants.py:297:26
#     |
# 297 | def constexpr_pointer(x, Y: tl.constexpr, N: tl.constexpr):
#     |                          ^^^^^^^^^^^^^^^
#     |
# help: give a number, True, False, None, a quoted string or a type
# == error many_warps "*fp32" num_warps=64
# error[F04]: a kernel has 1, 2, 4, 8, 16 or 32 warps, not 64
#    --> constants.py:302:5
#     |
# 302 | def many_warps(x):
#     |     ^^^^^^^^^^
# == error odd_warps "*fp32" num_warps=3
# error[F04]: a kernel has 1, 2, 4, 8, 16 or 32 warps, not 3
#    --> constants.py:307:5
#     |
# 307 | def odd_warps(x):
#     |     ^^^^^^^^^
