# Mistakes in calls of the library, one function for each subject.
# error: products "*fp32, *fp16, *i8"
# error: scaled "*u8, *fp16"
# error: atomics "*fp32, *fp16, *i8, *ki32"
# error: shapes "*fp32, *i32"
# error: descriptors "*fp32, *i32, i32"
# error: assembly "*i32"
# error: orders "*fp32"
# error: combines "*fp32"
# error: prints "*fp32"
# error: roundings "*fp32, *i32"
# error: ranges "*fp32, i32"
# error: host_block "*fp32, tensordesc<fp32[3]>"
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def products(f, h, i):
    at = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]
    a, b, c = tl.load(f + at), tl.load(h + at), tl.load(i + at)
    tl.dot(a, b)
    tl.dot(a, a, input_precision="exact")
    tl.dot(b, b, out_dtype=tl.bfloat16)
    tl.dot(b, b, acc=a.to(tl.float16), out_dtype=tl.float32)
    tl.dot(a, tl.load(f + tl.arange(0, 16)))
    tl.dot(c, c)
    tl.dot(c.to(tl.uint8), c.to(tl.uint8))
    tl.dot(a, tl.load(f + tl.arange(0, 8)[:, None] * 16 + tl.arange(0, 16)[None, :]))


@triton.jit
def scaled(u, h):
    at = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]
    a, b = tl.load(u + at), tl.load(h + at)
    tl.dot_scaled(a, None, "e2m3", b, None, "fp16")
    tl.dot_scaled(a, None, "e2m1", b, None, "e2m1")
    tl.dot_scaled(a, a, "e2m1", a, None, "e2m1")


@triton.jit
def atomics(f, h, i, k):
    tl.atomic_xchg(h, 1.0)
    tl.atomic_max(h, 1.0)
    tl.atomic_add(i, 1)
    tl.atomic_add(k, 1)
    tl.atomic_and(f, 1.0)
    tl.atomic_add(f, 1.0, sem="seq_cst")
    tl.atomic_add(f, tl.arange(0, 4))
    tl.atomic_cas(i, 0, 1)


@triton.jit
def shapes(f, i):
    v = tl.load(f + tl.arange(0, 8))
    tl.reshape(v, (4, 4))
    tl.trans(v)
    tl.permute(v, (1, 0))
    tl.split(v)
    tl.join(v, tl.arange(0, 8))
    tl.cat(v, v[:, None])
    tl.gather(v, v, 0)
    tl.gather(v, tl.load(i + tl.arange(0, 2))[:, None], 0)
    tl.squeeze(v, 0)
    tl.expand_dims(v, 3)


@triton.jit
def descriptors(f, i, n):
    d = tl.make_tensor_descriptor(f, [n, n], [n, 2], [4, 4])
    d = tl.make_tensor_descriptor(f, [n, n], [n, 1], [4, 4], padding_option="one")
    d = tl.make_tensor_descriptor(i, [n, n], [n, 1], [4, 4], padding_option="nan")
    d = tl.make_tensor_descriptor(f, [n], [n, 1], [4, 4])
    d = tl.make_tensor_descriptor(f, [n, n], [n, 1], [4, 4])
    d.load([0])
    d.gather(tl.arange(0, 8), 0)
    d.nothing
    p = tl.make_block_ptr(f, (n, n), (n, 1), (0, 0), (4, 4), (1, 1))
    p = tl.make_block_ptr(f, (n, n), (n, 1), (0, 0), (4, 4), (1, 0))
    tl.load(p, mask=n > 0)
    tl.advance(f, (1, 1))
    tl.load(d)


@triton.jit
def assembly(i):
    v = tl.load(i + tl.arange(0, 32))
    tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r", [v], dtype=tl.int32, is_pure=True, pack=1)
    tl.inline_asm_elementwise("mov.b32 $0, $5;", "=r,r", [v], dtype=tl.int32, is_pure=True, pack=1)
    tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [v], dtype=tl.int32, is_pure=True, pack=3)
    tl.inline_asm_elementwise("mov.b32 $0, $1;", "=q,r", [v], dtype=tl.int32, is_pure=True, pack=1)


@triton.jit
def orders(f):
    v = tl.load(f + tl.arange(0, 8)[:, None] * 4 + tl.arange(0, 4)[None, :])
    tl.sort(v, 0)
    tl.topk(v, 8)
    tl.flip(v, 2)


@triton.jit
def wrong_count(a, b):
    return a, b


@triton.jit
def wrong_type(a, b):
    return a > b


@triton.jit
def combines(f):
    v = tl.load(f + tl.arange(0, 8))
    tl.reduce(v, 0, wrong_count)
    tl.associative_scan(v, 0, wrong_type)
    tl.cumsum(v, 1)
    tl.xor_sum(v, 0)
    tl.argmax(v[:, None], 2)


@triton.jit
def prints(f):
    tl.device_print(f)
    tl.device_assert(f, "x", [1])


@triton.jit
def roundings(f, i):
    x, n = tl.load(f), tl.load(i)
    libdevice.fma_rz(n, x, x)
    libdevice.float2int_rn(n)
    libdevice.ll2float_rz(n)
    libdevice.j2(x)
    x.to(tl.int32, fp_downcast_rounding="rtz")


@triton.jit
def ranges(f, n):
    for i in tl.range(n, warp_specialize=n):
        tl.store(f, i)
    for i in tl.range(n, loop_unroll_factor=n):
        tl.store(f, i)
    for i in tl.range(n, num_stages=99):
        tl.store(f, i)


@triton.jit
def host_block(f, d):
    tl.store(f, tl.sum(d.load([0])))
# == error products "*fp32, *fp16, *i8"
# error[F10]: the operands of a product are fp32 and fp16
#   --> library.py:23:5
#    |
# 23 |     tl.dot(a, b)
#    |     ^^^^^^^^^^^^
#    |
# help: cast one to the type of the other
#
# error[F20]: unknown precision "exact"
#   --> library.py:24:18
#    |
# 24 |     tl.dot(a, a, input_precision="exact")
#    |                  ^^^^^^^^^^^^^^^^^^^^^^^
#    |
# help: known are "tf32", "tf32x3", "bf16x3", "bf16x6", "ieee"
#
# error[F10]: a product is not summed in bfloat16
#   --> library.py:25:18
#    |
# 25 |     tl.dot(b, b, out_dtype=tl.bfloat16)
#    |                  ^^^^^^^^^^^^^^^^^^^^^
#    |
# help: use float32 and cast the result
#
# error[F10]: `acc` must be fp32[16, 16], found fp16[16, 16]
#   --> library.py:26:18
#    |
# 26 |     tl.dot(b, b, acc=a.to(tl.float16), out_dtype=tl.float32)
#    |                  ^^^^^^^^^^^^^^^^^^^^
#
# error[F11]: a product is of blocks of 2 or more dimensions, found fp32[16]
#   --> library.py:27:15
#    |
# 27 |     tl.dot(a, tl.load(f + tl.arange(0, 16)))
#    |               ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#
# error[F11]: a product of i8 adds 32 elements or more, here 16
#   --> library.py:28:5
#    |
# 28 |     tl.dot(c, c)
#    |     ^^^^^^^^^^^^
#    |
# help: load `tl.arange(0, 32)` of them and mask those from 16 on with `other=0`
#
# error[F10]: there is no product of u8
#   --> library.py:29:12
#    |
# 29 |     tl.dot(c.to(tl.uint8), c.to(tl.uint8))
#    |            ^^^^^^^^^^^^^^
#    |
# help: operands are floats or int8
#
# error[F11]: [16,16] and [8,16] cannot be multiplied: [m, k] goes with [k, n]
#   --> library.py:30:5
#    |
# 30 |     tl.dot(a, tl.load(f + tl.arange(0, 8)[:, None] * 16 + tl.arange(0, 16)[None, :]))
#    |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
# == error scaled "*u8, *fp16"
# error[F20]: unknown format "e2m3"
#   --> library.py:37:28
#    |
# 37 |     tl.dot_scaled(a, None, "e2m3", b, None, "fp16")
#    |                            ^^^^^^
#    |
# help: known are "e2m1", "e4m3", "e5m2", "bf16" and "fp16"
#
# error[F10]: `rhs` is a block of 2 or more dimensions of uint8, found fp16[16, 16]
#   --> library.py:38:36
#    |
# 38 |     tl.dot_scaled(a, None, "e2m1", b, None, "e2m1")
#    |                                    ^
#
# error[F11]: `lhs_scale` has the shape [16,1] here, found [16,16]
#   --> library.py:39:22
#    |
# 39 |     tl.dot_scaled(a, a, "e2m1", a, None, "e2m1")
#    |                      ^
# == error atomics "*fp32, *fp16, *i8, *ki32"
# error[F10]: `atomic_xchg` of fp16 is not possible
#   --> library.py:44:20
#    |
# 44 |     tl.atomic_xchg(h, 1.0)
#    |                    ^
#    |
# help: it takes i32, i64, f32 or f64
#
# error[F10]: `atomic_max` of fp16 is not possible
#   --> library.py:45:19
#    |
# 45 |     tl.atomic_max(h, 1.0)
#    |                   ^
#    |
# help: it takes 32-bit and 64-bit numbers
#
# error[F10]: `atomic_add` of i8 is not possible
#   --> library.py:46:19
#    |
# 46 |     tl.atomic_add(i, 1)
#    |                   ^
#    |
# help: it takes i32 or i64
#
# error[F10]: a store through a pointer to constant data
#   --> library.py:47:5
#    |
# 47 |     tl.atomic_add(k, 1)
#    |     ^^^^^^^^^^^^^^^^^^^
#
# error[F10]: `atomic_and` of fp32 is not possible
#   --> library.py:48:19
#    |
# 48 |     tl.atomic_and(f, 1.0)
#    |                   ^
#    |
# help: it takes i32 or i64
#
# error[F20]: `sem` cannot be "seq_cst"
#   --> library.py:49:27
#    |
# 49 |     tl.atomic_add(f, 1.0, sem="seq_cst")
#    |                           ^^^^^^^^^^^^^
#    |
# help: known are "acq_rel", "acquire", "release", "relaxed"
#
# error[F11]: `val` has shape [4], the pointers []
#   --> library.py:50:22
#    |
# 50 |     tl.atomic_add(f, tl.arange(0, 4))
#    |                      ^^^^^^^^^^^^^^^
#    |
# help: the pointers are not broadcast; add offsets that give them the full shape
#
# error[F10]: `atomic_cas` of i8 is not possible
#   --> library.py:51:19
#    |
# 51 |     tl.atomic_cas(i, 0, 1)
#    |                   ^
#    |
# help: it takes numbers of 16, 32 or 64 bits
# == error shapes "*fp32, *i32"
# error[F11]: a block of 8 elements (fp32[8]) cannot have the shape [4,4], which has 16
#   --> library.py:57:5
#    |
# 57 |     tl.reshape(v, (4, 4))
#    |     ^^^^^^^^^^^^^^^^^^^^^
#
# error[F10]: expected a block of 2 or more dimensions, found fp32[8]
#   --> library.py:58:5
#    |
# 58 |     tl.trans(v)
#    |     ^^^^^^^^^^^
#
# error[F11]: a block of 1 dimensions has no dimension 1
#   --> library.py:59:5
#    |
# 59 |     tl.permute(v, (1, 0))
#    |     ^^^^^^^^^^^^^^^^^^^^^
#
# error[F10]: expected a block whose last extent is 2, found fp32[8]
#   --> library.py:60:5
#    |
# 60 |     tl.split(v)
#    |     ^^^^^^^^^^^
#
# error[F10]: `join` puts blocks of one type together, found fp32 and i32
#   --> library.py:61:5
#    |
# 61 |     tl.join(v, tl.arange(0, 8))
#    |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    |
# help: cast one of them with `.to(...)`
#
# error[F11]: `cat` puts blocks of one shape together, found [8] and [8,1]
#   --> library.py:62:5
#    |
# 62 |     tl.cat(v, v[:, None])
#    |     ^^^^^^^^^^^^^^^^^^^^^
#
# error[F10]: expected an index of integers, found fp32[8]
#   --> library.py:63:5
#    |
# 63 |     tl.gather(v, v, 0)
#    |     ^^^^^^^^^^^^^^^^^^
#
# error[F11]: an index of shape [2,1] into a block of shape [8] along dimension 0
#   --> library.py:64:5
#    |
# 64 |     tl.gather(v, tl.load(i + tl.arange(0, 2))[:, None], 0)
#    |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    |
# help: they differ in that dimension alone
#
# error[F11]: dimension 0 has extent 8 and cannot go
#   --> library.py:65:5
#    |
# 65 |     tl.squeeze(v, 0)
#    |     ^^^^^^^^^^^^^^^^
#
# error[F11]: a block of 2 dimensions has no dimension 3
#   --> library.py:66:5
#    |
# 66 |     tl.expand_dims(v, 3)
#    |     ^^^^^^^^^^^^^^^^^^^^
# == error descriptors "*fp32, *i32, i32"
# error[F20]: the last dimension of a described tensor has stride 1
#   --> library.py:71:46
#    |
# 71 |     d = tl.make_tensor_descriptor(f, [n, n], [n, 2], [4, 4])
#    |                                              ^^^^^^
#
# error[F20]: unknown padding "one"
#   --> library.py:72:62
#    |
# 72 |     d = tl.make_tensor_descriptor(f, [n, n], [n, 1], [4, 4], padding_option="one")
#    |                                                              ^^^^^^^^^^^^^^^^^^^^
#    |
# help: it is "zero" or "nan"
#
# error[F10]: i32 has no NaN to pad with
#   --> library.py:73:9
#    |
# 73 |     d = tl.make_tensor_descriptor(i, [n, n], [n, 1], [4, 4], padding_option="nan")
#    |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#
# error[F11]: shape, strides, offsets and block shape have one entry for each dimension
#   --> library.py:74:9
#    |
# 74 |     d = tl.make_tensor_descriptor(f, [n], [n, 1], [4, 4])
#    |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#
# error[F11]: 1 offsets for 2 dimensions
#   --> library.py:76:12
#    |
# 76 |     d.load([0])
#    |            ^^^
#
# error[F11]: a block of one row is gathered and scattered, here [4,4]
#   --> library.py:77:5
#    |
# 77 |     d.gather(tl.arange(0, 8), 0)
#    |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#
# error[F06]: a tensor descriptor has no attribute `nothing`
#   --> library.py:78:7
#    |
# 78 |     d.nothing
#    |       ^^^^^^^
#
# error[F20]: `order` names each dimension once, the one that runs fastest first
#   --> library.py:79:62
#    |
# 79 |     p = tl.make_block_ptr(f, (n, n), (n, 1), (0, 0), (4, 4), (1, 1))
#    |                                                              ^^^^^^
#
# error[F09]: a block pointer takes no mask
#   --> library.py:81:5
#    |
# 81 |     tl.load(p, mask=n > 0)
#    |     ^^^^^^^^^^^^^^^^^^^^^^
#    |
# help: name dimensions to be checked: `boundary_check=(0, 1)`
#
# error[F10]: expected a block pointer, found a pointer *fp32
#   --> library.py:82:16
#    |
# 82 |     tl.advance(f, (1, 1))
#    |                ^
#
# error[F10]: expected a pointer, found a tensor descriptor
#   --> library.py:83:13
#    |
# 83 |     tl.load(d)
#    |             ^
# == error assembly "*i32"
# error[F20]: attribute `constraints` names 0 registers of operands, there are 1
#   --> library.py:89:31
#    |
# 89 |     tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r", [v], dtype=tl.int32, is_pure=True, pack=1)
#    |                               ^^^^^^^^^^^^^^^^^
#    |
# help: constraints name registers as in "=r,r,r", results first; `$0` is the first
#
# error[F20]: attribute `ptx` names $5 of 2 registers
#   --> library.py:90:31
#    |
# 90 |     tl.inline_asm_elementwise("mov.b32 $0, $5;", "=r,r", [v], dtype=tl.int32, is_pure=True, pack=1)
#    |                               ^^^^^^^^^^^^^^^^^
#    |
# help: constraints name registers as in "=r,r,r", results first; `$0` is the first
#
# error[F20]: `pack` is a power of two up to 32, not 3
#   --> library.py:91:93
#    |
# 91 |     tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [v], dtype=tl.int32, is_pure=True, pack=3)
#    |                                                                                             ^^^^^^
#
# error[F20]: attribute `constraints` has `=q`; known are h, r, f, l and d
#   --> library.py:92:31
#    |
# 92 |     tl.inline_asm_elementwise("mov.b32 $0, $1;", "=q,r", [v], dtype=tl.int32, is_pure=True, pack=1)
#    |                               ^^^^^^^^^^^^^^^^^
#    |
# help: constraints name registers as in "=r,r,r", results first; `$0` is the first
# == error orders "*fp32"
# error[F20]: only the last dimension can be sorted
#   --> library.py:98:16
#    |
# 98 |     tl.sort(v, 0)
#    |                ^
#    |
# help: turn the block with tl.trans
#
# error[F20]: 8 elements of 4 cannot be kept: the number must be a power of two up to the extent
#   --> library.py:99:5
#    |
# 99 |     tl.topk(v, 8)
#    |     ^^^^^^^^^^^^^
#
# error[F11]: a block of 2 dimensions has no dimension 2
#    --> library.py:100:5
#     |
# 100 |     tl.flip(v, 2)
#     |     ^^^^^^^^^^^^^
# == error combines "*fp32"
# error[F10]: the function must give 1 values, it gives 2
#    --> library.py:116:5
#     |
# 116 |     tl.reduce(v, 0, wrong_count)
#     |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#
# error[F10]: the function gives a scalar i1, the block has fp32
#    --> library.py:117:5
#     |
# 117 |     tl.associative_scan(v, 0, wrong_type)
#     |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#     |
# help: cast the result with `.to(...)`
#
# error[F11]: a block of 1 dimensions has no dimension 1
#    --> library.py:118:5
#     |
# 118 |     tl.cumsum(v, 1)
#     |     ^^^^^^^^^^^^^^^
#
# error[F10]: expected a block of integers, found fp32[8]
#    --> library.py:119:5
#     |
# 119 |     tl.xor_sum(v, 0)
#     |     ^^^^^^^^^^^^^^^^
#
# error[F11]: a block of 2 dimensions has no dimension 2
#    --> library.py:120:5
#     |
# 120 |     tl.argmax(v[:, None], 2)
#     |     ^^^^^^^^^^^^^^^^^^^^^^^^
# == error prints "*fp32"
# error[F12]: `prefix` of `device_print` must be a string, found a pointer *fp32
#    --> library.py:125:21
#     |
# 125 |     tl.device_print(f)
#     |                     ^
#     |
# help: what it comes from must be a constant, or a `tl.constexpr` of the kernel
# == error roundings "*fp32, *i32"
# error[F10]: `fma_rz` takes three float32 or three float64
#    --> library.py:132:22
#     |
# 132 |     libdevice.fma_rz(n, x, x)
#     |                      ^
#
# error[F10]: `float2int_rn` is for float32 and float64, found i32
#    --> library.py:133:5
#     |
# 133 |     libdevice.float2int_rn(n)
#     |     ^^^^^^^^^^^^^^^^^^^^^^^^^
#     |
# help: cast first: `x.to(tl.float32)`
#
# error[F10]: expected int64, found i32
#    --> library.py:134:5
#     |
# 134 |     libdevice.ll2float_rz(n)
#     |     ^^^^^^^^^^^^^^^^^^^^^^^^
#
# error[F06]: the library has no `triton.language.extra.libdevice.j2`
#    --> library.py:135:5
#     |
# 135 |     libdevice.j2(x)
#     |     ^^^^^^^^^^^^
#     |
# help: did you mean `libdevice.j0`?
#
# error[F20]: a rounding is for narrower floats, here fp32 becomes i32
#    --> library.py:136:5
#     |
# 136 |     x.to(tl.int32, fp_downcast_rounding="rtz")
#     |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
# == error ranges "*fp32, i32"
# error[F12]: `warp_specialize` of `range` must be True or False, found a scalar i32
#    --> library.py:141:26
#     |
# 141 |     for i in tl.range(n, warp_specialize=n):
#     |                          ^^^^^^^^^^^^^^^^^
#     |
# help: what it comes from must be a constant, or a `tl.constexpr` of the kernel
#
# error[F12]: `loop_unroll_factor` of `range` must be a constant integer, found a scalar i32
#    --> library.py:143:26
#     |
# 143 |     for i in tl.range(n, loop_unroll_factor=n):
#     |                          ^^^^^^^^^^^^^^^^^^^^
#     |
# help: what it comes from must be a constant, or a `tl.constexpr` of the kernel
#
# error[F20]: a loop has 1 to 32 stages, not 99
#    --> library.py:145:14
#     |
# 145 |     for i in tl.range(n, num_stages=99):
#     |              ^^^^^^^^^^^^^^^^^^^^^^^^^^
# == error host_block "*fp32, tensordesc<fp32[3]>"
# error[F11]: extent 3 is not a power of two
#    --> library.py:150:19
#     |
# 150 | def host_block(f, d):
#     |                   ^
#     |
# help: extents are powers of two; mask what is too much
