# Texts at compile time: f-strings with formats, `%`, methods, repetition.
#
# tile: formats "*i32, 37, 0.25, 'relu'"
# run: methods "*i32" : grid(1) x=i32[1] poison ; expect x = [1]
# error: wrong_formats "*i32, 37"
# error: wrong_texts "*i32"

import triton
import triton.language as tl


@triton.jit
def formats(x, N: tl.constexpr, P: tl.constexpr, ACT: tl.constexpr):
    W: tl.constexpr = 6
    tl.static_print(f"{N} {N:d} {N:5}|{N:<5}|{N:^5}|{N:05} {N:x} {N:#06X} {N:b} {-N:+} {N * 1000:,}")
    tl.static_print(f"{P} {P:.3f} {P:8.1e}|{P:g} {P:%} {1 / 3:.2} {1e20} {P:>{W}}|{P:{W}.{2}f}")
    tl.static_print(f"{ACT} {ACT!r} {ACT!s:>6} {ACT:*^8} {ACT:.2} {N=} {ACT=} {N + 1 = :x} {P!r:>6} {{}}")
    tl.static_print("%d %03d %x %s %r %5.2f|%-4d|%+d %%" % (N, 7, N, ACT, ACT, P, 3, 4), "%s" % tl.float32)
    tl.static_print("{} {1:>4} {0!r} {end:.1f} {{}}".format(ACT, N, end=P), "ab" * 3, 2 * "-", (1, "a") * 2, 2 * [0], (1,))
    v = tl.arange(0, 8)
    tl.static_print(f"{v.dtype} {v.shape} {tl.float16!r} {x.dtype:>12}")
    tl.store(x, v.shape[0])


@triton.jit
def methods(x):
    ACT: tl.constexpr = "Leaky_ReLU"
    tl.static_assert(ACT.lower() == "leaky_relu" and ACT.upper() == "LEAKY_RELU")
    tl.static_assert(ACT.startswith("Leaky") and ACT.endswith(("LU", "x")) and not ACT.startswith(("a", "b")))
    tl.static_assert("a,b,,c".split(",") == ("a", "b", "", "c") and " a  b ".split() == ("a", "b"))
    tl.static_assert("-".join(["a", "b"]) == "a-b" and "abcabc".replace("b", "") == "acac")
    tl.static_assert("  a ".strip() == "a" and "xxa".lstrip("x") == "a" and "a  ".rstrip() == "a")
    tl.static_assert("abc".find("c") == 2 and "abc".find("x") == -1 and "abab".count("ab") == 2)
    tl.static_assert("leaky relu".title() == "Leaky Relu" and "rELU".capitalize() == "Relu")
    tl.static_assert("pre_x".removeprefix("pre_") == "x" and "x.py".removesuffix(".py") == "x" and "12".isdigit())
    tl.static_assert(ACT[0] == "L" and ACT[-2:] == "LU" and ACT[::2] == "LayRL" and len(ACT) == 10)
    tl.static_assert("Re" in ACT and ACT != "relu" and "a" < "b")
    tl.store(x, 1 if ACT.lower().endswith("relu") else 0)


@triton.jit
def wrong_formats(x, N: tl.constexpr):
    tl.static_print(f"{N:q}")
    tl.static_print(f"{'a':d}")
    tl.static_print(f"{N:.2}")
    tl.static_print(f"{N:>100000}")
    tl.static_print("%d %d" % 5)
    tl.static_print("%d" % "a")
    tl.static_print("{} {}".format(1))
    tl.static_print("{name}".format(1))
    tl.static_print("{".format(1))


@triton.jit
def wrong_texts(x):
    tl.static_print("a".uper())
    tl.static_print("a" * 100000)
    tl.static_print("a" * 1.5)
    tl.static_print(",".join("abc"), "a".split(""))
    tl.static_print("a".startswith(1))
# == tile formats "*i32, 37, 0.25, 'relu'"
# kernel @formats(v0 "x": ptr<i32>) warps(4) {
# block0:
#     v1 = arange {start = 0} : i32[8] @20
#     v2 = const {value = 8} : i32 @22
#     store v0, v2 @22
#     return @13
# }
#
# note[F23]: 37 37    37|37   | 37  |00037 25 0X0025 100101 -37 37,000
#   --> texts.py:15:5
#    |
# 15 |     tl.static_print(f"{N} {N:d} {N:5}|{N:<5}|{N:^5}|{N:05} {N:x} {N:#06X} {N:b} {-N:+} {N * 1000:,}")
#    |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#
# note[F23]: 0.25 0.250  2.5e-01|0.25 25.000000% 0.33 1e+20   0.25|  0.25
#   --> texts.py:16:5
#    |
# 16 |     tl.static_print(f"{P} {P:.3f} {P:8.1e}|{P:g} {P:%} {1 / 3:.2} {1e20} {P:>{W}}|{P:{W}.{2}f}")
#    |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#
# note[F23]: relu 'relu'   relu **relu** re N=37 ACT='relu' N + 1 = 26   0.25 {}
#   --> texts.py:17:5
#    |
# 17 |     tl.static_print(f"{ACT} {ACT!r} {ACT!s:>6} {ACT:*^8} {ACT:.2} {N=} {ACT=} {N + 1 = :x} {P!r:>6} {{}}")
#    |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#
# note[F23]: 37 007 25 relu 'relu'  0.25|3   |+4 % fp32
#   --> texts.py:18:5
#    |
# 18 |     tl.static_print("%d %03d %x %s %r %5.2f|%-4d|%+d %%" % (N, 7, N, ACT, ACT, P, 3, 4), "%s" % tl.float32)
#    |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#
# note[F23]: relu   37 'relu' 0.2 {} ababab -- (1, 'a', 1, 'a') (0, 0) (1,)
#   --> texts.py:19:5
#    |
# 19 |     tl.static_print("{} {1:>4} {0!r} {end:.1f} {{}}".format(ACT, N, end=P), "ab" * 3, 2 * "-", (1, "a") * 2, 2 * [0], (1,))
#    |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#
# note[F23]: int32 (8,) triton.language.float16 pointer<int32>
#   --> texts.py:21:5
#    |
# 21 |     tl.static_print(f"{v.dtype} {v.shape} {tl.float16!r} {x.dtype:>12}")
#    |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
# == error wrong_formats "*i32, 37"
# error[F20]: a number has no format `q`
#   --> texts.py:43:23
#    |
# 43 |     tl.static_print(f"{N:q}")
#    |                       ^^^^^
#    |
# help: formats are those of Python's `format`
#
# error[F20]: a string has no format `d`
#   --> texts.py:44:23
#    |
# 44 |     tl.static_print(f"{'a':d}")
#    |                       ^^^^^^^
#    |
# help: formats are those of Python's `format`
#
# error[F20]: an integer has no format `.2`
#   --> texts.py:45:23
#    |
# 45 |     tl.static_print(f"{N:.2}")
#    |                       ^^^^^^
#    |
# help: formats are those of Python's `format`
#
# error[F20]: the format is wider than 1024
#   --> texts.py:46:23
#    |
# 46 |     tl.static_print(f"{N:>100000}")
#    |                       ^^^^^^^^^^^
#    |
# help: formats are those of Python's `format`
#
# error[F13]: there are fewer values than formats
#   --> texts.py:47:21
#    |
# 47 |     tl.static_print("%d %d" % 5)
#    |                     ^^^^^^^^^^^
#
# error[F13]: `%d` needs a number
#   --> texts.py:48:21
#    |
# 48 |     tl.static_print("%d" % "a")
#    |                     ^^^^^^^^^^
#
# error[F20]: there are fewer values than fields
#   --> texts.py:49:21
#    |
# 49 |     tl.static_print("{} {}".format(1))
#    |                     ^^^^^^^^^^^^^^^^^
#    |
# help: an f-string takes any expression
#
# error[F20]: no value is named `name`
#   --> texts.py:50:21
#    |
# 50 |     tl.static_print("{name}".format(1))
#    |                     ^^^^^^^^^^^^^^^^^^
#    |
# help: an f-string takes any expression
#
# error[F20]: a brace stands alone
#   --> texts.py:51:21
#    |
# 51 |     tl.static_print("{".format(1))
#    |                     ^^^^^^^^^^^^^
#    |
# help: an f-string takes any expression
# == error wrong_texts "*i32"
# error[F06]: the string "a" has no attribute `uper`
#   --> texts.py:56:25
#    |
# 56 |     tl.static_print("a".uper())
#    |                         ^^^^
#    |
# help: did you mean `upper`?
#
# error[F13]: the string is too long
#   --> texts.py:57:21
#    |
# 57 |     tl.static_print("a" * 100000)
#    |                     ^^^^^^^^^^^^
#
# error[F13]: a string is repeated an integer number of times
#   --> texts.py:58:21
#    |
# 58 |     tl.static_print("a" * 1.5)
#    |                     ^^^^^^^^^
#
# error[F10]: `join` puts the strings of a tuple together
#   --> texts.py:59:30
#    |
# 59 |     tl.static_print(",".join("abc"), "a".split(""))
#    |                              ^^^^^
#
# error[F10]: `prefix` must be a string, found the constant 1
#   --> texts.py:60:36
#    |
# 60 |     tl.static_print("a".startswith(1))
#    |                                    ^
