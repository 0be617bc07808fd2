# The functions that kernels of PyTorch's compiler call; the numbers are NumPy's.
# run: whole "*i32, *i32, *i32" : grid(1) n=i32[8] [-7,7,-7,7,6,-6,0,-1] d=i32[8] [2,-2,-2,2,3,3,5,-1] rest=i32[8] poison ; expect n = [-4,-4,3,3,2,-2,0,1] ; expect rest = [1,-1,-1,1,0,0,0,0]
# run: extremes "*bf16, *bf16" : grid(1) a=bf16[8] [1,nan,-3,2,nan,5,0,-1] b=bf16[8] [2,1,nan,2,nan,-5,4,-1] ; expect a = [1,nan,nan,2,nan,-5,0,-1] ; expect b = [2,nan,nan,2,nan,5,4,-1]
# run: narrow "*bf16, *bf16" : grid(1) x=bf16[8] [3,1,4,1,5,-9,2,6] out=bf16[11] poison ; expect out = [6,3,1,1,1,1,-9,-9,-9,6,-9]
# run: narrow "*fp16, *fp16" : grid(1) x=f16[8] [3,1,4,1,5,-9,2,nan] out=f16[11] poison ; expect out = [nan,3,1,1,1,1,-9,-9,nan,nan,nan]
# run: extremes "*fp32, *fp32" : grid(1) a=f32[8] [1,nan,-3,2,nan,5,0,-1] b=f32[8] [2,1,nan,2,nan,-5,4,-1] ; expect a = [1,nan,nan,2,nan,-5,0,-1] ; expect b = [2,nan,nan,2,nan,5,4,-1]
# run: reduced "*fp32, *i32, *fp32" : grid(1) x=f32[8] [3,1,4,1,5,nan,2,nan] at=i32[4] poison out=f32[9] poison ; expect at = [1,1,2,1] ; expect out = [1,nan,4,nan,1,nan,4,nan,12]
# run: moments "*fp32, *fp32" : grid(1) x=f32[8] [4,7,13,16,1,-2,0.5,8] out=f32[9] poison ; expect out = [5.9375,277.21875,8,5.9375,277.21875,8,0,0,0]
# run: parts "*fp32, *fp32, *i32" : grid(1) x=f32[8] [8,0,-0.75,3e-40,1,1024.5,-6,0.1] m=f32[8] poison e=i32[8] poison ; expect m = [0.5,0,-0.75,0.8166770935058594,0.5,0.500244140625,-0.75,0.800000011920929] ; expect e = [4,0,0,-131,1,11,3,-3]
# run: sorted "*fp32, *i32, 8, False" : grid(1) x=f32[8] [3,1,nan,2,3,-1,5,0] at=i32[8] poison ; expect x = [-1,0,1,2,3,3,5,nan] ; expect at = [5,7,1,3,0,4,6,2]
# run: sorted "*fp32, *i32, 6, False" : grid(1) x=f32[8] [3,1,nan,2,3,-1,-5,-6] at=i32[8] poison ; expect x = [-1,1,2,3,3,nan,-6,-5] ; expect at = [5,1,3,0,4,2,7,6]
# run: sorted "*fp32, *i32, None, True" : grid(1) x=f32[8] [3,1,1,2,3,-1,5,0] at=i32[8] poison ; expect x = [5,3,3,2,1,1,0,-1] ; expect at = [6,0,4,3,1,2,7,5]
# run: buckets "*fp32, *fp32, *i32, *i64" : grid(1) x=f32[8] [0,1,2,3,5,6,4,5.5] bounds=f32[4] [1,3,5,5] order=i32[4] [0,1,2,3] out=i64[24] poison ; expect out = [0,0,1,1,2,4,2,4,0,1,1,2,4,4,2,4,0,0,1,1,2,4,2,4]
# run: chosen "*fp32, *i32" : grid(1) x=f32[4] [1,-2.5,nan,4] out=i32[2] poison ; expect x = [-2.5,-2.5,1,0] ; expect out = [1,8]
# run: scanned "*fp32, *i64, *fp32" : grid(4) x=f32[4] [1,2,3,4] words=i64[4] zeros out=f32[4] poison ; expect out = [0,1,3,6]
# run: scanned_wide "*fp64, *u64, *fp64" : grid(3) x=f64[3] [0.5,2,3] words=i64[9] zeros out=f64[3] poison ; expect out = [0,0.5,2.5]
# run: random "*i64, i64" : grid(1) out=i64[8] poison seed=7 ; expect out = [1,1,1,1,1,1,1,1]
# run: softmax "*fp32, *fp32" : grid(1) x=f32[4] [0,0,-inf,-inf] out=f32[6] poison ; expect out = [0,2,-inf,0,1,2]
# error: missing "*i32"
import torch
import triton
import triton.language as tl
from torch._inductor.runtime import triton_helpers, triton_heuristics
from torch._inductor.runtime.triton_helpers import libdevice, math as tl_math


@triton.jit
def whole(n, d, rest):
    i = tl.arange(0, 8)
    a, b = tl.load(n + i), tl.load(d + i)
    tl.store(n + i, triton_helpers.div_floor_integer(a, b))
    tl.store(rest + i, triton_helpers.remainder_integer(a, b))


@triton.jit
def extremes(a, b):
    i = tl.arange(0, 8)
    tl.static_assert(triton_helpers.is_floating(tl.load(a)) and not triton_helpers.is_floating(3))
    x, y = tl.load(a + i), tl.load(b + i)
    tl.store(a + i, triton_helpers.minimum(x, y))
    tl.store(b + i, triton_helpers.maximum(x, y))


@triton.jit
def narrow(x, out):
    # The type stays, where one number is made of many and where a loop carries it.
    i = tl.arange(0, 8)
    v = tl.load(x + i)
    tl.store(out, tl.reduce(v, 0, triton_helpers.maximum))
    tl.store(out + 1 + i, tl.associative_scan(v, 0, triton_helpers.minimum))
    high, low = tl.load(x), tl.load(x)
    for at in range(1, 8):
        high = triton_helpers.maximum(high, tl.load(x + at))
        low = triton_helpers.minimum(low, tl.load(x + at))
    tl.store(out + 9, high)
    tl.store(out + 10, low)


@triton.jit
def reduced(x, at, out):
    rows, columns = tl.arange(0, 2), tl.arange(0, 4)
    v = tl.load(x + rows[:, None] * 4 + columns[None, :])
    index = tl.broadcast_to(columns[None, :], (2, 4))
    low, low_at = triton_helpers.min_with_index(v, index, 1)
    high, high_at = triton_helpers.max_with_index(v, index, 1)
    tl.store(at + rows, low_at)
    tl.store(at + 2 + rows, high_at)
    tl.store(out + rows, low)
    tl.store(out + 2 + rows, high)
    tl.store(out + 4 + rows, triton_helpers.min2(v, 1))
    tl.store(out + 6 + rows, triton_helpers.max2(v, 1))
    known = tl.where(columns < 4, columns + 1, 0)
    product = triton_helpers.prod(known, 0) // 2
    tl.store(out + 8, tl.where(triton_helpers.any(columns == 3, 0), product, 0))


@triton.jit
def settled(x):
    # The results are multiples of 1/32, up to rounding on the way.
    return libdevice.rint(x * 32) / 32


@triton.jit
def moments(x, out):
    i = tl.arange(0, 8)
    v = tl.load(x + i)
    mean, m2, weight = triton_helpers.welford(v, tl.zeros((8,), tl.float32), tl.full((8,), 1.0, tl.float32), 0)
    tl.store(out, settled(mean))
    tl.store(out + 1, settled(m2))
    tl.store(out + 2, weight)
    # One number after another.
    mean = tl.zeros((1,), tl.float32)
    m2 = tl.zeros((1,), tl.float32)
    weight = tl.zeros((1,), tl.float32)
    for k in range(8):
        mean, m2, weight = triton_helpers.welford_reduce(tl.load(x + k + tl.arange(0, 1)), mean, m2, weight, k == 0)
    tl.store(out + 3 + tl.arange(0, 1), settled(mean))
    tl.store(out + 4 + tl.arange(0, 1), settled(m2))
    tl.store(out + 5 + tl.arange(0, 1), weight)
    a, b, c = triton_helpers.welford_combine(mean * 0, m2 * 0, weight * 0, mean * 0, m2 * 0, weight * 0)
    tl.store(out + 6 + tl.arange(0, 1), a)
    tl.store(out + 7 + tl.arange(0, 1), b)
    tl.store(out + 8 + tl.arange(0, 1), triton_helpers.device_assert_then(c == 0, "empty", c))


@triton.jit
def parts(x, m, e):
    i = tl.arange(0, 8)
    mantissa, exponent = triton_helpers.frexp(tl.load(x + i))
    tl.store(m + i, mantissa)
    tl.store(e + i, exponent)


@triton.jit
def sorted(x, at, COUNT: tl.constexpr, DESCENDING: tl.constexpr):
    i = tl.arange(0, 8)
    v, index = triton_helpers.sort_with_index(
        tl.load(x + i)[None, :], i[None, :], COUNT, 1, stable=True, descending=DESCENDING)
    tl.store(x + i[None, :], v)
    tl.store(at + i[None, :], index)


@triton.jit
def buckets(x, bounds, order, out):
    i = tl.arange(0, 8)
    v = tl.load(x + i)
    zero = tl.full((8,), 0, tl.int32)
    tl.store(out + i, triton_helpers.bucketize_binary_search(
        v, bounds, 4, 4, 1, zero, tl.int64, False, None, None, None))
    tl.store(out + 8 + i, triton_helpers.bucketize_binary_search(
        v, bounds, 4, 4, 1, zero, tl.int64, True, None, None, None))
    tl.store(out + 16 + i, triton_helpers.bucketize_binary_search(
        v, bounds, 4, 4, 1, zero, tl.int64, False, order, 1, zero))


@triton.jit
def chosen(x, out):
    i = tl.arange(0, 4)
    v = tl.load(x + i)
    one = triton_helpers.select_one(v, i == 1, 0)
    tl.store(x + i, tl.where(i < 2, one, tl.where(i == 2, 1.0, 0.0)))
    tl.store(out, (triton_helpers.if_mask(None, 3) is None).to(tl.int32))
    tl.store(out + 1, triton_helpers.constexpr_next_power_of_2(5))


@triton.jit
def total(a, b):
    return a + b


@triton.jit
def scanned(x, words, out):
    k = tl.program_id(0)
    before = triton_helpers.exclusive_scan_decoupled_lookback(
        words.to(tl.pointer_type(tl.uint64)), tl.load(x + k), k, total, DTYPE_VALUE_AS_UINT=tl.uint32, DTYPE_PACK=tl.uint64)
    tl.store(out + k, before)


@triton.jit
def scanned_wide(x, words, out):
    k = tl.program_id(0)
    tl.store(out + k, triton_helpers.exclusive_scan_decoupled_lookback_64(words, tl.load(x + k), k, total))


@triton.jit
def random(out, seed):
    i = tl.arange(0, 8)
    low, high = tl.full((8,), -5, tl.int64), tl.full((8,), 6, tl.int64)
    number = triton_helpers.randint64(seed, i.to(tl.uint32), low, high)
    tl.store(out + i, ((number >= -5) & (number < 6)).to(tl.int64))


@triton.jit
def softmax(x, out):
    rows, columns = tl.arange(0, 2), tl.arange(0, 2)
    v = tl.load(x + rows[:, None] * 2 + columns[None, :])
    largest, sums = triton_helpers.online_softmax_reduce(v, tl.where(v > float("-inf"), 1.0, 0.0), 1, True)
    tl.store(out + rows * 2, largest)
    tl.store(out + 1 + rows * 2, sums)
    high, count = triton_helpers.online_softmax_combine(tl.load(x) + 1.0, tl.load(x) + 1.0, tl.load(x) + 1.0, False)
    tl.store(out + 4, high)
    tl.store(out + 5, count)


@triton.jit
def missing(x):
    triton_helpers.x_grid_barrier(x)
    triton_helpers.maximun(1, 2)
# == error missing "*i32"
# error[F08]: `torch._inductor.runtime.triton_helpers.x_grid_barrier` is not supported yet
#    --> helpers.py:187:5
#     |
# 187 |     triton_helpers.x_grid_barrier(x)
#     |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#     |
# help: it is part of the language but not of this version
#
# error[F06]: the library has no `torch._inductor.runtime.triton_helpers.maximun`
#    --> helpers.py:188:5
#     |
# 188 |     triton_helpers.maximun(1, 2)
#     |     ^^^^^^^^^^^^^^^^^^^^^^
#     |
# help: did you mean `triton_helpers.maximum`?
