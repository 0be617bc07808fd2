"""Pieces of transformers: rotary embedding, SwiGLU, embedding look-up, dropout, cross entropy."""
import triton
import triton.language as tl


@triton.jit
def rotary(x, cos, sin, heads, HALF: tl.constexpr):
    # Rotates the pairs (i, i + HALF) of each head in place; one token per program.
    token = tl.program_id(0)
    at = tl.arange(0, HALF)
    c = tl.load(cos + token * HALF + at)
    s = tl.load(sin + token * HALF + at)
    for head in range(heads):
        first = x + (token * heads + head) * (2 * HALF) + at
        second = first + HALF
        a = tl.load(first).to(tl.float32)
        b = tl.load(second).to(tl.float32)
        tl.store(first, a * c - b * s)
        tl.store(second, b * c + a * s)


@triton.jit
def silu(v):
    return v * tl.sigmoid(v)


@triton.jit
def swiglu(out, gate, up, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = at < columns
    g = tl.load(gate + row * columns + at, mask=mask).to(tl.float32)
    u = tl.load(up + row * columns + at, mask=mask)
    tl.store(out + row * columns + at, silu(g).to(u.dtype) * u, mask=mask)


@triton.jit
def embedding(out, table, index, rows, columns, BLOCK: tl.constexpr):
    token = tl.program_id(0)
    row = tl.load(index + token)
    tl.device_assert((row >= 0) & (row < rows), "index out of range")
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        mask = at < columns
        tl.store(out + token * columns + at, tl.load(table + row * columns + at, mask=mask), mask=mask)


@triton.jit
def dropout(out, x, n, p, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    v = tl.load(x + at, mask=mask)
    keep = tl.rand(seed, at) > p
    tl.store(out + at, tl.where(keep, v / (1 - p), 0.0), mask=mask)


@triton.jit
def cross_entropy(loss, logits, target, stride, columns, ignored, BLOCK: tl.constexpr):
    # The loss of one row; the gradient replaces the logits. The maximum and the sum are found in one pass.
    row = tl.program_id(0)
    logits += row * stride
    label = tl.load(target + row)
    if label == ignored:
        for start in range(0, columns, BLOCK):
            at = start + tl.arange(0, BLOCK)
            tl.store(logits + at, 0.0, mask=at < columns)
        tl.store(loss + row, 0.0)
        return
    largest = float("-inf")
    total = 0.0
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        v = tl.load(logits + at, mask=at < columns, other=float("-inf")).to(tl.float32)
        new = tl.maximum(largest, tl.max(v, axis=0))
        total = total * tl.exp(largest - new) + tl.sum(tl.exp(v - new), axis=0)
        largest = new
    chosen = tl.load(logits + label).to(tl.float32)
    tl.debug_barrier()
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        mask = at < columns
        v = tl.load(logits + at, mask=mask, other=float("-inf")).to(tl.float32)
        p = tl.exp(v - largest) / total
        tl.store(logits + at, tl.where(at == label, p - 1.0, p), mask=mask)
    tl.store(loss + row, largest + tl.log(total) - chosen)


# run: rotary "*fp32, *fp32, *fp32, i32, 16" : grid(2) x=f32[192] normal(1) cos=f32[32] uniform(2,-1,1) sin=f32[32] uniform(3,-1,1) heads=3
# run: swiglu "*fp16, *fp16, *fp16, i32, 64" : grid(2,2) out=f16[200] poison gate=f16[200] normal(1) up=f16[200] normal(2) columns=100
# run: embedding "*fp32, *fp32, *i64, i32, i32, 32" : grid(3) out=f32[150] poison table=f32[500] normal(1) index=i64[3] [7,0,9] rows=10 columns=50
# run: embedding "*fp32, *fp32, *i64, i32, i32, 32" : grid(1) out=f32[50] poison table=f32[500] normal(1) index=i64[1] [10] rows=10 columns=50 ; expect error index out of range
# run: dropout "*fp32, *fp32, i32, fp32, i32, 128" : grid(2) out=f32[200] poison x=f32[200] normal(1) n=200 p=0.25 seed=7
# run: cross_entropy "*fp32, *fp32, *i64, i32, i32, i32, 32" : grid(3) loss=f32[3] poison logits=f32[240] normal(1) target=i64[3] [5,-100,79] stride=80 columns=80 ignored=-100
