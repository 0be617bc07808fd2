# What kernels ask of Python and of the host's libraries at compile time. Expected numbers are Python's own.
# run: functions "*i32" : grid(1) out=i32[2] poison ; expect out = [3,0]
# run: limits "*i32" : grid(1) out=i32[1] poison ; expect out = [1]
# run: python "*i32, *fp32" : grid(1) out=i32[8] poison x=f32[4] [0,-2,3,0] ; expect out = [14,0,1,1,0,2,0,4]
# run: objects "*i32, Point(*i32, 3)" : grid(1) out=i32[4] poison p_at=i32[1] [7] ; expect out = [1,1,0,7]
# run: types "*fp16, *i32" : grid(1) x=f16[4] [1,2,3,4] out=i32[4] poison ; expect out = [5,4,16,32]
# run: tables "*i32, *bf16, 64" : grid(1) out=i32[4] poison x=bf16[1] poison ; expect out = [8,16,1,0]
# error: wrong "*i32, i32"
# error: wrong_types "*i32, i32"
import math

import numpy as np
import torch
import triton
import triton.language as tl


@triton.constexpr_function
def mantissa(dtype):
    bits = {tl.float16: 11, tl.bfloat16: 8, (tl.float32, tl.float64): 0}
    return bits[dtype] if dtype in bits else -1


@triton.constexpr_function
def rows(columns):
    table = {32: 8, 64: 16, "64": 24, None: 1}
    return table[columns] if 32.0 in table and None in table and "32" not in table else 0


@triton.jit
def tables(out, x, COLUMNS: tl.constexpr):
    tl.store(out, mantissa(x.dtype.element_ty))
    tl.store(out + 1, rows(COLUMNS))
    tl.store(out + 2, mantissa(tl.int8) == -1)
    tl.store(out + 3, mantissa((tl.float32, tl.float64)))


@triton.jit
def functions(out):
    tl.static_assert(abs(math.exp(1) - 2.718281828459045) < 1e-15)
    tl.static_assert(abs(math.log(10) - 2.302585092994046) < 1e-15)
    tl.static_assert(abs(math.log(8, 2) - 3) < 1e-15)
    tl.static_assert(math.log2(1024) == 10 and math.log10(1000) == 3)
    tl.static_assert(abs(math.sin(0.5) - 0.479425538604203) < 1e-15)
    tl.static_assert(abs(math.cos(0.5) - 0.8775825618903728) < 1e-15)
    tl.static_assert(abs(math.tanh(0.5) - 0.46211715726000973) < 1e-15)
    tl.static_assert(abs(math.erf(0.5) - 0.5204998778130465) < 1e-15)
    tl.static_assert(math.prod([2, 3, 4]) == 24 and math.prod((), start=2.5) == 2.5)
    tl.static_assert(np.sqrt(2) == math.sqrt(2))
    # Integers of Python, that shapes can be made of.
    tl.static_assert(math.floor(-2.5) == -3 and math.ceil(-2.5) == -2)
    tl.store(out + tl.arange(0, math.ceil(1.5)), tl.arange(0, math.floor(2.5)) * -3 + 3)


@triton.jit
def limits(out):
    tl.static_assert(torch.iinfo(torch.int8).min == -128 and torch.iinfo(torch.int8).max == 127)
    tl.static_assert(np.iinfo(np.uint16).min == 0 and np.iinfo(np.uint16).max == 65535)
    tl.static_assert(torch.iinfo(tl.int64).max == 9223372036854775807 and torch.iinfo(torch.int64).bits == 64)
    tl.static_assert(torch.finfo(torch.float16).max == 65504 and torch.finfo(torch.float16).min == -65504)
    tl.static_assert(torch.finfo(torch.float16).eps == 0.0009765625 and torch.finfo(torch.half).bits == 16)
    tl.static_assert(torch.finfo(torch.bfloat16).max == 3.3895313892515355e38)
    tl.static_assert(torch.finfo(torch.bfloat16).eps == 0.0078125)
    tl.static_assert(torch.finfo(torch.float32).max == 3.4028234663852886e38)
    tl.static_assert(torch.finfo(torch.float32).tiny == 1.1754943508222875e-38)
    tl.static_assert(torch.finfo(torch.float32).eps == 1.1920928955078125e-07)
    tl.static_assert(np.finfo(np.float64).max == 1.7976931348623157e308)
    tl.static_assert(np.finfo(np.float64).smallest_normal == 2.2250738585072014e-308)
    tl.static_assert(torch.finfo(tl.float8e4nv).max == 448 and torch.finfo(tl.float8e4nv).tiny == 0.015625)
    tl.static_assert(torch.finfo(tl.float8e5).max == 57344 and torch.finfo(tl.float8e5).eps == 0.25)
    tl.store(out, 1)


PAIRS = [(1, 2), (3, 4)]
TOTAL = sum([a * b for a, b in PAIRS])
NAMES = str(3) + "x" + str(True)


@triton.jit
def python(out, x):
    i = tl.arange(0, 4)
    v = tl.load(x + i)
    tl.store(out, TOTAL)
    tl.store(out + 1 + i, tl.where(bool(v), 1, 0))
    tl.store(out + 5, round(2.5))
    tl.store(out + 6, int(bool(0.0) or bool("") or bool()))
    tl.store(out + 7, len(v))
    tl.static_assert(NAMES == "3xTrue" and str(1.5) == "1.5" and str("a") == "a")
    tl.static_assert(round(-0.5) == 0 and round(3.5) == 4 and abs(-3) == 3 and abs(-2.5) == 2.5)
    tl.static_assert(int("12") == 12 and int(-2.9) == -2 and float("1e3") == 1000 and float("-inf") < 0)
    tl.static_assert(bool(3) and bool("a") and not bool(0))
    tl.static_assert(sum((1, 2.5)) == 3.5 and sum([]) == 0)
    tl.static_assert(len(list(range(3))) == 3 and tuple((1, 2)) == (1, 2))
    tl.static_assert(isinstance(3, (float, int)) and not isinstance(3, (float, str)))
    tl.static_assert(hasattr(v, "shape") and hasattr(v, "to") and not hasattr(v, "colour"))
    tl.static_assert(not hasattr(3, "value") and not hasattr(3, "shape") and hasattr(3, "bit_length"))


@tl.core._aggregate
class Point:
    at: tl.tensor
    size: tl.constexpr
    unit = 8

    def __init__(self, at, size: tl.constexpr):
        self.at = at
        self.size = size

    @triton.jit
    def value(self):
        return tl.load(self.at)


@triton.jit
def objects(out, p):
    tl.store(out, int(hasattr(p, "at") and hasattr(p, "value") and hasattr(p, "unit") and hasattr(Point, "value")))
    tl.store(out + 1, int(hasattr(tl, "dot") and hasattr(tl, "int8") and hasattr(tl.int8, "is_int")))
    tl.store(out + 2, int(hasattr(p, "stride") or hasattr(tl, "async_task") or hasattr(tl.int8, "colour")))
    tl.store(out + 3, p.value())


@tl.constexpr_function
def bits_of(n):
    return tl._log2(n)


@triton.jit
def types(x, out):
    v = tl.load(x + tl.arange(0, 4))
    both: tl.constexpr = tl.block_type(tl.float16, [4, 2])
    tl.static_assert(both.get_block_shapes() == (4, 2) and both.with_element_ty(tl.int8).get_block_shapes() == (4, 2))
    tl.static_assert(tl._is_power_of_two(16) and not tl._is_power_of_two(12) and not tl._is_power_of_two(0))
    tl.static_assert(tl.dtype(tl.int8) == tl.int8 and tl.get_int_dtype(8, True) == tl.dtype("int8"))
    tl.static_assert(tl.dtype("uint16") == tl.uint16 and tl.dtype("fp16") == tl.float16)
    tl.static_assert(tl.int8.name == "int8" and tl.int1.name == "int1" and tl.float16.name == "fp16")
    tl.store(out, bits_of(32))
    tl.store(out + 1, v.type.get_block_shapes()[0])
    tl.store(out + 2, v.dtype.primitive_bitwidth)
    tl.store(out + 3, tl.get_int_dtype(32, False).primitive_bitwidth)


# Each line is refused for itself.
@triton.jit
def wrong(x, n):
    tl.store(x, math.exp(n))
    tl.store(x, math.floor(n))
    tl.store(x, math.floor(1e30))
    tl.store(x, math.log(8, -2))
    tl.store(x, math.prod(n))
    tl.store(x, torch.finfo(tl.float8e4b15).max)
    tl.store(x, torch.finfo(torch.int8).max)
    tl.store(x, torch.iinfo(torch.float16).max)
    tl.store(x, triton.next_power_of_2(1 << 70))
    tl.store(x, round(n))
    tl.store(x, sum(n))
    tl.store(x, min())
    tl.store(x, max(1, "a"))
    tl.store(x, int("1.5"))
    tl.store(x, int(float("nan")))
    tl.store(x, int(None))
    tl.store(x, float("a"))
    tl.store(x, float(None))
    tl.store(x, len(n))
    tl.store(x, tuple(n))
    tl.store(x, isinstance(n, 3))
    tl.store(x, hasattr(n, None))
    tl.store(x, int("12"), mask=tuple(None))


@triton.jit
def wrong_types(x, n):
    tl.store(x, tl._log2(12))
    tl.store(x, n.get_int_max_value())
    tl.store(x, tl.float32.get_int_min_value())
    tl.store(x, tl.get_int_dtype(24, True))
    tl.store(x, tl.dtype("float24"))
    tl.store(x, tl.block_type(None, [4]))
    tl.store(x, tl.block_type(tl.int8, [4]).with_element_ty(None))
# == error wrong "*i32, i32"
# error[F12]: `math.exp` is for constants, found a scalar i32
#    --> host.py:145:17
#     |
# 145 |     tl.store(x, math.exp(n))
#     |                 ^^^^^^^^^^^
#     |
# help: use tl.exp
#
# error[F12]: `math.floor` is for constants
#    --> host.py:146:17
#     |
# 146 |     tl.store(x, math.floor(n))
#     |                 ^^^^^^^^^^^^^
#     |
# help: use tl.floor
#
# error[F20]: the number 1000000000000000019884624838656 does not fit into 64 bits
#    --> host.py:147:5
#     |
# 147 |     tl.store(x, math.floor(1e30))
#     |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#
# error[F13]: the base is no number above 0
#    --> host.py:148:17
#     |
# 148 |     tl.store(x, math.log(8, -2))
#     |                 ^^^^^^^^^^^^^^^
#
# error[F10]: `math.prod` multiplies a tuple
#    --> host.py:149:17
#     |
# 149 |     tl.store(x, math.prod(n))
#     |                 ^^^^^^^^^^^^
#
# error[F10]: `finfo` tells of floating-point types
#    --> host.py:150:29
#     |
# 150 |     tl.store(x, torch.finfo(tl.float8e4b15).max)
#     |                             ^^^^^^^^^^^^^^
#
# error[F10]: `finfo` tells of floating-point types
#    --> host.py:151:29
#     |
# 151 |     tl.store(x, torch.finfo(torch.int8).max)
#     |                             ^^^^^^^^^^
#
# error[F10]: `iinfo` tells of integers
#    --> host.py:152:29
#     |
# 152 |     tl.store(x, torch.iinfo(torch.float16).max)
#     |                             ^^^^^^^^^^^^^
#
# error[F20]: the number is too large
#    --> host.py:153:17
#     |
# 153 |     tl.store(x, triton.next_power_of_2(1 << 70))
#     |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#
# error[F12]: `round` of Python is for constants
#    --> host.py:154:17
#     |
# 154 |     tl.store(x, round(n))
#     |                 ^^^^^^^^
#     |
# help: use libdevice.rint or tl.floor(x + 0.5)
#
# error[F10]: `sum` of Python adds a tuple
#    --> host.py:155:17
#     |
# 155 |     tl.store(x, sum(n))
#     |                 ^^^^^^
#     |
# help: use tl.sum
#
# error[F09]: there is nothing to compare
#    --> host.py:156:17
#     |
# 156 |     tl.store(x, min())
#     |                 ^^^^^
#
# error[F10]: the constant 1 and the string "a" have no order
#    --> host.py:157:17
#     |
# 157 |     tl.store(x, max(1, "a"))
#     |                 ^^^^^^^^^^^
#
# error[F20]: "1.5" is no integer of base 10
#    --> host.py:158:17
#     |
# 158 |     tl.store(x, int("1.5"))
#     |                 ^^^^^^^^^^
#
# error[F20]: nan is no integer
#    --> host.py:159:17
#     |
# 159 |     tl.store(x, int(float("nan")))
#     |                 ^^^^^^^^^^^^^^^^^
#
# error[F20]: None is no integer
#    --> host.py:160:17
#     |
# 160 |     tl.store(x, int(None))
#     |                 ^^^^^^^^^
#
# error[F20]: "a" is no number
#    --> host.py:161:17
#     |
# 161 |     tl.store(x, float("a"))
#     |                 ^^^^^^^^^^
#
# error[F20]: None is no number
#    --> host.py:162:17
#     |
# 162 |     tl.store(x, float(None))
#     |                 ^^^^^^^^^^^
#
# error[F10]: a scalar i32 has no length
#    --> host.py:163:17
#     |
# 163 |     tl.store(x, len(n))
#     |                 ^^^^^^
#
# error[F10]: a scalar i32 is no tuple
#    --> host.py:164:17
#     |
# 164 |     tl.store(x, tuple(n))
#     |                 ^^^^^^^^
# == error wrong_types "*i32, i32"
# error[F06]: a scalar i32 has no attribute `get_int_max_value`
#    --> host.py:173:19
#     |
# 173 |     tl.store(x, n.get_int_max_value())
#     |                   ^^^^^^^^^^^^^^^^^
#
# error[F10]: fp32 is no integer
#    --> host.py:174:17
#     |
# 174 |     tl.store(x, tl.float32.get_int_min_value())
#     |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#
# error[F20]: there is no integer of 24 bits
#    --> host.py:175:17
#     |
# 175 |     tl.store(x, tl.get_int_dtype(24, True))
#     |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^
#
# error[F20]: there is no type of this name
#    --> host.py:176:17
#     |
# 176 |     tl.store(x, tl.dtype("float24"))
#     |                 ^^^^^^^^^^^^^^^^^^^
#
# error[F10]: expected a type, found None
#    --> host.py:177:17
#     |
# 177 |     tl.store(x, tl.block_type(None, [4]))
#     |                 ^^^^^^^^^^^^^^^^^^^^^^^^
#
# error[F10]: expected a type, found None
#    --> host.py:178:17
#     |
# 178 |     tl.store(x, tl.block_type(tl.int8, [4]).with_element_ty(None))
#     |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
