# `tl.constexpr` of data is that data: Triton wraps it and unwraps it where it is used.
import triton
import triton.language as tl


@triton.jit
def banded(out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    apart = tl.constexpr(i[:, None] - i[None, :] + n)
    last = tl.constexpr(n - 1)
    places = out + i[:, None] * B + i[None, :]
    tl.store(places, tl.where(apart >= 0, apart, last))
# tile: banded "*i32, i32, 16"
# == tile banded "*i32, i32, 16"
# kernel @banded(v0 "out": ptr<i32>, v1 "n": i32) warps(4) {
# block0:
#     v2 = arange {start = 0} : i32[16] @8
#     v3 = expand_dims v2 {axis = 1} : i32[16,1] @9
#     v4 = expand_dims v2 {axis = 0} : i32[1,16] @9
#     v5 = broadcast v3 : i32[16,16] @9
#     v6 = broadcast v4 : i32[16,16] @9
#     v7 = isub v5, v6 : i32[16,16] @9
#     v8 = splat v1 : i32[16,16] @9
#     v9 = iadd v7, v8 : i32[16,16] @9
#     v10 = const {value = 1} : i32 @10
#     v11 = isub v1, v10 : i32 @10
#     v12 = expand_dims v2 {axis = 1} : i32[16,1] @11
#     v13 = const {value = 16} : i32[16,1] @11
#     v14 = imul v12, v13 : i32[16,1] @11
#     v15 = splat v0 : ptr<i32>[16,1] @11
#     v16 = addptr v15, v14 : ptr<i32>[16,1] @11
#     v17 = expand_dims v2 {axis = 0} : i32[1,16] @11
#     v18 = broadcast v16 : ptr<i32>[16,16] @11
#     v19 = broadcast v17 : i32[16,16] @11
#     v20 = addptr v18, v19 : ptr<i32>[16,16] @11
#     v21 = const {value = 0} : i32[16,16] @12
#     v22 = icmp v9, v21 {ipred = sge} : i1[16,16] @12
#     v23 = splat v11 : i32[16,16] @12
#     v24 = select v22, v9, v23 : i32[16,16] @12
#     store v20, v24 @12
#     return @7
# }
