"""Numbers of eight bits: rows of int8 with a scale each, blocks of fp8 with a scale each, and back."""
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def quantize_rows(out, scales, x, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < columns
    v = tl.load(x + row * columns + at, mask=mask, other=0.0).to(tl.float32)
    scale = tl.maximum(tl.max(tl.abs(v), axis=0), 1e-10) / 127.0
    q = libdevice.rint(v / scale).to(tl.int8)
    tl.store(out + row * columns + at, q, mask=mask)
    tl.store(scales + row, scale)


@triton.jit
def dequantize_rows(out, x, scales, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < columns
    q = tl.load(x + row * columns + at, mask=mask)
    tl.store(out + row * columns + at, q.to(tl.float32) * tl.load(scales + row), mask=mask)


@triton.jit
def quantize_blocks(out, scales, x, n, LARGEST: tl.constexpr, BLOCK: tl.constexpr):
    block = tl.program_id(0)
    at = block * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    v = tl.load(x + at, mask=mask, other=0.0).to(tl.float32)
    scale = tl.maximum(tl.max(tl.abs(v), axis=0), 1e-4) / LARGEST
    q = tl.clamp(v / scale, -LARGEST, LARGEST).to(out.dtype.element_ty)
    tl.store(out + at, q, mask=mask)
    tl.store(scales + block, scale)


@triton.jit
def dequantize_blocks(out, x, scales, n, BLOCK: tl.constexpr):
    block = tl.program_id(0)
    at = block * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    v = tl.load(x + at, mask=mask).to(tl.float32)
    tl.store(out + at, v * tl.load(scales + block), mask=mask)


# run: quantize_rows "*i8, *fp32, *fp32, i32, 64" : grid(2) out=i8[100] poison scales=f32[2] poison x=f32[100] normal(1) columns=50
# run: dequantize_rows "*fp32, *i8, *fp32, i32, 64" : grid(2) out=f32[100] poison x=i8[100] uniform(1,-127,127) scales=f32[2] uniform(2,0.1,1) columns=50
# run: quantize_blocks "*fp8e5, *fp32, *fp32, i32, 57344.0, 64" : grid(2) out=f8e5m2[100] poison scales=f32[2] poison x=f32[100] normal(1) n=100
# run: dequantize_blocks "*fp32, *fp8e5, *fp32, i32, 64" : grid(2) out=f32[100] poison x=f8e5m2[100] normal(1) scales=f32[2] uniform(2,0.1,1) n=100
