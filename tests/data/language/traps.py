"""Where the language is not what it looks like, one kernel for each such place.

`make_traps.py` runs them on Triton's interpreter and writes what they store to `traps.txt`; the test `language` compiles
this file and runs it on Tilelift's interpreter and emulator. Kernels assert the types that they are about.
"""
import triton
import triton.language as tl


@triton.jit
def division(out, a, b, A: tl.constexpr, B: tl.constexpr):
    # Run-time quotients are rounded to zero, those of constants down.
    x = tl.load(a + tl.arange(0, 4))
    y = tl.load(b + tl.arange(0, 4))
    tl.store(out + tl.arange(0, 4), x // y)
    tl.store(out + 4 + tl.arange(0, 4), x % y)
    tl.store(out + 8, A // B)
    tl.store(out + 9, A % B)


@triton.jit
def weak_literals(out, x):
    # A number of the source text takes the block's type.
    v = tl.load(x + tl.arange(0, 4))
    p = v * 0.1
    tl.static_assert(p.dtype == tl.float16)
    tl.store(out + tl.arange(0, 4), p)


@triton.jit
def strong_variables(out, x):
    # The same number in a variable is an fp32.
    v = tl.load(x + tl.arange(0, 4))
    factor = 0.1
    p = v * factor
    tl.static_assert(p.dtype == tl.float32)
    tl.store(out + tl.arange(0, 4), p)


@triton.jit
def weak_constexpr(out, x):
    v = tl.load(x + tl.arange(0, 4))
    factor: tl.constexpr = 0.1
    p = v * factor
    tl.static_assert(p.dtype == tl.float16)
    tl.store(out + tl.arange(0, 4), p)


@triton.jit
def scaled(v, factor):
    return v * factor


@triton.jit
def weak_through_calls(out, x):
    # A literal stays weak through a call.
    v = tl.load(x + tl.arange(0, 4))
    p = scaled(v, 0.1)
    tl.static_assert(p.dtype == tl.float16)
    tl.store(out + tl.arange(0, 4), p)


@triton.jit
def strong_arguments(out, x, factor):
    # An argument of the kernel is an fp32, whatever it meets.
    v = tl.load(x + tl.arange(0, 4))
    p = v * factor
    tl.static_assert(p.dtype == tl.float32)
    tl.store(out + tl.arange(0, 4), p)


@triton.jit
def mixed_halves(out, x, y, i):
    # A half beats a bfloat16; a bfloat16 with an integer is an fp32.
    a = tl.load(x + tl.arange(0, 4))
    b = tl.load(y + tl.arange(0, 4))
    c = tl.load(i + tl.arange(0, 4))
    both = a + b
    tl.static_assert(both.dtype == tl.float16)
    wide = b + c
    tl.static_assert(wide.dtype == tl.float32)
    tl.store(out + tl.arange(0, 4), both)
    tl.store(out + 4 + tl.arange(0, 4), wide)


@triton.jit
def half_division(out, x, y):
    # Quotients of halves are computed and given as fp32.
    q = tl.load(x + tl.arange(0, 4)) / tl.load(y + tl.arange(0, 4))
    tl.static_assert(q.dtype == tl.float32)
    tl.store(out + tl.arange(0, 4), q)


@triton.jit
def int_division(out, x, y):
    # Integers of 64 bits too become fp32.
    q = tl.load(x + tl.arange(0, 4)) / tl.load(y + tl.arange(0, 4))
    tl.static_assert(q.dtype == tl.float32)
    tl.store(out + tl.arange(0, 4), q)


@triton.jit
def reductions(out, h, u, b):
    # A sum of halves is a half, a maximum of halves an fp32; small integers become 32 bits wide.
    x = tl.load(h + tl.arange(0, 4))
    total = tl.sum(x, 0)
    tl.static_assert(total.dtype == tl.float16)
    most = tl.max(x, 0)
    tl.static_assert(most.dtype == tl.float32)
    y = tl.load(u + tl.arange(0, 4))
    tl.static_assert(tl.max(y, 0).dtype == tl.int32)
    tl.static_assert(tl.sum(y, 0).dtype == tl.uint32)
    flags = y > 100
    tl.static_assert(tl.sum(flags, 0).dtype == tl.uint32)
    z = tl.load(b + tl.arange(0, 4))
    tl.static_assert(tl.sum(z, 0).dtype == tl.bfloat16)
    tl.store(out, total)
    tl.store(out + 1, most)
    tl.store(out + 2, tl.max(y, 0))
    tl.store(out + 3, tl.sum(y, 0))
    tl.store(out + 4, tl.sum(flags, 0))
    tl.store(out + 5, tl.sum(z, 0))


@triton.jit
def masked_load(out, x, n):
    # What a mask leaves out is zero.
    at = tl.arange(0, 8)
    tl.store(out + at, tl.load(x + at, mask=at < n))


@triton.jit
def store_casts(out, flags, small, x):
    # A store casts: to integers toward zero, to a half by rounding, to truth values by comparing with zero.
    at = tl.arange(0, 4)
    v = tl.load(x + at)
    tl.store(out + at, v)
    tl.store(flags + at, v)
    tl.store(small + at, v)


@triton.jit
def unsigned_offset(out, x, n):
    # An unsigned offset is not negative: 2^32 - 2 elements ahead, and back again.
    far = x + n
    tl.store(out, tl.load(far - 4294967292))


@triton.jit
def products_wrap(out, n):
    # A product of 32-bit numbers wraps before it is widened.
    tl.store(out, (n * n).to(tl.int64))
    tl.store(out + 1, n.to(tl.int64) * n)


@triton.jit
def not_a_number(out, x):
    # `!=` is true of NaN, other comparisons are not; maximum and minimum pass it over.
    v = tl.load(x)
    one = tl.load(x + 1)
    tl.store(out + 0, v != v)
    tl.store(out + 1, v == v)
    tl.store(out + 2, v < one)
    tl.store(out + 3, v >= one)
    tl.store(out + 4, tl.maximum(v, one) == one)
    tl.store(out + 5, tl.minimum(v, one) == one)
    block = tl.load(x + tl.arange(0, 2))
    tl.store(out + 6, tl.max(block, 0) == one)


@triton.jit
def strong_comparisons(out, u, h, b):
    # Comparisons take numbers with their own types: -1 becomes 2^32 - 1 beside a u32, 0.1 is an fp32 beside a half.
    v = tl.load(u)
    tl.store(out, v > -1)
    tl.store(out + 1, v == -1)
    x = tl.load(h)
    tl.store(out + 2, x == 0.1)
    tl.store(out + 3, x > 0.0999)
    tl.static_assert(tl.maximum(tl.load(b), tl.load(b)).dtype == tl.float32)


@triton.jit
def equal_to_one(out, n):
    # An argument equal to one is a constant: the other branch need not make sense.
    if n == 1:
        tl.store(out, 10)
    else:
        tl.store(out, n.no_such_attribute)
    tl.store(out + 1 + tl.arange(0, n), n)


@triton.jit
def denormals(out, x):
    # Sums keep numbers below the smallest normal one, approximate functions flush them.
    v = tl.load(x)
    tl.store(out, v + v)
    tl.store(out + 1, v * 0.5)
    tl.store(out + 2, tl.exp2(v))


@triton.jit
def ties(out, x):
    # Of equal elements the first counts, unless that is asked for otherwise.
    v = tl.load(x + tl.arange(0, 8))
    tl.store(out, tl.argmax(v, 0))
    tl.store(out + 1, tl.argmin(v, 0))
    value, index = tl.max(v, 0, return_indices=True)
    tl.store(out + 2, index)


@triton.jit
def cdiv_of_negatives(out, n, d):
    tl.store(out, tl.cdiv(n, d))


@triton.jit
def larger(a, b):
    return tl.where(a > b, a, b)


@triton.jit
def combine_functions(out, x):
    # The function may see the elements in any order.
    v = tl.load(x + tl.arange(0, 8)[:, None] * 2 + tl.arange(0, 2)[None, :])
    tl.store(out + tl.arange(0, 2), tl.reduce(v, 0, larger))
    tl.store(out + 2 + tl.arange(0, 8), tl.reduce(v, 1, larger))


@triton.jit
def shifts(out, i, u, amount):
    # The sign of the left operand decides what a shift to the right fills up with.
    a = tl.load(i)
    b = tl.load(u)
    n = tl.load(amount)
    tl.store(out, a >> n)
    tl.store(out + 1, (b >> n).to(tl.int32, bitcast=True))
    tl.store(out + 2, a << n)


@triton.jit
def truth_values(out, x):
    # Truth values are unsigned numbers of one bit.
    v = tl.load(x + tl.arange(0, 4)) > 0
    tl.store(out + tl.arange(0, 4), v.to(tl.int32))
    tl.store(out + 4 + tl.arange(0, 4), ~v)
    tl.store(out + 8 + tl.arange(0, 4), not v)
    tl.store(out + 12 + tl.arange(0, 4), v and (tl.arange(0, 4) > 1))
    tl.store(out + 16 + tl.arange(0, 4), v or (tl.arange(0, 4) > 1))


@triton.jit
def conversions(out, x):
    # Toward zero; low bits of wider integers; a smaller unsigned type keeps its value when widened.
    v = tl.load(x + tl.arange(0, 4))
    i = v.to(tl.int32)
    tl.store(out + tl.arange(0, 4), i)
    tl.store(out + 4 + tl.arange(0, 4), i.to(tl.int8))
    tl.store(out + 8 + tl.arange(0, 4), i.to(tl.uint8))
    tl.store(out + 12 + tl.arange(0, 4), v.to(tl.int32, bitcast=True))


@triton.jit
def unsigned_wins(out, i, u):
    # A signed and an unsigned number of one width are unsigned, a wider signed one stays signed.
    a = tl.load(i)
    b = tl.load(u)
    tl.static_assert((a + b).dtype == tl.uint32)
    tl.static_assert((a.to(tl.int64) + b).dtype == tl.int64)
    tl.static_assert((a.to(tl.int16) + b.to(tl.uint16)).dtype == tl.uint16)
    tl.store(out, (a < b).to(tl.int64))
    tl.store(out + 1, (a + b).to(tl.int64))
    tl.store(out + 2, a.to(tl.int64) + b)


@triton.jit
def left_padding(out, x, y):
    # Ranks are filled up on the left.
    a = tl.load(x + tl.arange(0, 2)[:, None] * 4 + tl.arange(0, 4)[None, :])
    b = tl.load(y + tl.arange(0, 4))
    at = tl.arange(0, 2)[:, None] * 4 + tl.arange(0, 4)[None, :]
    tl.store(out + at, a + b)


@triton.jit
def counters(out, n):
    # A counter may be changed in the body, which changes no other iteration; counting down works.
    total = 0
    for i in range(n):
        i = i * 10
        total += i
    tl.store(out, total)
    total = 0
    for i in range(n, 0, -2):
        total = total * 10 + i
    tl.store(out + 1, total)
    for i in range(5, 5):
        total = -1
    tl.store(out + 2, total)


@triton.jit
def counters_left(out, n):
    # What the last iteration leaves in a counter is there after the loop.
    for i in range(n):
        i = i * 10
    tl.store(out, i)
    for j in range(3, n):
        if j % 2 == 0:
            j = -j
    tl.store(out + 1, j)
    for k in range(7, 7):
        k = 1
    tl.store(out + 2, k)
    m = 9
    for m in range(n):
        m += m
    tl.store(out + 3, m)


@triton.jit
def names_inside(out, n):
    # A name that `:=` gives within an expression is one of the function, which loops carry.
    y = 1
    seen = 0
    for _ in range(n):
        if (y := y + 2) > 5:
            seen += y
    tl.store(out, seen)
    tl.store(out + 1, y)
    parts = [(y := k * 2) for k in (n, 7)]
    tl.store(out + 2, y)
    tl.store(out + 3, parts[0])
    k = 9
    parts = [k + 1 for k in parts]
    tl.store(out + 4, k)


@triton.jit
def typed_choices(out, x):
    # A condition that has a type is one of run time, and so both sides have types; one of constants leaves them weak.
    v = tl.load(x + tl.arange(0, 4))
    n = 3
    strong = v * (0.1 if n > 2 else 1.5)
    tl.static_assert(strong.dtype == tl.float32)
    N: tl.constexpr = 3
    weak = v * (0.1 if N > 2 else 1.5)
    tl.static_assert(weak.dtype == tl.float16)
    tl.store(out + tl.arange(0, 4), strong)


@triton.jit
def counters_again(out, n):
    # A counter of a loop that has ended is a number like any other: loops carry it, branches change it.
    for i in range(n):
        pass
    for _ in range(3):
        i = i + 10
    tl.store(out, i)
    x = 0
    for j in range(n):
        pass
    if n > 2:
        j = j * 2
    if n > 100:
        x = 1
    tl.store(out + 1, j)
    for k in range(n):
        k = k * 3
    while x < 10:
        x += 4
        k += 1
    tl.store(out + 2, k)
    for m in range(6, n + 4, -1):
        m = 9
    tl.store(out + 3, m)
    for t in range(n):
        pass
    if n > 100:
        x = 2
    elif x > 100:
        t = 5
    tl.store(out + 4, t)


@triton.jit
def counters_nested(out, n):
    # A loop that counts with the name of the loop around it leaves its last number there, or what was there before.
    s = 0
    for i in range(n):
        for i in range(i, 3):
            s += i
        s += 100 * i
    tl.store(out, s)
    tl.store(out + 1, i)
    k = 7
    for k in range(4, n):
        pass
    tl.store(out + 2, k)


@triton.jit
def remainders(out, x, y):
    # The remainder of floats has the sign of the dividend.
    tl.store(out + tl.arange(0, 4), tl.load(x + tl.arange(0, 4)) % tl.load(y + tl.arange(0, 4)))


@triton.jit
def random_bits(bits, uniform, seed):
    # Bit for bit those of Triton.
    at = tl.arange(0, 8)
    tl.store(bits + at, tl.randint(seed, at).to(tl.int32, bitcast=True))
    tl.store(uniform + at, tl.rand(seed, at))


@triton.jit
def scans(out, x):
    v = tl.load(x + tl.arange(0, 8))
    tl.static_assert(tl.cumsum(v, 0).dtype == tl.int32)
    tl.store(out + tl.arange(0, 8), tl.cumsum(v, 0))
    tl.store(out + 8 + tl.arange(0, 8), tl.cumsum(v, 0, reverse=True))


@triton.jit
def old_values(out, counter, lock):
    # An atomic operation gives the value from before it.
    tl.store(out + tl.program_id(0), tl.atomic_add(counter, 1) >= 0)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(counter + 1, tl.load(counter + 1) * 2 + 1)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@triton.jit
def block_of(n, WIDE: tl.constexpr):
    # `n` is a constant unless a branch that there is changes it: a walk of the loop for which it is a number has no say.
    s = 0
    for _ in range(3):
        s += tl.sum(tl.arange(0, n), 0)
        if WIDE:
            n = 8
    return s


@triton.jit
def one_type_of_two(x, n, WIDE: tl.constexpr):
    for _ in range(3):
        if n == 4:
            v = x + 1
        else:
            v = 1.5
        x = v
        if WIDE:
            n = 8
    return x


@triton.jit
def constants_of_loops(out, a, WIDE: tl.constexpr):
    tl.store(out, block_of(4, WIDE))
    tl.store(out + 1, one_type_of_two(a, 4, WIDE))
