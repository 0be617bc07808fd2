"""Attention that never writes its scores: softmax(q @ k.T * scale) @ v, and its derivatives.

Each head is a matrix of N x D, contiguous; N is a multiple of all blocks. Exponents are of base two, so that `scale` is
log2(e) times the usual one; the logarithms that `forward` writes for `backward` are of base two as well.
"""
import triton
import triton.language as tl


@triton.jit
def attend(acc, total, largest, q, k_ptr, v_ptr, rows, begin, end, scale, BN: tl.constexpr, D: tl.constexpr,
           DIAGONAL: tl.constexpr):
    # Adds the columns from begin to end; across the diagonal later columns are left out.
    d = tl.arange(0, D)
    for start in range(begin, end, BN):
        n = start + tl.arange(0, BN)
        scores = tl.dot(q, tl.load(k_ptr + n[None, :] * D + d[:, None]))
        if DIAGONAL:
            scores = tl.where(rows[:, None] >= n[None, :], scores, -1e30)
        now = tl.maximum(largest, tl.max(scores, 1) * scale)
        p = tl.exp2(scores * scale - now[:, None])
        shrink = tl.exp2(largest - now)
        total = total * shrink + tl.sum(p, 1)
        v = tl.load(v_ptr + n[:, None] * D + d[None, :])
        acc = tl.dot(p.to(v.dtype), v, acc * shrink[:, None])
        largest = now
    return acc, total, largest


@triton.jit
def forward(out, logs, q_ptr, k_ptr, v_ptr, N, scale, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr,
            CAUSAL: tl.constexpr):
    head = tl.program_id(1).to(tl.int64)
    block = tl.program_id(0)
    if CAUSAL:  # the longest rows first
        block = tl.num_programs(0) - 1 - block
    q_ptr += head * N * D
    k_ptr += head * N * D
    v_ptr += head * N * D
    rows = block * BM + tl.arange(0, BM)
    at = rows[:, None] * D + tl.arange(0, D)[None, :]
    q = tl.load(q_ptr + at)
    acc = tl.zeros((BM, D), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    largest = tl.full((BM,), -1e30, dtype=tl.float32)
    if CAUSAL:
        middle = block * BM // BN * BN
        end = middle + (BM if BM > BN else BN)
        acc, total, largest = attend(acc, total, largest, q, k_ptr, v_ptr, rows, 0, middle, scale, BN, D, False)
        acc, total, largest = attend(acc, total, largest, q, k_ptr, v_ptr, rows, middle, end, scale, BN, D, True)
    else:
        acc, total, largest = attend(acc, total, largest, q, k_ptr, v_ptr, rows, 0, N, scale, BN, D, False)
    tl.store(out + head * N * D + at, (acc / total[:, None]).to(out.dtype.element_ty))
    tl.store(logs + head * N + rows, largest + tl.log2(total))


@triton.jit
def forward_few_bits(out, q_ptr, k_ptr, v_ptr, k_scales, v_scales, N, scale, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    # Keys and values of 8 bits (integers or fp8), as caches keep them, with a scale for each row. Scales meet the scores.
    head = tl.program_id(1).to(tl.int64)
    q_ptr += head * N * D
    k_ptr += head * N * D
    v_ptr += head * N * D
    k_scales += head * N
    v_scales += head * N
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    at = rows[:, None] * D + d[None, :]
    q = tl.load(q_ptr + at)
    acc = tl.zeros((BM, D), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    largest = tl.full((BM,), -1e30, dtype=tl.float32)
    for start in range(0, N, BN):
        n = start + tl.arange(0, BN)
        k = tl.load(k_ptr + n[None, :] * D + d[:, None]).to(q.dtype)
        scores = tl.dot(q, k) * (tl.load(k_scales + n) * scale)[None, :]
        now = tl.maximum(largest, tl.max(scores, 1))
        p = tl.exp2(scores - now[:, None])
        shrink = tl.exp2(largest - now)
        total = total * shrink + tl.sum(p, 1)
        v = tl.load(v_ptr + n[:, None] * D + d[None, :]).to(q.dtype)
        p *= tl.load(v_scales + n)[None, :]
        acc = tl.dot(p.to(q.dtype), v, acc * shrink[:, None])
        largest = now
    tl.store(out + head * N * D + at, (acc / total[:, None]).to(out.dtype.element_ty))


@triton.jit
def preprocess(delta, out, dout, BM: tl.constexpr, D: tl.constexpr):
    # delta = sum(out * dout) of each row of all heads.
    rows = tl.program_id(0).to(tl.int64) * BM + tl.arange(0, BM)
    at = rows[:, None] * D + tl.arange(0, D)[None, :]
    tl.store(delta + rows, tl.sum(tl.load(out + at).to(tl.float32) * tl.load(dout + at).to(tl.float32), 1))


@triton.jit
def pull_keys(dk, dv, k, v, q_ptr, dout_ptr, logs, delta, columns, begin, end, scale, BM: tl.constexpr, D: tl.constexpr,
              DIAGONAL: tl.constexpr):
    # What the rows from begin to end ask of one block of columns. Scores are transposed, so that they stay in registers.
    d = tl.arange(0, D)
    for start in range(begin, end, BM):
        m = start + tl.arange(0, BM)
        q = tl.load(q_ptr + m[:, None] * D + d[None, :])
        dout = tl.load(dout_ptr + m[:, None] * D + d[None, :])
        s = tl.dot(k, tl.trans(q))
        dp = tl.dot(v, tl.trans(dout))
        p = tl.exp2(s * scale - tl.load(logs + m)[None, :])
        if DIAGONAL:
            p = tl.where(m[None, :] >= columns[:, None], p, 0.0)
        dv = tl.dot(p.to(dout.dtype), dout, dv)
        ds = p * (dp - tl.load(delta + m)[None, :])
        dk = tl.dot(ds.to(q.dtype), q, dk)
    return dk, dv


@triton.jit
def backward_keys(dk_ptr, dv_ptr, q_ptr, k_ptr, v_ptr, dout_ptr, logs, delta, N, scale, BM: tl.constexpr, BN: tl.constexpr,
                  D: tl.constexpr, CAUSAL: tl.constexpr):
    # Derivatives by k and v. A program owns BN columns and walks the rows in steps of BM, which divides BN.
    head = tl.program_id(1).to(tl.int64)
    first = tl.program_id(0) * BN
    columns = first + tl.arange(0, BN)
    at = head * N * D + columns[:, None] * D + tl.arange(0, D)[None, :]
    k = tl.load(k_ptr + at)
    v = tl.load(v_ptr + at)
    q_ptr += head * N * D
    dout_ptr += head * N * D
    logs += head * N
    delta += head * N
    dk = tl.zeros((BN, D), dtype=tl.float32)
    dv = tl.zeros((BN, D), dtype=tl.float32)
    begin = 0
    if CAUSAL:
        begin = first + BN
        dk, dv = pull_keys(dk, dv, k, v, q_ptr, dout_ptr, logs, delta, columns, first, begin, scale, BM, D, True)
    dk, dv = pull_keys(dk, dv, k, v, q_ptr, dout_ptr, logs, delta, columns, begin, N, scale, BM, D, False)
    tl.store(dv_ptr + at, dv.to(dv_ptr.dtype.element_ty))
    tl.store(dk_ptr + at, (dk * (scale * 0.6931471805599453)).to(dk_ptr.dtype.element_ty))


@triton.jit
def pull_rows(dq, q, dout, k_ptr, v_ptr, logs, delta, rows, begin, end, scale, BN: tl.constexpr, D: tl.constexpr,
              DIAGONAL: tl.constexpr):
    d = tl.arange(0, D)
    for start in range(begin, end, BN):
        n = start + tl.arange(0, BN)
        k = tl.load(k_ptr + n[:, None] * D + d[None, :])
        p = tl.exp2(tl.dot(q, tl.trans(k)) * scale - logs[:, None])
        if DIAGONAL:
            p = tl.where(rows[:, None] >= n[None, :], p, 0.0)
        v = tl.load(v_ptr + n[None, :] * D + d[:, None])
        ds = p * (tl.dot(dout, v) - delta[:, None])
        dq = tl.dot(ds.to(k.dtype), k, dq)
    return dq


@triton.jit
def backward_rows(dq_ptr, q_ptr, k_ptr, v_ptr, dout_ptr, logs, delta, N, scale, BM: tl.constexpr, BN: tl.constexpr,
                  D: tl.constexpr, CAUSAL: tl.constexpr):
    # The derivative by q. A program owns BM rows and walks the columns in steps of BN, which divides BM.
    head = tl.program_id(1).to(tl.int64)
    first = tl.program_id(0) * BM
    rows = first + tl.arange(0, BM)
    at = head * N * D + rows[:, None] * D + tl.arange(0, D)[None, :]
    q = tl.load(q_ptr + at)
    dout = tl.load(dout_ptr + at)
    log = tl.load(logs + head * N + rows)
    own = tl.load(delta + head * N + rows)
    k_ptr += head * N * D
    v_ptr += head * N * D
    dq = tl.zeros((BM, D), dtype=tl.float32)
    end = N
    if CAUSAL:
        end = first
        dq = pull_rows(dq, q, dout, k_ptr, v_ptr, log, own, rows, first, first + BM, scale, BN, D, True)
    dq = pull_rows(dq, q, dout, k_ptr, v_ptr, log, own, rows, 0, end, scale, BN, D, False)
    tl.store(dq_ptr + at, (dq * (scale * 0.6931471805599453)).to(dq_ptr.dtype.element_ty))


@triton.jit
def pull_all(dk, dv, dq, k, v, q_ptr, dout_ptr, logs, delta, columns, row, begin, end, scale, BM: tl.constexpr, D: tl.constexpr,
             DIAGONAL: tl.constexpr):
    # As `pull_keys`; what the rows get of this block of columns is added to `dq`, in which the head begins at `row`.
    d = tl.arange(0, D)
    for start in range(begin, end, BM):
        m = start + tl.arange(0, BM)
        q = tl.load(q_ptr + m[:, None] * D + d[None, :])
        dout = tl.load(dout_ptr + m[:, None] * D + d[None, :])
        s = tl.dot(k, tl.trans(q))
        dp = tl.dot(v, tl.trans(dout))
        p = tl.exp2(s * scale - tl.load(logs + m)[None, :])
        if DIAGONAL:
            p = tl.where(m[None, :] >= columns[:, None], p, 0.0)
        dv = tl.dot(p.to(dout.dtype), dout, dv)
        ds = (p * (dp - tl.load(delta + m)[None, :])).to(q.dtype)
        own = tl.dot(tl.trans(ds), k)
        dk = tl.dot(ds, q, dk)
        dq.atomic_add([row + start, 0], own)
    return dk, dv


@triton.jit
def backward(dk_ptr, dv_ptr, dq_ptr, q_ptr, k_ptr, v_ptr, dout_ptr, logs, delta, N, scale, BM: tl.constexpr, BN: tl.constexpr,
             D: tl.constexpr, CAUSAL: tl.constexpr):
    # All derivatives in one pass over the scores. `dq` is of f32 and zero before; `finish` scales and rounds it. The order of its sums
    # differs from run to run. A program owns BN columns and walks the rows in steps of BM, which divides BN.
    head = tl.program_id(1)
    first = tl.program_id(0) * BN
    columns = first + tl.arange(0, BN)
    at = head.to(tl.int64) * N * D + columns[:, None] * D + tl.arange(0, D)[None, :]
    k = tl.load(k_ptr + at)
    v = tl.load(v_ptr + at)
    q_ptr += head.to(tl.int64) * N * D
    dout_ptr += head.to(tl.int64) * N * D
    logs += head.to(tl.int64) * N
    delta += head.to(tl.int64) * N
    row = head * N
    dq = tl.make_tensor_descriptor(dq_ptr, [tl.num_programs(1) * N, D], [D, 1], [BM, D])
    dk = tl.zeros((BN, D), dtype=tl.float32)
    dv = tl.zeros((BN, D), dtype=tl.float32)
    begin = 0
    if CAUSAL:
        begin = first + BN
        dk, dv = pull_all(dk, dv, dq, k, v, q_ptr, dout_ptr, logs, delta, columns, row, first, begin, scale, BM, D, True)
    dk, dv = pull_all(dk, dv, dq, k, v, q_ptr, dout_ptr, logs, delta, columns, row, begin, N, scale, BM, D, False)
    tl.store(dv_ptr + at, dv.to(dv_ptr.dtype.element_ty))
    tl.store(dk_ptr + at, (dk * (scale * 0.6931471805599453)).to(dk_ptr.dtype.element_ty))


@triton.jit
def finish(dq_ptr, sums, scale, BM: tl.constexpr, D: tl.constexpr):
    # The derivative by q of what `backward` added up, for rows of all heads.
    at = tl.program_id(0).to(tl.int64) * (BM * D) + tl.arange(0, BM * D)
    tl.store(dq_ptr + at, (tl.load(sums + at) * (scale * 0.6931471805599453)).to(dq_ptr.dtype.element_ty))


# run: forward "*fp16, *fp32, *fp16, *fp16, *fp16, i32, fp32, 32, 32, 16, True" : grid(2,2) out=f16[2048] poison logs=f32[128] poison q_ptr=f16[2048] normal(1) k_ptr=f16[2048] normal(2) v_ptr=f16[2048] normal(3) N=64 scale=0.3
# run: forward_few_bits "*fp16, *fp16, *i8, *i8, *fp32, *fp32, i32, fp32, 32, 32, 16" : grid(5,1) out=f16[2560] poison q_ptr=f16[2560] normal(1) k_ptr=i8[2560] uniform(2,-128,127) v_ptr=i8[2560] uniform(3,-128,127) k_scales=f32[160] uniform(4,0.01,0.02) v_scales=f32[160] uniform(5,0.01,0.02) N=160 scale=0.3
# run: preprocess "*fp32, *fp16, *fp16, 32, 16" : grid(2) delta=f32[64] poison out=f16[1024] normal(1) dout=f16[1024] normal(2)
# run: backward_keys "*fp16, *fp16, *fp16, *fp16, *fp16, *fp16, *fp32, *fp32, i32, fp32, 32, 32, 16, False" : grid(1,1) dk_ptr=f16[512] poison dv_ptr=f16[512] poison q_ptr=f16[512] normal(1) k_ptr=f16[512] normal(2) v_ptr=f16[512] normal(3) dout_ptr=f16[512] normal(4) logs=f32[32] uniform(5,3,4) delta=f32[32] normal(6) N=32 scale=0.3
# run: backward_rows "*fp16, *fp16, *fp16, *fp16, *fp16, *fp32, *fp32, i32, fp32, 32, 32, 16, True" : grid(1,1) dq_ptr=f16[512] poison q_ptr=f16[512] normal(1) k_ptr=f16[512] normal(2) v_ptr=f16[512] normal(3) dout_ptr=f16[512] normal(4) logs=f32[32] uniform(5,3,4) delta=f32[32] normal(6) N=32 scale=0.3
# run: backward "*fp16, *fp16, *fp32, *fp16, *fp16, *fp16, *fp16, *fp32, *fp32, i32, fp32, 32, 32, 16, True" : grid(2,2) dk_ptr=f16[2048] poison dv_ptr=f16[2048] poison dq_ptr=f32[2048] zeros q_ptr=f16[2048] normal(1) k_ptr=f16[2048] normal(2) v_ptr=f16[2048] normal(3) dout_ptr=f16[2048] normal(4) logs=f32[128] uniform(5,3,4) delta=f32[128] normal(6) N=64 scale=0.3
# run: finish "*fp16, *fp32, fp32, 32, 16" : grid(2) dq_ptr=f16[1024] poison sums=f32[1024] normal(1) scale=0.3
