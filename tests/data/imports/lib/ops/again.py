"""Names of other files, under others."""
import triton

from . import norm
from .special import square as squared


@triton.jit
def twice(x):
    return x + x


@triton.jit
def fourth(x):
    return squared(squared(x)) + norm.OWN
