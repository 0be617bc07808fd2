# Vector addition, in the language as it is and in its older form.
# tile: add "*fp32:16, *fp32:16, *fp32:16, i32, 64"
# run: add "*fp32:16, *fp32:16, *fp32:16, i32, 64" : grid(3) x=f32[150] normal(1) y=f32[150] normal(2) out=f32[150] poison n=150
# run: add "*fp32, *fp32, *fp32, 4, 4" : grid(1) x=f32[4] [1,2,3,4] y=f32[4] [0.5,0.5,0.5,0.5] out=f32[4] poison ; expect out = [1.5,2.5,3.5,4.5]
# run: older "*i32, *i32, *i32, i32" BLOCK=8 : grid(2) X=i32[10] iota(0) Y=i32[10] iota(10) Z=i32[10] poison N=10 ; expect Z = [10,12,14,16,18,20,22,24,26,28]
import triton
import triton.language as tl

BLOCK = 16


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out + offsets, tl.load(x + offsets, mask=mask) + tl.load(y + offsets, mask=mask), mask=mask)


@jit
def older(X, Y, Z, N):
    at = program_id(0) * BLOCK + arange(BLOCK)
    mask = at < N
    store(Z + at, load(X + at, mask=mask) + load(Y + at, mask=mask), mask=mask)
# == tile add "*fp32:16, *fp32:16, *fp32:16, i32, 64"
# kernel @add(v0 "x": ptr<f32> {divisible = 16}, v1 "y": ptr<f32> {divisible = 16}, v2 "out": ptr<f32> {divisible = 16}, v3 "n": i32) warps(4) {
# block0:
#     v4 = program_id {axis = 0} : i32 @14
#     v5 = const {value = 64} : i32 @14
#     v6 = imul v4, v5 : i32 @14
#     v7 = arange {start = 0} : i32[64] @14
#     v8 = splat v6 : i32[64] @14
#     v9 = iadd v8, v7 : i32[64] @14
#     v10 = splat v3 : i32[64] @15
#     v11 = icmp v9, v10 {ipred = slt} : i1[64] @15
#     v12 = splat v2 : ptr<f32>[64] @16
#     v13 = addptr v12, v9 : ptr<f32>[64] @16
#     v14 = splat v0 : ptr<f32>[64] @16
#     v15 = addptr v14, v9 : ptr<f32>[64] @16
#     v16 = load v15, v11 : f32[64] @16
#     v17 = splat v1 : ptr<f32>[64] @16
#     v18 = addptr v17, v9 : ptr<f32>[64] @16
#     v19 = load v18, v11 : f32[64] @16
#     v20 = fadd v16, v19 : f32[64] @16
#     store v13, v20, v11 @16
#     return @13
# }
