# Indices of programs divided by what is negative, and products of them that overflow, divided again: signed, as of any number.
import triton
import triton.language as tl


@triton.jit
def by_constants(out, m):
    p = tl.program_id(0)
    tl.store(out + p, (p // -1) // m)


@triton.jit
def by_numbers(out, k, m, BLOCK: tl.constexpr):
    p = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    tl.store(out + p * 2 * BLOCK + i, (p * BLOCK // k + i) % m)
    tl.store(out + p * 2 * BLOCK + BLOCK + i, (p * BLOCK + i) // k % m)


@triton.jit
def overflowed(out, m):
    p = tl.program_id(0)
    tl.store(out + p, (p * 1073741824) // m)


# run: by_constants "*i32, i32" : grid(4) out=i32[4] poison m=2 ; expect out = [0, 0, -1, -1]
# run: by_numbers "*i32, i32, i32, 4" : grid(2) out=i32[16] poison k=-1 m=3 ; expect out = [0, 1, 2, 0, 0, -1, -2, 0, -1, 0, -2, -1, -1, -2, 0, -1]
# run: overflowed "*i32, i32" : grid(4) out=i32[4] poison m=1000 ; expect out = [0, 1073741, -2147483, -1073741]
