# Functions of the library that are written in the language. What goes wrong in them is told of the call.


@jit
def softmax(x, dim=None, keep_dims=False, ieee_rounding=False):
    axis: constexpr = 0 if dim is None else dim
    # Without `keep_dims` what is left of a matrix stands for its columns, whichever axis it was: so it is in Triton, too.
    shifted = x - max(x, axis, keep_dims=keep_dims)
    powers = exp(shifted)
    total = sum(powers, axis, keep_dims=keep_dims)
    return fdiv(powers, total, ieee_rounding)


@jit
def swizzle2d(i, j, size_i, size_j, size_g):
    # Tiles of `size_g` rows at a time, column by column; the last group may have fewer rows.
    flat = i * size_j + j
    per_group = size_g * size_j
    group = flat // per_group
    first = group * size_g
    rows = minimum(size_i - first, size_g)
    within = flat % per_group
    return first + within % rows, within // rows


@jit
def _philox_rounds(c0, c1, c2, c3, k0, k1, ROUNDS: constexpr, A, B, KEY_A, KEY_B):
    for _ in static_range(ROUNDS):
        even = c0
        odd = c2
        c0 = umulhi(B, odd) ^ c1 ^ k0
        c1 = B * odd
        c2 = umulhi(A, even) ^ c3 ^ k1
        c3 = A * even
        k0 = k0 + KEY_A
        k1 = k1 + KEY_B
    return c0, c1, c2, c3


@jit
def philox_impl(c0, c1, c2, c3, k0, k1, n_rounds: constexpr = 10):
    if c0.dtype.primitive_bitwidth == 32:
        return _philox_rounds(
            c0, c1, c2, c3, k0, k1, n_rounds,
            full((), 0xD2511F53, uint32), full((), 0xCD9E8D57, uint32),
            full((), 0x9E3779B9, uint32), full((), 0xBB67AE85, uint32))
    else:
        static_assert(c0.dtype.primitive_bitwidth == 64, "philox counts with 32 or 64 bits")
        return _philox_rounds(
            c0, c1, c2, c3, k0, k1, n_rounds,
            full((), 0xD2E7470EE14C6C93, uint64), full((), 0xCA5A826395121157, uint64),
            full((), 0x9E3779B97F4A7C15, uint64), full((), 0xBB67AE8584CAA73B, uint64))


@jit
def philox(seed, c0, c1, c2, c3, n_rounds: constexpr = 10):
    seed = to_tensor(seed)
    static_assert(seed.dtype.is_int(), "a seed of random numbers is an integer")
    seed = to(seed, uint64)
    c0, c1, c2, c3 = to_tensor(c0), to_tensor(c1), to_tensor(c2), to_tensor(c3)
    if c0.dtype.primitive_bitwidth == 32:
        return philox_impl(
            to(c0, uint32, bitcast=True), to(c1, uint32, bitcast=True), to(c2, uint32, bitcast=True),
            to(c3, uint32, bitcast=True), to(seed, uint32), to(seed >> 32, uint32), n_rounds)
    else:
        return philox_impl(
            to(c0, uint64, bitcast=True), to(c1, uint64, bitcast=True), to(c2, uint64, bitcast=True),
            to(c3, uint64, bitcast=True), seed, full((), 0, uint64), n_rounds)


@jit
def randint4x(seed, offset, n_rounds: constexpr = 10):
    offset = to_tensor(offset)
    low = to(offset, uint32)
    zero = zeros_like(low)
    if offset.dtype.primitive_bitwidth > 32:
        return philox(seed, low, to(offset >> 32, uint32), zero, zero, n_rounds)
    else:
        return philox(seed, low, zero, zero, zero, n_rounds)


@jit
def randint(seed, offset, n_rounds: constexpr = 10):
    a, b, c, d = randint4x(seed, offset, n_rounds)
    return a


@jit
def uint_to_uniform_float(x):
    # The sign folds onto the other half, so that the result lies in [0, 1).
    if x.dtype.primitive_bitwidth == 32:
        number = to(x, int32, bitcast=True)
        unit = full((), 4.6566127342e-10, float32)
    else:
        number = to(x, int64, bitcast=True)
        unit = full((), 1.0842020432385337e-19, float32)
    number = where(number < 0, -number - 1, number)
    return number * unit


@jit
def rand(seed, offset, n_rounds: constexpr = 10):
    return uint_to_uniform_float(randint(seed, offset, n_rounds))


@jit
def rand4x(seed, offset, n_rounds: constexpr = 10):
    a, b, c, d = randint4x(seed, offset, n_rounds)
    return uint_to_uniform_float(a), uint_to_uniform_float(b), uint_to_uniform_float(c), uint_to_uniform_float(d)


@jit
def pair_uniform_to_normal(u1, u2):
    # Box and Muller's transform; the logarithm of zero is kept away.
    radius = sqrt(-2.0 * log(maximum(1.0e-7, u1)))
    angle = 6.283185307179586 * u2
    return radius * cos(angle), radius * sin(angle)


@jit
def randn(seed, offset, n_rounds: constexpr = 10):
    a, b, c, d = randint4x(seed, offset, n_rounds)
    x, y = pair_uniform_to_normal(uint_to_uniform_float(a), uint_to_uniform_float(b))
    return x


@jit
def randn4x(seed, offset, n_rounds: constexpr = 10):
    a, b, c, d = rand4x(seed, offset, n_rounds)
    x, y = pair_uniform_to_normal(a, b)
    z, w = pair_uniform_to_normal(c, d)
    return x, y, z, w


@jit
def interleave(a, b):
    both = join(a, b)
    if len(both.shape) == 1:
        return both
    else:
        return reshape(both, both.shape[:-2] + (2 * both.shape[-2],))


@jit
def _widened(x, format: constexpr, wide: constexpr):
    # Numbers of the formats of scaled operands that have one element in each.
    if format == "bf16":
        return to(to(x, bfloat16, bitcast=True), wide)
    elif format == "fp16":
        return to(to(x, float16, bitcast=True), wide)
    elif format == "e5m2":
        # The upper half of a half.
        bits = to(to(x, uint8, bitcast=True), uint16) << 8
        return to(to(bits, float16, bitcast=True), wide)
    else:
        # As the top of an f32 the number is too small by a power of two, subnormal or not.
        bits = to(to(x, uint8, bitcast=True), int32)
        size = to((bits & 127) << 20, float32, bitcast=True) * 1.329227995784916e36
        size = where((bits & 127) == 127, float("nan"), size)
        return to(where(bits > 127, -size, size), wide)


@jit
def _swapped(x):
    # The last two dimensions exchanged.
    rank: constexpr = len(x.shape)
    return permute(x, tuple(range(rank - 2)) + (rank - 1, rank - 2))


@jit
def _unpacked(x, last: constexpr, wide: constexpr):
    # Bytes of two e2m1 numbers, the first in the low bits, along the last dimension or the one before it.
    both = join(x & 15, x >> 4)
    if last:
        n = reshape(both, x.shape[:-1] + (2 * x.shape[-1],))
    else:
        n = reshape(_swapped(both), x.shape[:-2] + (2 * x.shape[-2], x.shape[-1]))
    # Exponent and fraction stand where the wide format has them, and the product makes up for its larger bias, of subnormal numbers, too.
    n = to(n, uint16)
    shift: constexpr = 9 if wide == float16 else 6
    power: constexpr = 2.0**14 if wide == float16 else 2.0**126
    bits = ((n & 7) << shift) | ((n & 8) << 12)
    return to(bits, wide, bitcast=True) * power


@jit
def _scale(scale, per: constexpr, fast_math: constexpr, wide: constexpr):
    # One number for each element of a row.
    if scale.dtype.is_fp8():
        number = to(scale, wide)
    else:
        # A power of two is its biased exponent.
        scale = to(scale, uint8, bitcast=True)
        number = to(to(to(scale, uint16) << 7, bfloat16, bitcast=True), wide)
        if not fast_math:
            number = where(scale == 255, float("nan"), to(number, float32))
            number = to(number, wide)
    each = broadcast_to(expand_dims(number, -1), scale.shape + (per,))
    return reshape(each, scale.shape[:-1] + (scale.shape[-1] * per,))


@jit
def _scaled_operand(x, scale, format: constexpr, k_pack: constexpr, k_last: constexpr, fast_math: constexpr, wide: constexpr):
    if format == "e2m1":
        x = _unpacked(x, k_pack == k_last, wide)
    else:
        x = _widened(x, format, wide)
    if scale is None:
        return x
    else:
        k: constexpr = x.shape[-1] if k_last else x.shape[-2]
        scale = _scale(scale, k // scale.shape[-1], fast_math, wide)
        if not k_last:
            scale = _swapped(scale)
        return x * scale


@jit
def _scaled_product(lhs, lhs_scale, lhs_format: constexpr, lhs_k_pack: constexpr, rhs, rhs_scale, rhs_format: constexpr,
                    rhs_k_pack: constexpr, acc, fast_math: constexpr, out_dtype: constexpr):
    wide: constexpr = float16 if lhs_format == "fp16" or rhs_format == "fp16" else bfloat16
    a = _scaled_operand(lhs, lhs_scale, lhs_format, lhs_k_pack, True, fast_math, wide)
    b = _scaled_operand(rhs, rhs_scale, rhs_format, rhs_k_pack, False, fast_math, wide)
    if acc is None:
        return to(dot(a, b), out_dtype)
    else:
        return to(dot(a, b, to(acc, float32)), out_dtype)


@jit
def experimental_device_tensormap_create1d(desc_ptr, global_address, load_size, global_size, element_ty):
    words = to(desc_ptr, pointer_type(int64))
    store(words, to(global_address, int64))
    store(words + 1, to(global_size[0], int64))


@jit
def experimental_device_tensormap_create2d(desc_ptr, global_address, load_size, global_size, element_ty):
    # What bulk transfers would have the machine encode are here the tensor's address and extents.
    words = to(desc_ptr, pointer_type(int64))
    store(words, to(global_address, int64))
    store(words + 1, to(global_size[0], int64))
    store(words + 2, to(global_size[1], int64))


@jit
def experimental_tensormap_fenceproxy_acquire(desc_ptr):
    debug_barrier()


@jit
def _experimental_tile(desc_ptr, offsets, shape: constexpr, dtype: constexpr):
    words = to(desc_ptr, pointer_type(int64))
    base = to(load(words), pointer_type(dtype))
    i = offsets[0] + to(arange(0, shape[0]), int64)
    if len(shape) == 1:
        return base + i, (i >= 0) & (i < load(words + 1))
    else:
        rows, columns = load(words + 1), load(words + 2)
        i, j = expand_dims(i, 1), expand_dims(offsets[1] + to(arange(0, shape[1]), int64), 0)
        return base + (i * columns + j), (i >= 0) & (i < rows) & (j >= 0) & (j < columns)


@jit
def _experimental_descriptor_load(desc_pointer, offsets, shape, dtype):
    pointers, inside = _experimental_tile(desc_pointer, offsets, shape, dtype)
    return load(pointers, inside, 0)


@jit
def _experimental_descriptor_store(desc_pointer, value, offsets):
    pointers, inside = _experimental_tile(desc_pointer, offsets, value.shape, value.dtype)
    store(pointers, value, inside)


# What the reductions of the library combine with, for those who reduce and scan by themselves.


@jit
def _sum_combine(x, y):
    return x + y


@jit
def _prod_combine(x, y):
    return x * y


@jit
def _xor_combine(x, y):
    return x ^ y


@jit
def _or_combine(x, y):
    return x | y


@jit
def _elementwise_max(x, y):
    return maximum(x, y)


@jit
def _elementwise_min(x, y):
    return minimum(x, y)


@jit
def _argmax_combine(x, at_x, y, at_y, tie_break_left):
    first = x > y
    if tie_break_left:
        first = first | ((x == y) & (at_x < at_y))
    return where(first, x, y), where(first, at_x, at_y)


@jit
def _argmax_combine_tie_break_left(x, at_x, y, at_y):
    return _argmax_combine(x, at_x, y, at_y, True)


@jit
def _argmax_combine_tie_break_fast(x, at_x, y, at_y):
    return _argmax_combine(x, at_x, y, at_y, False)


@jit
def _argmin_combine(x, at_x, y, at_y, tie_break_left):
    first = x < y
    if tie_break_left:
        first = first | ((x == y) & (at_x < at_y))
    return where(first, x, y), where(first, at_x, at_y)


@jit
def _argmin_combine_tie_break_left(x, at_x, y, at_y):
    return _argmin_combine(x, at_x, y, at_y, True)


@jit
def _argmin_combine_tie_break_fast(x, at_x, y, at_y):
    return _argmin_combine(x, at_x, y, at_y, False)
