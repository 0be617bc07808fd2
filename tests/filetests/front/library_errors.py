# Mistakes with texts, tuples and functions of the library, one function for each.
# error: zipped "*fp32"
# error: enumerated "*fp32"
# error: no_list "*fp32, i32"
# error: filtered "*fp32, i32"
# error: starred "*fp32, i32"
# error: text_index "*fp32, i32"
# error: text_range "*fp32"
# error: slice_bounds "*fp32, i32"
# error: slice_step "*fp32"
# error: not_a_nan_rule "*fp32"
# error: base "*fp32"
# error: attribute_name "*fp32, i32"
# error: unnamed_print "*fp32"
# error: no_text "*fp32, i32"
# error: no_dtype "*fp32"
# error: block_fill "*fp32"
# error: made "*fp32"
# error: too_many_results "*fp32"
# error: mixed_results "*fp32"
# error: separator "*fp32"
# error: joined "*fp32"
# error: no_format "*fp32"
# error: number_format "*fp32"
# error: string_method "*fp32"
# error: shape_of_block_ptr "*fp32, i32"
# error: checked "*fp32, i32"
# error: transposed "*fp32"
# error: unknown_class "*fp32, i32"
# error: fractional_seed "*fp32, fp32"
import triton
import triton.language as tl


@triton.jit
def zipped(x):
    a = [p for p in zip((1, 2), (3, 4), strict=True)]


@triton.jit
def enumerated(x):
    a = [p for p in enumerate((1, 2), start=1)]


@triton.jit
def no_list(x, n):
    a = list(n)


@triton.jit
def filtered(x, n):
    a = [i for i in (1, 2) if i < n]


@triton.jit
def starred(x, n):
    a = (*n, 1)


@triton.jit
def text_index(x, n):
    a = "abc"[n]


@triton.jit
def text_range(x):
    a = "abc"[3]


@triton.jit
def slice_bounds(x, n):
    a = (1, 2, 3)[0:n]


@triton.jit
def slice_step(x):
    a = (1, 2, 3)[::0]


@triton.jit
def not_a_nan_rule(x):
    a = tl.maximum(tl.load(x), 1.0, propagate_nan="all")


@triton.jit
def base(x):
    a = int(10, 2)


@triton.jit
def attribute_name(x, n):
    a = getattr(x, n)
    b = hasattr(x, n)


@triton.jit
def unnamed_print(x):
    tl.device_print()


@triton.jit
def no_text(x, n):
    tl.device_print(n)
    tl.static_assert(True, n)
    tl.device_assert(n > 0, n)


@triton.jit
def no_dtype(x):
    a = tl.full((16,), 0)


@triton.jit
def block_fill(x):
    a = tl.full((16,), tl.arange(0, 16), tl.int32)


@triton.jit
def made(x):
    a = tl.tensor(x, tl.float32)


@triton.jit
def two(a, b, c, d):
    return a + b, c + d


@triton.jit
def of_two_types(a, b):
    return a, b > 0


@triton.jit
def too_many_results(x):
    a = tl.map_elementwise(two, tl.arange(0, 16), pack=4)


@triton.jit
def mixed_results(x):
    a = tl.map_elementwise(of_two_types, tl.arange(0, 16), pack=2)


@triton.jit
def separator(x):
    a = "a b".split("")


@triton.jit
def joined(x):
    a = ",".join(("a", 1))


@triton.jit
def no_format(x):
    a = f"{1:wrong}"


@triton.jit
def number_format(x):
    a = "%d of %y" % (1, 2)


@triton.jit
def string_method(x):
    a = "%e" % "a"


@triton.jit
def shape_of_block_ptr(x, n):
    a = tl.make_block_ptr(x, n, (1,), (0,), (16,), (0,))


@triton.jit
def checked(x, n):
    p = tl.make_block_ptr(x, (n,), (1,), (0,), (16,), (0,))
    a = tl.load(p, boundary_check=(n,))


@triton.jit
def transposed(x):
    a = tl.arange(0, 16).T


@triton.jit
def unknown_class(x, n):
    a = isinstance(n, list_of)


@triton.jit
def fractional_seed(x, s):
    a = tl.rand(s, tl.arange(0, 16))
# == error zipped "*fp32"
# error[F09]: `zip` has no parameter `strict`
#   --> library_errors.py:37:21
#    |
# 37 |     a = [p for p in zip((1, 2), (3, 4), strict=True)]
#    |                     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    |
# help: it is `zip(*values)`
# == error enumerated "*fp32"
# error[F09]: `enumerate` has no parameter `start`
#   --> library_errors.py:42:21
#    |
# 42 |     a = [p for p in enumerate((1, 2), start=1)]
#    |                     ^^^^^^^^^^^^^^^^^^^^^^^^^^
#    |
# help: it is `enumerate(*values)`
# == error no_list "*fp32, i32"
# error[F10]: a scalar i32 is no tuple
#   --> library_errors.py:47:9
#    |
# 47 |     a = list(n)
#    |         ^^^^^^^
# == error filtered "*fp32, i32"
# error[F12]: what filters a list must be known at compile time
#   --> library_errors.py:52:9
#    |
# 52 |     a = [i for i in (1, 2) if i < n]
#    |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
# == error starred "*fp32, i32"
# error[F10]: `*` needs a tuple, found a scalar i32
#   --> library_errors.py:57:9
#    |
# 57 |     a = (*n, 1)
#    |         ^^^^^^^
# == error text_index "*fp32, i32"
# error[F12]: a text is indexed by a constant, found a scalar i32
#   --> library_errors.py:62:9
#    |
# 62 |     a = "abc"[n]
#    |         ^^^^^^^^
# == error text_range "*fp32"
# error[F20]: index 3 of a text of 3
#   --> library_errors.py:67:9
#    |
# 67 |     a = "abc"[3]
#    |         ^^^^^^^^
# == error slice_bounds "*fp32, i32"
# error[F12]: a slice has constant bounds, found a scalar i32
#   --> library_errors.py:72:9
#    |
# 72 |     a = (1, 2, 3)[0:n]
#    |         ^^^^^^^^^^^^^^
# == error slice_step "*fp32"
# error[F20]: the step of a slice is zero
#   --> library_errors.py:77:9
#    |
# 77 |     a = (1, 2, 3)[::0]
#    |         ^^^^^^^^^^^^^^
# == error not_a_nan_rule "*fp32"
# error[F20]: `propagate_nan` is of tl.PropagateNan, found the string "all"
#   --> library_errors.py:82:9
#    |
# 82 |     a = tl.maximum(tl.load(x), 1.0, propagate_nan="all")
#    |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    |
# help: it is tl.PropagateNan.ALL or tl.PropagateNan.NONE
# == error base "*fp32"
# error[F10]: a base is for strings
#   --> library_errors.py:87:17
#    |
# 87 |     a = int(10, 2)
#    |                 ^
# == error attribute_name "*fp32, i32"
# error[F12]: `name` of `getattr` must be a string, found a scalar i32
#   --> library_errors.py:92:20
#    |
# 92 |     a = getattr(x, n)
#    |                    ^
#    |
# help: what it comes from must be a constant, or a `tl.constexpr` of the kernel
#
# error[F12]: `name` of `hasattr` must be a string, found a scalar i32
#   --> library_errors.py:93:20
#    |
# 93 |     b = hasattr(x, n)
#    |                    ^
#    |
# help: what it comes from must be a constant, or a `tl.constexpr` of the kernel
# == error unnamed_print "*fp32"
# error[F09]: `device_print` lacks its argument `prefix`
#   --> library_errors.py:98:5
#    |
# 98 |     tl.device_print()
#    |     ^^^^^^^^^^^^^^^^^
#    |
# help: it is `device_print(prefix, *args, hex=...)`
# == error no_text "*fp32, i32"
# error[F12]: `prefix` of `device_print` must be a string, found a scalar i32
#    --> library_errors.py:103:21
#     |
# 103 |     tl.device_print(n)
#     |                     ^
#     |
# help: what it comes from must be a constant, or a `tl.constexpr` of the kernel
# == error no_dtype "*fp32"
# error[F09]: `full` needs a dtype
#    --> library_errors.py:110:9
#     |
# 110 |     a = tl.full((16,), 0)
#     |         ^^^^^^^^^^^^^^^^^
#     |
# help: as in tl.full((16,), 0, dtype=tl.int32)
# == error block_fill "*fp32"
# error[F10]: expected a scalar, found i32[16]
#    --> library_errors.py:115:9
#     |
# 115 |     a = tl.full((16,), tl.arange(0, 16), tl.int32)
#     |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
# == error made "*fp32"
# error[F07]: blocks are not made by `tl.tensor`
#    --> library_errors.py:120:9
#     |
# 120 |     a = tl.tensor(x, tl.float32)
#     |         ^^^^^^^^^^^^^^^^^^^^^^^^
#     |
# help: use tl.full, tl.arange or tl.load
# == error too_many_results "*fp32"
# error[F10]: the function must give 4 values of each block, it gives 2
#    --> library_errors.py:135:9
#     |
# 135 |     a = tl.map_elementwise(two, tl.arange(0, 16), pack=4)
#     |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
# == error mixed_results "*fp32"
# error[F10]: of one block the function gives i32 and i1
#    --> library_errors.py:140:9
#     |
# 140 |     a = tl.map_elementwise(of_two_types, tl.arange(0, 16), pack=2)
#     |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#     |
# help: cast the results with `.to(...)`
# == error separator "*fp32"
# error[F20]: the separator is empty
#    --> library_errors.py:145:21
#     |
# 145 |     a = "a b".split("")
#     |                     ^^
# == error joined "*fp32"
# error[F10]: `join` takes strings, found the constant 1
#    --> library_errors.py:150:18
#     |
# 150 |     a = ",".join(("a", 1))
#     |                  ^^^^^^^^
# == error no_format "*fp32"
# error[F20]: `wrong` is no format
#    --> library_errors.py:155:11
#     |
# 155 |     a = f"{1:wrong}"
#     |           ^^^^^^^^^
#     |
# help: formats are those of Python's `format`
# == error number_format "*fp32"
# error[F20]: there is no format `%y`
#    --> library_errors.py:160:9
#     |
# 160 |     a = "%d of %y" % (1, 2)
#     |         ^^^^^^^^^^^^^^^^^^^
# == error string_method "*fp32"
# error[F13]: `%e` needs a number
#    --> library_errors.py:165:9
#     |
# 165 |     a = "%e" % "a"
#     |         ^^^^^^^^^^
# == error shape_of_block_ptr "*fp32, i32"
# error[F10]: `shape` is a tuple, found a scalar i32
#    --> library_errors.py:170:30
#     |
# 170 |     a = tl.make_block_ptr(x, n, (1,), (0,), (16,), (0,))
#     |                              ^
# == error checked "*fp32, i32"
# error[F12]: `boundary_check` names dimensions, found a scalar i32
#    --> library_errors.py:176:20
#     |
# 176 |     a = tl.load(p, boundary_check=(n,))
#     |                    ^^^^^^^^^^^^^^^^^^^
# == error transposed "*fp32"
# error[F10]: expected a block of 2 or more dimensions, found i32[16]
#    --> library_errors.py:181:9
#     |
# 181 |     a = tl.arange(0, 16).T
#     |         ^^^^^^^^^^^^^^^^^^
# == error unknown_class "*fp32, i32"
# error[F05]: `list_of` is not defined
#    --> library_errors.py:186:23
#     |
# 186 |     a = isinstance(n, list_of)
#     |                       ^^^^^^^
#     |
# help: define it, or give a constant with -c list_of=VALUE
# == error fractional_seed "*fp32, fp32"
# error[F18]: static assertion failed: a seed of random numbers is an integer
#    --> library_errors.py:191:9
#     |
# 191 |     a = tl.rand(s, tl.arange(0, 16))
#     |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
