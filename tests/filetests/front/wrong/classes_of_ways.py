# Objects of two classes, or tuples with other names, are not one value, though their parts have the same types.
# error: in_branches "*i32, i32, i32"
# error: in_a_branch "*i32, i32, i32"
# error: of_constants "*i32, i32"
# error: in_a_loop "*i32, i32, i32"
# error: as_an_object "*i32, i32, i32"
from typing import NamedTuple

import triton
import triton.language as tl


class Point(NamedTuple):
    x: tl.tensor
    y: tl.tensor


class Turned(NamedTuple):
    y: tl.tensor
    x: tl.tensor


@triton.jit
def in_branches(out, a, b):
    if a > 2:
        t = Point(a, b)
    else:
        t = Turned(a, b)
    tl.store(out, t.x)


@triton.jit
def in_a_branch(out, a, b):
    t = Point(a, b)
    if a > 2:
        t = Turned(a, b)
    tl.store(out, t.x)


@triton.jit
def of_constants(out, a):
    if a > 2:
        t = Point(1, 2)
    else:
        t = Turned(1, 2)
    tl.store(out, t.x)


@triton.jit
def in_a_loop(out, a, b):
    t = Point(a, b)
    for _ in range(a):
        t = Turned(t.x, t.y)
    tl.store(out, t.x)


@triton.jit
def as_an_object(out, a, b):
    t = (a, b) if a > 2 else Point(a, b)
    tl.store(out, t.x)
# == error in_branches "*i32, i32, i32"
# error[F15]: `t` is an object of `Point` on one way and an object of `Turned` on the other
#   --> classes_of_ways.py:25:5
#    |
# 25 |     if a > 2:
#    |     ^^^^^^^^^
#    |
# help: both ways through an `if` must give the same type; cast with `.to(...)`
# == error in_a_branch "*i32, i32, i32"
# error[F15]: `t` is an object of `Turned` on one way and an object of `Point` on the other
#   --> classes_of_ways.py:35:5
#    |
# 35 |     if a > 2:
#    |     ^^^^^^^^^
#    |
# help: both ways through an `if` must give the same type; cast with `.to(...)`
# == error of_constants "*i32, i32"
# error[F15]: `t` is an object of `Point` on one way and an object of `Turned` on the other
#   --> classes_of_ways.py:42:5
#    |
# 42 |     if a > 2:
#    |     ^^^^^^^^^
#    |
# help: both ways through an `if` must give the same type; cast with `.to(...)`
# == error in_a_loop "*i32, i32, i32"
# error[F16]: `t` is an object of `Point` before the loop and an object of `Turned` after an iteration
#   --> classes_of_ways.py:52:5
#    |
# 52 |     for _ in range(a):
#    |     ^^^^^^^^^^^^^^^^^^
# == error as_an_object "*i32, i32, i32"
# error[F15]: the value of `.. if .. else ..` is a tuple of 2 on one way and an object of `Point` on the other
#   --> classes_of_ways.py:59:9
#    |
# 59 |     t = (a, b) if a > 2 else Point(a, b)
#    |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    |
# help: both ways through an `if` must give the same type; cast with `.to(...)`
