# Softmax over rows, in one block and in a loop with running maximum and sum.
# tile: softmax "*fp32:16, *fp32:16, i32:16, i32, 8"
# run: softmax "*fp32:16, *fp32:16, i32, i32, 1024" : grid(3) out=f32[2100] poison x=f32[2100] normal(3) stride=700 n=700 ; expect out within ulp 8
# run: softmax "*fp32, *fp32, i32, i32, 4" : grid(1) out=f32[4] poison x=f32[4] [1,1,1,1] stride=4 n=4 ; expect out = [0.25,0.25,0.25,0.25]
# run: online "*fp32:16, *fp32:16, i32, i32, 128" : grid(2) out=f32[1400] poison x=f32[1400] normal(4) stride=700 n=700 ; expect out within rel 1e-5
import triton
import triton.language as tl


@triton.jit
def softmax(out, x, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    mask = columns < n
    values = tl.load(x + row * stride + columns, mask=mask, other=-float("inf"))
    powers = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + row * stride + columns, powers / tl.sum(powers, axis=0), mask=mask)


@triton.jit
def online(out, x, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    x += row * stride
    out += row * stride
    largest = float("-inf")
    total = 0.0
    for start in range(0, n, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        values = tl.load(x + columns, mask=columns < n, other=float("-inf"))
        new = tl.maximum(largest, tl.max(values, 0))
        total = total * tl.exp(largest - new) + tl.sum(tl.exp(values - new), 0)
        largest = new
    for start in range(0, n, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        mask = columns < n
        values = tl.load(x + columns, mask=mask)
        tl.store(out + columns, tl.exp(values - largest) / total, mask=mask)
# == tile softmax "*fp32:16, *fp32:16, i32:16, i32, 8"
# kernel @softmax(v0 "out": ptr<f32> {divisible = 16}, v1 "x": ptr<f32> {divisible = 16}, v2 "stride": i32 {divisible = 16}, v3 "n": i32) warps(4) {
# block0:
#     v4 = program_id {axis = 0} : i32 @12
#     v5 = arange {start = 0} : i32[8] @13
#     v6 = splat v3 : i32[8] @14
#     v7 = icmp v5, v6 {ipred = slt} : i1[8] @14
#     v8 = imul v4, v2 : i32 @15
#     v9 = addptr v1, v8 : ptr<f32> @15
#     v10 = splat v9 : ptr<f32>[8] @15
#     v11 = addptr v10, v5 : ptr<f32>[8] @15
#     v12 = const {value = -inf} : f32[8] @15
#     v13 = load v11, v7, v12 : f32[8] @15
#     v14 = reduce v13 {axis = 0} : f32 @16 {
#     block1(v15: f32, v16: f32):
#         v17 = fmax v15, v16 {nan = ignore} : f32 @16
#         yield v17 @16
#     }
#     v18 = splat v14 : f32[8] @16
#     v19 = fsub v13, v18 : f32[8] @16
#     v20 = exp v19 : f32[8] @16
#     v21 = imul v4, v2 : i32 @17
#     v22 = addptr v0, v21 : ptr<f32> @17
#     v23 = splat v22 : ptr<f32>[8] @17
#     v24 = addptr v23, v5 : ptr<f32>[8] @17
#     v25 = reduce v20 {axis = 0} : f32 @17 {
#     block2(v26: f32, v27: f32):
#         v28 = fadd v26, v27 : f32 @17
#         yield v28 @17
#     }
#     v29 = splat v25 : f32[8] @17
#     v30 = fdiv v20, v29 : f32[8] @17
#     store v24, v30, v7 @17
#     return @11
# }
