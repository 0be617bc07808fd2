# Functions that give names values, under other names.
# error: k "*i32"
import triton
import triton.language as tl

N = tl.constexpr(4)
tables = globals
tables()["N"] = tl.constexpr(9)


@triton.jit
def k(out):
    tl.store(out, N)
# == error k "*i32"
# error[F05]: `N` has no value here
#   --> names_by_tables.py:13:19
#    |
# 13 |     tl.store(out, N)
#    |                   ^ line 7 changes it, or hands it to what may
#    |
# help: give it with -c N=VALUE
