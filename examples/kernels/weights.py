"""Products with weights that are made floats where they are used, the right operand, as inference engines write them.

x is M x K of f16 or bf16, out M x N. The weights are bytes (integers or fp8) with a scale for each column; or four bits, eight of them
in a word along K, with scales, of the type of x, and zeros for each group of G rows; or mxfp4, two numbers (e2m1) in a byte along K and
a power of two for each 32 of them.

A product of few rows has few blocks, and PARTS programs share each: every one of them sums a part of K into `parts` (PARTS x M x N, f32), and
the last to come adds these up. `counts` has a zero for each block, before and after. With PARTS = 1 neither is read.
"""
import triton
import triton.language as tl


@triton.jit
def indices(M, N, BM: tl.constexpr, BN: tl.constexpr, GROUP: tl.constexpr):
    # Rows and columns of a program: GROUP blocks of rows go through the columns together, so that weights are read again while they are near.
    pid = tl.program_id(0)
    blocks_m = tl.cdiv(M, BM)
    blocks_n = tl.cdiv(N, BN)
    width = GROUP * blocks_n
    first = pid // width * GROUP
    size = min(blocks_m - first, GROUP)
    m = (first + pid % width % size) * BM + tl.arange(0, BM)
    n = pid % width // size * BN + tl.arange(0, BN)
    return m, n


@triton.jit
def part_of(K, BK: tl.constexpr, PARTS: tl.constexpr):
    # Where a program's part of the sum begins, and where it ends.
    first = 0
    last = K
    if PARTS > 1:
        steps = tl.cdiv(tl.cdiv(K, BK), PARTS)
        first = tl.program_id(1) * steps * BK
        last = min(first + steps * BK, K)
    return first, last


@triton.jit
def finish(out, parts, counts, acc, m, n, M, N, PARTS: tl.constexpr):
    # Stores a block of the product. Shares are added in the order of the parts, whoever comes last.
    at = m[:, None] * N + n[None, :]
    inside = (m[:, None] < M) & (n[None, :] < N)
    if PARTS == 1:
        tl.store(out + at, acc.to(out.dtype.element_ty), mask=inside)
    else:
        tl.store(parts + tl.program_id(1) * M * N + at, acc, mask=inside)
        tl.debug_barrier()
        count = counts + tl.program_id(0)
        if tl.atomic_add(count, 1) == PARTS - 1:
            total = tl.zeros_like(acc)
            for i in range(PARTS):
                total += tl.load(parts + i * M * N + at, mask=inside, other=0.0)
            tl.store(out + at, total.to(out.dtype.element_ty), mask=inside)
            tl.store(count, 0)


@triton.jit
def byte_weights(out, parts, counts, x, weight, scales, M, N, K, stride_k, stride_n, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, PARTS: tl.constexpr):
    # x @ weight * scales. Scales of columns meet the sums, of which there are fewer than weights.
    m, n = indices(M, N, BM, BN, GROUP)
    first, last = part_of(K, BK, PARTS)
    k = first + tl.arange(0, BK)
    x_at = x + (m % M)[:, None] * K + k[None, :]
    weight_at = weight + k[:, None] * stride_k + (n % N)[None, :] * stride_n
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(first, last, BK):
        left = K - start
        i = tl.arange(0, BK)
        a = tl.load(x_at, mask=i[None, :] < left, other=0.0)
        b = tl.load(weight_at, mask=i[:, None] < left, other=0.0)
        acc = tl.dot(a, b.to(a.dtype), acc)
        x_at += BK
        weight_at += BK * stride_k
    acc *= tl.load(scales + n % N).to(tl.float32)[None, :]
    finish(out, parts, counts, acc, m, n, M, N, PARTS)


@triton.jit
def word_weights(out, parts, counts, x, weight, scales, zeros, M, N, K, G, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, PARTS: tl.constexpr):
    # x @ ((weight - zeros) * scales): weight is K/8 x N words of 32 bits, scales K/G x N, zeros K/G x N/8 words.
    m, n = indices(M, N, BM, BN, GROUP)
    first, last = part_of(K, BK, PARTS)
    k = tl.arange(0, BK)
    x_at = x + first + (m % M)[:, None] * K + k[None, :]
    weight_at = weight + (first // 8 + k // 8)[:, None] * N + (n % N)[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(first, last, BK):
        group = start // G
        a = tl.load(x_at)
        words = tl.load(weight_at)
        scale = tl.load(scales + group * N + n % N)
        zero = tl.load(zeros + group * (N // 8) + n % N // 8) >> (n % 8) * 4 & 15
        b = (words >> (k % 8 * 4)[:, None] & 15) - zero[None, :]
        acc = tl.dot(a, b.to(a.dtype) * scale[None, :], acc)
        x_at += BK
        weight_at += BK // 8 * N
    finish(out, parts, counts, acc, m, n, M, N, PARTS)


@triton.jit
def mx_weights(out, parts, counts, x, weight, scales, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, PARTS: tl.constexpr):
    # weight is N x K/2 bytes, scales N x K/32 (e8m0). K is a multiple of BK.
    of_x: tl.constexpr = "fp16" if x.dtype.element_ty == tl.float16 else "bf16"
    m, n = indices(M, N, BM, BN, GROUP)
    first, last = part_of(K, BK, PARTS)
    x_at = x + first + (m % M)[:, None] * K + tl.arange(0, BK)[None, :]
    weight_at = weight + first // 2 + tl.arange(0, BK // 2)[:, None] + (n % N)[None, :] * (K // 2)
    scales_at = scales + first // 32 + (n % N)[:, None] * (K // 32) + tl.arange(0, BK // 32)[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for _ in range(first, last, BK):
        acc = tl.dot_scaled(tl.load(x_at), None, of_x, tl.load(weight_at), tl.load(scales_at), "e2m1", acc)
        x_at += BK
        weight_at += BK // 2
        scales_at += BK // 32
    finish(out, parts, counts, acc, m, n, M, N, PARTS)


# run: byte_weights "*fp32, *fp32, *i32, *fp16, *i8, *fp16, i32, i32, i32, i32, i32:1, 64, 64, 32, 8, 1" : grid(4) out=f32[7000] poison parts=f32[1] poison counts=i32[1] zeros x=f16[7840] normal(1) weight=i8[11200] uniform(2,-128,127) scales=f16[100] uniform(3,0.1,1) M=70 N=100 K=112 stride_k=100
# run: byte_weights "*fp32, *fp32, *i32, *bf16, *fp8e5, *fp32, i32, i32, i32, i32:1, i32, 16, 128, 64, 8, 1" : grid(1) out=f32[500] poison parts=f32[1] poison counts=i32[1] zeros x=bf16[640] normal(1) weight=f8e5m2[12800] normal(2) scales=f32[100] uniform(3,0.1,1) M=5 N=100 K=128 stride_n=128
# run: byte_weights "*fp16, *fp32, *i32, *fp16, *i8, *fp16, i32, i32, i32, i32, i32:1, 16, 64, 32, 8, 3" : grid(2,3) out=f16[500] poison parts=f32[1500] poison counts=i32[2] zeros x=f16[560] normal(1) weight=i8[11200] uniform(2,-128,127) scales=f16[100] uniform(3,0.1,1) M=5 N=100 K=112 stride_k=100
# run: word_weights "*fp32, *fp32, *i32, *fp16, *i32, *fp16, *i32, i32, i32, i32, i32, 64, 64, 32, 8, 1" : grid(4) out=f32[7280] poison parts=f32[1] poison counts=i32[1] zeros x=f16[8960] normal(1) weight=i32[1664] uniform(2,-2147483648,2147483647) scales=f16[208] uniform(3,0.1,1) zeros=i32[26] uniform(4,-2147483648,2147483647) M=70 N=104 K=128 G=64
# run: word_weights "*fp32, *fp32, *i32, *fp16, *i32, *fp16, *i32, i32, i32, i32, i32, 16, 64, 32, 8, 2" : grid(2,2) out=f32[520] poison parts=f32[1040] poison counts=i32[2] zeros x=f16[1280] normal(1) weight=i32[3328] uniform(2,-2147483648,2147483647) scales=f16[416] uniform(3,0.1,1) zeros=i32[52] uniform(4,-2147483648,2147483647) M=5 N=104 K=256 G=64
# run: mx_weights "*fp32, *fp32, *i32, *bf16, *u8, *u8, i32, i32, i32, 64, 64, 64, 8, 1" : grid(4) out=f32[7000] poison parts=f32[1] poison counts=i32[1] zeros x=bf16[8960] normal(1) weight=i8[6400] uniform(2,-128,127) scales=i8[400] uniform(3,115,127) M=70 N=100 K=128
# run: mx_weights "*bf16, *fp32, *i32, *bf16, *u8, *u8, i32, i32, i32, 16, 64, 64, 8, 2" : grid(2,2) out=bf16[500] poison parts=f32[1000] poison counts=i32[2] zeros x=bf16[640] normal(1) weight=i8[6400] uniform(2,-128,127) scales=i8[400] uniform(3,115,127) M=5 N=100 K=128
