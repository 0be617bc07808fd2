# Conditions of the module find no variable of the environment set; who reads what they choose is warned.
# run: chosen "*i32" : grid(1) out=i32[5] poison ; expect out = [1,2,3,1,5]
# run: others "*i32" : grid(1) out=i32[1] poison ; expect out = [7]
# error: warned "*i32"
import os

import triton
import triton.language as tl

if os.environ.get("FAST"):
    N = 4
else:
    N = 1
if os.getenv("LEVEL", "0") == "1":

    @triton.jit
    def two():
        return 5
else:

    @triton.jit
    def two():
        return 2


IS_SLOW = "FAST" not in os.environ
if IS_SLOW:
    M = 3
K = 4 if os.environ.get("FAST", "0") == "1" else 1
LIST = []
if not os.environ.get("FAST"):
    LIST.append(5)
OTHER = 7


@triton.jit
def chosen(out):
    tl.store(out, N)
    tl.store(out + 1, two())
    tl.store(out + 2, M)
    tl.store(out + 3, K)
    tl.store(out + 4, LIST[0])


@triton.jit
def others(out):
    tl.store(out, OTHER)


@triton.jit
def warned(out):
    tl.store(out, N)
    tl.store(out, two())
    tl.store(out, M)
    tl.store(out, K)
    tl.store(out, OTHER + no_such_name)
# == error warned "*i32"
# warning[F22]: no variable of the environment is taken to be set, which this asks for
#   --> environment.py:10:4
#    |
# 10 | if os.environ.get("FAST"):
#    |    ^^^^^^^^^^^^^^^^^^^^^^
#    |
# help: write the condition's value where another one is meant
#
# warning[F22]: no variable of the environment is taken to be set, which this asks for
#   --> environment.py:14:4
#    |
# 14 | if os.getenv("LEVEL", "0") == "1":
#    |    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    |
# help: write the condition's value where another one is meant
#
# warning[F22]: no variable of the environment is taken to be set, which this asks for
#   --> environment.py:27:4
#    |
# 27 | if IS_SLOW:
#    |    ^^^^^^^
#    |
# help: write the condition's value where another one is meant
#
# warning[F22]: no variable of the environment is taken to be set, which this asks for
#   --> environment.py:29:10
#    |
# 29 | K = 4 if os.environ.get("FAST", "0") == "1" else 1
#    |          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    |
# help: write the condition's value where another one is meant
#
# error[F05]: `no_such_name` is not defined
#   --> environment.py:56:27
#    |
# 56 |     tl.store(out, OTHER + no_such_name)
#    |                           ^^^^^^^^^^^^
#    |
# help: define it, or give a constant with -c no_such_name=VALUE
