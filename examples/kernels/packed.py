"""Products with weights of four bits, four in each word: integers with a scale and a zero for each group, or numbers of a table.

weight is N x K/4 words of 16 bits. In each pair of groups, of 2 G elements of a row, bits 4q to 4q + 3 of word j are element j + q G/2: bits 0 to
7 of all words are the first group, and the same four bits of neighbours meet neighbours of x. A pair is G bytes of a row: with groups of 128 a
line of memory, which one copy brings. Another copy brings all scales and zeros of a pair: a word of `groups` (K/(2G) x N, 64 bits) has, in 16 bits each
and from the lowest, scale and zero of the first group, scale and zero of the second, as numbers of the type of x; zeros are whole and below 16. With a
table there are no zeros, and `scales` are K/G x N, of the type of x. x is M x K of f16 or bf16, out M x N, M at most BM, K a multiple of 2 G. PARTS
programs share a block: every one of them sums a part of K into `parts` (PARTS x BM x N, f32), and the last to come adds these up, always in the same
order. `counts` has a zero for each block, before and after. With PARTS = 1 neither is read.

ROW is for products that share x and are launched one behind the other, each as a dependent launch of the one ahead (`launch_pdl` in Triton, from
sm_90): a program begins while the launch ahead still runs, and waits for it only before it writes. So x and all weights must be there before
the first product of the row, which is launched as usual.
"""
import triton
import triton.language as tl


@triton.jit
def lifted(bits, dtype: tl.constexpr):
    # A number below 16 as a float that is larger by 1024 (f16) or 128 (bf16), where the mantissa counts in ones: no conversion.
    if dtype == tl.float16:
        return (bits | 0x6400).to(dtype, bitcast=True)
    return (bits | 0x4300).to(dtype, bitcast=True)


@triton.jit
def sixteen(bits, dtype: tl.constexpr):
    # The lowest 16 bits, which are a float's.
    return bits.to(tl.uint16).to(dtype, bitcast=True)


@triton.jit
def finish(out, parts, counts, acc, n, m, N, M, BM: tl.constexpr, PARTS: tl.constexpr):
    # Stores a block of the product, which has the rows of the weights as its rows.
    inside = (n[:, None] < N) & (m[None, :] < M)
    out += m[None, :] * N + n[:, None]
    if PARTS == 1:
        tl.store(out, acc.to(out.dtype.element_ty), mask=inside)
    else:
        shares = parts + m[None, :] * N + n[:, None]
        tl.store(shares + tl.program_id(1) * N * BM, acc, mask=inside)
        tl.debug_barrier()
        count = counts + tl.program_id(0)
        if tl.atomic_add(count, 1) == PARTS - 1:
            total = tl.load(shares, mask=inside, other=0.0)
            for i in tl.static_range(1, PARTS):
                total += tl.load(shares + i * N * BM, mask=inside, other=0.0)
            tl.store(out, total.to(out.dtype.element_ty), mask=inside)
            tl.store(count, 0)


@triton.jit
def int4_matmul(out, parts, counts, x, weight, groups, M, N, K, G: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, PARTS: tl.constexpr,
                ROW: tl.constexpr = False):
    # x @ ((weight - zeros) * scales).T. The weights are the left operand: they stay in registers from their words to the matrix unit, as
    # whole numbers. Scales meet the sums of a group, of which there are fewer. In the mantissa of f16 there is room for four bits that
    # stand four higher, so that one shift serves two numbers: as a float they are 1024 + 16 times the number, of which a sixteenth less
    # 64 + zero is one instruction, and exact.
    if ROW:
        tl.extra.cuda.gdc_launch_dependents()
    dtype: tl.constexpr = x.dtype.element_ty
    base: tl.constexpr = 1024.0 if dtype == tl.float16 else 128.0
    part = tl.program_id(1)
    m = tl.arange(0, BM)
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    j = tl.arange(0, G // 2)
    pairs = K // (2 * G)
    # Rows of whole pairs begin at multiples of 16 bytes, and the compiler sees it.
    words_at = weight + (n % N)[:, None] * (pairs * (G // 2)) + j[None, :]
    columns = x + (m % M)[None, :] * K + j[:, None]
    acc = tl.zeros((BN, BM), dtype=tl.float32)
    for pair in range(part * pairs // PARTS, (part + 1) * pairs // PARTS):
        words = tl.load(words_at + pair * (G // 2))
        numbers = tl.load(groups + pair * N + n % N)
        for half in tl.static_range(2):
            scale = sixteen(numbers >> (32 * half), dtype)
            zero = sixteen(numbers >> (32 * half + 16), dtype)
            both = words >> (8 * half)
            low = lifted(both & 15, dtype) - (zero + base)[:, None]
            if dtype == tl.float16:
                high = lifted(both & 0xF0, dtype) * 0.0625 - (zero + 64.0)[:, None]
            else:
                high = lifted((both >> 4) & 15, dtype) - (zero + base)[:, None]
            at = columns + pair * (2 * G) + half * G
            sums = tl.dot(low, tl.load(at))
            sums = tl.dot(high, tl.load(at + G // 2), sums)
            acc += sums * scale.to(tl.float32)[:, None]
    if ROW:
        tl.extra.cuda.gdc_wait()
    finish(out, parts, counts, acc, n, m, N, M, BM, PARTS)


@triton.jit
def table4_matmul(out, parts, counts, x, weight, scales, table, M, N, K, G: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, PARTS: tl.constexpr,
                  ROW: tl.constexpr = False):
    # The same where four bits are the number of an entry of a table, such as those of fp4 (e2m1) or nf4.
    if ROW:
        tl.extra.cuda.gdc_launch_dependents()
    part = tl.program_id(1)
    m = tl.arange(0, BM)
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    j = tl.arange(0, G // 2)
    pairs = K // (2 * G)
    words_at = weight + (n % N)[:, None] * (pairs * (G // 2)) + j[None, :]
    columns = x + (m % M)[None, :] * K + j[:, None]
    acc = tl.zeros((BN, BM), dtype=tl.float32)
    for pair in range(part * pairs // PARTS, (part + 1) * pairs // PARTS):
        words = tl.load(words_at + pair * (G // 2))
        for half in tl.static_range(2):
            scale = tl.load(scales + (2 * pair + half) * N + n % N).to(tl.float32)
            of_group = tl.zeros((BN, BM), dtype=tl.float32)
            for quarter in tl.static_range(2):
                w = tl.load(table + ((words >> (4 * (2 * half + quarter))) & 15))
                at = columns + pair * (2 * G) + half * G + quarter * (G // 2)
                of_group = tl.dot(w, tl.load(at), of_group)
            acc += of_group * scale[:, None]
    if ROW:
        tl.extra.cuda.gdc_wait()
    finish(out, parts, counts, acc, n, m, N, M, BM, PARTS)


# run: int4_matmul "*fp16, *fp32, *i32, *fp16, *u16, *i64, i32, i32, i32, 64, 16, 64, 1" : grid(2) out=f16[500] poison parts=f32[1] poison counts=i32[1] zeros x=f16[1920] normal(1) weight=i16[9600] uniform(2,-32768,32767) groups=i64[300] iota(5116155148581747712) M=5 N=100 K=384
# run: int4_matmul "*bf16, *fp32, *i32, *bf16, *u16, *i64, i32, i32, i32, 64, 16, 64, 2" : grid(2,2) out=bf16[500] poison parts=f32[3200] poison counts=i32[2] zeros x=bf16[1920] normal(1) weight=i16[9600] uniform(2,-32768,32767) groups=i64[300] iota(4674806233287376768) M=5 N=100 K=384
# run: int4_matmul "*bf16, *fp32, *i32, *bf16, *u16, *i64, i32, i32, i32, 64, 16, 64, 2, True" : grid(2,2) out=bf16[500] poison parts=f32[3200] poison counts=i32[2] zeros x=bf16[1920] normal(1) weight=i16[9600] uniform(2,-32768,32767) groups=i64[300] iota(4674806233287376768) M=5 N=100 K=384
# run: int4_matmul "*fp16, *fp32, *i32, *fp16, *u16, *i64, i32, i32, i32, 32, 16, 64, 1" : grid(1) out=f16[8] poison parts=f32[1] poison counts=i32[1] zeros x=f16[384] iota(-192) weight=i16[192] iota(12345) groups=i64[12] [4323495225885471744,5332310337318301696,4899969172403923968,5224219549322192896,5296281541456965632,5044071166281527296,5368347931504027648,5260257142585177088,4755853983061387264,5224219549481579520,5332301542416460800,5188203946342099968] M=2 N=4 K=192 ; expect out = [2728.0,1286.0,10376.0,5968.0,-2234.0,-10280.0,-10376.0,-12112.0]
# run: table4_matmul "*fp16, *fp32, *i32, *fp16, *u16, *fp16, *fp16, i32, i32, i32, 64, 16, 64, 1" : grid(2) out=f16[500] poison parts=f32[1] poison counts=i32[1] zeros x=f16[1920] normal(1) weight=i16[9600] uniform(2,-32768,32767) scales=f16[600] uniform(3,0.1,1) table=f16[16] [0,0.5,1,1.5,2,3,4,6,-0,-0.5,-1,-1.5,-2,-3,-4,-6] M=5 N=100 K=384
# run: table4_matmul "*fp16, *fp32, *i32, *fp16, *u16, *fp16, *fp16, i32, i32, i32, 64, 16, 64, 1, True" : grid(2) out=f16[500] poison parts=f32[1] poison counts=i32[1] zeros x=f16[1920] normal(1) weight=i16[9600] uniform(2,-32768,32767) scales=f16[600] uniform(3,0.1,1) table=f16[16] [0,0.5,1,1.5,2,3,4,6,-0,-0.5,-1,-1.5,-2,-3,-4,-6] M=5 N=100 K=384
