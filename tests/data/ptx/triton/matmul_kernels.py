"""Products of matrices and attention in the Triton language: one source for Triton and for Tilelift."""
import triton
import triton.language as tl


@triton.jit
def matmul(a_ptr, b_ptr, c_ptr, M, N, K, lda, ldb, ldc, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
           GROUP: tl.constexpr):
    pid = tl.program_id(0)
    rows, columns = tl.cdiv(M, BM), tl.cdiv(N, BN)
    group = GROUP * columns
    first = pid // group * GROUP
    size = min(rows - first, GROUP)
    row = first + pid % group % size
    column = pid % group // size
    m = (row * BM + tl.arange(0, BM)) % M
    n = (column * BN + tl.arange(0, BN)) % N
    k = tl.arange(0, BK)
    a = a_ptr + m[:, None] * lda + k[None, :]
    b = b_ptr + k[:, None] * ldb + n[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for i in range(0, tl.cdiv(K, BK)):
        x = tl.load(a, mask=k[None, :] < K - i * BK, other=0.0)
        y = tl.load(b, mask=k[:, None] < K - i * BK, other=0.0)
        acc = tl.dot(x, y, acc)
        a += BK
        b += BK * ldb
    m = row * BM + tl.arange(0, BM)
    n = column * BN + tl.arange(0, BN)
    c = c_ptr + m[:, None] * ldc + n[None, :]
    tl.store(c, acc.to(c_ptr.dtype.element_ty), mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def attention(q_ptr, k_ptr, v_ptr, out_ptr, N, scale, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    head = tl.program_id(1) * N * D
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.arange(0, BN)
    d = tl.arange(0, D)
    q = tl.load(q_ptr + head + m[:, None] * D + d[None, :])
    k_at = k_ptr + head + n[None, :] * D + d[:, None]
    v_at = v_ptr + head + n[:, None] * D + d[None, :]
    acc = tl.zeros((BM, D), dtype=tl.float32)
    largest = tl.full((BM,), -1e30, dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    for _ in range(0, N, BN):
        scores = tl.dot(q, tl.load(k_at)) * scale
        now = tl.maximum(largest, tl.max(scores, 1))
        shrink = tl.exp2(largest - now)
        p = tl.exp2(scores - now[:, None])
        total = total * shrink + tl.sum(p, 1)
        acc = tl.dot(p.to(tl.float16), tl.load(v_at), acc * shrink[:, None])
        largest = now
        k_at += BN * D
        v_at += BN * D
    tl.store(out_ptr + head + m[:, None] * D + d[None, :], (acc / total[:, None]).to(tl.float16))


@triton.jit
def matmul_described(a_desc, b_desc, c_desc, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
                     SPECIALISED: tl.constexpr):
    """The same by descriptors, with a warp of its own that loads, if so wanted."""
    m = tl.program_id(0) * BM
    n = tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in tl.range(0, K, BK, warp_specialize=SPECIALISED):
        acc = tl.dot(a_desc.load([m, k]), b_desc.load([k, n]), acc)
    c_desc.store([m, n], acc.to(tl.float16))
