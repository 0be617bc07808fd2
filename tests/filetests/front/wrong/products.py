# Products that there are not.
# error: vectors "*fp16"
# error: ranks "*fp16"
# error: inner "*fp16"
# error: different_batches "*fp16"
# error: different_batches_of_four "*fp16"
# error: few_halves "*fp16"
# error: few_bytes "*i8"
# error: few_floats "*fp32"
# error: unsigned "*u8"
# error: type_as_sum "*fp16"
# error: type_as_factor "*fp16"
# error: type_as_precision "*fp16"
# error: type_as_shape "*fp16"
# error: float_scales "*fp8e5"
# error: wide_scales "*fp8e5"
# error: early_e4m3 "*fp8e4nv"
# error: early_e4m3_pointer "*i8"
# error: early_e4m3_cast "*fp32"
# error: packed_numbers "*u8"
# error: other_batches "*u8"
import triton
import triton.language as tl


@triton.jit
def block(x, m: tl.constexpr, n: tl.constexpr):
    return tl.load(x + tl.arange(0, m)[:, None] * n + tl.arange(0, n)[None, :])


@triton.jit
def vectors(x):
    tl.dot(tl.load(x + tl.arange(0, 16)), block(x, 16, 16))


@triton.jit
def ranks(x):
    tl.dot(block(x, 16, 16)[None, :, :], block(x, 16, 16))


@triton.jit
def inner(x):
    tl.dot(block(x, 16, 16), block(x, 32, 16))


@triton.jit
def different_batches(x):
    one = block(x, 16, 16)[None, :, :]
    tl.dot(tl.broadcast_to(one, (2, 16, 16)), tl.broadcast_to(one, (4, 16, 16)))


@triton.jit
def different_batches_of_four(x):
    one = block(x, 16, 16)[None, None, :, :]
    tl.dot(tl.broadcast_to(one, (2, 4, 16, 16)), tl.broadcast_to(one, (4, 2, 16, 16)))


@triton.jit
def few_halves(x):
    tl.dot(block(x, 16, 8), block(x, 8, 16))


@triton.jit
def few_bytes(x):
    tl.dot(block(x, 16, 16), block(x, 16, 16))


@triton.jit
def few_floats(x):
    tl.dot(block(x, 16, 4), block(x, 4, 16))


@triton.jit
def unsigned(x):
    tl.dot(block(x, 32, 32), block(x, 32, 32))


@triton.jit
def type_as_sum(x):
    tl.dot(block(x, 16, 16), block(x, 16, 16), tl.float32)


@triton.jit
def type_as_factor(x):
    tl.dot(block(x, 16, 16), tl.float32)


@triton.jit
def type_as_precision(x):
    tl.dot(block(x, 16, 16), block(x, 16, 16), input_precision=tl.float32)


@triton.jit
def type_as_shape(x):
    total = tl.zeros(tl.float32, (16, 16)) + tl.dot(block(x, 16, 16), block(x, 16, 16))
    tl.store(x + tl.arange(0, 16), tl.sum(total, 0))


@triton.jit
def float_scales(x):
    tl.dot_scaled(block(x, 16, 64), tl.zeros((16, 2), tl.float32), "e5m2", block(x, 64, 16), None, "e5m2")


@triton.jit
def wide_scales(x):
    tl.dot_scaled(block(x, 16, 64), None, "e5m2", block(x, 64, 16), tl.zeros((16, 2), tl.int16), "e5m2")


@triton.jit
def early_e4m3(x):
    tl.store(x, tl.load(x))


@triton.jit
def early_e4m3_pointer(x):
    tl.store(x.to(tl.pointer_type(tl.float8e4nv)), tl.load(x))


@triton.jit
def early_e4m3_cast(x):
    tl.store(x, tl.load(x).to(tl.float8e4nv).to(tl.float32))


@triton.jit
def packed_numbers(x):
    tl.dot_scaled(block(x, 16, 64), None, "e5m2", block(x, 64, 16), None, "e5m2", rhs_k_pack=False)


@triton.jit
def other_batches(x):
    v = tl.zeros((2, 16, 32), tl.uint8)
    tl.dot_scaled(v, None, "e5m2", tl.zeros((4, 32, 16), tl.uint8), None, "e5m2")
# == error vectors "*fp16"
# error[F11]: a product is of blocks of 2 or more dimensions, found fp16[16]
#   --> products.py:33:12
#    |
# 33 |     tl.dot(tl.load(x + tl.arange(0, 16)), block(x, 16, 16))
#    |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
# == error ranks "*fp16"
# error[F11]: [1,16,16] and [16,16] differ in rank
#   --> products.py:38:5
#    |
# 38 |     tl.dot(block(x, 16, 16)[None, :, :], block(x, 16, 16))
#    |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
# == error inner "*fp16"
# error[F11]: [16,16] and [32,16] cannot be multiplied: [m, k] goes with [k, n]
#   --> products.py:43:5
#    |
# 43 |     tl.dot(block(x, 16, 16), block(x, 32, 16))
#    |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
# == error different_batches "*fp16"
# error[F11]: batches of [2] and of [4] matrices cannot be multiplied
#   --> products.py:49:5
#    |
# 49 |     tl.dot(tl.broadcast_to(one, (2, 16, 16)), tl.broadcast_to(one, (4, 16, 16)))
#    |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    |
# help: both have the same dimensions in front; `tl.broadcast_to` repeats a matrix
# == error different_batches_of_four "*fp16"
# error[F11]: batches of [2, 4] and of [4, 2] matrices cannot be multiplied
#   --> products.py:55:5
#    |
# 55 |     tl.dot(tl.broadcast_to(one, (2, 4, 16, 16)), tl.broadcast_to(one, (4, 2, 16, 16)))
#    |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    |
# help: both have the same dimensions in front; `tl.broadcast_to` repeats a matrix
# == error few_halves "*fp16"
# error[F11]: a product of fp16 adds 16 elements or more, here 8
#   --> products.py:60:5
#    |
# 60 |     tl.dot(block(x, 16, 8), block(x, 8, 16))
#    |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    |
# help: load `tl.arange(0, 16)` of them and mask those from 8 on with `other=0`
# == error few_bytes "*i8"
# error[F11]: a product of i8 adds 32 elements or more, here 16
#   --> products.py:65:5
#    |
# 65 |     tl.dot(block(x, 16, 16), block(x, 16, 16))
#    |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    |
# help: load `tl.arange(0, 32)` of them and mask those from 16 on with `other=0`
# == error few_floats "*fp32"
# error[F11]: a product of fp32 adds 8 elements or more, here 4
#   --> products.py:70:5
#    |
# 70 |     tl.dot(block(x, 16, 4), block(x, 4, 16))
#    |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    |
# help: load `tl.arange(0, 8)` of them and mask those from 4 on with `other=0`
# == error unsigned "*u8"
# error[F10]: there is no product of u8
#   --> products.py:75:12
#    |
# 75 |     tl.dot(block(x, 32, 32), block(x, 32, 32))
#    |            ^^^^^^^^^^^^^^^^
#    |
# help: operands are floats or int8
# == error type_as_sum "*fp16"
# error[F10]: `acc` of `dot` is a block that the product is added to, found a type
#   --> products.py:80:48
#    |
# 80 |     tl.dot(block(x, 16, 16), block(x, 16, 16), tl.float32)
#    |                                                ^^^^^^^^^^
#    |
# help: the type of the sum is `out_dtype=`
# == error type_as_factor "*fp16"
# error[F10]: `other` of `dot`: expected a number or a block, found the type fp32
#   --> products.py:85:30
#    |
# 85 |     tl.dot(block(x, 16, 16), tl.float32)
#    |                              ^^^^^^^^^^
#    |
# help: a type is no number; if a `tl.constexpr` is one here, its entry in the signature has to be a number
# == error type_as_precision "*fp16"
# error[F12]: `input_precision` of `dot` must be a string, found the type fp32
#   --> products.py:90:48
#    |
# 90 |     tl.dot(block(x, 16, 16), block(x, 16, 16), input_precision=tl.float32)
#    |                                                ^^^^^^^^^^^^^^^^^^^^^^^^^^
# == error type_as_shape "*fp16"
# error[F12]: a shape is made of constants, found the type fp32
#   --> products.py:95:13
#    |
# 95 |     total = tl.zeros(tl.float32, (16, 16)) + tl.dot(block(x, 16, 16), block(x, 16, 16))
#    |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    |
# help: a type is no number; if a `tl.constexpr` is one here, its entry in the signature has to be a number
# == error float_scales "*fp8e5"
# error[F10]: `lhs_scale` is of uint8, one exponent of two for 32 elements, or of float8e4nv, one number for 16, found fp32[16, 2]
#    --> products.py:101:37
#     |
# 101 |     tl.dot_scaled(block(x, 16, 64), tl.zeros((16, 2), tl.float32), "e5m2", block(x, 64, 16), None, "e5m2")
#     |                                     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
# == error wide_scales "*fp8e5"
# error[F10]: `rhs_scale` is of uint8, one exponent of two for 32 elements, or of float8e4nv, one number for 16, found i16[16, 2]
#    --> products.py:106:69
#     |
# 106 |     tl.dot_scaled(block(x, 16, 64), None, "e5m2", block(x, 64, 16), tl.zeros((16, 2), tl.int16), "e5m2")
#     |                                                                     ^^^^^^^^^^^^^^^^^^^^^^^^^^^
# == error early_e4m3 "*fp8e4nv"
# error[F10]: float8e4nv needs sm_89 or later, the target is sm_80
#    --> products.py:110:16
#     |
# 110 | def early_e4m3(x):
#     |                ^
#     |
# help: use float8e5 there, or pass the bytes as uint8
# == error early_e4m3_pointer "*i8"
# error[F10]: float8e4nv needs sm_89 or later, the target is sm_80
#    --> products.py:116:14
#     |
# 116 |     tl.store(x.to(tl.pointer_type(tl.float8e4nv)), tl.load(x))
#     |              ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#     |
# help: use float8e5 there, or pass the bytes as uint8
# == error early_e4m3_cast "*fp32"
# error[F10]: float8e4nv needs sm_89 or later, the target is sm_80
#    --> products.py:121:17
#     |
# 121 |     tl.store(x, tl.load(x).to(tl.float8e4nv).to(tl.float32))
#     |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#     |
# help: use float8e5 there, or pass the bytes as uint8
# == error packed_numbers "*u8"
# error[F20]: only numbers of the format "e2m1" are packed, so `rhs_k_pack` must be true
#    --> products.py:126:83
#     |
# 126 |     tl.dot_scaled(block(x, 16, 64), None, "e5m2", block(x, 64, 16), None, "e5m2", rhs_k_pack=False)
#     |                                                                                   ^^^^^^^^^^^^^^^^
# == error other_batches "*u8"
# error[F11]: the dimensions in front of the last two are the same, found [2,16,32] and [4,32,16]
#    --> products.py:132:5
#     |
# 132 |     tl.dot_scaled(v, None, "e5m2", tl.zeros((4, 32, 16), tl.uint8), None, "e5m2")
#     |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
