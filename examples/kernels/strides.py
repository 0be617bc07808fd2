"""A product of matrices in any order of memory: both strides of each matrix are given, as in Triton's third tutorial."""
import triton
import triton.language as tl


@triton.jit
def strided_matmul(left, right, out, M, N, K, left_row, left_column, right_row, right_column, out_row, out_column, BM: tl.constexpr,
                   BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    pid = tl.program_id(0)
    rows, columns = tl.cdiv(M, BM), tl.cdiv(N, BN)
    group = GROUP * columns
    first = pid // group * GROUP
    size = min(rows - first, GROUP)
    row = first + pid % group % size
    column = pid % group // size
    k = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for step in range(tl.cdiv(K, BK)):
        at = step * BK + k
        x = tl.load(left + ((row * BM + tl.arange(0, BM)) % M)[:, None] * left_row + at[None, :] * left_column,
                    mask=at[None, :] < K, other=0.0)
        y = tl.load(right + at[:, None] * right_row + ((column * BN + tl.arange(0, BN)) % N)[None, :] * right_column,
                    mask=at[:, None] < K, other=0.0)
        acc = tl.dot(x, y, acc)
    m = row * BM + tl.arange(0, BM)
    n = column * BN + tl.arange(0, BN)
    tl.store(out + m[:, None] * out_row + n[None, :] * out_column, acc.to(out.dtype.element_ty), mask=(m[:, None] < M) & (n[None, :] < N))


# run: strided_matmul "*fp16, *fp16, *fp16, i32, i32, i32, i32, i32:1, i32, i32:1, i32, i32:1, 32, 32, 16, 2" : grid(4) left=f16[1600] normal(1) right=f16[1600] normal(2) out=f16[1600] poison M=40 N=40 K=40 left_row=40 right_row=40 out_row=40
# run: strided_matmul "*fp16, *fp16, *fp16, i32, i32, i32, i32:1, i32, i32:1, i32, i32, i32:1, 32, 32, 16, 2" : grid(4) left=f16[1600] normal(1) right=f16[1600] normal(2) out=f16[1600] poison M=40 N=40 K=40 left_column=40 right_column=40 out_row=40
