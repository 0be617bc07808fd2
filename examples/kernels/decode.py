"""Attention of one step of decoding: one query for each head of each sequence, keys and values in pages of a cache.

The cache is pages x PAGE x KV heads x D. `table` has the pages of a sequence, `most` of them in a row; `lengths` its keys. GROUP heads
of queries share a head of keys and are the rows of a product (ROWS, at least 16, of which GROUP exist). A sequence is cut into parts
of SPAN keys, a multiple of BN; `finish` joins them. Exponents are of base two: `scale` is log2(e) times the usual one.
"""
import triton
import triton.language as tl


@triton.jit
def decode(parts, tops, totals, q_ptr, k_ptr, v_ptr, table, lengths, most, scale, SPAN: tl.constexpr, HEADS: tl.constexpr,
           GROUP: tl.constexpr, ROWS: tl.constexpr, PAGE: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    # HEADS: heads of keys. A part that begins behind the end has no keys, and a total of zero.
    sequence = tl.program_id(0)
    head = tl.program_id(1)
    part = tl.program_id(2)
    g = tl.arange(0, ROWS)
    d = tl.arange(0, D)
    n = tl.arange(0, BN)
    length = tl.load(lengths + sequence)
    first = part * SPAN
    last = min(first + SPAN, length)
    query = (sequence * HEADS + head) * GROUP + g
    q = tl.load(q_ptr + query[:, None] * D + d[None, :], mask=g[:, None] < GROUP, other=0.0)
    acc = tl.zeros((ROWS, D), dtype=tl.float32)
    total = tl.zeros((ROWS,), dtype=tl.float32)
    top = tl.full((ROWS,), -1e30, dtype=tl.float32)
    for start in range(first, last, BN):
        key = start + n
        exists = key < last
        page = tl.load(table + sequence * most + key // PAGE, mask=exists, other=0).to(tl.int64)
        at = ((page * PAGE + key % PAGE) * HEADS + head) * D
        k = tl.load(k_ptr + at[None, :] + d[:, None], mask=exists[None, :], other=0.0)
        scores = tl.where(exists[None, :], tl.dot(q, k) * scale, -1e30)
        now = tl.maximum(top, tl.max(scores, 1))
        p = tl.exp2(scores - now[:, None])
        shrink = tl.exp2(top - now)
        total = total * shrink + tl.sum(p, 1)
        v = tl.load(v_ptr + at[:, None] + d[None, :], mask=exists[:, None], other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc * shrink[:, None])
        top = now
    row = part * tl.num_programs(0) * HEADS * GROUP + query
    tl.store(parts + row[:, None] * D + d[None, :], acc, mask=g[:, None] < GROUP)
    tl.store(tops + row, top, mask=g < GROUP)
    tl.store(totals + row, total, mask=g < GROUP)


@triton.jit
def finish(out, parts, tops, totals, rows, PARTS: tl.constexpr, D: tl.constexpr):
    # Joins the parts of one query.
    row = tl.program_id(0)
    part = tl.arange(0, PARTS)
    d = tl.arange(0, D)
    top = tl.load(tops + part * rows + row)
    weight = tl.exp2(top - tl.max(top, 0))
    total = tl.sum(tl.load(totals + part * rows + row) * weight, 0)
    acc = tl.load(parts + (part * rows + row)[:, None] * D + d[None, :])
    tl.store(out + row * D + d, (tl.sum(acc * weight[:, None], 0) / total).to(out.dtype.element_ty))


# run: decode "*fp32, *fp32, *fp32, *fp16, *fp16, *fp16, *i32, *i32, i32, fp32, 32, 2, 4, 16, 16, 16, 32" : grid(2,2,2) parts=f32[1024] poison tops=f32[32] poison totals=f32[32] poison q_ptr=f16[512] normal(1) k_ptr=f16[6144] normal(2) v_ptr=f16[6144] normal(3) table=i32[6] [3,0,5,2,1,4] lengths=i32[2] [40,17] most=3 scale=0.25
# run: finish "*fp16, *fp32, *fp32, *fp32, i32, 2, 32" : grid(16) out=f16[512] poison parts=f32[1024] normal(1) tops=f32[32] normal(2) totals=f32[32] uniform(3,1,9) rows=16
