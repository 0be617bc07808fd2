# Blocks that cannot be, or do not fit.
# error: not_a_power "*fp32"
# error: huge "*fp32"
# error: huge_product "*fp32"
# error: empty_range "*fp32"
# error: backwards_range "*fp32"
# error: negative_extent "*fp32"
# error: no_broadcast "*fp32"
# error: matrix_and_row "*fp32"
# error: stored_wide "*fp32"
# error: mask_too_wide "*fp32"
# error: other_too_wide "*fp32"
# error: axis_too_large "*fp32"
# error: axis_negative "*fp32"
# error: two_indices "*fp32"
# error: element "*fp32"
# error: part "*fp32"
# error: reshaped "*fp32"
# error: broadcast_down "*fp32"
# error: many_dimensions "*fp32"
# error: run_time_extent "*fp32, i32"
# error: loop_grows "*fp32, i32"
# error: where_shapes "*fp32"
# error: transposed_vector "*fp32"
# error: split_odd "*fp32"
import triton
import triton.language as tl


@triton.jit
def not_a_power(x):
    tl.store(x + tl.arange(0, 100), 1.0)


@triton.jit
def huge(x):
    tl.store(x + tl.arange(0, 1 << 30), 1.0)


@triton.jit
def huge_product(x):
    at = tl.arange(0, 2048)
    tl.store(x + at[:, None] * 2048 + at[None, :], 1.0)


@triton.jit
def empty_range(x):
    tl.store(x + tl.arange(4, 4), 1.0)


@triton.jit
def backwards_range(x):
    tl.store(x + tl.arange(8, 0), 1.0)


@triton.jit
def negative_extent(x):
    tl.store(x, tl.sum(tl.zeros((-8,), tl.float32)))


@triton.jit
def no_broadcast(x):
    tl.store(x + tl.arange(0, 8), tl.arange(0, 8) + tl.arange(0, 4))


@triton.jit
def matrix_and_row(x):
    a = tl.zeros((8, 4), tl.float32)
    b = tl.zeros((8,), tl.float32)
    tl.store(x, tl.sum(a * b))


@triton.jit
def stored_wide(x):
    tl.store(x, tl.zeros((4,), tl.float32))


@triton.jit
def mask_too_wide(x):
    at = tl.arange(0, 4)
    tl.store(x + at, 1.0, mask=at[:, None] < at[None, :])


@triton.jit
def other_too_wide(x):
    at = tl.arange(0, 4)
    tl.store(x + at, tl.load(x + at, mask=at < 2, other=tl.zeros((4, 4), tl.float32)))


@triton.jit
def axis_too_large(x):
    tl.store(x, tl.max(tl.zeros((4, 4), tl.float32), axis=2))


@triton.jit
def axis_negative(x):
    tl.store(x, tl.max(tl.zeros((4, 4), tl.float32), axis=-3))


@triton.jit
def two_indices(x):
    at = tl.arange(0, 4)
    tl.store(x, tl.sum(at[:, :, None]))


@triton.jit
def element(x):
    v = tl.load(x + tl.arange(0, 4))
    tl.store(x, v[2])


@triton.jit
def part(x):
    v = tl.load(x + tl.arange(0, 4))
    tl.store(x + tl.arange(0, 2), v[0:2])


@triton.jit
def reshaped(x):
    tl.store(x, tl.sum(tl.arange(0, 8).reshape(3, 2)))


@triton.jit
def broadcast_down(x):
    tl.store(x + tl.arange(0, 4), tl.broadcast_to(tl.arange(0, 8), (4,)))


@triton.jit
def many_dimensions(x):
    v = tl.arange(0, 2)[None, None, None, None, None, None, None, None, None, None, None, None, None, None, None, None, None,
                        None, None, None, None, None, None, None, None, None, None, None, None, None, None, None, None, :]
    tl.store(x, tl.sum(v))


@triton.jit
def run_time_extent(x, n):
    tl.store(x + tl.arange(0, n), 1.0)


@triton.jit
def loop_grows(x, n):
    v = tl.zeros((2,), tl.float32)
    for i in range(n):
        v = tl.join(v, v)
    tl.store(x, tl.sum(v))


@triton.jit
def where_shapes(x):
    at = tl.arange(0, 4)
    tl.store(x + at, tl.where(tl.arange(0, 8) < 4, at, 0))


@triton.jit
def transposed_vector(x):
    tl.store(x + tl.arange(0, 4), tl.trans(tl.arange(0, 4)))


@triton.jit
def split_odd(x):
    a, b = tl.split(tl.zeros((2, 4), tl.float32))
    tl.store(x, tl.sum(a))
# == error not_a_power "*fp32"
# error[F11]: extent 100 is not a power of two
#   --> shapes.py:32:18
#    |
# 32 |     tl.store(x + tl.arange(0, 100), 1.0)
#    |                  ^^^^^^^^^^^^^^^^^
#    |
# help: extents are powers of two; mask what is too much
# == error huge "*fp32"
# error[F11]: a block has at most 1048576 elements
#   --> shapes.py:37:18
#    |
# 37 |     tl.store(x + tl.arange(0, 1 << 30), 1.0)
#    |                  ^^^^^^^^^^^^^^^^^^^^^
#    |
# help: let each program compute a smaller block
# == error huge_product "*fp32"
# error[F11]: a block has at most 1048576 elements
#   --> shapes.py:43:14
#    |
# 43 |     tl.store(x + at[:, None] * 2048 + at[None, :], 1.0)
#    |              ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
# == error empty_range "*fp32"
# error[F20]: `arange` from 4 to 4 is empty
#   --> shapes.py:48:18
#    |
# 48 |     tl.store(x + tl.arange(4, 4), 1.0)
#    |                  ^^^^^^^^^^^^^^^
#    |
# help: its end must be larger than its start; look at the constant that it comes from
# == error backwards_range "*fp32"
# error[F20]: `arange` from 8 to 0 is empty
#   --> shapes.py:53:18
#    |
# 53 |     tl.store(x + tl.arange(8, 0), 1.0)
#    |                  ^^^^^^^^^^^^^^^
#    |
# help: its end must be larger than its start; look at the constant that it comes from
# == error negative_extent "*fp32"
# error[F11]: a block cannot have the extent -8
#   --> shapes.py:58:24
#    |
# 58 |     tl.store(x, tl.sum(tl.zeros((-8,), tl.float32)))
#    |                        ^^^^^^^^^^^^^^^^^^^^^^^^^^^
# == error no_broadcast "*fp32"
# error[F11]: shapes [8] and [4] do not go together
#   --> shapes.py:63:35
#    |
# 63 |     tl.store(x + tl.arange(0, 8), tl.arange(0, 8) + tl.arange(0, 4))
#    |                                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ extents of dimension 0 differ and neither is 1
#    |
# help: add dimensions with [:, None] or [None, :]
# == error matrix_and_row "*fp32"
# error[F11]: shapes [8,4] and [8] do not go together
#   --> shapes.py:70:24
#    |
# 70 |     tl.store(x, tl.sum(a * b))
#    |                        ^^^^^ extents of dimension 1 differ and neither is 1
#    |
# help: add dimensions with [:, None] or [None, :]
# == error stored_wide "*fp32"
# error[F11]: a block (fp32[4]) cannot be stored through one pointer
#   --> shapes.py:75:5
#    |
# 75 |     tl.store(x, tl.zeros((4,), tl.float32))
#    |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    |
# help: add a tl.arange to the pointer
# == error mask_too_wide "*fp32"
# error[F11]: `mask` has shape [4,4], the pointers [4]
#   --> shapes.py:81:27
#    |
# 81 |     tl.store(x + at, 1.0, mask=at[:, None] < at[None, :])
#    |                           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    |
# help: the pointers are not broadcast; add offsets that give them the full shape
# == error other_too_wide "*fp32"
# error[F11]: `value` has shape [4,4], the pointers [4]
#   --> shapes.py:87:22
#    |
# 87 |     tl.store(x + at, tl.load(x + at, mask=at < 2, other=tl.zeros((4, 4), tl.float32)))
#    |                      ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    |
# help: the pointers are not broadcast; add offsets that give them the full shape
# == error axis_too_large "*fp32"
# error[F11]: a block of 2 dimensions has no dimension 2
#   --> shapes.py:92:17
#    |
# 92 |     tl.store(x, tl.max(tl.zeros((4, 4), tl.float32), axis=2))
#    |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
# == error axis_negative "*fp32"
# error[F11]: a block of 2 dimensions has no dimension -3
#   --> shapes.py:97:17
#    |
# 97 |     tl.store(x, tl.max(tl.zeros((4, 4), tl.float32), axis=-3))
#    |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
# == error two_indices "*fp32"
# error[F11]: more indices than the 1 dimensions
#    --> shapes.py:103:24
#     |
# 103 |     tl.store(x, tl.sum(at[:, :, None]))
#     |                        ^^^^^^^^^^^^^^
# == error element "*fp32"
# error[F07]: blocks are indexed with `:` and `None` only
#    --> shapes.py:109:19
#     |
# 109 |     tl.store(x, v[2])
#     |                   ^
#     |
# help: elements are chosen with tl.where and a reduction, or loaded from memory
# == error part "*fp32"
# error[F07]: blocks are indexed with `:` and `None` only
#    --> shapes.py:115:37
#     |
# 115 |     tl.store(x + tl.arange(0, 2), v[0:2])
#     |                                     ^^^
#     |
# help: elements are chosen with tl.where and a reduction, or loaded from memory
# == error reshaped "*fp32"
# error[F11]: extent 3 is not a power of two
#    --> shapes.py:120:24
#     |
# 120 |     tl.store(x, tl.sum(tl.arange(0, 8).reshape(3, 2)))
#     |                        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#     |
# help: extents are powers of two; mask what is too much
# == error broadcast_down "*fp32"
# error[F11]: shapes [8] and [4] do not go together
#    --> shapes.py:125:35
#     |
# 125 |     tl.store(x + tl.arange(0, 4), tl.broadcast_to(tl.arange(0, 8), (4,)))
#     |                                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ extents of dimension 0 differ and neither is 1
#     |
# help: add dimensions with [:, None] or [None, :]
# == error many_dimensions "*fp32"
# error[F11]: the block has too many dimensions
#    --> shapes.py:130:9
#     |
# 130 |     v = tl.arange(0, 2)[None, None, None, None, None, None, None, None, None, None, None, None, None, None, None, None, None,
#     |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
# == error run_time_extent "*fp32, i32"
# error[F12]: `end` of `arange` must be a constant integer, found a scalar i32
#    --> shapes.py:137:31
#     |
# 137 |     tl.store(x + tl.arange(0, n), 1.0)
#     |                               ^
#     |
# help: what it comes from must be a constant, or a `tl.constexpr` of the kernel
# == error loop_grows "*fp32, i32"
# error[F16]: `v` is fp32[2] before the loop and fp32[2, 2] after an iteration
#    --> shapes.py:143:5
#     |
# 143 |     for i in range(n):
#     |     ^^^^^^^^^^^^^^^^^^ what a loop carries keeps its type
#     |
# help: start with `tl.zeros([2, 2], tl.float32)` or `tl.full`
# == error where_shapes "*fp32"
# error[F11]: shapes [8] and [4] do not go together
#    --> shapes.py:151:22
#     |
# 151 |     tl.store(x + at, tl.where(tl.arange(0, 8) < 4, at, 0))
#     |                      ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ extents of dimension 0 differ and neither is 1
#     |
# help: add dimensions with [:, None] or [None, :]
# == error transposed_vector "*fp32"
# error[F10]: expected a block of 2 or more dimensions, found i32[4]
#    --> shapes.py:156:35
#     |
# 156 |     tl.store(x + tl.arange(0, 4), tl.trans(tl.arange(0, 4)))
#     |                                   ^^^^^^^^^^^^^^^^^^^^^^^^^
# == error split_odd "*fp32"
# error[F10]: expected a block whose last extent is 2, found fp32[2, 4]
#    --> shapes.py:161:12
#     |
# 161 |     a, b = tl.split(tl.zeros((2, 4), tl.float32))
#     |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
