"""Constants of the package."""
import enum

import torch
import triton.language as tl

SCALE = tl.constexpr(0.5)


class Mode(enum.Enum):
    SUM = 0
    MEAN = 1


def of_the_host(x):
    return torch.empty_like(x)
