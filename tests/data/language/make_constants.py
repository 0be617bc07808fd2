"""Writes constants.txt: what expressions are at compile time, in value and in type, by Triton's own code generator.
Made with Triton 3.6.0 and Python 3.11; needs no GPU:

    python tests/data/language/make_constants.py > tests/data/language/constants.txt

A line is `WHERE, EXPRESSION, RESULT`, with tabs between. WHERE is `kernel`, where Triton's code generator says what it
is, or `host`, the body of a `constexpr_function`, where Python does. RESULT is `= REPR`, a constant as Python's `repr`
writes it; `: TYPE`, a value of run time; or `!`, which Triton refuses, followed by what Python makes of it, if anything.
"""
import ast
import itertools
import math
import os
import random
import tempfile

import triton
import triton.language as tl
from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.compiler.compiler import make_backend
from triton.compiler.errors import CompilationError

# What the expressions find: parameters of the kernel (a type, or a constant), constants of the module, local names.
TYPED = {"p": "*fp32", "q": "*ki8", "i": "i32", "u": "u32", "l": "i64", "f": "fp32", "h": "fp16", "b": "i1"}
CONSTANTS = {"A": 7, "B": -3, "Z": 0, "K": 1000, "F": 2.5, "G": -0.0, "T": True, "N": None, "S": "abc", "E": "",
             "D": tl.float16, "I": tl.int8, "P": (1, 2.5, "x")}
MODULE = {"W": 12, "V": 0.1}
SETUP = ["x = tl.arange(0, 16)", "y = x[:, None] + tl.arange(0, 4)[None, :]", "n = 5", "pair = (1, f)",
         "M: tl.constexpr = A * 2"]

FOUND = []


@tl.core.builtin
def found(value, _semantic=None):
    FOUND.append(value)


class RunTime(Exception):
    """A value that is not known at compile time."""


class Odd(Exception):
    """What has no writing of its own: functions, classes, modules."""


def show(value):
    if isinstance(value, tl.constexpr):
        return show(value.value)
    if isinstance(value, tl.tensor):
        raise RunTime(str(value.type))
    if isinstance(value, (tl.tuple, tuple, list)):
        items = [show(item) for item in value]
        if isinstance(value, list):
            return "[" + ", ".join(items) + "]"
        return "(" + ", ".join(items) + ("," if len(items) == 1 else "") + ")"
    if isinstance(value, (tl.dtype, tl.constexpr_type)) or value is None or type(value) in (bool, int, float, str):
        return repr(value)
    raise Odd


# ---- the expressions ----

INTS = ["0", "1", "-1", "2", "7", "-7", "3", "-3", "10", "255", "1 << 20", "A", "B", "Z", "W", "M"]
FLOATS = ["0.0", "-0.0", "1.0", "-1.0", "0.1", "-0.1", "2.5", "-2.5", "1.25", "3.0", "1000.0", "0.8", "1e30", "1e-30",
          "F", "G", "V", "float('inf')", "float('-inf')", "float('nan')"]
BOOLS = ["True", "False", "T", "A > B"]
TEXTS = ["'abc'", "''", "S", "E", "'ab' + 'c'"]
ARITHMETIC = ["+", "-", "*", "/", "//", "%"]
BITS = ["&", "|", "^", "<<", ">>"]
ORDER = ["==", "!=", "<", "<=", ">", ">="]
DTYPES = ["tl.int1", "tl.int8", "tl.int16", "tl.int32", "tl.int64", "tl.uint8", "tl.uint16", "tl.uint32", "tl.uint64",
          "tl.float16", "tl.bfloat16", "tl.float32", "tl.float64", "tl.float8e5", "tl.float8e4nv", "tl.float8e4b15",
          "tl.float8e4b8", "tl.float8e5b16", "D", "I", "p.dtype", "p.dtype.element_ty", "q.dtype", "x.dtype", "x.type",
          "y.type", "f.type", "n.dtype", "tl.pi32_t", "tl.pointer_type(tl.int8)",
          "tl.pointer_type(tl.float16, 3)", "tl.pointer_type(tl.int8, 1, True)", "tl.block_type(tl.float16, [8, 4])",
          'tl.dtype("fp32")', "tl.core.get_int_dtype(16, False)"]
PREDICATES = ["is_floating", "is_standard_floating", "is_int", "is_int_signed", "is_int_unsigned", "is_bool", "is_fp8",
              "is_ptr", "is_const", "is_block", "is_fp16", "is_bf16", "is_fp32", "is_fp64", "is_fp8e5", "is_fp8e4nv",
              "is_fp8e4b15", "is_int1", "is_int8", "is_int32", "is_uint8", "is_uint32", "get_int_max_value",
              "get_int_min_value", "codegen_name", "get_block_shapes"]
PROPERTIES = ["primitive_bitwidth", "itemsize", "int_bitwidth", "fp_mantissa_width", "exponent_bias", "name", "scalar",
              "element_ty", "address_space", "shape", "numel", "nbytes", "const", "cache_key_part"]
CLASSES = ["int", "float", "tl.constexpr", "tl.tensor", "tl.dtype", "tl.pointer_type", "tl.block_type", "tl.tuple",
           "tl.core.base_value", "tl.core.base_type", "tl.constexpr_type", "tl.core.tensor", "tl.core.constexpr",
           "tl.core.dtype", "tl.tensor_descriptor", "tl.core.tuple_type", "tl.slice"]
ANYTHING = ["A", "7", "F", "T", "N", "None", "S", "'abc'", "D", "tl.float32", "p.dtype", "q.dtype.element_ty", "x", "y",
            "n", "f", "p", "x.type", "x.dtype", "x.numel", "pair", "(1, 2)", "W", "tl.pi32_t", "A.type"]
VALUES = INTS + FLOATS + BOOLS


def forms():
    """Expressions of each form, with everything that fits it."""
    for op in ARITHMETIC:
        for a, c in itertools.product(FLOATS, FLOATS):
            if op in ("//", "%") or hash_of(a, op, c) % 4 == 0:
                yield f"({a}) {op} ({c})"
        for a, c in itertools.product(INTS, INTS):
            if op in ("//", "%", "/") or hash_of(a, op, c) % 3 == 0:
                yield f"({a}) {op} ({c})"
        for a, c in itertools.product(INTS, FLOATS):
            if hash_of(a, op, c) % 8 == 0:
                yield f"({a}) {op} ({c})"
                yield f"({c}) {op} ({a})"
        for a, c in itertools.product(BOOLS, ["A", "2.5", "True", "'ab'", "None", "(1, 2)"]):
            yield f"({a}) {op} ({c})"
    for op in BITS:
        for a, c in itertools.product(INTS[:12] + BOOLS, ["0", "1", "3", "-1", "B", "True", "T", "40", "2.5"]):
            yield f"({a}) {op} ({c})"
    for a, c in itertools.product(["0", "2", "-2", "10", "A", "0.0", "0.5", "-2.0", "F", "True"],
                                  ["0", "3", "-1", "-2", "0.5", "2.0", "-0.5", "T", "10"]):
        yield f"({a}) ** ({c})"
    for op in ORDER:
        for a, c in itertools.product(["0", "A", "-0.0", "F", "float('nan')", "True", "None", "'abc'", "S", "D", "(1, 2)"],
                                      ["0", "7", "7.0", "2.5", "True", "None", "'abd'", "S", "tl.float16", "(1, 3)"]):
            if op in ("==", "!=") or hash_of(a, op, c) % 2 == 0:
                yield f"{a} {op} {c}"
    for a, c in itertools.product(["None", "N", "True", "T", "A", "7", "S", "'abc'", "D", "tl.float32", "p.dtype",
                                   "x.dtype", "p.dtype.element_ty", "F", "2.5", "K", "1000", "E", "''", "x", "pair"],
                                  ["None", "True", "7", "'abc'", "tl.float16", "tl.int32", "tl.float32", "2.5", "1000",
                                   "''"]):
        yield f"{a} is {c}"
        if hash_of(a, "is not", c) % 3 == 0:
            yield f"{a} is not {c}"
    for a in ["A", "F", "S", "K", "T", "N", "D", "P", "x", "p", "W", "V"]:
        yield f"{a} is {a}"
    for op, a in itertools.product(["-", "+", "~", "not "], VALUES + TEXTS + ["None", "(1, 2)", "()", "D", "(G)"]):
        yield f"{op}({a})"
    for op, a, c in itertools.product(["and", "or"], ["0", "A", "0.0", "F", "''", "S", "None", "True", "False", "()",
                                                      "(1, 2)", "D"], ["0", "7", "S", "None", "False", "T"]):
        yield f"({a}) {op} ({c})"
    for a, c, d in [("1", "A", "9"), ("B", "Z", "A"), ("A", "A", "A"), ("1", "2", "0")]:
        yield f"{a} < {c} < {d}"
        yield f"{a} == {c} != {d}"
    for a, c in itertools.product(ANYTHING, CLASSES):
        yield f"isinstance({a}, {c})"
    for a in ANYTHING:
        for name in ["value", "dtype", "shape", "is_ptr", "element_ty", "bit_length", "to", "upper", "numel",
                     "address_space", "nothing"]:
            yield f"hasattr({a}, '{name}')"
    for t in DTYPES:
        yield t
        for name in PROPERTIES:
            yield f"{t}.{name}"
        for name in PREDICATES:
            if hash_of(t, name, "") % 2 == 0 or name in ("is_ptr", "is_block", "codegen_name"):
                yield f"{t}.{name}()"
        if t[0] not in "pqxyfn":
            yield f"f'{{{t}}}'"
            yield f"f'{{{t}!r}}'"
        for other in ["tl.int32", "tl.float16", "tl.pi32_t", "tl.pointer_type(tl.float32)", "None", "16", "'fp16'",
                      "tl.block_type(tl.int32, [16])"]:
            yield f"{t} == {other}"
            if hash_of(t, other, "!=") % 3 == 0:
                yield f"{t} != {other}"
    for t in ["D", "I", "D.value", "A.value", "F.value", "S.value", "T.value", "N.value", "P.value", "W.value", "W",
              "D.value.primitive_bitwidth", "A.value + 1", "tl.constexpr(3).value", "tl.constexpr(D).value", "x.value",
              "p.value", "A.type", "F.type", "S.type", "N.type", "T.type", "(A + 1).type", "W.type",
              "x.shape", "y.shape", "y.numel", "x.numel", "x.dtype", "y.shape[1]", "y.type.shape",
              "x.shape[0] * 2", "len(y.shape)", "y.type.numel", "p.type", "f.shape", "f.numel", "n", "n.type", "x.T",
              "A.type == tl.constexpr_type(7)", "A.type == tl.constexpr_type(8)",               "A.bit_length()", "(255).bit_length()", "B.bit_length()", "T.bit_length()", "Z.bit_length()",
              "(A * 100).bit_length()", "A.bit_count()", "F.is_integer()", "(3.0).is_integer()",               "A.real", "A.imag", "A.numerator", "A.denominator", "F.real", "A.conjugate()", "F.as_integer_ratio()",
              "A.as_integer_ratio()", "pair[0]", "pair[1]", "P", "P[0]", "P[1]", "P[2]", "P[-1]", "len(P)",
              "P[0] + 1", "(1, 2.5)[1]", "(1, 2) + (3,)", "(1, 2) * 2", "len((1, 2, 3))", "len(S)", "len(E)", "len('ab')",
              "S + 'd'", "S * 2", "2 * S", "S[0]", "S[-1]", "S[1:]", "'%d' % A", "'a' < S", "(1, (2, 3))[1][0]", "[1, 2]",
              "[1, 2][0]", "()", "(A,)", "(A, F, S, None, D)", "((1, 2), 3)", "(1, 2) == (1, 2)", "(1, 2) == (1, 3)",
              "(1, 2) != (1, 2)", "(A, B) == (7, -3)", "[v for v in (1, 2, 3)]", "[v * 2 for v in (A, B)]",
              "[v for v in P]", "(1, 2, 3)[1:]", "(1, 2, 3)[::2]", "(1, 2, 3)[-1]", "(1, 2, 3)[:-1]", "(1, 2)[2]"]:
        yield t
    for name in ["getattr", "hasattr"]:
        for a, key in [("tl", "'float32'"), ("tl", "'int8'"), ("tl", "'pi32_t'"), ("D", "'name'"), ("S", "'nothing'"),
                       ("x", "'dtype'"), ("tl", "'nothing'"), ("tl", "'float' + '16'"), ("tl", "'exp'")]:
            yield f"{name}({a}, {key})"
    yield "getattr(D, 'nothing', 5)"
    yield "getattr(x, 'nothing', None)"
    yield "getattr(tl, 'exp2')(f)"
    yield "getattr(tl, 'cdiv')(A, 2)"
    yield "getattr(x, 'to')(tl.int8)"
    for name in ["min", "max"]:
        for a, c in itertools.product(["A", "3", "-0.0", "0.0", "F", "7.0", "T", "False", "float('nan')", "'abc'", "i", "n",
                                       "f"],
                                      ["0", "7", "2.5", "0.0", "-0.0", "True", "B", "float('inf')", "S", "f", "h"]):
            yield f"{name}({a}, {c})"
        yield from [f"{name}(A, B, F)", f"{name}(1, 1.0, True)", f"{name}(True, 1.0, 1)", f"{name}(A)", f"{name}()",
                    f"{name}((1, 2))", f"{name}(P[0], 0)", f"{name}((A, B, 4))", f"{name}(i, 1, 2)"]
    for a in ["A", "F", "B", "T", "-2.5", "0", "True", "None", "'5'", "f", "float('inf')", "' -12 '", "1e20", "'1_000'",
              "'0x10'", "'x'", "'1.5'", "G"]:
        yield f"int({a})"
        yield f"float({a})"
        yield f"bool({a})"
        yield f"abs({a})"
    yield from ["float('1e400')", "float('-Infinity')", "float(' 2.5 ')", "float('1_0.5')", "int('10', 2)", "int()",
                "float()", "float('infinite')", "float('NaN')", "int('ff', 16)", "round(F)"]
    for a, c in itertools.product(["A", "B", "0", "1", "17", "K", "F", "7.5", "i", "x", "n", "T"],
                                  ["2", "16", "-2", "A", "2.5", "i", "1"]):
        yield f"tl.cdiv({a}, {c})"
        if hash_of(a, c, "cdiv") % 4 == 0:
            yield f"triton.cdiv({a}, {c})"
    for a in ["0", "1", "2", "3", "A", "K", "B", "1 << 40", "(1 << 40) + 1", "F", "4096", "W"]:
        yield f"triton.next_power_of_2({a})"
    for a in ["A", "F", "S", "T", "N", "D", "-0.0", "1e22", "1e-7", "1e16", "123456789.123", "y.shape[0]", "(1, 2.5, S)", "P", "A + 1", "0.1 + 0.2", "V"]:
        yield f"f'{{{a}}}'"
        yield f"f'{{{a}!r}}'"
        yield f"f'<{{{a}!s}}>'"
    yield from ["f'{A}{B}'", "f'{A=}'", "f''", "'a' 'b'", "f'{{}}'"]
    yield from ["A if T else F", "A if Z else F", "F if F else A", "S if S else A", "A if N else B", "1 if D else 2",
                "A if (1, 2) else B", "A if x.shape[0] > 3 else 'no'", "(A if A > 3 else B) + 1", "1 if E else 2"]
    yield from ["f + A", "A + f", "i + A", "i + F", "h * F", "h * A", "i // A", "i % B", "u + A", "u + B", "l + A",
                "b + A", "b & T", "h / A", "i / A", "x + A", "x * F", "x < A", "A < x", "x == 3", "x & A", "x << 1", "1 << x",
                "p + A", "A + p", "p + x", "p - 1", "-x", "not b", "~x", "~b", "i and b", "b and b", "b or T", "T and b",
                "b or A", "Z or b", "i > 3 and T", "x > 3", "f // 2", "f % 2", "A // i", "F % f", "2 ** i", "i ** 2", "h + h",
                "h + f", "u + i", "u + l", "i + 3000000000", "i + (1 << 40)", "h + 1e30", "f + 1e300", "i + True",
                "tl.where(b, 1, 2)", "tl.where(b, 1.0, h)", "tl.where(x > 3, x, 0)", "tl.maximum(h, 1)",
                "tl.minimum(i, 3)", "tl.maximum(1, 2)", "tl.full((4,), A, D)", "tl.zeros((4, 2), D)", "tl.abs(i)",
                "tl.exp(f)", "tl.sum(x)", "tl.max(x, 0)", "tl.to_tensor(A)", "tl.core.to_tensor(A)", "tl.to_tensor(F)",
                "tl.cast(A, D)", "tl.cast(i, D)", "i.to(D)", "x.to(tl.float64)", "f.to(tl.int32, bitcast=True)",
                "A.to(D)", "x[:, None]", "x[None, :]", "y[:, :, None]", "tl.arange(0, A + 1)", "tl.arange(A, 15)",
                "n + 1", "n * 2.5", "n // 2", "n == 5", "n", "min(n, 3)", "max(n, 9)", "x.shape[0] + n", "tl.cdiv(n, 2)",
                "tl.program_id(0)", "tl.num_programs(0)", "tl.reshape(x, (4, 4))", "tl.trans(y)", "y.T",
                "tl.broadcast_to(x, (16,))", "tl.load(p)", "tl.load(p + x)", "tl.load(q)", "tl.expand_dims(x, 0)"]


def hash_of(*parts):
    """A number that is the same in every run."""
    return sum((i + 1) * ord(c) for i, c in enumerate("".join(parts)))


def nested(rng):
    """An expression of several operators, over constants."""

    def make(depth):
        if depth == 0 or rng.random() < 0.2:
            return rng.choice(INTS + FLOATS[:16] + BOOLS)
        kind = rng.random()
        a = make(depth - 1)
        if kind < 0.5:
            return f"({a} {rng.choice(ARITHMETIC)} {make(depth - 1)})"
        if kind < 0.6:
            return f"({a} {rng.choice(ORDER)} {make(depth - 1)})"
        if kind < 0.7:
            return f"({a} {rng.choice(BITS)} {rng.choice(['1', '3', 'A'])})"
        if kind < 0.8:
            return f"{rng.choice(['min', 'max'])}({a}, {make(depth - 1)})"
        if kind < 0.85:
            return f"({rng.choice(['-', '+', 'not '])}{a})"
        if kind < 0.9:
            return f"{rng.choice(['int', 'float'])}({a})"
        if kind < 0.95:
            return f"({a} {rng.choice(['and', 'or'])} {make(depth - 1)})"
        return f"({a} if {make(depth - 1)} else {make(depth - 1)})"

    return make(3)


HOST = [
    "abs(True)", "abs(False)", "abs(-5)", "abs(-2.5)", "abs(-0.0)", "abs(B)", "abs(None)", "abs('a')", "1 < A < 9",
    "1 < A < 5", "A == 7 == 7.0", "B < Z < A < K", "A != B != A", "1 < 2 > 1", "A in (1, 7)", "A not in (1, 7)",
    "'b' in S", "'' in S", "7.0 in (A,)", "True in (1, 2)", "None in (None,)", "len(S)", "len((1, 2))", "len([])",
    "len(range(5))", "len(range(2, 11, 3))", "len(range(5, 0, -2))", "sum((1, 2, 3))", "sum((1.5, 2))", "sum(())",
    "sum((True, True))", "min(3, 1, 2)", "max(3, 1, 2)", "min((4, 2))", "max(1, True)", "max(True, 1)", "min(0.0, -0.0)",
    "max(0.0, -0.0)", "min(float('nan'), 1.0)", "min(1.0, float('nan'))", "max('a', 'b')", "min(1, 2.5)",     "round(2.5)", "round(3.5)", "round(-2.5)", "round(2.4)", "round(7)", "round(True)",      "int(2.9)", "int(-2.9)", "int('12')", "int(' 7 ')", "int(True)", "int('1_0')", "float('1_0.5')", "float('inf')",
    "float(3)", "float('x')", "float(' -1e3 ')", "bool('')", "bool('0')", "bool(0.0)", "bool(())", "bool((0,))", "bool(None)",
    "bool(-0.0)", "bool(float('nan'))", "str(1.0)", "str(True)", "str(None)", "str('a')", "str((1, 'a'))", "str((1,))",
    "str(1e22)", "str(-0.0)", "str(1e-5)", "str(100000000000000000.0)", "tuple((1, 2))", "tuple(range(3))", "list(range(3))",
    "isinstance(True, int)", "isinstance(1, float)", "isinstance(1, (int, float))", "isinstance('a', str)",
    "isinstance(None, int)", "isinstance((1,), tuple)", 
    "isinstance(1.0, bool)", "isinstance(D, tl.dtype)", "isinstance(A, tl.constexpr)",
    "isinstance(tl.pi32_t, tl.pointer_type)", "isinstance(D, tl.pointer_type)", "isinstance(D, tl.block_type)",
    "hasattr(A, 'value')", "hasattr(A, 'bit_length')", "hasattr(F, 'is_integer')", "hasattr(S, 'upper')",
    "hasattr(D, 'name')", "hasattr(D, 'is_ptr')", "hasattr(D, 'nope')", "getattr(D, 'name')", "getattr(D, 'x', 3)",
    "A.bit_length()", "(0).bit_length()", "(-8).bit_length()", "(1 << 40).bit_length()", "A.bit_count()", "True.bit_length()",
    "(2.0).is_integer()", "F.is_integer()", "S.upper()", "S.replace('a', 'x')", "S.startswith('ab')", "S.endswith('d')",
    "S.find('c')", "S.find('z')", "S.count('b')", "'a,b'.split(',')", "','.join(('a', 'b'))", "'{}-{}'.format(A, F)",
    "'{0:>4}'.format(S)", "' x '.strip()", "'Ab'.lower()", "'ab cd'.title()", "S.capitalize()", "'abab'.replace('ab', 'c')",
    "'12'.isdigit()", "S.isdigit()", "'%s-%d' % (S, A)", "'%.2f' % F", "'%5d|' % A", "'%x' % 255", "'%r' % S", "S % ()",
    "S[0]", "S[-1]", "S[1:]", "S[::-1]", "S[:1]", "S * 2", "2 * S", "S * 0", "S * -1", "S + 'd'", "S < 'abd'", "S == 'abc'",
    "(1, 2) + (3,)", "(1, 2) * 2", "2 * (1, 2)", "(1, 2) == (1, 2)", "(1, 2.0) == (1.0, 2)", "[1] + [2]",
    "(1, 2, 3)[::-1]", "(1, 2, 3)[-2:]", "[v * v for v in range(4)]", "[v for v in (1, 2, 3) if v > 1]",
    "[u + v for u in (1, 2) for v in (10, 20)]", "f'{A:04d}'", "f'{F:.3f}'", "f'{A=}'", "f'{S!r:>7}'", "f'{A:x}'", "f'{A:+d}'",
    "f'{K:,}'", "f'{F:8.2e}|'", "f'{0.1 + 0.2}'", "f'{True:d}'", "f'{S:^7}|'", "f'{A:{B + 8}d}'", "f'{D}'", "f'{D!r}'",
    "f'{None}'", "f'{(1, 2)}'", "math.floor(-2.5)", "math.ceil(2.1)", "math.sqrt(2)", "math.log2(8)", "math.log2(3)",
    "math.log(10)", "math.exp(1)", "math.pi", "math.inf", "math.log(8, 2)", "math.log10(1000)", "math.prod((2, 3))",
    "math.floor(7)", "math.sin(0.5)", "math.cos(0.5)", "math.tanh(0.5)", "A is 7", "None is None", "N is None",
    "N is not None", "T is True", "not A", "not ()", "not ''", "not None", "A and B", "Z or S", "N or A", "Z and A", "'' or 0",
    "A if A > 3 else B", "-A", "~A", "+T", "-T", "~T", "-0.0", "-Z", "T + T", "T & A", "T & T", "T | False", "T ^ T", "T << 3",
    "A << 70", "A >> 70", "B >> 1", "B >> 100", "A & B", "A | B", "A ^ B", "2 ** 10", "2 ** -1", "2.0 ** 3", "(-2) ** 3",
    "0 ** 0", "0.0 ** 0", "(-8) ** (1 / 3)", "0 ** -1", "10 ** 20", "2 ** 100", "1.5 ** 2.5", "True ** 2", "7 // 0",
    "7 % 0", "7.0 // 0.0", "1 / 0", "1e308 * 10", "10.0 ** 400", "1 << -1", "1.5 & 1", "'a' + 1", "None + 1", "A @ B",
    "triton.cdiv(A, 2)", "triton.cdiv(-7, 2)", "triton.cdiv(7, -2)", "triton.cdiv(7.5, 2)",
    "triton.next_power_of_2(0)", "triton.next_power_of_2(-5)", "triton.next_power_of_2(17)",
    "triton.next_power_of_2(1 << 33)", "triton.next_power_of_2((1 << 33) + 1)", "1_000", "0x1F", "0b101", "0o17", "1e3",
    "3.", ".5", "1e400", "float('-inf') // 1.0", "float('inf') % 2", "2.0 % float('inf')", "-2.0 % float('inf')",
    "2.0 // float('inf')", "-2.0 // float('inf')", "1e16 / 3", "7 / 2", "(1 << 62) / 3", "(1 << 100) / (1 << 99)",
    "((1 << 80) + 1) / 3", "int(1e22)", "float((1 << 53) + 1)", "float((1 << 60) + 64)", "(1 << 53) + 1 == float(1 << 53)",
    "(1 << 53) + 1 > float(1 << 53)", "1e30 > (1 << 100)", "float('inf') > 1 << 100", ]

# ---- what they are ----

MODULE_SIZE = 200
HEAD = """import math
import triton
import triton.language as tl

W = tl.constexpr(12)
V = tl.constexpr(0.1)


"""


def module(kernels):
    """A module of Python with kernels, one for each expression."""
    params = ", ".join(list(TYPED) + [f"{name}: tl.constexpr" for name in CONSTANTS])
    text = HEAD
    for i, expr in enumerate(kernels):
        body = "".join(f"    {line}\n" for line in SETUP)
        text += f"@triton.jit\ndef k{i}({params}):\n{body}    found({expr})\n\n\n"
    folder = tempfile.mkdtemp()
    path = os.path.join(folder, "expressions.py")
    with open(path, "w") as file:
        file.write(text)
    scope = {"__name__": "expressions", "__file__": path, "found": found}
    exec(compile(text, path, "exec"), scope)
    return scope


def of_kernel(fn, backend, options):
    FOUND.clear()
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    signature = {**TYPED, **{name: "constexpr" for name in CONSTANTS}}
    source = ASTSource(fn, signature, CONSTANTS)
    source.make_ir(GPUTarget("cuda", 80, 32), options, backend.get_codegen_implementation(options),
                   backend.get_module_map(), context)
    return show(FOUND[0])


def of_python(expr):
    """The constant that Python makes of it."""
    scope = {**CONSTANTS, **MODULE, "pair": (1, 2.5), "M": CONSTANTS["A"] * 2, "tl": tl, "triton": triton, "math": math}
    return show(eval(expr, scope))


def main():
    import warnings
    warnings.simplefilter("ignore")
    rng = random.Random(16)
    kernels = list(dict.fromkeys(itertools.chain(forms(), (nested(rng) for _ in range(400)))))
    for expr in kernels:
        ast.parse(expr)
    target = GPUTarget("cuda", 80, 32)
    backend = make_backend(target)
    options = backend.parse_options({})
    print("# Made by make_constants.py.")
    scope = {}
    for i, expr in enumerate(kernels):
        # Python looks for a function's text in all of its module's.
        if i % MODULE_SIZE == 0:
            scope = module(kernels[i:i + MODULE_SIZE])
        try:
            result = "= " + of_kernel(scope[f"k{i % MODULE_SIZE}"], backend, options)
        except RunTime as e:
            result = f": {e}"
        except Odd:
            continue
        except (CompilationError, AssertionError, TypeError, ValueError, AttributeError) as e:
            try:
                result = "! " + of_python(expr)
            except Odd:
                continue
            except Exception:
                result = "!"
        if len(result) < 200:
            print(f"kernel\t{expr}\t{result}")
    for expr in HOST:
        try:
            result = "= " + of_python(expr)
        except Odd:
            continue
        except Exception:
            result = "!"
        print(f"host\t{expr}\t{result}")


if __name__ == "__main__":
    main()
