# What a function of the kernel is handed, blocks of one element, functions of single elements, and powers.
#
# On calls between functions of the kernel the annotation `constexpr` binds nothing.
# run: handed "*i32, i32" : grid(1) out=i32[16] poison n=2 ; expect out = [0,0,0,0,0,3,6,9,0,3,6,9,0,3,6,9]
# run: counted "*i32, i32" : grid(1) out=i32[2] poison n=4 ; expect out = [10,4]
# error: too_late "*i32, i32"
#
# `:` and `None` on scalars and pointers, slices whose bounds are None, and conditions of one element.
# run: indexed "*i32, *i32, i32" : grid(1) out=i32[4] zeros x=i32[4] [5,6,7,8] n=3 ; expect out = [8,8,8,8]
# run: one_element "*i32, *i32" : grid(1) out=i32[5] zeros x=i32[1] [3] ; expect out = [1,7,1,4,0]
# error: two_elements "*i32"
#
# Assertions where elements are combined, branches where they are mapped, and several of them at once.
# tile: asserted "*i32, *i32" debug=True
# run: asserted "*i32, *i32" : grid(1) out=i32[5] poison x=i32[4] [3,1,4,1] ; expect out = [9,3,4,8,9]
# run: branched "*fp32, *fp32" : grid(1) out=f32[4] poison x=f32[4] [-2,-0.5,0.5,3] ; expect out = [-1.0,-0.5,0.25,9.0]
# run: several "*i32, *i32, *i32" : grid(1) x=i32[4] [4,-1,7,2] low=i32[4] poison high=i32[4] poison ; expect low = [-2,-1,-1,2] ; expect high = [4,7,-2,4]
# run: packed "*i32, *i32" : grid(1) out=i32[8] poison x=i32[8] [5,1,2,6,9,9,0,-3] ; expect out = [1,5,2,6,9,9,-3,0]
# run: four "*i32, *i32" : grid(1) out=i32[8] poison x=i32[8] [1,2,3,4,5,6,7,8] ; expect out = [10,2,3,24,26,6,7,1680]
# error: effects "*i32"
# error: packs "*i32"
# error: of_whole_blocks "*i32"
#
# Powers with exponents that are known are made of products.
# run: squares "*fp32, *fp32" : grid(1) out=f32[8] poison x=f32[8] [3,-2,0,-0.0,inf,-inf,nan,1e30] ; expect out = [9,4,0,0,inf,inf,nan,inf]
# run: cubes "*fp32, *fp32" : grid(1) out=f32[8] poison x=f32[8] [3,-2,0,-0.0,inf,-inf,nan,1e-30] ; expect out = [27,-8,0,-0.0,inf,-inf,nan,0]
# run: inverse "*fp64, *fp64" : grid(1) out=f64[8] poison x=f64[8] [2,-2,0,-0.0,inf,-inf,nan,1e200] ; expect out = [0.125,-0.125,inf,-inf,0,-0.0,nan,0]
# run: roots "*fp32, *fp32" : grid(1) out=f32[8] poison x=f32[8] [4,2.25,0,-0.0,inf,-inf,nan,-1] ; expect out = [2,1.5,0,0,inf,inf,nan,nan]
# run: operator "*fp16, *i32, fp32" : grid(1) x=f16[4] [3,-2,0.5,300] n=i32[4] [2,-3,0,65536] s=1.5 ; expect x = [9,4,0.25,inf] ; expect n = [33,-242,1,1]
# error: roots_of_integers "*i32"
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def inner(acc, offs: tl.constexpr, bound: tl.constexpr, SCALE: tl.constexpr):
    return acc + tl.where(offs[:, None] >= bound, offs[None, :] * SCALE, 0)


@triton.jit
def handed(out, n):
    i = tl.arange(0, 4)
    acc = inner(tl.zeros((4, 4), tl.int32), i + (n - 2), n - 1, 3)
    tl.store(out + i[:, None] * 4 + i[None, :], acc)


@triton.jit
def sum_from(start: tl.constexpr, count: tl.constexpr):
    for i in range(count):
        start += i
    return start


@triton.jit
def counted(out, n):
    tl.store(out, sum_from(n, n))
    # A constant stays one, and gives a shape.
    tl.store(out + 1, length(4))


@triton.jit
def length(SIZE: tl.constexpr):
    return tl.sum(tl.full((SIZE,), 1, tl.int32))


@triton.jit
def too_late(out, n):
    tl.store(out, length(n))


@triton.jit
def indexed(out, x, n):
    i = tl.arange(0, 4)
    tl.static_assert(n[:, None].shape[0] == 1 and len(n[:, None].shape) == 1)
    tl.static_assert(len(n[None, None].shape) == 2 and len(n[:, :, None].shape) == 1)
    tl.static_assert(len(i[:, :].shape) == 1)
    first = tl.load(x[None, :])
    same = (n > 2)[:, None] & (i[None:None:None] >= 0)
    known = 0
    tl.store(out[:, None] + i, tl.where(same, first + n + known[None], 0))


@triton.jit
def one_element(out, x):
    v = tl.load(x + tl.arange(0, 1))
    if v > 2:
        tl.store(out, 1)
    tl.store(out + 1, 7 if v[:, None] == 3 else 8)
    if not (v[None, :] > 3):
        tl.store(out + 2, 1)
    count = 0
    while v < 7:
        v += 1
        count += 1
    tl.store(out + 3, count)
    if (v > 2) and count > 4:
        tl.store(out + 4, 1)


@triton.jit
def two_elements(x):
    if tl.arange(0, 2) > 0:
        tl.store(x, 1)


@triton.jit
def careful_sum(a, b):
    tl.device_assert(a < 100, "too large")
    assert b < 100, "too large"
    return a + b


@triton.jit
def asserted(out, x):
    i = tl.arange(0, 4)
    v = tl.load(x + i)
    tl.store(out, tl.reduce(v, 0, careful_sum))
    tl.store(out + 1 + i, tl.associative_scan(v, 0, careful_sum))


@triton.jit
def activation(x):
    if x < -1:
        return -1.0
    elif x < 0:
        y = x
    else:
        y = x * x
    return y


@triton.jit
def branched(out, x):
    i = tl.arange(0, 4)
    tl.store(out + i, tl.map_elementwise(activation, tl.load(x + i)))


@triton.jit
def bounds(x, other):
    low = x if x < other else other
    high = x
    if high < other:
        high = other
    if x == 7:
        return low, -high + 5
    return -low if x == 4 else low, high


@triton.jit
def several(x, low, high):
    i = tl.arange(0, 4)
    v = tl.load(x + i)
    a, b = tl.map_elementwise(bounds, v, tl.load(x + (3 - i)))
    tl.store(low + i, a)
    tl.store(high + i, b)


@triton.jit
def ordered(a, b):
    if a > b:
        return b, a
    else:
        return a, b


@triton.jit
def packed(out, x):
    i = tl.arange(0, 8)
    tl.store(out + i, tl.map_elementwise(ordered, tl.load(x + i), pack=2)[0])


@triton.jit
def ends(a, b, c, d):
    return a + b + c + d, b, c, a * b * c * d


@triton.jit
def four(out, x):
    i = tl.arange(0, 2)[:, None] * 4 + tl.arange(0, 4)[None, :]
    result, = tl.map_elementwise(ends, tl.load(x + i), pack=4)
    tl.store(out + i, result)


@triton.jit
def loads(p, v):
    if v > 2:
        return tl.load(p)
    return v


@triton.jit
def effects(x):
    i = tl.arange(0, 4)
    tl.map_elementwise(loads, x + i, i)


@triton.jit
def summed(v):
    return v + tl.sum(v, 0)


@triton.jit
def counting(v):
    if tl.sum(v) > 0:
        v += 1
    return v + tl.arange(0, 4)


@triton.jit
def of_whole_blocks(x):
    i = tl.arange(0, 4)
    tl.map_elementwise(summed, i)
    tl.map_elementwise(counting, i)


@triton.jit
def packs(x):
    i = tl.arange(0, 4)
    tl.map_elementwise(ordered, i, pack=3)
    tl.map_elementwise(ordered, i, pack=8)
    tl.map_elementwise(activation, i.to(tl.float32), pack=2)


@triton.jit
def squares(out, x):
    i = tl.arange(0, 8)
    tl.store(out + i, libdevice.pow(tl.load(x + i), 2))


@triton.jit
def cubes(out, x):
    i = tl.arange(0, 8)
    tl.store(out + i, libdevice.pow(tl.load(x + i), 3.0))


@triton.jit
def inverse(out, x):
    i = tl.arange(0, 8)
    tl.store(out + i, tl.load(x + i) ** -3)


@triton.jit
def roots(out, x):
    i = tl.arange(0, 8)
    tl.store(out + i, libdevice.pow(tl.load(x + i), 0.5))


@triton.jit
def operator(x, n, s):
    i = tl.arange(0, 4)
    tl.store(x + i, tl.load(x + i) ** 2)
    v = tl.load(n + i)
    v = v ** 5 + (s ** 3 < 3.4).to(tl.int32)
    tl.store(n + i, v)


@triton.jit
def roots_of_integers(x):
    tl.store(x, tl.load(x) ** -1)
    tl.store(x, tl.load(x) ** 0.5)
# == error too_late "*i32, i32"
# error[F12]: a shape is made of constants, found a scalar i32
#   --> elements.py:64:19
#    |
# 64 |     return tl.sum(tl.full((SIZE,), 1, tl.int32))
#    |                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    |
# note: in `length`, called here
#   --> elements.py:69:19
#    |
# 69 |     tl.store(out, length(n))
#    |                   ^^^^^^^^^
# help: what it comes from must be a constant, or a `tl.constexpr` of the kernel
# == error two_elements "*i32"
# error[F14]: a block (i1[2]) is no condition
#    --> elements.py:103:8
#     |
# 103 |     if tl.arange(0, 2) > 0:
#     |        ^^^^^^^^^^^^^^^^^^^ expected a scalar
#     |
# help: use tl.where to choose element by element, or reduce with tl.max
# == tile asserted "*i32, *i32" debug=True
# kernel @asserted(v0 "out": ptr<i32>, v1 "x": ptr<i32>) warps(4) {
# block0:
#     v2 = arange {start = 0} : i32[4] @116
#     v3 = splat v1 : ptr<i32>[4] @117
#     v4 = addptr v3, v2 : ptr<i32>[4] @117
#     v5 = load v4 : i32[4] @117
#     v6 = reduce v5 {axis = 0} : i32 @118 {
#     block1(v7: i32, v8: i32):
#         v9 = const {value = 100} : i32 @109
#         v10 = icmp v7, v9 {ipred = slt} : i1 @109
#         v11 = const {value = 100} : i32 @110
#         v12 = icmp v8, v11 {ipred = slt} : i1 @110
#         v13 = iadd v7, v8 : i32 @111
#         yield v13 @118
#     }
#     store v0, v6 @118
#     v14 = const {value = 1} : i32 @119
#     v15 = addptr v0, v14 : ptr<i32> @119
#     v16 = splat v15 : ptr<i32>[4] @119
#     v17 = addptr v16, v2 : ptr<i32>[4] @119
#     v18 = scan v5 {axis = 0} : i32[4] @119 {
#     block2(v19: i32, v20: i32):
#         v21 = const {value = 100} : i32 @109
#         v22 = icmp v19, v21 {ipred = slt} : i1 @109
#         v23 = const {value = 100} : i32 @110
#         v24 = icmp v20, v23 {ipred = slt} : i1 @110
#         v25 = iadd v19, v20 : i32 @111
#         yield v25 @119
#     }
#     store v17, v18 @119
#     return @115
# }
#
# warning[F22]: an assertion within a function of single elements is not checked
#    --> elements.py:109:5
#     |
# 109 |     tl.device_assert(a < 100, "too large")
#     |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#     |
# note: in `careful_sum`, called here
#    --> elements.py:118:19
#     |
# 118 |     tl.store(out, tl.reduce(v, 0, careful_sum))
#     |                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
# help: assert what is given to the function, or what comes of it
#
# warning[F22]: an assertion within a function of single elements is not checked
#    --> elements.py:110:5
#     |
# 110 |     assert b < 100, "too large"
#     |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^
#     |
# note: in `careful_sum`, called here
#    --> elements.py:118:19
#     |
# 118 |     tl.store(out, tl.reduce(v, 0, careful_sum))
#     |                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
# help: assert what is given to the function, or what comes of it
# == error effects "*i32"
# error[F07]: a mapped function that branches on elements computes and does nothing else
#    --> elements.py:195:5
#     |
# 195 |     tl.map_elementwise(loads, x + i, i)
#     |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#     |
# help: load, store and loop outside of it
# == error packs "*i32"
# error[F20]: `pack` is a power of two up to the block's 4 elements, not 3
#    --> elements.py:220:36
#     |
# 220 |     tl.map_elementwise(ordered, i, pack=3)
#     |                                    ^^^^^^
#
# error[F20]: `pack` is a power of two up to the block's 4 elements, not 8
#    --> elements.py:221:36
#     |
# 221 |     tl.map_elementwise(ordered, i, pack=8)
#     |                                    ^^^^^^
#
# error[F09]: `activation` takes 1 argument by position
#    --> elements.py:222:5
#     |
# 222 |     tl.map_elementwise(activation, i.to(tl.float32), pack=2)
#     |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#     |
# help: it is `activation(x)`
# == error of_whole_blocks "*i32"
# error[F07]: a mapped function computes with single elements, and `reduce` is one of blocks
#    --> elements.py:213:5
#     |
# 213 |     tl.map_elementwise(summed, i)
#     |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#     |
# help: reduce and change shapes outside of it
#
# error[F07]: a mapped function computes with single elements, and `arange` is one of blocks
#    --> elements.py:214:5
#     |
# 214 |     tl.map_elementwise(counting, i)
#     |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#     |
# help: reduce and change shapes outside of it
# == error roots_of_integers "*i32"
# error[F20]: an integer to the power -1: exponents are 1 to 64
#    --> elements.py:260:17
#     |
# 260 |     tl.store(x, tl.load(x) ** -1)
#     |                 ^^^^^^^^^^^^^^^^
#     |
# help: cast to float32 first
#
# error[F12]: `**` needs a constant whole exponent
#    --> elements.py:261:17
#     |
# 261 |     tl.store(x, tl.load(x) ** 0.5)
#     |                 ^^^^^^^^^^^^^^^^^
#     |
# help: use libdevice.pow, tl.exp2, or a product
