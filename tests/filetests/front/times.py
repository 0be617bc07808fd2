# What a statement of the module reads is what there is when it runs; what a kernel reads is what there is at the end. Expected
# numbers are Python's own.
# run: at_their_time "*i32" : grid(1) out=i32[12] poison ; expect out = [1,5,1,1,1,1,2,11,20,2,1,2]
# run: by_loops "*i32" : grid(1) out=i32[10] poison ; expect out = [4,20,6,243,22,9,2,16,15,1]
# run: by_host_functions "*i32" : grid(1) out=i32[6] poison ; expect out = [9,4,6,2,14,2]
# run: one_way "*i32" : grid(1) out=i32[9] poison ; expect out = [3,2,4,7,3,4,8,6,1]
# error: several_ways "*i32"
# error: other_names "*i32"
# error: of_classes "*i32"
# error: once_alone "*i32"
# error: of_the_host "*i32"
import contextlib
import functools
import itertools
import typing

import triton
import triton.language as tl
from somewhere import SETTING, wrapped

COVERED = 1
from elsewhere import *

N = 1


def read():
    return N


def default(x=N):
    return x


class AtItsTime:
    HELD = read()
    N = 4
    OF_LISTS = [N for _ in range(1)]


FIRST = read()
IN_LIST = [read()]
IN_DICT = {"a": read()}
if read() == 1:
    CHOSEN = 1
else:
    CHOSEN = 2
LONG = len([1, 2])
LISTED = [read() * 10 + i for i in range(2)]
N = 2
SECOND = read() * 10


class Base:
    SIZE = 2


class Derived(Base):
    pass


class Base:
    SIZE = 3


def len(x):
    return 7


N = 5


@triton.jit
def at_their_time(out):
    tl.store(out, FIRST)
    tl.store(out + 1, N)
    tl.store(out + 2, IN_LIST[0])
    tl.store(out + 3, IN_DICT["a"])
    tl.store(out + 4, CHOSEN)
    tl.store(out + 5, AtItsTime.HELD)
    tl.store(out + 6, LONG)
    tl.store(out + 7, LISTED[1])
    tl.store(out + 8, SECOND)
    tl.store(out + 9, Derived.SIZE)
    tl.store(out + 10, default())
    tl.store(out + 11, AtItsTime.OF_LISTS[0] + 1)


SQUARES = []
for i in range(6):
    SQUARES.append(i * i)
PAIRS = []
for a, b in itertools.product([1, 2], [0, 4]):
    PAIRS.append(a * 10 + b)
TOTAL = 0
for place, given in enumerate([1, 2]):
    TOTAL += given * (place + 1) + 1
TOTAL -= 1
POWER = 1
while POWER < 100:
    POWER *= 3
STATE = 0


def state():
    return STATE


SEEN = []
for STATE in range(3):
    SEEN.append(state() + 20)
STATE = 9
TABLE = {}
for name in ["x", "y"]:
    TABLE[name] = 8
for left, right in zip([1, 2, 3], [4, 5]):
    LAST = left
KEPT = 0
for number in [5, 8, 2]:
    if number < 4:
        continue
    KEPT += number
    if KEPT > 20:
        break
ODD = list(filter(lambda x: x % 2, [2, 3, 5, 8]))


@triton.jit
def by_loops(out):
    tl.store(out, SQUARES[2])
    tl.store(out + 1, PAIRS[2])
    tl.store(out + 2, TOTAL)
    tl.store(out + 3, POWER)
    tl.store(out + 4, SEEN[2])
    tl.store(out + 5, STATE)
    tl.store(out + 6, LAST)
    tl.store(out + 7, TABLE["x"] + TABLE["y"])
    tl.store(out + 8, KEPT + 2)
    tl.store(out + 9, ODD[0] - 2)


def squares(n):
    found = []
    for i in range(n):
        found.append(i * i)
    found[0] = 4
    return found


def table():
    sizes = {"a": 1}
    for name in ("b", "c"):
        sizes[name] = sizes["a"] + 1
    sizes["a"] += 5
    return sizes | {"c": 14}


def is_cuda():
    return triton.runtime.driver.active.get_current_target().backend == "cuda"


if is_cuda():
    BACKEND = 2
else:
    BACKEND = 3


@triton.jit
def by_host_functions(out):
    tl.store(out, squares(4)[3])
    tl.store(out + 1, squares(4)[0])
    tl.store(out + 2, table()["a"])
    tl.store(out + 3, table()["b"])
    tl.store(out + 4, table()["c"])
    tl.store(out + 5, BACKEND)


MAIN = 3
if __name__ == "__main__":
    MAIN = 4
CHECKED = 2
if typing.TYPE_CHECKING:
    CHECKED = 3
if wrapped("SET"):
    BOTH = 4
else:
    BOTH = 4
try:
    import math

    FOUND = 7
except ImportError:
    FOUND = 8
try:
    import no_such_module
except ImportError as error:
    raise RuntimeError("it is needed") from error
else:
    NEEDED = 3
try:
    import no_such_module

    ALONE = 4
except ImportError:
    pass
RELEASED = 1
if triton.__version__ >= "3.0.0":
    RELEASED = 8
with contextlib.suppress(ImportError):
    SURE = 6
PREFIX_A = 1
OTHER_B = 1
for name in ("A", "C"):
    globals()["PREFIX_" + name] = 7


@triton.jit
def one_way(out):
    tl.store(out, MAIN)
    tl.store(out + 1, CHECKED)
    tl.store(out + 2, BOTH)
    tl.store(out + 3, FOUND)
    tl.store(out + 4, NEEDED)
    tl.store(out + 5, ALONE)
    tl.store(out + 6, RELEASED)
    tl.store(out + 7, SURE)
    tl.store(out + 8, OTHER_B)


NESTED = 1
if wrapped("SET"):
    if wrapped("OTHER"):
        NESTED = 2
    else:
        NESTED = 3
if wrapped("SET"):
    BRANCHED = 1
    HERE = BRANCHED + 1
else:
    BRANCHED = 2
    HERE = BRANCHED + 1
try:
    import no_such_module

    HAS = True
except ImportError:
    HAS = False
TORN = 1
try:
    TORN = 2
    int("x")
except ValueError:
    pass
SUPPRESSED = 1
with contextlib.suppress(ValueError):
    SUPPRESSED = int("x")
GROWN = [1]
try:
    import no_such_module

    GROWN.append(2)
except ImportError:
    pass


@triton.jit
def several_ways(out):
    tl.store(out, NESTED)
    tl.store(out, BRANCHED)
    tl.store(out, HERE)
    tl.store(out, HAS)
    tl.store(out, TORN)
    tl.store(out, SUPPRESSED)
    tl.store(out, GROWN[0])
    tl.store(out, PREFIX_A)


ONE = OTHER = [1]
ONE.append(2)
METHOD = [1]
add = METHOD.append
add(2)
MAPPED = [1]
list(map(MAPPED.append, [2]))
DECORATED = [1]


@DECORATED.append
def decorated():
    pass


OF_WITH = [1]
with contextlib.nullcontext(OF_WITH) as other:
    other.append(2)
ANNOTATED = [1]
annotated: ANNOTATED.append(2) = 1
HANDED = [1]


def call(function):
    function(2)


call(HANDED.append)


@triton.jit
def other_names(out):
    tl.store(out, OTHER[0])
    tl.store(out, METHOD[0])
    tl.store(out, MAPPED[0])
    tl.store(out, DECORATED[0])
    tl.store(out, OF_WITH[0])
    tl.store(out, ANNOTATED[0])
    tl.store(out, HANDED[0])
    tl.store(out, COVERED)


class Patched:
    COUNT = 1


def patch(given):
    given.COUNT = 2


patch(Patched)


@triton.jit
def of_classes(out):
    tl.store(out, Patched.COUNT)


ZIPPED = zip([1], [2])


def defaults(held=[]):
    held.append(1)
    return held[0]


@triton.jit
def once_alone(out):
    tl.store(out, ZIPPED[0][0])
    tl.store(out, defaults())


IS_SET = SETTING is None


@functools.lru_cache
def cached():
    return N


@wrapped
def other_one():
    return 1


def asks():
    return 1 if SETTING == 1 else 2


@triton.jit
def of_the_host(out):
    tl.store(out, IS_SET)
    tl.store(out, cached())
    tl.store(out, other_one())
    tl.store(out, asks())
# == error several_ways "*i32"
# error[F05]: `NESTED` has no value here
#    --> times.py:268:19
#     |
# 268 |     tl.store(out, NESTED)
#     |                   ^^^^^^ only the host knows which value the statement of line 231 leaves it
#     |
# help: give it with -c NESTED=VALUE, or define it once
#
# error[F05]: `BRANCHED` has no value here
#    --> times.py:269:19
#     |
# 269 |     tl.store(out, BRANCHED)
#     |                   ^^^^^^^^ only the host knows which value the statement of line 236 leaves it
#     |
# help: give it with -c BRANCHED=VALUE, or define it once
#
# error[F05]: `HERE` has no value here
#    --> times.py:270:19
#     |
# 270 |     tl.store(out, HERE)
#     |                   ^^^^ only the host knows which value the statement of line 236 leaves it
#     |
# help: give it with -c HERE=VALUE, or define it once
#
# error[F05]: `HAS` has no value here
#    --> times.py:271:19
#     |
# 271 |     tl.store(out, HAS)
#     |                   ^^^ only the host knows which value the statement of line 242 leaves it
#     |
# help: give it with -c HAS=VALUE, or define it once
#
# error[F05]: `TORN` has no value here
#    --> times.py:272:19
#     |
# 272 |     tl.store(out, TORN)
#     |                   ^^^^ only the host knows which value the statement of line 249 leaves it
#     |
# help: give it with -c TORN=VALUE, or define it once
#
# error[F05]: `SUPPRESSED` has no value here
#    --> times.py:273:19
#     |
# 273 |     tl.store(out, SUPPRESSED)
#     |                   ^^^^^^^^^^ only the host knows which value the statement of line 255 leaves it
#     |
# help: give it with -c SUPPRESSED=VALUE, or define it once
#
# error[F05]: `GROWN` has no value here
#    --> times.py:274:19
#     |
# 274 |     tl.store(out, GROWN[0])
#     |                   ^^^^^ line 261 changes it, or hands it to what may
#     |
# help: give it with -c GROWN=VALUE
#
# error[F05]: `PREFIX_A` has no value here
#    --> times.py:275:19
#     |
# 275 |     tl.store(out, PREFIX_A)
#     |                   ^^^^^^^^ line 214 changes it, or hands it to what may
#     |
# help: give it with -c PREFIX_A=VALUE
# == error other_names "*i32"
# error[F05]: `OTHER` has no value here
#    --> times.py:310:19
#     |
# 310 |     tl.store(out, OTHER[0])
#     |                   ^^^^^ line 279 changes it, or hands it to what may
#     |
# help: give it with -c OTHER=VALUE
#
# error[F05]: `METHOD` has no value here
#    --> times.py:311:19
#     |
# 311 |     tl.store(out, METHOD[0])
#     |                   ^^^^^^ line 282 changes it, or hands it to what may
#     |
# help: give it with -c METHOD=VALUE
#
# error[F05]: `MAPPED` has no value here
#    --> times.py:312:19
#     |
# 312 |     tl.store(out, MAPPED[0])
#     |                   ^^^^^^ line 284 changes it, or hands it to what may
#     |
# help: give it with -c MAPPED=VALUE
#
# error[F05]: `DECORATED` has no value here
#    --> times.py:313:19
#     |
# 313 |     tl.store(out, DECORATED[0])
#     |                   ^^^^^^^^^ line 288 changes it, or hands it to what may
#     |
# help: give it with -c DECORATED=VALUE
#
# error[F05]: `OF_WITH` has no value here
#    --> times.py:314:19
#     |
# 314 |     tl.store(out, OF_WITH[0])
#     |                   ^^^^^^^ line 295 changes it, or hands it to what may
#     |
# help: give it with -c OF_WITH=VALUE
#
# error[F05]: `ANNOTATED` has no value here
#    --> times.py:315:19
#     |
# 315 |     tl.store(out, ANNOTATED[0])
#     |                   ^^^^^^^^^ line 297 changes it, or hands it to what may
#     |
# help: give it with -c ANNOTATED=VALUE
#
# error[F05]: `HANDED` has no value here
#    --> times.py:316:19
#     |
# 316 |     tl.store(out, HANDED[0])
#     |                   ^^^^^^ line 302 changes it, or hands it to what may
#     |
# help: give it with -c HANDED=VALUE
#
# error[F05]: `COVERED` has no value here
#    --> times.py:317:19
#     |
# 317 |     tl.store(out, COVERED)
#     |                   ^^^^^^^ line 22 changes it, or hands it to what may
#     |
# help: give it with -c COVERED=VALUE
# == error of_classes "*i32"
# error[F05]: `Patched.COUNT` has no value here
#    --> times.py:333:19
#     |
# 333 |     tl.store(out, Patched.COUNT)
#     |                   ^^^^^^^^^^^^^ line 325 changes it, or hands it to what may
#     |
# help: define it once, in the body of the class
# == error once_alone "*i32"
# error[F12]: `ZIPPED` of the module cannot be evaluated: `zip` of Python here
#    --> times.py:346:19
#     |
# 346 |     tl.store(out, ZIPPED[0][0])
#     |                   ^^^^^^
#     |
# help: give its value with -c ZIPPED=VALUE
#
# error[F07]: a list with several names is changed
#    --> times.py:340:5
#     |
# 340 |     held.append(1)
#     |     ^^^^^^^^^^^^^^
#     |
# note: in `defaults`, called here
#    --> times.py:347:19
#     |
# 347 |     tl.store(out, defaults())
#     |                   ^^^^^^^^^^
# help: make a new one: `x = x + ..`
# == error of_the_host "*i32"
# error[F12]: `IS_SET` of the module depends on what only the host knows
#    --> times.py:369:19
#     |
# 369 |     tl.store(out, IS_SET)
#     |                   ^^^^^^
#     |
# help: give its value with -c IS_SET=VALUE
#
# error[F05]: `N` has no value here
#    --> times.py:355:12
#     |
# 355 |     return N
#     |            ^ line 70 changes it, or hands it to what may
#     |
# note: in `cached`, called here
#    --> times.py:370:19
#     |
# 370 |     tl.store(out, cached())
#     |                   ^^^^^^^^
# help: give it with -c N=VALUE, or call a function that is not cached
#
# error[F07]: what `wrapped` makes of `other_one` is not known
#    --> times.py:371:19
#     |
# 371 |     tl.store(out, other_one())
#     |                   ^^^^^^^^^^^
#     |
# help: call a function without decorators
#
# error[F12]: what `asks` gives depends on what only the host knows
#    --> times.py:372:19
#     |
# 372 |     tl.store(out, asks())
#     |                   ^^^^^^
#     |
# help: give the kernel a constant in place of it
