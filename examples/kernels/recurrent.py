"""Recurrences over chunks, whose state stays in registers, and a convolution that gathers its patches.

q and k are heads x length x D, v and out heads x length x E; length is a multiple of CHUNK. A program computes BE columns of one head:
the state of D x BE sums, and per chunk what its rows take from the state and from each other.
"""
import triton
import triton.language as tl


@triton.jit
def retention(out, q_ptr, k_ptr, v_ptr, decays, length, D: tl.constexpr, E: tl.constexpr, CHUNK: tl.constexpr, BE: tl.constexpr):
    # out[i] = sum over j <= i of decay**(i - j) (q[i] . k[j]) v[j]; `decays` has log2 of each head's decay, 0 for linear attention.
    head = tl.program_id(1)
    rate = tl.load(decays + head)
    rows = tl.arange(0, CHUNK)
    d = tl.arange(0, D)
    e = tl.program_id(0) * BE + tl.arange(0, BE)
    q_ptr += head * length * D
    k_ptr += head * length * D
    v_ptr += head * length * E
    out += head * length * E
    apart = (rows[:, None] - rows[None, :]).to(tl.float32)
    within = tl.where(apart >= 0, tl.exp2(rate * apart), 0.0)
    since = tl.exp2(rate * (rows + 1).to(tl.float32))
    until = tl.exp2(rate * (CHUNK - 1 - rows).to(tl.float32))
    whole = tl.exp2(rate * CHUNK)
    state = tl.zeros((D, BE), dtype=tl.float32)
    for start in range(0, length, CHUNK):
        at = start + rows
        q = tl.load(q_ptr + at[:, None] * D + d[None, :])
        k = tl.load(k_ptr + at[:, None] * D + d[None, :])
        v = tl.load(v_ptr + at[:, None] * E + e[None, :])
        scores = tl.dot(q, tl.trans(k)) * within
        result = tl.dot(q, state.to(q.dtype)) * since[:, None]
        result = tl.dot(scores.to(v.dtype), v, result)
        late = (v * until[:, None]).to(v.dtype)
        state = tl.dot(tl.trans(k), late, state * whole)
        tl.store(out + at[:, None] * E + e[None, :], result)


@triton.jit
def gated(out, c_ptr, b_ptr, x_ptr, gates, length, D: tl.constexpr, E: tl.constexpr, CHUNK: tl.constexpr, BE: tl.constexpr):
    # A selective state space: state = 2**gate[i] * state + b[i] x[i]^T, out[i] = c[i]^T state; gates is heads x length, at most 0.
    head = tl.program_id(1)
    rows = tl.arange(0, CHUNK)
    d = tl.arange(0, D)
    e = tl.program_id(0) * BE + tl.arange(0, BE)
    c_ptr += head * length * D
    b_ptr += head * length * D
    x_ptr += head * length * E
    out += head * length * E
    state = tl.zeros((D, BE), dtype=tl.float32)
    for start in range(0, length, CHUNK):
        at = start + rows
        gate = tl.load(gates + head * length + at)
        so_far = tl.cumsum(gate, 0)
        whole = tl.sum(gate, 0)
        c = tl.load(c_ptr + at[:, None] * D + d[None, :])
        b = tl.load(b_ptr + at[:, None] * D + d[None, :])
        x = tl.load(x_ptr + at[:, None] * E + e[None, :])
        within = tl.where(rows[:, None] >= rows[None, :], tl.exp2(so_far[:, None] - so_far[None, :]), 0.0)
        scores = tl.dot(c, tl.trans(b)) * within
        result = tl.dot(c, state.to(c.dtype)) * tl.exp2(so_far)[:, None]
        result = tl.dot(scores.to(x.dtype), x, result)
        late = (x * tl.exp2(whole - so_far)[:, None]).to(x.dtype)
        state = tl.dot(tl.trans(b), late, state * tl.exp2(whole))
        tl.store(out + at[:, None] * E + e[None, :], result)


@triton.jit
def convolve(out, x_ptr, w_ptr, batch, height, width, channels, filters, SIDE: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
             BK: tl.constexpr):
    # x is batch x height x width x channels, w filters x SIDE x SIDE x channels, out batch x height x width x filters; outside of the
    # picture there are zeros, and channels is a multiple of BK.
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    pixels = batch * height * width
    row = m // width % height
    column = m % width
    parts = channels // BK
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for step in range(0, SIDE * SIDE * parts):
        place = step // parts
        c = step % parts * BK + k
        down = place // SIDE - SIDE // 2
        right = place % SIDE - SIDE // 2
        y = row + down
        x = column + right
        inside = (m < pixels) & (y >= 0) & (y < height) & (x >= 0) & (x < width)
        patch = tl.load(x_ptr + (m + down * width + right)[:, None] * channels + c[None, :], mask=inside[:, None], other=0.0)
        weight = tl.load(w_ptr + n[None, :] * (SIDE * SIDE * channels) + place * channels + c[:, None], mask=n[None, :] < filters, other=0.0)
        acc = tl.dot(patch, weight, acc)
    tl.store(out + m[:, None] * filters + n[None, :], acc, mask=(m[:, None] < pixels) & (n[None, :] < filters))


@triton.jit
def convolve_taps(out, x_ptr, w_ptr, batch, height, width, channels, filters, SIDE: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
                  BK: tl.constexpr):
    # The same as a nest of loops, which becomes one.
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    pixels = batch * height * width
    row = m // width % height
    column = m % width
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for i in range(SIDE):
        for j in range(SIDE):
            y = row + i - SIDE // 2
            x = column + j - SIDE // 2
            inside = (m < pixels) & (y >= 0) & (y < height) & (x >= 0) & (x < width)
            pixel = m + (i - SIDE // 2) * width + j - SIDE // 2
            tap = (i * SIDE + j) * channels
            for start in range(0, channels, BK):
                c = start + k
                patch = tl.load(x_ptr + pixel[:, None] * channels + c[None, :], mask=inside[:, None], other=0.0)
                weight = tl.load(w_ptr + n[None, :] * (SIDE * SIDE * channels) + tap + c[:, None], mask=n[None, :] < filters, other=0.0)
                acc = tl.dot(patch, weight, acc)
    tl.store(out + m[:, None] * filters + n[None, :], acc, mask=(m[:, None] < pixels) & (n[None, :] < filters))


# run: retention "*fp32, *fp16, *fp16, *fp16, *fp32, i32, 16, 32, 16, 16" : grid(2,2) out=f32[4096] poison q_ptr=f16[2048] normal(1) k_ptr=f16[2048] normal(2) v_ptr=f16[4096] normal(3) decays=f32[2] [0.0,-0.125] length=64
# run: gated "*bf16, *bf16, *bf16, *bf16, *fp32, i32, 16, 16, 32, 16" : grid(1,2) out=bf16[2048] poison c_ptr=bf16[2048] normal(1) b_ptr=bf16[2048] normal(2) x_ptr=bf16[2048] normal(3) gates=f32[128] uniform(4,-1,0) length=64
# run: convolve "*fp16, *fp16, *fp16, i32, i32, i32, i32, i32, 3, 32, 16, 16" : grid(3,2) out=f16[1680] poison x_ptr=f16[2240] normal(1) w_ptr=f16[6912] normal(2) batch=2 height=5 width=7 channels=32 filters=24
# run: convolve_taps "*fp16, *fp16, *fp16, i32, i32, i32, i32, i32, 3, 32, 16, 16" : grid(3,2) out=f16[1680] poison x_ptr=f16[2240] normal(1) w_ptr=f16[6912] normal(2) batch=2 height=5 width=7 channels=32 filters=24
