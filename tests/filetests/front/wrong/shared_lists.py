# A list of Python that has several names, and is changed by one of them, changes for all; here it is a value.
# error: changed "*i32"
# error: changed_by_a_function "*i32"
# tile: new_ones "*i32"
import triton
import triton.language as tl


@triton.constexpr_function
def alias(n):
    first = [n]
    second = first
    first += [2]
    return len(second)


@triton.constexpr_function
def append(items):
    items += [3]
    return len(items)


@triton.constexpr_function
def outer(n):
    items = [n]
    return append(items) + len(items)


@triton.constexpr_function
def own(n):
    items = []
    for i in range(n):
        items += [i, 2 * i]
    old = items
    items = items + [7]
    pair = (1, 2)
    same = pair
    pair += (3,)
    return len(old) + 10 * len(items) + 100 * len(pair) + 1000 * len(same)


@triton.jit
def changed(x):
    tl.store(x, alias(1))


@triton.jit
def changed_by_a_function(x):
    tl.store(x, outer(1))


@triton.jit
def new_ones(x):
    tl.store(x, own(2))
# == error changed "*i32"
# error[F07]: a list with several names is changed
#   --> shared_lists.py:13:5
#    |
# 13 |     first += [2]
#    |     ^^^^^^^^^^^^
#    |
# note: in `alias`, called here
#   --> shared_lists.py:44:17
#    |
# 44 |     tl.store(x, alias(1))
#    |                 ^^^^^^^^
# help: make a new one: `x = x + ..`
# == error changed_by_a_function "*i32"
# error[F07]: a list with several names is changed
#   --> shared_lists.py:19:5
#    |
# 19 |     items += [3]
#    |     ^^^^^^^^^^^^
#    |
# note: in `append`, called here
#   --> shared_lists.py:26:12
#    |
# 26 |     return append(items) + len(items)
#    |            ^^^^^^^^^^^^^
# note: in `outer`, called here
#   --> shared_lists.py:49:17
#    |
# 49 |     tl.store(x, outer(1))
#    |                 ^^^^^^^^
# help: make a new one: `x = x + ..`
# == tile new_ones "*i32"
# kernel @new_ones(v0 "x": ptr<i32>) warps(4) {
# block0:
#     v1 = const {value = 2354} : i32 @54
#     store v0, v1 @54
#     return @53
# }
