"""Products with weights most of whose blocks are zero."""
import triton
import triton.language as tl


@triton.jit
def block_sparse(out, x, weight, blocks, M, N, K, S, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, B: tl.constexpr):
    # x @ weight.T: weight is N x K. Of its BN rows from n on those S blocks of B columns are not zero that blocks (N/BN x S) names;
    # N is a multiple of BN, B of BK.
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    column = tl.program_id(1)
    n = column * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for i in range(S):
        first = tl.load(blocks + column * S + i) * B
        for start in range(0, B, BK):
            at = first + start + k
            a = tl.load(x + (m % M)[:, None] * K + at[None, :])
            b = tl.load(weight + n[None, :] * K + at[:, None])
            acc = tl.dot(a, b, acc)
    tl.store(out + m[:, None] * N + n[None, :], acc.to(out.dtype.element_ty), mask=m[:, None] < M)


# run: block_sparse "*fp16, *fp16, *fp16, *i32, i32, i32, i32, i32, 32, 32, 16, 32" : grid(2,2) out=f16[2560] poison x=f16[5120] normal(1) weight=f16[8192] normal(2) blocks=i32[4] [3,0,1,2] M=40 N=64 K=128 S=2
# run: block_sparse "*fp32, *bf16, *bf16, *i32, i32, i32, i32, i32, 32, 32, 32, 32" : grid(1,1) out=f32[1024] poison x=bf16[3072] normal(1) weight=bf16[3072] normal(2) blocks=i32[3] [2,2,0] M=32 N=32 K=96 S=3
