"""Programs as people bring them from Triton: each uses a few of the ways of writing that real files have.

`make_programs.py` runs them on Triton's interpreter and writes what they store to `programs.txt`; the test `language`
compiles this file and runs it on Tilelift's interpreter and emulator. Triton 3.6 compiles all but `walrus`,
`defaults`, `tuples` and `pointers_compared`.
"""
from typing import NamedTuple

import triton
import triton.language as tl
import triton.language.math as tlm
from triton.language.extra import libdevice

WIDTH = tl.constexpr(8)
SCALES = tl.constexpr((1.0, 0.5, 0.25))
LOG2E = tl.constexpr(1.4426950408889634)


@triton.jit
def walrus(out, x, n):
    i = tl.arange(0, 8)
    if (first := tl.load(x)) > 2:
        tl.store(out + i, tl.load(x + i, mask=(m := i < n), other=-1) + first, mask=m)
    else:
        tl.store(out + i, i * 0 + first)


@triton.jit
def affine(x, scale=2.0, *, shift=0.5):
    """A doc text: not code."""
    return x * scale + shift


@triton.jit
def defaults(out, x):
    i = tl.arange(0, 4)
    v = tl.load(x + i)
    tl.store(out + i, affine(v))
    tl.store(out + 4 + i, affine(v, shift=1))
    tl.store(out + 8 + i, affine(scale=-1.0, x=v))


@triton.jit
def unrolled_pointers(out, a, b, c, n):
    i = tl.arange(0, 8)
    m = i < n
    acc = tl.zeros((8,), tl.float32)
    for k in tl.static_range(3):
        p = a if k == 0 else (b if k == 1 else c)
        acc += tl.load(p + i, mask=m, other=0.0) * SCALES[k]
    tl.store(out + i, acc, mask=m)


@triton.jit
def hints(out, x, n, stride):
    tl.assume(n > 0)
    tl.assume(stride >= 1)
    i = tl.max_contiguous(tl.multiple_of(tl.arange(0, 16), 16), 16)
    stride = tl.multiple_of(stride, 4)
    v = tl.load(x + i * stride, mask=i < n, other=0)
    tl.store(out + i, v)


@triton.jit
def where_broadcasts(out, x, n):
    r = tl.arange(0, 4)[:, None]
    c = tl.arange(0, 8)[None, :]
    v = tl.load(x + r * 8 + c)
    v = tl.where(c < n, v, -float("inf"))
    v = tl.where((r >= c) & (r > 0), v, 7)
    tl.store(out + r * 8 + c, tl.where(v == float("-inf"), 0.0, v))


@triton.jit
def wide_offsets(out, x, stride, n):
    pid = tl.program_id(0).to(tl.int64)
    base = x + pid * stride
    i = tl.arange(0, 4).to(tl.int64)
    tl.store(out + pid * 4 + i, tl.load(base + i, mask=i < n))


@triton.jit
def casts(out, x, i):
    k = tl.arange(0, 4)
    v = tl.load(x + k)
    tl.store(out + k, tl.cast(v, tl.int32))
    tl.store(out + 4 + k, v.to(tl.int32, bitcast=True))
    tl.store(out + 8 + k, v.to(tl.float16, fp_downcast_rounding="rtz").to(tl.int16, bitcast=True))
    tl.store(out + 12 + k, tl.load(i + k).to(tl.uint8).to(tl.int32))
    tl.store(out + 16 + k, tl.load(i + k).to(tl.int8).to(tl.int32))
    tl.store(out + 20 + k, (v != 0).to(tl.int32) + v.to(tl.int1))


@triton.jit
def masked_atomics(out, total, x, n):
    i = tl.arange(0, 8)
    v = tl.load(x + i)
    old = tl.atomic_add(total + i % 2, v, mask=i < n)
    tl.atomic_max(total + 2 + i * 0, v, mask=i < n)
    tl.atomic_min(total + 3 + i * 0, v, mask=i < n)
    tl.atomic_or(total + 4 + i * 0, v, mask=i < n)
    tl.atomic_and(total + 5 + i * 0, v, mask=i < n, sem="relaxed")
    tl.atomic_xor(total + 6 + i * 0, v, mask=i < n, scope="cta")
    tl.store(out, tl.atomic_xchg(total + 7, 42))
    tl.store(out + 1, tl.atomic_cas(total + 8, 5, 6))
    tl.store(out + 2, tl.sum(tl.where(i < n, old * 0 + 1, 0)))


@triton.jit
def float_atomics(out, x):
    i = tl.arange(0, 8)
    v = tl.load(x + i)
    tl.atomic_max(out + i * 0, v)
    tl.atomic_min(out + 1 + i * 0, v)
    tl.atomic_add(out + 2 + i * 0, v)
    tl.atomic_add(out + 3, tl.max(v, 0))


@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
                  BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr, ACTIVATION: tl.constexpr):
    pid = tl.program_id(axis=0)
    num_pid_m = tl.cdiv(M, BLOCK_M)
    num_pid_n = tl.cdiv(N, BLOCK_N)
    num_pid_in_group = GROUP_M * num_pid_n
    group_id = pid // num_pid_in_group
    first_pid_m = group_id * GROUP_M
    group_size_m = min(num_pid_m - first_pid_m, GROUP_M)
    pid_m = first_pid_m + ((pid % num_pid_in_group) % group_size_m)
    pid_n = (pid % num_pid_in_group) // group_size_m
    offs_am = (pid_m * BLOCK_M + tl.arange(0, BLOCK_M)) % M
    offs_bn = (pid_n * BLOCK_N + tl.arange(0, BLOCK_N)) % N
    offs_k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + (offs_am[:, None] * stride_am + offs_k[None, :] * stride_ak)
    b_ptrs = b_ptr + (offs_k[:, None] * stride_bk + offs_bn[None, :] * stride_bn)
    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_K)):
        a = tl.load(a_ptrs, mask=offs_k[None, :] < K - k * BLOCK_K, other=0.0)
        b = tl.load(b_ptrs, mask=offs_k[:, None] < K - k * BLOCK_K, other=0.0)
        accumulator = tl.dot(a, b, accumulator)
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    if ACTIVATION == "leaky_relu":
        accumulator = leaky_relu(accumulator)
    c = accumulator.to(tl.float16)
    offs_cm = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_cn = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    c_ptrs = c_ptr + stride_cm * offs_cm[:, None] + stride_cn * offs_cn[None, :]
    c_mask = (offs_cm[:, None] < M) & (offs_cn[None, :] < N)
    tl.store(c_ptrs, c, mask=c_mask)


@triton.jit
def leaky_relu(x):
    return tl.where(x >= 0, x, 0.01 * x)


@triton.jit
def dots(out, a, b):
    i = tl.arange(0, 32)
    x = tl.load(a + i[:, None] * 32 + i[None, :])
    y = tl.load(b + i[:, None] * 32 + i)
    s = tl.dot(x, y.T)
    s += tl.dot(tl.trans(x), y, out_dtype=tl.int32)
    tl.store(out + i[:, None] * 32 + i[None, :], s)


@triton.jit
def three_axes(out):
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    nx, ny = tl.num_programs(0), tl.num_programs(1)
    tl.store(out + x + nx * (y + ny * z), x * 100 + y * 10 + z + tl.num_programs(axis=2) * 1000)


@triton.jit
def while_loops(out, x, n):
    i = 0
    found = False
    while (i < n) & (not found):
        v = tl.load(x + i)
        found = v == 7
        i += 1
    tl.store(out, i)
    lo = 0
    hi = n
    while lo < hi:
        mid = (lo + hi) // 2
        if tl.load(x + mid) < 5:
            lo = mid + 1
        else:
            hi = mid
    tl.store(out + 1, lo)


class Stats(NamedTuple):
    mean: tl.tensor
    count: tl.tensor


@triton.jit
def merge(a, b):
    n = a.count + b.count
    return Stats((a.mean * a.count + b.mean * b.count) / n, n)


@triton.jit
def named(out, x, n):
    s = Stats(tl.load(x), 1.0)
    for i in range(1, n):
        s = merge(s, Stats(tl.load(x + i), 1.0))
    tl.store(out, s.mean)
    tl.store(out + 1, s.count)


@triton.jit
def online(m0, d0, m1, d1):
    m = tl.maximum(m0, m1)
    return m, d0 * tl.exp(m0 - m) + d1 * tl.exp(m1 - m)


@triton.jit
def log_sum_exp(out, x):
    r = tl.arange(0, 2)
    c = tl.arange(0, 8)
    v = tl.load(x + r[:, None] * 8 + c[None, :])
    m, d = tl.reduce((v, tl.full(v.shape, 1.0, v.dtype)), 1, online)
    tl.store(out + r, m + tl.log(d))


@triton.jit
def linear(a0, b0, a1, b1):
    return a0 * a1, b0 * a1 + b1


@triton.jit
def recurrence(out, a, b, REVERSE: tl.constexpr):
    i = tl.arange(0, 8)
    _, h = tl.associative_scan((tl.load(a + i), tl.load(b + i)), axis=0, combine_fn=linear, reverse=REVERSE)
    tl.store(out + i, h)


@triton.jit
def shapes(out, x):
    i = tl.arange(0, 16)
    v = tl.load(x + i)
    m = tl.reshape(v, (4, 4))
    t = tl.trans(m)
    a, b = tl.split(tl.reshape(t, 4, 2, 2))
    tl.store(out + i, tl.reshape(tl.join(b, a), [16]))
    tl.store(out + 16 + i, tl.ravel(tl.permute(m.reshape(2, 2, 4), (2, 0, 1))))
    tl.store(out + 32 + i, tl.interleave(tl.sum(m, 1).broadcast_to(4) * 1, tl.max(m, axis=0)).reshape(8).expand_dims(0).broadcast_to(2, 8).reshape(16))
    tl.store(out + 48 + i, tl.flip(v, 0))
    tl.store(out + 64 + tl.arange(0, 32), tl.cat(v, v + 100, can_reorder=True), mask=tl.arange(0, 32) < 0)


@triton.jit
def orders(out, x, index):
    i = tl.arange(0, 16)
    v = tl.load(x + i)
    tl.store(out + i, tl.sort(v))
    tl.store(out + 16 + i, tl.sort(v, descending=True))
    tl.store(out + 32 + i, tl.gather(v, tl.load(index + i), 0))
    tl.store(out + 48 + i, tl.histogram(v % 8, 16))
    tl.store(out + 64 + i, tl.cumsum(v, 0))
    tl.store(out + 80 + i, tl.cumsum(v.reshape(4, 4), axis=1, reverse=True).reshape(16))
    tl.store(out + 96 + tl.arange(0, 4), tl.topk(v, 4))


@triton.jit
def swizzled(out, M: tl.constexpr, N: tl.constexpr, GROUP: tl.constexpr):
    pid = tl.program_id(0)
    i, j = tl.swizzle2d(pid // N, pid % N, M, N, GROUP)
    tl.store(out + pid * 2, i)
    tl.store(out + pid * 2 + 1, j)


@triton.jit
def block_pointers(out, x, rows, columns):
    p = tl.make_block_ptr(x, shape=(rows, columns), strides=(columns, 1), offsets=(0, 0), block_shape=(4, 8), order=(1, 0))
    q = tl.make_block_ptr(out, (columns, rows), (rows, 1), (0, 0), (8, 4), (1, 0))
    for _ in range(0, columns, 8):
        v = tl.load(p, boundary_check=(0, 1), padding_option="zero")
        tl.store(q, (v * 2).T, boundary_check=(0, 1))
        p = tl.advance(p, (0, 8))
        q = q.advance([8, 0])


@triton.jit
def descriptors(out, x, rows, columns):
    d = tl.make_tensor_descriptor(x, shape=[rows, columns], strides=[columns, 1], block_shape=[4, 16])
    e = tl.make_tensor_descriptor(out, [rows, columns], [columns, 1], [4, 16])
    for r in tl.range(0, tl.cdiv(rows, 4), num_stages=1):
        v = d.load([r * 4, 0])
        tl.static_assert(d.block_shape[1] == 16)
        e.store([r * 4, 0], v + r)


@triton.jit
def nans(out, x, y):
    i = tl.arange(0, 4)
    a = tl.load(x + i)
    b = tl.load(y + i)
    tl.store(out + i, tl.maximum(a, b))
    tl.store(out + 4 + i, tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL))
    tl.store(out + 8 + i, tl.clamp(a, -1.0, 1.0))
    tl.store(out + 12 + i, tl.clamp(a, b, b + 1))
    tl.store(out + 16, tl.max(a))
    tl.store(out + 17, tl.min(b, axis=0))


@triton.jit
def quotients(out, x, y):
    i = tl.arange(0, 4)
    a = tl.load(x + i)
    b = tl.load(y + i)
    tl.store(out + i, a / b)
    tl.store(out + 4 + i, tl.fdiv(a, b))
    tl.store(out + 8 + i, tl.div_rn(a, b))
    tl.store(out + 12 + i, tl.sqrt_rn(tl.abs(a)))
    tl.store(out + 16 + i, 1 / b)
    tl.store(out + 20 + i, tl.fma(a, b, 1.0))


@triton.jit
def integers(out, x, u):
    i = tl.arange(0, 4)
    a = tl.load(x + i)
    b = tl.load(u + i)
    tl.store(out + i, (a * 3) // 2)
    tl.store(out + 4 + i, -a % 5)
    tl.store(out + 8 + i, ~a & 0xFF)
    tl.store(out + 12 + i, (b >> 1).to(tl.int32))
    tl.store(out + 16 + i, (a >> 1) ^ (a << 3))
    tl.store(out + 20 + i, tl.abs(a))
    tl.store(out + 24 + i, tl.umulhi(b, b).to(tl.int32, bitcast=True))
    tl.store(out + 28 + i, (a.to(tl.int64) * 1000000007 % 998244353).to(tl.int32))
    tl.store(out + 32 + i, (a == 3) | (a < 0))
    tl.store(out + 36 + i, tl.where(a > 0, 1, 0) + (a > 0))
    tl.store(out + 40, tl.sum((a > 0).to(tl.int32)))
    tl.store(out + 41, tl.xor_sum(a))
    tl.store(out + 42, tl.reduce_or(a, 0))
    tl.store(out + 43, tl.argmax(a, 0) * 10 + tl.argmin(a, 0))


@triton.jit
def returns_early(out, x, n):
    pid = tl.program_id(0)
    if pid >= n:
        return
    v = tl.load(x + pid)
    if v < 0:
        tl.store(out + pid, -1)
        return
    if v == 0:
        tl.store(out + pid, 100)
    else:
        if v > 5:
            tl.store(out + pid, 5)
            return
        tl.store(out + pid, v)


@triton.jit
def absolute(x):
    if x < 0:
        return -x
    return x


@triton.jit
def sign(x):
    if x < 0:
        return -1
    elif x > 0:
        return 1
    else:
        return 0


@triton.jit
def returned_values(out, x):
    pid = tl.program_id(0)
    v = tl.load(x + pid)
    tl.store(out + pid * 2, absolute(v))
    tl.store(out + pid * 2 + 1, sign(v))


@triton.jit
def optional(out, x, bias, HAS_SCALE: tl.constexpr, scale, n):
    i = tl.arange(0, WIDTH)
    v = tl.load(x + i, mask=i < n, other=0.0)
    if bias is not None:
        v += tl.load(bias + i, mask=i < n, other=0.0)
    if HAS_SCALE:
        factor = scale
    else:
        factor = 1.0
    v = v * factor if HAS_SCALE else v
    tl.store(out + i, v, mask=i < n)


@triton.jit
def pointers_move(out, x, n, STEP: tl.constexpr):
    acc = tl.zeros([STEP], tl.float32)
    p = x + tl.arange(0, STEP)
    left = n
    for _ in range(tl.cdiv(n, STEP)):
        acc += tl.load(p, mask=tl.arange(0, STEP) < left, other=0.)
        p += STEP
        left -= STEP
    tl.store(out, tl.sum(acc))


@triton.jit
def persistent(out, n):
    pid = tl.program_id(0)
    for tile in tl.range(pid, n, tl.num_programs(0)):
        t = tile
        tile = tile * 2
        tl.store(out + t, tile + pid * 100)


@triton.jit
def nested_loops(out, n):
    total = 0
    last = -1
    for i in range(n):
        for j in range(i, -1, -1):
            if (i + j) % 2 == 0:
                total += i * j
                last = j
            else:
                total -= 1
        for k in tl.static_range(2):
            total += k * i
    tl.store(out, total)
    tl.store(out + 1, last)


@triton.constexpr_function
def log2_of(n):
    bits = 0
    while n > 1:
        n //= 2
        bits += 1
    return bits


@triton.jit
def constexprs(out, N: tl.constexpr, DTYPE: tl.constexpr):
    HALF: tl.constexpr = N // 2
    LOG: tl.constexpr = log2_of(N)
    ODD: tl.constexpr = -7 // 2
    v = tl.full((HALF,), LOG, DTYPE)
    tl.static_assert(v.dtype == DTYPE and v.shape[0] == HALF, "shape")
    tl.static_assert(len(v.shape) == 1)
    tl.store(out + tl.arange(0, HALF), v + ODD)
    tl.store(out + HALF, tl.constexpr(3) ** 2 + (N if HALF > 2 else 0))
    tl.store(out + HALF + 1, max(N, 10) - min(N, 3))


@triton.jit
def functions(out, x):
    i = tl.arange(0, 8)
    v = tl.load(x + i)
    tl.store(out + i, tl.exp(v))
    tl.store(out + 8 + i, tlm.exp2(v * LOG2E))
    tl.store(out + 16 + i, tl.log(tl.abs(v) + 1))
    tl.store(out + 24 + i, tl.math.log2(tl.abs(v) + 1))
    tl.store(out + 32 + i, tl.sin(v))
    tl.store(out + 40 + i, tl.cos(v))
    tl.store(out + 48 + i, tl.sqrt(tl.abs(v)))
    tl.store(out + 56 + i, tl.rsqrt(tl.abs(v) + 1))
    tl.store(out + 64 + i, tl.sigmoid(v))
    tl.store(out + 72 + i, tl.math.erf(v))
    tl.store(out + 80 + i, tl.floor(v) + tl.ceil(v))
    tl.store(out + 88 + i, tl.softmax(v))


@triton.jit
def zero_dimensional(out, x):
    acc = tl.full([], 0, tl.float32)
    best = tl.full((), float("-inf"), tl.float32)
    for i in range(4):
        v = tl.load(x + i)
        acc += v
        best = tl.maximum(best, v)
    tl.store(out, acc)
    tl.store(out + 1, best)
    tl.store(out + 2, tl.zeros((), tl.float32) - 1)


@triton.jit
def element_types(out, x):
    i = tl.arange(0, 4)
    v = tl.load(x + i).to(tl.float32) * 1.5
    tl.store(out + i, v.to(out.dtype.element_ty))
    if x.type.element_ty == tl.float16:
        tl.store(out + 4 + i, v.to(x.dtype.element_ty) + 1)
    if tl.constexpr(x.dtype.element_ty.primitive_bitwidth) == 32:
        tl.store(out + 100 + i, v)


@triton.jit
def reductions(out, x):
    r = tl.arange(0, 4)[:, None]
    c = tl.arange(0, 8)[None, :]
    v = tl.load(x + r * 8 + c)
    centred = v - tl.sum(v, 1, keep_dims=True) / 8
    tl.store(out + r * 8 + c, centred)
    value, index = tl.max(v, axis=1, return_indices=True)
    tl.store(out + 32 + tl.arange(0, 4), value)
    tl.store(out + 36 + tl.arange(0, 4), index)
    tl.store(out + 40, tl.sum(v))
    tl.store(out + 41 + tl.arange(0, 8), tl.min(v, axis=-2))
    tl.store(out + 49, tl.sum(tl.sum(v, axis=0), axis=0))
    tl.store(out + 50, tl.sum((v > 0).to(tl.int1)))


@triton.jit
def masks_broadcast(out, x, rows, columns):
    r = tl.arange(0, 4)
    c = tl.arange(0, 8)
    v = tl.load(x + r[:, None] * columns + c, r[:, None] < rows, 0.0)
    v = tl.load(x + r[:, None] * columns + c, mask=(r[:, None] < rows) & (c < columns), other=v + 1,
                eviction_policy="evict_last")
    tl.store(out + r[:, None] * 8 + c[None, :], v, mask=r[:, None] < rows, eviction_policy="evict_first")


@triton.jit
def scalars(out, flags, n):
    tl.store(out, 1)
    tl.store(out + 1, n)
    tl.store(out + 2, n > 3)
    tl.store(out + 3, True)
    tl.store(out + 4, n / 2)
    tl.store(out + 5, tl.load(flags + 1) + tl.load(flags))
    tl.store(out + 6, tl.load(out + 1, mask=n > 100, other=9.0))
    tl.store(out + 7, -n)
    tl.store(flags, n == 5)


@triton.jit
def rows_of(tables, out, which, n):
    i = tl.arange(0, 4)
    p = tl.load(tables + tl.load(which)).to(tl.pointer_type(tl.float32))
    tl.store(out + i, tl.load(p + i, mask=i < n, other=-1.0))


@triton.jit
def philox(out, seed, offset):
    i = offset + tl.arange(0, 4)
    a, b, c, d = tl.randint4x(seed, i)
    tl.store(out + tl.arange(0, 4), a.to(tl.int32, bitcast=True))
    tl.store(out + 4 + tl.arange(0, 4), d.to(tl.int32, bitcast=True) ^ b.to(tl.int32, bitcast=True))
    tl.store(out + 8 + tl.arange(0, 4), (tl.rand(seed, i) * 1000).to(tl.int32))
    tl.store(out + 12 + tl.arange(0, 4), tl.randint(seed, i, n_rounds=7).to(tl.int32, bitcast=True) + 0 * c.to(tl.int32))


@triton.jit
def tuples(out, x, y):
    pair = (tl.load(x), tl.load(y))
    (a, b), c = pair, 3
    swapped = pair[1], pair[0]
    both = pair + swapped
    total = 0.0
    for k in tl.static_range(len(both)):
        total += both[k] * (k + 1)
    tl.store(out, a + b * c)
    tl.store(out + 1, total)
    tl.store(out + 2, both[-1] - both[1:3][0])
    doubled = [v * 2 for v in pair]
    tl.store(out + 3, doubled[0] + doubled[1])
    state = (0, 1)
    for _ in range(10):
        state = (state[1], state[0] + state[1])
    tl.store(out + 4, state[0])


@triton.jit
def static_lists(out, x, N: tl.constexpr):
    parts = ()
    for k in tl.static_range(N):
        parts = parts + (tl.load(x + k) * k,)
    acc = parts[0]
    for k in tl.static_range(1, N):
        acc += parts[k]
    tl.store(out, acc)


@triton.jit
def generic(f: tl.constexpr, x, y):
    return f(x, y)


@triton.jit
def plus(a, b):
    return a + b


@triton.jit
def times(a, b):
    return a * b


@triton.jit
def higher_order(out, x):
    i = tl.arange(0, 8)
    v = tl.load(x + i)
    tl.store(out + i, generic(times, v, v) + generic(plus, v, 1))
    tl.store(out + 8, tl.reduce(v, 0, times))
    tl.store(out + 9 + i, tl.associative_scan(v, 0, plus))


@triton.jit
def power(x, N: tl.constexpr):
    if N == 0:
        return x * 0 + 1
    elif N % 2 == 1:
        return x * power(x, N - 1)
    else:
        return power(x * x, N // 2)


@triton.jit
def recursion(out, x):
    i = tl.arange(0, 4)
    v = tl.load(x + i)
    tl.store(out + i, power(v, 10))
    tl.store(out + 4 + i, power(v, 3))


@triton.jit
def attention(q_ptr, k_ptr, v_ptr, out, n, scale, N: tl.constexpr, D: tl.constexpr, BLOCK: tl.constexpr, CAUSAL: tl.constexpr):
    offs_m = tl.arange(0, N)
    offs_d = tl.arange(0, D)
    q = tl.load(q_ptr + offs_m[:, None] * D + offs_d[None, :])
    m_i = tl.full([N], float("-inf"), tl.float32)
    l_i = tl.zeros([N], tl.float32)
    acc = tl.zeros([N, D], tl.float32)
    for start in range(0, n, BLOCK):
        start = tl.multiple_of(start, BLOCK)
        offs_n = start + tl.arange(0, BLOCK)
        k = tl.load(k_ptr + offs_n[None, :] * D + offs_d[:, None], mask=offs_n[None, :] < n, other=0.0)
        v = tl.load(v_ptr + offs_n[:, None] * D + offs_d[None, :], mask=offs_n[:, None] < n, other=0.0)
        s = tl.dot(q, k, input_precision="ieee") * scale
        s = tl.where(offs_n[None, :] < n, s, float("-inf"))
        if CAUSAL:
            s = tl.where(offs_m[:, None] >= offs_n[None, :], s, float("-inf"))
        m_new = tl.maximum(m_i, tl.max(s, 1))
        alpha = tl.exp(m_i - m_new)
        p = tl.exp(s - m_new[:, None])
        l_i = l_i * alpha + tl.sum(p, 1)
        acc = acc * alpha[:, None] + tl.dot(p, v, input_precision="ieee")
        m_i = m_new
    acc /= l_i[:, None]
    tl.store(out + offs_m[:, None] * D + offs_d[None, :], acc)


@triton.jit
def library_of_device(out, x):
    i = tl.arange(0, 8)
    v = tl.load(x + i)
    tl.store(out + i, libdevice.tanh(v))
    tl.store(out + 8 + i, libdevice.pow(tl.abs(v), 1.5))
    tl.store(out + 16 + i, tl.extra.cuda.libdevice.atan2(v, v + 0.5))
    tl.store(out + 24 + i, libdevice.rint(v))
    tl.store(out + 32 + i, libdevice.log1p(tl.abs(v)))
    tl.store(out + 40 + i, libdevice.fmod(v, 0.75))
    tl.store(out + 48 + i, libdevice.isnan(v) + libdevice.round(v))
    tl.store(out + 56 + i, libdevice.fma_rn(v, v, v))


@triton.jit
def conditional_types(out, x, MODE: tl.constexpr):
    i = tl.arange(0, 4)
    if MODE == 0:
        v = tl.load(x + i)
    elif MODE == 1:
        v = tl.load(x + i).to(tl.int32)
    else:
        v = i
    if MODE > 0 and v.dtype.is_int():
        v = v * 2
    tl.store(out + i, v)


@triton.jit
def branches_merge(out, x, n):
    v = tl.load(x)
    k = 0
    if n > 3:
        v = v + 1
        k = 10
        if n > 5:
            k += 1
    elif n == 2:
        v, k = v * 2, 20
    y = v if k > 10 else -v
    tl.store(out, v)
    tl.store(out + 1, k)
    tl.store(out + 2, y)


@triton.jit
def bits(out, x):
    i = tl.arange(0, 4)
    v = tl.load(x + i)
    s = v.to(tl.uint32, bitcast=True)
    exponent = ((s >> 23) & 0xFF).to(tl.int32) - 127
    mantissa = s & 0x7FFFFF
    tl.store(out + i, exponent)
    tl.store(out + 4 + i, (mantissa >> 16).to(tl.int32))
    tl.store(out + 8 + i, tl.where((s >> 31) != 0, 1, 0))
    packed = (s & 0xF) | ((s & 0xF0) << 4)
    tl.store(out + 12 + i, packed.to(tl.int32))


@triton.jit
def unpack_int4(out, packed, scales, zeros, G: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    words = tl.load(packed + i // 8)
    shifts = (i % 8) * 4
    q = (words >> shifts) & 0xF
    group = i // G
    z = (tl.load(zeros + group // 8) >> ((group % 8) * 4)) & 0xF
    v = (q - z).to(tl.float16) * tl.load(scales + group)
    tl.store(out + i, v)


@triton.jit
def spin_lock(out, lock, count):
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    n = tl.load(count, volatile=True)
    tl.store(count, n + 1)
    tl.store(out + tl.program_id(0), n * 0)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@triton.jit
def pointwise(in_ptr0, in_ptr1, out_ptr0, out_ptr1, xnumel, XBLOCK: tl.constexpr):
    # As PyTorch's compiler writes them.
    xnumel = 48
    xoffset = tl.program_id(0) * XBLOCK
    xindex = xoffset + tl.arange(0, XBLOCK)[:]
    xmask = xindex < xnumel
    x0 = (xindex % 16)
    x1 = xindex // 16
    x2 = xindex
    tmp0 = tl.load(in_ptr0 + (x0 + 16*x1), xmask)
    tmp1 = tl.load(in_ptr1 + (x0), xmask, eviction_policy='evict_last')
    tmp2 = tmp0 + tmp1
    tmp3 = tl.full([1], 0, tl.int32)
    tmp4 = tl.where(tmp2 > tmp3, tmp2, tmp3.to(tl.float32))
    tmp5 = 0.5
    tmp6 = tmp4 * tmp5
    tmp7 = tmp6.to(tl.float32)
    tmp8 = tmp7 > 1.0
    tmp9 = tmp8 == 0
    tl.store(out_ptr0 + (x2), tmp6, xmask)
    tl.store(out_ptr1 + (x2), tmp9, xmask)


@triton.jit
def inner_reduction(in_ptr0, out_ptr0, out_ptr1, xnumel, rnumel, XBLOCK: tl.constexpr, RBLOCK: tl.constexpr):
    xoffset = tl.program_id(0) * XBLOCK
    xindex = xoffset + tl.arange(0, XBLOCK)[:, None]
    xmask = xindex < xnumel
    rbase = tl.arange(0, RBLOCK)[None, :]
    x0 = xindex
    _tmp2 = tl.full([XBLOCK, RBLOCK], 0, tl.float32)
    _tmp4 = tl.full([XBLOCK, RBLOCK], float("-inf"), tl.float32)
    for roffset in range(0, rnumel, RBLOCK):
        rindex = roffset + rbase
        rmask = rindex < rnumel
        tmp0 = tl.load(in_ptr0 + (rindex + rnumel * x0), rmask & xmask, eviction_policy='evict_first', other=0.0)
        tmp1 = tl.broadcast_to(tmp0, [XBLOCK, RBLOCK])
        tmp3 = _tmp2 + tmp1
        _tmp2 = tl.where(rmask & xmask, tmp3, _tmp2)
        _tmp4 = tl.where(rmask & xmask, tl.maximum(_tmp4, tmp1), _tmp4)
    tmp2 = tl.sum(_tmp2, 1)[:, None]
    tmp4 = tl.max(_tmp4, 1)[:, None]
    tl.store(out_ptr0 + (x0), tmp2, xmask)
    tl.store(out_ptr1 + (x0), tmp4, xmask)


@triton.jit
def online_softmax(loss_ptr, x_ptr, target_ptr, stride, n_cols, IGNORE: tl.constexpr, SMOOTH: tl.constexpr, BLOCK: tl.constexpr):
    pid = tl.program_id(0).to(tl.int64)
    loss_ptr += pid
    x_ptr += pid * stride
    y = tl.load(target_ptr + pid)
    if y == IGNORE:
        tl.store(loss_ptr, 0.0)
        return
    m = float("-inf")
    d = 0.0
    total = 0.0
    x_y = tl.load(x_ptr + y).cast(tl.float32)
    for i in range(0, n_cols, BLOCK):
        offs = i + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + offs, mask=offs < n_cols, other=float("-inf")).cast(tl.float32)
        if SMOOTH > 0:
            total += tl.sum(tl.where(offs < n_cols, -(SMOOTH / n_cols) * x, 0.0))
        block_max = tl.max(x)
        m_new = tl.maximum(m, block_max)
        d = d * tl.exp(m - m_new) + tl.sum(tl.exp(x - m_new))
        m = m_new
    lse = m + tl.log(d)
    loss = lse - x_y
    if SMOOTH > 0:
        loss = loss * (1 - SMOOTH) + total + SMOOTH * lse
    tl.store(loss_ptr, loss)


@triton.jit
def chunked_scan(out, a, b, n, D: tl.constexpr, T: tl.constexpr):
    d = tl.arange(0, D)
    t = tl.arange(0, T)
    h = tl.zeros((D,), tl.float32)
    for start in range(0, n, T):
        p = (start + t)[:, None] * D + d[None, :]
        inside = (start + t)[:, None] < n
        x = tl.load(a + p, mask=inside, other=1.0)
        y = tl.load(b + p, mask=inside, other=0.0)
        ca, cb = tl.associative_scan((x, y), 0, linear)
        h_all = ca * h[None, :] + cb
        tl.store(out + p, h_all, mask=inside)
        h = tl.sum(tl.where(t[:, None] == T - 1, h_all, 0.0), 0)


@triton.jit
def write_zeros(c_ptr, stride, offs_token, token_mask, N: tl.constexpr, compute_type):
    offs = tl.arange(0, N)
    tl.store(c_ptr + stride * offs_token[:, None] + offs[None, :], tl.zeros((offs_token.shape[0], N), compute_type), mask=token_mask[:, None])


@triton.jit
def experts(a_ptr, b_ptr, c_ptr, weights_ptr, ids_ptr, experts_ptr, valid, K, stride_am, stride_be, stride_bk, stride_cm, BLOCK_M: tl.constexpr,
            N: tl.constexpr, BLOCK_K: tl.constexpr, MUL_WEIGHT: tl.constexpr, top_k: tl.constexpr, compute_type: tl.constexpr):
    pid_m = tl.program_id(axis=0)
    offs_token_id = pid_m * BLOCK_M + tl.arange(0, BLOCK_M).to(tl.int64)
    offs_token = tl.load(ids_ptr + offs_token_id)
    token_mask = offs_token < valid
    off_experts = tl.load(experts_ptr + pid_m).to(tl.int64)
    if off_experts == -1:
        write_zeros(c_ptr, stride_cm, offs_token, token_mask, N, compute_type)
        return
    offs_bn = tl.arange(0, N) % N
    offs_k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + (offs_token[:, None] // top_k * stride_am + offs_k[None, :])
    b_ptrs = b_ptr + off_experts * stride_be + (offs_k[:, None] * stride_bk + offs_bn[None, :])
    accumulator = tl.zeros((BLOCK_M, N), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_K)):
        a = tl.load(a_ptrs, mask=token_mask[:, None] & (offs_k[None, :] < K - k * BLOCK_K), other=0.0)
        b = tl.load(b_ptrs, mask=offs_k[:, None] < K - k * BLOCK_K, other=0.0)
        accumulator += tl.dot(a, b)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K * stride_bk
    if MUL_WEIGHT:
        weight = tl.load(weights_ptr + offs_token, mask=token_mask, other=0)
        accumulator = accumulator * weight[:, None]
    c_ptrs = c_ptr + stride_cm * offs_token[:, None] + tl.arange(0, N)[None, :]
    tl.store(c_ptrs, accumulator.to(compute_type), mask=token_mask[:, None])


@triton.jit
def paged(out, q_ptr, k_ptr, v_ptr, table_ptr, length, scale, D: tl.constexpr, PAGE: tl.constexpr):
    d = tl.arange(0, D)
    q = tl.load(q_ptr + d) * scale
    m = float("-inf")
    l = 1.0 * 0
    acc = tl.zeros([D], tl.float32)
    for j in range(0, tl.cdiv(length, PAGE)):
        page = tl.load(table_ptr + j).to(tl.int64)
        s = j * PAGE + tl.arange(0, PAGE)
        at = (page * PAGE + tl.arange(0, PAGE))[:, None] * D + d[None, :]
        k = tl.load(k_ptr + at, mask=s[:, None] < length, other=0.0)
        v = tl.load(v_ptr + at, mask=s[:, None] < length, other=0.0)
        scores = tl.where(s < length, tl.sum(k * q[None, :], 1), float("-inf"))
        new = tl.maximum(m, tl.max(scores, 0))
        p = tl.exp(scores - new)
        alpha = tl.exp(m - new)
        acc = acc * alpha + tl.sum(p[:, None] * v, axis=0)
        l = l * alpha + tl.sum(p, axis=0)
        m = new
    tl.store(out + d, acc / l)


@triton.jit
def unpack_awq(out, q_ptr, scales_ptr, zeros_ptr, X: tl.constexpr):
    i = tl.arange(0, X)
    q = tl.load(q_ptr + i)
    q = tl.interleave(q, q)
    q = tl.interleave(q, q)
    q = tl.interleave(q, q)
    order = ((tl.arange(0, 2) * 4)[None, :] + tl.arange(0, 4)[:, None]).reshape(8)
    shifts = tl.broadcast_to((order * 4)[None, :], (X, 8))
    shifts = tl.reshape(shifts, (X * 8,))
    q = (q >> shifts) & 0xF
    o = tl.arange(0, X * 8)
    z = tl.load(zeros_ptr + o // 4)
    tl.store(out + o, ((q - z) * tl.load(scales_ptr + o // 4)).to(tl.float16))


@triton.jit
def sorted_pairs(keys_out, index_out, x):
    i = tl.arange(0, 16)
    v = tl.load(x + i)
    bits = v.to(tl.int32, bitcast=True)
    key = (bits ^ ((bits >> 31) & 0x7FFFFFFF)).to(tl.int64)
    packed = (key << 32) | i.to(tl.int64)
    packed = tl.sort(packed, descending=True)
    tl.store(index_out + i, (packed & 0xFFFFFFFF).to(tl.int32))
    back = (packed >> 32).to(tl.int32)
    back = back ^ ((back >> 31) & 0x7FFFFFFF)
    tl.store(keys_out + i, back.to(tl.float32, bitcast=True))


@triton.jit
def narrow_integers(out, u, s, h):
    i = tl.arange(0, 4)
    a = tl.load(u + i)
    b = tl.load(s + i)
    c = tl.load(h + i)
    tl.store(out + i, (a + a).to(tl.int32))
    tl.store(out + 4 + i, (a - 1).to(tl.int32))
    tl.store(out + 8 + i, (~a).to(tl.int32))
    tl.store(out + 12 + i, (b * b).to(tl.int32))
    tl.store(out + 16 + i, (a + b).to(tl.int32))
    tl.store(out + 20 + i, (b + c).to(tl.int32))
    tl.store(out + 24 + i, (a >> 1).to(tl.int32) + (b >> 1).to(tl.int32))
    tl.store(out + 28 + i, (c << 3).to(tl.int32))
    tl.store(out + 32 + i, tl.where(a > b, 1, 0))
    tl.store(out + 36 + i, tl.maximum(a, 100).to(tl.int32) + tl.minimum(b, 0))
    tl.store(out + 40 + i, tl.abs(b).to(tl.int32))
    tl.store(out + 44 + i, a // 7 * 1 + a % 7)


@triton.jit
def eighths(out, x, bytes):
    i = tl.arange(0, 8)
    v = tl.load(x + i)
    e = v.to(tl.float8e5)
    tl.store(bytes + i, e.to(tl.uint8, bitcast=True))
    tl.store(out + i, e.to(tl.float32))
    tl.debug_barrier()
    back = tl.load(bytes + i).to(tl.float8e5, bitcast=True).to(tl.float16)
    tl.store(out + 8 + i, back)


@triton.jit
def constant_math(out, N: tl.constexpr, M: tl.constexpr = 3, MODE: tl.constexpr = "mean"):
    TILES: tl.constexpr = triton.cdiv(N, 4)
    POW: tl.constexpr = triton.next_power_of_2(N)
    v = tl.zeros([POW], tl.int32) + TILES
    i = tl.arange(0, POW)
    if MODE == "mean" and M != 0:
        v = v // M
    elif MODE == "sum":
        v = v * M
    x: tl.constexpr = N % 4 if N > 4 else 0
    y: tl.constexpr = (N << 2) | 1
    z: tl.constexpr = not (N == 0 or M > 5)
    tl.store(out + i, v + x * 10 + y * 100 + z, mask=i < N)


@triton.jit
def conditions(out, a, b, flag, p):
    k = 0
    if a > 0 and b < 3:
        k += 1
    if a > 5 or not b > 10:
        k += 10
    if (a > 0) & (b > 0) & (a + b < 100):
        k += 100
    if not flag:
        k += 1000
    if p is not None and a > 1:
        k += 10000
    if p is None or b == 2:
        k += 100000
    tl.store(out, k)
    tl.store(out + 1, a if a > b else b)
    tl.store(out + 2, 1 if (a > b and b > 0) else 0)
    mask = tl.arange(0, 4) < a
    mask &= tl.arange(0, 4) != b
    mask |= tl.arange(0, 4) == 3
    tl.store(out + 3, tl.sum(mask.to(tl.int32)))


@triton.jit
def methods(out, x):
    r = tl.arange(0, 4)
    c = tl.arange(0, 8)
    v = tl.load(x + r[:, None] * 8 + c)
    tl.store(out + r, v.sum(axis=1))
    tl.store(out + 4 + r, v.max(1) - v.min(1))
    tl.store(out + 8, v.to(tl.float32).sum())
    tl.store(out + 9 + c, v.trans().sum(1))
    tl.store(out + 17 + r, v.argmax(1).to(tl.float32) + v.abs().cumsum(1).max(1))
    w = v.reshape(2, 2, 8)[:, :, :].sum(axis=2, keep_dims=True)
    tl.store(out + 21 + tl.arange(0, 4), w.reshape(4) + v.exp().log().sum(1) * 0)
    tl.store(out + 25 + r, v.reshape(4, 2, 4).permute(0, 2, 1).sum(-1).max(-1))
    u = v[:, None, :] * 2.0 + c[None, :, None]
    tl.store(out + 29 + r, u.sum(2).sum(1))


@triton.jit
def chosen_pointers(out, a, b, n):
    i = tl.arange(0, 8)
    p = tl.where(i < n, a + i, b + i)
    q = a if n > 100 else b
    tl.store(out + i, tl.load(p) + tl.load(q + i))
    distance = (a + 3).to(tl.int64) - a.to(tl.int64)
    tl.store(out + 8, distance)


@triton.jit
def compact(out, count, x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n, other=0)
    keep = (v > 0) & (i < n)
    at = tl.cumsum(keep.to(tl.int32), 0) - 1
    base = tl.atomic_add(count, tl.sum(keep.to(tl.int32)))
    tl.store(out + base + at, v, mask=keep)


@triton.jit
def ties_right(out, x):
    i = tl.arange(0, 8)
    v = tl.load(x + i).reshape(2, 4)
    tl.store(out + tl.arange(0, 2), tl.argmax(v, 1))
    tl.store(out + 2, tl.argmax(tl.load(x + i), 0, tie_break_left=True))
    value, index = tl.min(v, 0, return_indices=True)
    tl.store(out + 3 + tl.arange(0, 4), index)
    tl.store(out + 7 + tl.arange(0, 4), value.to(tl.int32))


@triton.jit
def stochastic(out, x, seed):
    i = tl.arange(0, 8)
    v = tl.load(x + i)
    noise = tl.randint(seed, i).to(tl.uint32) & 0xFFFF
    bits = v.to(tl.uint32, bitcast=True) + noise
    tl.store(out + i, (bits & 0xFFFF0000).to(tl.float32, bitcast=True))


@triton.jit
def annotated(out, x, n: tl.int64, eps: float, BLOCK: tl.constexpr) -> None:
    """Annotations of numbers pin their types."""
    tl.static_assert(n.dtype == tl.int64)
    i: tl.tensor = tl.arange(0, BLOCK)
    v: "tl.tensor" = tl.load(x + i + n * 0, mask=i < n)
    tl.store(out + i, v + eps, mask=i < n)


@triton.jit
def grouped(tables, sizes, groups, TILE: tl.constexpr):
    tile = tl.program_id(0)
    last = 0
    for g in range(groups):
        n = tl.load(sizes + g)
        tiles = tl.cdiv(n, TILE)
        while tile >= last and tile < last + tiles:
            base = tl.load(tables + g).to(tl.pointer_type(tl.float32))
            at = (tile - last) * TILE + tl.arange(0, TILE)
            tl.store(base + at, tl.load(base + at, mask=at < n) * 2 + g, mask=at < n)
            tile += tl.num_programs(0)
        last = last + tiles


@triton.jit
def staged_attention(acc, l_i, m_i, q, K, V, start_m, BLOCK_M: tl.constexpr, D: tl.constexpr, BLOCK_N: tl.constexpr, STAGE: tl.constexpr,
                     offs_m: tl.constexpr, offs_n: tl.constexpr, N_CTX: tl.constexpr):
    if STAGE == 1:
        lo, hi = 0, start_m * BLOCK_M
    elif STAGE == 2:
        lo, hi = start_m * BLOCK_M, (start_m + 1) * BLOCK_M
        lo = tl.multiple_of(lo, BLOCK_M)
    else:
        lo, hi = 0, N_CTX
    for start_n in tl.range(lo, hi, BLOCK_N):
        start_n = tl.multiple_of(start_n, BLOCK_N)
        n = start_n + tl.arange(0, BLOCK_N)
        k = tl.load(K + n[None, :] * D + tl.arange(0, D)[:, None])
        qk = tl.dot(q, k)
        if STAGE == 2:
            mask = (start_m * BLOCK_M + tl.arange(0, BLOCK_M))[:, None] >= n[None, :]
            qk = qk * 0.25 + tl.where(mask, 0, -1.0e6)
            m_ij = tl.maximum(m_i, tl.max(qk, 1))
            qk -= m_ij[:, None]
        else:
            m_ij = tl.maximum(m_i, tl.max(qk, 1) * 0.25)
            qk = qk * 0.25 - m_ij[:, None]
        p = tl.math.exp2(qk)
        alpha = tl.math.exp2(m_i - m_ij)
        l_ij = tl.sum(p, 1)
        acc = acc * alpha[:, None]
        v = tl.load(V + n[:, None] * D + tl.arange(0, D)[None, :])
        acc = tl.dot(p.to(tl.float16), v, acc)
        l_i = l_i * alpha + l_ij
        m_i = m_ij
    return acc, l_i, m_i


@triton.jit
def causal_attention(Q, K, V, Out, N_CTX: tl.constexpr, D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, STAGE: tl.constexpr):
    tl.static_assert(BLOCK_N <= BLOCK_M)
    start_m = tl.program_id(0)
    m = start_m * BLOCK_M + tl.arange(0, BLOCK_M)
    d = tl.arange(0, D)
    m_i = tl.zeros([BLOCK_M], dtype=tl.float32) - float("inf")
    l_i = tl.zeros([BLOCK_M], dtype=tl.float32) + 1.0
    acc = tl.zeros([BLOCK_M, D], dtype=tl.float32)
    q = tl.load(Q + m[:, None] * D + d[None, :])
    if STAGE & 1:
        acc, l_i, m_i = staged_attention(acc, l_i, m_i, q, K, V, start_m, BLOCK_M, D, BLOCK_N, 4 - STAGE, BLOCK_M, BLOCK_N, N_CTX)
    if STAGE & 2:
        acc, l_i, m_i = staged_attention(acc, l_i, m_i, q, K, V, start_m, BLOCK_M, D, BLOCK_N, 2, BLOCK_M, BLOCK_N, N_CTX)
    acc = acc / l_i[:, None]
    tl.store(Out + m[:, None] * D + d[None, :], acc.to(Out.type.element_ty))


@triton.jit
def batched_dot(out, a, b):
    g = tl.arange(0, 2)[:, None, None]
    i = tl.arange(0, 16)
    x = tl.load(a + g * 256 + i[None, :, None] * 16 + i[None, None, :])
    y = tl.load(b + g * 256 + i[None, :, None] * 16 + i[None, None, :])
    tl.store(out + g * 256 + i[None, :, None] * 16 + i[None, None, :], tl.dot(x, y, input_precision="ieee"))


@triton.jit
def rotate_halves(x_ptr, cos_ptr, sin_ptr, heads, HALF: tl.constexpr, BACKWARD: tl.constexpr):
    pid = tl.program_id(0)
    h = tl.arange(0, HALF)
    cos = tl.load(cos_ptr + pid * HALF + h)
    sin = tl.load(sin_ptr + pid * HALF + h)
    if BACKWARD:
        sin = -sin
    for head in range(heads):
        p = x_ptr + (pid * heads + head) * 2 * HALF + h
        a, b = tl.load(p).to(tl.float32), tl.load(p + HALF).to(tl.float32)
        a, b = a * cos - b * sin, b * cos + a * sin
        tl.store(p, a)
        tl.store(p + HALF, b)


@triton.jit(noinline=True)
def not_inlined(a, b):
    return a * 2 + b


@triton.jit
def called(out, n):
    tl.store(out, not_inlined(n, 3) + not_inlined(tl.program_id(0), n))


@triton.jit
def literals(out, x, u):
    v = tl.load(x)
    w = tl.load(u)
    tl.store(out, v * 1_000 + 0x10 + 0b11 + 0o7)
    tl.store(out + 1, (w & 0xFFFFFFFF).to(tl.int64))
    tl.store(out + 2, v.to(tl.int64) & 0xFFFFFFFF)
    tl.store(out + 3, v.to(tl.int64) * 3000000000)
    tl.store(out + 4, (v + 1e10).to(tl.int64))
    tl.store(out + 5, w.to(tl.uint64) * 0xFFFFFFFFFFFFFFFF)
    tl.store(out + 6, -5 // 2 + (-5) % 3)
    tl.store(out + 7, v // 2 + v % 3)


TABLE = tl.constexpr(("relu", "none"))
DEPTH = tl.constexpr(3)


@triton.jit
def first_negative(p, n):
    for k in range(n):
        pass
    v = tl.load(p)
    if v < 0:
        return 0.5
    w = tl.load(p + 1)
    if w < 0:
        return 1.0
    return v + w


@triton.jit
def returns_in_loops(out, x, n):
    total = 0.0
    for i in range(n):
        total += first_negative(x + i, 2)
        if i % 2 == 0:
            odd = tl.load(x + i) * 2
            total += odd
    tl.store(out, total)


@triton.jit
def reassigned(out, x, n):
    n = n.to(tl.int64) * 2
    v = tl.load(x + tl.arange(0, 8))
    v = tl.sum(v.reshape(2, 4), 1)
    v = v[:, None] + tl.arange(0, 4)[None, :]
    v = tl.sum(v)
    x = x + 4
    tl.store(out, v + n + tl.load(x))


@triton.jit
def nothing(out, x, bias, DEFAULT: tl.constexpr = None):
    b = tl.load(bias) if bias is not None else None
    v = tl.load(x)
    if b is not None:
        v += b
    scale = 2.0 if DEFAULT is None else DEFAULT
    tl.store(out, v * scale)


@triton.jit
def chosen_texts(out, MODE: tl.constexpr):
    for k in tl.static_range(len(TABLE)):
        if TABLE[k] == MODE:
            tl.store(out + k, k + 1)
        else:
            tl.store(out + k, -1)
    for d in tl.static_range(DEPTH - 1, -1, -1):
        if d != 1:
            tl.store(out + 2 + d, d * 10)


@triton.jit
def truths(out, m, k, flag):
    i = tl.arange(0, 8)
    a = tl.load(m + i)
    b = tl.load(k + i)
    tl.store(out + i, (a & ~b).to(tl.int32) + (a | b) * 10 + (a ^ b).to(tl.int8) * 100)
    tl.store(out + 8 + i, tl.where(a, 1, 0) - tl.where(b & flag, 1, 0))
    tl.store(out + 16, tl.sum(a.to(tl.int32)) + tl.max(b.to(tl.int32), 0) * 100)
    tl.store(m + i, b + i)
    if flag:
        tl.store(out + 17, flag + 1)
    tl.store(out + 18, flag * 5)


@triton.jit
def doubles(out, x, n):
    i = tl.arange(0, 4)
    v = tl.load(x + i)
    tl.static_assert((v * 0.1).dtype == tl.float64)
    tl.store(out + i, v * 0.1 + 1e-300)
    tl.store(out + 4 + i, tl.exp(v) + tl.sqrt(tl.abs(v)))
    tl.store(out + 8 + i, tl.where(v > 1, v, n) / 3)
    tl.store(out + 12, tl.sum(v) + tl.max(v, 0))
    tl.store(out + 13, tl.sum(v.to(tl.float32)))


@triton.jit
def halves(out, x, y):
    i = tl.arange(0, 4)
    a = tl.load(x + i)
    b = tl.load(y + i)
    s = a * a + 1
    t = b * b + 1
    tl.static_assert(s.dtype == tl.float16 and t.dtype == tl.bfloat16)
    tl.store(out + i, s)
    tl.store(out + 4 + i, t)
    tl.store(out + 8 + i, tl.sum(a, 0) + a)
    tl.store(out + 12 + i, tl.where(a > 1.5, a, -a) + tl.maximum(b, 0))
    tl.store(out + 16 + i, a % 1.5)
    tl.store(out + 20 + i, (a / 3).to(tl.float16) + (b - 0.5).to(tl.float32))


@triton.jit
def long_integers(out, x, u):
    i = tl.arange(0, 4)
    a = tl.load(x + i)
    b = tl.load(u + i)
    tl.store(out + i, a // 7 * 10 + a % 7)
    tl.store(out + 4 + i, (b // 10).to(tl.int64))
    tl.store(out + 8 + i, (b >> 60).to(tl.int64) + (a >> 62))
    tl.store(out + 12 + i, tl.umulhi(b, b).to(tl.int64))
    tl.store(out + 16 + i, a * a)
    tl.store(out + 20 + i, (a.to(tl.float32)).to(tl.int64))
    tl.store(out + 24 + i, -2147483648 + a * 0 + i)


@triton.jit
def ones(out, x):
    i = tl.arange(0, 1)
    v = tl.load(x + i)
    tl.store(out + i, v * 2)
    tl.store(out + 1, tl.sum(v) + tl.max(v, 0))
    w = tl.load(x + 1 + i)[:, None] + tl.zeros((1, 4), tl.float32)
    tl.store(out + 2 + tl.arange(0, 4)[None, :], w)


@triton.jit
def more_shapes(out, x):
    r = tl.arange(0, 4)
    c = tl.arange(0, 4)
    v = tl.load(x + r[:, None] * 4 + c)
    at = r[:, None] * 4 + c
    tl.store(out + at, tl.gather(v, (at * 7) % 4, 1))
    tl.store(out + 16 + at, tl.gather(v, (at * 5) % 4, 0))
    tl.store(out + 32 + at, tl.flip(v, 1))
    tl.store(out + 48 + at, tl.sort(v, dim=1, descending=True))
    tl.store(out + 64 + at, tl.cumprod(v % 3 + 1, 0))
    t = tl.trans(v.reshape(2, 2, 4), 0, 2, 1)
    tl.store(out + 80 + at, t.reshape(4, 4))
    tl.store(out + 96 + at, tl.permute(v, (1, 0)))
    j = tl.join(v, v + 100)
    a, b = tl.split(j)
    tl.store(out + 112 + at, a + b)
    tl.store(out + 128 + at, tl.sum(tl.expand_dims(v, [0, 3]), 1).reshape(1, 4) + tl.zeros((4, 4), tl.int32))
    tl.store(out + 144 + r[:, None] * 8 + tl.arange(0, 8), tl.interleave(v, -v))
    tl.store(out + 176 + tl.arange(0, 8), tl.histogram(tl.ravel(v) % 8, 8, mask=tl.ravel(v) > 4))


@triton.jit
def scalar_map(x, y):
    if x > y:
        return x - y
    return x * y


@triton.jit
def ranges(out, n, m):
    k = 0
    for i in tl.range(n, flatten=True):
        k += 1
    for i in range(5, 5):
        k += 1000
    for i in range(n, 0, -2):
        k += i * 10
    for i in tl.static_range(6, 0, -3):
        k += i * 100
    for i in range(m, m + 3):
        k += (i - m).to(tl.int32) * 10000
    tl.store(out, k)
    total = tl.zeros((4,), tl.int32)
    for i in tl.range(0, n, 3, num_stages=3, loop_unroll_factor=2):
        total += i + tl.arange(0, 4)
    tl.store(out + 1 + tl.arange(0, 4), total)


@triton.jit
def state_step(state, x):
    mean, count = state
    count = count + 1
    return mean + (x - mean) / count, count


@triton.jit
def nested_state(out, x, n):
    state = (0.0, 0.0)
    best = Stats(-1e30, 0.0)
    i = 0
    while i < n:
        for j in range(2):
            v = tl.load(x + i + j)
            state = state_step(state, v)
            if v > best.mean:
                best = Stats(v, (i + j).to(tl.float32))
        i += 2
    tl.store(out, state[0])
    tl.store(out + 1, state[1])
    tl.store(out + 2, best.mean)
    tl.store(out + 3, best.count)


@triton.jit
def pointers_compared(out, a, b):
    tl.store(out, (a == b).to(tl.int32))
    tl.store(out + 1, (a + 4 > a).to(tl.int32))
    tl.store(out + 2, (a.to(tl.int64) % 4).to(tl.int32))
    p = a
    for _ in range(2):
        p += 1
    tl.store(out + 3, tl.load(p))
    e = a + 4
    last = 0
    while p < e:
        last = tl.load(p)
        p += 1
    tl.store(out + 4, last)


@triton.jit
def matrices(out, a, b, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, TRANSPOSED: tl.constexpr, DTYPE: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    x = tl.load(a + m[:, None] * K + k)
    if TRANSPOSED:
        y = tl.load(b + n[:, None] * K + k).T
    else:
        y = tl.load(b + k[:, None] * N + n)
    acc = tl.full((M, N), 1.0, DTYPE)
    acc = tl.dot(x, y, acc=acc, out_dtype=DTYPE)
    tl.store(out + m[:, None] * N + n, acc)


@triton.jit
def scaled_softmax(out_ptr, in_ptr, in_stride, out_stride, n_rows, n_cols, BLOCK_SIZE: tl.constexpr, num_stages: tl.constexpr):
    row_start = tl.program_id(0)
    row_step = tl.num_programs(0)
    for row_idx in tl.range(row_start, n_rows, row_step, num_stages=num_stages):
        row_start_ptr = in_ptr + row_idx * in_stride
        col_offsets = tl.arange(0, BLOCK_SIZE)
        input_ptrs = row_start_ptr + col_offsets
        mask = col_offsets < n_cols
        row = tl.load(input_ptrs, mask=mask, other=-float('inf'))
        row_minus_max = row - tl.max(row, axis=0)
        numerator = tl.exp(row_minus_max)
        denominator = tl.sum(numerator, axis=0)
        tl.store(out_ptr + row_idx * out_stride + col_offsets, numerator / denominator, mask=mask)


@triton.jit
def stores_of_kinds(out8, out16, outh, x):
    i = tl.arange(0, 4)
    v = tl.load(x + i)
    tl.store(out8 + i, v)
    tl.store(out16 + i, v * 2)
    tl.store(outh + i, v.to(tl.int32))
    tl.store(out8 + 4, 300 % 256 - 256)
    tl.store(outh + 4, True)
    tl.store(out16 + 4, 2.75)


@triton.jit
def larger_of(a, b):
    if a > b:
        return a
    return b


@triton.jit
def nearer(v1, i1, v2, i2):
    first = v1 * v1 < v2 * v2
    if first:
        v, i = v1, i1
    elif v1 * v1 == v2 * v2:
        v = v1
        i = i1 if i1 < i2 else i2
    else:
        v, i = v2, i2
    return v, i


@triton.jit
def combine_conditions(out, x):
    i = tl.arange(0, 8)
    v = tl.load(x + i)
    tl.store(out, tl.reduce(v, 0, larger_of))
    tl.store(out + 1 + i, tl.associative_scan(v, 0, larger_of))
    value, index = tl.reduce((v, i), 0, nearer)
    tl.store(out + 9, value)
    tl.store(out + 10, index)


@triton.jit
def running_best(out, at, x, n, BLOCK: tl.constexpr):
    # A scan and an argument in a loop whose number of rounds the data decide.
    i = tl.arange(0, BLOCK)
    start = 0
    best = -float("inf")
    where = 0
    carried = 0.0
    while (start < n) & (carried < 40.0):
        v = tl.load(x + start + i, mask=start + i < n, other=0.0)
        sums = tl.cumsum(v, 0) + carried
        tl.store(out + start + i, sums, mask=start + i < n)
        carried += tl.sum(v, 0)
        shown = tl.where(start + i < n, sums, -float("inf"))
        largest, place = tl.max(shown, 0, return_indices=True)
        if largest > best:
            best = largest
            where = start + place
        start += BLOCK
    tl.store(at, where)
    tl.store(at + 1, start)


@triton.jit
def halves_of(v, N: tl.constexpr):
    even, odd = tl.split(tl.reshape(v, (N // 2, 2)))
    return even, odd


@triton.jit
def butterfly(v, LOG: tl.constexpr):
    for stage in tl.static_range(LOG):
        a, b = halves_of(v, 1 << LOG)
        v = tl.reshape(tl.join(a + b, a - b), (1 << LOG,))
    return v


@triton.jit
def hadamard(out, x, LOG: tl.constexpr):
    i = tl.arange(0, 1 << LOG)
    tl.store(out + i, butterfly(tl.load(x + i), LOG))


@triton.constexpr_function
def digits(n, base):
    found = []
    while n:
        found = [n % base] + found
        n //= base
    return found


@triton.jit
def by_digits(out, x, N: tl.constexpr):
    # Horner's rule over the digits of a constant, which a function at compile time finds.
    i = tl.arange(0, 4)
    v = tl.load(x + i)
    y = tl.zeros_like(v)
    for k in tl.static_range(len(digits(N, 3))):
        y = y * v + digits(N, 3)[k]
    tl.store(out + i, y)


@triton.jit
def sorted_runs(out, ranks, x, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    r, c = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    v = tl.load(x + r[:, None] * COLUMNS + c)
    s = tl.sort(v, dim=1, descending=True)
    tl.store(out + r[:, None] * COLUMNS + c, s)
    below = (v[:, None, :] > v[:, :, None]).to(tl.int32)
    rank = tl.sum(below, 2)
    tl.store(ranks + r[:, None] * COLUMNS + c, rank)
    # What stands at its rank: the same as sorted, as no two are equal.
    tl.store(out + ROWS * COLUMNS + r[:, None] * COLUMNS + c, tl.gather(s, rank, 1) - v)


@triton.jit
def counted_bins(out, x, n, BINS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n, other=0)
    h = tl.histogram(v, BINS, mask=i < n)
    b = tl.arange(0, BINS)
    tl.atomic_add(out + b, h, mask=h > 0)
    tl.atomic_max(out + BINS + b // 2, h, sem="relaxed")


@triton.jit
def welford(m0, s0, n0, m1, s1, n1):
    n = n0 + n1
    part = tl.where(n > 0, n1 / n, 0.0)
    d = m1 - m0
    return m0 + d * part, s0 + s1 + d * d * n0 * part, n


@triton.jit
def moments(out, x, rows, columns, R: tl.constexpr, C: tl.constexpr):
    r = tl.program_id(0) * R + tl.arange(0, R)
    mean = tl.zeros((R, C), tl.float32)
    square = tl.zeros((R, C), tl.float32)
    count = tl.zeros((R, C), tl.float32)
    for start in range(0, columns, C):
        c = start + tl.arange(0, C)
        inside = (r[:, None] < rows) & (c < columns)
        v = tl.load(x + r[:, None] * columns + c, inside, 0.0)
        m, s, n = welford(mean, square, count, v, tl.zeros_like(v), 1.0)
        mean, square, count = tl.where(inside, m, mean), tl.where(inside, s, square), tl.where(inside, n, count)
    mean, square, count = tl.reduce((mean, square, count), 1, welford)
    tl.store(out + r, mean, r < rows)
    tl.store(out + rows + r, square / count, r < rows)


@triton.jit
def small_products(out, a, b, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, PRECISION: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    x = tl.load(a + m[:, None] * K + k)
    y = tl.load(b + k[:, None] * N + n)
    z = tl.dot(x, y, input_precision=PRECISION) if PRECISION != "none" else tl.dot(x, y)
    z = tl.dot(x, y * 2, acc=z, input_precision="ieee") if PRECISION == "ieee" else z + z
    tl.store(out + m[:, None] * N + n, z)


@triton.jit
def batched(out, a, b, B: tl.constexpr, M: tl.constexpr):
    i, m = tl.arange(0, B)[:, None, None], tl.arange(0, M)
    x = tl.load(a + i * M * M + m[:, None] * M + m)
    y = tl.load(b + i * M * M + m[:, None] * M + m)
    z = tl.dot(x, tl.permute(y, 0, 2, 1), out_dtype=tl.float32)
    tl.store(out + i * M * M + m[:, None] * M + m, z)
    tl.store(out + B * M * M + tl.arange(0, M), tl.max(tl.sum(z, 0), 1))


@triton.jit
def tiles_by_descriptor(out, x, rows, columns, R: tl.constexpr, C: tl.constexpr):
    src = tl.make_tensor_descriptor(x, [rows, columns], [columns, 1], [R, C])
    dst = tl.make_tensor_descriptor(out, [columns, rows], [rows, 1], [C, R])
    tiles = tl.cdiv(rows, R) * tl.cdiv(columns, C)
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0)):
        r, c = tile // tl.cdiv(columns, C) * R, tile % tl.cdiv(columns, C) * C
        v = src.load([r, c])
        dst.store([c, r], tl.trans(v * 2 + 1))


@triton.jit
def dropped(out, x, p, seed, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, i < n)
    a, b, c, d = tl.rand4x(seed, i)
    keep = (a > p) | ((b > p) & (c > d))
    tl.store(out + i, tl.where(keep, v / (1 - p), 0.0), i < n)
    word = tl.randint(seed, i * 7)
    tl.store(out + n + i, (word & 0xFFFF).to(tl.float32), i < n)


@triton.jit
def pick(x, KIND: tl.constexpr):
    if KIND == "square":
        return x * x, 1
    elif KIND == "sign":
        return tl.where(x > 0, 1.0, tl.where(x < 0, -1.0, 0.0)), 2
    else:
        tl.static_assert(KIND == "none")
        return x, 0


@triton.jit
def picked(out, x, A: tl.constexpr, B: tl.constexpr):
    i = tl.arange(0, 8)
    v = tl.load(x + i)
    both = (pick(v, A), pick(v, B))
    for k in tl.static_range(2):
        value, number = both[k]
        tl.store(out + k * 9 + i, value * (k + 1))
        tl.store(out + k * 9 + 8, number)


@triton.jit
def ring_of_three(out, x, n):
    # Tuples carried by a loop, exchanged in each round.
    i = tl.arange(0, 4)
    state = (tl.load(x + i), tl.load(x + 4 + i), tl.load(x + 8 + i))
    for k in range(n):
        a, b, c = state
        if k % 2 == 0:
            state = (b, c, a + b)
        else:
            state = (c, tl.minimum(a, b), tl.maximum(a, b))
    for k in tl.static_range(3):
        tl.store(out + k * 4 + i, state[k])


@triton.jit
def three_dimensions(out, x, D: tl.constexpr, H: tl.constexpr, W: tl.constexpr):
    d, h, w = tl.arange(0, D), tl.arange(0, H), tl.arange(0, W)
    v = tl.load(x + d[:, None, None] * H * W + h[None, :, None] * W + w[None, None, :])
    least, where = tl.min(v, 1, return_indices=True)
    tl.store(out + d[:, None] * W + w, least * 100 + where)
    flipped = tl.flip(tl.ravel(tl.permute(v, (2, 0, 1))), 0)
    tl.store(out + D * W + tl.arange(0, D * H * W), flipped)
    x = tl.xor_sum(tl.xor_sum(v, 2), 0)
    tl.store(out + D * W + D * H * W + h, x)
    scanned = tl.associative_scan(v, 1, larger_of, reverse=True)
    tl.store(out + D * W + D * H * W + H + tl.arange(0, D * W), tl.ravel(tl.sum(scanned, 1)))
