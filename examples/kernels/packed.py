"""Products with weights of four bits, two in each byte: integers with a scale and a zero for each group, or numbers of a table.

weight is N x K/2 bytes. In each group of G elements of a row, the low half of byte j is element j and the high half element j + G/2, so
that both halves meet neighbours of x. Scales and zeros are N x K/G. x is M x K of f16 or bf16, out M x N; M is at most BM.
"""
import triton
import triton.language as tl


@triton.jit
def int4_matmul(out, x, weight, scales, zeros, M, N, K, G: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, PARTS: tl.constexpr):
    # out[part] = this part's share of x @ ((weight - zeros) * scales).T. The weights are the left operand: they stay in registers from
    # their bytes to the matrix unit.
    part = tl.program_id(1)
    m = tl.arange(0, BM)
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    j = tl.arange(0, G // 2)
    steps = tl.cdiv(K // G, PARTS)
    first = part * steps * G
    last = min(first + steps * G, K)
    bytes_at = weight + (n % N)[:, None] * (K // 2) + j[None, :]
    columns = x + (m % M)[None, :] * K + j[:, None]
    groups = (n % N) * (K // G)
    acc = tl.zeros((BN, BM), dtype=tl.float32)
    for start in range(first, last, G):
        packed = tl.load(bytes_at + start // 2)
        scale = tl.load(scales + groups + start // G)[:, None]
        zero = tl.load(zeros + groups + start // G)[:, None]
        low = ((packed & 15).to(x.dtype.element_ty) - zero) * scale
        high = ((packed >> 4).to(x.dtype.element_ty) - zero) * scale
        acc = tl.dot(low, tl.load(columns + start), acc)
        acc = tl.dot(high, tl.load(columns + start + G // 2), acc)
    at = out + (part * M + m)[None, :] * N + n[:, None]
    tl.store(at, acc.to(out.dtype.element_ty), mask=(m[None, :] < M) & (n[:, None] < N))


@triton.jit
def table4_matmul(out, x, weight, scales, table, M, N, K, G: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, PARTS: tl.constexpr):
    # The same where a half byte is a number in a table of 16, such as those of fp4 (e2m1) or nf4.
    part = tl.program_id(1)
    m = tl.arange(0, BM)
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    j = tl.arange(0, G // 2)
    steps = tl.cdiv(K // G, PARTS)
    first = part * steps * G
    last = min(first + steps * G, K)
    bytes_at = weight + (n % N)[:, None] * (K // 2) + j[None, :]
    columns = x + (m % M)[None, :] * K + j[:, None]
    groups = (n % N) * (K // G)
    acc = tl.zeros((BN, BM), dtype=tl.float32)
    for start in range(first, last, G):
        packed = tl.load(bytes_at + start // 2)
        scale = tl.load(scales + groups + start // G)[:, None]
        acc = tl.dot(tl.load(table + (packed & 15)) * scale, tl.load(columns + start), acc)
        acc = tl.dot(tl.load(table + (packed >> 4)) * scale, tl.load(columns + start + G // 2), acc)
    at = out + (part * M + m)[None, :] * N + n[:, None]
    tl.store(at, acc.to(out.dtype.element_ty), mask=(m[None, :] < M) & (n[:, None] < N))


# run: int4_matmul "*fp16, *fp16, *u8, *fp16, *fp16, i32, i32, i32, 32, 16, 64, 1" : grid(2) out=f16[500] poison x=f16[640] normal(1) weight=i8[6400] uniform(2,-128,127) scales=f16[400] uniform(3,0.1,1) zeros=f16[400] uniform(4,0,15) M=5 N=100 K=128
# run: int4_matmul "*fp32, *bf16, *u8, *bf16, *bf16, i32, i32, i32, 64, 16, 64, 2" : grid(2,2) out=f32[1000] poison x=bf16[640] normal(1) weight=i8[6400] uniform(2,-128,127) scales=bf16[200] uniform(3,0.1,1) zeros=bf16[200] uniform(4,0,15) M=5 N=100 K=128
# run: table4_matmul "*fp16, *fp16, *u8, *fp16, *fp16, i32, i32, i32, 32, 16, 64, 1" : grid(2) out=f16[500] poison x=f16[640] normal(1) weight=i8[6400] uniform(2,-128,127) scales=f16[400] uniform(3,0.1,1) table=f16[16] [0,0.5,1,1.5,2,3,4,6,-0,-0.5,-1,-1.5,-2,-3,-4,-6] M=5 N=100 K=128
