# Products in several dimensions of batches, and exponents of either sign.
# run: batches "*fp32, *fp32" : grid(1) x=f32[64] iota(0) out=f32[16] poison ; expect out = [1,2,9,10,33,35,49,51,97,100,121,124,193,197,225,229]
# run: scaled "*fp16, *i8, *fp32" : grid(1) x=f16[32] iota(0) exponents=i8[1] [-128] out=f32[1] poison ; expect out = [992]
import triton
import triton.language as tl


@triton.jit
def batches(x, out):
    # x times a matrix with the number of the batch on its diagonal, and one.
    batch = tl.arange(0, 2)[:, None, None, None] * 2 + tl.arange(0, 2)[None, :, None, None]
    m = tl.arange(0, 2)
    k = tl.arange(0, 8)
    left = tl.load(x + (batch * 2 + m[None, None, :, None]) * 8 + k[None, None, None, :])
    right = tl.where(k[None, None, :, None] == m[None, None, None, :], batch + 1, 0).to(tl.float32)
    total = tl.dot(left, right, tl.full((2, 2, 2, 2), 1.0, tl.float32), input_precision="ieee")
    tl.store(out + (batch * 2 + m[None, None, :, None]) * 2 + m[None, None, None, :], total)


@triton.jit
def scaled(x, exponents, out):
    # -128 has the bits of 128, which is one more than the bias.
    one = tl.arange(0, 1)
    left = tl.load(x + tl.arange(0, 32))[None, :]
    exponent = tl.load(exponents + one)[:, None]
    total = tl.dot_scaled(left, exponent, "fp16", tl.full((32, 1), 1.0, tl.float16), None, "fp16")
    tl.store(out + one[:, None] + one[None, :], total)
