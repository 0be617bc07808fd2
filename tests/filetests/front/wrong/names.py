# Names that mean nothing, or nothing that a kernel can use.
# error: misspelt_module "*fp32"
# error: misspelt_function "*fp32"
# error: misspelt_method "*fp32"
# error: after_the_loop "*fp32, i32"
# tile: counter_after_the_loop "*fp32, i32"
# error: other_branch "*fp32, i32"
# error: of_the_host "*fp32"
# error: elsewhere "*fp32"
# error: own_name "*fp32"
# error: of_torch "*fp32"
# error: meta "*fp32"
# error: module_as_value "*fp32"
# error: field "*fp32"
# error: type_property "*fp32"
# error: of_a_constant "*fp32"
# error: before_its_value "*fp32"
# error: letters_exchanged "*fp32"
# error: misspelt_math "*fp32"
# error: misspelt_type "*fp32"
# error: misspelt_type_as_value "*fp32"
# error: misspelt_parameter "*fp32, fp32"
# error: misspelt_local "*fp32"
# error: misspelt_keyword "*fp32"
# error: misspelt_own_keyword "*fp32"
# error: misspelt_attribute "*fp32"
# error: misspelt_short_method "*fp32"
# error: like_nothing "*fp32"
import os

import torch
import triton
import triton.language as tl
from helpers import blend

LIMIT = int(os.environ.get("LIMIT", "4"))


@triton.jit
def misspelt_module(x):
    t1.store(x, 1.0)


@triton.jit
def misspelt_function(x):
    tl.store(x, tl.sigmiod(1.0))


@triton.jit
def misspelt_method(x):
    tl.store(x, tl.load(x + tl.arange(0, 4)).summ())


@triton.jit
def after_the_loop(x, n):
    for i in range(n):
        last = tl.load(x + i)
    tl.store(x, last)


@triton.jit
def counter_after_the_loop(x, n):
    for i in range(n):
        pass
    tl.store(x, i)


@triton.jit
def other_branch(x, n):
    if n > 0:
        a = 1.0
    else:
        b = 2.0
    tl.store(x, a)


@triton.jit
def of_the_host(x):
    tl.store(x, LIMIT)


@triton.jit
def elsewhere(x):
    tl.store(x, blend(tl.load(x), 0.5))


@triton.jit
def own_name(x):
    y = y + 1


@triton.jit
def of_torch(x):
    tl.store(x, torch.relu(tl.load(x)))


@triton.jit
def meta(x, **META):
    tl.store(x, META["BLOCK"])


@triton.jit
def module_as_value(x):
    tl.store(x, tl)


@triton.jit
def field(x):
    t = (1.0, 2.0)
    tl.store(x, t.first)


@triton.jit
def type_property(x):
    tl.static_assert(x.dtype.is_integral())


@triton.jit
def of_a_constant(x):
    tl.store(x, "text".upper)


@triton.jit
def before_its_value(x):
    tl.store(x, later)
    later = 1.0


@triton.jit
def letters_exchanged(x):
    tl.store(x, tl.laod(x))


@triton.jit
def misspelt_math(x):
    tl.store(x, tl.math.epx(tl.load(x)))


@triton.jit
def misspelt_type(x):
    tl.store(x, tl.load(x).to(tl.flaot32))


@triton.jit
def misspelt_type_as_value(x):
    tl.store(x, tl.load(x) + tl.flaot32)


@triton.jit
def misspelt_parameter(x, scale):
    tl.store(x, 1.0 * sclae)


@triton.jit
def misspelt_local(x):
    offsets = tl.arange(0, 4)
    tl.store(x + ofsets, 1.0)


@triton.jit
def misspelt_keyword(x):
    tl.store(x, tl.load(x, maks=True))


@triton.jit
def scaled(v, factor=2.0):
    return v * factor


@triton.jit
def misspelt_own_keyword(x):
    tl.store(x, scaled(1.0, facotr=3.0))


@triton.jit
def misspelt_attribute(x):
    tl.store(x, tl.load(x).dtpye)


@triton.jit
def misspelt_short_method(x):
    tl.store(x, tl.load(x).ot(tl.float16))


@triton.jit
def like_nothing(x):
    tl.store(x, tl.load(x, frobnicate=True))
# == error misspelt_module "*fp32"
# error[F05]: `t1` is not defined
#   --> names.py:41:5
#    |
# 41 |     t1.store(x, 1.0)
#    |     ^^
#    |
# help: did you mean `tl`?
# == error misspelt_function "*fp32"
# error[F06]: the library has no `triton.language.sigmiod`
#   --> names.py:46:17
#    |
# 46 |     tl.store(x, tl.sigmiod(1.0))
#    |                 ^^^^^^^^^^
#    |
# help: did you mean `tl.sigmoid`?
# == error misspelt_method "*fp32"
# error[F06]: a block fp32[4] has no attribute `summ`
#   --> names.py:51:46
#    |
# 51 |     tl.store(x, tl.load(x + tl.arange(0, 4)).summ())
#    |                                              ^^^^
#    |
# help: did you mean `sum`?
# == error after_the_loop "*fp32, i32"
# error[F05]: `last` has no value here
#   --> names.py:58:17
#    |
# 58 |     tl.store(x, last)
#    |                 ^^^^ it is defined inside of a loop only
#    |
# help: define it before the loop or condition
# == tile counter_after_the_loop "*fp32, i32"
# kernel @counter_after_the_loop(v0 "x": ptr<f32>, v1 "n": i32) warps(4) {
# block0:
#     v2 = const {value = 0} : i32 @63
#     v3 = const {value = 1} : i32 @63
#     for v2, v1, v3 @63 {
#     block1(v4: i32):
#         yield @63
#     }
#     v5 = icmp v2, v1 {ipred = slt} : i1 @65
#     v6 = const {value = -1} : i32 @65
#     v7 = iadd v1, v6 : i32 @65
#     v8 = isub v7, v2 : i32 @65
#     v9 = urem v8, v3 : i32 @65
#     v10 = isub v7, v9 : i32 @65
#     v11 = select v5, v10, v2 : i32 @65
#     v12 = sitofp v11 : f32 @65
#     store v0, v12 @65
#     return @62
# }
#
# warning[F22]: `i` is the counter of a loop that has ended
#   --> names.py:65:17
#    |
# 65 |     tl.store(x, i)
#    |                 ^ what it was in the last iteration, or the loop's start if there was none
#    |
# help: Triton leaves it undefined; give the value to a name of its own in the loop
# == error other_branch "*fp32, i32"
# error[F05]: `a` has no value here
#   --> names.py:74:17
#    |
# 74 |     tl.store(x, a)
#    |                 ^ it is defined in one branch of an `if` only
#    |
# help: define it before the loop or condition
# == error of_the_host "*fp32"
# error[F12]: `LIMIT` of the module cannot be evaluated: `os.environ.get` is not in this file
#   --> names.py:79:17
#    |
# 79 |     tl.store(x, LIMIT)
#    |                 ^^^^^
#    |
# help: give its value with -c LIMIT=VALUE
# == error elsewhere "*fp32"
# error[F05]: `helpers.blend` is not in this file
#   --> names.py:84:17
#    |
# 84 |     tl.store(x, blend(tl.load(x), 0.5))
#    |                 ^^^^^
#    |
# help: functions that kernels call stand in the same file, or in one beside or around it that it imports
# == error own_name "*fp32"
# error[F05]: `y` is not defined
#   --> names.py:89:9
#    |
# 89 |     y = y + 1
#    |         ^
#    |
# help: define it, or give a constant with -c y=VALUE
# == error of_torch "*fp32"
# error[F05]: `torch.relu` is not in this file
#   --> names.py:94:17
#    |
# 94 |     tl.store(x, torch.relu(tl.load(x)))
#    |                 ^^^^^^^^^^
#    |
# help: functions that kernels call stand in the same file, or in one beside or around it that it imports
# == error meta "*fp32"
# error[F05]: there is no constant `BLOCK`
#   --> names.py:99:17
#    |
# 99 |     tl.store(x, META["BLOCK"])
#    |                 ^^^^^^^^^^^^^
#    |
# help: give it with -c BLOCK=VALUE
# == error module_as_value "*fp32"
# error[F10]: expected a number or a block, found `triton.language`
#    --> names.py:104:17
#     |
# 104 |     tl.store(x, tl)
#     |                 ^^
# == error field "*fp32"
# error[F06]: a tuple of 2 has no attribute `first`
#    --> names.py:110:19
#     |
# 110 |     tl.store(x, t.first)
#     |                   ^^^^^
# == error type_property "*fp32"
# error[F06]: the type *fp32 has no attribute `is_integral`
#    --> names.py:115:30
#     |
# 115 |     tl.static_assert(x.dtype.is_integral())
#     |                              ^^^^^^^^^^^
# == error of_a_constant "*fp32"
# error[F10]: expected a number or a block, found the function `upper`
#    --> names.py:120:17
#     |
# 120 |     tl.store(x, "text".upper)
#     |                 ^^^^^^^^^^^^
# == error before_its_value "*fp32"
# error[F05]: `later` is not defined
#    --> names.py:125:17
#     |
# 125 |     tl.store(x, later)
#     |                 ^^^^^
#     |
# help: define it, or give a constant with -c later=VALUE
# == error letters_exchanged "*fp32"
# error[F06]: the library has no `triton.language.laod`
#    --> names.py:131:17
#     |
# 131 |     tl.store(x, tl.laod(x))
#     |                 ^^^^^^^
#     |
# help: did you mean `tl.load`?
# == error misspelt_math "*fp32"
# error[F06]: the library has no `triton.language.math.epx`
#    --> names.py:136:17
#     |
# 136 |     tl.store(x, tl.math.epx(tl.load(x)))
#     |                 ^^^^^^^^^^^
#     |
# help: did you mean `tl.exp`?
# == error misspelt_type "*fp32"
# error[F06]: the library has no `triton.language.flaot32`
#    --> names.py:141:31
#     |
# 141 |     tl.store(x, tl.load(x).to(tl.flaot32))
#     |                               ^^^^^^^^^^
#     |
# help: did you mean `tl.float32`?
# == error misspelt_type_as_value "*fp32"
# error[F06]: the library has no `triton.language.flaot32`
#    --> names.py:146:30
#     |
# 146 |     tl.store(x, tl.load(x) + tl.flaot32)
#     |                              ^^^^^^^^^^
#     |
# help: did you mean `tl.float32`?
# == error misspelt_parameter "*fp32, fp32"
# error[F05]: `sclae` is not defined
#    --> names.py:151:23
#     |
# 151 |     tl.store(x, 1.0 * sclae)
#     |                       ^^^^^
#     |
# help: did you mean `scale`?
# == error misspelt_local "*fp32"
# error[F05]: `ofsets` is not defined
#    --> names.py:157:18
#     |
# 157 |     tl.store(x + ofsets, 1.0)
#     |                  ^^^^^^
#     |
# help: did you mean `offsets`?
# == error misspelt_keyword "*fp32"
# error[F09]: `load` has no parameter `maks`; did you mean `mask`?
#    --> names.py:162:17
#     |
# 162 |     tl.store(x, tl.load(x, maks=True))
#     |                 ^^^^^^^^^^^^^^^^^^^^^
#     |
# help: it is `load(pointer, mask=..., other=..., boundary_check=..., padding_option=..., cache_modifier=..., eviction_policy=..., volatile=...)`
# == error misspelt_own_keyword "*fp32"
# error[F09]: `scaled` has no parameter `facotr`; did you mean `factor`?
#    --> names.py:172:17
#     |
# 172 |     tl.store(x, scaled(1.0, facotr=3.0))
#     |                 ^^^^^^^^^^^^^^^^^^^^^^^
#     |
# help: it is `scaled(v, factor)`
# == error misspelt_attribute "*fp32"
# error[F06]: a scalar fp32 has no attribute `dtpye`
#    --> names.py:177:28
#     |
# 177 |     tl.store(x, tl.load(x).dtpye)
#     |                            ^^^^^
#     |
# help: did you mean `dtype`?
# == error misspelt_short_method "*fp32"
# error[F06]: a scalar fp32 has no attribute `ot`
#    --> names.py:182:28
#     |
# 182 |     tl.store(x, tl.load(x).ot(tl.float16))
#     |                            ^^
#     |
# help: did you mean `to`?
# == error like_nothing "*fp32"
# error[F09]: `load` has no parameter `frobnicate`
#    --> names.py:187:17
#     |
# 187 |     tl.store(x, tl.load(x, frobnicate=True))
#     |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^
#     |
# help: it is `load(pointer, mask=..., other=..., boundary_check=..., padding_option=..., cache_modifier=..., eviction_policy=..., volatile=...)`
