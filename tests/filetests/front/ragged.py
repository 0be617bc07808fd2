# Parts of a tensor by `triton.tools.ragged_tma`: what lies beyond a part is read as zeros and not written.
# run: move "tensordesc<fp16[1, 1, 8, 64]>, tensordesc<fp16[1, 1, 8, 64]>, *i32, *i32, 64" : grid(3) x=f16[6400] normal(1) x_size0=2147418112 x_size1=2147418112 x_size2=1073741824 x_size3=64 x_stride0=17179869120 x_stride1=64 x_stride2=64 y=f16[6400] poison y_size0=2147418112 y_size1=2147418112 y_size2=1073741824 y_size3=64 y_stride0=17179869120 y_stride1=64 y_stride2=64 offsets=i32[3] [0,17,60] sizes=i32[3] [17,43,40]
# run: add "tensordesc<fp16[1, 1, 8, 64]>, *i32, *i32, 64" : grid(3) y=f16[6400] zeros y_size0=2147418112 y_size1=2147418112 y_size2=1073741824 y_size3=64 y_stride0=17179869120 y_stride1=64 y_stride2=64 offsets=i32[3] [0,17,60] sizes=i32[3] [17,43,40]
import triton
import triton.language as tl
from triton.tools.ragged_tma import atomic_add_ragged, load_ragged, store_ragged


@triton.jit
def move(x, y, offsets, sizes, COLUMNS: tl.constexpr):
    part = tl.program_id(0)
    offset, size = tl.load(offsets + part), tl.load(sizes + part)
    for row in range(0, size, 8):
        block = load_ragged(x, offset, size, [row, 0])
        store_ragged(y, offset, size, [row, 0], block + 1)


@triton.jit
def add(y, offsets, sizes, COLUMNS: tl.constexpr):
    part = tl.program_id(0)
    offset, size = tl.load(offsets + part), tl.load(sizes + part)
    for row in range(0, size, 8):
        ones = tl.full((8, COLUMNS), 1, tl.float16) + row.to(tl.float16)
        atomic_add_ragged(y, offset, size, [row, 0], ones)
