"""A kernel that uses something of other files in each of the ways that Python has."""
import shared.numbers
import shared.sums as sums
import triton
import triton.language as tl

from lib.constants import SCALE

from . import special
from ..constants import Mode
from .again import fourth, twice
from .everything import *
from .special import Pair, square as sq

OWN = tl.constexpr(5)
MEAN = tl.constexpr(Mode.MEAN.value)


# run: combine "*fp32, *fp32, 8" : grid(1) x=f32[8] iota(1) out=f32[8] poison ; expect out = [116.5,127.5,142.5,161.5,184.5,211.5,242.5,277.5]
@triton.jit
def combine(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    p = Pair(sq(v), special.shift(v))
    v = twice(p.a) + p.b + SCALE + sums.triple(v) + shared.numbers.OFFSET + less_one(v)
    tl.store(out + i, v)


# run: last "*fp32, *fp32, 4, 1" : grid(1) x=f32[4] iota(0) out=f32[4] poison ; expect out = [5,6,21,86]
# run: last "*fp32, *fp32, 4, 0" : grid(1) x=f32[4] iota(0) out=f32[4] poison ; expect out = [0,1,2,3]
@triton.jit
def last(x, out, N: tl.constexpr, MODE: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    if MODE == MEAN:
        v = fourth(v)
    tl.store(out + i, v)
