# Mistakes, one function for each.
# error: nothing ""
# error: ad "*fp32"
# error: too_few "*fp32"
# error: too_few "*fp32, i32, 16, 16"
# error: too_few "*fp32, i32, *fp32"
# error: unknown_name "*fp32"
# error: branch_local "*fp32, i32"
# error: unknown_function "*fp32"
# error: unknown_attribute "*fp32"
# error: slicing "*fp32"
# error: chained "*fp32, i32"
# error: statements "*fp32, i32"
# error: dot "*fp32"
# error: wrong_call "*fp32"
# error: wrong_inner_call "*fp32"
# error: types "*fp32, *fp16, *u32, *i32"
# error: half_exp "*fp16"
# error: in_callee "*fp16"
# error: shapes "*fp32"
# error: not_power_of_two "*fp32"
# error: needs_constant "*fp32, i32"
# error: by_zero "*fp32"
# error: block_condition "*fp32"
# error: endless "*i32"
# error: branch_types "*fp32, i32"
# error: loop_types "*fp32, i32"
# error: return_types "*fp32, i32"
# error: returns_value "*fp32"
# error: return_in_loop "*fp32, i32"
# error: asserted "*fp32, 3"
# error: recursion "*fp32"
# error: huge_unroll "*fp32"
# error: values "*fp32, *ku8"
# error: unset_global "*fp32"
# error: runtime_tuple_index "*fp32, i32"
# error: masks "*fp32, *i32"
# error: several "*fp32, i32"
# tile: warned "*fp32, 2"
import os

import triton
import triton.language as tl
from elsewhere import exp, unheard_of

HOST = os.environ["HOME"]
if unheard_of(1): SELF = SELF + 1


@triton.jit
def add(x):
    pass


@triton.jit
def too_few(x, n, SIZE: tl.constexpr):
    pass


@triton.jit
def unknown_name(x):
    value = tl.load(x)
    tl.store(x, valeu)


@triton.jit
def branch_local(x, n):
    if n > 0:
        y = 1.0
    tl.store(x, y)


@triton.jit
def unknown_function(x):
    tl.store(x, unheard_of(tl.load(x)))
    tl.store(x, tl.no_such_thing(1))


@triton.jit
def unknown_attribute(x):
    tl.store(x, tl.load(x).nothing)


@triton.jit
def slicing(x):
    v = tl.load(x + tl.arange(0, 8))
    tl.store(x, v[0])
    tl.store(x, v[:, :, None])


@triton.jit
def chained(x, n):
    if 0 < n < 10:
        tl.store(x, 1.0)


@triton.jit
def statements(x, n):
    for i in range(n):
        if i == 3:
            break
        continue
    try:
        pass
    finally:
        pass
    f = lambda v: v
    d = {1: 2}
    a = b = 0
    x[0] = 1.0
    raise ValueError("no")
    with_power = 2**n
    matrix = n @ n


@triton.jit
def dot(x):
    v = tl.load(x + tl.arange(0, 16)[:, None] + tl.arange(0, 16)[None, :])
    tl.dot_scaled(v, v)


@triton.jit
def wrong_call(x):
    tl.load()
    tl.load(x, maks=True)
    tl.arange(0, 8, 9)
    tl.load(x, other=0.0)


@triton.jit
def wrong_inner_call(x):
    add()
    add(x, 1)
    add(x, x=1)
    add(y=1)


@triton.jit
def types(f, h, u, i):
    a = tl.load(f)
    b = tl.load(h)
    c = tl.load(u)
    d = tl.load(i)
    tl.store(f, c // d)
    tl.store(f, a & b)
    tl.store(f, f * 2)
    tl.store(f, f + a)
    tl.store(a, a)
    tl.store(f, a // b)
    tl.store(f, a.to(tl.pointer_type(tl.float32)))
    tl.store(f, tl.where(a > 0, "text", 0))
    a()


@triton.jit
def half_exp(x):
    tl.store(x, tl.exp(tl.load(x)))


@triton.jit
def gelu(v):
    return 0.5 * v * (1 + tl.erf(v * 0.70710678))


@triton.jit
def activation(v):
    return gelu(v) + 1


@triton.jit
def in_callee(x):
    tl.store(x, activation(tl.load(x)))


@triton.jit
def shapes(x):
    a = tl.arange(0, 8)
    b = tl.arange(0, 16)
    tl.store(x + a, a + b)
    tl.store(x, a)
    tl.store(x + a, b)
    tl.sum(a, axis=1)


@triton.jit
def not_power_of_two(x):
    tl.store(x + tl.arange(0, 12), 1.0)
    tl.zeros((2048, 2048), tl.float32)
    tl.zeros((-4,), tl.float32)


@triton.jit
def needs_constant(x, n):
    tl.store(x + tl.arange(0, n), 1.0)
    SIZE: tl.constexpr = n
    tl.zeros((n,), tl.float32)
    tl.static_assert(n > 0)
    for i in tl.static_range(n):
        pass


@triton.jit
def by_zero(x):
    tl.store(x, 1 // 0)
    tl.store(x, 2.0 ** 5000)
    tl.store(x, 1 << -1)


@triton.jit
def block_condition(x):
    v = tl.load(x + tl.arange(0, 8))
    if v > 0:
        tl.store(x, 1.0)


@triton.jit
def endless(x):
    while True:
        tl.store(x, 1)


@triton.jit
def branch_types(x, n):
    v = 1.0
    if n > 0:
        v = n
    tl.store(x, v)


@triton.jit
def loop_types(x, n):
    total = 0
    block = 0.0
    nothing = None
    for i in range(n):
        total += tl.load(x + i)
        block += tl.load(x + tl.arange(0, 8))
        nothing = i
    tl.store(x, total)


@triton.jit
def either(n):
    if n > 0:
        return 1.0
    return tl.arange(0, 4)


@triton.jit
def return_types(x, n):
    tl.store(x, either(n))


@triton.jit
def returns_value(x):
    return tl.load(x)


@triton.jit
def return_in_loop(x, n):
    for i in range(n):
        if tl.load(x + i) > 0:
            return


@triton.jit
def asserted(x, N: tl.constexpr):
    tl.static_assert(N % 2 == 0, f"{N} is odd")
    assert N > 3, "too small"


@triton.jit
def forever(n):
    return forever(n + 1)


@triton.jit
def recursion(x):
    tl.store(x, forever(0))


@triton.jit
def huge_unroll(x):
    for i in tl.static_range(1000000000000):
        tl.store(x + i, 1.0)


@triton.jit
def values(x, constant):
    tl.program_id(3)
    tl.load(x, cache_modifier=".zz")
    tl.load(x, eviction_policy="sometimes")
    tl.arange(8, 8)
    tl.store(constant, 1)
    tl.load(constant) + 300
    tl.load(x, boundary_check=(0,))
    for i in range(0, 10, 0):
        pass


@triton.jit
def unset_global(x):
    tl.store(x, HOST)
    tl.store(x, SELF)


@triton.jit
def runtime_tuple_index(x, n):
    t = (1, 2, 3)
    tl.store(x, t[n])
    tl.store(x, t[7])
    a, b = t


@triton.jit
def masks(x, i):
    at = tl.arange(0, 8)
    tl.load(x + at, mask=tl.load(i + at))
    tl.load(x + at, mask=(at[:, None] < 4))
    tl.load(x, mask=at < 4)


@triton.jit
def several(x, n):
    a = unknown_one + 1
    b = a * 2
    c = tl.exp(n)
    tl.store(x, b + c)
    tl.store(x, unknown_two)


@triton.jit
def warned(x):
    pass


@triton.jit
def warned(x, N: tl.constexpr):
    tl.static_print("N is", N, x.dtype, (1, 2.5))
    tl.store(x, exp(tl.load(x)))
# == error nothing ""
# error[F03]: there is no kernel `nothing`
#  --> errors.py:1:1
#   |
# 1 | # Mistakes, one function for each.
#   | ^
#   |
# help: there is add, too_few, unknown_name, branch_local, unknown_function, unknown_attribute, slicing, chained, statements, dot, ...
# == error ad "*fp32"
# error[F03]: there is no kernel `ad`
#  --> errors.py:1:1
#   |
# 1 | # Mistakes, one function for each.
#   | ^
#   |
# help: did you mean `add`?
# == error too_few "*fp32"
# error[F04]: `n` has no argument
#   --> errors.py:56:16
#    |
# 56 | def too_few(x, n, SIZE: tl.constexpr):
#    |                ^
#    |
# help: the signature gives 1 of 3 arguments: add its type behind the others, as in ".., i32", or a constant, n=VALUE (for the command -c n=VALUE)
#
# error[F04]: `SIZE` has no argument
#   --> errors.py:56:19
#    |
# 56 | def too_few(x, n, SIZE: tl.constexpr):
#    |                   ^^^^^^^^^^^^^^^^^^
#    |
# help: the signature gives 1 of 3 arguments: add a value behind the others, as in ".., 1024", or SIZE=VALUE (for the command -c SIZE=VALUE)
# == error too_few "*fp32, i32, 16, 16"
# error[F04]: 4 arguments for 3 parameters of `too_few`
#   --> errors.py:56:5
#    |
# 56 | def too_few(x, n, SIZE: tl.constexpr):
#    |     ^^^^^^^
# == error too_few "*fp32, i32, *fp32"
# error[F04]: `SIZE` is a constexpr and cannot be *fp32
#   --> errors.py:56:19
#    |
# 56 | def too_few(x, n, SIZE: tl.constexpr):
#    |                   ^^^^^^^^^^^^^^^^^^
#    |
# help: give a number, True, False, None, a quoted string or a type
# == error unknown_name "*fp32"
# error[F05]: `valeu` is not defined
#   --> errors.py:63:17
#    |
# 63 |     tl.store(x, valeu)
#    |                 ^^^^^
#    |
# help: did you mean `value`?
# == error branch_local "*fp32, i32"
# error[F05]: `y` has no value here
#   --> errors.py:70:17
#    |
# 70 |     tl.store(x, y)
#    |                 ^ it is defined in one branch of an `if` only
#    |
# help: define it before the loop or condition
# == error unknown_function "*fp32"
# error[F05]: `elsewhere.unheard_of` is not in this file
#   --> errors.py:75:17
#    |
# 75 |     tl.store(x, unheard_of(tl.load(x)))
#    |                 ^^^^^^^^^^
#    |
# help: functions that kernels call stand in the same file, or in one beside or around it that it imports
#
# error[F06]: the library has no `triton.language.no_such_thing`
#   --> errors.py:76:17
#    |
# 76 |     tl.store(x, tl.no_such_thing(1))
#    |                 ^^^^^^^^^^^^^^^^
#    |
# help: names of the library are those of Triton 3.6
# == error unknown_attribute "*fp32"
# error[F06]: a scalar fp32 has no attribute `nothing`
#   --> errors.py:81:28
#    |
# 81 |     tl.store(x, tl.load(x).nothing)
#    |                            ^^^^^^^
# == error slicing "*fp32"
# error[F07]: blocks are indexed with `:` and `None` only
#   --> errors.py:87:19
#    |
# 87 |     tl.store(x, v[0])
#    |                   ^
#    |
# help: elements are chosen with tl.where and a reduction, or loaded from memory
#
# error[F11]: more indices than the 1 dimensions
#   --> errors.py:88:17
#    |
# 88 |     tl.store(x, v[:, :, None])
#    |                 ^^^^^^^^^^^^^
# == error chained "*fp32, i32"
# error[F07]: comparisons cannot be chained
#   --> errors.py:93:8
#    |
# 93 |     if 0 < n < 10:
#    |        ^^^^^^^^^^
#    |
# help: write `(a < b) & (b < c)`
# == error statements "*fp32, i32"
# error[F07]: kernels cannot use `break`
#    --> errors.py:101:13
#     |
# 101 |             break
#     |             ^^^^^
#     |
# help: let the condition of a `while` end the loop, or mask what follows
#
# error[F07]: kernels cannot use `continue`
#    --> errors.py:102:9
#     |
# 102 |         continue
#     |         ^^^^^^^^
#     |
# help: put what follows into an `if`
#
# error[F07]: kernels cannot use `try`
#    --> errors.py:103:5
#     |
# 103 |     try:
#     |     ^^^^
#     |
# help: kernels have no exceptions
#
# error[F07]: kernels cannot use `lambda`
#    --> errors.py:107:9
#     |
# 107 |     f = lambda v: v
#     |         ^^^^^^^^^^^
#     |
# help: define a function at the top level, with @triton.jit
#
# error[F07]: kernels cannot use dictionaries
#    --> errors.py:108:9
#     |
# 108 |     d = {1: 2}
#     |         ^^^^^^
#     |
# help: use names, or a tuple
#
# error[F07]: elements of a block cannot be assigned
#    --> errors.py:110:5
#     |
# 110 |     x[0] = 1.0
#     |     ^^^^
#     |
# help: make a new block with tl.where
#
# error[F18]: the kernel raises ValueError: no
#    --> errors.py:111:5
#     |
# 111 |     raise ValueError("no")
#     |     ^^^^^^^^^^^^^^^^^^^^^^
#
# error[F12]: `**` needs a constant whole exponent
#    --> errors.py:112:18
#     |
# 112 |     with_power = 2**n
#     |                  ^^^^
#     |
# help: use libdevice.pow, tl.exp2, or a product
#
# error[F07]: blocks have no `@`
#    --> errors.py:113:14
#     |
# 113 |     matrix = n @ n
#     |              ^^^^^
#     |
# help: use tl.dot(a, b)
# == error dot "*fp32"
# error[F09]: `dot_scaled` lacks its argument `lhs_format`
#    --> errors.py:119:5
#     |
# 119 |     tl.dot_scaled(v, v)
#     |     ^^^^^^^^^^^^^^^^^^^
#     |
# help: it is `dot_scaled(lhs, lhs_scale, lhs_format, rhs, rhs_scale, rhs_format, acc=..., fast_math=..., lhs_k_pack=..., rhs_k_pack=..., out_dtype=...)`
# == error wrong_call "*fp32"
# error[F09]: `load` lacks its argument `pointer`
#    --> errors.py:124:5
#     |
# 124 |     tl.load()
#     |     ^^^^^^^^^
#     |
# help: it is `load(pointer, mask=..., other=..., boundary_check=..., padding_option=..., cache_modifier=..., eviction_policy=..., volatile=...)`
#
# error[F09]: `load` has no parameter `maks`; did you mean `mask`?
#    --> errors.py:125:5
#     |
# 125 |     tl.load(x, maks=True)
#     |     ^^^^^^^^^^^^^^^^^^^^^
#     |
# help: it is `load(pointer, mask=..., other=..., boundary_check=..., padding_option=..., cache_modifier=..., eviction_policy=..., volatile=...)`
#
# error[F09]: `arange` takes 2 arguments
#    --> errors.py:126:5
#     |
# 126 |     tl.arange(0, 8, 9)
#     |     ^^^^^^^^^^^^^^^^^^
#     |
# help: it is `arange(start, end=...)`
#
# error[F09]: `other` of `load` is for what a mask leaves out
#    --> errors.py:127:5
#     |
# 127 |     tl.load(x, other=0.0)
#     |     ^^^^^^^^^^^^^^^^^^^^^
#     |
# help: give a mask, or leave `other` out
# == error wrong_inner_call "*fp32"
# error[F09]: `add` lacks its argument `x`
#    --> errors.py:132:5
#     |
# 132 |     add()
#     |     ^^^^^
#     |
# help: it is `add(x)`
#
# error[F09]: `add` takes 1 argument by position
#    --> errors.py:133:5
#     |
# 133 |     add(x, 1)
#     |     ^^^^^^^^^
#     |
# help: it is `add(x)`
#
# error[F09]: `add` gets `x` twice
#    --> errors.py:134:5
#     |
# 134 |     add(x, x=1)
#     |     ^^^^^^^^^^^
#     |
# help: it is `add(x)`
#
# error[F09]: `add` has no parameter `y`
#    --> errors.py:135:5
#     |
# 135 |     add(y=1)
#     |     ^^^^^^^^
#     |
# help: it is `add(x)`
# == error types "*fp32, *fp16, *u32, *i32"
# error[F10]: u32 and i32 differ in sign and cannot be divided
#    --> errors.py:144:17
#     |
# 144 |     tl.store(f, c // d)
#     |                 ^^^^^^
#     |
# help: cast one of them with `.to(...)`
#
# error[F10]: `&` is for integers and truth values, found fp32 and fp16
#    --> errors.py:145:17
#     |
# 145 |     tl.store(f, a & b)
#     |                 ^^^^^
#
# error[F10]: *fp32 and i32 have no `*`
#    --> errors.py:146:17
#     |
# 146 |     tl.store(f, f * 2)
#     |                 ^^^^^
#     |
# help: a pointer plus or minus an integer is a pointer
#
# error[F10]: a pointer is moved by integers, found fp32
#    --> errors.py:147:17
#     |
# 147 |     tl.store(f, f + a)
#     |                 ^^^^^
#     |
# help: cast the offset with `.to(tl.int32)`
#
# error[F10]: `store` needs a pointer, found fp32
#    --> errors.py:148:14
#     |
# 148 |     tl.store(a, a)
#     |              ^ expected a pointer or a block of pointers
#     |
# help: add the offsets to a pointer argument: `tl.load(ptr + offsets)`
#
# error[F10]: `//` is for integers, found fp32
#    --> errors.py:149:17
#     |
# 149 |     tl.store(f, a // b)
#     |                 ^^^^^^
#     |
# help: use tl.floor(x / y)
#
# error[F10]: fp32 cannot be cast to *fp32
#    --> errors.py:150:17
#     |
# 150 |     tl.store(f, a.to(tl.pointer_type(tl.float32)))
#     |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#     |
# help: between pointers and numbers, only 64-bit integers are cast
#
# error[F10]: expected a number or a block, found the string "text"
#    --> errors.py:151:33
#     |
# 151 |     tl.store(f, tl.where(a > 0, "text", 0))
#     |                                 ^^^^^^
#
# error[F10]: a scalar fp32 cannot be called
#    --> errors.py:152:5
#     |
# 152 |     a()
#     |     ^
# == error half_exp "*fp16"
# error[F10]: `exp` is for float32 and float64, found fp16
#    --> errors.py:157:17
#     |
# 157 |     tl.store(x, tl.exp(tl.load(x)))
#     |                 ^^^^^^^^^^^^^^^^^^
#     |
# help: cast first: `x.to(tl.float32)`
# == error in_callee "*fp16"
# error[F10]: `erf` is for float32 and float64, found fp16
#    --> errors.py:162:27
#     |
# 162 |     return 0.5 * v * (1 + tl.erf(v * 0.70710678))
#     |                           ^^^^^^^^^^^^^^^^^^^^^^
#     |
# note: in `gelu`, called here
#    --> errors.py:167:12
#     |
# 167 |     return gelu(v) + 1
#     |            ^^^^^^^
# note: in `activation`, called here
#    --> errors.py:172:17
#     |
# 172 |     tl.store(x, activation(tl.load(x)))
#     |                 ^^^^^^^^^^^^^^^^^^^^^^
# help: cast first: `x.to(tl.float32)`
# == error shapes "*fp32"
# error[F11]: shapes [8] and [16] do not go together
#    --> errors.py:179:21
#     |
# 179 |     tl.store(x + a, a + b)
#     |                     ^^^^^ extents of dimension 0 differ and neither is 1
#     |
# help: add dimensions with [:, None] or [None, :]
#
# error[F11]: a block (i32[8]) cannot be stored through one pointer
#    --> errors.py:180:5
#     |
# 180 |     tl.store(x, a)
#     |     ^^^^^^^^^^^^^^
#     |
# help: add a tl.arange to the pointer
#
# error[F11]: `value` has shape [16], the pointers [8]
#    --> errors.py:181:21
#     |
# 181 |     tl.store(x + a, b)
#     |                     ^
#     |
# help: the pointers are not broadcast; add offsets that give them the full shape
#
# error[F11]: a block of 1 dimensions has no dimension 1
#    --> errors.py:182:5
#     |
# 182 |     tl.sum(a, axis=1)
#     |     ^^^^^^^^^^^^^^^^^
# == error not_power_of_two "*fp32"
# error[F11]: extent 12 is not a power of two
#    --> errors.py:187:18
#     |
# 187 |     tl.store(x + tl.arange(0, 12), 1.0)
#     |                  ^^^^^^^^^^^^^^^^
#     |
# help: extents are powers of two; mask what is too much
#
# error[F11]: a block has at most 1048576 elements
#    --> errors.py:188:5
#     |
# 188 |     tl.zeros((2048, 2048), tl.float32)
#     |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#     |
# help: let each program compute a smaller block
#
# error[F11]: a block cannot have the extent -4
#    --> errors.py:189:5
#     |
# 189 |     tl.zeros((-4,), tl.float32)
#     |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^
# == error needs_constant "*fp32, i32"
# error[F12]: `end` of `arange` must be a constant integer, found a scalar i32
#    --> errors.py:194:31
#     |
# 194 |     tl.store(x + tl.arange(0, n), 1.0)
#     |                               ^
#     |
# help: what it comes from must be a constant, or a `tl.constexpr` of the kernel
#
# warning[F22]: this is no compile-time constant but a scalar i32
#    --> errors.py:195:5
#     |
# 195 |     SIZE: tl.constexpr = n
#     |     ^^^^^^^^^^^^^^^^^^^^^^
#     |
# help: only what does not depend on data is one; the annotation changes nothing
#
# error[F12]: a shape is made of constants, found a scalar i32
#    --> errors.py:196:5
#     |
# 196 |     tl.zeros((n,), tl.float32)
#     |     ^^^^^^^^^^^^^^^^^^^^^^^^^^
#     |
# help: what it comes from must be a constant, or a `tl.constexpr` of the kernel
#
# error[F12]: the condition is not known at compile time
#    --> errors.py:197:5
#     |
# 197 |     tl.static_assert(n > 0)
#     |     ^^^^^^^^^^^^^^^^^^^^^^^
#     |
# help: use tl.device_assert for what depends on data
#
# error[F12]: the end of an unrolled loop must be a constant
#    --> errors.py:198:14
#     |
# 198 |     for i in tl.static_range(n):
#     |              ^^^^^^^^^^^^^^^^^^ found a scalar i32
#     |
# help: use tl.range
# == error by_zero "*fp32"
# error[F13]: division by zero
#    --> errors.py:204:17
#     |
# 204 |     tl.store(x, 1 // 0)
#     |                 ^^^^^^
#
# error[F13]: the result is too large for a float
#    --> errors.py:205:17
#     |
# 205 |     tl.store(x, 2.0 ** 5000)
#     |                 ^^^^^^^^^^^
#
# error[F13]: negative shift count
#    --> errors.py:206:17
#     |
# 206 |     tl.store(x, 1 << -1)
#     |                 ^^^^^^^
# == error block_condition "*fp32"
# error[F14]: a block (i1[8]) is no condition
#    --> errors.py:212:8
#     |
# 212 |     if v > 0:
#     |        ^^^^^ expected a scalar
#     |
# help: use tl.where to choose element by element, or reduce with tl.max
# == error endless "*i32"
# error[F14]: the condition of the loop is always true
#    --> errors.py:218:11
#     |
# 218 |     while True:
#     |           ^^^^
#     |
# help: a loop ends by its condition; kernels have no `break`
# == error branch_types "*fp32, i32"
# error[F15]: `v` is i32 on one way and a number of type fp32 on the other
#    --> errors.py:225:5
#     |
# 225 |     if n > 0:
#     |     ^^^^^^^^^
#     |
# help: both ways through an `if` must give the same type; cast with `.to(...)`
# == error loop_types "*fp32, i32"
# error[F16]: `total` is i32 before the loop and fp32 after an iteration
#    --> errors.py:235:5
#     |
# 235 |     for i in range(n):
#     |     ^^^^^^^^^^^^^^^^^^ what a loop carries keeps its type
#     |
# help: cast one of them with `.to(tl.float32)`
#
# error[F16]: `block` is fp32 before the loop and fp32[8] after an iteration
#    --> errors.py:235:5
#     |
# 235 |     for i in range(n):
#     |     ^^^^^^^^^^^^^^^^^^ what a loop carries keeps its type
#     |
# help: start with `tl.zeros([8], tl.float32)` or `tl.full`
#
# error[F16]: `nothing` is None before the loop and a scalar i32 after an iteration
#    --> errors.py:235:5
#     |
# 235 |     for i in range(n):
#     |     ^^^^^^^^^^^^^^^^^^
#     |
# help: give it a value of the final type before the loop
# == error return_types "*fp32, i32"
# error[F17]: the result of the function is a number of type fp32 on one way and i32[4] on the other
#    --> errors.py:244:5
#     |
# 244 |     if n > 0:
#     |     ^^^^^^^^^
#     |
# note: in `either`, called here
#    --> errors.py:251:17
#     |
# 251 |     tl.store(x, either(n))
#     |                 ^^^^^^^^^
# help: both ways through an `if` must give the same type; cast with `.to(...)`
# == error returns_value "*fp32"
# error[F17]: the kernel `returns_value` returns a value
#    --> errors.py:255:5
#     |
# 255 | def returns_value(x):
#     |     ^^^^^^^^^^^^^
#     |
# help: a kernel stores its results to memory
# == error return_in_loop "*fp32, i32"
# error[F07]: a `return` inside of a run-time loop
#    --> errors.py:263:13
#     |
# 263 |             return
#     |             ^^^^^^
#     |
# help: let a condition end the loop (`while`), and return after it
# == error asserted "*fp32, 3"
# error[F18]: static assertion failed: 3 is odd
#    --> errors.py:268:5
#     |
# 268 |     tl.static_assert(N % 2 == 0, f"{N} is odd")
#     |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#
# error[F18]: assertion failed: too small
#    --> errors.py:269:5
#     |
# 269 |     assert N > 3, "too small"
#     |     ^^^^^^^^^^^^^^^^^^^^^^^^^
# == error recursion "*fp32"
# error[F19]: calls are nested more than 100 deep
#    --> errors.py:274:12
#     |
# 274 |     return forever(n + 1)
#     |            ^^^^^^^^^^^^^^
#     |
# note: in `forever`, called here (99 times)
#    --> errors.py:274:12
#     |
# 274 |     return forever(n + 1)
#     |            ^^^^^^^^^^^^^^
# note: in `forever`, called here
#    --> errors.py:279:17
#     |
# 279 |     tl.store(x, forever(0))
#     |                 ^^^^^^^^^^
# help: recursion must end at compile time, by constants
# == error huge_unroll "*fp32"
# error[F19]: a loop of 1000000000000 iterations cannot be unrolled
#    --> errors.py:284:14
#     |
# 284 |     for i in tl.static_range(1000000000000):
#     |              ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#     |
# help: at most 65536 are; use tl.range
# == error values "*fp32, *ku8"
# error[F20]: a grid has the axes 0, 1 and 2, not 3
#    --> errors.py:290:5
#     |
# 290 |     tl.program_id(3)
#     |     ^^^^^^^^^^^^^^^^
#
# error[F20]: unknown cache modifier ".zz"
#    --> errors.py:291:5
#     |
# 291 |     tl.load(x, cache_modifier=".zz")
#     |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#     |
# help: known are "", ".ca", ".cg", ".cs", ".cv"
#
# error[F20]: unknown eviction policy "sometimes"
#    --> errors.py:292:5
#     |
# 292 |     tl.load(x, eviction_policy="sometimes")
#     |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#     |
# help: known are "evict_first" and "evict_last"
#
# error[F20]: `arange` from 8 to 8 is empty
#    --> errors.py:293:5
#     |
# 293 |     tl.arange(8, 8)
#     |     ^^^^^^^^^^^^^^^
#     |
# help: its end must be larger than its start; look at the constant that it comes from
#
# error[F10]: a store through a pointer to constant data
#    --> errors.py:294:5
#     |
# 294 |     tl.store(constant, 1)
#     |     ^^^^^^^^^^^^^^^^^^^^^
#
# error[F20]: the number 300 is out of range for u8
#    --> errors.py:295:5
#     |
# 295 |     tl.load(constant) + 300
#     |     ^^^^^^^^^^^^^^^^^^^^^^^
#     |
# help: cast the other operand to a type that holds it
#
# error[F09]: boundary checks are for block pointers
#    --> errors.py:296:5
#     |
# 296 |     tl.load(x, boundary_check=(0,))
#     |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#     |
# help: use a mask
#
# error[F20]: the step of a loop is zero
#    --> errors.py:297:14
#     |
# 297 |     for i in range(0, 10, 0):
#     |              ^^^^^^^^^^^^^^^
# == error unset_global "*fp32"
# error[F12]: `HOST` of the module cannot be evaluated: `os.environ` cannot be indexed
#    --> errors.py:303:17
#     |
# 303 |     tl.store(x, HOST)
#     |                 ^^^^
#     |
# help: give its value with -c HOST=VALUE
#
# error[F12]: `SELF` of the module cannot be evaluated: `SELF` is not defined yet
#    --> errors.py:304:17
#     |
# 304 |     tl.store(x, SELF)
#     |                 ^^^^
#     |
# help: give its value with -c SELF=VALUE
# == error runtime_tuple_index "*fp32, i32"
# error[F12]: a tuple is indexed by a constant, found a scalar i32
#    --> errors.py:310:17
#     |
# 310 |     tl.store(x, t[n])
#     |                 ^^^^
#     |
# help: loop with tl.static_range to have a constant
#
# error[F20]: index 7 of a tuple of 3
#    --> errors.py:311:17
#     |
# 311 |     tl.store(x, t[7])
#     |                 ^^^^
#
# error[F10]: 2 names for a tuple of 3
#    --> errors.py:312:5
#     |
# 312 |     a, b = t
#     |     ^^^^
# == error masks "*fp32, *i32"
# error[F10]: a mask is made of truth values, found i32[8]
#    --> errors.py:318:21
#     |
# 318 |     tl.load(x + at, mask=tl.load(i + at))
#     |                     ^^^^^^^^^^^^^^^^^^^^
#     |
# help: compare with something: `mask != 0`
#
# error[F11]: `mask` has shape [8], the pointers []
#    --> errors.py:320:16
#     |
# 320 |     tl.load(x, mask=at < 4)
#     |                ^^^^^^^^^^^
#     |
# help: the pointers are not broadcast; add offsets that give them the full shape
# == error several "*fp32, i32"
# error[F05]: `unknown_one` is not defined
#    --> errors.py:325:9
#     |
# 325 |     a = unknown_one + 1
#     |         ^^^^^^^^^^^
#     |
# help: did you mean `unknown_name`?
#
# error[F10]: `exp` is for float32 and float64, found i32
#    --> errors.py:327:9
#     |
# 327 |     c = tl.exp(n)
#     |         ^^^^^^^^^
#     |
# help: cast first: `x.to(tl.float32)`
#
# error[F05]: `unknown_two` is not defined
#    --> errors.py:329:17
#     |
# 329 |     tl.store(x, unknown_two)
#     |                 ^^^^^^^^^^^
#     |
# help: define it, or give a constant with -c unknown_two=VALUE
# == tile warned "*fp32, 2"
# kernel @warned(v0 "x": ptr<f32>) warps(4) {
# block0:
#     v1 = load v0 : f32 @340
#     v2 = exp v1 : f32 @340
#     store v0, v2 @340
#     return @338
# }
#
# warning[F22]: `warned` is defined twice; the last definition counts
#    --> errors.py:338:5
#     |
# 338 | def warned(x, N: tl.constexpr):
#     |     ^^^^^^
#     |
# help: only the host knows the conditions around its definitions
#
# note[F23]: N is 2 pointer<fp32> (1, 2.5)
#    --> errors.py:339:5
#     |
# 339 |     tl.static_print("N is", N, x.dtype, (1, 2.5))
#     |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#
# warning[F22]: `elsewhere.exp` is not in this file and is taken to be `tl.exp`
#    --> errors.py:340:17
#     |
# 340 |     tl.store(x, exp(tl.load(x)))
#     |                 ^^^
#     |
# help: define it in this file to be sure of what it does
