# Python does not import a module that divides by zero, whatever a kernel reads.
# error: k "*i32"
import triton
import triton.language as tl

N = 1
IF_ANY = 0
M = N // IF_ANY


@triton.jit
def k(out):
    tl.store(out, N)
