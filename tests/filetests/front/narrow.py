# float8e4b15: a sign, four bits of exponent with bias 15 and three of fraction; what is larger than 1.75 becomes that, halves go up.
#
# run: converts "*fp32, *fp32, *u8" : grid(1) out=f32[24] poison x=f32[8] [1.0,-1.75,0.3,100.0,0.00006103515625,-0.75,0.0,1.0625] bytes=i8[8] poison ; expect bytes = [120,-2,106,126,8,-12,0,121] ; expect out = [1.0,-1.75,0.3125,1.75,0.00006103515625,-0.75,0.0,1.125,1.5,1.5,1.5,1.5,1.5,1.5,1.5,1.5,1.0,-1.75,0.3125,1.75,1.5,1.5,1.5,1.5]
# run: compares "*i32, *fp32" : grid(1) out=i32[20] poison x=f32[4] [1.0,-0.5,0.25,-1.5] ; expect out = [1,0,1,0,0,1,0,1,1,0,0,0,0,1,0,1,-16,8,-4,24]
# error: computes "*fp32"

import triton
import triton.language as tl


@triton.jit
def converts(out, x, bytes):
    i = tl.arange(0, 8)
    e = tl.load(x + i).to(tl.float8e4b15)
    tl.store(bytes + i, e.to(tl.uint8, bitcast=True))
    tl.store(out + i, e.to(tl.float32))
    c = tl.full((8,), 1.5, tl.float8e4b15)
    tl.store(out + 8 + i, c.to(tl.float32))
    z = tl.zeros((8,), tl.float8e4b15).to(tl.float32)
    tl.store(out + 16 + i, tl.where(i < 4, e, c).to(tl.float32) + z)


@triton.jit
def compares(out, x):
    i = tl.arange(0, 4)
    v = tl.load(x + i)
    e = v.to(tl.float8e4b15)
    tl.store(out + i, e > tl.zeros((4,), tl.float8e4b15))
    tl.store(out + 4 + i, e < -e)
    tl.store(out + 8 + i, e == tl.full((4,), 1.0, tl.float8e4b15))
    tl.store(out + 12 + i, tl.abs(e) != e)
    tl.store(out + 16 + i, ((-e).to(tl.float32) * 16).to(tl.int32))


@triton.jit
def computes(x):
    e = tl.load(x).to(tl.float8e4b15)
    tl.store(x, e + e)
    tl.store(x, e * 2.0)
# == error computes "*fp32"
# error[F10]: there is no arithmetic on fp8e4b15
#   --> narrow.py:38:17
#    |
# 38 |     tl.store(x, e + e)
#    |                 ^^^^^
#    |
# help: cast to float16 or float32 first
#
# error[F10]: there is no arithmetic on fp8e4b15
#   --> narrow.py:39:17
#    |
# 39 |     tl.store(x, e * 2.0)
#    |                 ^^^^^^^
#    |
# help: cast to float16 or float32 first
