import triton
import triton.language as tl


@triton.jit
def softmax(x, out, n, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    v = tl.load(x + row * n + i, i < n, float("-inf"))
    e = tl.exp(v - tl.max(v))
    tl.store(out + row * n + i, e / tl.sum(e), i < n)
