# Products of matrices: how exact they are asked to be.
# tile: precisions "*fp32:16, *fp32:16"
# tile: imprecise "*fp8e5:16, *fp32:16"
# error: too_imprecise "*fp8e5:16"
import triton
import triton.language as tl


@triton.jit
def precisions(x, out):
    at = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]
    a = tl.load(x + at)
    acc = tl.dot(a, a)
    acc = tl.dot(a, a, acc, input_precision="tf32")
    acc = tl.dot(a, a, acc, input_precision="tf32x3")
    acc = tl.dot(a, a, acc, input_precision="ieee")
    # Three products of bf16 are about as exact as three of tf32, six as f32.
    acc = tl.dot(a, a, acc, input_precision="bf16x3")
    acc = tl.dot(a, a, acc, input_precision="bf16x6")
    acc = tl.dot(a, a, acc, allow_tf32=False)
    tl.store(out + at, acc)


@triton.jit
def imprecise(x, out):
    # Of a number above zero 8-bit floats may keep few bits; of none where no unit sums so, as here.
    at = tl.arange(0, 32)[:, None] * 32 + tl.arange(0, 32)[None, :]
    a = tl.load(x + at)
    acc = tl.dot(a, a, max_num_imprecise_acc=32)
    acc = tl.dot(a, a, acc, max_num_imprecise_acc=0)
    acc = tl.dot(a, a, acc)
    tl.store(out + at, acc)


@triton.jit
def too_imprecise(x):
    at = tl.arange(0, 32)[:, None] * 32 + tl.arange(0, 32)[None, :]
    a = tl.load(x + at)
    tl.dot(a, a, max_num_imprecise_acc=64)
# == tile precisions "*fp32:16, *fp32:16"
# kernel @precisions(v0 "x": ptr<f32> {divisible = 16}, v1 "out": ptr<f32> {divisible = 16}) warps(4) {
# block0:
#     v2 = arange {start = 0} : i32[16] @11
#     v3 = expand_dims v2 {axis = 1} : i32[16,1] @11
#     v4 = const {value = 16} : i32[16,1] @11
#     v5 = imul v3, v4 : i32[16,1] @11
#     v6 = arange {start = 0} : i32[16] @11
#     v7 = expand_dims v6 {axis = 0} : i32[1,16] @11
#     v8 = broadcast v5 : i32[16,16] @11
#     v9 = broadcast v7 : i32[16,16] @11
#     v10 = iadd v8, v9 : i32[16,16] @11
#     v11 = splat v0 : ptr<f32>[16,16] @12
#     v12 = addptr v11, v10 : ptr<f32>[16,16] @12
#     v13 = load v12 : f32[16,16] @12
#     v14 = const {value = 0.0} : f32[16,16] @13
#     v15 = dot v13, v13, v14 {precision = tf32} : f32[16,16] @13
#     v16 = dot v13, v13, v15 {precision = tf32} : f32[16,16] @14
#     v17 = dot v13, v13, v16 {precision = tf32x3} : f32[16,16] @15
#     v18 = dot v13, v13, v17 {precision = ieee} : f32[16,16] @16
#     v19 = dot v13, v13, v18 {precision = tf32x3} : f32[16,16] @18
#     v20 = dot v13, v13, v19 {precision = ieee} : f32[16,16] @19
#     v21 = dot v13, v13, v20 {precision = ieee} : f32[16,16] @20
#     v22 = splat v1 : ptr<f32>[16,16] @21
#     v23 = addptr v22, v10 : ptr<f32>[16,16] @21
#     store v23, v21 @21
#     return @10
# }
# == tile imprecise "*fp8e5:16, *fp32:16"
# kernel @imprecise(v0 "x": ptr<f8e5m2> {divisible = 16}, v1 "out": ptr<f32> {divisible = 16}) warps(4) {
# block0:
#     v2 = arange {start = 0} : i32[32] @27
#     v3 = expand_dims v2 {axis = 1} : i32[32,1] @27
#     v4 = const {value = 32} : i32[32,1] @27
#     v5 = imul v3, v4 : i32[32,1] @27
#     v6 = arange {start = 0} : i32[32] @27
#     v7 = expand_dims v6 {axis = 0} : i32[1,32] @27
#     v8 = broadcast v5 : i32[32,32] @27
#     v9 = broadcast v7 : i32[32,32] @27
#     v10 = iadd v8, v9 : i32[32,32] @27
#     v11 = splat v0 : ptr<f8e5m2>[32,32] @28
#     v12 = addptr v11, v10 : ptr<f8e5m2>[32,32] @28
#     v13 = load v12 : f8e5m2[32,32] @28
#     v14 = const {value = 0.0} : f32[32,32] @29
#     v15 = dot v13, v13, v14 {precision = tf32, imprecise = 32} : f32[32,32] @29
#     v16 = dot v13, v13, v15 {precision = tf32} : f32[32,32] @30
#     v17 = dot v13, v13, v16 {precision = tf32} : f32[32,32] @31
#     v18 = splat v1 : ptr<f32>[32,32] @32
#     v19 = addptr v18, v10 : ptr<f32>[32,32] @32
#     store v19, v17 @32
#     return @25
# }
# == error too_imprecise "*fp8e5:16"
# error[F20]: `max_num_imprecise_acc` is at most 32 here, not 64
#   --> products.py:39:18
#    |
# 39 |     tl.dot(a, a, max_num_imprecise_acc=64)
#    |                  ^^^^^^^^^^^^^^^^^^^^^^^^
