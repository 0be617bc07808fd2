# Conditions of the module: what can be told at compile time is, and the branch that is not taken defines nothing.
# run: told "*i32" : grid(1) out=i32[7] poison ; expect out = [1,3,6,2,9,4,5]
# run: told_by_the_caller "*i32" FAST=False : grid(1) out=i32[1] poison ; expect out = [20]
# run: told_by_the_caller "*i32" : grid(1) out=i32[1] poison ; expect out = [10]
# run: of_the_language "*i32" : grid(1) out=i32[2] poison ; expect out = [1,2]
# error: not_told "*i32"
# error: of_default "*i32"
# tile: alike "*i32"
# error: changed_in_a_branch "*i32"
import torch
import triton
import triton.language as tl
from somewhere import HAS_UNITS

FAST = True
LEVEL = 2
KIND = "wide"

if FAST:
    STEP = tl.constexpr(10)
else:
    STEP = tl.constexpr(20)

if not FAST:
    ONE = tl.constexpr(0)
elif LEVEL >= 2 and KIND == "wide":
    ONE = tl.constexpr(1)
else:
    ONE = tl.constexpr(2)

if STEP.value == 10:
    if LEVEL in (2, 3):
        THREE = tl.constexpr(3)
    else:
        THREE = tl.constexpr(4)
else:
    THREE = tl.constexpr(5)

SIX = tl.constexpr(6)
if False:
    SIX = tl.constexpr(7)

if FAST:

    @triton.jit
    def chosen(x):
        return x + 1

else:

    @triton.jit
    def chosen(x, y):
        return x + y


TABLE = {"a": 1}
if LEVEL > 1:
    TABLE["a"] = 9
else:
    TABLE["b"] = 8


class Sizes:
    if LEVEL == 2:
        LEAST = 4
    else:
        LEAST = 8


def make(N=3):
    if LEVEL == 2:
        INNER = tl.constexpr(5)
    else:
        INNER = tl.constexpr(6)
    # The caller may give another.
    if N == 3:
        OF_DEFAULT = tl.constexpr(3)
    else:
        OF_DEFAULT = tl.constexpr(4)

    @triton.constexpr_function
    def table():
        return TABLE["a"]

    @triton.jit
    def told(out):
        tl.store(out, ONE)
        tl.store(out + 1, THREE)
        tl.store(out + 2, SIX)
        tl.store(out + 3, chosen(1))
        tl.store(out + 4, TABLE["a"])
        tl.store(out + 5, Sizes.LEAST)
        tl.store(out + 6, INNER)

    @triton.jit
    def of_default(out):
        tl.store(out, OF_DEFAULT)

    return told, of_default


@triton.jit
def told_by_the_caller(out):
    tl.store(out, STEP)


if hasattr(tl, "make_tensor_descriptor"):
    NEW = tl.constexpr(1)
else:
    NEW = tl.constexpr(0)

if hasattr(triton.language, "no_such_function"):
    OLD = tl.constexpr(1)
elif LEVEL == 2:
    OLD = tl.constexpr(2)
else:
    OLD = tl.constexpr(3)


@triton.jit
def of_the_language(out):
    tl.store(out, NEW)
    tl.store(out + 1, OLD)


# What is the host's is not known, and neither is what it decides; that PyTorch is not built for others than NVIDIA is known.
if torch.version.hip is not None:
    WIDTH = tl.constexpr(64)
else:
    WIDTH = tl.constexpr(32)

if HAS_UNITS:
    UNITS = tl.constexpr(1)
elif WIDTH.value == 32:
    UNITS = tl.constexpr(2)
else:
    UNITS = tl.constexpr(3)

if hasattr(torch, "xpu") or torch.__version__ == "1.0":
    CORES = tl.constexpr(1)
else:
    CORES = tl.constexpr(2)


@triton.jit
def not_told(out):
    tl.store(out, WIDTH)
    tl.store(out + 1, UNITS)
    tl.store(out + 2, CORES)


if HAS_UNITS:
    SAME = tl.constexpr(4)
else:
    SAME = tl.constexpr(4)


@triton.jit
def alike(out):
    tl.store(out, SAME)


LIST = [1]
if HAS_UNITS:
    LIST[0] = 2


@triton.jit
def changed_in_a_branch(out):
    tl.store(out, LIST[0])
# == error not_told "*i32"
# error[F05]: `UNITS` has no value here
#    --> conditions.py:148:23
#     |
# 148 |     tl.store(out + 1, UNITS)
#     |                       ^^^^^ only the host knows which value the statement of line 132 leaves it
#     |
# help: give it with -c UNITS=VALUE, or define it once
#
# error[F05]: `CORES` has no value here
#    --> conditions.py:149:23
#     |
# 149 |     tl.store(out + 2, CORES)
#     |                       ^^^^^ only the host knows which value the statement of line 139 leaves it
#     |
# help: give it with -c CORES=VALUE, or define it once
# == error of_default "*i32"
# error[F05]: `OF_DEFAULT` has no value here
#   --> conditions.py:97:23
#    |
# 97 |         tl.store(out, OF_DEFAULT)
#    |                       ^^^^^^^^^^ only the host knows which value the statement of line 76 leaves it
#    |
# help: give it with -c OF_DEFAULT=VALUE, or define it once
# == tile alike "*i32"
# kernel @alike(v0 "out": ptr<i32>) warps(4) {
# block0:
#     v1 = const {value = 4} : i32 @160
#     store v0, v1 @160
#     return @159
# }
# == error changed_in_a_branch "*i32"
# error[F05]: `LIST` has no value here
#    --> conditions.py:170:19
#     |
# 170 |     tl.store(out, LIST[0])
#     |                   ^^^^ line 165 changes it, or hands it to what may
#     |
# help: give it with -c LIST=VALUE
