# error: f "*fp32"
import triton.language as tl
import triton


@triton.jit
def f(x)
    i = tl.arange(0, 64
    v = tl.load(x + i)
    w = (v + 1
    tl.store(x + i, w)
