"""Order and counts: largest elements by sorting, running sums, histograms."""
import triton
import triton.language as tl


@triton.jit
def top_k(values, indices, x, columns, K: tl.constexpr, BLOCK: tl.constexpr):
    # A number and its place are one integer: the order of the upper half is that of the numbers.
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * columns + at, mask=at < columns, other=float("-inf"))
    bits = v.to(tl.int32, bitcast=True)
    key = tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits)
    pair = (key.to(tl.int64) << 32) | (BLOCK - 1 - at).to(tl.int64)
    pair = tl.sort(pair, descending=True)
    key = (pair >> 32).to(tl.int32)
    bits = tl.where(key < 0, key ^ 0x7FFFFFFF, key)
    place = BLOCK - 1 - (pair & 0xFFFFFFFF).to(tl.int32)
    tl.store(values + row * K + at, bits.to(tl.float32, bitcast=True), mask=at < K)
    tl.store(indices + row * K + at, place, mask=at < K)


@triton.jit
def cumulative_sum(out, x, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    before = 0.0
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        mask = at < columns
        v = tl.load(x + row * columns + at, mask=mask, other=0.0).to(tl.float32)
        tl.store(out + row * columns + at, before + tl.cumsum(v, axis=0), mask=mask)
        before += tl.sum(v, axis=0)


@triton.jit
def histogram(out, x, n, BINS: tl.constexpr, BLOCK: tl.constexpr):
    # Counts of a block first, then one atomic addition for each bin.
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n, other=0)
    counts = tl.histogram(v, BINS, mask=at < n)
    tl.atomic_add(out + tl.arange(0, BINS), counts, sem="relaxed")


@triton.jit
def bincount(out, x, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    v = tl.load(x + at, mask=mask, other=0)
    tl.atomic_add(out + v, 1, mask=mask, sem="relaxed")


# run: top_k "*fp32, *i32, *fp32, i32, 4, 32" : grid(2) values=f32[8] poison indices=i32[8] poison x=f32[40] normal(1) columns=20
# run: cumulative_sum "*fp32, *fp32, i32, 32" : grid(2) out=f32[160] poison x=f32[160] normal(1) columns=80
# run: histogram "*i32, *i32, i32, 8, 64" : grid(2) out=i32[8] zeros x=i32[100] uniform(1,0,7) n=100
# run: bincount "*i32, *i32, i32, 4" : grid(2) out=i32[4] zeros x=i32[6] [0,3,3,1,3,0] n=6 ; expect out = [2,1,0,3]
