# Block pointers and tensor descriptors.
import triton
import triton.language as tl


# case block_pointer | out=fp32[64] x=fp32[30]:iota(1,1) m=i32:5 n=i32:6
# covers op:tl.make_block_ptr, op:tl.advance, kw:tl.load(boundary_check), kw:tl.load(padding_option)
# covers kw:tl.store(boundary_check)
@triton.jit
def block_pointer(out, x, m, n):
    p = tl.make_block_ptr(x, shape=(m, n), strides=(n, 1), offsets=(0, 0), block_shape=(4, 4), order=(1, 0))
    q = tl.make_block_ptr(out, (8, 8), (8, 1), (0, 0), (4, 4), (1, 0))
    tl.store(q, tl.load(p))
    p = tl.advance(p, (0, 4))
    q = tl.advance(q, (0, 4))
    tl.store(q, tl.load(p, boundary_check=(1,), padding_option="zero"))
    p = tl.advance(p, [4, -4])
    tl.store(q.advance((4, -4)), tl.load(p, boundary_check=(0, 1), padding_option="zero"), boundary_check=(0,))
    q = tl.make_block_ptr(out, (8, 8), (8, 1), (4, 4), (4, 4), (1, 0))
    tl.store(q, tl.full((4, 4), 7.0, tl.float32), boundary_check=(0, 1))


# case transposed_blocks | out=fp32[32] x=fp32[32]:iota(1,1)
@triton.jit
def transposed_blocks(out, x):
    total = tl.zeros((8, 4), tl.float32)
    p = tl.make_block_ptr(x, (8, 4), (1, 8), (0, 0), (8, 4), (0, 1))
    for i in range(3):
        total += tl.load(p, boundary_check=(0,), padding_option="zero")
        p = tl.advance(p, (1, 0))
    at = tl.arange(0, 8)[:, None] * 4 + tl.arange(0, 4)[None, :]
    tl.store(out + at, total)


# case nan_padded | out=fp32[16] x=fp32[9]:iota(1,1)
@triton.jit
def nan_padded(out, x):
    p = tl.make_block_ptr(x, (3, 3), (3, 1), (1, 1), (4, 4), (1, 0))
    v = tl.load(p, boundary_check=(0, 1), padding_option="nan")
    tl.store(out + tl.arange(0, 4)[:, None] * 4 + tl.arange(0, 4)[None, :], v)


# case described | out=fp32[64]:zeros x=fp32[48]:iota(1,1) m=i32:6 n=i32:8
# covers op:tl.make_tensor_descriptor, op:descriptor/method:load, op:descriptor/method:store, op:descriptor attributes
@triton.jit
def described(out, x, m, n):
    source = tl.make_tensor_descriptor(x, shape=[m, n], strides=[n, 1], block_shape=[4, 4])
    target = tl.make_tensor_descriptor(out, [m, n], [n, 1], [4, 4])
    tl.static_assert(source.shape[0].dtype == tl.int32 and source.strides[0].dtype == tl.int64)
    for i in range(0, 6, source.block_shape[0]):
        v = source.load([i, 4])
        target.store([i, 0], v + v.to(source.dtype))


# case functions | out=fp32[64]:zeros x=fp32[48]:iota(1,1) m=i32:6 n=i32:8
# covers op:tl.tensor_descriptor
@triton.jit
def functions(out, x, m, n):
    source = tl.make_tensor_descriptor(x, [m, n], [n, 1], [4, 4])
    target = tl.make_tensor_descriptor(out, [8, 8], [8, 1], [4, 4])
    tl.store_tensor_descriptor(target, [4, 4], tl.load_tensor_descriptor(source, [3, 4]))
    tl.static_assert(isinstance(source, tl.tensor_descriptor))


# case padded | out=fp32[16] x=fp32[32]:iota(1,1)
# covers kw:tl.make_tensor_descriptor(padding_option)
@triton.jit
def padded(out, x):
    source = tl.make_tensor_descriptor(x, [3, 8], [8, 1], [4, 4], padding_option="nan")
    tl.store(out + tl.arange(0, 4)[:, None] * 4 + tl.arange(0, 4)[None, :], source.load([1, 4]))


# case from_host | out=fp32[16] d=desc[4x4]:fp32[6x8]:iota(1,1)
# case from_host | out=fp16[16] d=desc[4x8]:fp16[6x8]:iota(1,1)
@triton.jit
def from_host(out, d):
    N: tl.constexpr = d.block_shape[1]
    v = d.load([4, 0])
    at = tl.arange(0, 4)[:, None] * 4 + tl.arange(0, N)[None, :]
    tl.store(out + at, v, mask=tl.arange(0, N)[None, :] < 4)


# case host_stored | d=desc[4x4]:fp32[6x8]:zeros x=fp32[16]:iota(1,1)
@triton.jit
def host_stored(d, x):
    v = tl.load(x + tl.arange(0, 4)[:, None] * 4 + tl.arange(0, 4)[None, :])
    d.store([4, 4], v)


# case accumulated | d=desc[4x4]:i32[4x8]:iota(1,1) x=i32[16]:iota(1,1)
@triton.jit
def accumulated(d, x):
    v = tl.load(x + tl.arange(0, 4)[:, None] * 4 + tl.arange(0, 4)[None, :])
    d.atomic_add([2, 0], v)
    d.atomic_max([0, 4], v * 3)


# case picked_rows | out=fp32[64] d=desc[1x8]:fp32[16x16]:iota(0,1) rows=i32[8]:[3,0,15,2,2,7]
# covers op:descriptor/method:gather
@triton.jit
def picked_rows(out, d, rows):
    v = d.gather(tl.load(rows + tl.arange(0, 8)), 4)
    tl.store(out + tl.arange(0, 8)[:, None] * 8 + tl.arange(0, 8)[None, :], v)


# case put_rows | d=desc[1x8]:fp32[16x16]:iota(0,1) x=fp32[64]:iota(1000,1) rows=i32[8]:[3,0,15,2,4,7,9,11]
# covers op:descriptor/method:scatter
@triton.jit
def put_rows(d, x, rows):
    v = tl.load(x + tl.arange(0, 8)[:, None] * 8 + tl.arange(0, 8)[None, :])
    d.scatter(v, tl.load(rows + tl.arange(0, 8)), 4)


# case made_on_device | out=fp32[64] x=fp32[48]:iota(1,1) space=i64[16]:zeros y=fp32[48]:zeros m=i32:6 n=i32:8
# covers op:tl.extra.cuda.experimental_device_tensormap_create2d, op:tl.extra.cuda.experimental_tensormap_fenceproxy_acquire
@triton.jit
def made_on_device(out, x, space, y, m, n):
    tl.extra.cuda.experimental_device_tensormap_create2d(desc_ptr=space, global_address=x, load_size=[8, 8],
                                                         global_size=[m, n], element_ty=x.dtype.element_ty)
    tl.extra.cuda.experimental_tensormap_fenceproxy_acquire(space)
    v = tl._experimental_descriptor_load(space, [2, 4], [8, 8], tl.float32)
    tl.store(out + tl.arange(0, 8)[:, None] * 8 + tl.arange(0, 8)[None, :], v)
    tl.extra.cuda.experimental_tensormap_fenceproxy_acquire(space)
    tl.extra.cuda.experimental_device_tensormap_create2d(space, y, [8, 8], [m, n], tl.float32)
    tl.extra.cuda.experimental_tensormap_fenceproxy_acquire(space)
    tl._experimental_descriptor_store(space, v + 1, [4, 0])
