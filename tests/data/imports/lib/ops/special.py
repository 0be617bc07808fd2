from typing import NamedTuple

import triton
import triton.language as tl

TEN = tl.constexpr(10)

class Pair(NamedTuple):
    a: tl.tensor
    b: tl.tensor


@triton.jit
def square(x):
    return x * x


@triton.jit
def shift(x, by: tl.constexpr = TEN):
    return x + by
