"""Products with weights that are made floats where they are used, the right operand, as inference engines write them.

x is M x K of f16 or bf16, out M x N. The weights are bytes (integers or fp8) with a scale for each column; or four bits, eight of them
in a word along K, with scales and zeros for each group of G rows; or mxfp4, two numbers (e2m1) in a byte along K and a power of two for
each 32 of them.
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
def byte_weights(out, x, weight, scales, M, N, K, stride_k, stride_n, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    # x @ weight * scales. Scales of columns meet the sums, of which there are fewer than weights.
    m, n = indices(M, N, BM, BN, GROUP)
    k = tl.arange(0, BK)
    x_at = x + (m % M)[:, None] * K + k[None, :]
    weight_at = weight + k[:, None] * stride_k + (n % N)[None, :] * stride_n
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, tl.cdiv(K, BK)):
        left = K - start * BK
        a = tl.load(x_at, mask=k[None, :] < left, other=0.0)
        b = tl.load(weight_at, mask=k[:, None] < left, other=0.0)
        acc = tl.dot(a, b.to(a.dtype), acc)
        x_at += BK
        weight_at += BK * stride_k
    acc *= tl.load(scales + n % N).to(tl.float32)[None, :]
    at = out + m[:, None] * N + n[None, :]
    tl.store(at, acc.to(out.dtype.element_ty), mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def word_weights(out, x, weight, scales, zeros, M, N, K, G, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    # x @ ((weight - zeros) * scales): weight is K/8 x N words of 32 bits, scales K/G x N, zeros K/G x N/8 words.
    m, n = indices(M, N, BM, BN, GROUP)
    k = tl.arange(0, BK)
    x_at = x + (m % M)[:, None] * K + k[None, :]
    weight_at = weight + (k // 8)[:, None] * N + (n % N)[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, tl.cdiv(K, BK)):
        group = start * BK // G
        a = tl.load(x_at)
        words = tl.load(weight_at)
        scale = tl.load(scales + group * N + n % N)
        zero = tl.load(zeros + group * (N // 8) + n % N // 8) >> (n % 8) * 4 & 15
        b = (words >> (k % 8 * 4)[:, None] & 15) - zero[None, :]
        acc = tl.dot(a, b.to(a.dtype) * scale[None, :], acc)
        x_at += BK
        weight_at += BK // 8 * N
    at = out + m[:, None] * N + n[None, :]
    tl.store(at, acc.to(out.dtype.element_ty), mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def mx_weights(out, x, weight, scales, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    # weight is N x K/2 bytes, scales N x K/32 (e8m0). K is a multiple of BK.
    of_x: tl.constexpr = "fp16" if x.dtype.element_ty == tl.float16 else "bf16"
    m, n = indices(M, N, BM, BN, GROUP)
    x_at = x + (m % M)[:, None] * K + tl.arange(0, BK)[None, :]
    weight_at = weight + tl.arange(0, BK // 2)[:, None] + (n % N)[None, :] * (K // 2)
    scales_at = scales + (n % N)[:, None] * (K // 32) + tl.arange(0, BK // 32)[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, tl.cdiv(K, BK)):
        acc = tl.dot_scaled(tl.load(x_at), None, of_x, tl.load(weight_at), tl.load(scales_at), "e2m1", acc)
        x_at += BK
        weight_at += BK // 2
        scales_at += BK // 32
    at = out + m[:, None] * N + n[None, :]
    tl.store(at, acc.to(out.dtype.element_ty), mask=(m[:, None] < M) & (n[None, :] < N))


# run: byte_weights "*fp32, *fp16, *i8, *fp16, i32, i32, i32, i32, i32:1, 64, 64, 32, 8" : grid(4) out=f32[7000] poison x=f16[7840] normal(1) weight=i8[11200] uniform(2,-128,127) scales=f16[100] uniform(3,0.1,1) M=70 N=100 K=112 stride_k=100
# run: byte_weights "*fp32, *bf16, *fp8e5, *fp32, i32, i32, i32, i32:1, i32, 16, 128, 64, 8" : grid(1) out=f32[500] poison x=bf16[640] normal(1) weight=f8e5m2[12800] normal(2) scales=f32[100] uniform(3,0.1,1) M=5 N=100 K=128 stride_n=128
# run: word_weights "*fp32, *fp16, *i32, *fp16, *i32, i32, i32, i32, i32, 64, 64, 32, 8" : grid(4) out=f32[7280] poison x=f16[8960] normal(1) weight=i32[1664] uniform(2,-2147483648,2147483647) scales=f16[208] uniform(3,0.1,1) zeros=i32[26] uniform(4,-2147483648,2147483647) M=70 N=104 K=128 G=64
# run: mx_weights "*fp32, *bf16, *u8, *u8, i32, i32, i32, 64, 64, 64, 8" : grid(4) out=f32[7000] poison x=bf16[8960] normal(1) weight=i8[6400] uniform(2,-128,127) scales=i8[400] uniform(3,115,127) M=70 N=100 K=128
