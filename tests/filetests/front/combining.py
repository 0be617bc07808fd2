# What functions of the text combine, and functions of libraries by their symbols.
# run: indices "*fp32, *fp32, *i32" : grid(1) x=f32[8] [3,9,-2,9,5,-7,0,1] out=f32[7] poison at=i32[7] poison ; expect out = [9,9,5,5,9,0,9] ; expect at = [1,1,0,1,0,1,0]
# run: symbols "*i32, *fp32" : grid(1) x=i32[4] [-5,4,-3,2] y=f32[4] [1.5,-2.5,0.5,4.0] ; expect x = [5,4,3,2] ; expect y = [1.5,2.5,0.5,4.0]
# run: ready "*fp32, *fp32, *i32" : grid(1) x=f32[8] [3,9,-2,9,5,-7,0,1] out=f32[14] poison at=i32[5] poison ; expect out = [18,9,-7,9,9,-7,3,12,10,19,24,17,17,18] ; expect at = [1,5,0,15,0]
# error: wrong "*i32"
# error: wrong_symbols "*i32"
import triton
import triton.language as tl
from triton.language import core


@triton.jit
def larger(value, index, other, other_index):
    first = (value > other) | ((value == other) & (index < other_index))
    return tl.where(first, value, other), tl.where(first, index, other_index)


@triton.jit
def indices(x, out, at):
    i = tl.arange(0, 8)
    v = tl.load(x + i)
    value, index = core._reduce_with_indices(v, 0, larger)
    tl.store(out, value)
    tl.store(at, index)
    # Along the rows; down the columns.
    rows = tl.reshape(v, (2, 4))
    value, index = core._reduce_with_indices(rows, 1, larger)
    tl.store(out + 1 + tl.arange(0, 2), value)
    tl.store(at + 1 + tl.arange(0, 2), index)
    value, index = core._reduce_with_indices(rows, 0, larger, keep_dims=True)
    tl.store(out + 3 + tl.arange(0, 4)[None, :], value)
    tl.store(at + 3 + tl.arange(0, 4)[None, :], index)


@core.extern
def absolute(arg0, _semantic=None):
    return core.extern_elementwise(
        "", "", [arg0], {
            (core.dtype("int32"),): ("__nv_abs", core.dtype("int32")),
            (core.dtype("fp32"),): ("__nv_fabsf", core.dtype("fp32")),
        }, is_pure=True, _semantic=_semantic)


@triton.jit
def symbols(x, y):
    i = tl.arange(0, 4)
    tl.store(x + i, absolute(tl.load(x + i)))
    tl.store(y + i, absolute(tl.load(y + i)))


# Those that the library's own reductions use.
@triton.jit
def ready(x, out, at):
    i = tl.arange(0, 8)
    v = tl.load(x + i)
    n = v.to(tl.int32)
    tl.store(out, tl.reduce(v, 0, tl.standard._sum_combine))
    tl.store(out + 1, tl.reduce(v, 0, tl.standard._elementwise_max))
    tl.store(out + 2, tl.reduce(v, 0, tl.standard._elementwise_min))
    most, first = tl.reduce((v, i), 0, tl.standard._argmax_combine_tie_break_left)
    tl.store(out + 3, most)
    tl.store(at, first)
    most, _ = tl.reduce((v, i), 0, tl.standard._argmax_combine_tie_break_fast)
    tl.store(out + 4, most)
    least, where = tl.reduce((v, i), 0, tl.standard._argmin_combine_tie_break_left)
    tl.store(out + 5, least)
    tl.store(at + 1, where)
    tl.store(out + 6 + i, tl.associative_scan(v, 0, tl.standard._sum_combine))
    tl.store(at + 2, tl.reduce(n, 0, tl.standard._prod_combine))
    tl.store(at + 3, tl.reduce(n & 15, 0, tl.standard._or_combine))
    tl.store(at + 4, tl.reduce(n & 1, 0, tl.standard._xor_combine))


@triton.jit
def stores(a, b):
    tl.store(a, 1)
    return b


@triton.jit
def flattens(a, b):
    return a + b + tl.sum(tl.ravel(1))


@triton.jit
def wrong(x):
    v = tl.load(x + tl.arange(0, 4))
    tl.reduce(x + tl.arange(0, 4), 0, stores)
    tl.reduce((), 0, larger)
    tl.associative_scan((), 0, larger)
    core._reduce_with_indices(v, 1, larger)
    core._reduce_with_indices(tl.reshape(v, (2, 2)), None, larger)
    tl.reduce(v, 0, flattens)


NO_TYPE = {(tl.int32,): "__nv_abs"}
NO_RESULT = {(tl.int32,): ("__nv_abs",)}
TO_POINTER = {(tl.int32,): ("__nv_abs", tl.pointer_type(tl.int8))}


@triton.jit
def wrong_symbols(x):
    n = tl.load(x)
    core.extern_elementwise("", "", n, NO_TYPE)
    core.extern_elementwise("", "", [n], 3)
    core.extern_elementwise("", "", [n], NO_TYPE)
    core.extern_elementwise("", "", [n], NO_RESULT)
    core.extern_elementwise("", "", [n], TO_POINTER)
    core.dispatch(larger, "", "", [n], NO_TYPE, tl.int32, True)
# == error wrong "*i32"
# error[F07]: a function that combines elements computes with single elements and does nothing else
#   --> combining.py:88:5
#    |
# 88 |     tl.reduce(x + tl.arange(0, 4), 0, stores)
#    |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    |
# help: load, store, loop and change shapes outside of it; inline PTX says `is_pure=True`
#
# error[F09]: there is nothing to combine
#   --> combining.py:89:5
#    |
# 89 |     tl.reduce((), 0, larger)
#    |     ^^^^^^^^^^^^^^^^^^^^^^^^
#
# error[F09]: there is nothing to combine
#   --> combining.py:90:5
#    |
# 90 |     tl.associative_scan((), 0, larger)
#    |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#
# error[F11]: a block of 1 dimensions has no dimension 1
#   --> combining.py:91:5
#    |
# 91 |     core._reduce_with_indices(v, 1, larger)
#    |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#
# error[F09]: indices need an axis
#   --> combining.py:92:5
#    |
# 92 |     core._reduce_with_indices(tl.reshape(v, (2, 2)), None, larger)
#    |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    |
# help: give `axis`
#
# error[F07]: a function that combines elements computes with single elements and does nothing else
#   --> combining.py:93:5
#    |
# 93 |     tl.reduce(v, 0, flattens)
#    |     ^^^^^^^^^^^^^^^^^^^^^^^^^
#    |
# help: load, store, loop and change shapes outside of it; inline PTX says `is_pure=True`
# == error wrong_symbols "*i32"
# error[F10]: `args` is a list of numbers and blocks
#    --> combining.py:104:37
#     |
# 104 |     core.extern_elementwise("", "", n, NO_TYPE)
#     |                                     ^
#
# error[F10]: `arg_type_symbol_dict` is a dictionary from types to symbols
#    --> combining.py:105:42
#     |
# 105 |     core.extern_elementwise("", "", [n], 3)
#     |                                          ^
#
# error[F10]: an entry is a symbol and the type of its result
#    --> combining.py:106:42
#     |
# 106 |     core.extern_elementwise("", "", [n], NO_TYPE)
#     |                                          ^^^^^^^
#
# error[F10]: an entry is a symbol and the type of its result
#    --> combining.py:107:42
#     |
# 107 |     core.extern_elementwise("", "", [n], NO_RESULT)
#     |                                          ^^^^^^^^^
#
# error[F10]: an entry is a symbol and the type of its result
#    --> combining.py:108:42
#     |
# 108 |     core.extern_elementwise("", "", [n], TO_POINTER)
#     |                                          ^^^^^^^^^^
#
# error[F08]: `dispatch` is not supported
#    --> combining.py:109:5
#     |
# 109 |     core.dispatch(larger, "", "", [n], NO_TYPE, tl.int32, True)
#     |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#     |
# help: call `extern_elementwise`
