# Nor one that asks for what nothing defines.
# error: k "*i32"
import triton
import triton.language as tl

N = 1
no_such_name


@triton.jit
def k(out):
    tl.store(out, N)
# == error k "*i32"
# error[F05]: `no_such_name` is not defined
#  --> not_defined.py:7:1
#   |
# 7 | no_such_name
#   | ^^^^^^^^^^^^
#   |
# help: define it, or give a constant with -c no_such_name=VALUE
