# Classes, contexts, Python at compile time, closures, tuples in all positions.
# run: aggregates "*i32, i32, 8" : grid(1) out=i32[8] poison n=5 ; expect out = [105,106,107,108,109,110,111,112]
# run: aggregate_in_loop "*i32, i32" : grid(1) out=i32[2] poison n=6 ; expect out = [15,24]
# run: inherited "*i32" : grid(1) out=i32[4] poison ; expect out = [7,3,21,4]
# run: named_tuples "*fp32" : grid(1) out=f32[5] poison ; expect out = [1.5,2,0.5,3.5,2]
# run: contexts "*i32" : grid(1) out=i32[3] poison ; expect out = [1,2,3]
# tile: contexts_elsewhere "*i32"
# run: compile_time "*i32, 10" : grid(1) out=i32[8] poison ; expect out = [4,1,34,5,1,3,7,2]
# run: varargs "*i32, i32" : grid(1) out=i32[4] poison n=7 ; expect out = [17,3,24,0]
# run: closure "*i32" BLOCK=4 : grid(1) out=i32[4] poison ; expect out = [40,41,42,43]
# run: return_in_static_loop "*i32, *i32" : grid(4) out=i32[4] poison x=i32[4] [0,3,9,100] ; expect out = [0,2,3,-1]
# run: types_as_casts "*i64, fp32" : grid(1) out=i64[2] poison x=3.75 ; expect out = [3,3]
# run: aliases "*fp32, *fp32" : grid(1) out=f32[2] poison x=f32[2] [4,9] ; expect out = [0.5,0.33333334]
# run: truth "*i32, i32, i32" : grid(1) out=i32[5] poison a=3 b=0 ; expect out = [0,1,0,1,1]
# run: conditions_of_the_host "*i32" : grid(1) out=i32[1] poison ; expect out = [2]
# run: texts "*i32, 'relu'" : grid(1) out=i32[2] poison ; expect out = [1,9]
# tile: texts "*i32, 'relu'"
# run: comprehensions "*i32" : grid(1) out=i32[3] poison ; expect out = [0,4,20]
# run: overflow "*i32, i32" : grid(1) out=i32[1] poison n=2147483647 ; expect out = [-2147483648]
# error: wrong_objects "*i32, i32"
# error: wrong_contexts "*i32"
# error: raising "*i32, 3"
# error: raising_at_run_time "*i32, i32"
from typing import NamedTuple

import some_package
import triton
import triton.language as tl
import triton.profiler as proton
from triton.language.core import _aggregate as aggregate

try:
    from triton.language.extra.libdevice import rsqrt
except ImportError:
    from triton.language.math import rsqrt

minimum_of = tl.minimum
HAS_TENSOR_CORES = some_package.capability() >= 8


@aggregate
class Counter:
    start: tl.tensor
    step: tl.constexpr

    @triton.constexpr_function
    def __init__(self, start, step=1):
        self.start = start
        self.step = tl.constexpr(step)

    @triton.jit
    def block(self, SIZE: tl.constexpr):
        return self.start + tl.arange(0, SIZE) * self.step

    @triton.jit
    def advanced(self, by):
        return Counter(self.start + by, self.step)


@triton.jit
def aggregates(out, n, SIZE: tl.constexpr):
    c = Counter(n)
    c = c.advanced(100)
    tl.static_assert(c.step == 1)
    tl.store(out + tl.arange(0, SIZE), c.block(SIZE))


@triton.jit
def aggregate_in_loop(out, n):
    c = Counter(n - n, step=4)
    total = 0
    for i in range(n):
        total += i
        c = c.advanced(c.step)
        # The step is a constant in the loop too.
        tl.static_assert(c.step == 4)
    tl.store(out, total)
    tl.store(out + 1, c.start)


class Shape:
    SIDES = 4

    @staticmethod
    @triton.jit
    def sides():
        return Shape.SIDES


@aggregate
class Square(Shape):
    side: tl.tensor

    @triton.jit
    def __init__(self, side):
        self.side = side

    @property
    @triton.jit
    def area(self):
        return self.side * 3

    @triton.jit
    def __getitem__(self, i):
        return self.side - i


@triton.jit
def inherited(out):
    s = Square(7)
    tl.static_assert(isinstance(s, Square) and isinstance(s, Shape) and not isinstance(s, Counter))
    tl.store(out, s.side)
    tl.store(out + 1, s[4])
    tl.store(out + 2, s.area)
    tl.store(out + 3, s.sides())


class Pair(NamedTuple):
    a: tl.tensor
    b: tl.tensor = 2.0
    SCALE: tl.constexpr = 0.5


@triton.jit
def swap(p):
    return Pair(p.b, p.a, p.SCALE)


@triton.jit
def named_tuples(out):
    p = Pair(1.5)
    tl.store(out, p.a)
    tl.store(out + 1, swap(p)[0])
    tl.store(out + 2, p.SCALE)
    a, b, scale = swap(p)
    tl.store(out + 3, a + b)
    tl.static_assert(isinstance(p, tl.tuple) and not isinstance(p, Pair) and len(p) == 3)
    tl.store(out + 4, p.a + p[2])


@aggregate
class Mark:
    place: tl.tensor

    @triton.jit
    def __init__(self, place):
        self.place = place

    @triton.jit
    def __enter__(self):
        tl.store(self.place, 1)
        return self.place + 1

    @triton.jit
    def __exit__(self, kind, value, trace):
        tl.store(self.place + 2, 3)


@triton.jit
def contexts(out):
    with Mark(out) as next_place:
        tl.store(next_place, 2)


@triton.jit
def contexts_elsewhere(out):
    with proton.scope("inner"):
        tl.store(out, 1)


def largest_divisor(n):
    i = n - 1
    while True:
        if n % i == 0 or not 0 < i < n:
            break
        i -= 1
    if i == 0:
        raise ValueError("no divisor")
    return i


@triton.constexpr_function
def digits(n):
    found = []
    for i in range(8):
        if n == 0:
            break
        if i == 1:
            n = n // 10
            continue
        found = found + [n % 10]
        n = n // 10
    return found


def table(key):
    names = {"a": 1, "b": 34, **{"c": 5}}
    return names[key] if key in names else 0


@triton.jit
def compile_time(out, N: tl.constexpr):
    tl.store(out, largest_divisor(N) - 1)
    tl.store(out + 1, table("a"))
    tl.store(out + 2, table("b"))
    tl.store(out + 3, table("c"))
    tl.store(out + 4, largest_divisor(N) + table("nothing") == 5)
    d = digits(1237)
    tl.static_assert(len(d) == 3)
    tl.store(out + 5, len(d))
    tl.store(out + 6, d[0])
    tl.store(out + 7, d[1])


@triton.jit
def total(first, *rest, scale=1):
    sum = first
    for x in rest:
        sum += x * scale
    return sum


@triton.jit
def varargs(out, n):
    some = (n, 1, 2)
    tl.store(out, total(n, *some))
    tl.store(out + 1, total(*(1, 2)))
    tl.store(out + 2, total(n, *some[:1], 3, scale=1) + n)
    tl.store(out + 3, total(0))


def make_kernel(FACTOR=10):
    OFFSET = FACTOR * 4

    @triton.jit
    def closure(out):
        at = tl.arange(0, BLOCK)
        tl.store(out + at, at + OFFSET)

    return closure


@triton.jit
def position(v):
    for i in tl.static_range(4):
        if v == i * i:
            return i
    return -1


@triton.jit
def return_in_static_loop(out, x):
    i = tl.program_id(0)
    v = tl.load(x + i)
    tl.store(out + i, position(v) if v != 3 else 2)


@triton.jit
def types_as_casts(out, x):
    tl.store(out, tl.int64(x))
    dtype: tl.constexpr = out.dtype.element_ty
    tl.store(out + 1, dtype(x))


@triton.jit
def aliases(out, x):
    at = tl.arange(0, 2)
    v = tl.load(x + at)
    tl.store(out + at, minimum_of(rsqrt(v), 1.0))


@triton.jit
def truth(out, a, b):
    tl.store(out, a > 0 and b > 0)
    tl.store(out + 1, a > 0 or b > 0)
    tl.store(out + 2, not a > 0)
    tl.store(out + 3, not (a > 5 and b == 0))
    tl.store(out + 4, a is not None and b == 0)


if HAS_TENSOR_CORES:
    @triton.jit
    def chosen():
        return 1
else:
    @triton.jit
    def chosen():
        return 2


@triton.jit
def conditions_of_the_host(out):
    tl.store(out, chosen())


@triton.jit
def texts(out, ACTIVATION: tl.constexpr):
    NAME: tl.constexpr = f"{ACTIVATION}_{2 + 1}"
    tl.static_print(f"activation {NAME!s} of {out.dtype}")
    tl.store(out, NAME == "relu_3")
    tl.store(out + 1, len(NAME) + (ACTIVATION in ("relu", "gelu")) + ("elu" in NAME) + 1)


@triton.jit
def comprehensions(out):
    squares = [i * i for i in (0, 2, 3, 4)]
    tl.store(out, squares[0])
    tl.store(out + 1, squares[1])
    even = [x for x in squares if x % 2 == 0]
    tl.store(out + 2, even[1] + even[2])


@triton.jit
def overflow(out, n):
    tl.store(out, n + 1)


@triton.jit
def wrong_objects(out, n):
    Counter()
    Counter(n, step=n)
    Counter(n, 1, 2)
    Counter(n, strep=1)
    Pair(b=1.0)
    Pair(1.0, a=2.0)
    Pair(1.0, c=2.0)
    Shape()
    c = Counter(n)
    c.start = 3
    tl.store(out, c.stop)
    Incomplete(n)
    Undeclared(n)


@aggregate
class Incomplete:
    given: tl.tensor
    missing: tl.tensor

    @triton.jit
    def __init__(self, given):
        self.given = given


@aggregate
class Undeclared:
    given: tl.tensor

    @triton.jit
    def __init__(self, given):
        self.given = given
        self.more = given


@triton.jit
def wrong_contexts(out):
    with tl.async_tasks():
        tl.store(out, 1)
    with Counter(1):
        pass
    with out:
        pass


def checked(n):
    if n % 2 != 0:
        raise ValueError(f"{n} is odd")
    return n


@triton.jit
def raising(out, N: tl.constexpr):
    tl.store(out, checked(N))


@triton.jit
def raising_at_run_time(out, n):
    if n > 0:
        raise RuntimeError("no")
# == tile contexts_elsewhere "*i32"
# kernel @contexts_elsewhere(v0 "out": ptr<i32>) warps(4) {
# block0:
#     v1 = const {value = 1} : i32 @168
#     store v0, v1 @168
#     return @166
# }
#
# warning[F22]: `triton.profiler.scope` is not in this file; the body runs without it
#    --> objects.py:167:10
#     |
# 167 |     with proton.scope("inner"):
#     |          ^^^^^^^^^^^^^^^^^^^^^
# == tile texts "*i32, 'relu'"
# kernel @texts(v0 "out": ptr<i32>) warps(4) {
# block0:
#     v1 = const {value = 1} : i32 @300
#     store v0, v1 @300
#     v2 = const {value = 1} : i32 @301
#     v3 = addptr v0, v2 : ptr<i32> @301
#     v4 = const {value = 9} : i32 @301
#     store v3, v4 @301
#     return @297
# }
#
# note[F23]: activation relu_3 of pointer<int32>
#    --> objects.py:299:5
#     |
# 299 |     tl.static_print(f"activation {NAME!s} of {out.dtype}")
#     |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
# == error wrong_objects "*i32, i32"
# error[F09]: `__init__` lacks its argument `start`
#    --> objects.py:320:5
#     |
# 320 |     Counter()
#     |     ^^^^^^^^^
#     |
# help: it is `__init__(self, start, step)`
#
# error[F12]: expected a compile-time constant, found a scalar i32
#    --> objects.py:49:21
#     |
#  49 |         self.step = tl.constexpr(step)
#     |                     ^^^^^^^^^^^^^^^^^^
#     |
# note: in `__init__`, called here
#    --> objects.py:321:5
#     |
# 321 |     Counter(n, step=n)
#     |     ^^^^^^^^^^^^^^^^^^
# help: only what does not depend on data can be `tl.constexpr`
#
# error[F09]: `__init__` takes 3 arguments by position
#    --> objects.py:322:5
#     |
# 322 |     Counter(n, 1, 2)
#     |     ^^^^^^^^^^^^^^^^
#     |
# help: it is `__init__(self, start, step)`
#
# error[F09]: `__init__` has no parameter `strep`; did you mean `step`?
#    --> objects.py:323:5
#     |
# 323 |     Counter(n, strep=1)
#     |     ^^^^^^^^^^^^^^^^^^^
#     |
# help: it is `__init__(self, start, step)`
#
# error[F09]: `Pair` lacks its field `a`
#    --> objects.py:324:5
#     |
# 324 |     Pair(b=1.0)
#     |     ^^^^^^^^^^^
#
# error[F09]: `Pair` gets `a` twice
#    --> objects.py:325:5
#     |
# 325 |     Pair(1.0, a=2.0)
#     |     ^^^^^^^^^^^^^^^^
#
# error[F09]: `Pair` has no field `c`
#    --> objects.py:326:5
#     |
# 326 |     Pair(1.0, c=2.0)
#     |     ^^^^^^^^^^^^^^^^
#
# error[F07]: objects of the class `Shape` cannot be made
#    --> objects.py:327:5
#     |
# 327 |     Shape()
#     |     ^^^^^^^
#     |
# help: a class of kernels is a NamedTuple, or an aggregate of triton.language
#
# error[F07]: attributes cannot be assigned
#    --> objects.py:329:5
#     |
# 329 |     c.start = 3
#     |     ^^^^^^^
#     |
# help: objects do not change; make a new one, or use a local name
#
# error[F06]: an object of `Counter` has no attribute `stop`
#    --> objects.py:330:21
#     |
# 330 |     tl.store(out, c.stop)
#     |                     ^^^^
#     |
# help: did you mean `step`?
#
# error[F09]: `__init__` of `Incomplete` gives no value to `missing`
#    --> objects.py:331:5
#     |
# 331 |     Incomplete(n)
#     |     ^^^^^^^^^^^^^
#
# error[F06]: `Undeclared` declares no field `more`
#    --> objects.py:352:14
#     |
# 352 |         self.more = given
#     |              ^^^^
#     |
# note: in `__init__`, called here
#    --> objects.py:332:5
#     |
# 332 |     Undeclared(n)
#     |     ^^^^^^^^^^^^^
# help: declare it in the class: `more: tl.tensor`
# == error wrong_contexts "*i32"
# error[F07]: `triton.language.async_tasks` is not supported
#    --> objects.py:357:10
#     |
# 357 |     with tl.async_tasks():
#     |          ^^^^^^^^^^^^^^^^
#     |
# help: leave the division of work among warps to `tl.range(..., warp_specialize=True)`
#
# error[F10]: an object of `Counter` is no context for `with`
#    --> objects.py:359:10
#     |
# 359 |     with Counter(1):
#     |          ^^^^^^^^^^
#     |
# help: an aggregate with `__enter__` and `__exit__` is one
#
# error[F10]: a pointer *i32 is no context for `with`
#    --> objects.py:361:10
#     |
# 361 |     with out:
#     |          ^^^
#     |
# help: an aggregate with `__enter__` and `__exit__` is one
# == error raising "*i32, 3"
# error[F18]: the kernel raises ValueError: 3 is odd
#    --> objects.py:367:9
#     |
# 367 |         raise ValueError(f"{n} is odd")
#     |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#     |
# note: in `checked`, called here
#    --> objects.py:373:19
#     |
# 373 |     tl.store(out, checked(N))
#     |                   ^^^^^^^^^^
# == error raising_at_run_time "*i32, i32"
# error[F07]: kernels cannot use `raise` at run time
#    --> objects.py:379:9
#     |
# 379 |         raise RuntimeError("no")
#     |         ^^^^^^^^^^^^^^^^^^^^^^^^
#     |
# help: use tl.static_assert at compile time, tl.device_assert at run time
