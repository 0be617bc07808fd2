# Values of the module that change after they are made. What its statements say one after the other is followed; the rest
# is refused, with the line. Expected numbers are Python's own.
# run: followed "*i32" : grid(1) out=i32[12] poison ; expect out = [9,7,3,9,2,82,3,12,136,12,4,7]
# run: kept "*i32" : grid(1) out=i32[8] poison ; expect out = [12,1,2,1,3,5,6,3]
# run: of_classes "*i32" : grid(1) out=i32[4] poison ; expect out = [4,7,4,5]
# run: within "*i32" : grid(1) out=i32[2] poison ; expect out = [6,1]
# error: by_another_name "*i32"
# error: by_functions "*i32"
# error: by_statements "*i32"
# error: by_names "*i32"
# error: attributes "*i32"
# error: inside "*i32"
# error: of_the_library "*i32"
import contextlib
import functools
import operator
import sys

import triton
import triton.language as tl

SET = {"a": 1}
SET["a"] = 9
DROPPED = {"a": 1, "b": 7}
del DROPPED["a"]
GROWN = [1, 2]
GROWN.append(3)
UPDATED = {"a": 1}
UPDATED.update(a=9)
ADDED = [1, 2]
ADDED[0] += 1
MOVED = [1]
MOVED.insert(0, 7)
MOVED.extend([8, 9])
MOVED.pop(1)
del MOVED[0]
NESTED = [[1], [2]]
NESTED[1][0] = 3
EARLIER = {"a": 1}
BEFORE = EARLIER["a"]
EARLIER["a"] = 2
MANY = {"a": 1}
MANY.update({"b": 2}, c=3)
MANY.setdefault("a", 5)
MANY.setdefault("d", 6)
MANY.pop("b")
if len("x") == 1:
    MOVED[0] = 12
else:
    MOVED[0] = 13


@triton.constexpr_function
def followed_values():
    return (
        SET["a"], 7 if "a" not in DROPPED else 0, len(GROWN), UPDATED["a"], ADDED[0], 80 + len(MOVED), NESTED[1][0],
        BEFORE * 10 + EARLIER["a"], MANY["a"] * 100 + MANY["c"] * 10 + MANY["d"], MOVED[0], sum(NESTED[0]) + NESTED[1][0],
        DROPPED["b"],
    )


@triton.jit
def followed(out):
    values: tl.constexpr = followed_values()
    for i in tl.static_range(len(values)):
        tl.store(out + i, values[i])


# What does not change what a kernel reads.
BASE = [1]
COPY = BASE + []
COPY.append(2)
NUMBERS = [3, 4]
FIRST = NUMBERS[0]
FIRST += 0
COUNT = 1
COUNT_AGAIN = COUNT
COUNT += 4
SHADOWED = [6]
CONFIGS = []
for warps in NUMBERS:
    CONFIGS.append(triton.Config({"WARPS": warps}))


def shadowing():
    SHADOWED = [1]
    SHADOWED[0] = 2
    total = 0
    for number in NUMBERS:
        total += number
    return total


operator.setitem(sys.modules, "sums", shadowing())
print(NUMBERS, len(BASE), sorted(SHADOWED))


class Sizes:
    LEAST = 3

    def __init__(self):
        self.given = [1]

    def grow(self):
        self.given.append(2)


@triton.constexpr_function
def kept_values():
    return (
        10 * len(COPY) - 8, len(BASE), len(COPY), COUNT_AGAIN, FIRST, COUNT, SHADOWED[0], Sizes.LEAST,
    )


@triton.jit
def kept(out):
    values: tl.constexpr = kept_values()
    for i in tl.static_range(len(values)):
        tl.store(out + i, values[i])


a = 100


class Twice:
    z = 3
    z = 4
    a = 3
    b = a + 1
    c = 3
    c += 4
    first, second = 4, 5

    def chosen():
        return 1

    def chosen():
        return 2


@triton.jit
def of_classes(out):
    tl.store(out, Twice.z)
    tl.store(out + 1, Twice.c)
    tl.store(out + 2, Twice.b)
    tl.store(out + 3, Twice.second)


def make():
    OWN = {"a": 1}
    OWN["a"] = 6
    SHARED = {"a": 1}
    OTHER = SHARED
    OTHER["a"] = 2
    LEFT = [1]

    def later():
        nonlocal LEFT
        LEFT = [2]

    HELD = [1]

    @triton.constexpr_function
    def own():
        return OWN["a"]

    @triton.jit
    def within(out):
        tl.store(out, OWN["a"])
        tl.store(out + 1, HELD[0])

    @triton.jit
    def inside(out):
        tl.store(out, SHARED["a"])
        tl.store(out, LEFT[0])

    return within, inside, later


NAMED = {"a": 1}
ALIAS = NAMED
ALIAS["a"] = 9
LIST = [1]
PAIR = (LIST, 2)
PAIR[0].append(3)
SAME = [1]
AS_DEFAULT = [1]
ELEMENTS = [[1]]
ELEMENT = ELEMENTS[0]
ELEMENT += [2]
LEFT_OF, RIGHT_OF = SAME, 2
LEFT_OF[0] = 5
IN_CLASS = [1]


class Keeper:
    kept = IN_CLASS


Keeper.kept.append(2)


@triton.jit
def by_another_name(out):
    tl.store(out, NAMED["a"])
    tl.store(out, LIST[0])
    tl.store(out, SAME[0])
    tl.store(out, ELEMENTS[0][0])
    tl.store(out, IN_CLASS[0])


BY_NAME = [1]
BY_ARGUMENT = [1]
RETURNED = [1]
BY_METHOD = [1]
BY_OTHERS = [1]
BY_DECORATOR = 1
GLOBAL = tl.constexpr(1)
LATER = functools.partial(print, BY_OTHERS)
BY_LAMBDA = [1]
change = lambda: BY_LAMBDA.append(2)


def by_name():
    BY_NAME[0] = 2


def by_argument(given):
    mine = given
    mine.append(2)


def returned():
    return RETURNED


def set_global(to):
    global GLOBAL
    GLOBAL = tl.constexpr(to)


class Changes:
    def __init__(self, given):
        self.given = given

    def run(self):
        self.given.append(1)


by_argument(BY_ARGUMENT)
returned().append(2)
Changes(BY_METHOD).run()


@triton.jit
def by_functions(out):
    tl.store(out, BY_NAME[0])
    tl.store(out, BY_ARGUMENT[0])
    tl.store(out, RETURNED[0])
    tl.store(out, BY_METHOD[0])
    tl.store(out, BY_OTHERS[0])
    tl.store(out, GLOBAL)
    tl.store(out, BY_LAMBDA[0])


IN_LOOP = [1]
for number in NUMBERS:
    IN_LOOP[0] = number
IN_BRANCH = [1]
if sys.version_info > (3, 8):
    IN_BRANCH[0] = 2
IN_HANDLER = [1]
try:
    import no_such_module
except ImportError:
    IN_HANDLER[0] = 2
SORTED = [2, 1]
SORTED.sort()
SLICED = [1, 2]
SLICED[0:1] = [3]
TAKEN = [1, 2]
LAST = TAKEN.pop()


@triton.jit
def by_statements(out):
    tl.store(out, IN_LOOP[0])
    tl.store(out, IN_BRANCH[0])
    tl.store(out, IN_HANDLER[0])
    tl.store(out, SORTED[0])
    tl.store(out, SLICED[0])
    tl.store(out, TAKEN[0])


IN_TABLE = 1
globals()["IN_TABLE"] = 2
IN_MODULE = 1
setattr(sys.modules[__name__], "IN_MODULE", 2)
WALRUS = 1
OTHER_WALRUS = (WALRUS := 2) + 1
OF_WITH = 1
with contextlib.nullcontext(2) as OF_WITH:
    pass
OF_MATCH = 1
match 2:
    case OF_MATCH:
        pass
EXECUTED = 1
exec("EXECUTED = 2")


@triton.jit
def by_names(out):
    tl.store(out, IN_TABLE)
    tl.store(out, IN_MODULE)
    tl.store(out, WALRUS)
    tl.store(out, OF_WITH)
    tl.store(out, OF_MATCH)
    tl.store(out, EXECUTED)


class Direct:
    z = 3


Direct.z = 4


class Set:
    z = 3


setattr(Set, "z", 4)


class Base:
    z = 3


class Derived(Base):
    pass


Base.z = 4


class Own:
    z = 3
    t = [1]

    @classmethod
    def bump(cls):
        cls.z = 4


Own.t.append(2)


class Renamed:
    z = 3


OTHER_NAME = Renamed
OTHER_NAME.z = 4


class Raw:
    z = 3


type.__setattr__(Raw, "z", 4)


@triton.jit
def attributes(out):
    tl.store(out, Direct.z)
    tl.store(out, Set.z)
    tl.store(out, Derived.z)
    tl.store(out, Own.z)
    tl.store(out, Own.t[0])
    tl.store(out, Renamed.z)
    tl.store(out, Raw.z)


tl.exp2 = print


@triton.jit
def of_the_library(out):
    tl.store(out, tl.exp2(1.0))
    tl.store(out, tl.exp(0.0))
# == error by_another_name "*i32"
# error[F05]: `NAMED` has no value here
#    --> changes.py:205:19
#     |
# 205 |     tl.store(out, NAMED["a"])
#     |                   ^^^^^ line 182 changes it, or hands it to what may
#     |
# help: give it with -c NAMED=VALUE
#
# error[F05]: `LIST` has no value here
#    --> changes.py:206:19
#     |
# 206 |     tl.store(out, LIST[0])
#     |                   ^^^^ line 185 changes it, or hands it to what may
#     |
# help: give it with -c LIST=VALUE
#
# error[F05]: `SAME` has no value here
#    --> changes.py:207:19
#     |
# 207 |     tl.store(out, SAME[0])
#     |                   ^^^^ line 192 changes it, or hands it to what may
#     |
# help: give it with -c SAME=VALUE
#
# error[F05]: `ELEMENTS` has no value here
#    --> changes.py:208:19
#     |
# 208 |     tl.store(out, ELEMENTS[0][0])
#     |                   ^^^^^^^^ line 190 changes it, or hands it to what may
#     |
# help: give it with -c ELEMENTS=VALUE
#
# error[F05]: `IN_CLASS` has no value here
#    --> changes.py:209:19
#     |
# 209 |     tl.store(out, IN_CLASS[0])
#     |                   ^^^^^^^^ line 200 changes it, or hands it to what may
#     |
# help: give it with -c IN_CLASS=VALUE
# == error by_functions "*i32"
# error[F05]: `BY_NAME` has no value here
#    --> changes.py:257:19
#     |
# 257 |     tl.store(out, BY_NAME[0])
#     |                   ^^^^^^^ line 225 changes it, or hands it to what may
#     |
# help: give it with -c BY_NAME=VALUE
#
# error[F05]: `BY_ARGUMENT` has no value here
#    --> changes.py:258:19
#     |
# 258 |     tl.store(out, BY_ARGUMENT[0])
#     |                   ^^^^^^^^^^^ line 230 changes it, or hands it to what may
#     |
# help: give it with -c BY_ARGUMENT=VALUE
#
# error[F05]: `RETURNED` has no value here
#    --> changes.py:259:19
#     |
# 259 |     tl.store(out, RETURNED[0])
#     |                   ^^^^^^^^ line 251 changes it, or hands it to what may
#     |
# help: give it with -c RETURNED=VALUE
#
# error[F05]: `BY_METHOD` has no value here
#    --> changes.py:260:19
#     |
# 260 |     tl.store(out, BY_METHOD[0])
#     |                   ^^^^^^^^^ line 247 changes it, or hands it to what may
#     |
# help: give it with -c BY_METHOD=VALUE
#
# error[F05]: `BY_OTHERS` has no value here
#    --> changes.py:261:19
#     |
# 261 |     tl.store(out, BY_OTHERS[0])
#     |                   ^^^^^^^^^ line 219 changes it, or hands it to what may
#     |
# help: give it with -c BY_OTHERS=VALUE
#
# error[F05]: `GLOBAL` has no value here
#    --> changes.py:262:19
#     |
# 262 |     tl.store(out, GLOBAL)
#     |                   ^^^^^^ line 239 changes it, or hands it to what may
#     |
# help: give it with -c GLOBAL=VALUE
#
# error[F05]: `BY_LAMBDA` has no value here
#    --> changes.py:263:19
#     |
# 263 |     tl.store(out, BY_LAMBDA[0])
#     |                   ^^^^^^^^^ line 221 changes it, or hands it to what may
#     |
# help: give it with -c BY_LAMBDA=VALUE
# == error by_statements "*i32"
# error[F05]: `IN_BRANCH` has no value here
#    --> changes.py:288:19
#     |
# 288 |     tl.store(out, IN_BRANCH[0])
#     |                   ^^^^^^^^^ line 271 changes it, or hands it to what may
#     |
# help: give it with -c IN_BRANCH=VALUE
#
# error[F05]: `IN_HANDLER` has no value here
#    --> changes.py:289:19
#     |
# 289 |     tl.store(out, IN_HANDLER[0])
#     |                   ^^^^^^^^^^ line 276 changes it, or hands it to what may
#     |
# help: give it with -c IN_HANDLER=VALUE
#
# error[F05]: `SORTED` has no value here
#    --> changes.py:290:19
#     |
# 290 |     tl.store(out, SORTED[0])
#     |                   ^^^^^^ line 278 changes it, or hands it to what may
#     |
# help: give it with -c SORTED=VALUE
#
# error[F12]: `SLICED` of the module cannot be evaluated: kernels cannot use a slice here
#    --> changes.py:291:19
#     |
# 291 |     tl.store(out, SLICED[0])
#     |                   ^^^^^^
#     |
# help: give its value with -c SLICED=VALUE
#
# error[F05]: `TAKEN` has no value here
#    --> changes.py:292:19
#     |
# 292 |     tl.store(out, TAKEN[0])
#     |                   ^^^^^ line 282 changes it, or hands it to what may
#     |
# help: give it with -c TAKEN=VALUE
# == error by_names "*i32"
# error[F05]: `IN_TABLE` has no value here
#    --> changes.py:314:19
#     |
# 314 |     tl.store(out, IN_TABLE)
#     |                   ^^^^^^^^ line 296 changes it, or hands it to what may
#     |
# help: give it with -c IN_TABLE=VALUE
#
# error[F05]: `IN_MODULE` has no value here
#    --> changes.py:315:19
#     |
# 315 |     tl.store(out, IN_MODULE)
#     |                   ^^^^^^^^^ line 298 changes it, or hands it to what may
#     |
# help: give it with -c IN_MODULE=VALUE
#
# error[F05]: `WALRUS` has no value here
#    --> changes.py:316:19
#     |
# 316 |     tl.store(out, WALRUS)
#     |                   ^^^^^^ line 300 changes it, or hands it to what may
#     |
# help: give it with -c WALRUS=VALUE
#
# error[F05]: `OF_WITH` has no value here
#    --> changes.py:317:19
#     |
# 317 |     tl.store(out, OF_WITH)
#     |                   ^^^^^^^ line 302 changes it, or hands it to what may
#     |
# help: give it with -c OF_WITH=VALUE
#
# error[F05]: `OF_MATCH` has no value here
#    --> changes.py:318:19
#     |
# 318 |     tl.store(out, OF_MATCH)
#     |                   ^^^^^^^^ line 305 changes it, or hands it to what may
#     |
# help: give it with -c OF_MATCH=VALUE
#
# error[F05]: `EXECUTED` has no value here
#    --> changes.py:319:19
#     |
# 319 |     tl.store(out, EXECUTED)
#     |                   ^^^^^^^^ line 309 changes it, or hands it to what may
#     |
# help: give it with -c EXECUTED=VALUE
# == error attributes "*i32"
# error[F05]: `Direct.z` has no value here
#    --> changes.py:376:19
#     |
# 376 |     tl.store(out, Direct.z)
#     |                   ^^^^^^^^ line 326 changes it, or hands it to what may
#     |
# help: define it once, in the body of the class
#
# error[F05]: `Set.z` has no value here
#    --> changes.py:377:19
#     |
# 377 |     tl.store(out, Set.z)
#     |                   ^^^^^ line 333 changes it, or hands it to what may
#     |
# help: define it once, in the body of the class
#
# error[F05]: `Derived.z` has no value here
#    --> changes.py:378:19
#     |
# 378 |     tl.store(out, Derived.z)
#     |                   ^^^^^^^^^ line 344 changes it, or hands it to what may
#     |
# help: define it once, in the body of the class
#
# error[F05]: `Own.z` has no value here
#    --> changes.py:379:19
#     |
# 379 |     tl.store(out, Own.z)
#     |                   ^^^^^ line 353 changes it, or hands it to what may
#     |
# help: define it once, in the body of the class
#
# error[F05]: `Own.t` has no value here
#    --> changes.py:380:19
#     |
# 380 |     tl.store(out, Own.t[0])
#     |                   ^^^^^ line 356 changes it, or hands it to what may
#     |
# help: define it once, in the body of the class
#
# error[F05]: `Renamed.z` has no value here
#    --> changes.py:381:19
#     |
# 381 |     tl.store(out, Renamed.z)
#     |                   ^^^^^^^^^ line 364 changes it, or hands it to what may
#     |
# help: define it once, in the body of the class
#
# error[F05]: `Raw.z` has no value here
#    --> changes.py:382:19
#     |
# 382 |     tl.store(out, Raw.z)
#     |                   ^^^^^ line 371 changes it, or hands it to what may
#     |
# help: define it once, in the body of the class
# == error inside "*i32"
# error[F05]: `SHARED` has no value here
#    --> changes.py:174:23
#     |
# 174 |         tl.store(out, SHARED["a"])
#     |                       ^^^^^^ line 154 changes it, or hands it to what may
#     |
# help: give it with -c SHARED=VALUE
#
# error[F05]: `LEFT` has no value here
#    --> changes.py:175:23
#     |
# 175 |         tl.store(out, LEFT[0])
#     |                       ^^^^ line 159 changes it, or hands it to what may
#     |
# help: give it with -c LEFT=VALUE
# == error of_the_library "*i32"
# error[F05]: `triton.language.exp2` has no value here
#    --> changes.py:390:19
#     |
# 390 |     tl.store(out, tl.exp2(1.0))
#     |                   ^^^^^^^ line 385 changes it, or hands it to what may
#     |
# help: call a function of the file where another one is meant
