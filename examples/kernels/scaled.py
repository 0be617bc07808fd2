"""Products of numbers of eight bits with their scales: x is M x K, weight N x K, both K contiguous; the result has 16 or 32 bits."""
import triton
import triton.language as tl


@triton.jit
def place(pid, rows, columns, GROUP: tl.constexpr):
    # Which block a program takes: GROUP rows of blocks are walked column by column.
    group = GROUP * columns
    first = pid // group * GROUP
    size = min(rows - first, GROUP)
    return first + pid % group % size, pid % group // size


@triton.jit
def scaled_matmul(out, x, weight, x_scales, weight_scales, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
                  GROUP: tl.constexpr, SUM: tl.constexpr, BY_ROW: tl.constexpr):
    # fp8 (SUM = float32) or int8 (int32). BY_ROW: a scale for each row of x and of weight; else one for each of both.
    row, column = place(tl.program_id(0), tl.cdiv(M, BM), tl.cdiv(N, BN), GROUP)
    m = row * BM + tl.arange(0, BM)
    n = column * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    a = x + (m % M)[:, None] * K + k[None, :]
    b = weight + (n % N)[None, :] * K + k[:, None]
    acc = tl.zeros((BM, BN), dtype=SUM)
    for start in range(0, K, BK):
        mask = k < K - start
        acc = tl.dot(tl.load(a, mask=mask[None, :], other=0.0), tl.load(b, mask=mask[:, None], other=0.0), acc, out_dtype=SUM)
        a += BK
        b += BK
    if BY_ROW:
        scales = tl.load(x_scales + m, mask=m < M, other=0.0)[:, None] * tl.load(weight_scales + n, mask=n < N, other=0.0)[None, :]
    else:
        scales = tl.load(x_scales) * tl.load(weight_scales)
    at = out + m[:, None] * N + n[None, :]
    tl.store(at, (acc.to(tl.float32) * scales).to(out.dtype.element_ty), mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def block_scaled_matmul(out, x, weight, x_scales, weight_scales, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
                        GROUP: tl.constexpr, ROWS: tl.constexpr):
    # A scale for each BK elements of a row of x (M x K/BK), and one for each block of ROWS x BK of weight (N/ROWS x K/BK). What a
    # block's products sum up to is scaled and added in f32, so that long sums of fp8 keep their precision. K is a multiple of BK.
    row, column = place(tl.program_id(0), tl.cdiv(M, BM), tl.cdiv(N, BN), GROUP)
    m = row * BM + tl.arange(0, BM)
    n = column * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    blocks = K // BK
    a = x + (m % M)[:, None] * K + k[None, :]
    b = weight + (n % N)[None, :] * K + k[:, None]
    x_scales += (m % M) * blocks
    weight_scales += (n % N) // ROWS * blocks
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for block in range(0, blocks):
        scales = tl.load(x_scales + block)[:, None] * tl.load(weight_scales + block)[None, :]
        acc += tl.dot(tl.load(a), tl.load(b)) * scales
        a += BK
        b += BK
    at = out + m[:, None] * N + n[None, :]
    tl.store(at, acc.to(out.dtype.element_ty), mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def group_scaled_matmul(out, x, weight, x_scales, weight_scales, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
                        GROUP: tl.constexpr, G: tl.constexpr):
    # A scale for each G elements of a row of x (M x K/G) and of weight (N x K/G), of any type of operands. K is a multiple of G, G of BK.
    row, column = place(tl.program_id(0), tl.cdiv(M, BM), tl.cdiv(N, BN), GROUP)
    m = row * BM + tl.arange(0, BM)
    n = column * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    a = x + (m % M)[:, None] * K + k[None, :]
    b = weight + (n % N)[None, :] * K + k[:, None]
    x_scales += (m % M) * (K // G)
    weight_scales += (n % N) * (K // G)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for group in range(0, K // G):
        part = tl.zeros((BM, BN), dtype=tl.float32)
        for _ in range(0, G, BK):
            part = tl.dot(tl.load(a), tl.load(b), part)
            a += BK
            b += BK
        acc += part * tl.load(x_scales + group)[:, None] * tl.load(weight_scales + group)[None, :]
    at = out + m[:, None] * N + n[None, :]
    tl.store(at, acc.to(out.dtype.element_ty), mask=(m[:, None] < M) & (n[None, :] < N))


# run: scaled_matmul "*bf16, *fp8e5, *fp8e5, *fp32, *fp32, i32, i32, i32, 32, 32, 32, 2, fp32, True" : grid(4) out=bf16[1600] poison x=f8e5m2[2560] normal(1) weight=f8e5m2[2560] normal(2) x_scales=f32[40] uniform(3,0.1,1) weight_scales=f32[40] uniform(4,0.1,1) M=40 N=40 K=64
# run: scaled_matmul "*fp16, *i8, *i8, *fp32, *fp32, i32, i32, i32, 32, 32, 32, 2, i32, True" : grid(4) out=f16[1600] poison x=i8[2560] uniform(1,-127,127) weight=i8[2560] uniform(2,-127,127) x_scales=f32[40] uniform(3,0.001,0.01) weight_scales=f32[40] uniform(4,0.001,0.01) M=40 N=40 K=64
# run: scaled_matmul "*fp32, *fp8e5, *fp8e5, *fp32, *fp32, i32, i32, i32, 32, 32, 32, 2, fp32, False" : grid(4) out=f32[1600] poison x=f8e5m2[2000] normal(1) weight=f8e5m2[2000] normal(2) x_scales=f32[1] [0.5] weight_scales=f32[1] [0.25] M=40 N=40 K=50
# run: block_scaled_matmul "*bf16, *fp8e5, *fp8e5, *fp32, *fp32, i32, i32, i32, 32, 32, 32, 2, 16" : grid(4) out=bf16[1600] poison x=f8e5m2[2560] normal(1) weight=f8e5m2[2560] normal(2) x_scales=f32[80] uniform(3,0.1,1) weight_scales=f32[6] uniform(4,0.1,1) M=40 N=40 K=64
# run: group_scaled_matmul "*bf16, *fp16, *fp16, *fp32, *fp32, i32, i32, i32, 32, 32, 16, 2, 32" : grid(4) out=bf16[1600] poison x=f16[3840] normal(1) weight=f16[3840] normal(2) x_scales=f32[120] uniform(3,0.1,1) weight_scales=f32[120] uniform(4,0.1,1) M=40 N=40 K=96
