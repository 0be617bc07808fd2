# Functions of the library that are written in the language. What goes wrong in them is told of the call.


@jit
def softmax(x, dim=None, keep_dims=False, ieee_rounding=False):
    axis: constexpr = 0 if dim is None else dim
    shifted = x - max(x, axis, keep_dims=True)
    powers = exp(shifted)
    total = sum(powers, axis, keep_dims=True)
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
def philox(seed, c0, c1, c2, c3, n_rounds: constexpr = 10):
    seed = to(to_tensor(seed), uint64)
    c0 = to_tensor(c0)
    c1 = to_tensor(c1)
    c2 = to_tensor(c2)
    c3 = to_tensor(c3)
    if c0.dtype.primitive_bitwidth == 32:
        return _philox_rounds(
            to(c0, uint32, bitcast=True), to(c1, uint32, bitcast=True), to(c2, uint32, bitcast=True),
            to(c3, uint32, bitcast=True), to(seed, uint32), to(seed >> 32, uint32), n_rounds,
            full((), 0xD2511F53, uint32), full((), 0xCD9E8D57, uint32),
            full((), 0x9E3779B9, uint32), full((), 0xBB67AE85, uint32))
    else:
        static_assert(c0.dtype.primitive_bitwidth == 64, "philox counts with 32 or 64 bits")
        return _philox_rounds(
            to(c0, uint64, bitcast=True), to(c1, uint64, bitcast=True), to(c2, uint64, bitcast=True),
            to(c3, uint64, bitcast=True), seed, full((), 0, uint64), n_rounds,
            full((), 0xD2E7470EE14C6C93, uint64), full((), 0xCA5A826395121157, uint64),
            full((), 0x9E3779B97F4A7C15, uint64), full((), 0xBB67AE8584CAA73B, uint64))


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
