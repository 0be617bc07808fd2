# Whether operands may be rounded, as a number that is passed at launch: of f32 they are, as Triton does; of others it says nothing.
# tile: product "*bf16:16, *fp32:16, i1"
# error: warned "*fp32:16, *fp32:16, i1"
import triton
import triton.language as tl


@triton.jit
def product(x, out, allow_tf32):
    at = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]
    a = tl.load(x + at)
    tl.store(out + at, tl.dot(a, a, allow_tf32=allow_tf32))


@triton.jit
def warned(x, out, allow_tf32):
    # What is wrong behind it shows the warning, too.
    at = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]
    a = tl.load(x + at)
    tl.store(out + at, tl.dot(a, a, allow_tf32=allow_tf32) + nothing)
# == tile product "*bf16:16, *fp32:16, i1"
# kernel @product(v0 "x": ptr<bf16> {divisible = 16}, v1 "out": ptr<f32> {divisible = 16}, v2 "allow_tf32": i1) warps(4) {
# block0:
#     v3 = arange {start = 0} : i32[16] @10
#     v4 = expand_dims v3 {axis = 1} : i32[16,1] @10
#     v5 = const {value = 16} : i32[16,1] @10
#     v6 = imul v4, v5 : i32[16,1] @10
#     v7 = arange {start = 0} : i32[16] @10
#     v8 = expand_dims v7 {axis = 0} : i32[1,16] @10
#     v9 = broadcast v6 : i32[16,16] @10
#     v10 = broadcast v8 : i32[16,16] @10
#     v11 = iadd v9, v10 : i32[16,16] @10
#     v12 = splat v0 : ptr<bf16>[16,16] @11
#     v13 = addptr v12, v11 : ptr<bf16>[16,16] @11
#     v14 = load v13 : bf16[16,16] @11
#     v15 = splat v1 : ptr<f32>[16,16] @12
#     v16 = addptr v15, v11 : ptr<f32>[16,16] @12
#     v17 = const {value = 0.0} : f32[16,16] @12
#     v18 = dot v14, v14, v17 {precision = tf32} : f32[16,16] @12
#     store v16, v18 @12
#     return @9
# }
# == error warned "*fp32:16, *fp32:16, i1"
# warning[F22]: `allow_tf32` is known at launch alone; operands are rounded to tf32, whatever it is, as Triton does
#   --> exactness_at_launch.py:20:37
#    |
# 20 |     tl.store(out + at, tl.dot(a, a, allow_tf32=allow_tf32) + nothing)
#    |                                     ^^^^^^^^^^^^^^^^^^^^^
#    |
# help: a `tl.constexpr` parameter decides it
#
# error[F05]: `nothing` is not defined
#   --> exactness_at_launch.py:20:62
#    |
# 20 |     tl.store(out + at, tl.dot(a, a, allow_tf32=allow_tf32) + nothing)
#    |                                                              ^^^^^^^
#    |
# help: define it, or give a constant with -c nothing=VALUE
