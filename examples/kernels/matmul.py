"""Products of matrices: plain, by programs that walk over blocks, in batches, in groups of different sizes, and cut along K for a few rows."""
import triton
import triton.language as tl


@triton.jit
def place(pid, rows, columns, GROUP: tl.constexpr):
    # Which block a program takes. GROUP rows of blocks are walked column by column, so that what one program reads the
    # next ones find in the L2 cache.
    group = GROUP * columns
    first = pid // group * GROUP
    size = min(rows - first, GROUP)
    return first + pid % group % size, pid % group // size


@triton.jit
def matmul(a_ptr, b_ptr, c_ptr, M, N, K, stride_a, stride_bk, stride_bn, stride_c, BM: tl.constexpr, BN: tl.constexpr,
           BK: tl.constexpr, GROUP: tl.constexpr, SUM: tl.constexpr, PRECISION: tl.constexpr):
    # c = a @ b of any type, summed in SUM. Rows and columns past the end wrap around, so that only K needs a mask.
    row, column = place(tl.program_id(0), tl.cdiv(M, BM), tl.cdiv(N, BN), GROUP)
    m = (row * BM + tl.arange(0, BM)) % M
    n = (column * BN + tl.arange(0, BN)) % N
    k = tl.arange(0, BK)
    a = a_ptr + m[:, None] * stride_a + k[None, :]
    b = b_ptr + k[:, None] * stride_bk + n[None, :] * stride_bn
    acc = tl.zeros((BM, BN), dtype=SUM)
    for i in range(0, tl.cdiv(K, BK)):
        x = tl.load(a, mask=k[None, :] < K - i * BK, other=0.0)
        y = tl.load(b, mask=k[:, None] < K - i * BK, other=0.0)
        acc = tl.dot(x, y, acc, input_precision=PRECISION, out_dtype=SUM)
        a += BK
        b += BK * stride_bk
    m = row * BM + tl.arange(0, BM)
    n = column * BN + tl.arange(0, BN)
    c = c_ptr + m[:, None] * stride_c + n[None, :]
    tl.store(c, acc.to(c_ptr.dtype.element_ty), mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def matmul_descriptors(a_ptr, b_ptr, c_ptr, M, N, K, stride_a, stride_b, stride_c, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
                       GROUP: tl.constexpr, TURNED: tl.constexpr, SUM: tl.constexpr, PRECISION: tl.constexpr):
    # The same with descriptors, which know where a tensor ends. TURNED: b lies in memory as N x K.
    row, column = place(tl.program_id(0), tl.cdiv(M, BM), tl.cdiv(N, BN), GROUP)
    a = tl.make_tensor_descriptor(a_ptr, [M, K], [stride_a, 1], [BM, BK])
    b = tl.make_tensor_descriptor(b_ptr, [N, K] if TURNED else [K, N], [stride_b, 1], [BN, BK] if TURNED else [BK, BN])
    c = tl.make_tensor_descriptor(c_ptr, [M, N], [stride_c, 1], [BM, BN])
    acc = tl.zeros((BM, BN), dtype=SUM)
    for k in range(0, K, BK):
        y = b.load([column * BN, k]).T if TURNED else b.load([k, column * BN])
        acc = tl.dot(a.load([row * BM, k]), y, acc, input_precision=PRECISION, out_dtype=SUM)
    c.store([row * BM, column * BN], acc.to(c_ptr.dtype.element_ty))


@triton.jit
def batched_matmul(out, x, weight, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    # out[i] = x[i] @ weight[i].T: both factors are contiguous along K, as linear layers keep them.
    batch = tl.program_id(1).to(tl.int64)
    row, column = place(tl.program_id(0), tl.cdiv(M, BM), tl.cdiv(N, BN), GROUP)
    m = (row * BM + tl.arange(0, BM)) % M
    n = (column * BN + tl.arange(0, BN)) % N
    k = tl.arange(0, BK)
    x += batch * M * K + m[:, None] * K + k[None, :]
    weight += batch * N * K + n[None, :] * K + k[:, None]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for left in range(K, 0, -BK):
        acc += tl.dot(tl.load(x, mask=k[None, :] < left, other=0.0), tl.load(weight, mask=k[:, None] < left, other=0.0))
        x += BK
        weight += BK
    m = row * BM + tl.arange(0, BM)
    n = column * BN + tl.arange(0, BN)
    out += batch * M * N + m[:, None] * N + n[None, :]
    tl.store(out, acc.to(out.dtype.element_ty), mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def persistent_matmul(a_ptr, b_ptr, c_ptr, M, N, K, stride_a, stride_b, stride_c, PROGRAMS: tl.constexpr, BM: tl.constexpr,
                      BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    # c = a @ b.T. PROGRAMS programs walk over the blocks of c, and count them a second time where they store.
    rows = tl.cdiv(M, BM)
    columns = tl.cdiv(N, BN)
    stored = tl.program_id(0) - PROGRAMS
    k = tl.arange(0, BK)
    for tile in tl.range(tl.program_id(0), rows * columns, PROGRAMS, flatten=True):
        row, column = place(tile, rows, columns, GROUP)
        m = row * BM + tl.arange(0, BM)
        n = column * BN + tl.arange(0, BN)
        m = tl.where(m < M, m, 0)
        n = tl.where(n < N, n, 0)
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for i in range(tl.cdiv(K, BK)):
            at = i * BK + k
            x = tl.load(a_ptr + m[:, None] * stride_a + at[None, :], mask=k[None, :] < K - i * BK, other=0.0)
            y = tl.load(b_ptr + at[:, None] + n[None, :] * stride_b, mask=k[:, None] < K - i * BK, other=0.0)
            acc = tl.dot(x, y, acc)
        stored += PROGRAMS
        row, column = place(stored, rows, columns, GROUP)
        m = row * BM + tl.arange(0, BM)
        n = column * BN + tl.arange(0, BN)
        c = c_ptr + m[:, None] * stride_c + n[None, :]
        tl.store(c, acc.to(c_ptr.dtype.element_ty), mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def grouped_matmul(a_ptrs, b_ptrs, c_ptrs, sizes, groups, PROGRAMS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
                   BK: tl.constexpr):
    # Products of different sizes in one launch: addresses and (M, N, K) of each lie in memory. The blocks of all products
    # are numbered through; each program takes every PROGRAMS-th. Sizes are multiples of 16, M and N need not be of BM and BN.
    tile = tl.program_id(0)
    first = 0
    for group in range(groups):
        M = tl.load(sizes + 3 * group)
        N = tl.multiple_of(tl.load(sizes + 3 * group + 1), 16)
        K = tl.multiple_of(tl.load(sizes + 3 * group + 2), 16)
        columns = tl.cdiv(N, BN)
        last = first + tl.cdiv(M, BM) * columns
        while tile < last:
            row = (tile - first) // columns
            column = (tile - first) % columns
            a_ptr = tl.multiple_of(tl.load(a_ptrs + group).to(tl.pointer_type(tl.float16)), 16)
            b_ptr = tl.multiple_of(tl.load(b_ptrs + group).to(tl.pointer_type(tl.float16)), 16)
            c_ptr = tl.multiple_of(tl.load(c_ptrs + group).to(tl.pointer_type(tl.float16)), 16)
            m = row * BM + tl.arange(0, BM)
            n = column * BN + tl.arange(0, BN)
            k = tl.arange(0, BK)
            a = a_ptr + (m % M)[:, None] * K + k[None, :]
            b = b_ptr + k[:, None] * N + n[None, :]
            acc = tl.zeros((BM, BN), dtype=tl.float32)
            for start in range(0, K, BK):
                x = tl.load(a, mask=k[None, :] < K - start, other=0.0)
                y = tl.load(b, mask=(k[:, None] < K - start) & (n[None, :] < N), other=0.0)
                acc = tl.dot(x, y, acc)
                a += BK
                b += BK * N
            c = c_ptr + m[:, None] * N + n[None, :]
            tl.store(c, acc.to(tl.float16), mask=(m[:, None] < M) & (n[None, :] < N))
            tile += PROGRAMS
        first = last


@triton.jit
def thin_matmul(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PARTS: tl.constexpr):
    # c += a @ b for M of at most BM rows: PARTS programs share the sum over K of each block of columns. c begins as zeros.
    part = tl.program_id(1)
    m = tl.arange(0, BM)
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    k = part * BK + tl.arange(0, BK)
    a = a_ptr + (m % M)[:, None] * K + k[None, :]
    b = b_ptr + k[:, None] * N + (n % N)[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(part * BK, K, PARTS * BK):
        left = K - start + part * BK  # k begins at the part
        acc = tl.dot(tl.load(a, mask=k[None, :] < left, other=0.0), tl.load(b, mask=k[:, None] < left, other=0.0), acc)
        a += PARTS * BK
        b += PARTS * BK * N
    c = c_ptr + m[:, None] * N + n[None, :]
    tl.atomic_add(c, acc, mask=(m[:, None] < M) & (n[None, :] < N), sem="relaxed")


# run: matmul "*fp16, *fp16, *fp16, i32, i32, i32, i32, i32, i32:1, i32, 32, 32, 16, 2, fp32, 'tf32'" : grid(2) a_ptr=f16[1600] normal(1) b_ptr=f16[960] normal(2) c_ptr=f16[960] poison M=40 N=24 K=40 stride_a=40 stride_bk=24 stride_c=24
# run: matmul_descriptors "*fp16, *fp16, *fp16, i32, i32, i32, i32, i32, i32, 32, 32, 16, 2, False, fp32, 'tf32'" : grid(2) a_ptr=f16[1600] normal(1) b_ptr=f16[960] normal(2) c_ptr=f16[960] poison M=40 N=24 K=40 stride_a=40 stride_b=24 stride_c=24
# run: matmul_descriptors "*fp16, *fp16, *fp16, i32, i32, i32, i32, i32, i32, 32, 32, 16, 2, True, fp32, 'tf32'" : grid(2) a_ptr=f16[1600] normal(1) b_ptr=f16[960] normal(2) c_ptr=f16[960] poison M=40 N=24 K=40 stride_a=40 stride_b=40 stride_c=24
# run: batched_matmul "*fp32, *fp32, *fp32, i32, i32, i32, 32, 32, 16, 2" : grid(2,2) out=f32[2560] poison x=f32[1280] normal(1) weight=f32[1024] normal(2) M=40 N=32 K=16
# run: persistent_matmul "*fp16, *fp16, *fp16, i32, i32, i32, i32, i32, i32, 2, 32, 32, 16, 2" : grid(2) a_ptr=f16[2800] normal(1) b_ptr=f16[1600] normal(2) c_ptr=f16[2800] poison M=70 N=40 K=40 stride_a=40 stride_b=40 stride_c=40
# run: thin_matmul "*bf16, *bf16, *fp32, i32, i32, i32, 16, 32, 16, 2" : grid(2,2) a_ptr=bf16[400] normal(1) b_ptr=bf16[3200] normal(2) c_ptr=f32[256] zeros M=4 N=64 K=50
