# Which definition a name stands for. Expected numbers are Python's own.
# run: defined_again "*i32" : grid(1) out=i32[8] poison ; expect out = [30,4,6,5,2,13,3,11]
# run: made "*i32" : grid(1) out=i32[4] poison ; expect out = [3,11,8,7]
# run: made_again "*i32" : grid(1) out=i32[4] poison ; expect out = [9,101,1,6]
# run: of_a_parameter "*i32" LIMIT=7 : grid(1) out=i32[1] poison ; expect out = [7]
# error: of_a_parameter "*i32"
# error: of_the_host "*i32"
# tile: in_branches "*i32"
import triton
import triton.language as tl

FIRST: tl.constexpr = 3
SECOND: tl.constexpr = FIRST + 1
FIRST: tl.constexpr = 30
THIRD = tl.constexpr(1)
THIRD += 5
FOURTH = tl.constexpr(4)
FOURTH = tl.constexpr(FOURTH.value + 1)
LEFT, RIGHT = tl.constexpr(2), tl.constexpr(3)
[LEFT, RIGHT] = RIGHT, LEFT
TIMES = tl.constexpr(1)
for _ in range(3):
    TIMES = tl.constexpr(TIMES.value * 2)
REST = tl.constexpr(1)
NONE, *REST = 1, 2, 3
GONE = tl.constexpr(4)
del GONE
LIMIT = tl.constexpr(1)


@triton.constexpr_function
def counted(n):
    return n + 1


COUNT = tl.constexpr(counted(1))


@triton.constexpr_function
def counted(n):
    return n + 100


@triton.jit
def moved(x, by: tl.constexpr = FOURTH):
    return x + by


FOURTH += 100
moved_first = moved


@triton.jit
def moved(x, by: tl.constexpr = 1):
    return x + by


@triton.jit
def defined_again(out):
    tl.store(out, FIRST)
    tl.store(out + 1, SECOND)
    tl.store(out + 2, THIRD)
    tl.store(out + 3, FOURTH - 100)
    tl.store(out + 4, COUNT)
    tl.store(out + 5, moved_first(8))
    tl.store(out + 6, LEFT)
    tl.store(out + 7, moved(10))


def make(N, M=5):
    FIRST = tl.constexpr(3)
    SUM = tl.constexpr(FIRST + M)

    @triton.jit
    def moved(x):
        return x + 10

    @triton.jit
    def made(out):
        tl.store(out, FIRST)
        tl.store(out + 1, moved(1))
        tl.store(out + 2, SUM)
        tl.store(out + 3, THIRD + 1)

    return made


def make_again(LIMIT, M=6):
    FIRST = tl.constexpr(9)

    @triton.jit
    def moved(x):
        return x + 100

    @triton.jit
    def made_again(out):
        tl.store(out, FIRST)
        tl.store(out + 1, moved(1))
        tl.store(out + 2, RIGHT - 1)
        tl.store(out + 3, M)

    @triton.jit
    def of_a_parameter(out):
        tl.store(out, LIMIT)

    return made_again, of_a_parameter


if triton.runtime.driver.active.get_current_target().backend == "hip":
    WIDTH = tl.constexpr(64)
else:
    WIDTH = tl.constexpr(32)


@triton.jit
def in_branches(out):
    tl.store(out, WIDTH)


@triton.jit
def of_the_host(out):
    tl.store(out, TIMES)
    tl.store(out + 1, REST)
    tl.store(out + 2, GONE)
# == error of_a_parameter "*i32"
# error[F05]: `LIMIT` has no value here
#    --> scopes.py:104:23
#     |
# 104 |         tl.store(out, LIMIT)
#     |                       ^^^^^ it is a parameter of a function of the host
#     |
# help: give it with -c LIMIT=VALUE
# == error of_the_host "*i32"
# error[F05]: `REST` has no value here
#    --> scopes.py:123:23
#     |
# 123 |     tl.store(out + 1, REST)
#     |                       ^^^^ it is assigned where only the host knows what
#     |
# help: give it with -c REST=VALUE
#
# error[F05]: `GONE` has no value here
#    --> scopes.py:124:23
#     |
# 124 |     tl.store(out + 2, GONE)
#     |                       ^^^^ it is assigned where only the host knows what
#     |
# help: give it with -c GONE=VALUE
# == tile in_branches "*i32"
# kernel @in_branches(v0 "out": ptr<i32>) warps(4) {
# block0:
#     v1 = const {value = 32} : i32 @117
#     store v0, v1 @117
#     return @116
# }
