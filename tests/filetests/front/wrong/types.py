# Operands that do not go together.
# error: pointer_sum "*fp32, *fp32"
# error: pointer_product "*fp32, i32"
# error: float_offset "*fp32, fp32"
# error: negated_pointer "*fp32"
# error: inverted_float "*fp32"
# error: shifted_float "*fp32"
# error: floor_of_floats "*fp32"
# error: signs "*i32, *u32"
# error: too_large "*i8"
# error: too_negative "*u8"
# error: beyond_64_bits "*i64"
# error: eight_bits "*fp8e5"
# error: eight_bits_there "*fp32"
# error: unknown_format "*fp8e4b8"
# error: mixed_eight "*fp8e5, i32"
# error: half_sigmoid "*fp16"
# error: int_exp "*i32"
# error: text_sum "*fp32"
# error: none_sum "*fp32"
# error: called_tensor "*fp32"
# error: indexed_number "*fp32, i32"
# error: bitcast_width "*fp32"
# error: pointer_to_float "*fp32"
# error: rounding_of_integers "*fp32"
# error: mask_of_numbers "*fp32"
# error: constant_store "*kfp32"
# error: and_of_numbers "*i32, i32"
# error: condition_pair "*fp32, i32"
# error: function_as_number "*fp32"
# error: min_of_pointers "*fp32, *fp32"
# error: fma_of_integers "*i32"
# error: reduced_pointer "*fp32"
import triton
import triton.language as tl


@triton.jit
def pointer_sum(x, y):
    tl.store(x + y, 1.0)


@triton.jit
def pointer_product(x, n):
    tl.store(x * n, 1.0)


@triton.jit
def float_offset(x, at):
    tl.store(x + at, 1.0)


@triton.jit
def negated_pointer(x):
    tl.store(-x, 1.0)


@triton.jit
def inverted_float(x):
    tl.store(x, ~tl.load(x))


@triton.jit
def shifted_float(x):
    tl.store(x, tl.load(x) << 2)


@triton.jit
def floor_of_floats(x):
    tl.store(x, tl.load(x) // 2)


@triton.jit
def signs(x, y):
    tl.store(x, tl.load(x) // tl.load(y))


@triton.jit
def too_large(x):
    tl.store(x, tl.load(x) + 200)


@triton.jit
def too_negative(x):
    tl.store(x, tl.load(x) * -1)


@triton.jit
def beyond_64_bits(x):
    big = 1 << 70
    tl.store(x, big)


@triton.jit
def eight_bits(x):
    tl.store(x, tl.load(x) + tl.load(x))


@triton.jit
def eight_bits_there(x):
    tl.store(x, tl.load(x).to(tl.float8e4nv))


@triton.jit
def unknown_format(x):
    tl.store(x, tl.load(x))


@triton.jit
def mixed_eight(x, n):
    tl.store(x, tl.load(x) + n)


@triton.jit
def half_sigmoid(x):
    tl.store(x, tl.sigmoid(tl.load(x)))


@triton.jit
def int_exp(x):
    tl.store(x, tl.exp2(tl.load(x)))


@triton.jit
def text_sum(x):
    tl.store(x, tl.load(x) + "one")


@triton.jit
def none_sum(x):
    tl.store(x, tl.load(x) + None)


@triton.jit
def called_tensor(x):
    tl.store(x, tl.load(x)(1))


@triton.jit
def indexed_number(x, n):
    tl.store(x, n[0])


@triton.jit
def bitcast_width(x):
    tl.store(x, tl.load(x).to(tl.int16, bitcast=True))


@triton.jit
def pointer_to_float(x):
    tl.store(x, x.to(tl.float32))


@triton.jit
def rounding_of_integers(x):
    tl.store(x, tl.load(x).to(tl.int32, fp_downcast_rounding="rtz"))


@triton.jit
def mask_of_numbers(x):
    at = tl.arange(0, 4)
    tl.store(x + at, 1.0, mask=at)


@triton.jit
def constant_store(x):
    tl.store(x, 1.0)


@triton.jit
def and_of_numbers(x, n):
    tl.store(x, n and tl.load(x))


@triton.jit
def condition_pair(x, n):
    v = tl.load(x + tl.arange(0, 4))
    if v > 0 and n > 0:
        tl.store(x, 1.0)


@triton.jit
def function_as_number(x):
    tl.store(x, tl.load + 1)


@triton.jit
def min_of_pointers(x, y):
    tl.store(tl.minimum(x, y), 1.0)


@triton.jit
def fma_of_integers(x):
    tl.store(x, tl.fma(tl.load(x), 2, "3"))


@triton.jit
def reduced_pointer(x):
    tl.store(x, tl.sum(x + tl.arange(0, 4), axis=0))
# == error pointer_sum "*fp32, *fp32"
# error[F10]: *fp32 and *fp32 have no `+`
#   --> types.py:40:14
#    |
# 40 |     tl.store(x + y, 1.0)
#    |              ^^^^^
#    |
# help: a pointer plus or minus an integer is a pointer
# == error pointer_product "*fp32, i32"
# error[F10]: *fp32 and i32 have no `*`
#   --> types.py:45:14
#    |
# 45 |     tl.store(x * n, 1.0)
#    |              ^^^^^
#    |
# help: a pointer plus or minus an integer is a pointer
# == error float_offset "*fp32, fp32"
# error[F10]: a pointer is moved by integers, found fp32
#   --> types.py:50:14
#    |
# 50 |     tl.store(x + at, 1.0)
#    |              ^^^^^^
#    |
# help: cast the offset with `.to(tl.int32)`
# == error negated_pointer "*fp32"
# error[F10]: expected a number, found *fp32
#   --> types.py:55:14
#    |
# 55 |     tl.store(-x, 1.0)
#    |              ^^
# == error inverted_float "*fp32"
# error[F10]: there is no `~` of fp32
#   --> types.py:60:17
#    |
# 60 |     tl.store(x, ~tl.load(x))
#    |                 ^^^^^^^^^^^
# == error shifted_float "*fp32"
# error[F10]: `<<` is for integers and truth values, found fp32 and i32
#   --> types.py:65:17
#    |
# 65 |     tl.store(x, tl.load(x) << 2)
#    |                 ^^^^^^^^^^^^^^^
# == error floor_of_floats "*fp32"
# error[F10]: `//` is for integers, found fp32
#   --> types.py:70:17
#    |
# 70 |     tl.store(x, tl.load(x) // 2)
#    |                 ^^^^^^^^^^^^^^^
#    |
# help: use tl.floor(x / y)
# == error signs "*i32, *u32"
# error[F10]: i32 and u32 differ in sign and cannot be divided
#   --> types.py:75:17
#    |
# 75 |     tl.store(x, tl.load(x) // tl.load(y))
#    |                 ^^^^^^^^^^^^^^^^^^^^^^^^
#    |
# help: cast one of them with `.to(...)`
# == error too_large "*i8"
# error[F20]: the number 200 is out of range for i8
#   --> types.py:80:17
#    |
# 80 |     tl.store(x, tl.load(x) + 200)
#    |                 ^^^^^^^^^^^^^^^^
#    |
# help: cast the other operand to a type that holds it
# == error too_negative "*u8"
# error[F20]: the number -1 is out of range for u8
#   --> types.py:85:17
#    |
# 85 |     tl.store(x, tl.load(x) * -1)
#    |                 ^^^^^^^^^^^^^^^
#    |
# help: cast the other operand to a type that holds it
# == error beyond_64_bits "*i64"
# error[F20]: the number 1180591620717411303424 does not fit into 64 bits
#   --> types.py:90:5
#    |
# 90 |     big = 1 << 70
#    |     ^^^^^^^^^^^^^
# == error eight_bits "*fp8e5"
# error[F10]: there is no arithmetic on fp8e5
#   --> types.py:96:17
#    |
# 96 |     tl.store(x, tl.load(x) + tl.load(x))
#    |                 ^^^^^^^^^^^^^^^^^^^^^^^
#    |
# help: cast to float16 or float32 first
# == error eight_bits_there "*fp32"
# error[F10]: float8e4nv needs sm_89 or later, the target is sm_80
#    --> types.py:101:17
#     |
# 101 |     tl.store(x, tl.load(x).to(tl.float8e4nv))
#     |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#     |
# help: use float8e5 there, or pass the bytes as uint8
# == error unknown_format "*fp8e4b8"
# error[F08]: values of type *fp8e4b8 are not supported yet
#    --> types.py:105:20
#     |
# 105 | def unknown_format(x):
#     |                    ^
#     |
# help: float8e5 and float8e4nv are the 8-bit formats there are
# == error mixed_eight "*fp8e5, i32"
# error[F10]: fp8e5 and i32 have no common type
#    --> types.py:111:17
#     |
# 111 |     tl.store(x, tl.load(x) + n)
#     |                 ^^^^^^^^^^^^^^
#     |
# help: cast one of them with `.to(...)`
# == error half_sigmoid "*fp16"
# error[F10]: `sigmoid` is for float32 and float64, found fp16
#    --> types.py:116:17
#     |
# 116 |     tl.store(x, tl.sigmoid(tl.load(x)))
#     |                 ^^^^^^^^^^^^^^^^^^^^^^
#     |
# help: cast first: `x.to(tl.float32)`
# == error int_exp "*i32"
# error[F10]: `exp2` is for float32 and float64, found i32
#    --> types.py:121:17
#     |
# 121 |     tl.store(x, tl.exp2(tl.load(x)))
#     |                 ^^^^^^^^^^^^^^^^^^^
#     |
# help: cast first: `x.to(tl.float32)`
# == error text_sum "*fp32"
# error[F10]: expected a number or a block, found the string "one"
#    --> types.py:126:30
#     |
# 126 |     tl.store(x, tl.load(x) + "one")
#     |                              ^^^^^
# == error none_sum "*fp32"
# error[F10]: expected a number or a block, found None
#    --> types.py:131:30
#     |
# 131 |     tl.store(x, tl.load(x) + None)
#     |                              ^^^^
# == error called_tensor "*fp32"
# error[F10]: a scalar fp32 cannot be called
#    --> types.py:136:17
#     |
# 136 |     tl.store(x, tl.load(x)(1))
#     |                 ^^^^^^^^^^
# == error indexed_number "*fp32, i32"
# error[F07]: blocks are indexed with `:` and `None` only
#    --> types.py:141:19
#     |
# 141 |     tl.store(x, n[0])
#     |                   ^
#     |
# help: elements are chosen with tl.where and a reduction, or loaded from memory
# == error bitcast_width "*fp32"
# error[F10]: fp32 has 32 bits, i16 has 16
#    --> types.py:146:17
#     |
# 146 |     tl.store(x, tl.load(x).to(tl.int16, bitcast=True))
#     |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#     |
# help: a bitcast is between types of equal width
# == error pointer_to_float "*fp32"
# error[F10]: *fp32 cannot be cast to fp32
#    --> types.py:151:17
#     |
# 151 |     tl.store(x, x.to(tl.float32))
#     |                 ^^^^^^^^^^^^^^^^
#     |
# help: between pointers and numbers, only 64-bit integers are cast
# == error rounding_of_integers "*fp32"
# error[F20]: a rounding is for narrower floats, here fp32 becomes i32
#    --> types.py:156:17
#     |
# 156 |     tl.store(x, tl.load(x).to(tl.int32, fp_downcast_rounding="rtz"))
#     |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
# == error mask_of_numbers "*fp32"
# error[F10]: a mask is made of truth values, found i32[4]
#    --> types.py:162:27
#     |
# 162 |     tl.store(x + at, 1.0, mask=at)
#     |                           ^^^^^^^
#     |
# help: compare with something: `mask != 0`
# == error constant_store "*kfp32"
# error[F10]: a store through a pointer to constant data
#    --> types.py:167:5
#     |
# 167 |     tl.store(x, 1.0)
#     |     ^^^^^^^^^^^^^^^^
# == error and_of_numbers "*i32, i32"
# error[F10]: expected truth values, found i32
#    --> types.py:172:23
#     |
# 172 |     tl.store(x, n and tl.load(x))
#     |                       ^^^^^^^^^^
#     |
# help: compare with zero: `x != 0`
# == error condition_pair "*fp32, i32"
# error[F14]: a block (i1[4]) is no condition
#    --> types.py:178:8
#     |
# 178 |     if v > 0 and n > 0:
#     |        ^^^^^^^^^^^^^^^ expected a scalar
#     |
# help: use tl.where to choose element by element, or reduce with tl.max
# == error function_as_number "*fp32"
# error[F10]: expected a number or a block, found the function `load`
#    --> types.py:184:17
#     |
# 184 |     tl.store(x, tl.load + 1)
#     |                 ^^^^^^^
# == error min_of_pointers "*fp32, *fp32"
# error[F10]: a pointer (*fp32) cannot stand here
#    --> types.py:189:14
#     |
# 189 |     tl.store(tl.minimum(x, y), 1.0)
#     |              ^^^^^^^^^^^^^^^^
#     |
# help: pointers can be moved by integers, compared and dereferenced
# == error fma_of_integers "*i32"
# error[F10]: expected a number or a block, found the string "3"
#    --> types.py:194:39
#     |
# 194 |     tl.store(x, tl.fma(tl.load(x), 2, "3"))
#     |                                       ^^^
# == error reduced_pointer "*fp32"
# error[F10]: expected a block of numbers, found *fp32[4]
#    --> types.py:199:17
#     |
# 199 |     tl.store(x, tl.sum(x + tl.arange(0, 4), axis=0))
#     |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
