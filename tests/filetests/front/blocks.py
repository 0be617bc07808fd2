# Block pointers, tensor descriptors, random numbers, and other functions of the library made of its own.
# run: copy_block "*fp32, *fp32, i32, i32, i32" : grid(2,2) out=f32[15] zeros x=f32[15] iota(1) m=3 n=5 stride=5 ; expect out = [1,2,3,4,5,6,7,8,9,10,11,12,13,14,15]
# run: row_sums "*fp32, *fp32, i32, i32, 4, 4" : grid(2) out=f32[8] zeros x=f32[35] iota(0) m=7 n=5 ; expect out = [10,35,60,85,110,135,160,0]
# tile: row_sums "*fp32:16, *fp32:16, i32, i32:16, 4, 4"
# run: remade "*fp32, *fp32, i32" : grid(1) out=f32[4] zeros x=f32[16] iota(0) n=4 ; expect out = [24,28,32,36]
# run: described "*fp32, *fp32, i32, i32" : grid(1) out=f32[16] zeros x=f32[8] iota(1) m=2 n=4 ; expect out = [6,7,8,0,0,0,0,0,0,0,0,0,0,0,0,0]
# run: known_answers "*i32" : grid(1) out=i32[12] poison ; expect out = [1713891541,-513161843,-1135104948,-1694442536,1083123565,1103641358,-1576286266,1834242557,-781386231,-1795306261,1342301216,605187745]
# run: known_wide_answers "*i64" : grid(1) out=i64[4] poison ; expect out = [1609277786247541068,-2656843828154265636,-2889214403062392981,9108730954146095675]
# run: uniform "*fp32, i64, i32" : grid(1) out=f32[8] poison seed=42 base=10 ; expect out within exact
# run: softmax_rows "*fp32, *fp32" : grid(1) out=f32[8] poison x=f32[8] [0,0,0,0,1,1,1,1] ; expect out = [0.25,0.25,0.25,0.25,0.25,0.25,0.25,0.25]
# run: order "*i32" : grid(1) out=i32[12] poison ; expect out = [0,2,4,1,3,5,6,7,8,-1,-1,-1]
# error: in_prelude "*i32"
# error: misuse "*fp32, i32"
import triton
import triton.language as tl


@triton.jit
def copy_block(out, x, m, n, stride):
    i = tl.program_id(0)
    j = tl.program_id(1)
    source = tl.make_block_ptr(x, (m, n), (stride, 1), (i * 2, j * 4), (2, 4), (1, 0))
    target = tl.make_block_ptr(base=out, shape=(m, n), strides=(n, 1), offsets=(i * 2, j * 4), block_shape=(2, 4), order=(1, 0))
    tl.store(target, tl.load(source, boundary_check=(0, 1), padding_option="zero"), boundary_check=(0, 1))


@triton.jit
def row_sums(out, x, m, n, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row = tl.program_id(0) * ROWS
    block = tl.make_block_ptr(x, (m, n), (n, 1), (row, 0), (ROWS, COLUMNS), (1, 0))
    sums = tl.zeros((ROWS,), tl.float32)
    for _ in range(0, n, COLUMNS):
        sums += tl.sum(tl.load(block, boundary_check=(0, 1)), 1)
        block = tl.advance(block, (0, COLUMNS))
    tl.store(out + row + tl.arange(0, ROWS), sums)


@triton.jit
def remade(out, x, n):
    block = tl.make_block_ptr(x, (4,), (1,), (0,), (4,), (0,))
    sums = tl.zeros((4,), tl.float32)
    for i in range(n):
        block = tl.make_block_ptr(x + 4 * i, (4,), (1,), (0,), (4,), (0,))
        sums += tl.load(block)
    tl.store(out + tl.arange(0, 4), sums)


@triton.jit
def described(out, x, m, n):
    desc = tl.make_tensor_descriptor(x, shape=[m, n], strides=[n, 1], block_shape=[2, 4])
    tl.static_assert(desc.block_shape[1] == 4 and desc.dtype == tl.float32)
    tile = desc.load([1, 1])
    at = tl.arange(0, 2)[:, None] * 4 + tl.arange(0, 4)[None, :]
    tl.store(out + at, tile)
    small = tl.make_tensor_descriptor(out + 8, [1, 2], [4, 1], [2, 4])
    small.store([0, 0], tl.load_tensor_descriptor(desc, [2, 0]) + 1 - 1)


@triton.jit
def known_answers(out):
    # The vectors that the algorithm's authors publish for ten rounds on 32 bits.
    a, b, c, d = tl.philox(0, 0, 0, 0, 0)
    tl.store(out, a)
    tl.store(out + 1, b)
    tl.store(out + 2, c)
    tl.store(out + 3, d)
    ones = 0xFFFFFFFF
    a, b, c, d = tl.philox(0xFFFFFFFFFFFFFFFF, ones, ones, ones, ones, 10)
    tl.store(out + 4, a)
    tl.store(out + 5, b)
    tl.store(out + 6, c)
    tl.store(out + 7, d)
    a, b, c, d = tl.philox(0x299F31D0A4093822, 0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344)
    tl.store(out + 8, a)
    tl.store(out + 9, b)
    tl.store(out + 10, c)
    tl.store(out + 11, d)


@triton.jit
def known_wide_answers(out):
    zero = tl.full((), 0, tl.uint64)
    words = tl.philox(0, zero, zero, zero, zero)
    for i in tl.static_range(4):
        tl.store(out + i, words[i])


@triton.jit
def uniform(out, seed, base):
    at = tl.arange(0, 8)
    value = tl.rand(seed, base + at)
    tl.store(out + at, value)


@triton.jit
def softmax_rows(out, x):
    at = tl.arange(0, 2)[:, None] * 4 + tl.arange(0, 4)[None, :]
    tl.store(out + at, tl.softmax(tl.load(x + at), 1, keep_dims=True))


@triton.jit
def order(out):
    at = tl.arange(0, 16)
    i, j = tl.swizzle2d(at // 3, at % 3, 3, 3, 2)
    place = at // 3 * 3 + at % 3
    tl.store(out + at, -1, mask=(at >= 9) & (at < 12))
    tl.store(out + i * 3 + j, place, mask=at < 9)


@triton.jit
def in_prelude(x):
    at = tl.arange(0, 8)
    tl.store(x + at, tl.softmax(tl.load(x + at)))


@triton.jit
def misuse(x, n):
    block = tl.make_block_ptr(x, (n,), (1,), (0,), (4,), (0,))
    tl.load(block, mask=n > 0)
    tl.load(block, boundary_check=(1,))
    tl.advance(block, (1, 2))
    tl.advance(x, (1,))
    tl.make_block_ptr(x, (n, n), (1,), (0,), (4,), (0,))
    tl.load((1, 2))
    block + 1
    block.load()
# == tile row_sums "*fp32:16, *fp32:16, i32, i32:16, 4, 4"
# kernel @row_sums(v0 "out": ptr<f32> {divisible = 16}, v1 "x": ptr<f32> {divisible = 16}, v2 "m": i32, v3 "n": i32 {divisible = 16}) warps(4) {
# block0:
#     v4 = program_id {axis = 0} : i32 @29
#     v5 = const {value = 4} : i32 @29
#     v6 = imul v4, v5 : i32 @29
#     v7 = sext v6 : i64 @30
#     v8 = sext v2 : i64 @30
#     v9 = sext v3 : i64 @30
#     v10 = sext v3 : i64 @30
#     v11 = const {value = 0.0} : f32[4] @31
#     v12 = const {value = 0} : i32 @32
#     v13 = const {value = 4} : i32 @32
#     v14 = const {value = 0} : i64 @32
#     v15 = const {value = 0} : i64 @32
#     v16, v17 = for v12, v3, v13, v11, v15 : f32[4], i64 @32 {
#     block1(v18: i32, v19: f32[4], v20: i64):
#         v21 = const {value = 1} : i64 @33
#         v22 = arange {start = 0} : i32[4] @33
#         v23 = sext v22 : i64[4] @33
#         v24 = expand_dims v23 {axis = 1} : i64[4,1] @33
#         v25 = splat v7 : i64[4,1] @33
#         v26 = iadd v25, v24 : i64[4,1] @33
#         v27 = const {value = 0} : i64[4,1] @33
#         v28 = splat v8 : i64[4,1] @33
#         v29 = icmp v26, v27 {ipred = sge} : i1[4,1] @33
#         v30 = icmp v26, v28 {ipred = slt} : i1[4,1] @33
#         v31 = and v29, v30 : i1[4,1] @33
#         v32 = broadcast v31 : i1[4,4] @33
#         v33 = arange {start = 0} : i32[4] @33
#         v34 = sext v33 : i64[4] @33
#         v35 = expand_dims v34 {axis = 0} : i64[1,4] @33
#         v36 = splat v20 : i64[1,4] @33
#         v37 = iadd v36, v35 : i64[1,4] @33
#         v38 = const {value = 0} : i64[1,4] @33
#         v39 = splat v9 : i64[1,4] @33
#         v40 = icmp v37, v38 {ipred = sge} : i1[1,4] @33
#         v41 = icmp v37, v39 {ipred = slt} : i1[1,4] @33
#         v42 = and v40, v41 : i1[1,4] @33
#         v43 = broadcast v42 : i1[4,4] @33
#         v44 = and v32, v43 : i1[4,4] @33
#         v45 = imul v7, v10 : i64 @33
#         v46 = addptr v1, v45 : ptr<f32> @33
#         v47 = imul v20, v21 : i64 @33
#         v48 = addptr v46, v47 : ptr<f32> @33
#         v49 = splat v48 : ptr<f32>[4,4] @33
#         v50 = arange {start = 0} : i32[4] @33
#         v51 = sext v50 : i64[4] @33
#         v52 = expand_dims v51 {axis = 1} : i64[4,1] @33
#         v53 = splat v10 : i64[4,1] @33
#         v54 = imul v52, v53 : i64[4,1] @33
#         v55 = broadcast v54 : i64[4,4] @33
#         v56 = addptr v49, v55 : ptr<f32>[4,4] @33
#         v57 = arange {start = 0} : i32[4] @33
#         v58 = sext v57 : i64[4] @33
#         v59 = expand_dims v58 {axis = 0} : i64[1,4] @33
#         v60 = splat v21 : i64[1,4] @33
#         v61 = imul v59, v60 : i64[1,4] @33
#         v62 = broadcast v61 : i64[4,4] @33
#         v63 = addptr v56, v62 : ptr<f32>[4,4] @33
#         v64 = const {value = 0.0} : f32[4,4] @33
#         v65 = load v63, v44, v64 : f32[4,4] @33
#         v66 = reduce v65 {axis = 1} : f32[4] @33 {
#         block2(v67: f32, v68: f32):
#             v69 = fadd v67, v68 : f32 @33
#             yield v69 @33
#         }
#         v70 = fadd v19, v66 : f32[4] @33
#         v71 = const {value = 4} : i64 @34
#         v72 = iadd v20, v71 : i64 @34
#         yield v70, v72 @32
#     }
#     v73 = addptr v0, v6 : ptr<f32> @35
#     v74 = arange {start = 0} : i32[4] @35
#     v75 = splat v73 : ptr<f32>[4] @35
#     v76 = addptr v75, v74 : ptr<f32>[4] @35
#     store v76, v16 @35
#     return @28
# }
# == error in_prelude "*i32"
# error[F10]: `exp` is for float32 and float64, found i32[8]
#    --> blocks.py:113:22
#     |
# 113 |     tl.store(x + at, tl.softmax(tl.load(x + at)))
#     |                      ^^^^^^^^^^^^^^^^^^^^^^^^^^^
#     |
# help: cast first: `x.to(tl.float32)`
# == error misuse "*fp32, i32"
# error[F09]: a block pointer takes no mask
#    --> blocks.py:119:5
#     |
# 119 |     tl.load(block, mask=n > 0)
#     |     ^^^^^^^^^^^^^^^^^^^^^^^^^^
#     |
# help: name dimensions to be checked: `boundary_check=(0, 1)`
#
# error[F11]: a block of 1 dimensions has no dimension 1
#    --> blocks.py:120:5
#     |
# 120 |     tl.load(block, boundary_check=(1,))
#     |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#
# error[F11]: 2 steps for 1 dimensions
#    --> blocks.py:121:23
#     |
# 121 |     tl.advance(block, (1, 2))
#     |                       ^^^^^^
#
# error[F10]: expected a block pointer, found a pointer *fp32
#    --> blocks.py:122:16
#     |
# 122 |     tl.advance(x, (1,))
#     |                ^
#
# error[F11]: shape, strides, offsets and block shape have one entry for each dimension
#    --> blocks.py:123:5
#     |
# 123 |     tl.make_block_ptr(x, (n, n), (1,), (0,), (4,), (0,))
#     |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#
# error[F10]: expected a pointer, found a tuple of 2
#    --> blocks.py:124:13
#     |
# 124 |     tl.load((1, 2))
#     |             ^^^^^^
#
# error[F10]: expected a number or a block, found a block pointer
#    --> blocks.py:125:5
#     |
# 125 |     block + 1
#     |     ^^^^^
#
# error[F06]: a block pointer has no attribute `load`
#    --> blocks.py:126:11
#     |
# 126 |     block.load()
#     |           ^^^^
