# The largest and the smallest of halves through a descriptor, of several programs at the same places; rows beyond the tensor stay.
#
# run: largest "*bf16:16, *bf16:16, 4, 8" : grid(3) out=bf16[32] uniform(9,-10,10) x=bf16[96] uniform(1,-20,20)
# run: largest "*fp16:16, *fp16:16, 4, 8" : grid(3) out=f16[32] uniform(9,-10,10) x=f16[96] uniform(2,-20,20)
# run: smallest "*bf16:16, *bf16:16, 4, 8" : grid(3) out=bf16[32] uniform(9,-10,10) x=bf16[96] uniform(3,-20,20)
# run: smallest "*fp16:16, *fp16:16, 4, 8" : grid(3) out=f16[32] uniform(9,-10,10) x=f16[96] uniform(4,-20,20)
# run: pair "*bf16:16, *bf16:16" : grid(1) out=bf16[16] [-9,2,-3,4,0,-1,7,-8,1,1,1,1,1,1,1,1] x=bf16[8] [-10,3,-2,-4,-0.5,-2,6,-7] ; expect out = [-9,3,-2,4,0,-1,7,-7,1,-2,1,-1,1,-4,1,-3]
import triton
import triton.language as tl


@triton.jit
def largest(out, x, M: tl.constexpr, N: tl.constexpr):
    d = tl.make_tensor_descriptor(out, shape=[M - 1, N], strides=[N, 1], block_shape=[M, N])
    at = tl.program_id(0) * M * N + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    d.atomic_max([0, 0], tl.load(x + at))


@triton.jit
def smallest(out, x, M: tl.constexpr, N: tl.constexpr):
    d = tl.make_tensor_descriptor(out, shape=[M - 1, N], strides=[N, 1], block_shape=[M, N])
    at = tl.program_id(0) * M * N + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    d.atomic_min([0, 0], tl.load(x + at))


@triton.jit
def pair(out, x):
    at = tl.arange(0, 8)
    d = tl.make_tensor_descriptor(out, shape=[2, 8], strides=[8, 1], block_shape=[1, 8])
    v = tl.load(x + at)
    d.atomic_max([0, 0], v[None, :])
    turned = tl.where(at % 2 == 0, 5.0, 0.5 * v - 0.5)
    least = tl.where(at == 1, -2.0, tl.where(at == 3, -1.0, tl.where(at == 5, -4.0, tl.where(at == 7, -3.0, turned))))
    d.atomic_min([1, 0], least.to(tl.bfloat16)[None, :])
