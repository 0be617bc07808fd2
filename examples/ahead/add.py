import triton
import triton.language as tl


# For every GPU from Ampere on, with the lines of this file, which profilers then show.
# kernel: add "*fp32:16, *fp32:16, *fp32:16, i32" BLOCK=1024 target=sm_80,sm_90a lines=True
@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out + i, tl.load(x + i, mask) + tl.load(y + i, mask), mask)
