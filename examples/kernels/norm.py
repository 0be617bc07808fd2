"""Normalisation: layer norm forwards and backwards, RMS norm, group norm."""
import triton
import triton.language as tl


@triton.jit
def layer_norm(out, mean_out, scale_out, x, weight, bias, stride, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < columns
    v = tl.load(x + row * stride + at, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(v, axis=0) / columns
    centred = tl.where(mask, v - mean, 0.0)
    scale = tl.rsqrt(tl.sum(centred * centred, axis=0) / columns + eps)
    tl.store(mean_out + row, mean)
    tl.store(scale_out + row, scale)
    w = tl.load(weight + at, mask=mask).to(tl.float32)
    b = tl.load(bias + at, mask=mask).to(tl.float32)
    tl.store(out + row * stride + at, centred * scale * w + b, mask=mask)


@triton.jit
def layer_norm_backward(dx, dweight, dbias, lock, dout, x, weight, mean, scale, stride, columns, GROUP: tl.constexpr,
                        BLOCK: tl.constexpr):
    # Programs of a group add up their shares of the gradients of weight and bias under the group's lock; whoever comes
    # first stores, which spares the zeroing.
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < columns
    v = tl.load(x + row * stride + at, mask=mask, other=0.0).to(tl.float32)
    d = tl.load(dout + row * stride + at, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(weight + at, mask=mask, other=0.0).to(tl.float32)
    m = tl.load(mean + row)
    s = tl.load(scale + row)
    normal = tl.where(mask, (v - m) * s, 0.0)
    wd = w * d
    c1 = tl.sum(normal * wd, axis=0) / columns
    c2 = tl.sum(wd, axis=0) / columns
    tl.store(dx + row * stride + at, (wd - (normal * c1 + c2)) * s, mask=mask)
    group = row % GROUP
    lock += group
    count = lock + GROUP
    dweight += group * columns + at
    dbias += group * columns + at
    dw = d * normal
    db = d
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    if tl.load(count) == 0:
        tl.atomic_xchg(count, 1)
    else:
        dw += tl.load(dweight, mask=mask)
        db += tl.load(dbias, mask=mask)
    tl.store(dweight, dw, mask=mask)
    tl.store(dbias, db, mask=mask)
    # Every thread has stored before the lock is given back.
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@triton.jit
def sum_groups(out, x, groups, columns, BLOCK_G: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK_G, BLOCK), dtype=tl.float32)
    for first in range(0, groups, BLOCK_G):
        rows = first + tl.arange(0, BLOCK_G)
        mask = (rows[:, None] < groups) & (at[None, :] < columns)
        total += tl.load(x + rows[:, None] * columns + at[None, :], mask=mask, other=0.0)
    tl.store(out + at, tl.sum(total, axis=0), mask=at < columns)


@triton.jit
def rms_norm(out, x, weight, stride, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < columns
    v = tl.load(x + row * stride + at, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(weight + at, mask=mask).to(tl.float32)
    scale = tl.rsqrt(tl.sum(v * v, axis=0) / columns + eps)
    tl.store(out + row * stride + at, (v * scale * w).to(out.dtype.element_ty), mask=mask)


@triton.jit
def group_norm(out, x, weight, bias, groups, group_channels, pixels, eps, BLOCK: tl.constexpr):
    # One group of channels of one image per program; its elements are next to each other.
    image = tl.program_id(0)
    group = tl.program_id(1)
    size = group_channels * pixels
    base = (image * groups + group) * size
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    squares = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, size, BLOCK):
        at = start + tl.arange(0, BLOCK)
        v = tl.load(x + base + at, mask=at < size, other=0.0).to(tl.float32)
        total += v
        squares += v * v
    mean = tl.sum(total, axis=0) / size
    variance = tl.sum(squares, axis=0) / size - mean * mean
    scale = tl.rsqrt(variance + eps)
    for start in range(0, size, BLOCK):
        at = start + tl.arange(0, BLOCK)
        mask = at < size
        channel = group * group_channels + at // pixels
        w = tl.load(weight + channel, mask=mask)
        b = tl.load(bias + channel, mask=mask)
        v = tl.load(x + base + at, mask=mask, other=0.0).to(tl.float32)
        tl.store(out + base + at, (v - mean) * scale * w + b, mask=mask)


# run: layer_norm "*fp32, *fp32, *fp32, *fp32, *fp32, *fp32, i32, i32, fp32, 128" : grid(3) out=f32[300] poison mean_out=f32[3] poison scale_out=f32[3] poison x=f32[300] normal(1) weight=f32[100] normal(2) bias=f32[100] normal(3) stride=100 columns=100 eps=1e-5
# run: layer_norm_backward "*fp32, *fp32, *fp32, *i32, *fp32, *fp32, *fp32, *fp32, *fp32, i32, i32, 2, 64" : grid(2) dx=f32[90] poison dweight=f32[90] poison dbias=f32[90] poison lock=i32[4] zeros dout=f32[90] normal(1) x=f32[90] normal(2) weight=f32[45] normal(3) mean=f32[2] normal(4) scale=f32[2] uniform(5,0.5,2) stride=45 columns=45
# run: sum_groups "*fp32, *fp32, i32, i32, 4, 16" : grid(2) out=f32[20] poison x=f32[100] normal(1) groups=5 columns=20
# run: rms_norm "*fp16, *fp16, *fp16, i32, i32, fp32, 64" : grid(3) out=f16[150] poison x=f16[150] normal(1) weight=f16[50] normal(2) stride=50 columns=50 eps=1e-6
# run: group_norm "*fp32, *fp32, *fp32, *fp32, i32, i32, i32, fp32, 64" : grid(2,2) out=f32[240] poison x=f32[240] normal(1) weight=f32[6] normal(2) bias=f32[6] normal(3) groups=2 group_channels=3 pixels=20 eps=1e-5
