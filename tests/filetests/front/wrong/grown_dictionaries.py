# Nor one whose loop makes the dictionary grow that it goes through.
# error: k "*i32"
import triton
import triton.language as tl

N = 1
SIZES = {"a": 1}
for name in SIZES:
    SIZES["b"] = 2


@triton.jit
def k(out):
    tl.store(out, N)
# == error k "*i32"
# error[F20]: the dictionary changes its size in the loop
#  --> grown_dictionaries.py:8:13
#   |
# 8 | for name in SIZES:
#   |             ^^^^^
#   |
# help: loop over a copy: `list(..)`
