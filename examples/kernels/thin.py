"""Products with few rows, such as the tokens of one step of a language model: weights are N x K, K contiguous, and are read once.

ROW is for products that share x and are launched one behind the other, each as a dependent launch of the one ahead (`launch_pdl` in Triton, from
sm_90): a program begins while the launch ahead still runs, and waits for it only before it writes. So x and all weights must be there before
the first product of the row, which is launched as usual.
"""
import triton
import triton.language as tl


@triton.jit
def vector_matrix(out, x, weight, N, K, BN: tl.constexpr, BK: tl.constexpr, ROW: tl.constexpr = False):
    # out = weight @ x for one row x. Sums stay apart for each of BK columns until the end.
    if ROW:
        tl.extra.cuda.gdc_launch_dependents()
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    rows = weight + (n % N).to(tl.int64)[:, None] * K
    acc = tl.zeros((BN, BK), dtype=tl.float32)
    for start in range(0, K, BK):
        at = start + k
        w = tl.load(rows + at[None, :], mask=at[None, :] < K, other=0.0).to(tl.float32)
        acc += w * tl.load(x + at, mask=at < K, other=0.0).to(tl.float32)[None, :]
    if ROW:
        tl.extra.cuda.gdc_wait()
    tl.store(out + n, tl.sum(acc, axis=1).to(out.dtype.element_ty), mask=n < N)


@triton.jit
def share(x, weight, M, N, K, m, n, part, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PARTS: tl.constexpr):
    # A part's share of weight[n] @ x[m].T. The weights are the left operand, whose rows fill the matrix unit, and the few rows of x
    # its columns.
    k = tl.arange(0, BK)
    steps = tl.cdiv(tl.cdiv(K, BK), PARTS)
    first = part * steps * BK
    last = min(first + steps * BK, K)
    w = weight + (n % N)[:, None] * K + k[None, :]
    columns = x + (m % M)[None, :] * K + k[:, None]
    acc = tl.zeros((BN, BM), dtype=tl.float32)
    for start in range(first, last, BK):
        a = tl.load(w + start, mask=k[None, :] < K - start, other=0.0)
        b = tl.load(columns + start, mask=k[:, None] < K - start, other=0.0)
        acc = tl.dot(a, b, acc)
    return acc


@triton.jit
def few_rows(out, x, weight, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PARTS: tl.constexpr, ROW: tl.constexpr = False):
    # out[part] = this part's share of x @ weight.T, for M of at most BM rows; with PARTS = 1 that is the product.
    if ROW:
        tl.extra.cuda.gdc_launch_dependents()
    part = tl.program_id(1)
    m = tl.arange(0, BM)
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    acc = share(x, weight, M, N, K, m, n, part, BM, BN, BK, PARTS)
    if ROW:
        tl.extra.cuda.gdc_wait()
    at = out + (part * M + m)[None, :] * N + n[:, None]
    tl.store(at, acc.to(out.dtype.element_ty), mask=(m[None, :] < M) & (n[:, None] < N))


@triton.jit
def few_rows_by_last(out, parts, counts, x, weight, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PARTS: tl.constexpr,
                     ROW: tl.constexpr = False):
    # The product in one launch: of the programs that share a block the last one adds up all shares, always in the same order. Counts are
    # zero before and after.
    if ROW:
        tl.extra.cuda.gdc_launch_dependents()
    part = tl.program_id(1)
    m = tl.arange(0, BM)
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    acc = share(x, weight, M, N, K, m, n, part, BM, BN, BK, PARTS)
    if ROW:
        tl.extra.cuda.gdc_wait()
    inside = (m[None, :] < M) & (n[:, None] < N)
    at = parts + m[None, :] * N + n[:, None]
    tl.store(at + part * M * N, acc, mask=inside)
    tl.debug_barrier()
    count = counts + tl.program_id(0)
    if tl.atomic_add(count, 1) == PARTS - 1:
        acc = tl.zeros((BN, BM), dtype=tl.float32)
        for i in range(PARTS):
            acc += tl.load(at + i * M * N, mask=inside, other=0.0)
        tl.store(out + m[None, :] * N + n[:, None], acc.to(out.dtype.element_ty), mask=inside)
        tl.store(count, 0)


@triton.jit
def few_rows_by_atomics(out, sums, counts, x, weight, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PARTS: tl.constexpr,
                        ROW: tl.constexpr = False):
    # The same where shares are added as they come, in any order: each program adds its own to `sums` (N x BM), and the last one stores what
    # came of it. That is less to do for the last one where there are many parts. Sums and counts are zero before and after.
    if ROW:
        tl.extra.cuda.gdc_launch_dependents()
    part = tl.program_id(1)
    m = tl.arange(0, BM)
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    acc = share(x, weight, M, N, K, m, n, part, BM, BN, BK, PARTS)
    if ROW:
        tl.extra.cuda.gdc_wait()
    inside = (n[:, None] < N) & (m[None, :] < M)
    at = sums + n[:, None] * BM + m[None, :]
    tl.atomic_add(at, acc, mask=inside, sem="relaxed")
    tl.debug_barrier()
    count = counts + tl.program_id(0)
    if tl.atomic_add(count, 1) == PARTS - 1:
        acc = tl.load(at, mask=inside, other=0.0, cache_modifier=".cg")
        tl.store(at, tl.zeros_like(acc), mask=inside)
        tl.store(out + m[None, :] * N + n[:, None], acc.to(out.dtype.element_ty), mask=inside)
        tl.store(count, 0)


@triton.jit
def sum_parts(out, parts, n, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    # Adds the shares that `few_rows` wrote, always in the same order.
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for part in range(PARTS):
        acc += tl.load(parts + part * n + at, mask=at < n, other=0.0)
    tl.store(out + at, acc.to(out.dtype.element_ty), mask=at < n)


# run: vector_matrix "*fp16, *fp16, *fp16, i32, i32, 8, 64" : grid(4) out=f16[30] poison x=f16[200] normal(1) weight=f16[6000] normal(2) N=30 K=200
# run: vector_matrix "*fp16, *fp16, *fp16, i32, i32, 8, 64, True" : grid(4) out=f16[30] poison x=f16[200] normal(1) weight=f16[6000] normal(2) N=30 K=200
# run: few_rows "*bf16, *bf16, *bf16, i32, i32, i32, 16, 64, 32, 1" : grid(2) out=bf16[500] poison x=bf16[400] normal(1) weight=bf16[8000] normal(2) M=5 N=100 K=80
# run: few_rows "*bf16, *bf16, *bf16, i32, i32, i32, 16, 64, 32, 1, True" : grid(2) out=bf16[500] poison x=bf16[400] normal(1) weight=bf16[8000] normal(2) M=5 N=100 K=80
# run: few_rows "*fp32, *fp16, *fp16, i32, i32, i32, 16, 64, 32, 3" : grid(2,3) out=f32[1500] poison x=f16[400] normal(1) weight=f16[8000] normal(2) M=5 N=100 K=80
# run: few_rows_by_last "*bf16, *fp32, *i32, *bf16, *bf16, i32, i32, i32, 16, 64, 32, 3" : grid(2,3) out=bf16[500] poison parts=f32[1500] poison counts=i32[2] zeros x=bf16[400] normal(1) weight=bf16[8000] normal(2) M=5 N=100 K=80
# run: few_rows_by_last "*bf16, *fp32, *i32, *bf16, *bf16, i32, i32, i32, 16, 64, 32, 3, True" : grid(2,3) out=bf16[500] poison parts=f32[1500] poison counts=i32[2] zeros x=bf16[400] normal(1) weight=bf16[8000] normal(2) M=5 N=100 K=80
# run: few_rows_by_atomics "*bf16, *fp32, *i32, *bf16, *bf16, i32, i32, i32, 16, 64, 32, 3" : grid(2,3) out=bf16[500] poison sums=f32[1600] zeros counts=i32[2] zeros x=bf16[400] normal(1) weight=bf16[8000] normal(2) M=5 N=100 K=80
# run: few_rows_by_atomics "*bf16, *fp32, *i32, *bf16, *bf16, i32, i32, i32, 16, 64, 32, 3, True" : grid(2,3) out=bf16[500] poison sums=f32[1600] zeros counts=i32[2] zeros x=bf16[400] normal(1) weight=bf16[8000] normal(2) M=5 N=100 K=80
# run: sum_parts "*fp16, *fp32, i32, 3, 64" : grid(2) out=f16[100] poison parts=f32[300] normal(1) n=100
