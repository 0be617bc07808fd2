# What a caller can give: tuples, objects, functions, types; and what is refused.
#
# run: sums "*i32, (*i32:16, i32, (i32, 4)), (*i32,)" : grid(1) out=i32[4] poison p_0=i32[4] [1,2,3,4] p_1=10 p_2_0=100 q_0=i32[4] [5,5,5,5] ; expect out = [120,121,122,123]
# run: moved "*fp32, Pair(fp32, 3), Matrix(*fp32, 4, i32:1)" : grid(1) out=f32[4] poison p_scale=2.0 m_ptr=f32[4] [1,2,3,4] ; expect out = [5.0,7.0,9.0,11.0]
# tile: moved "*fp32, Pair(fp32, 3), Matrix(*fp32:16, 4, i32:1)"
# run: applied "*fp32, *fp32, @square, fp32" : grid(1) out=f32[4] poison x=f32[4] [1,2,3,4] ; expect out = [1,4,9,16]
# run: applied "*fp32, *fp32" F=@twice DTYPE=fp16 : grid(1) out=f32[4] poison x=f32[4] [1,2,3,4] ; expect out = [2,4,6,8]
# run: applied "*fp32, *fp32, @tl.floor, fp32" : grid(1) out=f32[4] poison x=f32[4] [1.5,-2.5,3,4] ; expect out = [1,-3,3,4]
# run: applied "*fp32, *fp32" F=@libdevice.rint DTYPE=fp32 : grid(1) out=f32[4] poison x=f32[4] [1.5,-2.5,3,4] ; expect out = [2,-2,3,4]
# run: chosen "*fp32, *fp32, @tl.minimum, 'floor', 'rint'" : grid(1) out=f32[4] poison x=f32[4] [1.5,-2.5,3,4] ; expect out = [1,-3,2,2]
# error: chosen "*fp32, *fp32, @tl.minimun, 'floor', 'rint'"
# error: chosen "*fp32, *fp32, @tl.minimum, 'flor', 'rint'"
# run: constants "*i32, (16, 'a', (fp16, None))" : grid(1) out=i32[1] poison ; expect out = [16]
# run: promised "*i32:16, i32:16, i32:1" : grid(1) out=i32[16] poison n=16 ; expect out = [1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]
# tile: promised "*i32:16, i32:16, i32:1"
# error: sums "*i32, *i32, (*i32,)"
# error: moved "*fp32, Pair(fp32), Nothing(*fp32)"
# error: applied "*fp32, *fp32, @squre, fp32"
# error: applied "*fp32, *fp32, @square, fp32" BLOKC=3
# error: applied "*fp32, *fp32" F=@square DTYP=fp32
# error: needs_number "*fp32, i32"
# error: of_a_file "*i32" SIZES=3
# run: decided "*i32, i32" : grid(1) x=i32[3] poison n=7 ; expect x = [1,1,0]
# error: undecided "*i32, i32"

from typing import NamedTuple

import triton
import triton.language as tl
from triton.language.extra import libdevice

SIZE = 4


class Pair(NamedTuple):
    scale: tl.tensor
    shift: tl.constexpr


class Matrix(NamedTuple):
    ptr: tl.tensor
    size: tl.constexpr
    stride: tl.tensor


@triton.jit
def sums(out, p, q):
    x, n, (m, k) = p
    i = tl.arange(0, 4)
    tl.static_assert(len(q) == 1 and p[2][1] == 4)
    tl.store(out + i, tl.load(x + i) + n + m + k + tl.load(q[0] + i))


@triton.jit
def moved(out, p, m):
    i = tl.arange(0, m.size)
    tl.store(out + i, tl.load(m.ptr + i * m.stride) * p.scale + p.shift)


@triton.jit
def square(v):
    return v * v


@triton.jit
def twice(v):
    return v + v


@triton.jit
def chosen(out, x, F: tl.constexpr, NAME: tl.constexpr, OTHER: tl.constexpr):
    i = tl.arange(0, 4)
    v = tl.load(x + i)
    v = tl.where(i < 2, getattr(tl, NAME)(v), getattr(libdevice, OTHER)(v))
    tl.store(out + i, F(v, 2.0))


@triton.jit
def applied(out, x, F: tl.constexpr, DTYPE: tl.constexpr):
    i = tl.arange(0, 4)
    tl.store(out + i, F(tl.load(x + i).to(DTYPE)))


@triton.jit
def constants(out, C: tl.constexpr):
    tl.static_assert(C[1] == "a" and C[2][0] == tl.float16 and C[2][1] is None)
    tl.store(out, tl.sum(tl.full((C[0],), 1, tl.int32)))


# What a signature promises holds: a caller who decides from values is asked not to.
@triton.jit(do_not_specialize=["n", "one"])
def promised(out, n, one):
    i = tl.arange(0, 16)
    tl.store(out + i, one, mask=i < n)


@triton.jit
def needs_number(x, N: tl.constexpr):
    tl.store(x + tl.arange(0, N), 0)
    tl.store(x, tl.zeros((N,), tl.float32))
    tl.store(x, N + 1)


@triton.jit
def of_a_file(x):
    tl.store(x + tl.arange(0, SIZE), UNSET)


@triton.jit
def decided(x, n):
    """Comparisons of tuples and `in`, where they do not depend on data."""
    ...
    pair = (n, 3)
    tl.store(x, pair == pair[:] + () if False else (1, "a") == (1, "a"))
    tl.store(x + 1, 3 in (1, 2, 3) and pair != (n, 4) and (n,) != (n, n))
    tl.store(x + 2, "b" in ("a", "c"))


@triton.jit
def undecided(x, n):
    tl.store(x, n in (1, 2))
    tl.store(x, (n, 1) == (2, 1))
    tl.store(x, n if n > 2 else 0.5)
# == tile moved "*fp32, Pair(fp32, 3), Matrix(*fp32:16, 4, i32:1)"
# kernel @moved(v0 "out": ptr<f32>, v1 "p_scale": f32, v2 "m_ptr": ptr<f32> {divisible = 16}) warps(4) {
# block0:
#     v3 = arange {start = 0} : i32[4] @56
#     v4 = splat v0 : ptr<f32>[4] @57
#     v5 = addptr v4, v3 : ptr<f32>[4] @57
#     v6 = const {value = 1} : i32[4] @57
#     v7 = imul v3, v6 : i32[4] @57
#     v8 = splat v2 : ptr<f32>[4] @57
#     v9 = addptr v8, v7 : ptr<f32>[4] @57
#     v10 = load v9 : f32[4] @57
#     v11 = splat v1 : f32[4] @57
#     v12 = fmul v10, v11 : f32[4] @57
#     v13 = const {value = 3.0} : f32[4] @57
#     v14 = fadd v12, v13 : f32[4] @57
#     store v5, v14 @57
#     return @55
# }
# == error chosen "*fp32, *fp32, @tl.minimun, 'floor', 'rint'"
# error[F04]: the library has no function `tl.minimun`
#   --> arguments.py:71:20
#    |
# 71 | def chosen(out, x, F: tl.constexpr, NAME: tl.constexpr, OTHER: tl.constexpr):
#    |                    ^^^^^^^^^^^^^^^
#    |
# help: did you mean `tl.minimum`?
# == error chosen "*fp32, *fp32, @tl.minimum, 'flor', 'rint'"
# error[F06]: `triton.language` has no attribute `flor`
#   --> arguments.py:74:37
#    |
# 74 |     v = tl.where(i < 2, getattr(tl, NAME)(v), getattr(libdevice, OTHER)(v))
#    |                                     ^^^^
#    |
# help: did you mean `tl.floor`?
# == tile promised "*i32:16, i32:16, i32:1"
# kernel @promised(v0 "out": ptr<i32> {divisible = 16}, v1 "n": i32 {divisible = 16}) warps(4) {
# block0:
#     v2 = arange {start = 0} : i32[16] @93
#     v3 = splat v0 : ptr<i32>[16] @94
#     v4 = addptr v3, v2 : ptr<i32>[16] @94
#     v5 = splat v1 : i32[16] @94
#     v6 = icmp v2, v5 {ipred = slt} : i1[16] @94
#     v7 = const {value = 1} : i32[16] @94
#     store v4, v7, v6 @94
#     return @92
# }
# == error sums "*i32, *i32, (*i32,)"
# error[F10]: expected a tuple of 3, found a pointer *i32
#   --> arguments.py:48:5
#    |
# 48 |     x, n, (m, k) = p
#    |     ^^^^^^^^^^^^^^^^
#
# error[F07]: blocks are indexed with `:` and `None` only
#   --> arguments.py:50:40
#    |
# 50 |     tl.static_assert(len(q) == 1 and p[2][1] == 4)
#    |                                        ^
#    |
# help: elements are chosen with tl.where and a reduction, or loaded from memory
# == error moved "*fp32, Pair(fp32), Nothing(*fp32)"
# error[F09]: `Pair` lacks its field `shift`
#   --> arguments.py:55:16
#    |
# 55 | def moved(out, p, m):
#    |                ^
#
# error[F04]: there is no class `Nothing` in the file
#   --> arguments.py:55:19
#    |
# 55 | def moved(out, p, m):
#    |                   ^
# == error applied "*fp32, *fp32, @squre, fp32"
# error[F04]: there is no function `squre` in the file
#   --> arguments.py:79:21
#    |
# 79 | def applied(out, x, F: tl.constexpr, DTYPE: tl.constexpr):
#    |                     ^^^^^^^^^^^^^^^
#    |
# help: did you mean `square`?
# == error applied "*fp32, *fp32, @square, fp32" BLOKC=3
# error[F04]: nothing in the file is called `BLOKC`
#   --> arguments.py:79:5
#    |
# 79 | def applied(out, x, F: tl.constexpr, DTYPE: tl.constexpr):
#    |     ^^^^^^^
#    |
# help: constants can be given to SIZE
# == error applied "*fp32, *fp32" F=@square DTYP=fp32
# error[F04]: nothing in the file is called `DTYP`
#   --> arguments.py:79:5
#    |
# 79 | def applied(out, x, F: tl.constexpr, DTYPE: tl.constexpr):
#    |     ^^^^^^^
#    |
# help: did you mean `DTYPE`?
# == error needs_number "*fp32, i32"
# error[F12]: `end` of `arange` must be a constant integer, found the type i32
#   --> arguments.py:99:31
#    |
# 99 |     tl.store(x + tl.arange(0, N), 0)
#    |                               ^
#    |
# help: a type is no number; if a `tl.constexpr` is one here, its entry in the signature has to be a number
#
# error[F12]: a shape is made of constants, found the type i32
#    --> arguments.py:100:17
#     |
# 100 |     tl.store(x, tl.zeros((N,), tl.float32))
#     |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^
#     |
# help: a type is no number; if a `tl.constexpr` is one here, its entry in the signature has to be a number
#
# error[F10]: expected a number or a block, found the type i32
#    --> arguments.py:101:17
#     |
# 101 |     tl.store(x, N + 1)
#     |                 ^
#     |
# help: a type is no number; if a `tl.constexpr` is one here, its entry in the signature has to be a number
# == error of_a_file "*i32" SIZES=3
# error[F04]: nothing in the file is called `SIZES`
#    --> arguments.py:105:5
#     |
# 105 | def of_a_file(x):
#     |     ^^^^^^^^^
#     |
# help: did you mean `SIZE`?
# == error undecided "*i32, i32"
# error[F12]: `in` is decided at compile time, and this depends on data
#    --> arguments.py:121:17
#     |
# 121 |     tl.store(x, n in (1, 2))
#     |                 ^^^^^^^^^^^
#     |
# help: compare the numbers one by one: `(x == a) | (x == b)`
#
# error[F12]: a comparison of tuples is decided at compile time, and this depends on data
#    --> arguments.py:122:17
#     |
# 122 |     tl.store(x, (n, 1) == (2, 1))
#     |                 ^^^^^^^^^^^^^^^^
#     |
# help: compare the numbers one by one: `(x == a) | (x == b)`
#
# error[F15]: the value of `.. if .. else ..` is i32 on one way and a number of type fp32 on the other
#    --> arguments.py:123:17
#     |
# 123 |     tl.store(x, n if n > 2 else 0.5)
#     |                 ^^^^^^^^^^^^^^^^^^^
#     |
# help: both ways through an `if` must give the same type; cast with `.to(...)`
