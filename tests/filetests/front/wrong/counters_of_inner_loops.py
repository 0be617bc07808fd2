# error: f "*i32, i32"
import triton.language as tl
import triton


@triton.jit
def f(x, n):
    i = n
    for m in range(3):
        for i in range(4):
            tl.store(x + i, m)
    tl.store(x, i)
