"""Products of a mixture of experts: each token goes to TOP experts, whose weights are N x K each, K contiguous.

The host sorts the pairs (token, choice) by expert and fills each expert's share up to whole blocks of BM: `order` has the numbers of
pairs (token * TOP + choice), with numbers from `pairs` on as fillers, and `experts` the expert of each block.
"""
import triton
import triton.language as tl


@triton.jit
def experts_matmul(out, x, weight, order, experts, shares, pairs, N, K, TOP: tl.constexpr, SCALE: tl.constexpr, BM: tl.constexpr,
                   BN: tl.constexpr, BK: tl.constexpr):
    # out[pair] = x[pair // TOP] @ weight[expert].T, with SCALE times the pair's share of its token.
    block = tl.program_id(1)
    expert = tl.load(experts + block).to(tl.int64)
    pair = tl.load(order + block * BM + tl.arange(0, BM))
    exists = pair < pairs
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    a = x + (pair // TOP).to(tl.int64)[:, None] * K + k[None, :]
    b = weight + expert * N * K + (n % N)[None, :] * K + k[:, None]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        left = k < K - start
        acc = tl.dot(tl.load(a, mask=exists[:, None] & left[None, :], other=0.0), tl.load(b, mask=left[:, None], other=0.0), acc)
        a += BK
        b += BK
    if SCALE:
        acc *= tl.load(shares + pair, mask=exists, other=0.0)[:, None]
    at = out + pair.to(tl.int64)[:, None] * N + n[None, :]
    tl.store(at, acc.to(out.dtype.element_ty), mask=exists[:, None] & (n[None, :] < N))


@triton.jit
def sum_choices(out, parts, N, TOP: tl.constexpr, BLOCK: tl.constexpr):
    # A token's result is the sum of what its experts gave.
    token = tl.program_id(1).to(tl.int64)
    n = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for choice in range(TOP):
        acc += tl.load(parts + (token * TOP + choice) * N + n, mask=n < N, other=0.0).to(tl.float32)
    tl.store(out + token * N + n, acc.to(out.dtype.element_ty), mask=n < N)


# run: experts_matmul "*fp16, *fp16, *fp16, *i32, *i32, *fp32, i32, i32, i32, 2, True, 16, 32, 16" : grid(2,3) out=f16[480] poison x=f16[200] normal(1) weight=f16[4800] normal(2) order=i32[48] [1,2,5,7,12,12,12,12,12,12,12,12,12,12,12,12,0,3,4,8,9,10,12,12,12,12,12,12,12,12,12,12,6,11,12,12,12,12,12,12,12,12,12,12,12,12,12,12] experts=i32[3] [0,2,1] shares=f32[12] uniform(3,0,1) pairs=12 N=40 K=33
# run: sum_choices "*fp16, *fp16, i32, 2, 64" : grid(1,6) out=f16[240] poison parts=f16[480] normal(1) N=40
