# Numbers of the text that become tensors of their own type first: 0.1 is the nearest float32, also where a float64 is stored,
# and makes f32 of halves in `fma`. Arithmetic takes them as they are. A load's pointers get the shape of its mask.
import triton
import triton.language as tl


@triton.jit
def doubles(out):
    d = tl.load(out)
    tl.store(out, 0.1)
    tl.store(out + 1, tl.maximum(d, 0.1))
    tl.store(out + 2, d + 0.1)


@triton.jit
def halves(out, x):
    tl.store(out, tl.fma(tl.load(x), 0.5, 1.0))


@triton.jit
def masked(out, x, n):
    i = tl.arange(0, 4)
    mask = (i[:, None] < n) & (i[None, :] < 2)
    tl.store(out + i[:, None] * 4 + i[None, :], tl.load(x + i[None, :], mask, 0.0))
# tile: doubles "*fp64"
# tile: halves "*fp32, *bf16"
# tile: masked "*fp32, *fp32, i32"
# == tile doubles "*fp64"
# kernel @doubles(v0 "out": ptr<f64>) warps(4) {
# block0:
#     v1 = load v0 : f64 @9
#     v2 = const {value = 0.10000000149011612} : f64 @10
#     store v0, v2 @10
#     v3 = const {value = 1} : i32 @11
#     v4 = addptr v0, v3 : ptr<f64> @11
#     v5 = const {value = 0.10000000149011612} : f64 @11
#     v6 = fmax v1, v5 {nan = ignore} : f64 @11
#     store v4, v6 @11
#     v7 = const {value = 2} : i32 @12
#     v8 = addptr v0, v7 : ptr<f64> @12
#     v9 = const {value = 0.1} : f64 @12
#     v10 = fadd v1, v9 : f64 @12
#     store v8, v10 @12
#     return @8
# }
# == tile halves "*fp32, *bf16"
# kernel @halves(v0 "out": ptr<f32>, v1 "x": ptr<bf16>) warps(4) {
# block0:
#     v2 = load v1 : bf16 @17
#     v3 = fpext v2 : f32 @17
#     v4 = const {value = 0.5} : f32 @17
#     v5 = const {value = 1.0} : f32 @17
#     v6 = fpext v2 : f32 @17
#     v7 = const {value = 0.5} : f32 @17
#     v8 = fma v6, v7, v5 : f32 @17
#     store v0, v8 @17
#     return @16
# }
# == tile masked "*fp32, *fp32, i32"
# kernel @masked(v0 "out": ptr<f32>, v1 "x": ptr<f32>, v2 "n": i32) warps(4) {
# block0:
#     v3 = arange {start = 0} : i32[4] @22
#     v4 = expand_dims v3 {axis = 1} : i32[4,1] @23
#     v5 = splat v2 : i32[4,1] @23
#     v6 = icmp v4, v5 {ipred = slt} : i1[4,1] @23
#     v7 = expand_dims v3 {axis = 0} : i32[1,4] @23
#     v8 = const {value = 2} : i32[1,4] @23
#     v9 = icmp v7, v8 {ipred = slt} : i1[1,4] @23
#     v10 = broadcast v6 : i1[4,4] @23
#     v11 = broadcast v9 : i1[4,4] @23
#     v12 = and v10, v11 : i1[4,4] @23
#     v13 = expand_dims v3 {axis = 1} : i32[4,1] @24
#     v14 = const {value = 4} : i32[4,1] @24
#     v15 = imul v13, v14 : i32[4,1] @24
#     v16 = splat v0 : ptr<f32>[4,1] @24
#     v17 = addptr v16, v15 : ptr<f32>[4,1] @24
#     v18 = expand_dims v3 {axis = 0} : i32[1,4] @24
#     v19 = broadcast v17 : ptr<f32>[4,4] @24
#     v20 = broadcast v18 : i32[4,4] @24
#     v21 = addptr v19, v20 : ptr<f32>[4,4] @24
#     v22 = expand_dims v3 {axis = 0} : i32[1,4] @24
#     v23 = splat v1 : ptr<f32>[1,4] @24
#     v24 = addptr v23, v22 : ptr<f32>[1,4] @24
#     v25 = broadcast v24 : ptr<f32>[4,4] @24
#     v26 = const {value = 0.0} : f32[4,4] @24
#     v27 = load v25, v12, v26 : f32[4,4] @24
#     store v21, v27 @24
#     return @21
# }
