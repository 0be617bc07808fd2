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


# run: softmax "*fp32, *fp32, i32, i32, 128" : grid(4) out=f32[400] poison x=f32[400] normal(1) stride=100 columns=100
# run: softmax "*fp16, *fp16, i32, i32, 64" : grid(1) out=f16[4] poison x=f16[4] [1,1,1,1] stride=4 columns=4 ; expect out = [0.25,0.25,0.25,0.25]
