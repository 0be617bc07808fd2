"""Writes programs.txt: what the kernels of programs.py store on Triton's interpreter. Made with Triton 3.6.0; needs no GPU:

    python tests/data/language/make_programs.py > tests/data/language/programs.txt
    python tests/data/language/make_programs.py compile                        compiles each with Triton instead, for sm_80

Where the interpreter differs from Triton's compiler, or cannot run a kernel, the values are stated here with the reason.
"""
import math
import os
import sys

import ml_dtypes
import numpy as np

COMPILE = len(sys.argv) > 1 and sys.argv[1] == "compile"
if not COMPILE:
    from interpreted import DTYPES, Array, line, written

import programs  # noqa: E402

# The exponent's argument is rounded, the functions of the device err by a few units; all of it in f32.
CLOSE = "rel 4e-6 abs 1e-6"
RANDOM = np.random.default_rng(3)
# Of the programs in the end, so that those before keep their numbers.
LATER = np.random.default_rng(5)


def normal(*shape):
    return np.round(RANDOM.standard_normal(shape) * 64) / 64


def erf(x):
    return np.vectorize(math.erf)(x)


A, B = normal(24, 40), normal(40, 20)
Q, K, V = normal(16, 16), normal(24, 16), normal(24, 16)

Q32, K32, V32 = normal(32, 16), normal(32, 16), normal(32, 16)


def attend_powers():
    s = (Q32 @ K32.T) * 0.25
    s[np.arange(32)[:, None] < np.arange(32)[None, :]] = -1e6
    p = np.exp2(s - s.max(1, keepdims=True))
    # The sum starts with one.
    first = np.exp2(-np.inf - s.max(1, keepdims=True))
    return ((p / (p.sum(1, keepdims=True) + first)) @ V32).reshape(-1)


def narrow(a, b, c):
    """What the types of the language wrap to; NumPy's promotion is another."""
    wide = lambda x: x.astype(np.int64)
    as_u8 = b.view(np.uint8)
    parts = [a + a, a - np.uint8(1), ~a, b * b, a + as_u8, b.astype(np.int16) + c, wide(a >> 1) + wide(b >> 1), c << 3, a > as_u8,
             np.maximum(wide(a), 100) + np.minimum(wide(b), 0), np.abs(b), a // 7 + a % 7]
    return np.concatenate([wide(p) for p in parts]).astype(np.int32)


def by_methods(x):
    v = x.reshape(4, 8).astype(np.float64)
    both = v[:, None, :] * 2 + np.arange(8)[None, :, None]
    parts = [v.sum(1), v.max(1) - v.min(1), [v.sum()], v.sum(0), v.argmax(1) + np.abs(v).sum(1), v.sum(1),
             v.reshape(4, 2, 4).transpose(0, 2, 1).sum(-1).max(-1), both.sum(2).sum(1)]
    return np.concatenate(parts)


def small_floats(x, y):
    a, b = x.astype(np.float64), y.astype(np.float64)
    half = lambda v: v.astype(np.float16).astype(np.float64)
    parts = [half(half(a * a) + 1), b * b + 1, half(np.full(4, a.sum())) + a, np.where(a > 1.5, a, -a) + np.maximum(b, 0),
             np.fmod(a, 1.5), half(a / 3) + (b - 0.5)]
    return np.concatenate(parts).astype(F32)


def long_results(a, b):
    """Python's integers, with the language's rounding to zero."""
    quotient = lambda x, y: abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
    wrap = lambda n: (n + (1 << 63)) % (1 << 64) - (1 << 63)
    a, b = [int(v) for v in a], [int(v) for v in b]
    parts = [[quotient(x, 7) * 10 + (x - 7 * quotient(x, 7)) for x in a], [x // 10 for x in b], [(y >> 60) + (x >> 62) for x, y in zip(a, b)],
             [(y * y) >> 64 for y in b], [wrap(x * x) for x in a], [int(np.float32(x)) for x in a], [i - (1 << 31) for i in range(4)]]
    return np.array([wrap(n) for part in parts for n in part], np.int64)


def more_shapes(x):
    v = x.reshape(4, 4)
    at = np.arange(16).reshape(4, 4)
    j = v + v + 100
    parts = [np.take_along_axis(v, (at * 7) % 4, 1), np.take_along_axis(v, (at * 5) % 4, 0), v[:, ::-1], -np.sort(-v, 1), np.cumprod(v % 3 + 1, 0),
             v.reshape(2, 2, 4).transpose(0, 2, 1), v.T, j, np.tile(v.sum(0), (4, 1)), np.stack([v, -v], -1),
             np.bincount(x[x > 4] % 8, minlength=8)]
    return np.concatenate([p.reshape(-1) for p in parts]).astype(I32)


def attend():
    s = (Q @ K.T) * 0.25
    s[np.arange(16)[:, None] < np.arange(24)[None, :]] = -np.inf
    p = np.exp(s - s.max(1, keepdims=True))
    return ((p / p.sum(1, keepdims=True)) @ V).reshape(-1)


def leaky(c):
    c = np.where(c >= 0, c, 0.01 * c)
    return c.astype(np.float16).reshape(-1)


I32, F32 = np.int32, np.float32
EIGHT = [3.5, -1.25, 0.0, 7.0, -2.5, 0.75, 1.0, -6.0]
SIXTEEN = [5, 3, 9, 1, 14, 7, 0, 11, 2, 8, 13, 4, 15, 6, 12, 10]
INF, NAN = float("inf"), float("nan")

# name, arguments (name, signature type, data, a length of an output, or None for what the signature says itself), grid,
# stated values by argument, bound, and names of constants
CASES = [
    ("walrus", [("out", "*fp32", 8), ("x", "*fp32", [3, 1, 4, 1, 5, 9, 2, 6]), ("n", "i32", 8)], 1, {}),
    ("defaults", [("out", "*fp32", 12), ("x", "*fp32", [1, 2, 3, -4])], 1, {}),
    ("unrolled_pointers", [("out", "*fp32", 8), ("a", "*fp32", range(8)), ("b", "*fp32", range(8, 16)), ("c", "*fp32", range(16, 24)),
                           ("n", "i32", 8)], 1, {}),
    ("hints", [("out", "*i32", 16), ("x", "*i32", range(64)), ("n", "i32:16", 16), ("stride", "i32", 4)], 1, {}),
    ("where_broadcasts", [("out", "*fp32", 32), ("x", "*fp32", range(32)), ("n", "i32", 6)], 1, {}),
    ("wide_offsets", [("out", "*fp32", 8), ("x", "*fp32", range(16)), ("stride", "i64", 8), ("n", "i32", 4)], 2, {}),
    ("casts", [("out", "*i32", 24), ("x", "*fp32", [2.75, -2.7501, 0.0, 1000.3]), ("i", "*i32", [300, -1, 127, 128])], 1, {}),
    ("masked_atomics", [("out", "*i32", 3), ("total", "*i32", [0, 0, -5, 3, 8, 14, 1, 7, 5]), ("x", "*i32", [1, 2, 3, 4, -5, 6, 7, 100]),
                        ("n", "i32", 7)], 1, {}),
    ("float_atomics", [("out", "*fp32", [-3, 0.5, 0, 1]), ("x", "*fp32", EIGHT)], 1, {}),
    ("matmul_kernel", [("a_ptr", "*fp16", A.reshape(-1)), ("b_ptr", "*fp16", B.reshape(-1)), ("c_ptr", "*fp16", 24 * 20), ("M", "i32", 24),
                       ("N", "i32", 20), ("K", "i32", 40), ("stride_am", "i32", 40), ("stride_ak", "i32:1", None), ("stride_bk", "i32", 20),
                       ("stride_bn", "i32:1", None), ("stride_cm", "i32", 20), ("stride_cn", "i32:1", None), ("BLOCK_M", 16, None),
                       ("BLOCK_N", 16, None), ("BLOCK_K", 32, None), ("GROUP_M", 2, None), ("ACTIVATION", "'leaky_relu'", None)], 4,
     {"c_ptr": lambda *_: leaky(A @ B)}, "rel 1e-3 abs 1e-5"),
    ("dots", [("out", "*i32", 1024), ("a", "*i8", RANDOM.integers(-128, 128, 1024)), ("b", "*i8", RANDOM.integers(-128, 128, 1024))], 1, {}),
    ("three_axes", [("out", "*i32", 24)], (2, 3, 4), {}),
    ("while_loops", [("out", "*i32", 2), ("x", "*i32", [1, 2, 3, 4, 5, 7, 8, 9]), ("n", "i32", 8)], 1, {}),
    ("named", [("out", "*fp32", 2), ("x", "*fp32", EIGHT), ("n", "i32", 8)], 1, {}, CLOSE),
    ("log_sum_exp", [("out", "*fp32", 2), ("x", "*fp32", EIGHT + EIGHT[::-1])], 1, {}, CLOSE),
    ("recurrence", [("out", "*fp32", 8), ("a", "*fp32", [0.5, 2, 1, 0.25, 4, 1, 0.5, 2]), ("b", "*fp32", range(8)), ("REVERSE", True, None)],
     1, {}),
    ("recurrence", [("out", "*fp32", 8), ("a", "*fp32", [0.5, 2, 1, 0.25, 4, 1, 0.5, 2]), ("b", "*fp32", range(8)), ("REVERSE", False, None)],
     1, {}),
    ("shapes", [("out", "*i32", 64), ("x", "*i32", SIXTEEN)], 1, {}),
    ("orders", [("out", "*i32", 100), ("x", "*i32", SIXTEEN), ("index", "*i32", SIXTEEN[::-1])], 1, {}),
    ("swizzled", [("out", "*i32", 40), ("M", 5, None), ("N", 4, None), ("GROUP", 2, None)], 20, {}),
    ("block_pointers", [("out", "*fp32", 33), ("x", "*fp32", range(33)), ("rows", "i32", 3), ("columns", "i32", 11)], 1, {}),
    ("descriptors", [("out", "*fp32", 96), ("x", "*fp32:16", range(96)), ("rows", "i32", 6), ("columns", "i32:16", 16)], 1, {}),
    # In the interpreter NaN spreads through all of them.
    ("nans", [("out", "*fp32", 18), ("x", "*fp32", [1, NAN, -3, INF]), ("y", "*fp32", [NAN, 2, -2, 5])], 1, {
        "out": lambda *_: np.array([1, 2, -2, INF, NAN, NAN, -3, 5, 1, -1, -1, 1, 1, 2, -2, 6, INF, -2], F32)}),
    ("quotients", [("out", "*fp32", 24), ("x", "*fp32", [1, -2, 3, 10]), ("y", "*fp32", [3, 7, -9, 0.1])], 1, {}, CLOSE),
    ("integers", [("out", "*i32", 44), ("x", "*i32", [3, -4, 100000, -7]), ("u", "*u32", [3, 4294967295, 1 << 31, 77777777])], 1, {}),
    ("returns_early", [("out", "*fp32", [50] * 6), ("x", "*fp32", [-2, 0, 9, 3, 4, 1]), ("n", "i32", 5)], 6, {}),
    ("returned_values", [("out", "*fp32", 6), ("x", "*fp32", [-2.5, 0, 9])], 3, {}),
    ("optional", [("out", "*fp32", 8), ("x", "*fp32", EIGHT), ("bias", "*fp32", range(8)), ("HAS_SCALE", True, None), ("scale", "fp32", 0.5),
                  ("n", "i32", 8)], 1, {}),
    ("optional", [("out", "*fp32", 8), ("x", "*fp32", EIGHT), ("bias", None, None), ("HAS_SCALE", False, None), ("scale", "fp32", 0.5),
                  ("n", "i32", 8)], 1, {}),
    ("pointers_move", [("out", "*fp32", 1), ("x", "*fp32", range(21)), ("n", "i32", 21), ("STEP", 8, None)], 1, {}),
    ("persistent", [("out", "*i32", 7), ("n", "i32", 7)], 3, {}),
    ("nested_loops", [("out", "*i32", 2), ("n", "i32", 6)], 1, {}),
    ("constexprs", [("out", "*i32", 10), ("N", 16, None), ("DTYPE", "i32", None)], 1, {}),
    ("functions", [("out", "*fp32", 96), ("x", "*fp32", EIGHT)], 1, {}, CLOSE),
    ("zero_dimensional", [("out", "*fp32", 3), ("x", "*fp32", [1, 5, -2, 4])], 1, {}),
    ("element_types", [("out", "*bf16", 8), ("x", "*fp16", [1, 5, -2, 4])], 1, {}),
    ("reductions", [("out", "*fp32", 51), ("x", "*fp32", EIGHT * 2 + EIGHT[::-1] * 2)], 1, {}, CLOSE),
    ("masks_broadcast", [("out", "*fp32", 24), ("x", "*fp32", range(32)), ("rows", "i32", 3), ("columns", "i32", 7)], 1, {}),
    ("scalars", [("out", "*fp32", 8), ("flags", "*i1", [False, True]), ("n", "i32", 5)], 1, {}),
    ("philox", [("out", "*i32", 16), ("seed", "i32", 77), ("offset", "i32", 1000)], 1, {}),
    ("tuples", [("out", "*fp32", 5), ("x", "*fp32", [1.5]), ("y", "*fp32", [-4])], 1, {}),
    ("static_lists", [("out", "*fp32", 1), ("x", "*fp32", EIGHT), ("N", 5, None)], 1, {}),
    ("higher_order", [("out", "*fp32", 17), ("x", "*fp32", EIGHT)], 1, {}),
    ("recursion", [("out", "*fp32", 8), ("x", "*fp32", [1, 2, -3, 0.5])], 1, {}),
    ("attention", [("q_ptr", "*fp32", Q.reshape(-1)), ("k_ptr", "*fp32", K.reshape(-1)), ("v_ptr", "*fp32", V.reshape(-1)), ("out", "*fp32", 256),
                   ("n", "i32", 24), ("scale", "fp32", 0.25), ("N", 16, None), ("D", 16, None), ("BLOCK", 16, None), ("CAUSAL", True, None)], 1,
     {"out": lambda *_: attend()}, "rel 1e-5 abs 1e-5"),
    # The interpreter has no libdevice.
    ("library_of_device", [("out", "*fp32", 64), ("x", "*fp32", EIGHT)], 1, {"out": lambda x: np.concatenate(
        [np.tanh(x), np.abs(x) ** 1.5, np.arctan2(x, x + 0.5), np.rint(x), np.log1p(np.abs(x)), np.fmod(x, 0.75),
         np.copysign(np.floor(np.abs(x) + 0.5), x), x * x + x])}, CLOSE),
    ("conditional_types", [("out", "*fp32", 4), ("x", "*fp32", [1.5, 2.5, -3.5, 4]), ("MODE", 0, None)], 1, {}),
    ("conditional_types", [("out", "*fp32", 4), ("x", "*fp32", [1.5, 2.5, -3.5, 4]), ("MODE", 1, None)], 1, {}),
    ("conditional_types", [("out", "*fp32", 4), ("x", "*fp32", [1.5, 2.5, -3.5, 4]), ("MODE", 2, None)], 1, {}),
    ("branches_merge", [("out", "*fp32", 3), ("x", "*fp32", [1.5]), ("n", "i32", 7)], 1, {}),
    ("branches_merge", [("out", "*fp32", 3), ("x", "*fp32", [1.5]), ("n", "i32", 2)], 1, {}),
    ("bits", [("out", "*i32", 16), ("x", "*fp32", [1.5, -1000.3, 0.1, 3e10])], 1, {}),
    ("unpack_int4", [("out", "*fp16", 32), ("packed", "*i32", [0x76543210, -2, 0x12345678, 0x0FEDCBA9]), ("scales", "*fp16", [0.5, 2]),
                     ("zeros", "*i32", [0x38]), ("G", 16, None), ("N", 32, None)], 1, {}),
    ("pointwise", [("in_ptr0", "*fp32", normal(48)), ("in_ptr1", "*fp32", normal(16)), ("out_ptr0", "*fp32", 48), ("out_ptr1", "*i1", 48),
                   ("xnumel", "i32", 48), ("XBLOCK", 32, None)], 2, {}),
    ("inner_reduction", [("in_ptr0", "*fp32", normal(5 * 37)), ("out_ptr0", "*fp32", 5), ("out_ptr1", "*fp32", 5), ("xnumel", "i32", 5),
                         ("rnumel", "i32", 37), ("XBLOCK", 4, None), ("RBLOCK", 16, None)], 2, {}, CLOSE),
    ("online_softmax", [("loss_ptr", "*fp32", 4), ("x_ptr", "*fp16", normal(4 * 50)), ("target_ptr", "*i64", [3, -100, 49, 0]), ("stride", "i32", 50),
                        ("n_cols", "i32", 50), ("IGNORE", -100, None), ("SMOOTH", 0.1, None), ("BLOCK", 16, None)], 4, {}, CLOSE),
    ("chunked_scan", [("out", "*fp32", 20 * 8), ("a", "*fp32", RANDOM.choice([0.5, 1, 2, -1], 160)), ("b", "*fp32", normal(160)), ("n", "i32", 20),
                      ("D", 8, None), ("T", 8, None)], 1, {}, CLOSE),
    ("experts", [("a_ptr", "*fp16", normal(10 * 40)), ("b_ptr", "*fp16", normal(3 * 40 * 16)), ("c_ptr", "*fp16", [0] * 20 * 16),
                 ("weights_ptr", "*fp32", normal(20)), ("ids_ptr", "*i64", [0, 3, 5, 7, 9, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 1, 2, 4, 6, 8, 10, 11,
                                                                            12, 13, 14, 20, 20, 20, 20, 20, 20] + [15, 16, 17, 18, 19] + [20] * 11),
                 ("experts_ptr", "*i32", [2, 0, -1]), ("valid", "i32", 20), ("K", "i32", 40), ("stride_am", "i32", 40), ("stride_be", "i32", 640),
                 ("stride_bk", "i32:16", 16), ("stride_cm", "i32:16", 16), ("BLOCK_M", 16, None), ("N", 16, None), ("BLOCK_K", 32, None),
                 ("MUL_WEIGHT", True, None), ("top_k", 2, None), ("compute_type", "fp16", None)], 3, {}, "rel 2e-3 abs 1e-3"),
    ("paged", [("out", "*fp32", 16), ("q_ptr", "*fp32", normal(16)), ("k_ptr", "*fp32", normal(5 * 8 * 16)), ("v_ptr", "*fp32", normal(5 * 8 * 16)),
               ("table_ptr", "*i32", [3, 0, 4]), ("length", "i32", 21), ("scale", "fp32", 0.25), ("D", 16, None), ("PAGE", 8, None)], 1, {}, CLOSE),
    ("unpack_awq", [("out", "*fp16", 32), ("q_ptr", "*i32", [0x76543210, -2, 0x12345678, 0x0FEDCBA9]), ("scales_ptr", "*fp16", [0.5, 2, 1, 3, 1, 1, 4, 1]),
                    ("zeros_ptr", "*i32", range(8)), ("X", 4, None)], 1, {}),
    ("sorted_pairs", [("keys_out", "*fp32", 16), ("index_out", "*i32", 16), ("x", "*fp32", EIGHT + [9.5, -0.125, 1e10, -1e-3, 8, 4, 2, -7])], 1, {}),
    ("narrow_integers", [("out", "*i32", 48), ("u", "*u8", [0, 1, 200, 255]), ("s", "*i8", [-128, 127, -1, 100]), ("h", "*i16", [-32768, 32767, 5, -5])],
     1, {"out": narrow}),
    # The interpreter loses the carry of a fraction that is rounded up.
    ("eighths", [("out", "*fp32", 16), ("x", "*fp32", [1, -1.9, 0.3, 40000, 1e-4, -3.5, 57344, 1.1e-5]), ("bytes", "*u8", 8)], 1, {
        "out": lambda x: np.tile(x.astype(ml_dtypes.float8_e5m2).astype(F32), 2),
        "bytes": lambda x: x.astype(ml_dtypes.float8_e5m2).view(np.uint8)}),
    ("constant_math", [("out", "*i32", 11), ("N", 11, None), ("M", 3, None), ("MODE", "'mean'", None)], 1, {}),
    ("conditions", [("out", "*i32", 4), ("a", "i32", 2), ("b", "i32", 2), ("flag", "i1", False), ("p", None, None)], 1,
     {"out": lambda *_: np.array([101111, 2, 0, 3], I32)}),
    ("conditions", [("out", "*i32", 4), ("a", "i32", 7), ("b", "i32", 3), ("flag", "i1", True), ("p", "*fp32", [1.0])], 1,
     {"out": lambda *_: np.array([10110, 7, 1, 4], I32)}),
    ("methods", [("out", "*fp32", 33), ("x", "*fp32", normal(32))], 1, {"out": by_methods}, CLOSE),
    ("chosen_pointers", [("out", "*fp32", 9), ("a", "*fp32", range(8)), ("b", "*fp32", range(50, 58)), ("n", "i32", 3)], 1, {}),
    ("compact", [("out", "*i32", [-9] * 20), ("count", "*i32", [0]), ("x", "*i32", [3, 0, -1, 5, 6, 0, 7, 8, 1, 0, 0, 2, 9]), ("n", "i32", 13), ("BLOCK", 8, None)],
     1, {}),
    ("ties_right", [("out", "*i32", 11), ("x", "*fp32", [3, 9, -4, 9, -4, 9, 9, -8])], 1, {}),
    ("stochastic", [("out", "*fp32", 8), ("x", "*fp32", [1.1, 2.7, -3.3, 0.01, 1e5, -7, 0.3, 9]), ("seed", "i32", 5)], 1, {}),
    ("annotated", [("out", "*fp32", 8), ("x", "*fp32", EIGHT), ("n", "i64", 8), ("eps", "fp32", 0.5), ("BLOCK", 8, None)], 1,
     {"out": lambda x: x + 0.5}),
    ("causal_attention", [("Q", "*fp16", Q32.reshape(-1)), ("K", "*fp16", K32.reshape(-1)), ("V", "*fp16", V32.reshape(-1)), ("Out", "*fp16", 512),
                          ("N_CTX", 32, None), ("D", 16, None), ("BLOCK_M", 16, None), ("BLOCK_N", 16, None), ("STAGE", 3, None)], 2,
     {"Out": lambda *_: attend_powers()}, "rel 4e-3 abs 2e-3"),
    ("batched_dot", [("out", "*fp32", 512), ("a", "*fp32", normal(512)), ("b", "*fp32", normal(512))], 1, {}, "rel 1e-5 abs 1e-5"),
    ("rotate_halves", [("x_ptr", "*fp16", normal(3 * 2 * 16)), ("cos_ptr", "*fp32", normal(24)), ("sin_ptr", "*fp32", normal(24)), ("heads", "i32", 2),
                       ("HALF", 8, None), ("BACKWARD", True, None)], 3, {}, "rel 1e-3 abs 1e-3"),
    ("called", [("out", "*i32", 1), ("n", "i32", 9)], 1, {}),
    ("literals", [("out", "*i64", 8), ("x", "*i32", [-7]), ("u", "*u32", [4000000000])], 1, {}),
    ("returns_in_loops", [("out", "*fp32", 1), ("x", "*fp32", [1, 2, -3, 4, 5, 6, -1]), ("n", "i32", 6)], 1, {
        "out": lambda x: np.array([3 + 1.0 + 0.5 + 9 + 11 + 1.0 + 2 - 6 + 10], F32)}),
    ("reassigned", [("out", "*i64", 1), ("x", "*i32", range(8)), ("n", "i32", 5)], 1, {"out": lambda x: np.array([112 + 12 + 10 + 4], np.int64)}),
    ("nothing", [("out", "*fp32", 1), ("x", "*fp32", [1.5]), ("bias", None, None), ("DEFAULT", None, None)], 1, {}),
    ("nothing", [("out", "*fp32", 1), ("x", "*fp32", [1.5]), ("bias", "*fp32", [4]), ("DEFAULT", 0.5, None)], 1, {}),
    ("chosen_texts", [("out", "*i32", [7] * 5), ("MODE", "'none'", None)], 1, {"out": lambda _: np.array([-1, 2, 0, 7, 20], I32)}),
    ("truths", [("out", "*i32", 19), ("m", "*i1", [1, 1, 0, 0, 1, 0, 1, 0]), ("k", "*i1", [1, 0, 1, 0, 0, 0, 1, 1]), ("flag", "i1", True)], 1, {
        "out": lambda m, k: np.concatenate([(m & ~k) + (m | k) * 10 + (m ^ k) * 100, m.astype(I32) - k, [4 + 100, 2, 5]]).astype(I32),
        "m": lambda m, k: (k + np.arange(8)) != 0}),
    ("doubles", [("out", "*fp64", 14), ("x", "*fp64", [0.1, 1.7, -2.3, 1e10]), ("n", "i32", 5)], 1, {
        "out": lambda x: np.concatenate([x * 0.1 + 1e-300, np.where(x > 100, INF, np.exp(np.minimum(x, 100)) + np.sqrt(np.abs(x))),
                                         np.where(x > 1, x, 5) / 3, [x.sum() + x.max(), x.astype(F32).sum()]])}, "rel 1e-12 abs 1e-12"),
    ("halves", [("out", "*fp32", 24), ("x", "*fp16", [1.1, 2.5, -3.3, 100.7]), ("y", "*bf16", [1.1, -2.5, 3.3, 100.7])], 1,
     {"out": small_floats}, "rel 8e-3 abs 1e-3"),
    ("long_integers", [("out", "*i64", 28), ("x", "*i64", [-(1 << 40) - 3, 1 << 62, 12345678901, -1]),
                       ("u", "*u64", [(1 << 64) - 1, 1 << 63, 5, 1 << 40])], 1, {"out": long_results}),
    ("ones", [("out", "*fp32", 6), ("x", "*fp32", [2.5, 7])], 1, {}),
    ("more_shapes", [("out", "*i32", 184), ("x", "*i32", SIXTEEN)], 1, {"out": more_shapes}),
    ("ranges", [("out", "*i32", 5), ("n", "i32", 7), ("m", "i64", 1 << 40)], 1, {}),
    ("nested_state", [("out", "*fp32", 4), ("x", "*fp32", EIGHT), ("n", "i32", 8)], 1, {}, CLOSE),
    ("pointers_compared", [("out", "*i32", 5), ("a", "*i32", [5, 6, 7, 8]), ("b", "*i32", [5])], 1, {
        "out": lambda *_: np.array([0, 1, 0, 7, 8], I32)}),
    ("matrices", [("out", "*fp32", 512), ("a", "*fp16", normal(512)), ("b", "*fp16", normal(1024)), ("M", 16, None), ("N", 32, None), ("K", 32, None),
                  ("TRANSPOSED", True, None), ("DTYPE", "fp32", None)], 1,
     {"out": lambda a, b: (a.astype(F32).reshape(16, 32) @ b.astype(F32).reshape(32, 32).T + 1).reshape(-1)}, "rel 1e-5 abs 1e-4"),
    ("matrices", [("out", "*fp16", 512), ("a", "*fp16", normal(512)), ("b", "*fp16", normal(1024)), ("M", 16, None), ("N", 32, None), ("K", 32, None),
                  ("TRANSPOSED", False, None), ("DTYPE", "fp16", None)], 1,
     {"out": lambda a, b: (a.astype(F32).reshape(16, 32) @ b.astype(F32).reshape(32, 32) + 1).reshape(-1)}, "rel 4e-3 abs 2e-2"),
    ("scaled_softmax", [("out_ptr", "*fp32", 5 * 20), ("in_ptr", "*fp32", normal(100)), ("in_stride", "i32", 20), ("out_stride", "i32", 20), ("n_rows", "i32", 5),
                        ("n_cols", "i32", 20), ("BLOCK_SIZE", 32, None), ("num_stages", 2, None)], 2, {}, CLOSE),
    ("stores_of_kinds", [("out8", "*i8", 5), ("out16", "*i16", 5), ("outh", "*fp16", 5), ("x", "*fp32", [1.9, -2.9, 100.5, 0])], 1, {}),
    ("combine_conditions", [("out", "*fp32", 11), ("x", "*fp32", EIGHT[3:] + EIGHT[:3])], 1, {
        "out": lambda x: np.concatenate([[x.max()], np.maximum.accumulate(x), [x[np.argmin(x * x)], np.argmin(x * x)]])}),
    ("spin_lock", [("out", "*i32", 5), ("lock", "*i32", [0]), ("count", "*i32", [0])], 5, {}),
    ("running_best", [("out", "*fp32", 40), ("at", "*i32", 2), ("x", "*fp32", LATER.integers(-8, 12, 40)), ("n", "i32", 40), ("BLOCK", 8, None)], 1, {}),
    ("hadamard", [("out", "*fp32", 32), ("x", "*fp32", LATER.integers(-8, 9, 32)), ("LOG", 5, None)], 1, {}),
    ("by_digits", [("out", "*i32", 4), ("x", "*i32", [2, -3, 0, 5]), ("N", 1000, None)], 1, {}),
    ("sorted_runs", [("out", "*i32", 256), ("ranks", "*i32", 128), ("x", "*i32", LATER.permuted(np.tile(np.arange(-16, 16), (4, 1)), axis=1).reshape(-1)),
                     ("ROWS", 4, None), ("COLUMNS", 32, None)], 1, {}),
    ("counted_bins", [("out", "*i32", [0] * 24), ("x", "*i32", LATER.integers(0, 16, 100)), ("n", "i32", 100), ("BINS", 16, None), ("BLOCK", 64, None)],
     2, {}),
    ("moments", [("out", "*fp32", 10), ("x", "*fp32", LATER.integers(-8, 9, 5 * 21)), ("rows", "i32", 5), ("columns", "i32", 21), ("R", 4, None),
                 ("C", 8, None)], 2, {}, CLOSE),
    ("small_products", [("out", "*fp32", 512), ("a", "*fp32", LATER.integers(-8, 9, 512)), ("b", "*fp32", LATER.integers(-8, 9, 1024)),
                        ("M", 16, None), ("N", 32, None), ("K", 32, None), ("PRECISION", "'ieee'", None)], 1, {}),
    ("small_products", [("out", "*fp32", 512), ("a", "*fp32", LATER.integers(-8, 9, 512)), ("b", "*fp32", LATER.integers(-8, 9, 1024)),
                        ("M", 16, None), ("N", 32, None), ("K", 32, None), ("PRECISION", "'tf32'", None)], 1, {}),
    ("small_products", [("out", "*i32", 512), ("a", "*i8", LATER.integers(-128, 128, 512)), ("b", "*i8", LATER.integers(-128, 128, 1024)),
                        ("M", 16, None), ("N", 32, None), ("K", 32, None), ("PRECISION", "'none'", None)], 1, {}),
    ("batched", [("out", "*fp32", 1040), ("a", "*fp16", LATER.integers(-8, 9, 1024)), ("b", "*fp16", LATER.integers(-8, 9, 1024)), ("B", 4, None),
                 ("M", 16, None)], 1, {}),
    ("tiles_by_descriptor", [("out", "*fp32", 20 * 12), ("x", "*fp32", range(20 * 12)), ("rows", "i32", 20), ("columns", "i32", 12), ("R", 8, None),
                             ("C", 8, None)], 3, {}),
    ("dropped", [("out", "*fp32", 40), ("x", "*fp32", range(1, 21)), ("p", "fp32", 0.5), ("seed", "i32", 77), ("n", "i32", 20), ("BLOCK", 16, None)], 2,
     {}),
    ("picked", [("out", "*fp32", 18), ("x", "*fp32", EIGHT), ("A", "'square'", None), ("B", "'sign'", None)], 1, {}),
    ("picked", [("out", "*fp32", 18), ("x", "*fp32", EIGHT), ("A", "'none'", None), ("B", "'square'", None)], 1, {}),
    ("ring_of_three", [("out", "*fp32", 12), ("x", "*fp32", [3, -1, 4, 1, -5, 9, 2, 6, 5, -3, 5, 8]), ("n", "i32", 7)], 1, {}),
    ("three_dimensions", [("out", "*i32", 32 + 128 + 4 + 32), ("x", "*i32", LATER.integers(-50, 50, 128)), ("D", 4, None), ("H", 4, None),
                          ("W", 8, None)], 1, {}),
]
SHORT = {"fp16": "f16", "fp32": "f32", "fp64": "f64"}


def constant(text):
    import triton.language as tl
    types = {"i32": tl.int32, "fp32": tl.float32, "fp16": tl.float16}
    return types[text] if text in types else text.strip("'")


def compile_all():
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource
    bad = 0
    for case in CASES:
        fn = getattr(programs, case[0])
        signature, values, attrs = {}, {}, {}
        for i, (arg, ty, data) in enumerate(case[1]):
            is_type = isinstance(ty, str) and not ty.startswith("'") and not (data is None and ":" not in ty)
            if not is_type or ty.endswith(":1"):
                signature[arg] = "constexpr"
                values[(i,)] = 1 if is_type else constant(ty) if isinstance(ty, str) else ty
            else:
                signature[arg] = ty.split(":")[0]
                if ty.endswith(":16"):
                    attrs[(i,)] = [["tt.divisibility", 16]]
        sys.stdout.flush()
        # A process of its own, as some of Triton's refusals are aborts.
        if (child := os.fork()) == 0:
            try:
                triton.compile(ASTSource(fn, signature, values, attrs), target=GPUTarget("cuda", 80, 32))
            except Exception as e:
                inner = e
                while inner.__cause__:
                    inner = inner.__cause__
                print(f"{case[0]}: {str(e)[-600:]} / {str(inner)[-300:]}", flush=True)
                os._exit(1)
            os._exit(0)
        bad += os.waitpid(child, 0)[1] != 0
    print(f"{len(CASES)} cases, {bad} refused")


def main():
    for name, arguments, grid, stated, *rest in CASES:
        bound = rest[0] if rest else "exact"
        arrays, given, signature = {}, [], []
        for arg, ty, data in arguments:
            if not isinstance(ty, str):
                signature.append(str(ty))
                given.append(ty)
            elif ty.startswith("*"):
                kind = SHORT.get(ty[1:].split(":")[0], ty[1:].split(":")[0])
                output = isinstance(data, int)
                array = np.zeros(data, DTYPES[kind]) if output else np.array(list(data)).astype(DTYPES[kind])
                signature.append(ty)
                arrays[arg] = (kind, array, output, array.copy())
                given.append(Array(array, kind))
            elif data is None:
                signature.append(ty)
                given.append(1 if ty.endswith(":1") else constant(ty))
            else:
                signature.append(ty)
                given.append(data)
        expected = {}
        if not stated:
            try:
                getattr(programs, name)[grid if isinstance(grid, tuple) else (grid,)](*given)
            except Exception as e:
                print(f"# {name}: the interpreter fails: {str(e)[:200]!r} / {str(e.__cause__)[:300]!r}")
                continue
            expected = {arg: entry[1] for arg, entry in arrays.items() if entry[2] or entry[1].tobytes() != entry[3].tobytes()}
        else:
            inputs = [entry[3] for entry in arrays.values() if not entry[2]]
            for arg, make in stated.items():
                expected[arg] = make(*inputs)
        shown = ",".join(map(str, grid)) if isinstance(grid, tuple) else grid
        print(f"kernel programs.py {name} \"{', '.join(signature)}\" grid={shown}")
        for arg, ty, data in arguments:
            if arg in arrays:
                kind, _, output, before = arrays[arg]
                print(line(arg, kind, before, output, expected.get(arg), bound if kind[0] in "fb" else "exact"))
            elif isinstance(ty, str) and data is not None:
                kind = SHORT.get(ty.split(":")[0], ty.split(":")[0])
                print(f"{arg} {kind} scalar = {written(data, kind) if kind != 'f32' else data}")
        print()


if COMPILE:
    compile_all()
else:
    main()
