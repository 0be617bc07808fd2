# What Python gives values of the module: lists that a loop changes while it goes through them, classes in the order of their
# bases, members of enumerations, and what is equal or the same. Expected numbers are Python's own.
# run: grown "*i32" : grid(1) out=i32[8] poison ; expect out = [15,4,13,1,13,3,9,4]
# run: inherited "*i32" : grid(1) out=i32[4] poison ; expect out = [1,4,2,3]
# run: enumerated "*i32" : grid(1) out=i32[12] poison ; expect out = [6,6,5,6,6,1,3,1,5,6,5,2]
# run: compared "*i32" : grid(1) out=i32[9] poison ; expect out = [2,2,2,1,2,1,1,2,3]
import enum

import triton
import triton.language as tl

TODO = [8]
SEEN = 0
for task in TODO:
    SEEN += task
    if task > 1:
        TODO.append(task // 2)
FRONT = [1, 2, 3]
LAST = 0
for item in FRONT:
    LAST += item
    FRONT[2] = 10
CLEARED = [1, 2, 3]
FIRST = 0
for item in CLEARED:
    FIRST = FIRST * 10 + item
    CLEARED.clear()
NUMBERED = [1, 2, 3]
SUM = 0
for place, item in enumerate(NUMBERED):
    NUMBERED[2] = 10
    SUM += item
TAKEN = [1, 2, 3, 4]
LEFT = 0
for item in TAKEN:
    LEFT += item
    TAKEN.pop()
ZIPPED = [1, 2, 3]
ROWS = 0
for place, item in zip(range(9), ZIPPED):
    if place < 3:
        ZIPPED += (1,)
    ROWS += item
KEYS = {"a": 1, "b": 1}
for key in KEYS:
    KEYS[key] += 1


@triton.jit
def grown(out):
    tl.store(out, SEEN)
    tl.store(out + 1, len(TODO))
    tl.store(out + 2, LAST)
    tl.store(out + 3, FIRST)
    tl.store(out + 4, SUM)
    tl.store(out + 5, LEFT)
    tl.store(out + 6, ROWS)
    tl.store(out + 7, KEYS["a"] + KEYS["b"])


class A:
    X = 1


class B(A):
    pass


class C:
    X = 3


class D(B, C):
    pass


class Left(A):
    pass


class Right(A):
    X = 4


class Diamond(Left, Right):
    Y = 2


class Again(C, B):
    pass


@triton.jit
def inherited(out):
    tl.store(out, D.X)
    tl.store(out + 1, Diamond.X)
    tl.store(out + 2, Diamond.Y)
    tl.store(out + 3, Again.X)


class Mode(enum.Enum):
    NONE = 0
    SOME = 1
    ANY = 1


class Other(enum.Enum):
    NONE = 0


class Number(enum.IntEnum):
    ZERO = 0
    ONE = 1


MODE = tl.constexpr(Mode.SOME)
EQUAL = 5 if Mode.SOME == 1 else 6
OTHERS = 5 if Mode.NONE == Other.NONE else 6
TRUE = 5 if Mode.NONE else 6
AMONG = 5 if Mode.NONE in (0, 1) else 6
NEGATED = 5 if not Mode.NONE else 6
TEXT = len(Mode.SOME.name) - 1
SAME = 5 if Mode.ANY is Mode.SOME else 6
UNLIKE = 5 if Mode.NONE is Other.NONE else 6
WHOLE = 5 if Number.ONE == 1 else 6


@triton.jit
def enumerated(out):
    tl.store(out, EQUAL)
    tl.store(out + 1, OTHERS)
    tl.store(out + 2, TRUE)
    tl.store(out + 3, AMONG)
    tl.store(out + 4, NEGATED)
    tl.store(out + 5, MODE.value)
    tl.store(out + 6, TEXT)
    tl.store(out + 7, Number.ONE + 0)
    tl.store(out + 8, SAME)
    tl.store(out + 9, UNLIKE)
    tl.store(out + 10, WHOLE)
    if MODE == Mode.SOME:
        tl.store(out + 11, 2)


LIST = [1, 2]
IS_TUPLE = 1 if LIST == (1, 2) else 2
IN_TUPLES = 1 if [1] in [(1,)] else 2
IS_NEW = 1 if LIST is [1, 2] else 2
IS_SELF = 1 if LIST is LIST else 2
IS_ANY = 1 if isinstance(LIST, tuple) else 2
IS_LIST = 1 if isinstance(LIST[:], list) else 2


@triton.constexpr_function
def is_equal(x):
    return 1 if [x] == [4] else 2


@triton.constexpr_function
def is_tuple(x):
    return 1 if [x] == (x,) else 2


@triton.jit
def compared(out):
    tl.store(out, IS_TUPLE)
    tl.store(out + 1, IN_TUPLES)
    tl.store(out + 2, IS_NEW)
    tl.store(out + 3, IS_SELF)
    tl.store(out + 4, IS_ANY)
    tl.store(out + 5, IS_LIST)
    tl.store(out + 6, is_equal(4))
    tl.store(out + 7, is_tuple(4))
    tl.store(out + 8, len(LIST + [3]))
