# error: f "*fp32, i32"
import triton.language as tl
import triton


@triton.jit
def f(x, n):
    for i in range(n):
        i = i * 0.5
        tl.store(x, i)
    tl.store(x, i)
