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
    libdevice.j0(x)
    x.to(tl.int32, fp_downcast_rounding="rtz")


@triton.jit
def host_block(f, d):
    tl.store(f, tl.sum(d.load([0])))
