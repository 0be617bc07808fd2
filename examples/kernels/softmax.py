"""Softmax of the rows of a matrix, one row per program."""
import triton
import triton.language as tl


@triton.jit
def softmax(out, x, stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < columns
    v = tl.load(x + row * stride + at, mask=mask, other=-float("inf")).to(tl.float32)
    powers = tl.exp(v - tl.max(v, axis=0))
    tl.store(out + row * stride + at, powers / tl.sum(powers, axis=0), mask=mask)
