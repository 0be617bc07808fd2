# Functions that change shapes and places.
import triton
import triton.language as tl


# case reshaped | out=i32[64] x=i32[64]:iota(0,1)
# covers op:tl.reshape, op:tl.ravel, op:tl.trans, op:tl.permute
@triton.jit
def reshaped(out, x):
    at = tl.arange(0, 64)
    v = tl.reshape(tl.load(x + at), (4, 16))
    w = tl.trans(v)
    w = w.reshape(2, 8, 4)
    w = tl.permute(w, (2, 0, 1))
    w = w.permute(1, 2, 0)
    tl.store(out + at, tl.ravel(w + tl.view(v, [2, 8, 4])))


# case turned | out=i32[32] x=i32[32]:iota(0,1)
# covers syn:subscript [:,None] 2-D, syn:.dtype/.element_ty/.type
@triton.jit
def turned(out, x):
    i, j = tl.arange(0, 4), tl.arange(0, 8)
    v = tl.load(x + i[:, None] * 8 + j[None, :])
    tl.store(out + j[:, None] * 4 + i[None, :], v.T + v.trans() * (v.dtype == tl.int32))


# case turned_dims | out=i32[64] x=i32[64]:iota(0,1)
@triton.jit
def turned_dims(out, x):
    at = tl.arange(0, 64)
    v = tl.load(x + at).reshape((2, 4, 8))
    v = tl.trans(v, 2, 0, 1)
    tl.store(out + at, v.ravel())


# case joined | out=i32[64] x=i32[16]:iota(0,1) y=i32[16]:iota(100,1)
# covers op:tl.join, op:tl.interleave, op:tl.split
@triton.jit
def joined(out, x, y):
    at = tl.arange(0, 16)
    v, w = tl.load(x + at), tl.load(y + at)
    both = tl.join(v, w)
    a, b = tl.split(both)
    tl.store(out + at, a * 1000 + b)
    c, d = both.reshape(8, 2, 2).split()
    tl.store(out + 16 + at, tl.ravel(c - d))
    tl.store(out + 32 + tl.arange(0, 32), tl.interleave(v, w))


# case of_two | out=i32[4] a=i32:5 b=i32:7
@triton.jit
def of_two(out, a, b):
    both = tl.join(a, b)
    tl.store(out + tl.arange(0, 2), both)
    c, d = tl.split(both + 1)
    tl.store(out + 2, c)
    tl.store(out + 3, d)


# case concatenated | out=i32[32] x=i32[16]:iota(0,1) y=i32[16]:iota(100,1)
# covers op:tl.cat
@triton.jit
def concatenated(out, x, y):
    at = tl.arange(0, 16)
    tl.store(out + tl.arange(0, 32), tl.cat(tl.load(x + at), tl.load(y + at), can_reorder=True))


# case concatenated_dims | out=i32[32] x=i32[16]:iota(0,1) y=i32[16]:iota(100,1)
@triton.jit
def concatenated_dims(out, x, y):
    i, j = tl.arange(0, 4)[:, None], tl.arange(0, 4)[None, :]
    both = tl.cat(tl.load(x + 4 * i + j), tl.load(y + 4 * i + j), dim=1)
    tl.store(out + tl.arange(0, 4)[:, None] * 8 + tl.arange(0, 8)[None, :], both)


# case expanded | out=i32[64] x=i32[4]:iota(1,1) y=i32[16]:iota(10,10)
# covers op:tl.expand_dims, op:tl.broadcast_to, syn:subscript None/: n-D, op:tl.broadcast
@triton.jit
def expanded(out, x, y):
    v, w = tl.load(x + tl.arange(0, 4)), tl.load(y + tl.arange(0, 16))
    cube = tl.expand_dims(v, (0, 2)) + w[None, None, :]
    other = tl.broadcast_to(v[:, None], (4, 16))
    a, b = tl.broadcast(v[:, None], w[None, :])
    at = tl.arange(0, 4)[:, None] * 16 + tl.arange(0, 16)[None, :]
    tl.store(out + at, cube.reshape(4, 16) + other + a - b + v.expand_dims(-1).broadcast_to(4, 16))


# case gathered | out=i32[32] x=i32[16]:iota(0,3) index=i32[32]:rand(1,0,16)
# case gathered | out=fp16[32] x=fp16[16]:iota(0,3) index=i64[32]:rand(1,0,16)
# covers op:tl.gather
@triton.jit
def gathered(out, x, index):
    v = tl.load(x + tl.arange(0, 16))
    at = tl.arange(0, 32)
    tl.store(out + at, tl.gather(v, tl.load(index + at), 0))


# case gathered_rows | out=fp32[32] x=fp32[64]:rand(1,-1,1) index=i32[32]:rand(2,0,8)
@triton.jit
def gathered_rows(out, x, index):
    i = tl.arange(0, 8)[:, None]
    v = tl.load(x + i * 8 + tl.arange(0, 8)[None, :])
    at = i * 4 + tl.arange(0, 4)[None, :]
    tl.store(out + at, v.gather(tl.load(index + at), axis=1))


# case single | out=fp16[2] x=fp16[1]:[2.5]
# covers op:method:item
@triton.jit
def single(out, x):
    v = tl.load(x + tl.arange(0, 1))
    tl.store(out, v.item())
    tl.store(out + 1, tl.reshape(v, (1, 1)).item() * 2)


# case made | out=fp32[32] n=i32:3
# covers op:tl.full, op:tl.zeros, op:tl.zeros_like, op:tl.arange
@triton.jit
def made(out, n):
    a = tl.full((4, 8), 2, tl.float32)
    b = tl.zeros([4, 8], dtype=tl.float32) + tl.zeros_like(a)
    c = tl.full([1, 8], n, dtype=tl.int32)
    at = tl.arange(0, 4)[:, None] * 8 + tl.arange(8, 16)[None, :] - 8
    tl.store(out + at, a + b + c)


# case narrowed | out=i32[8] x=i32[8]:iota(0,1)
@triton.jit
def narrowed(out, x):
    v = tl.load(x + tl.arange(0, 8))[None, :, None]
    tl.store(out + tl.arange(0, 8), tl.squeeze(tl.squeeze(v, 0), -1) + tl.squeeze(tl.unsqueeze(tl.arange(0, 8), 1), 1))
