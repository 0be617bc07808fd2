# A pointer where a number was meant: an argument of the wrong type. Whether it is null may be asked.
# error: less_than_pointer "*fp32, *fp32, 64"
# error: pointer_is_positive "*fp32, *i32"
# error: address_of_number "*fp32, i64"
# error: empty_range "*fp32, 0"
# error: range_beyond "*fp32, 1024"
import triton
import triton.language as tl


@triton.jit
def less_than_pointer(x, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(x + at, 1.0, mask=at < n)


@triton.jit
def pointer_is_positive(x, n):
    if n is not None and n != 0:
        if n > 0:
            tl.store(x, 1.0)


@triton.jit
def address_of_number(x, n):
    if x.to(tl.int64) == n:
        if x == n:
            tl.store(x, 1.0)


@triton.jit
def empty_range(x, BLOCK: tl.constexpr):
    tl.store(x + tl.arange(0, BLOCK), 1.0)


@triton.jit
def range_beyond(x, BLOCK: tl.constexpr):
    tl.store(x + tl.arange(1 << 31, (1 << 31) + BLOCK), 1.0)
# == error less_than_pointer "*fp32, *fp32, 64"
# error[F10]: `<` compares *fp32 with i32
#   --> pointers_as_numbers.py:14:32
#    |
# 14 |     tl.store(x + at, 1.0, mask=at < n)
#    |                                ^^^^^^
#    |
# help: the pointer's type is that of an argument: give a number there, as in `i32` of the signature, or load what it points to; `.to(tl.int64)` makes a number of an address
# == error pointer_is_positive "*fp32, *i32"
# error[F10]: `>` compares *i32 with i32
#   --> pointers_as_numbers.py:20:12
#    |
# 20 |         if n > 0:
#    |            ^^^^^
#    |
# help: the pointer's type is that of an argument: give a number there, as in `i32` of the signature, or load what it points to; `.to(tl.int64)` makes a number of an address
# == error address_of_number "*fp32, i64"
# error[F10]: `==` compares *fp32 with i64
#   --> pointers_as_numbers.py:27:12
#    |
# 27 |         if x == n:
#    |            ^^^^^^
#    |
# help: the pointer's type is that of an argument: give a number there, as in `i32` of the signature, or load what it points to; `.to(tl.int64)` makes a number of an address
# == error empty_range "*fp32, 0"
# error[F20]: `arange` from 0 to 0 is empty
#   --> pointers_as_numbers.py:33:18
#    |
# 33 |     tl.store(x + tl.arange(0, BLOCK), 1.0)
#    |                  ^^^^^^^^^^^^^^^^^^^
#    |
# help: its end must be larger than its start; look at the constant that it comes from
# == error range_beyond "*fp32, 1024"
# error[F20]: `arange` from 2147483648 to 2147484672 exceeds int32
#   --> pointers_as_numbers.py:38:18
#    |
# 38 |     tl.store(x + tl.arange(1 << 31, (1 << 31) + BLOCK), 1.0)
#    |                  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    |
# help: start at 0, and add what is beyond as int64
