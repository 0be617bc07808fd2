"""Kernels of seven patterns, five of each, as users write them: one text for Tilelift and for Triton."""
import triton
import triton.language as tl
from triton.language.extra import libdevice


# Arg-reductions along the slow axis.


@triton.jit
def argmax_columns(out, x, rows, columns, R: tl.constexpr, C: tl.constexpr):
    c = tl.program_id(0) * C + tl.arange(0, C)
    r = tl.arange(0, R)
    mask = (r[:, None] < rows) & (c[None, :] < columns)
    v = tl.load(x + r[:, None] * columns + c[None, :], mask=mask, other=float("-inf"))
    tl.store(out + c, tl.argmax(v, axis=0), mask=c < columns)


@triton.jit
def argmin_columns_loop(out, x, rows, columns, R: tl.constexpr, C: tl.constexpr):
    c = tl.program_id(0) * C + tl.arange(0, C)
    best = tl.full([C], float("inf"), tl.float32)
    best_at = tl.zeros([C], tl.int32)
    for start in range(0, rows, R):
        r = start + tl.arange(0, R)
        mask = (r[:, None] < rows) & (c[None, :] < columns)
        v = tl.load(x + r[:, None] * columns + c[None, :], mask=mask, other=float("inf")).to(tl.float32)
        least, at = tl.min(v, axis=0, return_indices=True)
        better = least < best
        best = tl.where(better, least, best)
        best_at = tl.where(better, at + start, best_at)
    tl.store(out + c, best_at, mask=c < columns)


@triton.jit
def argmax_middle(out, x, middle, columns, B: tl.constexpr, M: tl.constexpr, C: tl.constexpr):
    b = tl.program_id(0) * B + tl.arange(0, B)
    m = tl.arange(0, M)
    c = tl.program_id(1) * C + tl.arange(0, C)
    at = b[:, None, None] * middle * columns + m[None, :, None] * columns + c[None, None, :]
    mask = (m[None, :, None] < middle) & (c[None, None, :] < columns)
    v = tl.load(x + at, mask=mask, other=float("-inf"))
    to = b[:, None] * columns + c[None, :]
    tl.store(out + to, tl.argmax(v, axis=1), mask=c[None, :] < columns)


@triton.jit
def max_and_index(values, indices, x, rows, columns, R: tl.constexpr, C: tl.constexpr):
    batch = tl.program_id(1)
    c = tl.program_id(0) * C + tl.arange(0, C)
    r = tl.arange(0, R)
    mask = (r[:, None] < rows) & (c[None, :] < columns)
    v = tl.load(x + batch * rows * columns + r[:, None] * columns + c[None, :], mask=mask, other=-2147483648)
    m, i = tl.max(v, axis=0, return_indices=True)
    tl.store(values + batch * columns + c, m, mask=c < columns)
    tl.store(indices + batch * columns + c, i, mask=c < columns)


@triton.jit
def _larger(a, va, ia, b, vb, ib):
    first = (a > b) | ((a == b) & (ia < ib))
    return tl.where(first, a, b), tl.where(first, va, vb), tl.where(first, ia, ib)


@triton.jit
def signed_peak(values, indices, x, rows, columns, R: tl.constexpr, C: tl.constexpr):
    c = tl.program_id(0) * C + tl.arange(0, C)
    r = tl.arange(0, R)
    mask = (r[:, None] < rows) & (c[None, :] < columns)
    v = tl.load(x + r[:, None] * columns + c[None, :], mask=mask, other=0.0).to(tl.float32)
    at = tl.broadcast_to(r[:, None], [R, C])
    _, peak, where = tl.reduce((tl.abs(v), v, at), 0, _larger)
    tl.store(values + c, peak, mask=c < columns)
    tl.store(indices + c, where, mask=c < columns)


# A masked vector times a thin matrix.


@triton.jit
def vector_matrix(out, x, w, k, n, K: tl.constexpr, N: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, N)
    acc = tl.zeros([N], tl.float32)
    for start in range(0, k, K):
        ks = start + tl.arange(0, K)
        v = tl.load(x + row * k + ks, mask=ks < k, other=0.0).to(tl.float32)
        m = tl.load(w + ks[:, None] * n + cols[None, :], mask=(ks[:, None] < k) & (cols[None, :] < n), other=0.0).to(tl.float32)
        acc += tl.sum(v[:, None] * m, axis=0)
    tl.store(out + row * n + cols, acc, mask=cols < n)


@triton.jit
def tall_times_vector(out, a, x, m, n, M: tl.constexpr, N: tl.constexpr):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    cols = tl.arange(0, N)
    v = tl.load(x + cols, mask=cols < n, other=0.0).to(tl.float32)
    t = tl.load(a + rows[:, None] * n + cols[None, :], mask=(rows[:, None] < m) & (cols[None, :] < n), other=0.0).to(tl.float32)
    tl.store(out + rows, tl.sum(t * v[None, :], axis=1), mask=rows < m)


@triton.jit
def gated_columns(out, gate, a, k, n, K: tl.constexpr, N: tl.constexpr):
    program = tl.program_id(0)
    ks = program * K + tl.arange(0, K)
    cols = tl.arange(0, N)
    g = tl.load(gate + ks, mask=ks < k, other=0.0).to(tl.float32)
    kept = (ks < k) & (g > 0)
    t = tl.load(a + ks[:, None] * n + cols[None, :], mask=kept[:, None] & (cols[None, :] < n), other=0.0)
    tl.store(out + program * n + cols, tl.sum(g[:, None] * t.to(tl.float32), axis=0), mask=cols < n)


@triton.jit
def batched_vector_matrix(out, x, a, k, n, K: tl.constexpr, N: tl.constexpr):
    batch = tl.program_id(0)
    cols = tl.arange(0, N)
    acc = tl.zeros([K, N], tl.float32)
    for start in range(0, k, K):
        ks = start + tl.arange(0, K)
        v = tl.load(x + batch * k + ks, mask=ks < k, other=0.0)
        t = tl.load(a + batch * k * n + ks[:, None] * n + cols[None, :], mask=(ks < k)[:, None] & (cols < n)[None, :], other=0.0)
        acc += v[:, None].to(tl.float32) * t.to(tl.float32)
    tl.store(out + batch * n + cols, tl.sum(acc, 0), mask=cols < n)


@triton.jit
def rows_by_thin(out, x, w, m, k, n, M: tl.constexpr, K: tl.constexpr, N: tl.constexpr):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    cols = tl.arange(0, N)
    acc = tl.zeros([M, N], tl.float32)
    for start in range(0, k, K):
        ks = start + tl.arange(0, K)
        v = tl.load(x + rows[:, None] * k + ks[None, :], mask=(rows[:, None] < m) & (ks[None, :] < k), other=0.0).to(tl.float32)
        t = tl.load(w + ks[:, None] * n + cols[None, :], mask=(ks[:, None] < k) & (cols[None, :] < n), other=0.0).to(tl.float32)
        acc += tl.sum(v[:, :, None] * t[None, :, :], axis=1)
    tl.store(out + rows[:, None] * n + cols[None, :], acc, mask=(rows[:, None] < m) & (cols[None, :] < n))


# Rowwise backward passes.


@triton.jit
def softmax_backward(dx, dy, y, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < columns
    p = tl.load(y + row * columns + at, mask=mask, other=0.0).to(tl.float32)
    g = tl.load(dy + row * columns + at, mask=mask, other=0.0).to(tl.float32)
    s = tl.sum(p * g, axis=0)
    tl.store(dx + row * columns + at, p * (g - s), mask=mask)


@triton.jit
def rms_norm_backward(dx, dy, x, weight, scale, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < columns
    v = tl.load(x + row * columns + at, mask=mask, other=0.0).to(tl.float32)
    g = tl.load(dy + row * columns + at, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(weight + at, mask=mask, other=0.0).to(tl.float32)
    r = tl.load(scale + row)
    wg = w * g
    mean = tl.sum(wg * v, axis=0) / columns
    tl.store(dx + row * columns + at, r * (wg - v * (r * r * mean)), mask=mask)


@triton.jit
def unit_backward(dx, dy, x, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    mask = at < columns
    v = tl.load(x + row * columns + at, mask=mask, other=0.0).to(tl.float32)
    g = tl.load(dy + row * columns + at, mask=mask, other=0.0).to(tl.float32)
    inverse = 1.0 / tl.sqrt(tl.sum(v * v, axis=0) + eps)
    n = v * inverse
    d = (g - n * tl.sum(n * g, axis=0)) * inverse
    tl.store(dx + row * columns + at, d, mask=mask)


@triton.jit
def log_softmax_backward(dx, dy, y, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(dy + row * columns + at, mask=at < columns, other=0.0).to(tl.float32)
    s = tl.sum(total, axis=0)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        g = tl.load(dy + row * columns + at, mask=at < columns, other=0.0).to(tl.float32)
        v = tl.load(y + row * columns + at, mask=at < columns, other=0.0).to(tl.float32)
        tl.store(dx + row * columns + at, g - tl.exp(v) * s, mask=at < columns)


@triton.jit
def layer_norm_dx(dx, dy, x, weight, mean, scale, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < columns
    v = tl.load(x + row * columns + at, mask=mask, other=0.0).to(tl.float32)
    g = tl.load(dy + row * columns + at, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(weight + at, mask=mask, other=0.0).to(tl.float32)
    m = tl.load(mean + row)
    r = tl.load(scale + row)
    hat = tl.where(mask, (v - m) * r, 0.0)
    wg = tl.where(mask, w * g, 0.0)
    c1 = tl.sum(hat * wg, axis=0) / columns
    c2 = tl.sum(wg, axis=0) / columns
    tl.store(dx + row * columns + at, (wg - (hat * c1 + c2)) * r, mask=mask)


# Quantise and transpose.


@triton.jit
def quantise_tile_transposed(out, scales, x, rows, columns, R: tl.constexpr, C: tl.constexpr):
    pr, pc = tl.program_id(0), tl.program_id(1)
    r = pr * R + tl.arange(0, R)
    c = pc * C + tl.arange(0, C)
    mask = (r[:, None] < rows) & (c[None, :] < columns)
    v = tl.load(x + r[:, None] * columns + c[None, :], mask=mask, other=0.0).to(tl.float32)
    scale = tl.maximum(tl.max(tl.max(tl.abs(v), axis=1), axis=0), 1e-10) / 127.0
    q = libdevice.rint(v / scale).to(tl.int8)
    tl.store(out + c[None, :] * rows + r[:, None], q, mask=mask)
    tl.store(scales + pr * tl.num_programs(1) + pc, scale)


@triton.jit
def cast_both_ways(out, turned, x, scale, rows, columns, R: tl.constexpr, C: tl.constexpr):
    r = tl.program_id(0) * R + tl.arange(0, R)
    c = tl.program_id(1) * C + tl.arange(0, C)
    mask = (r[:, None] < rows) & (c[None, :] < columns)
    v = tl.load(x + r[:, None] * columns + c[None, :], mask=mask, other=0.0).to(tl.float32)
    q = (v * tl.load(scale)).to(out.dtype.element_ty)
    tl.store(out + r[:, None] * columns + c[None, :], q, mask=mask)
    tl.store(turned + c[:, None] * rows + r[None, :], tl.trans(q), mask=tl.trans(mask))


@triton.jit
def quantise_rows_transposed(out, scales, x, rows, columns, R: tl.constexpr, C: tl.constexpr):
    r = tl.program_id(0) * R + tl.arange(0, R)
    c = tl.arange(0, C)
    mask = (r[:, None] < rows) & (c[None, :] < columns)
    v = tl.load(x + r[:, None] * columns + c[None, :], mask=mask, other=0.0).to(tl.float32)
    scale = tl.maximum(tl.max(tl.abs(v), axis=1), 1e-10) / 127.0
    q = libdevice.rint(v / scale[:, None]).to(tl.int8)
    tl.store(out + c[:, None] * rows + r[None, :], q.T, mask=mask.T)
    tl.store(scales + r, scale, mask=r < rows)


@triton.jit
def quantise_from_zero(out, scales, zeros, x, rows, columns, R: tl.constexpr, C: tl.constexpr):
    r = tl.arange(0, R)
    c = tl.program_id(0) * C + tl.arange(0, C)
    mask = (r[:, None] < rows) & (c[None, :] < columns)
    v = tl.load(x + r[:, None] * columns + c[None, :], mask=mask, other=0.0).to(tl.float32)
    low = tl.min(v, axis=0)
    scale = tl.maximum(tl.max(v, axis=0) - low, 1e-6) / 255.0
    q = tl.floor((v - low[None, :]) / scale[None, :] + 0.5).to(tl.uint8)
    tl.store(out + c[:, None] * rows + r[None, :], tl.trans(q), mask=tl.trans(mask))
    tl.store(scales + c, scale, mask=c < columns)
    tl.store(zeros + c, low, mask=c < columns)


@triton.jit
def dequantise_transposed(out, x, scales, rows, columns, R: tl.constexpr, C: tl.constexpr):
    r = tl.program_id(0) * R + tl.arange(0, R)
    c = tl.program_id(1) * C + tl.arange(0, C)
    mask = (r[:, None] < rows) & (c[None, :] < columns)
    q = tl.load(x + r[:, None] * columns + c[None, :], mask=mask, other=0)
    s = tl.load(scales + r, mask=r < rows, other=0.0)
    v = q.to(tl.float32) * s[:, None]
    tl.store(out + c[:, None] * rows + r[None, :], tl.trans(v).to(out.dtype.element_ty), mask=(c[:, None] < columns) & (r[None, :] < rows))


# One query against paged keys.


@triton.jit
def paged_scores(out, query, keys, table, length, pages, scale, PAGE: tl.constexpr, D: tl.constexpr):
    sequence, head, heads = tl.program_id(0), tl.program_id(1), tl.num_programs(1)
    d = tl.arange(0, D)
    t = tl.arange(0, PAGE)
    q = tl.load(query + (sequence * heads + head) * D + d).to(tl.float32)
    for i in range(0, tl.cdiv(length, PAGE)):
        page = tl.load(table + sequence * pages + i)
        k = tl.load(keys + ((page * heads + head) * PAGE + t[:, None]) * D + d[None, :]).to(tl.float32)
        s = tl.sum(q[None, :] * k, axis=1) * scale
        tl.store(out + (sequence * heads + head) * length + i * PAGE + t, s, mask=i * PAGE + t < length)


@triton.jit
def paged_attention(out, query, keys, values, table, lengths, pages, scale, PAGE: tl.constexpr, D: tl.constexpr):
    sequence, head, heads = tl.program_id(0), tl.program_id(1), tl.num_programs(1)
    length = tl.load(lengths + sequence)
    d = tl.arange(0, D)
    t = tl.arange(0, PAGE)
    q = tl.load(query + (sequence * heads + head) * D + d).to(tl.float32) * scale
    largest = -float("inf")
    total = 0.0
    acc = tl.zeros([D], tl.float32)
    for i in range(0, tl.cdiv(length, PAGE)):
        page = tl.load(table + sequence * pages + i).to(tl.int64)
        at = ((page * heads + head) * PAGE + t[:, None]) * D + d[None, :]
        inside = i * PAGE + t < length
        k = tl.load(keys + at, mask=inside[:, None], other=0.0).to(tl.float32)
        s = tl.where(inside, tl.sum(q[None, :] * k, axis=1), -float("inf"))
        new = tl.maximum(largest, tl.max(s, axis=0))
        p = tl.exp(s - new)
        old = tl.exp(largest - new)
        v = tl.load(values + at, mask=inside[:, None], other=0.0).to(tl.float32)
        acc = acc * old + tl.sum(p[:, None] * v, axis=0)
        total = total * old + tl.sum(p, axis=0)
        largest = new
    tl.store(out + (sequence * heads + head) * D + d, acc / total)


@triton.jit
def paged_attention_tokens(out, query, keys, values, table, lengths, pages, scale, PAGE: tl.constexpr, T: tl.constexpr, D: tl.constexpr):
    sequence, head, heads = tl.program_id(0), tl.program_id(1), tl.num_programs(1)
    length = tl.load(lengths + sequence)
    d = tl.arange(0, D)
    q = tl.load(query + (sequence * heads + head) * D + d)
    largest = tl.full([1], -float("inf"), tl.float32)
    total = tl.zeros([1], tl.float32)
    acc = tl.zeros([D], tl.float32)
    for start in range(0, length, T):
        t = start + tl.arange(0, T)
        inside = t < length
        page = tl.load(table + sequence * pages + t // PAGE, mask=inside, other=0)
        at = ((page * PAGE + t % PAGE) * heads + head)[:, None] * D + d[None, :]
        k = tl.load(keys + at, mask=inside[:, None], other=0.0)
        s = tl.sum(q[None, :].to(tl.float32) * k.to(tl.float32), axis=1) * scale
        s = tl.where(inside, s, -float("inf"))
        new = tl.maximum(largest, tl.max(s, axis=0))
        p = tl.exp(s - new)
        old = tl.exp(largest - new)
        v = tl.load(values + at, mask=inside[:, None], other=0.0)
        acc = acc * old + tl.sum(p[:, None] * v.to(tl.float32), axis=0)
        total = total * old + tl.sum(p, axis=0)
        largest = new
    tl.store(out + (sequence * heads + head) * D + d, acc / total)


@triton.jit
def paged_attention_part(out, peaks, sums, query, keys, values, table, length, pages, scale,
                         PART: tl.constexpr, PAGE: tl.constexpr, D: tl.constexpr):
    sequence, head, part = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    heads, parts = tl.num_programs(1), tl.num_programs(2)
    d = tl.arange(0, D)
    t = part * PART + tl.arange(0, PART)
    inside = t < length
    q = tl.load(query + (sequence * heads + head) * D + d).to(tl.float32) * scale
    page = tl.load(table + sequence * pages + t // PAGE, mask=inside, other=0)
    at = (page[:, None] * heads + head) * (PAGE * D) + (t % PAGE)[:, None] * D + d[None, :]
    k = tl.load(keys + at, mask=inside[:, None], other=0.0).to(tl.float32)
    s = tl.where(inside, tl.sum(k * q[None, :], 1), -float("inf"))
    peak = tl.max(s, 0)
    p = tl.exp(s - peak)
    v = tl.load(values + at, mask=inside[:, None], other=0.0).to(tl.float32)
    to = (sequence * heads + head) * parts + part
    tl.store(out + to * D + d, tl.sum(p[:, None] * v, 0))
    tl.store(peaks + to, peak)
    tl.store(sums + to, tl.sum(p, 0))


@triton.jit
def paged_scores_i8(out, query, keys, scales, table, length, pages, PAGE: tl.constexpr, D: tl.constexpr):
    sequence, head, heads = tl.program_id(0), tl.program_id(1), tl.num_programs(1)
    d = tl.arange(0, D)
    t = tl.arange(0, PAGE)
    q = tl.load(query + (sequence * heads + head) * D + d).to(tl.float32)
    for i in range(0, tl.cdiv(length, PAGE)):
        page = tl.load(table + sequence * pages + i)
        row = (page * heads + head) * PAGE + t
        k = tl.load(keys + row[:, None] * D + d[None, :]).to(tl.float32)
        s = tl.sum(q[None, :] * k, axis=1) * tl.load(scales + row)
        at = i * PAGE + t
        tl.store(out + (sequence * heads + head) * length + at, s, mask=at < length)


# Normalising one row.


@triton.jit
def rms_norm_passes(out, x, weight, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        v = tl.load(x + row * columns + at, mask=at < columns, other=0.0).to(tl.float32)
        total += v * v
    r = tl.rsqrt(tl.sum(total, axis=0) / columns + eps)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        mask = at < columns
        v = tl.load(x + row * columns + at, mask=mask, other=0.0).to(tl.float32)
        w = tl.load(weight + at, mask=mask, other=0.0).to(tl.float32)
        tl.store(out + row * columns + at, v * r * w, mask=mask)


@triton.jit
def layer_norm_row(out, x, weight, bias, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < columns
    v = tl.load(x + row * columns + at, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(v, axis=0) / columns
    c = tl.where(mask, v - mean, 0.0)
    r = 1 / tl.sqrt(tl.sum(c * c, axis=0) / columns + eps)
    w = tl.load(weight + at, mask=mask)
    b = tl.load(bias + at, mask=mask)
    tl.store(out + row * columns + at, c * r * w + b, mask=mask)


@triton.jit
def unit_row(out, x, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < columns
    v = tl.load(x + row * columns + at, mask=mask, other=0.0).to(tl.float32)
    length = tl.sqrt_rn(tl.sum(v * v, axis=0))
    tl.store(out + row * columns + at, v / tl.maximum(length, 1e-12), mask=mask)


@triton.jit
def standardise_row(out, x, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    first = tl.zeros([BLOCK], tl.float32)
    second = tl.zeros([BLOCK], tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        v = tl.load(x + row * columns + at, mask=at < columns, other=0.0).to(tl.float32)
        first += v
        second += v * v
    mean = tl.sum(first, axis=0) / columns
    var = tl.sum(second, axis=0) / columns - mean * mean
    r = tl.rsqrt(var + eps)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        v = tl.load(x + row * columns + at, mask=at < columns, other=0.0).to(tl.float32)
        tl.store(out + row * columns + at, (v - mean) * r, mask=at < columns)


@triton.jit
def softmax_online(out, x, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    largest = -float("inf")
    total = 0.0
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        v = tl.load(x + row * columns + at, mask=at < columns, other=-float("inf")).to(tl.float32)
        new = tl.maximum(largest, tl.max(v, axis=0))
        total = total * tl.exp(largest - new) + tl.sum(tl.exp(v - new), axis=0)
        largest = new
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        v = tl.load(x + row * columns + at, mask=at < columns, other=-float("inf")).to(tl.float32)
        tl.store(out + row * columns + at, tl.exp(v - largest) / total, mask=at < columns)


# Transcendental functions over vectors.


@triton.jit
def gelu_tanh(out, x, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n).to(tl.float32)
    t = libdevice.tanh(0.7978845608028654 * (v + 0.044715 * v * v * v))
    tl.store(out + at, 0.5 * v * (1 + t), mask=at < n)


@triton.jit
def polar(out, radius, angle, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    r = tl.load(radius + at, mask=mask).to(tl.float32)
    a = tl.load(angle + at, mask=mask).to(tl.float32)
    tl.store(out + at, r * tl.cos(a), mask=mask)
    tl.store(out + n + at, r * tl.sin(a), mask=mask)


@triton.jit
def mish(out, x, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n).to(tl.float32)
    soft = libdevice.log1p(tl.exp(v))
    tl.store(out + at, v * libdevice.tanh(soft), mask=at < n)


@triton.jit
def gelu_erf(out, x, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n).to(tl.float32)
    tl.store(out + at, v * 0.5 * (1.0 + tl.erf(v * 0.7071067811865476)), mask=at < n)


@triton.jit
def power_angle(out, x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    a = tl.load(x + at, mask=mask).to(tl.float32)
    b = tl.load(y + at, mask=mask).to(tl.float32)
    tl.store(out + at, libdevice.pow(tl.abs(a) + 0.5, b) + libdevice.atan2(a, b), mask=mask)


@triton.jit
def entropy(out, x, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    p = tl.sigmoid(tl.load(x + at, mask=mask).to(tl.float32))
    tl.store(out + at, -(p * tl.log(p) + (1 - p) * tl.log2(1 - p)), mask=mask)


@triton.jit
def hyperbolic(out, x, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    v = tl.load(x + at, mask=mask).to(tl.float32)
    tl.store(out + at, libdevice.asinh(v) + libdevice.expm1(v) + libdevice.sinh(v) * libdevice.erfc(v), mask=mask)
