# error: add "i32, *fp32, *fp32, *fp32, 64"
# error: add "*fp32, fp32, *fp32, i32, 64"
# error: advanced "i32, *fp16, 64"
# error: through_names "i64, *bf16"
# error: another_mistake "*fp32, i32"
import triton
import triton.language as tl


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out + i, tl.load(x + i, mask) + tl.load(y + i, mask), mask)


@triton.jit
def advanced(p, n, BLOCK: tl.constexpr):
    at = tl.multiple_of(p, 16) + tl.arange(0, BLOCK)[:, None]
    for _ in range(n // BLOCK):
        tl.store(at, tl.load(at) + 1.0)
        at += BLOCK


@triton.jit
def through_names(stride, base):
    rows = tl.arange(0, 16)
    first = stride + rows * base
    tl.atomic_add(pointer=first, val=1.0)


@triton.jit
def another_mistake(x, n):
    tl.store(x + n, x < 1.0)
# == error add "i32, *fp32, *fp32, *fp32, 64"
# error[F04]: `x` is given i32, and the kernel takes a pointer for it
#   --> exchanged_arguments.py:11:9
#    |
# 11 | def add(x, y, out, n, BLOCK: tl.constexpr):
#    |         ^
#    |
# help: `n` is given *fp32 and makes no address: are the two exchanged?
# == error add "*fp32, fp32, *fp32, i32, 64"
# error[F04]: `y` is given fp32, and the kernel takes a pointer for it
#   --> exchanged_arguments.py:11:12
#    |
# 11 | def add(x, y, out, n, BLOCK: tl.constexpr):
#    |            ^
#    |
# help: give a pointer for `y`
# == error advanced "i32, *fp16, 64"
# error[F04]: `p` is given i32, and the kernel takes a pointer for it
#   --> exchanged_arguments.py:18:14
#    |
# 18 | def advanced(p, n, BLOCK: tl.constexpr):
#    |              ^
#    |
# help: `n` is given *fp16 and makes no address: are the two exchanged?
# == error through_names "i64, *bf16"
# error[F04]: `stride` is given i64, and the kernel takes a pointer for it
#   --> exchanged_arguments.py:26:19
#    |
# 26 | def through_names(stride, base):
#    |                   ^^^^^^
#    |
# help: `base` is given *bf16 and makes no address: are the two exchanged?
# == error another_mistake "*fp32, i32"
# error[F10]: `<` compares *fp32 with fp32
#   --> exchanged_arguments.py:34:21
#    |
# 34 |     tl.store(x + n, x < 1.0)
#    |                     ^^^^^^^
#    |
# help: the pointer's type is that of an argument: give a number there, as in `i32` of the signature, or load what it points to; `.to(tl.int64)` makes a number of an address
