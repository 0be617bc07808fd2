"""One kernel for the attention of many models: sequences of different lengths in one array, heads that share keys, a window, sinks, a cap.

q and out are tokens x heads x D, k and v tokens x kv_heads x D; `begins` has where each sequence begins, and the end of the last
one. Exponents are of base two: `scale` is log2(e) times the usual one, and so are `sinks`, one number a head that takes part in the sum
as a score without a value.
"""
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def varied(out, q_ptr, k_ptr, v_ptr, begins, sinks, heads, kv_heads, window, scale, cap, CAUSAL: tl.constexpr,
           WINDOW: tl.constexpr, SINKS: tl.constexpr, CAP: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    # WINDOW: only the last `window` keys count, the own one among them (CAUSAL only). CAP: scores become cap * tanh(score / cap), where
    # cap is in the units of the scaled scores.
    sequence = tl.program_id(2)
    head = tl.program_id(1)
    begin = tl.load(begins + sequence)
    length = tl.load(begins + sequence + 1) - begin
    row = tl.program_id(0) * BM
    if row >= length:
        return
    m = row + tl.arange(0, BM)
    d = tl.arange(0, D)
    n = tl.arange(0, BN)
    stride = heads * D
    kv_stride = kv_heads * D
    kv_head = head // (heads // kv_heads)
    q_ptr += begin.to(tl.int64) * stride + head * D
    out += begin.to(tl.int64) * stride + head * D
    k_ptr += begin.to(tl.int64) * kv_stride + kv_head * D
    v_ptr += begin.to(tl.int64) * kv_stride + kv_head * D
    q = tl.load(q_ptr + m[:, None] * stride + d[None, :], mask=m[:, None] < length, other=0.0)
    acc = tl.zeros((BM, D), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    top = tl.full((BM,), -1e30, dtype=tl.float32)
    if SINKS:
        top = tl.full((BM,), 0.0, dtype=tl.float32) + tl.load(sinks + head)
        total += 1.0
    first = 0
    last = length
    if CAUSAL:
        last = min(row + BM, length)
    if WINDOW:
        first = max(row + 1 - window, 0) // BN * BN
    for start in range(first, last, BN):
        key = start + n
        k = tl.load(k_ptr + key[None, :] * kv_stride + d[:, None], mask=key[None, :] < length, other=0.0)
        scores = tl.dot(q, k) * scale
        if CAP:
            scores = cap * libdevice.tanh(scores / cap)
        seen = key[None, :] < length
        if CAUSAL:
            seen = seen & (key[None, :] <= m[:, None])
        if WINDOW:
            seen = seen & (key[None, :] > m[:, None] - window)
        scores = tl.where(seen, scores, -1e30)
        now = tl.maximum(top, tl.max(scores, 1))
        p = tl.where(seen, tl.exp2(scores - now[:, None]), 0.0)
        shrink = tl.exp2(top - now)
        total = total * shrink + tl.sum(p, 1)
        v = tl.load(v_ptr + key[:, None] * kv_stride + d[None, :], mask=key[:, None] < length, other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc * shrink[:, None])
        top = now
    tl.store(out + m[:, None] * stride + d[None, :], (acc / total[:, None]).to(out.dtype.element_ty), mask=m[:, None] < length)


# run: varied "*fp16, *fp16, *fp16, *fp16, *i32, *fp32, i32, i32, i32, fp32, fp32, True, True, True, True, 16, 16, 32" : grid(3,4,2) out=f16[7168] poison q_ptr=f16[7168] normal(1) k_ptr=f16[3584] normal(2) v_ptr=f16[3584] normal(3) begins=i32[3] [0,37,56] sinks=f32[4] normal(4) heads=4 kv_heads=2 window=20 scale=0.25 cap=2.0
# run: varied "*bf16, *bf16, *bf16, *bf16, *i32, *fp32, i32, i32, i32, fp32, fp32, False, False, False, False, 32, 16, 16" : grid(2,2,2) out=bf16[1792] poison q_ptr=bf16[1792] normal(1) k_ptr=bf16[1792] normal(2) v_ptr=bf16[1792] normal(3) begins=i32[3] [0,37,56] sinks=f32[2] normal(4) heads=2 kv_heads=2 window=0 scale=0.25 cap=0.0
