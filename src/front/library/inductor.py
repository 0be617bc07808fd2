# What kernels that PyTorch's compiler wrote call as `triton_helpers`. What goes wrong in them is told of the call.
import triton
import triton.language as tl
from triton.language.extra import libdevice


@jit
def promote_to_tensor(x):
    # A block of one element, which goes together with blocks of every shape.
    return zeros((1,), int1) + x


@jit
def is_floating(x):
    return to_tensor(x).dtype.is_floating()


@jit
def _signs_differ(a, b):
    return (a < 0) != (b < 0)


@jit
def div_floor_integer(a, b):
    quotient = a // b
    inexact = a % b != 0
    return where(inexact & _signs_differ(a, b), quotient - 1, quotient)


@jit
def remainder_integer(a, b):
    rest = a % b
    return where((rest != 0) & _signs_differ(a, b), rest + b, rest)


@jit
def _is_nan(x):
    if is_floating(x):
        return x != x
    else:
        return zeros_like(x != x)


@jit
def _stays(x):
    # Whether the language's own extremes keep the type; those of bf16 are f32, and of fewer bits there are none.
    dtype = to_tensor(x).dtype
    return dtype.is_fp16() or dtype.is_fp32() or dtype.is_fp64()


@jit
def _is_of_floats(a, b):
    return (_stays(a) and (_stays(b) or not is_floating(b))) or (_stays(b) and not is_floating(a))


@jit
def minimum(a, b):
    if _is_of_floats(a, b):
        return tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)
    else:
        return where((a < b) | _is_nan(a), a, b)


@jit
def maximum(a, b):
    if _is_of_floats(a, b):
        return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)
    else:
        return where((a > b) | _is_nan(a), a, b)


@jit
def _product(a, b):
    return a * b


@jit
def _either(a, b):
    return a | b


@jit
def prod(input, axis):
    return reduce(input, axis, _product)


@jit
def any(a, dim):
    return reduce(a, dim, _either)


@jit
def min2(a, dim):
    return reduce(a, dim, minimum)


@jit
def max2(a, dim):
    return reduce(a, dim, maximum)


@jit
def _first_of(better, a, i, b, j):
    # NaN comes before every number; of equals the lower index counts.
    a_nan, b_nan = _is_nan(a), _is_nan(b)
    same = (a == b) | (a_nan & b_nan)
    take = better | (a_nan & (not b_nan)) | (same & (i < j))
    return where(take, a, b), where(take, i, j)


@jit
def minimum_with_index(a_value, a_index, b_value, b_index):
    return _first_of(a_value < b_value, a_value, a_index, b_value, b_index)


@jit
def maximum_with_index(a_value, a_index, b_value, b_index):
    return _first_of(a_value > b_value, a_value, a_index, b_value, b_index)


@jit
def min_with_index(value, index, dim):
    return reduce((value, index), dim, minimum_with_index)


@jit
def max_with_index(value, index, dim):
    return reduce((value, index), dim, maximum_with_index)


@jit
def exp(x, use_fast_math: constexpr):
    if use_fast_math:
        return tl.math.exp(x)
    else:
        return libdevice.exp(x)


@jit
def online_softmax_reduce(lhs_max, lhs_sum, dim, use_fast_math: constexpr):
    largest = max2(lhs_max, dim)
    bound = expand_dims(largest, dim)
    # Of a row without numbers no difference is one.
    below = where(bound == float("-inf"), 0, lhs_max - bound)
    return largest, sum(lhs_sum * exp(below, use_fast_math), dim)


@jit
def online_softmax_combine(lhs_max, lhs_sum, rhs_max, use_fast_math: constexpr):
    # On the right stands one number, whose sum is one.
    largest = maximum(lhs_max, rhs_max)
    none = largest == float("-inf")
    left = where(none, 1.0, exp(lhs_max - largest, use_fast_math))
    right = where(none, 1.0, exp(rhs_max - largest, use_fast_math))
    return largest, lhs_sum * left + right


@jit
def welford_reduce(value, mean, m2, weight, first_iteration):
    if first_iteration:
        count = full(weight.shape, 1, weight.dtype)
        center = value
        squares = zeros_like(m2)
    else:
        off = value - mean
        count = weight + 1
        center = mean + off / count
        squares = m2 + off * (value - center)
    return center, squares, count


@jit
def welford_combine(mean_1, m2_1, weight_1, mean_2, m2_2, weight_2):
    apart = mean_2 - mean_1
    weight = weight_1 + weight_2
    share = where(weight == 0.0, 0.0, weight_2 / weight)
    return mean_1 + apart * share, m2_1 + m2_2 + apart * apart * weight_1 * share, weight


@jit
def welford(mean, m2, weight, dim):
    return reduce((mean, m2, weight), dim, welford_combine)


@jit
def device_assert_then(cond, msg, r):
    device_assert(cond, msg)
    return r


@jit
def randint64(seed, offset, low, high):
    a, b, c, d = randint4x(seed, offset)
    bits = to(a, uint64) | (to(b, uint64) << 32)
    size = to(to_tensor(high - low), uint64)
    return to(bits % size, int64) + low


@jit
def bucketize_binary_search(values, boundaries_ptr, BOUNDARIES_SIZE, BOUNDARIES_UNDERLYING_NUMEL, BOUNDARIES_STRIDE,
                            boundary_indices, indexing_dtype, right, sorter_ptr, SORTER_STRIDE, sorter_indices):
    low = zeros(values.shape, indexing_dtype)
    high = full(values.shape, BOUNDARIES_SIZE, indexing_dtype)
    # As many steps as the number of places, the end among them, can be halved.
    left = BOUNDARIES_SIZE + 1
    while left > 1:
        middle = (low + high) // 2
        inside = (middle < BOUNDARIES_SIZE) & (
            middle * BOUNDARIES_STRIDE + boundary_indices < BOUNDARIES_UNDERLYING_NUMEL)
        if sorter_ptr is None or SORTER_STRIDE is None:
            at = middle
        else:
            at = load(sorter_ptr + sorter_indices + SORTER_STRIDE * middle, mask=inside, other=0)
        bound = load(boundaries_ptr + boundary_indices + BOUNDARIES_STRIDE * at, mask=inside, other=0)
        if right:
            above = values >= bound
        else:
            above = values > bound
        low = where(above & inside, middle + 1, low)
        high = where(above, high, middle)
        left = (left + 1) // 2
    return low


@jit
def pack_value_flag(value, flag, DTYPE_VALUE_AS_UINT, DTYPE_PACK):
    bits = to(to(value, DTYPE_VALUE_AS_UINT, bitcast=True), DTYPE_PACK)
    return to(flag, DTYPE_PACK) | (bits << DTYPE_VALUE_AS_UINT.primitive_bitwidth)


@jit
def unpack_value(pack, DTYPE_VALUE, DTYPE_VALUE_AS_UINT):
    bits = to(pack >> DTYPE_VALUE_AS_UINT.primitive_bitwidth, DTYPE_VALUE_AS_UINT)
    return to(bits, DTYPE_VALUE, bitcast=True)


@jit
def unpack_flag(pack, DTYPE_FLAG):
    return to(pack, DTYPE_FLAG)


@jit
def exclusive_scan_decoupled_lookback(scratch_base, block_value, index, combine_fn, DTYPE_VALUE_AS_UINT, DTYPE_PACK):
    # Each program publishes its own value (flag 1), then what it and all before it make (flag 2). Value and flag are
    # one word, so that no order of accesses matters.
    dtype: constexpr = block_value.dtype
    if index > 0:
        own = full(block_value.shape, 1, DTYPE_VALUE_AS_UINT)
        atomic_xchg(scratch_base + index, pack_value_flag(block_value, own, DTYPE_VALUE_AS_UINT, DTYPE_PACK),
                    sem="relaxed")
    before = zeros((), dtype)
    found = False
    at = index - 1
    while at >= 0:
        flag = full((), 0, DTYPE_VALUE_AS_UINT)
        word = full((), 0, DTYPE_PACK)
        while flag == 0:
            word = atomic_add(scratch_base + at, 0, sem="relaxed")
            flag = unpack_flag(word, DTYPE_VALUE_AS_UINT)
        value = unpack_value(word, dtype, DTYPE_VALUE_AS_UINT)
        if found:
            before = combine_fn(value, before)
        else:
            before = value
        found = True
        at = where(flag == 2, -1, at - 1)
    if found:
        through = combine_fn(before, block_value)
    else:
        through = block_value
    all = full((), 2, DTYPE_VALUE_AS_UINT)
    atomic_xchg(scratch_base + index, pack_value_flag(through, all, DTYPE_VALUE_AS_UINT, DTYPE_PACK), sem="relaxed")
    return before


@jit
def exclusive_scan_decoupled_lookback_64(scratch_base, block_value, index, combine_fn):
    # Three words for each program: the flag, its own value, and what it and all before it make.
    dtype: constexpr = block_value.dtype
    if index > 0:
        store(scratch_base + 3 * index + 1, to(block_value, uint64, bitcast=True))
        debug_barrier()
        atomic_xchg(scratch_base + 3 * index, full((), 1, uint64), sem="release")
    before = zeros((), dtype)
    found = False
    at = index - 1
    while at >= 0:
        flag = full((), 0, uint64)
        while flag == 0:
            flag = atomic_add(scratch_base + 3 * at, 0, sem="acquire")
        value = to(load(scratch_base + 3 * at + to(flag, int32)), dtype, bitcast=True)
        if found:
            before = combine_fn(value, before)
        else:
            before = value
        found = True
        at = where(flag == 2, -1, at - 1)
    if found:
        through = combine_fn(before, block_value)
    else:
        through = block_value
    store(scratch_base + 3 * index + 2, to(through, uint64, bitcast=True))
    debug_barrier()
    atomic_xchg(scratch_base + 3 * index, full((), 2, uint64), sem="release")
    return before


@jit
def frexp(x):
    exponent = libdevice.ilogb(x) + 1
    zero = x == 0
    return where(zero, 0, libdevice.ldexp(x, -exponent)), where(zero, 0, exponent)


@jit
def _log2(n: constexpr):
    # Of a power of two.
    if n == 1:
        return 0
    else:
        return 1 + _log2(n // 2)


@jit
def _comes_after(a, i, b, j, rnumel, stable: constexpr, descending: constexpr):
    a_nan, b_nan = _is_nan(a), _is_nan(b)
    if descending:
        after = (a < b) | (b_nan & (not a_nan))
    else:
        after = (a > b) | (a_nan & (not b_nan))
    if stable:
        after = after | (((a == b) | (a_nan & b_nan)) & (i > j))
    if rnumel is not None:
        # What is no element goes to the end.
        a_valid, b_valid = i < rnumel, j < rnumel
        after = (b_valid & (not a_valid)) | ((a_valid == b_valid) & after)
    return after


@jit
def sort_with_index(x, idxs, rnumel, dim: constexpr = None, stable: constexpr = False, descending: constexpr = False):
    x, idxs = broadcast(x, idxs)
    last: constexpr = len(x.shape) - 1
    static_assert(dim is None or dim == last or dim == -1, "only the last dimension can be sorted")
    numel: constexpr = x.numel
    shape: constexpr = x.shape
    stages: constexpr = _log2(shape[last])
    # Bitonic: stage by stage runs of twice the length are made, every other one the other way round.
    for stage in static_range(1, stages + 1):
        for step in static_range(stage):
            distance: constexpr = 2 ** (stage - 1 - step)
            pairs: constexpr = (numel // (2 * distance), 2, distance)
            value, index = reshape(x, pairs), reshape(idxs, pairs)
            other, other_index = flip(value, 1), flip(index, 1)
            right = broadcast_to(arange(0, 2)[None, :, None], pairs) == 1
            first, first_index = where(right, other, value), where(right, other_index, index)
            second, second_index = where(right, value, other), where(right, index, other_index)
            swap = _comes_after(first, first_index, second, second_index, rnumel, stable, descending)
            if stage < stages:
                swap = swap ^ (((reshape(arange(0, numel), pairs) >> stage) & 1) == 1)
            x = reshape(where(swap, other, value), shape)
            idxs = reshape(where(swap, other_index, index), shape)
    return x, idxs


@jit
def select_one(x, mask, dim, keep_dims=False):
    # The sum of bits of which one element's are not zero.
    word: constexpr = get_int_dtype(x.dtype.primitive_bitwidth, False)
    bits = to(x, word, bitcast=True) * mask
    return to(to(sum(bits, dim, keep_dims=keep_dims), word), x.dtype, bitcast=True)


@jit
def constexpr_next_power_of_2(n):
    return triton.next_power_of_2(n)


@jit
def if_mask(mask, val):
    if mask is None:
        return None
    else:
        return val
