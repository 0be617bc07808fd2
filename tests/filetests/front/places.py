# Where the largest of equal ones is. Of an index that ascends the first is chosen without a look at it where threads hold what they compare;
# one that descends, prefers the last, or is the same along the axis is looked at.
# run: places "*fp32, *i32, 4, 2" : grid(1) x=f32[8] [1,5,3,5,3,2,0,5] out=i32[8] poison ; expect out = [1,0,1,0,2,3,0,1]
# run: places "*i32, *i32, 4, 2" : grid(1) x=i32[8] [1,5,3,5,3,2,0,5] out=i32[8] poison ; expect out = [1,0,1,0,2,3,0,1]
# run: places "*fp32, *i32, 2048, 2" : grid(1) x=f32[4096] const(1) out=i32[8] poison ; expect out = [0,0,0,0,2047,2047,0,1]
# run: places "*u8, *i32, 128, 64" : grid(1) x=i8[8192] uniform(1,-3,3) out=i32[256] poison
# run: places "*fp16, *i32, 64, 256" : grid(1) x=f16[16384] uniform(1,0,0.005) out=i32[1024] poison
import triton
import triton.language as tl


@triton.jit
def _first(a, i, b, j):
    left = (a > b) | ((a == b) & (i < j))
    return tl.where(left, a, b), tl.where(left, i, j)


@triton.jit
def _last(a, i, b, j):
    left = (a > b) | ((a == b) & (i > j))
    return tl.where(left, a, b), tl.where(left, i, j)


@triton.jit
def places(x, out, R: tl.constexpr, C: tl.constexpr):
    r, c = tl.arange(0, R)[:, None], tl.arange(0, C)[None, :]
    v = tl.load(x + r * C + c)
    up, down, side = tl.broadcast_to(r, [R, C]), tl.broadcast_to(R - 1 - r, [R, C]), tl.broadcast_to(c, [R, C])
    at = out + tl.arange(0, C)
    tl.store(at, tl.reduce((v, up), 0, _first)[1])
    tl.store(at + C, tl.reduce((v, down), 0, _first)[1])
    tl.store(at + 2 * C, tl.reduce((v, up), 0, _last)[1])
    tl.store(at + 3 * C, tl.reduce((v, side), 0, _first)[1])
