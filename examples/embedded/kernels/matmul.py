import triton
import triton.language as tl


@triton.autotune([triton.Config({"TILE": t}, num_warps=w) for t in (16, 32) for w in (2, 4)], key=["n"])
@triton.jit
def matmul(a, b, c, n, TILE: tl.constexpr):
    rows = tl.program_id(0) * TILE + tl.arange(0, TILE)[:, None]
    columns = tl.program_id(1) * TILE + tl.arange(0, TILE)[None, :]
    sum = tl.zeros((TILE, TILE), tl.float32)
    for k in range(0, n, TILE):
        inner = k + tl.arange(0, TILE)
        left = tl.load(a + rows * n + inner[None, :], (rows < n) & (inner[None, :] < n), 0.0)
        right = tl.load(b + inner[:, None] * n + columns, (inner[:, None] < n) & (columns < n), 0.0)
        sum = tl.dot(left, right, sum)
    tl.store(c + rows * n + columns, sum, (rows < n) & (columns < n))
